"""Agents with networks: against their references, by hand, the law of what they draw, and what they remember."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from itertools import permutations
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
import torch
from reference_agents import MODELS, follow, reference_of
from reference_agents.neural import Network
from scipy.special import expit
from scipy.stats import chi2, chisquare, kstest

import clickgym
from clickgym.agents import NeuralGreedy, NeuralLinearTS, OLLambdaRank, OLRankNet, PairRank
from clickgym.agents.networks import evaluate, layers, outputs
from clickgym.agents.ol_rank_net import differentiate, gains

FALSE_ALARM = 1e-5
EVERY = [OLRankNet, OLLambdaRank, NeuralLinearTS, NeuralGreedy]
SMALL = {"hidden": [4], "epochs": 3, "learning_rate": 0.03}
KAPPA = [0.9, 0.4, 0.6]


def made(agent, seed=1, n_items=5, n_positions=3, n_features=3, **given):
    return agent(n_items, n_positions, n_features=n_features, seed=seed, **SMALL | given)


def observed(rng, n_items=5, n_features=3):
    return {"features": rng.random((n_items, n_features)) - 0.3}


def play(agent, n, rng, rate=0.4):
    """Random clicks; returns the lists."""
    lists = []
    for _ in range(n):
        seen = observed(rng, agent.n_items, agent.n_features)
        lists.append(agent.rank(seen).tolist())
        agent.update(seen, lists[-1], (rng.random(agent.n_positions) < rate).astype(int))
    return lists


# ---------------------------------------------------------------------------------------------------------- the reference


@pytest.mark.parametrize(
    ("agent", "given"),
    [
        (OLRankNet, {}),
        (OLRankNet, {"covariance": "full", "alpha": 0.02, "growth": 0.2}),
        (OLRankNet, {"disjoint": True, "one_below": True, "inside": "certain", "hidden": [4, 3], "batch_size": 20}),
        (OLLambdaRank, {"batch_size": 32, "max_batches": 2}),
        (OLLambdaRank, {"one_below": True, "disjoint": True, "growth": 0.1}),
        (NeuralLinearTS, {"examination": KAPPA, "batch_size": 50}),
        (NeuralLinearTS, {"scale": 0.0, "feedback": "first_click", "growth": 0.0}),
        (NeuralGreedy, {"epsilon": 0.0, "examination": [1.0, 0.5, 1.0], "hidden": [4, 3]}),
        (NeuralGreedy, {"epsilon": 0.0, "feedback": "last_click"}),
    ],
)
def test_it_follows_the_reference(agent, given):
    played = made(agent, **given)
    follow(played, reference_of(played), MODELS["PBM"], 100, n_features=3)
    assert played.state.n_fitted[0] > 0


@pytest.mark.parametrize("hidden", [[5], [4, 3]])
def test_scores_and_gradients_are_those_of_autograd(hidden):
    sizes = np.array([3, *hidden, 1])
    rng = np.random.default_rng(2)
    network = Network.drawn(sizes.tolist(), rng).flat()
    units, slopes, gradient = np.zeros(sizes.sum()), np.zeros(sizes.sum()), np.zeros(len(network))
    for x in rng.normal(size=(20, 3)):
        weights = torch.tensor(network, requires_grad=True)
        score = outputs(layers(weights, sizes.tolist()), torch.tensor(x[None]))[-1][0, 0]
        score.backward()
        assert evaluate(network, sizes, x, units) == pytest.approx(score.item(), rel=1e-12)
        differentiate(network, sizes, units, slopes, gradient)
        np.testing.assert_allclose(gradient, weights.grad.numpy(), rtol=1e-12, atol=1e-15)


# ------------------------------------------------------------------------------------------- OLRankNet: planted errors


def test_certain_are_pairs_by_the_root_of_the_width_of_gradients():
    """Neither the variance itself nor the difference of the features gives the same pairs."""
    agent, rng = made(OLRankNet, n_items=8, growth=0.3, learning_rate=0.1, epochs=20), np.random.default_rng(0)
    for _ in range(150):
        seen = observed(rng, 8)
        ranking = agent.rank(seen)
        agent.update(seen, ranking, (rng.random(3) < seen["features"][ranking, 0] + 0.3).astype(int))
    clicked, unclicked = agent.state.documents[agent.state.pairs[: agent.state.n_pairs[0]], :-2].swapaxes(0, 1)
    found, widened = [], 0.1 + ((clicked - unclicked) ** 2).sum(axis=0)
    for _ in range(20):
        seen = observed(rng, 8)
        agent.rank(seen)
        network, x = Network(agent.sizes, agent.state.network), seen["features"]
        f, g = network.scores(x), np.array([network.gradient(row[None], np.ones(1)) for row in x])
        variance = ((g[:, None] - g) ** 2 / agent.state.diagonal).sum(axis=2)
        of_features = ((x[:, None] - x) ** 2 / widened).sum(axis=2)
        right = expit(f[:, None] - f)
        wanted, *wrong = (right - 0.1 * width > 0.5 for width in (np.sqrt(variance), variance, np.sqrt(of_features)))
        for _ in range(3):
            wanted = wanted | (wanted @ wanted)
        assert (agent.state.certain == wanted).all()
        found.append([wanted.any(), *((wanted != other).any() for other in wrong)])
    assert np.any(found, axis=0).all()


def test_late_clicks_count_with_the_gradients_of_their_display():
    agent, rng = made(OLRankNet), np.random.default_rng(3)
    seen = [observed(rng), observed(rng)]
    lists = [agent.rank(each) for each in seen]
    first = Network(agent.sizes, agent.state.network)
    agent.update(seen[1], lists[1], [0, 1, 0], display=2)
    assert agent.state.n_fitted[0] == 1
    now, before = Network(agent.sizes, agent.state.network), agent.state.diagonal.copy()
    agent.update(seen[0], lists[0], [0, 1, 0], display=1)
    grown = []
    for network in (first, now):
        clicked, unclicked = (network.gradient(seen[0]["features"][lists[0][k]][None], np.ones(1)) for k in (1, 0))
        grown.append((clicked - unclicked) ** 2)
    np.testing.assert_allclose(agent.state.diagonal - before, grown[0], rtol=1e-9, atol=1e-15)
    assert np.abs(grown[0] - grown[1]).max() > 1e-3


def test_a_log_counts_as_displays_of_the_present_weights():
    agent, rng = made(OLRankNet), np.random.default_rng(4)
    context = rng.random((30, 3, 3))
    clicks = rng.integers(0, 2, (30, 3))
    agent.rank(observed(rng))
    agent.learn(SimpleNamespace(rankings=np.tile(np.arange(3), (30, 1)), clicks=clicks, context=context))
    twin = made(OLRankNet)
    twin.rank(observed(np.random.default_rng(4)))
    for x, c in zip(context, clicks, strict=True):
        twin.update({"features": np.vstack([x, np.zeros((2, 3))])}, [0, 1, 2], c)
    assert agent.state.n_fitted[0] > 0
    np.testing.assert_array_equal(agent.state.network, twin.state.network)
    np.testing.assert_array_equal(agent.state.diagonal, twin.state.diagonal)


def test_pairs_weigh_by_the_places_of_present_scores():
    """Three documents of one session and two of another, by hand; the places where they were shown give other weights."""
    documents = np.array([[0, 1, 1], [0, 1, 1], [0, 1, 1], [0, 2, 2], [0, 2, 2], [0, 2, 2]], float)
    scores = np.array([0.0, 1.0, 2.0, 5.0, 3.0, 4.0])
    second, third = 1 / np.log2(3), 0.5
    pairs = np.array([[0, 1], [0, 2], [3, 5], [4, 5]])
    wanted = [second - third, 1 - third, (1 - second) / (1 + second), (second - third) / (1 + second)]
    np.testing.assert_allclose(gains(scores, documents, pairs), wanted, rtol=1e-12)
    assert not np.allclose(gains(-np.arange(6.0), documents, pairs), wanted, rtol=0.1)


@pytest.mark.parametrize("agent", [PairRank, OLRankNet])
def test_the_place_right_below_the_last_click_is_compared_on_demand(agent):
    small = {} if agent is PairRank else SMALL
    seen = {"features": np.eye(6)}
    for one_below, clicks, n_pairs in (
        (False, [0, 1, 0, 0], 1),
        (True, [0, 1, 0, 0], 2),
        (True, [1, 0, 0, 0], 1),
        (False, [1, 0, 0, 0], 0),
        (True, [0, 0, 0, 0], 0),
        (True, [0, 0, 0, 1], 3),
        (True, [1, -1, -1, -1], 0),
    ):
        played = agent(6, 4, n_features=6, seed=3, disjoint=False, one_below=one_below, **small)
        played.update(seen, played.rank(seen), clicks)
        assert played.state.n_pairs[0] == n_pairs


def test_growth_spares_trainings():
    rng, often, seldom = np.random.default_rng(5), made(OLRankNet), made(OLRankNet, growth=0.5)
    trained = dict.fromkeys((often, seldom), 0)
    for _ in range(60):
        seen, clicks = observed(rng), rng.integers(0, 2, 3)
        for agent in trained:
            before = agent.state.network.copy()
            agent.update(seen, agent.rank(seen), clicks)
            trained[agent] += (agent.state.network != before).any()
    assert trained[seldom] < 15 < 25 < trained[often]


def probabilities(sure, n_positions, inside, begun=()):
    """Of each list: what comes next is uniform among the candidates of the topmost block that may come next."""
    if len(begun) == n_positions:
        return {begun: 1.0}
    block = np.linalg.matrix_power((~(sure | sure.T)).astype(int), len(sure)) > 0
    left = [i for i in range(len(sure)) if i not in begun]
    above = sure if inside == "certain" else sure & ~block
    top = [i for i in left if not any(above[j, i] for j in left)]
    return {ranking: p / len(top) for i in top for ranking, p in probabilities(sure, n_positions, inside, (*begun, i)).items()}


@pytest.mark.parametrize("inside", ["random", "certain"])
def test_lists_have_the_law_of_their_blocks(inside):
    """Null: that of `probabilities`. The case with the most lists, of 60 in which not all lists are possible; 4,000 lists."""
    agent = made(OLRankNet, seed=4, learning_rate=0.05, alpha=0.04, growth=0.3, inside=inside)
    rng, cases = np.random.default_rng(4), []
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


# ------------------------------------------------------------------------------------------------------ the two bandits


def test_epsilon_is_the_share_of_uniform_lists():
    """Null: the best list with probability .6 + .4/60, each other of the 60 with .4/60; 4,000 lists."""
    agent, rng = made(NeuralGreedy, seed=4, learning_rate=0.05, epsilon=0.4, examination=KAPPA), np.random.default_rng(0)
    for _ in range(40):
        x = {"features": rng.normal(size=(5, 3))}
        agent.update(x, agent.rank(x), rng.integers(0, 2, 3))
    best, lists = tuple(agent.best(x["features"])[:3].tolist()), [*permutations(range(5), 3)]
    count = Counter(tuple(agent.rank(x).tolist()) for _ in range(4000))
    law = np.array([0.4 / 60 + 0.6 * (ranking == best) for ranking in lists])
    assert chisquare([count[ranking] for ranking in lists], 4000 * law).pvalue > FALSE_ALARM


@pytest.mark.parametrize("agent", [NeuralLinearTS, NeuralGreedy])
def test_lists_are_random_until_there_are_100_samples(agent):
    played, rng = (
        made(agent, examination=KAPPA, **({"scale": 0.0} if agent is NeuralLinearTS else {"epsilon": 0.0})),
        np.random.default_rng(6),
    )
    seen = observed(rng)
    for session in range(33):
        played.update(seen, played.rank(seen), [0, 1, 0])
        assert (played.state.n_samples[0], played.state.n_fitted[0]) == (3 * session + 3, 0)
    assert len({tuple(played.rank(seen)) for _ in range(20)}) > 5
    played.update(seen, played.rank(seen), [0, 1, 0])
    assert played.state.n_fitted[0] == 102
    assert {tuple(played.rank(seen)) for _ in range(20)} == {tuple(played.best(seen["features"])[:3])}


def test_the_draw_has_the_law_of_the_posterior():
    """Null: w ~ N(B⁻¹b, scale² B⁻¹), so that (w − B⁻¹b)ᵀB(w − B⁻¹b)/scale² is χ² with H degrees of freedom. 2,000 draws."""
    agent, rng = made(NeuralLinearTS, scale=0.7), np.random.default_rng(7)
    play(agent, 80, rng)
    seen, gram = observed(rng), agent.state.gram
    mean = np.linalg.solve(gram, agent.state.moment)
    draws = []
    for _ in range(2000):
        agent.rank(seen)
        draws.append(agent.state.draw - mean)
    draws = np.array(draws)
    squares = ((draws @ gram) * draws).sum(axis=1) / 0.7**2
    assert kstest(squares, chi2(len(gram)).cdf).pvalue > FALSE_ALARM
    whitened = draws @ np.linalg.cholesky(gram) / 0.7
    assert kstest(whitened.ravel(), "norm").pvalue > FALSE_ALARM


def test_known_examination_is_filled_in_where_it_is_that_of_a_position_based_model():
    pbm, cm = gym.make("clickgym:ContextualPBMRank-v0"), gym.make("clickgym:ContextualCMRank-v0")
    told = clickgym.make_agent("NeuralLinearTS", pbm, seed=0)
    np.testing.assert_array_equal(told.hyperparameters["examination"], pbm.unwrapped.model.base.position_weights())
    assert clickgym.make_agent("NeuralGreedy", cm, seed=0).hyperparameters["examination"] is None
    assert clickgym.make_agent(("NeuralGreedy", {"examination": None}), pbm, seed=0).hyperparameters["examination"] is None


def test_without_known_examination_the_feedback_says_what_was_seen():
    for feedback, count in (("first_click", 2), ("last_click", 3)):
        agent, seen = made(NeuralGreedy, n_positions=4, feedback=feedback), observed(np.random.default_rng(8))
        agent.update(seen, agent.rank(seen), [0, 1, 1, 0])
        assert agent.state.samples[: agent.state.n_samples[0], -2:].tolist() == [[1, 0], [1, 1], [1, 1]][:count]


# ---------------------------------------------------------------------------------------------------------------- all four


@pytest.mark.parametrize("agent", [OLRankNet, NeuralLinearTS])
def test_both_engines_and_two_runs_of_a_seed_are_equal(agent):
    label = (agent.__name__, SMALL | {"growth": 0.3})
    runs = [
        clickgym.run(label, "ContextualPBMRank-v0:arrival=delay:5", 120, seed=4, engine=e)
        for e in ("compiled", "python", "compiled")
    ]
    assert len({run.regret[-1] for run in runs}) == 1
    assert clickgym.run(label, "ContextualPBMRank-v0:arrival=delay:5", 120, seed=5).regret[-1] != runs[0].regret[-1]


@pytest.mark.parametrize("agent", EVERY)
def test_it_learns_what_no_linear_score_can(agent):
    """Attraction by the distance of one feature from the middle; the best list by it has the candidates of both ends on top."""
    rng = np.random.default_rng(11)
    played = agent(6, 3, n_features=1, hidden=[16], seed=0, growth=0.2, learning_rate=0.1)
    for _ in range(1500):
        x = rng.uniform(-1, 1, (6, 1))
        ranking = played.rank({"features": x})
        played.update({"features": x}, ranking, (rng.random(3) < x[ranking, 0] ** 2).astype(int))
    assert set(played.best([[-0.95], [-0.3], [0.05], [0.3], [0.95]])[:2]) == {0, 4}


def test_open_displays_remember_at_most_a_gibibyte():
    agent = OLRankNet(5, 2, n_features=10, hidden=[300, 300], seed=0)
    assert agent.state.shown.nbytes * agent.max_open <= 2**30 < agent.state.shown.nbytes * (agent.max_open + 1)


def test_a_full_covariance_is_for_small_networks():
    with pytest.raises(ValueError, match="covariance is 'full', and the network has 2,101 weights; expected 2,000 at most"):
        OLRankNet(5, 2, n_features=19, hidden=[100], covariance="full")
    OLRankNet(5, 2, n_features=17, hidden=[100], covariance="full")


@pytest.mark.parametrize("agent", EVERY)
def test_without_pytorch_one_line_says_what_to_install(agent, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    message = rf'^{agent.__name__} trains a network by PyTorch; install it: pip install "clickgym\[rl\]"$'
    with pytest.raises(ImportError, match=message):
        made(agent)


def test_pytorch_is_imported_when_an_agent_is_made():
    code = "import clickgym, sys; from clickgym.agents import OLRankNet; before = 'torch' in sys.modules; "
    code += "OLRankNet(5, 2, n_features=1); print(before, 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False True\n"
