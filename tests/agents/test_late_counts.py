"""Agents that learn from any list, of which late clicks count less, leave a window, are of an earlier segment, or move a chain.

Their references in plain Python allow each list and come to the same counts, session by session, whatever happens to the clicks
and the items.
"""

from __future__ import annotations

import pytest
from reference_agents import MODELS, reference_of
from reference_agents.late_counts import LatePBMHB, LatePBMPIE
from reference_agents.late_displays import after, at_once, at_random, follow_late, in_batches
from slow import slow

from clickgym.agents import PBMHB, PBMPIE, CascadeDUCB, CascadeSWUCB, GLRCascadeKLUCB
from clickgym.envs import CascadeModel, PositionBasedModel

L, K, SESSIONS = 5, 3, 400
EXAMINATION = [1.0, 0.7, 0.9]
PBM = PositionBasedModel([0.05, 0.95, 0.1, 0.6, 0.3], EXAMINATION)


def changing(session):
    first, second = (0.95, 0.05, 0.5, 0.5, 0.1), (0.05, 0.95, 0.5, 0.1, 0.9)
    return CascadeModel(second if session // 100 % 2 else first, n_positions=K)


KINDS = {
    "ducb": (CascadeDUCB, {"gamma": 0.97}, MODELS["DCM"]),
    "doubling_ducb": (CascadeDUCB, {"feedback": "first_click"}, MODELS["DCM"]),
    "swucb": (CascadeSWUCB, {"tau": 40}, MODELS["DCM"]),
    "doubling_swucb": (CascadeSWUCB, {"feedback": "first_click"}, MODELS["DCM"]),  # a window shorter than the first delays
    "glr_klucb": (GLRCascadeKLUCB, {"horizon": 300, "delta": 0.2}, changing),
    "pbm_pie": (PBMPIE, {"examination": EXAMINATION, "horizon": 300}, PBM),
    "pbm_hb": (PBMHB, {"c": 1.0}, PBM),  # steps grow short at once, so that their width tells t
    "wide_pbm_hb": (PBMHB, {"n_sweeps": 2, "fix_first": False}, PBM),
}
"""Agents, their arguments, and their users."""
LATE_REFERENCES = {
    PBMPIE: lambda **given: LatePBMPIE(L, **given, epsilon=0.0),
    PBMHB: lambda **given: LatePBMHB(L, K, **given, seed=3),
}
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
    agent_class, arguments, users = KINDS[kind]
    if agent_class is PBMPIE:  # which knows no candidates
        chances.pop("masked", None)
    agent = agent_class(L, K, seed=3, **arguments)
    late = LATE_REFERENCES.get(agent_class)
    follow_late(agent, late(**arguments) if late else reference_of(agent), users, SESSIONS, ARRIVALS[arrival], **chances)


LATE = [(kind, arrival) for kind in KINDS for arrival in ("batch", "delay", "geometric")]
QUICK = [("ducb", "delay"), ("doubling_swucb", "geometric"), ("swucb", "batch"), ("glr_klucb", "geometric")]
QUICK += [("pbm_pie", "delay"), ("pbm_hb", "geometric")]


@pytest.mark.parametrize(("kind", "arrival"), [*QUICK, *slow(*(pair for pair in LATE if pair not in QUICK))])
def test_all_that_happens_to_clicks_and_items_together(kind, arrival):
    follows(kind, arrival, **ALL)


@pytest.mark.slow
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("arrival", ARRIVALS)
@pytest.mark.parametrize("kind", KINDS)
def test_each_alone(kind, arrival, axis):
    follows(kind, arrival, **AXES[axis])
