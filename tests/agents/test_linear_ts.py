"""CascadeLinTS and PBMLinTS against their references, and the laws of their draws."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from reference_agents import MODELS, follow, reference_of
from scipy.stats import chi2, kstest, norm

from clickgym.agents import CascadeLinTS, PBMLinTS

L, K, D = 5, 3, 4
KAPPA = [0.4, 0.9, 0.6]
FALSE_ALARM = 1e-5

CASES = {
    "first_click": (CascadeLinTS, {"sigma": 0.5, "inflation": None, "feedback": "first_click"}),
    "last_click": (CascadeLinTS, {"sigma": 2.0, "inflation": None, "feedback": "last_click"}),
    "inflated": (CascadeLinTS, {"sigma": 1.0, "inflation": 0.1, "feedback": "last_click"}),
    "PBM": (PBMLinTS, {"examination": KAPPA, "scale": 0.5}),
}


def made(case, seed=3):
    agent_class, arguments = CASES[case]
    return agent_class(L, K, n_features=D, seed=seed, **arguments)


@pytest.mark.parametrize("model", ["CM", "DCM"])  # one click, and several
@pytest.mark.parametrize("case", CASES)
def test_it_follows_the_reference(case, model):
    agent = made(case)
    follow(agent, reference_of(agent), MODELS[model], 250, n_features=D)


@pytest.mark.parametrize("case", CASES)
def test_draws_have_the_law_of_the_posterior(case):
    """Null: draws less their mean, whitened by the reference, are D independent standard normals, in sessions after clicks.

    Kolmogorov-Smirnov over 2,000 sessions, in each coordinate and of the squared norm; 4 x (D + 1) tests, each with a
    false-alarm rate of 1e-5. A wrong scale of one per cent in 2,000 x 4 draws is not seen, one of ten per cent always.
    """
    agent, plain, rng = made(case), reference_of(made(case)), np.random.default_rng(5)
    draws = []
    for _ in range(2000):
        observation = {"features": rng.random((L, D)) - 0.3}
        ranking = agent.rank(observation)
        assert plain.allows(ranking.tolist(), agent.state, observation["features"])
        draws.append(plain.whitened)
        clicks = (rng.random(K) < 0.3).astype(int)
        agent.update(observation, ranking, clicks)
        plain.learn(ranking.tolist(), clicks.tolist())
    whitened = np.array(draws)
    assert all(kstest(whitened[:, i], norm.cdf).pvalue > FALSE_ALARM for i in range(D))
    assert kstest((whitened**2).sum(axis=1), chi2(D).cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize("case", CASES)
def test_the_same_normal_numbers_give_the_same_lists(case):
    """By a Cholesky factor of the precision, whose inverse is one of the square roots; ties draw nothing here."""
    agent, plain, rng = made(case), reference_of(made(case)), np.random.default_rng(6)
    twin = np.random.default_rng()
    for _ in range(150):
        features = rng.random((L, D)) - 0.3
        twin.bit_generator.state = agent.rng.bit_generator.state
        ranking = agent.rank({"features": features})
        root = np.linalg.inv(np.linalg.cholesky(plain.precision)).T
        theta = plain.mean() + plain.scale() * root @ twin.standard_normal(D)
        best = np.argsort(-(features @ theta))[:K]
        assert best.tolist() == ranking[list(plain.places())].tolist()
        np.testing.assert_allclose(agent.state.vector, theta, rtol=1e-9)
        assert twin.bit_generator.state == agent.rng.bit_generator.state
        clicks = (rng.random(K) < 0.3).astype(int)
        agent.update({"features": features}, ranking, clicks)
        plain.features = features
        plain.learn(ranking.tolist(), clicks.tolist())


@pytest.mark.parametrize(
    "agent", [CascadeLinTS, partial(CascadeLinTS, inflation=0.1), partial(PBMLinTS, examination=[1, 1, 1])]
)
def test_one_theta_ranks_all_candidates(agent):
    """Candidates x, 2x and 3x stand in this order or in the reverse; with a θ each they would once in three times."""
    lists = {tuple(agent(3, 3, n_features=1, seed=seed).rank({"features": [[1.0], [2.0], [3.0]]})) for seed in range(40)}
    assert lists == {(0, 1, 2), (2, 1, 0)}


def test_the_inflated_deviation_by_hand():
    """d = 1, K = 2, λ = 0.1: in session t the deviation is 0.1 · 3/2 · sqrt(log(t + 1)) · sqrt(2) before any click."""
    agent, twin = CascadeLinTS(2, 2, n_features=1, inflation=0.1, seed=0), np.random.default_rng()
    for t in range(1, 6):
        twin.bit_generator.state = agent.rng.bit_generator.state
        agent.rank({"features": [[1.0], [0.5]]})
        deviation = 0.1 * 1.5 * math.sqrt(math.log(t + 1)) * math.sqrt(2)
        assert agent.state.vector[0] == pytest.approx(deviation * twin.standard_normal(), rel=1e-12)


def test_foreign_lists_and_late_clicks_count_with_the_features_of_their_display():
    """In any order the statistics are the same up to rounding; t counts displays."""
    rng = np.random.default_rng(7)
    seen = [{"features": rng.random((L, D))} for _ in range(30)]
    agent, plain = made("first_click"), reference_of(made("first_click"))
    lists = [agent.rank(each) for each in seen]
    for display in rng.permutation(30):
        clicks = (rng.random(K) < 0.4).astype(int)
        agent.update(seen[display], lists[display], clicks, display=int(display) + 1)
        plain.features = seen[display]["features"]
        plain.learn(lists[display].tolist(), clicks.tolist())
    assert agent.state.t[0] == 30
    agent.update(seen[0], [4, 3, 2], [0, 1, 0])
    plain.features = seen[0]["features"]
    plain.learn([4, 3, 2], [0, 1, 0])
    assert agent.state.t[0] == 31
    assert plain.agrees(agent.state)


def test_what_was_not_shown_or_is_void_is_no_sample():
    agent = made("first_click")
    features = np.eye(L, D)
    agent.update({"features": features}, [0, 1, 2], [0, 0, -1])
    assert agent.state.gram.diagonal().tolist() == [1.25, 1.25, 0.25, 0.25]
    agent.update({"features": features}, [0, 1, 2], [0, 1, 0], void=np.array([False, True, False]))
    assert agent.state.gram.diagonal().tolist() == [2.25, 1.25, 0.25, 0.25]  # the void click ends the list all the same
