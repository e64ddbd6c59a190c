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
from types import MappingProxyType
from typing import Any, NamedTuple

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
from ..config import Config
from ..play.metrics import is_sum
from ..summaries import average, by_window, comparable, several_instances, span, without_regret

ZOOM = 1000
"""On logarithmic axes the first thousandth of the sessions, where all agents still explore, is left
out; of normalised regret, which is mostly chance at first, the first hundredth.
"""
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


class Manner(NamedTuple):
    """How a figure is drawn, as `Results.plot` says."""

    log: bool = True
    reference: str | None = None
    emphasis: str | None = None
    names: Mapping[str, str] = MappingProxyType({})
    width: float | None = None
    normalise: bool = False
    measures: Sequence[str] = ("regret",)
    columns: int | None = None
    random: Sequence[str] = ("Random",)

    def text(self, name: str) -> str:
        """A name as the figure shows it."""
        return _literal(self.names.get(name, name))

    def label(self, measure: str) -> str:
        """The label of the axis of a measure."""
        if measure not in ("regret", "reward"):
            text = self.text(measure)
            if is_sum(measure):
                text += " per session"
        elif self.normalise:
            text = "score (0: random, 1: optimum)"
        else:
            text = f"cumulative {self.text(measure)}"
        return text if self.reference is None else f"{text}\nminus {self.text(self.reference)}"


def regret_figure(
    frame: polars.DataFrame,
    config: Config | None,
    manner: Manner,
    *,
    title: str | None = None,
    ax: Axes | None = None,
    by_instance: bool = False,
) -> Figure:
    """Draw the mean cumulative regret with its 95 % band, and the further metrics per session.

    On logarithmic axes the slope tells linear regret (1) from learning (below 1), and agents a
    thousand times apart share a panel. Several instances are averaged, or have a panel each. A
    panel shows reward where regret is unknown.

    Args:
        frame: the rows of `Results`.
        config: of the results, if it is known.
        manner: how.
        title, ax, by_instance: as in `Results.plot`.
    """
    check_kind("ax", ax, Axes | None, "axes of matplotlib")
    known = config.agents if config else {}
    random = [name for name in known if known[name] == "Random"]
    manner = manner._replace(random=random or ["Random"])
    if manner.normalise:
        frame = _normalised(frame, manner.random)
    measures = manner.measures
    metrics = [name for name in measures if name != "regret"]
    places = frame.select(["env", "instance"] if by_instance else ["env"]).unique(
        maintain_order=True
    )
    parts: dict[str, list[polars.DataFrame]] = {measure: [] for measure in measures}
    titles = []
    for place in places.iter_rows(named=True):  # one by one: they take much memory
        rows, by = frame.filter(**place), ("env", "agent", "step")
        part_of_run = ZOOM if manner.log else 100 if manner.normalise else math.inf
        titles.append(_title_of(rows, manner))
        curves = rows.filter(col("step") * part_of_run >= col("step").max())
        for columns, part in ((["regret", "reward"], curves), (metrics, by_window(rows))):
            if columns:
                part = part if manner.reference is None else _minus(part, manner, columns)
                means = average(part, by, columns)
                for measure in set(columns) & set(parts):
                    parts[measure].append(means)
    if all(part.is_empty() for part in parts[measures[0]]):
        raise ValueError(f"no other agent met the users of {manner.reference}: no differences")
    styles = line_styles(frame["agent"].unique(maintain_order=True))
    if ax is not None:
        if len(titles) > 1:
            what = "panel" if by_instance else "environment"
            raise ValueError(f"ax holds one {what}, and there are {len(titles)}; see select")
        _draw(ax, parts[measures[0]][0], measures[0], styles, manner)
        ax.set_title("" if title is None else _literal(title))
        ax.legend(frameon=False, fontsize=9)
        figure: Any = ax.get_figure(root=True)
        return figure
    if title is None and manner.width is None:
        title = _band_of(parts[measures[0]], frame, by_instance)
    with matplotlib.rc_context(PAGE if manner.width is None else PAPER):
        return _panels(parts, titles, styles, manner, title)


