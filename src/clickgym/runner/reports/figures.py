"""Figures: cumulative regret against sessions with a panel for each environment or instance, and a
row of panels for each further metric.
"""

from __future__ import annotations

import io
import itertools
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import polars
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from polars import col

from ...core.files import write_whole
from ..summaries import several_instances, span
from .curves import Manner, Panel, panels_of

LETTERS = 11  # of a title, in an inch
NARROW, NARROWEST = 2.5, 1.5  # inches of a panel, where a figure has a width; and if it is too tall
TALLEST = 9.0  # inches of a page
PAGE: dict[Any, Any] = {"axes.titlesize": 10, "legend.fontsize": 9}
PAPER: dict[Any, Any] = {"font.size": 8, "axes.titlesize": 8, "legend.fontsize": 8}
FLOOR = 1e-3
"""Regret below it is rounding error, or the Oracle's, and has no place on a logarithmic axis."""
FILES: dict[Any, Any] = {"svg.hashsalt": "clickgym", "pdf.fonttype": 42, "ps.fonttype": 42}
"""How files are written: the same names in every SVG, and fonts embedded as TrueType (publishers
refuse Type 3, the choice of matplotlib).
"""


# The palette of Okabe and Ito, which readers with colour-vision deficiency can distinguish, without
# its yellow, which is faint in print. Further curves reuse it with another dash pattern.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#000000", "#56B4E9")
DASHES = (
    "-",
    (0, (5, 1.5)),
    (0, (1, 1.2)),
    (0, (5, 1.5, 1, 1.5)),
    (0, (3, 1, 1, 1, 1, 1)),
    (0, (1, 3)),
)
LOOKS: list[dict[str, Any]] = [
    {"color": colour, "linestyle": dash} for dash in DASHES for colour in COLOURS
]
LOOK_OF_RANDOM: dict[str, Any] = {"color": "#888888", "linestyle": "-"}


class NotebookFigure(Figure):
    """A figure that a notebook shows if it is the value of a cell.

    It does not use pyplot, which would keep the figure in memory, let other code draw into it, and
    show it a second time.
    """

    def _repr_png_(self) -> bytes:
        return figure_bytes(self, "png")


