"""Tests of means and their intervals."""

from itertools import product

import numpy as np
import polars
import pytest
from polars import col
from scipy.stats import ttest_1samp, ttest_rel

import clickgym
from clickgym.core.statistics import half_width
from clickgym.measure.result import HOW_PLAYED, RUN_COLUMNS, TOTALS
from clickgym.runner.reports.summaries import by_window
from clickgym.runner.reports.table import format_table, regret_of_row

TABLE = ["env", "agent", "regret", "regret_ci95", "regret_ci95_runs", "median", "worst"]
TABLE += ["reference", "difference", "difference_ci95", "p", "reward", "reward_ci95", "runs"]
TABLE += ["units", "over", "trained", "unrecorded", "reseeded", "ns_per_session", "engine"]


ABOUT = {"env": "E", "instance": "i", "sweep_seed": 0, "step": 10, "engine": "python"}
ABOUT |= {"trained": 0, "unrecorded": 0, "reseeded": 0}
ABOUT |= {"reward": 1.0, "clicks": 1, "seconds": 0.1}


def frame_of(regrets, **facts):
    """Return a frame that contains only the regrets of each agent at one step."""
    rows = [
        {**ABOUT, "agent": agent, "run": run, "seed": run, "regret": r, **facts}
        for agent, values in regrets.items()
        for run, r in enumerate(values)
    ]
    return polars.DataFrame(rows, {**RUN_COLUMNS, **TOTALS, **HOW_PLAYED}, strict=False)


def interval(values):
    """Return the half-width of the 95 % interval of the mean, computed by scipy."""
    low, high = ttest_1samp(values, 0.0).confidence_interval(0.95)
    return (high - low) / 2


def drawn():
    """Rows with every kind of unit: three instances from two sweeps, runs with unequal seeds and
    one agent that has its own users, queries with unequal numbers of runs, and a single run.
    """
    rng = np.random.default_rng(1)
    rows = []
    for agent, shift in (("a", 0.0), ("b", 1.0), ("c", 3.0), ("own", 2.0)):
        engine = "stable-baselines3" if agent == "own" else "python"
        for instance, sweep, run in product("ijk", (0, 7), range(2)):
            facts = {"env": "instances", "instance": instance, "sweep_seed": sweep, "run": run}
            rows.append({**facts, "seed": 10 * sweep + run, "agent": agent, "engine": engine})
        for run in range(7 if agent == "b" else 5):
            facts = {"env": "runs", "run": run, "seed": run + 2 * (agent == "c"), "sweep_seed": 0}
            rows.append({**facts, "agent": agent, "engine": engine})
        for run in range(11 if agent == "b" else 10):
            facts = {"env": "queries", "run": run, "seed": run, "query": run % 4, "sweep_seed": 0}
            rows.append({**facts, "agent": agent, "engine": engine})
        rows.append({"env": "single", "run": 0, "seed": 0, "agent": agent, "engine": engine})
        for row in rows:
            row.setdefault("regret", float(rng.normal(10 + shift, 2)))
    rows = [{**ABOUT, **row} for row in rows]
    return polars.DataFrame(rows, {**RUN_COLUMNS, **TOTALS, **HOW_PLAYED})


def grouped(rows, key):
    """Return the mean regret by a key."""
    found = {}
    for row in rows:
        found.setdefault(key(row), []).append(row["regret"])
    return {name: np.mean(values) for name, values in found.items()}


UNITS = {"instances": "instance", "runs": "seed", "queries": "query", "single": "seed"}


