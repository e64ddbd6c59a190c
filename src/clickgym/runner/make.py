"""What is passed as an agent or an environment, resolved into its maker: `Player`, `Place`."""

from __future__ import annotations

import inspect
import operator
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from ..agents import Agent, Learner
from ..agents.agent import Seed
from ..agents.stable_baselines import adopt
from ..core.checks import AN_ENV, check_horizon, check_kind, short, unknown
from ..core.modules import module_of
from ..envs import ENVIRONMENTS, ClickEnv, Users
from ..envs.any_env import sizes_of
from ..envs.click_env import name_of
from .facts import fact
from .labels import PUBLISHED, AgentLike, EnvLike, UnsuitedError, own_label, split

OBSERVED = {
    "n_features": ("features", "contextual environments"),
    "n_states": ("the user's state", "stateful users"),
}
"""The sizes of what some agents rank by, in words, and where it is observed."""
NO_HYPERPARAMETERS = ("n_items", "n_positions", "horizon", "seed")
"""Arguments of agents that the environment and the run set."""


# ------------------------------------------------------------------------------------- environments


@dataclass(frozen=True, eq=False)
class Place:
    """What was passed as an environment. It makes a new environment for each run.

    Attributes:
        given: as it was passed.
        maker: an ``EnvSpec``, a function, or the users of a `ClickEnv`.
        arguments: of the maker.
    """

    given: Any
    maker: EnvSpec | Callable[..., Any] | Users
    arguments: dict[str, Any]

    def make(self, instance: Any = None) -> gym.Env:
        """Make an environment; arguments and errors are those of `make_env`."""
        arguments = self.arguments
        if instance is not None:
            if "instance" in arguments or isinstance(self.maker, Users):
                raise ValueError(
                    f"the instance {instance!r} cannot be taken: {self.given!r} has users of its "
                    "own"
                )
            arguments = {**arguments, "instance": instance}
        if isinstance(self.maker, Users):
            return ClickEnv(self.maker, **arguments)
        if not isinstance(self.maker, EnvSpec):
            env = self.maker(**arguments)
            check_kind(f"what {short(self.maker)} returned", env, gym.Env, AN_ENV)
            return env
        try:
            return gym.make(self.maker, **arguments)
        except gym.error.Error as error:
            raise ValueError(f"environment {self.maker.id}: {error}") from None


def place_of(env: EnvLike) -> Place:
    """Resolve what was passed as an environment.

    Args:
        env: as for `make_env`, but no environment that exists already.

    Raises:
        ValueError: an unknown id, or a module that cannot be imported.
        TypeError: it makes no environments.
    """
    if isinstance(env, gym.Env):
        raise TypeError(
            "a sweep makes a new environment for each run: expected an id or a click model, "
            f"got {short(env)}"
        )
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
    ids = dict.fromkeys([*ENVIRONMENTS, *gym.registry])
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
    return env if isinstance(env, gym.Env) else place_of(env).make(instance)


# ------------------------------------------------------------------------------------------- agents


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
    def parameters(self) -> dict[str, inspect.Parameter]:
        """The parameters of the maker, without ``*args`` and ``**kwargs``."""
        rest = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        every = inspect.signature(self.maker).parameters
        return {name: parameter for name, parameter in every.items() if parameter.kind not in rest}

    def takes(self, name: str) -> bool:
        """Whether the maker takes an argument of that name."""
        every = inspect.signature(self.maker).parameters.values()
        takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in every)
        return takes_any or name in self.parameters

    @property
    def requires(self) -> Mapping[str, str]:
        """The parameters for knowledge that a paper assumes, each with its source."""
        return getattr(self.maker, "requires", {})

    @property
    def observes(self) -> list[str]:
        """The sizes of what it ranks by beside clicks: keys of `OBSERVED`."""
        return [size for size in OBSERVED if size in self.parameters]

    def make(self, env: gym.Env, horizon: int | None = None, seed: Seed = None) -> Agent | Learner:
        """Make an agent; arguments and errors are those of `make_agent`."""
        passed, parameters = self.hyperparameters, self.parameters
        required = [name for name, it in parameters.items() if it.default is it.empty]
        for key in passed:
            if key in NO_HYPERPARAMETERS or not self.takes(key):
                names = [name for name in parameters if name not in NO_HYPERPARAMETERS]
                raise TypeError(f"{self.name}: " + unknown("hyper-parameter", key, names))
        sizes = sizes_of(env)
        filled_in: dict[str, Any] = {"n_items": sizes.n_items, "n_positions": sizes.n_positions}
        for key, source in self.requires.items():
            known = None if key in passed else fact(source, env.unwrapped)
            if known is not None:
                filled_in[key] = known
            elif key in required and key not in passed:
                raise UnsuitedError(
                    f"{self.name} requires {key}, which {name_of(env)} does not have: "
                    f"give {key}=..."
                )
        for key, (what, where) in OBSERVED.items():
            if key in parameters and key not in passed:
                filled_in[key] = getattr(sizes, key)
                if not filled_in[key]:
                    raise UnsuitedError(f"{self.name} ranks by {what}, which only {where} have")
        if "horizon" in parameters and horizon is not None:
            filled_in["horizon"] = check_horizon(horizon)
        elif "horizon" in required:
            raise ValueError(f"{self.name} needs a horizon")
        agent: Any = self.maker(**filled_in, **passed, seed=seed)
        if not isinstance(agent, Agent | Learner):
            raise TypeError(f"{self.name} returned {agent!r}; expected an agent")
        agent.filled_in = filled_in
        return agent


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
    elif isinstance(thing, (Agent, Learner, algorithm)) or not callable(thing):
        raise TypeError(f"{what} makes no agents; expected a name, a class or (class, arguments)")
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
    return player_of(both).make(env, horizon, seed)
