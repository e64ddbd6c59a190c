"""The real log."""

import os
from pathlib import Path

import polars as pl
import pytest

from clickgym.logs import read_log


@pytest.fixture(scope="session")
def data_folder():
    """The folder of real click logs, which the project does not contain."""
    folder = Path(os.environ.get("CLICKGYM_DATA", Path(__file__).parents[2] / "shared" / "data"))
    return folder if folder.is_dir() else pytest.skip("CLICKGYM_DATA names no folder of real logs")


@pytest.fixture(scope="session")
def yandex(data_folder):
    """Sessions to learn from, and sessions to be predicted."""
    path = data_folder / "yandex_sample" / "yandex_sample_tidy.csv.gz"
    if not path.is_file():
        pytest.skip(f"no real log: {path} is absent")
    table = pl.read_csv(path, infer_schema=False).with_columns(
        query=pl.concat_str("query", pl.lit("-"), "region")
    )
    return tuple(read_log(table.filter(pl.col("split") == part)) for part in ("train", "test"))


@pytest.fixture
def log_file(tmp_path):
    """Writes a file in the test's folder, of which the name and the content are given; returns its
    path.
    """

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write
