"""Every agent at the edges, against its reference and in both engines.

What is played is drawn by `edge_cases`, the same at every run.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count, islice

import numpy as np
import pytest
from edge_cases import (
    EVERY_AGENT,
    Case,
    draw,
    play,
)
from pairs import PAIRS
from reference_agents import MODELS, make, reference_of
from registries import CONTEXTUAL_AGENTS
from slow import slow

from clickgym.envs import CLICK_MODELS, LabelledModel

COMPILED = {
    name: [min((kind for kind in MODELS if (name, kind) in PAIRS), key=lambda kind: kind != "PBM")]
    for name in EVERY_AGENT
}
"""The click model in which other tests compile the agent too; of contextual ones, the linear."""

pytestmark = pytest.mark.uncompiled

by_agent = pytest.mark.parametrize("name", EVERY_AGENT)


def faults(cases: Iterable[Case], compiled: bool = True) -> list[str]:
    return [f"{case}: {fault}" for case in cases if (fault := play(case, compiled=compiled))]


@by_agent
def test_runs_at_the_edges_follow_the_reference(name):
    """In Python, with users of every kind; `test_many_runs_at_the_edges` goes on."""
    assert faults((draw(name, seed, most_sessions=25) for seed in range(8)), compiled=False) == []


@pytest.mark.compiled
@pytest.mark.parametrize(
    "name", [name if "PBM" in COMPILED[name] else slow(name)[0] for name in EVERY_AGENT]
)
def test_engines_agree_at_the_edges(name):
    """With users of one class, for the default reward and without near ties, so that one loop is
    compiled, which other tests share.
    """
    cases = (draw(name, seed, COMPILED[name], most_sessions=25) for seed in count(100))
    if name in CONTEXTUAL_AGENTS:
        linear = (case for case in cases if not isinstance(case.users, LabelledModel))
        cases = (
            case for case in linear if case.reward == "any_click" and not case.users.pool.has_ties
        )
    assert faults(islice(cases, 8)) == []


@pytest.mark.slow
@pytest.mark.compiled
@by_agent
def test_many_runs_at_the_edges(name):
    assert faults(draw(name, seed) for seed in range(1000, 1300)) == []


def test_the_edges_are_met():
    """Of the cases that the quick tests play: every kind of users, one item, one position, K = L,
    none clicked, all announced horizons, changing users.
    """
    cases = [draw(name, seed, most_sessions=25) for name in EVERY_AGENT for seed in range(8)]
    kinds = {case.users.kind for case in cases}
    assert all(any(kind in users for users in kinds) for kind in CLICK_MODELS)
    sizes = {(case.users.n_items, case.users.n_positions) for case in cases}
    assert {(1, 1), (2, 1), (2, 2), (6, 1), (6, 6)} <= sizes
    assert {case.arguments.get("horizon") for case in cases} >= {1, 2, 5, 10**7}
    assert {case.arguments.get("feedback") for case in cases} >= {"first_click", "last_click"}
    assert any(len(getattr(case.users, "epochs", [0])) > 1 for case in cases)
    certain = [case.users.attraction for case in cases if hasattr(case.users, "attraction")]
    assert any((values == 0).all() for values in certain)
    assert any((values == 1).sum() == 1 and len(values) > 1 for values in certain)


# ---------------------------------------------------------------------------- that faults are found


def test_a_list_out_of_order_is_found():
    model = MODELS["CM"]
    agent = make("CascadeUCB1", model, seed=0)
    reference, rng = reference_of(agent), np.random.default_rng(0)
    for _ in range(50):
        ranking = agent.rank(None)
        clicks = model.sample(ranking, rng)
        agent.update(None, ranking, clicks)
        assert reference.allows(ranking.tolist(), agent.state)
        reference.learn(ranking.tolist(), clicks.tolist())
    ranking = agent.rank(None).tolist()
    assert not reference.allows(ranking[::-1], agent.state)
    assert not reference.allows([ranking[0], ranking[0], ranking[1]], agent.state)
    agent.state.clicks[0] += 1
    assert not reference.agrees(agent.state)


# ------------------------------------------------------------------------ what was found and mended
