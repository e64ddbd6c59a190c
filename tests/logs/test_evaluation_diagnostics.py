"""What an estimate says of itself: error, effective sample size and weights, by hand."""

import math
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

import clickgym
from clickgym.logs import ClickLog, FixedPolicy, UniformPolicy, evaluate, record
from clickgym.logs.off_policy.drift import lists_follow_time

# of the list (a, b), which of its items is where in each session
WEIGHTS = [[2, 2], [4, 0], [0, 0], [1, 4]]


def log():
    items = [[0, 1], [0, 2], [1, 0], [0, 1]]
    propensities = [[1 / weight if weight else 0.5 for weight in row] for row in WEIGHTS]
    return ClickLog(
        items,
        [[1, 0], [0, 1], [1, 1], [1, 1]],
        [0] * 4,
        ("a", "b", "c"),
        ("q",),
        propensities=propensities,
        list_propensities=[0.5, 0.5, 0.5, 0.2],
    )


def test_diagnostics_are_those_of_the_worst_position():
    """Σw and Σw² are 7 and 21 at the first position, 6 and 20 at the second; sessions earn 2, 0, 0
    and 1 + 4.
    """
    result = evaluate(log(), FixedPolicy([0, 1]), "item-position")
    assert result.value == pytest.approx(7 / 4)
    assert result.standard_error == pytest.approx(math.sqrt((4 + 25) / 4 - (7 / 4) ** 2) / 2)
    assert result.effective_sample_size == pytest.approx(36 / 20)
    assert result.mean_weight == pytest.approx(7 / 4)
    assert result.on_policy == 6 / 4
    assert result.n_sessions == 4


def test_diagnostics_of_weights_of_lists():
    """Of the list (a, b) itself, shown in the first and the last session, with weights 2 and 5."""
    result = evaluate(log(), FixedPolicy([0, 1]), "ips")
    assert result.value == pytest.approx((2 * 1 + 5 * 2) / 4)
    assert result.effective_sample_size == pytest.approx(49 / 29)
    assert result.mean_weight == pytest.approx(7 / 4)


# ------------------------------------------------------------------------------------------------
# ---------- the decision


def test_the_difference_is_that_of_the_same_sessions():
    """Sessions earn 2, 0, 0 and 10 by `ips` where they were logged to earn 1, 1, 2 and 2."""
    result = evaluate(log(), FixedPolicy([0, 1]), "ips", level=0.8)
    gains = np.array([1, -1, -2, 8])
    assert (
        result.difference
        == pytest.approx(gains.mean())
        == pytest.approx(result.value - result.on_policy)
    )
    low, high = result.difference_interval
    assert low < -1 < gains.mean() < 4 < high


def test_what_varies_together_cancels_in_the_difference():
    """A policy that is all but the logging one: its value is as uncertain as the log's, its
    difference is not.
    """
    rng = np.random.default_rng(0)
    items = rng.permuted(np.tile([0, 1], (500, 1)), axis=1)
    many = ClickLog(items, rng.random((500, 2)) < 0.5, [0] * 500, ("a", "b"), ("q",))
    result = evaluate(many, UniformPolicy(2, 2), "ips", logging=UniformPolicy(2, 2))
    low, high = result.difference_interval
    assert low < 0.0 == result.difference < high
    assert high - low < 0.15 * (result.interval[1] - result.interval[0])
    assert result.interval == result.on_policy_interval


def test_what_tells_little_is_said_in_words():
    found = evaluate(log(), FixedPolicy([0, 1]), "ips").cautions
    words = ("3 by ips is impossible", "ips is 2", "1 effective click")
    for number, caution in zip(words, found, strict=True):
        assert number in caution
    items = np.tile([[0, 1], [1, 0]], (100, 1))
    many = ClickLog(items, items == 0, [0] * 200, ("a", "b"), ("q",))
    assert evaluate(many, FixedPolicy([0, 1]), "ips", logging=UniformPolicy(2, 2)).cautions == ()
    assert (
        len(evaluate(many[:198], FixedPolicy([0, 1]), "ips", logging=UniformPolicy(2, 2)).cautions)
        == 1
    )


def test_wrong_probabilities_are_noticed_by_their_standard_error():
    """One in ten sessions shows the list (a, b), and the others are random: by the probabilities of
    random lists the mean weight is 1.1; by chance alone it is off, too, but not by four errors.
    """
    rng = np.random.default_rng(0)
    items = rng.permuted(np.tile([0, 1], (20_000, 1)), axis=1)
    target, uniform = FixedPolicy([0, 1]), UniformPolicy(2, 2)
    for share, is_off in ((0.0, False), (0.1, True)):
        items[: int(share * 20_000)] = 0, 1
        mixed = rng.permutation(items)
        clicks = rng.random(mixed.shape) < np.array([0.5, 0.3])[mixed]
        log = ClickLog(mixed, clicks, np.zeros(20_000), ("a", "b"), ("q",))
        result = evaluate(log, target, "item-position", logging=uniform)
        assert result.weights_off == is_off
        assert any("more frequent than the probabilities say" in it for it in result.cautions) == (
            is_off
        )
        if is_off:
            assert result.mean_weight == pytest.approx(1.1, abs=0.02)
        assert evaluate(log, target, "pbm", logging=uniform) == evaluate(log, target, "pbm")


