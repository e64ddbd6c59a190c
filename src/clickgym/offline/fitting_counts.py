"""From the counts of a log to instances: click models fitted to counts, and scored on the fold that is held out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from ..core.checks import check_kind
from ..envs.instances import Instance
from .attraction import LEAST_SESSIONS, rated
from .counts import Counts, check_columns_counted
from .estimation.estimator import MODEL_ESTIMATORS, Estimator
from .estimation.settings import ITERATIONS, TOL, FitSettings
from .fitting import check_fitting, fit_each, make_instance, method_of


@dataclass(frozen=True)
class FittedCounts:
    """Click models fitted to counts.

    Attributes:
        counts: of the log.
        n_train, n_test: the sessions that the scored models were fitted to, and those held out.
        scored, estimators: fitted without the sessions held out, and to all, by the short names of their models.
        scores: log-likelihood per held-out session, and conditional perplexity by rank; None for models that need whole
            sessions, and without a fold that is held out.
        instances: of the queries, by their labels.
    """

    counts: Counts
    n_train: int
    n_test: int
    scored: dict[str, Estimator]
    estimators: dict[str, Estimator]
    scores: dict[str, tuple[float, np.ndarray] | None]
    instances: dict[str, Instance]

    @property
    def attractions(self) -> pl.DataFrame:
        """The table of `Fitted`; counts cannot be resampled, so that its intervals are empty."""
        counts = self.counts
        rate = counts.by_position(counts.clicks) / np.maximum(counts.by_position(counts.displays), 1)
        expected = np.add.reduceat(counts.displays * rate[counts.position - 1], counts.first_cell[:-1])
        shown, clicks = (counts.by_pair(values)[:-1] for values in (counts.displays, counts.clicks))
        coec: Any = np.divide(clicks, expected, out=np.full(len(clicks), np.nan), where=expected > 0)
        frame = counts.pair_labels.with_columns(sessions=pl.Series(shown), clicks=pl.Series(clicks))
        nothing = pl.lit(None, pl.Float64)
        return pl.concat(
            frame.with_columns(
                model=pl.lit(name),
                attraction=pl.when(pl.col("sessions") >= LEAST_SESSIONS).then(pl.Series(estimator.attraction_[:-1])),
                low=nothing, high=nothing, coec=pl.Series(coec).fill_nan(None),
            )
            for name, estimator in self.estimators.items() if name in rated([*self.estimators])
        )  # fmt: skip


def fit_counted(
    counts: Counts,
    models: Sequence[str],
    queries: Sequence[str] = (),
    *,
    n_items: int = 10,
    iterations: int = ITERATIONS,
    tol: float = TOL,
    per_query: bool = False,
    origin: str = "estimated by clickgym from counts of clicks",
    on_step: Callable[[str], object] = lambda text: None,
) -> FittedCounts:
    """Fit click models to counts, as `fit_models` does to a log.

    Args:
        counts: with a column ``fold``, its sessions are held out for the scores.
        models, queries, n_items, iterations, tol, per_query, on_step: as for `fit_models`.
        origin: where the counts come from.

    Raises:
        ValueError: on wrong input, before any model is fitted.

    Warns:
        ConvergenceWarning: as `Estimator.fit`.
    """
    check_kind("counts", counts, Counts, "the counts of a log")
    models, queries = check_fitting(models, queries, n_items, iterations, tol, per_query, on_step)
    for name in models:
        check_columns_counted(counts, name, MODEL_ESTIMATORS[name].counted)
    most_frequent = counts.query_labels[int(counts.sessions().argmax())]
    shown = {label: _shown(counts, label, n_items) for label in queries or [most_frequent]}
    train, test = _folds(counts)
    scored, estimators = fit_each(models, FitSettings(iterations, tol, per_query), train, counts, on_step)
    scores = {name: None if test is None else estimator.score_counts(test) for name, estimator in scored.items()}
    facts = method_of(counts.n_sessions, per_query, estimators, models)
    instances = {}
    for label, (displays, production, n_sessions) in shown.items():
        instance = make_instance(label, displays, production, n_sessions, counts.n_positions, estimators, n_items)
        instances[label] = replace(instance, origin=origin, estimation={**instance.estimation, **facts})
    n_test = 0 if test is None else test.n_sessions
    return FittedCounts(counts, train.n_sessions, n_test, scored, estimators, scores, instances)


def _folds(counts: Counts) -> tuple[Counts, Counts | None]:
    """The sessions to learn from and those held out; all and none, if they have no two folds."""
    if counts.fold is None or (held_out := counts.fold == 1).all() or not held_out.any():
        return counts, None
    return counts.part(~held_out), counts.part(held_out)


def _shown(counts: Counts, query: str, n_items: int) -> tuple[dict[str, int], list[str], int]:
    """How often a query shows each item; at each position the item that is there most often, of those that are not above; and
    the sessions of the query.
    """
    own = counts.part(counts.of_query(query))
    if n_items < counts.n_positions:
        raise ValueError(f"n_items is {n_items}, but the counts have {counts.n_positions} positions")
    if len(own.codes) < counts.n_positions:
        raise ValueError(f"the query {query!r} has {len(own.codes)} items, but the counts have {counts.n_positions} positions")
    labels = [own.item_labels[code % len(own.item_labels)] for code in own.codes.tolist()]
    at = np.zeros((counts.n_positions, len(labels)))
    np.add.at(at, (own.position - 1, own.pair), own.displays)
    production: list[str] = []
    for displays in at:
        left = [item for item in range(len(labels)) if labels[item] not in production]
        production.append(labels[max(left, key=lambda item: (displays[item], -item))])
    return dict(zip(labels, own.by_pair(own.displays)[:-1].tolist(), strict=True)), production, own.n_sessions
