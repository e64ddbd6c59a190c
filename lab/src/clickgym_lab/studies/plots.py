"""Panels, curves with bands, and the looks of agents: what the figures of the studies share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from clickgym.runner.colours import COLOURS

from .claims import Curves, Results, Values, estimate

BLUE, ORANGE, GREEN, PURPLE, YELLOW, BLACK, SKY, GREY = COLOURS
SOLID, DASHED, DOTTED, MIXED = "-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5))
_LABELS = {
    (ORANGE, SOLID): "CascadeKLUCB CascadeUCB1 CMLinUCB",
    (ORANGE, DASHED): "CascadeKLUCB:feedback=first_click CascadeUCB1:feedback=first_click",
    (BLUE, SOLID): "BatchRank PBMPIE UBMLinUCB GLRCascadeKLUCB",
    (BLUE, DASHED): "PPO",
    (GREY, SOLID): "RankedExp3 RankedKLUCB C2UCB",
    (GREEN, SOLID): "TopRank CascadeDUCB PBMTS LinearTS DCMLinUCB DQN TopRank:delta=2e-07",
    (PURPLE, SOLID): "BubbleRank CascadeSWUCB PBMUCB PBMLinUCB RecurrentPPO",
    (BLACK, DOTTED): "Fixed",
    (SKY, SOLID): "BCMPTS MaskablePPO GRAB PBM-UCB",
    (BLACK, SOLID): "PDGD CascadeVI PBMHB",
    (BLACK, DASHED): "SAC",
    (SKY, DASHED): "TD3",
    (YELLOW, DOTTED): "Random Shuffled",
    (YELLOW, SOLID): "UniRank CascadeKLUCB:c=0 SAC",
    (SKY, MIXED): "CascadeTS",
    (GREY, DASHED): "EpsilonGreedy",
    (ORANGE, DOTTED): "DCMKLUCB A2C",
}
BOUND: dict[str, Any] = {"color": BLACK, "linewidth": 1.2, "linestyle": ":"}
"""The look of lower bounds and of exact values."""
LOOKS = {label: look for look, labels in _LABELS.items() for label in labels.split()}
"""A colour and dashes of the papers' agents; two readings of one algorithm share a colour."""


def grid(
    columns: int, rows: int = 1, width: float = 3.3, height: float = 2.9, labels: Sequence[str] = ()
) -> tuple[Figure, list[Axes]]:
    """A figure and its panels, row by row, sizes in inches; ``labels`` of the y axes of rows."""
    size = (max(width * columns + 2.2, 6.5), height * rows + 0.6)
    figure = Figure(figsize=size, layout="constrained")
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in panels:
        axes.grid(color="0.9", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    for axes, label in zip(panels[::columns], labels, strict=False):
        axes.set_ylabel(label)
    return figure, panels


def style_of(label: str, axes: Axes) -> dict[str, Any]:
    """The look of a curve as arguments of matplotlib: as `LOOKS` has it, or the first look that no
    other label has in the figure.
    """
    figure: Any = axes.get_figure()
    looks = figure.__dict__.setdefault("looks", {})
    if label not in looks:
        choices: list[Any] = [LOOKS[label]] if label in LOOKS else []
        choices += [(c, d) for d, c in product((MIXED, SOLID, DASHED, DOTTED), COLOURS)]
        looks[label] = next(look for look in choices if look not in looks.values())
    return dict(zip(("color", "linestyle"), looks[label], strict=True))


def band(
    axes: Axes, steps: NDArray[Any], values: Values, label: str, style: dict[str, Any] | None = None
) -> None:
    """The mean of ``(units, steps)`` values with its interval, as far as that is above 0."""
    style = style_of(label, axes) if style is None else style
    axes.plot(steps, values.mean(axis=0), linewidth=1.5, label=label, **style)
    if len(values) > 1:
        mean, half = _intervals(values.T)
        low = np.maximum(mean - half, 0.0)
        axes.fill_between(steps, low, mean + half, color=style["color"], alpha=0.15, linewidth=0)


def bands(
    axes: Axes,
    curves: Curves,
    env: str,
    agents: Iterable[str],
    column: str = "regret",
    first: float = 0,
) -> None:
    """The cumulative curves of several agents from a step on."""
    late = curves.steps >= first
    for agent in agents:
        band(axes, curves.steps[late], curves.by_run(env, agent, column)[:, late], agent)


def points(
    axes: Axes,
    places: Sequence[float],
    samples: Iterable[Values],
    agent: str,
    label: str | None = None,
) -> None:
    """The means of samples as points on a line, with their 95 % intervals."""
    mean, half = _intervals(samples)
    style = {"marker": "o", "markersize": 3, "linewidth": 1.5, **style_of(agent, axes)}
    axes.errorbar(places, mean, half, label=agent if label is None else label, **style)


def finish(
    figure: Figure,
    panels: Iterable[Axes],
    results: Results,
    title: str,
    intervals: str = "bands: 95 % intervals of the mean",
) -> Figure:
    """Add the legend of some panels, the title, and what was averaged."""
    handles: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    place: dict[str, Any] = {"loc": "outside right center", "frameon": False, "fontsize": 8}
    figure.legend(list(handles.values()), list(handles), **place)
    sizes = []
    for curves in results.values():
        instances = f"{len(curves.instances)} instances × " if len(curves.instances) > 1 else ""
        sizes.append(f"{instances}{curves.n_runs} run{'s' if curves.n_runs > 1 else ''}")
    figure.suptitle(f"{title}\n({', '.join(dict.fromkeys(sizes))}; {intervals})", fontsize=10)
    return figure


def _intervals(samples: Iterable[Values]) -> tuple[Values, Values]:
    estimates = [estimate(values) for values in samples]
    return (
        np.array([estimate.mean for estimate in estimates]),
        np.array([estimate.half for estimate in estimates]),
    )
