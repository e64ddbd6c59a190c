"""Make agents and environments from names, as on the command line and in sweeps, or from objects."""

from __future__ import annotations

import importlib
import inspect
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec

from ..agents import LEARNERS, Agent, Learner
from ..agents.generic_rl import adopt
from ..core.checks import AN_ENV, check_horizon, check_kind, short, unknown
from ..core.trust import UntrustedError, check_trust, is_library, looking_in, reads_file
from ..envs import CONTEXTUAL, ENVIRONMENTS, MEMORY, CascadeMDP, ClickEnv, ContextualModel, Instance, Users
from ..envs.guests import sizes_of
from .labels import PUBLISHED, AgentLike, EnvLike, UnsuitedError, split


def _module(what: str, name: str) -> ModuleType:
    """Import the module of ``"module:..."``, also from the working folder."""
    module, here = check_trust(what, name), Path.cwd()
    with looking_in(here):
        try:
            return importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or module.partition(".")[0] != error.name.partition(".")[0]:
                raise  # the user's module was found, and lacks something of its own
            raise ValueError(f"{what} {name!r}: there is no module {module!r} (looked in {here}, too)") from None


def _attribute(what: str, name: str, module: ModuleType, kind: type) -> Any:
    """What ``"module:Name"`` stands for.

    Of a module that a file may name, the file may use what the module itself defines, not what it imports (``os.system``); of
    the libraries only classes of a kind, for files say what these are called with.
    """
    attribute = name.partition(":")[2]
    thing = operator.attrgetter(attribute)(module)
    if reads_file():
        home = str(getattr(thing, "__module__", "")).partition(".")[0]
        fits = not is_library(module.__name__) or (isinstance(thing, type) and issubclass(thing, kind))
        if not fits or "." in attribute or home != module.__name__.partition(".")[0]:
            raise UntrustedError(
                f"a file names the {what} {name!r}, which {module.__name__} does not define as one; see --trust"
            )
    return thing


# ----------------------------------------------------------------------------------------------------------- environments


def env_maker(env: EnvLike) -> tuple[EnvSpec | Callable[..., Any] | Users, dict[str, Any]]:
    """The function that makes an environment, and its arguments.

    Args:
        env: as for `make_env`.

    Raises:
        ValueError: an unknown id, or a module that cannot be imported.
        TypeError: it is no environment.
    """
    maker, arguments = split(env)
    if isinstance(maker, str):
        maker = _env_named(maker)
    if isinstance(maker, type) and issubclass(maker, Users):
        raise TypeError(
            f"{maker.__name__} is a class; pass a model, {maker.__name__}(...), or register an id for it, "
            f'clickgym.register("MyRank-v0", {maker.__name__})'
        )
    if isinstance(maker, Users | EnvSpec) or callable(maker):
        return maker, arguments
    advice = ""
    if isinstance(maker, Instance):
        advice = '; an instance needs an id as well: ("PBMRank-v0", {"instance": ...}), or instances=[...]'
    elif isinstance(maker, gym.Env):
        advice = "; a sweep makes a new environment for each run: pass its id, env.spec, or a function that returns one"
    raise TypeError(
        f"expected an id, an EnvSpec, a function that returns an environment, or a click model; got {short(maker)}{advice}"
    )


def _env_named(name: str) -> Any:
    """What a name stands for: a registered id, one that a module registers, or a function of a module."""
    if name in gym.registry:
        return gym.registry[name]
    module, colon, rest = name.partition(":")
    if colon:
        imported = _module("environment", name)
        if rest in gym.registry:
            return gym.registry[rest]
        try:
            return _attribute("environment", name, imported, gym.Env)
        except AttributeError:
            what = f"the module {module!r} registers no id {rest!r} (by clickgym.register, when it is imported)"
            raise ValueError(f"environment {name!r}: {what}, and has no function or class of that name") from None
    registered = [*(ENVIRONMENTS | CONTEXTUAL | MEMORY), *gym.registry]
    own = "one that a module of your own registers is named module:Id-v0"
    raise ValueError(f"{unknown('environment', name, dict.fromkeys(registered))}; {own}")


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
    maker, arguments = env_maker(env)
    if instance is not None:
        if "instance" in arguments or isinstance(maker, Users):
            raise ValueError(f"the instance {instance!r} cannot be taken: the environment {env!r} has users of its own")
        arguments["instance"] = instance
    if isinstance(maker, Users):
        return ClickEnv(maker, **arguments)
    try:
        with looking_in(Path.cwd()):
            product = gym.make(maker, **arguments) if isinstance(maker, EnvSpec) else maker(**arguments)
    except gym.error.Error as error:
        raise ValueError(f"environment {getattr(maker, 'id', maker)}: {error}") from None
    if not isinstance(product, gym.Env):
        raise TypeError(f"{short(maker)} returned {short(product)}; expected an environment")
    return product


# ----------------------------------------------------------------------------------------------------------------- agents


