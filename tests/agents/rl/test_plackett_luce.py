"""Tests of the Plackett–Luce policy against enumeration in plain loops."""

from __future__ import annotations

import copy
import itertools
import math

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("sb3_contrib")

import torch
from gymnasium.spaces import Box, Dict, MultiBinary, MultiDiscrete
from sb3_contrib import TRPO
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.distributions import kl_divergence
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

from clickgym.agents import PlackettLuceActorCritic
from clickgym.agents.rl.plackett_luce import PlackettLuceDistribution
from clickgym.envs import RankedList
from tests.helpers.click_stories import assert_sampled_from, assert_uniform

SCORES = [1.0, 0.5, 0.0, -0.5, 2.0]
LISTS = list(itertools.permutations(range(5), 3))
SURE = [40.0, 0.0, -1.0, -2.0, -40.0]
QUICK = {"n_steps": 8, "gamma": 0.0, "device": "cpu", "seed": 0}


# ------------------------------------------------------------------------------------ the reference


def choices(scores, ranking):
    """The laws of a list's choices: for each position, the probability of each item that is still
    available.
    """
    laws, left = [], list(range(len(scores)))
    for item in ranking:
        weights = {other: math.exp(scores[other]) for other in left}
        laws.append(
            {other: weight / math.fsum(weights.values()) for other, weight in weights.items()}
        )
        left.remove(item)
    return laws


def log_probability(scores, ranking):
    return math.fsum(
        math.log(law[item]) for law, item in zip(choices(scores, ranking), ranking, strict=True)
    )


def entropy_of(law):
    return -math.fsum(p * math.log(p) for p in law if p > 0)


def gradient(function, scores, step=1e-5):
    """The gradient by central differences."""
    slopes = []
    for item in range(len(scores)):
        up, down = list(scores), list(scores)
        up[item] += step
        down[item] -= step
        slopes.append((function(up) - function(down)) / (2 * step))
    return np.array(slopes)


PROBABILITIES = np.array([math.exp(log_probability(SCORES, ranking)) for ranking in LISTS])


# --------------------------------------------------------------------------------- the law of lists


def distribution(scores, rows=1, kind=PlackettLuceDistribution, dtype=torch.float64):
    leaf = torch.tensor(scores, dtype=dtype, requires_grad=True)
    return kind(3, len(scores)).proba_distribution(leaf.expand(rows, -1)), leaf


def test_log_probabilities_are_those_of_the_enumeration():
    assert PROBABILITIES.sum() == pytest.approx(1, abs=1e-12)
    law, _ = distribution(SCORES, 60)
    found = law.log_prob(torch.tensor(LISTS)).detach().numpy()
    np.testing.assert_allclose(found, np.log(PROBABILITIES), atol=1e-9, rtol=0)
    assert np.exp(found).sum() == pytest.approx(1, abs=1e-9)


def test_nearly_certain_scores():
    """Probabilities of lists keep their digits in single precision."""
    law, leaf = distribution(SURE, dtype=torch.float32)
    found = law.log_prob(torch.tensor([[0, 1, 2]])).sum()
    found.backward()
    assert found.item() == pytest.approx(-0.7209, abs=1e-3)
    np.testing.assert_allclose(
        leaf.grad.numpy(), gradient(lambda s: log_probability(s, (0, 1, 2)), SURE), atol=1e-4
    )


def entropy_along(scores, ranking):
    """The sum of the entropies of a list's choices."""
    return math.fsum(entropy_of(law.values()) for law in choices(scores, ranking))


def test_entropy_along_the_list():
    """The mean of the entropies along a list is the entropy of the distribution of lists."""
    law, leaf = distribution(SCORES, 60)
    law.log_prob(torch.tensor(LISTS))
    entropies = law.entropy()
    plain = [entropy_along(SCORES, ranking) for ranking in LISTS]
    np.testing.assert_allclose(entropies.detach().numpy(), plain, atol=1e-9)
    assert plain @ PROBABILITIES == pytest.approx(entropy_of(PROBABILITIES), abs=1e-9)
    entropies[7].backward()
    expected = gradient(lambda scores: entropy_along(scores, LISTS[7]), SCORES)
    np.testing.assert_allclose(leaf.grad.numpy(), expected, atol=1e-8)


def test_samples_have_their_probabilities():
    """Null: the 100,000 lists are drawn with their probabilities."""
    torch.manual_seed(0)
    law, _ = distribution(SCORES, 100_000, dtype=torch.float32)
    expected = dict(zip(LISTS, PROBABILITIES, strict=True))
    assert_sampled_from(expected, map(tuple, law.sample().tolist()))


def test_the_mode_is_the_most_probable_list():
    law, _ = distribution(SCORES)
    assert tuple(law.mode()[0].tolist()) == LISTS[int(PROBABILITIES.argmax())] == (4, 0, 1)


def test_ties_are_broken_at_random():
    """Null: 6,000 lists of 2 out of 3 equal items are uniform."""
    torch.manual_seed(0)
    law = PlackettLuceDistribution(2, 3).proba_distribution(
        torch.tensor([[1.0, 1.0, 1.0, -3.0]]).expand(6000, -1)
    )
    assert_uniform(map(tuple, law.mode().tolist()), itertools.permutations(range(3), 2))


