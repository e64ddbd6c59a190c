"""The format of Yandex's Relevance Prediction Challenge 2011."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

PAGE = re.compile(rb"\d+\t\d+\tQ\t")


def is_yandex(line: bytes) -> bool:
    """Whether a log begins with a line of this format."""
    return PAGE.match(line) is not None


def yandex_table(path: Path) -> pl.DataFrame:
    """The log in a file, with one row for each URL of each query.

    Lines are tab-separated: a query ``session, time, Q, query, region, urls...`` or a click
    ``session, time, C, url``. Each query is one session of the log, labelled ``query-region``. A
    click belongs to the last query above it in its session whose list contains the URL; a click on
    another URL is left out.

    Source: Serdyukov, Craswell, Dupret, *WSCD 2012: workshop on web search click data 2012*, WSDM
        2012.
    """
    lines = pl.read_csv(path, has_header=False, separator="\t", quote_char=None)
    visit, _, kind, query, region, *urls = map(pl.col, lines.columns)
    lines = lines.with_row_index("line")
    pages = lines.filter(kind == "Q").select(
        "line",
        visit=visit,
        query=pl.concat_str(query, region, separator="-"),
        item=pl.concat_list(urls),
    )
    shown = (
        pages.with_columns(position=pl.int_ranges(1, pl.col("item").list.len() + 1))
        .explode("item", "position")
        .drop_nulls("item")
    )
    clicks = lines.filter(kind == "C").select(at="line", visit=visit, item=query)
    clicked = (
        clicks.join(shown, on=["visit", "item"])
        .filter(pl.col("line") < pl.col("at"))
        .group_by("at", "item")
        .agg(pl.col("line").max(), clicked=pl.lit(1))
        .unique(["line", "item"])
    )
    return (
        shown.join(clicked, on=["line", "item"], how="left", maintain_order="left")
        .with_columns(pl.col("clicked").fill_null(0))
        .select("query", "position", "item", "clicked", session="line")
    )
