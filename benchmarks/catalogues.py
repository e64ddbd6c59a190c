"""The largest catalogue of each compiled agent: one millisecond a session or 8 GB, whichever comes
first.

python benchmarks/catalogues.py [--write] [AGENT ...]

Sessions are the first of a run, and their time is that of `rank` and `update`, without users. With
``--write`` the results go into ``catalogues.csv``; rows of agents that are not named stay.
"""

from __future__ import annotations

import csv
import sys
import time
from functools import partial
from pathlib import Path

import gymnasium as gym

import clickgym
from clickgym.agents import AGENTS, CompiledAgent

SIZES = [digit * 10**power for power in range(1, 5) for digit in (1, 2, 5)] + [100_000]
SESSIONS, SECONDS, BYTES = 1_000, 1e-3, 8e9
PLACES = {
    (): ("PBMRank-v0", "uniform:n_items={0}"),
    ("features",): ("ContextualPBMRank-v0", "linear:n_items={0},n_pool={0}"),
    ("state",): ("CascadeMDPRank-v0", "independent:n_items={0}"),
}
"""By what an agent observes beside clicks: an id, and instances of any size."""
DRAWN = 50
"""Sessions with other candidates; then the last come again, because to draw them takes long."""
FILE = Path(__file__).with_suffix(".csv")


def seconds_per_session(env: gym.Env, agent: CompiledAgent) -> float:
    """Processor time of a session; infinite if the sessions take twice the time that is allowed."""
    observation, _ = env.reset(seed=0)
    spent = 0.0
    for session in range(-1, SESSIONS):  # the first compiles
        start = time.process_time()
        ranking = agent.rank(observation)
        spent += time.process_time() - start
        seen = observation
        if session < DRAWN or agent.observes != ("features",):
            observation, _, is_over, _, _ = env.step(ranking)
        clicks = observation["clicks"] if isinstance(observation, dict) else observation
        start = time.process_time()
        agent.update(seen, ranking, clicks)
        spent = spent + time.process_time() - start if session >= 0 else 0.0
        if spent > 2 * SESSIONS * SECONDS:
            return float("inf")
        if is_over:
            agent.leave()
            observation, _ = env.reset()
    return spent / SESSIONS


def largest_catalogue(name: str) -> int:
    """The largest of `SIZES` up to which an agent keeps both limits; 0 if there is none."""
    env_id, instance = PLACES[AGENTS[name].observes]
    lists = {"Fixed": "ranking", "BubbleRank": "initial"}
    largest = held = 0
    for n_items in SIZES:
        if held * (n_items / max(largest, 1)) ** 2 > BYTES:  # L × L at worst
            break
        env = gym.make(env_id, instance=instance.format(n_items), max_episode_steps=-1)
        n_shown = env.action_space.n_positions if name == "Fixed" else n_items
        given = {lists[name]: range(n_shown)} if name in lists else {}
        make = partial(clickgym.make_agent, name, env, horizon=10**6, seed=0, **given)
        held = sum(array.nbytes for array in make().arrays.values())
        times = (seconds_per_session(env, make()) for _ in range(2))  # other programs only add
        if held > BYTES or all(seconds > SECONDS for seconds in times):
            break
        largest = n_items
    return largest


def main() -> None:
    compiled = [name for name, agent in AGENTS.items() if issubclass(agent, CompiledAgent)]
    named = [word for word in sys.argv[1:] if word != "--write"]
    with FILE.open(encoding="utf-8") as file:
        largest = {row["agent"]: int(row["largest"]) for row in csv.DictReader(file)}
    for name in named or compiled:
        largest[name] = largest_catalogue(name)
        print(f"{name} {largest[name]:,}", flush=True)
    if "--write" in sys.argv:
        largest = {name: largest[name] for name in compiled if name in largest}
        lines = ["agent,largest", *(f"{name},{n_items}" for name, n_items in largest.items())]
        FILE.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
