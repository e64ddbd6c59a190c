"""The pairs of an agent and a click model that are compiled, which is most of the time of the
tests.

Each agent is compiled in one model (CMLinUCB and DCMLinUCB in slow tests), each model with one
agent at least, and tests that need some pair share the kernels. `make test-slow` compiles each
agent without features in a second model. `test_digits` plays these and many other pairs with
kernels that run as Python.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import cycle, islice, product
from typing import Any

import pytest

from clickgym.agents import AGENTS
from clickgym.envs import ENVIRONMENTS
from tests.helpers.registries import CLICK_AGENTS, CONTEXTUAL_AGENTS, default_ids
from tests.helpers.slow import slow
from tests.reference_agents import MODELS

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
FURTHER = {*zip(CLICK_AGENTS, cycle(kind for kind in MODELS if kind != "PBM"), strict=False)}
"""Each agent without features in a second model; the agents take the models in turns."""


def by_pair(names: Iterable[str], kinds: Iterable[str] = tuple(MODELS)) -> Any:
    """Parameters ``name`` and ``kind`` of a test: the pairs of these agents and models that are in
    `PAIRS`, and as slow ones those in `FURTHER`.
    """
    pairs = [pair for pair in product(names, kinds) if pair in PAIRS | FURTHER]
    marked = [pair if pair in PAIRS else slow(pair)[0] for pair in pairs]
    return pytest.mark.parametrize(("name", "kind"), marked)


def by_id(names: Iterable[str], ids: Iterable[str], most: int = 9) -> Any:
    """Parameters ``name`` and ``env_id`` of a test; the agents meet the forms of a model in turns,
    a form so many agents at most, and at least one: Random, if it is among them and no other. Is
    it not among them, the first of them meets the form in a slow test.

    Ids that need an instance or parameters are left out.
    """
    names, forms = sorted(names), defaultdict(list)
    ids = [env_id for env_id in ids if env_id in REGISTERED]
    for env_id in ids:
        forms[model_of(env_id)].append(env_id)
    met: list[Any] = []
    for kind, forms_of_kind in forms.items():
        meeting = sorted(name for name in names if (name, kind) in PAIRS)
        meeting = meeting or sorted({"Random"} & {*names})
        number = max(len(forms_of_kind), min(len(meeting), most * len(forms_of_kind)))
        agents = cycle(meeting or names[:1])
        pairs = islice(zip(agents, cycle(forms_of_kind), strict=False), number)
        met += sorted(pairs) if meeting else slow(*pairs)
    return pytest.mark.parametrize(("name", "env_id"), met)
