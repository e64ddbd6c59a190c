"""Figures of the scorecard: the scores of agents by ability (darker is better), and curves of built-in agents."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
import polars
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from polars import col

from clickgym.core.checks import check_choice
from clickgym.core.colours import COLOURS
from clickgym.runner.reports import Theory, regret_figure
from clickgym.runner.theory import BoundCurve, applicable_bounds

from .leaderboard import Place, leaderboard
from .played import Played
from .protocol import CURRENT, Protocol
from .reference import baselines, curves_of, first_lines
from .task import Task

MOST_CURVES = 8
"""So many lines of the first board that plays an ability are drawn, if none are named, and `Random`."""

DARK = 0.75
"""The score from which numbers are white."""


def leaderboard_figure(protocol: Protocol = CURRENT) -> Figure:
    """Draw the first board of a version, highest overall score first."""
    places = leaderboard(protocol)
    columns = [ability for ability in protocol.boards[0].abilities if ability not in protocol.playing]
    scores = np.array([_scores(place, columns) for place in places])
    figure = Figure(figsize=(11, 0.8 + 0.27 * len(places)), layout="constrained")
    axes = figure.add_subplot()
    shades = LinearSegmentedColormap.from_list("scores", ["#ffffff", COLOURS[0]])
    axes.imshow(scores, cmap=shades, vmin=0.0, vmax=1.1, aspect="auto")
    for (row, column), score in np.ndenumerate(scores):
        _write_score(axes, row, column, score)
    axes.set_yticks(range(len(places)), [place.agent for place in places], fontsize=9)
    axes.set_xticks(range(1 + len(columns)), [name.replace("_", "\n") for name in ("overall", *columns)], fontsize=8.5)
    axes.tick_params(length=0, labelbottom=False, labeltop=True)
    axes.spines[:].set_visible(False)
    axes.axvline(0.5, color="white", linewidth=4)
    axes.set_xlabel("score: 0 = random lists, 1 = the lowest regret known when the tasks were frozen, logarithmic", fontsize=9)
    return figure


def _write_score(axes: Axes, row: int, column: int, score: float) -> None:
    text = "–" if np.isnan(score) else f"{score:z.2f}"
    axes.text(column, row, text, ha="center", va="center", fontsize=8.5, color="white" if score > DARK else "black")


def _scores(place: Place, columns: Sequence[str]) -> list[float]:
    """The overall score of an agent, then those of its abilities; nan for one that it does not have."""
    overall, abilities = place.standing.overall, place.standing.abilities
    return [overall.value, *(abilities[name].value if name in abilities else np.nan for name in columns)]


# ------------------------------------------------------------------------------------------------------------------- curves


def curves_figure(ability: str, agents: Sequence[str] | None = None) -> Figure:
    """Draw the mean regret of built-in agents in an ability with its band: one panel for each click model.

    Lower bounds of the theory are drawn where one holds for all tasks of a panel.

    Args:
        ability: of the scorecard.
        agents: names of lines; None takes those that score highest, of each agent its better line, and `Random`.

    Raises:
        ValueError: as `baselines`.
    """
    names = list(agents or _leading(ability))
    results = baselines(ability, names)
    config = {**results.config, "agents": names, "per_instance": False}
    figure = regret_figure(results.frame, config, Theory(dict(_lower_bounds(ability, config["checkpoints"])), []))
    what = f"{ability}: {CURRENT.columns()[ability]}"
    source = f"clickgym {version('clickgym')}: clickgym bench --plot {ability}; scorecard, version {CURRENT.version}, {what}"
    figure.supxlabel(source, fontsize=6, color="0.4", x=0.01, ha="left")
    return figure


def card_figure(card: Played, beside: Sequence[str]) -> Figure:
    """Draw the mean regret of an agent and of built-in agents: one panel for each ability.

    Args:
        card: of the agent.
        beside: names of lines; in an ability they are drawn if they play all of these tasks.
    """
    tasks = card.table["task"].unique().implode()
    curves = {card.agent: card.curves.filter(col("task").is_in(tasks))}
    others = curves_of(card.protocol).filter(col("task").is_in(tasks))
    curves |= {name: others.filter(agent=name) for name in dict.fromkeys([*beside, "Random"]) if name != card.agent}
    abilities = [*card.standing.abilities]
    n_columns = min(4, len(abilities))
    n_rows = math.ceil(len(abilities) / n_columns)
    figure = Figure(figsize=(2.7 * n_columns, 2.2 * n_rows + 0.5), layout="constrained")
    panels = figure.subplots(n_rows, n_columns, squeeze=False).flat
    for panel, ability in itertools.zip_longest(panels, abilities):
        if ability is None:
            panel.remove()
        else:
            _draw_ability(panel, ability, {name: rows.filter(ability=ability) for name, rows in curves.items()})
    figure.supxlabel("sessions", fontsize=9)
    figure.supylabel("regret", fontsize=9)
    handles = [Line2D([], [], label=name.replace("$", r"\$"), **_look(i)) for i, name in enumerate(curves)]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 6), frameon=False, fontsize=9)
    return figure


def _draw_ability(panel: Axes, ability: str, curves: Mapping[str, polars.DataFrame]) -> None:
    """The means over tasks and runs, of those that play as many tasks as the first."""
    n_tasks = next(iter(curves.values()))["task"].n_unique()
    for i, rows in enumerate(curves.values()):
        if rows["task"].n_unique() == n_tasks:
            means = rows.group_by("step").agg(col("regret").mean()).sort("step").filter(col("regret") > 0)
            panel.plot(means["step"].to_numpy(), means["regret"].to_numpy(), **_look(i))
    panel.set(xscale="log", yscale="log")
    panel.set_title(ability.replace("_", " "), fontsize=10)
    panel.grid(which="major", color="0.9", linewidth=0.6)
    panel.tick_params(labelsize=8)
    panel.spines[["top", "right"]].set_visible(False)


def _look(i: int) -> dict[str, Any]:
    """The first is that of the card."""
    return {"color": COLOURS[i % len(COLOURS)], "linewidth": 1.4 if i else 2.6, "zorder": 2 if i else 3}


def _leading(ability: str) -> list[str]:
    """The lines that score highest in an ability, of each agent the better one, and `Random`."""
    check_choice("ability", ability, CURRENT.columns())
    CURRENT.check_anchors()
    board = next(board for board in CURRENT.boards if ability in CURRENT.columns(board))
    places = [place for place in leaderboard(CURRENT, board) if ability in place.standing.abilities]
    places.sort(key=lambda place: -place.standing.abilities[ability].value)
    return [*first_lines((place.agent for place in places), "Random")[:MOST_CURVES], "Random"]


def _lower_bounds(ability: str, steps: Sequence[int]) -> Iterator[tuple[tuple[str, str | None], list[BoundCurve]]]:
    """The mean of the lower bounds of each click model's tasks, where all have one; that of users who stay as they are."""
    tasks = [task for task in CURRENT.by_name.values() if task.ability == ability]
    for model in dict.fromkeys(task.click_model for task in tasks):
        bounds = [_lower_bound(task, steps) for task in tasks if task.click_model == model]
        yield (f"{model}Rank-v0", None), list(_mean_bound(bounds))


def _mean_bound(bounds: Sequence[BoundCurve | None]) -> Iterator[BoundCurve]:
    """The mean of some bounds, if there is none that is not there."""
    known = [bound for bound in bounds if bound is not None]
    if len(known) == len(bounds):
        yield BoundCurve(known[0].bound, "", np.mean([bound.values for bound in known], axis=0))


def _lower_bound(task: Task, steps: Sequence[int]) -> BoundCurve | None:
    """The lower bound of a task, if one holds for it: clicks come at once and are the users' own, and nobody has a log."""
    if ":" in task.env or task.log:
        return None
    curves = applicable_bounds(task.make(), {}, steps)[0]
    return curves[0] if curves else None
