"""``--cluster``: what the workers of a Dask cluster do is what this machine does, also if one of
them is killed.
"""

from __future__ import annotations

import polars
import pytest

import clickgym
from clickgym.__main__ import main

distributed = pytest.importorskip("distributed")


def run(out, *more):
    words = [
        "PBMRank-v0",
        "CMRank-v0",
        "--agents",
        "TopRank",
        "Random",
        "--horizon",
        "5e5",
        "--runs",
        "3",
        "--out",
        str(out),
    ]
    assert main(["run", *words, *more]) == 0
    return clickgym.Results(out).frame


def tune(out, *more):
    words = [
        "EpsilonGreedy",
        "--environments",
        "PBMRank-v0",
        "--trials",
        "8",
        "--horizon",
        "1e7",
        "--runs",
        "2",
    ]
    assert main(["tune", *words, "--out", str(out), *more]) == 0
    return polars.read_csv(out / "trials.csv")


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("command", ["run", "tune"])
def test_killed_worker_of_a_cluster(cluster, killing, tmp_path, command):
    """Results are those of this machine, though a worker is killed."""
    made = {"run": run, "tune": tune}[command]
    on_cluster = made(tmp_path / "cluster", "--cluster", cluster.scheduler_address)
    here = made(tmp_path / "here", "--jobs", "1")
    assert on_cluster.equals(here)


def short_run(out):
    """The words of a run of ten sessions."""
    words = ["run", "PBMRank-v0", "--agents", "Random", "--horizon", "10"]
    return [*words, "--out", str(out)]


def test_an_address_at_which_nobody_answers_is_told_in_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("clickgym.core.workers.ANSWERS_IN", 0.5)
    assert main([*short_run(tmp_path / "out"), "--cluster", "tcp://127.0.0.1:9"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "no scheduler answers" in line
    assert not (tmp_path / "out").exists()


def test_a_cluster_without_workers_is_told_in_one_line(tmp_path, capsys):
    with distributed.LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address=":0") as empty:
        assert main([*short_run(tmp_path / "out"), "--cluster", empty.scheduler_address]) == 2
    assert (
        "it has no workers; start some with: dask worker tcp://127.0.0.1" in capsys.readouterr().err
    )
