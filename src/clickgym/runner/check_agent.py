"""`check_agent`, which checks in one call that an agent follows the interface of agents."""

from __future__ import annotations

import random
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike

from ..agents import Agent, CompiledAgent
from ..core.errors import FAILURES, Fault, cause, expect, expect_arguments, kernels_in_python
from ..core.kernels import uncompiled
from ..core.text import counted
from ..envs import (
    CascadeMDP,
    ClickEnv,
    ContextualModel,
    Instance,
    PositionBasedModel,
    load_instance,
)
from ..envs.env_properties import clicks_of, sizes_of
from .errors import AgentError, check_list
from .make.agents import (
    AgentLike,
    accepts,
    make_agent,
    observed_sizes,
    parameters_of,
    requirements,
    resolve_agent,
)
from .make.environments import maker_name
from .play.run import run

ATTRACTION = np.array([0.2, 0.7, 0.1, 0.5, 0.3])
EXAMINATION = np.array([0.9, 0.6, 0.4])
PRODUCTION_LIST = np.array([2, 3, 0, 4, 1])
"""The production list in the checks: all items, the top of the list first."""
THETA = np.array([0.7, 0.2])
ANGLES = np.array([0.2, 0.9, 0.5, 1.4, 1.1])
NORMS = np.array([0.6, 0.9, 0.4, 0.8, 0.5])
FEATURES = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1) * NORMS[:, None]
"""``(5, 2)`` features of the items, chosen so that all items differ in attraction."""
SIZES = ((5, 3), (2, 2), (1, 1))
HOW_TO_DRAW = "draw only from numpy.random.default_rng(seed)"
HOW_TO_OBSERVE = {
    "features": "observations have features only if the constructor has the argument n_features: "
    "add it, and derive a compiled agent from ContextualAgent",
    "state": "observations have a state only if the constructor has the argument n_states: add it, "
    "and derive a compiled agent from StateAgent",
}
"""What an agent lacks that reads a key which its observations do not have."""
KERNELS = {
    "rank_kernel": ("state", "rng", "ranking"),
    "update_kernel": ("state", "ranking", "clicks"),
}
OBSERVED_ARGUMENTS = {"features": "features", "state": "user"}
"""The last argument of both kernels if the agent observes features or a state."""
TOLD_HORIZON = 10
"""The horizon that agents are told. The checks continue beyond this horizon."""
SESSIONS = 300
SEEDS = 100
"""The number of runs for each of the two orders of the items in `check_item_ids`."""
COMPARED_AT = np.array([1, 4, 16])
"""The numbers of sessions after which `check_item_ids` compares the regret of the two orders."""
SIGMAS = 5.0
"""The number of standard errors beyond which a difference of two means counts as a fault."""
WORSE_THAN_RANDOM = 1.2
"""The regret, in multiples of that of random lists, above which `check_agent` warns."""


def check_agent(agent: AgentLike) -> None:
    """Check that an agent follows the interface of `clickgym.agents.Agent`.

    The agent is run on small problems. If its constructor takes ``n_features``, the items have
    features; if its constructor takes ``n_states``, the users have memory. If the agent has faults,
    the function raises one error that lists the faults; otherwise, it returns None. It checks that

    - the constructor accepts ``n_items``, ``n_positions`` and ``seed``, and returns an agent;
    - each list has one item per position and no item twice, even if there is only one item, and
      even after the horizon;
    - the same seed gives the same lists;
    - agents do not affect each other, and do not change the arrays that are passed to them;
    - the agent does not favour items because of their ids (in environments with features, where
      each session numbers its candidates anew, this is not checked);
    - for a `CompiledAgent`, both engines agree; saving, loading and hyperparameters work; and no
      kernel uses an index out of range, or writes a fraction to an array of integers.

    The function does not check whether the agent learns, but it warns if the agent loses more
    clicks than random lists.

    Args:
        agent: the agent, in any form that `clickgym.make_agent` accepts: a class,
            ``"module:Class"`` or an agent's name, with hyperparameters if you like, such as
            ``"CascadeKLUCB:c=1.0"`` or ``(MyAgent, {"c": 1.0})``.

    Raises:
        AssertionError: the agent has faults; the message has one line for each fault.
        ValueError, TypeError: the agent is unknown, or is an algorithm with its own training loop,
            which has a different interface.

    Warns:
        UserWarning: the agent loses more clicks than random lists, as an agent does that shows the
            worst items first.

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
        AssertionError: Careless does not follow the interface of agents:
        - rank and update: Careless, session 1: bad ranking [0, 0, 0]: position 1 shows item 0 again
    """
    check = _Check(agent)
    is_compiled = isinstance(check.agent, CompiledAgent)
    checks: dict[str, Callable[[], None]] = {"constructor": check.check_constructor}
    if is_compiled:
        checks["kernels"] = check.check_kernels
    checks |= {
        "rank and update": check.check_lists,  # all checks below need an agent that plays
        "seeds": check.check_seeds,
        "agents side by side": check.check_shared_state,
        "item ids": check.check_item_ids,
    }
    if is_compiled:
        checks |= {"hyperparameters": check.check_hyperparameters, "engines": check.check_engines}
    if hasattr(check.agent, "save") and hasattr(check.agent, "load"):
        checks["saving and loading"] = check.check_saving
    faults: list[str] = []
    for name, run_check in checks.items():
        try:
            run_check()
        except FAILURES as error:
            faults.append(f"- {name}: {error if isinstance(error, Fault) else cause(error)}")
            if name in ("constructor", "kernels", "rank and update"):
                break
    if faults:
        heading = f"{maker_name(check.maker)} does not follow the interface of agents:"
        raise AssertionError("\n".join([heading, *faults]))
    check.warn_if_worse_than_random()


