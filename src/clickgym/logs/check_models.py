"""Check whether the users of a log can be simulated: lists are left out, and click models predict
the clicks on the left-out lists from the other lists.

At most five lists of a query are left out, one at a time. Click models are fitted to the sessions
of all other lists, and predict the click rates of the left-out list by position. They are compared
with a baseline, which predicts the rates that the query's other lists had at these positions, as if
all items were equally good. A model that predicts better than the baseline knows something about
the order of lists. Squared errors also contain the noise of the clicks; the expected size of this
noise is known, and is subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..core.checks import check_choice, check_kind, check_labels
from .estimation.counting import unique_rows
from .estimation.em import fit_quietly
from .estimation.estimator import MODEL_ESTIMATORS, Estimator
from .fitting import cautions
from .log import ClickLog

MODELS = ("CM", "DCM", "PBM", "UBM", "DBN", "CCM")
MOST_LISTS = 5
"""The largest number of a query's lists that are left out, one after another."""
ROUNDS = 10
"""The number of rounds. In each round, only some of the queries leave out a list. If all queries
left out a list at once, each query with two lists would have only one list left, and no model could
tell attraction from examination.
"""
LEAST_SESSIONS = 100
"""The smallest number of sessions of a list that is left out."""
LEAST_DISPLAYS = 30
"""Clicks on an item are predicted only if the query's other lists show it in this many sessions."""
TRUSTED = 0.5
"""The share of the differences between lists that a model must predict to be trusted."""
LEAST_QUERIES = 5
"""The smallest number of queries for which intervals are computed."""
RESAMPLES = 1000
"""The number of times that the queries are resampled for an interval."""

Floats = NDArray[np.float64]
Indices = NDArray[np.integer[Any]]


class Simulability(NamedTuple):
    """The answer whether click models predict the clicks on lists that were left out.

    Attributes:
        table: a row per model with these columns. ``error`` is the root mean squared error of the
            predicted click rates by position, and ``noise`` is the error of a model that knows the
            truth. ``predicted`` is the share of the squared differences between a list and the
            query's other lists that the model predicts, after the noise is subtracted from errors
            and differences: 1 is all of them (also for a model whose error is below the noise), and
            0 is no better than the click rates of positions. ``low`` and ``high`` are the 95 %
            interval of ``predicted`` (bootstrap over queries), NaN for fewer than 5 queries.
        verdict: ``"can"``, ``"cannot"``, or ``"unknown"`` if the interval of the best model
            contains one half.
        sentence: the verdict as a sentence.
    """

    table: pl.DataFrame
    verdict: str
    sentence: str


def check_models(log: ClickLog, models: Sequence[str] = MODELS) -> Simulability:
    """Check whether users simulated from a log can be trusted to order lists like those in the log.

    To answer this question, the function leaves out lists of the log, and click models that are
    fitted to the other lists predict the clicks on the lists left out. ⚠ If the lists in the log
    differ only in that items swap places, the answer holds for such swaps only, and simulated users
    may order other lists wrongly.

    ⚠ At most five lists of each query are left out. All of these lists, and all positions in a
    list, have the same weight, however often the lists were shown. Items that the query's other
    lists showed in fewer than 30 sessions are not counted.

    Args:
        log: sessions of any queries; some queries must have two lists or more.
        models: the short names of the click models to fit. ⚠ The answer is about the best of these
            models. If you leave out the right model, a wrong model may predict the click rates of
            lists with swapped items, and yet order other lists wrongly.

    Raises:
        ValueError: an argument is invalid, or no query has at least two lists, one of them shown in
            100 sessions or more.

    Example:
        >>> import gymnasium as gym, clickgym, clickgym.logs
        >>> env = gym.make("PBMRank-v0", attraction=[0.1, 0.3, 0.6], examination=[0.9, 0.5])
        >>> agent = clickgym.make_agent("Random", env, seed=0)
        >>> log = clickgym.logs.record(agent, env, 3000, seed=0)
        >>> check_models(log, ["PBM"]).table.select("model", "predicted").rows()[0][1] > 0.9
        True
    """
    check_kind("log", log, ClickLog, "a ClickLog")
    models = check_labels("models", models)
    for name in models or ("",):
        check_choice("model", name, MODEL_ESTIMATORS)
    first, index, counts = unique_rows(np.column_stack([log.queries, log.items]))
    rounds = _rounds(log.queries[first], counts)
    n_lists = int((rounds >= 0).sum())
    if not n_lists:
        raise ValueError(
            "the log is too small for this check: expected a query with at least two "
            f"different lists, one of them shown in {LEAST_SESSIONS} sessions or more"
        )
    # Columns: the query; the noise of the list's rates; the noise of both rates; the squared errors
    # of the other lists' rates, and of each model.
    parts = []
    for number in np.unique(rounds[rounds >= 0]):
        out = np.flatnonzero(rounds == number)
        train = log[~np.isin(index, out)]
        fits = [fit_quietly(MODEL_ESTIMATORS[name], train) for name in models]
        parts.append(_errors(log, train, fits, index, first, out))
    errors = np.concatenate(parts)
    if not len(errors):
        raise ValueError(
            "the clicks on a list cannot be predicted from the other lists in this log: "
            f"expected an item that other lists of its query show in {LEAST_DISPLAYS} "
            "sessions or more"
        )
    table, n_queries = _error_table(errors, models)
    basis = f"{n_lists:,} lists of {n_queries:,} queries, each left out once"
    verdict, sentence = _verdict(table, basis)
    return Simulability(table, verdict, f"{sentence} {cautions(log)}".strip())


