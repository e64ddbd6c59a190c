"""The figure of a decision: how well models predict, how agents learn, what lists would earn, and whom to believe."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator
from numpy.typing import NDArray

from ...runner.reports.figures import COLOURS, DASHES
from ..goodness_of_fit import PATTERNS
from .decide import JUDGES
from .records import Candidate, Decision

INKS = {"light": ("#1b1f24", "#d5dbe1"), "dark": ("#e8eaed", "#3a424b")}
"""Of text and of lines, as on the page."""
MOST_GAINS = 12


def decision_figure(decision: Decision) -> Figure:
    """All panels, on paper."""
    figure = Figure(figsize=(10.5, 12), layout="constrained")
    for (title, draw), axes in zip(PANELS.items(), figure.subplots(3, 2).flat, strict=True):
        axes.set_title(title, fontsize=11)
        draw(decision, axes, "black")
        _tidy(axes, "0.9")
    return figure


def panel_svg(decision: Decision, title: str) -> dict[str, str]:
    """One of the `PANELS` as SVG, for a light and a dark page: drawn once, with other inks."""
    ink, line = INKS["light"]
    names = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    style: dict[Any, Any] = {"svg.hashsalt": "clickgym", "legend.framealpha": 0.0} | dict.fromkeys(names, ink)
    with matplotlib.rc_context(style):
        # The margins are given: to find them the figure would be drawn twice.
        figure = Figure(figsize=(5.2, 4.0))
        begin, end = MARGINS.get(title, (0.13, 0.98))
        axes = figure.subplots(gridspec_kw={"left": begin, "right": end, "bottom": 0.13, "top": 0.97})
        PANELS[title](decision, axes, ink)
        _tidy(axes, line)
        file = io.StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    light = file.getvalue()
    dark_ink, dark_line = INKS["dark"]
    return {"light": light, "dark": light.replace(ink, dark_ink).replace(line, dark_line)}


def _tidy(axes: Axes, line: str) -> None:
    axes.grid(which="major", color=line, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _looks(ink: str) -> Iterator[dict[str, Any]]:
    """Colours, and dashes when they run out; black is the ink of the page."""
    for dash in DASHES:
        for colour in COLOURS:
            yield {"color": ink if colour == "#000000" else colour, "linestyle": dash}


def _mark(estimator: str, ink: str) -> tuple[str, str]:
    """Colour and marker of an estimator, the same in all panels."""
    place = JUDGES.index(estimator)
    colour = COLOURS[place % len(COLOURS)]
    return ink if colour == "#000000" else colour, "os"[place // len(COLOURS)]


def _models(decision: Decision, axes: Axes, ink: str) -> None:
    for score, look in zip(decision.scores, _looks(ink), strict=False):
        ranks = np.arange(len(score.perplexity_by_rank)) + 1
        axes.plot(ranks, score.perplexity_by_rank, marker=".", label=f"{score.model}, {score.log_likelihood:.3f}", **look)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(xlabel="position", ylabel="perplexity of clicks (1 is perfect)")
    axes.legend(title="log-likelihood per session", fontsize="small", title_fontsize="small")


def _unexplained(decision: Decision, axes: Axes, ink: str) -> None:
    """Observed beside predicted click rates of the best model, by the groups of each pattern."""
    groups = decision.evidence.groups
    if not groups:
        return _nothing(axes, "no item was displayed often enough")
    for place, pattern in enumerate(PATTERNS):
        of_pattern = [group for name, group in groups if name == pattern]
        if of_pattern:
            predicted, observed, errors = np.array([(group.predicted, group.observed, group.error) for group in of_pattern]).T
            look: dict[str, Any] = {"color": COLOURS[1:][place], "markersize": 3, "linewidth": 0.6, "label": pattern}
            axes.errorbar(predicted, observed, yerr=1.96 * errors, fmt="os^Dv"[place], **look)
    axes.axline((0.0, 0.0), slope=1, color=ink, linewidth=0.8)
    axes.set(xlabel=f"click rate predicted by {decision.scores[0].model}", ylabel="held-out click rate, 95 %")
    axes.legend(fontsize="small")


def _grounds(decision: Decision, axes: Axes, ink: str) -> None:
    """Gains on the list in production: of logged lists as measured, of the proposal by the models that fit."""
    measured, judged = decision.evidence.measured[:MOST_GAINS], decision.evidence.judged
    if not measured and not judged:
        return _nothing(axes, "no other list can be judged")
    rows = [(f"logged, {each.sessions:,} sessions", each.difference, each.interval, COLOURS[1]) for each in measured]
    for each in judged:
        ends = each.difference - 1.96 * each.standard_error, each.difference + 1.96 * each.standard_error
        rows.append((f"proposed, by {each.model}", each.difference, ends, COLOURS[2]))
    for place, (_, difference, ends, colour) in enumerate(rows):
        axes.plot(ends, [place, place], color=colour, linewidth=1.5)
        axes.plot([difference], [place], "o", color=colour, markersize=4)
    axes.axvline(0.0, color=ink, linewidth=0.8)
    axes.set_yticks(range(len(rows)), [name for name, *_ in rows], fontsize="small")
    axes.set(xlabel=f"gain over the list in production ({decision.unit})", ylim=(len(rows) - 0.5, -0.5))


def _nothing(axes: Axes, words: str) -> None:
    axes.text(0.5, 0.5, words, ha="center", va="center", transform=axes.transAxes)
    axes.set(xticks=[], yticks=[])


def _agents(decision: Decision, axes: Axes, ink: str) -> None:
    for agent, look in zip(decision.regret, _looks(ink), strict=False):
        curve = decision.curves.filter(agent=agent)
        axes.plot(curve["step"], np.maximum(curve["regret"], 0.1), label=agent.replace("$", r"\$"), **look)
    axes.set(xlabel="session", ylabel=f"regret ({decision.unit.split(' per ')[0]})", xscale="log", yscale="log")
    for axis in (axes.xaxis, axes.yaxis):  # by default matplotlib typesets powers of ten as formulas, which takes long
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
        axis.set_minor_locator(NullLocator())
    axes.legend(fontsize="small")


def _lists(decision: Decision, axes: Axes, ink: str) -> None:
    candidates = decision.candidates
    names = [name for name in JUDGES if any(name in candidate.estimates for candidate in candidates)]
    step, rows = 0.8 / (len(names) + 2), np.arange(len(candidates))
    _predictions(decision, axes, rows - 0.4, step, ink)
    for place, name in enumerate(names, 1):
        _estimates(axes, candidates, name, (place + 1) * step - 0.4, ink)
    if decision.logged is not None:
        axes.axvline(decision.logged, color="#888888", linestyle=":", label="earned in the log")
    axes.set_yticks(rows, [textwrap.fill(candidate.name, 13) for candidate in candidates])
    axes.set(xlabel=decision.unit, ylim=(len(rows) - 0.5, -0.5))
    axes.legend(fontsize="x-small", loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)


def _predictions(decision: Decision, axes: Axes, rows: NDArray[np.floating[Any]], step: float, ink: str) -> None:
    """What the candidates earn by the users of the simulation, and in truth if that is known."""
    truths = [candidate.truth for candidate in decision.candidates if candidate.truth is not None]
    if truths:
        axes.plot(truths, rows + step / 2, "*", color=ink, linestyle="", label="truth")
    predicted = [candidate.predicted for candidate in decision.candidates]
    axes.plot(predicted, rows + step, "x", color=ink, linestyle="", label=f"predicted by {decision.scores[0].model}")


def _estimates(axes: Axes, candidates: Sequence[Candidate], name: str, height: float, ink: str) -> None:
    """What an estimator says of the candidates, each in its row."""
    able = [row for row, candidate in enumerate(candidates) if name in candidate.estimates]
    estimates = [candidates[row].estimates[name] for row in able]
    (lows, highs), (colour, marker) = np.array([each.interval for each in estimates]).T, _mark(name, ink)
    axes.hlines(np.array(able) + height, lows, highs, color=colour, linewidth=1.2)
    values = [each.value for each in estimates]
    axes.plot(values, np.array(able) + height, marker, color=colour, markersize=4, linestyle="", label=name)


def _checks(decision: Decision, axes: Axes, ink: str) -> None:
    if not decision.checks:
        return _nothing(axes, "no lists were logged often enough")
    earned, noise = np.array(decision.earned), np.array(decision.noise)
    axes.errorbar(earned, earned, xerr=1.96 * noise, color="#888888", fmt="none", label="earned, 95 %", linewidth=1)
    for check in decision.checks:
        colour, marker = _mark(check.estimator, ink)
        label = f"{check.estimator}, {check.error:.3f}"
        axes.plot(earned, check.estimated, marker, color=colour, linestyle="", markersize=4, label=label)
    axes.axline((earned.mean(), earned.mean()), slope=1, color=ink, linewidth=0.8)
    axes.set(xlabel=f"earned ({decision.unit})", ylabel="estimated from other sessions")
    axes.legend(title="mean error", fontsize="small", title_fontsize="small")


MARGINS = {"Lists beside the one in production": (0.34, 0.98), "What lists would have earned": (0.21, 0.74)}
"""Where the axes of a panel begin and end on the page, in shares of its width, where its labels are long."""

PANELS: dict[str, Callable[[Decision, Axes, str], None]] = {
    "Click models on held-out sessions": _models,
    "What the best model leaves unexplained": _unexplained,
    "Lists beside the one in production": _grounds,
    "Agents with the fitted users": _agents,
    "What lists would have earned": _lists,
    "Estimates of logged lists": _checks,
}
"""How to draw each panel, by its title, in the order of the way to a decision."""
