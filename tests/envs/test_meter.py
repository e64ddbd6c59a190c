"""The meter: totals at its checkpoints and no others, and those that it has by itself."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import VectorActionWrapper
from gymnasium.wrappers.vector import FlattenObservation

import clickgym
from clickgym.envs import ClickEnv, ClickVectorEnv, PositionBasedModel, ScoresVectorAction
from clickgym.envs.meter import Meter
from clickgym.envs.wrappers.regret import RecordVectorRegret

MODEL = PositionBasedModel([0.5, 0.3], [1.0, 0.5])


def test_sixty_checkpoints_in_each_power_of_ten_where_nothing_is_asked_for():
    env = clickgym.RecordRegret(ClickEnv(MODEL))
    env.reset(seed=0)
    for _ in range(100):
        env.step([0, 1])
    steps = env.meter.steps
    assert steps[:20].tolist() == list(range(1, 21))
    assert np.diff(steps).max() <= 5
    assert (steps[-1], env.meter.horizon) == (100, 10**12)
    many = RecordVectorRegret(ClickVectorEnv(MODEL, 30))
    many.reset(seed=0)
    many.step(np.tile([0, 1], (30, 1)))
    assert many.meter.steps[-1] == 30
    assert (many.meter.step, many.meter.horizon) == (30, 10**12)


def test_regret_missing_in_one_session():
    """It is unknown from there on."""
    meter = Meter([1, 2, 3])
    for regret in (0.5, np.nan, 0.5):
        meter.add(regret, 1.0, 1)
    np.testing.assert_array_equal(meter.regret, [0.5, np.nan, np.nan])
    assert meter.reward.tolist() == [1, 2, 3]


@pytest.mark.parametrize("wrapper", [FlattenObservation, ScoresVectorAction])
def test_streams_whose_lists_or_observations_are_changed(wrapper):
    """They are measured inside of the wrapper, where clicks are clicks and lists are lists."""
    envs = gym.make_vec("ContextualPBMRank-v0", num_envs=2, reward="clicks")
    name = wrapper.__name__
    with pytest.raises(ValueError, match=rf"^{name} changes .* {name}\(RecordVectorRegret\(envs"):
        RecordVectorRegret(wrapper(envs))
    recorded = RecordVectorRegret(envs)
    envs = wrapper(recorded)
    envs.reset(seed=0)
    lists = np.zeros((2, 20)) if wrapper is ScoresVectorAction else [range(5)] * 2
    clicks = sum(envs.step(lists)[1].sum() for _ in range(20))
    assert recorded.meter.totals[2] == clicks > 0


def test_streams_whose_lists_are_changed_within_their_space():
    class Reversed(VectorActionWrapper):
        def actions(self, actions):
            return actions[:, ::-1]

    with pytest.raises(ValueError, match=r"^Reversed changes lists or observations"):
        RecordVectorRegret(Reversed(ClickVectorEnv(MODEL, 2)))


@pytest.mark.filterwarnings("ignore:.*repeats an item")
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_a_session_has_the_list_that_was_shown(mode):
    env, sessions = RecordVectorRegret(ClickVectorEnv(MODEL, 2, autoreset_mode=mode)), []
    env.on_session = lambda b, ranking, clicks, expected: sessions.append(ranking.tolist())
    env.reset(seed=0)
    env.step(np.array([[1, 1], [0, 1]]))
    assert sessions == [[1, 0], [0, 1]]


def test_sessions_after_the_last_checkpoint():
    """They are not reported."""
    env, sessions = RecordVectorRegret(ClickVectorEnv(MODEL, 2), [3]), []
    env.on_session = lambda b, ranking, clicks, expected: sessions.append(ranking.tolist())
    env.reset(seed=0)
    for _ in range(3):
        env.step(np.tile([0, 1], (2, 1)))
    assert sessions == [[0, 1]] * 3
