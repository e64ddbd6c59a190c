"""Task of an environment: whose clicks the next lists get, and which list would be best."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.spaces import MultiBinary
from numpy.typing import NDArray

from ..core.kernels import kernel


class Optimum(NamedTuple):
    """The round of a session for which nothing is drawn, or the rounds of B streams."""

    optimum: NDArray[np.float64]  # (1,) or (B,) the expected reward of the best list


@kernel
def draw_nothing(parameters, reward, pool, drawn, rng, scratch):
    pass


@kernel
def move_nothing(streams, b, drawn):
    pass


class Task:
    """What is asked of the next lists, of a stationary click model. The base class of tasks that
    draw something for every session.

    All memory of a task is its own: arrays that two of its fields share are one object, so that a
    copy shares them, too. A vector environment has the rounds of its streams in arrays of its own,
    and loads one after the other into the task.

    Attributes:
        observation_space: of what `observe` returns.
        model: the click model whose kernels play the sessions, or the stateful users.
        parameters: the first argument of these kernels.
        code, cutoff: the kernels' reward and number of counted positions.
        pool: what rounds are drawn from; None where nothing is drawn.
        round: what the next session meets: a named tuple, whose field ``optimum`` ``(1,)`` is the
            expected reward of the best list.
        next_round: the kernel with which the compiled loop draws the next round,
            ``next_round(parameters, reward, pool, drawn, rng, scratch)``; ``drawn`` is the round.
        advance: the same for ``step``: where a user leaves, it draws no other before the reset.
        load, store: the kernels that move the round of one stream into the task, and back.
        has_memory: whether users have one, so that they leave: then rounds have a field ``ended``.

    Args:
        optimal_ranking, optimal_reward: the list against which regret is measured, and what it is
            worth.
    """

    pool: Any = None
    has_memory = False
    next_round: Callable[..., None] = staticmethod(draw_nothing)
    advance: Callable[..., None] = staticmethod(draw_nothing)
    load: Callable[..., None] = staticmethod(move_nothing)
    store: Callable[..., None] = staticmethod(move_nothing)

    def __init__(
        self,
        model: Any,
        code: int,
        cutoff: int,
        optimal_ranking: NDArray[np.int64],
        optimal_reward: float,
    ) -> None:
        self.model, self.parameters = model, model.parameters
        self.code, self.cutoff = code, cutoff
        self.observation_space: gym.Space[Any] = MultiBinary(model.n_positions)
        self._best = np.array(optimal_ranking)
        self.round: Any = Optimum(np.array([optimal_reward]))

    def rounds(self, size: int) -> Any:
        """The rounds of B streams: a named tuple of arrays with a row for each of them."""
        return Optimum(np.full(size, self.round.optimum[0]))

    def best(self, rounds: Any) -> NDArray[np.int64]:
        """The best lists ``(B, K)`` in rounds of B streams; ``(1, K)`` in the round of the task."""
        return np.tile(self._best, (len(rounds.optimum), 1))

    @property
    def optimal_ranking(self) -> NDArray[np.int64]:
        """``(K,)`` the best list in the present round."""
        return self.best(self.round)[0]

    @property
    def optimal_reward(self) -> float:
        """Its expected reward."""
        return float(self.round.optimum[0])

    def observe(self, rounds: Any, clicks: NDArray[np.int8]) -> Any:
        """What is observed after clicks, ``(K,)`` or ``(B, K)``, before the next rounds."""
        return clicks
