"""Intervals of weighted clicks: exact values, invariances, and how often they hold the truth."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2
from slow import slow

from clickgym.logs import ClickLog, FixedPolicy, UniformPolicy, empirical_policy, evaluate
from clickgym.logs.off_policy.contributions import contributions
from clickgym.logs.off_policy.intervals import interval_of_clicks


def by_hand(values, largest, level=0.95):
    """Fay and Feuer's interval, by quantiles of χ² in the units of the values."""
    n, y, tail = len(values), sum(values), (1 - level) / 2
    v = max(sum(x * x for x in values) - y * y / n, max(values) ** 2)
    j = max(largest, *values)
    low = v / (2 * y) * chi2.ppf(tail, 2 * y * y / v) / n if y else 0.0
    up = v + j * j
    return low, up / (2 * (y + j)) * chi2.ppf(1 - tail, 2 * (y + j) ** 2 / up) / n


@pytest.mark.parametrize(
    ("values", "largest", "level"),
    [([2, 0, 0, 10], 5, 0.8), ([0] * 50 + [1, 1.5, 3], 4, 0.95), ([0.3] * 9, 0.1, 0.99)],
)
def test_interval_by_hand(values, largest, level):
    wanted, values = np.array(by_hand(values, largest, level)), np.array(values, float)
    assert interval_of_clicks(values, largest, level) == pytest.approx(wanted, rel=1e-10)
    scaled = interval_of_clicks(values * 1e90, largest * 1e90, level)
    assert scaled == pytest.approx(wanted * 1e90, rel=1e-10)


@pytest.mark.parametrize("clicks", [1, 3, 40])
def test_equal_weights_give_the_interval_of_a_poisson_count(clicks):
    values = np.repeat([2.0, 0.0], [clicks, 10**6 - clicks])
    exact = chi2.ppf(0.025, 2 * clicks) / 1e6, chi2.ppf(0.975, 2 * clicks + 2) / 1e6
    assert interval_of_clicks(values, 2.0, 0.95) == pytest.approx(exact, rel=1e-4)


@pytest.mark.parametrize("sd", [1.0, 5.0, 50.0, 1000.0])
def test_more_variance_widens(sd):
    """Also where the quantiles of the gamma law fall again; in any unit."""
    values = np.repeat([1.0, 0.0], [1, 999])
    low, high = interval_of_clicks(values, 1.0, 0.95, sd**2)
    assert low * 1000 < 0.05
    assert high * 1000 >= 1 + 1.959 * sd
    scaled = interval_of_clicks(8 * values, 8.0, 0.95, (8 * sd) ** 2)
    assert scaled == pytest.approx((8 * low, 8 * high), rel=1e-10)


@pytest.mark.parametrize("model", ["pbm", "ubm", "dbn", "cm"])
def test_list_without_a_click_has_an_interval_from_zero(model):
    """By a click model, too, of which the parameters vary."""
    lists, clicks = [[0, 1], [1, 0], [2, 3], [3, 2]] * 3, [[1, 0], [0, 1], [0, 0], [0, 0]] * 3
    log = ClickLog(lists, clicks, [0] * 12, tuple("abcd"), ("q",))
    result = evaluate(log, FixedPolicy([2, 3]), model)
    assert result.value == result.interval[0] == 0 < result.interval[1]


def test_no_click_is_no_certainty():
    """The upper end is that of a Poisson count of 0 with the largest weight, over 3 sessions."""
    log = ClickLog([[0, 1], [1, 0], [1, 0]], np.zeros((3, 2)), [0] * 3, ("a", "b"), ("q",))
    result = evaluate(log, FixedPolicy([0, 1]), "ips", logging=UniformPolicy(2, 2))
    high = -math.log(0.025) * 2 / 3
    assert result.interval == (0.0, pytest.approx(high))
    assert result.on_policy_interval == (0.0, pytest.approx(high / 2))
    assert result.difference_interval == pytest.approx((-high / 2, high))
    assert result.effective_clicks == 0.0
    assert "0 effective clicks" in result.cautions[-1]


def mostly_one_list(seed, n, rate):
    """A log of users of a PBM, most of whom are shown (a, b, c); what each list earns, and the
    share of the sessions that it has.
    """
    rng = np.random.default_rng(seed)
    lists = np.array([[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]])
    shown = np.array([0.75] + [0.05] * 5)
    expected = np.array([0.4, 0.8, 1.0])[lists] * [1.0, 0.6, 0.3]
    expected *= rate / (shown @ expected).sum()
    drawn = rng.choice(6, n, p=shown)
    clicks = rng.random((n, 3)) < expected[drawn]
    log = ClickLog(lists[drawn], clicks, np.zeros(n), ("a", "b", "c"), ("q",))
    return log, expected.sum(axis=1), shown


