"""Replay of logged contextual data: the estimate against the truth, and what cannot be replayed."""

import re
from dataclasses import replace
from functools import cache

import gymnasium as gym
import numpy as np
import pytest
from slow import slow

import clickgym
import clickgym_logs
from clickgym import AgentError
from clickgym.agents import Agent

FAMILY = "linear:n_items=4,n_positions={},n_features=6,n_pool=60,n_users=20,seed=3"


class ByTheta(Agent):
    """Always shows the candidates of largest θᵀx."""

    def __init__(self, n_items, n_positions, theta):
        self.n_items, self.n_positions = n_items, n_positions
        self.theta, self.updates = np.asarray(theta), 0

    def rank(self, observation):
        return np.argsort(-(observation["features"] @ self.theta))[: self.n_positions]

    def update(self, observation, ranking, clicks, reward):
        self.updates += 1
        assert reward == clicks.sum()
        assert len(ranking) == len(clicks) == self.n_positions


@cache
def long_log(prefix):
    """10,000 sessions of 4 items, which several tests replay."""
    return random_log(prefix, 10_000, seed=0)


def random_log(prefix, sessions, seed, n_positions=4):
    env = gym.make(
        f"Contextual{prefix}Rank-v0", instance=FAMILY.format(n_positions), reward="any_click"
    )
    return clickgym_logs.record(
        clickgym.make_agent("Random", env, seed=seed), env, sessions, seed=seed
    ), env.unwrapped.model


# Replay does not depend on the click model: one of them is quick, the others slow.
@pytest.mark.parametrize("prefix", ["UBM", *slow("CM", "PBM", "DCM")])
@pytest.mark.parametrize("n_positions", [1, 2])
def test_value_of_a_fixed_agent(prefix, n_positions):
    """Its value on the users of the log is known exactly; within 5 standard errors, a false alarm
    in 2 million.
    """
    log, model = long_log(prefix)
    agent = ByTheta(4, n_positions, model.theta)
    result = clickgym_logs.replay(agent, log)
    users = model.with_positions(n_positions)
    truth = np.mean(
        [
            users.at(features).expected_reward(agent.rank({"features": features}))
            for features in log.context[:2000]
        ]
    )
    # of the truth, from the choice of its sessions; expected clicks have a deviation below 1
    noise = 1.0 / np.sqrt(2000)
    assert abs(result.value - truth) < 5 * (result.standard_error + 0.3 * noise)
    assert result.value > result.on_policy + 5 * result.standard_error
    assert agent.updates == len(result.rewards)
    agreement = 1 / 4 if n_positions == 1 else 1 / 12
    assert abs(len(result.rewards) / 10_000 - agreement) < 5 * np.sqrt(agreement / 10_000)
    assert result.on_policy == log.clicks[:, :n_positions].sum() / 10_000


class Recording(ByTheta):
    """Ranks and learns as C2UCB, and notes for each session what it saw, its list, and what it was
    taught, if anything.
    """

    def __init__(self, n_items, n_positions):
        super().__init__(n_items, n_positions, [0])
        self.learner = clickgym.agents.C2UCB(n_items, n_positions, n_features=6, alpha=0.3, seed=0)
        self.sessions = []

    def rank(self, observation):
        ranking = self.learner.rank(observation)
        self.sessions.append([observation["features"].copy(), ranking.copy(), None])
        return ranking

    def update(self, observation, ranking, clicks, reward):
        super().update(observation, ranking, clicks, reward)
        self.learner.update(observation, ranking, clicks, reward)
        assert (observation["features"] == self.sessions[-1][0]).all()
        assert (ranking == self.sessions[-1][1]).all()
        assert self.sessions[-1][2] is None, "once"
        self.sessions[-1][2] = clicks.tolist()


@pytest.mark.parametrize("n_positions", [1, 2])
def test_sessions_that_an_agent_learns_from(n_positions):
    log, _ = random_log("UBM", 300, seed=3)
    agent = Recording(4, n_positions)
    result = clickgym_logs.replay(agent, log)
    taught = []
    assert len(agent.sessions) == len(log)
    for context, clicks, (features, ranking, told) in zip(
        log.context, log.clicks, agent.sessions, strict=True
    ):
        assert sorted(features.tolist()) == sorted(context.tolist()), (
            "the candidates of the session"
        )
        own = np.array_equal(features[ranking], context[:n_positions])
        assert told == (clicks[:n_positions].tolist() if own else None)
        taught += [sum(told)] if own else []
    assert result.rewards.tolist() == taught
    assert len({tuple(ranking) for _, ranking, _ in agent.sessions}) > 1


class ByThetaOnly(ByTheta):
    """As an agent of one's own may be: it has no sizes, and ranks all items."""

    def __init__(self, theta):
        self.theta, self.updates = np.asarray(theta), 0

    def rank(self, observation):
        return np.argsort(-(observation["features"] @ self.theta))

    def update(self, observation, ranking, clicks, reward):
        self.updates += 1


def test_an_agent_without_sizes_ranks_all_items():
    log, model = long_log("UBM")
    agents = [ByThetaOnly(model.theta), ByTheta(4, 4, model.theta)]
    results = [clickgym_logs.replay(agent, log) for agent in agents]
    assert results[0].rewards.tolist() == results[1].rewards.tolist()
    assert len(results[0].rewards) > 0


def test_an_agent_that_does_not_learn_stays_as_it_is():
    log, _ = random_log("PBM", 500, seed=0)
    agent = clickgym.agents.C2UCB(4, 1, n_features=6, seed=0)
    clickgym_logs.replay(agent, log, learn=False)
    assert agent.state.t[0] == 0
    clickgym_logs.replay(agent, log)
    assert agent.state.t[0] > 50


def test_the_place_of_an_item_in_the_log_tells_nothing():
    """An agent that shows what comes first among the candidates earns what a random one would."""
    log, _ = long_log("UBM")

    class First(ByTheta):
        def rank(self, observation):
            return np.arange(self.n_positions)

    result = clickgym_logs.replay(First(4, 1, [0]), log)
    assert abs(result.value - result.on_policy) < 5 * result.standard_error
    assert abs(len(result.rewards) / 10_000 - 1 / 4) < 5 * np.sqrt(3 / 16 / 10_000)


def test_what_cannot_be_replayed_is_named():
    log, model = random_log("PBM", 30, seed=0)
    agent = ByTheta(4, 2, model.theta)
    for message, fields in {
        "the log has no context": {"context": None},
        "list propensities are unknown; expected the same for all": {"list_propensities": None},
        "propensities are 0.1 to 0.2": {"list_propensities": np.linspace(0.1, 0.2, 30)},
        "propensities are 1 to 1; expected the same for all sessions, at most 1/4!": {
            "list_propensities": np.ones(30)
        },
    }.items():
        with pytest.raises(ValueError, match=re.escape(message)):
            clickgym_logs.replay(agent, replace(log, **fields))
    with pytest.raises(ValueError, match="the agent ranks 5 items; expected logged lists of so"):
        clickgym_logs.replay(ByTheta(5, 2, model.theta), log)

    class Twice(ByTheta):
        def rank(self, observation):
            return np.array([1, 1])

    with pytest.raises(AgentError, match=r"Twice, session 1: .*position 1 shows item 1 again"):
        clickgym_logs.replay(Twice(4, 2, model.theta), log)
