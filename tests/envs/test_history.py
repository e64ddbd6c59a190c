"""Observations with a history: what was shown and clicked, counted by hand; forgotten when it should be; alike on streams."""

from __future__ import annotations

import copy
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, MultiBinary
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import (
    FlattenObservation,
    FrameStackObservation,
    RecordEpisodeStatistics,
    TimeLimit,
    TransformObservation,
)

from clickgym.envs import (
    ClickEnv,
    ClickVectorEnv,
    EnumeratedAction,
    HistoryObservation,
    HistoryVectorObservation,
    ItemByItem,
    ItemByItemVector,
    LehmerAction,
    LehmerVectorAction,
    PositionBasedModel,
    RecordRegret,
    RecordVectorRegret,
    ScoresAction,
    ScoresVectorAction,
)

L, K = 5, 3
MODEL = PositionBasedModel([0.9, 0.7, 0.5, 0.3, 0.1], [1.0, 0.7, 0.4])
SETTINGS = [{}, {"per_position": True}, {"last": 3}, {"per_position": True, "last": 1, "horizon": 10}]
by_setting = pytest.mark.parametrize("setting", SETTINGS, ids=str)
ORDERS = {"none": None, "one": [3, 0, 4, 1, 2], "each": [[3, 0, 4, 1, 2], [0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [1, 2, 0, 4, 3]]}


def by_definition(shown, clicks, items, per_position=False, last=0, horizon=1e6):
    """The observation after the sessions of two lists of lists."""
    rates, displays = np.zeros((2, K, L))
    for ranking, clicked in zip(shown, clicks, strict=True):
        for k in range(K):
            displays[k, ranking[k]] += 1
            rates[k, ranking[k]] += clicked[k]
    if not per_position:
        rates, displays = rates.sum(axis=0), displays.sum(axis=0)
    rates, displays = rates[..., items], displays[..., items]
    observation = {
        "clicks": clicks[-1] if clicks else [0] * K,
        "click_rate": np.divide(rates, displays, out=np.zeros_like(rates), where=displays > 0),
        "displays": np.clip(np.log(1 + displays) / np.log(1 + horizon), 0, 1),
        "time": np.clip([np.log(1 + len(shown)) / np.log(1 + horizon)], 0, 1),
    }
    if last:
        observation["last_lists"], observation["last_clicks"] = np.zeros((last, K, L)), np.zeros((last, K))
        for age, (ranking, clicked) in enumerate(list(zip(shown, clicks, strict=True))[::-1][:last]):
            for k in range(K):
                observation["last_lists"][age, k, list(items).index(ranking[k])] = 1
            observation["last_clicks"][age] = clicked
    return observation


def assert_alike(observation, expected):
    assert observation.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(observation[name], values, rtol=1e-6, err_msg=name)


# one stream ----------------------------------------------------------------------------------------------------------------


@by_setting
@pytest.mark.parametrize("order", ["none", "one"])
def test_the_history_is_that_of_the_sessions(setting, order):
    env, plain = HistoryObservation(ClickEnv(MODEL), ORDERS[order], **setting), ClickEnv(MODEL)
    items = range(L) if ORDERS[order] is None else ORDERS[order]
    env.action_space.seed(0)
    for seed in (1, 2):  # the second stream knows nothing of the first
        observation, info = env.reset(seed=seed)
        assert info.keys() == plain.reset(seed=seed)[1].keys()
        shown, clicks = [], []
        for _ in range(30):
            assert observation in env.observation_space
            assert_alike(observation, by_definition(shown, clicks, items, **setting))
            shown.append(env.action_space.sample().tolist())
            observation, *rest = env.step(shown[-1])
            expected, *expected_rest = plain.step(shown[-1])
            clicks.append(expected.tolist())
            assert rest == expected_rest


def test_the_space():
    env = HistoryObservation(ClickEnv(MODEL), per_position=True, last=2)
    assert env.observation_space == Dict(
        clicks=MultiBinary(3),
        click_rate=Box(0, 1, (3, 5), np.float32),
        displays=Box(0, 1, (3, 5), np.float32),
        time=Box(0, 1, (1,), np.float32),
        last_lists=MultiBinary([2, 3, 5]),
        last_clicks=MultiBinary([2, 3]),
    )
    assert set(HistoryObservation(ClickEnv(MODEL)).observation_space) == {"clicks", "click_rate", "displays", "time"}


def test_counts_stay_apart_from_one_session_to_a_million_and_within_bounds_after():
    env = HistoryObservation(ClickEnv(PositionBasedModel([0.5], [1.0])), horizon=1e6)
    env.reset(seed=0)
    seen = []
    for n in (1, 10, 100, 10**3, 10**4, 10**5, 10**6, 10**9):
        env._history._displays[:] = env._history._steps[:] = n - 1
        observation = env.step([0])[0]
        assert observation in env.observation_space
        assert observation["displays"].tolist() == observation["time"].tolist()
        seen.append(float(observation["time"][0]))
    assert (np.diff(seen[:7]) > 0.1).all()
    assert seen[6:] == [1.0, 1.0]


def test_a_history_tells_good_items_from_bad_ones():
    """After 4000 sessions of random lists the click rates of the 5 items are in order: with attractions 0.2 apart and examined
    0.7 of the time, neighbours' rates differ by 0.14, nine standard errors (at most 0.015, for 2400 displays each)."""
    env = HistoryObservation(ClickEnv(MODEL), [4, 2, 0, 1, 3])
    env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(4000):
        observation, *_ = env.step(env.action_space.sample())
    assert np.argsort(-observation["click_rate"]).tolist() == [2, 3, 1, 4, 0]


def test_observations_are_the_callers_own():
    env = HistoryObservation(ClickEnv(MODEL), last=2)
    kept = [env.reset(seed=0)[0]] + [env.step([0, 1, 2])[0] for _ in range(5)]
    before = copy.deepcopy(kept)
    env.step([3, 4, 0])
    env.reset()
    np.testing.assert_equal(kept, before)
    for values in env.reset()[0].values():
        values[:] = 1
    assert not any(values.any() for values in env.reset()[0].values())


def test_the_checkers_pass_and_the_spec_makes_it_again():
    for env in (
        HistoryObservation(ClickEnv(MODEL), last=2),
        FlattenObservation(LehmerAction(HistoryObservation(ClickEnv(MODEL)))),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", ".*is different from the unwrapped version")
            check_env(env, skip_render_check=True)
    pytest.importorskip("stable_baselines3.common.env_checker").check_env(
        ScoresAction(HistoryObservation(ClickEnv(MODEL), last=2))
    )
    env = HistoryObservation(gym.make("PBMRank-v0"), items=range(9, -1, -1), last=2, horizon=100)
    again = gym.make(env.spec)
    assert again.observation_space == env.observation_space
    for twin in (env, again):
        twin.reset(seed=0)
    np.testing.assert_equal(env.step([0, 1, 2, 3, 4]), again.step([0, 1, 2, 3, 4]))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"last": -1}, ValueError, "last is -1; expected an integer of at least 0"),
        ({"last": 1.5}, ValueError, "last is 1.5;"),
        ({"horizon": 0}, ValueError, "horizon is 0; expected an integer of at least 1"),
        ({"items": [0, 0, 1, 2, 3]}, ValueError, "items must be all 5 items in some order"),
    ],
)
def test_bad_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        HistoryObservation(ClickEnv(MODEL), **arguments)
    with pytest.raises(error, match=message):
        HistoryVectorObservation(ClickVectorEnv(MODEL, 2), **arguments)


