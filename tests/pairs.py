"""The pairs of an agent and a click model that `make test` plays: each is compiled, and that is
most of the tests' time.

Every agent meets PBM and one other model at least, every model eight agents at least, and tests
that need some pair take one of these. The other pairs are played by `make test-slow`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import pytest
from reference_agents import MODELS
from registries import default_ids

from clickgym.agents import AGENTS, CONTEXTUAL_AGENTS
from clickgym.envs import ENVIRONMENTS

REGISTERED = {env_id: ENVIRONMENTS[env_id] for env_id in default_ids()}
"""The environments that need no argument."""

BESIDES_PBM = {
    "Fixed": "CM DCM UBM TPBM",
    "Random": "CM DCM DBN CCM",
    "Oracle": "CM UBM DBN CCM",
    "EpsilonGreedy": "CM DCM TPBM",
    "CascadeUCB1": "CM CCM TPBM",
    "CascadeKLUCB": "CM DBN",
    "CascadeTS": "DCM",
    "DCMKLUCB": "DCM",
    "RankedExp3": "CM",
    "RankedKLUCB": "CM",
    "BatchRank": "CM UBM",
    "TopRank": "CM DCM UBM DBN CCM TPBM",
    "GRAB": "TPBM",
    "UniRank": "DBN",
    "BubbleRank": "DCM DBN",
    "CascadeDUCB": "CM DBN CCM",
    "CascadeSWUCB": "CM UBM",
    "GLRCascadeKLUCB": "CM",
    "PBMUCB": "CM TPBM",
    "PBMPIE": "UBM",
    "PBMTS": "CCM",
    "BCMPTS": "CCM",
    "PBMHB": "TPBM",
}
"""Agents that compile fast meet more models than others."""

PAIRS = {(name, kind) for name in AGENTS for kind in ("PBM", *BESIDES_PBM.get(name, "CM").split())}
"""Agent and model; an agent that the table does not have yet meets CM."""

BY_FEATURES = {
    "UBMLinUCB": "PBM UBM",
    "C2UCB": "PBM CM DCM UBM DBN CCM TPBM",
    "CMLinUCB": "PBM CM CCM",
    "DCMLinUCB": "PBM CM DCM",
    "PBMLinUCB": "PBM TPBM",
    "LinearTS": "PBM CM",
    "PDGD": "PBM CM",
}

CONTEXTUAL_PAIRS = {
    (name, kind) for name in CONTEXTUAL_AGENTS for kind in BY_FEATURES.get(name, "PBM CM").split()
}
"""The same of agents that rank by features."""


def model_of(env_id: str) -> str:
    """``"PBM"`` of ``"NonStationaryPBMRank-v0"``."""
    return REGISTERED[env_id].click_model.name()


def by_pair(names: Iterable[str], kinds: Iterable[str] = tuple(MODELS)) -> Any:
    """Parameters ``name`` and ``kind`` of a test: all pairs of agents and models, of which those
    outside the table are slow.
    """
    return _by_pair(
        ("name", "kind"),
        product(names, kinds),
        lambda name, kind: (name, kind) in PAIRS | CONTEXTUAL_PAIRS,
    )


def by_id(names: Iterable[str], ids: Iterable[str], most: int = 9) -> Any:
    """Parameters ``name`` and ``env_id`` of a test; an agent meets the forms of a model in turns,
    an id so many at most.

    Ids that need an instance or parameters are left out.
    """
    forms, ids = defaultdict(list), [env_id for env_id in ids if env_id in REGISTERED]
    for env_id in ids:
        forms[model_of(env_id)].append(env_id)
    turns = {
        pair: number
        for kind in forms
        for number, pair in enumerate(pair for pair in sorted(PAIRS) if pair[1] == kind)
    }

    def is_quick(name: str, env_id: str) -> bool:
        pair = name, model_of(env_id)
        if pair in CONTEXTUAL_PAIRS:
            return True
        n_forms = len(forms[pair[1]])
        return (
            pair in turns
            and turns[pair] < most * n_forms
            and forms[pair[1]][turns[pair] % n_forms] == env_id
        )

    return _by_pair(("name", "env_id"), product(names, ids), is_quick)


def _by_pair(
    arguments: tuple[str, str],
    pairs: Iterable[tuple[str, str]],
    is_quick: Callable[[str, str], bool],
) -> Any:
    each = [
        pytest.param(*pair, marks=[] if is_quick(*pair) else pytest.mark.slow) for pair in pairs
    ]
    return pytest.mark.parametrize(arguments, each)
