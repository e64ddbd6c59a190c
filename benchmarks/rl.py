"""Frames per second of PPO: native vector environment, ``DummyVecEnv`` over scalar environments,
and CartPole.

The same network everywhere, and the same settings of PPO in a row; a frame is a session, or a step
of CartPole. Beside the frames stands the share of the time that goes into the environment,
everything between the library's call of ``step`` and its return. The first row has clickgym's
defaults for `PPO`, which are chosen for low regret.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import gymnasium as gym
import torch
from learners import PARTS, Clock
from report import publish, table, versions
from stable_baselines3 import PPO
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

import clickgym
from clickgym.agents import LEARNERS
from clickgym.envs import LehmerAction, LehmerVectorAction
from clickgym.runner.learners.vec_env import StableBaselinesVecEnv

OURS, THEIRS = "PBMRank-v0", "CartPole-v1"
REPEATS = 2
ROLLOUTS = 2  # of one measurement, after one that is not counted


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
    Settings(256, 1, 256, 1, 3e-3),
    Settings(1024, 1, 1024, 1, 3e-3),
]


def native(name: str, n_envs: int) -> VecEnv:
    envs = gym.make_vec(name, n_envs, autoreset_mode="SameStep")
    return StableBaselinesVecEnv(LehmerVectorAction(envs))


def scalar(name: str, n_envs: int) -> VecEnv:
    return DummyVecEnv(
        [lambda: LehmerAction(gym.make(name)) if name == OURS else gym.make(name)] * n_envs
    )


def speed(envs: VecEnv, settings: Settings) -> tuple[float, float]:
    """Frames per second of processor time, and the share of the environment."""
    chosen = {name: value for name, value in settings._asdict().items() if name != "n_envs"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = PPO(
            "MlpPolicy",
            envs,
            **chosen,
            policy_kwargs={"net_arch": [64, 64]},
            device="cpu",
            seed=None,
        )
    model.set_logger(Logger(None, []))
    rollout = settings.n_envs * settings.n_steps
    model.learn(rollout, log_interval=None)
    n_rollouts = max(ROLLOUTS, 8192 // rollout)
    clock = Clock()
    envs.step = clock.timed("environment", envs.step)  # type: ignore[method-assign]
    model.learn(n_rollouts * rollout, log_interval=None, reset_num_timesteps=False)
    clock.turn(PARTS[-1])
    spent = sum(clock.seconds.values())
    return n_rollouts * rollout / spent, clock.seconds["environment"] / spent


def main() -> None:
    torch.set_num_threads(1)
    made: list[Callable[[int], VecEnv]] = [
        lambda n: native(OURS, n),
        lambda n: scalar(OURS, n),
        lambda n: scalar(THEIRS, n),
    ]
    rows = []
    for settings in SETTINGS:
        # All are slowed alike by what else runs on the machine, for they are measured in turns; the fastest counts.
        rounds = [[speed(make(settings.n_envs), settings) for make in made] for _ in range(REPEATS)]
        best = [max(results) for results in zip(*rounds, strict=True)]
        regret = clickgym.run(
            LEARNERS["PPO"](10, 5, seed=0, **settings._asdict()),
            gym.make(OURS, instance="uniform:seed=0"),
            100_000,
            seed=0,
        ).regret[-1]
        rows.append(
            [
                f"{settings.n_envs} × {settings.n_steps}, {settings.batch_size}, {settings.n_epochs}, {settings.learning_rate}",
                *(f"{frames:,.0f} ({share:.0%})" for frames, share in best),
                f"{best[0][0] / best[1][0]:.2f}",
                f"{best[0][0] / best[2][0]:.2f}",
                f"{regret:,.0f}",
            ]
        )
    publish(
        table(
            [
                "streams × steps, batch, epochs, rate",
                f"{OURS}, native",
                f"{OURS}, DummyVecEnv",
                f"{THEIRS}, DummyVecEnv",
                "native / Dummy",
                "native / CartPole",
                "regret",
            ],
            rows,
        )
        + f"\n\nWith {versions('stable-baselines3', 'torch')}."
    )


if __name__ == "__main__":
    main()
