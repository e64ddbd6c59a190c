"""The meter: totals at its checkpoints and no others, and those that it has by itself."""

from __future__ import annotations

import warnings
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorActionWrapper
from gymnasium.wrappers.vector import (
    ClipReward,
    FlattenObservation,
    TransformReward,
)

from clickgym.envs import ClickVectorEnv, ItemByItem, PositionBasedModel, ScoresVectorAction
from clickgym.envs.wrappers.regret import RecordRegret, RecordVectorRegret

MODEL = PositionBasedModel([0.5, 0.3], [1.0, 0.5])


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_without_checkpoints_all_sessions_are_kept(mode):
    """The totals are those that a meter with checkpoints has there."""
    arguments = {"max_episode_steps": 9, "autoreset_mode": mode}
    every, some = (
        RecordVectorRegret(ClickVectorEnv(MODEL, 30, **arguments), checkpoints)
        for checkpoints in (None, [1, 29, 30, 31, 1500, 1601])
    )
    sessions = []
    some.on_session = lambda *session: sessions.append(session)  # counted one by one
    for env in (every, some):
        env.reset(seed=0)
        for _ in range(60):
            env.step(np.tile([1, 0], (30, 1)))
    n = 30 * (60 if mode == "SameStep" else 54)
    assert every.meter.steps.tolist() == list(range(1, n + 1))
    assert len(sessions) == 1601
    kept = every.meter.at_checkpoints[some.meter.steps - 1]
    np.testing.assert_array_equal(kept, some.meter.at_checkpoints)


@pytest.mark.parametrize("wrapper", [FlattenObservation, ScoresVectorAction])
def test_streams_whose_lists_or_observations_are_changed(wrapper):
    """They are measured inside of the wrapper, where clicks are clicks and lists are lists."""
    envs = gym.make_vec("ContextualPBMRank-v0", num_envs=2, reward="clicks")
    name = wrapper.__name__
    with pytest.raises(ValueError, match=rf"^{name} changes .* {name}\(RecordVectorRegret\(envs"):
        RecordVectorRegret(wrapper(envs))
    recorded = RecordVectorRegret(envs)
    envs = wrapper(recorded)
    envs.reset(seed=0)
    lists = np.zeros((2, 20)) if wrapper is ScoresVectorAction else [range(5)] * 2
    clicks = sum(envs.step(lists)[1].sum() for _ in range(20))
    assert recorded.meter.totals[2] == clicks > 0


class Doubled(gym.Wrapper):
    """A reward of its own, with its regret or without."""

    def __init__(self, env, tells_regret=False):
        super().__init__(env)
        self.tells_regret = tells_regret

    def step(self, action):
        observation, reward, *ends, info = self.env.step(action)
        if self.tells_regret:
            info = {**info, "regret": 2 * info["regret"]}
        return observation, 2 * reward, *ends, info


