"""Time of a session of the learned rankers by L candidates, d features and horizon T, on judged documents drawn at random.

`PairRank` fits its model to all pairs so far, so its time grows with T; ``growth`` is its answer, also of networks.
K = 10, informational users.
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np
from report import publish, seconds_per_session, side_by_side

from clickgym.envs import ClickEnv, GradedModel

SIZES = ((10, 20, 1_000), (10, 20, 10_000), (100, 20, 1_000), (10, 300, 1_000))  # L, d, T
AGENTS = (
    "PDGD", "PairRank", "PairRank:growth=0.01", "DBGD", "MGD", "MGD:leaving=probabilistic", "COLTR", "NeuralLinearTS",
    "NeuralGreedy", "OLRankNet:growth=0.1", "OLLambdaRank:growth=0.1",
)  # fmt: skip


def documents(n_items: int, n_features: int) -> gym.Env:
    """Queries of as many documents, whose grades follow from their features."""
    rng = np.random.default_rng(0)
    items = rng.random((20 * n_items, n_features)) / np.sqrt(n_features)
    latent = (items - items.mean(axis=0)) @ rng.normal(size=n_features)
    grades = np.digitize(latent, np.quantile(latent, [0.5, 0.75, 0.9, 0.97])).reshape(20, n_items)
    candidates = np.arange(20 * n_items).reshape(20, n_items)
    given = {"candidates": candidates.tolist(), "grades": grades.tolist(), "n_items": n_items, "n_positions": 10}
    return ClickEnv(GradedModel("informational", items=items, **given))


def main() -> None:
    columns = {}
    for n_items, n_features, horizon in SIZES:
        env, cells = documents(n_items, n_features), {}
        for name in AGENTS:
            seconds_per_session(env, name, horizon, 50)  # compile, and load torch
            cells[name] = f"{seconds_per_session(env, name, horizon) * 1e6:,.1f} µs"
        columns[f"L={n_items}, d={n_features}, T={horizon:,}"] = cells
    publish(side_by_side("agent", columns))


if __name__ == "__main__":
    main()
