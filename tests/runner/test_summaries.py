"""Means with intervals."""

import numpy as np
import polars
import pytest
from scipy.stats import ttest_1samp, ttest_rel

import clickgym
from clickgym.core.formats import regret_text
from clickgym.core.statistics import half_width, holm
from clickgym.envs.result import FACTS, TIMED, TOTALS

COLUMNS = [*FACTS, *TOTALS, *TIMED]
TABLE = ["env", "agent", "regret", "regret_ci95", "regret_ci95_runs", "median", "worst"]
TABLE += ["reference", "difference", "difference_ci95", "p", "reward", "reward_ci95", "runs"]
TABLE += ["instances", "over", "ns_per_session", "engine"]


def frame_of(regrets, env="E", instance="i", step=10):
    """A frame with nothing but regrets at a step, by agent."""
    rows = [
        (env, instance, None, agent, 0, run, run, 0, 0, step, float(r), 1.0, 1, "python", 0.1)
        for agent, values in regrets.items()
        for run, r in enumerate(values)
    ]
    return polars.DataFrame(rows, COLUMNS, orient="row")


def interval(values):
    """Half the width of the 95 % interval of the mean, by scipy."""
    low, high = ttest_1samp(values, 0.0).confidence_interval(0.95)
    return (high - low) / 2


VALUES = {"a": [[1, 2, 3], [11, 10, 12], [4, 4, 7]], "b": [[4, 5, 9], [11, 12, 10], [9, 5, 6]]}
"""Regret of agents by instance and run."""


def instances_of(values, env="E"):
    frames = [
        frame_of({agent: of_agent[n] for agent, of_agent in values.items()}, env, instance)
        for n, instance in enumerate("ijk"[: len(values["a"])])
    ]
    return polars.concat(frames)


def test_intervals_over_instances_and_over_runs():
    """The first is over the instances, each averaged over its runs; the second over the runs."""
    table = clickgym.Results(instances_of(VALUES)).table()
    assert table.columns == TABLE, "the pages that show a table have its header, too"
    assert table["over"].to_list() == ["instances"] * 2
    for row in table.iter_rows(named=True):
        values = np.array(VALUES[row["agent"]], float)
        wanted = [values.mean(), interval(values.mean(axis=1)), interval(values.mean(axis=0))]
        got = [row["regret"], row["regret_ci95"], row["regret_ci95_runs"]]
        assert got == pytest.approx(wanted)
        assert (row["median"], row["worst"]) == (np.median(values), values.max())


def test_many_instances_with_one_run_have_an_interval():
    values = {agent: [runs[:1] for runs in of_agent] for agent, of_agent in VALUES.items()}
    table = clickgym.Results(instances_of(values)).table()
    for row in table.iter_rows(named=True):
        assert row["regret_ci95"] == pytest.approx(interval(np.ravel(values[row["agent"]])))
    assert table["regret_ci95_runs"].null_count() == 2


@pytest.mark.parametrize("reference", ["a", "b"])
def test_paired_differences(reference):
    """Over instances where there are several, else over runs; p by scipy."""
    single = frame_of({agent: runs[0] for agent, runs in VALUES.items()}, env="single")
    results = clickgym.Results(polars.concat([instances_of(VALUES), single]))
    table = results.table(reference)
    assert set(table["reference"]) == {reference}
    values = {agent: np.array(of_agent, float) for agent, of_agent in VALUES.items()}
    units = {
        "E": {agent: of_agent.mean(axis=1) for agent, of_agent in values.items()},
        "single": {agent: of_agent[0] for agent, of_agent in values.items()},
    }
    for row in table.iter_rows(named=True):
        of_env, agent = units[row["env"]], row["agent"]
        got = [row["difference"], row["difference_ci95"], row["p"]]
        if agent == reference:
            assert got == [None] * 3
            continue
        gaps = of_env[agent] - of_env[reference]
        p = ttest_rel(of_env[agent], of_env[reference]).pvalue
        assert got == pytest.approx([gaps.mean(), interval(gaps), p])


def test_p_of_several_agents_is_adjusted_and_of_two_units_unknown():
    regrets = {"a": [1, 2, 3, 4], "b": [2, 4, 3, 6], "c": [9, 3, 8, 5], "same": [1, 2, 3, 4]}
    table = clickgym.Results(frame_of(regrets)).table()
    assert set(table["reference"]) == {"a"}
    p = {row["agent"]: row["p"] for row in table.iter_rows(named=True)}
    levels = [ttest_rel(regrets[name], regrets["a"]).pvalue for name in "bc"]
    assert [p["b"], p["c"]] == pytest.approx(holm(levels))
    assert p["a"] is p["same"] is None
    two = {name: values[:2] for name, values in regrets.items()}
    table = clickgym.Results(frame_of(two)).table()
    assert table["p"].null_count() == 4
    assert table["difference_ci95"].null_count() == 1
    with pytest.raises(ValueError, match="unknown reference 'd'"):
        clickgym.Results(frame_of(two)).table("d")


def test_the_same_difference_in_all_units_is_certain():
    """Neither agent draws anything; so scipy gives p = 0, too."""
    table = clickgym.Results(frame_of({"a": [1, 2, 3], "b": [3, 4, 5]})).table()
    assert table.filter(agent="b").select("difference", "difference_ci95", "p").row(0) == (2, 0, 0)


def test_holm_keeps_the_level_of_all_tests():
    """As the definition: the ordered levels times the number of hypotheses that are left."""
    levels = np.random.default_rng(0).random(7) ** 3
    order = np.argsort(levels)
    wanted = np.minimum(np.maximum.accumulate(levels[order] * np.arange(7, 0, -1)), 1)
    assert np.array(holm(levels.tolist()))[order] == pytest.approx(wanted)
    assert holm([]) == []


def test_one_run_has_no_interval():
    single = clickgym.Results(frame_of({"a": [1], "b": [2]})).table()
    assert single["regret_ci95"].null_count() == 2


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
    frame = polars.concat([frame_of({"d": [1, 9]}), frame_of({"d": [3]}, instance="j")])
    (row,) = clickgym.Results(frame).table().iter_rows(named=True)
    assert (row["runs"], row["regret"], row["median"], row["worst"]) == (1, 2.0, 2.0, 3.0)


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
        (
            "Shop-v0",
            "custom",
            None,
            agent,
            0,
            run,
            run,
            0,
            0,
            10,
            None,
            10.0 * n + run,
            1,
            "python",
            0.1,
        )
        for n, agent in enumerate("ab")
        for run in range(3)
    ]
    kinds = {"regret": polars.Float64}
    frame = polars.DataFrame(rows, COLUMNS, orient="row", schema_overrides=kinds)
    table = clickgym.Results(frame).table()
    assert table.select("agent", "regret", "reward").rows() == [("b", None, 1.1), ("a", None, 0.1)]
    assert table["reward_ci95"].to_list() == pytest.approx([0.1 * half_width(3)] * 2)


def test_regret_that_is_unknown_of_one_agent_is_shown_of_none(capsys, tmp_path):
    """As where a wrapper changes the rewards of some lists: all rows show the total reward."""
    known = frame_of({"a": [1, 2, 3]})
    unknown = frame_of({"b": [1, 2, 4]}).with_columns(regret=polars.lit(None, polars.Float64))
    results = clickgym.Results(polars.concat([known, unknown]))
    assert results.table()["regret"].to_list() == [None, None]
    latex = results.to_latex()
    assert "Total reward after" in latex
    assert "A negative difference is in favour of a." in latex
    results.report(tmp_path)
    assert "Total reward after" in capsys.readouterr().out


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