def test_few_sessions_do_not_tell_that_probabilities_are_wrong():
    log = ClickLog([[0, 1]] * 8, [[1, 0]] * 8, np.zeros(8), ("a", "b"), ("q",))
    for few in (log, log[:1], replace(log, users=np.zeros(8))):
        result = evaluate(few, FixedPolicy([0, 1]), "ips", logging=UniformPolicy(2, 2))
        assert result.mean_weight == 2.0
        assert not result.weights_off


def test_an_estimate_beyond_all_positions_is_called_impossible():
    """The probabilities of lists stand in the place of those of items."""
    env = gym.make("PBMRank-v0")
    log = record(clickgym.make_agent("Random", env, seed=0), env, 2000, seed=0)
    ranking = log.items[0].tolist()
    assert evaluate(log, FixedPolicy(ranking), "item-position").cautions == ()
    confused = replace(log, propensities=np.repeat(log.list_propensities[:, None], 5, axis=1))
    result = evaluate(confused, FixedPolicy(ranking), "item-position")
    assert result.value > 5
    assert "a list earns at most 5: perhaps the probability of a list" in result.cautions[0]


def test_sessions_that_a_click_model_excludes_are_counted():
    """Users of a cascade click once at most; here one in four clicks both items."""
    items = np.tile([[0, 1], [1, 0]], (100, 1))
    clicks = np.resize([[1, 0], [1, 0], [1, 1], [0, 1]], (200, 2))
    log = ClickLog(items, clicks, np.zeros(200), ("a", "b"), ("q",))
    assert evaluate(log, FixedPolicy([0, 1]), "pbm").excluded == 0
    result = evaluate(log, FixedPolicy([0, 1]), "cm")
    assert result.excluded == 50
    assert "50 of 200 sessions are impossible by cm" in result.cautions[0]


# ------------------------------------------------------------------------------------------------
# ---------- lists and time


def test_lists_that_follow_time():
    """Two lists one after the other: only a click model gives a difference, and all say so;
    shuffled there is one.
    """
    lists = np.repeat([[0, 1], [1, 0]], 1000, axis=0)
    clicks = np.zeros((2000, 2))
    clicks[1000:1500] = 1  # everybody clicks more in the second half
    log = ClickLog(lists, clicks, np.zeros(2000), ("a", "b"), ("q",))
    target, logging = FixedPolicy([1, 0]), UniformPolicy(2, 2)
    for estimator in ("ips", "cascade", "item-position", "pbm"):
        result = evaluate(log, target, estimator, logging=logging)
        assert (result.difference is None) == (estimator != "pbm")
        assert (result.difference_interval is None) == (estimator != "pbm")
        assert "the lists of this log changed with time" in result.cautions[0]
    mixed = log[np.random.default_rng(0).permutation(2000)]
    assert evaluate(mixed, target, "ips", logging=logging).difference is not None


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("users", [None, [0, 0]])
def test_one_session_or_user_follows_no_time(users):
    """Nothing is divided by n - 1 = 0."""
    few = ClickLog([[0, 1], [1, 0]], [[1, 0], [0, 0]], [0, 0], ("a", "b"), ("q",), users=users)
    assert not lists_follow_time(few if users else few[:1])


def test_users_who_come_in_turns_do_not_make_lists_follow_time():
    """In each block of time a few users come often, each with one list."""
    rng = np.random.default_rng(6)
    users = np.arange(6000) // 30
    items = np.array([[0, 1], [1, 0]])[rng.integers(2, size=200)[users]]
    log = ClickLog(items, items * 0, users * 0, ("a", "b"), ("q",))
    assert lists_follow_time(log)
    assert not lists_follow_time(replace(log, users=users))


def test_lists_that_follow_day_and_night():
    """Forty half-days: by day lists are random, by night hardly."""
    rng = np.random.default_rng(0)
    is_day = np.arange(8000) // 200 % 2 == 0
    swapped = rng.random(8000) < np.where(is_day, 0.5, 0.03)
    items = np.where(swapped[:, None], [1, 0], [0, 1])
    log = ClickLog(items, items * 0, np.zeros(8000), ("a", "b"), ("q",))
    assert lists_follow_time(log)
    users = rng.permutation(8000) // 2
    assert lists_follow_time(replace(log, users=users))
    assert not lists_follow_time(log[rng.permutation(8000)])
    turns = np.arange(2000) // 5 % 2  # days of ten sessions
    log = ClickLog(
        np.array([[0, 1], [1, 0]])[turns], np.zeros((2000, 2)), turns * 0, ("a", "b"), ("q",)
    )
    assert lists_follow_time(log)


def test_random_lists_hardly_ever_follow_time():
    """One log in a thousand does by chance."""
    rng, alarms = np.random.default_rng(3), 0
    for n_items in (2, 3, 6) * 40:
        items = rng.permuted(np.tile(np.arange(n_items), (1000, 1)), axis=1)
        names = tuple("abcdef"[:n_items])
        alarms += lists_follow_time(ClickLog(items, items * 0, np.zeros(1000), names, ("q",)))
    assert alarms <= 2
