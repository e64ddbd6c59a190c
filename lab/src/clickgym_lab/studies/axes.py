"""What the studies of clicks as they come share: environments that differ in one argument, compared at the end of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .plots import Axes, look_of
from .study import Curves, Finding, PaperTable, estimate, number, ratio, versus

RANDOM = "Random"
BARS = "bars: 95 % intervals of the mean over queries"


def name_of_agent(label: str) -> str:
    """An agent without the module that it is from.

    Example:
        >>> name_of_agent("clickgym.lab.studies.churn:UntoldTopRank"), name_of_agent("TopRank")
        ('UntoldTopRank', 'TopRank')
    """
    module, colon, rest = label.partition(":")
    return rest if colon and "." in module else label


def times(
    curves: Curves, agent: str, env: str, low: float, high: float, base: str | None = None, other: str | None = None
) -> Finding:
    """Regret at the end as a multiple of that in another environment (``base``), or of that of another agent (``other``)."""
    share = ratio(curves.end_units(env, agent), curves.end_units(base or env, other or agent))
    return share.finding(f" times {curves.units_of_ends}", low, high)


def left(curves: Curves, agent: str, env: str, low: float, high: float) -> Finding:
    """Regret per session in the last hundredth of the horizon, as a share of that of random lists in the same sessions."""
    share = ratio(curves.final_units(env, agent), curves.final_units(env, RANDOM))
    return share.finding(f" of random lists’ {curves.units_of_ends}", low, high)


def less_at_last(curves: Curves, env: str, better: str, worse: str) -> Finding:
    """`less_in_the_end`, with both in percent of random lists' regret in the same sessions."""
    random = curves.final_units(env, RANDOM).mean()
    low, high = (100 * curves.final_units(env, agent) / random for agent in (better, worse))
    return versus(low, high, " % of random lists’", curves.units_of_ends)


def lines(
    axes: Axes, curves: Curves, columns: Sequence[str], series: Mapping[str, Sequence[tuple[str, str]]], base: str
) -> None:
    """Lines of regret at the end, in percent of the mean regret of random lists in the environment ``base``, with intervals.

    Args:
        axes: to draw into.
        curves: of the part.
        columns: what stands below them, one for each point of a line.
        series: of each line, by the agent whose look it has, environment and agent of each point.
        base: an environment.
    """
    from matplotlib.ticker import LogLocator  # slow to load

    random = curves.end_units(base, RANDOM).mean()
    for number_of_line, (name, points) in enumerate(series.items()):
        means, halves = np.transpose([estimate(100 * curves.end_units(*point) / random) for point in points])
        places = np.arange(len(points)) + 0.02 * (number_of_line - len(series) / 2)
        colour, dashes = look_of(name, axes)
        axes.plot(places, means, color=colour, linestyle=dashes, linewidth=1.4, label=name_of_agent(name))
        if np.isfinite(halves).all():
            axes.errorbar(places, means, halves, fmt="none", ecolor=colour, elinewidth=0.8, alpha=0.5)
    axes.set_xticks(range(len(columns)), columns, fontsize=8)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 3)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.minorticks_off()


def in_envs(envs: Mapping[str, str], agents: Sequence[str]) -> tuple[list[str], dict[str, list[tuple[str, str]]]]:
    """Columns and series of `lines` for several agents, each in several environments, which go by what is written below."""
    return list(envs), {agent: [(env, agent) for env in envs.values()] for agent in agents}


def table_of(curves: Curves, columns: Sequence[str], series: Mapping[str, Sequence[tuple[str, str]]], title: str) -> PaperTable:
    """Mean regret at the points of several lines, the line with the least regret at its first point first."""
    means = {name: [curves.end_units(*point).mean() for point in points] for name, points in series.items()}
    rows = [["agent", *(column.replace("\n", " ") for column in columns)]]
    rows += [[name_of_agent(name), *map(number, means[name])] for name in sorted(means, key=lambda name: means[name][0])]
    return title, rows
