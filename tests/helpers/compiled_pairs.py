"""The pairs of an agent and a click model that the tests compile. Compiling takes most of the
tests' time, so tests share these pairs.

Each agent is compiled with one model (CMLinUCB and DCMLinUCB only in slow tests), and each model
with at least one agent. `make test-slow` compiles each agent without features with a second model.
`test_digits` runs these pairs and many others with kernels that run as Python functions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import cycle, islice, product
from typing import Any

import pytest

from clickgym.envs import ENVIRONMENTS
from tests.helpers.registries import CLICK_AGENTS, CONTEXTUAL_AGENTS, default_ids
from tests.helpers.slow import slow
from tests.reference_agents.models import MODELS

REGISTERED = {env_id: ENVIRONMENTS[env_id] for env_id in default_ids()}
"""The environments that require no argument."""


def model_of(env_id: str) -> str:
    """Return the name of the click model in an environment id: ``"PBM"`` for
    ``"NonStationaryPBMRank-v0"``.
    """
    return REGISTERED[env_id].click_model.name()


HOMES = {
    name: agent.made_for_models[0] if agent.made_for_models else "PBM"
    for name, agent in CONTEXTUAL_AGENTS.items()
}
"""The click models for which the contextual agents are designed."""
AGENTS_OF_MODELS = {
    "CM": "CascadeUCBV",
    "DCM": "DCMKLUCB",
    "UBM": "BCMPTS",
    "DBN": "CascadeDUCB",
    "CCM": "CascadeSWUCB",
    "TPBM": "PBMPIE",
}
"""For each click model but the PBM, the agent that is compiled with it; for a model that is not
listed, it is Random.
"""
AGENT_OF = {kind: AGENTS_OF_MODELS.get(kind, "Random") for kind in MODELS}
PAIRS = {*HOMES.items(), *((name, kind) for kind, name in AGENT_OF.items())}
PAIRS |= {(name, "PBM") for name in {*CLICK_AGENTS} - {*AGENTS_OF_MODELS.values()}}
"""The pairs of an agent and a model."""
FURTHER = {*zip(CLICK_AGENTS, cycle(kind for kind in MODELS if kind != "PBM"), strict=False)}
FURTHER |= {(name, "PBM") for name in CLICK_AGENTS}
"""Each agent without features, with the PBM and with another model; the agents take turns through
the other models.
"""


def by_pair(names: Iterable[str], kinds: Iterable[str] = tuple(MODELS)) -> Any:
    """Parametrise a test by ``name`` and ``kind``: the pairs of the given agents and models that
    are in `PAIRS` and, as slow tests, those that are in `FURTHER`.
    """
    pairs = [pair for pair in product(names, kinds) if pair in PAIRS | FURTHER]
    marked = [pair if pair in PAIRS else slow(pair)[0] for pair in pairs]
    return pytest.mark.parametrize(("name", "kind"), marked)


def by_id(names: Iterable[str], ids: Iterable[str], most: int = 9) -> Any:
    """Parametrise a test by ``name`` and ``env_id``. The agents take turns through the forms of a
    model. Each form gets at most ``most`` agents and at least one: if no agent is paired with the
    model, Random. If Random is not among the agents, the first agent meets the form in a slow test.

    Ids that require an instance or parameters are left out.
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
