"""Click logs in memory, and as tidy tables."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..envs.checks import check_finite
from ..envs.files import sealed, write_whole
from .counting import by_query

__all__ = ["ClickLog", "ItemPositionLog", "write_tidy"]

ROWS = 1_000_000  # rows of a table that are held in memory at once


@dataclass(frozen=True, eq=False)
class ClickLog:
    """Sessions of result lists of equal length, and which results were clicked.

    A click vector says *which* positions were clicked: how often, and in which order, is not kept.

    Args:
        items: ``(N, K)`` integers, the list of each session as indices into ``item_labels``.
        clicks: ``(N, K)`` int8, 1 where the position was clicked.
        queries: ``(N,)`` integers, the query of each session as an index into ``query_labels``.
        item_labels, query_labels: what the indices stand for. Logs are matched by these labels, so a model fitted to
            one log can be scored on another.
        off_list_clicks: how many clicks a reader met on items that the session's list does not hold.
        propensities: ``(N, K)`` in (0, 1], the probability with which the policy that was logged shows this item at this
            position; None where it is not known.
        list_propensities: ``(N,)`` in (0, 1], the same of the whole list.
        context: ``(N, K, d)`` features of the item at each position, those of the user among them: what an agent would have
            seen of the shown items; None where there are none.
        skipped: what a reader in counting mode left out: how many lines, by reason.

    Raises:
        ValueError: naming the array and what was expected.

    Example:
        >>> log = ClickLog([[0, 1], [1, 0]], [[1, 0], [0, 0]], [0, 0], ("a", "b"), ("q",))
        >>> len(log), log.n_positions, log[[0]].clicks.tolist()
        (2, 2, [[1, 0]])
    """

    items: NDArray[np.int32]
    clicks: NDArray[np.int8]
    queries: NDArray[np.int32]
    item_labels: tuple[str, ...]
    query_labels: tuple[str, ...]
    off_list_clicks: int = 0
    propensities: NDArray[np.float64] | None = None
    list_propensities: NDArray[np.float64] | None = None
    context: NDArray[np.float64] | None = None
    skipped: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, dtype in (("items", np.int32), ("clicks", np.int8), ("queries", np.int32)):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype))
        if self.items.ndim != 2 or self.items.shape[1] < 1:
            raise ValueError(f"items has shape {self.items.shape}; expected (sessions, positions)")
        for name, shape in (("clicks", self.items.shape), ("queries", self.items.shape[:1])):
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name} has shape {getattr(self, name).shape}; expected {shape}, as items")
        for name, size in (("items", len(self.item_labels)), ("clicks", 2), ("queries", len(self.query_labels))):
            array = getattr(self, name)
            if array.size and not 0 <= array.min() <= array.max() < size:
                raise ValueError(f"{name} has entries from {array.min()} to {array.max()}; expected 0 to {size - 1}")
        for name, shape in (("propensities", self.items.shape), ("list_propensities", self.items.shape[:1])):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, check_propensities(name, getattr(self, name), shape))
        if self.context is not None:
            object.__setattr__(self, "context", _check_features("context", self.context, self.items.shape))

    def __len__(self) -> int:
        return len(self.items)

    @property
    def n_positions(self) -> int:
        """K, the length of every list."""
        return self.items.shape[1]

    def __getitem__(self, sessions: Any) -> ClickLog:
        """The log of some sessions: a boolean mask, a slice or a sequence of indices."""
        return replace(
            self,
            items=self.items[sessions],
            clicks=self.clicks[sessions],
            queries=self.queries[sessions],
            propensities=None if self.propensities is None else self.propensities[sessions],
            list_propensities=None if self.list_propensities is None else self.list_propensities[sessions],
            context=None if self.context is None else self.context[sessions],
            off_list_clicks=0,
            skipped={},
        )

    def pairs(self) -> tuple[NDArray[np.int32], list[tuple[str, str]]]:
        """The (query, item) pairs of the log.

        Returns:
            ``(N, K)`` indices of the pair at each position, and the labels of the pairs.
        """
        order, codes, numbers = by_query(self.queries, self.items, len(self.item_labels))
        index = np.empty_like(numbers)
        index[order] = numbers
        return index, self.pair_labels(codes)

    def pair_labels(self, codes: NDArray[np.int64]) -> list[tuple[str, str]]:
        """The labels of pairs that are given as ``query * len(item_labels) + item``."""
        queries, items = (part.tolist() for part in np.divmod(codes, len(self.item_labels)))
        return [(self.query_labels[query], self.item_labels[item]) for query, item in zip(queries, items, strict=True)]

    def to_frame(self) -> pl.DataFrame:
        """The log as a tidy table, one row per session and position.

        Returns:
            Columns ``session`` (from 0), ``query``, ``position`` (from 1), ``item``, ``clicked``, and where they are known
            ``propensity``, ``list_propensity``, and the context as ``feature_1``, ``feature_2``, ...

        Example:
            >>> ClickLog([[1, 0]], [[1, 0]], [0], ("a", "b"), ("q",)).to_frame().rows()
            [(0, 'q', 1, 'b', 1), (0, 'q', 2, 'a', 0)]
        """
        return self._frame(0)

    def _frame(self, first: int) -> pl.DataFrame:
        n_positions = self.n_positions
        # Only an empty log has no labels, and then there is nothing to take.
        items, queries = (pl.Series(labels, dtype=pl.String) for labels in (self.item_labels, self.query_labels))
        columns: dict[str, Any] = {
            "session": np.repeat(np.arange(first, first + len(self)), n_positions),
            "query": queries.gather(np.repeat(self.queries, n_positions)),
            "position": np.tile(np.arange(1, n_positions + 1, dtype=np.int32), len(self)),
            "item": items.gather(self.items.ravel()),
            "clicked": self.clicks.ravel(),
        }
        if self.propensities is not None:
            columns["propensity"] = self.propensities.ravel()
        if self.list_propensities is not None:
            columns["list_propensity"] = np.repeat(self.list_propensities, n_positions)
        if self.context is not None:
            for j in range(self.context.shape[2]):
                columns[f"feature_{j + 1}"] = self.context[:, :, j].ravel()
        return pl.DataFrame(columns)


@dataclass(frozen=True, eq=False)
class ItemPositionLog:
    """Single items shown at single positions, where the lists they belonged to are not known.

    Args:
        items: ``(N,)`` integers from 0, as the log numbers them.
        positions: ``(N,)`` integers from 0.
        clicks: ``(N,)`` int8, 1 for a click.
        propensities: ``(N,)`` in (0, 1], the probability with which the policy that was logged shows this item at this
            position.
        user_features: ``(N, d_u)`` features of the user to whom it was shown; with them also
        item_features: ``(L, d_v)`` features of all items. None: there are none.
        skipped: what a reader in counting mode left out: how many lines, by reason.

    Raises:
        ValueError: naming the array and what was expected.

    Example:
        >>> log = ItemPositionLog([3, 1], [0, 2], [1, 0], [0.25, 0.5])
        >>> len(log), log.n_items, log.n_positions
        (2, 4, 3)
    """

    items: NDArray[np.int32]
    positions: NDArray[np.int32]
    clicks: NDArray[np.int8]
    propensities: NDArray[np.float64]
    user_features: NDArray[Any] | None = None
    item_features: NDArray[np.float64] | None = None
    skipped: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, dtype in (("items", np.int32), ("positions", np.int32), ("clicks", np.int8)):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype))
        if self.items.ndim != 1:
            raise ValueError(f"items has shape {self.items.shape}; expected (displays,)")
        for name, most in (("items", np.inf), ("positions", np.inf), ("clicks", 1)):
            array = getattr(self, name)
            if array.shape != self.items.shape:
                raise ValueError(f"{name} has shape {array.shape}; expected {self.items.shape}, as items")
            if array.size and not 0 <= array.min() <= array.max() <= most:
                raise ValueError(f"{name} has entries from {array.min()} to {array.max()}; expected 0 to {most}")
        checked = check_propensities("propensities", self.propensities, self.items.shape)
        object.__setattr__(self, "propensities", checked)
        if (self.user_features is None) != (self.item_features is None):
            raise ValueError("user_features and item_features come together, or not at all")
        if self.user_features is not None and self.item_features is not None:
            users = _check_features("user_features", self.user_features, self.items.shape, None)
            items = _check_features("item_features", self.item_features, np.shape(self.item_features)[:1])
            if self.items.size and self.items.max() >= len(items):
                raise ValueError(f"items has entries up to {self.items.max()}; item_features has {len(items)} rows")
            object.__setattr__(self, "user_features", users)
            object.__setattr__(self, "item_features", items)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def n_items(self) -> int:
        """The number of items that have features; without any, one more than the largest item."""
        return int(self.items.max(initial=-1)) + 1 if self.item_features is None else len(self.item_features)

    @property
    def n_positions(self) -> int:
        """One more than the largest position."""
        return int(self.positions.max(initial=-1)) + 1

    def __getitem__(self, displays: Any) -> ItemPositionLog:
        """The log of some displays: a boolean mask, a slice or a sequence of indices."""
        return replace(
            self,
            items=self.items[displays],
            positions=self.positions[displays],
            clicks=self.clicks[displays],
            propensities=self.propensities[displays],
            user_features=None if self.user_features is None else self.user_features[displays],
            skipped={},
        )

    @cached_property
    def _norm(self) -> float:
        """The largest norm of a user's and an item's features."""
        assert self.user_features is not None
        assert self.item_features is not None
        squares = (self.user_features.astype(np.float64) ** 2).sum(axis=1).max(initial=0.0)
        return float(np.sqrt(squares + (self.item_features**2).sum(axis=1).max(initial=0.0))) or 1.0

    def features(self, display: int) -> NDArray[np.float64]:
        """What an agent would have seen of all L items at a display: ``(L, d)``, with norms of at most 1.

        Raises:
            ValueError: the log has no features.

        Example:
            >>> log = ItemPositionLog([1], [0], [1], [0.5], user_features=[[3]], item_features=[[4.0], [0.0]])
            >>> log.features(0)
            array([[0.6, 0.8],
                   [0.6, 0. ]])
        """
        if self.user_features is None or self.item_features is None:
            raise ValueError("the log has no features of users and items")
        users = np.broadcast_to(self.user_features[display], (len(self.item_features), self.user_features.shape[1]))
        return np.hstack([users, self.item_features]) / self._norm


def _check_features(name: str, values: Any, shape: tuple[int, ...], dtype: type | None = np.float64) -> NDArray[Any]:
    """``values`` as an array of finite numbers with one dimension more than ``shape``; dtype None keeps theirs."""
    array = np.asarray(values, dtype)
    if array.ndim != len(shape) + 1 or array.shape[:-1] != shape or not array.shape[-1]:
        raise ValueError(f"{name} has shape {array.shape}; expected {(*shape, 'd')}")
    check_finite(name, array)
    return array


def check_propensities(name: str, values: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """``values`` as an array of probabilities above 0; the message of the ValueError names the array."""
    array = np.asarray(values, np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}; expected {shape}, as items")
    bad = np.argwhere(~((array > 0) & (array <= 1)))
    if len(bad):
        where = ", ".join(map(str, bad[0]))
        raise ValueError(f"{name}[{where}] is {array[tuple(bad[0])]}; expected a probability in (0, 1]")
    return array


def write_tidy(log: ClickLog, path: str | PathLike[str]) -> None:
    """Write a log as a tidy table, which `read_tidy` reads back; no half-written file is left.

    Args:
        log: the sessions; see `ClickLog.to_frame` for the columns.
        path: a file whose name ends with ``.csv``, ``.csv.gz`` or ``.parquet``.

    Raises:
        ValueError: on another ending, on an empty label, or on one that a line of CSV cannot hold.
    """
    path = Path(path)
    if "" in log.item_labels or "" in log.query_labels:
        raise ValueError("a label is empty; in a table that is a missing value")
    if path.name.endswith(".parquet"):
        write_whole(path, sealed(log.to_frame()))
    elif path.name.endswith((".csv", ".csv.gz")):
        for label in (*log.item_labels, *log.query_labels):
            if "\n" in label or "\r" in label:
                raise ValueError(f"the label {label!r} does not fit into a line of {path.name}; write .parquet")
        write_whole(path, _gzipped(_in_csv(log)) if path.suffix == ".gz" else _in_csv(log))
    else:
        raise ValueError(f"{path} must end with .csv, .csv.gz or .parquet")


def _in_csv(log: ClickLog) -> Iterator[bytes]:
    step = max(ROWS // log.n_positions, 1)
    for first in range(0, max(len(log), 1), step):
        yield log[first : first + step]._frame(first).write_csv(include_header=first == 0).encode()


def _gzipped(blocks: Iterable[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(9, wbits=zlib.MAX_WBITS | 16)
    yield from map(packer.compress, blocks)
    yield packer.flush()
