"""A check of whether the users of a log can be simulated: click models predict the clicks on lists
that were left out of the log.

At most five lists of each query are left out, one at a time. Click models are fitted to the
sessions of all other lists, and predict the click rate at each position of the left-out list. The
predictions are compared with a baseline: the click rates that the query's other lists had at the
same positions, as if all items were equally good. A model that predicts better than this baseline
knows something about the order of lists. Squared errors also contain the noise of the clicks; the
expected size of this noise is known, and is subtracted.

A model may predict well which positions are clicked, and still order lists wrongly by their numbers
of clicks. The numbers of clicks on whole lists are therefore predicted in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..core.checks import check_kind, check_labels
from ..core.state import Floats
from ..core.text import counted
from .estimation.counting import unique_rows
from .estimation.em import fit_quietly
from .estimation.estimator import MODEL_ESTIMATORS, Estimator, check_models_to_fit
from .fitting import log_notes, sorted_log
from .log import ClickLog

MODELS = ("CM", "DCM", "PBM", "UBM", "DBN", "CCM")
MAX_LISTS = 5
"""The largest number of lists that are left out for each query, one after another."""
ROUNDS = 10
"""The number of rounds in which `check_models` fits the models. In each round, a list is left out
for only some of the queries. If a list were left out for every query at once, each query with two
lists would have only one list left, and no model could tell attraction from examination.
"""
MIN_SESSIONS = 100
"""The smallest number of sessions that a list must have to be left out."""
MIN_DISPLAYS = 30
"""The smallest number of sessions in which a query's other lists must show an item, so that clicks
on this item are predicted.
"""
TRUSTED = 0.5
"""The share of the differences between lists that a model must predict for its simulations to be
trusted.
"""
MIN_QUERIES = 5
"""The smallest number of queries for which 95 % intervals are computed."""
RESAMPLES = 10_000
"""The number of bootstrap samples of the queries from which a 95 % interval is computed."""

UNKNOWN = "This log cannot tell whether simulations can be trusted to order lists like its own"
"""The beginning of the sentence for the verdict ``"unknown"``."""

Indices = NDArray[np.integer[Any]]


class Simulability(NamedTuple):
    """The result of `check_models`: how well click models predict the clicks on lists that were
    left out.

    Attributes:
        table: a row for each model, with these columns. ``error`` is the root mean squared error of
            the predicted click rates by position, and ``noise`` is the error of a model that knows
            the true click probabilities. ``predicted`` is the share of the differences between a
            list and the query's other lists that the model predicts: 1 means all differences, and 0
            means that the model is no better than the click rates of positions. The share is
            computed from squared differences and squared errors after subtracting the noise, so it
            is also 1 if the error is below the noise. ``low`` and ``high`` are the bounds of the 95
            % interval of ``predicted`` (bootstrap over queries), NaN for fewer than 5 queries.
        verdict: ``"can"`` if simulations can be trusted; ``"cannot"`` if not, because the interval
            of the best model is below one half, or the same interval for the numbers of clicks on
            whole lists; and ``"unknown"`` if the log does not decide, for example because the
            interval of the best model contains one half, or because the model predicts less than
            half of the differences in numbers of clicks.
        sentence: the verdict as a sentence, and then any notes on the log.
    """

    table: pl.DataFrame
    verdict: str
    sentence: str


def check_models(log: ClickLog, models: Sequence[str] = MODELS) -> Simulability:
    """Check whether simulated users, made from a log, can be trusted to order lists like those in
    the log. The result does not depend on the order of the log's rows and files.

    The function leaves out lists of the log, fits click models to the other lists, and compares the
    predicted clicks on the left-out lists with the true clicks. ⚠ If the lists in the log differ
    only in that items swap places, the answer holds only for such swaps, and simulated users may
    order other lists wrongly.

    ⚠ At most five lists of each query are left out. All of these lists, and all positions in a
    list, have the same weight, however often the lists were shown. Positions are ignored if the
    query's other lists showed the item in fewer than 30 sessions.

    Args:
        log: the sessions of one or more queries; some queries must have at least two different
            lists.
        models: the short names of the click models to fit; by default, all six models. ⚠ The answer
            is about the best of these models. If you leave out the right model, a wrong model may
            predict the click rates of lists with swapped items, and still order other lists
            wrongly.

    Raises:
        ValueError: an argument is invalid; no query has at least two lists, one of them shown in
            100 sessions or more; or the other lists do not show the items of the left-out lists
            often enough.

    Example:
        >>> import gymnasium as gym, clickgym, clickgym.logs
        >>> env = gym.make("PBMRank-v0", attraction=[0.1, 0.3, 0.6], examination=[0.9, 0.5])
        >>> agent = clickgym.make_agent("Random", env, seed=0)
        >>> log = clickgym.logs.record(agent, env, 3000, seed=0)
        >>> check_models(log, ["PBM"]).table.select("model", "predicted").rows()[0][1] > 0.9
        True
    """
    check_kind("log", log, ClickLog, "a ClickLog, as read_log returns it")
    models = check_labels("models", models)
    check_models_to_fit(models or ("",))
    _, log = sorted_log(log)
    first, index, counts = unique_rows(np.column_stack([log.queries, log.items]))
    ranks, n_of_query = _ranks(log.queries[first], counts)
    can_be_left_out = (n_of_query > 1) & (counts >= MIN_SESSIONS) & (ranks < MAX_LISTS)
    # The most frequent lists of a query are left out in different rounds; the others, never.
    rounds = np.where(can_be_left_out, (ranks + log.queries[first]) % ROUNDS, -1)
    n_lists = int(can_be_left_out.sum())
    if not n_lists:
        fault = "each query of the log has a single list, so no list can be predicted"
        if (n_of_query > 1).any():
            most = counts[n_of_query > 1].max()
            fault = (
                f"no list of a query with several lists was shown in more than {most:,} sessions"
            )
        raise ValueError(
            f"{fault}: expected a query with at least two different lists, one of them shown in "
            f"{MIN_SESSIONS} sessions or more; lists in random order are hardly ever the same, so "
            "show them in a few percent of the sessions, and today's list in the others"
        )
    if not log.clicks.any():
        raise ValueError("no session of the log has a click; check the column clicked")
    # Both arrays of a part, for positions and for whole lists, have these columns: the query; the
    # noise of the list's rate; the noise of both rates; the squared errors of the other lists'
    # rate, and of each model. The rate of a list is its number of clicks per session.
    parts = []
    for number in np.unique(rounds[rounds >= 0]):
        out = np.flatnonzero(rounds == number)
        train = log[~np.isin(index, out)]
        fits = [fit_quietly(MODEL_ESTIMATORS[name], train) for name in models]
        parts.append(_squared_errors(log, train, fits, index, first, out))
    errors, errors_of_lists = map(np.concatenate, zip(*parts, strict=True))
    if not len(errors):
        raise ValueError(
            "the clicks on a list cannot be predicted from the other lists in this log: "
            f"expected an item that other lists of its query show in {MIN_DISPLAYS} "
            "sessions or more"
        )
    table, n_queries = _error_table(errors, models)
    of_lists, _ = _error_table(errors_of_lists, models)
    verdict, sentence = _verdict(table, of_lists, n_lists, n_queries)
    if verdict == "can" and log.clicks.any(axis=1).all():
        verdict, sentence = "unknown", f"{UNKNOWN}, because no session is without a click."
    elif verdict == "can" and _differ_by_swaps(log, first, first[ranks == 0]):
        sentence += (
            " The lists of a query differ from its most frequent list at only two positions, so "
            "this is not known of lists that differ more."
        )
    return Simulability(table, verdict, f"{sentence} {log_notes(log)}".strip())


def _differ_by_swaps(log: ClickLog, first: Indices, most_frequent: Indices) -> bool:
    """Return whether each list differs from its query's most frequent list at two positions at
    most. The arguments are a session of each list, and of the most frequent list of each query.
    """
    of_query = np.zeros(len(log.query_labels), np.int64)
    of_query[log.queries[most_frequent]] = most_frequent
    is_other = log.items[first] != log.items[of_query[log.queries[first]]]
    return bool(is_other.sum(axis=1).max() <= 2)


def _error_table(errors: Floats, models: Sequence[str]) -> tuple[pl.DataFrame, int]:
    """Return the table of `Simulability`, computed from the rows of `_squared_errors`, and the
    number of queries. The intervals come from bootstrap samples of the queries.
    """
    labels, rows = np.unique(errors[:, 0], return_inverse=True)
    sums = np.zeros((len(labels), errors.shape[1]))
    np.add.at(sums, rows, np.column_stack([np.ones(len(errors)), errors[:, 1:]]))
    shares = np.full(len(labels), 1 / len(labels))
    draws = np.random.default_rng(0).multinomial(len(labels), shares, RESAMPLES) @ sums
    error, predicted = (
        figures[0] for figures in _errors_and_shares(sums.sum(axis=0, keepdims=True))
    )
    # In some draws, lists may differ by chance alone, so that the share is unknown.
    drawn = _errors_and_shares(draws)[1]
    with np.errstate(invalid="ignore"):
        low = np.percentile(np.nan_to_num(drawn, nan=-np.inf), 2.5, axis=0)
        high = np.percentile(np.nan_to_num(drawn, nan=np.inf), 97.5, axis=0)
    lacks_interval = (len(labels) < MIN_QUERIES) | ~np.isfinite(low) | ~np.isfinite(high)
    table = pl.DataFrame(
        {
            "model": models,
            "error": error,
            "noise": np.full(len(models), np.sqrt(sums[:, 1].sum() / sums[:, 0].sum())),
            "predicted": predicted,
            "low": np.where(lacks_interval, np.nan, low),
            "high": np.where(lacks_interval, np.nan, high),
        }
    )
    return table, len(labels)


def _ranks(queries: Indices, counts: Indices) -> tuple[Indices, Indices]:
    """Return the rank of each list among the lists of its query, from 0 for the most frequent one,
    and the number of lists of its query.
    """
    order = np.lexsort((-counts, queries))
    _, starts, sizes = np.unique(queries[order], return_index=True, return_counts=True)
    ranks, n_of_query = np.empty((2, len(order)), np.int64)
    ranks[order] = np.arange(len(order)) - np.repeat(starts, sizes)
    n_of_query[order] = np.repeat(sizes, sizes)
    return ranks, n_of_query


def _squared_errors(
    log: ClickLog,
    train: ClickLog,
    fits: Sequence[Estimator],
    index: Indices,
    first: Indices,
    lists: Indices,
) -> tuple[Floats, Floats]:
    """Return the noise and the squared errors of the baseline and of each model in two arrays: with
    a row for each position of the lists that are left out in one round, and with a row for each of
    these lists. `check_models` lists the columns.
    """
    out = np.isin(index, lists)
    left_out, n_items = log[first[lists]], np.int64(len(log.item_labels))
    pairs, displays = np.unique(
        (train.queries[:, None] * n_items + train.items)[train.items >= 0], return_counts=True
    )
    codes = left_out.queries[:, None] * n_items + left_out.items
    nearest = np.minimum(np.searchsorted(pairs, codes), len(pairs) - 1)
    is_shown_often = (pairs[nearest] == codes) & (displays[nearest] >= MIN_DISPLAYS)
    is_predicted = is_shown_often & (left_out.items >= 0)
    numbers, n_queries = np.searchsorted(lists, index[out]), len(log.query_labels)
    rates, noise = _rates(log[out], numbers, len(lists))
    query_rates, query_noise = (
        table[left_out.queries] for table in _rates(train, train.queries, n_queries)
    )
    predictions = [fit.predict_proba(left_out) for fit in fits]
    errors = [(predicted - rates) ** 2 for predicted in predictions]
    columns = np.broadcast_arrays(
        left_out.queries[:, None], noise, noise + query_noise, (query_rates - rates) ** 2, *errors
    )
    by_position = np.stack([column[is_predicted] for column in columns], axis=1)

    counted_in_query = np.zeros((n_queries, is_predicted.shape[1]), np.bool_)
    counted_in_query[left_out.queries] = is_predicted  # one list of each query is left out
    totals, noise = _totals(log[out], numbers, is_predicted)
    query_totals, query_noise = (
        table[left_out.queries] for table in _totals(train, train.queries, counted_in_query)
    )
    sums = [(predicted * is_predicted).sum(axis=1) for predicted in predictions]
    errors = [(predicted - totals) ** 2 for predicted in sums]
    baseline = (query_totals - totals) ** 2
    by_list = np.stack([left_out.queries, noise, noise + query_noise, baseline, *errors], axis=1)
    return by_position, by_list[is_predicted.any(axis=1)]


def _rates(log: ClickLog, groups: Indices, n: int) -> tuple[Floats, Floats]:
    """Return the click rates of groups of sessions by position, and the variances of these rates,
    as two ``(n, K)`` arrays.
    """
    displays = np.array([np.bincount(groups, column, n) for column in (log.items >= 0).T]).T
    clicks = np.array([np.bincount(groups, column, n) for column in log.clicks.T]).T
    rate = (clicks + 0.5) / (displays + 1)  # smoothed, so that no variance is 0
    noise = rate * (1 - rate) / np.maximum(displays, 1)
    return clicks / np.maximum(displays, 1), noise


def _totals(log: ClickLog, groups: Indices, counted: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return the numbers of clicks per session of groups of sessions, and the variances of these
    means, as two ``(n,)`` arrays. ``counted``, ``(n, K)``, marks the positions that count.
    """
    clicks = (log.clicks * counted[groups]).sum(axis=1)
    sessions = np.maximum(np.bincount(groups, minlength=len(counted)), 1)
    mean = np.bincount(groups, clicks, len(counted)) / sessions
    variance = np.bincount(groups, clicks**2, len(counted)) / sessions - mean**2
    return mean, variance / sessions


