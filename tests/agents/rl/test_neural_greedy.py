"""Tests of NeuralGreedy: it learns what a linear bandit cannot, and equal seeds give equal
digits.
"""

from __future__ import annotations

import copy

import numpy as np
import pytest

import clickgym
from clickgym.agents import LinearTS, NeuralGreedy
from tests.reference_agents.reference import Reference, any_lists

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.uncompiled

L, K = 6, 3
EXAMINATION = np.array([1.0, 0.6, 0.3])
SMALL = {"decay": 50, "net_arch": [8], "batch_size": 16, "buffer_size": 64}
WORLD = "ContextualPBMRank-v0:instance=personal"


class NeuralGreedyReference(Reference):
    """Lists of NeuralGreedy. Other tests below check what the network learns."""

    edges = {
        "feedback": ("reward",),
        "epsilon": (0.9,),
        "decay": (50,),
        "net_arch": ([8],),
        "learning_rate": (0.03,),
        "batch_size": (16,),
        "train_freq": (1,),
        "buffer_size": (16,),
    }

    def __init__(self, n_items, n_positions, n_features, epsilon, decay, **others):
        super().__init__(n_items, n_positions)
        self.epsilon, self.decay = epsilon, decay

    def lists(self, rng, n, agent, features):
        is_random = rng.random((n, 1)) < max(self.epsilon, 1 - (self.t - 1) / self.decay)
        greedy = agent.best(features)[: self.n_positions]
        return np.where(is_random, any_lists(rng, n, self.n_items, self.n_positions), greedy)


def sessions(n):
    """Candidates with two features, attractive if both features have the same sign. A linear
    function gets only half of the candidates right.
    """
    rng = np.random.default_rng(0)
    for _ in range(n):
        features = rng.uniform(-1, 1, (L, 2))
        attraction = np.where(features.prod(axis=1) > 0, 0.8, 0.1)
        yield {"features": features}, attraction, rng


def played(agent, n=6000):
    """Return the mean attraction of the candidates shown in the last third of n sessions, on a
    scale from 0 (random lists) to 1 (the best lists).
    """
    shares = []
    for observation, attraction, rng in sessions(n):
        ranking = agent.rank(observation)
        clicks = rng.random(K) < attraction[ranking] * EXAMINATION
        agent.update(observation, ranking, clicks.astype(np.int8), float(clicks.any()))
        best = np.sort(attraction)[::-1][:K].mean()
        shares.append((attraction[ranking].mean() - attraction.mean(), best - attraction.mean()))
    got, possible = np.sum(shares[-n // 3 :], axis=0)
    return got / possible


def test_it_learns_what_a_linear_bandit_cannot():
    """The agent also recovers the factors of positions from clicks on its own lists."""
    agent = NeuralGreedy(L, K, n_features=2, seed=0)
    assert played(agent) > 0.9
    assert played(LinearTS(L, K, n_features=2, seed=0), 1000) < 0.2
    assert agent.factors / agent.factors[0] == pytest.approx(EXAMINATION, abs=0.05)


def test_it_learns_from_one_bit_a_session():
    agent = NeuralGreedy(L, K, n_features=2, feedback="reward", seed=0)
    assert played(agent, 1500) > 0.9
    assert (np.diff(agent.factors) < 0).all()


def test_factors_from_one_bit_a_session():
    """One of three candidates attracts users, and the second position halves its reward."""
    agent = NeuralGreedy(
        3, 3, n_features=2, feedback="reward", net_arch=[], learning_rate=0.01, train_freq=1, seed=0
    )
    rng, observation = np.random.default_rng(0), {"features": np.eye(2)[[0, 1, 1]]}
    for _ in range(1500):
        ranking = rng.permutation(3)
        chance = 0.8 * np.array([1.0, 0.5, 0.0])[ranking.tolist().index(0)]
        agent.update(observation, ranking, [0, 0, 0], float(rng.random() < chance))
    assert agent.factors[1] / agent.factors[0] == pytest.approx(0.5, abs=0.06)


def test_ties_are_broken_at_random():
    agent = NeuralGreedy(4, 2, n_features=2, epsilon=0, decay=1, seed=0)
    alike = {"features": np.ones((4, 2))}
    agent.update(alike, agent.rank(alike), [0, 0])
    assert {int(agent.rank(alike)[0]) for _ in range(60)} == {0, 1, 2, 3}


def test_clicks_are_unused_with_rewards():
    agents = [NeuralGreedy(L, K, n_features=2, feedback="reward", seed=0, **SMALL) for _ in "ab"]
    for observation, _, rng in sessions(200):
        ranking, same = (agent.rank(observation) for agent in agents)
        assert ranking.tolist() == same.tolist()
        reward = float(rng.random() < 0.5)
        for agent, clicks in zip(agents, [[1, 0, 1], [0, 1, 0]], strict=True):
            agent.update(observation, ranking, clicks, reward)


def test_the_oldest_sessions_are_forgotten():
    """The first learning step uses only the last 64 sessions."""
    agents = [NeuralGreedy(L, K, n_features=2, seed=0, **SMALL, train_freq=128) for _ in "ab"]
    untrained = agents[0].factors
    for t, (observation, _, rng) in enumerate(sessions(128)):
        clicks = rng.integers(0, 2, (2, K))
        for agent, own in zip(agents, clicks, strict=True):
            agent.update(observation, range(K), own if t < 64 else clicks[0])
    assert agents[0].factors.tolist() == agents[1].factors.tolist() != untrained.tolist()


def test_a_step_draws_a_batch_from_the_stored_sessions():
    """The first step comes after 16 sessions, and later steps every fourth session, from the last
    64 sessions.
    """
    agent = NeuralGreedy(L, K, n_features=2, seed=0, **SMALL)
    for t, (observation, _, _) in enumerate(sessions(100), 1):
        expected = copy.deepcopy(agent.rng)
        agent.update(observation, range(K), [1, 0, 0])
        if t >= 16 and t % 4 == 0:
            expected.integers(min(t, 64), size=16)
        assert agent.rng.bit_generator.state == expected.bit_generator.state


def test_interface():
    clickgym.check_agent((NeuralGreedy, SMALL | {"feedback": "reward", "train_freq": 16}))


def test_equal_seeds_give_equal_digits():
    """The digits are equal even if another network draws from torch's generator, whose state the
    agent does not change.
    """
    state = torch.random.get_rng_state()
    first = clickgym.run("NeuralGreedy", WORLD, 300, seed=3)
    assert torch.equal(torch.random.get_rng_state(), state)
    torch.rand(5)
    second = clickgym.run("NeuralGreedy", WORLD, 300, seed=3)
    assert second.regret.tolist() == first.regret.tolist()
