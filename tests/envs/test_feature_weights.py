"""Lists chosen by weights of features: those of a sum written out, with the last features."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium.spaces import Box
from gymnasium.wrappers import TimeLimit

from clickgym.envs import ClickEnv, ContextualModel, PositionBasedModel, ScoresAction

pytestmark = pytest.mark.uncompiled
ITEMS = np.random.default_rng(0).uniform(0, 0.5, (9, 3))
USERS = ContextualModel(PositionBasedModel([0] * 4, [1.0, 0.5]), ITEMS, theta=[0.9, 0.1, 0.3])


def by_hand(weights, features, n_positions=2):
    """Rows by decreasing sum; of equal sums the lower row first."""
    sums = [sum(float(w) * float(x) for w, x in zip(weights, row, strict=True)) for row in features]
    return sorted(range(len(sums)), key=lambda row: (-sums[row], row))[:n_positions]


def test_lists_of_an_environment():
    """Each is that of the features which were returned last, also after a reset; lists that are
    only asked for change nothing.
    """
    env = ScoresAction(TimeLimit(ClickEnv(USERS), 3))
    assert env.action_space == Box(-1, 1, (3,), np.float32)
    rng, lists = np.random.default_rng(1), set()
    observation, _ = env.reset(seed=5)
    for _ in range(30):
        weights, features = rng.normal(0, 3, 3), observation["features"]
        expected = by_hand(weights, features)
        assert env.action(weights).tolist() == expected
        env.action(-weights)
        assert env.action([0, 0, 0]).tolist() == [0, 1]  # equal ones in the order of rows
        observation, _, _, truncated, _ = env.step(weights)
        assert env.unwrapped.last_session()[0].tolist() == expected
        lists.add(tuple(expected))
        if truncated:
            observation, _ = env.reset()
    assert len(lists) > 6
