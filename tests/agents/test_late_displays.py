"""Agents that remember their displays learn from late clicks as their references in plain Python do, session by session."""

from __future__ import annotations

import math

import pytest
from reference_agents import (
    MODELS,
    BatchRankReference,
    BubbleRankReference,
    GRABReference,
    MergeRankReference,
    SGRABReference,
    TopRankReference,
    UniRankReference,
)
from reference_agents.draws import RankedExp3Reference, RankedKLUCBReference, RankedUCB1Reference
from reference_agents.late_displays import at_once, at_random, follow_late, in_batches

from clickgym.agents import (
    GRAB,
    SGRAB,
    BatchRank,
    BubbleRank,
    MergeRank,
    RankedExp3,
    RankedKLUCB,
    RankedUCB1,
    TopRank,
    UniRank,
)
from clickgym.agents.merge_rank import cut
from clickgym.envs import PositionBasedModel

L, K = 5, 3
USERS = MODELS | {"PBM": PositionBasedModel([0.05, 0.95, 0.1, 0.6, 0.3], [1.0, 0.7, 0.9])}
INITIAL = [2, 0, 4, 3, 1]
ARRIVALS = {"at once": at_once, "batch": in_batches(60), "delay": at_random(12)}


def top_rank():
    return TopRank(L, K, horizon=2, delta=0.9, seed=3), TopRankReference(L, K, 0.9)


def uni_rank():
    return UniRank(L, K, seed=3), UniRankReference(L, K)


def batch_rank():
    return BatchRank(L, K, horizon=5, seed=3), BatchRankReference(L, K, 5)


def merge_rank():
    return MergeRank(L, K, horizon=1000, seed=3), MergeRankReference(L, K, 1000)


def bubble_rank():
    reference = BubbleRankReference(INITIAL, K, -math.log(0.4))
    return BubbleRank(L, K, initial=INITIAL, delta=0.4, seed=3), reference


def doubling_bubble_rank():
    reference = BubbleRankReference(INITIAL, K, 4 * math.log(2), doubling=True)
    return BubbleRank(L, K, initial=INITIAL, seed=3), reference


def grab():
    return GRAB(L, K, horizon=1000, seed=3), GRABReference(L, K, 1000)


def s_grab():
    return SGRAB(L, K, seed=3), SGRABReference(L, K)


def ranked_exp3():
    return RankedExp3(L, K, horizon=1000, gamma=0.2, seed=3), RankedExp3Reference(L, K, 1000, 0.2)


def ranked_ucb1():
    return RankedUCB1(L, K, seed=3), RankedUCB1Reference(L, K)


def ranked_klucb():
    return RankedKLUCB(L, K, seed=3), RankedKLUCBReference(L, K)


SESSIONS = {
    top_rank: 400,
    uni_rank: 400,
    batch_rank: 1200,
    merge_rank: 1000,
    bubble_rank: 800,
    doubling_bubble_rank: 600,
    grab: 250,
    s_grab: 250,
    ranked_exp3: 300,
    ranked_ucb1: 300,
    ranked_klucb: 200,
}
each_kind = pytest.mark.parametrize("kind", SESSIONS, ids=lambda kind: kind.__name__)


def follows(kind, arrival, model="PBM", share=1.0, **chances):
    """An agent goes on as its reference."""
    follow_late(*kind(), USERS[model], int(SESSIONS[kind] * share), ARRIVALS[arrival], **chances)


@pytest.mark.parametrize("arrival", ["batch", "delay"])
@each_kind
def test_clicks_in_batches_or_late_or_lost_cut_off_or_void(kind, arrival):
    follows(kind, arrival, cut=0.2, void=0.1)


@pytest.mark.parametrize("arrival", ["at once", "delay"])
@each_kind
def test_items_that_are_replaced(kind, arrival):
    follows(kind, arrival, "CM", share=0.5, churn=0.02, cut=0.05)


@pytest.mark.parametrize("kind", [top_rank, uni_rank, ranked_ucb1, ranked_klucb])
def test_candidates(kind):
    follows(kind, "delay", "DCM", share=0.6, masked=0.7, churn=0.01)


@pytest.mark.parametrize("kind", [grab, s_grab])
def test_lists_of_others(kind):
    follows(kind, "delay", share=0.7, foreign=0.5, churn=0.02)


# ------------------------------------------------------------------------------------------------------------ by hand


def test_batches_below_a_cut_keep_their_number():
    """Batches 0 1 and 2 3 of which the upper one is cut; the lower one was cleared last."""
    agent = MergeRank(4, 3, horizon=1000, seed=0)
    state = agent.state
    state.n_batches[0], state.first[:3], state.epoch[:2] = 2, [0, 2, 4], [3, 5]
    state.lower[:], state.upper[:] = [0.6, 0.1, 0.0, 0.0], [0.9, 0.4, 0.3, 0.3]
    assert cut(state, 0) == 2
    assert state.epoch.tolist()[2] == 5


def test_a_pair_that_was_decided_when_it_was_shown_counts_but_not_one_decided_since():
    """Item 1 is surely better and below, as after a doubling; the first click counts, the exchange follows."""
    agent = BubbleRank(2, 2, initial=[0, 1], delta=0.5, seed=1)
    for decided_before, n in ((True, 21), (False, 20)):
        agent.state.base[:], agent.state.t[0], agent.state.s[:], agent.state.n[:] = [0, 1], 0, 0, 0
        decided = [[0, -20], [20, 0]], [[0, 20], [20, 0]]
        if decided_before:
            agent.state.s[:], agent.state.n[:] = decided
        ranking = agent.rank()
        agent.state.s[:], agent.state.n[:] = decided
        agent.update(None, ranking, [1, 0])
        assert agent.state.n[0, 1] == n
        assert agent.best().tolist() == [1, 0]


@pytest.mark.parametrize("replaced", ["hidden", "shown", "neither"])
def test_a_late_click_counts_against_a_rival_only_while_it_is_there(replaced):
    agent = BubbleRank(2, 1, initial=[0, 1], seed=2)
    shown = int(agent.rank()[0])
    if replaced != "neither":
        agent.replace(1 - shown if replaced == "hidden" else shown)
    agent.update(None, [shown], [1], display=1)
    assert agent.state.n[0, 1] == (replaced == "neither")


@pytest.mark.parametrize("kind", [TopRank, BatchRank, MergeRank, BubbleRank, GRAB, RankedExp3])
def test_a_record_of_a_display_is_small(kind):
    """A million open displays of ten positions in 500 MB, with what Python needs beside."""
    agent = kind(10, 10, horizon=1000, seed=0)
    assert agent.ranking.nbytes + sum(array.nbytes for array in agent.remembered_arrays()) <= 300
