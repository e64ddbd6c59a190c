"""Count the clicks of tidy tables as they are read, in memory that does not grow with the number of sessions.

The rows are read and checked by the reader of logs, so that what it refuses is refused here. Of each block only the events
remain: pair of query and item, position, last click above, and what happened. They are sorted and counted in lots, and each lot
is merged into the cells so far.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..core.checks import check_callable, check_choice, check_labels, check_share
from ..core.kernels import kernel
from .counts import NUMBERS, Counts, Long, not_counted
from .estimation.estimator import MODEL_ESTIMATORS
from .keys import Ints, Keys
from .readers import format_of
from .reading import Reading, check_reading
from .rows import FrameTable, TextTable, check_columns
from .several import Paths, check_together, log_files
from .tables import MAX_MEMORY, Skipped, check_size
from .tidy import ONE_QUERY, Sessions, table_of

LOT = 1 << 23
"""Events that are sorted at once."""
MOST_POSITIONS = 5792
"""Of a list: what 24 bits tell of a position and the last click above it."""
HAPPENED = 0, 2, 1, 3
"""What happened, at least, where a display, a click, an examined display or a last click is counted."""
MIXES = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], np.uint64)


@kernel
def collect_cells(lengths, pairs, clicks, folds, after_click, events):  # type: ignore[no-untyped-def]
    """The event of each row: pair, position with last click above, fold, and in the two lowest bits what happened: a display
    below the last click, one above it (or in a session without), a click with another one below, the last click.
    """
    start = 0
    for session in range(len(lengths)):
        stop, final, last = start + lengths[session], -1, 0
        for row in range(start, stop):
            if clicks[row]:
                final = row
        for row in range(start, stop):
            k = row - start + 1
            context = k * (k - 1) // 2 + last
            happened = 1 if final < 0 or row < final else 0
            if clicks[row]:
                happened = 3 if row == final else 2
                last = k if after_click else 0
            events[row] = (((np.int64(pairs[row]) << 24 | context) << 1 | folds[session]) << 2) | happened
        start = stop


class Cells:
    """Cells in increasing order and their counts, from events in any order.

    Args:
        width: 2 counts displays and clicks, 4 also examined displays and last clicks.
    """

    def __init__(self, width: int) -> None:
        self.cells, self.counts = np.empty(0, np.int64), np.empty((width, 0), np.int64)
        self._events: list[Long] = []
        self._n_events = 0

    def add(self, events: Long) -> None:
        """Add events."""
        self._events.append(events)
        self._n_events += len(events)
        if self._n_events >= LOT:
            self.count()

    def count(self) -> None:
        """Count the events so far."""
        if not self._events:
            return
        events = np.concatenate(self._events)
        self._events, self._n_events = [], 0
        events.sort()
        happened = (events & 3).astype(np.int8)
        events >>= 2
        cells, sums = _summed(events, (happened >= least for least in HAPPENED[: len(self.counts)]))
        self.merge(cells, sums)

    def merge(self, cells: Long, counts: Long) -> None:
        """Add other cells."""
        both = np.append(self.cells, cells)
        order = both.argsort(kind="stable")
        rows = zip(self.counts, counts, strict=True)
        self.cells, self.counts = _summed(both[order], (np.append(*row)[order] for row in rows))


def _summed(cells: Long, columns: Iterable[NDArray[Any]]) -> tuple[Long, Long]:
    """Each of some sorted cells once, and the sums of columns over it."""
    first = np.flatnonzero(np.append(True, cells[1:] != cells[:-1])[: len(cells)])
    return cells[first], np.stack([np.add.reduceat(column, first, dtype=np.int64) for column in columns])


class Pairs:
    """The pairs of query and item, numbered as they come; 128 bits stand for their names."""

    def __init__(self) -> None:
        self._keys, self._labels = Keys(), list[pl.DataFrame]()

    @property
    def n(self) -> int:
        """How many."""
        return self._keys.n

    def numbers(self, rows: pl.DataFrame) -> Ints:
        """The number of each row's pair."""
        hashes = [
            (rows["query"].hash(seed).to_numpy() * mix + rows["item"].hash(seed).to_numpy()).view(np.int64)
            for seed, mix in enumerate(MIXES)
        ]
        numbers, new = self._keys.numbers(*hashes)
        if len(new):  # as new strings: those of the rows would keep the whole block
            labels = rows.select("query", "item")[new]
            self._labels.append(pl.DataFrame({name: labels[name].to_list() for name in labels.columns}))
        return numbers

    @property
    def labels(self) -> pl.DataFrame:
        """Query and item of each pair."""
        return pl.concat(self._labels)


