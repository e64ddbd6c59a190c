"""What is passed as an agent or an environment, resolved into what is handed on: `Player`,
`Place`.
"""

from __future__ import annotations

import inspect
import operator
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from ..agents import Agent, CompiledAgent, ContextualAgent, Learner, StateAgent
from ..agents.agent import Seed
from ..agents.search_space import SearchSpace
from ..agents.stable_baselines import adopt
from ..core.checks import AN_ENV, check_horizon, check_kind, short, unknown
from ..core.modules import looking_in, module_of
from ..envs import CONTEXTUAL, ENVIRONMENTS, MEMORY, ClickEnv, ContextualModel, Users
from ..envs.click_env import name_of
from ..envs.interface import Sizes, sizes_of
from .facts import fact
from .labels import PUBLISHED, AgentLike, EnvLike, UnsuitedError, own_label, split

OBSERVED = {
    "n_features": ("features", "contextual environments"),
    "n_states": ("the user's state", "stateful users"),
}
"""The sizes of what some agents rank by, in words, and where it is observed."""
SET_BY = {
    "horizon": "--horizon, the argument horizon",
    "seed": "--seed, the argument seed",
    "n_items": "the environment",
    "n_positions": "the environment",
}
"""Arguments of agents that are no hyper-parameters, and what sets them."""
KINDS = (Learner, ContextualAgent, StateAgent, CompiledAgent, Agent)
"""The interfaces of agents; the first that a class has says how its agents play."""


# ------------------------------------------------------------------------------------- environments


@dataclass(frozen=True, eq=False)
class Place:
    """Where agents play: what was passed as an environment, and the environment itself.

    Attributes:
        given: as it was passed.
        maker: an ``EnvSpec``, a function, or the users of a `ClickEnv`; or an environment that
            exists already.
        arguments: of the maker.
    """

    given: Any
    maker: EnvSpec | Callable[..., Any] | Users | gym.Env
    arguments: dict[str, Any]

    def at(self, instance: Any = None) -> Place:
        """The same place with a new environment.

        Args:
            instance: what ``gym.make`` takes as one; None takes the default.

        Raises:
            ValueError: it has users of its own.
            TypeError: it is an environment that exists already.
        """
        if isinstance(self.maker, gym.Env):
            raise TypeError(
                "a sweep makes a new environment for each run: expected an id or a click model, "
                f"got {short(self.maker)}"
            )
        if instance is None:
            return replace(self)
        if "instance" in self.arguments or isinstance(self.maker, Users):
            raise ValueError(
                f"the instance {instance!r} cannot be taken: {self.given!r} has users of its own"
            )
        return replace(self, arguments={**self.arguments, "instance": instance})

    @cached_property
    def env(self) -> gym.Env:
        """The environment, which is made when it is first asked for."""
        if isinstance(self.maker, gym.Env):
            return self.maker
        if isinstance(self.maker, Users):
            return ClickEnv(self.maker, **self.arguments)
        if not isinstance(self.maker, EnvSpec):
            env = self.maker(**self.arguments)
            check_kind(f"what {short(self.maker)} returned", env, gym.Env, AN_ENV)
            return env
        try:
            with looking_in(Path.cwd()):
                return gym.make(self.maker, **self.arguments)
        except gym.error.Error as error:
            raise ValueError(f"environment {self.maker.id}: {error}") from None

    @property
    def core(self) -> Any:
        """The environment without wrappers."""
        return self.env.unwrapped

    @property
    def is_guest(self) -> bool:
        """Whether it is of another package: its users are known to its own step only."""
        return not isinstance(self.core, ClickEnv)

    @cached_property
    def sizes(self) -> Sizes:
        """The sizes for which agents are built."""
        return sizes_of(self.env)

    @property
    def name(self) -> str:
        """What messages and results call the environment: its id, or its class."""
        return name_of(self.env)

    @property
    def instance(self) -> str:
        """The name of its instance in results."""
        return getattr(self.core, "instance", "custom")


