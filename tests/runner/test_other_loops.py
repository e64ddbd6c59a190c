"""Loops of other people: stable-baselines3's evaluation and logs, and the mistakes that end in a
line naming a wrapper.
"""

from functools import partial

import gymnasium as gym
import pytest
from gymnasium.wrappers import (
    FlattenObservation,
    FrameStackObservation,
    RecordEpisodeStatistics,
    TimeLimit,
)

import clickgym

pytest.importorskip("sb3_contrib")

from sb3_contrib import ARS, QRDQN, MaskablePPO
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecNormalize

from clickgym.agents import FrozenPolicy, PlackettLuceActorCritic, RegretCallback
from clickgym.envs import ItemByItem

SMALL = partial(gym.make, "PBMRank-v0", attraction=[0.6, 0.5, 0.3, 0.1], examination=[1.0, 0.7])


class Kept(Logger):
    """A logger of stable-baselines3 that writes nothing, and keeps all that was recorded."""

    def __init__(self):
        super().__init__(None, [])
        self.values = {}

    def record(self, key, value, exclude=None):
        self.values[key] = value


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


def test_wrappers_of_gymnasium_and_stable_baselines3_work_together(tmp_path):
    """A training with an evaluation, saved and loaded, ranks as before."""
    layers = [FrameStackObservation, RecordEpisodeStatistics]

    def make():
        env = gym.make("clickgym:PBMRank-v0", max_episode_steps=50)
        return Monitor(RecordEpisodeStatistics(FrameStackObservation(TimeLimit(env, 8), 3)))

    vectors = (SubprocVecEnv, DummyVecEnv)
    envs, others = (VecNormalize(each([make] * 2), norm_obs=False) for each in vectors)
    check = EvalCallback(others, n_eval_episodes=2, eval_freq=16, verbose=0)
    model = PPO(PlackettLuceActorCritic, envs, n_steps=16, batch_size=32, seed=0, device="cpu")
    model.learn(64, [check, RegretCallback()])
    assert check.n_calls == 32
    assert 0 < check.last_mean_reward < 8 * 5
    assert [episode["l"] for episode in model.ep_info_buffer] == [8] * 8
    assert all(envs.env_is_wrapped(layer) == [True] * 2 for layer in layers)
    model.save(tmp_path / "model.zip")
    envs.save(tmp_path / "statistics.pkl")
    fresh = VecNormalize.load(str(tmp_path / "statistics.pkl"), DummyVecEnv([make] * 2))
    loaded, seen = PPO.load(tmp_path / "model.zip", env=fresh), fresh.reset()
    lists = loaded.predict(seen, deterministic=True)[0]
    assert lists.tolist() == model.predict(seen, deterministic=True)[0].tolist()
    env = FrameStackObservation(gym.make("PBMRank-v0"), 3)
    assert clickgym.run(FrozenPolicy(10, 5, model=loaded), env, 20, seed=0).steps[-1] == 20
    for each in (envs, others, fresh):
        each.close()


@pytest.mark.parametrize("algorithm", [DQN, QRDQN, ARS, MaskablePPO])
def test_algorithms_that_choose_item_by_item(algorithm):
    """By one wrapper; each list has distinct items, whatever was chosen, and they play on."""
    recorded = clickgym.RecordRegret(SMALL())
    env = ItemByItem(recorded)
    kinds = {"policy": "MultiInputPolicy", "env": env, "gamma": 1.0}
    settings = {
        "MaskablePPO": {"n_steps": 32, "batch_size": 16},
        "ARS": {"policy": "LinearPolicy", "env": FlattenObservation(env), "n_delta": 2},
    }.get(algorithm.__name__, {"learning_starts": 20})
    if algorithm is ARS:
        del kinds["gamma"]
    model = algorithm(**kinds | settings, seed=0, device="cpu").learn(64)
    assert recorded.meter.step >= 32
    agent = FrozenPolicy(4, 2, model=model)
    assert clickgym.run(agent, SMALL(), 20, seed=0).steps[-1] == 20


# ----------------------------------------------------------------------------------------- mistakes


def test_rendering_without_a_mode():
    """The warning says where to give one."""
    env = SMALL()
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="requires a render_mode"):
        assert env.render() is None
