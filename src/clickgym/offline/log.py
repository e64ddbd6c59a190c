"""Click logs in memory, and as tidy tables."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property, partial
from os import PathLike
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..core.checks import (
    LARGEST,
    as_call,
    check_count,
    check_kind,
    check_labels,
    check_path,
    check_text,
    integers,
    is_sequence,
    numbers,
    short,
)
from ..core.files import sealed, write_whole
from ..core.notebook import html_table
from .counting import by_query, faulty_list
from .distinct import repeated_sessions
from .tables import ROWS
from .tidy import read_frame
from .times import check_times

BLOCKS = 20
"""Blocks of time, within which what changes with time can be told from what the lists do."""


@dataclass(frozen=True, eq=False)
class ClickLog:
    """A click log: the ranked lists of many sessions, and which positions were clicked.

    A click vector says *which* positions were clicked. The log does not keep how often or in which order. If a list has fewer
    than K items, nothing is examined below its end.

    Args:
        items: ``(N, K)`` integers, the list of each session as distinct indices into ``item_labels``, at least one; below its
            end -1.
        clicks: ``(N, K)`` 0 or 1, 1 where the position was clicked; or a mask of booleans.
        queries: ``(N,)`` integers, the query of each session as an index into ``query_labels``.
        item_labels, query_labels: what the indices stand for, distinct strings. Logs are matched by these labels, so a model
            fitted to one log can be scored on another.
        off_list_clicks: how many clicks the reader found on items that the session's list does not contain.
        propensities: ``(N, K)`` in (0, 1], the probability with which the logging policy shows this item at this position, and
            1 below the end of a list; None if unknown.
        list_propensities: ``(N,)`` in (0, 1], the probability of the whole list; None if unknown.
        context: ``(N, K, d)`` features of the item at each position, including those of the user, as an agent would have seen
            them; None without features.
        skipped: how many lines the reader left out in counting mode, by reason.
        notes: assumptions that the reader made, one line each.
        times: ``(N,)`` when each session was, any numbers that can be sorted; or texts in ISO 8601, which become seconds since
            1970 (without an offset they are taken for UTC); None if unknown.
        candidates: ``(N, L)`` the items that the logging policy could show in each session, in any order, behind the last -1;
            None: the same in all sessions of a query. `clickgym.offline.learn` reads them; tables do not hold them.
        values: ``(N, K)`` numbers from 0, what a click on the item at each position is worth, the same in all sessions of a
            query; anything below the end of a list. With values, the reward ``clicks`` of off-policy estimators and of
            `decide` is what the clicks are worth. None: each click counts 1.

    Raises:
        ValueError: naming the array and what was expected.

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
    off_list_clicks: int = 0
    propensities: NDArray[np.float64] | None = None
    list_propensities: NDArray[np.float64] | None = None
    context: NDArray[np.float64] | None = None
    skipped: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    times: NDArray[np.float64] | NDArray[np.int64] | None = None
    candidates: NDArray[np.int32] | None = None
    values: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        checked = partial(set_checked, self)
        n_labels = {name: len(checked(name, check_labels)) for name in ("item_labels", "query_labels")}
        options: dict[str, Any] = {"dtype": np.int32, "empty": True, "whole": True}
        shape = checked("items", integers, ("sessions", "positions"), -1, n_labels["item_labels"], **options).shape
        checked("clicks", _check_clicks, shape)
        checked("queries", integers, shape[:1], 0, n_labels["query_labels"], **options)
        session, item = faulty_list(self.items, self.clicks)
        if item >= 0:
            raise ValueError(f"items[{session}] shows the item {item} twice; expected distinct items in a list")
        if session >= 0:
            expected = "expected one item or more, then -1 for the rest, without clicks"
            row = f"{short(self.items[session].tolist())} with the clicks {short(self.clicks[session].tolist())}"
            raise ValueError(f"items[{session}] is {row}; {expected}")
        if self.propensities is not None:
            checked("propensities", check_propensities, shape)
        if self.list_propensities is not None:
            checked("list_propensities", check_propensities, shape[:1])
        if self.context is not None:
            checked("context", numbers, (*shape, "features"), empty=True, copy=False)
        if self.times is not None:
            checked("times", check_times, shape[:1])
        if self.candidates is not None:
            checked("candidates", integers, (shape[0], "candidates"), -1, n_labels["item_labels"], **options)
        if self.values is not None:
            checked("values", numbers, shape, 0.0, LARGEST, expected="a finite number from 0", empty=True, copy=False)
            self._check_one_value()
        checked("off_list_clicks", check_count, 0)
        checked("skipped", _check_skipped)
        checked("notes", _check_notes)

    def _check_one_value(self) -> None:
        """Refuse an item that has two values in a query."""
        assert self.values is not None
        index, labels = self.pairs()
        shown = self.items >= 0
        value = np.zeros(len(labels))
        value[index[shown]] = self.values[shown]
        other = np.flatnonzero(value[index[shown]] != self.values[shown])
        if len(other):
            pair = index[shown][other[0]]
            (query, item), values = labels[pair], f"{self.values[shown][other[0]]:g} and {value[pair]:g}"
            raise ValueError(f"values has {values} for the item {item!r} of the query {query!r}; expected one value")

    def values_of(self, query: str) -> NDArray[np.float64]:
        """What a click on each item is worth, ``(L,)``, if the log has values; nan for items that the query does not show.

        Example:
            >>> ClickLog([[1, 0]], [[1, 0]], [0], ("a", "b"), ("q",), values=[[2.5, 4]]).values_of("q")
            array([4. , 2.5])
        """
        values = np.full(len(self.item_labels), np.nan)
        if self.values is not None:
            shown = (self.items >= 0) & (self.queries == self.query_labels.index(query))[:, None]
            values[self.items[shown]] = self.values[shown]
        return values

    @classmethod
    def from_frame(cls, frame: Any, *, columns: Mapping[str, str] | None = None, duplicates: str = "refuse") -> ClickLog:
        """Make a log from a tidy data frame with one row per session and position.

        Args:
            frame: a data frame of pandas or Polars with the columns that `read_tidy` reads.
            columns: the names of columns that differ, such as ``{"item": "doc_id"}``.
            duplicates: of rows with the same session and position, ``"refuse"`` or keep the ``"first"``.

        Raises:
            TypeError: on what is no data frame.
            ValueError: naming the missing column, or the row (from 1) and the reason.

        Example:
            >>> frame = pl.DataFrame({"session": [7, 7], "position": [1, 2], "doc": ["b", "a"], "clicked": [True, False]})
            >>> ClickLog.from_frame(frame, columns={"item": "doc"}).item_labels
            ('b', 'a')
        """
        return cls(**read_frame(frame, columns=columns, duplicates=duplicates))

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        labels = {"n_queries": len(self.query_labels), "n_items": len(self.item_labels)}
        return as_call(self, n_sessions=len(self), n_positions=self.n_positions, **labels, n_clicks=int(self.clicks.sum()))

    def _repr_html_(self) -> str:
        clicks = self.clicks.sum(axis=0, dtype=np.int64).tolist()
        rows = [(str(k), count, count / len(self) if len(self) else math.nan) for k, count in enumerate(clicks)]
        return html_table(repr(self), rows, ("position", "clicks", "click rate"))

    @property
    def n_positions(self) -> int:
        """K, the number of positions of the longest lists."""
        return self.items.shape[1]

    @property
    def rankings(self) -> NDArray[np.int64]:
        """``(N, K)`` the list of each session, as `Agent.learn` takes it: `items`."""
        return self.items.astype(np.int64)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The length of each list, ``(N,)``."""
        return (self.items >= 0).sum(axis=1)

    @property
    def order(self) -> NDArray[np.int64]:
        """The sessions in the order of their times, ``(N,)`` indices; those of one time, and all without times, as they stand.

        Example:
            >>> ClickLog([[0]] * 3, [[1]] * 3, [0] * 3, ("a",), ("q",), times=["2026-02-01", "2026-01-01", "2026-02-01"]).order
            array([1, 0, 2])
        """
        return np.arange(len(self)) if self.times is None else np.argsort(self.times, kind="stable")

    @property
    def repeated(self) -> NDArray[np.bool_]:
        """Which sessions repeat one above them, ``(N,)``: of the same time, query, list and clicks.

        Where times are coarse, users who meet the same list at one time would also be alike. So sessions count as repeated only
        if those that share time, query and list hardly ever differ in their clicks: at least four times as many pairs are alike
        as chance would make alike, which follows from the pairs that differ and from how often sessions of different times with
        the same list have the same clicks. Else, and without times, none is.

        Example:
            >>> ClickLog([[0, 1]] * 3, [[1, 0]] * 3, [0] * 3, ("a", "b"), ("q",), times=[5, 7, 5]).repeated
            array([False, False, False])
        """
        return repeated_sessions(self.times, self.queries, self.items, self.clicks)

    def __getitem__(self, sessions: Any) -> ClickLog:
        """The log of some sessions: a boolean mask, a slice or a sequence of indices."""
        names = "items", "clicks", "queries", "propensities", "list_propensities", "context", "times", "candidates", "values"
        return _part(self, sessions, *names)

    def pairs(self) -> tuple[NDArray[np.int32], list[tuple[str, str]]]:
        """The (query, item) pairs of the log.

        Returns:
            ``(N, K)`` indices of the pair at each position, -1 below the end of a list, and the labels of the pairs.
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
        """The log as a tidy data frame with one row per session and position.

        Returns:
            Columns ``session`` (from 0), ``query``, ``position`` (from 1), ``item``, ``clicked``, and where they are known
            ``propensity``, ``value``, ``list_propensity``, ``time``, and the context as ``feature_1``, ``feature_2``, ...

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
            "item": items.gather(self.items.ravel().clip(0)),
            "clicked": self.clicks.ravel(),
        }
        for name, values in (
            ("propensity", self.propensities), ("value", self.values), ("list_propensity", self.list_propensities),
            ("time", self.times),
        ):  # fmt: skip
            if values is not None:
                columns[name] = values.ravel() if values.ndim == 2 else np.repeat(values, n_positions)
        if self.context is not None:
            for j in range(self.context.shape[2]):
                columns[f"feature_{j + 1}"] = self.context[:, :, j].ravel()
        frame = pl.DataFrame(columns)
        filled = self.items.ravel() >= 0
        return frame if filled.all() else frame.filter(filled)


@dataclass(frozen=True, eq=False)
class ItemPositionLog:
    """A log of single items at single positions, if the lists to which they belonged are unknown.

    Args:
        items: ``(N,)`` integers from 0, as the log numbers them.
        positions: ``(N,)`` integers from 0.
        clicks: ``(N,)`` int8, 1 for a click.
        propensities: ``(N,)`` in (0, 1], the probability with which the logging policy shows this item at this position.
        user_features: ``(N, d_u)`` features of the user to whom it was shown; with them also
        item_features: ``(L, d_v)`` features of all items. None: there are none.
        skipped: what a reader in counting mode left out: how many lines, by reason.
        notes: the same in words, one line each.

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
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checked = partial(set_checked, self)
        items = checked("items", integers, ("displays",), dtype=np.int32, empty=True, whole=True)
        checked("positions", integers, items.shape, dtype=np.int32, empty=True, whole=True)
        checked("clicks", _check_clicks, items.shape)
        checked("propensities", check_propensities, items.shape)
        checked("skipped", _check_skipped)
        checked("notes", _check_notes)
        if (self.user_features is None) != (self.item_features is None):
            raise ValueError("user_features and item_features come together, or not at all")
        if self.user_features is not None:
            checked("user_features", numbers, (*items.shape, "features"), empty=True, dtype=None, copy=False)
            features = checked("item_features", numbers, ("items", "features"))
            if items.size and items.max() >= len(features):
                raise ValueError(f"items has entries up to {items.max()}; item_features has {len(features)} rows")

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        sizes = {"n_items": self.n_items, "n_positions": self.n_positions}
        return as_call(self, n_displays=len(self), **sizes, n_clicks=int(self.clicks.sum()))

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
        return _part(self, displays, "items", "positions", "clicks", "propensities", "user_features")

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


