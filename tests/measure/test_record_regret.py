"""Tests of the recorders: what they store of each session, what they reject, and the names in their
results.
"""

from __future__ import annotations

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from gymnasium.wrappers import NormalizeReward, TimeLimit
from gymnasium.wrappers.vector import TransformReward

import clickgym
from clickgym import RecordRegret, RecordVectorRegret
from clickgym.envs import ClickEnv, ClickVectorEnv, ItemByItem, PositionBasedModel, SessionError
from tests.helpers.news import News

pytestmark = pytest.mark.uncompiled

MODEL = PositionBasedModel([0.5, 0.3], [1.0, 0.5])


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_all_sessions_of_streams_are_kept(mode):
    """There are more sessions than the first arrays hold, and they are stored stream by stream.
    Steps that only reset a stream do not count as sessions.
    """
    envs = RecordVectorRegret(ClickVectorEnv(MODEL, 30, max_episode_steps=9, autoreset_mode=mode))
    envs.reset(seed=0)
    envs.action_space.seed(0)
    best, sessions = MODEL.expected_reward([0, 1]), []
    for step in range(60):
        lists = envs.action_space.sample()
        clicks, rewards, *_, infos = envs.step(lists)
        if mode == "SameStep" or step % 10 < 9:
            clicks = np.stack(infos["final_obs"]) if "final_obs" in infos else clicks
            lost = [best - MODEL.expected_reward(ranking) for ranking in lists]
            sessions += zip(lost, rewards, clicks.sum(axis=1), strict=True)
    kept = np.stack([envs.meter.regret, envs.meter.reward, envs.meter.clicks], axis=1)
    np.testing.assert_array_equal(kept, np.cumsum(sessions, axis=0))
    assert envs.meter.step == len(sessions)


def test_a_step_of_more_sessions_than_were_kept_so_far():
    envs = RecordVectorRegret(ClickVectorEnv(MODEL, 5000))
    envs.reset(seed=0)
    _, rewards, *_ = envs.step([[0, 1]] * 5000)
    assert envs.meter.reward.tolist() == rewards.cumsum().tolist()


class Tenfold(gym.Wrapper):
    """A wrapper of a user's own, which multiplies the rewards by 10."""

    def step(self, action):
        observation, reward, *others = self.env.step(action)
        return observation, 10 * reward, *others


@pytest.mark.parametrize(
    "streams",
    [
        lambda: SyncVectorEnv([lambda: NormalizeReward(gym.make("PBMRank-v0"))] * 2),
        lambda: SyncVectorEnv([lambda: Tenfold(gym.make("PBMRank-v0"))] * 2),
        lambda: AsyncVectorEnv([lambda: NormalizeReward(gym.make("PBMRank-v0"))] * 2),
        lambda: TransformReward(gym.make_vec("PBMRank-v0", 2), np.negative),
        lambda: SyncVectorEnv([lambda: NormalizeReward(News())] * 2),
    ],
)
def test_rewards_that_a_wrapper_changed_are_unknown(streams):
    """The regret in the infos counts, and the table shows no reward."""
    envs = RecordVectorRegret(streams())
    envs.reset(seed=0)
    lost = sum(
        envs.step([[0, 1, 2, 3, 4][: envs.action_space.shape[1]]] * 2)[4]["regret"].sum()
        for _ in range(20)
    )
    result = envs.result("mine")
    envs.close()
    assert result.regret[-1] == pytest.approx(lost)
    results = clickgym.Results([result])
    assert results.table().select("reward").item() is None
    assert "– means not measured" in str(results)


class Silent(Tenfold):
    """Such a wrapper that also drops info."""

    def step(self, action):
        return *super().step(action)[:4], {}


def test_changed_rewards_without_regret_are_refused():
    for who, stream in {
        "NormalizeReward": lambda: NormalizeReward(News("whole")),
        "a wrapper": lambda: Silent(gym.make("CMRank-v0", attraction=[1.0] * 3, n_positions=3)),
    }.items():
        envs = RecordVectorRegret(SyncVectorEnv([stream] * 2))
        envs.reset(seed=0)
        with pytest.raises(SessionError, match=f"session 1, .* {who} changes the rewards, and in"):
            envs.step([[0, 1, 2]] * 2)


