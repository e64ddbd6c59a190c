"""Judged queries, which are documents with relevance grades and features, and users who click
according to the grades.

*Files* have the SVMlight format of LETOR, MSLR, Yahoo and Istella, ``grade qid:Q i:v ... #
comment``: each line is a document, and the documents of a query are on consecutive lines. Features
are numbered from 1. A feature is 0 if it is absent, or if its value is the largest double, which
stands for a missing value in Istella.

*Users* click an examined document with a probability that depends on the document's grade. After a
click, they leave satisfied with another probability, which also depends on the grade. This is a
dynamic Bayesian network model with perseverance 1. The probabilities come from the literature (see
`GRADED_USERS`).

*Instance*: in each session, a user issues one of the queries, and the query's documents are the
candidates. If a query has more than L documents, L of them are drawn for each session. If a query
has fewer, the session gets **blank rows**, whose features, attraction, satisfaction and gain are 0.
Because users read from the top, a blank row changes nothing for the documents below it, and the
ideal list stays the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from os import PathLike
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from ..core.checks import (
    as_integers,
    as_numbers,
    check_choice,
    check_count,
    check_kind,
    check_labels,
    check_path,
    check_positions,
    is_sequence,
)
from ..core.files import one_line_errors
from ..core.messages import as_call, short_repr, value_error
from ..core.state import Floats, Ints
from ..core.sums import weighted_sums
from ..envs import ContextualModel, DynamicBayesianModel, Instance
from ..measure.metrics import mean_ndcg
from .reading import label_text, open_unzipped

Singles = NDArray[np.float32]

EXPECTED = "expected lines of the form: grade qid:Q feature:value ... # comment"
LINE_START = r"^(\d{1,2})(?:\.0*)?\s+qid:(\S+)"
"""The beginning of a line: the grade and the query. The name of a query may contain #, because
comments come later in the line.
"""
MAX_FEATURE_NUMBER = 10_000
"""The largest feature number that is allowed if ``n_features`` is not given. Because features fill
a dense table, a larger number could exhaust the memory.
"""
MISSING = 1.79e308
"""The smallest feature value that is read as missing. Istella writes the largest double,
1.797...e308, for a missing value.
"""
MAX_FEATURE = float(np.finfo(np.float32).max)
"""The largest absolute value of a feature, because features are stored as float32."""
BYTES_PER_READ = 2**22
"""The number of bytes of a file that are read at a time."""
ROWS_AT_ONCE = 4096
"""The number of documents whose features are processed at a time."""
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
"""The users, by the number of grades and by the users' name. Each entry has two tuples with a
probability for each grade: of a click on an examined document, and of leaving satisfied after a
click. The probabilities come from Hofmann et al. 2013 and from Oosterhuis and de Rijke 2018, where
``near_random`` is called "almost random".
"""


@dataclass(frozen=True, eq=False, repr=False)
class Judgments:
    """A set of judged queries, with N documents of d features. Query i has the documents
    ``starts[i]`` to ``starts[i + 1] - 1``.

    Args:
        queries: the names of the queries, as distinct strings.
        starts: ``(Q+1,)`` the index of each query's first document, followed by N. Each query has
            at least one document.
        grades: ``(N,)`` non-negative integers: the relevance grade of each document.
        features: ``(N, d)`` finite numbers, stored as float32.

    Attributes:
        scale: c, the number by which an environment divides all features, so that no document's
            feature vector has a norm above 1.

    Raises:
        ValueError: an argument is invalid; the message names the argument and what was expected.

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

    def __post_init__(self) -> None:
        queries = check_labels("queries", self.queries)
        starts = as_integers("starts", self.starts, (len(queries) + 1,))
        grades = as_integers("grades", self.grades, (None,), 0)
        if starts[0] or (np.diff(starts) < 1).any() or starts[-1] != len(grades):
            expected = f"increasing numbers from 0 to the number of grades, {len(grades)}"
            raise ValueError(f"starts are {short_repr(self.starts)}; expected {expected}")
        shape = (len(grades), None)
        features = as_numbers("features", self.features, shape, copy=False, allow_float32=True)
        object.__setattr__(self, "queries", queries)
        object.__setattr__(self, "starts", starts)
        object.__setattr__(self, "grades", grades)
        object.__setattr__(self, "features", features.astype(np.float32, copy=False))

    @cached_property
    def scale(self) -> float:
        chunks = range(0, len(self.features), ROWS_AT_ONCE)
        rows = (self.features[first : first + ROWS_AT_ONCE].astype(np.float64) for first in chunks)
        norm = max(float(weighted_sums(part, part).max()) for part in rows) ** 0.5
        return max(1.0, norm) * (1 + 1e-6)

    def __repr__(self) -> str:
        n, d = self.features.shape
        return as_call(self, queries=len(self.queries), documents=n, features=d)


