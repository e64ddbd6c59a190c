"""Tests of `Agent.predict`, with which stable-baselines3 plays an agent that no longer learns."""

import copy

import gymnasium as gym
import numpy as np
import pytest

import clickgym
from clickgym.agents import Agent, LinearTS

evaluation = pytest.importorskip("stable_baselines3.common.evaluation")
vec_env = pytest.importorskip("stable_baselines3.common.vec_env")

pytestmark = [
    pytest.mark.uncompiled,
    pytest.mark.filterwarnings("ignore:Evaluation environment is not wrapped"),
]


class Forward(Agent):
    """Lists the first items, as a list of Python integers. It refuses to learn."""

    def __init__(self, n_items, n_positions, *, seed=None):
        self.ranking = [*range(n_positions)]

    def rank(self, observation):
        assert np.shape(observation) == (len(self.ranking),)
        return self.ranking

    def update(self, observation, ranking, clicks, reward):
        raise AssertionError("it must not learn")


def short(env_id, seed=0, **arguments):
    """Return an environment with episodes of 20 sessions, whose first reset is seeded."""
    env = gym.make(env_id, max_episode_steps=20, **arguments)
    env.reset(seed=seed)
    return env


def test_evaluate_policy_plays_an_agent_as_it_stands():
    """The returns are those of a loop over the same users: two episodes in each of three streams,
    one after the other. A list of one observation is an array of integers, without a state.
    """
    envs = [short("PBMRank-v0", seed) for seed in range(3)]
    agent = clickgym.make_agent(Forward, envs[0])
    ranking, state = agent.predict(np.zeros(5), deterministic=True)
    assert (ranking.tolist(), ranking.dtype, state) == ([0, 1, 2, 3, 4], np.int64, None)
    returns, lengths = evaluation.evaluate_policy(
        agent,
        vec_env.DummyVecEnv([lambda env=env: env for env in envs]),
        n_eval_episodes=6,
        return_episode_rewards=True,
    )
    expected = []
    for seed in range(3):
        env = short("PBMRank-v0", seed)
        for _ in range(2):
            env.reset()
            expected.append(sum(env.step(ranking)[1] for _ in range(20)))
    assert lengths == [20] * 6
    assert sorted(returns) == sorted(expected)


@pytest.mark.parametrize(
    ("name", "env_id", "counts"),
    [
        ("TopRank", "PBMRank-v0", ("wins", "beats")),
        ("CascadeVI", "CascadeMDPRank-v0", ("examined", "clicks", "moves")),
    ],
)
def test_an_agent_does_not_learn(name, env_id, counts):
    """It does not count a transition between its training and the evaluation either."""
    env = short(env_id)
    agent = clickgym.make_agent(name, env, horizon=1000, seed=0)
    clickgym.run(agent, env, 305, seed=1)
    before = {count: agent.arrays[count].copy() for count in counts}
    assert all(count.any() for count in before.values())
    assert evaluation.evaluate_policy(agent, env, n_eval_episodes=2)[0] > 0
    for count in counts:
        np.testing.assert_array_equal(agent.arrays[count], before[count], err_msg=count)


def test_lists_of_parallel_environments():
    """Each environment gets the list for its own candidates."""
    envs = vec_env.DummyVecEnv([lambda: gym.make("ContextualPBMRank-v0")] * 3)
    envs.seed(0)
    observation = envs.reset()
    agent = LinearTS(20, 5, n_features=10, seed=0)
    twin = copy.deepcopy(agent)
    rankings, state = agent.predict(observation, episode_start=np.ones(3, bool))
    assert state is None
    for i, ranking in enumerate(rankings):
        one = {name: values[i] for name, values in observation.items()}
        assert twin.predict(one)[0].tolist() == ranking.tolist()
    assert evaluation.evaluate_policy(agent, short("ContextualPBMRank-v0"), 2)[0] > 0


def test_an_agent_that_remembers_its_user_plays_one_environment():
    two = vec_env.DummyVecEnv([lambda: short("CascadeMDPRank-v0")] * 2)
    agent = clickgym.make_agent("CascadeVI", short("CascadeMDPRank-v0"))
    with pytest.raises(ValueError, match=r"CascadeVI remembers its user, .* not 2 in parallel"):
        agent.predict(two.reset())
