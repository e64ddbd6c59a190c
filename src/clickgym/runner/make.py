"""Specs and labels, and the environments and agents that they stand for."""

from __future__ import annotations

import inspect
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Literal, TypeVar

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec

from ..agents import AGENTS
from ..agents.agent import BaseAgent, Seed, UnsuitedError
from ..agents.rl.learner import RL_LIBRARIES, adopt
from ..core.checks import (
    AN_ENV,
    check_horizon,
    check_kind,
    is_sequence,
    short_repr,
    unknown_message,
)
from ..core.errors import FAILURES, SessionError, cause
from ..core.modules import module_of
from ..core.specs import format_spec, parse_spec
from ..envs import ENVIRONMENTS, ClickEnv, UserModel
from ..envs.any_env import sizes_of
from ..envs.base_env import name_of
from ..envs.instances.instance import shipped_instances
from .play.run_errors import AgentError

Spec = str | tuple[str, Mapping[str, Any]]
"""A name with arguments: ``"CascadeKLUCB:feedback=first_click"`` or ``("CascadeKLUCB", {"feedback":
"first_click"})``.
"""
AgentLike = Spec | Callable[..., Any] | tuple[Callable[..., Any], Mapping[str, Any]]
"""An agent as a user passes it: a spec, a class, or a class with arguments."""
EnvLike = Spec | EnvSpec | Callable[..., gym.Env] | UserModel | tuple[Any, Mapping[str, Any]]
"""An environment as a user passes it: an id, an id with arguments, or its users."""

Object = TypeVar("Object")


# -------------------------------------------------------------------------------------------- specs


def split_label(text: str) -> tuple[str | None, str]:
    """Split a typed argument into its label, which is None if there is none, and its spec.

    Example:
        >>> split_label("mine=my_module:MyAgent:alpha=0.1"), split_label("TopRank:delta=0.1")
        (('mine', 'my_module:MyAgent:alpha=0.1'), (None, 'TopRank:delta=0.1'))
    """
    label, equals, spec = text.partition("=")
    return (label, spec) if equals and ":" not in label else (None, text)


def split(obj: Any) -> tuple[Any, dict[str, Any]]:
    """Split an agent or environment into its maker (an object or a name) and its arguments.

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
    """The spec of an agent or environment, in the form that `parse_spec` reads; None if there is no
    spec, for example for a lambda.

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
    """The name by which a class or a function can be imported; None if it cannot be imported."""
    maker = getattr(maker, "adopted", maker)  # an adopted RL algorithm has its own class's name
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