class _Check:
    """An agent to check, the small environments in which it plays, and the checks."""

    def __init__(self, agent: AgentLike) -> None:
        self.maker, self.arguments = resolve_agent(agent)
        self.observed_sizes = observed_sizes(self.maker)
        common = ("n_items", "n_positions", "seed")
        self.hyperparameter_names = [
            name for name in parameters_of(self.maker) if name not in common
        ]
        if isinstance(self.maker, type) and not issubclass(self.maker, Agent):
            raise TypeError(
                f"{maker_name(self.maker)} is an algorithm with its own training loop; "
                "check_agent checks only subclasses of clickgym.agents.Agent"
            )
        try:
            self.agent: Any = self.make_agent()
        except FAILURES:
            self.agent = None  # `check_constructor` reports the error

    # --------------------------------------------------------------------------------- environments

    def make_env(
        self, n_items: int = 5, n_positions: int = 3, order: ArrayLike = range(5)
    ) -> gym.Env:
        """Return an environment with the features or user states that the agent needs.

        Args:
            n_items: the number of items, at most 5.
            n_positions: the number of positions, at most 3.
            order: a permutation of the items: item i is as attractive as item ``order[i]`` is by
                default. In environments with features, the order has no effect.
        """
        items = np.asarray(order)[:n_items]
        users = PositionBasedModel(ATTRACTION[items], EXAMINATION[:n_positions])
        if "n_features" in self.observed_sizes and "n_features" not in self.arguments:
            return ClickEnv(ContextualModel(users, FEATURES, theta=THETA))
        if "n_states" in self.observed_sizes and "n_states" not in self.arguments:
            sizes = f"n_items={n_items},n_positions={n_positions},n_states=2,mean_sessions=8"
            model = load_instance(f"independent:{sizes}").model(CascadeMDP)
            return ClickEnv(model.relabelled(items))
        production = np.argsort(items)[PRODUCTION_LIST[n_items > PRODUCTION_LIST]]
        instance = Instance("small", {"PBM": users}, n_positions, initial_ranking=production)
        return ClickEnv("PBM", instance=instance)

    def make_agent(self, env: gym.Env | None = None, horizon: int = SESSIONS, seed: Any = 0) -> Any:
        return make_agent(
            (self.maker, self.arguments), env or self.make_env(), horizon=horizon, seed=seed
        )

    def play(self, *agents: Any, n_sessions: int = 100) -> list[list[list[int]]]:
        """Let agents play in turns, each in its own environment, and return each agent's lists.

        All environments have the same seed.
        """
        lists_of_agents = (_play_lists(agent, self.make_env(), n_sessions) for agent in agents)
        return [[*lists] for lists in zip(*zip(*lists_of_agents, strict=True), strict=True)]

    # ------------------------------------------------------------------------ checks for all agents

    def check_constructor(self) -> None:
        for name in ("n_items", "n_positions", "seed"):
            expect(accepts(self.maker, name), f"the constructor has no argument {name}; add it")
        for seed in (0, None):
            agent = self.make_agent(seed=seed)
            fault = f"the agent is a {type(agent).__name__}; expected a clickgym.agents.Agent"
            expect(isinstance(agent, Agent), fault)

    def check_lists(self, prepare: Callable[[Any], None] | None = None) -> None:
        for n_items, n_positions in SIZES:
            env = self.make_env(n_items, n_positions)
            agent = self.make_agent(env, TOLD_HORIZON)
            if prepare is not None:
                prepare(agent)
            try:
                [*_play_lists(agent, env, SESSIONS)]
            except FAILURES as error:
                fault = str(error) if isinstance(error, Fault) else cause(error)
                for key, size in (("features", "n_features"), ("state", "n_states")):
                    if f"observation[{key!r}]" in fault.replace('"', "'"):
                        expect(size in self.observed_sizes, f"{fault}; {HOW_TO_OBSERVE[key]}")
                raise

    def check_seeds(self) -> None:
        first, second = (self.play(self.make_agent(seed=3)) for _ in range(2))
        hint = HOW_TO_DRAW
        if isinstance(self.agent, CompiledAgent):
            hint = "pass seed to super().__init__, and draw from rng"
        expect(first == second, f"the same seed gives different lists; {hint}")

    def check_shared_state(self) -> None:
        generators = _global_generators()
        (lists_alone,) = self.play(self.make_agent())
        is_untouched = generators == _global_generators()
        fault = (
            "the agent draws from the global random generator of numpy, random or torch, or seeds "
            "that generator"
        )
        expect(is_untouched, f"{fault}; {HOW_TO_DRAW}, or from a torch.Generator")
        lists_together = self.play(self.make_agent(), self.make_agent())
        fault = (
            "two agents of this class influence each other; keep everything that changes in "
            "self, not in the class or module"
        )
        expect(lists_together == [lists_alone, lists_alone], fault)

    def check_item_ids(self) -> None:
        regret = np.zeros((2, SEEDS, len(COMPARED_AT)))
        for block, order in enumerate((np.argsort(ATTRACTION), np.argsort(-ATTRACTION))):
            env = self.make_env(order=order)
            for i in range(SEEDS):
                seed = block * SEEDS + i
                agent = self.make_agent(env, TOLD_HORIZON, seed)
                result = run(agent, env, COMPARED_AT[-1], seed=seed, checkpoints=COMPARED_AT)
                regret[block, i] = result.regret
        (rising, falling), error = regret.mean(axis=1), np.sqrt(regret.var(axis=1).sum(0) / SEEDS)
        for i in np.flatnonzero(np.abs(rising - falling) > SIGMAS * error + 1e-9)[:1]:
            raise Fault(
                f"the regret after {counted(int(COMPARED_AT[i]), 'session')} is {rising[i]:.3g} if "
                f"attraction rises with the item id, but {falling[i]:.3g} if attraction falls "
                "with it; item ids carry no information: break ties at random, and let update "
                "write at ranking, not at positions"
            )

    def warn_if_worse_than_random(self) -> None:
        """Warn if the agent loses more clicks than random lists. Agents that begin with the
        production list are left out, because this list is worse than random lists here.
        """
        if "initial_ranking" in requirements(self.maker).values():
            return
        agents, seeds = ((self.maker, self.arguments), "Random"), range(5)
        for n_items in (5, 3):  # with 3 items on 3 positions, only their order matters
            env = self.make_env(n_items)
            lost, lost_at_random = (
                np.mean([run(agent, env, SESSIONS, seed=seed).regret[-1] for seed in seeds])
                for agent in agents
            )
            if lost > WORSE_THAN_RANDOM * lost_at_random:
                question = "does it show the best items first?"
                if sizes_of(env).n_features:
                    question += (
                        " (The items have two positive features, and none that is always 1, so "
                        "your model of clicks may need an intercept.)"
                    )
                warnings.warn(
                    f"{maker_name(self.maker)}: with {n_items} items for 3 positions, the regret "
                    f"after {SESSIONS} sessions is {lost:.0f}, but {lost_at_random:.0f} with "
                    f"random lists; {question}",
                    stacklevel=3,
                )
                return

    # ------------------------------------------------------------------- checks for compiled agents

    def check_hyperparameters(self) -> None:
        missing = ", ".join(
            name for name in self.hyperparameter_names if name not in self.agent.hyperparameters
        )
        fault = f"{missing} is not passed to super().__init__, so save does not save it; pass it"
        expect(not missing, fault)
        for name, value in self.agent.hyperparameters.items():
            if type(value) is not float or name in self.arguments:
                continue
            try:
                pair = self.maker, {**self.arguments, name: 1}
                agent: Any = make_agent(pair, self.make_env(), horizon=SESSIONS, seed=0)
            except (TypeError, ValueError):  # 1 is out of the allowed range
                continue
            fault = (
                f"{name}=1 stays an integer, so kernels would cut off decimals; convert it with "
                f"float({name})"
            )
            expect(type(agent.hyperparameters[name]) is float, fault)

    def check_kernels(self) -> None:
        observed = [OBSERVED_ARGUMENTS.get(key, key) for key in self.agent.observes]
        for name, arguments in KERNELS.items():
            expect_arguments(name, getattr(self.agent, name), [*arguments, *observed])
        with uncompiled(), kernels_in_python():
            self.check_lists(_watch_integers)

    def check_engines(self) -> None:
        outcomes = [
            _outcome(self.make_agent(horizon=TOLD_HORIZON), self.make_env(), engine)
            for engine in ("compiled", "python")
        ]
        _expect_equal("the compiled engine and the Python engine", *outcomes)

    def check_saving(self) -> None:
        agent = self.make_agent(horizon=TOLD_HORIZON, seed=7)  # `load` makes an agent with seed 0
        run(agent, self.make_env(), SESSIONS, seed=1)
        loaded = _reload(agent)
        outcomes = _outcome(agent, self.make_env()), _outcome(loaded, self.make_env())
        _expect_equal("a saved agent and the loaded one", *outcomes)


