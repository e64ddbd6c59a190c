"""Environments and agents, made of recipes: of what names, specs and classes stand for, with
arguments.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec, load_env_creator

from ..agents import AGENTS
from ..agents.agent import BaseAgent, Seed, UnsuitedError
from ..agents.rl.learner import adopt
from ..core.checks import AN_ENV, check_horizon, check_kind, short, unknown
from ..core.faults import FAILURES, SessionError, cause
from ..core.modules import module_of
from ..envs import ENVIRONMENTS, ClickEnv, Users
from ..envs.any_env import sizes_of
from ..envs.base_env import name_of
from .names import AgentLike, EnvLike, split
from .play.faults import AgentError

Arguments = dict[str, Any]
EnvRecipe = tuple[EnvSpec | Users | Callable[..., gym.Env], Arguments]
"""The maker of an environment, a registered id, the users of a `ClickEnv` or a function, and its
arguments.
"""
AgentRecipe = tuple[Callable[..., BaseAgent], Arguments]
"""The maker of an agent, a class or a function, and its hyper-parameters."""

OBSERVED = {
    "n_features": ("features", "contextual environments"),
    "n_states": ("the user's state", "stateful users"),
}
"""The sizes of what some agents rank by, in words, and where it is observed."""
OTHERS = "others are named module:Class, as my_module:MyAgent or stable_baselines3:TD3"
"""How agents are named that have no short name."""
SET_BY_THE_RUN = ("n_items", "n_positions", "horizon", "seed")
"""Arguments of agents that are no hyper-parameters: the environment and the run set them."""


# ------------------------------------------------------------------------------------- environments


def env_recipe(env: EnvLike) -> EnvRecipe:
    """Resolve what was passed as an environment; a recipe stays as it is.

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
    return maker, arguments


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


def creator_of(spec: EnvSpec) -> Any:
    """The function or class that ``gym.make`` calls for an id."""
    entry = spec.entry_point
    return load_env_creator(entry) if isinstance(entry, str) else entry


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
    if isinstance(env, gym.Env):
        return env
    maker, arguments = env_recipe(env)
    if instance is not None:
        if "instance" in arguments or isinstance(maker, Users):
            raise ValueError(
                f"the instance {instance!r} cannot be taken: {short(env)} has users of its own"
            )
        arguments = {**arguments, "instance": instance}
    if isinstance(maker, Users):
        return ClickEnv(maker, **arguments)
    if isinstance(maker, EnvSpec):
        try:
            make = partial(gym.make, maker)
            return _called(f"environment {maker.id}", make, arguments, SessionError)
        except gym.error.Error as error:
            raise ValueError(f"environment {maker.id}: {error}") from None
    result = _called(f"environment {maker_name(maker)}", maker, arguments, SessionError)
    check_kind(f"what {short(maker)} returned", result, gym.Env, AN_ENV)
    return result


def _called(
    what: str, maker: Callable[..., Any], arguments: Arguments, error_class: type[SessionError]
) -> Any:
    """What a maker returns. Its refusals are passed on; other errors become one that names it."""
    try:
        return maker(**arguments)
    except (ValueError, ImportError, OSError, MemoryError, SessionError, gym.error.Error):
        raise
    except TypeError as error:
        cause_ = error.__cause__  # what Gymnasium passes on, with more words
        step = error.__traceback__ and error.__traceback__.tb_next
        if cause_ is None and step is not None:  # not from the call itself
            raise
        raise TypeError(f"{what}: {cause_ or error}") from error
    except FAILURES as error:
        raise error_class(f"{what} cannot be made: {cause(error)}") from error


# ------------------------------------------------------------------------------------------- agents


def agent_recipe(agent: AgentLike) -> AgentRecipe:
    """Resolve what was passed as an agent; a recipe stays as it is.

    A class with a training loop of its own, such as ``"stable_baselines3:PPO"``, is adopted.

    Args:
        agent: as for `make_agent`.

    Returns:
        The class or function, and the hyper-parameters that were passed.

    Raises:
        ValueError, TypeError: there is no such agent, or it is none.

    Example:
        >>> agent_recipe("TopRank:delta=0.1")
        (<class 'clickgym.agents.top_rank.TopRank'>, {'delta': 0.1})
    """
    thing, hyperparameters = split(agent)
    if not isinstance(thing, str):
        return _checked_maker(thing, short(thing)), hyperparameters
    if thing in AGENTS:
        return AGENTS[thing], hyperparameters
    module, colon, attribute = thing.partition(":")
    if not colon:
        raise ValueError(f"{unknown('agent', thing, AGENTS)}; {OTHERS}")
    try:
        maker = operator.attrgetter(attribute)(module_of("agent", thing))
    except AttributeError:
        raise ValueError(f"agent {thing!r}: the module {module!r} has no {attribute!r}") from None
    return _checked_maker(maker, f"agent {thing!r}"), hyperparameters


def _checked_maker(thing: Any, what: str) -> Callable[..., BaseAgent]:
    """What was passed as an agent, if it can make one."""
    if isinstance(thing, type):
        return thing if issubclass(thing, BaseAgent) else adopt(thing)  # type: ignore[arg-type]
    if hasattr(thing, "predict"):
        cure = "clickgym.agents.FrozenPolicy(model=model)"
        raise TypeError(f"{what} is a trained model; play it as {cure}")
    if isinstance(thing, BaseAgent) or not callable(thing):
        raise TypeError(f"{what} makes no agents; expected a name, a class or (class, arguments)")
    if not takes(thing, "n_items"):
        raise TypeError(
            f"{what} makes no agents, because it takes no n_items; a function that returns lists "
            "is played as clickgym.agents.FrozenPolicy(n_items, n_positions, model=function)"
        )
    return thing


