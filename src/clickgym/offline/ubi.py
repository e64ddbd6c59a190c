"""Logs of User Behavior Insights (UBI 1.3): the queries of a search engine with their hits, and what users did (events).

Records are parsed in blocks by Polars; a block with a faulty record, or with one of many brackets, is parsed line by line.
Queries are known by 64 bits of their ids. Of a client nothing is read, and no message quotes a record.
"""

from __future__ import annotations

import codecs
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..core.checks import check_choice, check_count, check_flag, check_kind, check_path, check_text, check_within
from ..core.files import make_folder, write_whole
from .counting import ahead
from .log import ClickLog
from .rows import TextTable, as_text, check_columns_there
from .tables import (
    LONGEST,
    MAX_MEMORY,
    PIECE,
    ROWS,
    Fault,
    Skipped,
    check_kept,
    check_size,
    read_blocks,
    read_lines,
    split_lines,
    unpacked,
)
from .tidy import LABEL
from .times import as_seconds

DEEPEST = 32
"""How deep a record may be nested; that of records with more brackets is measured."""
MOST_DROPPED = 0.05
"""The share of the clicks above which the log has a warning."""
TEXT = 1 << 21
"""Bytes of text that are parsed at once: a block takes ten times its size."""
FILES = "ubi_queries.ndjson", "ubi_events.ndjson"
"""What the files of a folder are called when they are written."""
LATEST = 253_402_300_799
"""The last second of the year 9999."""
NORMALIZE = ("none", "lower")

_INDEX: Any = pl.Struct({"_index": pl.String})
_ATTRIBUTES: dict[str, Any] = {
    "object": pl.Struct({"object_id": pl.String}), "position": pl.Struct({"ordinal": pl.String}), "rank": pl.String
}  # fmt: skip
_FIELDS: dict[str, Any] = {
    "query_id": pl.String, "user_query": pl.String, "timestamp": pl.String, "query_response_hit_ids": pl.List(pl.String),
    "action_name": pl.String, "event_attributes": pl.Struct(_ATTRIBUTES), "index": _INDEX, "create": _INDEX,
}  # fmt: skip
RECORD = pl.Struct(_FIELDS)
"""What is read of a record: of a query, of an event, or of a line that says where the next record of a bulk file goes."""
FLAT = {"query_id": "query_id", "user_query": "user_query", "timestamp": "timestamp", "action_name": "action_name",
        "object": "object_id", "ordinal": "rank"}  # fmt: skip
"""The columns of a flat table, by what they become."""
PAGES, EMPTY, TWICE, TIED, NOTHING = range(1, 6)
LEFT_OUT = {
    PAGES: "several records of one query_id with different lists or texts",
    EMPTY: "empty hit ids",
    TWICE: "an item twice",
    TIED: "two items with one ordinal",
    NOTHING: "neither hits nor impressions from the top",
}
"""Why a session is left out; the first reason counts."""
FATES = (
    "without query_id", "without object", "of an unknown query_id", "of a session that is left out",
    "on an object that is not in the list",
)  # fmt: skip
"""Why an event is dropped; the first reason counts."""
NO_QUERY = pl.DataFrame(schema={
    "key": pl.UInt64, "known": pl.Boolean, "text": pl.UInt64, "hits": pl.List(pl.UInt64), "same": pl.UInt64, "time": pl.Float64,
})  # fmt: skip
"""What is kept of queries."""
NO_ORDINAL = -(2**31)
"""Stands for an ordinal that is missing."""