def _error_table(errors: Floats, models: Sequence[str]) -> tuple[pl.DataFrame, int]:
    """Return the table of `Simulability`, from the rows of `_errors`, and the number of queries.
    Intervals come from samples of the queries, drawn with replacement.
    """
    labels, rows = np.unique(errors[:, 0], return_inverse=True)
    sums = np.zeros((len(labels), errors.shape[1]))
    np.add.at(sums, rows, np.column_stack([np.ones(len(errors)), errors[:, 1:]]))
    shares = np.full(len(labels), 1 / len(labels))
    draws = np.random.default_rng(0).multinomial(len(labels), shares, RESAMPLES) @ sums
    error, predicted = (figures[0] for figures in _figures(sums.sum(axis=0, keepdims=True)))
    low, high = np.percentile(_figures(draws)[1], [2.5, 97.5], axis=0)
    has_few = len(labels) < LEAST_QUERIES
    table = pl.DataFrame(
        {
            "model": models,
            "error": error,
            "noise": np.full(len(models), np.sqrt(sums[:, 1].sum() / sums[:, 0].sum())),
            "predicted": predicted,
            "low": np.where(has_few, np.nan, low),
            "high": np.where(has_few, np.nan, high),
        }
    )
    return table, len(labels)


def _rounds(queries: Indices, counts: Indices) -> Indices:
    """Return the round in which each list is left out. The most frequent lists of a query get
    different rounds; the other lists are never left out and get -1.
    """
    order = np.lexsort((-counts, queries))
    _, starts, sizes = np.unique(queries[order], return_index=True, return_counts=True)
    rank = np.arange(len(order)) - np.repeat(starts, sizes)
    left_out = (
        (np.repeat(sizes, sizes) > 1) & (counts[order] >= LEAST_SESSIONS) & (rank < MOST_LISTS)
    )
    rounds = np.empty(len(order), np.int64)
    rounds[order] = np.where(left_out, (rank + queries[order]) % ROUNDS, -1)
    return rounds


def _errors(
    log: ClickLog,
    train: ClickLog,
    fits: Sequence[Estimator],
    index: Indices,
    first: Indices,
    lists: Indices,
) -> Floats:
    """Return a row for each position of the lists that are left out in the same round;
    `check_models` adds the rows up.
    """
    out = np.isin(index, lists)
    left_out, n_items = log[first[lists]], np.int64(len(log.item_labels))
    pairs, displays = np.unique(
        (train.queries[:, None] * n_items + train.items)[train.items >= 0], return_counts=True
    )
    codes = left_out.queries[:, None] * n_items + left_out.items
    nearest = np.minimum(np.searchsorted(pairs, codes), len(pairs) - 1)
    is_shown_often = (pairs[nearest] == codes) & (displays[nearest] >= LEAST_DISPLAYS)
    rates, noise = _rates(log[out], np.searchsorted(lists, index[out]), len(lists))
    query_rates, query_noise = (
        table[left_out.queries] for table in _rates(train, train.queries, len(log.query_labels))
    )
    errors = [(fit.predict_proba(left_out) - rates) ** 2 for fit in fits]
    columns = np.broadcast_arrays(
        left_out.queries[:, None], noise, noise + query_noise, (query_rates - rates) ** 2, *errors
    )
    return np.stack([column[is_shown_often & (left_out.items >= 0)] for column in columns], axis=1)


def _rates(log: ClickLog, groups: Indices, n: int) -> tuple[Floats, Floats]:
    """Return ``(n, K)`` the click rates of groups of sessions by position, and their variances."""
    displays = np.array([np.bincount(groups, column, n) for column in (log.items >= 0).T]).T
    clicks = np.array([np.bincount(groups, column, n) for column in log.clicks.T]).T
    rate = (clicks + 0.5) / (displays + 1)  # so that no rate is without noise
    noise = rate * (1 - rate) / np.maximum(displays, 1)
    return clicks / np.maximum(displays, 1), noise


def _figures(sums: Floats) -> tuple[Floats, Floats]:
    """Return each model's error, and the share of the differences that the model predicts, from
    rows of sums over positions.
    """
    counts, noise, both_noise, rate_errors = (column[:, None] for column in sums.T[:4])
    differences = np.where(rate_errors > both_noise, rate_errors - both_noise, np.nan)
    missing = np.maximum(sums[:, 4:] - noise, 0)
    return np.sqrt(sums[:, 4:] / counts), 1 - missing / differences


def _verdict(table: pl.DataFrame, basis: str) -> tuple[str, str]:
    """Return whether simulations can be trusted to order lists, and a sentence that says so."""
    best = table.sort("error").select("model", "predicted", "low", "high")
    model, share, low, high = best.row(0)
    unknown = "This log cannot tell whether simulations can be trusted to order lists like its own"
    if np.isnan(share):
        return "unknown", f"{unknown}: its lists differ by chance alone ({basis})."
    interval = f" ({low:.0%} to {high:.0%})" if low <= high else ""
    prediction = f"{share:.0%}{interval} of the differences between lists ({basis})"
    fact = f"the best model, {model}, predicts {prediction}"
    if low > TRUSTED:
        return "can", (
            f"Simulations of this log can be trusted to order lists like those of the log: {fact}. "
            "They are less reliable about how much a list gains."
        )
    if high < TRUSTED:
        return "cannot", f"Simulations of this log cannot be trusted to order its lists: {fact}."
    hint = "" if interval else f"; an interval needs {LEAST_QUERIES} queries whose lists differ"
    return "unknown", f"{unknown}: {fact}{hint}."
