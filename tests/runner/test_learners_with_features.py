"""Generic RL where every session has other candidates: what it observes, what is measured, and what
it learns.
"""

import gymnasium as gym
import numpy as np
import pytest
from registries import default_ids
from slow import slow

import clickgym
from clickgym.agents import FrozenPolicy, OwnLoop
from clickgym.envs import ClickEnv, ClickVectorEnv, ContextualModel, PositionBasedModel

pytest.importorskip("sb3_contrib")

from clickgym.agents.rl.vec_env import StableBaselinesVecEnv

ITEMS = np.random.default_rng(1).random((12, 3)) / 2
USERS = ContextualModel(PositionBasedModel(np.zeros(5), [1.0, 0.6]), ITEMS, theta=[0.9, 0.2, 0.4])
WORTH = ContextualModel(PositionBasedModel(np.zeros(2), [1.0]), np.eye(2), theta=[1.0, 0.0])
"""One candidate is always clicked, the other never, and only features tell which; random lists lose
half a click a session.
"""


class InOrder(OwnLoop):
    """Shows the first candidates of each session, and keeps what the streams say."""

    engine = "a test"

    def __init__(self, n_envs):
        self.n_envs, self.infos, self.gains = n_envs, [], []

    def learn(self, envs, sessions, on_step, discount):
        envs.reset()
        going_on = True
        while going_on:
            self.gains.append(envs.unwrapped.state.values[:, 0].copy())
            self.infos.append(envs.step(np.tile([0, 1], (self.n_envs, 1))))
            going_on = on_step()


@pytest.mark.parametrize(
    "env_id",
    [
        "ContextualPBMRank-v0",
        *slow(*sorted(set(default_ids("Contextual")) - {"ContextualPBMRank-v0"})),
    ],
)
def test_every_contextual_id_and_reward_is_played(env_id):
    played = []
    for reward in gym.make(env_id, reward="clicks").unwrapped.model.rewards:
        try:
            env = gym.make(env_id, reward=reward)
        except ValueError:  # an optimum that takes too long in every session
            continue
        assert clickgym.run("A2C:n_envs=8", env, 40, seed=0).regret[-1] > 0
        played.append(reward)
    assert "clicks" in played


def test_what_networks_see():
    """The features of all candidates, one after another, and no clicks, which were on others."""
    plain, envs = (ClickVectorEnv(USERS, 4, autoreset_mode="SameStep") for _ in range(2))
    flat = StableBaselinesVecEnv(envs, is_flat=True)
    flat.seed(5)
    seen, read = plain.reset(seed=5)[0], flat.reset()
    for _ in range(6):
        assert read[0] in flat.observation_space
        np.testing.assert_array_equal(read, seen["features"].reshape(4, -1).astype(np.float32))
        lists = np.tile([0, 1], (4, 1))
        seen, read = plain.step(lists)[0], flat.step(lists)[0]


@pytest.mark.parametrize("n", [1, 4])
def test_regret_and_metrics_of_streams(n):
    """By hand from what the streams say: session after session, and within a step by stream."""
    agent, names = InOrder(n), ("any_click", "ndcg@2")
    result = clickgym.run(
        agent, ClickEnv(USERS), 48, seed=5, checkpoints=range(1, 49), metrics=names
    )
    clicks = np.concatenate([step[0]["clicks"] for step in agent.infos])
    regret, reward = (
        np.concatenate(values)
        for values in ([step[-1]["regret"] for step in agent.infos], [s[1] for s in agent.infos])
    )
    gains, discount = np.concatenate(agent.gains), 1 / np.log2([2, 3])
    ideal = np.sort(gains, axis=1)[:, :-3:-1] @ discount
    expected = {"any_click": clicks.any(axis=1), "ndcg@2": gains[:, :2] @ discount / ideal}
    np.testing.assert_allclose(result.regret, np.cumsum(regret), rtol=1e-12)
    np.testing.assert_array_equal(result.reward, np.cumsum(reward))
    np.testing.assert_array_equal(result.clicks, np.cumsum(clicks.sum(axis=1)))
    for name in names:
        np.testing.assert_allclose(result.metrics[name], np.cumsum(expected[name]), rtol=1e-12)


@pytest.mark.parametrize("spec", ["A2C", "DQN", *slow("PPO:learning_rate=0.001", "SAC")])
def test_it_learns_what_only_features_tell(spec):
    """Rule: over the last 1000 of 6000 sessions the regret is below a quarter of random lists',
    half a click a session.
    """
    env = ClickEnv(WORTH)
    agent = clickgym.make_agent(spec, env, seed=0)
    result = clickgym.run(agent, env, 6000, seed=0, checkpoints=[5000])
    assert (result.regret[-1] - result.regret[-2]) / 1000 < 0.25 * 0.5
    frozen = FrozenPolicy(model=agent.model)
    played = clickgym.run(frozen, env, 200, seed=1)
    assert played.regret[-1] / 200 < 0.25 * 0.5


@pytest.mark.parametrize("name", ["SAC", *slow("stable_baselines3:TD3")])
def test_continuous_actions_are_weights_of_features(name):
    """One for each feature, whatever the number of items, and scores of items where there are no
    features; frozen it shows the lists that its weights choose.
    """
    agent = clickgym.make_agent(f"{name}:learning_starts=16,batch_size=8", ClickEnv(USERS), seed=0)
    assert agent.actions == "scores"
    clickgym.run(agent, ClickEnv(USERS), 64, seed=0)
    assert agent.actions == "weights"
    assert agent.model.action_space.shape == (3,)
    assert agent.model.observation_space.shape == (15,)
    frozen, env = FrozenPolicy(model=agent.model), ClickEnv(USERS)
    observation, _ = env.reset(seed=1)
    for _ in range(10):
        features = observation["features"]
        weights, _ = agent.model.predict(features.ravel().astype(np.float32), deterministic=True)
        expected = np.argsort(-(features * weights).sum(axis=1), kind="stable")[:2]
        assert frozen.rank(observation).tolist() == expected.tolist()
        observation, *_ = env.step(expected)
    plain = ClickEnv(PositionBasedModel([0.5, 0.4, 0.3, 0.2, 0.1], [1.0, 0.5]))
    other = clickgym.make_agent(f"{name}:learning_starts=16,batch_size=8", plain, seed=0)
    clickgym.run(other, plain, 64, seed=0)
    assert (other.actions, other.model.action_space.shape) == ("scores", (5,))


def test_weights_learn_what_scores_cannot():
    """Rule: SAC by name has at most .6 of the regret of random lists in the second half of 2,000
    sessions; scores of rows have all of it.
    """
    env = gym.make("ContextualPBMRank-v0", instance="linear:seed=3")
    lost = [
        np.diff(clickgym.run(agent, env, 2000, seed=0, checkpoints=[1000]).regret)[0]
        for agent in ("SAC", "Random")
    ]
    assert lost[0] < 0.6 * lost[1]
