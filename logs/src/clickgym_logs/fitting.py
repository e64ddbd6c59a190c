"""From a click log to instances: choice of estimators, held-out sessions, and one query as a
ranking problem.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clickgym.core.checks import (
    check_at_least,
    check_choice,
    check_count,
    check_kind,
    check_labels,
    check_seed,
    check_share,
)
from clickgym.envs import ClickModel, DependentClickModel, Instance

from .distinct import sorted_distinct
from .estimation.estimator import MODEL_ESTIMATORS, Estimator
from .log import ClickLog

ITERATIONS, TOL = 1000, 1e-7
"""Of the EM algorithms of models that become instances."""
REFIT_SESSIONS = 20_000
"""A refit draws a quarter of the sessions, but not fewer than these, if there are so many."""


@dataclass(frozen=True)
class Fitted:
    """Click models fitted to a log.

    Attributes:
        train, test: the sessions that the models to be scored were fitted to, and those held out
            for their scores; all sessions and none, if none are held out.
        scored: the estimators fitted to ``train``, by the short names of their models.
        estimators: those fitted to the whole log.
        instances: what the latter say of each query, by its label. With a ``bootstrap``
            ``estimation["standard_errors"]`` has the standard error of each parameter by model and
            name, None where clicks do not tell it (see `fit_models`).
        variety: by query how many lists the log shows, and the share of displays in which an item
            is at its most frequent position.
    """

    train: ClickLog
    test: ClickLog
    scored: dict[str, Estimator]
    estimators: dict[str, Estimator]
    instances: dict[str, Instance]
    variety: dict[str, tuple[int, float]]


def fit_models(
    log: ClickLog,
    models: Sequence[str],
    queries: Sequence[str] = (),
    *,
    n_items: int | None = None,
    test_share: float = 0.2,
    tol: float = TOL,
    seed: int = 0,
    bootstrap: int = 0,
    origin: str = "estimated by clickgym from a click log",
) -> Fitted:
    """Fit click models to a log, score them on held-out sessions, and make instances of queries.

    The instances contain parameters estimated from all sessions. The scores come from estimators
    that were fitted without the held-out sessions. EM on all sessions starts from the result
    without the held-out sessions. Up to ``tol`` it ends where EM from 0.5 would, in far fewer
    steps.

    Args:
        log: the sessions.
        models: short names of their estimators: CM, DCM, SDBN, PBM, UBM, DBN and what others name a
            ``model_class``; or ``["all"]``. Where two estimate one click model, as SDBN and DBN, an
            instance holds the one that predicts better.
        queries: labels of the queries that become instances; without any, the most frequent one.
        n_items: L; None takes 10, or as many as the log has positions if these are more.
        test_share: the share of sessions that are held out; 0 for none.
        tol: of the EM algorithms, which take at most 1000 steps.
        seed: of the split and of the bootstrap.
        bootstrap: refits to resampled sessions, from which the instances have standard errors; 0
            for none. Clicks do not tell what no session has shown, leaving after the last position
            (DCM), and the common factor of attraction and examination (PBM, UBM): there the errors
            hold for the examination at position 1 as it is in the instance.
        origin: where the instances say that they come from.

    Raises:
        ValueError: on wrong input, before any model is fitted.

    Warns:
        ConvergenceWarning: as `Estimator.fit`.

    Example:
        >>> log = ClickLog([[0, 1], [1, 0]] * 5, [[1, 0], [0, 1]] * 5, [0] * 10, ("a", "b"), ("q",))
        >>> fitted = fit_models(log, ["CM", "SDBN"], n_items=2)
        >>> fitted.instances["q"].model("CM").attraction.round(2)
        array([0.92, 0.14])
        >>> fitted.scored["SDBN"].score(fitted.test) < 0
        True
    """
    models, queries = check_labels("models", models), check_labels("queries", queries)
    models = tuple(MODEL_ESTIMATORS) if models == ("all",) else models
    for name in models:
        check_choice("model", name, MODEL_ESTIMATORS)
    check_at_least("tol", tol, 0, strictly=True)
    check_seed(seed)
    test_share = check_share("test_share", test_share)
    check_kind("log", log, ClickLog, "a ClickLog")
    n_items = max(10, log.n_positions) if n_items is None else check_count("n_items", n_items)
    if check_count("bootstrap", bootstrap, 0) == 1:
        raise ValueError("bootstrap is 1; expected 0 or at least 2 refits, as one has no spread")
    check_kind("origin", origin, str, "text")
    labels = list(queries) or [log.query_labels[int(np.bincount(log.queries).argmax())]]
    items = {label: items_of(log, label, n_items) for label in labels}
    train, test = hold_out(log, test_share, seed) if test_share else (log, log[:0])

    def fit(name: str, log: ClickLog, start: Estimator | None = None) -> Estimator:
        return MODEL_ESTIMATORS[name].create(ITERATIONS, tol).fit(log, start=start)

    scored: dict[str, Estimator] = {}
    estimators: dict[str, Estimator] = {}
    for name in models:
        estimators[name] = scored[name] = fit(name, train)
        if train is not log:
            estimators[name] = fit(name, log, scored[name])
    best = {name: estimators[name] for name in _one_of_each(scored, test if len(test) else train)}
    method = {
        "sessions_of_all_queries": len(log),
        "smoothing": "(1 + successes) / (2 + trials)",
        "position_parameters": "shared by all queries of the log",
        "steps": {name: getattr(best[name], "n_iter_", None) for name in models if name in best},
    }
    instances = {
        label: query_instance(log, label, items[label], best, origin, method) for label in labels
    }
    if bootstrap:
        instances = _with_standard_errors(instances, best, log, fit, bootstrap, seed)
    variety = {label: _variety(log, label) for label in labels}
    return Fitted(train, test, scored, estimators, instances, variety)


def _one_of_each(scored: Mapping[str, Estimator], log: ClickLog) -> list[str]:
    """Of the estimators of one click model the one that predicts a log better, for an instance has
    room for one.
    """
    rivals: dict[type[ClickModel], list[str]] = {}
    for name, estimator in scored.items():
        rivals.setdefault(estimator.model_class, []).append(name)
    return [max(names, key=lambda name: scored[name].score(log)) for names in rivals.values()]


def _variety(log: ClickLog, query: str) -> tuple[int, float]:
    """How many lists the log shows for a query, and the share of displays in which an item is at
    its most frequent position.
    """
    lists, _, counts = sorted_distinct(log.items[log.queries == log.query_labels.index(query)])
    displays = np.zeros((lists.max() + 1, log.n_positions))
    rows, positions = np.nonzero(lists >= 0)
    np.add.at(displays, (lists[rows, positions], positions), counts[rows])
    return len(lists), float(displays.max(axis=1).sum() / displays.sum())


def _with_standard_errors(
    instances: Mapping[str, Instance],
    estimators: Mapping[str, Estimator],
    log: ClickLog,
    fit: Callable[..., Estimator],
    n: int,
    seed: int,
) -> dict[str, Instance]:
    """The instances of queries with the standard errors of their parameters, by click model and
    parameter, from n refits.
    """
    errors: dict[str, dict[str, Any]] = {label: {} for label in instances}
    size = max(len(log) // 4, min(len(log), REFIT_SESSIONS))
    for name, estimator in estimators.items():
        kind = estimator.model_class.short
        draws: dict[str, list[dict[str, Any]]] = {label: [] for label in instances}
        for number in range(n):
            # The same sessions are drawn for every model; sorted rows are copied faster.
            sample = np.random.default_rng([seed, number]).integers(len(log), size=size)
            drawn = fit(name, log[np.sort(sample)], estimator)
            for label, instance in instances.items():
                items = instance.estimation["items"]
                model = _click_model(drawn, label, items, unseen=True)
                draws[label].append(_parameters(model, instance.model(kind)))
        for label, instance in instances.items():
            lists = log.items[log.queries == log.query_labels.index(label)]
            displays = np.array(
                [(lists == log.item_labels.index(item)).sum() for item in instance.labels]
            )
            spread = {
                key: np.std([draw[key] for draw in draws[label]], axis=0, ddof=1)
                for key in draws[label][0]
            }
            model, scale = instance.model(kind), np.sqrt(size / len(log))
            errors[label][kind] = {
                key: _identified(model, key, deviation * scale, displays)
                for key, deviation in spread.items()
            }
    return {
        label: replace(
            instance,
            estimation={**instance.estimation, "refits": n, "standard_errors": errors[label]},
        )
        for label, instance in instances.items()
    }


def _parameters(model: ClickModel, like: ClickModel) -> dict[str, Any]:
    """Its parameters, those of PBM and UBM with the examination at position 1 of another."""
    values = {name: np.asarray(getattr(model.parameters, name)) for name in model.shapes}
    if "examination" in values:
        factor = values["examination"].flat[0] / like.parameters.examination.flat[0]
        values["attraction"] = values["attraction"] * factor
        values["examination"] = values["examination"] / factor
    return values


def _identified(model: ClickModel, name: str, errors: Any, displays: NDArray[np.int64]) -> Any:
    """Standard errors as an instance holds them: None where clicks do not tell the parameter."""
    values = np.asarray(getattr(model.parameters, name))
    untold = (errors == 0.0) & (values == 0.5)  # nothing has moved it from where EM starts
    if name in ("examination", "termination"):
        untold.flat[0 if name == "examination" else -1] = True
    if name in model.item_parameters():
        # No item is known better than from its displays under a Beta(1, 1) prior.
        errors = np.maximum(errors, np.sqrt(values * (1 - values) / (displays + 3)))
    identified: Any = np.where(untold, None, errors.round(6))
    return identified.tolist()


def hold_out(log: ClickLog, share: float, seed: int = 0) -> tuple[ClickLog, ClickLog]:
    """Split a log at random.

    Args:
        log: at least two sessions.
        share: in (0, 1), of the sessions that are held out; at least one is, and one is not.
        seed: the same seed gives the same split.

    Returns:
        The sessions to learn from and those held out, both in the order of the log.

    Raises:
        ValueError: on fewer than two sessions.

    Example:
        >>> log = ClickLog([[0]] * 5, [[1]] * 5, [0] * 5, ("a",), ("q",))
        >>> [len(part) for part in hold_out(log, 0.2)]
        [4, 1]
    """
    if len(log) < 2:
        raise ValueError(f"a log of {len(log)} sessions cannot be split")
    size = min(max(round(share * len(log)), 1), len(log) - 1)
    held_out = np.zeros(len(log), bool)
    held_out[np.random.default_rng(seed).choice(len(log), size, replace=False)] = True
    return log[~held_out], log[held_out]


def items_of(log: ClickLog, query: str, n_items: int) -> list[str]:
    """The labels of the items that a query displayed in most sessions, most first.

    Raises:
        ValueError: on a query that the log lacks or that has fewer items than positions.
    """
    if query not in log.query_labels:
        order = np.argsort(-np.bincount(log.queries), kind="stable")[:10]
        frequent = ", ".join(log.query_labels[index] for index in order)
        raise ValueError(f"the log has no query {query!r}; its most frequent ones are {frequent}")
    if n_items < log.n_positions:
        raise ValueError(f"n_items is {n_items}, but the log has {log.n_positions} positions")
    sessions = log.items[log.queries == log.query_labels.index(query)]
    displays = np.bincount(sessions[sessions >= 0], minlength=len(log.item_labels))
    shown = {log.item_labels[item]: int(displays[item]) for item in np.flatnonzero(displays)}
    if len(shown) < log.n_positions:
        raise ValueError(
            f"the query {query!r} has {len(shown)} items, but the log has {log.n_positions} "
            "positions"
        )
    return sorted(shown, key=lambda item: (-shown[item], item))[:n_items]


def query_instance(
    log: ClickLog,
    query: str,
    items: Sequence[str],
    estimators: Mapping[str, Estimator],
    origin: str,
    method: Mapping[str, Any],
) -> Instance:
    """The instance of one query.

    Its items are numbered in the order of their labels. So the numbers say nothing about positions
    and clicks; `Instance.labels` tells which item is which. The initial ranking is the most
    frequent list, without documents that are not items. Items that this list lacks follow, most
    displayed first.

    Args:
        log: the log that the estimators were fitted to.
        query: its label.
        items: as `items_of` returns them.
        estimators: of different click models, by their names.
        origin: where the log comes from.
        method: how it was fitted.
    """
    labels = sorted(items)
    sessions = log.items[log.queries == log.query_labels.index(query)]
    lists, _, counts = sorted_distinct(sessions)
    production = [log.item_labels[item] for item in lists[counts.argmax()].tolist() if item >= 0]
    initial = dict.fromkeys([*filter(set(items).__contains__, production), *items])
    models = [_click_model(estimator, query, labels) for estimator in estimators.values()]
    return Instance(
        name=query,
        models={model.kind: model for model in models},
        n_positions=log.n_positions,
        description=f"query {query}, {len(sessions)} sessions, {len(items)} items "
        f"({', '.join(estimators)})",
        origin=origin,
        initial_ranking=np.array([labels.index(item) for item in initial]),
        estimation={"query": query, "items": labels, "sessions": len(sessions), **method},
    )


def _click_model(
    estimator: Estimator, query: str, labels: list[str], *, unseen: bool = False
) -> ClickModel:
    """What an estimator says of a query's items."""
    model = estimator.click_model(query, labels, unseen=unseen)
    if isinstance(model, DependentClickModel) and model.n_positions > 1:
        # No log tells whether a user left after a click at the last position: it repeats the
        # position above.
        repeated = [*model.termination[:-1], model.termination[-2]]
        model = DependentClickModel(model.attraction, repeated)
    return model
