"""Figures of cumulative regret, with a panel for each environment or instance and another row of
panels for each additional metric.
"""

from __future__ import annotations

import io
import itertools
import math
import re
import textwrap
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import polars
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from polars import col

from ...core.text import shorten
from ...measure.metrics import is_share, is_sum
from ..results_folder import Cell
from .summaries import (
    OWN_USERS,
    RUN,
    by_window,
    count_runs,
    describe_units,
    differences,
    intervals,
    notes_by_agent,
    unit_means,
    with_units,
)

LETTERS_PER_INCH = 11  # characters per inch in a title
LETTERS_PER_AXIS_LINE = 26  # in a line of the label of a vertical axis
NARROW = 2.5  # smallest width of a panel in inches, if the figure has a given width
PAGE: dict[Any, Any] = {"axes.titlesize": 10, "legend.fontsize": 9}
PAPER: dict[Any, Any] = {"font.size": 8, "axes.titlesize": 8, "legend.fontsize": 8}
ZOOM = 1000
"""On logarithmic axes, the first thousandth of the sessions is left out, because all agents still
explore in these sessions.
"""
MIN_DRAWN_REGRET = 1e-3
"""Regret below this value is not drawn on a logarithmic axis, because such a value is a rounding
error or the regret of `Oracle`.
"""
CHANGE_LABEL = "users change"
FILES: dict[Any, Any] = {"svg.hashsalt": "clickgym", "pdf.fonttype": 42, "ps.fonttype": 42}
"""Settings for written files: reproducible element names in SVG, and TrueType fonts, because
publishers reject Type 3 fonts, which matplotlib embeds by default.
"""


# The palette of Okabe and Ito, which readers with colour-vision deficiency can distinguish, without
# its yellow, which is faint in print. After seven agents, the colours repeat with other dashes.
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
    """A figure that a notebook displays if the figure is the value of a cell.

    The figure is not registered with pyplot, which would keep the figure in memory, let other code
    draw into the figure, and display it a second time.
    """

    def _repr_png_(self) -> bytes:
        return figure_bytes(self, "png")


