"""Counts of clicks by query, item, position and last click above: all of a log that some click models need.

A table of counts has one row per cell, and its size does not grow with the number of sessions:

| column | what it says |
|---|---|
| ``query``, ``item`` | labels |
| ``position`` | from 1 |
| ``last_click`` | the position of the last click above, 0 if there is none |
| ``fold`` | 1 for sessions that are held out |
| ``displays``, ``clicks`` | how often the item stood there, and how often it was clicked |
| ``examined`` | displays down to the last click of the session; all displays of sessions without clicks |
| ``last_clicks`` | clicks that were the last of their session |

The columns ``last_click``, ``fold``, ``examined`` and ``last_clicks`` are there if they were asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..core.checks import as_call, check_path
from ..core.files import check_file, reading, sealed, write_whole
from .log import ClickLog
from .rows import DAMAGED

Long = NDArray[np.int64]
KEYS = ("query", "item", "position", "last_click", "fold")
NUMBERS = ("displays", "clicks", "examined", "last_clicks")
NEEDED = ("query", "item", "position", "displays", "clicks")


@dataclass(frozen=True, eq=False)
class Counts:
    """The counts of a click log: `count_log` makes them, `read_counts` reads them, `Estimator.fit_counts` fits models to them.

    Attributes:
        query_labels, item_labels: in the order of their letters.
        codes: ``(P,)`` the pairs of query and item, ``query * len(item_labels) + item``, ascending.
        first_cell: ``(P + 1,)`` the first cell of each pair, and C.
        n_positions: K.
        position, last_click, fold, displays, clicks, examined, last_clicks: ``(C,)`` the columns; None for those that are not
            there.

    Example:
        >>> frame = pl.DataFrame({"query": ["q"], "item": ["a"], "position": [1], "displays": [4], "clicks": [1]})
        >>> Counts.from_frame(frame).n_sessions
        4
    """

    query_labels: tuple[str, ...]
    item_labels: tuple[str, ...]
    codes: Long
    first_cell: Long
    n_positions: int
    position: NDArray[np.int32]
    displays: Long
    clicks: Long
    last_click: NDArray[np.int32] | None = None
    fold: NDArray[np.int8] | None = None
    examined: Long | None = None
    last_clicks: Long | None = None

    @classmethod
    def from_frame(cls, frame: pl.DataFrame, source: object = "the frame") -> Counts:
        """Make counts from a table with the columns above, in any order.

        Raises:
            ValueError: naming the source and the column, or the row (from 1) that cannot be, and why.
        """
        frame = _with_columns(frame, source)
        _check_rows(frame, source)
        queries, items = (frame[name].unique().sort() for name in ("query", "item"))
        for name, labels in (("query", queries), ("item", items)):  # numbers in place of texts, in the same order
            frame = frame.with_columns(pl.col(name).cast(pl.Enum(labels)).to_physical())
        keys = [name for name in KEYS if name in frame.columns]
        pair, cell = pl.col("query").cast(pl.Int64) * len(items) + pl.col("item"), pl.col("position").cast(pl.Int64)
        for name in keys[3:]:
            cell = cell * (1 << 20) + pl.col(name)
        same_pair = pair == pair.shift()
        if not frame.select(((pair > pair.shift()) | (same_pair & (cell > cell.shift()))).fill_null(True).all()).item():
            frame = frame.sort(keys)
            twice = frame.select((same_pair & (cell == cell.shift())).fill_null(False).arg_true()).to_series()
            if len(twice):
                query, item, *rest = frame.select(keys).row(int(twice[0]))
                row = ", ".join(map(str, (queries[query], items[item], *rest)))
                raise ValueError(f"{source}: two rows of {row}; expected one of each cell")
        first = frame.select((~same_pair).fill_null(True).arg_true()).to_series().to_numpy().astype(np.int64)
        codes = frame.select("query", "item")[first].select(pair).to_series().to_numpy()
        frame = frame.drop("query", "item")
        types = {"position": np.int32, "last_click": np.int32, "fold": np.int8}
        columns: dict[str, Any] = {
            name: frame[name].to_numpy().astype(types.get(name, np.int64), copy=False) for name in frame.columns
        }
        shape = np.append(first, frame.height), int(columns["position"].max())
        return cls(tuple(queries), tuple(items), codes, *shape, **columns)

    def __repr__(self) -> str:
        sizes = {"n_queries": len(self.query_labels), "n_items": len(self.item_labels), "n_cells": len(self.position)}
        return as_call(self, n_sessions=self.n_sessions, n_positions=self.n_positions, **sizes)

    @property
    def n_sessions(self) -> int:
        """The sessions that were counted: each list has one item at position 1."""
        return int(self.displays[self.position == 1].sum())

    @property
    def query(self) -> Long:
        """``(P,)`` the query of each pair."""
        return self.codes // len(self.item_labels)

    def sessions(self, position: int = 1) -> NDArray[np.float64]:
        """``(Q,)`` the sessions of each query: those whose lists reach a position."""
        here = self.by_pair(np.where(self.position == position, self.displays, 0))[:-1]
        sessions: Any = np.bincount(self.query, here, len(self.query_labels))
        return np.asarray(sessions, np.float64)

    @cached_property
    def pair(self) -> NDArray[np.int32]:
        """``(C,)`` the pair of each cell."""
        return np.repeat(np.arange(len(self.codes), dtype=np.int32), np.diff(self.first_cell))

    @property
    def pair_labels(self) -> pl.DataFrame:
        """``query`` and ``item`` of each pair."""
        queries, items = np.divmod(self.codes, len(self.item_labels))
        labels = {"query": (self.query_labels, queries), "item": (self.item_labels, items)}
        return pl.DataFrame({name: pl.Series(of, dtype=pl.String).gather(each) for name, (of, each) in labels.items()})

    @property
    def labels(self) -> ClickLog:
        """A log without sessions that has the labels, as estimators keep them."""
        nothing = np.empty((0, self.n_positions), np.int32)
        return ClickLog(nothing, nothing.astype(np.int8), nothing[:, 0], self.item_labels, self.query_labels)

    def part(self, cells: NDArray[np.bool_]) -> Counts:
        """The counts of some cells, with all labels and positions."""
        left = np.bincount(self.pair[cells], minlength=len(self.codes))
        columns = {name: values[cells] for name in (*KEYS[2:], *NUMBERS) if (values := getattr(self, name)) is not None}
        first = np.append(0, left[left > 0].cumsum())
        return Counts(self.query_labels, self.item_labels, self.codes[left > 0], first, self.n_positions, **columns)

    def of_query(self, query: str) -> NDArray[np.bool_]:
        """Which cells are of a query."""
        if query not in self.query_labels:
            raise ValueError(f"the counts have no query {query!r}; expected one of theirs, as {self.query_labels[0]!r}")
        return (self.query == self.query_labels.index(query))[self.pair]

    def cells(self, after_click: bool) -> tuple[Long, NDArray[np.int32], NDArray[Any], NDArray[Any]]:
        """What `counting.count_cells` returns of a log."""
        context = (self.position - 1).astype(np.int64)
        if after_click:
            assert self.last_click is not None
            context = context * self.n_positions + self.last_click
        context += self.pair.astype(np.int64) * (size := self.n_positions ** (2 if after_click else 1))
        first = np.flatnonzero(np.diff(context, prepend=-1))
        displays, clicks = (np.add.reduceat(values, first) for values in (self.displays, self.clicks))
        whole: Any = np.int32 if displays.max() < 1 << 31 else np.int64
        first_cell = np.searchsorted(first, self.first_cell)
        return first_cell, (context[first] % size).astype(np.int32), clicks.astype(whole), (displays - clicks).astype(whole)

    def by_pair(self, values: NDArray[Any]) -> Long:
        """``(P + 1,)`` the sum of each pair, and 0 for pairs that were never shown."""
        sums: Long = np.append(np.add.reduceat(values, self.first_cell[:-1]), 0).astype(np.int64)
        return sums

    def by_position(self, values: NDArray[Any]) -> Long:
        """``(K,)`` the sum at each position."""
        sums = np.zeros(self.n_positions, np.int64)
        np.add.at(sums, self.position - 1, values)
        return sums

    def to_frame(self) -> pl.DataFrame:
        """The table of the counts, sorted by its first columns."""
        columns = {name: pl.Series(values) for name in (*KEYS[2:], *NUMBERS) if (values := getattr(self, name)) is not None}
        return self.pair_labels.select(pl.all().gather(self.pair)).with_columns(**columns)

    def write(self, path: str | PathLike[str]) -> None:
        """Write the table as Parquet with a checksum; no half-written file is left.

        Raises:
            ValueError: on another ending than ``.parquet``.
        """
        write_whole(check_counts_path(path), sealed(self.to_frame()))


def check_counts_path(path: str | PathLike[str]) -> Path:
    """Where counts are written."""
    file = check_path("out", path)
    if file.suffix != ".parquet":
        raise ValueError(f"out is {file}; expected a file whose name ends with .parquet")
    return file


def _with_columns(frame: pl.DataFrame, source: object) -> pl.DataFrame:
    """The columns of counts, two labels and whole numbers; refuse a table that has others."""
    for name in NEEDED:
        if name not in frame.columns:
            raise ValueError(f"{source}: no column {name!r}; the table has {', '.join(frame.columns)}")
    frame = frame.select(name for name in (*KEYS, *NUMBERS) if name in frame.columns)
    if frame.is_empty():
        raise ValueError(f"{source}: the counts have no rows")
    for name, kind in frame.drop("query", "item").schema.items():
        if not kind.is_integer():
            raise ValueError(f"{source}: the column {name!r} holds {kind}; expected whole numbers")
    return frame.with_columns(pl.col("query", "item").cast(pl.String))


def _check_rows(frame: pl.DataFrame, source: object) -> None:
    """Refuse counts that no log has."""
    position, last, fold, displays, clicks, examined, last_clicks = map(pl.col, (*KEYS[2:], *NUMBERS))
    rules = (
        ("position", "a missing value", pl.any_horizontal(pl.all().is_null())),
        ("position", "a position below 1", position < 1),
        ("clicks", "more clicks than displays, or none", (clicks > displays) | (clicks < 0) | (displays < 1)),
        ("last_click", "a last click that is not above", (last >= position) | (last < 0)),
        ("fold", "a fold that is not 0 or 1", ~fold.is_in([0, 1])),
        ("examined", "examined not between clicks and displays", (examined < clicks) | (examined > displays)),
        ("last_clicks", "more last clicks than clicks", (last_clicks > clicks) | (last_clicks < 0)),
    )
    for name, fault, rule in rules:
        bad: Any = frame.select(rule.fill_null(False).arg_true()).to_series() if name in frame.columns else []
        if len(bad):
            raise ValueError(f"{source}, row {bad[0] + 1}: {fault}")
    by_position = frame.group_by("position").agg(pl.col("displays").sum()).sort("position")
    if by_position["position"].to_list() != [*range(1, by_position.height + 1)]:
        raise ValueError(f"{source}: not every position from 1 to {by_position['position'][-1]} has displays")
    if (by_position["displays"].diff() > 0).any():
        raise ValueError(f"{source}: a position has more displays than the one above it; expected counts of whole sessions")


def is_counts(path: Any) -> bool:
    """Whether this is a file of counts, by its columns."""
    if not isinstance(path, str | PathLike) or (file := Path(path)).suffix != ".parquet" or not file.is_file():
        return False
    with reading(file, *DAMAGED):
        names = pl.scan_parquet(file, glob=False).collect_schema().names()
    return "session" not in names and {"displays", "clicks"} <= set(names)


def read_counts(path: str | PathLike[str]) -> Counts:
    """Read a file that `Counts.write`, or the statement of ``clickgym count --sql``, has written.

    Raises:
        ValueError: naming the file and what is wrong.
        OSError: if there is no such file.
    """
    file = check_path("counts", path)
    return Counts.from_frame(_frame(file), file)  # held by no name, so that it can be dropped column by column


def _frame(file: Path) -> pl.DataFrame:
    with reading(file, *DAMAGED):
        check_file(file)
        return pl.read_parquet(file, glob=False)


def check_columns_counted(counts: Counts, model: str, columns: tuple[str, ...] | None) -> None:
    """Refuse a model that counts do not tell.

    Args:
        counts: of a log.
        model: short name of an estimator.
        columns: that it needs; None: no counts tell it.
    """
    if columns is None:
        raise ValueError(not_counted(model))
    for name in columns:
        if getattr(counts, name) is None:
            raise ValueError(f"the counts have no column {name!r}, which {model} needs; count the log for {model}")


def not_counted(model: str) -> str:
    """Why no counts of cells tell a model."""
    return (
        f"{model} cannot be fitted to counts: whether a user looked below the last click depends on all items that stood "
        "there, which counts do not hold; fit it to the log"
    )
