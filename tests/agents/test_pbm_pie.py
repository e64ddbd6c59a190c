"""PBM-PIE: which items it tries, in any state."""

from __future__ import annotations

import numpy as np
import pytest
from reference_agents import PBMPIEReference

from clickgym.agents import PBMPIE

pytestmark = pytest.mark.uncompiled


def test_every_item_that_may_be_better_is_tried():
    """Of random counts: clicks everywhere and nowhere, and estimates above 1 among them."""
    rng, n_tried = np.random.default_rng(2), 0
    for seed in range(200):
        kappa = np.sort(rng.choice([1.0, 0.9, 0.6, 0.3, 0.05], 3, replace=False))[::-1]
        shown = rng.integers(0, rng.choice([3, 12, 80]), (5, 3))
        shown[np.arange(5), rng.integers(0, 3, 5)] += 1
        theta = rng.choice([0.0, 0.1, 0.5, 0.9, 1.0], (5, 1))
        clicked = rng.binomial(shown, np.minimum(theta * kappa ** (seed % 2), 1.0))
        known = {"examination": kappa, "horizon": 2, "epsilon": rng.choice([0.0, 0.5])}
        agent, reference = PBMPIE(5, 3, seed=seed, **known), PBMPIEReference(5, **known)
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
        expected = {int(i) for i in order[3:] if last <= 1 and reference.might_reach(i, last)}
        assert tried == expected
        n_tried += len(tried)
    assert n_tried > 20
