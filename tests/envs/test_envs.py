"""Tests of the registered environments, one session at a time: their law, `info`, validation
errors, rendering and random generators.
"""

from __future__ import annotations

import copy
import pickle
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import MultiBinary
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import FlattenObservation
from numpy.random import MT19937, PCG64, SFC64, Philox

import clickgym
from clickgym.agents.agent import UnsuitedError
from clickgym.envs import CascadeModel, ClickEnv, DependentClickModel
from tests.helpers.click_stories import arguments_of
from tests.helpers.registries import default_ids

pytestmark = pytest.mark.uncompiled

# checkers ----------------------------------------------------------


@pytest.mark.parametrize("env_id", default_ids())
def test_the_checkers_pass_without_a_warning(env_id, capfd):
    """Features are flattened for the checker of stable-baselines3."""
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    env = gym.make(env_id)
    is_flat = isinstance(env.observation_space, MultiBinary)
    with warnings.catch_warnings(action="error"):
        check_env(env.unwrapped)
        checker.check_env(env.unwrapped if is_flat else FlattenObservation(env))
    assert capfd.readouterr() == ("", "")


# one step ----------------------------------------------------------


def test_regret_is_that_of_the_sessions_since_the_seed():
    env = ClickEnv("PBM", **arguments_of("PBMRank-v0", 6, 3))
    env.reset(seed=0)
    lost = [env.step(env.action_space.sample())[-1]["regret"] for _ in range(5)]
    env.reset()
    assert env.regret == pytest.approx(sum(lost))
    env.reset(seed=0)
    assert env.regret == 0


def test_every_step_returns_fresh_arrays():
    env = gym.make("PBMRank-v0", **arguments_of("PBMRank-v0", 6, 3))
    first, info = env.reset(seed=0)
    returned = [first, *(env.step([0, 1, 2])[0] for _ in range(20))]
    before = [clicks.copy() for clicks in returned]
    for _ in range(20):
        env.step([0, 1, 2])
    np.testing.assert_array_equal(returned, before)
    assert not any(np.shares_memory(a, b) for i, a in enumerate(returned) for b in returned[:i])
    optimal = info["optimal_ranking"].copy()
    info["optimal_ranking"][:] = 0
    np.testing.assert_array_equal(env.reset()[1]["optimal_ranking"], optimal)
    shown = [array.copy() for array in env.unwrapped.last_session()]
    for array in env.unwrapped.last_session():
        array[:] = 9
    np.testing.assert_array_equal(env.unwrapped.last_session(), shown)


# randomness --------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 42])
def test_seed_shared_with_an_agent(seed):
    """⚠ With Gymnasium's own seeding, the clicks would depend on the random numbers that chose the
    list.
    """
    env = gym.make("PBMRank-v0").unwrapped
    env.reset(seed=seed)
    numbers = env.np_random.random(1000)
    for agent in (np.random.default_rng(seed), *np.random.default_rng(seed).spawn(3)):
        assert not np.isin(numbers, agent.random(10_000)).any()


# errors ------------------------------------------------------------


def test_optimum_out_of_reach():
    """If the best list takes too long to find, an error says so. With a reference list, regret is
    measured against this list.
    """
    model = DependentClickModel(np.linspace(0.9, 0.1, 30), np.full(10, 0.5))
    with pytest.raises(ValueError, match="pass the list to measure"):
        ClickEnv(model)
    env = ClickEnv(model, reference=range(10))
    _, info = env.reset(seed=0)
    assert info["optimal_ranking"].tolist() == list(range(10))
    assert env.step(range(10))[-1]["regret"] == 0
    assert env.step(range(10, 20))[-1]["regret"] == pytest.approx(
        model.expected_reward(range(10)) - model.expected_reward(range(10, 20))
    )
    with pytest.raises(UnsuitedError, match="Oracle"):
        clickgym.make_agent("Oracle", env)


@pytest.mark.parametrize("bits", [PCG64, MT19937, Philox, SFC64])
def test_environment_draws_from_the_generator_that_is_set(bits):
    """This also holds after copies, and after an invalid list, for which nothing is drawn."""
    model = CascadeModel([0.5, 0.4, 0.3], 2)
    env, uniforms = ClickEnv(model), np.random.Generator(bits(3)).random((20, 2))
    env.reset(seed=0)
    env.step([0, 1])
    env.np_random = np.random.Generator(bits(3))
    for t, row in enumerate(uniforms):
        if t == 10:
            env = pickle.loads(pickle.dumps(copy.deepcopy(env)))
        with pytest.raises(ValueError, match="items are 0 to 2"):
            env.step([1, 3])
        assert env.n_simulated == t + 1
        clicks, *_ = env.step([0, 1])
        assert clicks.tolist() == [row[0] < 0.5, row[0] >= 0.5 and row[1] < 0.4]
