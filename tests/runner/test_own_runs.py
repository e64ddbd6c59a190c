"""Training loops of one's own beside the agents of clickgym: one table, one figure."""

from __future__ import annotations

import dataclasses

import gymnasium as gym
import numpy as np
import polars
import pytest
from gymnasium.wrappers import TimeLimit

import clickgym
from clickgym.envs import ClickEnv, ClickVectorEnv, PositionBasedModel
from clickgym.runner.reports.table import in_words

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


def test_another_reward_is_another_environment():
    """Results have the label that a sweep gives to the same arguments."""
    arguments = {"reward": "any_click", "attraction": [0.5, 0.25, 0.1], "examination": [1.0, 0.5]}
    (label,) = clickgym.sweep([("PBMRank-v0", arguments)], ["Random"], 5, 1).names("env")
    arguments["attraction"] = np.array(arguments["attraction"])
    env = clickgym.RecordRegret(gym.make("PBMRank-v0", **arguments))
    envs = clickgym.RecordVectorRegret(gym.make_vec("PBMRank-v0", 1, **arguments))
    for it, action in ((env, [0, 1]), (envs, [[0, 1]])):
        it.reset()
        it.step(action)
        assert it.result("mine").env == label
    mine = env.result("mine")
    other = clickgym.run("Random", ("PBMRank-v0", {**arguments, "reward": "clicks"}), 1)
    assert clickgym.run("Random", ("PBMRank-v0", arguments), 1).env == label
    assert clickgym.Results([mine, other]).table()["env"].n_unique() == 2


def label_of_a_loop(env):
    is_one = isinstance(env, gym.Env)
    env = (clickgym.RecordRegret if is_one else clickgym.RecordVectorRegret)(env)
    env.reset(seed=0)
    for _ in range(1 if is_one else 600):  # each stream needs ten episodes
        env.step(env.action_space.sample())
    env.close()
    return env.result("mine").env


@pytest.mark.parametrize("env_id", ["CascadeMDPRank-v0", "PBMRank-v0"])
def test_users_who_are_cut_off_earlier_are_another_environment(env_id):
    """If they may leave; else every session is independent of those before it."""
    for limit in (None, 2):
        given = {} if limit is None else {"max_episode_steps": limit}
        labels = {
            clickgym.run("Random", (env_id, given), 5).env,
            label_of_a_loop(gym.make(env_id, **given)),
            *([label_of_a_loop(TimeLimit(gym.make(env_id), limit))] if limit else []),
            label_of_a_loop(gym.make_vec(env_id, 2, **given)),
        }
        if env_id == "PBMRank-v0":
            assert labels == {"PBMRank-v0"}
        else:
            assert labels == set(clickgym.sweep([(env_id, given)], ["Random"], 5, 1).names("env"))


def test_other_users_are_another_environment():
    """Also without an id, or where an argument cannot be written; the same ones are the same."""
    flat, steep = (PositionBasedModel([p, 0.2, 0.1], [1.0, 0.5]) for p in (0.3, 0.9))
    changing = [{"models": models, "starts": [0, 5]} for models in ([flat, steep], [steep, flat])]
    labels = {
        clickgym.run("Random", env, 10, seed=0).env
        for env in (
            *(flat, steep, ClickEnv(flat, reward="any_click"), ClickEnv(flat, reference=[2, 1])),
            *(gym.make("NonStationaryPBMRank-v0", **arguments) for arguments in changing),
            *(gym.make("PBMRank-v0", cutoff=np.int64(cutoff)) for cutoff in (2, 3)),
        )
    }
    assert len(labels) == 8
    assert "PBMRank-v0:cutoff=3" in labels
    results = [clickgym.run("Random", steep, 2)]
    recorded = clickgym.RecordVectorRegret(ClickVectorEnv(steep, 2))
    recorded.reset(seed=0)
    recorded.step(np.array([[0, 1], [1, 2]]))
    results.append(recorded.result("mine"))
    assert len({result.env for result in results}) == 1