@pytest.mark.parametrize("reference", ["a", "b"])
def test_intervals_differences_and_p_recomputed_by_scipy(reference):
    """The expected values are computed from the rows with only numpy and scipy."""
    frame = drawn()
    shuffled = frame.sample(fraction=1, shuffle=True, seed=0)
    table = clickgym.Results.of_rows(shuffled).table(reference)
    rows = frame.rows(named=True)
    assert table.columns == TABLE, "the pages that show a table have its header, too"
    for env, column in UNITS.items():
        means = {
            agent: grouped(
                [row for row in rows if (row["env"], row["agent"]) == (env, agent)],
                lambda row, column=column: row[column],
            )
            for agent in ("a", "b", "c", "own")
        }
        raw = {}
        for row in table.filter(env=env).iter_rows(named=True):
            agent = row["agent"]
            units = [*means[agent].values()]
            assert (row["regret"], row["units"]) == (pytest.approx(np.mean(units)), len(units))
            half = interval(units) if len(units) > 1 else None
            assert row["regret_ci95"] == pytest.approx(half)
            lost = [one["regret"] for one in rows if (one["env"], one["agent"]) == (env, agent)]
            assert (row["median"], row["worst"]) == (pytest.approx(np.median(lost)), max(lost))
            these = None
            if env == "instances":
                mine = [one for one in rows if (one["env"], one["agent"]) == (env, agent)]
                of_runs = grouped(mine, lambda one: (one["sweep_seed"], one["run"]))
                these = interval([*of_runs.values()])
            assert row["regret_ci95_runs"] == pytest.approx(these)
            is_other = agent == "own" and UNITS[env] == "seed"
            common = sorted({*means[agent]} & {*means[reference]})
            if agent == reference or is_other:
                assert row["difference"] is row["difference_ci95"] is row["p"] is None
                continue
            pair = [one for one in rows if one["env"] == env and one["agent"] in (agent, reference)]
            if agent != "own":  # of each unit, the runs with the users whom both agents met
                met = [
                    {(one[column], one["seed"]) for one in pair if one["agent"] == name}
                    for name in (agent, reference)
                ]
                pair = [one for one in pair if (one[column], one["seed"]) in met[0] & met[1]]
            of_pair = grouped(pair, lambda one, column=column: (one["agent"], one[column]))
            ours, theirs = ([of_pair[name, unit] for unit in common] for name in (agent, reference))
            gaps = np.subtract(ours, theirs)
            assert row["difference"] == pytest.approx(gaps.mean())
            half = interval(gaps) if len(gaps) > 1 else None
            assert row["difference_ci95"] == pytest.approx(half)
            if len(gaps) > 2:
                raw[agent] = ttest_rel(ours, theirs).pvalue
        in_order = sorted(raw, key=raw.get)
        steps = [raw[agent] * (len(raw) - rank) for rank, agent in enumerate(in_order)]
        adjusted = dict(zip(in_order, np.minimum(np.maximum.accumulate(steps), 1), strict=True))
        for agent, p in table.filter(env=env).select("agent", "p").iter_rows():
            assert p == pytest.approx(adjusted.get(agent))


def test_many_runs_of_one_query_are_one_observation():
    """Runs of the same query count as one observation, also if their seeds are unknown."""
    regrets = {"a": [1, 2, 3, 4], "b": [2, 4, 3, 6]}
    frame = frame_of(regrets, query=5, seed=None)
    table = clickgym.Results.of_rows(frame).table()
    assert set(table["over"]) == {"queries"}
    assert table["regret_ci95"].null_count() == 2
    assert table["difference"].to_list() == [None, 1.25]
    both = clickgym.Results.of_rows(polars.concat([frame, frame_of(regrets, query=6)])).table()
    assert both["units"].to_list() == [2, 2]


@pytest.mark.parametrize(
    ("name", "order", "worst"), [("score", "bac", 2), ("violations", "abc", 6)]
)
def test_a_table_of_another_measure(name, order, worst):
    """Its numbers are per session, with their own p-values, but none where a value is missing."""
    frame = frame_of({"a": [1, 2, 3, 4], "b": [2, 4, 3, 6], "c": [0, 1, 3, 3]})
    score = polars.when(col("agent") != "c").then("regret").alias(name)
    results = clickgym.Results.of_rows(frame.with_columns(score))
    table, latex = results.table("a", measure=name), results.to_latex("a", measure=name)
    b, c = (table.row(by_predicate=col("agent") == agent, named=True) for agent in "bc")
    assert "".join(table["agent"]) == order
    assert (b["worst"], b["median"]) == pytest.approx((worst / 10, 0.35))
    assert (b["difference"], b["difference_ci95"]) == pytest.approx((0.125, 0.1523), abs=1e-4)
    assert b["p"] == pytest.approx(ttest_rel([2, 4, 3, 6], [1, 2, 3, 4]).pvalue)
    assert c["difference"] is c["p"] is None
    assert rf"b & $0.38 \pm 0.27$ & $+0.12 \pm 0.15$ & ${b['p']:.3f}$ & ${worst / 10:.4f}$" in latex
    assert "compared with c" in results.to_latex("c", measure=name)


