"""Click logs in memory, and their conversion to tidy tables."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..core.checks import as_integers, check_choice, check_kind, check_labels, check_path
from ..core.files import parquet_bytes, write_whole
from ..core.messages import as_call


@dataclass(frozen=True, eq=False)
class ClickLog:
    """A click log: the list that each session shows, and the positions that were clicked.

    A log records *which* positions were clicked, but not how often or in which order. If a list has
    fewer than K items, users examine nothing below its end.

    Args:
        items: ``(N, K)`` integers: the list of each session, as distinct indices into
            ``item_labels``. A list has at least one item; all entries below its end are -1.
        clicks: ``(N, K)`` numbers: 1 for a position that was clicked, 0 for any other position.
        queries: ``(N,)`` integers: the query of each session, as an index into ``query_labels``.
        item_labels, query_labels: the names of the items and queries, as distinct strings. Two logs
            are matched by these labels, so a model that was fitted to one log can be scored on
            another.
        source: where the sessions come from, for `fit_models` to note in its instances: for a log
            from `read_log`, the files and the columns; by default, empty.

    Raises:
        ValueError: an argument is invalid; the message names the argument and what was expected.

    Example:
        >>> log = ClickLog([[0, 1], [1, -1]], [[1, 0], [0, 0]], [0, 0], ("a", "b"), ("q",))
        >>> len(log), log.n_positions, log[[0]].clicks.tolist()
        (2, 2, [[1, 0]])
        >>> log.lengths
        array([2, 1])
    """

    items: NDArray[np.int32]
    clicks: NDArray[np.int8]
    queries: NDArray[np.int32]
    item_labels: tuple[str, ...]
    query_labels: tuple[str, ...]
    source: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        def check(name: str, shape: Any, least: int, below: int, dtype: type) -> None:
            value = getattr(self, name)
            if isinstance(value, np.ndarray) and value.dtype == np.bool_:
                value = value.view(np.int8)
            array = as_integers(
                name, value, shape, least, below, dtype=dtype, allow_empty=True, allow_floats=True
            )
            object.__setattr__(self, name, array)

        for name in ("item_labels", "query_labels"):
            object.__setattr__(self, name, check_labels(name, getattr(self, name)))
        check("items", ("sessions", "positions"), -1, len(self.item_labels), np.int32)
        check("clicks", self.items.shape, 0, 2, np.int8)
        check("queries", self.items.shape[:1], 0, len(self.query_labels), np.int32)
        self._check_lists()

    def _check_lists(self) -> None:
        """Raise a ValueError for a list that has an item twice, a gap, or a click below its end."""
        is_past_end, sorted_items = self.items < 0, np.sort(self.items, axis=1)
        repeats = (sorted_items[:, 1:] == sorted_items[:, :-1]) & (sorted_items[:, 1:] >= 0)
        gap = is_past_end[:, :1] | (is_past_end[:, :-1] & ~is_past_end[:, 1:]).any(
            axis=1, keepdims=True
        )
        for faults, fault in (
            (repeats, "shows an item twice; expected distinct items in a list"),
            (gap, "has a gap; expected one item or more, then -1 for the rest"),
            (is_past_end & (self.clicks > 0), "has a click below the end of its list"),
        ):
            if faults.any():
                session = int(faults.any(axis=1).argmax())
                raise ValueError(f"items[{session}] {fault}: {self.items[session].tolist()}")

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        return as_call(
            self,
            n_sessions=len(self),
            n_positions=self.n_positions,
            n_queries=len(self.query_labels),
            n_items=len(self.item_labels),
            n_clicks=int(self.clicks.sum()),
        )

    @property
    def n_positions(self) -> int:
        """K, the largest number of items that a list in this log can have."""
        return self.items.shape[1]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of items on each list, ``(N,)``."""
        return (self.items >= 0).sum(axis=1)

    def of_query(self, query: str) -> ClickLog:
        """Return the sessions of one query, which is given by its label, as a log."""
        check_choice("query", query, self.query_labels)
        return self[self.queries == self.query_labels.index(query)]

    def __getitem__(self, sessions: Any) -> ClickLog:
        """Return some sessions as a log; select them by a boolean mask, a slice or a sequence of
        indices.
        """
        rows, part = np.atleast_1d(np.arange(len(self))[sessions]), copy(self)
        for name in ("items", "clicks", "queries"):
            object.__setattr__(part, name, getattr(self, name)[rows])  # already checked
        return part

    def to_frame(self) -> pl.DataFrame:
        """Return the log as a tidy data frame with one row for each session and position.

        Returns:
            A data frame with the columns ``session`` (from 0), ``query``, ``position`` (from 1),
            ``item`` and ``clicked``.

        Example:
            >>> ClickLog([[1, 0]], [[1, 0]], [0], ("a", "b"), ("q",)).to_frame().rows()
            [(0, 'q', 1, 'b', 1), (0, 'q', 2, 'a', 0)]
        """
        sessions, positions = np.nonzero(self.items >= 0)
        items = self.items[sessions, positions]
        return pl.DataFrame(
            {
                "session": sessions,
                "query": pl.Series(self.query_labels, dtype=pl.String).gather(
                    self.queries[sessions]
                ),
                "position": positions.astype(np.int32) + 1,
                "item": pl.Series(self.item_labels, dtype=pl.String).gather(items),
                "clicked": self.clicks[sessions, positions],
            }
        )


def frequent_queries(log: ClickLog, most: int = 1) -> list[str]:
    """Return the labels of the most frequent queries, at most ``most`` of them, in descending order
    of frequency.
    """
    order = np.argsort(-np.bincount(log.queries, minlength=1), kind="stable")[:most]
    return [log.query_labels[query] for query in order]


def write_tidy(log: ClickLog, path: str | PathLike[str]) -> None:
    """Write a log atomically to a CSV or Parquet file, which `read_log` can read.

    Args:
        log: the log; see `ClickLog.to_frame` for the columns of the table.
        path: the path of the file, which ends with ``.csv`` or ``.parquet``.

    Raises:
        ValueError: the path has a different ending.

    Example:
        >>> import tempfile
        >>> from clickgym.logs import read_log
        >>> log = ClickLog([[1, 0]], [[1, 0]], [0], ("a", "b"), ("q",))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_tidy(log, f"{folder}/log.csv")
        ...     len(read_log(f"{folder}/log.csv"))
        1
    """
    path = check_table_path(path)
    check_kind("log", log, ClickLog, "a ClickLog, as read_log returns it")
    frame = log.to_frame()
    write_whole(path, parquet_bytes(frame) if path.suffix == ".parquet" else frame.write_csv())


def check_table_path(path: str | PathLike[str]) -> Path:
    """Return the path of a table to be written; raise a ValueError if the path does not end with
    .csv or .parquet.
    """
    path = check_path("path", path)
    if path.suffix not in (".csv", ".parquet"):
        raise ValueError(f"{path}: expected a file name that ends with .csv or .parquet")
    return path
