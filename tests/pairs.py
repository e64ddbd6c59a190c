"""The pairs of an agent and a click model that `make test` plays: each is compiled, and that is most of the tests' time.

Every agent meets PBM and one other model at least, every model eight agents at least, and tests that need some pair take one
of these. The other pairs are played by `make test-slow`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import pytest
from reference_agents import MODELS

from clickgym.agents import AGENTS

BESIDES_PBM: dict[str, tuple[str, ...]] = {
    "Fixed": ("CM", "UBM"),
    "Random": ("CM", "DBN"),
    "Oracle": ("CM", "CCM"),
    "EpsilonGreedy": ("CM", "DCM"),
    "CascadeUCB1": ("CM", "CCM"),
    "CascadeKLUCB": ("CM", "DBN"),
    "CascadeTS": ("CM", "DCM"),
    "DCMKLUCB": ("DCM",),
    "PIE": ("DCM", "CCM"),
    "RankedExp3": ("DCM",),
    "RankedUCB1": ("DBN",),
    "RankedKLUCB": ("UBM",),
    "BatchRank": ("CM", "UBM"),
    "MergeRank": ("DCM", "TPBM"),
    "TopRank": ("CM", "DCM", "UBM", "DBN", "CCM", "TPBM"),
    "GRAB": ("CCM", "TPBM"),
    "SGRAB": ("UBM", "TPBM"),
    "UniRank": ("DBN", "CCM"),
    "BubbleRank": ("CM", "DBN"),
    "CascadeDUCB": ("CM", "DBN"),
    "CascadeSWUCB": ("CM", "UBM"),
    "GLRCascadeUCB": ("CM", "DBN"),
    "GLRCascadeKLUCB": ("DCM",),
    "PBMUCB": ("UBM", "TPBM"),
    "PBMPIE": ("UBM", "TPBM"),
    "PBMTS": ("CCM", "TPBM"),
    "BCMPTS": ("CCM",),
    "PBMHB": ("TPBM",),
}

PAIRS = {(name, kind) for name in AGENTS for kind in ("PBM", *BESIDES_PBM.get(name, ("CM",)))}
"""Agent and model; an agent that the table does not have yet meets CM."""

CONTEXTUAL_PAIRS = {
    ("UBMLinUCB", "UBM"),
    ("UBMLinUCB", "DBN"),
    ("C2UCB", "CM"),
    ("C2UCB", "PBM"),
    ("C2UCB", "DCM"),
    ("C2UCB", "UBM"),
    ("C2UCB", "DBN"),
    ("C2UCB", "CCM"),
    ("C2UCB", "TPBM"),
    ("CMLinUCB", "CM"),
    ("CMLinUCB", "CCM"),
    ("DCMLinUCB", "CM"),
    ("DCMLinUCB", "DCM"),
    ("PBMLinUCB", "PBM"),
    ("PBMLinUCB", "TPBM"),
    ("LinearEpsilonGreedy", "CM"),
    ("LinearEpsilonGreedy", "UBM"),
    ("LinearTS", "CM"),
    ("LinearTS", "DCM"),
    ("PDGD", "PBM"),
    ("PDGD", "CM"),
}
"""The same of agents that rank by features."""


def model_of(env_id: str) -> str:
    """``"PBM"`` of ``"NonStationaryPBMRank-v0"``: the longest of the names that fit, as TPBM ends like PBM."""
    return max((kind for kind in MODELS if env_id.endswith(f"{kind}Rank-v0")), key=len)


def by_pair(names: Iterable[str], kinds: Iterable[str] = tuple(MODELS)) -> Any:
    """Parameters ``name`` and ``kind`` of a test: all pairs of agents and models, of which those outside the table are slow."""
    return _by_pair(("name", "kind"), product(names, kinds), lambda name, kind: (name, kind) in PAIRS | CONTEXTUAL_PAIRS)


def by_id(names: Iterable[str], ids: Iterable[str]) -> Any:
    """Parameters ``name`` and ``env_id`` of a test; an agent meets the forms of a model in turns."""
    forms = defaultdict(list)
    for env_id in ids:
        forms[model_of(env_id)].append(env_id)
    first = {pair: number for kind in forms for number, pair in enumerate(pair for pair in sorted(PAIRS) if pair[1] == kind)}

    def is_quick(name: str, env_id: str) -> bool:
        pair = name, model_of(env_id)
        if pair in CONTEXTUAL_PAIRS:
            return True
        return pair in first and forms[pair[1]][first[pair] % len(forms[pair[1]])] == env_id

    return _by_pair(("name", "env_id"), product(names, ids), is_quick)


def _by_pair(arguments: tuple[str, str], pairs: Iterable[tuple[str, str]], is_quick: Callable[[str, str], bool]) -> Any:
    each = [pytest.param(*pair, marks=[] if is_quick(*pair) else pytest.mark.slow) for pair in pairs]
    return pytest.mark.parametrize(arguments, each)
