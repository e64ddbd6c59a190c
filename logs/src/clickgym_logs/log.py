"""Click logs in memory, and as tidy tables."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clickgym.core.checks import (
    as_array,
    as_call,
    check_choice,
    check_count,
    check_kind,
    check_labels,
    check_path,
    integers,
    numbers,
    short,
)
from clickgym.core.files import parquet, write_whole

from .counting import faulty_list
from .distinct import repeated_sessions

BLOCKS = 20
"""Blocks of time, within which what changes with time can be told from what the lists do."""
REWARDS = {"clicks": "clicks per session", "any_click": "sessions with a click"}
"""What a session may earn, with its unit."""


@dataclass(frozen=True, eq=False)
class ClickLog:
    """A click log: the ranked lists of many sessions, and which positions were clicked.

    A click vector says *which* positions were clicked. The log does not keep how often or in which
    order. If a list has fewer than K items, nothing is examined below its end.

    Args:
        items: ``(N, K)`` integers, the list of each session as distinct indices into
            ``item_labels``, at least one; below its end -1.
        clicks: ``(N, K)`` 0 or 1, 1 where the position was clicked; or a mask of booleans.
        queries: ``(N,)`` integers, the query of each session as an index into ``query_labels``.
        item_labels, query_labels: what the indices stand for, distinct strings. Logs are matched by
            these labels, so a model fitted to one log can be scored on another.
        propensities: ``(N, K)`` in (0, 1], the probability with which the logging policy shows this
            item at this position, and 1 below the end of a list; None if unknown.
        list_propensities: ``(N,)`` in (0, 1], the probability of the whole list; None if unknown.
        context: ``(N, K, d)`` features of the item at each position, including those of the user,
            as an agent would have seen them; None without features.
        times: ``(N,)`` when each session was, any numbers that can be sorted; None if unknown.
        users: ``(N,)`` integers, the user of each session; None if unknown. If users are known,
            standard errors are clustered by user.
        arms: ``(N,)`` integers, the arm of an experiment, drawn at random for the session or its
            user, as an index into ``arm_labels``; -1 outside the experiment; None without one.
        arm_labels: what these stand for.

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
    propensities: NDArray[np.float64] | None = None
    list_propensities: NDArray[np.float64] | None = None
    context: NDArray[np.float64] | None = None
    times: NDArray[np.float64] | NDArray[np.int64] | None = None
    users: NDArray[np.int64] | None = None
    arms: NDArray[np.int32] | None = None
    arm_labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        def checked(name: str, check: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
            value = check(name, getattr(self, name), *arguments, **keywords)
            object.__setattr__(self, name, value)
            return value

        n_labels = {
            name: len(checked(name, check_labels))
            for name in ("item_labels", "query_labels", "arm_labels")
        }
        options: dict[str, Any] = {"dtype": np.int32, "empty": True, "whole": True}
        shape = checked(
            "items", integers, ("sessions", "positions"), -1, n_labels["item_labels"], **options
        ).shape
        checked("clicks", _check_clicks, shape)
        checked("queries", integers, shape[:1], 0, n_labels["query_labels"], **options)
        seen_in = np.full(n_labels["item_labels"], -1, np.int32)
        session, item = faulty_list(self.items, self.clicks, seen_in)
        if item >= 0:
            raise ValueError(
                f"items[{session}] shows the item {self.item_labels[item]!r} twice; expected "
                "distinct items in a list"
            )
        if session >= 0:
            expected = "expected one item or more, then -1 for the rest, without clicks"
            row, clicks = (short(part[session].tolist()) for part in (self.items, self.clicks))
            raise ValueError(f"items[{session}] is {row} with the clicks {clicks}; {expected}")
        if self.propensities is not None:
            checked("propensities", _check_propensities, shape)
        if self.list_propensities is not None:
            checked("list_propensities", _check_propensities, shape[:1])
        if self.context is not None:
            checked("context", numbers, (*shape, "features"), empty=True, copy=False)
        if self.times is not None:
            checked("times", _check_times, shape[:1])
        if self.users is not None:
            checked("users", integers, shape[:1], 0, empty=True, whole=True)
        if self.arms is not None:
            checked("arms", integers, shape[:1], -1, n_labels["arm_labels"], **options)

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        labels = {"n_queries": len(self.query_labels), "n_items": len(self.item_labels)}
        return as_call(
            self,
            n_sessions=len(self),
            n_positions=self.n_positions,
            **labels,
            n_clicks=int(self.clicks.sum()),
        )

    @property
    def n_positions(self) -> int:
        """K, the number of positions of the longest lists."""
        return self.items.shape[1]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The length of each list, ``(N,)``."""
        return (self.items >= 0).sum(axis=1)

    @property
    def order(self) -> NDArray[np.int64]:
        """The sessions in the order of their times, ``(N,)`` indices; those of one time, and all
        without times, as they stand.

        Example:
            >>> ClickLog([[0]] * 3, [[1]] * 3, [0] * 3, ("a",), ("q",), times=[7, 5, 7]).order
            array([1, 0, 2])
        """
        return np.arange(len(self)) if self.times is None else np.argsort(self.times, kind="stable")

    @property
    def repeated(self) -> NDArray[np.bool_]:
        """Which sessions repeat one above them, ``(N,)``: of the same time, query, list and clicks,
        and of the same user where users are known.

        Where times are coarse, different users who meet the same list at one time are often alike,
        too. How often users are alike by chance follows from pairs of sessions with the same list
        at *different* times. Sessions count as repeated only if those that share time, query and
        list are alike at least four times as often (as odds). No session counts as repeated if
        lists are not shown at several times, if times are too coarse to tell, or if there are no
        times.

        Example:
            >>> log = ClickLog([[0]] * 3, [[1]] * 3, [0] * 3, ("a",), ("q",), times=[5, 7, 5])
            >>> log.repeated
            array([False, False, False])
        """
        return repeated_sessions(self.times, self.queries, self.items, self.clicks, self.users)

    def earned(self, reward: str = "clicks", cutoff: int | None = None) -> NDArray[np.int8]:
        """What each click counts, ``(N, cutoff)``.

        Args:
            reward: ``"clicks"``: each click 1; ``"any_click"``: only the first of its list.
            cutoff: count only the first ``cutoff`` positions, in ``1..K``; None counts all.

        Raises:
            ValueError: on another reward, or a cutoff beyond the positions.

        Example:
            >>> log = ClickLog([[0, 1]], [[1, 1]], [0], ("a", "b"), ("q",))
            >>> log.earned(), log.earned("any_click"), log.earned(cutoff=1)
            (array([[1, 1]], dtype=int8), array([[1, 0]], dtype=int8), array([[1]], dtype=int8))
        """
        check_choice("reward", reward, REWARDS)
        if cutoff is not None and check_count("cutoff", cutoff) > self.n_positions:
            raise ValueError(f"cutoff is {cutoff}, but the log has {self.n_positions} positions")
        counted = self.clicks[:, :cutoff]
        return counted * (counted.cumsum(axis=1) == 1) if reward == "any_click" else counted

    def of_query(self, query: str) -> ClickLog:
        """The log of the sessions of a query.

        Args:
            query: its label.

        Raises:
            ValueError: the log has no such query.
        """
        check_choice("query", query, self.query_labels)
        return self[self.queries == self.query_labels.index(query)]

    def __getitem__(self, sessions: Any) -> ClickLog:
        """The log of some sessions: a boolean mask, a slice or a sequence of indices."""
        try:
            self.queries[sessions]
        except (IndexError, TypeError, ValueError) as error:
            expected = "a mask, a slice or a sequence of indices"
            raise IndexError(
                f"the part {short(sessions)} of {len(self.queries)} sessions; expected {expected}"
            ) from error
        part = copy(self)
        for name, values in vars(self).items():
            if isinstance(values, np.ndarray):
                object.__setattr__(part, name, values[sessions])  # which needs no further checks
        if part.items.ndim != 2:
            raise ValueError(
                f"the part {short(sessions)} is one row; expected a mask, a slice or a sequence "
                "of indices"
            )
        return part

    def to_frame(self) -> pl.DataFrame:
        """The log as a tidy data frame with one row per session and position.

        Returns:
            Columns ``session`` (from 0), ``query``, ``position`` (from 1), ``item``, ``clicked``,
            and where they are known ``propensity``, ``list_propensity``, ``time``, ``user`` (its
            number), ``arm``, and the context as ``feature_1``, ``feature_2``, ...

        Example:
            >>> ClickLog([[1, 0]], [[1, 0]], [0], ("a", "b"), ("q",)).to_frame().rows()
            [(0, 'q', 1, 'b', 1), (0, 'q', 2, 'a', 0)]
        """
        n_positions = self.n_positions
        # Only an empty log has no labels, and then there is nothing to take.
        items, queries = (
            pl.Series(labels, dtype=pl.String) for labels in (self.item_labels, self.query_labels)
        )
        columns: dict[str, Any] = {
            "session": np.repeat(np.arange(len(self)), n_positions),
            "query": queries.gather(np.repeat(self.queries, n_positions)),
            "position": np.tile(np.arange(1, n_positions + 1, dtype=np.int32), len(self)),
            "item": items.gather(self.items.ravel().clip(0)),
            "clicked": self.clicks.ravel(),
        }
        for name, values in (
            ("propensity", self.propensities),
            ("list_propensity", self.list_propensities),
            ("time", self.times),
            ("user", self.users),
        ):
            if values is not None:
                columns[name] = (
                    values.ravel() if values.ndim == 2 else np.repeat(values, n_positions)
                )
        if self.arms is not None:
            arms = pl.Series([*self.arm_labels, None], dtype=pl.String)  # None for -1
            columns["arm"] = arms.gather(np.repeat(self.arms, n_positions) % len(arms))
        if self.context is not None:
            for j in range(self.context.shape[2]):
                columns[f"feature_{j + 1}"] = self.context[:, :, j].ravel()
        frame = pl.DataFrame(columns)
        filled = self.items.ravel() >= 0
        return frame if filled.all() else frame.filter(filled)


def frequent_queries(log: ClickLog, most: int = 1) -> list[str]:
    """The labels of the most frequent queries, the most frequent one first."""
    order = np.argsort(-np.bincount(log.queries, minlength=1), kind="stable")[:most]
    return [log.query_labels[query] for query in order]


def item_numbers(log: ClickLog, labels: Iterable[str]) -> list[int]:
    """The numbers of the items with these labels, of which the log must have each."""
    number = {label: item for item, label in enumerate(log.item_labels)}
    return [number[check_choice("item", label, number)] for label in labels]


def _check_propensities(name: str, values: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """``values`` as an array of probabilities above 0; the message of the ValueError names the
    array.
    """
    return numbers(
        name,
        values,
        shape,
        most=1.0,
        above=0.0,
        expected="a probability in (0, 1]",
        empty=True,
        copy=False,
    )


def _check_times(
    name: str, values: Any, shape: tuple[int, ...]
) -> NDArray[np.float64] | NDArray[np.int64]:
    """``values`` as an array of numbers; integers stay integers, exact beyond 2**53."""
    if as_array(name, values).dtype.kind in "iu":
        return integers(name, values, shape, -(2**63), empty=True)
    return numbers(name, values, shape, empty=True, copy=False)


def _check_clicks(name: str, values: Any, shape: tuple[int, ...]) -> NDArray[np.int8]:
    """0 and 1; an array of booleans is a mask, and means the same."""
    if isinstance(values, np.ndarray) and values.dtype == np.bool_:
        values = values.view(np.int8)
    return integers(name, values, shape, 0, 2, dtype=np.int8, empty=True, whole=True)


def write_tidy(log: ClickLog, path: str | PathLike[str]) -> None:
    """Write a log as a table, which `read_log` reads back; no half-written file is left.

    Args:
        log: the sessions; see `ClickLog.to_frame` for the columns.
        path: a file whose name ends with ``.csv``, ``.csv.gz`` or ``.parquet``.

    Raises:
        ValueError: the name ends otherwise, or there is no such folder.
    """
    path = check_table(path)
    check_kind("log", log, ClickLog, "a ClickLog")
    if path.suffix == ".parquet":
        write_whole(path, parquet(log.to_frame()))
    else:
        text = log.to_frame().write_csv().encode()
        write_whole(path, gzip.compress(text) if path.suffix == ".gz" else text)


def check_table(path: str | PathLike[str]) -> Path:
    """The path of a table to write; another ending, or a folder that is missing, is refused."""
    table = check_path("path", path)
    if not table.name.endswith((".csv", ".csv.gz", ".parquet")) or not table.parent.is_dir():
        raise ValueError(
            f"{table}: expected a file that ends with .csv, .csv.gz or .parquet, in a folder that "
            "exists"
        )
    return table
