"""Clicks a day above today's list: by hand, in a sweep, and against plays of days."""

import numpy as np
import polars as pl
import pytest
from test_warm_start import DAY, a_log, shop

import clickgym
from clickgym.runner.per_day import by_day
from clickgym.runner.reports.table import in_words
from clickgym.runner.warm_start import Start


def rows(curves, steps):
    """Of regret by (instance, agent, run)."""
    return pl.DataFrame(
        [
            {"instance": instance, "agent": agent, "run": run, "step": step, "regret": regret(step)}
            for (instance, agent, run), regret in curves.items()
            for step in steps
        ]
    )


def past(query, per_day, today, variance=1.0):
    facts = {"query": query, "per_day": per_day, "today": today, "variance": variance}
    return facts | {"clicks": 1.5 - today, "cutoff": 0}


def test_by_hand():
    """Two queries; one agent loses .1 in a session, the other everything on its first day."""
    curves = {}
    for run in (0, 1):
        for query, size in (("a", 100), ("b", 50)):
            curves[query, "steady", run] = lambda step, run=run: 0.1 * step * (1 + run)
            curves[query, "late", run] = lambda step, size=size: 2.0 * min(step, size)
    pasts = {"a": past("a", 100.0, 0.5), "b": past("b", 50.0, 0.7)}
    steps = [50, 100, 350, 700, 1000]
    days = by_day(rows(curves, steps), pasts)
    assert (days.queries, days.sessions, days.needed) == (2, 150, 100)
    assert days.clicks == pytest.approx(100 * 1.0 + 50 * 0.8)
    table = {row[0]: row[1:] for row in days.table.iter_rows()}
    # 100 (.5 - .1 - .05 of the mean of runs) + 50 (.7 - .15)
    steady = 100 * 0.35 + 50 * 0.55
    assert table["steady"][:4] == pytest.approx((steady, steady - 7.5, steady, steady))
    today = 100 * 0.5 + 50 * 0.7
    first = today - 2 * 150
    assert table["late"][:4] == pytest.approx((first, first, (7 * today - 300) / 7, today))
    assert days.table["agent"].to_list() == ["steady", "late"]
    # a day of the test has half of the sessions: steady gains d/2 of 62.5, noise sqrt(150 d)
    assert table["steady"][4] == next(
        d for d in range(7, 99, 7) if d / 2 * steady >= 2.8 * (150 * d) ** 0.5
    )
    assert table["late"][4] >= 14


def test_what_is_not_known():
    """Runs shorter than a day, logs without times, regret that is unknown."""
    curves = {("a", "x", 0): lambda step: 0.0}
    days = by_day(rows(curves, [10, 40]), {"a": past("a", 50.0, 0.1)})
    assert days.table.row(0) == ("x", None, None, None, None, None)
    longer = by_day(rows(curves, [10, 60]), {"a": past("a", 50.0, -0.1)})
    assert longer.table.row(0) == ("x", -5.0, -5.0, None, None, None)
    assert by_day(rows(curves, [10]), {"a": past("a", 0.0, 0.1)}) is None
    assert by_day(rows(curves, [10]), {}) is None
    unknown = rows(curves, [10]).with_columns(regret=pl.lit(None, pl.Float64))
    assert by_day(unknown, {"a": past("a", 1.0, 0.1)}) is None


def test_refits_of_a_query_are_the_same_traffic():
    curves = {(name, "x", run): lambda step: 0.0 for name in ("a1", "a2") for run in (0, 1)}
    days = by_day(rows(curves, [100]), {"a1": past("a", 10.0, 0.2), "a2": past("a", 10.0, 0.4)})
    assert days.sessions == 10
    assert days.clicks == pytest.approx(10 * (1.3 + 1.1) / 2)
    assert days.table.row(0)[1:3] == pytest.approx((3.0, 2.0))


@pytest.mark.parametrize("unit", [1, 1e3, 1e6])
@pytest.mark.parametrize(("dates", "days"), [(False, 29.5), (True, 30)])
def test_sessions_a_day(unit, dates, days):
    """From times in seconds or parts of them; the last of dates is a whole day."""
    log = a_log(600)
    log.times = (1_767_225_600 + np.linspace(0, 29 if dates else 29.5, 600) * DAY) * unit
    if dates:
        log.times -= log.times % (DAY * unit)
    sessions = Start(log).sessions(clickgym.runner.make.make_env(("PBMRank-v0", {}), shop()))
    assert sessions.per_day == pytest.approx(600 / days)


def test_a_sweep_from_a_log():
    """The fixed list of today gains nothing, and the best list what it earns more, each day."""
    log = a_log(700)
    log.times = 1_767_225_600 + log.times * 60 * 20.0  # 72 a day
    settings = {"instances": [shop()], "start": log, "n_jobs": 1}
    results = clickgym.sweep(["PBMRank-v0"], ["Fixed", "Oracle", "Random"], 800, 3, **settings)
    ((title, heads, table),) = in_words(results).days
    assert "(72 sessions a day)" in title
    cells = {row[0]: row[1:] for row in table}
    assert cells["Fixed"][:4] == ["+0.0"] * 4
    facts = results.configuration.start["PBMRank-v0"]["shoes"]
    best = facts["per_day"] * facts["today"]
    assert [float(cell) for cell in cells["Oracle"][:4]] == pytest.approx([best] * 4, abs=0.5)
    assert int(cells["Oracle"][4]) % 7 == 0
    played = results.table().filter(pl.col("agent") == "Fixed")["reward"].item()
    assert facts["clicks"] == pytest.approx(played, rel=0.1)
    assert f"gets {72 * facts['clicks']:,.0f} " in title
    assert cells["Random"][4] == "–"
    assert len(heads) == 6


@pytest.mark.parametrize(("n_lists", "told"), [(1, False), (3, True)])
def test_share_of_todays_list(n_lists, told):
    """Of three lists that take turns each has a third."""
    log = a_log(600)
    log.items = np.resize([[0, 1, 2], [1, 0, 2], [2, 1, 0]][:n_lists], (600, 3))
    log.times, log.clicks = np.arange(600), np.zeros((600, 3), int)
    settings = {"instances": [shop()], "start": log, "n_jobs": 1}
    results = clickgym.sweep(["PBMRank-v0"], ["CascadeTS", "Fixed"], 10, 2, **settings)
    share = results.configuration.start["PBMRank-v0"]["shoes"]["share"]
    assert share == pytest.approx(1 / n_lists, abs=0.005)
    assert any(f"{share:.0%} in one" in note for note in in_words(results).notes) == told
