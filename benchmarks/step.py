"""Steps per second of ``env.step`` and of the native vector environment, beside Gymnasium's
CartPole.

One step of a vector environment counts as many as it has environments. Actions are drawn
beforehand; the resets between CartPole's episodes are not counted, except those within a step of
its vector environment.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
from report import publish, table

import clickgym  # noqa: F401

OURS, THEIRS = "PBMRank-v0", "CartPole-v1"
SIZES = (1, 64, 1024, 65536)
REPEATS = 9
SECONDS = 0.15  # of one measurement


def scalar_speed(env: gym.Env, actions: list[Any]) -> float:
    """Steps per second of ``env.step``, resets aside."""
    env.reset(seed=0)
    steps, spent = 0, 0.0
    while spent < SECONDS:
        start = time.process_time()
        over = False
        for action in actions:
            _, _, terminated, truncated, _ = env.step(action)
            steps += 1
            if terminated or truncated:
                over = True
                break
        spent += time.process_time() - start
        if over:
            env.reset()
    return steps / spent


def vector_speed(envs: gym.vector.VectorEnv, actions: list[Any]) -> float:
    """Steps per second over all environments together."""
    envs.reset(seed=0)
    steps, spent, start = 0, 0.0, time.process_time()
    while spent < SECONDS:
        for action in actions:
            envs.step(action)
        steps += len(actions) * envs.num_envs
        spent = time.process_time() - start
    return steps / spent


def fastest(speed: Callable[..., float], environments: list[Any], n_actions: int) -> list[float]:
    """The best of several measurements of each environment, taken in turns."""
    actions = [[env.action_space.sample() for _ in range(n_actions)] for env in environments]
    rounds = [
        [speed(env, drawn) for env, drawn in zip(environments, actions, strict=True)]
        for _ in range(REPEATS)
    ]
    return [max(speeds) for speeds in zip(*rounds, strict=True)]


def main() -> None:
    scalar = [
        gym.make(OURS),
        gym.make(THEIRS),
        gym.make(OURS).unwrapped,
        gym.make(THEIRS).unwrapped,
    ]
    speeds = fastest(scalar_speed, scalar, 1000)
    measured = {"`gym.make`": speeds[:2], "`gym.make(...).unwrapped`": speeds[2:]}
    for size in SIZES:
        pair = [
            gym.make_vec(name, size, vectorization_mode="vector_entry_point")
            for name in (OURS, THEIRS)
        ]
        measured[f"`gym.make_vec`, {size} environments"] = fastest(vector_speed, pair, 4)
    rows = [
        [how, f"{ours:,.0f}", f"{theirs:,.0f}", f"{ours / theirs:.2f}"]
        for how, (ours, theirs) in measured.items()
    ]
    publish(table(["steps per second", OURS, THEIRS, "ratio"], rows))


if __name__ == "__main__":
    main()