def test_a_name_for_users_of_ones_own():
    """It stands in place of their parameters, and is never that of other users."""
    shops = [
        gym.make("PBMRank-v0", attraction=p, examination=[1.0, 0.5], name="shop", cutoff=1)
        for p in ([0.5, 0.2, 0.1], [0.1, 0.2, 0.5], [0.5, 0.2, 0.1])
    ]
    first, other, same = (clickgym.run("Random", shop, 5, seed=0) for shop in shops)
    assert first.env == "PBMRank-v0:cutoff=1"
    assert first.instance.startswith("shop ")
    assert first.instance == same.instance != other.instance
    with pytest.raises(ValueError, match="instances have names of their own"):
        gym.make("PBMRank-v0", instance="yandex-990", name="shop")


def test_seeds_of_results():
    """That of the first reset, until another one follows; streams have their own users."""
    result = streams()
    assert (result.env, result.instance, result.seed) == ("PBMRank-v0", "yandex-9982", None)
    assert result.steps[-1] == T
    env = clickgym.RecordRegret(gym.make("PBMRank-v0"))
    env.reset(seed=0)
    with pytest.raises(ValueError, match="0 sessions were measured"):
        env.result("mine")
    env.step(range(5))
    env.reset()
    env.step(range(5))
    assert env.result("mine").seed == 0
    env.reset(seed=1)
    env.step(range(5))
    again, first = env.result("mine"), env.result("mine", 2)
    assert (again.env, again.seed) == ("PBMRank-v0, seeded again", None)
    assert (first.env, first.seed) == ("PBMRank-v0", 0)


class Reseeds(gym.Wrapper):
    """Gives the environment another seed than it got, the same in each episode or once."""

    def __init__(self, env, is_once):
        super().__init__(env)
        self.seeds = [42] if is_once else [42] * 9

    def reset(self, *, seed=None, options=None):
        return self.env.reset(seed=self.seeds.pop() if self.seeds else None)


def test_seeds_that_a_wrapper_inside_gives():
    for is_once, expected in ((True, ("", 42)), (False, (", seeded again", None))):
        env = clickgym.RecordRegret(Reseeds(gym.make("PBMRank-v0"), is_once))
        for _ in range(3):
            env.reset(seed=0)
            env.step(range(5))
        result = env.result("mine")
        assert (result.env, result.seed) == ("PBMRank-v0" + expected[0], expected[1])


def test_users_that_a_wrapper_inside_exchanges():
    class Curriculum(gym.Wrapper):
        def reset(self, **arguments):
            self.env = gym.make("PBMRank-v0", instance="uniform:seed=1")
            return self.env.reset(**arguments)

    env = clickgym.RecordRegret(Curriculum(gym.make("PBMRank-v0")))
    env.reset(seed=0)
    env.step(range(5))
    assert env.result("mine").env.endswith(", users exchanged")


class PlaysFirst(gym.Wrapper):
    """Plays sessions of its own at the start of an episode, and each list twice."""

    def reset(self, **arguments):
        outcome = self.env.reset(**arguments)
        for _ in range(7):
            self.env.step(range(5))
        return outcome

    def step(self, action):
        self.env.step(action)
        return self.env.step(action)


def test_sessions_that_were_not_recorded_are_counted():
    """Those before the record, whatever seed follows, and those of wrappers inside of it."""
    env = gym.make("PBMRank-v0")
    clickgym.run("Random", env, 50, seed=0)
    late, inside = clickgym.RecordRegret(env), clickgym.RecordRegret(PlaysFirst(env))
    late.reset(seed=0)
    for _ in range(3):
        late.step(range(5))
    assert late.result("mine").unrecorded == 50
    env.step(range(5))
    late.step(range(5))
    assert [late.result("mine", n).unrecorded for n in (3, 4)] == [50, 51]
    assert "51 sessions were not recorded" in repr(late.result("mine"))
    inside.reset(seed=0)
    inside.step(range(5))
    inside.step(range(5))
    assert inside.result("mine").unrecorded == 55 + 7 + 2
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


