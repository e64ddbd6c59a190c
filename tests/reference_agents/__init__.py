"""Reference implementations of the agents, written in plain Python from the papers' pseudo-code,
against which the compiled kernels are tested.

A `Reference` makes no random draws. It receives the list that an agent showed, decides whether the
algorithm allows this list in its current state, and learns from the clicks. A test can therefore
follow an agent session by session, regardless of the agent's random choices. `reference_of` creates
the reference of any published agent, with a function in `REFERENCES` or the class ``NAMEReference``
in the agent's own test file.

The module also defines a small click model of each class, and a function that creates any agent for
such a model.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from clickgym.agents import AGENTS, CompiledAgent, Learner
from clickgym.envs import (
    CLICK_MODELS,
    CascadeModel,
    ClickChainModel,
    ClickModel,
    DependentClickModel,
    DynamicBayesianModel,
    PositionBasedModel,
    TrustBiasModel,
    UserBrowsingModel,
)
from tests.helpers.click_stories import make_model
from tests.helpers.registries import from_own_test

from .bounds import bernoulli_kl as bernoulli_kl
from .bounds import lower_bound as lower_bound
from .bounds import upper_bound as upper_bound
from .comparisons import BatchRankReference, BubbleRankReference, TopRankReference
from .detection import GLRReference
from .draws import (
    BCMPTSReference,
    CascadeTSReference,
    PBMTSReference,
    RankedExp3Reference,
    RankedKLUCBReference,
)
from .indices import (
    CascadeReference,
    DCMReference,
    DiscountedReference,
    GreedyReference,
    PBMPIEReference,
    PBMUCBReference,
    VarianceReference,
    WindowReference,
    doubled,
)
from .linear import LinearTSReference, LinUCBReference
from .posterior import PBMHBReference, PDGDReference
from .reference import AnyList, Reference, Told
from .unimodal import GRABReference, UniRankReference

# -------------------------------------------------------------------------------- models and agents

ATTRACTION = [0.2, 0.7, 0.1, 0.5, 0.3]
MODELS: dict[str, ClickModel] = {
    "CM": CascadeModel(ATTRACTION, n_positions=3),
    "PBM": PositionBasedModel(ATTRACTION, [0.9, 0.4, 0.6]),
    "DCM": DependentClickModel(ATTRACTION, [0.6, 0.3, 0.8]),
    "UBM": UserBrowsingModel(ATTRACTION, [[0.9, 0.0, 0.0], [0.6, 0.8, 0.0], [0.3, 0.5, 0.7]]),
    "DBN": DynamicBayesianModel(ATTRACTION, [0.5, 0.3, 0.9, 0.6, 0.2], 0.9, n_positions=3),
    "CCM": ClickChainModel(ATTRACTION, 0.9, 0.8, 0.3, n_positions=3),
    "TPBM": TrustBiasModel(ATTRACTION, [0.9, 0.4, 0.6]),
}
"""A small model of every class of click models, whose items are never in order of attraction. A
class that is not listed gets the same attractions, and random values for its other parameters.
"""


_rng = np.random.default_rng(0)


def _probabilities(size: Any) -> Any:
    return ATTRACTION if size == len(ATTRACTION) else _rng.random(size)


for _short, _class in CLICK_MODELS.items():
    MODELS.setdefault(_short, make_model(_class, 5, 3, _probabilities))


@cache
def _parameters(name: str) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(AGENTS[name]).parameters


def make(
    name: str,
    model: ClickModel,
    *,
    horizon: int = 100,
    n_features: int = 2,
    seed: Any = 0,
    **arguments: Any,
) -> Any:
    """Create a published agent for a click model, with the arguments that the agent's constructor
    requires.
    """
    accepted = _parameters(name)
    known: dict[str, Any] = {"horizon": horizon, "n_features": n_features}
    if "ranking" in accepted:
        best = model.optimal_ranking()
        known["ranking"] = best if name == "Oracle" else best[::-1]
    known |= {"n_states": 2, "mean_sessions": 10, "click_rewards": np.ones((2, model.n_items))}
    known["examination"] = (
        model.examination
        if isinstance(model, PositionBasedModel)
        else np.linspace(1.0, 0.5, model.n_positions)
    )
    if AGENTS[name].requires.get("examination") == "browsing":
        known["examination"] = np.tril(np.full(2 * (model.n_positions,), 0.7))
    arguments = {key: value for key, value in known.items() if key in accepted} | arguments
    return AGENTS[name](model.n_items, model.n_positions, seed=seed, **arguments)


# --------------------------------------------------------------------------------- their references


def _bubble(
    L: int, K: int, initial: Any, delta: float | None, horizon: int | None, base: list[int]
) -> BubbleRankReference:
    log_delta = 4 * math.log(horizon or 2) if delta is None else -math.log(delta)
    return BubbleRankReference(base, K, log_delta, doubling=delta is None and horizon is None)


_bubble.edges = {"horizon": (2,)}


def _discounted(
    L: int, K: int, gamma: float | None, epsilon: float, horizon: int | None, feedback: str
) -> DiscountedReference:
    def gamma_at(t: int) -> float:
        return 1 - 0.25 / math.sqrt(horizon or doubled(t)) if gamma is None else gamma

    return DiscountedReference(L, K, gamma_at, epsilon, feedback)


def _window(
    L: int, K: int, tau: int | None, epsilon: float, horizon: int | None, feedback: str
) -> WindowReference:
    def tau_at(t: int) -> int:
        n = horizon or doubled(t)
        return max(math.ceil(2 * math.sqrt(n * math.log(n))), 1) if tau is None else tau

    return WindowReference(L, K, tau_at, epsilon, feedback)


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
    "EpsilonGreedy": GreedyReference,
    "CascadeUCB1": lambda L, K, **given: CascadeReference(L, K, "UCB1", **given),
    "CascadeUCBV": VarianceReference,
    "CascadeKLUCB": lambda L, K, **given: CascadeReference(L, K, "KL", **given),
    "CascadeTS": CascadeTSReference,
    "DCMKLUCB": DCMReference,
    "RankedExp3": RankedExp3Reference,
    "RankedKLUCB": RankedKLUCBReference,
    "BatchRank": BatchRankReference,
    "GRAB": GRABReference,
    "UniRank": UniRankReference,
    "TopRank": lambda L, K, horizon, delta: TopRankReference(L, K, delta or 1 / horizon),
    "BubbleRank": _bubble,
    "CascadeDUCB": _discounted,
    "CascadeSWUCB": _window,
    "GLRCascadeKLUCB": GLRReference,
    "PBMHB": PBMHBReference,
    "PBMUCB": lambda L, K, **known: PBMUCBReference(L, **known),
    "PBMPIE": lambda L, K, **known: PBMPIEReference(L, **known),
    "PBMTS": lambda L, K, **known: PBMTSReference(L, **known),
    "BCMPTS": lambda L, K, **known: BCMPTSReference(L, **known),
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
hyper-parameters. The tests of agents that see a state have references of their own.
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
"""Values of hyper-parameters that tests try for each agent whose reference names no others."""


@cache
def reference_maker(name: str) -> Any:
    """Return the function that creates the reference of a published agent: its entry in
    `REFERENCES`, or the class ``NAMEReference`` in the test file of the agent's module.
    """
    if name in REFERENCES:
        return REFERENCES[name]
    return from_own_test(AGENTS[name], f"{name}Reference")


def edges_of(name: str, parameter: str) -> Sequence[Any]:
    """Return the values of a hyper-parameter that tests try in addition to its default, from the
    attribute ``edges`` of the reference's class, or from `EDGES`.
    """
    if name not in AGENTS or issubclass(AGENTS[name], Learner):
        return ()
    own = getattr(reference_maker(name), "edges", {})
    return own.get(parameter, EDGES.get(parameter, ()))


def as_plain(state: Any) -> dict[str, Any]:
    """Return a state as lists, which == can compare. Arrays that grow are cut to their filled part,
    because their size depends on the allocated memory.
    """
    arrays = {name: np.asarray(value).tolist() for name, value in state._asdict().items()}
    if "n_leaders" in arrays:
        filled = arrays["n_leaders"][0]
        arrays |= {name: arrays[name][:filled] for name in ("leaders", "counts")}
    return arrays


def reference_of(agent: CompiledAgent) -> Reference:
    """Create the reference of an agent that has not yet ranked."""
    arguments = dict(agent.hyperparameters)
    if "n_features" in arguments:
        sizes = (agent.n_items, agent.n_positions, arguments.pop("n_features"))
    else:
        sizes = (agent.n_items, agent.n_positions)
    if type(agent).__name__ == "BubbleRank":  # items that the given list leaves out are drawn
        arguments["base"] = agent.state.base.tolist()
    return reference_maker(type(agent).__name__)(*sizes, **arguments)


def follow(
    agent: CompiledAgent,
    reference: Reference,
    model: ClickModel | Callable[[int], ClickModel],
    sessions: int,
    seed: int = 1,
    n_features: int = 0,
) -> list[list[int]]:
    """Run an agent, check that its reference allows each list and agrees with the agent's state
    after each session, and return the lists.

    Args:
        agent: the agent, which has not yet ranked.
        reference: the agent's reference.
        model: the click model, or a function from the number of a session to its click model.
        sessions, seed: the number of sessions, and the seed of the clicks and features.
        n_features: the number of features, for contextual agents; the features are unrelated to the
            clicks.
    """
    rng, lists = np.random.default_rng(seed), []
    for session in range(sessions):
        features = rng.random((agent.n_items, n_features)) - 0.3 if n_features else None
        observation = {"features": features, "state": session % 2}
        ranking = agent.rank(observation)
        lists.append(ranking.tolist())
        assert reference.allows(lists[-1], getattr(agent, "state", None), features), (
            f"session {session + 1}: {ranking}"
        )
        users = model(session) if callable(model) else model
        clicks = users.sample(ranking, rng)
        agent.update(observation, ranking, clicks, float(clicks.sum()))
        reference.learn(lists[-1], clicks.tolist())
        assert reference.agrees(getattr(agent, "state", None)), f"session {session + 1}"
    return lists
