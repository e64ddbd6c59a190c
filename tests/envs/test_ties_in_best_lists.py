"""Tests that values which differ only in their last digits are ordered alike in the best lists of
all users.
"""

from __future__ import annotations

import numpy as np
import pytest

from clickgym import envs
from clickgym.core.sums import weighted_sums
from clickgym.envs.spaces import argsort_descending

pytestmark = pytest.mark.uncompiled

ALIKE = [0.3] * 5
BROWSING = [[0.9, 0.0, 0.0], [0.5, 0.8, 0.0], [0.3, 0.4, 0.7]]
DBN = envs.DynamicBayesianModel(ALIKE, [0.5] * 5, 0.9, n_positions=3)
MODELS = [  # users whose best lists follow from a theorem or a search
    envs.CascadeModel(ALIKE, 3),
    envs.PositionBasedModel(ALIKE, [0.5, 0.9, 0.9]),
    envs.DependentClickModel(ALIKE, [0.6, 0.5, 0.4]),
    envs.UserBrowsingModel(ALIKE, BROWSING),
    envs.TrustBiasModel(ALIKE, [0.5, 0.9, 0.9]),
    envs.MixtureModel([envs.PositionBasedModel(ALIKE, [0.9, 0.5, 0.4]), DBN], [0.5, 0.5]),
]
CASES = [(model, reward) for model in MODELS for reward in model.rewards]
NOISE = 1 + 1e-13 * np.array([0.0, 2.0, 1.0, 3.0, 1.5])
"""Factors whose rounding would reverse an order in the last digits."""


def nudged(model, factors):
    """Return the same users with each item's attraction multiplied by a factor."""
    if isinstance(model, envs.MixtureModel):
        models = [nudged(part, factors) for part in model.models]
        return envs.MixtureModel(models, model.parameters.weights)
    return model.with_items(
        **{name: getattr(model.parameters, name) for name in model.item_parameters()}
        | {"attraction": model.attraction * factors}
    )


def test_equal_values_are_in_the_order_of_ids():
    assert argsort_descending(0.3 * NOISE).tolist() == [0, 1, 2, 3, 4]
    assert argsort_descending([0.3, 0.3 * (1 + 1e-9), 0.1 + 0.2]).tolist() == [1, 0, 2]
    # a comparison with a tolerance would be cyclic here
    steps = 0.3 + 6e-13 * np.arange(40)
    rounded = [-float(f"{value:.11e}") for value in steps]
    assert argsort_descending(steps).tolist() == np.argsort(rounded, kind="stable").tolist()
    assert len(argsort_descending([])) == 0


@pytest.mark.parametrize("layout", ["C", "F"])
def test_sums_have_one_order(layout):
    """Sums run from the first number to the last, whatever the memory layout, and so give the same
    bits everywhere.
    """
    rng = np.random.default_rng(0)
    rows, weights = rng.random((7, 100)), rng.random(100)
    sums = [0.0] * 7
    for column in range(100):
        sums = [
            total + row[column] * weights[column] for total, row in zip(sums, rows, strict=True)
        ]
    assert weighted_sums(np.array(rows, order=layout), weights).tolist() == sums


@pytest.mark.parametrize(("model", "reward"), CASES)
def test_last_digits_decide_no_list(model, reward):
    for cutoff in (None, 2):
        best = model.optimal_ranking(reward, cutoff).tolist()
        assert sorted(best) == [0, 1, 2]
        assert nudged(model, NOISE).optimal_ranking(reward, cutoff).tolist() == best
        assert nudged(model, NOISE[::-1]).optimal_ranking(reward, cutoff).tolist() == best
    more = nudged(model, [1, 1, 1, 1, 1 + 1e-9]).optimal_ranking(reward)
    assert 4 in more
