"""Functions that parse specs and labels, and create the environments and agents behind them."""

from __future__ import annotations

import copy
import inspect
import operator
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from typing import Any, Literal, TypeVar

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from ..agents import AGENTS, FrozenPolicy
from ..agents.agent import BaseAgent, Seed, UnsuitedError
from ..agents.rl.learner import LIBRARY_OF, RL_LIBRARIES, adopt
from ..core.checks import (
    AN_ENV,
    check_horizon,
    check_kind,
    is_sequence,
    short_repr,
    unknown_message,
)
from ..core.errors import FAILURES, SessionError, cause
from ..core.modules import module_of, object_of
from ..core.specs import format_spec, parse_spec
from ..envs import ENVIRONMENTS, ClickEnv, UserModel
from ..envs.base_env import name_of
from ..envs.env_properties import sizes_of, user_model_of
from ..envs.instances.instance import Instance, load_instance, shipped_instances
from .run_errors import AgentError

Spec = str | tuple[str, Mapping[str, Any]]
"""A name, with arguments if needed: ``"CascadeKLUCB:feedback=first_click"`` or ``("CascadeKLUCB",
{"feedback": "first_click"})``.
"""
AgentLike = Spec | Callable[..., Any] | tuple[Callable[..., Any], Mapping[str, Any]]
"""What you can pass as an agent: a spec, a class, a function, or these with arguments."""
EnvLike = Spec | EnvSpec | Callable[..., gym.Env] | UserModel | tuple[Any, Mapping[str, Any]]
"""What you can pass as an environment: an id, a click model, or one of these with arguments."""

BY_NAME: dict[str, Callable[..., BaseAgent]] = {**AGENTS, "FrozenPolicy": FrozenPolicy}
"""The agents that a name without a module stands for."""

Object = TypeVar("Object")


# -------------------------------------------------------------------------------------------- specs


def split_label(text: str) -> tuple[str | None, str]:
    """Split an argument from the command line into its label (None if it has none) and its spec.

    Example:
        >>> split_label("mine=my_module:MyAgent:alpha=0.1"), split_label("TopRank:delta=0.1")
        (('mine', 'my_module:MyAgent:alpha=0.1'), (None, 'TopRank:delta=0.1'))
    """
    label, equals, spec = text.partition("=")
    return (label, spec) if equals and ":" not in label else (None, text)


def split(obj: Any) -> tuple[Any, dict[str, Any]]:
    """Separate the name or class (or function, or click model) of an agent or environment from its
    arguments.

    Example:
        >>> from clickgym.agents import TopRank
        >>> split("TopRank:delta=0.1"), split((TopRank, {}))[1]
        (('TopRank', {'delta': 0.1}), {})
    """
    if isinstance(obj, tuple) and len(obj) == 2 and isinstance(obj[1], Mapping):
        maker, arguments = split(obj[0])
        return maker, {**arguments, **obj[1]}
    return parse_spec(obj) if isinstance(obj, str) else (obj, {})


# ------------------------------------------------------------------------------------------- labels


def spec_of(obj: Any) -> str | None:
    """Return the spec of an agent or environment as text, in the form that `parse_spec` reads, or
    None if it has no spec, as for a lambda.

    Example:
        >>> from clickgym.agents import CascadeKLUCB
        >>> spec_of((CascadeKLUCB, {"feedback": "first_click"}))
        'CascadeKLUCB:feedback=first_click'
        >>> spec_of(lambda: gym.make("PBMRank-v0"))
    """
    maker, arguments = split(obj)
    name = maker if isinstance(maker, str) else import_name(maker)
    return None if name is None else format_spec(name, arguments)


def import_name(maker: Any) -> str | None:
    """Return the name under which a class or function can be imported; None if there is none."""
    maker = getattr(maker, "adopted", maker)  # the original class of an adopted RL algorithm
    name, module = getattr(maker, "__qualname__", None), getattr(maker, "__module__", None)
    if name is None or module is None:
        return None
    if AGENTS.get(name) is maker:
        return str(name)
    library = module.partition(".")[0]
    if library in RL_LIBRARIES and getattr(sys.modules[library], name, None) is maker:
        return f"{library}:{name}"
    try:
        namesake = operator.attrgetter(name)(sys.modules[module])
    except (AttributeError, KeyError):
        return None
    return f"{module}:{name}" if namesake is maker else None


