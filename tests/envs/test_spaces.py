"""The action space: what it contains, the law of its samples, its batched form, and the words of
every refusal.
"""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import re
from collections import Counter

import numpy as np
import pytest
from gymnasium.spaces import MultiBinary, MultiDiscrete, Tuple
from gymnasium.spaces.utils import flatdim, flatten, flatten_space, unflatten
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from clickgym.envs.spaces import BatchedRankedList, RankedList, check_ranking

# Each test of a law fails by chance with this probability for a random seed; the seeds are fixed.
FALSE_ALARM = 1e-6


def assert_law(samples, law):
    """A chi-square test of ``samples`` against ``law`` (list -> probability), which covers all that
    may be drawn.
    """
    counts = Counter(tuple(sample.tolist()) for sample in samples)
    assert set(counts) <= {ranking for ranking, p in law.items() if p > 0}
    expected = {ranking: p * len(samples) for ranking, p in law.items() if p > 0}
    assert min(expected.values()) >= 5, "too few samples for a chi-square test"
    statistic = sum((counts[ranking] - e) ** 2 / e for ranking, e in expected.items())
    assert statistic <= chi2.isf(FALSE_ALARM, df=max(len(expected) - 1, 1))


def product_law(weights):
    """The law proportional to the product of weights (K, L) over lists of distinct items, by
    enumeration.
    """
    n_positions, n_items = np.shape(weights)
    products = {
        ranking: math.prod(weights[k][item] for k, item in enumerate(ranking))
        for ranking in itertools.permutations(range(n_items), n_positions)
    }
    return {ranking: product / sum(products.values()) for ranking, product in products.items()}


# checks ------------------------------------------------------------

BAD_RANKINGS = {
    "duplicate": (
        [3, 7, 1, 7],
        ValueError,
        "bad ranking [3, 7, 1, 7]: position 3 shows item 7 again, already at position 1",
    ),
    "too large": ([3, 10, 1, 7], ValueError, "position 1 shows item 10, but items are 0 to 9"),
    "negative": ([3, 1, 7, -1], ValueError, "position 3 shows item -1"),
    "too short": ([3, 7, 1], ValueError, "a ranking has shape (4,), one item for each position"),
    "floats": ([3.0, 7.0, 1.0, 0.0], TypeError, "a ranking holds integers"),
    "booleans": ([True, False, True, False], TypeError, "got bool"),
    "beyond 64 bits": ([3, 7, 1, 2**70], TypeError, "got object"),
}


@pytest.mark.parametrize(("ranking", "error", "message"), BAD_RANKINGS.values(), ids=BAD_RANKINGS)
@pytest.mark.parametrize("convert", [list, np.asarray], ids=["as given", "array"])
def test_a_bad_ranking_is_refused_with_position_and_reason(ranking, error, message, convert):
    action = ranking if convert is list else np.asarray(ranking)
    with pytest.raises(error, match=re.escape(message)):
        check_ranking(action, n_items=10, n_positions=4)
    assert not RankedList(10, 4).contains(action)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint64, list, tuple])
def test_any_integers_make_a_ranking(dtype):
    given = dtype([4, 0, 2]) if dtype in (list, tuple) else np.array([4, 0, 2], dtype=dtype)
    ranking = check_ranking(given, n_items=5, n_positions=3)
    assert ranking.dtype == np.int64
    assert ranking.tolist() == [4, 0, 2]
    assert given in RankedList(5, 3)


def test_an_int64_array_is_not_copied():
    ranking = np.array([4, 0, 2])
    assert check_ranking(ranking, n_items=5, n_positions=3) is ranking


@given(st.integers(1, 5), st.integers(1, 5), st.lists(st.integers(-1, 5), max_size=5))
def test_contains_is_the_definition(n_items, n_positions, ranking):
    if n_positions > n_items:
        with pytest.raises(ValueError, match="there are only n_items"):
            RankedList(n_items, n_positions)
        return
    definition = len(ranking) == len(set(ranking)) == n_positions and all(
        0 <= item < n_items for item in ranking
    )
    assert RankedList(n_items, n_positions).contains(ranking) == definition
    assert BatchedRankedList(1, n_items, n_positions).contains([ranking]) == definition


# samples ------------------------------------------------------------


@pytest.mark.parametrize(("n_items", "n_positions"), [(1, 1), (4, 1), (4, 2), (5, 3), (4, 4)])
def test_samples_are_uniform(n_items, n_positions):
    space = RankedList(n_items, n_positions, seed=1)
    law = product_law(np.ones((n_positions, n_items)))
    assert_law([space.sample() for _ in range(20 * len(law))], law)
    assert_law(BatchedRankedList(100 * len(law), n_items, n_positions, seed=2).sample(), law)


MASKS = {
    "one for all positions": np.array([1, 0, 1, 1, 0], dtype=np.int8),
    "everything": (np.ones(5, dtype=np.int8),) * 3,
    "a position with one item": tuple(
        np.array([[1, 1, 1, 1, 1], [0, 0, 1, 0, 0], [1, 1, 1, 1, 1]], dtype=np.int8)
    ),
    # Drawing position by position would be wrong here: items 0 and 1 must be left to the last two.
    "overlapping": tuple(
        np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0], [1, 1, 0, 0, 0]], dtype=np.int8)
    ),
    "a single list": tuple(
        np.array([[1, 1, 0, 0, 0], [1, 0, 0, 0, 0], [0, 1, 1, 0, 0]], dtype=np.int8)
    ),
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_masked_samples_are_uniform_over_the_allowed_lists(mask):
    law = product_law(np.broadcast_to(np.array(mask), (3, 5)))
    space = RankedList(5, 3, seed=3)
    assert_law([space.sample(mask=mask) for _ in range(1500)], law)