class Counting(Sessions):
    """Counts the sessions of a table, of which it keeps nothing else.

    Args:
        pairs: of all tables.
        after_click: whether cells tell the last click above.
        width: as for `Cells`.
        limit: sessions are held out whose name has a hash below it; None: no fold.
        arguments: as for `Sessions`.
    """

    def __init__(self, pairs: Pairs, after_click: bool, width: int, limit: int | None, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.pairs, self.after_click, self.width, self.limit = pairs, after_click, width, limit

    def _begin(self, *names: str) -> None:
        super()._begin(*names)
        self.cells = Cells(self.width)

    def _keep(self, rows: pl.DataFrame, lengths: Long) -> None:
        if len(lengths) and lengths.max() > MOST_POSITIONS:
            raise ValueError(
                f"{self.source}: a session has {lengths.max():,} positions; counts have at most {MOST_POSITIONS:,}"
            )
        folds = np.zeros(len(lengths), np.int8)
        if self.limit is not None:
            names = rows["key"].gather(np.append(0, lengths.cumsum()[:-1]))
            folds[:] = [is_held_out(name, self.limit) for name in names.to_list()]
        events = np.empty(rows.height, np.int64)
        collect_cells(lengths, self.pairs.numbers(rows), rows["clicked"].to_numpy(), folds, self.after_click, events)
        self.cells.add(events)

    def _size(self) -> int:
        return 2 * (self.cells.cells.nbytes + self.cells.counts.nbytes) + 200 * self.pairs.n

    def _sort(self) -> None:
        pass

    def _arguments(self) -> dict[str, Any]:
        self.cells.count()
        return {}


def is_held_out(name: str, limit: int) -> bool:
    """Whether a session is held out: a hash that any database computes decides, so the same sessions in any order of files.

    Example:
        >>> sum(is_held_out(str(name), hold_out_limit(0.2)) for name in range(1000))
        215
    """
    return int.from_bytes(hashlib.md5(name.encode(), usedforsecurity=False).digest()[:4], "big") < limit


def hold_out_limit(share: float) -> int:
    """The limit of the hash below which a session is held out."""
    return round(share * (1 << 32))


def columns_for(models: Sequence[str]) -> set[str]:
    """The columns that counts need for some models.

    Raises:
        ValueError: on an unknown model, or one that counts do not tell.

    Example:
        >>> sorted(columns_for(["PBM", "UBM"]))
        ['last_click']
    """
    models = check_labels("models", models)
    if not models:
        raise ValueError("models is empty; expected at least one")
    if models == ("all",):
        models = tuple(name for name, estimator in MODEL_ESTIMATORS.items() if estimator.counted is not None)
    needed: set[str] = set()
    for name in models:
        check_choice("model", name, MODEL_ESTIMATORS)
        if (columns := MODEL_ESTIMATORS[name].counted) is None:
            raise ValueError(not_counted(name))
        needed.update(columns)
    return needed


def count_log(
    log: Paths,
    models: Sequence[str],
    *,
    hold_out: float = 0.0,
    log_format: str = "auto",
    on_step: Callable[[str], object] = lambda text: None,
    **reading: Unpack[Reading],
) -> Counts:
    """Count the clicks of a log that may be larger than memory, for click models that need no more.

    Memory grows with the number of pairs of query and item and of the cells in which they were shown, not with the sessions.

    Args:
        log: tidy tables: a file, a folder, a glob or several files. The result does not depend on their order.
        models: short names of estimators, or ``["all"]`` that counts tell. PBM, UBM and the click-through rate models are
            fitted as to the log itself; CM, DCM and SDBN in closed form. DBN and CCM need the log.
        hold_out: the share of the sessions that are counted apart, for the likelihood; a hash of a session's name decides.
        log_format: as for `read_log`; only tidy tables can be counted.
        on_step: is called with one line for each finished step.
        reading: columns, duplicates, bad_rows, max_memory (of the counts) and sessions_per_file, as for `read_log`.

    Raises:
        ValueError, OSError: as `read_log`, with the same row and reason.

    Example:
        >>> import tempfile
        >>> from clickgym.offline import ClickLog, write_tidy
        >>> log = ClickLog([[1, 0]] * 3, [[1, 0], [0, 1], [0, 0]], [0] * 3, ("a", "b"), ("q",))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_tidy(log, f"{folder}/log.csv")
        ...     counts = count_log(f"{folder}/log.csv", ["UBM"])
        >>> counts.to_frame().rows()
        [('q', 'a', 2, 0, 2, 1), ('q', 'a', 2, 1, 1, 0), ('q', 'b', 1, 0, 3, 1)]
    """
    needed, limit = columns_for(models), hold_out_limit(check_share("hold_out", hold_out)) if hold_out else None
    check_callable("on_step", on_step)
    check_reading(**reading)
    if reading.get("repeated", "keep") != "keep":
        raise ValueError("repeated sessions cannot be left out of counts; expected repeated 'keep'")
    columns = check_columns(reading.get("columns"))
    files = _tidy_files(log, log_format, columns)
    most = check_size("max_memory", reading.get("max_memory", MAX_MEMORY))
    pairs, width = Pairs(), 4 if "examined" in needed else 2
    total, tables = Cells(width), list[Counting]()
    for file in files:
        start, notes = time.perf_counter(), list[str]()
        skipped = Skipped(file, reading.get("bad_rows", "strict"))
        counting = Counting(
            pairs, "last_click" in needed, width, limit, file, None, reading.get("duplicates", "refuse"), skipped, most, notes
        )
        counting.read(table_of(file, columns, None, notes, sys.maxsize))
        tables.append(counting)
        total.merge(counting.cells.cells, counting.cells.counts)
        del counting.cells
        on_step(f"counted {counting.n_sessions:,} sessions of {file.name} in {time.perf_counter() - start:.1f} s")
        for note in notes:
            on_step(note if len(files) == 1 else f"{file.name}: {note}")
    check_together(files, tables, reading.get("sessions_per_file", False))
    return _counts(pairs, total, needed, limit is not None)


def _tidy_files(log: Paths, log_format: str, columns: dict[str, str]) -> list[Path]:
    files = log_files(log)
    if (kind := format_of(files, log_format, columns)) != "tidy":
        raise ValueError(f"{files[0]} is read as {kind}; counts are of tidy tables, which write_tidy makes of other logs")
    return files


def _counts(pairs: Pairs, total: Cells, needed: set[str], has_fold: bool) -> Counts:
    """The counts in the order of the labels."""
    number = (total.cells >> 25).astype(np.int32)
    labels = pairs.labels.with_columns(
        first=np.searchsorted(number, np.arange(pairs.n, dtype=np.int32)), length=np.bincount(number, minlength=pairs.n)
    )
    del number
    labels = labels.filter(pl.col("length") > 0).sort("query", "item")  # a file that was read twice may have left some without
    first, length = labels["first"].to_numpy(), labels["length"].to_numpy()
    first_cell = np.append(0, length.cumsum())
    order = np.repeat(first - first_cell[:-1], length)
    order += np.arange(len(order))
    context = (total.cells >> 1 & (1 << 24) - 1).astype(np.int32)[order]
    fold = (total.cells & 1).astype(np.int8)[order] if has_fold else None
    total.cells = np.empty(0, np.int64)
    for row in total.counts:  # one after the other, in place: all of it may take half of the memory
        row[:] = row[order]
    del order
    n_positions = int((1 + np.sqrt(1 + 8.0 * int(context.max()))) // 2)
    positions = np.repeat(np.arange(1, n_positions + 1, dtype=np.int32), np.arange(1, n_positions + 1))
    position = positions[context]
    last = context - position * (position - 1) // 2 if "last_click" in needed else None
    queries, items = (labels[name].unique().sort() for name in ("query", "item"))
    query, item = (
        labels[name].cast(pl.Enum(each)).to_physical().to_numpy() for name, each in (("query", queries), ("item", items))
    )
    codes = query.astype(np.int64) * len(items) + item
    counts: Any = dict(zip(NUMBERS, total.counts, strict=False))
    shape = first_cell, n_positions, position
    return Counts(tuple(queries), tuple(items), codes, *shape, last_click=last, fold=fold, **counts)


def statement(
    log: Paths,
    models: Sequence[str],
    out: str,
    *,
    hold_out: float = 0.0,
    log_format: str = "auto",
    columns: Mapping[str, str] | None = None,
    sessions_per_file: bool = False,
) -> str:
    """What `count_log` does, as a statement in SQL (DuckDB's dialect), for tables that lie in a warehouse. It checks nothing.

    Args:
        log, models, hold_out, log_format, columns, sessions_per_file: as for `count_log`.
        out: the file that the statement writes.
    """
    needed, limit = columns_for(models), hold_out_limit(check_share("hold_out", hold_out)) if hold_out else None
    files = _tidy_files(log, log_format, check_columns(columns))
    table = table_of(files[0], columns, None, [], sys.maxsize)
    names = {role: '"{}"'.format(name.replace('"', '""')) for role, name in table.names.items()}
    first = next(iter(table())).rows
    positions = first.filter(pl.col("session") == first["session"][0])["position"].cast(pl.Int64).to_list()
    session, query = f"CAST({names['session']} AS VARCHAR)", f"'{ONE_QUERY}'"
    if "split" in names:
        session = f"{names['split']} || ' ' || {session}"
    if "query" in names:
        query = f"CAST({names['query']} AS VARCHAR)" + (f" || '-' || {names['region']}" if "region" in names else "")
    position = f"CAST({names['position']} AS INTEGER)" + " + 1" * (min(positions) == 0)
    clicked, whole = f"CAST(CAST({names['clicked']} AS BOOLEAN) AS INTEGER) AS clicked", "session"
    kind, source = _source(table, names, files)
    if sessions_per_file:
        source, whole, clicked = f"{source}, filename = true", "filename, session", f"{clicked}, filename"
    keys = ["query", "item", "position"]
    values = ["count(*) AS displays", "CAST(sum(clicked) AS BIGINT) AS clicks"]
    if "last_click" in needed:
        keys.append("coalesce(last_above, 0) AS last_click")
    if limit is not None:
        keys.append(f"CAST(CASE WHEN md5(session) < '{limit:08x}' THEN 1 ELSE 0 END AS TINYINT) AS fold")
    if "examined" in needed:
        values.append(
            "CAST(sum(CASE WHEN last_of_all IS NULL OR position <= last_of_all THEN 1 ELSE 0 END) AS BIGINT) AS examined"
        )
        values.append("CAST(sum(CASE WHEN position = last_of_all THEN 1 ELSE 0 END) AS BIGINT) AS last_clicks")
    numbers = ", ".join(map(str, range(1, len(keys) + 1)))
    return f"""COPY (
  WITH displays AS (
    SELECT {session} AS session, {query} AS query, CAST({names["item"]} AS VARCHAR) AS item,
      {position} AS position, {clicked}
    FROM read_{kind}({source})
  ), sessions AS (
    SELECT *, max(CASE WHEN clicked = 1 THEN position END) OVER (PARTITION BY {whole}) AS last_of_all,
      max(CASE WHEN clicked = 1 THEN position END) OVER (
        PARTITION BY {whole} ORDER BY position ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS last_above
    FROM displays
  )
  SELECT {", ".join([*keys, *values])}
  FROM sessions GROUP BY {numbers} ORDER BY {numbers}
) TO '{out.replace("'", "''")}' (FORMAT parquet);
"""


def _source(table: TextTable | FrameTable, names: Mapping[str, str], files: Sequence[Path]) -> tuple[str, str]:
    """The format of a table's files, and with which arguments they are read, in SQL."""
    paths = "['{}']".format("', '".join(str(file).replace("'", "''") for file in files))
    if not isinstance(table, TextTable):
        return "parquet", paths
    if table.mark == "{}":
        types = ", ".join(f"{name}: 'VARCHAR'" for name in names.values())
        return "json", f"{paths}, format = 'newline_delimited', columns = {{{types}}}"
    return "csv", f"{paths}, header = true, delim = '{table.mark}', quote = '\"', all_varchar = true"
