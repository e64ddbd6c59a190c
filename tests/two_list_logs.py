"""Logs in which users have seen two lists only, and what agents make of them."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

import clickgym
from clickgym.envs import Instance, PositionBasedModel


def two_list_logs(n=6, sessions=6000):
    """The environment and the log of n queries. Four of five sessions show a list of five of eight
    items. The others show a list with three of these, of which two have changed their places.
    """
    for seed in range(n):
        rng = np.random.default_rng(seed)
        attraction = rng.uniform(0.02, 0.4, 8)
        users = PositionBasedModel(attraction, [1.0, *np.sort(rng.uniform(0.1, 1, 4))[::-1]])
        a = np.argsort(rng.normal(0, 0.1, 8) - attraction)
        items = np.where((rng.random(sessions) < 0.8)[:, None], a[:5], a[[2, 1, 0, 6, 5]])
        clicks = np.array([users.sample(ranking, rng) for ranking in items])
        instance = Instance("shoes", {"PBM": users}, 5)
        yield gym.make("PBMRank-v0", instance=instance), items, clicks.astype(np.int8)


def of_best_and_rank(name):
    """The expected clicks of `best`, and the mean of 200 lists of `rank`, of an agent after each
    log: two arrays ``(n,)``.
    """
    best, ranked = [], []
    for env, items, clicked in two_list_logs():
        agent = clickgym.make_agent(name, env, seed=0, horizon=10_000)
        agent.learn_sessions(items, clicked, clicked.sum(axis=1).astype(float))
        clicks = env.unwrapped.model.expected_reward
        best.append(clicks(agent.best()))
        ranked.append(np.mean([clicks(agent.rank(None)) for _ in range(200)]))
    return np.array(best), np.array(ranked)
