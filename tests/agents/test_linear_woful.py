"""CascadeWOFUL against its reference; late clicks and their weights."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference_agents import MODELS, follow
from reference_agents.linear import CascadeWOFULReference

from clickgym.agents import CascadeWOFUL

L, K, D = 5, 3, 3


@pytest.mark.parametrize("bonus", [0.3, 1.0])
def test_it_follows_the_reference(bonus):
    arguments = {"bonus": bonus, "feedback": "last_click"}
    agent = CascadeWOFUL(L, K, n_features=D, seed=1, **arguments)
    plain = CascadeWOFULReference(L, K, D, **arguments)
    follow(agent, plain, MODELS["DCM"], 250, n_features=D)
    state = agent.state  # past two factorisations
    np.testing.assert_allclose(state.theta, np.linalg.solve(plain.h, plain.g), rtol=1e-9)
    np.testing.assert_allclose(state.plain_theta, np.linalg.solve(plain.a, plain.b), rtol=1e-9)
    np.testing.assert_allclose(state.inverse, np.linalg.inv(plain.h), rtol=1e-9, atol=1e-12)


def test_the_first_session_by_hand():
    """d = 1, K = 2, t = 1: β = ½ sqrt(log 3 + 2 log 2) + 1, β' = sqrt(log 5 + 2 log 2) + 1; nothing was clicked yet."""
    agent = CascadeWOFUL(2, 2, n_features=1, seed=0)
    ranking = agent.rank({"features": [[0.1], [0.3]]})
    narrow, wide = 0.5 * math.sqrt(math.log(3) + 2 * math.log(2)) + 1, math.sqrt(math.log(5) + 2 * math.log(2)) + 1
    assert ranking.tolist() == [1, 0]
    np.testing.assert_allclose(agent.state.indices, wide * np.array([0.1, 0.3]), rtol=1e-14)
    np.testing.assert_allclose(agent.state.omega, [1 / (0.3 * narrow), 2.0], rtol=1e-14)  # 0.1 β < 1/K


def test_late_clicks_count_with_the_weights_of_their_display():
    """Displays answered in another order: H is the sum over their own ω; by the ω of the last display it is another."""
    rng = np.random.default_rng(2)
    agent = CascadeWOFUL(L, K, n_features=D, bonus=0.3, seed=3)
    h, moment, by_last = np.eye(D), np.zeros(D), np.eye(D)
    waiting = []
    for _ in range(40):
        observation = {"features": rng.random((L, D)) * 0.5}
        ranking = agent.rank(observation)
        waiting.append((agent.display, observation, ranking, agent.state.omega.copy()))
        if rng.random() < 0.5:
            display, seen, shown, omega = waiting.pop(rng.integers(len(waiting)))
            last = waiting[-1][3] if waiting else omega
            clicks = (rng.random(K) < 0.4).astype(int)
            agent.update(seen, shown, clicks, display=display)
            examined = np.flatnonzero(clicks)[-1] + 1 if clicks.any() else K
            for k in range(examined):
                x = seen["features"][shown[k]]
                h, moment = h + omega[k] * np.outer(x, x), moment + omega[k] * clicks[k] * x
                by_last = by_last + last[k] * np.outer(x, x)
    np.testing.assert_allclose(agent.state.gram, h, rtol=1e-12)
    np.testing.assert_allclose(agent.state.moment, moment, rtol=1e-12)
    np.testing.assert_allclose(agent.state.theta, np.linalg.solve(h, moment), rtol=1e-9)
    assert not np.allclose(by_last, h, rtol=1e-3)


def test_rare_clicks_weigh_more():
    """Where nothing is clicked, U falls and ω rises, up to K."""
    agent, observation = CascadeWOFUL(2, 2, n_features=1, bonus=0.1, seed=0), {"features": [[0.5], [0.5]]}
    first = agent.rank(observation)
    before = agent.state.omega.copy()
    agent.update(observation, first, [1, 1])
    for _ in range(100):
        agent.update(observation, agent.rank(observation), [0, 0])
    assert (agent.state.omega == 2.0).all()
    assert (before <= 2.0).all()