def test_law_of_samples_with_probabilities():
    """Positions are independent, given that items are distinct."""
    probability = np.array([[0.5, 0.25, 0.25, 0.0], [0.25, 0.25, 0.25, 0.25], [0.7, 0.1, 0.1, 0.1]])
    space = RankedList(4, 3, seed=4)
    assert_law(
        [space.sample(probability=tuple(probability)) for _ in range(1500)],
        product_law(probability),
    )
    same = np.array([0.5, 0.25, 0.125, 0.125])
    assert_law([space.sample(probability=same) for _ in range(1500)], product_law([same] * 3))


def test_many_positions_with_masks():
    """Twelve positions with masks of their own beside eight without, among 200 items."""
    rng = np.random.default_rng(0)
    mask = np.ones((20, 200), dtype=np.int8)
    mask[4:16] = rng.random((12, 200)) < 0.05
    space = RankedList(200, 20, seed=5)
    ranking = space.sample(mask=tuple(mask))
    assert ranking in space
    assert mask[np.arange(20), ranking].all()


M = np.ones((3, 4), dtype=np.int8)
BAD_MASKS = {
    "no item": ({"mask": (M[0], M[0] * 0, M[0])}, "positions [1] allow only items [] between them"),
    "too few": ({"mask": M[0] * [1, 0, 0, 1]}, "3 positions, but only items [0, 3] allowed"),
    "ragged": ({"mask": (M[0], M[0], M[0][:2])}, "mask must be 3 arrays of length 4"),
    "not 0 or 1": ({"mask": (M[0], M[0], M[0] * 2)}, "position 2 must hold only 0 and 1"),
    "sum": ({"probability": M / 3}, "position 0 must be at least 0 and sum to 1"),
    "nan": ({"probability": [np.nan, 1, 0, 0]}, "position 0 must be at least 0 and sum to 1"),
    "both": ({"mask": M, "probability": M / 4}, "only one of mask and probability can be given"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD_MASKS.values(), ids=BAD_MASKS)
def test_a_bad_mask_is_refused(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        RankedList(4, 3, seed=0).sample(**arguments)
    per_list = {name: [values, values] for name, values in arguments.items()}
    with pytest.raises(ValueError, match=re.escape(message)):
        BatchedRankedList(2, 4, 3, seed=0).sample(**per_list)


def test_too_many_positions_with_masks_of_their_own_are_refused():
    mask = np.ones((13, 30), dtype=np.int8)
    mask[:, 0] = np.arange(13) % 2
    mask[:, 1] = 1 - mask[:, 0]
    with pytest.raises(
        ValueError,
        match="13 positions have a mask or probability of their own; exact sampling takes at most 12",
    ):
        RankedList(30, 13).sample(mask=tuple(mask))


# spaces ------------------------------------------------------------


@pytest.mark.parametrize(
    "space", [RankedList(6, 3, seed=7), BatchedRankedList(4, 6, 3, seed=7)], ids=repr
)
def test_a_space_behaves_like_one_of_gymnasium(space):
    sample = space.sample()
    assert space.contains(sample)
    assert sample.dtype == space.dtype == np.int64
    assert sample.shape == space.shape

    for twin in (copy.deepcopy(space), pickle.loads(pickle.dumps(space))):
        assert twin == space
        assert np.array_equal(twin.sample(), copy.deepcopy(space).sample())

    space.seed(8)
    first = space.sample()
    space.seed(8)
    assert np.array_equal(first, space.sample())

    flat = flatten(space, sample)
    assert flat in flatten_space(space)
    assert flat.shape == (flatdim(space),)
    assert np.array_equal(unflatten(space, flat), sample)
    assert np.array_equal(space.from_jsonable(space.to_jsonable([sample]))[0], sample)


def test_spaces_are_equal_by_their_sizes():
    assert RankedList(6, 3, seed=1) == RankedList(6, 3, seed=2)
    assert RankedList(6, 3) != RankedList(7, 3)
    assert RankedList(6, 3) != RankedList(6, 2)
    assert RankedList(6, 3) != MultiDiscrete([6, 6, 6])
    assert MultiDiscrete([6, 6, 6]) != RankedList(6, 3)
    assert BatchedRankedList(2, 6, 3) == BatchedRankedList(2, 6, 3)
    assert BatchedRankedList(2, 6, 3) != BatchedRankedList(3, 6, 3)
    assert BatchedRankedList(2, 6, 3) != BatchedRankedList(2, 7, 3)
    assert repr(RankedList(6, 3)) == "RankedList(n_items=6, n_positions=3)"


def test_gymnasium_batches_the_space():
    space = RankedList(6, 3, seed=0)
    batched = batch_space(space, 4)
    assert batched == BatchedRankedList(4, 6, 3)
    rankings = batched.sample()
    assert [ranking in space for ranking in iterate(batched, rankings)] == [True] * 4
    assert concatenate(space, list(rankings), create_empty_array(space, 4)) in batched

    both = Tuple((RankedList(6, 3), MultiBinary(2)))
    pairs = list(iterate(batch_space(both, 4), batch_space(both, 4).sample()))
    assert len(pairs) == 4
    assert all(pair in both for pair in pairs)


def test_batched_masks_are_one_for_each_list():
    batched = BatchedRankedList(2, 4, 2, seed=0)
    masks = np.array([[1, 1, 0, 0], [0, 0, 1, 1]], dtype=np.int8)
    rankings = batched.sample(mask=tuple(masks))
    assert rankings in batched
    assert np.array_equal(np.sort(rankings, axis=1), [[0, 1], [2, 3]])
    with pytest.raises(ValueError, match="one mask or probability for each of 2 lists, got 3"):
        batched.sample(mask=tuple(masks[[0, 0, 1]]))
