"""Instances made from a click log: click models are fitted to the log, and scored on held-out
sessions.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from ..core.checks import check_count, check_kind, check_labels, check_number, check_seed
from ..core.messages import short_repr
from ..core.statistics import half_width
from ..core.text import counted
from ..envs import ClickModel, Instance
from .estimation.counting import by_query
from .estimation.estimator import MODEL_ESTIMATORS, Estimator, check_models_to_fit
from .log import ClickLog, frequent_queries

MIN_SHARE = 0.01
"""The smallest share of a query's sessions that must show an item, so that the item belongs to the
query's instance.
"""
MIN_CLICKS = 30
"""The smallest number of clicks that the same items must have at each of two positions, so that the
two positions can be compared.
"""
ORIGIN = "estimated by clickgym from a click log"


@dataclass(frozen=True)
class Fitted:
    """Click models that were fitted to a log, and the instances made from these models.

    Attributes:
        train, test: the sessions to which the scored models were fitted, and the held-out sessions
            on which they can be scored. If no sessions are held out, ``train`` has all sessions.
            Both are sorted by query, list and clicks.
        scored: the estimators that were fitted to ``train``, by the short names of their models.
        estimators: the estimators that were fitted to the whole log, by the short names of their
            models.
        instances: the instances, keyed by query label. Their click models come from
            ``estimators``. ``estimation`` of an instance says how it was made: the query, items and
            numbers of sessions, the seed, the log likelihoods on held-out sessions, the files and
            columns of a log from `read_log`, and the version of clickgym.
    """

    train: ClickLog
    test: ClickLog
    scored: dict[str, Estimator]
    estimators: dict[str, Estimator]
    instances: dict[str, Instance]

    def scores(self) -> pl.DataFrame:
        """Return the scores of the models on the held-out sessions, the best model first.

        Returns:
            A data frame with a row for each model and these columns: ``model``; ``log_likelihood``,
            the mean per session; ``below_best``, how far the mean is below that of the best model;
            and ``half_width``, the half-width of the 95 % confidence interval of ``below_best``,
            computed from the difference in each session. A model that excludes the clicks of a
            session is below by infinity, with a half-width of 0.

        Raises:
            ValueError: no sessions are held out.

        Example:
            >>> lists, clicks = [[0, 1], [1, 0]] * 50, [[1, 0], [0, 1]] * 50
            >>> log = ClickLog(lists, clicks, [0] * 100, ("a", "b"), ("q",))
            >>> fit_models(log, ["DBN", "PBM"]).scores()["model"].to_list()
            ['DBN', 'PBM']
        """
        if not len(self.test):
            raise ValueError("no sessions are held out; pass a test_share above 0 to fit_models")
        of_sessions = {
            name: estimator.log_likelihood(self.test) for name, estimator in self.scored.items()
        }
        means = {name: float(values.mean()) for name, values in of_sessions.items()}
        names = sorted(means, key=means.__getitem__, reverse=True)
        n, rows = len(self.test), []
        for name in names:
            with np.errstate(invalid="ignore"):  # a model may exclude a session's clicks
                below = of_sessions[names[0]] - of_sessions[name]
                spread = float(below.std(ddof=1)) if n > 1 else 0.0
            half = half_width(n) * spread if np.isfinite(spread) else 0.0
            rows.append((name, means[name], float(below.mean()), half))
        columns = ["model", "log_likelihood", "below_best", "half_width"]
        return pl.DataFrame(rows, schema=columns, orient="row")

    def candidates(self) -> list[str]:
        """Return the models that may be the best one by the held-out sessions, the one with the
        highest score first: all models whose interval in `scores` contains 0. If there is only one,
        the held-out sessions decide.
        """
        scores = self.scores()
        is_below = scores["below_best"].to_numpy() > scores["half_width"].to_numpy()
        return [*scores["model"].to_numpy()[~is_below]]


def fit_models(
    log: ClickLog,
    models: Sequence[str],
    queries: Sequence[str] = (),
    *,
    n_items: int | None = None,
    test_share: float = 0.2,
    seed: int = 0,
    origin: str = ORIGIN,
) -> Fitted:
    """Fit click models to a log, hold out sessions for scoring the models, and make instances of
    queries.

    The instances use estimates from all sessions. The estimators for scoring are fitted without the
    held-out sessions. Because the sessions are sorted first, the result does not depend on the
    order of the log's rows and files.

    Args:
        log: the sessions to fit the models to.
        models: the short names of the click models to fit: CM, DCM, PBM, UBM, DBN, CCM, or the
            short name of another estimator's ``model_class``.
        queries: the labels of the queries to make instances for; by default, the most frequent
            query.
        n_items: L, the number of items in each instance, which keeps the items that the log shows
            most often for the query. By default, an instance has all items that appear in at least
            1 % of the query's sessions. The models are always fitted to all items.
        test_share: the share of sessions that are held out; with 0, no sessions are held out.
        seed: the seed of the random split.
        origin: a text for the instances that says where they come from.

    Raises:
        ValueError: an argument is invalid; raised before any model is fitted.

    Warns:
        ConvergenceWarning: EM with a ``tol`` had not converged after its last step.
        UserWarning: several lists of a query were shown equally often, and most often. The first
            of them in the order of the items' labels becomes the instance's initial ranking. Or an
            instance lacks items of its query's most frequent list.

    Example:
        >>> log = ClickLog([[0, 1], [1, 0]] * 5, [[1, 0], [0, 1]] * 5, [0] * 10, ("a", "b"), ("q",))
        >>> fitted = fit_models(log, ["CM", "DBN"], n_items=2)
        >>> fitted.instances["q"].model("CM").attraction.round(2)
        array([0.97, 0.05])
        >>> fitted.scored["DBN"].score(fitted.test) < 0
        True
    """
    check_kind("log", log, ClickLog, "a ClickLog, as read_log returns it")
    check_models_to_fit(check_labels("models", models))
    check_number("test_share", test_share, 0, below=1)
    if not len(log):
        raise ValueError("the log has no sessions")
    given = log
    order, log = sorted_log(given)
    labels = check_labels("queries", queries) or frequent_queries(log)
    items = {label: _items_of(log, label, n_items) for label in labels}
    held_out = _draw_held_out(len(log), test_share, check_seed(seed))
    scored = {name: MODEL_ESTIMATORS[name]().fit(log[~held_out]) for name in models}
    estimators = scored
    if test_share:
        estimators = {name: MODEL_ESTIMATORS[name]().fit(log) for name in models}
    train, test = given[order[~held_out]], given[order[held_out]]
    fitted = Fitted(train, test, scored, estimators, {})
    provenance = {
        "sessions_of_all_queries": len(log),
        "held_out_sessions": len(test),
        "seed": seed,
        "log_likelihood": _finite_scores(fitted),
        **log.source,
        "clickgym": version("clickgym"),
    }
    for label in labels:
        click_models = [
            estimator.click_model(label, sorted(items[label])) for estimator in estimators.values()
        ]
        instance = _make_instance(log, label, items[label], click_models, origin, provenance)
        fitted.instances[label] = instance
    return fitted


def _finite_scores(fitted: Fitted) -> dict[str, float | None]:
    """Return the log likelihood per held-out session of each model; None for a model that excludes
    a session, since JSON has no infinity. If no sessions are held out, there are no scores.
    """
    if not len(fitted.test):
        return {}
    scores = fitted.scores().select("model", "log_likelihood").rows()
    return {name: score if np.isfinite(score) else None for name, score in scores}


def sorted_log(log: ClickLog) -> tuple[NDArray[np.int64], ClickLog]:
    """Return the order of a log's sessions by query, list and clicks, and the log in this order,
    with its labels in alphabetical order and without labels of other sessions. Two logs with the
    same sessions are equal after sorting, since sessions with the same query, list and clicks are
    interchangeable.
    """
    item_labels, items = _sorted_labels(log.item_labels, log.items[log.items >= 0])
    query_labels, queries = _sorted_labels(log.query_labels, log.queries)
    items, queries = np.append(items, np.int32(-1))[log.items], queries[log.queries]
    order = np.lexsort([*log.clicks.T[::-1], *items.T[::-1], queries])
    items, queries = items[order], queries[order]
    return order, ClickLog(items, log.clicks[order], queries, item_labels, query_labels, log.source)


def _sorted_labels(
    labels: Sequence[str], used: NDArray[np.int32]
) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Return the labels whose numbers are used, in alphabetical order, and the new number of each
    label, which is -1 for the others.
    """
    occurring = np.flatnonzero(np.bincount(used, minlength=len(labels)))
    order = sorted(occurring.tolist(), key=labels.__getitem__)
    numbers = np.full(len(labels), -1, np.int32)
    numbers[order] = np.arange(len(order))
    return tuple(labels[number] for number in order), numbers