def _check_no_env_object(obj: Any) -> None:
    """Raise a TypeError for an environment object, which a sweep cannot create again."""
    if isinstance(obj, gym.Env):
        raise TypeError(
            f"{short_repr(obj)} is an environment object, but a sweep creates a new environment "
            "for each run; pass an id or a click model"
        )


def by_label(noun: str, objects: Iterable[Object] | Mapping[str, Object]) -> dict[str, Object]:
    """Return a dictionary of agents or environments by label.

    The label is the spec, unless a mapping or the prefix ``LABEL=`` sets another label.

    Args:
        noun: the word for an object in messages, ``"agent"`` or ``"environment"``.
        objects: a list of agents or environments, in which text may begin with ``LABEL=``; or a
            mapping from labels to agents or environments.

    Raises:
        TypeError: ``objects`` is neither a list nor a mapping.
        ValueError: ``objects`` is empty, two objects have the same label, an object has neither a
            spec nor a label, or a label is not printable text on one line.

    Example:
        >>> from clickgym.agents import TopRank
        >>> list(by_label("agent", [TopRank, "Random"]))
        ['TopRank', 'Random']
        >>> by_label("agent", ["mine=my_module:MyAgent:alpha=0.1", "Random"])
        {'mine': 'my_module:MyAgent:alpha=0.1', 'Random': 'Random'}
    """
    if isinstance(objects, str) or not isinstance(objects, Iterable):
        raise TypeError(f"expected a list of {noun}s, got {short_repr(objects)}")
    if isinstance(objects, Mapping):
        pairs = [*objects.items()]
    else:
        entries = [split_label(obj) if isinstance(obj, str) else (None, obj) for obj in objects]
        pairs = [(spec_of(spec) if label is None else label, spec) for label, spec in entries]
    result: dict[str, Object] = {}
    for label, obj in pairs:
        if label is None:
            _check_no_env_object(obj)
            cure = f'pass a dict that names it: {{"my {noun}": ...}}'
            raise ValueError(f"{noun} {short_repr(obj)} has no name; {cure}")
        if not isinstance(label, str) or not label.strip() or not label.isprintable():
            raise ValueError(
                f"the label of {noun} {short_repr(obj)} is {label!r}; expected printable "
                "text on one line"
            )
        if label in result:
            raise ValueError(
                f"two {noun}s have the label {label!r}; remove one of them, or give it another "
                f"label: LABEL={noun.upper()}"
            )
        result[label] = obj
    if not result:
        raise ValueError(f"the list of {noun}s is empty; pass at least one {noun}")
    return result


Arguments = dict[str, Any]
ResolvedEnv = tuple[EnvSpec | UserModel | Callable[..., gym.Env], Arguments]
"""A resolved environment: its registered id, its users (for a `ClickEnv`) or a function, and the
arguments to create it with.
"""
ResolvedAgent = tuple[Callable[..., BaseAgent], Arguments]
"""A resolved agent: the class or function that creates the agent, and its hyper-parameters."""

OBSERVED = {
    "n_features": ("features", "contextual environments (such as ContextualPBMRank-v0)"),
    "n_states": ("the user's state", "stateful users (those of CascadeMDPRank-v0)"),
}
"""Sizes that some agents need. Texts for messages say what a size counts and what has it."""
NAMING_HINT = (
    "name any other agent as module:Class, such as my_module:MyAgent or stable_baselines3:TD3"
)
"""The end of the message about an unknown agent: how to name agents outside clickgym."""
SET_BY_THE_RUN = ("n_items", "n_positions", "horizon", "seed")
"""The arguments of an agent's constructor that clickgym sets; all others are hyper-parameters."""


# ------------------------------------------------------------------------------------- environments


