"""Figure of the leaderboard: agents by ability, the darker the better."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from ...runner.reports.figures import COLOURS
from .leaderboard import Place, leaderboard
from .tasks import ABILITIES

__all__ = ["leaderboard_figure"]

DARK = 0.75
"""The score from which numbers are white."""


def leaderboard_figure() -> Figure:
    """Every agent that plays at least half of the tasks, from the highest overall score down, with its scores."""
    places = [place for place in leaderboard() if place.many and place.agent != "Oracle"]
    columns = _columns(places)
    scores = np.array([_scores(place, columns) for place in places])
    figure = Figure(figsize=(10, 0.8 + 0.27 * len(places)), layout="constrained")
    axes = figure.add_subplot()
    shades = LinearSegmentedColormap.from_list("scores", ["#ffffff", COLOURS[0]])
    axes.imshow(scores, cmap=shades, vmin=0.0, vmax=1.1, aspect="auto")
    for (row, column), score in np.ndenumerate(scores):
        _write_score(axes, row, column, score)
    axes.set_yticks(range(len(places)), [f"{place.agent}{' *' * bool(place.told)}" for place in places], fontsize=9)
    axes.set_xticks(range(1 + len(columns)), [name.replace("_", "\n") for name in ("overall", *columns)], fontsize=9)
    axes.tick_params(length=0, labelbottom=False, labeltop=True)
    axes.spines[:].set_visible(False)
    axes.axvline(0.5, color="white", linewidth=4)
    axes.set_xlabel("score: 0 = random lists, 1 = the best agent, logarithmic; * needs extra knowledge", fontsize=9)
    return figure


def _columns(places: Sequence[Place]) -> list[str]:
    """The abilities that some learner has."""
    abilities = {name for place in places if place.agent != "Random" for name in place.standing.abilities}
    return [name for name in ABILITIES if name in abilities]


def _write_score(axes: Axes, row: int, column: int, score: float) -> None:
    text = "–" if np.isnan(score) else f"{score:z.2f}"
    axes.text(column, row, text, ha="center", va="center", fontsize=8.5, color="white" if score > DARK else "black")


def _scores(place: Place, columns: Sequence[str]) -> list[float]:
    """The overall score of an agent, then those of its abilities; nan for one that it does not have."""
    overall, abilities, _ = place.standing
    return [overall.value, *(abilities[name].value if name in abilities else np.nan for name in columns)]
