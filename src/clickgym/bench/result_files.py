"""Shipped result files: Parquet files whose metadata names the version, the commit and the command
that made them.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars

from ..core.files import write_whole

METADATA_KEY = "clickgym"
"""The key of clickgym's metadata in a Parquet file."""


def write_results(path: Path, table: polars.DataFrame, provenance: Mapping[str, Any]) -> None:
    """Write a table atomically.

    Args:
        path: the file.
        table: the results.
        provenance: what made the results, such as a command and a version; must fit into JSON.
    """
    content = io.BytesIO()
    metadata = {METADATA_KEY: json.dumps(provenance)}
    table.write_parquet(content, compression="zstd", compression_level=19, metadata=metadata)
    write_whole(path, content.getvalue())


def read_results(path: Path) -> tuple[polars.DataFrame, dict[str, Any]]:
    """Return the table and the metadata in a file that `write_results` wrote.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file holds something else, or is damaged.
    """
    try:
        provenance = polars.read_parquet_metadata(path)[METADATA_KEY]
        return polars.read_parquet(path, memory_map=False), json.loads(provenance)
    except (KeyError, polars.exceptions.PolarsError):
        raise ValueError(
            f"{path} is not a file with results of clickgym bench, or is damaged"
        ) from None
