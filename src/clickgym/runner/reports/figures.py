"""Figure of a sweep, cumulative regret against sessions with a panel per environment, and the curve
of a single run.
"""

from __future__ import annotations

import base64
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
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from ...core.checks import check_kind
from ...core.colours import COLOURS
from ...core.files import write_whole
from ...core.formats import visible
from .. import words
from ..summaries import average, reward_for_regret, without_regret

DASHES = ("-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)))

ZOOM = 1000
"""The first thousandth of the sessions, where all agents still explore, is left out."""
FLOOR = 1e-3
"""Regret below it is rounding error, or the Oracle's, and has no place on a logarithmic axis."""
METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": None},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}
"""What would make two files of the same figure differ."""
FILES: dict[Any, Any] = {"svg.hashsalt": "clickgym", "pdf.fonttype": 42, "ps.fonttype": 42}
"""How files are written: the same names in every SVG, and fonts embedded as TrueType (publishers
refuse Type 3, the choice of matplotlib).
"""
SCREEN = 80
"""Pixels per inch, of a figure in a notebook."""


class Picture(Figure):
    """A figure that a notebook shows if it is the value of a cell.

    It does not use pyplot, which would keep the figure in memory, let other code draw into it, and
    show it a second time.
    """

    def savefig(self, fname: Any, **options: Any) -> None:
        """As every figure of matplotlib, in the format of the suffix; the fonts of a PDF are those
        that papers can embed.
        """
        with matplotlib.rc_context(FILES):
            super().savefig(fname, **options)

    def _repr_png_(self) -> tuple[bytes, dict[str, float]]:
        content, (width, height) = io.BytesIO(), self.get_size_inches()
        self.savefig(content, format="png", dpi=2 * SCREEN)  # sharp on fine screens
        return content.getvalue(), {
            "width": float(width * SCREEN),
            "height": float(height * SCREEN),
        }


class _Panel(Axes):
    """The axes of a picture, which show it."""

    def _repr_png_(self) -> Any:
        assert isinstance(self.figure, Picture)
        return self.figure._repr_png_()


def plot_run(run: polars.DataFrame, axes: Axes | None = None) -> Axes:
    """Draw the curve of a single run, with the axes, colours and labels of `regret_figure`.

    Args:
        run: as `Result.to_frame` makes it.
        axes: what to draw into, beside the runs that are drawn already; None makes a figure.
    """
    check_kind("ax", axes, Axes | None, "axes of matplotlib")
    agent, env, instance, horizon = (
        run["agent"][0],
        run["env"][0],
        run["instance"][0],
        run["step"][-1],
    )
    without = without_regret(run)
    if axes is None:
        axes = Picture(figsize=(5.4, 3.6), layout="constrained").add_subplot(axes_class=_Panel)
        axes.set_title(_wrapped(words.title_of((env, instance)), 55), fontsize=10)
    rows = reward_for_regret(run.filter(polars.col("step") * ZOOM >= horizon))
    curves = rows.with_columns(regret_ci95=polars.lit(None, polars.Float64))
    number = len(axes.get_lines())
    before = axes.viewLim.frozen() if number else None
    measure = words.measure_of([env], without)
    _draw(axes, curves, [agent], measure, first_look=number)
    if before is not None:  # what was drawn before stays in sight
        both = Bbox.union([before, axes.viewLim])
        axes.set(xlim=both.intervalx, ylim=both.intervaly)
    axes.set(xlabel="sessions", ylabel=f"cumulative {measure.removeprefix('total ')}")
    axes.legend(frameon=False, fontsize=9)
    return axes


def regret_figure(table: polars.DataFrame, config: dict[str, Any], *, log: bool = True) -> Picture:
    """Draw the mean cumulative regret with its 95 % band, an agent in the same colour in every
    panel.

    On logarithmic axes the slope tells linear regret (1) from learning (below 1), and agents a
    thousand times apart share a panel. Several instances are averaged, or have a panel each. A
    panel shows reward where regret is unknown.

    Args:
        table, config: of a finished sweep, as `read_results` returns them; with ``per_instance`` in
            the configuration, each instance has panels of its own.
        log: both axes are logarithmic, or both linear.
    """
    places, without, curves = (
        words.places_of(config),
        without_regret(table),
        _curves(table, config, log),
    )
    figure, panels = _grid(config)
    for panel, place in zip(panels, places, strict=False):
        _draw_place(panel, place, curves, config, without, log)
    for panel in panels[len(places) :]:
        panel.remove()
    figure.suptitle(_wrapped(_title(config, without), int(11 * figure.get_figwidth())), fontsize=11)
    handles = _handles_of_agents(curves, config["agents"], log)
    figure.legend(handles=handles, loc="outside right center", frameon=False, fontsize=9)
    source = _commands(config, figure)
    if source:
        text = "\n".join(_wrapped(line, _characters(figure)) for line in source)
        figure.supxlabel(text, fontsize=6, color="0.4", x=0.01, ha="left")
    return figure


def _title(config: dict[str, Any], without: list[str]) -> str:
    interval = (
        f"mean and 95 % confidence band of {words.number_of_runs(config)} runs"
        if config["runs"] > 1
        else "one run"
    )
    return f"{words.measure_of(config['envs'], without).capitalize()}, {words.where(config)} ({interval})"


def _grid(config: dict[str, Any]) -> tuple[Picture, list[Axes]]:
    """A figure with a panel for each place, and room for a legend of the agents."""
    n_places, n_separate = len(words.places_of(config)), len(words.separate(config))
    n_columns = 2 if n_places == 4 else min(n_places, 3)
    if n_separate in (2, 3, 4):
        n_columns = n_separate  # a row for each environment
    n_rows = math.ceil(n_places / n_columns)
    legend_width = 0.8 + 0.075 * max(map(len, config["agents"]))
    figure = Picture(
        figsize=(3.2 * n_columns + legend_width, 3.0 * n_rows + 0.7), layout="constrained"
    )
    return figure, list(figure.subplots(n_rows, n_columns, squeeze=False).flat)


def _draw_place(
    panel: Axes,
    place: words.Place,
    curves: polars.DataFrame,
    config: dict[str, Any],
    without: list[str],
    log: bool,
) -> None:
    env, instance = place
    _draw(
        panel,
        words.rows_of(curves, place),
        config["agents"],
        words.measure_of([env], [env] * (env in without)),
        log=log,
    )
    panel.set_title("\n".join(_wrapped(line, 38) for line in (env, instance) if line), fontsize=10)
    panel.set(xlabel="sessions", ylabel=f"cumulative {words.amount_of(config, env, without)}")


def _handles_of_agents(curves: polars.DataFrame, agents: list[str], log: bool) -> list[Line2D]:
    """The agents of a legend, from the top about as their lines lie."""
    final = dict(curves.group_by("agent").agg(polars.col("regret").max()).iter_rows())
    order = sorted(agents, key=lambda agent: -final[agent])
    return [
        Line2D([], [], **_look(agents, agent), label=_literal(agent))
        for agent in order
        if final[agent] > FLOOR or not log
    ]


def _commands(config: dict[str, Any], figure: Figure) -> list[str]:
    """Version and commands: a curve without them cannot be checked."""
    commands = words.commands_of(config, out=None)
    if len(commands) > 1:
        commands = [
            textwrap.shorten(command, _characters(figure) - 20, placeholder=" ...")
            for command in commands
        ]
    return [f"clickgym {config['clickgym']}: {command}" for command in commands]


def _characters(figure: Figure) -> int:
    """How many small characters a line of a figure has."""
    return int(16 * figure.get_figwidth())


def _curves(table: polars.DataFrame, config: dict[str, Any], log: bool) -> polars.DataFrame:
    rows = table.filter(polars.col("step") * ZOOM >= config["horizon"]) if log else table
    return average(reward_for_regret(rows), (*words.columns_of(config), "agent", "step"))


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


def save_figure(figure: Figure, path: Path, *, pdf: bool = False) -> list[Path]:
    """Write a figure as ``path.png`` and ``path.svg``; the same figure gives the same bytes.

    Args:
        figure: any figure.
        path: without a suffix.
        pdf: as ``path.pdf``, too.

    Returns:
        The files.
    """
    files = [path.with_name(f"{path.name}.{kind}") for kind in ("png", "svg", *["pdf"] * pdf)]
    for file in files:
        write_figure(figure, file)
    return files


def write_figure(figure: Figure, path: Path) -> None:
    """Write a figure in the format that its suffix names, whole or not at all.

    Args:
        figure: any figure.
        path: ``.png``, ``.svg``, ``.pdf``, or what else matplotlib writes.

    Raises:
        ValueError: matplotlib writes no such files.
    """
    kind = path.suffix[1:].lower()
    if kind not in figure.canvas.get_supported_filetypes():
        raise ValueError(
            f"{path}: the suffix of a figure's file says its format; expected .pdf, .svg, .png or the like"
        )
    write_whole(path, drawn(figure, kind))


def drawn(figure: Figure, kind: str, *, transparent: bool = False) -> bytes:
    """A figure as the content of a file; the same figure gives the same bytes.

    Args:
        figure: any figure.
        kind: ``"png"``, ``"svg"``, ``"pdf"``, or what else matplotlib writes.
        transparent: without a background.
    """
    for text in figure.findobj(Text):
        text.set_text(visible(text.get_text(), keep="\n"))
    content = io.BytesIO()
    with matplotlib.rc_context(FILES):
        figure.savefig(
            content, format=kind, dpi=150, metadata=METADATA.get(kind), transparent=transparent
        )
    return content.getvalue()


def picture(figure: Figure) -> str:
    """A figure as the address of a picture within a page, which has the names of its parts to
    itself.

    Args:
        figure: any figure; it has no background, so that a dark page can turn it around.
    """
    return f"data:image/svg+xml;base64,{base64.b64encode(drawn(figure, 'svg', transparent=True)).decode()}"


def _draw(
    panel: Axes,
    curves: polars.DataFrame,
    agents: list[str],
    measure: str,
    *,
    log: bool = True,
    first_look: int = 0,
) -> None:
    scale, floor = ("log", FLOOR) if log else ("linear", -math.inf)
    panel.set(xscale=scale, yscale=scale)
    by_agent = {agent: rows for agent in agents if len(rows := curves.filter(agent=agent))}
    for agent, rows in by_agent.items():
        look = _look_at(first_look + agents.index(agent))
        _draw_curve(panel, rows.filter(polars.col("regret") > floor), agent, look, floor)
    _name_faultless(panel, by_agent, floor, measure)
    if limits := _limits(curves, log):
        panel.set_ylim(*limits)
    first, last = curves["step"].to_numpy()[[0, -1]]
    if first < last:
        panel.set_xlim(first if log else 0, last)
    panel.grid(which="major", color="0.9", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)


def _name_faultless(
    panel: Axes, by_agent: dict[str, polars.DataFrame], floor: float, measure: str
) -> None:
    """Name the agents whose curve has no place on the axis."""
    faultless = [agent for agent, rows in by_agent.items() if (rows["regret"] <= floor).all()]
    if faultless:
        names = _literal(", ".join(faultless))
        panel.text(
            0.98, 0.03, f"no {measure}: {names}", transform=panel.transAxes, ha="right", fontsize=8
        )


def _draw_curve(
    panel: Axes, curve: polars.DataFrame, agent: str, look: dict[str, Any], floor: float
) -> None:
    step, mean, half = (curve[name].to_numpy() for name in ("step", "regret", "regret_ci95"))
    dot: dict[str, Any] = (
        {"marker": "o", "clip_on": False} if len(step) == 1 else {}
    )  # a line needs two points
    panel.plot(step, mean, linewidth=1.6, label=_literal(agent), **dot, **look)
    panel.fill_between(
        step,
        np.maximum(mean - half, floor),
        mean + half,
        color=look["color"],
        alpha=0.2,
        linewidth=0,
    )


def _limits(curves: polars.DataFrame, log: bool) -> tuple[float, float] | None:
    """Between which regrets the curves of a panel are drawn, by their means: a band may reach down
    to zero.
    """
    if not log:
        low, high = np.min(curves["regret"].to_numpy()), np.max(curves["regret"].to_numpy())
        return min(low, 0.0), 1.05 * high if high > FLOOR else max(high, 1.0)
    regrets = curves.filter(polars.col("regret") > FLOOR)["regret"].to_numpy()
    return (regrets.min() / 1.5, regrets.max() * 1.5) if len(regrets) else None


def _look(agents: list[str], agent: str) -> dict[str, Any]:
    return _look_at(agents.index(agent))


def _look_at(i: int) -> dict[str, Any]:
    return {
        "color": COLOURS[i % len(COLOURS)],
        "linestyle": DASHES[i // len(COLOURS) % len(DASHES)],
    }
