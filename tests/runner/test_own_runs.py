"""Training loops of one's own beside the agents of clickgym: one table, one figure."""

from __future__ import annotations

import dataclasses
from copy import deepcopy

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

import clickgym
from clickgym.envs import ClickEnv, ClickVectorEnv, PositionBasedModel
from clickgym.runner.reports.table import in_words

pytestmark = pytest.mark.uncompiled

T = 300


def played(seed, env_id="PBMRank-v0"):
    """A loop of one's own, which shows what `Random` shows."""
    env = clickgym.RecordRegret(gym.make(env_id))
    agent = clickgym.make_agent("CascadeUCB1", env, seed=seed)
    observation, _ = env.reset(seed=seed)
    for _ in range(T):
        ranking = agent.rank(observation)
        seen = observation
        observation, reward, *_ = env.step(ranking)
        agent.update(seen, ranking, observation, reward)
    return env.result("mine", trained=0)


def streams(seed=0):
    recorded = clickgym.RecordVectorRegret(gym.make_vec("PBMRank-v0", num_envs=3))
    recorded.reset(seed=seed)
    recorded.action_space.seed(seed)
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


def test_a_run_tells_whether_its_agent_began_there():
    """Of an agent of the package, also if it learned in a loop of one's own."""
    agent = clickgym.agents.CascadeTS(10, 5, seed=0)
    copy = deepcopy(agent)
    agent.update(None, agent.rank(None), [0, 1, 0, 0, 0])
    own = type("Own", (clickgym.agents.EpsilonGreedy,), {"__module__": "mine"})(10, 5)
    for one, expected in (
        (copy, ("CascadeTS", 0)),
        (agent, ("CascadeTS, continued", None)),
        (own, ("Own", None)),
    ):
        result = clickgym.run(one, "PBMRank-v0", 5)
        assert (result.agent, result.trained) == expected


def test_environments_that_one_agent_steps_in_turn_are_one_training():
    envs = [clickgym.RecordRegret(gym.make("PBMRank-v0")) for _ in range(3)]
    for seed, env in enumerate(envs):
        env.reset(seed=seed)
    for env in [*envs[:2], *envs[:2], envs[2], envs[2]]:
        env.step(range(5))
    results = [env.result("mine", trained=0) for env in envs]
    with pytest.raises(ValueError, match=r"^runs of mine were stepped in turn"):
        clickgym.Results(results[:2])
    assert len(clickgym.Results(results[1:]).rows.filter(step=2)) == 2


def test_sessions_that_were_not_recorded_are_counted():
    """Those before the record, whatever seed follows, and those that another loop played since."""
    env = gym.make("PBMRank-v0")
    clickgym.run("Random", env, 50, seed=0)
    late = clickgym.RecordRegret(env)
    late.reset(seed=0)
    for _ in range(3):
        late.step(range(5))
    assert late.result("mine").unrecorded == 50
    env.step(range(5))
    late.step(range(5))
    assert [late.result("mine", n).unrecorded for n in (3, 4)] == [50, 51]
    assert "51 sessions were not recorded" in repr(late.result("mine"))
    whole = clickgym.RecordRegret(gym.make("PBMRank-v0"))
    assert clickgym.run("Random", whole, 5, seed=0).unrecorded == whole.result("r").unrecorded == 0


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("env_id", ["PBMRank-v0", "CascadeMDPRank-v0"])
def test_sessions_of_streams_that_were_not_recorded(env_id, mode):
    """Steps that only reset a stream are none."""
    envs = gym.make_vec(env_id, 4, max_episode_steps=9, autoreset_mode=mode)
    whole = clickgym.RecordVectorRegret(envs)
    whole.reset(seed=0)
    for _ in range(60):
        whole.step(envs.action_space.sample())
    assert whole.result("mine").unrecorded == 0
    late = clickgym.RecordVectorRegret(envs)
    late.reset(seed=0)
    late.step(envs.action_space.sample())
    assert late.result("mine").unrecorded == whole.meter.step > 200


