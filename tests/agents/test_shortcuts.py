"""Tests of the kernels that only save time: agents show the same lists, and draw the same random
numbers, as with the plain kernels of ``speed/plain.py``.
"""

from __future__ import annotations

import numpy as np
import pytest

import clickgym
from clickgym.envs import ClickEnv, PositionBasedModel
from speed.plain import PLAIN

pytestmark = pytest.mark.uncompiled

USERS = [
    PositionBasedModel([0.4, 0.3, 0.5, 0.2, 0.35, 0.1], [1.0, 0.75, 0.56]),
    PositionBasedModel([0.5] * 5, [1.0, 0.5]),
    PositionBasedModel([1.0, 0.0, 0.9, 0.0], [1.0, 0.6]),
]


@pytest.mark.parametrize("shortcut", PLAIN)
@pytest.mark.parametrize("users", USERS)
def test_shortcuts_change_no_list(shortcut, users, monkeypatch):
    name, module, function, plain = PLAIN[shortcut]
    env, every = ClickEnv(users), np.arange(1, 601)
    runs, agents = [], []
    for kernel in (getattr(module, function), plain):
        monkeypatch.setattr(module, function, kernel)
        agents.append(clickgym.make_agent(name, env, seed=1))
        runs.append(clickgym.run(agents[-1], env, 600, seed=2, checkpoints=every))
    np.testing.assert_array_equal(runs[0].regret, runs[1].regret)
    np.testing.assert_array_equal(runs[0].clicks, runs[1].clicks)
    assert agents[0].rng.bit_generator.state == agents[1].rng.bit_generator.state
