"""Panels, curves with bands, and the looks of agents: what the figures of the studies share."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from clickgym.runner.reports.figures import COLOURS, line_styles

from .claims import Curves, Results, Values, estimate

BLUE, ORANGE, GREEN, PURPLE, YELLOW, BLACK, SKY, GREY = COLOURS
BOUND: dict[str, Any] = {"color": BLACK, "linewidth": 1.2, "linestyle": ":"}
"""The look of lower bounds, thresholds and exact values."""
OTHER_NAMES = {"PBM-UCB": "PBMUCB", "Shuffled": "Random"}
"""Agents of the studies that are a published one on a catalogue, and random lists."""


def grid(
    columns: int, rows: int = 1, width: float = 2.5, height: float = 2.6, labels: Sequence[str] = ()
) -> tuple[Figure, list[Axes]]:
    """A figure and its panels, row by row, sizes in inches; ``labels`` of the y axes of rows."""
    size = (max(width * columns, 6.5), height * rows + 0.6)
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
    """The look of a curve as arguments of matplotlib, that of the runner's figures."""
    figure: Any = axes.get_figure()
    looks = figure.__dict__.setdefault("looks", {})
    if label not in looks:
        name = OTHER_NAMES.get(label, label)
        looks[label] = line_styles([*looks, name])[name]
    return dict(looks[label])


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


def points(axes: Axes, places: Sequence[float], samples: Iterable[Values], agent: str) -> None:
    """The means of samples as points on a line, with their 95 % intervals."""
    mean, half = _intervals(samples)
    style = {"marker": "o", "markersize": 3, "linewidth": 1.5, **style_of(agent, axes)}
    axes.errorbar(places, mean, half, label=agent, **style)


def finish(
    figure: Figure,
    panels: Iterable[Axes],
    results: Results,
    title: str,
    intervals: str = "bands: 95 % intervals of the mean",
) -> Figure:
    """Add the legend of some panels, the title, and what was averaged."""
    add_legend(figure, panels)
    sizes = []
    for curves in results.values():
        instances = f"{len(curves.instances)} instances × " if len(curves.instances) > 1 else ""
        sizes.append(f"{instances}{curves.n_runs} run{'s' if curves.n_runs > 1 else ''}")
    averaged = f"({', '.join(dict.fromkeys(sizes))}; {intervals})"
    lines = textwrap.wrap(averaged, width=int(11 * figure.get_figwidth()))
    figure.suptitle("\n".join([title, *lines]), fontsize=10)
    return figure


def add_legend(figure: Figure, panels: Iterable[Axes]) -> None:
    """Add the legend of some panels below all, in as many columns as fit: beside them it would take
    their room.
    """
    for axes in figure.axes:
        axes.title.set_fontsize(10)
    handles: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    width, height = figure.get_size_inches()
    columns = max(int(width / (0.6 + 0.066 * max(map(len, handles)))), 1)
    figure.set_size_inches(width, height + 0.2 * math.ceil(len(handles) / columns))
    place: dict[str, Any] = {"loc": "outside lower left", "frameon": False, "fontsize": 9}
    figure.legend(list(handles.values()), list(handles), ncols=columns, **place)


def _intervals(samples: Iterable[Values]) -> tuple[Values, Values]:
    estimates = [estimate(values) for values in samples]
    return (
        np.array([estimate.mean for estimate in estimates]),
        np.array([estimate.half for estimate in estimates]),
    )
