"""What is passed as an agent or an environment, by name or as an object, resolved into what is
handed on: `Player`, `Place`.
"""

from __future__ import annotations

import inspect
import operator
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec

from ..agents import LEARNERS, Agent, CompiledAgent, ContextualAgent, Learner, StateAgent
from ..agents.search_space import SearchSpace
from ..agents.stable_baselines import adopt
from ..core.checks import AN_ENV, check_horizon, check_kind, short, unknown
from ..core.modules import looking_in, module_of
from ..envs import CONTEXTUAL, ENVIRONMENTS, MEMORY, ClickEnv, ContextualModel, Instance, Users
from ..envs.click_env import name_of
from ..envs.guests import Sizes, sizes_of
from .facts import fact
from .labels import PUBLISHED, AgentLike, EnvLike, UnsuitedError, own_label, split

OBSERVED = {
    "n_features": ("features", "contextual environments"),
    "n_states": ("the user's state", "users with a memory"),
}
"""The sizes of what some agents rank by, in words, and where it is observed."""
GIVEN = ("n_items", "n_positions", *OBSERVED, "horizon", "seed")
"""Arguments that come from the environment and the run."""
SET_BY = {key: f"--{key}, the argument {key}" for key in ("horizon", "seed")}
SET_BY |= dict.fromkeys(("n_items", "n_positions"), "the environment")
"""Who sets the arguments of every agent."""
Seed = int | np.random.SeedSequence | None


# ----------------------------------------------------------------------------------------------------------- environments


@dataclass(frozen=True, eq=False)
class Place:
    """Where agents play: what was passed as an environment, and the environment itself.

    Attributes:
        given: as it was passed.
        maker: an ``EnvSpec``, a function, or the users of a `ClickEnv`; or an environment that
            there is already.
        arguments: of the maker.
    """

    given: Any
    maker: EnvSpec | Callable[..., Any] | Users | gym.Env
    arguments: dict[str, Any]

    def at(self, instance: Any = None) -> Place:
        """The same place with an environment of its own.

        Args:
            instance: what ``gym.make`` takes as one; None takes the default.

        Raises:
            ValueError: it has users of its own.
            TypeError: it is an environment that there is already.
        """
        if isinstance(self.maker, gym.Env):
            raise _no_place(self.maker)
        if instance is None:
            return replace(self)
        if "instance" in self.arguments or isinstance(self.maker, Users):
            raise ValueError(
                f"the instance {instance!r} cannot be taken: the environment {self.given!r} has users of its own"
            )
        return replace(self, arguments={**self.arguments, "instance": instance})

    @cached_property
    def env(self) -> gym.Env:
        """The environment, which is made when it is first asked for."""
        if isinstance(self.maker, gym.Env):
            return self.maker
        if isinstance(self.maker, Users):
            return ClickEnv(self.maker, **self.arguments)
        try:
            with looking_in(Path.cwd()):
                make = (
                    partial(gym.make, self.maker) if isinstance(self.maker, EnvSpec) else self.maker
                )
                made = make(**self.arguments)
        except gym.error.Error as error:
            raise ValueError(
                f"environment {getattr(self.maker, 'id', self.maker)}: {error}"
            ) from None
        if not isinstance(made, gym.Env):
            raise TypeError(f"{short(self.maker)} returned {short(made)}; expected an environment")
        return made

    @property
    def core(self) -> Any:
        """The environment without wrappers."""
        return self.env.unwrapped

    @cached_property
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
        maker = _env_named(maker)
    if isinstance(maker, type) and issubclass(maker, Users):
        raise TypeError(
            f"{maker.__name__} is a class; pass a model, {maker.__name__}(...), or register an id for it, "
            f'clickgym.register("MyRank-v0", {maker.__name__})'
        )
    if not isinstance(maker, Users | EnvSpec) and not callable(maker):
        raise _no_place(maker)
    return Place(env, maker, arguments)


