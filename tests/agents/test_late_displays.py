"""Agents that remember their displays learn from late clicks as their references in plain Python do, session by session."""

from __future__ import annotations

import pytest
from reference_agents import MODELS, reference_of
from reference_agents.late_displays import at_once, at_random, follow_late, in_batches

from clickgym.agents import (
    GRAB,
    BatchRank,
    BubbleRank,
    RankedExp3,
    RankedKLUCB,
    TopRank,
    UniRank,
)
from clickgym.envs import PositionBasedModel

L, K = 5, 3
USERS = MODELS | {"PBM": PositionBasedModel([0.05, 0.95, 0.1, 0.6, 0.3], [1.0, 0.7, 0.9])}
INITIAL = [2, 0, 4, 3, 1]
ARRIVALS = {"at once": at_once, "batch": in_batches(60), "delay": at_random(12)}


KINDS = {
    "top_rank": (TopRank, {"horizon": 2, "delta": 0.9}, 400),
    "uni_rank": (UniRank, {}, 400),
    "batch_rank": (BatchRank, {"horizon": 5}, 1200),
    "bubble_rank": (BubbleRank, {"initial": INITIAL, "delta": 0.4}, 800),
    "doubling_bubble_rank": (BubbleRank, {"initial": INITIAL}, 600),
    "grab": (GRAB, {"horizon": 1000}, 250),
    "ranked_exp3": (RankedExp3, {"horizon": 1000, "gamma": 0.2}, 300),
    "ranked_klucb": (RankedKLUCB, {}, 200),
}
"""Agents, their arguments, and how many sessions they play."""
each_kind = pytest.mark.parametrize("kind", KINDS)


def follows(kind, arrival, model="PBM", share=1.0, **chances):
    """An agent goes on as its reference."""
    agent_class, arguments, sessions = KINDS[kind]
    agent = agent_class(L, K, seed=3, **arguments)
    follow_late(agent, reference_of(agent), USERS[model], int(sessions * share), ARRIVALS[arrival], **chances)


@pytest.mark.parametrize("arrival", ["batch", "delay"])
@each_kind
def test_clicks_in_batches_or_late_or_lost_cut_off_or_void(kind, arrival):
    follows(kind, arrival, cut=0.2, void=0.1)


@pytest.mark.parametrize("arrival", ["at once", "delay"])
@each_kind
def test_items_that_are_replaced(kind, arrival):
    follows(kind, arrival, "CM", share=0.5, churn=0.02, cut=0.05)


@pytest.mark.parametrize("kind", ["top_rank", "uni_rank", "ranked_klucb"])
def test_candidates(kind):
    follows(kind, "delay", "DCM", share=0.6, masked=0.7, churn=0.01)


def test_lists_of_others():
    follows("grab", "delay", share=0.7, foreign=0.5, churn=0.02)


# ------------------------------------------------------------------------------------------------------------ by hand


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


@pytest.mark.parametrize("kind", [TopRank, BatchRank, BubbleRank, GRAB, RankedExp3])
def test_a_record_of_a_display_is_small(kind):
    """A million open displays of ten positions in 500 MB, with what Python needs beside."""
    agent = kind(10, 10, horizon=1000, seed=0)
    assert agent.ranking.nbytes + sum(array.nbytes for array in agent.remembered_arrays()) <= 300
