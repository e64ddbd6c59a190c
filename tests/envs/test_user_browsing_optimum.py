"""The best list of the user browsing model for any click: what follows a click cannot matter to
it.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from clickgym.envs import UserBrowsingModel


def test_any_click_is_matched_to_the_examination_before_any_click():
    """⚠ After a click on top the second position is examined surely, and before any least: its
    bound is above the first's.
    """
    model = UserBrowsingModel([0.9, 0.1], [[0.5, 0.0], [0.3, 1.0]])
    assert model.optimal_ranking("any_click").tolist() == [0, 1]
    assert model.optimal_ranking("clicks").tolist() == [0, 1]
    assert model.expected_reward([0, 1], "any_click") == pytest.approx(1 - 0.55 * 0.97)
    assert model.expected_reward([1, 0], "any_click") == pytest.approx(1 - 0.95 * 0.73)


def test_any_click_is_best_of_all_lists_where_later_examination_rises_after_clicks():
    """Before any click examination falls with the position, after one it rises: the two orders are
    contrary.
    """
    rng = np.random.default_rng(0)
    for _ in range(200):
        first, after = np.sort(rng.random(4))[::-1], np.sort(rng.random(4))
        examination = np.tril(np.tile(after[:, None], 4))
        examination[:, 0] = first
        model = UserBrowsingModel(rng.random(5), examination)
        for cutoff in (2, 3, 4):
            lists = itertools.permutations(range(5), 4)
            highest = max(model.expected_reward(ranking, "any_click", cutoff) for ranking in lists)
            best = model.optimal_ranking("any_click", cutoff)
            assert model.expected_reward(best, "any_click", cutoff) == pytest.approx(
                highest, rel=0, abs=1e-12
            )
