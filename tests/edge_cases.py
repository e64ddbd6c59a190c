"""Short runs of every agent at the edges of everything: what `tests/agents/test_edges.py` plays.

A case is a function of its agent's name and a seed: click model (of any class, changing or not,
contextual for the contextual agents), sizes, probabilities at 0, 1 and next to them,
hyper-parameters at the ends of their ranges, reward, feedback, features. `play` plays it in both
engines, and says what is at fault: a list that the reference does not allow, a state that is not
that of the reference, lists or states in which the engines differ, a number that is not finite, or
an error.
"""

from __future__ import annotations

import inspect
import re
import warnings
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from engines import InPython, chunks_of, run_reporting
from reference_agents import Reference, edges_of, plain, reference_of
from registries import CLICK_AGENTS, CONTEXTUAL_AGENTS

import clickgym
from clickgym.agents import Agent, CompiledAgent
from clickgym.core.state import declared
from clickgym.envs import (
    CLICK_MODELS,
    ClickEnv,
    ClickModel,
    ContextualModel,
    LabelledModel,
    LinearModel,
    PiecewiseStationaryModel,
    PositionBasedModel,
    Users,
)

EVERY_AGENT = {**CLICK_AGENTS, **CONTEXTUAL_AGENTS}

PROBABILITIES = (0.0, 1.0, 5e-324, 1e-300, 1e-12, 1e-6, 0.5, 1 - 1e-6, 1 - 1e-12, 1 - 2**-53)
ROUND = (0.5, 0.7, 0.8, 0.9, 1.0)
SCALES = (1e-300, 1e-12, 1e-3, 0.5, 1.0, 1e3, 1e12, 1e100)
RIDGES = (1e-6, 1e-3, 1.0, 1e3, 1e12, 1e100)
LEAST_EXAMINATION, LEAST_DELTA = 1e-100, 2e-300
HORIZONS = (1, 2, 5, 60, 10**7)


@dataclass(frozen=True)
class Case:
    """What is played.

    Attributes:
        name, seed: what the rest follows from.
        users, reward, cutoff: of the environment.
        magnify: by what the environment's features are multiplied; other than 1 it is played in
        Python only.
        arguments: of the agent.
        n_sessions: how many.
    """

    name: str
    seed: int
    users: Users
    reward: str
    cutoff: int | None
    magnify: float
    arguments: dict[str, Any]
    n_sessions: int

    def env(self) -> gym.Env:
        env = ClickEnv(self.users, self.reward, self.cutoff)
        return env if self.magnify == 1.0 else Magnified(env, self.magnify)

    def agent(self) -> CompiledAgent:
        """Raises ValueError where the agent refuses its arguments."""
        return EVERY_AGENT[self.name](
            self.users.n_items, self.users.n_positions, seed=self.seed, **self.arguments
        )

    def __str__(self) -> str:
        users = f"{self.users.kind}, L={self.users.n_items}, K={self.users.n_positions}"
        return (
            f"{self.name}, seed {self.seed} ({users}, {self.arguments}, {self.n_sessions} sessions)"
        )


class Magnified(gym.ObservationWrapper):
    """Features of any norm, which contextual models do not have."""

    def __init__(self, env: gym.Env, factor: float) -> None:
        super().__init__(env)
        self.factor = factor

    def observation(self, observation: Any) -> Any:
        return {**observation, "features": self.factor * observation["features"]}


# ------------------------------------------------------------ drawing