def test_what_hides_lists_or_clicks_is_refused():
    with pytest.raises(TypeError, match=r"put wrappers of actions outside, as in LehmerAction\(HistoryObservation\(env\)\)"):
        HistoryObservation(LehmerAction(ClickEnv(MODEL)))
    with pytest.raises(TypeError, match=r"MultiBinary\(3\), but observations are Box.* put wrappers of observations outside"):
        HistoryObservation(FlattenObservation(ClickEnv(MODEL)))
    with pytest.raises(TypeError, match="and where each session has other candidates, an item has no"):
        HistoryObservation(gym.make("ContextualPBMRank-v0"))
    with pytest.raises(TypeError, match="and where each session has other candidates, an item has no"):
        HistoryVectorObservation(gym.make_vec("ContextualPBMRank-v0", 2))
    for make in (
        lambda: HistoryObservation(gym.make("CascadeMDPRank-v0")),
        lambda: HistoryVectorObservation(gym.make_vec("CascadeMDPRank-v0", 2)),
    ):
        with pytest.raises(TypeError, match=r"'state'.*: users with a memory click otherwise in each state") as caught:
            make()
        assert "candidates" not in str(caught.value)
    with pytest.raises(ValueError, match=r"autoreset_mode is AutoresetMode.DISABLED"):
        HistoryVectorObservation(SyncVectorEnv([lambda: ClickEnv(MODEL)], autoreset_mode=AutoresetMode.DISABLED))


