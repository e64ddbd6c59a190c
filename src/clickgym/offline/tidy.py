"""Sessions from tidy tables, which have one row per session and position.

A table comes in blocks of rows, whose columns Polars holds as text. Blocks are parsed and checked as a whole; a row becomes a
Python object only if it is faulty. Where the rows of a session are not consecutive, which shows in the sessions' names, all
rows are sorted by the names of the sessions, in parts by a hash of these names that lie in temporary files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..core.checks import check_choice
from .counting import may_repeat_items
from .names import PARTS, Parts, repeated_name, stack
from .rows import COLUMNS, CONTEXT, Block, FrameTable, TextTable, check_columns, parquet_table, roles_of, tidy_text
from .tables import FEATURE, PROBABILITY, ROWS, SIGNED, WORTH, Fault, Real, Skipped, check_kept, check_size, whole_number
from .times import as_seconds

DUPLICATES = ("refuse", "first")
ONE_QUERY = "all"
TRUTH = {"0": 0, "1": 1, "false": 0, "true": 1}
LABEL = 150  # bytes that a label takes besides its letters, once in a dictionary and once in the log

REPEATED, INCOMPLETE, TWO_QUERIES, ITEM_TWICE, TWO_PROPENSITIES, TWO_TIMES = range(6)
"""Faults of sessions; the least is reported."""
FAULTS = {
    REPEATED: (
        "a position twice in a session",
        "has the position {twice} twice; duplicates 'first' keeps the first of repeated rows",
    ),
    INCOMPLETE: ("an incomplete session", "does not have each position from {base} to {last} exactly once"),
    TWO_QUERIES: ("two queries in a session", "has two queries"),
    ITEM_TWICE: ("an item twice in a session", "shows an item twice"),
    TWO_PROPENSITIES: ("two list propensities in a session", "has two list propensities"),
    TWO_TIMES: (
        "two times in a session",
        "has two times, {times[0]} and {times[1]}; leave out a column that says something else (--time '')",
    ),
}
TIMES = "numbers only, or dates and times in ISO 8601 only"
FIRST = (pl.col("run") != pl.col("run").shift()).fill_null(True)
"""Whether a row is the first one of its session."""
STEP = pl.col("rank").diff()


class Checked(NamedTuple):
    """The well-formed rows of a block.

    Attributes:
        rows: columns ``key`` (the session's name), ``query``, ``item``, ``number``, ``rank`` (position), ``clicked``, those of
            numbers, and ``time`` if it is known.
        lost: sessions of which a row was left out, and whether that is certain (else it shows in a list that is shorter than
            others).
        error: strict, of the first row that is not well-formed; the rows are those before it.
    """

    rows: pl.DataFrame
    lost: dict[str, bool]
    error: ValueError | None


def read_rows(
    path: Path,
    split: str | None,
    columns: Mapping[str, str] | None,
    duplicates: str,
    bad_rows: str,
    max_memory: int | str,
    query: str | None = None,
) -> tuple[dict[str, Any], Sessions]:
    """The arguments of a `ClickLog` from the file of a tidy table, empty if it has no session of the wanted query; and what
    knows the sessions, to compare them with those of other files. See `read_tidy`.
    """
    limit, notes = check_size("max_memory", max_memory), list[str]()
    sessions = Sessions(path, split, duplicates, Skipped(path, bad_rows), limit, notes, query)
    return sessions.read(table_of(path, columns, split, notes, limit)), sessions


def table_of(
    path: Path, columns: Mapping[str, str] | None, split: str | None, notes: list[str], max_memory: int
) -> TextTable | FrameTable:
    """The table in a file; ``notes`` gets a line for what was guessed."""
    columns = check_columns(columns)
    if path.suffix == ".parquet":
        return parquet_table(path, partial(roles_of, path, columns, split), max_memory)
    return tidy_text(path, columns, split, notes)


def read_frame(frame: Any, *, columns: Mapping[str, str] | None = None, duplicates: str = "refuse") -> dict[str, Any]:
    """The arguments of a `ClickLog` from a tidy table in memory; see `ClickLog.from_frame`."""
    if isinstance(frame, pl.DataFrame | pl.LazyFrame):
        table = frame.lazy()
    elif hasattr(frame, "columns") and hasattr(frame, "__getitem__"):
        table = pl.DataFrame([_series(str(name), frame[name]) for name in frame.columns]).lazy()
    else:
        raise TypeError(f"frame is a {type(frame).__name__}; expected a data frame of pandas or Polars")
    name, limit = "the frame", 1 << 62  # what is in memory already has no other limit
    sessions = Sessions(name, None, duplicates, Skipped(name, unit="row"), limit, [])
    return sessions.read(FrameTable(name, table, partial(roles_of, name, check_columns(columns), None), limit))


def _series(name: str, column: Any) -> pl.Series:
    """A column of pandas; numbers and dates as they are, all else value by value."""
    values = np.asarray(column)
    if values.dtype.kind in "biufM":
        return pl.Series(name, values)
    # What is missing there differs from itself, or cannot be compared.
    missing = column.isna().to_numpy() if hasattr(column, "isna") else [value is None for value in values]
    return pl.Series(name, [None if absent else str(value) for value, absent in zip(values.tolist(), missing, strict=True)])


class Sessions:
    """Sessions that are being put together from rows.

    Args:
        source: for messages.
        split: keep only the rows of this split; None keeps all.
        duplicates: of `DUPLICATES`.
        skipped: counts what is left out, or refuses it.
        max_memory: bytes.
        notes: gets a line for each thing that was guessed.
        query: keep only the rows of this query, the others are not looked at; None keeps all.

    Attributes:
        names: by role what is read.
        sessions: the names, as 64 bits of each in the column ``name``.
        base: the position that the table counts from.
        dates: whether times are dates, and not numbers; None without times.
    """

    def __init__(
        self,
        source: object,
        split: str | None,
        duplicates: str,
        skipped: Skipped,
        max_memory: int,
        notes: list[str],
        query: str | None = None,
    ) -> None:
        check_choice("way with duplicates", duplicates, DUPLICATES)
        self.source, self.split, self.duplicates, self.skipped = source, split, duplicates, skipped
        self.max_memory, self.notes, self.query = max_memory, notes, query

    def _begin(self, *names: str) -> None:
        """Forget all sessions; columns to be kept of each session besides length and query."""
        self.skipped.clear()
        self.skipped.first.clear()
        self.sessions = Parts(pl.col("name") // (1 << 58))  # ranges
        self.lost: set[str] = set()  # sessions
        self.n_unknown = self.n_gaps = 0  # rows that were lost, of which nobody knows the session; sessions that lack rows
        self.above: Any = (None, 0)  # session and place of the row above a block, as in `_checked`
        self.dates: bool | None = None
        timed = ["time"] if "time" in self.names else []
        self.head_columns = [*names, *(name for name in self.floats if name == "list_propensity"), *timed]
        self.row_columns = ["clicked", *(name for name in self.floats if name != "list_propensity")]
        self.base: int | None = None
        self.longest = 0  # list so far, where rows were lost
        self.label_bytes = 0
        self.item_index: dict[str, int] = {}
        self.query_index: dict[str, int] = {}
        self.rows: list[pl.DataFrame] = []
        self.heads: list[pl.DataFrame] = []
        self.n_rows = self.n_sessions = 0

    def read(self, blocks: TextTable | FrameTable) -> dict[str, Any]:
        """The arguments of a `ClickLog`."""
        self.blocks, self.names = blocks, blocks.names
        self.floats = [name for name in self.names if name not in (*COLUMNS, "region", "split", "time")]
        self._begin()
        if not self._read_as_they_stand(blocks):
            self._note("the rows of a session are not consecutive: they are sorted by session and position")
            self._begin("key")
            self._read_sorted(blocks)
        self.skipped.n_lost = len(self.lost) + max(self.n_unknown - self.n_gaps, 0)
        self.notes += self.skipped.notes(self.n_sessions)
        if not self.n_sessions and self.query is not None:
            return {}
        if not self.n_sessions:
            what = "session in the file" if self.split is None else f"row with split {self.split!r}"
            raise ValueError(f"{self.source}: no {what}")
        if "query" not in self.names:
            self._note(f"there is no column 'query': all sessions are taken to be of one query, {ONE_QUERY!r}")
        return self._arguments()

    def read_names(self) -> Iterator[pl.Series]:
        """Read the names of the sessions again."""
        for block in self.blocks():
            yield self._checked(block).rows["key"]

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)

    # ---------------------------------------------------------------------------------------------------------------- rows

    @property
    def _query(self) -> pl.Expr:
        if "query" not in self.names:
            return pl.lit(ONE_QUERY)
        return pl.concat_str("query", pl.lit("-"), "region") if "region" in self.names else pl.col("query")

    def _checked(self, block: Block) -> Checked:
        rows, faults = block
        for column, wanted in ((pl.col("split"), self.split), (self._query, self.query)):
            if wanted is not None:
                rows = rows.filter((column == wanted) | pl.col("number").is_in(list(faults)))
        values = self._values(rows)
        if values["valid"].all():
            if values.height:
                self.above = values.select("key", pl.col("rank") - pl.col("number")).row(-1)
            return Checked(values.drop("valid"), {}, None)
        # A row whose position continues those of another one has its place, if both are counted from there.
        key, place = pl.when("valid").then("key"), pl.col("rank") - pl.col("number")
        among = pl.when("valid").then(place)
        neighbours = values.select(
            "key", "valid", "rank", place=place,
            above=key.forward_fill().fill_null(pl.lit(self.above[0], pl.String)), below=key.backward_fill(),
            place_above=among.forward_fill().fill_null(self.above[1]), place_below=among.backward_fill(),
        )  # fmt: skip
        self.above = neighbours.select("above", "place_above").row(-1)
        lost: dict[str, bool] = {}
        for row in pl.concat([rows, neighbours], how="horizontal").filter(~pl.col("valid")).iter_rows(named=True):
            number = row["number"]
            try:
                self.skipped.add(faults.get(number) or self._fault(row), number)
            except ValueError as error:
                return Checked(values.filter(pl.col("number") < number).drop("valid"), {}, error)
            self._lose(row, number in faults, lost)
        return Checked(values.filter("valid").drop("valid"), lost, None)

    def _lose(self, row: dict[str, Any], damaged: bool, lost: dict[str, bool]) -> None:
        """Note in ``lost``, as in `Checked`, of which session a row was that is left out."""
        session = self._session_of(row, damaged)
        beside = {row["above"], row["below"]} - {None}
        sure = session is not None and (not damaged or session in beside)
        for neighbour in () if sure else beside:
            lost.setdefault(neighbour, False)
        if session is not None:
            lost[session] = True
        if session is None or (self.together and not sure):
            self.n_unknown += 1
        else:
            self.lost.add(session)

    def _session_of(self, row: dict[str, Any], damaged: bool) -> str | None:
        """The session that a row names, or whose positions it continues; None if nobody knows it."""
        if row["session"]:
            return row["key"]
        if not damaged and self.together and row["rank"] >= 0:
            for side in ("above", "below"):
                if row["place"] == row[f"place_{side}"]:
                    return row[side]
        return None

    def _values(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The columns of `Checked.rows`, and whether a row is ``valid``."""
        ranks = _by_text(rows["position"], lambda text: int(text) if re.fullmatch("[0-9]{1,9}", text) else -1, pl.Int32)
        clicks = _by_text(rows["clicked"], lambda text: TRUTH.get(text.lower(), -1), pl.Int8)
        if rows["clicked"].unique().str.to_lowercase().is_in(["true", "false"]).any():
            self._note("clicked: true and false are taken for 1 and 0")
        key = pl.col("session")
        if "split" in self.names:
            key = pl.concat_str("split", pl.lit(" "), key)
        values = {name: pl.col(name).cast(pl.Float64, strict=False) for name in self.floats}
        filled = [pl.col(name) != "" for name in ("session", "query", "item") if name in self.names]
        in_range = [
            pl.col(name).str.contains(f"^{_kind(name).written.pattern}$") & _kind(name).inside(value)
            for name, value in values.items()
        ]
        if "time" in self.names:
            values["time"] = pl.lit(self._times(rows["time"]))
            in_range.append(values["time"].is_not_null())
        valid = pl.all_horizontal(pl.lit(ranks) >= 0, pl.lit(clicks) >= 0, *filled, *in_range).fill_null(False)
        columns = rows.lazy().select(
            "item", "number", key=key, query=self._query, rank=pl.lit(ranks), clicked=pl.lit(clicks), **values, valid=valid,
        )  # fmt: skip
        return columns.collect()

    def _times(self, texts: pl.Series) -> pl.Series:
        """Numbers, or the seconds of dates since 1970; null where a text is neither, or not of the kind of the first one."""
        is_number = texts.str.contains(f"^{SIGNED.pattern}$")
        if self.dates is None:
            kinds = (
                not number for number, text in zip(is_number, texts, strict=True) if number or as_seconds(text) is not None
            )
            self.dates = next(kinds, None)
        if self.dates:
            return _by_text(texts, as_seconds, pl.Float64)
        numbers = pl.select(pl.when(is_number).then(texts)).to_series()
        whole = numbers.cast(pl.Int64, strict=False)
        if whole.null_count() == numbers.null_count():
            return whole
        floats = numbers.cast(pl.Float64, strict=False)
        return pl.select(pl.when(floats.is_finite()).then(floats)).to_series()

    def _fault(self, row: Mapping[str, str]) -> Fault:
        """What is wrong with a row."""
        try:
            whole_number("position", row["position"], 1)
            if row["clicked"].lower() not in TRUTH:
                raise Fault("clicked is not 0 or 1", f"clicked is {row['clicked']!r}; expected 0 or 1")
            for name in ("session", "query", "item", "time"):
                if row.get(name) == "":
                    raise Fault("a missing value", f"the column {self.names[name]!r} is empty")
            for name in self.floats:
                _kind(name).parse(self.names[name], row[name])
            if "time" in self.names:
                message = f"{self.names['time']} is {row['time']!r}; expected {TIMES}"
                raise Fault("time cannot be read", message)
        except Fault as fault:
            return fault
        raise AssertionError(row)

    # ------------------------------------------------------------------------------------------------------------- sessions

    def _read_as_they_stand(self, blocks: TextTable | FrameTable) -> bool:
        """Read the sessions in the order of their rows; whether those of each stand together."""
        self.together = True
        fault: ValueError | None = None  # of a session, unless its rows are not consecutive
        for rows, lost, error in self._whole_sessions(blocks):
            names = rows["key"].rle().struct.field("value").hash()
            if names.n_unique() < len(names):
                return False
            self.sessions.add(names.to_frame("name"))
            fault = fault or self._add(rows, lost)
            if error and not fault:
                raise error
        if repeated_name([self.sessions]) is not None:
            return False
        if fault:
            raise fault
        return True

    def _whole_sessions(self, blocks: TextTable | FrameTable) -> Iterator[Checked]:
        """The well-formed rows in their order, cut where a session ends."""
        rest: pl.DataFrame | None = None
        lost_above: dict[str, bool] = {}
        for block in blocks():
            rows, lost, error = self._checked(block)
            rows = rows if rest is None else stack([rest, rows])
            end = rows.height - sum(rows["key"].rle().struct.field("len").tail(1))
            yield Checked(rows[:end], lost | lost_above, error)
            rest, lost_above = rows[end:], lost
            if rest.height > ROWS:
                raise ValueError(f"{self.source}: session {rest['key'][0]} has more than {ROWS:,} rows")
        if rest is not None:
            yield Checked(rest, lost_above, None)

    def _read_sorted(self, blocks: TextTable | FrameTable) -> None:
        """Read the sessions in the order of their names; those that are numbers by their value."""
        self.together = False
        lost: dict[str, bool] = {}
        table = Parts(pl.col("key").hash() % PARTS)
        for block in blocks():
            rows, of_block, error = self._checked(block)
            if error:
                raise error
            lost.update(lost | of_block)
            table.add(rows)
        if len(table.numbers) > 1:
            table.spill()
        for parts in filter(None, map(table.part, table.numbers)):
            rows = stack(parts).sort("key", "rank", "number")
            self.sessions.add(rows.select(name=pl.col("key").unique().hash()))
            if fault := self._add(rows, lost):
                raise fault
        if self.n_sessions:
            self._sort()

    def _add(self, rows: pl.DataFrame, lost: Mapping[str, bool]) -> ValueError | None:
        """Add whole sessions, the rows of each together.

        Args:
            rows, lost: as in `Checked`.

        Returns:
            What is wrong with the first faulty session, if that is not to be counted.
        """
        if rows.is_empty():
            return None
        rows = rows.with_columns(run=pl.col("key").rle_id())
        if self.base is None:
            self.base = int(rows.filter(run=0)["rank"].min() > 0)  # type: ignore[operator]
            if not self.base:
                self._note("positions are taken to be counted from 0")
        if rows.select((~FIRST & (STEP < 0)).any()).item():
            rows = rows.sort("run", "rank", maintain_order=True)
        if self.duplicates == "first":
            rows = self._first_of_repeated(rows)
        lengths = _lengths(rows)
        faults = self._faults(rows, lengths)
        if lost or faults.null_count() < rows.height:
            try:
                rows = self._without_faults(rows.with_columns(fault=faults), lost)
            except ValueError as error:
                return error
            if rows.is_empty():
                return None
            lengths = _lengths(rows)
        self._keep(rows, lengths)
        self.n_rows += rows.height
        self.n_sessions += len(lengths)
        check_kept(
            self.source, self._size() + LABEL * len(self.lost), self.max_memory, f"the first {self.n_sessions:,} sessions"
        )
        return None

    def _keep(self, rows: pl.DataFrame, lengths: NDArray[np.int64]) -> None:
        """Keep the rows of sound sessions of these lengths, in the order of their positions."""
        heads = rows.filter(FIRST)
        (items, labels), (queries, query_labels) = _coded(rows["item"]), _coded(heads["query"])
        items = self._numbers(self.item_index, labels).gather(items)
        queries = self._numbers(self.query_index, query_labels).gather(queries)
        self.rows.append(rows.select(*self.row_columns, item=items))
        self.heads.append(heads.select(*self.head_columns, length=pl.Series(lengths), query=queries))

    def _size(self) -> int:
        """Bytes that are kept."""
        timed = 8 * ("time" in self.names)
        return (5 + 8 * len(self.floats)) * self.n_rows + (8 + timed) * self.n_sessions + self.label_bytes

    def _first_of_repeated(self, rows: pl.DataFrame) -> pl.DataFrame:
        again = rows.filter(~FIRST & (STEP == 0))["number"]
        if again.is_empty():
            return rows
        self.skipped.count("a repeated row", int(again.min()), len(again))  # type: ignore[arg-type]
        return rows.filter(FIRST | (STEP != 0))

    def _faults(self, rows: pl.DataFrame, lengths: NDArray[np.int64]) -> pl.Series:
        """The fault that shows in each row, the same row of the session or that above it; null if there is none."""
        query, propensity = pl.col("query"), pl.col("list_propensity")
        cases = {
            REPEATED: ~FIRST & (STEP == 0),
            INCOMPLETE: pl.when(FIRST).then(pl.col("rank") != self.base).otherwise(STEP != 1),
            TWO_QUERIES: ~FIRST & (query != query.shift()),
        }
        if may_repeat_items(lengths, rows["item"].hash().to_numpy()):
            cases[ITEM_TWICE] = pl.struct("run", "item").is_duplicated()
        if "list_propensity" in self.floats:
            cases[TWO_PROPENSITIES] = ~FIRST & (propensity != propensity.shift())
        if "time" in self.names:
            cases[TWO_TIMES] = ~FIRST & (pl.col("time") != pl.col("time").shift())
        fault = pl.coalesce(pl.when(case).then(pl.lit(fault, pl.Int8)) for fault, case in cases.items())
        return rows.select(fault).to_series()

    def _without_faults(self, rows: pl.DataFrame, lost: Mapping[str, bool]) -> pl.DataFrame:
        """The rows of the sessions without a fault of which no row was lost; the others are counted or refused."""
        key, length = pl.col("key"), pl.len().over("run")
        if lost:
            sound = pl.col("fault").min().over("run").is_null()
            self.longest = max(self.longest, rows.select(pl.when(sound).then(length).max()).item() or 0)
        certain = [session for session, is_certain in lost.items() if is_certain]
        incomplete = key.is_in(certain) | (key.is_in(list(lost)) & (length < self.longest))
        fault = pl.coalesce(pl.col("fault").min().over("run"), pl.when(incomplete).then(pl.lit(INCOMPLETE, pl.Int8)))
        rows = rows.with_columns(fault=fault)
        for session in rows.filter(pl.col("fault").is_not_null()).partition_by("run", maintain_order=True):
            self._refuse(session)
        return rows.filter(pl.col("fault").is_null())

    def _refuse(self, rows: pl.DataFrame) -> None:
        """Count a session that is left out, or refuse it."""
        ranks, (reason, words) = rows["rank"], FAULTS[rows["fault"][0]]
        number, near = rows["number"].max(), "near "
        if self.base and ranks[0] == 0:
            number, near, reason = rows["number"][0], "", "position is not a whole number from 1"
            message = "position is '0'; expected a whole number from 1, as in the first session"
        else:
            twice = ranks.filter(ranks.is_duplicated()).first()
            times = [*map(self._time_in_words, rows["time"].unique(maintain_order=True))] if "{times" in words else []
            message = f"session {rows['key'][0]} {words.format(twice=twice, base=self.base, last=ranks[-1], times=times)}"
        self.n_gaps += reason == FAULTS[INCOMPLETE][0] and rows["key"][0] not in self.lost
        self.lost.add(rows["key"][0])
        self.skipped.add(Fault(reason, message), number, rows.height, near)  # type: ignore[arg-type]

    def _time_in_words(self, time: float) -> str:
        return datetime.fromtimestamp(time, UTC).isoformat() if self.dates else str(time)

    def _numbers(self, index: dict[str, int], labels: pl.Series) -> pl.Series:
        """The numbers of labels, new ones in their order."""
        size = len(index)
        numbers = pl.Series([index.setdefault(label, len(index)) for label in labels], dtype=pl.Int32)
        if len(index) > size:
            self.label_bytes += int(labels.str.len_chars().sum()) + LABEL * (len(index) - size)
        return numbers

    def _sort(self) -> None:
        """Put the sessions in the order of their names, and number labels as they come."""
        heads, rows = stack(self.heads), pl.concat(self.rows)
        numeric = heads["key"].str.contains("^(0|[1-9][0-9]{0,17})$").all()
        order = (heads["key"].cast(pl.Int64) if numeric else heads["key"]).arg_sort()
        length = pl.col("length")
        heads = heads.with_columns(start=length.cum_sum() - length)[order]
        shifts = heads.select(pl.col("start") - length.cum_sum() + length).to_series()
        rows = rows[np.repeat(shifts.to_numpy(), heads["length"].to_numpy()) + np.arange(rows.height)]
        item, self.item_index = _renumbered(rows["item"], self.item_index)
        query, self.query_index = _renumbered(heads["query"], self.query_index)
        self.rows, self.heads = [rows.with_columns(item=item)], [heads.with_columns(query=query)]

    def _arguments(self) -> dict[str, Any]:
        rows, heads = pl.concat(self.rows), stack(self.heads)
        self.rows, self.heads = [], []
        lengths = heads["length"].to_numpy()
        shape = len(lengths), int(lengths.max())
        size = (5 + 8 * len(self.floats)) * shape[0] * shape[1] + self.label_bytes
        check_kept(self.source, size, self.max_memory, f"{shape[0]:,} sessions of up to {shape[1]:,} positions")
        filled = None if (lengths == shape[1]).all() else np.arange(shape[1], dtype=np.int32) < lengths[:, None]

        def padded(name: str, below: float) -> NDArray[Any]:
            flat = rows[name].to_numpy(writable=True)
            if filled is None:
                return flat.reshape(shape)
            result: NDArray[Any] = np.full(shape, below, flat.dtype)
            result[filled] = flat
            return result

        features = [f"feature_{j + 1}" for j in range(sum(CONTEXT.fullmatch(name) is not None for name in self.floats))]
        lists = "list_propensity" in self.floats
        return {
            "items": padded("item", -1),
            "clicks": padded("clicked", 0),
            "queries": heads["query"].to_numpy(writable=True),
            "item_labels": tuple(self.item_index),
            "query_labels": tuple(self.query_index),
            "propensities": padded("propensity", 1) if "propensity" in self.floats else None,
            "list_propensities": heads["list_propensity"].to_numpy(writable=True) if lists else None,
            "context": np.stack([padded(name, 0) for name in features], axis=2) if features else None,
            "skipped": dict(+self.skipped),
            "notes": tuple(self.notes),
            "times": heads["time"].to_numpy(writable=True) if "time" in self.names else None,
            "values": padded("value", 0) if "value" in self.floats else None,
        }


def _kind(name: str) -> Real:
    """What a column of numbers holds."""
    return FEATURE if CONTEXT.fullmatch(name) else WORTH if name == "value" else PROBABILITY


def _lengths(rows: pl.DataFrame) -> NDArray[np.int64]:
    """The number of rows of each session."""
    return rows["run"].rle().struct.field("len").cast(pl.Int64).to_numpy()


def _by_text(texts: pl.Series, value: Callable[[str], float | None], dtype: type[pl.DataType]) -> pl.Series:
    """The value of each text, of which there are few different ones."""
    codes, distinct = _coded(texts)
    return pl.Series([value(text) for text in distinct], dtype=dtype).gather(codes)


def _coded(texts: pl.Series) -> tuple[pl.Series, pl.Series]:
    """The number of each row's text, and the distinct texts, in order of appearance."""
    distinct = texts.unique(maintain_order=True)
    return texts.cast(pl.Enum(distinct)).to_physical(), distinct


def _renumbered(numbers: pl.Series, index: dict[str, int]) -> tuple[pl.Series, dict[str, int]]:
    """Labels numbered in the order in which they come."""
    labels, distinct = list(index), numbers.unique(maintain_order=True).to_list()
    new = {labels[old]: number for number, old in enumerate(distinct)}
    return numbers.replace_strict(distinct, list(new.values()), return_dtype=pl.Int32), new