def test_what_was_learned_before_is_told_by_the_user():
    env = clickgym.RecordRegret(gym.make("PBMRank-v0"))
    env.reset(seed=0)
    env.step(range(5))
    results = clickgym.Results(env.result("mine", trained=20_000))
    assert results.rows["trained"].to_list() == [20_000]
    for told in (None, 0):
        assert clickgym.Results(env.result("mine", trained=told)).rows["trained"].item() is told
    assert env.result("mine").trained is None
    assert clickgym.run("Random", "PBMRank-v0", 5).trained == 0
    assert "after 20,000 sessions of training" in repr(env.result("mine", trained=20_000))
    with pytest.raises(ValueError, match="trained is -1; expected"):
        env.result("mine", trained=-1)


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


def test_streams_of_one_training_are_no_runs():
    """Records in a vector of several environments: of stable-baselines3 or Gymnasium, also in
    processes of their own. A vector of one is a run.
    """
    sb3 = pytest.importorskip("stable_baselines3.common.vec_env")
    lists = np.tile(range(5), (2, 1))

    def make():
        return clickgym.RecordRegret(gym.make("PBMRank-v0"))

    def results(envs, ask, n=2):
        envs.reset()
        envs.step(lists[:n])
        found = list(getattr(envs, ask)("result", "PPO"))
        envs.close()
        return found

    for streams_of in (
        results(sb3.DummyVecEnv([make, make]), "env_method"),
        results(sb3.SubprocVecEnv([make, make]), "env_method"),
        results(gym.vector.SyncVectorEnv([make, make]), "call"),
        results(gym.vector.AsyncVectorEnv([make, make]), "call"),
    ):
        with pytest.raises(ValueError, match=r"one stream .* train on clickgym\.agents\.vec_env"):
            clickgym.Results(streams_of)
    one = clickgym.Results(results(sb3.DummyVecEnv([make]), "env_method", 1))
    assert one.table()["runs"].to_list() == [1]


def test_users_who_came_or_changed_otherwise_are_another_environment():
    """No count of sessions shows it: episodes that were cut, and users of a second seed."""
    envs = clickgym.RecordVectorRegret(gym.make_vec("NonStationaryPBMRank-v0", 2))
    envs.reset()
    envs.step(envs.action_space.sample())
    assert envs.result("mine").env == "NonStationaryPBMRank-v0, one clock per stream"
    envs.reset(seed=0)
    envs.step(envs.action_space.sample())
    assert envs.result("mine").env == "NonStationaryPBMRank-v0, seeded again"
    for env_id, seed, label in (
        ("CascadeMDPRank-v0", None, ", episodes cut short"),
        ("NonStationaryPBMRank-v0", 0, ", seeded again"),
        ("PBMRank-v0", 0, ", seeded again"),
        ("NonStationaryPBMRank-v0", None, ""),
        ("PBMRank-v0", None, ""),
    ):
        env = clickgym.RecordRegret(gym.make(env_id))
        env.reset(seed=0)
        env.reset(seed=0)
        while env.step(env.action_space.sample())[2]:  # a user who has left
            env.reset()
        env.reset(seed=seed)
        env.step(env.action_space.sample())
        assert env.result("mine").env == env_id + label


class Short(gym.Wrapper):
    """Ends an episode after three sessions, as a time limit of one's own."""

    def reset(self, **arguments):
        self.sessions = 0
        return self.env.reset(**arguments)

    def step(self, action):
        self.sessions += 1
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, terminated, truncated or self.sessions == 3, info


class EndsAtClick(gym.Wrapper):
    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, terminated or reward > 0, truncated, info


