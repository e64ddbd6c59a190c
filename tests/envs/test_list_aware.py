"""The list that got the clicks, in the observations of single and of vector environments."""

from __future__ import annotations

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import FrameStackObservation

import clickgym
from clickgym.envs import ListAwareObservation, ListAwareVectorObservation, ScoresAction

B = 3


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


@pytest.mark.parametrize("mode", ["SameStep", "NextStep"])
@pytest.mark.parametrize("env_id", ["PBMRank-v0", "CascadeMDPRank-v0"])
@pytest.mark.parametrize("outer", [True, False])
def test_vector_environments(env_id, mode, outer):
    """Native, and around a wrapper of each stream that says what is to be observed."""
    settings = {"num_envs": B, "max_episode_steps": 4}
    if outer:
        envs = ListAwareVectorObservation(gym.make_vec(env_id, autoreset_mode=mode, **settings))
    else:
        mode = gym.vector.AutoresetMode(mode)
        envs = gym.vector.SyncVectorEnv(
            [lambda: ListAwareObservation(gym.make(env_id, max_episode_steps=4))] * B,
            autoreset_mode=mode,
        )
    observations, _ = envs.reset(seed=0)
    assert not observations["ranking"].any()
    envs.action_space.seed(0)
    over, n_ends = np.zeros(B, bool), 0
    for _ in range(30):
        lists = envs.action_space.sample()
        observations, _, terminations, truncations, infos = envs.step(lists)
        assert observations in envs.observation_space
        was_reset, over = over, terminations | truncations
        shown = observations["ranking"].argmax(axis=2).tolist()
        for b in range(B):
            if "final_obs" in infos and infos["_final_obs"][b]:
                last = infos["final_obs"][b]
                assert last in envs.single_observation_space
                assert last["ranking"].argmax(axis=1).tolist() == lists[b].tolist()
                assert not observations["ranking"][b].any()
                n_ends += 1
            elif was_reset[b] and str(mode).endswith(("NextStep", "NEXT_STEP")):
                assert not observations["ranking"][b].any()
                n_ends += 1
            else:
                assert shown[b] == lists[b].tolist()
    assert n_ends >= B


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
    envs = gym.make_vec("ContextualPBMRank-v0", num_envs=B)
    with pytest.raises(ValueError, match="ListAwareVectorObservation is for items that stay"):
        ListAwareVectorObservation(envs)