def test_a_loop_in_many_queries_keeps_its_query():
    """If it played one: then its runs are paired with others by the query."""
    instance = "queries:split=test,n_sessions=20"
    env = clickgym.RecordRegret(gym.make("QueriesPBMRank-v0", instance=instance))
    env.reset(seed=3)
    for _ in range(20):
        env.step(range(5))
    env.reset(seed=5)
    env.step(range(5))
    assert env.result("mine", 20).query == clickgym.run("Random", env.env, 5, seed=3).query == 3
    assert env.result("mine").query is None


def test_an_agent_that_goes_on_is_no_second_run_of_a_new_one():
    """It knows the users already, so that its mean with the first run is of nothing."""
    env = gym.make("PBMRank-v0")
    agent = clickgym.make_agent("TopRank", env, horizon=100, seed=0)
    runs = [clickgym.run(agent, env, 100, seed=seed) for seed in range(3)]
    runs_of = dict(clickgym.Results(runs).table().select("agent", "runs").iter_rows())
    assert runs_of == {"TopRank": 1, "TopRank, continued": 2}

    def shared(n_items, n_positions, *, seed=None):
        return agent

    with pytest.raises(ValueError, match="shared returned an agent that has played"):
        clickgym.sweep(["PBMRank-v0"], {"mine": shared}, 20, 2, n_jobs=1)


# ------------------------------------------------------------------------------- names of results


def loops(make_env, make_envs, lists=([0, 1], [[0, 1]])):
    """The environments' names of a loop of one session in each."""
    names = []
    for recorder, env, action in (
        (clickgym.RecordRegret, make_env(), lists[0]),
        (clickgym.RecordVectorRegret, make_envs(), lists[1]),
    ):
        recorded = recorder(env)
        recorded.reset()
        recorded.step(np.array(action))
        names.append(recorded.result("mine").env)
    return names


def test_arguments_and_users_are_part_of_the_name():
    """As in a sweep; users without a name have a mark, and the same ones the same."""
    arguments = {"reward": "any_click", "attraction": [0.5, 0.25, 0.1], "examination": [1.0, 0.5]}
    (label,) = clickgym.sweep([("PBMRank-v0", arguments)], ["Random"], 5, 1).names("env")
    arguments["attraction"] = np.array(arguments["attraction"])
    assert {
        *loops(
            lambda: gym.make("PBMRank-v0", **arguments),
            lambda: gym.make_vec("PBMRank-v0", 1, **arguments),
        ),
        clickgym.run("Random", ("PBMRank-v0", arguments), 1).env,
    } == {label}
    flat, steep = (PositionBasedModel([p, 0.2, 0.1], [1.0, 0.5]) for p in (0.3, 0.9))
    changing = [{"models": models, "starts": [0, 5]} for models in ([flat, steep], [steep, flat])]
    others = [
        clickgym.run("Random", env, 10, seed=0).env
        for env in (
            *(flat, steep, ClickEnv(flat, reward="any_click"), ClickEnv(flat, reference=[2, 1])),
            *(gym.make("NonStationaryPBMRank-v0", **given) for given in changing),
            *(gym.make("PBMRank-v0", cutoff=np.int64(cutoff)) for cutoff in (2, 3)),
        )
    ]
    assert len({*others}) == 8
    assert others[-1] == "PBMRank-v0:cutoff=3"
    assert {*loops(lambda: ClickEnv(steep), lambda: ClickVectorEnv(steep, 1))} == {others[1]}


@pytest.mark.parametrize("env_id", ["CascadeMDPRank-v0", "PBMRank-v0"])
def test_users_who_are_cut_off_earlier_are_another_environment(env_id):
    """If they may leave; else every session is independent of those before it."""
    given = {"max_episode_steps": 2}
    (label,) = clickgym.sweep([(env_id, given)], ["Random"], 5, 1).names("env")
    env = clickgym.RecordRegret(TimeLimit(gym.make(env_id), 2))
    env.reset(seed=0)
    env.step(env.action_space.sample())
    names = {clickgym.run("Random", (env_id, given), 5).env, env.result("mine").env}
    assert names == {label if env_id.startswith("Cascade") else "PBMRank-v0"}


