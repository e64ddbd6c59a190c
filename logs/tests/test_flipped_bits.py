"""A flipped bit in a log or in ratings is refused in one line that names the file, or read."""

from __future__ import annotations

import numpy as np
import pytest
from bit_flips import Kind, flipped

from clickgym_logs import ClickLog, read_log, read_ratings, write_tidy


@pytest.mark.parametrize("name", ["log.csv", "log.parquet"])
def test_logs(tmp_path, name):
    items = np.random.default_rng(0).permuted(np.tile(np.arange(4), (100, 1)), axis=1)[:, :3]
    log = ClickLog(items, items == 0, [0] * 100, tuple("abcd"), ("q",))
    write_tidy(log, tmp_path / name)
    kind = Kind((tmp_path / name,), lambda path: read_log(path).to_frame().rows())
    assert "broken" not in {result for result, _ in flipped(kind, 15, seed=1)}


def test_ratings(tmp_path):
    rows = [f"{user},{item},{user * item % 5 + 1}" for user in range(9) for item in range(9)]
    (tmp_path / "ratings.csv").write_text("\n".join(["userId,movieId,rating", *rows, ""]))
    kind = Kind((tmp_path / "ratings.csv",), lambda path: read_ratings(path).rows())
    assert "broken" not in {result for result, _ in flipped(kind, 15, seed=1)}