def _panels(
    parts: Mapping[str, list[polars.DataFrame]],
    titles: list[str],
    styles: Mapping[str, dict[str, Any]],
    manner: Manner,
    title: str | None,
) -> Figure:
    """A figure with a row of panels for each measure, and a legend beside or below them."""
    n_panels, longest = len(titles), max(len(manner.text(agent)) for agent in styles)
    n_columns = _columns(n_panels, len(parts), manner)
    n_rows = math.ceil(n_panels / n_columns)  # of each measure
    beside = 0.8 + 0.075 * longest
    width = 3.2 * n_columns + beside if manner.width is None else manner.width
    per_line = max(1, int(LETTERS * 1.4 * width / (longest + 7)))  # of a legend below
    height = 3.0 if manner.width is None else _height(manner.width / n_columns)
    below = 0.0 if manner.width is None else 0.16 * math.ceil(len(styles) / per_line)
    figure = NotebookFigure(
        figsize=(width, height * n_rows * len(parts) + below + 0.4 * (title is not None)),
        layout="constrained",
    )
    letters = int(1.1 * LETTERS * (3.2 if manner.width is None else width / n_columns))
    grid = figure.subplots(n_rows * len(parts), n_columns, squeeze=False)
    for measure, panels in zip(parts, grid.reshape(len(parts), -1), strict=True):
        for panel, part, name in zip(panels, parts[measure], titles, strict=False):
            _draw(panel, part, measure, styles, manner)
            panel.set_title("\n".join(textwrap.fill(line, letters) for line in name.split("\n")))
        for panel in panels[n_panels:]:
            panel.remove()
        if manner.width is not None:
            _label_outer(panels[:n_panels], n_columns, measure == [*parts][-1])
    if title is not None:
        letters = int(LETTERS * figure.get_figwidth())
        filled = [textwrap.fill(line, letters) for line in _literal(title).split("\n")]
        figure.suptitle("\n".join(filled), fontsize=11 if manner.width is None else None)
    plotted = [line for panel in figure.axes for line in panel.get_lines()]
    lines = {line.get_label(): line for line in reversed(plotted)}  # those of the first panel
    from_top = sorted(lines.values(), key=lambda line: -np.max(line.get_ydata()))
    if manner.width is None:
        figure.legend(handles=from_top, loc="outside right center", frameon=False)
    else:
        figure.legend(handles=from_top, loc="outside lower center", frameon=False, ncols=per_line)
    return figure


def _columns(n_panels: int, n_measures: int, manner: Manner) -> int:
    """The columns of a grid of panels for each measure: as asked for, or by the width. Where the
    figure would be taller than a page, panels become narrower.
    """
    if manner.columns is not None:
        return min(manner.columns, n_panels)
    n_columns = 2 if n_panels == 4 else min(n_panels, 3)
    if manner.width is None:
        return n_columns
    n_columns = min(n_columns, max(1, int(manner.width / NARROW)))
    for more in range(n_columns, min(n_panels, int(manner.width / NARROWEST)) + 1):
        n_columns = more
        if math.ceil(n_panels / more) * n_measures * _height(manner.width / more) <= TALLEST:
            break
    return n_columns


def _height(width: float) -> float:
    """The height in inches of a panel of some width, in a figure that has a width."""
    return max(0.75 * width, 1.9)


def _label_outer(panels: Any, n_columns: int, is_last: bool) -> None:
    """Leave out the labels of axes that the next panel to the left or below has, too.

    Args:
        panels: of a measure, row by row.
        n_columns: of the grid.
        is_last: whether no other measure is below.
    """
    labels = [panel.get_ylabel() for panel in panels]
    for place, panel in enumerate(panels):
        if place % n_columns and labels[place] == labels[place - 1]:
            panel.set_ylabel("")
        if place + n_columns < len(panels) or not is_last:
            panel.set_xlabel("")


def _normalised(frame: polars.DataFrame, labels: Sequence[str]) -> polars.DataFrame:
    """The rows with 1 minus the regret as a share of that of random lists, in its place.

    Raises:
        ValueError: no agent shows random lists, or some regret is unknown.
    """
    random = frame.filter(col("agent").is_in(labels))
    if random.is_empty() or without_regret(frame):
        raise ValueError("normalise needs the agent Random, and the regret of all environments")
    same = ["env", "instance", "step"]
    means = random.group_by(same).agg(col("regret").mean().alias("of random"))
    both = frame.join(means, on=same, how="left", maintain_order="left")
    return both.with_columns(regret=1 - col("regret") / col("of random")).drop("of random")