@pytest.mark.parametrize("autoreset_mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("wrapper", [None, TransformReward, ClipReward, "sync", "async"])
def test_regret_is_not_that_of_another_reward(wrapper, autoreset_mode):
    """Of streams as of one environment: nan, with one warning."""
    mode, arguments = "vector_entry_point", {"autoreset_mode": autoreset_mode}
    if wrapper in ("sync", "async"):  # within each environment
        mode = wrapper
        arguments = {"vector_kwargs": arguments, "wrappers": [Doubled]}
    envs = gym.make_vec("PBMRank-v0", 3, mode, **arguments)
    if wrapper is TransformReward:
        envs = TransformReward(envs, lambda rewards: 2 * rewards)
    elif wrapper is ClipReward:  # writes into the array of rewards
        envs = ClipReward(envs, 0.0, 0.5)
    recorded = RecordVectorRegret(envs)
    recorded.reset(seed=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(1050):  # beyond an episode
            recorded.step(np.tile(range(5), (3, 1)))
    assert np.isnan(recorded.meter.totals[0]) == (wrapper is not None)
    told = [it for it in caught if "is unknown (nan): a wrapper changes" in str(it.message)]
    assert len(told) == (wrapper is not None)
    assert recorded.result("mine").env == "PBMRank-v0"
    assert recorded.result("mine").instance == "yandex-9982"
    recorded.close()


@pytest.mark.parametrize("mode", ["sync", "vector_entry_point", None])
def test_regret_of_a_bonus_with_the_best_lists(mode):
    """It is unknown in one environment and in streams, although the best lists have none."""

    def with_bonus(env):
        bonus = gym.wrappers.TransformReward if isinstance(env, gym.Env) else TransformReward
        return bonus(env, lambda reward: reward + 1)

    if mode is None:
        env = RecordRegret(with_bonus(gym.make("PBMRank-v0")))
    elif mode == "sync":
        env = RecordVectorRegret(gym.make_vec("PBMRank-v0", 2, mode, wrappers=[with_bonus]))
    else:
        env = RecordVectorRegret(with_bonus(gym.make_vec("PBMRank-v0", 2, mode)))
    _, info = env.reset(seed=0)
    with pytest.warns(UserWarning, match=r"is unknown \(nan\): a wrapper changes the reward"):
        env.step(info["optimal_ranking"])
    assert np.isnan(env.result("mine").regret).all()


def test_regret_of_the_best_lists_in_streams_that_tell_it():
    """It is 0 once another list has shown that it is the wrapper's."""
    wrappers = [partial(Doubled, tells_regret=True)]
    env = RecordVectorRegret(gym.make_vec("PBMRank-v0", 2, "sync", wrappers=wrappers))
    _, infos = env.reset(seed=0)
    env.step(np.tile(range(5), (2, 1)))
    before = env.meter.totals[0]
    for _ in range(20):
        env.step(infos["optimal_ranking"])
    assert env.meter.totals[0] == before > 0


def test_streams_whose_lists_are_changed_within_their_space():
    class Reversed(VectorActionWrapper):
        def actions(self, actions):
            return actions[:, ::-1]

    with pytest.raises(ValueError, match=r"^Reversed changes lists or observations"):
        RecordVectorRegret(Reversed(ClickVectorEnv(MODEL, 2)))


@pytest.mark.parametrize("vector", [SyncVectorEnv, partial(AsyncVectorEnv, context="fork")])
@pytest.mark.parametrize(
    "others", [{"id": "CMRank-v0", "n_positions": 5}, {"instance": "uniform:seed=1"}, {"cutoff": 2}]
)
def test_streams_of_two_environments_are_no_run(vector, others):
    envs = vector(
        [lambda: gym.make("PBMRank-v0"), partial(gym.make, **{"id": "PBMRank-v0"} | others)]
    )
    with pytest.raises(ValueError, match=r"two environments, \(PBMRank-v0, yandex-9982\) and \("):
        RecordVectorRegret(envs)
    envs.close()


@pytest.mark.parametrize("vector", [SyncVectorEnv, AsyncVectorEnv])
def test_streams_whose_steps_are_items(vector):
    """They are refused as one such environment is."""
    make = partial(ItemByItem, gym.make("PBMRank-v0"))
    envs = vector([make])
    for recorder, env in ((RecordRegret, make()), (RecordVectorRegret, envs)):
        with pytest.raises(TypeError, match=r"^a step of ItemByItem chooses one item"):
            recorder(env)
    envs.close()


@pytest.mark.filterwarnings("ignore:.*repeats an item")
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_a_session_has_the_list_that_was_shown(mode):
    env, sessions = RecordVectorRegret(ClickVectorEnv(MODEL, 2, autoreset_mode=mode)), []
    env.on_session = lambda b, ranking, clicks, expected: sessions.append(ranking.tolist())
    env.reset(seed=0)
    env.step(np.array([[1, 1], [0, 1]]))
    assert sessions == [[1, 0], [0, 1]]
