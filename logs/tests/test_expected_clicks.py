"""Clicks over expected clicks: by hand, without position bias, and of items shown lately."""

import numpy as np
import pytest

from clickgym_logs import ClickLog, clicks_over_expected


def test_by_hand():
    """At position 1 half of the displays are clicked, at position 2 a quarter."""
    lists = [[0, 1]] * 60 + [[1, 2]] * 20
    clicks = [[1, 0]] * 20 + [[0, 0]] * 40 + [[1, 1]] * 20
    log = ClickLog(lists, clicks, [0] * 80, ("a", "b", "c"), ("q",))
    ratios = {"a": 20 / 30, "b": 20 / (20 * 0.5 + 60 * 0.25), "c": 20 / (20 * 0.25)}
    often = sorted("ab", key=ratios.get, reverse=True)
    # c is best, but in 20 sessions only
    assert clicks_over_expected(log, prior=0) == {"q": (*often, "c")}
    with pytest.raises(ValueError, match="prior is -1"):
        clicks_over_expected(log, prior=-1)


def test_items_by_attraction_wherever_they_stood():
    """The worst item mostly stands on top, and gets more clicks than the best one below."""
    rng = np.random.default_rng(0)
    attraction, examination = np.array([0.2, 0.3, 0.4, 0.5]), np.array([1.0, 0.6, 0.3, 0.2])
    lists = np.tile([0, 1, 2, 3], (40_000, 1))
    lists[::3] = rng.permuted(lists[::3], axis=1)
    clicks = rng.random(lists.shape) < attraction[lists] * examination
    log = ClickLog(lists, clicks, np.zeros(len(lists)), tuple("abcd"), ("q",))
    assert clicks[lists == 0].sum() > clicks[lists == 3].sum()
    assert clicks_over_expected(log) == {"q": ("d", "c", "b", "a")}


def test_only_items_shown_lately():
    """By time, and by query; a query without sessions has no list."""
    lists = [[0, 1]] * 500 + [[2, 1]] * 500 + [[0, 2]] * 50
    queries, times = [0] * 1000 + [1] * 50, [*range(1000, 0, -1), *range(50)]
    log = ClickLog(lists, [[1, 0]] * 1050, queries, tuple("abc"), ("q", "r", "s"), times=times)
    ranked = clicks_over_expected(log)
    assert {query: sorted(items) for query, items in ranked.items()} == {
        "q": ["a", "b"],
        "r": ["a", "c"],
    }
