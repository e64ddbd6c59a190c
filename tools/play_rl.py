"""Play the runs for docs/rl_results.md, and write data/rl.parquet.

nice -n 19 python tools/play_rl.py OUT [--search]

The program saves each run as a file in the folder OUT, so the same command continues a stopped one.
With ``--search``, it plays the runs of the hyperparameter searches instead, and writes
data/rl_search.parquet. In the page's worlds with features, each learner is also evaluated after
its run as a `FrozenPolicy`, which neither explores nor learns. Afterwards, ``make pages`` updates
the tables and the figure on the page.
"""

from __future__ import annotations

import argparse
import subprocess
import time
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import gymnasium as gym
import numpy as np
import polars
from rl_page import (
    BIT,
    CASCADE,
    CLICKS,
    CONTEXTUAL,
    FILE,
    QUERY,
    SEARCH,
    best_networks,
    best_setting,
)

import clickgym
from clickgym.agents import FrozenPolicy, Learner
from clickgym.bench.result_files import write_results
from clickgym.core.files import make_folder, parquet_bytes, write_whole

RUNS, FROZEN_SESSIONS = 5, 5_000
PLAIN = (QUERY, "CMRank-v0")
SESSIONS, PLAIN_SESSIONS = 50_000, 100_000
"""The sessions of a run with an instance, including the searches, and of a run with the default
query.
"""
WORLDS = [
    f"{world}seed={seed}"
    for seed in (21, 22)  # we chose hyperparameters in worlds with other seeds
    for world in ("linear:", "personal:features=outer,", "personal:")
]
LINEAR = ("LinearTS", "PBMLinUCB", "LinearTS:alpha=0.0137", "PBMLinUCB:alpha=0.0123", "Random")
"""Linear bandits with the published values of alpha, and with the values that a search found."""
BY_ROWS, OTHERS = ("SAC", "PPO", "A2C"), ("DQN",)
BANDITS = ("CascadeKLUCB", "TopRank", "BatchRank", "Random")
NEURAL, FEWER_EPOCHS = (CLICKS, BIT), "PPO:n_epochs=4"
BEFORE_CASCADE = (
    *("LinearTS", "CMLinUCB", "Random", *NEURAL, "SAC", "PPO", "A2C"),
    FEWER_EPOCHS,
)
"""The agents that play with users who leave at the first click, contrary to what `NeuralGreedy`
assumes.
"""
SETTINGS, BEST = 16, 2
"""The number of settings that play the first instance of a search, and the number of best settings
that also play the second instance, together with the settings chosen by hand. The search chooses
the setting with the smallest regret, relative to random lists and averaged over both instances.
"""
BY_HAND = "PPO:n_envs=64,n_steps=4,batch_size=256,n_epochs=10,learning_rate=0.003"
SEARCHES = (
    (CONTEXTUAL, ("personal:seed=31", "personal:seed=32"), (BY_HAND, CLICKS, "A2C")),
    (QUERY, ("yandex-9", "yandex-990"), ("PPO", "A2C")),
)
"""For each search: an id, two instances, and the settings that were chosen by hand. The tables on
the page use other instances. The two queries are the shipped queries with the lowest numbers."""
RATES, ARCHES = (0.001, 0.002, 0.003, 0.005, 0.01), ("[32,32]", "[64,64]", "[128,128]")
SPACES: dict[str, dict[str, Sequence[float | str]]] = {
    "PPO": {
        "n_envs": (16, 32, 64),
        "n_steps": (2, 4, 8),
        "batch_size": (32, 64, 128, 256),
        "n_epochs": (4, 10, 20),
        "learning_rate": RATES,
        "ent_coef": (0, 0.001, 0.01),
        "net_arch": ARCHES,
    },
    "A2C": {
        "n_envs": (16, 32, 64),
        "n_steps": (1, 2, 4),
        "learning_rate": RATES,
        "ent_coef": (0, 0.001, 0.01),
        "net_arch": ARCHES,
        "use_rms_prop": (True, False),
        "normalize_advantage": (True, False),
    },
    "NeuralGreedy": {
        "epsilon": (0, 0.005, 0.01, 0.02),
        "decay": (250, 500, 1000, 2000),
        "batch_size": (32, 64, 128, 256),
        "train_freq": (1, 2, 4, 8),
        "learning_rate": RATES,
        "net_arch": ARCHES,
    },
}

Pair = tuple[str, str, str, int]
"""An environment, an instance (empty for the default), an agent, and the run's number, which is the
seed of the environment and of the agent.
"""


