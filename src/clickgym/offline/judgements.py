"""Judgements of items: ratings of people, and relevance labels of documents with their features; and readers of both."""

from __future__ import annotations

import codecs
import math
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..core.checks import as_call, check_labels, check_path, integers, numbers, short
from .log import set_checked
from .rows import read_table
from .tables import RATING, Fault, Skipped, excerpt, read_lines, whole_number


@dataclass(frozen=True, eq=False)
class Judgements:
    """How good items are for users; for documents, the query takes the role of the user.

    Args:
        users: ``(E,)`` the user of each judgement, as an index into ``user_labels``.
        items: ``(E,)`` the item, as an index into ``item_labels``; a user judges an item at most once.
        labels: ``(E,)`` numbers from 0, the more the better.
        user_labels, item_labels: what the indices stand for.
        features: ``(N, d)`` features of the N items, where they have any: finite numbers in a sparse array of SciPy, of any
            format; kept by rows (CSR), as floats.

    Raises:
        ValueError: naming the array and what was expected.

    Example:
        >>> judgements = Judgements([0, 0, 1], [0, 1, 1], [5, 3, 4], ("ann", "bob"), ("Heat", "Jumanji"))
        >>> len(judgements), judgements.labels.tolist()
        (3, [5.0, 3.0, 4.0])
    """

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    labels: NDArray[np.float64]
    user_labels: tuple[str, ...]
    item_labels: tuple[str, ...]
    features: sparse.csr_array | None = None

    def __repr__(self) -> str:
        sizes = {"n_users": len(self.user_labels), "n_items": len(self.item_labels)}
        n_features = None if self.features is None else self.features.shape[1]
        return as_call(self, n_judgements=len(self), **sizes, n_features=n_features)

    def __post_init__(self) -> None:
        checked = partial(set_checked, self)
        n_users, n_items = (len(checked(name, check_labels)) for name in ("user_labels", "item_labels"))
        shape = checked("users", integers, ("judgements",), 0, n_users, dtype=np.int32, whole=True).shape
        checked("items", integers, shape, 0, n_items, dtype=np.int32, whole=True)
        checked("labels", numbers, shape, 0.0, expected="a finite number from 0", copy=False)
        if self.features is not None:
            if not sparse.issparse(self.features) or self.features.ndim != 2 or self.features.dtype.kind not in "biuf":
                raise ValueError(f"features is {short(self.features)}; expected a sparse array (N, d) of numbers, of SciPy")
            features = sparse.csr_array(self.features, dtype=np.float64)
            if not np.isfinite(features.data).all():
                place = int(np.argmin(np.isfinite(features.data)))
                row, column = np.searchsorted(features.indptr, place, "right") - 1, features.indices[place]
                raise ValueError(f"features[{row}, {column}] is {features.data[place]}; expected a finite number")
            object.__setattr__(self, "features", features)
        pairs = self.users.astype(np.int64) * n_items + self.items
        if len(np.unique(pairs)) < len(pairs):
            raise ValueError("a user judges an item twice")
        if self.features is not None and self.features.shape[0] != n_items:
            raise ValueError(f"features has shape {self.features.shape}; expected {n_items} rows, one for each item")

    def __len__(self) -> int:
        return len(self.users)


def read_judgements(path: str | PathLike[str]) -> Judgements:
    """Read ratings from a ``.csv`` or ``.parquet`` file, or judged documents from any other file; both may be gzipped.

    Args:
        path: see `read_ratings` and `read_letor`.

    Raises:
        ValueError, OSError: as the reader does.
    """
    is_table = check_path("path", path).name.removesuffix(".gz").endswith((".csv", ".parquet"))
    return read_ratings(path) if is_table else read_letor(path)


def read_ratings(path: str | PathLike[str]) -> Judgements:
    """Read a table of ratings in the format of MovieLens.

    Args:
        path: CSV file in UTF-8, gzipped if its name ends with ``.gz``, or Parquet, with the columns ``userId``, ``movieId`` and
            ``rating`` (a number from 0); others are not read.

    Raises:
        ValueError: naming the file and the missing column, or the line (in Parquet the row, from 1) and the reason.

    Source: Harper, Konstan, *The MovieLens datasets: history and context*, TiiS 2015.
    """
    path = check_path("path", path)
    refused = Skipped(path)
    _, rows = read_table(path, refused, ["userId", "movieId", "rating"])
    user_index: dict[str, int] = {}
    item_index: dict[str, int] = {}
    ratings: dict[tuple[int, int], float] = {}
    for number, (user, item, rating) in rows:
        try:
            for name, label in (("userId", user), ("movieId", item)):
                if not label:
                    raise Fault(f"the column {name!r} is empty")
            stars = RATING.parse("rating", rating)
            pair = user_index.setdefault(user, len(user_index)), item_index.setdefault(item, len(item_index))
            if pair in ratings:
                raise Fault(f"user {user} rates {item} a second time")
            ratings[pair] = stars
        except Fault as fault:
            refused.add(fault, number)
    if not ratings:
        raise ValueError(f"{path}: no row in the file")
    users, items = np.array(list(ratings), np.int32).T
    return Judgements(users, items, np.array(list(ratings.values())), tuple(user_index), tuple(item_index))


VALUE = rb"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
DOCUMENT = re.compile(rb"(\d+(?:\.\d*)?)(?:[ \t]+qid:(\d+))?((?:[ \t]+\d+:" + VALUE + rb")*)[ \t]*(?:#.*)?", re.DOTALL)
FEATURE = re.compile(rb"(\d+):(" + VALUE + rb")")


