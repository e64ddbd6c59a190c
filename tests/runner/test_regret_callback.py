"""RegretCallback: what it logs is the regret of the sessions since the last line."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from clickgym.envs import ItemByItem, RecordRegret, RecordVectorRegret

pytest.importorskip("sb3_contrib")

from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import KVWriter, Logger
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

from clickgym.agents import PlackettLuceActorCritic, RegretCallback, vec_env

B = 4


class Lines(KVWriter):
    """Keeps what is logged."""

    def __init__(self):
        self.lines = []

    def write(self, key_values, key_excluded, step=0):
        self.lines.append(dict(key_values))

    def close(self):
        pass


def logged(model, sessions, **arguments):
    """Return the lines of a training."""
    lines = Lines()
    model.set_logger(Logger(None, [lines]))
    model.learn(sessions, RegretCallback(), **arguments)
    return lines.lines


def ppo(envs):
    settings = {"n_steps": 8, "batch_size": 16, "n_epochs": 1, "gamma": 0.0, "device": "cpu"}
    return PPO(PlackettLuceActorCritic, envs, seed=0, **settings)


def measured():
    """Return environments of the library, each with a meter of its own, and the environments."""
    made = [RecordRegret(gym.make("PBMRank-v0")) for _ in range(B)]
    return DummyVecEnv([lambda env=env: Monitor(env) for env in made]), made


def test_lines_are_means_over_the_sessions_since_the_last_line():
    envs, made = measured()
    lines = logged(ppo(envs), 5 * 8 * B, log_interval=1)
    regret = np.array([line["rollout/regret"] for line in lines if "rollout/regret" in line])
    assert [env.meter.step for env in made] == [40] * B
    assert len(regret) == 5
    total = sum(env.meter.totals[0] for env in made)
    assert regret.mean() == pytest.approx(total / (5 * 8 * B))
    assert regret.std() > 0


@pytest.mark.parametrize("limit", [1, 3, None])
def test_native_streams_count_each_session_once(limit):
    """Also those that end an episode, whose infos are elsewhere."""
    envs = RecordVectorRegret(
        gym.make_vec("PBMRank-v0", B, autoreset_mode="SameStep", max_episode_steps=limit)
    )
    lines = logged(ppo(vec_env(envs)), 3 * 8 * B, log_interval=1)
    assert envs.meter.step == 3 * 8 * B
    regret = np.mean([line["rollout/regret"] for line in lines if "rollout/regret" in line])
    assert regret == pytest.approx(envs.meter.totals[0] / envs.meter.step)


@pytest.mark.parametrize("is_native", [False, True])
@pytest.mark.parametrize(
    ("env_id", "wrapper", "settings"),
    [
        ("PBMRank-v0", VecNormalize, {"norm_obs": False}),
        ("ContextualPBMRank-v0", VecNormalize, {"norm_obs_keys": ["features"]}),
        ("PBMRank-v0", VecMonitor, {}),
        ("ContextualPBMRank-v0", VecMonitor, {}),
    ],
)
def test_wrappers_of_the_library(env_id, wrapper, settings, is_native):
    if is_native:
        envs = vec_env(gym.make_vec(env_id, B, autoreset_mode="SameStep"))
    else:
        envs = make_vec_env(f"clickgym:{env_id}", B, seed=0)
    (line, *_) = logged(ppo(wrapper(envs, **settings)), 8 * B, log_interval=1)
    assert line["rollout/regret"] > 0


def test_items_one_by_one():
    """Steps that end no session have no regret."""
    made = [RecordRegret(gym.make("PBMRank-v0")) for _ in range(B)]
    envs = DummyVecEnv([lambda env=env: ItemByItem(env) for env in made])
    model = MaskablePPO("MultiInputPolicy", envs, n_steps=20, batch_size=20, device="cpu")
    lines = logged(model, 3 * 20 * B, log_interval=1)
    regret = np.mean([line["rollout/regret"] for line in lines if "rollout/regret" in line])
    assert sum(env.meter.step for env in made) == 3 * 20 * B / 5
    assert regret == pytest.approx(sum(env.meter.totals[0] for env in made) / (3 * 20 * B / 5))
