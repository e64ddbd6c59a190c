"""Can the users of a log be simulated? Lists are left out, and click models foretell the clicks on
them from the other lists.

A query leaves out one list at a time. Its click rates by position are foretold by click models that
were fitted to the sessions of all other lists, and by the rates that the other lists of the query
had at these positions, as if no item were better than another. What a model gains on the latter is
what it knows of the order of lists. Squared errors hold the noise of the clicks, too, which is
known, and taken off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clickgym.core.checks import check_choice, check_count, check_kind, check_labels, check_seed

from .counting import by_query
from .distinct import distinct
from .estimation.estimator import MODEL_ESTIMATORS
from .estimation.settings import QUICK
from .log import ClickLog

MODELS = ("CM", "DCM", "SDBN", "PBM", "UBM", "DBN", "CCM")
MOST_LISTS = 5
"""Lists that a query leaves out, one after the other."""
LEAST_DISPLAYS = 30
"""Sessions with other lists that must show an item, or nothing is foretold of it."""
TRUSTED = 0.5
"""The share of the differences between lists that a model must foretell."""
LEAST_QUERIES = 5
"""Queries with which there are intervals."""


@dataclass(frozen=True)
class Simulability:
    """How well click models foretell the clicks on lists that were left out.

    Attributes:
        table: a row per model: ``error`` of its click rates by position (root of the mean square),
            ``error_low`` and ``error_high``; ``noise``, the error of a model that knows the truth;
            ``foretold``, the share of the squared differences between a list and the others that it
            foretells, both without noise (1 is all, 0 is what click rates of positions foretell),
            ``low`` and ``high``. The intervals (0.95, bootstrap over queries) are NaN below 5
            queries.
        n_queries, n_lists: that were left out.
        verdict: ``"can"``, ``"cannot"``, or ``"unknown"`` where the interval of the best model
            contains one half.
        sentence: the same in words.
    """

    table: pl.DataFrame
    n_queries: int
    n_lists: int
    verdict: str
    sentence: str


def check_models(
    log: ClickLog,
    models: Sequence[str] = MODELS,
    *,
    least_sessions: int = 100,
    bootstrap: int = 1000,
    seed: int = 0,
) -> Simulability:
    """Check whether simulations of a log can be trusted to order lists.

    ⚠ Every query counts its own lists, at most five, and all lists and positions alike, however
    often they were shown. Items that other lists of the query showed in fewer than 30 sessions are
    left out.

    Args:
        log: sessions of any queries, of which some have two lists or more.
        models: short names of click models.
        least_sessions: of a list that is left out.
        bootstrap: resamples of the queries.
        seed: of the bootstrap.

    Raises:
        ValueError: on wrong input, and if no query has two lists, one of them in so many sessions.

    Example:
        >>> import gymnasium as gym, clickgym, clickgym_logs
        >>> env = gym.make("PBMRank-v0", attraction=[0.1, 0.3, 0.6], examination=[0.9, 0.5])
        >>> log = clickgym_logs.record(clickgym.make_agent("Random", env, seed=0), env, 3000, seed=0)
        >>> check_models(log, ["PBM"]).table.select("model", "foretold").rows()[0][1] > 0.9
        True
    """
    check_kind("log", log, ClickLog, "a ClickLog")
    models = check_labels("models", models)
    for name in models or ("",):
        check_choice("model", name, MODEL_ESTIMATORS)
    check_count("least_sessions", least_sessions)
    check_count("bootstrap", bootstrap)
    check_seed(seed)
    first, index, counts = distinct(np.column_stack([log.queries, log.items]))
    queries = log.queries[first]
    turn = _turns(queries, counts, least_sessions)
    if not (turn >= 0).any():
        raise ValueError(
            f"no query has two lists, one of them in {least_sessions} sessions or more; none can be left out"
        )
    parts = [
        _errors(log, models, index, first[turn == each], np.flatnonzero(turn == each))
        for each in range(turn.max() + 1)
    ]
    cells = np.concatenate(
        parts
    )  # query, noise, noise of the others' rates, squared error of these rates, and of each model
    labels, rows = np.unique(cells[:, 0], return_inverse=True)
    sums = np.zeros((len(labels), cells.shape[1]))
    np.add.at(sums, rows, np.column_stack([np.ones(len(cells)), cells[:, 1:]]))
    if not len(labels):
        raise ValueError(
            "no item of a list that can be left out is in other lists of its query often enough"
        )
    draws = (
        np.random.default_rng(seed).multinomial(
            len(labels), np.full(len(labels), 1 / len(labels)), bootstrap
        )
        @ sums
    )
    spread = [np.percentile(each, [2.5, 97.5], axis=0) for each in _figures(draws)]
    if len(labels) < LEAST_QUERIES:
        spread = [np.full_like(each, np.nan) for each in spread]
    (error, foretold), ((low, high), (least, most)) = (
        (each[0] for each in _figures(sums.sum(axis=0, keepdims=True))),
        spread,
    )
    noise = float(np.sqrt(sums[:, 1].sum() / sums[:, 0].sum()))
    table = pl.DataFrame(
        {
            "model": models,
            "error": error,
            "error_low": low,
            "error_high": high,
            "noise": [noise] * len(models),
            "foretold": foretold,
            "low": least,
            "high": most,
        }
    )
    n_lists = int((turn >= 0).sum())
    return Simulability(table, len(labels), n_lists, *_verdict(table, len(labels), n_lists))


def _turns(queries: NDArray[np.int32], counts: NDArray[np.int64], least: int) -> NDArray[np.int64]:
    """When each list is left out: those of a query from the most frequent on; -1 for never."""
    order = np.lexsort((-counts, queries))
    _, begin, sizes = np.unique(queries[order], return_index=True, return_counts=True)
    place, several = np.arange(len(order)) - np.repeat(begin, sizes), np.repeat(sizes, sizes) > 1
    turn = np.full(len(order), -1)
    turn[order] = np.where(several & (counts[order] >= least) & (place < MOST_LISTS), place, -1)
    return turn


def _errors(
    log: ClickLog,
    models: Sequence[str],
    index: NDArray[np.int64],
    first: NDArray[np.int64],
    lists: NDArray[np.int64],
) -> NDArray[np.float64]:
    """A row for each position of lists that are left out at once, as `check_models` adds them
    up.
    """
    out = np.isin(index, lists)
    train, shown = log[~out], log[first]
    _, codes, pairs = by_query(train.queries, train.items, len(log.item_labels))
    displays = np.append(np.bincount(pairs[pairs >= 0], minlength=len(codes)), 0)
    wanted = shown.queries[:, None] * np.int64(len(log.item_labels)) + shown.items
    place = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
    known = (shown.items >= 0) & (
        displays[np.where(codes[place] == wanted, place, -1)] >= LEAST_DISPLAYS
    )

    def rates(
        part: ClickLog, groups: NDArray[np.integer], n: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        seen = np.array([np.bincount(groups, column, n) for column in (part.items >= 0).T]).T
        clicks = np.array([np.bincount(groups, column, n) for column in part.clicks.T]).T
        rate = (clicks + 0.5) / (seen + 1)  # so that no rate is without noise
        return clicks / np.maximum(seen, 1), rate * (1 - rate) / np.maximum(seen, 1)

    own, noise = rates(log[out], np.searchsorted(lists, index[out]), len(lists))
    other, other_noise = (
        each[shown.queries] for each in rates(train, train.queries, len(log.query_labels))
    )
    errors = [
        (QUICK.fit(MODEL_ESTIMATORS[name], train).click_probabilities(shown) - own) ** 2
        for name in models
    ]
    columns = np.broadcast_arrays(
        shown.queries[:, None], noise, noise + other_noise, (other - own) ** 2, *errors
    )
    return np.stack([column[known] for column in columns], axis=1)


def _figures(sums: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of sums over positions, in rows: the error of each model, and the share that it foretells."""
    cells, noise, both, others = (column[:, None] for column in sums.T[:4])
    differences = np.where(others > both, others - both, np.nan)
    return np.sqrt(sums[:, 4:] / cells), 1 - (sums[:, 4:] - noise) / differences


def _verdict(table: pl.DataFrame, n_queries: int, n_lists: int) -> tuple[str, str]:
    """Whether simulations can be trusted, and the sentence that says it."""
    model, share, low, high = (
        table.sort("foretold", descending=True, nulls_last=True)
        .select("model", "foretold", "low", "high")
        .row(0)
    )
    basis = f"{n_lists:,} lists of {n_queries:,} queries, each left out once"
    if np.isnan(share):
        return (
            "unknown",
            f"This log cannot tell whether simulations order lists: its lists differ by chance alone ({basis}).",
        )
    what = f"{share:.0%} ({low:.0%} to {high:.0%})" if low == low else f"{share:.0%}"
    fact = f"the best model, {model}, foretells {what} of the differences between lists ({basis})"
    if low > TRUSTED:
        return "can", f"Simulations of this log can be trusted to order lists: {fact}."
    if high < TRUSTED:
        return "cannot", f"Simulations of this log cannot be trusted to order lists: {fact}."
    few = f"; intervals need {LEAST_QUERIES} queries" if n_queries < LEAST_QUERIES else ""
    return (
        "unknown",
        f"This log cannot tell whether simulations can be trusted to order lists: {fact}{few}.",
    )