def agent_maker(agent: AgentLike) -> tuple[Callable[..., Agent | Learner], dict[str, Any]]:
    """The class or function that makes an agent, and its hyper-parameters; ``settings="tuned"`` is replaced by the values.

    Args:
        agent: as for `make_agent`.

    Raises:
        ValueError, TypeError: there is no such agent, or it is none.
    """
    thing, hyperparameters = split(agent)
    maker = agent_class(thing) if isinstance(thing, str) else _as_maker(thing)
    return maker, _with_settings(maker, hyperparameters)


def _with_settings(maker: Any, hyperparameters: dict[str, Any]) -> dict[str, Any]:
    """Hyper-parameters with those that ``settings="tuned"`` stands for in its place; any that is given beside it stays."""
    tuned = getattr(maker, "tuned", None)
    if "settings" not in hyperparameters or tuned is None:
        return hyperparameters
    own = dict(hyperparameters)
    settings = own.pop("settings")
    if settings != "tuned":
        raise ValueError(f"{maker.__name__}: {unknown('settings', settings, ('tuned',))}; without settings it has its defaults")
    if own.get("protocol", "online") != "online":
        raise ValueError(
            f"{maker.__name__}: settings='tuned' are for protocol='online'; with {own['protocol']!r} leave them out"
        )
    return {**tuned, **own}


