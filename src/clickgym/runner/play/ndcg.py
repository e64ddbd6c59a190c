"""NDCG of the lists that are shown: the gain of an item is that of the users' model, else its
attraction.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.kernels import kernel
from ...core.sums import weighted_sums
from ...envs import ClickEnv, ClickVectorEnv


class GainContext(NamedTuple):
    gain: NDArray[np.float64]  # (L,) attraction; with candidates (N,) the gain of each item
    discount: NDArray[np.float64]  # (m,) 1 / log2(k + 1); of items that stay over the ideal
    items: NDArray[np.int64]  # (L,) the index of each candidate's gain; (0,): items stay
    largest: NDArray[np.float64]  # (m,) working memory

    def before_step(self) -> GainContext:
        """The context of the coming session, which stays when the state is overwritten."""
        if not len(self.items):
            return self
        return self._replace(gain=self.gain[self.items], items=np.arange(len(self.items)))


@kernel
def ideal_gain(context):  # type: ignore[no-untyped-def]
    """The discounted gain of the candidates with the largest gains, in falling order."""
    largest, size = context.largest, len(context.largest)
    largest[:] = 0.0
    for a in range(len(context.items)):
        gain, place = context.gain[context.items[a]], size
        while place > 0 and largest[place - 1] < gain:
            place -= 1
            if place + 1 < size:
                largest[place + 1] = largest[place]
        if place < size:
            largest[place] = gain
    total = 0.0
    for k in range(size):
        total += largest[k] * context.discount[k]
    return total


@kernel
def ndcg(context, ranking, clicks, expectation):  # type: ignore[no-untyped-def]
    total = 0.0
    if len(context.items) == 0:
        for k in range(len(context.discount)):
            total += context.gain[ranking[k]] * context.discount[k]
        return total
    for k in range(len(context.discount)):
        total += context.gain[context.items[ranking[k]]] * context.discount[k]
    ideal = ideal_gain(context)
    return total / ideal if ideal > 0.0 else 0.0


def gain_context(env: ClickEnv | ClickVectorEnv, b: int = 0, k: int = 5) -> GainContext:
    """The gains and discounts of NDCG of the first k positions."""
    discount = 1.0 / np.log2(np.arange(2, min(k, env.model.n_positions) + 2))
    largest = np.zeros(len(discount))
    if not env.model.are_alike:
        gain, items = env.task.gains(env.state, b)
        return GainContext(gain, discount, items, largest)
    if "attraction" not in env.task.model.shapes:
        raise ValueError(f"ndcg ranks by attraction, which {env.task.model} does not have")
    gain = env.task.model.attraction
    ideal = float(weighted_sums(np.sort(gain)[::-1][: len(discount)], discount))
    relative = discount / ideal if ideal > 0 else np.zeros(len(discount))
    return GainContext(gain, relative, np.zeros(0, np.int64), largest)
