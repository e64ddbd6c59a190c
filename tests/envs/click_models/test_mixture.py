"""Tests of mixtures of click models: their joint law, optimum, families and validation errors.
`test_click_models` compares their sessions with their story.
"""

from __future__ import annotations

import itertools

import gymnasium as gym
import numpy as np
import pytest

import clickgym
from clickgym import envs
from tests.helpers.click_stories import make_model

pytestmark = pytest.mark.uncompiled

KINDS = (
    (envs.PositionBasedModel, envs.CascadeModel),
    (envs.UserBrowsingModel, envs.TrustBiasModel),
    (envs.DependentClickModel, envs.DynamicBayesianModel),
    (envs.PositionBasedModel, envs.PositionBasedModel, envs.DynamicBayesianModel),
    (envs.PositionBasedModel, envs.PositionBasedModel),
    (envs.PositionBasedModel, envs.TrustBiasModel),
)


@pytest.mark.parametrize(
    "kinds", KINDS, ids=lambda kinds: "-".join(kind.__name__ for kind in kinds)
)
def test_optimum_is_that_of_enumeration(kinds):
    """Fifteen mixtures with few distinct values, so that ties, zeros and ones are common."""
    rng = np.random.default_rng(len(kinds))
    lists = list(itertools.permutations(range(5), 3))
    for _ in range(15):
        models = [
            make_model(kind, 5, 3, lambda shape: rng.choice([0, 0.3, 1, *rng.random(4)], shape))
            for kind in kinds
        ]
        # two tastes with the same examination
        if {*kinds} <= {envs.PositionBasedModel, envs.TrustBiasModel}:
            models[1] = models[1].to_dict() | {"examination": models[0].examination.tolist()}
        mixture = envs.MixtureModel(models, rng.dirichlet(np.full(len(kinds), 5.0)))
        for reward, cutoff in itertools.product(mixture.rewards, (2, 3)):
            values = [mixture.expected_reward(ranking, reward, cutoff) for ranking in lists]
            best = mixture.optimal_ranking(reward, cutoff)
            assert mixture.expected_reward(best, reward, cutoff) == pytest.approx(
                max(values), rel=0, abs=1e-12
            )


@pytest.mark.parametrize("family", ["two-kinds", "two-tastes", "two-laws"])
def test_families(family):
    model = envs.load_instance(family).model("MixtureModel")
    assert model == envs.load_instance(family).model("MixtureModel")
    first, second = model.models
    weights = model.parameters.weights
    if family == "two-tastes":
        assert 0.3 <= weights[0] <= 0.7
        upper = set(first.optimal_ranking().tolist())
        assert upper.isdisjoint(second.optimal_ranking().tolist())
        assert sorted(first.attraction) == sorted(second.attraction)
        assert envs.load_instance("two-tastes:seed=1").model("MixtureModel") != model
    elif family == "two-laws":
        assert [model.name() for model in model.models] == ["PBM", "CM"]
        assert first.attraction.tolist() == second.attraction.tolist()
    else:
        assert [model.name() for model in model.models] == ["PBM", "DBN"]
        assert weights.tolist() == [0.5, 0.5]


def test_agents_that_require_the_examination():
    """Agents get the examination if all kinds of users share it. Otherwise an agent that requires
    it raises an error.
    """
    tastes = gym.make("MixtureRank-v0", instance="two-tastes")
    assert clickgym.run("PBMTS", tastes, 200, seed=0).engine == "compiled"
    with pytest.raises(ValueError, match="examination"):
        clickgym.run("PBMTS", gym.make("MixtureRank-v0", n_positions=5, **PARAMETERS), 200, seed=0)


PARAMETERS = {
    "models": [{"model": "CM", "attraction": [0.5] * 6, "n_positions": 5}] * 2,
    "weights": [0.5, 0.5],
}
