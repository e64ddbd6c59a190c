"""Logs of User Behavior Insights (UBI 1.3): the queries of a search engine with their hits, and what users did (events).

Records are parsed in blocks by Polars; a block with a faulty record, or with one of many brackets, is parsed line by line.
Queries are known by 64 bits of their ids. Of a client nothing is read, and no message quotes a record.
"""

from __future__ import annotations

import codecs
import gzip
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
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
from .tables import LONGEST, MAX_MEMORY, PIECE, ROWS, Fault, Skipped, check_kept, check_size, read_blocks, split_lines
from .tidy import LABEL, coded
from .times import as_seconds

DEEPEST = 32
"""How deep a record may be nested; that of records with more brackets is measured."""
MOST_DROPPED = 0.05
"""The share of the clicks above which the log has a warning."""
FILES = "ubi_queries.ndjson", "ubi_events.ndjson"
"""What the files of a folder are called when they are written."""
LATEST = 253_402_300_799
"""The last second of the year 9999."""
NORMALIZE = ("none", "lower")

_INDEX = pl.Struct({"_index": pl.String})
_ATTRIBUTES = {
    "object": pl.Struct({"object_id": pl.String}), "position": pl.Struct({"ordinal": pl.String}), "rank": pl.String
}  # fmt: skip
RECORD = pl.Struct({
    "query_id": pl.String, "user_query": pl.String, "timestamp": pl.String, "query_response_hit_ids": pl.List(pl.String),
    "action_name": pl.String, "event_attributes": pl.Struct(_ATTRIBUTES), "index": _INDEX, "create": _INDEX,
})  # fmt: skip
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

Longs = NDArray[np.int64]


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

    Source: User Behavior Insights 1.3.0, schemas of queries and events, 2025.

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
    for path, holds_events in zip(paths, (False, True) if events is not None else (None,), strict=True):
        reader.read(path, holds_events)
    return reader.log(first_ordinal, n_positions, strict)


def ubi_files(path: Path) -> tuple[Path, Path | None] | None:
    """The files of queries and events that a path stands for: those in a folder, or two with a plus between; None if it is
    no such path.

    Raises:
        ValueError: the folder does not have one of each.
    """
    if path.is_dir():
        files = {kind: [file for file in sorted(path.iterdir()) if kind in file.name.lower()] for kind in ("quer", "event")}
        if [*map(len, files.values())] != [1, 1]:
            raise ValueError(f"{path} is a folder; expected one file with 'queries' in its name and one with 'events'")
        queries, events = files["quer"][0], files["event"][0]
        return queries, None if queries == events else events
    text = str(path)
    pairs = ((Path(text[: at.start()]), Path(text[at.end() :])) for at in re.finditer(r"\+", text) if not path.exists())
    return next((pair for pair in pairs if pair[0].is_file() and pair[1].is_file()), None)


def read_ubi_path(
    path: str | PathLike[str], *, bad_rows: str = "strict", max_memory: int | str = MAX_MEMORY, click_action: str = "click"
) -> ClickLog:
    """`read_ubi` of a folder, of two names with a plus between, or of one file that has both kinds of records."""
    files = ubi_files(check_path("path", path)) or (path, None)
    return read_ubi(*files, bad_rows=bad_rows, max_memory=max_memory, click_action=click_action)


# --------------------------------------------------------------------------------------------------------------- records


def _open(path: Path) -> Any:
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")


def _frames(path: Path, skipped: Skipped) -> Iterator[pl.DataFrame]:
    """The records of a file, with the columns of `FLAT`, ``hits``, ``bulk`` and ``index``."""
    with _open(path) as file:
        begin = file.read(4096).removeprefix(codecs.BOM_UTF8).lstrip()[:1]
    if begin in (b"[", b"{"):
        for frame in _array(path) if begin == b"[" else _lines(path, skipped):
            yield _flattened(frame)
    else:
        yield from _table(path, skipped)