def time_blocks(log: ClickLog, n_blocks: int = BLOCKS) -> NDArray[np.int64]:
    """``(N,)`` the block of time of each session, in blocks of equal numbers of sessions."""
    blocks = np.empty(len(log), np.int64)
    blocks[log.order] = n_blocks * np.arange(len(log)) // len(log)
    return blocks


def set_checked(record: Any, name: str, check: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Set a field of a frozen record to what a check makes of it, and return that."""
    value = check(name, getattr(record, name), *arguments, **keywords)
    object.__setattr__(record, name, value)
    return value


def _part(log: Any, rows: Any, *names: str) -> Any:
    """A log of some rows of another, which need no further checks."""
    part = copy(log)
    part.__dict__.pop("_norm", None)
    for name in names:
        values = getattr(log, name)
        if values is not None:
            object.__setattr__(part, name, values[rows])
    if part.items.ndim != log.items.ndim:
        raise ValueError(f"the part {short(rows)} of a log is one row; expected a mask, a slice or a sequence of indices")
    for name, nothing in (("off_list_clicks", 0), ("skipped", {}), ("notes", ())):
        if hasattr(part, name):
            object.__setattr__(part, name, nothing)
    return part


def check_propensities(name: str, values: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """``values`` as an array of probabilities above 0; the message of the ValueError names the array."""
    return numbers(name, values, shape, most=1.0, above=0.0, expected="a probability in (0, 1]", empty=True, copy=False)


def _check_clicks(name: str, values: Any, shape: tuple[int, ...]) -> NDArray[np.int8]:
    """0 and 1; an array of booleans is a mask, and means the same."""
    clicks = values.view(np.int8) if isinstance(values, np.ndarray) and values.dtype == np.bool_ else values
    return integers(name, clicks, shape, 0, 2, dtype=np.int8, empty=True, whole=True)


def _check_skipped(name: str, values: Any) -> Mapping[str, int]:
    if not isinstance(values, Mapping):
        raise ValueError(f"{name} is {short(values)}; expected how many lines, by reason")
    return {check_text(f"a reason of {name}", reason): check_count(f"{name}[{reason!r}]", n, 0) for reason, n in values.items()}


def _check_notes(name: str, values: Any) -> tuple[str, ...]:
    if not is_sequence(values):
        raise ValueError(f"{name} is {short(values)}; expected a tuple of sentences")
    return tuple(check_text(f"{name}[{place}]", value) for place, value in enumerate(values))


def write_tidy(log: ClickLog, path: str | PathLike[str]) -> None:
    """Write a log as a tidy table, which `read_tidy` reads back, values if their column is named; no half-written file is left.

    Args:
        log: the sessions; see `ClickLog.to_frame` for the columns.
        path: a file whose name ends with ``.csv``, ``.csv.gz`` or ``.parquet``.

    Raises:
        ValueError: on another ending, on an empty label, or on one that a line of CSV cannot hold.
    """
    path = check_path("path", path)
    check_kind("log", log, ClickLog, "a ClickLog")
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
