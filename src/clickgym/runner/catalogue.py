"""Catalogues of agents, environments, instances and metrics, each with a line about it."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from .. import envs
from ..envs import CONTEXTUAL, ENVIRONMENTS, MEMORY
from .labels import PUBLISHED
from .make import player_of
from .metrics import DERIVED, METRICS

Row = dict[str, str]
"""What is known of something: ``name``, ``about``, and whatever else."""


NEEDS = ("nothing", "a list", "examination", "features", "features and examination", "state")
"""What the published agents need beside clicks, in the order of tables."""
OF_USERS = {
    "initial_ranking": "a list",
    "optimal_ranking": "a list",
    "examination": "examination",
    "browsing": "examination",
    "mean_sessions": "state",
    "click_rewards": "state",
    "users": "the click model",
}
"""What an agent needs to know of the users, by the source that its class names."""


class Catalogue(dict[str, str]):
    """Names with one line of description each; a terminal and a notebook show them as a table.

    Args:
        rows: one dict for each name: ``name``, ``about``, and further facts, the same for all.
        group: the fact by which consecutive rows are grouped, such as ``"needs"``; "" for none.

    Attributes:
        rows, group: as given; ``polars.DataFrame(catalogue.rows)`` makes a table of it.

    Example:
        >>> Catalogue([{"name": "a", "about": "the first"}, {"name": "bc", "about": "the second"}])
        a   the first
        bc  the second
    """

    def __init__(self, rows: Iterable[Mapping[str, str]], group: str = "") -> None:
        self.rows = [dict(row) for row in rows]
        self.group = group
        super().__init__((row["name"], row["about"]) for row in self.rows)

    def __repr__(self) -> str:
        indent = " " * 2 * bool(self.group)
        margin = len(indent) + max(map(len, self), default=0) + 2
        width = max(shutil.get_terminal_size().columns, margin + 20)

        def line(row: Row) -> str:
            first = f"{indent}{row['name']}".ljust(margin)
            return textwrap.fill(
                row["about"], width, initial_indent=first, subsequent_indent=" " * margin
            )

        groups = groupby(self.rows, key=lambda row: row.get(self.group, ""))
        return "\n\n".join(
            "\n".join([*([f"{self.group} {what}"] if self.group else []), *map(line, rows)])
            for what, rows in groups
        )


def needs(agent: Any) -> str:
    """The extra knowledge that an agent's class requires beside clicks; for published agents one of
    `NEEDS`.

    Args:
        agent: the class; the required arguments of its constructor decide.

    Example:
        >>> from clickgym.agents import BubbleRank, PBMLinUCB
        >>> needs(PBMLinUCB), needs(BubbleRank)  # which has a list of its own if it is given none
        ('features and examination', 'nothing')
    """
    player = player_of(agent)
    observed = [{"n_states": "state", "n_features": "features"}[size] for size in player.observes]
    required = [
        OF_USERS.get(source, source)
        for key, source in player.requires.items()
        if key in player.required
    ]
    return " and ".join(dict.fromkeys([*observed, *required])) or "nothing"


def list_agents() -> Catalogue:
    """List all agents by name: the published algorithms and generic reinforcement learning.

    `run` and ``clickgym run --agents`` take these names.

    Returns:
        The names with a description, in groups by what they need. The ``rows`` also have the
        ``paper``, the ``click_models`` for which an algorithm is made, what it ``needs`` beside
        clicks, and what the environment gives it (``requires``).

    Example:
        >>> print(list_agents()["Random"])
        Random: show a uniformly random list in every session
    """
    agents: Mapping[str, Any] = PUBLISHED
    rows = (
        {
            "name": name,
            "about": _summary(agent),
            "paper": agent.paper,
            "click_models": agent.click_models,
            "needs": needs(agent),
            "requires": ", ".join(getattr(agent, "requires", {})),
        }
        for name, agent in agents.items()
    )
    return Catalogue(sorted(rows, key=lambda row: NEEDS.index(row["needs"])), group="needs")


def list_environments() -> Catalogue:
    """List the ids of the package and those that were registered by `register_click_model`, with their users.

    Example:
        >>> "PBMRank-v0" in list_environments()
        True
    """
    ids = ENVIRONMENTS | CONTEXTUAL | MEMORY
    return Catalogue(
        {"name": name, "about": environment.about} for name, environment in ids.items()
    )


def list_instances() -> Catalogue:
    """List the names of instances; see `clickgym.envs.load_instance`.

    Example:
        >>> print(list_instances()["lagree2016-small"])
        Lagrée 2016: 5 items, 3 positions (PBM)
    """
    return Catalogue(
        {"name": name, "about": about} for name, about in envs.list_instances().items()
    )


def list_metrics() -> Catalogue:
    """List the metrics that `run` and `sweep` can measure beside regret, reward and clicks.

    Example:
        >>> ", ".join(list(list_metrics())[:4])
        'any_click, ndcg, violations, optimal_lists'
    """
    sums = {name: metric.description for name, metric in METRICS.items()}
    derived = {name: _summary(measure) for name, measure in DERIVED.items()}
    return Catalogue({"name": name, "about": about} for name, about in (sums | derived).items())


def _summary(thing: Any) -> str:
    """The first sentence of a docstring."""
    return " ".join((thing.__doc__ or "").partition("\n\n")[0].split()).rstrip(".").replace("`", "")
