"""CascadeKL-UCB, dcmKL-UCB and RankedKL-UCB: lists bit for bit those of the plain definition, in
which all indices are solved in every session, and ties of equal counts.
"""

from __future__ import annotations

from functools import cache

import gymnasium as gym
import numpy as np
import pytest
from reference_agents import KLUCBPlain
from slow import slow

import clickgym
from clickgym.agents import CascadeKLUCB, RankedKLUCB
from clickgym.agents.kernels import exploration, kl_upper, rank_by_index
from clickgym.agents.ranked_bandits import rank_by_choices
from clickgym.core.kernels import entry, kernel
from clickgym.envs import CascadeModel, PositionBasedModel


@kernel
def choose_plainly(state, k, rng):
    bound = exploration(state.t[0] + 1, 3.0)
    for item in range(state.indices.shape[1]):
        n = state.examined[k, item]
        state.indices[k, item] = kl_upper(state.clicks[k, item] / n, bound / n) if n > 0 else np.inf
    rank_by_index(state.indices[k], state.order[k], rng, 1)
    return state.order[k, 0]


class RankedKLUCBPlain(RankedKLUCB):
    """RankedKL-UCB by its definition."""

    rank_kernel = rank_by_choices(choose_plainly)


@cache
def make_play(rank_a, rank_b, update, sample):
    """A kernel that plays two agents on the same clicks for n sessions; returns how many passed
    before their lists differed.
    """

    @kernel
    def play(parameters, rng, n, uniforms, clicks, examined, a, rng_a, list_a, b, rng_b, list_b):
        for t in range(n):
            rank_a(a, rng_a, list_a)
            rank_b(b, rng_b, list_b)
            for k in range(len(list_a)):
                if list_a[k] != list_b[k]:
                    return t
                uniforms[k] = rng.random()
            sample(parameters, list_a, uniforms, clicks, examined)
            update(a, list_a, clicks)
            update(b, list_a, clicks)
        return n

    return play


def sessions_in_agreement(agents, model, n, seed):
    """How many sessions pass before the lists of two agents differ; their generators must end in
    the same state.
    """
    a, b = agents
    play = entry(make_play(a.rank_kernel, b.rank_kernel, a.update_kernel, model.sample_kernel))
    k, rng = model.n_positions, np.random.default_rng(seed + 1000)
    arrays = np.empty(k), *np.zeros((2, k), np.int8)
    pair = a.state, a.rng, a.ranking, b.state, b.rng, b.ranking
    played = play(model.parameters, rng, n, *arrays, *pair)
    assert played < n or a.rng.bit_generator.state == b.rng.bit_generator.state
    return played


def pair_of(name, model, seed, **others):
    """The agent, and its plain definition."""
    kinds = (RankedKLUCB, RankedKLUCBPlain) if name == "RankedKLUCB" else (CascadeKLUCB, KLUCBPlain)
    return [kind(model.n_items, model.n_positions, seed=seed, **others) for kind in kinds]


# ------------------------------------------------------------------------------------ small models

SMALL = {
    "usual": CascadeModel([0.31, 0.02, 0.55, 0.12, 0.4, 0.08, 0.25, 0.05, 0.17, 0.01], 5),
    "PBM": PositionBasedModel([0.4, 0.3, 0.5, 0.2, 0.35, 0.1, 0.6], [1.0, 0.75, 0.56, 0.42]),
    "tiny": CascadeModel([1e-4, 2e-5, 3e-4, 1e-6, 0.0], n_positions=2),
    "near one": PositionBasedModel([1 - 1e-4, 1 - 2e-5, 1 - 1e-6, 0.999], [1.0, 1.0]),
    "all 1": PositionBasedModel([1.0, 1.0, 1.0], [1.0, 1.0]),
}


@pytest.mark.parametrize(
    ("name", "n", "seed"),
    [*((name, 100_000, 1) for name in SMALL), *slow(*((name, 3_000_000, 2) for name in SMALL))],
)
def test_lists_in_small_models(name, n, seed):
    agents = pair_of("CascadeKLUCB", SMALL[name], seed)
    assert sessions_in_agreement(agents, SMALL[name], n, seed) == n


def test_lists_in_random_small_models():
    """300 short runs with random sizes and coarse attractions, where ties and early sessions are
    most of the run.
    """
    rng = np.random.default_rng(7)
    for seed in range(300):
        n_items = int(rng.integers(1, 7))
        n_positions = int(rng.integers(1, n_items + 1))
        model = CascadeModel(rng.choice([0.0, 0.01, 0.3, 0.3, 0.7, 1.0], n_items), n_positions)
        feedback = ["first_click", "last_click"][seed % 2]
        agents = pair_of("CascadeKLUCB", model, seed, feedback=feedback)
        assert sessions_in_agreement(agents, model, 1000, seed) == 1000, (model.to_dict(), seed)


@pytest.mark.parametrize("name", ["all 1", *slow("usual", "PBM")])
def test_lists_of_ranked_bandits(name):
    agents = pair_of("RankedKLUCB", SMALL[name], 5)
    assert sessions_in_agreement(agents, SMALL[name], 40_000, 5) == 40_000


# ---------------------------------------------------------------------------------------- positions


def test_dcm_klucb_is_told_where_sessions_end():
    """The best items come to the positions where a click most likely ends the session, so regret
    in satisfied users is less than from top to bottom; other users do not have this order.
    """
    users = {"attraction": [0.5, 0.3, 0.2, 0.1], "termination": [0.1, 0.9, 0.5]}
    env = gym.make("DCMRank-v0", **users, reward="satisfaction")
    assert clickgym.make_agent("DCMKLUCB", env).filled_in["position_order"].tolist() == [1, 2, 0]
    from_top = clickgym.make_agent("DCMKLUCB", env, position_order=[0, 1, 2])
    lost = [
        clickgym.run(agent, env, 3000, seed=0, engine="python").regret[-1]
        for agent in ("DCMKLUCB", from_top)
    ]
    assert lost[0] < 0.5 * lost[1]
    assert "position_order" not in clickgym.make_agent("DCMKLUCB", gym.make("CMRank-v0")).filled_in
