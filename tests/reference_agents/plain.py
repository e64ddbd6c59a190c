"""Kernels of the tests: CascadeKL-UCB by its definition, plainly but compiled; and many draws in
one call.
"""

from __future__ import annotations

import numpy as np

from clickgym.agents import CascadeKLUCB
from clickgym.agents.attraction_posterior import draw_posterior
from clickgym.agents.kernels import exploration, kl_upper, rank_by_index
from clickgym.agents.pbmhb import step_within
from clickgym.core.kernels import kernel


@kernel
def rank_plainly(state, rng, ranking):
    bound = exploration(state.t[0] + 1, state.c)
    for item in range(len(state.indices)):
        n = state.examined[item]
        state.indices[item] = kl_upper(state.clicks[item] / n, bound / n) if n > 0 else np.inf
    rank_by_index(state.indices, state.order, rng, len(ranking))
    for k in range(len(ranking)):
        ranking[k] = state.order[k]


class KLUCBPlain(CascadeKLUCB):
    """CascadeKL-UCB by its definition: all indices solved in every session."""

    rank_kernel = rank_plainly


@kernel
def draw_posteriors(state, item, rng, draws):
    for n in range(len(draws)):
        draws[n] = draw_posterior(state, item, rng)


@kernel
def draw_steps(rng, x, sigma, draws):
    for n in range(len(draws)):
        draws[n] = step_within(rng, x, sigma)
