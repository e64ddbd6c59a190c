"""Tests of PBM-PIE: the items it explores, in any state."""

from __future__ import annotations

import numpy as np
import pytest

from clickgym.agents import PBMPIE
from tests.reference_agents.indices import PBMPIEReference

pytestmark = pytest.mark.uncompiled

SHOWN = [[33, 64, 50], [77, 51, 60], [33, 77, 72], [32, 57, 76], [14, 10, 1]]
CLICKED = [[33, 39, 2], [51, 27, 1], [29, 25, 3], [32, 36, 5], [9, 2, 0]]
"""Counts that fit no attraction: even where their likelihood is largest, Φ exceeds the bound."""


def states():
    """States of the agent, among them clicks everywhere, clicks nowhere, and estimates above 1."""
    yield np.array([1.0, 0.6, 0.05]), np.array(SHOWN), np.array(CLICKED)
    rng = np.random.default_rng(2)
    for trial in range(200):
        kappa = np.sort(rng.choice([1.0, 0.9, 0.6, 0.3, 0.05], 3, replace=False))[::-1]
        shown = rng.integers(0, rng.choice([3, 12, 80]), (5, 3))
        shown[np.arange(5), rng.integers(0, 3, 5)] += 1
        theta = rng.choice([0.0, 0.1, 0.5, 0.9, 1.0], (5, 1))
        yield kappa, shown, rng.binomial(shown, np.minimum(theta * kappa ** (trial % 2), 1.0))


@pytest.mark.parametrize("horizon", [2, 30])
def test_every_item_that_may_be_better_is_tried(horizon):
    n_tried = 0
    for seed, (kappa, shown, clicked) in enumerate(states()):
        known = {"examination": kappa, "horizon": horizon, "epsilon": 0.0}
        agent, reference = PBMPIE(5, 3, seed=seed, **known), PBMPIEReference(5, 3, **known)
        state = agent.state
        state.clicks[:], state.displays[:], state.t[0] = clicked, shown, 5
        state.weight[:] = shown @ kappa
        state.mean[:] = clicked.sum(axis=1) / state.weight
        reference.clicked, reference.shown = clicked.tolist(), shown.tolist()
        order = np.argsort(-state.mean)
        last = state.mean[order[2]]
        if len({*state.mean.tolist()}) < 5 or last == 1.0:
            continue  # with ties, other items may be leaders; at 1 rounding decides
        tried = {int(agent.rank(None)[2]) for _ in range(40)} - {int(order[2])}
        assert tried == {int(i) for i in order[3:] if last <= 1 and reference.might_reach(i, last)}
        n_tried += len(tried)
    assert n_tried > 10
