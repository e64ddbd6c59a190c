"""What agents are compared by: the regret at the last step, over several runs of each."""

import polars
import pytest

from clickgym.runner import summaries
from clickgym.runner.summaries import pairwise

COLUMNS = ["env", "instance", "agent", "run", "step", "regret", "reward", "clicks"]


def at_step_10(regrets):
    """A table of one step from ``{agent: regrets of runs}``."""
    return frame_of(
        (agent, run, 10, regret)
        for agent, runs in regrets.items()
        for run, regret in enumerate(runs)
    )


def frame_of(rows):
    """A frame from agents, runs, steps and regrets."""
    rows = [("E", "i", *row, 1.0, 1) for row in rows]
    return polars.DataFrame(rows, COLUMNS, orient="row")


@pytest.mark.parametrize(
    "regrets",
    [
        {"a": [1.0], "b": [900.0, 901.0, 905.0]},
        {"a": [1.0, 2.0, 2.5], "b": [900.0]},
        {"a": [1.0, 1.0, 1.0], "b": [900.0]},
        {"a": [1.0], "b": [900.0, 900.0]},
    ],
)
def test_a_single_run_is_compared_with_nothing(regrets):
    (row,) = pairwise(at_step_10(regrets)).iter_rows(named=True)
    assert (row["better"], row["worse"], row["p"], row["differ"]) == ("a", "b", None, None)


def test_a_single_run_does_not_burden_the_tests_of_others():
    """Holm's correction counts the tests that are made: of three agents two have several runs."""
    table = at_step_10({"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 7.0], "c": [6.0]})
    alone = pairwise(table.filter(polars.col("agent") != "c"))["p"].item()
    assert pairwise(table).filter(polars.col("p").is_not_null())["p"].item() == alone


def test_the_last_step_decides_and_no_earlier_one():
    """At step 5 the order is the contrary, and as clear."""
    last = {"a": [1.0, 2.0, 3.0], "b": [40.0, 50.0, 70.0]}
    first = {"a": [0.9, 0.95, 0.99], "b": [0.1, 0.2, 0.3]}
    table = frame_of(
        (agent, run, step, regrets[agent][run])
        for step, regrets in ((5, first), (10, last))
        for agent in "ab"
        for run in range(3)
    )
    for ordered in (table, table.sort("step", descending=True)):
        (row,) = pairwise(ordered).iter_rows(named=True)
        assert (row["better"], row["worse"], row["difference"]) == (
            "a",
            "b",
            pytest.approx(160 / 3 - 2),
        )


def test_a_chance_of_the_level_itself_is_no_difference(monkeypatch):
    table = at_step_10({"a": [1.0, 2.0], "b": [4.0, 9.0]})
    p = pairwise(table)["p"].item()
    for level, differ in ((p, False), (p * (1 + 1e-12), True)):
        monkeypatch.setattr(summaries, "LEVEL", level)
        assert pairwise(table)["differ"].item() is differ