def resolve_env(env: EnvLike) -> ResolvedEnv:
    """Find the registered id, users or function that an environment's spec names.

    Args:
        env: an environment in any form that `make_env` accepts, except an environment object. A
            `ResolvedEnv` is returned unchanged.

    Raises:
        ValueError: the id is unknown, or its module cannot be imported.
        TypeError: no environment can be created from ``env``.
    """
    _check_no_env_object(env)
    maker, arguments = split(env)
    if isinstance(maker, str):
        maker = _find_spec(maker)
    is_class = isinstance(maker, type) and issubclass(maker, UserModel)
    if is_class or not (isinstance(maker, UserModel | EnvSpec) or callable(maker)):
        raise TypeError(
            f"env is {short_repr(maker)}; expected an id, (id, arguments) or a click model"
        )
    return maker, arguments


def _find_spec(env_id: str) -> EnvSpec:
    """Return Gymnasium's spec of an environment id. If the id has the form ``module:Id-v0``, import
    the module first.
    """
    module, colon, name = env_id.rpartition(":")
    if colon:
        module_of("environment", env_id)
    if name in gym.registry:
        return gym.registry[name]
    if colon and f"{name}-v0" in gym.registry:
        raise ValueError(f"unknown environment {env_id!r}; did you mean '{env_id}-v0'?")
    if colon:
        raise ValueError(
            f"environment {env_id!r}: importing {module!r} does not register {name!r}; "
            "call clickgym.register_click_model or gymnasium.register in this module"
        )
    ids = dict.fromkeys([*ENVIRONMENTS, *gym.registry])
    raise ValueError(
        f"{unknown_message('environment', env_id, ids)}; name your own environment as module:Id-v0"
    )


def make_env(env: EnvLike | gym.Env, instance: Any = None) -> gym.Env:
    """Create an environment from an id or a click model.

    Args:
        env: an id such as ``"PBMRank-v0"``; an id with arguments for ``gym.make``, as
            ``"PBMRank-v0:reward=any_click"`` or ``("PBMRank-v0", {"reward": "any_click"})``;
            ``"module:Id-v0"``, an id that a module registers; or the users of an environment, such
            as a click model. An environment object is returned unchanged.
        instance: the name of an instance, a file, or an `Instance` object; by default, the default
            instance of the id.

    Raises:
        ValueError, TypeError: the id is unknown, or an argument is invalid.

    Example:
        >>> make_env("PBMRank-v0:cutoff=3").action_space
        RankedList(n_items=10, n_positions=5)
    """
    if isinstance(env, gym.Env):
        return env
    maker, arguments = resolve_env(env)
    if instance is not None:
        if "instance" in arguments or isinstance(maker, UserModel):
            raise ValueError(
                f"instance is {instance!r}, but the environment {short_repr(env)} already "
                "specifies its users; leave instance out"
            )
        arguments = {**arguments, "instance": instance}
    if isinstance(maker, UserModel):
        return ClickEnv(maker, **arguments)
    if isinstance(maker, EnvSpec):
        try:
            with _naming_errors(f"environment {maker.id}", SessionError):
                return gym.make(maker, **arguments)
        except gym.error.Error as error:
            raise ValueError(f"environment {maker.id}: {error}") from None
    with _naming_errors(f"environment {maker_name(maker)}", SessionError):
        result = maker(**arguments)
    check_kind(f"the environment from {short_repr(maker)}", result, gym.Env, AN_ENV)
    return result


