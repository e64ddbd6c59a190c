"""Off-policy evaluation: exact expectations by enumeration, refusals, intervals, real logs, and the
command.
"""

import itertools
import re
from copy import copy
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from click_stories import exact_law, make_model, marginal
from scipy.special import ndtri

from clickgym.envs import (
    CascadeModel,
    DependentClickModel,
    DynamicBayesianModel,
    PositionBasedModel,
    UserBrowsingModel,
)
from clickgym.logs import (
    ClickLog,
    DBNEstimator,
    FixedPolicy,
    ListPolicy,
    UBMEstimator,
    UniformPolicy,
    empirical_policy,
    evaluate,
    write_tidy,
)
from clickgym.logs.off_policy.contributions import contributions
from clickgym.logs.off_policy.model_weights import MODEL_BASED
from clickgym.logs.off_policy.policies import read_policy

L, K = 5, 3
LISTS = np.array(list(itertools.permutations(range(L), K)))
MODELS = {
    "cm": CascadeModel,
    "pbm": PositionBasedModel,
    "dcm": DependentClickModel,
    "ubm": UserBrowsingModel,
    "dbn": DynamicBayesianModel,
}
# Which estimators are unbiased for users of which model: the statement of the module's table.
HOLDS = {name: {"ips", "cascade", name} for name in MODELS}
HOLDS["pbm"] |= {"item-position"}


def click_log(items, clicks, **more):
    return ClickLog(
        items, clicks, np.zeros(len(items)), tuple("abcdefgh"[: np.max(items) + 1]), ("q",), **more
    )


def users(name):
    return make_model(MODELS[name], L, K, np.random.default_rng(7).random)


def plackett_luce(scores):
    """Items are drawn position by position, with probability proportional to exp(score)."""
    weights = np.exp(scores)[LISTS]
    remaining = np.exp(scores).sum() - weights.cumsum(axis=1) + weights
    return ListPolicy(LISTS, (weights / remaining).prod(axis=1))


@cache
def logging_policy():
    return plackett_luce(np.random.default_rng(1).normal(size=L))


def every_session(model, policy):
    """Every pair of a list and a click vector once, and the probability of each."""
    items, clicks, probabilities = [], [], []
    for ranking, shown in zip(*policy.support(), strict=True):
        for vector, probability in marginal(
            exact_law(model, ranking), lambda clicks, *_: clicks
        ).items():
            items.append(ranking)
            clicks.append(vector)
            probabilities.append(shown * probability)
    return click_log(items, clicks), np.array(probabilities)


@cache
def logged(name):
    """The sessions of some users who are shown what the logging policy draws."""
    return every_session(users(name), logging_policy())


def model_of(name, estimator):
    """The users themselves for the estimators that need to know them."""
    return users(name) if estimator == name else None


def value(model, policy, *reward_and_cutoff):
    return sum(
        p * model.expected_reward(ranking, *reward_and_cutoff)
        for ranking, p in zip(*policy.support(), strict=True)
    )


TARGETS = {
    "fixed": FixedPolicy([3, 0, 4]),
    "uniform": UniformPolicy(L, K),
    "plackett-luce": plackett_luce([0.0, 2.0, -1.0, 1.0, 0.5]),
    "lists": ListPolicy([[0, 1, 2], [4, 2, 0], [1, 0, 2]], [0.5, 0.3, 0.2]),
    "four items": plackett_luce([0.0, 2.0, -1e3, 1.0, 0.5]),
}


def moments(name, estimator, target, model=None, **reward_and_cutoff):
    """Exact expectation and standard deviation per session of an estimate, and the expectations of
    its weights.
    """
    log, probabilities = logged(name)
    values, weights, _ = contributions(
        log, target, estimator, logging=logging_policy(), model=model, **reward_and_cutoff
    )
    values = values.sum(axis=1)
    mean = probabilities @ values
    return mean, np.sqrt(probabilities @ (values - mean) ** 2), probabilities @ weights


# ------------------------------------------------------------------------------------------------
# ---------- expectations


UNBIASED = [
    (target, reward, cutoff, name, estimator)
    for reward, cutoff in (("clicks", None), ("clicks", 2), ("any_click", None), ("any_click", 2))
    for target in (TARGETS if (reward, cutoff) == ("clicks", None) else ("fixed", "four items"))
    for name in MODELS
    for estimator in (sorted(HOLDS[name]) if reward == "clicks" else ("ips", "cascade"))
]