# many streams --------------------------------------------------------------------------------------------------------------


@by_setting
@pytest.mark.parametrize("mode", ["SameStep", "NextStep"])
@pytest.mark.parametrize("order", ORDERS)
def test_a_stream_has_the_history_of_the_scalar_wrapper(setting, mode, order):
    """Scalar environments of the same seeds, stepped by Gymnasium, are the reference; two limits, so that they end apart."""
    items = ORDERS[order]
    orders = items if order == "each" else [items] * 4

    def streams(wrapped):
        def make(b):
            env = TimeLimit(ClickEnv(MODEL), 4 + b % 2)
            return HistoryObservation(env, orders[b], **setting) if wrapped else env

        return SyncVectorEnv([lambda b=b: make(b) for b in range(4)], autoreset_mode=mode)

    reference, envs = streams(True), HistoryVectorObservation(streams(False), items, **setting)
    assert envs.observation_space == reference.observation_space
    assert envs.single_observation_space == reference.single_observation_space
    np.testing.assert_equal(envs.reset(seed=0), reference.reset(seed=0))
    envs.action_space.seed(0)
    endings = 0
    ended = np.zeros(4, bool)
    for _ in range(25):
        actions = envs.action_space.sample()
        if mode == "NextStep":
            actions[ended] = 99  # ignored
        got, expected = envs.step(actions), reference.step(actions)
        for infos in (got[4], expected[4]):
            if "final_obs" in infos:
                infos["final_obs"] = infos["final_obs"].tolist()
        np.testing.assert_equal(got, expected)
        ended = got[3]
        endings += ended.sum()
    assert endings >= 16
    np.testing.assert_equal(envs.reset(), reference.reset())


@by_setting
def test_native_streams_remember_what_they_showed(setting):
    envs = HistoryVectorObservation(ClickVectorEnv(MODEL, 6, autoreset_mode="SameStep", max_episode_steps=7), **setting)
    envs.reset(seed=0)
    envs.action_space.seed(0)
    shown, clicks = [[] for _ in range(6)], [[] for _ in range(6)]
    for session in range(1, 22):
        actions = envs.action_space.sample()
        observations, _, _, truncations, infos = envs.step(actions)
        rows = [{name: values[b] for name, values in observations.items()} for b in range(6)]
        if session % 7 == 0:
            assert truncations.all()
            assert not any(values.any() for values in observations.values())
            rows = infos["final_obs"]
        for b, row in enumerate(rows):
            assert row in envs.single_observation_space
            shown[b].append(actions[b].tolist())
            clicks[b].append(row["clicks"].tolist())
            assert_alike(row, by_definition(shown[b], clicks[b], range(L), **setting))
        if session % 7 == 0:
            shown, clicks = [[] for _ in range(6)], [[] for _ in range(6)]


# with other wrappers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action_wrapper", [LehmerAction, ScoresAction, EnumeratedAction])
def test_the_order_of_flattening_and_choosing_does_not_matter(action_wrapper):
    def history():
        return HistoryObservation(RecordRegret(ClickEnv(MODEL)))

    inside, outside = FlattenObservation(action_wrapper(history())), action_wrapper(FlattenObservation(history()))
    assert inside.observation_space == outside.observation_space == Box(0, 1, (3 + 5 + 5 + 1,), inside.observation_space.dtype)
    np.testing.assert_equal(inside.reset(seed=0), outside.reset(seed=0))
    inside.action_space.seed(0)
    for _ in range(20):
        action = inside.action_space.sample()
        np.testing.assert_equal(inside.step(action), outside.step(action))
    assert inside.get_wrapper_attr("meter").step == 20


