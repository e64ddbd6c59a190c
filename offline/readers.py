"""Readers of click logs: the Yandex Relevance Prediction 2011 format, and tidy tables."""

from __future__ import annotations

import gzip
from os import PathLike
from pathlib import Path

import numpy as np
import polars as pl

from .log import ClickLog

__all__ = ["read_tidy", "read_yandex_relevance"]


def read_yandex_relevance(path: str | PathLike[str]) -> ClickLog:
    """Read a log in the format of Yandex's Relevance Prediction Challenge 2011.

    Lines are tab-separated: a query ``session, time, Q, query, region, urls...`` or a click ``session, time, C, url``.
    Each query is one session of the log, labelled ``query-region``. A click belongs to the last query of its session
    whose list holds the URL; a URL clicked twice counts once, clicks may come in any order, and a click on a URL that
    no list of the session holds is left out and counted in ``off_list_clicks``.

    Args:
        path: text file, gzipped if its name ends with ``.gz``.

    Raises:
        ValueError: on a malformed line, naming the file and the line.

    Source: Serdyukov, Craswell and Dupret, WSCD 2012.
    """
    path = Path(path)
    items: list[list[int]] = []
    queries: list[int] = []
    clicked: list[tuple[int, int]] = []
    item_index: dict[str, int] = {}
    query_index: dict[str, int] = {}
    session, current = "", list[dict[str, int]]()  # the URLs of each query of the session, with their positions
    off_list = 0
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        for number, line in enumerate(file, 1):
            fields = line.rstrip("\r\n").split("\t")
            where = f"{path}, line {number}"
            if len(fields) < 4 or fields[2] not in ("Q", "C"):
                raise ValueError(f"{where}: expected 'session, time, Q or C, ...' separated by tabs, got {line[:80]!r}")
            if fields[0] != session:
                session, current = fields[0], []
            if fields[2] == "C":
                if len(fields) != 4:
                    raise ValueError(f"{where}: a click has 4 fields, got {len(fields)}")
                if not current:
                    raise ValueError(f"{where}: a click before the first query of session {session}")
                for back, positions in enumerate(reversed(current), 1):
                    if fields[3] in positions:
                        clicked.append((len(items) - back, positions[fields[3]]))
                        break
                else:
                    off_list += 1
                continue
            urls = fields[5:]
            if not urls or (items and len(urls) != len(items[0])):
                expected = f"{len(items[0])}, as before" if items else "at least one"
                raise ValueError(f"{where}: a query with {len(urls)} URLs; expected {expected}")
            positions = {url: position for position, url in enumerate(urls)}
            if len(positions) != len(urls):
                raise ValueError(f"{where}: a URL stands twice on one list")
            current.append(positions)
            items.append([item_index.setdefault(url, len(item_index)) for url in urls])
            queries.append(query_index.setdefault(f"{fields[3]}-{fields[4]}", len(query_index)))
    if not items:
        raise ValueError(f"{path}: no query in the file")
    clicks = np.zeros((len(items), len(items[0])), np.int8)
    if clicked:
        clicks[tuple(np.array(clicked).T)] = 1
    return ClickLog(
        np.array(items, np.int32), clicks, np.array(queries, np.int32), tuple(item_index), tuple(query_index), off_list
    )


def read_tidy(path: str | PathLike[str], split: str | None = None) -> ClickLog:
    """Read a table with one row per session and position.

    Args:
        path: CSV file, gzipped or not, with the columns ``session``, ``query``, ``position`` (from 1), ``item``,
            ``clicked`` (0 or 1); optionally ``region``, which makes the query label ``query-region``, and ``split``.
        split: keep only the rows whose column ``split`` says so; None keeps all.

    Raises:
        ValueError: naming the file and the missing column, the bad value, or the incomplete session.
    """
    try:
        table = pl.read_csv(Path(path), infer_schema=False)
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{path} is not a CSV table: {error}") from None
    wanted = ["session", "query", "position", "item", "clicked"] + (["split"] if split is not None else [])
    for column in wanted:
        if column not in table.columns:
            raise ValueError(f"{path}: no column {column!r}; the file has {', '.join(table.columns)}")
    table = table.with_row_index("line", 2)  # the header is line 1
    if split is not None:
        table = table.filter(pl.col("split") == split)
        if table.is_empty():
            raise ValueError(f"{path}: no row with split {split!r}")
    for column, valid in (("position", r"^[1-9]\d{0,8}$"), ("clicked", r"^[01]$")):
        bad = table.filter(pl.col(column).fill_null("").str.contains(valid).not_())
        if len(bad):
            raise ValueError(f"{path}, line {bad['line'][0]}: {column} is {bad[column][0]!r}")
    if "region" in table.columns:
        table = table.with_columns(query=pl.col("query") + "-" + pl.col("region"))
    key = [column for column in ("split", "session") if column in table.columns]
    table = table.with_columns(pl.col("position").cast(pl.Int64)).sort([*key, "position"], maintain_order=True)
    n_positions = int(table["position"].max())  # type: ignore[arg-type]
    shape = (-1, n_positions)
    session = table.select(pl.concat_str(key, separator=" ")).to_series().to_numpy()
    # Complete sessions are blocks of K rows with the positions 1..K, each of one session; find the first that is not.
    expected = np.arange(len(table)) % n_positions + 1
    start = session[np.arange(len(table)) - expected + 1]
    broken = np.flatnonzero((table["position"].to_numpy() != expected) | (session != start))
    if len(broken) or len(table) % n_positions:
        row = int(broken[0]) if len(broken) else len(table) - 1
        raise ValueError(
            f"{path}, near line {table['line'][row]}: session {start[row]} does not have each position from 1 to "
            f"{n_positions} exactly once"
        )
    labels, codes = {}, {}
    for column in ("item", "query"):
        labels[column], codes[column] = np.unique(table[column].to_numpy(), return_inverse=True)
    items, queries = codes["item"].reshape(shape), codes["query"].reshape(shape)
    for array, fault in (
        (np.diff(np.sort(items)) == 0, "shows an item twice"),
        (np.diff(queries) != 0, "has two queries"),
    ):
        if array.any():
            row = int(np.argmax(array.any(axis=1))) * n_positions
            raise ValueError(f"{path}, near line {table['line'][row]}: session {session[row]} {fault}")
    return ClickLog(
        items.astype(np.int32),
        table["clicked"].cast(pl.Int8).to_numpy().reshape(shape),
        queries[:, 0].astype(np.int32),
        tuple(labels["item"].tolist()),
        tuple(labels["query"].tolist()),
    )
