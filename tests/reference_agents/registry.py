"""The reference of each published agent, and the hyperparameters that tests try."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np

from clickgym.agents import AGENTS, CompiledAgent, Learner
from tests.helpers.registries import from_own_test

from . import draws, indices
from .comparisons import BatchRankReference, BubbleRankReference, TopRankReference
from .detection import GLRReference
from .linear import LinearTSReference, LinUCBReference
from .posterior import PBMHBReference, PDGDReference
from .reference import AnyList, Reference, Told
from .unimodal import GRABReference, UniRankReference


def _bubble(
    L: int, K: int, initial: Any, delta: float | None, horizon: int | None, base: list[int]
) -> BubbleRankReference:
    log_delta = 4 * math.log(horizon or 2) if delta is None else -math.log(delta)
    return BubbleRankReference(base, K, log_delta, doubling=delta is None and horizon is None)


_bubble.edges = {"horizon": (2,)}


def _discounted(
    L: int, K: int, gamma: float | None, epsilon: float, horizon: int | None, feedback: str
) -> indices.DiscountedReference:
    def gamma_at(t: int) -> float:
        return 1 - 0.25 / math.sqrt(horizon or indices.doubled(t)) if gamma is None else gamma

    return indices.DiscountedReference(L, K, gamma_at, epsilon, feedback)


def _window(
    L: int, K: int, tau: int | None, epsilon: float, horizon: int | None, feedback: str
) -> indices.WindowReference:
    def tau_at(t: int) -> int:
        n = horizon or indices.doubled(t)
        return max(math.ceil(2 * math.sqrt(n * math.log(n))), 1) if tau is None else tau

    return indices.WindowReference(L, K, tau_at, epsilon, feedback)


def _lin_ucb(feedback: str = "all", **edges: Any) -> Callable[..., LinUCBReference]:
    def of(
        L: int, K: int, d: int, ridge: float | None, alpha: float | None, examination: Any = None
    ) -> LinUCBReference:
        weights = np.ones((K, K)) if examination is None else np.asarray(examination)
        weights = np.tile(weights[:, None], K) if weights.ndim == 1 else weights
        return LinUCBReference(
            L, K, d, weights=weights, feedback=feedback, ridge=ridge, alpha=alpha
        )

    of.edges = edges
    return of


def _any_list(L: int, K: int, **given: Any) -> AnyList:
    return AnyList(L, K)


REFERENCES: dict[str, Callable[..., Reference]] = {
    "Fixed": Told,
    "Oracle": Told,
    "Random": AnyList,
    "EpsilonGreedy": indices.GreedyReference,
    "CascadeUCB1": lambda L, K, **given: indices.CascadeReference(L, K, "UCB1", **given),
    "CascadeUCBV": indices.VarianceReference,
    "CascadeKLUCB": lambda L, K, **given: indices.CascadeReference(L, K, "KL", **given),
    "CascadeTS": draws.CascadeTSReference,
    "DCMKLUCB": indices.DCMReference,
    "RankedExp3": draws.RankedExp3Reference,
    "RankedKLUCB": draws.RankedKLUCBReference,
    "BatchRank": BatchRankReference,
    "GRAB": GRABReference,
    "UniRank": UniRankReference,
    "TopRank": lambda L, K, horizon, delta: TopRankReference(L, K, delta or 1 / horizon),
    "BubbleRank": _bubble,
    "CascadeDUCB": _discounted,
    "CascadeSWUCB": _window,
    "GLRCascadeKLUCB": GLRReference,
    "PBMHB": PBMHBReference,
    "PBMUCB": lambda L, K, **known: indices.PBMUCBReference(L, **known),
    "PBMPIE": lambda L, K, **known: indices.PBMPIEReference(L, **known),
    "PBMTS": lambda L, K, **known: draws.PBMTSReference(L, **known),
    "BCMPTS": lambda L, K, **known: draws.BCMPTSReference(L, **known),
    "UBMLinUCB": _lin_ucb(examination=([[0.9, 0, 0], [0.6, 0.8, 0], [0.2, 0.3, 0.7]],)),
    "C2UCB": _lin_ucb(),
    "CMLinUCB": _lin_ucb("first_click"),
    "DCMLinUCB": _lin_ucb("last_click"),
    "PBMLinUCB": _lin_ucb(),
    "LinearTS": LinearTSReference,
    "PDGD": PDGDReference,
    "CascadeVI": _any_list,
    "SlateQ": _any_list,
}
"""The functions that create the reference of an agent, from L, K (and d) and the agent's
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
def reference_maker(name: str) -> Any:
    """Return the function that creates the reference of a published agent: its entry in
    `REFERENCES`, or the class ``NAMEReference`` in the test file of the agent's module.
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
        own = getattr(reference_maker(name), "edges", own)
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
    return reference_maker(type(agent).__name__)(*sizes, **arguments)
