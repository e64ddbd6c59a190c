"""How long a session takes: of each agent in both loops, without the shortcuts of some agents, and
of the environments alone, beside Gymnasium's CartPole. It prints the tables of README.md.

The measurements of a table alternate in one process, several times, and the fastest of each counts,
because other programs on the machine can only add time. For the same reason times are processor
times of one thread. One step of a vector environment counts as many as it has environments. Actions
are drawn beforehand; the resets between CartPole's episodes are not counted, except those within a
step of its vector environment.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import gymnasium as gym
import numpy as np
from plain import PLAIN

import clickgym
from clickgym.agents import AGENTS, CompiledAgent
from clickgym.core.text import markdown_table
from clickgym.envs import ClickEnv, PositionBasedModel

SAME_ITEMS, CONTEXTUAL = ("PBMRank-v0", "CMRank-v0"), ("ContextualPBMRank-v0",)
HORIZONS = {"compiled": 100_000, "python": 1_000}
"""The time of a session changes as an agent learns, so times are means over the whole run."""
PAIR = ("PBMRank-v0", "CartPole-v1")
SIZES = (1, 64, 1024, 65536)
CATALOGUES = {10: 20_000, 100: 5_000}
"""The numbers of items with which shortcuts are measured, and of sessions."""
SECONDS = 0.15
"""Of one measurement of steps."""


def agents_that_observe(*keys: str) -> list[str]:
    """The compiled agents that read these keys of an observation beside the clicks."""
    return [
        name
        for name, agent in AGENTS.items()
        if issubclass(agent, CompiledAgent) and agent.observes == keys
    ]


def session_time(env: gym.Env, name: str, n_sessions: int, engine: str) -> float:
    """Seconds of a session of an agent."""
    agent = clickgym.make_agent(name, env, horizon=10**6, seed=0)
    start = time.process_time()
    clickgym.run(agent, env, n_sessions, seed=0, checkpoints=[n_sessions], engine=engine)
    return (time.process_time() - start) / n_sessions


def agents_table(env_ids: Sequence[str], names: Sequence[str]) -> list[list[str]]:
    """The table of the agents: nanoseconds in the compiled loop, and microseconds in Python with
    the first environment. `Fixed` does nothing: its time is that of the loop and the clicks.
    """
    envs = {env_id: gym.make(env_id) for env_id in env_ids}
    cases = [(env_id, name, "compiled") for env_id in env_ids for name in names]
    cases += [(env_ids[0], name, "python") for name in names]
    for env_id, name, engine in cases:
        session_time(envs[env_id], name, 1, engine)  # compiles
    rounds = [
        [
            session_time(envs[env_id], name, HORIZONS[engine], engine)
            for env_id, name, engine in cases
        ]
        for _ in range(2)
    ]
    best_times = dict(zip(cases, map(min, zip(*rounds, strict=True)), strict=True))
    rows = [["agent", *env_ids, "`env.step`"]]
    for name in names:
        compiled = [f"{best_times[env_id, name, 'compiled'] * 1e9:,.0f} ns" for env_id in env_ids]
        rows.append([name, *compiled, f"{best_times[env_ids[0], name, 'python'] * 1e6:.0f} µs"])
    return rows


def shortcut_times(shortcut: str, is_plain: bool) -> list[float]:
    """Seconds of a session with each number of items, with or without a shortcut."""
    name, module, function, plain = PLAIN[shortcut]
    if is_plain:
        setattr(module, function, plain)
    times = []
    for n_items, n_sessions in CATALOGUES.items():
        attraction = np.random.default_rng(0).beta(1.0, 4.0, n_items)
        env = ClickEnv(PositionBasedModel(attraction, [1.0, 0.7, 0.5, 0.4, 0.3]))
        session_time(env, name, 1, "compiled")  # compiles
        times.append(min(session_time(env, name, n_sessions, "compiled") for _ in range(5)))
    return times


def shortcuts_table() -> list[list[str]]:
    """The table of the shortcuts: microseconds with and without each of them. Every measurement has
    its own process, because compiled kernels keep the kernels that they call.
    """
    cases = [(shortcut, is_plain) for shortcut in PLAIN for is_plain in (False, True)]
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        times = [*pool.map(shortcut_times, *zip(*cases, strict=True))]
    rows = [["remembered", "agent", *(f"{n:,} items" for n in CATALOGUES)]]
    for shortcut, fast, plain in zip(PLAIN, times[::2], times[1::2], strict=True):
        pairs = zip(fast, plain, strict=True)
        cells = [f"{1e6 * fast:.2f} µs, else {1e6 * plain:.2f}" for fast, plain in pairs]
        rows.append([shortcut, PLAIN[shortcut][0], *cells])
    return rows


def scalar_speed(env: gym.Env, actions: list[Any]) -> float:
    """Steps per second of ``env.step``, resets aside."""
    steps, seconds = 0, 0.0
    while seconds < SECONDS:
        env.reset(seed=0)
        start = time.process_time()
        for action in actions:
            steps += 1
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                break
        seconds += time.process_time() - start
    return steps / seconds


def vector_speed(envs: gym.vector.VectorEnv, actions: list[Any]) -> float:
    """Steps per second over all environments together."""
    envs.reset(seed=0)
    steps, seconds, start = 0, 0.0, time.process_time()
    while seconds < SECONDS:
        for action in actions:
            envs.step(action)
        steps += len(actions) * envs.num_envs
        seconds = time.process_time() - start
    return steps / seconds


def steps_table() -> list[list[str]]:
    """The table of the steps of environments."""
    cases: dict[str, tuple[Callable[..., float], list[Any], int]] = {
        "`gym.make`": (scalar_speed, [*map(gym.make, PAIR)], 1000)
    }
    for size in SIZES:
        pair = [gym.make_vec(name, size, vectorization_mode="vector_entry_point") for name in PAIR]
        cases[f"`gym.make_vec`, {size} environments"] = (vector_speed, pair, 4)
    rows = [["steps per second", *PAIR, "ratio"]]
    for label, (speed, pair, n_actions) in cases.items():
        actions = [[env.action_space.sample() for _ in range(n_actions)] for env in pair]
        rounds = [[*map(speed, pair, actions)] for _ in range(9)]
        ours, theirs = map(max, zip(*rounds, strict=True))
        rows.append([label, f"{ours:,.0f}", f"{theirs:,.0f}", f"{ours / theirs:.2f}"])
    return rows


def main() -> None:
    """Print the tables and the machine."""
    for rows in (
        agents_table(SAME_ITEMS, agents_that_observe()),
        agents_table(CONTEXTUAL, agents_that_observe("features")),
        shortcuts_table(),
        steps_table(),
    ):
        print(*markdown_table(rows), "", sep="\n")
    machine = f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"
    load = f"load average at the end {os.getloadavg()[0]:.1f}"
    print(
        f"{machine}; Python {platform.python_version()}, clickgym {clickgym.__version__}; {load}."
    )


if __name__ == "__main__":
    main()