# ------------------------------------------------------------------------------------------ reading


def read_judgments(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    normalize: bool = False,
    n_features: int | None = None,
) -> Judgments:
    """Read judged queries from files in the SVMlight format.

    Args:
        paths: a text file, which may be gzipped, or several files that form one set. A line is
            ``grade qid:Q feature:value ... # comment``, separated by spaces or tabs. The documents
            of a query must be on consecutive lines; the features of a document may be in any order.
            Empty lines and comments are skipped.
        normalize: whether each feature is shifted and scaled to [0, 1] within each query. A feature
            that is constant within a query becomes 0, so all features of a query with a single
            document become 0.
        n_features: d, the number of features; by default, the largest feature number in the files,
            which must not exceed 10,000. Training and test files that are used together must have
            the same d, so pass the d of the training files when you read the test files.

    Returns:
        The judged queries, in the order of the files.

    Raises:
        ValueError: a file has no documents; a line has no qid; a grade is not an integer from 0 to
            99; a feature's number is below 1 or above ``n_features``, or occurs twice in a line; a
            value is not a number that fits in float32; or the documents of a query are not on
            consecutive lines. The message names the file and the line.
        FileNotFoundError: a file does not exist.

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
    most = MAX_FEATURE_NUMBER if n_features is None else check_count("n_features", n_features)
    heads, blocks = list[pl.DataFrame](), list[Singles]()
    files: Any = paths if is_sequence(paths) else [paths]
    for path in [check_path("paths", file) for file in files]:
        with one_line_errors(path, "cannot be read", EXPECTED), open_unzipped(path) as file:
            line, n_blocks = 1, len(blocks)
            while block := file.readlines(BYTES_PER_READ):
                documents, features = _documents(block, line, most)
                line += len(block)
                if len(features):
                    heads.append(documents.select(pl.lit(str(path)), "line", "query", "grade"))
                    blocks.append(features)
            if len(blocks) == n_blocks:
                raise ValueError("the file has no documents")
    if not blocks:
        raise ValueError("paths is empty; pass at least one file")
    documents = pl.concat(heads)
    begins = pl.col("query").ne_missing(pl.col("query").shift())
    query_starts = documents.with_row_index().filter(begins)
    for _, file, line, query, _ in query_starts.filter(~pl.col("query").is_first_distinct()).rows():
        raise ValueError(
            f"{file}: line {line}: the documents of query {query!r} are not on consecutive lines"
        )
    starts = np.append(query_starts["index"].to_numpy(), len(documents)).astype(np.int64)
    width = n_features or max(block.shape[1] for block in blocks)
    if not width:
        raise ValueError(f"{short_repr(paths)}: no document has a feature; {EXPECTED}")
    features, row = np.zeros((len(documents), width), np.float32), 0
    for part in blocks:
        features[row : row + len(part), : part.shape[1]] = part
        row += len(part)
    if normalize:
        for first, stop in pairwise(starts):
            rows = features[first:stop].astype(np.float64)
            least, span = rows.min(axis=0), np.ptp(rows, axis=0)
            features[first:stop] = (rows - least) / np.where(span > 0, span, 1.0)
    return Judgments(tuple(query_starts["query"]), starts, documents["grade"].to_numpy(), features)


def _documents(lines: list[bytes], first: int, most: int) -> tuple[pl.DataFrame, Singles]:
    """Parse lines of a file of judgments.

    Args:
        lines: the lines, including their line ends.
        first: the line number of the first line.
        most: the largest allowed feature number.

    Returns:
        A table with the line number, the query and the grade of each document; and an array with
        one row of features for each document.
    """
    text, head = pl.col("text"), pl.col("text").str.extract_groups(LINE_START).struct
    documents = (
        pl.DataFrame({"text": [line.decode(errors="replace").strip() for line in lines]})
        .with_row_index("line", first)
        .filter(~text.str.contains("^(#|$)"))
        .with_row_index("row")
        .with_columns(grade=head[0].cast(pl.Int64), query=head[1])
    )
    documents = documents.with_columns(query=label_text(documents["query"]))
    _raise_for_first(documents.filter(pl.col("query").is_null()), "text")
    features_text = text.str.replace(LINE_START, "").str.splitn("#", 2)
    pair = pl.col("pair").str.splitn(":", 2)
    value = pair.struct[1].cast(pl.Float64, strict=False)
    pairs = (
        documents.select(
            "row",
            "line",
            pair=features_text.struct[0].str.replace_all("\t", " ", literal=True).str.split(" "),
        )
        .explode("pair")
        .filter(pl.col("pair") != "")
        .with_columns(
            number=pair.struct[0].cast(pl.UInt32, strict=False),
            value=pl.when(value.is_finite() & (value.abs() >= MISSING)).then(0.0).otherwise(value),
        )
    )
    is_right = pl.col("number").is_between(1, most) & (pl.col("value").abs() <= MAX_FEATURE)
    _raise_for_first(pairs.filter(~is_right.fill_null(value=False)), "pair")
    rows, numbers, values = (pairs[name].to_numpy() for name in ("row", "number", "value"))
    features = np.zeros((len(documents), int(numbers.max(initial=0))), np.float32)
    is_given = np.zeros(features.shape, bool)
    is_given[rows, numbers - 1] = True
    if is_given.sum() < len(rows):
        again = pairs.filter(~pl.struct("row", "number").is_first_distinct())
        line, number = again.select("line", "number").row(0)
        raise ValueError(f"line {line} has feature {number} twice")
    features[rows, numbers - 1] = values
    return documents.select("line", "query", "grade"), features


def _raise_for_first(invalid: pl.DataFrame, column: str) -> None:
    """Raise a ValueError for the first invalid line or feature, if there is one."""
    for line, text in invalid.head(1).select("line", column).rows():
        raise ValueError(f"line {line} has {short_repr(text)}")


# ---------------------------------------------------------------------------------------- instances


def judged_instance(
    judgments: Judgments,
    users: str = "navigational",
    *,
    test: Judgments | None = None,
    n_items: int | None = None,
    n_positions: int = 10,
    n_grades: int | None = None,
    name: str = "judged",
    origin: str = "",
) -> Instance:
    """Make a contextual instance from judged queries, for the environment ``ContextualDBNRank-v0``.

    Args:
        judgments: the judged queries. Each session draws one query, all with the same probability.
        users: the name of users in `GRADED_USERS`, which determines how users click: ``"perfect"``,
            ``"navigational"``, ``"informational"`` or ``"near_random"``.
        test: held-out queries with the same features, for the metric ``held_out_ndcg@k``. Simulated
            users never issue these queries, and the metric ranks all documents of each query.
        n_items: L, the number of rows in a session; by default, the number of documents of the
            largest query. If a query has more documents, each session draws L of them. If a query
            has fewer documents, its sessions get blank rows, which are the items from number N on.
        n_positions: K, the number of positions on a list.
        n_grades: the number of grades: 2, 3 or 5. Pass this number if the queries are only a part
            of a data set, and lack the largest grades of the data set. By default, the smallest of
            the three numbers that covers all grades in the queries.
        name, origin: the instance's name, and a text that says where the instance comes from.

    Returns:
        The instance. Its features are ``x / c``, where x are the judgments' features and c is their
        ``scale``. A learning rate η from the literature, which is meant for x itself, therefore
        becomes ``PDGD:learning_rate=`` η c². The instance's ``estimation`` contains c (``"scale"``)
        and the share of rows that are blank (``"blank"``).

    Raises:
        ValueError: the name of the users is unknown; a grade is above 4 or above ``n_grades - 1``;
            there are fewer items than positions; or the test queries have a different number of
            features.

    Warns:
        UserWarning: a test query has the same name as a training query.

    Source: Oosterhuis, de Rijke, *Differentiable unbiased online learning to rank*, CIKM 2018,
        section 5.

    Example:
        >>> judged = Judgments(("a", "b"), [0, 2, 3], [2, 0, 1], [[3, 4], [0, 1], [1, 0]])
        >>> instance = judged_instance(judged, "perfect", n_positions=2)
        >>> instance.description
        '2 queries, 3 documents, 2 features; perfect users, 3 grades; 25 % of the rows are blank'
    """
    check_kind("judgments", judgments, Judgments, "Judgments, as read_judgments returns them")
    click, stop = _law_of_users(users, int(judgments.grades.max()), n_grades)
    sizes = np.diff(judgments.starts)
    n_rows = check_count("n_items", int(sizes.max()) if n_items is None else n_items)
    check_positions(n_positions, n_rows)
    n, d = judgments.features.shape
    n_blank = n_rows if sizes.min() < n_rows else 0
    if test is not None and test.features.shape[1] != d:
        raise ValueError(
            f"the test queries have {test.features.shape[1]} features, but the judgments have "
            f"{d}; read the test file with read_judgments(..., n_features={d})"
        )
    if test is not None:
        _warn_of_known_queries(judgments, test)
    zeros = np.zeros(n_rows)
    model = ContextualModel(
        DynamicBayesianModel(zeros, zeros, 1.0, n_positions=n_positions),
        _scaled_features(judgments, n_blank, test),
        **_arguments_of_model(judgments, test, (click, stop), n_rows, n_blank),
    )
    share = float(np.maximum(n_rows - sizes, 0).sum()) / (len(sizes) * n_rows)
    summary = (
        f"{len(sizes):,} queries, {n:,} documents, {d} features; {users} users, {len(click)} grades"
    )
    if test is not None:
        summary += f"; {len(test.queries):,} held-out queries"
    return Instance(
        name,
        {model.kind: model},
        n_positions,
        description=f"{summary}; {share:.0%} of the rows are blank".replace("%", " %"),
        origin=origin,
        estimation={"scale": judgments.scale, "blank": round(share, 4)},
    )


def _warn_of_known_queries(judgments: Judgments, test: Judgments) -> None:
    """Warn if test queries have the same names as training queries."""
    known = set(judgments.queries)
    if both := [query for query in test.queries if query in known]:
        warnings.warn(
            f"{len(both):,} of {len(test.queries):,} test queries have the name of a training "
            f"query, such as {short_repr(both[0])}; if they are the same queries, held_out_ndcg "
            "is not measured on new queries",
            stacklevel=3,
        )


def _law_of_users(
    users: str, largest: int, n_grades: int | None
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the click probabilities of users by grade, and their probabilities of leaving
    satisfied after a click by grade.

    Args:
        users: the name of users in `GRADED_USERS`.
        largest: the largest grade in the judgments.
        n_grades: the number of grades; see `judged_instance`.
    """
    if largest >= max(GRADED_USERS):
        raise ValueError(
            f"the largest grade is {largest}; expected at most {max(GRADED_USERS) - 1}"
        )
    numbers_of_grades = [n for n in GRADED_USERS if n > largest]
    if n_grades is not None and n_grades not in numbers_of_grades:
        raise value_error("n_grades", n_grades, f"one of {numbers_of_grades}")
    table = GRADED_USERS[n_grades or numbers_of_grades[0]]
    return table[check_choice("users", users, table)]


