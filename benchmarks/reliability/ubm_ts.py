"""What each part of UBM-TS is worth in each ability, how much its constants matter, and how its regret grows with L and K.

    python benchmarks/reliability/ubm_ts.py

UBM-TS, with a part switched off or with a constant halved or doubled, plays two runs of the development tasks of version 2 of
the scorecard. On these tasks 0 is `Random` and 1 the lowest loss of the published agents in ``RIVALS``. What is played is kept
in ``UBM_TS_FOLDER`` (results/ubm-ts), so that the same command continues. It takes about two hours of one processor.

The second table has K items of attraction 0.2 among items of 0.05, in the cascade model and in a position-based model with
examination 1/k. There Thompson sampling that knows the click model has a regret in proportion to L - K.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import gymnasium as gym
import numpy as np
import polars
from polars import col

import clickgym
from clickgym.agents import UBMTS, ubm_ts
from clickgym.core.formats import markdown_table
from clickgym_lab.bench.anchors import Anchor
from clickgym_lab.bench.play import play, suited
from clickgym_lab.bench.protocol import DEVELOPMENT

FOLDER = Path(os.environ.get("UBM_TS_FOLDER", "results/ubm-ts"))
ABILITIES = [name for name in DEVELOPMENT.abilities if name not in ("contextual", "memory")]
RIVALS = ("Random", "CascadeKLUCB", "CascadeTS", "GLRCascadeKLUCB", "TopRank", "GRAB", "PBMHB", "BCMPTS")
PARTS = {
    "UBM-TS": "UBMTS",
    "without examination": "UBMTS:learn_examination=false",
    "without continuation": "UBMTS:learn_continuation=false",
    "without arrangement": "UBMTS:arrange=false",
    "without detection of change": "UBMTS:detect=false",
    "with the guard": "UBMTS:safe=true",
    "sharpness 1": "UBMTS:sharpness=1",
    "sharpness 4": "UBMTS:sharpness=4",
}
CONSTANTS = (
    "GROWTH", "CATCH_UP", "PRIOR_CLICKS", "FIRST_CHANGE", "FALLEN", "ALARM", "FEW", "SURE_EXCESS", "SURE_GAIN", "RESERVE",
    "CERTAIN",
)  # fmt: skip
GUARDS = "CERTAIN"
"""It matters to the guard alone."""
RUNS = 2

SIZES = ((16, 4), (32, 4), (64, 4), (128, 4), (256, 4), (64, 2), (64, 8), (64, 16))
INFORMED = {"CM": "CascadeTS", "PBM": "BCMPTS"}
"""Thompson sampling made for the model; in the PBM it is given the examination probabilities."""
SESSIONS, GROWTH_RUNS = 100_000, 8


def losses(label: str, agent: str) -> polars.DataFrame:
    """The mean loss of an agent in each task."""
    file = FOLDER / f"{re.sub(r'[^A-Za-z0-9.]+', '-', label)}.parquet"
    if not file.exists():
        tasks = suited(agent, [task for task in DEVELOPMENT.candidates if task.ability in ABILITIES])
        with tempfile.TemporaryDirectory() as folder:
            played = play(DEVELOPMENT, label, agent, tasks, RUNS, Path(folder), seed=0, n_jobs=1)
        file.parent.mkdir(parents=True, exist_ok=True)
        ends = played.filter(col("step") == col("horizon"))
        ends.group_by("task", "ability").agg(col("loss").mean()).with_columns(agent=polars.lit(label)).write_parquet(file)
    return polars.read_parquet(file)


def with_constant(name: str, factor: float) -> polars.DataFrame:
    """The losses with a constant of the module changed, in a process that compiles its kernels anew."""
    label = f"{name} × {factor}"
    code = f"import ubm_ts; ubm_ts.change({name!r}, {factor})"
    with tempfile.TemporaryDirectory() as cache:
        own = {"NUMBA_CACHE_DIR": cache, "XDG_CACHE_HOME": cache, "PYTHONPATH": str(Path(__file__).parent)}
        subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | own)
    return losses(label, agent_with(name))


def agent_with(name: str) -> str:
    return PARTS["with the guard" if name == GUARDS else "UBM-TS"]


def change(name: str, factor: float) -> None:
    """Play with a constant changed before the kernels are compiled."""
    constant = getattr(ubm_ts, name)
    setattr(ubm_ts, name, type(constant)(factor * constant))
    losses(f"{name} × {factor}", agent_with(name))


def scores(rows: polars.DataFrame) -> polars.DataFrame:
    """The score of each agent in each task that tells anything."""
    tasks = {task.name: task for task in DEVELOPMENT.candidates}
    random = dict(rows.filter(agent="Random").select("task", "loss").iter_rows())
    best = dict(rows.filter(col("agent").is_in(RIVALS)).group_by("task").agg(col("loss").min()).iter_rows())
    anchors = {
        task: Anchor(random[task], best[task], "", tasks[task].horizon, tasks[task].allowance)
        for task in random
        if task in best
    }
    kept = [task for task, anchor in anchors.items() if anchor.kept]
    found = [
        {"agent": agent, "ability": ability, "score": float(anchors[task].score(loss))}
        for agent, ability, task, loss in rows.filter(col("task").is_in(kept))
        .select("agent", "ability", "task", "loss")
        .iter_rows()
    ]
    return polars.DataFrame(found).group_by("agent", "ability").agg(col("score").mean())


def growth() -> list[list[str]]:
    """The regret of UBM-TS, and of an agent that knows the click model, by numbers of items and positions."""
    rows = [["L", "K", *(f"{agent} in the {model}" for model, known in INFORMED.items() for agent in ("UBM-TS", known))]]
    for n_items, n_positions in SIZES:
        attraction = [0.2] * n_positions + [0.05] * (n_items - n_positions)
        row = [str(n_items), str(n_positions)]
        for model, known in INFORMED.items():
            examination = {"examination": 1 / np.arange(1, n_positions + 1)} if model == "PBM" else {"n_positions": n_positions}
            env = gym.make(f"{model}Rank-v0", attraction=attraction, **examination)
            played = clickgym.sweep({model: env.spec}, ["UBMTS", known], SESSIONS, GROWTH_RUNS, progress=False)
            regret = dict(played.table().select("agent", "regret").iter_rows())
            row += [f"{regret[agent]:,.0f}" for agent in ("UBMTS", known)]
        rows.append(row)
    return rows


def main() -> None:
    tables = [losses(name, name) for name in RIVALS] + [losses(label, agent) for label, agent in PARTS.items()]
    constants = [(f"{name} × {factor}", with_constant(name, factor)) for name in CONSTANTS for factor in (0.5, 2.0)]
    table = scores(polars.concat([*tables, *(rows for _, rows in constants)]))
    value = {(agent, ability): score for agent, ability, score in table.iter_rows()}

    def row(agent: str) -> list[str]:
        own = [value[agent, ability] for ability in ABILITIES]
        return [agent, f"{sum(own) / len(own):.3f}", *(f"{each:.2f}" for each in own)]

    header = ["", "mean", *(ability.replace("_", " ") for ability in ABILITIES)]
    shown = [*(name for name in RIVALS if name != "Random"), *PARTS, *(label for label, _ in constants)]
    print(f"{UBMTS.__name__}, development tasks of version {DEVELOPMENT.version}, {RUNS} runs\n")
    print("\n".join(markdown_table([header, *map(row, shown)])))
    print(f"\nRegret after {SESSIONS:,} sessions, mean of {GROWTH_RUNS} runs\n")
    print("\n".join(markdown_table(growth())))


if __name__ == "__main__":
    main()