@pytest.mark.parametrize("wrap", [Short, EndsAtClick])
@pytest.mark.parametrize("env_id", ["CascadeMDPRank-v0", "QueriesPBMRank-v0", "PBMRank-v0"])
def test_episodes_that_a_wrapper_inside_cuts(env_id, wrap):
    """They are told as those that the loop cuts, unless the users cannot leave; those that other
    code cut before the first session are not.
    """
    env = gym.make(env_id)
    env.reset(seed=0)
    env.step(env.action_space.sample())
    whole, cut = (clickgym.RecordRegret(it) for it in (env, wrap(env)))
    for recorded, label in ((whole, ""), (cut, ", episodes cut short")):
        recorded.action_space.seed(0)
        recorded.reset()
        for _ in range(300):
            *_, terminated, truncated, _ = recorded.step(recorded.action_space.sample())
            if terminated or truncated:
                recorded.reset()
        assert recorded.result("mine").env == env_id + (label if env_id != "PBMRank-v0" else "")


def test_a_limit_of_ones_own_is_no_other_than_that_of_the_label():
    env = clickgym.RecordRegret(Short(gym.make("CascadeMDPRank-v0", max_episode_steps=3)))
    envs = clickgym.RecordVectorRegret(gym.make_vec("CascadeMDPRank-v0", 2, max_episode_steps=3))
    env.reset(seed=0)
    envs.reset(seed=0)
    for _ in range(60):
        if any(env.step(env.action_space.sample())[2:4]):
            env.reset()
        envs.step(envs.action_space.sample())
    label = "CascadeMDPRank-v0:max_episode_steps=3"
    assert env.result("mine").env == envs.result("mine").env == label
    env.reset()
    env.step(env.action_space.sample())
    env.reset()
    env.step(env.action_space.sample())
    assert env.result("mine").env == f"{label}, episodes cut short"
    envs.reset()
    envs.step(envs.action_space.sample())
    envs.reset()
    envs.step(envs.action_space.sample())
    assert envs.result("mine").env == f"{label}, episodes cut short"


@pytest.mark.parametrize("env_id", ["CascadeMDPRank-v0", "QueriesPBMRank-v0"])
def test_streams_of_few_episodes_are_another_environment(env_id):
    """They all begin with new users, unless all episodes have ended at the same time."""
    envs = clickgym.RecordVectorRegret(gym.make_vec(env_id, 4, max_episode_steps=20))
    envs.reset(seed=0)
    labels = []
    for _ in range(300):
        envs.step(envs.action_space.sample())
        labels.append(envs.result("mine").env.partition(", ")[2])
    few = "few episodes per stream"
    assert (labels[0], labels[-1]) == (few, "")
    assert envs.result("mine", 100).env.endswith(few)
    whole = "" if env_id.startswith("Queries") else few  # also while the next step only resets
    assert labels[18:22] == [few, whole, whole, few]


def test_own_runs_stand_in_a_table_and_a_figure_with_others(tmp_path):
    """Compared run by run where the users were the same, and else without a difference."""
    seeds = (7, 3, 5)
    mine, vector = [played(seed) for seed in seeds], [streams(seed=seed) for seed in range(2)]
    others = [
        clickgym.run(agent, "PBMRank-v0", T, seed=seed)
        for agent in ("CascadeUCB1", "Random")
        for seed in sorted(seeds)
    ]
    results = clickgym.Results([*mine, *vector, *others])
    table = {row["agent"]: row for row in results.table("mine").iter_rows(named=True)}
    assert {name: row["runs"] for name, row in table.items()} == {
        "mine": 3,
        "streams": 2,
        "CascadeUCB1": 3,
        "Random": 3,
    }
    assert table["CascadeUCB1"]["difference"] == 0
    lost = np.array([run.regret[-1] for run in others[3:]])
    gaps = lost - [run.regret[-1] for run in sorted(mine, key=lambda run: run.seed)]
    assert table["Random"]["difference"] == pytest.approx(gaps.mean())
    assert 0 < table["Random"]["p"] < 1
    assert table["streams"]["difference"] is table["streams"]["p"] is None
    figure = results.plot(tmp_path / "four.png")
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    assert lines.keys() == table.keys()
    assert lines["mine"].get_ydata()[-1] == pytest.approx(table["mine"]["regret"])