def test_streams_do_not_meet_users_who_change():
    """Each stream counts its own sessions, so a loop on 16 streams would end before the change."""
    for mode in ("vector_entry_point", "sync"):
        envs = gym.make_vec("NonStationaryPBMRank-v0", 16, mode)
        with pytest.raises(ValueError, match=r"each with its own count of steps, .* in RecordReg"):
            RecordVectorRegret(envs)
    assert RecordVectorRegret(gym.make_vec("NonStationaryPBMRank-v0", 1)).reset(seed=0)


def test_steps_that_choose_items_are_no_sessions():
    with pytest.raises(TypeError, match=r"^a step of ItemByItem chooses one item"):
        RecordRegret(ItemByItem(gym.make("PBMRank-v0")))
    with pytest.raises(TypeError, match=r"^a step of ItemByItem chooses one item"):
        RecordVectorRegret(SyncVectorEnv([lambda: ItemByItem(gym.make("PBMRank-v0"))]))


def test_a_negative_regret_is_doubtful(monkeypatch):
    monkeypatch.setattr("tests.helpers.news.ATTRACTION", np.linspace(0.6, 0.1, 6))
    env = RecordRegret(News())
    env.meter.add(-9.0, 0.0, 0)
    run = partial(clickgym.run, "Random", News(), 9, seed=0)
    sweep = partial(clickgym.sweep, {"E": News}, ["Random"], 9, 2, n_jobs=1)
    for play in (partial(env.result, "mine"), run, sweep):
        with pytest.warns(UserWarning, match="total regret is negative, -") as warned:
            play()
        assert (len(warned), warned[0].filename) == (1, __file__)


def test_sessions_that_were_not_recorded_are_counted():
    """These are sessions before the recorder was added, even if a seed follows, and later sessions
    that another loop played.
    """
    env = gym.make("PBMRank-v0")
    clickgym.run("Random", env, 50, seed=0)
    late = RecordRegret(env)
    late.reset(seed=0)
    for _ in range(3):
        late.step(range(5))
    assert late.result("mine").unrecorded == 50
    env.step(range(5))
    assert late.result("mine").unrecorded == 50  # played after the last recorded session
    late.step(range(5))
    assert late.result("mine").unrecorded == 51
    assert "51 sessions not recorded" in repr(late.result("mine"))
    whole = RecordRegret(gym.make("PBMRank-v0"))
    assert clickgym.run("Random", whole, 5, seed=0).unrecorded == whole.result("r").unrecorded == 0


@pytest.mark.parametrize(
    "recorded",
    [
        lambda: RecordRegret(gym.make("PBMRank-v0")),
        lambda: RecordVectorRegret(gym.make_vec("PBMRank-v0", 2)),
    ],
)
def test_seeds_that_come_again_are_counted(recorded):
    """A seed counts as used again if sessions were played in between, as in a loop that seeds every
    episode and so meets the same users again. A result has the seed before its first session.
    """
    env = recorded()
    env.reset(seed=3)
    for seed in (0, 0, 1, None, 0, 2):
        env.reset(seed=seed)
        env.step(env.action_space.sample())
    result, first = env.result("mine"), env.result("mine", 2)
    assert (result.reseeded, result.seed) == (2, 0)
    assert "a seed was used again 2 times" in repr(result)
    assert (first.reseeded < 2, first.unrecorded) == (True, 0)
    assert first.seconds * result.steps[-1] == pytest.approx(2 * result.seconds)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("env_id", ["PBMRank-v0", "CascadeMDPRank-v0"])
