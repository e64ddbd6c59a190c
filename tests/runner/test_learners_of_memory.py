"""Generic RL before stateful users: what it sees, what its episodes are, and its discount."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import clickgym
from clickgym.agents import DQN, PPO
from clickgym.envs import CascadeMDP, ClickVectorEnv

pytest.importorskip("sb3_contrib")

from clickgym.agents.rl.vec_env import StableBaselinesVecEnv

ENV = "CascadeMDPRank-v0"


def streams(n=6, **arguments):
    return gym.make_vec(
        ENV, n, autoreset_mode="SameStep", instance="clickbait:mean_sessions=3", **arguments
    )


def test_the_state_is_seen_one_hot_beside_the_clicks():
    plain, envs = streams(), StableBaselinesVecEnv(streams(), is_flat=True)
    envs.seed(0)
    seen, _ = plain.reset(seed=0)
    flat = envs.reset()
    lists, ends = np.tile([0, 1, 2, 3], (6, 1)), 0
    for _ in range(30):
        np.testing.assert_array_equal(flat[:, :4], seen["clicks"])
        np.testing.assert_array_equal(flat[:, 4:].argmax(axis=1), seen["state"])
        assert (flat[:, 4:].sum(axis=1) == 1).all()
        assert flat[0] in envs.observation_space
        seen, _, ended, _, infos = plain.step(lists)
        flat, _, _, others = envs.step(lists)
        for b in np.flatnonzero(ended):
            ends += 1
            last = others[b]["terminal_observation"]
            np.testing.assert_array_equal(last[:4], infos["final_obs"][b]["clicks"])
            assert last[4:].argmax() == infos["final_obs"][b]["state"]
    assert ends > 20


@pytest.mark.parametrize(("n_sessions", "cut_off"), [(2, False), (3, True)])
def test_a_user_who_leaves_at_the_limit_was_not_cut_off(n_sessions, cut_off):
    """The library values what would have followed for those who were cut off, and for no others."""
    users = CascadeMDP([[0.5, 0.2]], [[[1.0]] * 3], n_positions=1, n_sessions=n_sessions)
    mode = AutoresetMode.SAME_STEP
    envs = ClickVectorEnv(users, 3, autoreset_mode=mode, max_episode_steps=2)
    adapter = StableBaselinesVecEnv(envs, is_flat=True)
    adapter.reset()
    for over in (False, True):
        _, _, dones, infos = adapter.step(np.zeros((3, 1), np.int64))
        assert dones.tolist() == [over] * 3
    assert [info["TimeLimit.truncated"] for info in infos] == [cut_off] * 3


def test_item_by_item_an_episode_may_be_the_life_of_a_user():
    """The same sessions as by lists; episodes end where users leave, and nowhere else."""
    plain, envs = streams(), StableBaselinesVecEnv(streams(), "items")
    plain.reset(seed=0)
    envs.seed(0)
    envs.reset()
    for _ in range(25):
        _, rewards, ended, _, _ = plain.step(np.tile([3, 1, 0, 2], (6, 1)))
        for item in (3, 1, 0):
            observations, earned, over, _ = envs.step(np.full(6, item))
            assert not over.any()
            assert not earned.any()
        observations, earned, over, infos = envs.step(np.full(6, 2))
        np.testing.assert_array_equal(over, ended)
        np.testing.assert_array_equal(earned, rewards.astype(np.float32))
        assert not observations["placed"].any()
        for b in np.flatnonzero(over):
            last = infos[b]["terminal_observation"]
            assert last["placed"].argmax(axis=1).tolist() == [3, 1, 0, 2]


@pytest.mark.parametrize(("learner", "power"), [(PPO, 1), (DQN, 1 / 4)])
def test_discount_is_the_probability_of_another_visit(learner, power):
    agent = learner(12, 4, seed=0)
    result = clickgym.run(agent, gym.make(ENV, instance="clickbait:mean_sessions=10"), 640, seed=0)
    assert agent.model.gamma == pytest.approx(0.9**power)
    assert result.regret[-1] > 0
    assert result.steps[-1] == 640