# --------------------------------------------------------------------------------------- the policy


def policy(observation_space, action_space, **arguments):
    return PlackettLuceActorCritic(observation_space, action_space, lambda _: 1e-3, **arguments)


@pytest.mark.parametrize("key", ["features", "counts"])
def test_order_of_candidates(key):
    """Reordering the candidates permutes their scores and leaves the value unchanged, both with
    features and with counts. Listing all candidates twice leaves the value unchanged, too.
    """
    torch.manual_seed(0)
    space = Dict({"clicks": MultiBinary(3), key: Box(-1.0, 1.0, (6, 4))})
    network = policy(space, RankedList(6, 3))
    rows, order = torch.randn(5, 6, 4), torch.tensor([3, 5, 0, 1, 4, 2])
    seen, again = ({"clicks": torch.zeros(5, 3), key: each} for each in (rows, rows[:, order]))
    scores, permuted = (
        network.get_distribution(observation).scores for observation in (seen, again)
    )
    torch.testing.assert_close(permuted, scores[:, order])
    twice = {**seen, key: rows.repeat(1, 2, 1)}
    for other in (again, twice):
        torch.testing.assert_close(network.predict_values(other), network.predict_values(seen))
    assert scores.std() > 0


class Own(BaseFeaturesExtractor):
    """A feature extractor that returns one row for each candidate."""

    def __init__(self, observation_space):
        super().__init__(observation_space, 5)
        self.rows = torch.nn.Linear(4, 5)

    def forward(self, observation):
        return self.rows(observation["features"])


def test_a_network_of_ones_own():
    seen = {"clicks": torch.zeros(2, 3), "features": torch.randn(2, 6, 4)}
    space = Dict(clicks=MultiBinary(3), features=Box(-1.0, 1.0, (6, 4)))
    network = policy(space, RankedList(6, 3), features_extractor_class=Own)
    assert network(seen)[0].shape == (2, 3)
    assert network.mlp_extractor.policy_net[0].in_features == 5


def test_actions_that_are_no_lists_are_refused():
    with pytest.raises(ValueError, match=r"got MultiDiscrete.*; remove the wrapper"):
        policy(MultiBinary(3), MultiDiscrete([6, 5, 4]))


# ---------------------------------------------------------------------- in the library's algorithms


@pytest.mark.parametrize("algorithm", [PPO, A2C, TRPO])
def test_the_library_learns_saves_and_loads(algorithm, tmp_path):
    env = gym.make("PBMRank-v0")
    model = algorithm(PlackettLuceActorCritic, env, **QUICK)
    before = [values.clone() for values in model.policy.parameters()]
    model.learn(32)
    after = [*model.policy.parameters()]
    assert all(values.isfinite().all() for values in after)
    assert any(bool((old != new).any()) for old, new in zip(before, after, strict=True))
    observation, _ = env.reset(seed=0)
    shown = model.predict(observation, deterministic=True)[0]
    assert shown in env.action_space
    model.save(tmp_path / "model.zip")
    loaded = algorithm.load(tmp_path / "model.zip", env=env)
    assert loaded.predict(observation, deterministic=True)[0].tolist() == shown.tolist()
    loaded.learn(16)
    model.policy.save(tmp_path / "policy.zip")
    again = PlackettLuceActorCritic.load(tmp_path / "policy.zip")
    assert again.predict(observation, deterministic=True)[0].tolist() == shown.tolist()


def test_evaluating_a_policy_does_not_change_its_training():
    def train(callback):
        env = gym.make("PBMRank-v0")
        model = PPO(PlackettLuceActorCritic, env, **QUICK).learn(64, callback=callback)
        return model.predict(np.zeros(5), deterministic=False)[0].tolist(), model.policy

    def evaluate(seen, _):
        seen["self"].predict(np.zeros(5), deterministic=True)
        return True

    (shown, policy), (as_shown, evaluated) = train(None), train(evaluate)
    assert as_shown == shown
    for weights, others in zip(policy.parameters(), evaluated.parameters(), strict=True):
        assert weights.equal(others)


def test_divergence_between_lists():
    """The divergence of the choices, averaged over the lists of one policy, is the divergence
    between the laws of lists. TRPO reads it from a distribution and an earlier copy of it.
    """
    rows = [torch.tensor([scores] * len(LISTS)) for scores in (SCORES, [0.2, 1.5, -1.0, 0.0, 0.7])]
    laws = PlackettLuceDistribution(3, 5)
    old = copy.copy(laws.proba_distribution(rows[1]))
    probabilities = [laws.proba_distribution(row).log_prob(torch.tensor(LISTS)) for row in rows]
    new = laws.proba_distribution(rows[0].requires_grad_())
    new.log_prob(torch.tensor(LISTS))
    weights = probabilities[0].exp().detach()
    divergence = (weights * kl_divergence(new, old)).sum()
    expected = (weights * (probabilities[0] - probabilities[1])).sum()
    torch.testing.assert_close(divergence, expected)
    divergence.backward()
    assert rows[0].grad.isfinite().all()