@pytest.mark.parametrize(("target", "reward", "cutoff", "name", "estimator"), UNBIASED)
def test_the_expectation_is_the_value_where_the_model_holds(
    target, reward, cutoff, name, estimator
):
    target, model = TARGETS[target], model_of(name, estimator)
    mean, _, weights = moments(name, estimator, target, model, reward=reward, cutoff=cutoff)
    assert mean == pytest.approx(value(users(name), target, reward, cutoff), abs=1e-10)
    assert weights == pytest.approx(1.0, abs=1e-10)


def test_what_was_logged_is_the_reward_asked_for():
    log = click_log([[0, 1, 2]] * 3, [[1, 1, 0], [0, 0, 1], [0, 0, 0]], list_propensities=[1.0] * 3)
    shown = FixedPolicy([0, 1, 2])
    for words, logged in (
        ({}, 1.0),
        ({"cutoff": 2}, 2 / 3),
        ({"reward": "any_click"}, 2 / 3),
        ({"reward": "any_click", "cutoff": 2}, 1 / 3),
    ):
        result = evaluate(log, shown, "ips", **words)
        assert result.on_policy == result.value == pytest.approx(logged)
        most = 1.0 if "reward" in words else words.get("cutoff", 3)
        assert 0 <= result.on_policy_interval[0] < logged < result.on_policy_interval[1] <= most


def test_positions_below_the_cutoff_need_not_be_logged():
    log = click_log([[0, 1, 2], [0, 2, 1]] * 10, [[1, 0, 0], [0, 1, 0]] * 10)
    target, logging = FixedPolicy([0, 1, 3]), ListPolicy([[0, 1, 2], [0, 2, 1]], [0.5, 0.5])
    wider = replace(log, item_labels=tuple("abcd"))
    for estimator in ("cascade", "item-position"):
        with pytest.raises(ValueError, match="infinite"):
            evaluate(wider, target, estimator, logging=logging)
        assert evaluate(wider, target, estimator, logging=logging, cutoff=2).value == pytest.approx(
            0.5
        )


def table():
    """The bias and deviation of each estimator for each kind of user, as in the documentation."""
    names = ["ips", "cascade", "item-position", *MODELS]
    rows = [["users", "value", *names], ["---"] * (2 + len(names))]
    for name in MODELS:
        truth = value(users(name), TARGETS["fixed"])
        cells = []
        for estimator in names:
            # Where another model is assumed, its parameters are those that fit these users best.
            model = None
            if estimator in MODELS:
                model = users(name) if estimator == name else fitted(name, estimator)
            mean, deviation, _ = moments(name, estimator, TARGETS["fixed"], model)
            bias = round(mean - truth, 3) + 0.0
            cells.append(f"{bias:+.3f} ± {deviation:.2f}")
        rows.append([name, f"{truth:.3f}", *cells])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def fitted(name, estimator):
    """Another model's parameters for users of a model, from the exact law as if from a huge log."""
    log, probabilities = logged(name)
    sample = np.repeat(np.arange(len(log)), np.round(probabilities * 200_000).astype(int))
    return MODEL_BASED[estimator]().fit(log[sample])


def test_the_documented_table_is_what_the_code_gives():
    page = Path(__file__).parents[2] / "docs" / "off_policy.md"
    if not page.exists():
        pytest.skip("the documentation is not part of an installed package")
    made = table()
    documented = re.search(
        r"^\| users .*?^$", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )[0]
    # EM stops where rounding lets it, so the last digits are free.
    numbers = [np.array(re.findall(r"[+-]?\d+\.\d+", text), float) for text in (documented, made)]
    assert numbers[0] == pytest.approx(numbers[1], abs=0.011), (
        f"docs/off_policy.md should hold\n{made}"
    )


def test_the_program_of_the_page_prints_what_the_page_shows(program, tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "off_policy.md").read_text(encoding="utf-8")
    code, shown = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", page, re.DOTALL).groups()
    (tmp_path / "page.py").write_text(code, encoding="utf-8")
    assert program(tmp_path / "page.py", folder=tmp_path) == shown


# ------------------------------------------------------------------------------------------------
# --------------- samples


def simulate(model, policy, n, seed):
    rng = np.random.default_rng(seed)
    lists, probabilities = policy.support()
    items = lists[rng.choice(len(lists), n, p=probabilities)]
    clicks = np.array([model.sample(ranking, rng) for ranking in items])
    return items, clicks


