"""The registered ids, and a context after which what is registered within is gone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import gymnasium

from clickgym.envs import CLICK_MODELS, ENVIRONMENTS, Users


def default_ids(*kinds: str) -> list[str]:
    """The ids of some kinds that need no argument; of a click model's users if no kind is named."""
    kinds = kinds or ("", "NonStationary", "Contextual")
    return [
        name for name, env in ENVIRONMENTS.items() if env.kind in kinds and env.default_instance
    ]


SAME_ITEMS = default_ids("", "NonStationary")
"""The ids whose items are the same in every session."""


@contextmanager
def restored() -> Iterator[None]:
    """Environments, click models and the names of users are afterwards what they were before."""
    tables = (gymnasium.registry, ENVIRONMENTS, CLICK_MODELS, Users.classes)
    before = [dict(table) for table in tables]
    yield
    for table, kept in zip(tables, before, strict=True):
        if table != kept:
            table.clear()
            table.update(kept)
