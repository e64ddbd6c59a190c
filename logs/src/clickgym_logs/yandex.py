"""The format of Yandex's Relevance Prediction Challenge 2011."""

from __future__ import annotations

import re
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clickgym.core.checks import check_path

from .log import ClickLog
from .tables import Table, coded

YANDEX = re.compile(rb"\d+\t\d+\tQ\t")
"""How a log begins."""
LINE = re.compile(rb"\d+\t\d+\t[QC](\t\d+)+")


def read_yandex(path: str | PathLike[str]) -> ClickLog:
    """Read a log in the format of Yandex's Relevance Prediction Challenge 2011.

    Lines are tab-separated: a query ``session, time, Q, query, region, urls...`` or a click
    ``session, time, C, url``. All fields but the letter are decimal numbers. Each query is one
    session of the log, labelled ``query-region``. A click belongs to the last query above it in its
    session whose list contains the URL, and a URL clicked twice counts once. A click on another URL
    is left out. The times are those since the beginning of each session, so that the log has none.

    Args:
        path: text file, gzipped if its name ends with ``.gz``.

    Raises:
        ValueError: on a malformed line, naming the file, the line and the reason.

    Source: Serdyukov, Craswell, Dupret, *WSCD 2012: workshop on web search click data 2012*, WSDM
        2012.
    """
    path = check_path("path", path)
    content = Table(path).content()
    width = content.partition(b"\n")[0].count(b"\t") + 1
    schema: dict[str, Any] = {f"column_{j + 1}": pl.Int64 for j in range(width)}
    schema["column_3"] = pl.String
    expected = (
        "expected a click 'session, time, C, url', or a query 'session, time, Q, query, region' "
        f"and {width - 5} URLs, as in the first line"
    )
    try:
        lines = pl.read_csv(
            content, has_header=False, separator="\t", quote_char=None, schema=schema
        )
    except pl.exceptions.PolarsError:
        texts = content.splitlines()
        right = [LINE.fullmatch(text) and text.count(b"\t") < width for text in texts]
        _check_lines(path, np.array(right, np.bool_), expected)
        raise ValueError(f"{path}: a number has more than 18 digits") from None
    letters = lines["column_3"].fill_null("")
    is_page, is_click = (letters == "Q").to_numpy(), (letters == "C").to_numpy()
    # session, time, then of a page: query, region and URLs; of a click: its URL. -1 is nothing.
    numbers = lines.drop("column_3").fill_null(-1).to_numpy()
    n_fields = (numbers >= 0).sum(axis=1)
    right = (is_page & (n_fields == width - 1)) | (
        is_click & (n_fields == 3) & (numbers[:, 2] >= 0)
    )
    _check_lines(path, right, expected)
    # Of each line the run of lines of one session, and the last page above it.
    first = np.diff(numbers[:, 0], prepend=-1) != 0
    _check_lines(path, ~(first & is_click), "a click before the first query of its session")
    run, above = first.cumsum(), is_page.cumsum() - 1
    pages, urls, run_of_page = numbers[is_page, 2:4], numbers[is_page, 4:], run[is_page]
    clicked_url, page, run_of_click = numbers[is_click, 2], above[is_click], run[is_click]
    clicked = np.zeros(urls.shape, np.int8)
    while len(page):  # what the last page above does not show is looked for on the one before
        alike = urls[page] == clicked_url[:, None]
        rows, positions = np.nonzero(alike)
        clicked[page[rows], positions] = 1
        page = page - 1
        lost = ~alike.any(axis=1)
        elsewhere = lost & (page >= 0) & (run_of_page[page] == run_of_click)
        page, clicked_url, run_of_click = (
            part[elsewhere] for part in (page, clicked_url, run_of_click)
        )
    items, item_labels = coded(pl.Series(urls.ravel()))
    names = pl.DataFrame(pages, schema=["query", "region"])
    queries, query_labels = coded(
        names.select(pl.concat_str("query", "region", separator="-")).to_series()
    )
    return ClickLog(items.reshape(urls.shape), clicked, queries, item_labels, query_labels)


def _check_lines(path: Path, right: NDArray[np.bool_], what: str) -> None:
    if not right.all():
        raise ValueError(f"{path}, line {int(np.argmin(right)) + 1}: {what}")