def place_of(env: EnvLike | gym.Env) -> Place:
    """Resolve what was passed as an environment.

    Args:
        env: as for `make_env`.

    Raises:
        ValueError: an unknown id, or a module that cannot be imported.
        TypeError: it is no environment.
    """
    if isinstance(env, gym.Env):
        return Place(env, env, {})
    maker, arguments = split(env)
    if isinstance(maker, str):
        maker = _registered(maker)
    is_class = isinstance(maker, type) and issubclass(maker, Users)
    if is_class or not (isinstance(maker, Users | EnvSpec) or callable(maker)):
        raise TypeError(f"expected an id, (id, arguments) or a click model, got {short(maker)}")
    return Place(env, maker, arguments)


def _registered(env_id: str) -> EnvSpec:
    """What an id stands for, after the import of the module before its colon."""
    module, colon, name = env_id.rpartition(":")
    if colon:
        module_of("environment", env_id)
    if name in gym.registry:
        return gym.registry[name]
    if colon:
        raise ValueError(f"environment {env_id!r}: the module {module!r} registers no id {name!r}")
    ids = dict.fromkeys([*(ENVIRONMENTS | CONTEXTUAL | MEMORY), *gym.registry])
    raise ValueError(f"{unknown('environment', env_id, ids)}; your own is named module:Id-v0")


def make_env(env: EnvLike | gym.Env, instance: Any = None) -> gym.Env:
    """Make an environment.

    Args:
        env: an id, with arguments of ``gym.make`` if any, ``"PBMRank-v0:reward=any_click"`` or
            ``("PBMRank-v0", {"reward": "any_click"})``; ``"module:Id-v0"``, an id that a module
            registers; or the users of an environment, such as a click model. An environment is
            returned as it is.
        instance: what ``gym.make`` takes as one; None takes the default.

    Raises:
        ValueError, TypeError: on an unknown id or a bad argument.

    Example:
        >>> make_env("PBMRank-v0:cutoff=3").action_space
        RankedList(n_items=10, n_positions=5)
    """
    place = place_of(env)
    return place.env if instance is None else place.at(instance).env


# ------------------------------------------------------------------------------------------- agents


def kind_of(agent: type) -> type[Agent | Learner]:
    """The interface of an agent's class: how it plays, and what it observes."""
    return next(kind for kind in KINDS if issubclass(agent, kind))


