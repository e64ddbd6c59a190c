"""The agents with networks against a second reference, by another author and from their definition alone.

It draws nothing: gradients are those of autograd, new weights are read from a copy of the agent that trains at a rate of nearly
zero, and lists are compared with the law of all lists.
"""

from __future__ import annotations

import copy
from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from clickgym.agents import NeuralGreedy, OLLambdaRank, OLRankNet

FALSE_ALARM = 1e-5
FOLLOWED = [(OLRankNet, {}), (OLRankNet, {"covariance": "full"}), (OLLambdaRank, {"disjoint": True, "one_below": True})]


def made(kind, **given):
    return kind(5, 3, n_features=3, hidden=[4], epochs=3, batch_size=10**6, learning_rate=0.05, seed=4, **given)


def scores_of(weights, x):
    """Of each layer the weights (inputs, units), then the biases."""
    return torch.relu(x @ weights[:12].view(3, 4) + weights[12:16]) @ weights[16:20] + weights[20]


def loss(w, pairs, weighted):
    """Of pairs (features, observed items, clicked items, clicked item, unclicked item)."""
    losses = []
    for x, observed, clicks, clicked, unclicked in pairs:
        f, gain = scores_of(w, torch.tensor(x)), [1 / np.log2(m + 2) for m in range(len(x))]
        rank = sorted(observed, key=lambda item: (-round(f[item].item(), 10), item not in clicks)).index
        weight = abs(gain[rank(clicked)] - gain[rank(unclicked)]) / sum(gain[: len(clicks)]) if weighted else 1.0
        losses.append(weight * torch.log1p(torch.exp(f[unclicked] - f[clicked])))
    return sum(losses) / len(losses)


