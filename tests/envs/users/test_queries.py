"""Tests of users of many queries: which query an episode plays, its exact regret, what agents are
told, the frozen family, and what `EpisodeCounts` shows of an episode.
"""

from __future__ import annotations

import itertools

import gymnasium as gym
import numpy as np
import pytest

import clickgym
from clickgym import envs
from tests.helpers.click_stories import assert_uniform
from tests.helpers.registries import default_ids
from tests.helpers.slow import slow

pytestmark = pytest.mark.uncompiled

IDS = default_ids("Queries")
PBM = "QueriesPBMRank-v0"
FEW = {"instance": "queries:split=real,n_positions=3,n_sessions=7"}
FROZEN = {"train": -5.5972851717, "valid": -29.5304533743, "test": 15.9858129970}
"""For each split, a sum over all parameters of all kinds and queries, with different weights."""


def users(n_sessions=4):
    models = [envs.CascadeModel([p, 0.1, 0.2], 2) for p in (0.5, 0.05, 0.9)]
    return envs.QueryUsers(models, n_sessions)


@pytest.mark.parametrize("env_id", IDS)
def test_regret_is_that_of_the_query(env_id):
    """The regret is that of the query after the random order of its items is undone. An episode
    ends with its last session.
    """
    env = gym.make(env_id, **FEW)
    many = env.unwrapped.model
    env.action_space.seed(0)
    for seed in (0, 15, 16):
        _, info = env.reset(seed=seed)
        query, order = info["query"], env.unwrapped.state.order[0].copy()
        assert query == seed % 16
        assert sorted(order) == list(range(10))
        model = many.models[query]
        best = model.expected_reward(order[info["optimal_ranking"]])
        assert best == info["optimal_reward"] == model.expected_reward(model.optimal_ranking())
        for session in range(1, 8):
            ranking = env.action_space.sample()
            _, _, terminated, truncated, info = env.step(ranking)
            assert info["query"] == query
            assert info["expected_reward"] == model.expected_reward(order[ranking])
            assert info["regret"] == best - info["expected_reward"]
            assert (terminated, truncated) == (session == 7, False)
        with pytest.raises(gym.error.ResetNeeded):
            env.step(ranking)


@pytest.mark.parametrize("seed", [0, 2, 2**40 + 1])
def test_seeds_and_streams_enumerate_the_queries(seed):
    env = envs.ClickEnv(users())
    assert [env.reset(seed=seed + i)[1]["query"] for i in range(3)] == [
        (seed + i) % 3 for i in range(3)
    ]
    streams = clickgym.envs.ClickVectorEnv(users(), 5)
    assert streams.reset(seed=seed)[1]["query"].tolist() == [(seed + b) % 3 for b in range(5)]


def test_other_episodes_draw_their_query_and_all_draw_the_order():
    env = envs.ClickEnv(users(1))
    env.reset(seed=1)
    queries, orders = [], []
    for _ in range(600):
        env.step([0, 1])
        queries.append(int(env.reset()[1]["query"]))
        orders.append(tuple(env.unwrapped.state.order[0].tolist()))
    assert_uniform(queries, range(3))
    assert_uniform(orders, itertools.permutations(range(3)))
    assert len({env.reset(seed=3 * i)[1]["optimal_ranking"].tobytes() for i in range(40)}) > 2


@pytest.mark.parametrize(
    ("split", "n_positions"), [("train", 3), ("valid", 5), ("test", 3), ("real", 5)]
)
def test_agents_are_told_the_mean_of_the_training_split(split, n_positions):
    train = envs.load_instance("queries").model("QueryUsers of PBM").models
    mean = np.mean([model.parameters.examination for model in train], axis=0)[:n_positions]
    instance = f"queries:split={split},n_positions={n_positions},n_sessions=9"
    env = gym.make(PBM, instance=instance).unwrapped
    np.testing.assert_allclose(env.knowledge("examination"), mean, rtol=1e-12)
    assert (
        clickgym.make_agent("PBMUCB", env).filled_in["examination"].tolist()
        == env.knowledge("examination").tolist()
    )
    for source in ("optimal_ranking", "initial_ranking"):
        assert env.knowledge(source) is None


@pytest.mark.parametrize("split", ["test", *slow("train", "valid")])
def test_the_queries_of_a_split_are_frozen(split):
    values = []
    for env_id in IDS:
        kind = env_id.removeprefix("Queries").removesuffix("Rank-v0")
        models = envs.load_instance(f"queries:split={split}").model(f"QueryUsers of {kind}").models
        values += [np.ravel(part) for it in models for part in it.parameters]
    values = np.concatenate(values)
    assert values @ np.cos(np.arange(len(values))) == pytest.approx(FROZEN[split], abs=1e-8)


def test_users_as_a_file_and_with_other_items(tmp_path):
    instance = envs.load_instance("queries:split=real,n_sessions=3")
    many = instance.model("QueryUsers of PBM", 2)
    same = envs.UserModel.from_dict(many.to_dict())
    assert same == many
    assert len({same, many}) == 1, "equal users have the same hash"
    assert many.knowledge("examination").shape == (2,)
    order = np.arange(10)[::-1]
    mirrored = many.relabelled(order)
    assert mirrored.models[3].attraction.tolist() == many.models[3].attraction[::-1].tolist()


# what was counted ------------------------------------------------------------------------------


def counts_of(sessions, n_items, n_positions, n_sessions):
    """The counts of an episode, computed from its lists and clicks by the definition."""
    shown, clicked = np.zeros((2, n_items, n_positions))
    for ranking, clicks in sessions:
        shown[ranking, range(n_positions)] += 1
        clicked[ranking, range(n_positions)] += clicks
    own = np.log1p(np.hstack([shown, clicked]))
    left = 1 - len(sessions) / n_sessions
    return np.hstack([own, np.tile(own.mean(axis=0), (n_items, 1)), np.full((n_items, 1), left)])


@pytest.mark.parametrize("limit", [None, 5])
def test_counts_of_streams_are_those_of_single_ones(limit):
    """This includes the last observations of episodes."""
    n_streams = 3
    streams = gym.make_vec(
        PBM, n_streams, autoreset_mode="SameStep", max_episode_steps=limit or -1, **FEW
    )
    lists = streams.single_action_space
    lists.seed(0)
    streams = envs.EpisodeCountsVector(streams)
    observed, _ = streams.reset(seed=1)
    history = [[] for _ in range(n_streams)]

    def assert_counted(rows, sessions):
        expected = counts_of(sessions, 10, lists.n_positions, 7)
        np.testing.assert_allclose(rows, expected, rtol=1e-6)

    for _ in range(25):
        assert observed in streams.observation_space
        actions = np.stack([lists.sample() for _ in range(n_streams)])
        observed, _, terminated, truncated, infos = streams.step(actions)
        over = terminated | truncated
        for b in range(n_streams):
            last = infos["final_obs"][b] if over[b] else None
            clicks = observed["clicks"][b] if last is None else last["clicks"]
            history[b].append((actions[b], clicks))
            if last is not None:
                assert_counted(last["counts"], history[b])
                history[b] = []
            assert_counted(observed["counts"][b], history[b])