@pytest.mark.parametrize("estimator", ["ips", "cascade", "item-position"])
def test_interval_of_a_difference_by_hand(estimator):
    """MOVER, with the correlation of what sessions contribute; their order is of no matter."""
    log, logging, target = (
        mostly_one_list(0, 2000, 0.3)[0],
        UniformPolicy(3, 3),
        FixedPolicy([2, 0, 1]),
    )
    result = evaluate(log, target, estimator, logging=logging)
    values = contributions(log, target, estimator, logging=logging).values.sum(axis=1)
    r = np.corrcoef(values, log.clicks.sum(axis=1))[0, 1]
    (low, high), (other_low, other_high) = result.interval, result.on_policy_interval
    sides = (result.value - low, other_high - result.on_policy)
    others = (high - result.value, result.on_policy - other_low)
    below, above = (math.sqrt(a * a + b * b - 2 * r * a * b) for a, b in (sides, others))
    wanted = pytest.approx((result.difference - below, result.difference + above))
    assert r > 0
    assert result.difference_interval == wanted
    mixed = log[np.random.default_rng(1).permutation(2000)]
    again = evaluate(mixed, target, estimator, logging=logging)
    assert again.interval == pytest.approx(result.interval, rel=1e-12)
    assert again.difference_interval == wanted


@pytest.mark.parametrize(("n_logs", "n", "rate"), [(80, 1500, 0.01), *slow((300, 3000, 0.003))])
def test_intervals_hold_the_truth_where_clicks_are_rare(n_logs, n, rate):
    """Of a better list that one session of twenty shows: nothing is firmly worse."""
    names = ("ips", "cascade", "item-position", "difference")
    held, wrong = dict.fromkeys(names, 0), 0
    for seed in range(n_logs):
        log, values, shown = mostly_one_list(seed, n, rate)
        target, logging = FixedPolicy([2, 1, 0]), empirical_policy(log)
        results = [evaluate(log, target, name, logging=logging) for name in names[:3]]
        for result in results:
            held[result.estimator] += result.interval[0] <= values[5] <= result.interval[1]
        # none where by chance the lists seem to follow time; that holds no truth
        low, high = results[0].difference_interval or (math.nan, math.nan)
        held["difference"] += low <= values[5] - shown @ values <= high
        wrong += high < 0
    assert min(held.values()) >= 0.92 * n_logs
    assert wrong <= 0.03 * n_logs


def four_times(rng):
    """A log of 1,500 sessions, each by one user, and the same with four times as many sessions."""
    clicks = rng.random((1500, 2)) < rng.beta(0.5, 1, (1500, 1))
    log = ClickLog(
        np.array([[0, 1], [1, 0]])[rng.integers(2, size=1500)],
        clicks,
        np.zeros(1500),
        ("a", "b"),
        ("q",),
        list_propensities=np.full(1500, 0.5),
        users=np.arange(1500),
    )
    return log, log[np.repeat(np.arange(1500), 4)]


@pytest.mark.parametrize(("estimator", "tolerance"), [("ips", 0.05), ("pbm", 0.1)])
def test_intervals_are_by_user(estimator, tolerance):
    """The same sessions again, by the same users, make no estimate surer."""
    log, copies = four_times(np.random.default_rng(5))
    single, often, blind = (
        evaluate(part, FixedPolicy([0, 1]), estimator)
        for part in (log, copies, replace(copies, users=None))
    )
    width = single.interval[1] - single.interval[0]
    assert often.interval[1] - often.interval[0] == pytest.approx(width, rel=tolerance)
    assert blind.interval[1] - blind.interval[0] == pytest.approx(width / 2, rel=tolerance)
    assert often.standard_error == pytest.approx(single.standard_error, rel=tolerance)
    assert often.effective_clicks == pytest.approx(single.effective_clicks, rel=1e-3)
    one = evaluate(replace(copies, users=np.zeros(6000)), FixedPolicy([0, 1]), estimator)
    assert np.isnan(one.interval).all()


def test_the_standard_error_of_few_users_is_that_of_the_jackknife():
    """How far the estimate moves if one of the users is left out."""
    log, _ = four_times(np.random.default_rng(5))
    users = np.repeat([0, 1, 2], [200, 500, 800])
    whole = evaluate(replace(log, users=users), FixedPolicy([0, 1]), "ips")
    without = [evaluate(log[users != user], FixedPolicy([0, 1]), "ips").value for user in range(3)]
    expected = np.sqrt(((whole.value - np.array(without)) ** 2).sum())
    assert whole.standard_error == pytest.approx(expected, rel=1e-9)