def read_ubi(
    queries: str | PathLike[str],
    events: str | PathLike[str] | None = None,
    *,
    click_action: str = "click",
    first_ordinal: int | None = None,
    n_positions: int | None = None,
    normalize: str = "none",
    strict: bool = False,
    bad_rows: str = "strict",
    max_memory: int | str = MAX_MEMORY,
) -> ClickLog:
    """Read a log of User Behavior Insights.

    Each ``query_id`` is one session of the log, labelled with its ``user_query``. The displayed list are the hits, down to the
    lowest one with an impression; all hits, if there is no impression. Without hits it is the impressions by their ordinals,
    down to the first gap. A click belongs to the item of its list that it names, never to an ordinal. Of a client nothing is
    read.

    The log's ``skipped`` counts each kind of dirt, and ``notes`` lists the counts; docs/logs.md has the table of what is done.
    ⚠ Records of one ``query_id`` are identical if hits and text are; the first says the time. ⚠ Without hits, a list whose
    first ordinal has no impression is left out, and so is one with two items at one ordinal. ⚠ A session without a time has
    that of the one above.

    Args:
        queries: records of queries: JSON lines, a JSON array, lines of a bulk request, or a flat table in CSV as OpenSearch's
            generator writes it; gzipped if the name ends with ``.gz``.
        events: records of events, in any of these forms. None: ``queries`` has both, told apart by the index that a bulk
            request names, or by ``action_name``.
        click_action: the action that counts as a click, in any case of letters; others but ``impression`` are ignored.
        first_ordinal: 0 or 1, the ordinal of the top. None: 0, if any event has it, else 1.
        n_positions: the length to which lists are cut; None for no limit.
        normalize: ``"lower"`` makes texts of queries lower case; ``"none"`` leaves them.
        strict: refuse a log of which more than 5 % of the clicks belong to no list; else the first note warns.
        bad_rows: of records that cannot be parsed, as for `read_log`.
        max_memory: bytes, or words as ``"4GB"``, that may be kept of the log.

    Raises:
        ValueError: naming the file, the line (in an array the record) and the reason; on a log without sessions.

    Format: User Behavior Insights 1.3.0, schemas of queries and events, 2025.

    Example:
        >>> import tempfile
        >>> log = ClickLog([[1, 0], [0, -1]], [[1, 0], [0, 0]], [0, 0], ("a", "b"), ("shoes",))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_ubi(log, folder)
        ...     back = read_ubi(f"{folder}/ubi_queries.ndjson", f"{folder}/ubi_events.ndjson")
        >>> back.to_frame().select("item", "clicked").rows()
        [('b', 1), ('a', 0), ('a', 0)]
    """
    paths = [check_path("queries", queries), *([] if events is None else [check_path("events", events)])]
    action = check_text("click_action", click_action).lower()
    if action == "impression":
        raise ValueError("click_action is 'impression'; expected the action that counts as a click")
    if first_ordinal is not None:
        check_within("first_ordinal", first_ordinal, 0, 1)
    if n_positions is not None:
        check_count("n_positions", n_positions)
    lower = check_choice("normalize", normalize, NORMALIZE) == "lower"
    check_flag("strict", strict)
    reader = _Reader(action, lower, check_size("max_memory", max_memory), bad_rows)
    kinds = (None,) if events is None else (False, True)
    return reader.log([*map(reader.read, paths, kinds)], first_ordinal, n_positions, strict)


def ubi_files(path: Path) -> tuple[Path, Path | None] | None:
    """The files of queries and events that a path stands for: those in a folder, or two with a plus between; None if it is
    no such path.

    Raises:
        ValueError: the folder does not have one of each.
    """
    if path.is_dir():
        return _files_in(path)
    text = str(path)
    pairs = ((Path(text[: at.start()]), Path(text[at.end() :])) for at in re.finditer(r"\+", text) if not path.exists())
    return next((pair for pair in pairs if pair[0].is_file() and pair[1].is_file()), None)


def _files_in(folder: Path) -> tuple[Path, Path | None]:
    queries, events = ([file for file in sorted(folder.iterdir()) if kind in file.name.lower()] for kind in ("quer", "event"))
    if not len(queries) == len(events) == 1:
        raise ValueError(f"{folder} is a folder; expected one file with 'queries' in its name and one with 'events'")
    return queries[0], None if queries == events else events[0]


def read_ubi_path(
    path: str | PathLike[str], *, bad_rows: str = "strict", max_memory: int | str = MAX_MEMORY, click_action: str = "click"
) -> ClickLog:
    """`read_ubi` of a folder, of two names with a plus between, or of one file that has both kinds of records."""
    files = ubi_files(check_path("path", path)) or (path, None)
    return read_ubi(*files, bad_rows=bad_rows, max_memory=max_memory, click_action=click_action)


# --------------------------------------------------------------------------------------------------------------- records