def own_copies(
    resolved: tuple[Any, Arguments], shared: list[str] | None = None
) -> tuple[Any, Arguments]:
    """Return a resolved agent or environment with deep copies of what creates it and of its
    arguments, because an agent or environment of a sweep may write into an array or draw from a
    generator that the next run must find unchanged.

    Classes and functions are not copied, nor is what does not change: the arguments of clickgym's
    own environments, and the trained model of a `FrozenPolicy`, which may hold a large replay
    buffer.

    Args:
        resolved: what `resolve_agent` or `resolve_env` returned.
        shared: a list to which the names of arguments are added that cannot be copied, such as
            locks, and that all runs share; also the name of what creates the object.
    """
    maker, arguments = resolved
    is_trained = maker is FrozenPolicy and hasattr(arguments.get("model"), "predict")
    is_own = isinstance(maker, EnvSpec) and maker.id in ENVIRONMENTS
    if is_trained or is_own or isinstance(maker, UserModel):
        return resolved

    def own_copy(name: str, value: Any) -> Any:
        try:
            return copy.deepcopy(value)
        except FAILURES:
            if shared is not None:
                shared.append(name)
            return value

    copies = {name: own_copy(name, value) for name, value in arguments.items()}
    return own_copy(maker_name(maker), maker), copies


def warn_of_shared_arguments(resolved: Mapping[str, tuple[Any, Arguments]]) -> None:
    """Warn if an argument of an agent or environment cannot be copied for each run.

    Args:
        resolved: agents and environments by label, as returned by `resolve_agent` and
            `resolve_env`.
    """
    for label, each in resolved.items():
        shared: list[str] = []
        own_copies(each, shared)
        if shared:
            warnings.warn(
                f"{label}: all runs share {', '.join(shared)}, which cannot be copied; a run may "
                "find what another run has changed there",
                stacklevel=4,
            )


@contextmanager
def _naming_errors(subject: str, error_class: type[SessionError]) -> Iterator[None]:
    """Context manager for code that creates ``subject``, such as ``"agent TopRank"``.

    Validation errors pass through unchanged; any other exception is re-raised as an error that
    names ``subject``.
    """
    try:
        yield
    except (ValueError, ImportError, OSError, MemoryError, SessionError, gym.error.Error):
        raise
    except TypeError as error:
        # Gymnasium wraps the original error in a longer one.
        raise TypeError(f"{subject}: {error.__cause__ or error}") from error
    except FAILURES as error:
        raise error_class(f"{subject} cannot be created: {cause(error)}") from error


SHIPPED: Literal["shipped"] = "shipped"
"""The word in ``instances`` that stands for all instances in the package."""


def all_instances(instances: Any) -> Sequence[Any]:
    """Return a sweep's instances as a list, with ``"shipped"`` replaced by all shipped instances.

    If ``instances`` is None, the list contains only None, which stands for the default instance of
    each environment. In ``LABEL=FILE``, the label is the instance's name. A warning names two
    instances with the same users.
    """
    if instances is None:
        return [None]
    entries = [SHIPPED] if isinstance(instances, str) and instances == SHIPPED else instances
    if not (is_sequence(entries) and len(entries)):
        raise TypeError(
            f'instances is {short_repr(instances)}; expected a list of instances, or "{SHIPPED}"'
        )
    result: list[Any] = []
    for instance in entries:
        if not isinstance(instance, str) or os.path.exists(instance):
            result.append(instance)
        elif instance == SHIPPED:
            result += shipped_instances()
        else:
            label, spec = split_label(instance)
            result.append(replace(load_instance(spec), name=label) if label else spec)
    loaded = [instance for instance in result if isinstance(instance, Instance)]
    for first, second in combinations(loaded, 2):
        if first.models == second.models:
            warnings.warn(
                f"the instances {first.name} and {second.name} have the same users, which count "
                "twice in every mean and interval; leave one of them out",
                stacklevel=2,
            )
    return result


# ------------------------------------------------------------------------------------------- agents