@pytest.mark.parametrize("over", ["runs", "queries", "instances"])
def test_loops_of_ones_own_are_rows_without_differences(over):
    """A user's own loops have a mean and an interval over the same kind of units as other agents,
    but no difference. An agent counts as such a loop even if only one of its runs is.
    """
    facts = {"runs": [{}], "queries": [{"query": 4}, {"query": 5}]}
    places = facts.get(over, [{"instance": "i"}, {"instance": "j"}])
    frames = [frame_of({"a": [1, 2, 3], "b": [2, 4, 3], "own": [2, 4, 3]}, **it) for it in places]
    is_own = (polars.col("agent") == "own") & (polars.col("run") == 2)
    rows = polars.concat(frames).with_columns(
        engine=polars.when(is_own).then(polars.lit("own loop")).otherwise("engine")
    )
    results = clickgym.Results.of_rows(rows)
    own, b = (results.table().filter(agent=name).row(0, named=True) for name in ("own", "b"))
    for name in ("regret", "regret_ci95", "units", "over"):
        assert own[name] == b[name]
    assert (b["difference"], own["difference"], own["p"]) == (1, None, None)
    assert results.table("own")["difference"].null_count() == 3
    lines = results.plot(reference="a").axes[0].lines
    assert "own" not in {line.get_label() for line in lines}
    with pytest.raises(ValueError, match="no other agent had the same users as own"):
        results.plot(reference="own")


def test_p_of_equal_values_and_of_two_units_is_unknown():
    """Values that differ only by rounding count as equal, in figures, too."""
    regrets = {"a": [1, 2, 3, 4], "b": [2, 4, 3, 6], "c": [9, 3, 8, 5], "same": [1, 2, 3, 4]}
    regrets["rounded"] = [value + 2e-13 for value in (1, 2, 3, 4)]
    results = clickgym.Results.of_rows(frame_of(regrets))
    lines = {line.get_label(): line for line in results.plot(reference="a").axes[0].lines}
    assert not lines["rounded"].get_ydata().any()
    table = results.table()
    assert set(table["reference"]) == {"a"}
    assert table.filter(polars.col("p").is_null())["agent"].to_list() == ["a", "same", "rounded"]
    assert table["difference"].to_list()[:3] == [None, 0, 0]
    two = {name: values[:2] for name, values in regrets.items()}
    table = clickgym.Results.of_rows(frame_of(two)).table()
    assert table["p"].null_count() == 5
    assert table["difference_ci95"].null_count() == 1
    with pytest.raises(ValueError, match="unknown reference 'd'"):
        clickgym.Results.of_rows(frame_of(two)).table("d")
    # neither agent draws anything, and scipy gives p = 0, too
    table = clickgym.Results.of_rows(frame_of({"a": [1, 2, 3], "b": [3, 4, 5]})).table()
    assert table.filter(agent="b").select("difference", "difference_ci95", "p").row(0) == (2, 0, 0)


def test_all_finished_runs_count_where_an_instance_lacks_some():
    """After an interrupted sweep, each instance contributes the mean of its own finished runs."""
    frame = polars.concat([frame_of({"d": [1, 9]}), frame_of({"d": [3]}, instance="j")])
    results = clickgym.Results.of_rows(frame)
    assert "over 2 instances with 1 to 2 runs each" in format_table(results).title
    (row,) = results.table().iter_rows(named=True)
    assert (row["regret"], row["median"], row["worst"], row["runs"]) == (4.0, 3.0, 9.0, 1)
    assert row["regret_ci95"] == pytest.approx(interval([5.0, 3.0]))
    assert row["regret_ci95_runs"] is None


def test_the_interval_of_these_instances_is_over_their_queries():
    """If each run plays one query of an instance, the interval is over queries, because further
    runs of the same query say nothing about other queries.
    """
    frames = [
        frame_of({"a": [regret, regret + 2]}, instance=instance, query=query, sweep_seed=query)
        for instance, shift in (("i", 0), ("j", 4))
        for query, regret in enumerate((1 + shift, 2 + shift, 6 + shift))
    ]
    (row,) = clickgym.Results.of_rows(polars.concat(frames)).table().iter_rows(named=True)
    assert row["over"] == "instances"
    assert row["regret_ci95_runs"] == pytest.approx(interval([4, 5, 9]))


