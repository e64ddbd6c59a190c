"""Tests of episodes: every id divides its stream of sessions into episodes, so that loops of other
libraries end, and nothing else about the stream changes.
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import clickgym
from clickgym.agents import Random
from clickgym.envs import ENVIRONMENTS
from tests.helpers.compiled_pairs import AGENT_OF, model_of

pytestmark = pytest.mark.uncompiled

STATIONARY, CHANGING, FEATURES, USERS = (
    "PBMRank-v0",
    "NonStationaryCMRank-v0",
    "ContextualCMRank-v0",
    "CascadeMDPRank-v0",
)
RUNS = (STATIONARY, "compiled"), (STATIONARY, "python"), (CHANGING, "compiled")


def state_of(env):
    """The state of an environment's random generator."""
    return env.unwrapped.np_random.bit_generator.state


class CountsUsers(Random):
    """An agent that counts its users. The first user comes before the first session."""

    n_users = 0

    def leave(self):
        self.n_users += 1


def first_list(env):
    return np.arange(env.unwrapped.model.n_positions)


def play(env, n_sessions, ranking=None):
    """Play sessions with the first items, and reset when an episode ends. Return the regrets, and
    the lengths of the episodes.
    """
    regrets, lengths = [], [0]
    for _ in range(n_sessions):
        _, _, terminated, truncated, info = env.step(
            first_list(env) if ranking is None else ranking
        )
        regrets.append(info["regret"])
        lengths[-1] += 1
        if terminated or truncated:
            env.reset()
            lengths.append(0)
    return regrets, lengths


@pytest.mark.parametrize("env_id", ENVIRONMENTS)
def test_every_id_ends_after_a_thousand_sessions(env_id):
    """Exceptions are ids whose users change later, and ids whose users determine the length of an
    episode.
    """
    limits = {"NonStationary": 100_000, "Queries": None, "Memory": None}
    limit = limits.get(ENVIRONMENTS[env_id].kind, 1000)
    assert gym.spec(env_id).max_episode_steps == limit


@pytest.mark.parametrize("env_id", [STATIONARY, FEATURES])
def test_episodes_cut_one_stream(env_id):
    """Episodes are truncated, and a reset continues the stream."""
    env, endless = (gym.make(env_id, max_episode_steps=limit) for limit in (100, -1))
    env.reset(seed=0)
    endless.reset(seed=0)
    regrets, lengths = play(env, 250)
    assert lengths == [100, 100, 50]
    assert play(endless, 250) == (regrets, [250])
    assert state_of(env) == state_of(endless)


def test_a_user_who_left_or_was_cut_off_is_followed_by_a_new_one():
    env = gym.make(USERS, max_episode_steps=3)
    env.reset(seed=0)
    _, lengths = play(env, 200)
    assert max(lengths) == 3
    for _ in range(20):
        before = state_of(env)
        env.reset()
        assert state_of(env) != before
        assert env.unwrapped.state.user[0, 1] == 1  # the user's first session
        env.step(first_list(env))


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_users_of_each_stream_are_cut_off_after_their_own_sessions(mode):
    envs = gym.make_vec(USERS, 4, max_episode_steps=3, autoreset_mode=mode)
    envs.reset(seed=0)
    lengths, ended = np.zeros(4, int), np.zeros(4, bool)
    for _ in range(200):
        lengths[:] = np.where(ended, 0, lengths)
        lengths += 1 if mode == "SameStep" else ~ended
        _, _, terminated, truncated, _ = envs.step(np.tile(first_list(envs), (4, 1)))
        assert truncated.tolist() == (lengths == 3).tolist()
        ended = terminated | truncated


@pytest.mark.compiled
@pytest.mark.parametrize(("env_id", "engine"), RUNS)
def test_the_runner_plays_the_endless_stream(env_id, engine):
    """The time limit of the caller's environment stays in place."""
    agent = AGENT_OF[model_of(env_id)]  # a loop that other tests compile
    env, endless = gym.make(env_id), gym.make(env_id, max_episode_steps=-1)
    n_sessions = env.spec.max_episode_steps + 500
    expected = clickgym.run(agent, endless, n_sessions, seed=0)
    result = clickgym.run(agent, env, n_sessions, seed=0, engine=engine)
    assert result.engine == engine
    np.testing.assert_array_equal(result.regret, expected.regret)
    assert isinstance(env, gym.wrappers.TimeLimit)


@pytest.mark.parametrize("wrapped", [False, True])
def test_after_a_run_the_limit_of_the_id_holds_again(wrapped):
    """The run itself is longer than the limit, which may be inside another wrapper."""
    env = gym.make(STATIONARY)
    if wrapped:
        env = gym.wrappers.RecordEpisodeStatistics(env)
    agent = clickgym.make_agent(CountsUsers, env, seed=0)
    clickgym.run(agent, env, env.spec.max_episode_steps + 5, seed=0)
    assert agent.n_users == 1
    env.reset()
    steps = [env.step(first_list(env))[3] for _ in range(env.spec.max_episode_steps)]
    assert steps.index(True) == len(steps) - 1


@pytest.mark.parametrize("make", [gym.make, gym.make_vec])
def test_options_of_reset_are_refused(make):
    env = make(CHANGING)
    env.reset(seed=0, options={})
    with pytest.raises(ValueError, match="reset got options: query"):
        env.reset(options={"query": 3})
