"""What is registered within is gone after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import gymnasium

from clickgym.envs import CLICK_MODELS, CONTEXTUAL, ENVIRONMENTS, Users


@contextmanager
def restored() -> Iterator[None]:
    """Environments, click models and the names of users are afterwards what they were before."""
    tables = (gymnasium.registry, ENVIRONMENTS, CONTEXTUAL, CLICK_MODELS, Users._named)
    before = [dict(table) for table in tables]
    yield
    for table, kept in zip(tables, before, strict=True):
        if table != kept:
            table.clear()
            table.update(kept)