def draw(
    name: str, seed: int, kinds: Sequence[str] = tuple(CLICK_MODELS), most_sessions: int = 40
) -> Case:
    """The case of an agent and a seed, with a click model of one of the given kinds."""
    rng = np.random.default_rng([zlib.crc32(name.encode()), seed])
    n_items = int(rng.choice([1, 2, 2, 3, 4, 6]))
    n_positions = int(rng.choice([1, n_items, rng.integers(1, n_items + 1)]))
    # Each kind has its own number, so that a new click model leaves most cases as they are.
    kind = CLICK_MODELS[max(kinds, key=lambda kind: zlib.crc32(f"{name} {seed} {kind}".encode()))]
    users: Any = _click_model(kind, n_items, n_positions, rng)
    n_sessions = int(rng.integers(5, most_sessions + 1))
    if name in CONTEXTUAL_AGENTS:
        users = _contextual(users, rng)
    elif rng.random() < 0.15:
        changed = _click_model(kind, n_items, n_positions, rng)
        users = PiecewiseStationaryModel(
            [users, changed], starts=[0, int(rng.integers(1, n_sessions))]
        )
    magnify = (
        float(rng.choice([1e3, 1e5])) if name in CONTEXTUAL_AGENTS and rng.random() < 0.1 else 1.0
    )
    reward = str(rng.choice(users.rewards))
    cutoff = None if rng.random() < 0.7 else int(rng.integers(1, n_positions + 1))
    return Case(
        name, seed, users, reward, cutoff, magnify, _arguments(name, users, rng), n_sessions
    )


def _probabilities(
    shape: tuple[int, ...], rng: np.random.Generator, least: float = 0.0
) -> np.ndarray:
    """Random ones, edges, all equal, one certain, or one impossible, or round ones, whose quotients
    are nearly whole.
    """
    edges = np.unique(np.maximum(PROBABILITIES, least))
    how = rng.integers(7)
    if how == 6:
        return rng.choice(ROUND, shape)
    if how == 0:
        return np.maximum(rng.random(shape), least)
    if how == 1:
        return np.full(shape, rng.choice(edges))
    values = rng.choice(edges, shape)
    if how in (2, 3):  # one item, or position, unlike all others
        values[...] = edges.min() if how == 2 else 1.0
        values.flat[rng.integers(values.size)] = 1.0 if how == 2 else edges.min()
    elif how == 4:
        values = np.where(rng.random(shape) < 0.5, values, np.maximum(rng.random(shape), least))
    return values


def _click_model(
    kind: type[ClickModel], n_items: int, n_positions: int, rng: np.random.Generator
) -> ClickModel:
    sizes = {"L": (n_items,), "K": (n_positions,), "KK": (n_positions, n_positions), "": ()}
    positions = (
        {"n_positions": n_positions} if "n_positions" in inspect.signature(kind).parameters else {}
    )
    own = kind.example_parameters(n_items, n_positions, rng)
    if own is not None:
        return kind(**own)
    while True:
        drawn = {name: _probabilities(sizes[shape], rng) for name, shape in kind.shapes.items()}
        given: dict[str, Any] = {name: values.tolist() for name, values in drawn.items()}
        if kind.short == "TPBM" and rng.random() < 0.5:  # with the standard trust
            given = {name: given[name] for name in ("attraction", "examination")}
        try:
            return kind(**given, **positions)
        except ValueError:  # trust that misleads, which no model has
            pass


def _contextual(base: ClickModel, rng: np.random.Generator) -> ContextualModel:
    """Attraction from labels at the edges, or linear; features that are zero, equal, tiny, d = 1 or
    d > L.

    The pool has a few candidates more than a session.
    """
    n, d = base.n_items + int(rng.integers(0, 3)), int(rng.choice([1, 2, 3, base.n_items + 2]))
    items = np.abs(rng.normal(size=(n, d)))
    items /= np.linalg.norm(items, axis=1, keepdims=True) * rng.choice([1.0 + 1e-12, 2.0])
    how = rng.integers(5)
    if how == 0:
        items[...] = 0.0
    elif how == 1:
        items[...] = items[0]
    elif how == 2:
        items *= rng.choice([1e-300, 1e-12, 1.0], (n, 1))
    elif how == 3:
        items = np.eye(n, d)
    others = {name: [_probabilities((n,), rng).tolist()] for name in base.item_parameters()[1:]}
    if rng.random() < 0.5:
        theta = rng.random(d) * (rng.random(d) < 0.7)
        theta /= max(np.linalg.norm(theta) * (1 + 1e-12), 1.0)
        return LinearModel(
            base, theta, items, **{name: values[0] for name, values in others.items()}
        )
    return LabelledModel(base, [np.arange(n)], [_probabilities((n,), rng)], items, **others)


