"""How often the intervals of ``clickgym evaluate`` hold the truth, on simulated logs.

python docs/intervals_page.py

Logs of eight kinds by users of four click models are evaluated for two lists each, by the model of
the users, and some of them by the other models, too. The counts are written to docs/intervals.csv,
from which the page is made.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

import clickgym
from clickgym.core.files import write_whole
from clickgym.envs import (
    CascadeModel,
    ClickModel,
    DynamicBayesianModel,
    PositionBasedModel,
    UserBrowsingModel,
)
from clickgym.logs import ClickLog, FixedPolicy, evaluate, record
from clickgym.runner.make import make_env

L, K = 6, 4
SESSIONS = (500, 2000, 5000)
"""Of a log, one after the other."""
LOGS, BY_ALL = 26, 4
"""Of each kind by each users, and how many of them are evaluated by all models."""
ESTIMATORS = ("pbm", "ubm", "dbn", "cm")
FEW = 40
"""Estimates, of which the share is not shown."""
COUNTS = Path(__file__).with_name("intervals.csv")
Lists = NDArray[np.int64]
Rng = np.random.Generator


def users(kind: str, rng: Rng) -> ClickModel:
    """Users of a click model with random parameters."""
    attraction = rng.uniform(0.02, 0.6, L)
    if kind == "pbm":
        return PositionBasedModel(attraction, np.sort(rng.uniform(0.2, 1.0, K))[::-1])
    if kind == "ubm":  # examination falls with the distance from the last click, or from the top
        distance = np.arange(K)[:, None] - np.arange(-1, K - 1)
        examination = rng.uniform(0.6, 1.0, (K, K)) * 0.85 ** np.maximum(distance - 1, 0)
        return UserBrowsingModel(attraction, np.tril(examination))
    if kind == "dbn":
        satisfaction = rng.uniform(0.1, 0.7, L)
        return DynamicBayesianModel(attraction, satisfaction, rng.uniform(0.6, 0.95), n_positions=K)
    return CascadeModel(attraction, K)


def one_list(n: int, rng: Rng) -> Lists:
    """Today's list in every session."""
    return np.tile(np.arange(K), (n, 1))


def two_lists(n: int, rng: Rng) -> Lists:
    """Today's list and a random one, alike often."""
    return np.stack([np.arange(K), rng.permutation(L)[:K]])[rng.integers(2, size=n)]


def two_exchanges(n: int, rng: Rng) -> Lists:
    """The first two items change places in half of the sessions, and so do the last two."""
    lists = one_list(n, rng)
    for first in (0, 2):
        some = rng.random(n) < 0.5
        lists[some, first : first + 2] = lists[some, first : first + 2][:, ::-1]
    return lists


def joined_halves(n: int, rng: Rng) -> Lists:
    """Two exchanges, and one to five sessions in which the halves change places."""
    lists, some = two_exchanges(n, rng), rng.choice(n, rng.integers(1, 6), replace=False)
    lists[some] = np.roll(lists[some], 2, axis=1)
    return lists


def few_swaps(n: int, rng: Rng) -> Lists:
    """Two neighbours change places in 2 to 5 % of the sessions."""
    return swaps(n, rng, rng.uniform(0.02, 0.05))


def swaps(n: int, rng: Rng, share: float = 2 / 3) -> Lists:
    """Two neighbours change places in two of three sessions, also the last item and the next."""
    lists, at = np.tile(np.arange(L), (n, 1)), rng.integers(K, size=n)
    some = np.flatnonzero(rng.random(n) < share)
    lists[some, at[some]], lists[some, at[some] + 1] = at[some] + 1, at[some]
    return lists[:, :K]


def fifth_random(n: int, rng: Rng) -> Lists:
    """A random list in one of five sessions, else today's."""
    lists = np.tile(np.arange(L), (n, 1))
    some = rng.random(n) < 0.2
    lists[some] = rng.permuted(lists[some], axis=1)
    return lists[:, :K]


