"""Li and de Rijke 2019, cascading bandits where users change: figure 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .plots import bands, finish, grid
from .reader import read_studies
from .study import LAST, Curves, Evidence, Finding, Study, estimate, every

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["STUDIES"]

CHANGING = "NonStationaryCMRank-v0"
ADAPTIVE, STUBBORN = ("CascadeDUCB", "CascadeSWUCB"), ("RankedExp3", LAST, "BatchRank")


def switching(queries: Sequence[str], changes: str = "") -> list[str]:
    """The paper's changes of each query, or others."""
    return [f"li2019-switching:query={query},{changes}seed={seed}" for seed, query in enumerate(queries)]


def converges_again(curves: Curves, agent: str) -> Finding:
    """Whether regret per session falls to a half within the epochs."""
    values = curves.units(CHANGING, agent)
    # Over the nine epochs after a change, the first and the last fifth of each.
    first = np.mean([curves.rate(values, e / 10, e / 10 + 0.02) for e in range(1, 10)], axis=0)
    last = np.mean([curves.rate(values, e / 10 + 0.08, e / 10 + 0.1) for e in range(1, 10)], axis=0)
    return Finding(f"{estimate(first)} per session, then {estimate(last)}", estimate(last - 0.5 * first).below(0.0))


def four_times(curves: Curves) -> Finding:
    """Whether CascadeKL-UCB has several times as much regret after eight changes."""
    values = curves.units(CHANGING, LAST)
    first, later = (curves.rate(values, start, start + 0.1) * curves.horizon / 10 for start in (0.0, 0.8))
    ratio = later.mean() / first.mean()
    verdict = every([estimate(later - 2 * first).above(0.0), estimate(later - 8 * first).below(0.0)])
    return Finding(f"{estimate(first)}, then {estimate(later)}: {ratio:.1f} times", verdict)


def draw(evidence: Evidence) -> Figure:
    """Regret of all agents, with the epochs shaded."""
    curves = evidence["nonstat-fig1"]
    figure, panels = grid(1)
    bands(panels[0], curves, CHANGING, (*ADAPTIVE, *STUBBORN))
    for start in range(10_000, curves.horizon, 20_000):
        panels[0].axvspan(start, start + 10_000, color="0.93", zorder=0)
    panels[0].set(
        xlabel="session (grey: three other items attract with 0.9)", ylabel="cumulative regret", xlim=(0, curves.horizon)
    )
    return finish(figure, panels, evidence, "Regret where the users change")


STUDIES: dict[str, Study] = read_studies(__file__, globals())