def resolve_agent(agent: AgentLike) -> ResolvedAgent:
    """Find the class or function that an agent's spec names.

    `adopt` turns a class with its own training loop, such as ``"stable_baselines3:PPO"``, into an
    agent class.

    Args:
        agent: an agent in any form that `make_agent` accepts. A `ResolvedAgent` is returned
            unchanged.

    Returns:
        The class or function, and the hyper-parameters that were passed.

    Raises:
        ValueError, TypeError: the agent is unknown, or no agent can be created from ``agent``.

    Example:
        >>> resolve_agent("TopRank:delta=0.1")
        (<class 'clickgym.agents.several_click_models.top_rank.TopRank'>, {'delta': 0.1})
    """
    obj, hyperparameters = split(agent)
    if not isinstance(obj, str):
        return _check_maker(obj, short_repr(obj)), hyperparameters
    if obj in BY_NAME:
        return BY_NAME[obj], hyperparameters
    if obj in LIBRARY_OF:
        name = f"{LIBRARY_OF[obj]}:{obj}"
        raise ValueError(f"unknown agent {obj!r}; name it with its library, as {name}")
    if ":" not in obj:
        raise ValueError(f"{unknown_message('agent', obj, BY_NAME)}; {NAMING_HINT}")
    return _check_maker(object_of("agent", obj), f"agent {obj!r}"), hyperparameters


def _check_maker(obj: Any, subject: str) -> Callable[..., BaseAgent]:
    """Return the class or function that creates an agent; raise an error for other objects."""
    if isinstance(obj, type):
        return obj if issubclass(obj, BaseAgent) else adopt(obj)  # type: ignore[arg-type]
    if not callable(obj) or isinstance(obj, BaseAgent) or not accepts(obj, "n_items"):
        raise TypeError(
            f"{subject} cannot make agents; expected a name, a class, (class, arguments) or a "
            "function that takes n_items. To use a trained model, or a function that returns "
            f"lists, pass (clickgym.agents.FrozenPolicy, {{'model': model}})"
        )
    return obj


def maker_name(maker: Callable[..., Any]) -> str:
    """Return the name of a class or function that creates agents or environments, for messages."""
    return getattr(maker, "__name__", type(maker).__name__)


