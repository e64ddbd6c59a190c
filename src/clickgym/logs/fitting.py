"""From a click log to instances: estimators, held-out sessions, and standard errors."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.checks import (
    check_choice,
    check_count,
    check_kind,
    check_labels,
    check_number,
    check_seed,
    short,
)
from ..envs import ClickModel, Instance
from .distinct import sorted_distinct
from .estimation.estimator import MODEL_ESTIMATORS, Estimator
from .estimation.information import Information
from .log import ClickLog, frequent_queries

SHOWN = 0.01
"""The share of the sessions of a query that show an item of its instance."""
REFIT_SESSIONS = 20_000
"""A refit draws a quarter of the sessions, but not fewer than these, if there are so many."""
ORIGIN = "estimated by clickgym from a click log"

Fit = Callable[..., Estimator]


@dataclass(frozen=True)
class Fitted:
    """Click models fitted to a log.

    Attributes:
        train, test: the sessions that the models to be scored were fitted to, and those held out
            for their scores; all sessions and none, if none are held out.
        scored: the estimators fitted to ``train``, by the short names of their models.
        estimators: those fitted to the whole log.
        information: what the log tells of the parameters of the latter.
        instances: what the latter say of each query, by its label. With a ``bootstrap``
            ``estimation["standard_errors"]`` has the standard error of each parameter by model and
            name, None where clicks do not tell it (see `fit_models`).
    """

    train: ClickLog
    test: ClickLog
    scored: dict[str, Estimator]
    estimators: dict[str, Estimator]
    information: dict[str, Information]
    instances: dict[str, Instance]


def fit_models(
    log: ClickLog,
    models: Sequence[str | Estimator],
    queries: Sequence[str] = (),
    *,
    n_items: int | None = None,
    test_share: float = 0.2,
    seed: int = 0,
    bootstrap: int = 0,
    origin: str = ORIGIN,
) -> Fitted:
    """Fit click models to a log, score them on held-out sessions, and make instances of queries.

    The instances contain parameters estimated from all sessions, equal to those that the estimator
    finds by itself. The scores come from estimators that were fitted without the held-out sessions.

    Args:
        log: the sessions.
        models: estimators, whose settings are taken; or their short names, which are CM, DCM, PBM,
            UBM, DBN, CCM and those of other estimators with a ``model_class``; or ``["all"]``.
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
        origin: where the instances say that they come from.

    Raises:
        ValueError: on wrong input, before any model is fitted.

    Warns:
        ConvergenceWarning: as `Estimator.fit`.

    Example:
        >>> log = ClickLog([[0, 1], [1, 0]] * 5, [[1, 0], [0, 1]] * 5, [0] * 10, ("a", "b"), ("q",))
        >>> fitted = fit_models(log, ["CM", "DBN"], n_items=2)
        >>> fitted.instances["q"].model("CM").attraction.round(2)
        array([0.97, 0.05])
        >>> fitted.scored["DBN"].score(fitted.test) < 0
        True
    """
    check_kind("log", log, ClickLog, "a ClickLog")
    settings = _named(models)
    check_seed(seed)
    check_number("test_share", test_share, 0, below=1)
    if n_items is not None:
        check_count("n_items", n_items)
    if check_count("bootstrap", bootstrap, 0) == 1:
        raise ValueError("bootstrap is 1; expected 0 or at least 2 refits, as one has no spread")
    labels = check_labels("queries", queries) or frequent_queries(log)
    items = {label: _items_of(log, label, n_items) for label in labels}
    train, test = log, log[:0]
    if test_share:
        train, test = _split(log, test_share, seed)

    def fit(name: str, log: ClickLog, start: Estimator | None = None) -> Estimator:
        return copy.copy(settings[name]).fit(log, start=start)

    scored = {name: fit(name, train) for name in settings}
    estimators = {name: fit(name, log) for name in settings} if test_share else scored
    information = {name: Information(it, log) for name, it in estimators.items()}
    instances = {}
    for label in labels:
        names = sorted(items[label])
        made = {name: it.click_model(label, names) for name, it in estimators.items()}
        instances[label] = _instance(log, label, items[label], made, origin)
    if bootstrap:
        instances = _with_standard_errors(instances, information, log, fit, bootstrap, seed)
    return Fitted(train, test, scored, estimators, information, instances)


def _split(log: ClickLog, share: float, seed: int) -> tuple[ClickLog, ClickLog]:
    """The sessions to learn from and those held out, at least one each, in the order of the log."""
    if len(log) < 2:
        raise ValueError(f"sessions of the log: {len(log)}; expected 2 or more, to hold some out")
    size = min(max(round(share * len(log)), 1), len(log) - 1)
    held_out = np.zeros(len(log), bool)
    held_out[np.random.default_rng(seed).choice(len(log), size, replace=False)] = True
    return log[~held_out], log[held_out]


def _named(models: Sequence[str | Estimator]) -> dict[str, Estimator]:
    """Estimators by their short names, from estimators or names."""
    check_kind("models", models, list | tuple, "names of click models, as ['PBM', 'UBM']")
    named = {}
    for model in MODEL_ESTIMATORS if list(models) == ["all"] else models:
        if not isinstance(model, Estimator):
            model = MODEL_ESTIMATORS[check_choice("model", model, MODEL_ESTIMATORS)]()
        named[model.model_class.short] = model
    return named


# -------------------------------------------------------------------- instances


def _items_of(log: ClickLog, query: str, n_items: int | None) -> list[str]:
    """The labels of the items that a query displayed in most sessions, most first; without a
    number, those in at least `SHOWN` of its sessions, and at least as many as there are positions.
    """
    if query not in log.query_labels:
        frequent = ", ".join(frequent_queries(log, 10))
        raise ValueError(
            f"the log has no query {short(query)}; its most frequent ones are {frequent}"
        )
    if n_items is not None and n_items < log.n_positions:
        raise ValueError(f"n_items is {n_items}, but the log has {log.n_positions} positions")
    sessions = log.of_query(query).items
    displays = np.bincount(sessions[sessions >= 0], minlength=len(log.item_labels))
    shown = {log.item_labels[item]: int(displays[item]) for item in np.flatnonzero(displays)}
    if len(shown) < log.n_positions:
        raise ValueError(
            f"the query {query!r} has {len(shown)} items, but the log has {log.n_positions} "
            "positions"
        )
    if n_items is None:
        often = sum(count >= SHOWN * len(sessions) for count in shown.values())
        n_items = max(often, log.n_positions)
    return sorted(shown, key=lambda item: (-shown[item], item))[:n_items]


def _instance(
    log: ClickLog, query: str, items: Sequence[str], models: Mapping[str, ClickModel], origin: str
) -> Instance:
    """The instance of one query, from models over the items in the order of their labels.

    Its items are numbered in this order, so the numbers say nothing about positions and clicks. The
    initial ranking is the most frequent list, without documents that are not items. Items that this
    list lacks follow, most displayed first.
    """
    labels = sorted(items)
    sessions = log.of_query(query).items
    lists, _, counts = sorted_distinct(sessions)
    production = [log.item_labels[item] for item in lists[counts.argmax()].tolist() if item >= 0]
    initial = dict.fromkeys([*filter(set(items).__contains__, production), *items])
    return Instance(
        name=query,
        models={model.kind: model for model in models.values()},
        n_positions=log.n_positions,
        description=f"query {query}, {len(sessions)} sessions, {len(items)} items "
        f"({', '.join(models)})",
        origin=origin,
        initial_ranking=np.array([labels.index(item) for item in initial]),
        estimation={
            "query": query,
            "items": labels,
            "sessions": len(sessions),
            "sessions_of_all_queries": len(log),
        },
    )


# -------------------------------------------------------------------- standard errors


def _with_standard_errors(
    instances: Mapping[str, Instance],
    information: Mapping[str, Information],
    log: ClickLog,
    fit: Fit,
    n: int,
    seed: int,
) -> dict[str, Instance]:
    """The instances of queries with the standard errors of their parameters, by click model and
    parameter, from n refits.
    """
    errors: dict[str, dict[str, Any]] = {label: {} for label in instances}
    size = max(len(log) // 4, min(len(log), REFIT_SESSIONS))
    for name, of_model in information.items():
        estimator = of_model.estimator

        # The parameters of each query in n refits.
        draws: dict[str, list[dict[str, Any]]] = {label: [] for label in instances}
        for number in range(n):
            # The same sessions are drawn for every model; sorted rows are copied faster.
            sample = np.random.default_rng([seed, number]).integers(len(log), size=size)
            drawn = fit(name, log[np.sort(sample)], estimator)
            for label, instance in instances.items():
                items = instance.estimation["items"]
                model = drawn.click_model(label, items, unseen=True)
                draws[label].append(_parameters(model, instance.model(name)))

        # Their standard deviations, None where the log does not tell the parameter.
        for label, instance in instances.items():
            model, scale = instance.model(name), np.sqrt(size / len(log))
            unidentified = _unidentified(of_model, label, instance.estimation["items"], model)
            sessions = log.of_query(label)
            shown = [sessions.items == log.item_labels.index(item) for item in instance.labels]
            expected = estimator.predict_proba(sessions)
            clicks = [(expected[where].sum(), sessions.clicks[where].sum()) for where in shown]
            errors[label][name] = {
                key: _identified(
                    estimator,
                    model,
                    key,
                    np.std([draw[key] for draw in draws[label]], axis=0, ddof=1) * scale,
                    np.array(clicks),
                    unidentified[key],
                )
                for key in draws[label][0]
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


def _unidentified(
    information: Information, query: str, items: list[str], model: ClickModel
) -> dict[str, NDArray[np.bool_]]:
    """Which parameters of a query's model the log does not tell."""

    def values(estimator: Estimator) -> NDArray[np.float64]:
        found = _parameters(estimator.click_model(query, items), model)
        return np.concatenate([np.ravel(array) for array in found.values()])[:, None]

    shapes = {name: np.shape(array) for name, array in _parameters(model, model).items()}
    ends = np.cumsum([math.prod(shape) for shape in shapes.values()])[:-1]
    parts = np.split(information.uncertainty(query, values).is_unidentified(), ends)
    unidentified = {
        name: part.reshape(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)
    }
    if "examination" in unidentified:
        unidentified["examination"].flat[0] = True  # the unit of the others
    return unidentified


def _identified(
    estimator: Estimator,
    model: ClickModel,
    name: str,
    errors: Any,
    clicks: NDArray[np.float64],
    unidentified: NDArray[np.bool_],
) -> Any:
    """Standard errors as an instance holds them: None where clicks do not tell the parameter.

    ``clicks`` are those of each item, expected and in the log, ``(L, 2)``.
    """
    if name in model.item_parameters():
        values = np.asarray(getattr(model.parameters, name))
        # No item is known better than from its examined displays, or its clicks, under the prior.
        trials = clicks[:, 0] / np.maximum(values, 1e-9) if name == "attraction" else clicks[:, 1]
        size = trials + sum(estimator.prior_) + 1
        errors = np.maximum(errors, np.sqrt(values * (1 - values) / size))
    identified: Any = np.where(unidentified, None, errors.round(6))
    return identified.tolist()