def read_letor(path: str | PathLike[str], sizes: str | PathLike[str] | None = None) -> Judgements:
    """Read documents with relevance labels for queries, in the SVMlight format of LETOR.

    A line is one document. It has the relevance label, a whole number from 0. Then ``qid:`` and the number of the query may
    follow. Then come the features as ``number:value``, with increasing numbers from 1; absent features are 0. A comment may
    follow after ``#``. The documents of a query are consecutive lines. If lines have no ``qid``, a second file has the number
    of documents of each query, one number per line. Blank lines, comment lines and a byte order mark are ignored.

    Args:
        path: text file, gzipped if its name ends with ``.gz``.
        sizes: the second file; None takes the one of the same name that ends with ``.query``, instead of ``.gz`` if there is
            that, wherever the lines have no ``qid``.

    Returns:
        The judgements; documents are labelled by their line, queries by their ``qid`` or their number from 1.

    Raises:
        ValueError: naming the file, the line and the reason; where the sizes do not add up to the number of documents.

    Source: Qin, Liu, *Introducing LETOR 4.0 datasets*, arXiv 2013; the file of sizes is that of LightGBM and XGBoost.
    """
    path = check_path("path", path)
    documents = _Documents()
    for number, line in _filled_lines(path):
        try:
            documents.add(number, line)
        except Fault as fault:
            Skipped(path).add(fault, number)
    if not documents.labels:
        raise ValueError(f"{path}: no document in the file")
    if not documents.columns:
        raise ValueError(f"{path}: no document has features")
    if documents.named and sizes is not None:
        raise ValueError(f"{path} names its queries by qid; there is no need of {sizes}")
    labels, lines = np.frombuffer(documents.labels), tuple(map(str, documents.lines))
    if documents.named:
        users, queries = np.frombuffer(documents.queries, np.int32), tuple(documents.query_index)
    else:
        users = _queries_by_size(path, sizes, len(labels))
        queries = tuple(map(str, range(1, int(users[-1]) + 2)))
    return Judgements(users, np.arange(len(labels), dtype=np.int32), labels, queries, lines, documents.features())


class _Documents:
    """Documents that are read line by line."""

    def __init__(self) -> None:
        self.labels, self.queries, self.lines = array("d"), array("i"), array("q")
        self.values, self.columns, self.ends = array("d"), array("i"), array("q", [0])
        self.query_index: dict[str, int] = {}
        self.named = False  # whether the lines name their queries
        self.numbers: list[bytes] = []  # the features' numbers of the line before, which in most files all lines have ...
        self.places = array("i")  # ... and their columns

    def add(self, number: int, line: bytes) -> None:
        """Add the document of a line."""
        document = DOCUMENT.fullmatch(line)
        if document is None:
            raise Fault(f"expected 'label number:value number:value ...', got {excerpt(line)}")
        self._add_query(document[2])
        label = document[1].decode()
        if "." in label:  # 2.0 is 2
            label = label.rstrip("0").removesuffix(".")
        self.labels.append(whole_number("label", label, 0))
        self.lines.append(number)
        words = document[3].replace(b":", b" ").split()
        numbers, values = words[::2], list(map(float, words[1::2]))
        if numbers != self.numbers or not math.isfinite(sum(values)):
            self.places, self.numbers = _checked_features(document[3]), numbers
        self.columns.extend(self.places)
        self.values.extend(values)
        self.ends.append(len(self.values))

    def _add_query(self, name: bytes | None) -> None:
        if not self.labels:
            self.named = name is not None
        if self.named != (name is not None):
            raise Fault(f"{'no qid' if self.named else 'a qid'}, unlike the lines before")
        if name is not None:
            query, last = name.decode(), len(self.query_index) - 1
            if self.query_index.setdefault(query, last + 1) < last:
                raise Fault(f"the documents of query {query} are not consecutive")
            self.queries.append(len(self.query_index) - 1)

    def features(self) -> sparse.csr_array:
        """The features of all documents."""
        ends = np.frombuffer(self.ends, np.int64)
        if len(self.values) < 2**31:  # or else the columns, too, would take eight bytes each
            ends = ends.astype(np.int32)
        shape = (len(self.labels), max(self.columns) + 1)
        return sparse.csr_array((np.frombuffer(self.values), np.frombuffer(self.columns, np.int32), ends), shape)


def _filled_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """`read_lines` without those that are blank or only a comment, and without a byte order mark."""
    for number, line in read_lines(path):
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        text = line.lstrip(b" \t")
        if text and not text.startswith(b"#"):
            yield number, line


def _checked_features(text: bytes) -> array[int]:
    """The columns of a document's features, whose numbers must increase; their values must be finite."""
    columns, before = array("i"), 0
    for feature, value in FEATURE.findall(text):
        column = whole_number("a feature's number", feature.decode(), 1)
        if column <= before:
            raise Fault(f"feature {column} after feature {before}; expected increasing numbers")
        if not math.isfinite(float(value)):
            raise Fault(f"feature {column} is {value.decode()}; expected a finite number")
        columns.append(column - 1)
        before = column
    return columns


def _queries_by_size(path: Path, sizes: str | PathLike[str] | None, n_documents: int) -> NDArray[np.int32]:
    """The query of each document, from the file that says how many there are of each."""
    beside = Path(str(path).removesuffix(".gz") + ".query") if sizes is None else check_path("sizes", sizes)
    if not beside.is_file():
        raise ValueError(f"{path} does not name its queries by qid, and there is no file {beside} that tells their sizes")

    def size(line: bytes) -> int:
        return whole_number("the size of a query", line.decode(errors="backslashreplace").strip(" \t"), 1)

    counts = [*Skipped(beside).parsed(_filled_lines(beside), size)]
    if sum(counts) != n_documents:
        raise ValueError(f"{beside}: the sizes add up to {sum(counts)}; expected {n_documents}, the documents in {path.name}")
    return np.repeat(np.arange(len(counts), dtype=np.int32), counts)