def _frames(path: Path, skipped: Skipped) -> Iterator[pl.DataFrame]:
    """The records of a file, with the columns of `FLAT`, ``hits``, ``bulk`` and ``index``."""
    with unpacked(path) as file:
        begin = file.read(4096).removeprefix(codecs.BOM_UTF8).lstrip()[:1]
    if begin in (b"[", b"{"):
        for frame in _array(path) if begin == b"[" else _lines(path, skipped):
            yield _flattened(frame)
    else:
        yield from _table(path, skipped)


def _lines(path: Path, skipped: Skipped) -> Iterator[pl.DataFrame]:
    """Records that are lines."""
    for (first, text), frame in ahead(_parsed, read_blocks(path, TEXT)):
        yield _by_line(path, first, text, skipped) if frame is None else frame


def _parsed(block: tuple[int, bytes]) -> pl.DataFrame | None:
    """The records of a block, unless one is faulty or has many brackets."""
    text, schema = block[1], RECORD.to_schema()
    if not _is_plain(text):
        return None
    # Polars is faster with nested values as texts, which it does not escape.
    nested = [] if b"\\" in text else ["event_attributes"]
    there = {name: kind for name, kind in schema.items() if b'"%s"' % name.encode() in text or name == "query_id"}
    try:
        frame = pl.read_ndjson(io.BytesIO(text), schema=there | dict.fromkeys(there.keys() & nested, pl.String))
        frame = frame.with_columns(pl.col(name).str.json_decode(schema[name]) for name in there.keys() & nested)
    except pl.exceptions.PolarsError:
        return None
    return frame.with_columns(pl.lit(None, kind).alias(name) for name, kind in schema.items() if name not in there)


def _is_plain(text: bytes) -> bool:
    """Whether no line has many brackets: Polars has no limit for the depth of a record."""
    letters = np.frombuffer(text, np.uint8)
    opened, ends = np.flatnonzero((letters == ord("{")) | (letters == ord("["))), np.flatnonzero(letters == ord("\n"))
    return bool(np.diff(np.searchsorted(opened, ends), prepend=0).max(initial=0) <= DEEPEST)


def _by_line(path: Path, first: int, text: bytes, skipped: Skipped) -> pl.DataFrame:
    lines = ((number, line) for number, line in split_lines(path, first, text) if line.strip())
    return pl.DataFrame([*skipped.parsed(lines, _record)], schema=RECORD.to_schema())


def _record(line: bytes) -> Any:
    """The fields of a record."""
    depth = deepest = 0
    for mark in re.findall(rb"[\[{\]}]", re.sub(rb'"(?:[^"\\]|\\.)*"', b"", line)):
        depth += 1 if mark in b"[{" else -1
        deepest = max(deepest, depth)
    if deepest > DEEPEST:
        raise Fault(f"nested deeper than {DEEPEST}")
    try:
        record = _as(json.loads(line), RECORD)
        json.dumps(record, ensure_ascii=False).encode()  # half of a pair of surrogates is no text
    except ValueError:
        raise Fault("not JSON in UTF-8") from None
    if record is None:
        raise Fault("not a JSON object")
    return record


def _as(value: Any, kind: Any) -> Any:
    """A value of JSON as a column holds it; None where it is of another kind."""
    if isinstance(kind, pl.Struct):
        return {each.name: _as(value.get(each.name), each.dtype) for each in kind.fields} if isinstance(value, dict) else None
    if isinstance(kind, pl.List):
        return [_as(each, kind.inner) for each in value] if isinstance(value, list) else None
    return None if value is None else as_text(value)


def _array(path: Path) -> Iterator[pl.DataFrame]:
    """Records that are the entries of an array."""
    decode, gap, rows, number = json.JSONDecoder().raw_decode, re.compile(r"[\s,]*"), list[Any](), 1
    with unpacked(path) as file:
        reader = codecs.getreader("utf-8-sig")(file)
        text, at = reader.read(PIECE).lstrip()[1:], 0
        while (at := gap.match(text, at).end()) == len(text) or text[at] != "]":  # type: ignore[union-attr]
            try:
                entry, at = decode(text, at)
            except (ValueError, RecursionError):
                more = reader.read(PIECE)
                if not more or len(text) - at > LONGEST:
                    limits = f"longer than {LONGEST >> 20} MiB, or nested too deep"
                    raise ValueError(f"{path}, record {number}: not JSON, cut off, {limits}") from None
                text, at = text[at:] + more, 0
                continue
            rows.append(_as(entry, RECORD))
            if rows[-1] is None:
                raise ValueError(f"{path}, record {number}: not a JSON object")
            number += 1
            if len(rows) == ROWS // 100:
                yield pl.DataFrame(rows, schema=RECORD.to_schema())
                rows = []
    yield pl.DataFrame(rows, schema=RECORD.to_schema())


