"""Figure of a tuning: the score of its trials against each hyper-parameter."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter
from polars import col

from ...agents import Range
from ...core.colours import COLOURS
from ..labels import written
from .figures import Picture

TICKS = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
JITTER = 0.18
"""How far apart the trials of one value of a set may stand, of the way to the next."""


def trials_figure(trials: polars.DataFrame, space: Mapping[str, Range | tuple[Any, ...]], config: Mapping[str, Any]) -> Picture:
    """Draw the score against each hyper-parameter, a panel for each.

    Args:
        trials, space, config: of a `clickgym.Tuning`.
    """
    n_columns = min(len(space), 3)
    n_rows = math.ceil(len(space) / n_columns)
    figure = Picture(figsize=(3.4 * n_columns + 1.2 * (n_columns == 1), 2.9 * n_rows + 1.3), layout="constrained")
    panels = list(figure.subplots(n_rows, n_columns, squeeze=False, sharey=True).flat)
    for panel, (name, values) in zip(panels, space.items(), strict=False):
        _draw(panel, trials, name, values, config["agent"])
    for panel in panels[len(space) :]:
        panel.remove()
    for panel in panels[: len(space) : n_columns]:
        panel.set_ylabel("regret / that of random lists")
    instances = config["instances"]
    where = ", ".join(instances) if len(instances) < 4 else f"{len(instances)} instances"
    places = f"{', '.join(config['envs'])} ({where}), {config['horizon']:,}\N{NO-BREAK SPACE}sessions"
    title = [f"Tuning of {config['agent']}", *textwrap.wrap(places, int(11 * figure.get_figwidth()))]
    figure.suptitle("\n".join(title).replace("$", r"\$"), fontsize=11)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4 if n_columns > 1 else 2, frameon=False, fontsize=9)
    return figure


def _draw(panel: Axes, trials: polars.DataFrame, name: str, values: Range | tuple[Any, ...], label: str) -> None:
    """One panel; the default is a line, for its value may follow from the horizon."""
    placed = trials.with_columns(x=_places(trials, name, values)).filter(col("x").is_not_null())
    pruned, complete = (placed.filter(col("state") == state) for state in ("pruned", "complete"))
    panel.plot(pruned["x"], pruned["score"], "x", color=COLOURS[7], markersize=4, alpha=0.7, label="given up")
    panel.plot(complete["x"], complete["score"], "o", color=COLOURS[0], markersize=5, alpha=0.7, label="complete")
    final = placed.drop_nulls("final_score")
    spread = final["final_ci95"].fill_null(0.0)
    panel.errorbar(
        final["x"], final["final_score"], spread, fmt="D", color=COLOURS[1], markersize=5, capsize=2, label="final (95 %)"
    )
    default = trials.filter(col("agent") == label).drop_nulls("final_score")["final_score"]
    for score in default:
        panel.axhline(score, color=COLOURS[5], linestyle="--", linewidth=1, label="default in the final")
    panel.set(xlabel=name, yscale="log")
    panel.yaxis.set_major_locator(LogLocator(subs=TICKS))
    panel.yaxis.set_major_formatter("{x:g}")
    panel.yaxis.set_minor_formatter(NullFormatter())
    if isinstance(values, Range):
        panel.set_xscale("log" if values.log else "linear")
    else:
        panel.set_xticks(range(len(values)), [written(value) for value in values], rotation=30 * (len(values) > 3))
        panel.set_xlim(-0.5, len(values) - 0.5)


def _places(trials: polars.DataFrame, name: str, values: Range | tuple[Any, ...]) -> polars.Series:
    """Where trials stand; those of one value of a set side by side."""
    column = trials[f"param_{name}"]
    if isinstance(values, Range):
        return column.cast(polars.Float64)
    order = {written(value): place for place, value in enumerate(values)}
    steps = np.linspace(-JITTER, JITTER, 7)
    places = [None if text not in order else order[text] + steps[3 * row % 7] for row, text in enumerate(column)]
    return polars.Series("x", places, polars.Float64)