@pytest.mark.parametrize("estimator", ["ips", "cascade", "ubm"])
def test_a_sampled_log_gives_the_value_within_its_interval(estimator):
    model, target = users("ubm"), TARGETS["plackett-luce"]
    log = click_log(*simulate(model, logging_policy(), 20_000, seed=3))
    known = {"model": model} if estimator == "ubm" else {}
    result = evaluate(log, target, estimator, logging=logging_policy(), level=0.999, **known)
    truth = value(model, target)
    assert result.interval[0] < truth < result.interval[1]
    assert abs(result.value - truth) < 4 * result.standard_error
    assert result.mean_weight == pytest.approx(1.0, abs=0.1)


def test_standard_error_is_the_larger_of_two():
    """The last item of the list is hardly reached, so that its parameters matter: the error is the
    spread of the estimates of many logs, and larger than with the parameters held fixed.
    """
    model = DynamicBayesianModel([0.1, 0.1, 0.1, 0.6], [0.5, 0.5, 0.5, 0.9], 0.9, n_positions=3)
    logs = [click_log(*simulate(model, UniformPolicy(4, 3), 2000, seed=k)) for k in range(100)]
    target, words = FixedPolicy([0, 1, 3]), {"logging": UniformPolicy(4, 3), "level": 0.9}
    fitted = [evaluate(log, target, "dbn", **words) for log in logs[:4]]
    passed = evaluate(logs[0], target, "dbn", model=DBNEstimator().fit(logs[0]), **words)
    assert fitted[0].standard_error > 1.05 * passed.standard_error
    values = [contributions(log, target, "dbn")[0].sum(axis=1).mean() for log in logs]
    assert values[0] == fitted[0].value
    mean = np.mean([result.standard_error for result in fitted])
    assert mean == pytest.approx(np.std(values), rel=0.25)
    half = ndtri(0.95) * fitted[0].standard_error
    low, high = fitted[0].interval
    assert (low, high) == pytest.approx((fitted[0].value - half, fitted[0].value + half), rel=0.02)


# ------------------------------------------------------------------------------------------------
# - weights, written anew


def small_log(seed=0, n=200):
    items, clicks = simulate(users("ubm"), logging_policy(), n, seed)
    return click_log(items, clicks)


def test_weights_from_recorded_propensities():
    log = small_log()
    probability = logging_policy().prefix_probabilities(log.items)[:, -1]
    propensity = logging_policy().item_position_probabilities(log.items, np.arange(K))
    recorded = click_log(
        log.items, log.clicks, list_propensities=probability, propensities=propensity
    )
    for estimator in ("ips", "item-position"):
        for one, other in zip(
            contributions(recorded, TARGETS["uniform"], estimator),
            contributions(log, TARGETS["uniform"], estimator, logging=logging_policy()),
            strict=True,
        ):
            np.testing.assert_allclose(one, other, rtol=1e-12)


def he_2020(log, weights, ranking, rng, repeats):
    """The paper's procedure for one list: equation 11 and the drawn clicks that follow it, averaged
    over the draws.
    """
    clicks_of, weight_of = np.zeros(L), np.zeros(L)
    for shown, clicks in zip(log.items, log.clicks, strict=True):
        last = 0
        for k in range(K):
            weight_of[shown[k]] += weights[k][last]
            clicks_of[shown[k]] += clicks[k]
            last = k + 1 if clicks[k] else last
    total = 0.0
    for _ in range(repeats):
        last = 0
        for k, item in enumerate(ranking):
            reward = weights[k][last] * clicks_of[item] / weight_of[item]
            total += reward
            if reward >= 1 or rng.random() < reward:
                last = k + 1
    return total / repeats


def test_ubm_is_the_procedure_of_he_2020():
    model, log = users("ubm"), small_log(n=2000)
    result = evaluate(log, TARGETS["fixed"], "ubm", model=model)
    drawn = he_2020(log, model.examination, [3, 0, 4], np.random.default_rng(0), 100_000)
    assert result.value == pytest.approx(drawn, abs=0.004)
    blind = UserBrowsingModel(np.full(L, 0.5), model.examination)
    assert evaluate(log, TARGETS["fixed"], "ubm", model=blind) == evaluate(
        log, TARGETS["fixed"], "ubm", model=model
    )