def _no_place(thing: Any) -> TypeError:
    """The error of what makes no environment, with what to pass instead."""
    advice = ""
    if isinstance(thing, Instance):
        advice = '; an instance needs an id as well: ("PBMRank-v0", {"instance": ...}), or instances=[...]'
    elif isinstance(thing, gym.Env):
        advice = "; a sweep makes a new environment for each run: pass its id, env.spec, or a function that returns one"
    return TypeError(
        f"expected an id, an EnvSpec, a function that returns an environment, or a click model; got {short(thing)}{advice}"
    )


def _env_named(name: str) -> Any:
    """What a name stands for: a registered id, one that a module registers, or a function of a
    module.
    """
    if name in gym.registry:
        return gym.registry[name]
    module, colon, rest = name.partition(":")
    if colon:
        imported = module_of("environment", name)
        if rest in gym.registry:
            return gym.registry[rest]
        try:
            return operator.attrgetter(rest)(imported)
        except AttributeError:
            what = f"the module {module!r} registers no id {rest!r} (by clickgym.register, when it is imported)"
            raise ValueError(
                f"environment {name!r}: {what}, and has no function or class of that name"
            ) from None
    registered = [*(ENVIRONMENTS | CONTEXTUAL | MEMORY), *gym.registry]
    own = "one that a module of your own registers is named module:Id-v0"
    raise ValueError(f"{unknown('environment', name, dict.fromkeys(registered))}; {own}")


def make_env(env: EnvLike | gym.Env, instance: Any = None) -> gym.Env:
    """Make an environment.

    Args:
        env: an id, with arguments of ``gym.make`` if any, ``"PBMRank-v0:reward=any_click"`` or
            ``("PBMRank-v0", {"reward": "any_click"})``; ``"module:Id-v0"``, an id that a module
            registers; an ``EnvSpec``; a function that returns an environment, itself or as
            ``"module:function"``; or the users of an environment, such as a click model. An
            environment is returned as it is.
        instance: what ``gym.make`` takes as one; None takes the default.

    Raises:
        ValueError, TypeError: on an unknown id or a bad argument.

    Example:
        >>> make_env("PBMRank-v0:cutoff=3").action_space
        RankedList(n_items=10, n_positions=5)
    """
    place = place_of(env)
    return place.env if instance is None else place.at(instance).env


# ----------------------------------------------------------------------------------------------------------------- agents


KINDS = (Learner, ContextualAgent, StateAgent, CompiledAgent, Agent)
"""The interfaces of agents; the first that a class has says how its agents play."""


def kind_of(agent: type) -> type[Agent | Learner]:
    """The interface of an agent's class: how it plays, and what it observes."""
    return next(kind for kind in KINDS if issubclass(agent, kind))


def learns(agent: object) -> bool:
    """Whether clicks change the lists of an agent of the package.

    Args:
        agent: its class.

    Example:
        >>> from clickgym.agents import Fixed, TopRank
        >>> learns(TopRank), learns(Fixed)
        (True, False)
    """
    kernel = getattr(agent, "update_kernel", None)
    return getattr(kernel, "__name__", "") != "ignore"


