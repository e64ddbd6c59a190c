"""Agents that remember their displays learn from late clicks as their references in plain Python do, session by session."""

from __future__ import annotations

import math

import pytest
from reference_agents import MODELS
from reference_agents.late_displays import (
    LateBatchRank,
    LateBubbleRank,
    LateGRAB,
    LateMergeRank,
    LateRankedExp3,
    LateRankedKLUCB,
    LateRankedUCB1,
    LateSGRAB,
    LateTopRank,
    LateUniRank,
    at_once,
    at_random,
    follow_late,
    in_batches,
)

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
from clickgym.envs import PositionBasedModel

L, K = 5, 3
USERS = MODELS | {"PBM": PositionBasedModel([0.05, 0.95, 0.1, 0.6, 0.3], [1.0, 0.7, 0.9])}
INITIAL = [2, 0, 4, 3, 1]
ARRIVALS = {"at once": at_once, "batch": in_batches(60), "delay": at_random(12)}


def top_rank(**reading):
    return TopRank(L, K, horizon=2, delta=0.9, seed=3), LateTopRank(L, K, 0.9, **reading)


def uni_rank(**reading):
    return UniRank(L, K, seed=3), LateUniRank(L, K, **reading)


def batch_rank(**reading):
    return BatchRank(L, K, horizon=5, seed=3), LateBatchRank(L, K, 5, **reading)


def merge_rank(**reading):
    return MergeRank(L, K, horizon=1000, seed=3), LateMergeRank(L, K, 1000, **reading)


def bubble_rank(**reading):
    reference = LateBubbleRank(INITIAL, K, -math.log(0.4), **reading)
    return BubbleRank(L, K, initial=INITIAL, delta=0.4, seed=3), reference


def doubling_bubble_rank(**reading):
    reference = LateBubbleRank(INITIAL, K, 4 * math.log(2), doubling=True, **reading)
    return BubbleRank(L, K, initial=INITIAL, seed=3), reference


def grab(**reading):
    return GRAB(L, K, horizon=1000, seed=3), LateGRAB(L, K, 1000, **reading)


def s_grab(**reading):
    return SGRAB(L, K, seed=3), LateSGRAB(L, K, **reading)


def ranked_exp3(**reading):
    return RankedExp3(L, K, horizon=1000, gamma=0.2, seed=3), LateRankedExp3(L, K, 1000, 0.2, **reading)


def ranked_ucb1(**reading):
    return RankedUCB1(L, K, seed=3), LateRankedUCB1(L, K, **reading)


def ranked_klucb(**reading):
    return RankedKLUCB(L, K, seed=3), LateRankedKLUCB(L, K, **reading)


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
READINGS = {
    top_rank: ["present"],
    uni_rank: ["present", "led_on_arrival"],
    batch_rank: ["by_arrivals", "earlier_stages", "all_count"],
    merge_rank: ["after_clearing", "not_after_halving"],
    bubble_rank: ["decided_too"],
    doubling_bubble_rank: [],
    grab: ["led_on_arrival"],
    s_grab: ["led_on_arrival"],
    ranked_exp3: ["present"],
    ranked_ucb1: ["present"],
    ranked_klucb: ["present"],
}
"""Arguments of the references that make other readings of what to do with late clicks."""
each_kind = pytest.mark.parametrize("kind", SESSIONS, ids=lambda kind: kind.__name__)


def agrees(kind, arrival, model="PBM", share=1.0, readings=(), **chances):
    """Whether an agent goes on as its reference; of readings by name, which of them it cannot be told from."""
    agent, reference = kind()
    references = {"": reference} | {reading: kind(**{reading: True})[1] for reading in readings}
    return follow_late(agent, references, USERS[model], int(SESSIONS[kind] * share), ARRIVALS[arrival], **chances)


@pytest.mark.parametrize("arrival", ["batch", "delay"])
@each_kind
def test_clicks_in_batches_or_late_or_lost_cut_off_or_void(kind, arrival):
    """And each other reading is told apart."""
    assert agrees(kind, arrival, cut=0.2, void=0.1, readings=READINGS[kind]) == {""}


@pytest.mark.parametrize("arrival", ["at once", "delay"])
@each_kind
def test_items_that_are_replaced(kind, arrival):
    assert agrees(kind, arrival, "CM", share=0.5, churn=0.02, cut=0.05) == {""}


@pytest.mark.parametrize("kind", [top_rank, uni_rank, ranked_ucb1, ranked_klucb])
def test_candidates(kind):
    assert agrees(kind, "delay", "DCM", share=0.6, masked=0.7, churn=0.01) == {""}


@pytest.mark.parametrize("kind", [grab, s_grab])
def test_lists_of_others(kind):
    assert agrees(kind, "delay", share=0.7, foreign=0.5, churn=0.02) == {""}
