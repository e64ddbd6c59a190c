"""Loops of other people: stable-baselines3's evaluation and logs, and the mistakes that end in a
line naming a wrapper.
"""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import FrameStackObservation
from sb3_contrib import MaskablePPO, RecurrentPPO
from slow import slow
from stable_baselines3 import A2C, DQN, PPO, SAC
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.monitor import Monitor

from clickgym.envs import EnumeratedAction, ItemByItem, LehmerAction, ScoresAction

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
    env = Monitor(LehmerAction(gym.make(env_id)))
    policy = "MultiInputPolicy" if env_id == "CascadeMDPRank-v0" else "MlpPolicy"
    model = PPO(policy, env, n_steps=64, seed=0, device="cpu")
    n = 1 if env_id == "PBMRank-v0" else 2
    returns, lengths = evaluate_policy(model, env, n_eval_episodes=n, return_episode_rewards=True)
    assert len(returns) == n
    if env_id == "PBMRank-v0":
        assert lengths == [1000]
        assert all(0 < each <= 1.2 * 1000 * env.unwrapped.task.optimal_reward for each in returns)


def test_the_callback_of_stable_baselines3_evaluates(tmp_path):
    evaluation = Monitor(LehmerAction(SMALL()))
    callback = EvalCallback(
        evaluation, n_eval_episodes=1, eval_freq=64, log_path=str(tmp_path), verbose=0
    )
    PPO("MlpPolicy", LehmerAction(SMALL()), n_steps=64, seed=0, device="cpu").learn(
        64, callback=callback
    )
    assert np.load(tmp_path / "evaluations.npz")["ep_lengths"].tolist() == [[1000]]


SHORT = {"n_steps": 32, "batch_size": 32, "n_epochs": 1, "device": "cpu"}
ALGORITHMS = {
    "PPO": lambda env: PPO("MlpPolicy", LehmerAction(env), **SHORT),
    "A2C": lambda env: A2C("MlpPolicy", LehmerAction(env), n_steps=32, device="cpu"),
    "DQN": lambda env: DQN(
        "MlpPolicy", EnumeratedAction(env), learning_starts=80, train_freq=32, device="cpu"
    ),
    "SAC": lambda env: SAC(
        "MlpPolicy", ScoresAction(env), learning_starts=80, train_freq=32, device="cpu"
    ),
    "MaskablePPO": lambda env: MaskablePPO("MultiInputPolicy", ItemByItem(env), **SHORT),
    "RecurrentPPO": lambda env: RecurrentPPO(
        "MlpLstmPolicy", LehmerAction(env), policy_kwargs={"lstm_hidden_size": 8}, **SHORT
    ),
}


@pytest.mark.parametrize("name", ["PPO", "MaskablePPO", *slow("A2C", "DQN", "SAC", "RecurrentPPO")])
def test_the_log_of_stable_baselines3_has_returns(name):
    """Of episodes of twenty sessions; item by item an episode is one list of two items."""
    model = ALGORITHMS[name](SMALL(max_episode_steps=20))
    logger = Kept()
    model.set_logger(logger)
    model.learn(96, log_interval=1)
    steps = 20 if name != "MaskablePPO" else 2
    assert logger.values["rollout/ep_len_mean"] == steps
    assert 0 < logger.values["rollout/ep_rew_mean"] <= 40


# ----------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize("wrapper", [LehmerAction, ScoresAction, EnumeratedAction])
def test_frames_may_be_stacked_before_or_after_the_wrapper_of_actions(wrapper):
    for env in (
        wrapper(FrameStackObservation(SMALL(), 3)),
        FrameStackObservation(wrapper(SMALL()), 3),
    ):
        env.reset(seed=0)
        observation, *_ = env.step(env.action_space.sample())
        assert observation.shape == (3, 2)


def test_rendering_without_a_mode_says_where_to_give_one():
    env = SMALL()
    env.reset(seed=0)
    with pytest.warns(
        UserWarning,
        match=r"gym.make\(..., render_mode='rgb_array'\) \(there is: ansi, rgb_array\)",
    ):
        assert env.render() is None
    envs = gym.make_vec("PBMRank-v0", num_envs=2)
    with pytest.warns(
        UserWarning,
        match=r"gym.make_vec\(..., render_mode='rgb_array'\) \(there is: ansi, rgb_array\)",
    ):
        assert envs.render() is None
