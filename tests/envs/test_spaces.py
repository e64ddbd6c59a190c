"""Tests of the action space: what it contains, the law of its samples, its batched form, and every
error message.
"""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from gymnasium.spaces import MultiDiscrete
from hypothesis import given
from hypothesis import strategies as st

from clickgym.envs.spaces import RankedList, check_ranking, without_repeats
from tests.helpers.click_stories import assert_uniform

# checks ------------------------------------------------------------

BAD_RANKINGS = {
    "bad ranking [3, 7, 1, 7]: position 3 shows item 7 again": [3, 7, 1, 7],
    "bad ranking [3, 10, 1, 7]: items are 0 to 9": [3, 10, 1, 7],
    "bad ranking [3, 1, 7, -1]: items are 0 to 9": [3, 1, 7, -1],
    "a ranking has shape (4,), one item for each position": [3, 7, 1],
}
NO_INTEGERS = {
    "a ranking holds integers": [3.0, 7.0, 1.0, 0.0],
    "got bool": [True, False, True, False],
    "got object": [3, 7, 1, 2**70],
}


@pytest.mark.parametrize("message", BAD_RANKINGS | NO_INTEGERS)
@pytest.mark.parametrize("convert", [list, np.asarray], ids=["as given", "array"])
def test_bad_rankings(message, convert):
    """The error names the position and the reason."""
    action = convert((BAD_RANKINGS | NO_INTEGERS)[message])
    error = ValueError if message in BAD_RANKINGS else TypeError
    with pytest.raises(error, match=re.escape(message)):
        check_ranking(action, n_items=10, n_positions=4)
    assert RankedList(10, 4).contains(action) == ("again" in message)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6))
def test_a_repeated_item_is_shown_once(action):
    """A repeated item is shown at its first position. Items that are not in the list fill the free
    positions in order.
    """
    others = iter(sorted(set(range(7)) - set(action)))
    expected = [
        next(others) if item in action[:position] else item for position, item in enumerate(action)
    ]
    lists = np.array([action, np.arange(len(action))])
    shown = without_repeats(lists, 7)
    assert shown.tolist() == [expected, list(range(len(action)))]
    assert lists[0].tolist() == action
    assert without_repeats(lists[0], 7).tolist() == expected


# samples ------------------------------------------------------------


@pytest.mark.parametrize(("n_items", "n_positions"), [(1, 1), (4, 1), (4, 2), (5, 3), (4, 4)])
def test_samples_are_uniform(n_items, n_positions):
    lists = list(itertools.permutations(range(n_items), n_positions))
    space = RankedList(n_items, n_positions, seed=1)
    assert_uniform([tuple(space.sample().tolist()) for _ in range(30 * len(lists))], lists)
    batched = RankedList(n_items, n_positions, n_lists=100 * len(lists), seed=2)
    assert_uniform(map(tuple, batched.sample().tolist()), lists)


def test_a_sample_of_many_items_shows_none_twice():
    assert len({*RankedList(1000, 500, seed=0).sample()}) == 500


# spaces ------------------------------------------------------------


def test_spaces_are_equal_by_their_sizes():
    """The space also equals Gymnasium's space that contains the same lists."""
    assert RankedList(6, 3, seed=1) == RankedList(6, 3, seed=2) == MultiDiscrete([6, 6, 6])
    sizes = [(6, 3, None), (7, 3, None), (6, 2, None), (6, 3, 2), (6, 3, 3)]
    spaces = [RankedList(L, K, n_lists=n) for L, K, n in sizes]
    assert len(set(map(repr, spaces))) == len(spaces)
    assert all(one != other for one, other in itertools.combinations(spaces, 2))
