"""The task of each session: that of one click model, or those of several that follow one
another.
"""

from __future__ import annotations

import bisect
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import MultiBinary
from numpy.typing import NDArray

from .session import sessions as play_sessions
from .task import AnyTask, Batch, Sessions, Unchanged, same_round


class Task:
    """A stationary click model together with what is asked of its lists: the reward, the cutoff,
    and the optimum; an `AnyTask`.

    Args:
        model: the click model.
        code, cutoff: the kernels' reward and number of counted positions.
        optimal_ranking, optimal_reward: the list against which regret is measured, and what it is
            worth.
    """

    pool = None
    next_round = staticmethod(same_round)

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
        self.optimal_ranking, self.optimal_reward = optimal_ranking, optimal_reward
        self.round = Unchanged(np.zeros((0, 0)), np.array([optimal_reward]))

    def batch(self, size: int) -> _SharedTask:
        """The same task on every stream."""
        return _SharedTask(self, size)


class _SharedTask(Batch):
    """One `Task` on B streams."""

    def __init__(self, task: Task, size: int) -> None:
        self._model = task.model
        self._arguments = (
            task.parameters,
            task.code,
            task.cutoff,
            np.empty(task.model.n_positions + 1),
        )
        self.optimal_reward = np.full(size, task.optimal_reward)
        self.optimal_ranking = np.tile(task.optimal_ranking, (size, 1))

    def play(self, sessions: Sessions) -> None:
        play_sessions(self._model)(*self._arguments, *sessions)

    def observe(self, clicks: NDArray[np.int8]) -> NDArray[np.int8]:
        return clicks


class Schedule:
    """The tasks that follow one another as users change; a single one unless they do. A `Course`.

    Args:
        tasks: that of each epoch.
        starts: the first step of each.
    """

    def __init__(self, tasks: Sequence[Task], starts: Sequence[int]) -> None:
        self._tasks = tasks
        self._ends = [*starts[1:], sys.maxsize]
        self.observation_space = MultiBinary(tasks[0].model.n_positions)

    def at(self, step: int) -> tuple[Task, int]:
        """The task of a step, and the first step after it that has another."""
        epoch = bisect.bisect_right(self._ends, step)
        return self._tasks[epoch], self._ends[epoch]


class DealtBatch(Batch):
    """Several tasks, dealt to the streams in turn: stream b has number b mod n.

    Args:
        tasks: one of each course. The courses share one clock, and each changes at its own steps.
        size: B.
    """

    def __init__(self, tasks: Sequence[AnyTask], size: int) -> None:
        self._size, n = size, len(tasks)
        self._groups: list[tuple[slice, Batch]] = [
            (slice(i, None, n), task.batch(len(range(i, size, n)))) for i, task in enumerate(tasks)
        ]
        self._gather()

    def draw(self, rng: np.random.Generator, only_ended: bool = False) -> None:
        """Draw in each group."""
        for streams, batch in self._groups:
            if self.ended is not None and batch.ended is not None:
                batch.ended[:] = self.ended[streams]
            batch.draw(rng, only_ended)
        self._gather()

    def begin_episode(self, rng: np.random.Generator) -> None:
        """Begin in each group."""
        for _, batch in self._groups:
            batch.begin_episode(rng)
        self._gather()

    def _gather(self) -> None:
        """Take over what the groups have drawn."""
        if self._groups[0][1].ended is not None:
            self.ended = self._together([batch.ended for _, batch in self._groups])
        self.optimal_reward = self._together([batch.optimal_reward for _, batch in self._groups])
        self.optimal_ranking = self._together([batch.optimal_ranking for _, batch in self._groups])

    def play(self, sessions: Sessions) -> None:
        """Play in each group."""
        for (
            streams,
            batch,
        ) in self._groups:  # contiguous copies: the kernels are compiled for no others
            parts: Any = [array[streams].copy() for array in sessions]
            batch.play(Sessions(*parts))
            arrays: Any = sessions
            for array, part in zip(arrays, parts, strict=True):
                array[streams] = part

    def observe(self, clicks: NDArray[np.int8]) -> Any:
        """What is observed in each group."""
        return self._together([batch.observe(clicks[streams]) for streams, batch in self._groups])

    def _together(self, parts: list[Any]) -> Any:
        """What the groups have, in the order of the streams."""
        if isinstance(parts[0], dict):
            return {key: self._together([part[key] for part in parts]) for key in parts[0]}
        whole = np.empty((self._size, *parts[0].shape[1:]), parts[0].dtype)
        for (streams, _), part in zip(self._groups, parts, strict=True):
            whole[streams] = part
        return whole