LISTS: dict[str, Callable[[int, Rng], Lists] | None] = {
    "one list": one_list,
    "two lists": two_lists,
    "two exchanges": two_exchanges,
    "halves hardly joined": joined_halves,
    "few swaps": few_swaps,
    "swaps of neighbours": swaps,
    "20 % random": fifth_random,
    "a learning agent": None,
}


def simulated(kind: str, model: ClickModel, number: int, rng: Rng) -> ClickLog:
    """A log of a kind: of CascadeTS or BubbleRank where an agent learns."""
    n, choose = SESSIONS[number % len(SESSIONS)], LISTS[kind]
    if choose is None:
        env = make_env(model)
        agent = clickgym.make_agent(
            ("CascadeTS", "BubbleRank")[number % 2], env, horizon=n, seed=number
        )
        return record(agent, env, n, seed=number)  # type: ignore[arg-type]
    lists = choose(n, rng)
    clicks = np.array([model.sample(ranking, rng) for ranking in lists])
    return ClickLog(lists, clicks, np.zeros(n, int), tuple(map(str, range(L))), ("q",))


def estimates(of: str, kind: str, number: int) -> Iterator[tuple[str, bool, bool]]:
    """Yield for each of two lists, that of the first session of a log upside down and a random one
    of items that were shown, each estimator, whether it gives an interval, and whether that holds
    the truth.
    """
    rng = np.random.default_rng([number, *f"{of} {kind}".encode()])
    model = users(of, rng)
    log = simulated(kind, model, number, rng)
    for target in (log.items[0][::-1], rng.permutation(np.unique(log.items))[:K]):
        truth = model.expected_reward(target)
        for estimator in ESTIMATORS if number < BY_ALL else (of,):
            try:
                low, high = evaluate(log, FixedPolicy(target), estimator).interval
            except ValueError as error:
                if "does not tell" not in str(error):
                    raise
                yield estimator, False, False
            else:
                yield estimator, True, low <= truth <= high


def tables() -> dict[str, list[list[str]]]:
    """The tables of the page: how many estimates by the model of the users are given, how often
    their intervals hold the truth, and how often they do by each model, over all kinds of log.
    """
    counts = pl.read_csv(COUNTS)
    shares = counts.with_columns(
        given_share=pl.col("given") / pl.col("asked"), held=pl.col("holds") / pl.col("given")
    )
    names = [name.upper() for name in ESTIMATORS]
    result: dict[str, list[list[str]]] = {}
    for title, column in (("given", "given_share"), ("held", "held")):
        result[title] = [["lists of the log", *(f"{name} users" for name in names)]]
        for kind in LISTS:
            cells = []
            for of in ESTIMATORS:
                row = shares.filter(users=of, log=kind, estimator=of)
                few = column == "held" and row["given"][0] < FEW
                cells.append("–" if few else f"{row[column][0]:.0%}")
            result[title].append([kind, *cells])
    sums = counts.group_by("users", "estimator").agg(pl.col("given", "holds").sum())
    result["by all"] = [["users", *(f"`{name}`" for name in ESTIMATORS)]]
    for of in ESTIMATORS:
        row = [sums.filter(users=of, estimator=name) for name in ESTIMATORS]
        cells = [f"{cell['holds'][0] / cell['given'][0]:.0%}" for cell in row]
        result["by all"].append([of.upper(), *cells])
    return result


def main() -> None:
    """Simulate the logs, and count the estimates that were asked for, those that were given, and
    those whose interval holds the truth.
    """
    warnings.simplefilter("ignore")
    rows = [
        (of, kind, *found)
        for number in range(LOGS)
        for of in ESTIMATORS
        for kind in LISTS
        for found in estimates(of, kind, number)
    ]
    counts = (
        pl.DataFrame(rows, ["users", "log", "estimator", "given", "holds"], orient="row")
        .group_by("users", "log", "estimator", maintain_order=True)
        .agg(asked=pl.len(), given=pl.col("given").sum(), holds=pl.col("holds").sum())
    )
    write_whole(COUNTS, counts.write_csv())


if __name__ == "__main__":
    main()