def _arguments(name: str, users: Users, rng: np.random.Generator) -> dict[str, Any]:
    n_items, n_positions = users.n_items, users.n_positions
    positive = [p for p in PROBABILITIES if p > 0]
    below_one = [p for p in positive if p < 1]
    lists = [
        None,
        rng.permutation(n_items)[:n_positions].tolist(),
        rng.permutation(n_items).tolist(),
    ]
    known = _probabilities((n_positions,), rng, LEAST_EXAMINATION)
    # else the agent is told what is not so
    if isinstance(users, PositionBasedModel) and rng.random() < 0.7:
        known = np.maximum(users.examination, LEAST_EXAMINATION)
    if name == "UBMLinUCB":
        known = _probabilities((n_positions, n_positions), rng)
    values: dict[str, Callable[[], Any]] = {
        "horizon": lambda: int(rng.choice(HORIZONS)),
        "feedback": lambda: str(rng.choice(["first_click", "last_click"])),
        "ranking": lambda: lists[1],
        "examination": known.tolist,
        "epsilon": lambda: float(rng.choice(PROBABILITIES if "Greedy" in name else SCALES)),
        "gamma": lambda: (
            int(rng.choice([1, 2, 10, 10**9])) if "GRAB" in name else float(rng.choice(positive))
        ),
        "delta": lambda: max(
            float(rng.choice(below_one)), 0.0 if name == "BubbleRank" else LEAST_DELTA
        ),
        "tau": lambda: int(rng.choice([1, 2, 7, 1000])),
        "position_order": lambda: rng.permutation(n_positions).tolist(),
        "initial": lambda: lists[int(rng.integers(3))],
        "alpha": lambda: float(rng.choice([0.0, *SCALES])),
        "ridge": lambda: float(rng.choice(RIDGES)),
        "c": lambda: float(rng.choice(SCALES if name == "PBMHB" else [0.0, 1.0, 3.0, 100.0])),
        "n_sweeps": lambda: int(rng.choice([1, 2, 5])),
        "n_segments": lambda: int(rng.choice([1, 4, 10**6])),
        "exploration": lambda: float(rng.choice(PROBABILITIES)),
        "n_vertices": lambda: 1000,  # fewer may miss a change
        "learning_rate": lambda: float(rng.choice([1e-12, 0.1, 1.0, 1e3])),
        "variance": lambda: float(rng.choice([0.05, 8.0])),
        "bias": lambda: float(rng.choice([0.05, 8.0])),
        "fix_first": lambda: bool(rng.random() < 0.5),
        "n_features": lambda: users.n_features,  # type: ignore[attr-defined]
    }
    arguments = {}
    for key, parameter in list(inspect.signature(EVERY_AGENT[name]).parameters.items())[2:]:
        if edges := edges_of(name, key):
            values[key] = lambda edges=edges: edges[rng.integers(len(edges))]
        required = parameter.default is inspect.Parameter.empty
        if (
            parameter.kind is not parameter.VAR_KEYWORD
            and key != "seed"
            and (key in values or required)
            and (
                required
                or rng.random() < (0.4 if key in ("epsilon", "ridge", "alpha", "gamma") else 0.7)
            )
        ):
            arguments[key] = values[key]()
    if "horizon" in arguments:
        arguments["horizon"] = max(arguments["horizon"], _least_horizon(name, users, arguments))
    return arguments


def _least_horizon(name: str, users: Users, arguments: dict[str, Any]) -> int:
    """The shortest horizon that an agent takes, as it says when it refuses none at all."""
    try:
        EVERY_AGENT[name](users.n_items, users.n_positions, **arguments | {"horizon": 0})
    except ValueError as error:
        least = re.search(r"horizon is 0; expected an integer of at least (\d+)", str(error))
        return int(least[1]) if least else 1
    return 1


# ------------------------------------------------------------ playing


# Of a miss that is impossible, no other list, no item that is surely better, no candidate left.
BOUNDLESS = {"log_miss", "ahead", "detour", "potential", "weakest", "log_rest", "stay"}