class _Integers(np.ndarray):
    """An array of integers that raises an error for a fraction, which kernels would cut off."""

    def __setitem__(self, index: Any, value: Any) -> None:
        if np.any(np.asarray(value) % 1):
            raise ValueError(f"an array of Ints gets {value}; declare it as Floats")
        super().__setitem__(index, value)


def _watch_integers(agent: Any) -> None:
    arrays = agent.arrays.items()
    watched = {name: array.view(_Integers) for name, array in arrays if array.dtype.kind == "i"}
    agent.state = agent.state._replace(**watched)


def _global_generators() -> tuple[Any, ...]:
    state: Any = np.random.get_state()  # noqa: NPY002 (to see whether an agent changes it)
    torch: Any = sys.modules.get("torch")  # imported only by agents
    of_torch = torch.random.get_rng_state().tolist() if torch else None
    return state[1].tolist(), state[2], random.getstate(), of_torch


def _play_lists(agent: Any, env: gym.Env, n_sessions: int) -> Iterator[list[int]]:
    """Let an agent play, and yield each session's list before the agent learns from the clicks.

    Raises:
        Fault: a list is invalid, or the agent changes its arguments.
    """
    base_env: Any = env.unwrapped
    (observation, _), users = env.reset(seed=0), base_env.model
    for number in range(1, n_sessions + 1):
        try:
            with _checking_arguments("rank", observation=observation):
                ranking = agent.rank(observation)
            check_list(agent, ranking, users.n_items, users.n_positions, "session", number)
        except AgentError as error:
            raise Fault(str(error)) from None
        next_observation, reward, terminated, truncated, _ = env.step(ranking)
        clicks = np.array(clicks_of(next_observation), np.int64)
        yield np.asarray(ranking).tolist()
        with _checking_arguments("update", observation=observation, ranking=ranking, clicks=clicks):
            agent.update(observation, ranking, clicks, float(reward))
        observation = next_observation
        if terminated or truncated:
            observation, _ = env.reset()
            agent.leave()


