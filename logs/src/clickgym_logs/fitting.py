"""From a click log to instances: choice of estimators, held-out sessions, and standard errors."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clickgym.core.checks import (
    check_between,
    check_choice,
    check_count,
    check_kind,
    check_labels,
    check_seed,
    check_share,
    is_sequence,
)
from clickgym.envs import ClickModel, Instance

from .counting import by_query
from .distinct import sorted_distinct
from .estimation.estimator import MODEL_ESTIMATORS, Estimator
from .estimation.query_instance import ORIGIN, items_of, query_instance
from .log import ClickLog, frequent_queries

REFIT_SESSIONS = 20_000
"""A refit draws a quarter of the sessions, but not fewer than these, if there are so many."""
FEW_SESSIONS = 10
"""Of a pair of query and item: below, it is rare."""


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
        replicates: by query further instances, with the parameters of models that were fitted to as
            many sessions drawn from the log with replacement.
        variety: by query how many lists the log shows, and the share of displays in which an item
            is at its most frequent position.
        left_out: by query how many items the instance lacks, and how many sessions show one.
        rare: how many pairs of query and item the log shows in fewer than 10 sessions, and how many
            pairs there are.
    """

    train: ClickLog
    test: ClickLog
    scored: dict[str, Estimator]
    estimators: dict[str, Estimator]
    instances: dict[str, Instance]
    variety: dict[str, tuple[int, float]]
    left_out: dict[str, tuple[int, int]]
    rare: tuple[int, int]
    replicates: Mapping[str, Sequence[Instance]] = field(default_factory=dict)


def fit_models(
    log: ClickLog,
    models: Sequence[str | Estimator],
    queries: Sequence[str] = (),
    *,
    n_items: int | None = None,
    test_share: float = 0.2,
    seed: int = 0,
    bootstrap: int = 0,
    replicates: int = 0,
    origin: str = ORIGIN,
) -> Fitted:
    """Fit click models to a log, score them on held-out sessions, and make instances of queries.

    The instances contain parameters estimated from all sessions, equal to those that the estimator
    finds by itself. The scores come from estimators that were fitted without the held-out sessions.

    Args:
        log: the sessions.
        models: estimators, whose settings are taken; or their short names, which are CM, DCM, SDBN,
            PBM, UBM, DBN and those of other estimators with a ``model_class``; or ``["all"]``. If
            two estimate the same click model, as SDBN and DBN do, an instance holds the one that
            predicts better.
        queries: labels of the queries that become instances; without any, the most frequent one.
        n_items: L, the number of items, those that were displayed most. None takes all items that
            are in at least one of a hundred sessions of the query. The fit itself uses all items.
        test_share: the share of sessions that are held out; 0 for none.
        seed: of the split and of the bootstrap.
        bootstrap: the number of refits to resampled sessions, which give the instances standard
            errors; 0 for none. Clicks do not tell about items that no session has shown, nor about
            leaving after the last position (DCM). In PBM and UBM they do not tell the common factor
            of attraction and examination. There the errors hold for the examination at position 1
            as the instance has it.
        replicates: the number of further instances of each query, whose models are refits to
            resampled sessions. If agents differ less than the results of one over these instances,
            so few sessions do not tell them apart.
        origin: where the instances say that they come from.

    Raises:
        ValueError: on wrong input, before any model is fitted.

    Warns:
        ConvergenceWarning: as `Estimator.fit`.

    Example:
        >>> log = ClickLog([[0, 1], [1, 0]] * 5, [[1, 0], [0, 1]] * 5, [0] * 10, ("a", "b"), ("q",))
        >>> fitted = fit_models(log, ["CM", "SDBN"], n_items=2)
        >>> fitted.instances["q"].model("CM").attraction.round(2)
        array([0.97, 0.05])
        >>> fitted.scored["SDBN"].score(fitted.test) < 0
        True
    """
    settings = _named(models)
    queries = check_labels("queries", queries)
    check_seed(seed)
    test_share = check_share("test_share", test_share)
    check_kind("log", log, ClickLog, "a ClickLog")
    if n_items is not None:
        check_count("n_items", n_items)
    if check_count("bootstrap", bootstrap, 0) == 1:
        raise ValueError("bootstrap is 1; expected 0 or at least 2 refits, as one has no spread")
    check_count("replicates", replicates, 0)
    check_kind("origin", origin, str, "text")
    labels = list(queries) or frequent_queries(log)
    items = {label: items_of(log, label, n_items) for label in labels}
    train, test = log, log[:0]
    if test_share:
        train, test = train_test_split(log, test_share, random_state=seed)

    def fit(name: str, log: ClickLog, start: Estimator | None = None) -> Estimator:
        return copy.copy(settings[name]).fit(log, start=start)

    scored: dict[str, Estimator] = {}
    estimators: dict[str, Estimator] = {}
    for name in settings:
        estimators[name] = scored[name] = fit(name, train)
        if train is not log:
            estimators[name] = fit(name, log)
    best = {name: estimators[name] for name in _one_of_each(scored, test if len(test) else train)}
    method = {
        "sessions_of_all_queries": len(log),
        "smoothing": "(a + successes) / (a + b + trials)",
        "prior": {name: [round(float(x), 6) for x in it.prior_] for name, it in best.items()},
        "position_parameters": "shared by all queries of the log",
        "steps": {name: getattr(it, "n_iter_", None) for name, it in best.items()},
    }
    instances = {}
    for label in labels:
        shown = items[label]
        made = {name: it.click_model(label, sorted(shown)) for name, it in best.items()}
        instances[label] = query_instance(log, label, shown, made, origin, method)
    if bootstrap:
        instances = _with_standard_errors(instances, best, log, fit, bootstrap, seed)
    refits = _replicates(instances, best, log, fit, replicates, seed)
    variety = {label: _variety(log, label) for label in labels}
    left_out = {label: _left_out(log, label, items[label]) for label in labels}
    _, codes, pairs = by_query(log.queries, log.items, len(log.item_labels))
    displays = np.bincount(pairs[pairs >= 0], minlength=len(codes))
    rare = int((displays < FEW_SESSIONS).sum()), len(codes)
    return Fitted(train, test, scored, estimators, instances, variety, left_out, rare, refits)


