"""Results that are passed on: what is kept, what damage is noticed, and that they come out
again.
"""

import re
from pathlib import Path

import numpy as np
import polars
import pytest
from replay import differences, of_line, play, replay_all

from clickgym_lab import shipped
from clickgym_lab.bench.protocol import CURRENT
from clickgym_lab.shipped import Shipped, compact, read_shipped, write_shipped
from clickgym_lab.studies import STUDIES
from clickgym_lab.studies.play import read_study
from clickgym_lab.studies.study import Curves, linear

RESULTS = Path(__file__).resolve().parents[2] / "lab" / "results"
STEPS = [1, 50, 99, 100]


def table(instances=("x", "y", "z"), runs=4):
    rng = np.random.default_rng(0)
    rows = [
        ("E", name, agent, run, step)
        for name in instances
        for agent in "AB"
        for run in range(runs)
        for step in STEPS
    ]
    frame = polars.DataFrame(rows, ["env", "instance", "agent", "run", "step"], orient="row")
    return frame.with_columns(
        polars.Series(name, rng.random(len(rows)).astype(np.float32))
        for name in ("regret", "reward")
    )


def result():
    made = {"clickgym": "4.0.0", "commit": "0123abcd", "command": "the command"}
    return Shipped("shipped", "part", compact(table(), ["regret"]), made)


@pytest.mark.parametrize("each", [False, True])
def test_what_is_kept_says_the_same_as_all(each):
    """Means over instances, and ends of each instance: as they were, to the last digit of a
    single.
    """
    full = Curves(table())
    small = Curves(compact(table(), ["regret"], each=each))
    for agent in "AB":
        np.testing.assert_allclose(small.units("E", agent), full.units("E", agent), rtol=1e-7)
        for column in ("regret", "reward"):
            np.testing.assert_array_equal(
                small.ends("E", agent, column), full.ends("E", agent, column)
            )
        np.testing.assert_array_equal(small.final("E", agent), full.final("E", agent))
        if each:
            np.testing.assert_array_equal(
                small.units("E", agent, instance="y"), full.units("E", agent, instance="y")
            )
    assert small.instances == full.instances
    assert small.n_runs == full.n_runs == 4


def test_growth_is_judged_over_queries_where_the_values_of_each_are_kept():
    """Two queries whose runs agree, with other regret each: over runs the interval has no width,
    over queries it has one.
    """
    steps, slopes = (20, 40, 80, 99, 100), {"x": 1.0, "y": 3.0}
    rows = [
        ("E", i, "A", run, step, slope * step)
        for i, slope in slopes.items()
        for run in range(4)
        for step in steps
    ]
    frame = polars.DataFrame(rows, [*shipped.KEYS, "regret"], orient="row")
    kept = [
        Curves(compact(frame, ["regret"], fractions=fractions))
        for fractions in ((0.99, 1.0), (0.2, 0.4, 0.8, 0.99, 1.0))
    ]
    found = [linear(curves, "E", "A") for curves in kept]
    assert [finding.verdict for finding in found] == ["yes", "cannot tell"]
    assert found[0].measured == "2 ± 0 per session over runs, 1.00 times the earlier rate"
    assert found[1].measured == "2 ± 13 per session over 2 queries, 1.00 times the earlier rate"


def test_facts_are_kept_and_other_columns_are_not():
    frame = table().with_columns(polars.lit(3.0).alias("fact"), polars.lit(1.0).alias("clicks"))
    small = compact(frame, ["regret"], ["fact"])
    assert "clicks" not in small.columns
    assert (Curves(small).ends("E", "A", "fact") == 3).all()


def test_results_are_written_and_read(tmp_path):
    others = [
        result(),
        Shipped("mine", "part", compact(table(("x",)), ["reward"]), {"command": "another"}),
    ]
    write_shipped(tmp_path / "a.parquet", others)
    again = read_shipped(tmp_path / "a.parquet")
    assert [(each.setting, each.part, each.made) for each in again] == [
        (e.setting, e.part, e.made) for e in others
    ]
    assert all(
        there.table.equals(here.table.select(there.table.columns))
        for there, here in zip(again, others, strict=True)
    )


def test_damage_is_noticed(tmp_path):
    path = tmp_path / "a.parquet"
    write_shipped(path, [result()])
    content, rng = path.read_bytes(), np.random.default_rng(0)
    for bit in rng.integers(0, 8 * len(content), 60):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="or is damaged"):
            read_shipped(path)
    table().write_parquet(path)
    with pytest.raises(ValueError, match="holds no results to be passed on"):
        read_shipped(path)


# ------------------------------------------------------------------------------------------------------------- what ships

SHIPPED = [*sorted(RESULTS.glob("*.parquet")), *sorted(CURRENT.data.glob("*.parquet"))]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_what_ships_says_version_commit_and_command(path):
    for each in read_shipped(path):
        assert re.fullmatch(r"\d+\.\d+\.\d+", each.made["clickgym"])
        assert re.fullmatch(r"[0-9a-f]{8}", each.made["commit"])
        assert each.made["command"].startswith(("clickgym study ", "python benchmarks/shipped/"))


def test_every_study_ships_with_all_its_parts():
    for name, study in STUDIES.items():
        assert {each.part for each in read_study(name, RESULTS)} == {
            part.name for part in study.parts
        }


def test_three_shipped_results_come_out_again():
    """Two studies whose instances have names, and all blocks of an agent of the scorecard."""
    assert replay_all(["nonstat-fig1", "nonstat-bound", "scorecard-CascadeTS"], n_jobs=1) == []


def test_a_digit_that_differs_is_noticed():
    (shipped,) = (
        each
        for each in read_shipped(CURRENT.data / "CascadeTS.parquet")
        if each.part == "cold_start"
    )
    replay = of_line(shipped)
    wrong = replay.figures.with_columns(regret=polars.col("regret") * (1 + 1e-6))
    assert differences(replay.figures, play(replay, 1)) == {}
    assert differences(wrong, play(replay, 1)) != {}


def test_an_unknown_result_is_refused():
    with pytest.raises(ValueError, match="zoghi is no shipped result; there is "):
        replay_all(["zoghi"])