def _lines(path: Path, skipped: Skipped) -> Iterator[pl.DataFrame]:
    """Records that are lines."""
    for (first, text), frame in ahead(_parsed, read_blocks(path)):
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
    rows = []
    for number, line in split_lines(path, first, text):
        if line.strip():
            try:
                rows.append(_record(line))
            except Fault as fault:
                skipped.add(fault, number)
                skipped.n_lost += 1
    return pl.DataFrame(rows, schema=RECORD.to_schema())


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
    with _open(path) as file:
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
            if len(rows) == ROWS // 10:
                yield pl.DataFrame(rows, schema=RECORD.to_schema())
                rows = []
    yield pl.DataFrame(rows, schema=RECORD.to_schema())


def _table(path: Path, skipped: Skipped) -> Iterator[pl.DataFrame]:
    """The rows of a flat table."""
    with _open(path) as file:
        header = file.readline(LONGEST).decode("utf-8-sig", "replace").strip().split(",")
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


class _Reader:
    """Sessions that are being put together from records.

    Args:
        action: what counts as a click.
        lower: whether texts of queries become lower case.
        max_memory: bytes.
        bad_rows: as for `read_ubi`.
    """

    def __init__(self, action: str, lower: bool, max_memory: int, bad_rows: str) -> None:
        self.action, self.lower, self.max_memory, self.bad_rows = action, lower, max_memory, bad_rows
        self.dirt, self.skipped, self.paths = Counter[str](), list[Skipped](), list[Path]()
        self.items, self.texts = dict[str, int](), dict[str, int]()
        self.heads: list[pl.DataFrame] = []
        self.hits: list[NDArray[np.int32]] = []
        self.events: list[pl.DataFrame] = []

    def read(self, path: Path, holds_events: bool | None) -> None:
        """Read a file: of events, of queries, or (None) of both."""
        self.paths.append(path)
        self.skipped.append(Skipped(path, self.bad_rows))
        kind = None  # of the record below, as the line above says
        for frame in _frames(path, self.skipped[-1]):
            named = pl.when(pl.col("index").str.contains("(?i)event")).then(True)
            told = (
                named.when(pl.col("index").str.contains("(?i)quer"))
                .then(False)
                .forward_fill()
                .fill_null(pl.lit(kind, pl.Boolean))
            )
            frame = frame.with_columns(event=told)
            kind = frame["event"].last() if frame.height else kind
            is_event = pl.coalesce("event", pl.lit(holds_events, pl.Boolean), pl.col("action_name").is_not_null())
            records = frame.filter(~pl.col("bulk"))
            self._add_queries(records.filter(~is_event))
            self._add_events(records.filter(is_event))
            size = 12 * sum(map(len, self.hits)) + LABEL * (len(self.items) + len(self.texts))
            check_kept(path, size, self.max_memory, "the hits that were read")

    def _numbers(self, index: dict[str, int], texts: pl.Series) -> NDArray[np.int32]:
        """The numbers of texts, new ones in their order."""
        codes, labels = coded(texts)
        return np.array([index.setdefault(label, len(index)) for label in labels], np.int32)[codes.to_numpy()]

    def _add_queries(self, records: pl.DataFrame) -> None:
        self._count("sessions left out: a query without query_id", records["query_id"].null_count())
        text, hits = pl.col("user_query").fill_null(""), pl.col("hits").list.eval(pl.element().fill_null(""))
        texts = text.str.to_lowercase() if self.lower else text
        records = records.filter(pl.col("query_id").is_not_null()).with_columns(user_query=texts, hits=hits)
        if not records.height:
            return
        joined = pl.concat_str("user_query", pl.col("hits").list.join("\x1f").fill_null("\x1e"), separator="\x1d")
        self.heads.append(records.select(
            key=pl.col("query_id").hash(), same=joined.hash(), length=pl.col("hits").list.len(),
            query=pl.Series(self._numbers(self.texts, records["user_query"])), time=self._times(records["timestamp"]),
        ))  # fmt: skip
        hits = records["hits"].filter(records["hits"].list.len() > 0)
        self.hits.append(self._numbers(self.items, hits.explode()))

    def _add_events(self, records: pl.DataFrame) -> None:
        records = records.with_columns(action=pl.col("action_name").fill_null("").str.to_lowercase())
        used = pl.col("action").is_in([self.action, "impression"])
        for action, count in records.filter(~used)["action"].value_counts(sort=True).iter_rows():
            self._count(f"events ignored: {action!r}", count)
        records = records.filter(used)
        clicks = pl.Series((records["action"] == self.action).to_numpy())
        times = np.full(records.height, np.nan)
        times[clicks.to_numpy()] = self._times(records["timestamp"].filter(clicks)).to_numpy()
        items = np.full(records.height, -1, np.int32)
        items[records["object"].is_not_null().to_numpy()] = self._numbers(self.items, records["object"].drop_nulls())
        self.events.append(records.select(
            key=pl.col("query_id").hash(), known=pl.col("query_id").is_not_null(), item=pl.Series(items), click=clicks,
            ordinal=pl.col("ordinal").cast(pl.Float64, strict=False).cast(pl.Int32, strict=False), at=pl.Series(times),
        ))  # fmt: skip

    def _times(self, texts: pl.Series) -> pl.Series:
        """Seconds since 1970, NaN where there is no time."""
        seconds = [None if text is None else as_seconds(text) for text in texts.to_list()]
        self._count("times missing or malformed, kept in the order of the file", seconds.count(None))
        return pl.Series(seconds, dtype=pl.Float64).fill_null(np.nan)

    def _count(self, reason: str, count: int | Any) -> None:
        if count:
            self.dirt[reason] += int(count)

    # ----------------------------------------------------------------------------------------------------------- the log

    def log(self, first_ordinal: int | None, n_positions: int | None, strict: bool) -> ClickLog:
        """What was read."""
        names = " and ".join(map(str, self.paths))
        if not self.heads:
            raise ValueError(f"{names}: no query in the file")
        events = pl.concat(self.events) if self.events else None
        self.events.clear()
        if events is None or not events.height:
            raise ValueError(f"{names}: no event with the action {self.action!r} or 'impression'")
        heads = self._sessions()
        events = events.join(heads.select("key", "session", "length"), on="key", how="left", maintain_order="left").drop("key")
        base = first_ordinal if first_ordinal is not None else 1 - int((events["ordinal"] == 0).any())
        lists, reason = self._lists(heads, events, base)
        codes = np.sort(_codes(lists, len(self.items)))
        reason[codes[1:][codes[1:] == codes[:-1]] // len(self.items)] = TWICE
        reason[(heads["length"] == 0).fill_null(False).to_numpy()] = EMPTY
        reason[heads["mixed"].to_numpy()] = PAGES
        for which, words in LEFT_OUT.items():
            self._count(f"sessions left out: {words}", (reason == which).sum())
        events = events.with_columns(position=self._positions(events, lists, base))
        kept = np.flatnonzero(reason == 0)
        depth = self._depth(heads, events, lists, reason, n_positions)
        if not len(kept):
            raise ValueError(f"{names}: no session is left; {'; '.join(self._notes())}")
        shape = len(kept), int(depth[kept].max())
        check_kept(names, 5 * shape[0] * shape[1], self.max_memory, f"{shape[0]:,} sessions of up to {shape[1]:,} positions")
        row = np.cumsum(reason == 0) - 1
        sessions, positions, numbers = (lists[name].to_numpy() for name in ("session", "position", "item"))
        inside = (reason[sessions] == 0) & (positions < depth[sessions])
        items, clicks = np.full(shape, -1, np.int32), np.zeros(shape, np.int8)
        items[row[sessions[inside]], positions[inside]] = numbers[inside]
        sessions, positions, share, off_list = self._clicks(heads, events, reason, depth, base)
        clicks[row[sessions], positions] = 1
        notes = [note for each in self.skipped for note in each.notes(len(kept))] + self._notes()
        if share > MOST_DROPPED:
            warning = f"{share:.1%} of the clicks belong to no list of the log, more than {MOST_DROPPED:.0%}"
            if strict:
                raise ValueError(f"{names}: {warning}; {'; '.join(notes)}")
            notes.insert(0, f"warning: {warning}; the reasons are below")
        labels, items[items >= 0] = _named(self.items, items[items >= 0])
        texts, queries = _named(self.texts, heads["query"].to_numpy()[kept])
        times = heads["time"].fill_nan(None).forward_fill().backward_fill().to_numpy()[kept]
        timed = None if np.isnan(times).any() else times
        return ClickLog(
            items, clicks, queries, labels, texts, off_list, skipped=dict(self.dirt), notes=tuple(notes), times=timed
        )

    def _notes(self) -> list[str]:
        return [f"{reason}: {count:,}" for reason, count in self.dirt.items()]

    def _sessions(self) -> pl.DataFrame:
        """The first record of each query, and whether others have another list."""
        length = pl.col("length").fill_null(0).cast(pl.Int64)
        heads = pl.concat(self.heads).with_columns(
            mixed=pl.col("same").n_unique().over("key") > 1, start=length.cum_sum() - length
        )
        first = pl.col("key").is_first_distinct()
        self._count("identical records of one query, read once", heads.filter(~first & ~pl.col("mixed")).height)
        return heads.filter(first).with_row_index("session").with_columns(pl.col("session").cast(pl.Int32))

    def _lists(self, heads: pl.DataFrame, events: pl.DataFrame, base: int) -> tuple[pl.DataFrame, NDArray[np.int8]]:
        """Session, item and position of hits, or of impressions without hits; and why sessions are left out so far."""
        lengths, hits = heads["length"].fill_null(0).to_numpy().astype(np.int64), np.concatenate(self.hits)
        place = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        rows = {
            "session": np.repeat(np.arange(len(lengths), dtype=np.int32), lengths),
            "item": hits[np.repeat(heads["start"].to_numpy(), lengths) + place],
            "position": place.astype(np.int32),
        }
        shown = events.filter(
            ~pl.col("click") & pl.col("session").is_not_null() & pl.col("length").is_null() & (pl.col("item") >= 0)
        )
        self._count("impressions without ordinal, in sessions without hits", shown["ordinal"].null_count())
        loose = (
            shown.select("session", "item", position=pl.col("ordinal") - base).drop_nulls().unique().sort("session", "position")
        )
        tied = loose.filter(pl.struct("session", "position").is_duplicated())["session"].to_numpy()
        twice = loose.filter(pl.struct("session", "item").is_duplicated())["session"].to_numpy()
        loose = loose.filter(pl.col("position") == pl.int_range(pl.len()).over("session"))
        lists = pl.concat([pl.DataFrame(rows), loose]).sort("session", maintain_order=True)
        reason = np.zeros(len(lengths), np.int8)
        reason[np.bincount(lists["session"].to_numpy(), minlength=len(lengths)) == 0] = NOTHING
        reason[tied], reason[twice] = TIED, TWICE
        return lists, reason

    def _positions(self, events: pl.DataFrame, lists: pl.DataFrame, base: int) -> pl.Series:
        """Where the item of each event stands in its list: nearly always at its ordinal."""
        session, item = events["session"].fill_null(-1).to_numpy(), events["item"].to_numpy()
        rank = events["ordinal"].fill_null(-1).to_numpy() - base
        start = np.searchsorted(lists["session"].to_numpy(), np.arange(-1, session.max(initial=0) + 2))
        there = (session >= 0) & (rank >= 0) & (start[session + 1] + rank < start[session + 2])
        slot = np.where(there, start[session + 1] + rank, 0)
        there &= lists["item"].to_numpy()[slot] == item
        position = np.where(there, rank, -1).astype(np.int32)
        rest = np.flatnonzero(~there & (session >= 0) & (item >= 0))
        if len(rest):
            wanted = pl.DataFrame({"code": _codes(events[rest], len(self.items))})
            places = lists.select("position", code=pl.Series(_codes(lists, len(self.items)))).unique("code")
            position[rest] = wanted.join(places, "code", "left", maintain_order="left")["position"].fill_null(-1).to_numpy()
        return pl.select(pl.when(pl.Series(position) >= 0).then(pl.Series(position))).to_series()

    def _depth(
        self, heads: pl.DataFrame, events: pl.DataFrame, lists: pl.DataFrame, reason: NDArray[np.int8], n_positions: int | None
    ) -> Longs:
        """How many positions of each list were displayed."""
        full = np.bincount(lists["session"].to_numpy(), minlength=heads.height)
        lowest = (
            events.filter(~pl.col("click") & pl.col("position").is_not_null()).group_by("session").agg(pl.col("position").max())
        )
        depth = np.zeros(heads.height, np.int64)
        depth[lowest["session"].to_numpy()] = lowest["position"].to_numpy() + 1
        self._count("sessions without impressions, all hits assumed to be displayed", ((depth == 0) & (reason == 0)).sum())
        return np.minimum(np.where(depth, depth, full), n_positions or full.max(initial=1))

    def _clicks(
        self, heads: pl.DataFrame, events: pl.DataFrame, reason: NDArray[np.int8], depth: Longs, base: int
    ) -> tuple[Longs, Longs, float, int]:
        """Session and position of the clicks that count, the share of those dropped, and how many of them name no item of
        their list."""
        session = events["session"].fill_null(-1).to_numpy()
        position = events["position"].fill_null(-1).to_numpy()
        item, click = events["item"].to_numpy(), events["click"].to_numpy()
        fates = {
            "without query_id": ~events["known"].to_numpy(),
            "without object": item < 0,
            "of an unknown query_id": session < 0,
            "of a session that is left out": reason[session] > 0,
            "on an object that is not in the list": (position < 0) | (position >= depth[session]),
        }
        fate = np.select([*fates.values()], [*fates], "")
        for kind, which in (("clicks", click), ("impressions", ~click)):
            for words in fates:
                self._count(f"{kind} dropped: {words}", (which & (fate == words)).sum())
        good = fate == ""
        disagrees = (events["ordinal"] - base != events["position"]).fill_null(False).to_numpy()
        self._count("ordinals that disagree with the list, ignored", (good & disagrees).sum())
        counted = good & click
        asked, at = heads["time"].to_numpy()[session], events["at"].to_numpy()
        self._count("clicks before their query, kept", (counted & (at < asked)).sum())
        pairs = pl.DataFrame({"session": session[counted], "position": position[counted]}).unique()
        self._count("clicks repeated, counted once", counted.sum() - pairs.height)
        share = (click & (fate != "")).sum() / max(click.sum(), 1)
        off_list = int((click & (fate == [*fates][-1])).sum())
        return pairs["session"].to_numpy(), pairs["position"].to_numpy(), float(share), off_list


def _codes(rows: pl.DataFrame, n_items: int) -> Longs:
    """A number for the session and the item of each row."""
    return rows["session"].to_numpy().astype(np.int64) * n_items + rows["item"].to_numpy()


def _named(index: dict[str, int], numbers: NDArray[np.int32]) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """The labels that are used in their order, and numbers of them."""
    used, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    order = np.argsort(first)
    labels = list(index)
    return tuple(labels[number] for number in used[order]), np.argsort(order)[inverse].astype(np.int32)


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
