"""What the studies of clicks as they come share: environments that differ in one argument, compared at the end of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .plots import look_of
from .study import Curves, Finding, PaperTable, Values, estimate, number, ratio, versus

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BARS", "RANDOM", "left", "less_at_last", "lines", "name_of_agent", "share_of_random", "table_of", "times"]

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
    below = curves.end_units(env if base is None else base, agent if other is None else other)
    share = ratio(curves.end_units(env, agent), below)
    return Finding(f"{share} times {curves.units_of_ends}", share.within(low, high))


def left(curves: Curves, agent: str, env: str, low: float, high: float) -> Finding:
    """Regret per session in the last hundredth of the horizon, as a share of that of random lists in the same sessions."""
    share = ratio(curves.final_units(env, agent), curves.final_units(env, RANDOM))
    return Finding(f"{share} of random lists’ {curves.units_of_ends}", share.within(low, high))


def less_at_last(curves: Curves, env: str, better: str, worse: str) -> Finding:
    """`less_in_the_end`, with both in percent of random lists' regret in the same sessions."""
    random = curves.final_units(env, RANDOM).mean()
    low, high = (100 * curves.final_units(env, agent) / random for agent in (better, worse))
    return versus(low, high, " % of random lists’", curves.units_of_ends)


def share_of_random(curves: Curves, env: str, agent: str, base: str) -> Values:
    """``(n,)`` regret at the end, in percent of the mean regret of random lists in the environment ``base``."""
    return 100 * curves.end_units(env, agent) / curves.end_units(base, RANDOM).mean()


def lines(axes: Axes, curves: Curves, envs: Mapping[str, str], agents: Sequence[str], base: str) -> None:
    """For each agent `share_of_random` in several environments side by side, with its interval.

    Args:
        axes: to draw into.
        curves: of the part.
        envs: environments by what is written below them.
        agents: whose lines are drawn.
        base: whose random lists are 100 %.
    """
    for agent in agents:
        results = [estimate(share_of_random(curves, env, agent, base)) for env in envs.values()]
        colour, dashes = look_of(agent, axes)
        means, halves = np.transpose(results)
        places = np.arange(len(envs)) + 0.02 * (list(agents).index(agent) - len(agents) / 2)
        axes.plot(places, means, color=colour, linestyle=dashes, linewidth=1.4, label=name_of_agent(agent))
        if np.isfinite(halves).all():
            axes.errorbar(places, means, halves, fmt="none", ecolor=colour, elinewidth=0.8, alpha=0.5)
    axes.set_xticks(range(len(envs)), list(envs), fontsize=8)
    axes.set_yscale("log")
    axes.set_yticks([1, 3, 10, 30, 100], ["1", "3", "10", "30", "100"])
    axes.minorticks_off()


def table_of(curves: Curves, envs: Mapping[str, str], agents: Sequence[str], title: str) -> PaperTable:
    """Mean regret of each agent in each environment, the least in the first environment first."""
    rows = [["agent", *(name.replace("\n", " ") for name in envs)]]
    for agent in sorted(agents, key=lambda agent: curves.end_units(next(iter(envs.values())), agent).mean()):
        rows.append([name_of_agent(agent), *(number(curves.end_units(env, agent).mean()) for env in envs.values())])
    return title, rows
