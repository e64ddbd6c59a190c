"""Tests of the best list for users who scan from the top, compared with all lists, including ties
and edge cases, and of its speed.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from clickgym.envs.simulation.scan import best_scan


def value(ranking, gain, continuation, terminal):
    total, looking = 0.0, 1.0
    for item in ranking:
        total += looking * gain[item]
        looking *= continuation[item]
    return total + looking * terminal


def draw(rng, shape, lowest):
    """Draw numbers from ``lowest`` to 1: either all different, or few distinct values including the
    two ends.
    """
    if rng.random() < 0.5:
        return rng.uniform(lowest, 1, shape)
    return rng.choice([lowest, 0.0, 0.25, 0.5, 1.0], shape)


# Gains and terminal values may be negative, because users of other models may lose something.
@pytest.mark.parametrize("lowest", [0.0, -1.0])
def test_no_list_is_better(lowest):
    rng = np.random.default_rng(0)
    for _ in range(1500):
        n_items = int(rng.integers(1, 6))
        n_chosen = int(rng.integers(1, n_items + 1))
        gain, continuation = draw(rng, n_items, lowest), draw(rng, n_items, 0.0)
        terminal = float(draw(rng, 1, lowest)[0])
        best = best_scan(gain, continuation, n_chosen, terminal)
        assert len(set(best.tolist())) == n_chosen
        lists = itertools.permutations(range(n_items), n_chosen)
        highest = max(value(ranking, gain, continuation, terminal) for ranking in lists)
        assert value(best, gain, continuation, terminal) == pytest.approx(highest, rel=0, abs=1e-12)


def test_many_items_are_sorted_as_by_numpy():
    rng = np.random.default_rng(2)
    gain, continuation = rng.random((2, 2000)).round(2)
    gain[continuation == 1] = 0.5
    with np.errstate(divide="ignore"):
        ratio = gain / (1 - continuation)
    rounded = [-float(f"{value:.11e}") for value in ratio]
    found = best_scan(gain, continuation, 2000).tolist()
    assert found == np.argsort(rounded, kind="stable").tolist()