def _table(path: Path, skipped: Skipped) -> Iterator[pl.DataFrame]:
    """The rows of a flat table."""
    header = next(read_lines(path), (1, b""))[1].decode("utf-8-sig", "replace").split(",")
    check_columns_there(path, header, {"query_id": "query_id"})
    names = {role: name for role, name in FLAT.items() if name in header}
    for rows, faults in TextTable(path, ",", header, names)():
        for number, fault in faults.items():
            skipped.add(fault, number)
            skipped.n_lost += 1
        columns = [pl.col(name).replace("", None) if name in names else pl.lit(None, pl.String).alias(name) for name in FLAT]
        nothing = {"hits": pl.lit(None, pl.List(pl.String)), "bulk": pl.lit(False), "index": pl.lit(None, pl.String)}
        yield rows.filter(~pl.col("number").is_in(list(faults))).select(*columns, **nothing)


def _flattened(frame: pl.DataFrame) -> pl.DataFrame:
    attributes, told = pl.col("event_attributes").struct, [pl.col(name) for name in ("index", "create")]
    return frame.select(
        "query_id", "user_query", "timestamp", "action_name",
        object=attributes.field("object").struct.field("object_id"),
        ordinal=pl.coalesce(attributes.field("position").struct.field("ordinal"), attributes.field("rank")),
        hits="query_response_hit_ids",
        bulk=pl.any_horizontal(each.is_not_null() for each in told),
        index=pl.coalesce(each.struct.field("_index") for each in told),
    )  # fmt: skip


# -------------------------------------------------------------------------------------------------------------- sessions