def by_label(noun: str, objects: Iterable[Object] | Mapping[str, Object]) -> dict[str, Object]:
    """Return agents or environments by label. The label is the spec, unless a mapping or ``LABEL=``
    gives another label.

    Args:
        noun: ``"agent"`` or ``"environment"``.
        objects: a list, in which a typed name may begin with ``LABEL=``; or a mapping from labels
            to agents or environments.

    Raises:
        TypeError: ``objects`` is neither a list nor a mapping.
        ValueError: ``objects`` is empty, a label occurs twice, an agent or environment has neither
            a spec nor a label, or a label is not printable text on one line.

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
            cure = f'pass a dict that names it: {{"my {noun}": ...}}'
            raise ValueError(f"{noun} {short_repr(obj)} has no name; {cure}")
        if not isinstance(label, str) or not label.strip() or not label.isprintable():
            raise ValueError(
                f"the label of {noun} {short_repr(obj)} is {label!r}; expected printable "
                "text on one line"
            )
        if label in result:
            raise ValueError(
                f"two {noun}s have the label {label!r}; remove one, or give it another label: "
                f"NAME={noun.upper()}"
            )
        result[label] = obj
    if not result:
        raise ValueError(f"the list of {noun}s is empty; name at least one {noun}")
    return result


Arguments = dict[str, Any]
ResolvedEnv = tuple[EnvSpec | UserModel | Callable[..., gym.Env], Arguments]
"""The maker of an environment (a registered id, the users of a `ClickEnv`, or a function), and its
arguments.
"""
ResolvedAgent = tuple[Callable[..., BaseAgent], Arguments]
"""The maker of an agent (a class or a function), and its hyper-parameters."""

OBSERVED = {
    "n_features": ("features", "contextual environments"),
    "n_states": ("the user's state", "stateful users"),
}
"""Sizes that some agents need: what each size counts, and who has what is counted."""
NAMING_HINT = (
    "name any other agent as module:Class, such as my_module:MyAgent or stable_baselines3:TD3"
)
"""The end of a message about an unknown agent: how to name agents that have no short name."""
SET_BY_THE_RUN = ("n_items", "n_positions", "horizon", "seed")
"""Arguments of agents that the environment and the run set, and that are not hyper-parameters."""


# ------------------------------------------------------------------------------------- environments


def resolve_env(env: EnvLike) -> ResolvedEnv:
    """Resolve what a user passed as an environment; return a `ResolvedEnv` unchanged.

    Args:
        env: as for `make_env`, except an environment object.

    Raises:
        ValueError: the id is unknown, or its module cannot be imported.
        TypeError: ``env`` cannot make environments.
    """
    if isinstance(env, gym.Env):
        raise TypeError(
            "a sweep makes a new environment for each run: expected an id or a click model, "
            f"got {short_repr(env)}"
        )
    maker, arguments = split(env)
    if isinstance(maker, str):
        maker = _find_spec(maker)
    is_class = isinstance(maker, type) and issubclass(maker, UserModel)
    if is_class or not (isinstance(maker, UserModel | EnvSpec) or callable(maker)):
        raise TypeError(
            f"expected an id, (id, arguments) or a click model, got {short_repr(maker)}"
        )
    return maker, arguments


def _find_spec(env_id: str) -> EnvSpec:
    """Return the registration of an id. If the id is ``module:Id-v0``, import the module first."""
    module, colon, name = env_id.rpartition(":")
    if colon:
        module_of("environment", env_id)
    if name in gym.registry:
        return gym.registry[name]
    if colon:
        raise ValueError(f"environment {env_id!r}: the module {module!r} registers no id {name!r}")
    ids = dict.fromkeys([*ENVIRONMENTS, *gym.registry])
    raise ValueError(
        f"{unknown_message('environment', env_id, ids)}; name your own environment as module:Id-v0"
    )


def make_env(env: EnvLike | gym.Env, instance: Any = None) -> gym.Env:
    """Make an environment.

    Args:
        env: an id such as ``"PBMRank-v0"``; an id with arguments for ``gym.make``, as
            ``"PBMRank-v0:reward=any_click"`` or ``("PBMRank-v0", {"reward": "any_click"})``;
            ``"module:Id-v0"``, an id that a module registers; or the users of an environment, such
            as a click model. An environment object is returned unchanged.
        instance: an instance, as ``gym.make`` takes it; by default, the default of the id.

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
                f"the instance {instance!r} cannot be used in {short_repr(env)}, which "
                "already has its users; leave the instance out"
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
    check_kind(f"what {short_repr(maker)} returned", result, gym.Env, AN_ENV)
    return result


@contextmanager
def _naming_errors(subject: str, error_class: type[SessionError]) -> Iterator[None]:
    """Context manager for creating ``subject``. Validation errors pass through unchanged; any other
    exception is re-raised as an error that names ``subject``.
    """
    try:
        yield
    except (ValueError, ImportError, OSError, MemoryError, SessionError, gym.error.Error):
        raise
    except TypeError as error:
        # Gymnasium wraps the error in a longer one.
        raise TypeError(f"{subject}: {error.__cause__ or error}") from error
    except FAILURES as error:
        raise error_class(f"{subject} cannot be made: {cause(error)}") from error


SHIPPED: Literal["shipped"] = "shipped"
"""The name that stands for all shipped instances."""


def all_instances(instances: Any) -> Sequence[Any]:
    """Return the list of a sweep's instances, in which ``"shipped"`` is replaced by all shipped
    instances. None stands for each environment's default instance.
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
        is_all = isinstance(instance, str) and instance == SHIPPED
        result += shipped_instances() if is_all else [instance]
    return result


# ------------------------------------------------------------------------------------------- agents


def resolve_agent(agent: AgentLike) -> ResolvedAgent:
    """Resolve what a user passed as an agent; return a `ResolvedAgent` unchanged.

    A class with its own training loop, such as ``"stable_baselines3:PPO"``, becomes an agent class
    by `adopt`.

    Args:
        agent: as for `make_agent`.

    Returns:
        The class or function, and the hyper-parameters that were passed.

    Raises:
        ValueError, TypeError: there is no such agent, or ``agent`` cannot make agents.

    Example:
        >>> resolve_agent("TopRank:delta=0.1")
        (<class 'clickgym.agents.top_rank.TopRank'>, {'delta': 0.1})
    """
    obj, hyperparameters = split(agent)
    if not isinstance(obj, str):
        return _check_maker(obj, short_repr(obj)), hyperparameters
    if obj in AGENTS:
        return AGENTS[obj], hyperparameters
    module, colon, attribute = obj.partition(":")
    if not colon:
        raise ValueError(f"{unknown_message('agent', obj, AGENTS)}; {NAMING_HINT}")
    try:
        maker = operator.attrgetter(attribute)(module_of("agent", obj))
    except AttributeError:
        raise ValueError(f"agent {obj!r}: the module {module!r} has no {attribute!r}") from None
    return _check_maker(maker, f"agent {obj!r}"), hyperparameters


def _check_maker(obj: Any, subject: str) -> Callable[..., BaseAgent]:
    """Return the class or function that makes the agent; raise an error for any other object."""
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
    """Return the name of an agent in messages: the name of the class or function that makes it."""
    return getattr(maker, "__name__", type(maker).__name__)


@lru_cache(maxsize=256)  # a sweep calls it for each run
def parameters_of(maker: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a class or function that makes agents, without ``*args`` and
    ``**kwargs``.
    """
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(maker).parameters
    return {
        name: parameter for name, parameter in parameters.items() if parameter.kind not in variadic
    }


