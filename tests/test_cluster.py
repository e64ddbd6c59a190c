"""``--cluster``: what the workers of a Dask cluster do is what this machine does."""

from __future__ import annotations

import polars
import pytest

from clickgym.__main__ import main

SHORT = "run PBMRank-v0 --agents Random --horizon 10"


@pytest.fixture(autouse=True)
def distributed():
    return pytest.importorskip("distributed")


@pytest.mark.usefixtures("undrawn")
def test_workers_of_a_cluster(distributed, tmp_path):
    """They are threads here, for processes take long to start."""
    tables = []
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        for out, where in (("cluster", ["--cluster", cluster.scheduler_address]), ("here", [])):
            words = [*SHORT.split(), "--runs", "3", "--out", str(tmp_path / out), *where]
            assert main(words) == 0
            table = polars.read_parquet(tmp_path / out / "results.parquet")
            tables.append(table.drop("seconds", strict=False))
    assert tables[0].equals(tables[1])


def test_a_cluster_that_does_not_work_is_said(distributed, tmp_path, refused, monkeypatch):
    """Nobody answers, or there are no workers."""
    monkeypatch.setattr("clickgym.runner.workers.ANSWERS_IN", 0.5)
    words = [*SHORT.split(), "--out", str(tmp_path / "out"), "--cluster"]
    assert "no scheduler answers" in refused([*words, "tcp://127.0.0.1:9"])
    with distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=None) as empty:
        assert "it has no workers" in refused([*words, empty.scheduler_address])
    assert not (tmp_path / "out").exists()
