"""Figures: cumulative regret against sessions with a panel for each environment, a row of panels
for each further metric, and the curve of a single run.
"""

from __future__ import annotations

import io
import math
import textwrap
import zlib
from base64 import b64encode
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import polars
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from polars import col

from ...core.checks import check_kind
from ...core.colours import COLOURS
from ...core.files import write_whole
from ...core.formats import visible
from ...envs import ENVIRONMENTS
from ..labels import PUBLISHED, parse_spec
from ..summaries import NOT_SUMMED, average, metrics_of, per_session

Config = dict[str, Any]
DASHES = ("-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)), (0, (3, 1, 1, 1, 1, 1)))
LOOKS = [{"color": colour, "linestyle": dash} for dash in DASHES for colour in COLOURS]
ZOOM = 1000
"""The first thousandth of the sessions, where all agents still explore, is left out."""
FLOOR = 1e-3
"""Regret below it is rounding error, or the Oracle's, and has no place on a logarithmic axis."""
FILES: dict[Any, Any] = {"svg.hashsalt": "clickgym", "pdf.fonttype": 42, "ps.fonttype": 42}
"""How files are written: the same names in every SVG, and fonts embedded as TrueType (publishers
refuse Type 3, the choice of matplotlib).
"""
SCREEN = 80
"""Pixels per inch, of a figure in a notebook."""
UNITS = {"clicks": "clicks", "any_click": "clicked lists", "satisfaction": "satisfied users"}


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
        return content.getvalue(), {"width": width * SCREEN, "height": height * SCREEN}


class _Panel(Axes):
    """The axes of a picture, which show it in a notebook."""

    def _repr_png_(self) -> Any:
        assert isinstance(self.figure, Picture)
        return self.figure._repr_png_()


def looks_of(agents: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The colour and the dashes of each agent, the same in every figure.

    A published agent has the look of its place in the registry. Any other label has one by its
    letters; where two agents of a figure would look alike, it takes the next that is free.

    Example:
        >>> looks = looks_of(["mine", "TopRank"])
        >>> looks["TopRank"] == looks_of(["TopRank", "Random"])["TopRank"] != looks["mine"]
        True
    """
    agents, published = list(dict.fromkeys(agents)), list(PUBLISHED)
    numbers = {agent: published.index(agent) for agent in agents if agent in PUBLISHED}
    for agent in agents:
        if agent not in numbers:
            number = zlib.crc32(agent.encode())
            free = [n for n in range(len(LOOKS)) if n not in numbers.values()] or [0]
            numbers[agent] = min(free, key=lambda n: (n - number) % len(LOOKS))
    return {agent: LOOKS[numbers[agent] % len(LOOKS)] for agent in agents}


def regret_figure(
    frame: polars.DataFrame,
    config: Config,
    *,
    title: str | None = None,
    ax: Axes | None = None,
    log: bool = True,
) -> Figure:
    """Draw the mean cumulative regret with its 95 % band, and the further metrics per session.

    On logarithmic axes the slope tells linear regret (1) from learning (below 1), and agents a
    thousand times apart share a panel. Several instances are averaged. A panel shows reward where
    regret is unknown.

    Args:
        frame: the rows of `Results`, or of a `Result`.
        config: of the results.
        title, ax, log: as in `Results.plot`.
    """
    check_kind("ax", ax, Axes | None, "axes of matplotlib")
    agents = frame["agent"].unique()
    rows = per_session(frame)
    if log:
        rows = rows.filter(col("step") * ZOOM >= frame["step"].max())
    measures = ["regret", *metrics_of(frame)]
    curves = average(rows, ("env", "agent", "step"), ["reward", *measures])
    parts = curves.partition_by("env", maintain_order=True)
    looks = looks_of([*config.get("agents", []), *agents.sort()])
    if ax is not None:
        if len(parts) > 1:
            raise ValueError(f"ax holds one environment, and there are {len(parts)}; see select")
        _draw(ax, parts[0], "regret", looks, log, config)
        ax.set_title("" if title is None else _literal(title))
        ax.legend(frameon=False, fontsize=9)
        figure: Any = ax.get_figure(root=True)
        return figure
    n_columns = 2 if len(parts) == 4 else min(len(parts), 3)
    n_rows = math.ceil(len(parts) / n_columns)  # of each measure
    legend_width = 0.8 + 0.075 * max(map(len, agents))
    figure = Picture(
        figsize=(3.2 * n_columns + legend_width, 3.0 * n_rows * len(measures) + 0.4),
        layout="constrained",
    )
    grid = figure.subplots(n_rows * len(measures), n_columns, squeeze=False)
    for measure, panels in zip(measures, grid.reshape(len(measures), -1), strict=True):
        for panel, part in zip(panels, parts, strict=False):
            _draw(panel, part, measure, looks, log, config)
            panel.set_title(_title_of(part["env"][0], frame), fontsize=10)
        for panel in panels[len(parts) :]:
            panel.remove()
    if title is None:
        n_runs = curves["runs"].unique().sort()
        several = f"{n_runs[0]} to {n_runs[-1]}" if len(n_runs) > 1 else str(n_runs[0])
        title = "One run" if several == "1" else f"Mean and 95 % confidence band of {several} runs"
    figure.suptitle(_literal(title), fontsize=11)
    drawn_lines = [line for panel in figure.axes for line in panel.get_lines()]
    lines = {line.get_label(): line for line in reversed(drawn_lines)}  # those of the first panel
    from_top = sorted(lines.values(), key=lambda line: -np.max(line.get_ydata()))
    figure.legend(handles=from_top, loc="outside right upper", frameon=False, fontsize=9)
    return figure


def plot_run(run: polars.DataFrame, ax: Axes | None = None, title: str | None = None) -> Axes:
    """Draw the curve of a single run, with the axes, colours and labels of `regret_figure`.

    Args:
        run: as `Result.to_frame` makes it.
        ax: what to draw into, beside the runs that are drawn already; None makes a figure.
        title: above the axes; None names environment and instance.
    """
    if ax is None:
        ax = Picture(figsize=(5.4, 3.6), layout="constrained").add_subplot(axes_class=_Panel)
    name = f"{run['env'][0]}, {run['instance'][0]}" if title is None else title
    before = ax.viewLim.frozen() if ax.get_lines() else None
    regret_figure(run, {}, ax=ax, title=name)
    if before is not None:  # what was drawn before stays in sight
        both = Bbox.union([before, ax.viewLim])
        ax.set(xlim=both.intervalx, ylim=both.intervaly)
    return ax


def unit_of(config: Config, env: str) -> str:
    """The unit of the regret of an environment; ``"reward"`` if it is unknown.

    Args:
        config: of the results, in which a label may stand for a spec.
        env: the label of the environment.

    Example:
        >>> unit_of({}, "PBMRank-v0"), unit_of({}, "DCMRank-v0:reward=satisfaction")
        ('clicks', 'satisfied users')
        >>> unit_of({}, "a label of your own")
        'reward'
    """
    name, arguments = parse_spec(config.get("envs", {}).get(env) or env)
    known = ENVIRONMENTS.get(name)
    reward = arguments.get("reward", known.default_reward if known else "")
    return UNITS.get(reward, "reward")


def _title_of(env: str, frame: polars.DataFrame) -> str:
    """The environment of a panel, and its instance or the number of instances."""
    instances = frame.filter(env=env)["instance"].unique().to_list()
    where = instances[0] if len(instances) == 1 else f"mean over {len(instances)} instances"
    return "\n".join(_literal(textwrap.fill(line, 38)) for line in (env, where))


def _draw(
    panel: Axes,
    part: polars.DataFrame,
    measure: str,
    looks: Mapping[str, dict[str, Any]],
    log: bool,
    config: Config,
) -> None:
    """Draw the curves of a measure into a panel; reward in place of a regret that is unknown."""
    env, floor, scale = part["env"][0], -math.inf, "log" if log else "linear"
    label = measure if measure in NOT_SUMMED else f"{measure} per session"
    if measure == "regret":
        measure = "reward" if part["regret"].null_count() else "regret"
        unit = f" ({unit_of(config, env)})" if measure == "regret" else ""
        label, floor = f"cumulative {measure}{unit}", FLOOR if log else -math.inf
        panel.set_yscale(scale)
    panel.set(xscale=scale, xlabel="sessions", ylabel=label)
    shown = part.filter(col(measure) > floor)
    names = shown["agent"].unique(maintain_order=True).to_list()
    for agent in names:
        curve = shown.filter(agent=agent)
        step, mean, half = (curve[name].to_numpy() for name in ("step", measure, f"{measure}_ci95"))
        # A line needs two points.
        dot: dict[str, Any] = {"marker": "o", "clip_on": False} if len(step) == 1 else {}
        panel.plot(step, mean, linewidth=1.6, label=_literal(agent), **dot, **looks[agent])
        low, high = np.maximum(mean - half, floor), mean + half
        panel.fill_between(step, low, high, color=looks[agent]["color"], alpha=0.2, linewidth=0)
    faultless = [name for name in part["agent"].unique(maintain_order=True) if name not in names]
    if faultless:
        text = f"no {measure}: {_literal(', '.join(faultless))}"
        panel.text(0.98, 0.03, text, transform=panel.transAxes, ha="right", fontsize=8)
    if label.startswith("cumulative") and names:
        amounts = shown[measure].to_numpy()  # means only, for a band may reach down to zero
        low, high = float(amounts.min()), float(amounts.max())
        if log:
            panel.set_ylim(low / 1.5, high * 1.5)
        else:
            panel.set_ylim(min(low, 0.0), 1.05 * high if high > FLOOR else max(high, 1.0))
    steps = part["step"].to_numpy()
    if len(set(steps)) > 1:
        panel.set_xlim(steps.min() if log else 0, steps.max())
    panel.grid(which="major", color="0.9", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)


def _literal(text: str) -> str:
    """The text without formulas: matplotlib would read one between two dollars."""
    return text.replace("$", r"\$")


# ------------------------------------------------------------------------------------------- files


def save_figure(
    figure: Figure, path: Path, *, pdf: bool = False, config: Config | None = None
) -> list[Path]:
    """Write a figure as ``path.png`` and ``path.svg``; the same figure gives the same bytes.

    Args:
        figure: any figure.
        path: without a suffix.
        pdf: as ``path.pdf``, too.
        config: of the results, for the metadata.

    Returns:
        The files.
    """
    files = [path.with_name(f"{path.name}.{kind}") for kind in ("png", "svg", *["pdf"] * pdf)]
    for file in files:
        write_figure(figure, file, config)
    return files


def write_figure(figure: Figure, path: Path, config: Config | None = None) -> None:
    """Write a figure in the format that its suffix names, whole or not at all.

    Args:
        figure: any figure.
        path: ``.png``, ``.svg``, ``.pdf``, or what else matplotlib writes.
        config: of the results; version and command go into the metadata of the file.

    Raises:
        ValueError: matplotlib writes no such files.
    """
    kind = path.suffix[1:].lower()
    if kind not in figure.canvas.get_supported_filetypes():
        raise ValueError(f"{path}: expected the suffix of a figure: .pdf, .svg, .png or the like")
    write_whole(path, drawn(figure, kind, config=config))


def drawn(
    figure: Figure, kind: str, *, transparent: bool = False, config: Config | None = None
) -> bytes:
    """A figure as the content of a file; the same figure gives the same bytes.

    Args:
        figure: any figure.
        kind: ``"png"``, ``"svg"``, ``"pdf"``, or what else matplotlib writes.
        transparent: without a background.
        config: as in `write_figure`.
    """
    for text in figure.findobj(Text):
        text.set_text(visible(text.get_text(), keep="\n"))
    source = f"clickgym {config['clickgym']}: {config['command']}" if config else None
    metadata = {
        "png": {"Software": None, "Description": source},
        "svg": {"Date": None, "Description": source},
        "pdf": {"CreationDate": None, "Subject": source},
    }
    content = io.BytesIO()
    with matplotlib.rc_context(FILES):
        figure.savefig(
            content, format=kind, dpi=150, metadata=metadata.get(kind), transparent=transparent
        )
    return content.getvalue()


def picture(figure: Figure) -> str:
    """A figure as the address of a picture within a page, which has the names of its parts to
    itself.

    Args:
        figure: any figure; it has no background, so that a dark page can turn it around.
    """
    content = b64encode(drawn(figure, "svg", transparent=True)).decode()
    return f"data:image/svg+xml;base64,{content}"
