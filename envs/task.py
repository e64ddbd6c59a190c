"""Task of an environment: the click model of the next sessions and its best list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.spaces import MultiBinary
from numpy.typing import NDArray

from ..core.kernels import kernel


class Optimum(NamedTuple):
    """The round of a session that draws nothing, or the rounds of B streams."""

    optimum: NDArray[np.float64]  # (1,) or (B,) the expected reward of the best list


@kernel
def draw_nothing(parameters, reward, pool, current, rng, scratch):
    pass


@kernel
def move_nothing(streams, b, current):
    pass


class Task:
    """The task of a stationary click model, and the base class of tasks that draw a *round* (such
    as candidates, or a user's next state) for every session.

    A task shares no memory with other objects. Two of its fields may share an array, which is one
    object, so that a copy shares it, too. A vector environment keeps the rounds of its streams in
    separate arrays, and loads one after the other into the task.

    Attributes:
        observation_space: the space of what `observe` returns.
        model: the click model, or the stateful users, whose kernels simulate the sessions.
        parameters: the first argument of these kernels.
        code, cutoff: the kernels' reward and number of counted positions.
        pool: the data from which rounds are drawn; None if nothing is drawn.
        round: the state of the next session: a named tuple, whose field ``optimum`` ``(1,)`` is the
            expected reward of the best list.
        next_round: the kernel that draws the next round in the compiled loop,
            ``next_round(parameters, reward, pool, current, rng, scratch)``; ``current`` is the
            round, which it overwrites.
        advance: the same for ``step``; when a user leaves, it draws no other user before `reset`.
        load, store: the kernels that move the round of one stream into the task, and back.
        has_memory: whether users are stateful, and so leave: rounds then have a field ``ended``.

    Args:
        optimal_ranking, optimal_reward: ``(K,)`` the list against which regret is measured, and its
            expected reward.
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
        """Return the rounds of B streams: a named tuple of arrays with a row for each stream."""
        return Optimum(np.full(size, self.round.optimum[0]))

    def best(self, rounds: Any) -> NDArray[np.int64]:
        """Return the best lists ``(B, K)`` in the rounds of B streams; ``(1, K)`` in that of the
        task.
        """
        return np.tile(self._best, (len(rounds.optimum), 1))

    @property
    def optimal_ranking(self) -> NDArray[np.int64]:
        """``(K,)`` the best list of the current round."""
        return self.best(self.round)[0]

    @property
    def optimal_reward(self) -> float:
        """The expected reward of the best list of the current round."""
        return float(self.round.optimum[0])

    def observe(self, rounds: Any, clicks: NDArray[np.int8]) -> Any:
        """Return the observation after clicks ``(K,)`` or ``(B, K)``, before the next rounds."""
        return clicks
