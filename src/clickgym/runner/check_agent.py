"""Check an agent against the interface of agents in one call."""

from __future__ import annotations

import copy
import random
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..agents import Agent, CompiledAgent, ContextualAgent, Learner, StateAgent
from ..agents.search_space import Range, check_search_space
from ..core.checks import short
from ..core.faults import Fault, expect, run_checks
from ..core.kernels import KernelError
from ..envs import CascadeMDP, ClickEnv, Instance, LinearModel, PositionBasedModel, load_instance
from ..envs.guests import clicks_of
from .labels import AgentLike
from .loop import AgentError, check_list
from .make import place_of, player_of
from .run import Result, run

ATTRACTION = np.array([0.2, 0.7, 0.1, 0.5, 0.3])
EXAMINATION = np.array([0.9, 0.6, 0.4])
PRODUCTION = np.array([2, 3, 0, 4, 1])
"""All items in the order in which they were ranked before."""
THETA = np.array([0.7, 0.2])
ORDERS = {
    "of rising attraction": np.argsort(ATTRACTION),
    "of falling attraction": np.argsort(-ATTRACTION),
}
SIZES = ((5, 3), (2, 2), (1, 1))
HOW_TO_DRAW = "draw only from numpy.random.default_rng(seed)"
SHORT = 10
"""A horizon that an agent is told, and that is passed: the algorithm may be finished by then, but
ranks on.
"""
SESSIONS = 300
LONG = 1000
SEEDS = 100
"""Runs of each order of the items."""
FIRST = (1, 4, 16)
"""Of whose first sessions the regret is compared."""
WHOLE_NUMBERS = (1, 2)
"""Values of hyper-parameters that are floats: given as integers they mean the same."""
SIGMAS = 5.0
"""The difference of two means, in standard errors, that cannot be chance."""


def check_agent(agent: AgentLike) -> None:
    """Check that an agent keeps to the interface of `clickgym.agents.Agent`.

    It returns nothing, or raises an error that lists all faults.

    The agent plays small problems, which depend on the arguments of its constructor: items that
    stay the same; with ``n_features``, candidates with features; with ``n_states``, users with a
    memory. It checks the constructor. It checks the
    lists: distinct items, as many as positions, also with a single item and after the horizon. A
    seed must repeat the lists. Agents must not change one another or the arrays that they are
    given. The numbers of the items must mean nothing. A whole number for a hyper-parameter whose
    default is a float must mean the same as an integer. The ``search_space`` must fit the
    constructor and its defaults. For a `CompiledAgent` it also checks both engines, saving and
    loading, hyper-parameters and errors. It does not check whether the agent learns.

    Args:
        agent: as for `clickgym.make_agent`: a class, a `functools.partial` of it,
            ``"module:Class"``, or the name of an agent of the package, with hyper-parameters as
            ``"CascadeKLUCB:c=1.0"``.

    Raises:
        AssertionError: the agent has faults; the message has a line for each.
        ValueError, TypeError: there is no such agent, or it is generic RL, which has another
            interface.

    Example:
        >>> import clickgym
        >>> clickgym.check_agent("TopRank")
        >>> class Careless(clickgym.agents.Agent):
        ...     def __init__(self, n_items, n_positions, *, seed=None):
        ...         self.n_positions = n_positions
        ...
        ...     def rank(self, observation):
        ...         return [0] * self.n_positions
        ...
        ...     def update(self, observation, ranking, clicks, reward): ...
        >>> clickgym.check_agent(Careless)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        AssertionError: Careless breaks the interface of agents:
        - lists: Careless, session 1: bad ranking [0, 0, 0]: position 1 shows item 0 again, ...
    """
    trial = _Trial(agent)
    then = [trial.seeds, trial.company, trial.inputs, trial.horizon, trial.numbers_of_items]
    then += [trial.search_space, trial.whole_numbers, trial.description]
    if isinstance(trial.first, CompiledAgent):
        then += [
            trial.ownership,
            trial.kinds_of_clicks,
            trial.refusals,
            trial.hyperparameters,
            trial.arguments,
            trial.kernels,
            trial.engines,
        ]
    if isinstance(trial.first, CompiledAgent) or all(
        hasattr(trial.first, name) for name in ("save", "load")
    ):
        then.append(trial.saving)
    run_checks(
        f"{trial.name} breaks the interface of agents", [trial.constructor, trial.lists], then
    )


