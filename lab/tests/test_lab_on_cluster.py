"""``--cluster`` of the lab's commands."""

import pytest

from clickgym.command_line import main
from clickgym_lab.results import read_results

pytest.importorskip("distributed")
STUDY = "study bubble-fig3 --scale 0.0005 --instances yandex-990 yandex-9982"
FILES = {STUDY: "bubble-fig3.parquet", "bench TopRank --quick": "TopRank.parquet"}


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("command", FILES)
def test_results_are_those_of_this_machine_if_a_worker_is_killed(
    cluster, killing, tmp_path, command
):
    places = {"cluster": ["--cluster", cluster.scheduler_address], "here": ["--jobs", "1"]}
    tables = []
    for name, options in places.items():
        assert main([*command.split(), "--out", str(tmp_path / name), *options]) == 0
        table, _ = read_results(tmp_path / name / FILES[command])
        tables.append(table.drop("seconds", strict=False))
    assert tables[0].equals(tables[1])


@pytest.mark.parametrize("command", FILES)
def test_cluster_that_does_not_answer(command, refused, tmp_path, monkeypatch):
    """It is asked before anything is played."""
    monkeypatch.setattr("clickgym.runner.workers.ANSWERS_IN", 0.5)
    words = [*command.split(), "--out", str(tmp_path / "out"), "--cluster", "tcp://127.0.0.1:9"]
    assert "no scheduler answers" in refused(words)
    assert not list(tmp_path.rglob("*.parquet"))