def _named(models: Sequence[str | Estimator]) -> dict[str, Estimator]:
    """Estimators by their short names, from estimators or names."""
    if not is_sequence(models):
        check_labels("models", models)
    kinds = [it for it in models if isinstance(it, Estimator)]
    names = check_labels("models", [it for it in models if not isinstance(it, Estimator)])
    names = tuple(MODEL_ESTIMATORS) if names == ("all",) and not kinds else names
    for name in names:
        check_choice("model", name, MODEL_ESTIMATORS)
    made = {name: MODEL_ESTIMATORS[name]() for name in names}
    return made | {it.short: it for it in kinds}


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
    lists, _, counts = sorted_distinct(log.of_query(query).items)
    displays = np.zeros((lists.max() + 1, log.n_positions))
    rows, positions = np.nonzero(lists >= 0)
    np.add.at(displays, (lists[rows, positions], positions), counts[rows])
    return len(lists), float(displays.max(axis=1).sum() / displays.sum())


def _left_out(log: ClickLog, query: str, items: Sequence[str]) -> tuple[int, int]:
    """How many items of a query are not among some, and how many sessions show one of them."""
    shown = log.of_query(query).items
    found = np.unique(shown[shown >= 0])
    others = found[[log.item_labels[item] not in set(items) for item in found]]
    return len(others), int(np.isin(shown, others).any(axis=1).sum())