def maker_name(maker: Callable[..., Any]) -> str:
    """The name of an agent in messages: that of its class or function."""
    return getattr(maker, "__name__", type(maker).__name__)


@lru_cache(maxsize=256)  # a sweep asks for each run
def parameters_of(maker: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters of what makes agents, without ``*args`` and ``**kwargs``."""
    rest = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    every = inspect.signature(maker).parameters
    return {name: parameter for name, parameter in every.items() if parameter.kind not in rest}


def takes(maker: Callable[..., Any], name: str) -> bool:
    """Whether what makes agents takes an argument of that name."""
    every = inspect.signature(maker).parameters
    return name in every or any(one.kind is one.VAR_KEYWORD for one in every.values())


def requirements(maker: Callable[..., Any]) -> dict[str, str]:
    """The parameters for knowledge that a paper assumes, each with its source."""
    return dict(getattr(maker, "requires", {}))


def observed_sizes(maker: Callable[..., Any]) -> list[str]:
    """The sizes of what an agent ranks by beside clicks: keys of `OBSERVED`."""
    return [size for size in OBSERVED if size in parameters_of(maker)]


def make_agent(
    agent: AgentLike,
    env: gym.Env,
    *,
    horizon: int | None = None,
    seed: Seed = None,
    **hyperparameters: Any,
) -> BaseAgent:
    """Build an agent for an environment.

    Sizes, the number of features and their scale come from the environment. If a paper assumes more
    knowledge, it also comes from the environment unless you pass it: the examination probabilities
    of PBM-UCB, the production list of `Fixed`, the optimum of `Oracle`. The rest of the click model
    stays hidden.

    Args:
        agent: a name, as for the command line, ``"CascadeKLUCB:feedback=first_click"`` or
            ``"my_module:MyAgent"``; a class, of `Agent`, `OwnLoop` or stable-baselines3; or
            ``(class, arguments)``.
        env: the environment that the agent will play.
        horizon: T, the number of sessions; passed only to agents that take it.
        seed: the seed of the agent's own generator.
        **hyperparameters: further hyper-parameters of the agent.

    Returns:
        The agent; its attribute ``filled_in`` says what was filled in from the environment and the
        horizon.

    Raises:
        ValueError: the agent is unknown; it needs a horizon that is missing, or knowledge that the
            environment does not have; or the function that makes it returned an agent that has
            already played.
        TypeError: on a hyper-parameter that the agent does not take.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> agent = clickgym.make_agent("PBMUCB", gym.make("PBMRank-v0"), seed=0)
        >>> sorted(agent.filled_in)
        ['examination', 'n_items', 'n_positions']
    """
    check_kind("env", env, gym.Env, AN_ENV)
    maker, passed = agent_recipe(agent)
    passed = {**passed, **hyperparameters}
    name = maker_name(maker)
    for key in passed:
        if key in SET_BY_THE_RUN or not takes(maker, key):
            names = [other for other in parameters_of(maker) if other not in SET_BY_THE_RUN]
            raise TypeError(f"{name}: " + unknown("hyper-parameter", key, names))
    filled_in = {  # copied, because an agent may write into what it gets
        key: value.copy() if isinstance(value, np.ndarray) else value
        for key, value in _filled_in(maker, passed, env, horizon).items()
    }
    result = _called(f"agent {name}", maker, {**filled_in, **passed, "seed": seed}, AgentError)
    if not isinstance(result, BaseAgent):
        raise TypeError(f"{name} returned {short(result)}; expected an agent")
    if result.has_played:
        raise ValueError(f"{name} returned an agent that has played; expected one for each run")
    result.filled_in = filled_in
    return result


def _filled_in(
    maker: Callable[..., BaseAgent], passed: Arguments, env: gym.Env, horizon: int | None
) -> Arguments:
    """What an agent gets from the environment and the horizon, as `make_agent` says.

    Args:
        maker: of the agent.
        passed: its hyper-parameters, which come first.
        env, horizon: as in `make_agent`.
    """
    name, parameters, sizes = maker_name(maker), parameters_of(maker), sizes_of(env)
    required = [key for key, one in parameters.items() if one.default is one.empty]
    core: Any = env.unwrapped
    found: Arguments = {"n_items": sizes.n_items, "n_positions": sizes.n_positions}

    # Knowledge that the paper assumes.
    for key, source in requirements(maker).items():
        if key in passed:
            continue
        known = core.knowledge(source) if isinstance(core, ClickEnv) else None
        if known is not None:
            found[key] = known
        elif key in required:
            if sizes.n_features and source.endswith("_ranking"):
                reason = f"requires {key}, and {name_of(env)} has other items in every session"
            else:
                reason = f"requires {key}, which {name_of(env)} does not have: give {key}=..."
            raise UnsuitedError(name, reason)

    # The sizes of what it observes beside clicks.
    for key, (what, where) in OBSERVED.items():
        if key in parameters and key not in passed:
            found[key] = getattr(sizes, key)
            if not found[key]:
                raise UnsuitedError(name, f"ranks by {what}, which only {where} have")
    if "feature_scale" in parameters and isinstance(core, ClickEnv):
        found["feature_scale"] = core.feature_scale

    if "horizon" in parameters and horizon is not None:
        found["horizon"] = check_horizon(horizon)
    elif "horizon" in required:
        raise ValueError(f"{name} needs a horizon")
    return found