def adam(weights, pairs, weighted):
    """The weights after three epochs of one batch."""
    w, m, v = torch.tensor(weights), 0.0, 0.0
    for t in (1, 2, 3):
        (gradient,) = torch.autograd.grad(loss(w.requires_grad_(), pairs, weighted), w)
        gradient, w = gradient + 0.1 / len(pairs) * w.detach(), w.detach()
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        w = w - 0.05 * 0.99999977 ** (t - 1) * (m / (1 - 0.9**t)) / (torch.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return w.numpy()


def probabilities(sure, n_positions, inside, begun=()):
    """Of each list: what comes next is uniform among the candidates of the topmost block that may come next."""
    if len(begun) == n_positions:
        return {begun: 1.0}
    block = np.linalg.matrix_power((~(sure | sure.T)).astype(int), len(sure)) > 0
    left = [i for i in range(len(sure)) if i not in begun]
    above = sure if inside == "certain" else sure & ~block
    top = [i for i in left if not any(above[j, i] for j in left)]
    return {ranking: p / len(top) for i in top for ranking, p in probabilities(sure, n_positions, inside, (*begun, i)).items()}


@pytest.mark.parametrize(("kind", "given"), FOLLOWED)
def test_certain_pairs_lists_covariance_and_trainings(kind, given):
    """Clicks come late, in any order; the covariance gets the gradients of the display."""
    agent, rng, waiting, pairs, n_fitted = made(kind, growth=0.25, alpha=0.03, **given), np.random.default_rng(1), [], [], 0
    a = 0.1 * np.eye(21)
    for _ in range(60):
        x = rng.normal(size=(5, 3))
        ranking = agent.rank({"features": x})
        weights, features = torch.tensor(agent.state.network), torch.tensor(x)
        f, g = scores_of(weights, features).numpy(), torch.func.jacrev(scores_of)(weights, features).numpy()
        delta, inverse = g[:, None] - g, np.linalg.inv(a if given.get("covariance") else np.diag(np.diag(a)))
        sure = 1 / (1 + np.exp(f - f[:, None])) - 0.03 * np.sqrt(np.einsum("ijp,pq,ijq->ij", delta, inverse, delta)) > 0.5
        for k in range(5):
            sure |= sure[:, k, None] & sure[k]
        assert (agent.state.certain == sure).all()
        assert tuple(ranking.tolist()) in probabilities(sure, 3, given.get("inside"))
        waiting.append((x, ranking.tolist(), g, agent.display))
        if len(waiting) < 4:
            continue
        x, ranking, g, display = waiting.pop(rng.integers(4))
        clicks, n_before = (rng.random(3) < 0.4).astype(int), agent.state.n_pairs[0]
        network, twin = agent.state.network.copy(), copy.deepcopy(agent)
        twin.state.training[0] = 1e-300  # the learning rate
        for each in (agent, twin):
            each.update({"features": x}, ranking, clicks, display=display)
        observed = ranking[: np.flatnonzero(clicks).max(initial=-1) + 1 + (clicks.any() and "one_below" in given)]
        clicked = [item for item, click in zip(ranking, clicks, strict=True) if click]
        unclicked = [item for item in observed if item not in clicked]
        rows = [(x == row[:3]).all(axis=1).argmax() for row in agent.state.documents[: agent.state.n_documents[0]]]
        new = [(rows[c], rows[u]) for c, u in agent.state.pairs[n_before : agent.state.n_pairs[0]]]
        every = {*product(clicked, unclicked)}
        assert len(new) == (min(len(clicked), len(unclicked)) if "disjoint" in given else len(every))
        assert set(new) <= every
        assert "disjoint" not in given or len(set(sum(new, ()))) == 2 * len(new)
        if new:  # equal scores are in the order of the agent's documents
            observed = rows[-len(observed) :]
        for c, u in new:
            a += np.outer(g[c] - g[u], g[c] - g[u])
            pairs.append((x, observed, clicked, c, u))
        if new and len(pairs) >= 1.25 * n_fitted:
            n_fitted = len(pairs)
            network = adam(twin.state.network, pairs, kind is OLLambdaRank)
        np.testing.assert_allclose(agent.state.network, network, rtol=0, atol=1e-9)
    assert n_fitted > 20


@pytest.mark.parametrize("inside", ["random", "certain"])
def test_lists_have_the_law_of_their_blocks(inside):
    """Null: that of `probabilities`. The case with the most lists, of 60 in which not all lists are possible; 4,000 lists."""
    agent, rng, cases = made(OLRankNet, alpha=0.04, growth=0.3, inside=inside), np.random.default_rng(4), []
    for session in range(100):
        x = {"features": rng.normal(size=(5, 3))}
        ranking = agent.rank(x)
        if session < 40:
            agent.update(x, ranking, rng.integers(0, 2, 3))
        else:
            cases.append((x, probabilities(agent.state.certain, 3, inside)))
    x, law = max(cases, key=lambda case: len(case[1]) % 60)
    count = Counter(tuple(agent.rank(x).tolist()) for _ in range(4000))
    assert set(count) <= set(law)
    assert 5 < len(law) < 60
    assert chisquare([count[ranking] for ranking in law], 4000 * np.array([*law.values()])).pvalue > FALSE_ALARM


def test_epsilon_is_the_share_of_uniform_lists():
    """Null: the best list with probability .6 + .4/60, each other of the 60 with .4/60; 4,000 lists."""
    agent, rng = made(NeuralGreedy, epsilon=0.4, examination=[0.9, 0.4, 0.6]), np.random.default_rng(0)
    for _ in range(40):
        x = {"features": rng.normal(size=(5, 3))}
        agent.update(x, agent.rank(x), rng.integers(0, 2, 3))
    best, lists = tuple(agent.best(x["features"])[:3].tolist()), [*permutations(range(5), 3)]
    count = Counter(tuple(agent.rank(x).tolist()) for _ in range(4000))
    law = np.array([0.4 / 60 + 0.6 * (ranking == best) for ranking in lists])
    assert chisquare([count[ranking] for ranking in lists], 4000 * law).pvalue > FALSE_ALARM
