"""Tests of GRAB: the assignment problem against SciPy, and the counts of leaders."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import clickgym
from clickgym.agents import GRAB
from clickgym.agents.position_based.assignment import assign
from clickgym.envs import ClickEnv, PositionBasedModel
from tests.helpers.engines import chunks_of
from tests.reference_agents.following import as_plain

pytestmark = pytest.mark.uncompiled

# --------------------------------------------------------------------------- the assignment problem


def assigned(weight, order):
    n_items, n_positions = weight.shape
    chosen = np.full(n_positions, -1)
    assign(weight, order, chosen, np.empty((3, n_items + 1)), np.empty((3, n_items + 1), np.int64))
    return chosen


def matrices(n, seed, most=7):
    """Random weights; half of them are quotients of small numbers, which produces ties."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        n_items = int(rng.integers(1, most + 1))
        shape = n_items, int(rng.integers(1, n_items + 1))
        tied = rng.integers(0, 3, shape) / rng.integers(2, 4)
        yield (tied if rng.random() < 0.5 else rng.random(shape)), rng.permutation(n_items)


def test_assignments_are_as_good_as_those_of_scipy():
    for weight, order in matrices(3000, 1):
        chosen = assigned(weight, order)
        assert len(set(chosen.tolist())) == len(chosen)
        assert weight[chosen, range(len(chosen))].sum() == pytest.approx(
            weight[linear_sum_assignment(weight, True)].sum()
        )


# --------------------------------------------------------------------------------------- the leader


def test_counts_of_leaders_survive_growth():
    """Uninformative clicks make more lists lead than the initial arrays can hold. The counts
    survive, whether sessions are played in chunks or one by one.
    """
    model, counts = PositionBasedModel([0.02] * 7, [1.0] * 5), Counter()

    class Counting(GRAB):
        def update(self, *session):
            counts[tuple(self.state.leader.tolist())] += 1
            super().update(*session)

    agents = [each(7, 5, horizon=10, seed=9) for each in (GRAB, Counting)]
    with chunks_of(100):
        clickgym.run(agents[0], ClickEnv(model), 600, seed=10, engine="compiled")
    clickgym.run(agents[1], ClickEnv(model), 600, seed=10)
    for agent in agents:
        n, state = agent.state.n_leaders[0], agent.state
        assert 64 < n <= len(state.counts)
        leaders, led = state.leaders[:n].tolist(), state.counts[:n].tolist()
        found = dict(zip(map(tuple, leaders), led, strict=True))
        assert {leader: times for leader, times in found.items() if times} == counts
        assert as_plain(state) == as_plain(agents[0].state)
