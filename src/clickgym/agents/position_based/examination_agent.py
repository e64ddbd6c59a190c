"""The base class of agents for the position-based model with known examination probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.checks import check_examination
from ..agent import Seed
from ..compiled_agent import CompiledAgent, rates


class ExaminationAgent(CompiledAgent):
    """Base class of agents that know the examination probabilities of a position-based model."""

    click_models = "PBM"
    made_for_models = ("PBM",)

    requires = {"examination": "examination"}

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        seed: Seed,
        *,
        examination: ArrayLike,
        **hyperparameters: Any,
    ) -> None:
        examination = check_examination(examination, n_positions)
        super().__init__(n_items, n_positions, seed, examination=examination, **hyperparameters)

    def best(self) -> NDArray[np.int64]:
        estimates = rates(self.state.clicks, self.state.weight)
        return self._best_by(estimates, self.state.positions)

    def first_values(self) -> dict[str, Any]:
        return {"positions": np.argsort(-self.hyperparameters["examination"], kind="stable")}
