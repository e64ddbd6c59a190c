"""Curves of built-in agents in an ability of the scorecard."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from matplotlib.figure import Figure
from polars import col

from clickgym.runner.reports import regret_figure

from .protocol import CURRENT
from .reference import baselines, reference

MOST_CURVES = 8
"""So many agents are drawn, if none are named, and `Random`."""


def curves_figure(ability: str, agents: Sequence[str] | None = None) -> Figure:
    """Draw the mean regret of built-in agents in an ability with its band: one panel for each click
    model.

    Args:
        ability: of the scorecard.
        agents: names; None takes those that score highest, and `Random`.

    Raises:
        ValueError: as `baselines`.
    """
    names = list(agents or _leading(ability))
    results = baselines(ability, names)
    figure = regret_figure(
        results.frame, {**results.config, "agents": names, "per_instance": False}
    )
    what = f"{ability}: {CURRENT.abilities[ability]}"
    source = f"clickgym {version('clickgym')}: clickgym bench --plot {ability}; scorecard, {what}"
    figure.supxlabel(source, fontsize=6, color="0.4", x=0.01, ha="left")
    return figure


def _leading(ability: str) -> list[str]:
    """The agents that score highest in an ability, and `Random`; the baselines that are told the
    best list are left out.
    """
    rows = reference().filter(col("ability") == ability, ~col("agent").is_in(["Oracle", "Random"]))
    means = (
        rows.group_by("agent")
        .agg(col("score").mean())
        .sort("score", "agent", descending=[True, False])
    )
    return [*means["agent"].head(MOST_CURVES).to_list(), "Random"]
