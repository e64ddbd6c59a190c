"""Panels, bands and line styles, shared by the figures in this folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from study import Curves, estimate

from clickgym.runner.reports.figures import line_styles

BOUND = {"color": "black", "linewidth": 1.2, "linestyle": ":"}
"""The line style of lower bounds and thresholds."""


def grid(
    columns: int, rows: int = 1, label: str = "", width: float = 2.5, height: float = 2.6
) -> tuple[Figure, list[Any]]:
    """Return a figure and its panels, row by row. Sizes are in inches; ``label`` is the y label."""
    size = (max(width * columns, 6.5), height * rows + 1.0)
    figure = Figure(figsize=size, layout="constrained")
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in panels:
        axes.grid(color="0.9", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.ticklabel_format(axis="x", scilimits=(-3, 4), useMathText=True)
    for axes in panels[::columns]:
        axes.set_ylabel(label)
    return figure, panels


def style_of(axes: Any, agent: str) -> dict[str, Any]:
    """Return an agent's colour and line style, which are the same in all panels of a figure. Agents
    get their styles in the order in which they are drawn.
    """
    panels = axes.get_figure().axes
    drawn = [label for panel in panels for label in panel.get_legend_handles_labels()[1]]
    return dict(line_styles([*drawn, agent])[agent])


def band(axes: Any, steps: Any, values: np.ndarray, agent: str, **style: Any) -> None:
    """Draw the mean of values ``(units, steps)`` over units, with its 95 % band, cut off at 0."""
    style = style or style_of(axes, agent)
    found = [estimate(column) for column in values.T]
    mean = np.array([one.mean for one in found])
    axes.plot(steps, mean, linewidth=1.5, label=agent, **style)
    if len(values) > 1:
        half = np.array([one.half for one in found])
        low = np.maximum(mean - half, 0.0)
        axes.fill_between(steps, low, mean + half, color=style["color"], alpha=0.15, linewidth=0)


def rates(
    axes: Any, curves: Curves, env: str, agents: Sequence[str], steps: Any, column: str = "regret"
) -> None:
    """Draw a cumulative column as a rate per session between successive steps, for each agent."""
    ends = np.unique(np.searchsorted(curves.steps, np.round(steps)))
    lengths = np.diff(curves.steps[ends], prepend=0)
    for agent in agents:
        values = curves.by_run(env, agent, column)[:, ends]
        band(axes, curves.steps[ends], np.diff(values, prepend=0.0) / lengths, agent)


def points(axes: Any, places: Sequence[float], samples: Iterable[np.ndarray], agent: str) -> None:
    """Draw the means of samples as connected points, with 95 % intervals."""
    found = [estimate(values) for values in samples]
    mean, half = [one.mean for one in found], [one.half for one in found]
    style = {"marker": "o", "markersize": 3, "linewidth": 1.5, **style_of(axes, agent)}
    axes.errorbar(places, mean, half, label=agent, **style)


def finish(figure: Figure, title: str) -> Figure:
    """Add the title, and a single legend for all panels below them."""
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    columns = int(figure.get_figwidth() / (0.6 + 0.066 * max(map(len, handles)))) or 1
    place: dict[str, Any] = {"loc": "outside lower left", "frameon": False, "fontsize": 9}
    figure.legend(list(handles.values()), list(handles), ncols=columns, **place)
    figure.suptitle(f"{title} (95 % intervals of the mean)", fontsize=10)
    return figure
