"""The registered ids and the published agents, grouped by kind, and a context manager that undoes
registrations.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import gymnasium

from clickgym.agents import AGENTS, CompiledAgent, Learner
from clickgym.envs import CLICK_MODELS, ENVIRONMENTS, UserModel
from clickgym.runner import METRICS
from tests.helpers import news  # noqa: F401 - registers its id before a test can undo it


def default_ids(*kinds: str) -> list[str]:
    """Return the ids of the given kinds that require no argument; by default, the ids of
    stationary, changing and contextual users.
    """
    kinds = kinds or ("", "NonStationary", "Contextual")
    return [
        name for name, env in ENVIRONMENTS.items() if env.kind in kinds and env.default_instance
    ]


SAME_ITEMS = default_ids("", "NonStationary")
"""The ids of the environments whose items are the same in every session."""


def agents_that_observe(*keys: str) -> dict[str, type[CompiledAgent]]:
    """Return the compiled agents that read exactly the given keys of an observation in addition to
    the clicks.
    """
    return {
        name: agent
        for name, agent in AGENTS.items()
        if issubclass(agent, CompiledAgent) and agent.observes == keys
    }


CLICK_AGENTS = agents_that_observe()
CONTEXTUAL_AGENTS = agents_that_observe("features")
STATE_AGENTS = agents_that_observe("state")
NETWORK_AGENTS = {
    name: agent for name, agent in AGENTS.items() if not issubclass(agent, CompiledAgent | Learner)
}
LEARNERS = {name: agent for name, agent in AGENTS.items() if issubclass(agent, Learner)}


def from_own_test(published: type, name: str) -> Any:
    """Return what the test file of an agent or a click model defines as ``name``. The test file of
    ``clickgym/FOLDER/MODULE.py`` is ``tests/FOLDER/test_MODULE.py``.
    """
    folder, _, module = published.__module__.replace("clickgym", "tests", 1).rpartition(".")
    missing = f"{folder.replace('.', '/')}/test_{module}.py does not define {name}"
    try:
        found = getattr(import_module(f"{folder}.test_{module}"), name, None)
    except ModuleNotFoundError as error:
        raise AssertionError(missing) from error
    assert found is not None, missing
    return found


@contextmanager
def restored() -> Iterator[None]:
    """Context manager that afterwards restores the registered environments, click models, names of
    users and metrics.
    """
    tables: tuple[dict[str, Any], ...] = (
        *(gymnasium.registry, ENVIRONMENTS, CLICK_MODELS, UserModel.classes),
        METRICS,
    )
    before = [dict(table) for table in tables]
    yield
    for table, kept in zip(tables, before, strict=True):
        if table != kept:
            table.clear()
            table.update(kept)
