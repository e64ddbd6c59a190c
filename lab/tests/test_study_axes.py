"""The studies of clicks as they come: their rules on tables made to hold or to break them, their logs and their agents."""

import json

import numpy as np
import polars
import pytest

from clickgym.agents import CascadeTS, TopRank
from clickgym.runner.make import make_agent, make_env
from clickgym_lab.studies import STUDIES, axes, churn, late_clicks, warm_start
from clickgym_lab.studies.study import CM, PBM, Curves

LATE = f"{CM}:arrival=batch:100"
STEPS = (990, 1000)
QUERIES = ("one", "two", "three")


def curves(rates):
    """Curves of a run of 1,000 sessions: ``rates[env, agent]`` per session, in query n more by n hundredths of it."""
    rows = [
        (env, query, agent, 0, step, rate * step * (1 + number / 100))
        for (env, agent), rate in rates.items()
        for number, query in enumerate(QUERIES)
        for step in STEPS
    ]
    return Curves(polars.DataFrame(rows, ["env", "instance", "agent", "run", "step", "regret"], orient="row"))


@pytest.fixture
def played():
    return curves({(CM, "A"): 0.1, (LATE, "A"): 0.3, (LATE, "B"): 0.6, (LATE, "Random"): 0.9, (CM, "B"): 0.05})


def test_regret_as_a_multiple_of_that_in_another_environment_or_of_another_agent(played):
    assert axes.times(played, "A", LATE, 2.9, 3.1, base=CM) == ("3 ± 0 times over 3 queries", "yes", None)
    assert axes.times(played, "A", LATE, 3.1, 4.0, base=CM).verdict == "no"
    assert axes.times(played, "A", LATE, 0.4, 0.6, other="B").measured.startswith("0.5 ±")


def test_what_is_left_at_last_is_a_share_of_what_random_lists_lose_then(played):
    finding = axes.left(played, "A", LATE, 0.3, 0.4)
    assert (finding.measured[:5], finding.verdict) == ("0.333", "yes")
    assert axes.left(played, "A", LATE, 0.0, 0.3).verdict == "no"


def test_less_at_last_compares_within_queries(played):
    assert axes.less_at_last(played, LATE, "A", "B").verdict == "yes"
    assert axes.less_at_last(played, LATE, "B", "A").verdict == "no"
    assert "33.3 against 66.7 % of random lists’" in axes.less_at_last(played, LATE, "A", "B").measured


def test_the_order_of_the_agents_is_compared_on_each_query():
    same = curves({(CM, "A"): 1, (CM, "B"): 2, (CM, "C"): 3, (LATE, "A"): 2, (LATE, "B"): 4, (LATE, "C"): 9})
    assert late_clicks.order(same, LATE, CM, 0.8, np.inf) == ("τ = 1 ± 0 over 3 queries", "yes", None)
    turned = curves({(CM, "A"): 1, (CM, "B"): 2, (CM, "C"): 3, (LATE, "A"): 3, (LATE, "B"): 2, (LATE, "C"): 1})
    assert late_clicks.order(turned, LATE, CM, -1.5, 0.6).measured.startswith("τ = -1")
    assert late_clicks.order(turned, LATE, CM, 0.8, np.inf).verdict == "no"


def test_what_a_log_saves_is_told_from_the_labels():
    played = curves({
        (CM, "CascadeTS"): 0.4, (CM, warm_start.warm("CascadeTS", 1000)): 0.3, (CM, warm_start.warm("CascadeTS", 10_000)): 0.1,
        (CM, warm_start.warm("CascadeTS", 1000, 0.0)): 0.6, (CM, "Fixed"): 0.2, (CM, "Random"): 1.0,
    })  # fmt: skip
    assert warm_start.saves(played, CM, "CascadeTS", 1000, 0.7, 0.8).measured.startswith("0.75 ±")
    assert warm_start.saves(played, CM, "CascadeTS", 10_000, 0.3, 0.4, base=1000).verdict == "yes"
    assert warm_start.saves(played, CM, "CascadeTS", 1000, 1.9, 2.1, exchanged=0.0, base=1000).verdict == "yes"
    assert warm_start.begins_better(played, CM, "CascadeTS", 10_000, ["Fixed", "CascadeTS"]).verdict == "yes"
    assert warm_start.begins_better(played, CM, "CascadeTS", 1000, ["Fixed", "CascadeTS"]).verdict == "no"


