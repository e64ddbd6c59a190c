"""The pairs of an agent and a click model that `make test` compiles, which is most of its time.

Each agent is compiled in one model, each model with one agent at least, and tests that need some
pair share the kernels. Of the other pairs, `test_digits` plays many with kernels that run as
Python; `make test-slow` compiles them all, and compares the engines.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import cycle, islice, product
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


HOMES = {
    name: re.sub(r"^any\b", "PBM", AGENTS[name].click_models).partition(",")[0]
    for name in CONTEXTUAL_AGENTS
}
"""The models that contextual agents are for."""
PAIRS = {(name, "PBM") for name in CLICK_AGENTS} | {("Random", kind) for kind in MODELS}
PAIRS |= {*HOMES.items()}
"""Agent and model: agents without features in the PBM, Random in every model."""


def by_pair(names: Iterable[str], kinds: Iterable[str] = tuple(MODELS)) -> Any:
    """Parameters ``name`` and ``kind`` of a test: all pairs of agents and models, of which those
    outside `PAIRS` are slow.
    """
    return _by_pair(("name", "kind"), product(names, kinds), PAIRS)


def by_id(names: Iterable[str], ids: Iterable[str], most: int = 9, *, others: bool = False) -> Any:
    """Parameters ``name`` and ``env_id`` of a test; the agents meet the forms of a model in turns,
    a form so many agents at most, and at least one: Random, if it is among them and no other.

    Ids that need an instance or parameters are left out. With ``others``, all further pairs are
    slow.
    """
    names, forms = list(names), defaultdict(list)
    ids = [env_id for env_id in ids if env_id in REGISTERED]
    for env_id in ids:
        forms[model_of(env_id)].append(env_id)
    quick = set()
    for kind, forms_of_kind in forms.items():
        meeting = sorted(name for name in names if (name, kind) in PAIRS)
        meeting = meeting or sorted({"Random"} & {*names})
        number = max(len(forms_of_kind), min(len(meeting), most * len(forms_of_kind)))
        quick |= {*islice(zip(cycle(meeting), cycle(forms_of_kind), strict=False), number)}
    pairs = {*product(names, ids), *quick} if others else quick
    return _by_pair(("name", "env_id"), sorted(pairs), quick)


def _by_pair(
    arguments: tuple[str, str], pairs: Iterable[tuple[str, str]], quick: set[tuple[str, str]]
) -> Any:
    marked = [pytest.param(*pair, marks=[pytest.mark.slow] * (pair not in quick)) for pair in pairs]
    return pytest.mark.parametrize(arguments, marked)