class _Trial:
    """An agent and the problems on which it is checked."""

    def __init__(self, agent: AgentLike) -> None:
        self.player = player_of(agent)
        self.maker, self.given, self.name = (
            self.player.maker,
            self.player.hyperparameters,
            self.player.name,
        )
        if self.player.kind is Learner:
            raise TypeError(
                f"{self.name} is generic RL; check_agent checks subclasses of clickgym.agents.Agent"
            )
        self.parameters = self.player.parameters
        try:
            self.first: Any = self.make()
        except Exception:
            self.first = None  # `constructor` meets the same error and reports it

    # ----------------------------------------------------------------------------------------------------------- problems

    def env(
        self, n_items: int = 5, n_positions: int = 3, order: ArrayLike | None = None
    ) -> gym.Env:
        """An environment that shows what the agent needs; ``order`` says which item has each
        number.
        """
        numbers = np.arange(n_items) if order is None else np.asarray(order)
        users = PositionBasedModel(ATTRACTION[numbers], EXAMINATION[:n_positions])
        if "n_features" in self.player.observes and "n_features" not in self.given:
            return ClickEnv(LinearModel(users, THETA, _features(np.arange(max(n_items, 5)))))
        if "n_states" in self.player.observes and "n_states" not in self.given:
            described = load_instance(
                f"independent:n_items={n_items},n_positions={n_positions},n_states=2,mean_sessions=8"
            )
            return ClickEnv(described.model(CascadeMDP).relabelled(numbers))
        production = [
            int(np.flatnonzero(numbers == item)[0]) for item in PRODUCTION if item < n_items
        ]
        instance = Instance(
            "small", {"PBM": users}, n_positions, initial_ranking=np.array(production)
        )
        return ClickEnv("PBM", instance=instance)

    def make(self, env: gym.Env | None = None, horizon: int = SESSIONS, seed: Any = 0) -> Any:
        return self.player.make(place_of(self.env() if env is None else env), horizon, seed)

    def begin(self) -> tuple[Any, gym.Env, Any]:
        """An agent, its environment, and what is observed first."""
        agent, env = self.make(), self.env()
        return agent, env, env.reset(seed=0)[0]

    def play(self, agents: Sequence[Any], n_sessions: int, seed: int = 0) -> list[list[list[int]]]:
        """The lists of agents that take turns, each in an environment of its own, all with the same
        seed.
        """
        shown: list[list[list[int]]] = [[] for _ in agents]
        envs = [self.env() for _ in agents]
        observations = [env.reset(seed=seed)[0] for env in envs]
        for session in range(n_sessions):
            for number, (agent, env) in enumerate(zip(agents, envs, strict=True)):
                observations[number], ranking = _session(
                    agent, env, observations[number], session + 1
                )
                shown[number].append(np.asarray(ranking).tolist())
        return shown

    # ------------------------------------------------------------------------------------------------------------- checks

    def constructor(self) -> None:
        """Constructor."""
        for name in ("n_items", "n_positions", "seed"):
            expect(self.player.takes(name), f"it takes no argument {name}")
        for seed in (0, None, np.random.SeedSequence(5)):
            agent = self.make(seed=seed)
            expect(
                isinstance(agent, Agent),
                f"it makes a {type(agent).__name__}, which is no clickgym.agents.Agent",
            )

    def lists(self) -> None:
        """Lists."""
        for n_items, n_positions in SIZES:
            env = self.env(n_items, n_positions)
            agent, (observation, _) = self.make(env), env.reset(seed=0)
            for number in range(SESSIONS):
                observation, _ = _session(agent, env, observation, number + 1)

    def seeds(self) -> None:
        """Seeds."""
        for seed in (3, np.random.SeedSequence(3)):
            first, second = (
                self.play([self.make(seed=copy.deepcopy(seed))], 100)[0] for _ in range(2)
            )
            expect(
                first == second,
                f"two agents of one seed ({type(seed).__name__}) show different lists; {HOW_TO_DRAW}",
            )

    def company(self) -> None:
        """Agents side by side."""
        generators = np.random.get_state(), random.getstate()  # noqa: NPY002 (whether it is left alone)
        (alone,) = self.play([self.make()], 100)
        now = np.random.get_state(), random.getstate()  # noqa: NPY002
        same = (
            all(np.array_equal(a, b) for a, b in zip(generators[0], now[0], strict=True))
            and generators[1] == now[1]
        )
        expect(same, f"it draws from the global generator of numpy or random; {HOW_TO_DRAW}")
        alike = self.play([self.make(), self.make()], 100) == [alone, alone]
        expect(
            alike,
            "two agents disturb one another; keep what changes in self, not in the class or module",
        )

    def inputs(self) -> None:
        """What it is given."""
        agent, env, observation = self.begin()
        for _ in range(50):
            before = copy.deepcopy(observation)
            ranking = agent.rank(observation)
            _expect_same("rank", "observation", before, observation)
            seen, (observation, reward, terminated, _, _) = observation, env.step(ranking)
            clicks, shown = clicks_of(observation), np.array(ranking)
            clicked = clicks.copy()
            agent.update(seen, shown, clicks, float(reward))
            _expect_same("update", "observation", before, seen)
            _expect_same("update", "ranking", np.asarray(ranking), shown)
            _expect_same("update", "clicks", clicked, clicks)
            if terminated:
                observation, _ = env.reset()
                agent.leave()

    def horizon(self) -> None:
        """Sessions after the horizon."""
        if "horizon" in self.parameters:
            self.play([self.make(horizon=SHORT)], 20 * SHORT)

    def numbers_of_items(self) -> None:
        """Numbers of items."""
        totals: dict[str, list[NDArray[np.float64]]] = {name: [] for name in ORDERS}
        for block, (name, order) in enumerate(ORDERS.items()):
            env, features = self.env(order=order), _features(order)
            attraction, best = ATTRACTION[order], float(np.sort(ATTRACTION)[::-1][:3] @ EXAMINATION)
            for seed in range(block * SEEDS, (block + 1) * SEEDS):
                agent, rng = (
                    self.make(env, SHORT, seed),
                    np.random.default_rng([seed, 1]),
                )  # not the agent's own stream
                clicks: NDArray[np.int8] = np.zeros(3, np.int8)
                regret = []
                for _ in range(FIRST[-1]):
                    observation = self._observation(env, clicks, features)
                    ranking = agent.rank(observation)
                    shown = EXAMINATION * attraction[ranking]
                    clicks = (rng.random(3) < shown).astype(np.int8)
                    agent.update(observation, ranking, clicks, float(clicks.sum()))
                    regret.append(best - shown.sum())
                totals[name].append(np.cumsum(regret)[np.array(FIRST) - 1])
        first, second = (np.array(values) for values in totals.values())
        means = [values.mean(axis=0) for values in (first, second)]
        error = np.sqrt((first.var(axis=0) + second.var(axis=0)) / SEEDS)
        for place in np.flatnonzero(np.abs(means[0] - means[1]) > SIGMAS * error + 1e-9)[:1]:
            regrets = " and ".join(
                f"{mean[place]:.3g} with items {name}"
                for name, mean in zip(ORDERS, means, strict=True)
            )
            raise Fault(
                f"the regret of the first {FIRST[place]} sessions is {regrets}; break ties at random, for the number of an "
                "item must not tell how good it is"
            )

    def _observation(
        self, env: gym.Env, clicks: NDArray[np.int8], features: NDArray[np.float64]
    ) -> Any:
        """What an environment of this kind shows, with the candidates in a fixed order."""
        keys: Iterable[str] = getattr(env.observation_space, "keys", tuple)()
        values: dict[str, Any] = {"clicks": clicks, "features": features, "state": 0}
        return {key: values[key] for key in keys} if keys else clicks

    def description(self) -> None:
        """Description."""
        text = repr(self.first)
        kind = type(self.first).__name__
        expect(
            text.startswith(f"{kind}("),
            f"repr is {text[:60]!r}; expected one that begins with {kind}(",
        )
        if isinstance(self.first, CompiledAgent):
            values = {"n_items": 5, "n_positions": 3} | self.first.hyperparameters
            missing = [
                name
                for name, value in values.items()
                if value is not None and f"{name}=" not in text
            ]
            expect(not missing, f"repr does not name {', '.join(missing)}")

    def search_space(self) -> None:
        """Search space."""
        own = self.player.search_space
        try:
            space = {
                key: values
                for key, values in check_search_space(self.name, own).items()
                if key not in self.given
            }
            place = place_of(self.env())
            self._check_bounds(place, space)
        except ValueError as error:
            raise Fault(str(error)) from None
        values = self.player.defaults
        for key in (
            space.keys() & values.keys()
        ):  # None stands for a default that follows from the horizon
            fits = values[key] is None or values[key] in space[key]
            expect(fits, f"the default {key} = {values[key]!r} is not in {space[key]}")

    def _check_bounds(self, place: Any, space: Mapping[str, Any]) -> None:
        """The agent can be made with the bounds of each range and with each value of a set."""
        for key, values in space.items():
            for value in [values.low, values.high] if isinstance(values, Range) else values:
                try:
                    self.player.but(**{key: value}).make(place, SESSIONS, 0)
                except (TypeError, ValueError) as error:
                    raise ValueError(
                        f"{self.name} cannot be searched with {key} = {short(value)}: {error}"
                    ) from None

    def whole_numbers(self) -> None:
        """Whole numbers."""
        place, values = place_of(self.env()), self.player.defaults
        for name in [
            name
            for name, value in values.items()
            if type(value) is float and name not in self.given
        ]:
            for number in WHOLE_NUMBERS:
                try:
                    made = [
                        self.player.but(**{name: kind(number)}).make(place, SESSIONS, 0)
                        for kind in (float, int)
                    ]
                except KernelError:  # a TypeError, too
                    raise
                except (TypeError, ValueError):
                    continue  # it is out of the range, or no integer is taken
                if isinstance(made[1], CompiledAgent):
                    _play_kernels(made[1], self.env())
                    made[1] = self.player.but(**{name: number}).make(place, SESSIONS, 0)
                of_float, of_int = (self.play([each], 100) for each in made)
                what = f"with {name}={number} it shows other lists than with {name}={number}.0"
                expect(of_float == of_int, f"{what}; make it a float")

    # ------------------------------------------------------------------------------------------- of compiled agents only

    def ownership(self) -> None:
        """Lists that it returned."""
        (agent, _, observation), twin = self.begin(), self.make()
        for _ in range(20):
            ranking, same = agent.rank(observation), twin.rank(observation)
            expect(
                not np.shares_memory(ranking, agent.ranking),
                "rank returns the agent's own array; return a copy",
            )
            expect(
                np.array_equal(ranking, same),
                "writing into a list that rank returned changes the agent; return a copy",
            )
            agent.update(observation, ranking, [1, 0, 1])
            twin.update(observation, same, [1, 0, 1])
            ranking[:] = 0

    def kinds_of_clicks(self) -> None:
        """Clicks."""
        kinds: dict[str, Callable[[Any], Any]] = {
            "an array": np.array,
            "a list": list,
            "flags": lambda c: np.array(c) == 1,
        }
        agents, env = {kind: self.make() for kind in kinds}, self.env()
        observation, _ = env.reset(seed=0)
        rng = np.random.default_rng(0)
        for _ in range(100):
            clicks = rng.integers(0, 2, 3).tolist()
            shown = {}
            for kind, agent in agents.items():
                shown[kind] = agent.rank(observation).tolist()
                agent.update(observation, shown[kind], kinds[kind](clicks), 1.0)
            expect(
                len({str(ranking) for ranking in shown.values()}) == 1,
                f"{', '.join(kinds)} teach it different things",
            )
        first, *others = agents.values()
        expect(
            not any(_changes(first, other) for other in others),
            f"{', '.join(kinds)} teach it different things",
        )

    def refusals(self) -> None:
        """Refusals."""
        agent, _, observation = self.begin()
        ranking = agent.rank(observation)
        for clicks in ([1, 0], [1, 0, 0, 1], [2, 0, 0], [0.5, 0, 0]):
            _expect_refusal(
                f"update takes the clicks {clicks}",
                "clicks",
                agent.update,
                observation,
                ranking,
                clicks,
            )
        if not agent.learns_from_any_list:
            _expect_refusal(
                "update takes another list",
                "list",
                agent.update,
                observation,
                ranking[::-1],
                [0, 0, 0],
            )
            agent.update(observation, ranking, [0, 0, 0])
            _expect_refusal(
                "update takes a list twice", "", agent.update, observation, ranking, [0, 0, 0]
            )
        for kind, key in ((ContextualAgent, "features"), (StateAgent, "state")):
            if isinstance(agent, kind):
                _expect_refusal(
                    f"rank takes an observation without {key}",
                    key,
                    agent.rank,
                    {"clicks": [0, 0, 0]},
                )

    def hyperparameters(self) -> None:
        """Hyper-parameters."""
        names = set(self.player.named)
        missing = names - {"n_items", "n_positions", "seed"} - set(self.first.hyperparameters)
        expect(
            not missing,
            f"{', '.join(sorted(missing))} is not passed to the constructor of the base, so it is not saved",
        )
        values = self.given | {
            name: value for name, value in self.first.filled_in.items() if name in missing ^ names
        }
        for name, value in values.items():
            if (
                name in self.first.hyperparameters and np.ndim(value) == 0
            ):  # arrays may be cut to what is used
                kept = self.first.hyperparameters[name]
                expect(
                    np.array_equal(np.asarray(kept), np.asarray(value)),
                    f"{name} is {kept!r}, but {value!r} was given",
                )

    def arguments(self) -> None:
        """Wrong arguments."""
        made: Any = self.maker
        right = {**self.first.filled_in, **self.given}
        wrong: list[tuple[str, Any]] = [("n_items", 0), ("n_items", 2.5), ("n_positions", 0)]
        wrong += [
            (name, object())
            for name in self.player.named
            if name not in ("n_items", "n_positions", "seed")
        ]
        for name, value in wrong:
            text = "object()" if type(value) is object else repr(value)
            _expect_refusal(
                f"the constructor takes {name}={text}",
                name,
                made,
                **right | {name: value, "seed": 0},
            )
        if all(
            np.ndim(value) == 0 for value in right.values()
        ):  # an array would be refused for its size first
            _expect_refusal(
                "the constructor takes n_positions=6",
                "n_positions",
                made,
                **right | {"n_positions": 6, "seed": 0},
            )

    def kernels(self) -> None:
        """Kernels."""
        _play_kernels(self.make(), self.env())

    def engines(self) -> None:
        """Engines."""
        results, agents = {}, {}
        for engine in ("compiled", "python"):
            agents[engine] = self.make(horizon=SHORT)
            results[engine] = _run(agents[engine], self.env(), engine)
        _expect_equal(
            "the compiled engine and the Python engine", *results.values(), *agents.values()
        )

    def saving(self) -> None:
        """Saving and loading."""
        agent, env = (
            self.make(horizon=SHORT, seed=7),
            self.env(),
        )  # `load` makes an agent with seed 0
        compiled = isinstance(agent, CompiledAgent)
        run(agent, env, LONG if compiled else SESSIONS, seed=1)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "agent.npz"

            def loaded(agent: Any, by: Any) -> Any:
                agent.save(path)
                twin = by.load(path)
                expect(type(twin) is type(agent), f"load makes a {type(twin).__name__}")
                expect(repr(twin) == repr(agent), f"load makes {twin!r} of {agent!r}")
                return twin

            twin = loaded(agent, type(agent))
            if compiled:
                changed = _changes(agent, twin)
                expect(not changed, f"of the state, {', '.join(changed)} is not what was saved")
                other = loaded(agent, type(agent))
            results = [_run(one, self.env()) for one in (agent, twin)]
            _expect_equal("a saved agent and the loaded one", *results, agent, twin)
            if compiled:
                again = _run(other, self.env(), "python")
                _expect_equal(
                    "a saved agent and the loaded one in the Python engine",
                    results[0],
                    again,
                    agent,
                    other,
                )
            env = self.env()
            observation, _ = env.reset(seed=3)
            for _ in range(10):
                ranking = agent.rank(observation)
                twin = loaded(agent, type(agent))
                agent.update(observation, ranking, clicks := [0, 1, 0], 1.0)
                twin.update(observation, ranking, clicks, 1.0)
                expect(
                    _same(agent.rank(observation), following := twin.rank(observation)),
                    "an agent saved between rank and update shows another list",
                )
                agent.update(observation, following, [1, 0, 0], 1.0)


