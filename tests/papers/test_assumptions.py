"""Which click models satisfy the assumptions of BatchRank: what theory says of some users."""

import numpy as np
import pytest
from zoghi2017_assumptions import ROUNDING, gaps

from clickgym.envs import (
    CascadeModel,
    DependentClickModel,
    DynamicBayesianModel,
    PositionBasedModel,
    UserBrowsingModel,
)

ALPHA = [0.8, 0.6, 0.4, 0.2]
BROWSING = [[0.9, 0, 0], [0.5, 0.8, 0], [0.3, 0.4, 0.7]]


@pytest.mark.parametrize(
    ("model", "broken"),
    [
        (CascadeModel(ALPHA, 3), []),
        (PositionBasedModel(ALPHA, [0.9, 0.5, 0.2]), []),
        (PositionBasedModel(ALPHA, [0.2, 0.9, 0.1]), [4]),
        (DependentClickModel(ALPHA, [0.5, 0.5, 0.5]), []),
        (DependentClickModel(ALPHA, [0.1, 0.9, 0.5]), [3, 6]),
        (UserBrowsingModel(ALPHA, BROWSING), [3, 5, 6]),
        (DynamicBayesianModel(ALPHA, [0.2, 0.9, 0.1, 0.9], 1.0, n_positions=3), [5, 6]),
    ],
    ids=str,
)
def test_assumptions(model, broken):
    assert np.flatnonzero(np.array(gaps(model)) > ROUNDING).tolist() == [it - 3 for it in broken]