def _draw_held_out(n: int, share: float, seed: int) -> NDArray[np.bool_]:
    """Draw the held-out sessions among n sessions. Unless the share is 0, at least one session is
    held out, and at least one is left.
    """
    held_out = np.zeros(n, bool)
    if share:
        if n < 2:
            raise ValueError(f"the log has {n} sessions; expected 2 or more, to hold some out")
        size = min(max(round(share * n), 1), n - 1)
        held_out[np.random.default_rng(seed).choice(n, size, replace=False)] = True
    return held_out


def _items_of(log: ClickLog, query: str, n_items: int | None) -> list[str]:
    """Return the labels of the ``n_items`` items that the log shows most often for a query, in
    descending order of frequency. By default, return the items in at least `MIN_SHARE` of the
    query's sessions, but at least as many items as there are positions.
    """
    if query not in log.query_labels:
        frequent = ", ".join(frequent_queries(log, 10))
        raise ValueError(
            f"the log has no query {short_repr(query)}; its most frequent queries are {frequent}"
        )
    if n_items is not None and check_count("n_items", n_items) < log.n_positions:
        raise ValueError(
            f"n_items is {n_items}, but the log has {log.n_positions} positions; pass at least "
            f"n_items={log.n_positions}"
        )
    sessions = log.of_query(query).items
    displays = np.bincount(sessions[sessions >= 0], minlength=len(log.item_labels))
    displays_of = {log.item_labels[item]: int(displays[item]) for item in np.flatnonzero(displays)}
    if len(displays_of) < log.n_positions:
        raise ValueError(
            f"the query {query!r} has {len(displays_of)} items, but the log has {log.n_positions} "
            "positions; choose a query with at least as many items"
        )
    if n_items is None:
        n_frequent = sum(count >= MIN_SHARE * len(sessions) for count in displays_of.values())
        n_items = max(n_frequent, log.n_positions)
    return sorted(displays_of, key=lambda item: (-displays_of[item], item))[:n_items]