def test_sessions_of_streams_that_were_not_recorded(env_id, mode):
    """Steps that only reset a stream are not sessions."""
    envs = gym.make_vec(env_id, 4, max_episode_steps=9, autoreset_mode=mode)
    whole = RecordVectorRegret(envs)
    whole.reset(seed=0)
    for _ in range(60):
        whole.step(envs.action_space.sample())
    assert whole.result("mine").unrecorded == 0
    late = RecordVectorRegret(envs)
    late.reset(seed=0)
    late.step(envs.action_space.sample())
    assert late.result("mine").unrecorded == whole.meter.step > 200


def test_a_loop_in_many_queries_keeps_its_query():
    """If a loop played a single query, the result keeps its number, so that queries are the units
    of observation, as in a sweep.
    """
    instance = "queries:split=test,n_sessions=20"
    env = RecordRegret(gym.make("QueriesPBMRank-v0", instance=instance))
    env.reset(seed=3)
    for _ in range(20):
        env.step(range(5))
    assert env.result("mine").query == clickgym.run("Random", env.env, 5, seed=3).query == 3
    env.reset(seed=5)
    env.step(range(5))
    assert env.result("mine").query is None


def test_the_first_sessions_of_a_longer_loop():
    """They equal the sessions of a loop that ended at that point."""
    results = []
    for n in (320, 300):
        env = RecordRegret(gym.make("PBMRank-v0"))
        env.reset(seed=0)
        env.action_space.seed(0)
        for _ in range(n):
            env.step(env.action_space.sample())
        results.append(env.result("mine", 300, trained=20_000))
    long, short = results
    assert long.steps.tolist() == short.steps.tolist()
    assert long.regret.tolist() == short.regret.tolist()
    assert clickgym.Results(long).rows["trained"].unique().to_list() == [20_000]
    with pytest.raises(ValueError, match=r"horizon is 319, but .* 300 sessions so far"):
        env.result("mine", 319)


# ------------------------------------------------------------------------------- names of results


def loops(make_env, make_envs):
    """Return the environment names in the results of loops of one session."""
    names = []
    for recorder, env, action in (
        (RecordRegret, make_env(), [0, 1]),
        (RecordVectorRegret, make_envs(), [[0, 1]]),
    ):
        recorded = recorder(env)
        recorded.reset()
        recorded.step(np.array(action))
        names.append(recorded.result("mine").env)
    return names


def test_streams_that_are_recorded_apart_are_named():
    streams = SyncVectorEnv([lambda: RecordRegret(gym.make("PBMRank-v0"))] * 2)
    streams.reset(seed=0)
    for _ in range(9):
        streams.step([[0, 1, 2, 3, 4]] * 2)
    with pytest.warns(UserWarning, match="it is one run"):
        streams.envs[0].result("mine")


def test_arguments_and_users_are_part_of_the_name():
    """Names are built as in a sweep. Users without a name get a mark, and equal users get equal
    marks.
    """
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
            ClickEnv(flat, cutoff=1),
            *(gym.make("NonStationaryPBMRank-v0", **given) for given in changing),
            *(gym.make("PBMRank-v0", cutoff=np.int64(cutoff)) for cutoff in (2, 3)),
        )
    ]
    assert len({*others}) == 9
    assert others[-1] == "PBMRank-v0:cutoff=3"
    assert {*loops(lambda: ClickEnv(steep), lambda: ClickVectorEnv(steep, 1))} == {others[1]}


@pytest.mark.parametrize("env_id", ["CascadeMDPRank-v0", "PBMRank-v0"])
def test_users_who_are_cut_off_earlier_are_another_environment(env_id):
    """This holds only if users may leave. Otherwise every session is independent of the sessions
    before it, so the limit does not matter.
    """
    given = {"max_episode_steps": 2}
    (label,) = clickgym.sweep([(env_id, given)], ["Random"], 5, 1).names("env")
    env = RecordRegret(TimeLimit(gym.make(env_id), 2))
    env.reset(seed=0)
    env.step(env.action_space.sample())
    names = {clickgym.run("Random", (env_id, given), 5).env, env.result("mine").env}
    assert names == {label if env_id.startswith("Cascade") else "PBMRank-v0"}
