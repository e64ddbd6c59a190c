"""What each part of UBM-TS is worth in each ability, and how much its constants matter.

    python benchmarks/reliability/ubm_ts.py

UBM-TS, with a part switched off or with a constant halved or doubled, plays two runs of the development tasks of version 2 of
the scorecard. On these tasks 0 is `Random` and 1 the lowest loss of the published agents in ``RIVALS``. What is played is kept
in ``UBM_TS_FOLDER`` (results/ubm-ts), so that the same command continues. It takes about an hour and a half of one processor.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import polars
from polars import col

from clickgym.agents import UBMTS, ubm_ts
from clickgym.core.formats import markdown_table
from clickgym.lab.bench.anchors import Anchor
from clickgym.lab.bench.play import play, suited
from clickgym.lab.bench.protocol import DEVELOPMENT

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
CONSTANTS = ("GROWTH", "PRIOR_CLICKS", "FIRST_CHANGE", "FALLEN", "ALARM", "FEW", "SURE_EXCESS", "SURE_GAIN")
RUNS = 2


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
    return losses(label, "UBMTS")


def change(name: str, factor: float) -> None:
    """Play with a constant changed before the kernels are compiled."""
    setattr(ubm_ts, name, factor * getattr(ubm_ts, name))
    losses(f"{name} × {factor}", "UBMTS")


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


if __name__ == "__main__":
    main()
