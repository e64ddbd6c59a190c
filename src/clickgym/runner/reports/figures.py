"""Figures: cumulative regret against sessions with a panel for each environment or instance, and a
row of panels for each further metric.
"""

from __future__ import annotations

import io
import math
import textwrap
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import polars
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from polars import col

from ...core.checks import check_kind
from ...core.files import write_whole
from ...core.formats import visible
from ..colours import COLOURS, LOOKS, PLACES
from ..config import Config
from ..metrics import is_sum
from ..summaries import average, metrics_of, per_session, several_instances, span

ZOOM = 1000
"""The first thousandth of the sessions, where all agents still explore, is left out."""
LETTERS = 11  # of a title, in an inch
FLOOR = 1e-3
"""Regret below it is rounding error, or the Oracle's, and has no place on a logarithmic axis."""
FILES: dict[Any, Any] = {"svg.hashsalt": "clickgym", "pdf.fonttype": 42, "ps.fonttype": 42}
"""How files are written: the same names in every SVG, and fonts embedded as TrueType (publishers
refuse Type 3, the choice of matplotlib).
"""


class NotebookFigure(Figure):
    """A figure that a notebook shows if it is the value of a cell.

    It does not use pyplot, which would keep the figure in memory, let other code draw into it, and
    show it a second time.
    """

    def _repr_png_(self) -> bytes:
        return figure_bytes(self, "png")


