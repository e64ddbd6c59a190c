"""Loops of other people: stable-baselines3's evaluation and logs, and the mistakes that end in a
line naming a wrapper.
"""

from functools import partial

import gymnasium as gym
import pytest

pytest.importorskip("sb3_contrib")

from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.monitor import Monitor

from clickgym.envs import ItemByItem

SMALL = partial(gym.make, "PBMRank-v0", attraction=[0.6, 0.5, 0.3, 0.1], examination=[1.0, 0.7])


class Kept(Logger):
    """A logger of stable-baselines3 that writes nothing, and keeps all that was recorded."""

    def __init__(self):
        super().__init__(None, [])
        self.values = {}

    def record(self, key, value, exclude=None):
        self.values[key] = value


@pytest.mark.parametrize("env_id", ["PBMRank-v0", "CascadeMDPRank-v0"])
def test_the_evaluation_of_stable_baselines3_returns(env_id):
    env = Monitor(gym.make(env_id))
    policy = "MultiInputPolicy" if env_id == "CascadeMDPRank-v0" else "MlpPolicy"
    model = PPO(policy, env, n_steps=64, seed=0, device="cpu")
    n = 1 if env_id == "PBMRank-v0" else 2
    returns, lengths = evaluate_policy(model, env, n_eval_episodes=n, return_episode_rewards=True)
    assert len(returns) == n
    if env_id == "PBMRank-v0":
        assert lengths == [1000]
        assert all(0 < each <= 1.2 * 1000 * env.unwrapped.task.optimal_reward for each in returns)


@pytest.mark.parametrize(
    ("algorithm", "wrapper", "policy"),
    [(PPO, gym.Wrapper, "MlpPolicy"), (MaskablePPO, ItemByItem, "MultiInputPolicy")],
)
def test_the_log_of_stable_baselines3_has_returns(algorithm, wrapper, policy):
    """Of episodes of twenty sessions, so that it takes less time; item by item, of a list."""
    env, logger = wrapper(SMALL(max_episode_steps=20)), Kept()
    model = algorithm(policy, env, n_steps=32, batch_size=32, n_epochs=1, device="cpu")
    model.set_logger(logger)
    model.learn(96, log_interval=1)
    assert logger.values["rollout/ep_len_mean"] == (2 if wrapper is ItemByItem else 20)
    assert 0 < logger.values["rollout/ep_rew_mean"] <= 40


# ----------------------------------------------------------------------------------------- mistakes


def test_rendering_without_a_mode():
    """The warning says where to give one."""
    env = SMALL()
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="render_mode='rgb_array'"):
        assert env.render() is None