@dataclass(frozen=True, eq=False)
class Player:
    """What was passed as an agent. It makes a new agent for each run.

    Attributes:
        given: as it was passed.
        maker: the class or function that makes agents.
        hyperparameters: those that were passed.
    """

    given: AgentLike
    maker: Callable[..., Agent | Learner]
    hyperparameters: dict[str, Any]

    def but(self, **hyperparameters: Any) -> Player:
        """The same with other hyper-parameters."""
        both: Any = (self.given, hyperparameters)
        return player_of(both) if hyperparameters else self

    @property
    def label(self) -> str | None:
        """Its spec, None if it has none."""
        return own_label(self.given)

    @property
    def name(self) -> str:
        """What messages call it."""
        return getattr(self.maker, "__name__", type(self.maker).__name__)

    @property
    def kind(self) -> type[Agent | Learner] | None:
        """The interface of its agents; of a function it is known when an agent is made."""
        return kind_of(self.maker) if isinstance(self.maker, type) else None

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """The parameters of the maker."""
        return inspect.signature(self.maker).parameters

    @property
    def named(self) -> list[str]:
        """The names of the parameters, without ``*args`` and ``**kwargs``."""
        rest = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        return [name for name, each in self.parameters.items() if each.kind not in rest]

    def takes(self, name: str) -> bool:
        """Whether the maker takes an argument of that name."""
        kinds = [parameter.kind for parameter in self.parameters.values()]
        return name in self.parameters or inspect.Parameter.VAR_KEYWORD in kinds

    @property
    def required(self) -> list[str]:
        """The parameters without a default."""
        empty = inspect.Parameter.empty
        return [name for name in self.named if self.parameters[name].default is empty]

    @property
    def requires(self) -> Mapping[str, str]:
        """The parameters for knowledge that a paper assumes, each with its source."""
        return getattr(self.maker, "requires", {})

    @property
    def asks(self) -> Mapping[str, str]:
        """Those of `requires` that were not passed."""
        passed = self.hyperparameters
        return {key: source for key, source in self.requires.items() if key not in passed}

    @property
    def observes(self) -> list[str]:
        """The sizes of what it ranks by beside clicks: keys of `OBSERVED`."""
        return [size for size in OBSERVED if size in self.parameters]

    @property
    def search_space(self) -> SearchSpace:
        """What its class says that can be searched."""
        return getattr(self.maker, "search_space", {})

    @property
    def defaults(self) -> dict[str, Any]:
        """The default hyper-parameters: of the constructor, of a learner, of the library's class.

        Example:
            >>> player_of("CascadeKLUCB").defaults
            {'feedback': 'last_click', 'c': 3.0}
        """
        adopted = getattr(self.maker, "adopted", None)
        parameters = dict(inspect.signature(adopted).parameters) if adopted else {}
        values = {
            name: parameter.default
            for name, parameter in (parameters | dict(self.parameters)).items()
            if name not in {*SET_BY, *OBSERVED} and parameter.default is not inspect.Parameter.empty
        }
        return values | dict(getattr(self.maker, "defaults", {}))

    def make(self, place: Place, horizon: int | None = None, seed: Seed = None) -> Agent | Learner:
        """Make an agent; arguments and errors are those of `make_agent`."""
        for key in self.hyperparameters:
            if key in SET_BY:
                raise ValueError(
                    f"{self.name}: {key} is set by {SET_BY[key]}; it is no hyper-parameter"
                )
            if not self.takes(key):
                known = [name for name in self.named if name not in SET_BY]
                raise TypeError(f"{self.name}: " + unknown("hyper-parameter", key, known))
        filled_in = dict(self._filled_in(place, horizon))
        agent: Any = self.maker(**filled_in, **self.hyperparameters, seed=seed)
        if not isinstance(agent, Agent | Learner):
            raise TypeError(f"{self.name} returned {agent!r}; expected an agent")
        setattr(agent, "filled_in", filled_in)  # noqa: B010 (no type checker knows it)
        return agent

    def _filled_in(self, place: Place, horizon: int | None) -> Iterator[tuple[str, Any]]:
        """The arguments that come from the environment and the horizon."""
        yield "n_items", place.sizes.n_items
        yield "n_positions", place.sizes.n_positions
        users = getattr(place.core, "model", None)
        has_list = getattr(place.core, "initial_ranking", None) is not None
        has_weights = (
            isinstance(users, ContextualModel) and users.base.position_weights() is not None
        )
        for key, source in self.asks.items():
            if key in self.required or has_list or (has_weights and source == "examination"):
                yield key, fact(self.name, key, source, place.core)
        for key in self.observes:
            if key not in self.hyperparameters:
                what, where = OBSERVED[key]
                if not getattr(place.sizes, key):
                    raise UnsuitedError(f"{self.name} ranks by {what}, which only {where} have")
                yield key, getattr(place.sizes, key)
        if "horizon" in self.parameters and horizon is not None:
            yield "horizon", check_horizon(horizon)
        elif "horizon" in self.required:
            raise ValueError(f"{self.name} needs a horizon")


def player_of(agent: AgentLike | Player) -> Player:
    """Resolve what was passed as an agent.

    Args:
        agent: as for `make_agent`; one that is resolved already stays as it is.

    Raises:
        ValueError, TypeError: there is no such agent, or it is none.
    """
    if isinstance(agent, Player):
        return agent
    thing, hyperparameters = split(agent)
    maker = agent_class(thing) if isinstance(thing, str) else _as_maker(thing, short(thing))
    return Player(agent, maker, hyperparameters)


