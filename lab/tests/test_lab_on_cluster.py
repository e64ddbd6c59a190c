"""``--cluster`` of the lab's commands."""

import pytest

from clickgym.command_line import main
from clickgym_lab.results import read_results

pytest.importorskip("distributed")
STUDY = "study bubble-fig3 --scale 0.0005 --instances yandex-990 yandex-9982"


@pytest.mark.usefixtures("undrawn")
def test_results_are_those_of_this_machine_if_a_worker_is_killed(cluster, killing, tmp_path):
    places = {"cluster": ["--cluster", cluster.scheduler_address], "here": ["--jobs", "1"]}
    tables = []
    for name, options in places.items():
        assert main([*STUDY.split(), "--out", str(tmp_path / name), *options]) == 0
        tables.append(read_results(tmp_path / name / "bubble-fig3.parquet")[0])
    assert tables[0].equals(tables[1])