@dataclass(frozen=True, eq=False)
class Player:
    """What was passed as an agent. It is handed on, and makes a new agent for each run.

    Attributes:
        given: as it was passed.
        maker: the class or function that makes agents.
        hyperparameters: those that were passed.
    """

    given: AgentLike
    maker: Callable[..., Agent | Learner]
    hyperparameters: dict[str, Any]

    def __reduce__(self) -> Any:
        return Player, (self.given, self.maker, self.hyperparameters)

    def but(self, **hyperparameters: Any) -> Player:
        """The same with other hyper-parameters."""
        both: Any = (self.given, hyperparameters)
        return player_of(both) if hyperparameters else self

    @cached_property
    def label(self) -> str | None:
        """The label that follows from what was passed, in the form that can be typed; None if there
        is none.
        """
        return own_label(self.given)

    @property
    def name(self) -> str:
        """What messages call it."""
        return getattr(self.maker, "__name__", type(self.maker).__name__)

    @property
    def kind(self) -> type[Agent | Learner] | None:
        """The interface of its agents, as `kind_of`; of a function it is known when an agent is
        made.
        """
        return kind_of(self.maker) if isinstance(self.maker, type) else None

    @cached_property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """The parameters of the maker."""
        return inspect.signature(self.maker).parameters

    @property
    def named(self) -> list[str]:
        """The names of the parameters, without ``*args`` and ``**kwargs``."""
        return [
            name
            for name, each in self.parameters.items()
            if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        ]

    def takes(self, name: str) -> bool:
        """Whether the maker takes an argument of that name."""
        return name in self.parameters or any(
            each.kind is each.VAR_KEYWORD for each in self.parameters.values()
        )

    @property
    def required(self) -> list[str]:
        """The parameters that a call must give; ``*args`` and ``**kwargs`` are not among them."""
        return [
            name for name in self.named if self.parameters[name].default is inspect.Parameter.empty
        ]

    @property
    def requires(self) -> Mapping[str, str]:
        """The parameters for knowledge that a paper assumes, each with its source."""
        return getattr(self.maker, "requires", {})

    @property
    def asks(self) -> Mapping[str, str]:
        """Those of `requires` that were not passed."""
        return {
            key: source for key, source in self.requires.items() if key not in self.hyperparameters
        }

    @property
    def observes(self) -> list[str]:
        """The sizes of what it ranks by beside clicks: keys of `OBSERVED`."""
        return [size for size in OBSERVED if size in self.parameters]

    @property
    def click_models(self) -> str:
        """The click models for which its class says that it was made."""
        return getattr(self.maker, "click_models", "any")

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
        values: dict[str, Any] = {}
        for parameters in (
            {} if adopted is None else inspect.signature(adopted).parameters,
            self.parameters,
        ):
            own = {
                key: parameter.default for key, parameter in parameters.items() if key not in GIVEN
            }
            values |= {
                key: default
                for key, default in own.items()
                if default is not inspect.Parameter.empty
            }
        return values | dict(getattr(self.maker, "defaults", {}))

    def make(self, place: Place, horizon: int | None = None, seed: Seed = None) -> Agent | Learner:
        """Make an agent; arguments and errors are those of `make_agent`."""
        self._check_hyperparameters()
        horizon = None if horizon is None else check_horizon(horizon)
        filled_in = dict(self._filled_in(place, horizon))
        made: Any = self.maker(**filled_in, **self.hyperparameters, seed=seed)
        if not isinstance(made, (Agent, Learner)):
            raise TypeError(f"{self.name} returned {made!r}; expected an agent")
        setattr(made, "filled_in", filled_in)  # noqa: B010 (for type checkers no agent has it)
        return made

    def _check_hyperparameters(self) -> None:
        for key in self.hyperparameters:
            if key in SET_BY:
                raise ValueError(
                    f"{self.name}: {key} is set by {SET_BY[key]}; it is no hyper-parameter"
                )
            if not self.takes(key):
                own = [other for other in list(self.parameters)[2:] if other not in SET_BY]
                raise TypeError(f"{self.name}: " + unknown("hyper-parameter", key, own))

    def _filled_in(self, place: Place, horizon: int | None) -> Iterator[tuple[str, Any]]:
        """The arguments that come from the environment and the horizon."""
        yield "n_items", place.sizes.n_items
        yield "n_positions", place.sizes.n_positions
        users = getattr(place.core, "model", None)
        yield from self._facts(place, users)
        for key in self.observes:
            if key not in self.hyperparameters:
                what, where = OBSERVED[key]
                if not getattr(place.sizes, key):
                    raise UnsuitedError(f"{self.name} ranks by {what}, which only {where} have")
                yield key, getattr(place.sizes, key)
        if "horizon" in self.parameters and horizon is not None:
            yield "horizon", horizon
        elif "horizon" in self.required:
            raise ValueError(f"{self.name} needs a horizon")

    def _facts(self, place: Place, users: Any) -> Iterator[tuple[str, Any]]:
        """What the agent requires to know of the users, or may know because the environment does."""
        has_weights = (
            isinstance(users, ContextualModel) and users.base.position_weights() is not None
        )
        has_list = getattr(place.core, "initial_ranking", None) is not None
        for key, source in self.asks.items():
            if key in self.required or has_list or (has_weights and source == "examination"):
                yield key, fact(self.name, key, source, place.core)


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
    maker = agent_class(thing) if isinstance(thing, str) else _as_maker(thing)
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
    imported = module_of("agent", name)
    try:
        return _as_maker(operator.attrgetter(attribute)(imported), f"agent {name!r}")
    except AttributeError:
        raise ValueError(f"agent {name!r}: the module {module!r} has no {attribute!r}") from None