def agent_class(name: str) -> Callable[..., Agent | Learner]:
    """The class of an agent: a published one by name, or your own as ``module:Class``.

    A class in the style of stable-baselines3, ``"stable_baselines3:PPO"`` or a subclass of its
    ``BaseAlgorithm``, becomes a `Learner`.

    Args:
        name: ``"BatchRank"``, ``"my_module:MyAgent"``, ``"my.package.module:MyAgent"``; modules are
            also looked for in the working folder.

    Raises:
        ValueError: there is no such agent.
    """
    if name in PUBLISHED:
        return PUBLISHED[name]
    module, colon, attribute = name.partition(":")
    if not colon:
        raise ValueError(unknown("agent", name, PUBLISHED) + "; your own is named module:Class")
    try:
        thing = operator.attrgetter(attribute)(module_of("agent", name))
    except AttributeError:
        raise ValueError(f"agent {name!r}: the module {module!r} has no {attribute!r}") from None
    return _as_maker(thing, f"agent {name!r}")


def _as_maker(thing: Any, what: str) -> Callable[..., Agent | Learner]:
    """What was passed as an agent, if it can make one."""
    library: Any = sys.modules.get("stable_baselines3.common.base_class")
    algorithm: Any = () if library is None else library.BaseAlgorithm
    if isinstance(thing, type):
        if issubclass(thing, algorithm):
            return adopt(thing)
        if not issubclass(thing, (Agent, Learner)):
            raise ValueError(f"{what} is not a subclass of clickgym.agents.Agent")
    elif isinstance(thing, (Agent, Learner)):
        kind = type(thing).__name__
        raise TypeError(f"{what} is an agent, and one is made for each run: pass its class, {kind}")
    elif isinstance(thing, algorithm) or hasattr(thing, "predict"):
        raise TypeError(
            f"{what} is no agent; play it as clickgym.agents.FrozenPolicy(..., model=...)"
        )
    elif not callable(thing):
        raise TypeError(f"{what} is no agent; expected a name, a class or (class, arguments)")
    return thing


def make_agent(
    agent: AgentLike,
    env: gym.Env,
    *,
    horizon: int | None = None,
    seed: Seed = None,
    **hyperparameters: Any,
) -> Agent | Learner:
    """Build an agent for an environment.

    Sizes and the number of features come from the environment. If a paper assumes more knowledge,
    it also comes from the environment unless you pass it: the examination probabilities of PBM-UCB,
    the production list of `Fixed`, the optimum of `Oracle`. The rest of the click model stays
    hidden. The only exception is an agent whose class asks for it by ``requires = {...: "users"}``,
    to draw a log from which it learns first.

    Args:
        agent: a name, as for the command line, ``"CascadeKLUCB:feedback=first_click"`` or
            ``"my_module:MyAgent"``; a class, of `Agent`, `Learner` or stable-baselines3; or
            ``(class, arguments)``.
        env: the environment that the agent will play.
        horizon: T, the number of sessions; passed only to agents that take it.
        seed: of the agent's own generator.
        **hyperparameters: of the agent, beside those that ``agent`` brings.

    Returns:
        The agent; its attribute ``filled_in`` says what was filled in from the environment and the
        horizon.

    Raises:
        ValueError: on an unknown agent, an agent that needs a horizon without one, or one that
            needs knowledge that the environment does not have.
        TypeError: on a hyper-parameter that the agent does not take.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> agent = clickgym.make_agent("PBMUCB", gym.make("PBMRank-v0"), seed=0)
        >>> sorted(agent.filled_in)
        ['examination', 'n_items', 'n_positions']
    """
    check_kind("env", env, gym.Env, AN_ENV)
    both: Any = (agent, hyperparameters)
    return player_of(both).make(place_of(env), horizon, seed)
