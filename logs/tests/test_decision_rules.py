"""Rules of a decision about lists, by what `decide` and `decide_all` return."""

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from clickgym.envs import PositionBasedModel
from clickgym_logs import ClickLog, decide, decide_all

A, B, C = [0, 1, 2], [1, 0, 2], [3, 2, 1]
LABELS = tuple("abcd")
ATTRACTION = [0.1, 0.3, 0.45, 0.6]


def log_of(items, clicks):
    """A log of one query, its sessions in the order of time."""
    n = len(items)
    return ClickLog(items, clicks, np.zeros(n), LABELS, ("shoes",), times=np.arange(n))


def log_of_users(examination, n, seed=0):
    """Users of a position-based model, who see A as often as eight other lists together."""
    users, rng = PositionBasedModel(ATTRACTION, examination), np.random.default_rng(seed)
    lists = [A, C, [0, 2, 3], [1, 3, 0], [2, 0, 1], [3, 0, 2], [2, 3, 0], [1, 2, 3], [3, 1, 0]]
    items = np.array(lists)[rng.choice(9, n, p=[8 / 16, *[1 / 16] * 8])]
    return log_of(items, [users.sample(ranking, rng) for ranking in items])


def log_of_blocks(blocks):
    """In each of twenty blocks of 200 sessions, 110 show A and 90 show C; ``blocks`` are the
    numbers of those with a click at the top.
    """
    items = np.tile([A] * 110 + [C] * 90, (20, 1, 1))
    clicks = np.zeros(items.shape, np.int8)
    for block, (of_a, of_c) in enumerate(blocks):
        clicks[block, :of_a, 0] = clicks[block, 110 : 110 + of_c, 0] = 1
        order = np.random.default_rng(block).permutation(200)
        items[block], clicks[block] = items[block, order], clicks[block, order]
    return log_of(items.reshape(-1, 3), clicks.reshape(-1, 3))


def test_production_list_is_that_of_the_last_twentieth():
    """Of the last 400 sessions of 8,000 most show another list than those before."""
    late = np.arange(8000) >= 7600
    items = np.where((late & (np.arange(8000) % 5 < 3))[:, None], B, A)
    (decided,) = decide_all(log_of(items, np.zeros(items.shape)))
    assert decided.production == ("b", "a", "c")


def test_gain_in_the_last_four_blocks_alone():
    """Four losses before them outweigh it: over the last eight blocks the list earned less. At the
    beginning of the log they are no matter.
    """
    gains, losses, last = [(22, 72)] * 12, [(44, 4)] * 4, [(22, 32)] * 4
    (decided,) = decide_all(log_of_blocks(losses + gains + last))
    assert decided.recommended == ("d", "c", "b")
    (decided,) = decide_all(log_of_blocks(gains + losses + last))
    assert decided.recommended == ("a", "b", "c")


def test_sessions_of_the_proposed_test():
    """Half of n sessions show each list, so that the standard error of the difference is
    2 sqrt(variance / n); the gain passes at the level with a probability of 0.94.
    """
    log = log_of_users([0.9, 0.6, 0.3], 6000)
    proposal, variance = decide(log).proposal, log.clicks.sum(axis=1).var()
    z = NormalDist().inv_cdf(1 - 0.005) + NormalDist().inv_cdf(0.94)
    n = (2 * z / proposal.gain) ** 2 * variance
    assert proposal.sessions == pytest.approx(max(n, 2 * 20 * 20), abs=2)


def test_proposal_below_a_cutoff():
    """Where the third position is examined most, the best list of two puts its best item second."""
    log = log_of_users([0.3, 0.6, 0.9], 3000)
    assert decide(log, cutoff=2, production=["a", "b", "c"]).proposal.labels == ("c", "d")


def test_level_where_every_query_passes():
    """It is that of the last query in the order of p-values, and not that of the first."""
    first, second = (log_of_users([0.9, 0.6, 0.3], 4000, seed) for seed in (0, 1))
    both = replace(
        log_of([*first.items, *second.items], [*first.clicks, *second.clicks]),
        queries=np.repeat([0, 1], 4000),
        query_labels=("shoes", "hats"),
    )
    decisions = decide_all(both)
    assert [decision.verdict for decision in decisions] == ["better", "better"]
    assert [decision.level for decision in decisions] == [0.005, 0.005]


def test_rewards_by_block_of_five_sessions_or_more():
    """Of the production list in twenty blocks of thirty sessions."""
    shown = np.array([5, 4, 0] + [20] * 17)
    is_production = (np.arange(30) < shown[:, None]).ravel()
    items = np.where(is_production[:, None], A, C)
    (decided,) = decide_all(log_of(items, (items == 0).astype(np.int8)))
    assert decided.production == ("a", "b", "c")
    np.testing.assert_array_equal(decided.by_block[0], [1.0, np.nan, np.nan] + [1.0] * 17)