def test_own_runs_stand_beside_those_of_a_sweep(tmp_path, capsys):
    """A run with the seed of a run of the sweep met its users; streams did not, and all say so."""
    sweep = clickgym.sweep(["PBMRank-v0"], ["CascadeUCB1", "Random"], T, 3)
    seeds = sweep.rows["seed"].unique(maintain_order=True).to_list()
    results = clickgym.Results(
        [played(seeds[2]), streams(), sweep, played(seeds[0]), streams(seed=1)]
    )
    table = {row["agent"]: row for row in results.table("CascadeUCB1").iter_rows(named=True)}
    assert table["mine"]["difference"] == 0
    assert table["streams"]["difference"] is table["streams"]["p"] is None
    runs = {name: row["runs"] for name, row in table.items()}
    assert runs == {"mine": 2, "streams": 2, "CascadeUCB1": 3, "Random": 3}
    results.report(tmp_path / "report", "CascadeUCB1")
    words = "streams met users of its own, not those of the others."
    assert words in " ".join(capsys.readouterr().out.split())
    assert words in results.to_latex("CascadeUCB1")
    assert "mine met" not in results.to_latex("CascadeUCB1")
    other = clickgym.Results([*(played(seed) for seed in range(3)), sweep])
    assert other.table("CascadeUCB1").filter(agent="mine")["difference"].to_list() == [None]
    assert "difference" not in clickgym.Results([played(seed) for seed in range(3)]).to_latex()
    with pytest.raises(ValueError, match="two results are called mine"):
        clickgym.Results([results, played(seeds[0])])


def test_the_first_sessions_of_a_longer_loop():
    """They are those of a loop that ended there."""
    results = []
    for n in (320, T):
        env = clickgym.RecordRegret(gym.make("PBMRank-v0"))
        env.reset(seed=0)
        env.action_space.seed(0)
        for _ in range(n):
            env.step(env.action_space.sample())
        results.append(env.result("mine", T))
    long, short = results
    assert long.steps.tolist() == short.steps.tolist()
    assert long.regret.tolist() == short.regret.tolist()
    assert (long.steps[-1], long.reward[-1]) == (T, short.reward[-1])
    clickgym.Results([clickgym.run("Random", "PBMRank-v0", T), long])
    with pytest.raises(ValueError, match="300 sessions were measured; a result of 319 is none"):
        env.result("mine", 319)


def test_runs_that_cannot_be_compared_are_refused():
    runs = [clickgym.run("Random", "PBMRank-v0", n, seed=n) for n in (100, 200)]
    with pytest.raises(
        ValueError,
        match=r"different numbers of .*Random 100, Random 200; .*env\.result\(name, 100\)",
    ):
        clickgym.Results(runs)
    with pytest.raises(ValueError, match="Random in PBMRank-v0 has two runs with the seed 100"):
        clickgym.Results([runs[0], runs[0]])
    clickgym.Results([runs[0], dataclasses.replace(runs[0], agent="other")])
    assert len(clickgym.Results(runs[0]).table()) == 1


def test_regret_known_of_some_and_unknown_of_others_is_refused():
    """Their rewards are of two kinds, and so no total of them can be compared."""
    shaped = gym.wrappers.TransformReward(gym.make("PBMRank-v0"), lambda reward: reward + 1)
    with pytest.warns(UserWarning, match="the regret in PBMRank-v0 is unknown"):
        mine = clickgym.run("Random", shaped, T, seed=0)
    known = clickgym.run("CascadeTS", "PBMRank-v0", T, seed=0)
    with pytest.raises(ValueError, match="in PBMRank-v0 the regret of Random is unknown, and that"):
        clickgym.Results([mine, known])
    assert clickgym.Results(mine).table()["regret"].to_list() == [None]


def test_one_name_for_two_agents_is_refused():
    """Also without a seed, where each run counts."""
    sweep = clickgym.sweep(["PBMRank-v0"], ["Random"], T, 2)
    mine = dataclasses.replace(streams(), agent="Random")
    for parts in (
        [mine, sweep],
        [sweep, mine],
        [mine, clickgym.run("Random", "PBMRank-v0", T)],
    ):
        with pytest.raises(ValueError, match="two results are called Random; give one another"):
            clickgym.Results(parts)
    both = clickgym.Results([mine, dataclasses.replace(streams(seed=1), agent="Random")])
    assert both.table()["runs"].to_list() == [2]