def _arguments_of_model(
    judgments: Judgments,
    test: Judgments | None,
    laws: tuple[Sequence[float], Sequence[float]],
    n_rows: int,
    n_blank: int,
) -> dict[str, Any]:
    """Return the candidates, parameters and gains as arguments of a `ContextualModel`, whose items
    are in the order of `_scaled_features`.

    Args:
        judgments, test: the judged queries, and the held-out queries.
        laws: the probabilities, by grade, of a click and of leaving satisfied after a click.
        n_rows: the smallest number of candidates of a query. Queries with fewer documents get blank
            items.
        n_blank: the number of blank items.
    """
    n = len(judgments.grades)
    blanks = np.arange(n, n + n_blank)
    candidates = [
        np.concatenate([np.arange(first, stop), blanks[: max(n_rows - (stop - first), 0)]])
        for first, stop in pairwise(judgments.starts)
    ]
    grades = np.concatenate([judgments.grades, np.full(n_blank, len(laws[0]))])
    attraction, satisfaction = (np.array([*values, 0.0])[grades] for values in laws)
    gain = np.concatenate([np.exp2(judgments.grades) - 1.0, np.zeros(n_blank)])
    arguments: dict[str, Any] = {
        "candidates": candidates,
        "attraction": [attraction[row] for row in candidates],
    }
    if test is not None:
        arguments["held_out"] = [
            n + n_blank + np.arange(first, stop) for first, stop in pairwise(test.starts)
        ]
        gain = np.concatenate([gain, np.exp2(test.grades) - 1.0])
        satisfaction = np.append(satisfaction, np.zeros(len(test.grades)))
    return arguments | {"gain": gain, "satisfaction": satisfaction}