def test_lines_and_tables_show_the_means_over_the_queries(played):
    columns, series = axes.in_envs({"at once": CM, "late": LATE}, ["A", "B"])
    title, rows = axes.table_of(played, columns, series, "T")
    assert (title, rows) == ("T", [["agent", "at once", "late"], ["B", "50.5", "606"], ["A", "101", "303"]])


# -------------------------------------------------------------------------------------------------------- logs and agents


@pytest.fixture(scope="module")
def env():
    return make_env(PBM)


def log_of(env, exchanged):
    production = tuple(map(int, env.unwrapped.initial_ranking))
    return production, warm_start.production_log(json.dumps(env.unwrapped.model.to_dict()), production, exchanged)


def test_a_log_is_of_production_and_of_its_users(env, monkeypatch):
    warm_start.production_log.cache_clear()
    monkeypatch.setattr(warm_start, "SIZES", (1000, 50_000))
    production, log = log_of(env, 0.0)
    assert (log.rankings == production[:5]).all()
    np.testing.assert_allclose(log.clicks.mean(axis=0), env.unwrapped.model.click_probabilities(production[:5]), atol=0.01)
    _, log = log_of(env, 0.2)
    assert (np.sort(log.rankings)[:, 1:] > np.sort(log.rankings)[:, :-1]).all()
    # Of 45 pairs of places the 10 among the last five change nothing that is shown.
    assert (log.rankings == production[:5]).all(axis=1).mean() == pytest.approx(1 - 0.2 * 35 / 45, abs=0.01)
    warm_start.production_log.cache_clear()


def test_an_agent_with_a_log_is_the_agent_after_learn(env, monkeypatch):
    warm_start.production_log.cache_clear()
    monkeypatch.setattr(warm_start, "SIZES", (1000, 2000))
    agent = make_agent(warm_start.warm("CascadeTS", 1000), env, horizon=10, seed=3)
    beside = CascadeTS(10, 5, seed=3)
    _, log = log_of(env, warm_start.EXCHANGED)
    beside.learn(warm_start.Log(log.rankings[:1000], log.clicks[:1000]))
    assert [agent.rank().tolist() for _ in range(5)] == [beside.rank().tolist() for _ in range(5)]
    assert agent.display == 1005
    window = make_agent(warm_start.warm("CascadeSWUCB", 1000), env, horizon=40_000, seed=0)
    assert window.hyperparameters == make_agent("CascadeSWUCB", env, horizon=40_000, seed=0).hyperparameters
    warm_start.production_log.cache_clear()


@pytest.mark.parametrize(("kind", "forgets"), [(TopRank, True), (churn.UntoldTopRank, False)])
def test_an_untold_agent_keeps_what_it_has_learned(kind, forgets):
    agent = kind(3, 2, horizon=100, seed=0)
    for _ in range(50):
        ranking = agent.rank()
        agent.update(None, ranking, (ranking == 0).astype(np.int8))
    before = [np.copy(part) for part in agent.state]
    agent.replace(0)
    assert any(not np.array_equal(then, now) for then, now in zip(before, agent.state, strict=True)) == forgets


def test_no_run_of_an_attack_or_of_batches_is_shortened():
    parts = [part for name in ("late-clicks", "click-farms", "churn", "warm-start") for part in STUDIES[name].parts]
    assert len(parts) == 8
    assert all(part.least_horizon == part.horizon and part.runs == part.least_runs == 1 for part in parts)