def _as_maker(thing: Any, what: str = "") -> Any:
    """What was passed as an agent, if it can make one."""
    library: Any = sys.modules.get(
        "stable_baselines3.common.base_class"
    )  # whose classes cannot be without it
    algorithm: Any = () if library is None else library.BaseAlgorithm
    what = what or short(thing)
    if not isinstance(thing, type):
        reason = _why_no_maker(thing, what, isinstance(thing, algorithm))
        if reason:
            raise TypeError(reason)
        return thing
    if issubclass(thing, (Agent, Learner)):
        return thing
    if issubclass(thing, algorithm):
        return adopt(thing)  # type: ignore[arg-type]
    raise ValueError(
        f"{what} is not a subclass of clickgym.agents.Agent, nor an algorithm in the style of stable-baselines3"
    )


def _why_no_maker(thing: Any, what: str, is_algorithm: bool) -> str:
    """Why an object makes no agents, and what to pass instead; empty if it may."""
    kind = type(thing).__name__
    frozen = "clickgym.agents.FrozenPolicy(n_items, n_positions, model=..., actions=...), actions as trained"
    if isinstance(thing, (Agent, Learner)):
        return (
            f"{what} is an agent already, and one is made anew for each run: pass the class, {kind}, or with hyper-parameters "
            f"functools.partial({kind}, ...)"
        )
    if is_algorithm:
        learning = (
            f"clickgym.agents.{kind}"
            if kind in LEARNERS
            else f'"{type(thing).__module__.partition(".")[0]}:{kind}"'
        )
        return (
            f"an object of stable-baselines3's {kind} is no agent; to let it learn in the run pass the class, {learning}; to "
            f"play it as it is trained, {frozen}"
        )
    if hasattr(thing, "predict"):
        return f"{what} is no agent; a trained policy, with a method predict, plays as {frozen}"
    return (
        ""
        if callable(thing)
        else f"{what} is no agent; expected a name, a class, or a functools.partial of one"
    )


def make_agent(
    agent: AgentLike,
    env: gym.Env,
    *,
    horizon: int | None = None,
    seed: int | np.random.SeedSequence | None = None,
    **hyperparameters: Any,
) -> Agent | Learner:
    """Build an agent for an environment.

    Sizes and the number of features come from the environment. If a paper assumes more knowledge,
    it also comes from the environment unless you pass it: the examination probabilities of PBM-UCB,
    the production list of `Fixed`, the optimum of `Oracle`. The rest of the click model stays
    hidden. The only exception is an agent whose class asks for it by ``requires = {...: "users"}``, to
    draw a log from which it learns first.

    Args:
        agent: a name, as for the command line, ``"CascadeKLUCB:feedback=first_click"`` or
            ``"my_module:MyAgent"``; a class, of `Agent`, `Learner` or stable-baselines3; a
            `functools.partial` of one; or a function with the same arguments.
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
