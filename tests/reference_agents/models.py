"""A small click model of each class, and published agents for such models."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from clickgym import envs
from clickgym.agents import AGENTS
from tests.helpers.click_stories import make_model

ATTRACTION = [0.2, 0.7, 0.1, 0.5, 0.3]
MODELS: dict[str, envs.ClickModel] = {
    "CM": envs.CascadeModel(ATTRACTION, n_positions=3),
    "PBM": envs.PositionBasedModel(ATTRACTION, [0.9, 0.4, 0.6]),
    "DCM": envs.DependentClickModel(ATTRACTION, [0.6, 0.3, 0.8]),
    "UBM": envs.UserBrowsingModel(ATTRACTION, [[0.9, 0.0, 0.0], [0.6, 0.8, 0.0], [0.3, 0.5, 0.7]]),
    "DBN": envs.DynamicBayesianModel(ATTRACTION, [0.5, 0.3, 0.9, 0.6, 0.2], 0.9, n_positions=3),
    "CCM": envs.ClickChainModel(ATTRACTION, 0.9, 0.8, 0.3, n_positions=3),
    "TPBM": envs.TrustBiasModel(ATTRACTION, [0.9, 0.4, 0.6]),
}
"""A small model of every class of click models, whose items are never in order of attraction. A
class that is not listed gets the same attractions, and random values for its other parameters.
"""


_rng = np.random.default_rng(0)


def _probabilities(size: Any) -> Any:
    return ATTRACTION if size == len(ATTRACTION) else _rng.random(size)


for _short, _class in envs.CLICK_MODELS.items():
    MODELS.setdefault(_short, make_model(_class, 5, 3, _probabilities))


@cache
def _parameters(name: str) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(AGENTS[name]).parameters


def make(
    name: str,
    model: envs.ClickModel,
    *,
    horizon: int = 100,
    n_features: int = 2,
    seed: Any = 0,
    **arguments: Any,
) -> Any:
    """Create a published agent for a click model, with the arguments that the agent's constructor
    requires.
    """
    accepted = _parameters(name)
    known: dict[str, Any] = {"horizon": horizon, "n_features": n_features}
    if "ranking" in accepted:
        best = model.optimal_ranking()
        known["ranking"] = best if name == "Oracle" else best[::-1]
    known |= {"n_states": 2, "mean_sessions": 10, "click_rewards": np.ones((2, model.n_items))}
    known["examination"] = (
        model.examination
        if isinstance(model, envs.PositionBasedModel)
        else np.linspace(1.0, 0.5, model.n_positions)
    )
    if AGENTS[name].requires.get("examination") == "browsing":
        known["examination"] = np.tril(np.full(2 * (model.n_positions,), 0.7))
    arguments = {key: value for key, value in known.items() if key in accepted} | arguments
    return AGENTS[name](model.n_items, model.n_positions, seed=seed, **arguments)