def line_styles(agents: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The colour and the dashes of each agent, the same in every figure.

    A published agent has the look of its place in the table of looks, and its variant
    (``TopRank:delta=0.1``) the same colour in other dashes. Any other label has one by its letters;
    if an agent of the figure has its colour, it takes the next that is free.

    Example:
        >>> styles = line_styles(["mine", "TopRank"])
        >>> styles["TopRank"] == line_styles(["TopRank", "Random"])["TopRank"] != styles["mine"]
        True
    """
    agents = list(dict.fromkeys(agents))
    numbers = {agent: PLACES[agent] for agent in agents if agent in PLACES}
    for agent in agents:
        if agent not in numbers:
            original = PLACES.get(agent.partition(":")[0])
            own = None if original is None else (original + len(COLOURS)) % len(LOOKS)
            wanted = zlib.crc32(agent.encode()) if own is None else own
            in_turn = [(wanted + n) % len(LOOKS) for n in range(len(LOOKS))]
            free = [n for n in in_turn if n not in numbers.values()] or in_turn
            used = {n % len(COLOURS) for n in numbers.values()}
            numbers[agent] = min(free, key=lambda n: n != own and n % len(COLOURS) in used)
    return {agent: LOOKS[numbers[agent]] for agent in agents}


def regret_figure(
    frame: polars.DataFrame,
    config: Config | None,
    *,
    title: str | None = None,
    ax: Axes | None = None,
    log: bool = True,
    by_instance: bool = False,
) -> Figure:
    """Draw the mean cumulative regret with its 95 % band, and the further metrics per session.

    On logarithmic axes the slope tells linear regret (1) from learning (below 1), and agents a
    thousand times apart share a panel. Several instances are averaged, or have a panel each. A
    panel shows reward where regret is unknown.

    Args:
        frame: the rows of `Results`.
        config: of the results, if it is known.
        title, ax, log, by_instance: as in `Results.plot`.
    """
    check_kind("ax", ax, Axes | None, "axes of matplotlib")
    agents = frame["agent"].unique()
    is_drawn = [col("step") * ZOOM >= col("step").max()] if log else []
    measures = ["regret", *metrics_of(frame)]
    parts, titles = [], []
    places = frame.select(["env", "instance"] if by_instance else ["env"]).unique(
        maintain_order=True
    )
    for place in places.iter_rows(named=True):  # one by one: they take much memory
        rows = per_session(frame.filter(*is_drawn, **place))
        parts.append(average(rows, ("env", "agent", "step"), ["reward", *measures]))
        titles.append(_title_of(frame.filter(**place)))
    curves = polars.concat(parts)
    styles = line_styles([*(config.agents if config else []), *agents.sort()])
    if ax is not None:
        if len(parts) > 1:
            what = "panel" if by_instance else "environment"
            raise ValueError(f"ax holds one {what}, and there are {len(parts)}; see select")
        _draw(ax, parts[0], "regret", styles, log)
        ax.set_title("" if title is None else _literal(title))
        ax.legend(frameon=False, fontsize=9)
        figure: Any = ax.get_figure(root=True)
        return figure
    n_columns = 2 if len(parts) == 4 else min(len(parts), 3)
    n_rows = math.ceil(len(parts) / n_columns)  # of each measure
    legend_width = 0.8 + 0.075 * max(map(len, agents))
    figure = NotebookFigure(
        figsize=(3.2 * n_columns + legend_width, 3.0 * n_rows * len(measures) + 0.4),
        layout="constrained",
    )
    grid = figure.subplots(n_rows * len(measures), n_columns, squeeze=False)
    for measure, panels in zip(measures, grid.reshape(len(measures), -1), strict=True):
        for panel, part, name in zip(panels, parts, titles, strict=False):
            _draw(panel, part, measure, styles, log)
            panel.set_title(name, fontsize=10)
        for panel in panels[len(parts) :]:
            panel.remove()
    if title is None:
        title = _band_of(curves, frame, by_instance)
        if config is not None and config.start:
            title += f"; agents started from {config.past_sessions}"
    letters = int(LETTERS * figure.get_figwidth())
    filled = [textwrap.fill(line, letters) for line in _literal(title).split("\n")]
    figure.suptitle("\n".join(filled), fontsize=11)
    plotted = [line for panel in figure.axes for line in panel.get_lines()]
    lines = {line.get_label(): line for line in reversed(plotted)}  # those of the first panel
    from_top = sorted(lines.values(), key=lambda line: -np.max(line.get_ydata()))
    figure.legend(handles=from_top, loc="outside right center", frameon=False, fontsize=9)
    return figure


def _band_of(curves: polars.DataFrame, frame: polars.DataFrame, by_instance: bool) -> str:
    """What the bands of a figure are over, in words."""
    runs, instances = span(curves["runs"]), span(curves["instances"])
    if by_instance or not several_instances(frame):
        return "One run" if runs == "1" else f"Mean and 95 % confidence band over {runs} runs"
    each = "one run" if runs == "1" else f"{runs} runs"
    return f"Mean and 95 % confidence band over {instances} instances ({each} each)"


def _title_of(rows: polars.DataFrame) -> str:
    """The environment of a panel, and its instance or the number of instances."""
    instances = rows["instance"].unique().to_list()
    where = instances[0] if len(instances) == 1 else f"mean over {len(instances)} instances"
    return "\n".join(_literal(textwrap.fill(line, 38)) for line in (rows["env"][0], where))


def _draw(
    panel: Axes,
    part: polars.DataFrame,
    measure: str,
    styles: Mapping[str, dict[str, Any]],
    log: bool,
) -> None:
    """Draw the curves of a measure into a panel; reward in place of a regret that is unknown."""
    floor, scale = -math.inf, "log" if log else "linear"
    label = f"{measure} per session" if is_sum(measure) else measure
    if measure == "regret":
        measure = "reward" if part["regret"].null_count() else "regret"
        label, floor = f"cumulative {measure}", FLOOR if log else -math.inf
        panel.set_yscale(scale)
    panel.set(xscale=scale, xlabel="sessions", ylabel=label)
    shown = part.filter(col(measure) > floor)
    names = shown["agent"].unique(maintain_order=True).to_list()
    for agent in names:
        curve = shown.filter(agent=agent)
        step, mean, half = (curve[name].to_numpy() for name in ("step", measure, f"{measure}_ci95"))
        # A line needs two points.
        dot: dict[str, Any] = {"marker": "o", "clip_on": False} if len(step) == 1 else {}
        panel.plot(step, mean, linewidth=1.6, label=_literal(agent), **dot, **styles[agent])
        low, high = np.maximum(mean - half, floor), mean + half
        panel.fill_between(step, low, high, color=styles[agent]["color"], alpha=0.2, linewidth=0)
    without_loss = [name for name in part["agent"].unique(maintain_order=True) if name not in names]
    if without_loss:
        text = f"no {measure}: {_literal(', '.join(without_loss))}"
        panel.text(0.98, 0.03, text, transform=panel.transAxes, ha="right", fontsize=8)
    if floor > 0 and names:  # a band may reach down to the floor
        means = shown[measure].to_numpy()
        panel.set_ylim(means.min() / 1.5, means.max() * 1.5)
    panel.margins(x=0)
    panel.grid(which="major", color="0.9", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)


def _literal(text: str) -> str:
    """The text without formulas: matplotlib would read one between two dollars."""
    return text.replace("$", r"\$")


# ------------------------------------------------------------------------------------------- files


def save_figure(figure: Figure, path: Path, origin: str | None = None) -> list[Path]:
    """Write a figure as ``path.png`` and ``path.svg``; the same figure gives the same bytes.

    Args:
        figure: any figure.
        path: without a suffix.
        origin: version and command of the results, for the metadata.

    Returns:
        The files.
    """
    files = [path.with_name(f"{path.name}.{kind}") for kind in ("png", "svg")]
    for file in files:
        write_figure(figure, file, origin)
    return files


def write_figure(figure: Figure, path: Path, origin: str | None = None) -> None:
    """Write a figure in the format that its suffix names, whole or not at all.

    Args:
        figure: any figure.
        path: ``.png``, ``.svg``, ``.pdf``, or what else matplotlib writes.
        origin: version and command of the results, for the metadata of the file.

    Raises:
        ValueError: matplotlib writes no such files.
    """
    kind, known = path.suffix[1:].lower(), figure.canvas.get_supported_filetypes()
    if kind not in known:
        suffixes = ", ".join(f".{suffix}" for suffix in sorted(known))
        raise ValueError(f"{path} has the suffix {path.suffix!r}; expected one of {suffixes}")
    write_whole(path, figure_bytes(figure, kind, origin))


def figure_bytes(figure: Figure, kind: str, origin: str | None = None) -> bytes:
    """A figure as the content of a file; the same figure gives the same bytes.

    Args:
        figure: any figure.
        kind: ``"png"``, ``"svg"``, ``"pdf"``, or what else matplotlib writes.
        origin: as in `write_figure`.
    """
    for text in figure.findobj(Text):
        text.set_text(visible(text.get_text(), keep="\n"))
    metadata = {
        "png": {"Software": None, "Description": origin},
        "svg": {"Date": None, "Description": origin},
        "pdf": {"CreationDate": None, "Subject": origin},
    }
    content = io.BytesIO()
    with matplotlib.rc_context(FILES):
        figure.savefig(content, format=kind, dpi=150, metadata=metadata.get(kind))
    return content.getvalue()