def agent_class(name: str) -> Callable[..., Agent | Learner]:
    """The class of an agent: a published one by name, or your own as ``module:Class``.

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
    imported = _module("agent", name)
    try:
        return _as_maker(_attribute("agent", name, imported, object), f"agent {name!r}")
    except AttributeError:
        raise ValueError(f"agent {name!r}: the module {module!r} has no {attribute!r}") from None


def _as_maker(thing: Any, what: str = "") -> Any:
    """What was passed as an agent, if it can make one."""
    library: Any = sys.modules.get("stable_baselines3.common.base_class")  # whose classes cannot be without it
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
    raise ValueError(f"{what} is not a subclass of clickgym.agents.Agent, nor an algorithm in the style of stable-baselines3")


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
        learning = f"clickgym.agents.{kind}" if kind in LEARNERS else f'"{type(thing).__module__.partition(".")[0]}:{kind}"'
        return (
            f"an object of stable-baselines3's {kind} is no agent; to let it learn in the run pass the class, {learning}; to "
            f"play it as it is trained, {frozen}"
        )
    if hasattr(thing, "predict"):
        return f"{what} is no agent; a trained policy, with a method predict, plays as {frozen}"
    return "" if callable(thing) else f"{what} is no agent; expected a name, a class, or a functools.partial of one"


def make_agent(
    agent: AgentLike,
    env: gym.Env,
    *,
    horizon: int | None = None,
    seed: int | np.random.SeedSequence | None = None,
    **hyperparameters: Any,
) -> Agent | Learner:
    """Build an agent for an environment.

    Sizes and the number of features come from the environment. If a paper assumes more knowledge, it also comes from the
    environment unless you pass it: the examination probabilities of PBM-UCB, the production list of `Fixed`, the optimum of
    `Oracle`. The rest of the click model stays hidden. The only exception is an agent whose class asks for it by ``told = {...:
    "users"}``, to draw a log from which it learns first.

    Args:
        agent: a name, as for the command line, ``"CascadeKLUCB:feedback=first_click"`` or ``"my_module:MyAgent"``; a class, of
            `Agent`, `Learner` or stable-baselines3; a `functools.partial` of one; or a function with the same arguments.
        env: the environment that the agent will play.
        horizon: T, the number of sessions; passed only to agents that take it.
        seed: of the agent's own generator.
        **hyperparameters: of the agent, beside those that ``agent`` brings. For generic RL known by name, ``settings="tuned"``
            stands for those that `clickgym tune` proposed, ``PPO.tuned``.

    Returns:
        The agent; its attribute ``filled_in`` says what was filled in from the environment and the horizon.

    Raises:
        ValueError: on an unknown agent, an agent that needs a horizon without one, or one that needs knowledge that the
            environment does not have.
        TypeError: on a hyper-parameter that the agent does not take.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> agent = clickgym.make_agent("PBMUCB", gym.make("PBMRank-v0"), seed=0)
        >>> sorted(agent.filled_in)
        ['examination', 'n_items', 'n_positions']
    """
    check_kind("env", env, gym.Env, AN_ENV)
    both: Any = (agent, hyperparameters)
    maker, hyperparameters = agent_maker(both)
    name = getattr(maker, "__name__", type(maker).__name__)
    parameters = inspect.signature(maker).parameters
    _check_hyperparameters(name, parameters, hyperparameters)
    horizon = None if horizon is None else check_horizon(horizon)
    filled_in = dict(_filled_in(name, maker, parameters, hyperparameters, env, horizon))
    product: Any = maker(**filled_in, **hyperparameters, seed=seed)
    if not isinstance(product, (Agent, Learner)):
        raise TypeError(f"{name} returned {product!r}; expected an agent")
    setattr(product, "filled_in", filled_in)  # noqa: B010 (for type checkers no agent has it)
    return product


Parameters = Mapping[str, inspect.Parameter]


def _check_hyperparameters(agent: str, parameters: Parameters, hyperparameters: Iterable[str]) -> None:
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    for key in hyperparameters:
        if key in ("horizon", "seed"):
            raise ValueError(f"{agent}: {key} is set by --{key}, the argument {key}; it is no hyper-parameter")
        if key in ("n_items", "n_positions"):
            raise ValueError(f"{agent}: {key} is set by the environment; it is no hyper-parameter")
        if key not in parameters and not takes_any:
            own = [other for other in list(parameters)[2:] if other not in ("horizon", "seed")]
            raise TypeError(f"{agent}: " + unknown("hyper-parameter", key, own))


def _filled_in(
    agent: str, maker: Any, parameters: Parameters, hyperparameters: Mapping[str, Any], env: gym.Env, horizon: int | None
) -> Iterator[tuple[str, Any]]:
    """The arguments of an agent that come from the environment and the horizon."""
    sizes, click_env = sizes_of(env), env.unwrapped
    yield "n_items", sizes.n_items
    yield "n_positions", sizes.n_positions
    has_list = getattr(click_env, "initial_ranking", None) is not None
    for key, source in getattr(maker, "told", {}).items():
        if key not in hyperparameters and (has_list or is_required(parameters[key])):
            yield key, _fact(agent, key, source, click_env)
    for key in filter((parameters.keys() - hyperparameters.keys()).__contains__, OBSERVED):
        yield key, _size(agent, key, getattr(sizes, key))
    if getattr(maker, "same_candidates", False):
        _check_candidates(agent, getattr(click_env, "model", None))
    if "horizon" in parameters:
        yield from _horizon(agent, parameters["horizon"], horizon)


def _check_candidates(agent: str, users: Any) -> None:
    if isinstance(users, ContextualModel) and not users.same_candidates:
        raise UnsuitedError(
            f"{agent} ranks the same candidates in every session, and those of this {users.kind} change; an instance in which "
            "they stay has one user and as many items as candidates, as linear:n_items=20,n_pool=20,n_users=1"
        )


def _horizon(agent: str, parameter: inspect.Parameter, horizon: int | None) -> Iterator[tuple[str, int]]:
    if horizon is not None:
        yield "horizon", horizon
    elif is_required(parameter):
        raise ValueError(f"{agent} needs a horizon")


def is_required(parameter: inspect.Parameter) -> bool:
    """Whether a call must give this parameter; ``*args`` and ``**kwargs`` are not required."""
    return parameter.default is parameter.empty and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)


def _size(agent: str, key: str, size: int) -> int:
    what, where = OBSERVED[key]
    if not size:
        raise UnsuitedError(f"{agent} ranks by {what}, which only {where} have")
    return size


OBSERVED = {"n_features": ("features", "contextual environments"), "n_states": ("the user's state", "users with a memory")}
"""The sizes of what some agents rank by, in words, and where it is observed."""


def _fact(agent: str, key: str, source: str, env: Any) -> Any:
    """What a paper assumes known of the environment, from one of the sources that an agent class may name."""
    if not isinstance(env, ClickEnv):
        raise UnsuitedError(f"{agent} must be told {key}, which {type(env).__name__} is no ClickEnv to ask for: give {key}=...")
    model = env.model
    if isinstance(model, CascadeMDP):
        facts = {"mean_sessions": model.n_sessions or model.mean_sessions, "click_rewards": model.click_rewards}
        fact, reason = facts.get(source), ", which users with a memory do not have: "
    elif isinstance(model, ContextualModel):
        fact, reason = _of_candidates(source, model), ", which the environment does not know: "
    else:
        has = "no production list" if source == "initial_ranking" else "none"
        fact, reason = _of_items(source, env), f": the environment has {has}, so "
    if fact is None:
        raise UnsuitedError(f"{agent} must be told {key}{reason}give {key}=...")
    return fact


def _of_candidates(source: str, model: ContextualModel) -> Any:
    """A fact of a model whose candidates change; where these matter, of candidates that are all alike."""
    if source == "browsing":
        return model.mean.browsing_weights()
    if source != "examination":
        return None
    weights = model.base.position_weights()
    return model.mean.examination_probabilities(range(model.base.n_positions)) if weights is None else weights


def _of_items(source: str, env: Any) -> Any:
    """A fact of a model of items that stay, as it was known when the agent was built."""
    users = env.model.epochs[0]
    if source == "users":
        return users
    if source == "browsing":
        return users.browsing_weights()
    if source != "examination":
        return env.task.optimal_ranking if source == "optimal_ranking" else env.initial_ranking
    weights = users.position_weights()
    if weights is None and env.initial_ranking is not None:  # the position bias that one would measure, on the production list
        return users.examination_probabilities(env.initial_ranking[: users.n_positions])
    return weights