def _minus(rows: polars.DataFrame, manner: Manner, columns: Sequence[str]) -> polars.DataFrame:
    """The rows of the other agents, with the differences to the reference in the same runs."""
    same, rows = ["env", "instance", "run", "step"], comparable(rows)
    reference = rows.filter(agent=manner.reference).select(*same, *columns)
    both = rows.filter(col("agent") != manner.reference).join(
        reference, on=same, suffix=" of reference", maintain_order="left"
    )
    return both.with_columns(col(name) - col(f"{name} of reference") for name in columns)


def _band_of(parts: list[polars.DataFrame], frame: polars.DataFrame, by_instance: bool) -> str:
    """What the bands of a figure are over, in words."""
    runs, instances = (
        span(polars.concat(part[count] for part in parts)) for count in ("runs", "instances")
    )
    if by_instance or not several_instances(frame):
        return "One run" if runs == "1" else f"Mean and 95 % confidence band over {runs} runs"
    each = "one run" if runs == "1" else f"{runs} runs"
    return f"Mean and 95 % confidence band over {instances} instances ({each} each)"


def _title_of(rows: polars.DataFrame, manner: Manner) -> str:
    """The environment of a panel, and its instance or the number of instances."""
    instances = rows["instance"].unique().to_list()
    where = manner.names.get(instances[0], instances[0])
    where = where if len(instances) == 1 else f"mean over {len(instances)} instances"
    env = manner.names.get(rows["env"][0], rows["env"][0])
    return "\n".join(map(_literal, (env, where)))


def _draw(
    panel: Axes,
    part: polars.DataFrame,
    measure: str,
    styles: Mapping[str, dict[str, Any]],
    manner: Manner,
) -> None:
    """Draw the curves of a measure into a panel; reward in place of a regret that is unknown."""
    floor = -math.inf
    if measure == "regret":
        measure = "reward" if part["regret"].null_count() else "regret"
        if manner.log:
            floor = FLOOR
            panel.set(xscale="log", yscale="log")
    panel.set(xlabel="sessions", ylabel=manner.label(measure))
    shown = part.filter(col(measure) > floor)
    names = shown["agent"].unique(maintain_order=True).to_list()
    for agent in sorted(names, key=lambda name: name == manner.emphasis):
        curve = shown.filter(agent=agent)
        step, mean, half = (curve[name].to_numpy() for name in ("step", measure, f"{measure}_ci95"))
        # A line needs two points.
        dot: dict[str, Any] = {"marker": "o", "clip_on": False} if len(step) == 1 else {}
        thick = 3.0 if agent == manner.emphasis else 1.6
        panel.plot(step, mean, linewidth=thick, label=manner.text(agent), **dot, **styles[agent])
        low, high = np.maximum(mean - half, floor), mean + half
        panel.fill_between(step, low, high, color=styles[agent]["color"], alpha=0.2, linewidth=0)
    without_loss = [name for name in part["agent"].unique(maintain_order=True) if name not in names]
    if without_loss:
        text = f"no {measure}: {', '.join(map(manner.text, without_loss))}"
        panel.text(0.98, 0.03, text, transform=panel.transAxes, ha="right", fontsize="small")
    if floor > 0 and names:  # a band may reach down to the floor
        means = shown[measure].to_numpy()
        panel.set_ylim(means.min() / 1.5, means.max() * 1.5)
    if manner.reference is not None:
        _clip_random(panel, shown, measure, manner)
    panel.margins(x=0)
    panel.grid(which="major", color="0.9", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)


def _clip_random(panel: Axes, shown: polars.DataFrame, measure: str, manner: Manner) -> None:
    """Let the other agents rule the axis of differences, of which random lists leave nothing."""
    others = shown.filter(~col("agent").is_in(manner.random))
    if not others.is_empty():
        mean, half = (others[name].to_numpy() for name in (measure, f"{measure}_ci95"))
        half = np.nan_to_num(half.astype(float))
        low, high = min(0.0, np.min(mean - half)), max(0.0, np.max(mean + half))
        margin = 0.05 * (high - low or 1.0)
        panel.set_ylim(low - margin, high + margin)


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