@contextmanager
def _checking_arguments(method: str, **arguments: Any) -> Iterator[None]:
    """Context manager that raises a `Fault` if a method of the agent changes its arguments."""
    contents = {name: _content_of(value) for name, value in arguments.items()}
    yield
    for name, value in arguments.items():
        is_same = _content_of(value) == contents[name]
        expect(is_same, f"{method} changes its argument {name}; change a copy instead")


def _content_of(argument: Any) -> Any:
    """Return the content of an observation, a list or clicks in a form that == can compare."""
    if isinstance(argument, Mapping):
        return {key: _content_of(value) for key, value in argument.items()}
    return np.asarray(argument).tobytes()


def _reload(agent: Any) -> Any:
    """Save an agent to a file, and return the agent that is loaded from this file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agent.npz"
        agent.save(path)
        loaded = type(agent).load(path)
    fault = f"{agent!r} is {loaded!r} after saving and loading"
    if "array(" in repr(agent):
        fault += "; pass super().__init__ lists and numbers instead of arrays"
    expect(repr(loaded) == repr(agent), fault)
    return loaded


def _outcome(agent: Any, env: gym.Env, engine: Any = "auto") -> dict[str, Any]:
    """Play a run, and return the regret, reward and clicks after each session.

    For compiled agents, the result also contains the final state of the random generator and the
    state arrays of fixed size.
    """
    steps = range(1, SESSIONS + 1)
    result = run(agent, env, SESSIONS, seed=2, checkpoints=steps, engine=engine)
    outcome: dict[str, Any] = {
        name: getattr(result, name) for name in ("regret", "reward", "clicks")
    }
    if isinstance(agent, CompiledAgent):
        outcome["generator"] = agent.rng.bit_generator.state
        array_names = agent.arrays.keys() - agent.growing
        outcome |= {f"state.{name}": agent.arrays[name] for name in sorted(array_names)}
    return outcome


def _expect_equal(subject: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> None:
    differing = [name for name in first if not _are_equal(first[name], second[name])]
    expect(not differing, f"{subject} differ in {', '.join(differing)}")


def _are_equal(first: Any, second: Any) -> bool:
    if isinstance(first, Mapping):
        return all(_are_equal(first[key], second[key]) for key in first)
    return np.array_equal(first, second, equal_nan=np.asarray(first).dtype.kind == "f")
