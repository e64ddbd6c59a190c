"""Copies of what makes an agent or environment, so that no run finds what another run changed."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from typing import Any

from gymnasium.envs.registration import EnvSpec

from ...agents import FrozenPolicy
from ...core.errors import FAILURES
from ...envs import ENVIRONMENTS, UserModel
from .environments import maker_name
from .labels import Arguments


def own_copies(resolved: tuple[Any, Arguments]) -> tuple[Any, Arguments]:
    """Return a resolved agent or environment with deep copies of what creates it and of its
    arguments, because an agent or environment of a sweep may write into an array or draw from a
    generator that the next run must find unchanged.

    Classes and functions are not copied, nor is what does not change: the arguments of clickgym's
    own environments, and the trained model of a `FrozenPolicy`, which may hold a large replay
    buffer. What cannot be copied, such as a lock, is shared by all runs.

    Args:
        resolved: what `resolve_agent` or `resolve_env` returned.
    """
    return _copies_and_shared(resolved)[0]


def warn_of_shared_arguments(resolved: Mapping[str, tuple[Any, Arguments]]) -> None:
    """Warn if an argument of an agent or environment cannot be copied for each run.

    Args:
        resolved: agents and environments by label, as returned by `resolve_agent` and
            `resolve_env`.
    """
    for label, each in resolved.items():
        _, shared = _copies_and_shared(each)
        if shared:
            warnings.warn(
                f"{label}: all runs share {', '.join(shared)}, which cannot be copied; a run may "
                "find what another run has changed there",
                stacklevel=4,
            )


def _copies_and_shared(
    resolved: tuple[Any, Arguments],
) -> tuple[tuple[Any, Arguments], list[str]]:
    """Return the copies that `own_copies` returns, and the names of what cannot be copied."""
    maker, arguments = resolved
    shared = list[str]()
    is_trained = maker is FrozenPolicy and hasattr(arguments.get("model"), "predict")
    is_own = isinstance(maker, EnvSpec) and maker.id in ENVIRONMENTS
    if is_trained or is_own or isinstance(maker, UserModel):
        return resolved, shared

    def own_copy(name: str, value: Any) -> Any:
        try:
            return copy.deepcopy(value)
        except FAILURES:
            shared.append(name)
            return value

    copies = {name: own_copy(name, value) for name, value in arguments.items()}
    return (own_copy(maker_name(maker), maker), copies), shared
