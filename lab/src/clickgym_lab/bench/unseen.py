"""The board *unseen queries*: what an agent loses on queries that it has never seen, between random
lists and a rule that is told each query's truth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
import polars

import clickgym
from clickgym.agents import Random
from clickgym.core.statistics import half_width
from clickgym.envs import ClickEnv
from clickgym.runner.config import run_seed
from clickgym.runner.make import make_agent, make_env
from clickgym.runner.names import AgentLike

from ..results import read_results
from .hand import Greedy, Sampling, prior_of

NAME = "unseen queries"
DATA = Path(__file__).parent / "data" / "unseen"
"""A file of each agent whose results ship."""
ENV = "QueriesPBMRank-v0"
TOLD, RANDOM = "told", "Random"
"""The agents of score 1 and 0."""
REQUIRED: dict[str, AgentLike | None] = {
    TOLD: None,
    "hand, greedy": Greedy,
    "hand, sampling": Sampling,
    "MixTS": "clickgym_lab.mix_ts:MixTS",
    "BCMPTS": "BCMPTS",
    "CascadeKLUCB": "CascadeKLUCB",
    RANDOM: Random,
}
"""The agents of every board by their names on it; `play_told` plays the first."""


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
    on_refusal: Callable[[Cell, ValueError], object] = lambda cell, error: None,
) -> polars.DataFrame:
    """Play the cells that an agent can play.

    Args:
        agent: as `clickgym.run` takes it.
        out: a folder; resumed if it exists.
        n_jobs: workers, as in `clickgym.sweep`.
        on_refusal: is called with each cell for which the agent cannot be made, and the reason.

    Returns:
        A row for each cell and query: ``cell``, ``query``, and ``regret``, the mean over its runs.
    """
    tables = []
    for number, cell in enumerate(CELLS):
        try:
            make_agent(agent, make_env(ENV, cell.instance), horizon=cell.horizon, seed=0)
        except ValueError as error:
            on_refusal(cell, error)
            continue
        results = clickgym.sweep(
            [ENV],
            {"agent": agent},
            cell.horizon,
            cell.runs,
            instances=[cell.instance],
            checkpoints=[cell.horizon],
            out=out / f"cell-{number}",
            n_jobs=n_jobs,
        )
        tables.append(_by_query(cell, results.rows))
    return polars.concat(tables) if tables else _by_query(CELLS[0], polars.DataFrame())


def play_told() -> polars.DataFrame:
    """Play the mark *told*, as `play` plays an agent; the same episodes."""
    tables = []
    for cell in CELLS:
        env: Any = make_env(ENV, cell.instance)
        models, rows = env.unwrapped.model.models, []
        for run in range(cell.runs):
            seed, query = run_seed(0, cell.instance, run, len(models)), run % len(models)
            agent = told(env, query, cell, seed)
            result = clickgym.run(agent, env, cell.horizon, seed=seed, checkpoints=[cell.horizon])
            rows.append((query, float(result.regret[-1])))
        tables.append(_by_query(cell, polars.DataFrame(rows, ["query", "regret"], orient="row")))
    return polars.concat(tables)


def told(env: ClickEnv, query: int, cell: Cell, seed: int) -> Greedy:
    """Return the agent *told* for an episode of a query: it knows the examination of this query,
    and a prior with the mean and variance of its items. It is an attainable mark, and no bound.
    """
    users = env.unwrapped.model.models[query]  # type: ignore[attr-defined]
    alpha, beta = prior_of(users.attraction)
    return Greedy(
        users.n_items,
        users.n_positions,
        examination=users.parameters.examination,
        alpha=alpha,
        beta=beta,
        noise=cell.noise,
        horizon=cell.horizon,
        seed=seed,
    )


def _by_query(cell: Cell, rows: polars.DataFrame) -> polars.DataFrame:
    columns = {"cell": polars.String, "query": polars.Int64, "regret": polars.Float64}
    if rows.is_empty():
        return polars.DataFrame(schema=columns)
    means = rows.group_by("query").agg(polars.col("regret").mean()).sort("query")
    return means.select(cell=polars.lit(cell.title), query="query", regret="regret").cast(
        columns  # type: ignore[arg-type]
    )


# ---------------------------------------------------------------------------------------- the board


@cache
def shipped() -> dict[str, polars.DataFrame]:
    """The tables of the agents whose results ship, by their names on the board."""
    tables = [read_results(path) for path in sorted(DATA.glob("*.parquet"))]
    return {made["agent"]: table for table, made in tables}


class Score(NamedTuple):
    """A share of the way from random lists (0) to *told* (1), and half its 95 % interval."""

    value: float
    half: float


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
            random, agent, told = (each["regret"].to_list() for each in of)
            scores[cell.title] = score(random, agent, told)
    return scores


def board(tables: dict[str, polars.DataFrame]) -> list[list[str]]:
    """Return the scores of agents by their names, the best in the second cell first."""
    header = ["agent", *(cell.title for cell in CELLS)]
    scores = {name: scores_of(table) for name, table in tables.items()}
    key = CELLS[1].title

    def place(name: str) -> float:
        return -scores[name][key].value if key in scores[name] else 1.0

    def text(found: Score | None) -> str:
        if found is None:
            return "–"
        return f"{found.value:.2f}" + f" ± {found.half:.2f}" * (found.half >= 0.005)

    return [
        header,
        *(
            [name, *(text(scores[name].get(cell.title)) for cell in CELLS)]
            for name in sorted(scores, key=place)
        ),
    ]


def losses(tables: dict[str, polars.DataFrame]) -> list[list[str]]:
    """Return the mean clicks lost in an episode, in the order of `board`."""
    _, *rows = board(tables)
    cells = []
    for name, *_ in rows:
        means = dict(tables[name].group_by("cell").agg(polars.col("regret").mean()).iter_rows())
        found = [means.get(cell.title) for cell in CELLS]
        cells.append([name, *("–" if mean is None else f"{mean:.1f}" for mean in found)])
    return [["agent", *(cell.title for cell in CELLS)], *cells]


def file_of(folder: Path, agent: str) -> Path:
    """The file of an agent's results in a folder."""
    return folder / f"{quote(agent, safe='')}.unseen.parquet"