def _errors_and_shares(sums: Floats) -> tuple[Floats, Floats]:
    """Return the error of each model, and the share of the differences between lists that the model
    predicts, from rows of sums over positions.
    """
    counts, noise, both_noise, rate_errors = (column[:, None] for column in sums.T[:4])
    differences = np.where(rate_errors > both_noise, rate_errors - both_noise, np.nan)
    missing = np.maximum(sums[:, 4:] - noise, 0)
    return np.sqrt(sums[:, 4:] / counts), 1 - missing / differences


def _verdict(
    table: pl.DataFrame, of_lists: pl.DataFrame, n_lists: int, n_queries: int
) -> tuple[str, str]:
    """Return the verdict on whether simulations can be trusted to order lists, as a word and as a
    sentence. ``of_lists`` is the table for the numbers of clicks on whole lists.
    """
    queries = "one query" if n_queries == 1 else f"{n_queries:,} queries"
    basis = f"{counted(n_lists, 'list')} of {queries}, each left out once"
    best = table.sort("error").select("model", "predicted", "low", "high")
    model, share, low, high = best.row(0)
    if np.isnan(share):
        return "unknown", f"{UNKNOWN}: its lists differ by chance alone ({basis})."
    interval = f" ({low:.0%} to {high:.0%})" if low <= high else ""
    prediction = f"{share:.0%}{interval} of the differences between lists ({basis})"
    fact = f"the best model, {model}, predicts {prediction}"
    *_, of_totals, least, most = of_lists.row(by_predicate=pl.col("model") == model)
    if most < TRUSTED:
        return "cannot", (
            "Simulations of this log cannot be trusted to tell which lists get how many clicks: "
            f"{fact}, but only {of_totals:.0%} ({least:.0%} to {most:.0%}) of the differences in "
            "their numbers of clicks."
        )
    if low > TRUSTED:
        numbers = ", whose numbers of clicks differ too little to be tested"
        is_tested = least <= most
        if is_tested:
            numbers = (
                f", and {of_totals:.0%} ({least:.0%} to {most:.0%}) of the differences in their "
                "numbers of clicks"
            )
        if is_tested and of_totals < TRUSTED:
            return "unknown", f"{UNKNOWN}: {fact}{numbers}."
        # Without a test of the numbers of clicks, the model that fit prefers may misorder lists.
        is_best = (best["low"] > TRUSTED).sum() == 1 or not is_tested
        advice = f" Use the users of {model}, even if fit prefers another model."
        advice *= len(table) > 1 and is_best
        return "can", (
            f"Simulations of this log can be trusted to order lists like those of the log: {fact}"
            f"{numbers}. They are less reliable about how much a list gains.{advice}"
        )
    if high < TRUSTED:
        return "cannot", f"Simulations of this log cannot be trusted to order its lists: {fact}."
    hint = ""
    if n_queries < MIN_QUERIES:
        hint = f"; an interval needs {MIN_QUERIES} queries"
    elif np.isnan(low):
        hint = "; there is no interval, because the lists hardly differ"
    return "unknown", f"{UNKNOWN}: {fact}{hint}."
