"""Fixtures: modules of a user, and an agent for them."""

import importlib
import sys

import pytest

AGENT = """
from clickgym.agents import Agent

class Forward(Agent):
    shift = 0

    def __init__(self, n_items, n_positions, *, seed=None):
        self.ranking = list(range(n_positions))

    def rank(self, observation):
        return self.ranking

    def update(self, observation, ranking, clicks, reward): ...
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write modules of a user into a folder on the import path."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # two edits in one second look the same

    def write(**files):
        for name, text in files.items():
            file = tmp_path / f"{name.replace('__', '/')}.py"
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        importlib.invalidate_caches()

    return write
