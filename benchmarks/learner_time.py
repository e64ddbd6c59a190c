"""Where the time of a learner goes: gradient steps, policy, environment, our wrappers, library.

A part does not count the parts that it calls. The policy is the library's, with our distribution of
lists in PPO and A2C.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any
from unittest.mock import patch

import gymnasium as gym
import stable_baselines3
import torch
from report import publish, table
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy

import clickgym
from clickgym.agents.rl.vec_env import StableBaselinesVecEnv
from clickgym.envs import ClickEnv, ClickVectorEnv

ENVIRONMENTS, LEARNERS = ("ContextualPBMRank-v0", "PBMRank-v0"), ("PPO", "A2C", "SAC", "DQN")
SESSIONS = 10_000
PARTS: list[tuple[type, str, str]] = [
    *((getattr(stable_baselines3, name), "train", "gradient steps") for name in LEARNERS),
    (ActorCriticPolicy, "forward", "policy"),
    (ActorCriticPolicy, "predict_values", "policy"),
    (BasePolicy, "predict", "policy"),
    (ClickEnv, "step", "environment"),
    (ClickVectorEnv, "step", "environment"),
    (StableBaselinesVecEnv, "step_wait", "our wrappers"),
]
NAMES = (*dict.fromkeys(name for *_, name in PARTS), "library")


@contextmanager
def spent_in_parts() -> Iterator[Counter[str]]:
    """Context that counts the processor time of this thread by the part that is running."""
    clock = time.thread_time
    spent, running, since = Counter[str](), ["library"], clock()

    def turn_to(parts: list[str]) -> None:
        nonlocal running, since
        now = clock()
        spent[running[-1]] += now - since
        running, since = parts, now

    def timed(function: Callable[..., Any], part: str) -> Callable[..., Any]:
        @wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            turn_to([*running, part])
            try:
                return function(*arguments, **options)
            finally:
                turn_to(running[:-1])

        return call

    with ExitStack() as stack:
        for owner, name, part in PARTS:
            stack.enter_context(patch.object(owner, name, timed(getattr(owner, name), part)))
        yield spent
    turn_to(running)


def shares(name: str, env_id: str) -> list[float]:
    """Return the share of each part in the time of a run, in per cent; then microseconds a session.

    A short run before loads the library and compiles.
    """
    env = gym.make(env_id)
    clickgym.run(name, env, 100, seed=0)
    with spent_in_parts() as spent:
        clickgym.run(name, env, SESSIONS, seed=0)
    total = sum(spent.values())
    return [*(100 * spent[part] / total for part in NAMES), 1e6 * total / SESSIONS]


def main() -> None:
    torch.set_num_threads(1)
    rows = [
        [env_id, name, *(f"{value:.0f}" for value in shares(name, env_id))]
        for env_id in ENVIRONMENTS
        for name in LEARNERS
    ]
    header = ["environment", "learner", *(f"{part}, %" for part in NAMES), "µs a session"]
    publish(table(header, rows), "stable-baselines3", "torch")


if __name__ == "__main__":
    main()
