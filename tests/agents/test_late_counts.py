"""Agents that learn from any list, of which late clicks count less, leave a window, are of an earlier segment, or move a chain.

Their references in plain Python allow each list and come to the same counts, session by session, whatever happens to the clicks
and the items.
"""

from __future__ import annotations

import math

import pytest
from reference_agents import MODELS, DiscountedReference, GLRReference, WindowReference, doubled
from reference_agents.late_counts import LatePBMHB, LatePBMPIE
from reference_agents.late_displays import after, at_once, at_random, follow_late, in_batches
from slow import slow

from clickgym.agents import PBMHB, PBMPIE, CascadeDUCB, CascadeSWUCB, GLRCascadeKLUCB, GLRCascadeUCB
from clickgym.envs import CascadeModel, PositionBasedModel

L, K, SESSIONS = 5, 3, 400
EXAMINATION = [1.0, 0.7, 0.9]
PBM = PositionBasedModel([0.05, 0.95, 0.1, 0.6, 0.3], EXAMINATION)


def changing(session):
    first, second = (0.95, 0.05, 0.5, 0.5, 0.1), (0.05, 0.95, 0.5, 0.1, 0.9)
    return CascadeModel(second if session // 100 % 2 else first, n_positions=K)


def ducb():
    return CascadeDUCB(L, K, gamma=0.97, seed=3), DiscountedReference(L, K, lambda t: 0.97, 0.5, "last_click")


def doubling_ducb():
    reference = DiscountedReference(L, K, lambda t: 1 - 0.25 / math.sqrt(doubled(t)), 0.5, "first_click")
    return CascadeDUCB(L, K, feedback="first_click", seed=3), reference


def swucb():
    return CascadeSWUCB(L, K, tau=40, seed=3), WindowReference(L, K, lambda t: 40, 0.5, "last_click")


def doubling_swucb():
    """Whose window is shorter than the delays at first."""

    def tau(t):
        return math.ceil(2 * math.sqrt(doubled(t) * math.log(doubled(t))))

    return CascadeSWUCB(L, K, feedback="first_click", seed=3), WindowReference(L, K, tau, 0.5, "first_click")


def glr_ucb():
    return GLRCascadeUCB(L, K, horizon=300, delta=0.2, seed=3), GLRReference(L, K, "UCB1", 300, delta=0.2)


def glr_klucb():
    return GLRCascadeKLUCB(L, K, horizon=300, delta=0.2, seed=3), GLRReference(L, K, "KL", 300, delta=0.2)


def pbm_pie():
    agent = PBMPIE(L, K, examination=EXAMINATION, horizon=300, seed=3)
    return agent, LatePBMPIE(L, EXAMINATION, 300, 0.0)


def pbm_hb():
    """Whose steps grow short at once, so that their width tells t."""
    return PBMHB(L, K, c=1.0, seed=3), LatePBMHB(L, K, 1.0, seed=3)


def wide_pbm_hb():
    agent = PBMHB(L, K, n_sweeps=2, fix_first=False, seed=3)
    return agent, LatePBMHB(L, K, 1000.0, 2, False, seed=3)


USERS = dict.fromkeys((ducb, doubling_ducb, swucb, doubling_swucb), MODELS["DCM"])
USERS |= {glr_ucb: changing, glr_klucb: changing} | dict.fromkeys((pbm_pie, pbm_hb, wide_pbm_hb), PBM)
ARRIVALS = {"at once": at_once, "batch": in_batches(20), "delay": after(15), "geometric": at_random(12)}
AXES = {
    "clicks": {"lost": 0.0},
    "cut off or void": {"cut": 0.2, "void": 0.1},
    "replaced": {"churn": 0.03},
    "candidates": {"masked": 0.7},
    "lists of others": {"foreign": 0.3},
}
ALL = {"cut": 0.1, "void": 0.1, "churn": 0.03, "masked": 0.6, "foreign": 0.2}


def follows(kind, arrival, **chances):
    """An agent goes on as its reference."""
    if kind is pbm_pie:  # which knows no candidates
        chances.pop("masked", None)
    follow_late(*kind(), USERS[kind], SESSIONS, ARRIVALS[arrival], **chances)


LATE = [(kind, arrival) for kind in USERS for arrival in ("batch", "delay", "geometric")]
QUICK = [(ducb, "delay"), (doubling_swucb, "geometric"), (swucb, "batch"), (glr_ucb, "geometric"), (pbm_pie, "delay")]
QUICK += [(pbm_hb, "geometric")]


def name(value):
    return value.__name__ if callable(value) else str(value)


@pytest.mark.parametrize(("kind", "arrival"), [*QUICK, *slow(*(pair for pair in LATE if pair not in QUICK))], ids=name)
def test_all_that_happens_to_clicks_and_items_together(kind, arrival):
    follows(kind, arrival, **ALL)


@pytest.mark.slow
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("arrival", ARRIVALS)
@pytest.mark.parametrize("kind", USERS, ids=name)
def test_each_alone(kind, arrival, axis):
    follows(kind, arrival, **AXES[axis])
