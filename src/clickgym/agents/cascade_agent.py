"""The base class of agents that learn as in the cascade model: the agents for users who read from
the top, and those for such users who change.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_choice
from .agent import Seed
from .compiled_agent import CompiledAgent, rates
from .shared_kernels import FEEDBACK, Feedback


class CascadeAgent(CompiledAgent):
    """Base class of the cascade agents. Their argument ``feedback`` decides which positions count
    as examined.
    """

    click_models = "CM; others: see `feedback`"
    made_for_models = ("CM",)

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        seed: Seed,
        *,
        feedback: Feedback,
        **hyperparameters: Any,
    ) -> None:
        check_choice("feedback", feedback, FEEDBACK)
        super().__init__(n_items, n_positions, seed, feedback=feedback, **hyperparameters)

    def first_values(self) -> dict[str, Any]:
        return {"feedback": FEEDBACK.index(self.hyperparameters["feedback"])}

    def best(self) -> NDArray[np.int64]:
        return self._best_by(rates(self.state.clicks, self.state.examined))
