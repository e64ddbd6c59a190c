"""Time of a LinUCB round beside the arithmetic that it cannot do without, L = 20 candidates, K = 5 positions, d features.

The floor is a bare compiled loop over ``xᵀA⁻¹x`` of each candidate and K rank-one updates of ``A⁻¹``, in the faster of two
forms: plain loops, or products by BLAS. The round is that of the agent (indices, the K largest with random ties, K updates of
``A⁻¹``, ``A`` and b, θ); the session also draws the candidates, their best list, and the clicks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numba
import numpy as np
from report import publish, table

import clickgym
from clickgym.agents import UBMLinUCB
from clickgym.core.kernels import specialise

L, K = 20, 5
FEATURES = (10, 15, 20, 25)
ROUNDS = 20_000
REPEATS = 5


@numba.njit
def floor_by_loops(rounds, features, inverse, product, values):  # type: ignore[no-untyped-def]
    n, d = features.shape
    for _ in range(rounds):
        for a in range(n):
            multiply(inverse, features[a], product)
            values[a] = dot(product, features[a])
        for k in range(K):
            multiply(inverse, features[k], product)
            scale = 1.0 / (1.0 + dot(product, features[k]))
            for i in range(d):
                scaled = scale * product[i]
                for j in range(d):
                    inverse[i, j] -= scaled * product[j]


@numba.njit
def floor_by_blas(rounds, features, inverse, products, values):  # type: ignore[no-untyped-def]
    n, d = features.shape
    for _ in range(rounds):
        np.dot(features, inverse, products)
        for a in range(n):
            values[a] = dot(products[a], features[a])
        for k in range(K):
            product = products[k]
            np.dot(inverse, features[k], product)
            scale = 1.0 / (1.0 + dot(product, features[k]))
            for i in range(d):
                scaled = scale * product[i]
                for j in range(d):
                    inverse[i, j] -= scaled * product[j]


@numba.njit
def multiply(matrix, x, product):  # type: ignore[no-untyped-def]
    for j in range(len(x)):
        product[j] = 0.0
    for i in range(len(x)):
        for j in range(len(x)):
            product[j] += x[i] * matrix[i, j]


@numba.njit
def dot(x, y):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(len(x)):
        total += x[i] * y[i]
    return total


# Left open in the templates below; `specialise` binds them to the agent's kernels.
rank: Callable[..., None]
update: Callable[..., None]
rounds: Callable[..., None]


def _rounds(n_rounds, state, rng, features, ranking, clicks):  # type: ignore[no-untyped-def]
    for _ in range(n_rounds):
        rank(state, rng, features, ranking)  # noqa: F821
        update(state, features, ranking, clicks)  # noqa: F821


def _play(n_rounds, state, rng, features, ranking, clicks):  # type: ignore[no-untyped-def]
    rounds(n_rounds, state, rng, features, ranking, clicks)  # noqa: F821


def works_of(d: int) -> dict[str, Callable[[], Any]]:
    """What is measured with d features: each call plays `ROUNDS` rounds."""
    env = gym.make("ContextualUBMRank-v0", instance=f"linear:n_items={L},n_positions={K},n_features={d},seed=0")
    observation, _ = env.reset(seed=0)
    features, clicks = observation["features"], np.array([1, 0, 0, 1, 0], np.int8)
    agent: Any = clickgym.make_agent("UBMLinUCB", env, seed=0)
    whole = clickgym.make_agent("UBMLinUCB", env, seed=0)
    loop = specialise(_rounds, rank=UBMLinUCB.rank_kernel, update=UBMLinUCB.update_kernel)
    play = specialise(_play, rounds=loop, counted=True)
    values = np.empty(L)
    return {
        "loops": partial(floor_by_loops, ROUNDS, features, np.eye(d), np.empty(d), values),
        "blas": partial(floor_by_blas, ROUNDS, features, np.eye(d), np.empty((L, d)), values),
        "round": partial(play, ROUNDS, agent.state, agent.rng, features, agent.ranking, clicks),
        "session": partial(clickgym.run, whole, env, ROUNDS, checkpoints=[ROUNDS]),
    }


def main() -> None:
    rows = []
    for d in FEATURES:
        works = works_of(d)
        for work in works.values():
            work()  # compile
        seconds = dict.fromkeys(works, float("inf"))
        for _ in range(REPEATS):
            for name, work in works.items():
                start = time.process_time()
                work()
                seconds[name] = min(seconds[name], (time.process_time() - start) / ROUNDS)
        floor = min(seconds["loops"], seconds["blas"])
        cells = [f"{seconds[name] * 1e9:.0f} ns  {seconds[name] / floor:.1f}×" for name in ("round", "session")]
        rows.append([str(d), f"{floor * 1e9:.0f} ns", *cells])
    publish(table(["d", "floor", "round of UBMLinUCB", "session in ContextualUBMRank-v0"], rows))


if __name__ == "__main__":
    main()
