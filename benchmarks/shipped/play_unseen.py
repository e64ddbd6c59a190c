"""Train the policies of docs/unseen_queries.md, play them and their rivals on queries that no
policy has seen, and write docs/unseen_queries.parquet.

nice -n 19 python benchmarks/shipped/play_unseen.py OUT

Each trained policy and each played part is a file in the folder OUT, so the same command resumes.
``make pages`` then makes the tables and the figure of the page.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import polars
import torch
from hand import Greedy, Sampling, told
from stable_baselines3 import PPO

import clickgym
from clickgym.bench.results import write_results
from clickgym.bench.unseen import Cell as BoardCell
from clickgym.core.files import make_folder, parquet, write_whole
from clickgym.envs import ClickVectorEnv, EpisodeCountsVector, QueryUsers

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "examples"))
import learned_posterior as supervised  # noqa: E402
import unseen_queries as example  # noqa: E402

FILE = ROOT / "docs" / "unseen_queries.parquet"
PBM, OTHERS = example.ENV, ("QueriesCMRank-v0", "QueriesDBNRank-v0")
PBM_ONLY = ("told", "hand, greedy", "hand, sampling", "BCMPTS", "PBMTS")
"""Those that must be told an examination, which other users do not have."""
EPISODES = {"test": 3, "real": 40}
"""Episodes of each query."""
SEEDS, SIZES = (0, 1, 2), (1000, 100, 10, 1)
"""Seeds of the training, and numbers of training queries."""
ROUNDS = {1000: 32, 100: 60}
SESSIONS = {1000: 3_200_000, 100: 3_200_000}
"""Of the training, by horizon: each takes less than two minutes on one core."""
BANDITS = {
    **{name: name for name in ("Random", "CascadeKLUCB", "CascadeTS", "BCMPTS", "PBMTS", "PBMHB")},
    "MixTS": "MixTS",
    "hand, greedy": Greedy,
    "hand, sampling": Sampling,
    "told": told,
}
"""What is played of each name; the last one returns an agent for a query."""
TRAINED = ("network", "PPO")


class Cell(NamedTuple):
    """A player in an environment: a bandit, a rule, or a policy with its training."""

    env: str
    split: str
    horizon: int
    agent: str
    seed: int  # of the training
    n_queries: int  # of the training; 0 without

    @property
    def name(self) -> str:
        return "-".join(map(str, self)).replace(":", ".")


def cells() -> Iterator[Cell]:
    """Yield what is played; what the page needs most comes first."""
    trained = [(agent, seed, 1000) for seed in SEEDS for agent in TRAINED]
    players = [*trained, *((agent, 0, 0) for agent in BANDITS)]
    for env, horizon in [*product((PBM,), ROUNDS), *product(OTHERS, ROUNDS)]:
        for (agent, seed, size), split in product(players, EPISODES):
            if env == PBM or agent not in PBM_ONLY:
                yield Cell(env, split, horizon, agent, seed, size)
    for size, seed, split in product(SIZES[1:], SEEDS, EPISODES):
        yield Cell(PBM, split, 1000, "network", seed, size)


# ---------------------------------------------------------------------------------- training, plays


@cache
def queries(split: str, horizon: int) -> Any:
    """Return the users of a split."""
    envs: Any = example.make_envs(split, horizon, 1).unwrapped
    return envs.model


def train(out: Path, agent: str, horizon: int, seed: int, n_queries: int) -> Any:
    """Return a trained policy, from its file if that is there."""
    users = queries("train", horizon).models
    first = seed * n_queries % len(users)  # another seed trains on other queries
    users = users[first : first + n_queries]
    path = out / f"{agent}-{horizon}-{seed}-{n_queries}.{'pt' if agent == 'network' else 'zip'}"
    start = time.process_time()
    if agent == "network":
        if not path.exists():
            net = supervised.train(users, horizon, ROUNDS[horizon], seed)
            supervised.choose(net, horizon).save(path)
            print(path.stem, f"{time.process_time() - start:.0f} s", flush=True)
        return supervised.LearnedPosterior.load(path)
    if not path.exists():
        core = ClickVectorEnv(
            QueryUsers(users, horizon), max(64, 40_000 // horizon), autoreset_mode="SameStep"
        )
        example.train(EpisodeCountsVector(core), SESSIONS[horizon], seed).save(path)
        print(path.stem, f"{time.process_time() - start:.0f} s", flush=True)
    model = PPO.load(path, device="cpu")
    return lambda observation: model.predict(observation)[0]


def play(cell: Cell, out: Path) -> polars.DataFrame:
    """Return the regret of each query, a mean over its episodes, and the curve of their mean."""
    n_queries = queries(cell.split, cell.horizon).n_queries
    runs = EPISODES[cell.split] * n_queries
    instance = f"queries:split={cell.split},n_sessions={cell.horizon}"
    steps = np.unique(np.geomspace(1, cell.horizon, 25).astype(int))
    start = time.process_time()
    if cell.agent in BANDITS:
        env = gym.make(cell.env, instance=instance)
        noise = 0.5 if cell.horizon > 100 else 0.0
        as_on_board = BoardCell("", instance, cell.horizon, runs, noise)
        curves = []
        for seed in range(runs):
            if cell.agent == "told":
                agent = told(env, seed % n_queries, as_on_board, seed)
            else:
                agent = clickgym.make_agent(
                    BANDITS[cell.agent], env, horizon=cell.horizon, seed=seed
                )
            result = clickgym.run(agent, env, cell.horizon, seed=seed, checkpoints=steps)
            curves.append(result.regret)
        regret = np.array(curves)
    else:
        envs = example.make_envs(cell.split, cell.horizon, runs, cell.env)
        policy = train(out, cell.agent, cell.horizon, cell.seed, cell.n_queries)
        regret = example.play(policy, envs).cumsum(axis=0)[steps - 1].T
    by_query = regret.reshape(-1, n_queries, len(steps)).mean(axis=0)
    print(cell.name, f"{by_query[:, -1].mean():.2f}", f"{time.process_time() - start:.0f} s")
    rows = [(query, cell.horizon, value) for query, value in enumerate(by_query[:, -1].tolist())]
    rows += [(None, *row) for row in zip(steps.tolist(), by_query.mean(axis=0), strict=True)]
    table = polars.DataFrame(rows, {"query": int, "step": int, "regret": float}, orient="row")
    about = (polars.lit(value).alias(name) for name, value in cell._asdict().items())
    return table.with_columns(polars.col("regret").round(2), *about)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("out", type=Path, help="folder of the trained policies and the parts")
    parser.add_argument("--write", action="store_true", help="write what is finished, play nothing")
    parser.add_argument("--only", default="", help="play only names with this pattern")
    parser.add_argument("--minutes", type=float, default=1e9, help="of processor time, then stop")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    make_folder(options.out)
    for cell in () if options.write else cells():
        path = options.out / f"{cell.name}.parquet"
        if (
            re.search(options.only, cell.name)
            and not path.exists()
            and time.process_time() < 60 * options.minutes
        ):
            write_whole(path, parquet(play(cell, options.out)))
    write(options.out)


def write(out: Path) -> None:
    """Write all finished parts of a folder to the file that ships."""
    command = ["git", "log", "-1", "--format=%h", "--abbrev=8", "--", "agents", "envs", "src"]
    commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    tables = [polars.read_parquet(path) for path in sorted(out.glob("*.parquet"))]
    made = {"commit": commit, "command": "python benchmarks/shipped/play_unseen.py OUT"}
    write_results(FILE, polars.concat(tables), made)


if __name__ == "__main__":
    main()