def test_an_attraction_above_one_counts_as_one():
    log = click_log([[0, 1]] * 2, [[1, 0], [1, 1]])
    model = UserBrowsingModel([0.5, 0.5], [[0.5, 0.0], [1.0, 0.25]])
    # Item 0 is always clicked at weight 1/2: its reward stays 1, while a click on it is drawn
    # with probability 1/2. Item 1
    # has one click at weights 1/4 + 1/4, so its attraction is 2 and its examination (1 + 1/4)
    # / 2 in the estimate.
    assert evaluate(log, FixedPolicy([0, 1]), "ubm", model=model).value == pytest.approx(
        1.0 + 2.0 * 0.625
    )


def test_the_factor_that_a_fit_chose_does_not_count():
    """Attractions of twice the size and examinations of half make the same clicks."""
    log = small_log()
    fitted = UBMEstimator().fit(log)
    half = copy(fitted)
    half.examination_ = fitted.examination_ / 2
    one, other = (evaluate(log, TARGETS["fixed"], "ubm", model=it) for it in (fitted, half))
    assert one.value == pytest.approx(other.value, rel=1e-12)


# ------------------------------------------------------------------------------------------------
# -------------- policies


@pytest.mark.parametrize("policy", TARGETS.values(), ids=TARGETS)
def test_policies_are_distributions(policy):
    lists, probabilities = policy.support()
    assert probabilities.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(policy.prefix_probabilities(LISTS)[:, -1].sum(), 1.0)
    np.testing.assert_allclose(policy.prefix_probabilities(lists)[:, -1], probabilities, rtol=1e-12)
    np.testing.assert_allclose(policy.item_positions.sum(axis=0), 1.0)
    for k in range(K):  # the probability of a beginning is that of all the lists that begin so
        for ranking, prefix in zip(LISTS, policy.prefix_probabilities(LISTS), strict=True):
            alike = (lists[:, : k + 1] == ranking[: k + 1]).all(axis=1)
            assert prefix[k] == pytest.approx(probabilities[alike].sum(), abs=1e-12)


# ------------------------------------------------------------------------------------------------
# -------------- refusals

LOG = click_log([[0, 1], [1, 0], [2, 1]], [[1, 0], [0, 0], [0, 1]])
UNIFORM = UniformPolicy(3, 2)
ATTRACTED = [0.5] * 3

REFUSED = {
    "several queries": (
        r"the log has 2 queries, such as q, r; choose one with --query",
        UNIFORM,
        "ips",
        {"log": replace(LOG, queries=[0, 1, 0], query_labels=("q", "r"))},
    ),
    "no list propensities": ("no list_propensities", UNIFORM, "ips", {}),
    "no prefix propensities": ("give the logging policy", UNIFORM, "cascade", {}),
    "a list never shown": (
        "list a, c: the target policy shows it, the logging policy never",
        FixedPolicy([0, 2]),
        "ips",
        {"logging": ListPolicy([[0, 1], [1, 0], [2, 1]], [0.4, 0.3, 0.3])},
    ),
    "an item never shown": (
        "item 'c': the target policy shows it, the logging policy never",
        UNIFORM,
        "ips",
        {"logging": UniformPolicy(2, 2)},
    ),
    "another click model": (
        "model is a PositionBasedModel; the estimator 'ubm' takes a UserBrowsingModel",
        UNIFORM,
        "ubm",
        {"model": PositionBasedModel(ATTRACTED, [1.0, 1.0])},
    ),
    "a reward no sum over items": (
        "the estimator 'pbm' cannot tell 'any_click'; ips, cascade can",
        UNIFORM,
        "pbm",
        {"reward": "any_click"},
    ),
}


