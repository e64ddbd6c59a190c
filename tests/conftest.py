"""What all tests share: where the real logs are, and property tests that try the same examples every time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from registries import restored

from clickgym.agents import AGENTS, CONTEXTUAL_AGENTS, STATE_AGENTS

AGENT_CLASSES = AGENTS | CONTEXTUAL_AGENTS | STATE_AGENTS

settings.register_profile("clickgym", derandomize=True, deadline=None)  # no deadline: first calls compile
settings.load_profile("clickgym")


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What compiles the same runs in one worker, or both compile it: the tests of a file, or of a family of agents."""
    for item in items:
        if not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(_group(item)))


def _group(item: pytest.Item) -> str:
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    families = (AGENT_CLASSES[value].__module__ for value in values if isinstance(value, str) and value in AGENT_CLASSES)
    return next(families, item.nodeid.partition("::")[0])


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real click logs, which the project does not contain; tests that need it are skipped without it."""
    folder = Path(os.environ.get("CLICKGYM_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real logs: {folder} is not a folder (CLICKGYM_DATA names another)")
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from browsing import started  # loads selenium, which most tests do not need

    yield from started(tmp_path_factory.mktemp("profile"))


@pytest.fixture(autouse=True)
def registries():
    """What a test registers is gone after it."""
    with restored():
        yield