def what_is_not_finite(state: Any) -> str:
    """The first number that is not finite, after `rank`, when every index is that of the present
    counts; ``""`` if all are.
    """
    counts = [getattr(state, name) for name in ("examined", "displays") if name in state._fields]
    # infinite for items that were never seen, as the state declares it
    unseen = {field.name for field in declared(type(state)) if field.initial == np.inf}
    for name, value in state._asdict().items():
        values = np.asarray(value)
        bad = ~np.isfinite(values)
        if bad.any() and name in unseen and counts and counts[0].shape == values.shape:
            bad &= ~((values == np.inf) & (counts[0] == 0))
        if bad.any() and name in BOUNDLESS:
            bad &= np.isnan(values)
        if bad.any():
            return f"{name}{np.argwhere(bad)[0].tolist()} is {values[bad][0]}"
    return ""


class Followed(Agent):
    """An agent whose every list and state is compared with its reference."""

    def __init__(self, agent: CompiledAgent, reference: Reference) -> None:
        self.agent, self.in_python, self.reference = agent, InPython(agent), reference
        self.lists: list[list[int]] = []
        self.fault = ""

    def _refuse_if(self, fault: str) -> None:
        if fault:
            self.fault = f"session {len(self.lists)}: {fault}"
            raise ValueError(self.fault)

    def rank(self, observation: Any) -> Any:
        ranking = self.in_python.rank(observation)
        self.lists.append(ranking.tolist())
        features = observation["features"] if isinstance(observation, dict) else None
        self._refuse_if(what_is_not_finite(self.agent.state))
        if not self.reference.allows(ranking.tolist(), self.agent.state, features):
            self._refuse_if("the reference does not allow the list")
        return ranking

    def update(self, observation: Any, ranking: Any, clicks: Any, reward: float) -> None:
        self.in_python.update(observation, ranking, clicks, reward)
        self.reference.learn(ranking.tolist(), clicks.tolist())
        if not self.reference.agrees(self.agent.state):
            self._refuse_if("the state is not that of the reference")


def play(case: Case, *, compiled: bool = True) -> str:
    """Play a case in Python, and in compiled code; what is at fault, ``""`` if nothing is, or
    ``"refused: ..."``.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of weights that increase with the position
        try:
            agent, second = case.agent(), case.agent()
        except ValueError as error:
            return f"refused: {error}"
        followed = Followed(agent, reference_of(agent))
        fault, regret = _played_in_python(case, followed)
        if fault or not compiled or case.magnify != 1.0:
            return fault
        return _played_compiled(case, second, followed, regret)


def _played_in_python(case: Case, followed: Followed) -> tuple[str, np.ndarray]:
    """What is at fault, and the regret after each session."""
    steps = np.arange(1, case.n_sessions + 1)
    try:
        result = clickgym.run(
            followed,
            case.env(),
            case.n_sessions,
            seed=case.seed,
            checkpoints=steps,
            engine="python",
        )
    except Exception as error:
        return followed.fault or f"in Python, {error!r}", steps
    least = np.diff(result.regret, prepend=0.0).min()
    return ("" if least >= -1e-9 else f"a regret of {least}"), result.regret


def _played_compiled(
    case: Case, agent: CompiledAgent, followed: Followed, regret: np.ndarray
) -> str:
    """What differs from the sessions in Python."""
    env, lists = case.env(), []
    try:
        with chunks_of(1):
            result = run_reporting(
                agent,
                env,
                case.n_sessions,
                seed=case.seed,
                checkpoints=np.arange(1, case.n_sessions + 1),
                engine="compiled",
                on_chunk=lambda _: lists.append(env.unwrapped.last_session()[0].tolist()),
            )
    except Exception as error:
        return f"compiled, {error!r}"
    if lists != followed.lists:
        return "the lists of the engines differ"
    same = plain(agent.state) == plain(followed.agent.state)
    same &= agent.rng.bit_generator.state == followed.agent.rng.bit_generator.state
    if not same or not np.array_equal(result.regret, regret):
        return "the engines end in other states"
    return ""
