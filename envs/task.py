"""What an environment plays: the tasks of a course, and the sessions of its streams under a task.

An environment is built from users, and plays their *course*: which *task* is in force, what is
observed, and what changes from session to session. The sessions of B streams are a *batch*; an
environment of one stream is a batch of one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from ..core.kernels import kernel


class Sessions(NamedTuple):
    """A session of each of B streams: the lists that are shown, and what comes of them."""

    rankings: NDArray[np.int64]  # (B, K)
    uniforms: NDArray[np.float64]  # (B, K), one more column in a mixture
    clicks: NDArray[np.int8]  # (B, K), written, like those that follow
    examined: NDArray[np.int8]  # (B, K)
    realised: NDArray[np.float64]  # (B,)
    expectation: NDArray[np.float64]  # (B,)
    satisfied: NDArray[np.int64]  # (B,) where the user left satisfied; -1: nowhere


class Batch(ABC):
    """The sessions of the B streams of an environment under one task."""

    optimal_reward: NDArray[np.float64]
    """``(B,)`` of the lists to be shown next."""
    optimal_ranking: NDArray[np.int64]
    """``(B, K)`` as well."""
    ended: NDArray[np.bool_] | None = None
    """``(B,)`` whether the user of each stream has left for good, or was cut off, which the
    environment enters: what is drawn next is another's first session. None where users have no
    memory.
    """

    def draw(self, rng: np.random.Generator, only_ended: bool = False) -> None:  # noqa: B027 (often all stays as it is)
        """Draw what the next session of each stream brings, or of those whose users have left."""

    def begin_episode(self, rng: np.random.Generator) -> None:  # noqa: B027 (likewise)
        """Draw what an episode begins with, if the sessions do not just go on: other users, where
        they have a memory.
        """

    @abstractmethod
    def play(self, sessions: Sessions) -> None:
        """Play one session of each stream."""

    @abstractmethod
    def observe(self, clicks: NDArray[np.int8]) -> Any:
        """What is observed after these clicks."""


class AnyTask(Protocol):
    """What is asked of lists for some sessions: click model, reward, cutoff and optimum.

    Attributes:
        model: the stationary click model whose kernels play the sessions, or the users with a
            memory whose kernel does.
        parameters: their first argument.
        code, cutoff: the kernels' reward and number of counted positions.
        pool, round, next_round: what sessions bring, as the compiled loop sees it: drawn from,
            drawn last, and the kernel that draws.
    """

    model: Any
    parameters: Any
    code: int
    cutoff: int
    pool: Any
    round: Any
    next_round: Callable[..., None]

    def batch(self, size: int) -> Batch:
        """The task on some streams; a single stream goes on where the compiled loop stopped, and
        the other way round.
        """


class Course(Protocol):
    """The tasks of an environment, and the space of what is observed."""

    @property
    def observation_space(self) -> gym.Space[Any]: ...
    def at(self, step: int) -> tuple[Any, int]:
        """The task of a step, and the first step after it that has another."""


class Unchanged(NamedTuple):
    """What a session brings where nothing changes: as the compiled loop sees a contextual
    environment's `Round`.
    """

    features: NDArray[np.float64]  # (0, 0)
    optimum: NDArray[np.float64]  # (1,) the best list's expected reward


@kernel
def same_round(pool, drawn, parameters, rng, reward, scratch):  # type: ignore[no-untyped-def]
    pass


def per_stream(array: NDArray[Any], size: int) -> NDArray[Any]:
    """An array of a task for each of some streams, ``(size, ...)``; a single stream shares that of
    the task.
    """
    return array[None] if size == 1 else np.zeros((size, *array.shape), array.dtype)
