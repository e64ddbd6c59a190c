"""B streams of sessions of the same users: the one object that holds what environments advance."""

from __future__ import annotations

import bisect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.draws import source_of
from .session import begin_streams
from .task import draw_nothing
from .users import Users


class Streams:
    """Streams of sessions of the same users, all at the same step.

    Machine code is kept for the present task and generator. A copy of the streams makes it again:
    addresses are others there.

    Attributes:
        task: the law of the users at this step (see `Task`); users who change have a task for
            each epoch.
        state: of the next session on each stream, as the task declares it. It is new at `start`
            and where the users change.
        steps: the number of sessions of each stream since `start`.
        next_change: the step at which the users change.
        regret: the regret since `start`: of one stream, or ``(B,)``.
        code: what `bind` has bound, to be called with ``source``.
        source: the generator as compiled code gets it.
        drawn_from: the generator for which ``code`` and ``source`` hold; None before `bind`.

    Args:
        model, reward, cutoff, reference: as in `ClickEnv`.
        n_streams: B.
    """

    task: Any
    state: Any
    code: Any
    source: Any
    drawn_from: np.random.Generator | None
    _begin_code: Any

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
        self._may_leave = model.may_leave
        self.all = np.ones(n_streams, np.bool_)
        self.task = None
        self.start()

    def start(self) -> None:
        """Start new streams at step 0; nothing is drawn."""
        self.steps, self.regret, self._is_begun = 0, 0.0, False
        self._select_task()

    def begin_episode(self, rng: np.random.Generator) -> None:
        """Draw what an episode starts with: on new streams a session, otherwise a user if users
        may leave.
        """
        if self._may_leave or not self._is_begun:
            self.begin(self.all, rng)
        self._is_begun = True

    def begin(self, which: NDArray[np.bool_], rng: np.random.Generator) -> None:
        """Draw the first session of a new user on the streams ``which``, ``(B,)``."""
        begin = self.task.kernels.begin
        if begin is not draw_nothing:
            source = self.source if rng is self.drawn_from else source_of(rng)
            arguments = self.task.users, self.state, source, which
            if self._begin_code is None:
                self._begin_code = begin_streams(begin).bound(*arguments)
            self._begin_code(*arguments)

    def bind(self, rng: np.random.Generator, step: Callable[..., Any], *rest: Any) -> None:
        """Set ``code`` and ``source`` for a generator: the first arguments of the code are
        ``task.users, state, source``.

        Args:
            rng: the generator.
            step: makes the entry from the kernels of the task.
            *rest: arguments of the types of all further ones.
        """
        self.source, self.drawn_from = source_of(rng), rng
        if self.code is None:
            arguments = self.task.users, self.state, self.source, *rest
            self.code = step(*self.task.kernels).bound(*arguments)

    def count(self, steps: int, regret: Any, rng: np.random.Generator) -> None:
        """Count sessions, which end at or before a change of the users."""
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
            self.code = self._begin_code = self.source = None
            self.drawn_from = None
        self.next_change = self._changes[epoch]
        self.state = self.task.first_state(len(self.all))

    def __getstate__(self) -> dict[str, Any]:
        code = dict.fromkeys(("code", "_begin_code", "source", "drawn_from"))
        return self.__dict__ | code
