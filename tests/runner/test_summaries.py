"""Means with intervals, and the tests of which agents differ."""

import itertools

import numpy as np
import polars
import pytest
from scipy.stats import binom, ttest_1samp, ttest_ind

import clickgym
from clickgym.core.formats import regret_text
from clickgym.core.statistics import half_width
from clickgym.runner.summaries import LEVEL, average, pairwise

COLUMNS = ["env", "instance", "agent", "run", "step", "regret", "reward", "clicks"]
COLUMNS += ["engine", "seconds"]
TIMED = ("python", 0.1)


def frame_of(regrets, env="E", instance="i", step=10):
    """A frame with nothing but regrets at a step, by agent."""
    rows = [
        (env, instance, agent, run, step, float(r), 1.0, 1, *TIMED)
        for agent, values in regrets.items()
        for run, r in enumerate(values)
    ]
    return polars.DataFrame(rows, COLUMNS, orient="row")


def test_pairs_are_welchs_with_holms_correction():
    rng = np.random.default_rng(1)
    regrets = {
        name: rng.normal(mean, spread, 6)
        for name, mean, spread in [("a", 10, 1), ("b", 11, 3), ("c", 14, 1), ("d", 30, 9)]
    }
    pairs = pairwise(frame_of(regrets))
    raw = {
        pair: ttest_ind(*(regrets[name] for name in pair), equal_var=False).pvalue
        for pair in itertools.combinations("abcd", 2)
    }
    wanted, largest = {}, 0.0
    for tests_left, pair in zip(range(6, 0, -1), sorted(raw, key=raw.get), strict=True):
        wanted[pair] = largest = min(1.0, max(largest, tests_left * raw[pair]))
    values = {(row["better"], row["worse"]): row["p"] for row in pairs.iter_rows(named=True)}
    assert values == pytest.approx(wanted, abs=1e-6)  # regrets count to six decimals
    assert pairs["differ"].to_list() == [p < LEVEL for p in values.values()]
    assert set(pairs["differ"]) == {True, False}
    differences = [regrets[w].mean() - regrets[b].mean() for b, w in values]
    assert pairs["difference"].to_list() == pytest.approx(differences, abs=1e-5)


def test_equal_agents_are_rarely_told_apart():
    # Null: four agents with the same mean and spreads of their own. 2000 tables of 5 runs; each
    # tells some pair apart with probability at most 5 %. Fails by chance with probability < 1e-4.
    rng, n_tables = np.random.default_rng(2), 2000
    spreads = {"a": 1.0, "b": 1.0, "c": 3.0, "d": 10.0}
    tables = [
        frame_of({name: rng.normal(50, s, 5) for name, s in spreads.items()}, env=str(i))
        for i in range(n_tables)
    ]
    by_table = pairwise(polars.concat(tables)).group_by("env").agg(polars.col("differ").any())
    false_alarms = by_table["differ"].sum()
    assert false_alarms <= binom.isf(1e-4, n_tables, LEVEL)
    assert false_alarms >= 0.005 * n_tables  # nor is the test so careful that it sees nothing


def test_instances_are_averaged():
    first, second = {"a": [1, 2, 3], "b": [4, 5, 9]}, {"a": [11, 10, 12], "b": [11, 12, 10]}
    table = polars.concat([frame_of(first, instance="i"), frame_of(second, instance="j")])
    means = {name: np.mean([first[name], second[name]], axis=0) for name in first}
    p = ttest_ind(means["a"], means["b"], equal_var=False).pvalue
    assert pairwise(table)["p"].to_list() == pytest.approx([p], rel=1e-4)


def test_one_run_and_one_agent_are_not_compared():
    single = clickgym.Results(frame_of({"a": [1], "b": [2]})).table()
    assert single["regret_ci95"].null_count() == 2
    (row,) = pairwise(frame_of({"a": [1], "b": [900]})).iter_rows(named=True)
    assert (row["p"], row["differ"], row["difference"]) == (None, None, 899)
    assert pairwise(frame_of({"a": [1, 2, 3]})).is_empty()


