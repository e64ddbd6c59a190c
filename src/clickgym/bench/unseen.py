"""The board *unseen queries*: what an agent loses on queries that it has never seen, between random
lists and a rule that is told each query's truth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import numpy as np
import polars

from ..core.statistics import half_width
from ..runner.make import make_agent, make_env
from ..runner.names import AgentLike
from ..runner.sweep import sweep
from .results import read_results

NAME = "unseen queries"
DATA = Path(__file__).parent / "data" / "unseen"
"""A file of each agent whose results ship."""
ENV = "QueriesPBMRank-v0"
TOLD, RANDOM = "told", "Random"
"""The agents of score 1 and 0."""


class Cell(NamedTuple):
    """Episodes that every agent of the board plays; ⚠ frozen, because results depend on them.

    Attributes:
        title: the head of its column.
        instance, horizon: as ``clickgym run`` takes them.
        runs: a multiple of the number of queries.
        noise: of *told*.
    """

    title: str
    instance: str
    horizon: int
    runs: int
    noise: float


CELLS = (
    Cell("test, 100", "queries:split=test", 100, 400, 0.0),
    Cell("test, 1,000", "queries:split=test,n_sessions=1000", 1000, 400, 0.5),
    Cell("real, 100", "queries:split=real", 100, 320, 0.0),
    Cell("real, 1,000", "queries:split=real,n_sessions=1000", 1000, 320, 0.5),
    Cell(
        "50 items, 1,000",
        "queries:split=test,n_items=50,n_positions=10,n_sessions=1000",
        *(1000, 200, 0.5),
    ),
)
"""The columns of the board: splits and sessions of an episode; the last one has lists of 10."""


def play(
    agent: AgentLike,
    out: Path,
    n_jobs: int = -1,
    on_refusal: Callable[[Cell, ValueError], object] | None = None,
) -> polars.DataFrame:
    """Play the cells that an agent can play.

    Args:
        agent: as `clickgym.run` takes it.
        out: a folder; resumed if it exists.
        n_jobs: workers, as in `clickgym.sweep`.
        on_refusal: called with each cell for which the agent cannot be made, and the reason.

    Returns:
        A row for each cell and query: ``cell``, ``query``, and ``regret``, the mean over its runs.
    """
    tables = [by_query(CELLS[0], polars.DataFrame())]
    for number, cell in enumerate(CELLS):
        try:
            make_agent(agent, make_env(ENV, cell.instance), horizon=cell.horizon, seed=0)
        except ValueError as error:
            if on_refusal is not None:
                on_refusal(cell, error)
            continue
        results = sweep(
            [ENV],
            {"agent": agent},
            cell.horizon,
            cell.runs,
            instances=[cell.instance],
            checkpoints=[cell.horizon],
            out=out / f"cell-{number}",
            n_jobs=n_jobs,
        )
        tables.append(by_query(cell, results.rows))
    return polars.concat(tables)


def by_query(cell: Cell, rows: polars.DataFrame) -> polars.DataFrame:
    """The mean regret of each query in a cell, from ``query`` and ``regret`` of its runs."""
    columns = {"cell": polars.String, "query": polars.Int64, "regret": polars.Float64}
    if rows.is_empty():
        return polars.DataFrame(schema=columns)
    means = rows.group_by("query").agg(polars.col("regret").mean()).sort("query")
    table = means.select(cell=polars.lit(cell.title), query="query", regret="regret")
    return table.cast(columns)  # type: ignore[arg-type]


@cache
def shipped() -> dict[str, polars.DataFrame]:
    """The tables of the agents whose results ship, by their names on the board."""
    tables = [read_results(path) for path in sorted(DATA.glob("*.parquet"))]
    return {made["agent"]: table for table, made in tables}


class Score(NamedTuple):
    """A share of the way from random lists (0) to *told* (1), and half its 95 % interval."""

    value: float
    half: float

    def __str__(self) -> str:
        return f"{self.value:.2f}" + f" ± {self.half:.2f}" * (self.half >= 0.005)


def score(random: Sequence[float], agent: Sequence[float], told: Sequence[float]) -> Score:
    """Return the score of mean losses, with an interval over queries: all three lost in the same
    queries, so the interval is that of a ratio of paired means (delta method, Student's t).

    Example:
        >>> score([10.0, 20.0, 30.0], [5.0, 10.0, 15.0], [0.0, 0.0, 0.0])
        Score(value=0.5, half=0.0)
    """
    losses = np.array([random, agent, told])
    gained, most = losses[0] - losses[1], losses[0] - losses[2]
    value = gained.mean() / most.mean()
    spread = (gained - value * most).std(ddof=1) / most.mean()
    return Score(float(value), float(half_width(most.size) * spread))


def scores_of(table: polars.DataFrame) -> dict[str, Score]:
    """Return the scores of an agent by the titles of the cells that it played."""
    ends = shipped()[RANDOM], shipped()[TOLD]
    scores = {}
    for cell in CELLS:
        of = [each.filter(cell=cell.title).sort("query") for each in (ends[0], table, ends[1])]
        if len(of[1]):
            scores[cell.title] = score(*(each["regret"].to_list() for each in of))
    return scores


def board(tables: dict[str, polars.DataFrame]) -> list[list[str]]:
    """Return the scores of agents by their names, the best in the second cell first."""
    titles = [cell.title for cell in CELLS]
    scores = {name: scores_of(table) for name, table in tables.items()}
    last = Score(-np.inf, 0.0)
    order = sorted(scores, key=lambda name: -scores[name].get(titles[1], last).value)
    rows = [[name, *(str(scores[name].get(title, "–")) for title in titles)] for name in order]
    return [["agent", *titles], *rows]


def file_of(folder: Path, agent: str) -> Path:
    """The file of an agent's results in a folder."""
    return folder / f"{quote(agent, safe='')}.unseen.parquet"
