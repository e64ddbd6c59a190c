"""Judged queries: documents with relevance grades and features, and users who click by grades.

*File*, the SVMlight format of LETOR, MSLR, Yahoo and Istella: ``grade qid:Q i:v ... # comment``, a
line for each document, those of a query one after another. Features count from 1; one that is
absent is 0, and so is one with the largest double, which stands for a missing value in Istella.

*Users* click an examined document with a probability by its grade, and a click satisfies them with
another; then they leave. So they are those of a dynamic Bayesian network of perseverance 1. The
numbers are those of the literature (`GRADED_USERS`).

*Instance*: a user of the environment is a query, and its documents are the candidates. In a session
with more candidates than L, L of them are drawn. A query with fewer gets **blank rows**, of which
features, attraction, satisfaction and gain are 0. In the cascade a blank row changes nothing for
the documents below it, and the ideal list stays the same.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from clickgym.core.checks import (
    as_call,
    check_at_least,
    check_choice,
    check_count,
    check_flag,
    check_kind,
    check_labels,
    check_path,
    check_positions,
    entries,
    integers,
    is_integer,
    numbers,
    short,
)
from clickgym.core.sums import weighted_sums
from clickgym.envs import (
    DynamicBayesianModel,
    Instance,
    LabelledModel,
    PositionBasedModel,
)
from clickgym.runner.play.held_out import mean_ndcg

from .tables import Table

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]

EXPECTED = "expected text in UTF-8, perhaps gzipped: grade qid:Q feature:value ... # comment"
LARGEST_GRADE = 30
LARGEST_VALUE = 1e30
"""Of a feature, so that float32 holds the norm of a document."""
MISSING = 1.79e308
"""Of a value that is missing: Istella writes the largest double, 1.797...e308."""
DWARFS = 10
"""A value is a caution if it is so many times larger than all others."""
ROWS = 4096
"""Documents whose features are worked on at once."""
LINE = re.compile(r" *([^ ]+) +qid:([^ \0-\x1f]+)(?: (.*))?")
GRADE = re.compile(r"\+?[0-9]+(\.0*)?")

GRADED_USERS: Mapping[int, Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]]] = {
    2: {
        "perfect": ((0, 1), (0, 0)),
        "navigational": ((0.05, 0.95), (0.2, 0.9)),
        "informational": ((0.4, 0.9), (0.1, 0.5)),
        "near_random": ((0.4, 0.6), (0.5, 0.5)),
    },
    3: {
        "perfect": ((0, 0.5, 1), (0, 0, 0)),
        "navigational": ((0.05, 0.5, 0.95), (0.2, 0.5, 0.9)),
        "informational": ((0.4, 0.7, 0.9), (0.1, 0.3, 0.5)),
        "near_random": ((0.4, 0.5, 0.6), (0.5, 0.5, 0.5)),
    },
    5: {
        "perfect": ((0, 0.2, 0.4, 0.8, 1), (0, 0, 0, 0, 0)),
        "navigational": ((0.05, 0.3, 0.5, 0.7, 0.95), (0.2, 0.3, 0.5, 0.7, 0.9)),
        "informational": ((0.4, 0.6, 0.7, 0.8, 0.9), (0.1, 0.2, 0.3, 0.4, 0.5)),
        "near_random": ((0.4, 0.45, 0.5, 0.55, 0.6), (0.5, 0.5, 0.5, 0.5, 0.5)),
    },
}
"""By number of grades and name of the users: the probabilities, by grade, of a click on an examined
document, and of leaving satisfied after a click (Hofmann et al. 2013, Oosterhuis and de Rijke 2018;
``near_random`` is "almost random" there)."""


@dataclass(frozen=True, eq=False, repr=False)
class Judgments:
    """Judged queries with N documents of d features; those of query i are ``starts[i]`` to
    ``starts[i + 1] - 1``.

    Args:
        queries: the names of the queries, distinct texts.
        starts: ``(Q+1,)`` the first document of each query, then N. Each query has at least one
            document.
        grades: ``(N,)`` integers from 0 to 30.
        features: ``(N, d)`` finite numbers, kept as float32.
        scale: c, by which features are divided in an environment, so that no norm exceeds 1; None:
            ``max(1, largest norm) (1 + 1e-6)``.

    Raises:
        ValueError: naming the field and what was expected.

    Example:
        >>> judged = Judgments(("a", "b"), [0, 2, 3], [2, 0, 1], [[3, 4], [0, 1], [0, 0]])
        >>> judged
        Judgments(queries=2, documents=3, features=2)
        >>> round(judged.scale, 4)
        5.0
    """

    queries: tuple[str, ...]
    starts: Ints
    grades: Ints
    features: Singles
    scale: float = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        queries = check_labels("queries", self.queries)
        starts = integers("starts", self.starts, (len(queries) + 1,))
        grades = integers("grades", self.grades, (None,), 0, LARGEST_GRADE + 1)
        if starts[0] or (np.diff(starts) < 1).any() or starts[-1] != len(grades):
            expected = f"increasing numbers from 0 to the number of grades, {len(grades)}"
            raise ValueError(f"starts are {short(self.starts)}; expected {expected}")
        features = numbers(
            "features", self.features, (len(grades), None), copy=False, single=True
        ).astype(np.float32, copy=False)
        norm = max(float(weighted_sums(rows, rows).max()) for rows in _chunks(features)) ** 0.5
        if not norm < float(np.finfo(np.float32).max):
            raise ValueError("features has a number, or a row of a norm, that float32 cannot hold")
        scale = max(1.0, norm) * (1 + 1e-6)
        if self.scale is not None:
            scale = check_at_least("scale", self.scale, norm, strictly=norm == 0)
        for name, value in zip(
            ("queries", "starts", "grades", "features", "scale"),
            (queries, starts, grades, features, scale),
            strict=True,
        ):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        n, d = self.features.shape
        return as_call(self, queries=len(self.queries), documents=n, features=d)


def _chunks(features: Singles) -> Iterator[Floats]:
    """The rows of features in doubles, some at a time."""
    for first in range(0, len(features), ROWS):
        yield features[first : first + ROWS].astype(np.float64)


# ------------------------------------------------------------------------------------------ reading


def read_judgments(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    normalize: bool = False,
    n_features: int | None = None,
) -> Judgments:
    """Read judged queries from files in SVMlight format.

    Args:
        paths: a text file, perhaps gzipped, or several that are one set. A line is ``grade qid:Q
            feature:value ... # comment``, separated by blanks or tabs; the documents of a query are
            one after another, their features in any order. Empty lines and comments are skipped.
        normalize: move and scale each feature to [0, 1] within each query, with 0 for a feature
            that is constant there (all features of a query with one document).
        n_features: d; None: the largest feature number of all files. Files that are used together,
            such as of training and test, must have the same: give that of the first to the others.

    Returns:
        The queries in the order of the files.

    Raises:
        ValueError: naming file and line: no qid; a grade that is no integer from 0 to 30; a feature
            whose number is below 1 or above ``n_features``, or that appears twice; a value that is
            not finite, or above 1e30 in size; a query that goes on after another, or in another
            file; no documents.
        FileNotFoundError: there is no such file.

    Warns:
        UserWarning: the number of values that are the largest double, which stands for missing
            ones. They are read as 0.

    Source: Qin, Liu, *Introducing LETOR 4.0 datasets*, 2013.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "train.txt")
        ...     _ = file.write_text("2 qid:7 1:0.5 3:1 # best\\n0 qid:7 2:0.25\\n")
        ...     judged = read_judgments(file)
        >>> judged.features
        array([[0.5 , 0.  , 1.  ],
               [0.  , 0.25, 0.  ]], dtype=float32)
    """
    check_flag("normalize", normalize)
    if n_features is not None:
        check_count("n_features", n_features)
    is_one = isinstance(paths, str | PathLike)
    files = [paths] if is_one else entries("paths", paths, "a path, or several")
    if not files:
        raise ValueError("paths are none; expected a file")
    reader = _Reader(n_features)
    for file in files:
        reader.read(file)
    if reader.missing:
        warnings.warn(
            f"{reader.missing:,} values are the largest double, which Istella writes for missing "
            "ones; they are read as 0, like absent features",
            stacklevel=2,
        )
    starts = np.array([*reader.starts, len(reader.grades)], np.int64)
    features = reader.matrix()
    if normalize:
        for first, stop in pairwise(starts):
            query = features[first:stop].astype(np.float64)
            least, span = query.min(axis=0), np.ptp(query, axis=0)
            features[first:stop] = (query - least) / np.where(span > 0, span, 1.0)
    return Judgments(tuple(reader.queries), starts, np.array(reader.grades, np.int64), features)


class _Reader:
    """Documents that were read so far.

    Attributes:
        queries: where each query begins, in words.
        starts: the first document of each.
        grades: of all documents.
        missing: how many values are the largest double.
    """

    def __init__(self, n_features: int | None) -> None:
        self.missing = 0
        self.queries: dict[str, str] = {}
        self.starts: list[int] = []
        self.grades: list[int] = []
        self._given, self._width = n_features, n_features or 0
        self._blocks: list[Singles] = []

    def read(self, path: Any) -> None:
        """Read a file to its end."""
        path = check_path("path", path)
        if path.exists() and not path.is_file():
            raise ValueError(f"{path} is a folder, or no regular file; {EXPECTED}")
        table, self._query = Table(path, expected=EXPECTED), ""
        self._name, line, before = table.name, 1, len(self.grades)
        for block in table.blocks():
            self._read_block(line, block)
            line += len(block)
        if len(self.grades) == before:
            raise ValueError(f"{path} has no documents; {EXPECTED}")

    def matrix(self) -> Singles:
        """The features of all documents. Blocks are freed as they are copied."""
        if not self._width:
            raise ValueError(f"{self._name}: no document has a feature")
        matrix, last = np.zeros((len(self.grades), self._width), np.float32), len(self.grades)
        while self._blocks:
            block = self._blocks.pop()
            matrix[last - len(block) : last, : block.shape[1]] = block
            last -= len(block)
        return matrix

    def _refuse(self, line: int, what: str) -> None:
        raise ValueError(f"{self._name}, line {line}: {what}")

    def _read_block(self, first: int, block: list[bytes]) -> None:
        lines, rests = [], []
        for line, content in enumerate(block, first):
            try:
                text = content.decode().replace("\t", " ").rstrip("\r\n")
            except UnicodeDecodeError:
                self._refuse(line, "it is not UTF-8")
            body, has_comment, _ = text.partition("#")
            if body.strip(" "):
                lines.append(line)
                rests.append(self._read_head(line, body, bool(has_comment)))
        if lines:
            self._read_features(lines, rests)

    def _read_head(self, line: int, body: str, has_comment: bool) -> str:
        """Read grade and query of a document; return the rest of the line."""
        match = LINE.fullmatch(body)
        if match is None:
            self._refuse(line, f"no qid in {short(body)}; expected grade qid:Q feature:value ...")
        grade, query, rest = match.groups()  # type: ignore[union-attr]
        if not GRADE.fullmatch(grade) or float(grade) > LARGEST_GRADE:
            self._refuse(line, f"the grade is {short(grade)}; expected an integer from 0 to 30")
        if rest is None and has_comment:
            self._refuse(line, "a # in the qid; expected a blank before a comment")
        if query != self._query or not self.starts:
            if query in self.queries:
                self._refuse(line, f"query {short(query)} is there already, {self.queries[query]}")
            self.queries[query] = f"from {self._name}, line {line}"
            self.starts.append(len(self.grades))
            self._query = query
        self.grades.append(int(float(grade)))
        return rest or ""

    def _read_features(self, lines: list[int], rests: list[str]) -> None:
        """Read the features of the last documents, from the rests of their lines."""
        text = pl.DataFrame({"row": range(len(rests)), "pair": rests})
        pair = pl.col("pair")
        pairs = text.with_columns(pair.str.split(" ")).explode("pair").filter(pair != "")
        parts = pair.str.splitn(":", 2).struct
        pairs = pairs.with_columns(
            place=parts[0].cast(pl.UInt32, strict=False),
            value=parts[1].cast(pl.Float64, strict=False),
        )
        is_missing = (pl.col("value").abs() >= MISSING) & pl.col("value").is_finite()
        self.missing += pairs.select(is_missing.sum()).item()
        pairs = pairs.with_columns(value=pl.when(is_missing).then(0.0).otherwise("value"))
        is_good = pl.col("place").is_between(1, self._given or 2**31) & (
            pl.col("value").abs() <= LARGEST_VALUE
        )
        bad = pairs.filter(~is_good.fill_null(False)).head(1)
        for row, pair_text, place, value in bad.iter_rows():
            number = f"a feature number from 1 to {self._given or 2**31}"
            what = number if place is None or not 0 < place <= (self._given or 2**31) else ""
            if ":" not in pair_text or value is None:
                what = "feature:value"
            self._refuse(
                lines[row], f"{short(pair_text)}; expected {what or 'a finite value, at most 1e30'}"
            )
        rows, places = pairs["row"].to_numpy(), pairs["place"].to_numpy()
        if ((rows[1:] == rows[:-1]) & (places[1:] <= places[:-1])).any():
            again = pairs.filter(~pl.struct("row", "place").is_first_distinct()).head(1)
            for row, _, place, _ in again.iter_rows():
                self._refuse(lines[row], f"feature {place} appears twice")
        self._width = int(max(self._width, places.max(initial=0)))
        self._blocks.append(np.zeros((len(rests), self._width), np.float32))
        self._blocks[-1][rows, places - 1] = pairs["value"].to_numpy()


# ---------------------------------------------------------------------------------------- instances


def judged_instance(
    judgments: Judgments,
    users: str = "navigational",
    *,
    test: Judgments | None = None,
    n_items: int | None = None,
    n_positions: int = 10,
    n_grades: int | None = None,
    eta: float | None = None,
    name: str = "judged",
    origin: str = "",
) -> Instance:
    """Make a contextual instance from judged queries, for ``ContextualDBNRank-v0`` or, with
    ``eta``, for ``ContextualPBMRank-v0``.

    Args:
        judgments: the queries; one is drawn for each session, all with the same probability.
        users: who clicks: ``"perfect"``, ``"navigational"``, ``"informational"`` or
            ``"near_random"``, as in `GRADED_USERS`.
        test: held-out queries with the same features, which no user sees: those of the metric
            ``held_out_ndcg@k``. All their documents count.
        n_items: L, the number of rows of a session. From a query with more documents L are drawn. A
            query with fewer gets blank rows, which are the items from N on. None takes the largest
            number of documents of a query.
        n_positions: K.
        n_grades: 2, 3 or 5; None takes the least that holds the largest grade.
        eta: None, or η of users who examine position k with probability ``k^-η``, and click all
            that attracts them.
        name, origin: of the instance.

    Returns:
        The instance, whose features are ``x / c``, c the ``scale`` of the judgments. A learning
        rate η of the literature, for x itself, is ``PDGD:learning_rate=`` η c². Its
        ``estimation`` has c (``"scale"``) and the share of rows that are blank (``"blank"``).

    Raises:
        ValueError: unknown users; a grade above 4 or ``n_grades - 1``; fewer items than positions;
            test queries with another number of features, or without a relevant document.

    Warns:
        UserWarning: a document has a value so large that the features of all others nearly vanish
            when they are divided by c.

    Source: Oosterhuis, de Rijke, *Differentiable unbiased online learning to rank*, CIKM 2018,
        section 5.

    Example:
        >>> judged = Judgments(("a", "b"), [0, 2, 3], [2, 0, 1], [[3, 4], [0, 1], [1, 0]])
        >>> instance = judged_instance(judged, "perfect", n_positions=2)
        >>> instance.description
        '2 queries, 3 documents, 2 features; perfect users, 3 grades; 25 % of the rows are blank'
    """
    check_kind("judgments", judgments, Judgments, "Judgments, as read_judgments returns them")
    click, stop = _chances(judgments, users, n_grades)
    if caution := _dwarfing_value(judgments):
        warnings.warn(caution, stacklevel=2)
    sizes = np.diff(judgments.starts)
    n_rows = check_count("n_items", int(sizes.max()) if n_items is None else n_items)
    check_positions(n_positions, n_rows)
    n, d = judgments.features.shape
    n_blank = n_rows if sizes.min() < n_rows else 0
    n_test = 0 if test is None else _n_test(test, d)
    items = np.zeros((n + n_blank + n_test, d), np.float32)
    np.divide(judgments.features, np.float32(judgments.scale), out=items[:n])
    if test is not None:
        np.divide(test.features, np.float32(judgments.scale), out=items[n + n_blank :])
    items.flags.writeable = False  # so that it is not copied
    bounds = list(pairwise(judgments.starts))
    blanks = np.arange(n, n + n_blank)
    labels: dict[str, Any] = {
        "candidates": [
            np.concatenate([np.arange(a, b), blanks[: max(n_rows - (b - a), 0)]]) for a, b in bounds
        ],
        "gain": np.concatenate([np.exp2(judgments.grades) - 1.0, np.zeros(n_blank)]),
    }
    if test is not None:
        labels["held_out"] = [n + n_blank + np.arange(a, b) for a, b in pairwise(test.starts)]
        labels["gain"] = np.concatenate([labels["gain"], np.exp2(test.grades) - 1.0])
    grades = np.concatenate([judgments.grades, np.full(n_blank, len(click))])
    chances = (
        {"attraction": click} if eta is not None else {"attraction": click, "satisfaction": stop}
    )
    for parameter, values in chances.items():
        by_item = np.array([*values, 0.0])[grades]
        labels[parameter] = [by_item[row] for row in labels["candidates"]]
    nothing = np.zeros(n_rows)
    if eta is None:
        base: Any = DynamicBayesianModel(nothing, nothing, 1.0, n_positions=n_positions)
    else:
        eta = check_at_least("eta", eta, 0.0)
        base = PositionBasedModel(nothing, [k**-eta for k in range(1, n_positions + 1)])
    model = LabelledModel(base, items=items, **labels)
    share = float(np.maximum(n_rows - sizes, 0).sum()) / (len(sizes) * n_rows)
    what = (
        f"{len(sizes):,} queries, {n:,} documents, {d} features; {users} users, {len(click)} grades"
    )
    if eta is not None:
        what += f", position bias k^-{eta:g}"
    if test is not None:
        what += f"; {len(test.queries):,} held-out queries"
    return Instance(
        name,
        {model.kind: model},
        n_positions,
        description=f"{what}; {share:.0%} of the rows are blank".replace("%", " %"),
        origin=origin,
        estimation={"scale": judgments.scale, "blank": round(share, 4)},
    )


def _dwarfing_value(judgments: Judgments) -> str:
    """A caution if one document has a value that dwarfs those of all others; else empty."""
    largest = np.concatenate([np.abs(rows).max(axis=1) for rows in _chunks(judgments.features)])
    document = int(largest.argmax())
    others = np.delete(largest, document).max(initial=0.0)
    if not 0 < others * DWARFS < largest[document]:
        return ""
    values = judgments.features[document]
    query = np.searchsorted(judgments.starts, document, "right") - 1
    times = largest[document] / others
    return (
        f"feature {int(np.abs(values).argmax()) + 1} of a document of query "
        f"{short(judgments.queries[query])} is {times:,.0f} times as large as any value of other "
        "documents: all features are divided by the same number, so the others nearly vanish, and "
        "agents hardly learn from them; correct the value, or read with normalize=True"
    )


def _n_test(test: Judgments, n_features: int) -> int:
    """The number of documents of checked test queries."""
    check_kind("test", test, Judgments, "Judgments, as read_judgments returns them")
    n, d = test.features.shape
    if d != n_features:
        raise ValueError(
            f"the test queries have {d} features, and the judgments {n_features}; read the test "
            f"file with n_features={n_features}"
        )
    if not test.grades.any():
        raise ValueError("no test query has a relevant document")
    return n


def _chances(judgments: Judgments, users: str, n_grades: int | None) -> Any:
    """The probabilities of a click and of leaving satisfied, by grade."""
    largest = int(judgments.grades.max())
    most = max(GRADED_USERS)
    if largest >= most:
        query = np.searchsorted(judgments.starts, judgments.grades.argmax(), "right") - 1
        raise ValueError(
            f"a document of query {short(judgments.queries[query])} has the grade {largest}; "
            f"expected at most {most - 1}"
        )
    if n_grades is None:
        n_grades = next(n for n in GRADED_USERS if n > largest)
    if not is_integer(n_grades) or n_grades not in GRADED_USERS or n_grades <= largest:
        fitting = ", ".join(str(n) for n in GRADED_USERS if n > largest)
        has = f"; the largest grade is {largest}"
        raise ValueError(f"n_grades is {short(n_grades)}; expected one of {fitting}{has}")
    check_choice("users", users, GRADED_USERS[n_grades])
    return GRADED_USERS[n_grades][users]


# ----------------------------------------------------------------------------------------- held out


def held_out_ndcg(rank: Callable[[Floats], ArrayLike], judgments: Judgments, k: int = 10) -> float:
    """Return the mean nDCG@k of a ranking function over judged queries, over all their documents.

    The gain of a document is ``2^grade - 1``, the discount of position p ``1 / log2(p + 1)``.
    Queries without a relevant document are left out of the mean.

    Args:
        rank: maps features ``(n, d)`` float64 to the order of the n rows, the best first; such as
            ``agent.best`` of an agent with features. They are the features x of the file. Linear
            agents give the same order for x / c; others need x divided by the ``scale`` of the
            training set, as in the environment.
        judgments: the queries, such as a test fold.
        k: the number of positions that count.

    Raises:
        ValueError: it returned no order of the rows, or no query has a relevant document.

    Source: Järvelin, Kekäläinen, *Cumulated gain-based evaluation of IR techniques*, TOIS 2002; the
        gain is that of Burges et al., ICML 2005.

    Example:
        >>> judged = Judgments(("a", "b"), [0, 2, 3], [0, 1, 0], [[3, 4], [0, 1], [1, 0]])
        >>> round(held_out_ndcg(lambda features: range(len(features)), judged), 4)
        0.6309
    """
    check_kind("judgments", judgments, Judgments, "Judgments, as read_judgments returns them")
    check_count("k", k)
    gains = np.exp2(judgments.grades) - 1.0
    rows = zip(judgments.queries, judgments.starts[:-1], judgments.starts[1:], strict=True)
    queries = (
        (f"query {short(query)}", judgments.features[first:stop], gains[first:stop])
        for query, first, stop in rows
    )
    return mean_ndcg(rank, queries, k)