def test_sweeps_of_several_seeds_are_further_runs():
    """Of each instance; and no run counts twice."""
    first, second, third = (
        clickgym.sweep(["PBMRank-v0"], ["Random"], T, runs, seed=seed, instances=instances)
        for runs, seed, instances in (
            (2, 0, ["yandex-9982", "uniform"]),
            (3, 1, ["yandex-9982", "uniform"]),
            (4, 2, ["uniform"]),
        )
    )
    assert clickgym.Results([first, second]).table()["runs"].to_list() == [5]
    assert clickgym.Results([first, second, third]).table()["runs"].to_list() == [5]  # the fewest
    mine, other = (
        clickgym.sweep(["PBMRank-v0"], {"mine": agent}, T, 2, seed=seed)
        for agent, seed in (("Random", 0), ("TopRank", 1))
    )
    with pytest.raises(ValueError, match="two results are called mine; give one another name"):
        clickgym.Results([mine, other])
    for twice in ([first, first], polars.concat([first.rows, first.rows])):
        with pytest.raises(ValueError, match="Random in PBMRank-v0 has two runs with the seed"):
            clickgym.Results(twice)


def test_the_first_sessions_of_one_recorder_are_one_run():
    """Whatever name they get, and with how many models in a row it was used."""
    envs = clickgym.RecordVectorRegret(gym.make_vec("PBMRank-v0", num_envs=3))
    envs.action_space.seed(0)
    results = []
    for name in ("first", "second"):
        envs.reset(seed=0)
        for _ in range(T // 3):
            envs.step(envs.action_space.sample())
        results.append(envs.result(name, T))
    for name in ("first", "second"):
        with pytest.raises(ValueError, match="has the same run"):
            clickgym.Results([results[0], dataclasses.replace(results[1], agent=name)])


def test_an_agent_with_users_of_its_own_in_some_runs_has_no_difference():
    runs = [clickgym.run("Random", "PBMRank-v0", T, seed=seed) for seed in range(3)]
    mine = [played(seed) for seed in range(3)]
    with_others = [*runs, *mine, dataclasses.replace(played(3), seed=None)]
    assert clickgym.Results([*runs, *mine]).table("Random")["difference"].count() == 1
    assert clickgym.Results(with_others).table("Random")["difference"].count() == 0


def test_worlds_that_one_agent_did_not_play_are_named():
    """Differences are over those that both played, and nothing is counted without any."""
    env = "ContextualPBMRank-v0:instance=personal:seed={}"
    runs = [
        clickgym.run(agent, env.format(world), 100, seed=0)
        for agent, worlds in (("Random", (1, 2)), ("LinearTS", (2, 3)), ("TopRank", (3, 4)))
        for world in worlds
    ]
    notes = in_words(clickgym.Results(runs)).notes
    who = "LinearTS and TopRank did not play the same instances as Random"
    assert any(note.startswith(who) for note in notes)
    assert "in 0 of 0" not in " ".join(notes)
    assert "did not play" not in clickgym.Results(runs[:2]).to_latex()


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


def test_one_label_of_two_environments_or_agents_is_refused():
    """Differences would be between users of two kinds."""
    first, second, third = (
        clickgym.sweep({label: env}, {name: agent}, 20, 2, n_jobs=1)
        for label, env, name, agent in (
            ("E", "PBMRank-v0", "mine", "Random"),
            ("E", "PBMRank-v0:cutoff=2", "other", "TopRank"),
            ("F", "PBMRank-v0:cutoff=2", "mine", "TopRank"),
        )
    )
    for together, label in (([first, second], "E"), ([first, third], "mine")):
        with pytest.raises(ValueError, match=f"{label} is not the same in two sweeps"):
            clickgym.Results(together)
    assert clickgym.Results([second, third]).names("env") == ["E", "F"]