class _Sessions:
    """Queries, their lists, and what is known of the events on them.

    Args:
        records: of the queries, as `_Reader` keeps them.
        most: positions at most of a list.

    Attributes:
        queries: ``(S,)`` the first record of each query: its text and time.
        reason: ``(S,)`` why a session is left out; 0: it is not. Without hits it is `NOTHING` before `finish`.
        items: ``(M,)`` those of all lists, from the top; those of a session are neighbours.
        sessions: whose lists they are, in this order.
        lowest: ``(S,)`` the lowest position with an impression; -1: there is none.
        n_events, has_zero: how many events there are, and whether one of them has the ordinal 0.
        dirt: counts, in the order of the notes.
    """

    def __init__(self, records: list[pl.DataFrame], most: int) -> None:
        known = pl.concat(records)
        n_records, known = known.height, known.filter("known")
        first, twice = known["key"].is_first_distinct(), known.filter(pl.col("key").is_duplicated())
        pages = twice.group_by("key").agg(pl.col("same").n_unique()).filter(pl.col("same") > 1)["key"]
        mixed = known["key"].is_in(pages.implode())
        self.dirt = {
            "sessions left out: a query without query_id": n_records - known.height,
            "identical records of one query, read once": (~first & ~mixed).sum(),
        }
        queries, self._mixed, self._most = known.filter(first), mixed.filter(first).to_numpy(), most
        hits, self.queries = queries["hits"], queries.select("text", "time")
        lengths = hits.list.len().fill_null(0)
        self._listed, self._lengths = hits.is_not_null().to_numpy(), lengths.to_numpy().astype(np.int32)
        self.reason = np.where(self._listed, 0, NOTHING).astype(np.int8)
        self.reason[(hits.list.n_unique() < lengths).fill_null(False).to_numpy()] = TWICE
        self.reason[self._listed & (self._lengths == 0)] = EMPTY
        self.reason[self._mixed] = PAGES
        self._take(np.flatnonzero(self._lengths), hits.explode().drop_nulls())
        keys = queries["key"].to_numpy()
        self._order = np.argsort(keys)
        self._keys = keys[self._order]
        self.lowest = np.full(queries.height, -1, np.int32)
        self.n_events, self.has_zero = 0, False
        self._loose, self._clicks = list[pl.DataFrame](), list[pl.DataFrame]()
        self._fates, self._odd = np.zeros((2, len(FATES)), np.int64), np.zeros(2, np.int64)

    def _take(self, sessions: NDArray[np.int64], items: pl.Series) -> None:
        self.sessions, self.items = sessions, items.to_numpy()
        self._begins = np.zeros(len(self.reason), np.int64)
        self._begins[sessions] = np.cumsum(self._lengths[sessions]) - self._lengths[sessions]

    def shown(self) -> NDArray[np.bool_]:
        """Which of the items are shown."""
        lengths = self._lengths[self.sessions]
        below = np.repeat((self._begins + self.ends)[self.sessions].astype(np.int32), lengths)
        return np.arange(len(self.items), dtype=np.int32) < below

    def add(self, events: pl.DataFrame) -> None:
        """Count events; those of sessions without hits wait for all of them."""
        self.n_events += events.height
        if not len(self._keys) or not events.height:
            return
        self.has_zero |= bool((events["ordinal"] == 0).any())
        key = events["key"].to_numpy()
        place = np.searchsorted(self._keys, key).clip(max=len(self._keys) - 1)
        found = (self._keys[place] == key) & events["known"].to_numpy()
        session = np.where(found, self._order[place], -1)
        events, waits = events.with_columns(session=pl.Series(session)), found & ~self._listed[session]
        if waits.any():
            self._loose.append(events.filter(waits))
            events = events.filter(~waits)
        self._place(events)

    def _place(self, events: pl.DataFrame) -> None:
        """Find the positions of events; count impressions, and keep clicks."""
        named, session, item, click = (events[name].to_numpy() for name in ("named", "session", "item", "click"))
        left, k = np.flatnonzero(named & (session >= 0) & (self.reason[session] == 0)), 0
        position = np.full(len(item), -1, np.int32)
        while len(left := left[self._lengths[session[left]] > k]):
            hits = self.items[self._begins[session[left]] + k] == item[left]
            position[left[hits]] = k
            left, k = left[~hits], k + 1
        events = events.with_columns(position=pl.Series(position))
        self._clicks.append(events.filter("click"))
        seen = ~click & (position >= 0)
        np.maximum.at(self.lowest, session[seen], position[seen])
        self._count_fates(events.filter(~pl.col("click")), self._most)

    def _count_fates(self, events: pl.DataFrame, end: Any) -> pl.DataFrame:
        """The events on an item of their list above an end; the others are counted by what is wrong with them."""
        names = ("known", "named", "session", "position", "click")
        known, named, session, position, clicked = (events[name].to_numpy() for name in names)
        out = (position < 0) | (position >= end)
        fate = np.select([~known, ~named, session < 0, self.reason[session] > 0, out], range(len(FATES)), -1)
        for click, counts in enumerate(self._fates):
            counts += np.bincount(fate[out & (clicked == click)], minlength=len(FATES))
        good, ordinal = events.filter(~out), pl.col("ordinal")
        told = good.filter(ordinal != NO_ORDINAL)
        self._odd += [told.select((ordinal - base != pl.col("position")).sum()).item() for base in (0, 1)]
        return good

    def finish(self, base: int | None) -> tuple[pl.DataFrame, float]:
        """Make lists of the impressions in sessions without hits; returns the clicks that count, and the share of the others.

        Args:
            base: the ordinal of the top; None: 0 if there is one, else 1.
        """
        base = 1 - int(self.has_zero) if base is None else base
        if self._loose:
            self._finish_lists(pl.concat(self._loose), base)
        for which, words in LEFT_OUT.items():
            self.dirt[f"sessions left out: {words}"] = (self.reason == which).sum()
        unseen = (self.reason == 0) & (self.lowest < 0)
        self.dirt["sessions without impressions, all hits assumed to be displayed"] = unseen.sum()
        end = np.where(self.lowest < 0, self._lengths, self.lowest + 1).clip(max=self._most)
        self.ends = np.where(self.reason == 0, end, 0)
        clicks = pl.concat(self._clicks)
        good = self._count_fates(clicks, self.ends[clicks["session"].to_numpy()])
        for click, counts in enumerate(self._fates):
            for words, count in sorted(zip(FATES, counts.tolist(), strict=True)):
                self.dirt[f"{'clicks' if click else 'impressions'} dropped: {words}"] = count
        self.dirt["ordinals that disagree with the list, ignored"] = self._odd[base]
        shown_at = self.queries["time"].to_numpy()[good["session"].to_numpy()]  # NumPy: for Polars all is before what is NaN
        self.dirt["clicks before their query, kept"] = (good["at"].to_numpy() < shown_at).sum()
        once = good.select("session", "position").unique()
        self.dirt["clicks repeated, counted once"] = good.height - once.height
        return once, (clicks.height - good.height) / max(clicks.height, 1)

    def _finish_lists(self, events: pl.DataFrame, base: int) -> None:
        shown = events.filter(~pl.col("click") & pl.col("named"))
        loose = shown.filter(pl.col("ordinal") != NO_ORDINAL)
        self.dirt["impressions without ordinal, in sessions without hits"] = shown.height - loose.height
        loose = loose.select("session", "item", position=pl.col("ordinal") - base).unique().sort("session", "position")
        tied, twice = (
            loose.filter(pl.struct("session", name).is_duplicated())["session"].to_numpy() for name in ("position", "item")
        )
        loose = loose.filter(pl.col("position") == pl.int_range(pl.len()).over("session"))
        there, lengths = np.unique(loose["session"].to_numpy(), return_counts=True)
        for why, sessions in ((0, there), (TIED, tied), (TWICE, twice), (PAGES, np.flatnonzero(self._mixed & ~self._listed))):
            self.reason[sessions] = why
        self._lengths[there] = lengths
        self._take(np.concatenate([self.sessions, there]), pl.concat([pl.Series(self.items), loose["item"]]))
        self._place(events)


