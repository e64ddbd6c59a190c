"""B streams of sessions of the same users: the one object that holds what environments advance."""

from __future__ import annotations

import bisect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.draws import Bound, source_of
from ..core.faults import Fault
from .session import begin_streams
from .task import draw_nothing
from .users import Users


class Streams:
    """Streams of sessions of the same users: each has had the same number of sessions.

    The generator belongs to the environment, and is an argument of all that draws.

    Attributes:
        task: the law of the users at this step (see `Task`); users who change have a task for
            each epoch.
        state: of the next session on each stream, as the task declares it. It is new at `start`
            and where the users change.
        steps: the number of steps since `start`, the same on each stream. A step is a session; with
            ``NEXT_STEP`` it is the draw of another user on a stream whose episode has ended.
        next_change: the step at which the users change.
        regret: the regret since `start`: of one stream, or ``(B,)``.
        bound: the machine code for the present task, by the function that makes its entry, and the
            source of the generator of the last `bind`.

    Args:
        model, reward, cutoff, reference: as in `ClickEnv`.
        n_streams: B.
    """

    task: Any
    state: Any
    bound: Bound

    def __init__(
        self,
        model: Users,
        reward: str,
        cutoff: int | None,
        reference: ArrayLike | None,
        n_streams: int = 1,
    ) -> None:
        self._tasks = model.tasks(reward, cutoff, reference)
        self._changes = [*model.starts[1:], sys.maxsize]
        self._model = model
        self.all = np.ones(n_streams, np.bool_)
        self.task = None
        self.start()

    def start(self) -> None:
        """Start new streams at step 0; nothing is drawn."""
        self.steps, self.regret, self._is_begun = 0, 0.0, False
        self._select_task()

    def start_episode(self, rng: np.random.Generator) -> None:
        """Draw what an episode starts with: on new streams a session, otherwise a user if users
        may leave.
        """
        if self._model.may_leave or not self._is_begun:
            self.begin(self.all, rng)
        self._is_begun = True

    def begin(self, which: NDArray[np.bool_], rng: np.random.Generator) -> None:
        """Draw the first session of a new user on the streams ``which``, ``(B,)``."""
        begin = self.task.kernels.begin
        if begin is not draw_nothing:
            source = self.bound.source if rng is self.bound.rng else source_of(rng)
            arguments = self.task.users, self.state, source, which
            code = self.bound.code.get(begin_streams)
            if code is None:
                self.bound.code[begin_streams] = code = begin_streams(begin).bound(*arguments)
            code(*arguments)

    def bind(self, rng: np.random.Generator, step: Callable[..., Any], *rest: Any) -> Bound:
        """Set and return ``bound`` for a generator: ``bound.code[step]`` gets ``task.users, state,
        bound.source``, and then the rest.

        Args:
            rng: the generator.
            step: makes the entry from the kernels of the task.
            *rest: arguments of the types of all further ones.
        """
        self.bound = self.bound.drawing_from(rng)
        if step not in self.bound.code:
            arguments = self.task.users, self.state, self.bound.source, *rest
            self.bound.code[step] = step(*self.task.kernels).bound(*arguments)
        return self.bound

    def finish_sessions(self, steps: int, regret: Any, left: int, rng: np.random.Generator) -> None:
        """Count sessions, which end at or before a change of the users; at a change draw the first
        session of the new users on every stream.

        Args:
            steps: the number of sessions on each stream.
            regret: their regret, as in ``regret``.
            left: in which of these sessions, counted from 1, a user left for good first; 0: none.
            rng: the generator of the environment.

        Raises:
            Fault: users have left who may not.
        """
        if left and not self._model.may_leave:
            name = type(self._model).__name__
            raise Fault(
                f"advance of a {name} returned True, that the user has left; expected False, "
                f"because {name}.may_leave is False"
            )
        self.regret += regret
        self.steps += steps
        if self.steps == self.next_change:
            self._select_task()
            self.begin(self.all, rng)

    def _select_task(self) -> None:
        """Select the task of the present step, in its first state."""
        epoch = bisect.bisect_right(self._changes, self.steps)
        if self.task is not self._tasks[epoch]:
            self.task = self._tasks[epoch]
            self.bound = Bound()
        self.next_change = self._changes[epoch]
        self.state = self.task.first_state(len(self.all))
