"""Reference results of the scorecard: those of the built-in agents, with which every agent is
compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

import polars
from polars import col

from clickgym import Results
from clickgym.core.checks import check_choice, check_labels

from ..shipped import Shipped, read_shipped
from .play import COLUMNS, blocks, described
from .protocol import CURRENT, Protocol
from .score import scored
from .task import Task


@cache
def shipped(protocol: Protocol = CURRENT) -> list[Shipped]:
    """The results that ship, of all files.

    Args:
        protocol: whose.
    """
    return [each for file in sorted(protocol.data.glob("*.parquet")) for each in read_shipped(file)]


def curves_of(protocol: Protocol = CURRENT) -> polars.DataFrame:
    """The losses of all agents that ship, at all steps that are kept; columns as of `play`.

    Args:
        protocol: whose.
    """
    tasks = blocks(protocol.candidates)
    frames = [_losses(each.table, tasks[each.part]) for each in shipped(protocol)]
    return polars.concat(frames).sort("agent", maintain_order=True)


def _losses(table: polars.DataFrame, tasks: Sequence[Task]) -> polars.DataFrame:
    """The table of a shipped block."""
    rows = described(table, tasks).with_columns(loss=tasks[0].measure)
    return rows.with_columns(col("regret", "loss", "seconds").cast(polars.Float64)).select(COLUMNS)


@cache
def reference(protocol: Protocol = CURRENT) -> polars.DataFrame:
    """The scores of the agents that ship, in the form that `scored` returns.

    Args:
        protocol: whose.

    Example:
        >>> "TopRank" in reference()["agent"].to_list()
        True
    """
    return scored(curves_of(protocol), protocol)


def baselines(ability: str, agents: Iterable[str] | None = None) -> Results:
    """The regret curves of built-in agents in an ability, for a figure or a table beside your own
    agent.

    Nothing is played: the curves ship with the package.

    Args:
        ability: an ability of the scorecard.
        agents: names, such as ``"CascadeTS"``; None takes all.

    Returns:
        Results with the regret of every run at up to 20 steps; reward and clicks are unknown. An
        environment stands for all tasks of the ability with its click model.

    Raises:
        ValueError: there is no such ability or agent.

    Example:
        >>> baselines("change", ["CascadeTS", "TopRank"]).plot("change.pdf")  # doctest: +SKIP
    """
    check_choice("ability", ability, CURRENT.abilities)
    table = curves_of(CURRENT).filter(col("ability") == ability)
    there = table["agent"].unique().sort().to_list()
    names = there if agents is None else check_labels("agents", agents)
    for name in names:
        check_choice("agent", name, there)
    return Results(_as_results(table.filter(col("agent").is_in(names))))


def _as_results(table: polars.DataFrame) -> polars.DataFrame:
    """Rows of `play` as those of a sweep: an environment is all tasks with its click model, an
    instance one of them.
    """
    models = {task.name: f"{task.click_model}Rank-v0" for task in CURRENT.candidates}
    return table.select(
        col("task").replace_strict(models).alias("env"),
        col("task").alias("instance"),
        "agent",
        "run",
        "step",
        "regret",
        polars.lit(None, polars.Float64).alias("reward"),
        polars.lit(None, polars.Int64).alias("clicks"),
    )
