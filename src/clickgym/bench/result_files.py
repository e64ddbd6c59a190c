"""Results files of the scorecard: Parquet files with metadata that says how the results were
produced.
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
"""The key of clickgym's own metadata in a Parquet file."""


def write_results(path: Path, table: polars.DataFrame, provenance: Mapping[str, Any]) -> None:
    """Write a table of results to a Parquet file atomically, with the provenance of the results.

    Args:
        path: the path of the file.
        table: the results.
        provenance: how the results were produced, for example by which command and version. The
            values must be serialisable as JSON.
    """
    content = io.BytesIO()
    metadata = {METADATA_KEY: json.dumps(provenance)}
    table.write_parquet(content, compression="zstd", compression_level=19, metadata=metadata)
    write_whole(path, content.getvalue())


def read_results(path: Path) -> tuple[polars.DataFrame, dict[str, Any]]:
    """Return the table and the provenance in a file that `write_results` wrote.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: the file was not written by `write_results`, or is damaged.
    """
    try:
        provenance = polars.read_parquet_metadata(path)[METADATA_KEY]
        return polars.read_parquet(path, memory_map=False), json.loads(provenance)
    except (KeyError, polars.exceptions.PolarsError):
        raise ValueError(f"{path} is not a results file of clickgym bench, or is damaged") from None
