"""The environments and agents of a sweep by label, and how they are sent to other processes."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from gymnasium.envs.registration import EnvSpec
from gymnasium.vector.utils import CloudpickleWrapper

from ..core.modules import looking_in
from ..envs import Users
from ..envs.users import make_known, users_class
from .make import Place, Player


@dataclass(frozen=True)
class Cast:
    """The objects behind the labels of a sweep; threads share these very objects.

    Another process also gets the classes that the environments name, because nothing is registered
    there. Objects of a script or a notebook are sent by value.

    Attributes:
        places, players: where is played, and who plays, by label.
        instances: what is taken as an instance, by its name.
    """

    places: Mapping[str, Place] = field(default_factory=dict)
    players: Mapping[str, Player] = field(default_factory=dict)
    instances: dict[str, Any] = field(default_factory=dict)

    def __reduce__(self) -> Any:
        return _arrive, (self._packed, str(Path.cwd()), tuple(sys.path))

    @cached_property
    def _packed(self) -> bytes:
        users = dict(map(_named_users, self.places.values()))
        return pickle.dumps(CloudpickleWrapper((self.places, self.players, self.instances, users)))  # type: ignore[arg-type]


def _named_users(place: Place) -> tuple[str, type[Users] | None]:
    """The class that the id of an environment names, if it is not one of the package."""
    maker: Any = place.maker
    name = maker.kwargs.get("model") if isinstance(maker, EnvSpec) else None
    users = (
        users_class(name)
        if isinstance(name, str) and str(maker.entry_point).startswith("clickgym.")
        else None
    )
    return str(name), None if users is None or users.__module__.startswith("clickgym.") else users


@lru_cache(maxsize=4)  # each trial brings it anew, and kernels are compiled once for each class
def _arrive(packed: bytes, folder: str, path: tuple[str, ...]) -> Cast:
    sys.path += [place for place in path if place not in sys.path]
    with looking_in(folder):
        places, players, instances, users = pickle.loads(packed).fn
    for name, own in users.items():
        if own is not None:
            make_known(name, own)
    return Cast(places, players, instances)
