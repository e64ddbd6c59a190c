"""Every agent at the edges, against its reference and in both engines.

What is played is drawn by `edge_cases`, the same at every run.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count, islice

import pytest
from edge_cases import (
    EVERY_AGENT,
    Case,
    draw,
    play,
)
from pairs import PAIRS
from reference_agents import MODELS
from registries import CONTEXTUAL_AGENTS
from slow import slow

from clickgym.envs import LabelledModel

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
    """With users of one class and for the default reward, so that one loop is compiled, which other
    tests share.
    """
    cases = (draw(name, seed, COMPILED[name], most_sessions=25) for seed in count(100))
    if name in CONTEXTUAL_AGENTS:
        linear = (case for case in cases if not isinstance(case.users, LabelledModel))
        cases = (case for case in linear if case.reward == "any_click")
    assert faults(islice(cases, 8)) == []


@pytest.mark.slow
@pytest.mark.compiled
@by_agent
def test_many_runs_at_the_edges(name):
    assert faults(draw(name, seed) for seed in range(1000, 1300)) == []


# ---------------------------------------------------------------------------- that faults are found


# ------------------------------------------------------------------------ what was found and mended
