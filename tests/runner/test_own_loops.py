"""Tests of a user's own training loops next to the agents of clickgym, in one table and one
figure.
"""

from __future__ import annotations

import dataclasses

import gymnasium as gym
import numpy as np
import polars
import pytest

import clickgym
from clickgym.runner.reports.table import format_table

pytestmark = [pytest.mark.uncompiled, pytest.mark.usefixtures("undrawn")]

T = 300


def played(seed, env_id="PBMRank-v0"):
    """The result of a user's own loop, which shows the same lists as `Random`."""
    env = clickgym.RecordRegret(gym.make(env_id))
    agent = clickgym.make_agent("CascadeUCB1", env, seed=seed)
    observation, _ = env.reset(seed=seed)
    for _ in range(T):
        seen, ranking = observation, agent.rank(observation)
        observation, reward, *_ = env.step(ranking)
        agent.update(seen, ranking, observation, reward)
    return env.result("mine", trained=0)


def streams(seed=0, mode=None):
    recorded = clickgym.RecordVectorRegret(gym.make_vec("PBMRank-v0", 3, mode))
    recorded.reset(seed=seed)
    recorded.action_space.seed(0)
    for _ in range(T // 3):
        recorded.step(recorded.action_space.sample())
    return recorded.result("streams", trained=0)


def test_the_result_of_a_loop_is_that_of_run():
    mine = played(4)
    run = clickgym.run("CascadeUCB1", "PBMRank-v0", T, seed=4)
    assert (mine.env, mine.instance, mine.seed) == (run.env, run.instance, run.seed)
    for name in ("steps", "regret", "reward", "clicks"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(run, name))
    assert mine.engine == "own loop"
    assert mine.seconds > 0


def test_an_agent_that_goes_on_is_no_second_run_of_a_new_one():
    """A continued agent already knows the users, so a mean of its run and a new agent's run would
    be meaningless. An agent that was used in the user's own loop counts as continued, too.
    """
    env = gym.make("PBMRank-v0")
    agent = clickgym.make_agent("TopRank", env, horizon=100, seed=0)
    runs = [clickgym.run(agent, env, 100, seed=seed) for seed in range(3)]
    runs_of = dict(clickgym.Results(runs).table().select("agent", "runs").iter_rows())
    assert runs_of == {"TopRank": 1, "TopRank, continued": 2}
    frozen = clickgym.agents.FrozenPolicy(10, 5, model=lambda seen: range(5))  # learns nothing
    runs = [clickgym.run(frozen, env, 100, seed=seed) for seed in range(2)]
    assert clickgym.Results(runs).names("agent") == ["FrozenPolicy"]
    mine = clickgym.agents.CascadeTS(10, 5, seed=0)
    mine.update(None, mine.rank(None), [0, 1, 0, 0, 0])
    assert clickgym.run(mine, env, 5).agent == "CascadeTS, continued"

    def shared(n_items, n_positions, *, seed=None):
        return agent

    with pytest.raises(ValueError, match="shared returned an agent that has already been used"):
        clickgym.sweep(["PBMRank-v0"], {"mine": shared}, 20, 2, n_jobs=1)


# ------------------------------------------------------------------- next to the runs of others


def test_own_runs_stand_in_a_table_and_a_figure_with_others(tmp_path, capsys):
    """Own loops appear in a table and a figure together with single runs and a sweep. They have no
    differences, and the report, the table and LaTeX all say so. The report keeps all runs.
    """
    sweep = clickgym.sweep(["PBMRank-v0"], ["CascadeUCB1", "Random"], T, 3)
    seeds = sweep.rows["seed"].unique(maintain_order=True).to_list()
    mine = [played(seeds[2]), played(seeds[0])]
    single = clickgym.run("TopRank", "PBMRank-v0", T, seed=seeds[2])
    results = clickgym.Results([mine[0], streams(), sweep, single, mine[1], streams(1)])
    assert set(results.table()["reference"]) == {"CascadeUCB1"}
    table = {row["agent"]: row for row in results.table("Random").iter_rows(named=True)}
    runs = {name: row["runs"] for name, row in table.items()}
    assert runs == {"mine": 2, "streams": 2, "CascadeUCB1": 3, "Random": 3, "TopRank": 1}
    gaps = {name for name, row in table.items() if row["difference"] is not None}
    assert gaps == {"CascadeUCB1", "TopRank"}
    line = next(one for one in results.plot().axes[0].lines if one.get_label() == "mine")
    assert line.get_ydata()[-1] == pytest.approx(table["mine"]["regret"])
    results.report(tmp_path / "report", "CascadeUCB1")
    words = "mine and streams: no differences, because only runs that clickgym.run or"
    assert words in " ".join(capsys.readouterr().out.split())
    assert words in results.to_latex("CascadeUCB1")
    assert clickgym.Results([tmp_path / "report"]).rows.equals(results.rows)


def test_what_would_count_twice_or_as_another_is_refused():
    """Results cannot be joined if a run occurs twice, if two different things have the same name,
    or if rewards or horizons differ.
    """
    shaped = gym.wrappers.TransformReward(gym.make("PBMRank-v0"), lambda reward: reward + 1)
    with pytest.warns(UserWarning, match="the regret in PBMRank-v0 is unknown"):
        unknown = clickgym.run("TopRank", shaped, T, seed=0)
    run, again, short = (clickgym.run("Random", "PBMRank-v0", n, seed=n) for n in (T, T, 100))
    unseeded, another = (clickgym.run("Random", "PBMRank-v0", T) for _ in range(2))
    sweep = clickgym.sweep(["PBMRank-v0"], ["Random"], T, 2, n_jobs=1)
    mine, later = (dataclasses.replace(streams(seed), agent="Random") for seed in (0, 1))
    with pytest.warns(match=r"seeds 7001 and 7003 .* such as 0, 1000 and 2000"):
        near = [streams(seed, "sync") for seed in (7001, [7003, 7004, 7005])]
    one, other, changed = (
        clickgym.sweep({env: spec}, {name: agent}, T, 2, seed=seed, n_jobs=1)
        for env, spec, name, agent, seed in (
            ("E", "PBMRank-v0", "mine", "Random", 0),
            ("E", "PBMRank-v0:cutoff=2", "other", "TopRank", 0),
            ("E", "PBMRank-v0", "mine", "TopRank", 1),
        )
    )
    for parts, message in (
        ([played(4), short], r"different numbers .*Random 100; .*use .*env\.result\(name, 100\)"),
        ([run, again], f"Random in PBMRank-v0 has two runs with the seed {T}"),
        ([streams([6, 9, 8], "sync") for _ in "ab"], "streams .* has two runs with the seed 6"),
        (near, "seeds 7001 and 7003 .* such as 0, 1000 and 2000"),
        ([run, run], "the same result is in the list twice"),
        ([mine, sweep], "in PBMRank-v0, Random is the name of runs from different sources"),
        ([run, sweep], "in PBMRank-v0, Random is the name of runs from different sources"),
        ([one, changed], "sweep 2 of the list .* agent mine needs another label"),
        ([one, other], "env E needs another label"),
        ([unknown, run], "in PBMRank-v0, regret is unknown for TopRank"),
    ):
        with pytest.raises(ValueError, match=message):
            clickgym.Results(parts)
    assert len(clickgym.Results([run, dataclasses.replace(run, agent="other")]).table()) == 2
    for twice in ([sweep, sweep], [sweep, clickgym.Results([sweep])]):
        assert clickgym.Results(twice).table()["runs"].to_list() == [2]
    for two in ([mine, later], [unseeded, another], [near[0], streams(7004, "sync")]):
        assert clickgym.Results(two).table()["runs"].to_list() == [2]


def test_further_runs_of_an_agent_are_numbered():
    """Numbers continue after those of results that were joined before, also next to a sweep, and
    although a single checkpoint does not show where a run begins.
    """
    runs = [clickgym.run("Random", "PBMRank-v0", T, checkpoints=[T]) for _ in range(3)]
    sweep = clickgym.sweep(["PBMRank-v0"], ["TopRank"], T, 2, n_jobs=1, checkpoints=[T])
    joined = clickgym.Results([clickgym.Results(runs[:2]), sweep, runs[2]])
    row = joined.table().row(by_predicate=polars.col("agent") == "Random", named=True)
    assert (row["runs"], row["units"]) == (3, 3)
    assert row["regret"] == pytest.approx(np.mean([run.regret[-1] for run in runs]))


def test_worlds_that_one_agent_did_not_play_are_named():
    """Agents that have none in common have rows and panels for each."""
    env = "ContextualPBMRank-v0:instance=personal:seed={}"
    runs = [
        clickgym.run(agent, env.format(world), 100, seed=0)
        for agent, worlds in (("Random", (1, 2)), ("LinearTS", (2, 3)), ("TopRank", (3, 4)))
        for world in worlds
    ]
    who = "LinearTS and TopRank did not play the same instances as Random"
    results = clickgym.Results(runs)
    assert any(note.startswith(who) for note in format_table(results).notes)
    assert "did not play" not in clickgym.Results(runs[:2]).to_latex()
    assert len(results.plot().axes) == 4
    assert "ContextualPBMRank-v0, personal:seed=2" in str(results)


def test_a_module_or_an_instance_in_an_id_does_not_make_another_environment():
    """A sweep names both in its label; a loop has the environment's id, and the instance."""
    sweep = clickgym.sweep(["tests.helpers.news:FrontPage-v0"], ["Random"], 1, 2, n_jobs=1)
    for env_id in ("FrontPage-v0", "tests.helpers.news:FrontPage-v0"):
        env = clickgym.RecordRegret(gym.make(env_id, tells="regret"))
        env.reset(seed=0)
        env.step(env.action_space.sample())
        single = env.result("mine")
        assert single.env == "FrontPage-v0:tells=regret"
    single = dataclasses.replace(single, env="FrontPage-v0")
    both = clickgym.Results([sweep, single])
    assert both.table()["env"].to_list() == ["FrontPage-v0"] * 2
    assert "not finished" not in str(both)
    assert clickgym.Results(sweep).names("env") == ["tests.helpers.news:FrontPage-v0"]
    pbm = "PBMRank-v0:instance=uniform:seed=1"
    sweep, run = clickgym.sweep([pbm], ["Random"], 9, 2, n_jobs=1), clickgym.run("TopRank", pbm, 9)
    assert clickgym.Results([sweep, run]).names("env") == ["PBMRank-v0"]
    same = dataclasses.replace(run, agent="Random")  # no run of the sweep's agent
    assert clickgym.Results([sweep, same]).names("env") == [pbm, "PBMRank-v0"]


def test_parallel_streams_with_too_few_users_are_named(tmp_path):
    """Every stream begins with a new user, so short runs on many streams have too many of them."""

    def play(n_streams, sessions, **limit):
        users = {"instance": "clickbait:mean_sessions=10", "autoreset_mode": "SameStep"}
        envs = clickgym.RecordVectorRegret(
            gym.make_vec("CascadeMDPRank-v0", n_streams, **users, **limit)
        )
        envs.reset(seed=0)
        while envs.meter.step < sessions:
            envs.step(envs.action_space.sample())
        return envs.result(f"{sessions} on {n_streams}", 200, trained=0)

    with pytest.warns(match=r"about 2\.5 users on each of 8 streams .* a horizon of 800,"):
        few = play(8, 200)
    enough = [play(2, 200), play(1, 201)]
    assert [result.users_per_stream for result in (few, *enough)] == [2.5, 10, None]
    with pytest.warns(match="max_episode_steps=2 ends"):
        cut = play(8, 200, max_episode_steps=2)
    assert cut.users_per_stream == pytest.approx(25 / (1 + 0.9))
    results = clickgym.Results([few, *enough])
    results.write(tmp_path / "new")
    for kept in (results, clickgym.Results(tmp_path / "new")):
        named = [note for note in format_table(kept).notes if "too many of them were new" in note]
        assert [note.split(":")[0] for note in named] == ["200 on 8"]
    earlier = clickgym.Results.of_rows(results.rows.drop("users_per_stream", "last_seed"))
    earlier.write(tmp_path / "earlier")  # as 9.0 wrote it
    assert len(clickgym.Results(tmp_path / "earlier").table()) == 3
