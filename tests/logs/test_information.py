"""What a log tells and leaves open: by a click model, of lists that it did not show."""

import numpy as np
import pytest

from clickgym.envs import (
    CascadeModel,
    DynamicBayesianModel,
    PositionBasedModel,
    UserBrowsingModel,
)
from clickgym.logs import ClickLog, FixedPolicy, PBMEstimator, evaluate
from clickgym.logs.estimation.information import Information

ATTRACTION = [0.5, 0.35, 0.2, 0.4, 0.3]
K = 4
USERS = {
    "pbm": PositionBasedModel(ATTRACTION, [0.9, 0.7, 0.5, 0.4]),
    "ubm": UserBrowsingModel(ATTRACTION, np.tril(np.linspace(0.9, 0.3, 16).reshape(4, 4))),
    "dbn": DynamicBayesianModel(ATTRACTION, [0.3, 0.5, 0.4, 0.2, 0.6], 0.85, n_positions=K),
    "cm": CascadeModel(ATTRACTION, K),
}


def log_of(users, lists, n=3000, seed=0):
    """A log of lists that are shown in turn to users, or to those of a name."""
    rng, items = np.random.default_rng(seed), np.resize(lists, (n, K))
    users = USERS.get(users, users)
    clicks = np.array([users.sample(ranking, rng) for ranking in items])
    return ClickLog(items, clicks, np.zeros(n), tuple("abcde"), ("q",))


ONE = [[0, 1, 2, 3]]
EXCHANGES = [[0, 1, 2, 3], [1, 0, 2, 3], [0, 1, 3, 2], [1, 0, 3, 2]]
SWAPS = [[0, 1, 2, 3], [1, 0, 2, 3], [0, 2, 1, 3], [0, 1, 3, 2], [0, 1, 2, 4]]
ROTATED = [[0, 1, 2, 3], [1, 2, 3, 0], [2, 3, 0, 1], [3, 0, 1, 2]]


@pytest.mark.parametrize(
    ("name", "lists", "ranking", "is_told"),
    [
        # one list: nothing but itself, unless the model takes for granted how users read
        *((name, ONE, [0, 1, 2, 3], True) for name in USERS),
        *((name, ONE, [3, 2, 1, 0], name == "cm") for name in USERS),
        # a and b change places, and c and d: a never meets the lower half
        ("pbm", EXCHANGES, [1, 0, 3, 2], True),
        ("pbm", EXCHANGES, [3, 2, 1, 0], False),
        ("ubm", EXCHANGES, [3, 2, 1, 0], False),
        ("dbn", EXCHANGES, [2, 0, 1, 3], True),
        # swaps of neighbours connect all
        ("pbm", SWAPS, [3, 2, 1, 0], True),
        ("ubm", SWAPS, [3, 2, 1, 0], True),
        ("dbn", SWAPS, [3, 2, 1, 0], True),
        # e is only last, so that no one knows who is satisfied with it
        ("dbn", SWAPS, [4, 2, 1, 0], False),
        ("dbn", SWAPS, [0, 2, 1, 4], True),
        *((name, ROTATED, [3, 1, 0, 2], True) for name in USERS),
    ],
)
def test_a_policy_that_the_log_does_not_tell_is_refused(name, lists, ranking, is_told):
    log, target = log_of(name, lists), FixedPolicy(ranking)
    if is_told:
        result, truth = evaluate(log, target, name, level=0.999), USERS[name]
        assert result.interval[0] < truth.expected_reward(ranking) < result.interval[1]
    else:
        with pytest.raises(ValueError, match=r"this log does not tell what .* in random order$"):
            evaluate(log, target, name)


@pytest.mark.parametrize("name", ["pbm", "ubm"])
def test_what_one_item_gains_does_not_hide_what_another_loses(name):
    """Whatever moves the estimate of one item up moves that of another down by as much."""
    alike = np.arange(1000)[:, None] < [300, 300]
    one_list = ClickLog([[0, 1]] * 1000, alike, np.zeros(1000), ("a", "b"), ("q",))
    halves = PositionBasedModel([0.27, 0.2, 0.8, 0.6], [0.9, 0.75, 0.3, 0.25])
    for log, ranking in ((one_list, [1, 0]), (log_of(halves, EXCHANGES), [3, 2, 1, 0])):
        with pytest.raises(ValueError, match="this log does not tell"):
            evaluate(log, FixedPolicy(ranking), name)


