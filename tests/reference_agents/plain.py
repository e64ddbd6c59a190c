"""Kernels of the tests: many draws in one call."""

from __future__ import annotations

from clickgym.agents.attraction_posterior import draw_posterior
from clickgym.agents.pbmhb import step_within
from clickgym.core.kernels import kernel


@kernel
def draw_posteriors(state, item, rng, draws):
    for n in range(len(draws)):
        draws[n] = draw_posterior(state, item, rng)


@kernel
def draw_steps(rng, x, sigma, draws):
    for n in range(len(draws)):
        draws[n] = step_within(rng, x, sigma)
