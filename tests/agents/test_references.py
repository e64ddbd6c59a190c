"""Tests of agents against their references, session by session. The references follow the papers'
pseudo-code in plain Python.
"""

from __future__ import annotations

import numpy as np
import pytest

from clickgym import agents
from clickgym.envs import CascadeModel, PositionBasedModel
from tests.helpers.registries import CLICK_AGENTS
from tests.reference_agents.following import follow
from tests.reference_agents.indices import VarianceReference
from tests.reference_agents.models import MODELS, make
from tests.reference_agents.registry import reference_of

pytestmark = pytest.mark.uncompiled


def test_weights_of_cascadeucbv():
    """The weight is 4 for the variance and 6 for the bias, as in the paper."""
    reference = VarianceReference(5, 3, variance=4.0, bias=6.0, feedback="last_click")
    follow(agents.CascadeUCBV(5, 3, seed=1), reference, MODELS["CM"], 400)


@pytest.mark.parametrize("users", ["CM", "UBM"])
@pytest.mark.parametrize("name", CLICK_AGENTS)
def test_every_agent(name, users):
    """Users click at most once in the CM, and often more than once in the UBM."""
    agent = make(name, MODELS[users], horizon=400)
    follow(agent, reference_of(agent), MODELS[users], 400)


IN_THE_CM = [
    *(
        (agents.CascadeDUCB, {"gamma": gamma, "epsilon": 0.3}, n)
        for gamma, n in ((0.5, 800), (0.9999, 800), (1e-4, 300), (1e-200, 300))
    ),
    *((agents.CascadeSWUCB, {"tau": tau, "epsilon": 0.8}, 250) for tau in (1, 2, 3, 7, 1000)),
    (agents.CascadeDUCB, {}, 1100),
    (agents.CascadeSWUCB, {}, 600),
]


@pytest.mark.parametrize(("kind", "arguments", "sessions"), IN_THE_CM)
def test_other_discounts_and_windows(kind, arguments, sessions):
    """τ = 1 uses only the last session, and τ = 1000 exceeds the run.

    CascadeDUCB stores its counts divided by γ^t and rescales them when γ^t falls below 1e-100:
    after 333 sessions at γ = 0.5, after 26 at γ = 1e-4. At γ = 1e-200, an item that is not examined
    again underflows and counts as never seen. If γ and τ are not given, they follow the session
    number as it doubles.
    """
    agent = kind(5, 3, seed=2, **arguments)
    follow(agent, reference_of(agent), MODELS["CM"], sessions)
    if kind is agents.CascadeDUCB:
        assert 1e-100 <= agent.state.scale[0] <= 1
    elif arguments:
        assert agent.state.window.shape == (arguments["tau"], 3), "memory is the window"


PBM, CM, DCM = MODELS["PBM"], MODELS["CM"], MODELS["DCM"]
SPREAD = PositionBasedModel(np.linspace(0.2, 0.9, 7), [1.0, 0.8])
LONGER = [
    (agents.RankedExp3, {"horizon": 1000, "gamma": 0.3}, PBM, 1500),
    (agents.UniRank, {}, SPREAD, 1000),
    (agents.GRAB, {}, PBM, 1200),
]


@pytest.mark.parametrize(("kind", "arguments", "model", "sessions"), LONGER)
def test_longer_runs(kind, arguments, model, sessions):
    """Weights grow large, and the confidence level of an unknown horizon rises."""
    agent = kind(model.n_items, model.n_positions, seed=1, **arguments)
    follow(agent, reference_of(agent), model, sessions)


SHARP = CascadeModel([0.9, 0.1, 0.5, 0.02, 0.7, 0.3, 0.03], n_positions=3)
BATCHED = {
    "CM": (CM, 10),
    "DCM": (DCM, 7),
    "eliminations": (SHARP, 10),
    "K = L": (PositionBasedModel([0.1, 0.95, 0.5, 0.3, 0.8], [1.0, 0.9, 0.8, 0.7, 0.6]), 5),
    "equal items": (PositionBasedModel([0.5] * 4, [1.0, 1.0]), 10),
    "certain clicks": (PositionBasedModel([1.0, 0.0, 1.0, 0.0, 1.0], [1.0] * 3), 10),
}
SORTED = {
    "PBM": (PBM, 0.1),
    "UBM": (MODELS["UBM"], 0.9),
    "L = 7": (SHARP, 0.5),
    # a large δ gives false relations, and so cycles
    "near ties": (PositionBasedModel([0.5, 0.5, 0.45, 0.5], [1.0, 0.9, 0.8, 0.7]), 0.99),
    # 10 clicks are enough; with c = 3.43 they are not
    "constant": (PositionBasedModel([0.0, 1.0], [1.0]), 0.072),
}


@pytest.mark.parametrize("name", BATCHED)
def test_batchrank(name):
    """Compares batches, stages, items, counts and clicks after each of 1800 sessions. The short
    horizon makes the stages short.
    """
    model, horizon = BATCHED[name]
    agent = agents.BatchRank(model.n_items, model.n_positions, horizon=horizon, seed=1)
    reference = reference_of(agent)
    follow(agent, reference, model, 1800)
    assert reference.b_max > 1 or reference.stage[1] > 0, "too few sessions to test anything"


@pytest.mark.parametrize("name", SORTED)
def test_toprank(name):
    """Compares the relation, the blocks, S and N after each of 900 sessions."""
    model, delta = SORTED[name]
    agent = agents.TopRank(model.n_items, model.n_positions, horizon=100, delta=delta, seed=1)
    reference = reference_of(agent)
    follow(agent, reference, model, 900)
    assert reference.better, "too few sessions to test anything"


@pytest.mark.parametrize(("n_items", "n_positions"), [(4, 4), (6, 4), (2, 2)])
def test_bubblerank_from_the_worst_list(n_items, n_positions):
    initial = list(range(n_items))
    agent = agents.BubbleRank(n_items, n_positions, initial=initial, horizon=3, seed=2)
    attraction, kappa = np.linspace(0.1, 0.9, n_items), np.linspace(1.0, 0.7, n_positions)
    reference = reference_of(agent)
    follow(agent, reference, PositionBasedModel(attraction, kappa), 1200, seed=5)
    assert reference.n_exchanges >= n_items - 1


def test_bubblerank_with_the_doubling_trick():
    """The base list returns to R_0 at time n + 1 for n = 2, 4, 8, ...; s and n are kept, and δ =
    n^-4 shrinks.
    """
    agent = agents.BubbleRank(4, 3, initial=[0, 1, 2, 3], seed=3)
    reference = reference_of(agent)
    follow(agent, reference, PositionBasedModel([0.0, 0.3, 0.6, 1.0], [1.0] * 3), 2100, seed=5)
    assert reference.n_exchanges > 5
    assert reference.estimate == 4096
