"""The task of each session: that of one click model, or those of several that follow one another.

An environment is built from users, and plays their *course*: which *task* is in force, what is observed, and what changes from
session to session. Other kinds of users bring a course of their own, as contextual ones do.
"""

from __future__ import annotations

import bisect
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import gymnasium as gym
import numpy as np
from gymnasium.spaces import MultiBinary
from numpy.typing import ArrayLike, NDArray

from ..core.kernels import cause, inner
from .session import sessions
from .spaces import named_ranking

if TYPE_CHECKING:
    from .click_model import ClickModel


class Batch(Protocol):
    """The sessions of the B streams of a vector environment under one task."""

    optimal_reward: NDArray[np.float64]
    """``(B,)`` of the lists to be shown next."""
    optimal_ranking: NDArray[np.int64]
    """``(B, K)`` as well."""
    ended: NDArray[np.bool_] | None
    """``(B,)`` whether the user of each stream has left for good, or was cut off, which the environment enters: what is drawn
    next is another's first session. None where users have no memory."""

    def draw(self, rng: np.random.Generator, only_ended: bool = False) -> None:
        """Draw what the next session of each stream brings, or of those whose users have left."""

    def begin_episode(self, rng: np.random.Generator) -> None:
        """Draw what an episode begins with, if the sessions do not just go on: other users, where they have a memory."""

    def play(
        self,
        rankings: NDArray[np.int64],
        uniforms: NDArray[np.float64],
        clicks: NDArray[np.int8],
        examined: NDArray[np.int8],
        realised: NDArray[np.float64],
        expectation: NDArray[np.float64],
    ) -> None:
        """Play one session of each stream; the last four are written."""

    def observe(self, clicks: NDArray[np.int8]) -> Any:
        """What is observed after these clicks."""


class AnyTask(Protocol):
    """What is asked of lists for some sessions: click model, reward, cutoff and optimum.

    Attributes:
        model: the stationary click model whose kernels play the sessions, or the users with a memory whose kernel does.
        parameters: their first argument.
        code, cutoff: the kernels' reward and number of counted positions.
        optimal_ranking, optimal_reward: of the next session.
        pool, round, next_round: what sessions bring, as the compiled loop sees it: drawn from, drawn last, and the kernel that
            draws.
        ended: whether the user has left for good, so that the environment must be reset.
    """

    model: Any
    parameters: Any
    code: int
    cutoff: int
    pool: Any
    round: Any
    next_round: Callable[..., None]

    @property
    def optimal_ranking(self) -> NDArray[np.int64]: ...
    @property
    def optimal_reward(self) -> float: ...
    @property
    def ended(self) -> bool: ...
    def draw(self, rng: np.random.Generator) -> None:
        """Draw what the next session brings."""

    def begin_episode(self, rng: np.random.Generator) -> None:
        """Draw what an episode begins with, if the sessions do not just go on: another user, where he has a memory."""

    def observe(self, clicks: NDArray[np.int8]) -> Any:
        """What is observed after these clicks."""

    def batch(self, size: int) -> Batch:
        """The same for the streams of a vector environment."""


class Course(Protocol):
    """The tasks of an environment, and the space of what is observed."""

    @property
    def observation_space(self) -> gym.Space[Any]: ...
    def at(self, step: int) -> tuple[Any, int]:
        """The task of a step, and the first step after it that has another."""


class Unchanged(NamedTuple):
    """What a session brings where nothing changes: as the compiled loop sees a contextual environment's `Round`."""

    features: NDArray[np.float64]  # (0, 0)
    optimum: NDArray[np.float64]  # (1,) the best list's expected reward


@inner
def same_round(pool, drawn, parameters, rng, reward, scratch):  # type: ignore[no-untyped-def]
    pass


class Task:
    """A stationary click model together with what is asked of its lists: the reward, the cutoff, and the optimum; an `AnyTask`.

    Args:
        model: the click model.
        reward, cutoff, reference: as in `ClickEnv`.
    """

    pool = None
    next_round = staticmethod(same_round)
    ended = False

    def __init__(self, model: ClickModel, reward: str, cutoff: int | None, reference: ArrayLike | None) -> None:
        self.model, self.parameters = model, model.parameters
        self.code, self.cutoff = model.check_reward(reward, cutoff)
        try:
            self.optimal_ranking = (
                model.optimal_ranking(reward, cutoff)
                if reference is None
                else named_ranking("reference", reference, model.n_items, model.n_positions)
            )
            self.optimal_reward = model.expected_reward(self.optimal_ranking, reward, cutoff)
        except (ArithmeticError, LookupError) as error:
            raise ValueError(f"the best reward of a {type(model).__name__} cannot be computed: {cause(error)}") from error
        self.round = Unchanged(np.zeros((0, 0)), np.array([self.optimal_reward]))

    def draw(self, rng: np.random.Generator) -> None:
        """Nothing: every session is like the last."""

    def begin_episode(self, rng: np.random.Generator) -> None:
        """Nothing: the sessions go on."""

    def observe(self, clicks: NDArray[np.int8]) -> NDArray[np.int8]:
        """The clicks themselves."""
        return clicks

    def batch(self, size: int) -> _SharedTask:
        """The same task on every stream."""
        return _SharedTask(self, size)


