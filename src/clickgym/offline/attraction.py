"""What clicks say of each item of a query: its fitted attraction, with an interval, beside clicks over expected clicks (COEC).

COEC divides the clicks on an item by those that its positions would get with average items. It corrects for positions only as
far as good items do not stand on top: with lists that hardly change, it is near 1 for all items. A fitted model separates both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import stdtrit

from .counting import by_query
from .estimation.estimator import MODEL_ESTIMATORS, Estimator
from .estimation.settings import FitSettings
from .log import ClickLog

COEC = ("sum", "opensearch")
LEAST_SESSIONS = 30
"""Sessions that must show an item for an attraction."""

Floats = NDArray[np.float64]


def rated(models: Sequence[str]) -> list[str]:
    """The click models, by their short names, that know items by their attraction; a ValueError if there are none."""
    names = [name for name in models if MODEL_ESTIMATORS[name].model_class.item_parameters()[:1] == ["attraction"]]
    if not names:
        raise ValueError(f"{', '.join(models)} has no attraction; expected a click model that has one")
    return names


def check_told(log: ClickLog, models: Sequence[str]) -> None:
    """Refuse a log with one list per query for models that learn how positions are examined: clicks do not tell that from
    attraction."""
    untold = [*filter(_has_examination, models)]
    if untold and not _have_moved(by_query(log.queries, log.items, len(log.item_labels))[2]).any():
        raise ValueError(
            f"each query of the log has one list: no item was at two positions, so {' and '.join(untold)} cannot tell its "
            "attraction from the examination of its position; expected a log of several lists per query, or CM, DCM or SDBN"
        )


def _has_examination(name: str) -> bool:
    return "examination" in MODEL_ESTIMATORS[name].model_class.shapes


def _have_moved(pairs: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which pairs were at two positions."""
    first, moved = np.full(pairs.max() + 1, -1), np.zeros(pairs.max() + 1, np.bool_)
    for k, column in enumerate(pairs.T):
        here = np.unique(column[column >= 0])
        moved[here] |= first[here] >= 0
        first[here] = k
    return moved


def attractions(
    log: ClickLog, estimators: Mapping[str, Estimator], settings: FitSettings, coec: str, bootstrap: int, seed: int, size: int
) -> pl.DataFrame:
    """The table that `fit_models` gives with ``coec``.

    Args:
        log: the sessions.
        estimators: fitted to them, by the short names of their models.
        settings: with which they were fitted.
        coec: of `COEC`.
        bootstrap, seed, size: refits, the seed of their sessions, and how many sessions each has.
    """
    order, codes, pairs = by_query(log.queries, log.items, len(log.item_labels))
    counted, clicks = pairs >= 0, log.clicks[order]
    shown, clicked = np.bincount(pairs[counted]), np.bincount(pairs[counted], clicks[counted])
    queries = codes // len(log.item_labels)
    frame = pl.DataFrame(log.pair_labels(codes), ["query", "item"], orient="row").with_columns(
        sessions=pl.Series(shown), clicks=pl.Series(clicked.astype(np.int64)),
        coec=pl.Series(_coec(pairs, clicks, clicked, coec)).fill_nan(None),
    )  # fmt: skip
    tables, moved = [], _have_moved(pairs)
    if settings.per_query:  # then no other query tells how positions are examined
        moved = np.bincount(queries, moved)[queries] > 0
    for name, estimator in estimators.items():
        value, examined = _attraction(estimator, codes, queries)
        columns = {"attraction": value}
        if bootstrap:
            refits = (_attraction(drawn, codes, queries) for _, drawn in settings.refits(estimator, log, bootstrap, seed, size))
            # As in the instances: the intervals hold for the examination at position 1 as it is.
            error = np.std([drawn * at_top / examined for drawn, at_top in refits], axis=0, ddof=1) * np.sqrt(size / len(log))
            half = stdtrit(bootstrap - 1, 0.975) * np.maximum(error, np.sqrt(value * (1 - value) / (shown + 3)))
            columns |= {"low": np.maximum(value - half, 0), "high": np.minimum(value + half, 1)}
        enough = pl.Series((shown >= LEAST_SESSIONS) & (moved if settings.per_query and _has_examination(name) else True))
        told = {key: pl.when(enough).then(pl.Series(each)) for key, each in columns.items()}
        tables.append(frame.select("query", "item", "sessions", "clicks", model=pl.lit(name), **told, coec="coec"))
    return pl.concat(tables)


def _attraction(estimator: Estimator, codes: NDArray[np.int64], queries: NDArray[np.int64]) -> tuple[Floats, Any]:
    """The attraction of each pair, and the examination at position 1 of its query; 1 in models without."""
    value, examination = estimator.attraction_[estimator._find(codes)], getattr(estimator, "examination_", np.ones(1))
    if getattr(estimator, "per_query", False):
        return value, examination[queries].reshape(len(queries), -1)[:, 0]
    return value, examination.flat[0]


def _coec(pairs: NDArray[np.int32], clicks: NDArray[np.int8], clicked: NDArray[Any], how: str) -> Floats:
    """Clicks over expected clicks of each pair; NaN where none are expected.

    ⚠ The plugin for OpenSearch takes all impressions of a pair to be at the highest position that it ever had, and looks up
    ordinals, which count from 1, among ranks from 0 to K - 1: items that were never above position K get 0.
    """
    n_positions, counted = pairs.shape[1], pairs >= 0
    rates = clicks.sum(axis=0) / np.maximum(counted.sum(axis=0), 1)
    if how == "sum":
        expected = np.bincount(pairs[counted], np.broadcast_to(rates, pairs.shape)[counted])
        return np.divide(clicked, expected, out=np.full(len(clicked), np.nan), where=expected > 0)
    top = np.full(len(clicked), n_positions - 1)
    for k in reversed(range(n_positions)):
        top[pairs[counted[:, k], k]] = k
    expected = np.append(rates[:-1], 0.0)[top] * np.bincount(pairs[counted])
    return np.divide(clicked, expected, out=np.zeros(len(clicked)), where=expected > 0)
