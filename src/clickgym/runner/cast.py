"""The environments and agents of a sweep by label, and how they are sent to other processes."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import cloudpickle
from gymnasium.envs.registration import EnvSpec

from ..core.trust import allow, allowed
from ..envs import Users
from ..envs.users import make_known, users_class
from .labels import AgentLike, EnvLike
from .make import looking_in


@dataclass(frozen=True)
class Cast:
    """The objects behind the labels of a sweep; threads share these very objects.

    Another process also gets the classes that the environments name, because nothing is registered there. Objects of a script
    or a notebook are sent by value.

    Attributes:
        envs, agents: what `make_env` and `make_agent` take, by label.
        instances: what `make_env` takes as an instance, by its name.
    """

    envs: dict[str, EnvLike] = field(default_factory=dict)
    agents: dict[str, AgentLike] = field(default_factory=dict)
    instances: dict[str, Any] = field(default_factory=dict)

    def __reduce__(self) -> Any:
        return _arrive, (self._packed, str(Path.cwd()), tuple(sys.path), allowed())

    @cached_property
    def _packed(self) -> bytes:
        return cloudpickle.dumps((self.envs, self.agents, self.instances, dict(map(_named_users, self.envs.values()))))


def _named_users(env: Any) -> tuple[str, type[Users] | None]:
    """The class that the id of an environment names, if it is not one of the package."""
    maker = env[0]
    name = maker.kwargs.get("model") if isinstance(maker, EnvSpec) else None
    users = users_class(name) if isinstance(name, str) and str(maker.entry_point).startswith("clickgym.") else None
    return str(name), None if users is None or users.__module__.startswith("clickgym.") else users


@lru_cache(maxsize=4)  # each trial brings it anew, and kernels are compiled once for each class
def _arrive(packed: bytes, folder: str, path: tuple[str, ...], modules: tuple[str, ...]) -> Cast:
    sys.path += [place for place in path if place not in sys.path]
    allow(modules)
    with looking_in(folder):
        envs, agents, instances, users = cloudpickle.loads(packed)
    for name, own in users.items():
        if own is not None:
            make_known(name, own)
    return Cast(envs, agents, instances)
