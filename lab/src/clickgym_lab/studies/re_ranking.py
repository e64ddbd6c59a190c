"""What the studies of Li et al. 2019 (BubbleRank) share: re-ranking a production list of ten."""

from __future__ import annotations

from collections.abc import Sequence

from .claims import Results, short
from .plots import Figure, bands, finish, grid
from .study import Sweep

# Abandonment clicks in the DCM, as the paper has it.
ENVS = (
    "CMRank-v0:n_positions=10,cutoff=5",
    "DCMRank-v0:n_positions=10,cutoff=5,reward=satisfaction",
    "PBMRank-v0:n_positions=10,cutoff=5",
)
CM, DCM, PBM = ENVS
LAST = "CascadeKLUCB"
FIRST = "CascadeKLUCB:feedback=first_click"
READINGS = {LAST: "last_click", FIRST: "first_click"}
AGENTS = ("BubbleRank", LAST, FIRST, "BatchRank", "TopRank", "Fixed")
RE_RANKING = Sweep(
    "bubble",
    ENVS,
    AGENTS,
    horizon=5_000_000,
    runs=10,
    queries=100,
    metrics=["violations", "ndcg"],
    windows=100,
)
"""The runs of figures 1, 2 and 4."""
START = Sweep(
    "bubble-start",
    ENVS,
    (*AGENTS, "Random"),
    horizon=10_000,
    runs=10,
    queries=100,
    metrics=["violations", "ndcg"],
    ends=(0.01, 0.1, 1.0),
    scaled=False,
    told=RE_RANKING.horizon,
)
"""Their first 10,000 sessions, and lists in random order: the values of each query at 100, 1,000
and 10,000 sessions.
"""


def draw_curves(results: Results, column: str, agents: Sequence[str], title: str) -> Figure:
    """A cumulative column in each click model."""
    curves = results["bubble"]
    figure, panels = grid(3, labels=[f"cumulative {column}"])
    for axes, env in zip(panels, ENVS, strict=True):
        bands(axes, curves, env, agents, column, first=curves.horizon / 5000)
        axes.set(xscale="log", yscale="log", title=short(env), xlabel="session")
        axes.set_ylim(bottom=max(axes.get_ylim()[0], 0.1))
    return finish(figure, panels, results, title)
