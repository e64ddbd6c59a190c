"""Tests of GRAB and S-GRAB: the assignment problem against SciPy, and the leader and its counts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import clickgym
from clickgym.agents import GRAB
from clickgym.agents.position_based.assignment import assign
from clickgym.agents.position_based.grab_memory import is_still_ahead
from clickgym.envs import CascadeModel, ClickEnv, PositionBasedModel
from tests.helpers.engines import chunks_of
from tests.helpers.slow import slow
from tests.reference_agents import MODELS, as_plain

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


@pytest.mark.parametrize("horizon", [None, *slow(1000)])
def test_lists_are_the_same_without_the_certificate(horizon):
    """If the leader is never certified, it is solved for in every session, with the same random
    numbers.
    """
    certain = 0
    for model in (
        MODELS["PBM"],
        CascadeModel([0.5] * 6, 2),
        PositionBasedModel([0.0, 1.0, 1.0, 0.5], [1.0, 1.0, 0.5]),
    ):
        agent, other = (
            GRAB(model.n_items, model.n_positions, horizon=horizon, seed=7) for _ in range(2)
        )
        rng = np.random.default_rng(8)
        for _ in range(900):
            certain += is_still_ahead(agent.state)
            other.state.ahead[0] = -np.inf
            ranking = agent.rank(None)
            np.testing.assert_array_equal(ranking, other.rank(None))
            clicks = model.sample(ranking, rng)
            agent.update(None, ranking, clicks)
            other.update(None, ranking, clicks)
        assert agent.rng.bit_generator.state == other.rng.bit_generator.state
    assert certain > 1000, "the certificate holds in many sessions"


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
