"""What the figures of the studies share: how agents look, panels, curves with bands, legend and title."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.colours import COLOURS
from .study import FIRST, LAST, Evidence, Values, estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS_OF_USERS", "LOOKS", "band", "finish", "grid"]

BLUE, ORANGE, GREEN, PURPLE, YELLOW, BLACK, SKY, GREY = COLOURS
LOOKS: dict[str, tuple[str, Any]] = {
    LAST: (ORANGE, "-"),
    FIRST: (ORANGE, (0, (4, 1.5))),
    "BatchRank": (BLUE, "-"),
    "MergeRank": (BLUE, (0, (4, 1.5))),
    "RankedExp3": (GREY, "-"),
    "TopRank": (GREEN, "-"),
    "BubbleRank": (PURPLE, "-"),
    "Fixed": (BLACK, (0, (1, 1.2))),
    "CascadeDUCB": (GREEN, "-"),
    "CascadeSWUCB": (PURPLE, "-"),
    "PBMPIE": (BLUE, "-"),
    "PBMTS": (GREEN, "-"),
    "BCMPTS": (SKY, "-"),
    "PBMUCB": (PURPLE, "-"),
    "RankedKLUCB": (GREY, "-"),
    "CascadeUCB1": (ORANGE, "-"),
    "CascadeUCB1:feedback=first_click": (ORANGE, (0, (4, 1.5))),
    "UBMLinUCB": (BLUE, "-"),
    "C2UCB": (GREY, "-"),
    "CMLinUCB": (ORANGE, "-"),
    "LinearTS": (GREEN, "-"),
    "PDGD": (BLACK, "-"),
    "PDGD:learning_rate=3": (BLACK, (0, (4, 1.5))),
    "DCMLinUCB": (GREEN, "-"),
    "PBMLinUCB": (PURPLE, "-"),
    "Random": (YELLOW, (0, (1, 1.2))),
    "PerState": (ORANGE, (0, (4, 1.5))),
    "CascadeVI": (BLACK, "-"),
    "PPO": (BLUE, "-"),
    "DQN": (GREEN, "-"),
    "MaskablePPO": (SKY, "-"),
    "RecurrentPPO": (PURPLE, "-"),
    "UniRank": (YELLOW, "-"),
    "GRAB": (SKY, "-"),
    "SGRAB": (SKY, (0, (4, 1.5))),
    "PBMHB": (BLACK, "-"),
    "GLRCascadeUCB": (BLUE, (0, (4, 1.5))),
    "GLRCascadeKLUCB": (BLUE, "-"),
    "GLRCascadeKLUCB:n_segments=10": (SKY, "-"),
    f"{LAST}:c=0": (YELLOW, "-"),
    "TopRank:delta=2e-07": (GREEN, "-"),
    "BubbleRank:delta=1.6e-27": (PURPLE, "-"),
    "RankedExp3:gamma=0.003": (SKY, "-"),
    "RankedExp3:gamma=0.01": (BLUE, "-"),
    "RankedExp3:gamma=0.03": (PURPLE, "-"),
}
"""An agent looks the same in all figures; two readings of the same algorithm share a colour."""

COLOURS_OF_USERS = ((BLACK, "-"), (BLUE, "-"), (GREEN, "-"), (ORANGE, "-"), (PURPLE, "-"))
"""For curves of one comparison on several kinds of users."""


def grid(columns: int, rows: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure and its panels, row by row."""
    from matplotlib.figure import Figure  # slow to load

    figure = Figure(figsize=(max(3.3 * columns + 2.2, 6.5), 2.9 * rows + 0.6), layout="constrained")
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in panels:
        axes.grid(color="0.9", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    return figure, panels


def band(axes: Axes, steps: NDArray[np.int64], values: Values, label: str, look: tuple[str, Any] | None = None) -> None:
    """The mean of ``(units, steps)`` values with its interval."""
    colour, dashes = LOOKS[label] if look is None else look
    axes.plot(steps, values.mean(axis=0), color=colour, linestyle=dashes, linewidth=1.5, label=label)
    if len(values) > 1:
        mean, half = np.transpose([estimate(column) for column in values.T])
        axes.fill_between(steps, np.maximum(mean - half, 0), mean + half, color=colour, alpha=0.15, linewidth=0)


def finish(figure: Figure, panels: Iterable[Axes], evidence: Evidence, title: str) -> Figure:
    """Legend, title, and what was averaged."""
    handles, labels = next(iter(panels)).get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=8)
    sizes = []
    for curves in evidence.values():
        several = f"{len(curves.instances)} instances × " if len(curves.instances) > 1 else ""
        sizes.append(f"{several}{curves.n_runs} runs")
    figure.suptitle(f"{title}\n({', '.join(dict.fromkeys(sizes))}; bands: 95 % intervals of the mean)", fontsize=10)
    return figure
