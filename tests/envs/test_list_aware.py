"""The list that got the clicks, in the observations of single and of vector environments."""

from __future__ import annotations

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import FrameStackObservation

import clickgym
from clickgym.envs import ListAwareObservation, ScoresAction


@pytest.mark.parametrize("env_id", ["PBMRank-v0", "CascadeMDPRank-v0"])
def test_an_observation_has_the_list_and_its_clicks(env_id):
    env, plain = ListAwareObservation(gym.make(env_id)), gym.make(env_id)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it prefers environments without a wrapper
        check_env(ListAwareObservation(gym.make(env_id).unwrapped), skip_render_check=True)
    observation, _ = env.reset(seed=0)
    plain.reset(seed=0)
    assert not observation["ranking"].any()
    env.action_space.seed(0)
    for _ in range(20):
        ranking = env.action_space.sample()
        observation, *outcome = env.step(ranking)
        expected, *others = plain.step(ranking)
        np.testing.assert_equal(outcome, others)
        clicks = expected if isinstance(expected, np.ndarray) else expected["clicks"]
        assert observation["clicks"].tolist() == clicks.tolist()
        assert observation["ranking"].argmax(axis=1).tolist() == ranking.tolist()
        assert (observation["ranking"].sum(axis=1) == 1).all()
        assert observation in env.observation_space
        if outcome[1]:
            break
    assert not env.reset()[0]["ranking"].any()


def test_streams_of_it():
    envs = gym.make_vec(
        "PBMRank-v0", num_envs=3, vectorization_mode="sync", wrappers=[ListAwareObservation]
    )
    envs.reset(seed=0)
    lists = envs.action_space.sample()
    observations, *_ = envs.step(lists)
    assert observations["ranking"].argmax(axis=2).tolist() == lists.tolist()


def test_a_repeated_item_stands_where_it_was_shown():
    env = ListAwareObservation(gym.make("PBMRank-v0"))
    env.reset(seed=0)
    observation, *_ = env.step([3, 3, 0, 7, 0])
    assert observation["ranking"].argmax(axis=1).tolist() == [3, 1, 0, 7, 2]


def test_stacked_frames_are_lists_with_their_clicks():
    env = FrameStackObservation(ListAwareObservation(gym.make("PBMRank-v0")), 4)
    env.reset(seed=0)
    lists = [env.action_space.sample() for _ in range(4)]
    clicks = []
    for ranking in lists:
        observation, reward, *_ = env.step(ranking)
        clicks.append(reward)
    assert observation["ranking"].argmax(axis=2).tolist() == [one.tolist() for one in lists]
    assert observation["clicks"].sum(axis=1).tolist() == clicks


def test_agents_play_behind_it():
    plain = clickgym.run("CascadeKLUCB", gym.make("PBMRank-v0"), 300, seed=0, engine="python")
    env = ListAwareObservation(gym.make("PBMRank-v0"))
    wrapped = clickgym.run("CascadeKLUCB", env, 300, seed=0)
    assert wrapped.regret.tolist() == plain.regret.tolist()
    assert gym.make(env.spec).reset(seed=0)[0]["ranking"].shape == (5, 10)


def test_what_is_refused():
    with pytest.raises(TypeError, match="represent ranked lists; the action space is Box"):
        ListAwareObservation(ScoresAction(gym.make("PBMRank-v0")))
    with pytest.raises(ValueError, match="has other items in every session"):
        ListAwareObservation(gym.make("ContextualPBMRank-v0"))
