"""Agents and environments from what is passed as one: a name, as the command line and sweeps write it, or an object."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import inspect
import operator
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec

from ..agents import LEARNERS, Agent, Learner
from ..agents.generic_rl import adopt
from ..core.checks import check_horizon, check_module, unknown
from ..envs import CONTEXTUAL, ENVIRONMENTS, MEMORY, CascadeMDP, ClickEnv, ContextualModel, Instance, Users
from ..envs.guests import sizes_of
from .labels import PUBLISHED, AgentLike, EnvLike, UnsuitedError, parse_spec, split

__all__ = [
    "PUBLISHED",
    "agent_class",
    "agent_maker",
    "env_maker",
    "looking_in",
    "make_agent",
    "make_env",
    "parse_spec",
]


@contextlib.contextmanager
def looking_in(folder: str | Path) -> Iterator[None]:
    """Look for modules in a folder, too."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def _module(what: str, name: str) -> ModuleType:
    """Import the module of ``"module:..."``, also from the working folder."""
    module, here = check_module(what, name), Path.cwd()
    with looking_in(here):
        try:
            return importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or module.partition(".")[0] != error.name.partition(".")[0]:
                raise  # the user's module was found, and lacks something of its own
            raise ValueError(f"{what} {name!r}: there is no module {module!r} (looked in {here}, too)") from None


# ----------------------------------------------------------------------------------------------------------- environments


def env_maker(env: EnvLike) -> tuple[EnvSpec | Callable[..., Any] | Users, dict[str, Any]]:
    """What makes an environment, and its arguments.

    Args:
        env: as for `make_env`.

    Raises:
        ValueError: an unknown id, or a module that cannot be imported.
        TypeError: it is no environment.
    """
    made, arguments = split(env)
    if isinstance(made, str):
        made = _env_named(made)
    if isinstance(made, Users) or callable(made) or isinstance(made, EnvSpec):
        if isinstance(made, type) and issubclass(made, Users):
            raise TypeError(
                f"{made.__name__} is a class; pass a model, {made.__name__}(...), or register an id for it, "
                f'clickgym.register("MyRank-v0", {made.__name__})'
            )
        return made, arguments
    advice = ""
    if isinstance(made, Instance):
        advice = '; an instance needs an id as well: ("PBMRank-v0", {"instance": ...}), or instances=[...]'
    elif isinstance(made, gym.Env):
        advice = "; a sweep makes a new environment for each run: pass its id, env.spec, or a function that returns one"
    raise TypeError(
        f"expected an id, an EnvSpec, a function that returns an environment, or a click model; got {made!r}{advice}"
    )