class _SharedTask:
    """One `Task` on B streams."""

    ended = None

    def __init__(self, task: Task, size: int) -> None:
        self._task = task
        self._sessions = sessions(task.model)
        self._scratch = np.empty(task.model.n_positions + 1)
        self.optimal_reward = np.full(size, task.optimal_reward)
        self.optimal_ranking = np.tile(task.optimal_ranking, (size, 1))

    def draw(self, rng: np.random.Generator, only_ended: bool = False) -> None:
        pass

    def begin_episode(self, rng: np.random.Generator) -> None:
        pass

    def play(
        self,
        rankings: NDArray[np.int64],
        uniforms: NDArray[np.float64],
        clicks: NDArray[np.int8],
        examined: NDArray[np.int8],
        realised: NDArray[np.float64],
        expectation: NDArray[np.float64],
    ) -> None:
        task = self._task
        self._sessions(
            task.parameters, rankings, uniforms, clicks, examined, task.code, task.cutoff, self._scratch, realised, expectation
        )

    def observe(self, clicks: NDArray[np.int8]) -> NDArray[np.int8]:
        return clicks


class Schedule:
    """The tasks that follow one another as users change; a single one unless they do. A `Course`.

    Args:
        models: the click model of each epoch.
        starts: the first step of each.
        reward, cutoff, reference: as in `ClickEnv`.
    """

    def __init__(
        self,
        models: list[ClickModel],
        starts: list[int],
        reward: str,
        cutoff: int | None,
        reference: ArrayLike | None,
    ) -> None:
        self._tasks = [Task(model, reward, cutoff, reference) for model in models]
        self._ends = [*starts[1:], sys.maxsize]
        self.observation_space = MultiBinary(models[0].n_positions)

    def at(self, step: int) -> tuple[Task, int]:
        """The task of a step, and the first step after it that has another."""
        epoch = bisect.bisect_right(self._ends, step)
        return self._tasks[epoch], self._ends[epoch]


class Dealt:
    """Several courses, dealt to the streams of a vector environment in turn: stream b follows the course b mod n. A `Course`.

    They share one clock, and each changes at its own steps.

    Args:
        courses: those of users of one size.

    Raises:
        ValueError: on different observation spaces.
    """

    def __init__(self, courses: Sequence[Course]) -> None:
        self._courses = courses
        self.observation_space = courses[0].observation_space
        for n, course in enumerate(courses):
            if course.observation_space != self.observation_space:
                raise ValueError(
                    f"the instances of one vector environment must be observed alike, but number {n} shows "
                    f"{course.observation_space}, and the first {self.observation_space}"
                )

    def at(self, step: int) -> tuple[DealtTask, int]:
        """The tasks of a step, and the first step after it at which one of them changes."""
        tasks, ends = zip(*(course.at(step) for course in self._courses), strict=True)
        return DealtTask(tasks), min(ends)


class DealtTask(NamedTuple):
    """The tasks of a step, one of each course."""

    tasks: Sequence[AnyTask]

    def batch(self, size: int) -> _DealtBatch:
        return _DealtBatch(self.tasks, size)


class _DealtBatch:
    """Several tasks, each on the streams that it was dealt to; a `Batch`."""

    optimal_reward: NDArray[np.float64]
    optimal_ranking: NDArray[np.int64]

    def __init__(self, tasks: Sequence[AnyTask], size: int) -> None:
        self._size, n = size, len(tasks)
        self.ended: NDArray[np.bool_] | None = None
        self._groups = [(slice(i, None, n), task.batch(len(range(i, size, n)))) for i, task in enumerate(tasks)]
        self._gather()

    def draw(self, rng: np.random.Generator, only_ended: bool = False) -> None:
        for streams, batch in self._groups:
            if self.ended is not None and batch.ended is not None:
                batch.ended[:] = self.ended[streams]
            batch.draw(rng, only_ended)
        self._gather()

    def begin_episode(self, rng: np.random.Generator) -> None:
        for _, batch in self._groups:
            batch.begin_episode(rng)
        self._gather()

    def _gather(self) -> None:
        """Take over what the groups have drawn."""
        if self._groups[0][1].ended is not None:
            self.ended = self._together([batch.ended for _, batch in self._groups])
        self.optimal_reward = self._together([batch.optimal_reward for _, batch in self._groups])
        self.optimal_ranking = self._together([batch.optimal_ranking for _, batch in self._groups])

    def play(
        self,
        rankings: NDArray[np.int64],
        uniforms: NDArray[np.float64],
        clicks: NDArray[np.int8],
        examined: NDArray[np.int8],
        realised: NDArray[np.float64],
        expectation: NDArray[np.float64],
    ) -> None:
        for streams, batch in self._groups:  # contiguous copies: the kernels are compiled for no others
            parts: Any = [array[streams].copy() for array in (rankings, uniforms, clicks, examined, realised, expectation)]
            batch.play(*parts)
            clicks[streams], examined[streams], realised[streams], expectation[streams] = parts[2:]

    def observe(self, clicks: NDArray[np.int8]) -> Any:
        return self._together([batch.observe(clicks[streams]) for streams, batch in self._groups])

    def _together(self, parts: list[Any]) -> Any:
        """What the groups have, in the order of the streams."""
        if isinstance(parts[0], dict):
            return {key: self._together([part[key] for part in parts]) for key in parts[0]}
        whole = np.empty((self._size, *parts[0].shape[1:]), parts[0].dtype)
        for (streams, _), part in zip(self._groups, parts, strict=True):
            whole[streams] = part
        return whole