def test_agents_that_never_vary_burden_no_other_test():
    regrets = {"fixed": [5, 5, 5], "oracle": [1e-12, 0, -1e-12], "same": [5, 5, 5 + 1e-9]}
    pairs = pairwise(frame_of(regrets | {"a": [5.1, 7, 6]}))
    rows = {frozenset((row["better"], row["worse"])): row for row in pairs.iter_rows(named=True)}
    for names, differ in [(("fixed", "oracle"), True), (("fixed", "same"), False)]:
        assert (rows[frozenset(names)]["p"], rows[frozenset(names)]["differ"]) == (None, differ)
    largest = ttest_1samp([5.1, 7, 6], 5).pvalue  # Welch's test where one side never varies
    # Of three tests it shares the place of the last two.
    assert rows[frozenset(("fixed", "a"))]["p"] == pytest.approx(2 * largest)


def test_intervals_are_students_and_over_runs():
    regrets = {("i", 0): 1.0, ("i", 1): 3.0, ("j", 0): 5.0, ("j", 1): 11.0}
    rows = [("e", i, "a", run, 10, regret, 20.0, 3, *TIMED) for (i, run), regret in regrets.items()]
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


def test_agents_of_other_instances_are_not_compared():
    both = {"a": [1, 2, 3], "b": [4, 5, 9]}
    tables = [frame_of(both), frame_of(both, instance="j"), frame_of({"c": [7, 8, 9]})]
    tables.append(frame_of({"d": [1, 2]}))
    tables.append(frame_of({"d": [1]}, instance="j"))
    frame = polars.concat(tables)
    compared = pairwise(frame).filter(polars.col("differ").is_not_null())
    assert compared.select("better", "worse").rows() == [("a", "b")]
    rows = {row["agent"]: row for row in clickgym.Results(frame).table().iter_rows(named=True)}
    assert rows["d"]["runs"] == 1  # its second run is on one of two instances only


def test_unknown_regret_is_ranked_by_reward():
    rows = [
        ("Shop-v0", "custom", agent, run, 10, None, 10.0 * n + run, 1, *TIMED)
        for n, agent in enumerate("ab")
        for run in range(3)
    ]
    kinds = {"regret": polars.Float64}
    frame = polars.DataFrame(rows, COLUMNS, orient="row", schema_overrides=kinds)
    table = clickgym.Results(frame).table()
    assert table.select("agent", "regret", "reward").rows() == [("b", None, 1.1), ("a", None, 0.1)]
    assert table["reward_ci95"].to_list() == pytest.approx([0.1 * half_width(3)] * 2)


def test_single_run_burdens_no_other_test():
    """Holm's correction counts the tests that are made: of three agents two have several runs."""
    both = {"a": [1, 2, 3], "b": [4, 5, 7]}
    alone = pairwise(frame_of(both))["p"].to_list()
    assert pairwise(frame_of(both | {"c": [6]}))["p"].drop_nulls().to_list() == alone


def test_last_step_decides():
    """At step 5 the order is the contrary, and as clear."""
    last = frame_of({"a": [1, 2, 3], "b": [40, 50, 70]})
    first = frame_of({"a": [0.9, 0.95, 0.99], "b": [0.1, 0.2, 0.3]}, step=5)
    for table in (polars.concat([first, last]), polars.concat([last, first])):
        (row,) = pairwise(table).iter_rows(named=True)
        assert (row["better"], row["worse"]) == ("a", "b")
        assert row["difference"] == pytest.approx(160 / 3 - 2)


def test_regret_of_nothing_has_no_sign():
    assert (regret_text(-1e-12, 1e-13), regret_text(-1e-12, None)) == ("0.000 ± 0.000", "0.0")
