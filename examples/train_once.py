"""Does it pay to train a policy before, on a family of queries, and to play it frozen on queries that it has not seen?

Each policy is trained once on a family, and plays all queries: real ones, and some of each family. Beside them stand bandit
algorithms and PPO that learns online, all from nothing. Percentages are of the regret of random lists on the same query:
the mean over queries with its 95 % interval.

    python examples/train_once.py --queries 6 --runs 2
"""

from __future__ import annotations

import argparse
from functools import partial

import gymnasium as gym
import polars
from scipy import stats

import clickgym
from clickgym.agents import Learner

ONCE = ["PPO:protocol=meta", "PPO:protocol=meta,family=uniform"]
ANEW = ["Random", "EpsilonGreedy", "TopRank", "CascadeKLUCB", "PBMHB", "PPO:actions=codes"]
STEPS = [100, 1_000, 10_000]
REAL = ("yandex-986-3", "yandex-990", "yandex-9910", "yandex-99761", "yandex-9", "yandex-9941", "yandex-99954", "yandex-98721")


def instances(n: int) -> dict[str, list[str]]:
    """Queries by their kind; seeds of training are drawn from 2³² on."""
    return {
        "real queries": list(REAL[:n]),
        "yandex-like": [f"yandex-like:seed={seed}" for seed in range(n)],
        "uniform": [f"uniform:seed={seed}" for seed in range(10, 10 + n)],
    }


def play(env: str, queries: dict[str, list[str]], runs: int, horizon: int, train_sessions: int) -> polars.DataFrame:
    """The regret of each agent on each query in each run."""
    steps = [step for step in STEPS if step <= horizon]
    make = partial(clickgym.make_agent, env=gym.make(env), horizon=horizon)
    rows = []
    for seed in range(runs):
        trained = {spec: make(spec, seed=seed, train_sessions=train_sessions) for spec in ONCE}
        for kind, names in queries.items():
            for name in names:
                # A learner that was trained goes on frozen; the others are made anew for each query.
                agents = trained | {spec: make(spec, seed=seed) for spec in ANEW}
                for spec, agent in agents.items():
                    result = clickgym.run(agent, gym.make(env, instance=name), horizon, seed=seed, checkpoints=steps)
                    if isinstance(agent, Learner) and result.training_sessions:
                        print(f"{spec}: {result.training_sessions:,} sessions of training in {result.training_seconds:.0f} s")
                    rows += [(kind, name, spec, seed, *pair) for pair in zip(steps, result.regret, strict=True)]
    return polars.DataFrame(rows, ["kind", "query", "agent", "run", "step", "regret"], orient="row")


def table(results: polars.DataFrame) -> str:
    """Mean and interval over queries, by kind and step."""
    means = results.group_by("kind", "query", "agent", "step", maintain_order=True).agg(polars.col("regret").mean())
    random = means.filter(agent="Random").rename({"regret": "random"}).drop("agent")
    shares = means.join(random, on=["kind", "query", "step"]).with_columns(
        share=100 * polars.col("regret") / polars.col("random")
    )
    columns = shares.select("kind", "step").unique(maintain_order=True).rows()
    lines = [f"{'':<34}" + "".join(f"{kind if step == STEPS[0] else '':>14}" for kind, step in columns)]
    lines += [f"{'after … sessions':<34}" + "".join(f"{step:>14,}" for _, step in columns)]
    for agent in [*ANEW, *ONCE]:
        cells = []
        for kind, step in columns:
            values = shares.filter(kind=kind, step=step, agent=agent)["share"].to_numpy()
            half = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
            cells.append(f"{f'{values.mean():.0f} ± {half:.0f} %':>14}")
        lines.append(f"{agent:<34}{''.join(cells)}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="PBMRank-v0", help="of 10 items and 5 positions (default: PBMRank-v0)")
    parser.add_argument("--horizon", type=float, default=1e4, help="sessions of a run (default: 1e4)")
    parser.add_argument("--train-sessions", type=float, default=4e5, help="sessions of training before (default: 4e5)")
    parser.add_argument("--queries", type=int, default=6, help="of each kind, 2 to 8 (default: 6)")
    parser.add_argument("--runs", type=int, default=2, help="policies, and runs of each agent (default: 2)")
    chosen = parser.parse_args()
    queries = instances(chosen.queries)
    print(table(play(chosen.env, queries, chosen.runs, int(chosen.horizon), int(chosen.train_sessions))))


if __name__ == "__main__":
    main()
