"""``--cluster`` of the lab's commands: results are those of this machine, also if a worker is
killed.
"""

from __future__ import annotations

import polars
import pytest

import clickgym
from clickgym.__main__ import main

distributed = pytest.importorskip("distributed")


def study(out, *more):
    words = [
        "study",
        "bubble-fig3",
        "--scale",
        "0.0005",
        "--instances",
        "yandex-990",
        "yandex-9982",
        "--out",
        str(out),
    ]
    assert main([*words, *more]) == 0
    return polars.concat(
        [clickgym.Results(file.parent).frame for file in sorted(out.glob("*/config.json"))]
    )


def bench(out, *more):
    assert main(["bench", "TopRank", "--quick", "--out", str(out), *more]) == 0
    return polars.concat(
        [clickgym.Results(file.parent).frame for file in sorted(out.glob("plays/*/config.json"))],
        how="diagonal",
    )


@pytest.mark.parametrize("made", [study, pytest.param(bench, marks=pytest.mark.slow)])
@pytest.mark.usefixtures("undrawn")
def test_results_are_those_of_this_machine_though_a_worker_is_killed(
    cluster, killing, tmp_path, made
):
    on_cluster = made(tmp_path / "cluster", "--cluster", cluster.scheduler_address)
    assert on_cluster.equals(made(tmp_path / "here", "--jobs", "1"))