class _Reader:
    """Sessions that are being put together from records; queries, items and texts are known by 64 bits.

    Args:
        action: what counts as a click.
        lower: whether texts of queries become lower case.
        max_memory: bytes.
        bad_rows: as for `read_ubi`.
    """

    def __init__(self, action: str, lower: bool, max_memory: int, bad_rows: str) -> None:
        self.action, self.lower, self.max_memory, self.bad_rows = action, lower, max_memory, bad_rows
        self.dirt, self.labels, self.n_hits, self.is_bulk = Counter[str](), dict[int, str](), 0, False
        self.skipped: list[Skipped] = []
        self.queries: list[pl.DataFrame] = []

    def read(self, path: Path, holds_events: bool | None) -> Iterator[pl.DataFrame]:
        """Keep the queries of a file of events, of queries, or (None) of both; returns its events, block by block."""
        skipped = Skipped(path, self.bad_rows)
        self.skipped.append(skipped)
        told = None  # by the line above, what the next record is
        for frame in _frames(path, skipped):
            queries, events = (frame[:0], frame) if holds_events else (frame, frame[:0])
            if self.is_bulk or holds_events is None or frame["bulk"].any():
                self.is_bulk, index = True, pl.col("index").str
                kind = pl.when(index.contains("(?i)event")).then(True).when(index.contains("(?i)quer")).then(False)
                kinds = frame.select(kind.forward_fill().fill_null(pl.lit(told, pl.Boolean))).to_series()
                told = kinds.last() if len(kinds) else told
                is_event = pl.coalesce(kinds, pl.lit(holds_events, pl.Boolean), pl.col("action_name").is_not_null())
                records = frame.with_columns(is_event=is_event).filter(~pl.col("bulk"))
                queries, events = records.filter(~pl.col("is_event")), records.filter("is_event")
            if queries.height:
                self._add_queries(queries)
                check_kept(path, 8 * self.n_hits + LABEL * len(self.labels), self.max_memory, "the hits that were read")
            yield self._events(events)

    def _named(self, texts: pl.Series) -> pl.Series:
        """The numbers of texts, whose labels are kept."""
        labels = texts.unique().drop_nulls()
        numbers = labels.hash().to_list()
        new = [place for place, number in enumerate(numbers) if number not in self.labels]
        self.labels |= zip([numbers[place] for place in new], labels.gather(new).to_list(), strict=True)
        return texts.hash()

    def _add_queries(self, records: pl.DataFrame) -> None:
        text, hits = records["user_query"].fill_null(""), records["hits"].list.eval(pl.element().fill_null(""))
        text = text.str.to_lowercase() if self.lower else text
        self.n_hits += len(self._named(hits.explode()))
        self.queries.append(pl.DataFrame({
            "key": records["query_id"].hash(), "known": records["query_id"].is_not_null(), "text": self._named(text),
            "hits": hits.list.eval(pl.element().hash()), "same": (text + hits.list.join("\x1f").fill_null("\x1e")).hash(),
            "time": self._times(records["timestamp"]),
        }))  # fmt: skip

    def _events(self, records: pl.DataFrame) -> pl.DataFrame:
        records = records.with_columns(action=pl.col("action_name").fill_null("").str.to_lowercase())
        used = pl.col("action").is_in([self.action, "impression"])
        for action, count in records.filter(~used)["action"].value_counts(sort=True).iter_rows():
            self._count(f"events ignored: {action!r}", count)
        records = records.filter(used).with_columns(click=pl.col("action") == self.action)
        times = np.full(records.height, np.nan)
        times[records["click"].to_numpy()] = self._times(records.filter("click")["timestamp"]).to_numpy()
        return records.select(
            "click", key=pl.col("query_id").hash(), known=pl.col("query_id").is_not_null(),
            item=self._named(records["object"]), named=pl.col("object").is_not_null(), at=pl.Series(times),
            ordinal=pl.col("ordinal").cast(pl.Float64, strict=False).cast(pl.Int32, strict=False).fill_null(NO_ORDINAL),
        )  # fmt: skip

    def _times(self, texts: pl.Series) -> pl.Series:
        """Seconds since 1970, NaN where there is no time."""
        seconds = [None if text is None else as_seconds(text) for text in texts.to_list()]
        self._count("times missing or malformed, kept in the order of the file", seconds.count(None))
        return pl.Series(seconds, dtype=pl.Float64).fill_null(np.nan)

    def _count(self, reason: str, count: Any) -> None:
        if count:
            self.dirt[reason] += int(count)

    # ----------------------------------------------------------------------------------------------------------- the log

    def log(
        self, sources: list[Iterator[pl.DataFrame]], first_ordinal: int | None, n_positions: int | None, strict: bool
    ) -> ClickLog:
        """What is read: the events of the last source as they come, unless queries may be among them."""
        sessions, names = self._sessions(sources, n_positions or ROWS)
        clicks, share = sessions.finish(first_ordinal)
        for reason, count in sessions.dirt.items():
            self._count(reason, count)
        kept_sessions = sessions.reason == 0
        notes = [note for each in self.skipped for note in each.notes(int(kept_sessions.sum()))]
        notes += [f"{words}: {count:,}" for words, count in self.dirt.items()]
        if not kept_sessions.any():
            raise ValueError(f"{names}: no session is left; {'; '.join(notes)}")
        if share > MOST_DROPPED:
            warning = f"{share:.1%} of the clicks belong to no list of the log, more than {MOST_DROPPED:.0%}"
            if strict:
                raise ValueError(f"{names}: {warning}; {'; '.join(notes)}")
            notes.insert(0, f"warning: {warning}; the reasons are below")
        shape = int(kept_sessions.sum()), int(sessions.ends.max())
        check_kept(names, 5 * shape[0] * shape[1], self.max_memory, f"{shape[0]:,} sessions of up to {shape[1]:,} positions")
        items, clicked = np.full(shape, -1, np.int32), np.zeros(shape, np.int8)
        item_labels, numbers = self._labelled(pl.Series(sessions.items[sessions.shown()]))
        order = sessions.sessions[kept_sessions[sessions.sessions]]
        items[np.arange(shape[1]) < sessions.ends[order, None]] = numbers
        items = items[np.argsort(order)]
        row = np.cumsum(kept_sessions) - 1
        clicked[row[clicks["session"].to_numpy()], clicks["position"].to_numpy()] = 1
        query_labels, texts = self._labelled(sessions.queries["text"].filter(pl.Series(kept_sessions)))
        times = sessions.queries["time"].fill_nan(None).forward_fill().backward_fill().to_numpy()[kept_sessions]
        return ClickLog(
            items, clicked, texts, item_labels, query_labels, self.dirt[f"clicks dropped: {FATES[-1]}"],
            skipped=dict(self.dirt), notes=tuple(notes), times=None if np.isnan(times).any() else times,
        )  # fmt: skip

    def _sessions(self, sources: list[Iterator[pl.DataFrame]], most: int) -> tuple[_Sessions, str]:
        """The sessions of all sources with their events, and the names of the sources."""
        *others, last = sources
        kept = [*chain(*others), *islice(last, 1)]
        kept += last if self.is_bulk else []
        names = " and ".join(str(skipped.source) for skipped in self.skipped)
        self.queries, records = [], [NO_QUERY, *self.queries]
        sessions = _Sessions(records, most)
        records.clear()
        for events in chain(kept, last):
            sessions.add(events)
        if self.queries:
            raise ValueError(f"{names}: a query is among the events of another file; expected one file of both")
        if not len(sessions.reason) or not sessions.n_events:
            expected = f"a query and an event with the action {self.action!r} or 'impression'"
            raise ValueError(
                f"{names}: {len(sessions.reason)} queries and {sessions.n_events} such events; expected {expected}"
            )
        return sessions, names

    def _labelled(self, numbers: pl.Series) -> tuple[tuple[str, ...], NDArray[np.int32]]:
        """The labels of what there is, in its order, and the places among them."""
        distinct = numbers.unique(maintain_order=True)
        places = numbers.replace_strict(distinct, range(len(distinct)), return_dtype=pl.Int32)
        return tuple(self.labels[number] for number in distinct), places.to_numpy()


