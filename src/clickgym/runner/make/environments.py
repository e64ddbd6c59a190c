"""Environments made from ids, specs and click models."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from ...core.checks import AN_ENV, check_kind
from ...core.errors import FAILURES, SessionError, cause
from ...core.messages import short_repr, suggestions
from ...core.user_modules import import_user_module
from ...envs import ENVIRONMENTS, ClickEnv, UserModel
from .labels import Arguments, Spec, check_no_env_object, split_spec

EnvLike = Spec | EnvSpec | Callable[..., gym.Env] | UserModel | tuple[Any, Mapping[str, Any]]
"""What you can pass as an environment: an id, a click model, or one of these with arguments."""

ResolvedEnv = tuple[EnvSpec | UserModel | Callable[..., gym.Env], Arguments]
"""A resolved environment: its registered id, its users (for a `ClickEnv`) or a function, and the
arguments to create it with.
"""


def resolve_env(env: EnvLike) -> ResolvedEnv:
    """Find the registered id, users or function that an environment's spec names.

    Args:
        env: an environment in any form that `make_env` accepts, except an environment object. A
            `ResolvedEnv` is returned unchanged.

    Raises:
        ValueError: the id is unknown, or its module cannot be imported.
        TypeError: no environment can be created from ``env``.
    """
    check_no_env_object(env)
    maker, arguments = split_spec(env)
    if isinstance(maker, str):
        maker = _find_spec(maker)
    is_class = isinstance(maker, type) and issubclass(maker, UserModel)
    if is_class or not (isinstance(maker, UserModel | EnvSpec) or callable(maker)):
        raise TypeError(
            f"env is {short_repr(maker)}; expected an id, (id, arguments), a click model or a "
            "function that returns an environment"
        )
    return maker, arguments


def _find_spec(env_id: str) -> EnvSpec:
    """Return Gymnasium's spec of an environment id. If the id has the form ``module:Id-v0``, import
    the module first.
    """
    module, colon, name = env_id.rpartition(":")
    if colon:
        import_user_module("environment", env_id)
    if name in gym.registry:
        return gym.registry[name]
    own = [each for each, spec in gym.registry.items() if not _is_of_gymnasium(spec)]
    ids = dict.fromkeys([*ENVIRONMENTS, *own])
    if colon:
        raise ValueError(
            f"environment {env_id!r}: importing {module!r} does not register {name!r}"
            f"{suggestions(name, ids)}; call clickgym.register_click_model or gymnasium.register "
            "in this module"
        )
    raise ValueError(
        f"unknown environment {env_id!r}{suggestions(env_id, ids)}; name your own environment as "
        "module:Id-v0"
    )


def _is_of_gymnasium(spec: EnvSpec) -> bool:
    """Return whether an environment comes with Gymnasium, so that agents cannot play it."""
    place = getattr(spec.entry_point, "__module__", spec.entry_point)
    return str(place).startswith("gymnasium.")


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
            with naming_errors(f"environment {maker.id}", SessionError):
                return gym.make(maker, **arguments)
        except gym.error.Error as error:
            raise ValueError(f"environment {maker.id}: {error}") from None
    with naming_errors(f"environment {maker_name(maker)}", SessionError):
        result = maker(**arguments)
    check_kind(f"the environment from {short_repr(maker)}", result, gym.Env, AN_ENV)
    return result


def maker_name(maker: Callable[..., Any]) -> str:
    """Return the name of a class or function that creates agents or environments, for messages."""
    return getattr(maker, "__name__", type(maker).__name__)


@contextmanager
def naming_errors(subject: str, error_class: type[SessionError]) -> Iterator[None]:
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
        reason = str(error.__cause__ or error)
        if reason.endswith("unexpected keyword argument 'instance'"):
            reason = "it has no instances; leave instances out (--instances)"
        if missing := re.search(r"missing .*'(horizon|n_features|n_states)'", reason):
            reason += f"; clickgym passes {missing[1]} to each constructor that names it"
        raise TypeError(f"{subject}: {reason}") from error
    except FAILURES as error:
        raise error_class(f"{subject} cannot be created: {cause(error)}") from error
