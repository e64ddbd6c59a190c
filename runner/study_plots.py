"""The papers' figures with our data, one function per study."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from .plots import COLOURS
from .studies import (
    ADAPTIVE,
    BUBBLE,
    BUBBLE_AGENTS,
    CHANGING,
    CHI_MIN,
    CM,
    CONVERGED,
    FIRST,
    LAGREE,
    LAGREE_AGENTS,
    LAST,
    PANELS,
    PBM,
    STUBBORN,
    ZOGHI_AGENTS,
    Curves,
    Evidence,
    estimate,
    final,
    lower_bound,
    regression,
    short,
)

__all__ = ["FIGURES"]

BLUE, ORANGE, GREEN, PURPLE, YELLOW, BLACK, SKY, GREY = COLOURS
LOOKS: dict[str, tuple[str, Any]] = {
    LAST: (ORANGE, "-"),
    FIRST: (ORANGE, (0, (4, 1.5))),
    "BatchRank": (BLUE, "-"),
    "RankedExp3": (GREY, "-"),
    "TopRank": (GREEN, "-"),
    "BubbleRank": (PURPLE, "-"),
    "Fixed": (BLACK, (0, (1, 1.2))),
    "CascadeDUCB": (GREEN, "-"),
    "CascadeSWUCB": (PURPLE, "-"),
    "PBMPIE": (BLUE, "-"),
    "PBMTS": (GREEN, "-"),
    "BCMPTS": (SKY, "-"),
    "PBMUCB": (PURPLE, "-"),
    "RankedKLUCB": (GREY, "-"),
    "CascadeUCB1": (ORANGE, "-"),
    "CascadeUCB1:feedback=first_click": (ORANGE, (0, (4, 1.5))),
}
"""An agent looks the same in all figures; the two readings of several clicks share a colour."""

Values = NDArray[np.float64]


def _zoghi_fig1(evidence: Evidence) -> Figure:
    figure, panels = _panels(3)
    for axes, (name, (env, query)) in zip(panels, PANELS.items(), strict=True):
        _per_session(axes, evidence[f"zoghi-fig1-{name}"], env)
        axes.set_title(f"({name}) {short(env)}, {query}", fontsize=10)
    panels[0].set_ylabel("regret per session")
    return _finish(figure, panels, evidence, "Regret per session")


def _zoghi_fig2(evidence: Evidence) -> Figure:
    curves = evidence["zoghi-fig2"]
    figure, panels = _panels(2, 2)
    for axes, env in zip(panels[:2], (CM, PBM), strict=True):
        _per_session(axes, curves, env)
        axes.set_title(short(env), fontsize=10)
    panels[0].set_ylabel("regret per session")
    least = 1e-6  # and everything below
    edges = np.geomspace(least, 1, 25)
    for axes, env in zip(panels[2:], (CM, PBM), strict=True):
        for agent in ZOGHI_AGENTS:
            ends = np.maximum(final(curves)(curves.runs(env, agent)).ravel(), least)
            shares, _ = np.histogram(ends, edges)
            colour, dashes = LOOKS[agent]
            axes.stairs(shares / len(ends), edges, color=colour, linestyle=dashes, linewidth=1.5)
        axes.axvline(CONVERGED, color="black", linewidth=0.8, linestyle=":")
        axes.set(xscale="log", xlabel="regret per session at the end", xlim=(least, 1))
    panels[2].set_ylabel("share of the runs")
    return _finish(figure, panels[:2], evidence, "Regret per session")


def _per_session(axes: Axes, curves: Curves, env: str) -> None:
    for agent in ZOGHI_AGENTS:
        _band(axes, curves.steps[curves.windows], curves.window_rates(curves.units(env, agent)), agent)
    axes.axhline(CONVERGED, color="black", linewidth=0.8, linestyle=":")
    axes.set_yscale("symlog", linthresh=1e-4)  # linear below, for a run that shows the best list has no regret
    axes.set(xlabel="session", ylim=(0, 2), xlim=(0, curves.horizon))
    axes.ticklabel_format(axis="x", style="sci", scilimits=(0, 0), useMathText=True)


def _bubble_fig1(evidence: Evidence) -> Figure:
    return _bubble(evidence, "regret", BUBBLE_AGENTS, "cumulative regret", "Regret of the first five positions")


def _bubble_fig2(evidence: Evidence) -> Figure:
    agents = [agent for agent in BUBBLE_AGENTS if agent not in ("BubbleRank", "Fixed")]  # these never violate it
    return _bubble(evidence, "violations", agents, "cumulative violations", "Violations of the safety constraint")


def _bubble(evidence: Evidence, column: str, agents: Sequence[str], label: str, title: str) -> Figure:
    curves = evidence["bubble"]
    figure, panels = _panels(3)
    for axes, env in zip(panels, BUBBLE, strict=True):
        late = curves.steps * 5000 >= curves.horizon
        for agent in agents:
            _band(axes, curves.steps[late], curves.units(env, agent, column)[:, late], agent)
        axes.set(xscale="log", yscale="log", title=short(env), xlabel="session")
        axes.set_ylim(bottom=max(axes.get_ylim()[0], 0.1))
    panels[0].set_ylabel(label)
    return _finish(figure, panels, evidence, title)


def _bubble_fig3(evidence: Evidence) -> Figure:
    curves = evidence["bubble-fig3-pairs"]
    figure, panels = _panels(4)
    for axes, env in zip(panels, BUBBLE, strict=False):
        wrong, regret, slope, _ = regression(curves, env)
        axes.plot(wrong, regret, ".", color=PURPLE, markersize=4, alpha=0.6)
        ends = np.array([wrong.min(), wrong.max()])
        axes.plot(ends, regret.mean() + slope.mean * (ends - wrong.mean()), color=BLACK, linewidth=1.2)
        axes.set(title=short(env), xlabel="wrong pairs in the initial list, |V_0|")
    panels[0].set_ylabel(f"regret after {curves.horizon:,} sessions")
    curves = evidence["bubble-fig3-chi"]
    shades = (PURPLE, ORANGE, GREEN, YELLOW, BLUE)
    for instance, colour in zip(CHI_MIN, shades, strict=True):
        values = curves.units(PBM, "BubbleRank", instance=instance)
        _band(panels[3], curves.steps, values, instance.rpartition(":")[2], (colour, "-"))
    panels[3].set(title="PBM, examination 0.5^i at the end", xlabel="session", ylabel="regret")
    panels[3].ticklabel_format(axis="x", style="sci", scilimits=(0, 0), useMathText=True)
    return _finish(figure, panels[3:], evidence, "Regret of BubbleRank")


def _bubble_fig4(evidence: Evidence) -> Figure:
    curves = evidence["bubble"]
    figure, panels = _panels(3)
    for axes, env in zip(panels, BUBBLE, strict=True):
        places = np.unique(np.searchsorted(curves.steps, np.geomspace(100, curves.horizon, 25).round()))
        for agent in ("BubbleRank", "BatchRank", "TopRank", "Fixed"):
            ends = curves.units(env, agent, "ndcg")[:, places]
            rates = np.diff(ends, prepend=0.0) / np.diff(curves.steps[places], prepend=0)
            _band(axes, curves.steps[places], rates, agent)
        axes.set(xscale="log", title=short(env), xlabel="session", ylim=(0.5, 1.01))
    panels[0].set_ylabel("NDCG@5 per session")
    return _finish(figure, panels, evidence, "NDCG@5")


def _nonstat_fig1(evidence: Evidence) -> Figure:
    curves = evidence["nonstat-fig1"]
    figure, panels = _panels(1)
    for agent in (*ADAPTIVE, *STUBBORN):
        _band(panels[0], curves.steps, curves.units(CHANGING, agent), agent)
    for start in range(10_000, curves.horizon, 20_000):
        panels[0].axvspan(start, start + 10_000, color="0.93", zorder=0)
    panels[0].set(
        xlabel="session (grey: three other items attract with 0.9)", ylabel="cumulative regret", xlim=(0, curves.horizon)
    )
    return _finish(figure, panels, evidence, "Regret where the users change")


def _pbm_synthetic(evidence: Evidence) -> Figure:
    figure, panels = _panels(2)
    for axes, part in zip(panels, LAGREE, strict=True):
        curves = evidence[part]
        late = curves.steps >= 10
        for agent in LAGREE_AGENTS:
            _band(axes, curves.steps[late], curves.units(PBM, agent)[:, late], agent)
        bound = lower_bound(curves)
        axes.plot(curves.steps[late], bound[late], color="black", linewidth=1.2, linestyle=":", label="lower bound (Theorem 6)")
        axes.set(xscale="log", title=curves.instances[0], xlabel="session")
        shown = [estimate(curves.units(PBM, agent)[:, -1]).mean for agent in ("PBMUCB", "BCMPTS", "PBMPIE", "PBMTS")]
        axes.set_ylim(0, 1.6 * max(*shown, bound[-1]))  # an agent that does not learn leaves the panel
    panels[0].set_ylabel("cumulative regret")
    return _finish(figure, panels, evidence, "Regret beside the lower bound")


FIGURES: dict[str, Callable[[Evidence], Figure]] = {
    "zoghi-fig1": _zoghi_fig1,
    "zoghi-fig2": _zoghi_fig2,
    "bubble-fig1": _bubble_fig1,
    "bubble-fig2": _bubble_fig2,
    "bubble-fig3": _bubble_fig3,
    "bubble-fig4": _bubble_fig4,
    "nonstat-fig1": _nonstat_fig1,
    "pbm-synthetic": _pbm_synthetic,
}
"""The figure of each study, from what it measured."""


# ------------------------------------------------------------------------------------------------------------------ shared


def _panels(columns: int, rows: int = 1) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(max(3.3 * columns + 2.2, 6.5), 2.9 * rows + 0.6), layout="constrained")
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in panels:
        axes.grid(color="0.9", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    return figure, panels


def _band(axes: Axes, steps: NDArray[np.int64], values: Values, label: str, look: tuple[str, Any] | None = None) -> None:
    """The mean of ``(units, steps)`` values with its interval."""
    colour, dashes = LOOKS[label] if look is None else look
    axes.plot(steps, values.mean(axis=0), color=colour, linestyle=dashes, linewidth=1.5, label=label)
    if len(values) > 1:
        mean, half = np.transpose([estimate(column) for column in values.T])
        axes.fill_between(steps, np.maximum(mean - half, 0), mean + half, color=colour, alpha=0.15, linewidth=0)


def _finish(figure: Figure, panels: Iterable[Axes], evidence: Evidence, title: str) -> Figure:
    """Legend, title, and what was averaged."""
    handles, labels = next(iter(panels)).get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=8)
    sizes = []
    for curves in evidence.values():
        runs = len(curves.table["run"].unique())
        sizes.append(f"{len(curves.instances)} instances × {runs} runs" if len(curves.instances) > 1 else f"{runs} runs")
    figure.suptitle(f"{title}\n({', '.join(dict.fromkeys(sizes))}; bands: 95 % intervals of the mean)", fontsize=10)
    return figure
