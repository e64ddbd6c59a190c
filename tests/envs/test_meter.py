"""What the recorders keep of each session, and what they refuse."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers.vector import TransformReward

from clickgym.envs import ClickVectorEnv, ItemByItem, PositionBasedModel
from clickgym.envs.wrappers.regret import RecordRegret, RecordVectorRegret

MODEL = PositionBasedModel([0.5, 0.3], [1.0, 0.5])


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_all_sessions_of_streams_are_kept(mode):
    """More than fit at first; steps that only reset are none."""
    envs = RecordVectorRegret(ClickVectorEnv(MODEL, 30, max_episode_steps=9, autoreset_mode=mode))
    envs.reset(seed=0)
    earned = sum(envs.step(np.tile([1, 0], (30, 1)))[1].sum() for _ in range(60))
    n = 30 * (60 if mode == "SameStep" else 54)
    assert envs.meter.step == n == len(envs.meter.regret)
    lost = MODEL.expected_reward([0, 1]) - MODEL.expected_reward([1, 0])
    np.testing.assert_allclose(envs.meter.regret, lost * np.arange(1, n + 1))
    assert envs.meter.reward[-1] == envs.meter.clicks[-1] == envs.meter.totals[1] == earned > 0


def test_streams_are_measured_inside_of_wrappers():
    envs = gym.make_vec("PBMRank-v0", num_envs=2)
    for wrong in (TransformReward(envs, np.negative), gym.make_vec("PBMRank-v0", 2, "sync")):
        with pytest.raises(TypeError, match=r"what gym\.make_vec\(id\) returned; wrappers belong"):
            RecordVectorRegret(wrong)
    assert TransformReward(RecordVectorRegret(envs), np.negative).reset(seed=0)


def test_steps_that_choose_items_are_no_sessions():
    with pytest.raises(TypeError, match=r"^a step of ItemByItem chooses one item"):
        RecordRegret(ItemByItem(gym.make("PBMRank-v0")))
