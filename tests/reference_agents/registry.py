"""The reference of each published agent, and the hyperparameters that tests try."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np

from clickgym.agents import AGENTS, CompiledAgent, Learner
from tests.helpers.registries import from_own_test

from . import draws, indices, linear
from .comparisons import BatchRankReference, BubbleRankReference, TopRankReference
from .detection import GLRReference
from .posterior import PBMHBReference, PDGDReference
from .reference import AnyList, Reference, Told
from .unimodal import GRABReference, UniRankReference

REFERENCES: dict[str, type[Reference]] = {
    "Fixed": Told,
    "Oracle": Told,
    "Random": AnyList,
    "EpsilonGreedy": indices.GreedyReference,
    "CascadeUCB1": indices.UCB1Reference,
    "CascadeUCBV": indices.VarianceReference,
    "CascadeKLUCB": indices.CascadeReference,
    "CascadeTS": draws.CascadeTSReference,
    "DCMKLUCB": indices.DCMReference,
    "RankedExp3": draws.RankedExp3Reference,
    "RankedKLUCB": draws.RankedKLUCBReference,
    "BatchRank": BatchRankReference,
    "GRAB": GRABReference,
    "UniRank": UniRankReference,
    "TopRank": TopRankReference,
    "BubbleRank": BubbleRankReference,
    "CascadeDUCB": indices.DiscountedReference,
    "CascadeSWUCB": indices.WindowReference,
    "GLRCascadeKLUCB": GLRReference,
    "PBMHB": PBMHBReference,
    "PBMUCB": indices.PBMUCBReference,
    "PBMPIE": indices.PBMPIEReference,
    "PBMTS": draws.PBMTSReference,
    "BCMPTS": draws.BCMPTSReference,
    "UBMLinUCB": linear.UBMLinUCBReference,
    "C2UCB": linear.LinUCBReference,
    "CMLinUCB": linear.CMLinUCBReference,
    "DCMLinUCB": linear.DCMLinUCBReference,
    "PBMLinUCB": linear.LinUCBReference,
    "LinearTS": linear.LinearTSReference,
    "PDGD": PDGDReference,
    "CascadeVI": AnyList,
    "SlateQ": AnyList,
}
"""The reference's class of each agent. Its constructor takes L, K (and d), and then the agent's
hyperparameters. The tests of agents that see a state have references of their own.
"""

EDGES: dict[str, Sequence[Any]] = {
    "feedback": ("first_click",),
    "c": (0.0,),
    "epsilon": (0.7,),
    "gamma": (0.3,),
    "horizon": (5,),
    "tau": (7,),
    "alpha": (0.0, 0.7),
    "ridge": (0.01,),
    "delta": (0.5,),
    "examination": ([0.2, 1.0, 0.5],),
    "ranking": ([4, 2, 0],),
    "initial": ([2, 0, 4, 3, 1],),
    "exploration": (1.0,),
    "bonus": (0.1,),
    "mean_sessions": (3,),
    "click_rewards": (np.arange(10).reshape(2, 5) / 5,),
}
"""Values of hyperparameters that tests try for each agent whose reference names no others."""
SIZES = {"n_items", "n_positions", "n_features", "n_states", "seed"}
OTHERS = {"feature_scale", "n_vertices"}  # see test_pdgd and test_restarts


@cache
def reference_class(name: str) -> Any:
    """Return the class of the reference of a published agent: its entry in `REFERENCES`, or the
    class ``NAMEReference`` in the test file of the agent's module.
    """
    if name in REFERENCES:
        return REFERENCES[name]
    return from_own_test(AGENTS[name], f"{name}Reference")


def edges_of(name: str, parameter: str) -> Sequence[Any]:
    """Return the values of a hyperparameter that tests try in addition to its default, from the
    attribute ``edges`` of the reference's class, or from `EDGES`.
    """
    if name not in AGENTS or issubclass(AGENTS[name], Learner):
        return ()
    own: Mapping[str, Sequence[Any]] = {}
    with suppress(AssertionError):  # without a reference, tests/agents/test_references.py fails
        own = getattr(reference_class(name), "edges", own)
    return own.get(parameter, EDGES.get(parameter, ()))


def tried_options(name: str) -> list[tuple[str, Any]]:
    """Return the hyperparameters of an agent with each value that tests try, or with None if they
    try none.
    """
    keys = inspect.signature(AGENTS[name]).parameters.keys() - SIZES - OTHERS
    return [(key, value) for key in sorted(keys) for value in edges_of(name, key) or [None]]


def reference_of(agent: CompiledAgent) -> Reference:
    """Create the reference of an agent that has not yet ranked."""
    arguments = dict(agent.hyperparameters)
    sizes = [agent.n_items, agent.n_positions]
    if "n_features" in arguments:
        sizes.append(arguments.pop("n_features"))
    if type(agent).__name__ == "BubbleRank":  # items that the given list leaves out are drawn
        arguments["base"] = agent.state.base.tolist()
    return reference_class(type(agent).__name__)(*sizes, **arguments)