def _replicates(
    instances: Mapping[str, Instance],
    estimators: Mapping[str, Estimator],
    log: ClickLog,
    fit: Callable[..., Estimator],
    n: int,
    seed: int,
) -> dict[str, list[Instance]]:
    """Instances of each query from n refits to as many sessions, drawn with replacement."""
    refits: dict[str, list[Instance]] = {label: [] for label in instances}
    for number in range(1, n + 1):
        drawn = np.random.default_rng([seed, 1, number]).integers(len(log), size=len(log))
        sample = log[np.sort(drawn)]
        fitted = [fit(name, sample, estimator) for name, estimator in estimators.items()]
        for label, instance in instances.items():
            items = instance.estimation["items"]
            models = [estimator.click_model(label, items, unseen=True) for estimator in fitted]
            facts = {**instance.estimation, "refit": number}
            facts.pop("standard_errors", None)
            refit = replace(
                instance,
                name=instance.refit(number),
                models={model.kind: model for model in models},
                description=f"{instance.description}, refitted to resampled sessions",
                estimation=facts,
            )
            refits[label].append(refit)
    return refits


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
                model = drawn.click_model(label, items, unseen=True)
                draws[label].append(_parameters(model, instance.model(kind)))
        for label, instance in instances.items():
            sessions = log.of_query(label)
            shown = [sessions.items == log.item_labels.index(item) for item in instance.labels]
            expected = estimator.predict_proba(sessions)
            of_items = [(expected[where].sum(), sessions.clicks[where].sum()) for where in shown]
            spread = {
                key: np.std([draw[key] for draw in draws[label]], axis=0, ddof=1)
                for key in draws[label][0]
            }
            model, scale = instance.model(kind), np.sqrt(size / len(log))
            errors[label][kind] = {
                key: _identified(estimator, model, key, deviation * scale, np.array(of_items))
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


def _identified(
    estimator: Estimator, model: ClickModel, name: str, errors: Any, clicks: NDArray[np.float64]
) -> Any:
    """Standard errors as an instance holds them: None where clicks do not tell the parameter.

    ``clicks`` are those of each item, expected and seen, ``(L, 2)``.
    """
    values = np.asarray(getattr(model.parameters, name))
    untold = (errors == 0.0) & (values == 0.5)  # nothing has moved it from where EM starts
    if name in ("examination", "termination"):
        untold.flat[0 if name == "examination" else -1] = True
    if name in model.item_parameters():
        of_pairs = getattr(estimator, f"{name}_", None)
        if of_pairs is not None:
            untold = np.isclose(values, of_pairs[-1], 1e-9, 0.0)  # as of a pair never shown
        # No item is known better than from its examined displays, or its clicks, under the prior.
        trials = clicks[:, 0] / np.maximum(values, 1e-9) if name == "attraction" else clicks[:, 1]
        size = trials + sum(estimator.prior_) + 1
        errors = np.maximum(errors, np.sqrt(values * (1 - values) / size))
    identified: Any = np.where(untold, None, errors.round(6))
    return identified.tolist()


def train_test_split(
    log: ClickLog, test_size: float = 0.2, *, random_state: int = 0
) -> tuple[ClickLog, ClickLog]:
    """Split a log at random.

    Args:
        log: at least two sessions.
        test_size: in (0, 1), the share of the sessions that are held out. At least one is held out,
            and at least one is not.
        random_state: the same seed gives the same split.

    Returns:
        The sessions to learn from and those held out, both in the order of the log.

    Raises:
        ValueError: on fewer than two sessions, or another share.

    Example:
        >>> log = ClickLog([[0]] * 5, [[1]] * 5, [0] * 5, ("a",), ("q",))
        >>> [len(part) for part in train_test_split(log, 0.2)]
        [4, 1]
    """
    check_kind("log", log, ClickLog, "a ClickLog")
    check_between("test_size", test_size, 0, 1)
    check_seed(random_state)
    if len(log) < 2:
        raise ValueError(f"a log of {len(log)} sessions cannot be split")
    size = min(max(round(test_size * len(log)), 1), len(log) - 1)
    held_out = np.zeros(len(log), bool)
    held_out[np.random.default_rng(random_state).choice(len(log), size, replace=False)] = True
    return log[~held_out], log[held_out]