def line_styles(agents: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the colour and dash pattern of each agent: `LOOKS` in order, and grey for `Random`.

    Example:
        >>> styles = line_styles(["TopRank", "Random", "CascadeTS"])
        >>> [styles[agent]["color"] for agent in ("TopRank", "Random", "CascadeTS")]
        ['#0072B2', '#888888', '#D55E00']
    """
    others = (agent for agent in dict.fromkeys(agents) if agent != "Random")
    return {"Random": LOOK_OF_RANDOM, **dict(zip(others, itertools.cycle(LOOKS), strict=False))}


class PlotOptions(NamedTuple):
    """The options of `Results.plot`; the sweep's cells, which say when users change; the metrics
    whose mean per session is between 0 and 1; and the descriptions of users' own metrics, by name.
    """

    log: bool
    by_instance: bool
    reference: str | None
    emphasis: str | None
    names: Mapping[str, str]
    width: float | None
    measures: Sequence[str]
    cells: Sequence[Cell]
    shares: Container[str]
    descriptions: Mapping[str, str]

    def text(self, name: str) -> str:
        """Return the text that the figure shows for a name. Dollar signs are escaped, because
        matplotlib would read the text between two dollar signs as a formula.
        """
        text = self.names.get(name) or shorten(self.descriptions.get(name) or name)
        return text.replace("$", r"\$")


def regret_figure(rows: polars.DataFrame, options: PlotOptions) -> Figure:
    """Draw the mean cumulative regret with its 95 % band, and additional metrics per session.

    On logarithmic axes, a slope of 1 means linear regret, and a smaller slope means that the agent
    learns. In addition, agents whose regrets differ by a factor of a thousand fit into one panel.
    Several instances are averaged, or each instance has its own panel. If regret is unknown, the
    panel shows reward.

    Args:
        rows: the rows of a `Results` object.
        options: the options of the figure.

    Raises:
        ValueError: no other agent had the same users as the reference, or runs of an agent have
            different checkpoints.
    """
    _check_checkpoints(rows)
    panels = rows.partition_by(["env", "instance"] if options.by_instance else "env")
    styles = line_styles(rows["agent"].unique(maintain_order=True))
    labels = _legend_texts(rows, options)
    changes = [_changes_in(panel, options.cells) for panel in panels]
    entries = [*labels.values(), *([CHANGE_LABEL] if any(changes) else [])]
    layout = _layout(len(panels), entries, options)
    line_of: dict[str, Any] = {}  # the first line of each agent, for the legend
    marks: list[Any] = []  # a line where users change, for the legend
    counts = []
    with matplotlib.rc_context(PAGE if options.width is None else PAPER):
        figure = NotebookFigure(figsize=(layout.width, layout.height), layout="constrained")
        n_measures = len(options.measures)
        grid = figure.subplots(layout.n_rows * n_measures, layout.n_columns, squeeze=False)
        for measure, block in zip(options.measures, grid.reshape(n_measures, -1), strict=True):
            for axes in block[len(panels) :]:
                axes.remove()
            for axes, panel, sessions in zip(block, panels, changes, strict=False):
                panel = with_units(panel)
                curves = curves_of(panel, measure, options)
                counts.append(count_runs(panel.filter(step=panel["step"].max()), ["agent"]))
                for agent, line in _draw(axes, curves, measure, styles, options).items():
                    line.set_label(labels[agent])
                    line_of.setdefault(agent, line)
                mark = _mark_changes(axes, sessions or ())
                letters = int(1.1 * LETTERS_PER_INCH * layout.width / layout.n_columns)
                axes.set_title(_panel_title(panel, options, letters, sessions is None))
                if mark is not None:
                    marks = [mark]
        if not line_of:
            raise ValueError(
                f"no other agent had the same users as {options.reference}, so there are no "
                "differences to draw; choose another reference"
            )
        if options.width is None:
            units = polars.concat(counts)
            over, is_mixed = describe_units(units), (units["over"] == "families").all()
            band = "" if is_mixed else " and 95 % confidence band"
            title = "One run" if over == "one run" else f"Mean{band} over {over}"
            left_out = labels.keys() - line_of.keys() - {options.reference}
            if left_out:
                who = ", ".join(options.text(agent) for agent in labels if agent in left_out)
                title += f"; no difference: {who}"
            figure.suptitle(textwrap.fill(title, int(LETTERS_PER_INCH * layout.width)), fontsize=11)
        lines = sorted(line_of.values(), key=lambda line: -np.max(line.get_ydata()))
        figure.legend(
            handles=[*lines, *marks],
            frameon=False,
            loc="outside lower center",
            ncols=layout.legend_columns,
        )
    return figure


class _Layout(NamedTuple):
    """The layout of a figure: its size in inches, the rows and columns of panels for each measure,
    and the number of entries in a row of the legend.
    """

    width: float
    height: float
    n_rows: int
    n_columns: int
    legend_columns: int


def _layout(n_panels: int, labels: Sequence[str], options: PlotOptions) -> _Layout:
    """Return the layout of a figure with a legend and, if no width is given, a title."""
    if options.width is None:
        n_columns = 2 if n_panels == 4 else min(n_panels, 3)
        width, panel_height, title_height = max(2.7 * n_columns + 0.6, 4.5), 2.6, 0.45
        letters_per_inch = 1.2 * LETTERS_PER_INCH
    else:
        n_columns = max(1, min(int(options.width / NARROW), n_panels))
        width, title_height = options.width, 0.0
        panel_height = max(0.75 * width / n_columns, 1.9)
        letters_per_inch = 1.4 * LETTERS_PER_INCH
    longest_line = max(len(line) for label in labels for line in label.splitlines())
    most_lines = max(label.count("\n") for label in labels) + 1
    legend_columns = max(1, int(letters_per_inch * width / (longest_line + 7)))
    legend_height = 0.16 * most_lines * math.ceil(len(labels) / legend_columns)
    n_rows = math.ceil(n_panels / n_columns)
    height = panel_height * n_rows * len(options.measures) + legend_height + title_height
    return _Layout(width, height, n_rows, n_columns, legend_columns)


def _panel_title(
    panel: polars.DataFrame, options: PlotOptions, n_letters: int, has_own_changes: bool
) -> str:
    """Return a panel's title, its environment and instances, in lines of up to ``n_letters``.

    Args:
        panel: the rows of the panel.
        options: the options of the figure.
        n_letters: the number of letters in a line.
        has_own_changes: whether the users of each instance change at sessions of their own.
    """
    titles = [options.text(panel["env"][0])]
    if len(titles[0]) > n_letters:  # break a long title after the id first
        titles = titles[0].replace(":", ":\n", 1).splitlines()
    instances = panel["instance"].unique()
    if len(instances) > 1:
        titles.append(f"mean over {len(instances)} instances")
    elif (title := options.text(instances[0])) != OWN_USERS:
        titles.append(re.sub(r",(?=\S)", ", ", title))  # a line may end after each argument
    if has_own_changes:
        titles.append("users change at different times")
    return "\n".join(textwrap.fill(title, n_letters) for title in titles)


def _check_checkpoints(rows: polars.DataFrame) -> None:
    """Check that all runs that are averaged in one line have the same checkpoints."""
    runs = rows.group_by(*RUN, maintain_order=True).agg(col("step").sort())
    for (env, agent), part in runs.group_by("env", "agent", maintain_order=True):
        if part["step"].n_unique() > 1:
            raise ValueError(
                f"runs of {agent} in {env} have different checkpoints, so they cannot be "
                "averaged in one line; play all of them with the same checkpoints, or give the "
                "agent in each group of runs its own name"
            )


def _legend_texts(rows: polars.DataFrame, options: PlotOptions) -> dict[str, str]:
    """Return the legend text of each agent: the agent's name, and notes on its runs."""
    notes_of = notes_by_agent(rows)
    return {
        agent: textwrap.fill(f"{options.text(agent)} ({'; '.join(notes_of[agent])})", 30)
        if agent in notes_of
        else options.text(agent)
        for agent in rows["agent"].unique(maintain_order=True)
    }


# ------------------------------------------------------------------------------------------- panels


def curves_of(rows: polars.DataFrame, measure: str, options: PlotOptions) -> polars.DataFrame:
    """Return the curves of one panel, in the columns that `intervals` returns.

    For each agent and step, the columns contain the mean of a measure and the half-width of its
    interval. With a reference, the mean is that of the differences from the reference. Curves of
    regret also include the reward.
    """
    measures = ["regret", "reward"] if measure == "regret" else [measure]
    if measure != "regret":
        rows = by_window(rows)
    elif options.log:
        rows = rows.filter(col("step") * ZOOM >= col("step").max())
    by = ["env", "agent", "step"]
    if options.reference is None:
        return intervals(unit_means(rows, by, measures), by, measures)
    n_sessions = col("step") if measure == "regret" else 1
    gaps = differences(rows, options.reference, by, measures, n_sessions)
    return intervals(gaps, by, measures)


def _draw(
    axes: Axes,
    curves: polars.DataFrame,
    measure: str,
    styles: Mapping[str, dict[str, Any]],
    options: PlotOptions,
) -> dict[str, Any]:
    """Draw the curves of a measure, and return the line of each agent. If the measure is regret,
    but regret is unknown, the curves show reward.
    """
    is_regret, floor = measure == "regret", -math.inf
    if is_regret and curves["regret"].null_count():
        measure = "reward"
    if measure == "regret" and options.log and (curves[measure] > MIN_DRAWN_REGRET).any():
        floor = MIN_DRAWN_REGRET
        axes.set(xscale="log", yscale="log")
    label = options.text(measure)
    if is_regret:
        label = f"cumulative {label}"
    elif is_sum(measure) and not (measure in options.descriptions and measure in options.shares):
        label = f"{label} per session"
    label = textwrap.fill(label, LETTERS_PER_AXIS_LINE)
    if options.reference is not None:
        label += f"\nminus {options.text(options.reference)}"
    axes.set(xlabel="sessions", ylabel=label)
    points = curves.filter(col(measure) > floor)
    agents = points["agent"].unique(maintain_order=True).to_list()
    lines = {}
    # The emphasised line is drawn first, below the others.
    for agent in sorted(agents, key=lambda name: name != options.emphasis):
        look = {"linewidth": 3.0 if agent == options.emphasis else 1.4, **styles[agent]}
        columns = points.filter(agent=agent).select("step", measure, f"{measure}_ci95")
        step, mean, half = columns.to_numpy().T
        if len(step) == 1:  # draw a marker, because a line needs two points
            look |= {"marker": "o", "clip_on": False}
        [lines[agent]] = axes.plot(step, mean, label=options.text(agent), **look)
        low, high = np.maximum(mean - half, floor), mean + half
        is_between_0_and_1 = measure in options.shares or is_share(measure)
        if options.reference is None and measure == "regret":
            low = np.maximum(low, np.minimum(mean, 0.0))
        elif options.reference is None and is_between_0_and_1 and (mean <= 1.0).all():
            low, high = np.clip([low, high], 0.0, 1.0)
        axes.fill_between(step, low, high, color=look["color"], alpha=0.2, linewidth=0)
    missing = [name for name in curves["agent"].unique(maintain_order=True) if name not in agents]
    if missing:
        text = f"no {measure}: {', '.join(map(options.text, missing))}"
        axes.text(0.98, 0.03, text, transform=axes.transAxes, ha="right", fontsize="small")
    if floor > 0 and agents:  # limits without bands, because a band may reach down to the floor
        means = points[measure].to_numpy()
        axes.set_ylim(means.min() / 1.5, means.max() * 1.5)
    if axes.get_xscale() == "linear":  # long numbers of sessions would run into each other
        axes.locator_params(axis="x", nbins=4)
    axes.margins(x=0)
    axes.grid(which="major", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return lines


def _changes_in(panel: polars.DataFrame, cells: Sequence[Cell]) -> tuple[int, ...] | None:
    """Return the sessions at which the users of a panel change; None if the panel is the mean over
    instances whose users change at different sessions, because no line would apply to all of them.
    """
    env, instances = panel["env"][0], set(panel["instance"])
    changes = {cell.changes for cell in cells if cell.env == env and cell.instance in instances}
    return changes.pop() if len(changes) == 1 else None if changes else ()


def _mark_changes(axes: Axes, changes: Iterable[int]) -> Any:
    """Draw a dashed vertical line at each session at which the users of a panel change, above the
    grid and below the curves. Return one of the lines, or None.
    """
    first, last = axes.get_xlim()
    line = None
    for change in changes:
        if first < change < last:
            line = axes.axvline(
                change, color="0.4", linewidth=1.2, linestyle="--", zorder=0.9, label=CHANGE_LABEL
            )
    return line


# ------------------------------------------------------------------------------------------- files


def figure_bytes(figure: Figure, file_format: str) -> bytes:
    """Return the content of a figure's file. The same figure always gives the same bytes.

    Args:
        figure: the figure to convert.
        file_format: ``"png"``, ``"svg"``, ``"pdf"``, or another format supported by matplotlib.
    """
    date_keys = {"svg": "Date", "pdf": "CreationDate"}
    metadata = {date_keys[file_format]: None} if file_format in date_keys else None
    content = io.BytesIO()
    with matplotlib.rc_context(FILES):
        figure.savefig(content, format=file_format, dpi=150, metadata=metadata)
    return content.getvalue()