def test_users_who_came_or_changed_otherwise_are_another_environment():
    """No count of sessions shows it: episodes that were cut, and users of a second seed."""
    envs = clickgym.RecordVectorRegret(gym.make_vec("NonStationaryPBMRank-v0", 2))
    for seed, label in ((None, "one clock per stream"), (0, "seeded again")):
        envs.reset(seed=seed)
        envs.step(envs.action_space.sample())
        assert envs.result("mine").env == f"NonStationaryPBMRank-v0, {label}"
    for env_id, seed, label in (
        ("CascadeMDPRank-v0", None, ", episodes cut short"),
        ("PBMRank-v0", 0, ", seeded again"),
        ("NonStationaryPBMRank-v0", None, ""),
        ("PBMRank-v0", None, ""),
    ):
        env = clickgym.RecordRegret(gym.make(env_id))
        env.reset(seed=0)
        while env.step(env.action_space.sample())[2]:  # a user who has left
            env.reset()
        env.reset(seed=seed)
        env.step(env.action_space.sample())
        whole, first = env.result("mine"), env.result("mine", 1)
        assert (whole.env, whole.seed) == (env_id + label, 0 if seed is None else None)
        assert first.seed == 0


@pytest.mark.parametrize("env_id", ["CascadeMDPRank-v0", "QueriesPBMRank-v0"])
def test_streams_of_few_episodes_are_another_environment(env_id):
    """They all begin with new users, unless all episodes have ended at the same time. Ten of each
    stream are enough.
    """
    envs = clickgym.RecordVectorRegret(gym.make_vec(env_id, 4, max_episode_steps=20))
    envs.reset(seed=0)
    labels, n_ended = [], []
    for _ in range(300):
        _, _, terminated, truncated, _ = envs.step(envs.action_space.sample())
        n_ended.append(np.count_nonzero(terminated | truncated))
        labels.append(envs.result("mine").env.partition(", ")[2])
    few = "few episodes per stream"
    whole = "" if env_id.startswith("Queries") else few  # also while the next step only resets
    assert labels[18:22] == [few, whole, whole, few]
    enough = int(np.searchsorted(np.cumsum(n_ended), 4 * 10))
    assert (labels[enough - 1], {*labels[enough:]}) == (few, {""})


# ---------------------------------------------------------------------- beside the runs of others


def test_own_runs_stand_in_a_table_and_a_figure_with_others(tmp_path, capsys):
    """Compared run by run where the users were the same, and else without a difference, which all
    say; beside single runs and those of a sweep.
    """
    sweep = clickgym.sweep(["PBMRank-v0"], ["CascadeUCB1", "Random"], T, 3)
    seeds = sweep.rows["seed"].unique(maintain_order=True).to_list()
    mine = [played(seeds[2]), played(seeds[0])]
    single = clickgym.run("TopRank", "PBMRank-v0", T, seed=seeds[2])
    others = [streams(seeds[2]), streams(seeds[0])]
    results = clickgym.Results([mine[0], others[0], sweep, single, mine[1], others[1]])
    table = {row["agent"]: row for row in results.table("CascadeUCB1").iter_rows(named=True)}
    runs = {name: row["runs"] for name, row in table.items()}
    assert runs == {"mine": 2, "streams": 2, "CascadeUCB1": 3, "Random": 3, "TopRank": 1}
    assert table["mine"]["difference"] == 0
    assert table["streams"]["difference"] is table["streams"]["p"] is None
    line = next(one for one in results.plot().axes[0].lines if one.get_label() == "mine")
    assert line.get_ydata()[-1] == pytest.approx(table["mine"]["regret"])
    results.report(tmp_path / "report", "CascadeUCB1")
    words = "streams met users of its own, not those of the others."
    assert words in " ".join(capsys.readouterr().out.split())
    assert words in results.to_latex("CascadeUCB1")
    # in some runs is in all: the others would be a choice
    some = clickgym.Results([*mine, dataclasses.replace(played(3), seed=None), sweep])
    assert some.table("CascadeUCB1").filter(agent="mine")["difference"].to_list() == [None]