def _env_named(name: str) -> Any:
    """What a name stands for: a registered id, one that a module registers, or a function of a module."""
    if name in gym.registry:
        return gym.registry[name]
    module, colon, rest = name.partition(":")
    if colon:
        found = _module("environment", name)
        if rest in gym.registry:
            return gym.registry[rest]
        try:
            return operator.attrgetter(rest)(found)
        except AttributeError:
            raise ValueError(f"environment {name!r}: the module {module!r} registers no {rest!r}, and has none") from None
    close = difflib.get_close_matches(name, gym.registry, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    ours = ", ".join(ENVIRONMENTS | CONTEXTUAL | MEMORY)
    raise ValueError(
        f"unknown environment {name!r}{hint} (there is: {ours}, and what else is registered with Gymnasium); one that a module "
        "of your own registers is named module:Id-v0"
    )


def make_env(env: EnvLike | gym.Env, instance: Any = None) -> gym.Env:
    """Make an environment.

    Args:
        env: an id, with arguments of ``gym.make`` if any, ``"PBMRank-v0:reward=any_click"`` or ``("PBMRank-v0", {"reward":
            "any_click"})``; ``"module:Id-v0"``, an id that a module registers; an ``EnvSpec``; a function that returns an
            environment, itself or as ``"module:function"``; or the users of an environment, such as a click model. An
            environment is returned as it is.
        instance: what ``gym.make`` takes as one; None takes the default.

    Raises:
        ValueError, TypeError: on an unknown id or a bad argument.

    Example:
        >>> make_env("PBMRank-v0:cutoff=3").action_space
        RankedList(n_items=10, n_positions=5)
    """
    if isinstance(env, gym.Env):
        return env
    made, arguments = env_maker(env)
    if instance is not None:
        if "instance" in arguments or isinstance(made, Users):
            raise ValueError(f"the instance {instance!r} cannot be taken: the environment {env!r} has users of its own")
        arguments["instance"] = instance
    if isinstance(made, Users):
        return ClickEnv(made, **arguments)
    try:
        with looking_in(Path.cwd()):
            found = gym.make(made, **arguments) if isinstance(made, EnvSpec) else made(**arguments)
    except gym.error.Error as error:
        raise ValueError(f"environment {getattr(made, 'id', made)}: {error}") from None
    if not isinstance(found, gym.Env):
        raise TypeError(f"{made!r} returned {found!r}; expected an environment")
    return found


# ----------------------------------------------------------------------------------------------------------------- agents


def agent_maker(agent: AgentLike) -> tuple[Callable[..., Agent | Learner], dict[str, Any]]:
    """What makes an agent, a class or a function with its arguments, and its hyper-parameters.

    Args:
        agent: as for `make_agent`.

    Raises:
        ValueError, TypeError: there is no such agent, or it is none.
    """
    made, hyperparameters = split(agent)
    return agent_class(made) if isinstance(made, str) else _as_maker(made), hyperparameters


def agent_class(name: str) -> Callable[..., Agent | Learner]:
    """The class of an agent: a published one by name, or one's own as ``module:Class``.

    A class in the style of stable-baselines3, ``"stable_baselines3:PPO"`` or a subclass of its ``BaseAlgorithm``, becomes a
    `Learner`.

    Args:
        name: ``"BatchRank"``, ``"my_module:MyAgent"``, ``"my.package.module:MyAgent"``; modules are also looked for in the
            working folder.

    Raises:
        ValueError: there is no such agent.
    """
    if name in PUBLISHED:
        return PUBLISHED[name]
    module, colon, attribute = name.partition(":")
    if not colon:
        raise ValueError(unknown("agent", name, PUBLISHED) + "; your own is named module:Class")
    found = _module("agent", name)
    try:
        return _as_maker(operator.attrgetter(attribute)(found), f"agent {name!r}")
    except AttributeError:
        raise ValueError(f"agent {name!r}: the module {module!r} has no {attribute!r}") from None


def _as_maker(found: Any, what: str = "") -> Any:
    """What was passed as an agent, if it can make one."""
    library: Any = sys.modules.get("stable_baselines3.common.base_class")  # whose classes cannot be without it
    what = what or repr(found)
    if isinstance(found, type) and issubclass(found, (Agent, Learner)):
        return found
    if isinstance(found, type) and library is not None and issubclass(found, library.BaseAlgorithm):
        return adopt(found)
    if isinstance(found, type):
        raise ValueError(
            f"{what} is not a subclass of clickgym.agents.Agent, nor an algorithm in the style of stable-baselines3"
        )
    kind = type(found).__name__
    if isinstance(found, (Agent, Learner)):
        raise TypeError(
            f"{what} is an agent already, and one is made anew for each run: pass the class, {kind}, or with hyper-parameters "
            f"functools.partial({kind}, ...)"
        )
    frozen = "clickgym.agents.FrozenPolicy(n_items, n_positions, model=..., actions=...), actions as trained"
    if library is not None and isinstance(found, library.BaseAlgorithm):
        learning = f"clickgym.agents.{kind}" if kind in LEARNERS else f'"{type(found).__module__.partition(".")[0]}:{kind}"'
        raise TypeError(
            f"an object of stable-baselines3's {kind} is no agent; to let it learn in the run pass the class, {learning}; to "
            f"play it as it is trained, {frozen}"
        )
    if hasattr(found, "predict"):
        raise TypeError(f"{what} is no agent; a trained policy, with a method predict, plays as {frozen}")
    if not callable(found):
        raise TypeError(f"{what} is no agent; expected a name, a class, or a functools.partial of one")
    return found


def make_agent(
    agent: AgentLike,
    env: gym.Env,
    *,
    horizon: int | None = None,
    seed: int | np.random.SeedSequence | None = None,
    **hyperparameters: Any,
) -> Agent | Learner:
    """Build an agent for an environment.

    Sizes and the number of features come from the environment, and so does what a paper assumes known, unless it is given:
    PBM-UCB's examination probabilities, the production list of `Fixed`, the optimum of `Oracle`. The rest of the click model
    stays hidden.

    Args:
        agent: a name, as for the command line, ``"CascadeKLUCB:feedback=first_click"`` or ``"my_module:MyAgent"``; a class, of
            `Agent`, `Learner` or stable-baselines3; a `functools.partial` of one; or a function with the same arguments.
        env: the environment the agent will face.
        horizon: T; goes only to agents that take one.
        seed: of the agent's own generator.
        **hyperparameters: of the agent, beside those that ``agent`` brings.

    Returns:
        The agent; its attribute ``filled_in`` says what was filled in from the environment and the horizon.

    Raises:
        ValueError: on an unknown agent, an agent that needs a horizon without one, or one that must be told what the
            environment does not know.
        TypeError: on a hyper-parameter that the agent does not take.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> agent = clickgym.make_agent("PBMUCB", gym.make("PBMRank-v0"), seed=0)
        >>> sorted(agent.filled_in)
        ['examination', 'n_items', 'n_positions']
    """
    made, brought = agent_maker(agent)
    name = getattr(made, "__name__", type(made).__name__)
    hyperparameters = brought | hyperparameters
    parameters = inspect.signature(made).parameters
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    for key in hyperparameters:
        if key in ("horizon", "seed"):
            raise ValueError(f"{name}: {key} is set by --{key}, the argument {key}; it is no hyper-parameter")
        if key in ("n_items", "n_positions"):
            raise ValueError(f"{name}: {key} is set by the environment; it is no hyper-parameter")
        if key not in parameters and not takes_any:
            own = [other for other in list(parameters)[2:] if other not in ("horizon", "seed")]
            raise TypeError(f"{name}: " + unknown("hyper-parameter", key, own))
    if horizon is not None:
        horizon = check_horizon(horizon)
    click_env: Any = env.unwrapped
    sizes = sizes_of(env)
    filled_in: dict[str, Any] = {"n_items": sizes.n_items, "n_positions": sizes.n_positions}
    for key, source in getattr(made, "told", {}).items():
        required = parameters[key].default is inspect.Parameter.empty
        if key not in hyperparameters and (required or getattr(click_env, "initial_ranking", None) is not None):
            filled_in[key] = _known(name, key, source, click_env)
    if "n_features" in parameters and "n_features" not in hyperparameters:
        if not sizes.n_features:
            raise UnsuitedError(f"{name} ranks by features, which only contextual environments have")
        filled_in["n_features"] = sizes.n_features
    if "n_states" in parameters and "n_states" not in hyperparameters:
        if not sizes.n_states:
            raise UnsuitedError(f"{name} ranks by the user's state, which only users with a memory have")
        filled_in["n_states"] = sizes.n_states
    if "horizon" in parameters:
        if horizon is not None:
            filled_in["horizon"] = horizon
        elif parameters["horizon"].default is inspect.Parameter.empty:
            raise ValueError(f"{name} needs a horizon")
    built: Any = made(**filled_in, **hyperparameters, seed=seed)
    if not isinstance(built, (Agent, Learner)):
        raise TypeError(f"{name} returned {built!r}; expected an agent")
    setattr(built, "filled_in", filled_in)  # noqa: B010 (for type checkers no agent has it)
    return built


def _known(agent: str, key: str, source: str, env: Any) -> Any:
    """What a paper assumes known of the environment, from one of the sources that an agent class may name."""
    guest = not isinstance(env, ClickEnv)
    if guest:
        raise UnsuitedError(f"{agent} must be told {key}, which {type(env).__name__} is no ClickEnv to ask for: give {key}=...")
    if isinstance(env.model, CascadeMDP):
        facts = {"mean_sessions": env.model.n_sessions or env.model.mean_sessions, "click_rewards": env.model.click_rewards}
        if source not in facts:
            raise UnsuitedError(f"{agent} must be told {key}, which users with a memory do not have: give {key}=...")
        return facts[source]
    contextual = isinstance(env.model, ContextualModel)
    users = env.model.base if contextual else env.model.epochs[0]  # what was known when the agent was built
    known = None
    if source == "browsing":  # of candidates that are all alike, where these matter
        known = (env.model.mean if contextual else users).browsing_weights()
    elif source == "examination":
        known = users.position_weights()
        if known is None and contextual:  # the position bias that one would measure: of candidates that are all alike,
            known = env.model.mean.examination_probabilities(range(users.n_positions))
        elif known is None and env.initial_ranking is not None:  # or on the production list
            known = users.examination_probabilities(env.initial_ranking[: users.n_positions])
    elif not contextual:
        known = env.task.optimal_ranking if source == "optimal_ranking" else env.initial_ranking
    if known is None and contextual:
        raise UnsuitedError(f"{agent} must be told {key}, which the environment does not know: give {key}=...")
    if known is None:
        has = "no production list" if source == "initial_ranking" else "none"
        raise UnsuitedError(f"{agent} must be told {key}: the environment has {has}, so give {key}=...")
    return known
