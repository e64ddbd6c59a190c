"""Result files that ship: one Parquet file with the version, the commit and the command that made
it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars

from ..core.files import write_whole

MADE = "clickgym"
"""The key of the metadata."""


def write_results(path: Path, table: polars.DataFrame, made: Mapping[str, Any]) -> None:
    """Write a table whole, or not at all.

    Args:
        path: the file.
        table: its numbers.
        made: what made it, as JSON can hold it.
    """
    content = io.BytesIO()
    metadata = {MADE: json.dumps(made)}
    table.write_parquet(content, compression="zstd", compression_level=19, metadata=metadata)
    write_whole(path, content.getvalue())


def read_results(path: Path) -> tuple[polars.DataFrame, dict[str, Any]]:
    """The table of a file that `write_results` wrote, and what made it.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it holds something else, or is damaged.
    """
    try:
        made = polars.read_parquet_metadata(path)[MADE]
        return polars.read_parquet(path, memory_map=False), json.loads(made)
    except (KeyError, polars.exceptions.PolarsError):
        raise ValueError(f"{path} holds no results, or is damaged") from None