def test_the_first_sessions_of_a_longer_loop():
    """They are those of a loop that ended there."""
    results = []
    for n in (320, T):
        env = clickgym.RecordRegret(gym.make("PBMRank-v0"))
        env.reset(seed=0)
        env.action_space.seed(0)
        for _ in range(n):
            env.step(env.action_space.sample())
        results.append(env.result("mine", T, trained=20_000))
    long, short = results
    assert long.steps.tolist() == short.steps.tolist()
    assert long.regret.tolist() == short.regret.tolist()
    assert clickgym.Results(long).rows["trained"].unique().to_list() == [20_000]
    with pytest.raises(ValueError, match="300 sessions were measured; a result of 319 is none"):
        env.result("mine", 319)


def test_streams_of_one_training_are_no_runs():
    """Records in a vector of several environments. A vector of one is a run."""
    vectors = gym.vector.SyncVectorEnv, gym.vector.AsyncVectorEnv
    for vector, n in ((vectors[0], 2), (vectors[1], 2), (vectors[0], 1)):
        envs = vector([lambda: clickgym.RecordRegret(gym.make("PBMRank-v0"))] * n)
        envs.reset()
        envs.step(np.tile(range(5), (n, 1)))
        found = list(envs.call("result", "PPO"))
        envs.close()
        if n == 1:
            assert clickgym.Results(found).table()["runs"].to_list() == [1]
            break
        for some in (found, found[:1]):
            with pytest.raises(
                ValueError, match=r"one stream .* train on clickgym\.agents\.vec_env"
            ):
                clickgym.Results(some)


def test_what_would_count_twice_or_as_another_is_refused():
    """Runs that are there, two things of one name, and rewards or horizons of two kinds."""
    shaped = gym.wrappers.TransformReward(gym.make("PBMRank-v0"), lambda reward: reward + 1)
    with pytest.warns(UserWarning, match="the regret in PBMRank-v0 is unknown"):
        unknown = clickgym.run("TopRank", shaped, T, seed=0)
    run, short = (clickgym.run("Random", "PBMRank-v0", n, seed=n) for n in (T, 100))
    sweep = clickgym.sweep(["PBMRank-v0"], ["Random"], T, 2, n_jobs=1)
    mine = dataclasses.replace(streams(), agent="Random")
    one, other, changed = (
        clickgym.sweep({env: spec}, {name: agent}, T, 2, seed=seed, n_jobs=1)
        for env, spec, name, agent, seed in (
            ("E", "PBMRank-v0", "mine", "Random", 0),
            ("E", "PBMRank-v0:cutoff=2", "other", "TopRank", 0),
            ("E", "PBMRank-v0", "mine", "TopRank", 1),
        )
    )
    for parts, message in (
        ([run, short], r"different numbers of .*Random 100; .*env\.result\(name, 100\)"),
        ([run, run], f"Random in PBMRank-v0 has two runs with the seed {T}"),
        ([sweep, sweep], "Random in PBMRank-v0 has two runs with the seed"),
        ([mine, dataclasses.replace(mine, agent="other")], "of Random and other, are of one env"),
        ([mine, sweep], "two results are called Random; give one another name"),
        ([one, changed], "two results are called mine"),
        ([one, other], "E is not the same in two sweeps"),
        ([unknown, run], "in PBMRank-v0 the regret of TopRank is unknown, and that"),
    ):
        with pytest.raises(ValueError, match=message):
            clickgym.Results(parts)
    assert len(clickgym.Results([run, dataclasses.replace(run, agent="other")]).table()) == 2
    both = clickgym.Results([mine, dataclasses.replace(streams(seed=1), agent="Random")])
    assert both.table()["runs"].to_list() == [2]


def test_worlds_that_one_agent_did_not_play_are_named():
    env = "ContextualPBMRank-v0:instance=personal:seed={}"
    runs = [
        clickgym.run(agent, env.format(world), 100, seed=0)
        for agent, worlds in (("Random", (1, 2)), ("LinearTS", (2, 3)), ("TopRank", (3, 4)))
        for world in worlds
    ]
    who = "LinearTS and TopRank did not play the same instances as Random"
    assert any(note.startswith(who) for note in in_words(clickgym.Results(runs)).notes)
    assert "did not play" not in clickgym.Results(runs[:2]).to_latex()
