"""Rules of a few lines that a trained policy must beat on the board of unseen queries, and the rule
*told*, its mark of 1.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
import polars
from numpy.typing import ArrayLike, NDArray

import clickgym
from clickgym.agents import CompiledAgent
from clickgym.agents.kernels import rank_by_draw, show
from clickgym.bench.unseen import CELLS, ENV, Cell, by_query
from clickgym.core.checks import check_at_least, check_horizon, probabilities
from clickgym.core.kernels import kernel
from clickgym.core.state import Floats, Ints
from clickgym.envs import ClickEnv
from clickgym.runner.config import run_seed
from clickgym.runner.make import make_env

LEAST = 0.05
"""The least second parameter of a posterior: displays with a small examination may have clicks."""


class CountState(NamedTuple):
    clicks: Annotated[Ints, "L"]
    displays: Annotated[Floats, "L"]  # each counts as the examination of its position
    worth: Annotated[Floats, "L"]
    order: Annotated[Ints, "L", range]  # the K items of most worth, then others
    sessions: Annotated[Ints, "1"]
    examination: Floats  # (K,) χ
    alpha: float
    beta: float
    noise: float
    horizon: float


@kernel
def posterior(state, item):
    """Return the parameters of an item's Beta distribution."""
    second = state.beta + state.displays[item] - state.clicks[item]
    return state.alpha + state.clicks[item], max(second, LEAST)


@kernel
def rank_by_mean(state, rng, ranking):
    """By posterior mean, plus noise whose size falls to 0 at the horizon."""
    left = state.noise * (1.0 - state.sessions[0] / state.horizon)
    for item in range(len(state.worth)):
        first, second = posterior(state, item)
        mean = first / (first + second)
        state.worth[item] = mean
        if left > 0.0:
            spread = math.sqrt(mean * (1.0 - mean) / (first + second + 1.0))
            state.worth[item] += left * spread * rng.standard_normal()
    rank_by_draw(state.worth, state.order, rng, len(ranking))
    show(state.order, ranking)


@kernel
def rank_by_sample(state, rng, ranking):
    for item in range(len(state.worth)):
        first, second = posterior(state, item)
        state.worth[item] = rng.beta(first, second)
    rank_by_draw(state.worth, state.order, rng, len(ranking))
    show(state.order, ranking)


@kernel
def count(state, ranking, clicks):
    state.sessions[0] += 1
    for k in range(len(ranking)):
        if clicks[k] >= 0:
            state.clicks[ranking[k]] += clicks[k]
            state.displays[ranking[k]] += state.examination[k]


class Greedy(CompiledAgent):
    """The rule *hand, greedy*: show the items of the largest posterior mean, the best first.

    A display at position k counts as χ_k of a display. The attraction of each item has the
    posterior Beta(α + clicks, β + displays - clicks). Equal items are in random order.

    Args:
        n_items, n_positions: L and K.
        examination: ``(K,)`` χ, which the agents of the board are told: the mean of the training
            split.
        alpha, beta: of the prior.
        noise: how many standard deviations of the posterior a normal draw adds to each mean in the
            first session; they fall linearly to 0 at the horizon.
        horizon: T; needed only with noise.
        seed: of the agent's own generator.
    """

    paper = "a rule of a few lines"
    click_models = "PBM"
    requires = {"examination": "examination"}
    state_type, rank_kernel, update_kernel = CountState, rank_by_mean, count

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        examination: ArrayLike,
        alpha: float = 1.0,
        beta: float = 1.0,
        noise: float = 0.0,
        horizon: int = 1,
        seed: Any = None,
    ) -> None:
        super().__init__(
            n_items,
            n_positions,
            seed,
            examination=probabilities("examination", examination, (n_positions,)),
            alpha=check_at_least("alpha", alpha, 0, strictly=True),
            beta=check_at_least("beta", beta, 0, strictly=True),
            noise=check_at_least("noise", noise, 0),
            horizon=float(check_horizon(horizon)),
        )

    def best(self) -> NDArray[np.int64]:
        first = self.state.alpha + self.state.clicks
        second = self.state.beta + self.state.displays - self.state.clicks
        return self._best_by(first / (first + np.maximum(second, LEAST)))


class Sampling(Greedy):
    """The rule *hand, sampling*: draw each item's attraction from its posterior, and show the
    largest (Thompson sampling). Its prior has the mean and variance of all items of the training
    split.

    Args:
        n_items, n_positions, examination, alpha, beta, seed: as in `Greedy`.
    """

    rank_kernel = rank_by_sample

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        examination: ArrayLike,
        alpha: float = 0.63,
        beta: float = 2.78,
        seed: Any = None,
    ) -> None:
        super().__init__(
            n_items, n_positions, examination=examination, alpha=alpha, beta=beta, seed=seed
        )


def prior_of(attraction: ArrayLike) -> tuple[float, float]:
    """Return the parameters of the Beta distribution with the mean and variance of attractions.

    Example:
        >>> prior_of([0.25, 0.75])
        (1.5, 1.5)
    """
    values = np.asarray(attraction, float)
    mean, variance = values.mean(), values.var()
    size = float(np.clip(mean * (1.0 - mean) / variance - 1.0, 0.5, 1e4))
    return float(mean) * size, float(1.0 - mean) * size


def told(env: ClickEnv, query: int, cell: Cell, seed: int) -> Greedy:
    """Return the agent *told* for an episode of a query: it knows the examination of this query,
    and a prior with the mean and variance of its items. It is an attainable mark, and no bound.
    """
    users = env.unwrapped.model.models[query]
    alpha, beta = prior_of(users.attraction)
    return Greedy(
        users.n_items,
        users.n_positions,
        examination=users.parameters.examination,
        alpha=alpha,
        beta=beta,
        noise=cell.noise,
        horizon=cell.horizon,
        seed=seed,
    )


def play_told() -> polars.DataFrame:
    """Play the mark *told*, as `clickgym.bench.unseen.play` plays an agent; the same episodes."""
    tables = []
    for cell in CELLS:
        env: Any = make_env(ENV, cell.instance)
        models, rows = env.unwrapped.model.models, []
        for run in range(cell.runs):
            seed, query = run_seed(0, cell.instance, run, len(models)), run % len(models)
            agent = told(env, query, cell, seed)
            result = clickgym.run(agent, env, cell.horizon, seed=seed, checkpoints=[cell.horizon])
            rows.append((query, float(result.regret[-1])))
        tables.append(by_query(cell, polars.DataFrame(rows, ["query", "regret"], orient="row")))
    return polars.concat(tables)