@pytest.mark.parametrize("vector_wrapper", [LehmerVectorAction, ScoresVectorAction])
def test_streams_flatten_and_choose_in_either_order(vector_wrapper):
    flatten = gym.wrappers.vector.FlattenObservation

    def history():
        return HistoryVectorObservation(RecordVectorRegret(ClickVectorEnv(MODEL, 4)))

    inside, outside = flatten(vector_wrapper(history())), vector_wrapper(flatten(history()))
    np.testing.assert_equal(inside.reset(seed=0), outside.reset(seed=0))
    inside.action_space.seed(0)
    for _ in range(20):
        actions = inside.action_space.sample()
        np.testing.assert_equal(inside.step(actions), outside.step(actions))
    assert inside.reset()[0].shape == (4, 14)


def test_numbers_of_observation_and_action_stand_for_the_same_items():
    """The history of an environment with renamed items is that of the environment itself, if the order undoes the names."""
    names = np.array([3, 0, 4, 1, 2])  # item j of MODEL is called names[j]
    renamed = PositionBasedModel(MODEL.attraction[np.argsort(names)], MODEL.examination)
    for wrapper in (LehmerAction, ScoresAction, EnumeratedAction):
        envs = [
            wrapper(HistoryObservation(ClickEnv(model), items, last=2), items)
            for model, items in ((MODEL, None), (renamed, names))
        ]
        envs[0].action_space.seed(0)
        np.testing.assert_equal(*(env.reset(seed=0)[0] for env in envs))
        for _ in range(50):
            action = envs[0].action_space.sample()
            np.testing.assert_equal(*(env.step(action)[:2] for env in envs))


def test_a_history_survives_the_episodes_of_item_by_item():
    env = ItemByItem(HistoryObservation(ClickEnv(MODEL), last=1))
    assert set(env.observation_space) == {"clicks", "click_rate", "displays", "time", "last_lists", "last_clicks", "placed"}
    env.reset(seed=0)
    for session in range(1, 4):
        for choice in (4, 0, 2):
            observation, *_ = env.step(choice)
        observation, _ = env.reset()
        assert observation in env.observation_space
        assert observation["time"] == np.float32(np.log1p(session) / np.log1p(1e6))
        assert observation["last_lists"][0].argmax(axis=1).tolist() == [4, 0, 2]
    assert not env.reset(seed=1)[0]["time"].any()


def test_item_by_item_on_streams_with_a_history():
    envs = ItemByItemVector(HistoryVectorObservation(ClickVectorEnv(MODEL, 3, autoreset_mode="SameStep", max_episode_steps=2)))
    envs.reset(seed=0)
    for session in range(1, 7):
        for _ in range(K):
            observations, *_, infos = envs.step(envs.action_masks().argmax(axis=1))
        assert observations in envs.observation_space
        assert observations["time"].any() == bool(session % 2)
        for final in infos["final_obs"]:
            assert final in envs.single_observation_space
            assert (final["displays"] > 0).tolist() == [True] * 3 + [False] * 2


def test_gymnasiums_wrappers_take_it():
    env = RecordEpisodeStatistics(FrameStackObservation(LehmerAction(HistoryObservation(TimeLimit(ClickEnv(MODEL), 5))), 3))
    observation, _ = env.reset(seed=0)
    for _ in range(5):
        observation, _, _, truncated, info = env.step([0, 0, 0])
    assert observation["displays"].shape == (3, 5)
    assert (np.diff(observation["time"][:, 0]) > 0).all()
    assert truncated
    assert info["episode"]["l"] == 5
    only = TransformObservation(env, lambda stacked: stacked["time"], env.observation_space["time"])
    assert not only.reset()[0].any(), "forgotten"