def line_styles(agents: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The colour and the dashes of each agent: they take the looks in turn, and `Random` is grey.

    Example:
        >>> styles = line_styles(["TopRank", "Random", "CascadeTS"])
        >>> [styles[agent]["color"] for agent in ("TopRank", "Random", "CascadeTS")]
        ['#0072B2', '#888888', '#D55E00']
    """
    others = (agent for agent in dict.fromkeys(agents) if agent != "Random")
    return {"Random": LOOK_OF_RANDOM, **dict(zip(others, itertools.cycle(LOOKS), strict=False))}


def regret_figure(rows: polars.DataFrame, manner: Manner) -> Figure:
    """Draw the mean cumulative regret with its 95 % band, and the further metrics per session.

    On logarithmic axes the slope tells linear regret (1) from learning (below 1), and agents a
    thousand times apart share a panel. Several instances are averaged, or have a panel each. A
    panel shows reward where regret is unknown.

    Args:
        rows: of `Results`.
        manner: how.

    Raises:
        ValueError: no other agent met the users of the reference, or there is nothing by which to
            normalise.
    """
    panels = panels_of(rows, manner)
    if all(curves.is_empty() for panel in panels for curves in panel.curves.values()):
        raise ValueError(f"no other agent met the users of {manner.reference}: no differences")
    agents = rows["agent"].unique(maintain_order=True).to_list()
    names = [manner.text(agent) for agent in agents]
    if manner.width is None:
        settings, layout = PAGE, _for_a_screen(len(panels), names)
    else:
        settings, layout = PAPER, _for_a_paper(manner.width, panels, names)
    n_rows = math.ceil(len(panels) / layout.n_columns) * len(manner.measures)
    size = (layout.n_columns * layout.width + layout.beside, n_rows * layout.height + layout.below)
    with matplotlib.rc_context(settings):
        figure = NotebookFigure(figsize=size, layout="constrained")
        grid = figure.subplots(n_rows, layout.n_columns, squeeze=False)
        _draw_panels(grid, panels, line_styles(agents), manner, layout)
        if manner.width is None:
            title = _band_of(panels, rows, manner.by_instance)
            figure.suptitle(textwrap.fill(title, int(LETTERS * size[0])), fontsize=11)
        figure.legend(handles=_from_top(figure), frameon=False, **layout.legend)
    return figure


# ------------------------------------------------------------------------------------------- layout


class Layout(NamedTuple):
    """The grid of panels of a figure, sizes in inches.

    Attributes:
        n_columns: of the grid.
        width, height: of a panel.
        beside, below: the room that title and legend take beside and below the panels.
        legend: where it is, for matplotlib.
    """

    n_columns: int
    width: float
    height: float
    beside: float
    below: float
    legend: dict[str, Any]


def _for_a_screen(n_panels: int, names: Sequence[str]) -> Layout:
    """Panels of one size, a title above and a legend beside them."""
    beside = 0.8 + 0.075 * max(map(len, names))
    n_columns = 2 if n_panels == 4 else min(n_panels, 3)
    return Layout(n_columns, 3.2, 3.0, beside, 0.4, {"loc": "outside right center"})


def _for_a_paper(width: float, panels: Sequence[Panel], names: Sequence[str]) -> Layout:
    """Panels in the width of a column or a page, and a legend below them. Where the figure would be
    taller than a page, panels become narrower.
    """
    n_panels, n_measures = len(panels), len(panels[0].curves)
    least = max(1, min(int(width / NARROW), n_panels, 2 if n_panels == 4 else 3))
    most = max(least, min(int(width / NARROWEST), n_panels))
    for n_columns in range(least, most + 1):
        height = max(0.75 * width / n_columns, 1.9)
        if math.ceil(n_panels / n_columns) * n_measures * height <= TALLEST:
            break
    in_a_line = max(1, int(LETTERS * 1.4 * width / (max(map(len, names)) + 7)))
    below = 0.16 * math.ceil(len(names) / in_a_line)
    legend = {"loc": "outside lower center", "ncols": in_a_line}
    return Layout(n_columns, width / n_columns, height, 0.0, below, legend)


def _band_of(panels: Sequence[Panel], rows: polars.DataFrame, by_instance: bool) -> str:
    """What the bands of a figure are over, in words."""
    curves = [next(iter(panel.curves.values())) for panel in panels]
    runs, instances = (
        span(polars.concat(part[count] for part in curves)) for count in ("runs", "instances")
    )
    if by_instance or not several_instances(rows):
        return "One run" if runs == "1" else f"Mean and 95 % confidence band over {runs} runs"
    each = "one run" if runs == "1" else f"{runs} runs"
    return f"Mean and 95 % confidence band over {instances} instances ({each} each)"


def _from_top(figure: Figure) -> list[Line2D]:
    """A line of each agent for the legend, from the top of the first panel to its bottom."""
    lines = [line for axes in figure.axes for line in axes.get_lines()]
    of_agents = {line.get_label(): line for line in reversed(lines)}  # the first of each
    return sorted(of_agents.values(), key=lambda line: -np.max(line.get_ydata()))


# ------------------------------------------------------------------------------------------- panels


def _draw_panels(
    grid: NDArray[Any],
    panels: Sequence[Panel],
    styles: Mapping[str, dict[str, Any]],
    manner: Manner,
    layout: Layout,
) -> None:
    """Draw all panels: a block of rows of the grid for each measure."""
    letters = int(1.1 * LETTERS * layout.width)
    blocks = grid.reshape(len(manner.measures), -1)
    for measure, block in zip(manner.measures, blocks, strict=True):
        for axes, panel in zip(block, panels, strict=False):
            _draw(axes, panel.curves[measure], measure, styles, manner)
            lines = [textwrap.fill(line, letters) for line in panel.title.split("\n")]
            axes.set_title("\n".join(lines))
        for axes in block[len(panels) :]:
            axes.remove()
        if manner.width is not None:
            is_last = measure == manner.measures[-1]
            _label_outer(block[: len(panels)], layout.n_columns, is_last)


def _label_outer(block: NDArray[Any], n_columns: int, is_last: bool) -> None:
    """Leave out the labels of axes that the next panel to the left or below has, too.

    Args:
        block: the panels of a measure, row by row.
        n_columns: of the grid.
        is_last: whether no other measure is below.
    """
    labels = [axes.get_ylabel() for axes in block]
    for place, axes in enumerate(block):
        if place % n_columns and labels[place] == labels[place - 1]:
            axes.set_ylabel("")
        if place + n_columns < len(block) or not is_last:
            axes.set_xlabel("")


def _draw(
    axes: Axes,
    curves: polars.DataFrame,
    measure: str,
    styles: Mapping[str, dict[str, Any]],
    manner: Manner,
) -> None:
    """Draw the curves of a measure; of reward in place of a regret that is unknown."""
    is_regret, floor = measure == "regret", -math.inf
    if is_regret and curves["regret"].null_count():
        measure = "reward"
    if is_regret and manner.log:
        floor = FLOOR
        axes.set(xscale="log", yscale="log")
    axes.set(xlabel="sessions", ylabel=manner.label(measure))
    shown = curves.filter(col(measure) > floor)
    agents = shown["agent"].unique(maintain_order=True).to_list()
    for agent in sorted(agents, key=lambda name: name == manner.emphasis):  # that one on top
        look = {"label": manner.text(agent), "linewidth": 1.6, **styles[agent]}
        if agent == manner.emphasis:
            look["linewidth"] = 3.0
        _draw_curve(axes, shown.filter(agent=agent), measure, floor, look)
    missing = [name for name in curves["agent"].unique(maintain_order=True) if name not in agents]
    if missing:
        text = f"no {measure}: {', '.join(map(manner.text, missing))}"
        axes.text(0.98, 0.03, text, transform=axes.transAxes, ha="right", fontsize="small")
    if floor > 0 and agents:  # a band may reach down to the floor
        means = shown[measure].to_numpy()
        axes.set_ylim(means.min() / 1.5, means.max() * 1.5)
    if manner.reference is not None:
        _leave_random(axes, shown, measure)
    axes.margins(x=0)
    axes.grid(which="major", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_curve(
    axes: Axes, curve: polars.DataFrame, measure: str, floor: float, look: dict[str, Any]
) -> None:
    """Draw the mean of an agent with its band, which ends at the floor of a logarithmic axis."""
    step, mean, half = (curve[name].to_numpy() for name in ("step", measure, f"{measure}_ci95"))
    # A line needs two points.
    dot: dict[str, Any] = {"marker": "o", "clip_on": False} if len(step) == 1 else {}
    axes.plot(step, mean, **look, **dot)
    low, high = np.maximum(mean - half, floor), mean + half
    axes.fill_between(step, low, high, color=look["color"], alpha=0.2, linewidth=0)


def _leave_random(axes: Axes, shown: polars.DataFrame, measure: str) -> None:
    """Let the other agents rule the axis of differences, of which random lists leave nothing."""
    others = shown.filter(col("agent") != "Random")
    if not others.is_empty():
        mean, half = (others[name].to_numpy() for name in (measure, f"{measure}_ci95"))
        half = np.nan_to_num(half.astype(float))
        low, high = min(0.0, np.min(mean - half)), max(0.0, np.max(mean + half))
        margin = 0.05 * (high - low or 1.0)
        axes.set_ylim(low - margin, high + margin)


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
    metadata = {
        "png": {"Software": None, "Description": origin},
        "svg": {"Date": None, "Description": origin},
        "pdf": {"CreationDate": None, "Subject": origin},
    }
    content = io.BytesIO()
    with matplotlib.rc_context(FILES):
        figure.savefig(content, format=kind, dpi=150, metadata=metadata.get(kind))
    return content.getvalue()
