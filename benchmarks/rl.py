"""Frames per second of stable-baselines3's PPO in native vector environments, and its regret.

The same network and the same settings of PPO in the native vector environment, in ``DummyVecEnv``
over scalar environments, and in CartPole. A frame is a session, or a step of CartPole.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import gymnasium as gym
import torch
from report import publish, table
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

import clickgym
from clickgym.agents import as_vec_env

OURS, THEIRS = "PBMRank-v0", "CartPole-v1"
REPEATS = 2
FRAMES = 8192
"""Of one measurement, after one rollout that is not counted."""


class Settings(NamedTuple):
    n_envs: int
    n_steps: int
    batch_size: int
    n_epochs: int
    learning_rate: float


SETTINGS = [
    Settings(64, 4, 128, 4, 1e-3),
    Settings(64, 32, 2048, 4, 1e-3),
    Settings(256, 8, 2048, 1, 1e-3),
    Settings(1024, 1, 1024, 1, 3e-3),
]


def native(n_envs: int) -> VecEnv:
    return as_vec_env(gym.make_vec(OURS, n_envs, autoreset_mode="SameStep"))


def scalar(n_envs: int) -> VecEnv:
    return DummyVecEnv([lambda: gym.make(OURS)] * n_envs)


def cart_pole(n_envs: int) -> VecEnv:
    return DummyVecEnv([lambda: gym.make(THEIRS)] * n_envs)


def frames_per_second(make: Callable[[int], VecEnv], settings: Settings) -> float:
    arguments = settings._asdict()
    envs = make(arguments.pop("n_envs"))
    network = {"net_arch": [64, 64]}
    model = PPO("MlpPolicy", envs, **arguments, policy_kwargs=network, device="cpu")
    rollout = settings.n_envs * settings.n_steps
    model.learn(rollout)
    n_frames = rollout * max(2, FRAMES // rollout)
    start = time.process_time()
    model.learn(n_frames, reset_num_timesteps=False)
    return n_frames / (time.process_time() - start)


def regret(settings: Settings) -> float:
    """After 100,000 sessions of the named learner."""
    agent = clickgym.agents.PPO(10, 5, seed=0, **settings._asdict())
    env = gym.make(OURS, instance="uniform:seed=0")
    return float(clickgym.run(agent, env, 100_000, seed=0).regret[-1])


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # those of the library
    rows = []
    for settings in SETTINGS:
        rounds = [
            [frames_per_second(make, settings) for make in (native, scalar, cart_pole)]
            for _ in range(REPEATS)
        ]
        best = [max(speeds) for speeds in zip(*rounds, strict=True)]
        n_envs, n_steps, *others = settings
        name = f"{n_envs} × {n_steps}, {', '.join(map(str, others))}"
        ratios = [f"{best[0] / other:.2f}" for other in best[1:]]
        rows.append(
            [name, *(f"{speed:,.0f}" for speed in best), *ratios, f"{regret(settings):,.0f}"]
        )
    header = ["streams × steps, batch, epochs, rate", f"{OURS}, native", "`DummyVecEnv`", THEIRS]
    header += ["native / Dummy", "native / CartPole", "regret"]
    publish(table(header, rows), "stable-baselines3", "torch")


if __name__ == "__main__":
    main()