@pytest.mark.parametrize(("message", "target", "estimator", "more"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_sense_is_refused(message, target, estimator, more):
    with pytest.raises(ValueError, match=message):
        evaluate(**{"log": LOG, "target": target, "estimator": estimator} | more)


POLICIES_REFUSED = {
    "too many lists": (lambda: UniformPolicy(100, 5).support(), "more than the limit"),
    "a policy that does not sum to 1": (
        lambda: ListPolicy([[0], [1]], [0.5, 0.4]),
        "probabilities must be non-negative with sum 1",
    ),
    "an item twice": (lambda: FixedPolicy([1, 1]), "an item twice"),
}


@pytest.mark.parametrize(("attempt", "message"), POLICIES_REFUSED.values(), ids=POLICIES_REFUSED)
def test_policies_that_make_no_sense_are_refused(attempt, message):
    with pytest.raises(ValueError, match=message):
        attempt()


# ------------------------------------------------------------------------------------------------
# -------------- command


SPECS_REFUSED = {
    "fixed:a,b,a": "the policy fixed:a,b,a shows the item 'a' twice",
    "fixed:a": "fills 1 of 2 positions; name 2 items, and count the first 1 only by --cutoff 1",
    "fixed:a,b,c": "has 3 items; the log has 2 positions",
}


@pytest.mark.parametrize(("spec", "message"), SPECS_REFUSED.items())
def test_fixed_lists_that_do_not_fit_are_refused(spec, message):
    with pytest.raises(ValueError, match=message):
        read_policy(spec, LOG)


def test_a_missing_list_is_named_with_its_length():
    """A policy chooses a list of the length of the session."""
    log = click_log([[0, 1, 2], [1, 0, -1], [0, 2, 1]], np.zeros((3, 3)))
    with pytest.raises(ValueError, match="list c, a in sessions of 2 items: the target policy"):
        evaluate(log, FixedPolicy([2, 0, 1]), "ips", logging=empirical_policy(log))


@pytest.fixture
def tidy(tmp_path):
    """A log of two queries with propensities, as a file."""
    log = small_log(n=400)
    two = replace(
        log,
        queries=np.arange(400) % 2,
        query_labels=("hats", "shoes"),
        propensities=logging_policy().item_position_probabilities(log.items, np.arange(K)),
        list_propensities=logging_policy().prefix_probabilities(log.items)[:, -1],
    )
    write_tidy(two, tmp_path / "log.csv")
    return tmp_path / "log.csv", two


def test_table_of_estimates(tidy, printed):
    """A row for each policy and estimator, with effective sessions and the difference."""
    path, log = tidy
    policies, estimators = ["fixed:a,b,c", "fixed:e,d,c"], ["item-position", "pbm", "cascade"]
    words = ["--query", "shoes", "--policy", *policies, "--estimator", *estimators]
    out, shoes = printed(["evaluate", str(path), *words]), log[log.queries == 1]
    assert "fixed:e,d,c shows: e, d, c\n" in out
    assert "In the log (200 sessions): " in out
    assert "Refused: cascade: the estimator 'cascade' needs" in out
    for spec, ranking in (("fixed:a,b,c", [0, 1, 2]), ("fixed:e,d,c", [4, 3, 2])):
        for estimator in ("item-position", "pbm"):
            rows = out.split(f"\n{spec}\n")[1].splitlines()
            line = next(line for line in rows if line.startswith(estimator))
            wanted = evaluate(shoes, FixedPolicy(ranking), estimator)
            value, low, _, high, effective, clicks, difference, *_ = line.split()[1:]
            assert float(value) == pytest.approx(wanted.value, rel=1e-6)
            assert (float(low), float(high)) == pytest.approx(wanted.interval, rel=1e-3)
            assert int(effective) == round(wanted.effective_sample_size)
            assert int(clicks) == round(wanted.effective_clicks)
            assert float(difference) == pytest.approx(wanted.difference, rel=1e-3)


@pytest.mark.filterwarnings("error")
def test_a_query_of_a_single_session_has_no_interval(tidy, printed, tmp_path):
    _, log = tidy
    one = replace(log, queries=np.append(np.zeros(399), 1))
    write_tidy(one, tmp_path / "one.csv")
    shown = ",".join(one.item_labels[item] for item in one.items[-1])
    words = ["--query", "shoes", "--policy", f"fixed:{shown}", "--estimator", "ips", "pbm"]
    out = printed(["evaluate", str(tmp_path / "one.csv"), *words])
    assert "nan" not in out
    for estimator in ("ips", "pbm"):
        line = next(line for line in out.splitlines() if line.startswith(estimator))
        assert line.split()[2] == line.split()[-1] == "–"


def test_an_interval_by_a_fitted_model_ends_at_the_most_that_a_list_can_earn():
    rng = np.random.default_rng(0)
    lists = np.array([rng.permutation(4)[:3] for _ in range(60)])
    log = ClickLog(lists, rng.random((60, 3)) < 0.97, np.zeros(60), tuple("abcd"), ("q",))
    for estimator in ("pbm", "ubm", "dbn"):
        assert evaluate(log, FixedPolicy([0, 1, 2]), estimator).interval[1] == 3
