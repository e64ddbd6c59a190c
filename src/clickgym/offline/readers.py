"""Readers of click logs: two formats of Yandex, tidy tables, UBI, and the Open Bandit Dataset.

All of them read line by line into arrays that grow, so memory is that of the finished log: 5 bytes for each session and
position, and the distinct labels. A malformed line is an error that names the file, the line and the reason; or, with
``bad_rows="skip"``, it is left out together with the rest of its session, and the log's ``skipped`` and ``notes`` say how many
lines were left out for which reason. A file that breaks off or cannot be decompressed is always an error.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_choice, check_path
from .blocks import MOST_POSITIONS, Numbers, parse_relevance
from .counting import ahead
from .log import ClickLog, ItemPositionLog
from .reading import check_reading, takes_strict
from .rows import begins_as_table, check_columns, read_table
from .several import Paths, check_together, joined, log_files, log_name
from .tables import (
    FEATURE,
    LONGEST,
    MAX_MEMORY,
    PROBABILITY,
    Fault,
    Skipped,
    check_kept,
    check_size,
    excerpt,
    read_blocks,
    read_lines,
    split_lines,
    whole_number,
)
from .tidy import LABEL, read_rows
from .ubi import read_ubi_path, ubi_files

REST = "in a session with a malformed line"


# ------------------------------------------------------------------------------------------------------------ Yandex

Line = tuple[bytes, bytes, bytes | None, bytes, list[bytes]]
"""Session; Q, T, C or M; page if it has a name; query, URL that was clicked, or day; URLs."""


@takes_strict
def read_yandex_relevance(
    path: str | PathLike[str], *, bad_rows: str = "strict", max_memory: int | str = MAX_MEMORY
) -> ClickLog:
    """Read a log in the format of Yandex's Relevance Prediction Challenge 2011.

    Lines are tab-separated: a query ``session, time, Q, query, region, urls...`` or a click ``session, time, C, url``. All
    fields but the letter are decimal numbers. Each query is one session of the log, labelled ``query-region``. A click belongs
    to the last query of its session whose list contains the URL. Clicks may come in any order, and a URL clicked twice counts
    once. A click on a URL that no list of the session contains is left out, and counted in ``off_list_clicks``. The times are
    those since the beginning of each session, so that the log has none.

    Args:
        path: text file, gzipped if its name ends with ``.gz``.
        bad_rows: ``"strict"`` refuses a malformed line; ``"skip"`` leaves it and its session out, and counts, up to 1 % of the
            sessions; ``"skip:5%"`` up to another share.
        max_memory: bytes, or words as ``"4GB"``, that may be kept of the log: 5 for each session and position, and labels.

    Raises:
        ValueError: on a malformed line, naming the file, the line and the reason; on a file without queries; on more to keep
            than ``max_memory``.

    Source: Serdyukov, Craswell, Dupret, *WSCD 2012: workshop on web search click data 2012*, WSDM 2012.
    """
    path = check_path("path", path)
    sessions = _YandexSessions(path, bad_rows, _parse_relevance, begun=False, max_memory=max_memory)
    items, queries = Numbers(sessions.item_index, pair=False), Numbers(sessions.query_index, pair=True)
    whole = True

    def parse(block: _Block) -> tuple[int, int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int8]] | None:
        if block.fault:
            raise block.fault
        match = FIRST_QUERY.search(block.text)  # which has as many URLs as all others, almost always
        n_positions = match[1].count(b"\t") if match else 0
        if not 0 < n_positions <= MOST_POSITIONS:
            return None
        most = block.text.count(b"\n")
        urls, query_keys = np.empty((most, n_positions), np.int64), np.empty(most, np.int64)
        clicks = np.empty((most, n_positions), np.int8)
        n_pages, off_list = parse_relevance(np.frombuffer(block.text, np.uint8), LONGEST, urls, query_keys, clicks)
        return None if n_pages < 0 else (n_positions, off_list, query_keys[:n_pages], urls[:n_pages], clicks[:n_pages])

    for block, parsed in ahead(parse, _blocks_of_sessions(path)):
        # What goes line by line knows of a session, or of a fault, that reaches beyond the end of its block.
        if parsed and whole and block.whole and not sessions.lost and sessions.n_positions in (0, parsed[0]):
            sessions.n_positions, off_list, query_keys, urls, clicks = parsed
            sessions.off_list += off_list
            sessions.queries.frombytes(queries.of(query_keys).data.cast("B"))
            sessions.items.frombytes(items.of(urls.ravel()).data.cast("B"))
            sessions.clicks.extend(clicks.data.cast("B"))
            sessions.session = b""
        else:
            sessions.read(split_lines(path, block.first, block.text))
        whole = block.whole
        sessions.check_kept()
    return sessions.log()


class _Block(NamedTuple):
    """Some lines of a file.

    Attributes:
        first: number of the first line.
        text: whole lines.
        whole: whether a session ends with them, and another begins below; whatever a malformed line may have meant.
        fault: what ends the file here, if that is not its end.
    """

    first: int
    text: bytes
    whole: bool
    fault: ValueError | None = None


def _blocks_of_sessions(path: Path) -> Iterator[_Block]:
    """The lines of a file in the format of 2011, cut between sessions."""
    first, rest, fault = 1, b"", None
    try:
        for _, text in read_blocks(path):
            text = rest + text
            start = _last_session(text)
            yield _Block(first, text[: start or len(text)], start > 0)
            first += text.count(b"\n", 0, start or len(text))
            rest = text[start:] if start else b""
    except ValueError as error:
        fault = error
    if rest:
        yield _Block(first, rest, True)
    if fault:
        yield _Block(first, b"", True, fault)


def _last_session(text: bytes) -> int:
    """Where the last session begins, by a query below a regular line of another session; 0 if that is nowhere."""
    at = len(text)
    while (at := text.rfind(b"\tQ\t", 0, at)) > 0:
        begin = text.rfind(b"\n", 0, at) + 1
        query = RELEVANCE_QUERY.fullmatch(text[begin : text.index(b"\n", at)].removesuffix(b"\r"))
        above = text[text.rfind(b"\n", 0, max(begin - 1, 0)) + 1 : max(begin - 1, 0)].removesuffix(b"\r")
        before = RELEVANCE_CLICK.fullmatch(above) or RELEVANCE_QUERY.fullmatch(above)
        if query and before and query[1] != before[1]:
            return begin
        at = begin
    return 0


@takes_strict
def read_yandex_personalized(
    path: str | PathLike[str], *, bad_rows: str = "strict", max_memory: int | str = MAX_MEMORY
) -> ClickLog:
    """Read a log in the format of Yandex's Personalized Web Search Challenge 2013.

    Lines are tab-separated: ``session, M, day, user`` begins a session; ``session, time, Q, page, query, terms, url,domain
    ...`` is a query with its result page, and ``session, time, C, page, url`` a click on that page. Terms, and a URL with
    its domain, are separated by commas; all but the letters are decimal numbers. Each page is one session of the log. A URL
    clicked twice counts once; clicks on a URL that the page does not hold are left out and counted in ``off_list_clicks``.
    Test queries (T instead of Q) are left out, for their clicks were withheld; ``skipped`` counts them. The log's times are the
    days.

    Args:
        path: text file, gzipped if its name ends with ``.gz``.
        bad_rows: ``"strict"`` refuses a malformed line; ``"skip"`` leaves it and its session out, and counts, up to 1 % of the
            sessions; ``"skip:5%"`` up to another share.
        max_memory: as for `read_yandex_relevance`.

    Raises:
        ValueError: on a malformed line, naming the file, the line and the reason; on a file without queries; on more to keep
            than ``max_memory``.

    Source: Serdyukov, Dupret, Craswell, *Log-based personalization: the 4th web search click data (WSCD) workshop*, WSDM 2014.
    """
    path = check_path("path", path)
    sessions = _YandexSessions(path, bad_rows, _parse_personalized, begun=True, max_memory=max_memory)
    for first, block in read_blocks(path):
        sessions.read(split_lines(path, first, block))
        sessions.check_kept()
    return sessions.log()


class _YandexSessions:
    """Reads lines that ``parse`` understands, into arrays that grow; ``begun``: each session begins with a line M."""

    def __init__(self, path: Path, bad_rows: str, parse: Callable[[bytes], Line], begun: bool, max_memory: int | str) -> None:
        self.path, self.parse, self.begun = path, parse, begun
        self.max_memory, self.skipped = check_size("max_memory", max_memory), Skipped(path, bad_rows)
        self.items, self.queries, self.clicks, self.times = array("i"), array("i"), bytearray(), array("q")
        self.item_index, self.query_index = dict[bytes, int](), dict[bytes, int]()
        self.n_positions, self._labels, self._n_labels = 0, 0, [0, 0]
        self.session, self.day, self.first_page, self.first_line, self.n_lines = b"", 0, 0, 0, 0
        self.off_list = self.off_list_before = 0
        # Of this session: page, first entry, position of each URL.
        self.lists: list[tuple[bytes | None, int, dict[bytes, int]]] = []
        self.lost: tuple[bytes, ...] = ()
        """The session that a malformed line belonged to, by what stood above it and by its own word."""

    def read(self, lines: Iterator[tuple[int, bytes]]) -> None:
        """Read the next lines of the file, given with their numbers."""
        skipped, parse = self.skipped, self.parse
        for number, line in lines:
            try:
                this, kind, page, subject, urls = parse(line)
                if this in self.lost:
                    skipped.count(REST, number)
                    skipped.n_lost += kind == b"Q"
                    continue
                if this != self.session:
                    self._begin(this, kind, subject, number)
                elif kind == b"M":
                    raise Fault("a session that begins twice", f"session {this.decode()} begins twice")
                if kind == b"C":
                    self._click(this, page, subject)
                elif kind == b"T":
                    skipped.count("a test query, its clicks withheld", number)
                    continue
                elif kind == b"Q":
                    self._query(this, page, subject, urls)
                self.n_lines += 1
            except Fault as fault:
                skipped.add(fault, number)
                # What is already there of the session lacks clicks, perhaps.
                if self.n_lines:
                    skipped.count(REST, self.first_line, self.n_lines)
                # A line that is no click may have been a query.
                n_pages = len(self.queries) - self.first_page
                skipped.n_lost += n_pages + (not {b"C", b"M"}.intersection(line.split(b"\t")[1:3]))
                self._cut(self.first_page)
                self.lost, self.lists = (self.session, line.partition(b"\t")[0]), []
                self.n_lines, self.off_list = 0, self.off_list_before

    def _begin(self, this: bytes, kind: bytes, subject: bytes, number: int) -> None:
        if self.begun and kind != b"M":
            raise Fault("a session without a line M", f"session {this.decode()} does not begin with a line M")
        self.session, self.first_page, self.first_line, self.n_lines = this, len(self.queries), number, 0
        self.day = int(subject) if self.begun else 0
        self.off_list_before, self.lists, self.lost = self.off_list, [], ()

    def _click(self, this: bytes, page: bytes | None, url: bytes) -> None:
        if not any(entry[0] == page for entry in self.lists):
            missing = "the first query" if page is None else f"page {page.decode()}"
            raise Fault("a click without its query", f"a click before {missing} of session {this.decode()}")
        for name, start, positions in reversed(self.lists):
            if name == page and url in positions:
                self.clicks[start + positions[url]] = 1
                return
        self.off_list += 1

    def _query(self, this: bytes, page: bytes | None, query: bytes, urls: list[bytes]) -> None:
        positions = {url: position for position, url in enumerate(urls)}
        if self.n_positions not in (0, len(urls)):
            expected = f"expected {self.n_positions}, as before"
            raise Fault("wrong number of URLs", f"a query with {len(urls)} URLs; {expected}")
        if len(positions) != len(urls):
            raise Fault("a list contains a URL twice")
        if page is not None and any(entry[0] == page for entry in self.lists):
            raise Fault("a page twice in a session", f"page {page.decode()} stands twice in session {this.decode()}")
        self.n_positions, index = len(urls), self.item_index
        self.lists.append((page, len(self.clicks), positions))
        self.items.extend([index.setdefault(url, len(index)) for url in urls])
        self.queries.append(self.query_index.setdefault(query, len(self.query_index)))
        self.clicks.extend(bytes(len(urls)))
        if self.begun:
            self.times.append(self.day)

    def _cut(self, n_pages: int) -> None:
        """Keep only the first pages; without any, the next one says how many positions there are."""
        del self.queries[n_pages:], self.items[n_pages * self.n_positions :], self.clicks[n_pages * self.n_positions :]
        del self.times[n_pages:]
        if n_pages == 0:
            self.n_positions = 0

    def check_kept(self) -> None:
        """Refuse to keep more than is allowed."""
        for which, index in enumerate((self.item_index, self.query_index)):
            self._labels += sum(len(label) + LABEL for label in islice(index, self._n_labels[which], None))
            self._n_labels[which] = len(index)
        size = 5 * len(self.clicks) + 4 * len(self.queries) + 8 * len(self.times) + self._labels
        check_kept(self.path, size, self.max_memory, f"the first {len(self.queries):,} queries")

    def log(self) -> ClickLog:
        """What was read."""
        notes = tuple(self.skipped.notes(len(self.queries)))
        if not len(self.queries):
            raise ValueError(f"{self.path}: no query in the file")
        shape = (-1, self.n_positions)
        return ClickLog(
            np.frombuffer(self.items, np.int32).reshape(shape),
            np.frombuffer(self.clicks, np.int8).reshape(shape),
            np.frombuffer(self.queries, np.int32),
            tuple(map(bytes.decode, self.item_index)),
            tuple(map(bytes.decode, self.query_index)),
            self.off_list,
            skipped=dict(+self.skipped),
            notes=notes,
            times=np.frombuffer(self.times, np.int64) if self.begun else None,
        )


RELEVANCE_QUERY = re.compile(rb"(\d+)\t\d+\tQ\t(\d+)\t(\d+)\t(\d+(?:\t\d+)*)")
FIRST_QUERY = re.compile(rb"^\d+\t\d+\tQ\t\d+\t\d+((?:\t\d+)+)\r?$", re.MULTILINE)
RELEVANCE_CLICK = re.compile(rb"(\d+)\t\d+\tC\t(\d+)")


def _parse_relevance(line: bytes) -> Line:
    if click := RELEVANCE_CLICK.fullmatch(line):
        return click[1], b"C", None, click[2], []
    if query := RELEVANCE_QUERY.fullmatch(line):
        return query[1], b"Q", None, query[2] + b"-" + query[3], query[4].split(b"\t")
    fields = line.split(b"\t")
    if len(fields) < 4 or fields[2] not in (b"Q", b"C"):
        expected = "expected 'session, time, Q or C, ...' separated by tabs"
        raise Fault("neither a query nor a click", f"{expected}, got {excerpt(line)}")
    if fields[2] == b"C" and len(fields) != 4:
        raise Fault("wrong number of fields", f"a click has 4 fields, got {len(fields)}")
    if fields[2] == b"Q" and len(fields) < 6:
        raise Fault("wrong number of fields", f"a query has 6 fields or more, got {len(fields)}")
    _not_numbers(fields[:2] + fields[3:])


PERSONALIZED_QUERY = re.compile(rb"(\d+)\t\d+\t([QT])\t(\d+)\t(\d+)\t\d+(?:,\d+)*\t(\d+,\d+(?:\t\d+,\d+)*)")
PERSONALIZED_CLICK = re.compile(rb"(\d+)\t\d+\tC\t(\d+)\t(\d+)")
PERSONALIZED_SESSION = re.compile(rb"(\d+)\tM\t(\d{1,18})\t\d+")


def _parse_personalized(line: bytes) -> Line:
    if click := PERSONALIZED_CLICK.fullmatch(line):
        return click[1], b"C", click[2], click[3], []
    if query := PERSONALIZED_QUERY.fullmatch(line):
        return query[1], query[2], query[3], query[4], [pair.partition(b",")[0] for pair in query[5].split(b"\t")]
    if session := PERSONALIZED_SESSION.fullmatch(line):
        return session[1], b"M", None, session[2], []
    _refuse_personalized(line)


FIELDS = {b"M": (4, 4), b"C": (5, 5), b"Q": (7, math.inf), b"T": (7, math.inf)}
"""How many fields a line has at least and at most."""


def _refuse_personalized(line: bytes) -> NoReturn:
    """Say what is wrong with a line."""
    fields = line.split(b"\t")
    kind = fields.pop(1) if fields[1:2] == [b"M"] else fields.pop(2) if len(fields) > 2 else b""
    if kind not in FIELDS:
        expected = "expected 'session, M, ...' or 'session, time, Q, T or C, ...' separated by tabs"
        raise Fault("none of M, Q, T, C", f"{expected}, got {excerpt(line)}")
    least, most = FIELDS[kind]
    if not least <= len(fields) + 1 <= most:
        more = " or more" if least < most else ""
        raise Fault("wrong number of fields", f"a line {kind.decode()} has {least} fields{more}, got {len(fields) + 1}")
    if least < most:
        for field in fields[5:]:
            if field.count(b",") != 1:
                raise Fault("not a URL and its domain", f"expected a URL, a comma and its domain, got {excerpt(field)}")
        fields[4:] = b",".join(fields[4:]).split(b",")
    _not_numbers(fields)


def _not_numbers(fields: list[bytes]) -> NoReturn:
    bad = next((field for field in fields if not field.isdigit()), max(fields, key=len))  # a day of too many digits
    raise Fault("an id or a time that is not a number", f"expected a number, got {excerpt(bad)}")


# ------------------------------------------------------------------------------------------------------------ tables


@takes_strict
def read_tidy(
    path: str | PathLike[str],
    split: str | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    duplicates: str = "refuse",
    bad_rows: str = "strict",
    max_memory: int | str = MAX_MEMORY,
) -> ClickLog:
    """Read a tidy table with one row per session and position; docs/logs.md has examples.

    The rows of a session have the positions from 1 (or, if the first session's have, from 0) to the length of its list, in any
    order. Where they are not consecutive, the sessions come in the order of their names. In text a row is one line: a quoted
    field may hold separators, but no line break. Parquet that `write_tidy` wrote has a checksum; that of others is left to
    Polars: a damaged file of that kind may be refused late, or end the process.

    Args:
        path: text in UTF-8 whose first line names the columns, separated by commas, tabs or semicolons, or JSON lines; gzipped
            if its name ends with ``.gz``; or Parquet (``.parquet``). Its columns are ``session``, ``query`` (without it, all
            sessions are of one), ``position``, ``item``, ``clicked`` (0 or 1, false or true); optionally ``region``, which
            makes the query label ``query-region``; ``propensity``, ``list_propensity`` and the context ``feature_1``,
            ``feature_2``, ..., see `ClickLog`; and ``split``. Only if ``columns`` names it, what a click on the item is worth,
            ``{"value": "price"}``. Others are left out.
        split: keep only the rows whose column ``split`` says so; None keeps all.
        columns: what a column is called, if not so, as ``{"item": "doc_id"}``.
        duplicates: of rows with the same session and position, ``"refuse"`` or keep the ``"first"``.
        bad_rows: ``"strict"`` refuses a malformed row; ``"skip"`` leaves it and its session out, and counts, up to 1 % of the
            sessions; ``"skip:5%"`` up to another share. A row that does not name its session is of the one whose positions it
            continues; where the rows of a session do not stand together, nobody knows.
        max_memory: bytes, or words as ``"4GB"``, that may be kept of the log: 5 for each session and position, and labels; also
            the texts of a million rows of Parquet, which are held at once.

    Returns:
        The log; its ``notes`` say what was taken for granted.

    Raises:
        ValueError: naming the file and the missing column, or the line (in Parquet the row, from 1) and the reason.

    Example:
        >>> import tempfile
        >>> from clickgym.offline import ClickLog, write_tidy
        >>> log = ClickLog([[1, 0]], [[1, 0]], [0], ("a", "b"), ("q",))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_tidy(log, f"{folder}/log.parquet")
        ...     print(read_tidy(f"{folder}/log.parquet").item_labels)
        ('b', 'a')
    """
    return ClickLog(**read_rows(check_path("path", path), split, columns, duplicates, bad_rows, max_memory)[0])


USER_WORDS, ITEM_WORDS = "user_feature_[0-9]+", "item_feature_[1-9][0-9]*"


@takes_strict
def read_open_bandit(
    path: str | PathLike[str], item_context: str | PathLike[str] | None = None, *, bad_rows: str = "strict"
) -> ItemPositionLog:
    """Read a log of the Open Bandit Dataset, in which a row is one item at one position.

    The data do not say which rows belonged to one list. So only estimators for single displays can use this log. Items keep
    their numbers, which are those of the dataset's action distributions. Positions are counted from 0.

    Args:
        path: CSV file, gzipped if its name ends with ``.gz``, with the columns ``item_id``, ``position`` (from 1), ``click``
            and ``propensity_score``; with an item context also ``user_feature_0``, ``user_feature_1``, ..., which are words.
        item_context: CSV file of the dataset with the columns ``item_id``, ``item_feature_0`` (a number) and
            ``item_feature_1``, ... (words), an item a line in their order. The log then has the features of users and items,
            a 0 or 1 for every word of a column, and the number standardised. None: no features are read.
        bad_rows: ``"strict"`` refuses a malformed row; ``"skip"`` leaves it out, and counts, up to 1 % of the rows;
            ``"skip:5%"`` up to another share. The item context is always read strictly.

    Raises:
        ValueError: naming the file and the missing column, or the line and the reason.

    Source: Saito, Aihara, Matsutani, Narita, *Open Bandit Dataset and Pipeline: towards realistic and reproducible off-policy
    evaluation*, NeurIPS Datasets and Benchmarks 2021.
    """
    path = check_path("path", path)
    skipped = Skipped(path, bad_rows)
    wanted = ["item_id", "position", "click", "propensity_score"]
    of_user_words = "" if item_context is None else USER_WORDS
    header, rows = read_table(path, skipped, wanted, of_user_words)
    displays: list[Any] = [array("i"), array("i"), array("b"), array("d")]  # of what `_display` returns
    item_features = None if item_context is None else _item_features(check_path("item_context", item_context))
    n_items = math.inf if item_features is None else len(item_features)
    words = _Words(header, of_user_words)
    if of_user_words and not words.index:
        raise ValueError(f"{path}: no column 'user_feature_0'; the file has {', '.join(header)}")
    for display, of_user in skipped.parsed(rows, lambda fields: (_display(fields[:4], n_items), fields[4:])):
        words.add(of_user)
        for values, value in zip(displays, display, strict=True):
            values.append(value)
    notes = tuple(skipped.notes(len(displays[0])))
    if not displays[0]:
        raise ValueError(f"{path}: no row in the file")
    users = None if item_features is None else words.indicators()
    items, positions, clicks, propensities = map(np.asarray, displays)
    return ItemPositionLog(items, positions, clicks, propensities, users, item_features, dict(skipped), notes)


def _display(fields: list[str], n_items: float) -> tuple[int, int, int, float]:
    """Item, position from 0, click and propensity of a row."""
    item_id, place, click, score = fields
    item, position = whole_number("item_id", item_id, 0), whole_number("position", place, 1)
    if click not in ("0", "1"):
        raise Fault("click is not 0 or 1", f"click is {click!r}; expected 0 or 1")
    propensity = PROBABILITY.parse("propensity_score", score)
    if item >= n_items:
        raise Fault("an item without context", f"item_id is {item}; the item context has 0 to {n_items - 1}")
    return item, position - 1, int(click), propensity


class _Words:
    """Columns of words, those whose names have a pattern, to become a 0 or 1 for every word of a column.

    Attributes:
        index: of each column its words and their numbers.
    """

    def __init__(self, header: Sequence[str], pattern: str) -> None:
        self.index: list[dict[str, int]] = [{} for name in header if re.fullmatch(pattern, name)]
        self.codes = array("i")

    def add(self, words: Sequence[str]) -> None:
        """Add a row."""
        self.codes.extend(index.setdefault(word, len(index)) for index, word in zip(self.index, words, strict=True))

    def indicators(self) -> np.ndarray:
        """``(rows, words)``, the words of each column in order of appearance."""
        codes = np.frombuffer(self.codes, np.int32).reshape(-1, len(self.index))
        return np.hstack([codes[:, [j]] == np.arange(len(index)) for j, index in enumerate(self.index)]).astype(np.uint8)


def _item_features(path: Path) -> np.ndarray:
    """The item context of the Open Bandit Dataset: ``(items, features)``."""
    skipped = Skipped(path)
    header, rows = read_table(path, skipped, ["item_id", "item_feature_0"], ITEM_WORDS)
    words, numbers = _Words(header, ITEM_WORDS), array("d")

    def parse(fields: list[str]) -> tuple[float, list[str]]:
        item_id, feature, *others = fields
        if item_id != str(len(numbers)):
            raise Fault(f"item_id is {item_id!r}; expected {len(numbers)}, for items stand in order")
        return FEATURE.parse("item_feature_0", feature), others

    for number, others in skipped.parsed(rows, parse):
        numbers.append(number)
        words.add(others)
    if not numbers:
        raise ValueError(f"{path}: no row in the file")
    values = np.frombuffer(numbers)
    standard = (values - values.mean()) / (values.std() or 1.0)
    return np.hstack([standard[:, None], *([words.indicators()] if words.index else [])])


# ------------------------------------------------------------------------------------------------------------ any format

LOG_FORMATS: dict[str, Callable[..., ClickLog]] = {
    "yandex-relevance": read_yandex_relevance,
    "yandex-personalized": read_yandex_personalized,
    "tidy": read_tidy,
    "ubi": read_ubi_path,
}
"""The readers of logs with whole lists, by the names of their formats."""


@takes_strict
def read_log(
    path: Paths,
    log_format: str = "auto",
    *,
    columns: Mapping[str, str] | None = None,
    duplicates: str = "refuse",
    bad_rows: str = "strict",
    repeated: str = "keep",
    max_memory: int | str = MAX_MEMORY,
    click_action: str = "click",
    sessions_per_file: bool = False,
    query: str | None = None,
) -> ClickLog:
    """Read a click log in any format that has whole lists.

    Args:
        path: the file; see the readers. Of UBI a folder with both files, or both with a plus between (``q.ndjson+e.ndjson``).
            Several files of one format, a folder of them or a glob (``logs/*.parquet``)
            are one log; no session is in two.
        log_format: a name in `LOG_FORMATS`, or ``"auto"``, which looks at the name and the first line.
        columns, duplicates: of a tidy table, as for `read_tidy`.
        bad_rows: ``"strict"`` refuses a malformed line; ``"skip"`` leaves it and its session out, and counts, up to 1 % of the
            sessions; ``"skip:5%"`` up to another share.
        repeated: ``"keep"`` sessions that the log has several times, or ``"once"`` only the first of each; see
            `ClickLog.repeated`. The log's ``notes`` say how many there are.
        max_memory: bytes, or words as ``"4GB"``, that may be kept of the log.
        click_action: of UBI, the action that counts as a click.
        sessions_per_file: the names of sessions begin anew in each file; else a session that is in two files is refused. Only
            tidy tables can be compared so; several files of another format need this.
        query: of a tidy table, keep only the sessions of this query, and do not look at the others; None keeps all.

    Raises:
        ValueError: on an unknown format, on a first line that fits none, and as the reader does; to have repeated sessions
            ``"once"`` from a log without times; on files of several formats, and on a session in two files.
        OSError: if there is no such file.
    """
    check_reading(
        columns=columns, duplicates=duplicates, bad_rows=bad_rows, repeated=repeated, max_memory=max_memory,
        click_action=click_action, sessions_per_file=sessions_per_file,
    )  # fmt: skip
    columns, files = check_columns(columns), log_files(path)
    log_format = format_of(files, log_format, columns)
    read_as = f"{files[0]} is read as {log_format}"
    for kind, given, message in (
        ("ubi", click_action != "click", f"click_action is only for UBI; {read_as}"),
        ("tidy", len(files) > 1 and not sessions_per_file,
         f"{files[0]} and {len(files) - 1} more are read as {log_format}, where sessions are not compared between "
         "files; expected tidy tables, or sessions_per_file (--sessions-per-file)"),
        ("tidy", query is not None, f"query is only for tidy tables; {read_as}"),
        ("tidy", (columns, duplicates) != ({}, "refuse"), f"columns and duplicates are only for tidy tables; {read_as}"),
    ):  # fmt: skip
        if given and log_format != kind:
            raise ValueError(message)
    if log_format == "tidy":
        rows_of = partial(
            read_rows, split=None, columns=columns, duplicates=duplicates, bad_rows=bad_rows, max_memory=max_memory, query=query
        )
        logs = _of_tables(files, rows_of, sessions_per_file)
    else:
        options: dict[str, Any] = {"click_action": click_action} if log_format == "ubi" else {}
        logs = {file: LOG_FORMATS[log_format](file, bad_rows=bad_rows, max_memory=max_memory, **options) for file in files}
    if not logs:
        raise ValueError(f"{log_name(path)}: no session of the query {query!r}")
    return _with_repeats(files[0], joined([*logs], [*logs.values()], max_memory), repeated)


def _of_tables(files: Sequence[Path], read: Callable[[Path], Any], sessions_per_file: bool) -> dict[Any, ClickLog]:
    """The logs in tidy tables, of which ``read`` has the arguments and the sessions; without those that have none."""
    tables = [read(file) for file in files]
    check_together(files, [sessions for _, sessions in tables], sessions_per_file)
    return {file: ClickLog(**arguments) for file, (arguments, _) in zip(files, tables, strict=True) if arguments}


def format_of(files: Sequence[Any], log_format: str, columns: Mapping[str, str]) -> str:
    """The format of all files of a log, the given one or what each looks like."""
    check_choice("log format", log_format, ["auto", *LOG_FORMATS])
    formats = [_guess(file, columns) if log_format == "auto" else log_format for file in files]
    kinds = [(kind, file.suffix == ".parquet") for kind, file in zip(formats, files, strict=True)]
    for file, (kind, in_parquet) in zip(files, kinds, strict=True):
        if (kind, in_parquet) != kinds[0]:
            said = [f"{name}{' in Parquet' * packed}" for name, packed in (kinds[0], (kind, in_parquet))]
            raise ValueError(f"{files[0]} is read as {said[0]}, and {file} as {said[1]}; expected files of one format")
    return formats[0]


def _with_repeats(path: Path, log: ClickLog, repeated: str) -> ClickLog:
    """The log with its repeated sessions or without them, and a note of how many there are."""
    if log.times is None:
        if repeated == "once":
            raise ValueError(f"{path} has no times, by which repeated sessions could be recognised; expected repeated 'keep'")
        return log
    again = log.repeated
    if not again.any():
        return log
    what = f"{again.sum():,} of {len(log):,} sessions repeat another one (same time, query, list and clicks)"
    if repeated == "keep":
        return replace(log, notes=(*log.notes, f"{what}; repeated 'once' leaves them out"))
    notes = (*log.notes, f"{what}; they are left out")
    return replace(log[~again], off_list_clicks=log.off_list_clicks, skipped=log.skipped, notes=notes)


def _guess(path: Path, columns: Mapping[str, str]) -> str:
    if path.suffix == ".parquet" or columns:
        return "tidy"
    if ubi_files(path):
        return "ubi"
    _, line = next(read_lines(path), (1, b""))
    fields = line.split(b"\t")
    if fields[1:2] == [b"M"]:
        return "yandex-personalized"
    if fields[2:3] == [b"Q"]:
        return "yandex-relevance"
    if begins_as_table(line):
        return "tidy"
    words = re.split(rb"[,\":{}\s]+", line)
    if words[1:2] in ([b"index"], [b"create"]):
        return "ubi"
    _refuse_first(path, line, words)


def _refuse_first(path: Path, line: bytes, words: list[bytes]) -> NoReturn:
    """Say why a first line is of no format."""
    if b"query_id" in words:
        raise ValueError(
            f"{path} looks like a file of UBI; expected its folder, or 'queries.ndjson+events.ndjson'; "
            "in a folder one file has 'queries' in its name and one 'events'"
        )
    if b"item_id" in words and b"propensity_score" in words:
        raise ValueError(f"{path} looks like the Open Bandit Dataset: its rows are single items, not whole lists")
    raise ValueError(
        f"{path}, line 1: it has none of the formats {', '.join(LOG_FORMATS)}; give the format, or the names of columns that "
        f"are not called session, query, position, item and clicked. Got {excerpt(line)}"
    )