# ---------------------------------------------------------------------------------------------------------------- writing


def write_ubi(log: ClickLog, folder: str | PathLike[str]) -> None:
    """Write a log as UBI: a record for each session, an impression for each item shown, and a click for each click.

    `read_ubi` reads back the same lists, clicks and queries in the same order. UBI has no place for propensities and features.

    Args:
        log: the sessions; without times, session n is at n seconds after 1970.
        folder: gets ``ubi_queries.ndjson`` and ``ubi_events.ndjson``; made if it is missing.

    Raises:
        ValueError: on times that are no seconds since 1970, before the year 10000.
    """
    folder = check_path("folder", folder)
    check_kind("log", log, ClickLog, "a ClickLog")
    times = np.arange(len(log)) if log.times is None else log.times
    if len(log) and not (times.min() >= 0 and times.max() < LATEST):
        raise ValueError("the log's times are no seconds since 1970, which UBI needs; leave them out")
    make_folder(folder)
    write_whole(folder / FILES[0], _records(log, times, _queries))
    write_whole(folder / FILES[1], _records(log, times, _events))


def _records(log: ClickLog, times: NDArray[Any], make: Any) -> Iterator[bytes]:
    """The lines of a file, some sessions at a time."""
    step = max(ROWS // (2 * log.n_positions), 1)
    stamps = pl.Series((times * 1e6).round().astype(np.int64)).cast(pl.Datetime("us")).dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ")
    for first in range(0, len(log), step):
        part = log[first : first + step]
        numbers = np.arange(first, first + len(part))
        yield make(part, pl.Series(numbers).cast(pl.String), stamps[first : first + step]).write_ndjson().encode()


def _queries(log: ClickLog, ids: pl.Series, stamps: pl.Series) -> pl.DataFrame:
    items = pl.Series(log.item_labels, dtype=pl.String)
    hits = pl.DataFrame({"row": np.repeat(np.arange(len(log)), log.lengths), "item": items.gather(log.items[log.items >= 0])})
    return pl.DataFrame({
        "query_id": ids,
        "user_query": pl.Series(log.query_labels, dtype=pl.String).gather(log.queries),
        "query_response_hit_ids": hits.group_by("row", maintain_order=True).agg("item")["item"],
        "timestamp": stamps,
    })  # fmt: skip


def _events(log: ClickLog, ids: pl.Series, stamps: pl.Series) -> pl.DataFrame:
    # All impressions of a session, then its clicks.
    row, click, place = np.nonzero(np.stack([log.items >= 0, log.clicks > 0], axis=1))
    items = pl.Series(log.item_labels, dtype=pl.String).gather(log.items[row, place])
    frame = pl.DataFrame({
        "query_id": ids.gather(row), "action_name": np.where(click, "click", "impression"), "timestamp": stamps.gather(row),
        "object_id": items, "ordinal": place + 1,
    })  # fmt: skip
    attributes = pl.struct(object=pl.struct("object_id"), position=pl.struct("ordinal"))
    return frame.select("action_name", "query_id", "timestamp", event_attributes=attributes)
