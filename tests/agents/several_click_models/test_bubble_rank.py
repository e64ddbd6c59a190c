"""Tests of BubbleRank: its threshold, its initial list, and its promise never to show a list much
worse than the initial one.
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import clickgym
from clickgym.agents import TopRank
from clickgym.agents.several_click_models.bubble_rank import BubbleRank
from clickgym.envs import CascadeModel, ClickEnv, DependentClickModel, PositionBasedModel
from tests.helpers.slow import slow

pytestmark = pytest.mark.uncompiled


def drawn(agent: BubbleRank) -> tuple[int, ...]:
    """Return the list of the next session, leaving the agent's state unchanged."""
    t = agent.state.t[0]
    ranking = agent.rank(None)
    agent.state.t[0] = t
    return tuple(ranking.tolist())


# ------------------------------------------------------------------------------------------ by hand


def test_a_threshold_that_is_met_exactly():
    """With log 1/δ = 4 and n = s = 16, s equals 2 sqrt(n log 1/δ): the pair is undecided. Item i
    beats j only above this threshold.
    """
    agent = BubbleRank(2, 2, initial=[0, 1], delta=0.5, seed=11)
    agent.state.log_delta[0] = 4.0
    agent.state.s[:], agent.state.n[:] = [[0, 16], [-16, 0]], [[0, 16], [16, 0]]
    assert {drawn(agent) for _ in range(200)} == {(0, 1), (1, 0)}
    agent.state.s[:], agent.state.n[:] = [[0, 17], [-17, 0]], [[0, 17], [17, 0]]
    assert {drawn(agent) for _ in range(200)} == {(0, 1)}


def test_the_initial_list():
    """K ids are completed by the other items in random order; L ids are used as given."""
    some = [
        BubbleRank(5, 3, initial=[4, 0, 2], seed=seed).state.base.tolist() for seed in range(40)
    ]
    assert {tuple(base[3:]) for base in some} == {(1, 3), (3, 1)}
    assert all(base[:3] == [4, 0, 2] for base in some)
    assert BubbleRank(5, 3, initial=[4, 0, 2, 3, 1]).state.base.tolist() == [4, 0, 2, 3, 1]


def test_make_agent_fills_in_the_production_list():
    env = gym.make("PBMRank-v0")
    agent = clickgym.make_agent(BubbleRank, env, horizon=100, seed=0)
    np.testing.assert_array_equal(agent.state.base, env.unwrapped.initial_ranking)
    env = gym.make("CMRank-v0", attraction=[0.1, 0.2, 0.3], n_positions=3)
    assert "initial" not in clickgym.make_agent(BubbleRank, env, horizon=100, seed=0).filled_in


# -------------------------------------------------------------------------------------- its promise

ATTRACTION = np.array([0.75, 0.6, 0.5, 0.35, 0.3, 0.2, 0.1, 0.05])
SAFE = {
    "CM": CascadeModel(ATTRACTION, n_positions=8),
    "DCM": DependentClickModel(ATTRACTION, [0.6] * 8),
    "PBM": PositionBasedModel(ATTRACTION, np.linspace(1.0, 0.4, 8)),
}


def violations(agent, model, initial, n, **options):
    """Return the number of violations in a run of n sessions."""
    env = ClickEnv(model)
    env.initial_ranking = initial
    result = clickgym.run(agent, env, n, checkpoints=[], metrics=["violations"], **options)
    return result.metrics["violations"][-1]


@pytest.mark.parametrize(
    ("kind", "n_runs", "horizon"),
    [("CM", 2, 1000), ("PBM", 2, 1000), *slow(*((kind, 20, 20_000) for kind in SAFE))],
)
def test_it_never_violates_the_safety_constraint(kind, n_runs, horizon):
    """The agent starts from random lists R_0, with K = L."""
    for seed in range(n_runs):
        initial = np.random.default_rng(seed).permutation(8)
        agent = BubbleRank(8, 8, initial=initial, horizon=horizon, seed=seed)
        assert violations(agent, SAFE[kind], initial, horizon, seed=seed) == 0


def test_another_agent_violates_the_safety_constraint():
    agent = TopRank(8, 8, horizon=20000, seed=0)
    assert violations(agent, SAFE["CM"], np.arange(8), 100, seed=0) > 50
