"""``--cluster``: what the workers of a Dask cluster do is what this machine does, also if one of
them is killed.
"""

from __future__ import annotations

import os
import signal
import threading
import time

import polars
import pytest

from clickgym.__main__ import main

RUN = "run PBMRank-v0 CMRank-v0 --agents TopRank Random --horizon 5e5 --runs 3"
SHORT = "run PBMRank-v0 --agents Random --horizon 10"


@pytest.fixture(autouse=True)
def distributed():
    return pytest.importorskip("distributed")


@pytest.fixture
def cluster(distributed):
    """A scheduler and two workers, processes that are started anew when they die."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        yield cluster


@pytest.fixture
def killing(cluster, distributed):
    """Kills one worker of the cluster as soon as it works, and tells afterwards whether it did."""
    killed, ended = [], threading.Event()

    def kill():
        with distributed.Client(cluster) as client:
            while not ended.wait(0.02):
                busy = [worker for worker, tasks in client.processing().items() if tasks]
                if busy:
                    time.sleep(0.2)
                    killed.append(client.run(os.getpid, workers=busy[:1])[busy[0]])
                    os.kill(killed[0], signal.SIGKILL)
                    return

    thread = threading.Thread(target=kill)
    thread.start()
    yield killed
    ended.set()
    thread.join()
    assert killed, "no worker was killed while it worked"


def assert_results_are_those_of_this_machine(command, cluster, folder):
    tables = []
    for out, where in (("cluster", ["--cluster", cluster.scheduler_address]), ("here", [])):
        assert main([*command.split(), "--out", str(folder / out), *where]) == 0
        table = polars.read_parquet(folder / out / "results.parquet")
        tables.append(table.drop("seconds", strict=False))
    assert tables[0].equals(tables[1])


@pytest.mark.usefixtures("undrawn")
def test_workers_of_a_cluster(distributed, tmp_path):
    """They are threads here, for processes take long to start."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        assert_results_are_those_of_this_machine(f"{SHORT} --runs 3", cluster, tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn", "killing")
def test_killed_worker_of_a_cluster(cluster, tmp_path):
    """What it played is played anew by another."""
    assert_results_are_those_of_this_machine(RUN, cluster, tmp_path)


def test_cluster_that_does_not_answer(tmp_path, capsys, monkeypatch):
    """One line says so."""
    monkeypatch.setattr("clickgym.runner.workers.ANSWERS_IN", 0.5)
    words = [*SHORT.split(), "--out", str(tmp_path / "out"), "--cluster", "tcp://127.0.0.1:9"]
    assert main(words) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "no scheduler answers" in line
    assert not (tmp_path / "out").exists()


def test_cluster_without_workers(distributed, tmp_path, capsys):
    with distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=None) as empty:
        words = [*SHORT.split(), "--out", str(tmp_path), "--cluster", empty.scheduler_address]
        assert main(words) == 2
    assert "it has no workers" in capsys.readouterr().err