def test_what_is_per_session():
    """Times and summed metrics are divided by the number of sessions; values on held-out queries
    are not, because they are not sums.
    """
    measured = {"ndcg": polars.lit(5.0), "held_out_ndcg@10": polars.lit(0.5)}
    frame = frame_of({"a": [1, 2]}, seconds=0.1).with_columns(**measured)
    (row,) = clickgym.Results.of_rows(frame).table().iter_rows(named=True)
    assert (row["ndcg"], row["held_out_ndcg@10"]) == (0.5, 0.5)
    assert row["ns_per_session"] == pytest.approx(1e7)


def test_unknown_regret_is_ranked_by_reward():
    frames = [
        frame_of({agent: [None]}, reward=10.0 * n + run, run=run, seed=run)
        for n, agent in enumerate("ab")
        for run in range(3)
    ]
    table = clickgym.Results.of_rows(polars.concat(frames)).table()
    assert table.select("agent", "regret", "reward").rows() == [("b", None, 1.1), ("a", None, 0.1)]
    assert table["reward_ci95"].to_list() == pytest.approx([0.1 * half_width(3)] * 2)
    total = regret_of_row(table.row(0, named=True), 1000)  # of all sessions
    assert total == pytest.approx((1100.0, 100 * half_width(3)))


def test_regret_that_is_unknown_of_one_agent_is_shown_of_none():
    """If the regret of one agent is unknown, for example because a wrapper changes the rewards of
    some lists, all rows show the total reward instead.
    """
    known = frame_of({"a": [1, 2, 3]})
    unknown = frame_of({"b": [1, 2, 4]}).with_columns(regret=polars.lit(None, polars.Float64))
    results = clickgym.Results.of_rows(polars.concat([known, unknown]))
    assert results.table()["regret"].to_list() == [None, None]
    latex = results.to_latex()
    assert "Total reward after" in latex
    assert "Negative differences favour a." in latex
    (axes,) = results.plot().axes
    assert (axes.get_ylabel(), axes.get_yscale()) == ("cumulative reward", "linear")
    nothing = unknown.with_columns(reward=polars.lit(None, polars.Float64))
    table = format_table(clickgym.Results.of_rows(polars.concat([nothing, known])))
    assert [row[1] for row in table.environments["E"]] == ["1.0 ± 0.0", "–"]


def test_last_step_decides():
    """At step 5 the order of the agents is the opposite of the order at the last step, and just as
    clear.
    """
    last = frame_of({"a": [1, 2, 3], "b": [40, 50, 70]})
    first = frame_of({"a": [0.9, 0.95, 0.99], "b": [0.1, 0.2, 0.3]}, step=5)
    for frame in (polars.concat([first, last]), polars.concat([last, first])):
        table = clickgym.Results.of_rows(frame).table()
        assert table["agent"].to_list() == ["a", "b"]
        assert table["regret"].to_list() == pytest.approx([2, 160 / 3])


def test_windows_of_a_run_begin_with_it():
    """The rows of the second run directly follow those of the first, but its windows do not
    continue the first run's windows.
    """
    frames = [
        frame_of({"a": [0]}, step=step, run=run, sweep_seed=seed).with_columns(
            ndcg=polars.lit(step * mean)
        )
        for run, seed, mean in ((0, 0, 0.2), (1, 0, 0.7), (1, 7, 0.4))
        for step in (10, 20, 40)
    ]
    means = by_window(polars.concat(frames))["ndcg"]
    assert means.to_list() == pytest.approx([0.2] * 3 + [0.7] * 3 + [0.4] * 3)


def test_windows_of_agents_with_other_checkpoints_are_their_own():
    frames = [
        frame_of({agent: [0]}, step=step).with_columns(ndcg=polars.lit(step * 0.5))
        for agent, steps in {"a": range(1, 101), "b": (33, 100)}.items()
        for step in steps
    ]
    together = by_window(polars.concat(frames))
    assert together.filter(agent="b")["step"].to_list() == [33, 100]
    assert together.filter(agent="a").height == 50
