"""Tests of the native vector environments: the same law as scalar ones, Gymnasium's conventions,
time limits and autoreset.
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from clickgym.envs import ENVIRONMENTS, ClickVectorEnv
from tests.helpers.click_stories import arguments_of
from tests.helpers.registries import SAME_ITEMS, default_ids

pytestmark = pytest.mark.uncompiled

B, L, K = 3, 5, 3
OF_IDS = [(env_id, "clicks", None) for env_id in SAME_ITEMS]
OF_IDS += [("DCMRank-v0", "any_click", 2), ("NonStationaryUBMRank-v0", "any_click", None)]
NOT_DRAWN = {"expected_reward", "regret", "optimal_reward", "optimal_ranking"}
"""The infos of a step that follow from the list alone."""


def make(env_id, num_envs=B, **options):
    return gym.make_vec(env_id, num_envs=num_envs, **arguments_of(env_id, L, K), **options)


def structure(value):
    """The keys, shapes and types of a nested observation."""
    if isinstance(value, dict):
        return {key: structure(item) for key, item in value.items()}
    if value.dtype == object:
        return [structure(item) for item in value]
    return value.shape, value.dtype


# Gymnasium's conventions -------------------------------------------


@pytest.mark.parametrize("env_id", ["PBMRank-v0", "NonStationaryCMRank-v0"])
@pytest.mark.parametrize("reset_mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_structure_is_that_of_sync_vectors(env_id, reset_mode):
    native = make(env_id, max_episode_steps=2, autoreset_mode=reset_mode)
    sync = make(
        env_id,
        max_episode_steps=2,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": reset_mode},
    )
    assert isinstance(native, ClickVectorEnv)
    assert isinstance(sync, SyncVectorEnv)
    assert native.metadata["autoreset_mode"] is sync.metadata["autoreset_mode"] is reset_mode
    assert native.autoreset_mode is sync.autoreset_mode is reset_mode
    for space in ("action_space", "observation_space"):
        for name in (space, f"single_{space}"):
            assert getattr(native, name) == getattr(sync, name)
    (mine, my_infos), (its, its_infos) = native.reset(seed=0), sync.reset(seed=0)
    assert mine in native.observation_space
    assert structure(mine) == structure(its)
    assert structure(my_infos) == structure(its_infos)
    for step in range(8):
        actions = native.action_space.sample()
        assert actions in native.action_space
        mine, its = native.step(actions), sync.step(actions)
        assert mine[0] in native.observation_space
        assert [*map(structure, mine[:4])] == [*map(structure, its[:4])]
        for part in (2, 3):
            np.testing.assert_array_equal(mine[part], its[part], err_msg=f"step {step}")
        assert structure(mine[4]) == structure(its[4]), f"step {step}"
        for name in mine[4].keys() & NOT_DRAWN:
            np.testing.assert_array_equal(mine[4][name], its[4][name])


def test_a_seed_fixes_all_streams_and_arrays_are_fresh():
    """The arrays of the first steps keep their values while other seeds are played."""
    envs, steps, kept = make("PBMRank-v0"), [], []
    for seed in (5, 5, 6):
        envs.reset(seed=seed)
        steps.append([envs.step([[0, 1, 2]] * B)[0] for _ in range(30)])
        kept.append(np.copy(steps[-1]))
    np.testing.assert_array_equal(steps, kept)
    assert np.array_equal(kept[0], kept[1])
    assert not np.array_equal(kept[0], kept[2])


# a single stream ---------------------------------------------------


def first(values):
    """The first stream's part of an observation."""
    if isinstance(values, dict):
        return {name: of_streams[0] for name, of_streams in values.items()}
    return values[0]


FEW = {
    "NonStationary": "abrupt:n_items=5,n_positions=3,n_epochs=3,length=30",
    "Contextual": "linear:n_items=5,n_positions=3,n_pool=9,n_users=3,n_features=4",
    "Memory": "clickbait:mean_sessions=3",
    "Queries": "queries:split=real,n_positions=3,n_sessions=7",
}
"""Instances of each kind of environment in which something changes within a few sessions."""


@pytest.mark.parametrize(
    ("env_id", "reward", "cutoff"),
    [
        *OF_IDS,
        pytest.param("PBMRank-v0", "clicks", None, marks=pytest.mark.compiled, id="compiled"),
        *((env_id, None, 2) for env_id in default_ids("Contextual")),
        ("ContextualDBNRank-v0", "clicks", 2),  # the best list of each session is searched
        *((env_id, None, None) for env_id in (*default_ids("Memory"), "QueriesDBNRank-v0")),
    ],
)
def test_single_stream_is_the_scalar_environment(env_id, reward, cutoff):
    """The two agree session by session, even if users or candidates change, when an episode ends,
    and if a list repeats an item. The caller's list is not changed.
    """
    kind = ENVIRONMENTS[env_id].kind
    given = {"instance": FEW[kind]} if kind else arguments_of(env_id, L, K)
    one = gym.make(env_id, **given, reward=reward, cutoff=cutoff)
    many = ClickVectorEnv(one.unwrapped.model, 1, reward, cutoff, autoreset_mode="SameStep")
    (seen, info), (of_streams, infos) = one.reset(seed=3), many.reset(seed=3)
    one.action_space.seed(3)
    n_ends = 0
    for session in range(100):
        np.testing.assert_equal(seen, first(of_streams))
        assert all(np.array_equal(infos[name][0], value) for name, value in info.items())
        ranking = one.action_space.sample()
        ranking[-1] = ranking[-1 if session % 5 else 0]
        seen, paid, terminated, truncated, info = one.step(ranking)
        kept = ranking.copy()
        of_streams, rewards, ends, _, infos = many.step(ranking[None])
        assert (ranking == kept).all()
        assert seen in one.observation_space
        assert type(paid) is float or kind == "Memory"  # NumPy's, where kernels run as Python
        assert (paid, terminated, truncated) == (rewards[0], ends[0], False)
        if terminated:
            np.testing.assert_equal(seen, infos["final_obs"][0])
            last = infos["final_info"]
            assert all(np.array_equal(last[name][0], value) for name, value in info.items())
            seen, info = one.reset()
            n_ends += 1
    generators = one.unwrapped.np_random, many.np_random
    assert generators[0].bit_generator.state == generators[1].bit_generator.state
    assert (n_ends > 9) == (kind in ("Memory", "Queries"))