def accepts(maker: Callable[..., Any], name: str) -> bool:
    """Whether a class or function that makes agents accepts an argument of this name."""
    parameters = inspect.signature(maker).parameters
    return name in parameters or any(
        parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()
    )


def requirements(maker: Callable[..., Any]) -> dict[str, str]:
    """The parameters for knowledge that a paper assumes, each with the knowledge's source."""
    return dict(getattr(maker, "requires", {}))


def observed_sizes(maker: Callable[..., Any]) -> list[str]:
    """The sizes of what an agent ranks by besides clicks, as keys of `OBSERVED`."""
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

    The numbers of items and positions come from the environment. The knowledge that the agent's
    paper assumes also comes from the environment, unless you pass it: for example, the examination
    probabilities for PBM-UCB, the production list for `Fixed`, and the best list for `Oracle`.
    Everything else about the users stays hidden from the agent.

    Args:
        agent: a name, as on the command line: ``"CascadeKLUCB:feedback=first_click"`` or
            ``"my_module:MyAgent"``; a class of `Agent` or stable-baselines3; or
            ``(class, arguments)``.
        env: the environment for which the agent is built.
        horizon: T, the number of sessions, for agents that take a horizon.
        seed: the seed of the agent's own generator.
        **hyperparameters: hyper-parameters of the agent.

    Returns:
        The agent. Its attribute ``filled_in`` holds the arguments that came from the environment,
        and the horizon.

    Raises:
        ValueError: the agent is unknown; the agent requires a horizon, or knowledge that the
            environment does not have; or your function returned an agent that has already been used
            in a run.
        TypeError: the agent has no such hyper-parameter.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> agent = clickgym.make_agent("PBMUCB", gym.make("PBMRank-v0"), seed=0)
        >>> sorted(agent.filled_in)
        ['examination', 'n_items', 'n_positions']
    """
    check_kind("env", env, gym.Env, AN_ENV)
    maker, arguments = resolve_agent(agent)
    arguments = {**arguments, **hyperparameters}
    name = maker_name(maker)
    for key in arguments:
        if key in SET_BY_THE_RUN:
            raise TypeError(f"{name}: leave out {key}, which the run sets")
        if not accepts(maker, key):
            names = [other for other in parameters_of(maker) if other not in SET_BY_THE_RUN]
            raise TypeError(f"{name}: " + unknown_message("hyper-parameter", key, names))
    filled_in = {  # copied, because an agent may write into its arguments
        key: value.copy() if isinstance(value, np.ndarray) else value
        for key, value in _filled_in(maker, arguments, env, horizon).items()
    }
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
        maker: the agent's class or function.
        arguments: the hyper-parameters that the user passed, which take precedence.
        env, horizon: as in `make_agent`.
    """
    name, parameters, sizes = maker_name(maker), parameters_of(maker), sizes_of(env)
    required = [
        key for key, parameter in parameters.items() if parameter.default is parameter.empty
    ]
    base_env: Any = env.unwrapped
    filled_in: Arguments = {"n_items": sizes.n_items, "n_positions": sizes.n_positions}

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
                reason = f"requires {key}, which {name_of(env)} does not have: pass {key}=..."
            raise UnsuitedError(name, reason)

    # The sizes of what the agent observes besides clicks.
    for key, (quantity, owners) in OBSERVED.items():
        if key in parameters and key not in arguments:
            filled_in[key] = getattr(sizes, key)
            if not filled_in[key]:
                raise UnsuitedError(name, f"ranks by {quantity}, which only {owners} have")
    if "feature_scale" in parameters.keys() - arguments.keys() and isinstance(base_env, ClickEnv):
        filled_in["feature_scale"] = base_env.feature_scale

    if "horizon" in parameters and horizon is not None:
        filled_in["horizon"] = check_horizon(horizon)
    elif "horizon" in required:
        raise ValueError(f"{name} requires a horizon: pass horizon=...")
    return filled_in