def _features(numbers: NDArray[np.int64]) -> NDArray[np.float64]:
    """``(n, 2)`` of norm at most 1, such that the attractions of items differ."""
    angle = np.array([0.2, 0.9, 0.5, 1.4, 1.1])[numbers]
    return (
        np.stack([np.cos(angle), np.sin(angle)], axis=1)
        * np.array([0.6, 0.9, 0.4, 0.8, 0.5])[numbers, None]
    )


def _run(agent: Any, env: gym.Env, engine: Any = "auto") -> Result:
    return run(agent, env, SESSIONS, seed=2, checkpoints=range(1, SESSIONS + 1), engine=engine)


def _session(agent: Any, env: Any, observation: Any, number: int) -> tuple[Any, Any]:
    """Play a session: what is observed after it, and the list."""
    ranking = agent.rank(observation)
    users = env.unwrapped.model
    try:
        check_list(agent, ranking, users.n_items, users.n_positions, "session", number)
    except AgentError as error:
        raise Fault(str(error)) from None
    following, reward, terminated, truncated, _ = env.step(ranking)
    agent.update(observation, ranking, np.array(clicks_of(following)), float(reward))
    if terminated or truncated:
        following, _ = env.reset()
        agent.leave()
    return following, ranking


class _Checked(np.ndarray):
    """An array of a state that refuses what compiled code does without a word: to cut a float to an
    integer.
    """

    def __setitem__(self, key: Any, value: Any) -> None:
        if self.dtype.kind in "biu" and isinstance(value, float):
            frame = sys._getframe(1)
            where = f"kernel {frame.f_code.co_name}, line {frame.f_lineno} of {frame.f_code.co_filename}"
            raise Fault(
                f"{where}, writes a float into an array of {self.dtype}, which cuts it; make it an array of floats"
            )
        super().__setitem__(key, value)