@lru_cache(maxsize=256)  # a sweep asks again for each run
def parameters_of(maker: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a class or function that creates agents, by name. ``*args`` and
    ``**kwargs`` are left out.
    """
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(maker).parameters
    return {
        name: parameter for name, parameter in parameters.items() if parameter.kind not in variadic
    }


def accepts(maker: Callable[..., Any], name: str) -> bool:
    """Return whether a class or function that creates agents accepts an argument ``name``."""
    parameters = inspect.signature(maker).parameters
    return name in parameters or any(
        parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()
    )


def requirements(maker: Callable[..., Any]) -> dict[str, str]:
    """Return the arguments that an agent's paper assumes to be known, with a source for each."""
    return dict(getattr(maker, "requires", {}))


def observed_sizes(maker: Callable[..., Any]) -> list[str]:
    """Return the names of the sizes in `OBSERVED` that an agent's constructor takes."""
    return [size for size in OBSERVED if size in parameters_of(maker)]


def make_agent(
    agent: AgentLike,
    env: gym.Env | EnvLike,
    *,
    horizon: int | None = None,
    seed: Seed = None,
    **hyperparameters: Any,
) -> BaseAgent:
    """Create an agent for an environment.

    The numbers of items and positions come from the environment. The knowledge that the agent's
    paper assumes also comes from the environment, unless you pass it: for example, the examination
    probabilities for PBM-UCB, the production list for `Fixed`, and the best list for `Oracle`.
    Everything else about the users stays hidden from the agent.

    Args:
        agent: an agent's name in the form used on the command line, such as
            ``"CascadeKLUCB:feedback=first_click"`` or ``"my_module:MyAgent"``; a subclass of
            `Agent`, or an RL algorithm of stable-baselines3; or ``(class, arguments)``.
        env: the environment for which the agent is created: an id such as ``"PBMRank-v0"``, or
            anything else that `make_env` accepts.
        horizon: T, the number of sessions, which is passed to agents that take a horizon.
        seed: the seed of the agent's own random generator; by default, a random seed.
        **hyperparameters: hyper-parameters of the agent; they take precedence over the arguments
            in ``agent``.

    Returns:
        The agent. Its attribute ``filled_in`` contains the arguments that came from the
        environment, and the horizon.

    Raises:
        ValueError: the agent is unknown; the agent requires a horizon, or knowledge that the
            environment does not have; or your function returned an agent that has already been used
            in a run.
        TypeError: the agent has no hyper-parameter with one of the names that you passed.

    Example:
        >>> import clickgym
        >>> agent = clickgym.make_agent("PBMUCB", "PBMRank-v0", seed=0)
        >>> sorted(agent.filled_in)
        ['examination', 'n_items', 'n_positions']
    """
    maker, arguments = resolve_agent(agent)
    arguments = {**arguments, **hyperparameters}
    return make_resolved_agent((maker, arguments), make_env(env), horizon, seed)


def make_resolved_agent(
    agent: ResolvedAgent, env: gym.Env, horizon: int | None, seed: Seed
) -> BaseAgent:
    """Create an agent from its class or function, as `make_agent` does.

    Args:
        agent: the agent, as returned by `resolve_agent`.
        env, horizon, seed: as for `make_agent`.
    """
    maker, arguments = agent
    name = maker_name(maker)
    for key in arguments:
        if key in SET_BY_THE_RUN:
            raise TypeError(f"{name}: leave out {key}, which clickgym sets")
        if not accepts(maker, key):
            names = [other for other in parameters_of(maker) if other not in SET_BY_THE_RUN]
            raise TypeError(f"{name}: " + unknown_message("hyper-parameter", key, names))
    filled_in = copy.deepcopy(_filled_in(maker, arguments, env, horizon))
    with _naming_errors(f"agent {name}", AgentError):
        result: Any = maker(**filled_in, **arguments, seed=seed)
    if not isinstance(result, BaseAgent):
        raise TypeError(f"{name} returned {short_repr(result)}; expected an agent")
    if result.has_played:
        raise ValueError(
            f"{name} returned an agent that has already been used in a run; return a new agent "
            "each time"
        )
    result.filled_in = filled_in
    return result


def _filled_in(
    maker: Callable[..., BaseAgent], arguments: Arguments, env: gym.Env, horizon: int | None
) -> Arguments:
    """Return the arguments that `make_agent` fills in from the environment and the horizon.

    Args:
        maker: the class or function that creates the agent.
        arguments: the hyper-parameters that the user passed, which must not be filled in.
        env: the environment from which sizes and knowledge are taken.
        horizon: T, the number of sessions; None if it is unknown.
    """
    name, parameters, sizes = maker_name(maker), parameters_of(maker), sizes_of(env)
    required = [
        key for key, parameter in parameters.items() if parameter.default is parameter.empty
    ]
    base_env: Any = env.unwrapped
    filled_in: Arguments = {"n_items": sizes.n_items, "n_positions": sizes.n_positions}

    # Sizes of the features or states that the agent observes.
    for key, (quantity, owners) in OBSERVED.items():
        if key in parameters and key not in arguments:
            filled_in[key] = getattr(sizes, key)
            if not filled_in[key]:
                raise UnsuitedError(name, f"ranks by {quantity}, which only {owners} have")

    # Knowledge that the paper assumes.
    for key, source in requirements(maker).items():
        if key in arguments:
            continue
        value = base_env.knowledge(source) if isinstance(base_env, ClickEnv) else None
        if value is not None:
            filled_in[key] = value
        elif key in required:
            if sizes.n_features and source.endswith("_ranking"):
                reason = f"requires {key}, but {name_of(env)} has new items in every session"
            else:
                depends = ""
                if source == "examination" and user_model_of(env) is not None:
                    depends = " (it depends on the list, and these users have no production list)"
                reason = (
                    f"requires {key}, which {name_of(env)} does not have{depends}: "
                    f"pass {key}=..., as in {name}:{key}=[...]"
                )
            raise UnsuitedError(name, reason)
    if "feature_scale" in parameters.keys() - arguments.keys() and isinstance(base_env, ClickEnv):
        filled_in["feature_scale"] = base_env.feature_scale

    if "horizon" in parameters and horizon is not None:
        filled_in["horizon"] = check_horizon(horizon)
    elif "horizon" in required:
        raise ValueError(f"{name} requires a horizon: pass horizon=...")
    return filled_in