def test_halves_that_one_session_joins_have_wide_intervals():
    users = PositionBasedModel([0.27, 0.2, 0.8, 0.6], [0.9, 0.75, 0.3, 0.25])
    target, truth, lists = [3, 2, 1, 0], users.expected_reward([3, 2, 1, 0]), EXCHANGES * 250
    lists[0] = [0, 2, 1, 3]
    logs = [log_of(users, lists, 1000, seed) for seed in range(20)]
    found = [evaluate(log, FixedPolicy(target), "pbm").interval for log in logs]
    assert sum(low < truth < high for low, high in found) >= 19
    assert np.median([high - low for low, high in found]) > 1


def test_items_without_clicks_connect_nothing():
    """Both halves show e, a thousand times each, and nobody clicks it."""
    users = PositionBasedModel([0.5, 0.35, 0.2, 0.4, 0.0], [0.9, 0.7, 0.5, 0.4])
    lists = [[0, 4, 2, 3], [4, 0, 2, 3], [1, 0, 4, 3], [1, 0, 3, 4]]
    with pytest.raises(ValueError, match="this log does not tell"):
        evaluate(log_of(users, lists), FixedPolicy([3, 2, 1, 0]), "pbm")


def test_what_is_guessed_is_said():
    """Nobody knows whether users go on after the last item, which hardly matters at position 3."""
    log = log_of("dbn", SWAPS)
    result = evaluate(log, FixedPolicy([0, 1, 4, 2]), "dbn")
    (caution,) = result.cautions
    assert "the log tells nothing of the satisfaction of 'e'" in caution
    assert evaluate(log, FixedPolicy([0, 1, 2, 4]), "dbn").cautions == ()


def test_a_model_that_tells_only_by_its_assumptions_gets_a_caution():
    for lists, n_cautions in ((ONE, 1), (ROTATED, 0)):
        result = evaluate(log_of("cm", lists), FixedPolicy([3, 2, 1, 0]), "cm")
        assert sum("what it assumes of how users read" in it for it in result.cautions) == (
            n_cautions
        )


@pytest.mark.parametrize("name", ["pbm", "dbn"])
def test_intervals_are_as_wide_as_estimates_vary(name):
    """One session in a hundred exchanges the halves, so that little connects them."""
    lists = EXCHANGES * 25
    lists = [*lists[1:], [2, 3, 0, 1]]
    target, truth = FixedPolicy([3, 2, 1, 0]), USERS[name].expected_reward([3, 2, 1, 0])
    results = [evaluate(log_of(name, lists, 4000, seed), target, name) for seed in range(40)]
    spread = np.std([result.value for result in results])
    assert 0.85 < np.mean([result.standard_error for result in results]) / spread < 1.4
    held = [result.interval[0] < truth < result.interval[1] for result in results]
    assert sum(held) >= 35


def test_an_item_without_clicks_is_told():
    """Of few clicks none is on e, which was shown a thousand times: it hardly attracts."""
    rng = np.random.default_rng(0)
    items = rng.permuted(np.tile(np.arange(5), (2000, 1)), axis=1)[:, :K]
    clicks = (rng.random((2000, K)) < 0.004) & (items != 4)
    log = ClickLog(items, clicks, np.zeros(2000), tuple("abcde"), ("q",))
    result = evaluate(log, FixedPolicy([4, 3, 2, 1]), "pbm")
    assert result.interval[0] < 0.012 < result.interval[1] < 0.03


def test_other_queries_tell_of_positions():
    """Items of the first query never move. Those of the second do, and tell of the positions."""
    still, moving = log_of("pbm", ONE), log_of("pbm", ROTATED, seed=1)
    both = ClickLog(
        np.concatenate([still.items, moving.items]),
        np.concatenate([still.clicks, moving.clicks]),
        np.repeat([0, 1], 3000),
        still.item_labels,
        ("still", "moving"),
    )
    for log, query, is_unidentified in ((still, "q", True), (both, "still", False)):

        def clicks(model, query=query):
            users = model.click_model(query, list("abcd"))
            return users.click_probabilities([3, 2, 1, 0])[None]

        model = PBMEstimator().fit(log)
        uncertainty = Information(model, log).uncertainty(query, clicks)
        assert uncertainty.is_unidentified(1 / 3000).tolist() == [is_unidentified]
