"""Means with intervals."""

import numpy as np
import polars
import pytest

import clickgym
from clickgym.core.formats import regret_text
from clickgym.core.statistics import half_width
from clickgym.runner.summaries import average

COLUMNS = ["env", "instance", "agent", "run", "seed", "step", "regret", "reward", "clicks"]
COLUMNS += ["engine", "seconds"]
TIMED = ("python", 0.1)


def frame_of(regrets, env="E", instance="i", step=10):
    """A frame with nothing but regrets at a step, by agent."""
    rows = [
        (env, instance, agent, run, run, step, float(r), 1.0, 1, *TIMED)
        for agent, values in regrets.items()
        for run, r in enumerate(values)
    ]
    return polars.DataFrame(rows, COLUMNS, orient="row")


def test_instances_are_averaged():
    first, second = {"a": [1, 2, 3], "b": [4, 5, 9]}, {"a": [11, 10, 12], "b": [11, 12, 10]}
    table = polars.concat([frame_of(first, instance="i"), frame_of(second, instance="j")])
    for row in clickgym.Results(table).table().iter_rows(named=True):
        means = np.mean([first[row["agent"]], second[row["agent"]]], axis=0)
        wanted = [means.mean(), means.std(ddof=1) * half_width(3)]
        assert [row["regret"], row["regret_ci95"]] == pytest.approx(wanted)


def test_one_run_has_no_interval():
    single = clickgym.Results(frame_of({"a": [1], "b": [2]})).table()
    assert single["regret_ci95"].null_count() == 2


def test_intervals_are_students_and_over_runs():
    regrets = {("i", 0): 1.0, ("i", 1): 3.0, ("j", 0): 5.0, ("j", 1): 11.0}
    rows = [
        ("e", i, "a", run, run, 10, regret, 20.0, 3, *TIMED) for (i, run), regret in regrets.items()
    ]
    frame = polars.DataFrame(rows, COLUMNS, orient="row")
    (row,) = average(frame, ["env", "agent"], ["regret"]).iter_rows(named=True)
    # Means over instances are 3 and 7; t for one degree of freedom is 12.706, the standard error 2.
    assert (row["regret"], row["instances"], row["runs"]) == (5.0, 2, 2)
    assert row["regret_ci95"] == pytest.approx(12.7062 * 2, rel=1e-4)
    (row,) = average(frame.filter(run=0), ["env", "agent"], ["regret"]).iter_rows(named=True)
    assert row["regret_ci95"] is None


def test_unequal_numbers_of_runs():
    """Each agent has the interval of its own runs."""
    regrets = {"a": [1, 2, 4], "b": [3, 9]}
    table = clickgym.Results(frame_of(regrets)).table()
    assert table["runs"].to_list() == [3, 2]
    for row in table.iter_rows(named=True):
        values = np.array(regrets[row["agent"]])
        half = values.std(ddof=1) * half_width(len(values))
        assert row["regret_ci95"] == pytest.approx(half)


def test_runs_on_a_part_of_the_instances_are_left_out():
    frame = polars.concat([frame_of({"d": [1, 2]}), frame_of({"d": [3]}, instance="j")])
    (row,) = clickgym.Results(frame).table().iter_rows(named=True)
    assert (row["runs"], row["regret"]) == (1, 2.0)


def test_agents_on_other_instances_stay_in_the_table():
    """Runs are compared with those of their own agent: a folder may grow by agents on fewer."""
    both = [frame_of({"a": [1, 2]}, instance=name) for name in "ij"]
    table = clickgym.Results(polars.concat([*both, frame_of({"b": [3, 5]})])).table()
    assert table.select("agent", "regret", "runs", "instances").rows() == [
        ("a", 1.5, 2, 2),
        ("b", 4.0, 2, 1),
    ]


def test_unknown_regret_is_ranked_by_reward():
    rows = [
        ("Shop-v0", "custom", agent, run, run, 10, None, 10.0 * n + run, 1, *TIMED)
        for n, agent in enumerate("ab")
        for run in range(3)
    ]
    kinds = {"regret": polars.Float64}
    frame = polars.DataFrame(rows, COLUMNS, orient="row", schema_overrides=kinds)
    table = clickgym.Results(frame).table()
    assert table.select("agent", "regret", "reward").rows() == [("b", None, 1.1), ("a", None, 0.1)]
    assert table["reward_ci95"].to_list() == pytest.approx([0.1 * half_width(3)] * 2)


def test_last_step_decides():
    """At step 5 the order is the contrary, and as clear."""
    last = frame_of({"a": [1, 2, 3], "b": [40, 50, 70]})
    first = frame_of({"a": [0.9, 0.95, 0.99], "b": [0.1, 0.2, 0.3]}, step=5)
    for frame in (polars.concat([first, last]), polars.concat([last, first])):
        table = clickgym.Results(frame).table()
        assert table["agent"].to_list() == ["a", "b"]
        assert table["regret"].to_list() == pytest.approx([2, 160 / 3])


def test_regret_of_nothing_has_no_sign():
    assert (regret_text(-1e-12, 1e-13), regret_text(-1e-12, None)) == ("0.000 ± 0.000", "0.0")