def pairs() -> Iterator[Pair]:
    """Yield the runs to play, beginning with those that the page needs most."""
    tuned_agents = (best_setting("PPO"), *best_networks())  # the search for A2C found the defaults
    learners = ("PPO", best_setting("PPO", QUERY), "A2C", best_setting("A2C", QUERY), "SAC", "DQN")
    agents = (*LINEAR, *NEURAL, *BY_ROWS, FEWER_EPOCHS, *tuned_agents)
    for is_plain in (False, True):
        for run in range(RUNS):
            for world, agent in product(WORLDS, agents):
                is_played = agent not in tuned_agents or world.startswith("personal:")
                if is_played and world.startswith("personal:seed") == is_plain:
                    yield CONTEXTUAL, world, agent, run
            if is_plain:
                for world, agent in product(WORLDS[2::3], BEFORE_CASCADE):
                    yield CASCADE, world, agent, run
                for env, agent in product(PLAIN, dict.fromkeys((*BANDITS, *learners))):
                    yield env, "", agent, run
                for world, agent in product(WORLDS[:3], () if run else OTHERS):
                    yield CONTEXTUAL, world, agent, run


def draw_settings(agent: str) -> list[str]:
    """Return the settings for a search: those chosen by hand, then random settings. PPO's batch
    size is at most the number of sessions in an update.
    """
    name = agent.partition(":")[0]
    rng, agents = np.random.default_rng(SETTINGS), [agent]
    while len(agents) < SETTINGS:
        setting = {key: values[rng.integers(len(values))] for key, values in SPACES[name].items()}
        if name != "PPO" or setting["batch_size"] <= setting["n_envs"] * setting["n_steps"]:
            settings = ",".join(f"{key}={value}" for key, value in setting.items())
            agents.append(f"{name}:{settings}")
    return agents


def search(out: Path) -> None:
    """Play the searches: all settings with the first instance, the best with the second, too."""
    for env, (first, second), agents_by_hand in SEARCHES:
        for instance in (first, second):
            load_or_play(out, env, instance, "Random", 0)
        for by_hand in agents_by_hand:
            regrets = {
                agent: float(load_or_play(out, env, first, agent, 0)["regret"][-1])
                for agent in draw_settings(by_hand)
            }
            best = sorted(regrets, key=lambda name: regrets[name])[:BEST]
            for agent in dict.fromkeys([*best, by_hand]):
                load_or_play(out, env, second, agent, 0)


def play(env_id: str, instance: str, agent: str, run: int) -> polars.DataFrame:
    """Play a run, and return a row for each checkpoint: the cumulative regret, the processor
    seconds of the whole run, the regret per session of the frozen policy (null if the page does not
    show it), and the commit.
    """
    env = gym.make(env_id, **({"instance": instance} if instance else {}))
    horizon = SESSIONS if instance else PLAIN_SESSIONS
    steps = {horizon // 2, *np.geomspace(100, horizon, 22).astype(int).tolist()}
    start = time.process_time()
    new_agent: Any = clickgym.make_agent(agent, env, horizon=horizon, seed=run)
    result = clickgym.run(new_agent, env, horizon, seed=run, checkpoints=sorted(steps))
    seconds, frozen = time.process_time() - start, None
    if isinstance(new_agent, Learner) and instance in WORLDS:
        policy = FrozenPolicy(model=new_agent.model)
        regret = clickgym.run(policy, env, FROZEN_SESSIONS, seed=run + 1_000).regret[-1]
        frozen = float(regret) / FROZEN_SESSIONS
    columns = {"env": env_id, "instance": instance, "agent": agent, "run": run}
    measurements = {"step": result.steps, "regret": result.regret.round(2)}
    table = polars.DataFrame(measurements).with_columns(
        *(polars.lit(value).alias(name) for name, value in columns.items()),
        polars.lit(round(seconds, 1)).alias("seconds"),
        polars.lit(frozen, polars.Float64).round(5).alias("frozen"),
    )
    return table.select(*columns, *measurements, "seconds", "frozen", commit=polars.lit(commit()))


@cache
def commit() -> str:
    """Return the last commit that changed the library when this program first needed it."""
    command = ["git", "log", "-1", "--format=%h", "--abbrev=8", "--", "src"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("out", type=Path, help="folder for the runs")
    parser.add_argument("--search", action="store_true", help="play the hyperparameter searches")
    options = parser.parse_args(arguments)
    out = options.out
    make_folder(out)
    if options.search:
        search(out)
    else:
        for pair in pairs():
            load_or_play(out, *pair)
    tables = [polars.read_parquet(path) for path in sorted(out.glob("*.parquet"))]
    command = f"python tools/play_rl.py OUT{' --search' * options.search}"
    write_results(SEARCH if options.search else FILE, polars.concat(tables), {"command": command})


def load_or_play(out: Path, *pair: Any) -> polars.DataFrame:
    """Return a run from a folder; if the run is missing, play and save it first."""
    path = out / f"{quote(' '.join(map(str, pair)), safe='')}.parquet"
    if not path.exists():
        table = play(*pair)
        write_whole(path, parquet_bytes(table))
        print(*table.row(-1), flush=True)
    return polars.read_parquet(path)


if __name__ == "__main__":
    main()