def _scaled_features(judgments: Judgments, n_blank: int, test: Judgments | None) -> Singles:
    """Return the features of all items in an instance, divided by the judgments' scale. The items
    are the documents, then the blank rows, and then the documents of the test queries.
    """
    n, d = judgments.features.shape
    n_test = 0 if test is None else len(test.grades)
    items = np.zeros((n + n_blank + n_test, d), np.float32)
    np.divide(judgments.features, np.float32(judgments.scale), out=items[:n])
    if test is not None:
        np.divide(test.features, np.float32(judgments.scale), out=items[n + n_blank :])
    items.flags.writeable = False  # so that `ContextualModel` does not copy the array
    return items


# ----------------------------------------------------------------------------------------- held out


def held_out_ndcg(rank: Callable[[Floats], ArrayLike], judgments: Judgments, k: int = 10) -> float:
    """Return the mean nDCG@k of a function that ranks all documents of each judged query.

    The gain of a document is ``2^grade - 1``, and the discount of position p is ``1 / log2(p +
    1)``. Queries without a relevant document do not count in the mean.

    Args:
        rank: a function that takes ``(n, d)`` float64 features and returns the order of the n rows,
            best first; for example, ``agent.best`` of an agent that ranks by features. The function
            gets the features x of the judgments. Linear agents return the same order for x as for x
            / c; for other agents, divide x by c, the ``scale`` of the training set, as the
            environment does.
        judgments: the judged queries, for example those of a test file.
        k: the number of positions that count, from the top.

    Raises:
        ValueError: ``rank`` did not return an order of the rows, or no query has a relevant
            document.

    Source: Järvelin, Kekäläinen, *Cumulated gain-based evaluation of IR techniques*, TOIS 2002; the
        gain comes from Burges et al., ICML 2005.

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
        (f"query {short_repr(query)}", judgments.features[first:stop], gains[first:stop])
        for query, first, stop in rows
    )
    return mean_ndcg(rank, queries, k)
