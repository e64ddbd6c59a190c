"""The figure of a sweep: cumulative regret against sessions, one panel per environment."""

from __future__ import annotations

import io
import math
import re
import textwrap
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import polars
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ...envs.files import write_whole
from ..statistics import average, reward_for_regret, without_regret
from ..theory.applicable import BoundCurve
from .bounds import HOW_TO_READ, Theory
from .words import amount_of, commands_of, measure_of, number_of_runs, where

__all__ = ["COLOURS", "outside", "regret_figure", "save_figure"]

# Okabe and Ito's colours, which people with any colour vision tell apart, with grey for the yellow that paper
# swallows. When they run out, they come again with another dash pattern.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#000000", "#56B4E9", "#888888")
DASHES = ("-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)))

ZOOM = 1000
"""The first thousandth of the sessions, where all agents still explore, is left out."""
FLOOR = 1e-3
"""Regret below it is rounding error, or the Oracle's, and has no place on a logarithmic axis."""


def regret_figure(table: polars.DataFrame, config: dict[str, Any], theory: Theory | None = None) -> Figure:
    """Draw the mean cumulative regret with its 95 % band, an agent in the same colour in every panel.

    Both axes are logarithmic: the slope tells linear regret (1) from learning (below 1), and agents a thousand times apart
    share a panel. Several instances are averaged. A panel shows reward where regret is unknown.

    Args:
        table, config: of a finished sweep, as `read_results` returns them.
        theory: bounds to draw, as far as they lie between the curves; the axes are the same without. None draws none.
    """
    envs, agents, without = config["envs"], config["agents"], without_regret(table)
    curves = _curves(table, config)
    bounds, beyond = ([], []) if theory is None else _split(theory, curves, config)
    drawn = {curve.label: curve for _, curve in bounds}
    n_columns = 2 if len(envs) == 4 else min(len(envs), 3)
    n_rows = math.ceil(len(envs) / n_columns)
    labels = {label: "\n".join(textwrap.wrap(label, 26, break_long_words=False)) for label in drawn}
    legend_width = 0.8 + 0.075 * max(map(len, [*agents, *(line for label in labels.values() for line in label.split("\n"))]))
    figure = Figure(figsize=(3.2 * n_columns + legend_width, 3.0 * n_rows + 0.7), layout="constrained")
    panels = list(figure.subplots(n_rows, n_columns, squeeze=False).flat)
    for panel, env in zip(panels, envs, strict=False):
        _draw(panel, curves.filter(polars.col("env") == env), agents, measure_of([env], [env] * (env in without)))
        for place, bound in bounds:
            if place == env:
                dot = {"marker": "_"} if len(config["checkpoints"]) == 1 else {}
                panel.plot(config["checkpoints"], bound.values, **dot, **_look_of_bound(agents, bound))
        panel.set_title(_wrapped(env, 38), fontsize=10)
        panel.set_xlabel("sessions")
        panel.set_ylabel(f"cumulative {amount_of(env, without)}")
    for panel in panels[len(envs) :]:
        panel.remove()
    band = f"mean and 95 % confidence band of {number_of_runs(config)} runs" if config["runs"] > 1 else "one run"
    measure = measure_of(envs, without).capitalize()
    figure.suptitle(_wrapped(f"{measure}, {where(config)} ({band})", int(11 * figure.get_figwidth())), fontsize=11)
    final = dict(curves.group_by("agent").agg(polars.col("regret").max()).iter_rows())
    handles = [
        Line2D([], [], **_look(agents, agent), label=_literal(agent))
        for agent in sorted(agents, key=lambda agent: -final[agent])  # from the top, about as the lines lie
        if final[agent] > FLOOR
    ]
    handles += [
        Line2D([], [], **_look_of_bound(agents, curve), label=_literal(labels[label])) for label, curve in drawn.items()
    ]
    figure.legend(handles=handles, loc="outside right center", frameon=False, fontsize=9)
    # A curve without the version and the command that made it cannot be checked.
    width = int(16 * figure.get_figwidth())
    commands = [f"{command}{' --bounds' if theory is not None else ''}" for command in commands_of(config)]
    if len(commands) > 1:
        commands = [textwrap.shorten(command, width - 20, placeholder=" ...") for command in commands]
    source = [*([HOW_TO_READ] if bounds else []), *beyond, *(f"clickgym {config['clickgym']}: {each}" for each in commands)]
    figure.supxlabel("\n".join(_wrapped(line, width) for line in source), fontsize=6, color="0.4", x=0.01, ha="left")
    return figure


def outside(table: polars.DataFrame, config: dict[str, Any], theory: Theory) -> list[str]:
    """Which bounds end above or below all curves of their panel, where `regret_figure` does not show them: one line each.

    Args:
        table, config: of a finished sweep, as `read_results` returns them.
        theory: its bounds.
    """
    return _split(theory, _curves(table, config), config)[1]


def _curves(table: polars.DataFrame, config: dict[str, Any]) -> polars.DataFrame:
    shown = reward_for_regret(table.filter(polars.col("step") * ZOOM >= config["horizon"]))
    return average(shown, ("env", "agent", "step"))


def _split(theory: Theory, curves: polars.DataFrame, config: dict[str, Any]) -> tuple[list[tuple[str, BoundCurve]], list[str]]:
    """The bounds that cross a panel, with its environment, and in words where those end that do not end in it."""
    within, beyond = [], []
    seen = np.array(config["checkpoints"]) * ZOOM >= config["horizon"]
    for env in config["envs"]:
        low, high = _limits(curves.filter(polars.col("env") == env)) or (0.0, math.inf)
        for curve in theory.curves[env, None]:
            values = curve.values[seen & np.isfinite(curve.values)]
            if ((low <= values) & (values <= high)).any():
                within.append((env, curve))
            if len(values) and not low <= values[-1] <= high:
                side = "beyond" if values[-1] > high else "below"
                place = f" in {env}" if len(config["envs"]) > 1 else ""
                beyond.append(f"{curve.words}{place}: {values[-1]:.2g}, {side} the figure")
    return within, beyond


def _wrapped(text: str, width: int) -> str:
    """The text in lines of about ``width``, broken after spaces, colons and commas."""
    lines = [""]
    for part in re.split(r"(?<=[ :,])", text):
        if len(lines[-1]) + len(part.rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return _literal("\n".join(lines).strip())


def _literal(text: str) -> str:
    """The text without formulas: matplotlib would read one between two dollars."""
    return text.replace("$", r"\$")


def save_figure(figure: Figure, path: Path) -> list[Path]:
    """Write a figure as ``path.png`` and ``path.svg``; the same figure gives the same bytes.

    Args:
        figure: any figure.
        path: without a suffix.

    Returns:
        The two files.
    """
    files = []
    with matplotlib.rc_context({"svg.hashsalt": "clickgym"}):
        for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
            file = path.with_name(f"{path.name}.{kind}")
            drawn = io.BytesIO()
            figure.savefig(drawn, format=kind, dpi=150, metadata=metadata)
            write_whole(file, drawn.getvalue())
            files.append(file)
    return files


def _draw(panel: Axes, curves: polars.DataFrame, agents: list[str], measure: str) -> None:
    panel.set_xscale("log")
    panel.set_yscale("log")
    run = set(curves["agent"])
    for agent in filter(run.__contains__, agents):
        curve = curves.filter((polars.col("agent") == agent) & (polars.col("regret") > FLOOR))
        step, mean, half = (curve[name].to_numpy() for name in ("step", "regret", "regret_ci95"))
        dot: dict[str, Any] = {"marker": "o", "clip_on": False} if len(step) == 1 else {}  # a line needs two points
        panel.plot(step, mean, linewidth=1.6, **dot, **_look(agents, agent))
        panel.fill_between(
            step, np.maximum(mean - half, FLOOR), mean + half, color=_look(agents, agent)["color"], alpha=0.2, linewidth=0
        )
    faultless = [
        agent for agent in agents if agent in run and (curves.filter(polars.col("agent") == agent)["regret"] <= FLOOR).all()
    ]
    if faultless:
        names = _literal(", ".join(faultless))
        panel.text(0.98, 0.03, f"no {measure}: {names}", transform=panel.transAxes, ha="right", fontsize=8)
    if limits := _limits(curves):
        panel.set_ylim(*limits)
    first, last = curves["step"].to_numpy()[[0, -1]]
    if first < last:
        panel.set_xlim(first, last)
    panel.grid(which="major", color="0.9", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)


def _limits(curves: polars.DataFrame) -> tuple[float, float] | None:
    """Between which regrets the curves of a panel are drawn, by their means: a band may reach down to zero."""
    shown = curves.filter(polars.col("regret") > FLOOR)["regret"].to_numpy()
    return (shown.min() / 1.5, shown.max() * 1.5) if len(shown) else None


def _look_of_bound(agents: list[str], bound: BoundCurve) -> dict[str, Any]:
    color = _look(agents, bound.agent)["color"] if bound.agent else "black"
    return {"color": color, "linestyle": (0, (1, 1.5)), "linewidth": 0.9 if bound.agent else 1.2}


def _look(agents: list[str], agent: str) -> dict[str, Any]:
    i = agents.index(agent)
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": DASHES[i // len(COLOURS) % len(DASHES)]}
