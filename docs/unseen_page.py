"""The tables and the figure of docs/unseen_queries.md, made from docs/unseen_queries.parquet."""

from __future__ import annotations

import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from polars import col

from clickgym.bench.results import read_results
from clickgym.runner.reports.figures import COLOURS, write_figure

DOCS = Path(__file__).resolve().parent
sys.path.append(str(DOCS.parent / "examples" / "papers"))
from figures import grid, style_of  # noqa: E402
from study import Estimate, estimate  # noqa: E402

FILE, FIGURE = DOCS / "unseen_queries.parquet", DOCS / "unseen_queries.png"
PBM = "QueriesPBMRank-v0"
TRAINED = ("network", "PPO")
DRAWN = ("CascadeKLUCB", "BCMPTS", "MixTS", "PPO", "network", "told")
OWN_LOOKS: dict[str, dict[str, Any]] = {
    "network": {"color": COLOURS[3], "linestyle": "-", "linewidth": 2.6},
    "told": {"color": COLOURS[7], "linestyle": ":", "linewidth": 1.7},
}
SPLITS = ("test", "real")
Rows = list[list[str]]


def lost(agent: str, split: str, horizon: int = 1000, env: str = PBM) -> NDArray[np.float64]:
    """Return ``(seeds, Q)`` clicks lost in an episode, a mean over the episodes of each query; a
    row for each training; without rows if it was not measured.
    """
    size = 1000 if agent in TRAINED else 0
    frame, _ = read_results(FILE)
    frame = frame.filter(
        col("query").is_not_null(), env=env, split=split, horizon=horizon, agent=agent
    ).filter(n_queries=size)
    by_seed = frame.sort("seed", "query").partition_by("seed", maintain_order=True)
    return np.array([part["regret"].to_numpy() for part in by_seed])


def mean(values: NDArray[np.float64]) -> str:
    """The mean over queries with its 95 % interval, of the mean over trainings."""
    return _shown(estimate(values.mean(axis=0))) if len(values) else "not measured"


def _shown(found: Estimate) -> str:
    digits = 1 if abs(found.mean) < 100 else 0
    return f"{found.mean:.{digits}f} ± {found.half:.{digits}f}"


def main_table() -> Rows:
    """Return the clicks lost by everyone, the lowest on real queries first."""
    frame, _ = read_results(FILE)
    names = frame.filter(env=PBM, horizon=1000)["agent"].unique()
    order = {name: lost(name, "real").mean() for name in names}
    rows = [["who", *(f"{split}, {t:,} sessions" for t in (1000, 100) for split in SPLITS)]]
    for name in sorted(order, key=lambda name: (name == "Random", order[name])):
        cells = [mean(lost(name, split, t)) for t in (1000, 100) for split in SPLITS]
        rows.append([f"`{name}`" if name[0].isupper() else name, *cells])
    return rows


def others_table() -> Rows:
    """Return the clicks lost with other users than those of the training."""
    envs = {"CM": "QueriesCMRank-v0", "DBN": "QueriesDBNRank-v0"}
    rows = [["who", *(f"{name}, {split}" for name in envs for split in SPLITS)]]
    for agent in ("network", "CascadeTS", "MixTS", "PPO", "CascadeKLUCB", "Random"):
        cells = [mean(lost(agent, split, env=env)) for env in envs.values() for split in SPLITS]
        rows.append([f"`{agent}`" if agent[0].isupper() else agent, *cells])
    return rows


def tables() -> dict[str, Rows]:
    """Return the tables of the page by the names of their marks."""
    return {
        "lost": main_table(),
        "others": others_table(),
    }


def figure() -> Figure:
    """Draw the clicks lost so far in an episode of 1,000 sessions."""
    frame, _ = read_results(FILE)
    curves = frame.filter(col("query").is_null(), env=PBM, horizon=1000)
    drawn, panels = grid(2, label="clicks lost so far", width=4.2, height=3.4)
    for axes, split in zip(panels, SPLITS, strict=True):
        for agent in DRAWN:
            size = 1000 if agent in TRAINED else 0
            part = curves.filter(split=split, agent=agent, n_queries=size)
            steps, regret = part.group_by("step").agg(col("regret").mean()).sort("step")
            look = OWN_LOOKS.get(agent) or {"linewidth": 1.7, **style_of(agent)}
            axes.plot(steps, regret, label=agent, **look)
        axes.set(xlabel="sessions of the episode", title=f"{split} queries", xlim=(0, 1000))
        axes.set_ylim(bottom=0)
    panels[0].legend(frameon=False)
    return drawn


def write_picture() -> None:
    """Write the figure, with its runs in the metadata."""
    write_figure(figure(), FIGURE, about())


def about() -> str:
    """Return what made the runs, and a digest of their file: the metadata of the figure."""
    return f"{origin()}; {FILE.name} {sha256(FILE.read_bytes()).hexdigest()}"


def origin() -> str:
    """Return what made the runs."""
    made = read_results(FILE)[1]
    return f"{made['command']} (commit {made['commit']})"
