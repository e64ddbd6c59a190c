"""Leaderboard: one row for each agent, one column for each ability."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from ...core.formats import clock
from ...runner.make import agent_maker
from .reference import reference
from .score import Standing, standing, tasks
from .tasks import ABILITIES

__all__ = ["HEADER", "Place", "leaderboard", "place_of", "row_of"]

HEADER = ("agent", "overall", "tasks", *(name.replace("_", " ") for name in ABILITIES), "is told", "made for", "time")
HALF = 0.5
"""Whoever plays fewer of the tasks stands below all who play more: an overall score is over the tasks of an agent."""


class Place(NamedTuple):
    """A line of the leaderboard.

    Attributes:
        agent: what it is called.
        standing: its scores.
        coverage: the share of the tasks that it plays.
        told: what it is told of the environment.
        click_models: those that it is made for.
        seconds: of one processor, for all its runs.
    """

    agent: str
    standing: Standing
    coverage: float
    told: tuple[str, ...]
    click_models: str
    seconds: float

    @property
    def many(self) -> bool:
        """Whether it plays at least half of the tasks."""
        return self.coverage >= HALF


def place_of(agent: str, found: Standing, told: tuple[str, ...], click_models: str, seconds: float) -> Place:
    """The line of an agent."""
    return Place(agent, found, found.n_tasks / len(tasks()), told, click_models, seconds)


@cache
def leaderboard() -> list[Place]:
    """The agents of the reference, from the highest overall score down; those that play fewer than half of the tasks last.

    Example:
        >>> leaderboard()[-1].many
        False
    """
    places = []
    for (name,), rows in reference().group_by(["agent"], maintain_order=True):
        maker = agent_maker(str(name))[0]
        knowledge, models = tuple(getattr(maker, "told", {})), getattr(maker, "click_models", "any")
        places.append(place_of(str(name), standing(rows), knowledge, models, float(rows["seconds"].sum())))
    return sorted(places, key=lambda place: (not place.many, -place.standing.overall.value))


def row_of(place: Place) -> tuple[str, ...]:
    """The cells under `HEADER`."""
    abilities = place.standing.abilities
    scores = [f"{abilities[name].value:z.2f}" if name in abilities else "–" for name in ABILITIES]
    knowledge, models = ", ".join(place.told) or "–", place.click_models
    return (
        place.agent, str(place.standing.overall), str(place.standing.n_tasks), *scores, knowledge, models, clock(place.seconds)
    )  # fmt: skip
