"""The base class of agents that learn as in the cascade model: the agents for users who read from
the top, and those for such users who change; and the positions that count as examined.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ...core.checks import check_choice
from ...core.kernels import kernel
from ..agent import Seed
from ..compiled_agent import CompiledAgent, rates

FIRST_CLICK, LAST_CLICK = 0, 1
Feedback = Literal["first_click", "last_click"]
FEEDBACK = get_args(Feedback)


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


@kernel
def examined_positions(clicks, feedback):
    """Return the number of positions that a cascade agent counts as examined: the positions down to
    the first or last click, or all positions if there is no click.
    """
    if feedback == FIRST_CLICK:
        for k in range(len(clicks)):
            if clicks[k] == 1:
                return k + 1
    else:
        for k in range(len(clicks) - 1, -1, -1):
            if clicks[k] == 1:
                return k + 1
    return len(clicks)
