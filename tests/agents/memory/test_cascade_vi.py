"""Tests of agents that see the state of users with memory, against slow references."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clickgym.agents import CascadeVI
from clickgym.envs import ClickEnv, load_instance
from clickgym.envs.simulation.scan import best_scan
from tests.helpers.slow import slow
from tests.reference_agents.bounds import upper_bound


def plan_slowly(seen, t, mean_sessions, rewards, bonus, n_positions):
    """Optimistic value iteration on the sessions seen so far, written from the docstring."""
    n_states, n_items = rewards.shape
    level = math.log(t) + 3 * math.log(max(math.log(max(t, 1)), 1e-300)) if t > 2 else None
    examined, clicks = np.zeros((n_states, n_items)), np.zeros((n_states, n_items))
    moves = np.zeros((n_states, n_items + 1, n_states))
    for state, ranking, clicked, after in seen:
        for item in ranking:
            examined[state, item] += 1
            if item == clicked:
                clicks[state, item] += 1
                break
        if after is not None:
            moves[state, n_items if clicked is None else clicked, after] += 1
    q = np.ones((n_states, n_items))
    for s in range(n_states):
        for i in range(n_items):
            if examined[s, i]:
                q[s, i] = upper_bound(clicks[s, i] / examined[s, i], level / examined[s, i])
    value = np.zeros(n_states)
    while True:
        before = value.copy()
        for s in range(n_states):
            worth = np.zeros(n_items + 1)
            for o in range(n_items + 1):
                n = moves[s, o].sum()
                share = 1.0 if n == 0 else min(1.0, bonus * math.sqrt(level / n))
                later = share * before.max() + (1 - share) * (
                    moves[s, o] @ before / n if n else 0.0
                )
                worth[o] = (rewards[s, o] if o < n_items else 0.0) + (1 - 1 / mean_sessions) * later
            best = best_scan(q[s] * worth[:-1], 1 - q[s], n_positions, worth[-1])
            reached = np.concatenate([[1.0], np.cumprod(1 - q[s, best])])
            value[s] = (reached[:-1] * q[s, best]) @ worth[best] + reached[-1] * worth[-1]
        if np.abs(value - before).max() < 1e-12:
            return value


@pytest.mark.parametrize("bonus", [0.1, *slow(0.5)])
def test_the_planner_hopes_what_its_docstring_says(bonus):
    """After 3,000 sessions, V equals the value of a plan made at that moment, up to the tolerance
    of value iteration.
    """
    env = ClickEnv(
        load_instance("clickbait:n_items=6,n_positions=2,n_states=3,mean_sessions=8").model(
            "CascadeMDP"
        )
    )
    rewards = np.arange(18).reshape(3, 6) / 17
    agent = CascadeVI(6, 2, n_states=3, mean_sessions=8, click_rewards=rewards, bonus=bonus, seed=0)
    seen, (observation, _) = [], env.reset(seed=0)
    for _ in range(3000):
        ranking = agent.rank(observation)
        if seen and seen[-1][3] == "later":
            seen[-1][3] = int(observation["state"])
        before = observation
        observation, reward, over, _, _ = env.step(ranking)
        clicked = ranking[observation["clicks"].argmax()] if observation["clicks"].any() else None
        seen.append([int(before["state"]), ranking.tolist(), clicked, None if over else "later"])
        agent.update(before, ranking, observation["clicks"], reward)
        if over:
            observation, _ = env.reset()
            agent.leave()
    agent.state.next_plan[0] = 0
    agent.rank(observation)
    if seen[-1][3] == "later":
        seen[-1][3] = int(observation["state"])
    expected = plan_slowly(seen, 3001, 8, rewards, bonus, 2)
    np.testing.assert_allclose(agent.state.values, expected, atol=1e-4 * 8 * 8)
