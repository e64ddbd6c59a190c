"""Where the time of a session goes for each learner: environment, our wrappers, network, gradient
steps, the library's rest.

Each has played before it is measured, so that it learns and nothing is compiled. The parts exclude
one another: what the environment takes is no part of the wrappers around it. Algorithms of
libraries that are not installed are left out.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any
from unittest.mock import patch

import gymnasium as gym
import torch
from report import publish, table, versions

import clickgym
from clickgym.agents import LEARNERS
from clickgym.envs import ClickVectorEnv
from clickgym.runner.learners.vec_env import StableBaselinesVecEnv

AS_PPO = "n_envs=64,n_steps=4,batch_size=128,learning_rate=1e-3"
RELATIVES = {"sb3_contrib": f"sb3_contrib:TRPO:{AS_PPO}", "sbx": f"sbx:PPO:{AS_PPO},n_epochs=4"}
PARTS = ("environment", "wrappers", "network", "gradient steps", "rest of the library")
BEFORE, SESSIONS = 4_096, 12_800
REPEATS = 3


class Clock:
    """Processor time by part; at any moment one of them runs, the last to have begun."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self._running = PARTS[-1]
        self._since = time.process_time()

    def turn(self, part: str) -> str:
        """Let another part run; returns the one that ran."""
        now, before = time.process_time(), self._running
        self.seconds[before] += now - self._since
        self._running, self._since = part, now
        return before

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            before = self.turn(part)
            try:
                return function(*args, **kwargs)
            finally:
                self.turn(before)

        return call


def measured(spec: str) -> list[float]:
    """Microseconds of a session in each part."""
    env = gym.make("PBMRank-v0")
    agent: Any = clickgym.make_agent(spec, env, seed=0)
    clickgym.run(agent, env, BEFORE, seed=0)
    model, clock = agent.model, Clock()
    parts = {(model, "train"): "gradient steps", (model, "predict"): "network"}
    parts |= {
        (model.policy, name): "network" for name in ("forward", "predict_values", "predict_all")
    }
    for (owner, name), part in parts.items():
        if hasattr(owner, name):
            setattr(owner, name, clock.timed(part, getattr(owner, name)))
    with (
        patch.object(ClickVectorEnv, "step", clock.timed("environment", ClickVectorEnv.step)),
        patch.object(
            StableBaselinesVecEnv,
            "step_wait",
            clock.timed("wrappers", StableBaselinesVecEnv.step_wait),
        ),
        patch.object(
            StableBaselinesVecEnv,
            "env_method",
            clock.timed("wrappers", StableBaselinesVecEnv.env_method),
        ),
    ):
        clickgym.run(agent, env, SESSIONS, seed=1)
        clock.turn(PARTS[-1])
    return [1e6 * clock.seconds[part] / SESSIONS for part in PARTS]


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # those of the libraries
    specs = [
        *LEARNERS,
        *(spec for library, spec in RELATIVES.items() if find_spec(library) is not None),
    ]
    best = {spec: [float("inf")] for spec in specs}
    for _ in range(REPEATS):  # in turns: what else runs on the machine slows all of them alike
        best = {spec: min(parts, measured(spec), key=sum) for spec, parts in best.items()}
    rows = [
        [
            spec.partition(":n_")[0],
            f"{sum(parts):,.0f} µs",
            *(f"{part / sum(parts):.0%}" for part in parts),
        ]
        for spec, parts in best.items()
    ]
    packages = (
        "stable-baselines3",
        "sb3-contrib",
        "torch",
        *(["sbx-rl", "jax"] if find_spec("sbx") else []),
    )
    publish(f"{table(['learner', 'a session takes', *PARTS], rows)}\n\nWith {versions(*packages)}.")


if __name__ == "__main__":
    main()
