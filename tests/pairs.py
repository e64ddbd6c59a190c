"""The pairs of an agent and a click model that `make test` compiles, which is most of its time.

They are those of ``tests/data/digits.json`` in which an agent is at home, so that tests that need
some pair share the kernels of `test_digits`, and two agents in every model. The other pairs are
compiled by `make test-slow`.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from reference_agents import MODELS
from registries import CLICK_AGENTS, CONTEXTUAL_AGENTS, default_ids

from clickgym.agents import AGENTS
from clickgym.envs import ENVIRONMENTS

REGISTERED = {env_id: ENVIRONMENTS[env_id] for env_id in default_ids()}
"""The environments that need no argument."""


def model_of(env_id: str) -> str:
    """``"PBM"`` of ``"NonStationaryPBMRank-v0"``."""
    return REGISTERED[env_id].click_model.name()


def at_home(run: dict[str, Any]) -> bool:
    """Whether a run of the digits is in the PBM, with users who remember, or in a model that the
    agent is for.
    """
    env, agent = ENVIRONMENTS[run["env"]], AGENTS.get(run["agent"].partition(":")[0])
    here = {"PBM", *re.findall(r"\w+", agent.click_models if agent else "")}
    return env.kind == "Memory" or env.click_model.name() in here


RUNS = json.loads((Path(__file__).parent / "data" / "digits.json").read_text("utf-8"))["runs"]
PAIRS = {
    (run["agent"].partition(":")[0], model_of(run["env"]))
    for run in RUNS
    if run["env"] in REGISTERED and at_home(run)
}
"""Agent and model; an agent that the file does not have yet meets PBM and CM."""
NEW = {*CLICK_AGENTS, *CONTEXTUAL_AGENTS} - {name for name, _ in PAIRS}
PAIRS |= set(product(NEW, ("PBM", "CM"))) | set(product(("Random", "C2UCB"), MODELS))


def by_pair(names: Iterable[str], kinds: Iterable[str] = tuple(MODELS)) -> Any:
    """Parameters ``name`` and ``kind`` of a test: all pairs of agents and models, of which those
    outside `PAIRS` are slow.
    """
    return _by_pair(("name", "kind"), product(names, kinds), PAIRS)


def by_id(names: Iterable[str], ids: Iterable[str], most: int = 9) -> Any:
    """Parameters ``name`` and ``env_id`` of a test; an agent meets the forms of a model in turns,
    an id so many at most.

    Ids that need an instance or parameters are left out.
    """
    names, forms = list(names), defaultdict(list)
    ids = [env_id for env_id in ids if env_id in REGISTERED]
    for env_id in ids:
        forms[model_of(env_id)].append(env_id)
    quick = set()
    for kind, forms_of_kind in forms.items():
        meeting = sorted(name for name in names if (name, kind) in PAIRS)
        for name, env_id in zip(meeting, most * forms_of_kind, strict=False):
            quick.add((name, env_id))
    return _by_pair(("name", "env_id"), product(names, ids), quick)


def _by_pair(
    arguments: tuple[str, str], pairs: Iterable[tuple[str, str]], quick: set[tuple[str, str]]
) -> Any:
    marked = [pytest.param(*pair, marks=[pytest.mark.slow] * (pair not in quick)) for pair in pairs]
    return pytest.mark.parametrize(arguments, marked)
