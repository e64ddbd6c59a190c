"""What the recorders keep of each session, and what they refuse."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers.vector import TransformReward

from clickgym import RecordRegret, RecordVectorRegret
from clickgym.envs import ClickVectorEnv, ItemByItem, PositionBasedModel

MODEL = PositionBasedModel([0.5, 0.3], [1.0, 0.5])


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_all_sessions_of_streams_are_kept(mode):
    """More than fit at first, stream by stream; steps that only reset are none."""
    envs = RecordVectorRegret(ClickVectorEnv(MODEL, 30, max_episode_steps=9, autoreset_mode=mode))
    envs.reset(seed=0)
    envs.action_space.seed(0)
    best, sessions = MODEL.expected_reward([0, 1]), []
    for step in range(60):
        lists = envs.action_space.sample()
        clicks, rewards, *_, infos = envs.step(lists)
        if mode == "SameStep" or step % 10 < 9:
            clicks = np.stack(infos["final_obs"]) if "final_obs" in infos else clicks
            lost = [best - MODEL.expected_reward(ranking) for ranking in lists]
            sessions += zip(lost, rewards, clicks.sum(axis=1), strict=True)
    kept = np.stack([envs.meter.regret, envs.meter.reward, envs.meter.clicks], axis=1)
    np.testing.assert_array_equal(kept, np.cumsum(sessions, axis=0))
    assert envs.meter.step == len(sessions)


def test_a_step_of_more_sessions_than_were_kept_so_far():
    envs = RecordVectorRegret(ClickVectorEnv(MODEL, 5000))
    envs.reset(seed=0)
    _, rewards, *_ = envs.step([[0, 1]] * 5000)
    assert envs.meter.reward.tolist() == rewards.cumsum().tolist()


def test_streams_that_are_only_reset_simulate_no_session():
    envs = RecordVectorRegret(gym.make_vec("CascadeMDPRank-v0", 4))
    envs.reset(seed=0)
    for _ in range(100):
        envs.step(envs.action_space.sample())
    assert envs.meter.step < 400
    assert not envs.meter.unrecorded.any()


def test_streams_are_measured_inside_of_wrappers():
    envs = gym.make_vec("PBMRank-v0", num_envs=2)
    for wrong in (TransformReward(envs, np.negative), gym.make_vec("PBMRank-v0", 2, "sync")):
        with pytest.raises(TypeError, match=r"without vectorization_mode, or .*; wrappers belong"):
            RecordVectorRegret(wrong)
    assert TransformReward(RecordVectorRegret(envs), np.negative).reset(seed=0)


def test_steps_that_choose_items_are_no_sessions():
    with pytest.raises(TypeError, match=r"^a step of ItemByItem chooses one item"):
        RecordRegret(ItemByItem(gym.make("PBMRank-v0")))


def test_regret_is_not_that_of_another_reward():
    """Also where the best list is shown, which has no regret by itself: it is unknown."""
    env = RecordRegret(gym.wrappers.TransformReward(gym.make("PBMRank-v0"), lambda paid: paid + 1))
    _, info = env.reset(seed=0)
    with pytest.warns(UserWarning, match=r"is unknown \(nan\)"):
        env.step(info["optimal_ranking"])
    assert np.isnan(env.result("mine").regret).all()
