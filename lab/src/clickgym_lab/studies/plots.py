"""Looks of agents, panels, curves with bands, legend and title: what the figures of the studies
share.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from clickgym.core.colours import COLOURS

from .study import Curves, Evidence, Values, estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:  # studies annotate with them, and who lists studies does not wait for matplotlib
    Axes = Figure = Any

Look = tuple[str, Any]
"""A colour, and dashes as matplotlib takes them."""
BLUE, ORANGE, GREEN, PURPLE, YELLOW, BLACK, SKY, GREY = COLOURS
SOLID, DASHED, DOTTED = "-", (0, (4, 1.5)), (0, (1, 1.2))
_OVERRIDES: dict[Look, str] = {
    (ORANGE, SOLID): "CascadeKLUCB CascadeUCB1 CMLinUCB",
    (ORANGE, DASHED): "CascadeKLUCB:feedback=first_click CascadeUCB1:feedback=first_click",
    (BLUE, SOLID): "BatchRank PBMPIE UBMLinUCB GLRCascadeKLUCB",
    (BLUE, DASHED): "PPO",
    (GREY, SOLID): "RankedExp3 RankedKLUCB C2UCB",
    (GREEN, SOLID): "TopRank CascadeDUCB PBMTS LinearTS DCMLinUCB DQN TopRank:delta=2e-07",
    (PURPLE, SOLID): "BubbleRank CascadeSWUCB PBMUCB PBMLinUCB RecurrentPPO",
    (BLACK, DOTTED): "Fixed",
    (SKY, SOLID): "BCMPTS MaskablePPO GRAB",
    (BLACK, SOLID): "PDGD CascadeVI PBMHB",
    (YELLOW, DOTTED): "Random",
    (YELLOW, SOLID): "UniRank CascadeKLUCB:c=0",
    (SKY, (0, (6, 1.5, 1, 1.5))): "CascadeTS",
    (GREY, DASHED): "EpsilonGreedy",
    (ORANGE, DOTTED): "DCMKLUCB A2C",
    (GREEN, (0, (8, 2))): "MixTS",
}
LOOKS: dict[str, Look] = {
    label: look for look, labels in _OVERRIDES.items() for label in labels.split()
}
"""Of the agents of the papers, which look the same in all figures; two readings of the same
algorithm share a colour.
"""
_AUTOMATIC: list[Look] = [
    (colour, dashes)
    for dashes in (
        (0, (6, 1.5, 1, 1.5)),
        (0, (8, 2)),
        (0, (6, 1, 1, 1, 1, 1)),
        SOLID,
        DASHED,
        DOTTED,
    )
    for colour in COLOURS
]
_TAKEN: WeakKeyDictionary[Figure, dict[str, Look]] = WeakKeyDictionary()


def grid(
    columns: int, rows: int = 1, width: float = 3.3, height: float = 2.9, labels: Sequence[str] = ()
) -> tuple[Figure, list[Axes]]:
    """A figure and its panels, row by row, each of so many inches; ``labels`` stand at the y axes,
    one for each row.
    """
    from matplotlib.figure import Figure  # slow to load

    figure = Figure(
        figsize=(max(width * columns + 2.2, 6.5), height * rows + 0.6), layout="constrained"
    )
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in panels:
        axes.grid(color="0.9", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    for axes, label in zip(panels[::columns], labels, strict=False):
        axes.set_ylabel(label)
    return figure, panels


def look_of(label: str, axes: Axes) -> Look:
    """How a curve is drawn: as `LOOKS` has it, or by itself; never as another curve of the same
    figure.
    """
    figure: Any = axes.get_figure()
    looks = _TAKEN.setdefault(figure, {})
    if label not in looks:
        choices = [LOOKS[label], *_AUTOMATIC] if label in LOOKS else _AUTOMATIC
        looks[label] = next((look for look in choices if look not in looks.values()), choices[0])
    return looks[label]


def style_of(label: str, axes: Axes) -> dict[str, Any]:
    """`look_of` as arguments of matplotlib."""
    return dict(zip(("color", "linestyle"), look_of(label, axes), strict=True))


def colour_of(label: str, axes: Axes) -> str:
    """The colour of `look_of`."""
    return look_of(label, axes)[0]


def band(
    axes: Axes,
    steps: NDArray[Any],
    values: Values,
    label: str,
    look: Look | None = None,
    least: float = 0.0,
) -> None:
    """The mean of ``(units, steps)`` values with its interval, the part above ``least`` of it."""
    colour, dashes = look_of(label, axes) if look is None else look
    axes.plot(
        steps, values.mean(axis=0), color=colour, linestyle=dashes, linewidth=1.5, label=label
    )
    if len(values) > 1:
        mean, half = np.transpose([estimate(column) for column in values.T])
        axes.fill_between(
            steps,
            np.maximum(mean - half, least),
            mean + half,
            color=colour,
            alpha=0.15,
            linewidth=0,
        )


def points(
    axes: Axes,
    places: Sequence[float],
    samples: Iterable[Values],
    agent: str,
    label: str | None = None,
) -> None:
    """Draw the means of samples as points on a line, with their 95 % intervals."""
    mean, half = np.transpose([estimate(values) for values in samples])
    look = {"marker": "o", "markersize": 3, "linewidth": 1.5, **style_of(agent, axes)}
    axes.errorbar(places, mean, half, label=agent if label is None else label, **look)


def bands(
    axes: Axes,
    curves: Curves,
    env: str,
    agents: Iterable[str],
    places: Any = slice(None),
    column: str = "regret",
) -> None:
    """The cumulative curves of several agents, with a checkpoint at each of some places among the
    steps.
    """
    for agent in agents:
        band(axes, curves.steps[places], curves.units(env, agent, column)[:, places], agent)


def regret_figure(
    evidence: Evidence, cases: Sequence[tuple[str, str, str]], n_columns: int, title: str
) -> Figure:
    """Cumulative regret from the 100th session on, a panel for each case: its title, part and
    environment.
    """
    n_rows = math.ceil(len(cases) / n_columns)
    figure, panels = grid(n_columns, n_rows, labels=n_rows * ["regret"])
    for axes, (name, part, env) in zip(panels, cases, strict=True):
        curves = evidence[part]
        bands(axes, curves, env, curves.agents, curves.steps >= 100)
        axes.set(xscale="log", yscale="log", title=name, xlabel="session")
    return finish(figure, panels, evidence, title)


def finish(
    figure: Figure,
    panels: Iterable[Axes],
    evidence: Evidence,
    title: str,
    intervals: str = "bands: 95 % intervals of the mean",
) -> Figure:
    """Legend of the curves in some panels, title, and what was averaged."""
    handles: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(
        list(handles.values()), list(handles), loc="outside right center", frameon=False, fontsize=8
    )
    sizes = []
    for curves in evidence.values():
        several = f"{len(curves.instances)} instances × " if len(curves.instances) > 1 else ""
        sizes.append(f"{several}{curves.n_runs} run{'s' if curves.n_runs > 1 else ''}")
    figure.suptitle(f"{title}\n({', '.join(dict.fromkeys(sizes))}; {intervals})", fontsize=10)
    return figure