def _make_instance(
    log: ClickLog,
    query: str,
    items: Sequence[str],
    models: Sequence[ClickModel],
    origin: str,
    provenance: Mapping[str, Any],
) -> Instance:
    """Make the instance of one query from click models whose items are sorted by label.

    Because items are numbered in the order of their labels, the numbers say nothing about positions
    and clicks. The initial ranking is the most frequent list, reduced to the instance's items, and
    then the instance's other items, most often shown first. If several lists are the most frequent,
    the first one in the order of the labels counts, and a warning says so.
    """
    labels = sorted(items)
    sessions = log.of_query(query).items
    lists, counts = np.unique(sessions, axis=0, return_counts=True)
    n_most = int((counts == counts.max()).sum())
    if n_most > 1:
        warnings.warn(
            f"query {short_repr(query)}: {n_most:,} lists were shown most often, in "
            f"{counts.max():,} of {len(sessions):,} sessions each; today's list is the first of "
            "them in the order of the items' labels",
            stacklevel=3,
        )
    production = [log.item_labels[item] for item in lists[counts.argmax()].tolist() if item >= 0]
    n_lost = len({*production} - {*items})
    if n_lost:
        warnings.warn(
            f"query {short_repr(query)}: the instance lacks {counted(n_lost, 'item')} of today's "
            "list; to keep them, let it have more items (n_items, or --items)",
            stacklevel=3,
        )
    initial = dict.fromkeys([*filter(set(items).__contains__, production), *items])
    return Instance(
        name=query,
        models={model.kind: model for model in models},
        n_positions=log.n_positions,
        description=f"query {query}, {len(sessions)} sessions, {len(items)} items "
        f"({', '.join(model.name() for model in models)})",
        origin=origin,
        initial_ranking=np.array([labels.index(item) for item in initial]),
        estimation={
            "query": query,
            "items": labels,
            "sessions": len(sessions),
            **provenance,
        },
    )


def position_groups(log: ClickLog) -> list[list[int]]:
    """Return groups of positions, counted from 1, such that the log compares only positions of the
    same group with each other. If the log compares all positions, there is one group.

    A log compares two positions directly if the same items were clicked at both positions for the
    same query, and indirectly through other positions. If two positions are in different groups, a
    click model without a reading order (PBM, UBM) cannot tell whether one of the positions shows
    more attractive items or is looked at by more users.

    Example:
        >>> exchanged = ClickLog([[0, 1, 2], [1, 0, 2]] * 40, [[1] * 3] * 80, [0] * 80,
        ...     ("a", "b", "c"), ("q",))
        >>> position_groups(exchanged)
        [[1, 2], [3]]
    """
    order, codes, pairs = by_query(log.queries, log.items, len(log.item_labels))
    sessions, positions = np.nonzero(log.clicks[order])
    clicks = np.zeros((len(codes), log.n_positions), np.int64)
    np.add.at(clicks, (pairs[sessions, positions], positions), 1)
    common = np.array([np.minimum(clicks, column[:, None]).sum(axis=0) for column in clicks.T])
    n_groups, group = connected_components(common >= MIN_CLICKS)
    return [(np.flatnonzero(group == number) + 1).tolist() for number in range(n_groups)]


def log_notes(log: ClickLog) -> str:
    """Return sentences that warn about positions that the log does not compare, and about a log
    that may lack its sessions without a click. If neither warning applies, return an empty text.
    """
    sentences, groups = [], position_groups(log)
    if len(groups) > 1:
        words = " | ".join(", ".join(map(str, group)) for group in groups)
        sentences.append(
            "Caution: hardly any item was clicked in more than one of these groups of positions: "
            f"{words}. A comparison of items from different groups therefore rests only on "
            "assumptions of the click model. Show items in random order in 5 % of the sessions."
        )
    if log.clicks.any(axis=1).all():
        sentences.append(
            "Caution: every session has a click. If the sessions without a click were left out of "
            "the log, all estimates are too high, and the wrong click model may fit best."
        )
    return " ".join(sentences)