def _play_kernels(agent: CompiledAgent, env: Any) -> None:
    """Play 100 sessions of an agent's kernels in Python, where an index out of range is noticed,
    too.
    """
    arrays = {
        name: value
        for name, value in agent.state._asdict().items()
        if isinstance(value, np.ndarray)
    }
    state = agent.state._replace(**{name: value.view(_Checked) for name, value in arrays.items()})
    observation, _ = env.reset(seed=0)
    with np.errstate(over="ignore", invalid="ignore"):  # arithmetic modulo 2⁶⁴, and indices of ∞
        for _ in range(100):
            seen = agent.seen(observation)
            agent.rank_kernel(state, agent.rng, agent.ranking, *seen)
            observation, _, terminated, truncated, _ = env.step(agent.ranking)
            agent.update_kernel(state, agent.ranking, np.array(clicks_of(observation)), *seen)
            if terminated or truncated:
                observation, _ = env.reset()


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, dict):
        return all(_same(first[key], second[key]) for key in first)
    return np.array_equal(first, second, equal_nan=np.asarray(first).dtype.kind == "f")


def _expect_same(method: str, what: str, before: Any, after: Any) -> None:
    expect(_same(before, after), f"{method} changes the {what} that it is given; copy it first")


def _expect_refusal(
    fault: str, named: str, function: Callable[..., Any], *args: Any, **arguments: Any
) -> None:
    try:
        function(*args, **arguments)
    except (TypeError, ValueError) as error:
        expect(
            named in str(error),
            f"{fault} to pieces, with an error that does not name {named}: {error}",
        )
    else:
        expect(False, fault)


def _expect_equal(pair: str, first: Any, second: Any, *agents: Any) -> None:
    """The same regret, clicks and generators."""
    for name in ("regret", "reward", "clicks"):
        different = np.flatnonzero(getattr(first, name) != getattr(second, name))
        if len(different):
            expect(
                False, f"{pair} part in session {first.steps[different[0]]}: their {name} differ"
            )
    compiled: list[Any] = [agent for agent in agents if isinstance(agent, CompiledAgent)]
    for other in compiled[1:]:
        same = compiled[0].rng.bit_generator.state == other.rng.bit_generator.state
        expect(same, f"{pair} have drawn differently from their generators")
        expect(
            not (changed := _changes(compiled[0], other)),
            f"{pair} differ in {', '.join(changed)} of their states",
        )


def _changes(agent: CompiledAgent, other: CompiledAgent) -> list[str]:
    """Which arrays of the states of two agents differ; those that grow with the sessions may, in
    their size.
    """
    arrays = other.arrays
    return [
        name
        for name, value in agent.arrays.items()
        if name not in agent.growing and not _same(value, arrays[name])
    ]
