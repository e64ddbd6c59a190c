"""Base class of `ClickEnv` and `ClickVectorEnv`, which holds the simulated users and the streams of
their sessions.
"""

from __future__ import annotations

import bisect
import sys
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.checks import check_seed
from ..core.compiling import KernelError
from ..core.errors import SessionError, cause
from ..core.kernels import RepeatedCalls
from ..core.messages import as_call
from .resolve_model import ResolvedModel, digest
from .simulation.session import make_begin_kernel
from .simulation.task import draw_nothing
from .spaces import RankedList


def name_of(env: Any) -> str:
    """Return the environment's name in messages and results: its id, or the name of its class."""
    return env.spec.id if env.spec else type(env.unwrapped).__name__


class BaseClickEnv:
    """Common base class of `ClickEnv` and `ClickVectorEnv`: simulated users and B streams of their
    sessions, all advanced by the same number of steps.

    A step simulates one session on each stream. There is one exception: with the autoreset mode
    ``NEXT_STEP``, the step after the end of a stream's episode draws a new user instead.

    Attributes:
        model, instance: the simulated users, and the name of their instance.
        initial_ranking: ``(L,)`` all items in the order of the production list; None if the
            instance has no production list.
        feature_scale: the number by which the features in the instance's file were divided.
        reward, cutoff, reference: the arguments of `ClickEnv`; a ``cutoff`` of None counts all
            positions.
        task: the `Task` that simulates the users in the current step; users who change have one
            task for each epoch.
        state: the task's state for the next session on each stream. A seed or a change of the users
            creates a new state.
        steps: the number of steps of each stream since the environment was last seeded.
        n_simulated: the number of sessions simulated on all streams since the environment was
            created; seeding does not reset this number.
        next_change: the step at which the users change next.
    """

    spec: Any
    np_random: Any
    _np_random: Any
    _np_random_seed: Any
    task: Any
    state: Any
    _is_open: bool = False
    """Whether `step` accepts a list: True from `reset` until a user with memory leaves."""
    _kernels: Any = None
    """The kernels of the current task; None until a step needs kernels. In a copy of the
    environment, this attribute is None, because kernels cannot be sent to another process.
    """

    def _set_up(
        self,
        resolved: ResolvedModel,
        n_streams: int,
        reward: str | None,
        cutoff: int | None,
        reference: ArrayLike | None,
    ) -> gym.Space[Any]:
        """Create the streams of sessions, and return the observation space of one stream."""
        self.model, self.instance, self.initial_ranking, self.feature_scale = resolved
        self.reward = self.model.default_reward if reward is None else reward
        self.cutoff, self.reference = cutoff, reference
        self._tasks = self.model.tasks(self.reward, cutoff, reference)
        self._changes = [*self.model.starts[1:], sys.maxsize]
        self._all_streams = np.ones(n_streams, np.bool_)
        self._new_user_streams = np.ones(n_streams, np.bool_)
        self._repeated = RepeatedCalls()
        self._lists = RankedList(self.model.n_items, self.model.n_positions)
        self.task, self.steps, self._has_begun = None, 0, False
        self.n_simulated = 0
        self._select_task()
        return self.task.observation_space

    @property
    def fingerprint(self) -> str:
        """Six hexadecimal digits that identify the users, the reward, the cutoff and the reference
        list.
        """
        reference = None if self.reference is None else np.asarray(self.reference).tolist()
        return digest([self.model.to_dict(), self.reward, self.cutoff, reference])

    def _select_task(self) -> None:
        """Select the task of the current step, and create the task's first state."""
        epoch = bisect.bisect_right(self._changes, self.steps)
        if self.task is not self._tasks[epoch]:
            self.task, self._kernels = self._tasks[epoch], None
        self.next_change = self._changes[epoch]
        self.state = self.task.first_state(len(self._all_streams))

    def _restart(self, seed: int | None, options: Mapping[str, Any] | None) -> None:
        """Start an episode. If a seed is given, or at the first reset, also start new streams of
        sessions.
        """
        if options:
            raise ValueError(
                f"reset got options: {', '.join(map(str, options))}; call reset without "
                "options, because the seed alone determines an episode, and all streams "
                "restart together"
            )
        if seed is None:
            _ = self.np_random  # makes Gymnasium create _np_random, which step reads directly
        else:
            # Agents often seed their generator with the same small integer as the environment.
            # Clicks must not depend on the random numbers that chose the list, so the environment
            # seeds its generator with a child of its seed.
            seed = check_seed(seed)
            child = np.random.SeedSequence(seed, spawn_key=(0xC11C,))
            self._np_random = np.random.Generator(np.random.PCG64(child))
            self._np_random_seed = seed
            self.steps, self._has_begun = 0, False
            self._select_task()
            self.task.start(self.state, seed)
        if self.model.may_leave or not self._has_begun:
            self._begin(self._all_streams)
        self._has_begun = self._is_open = True

    def _begin(self, streams: NDArray[np.bool_]) -> None:
        """Draw a new user's first session on each stream selected by the mask ``streams``,
        ``(B,)``.
        """
        begin = self._current_kernels().begin
        if begin is not draw_nothing:
            self._new_user_streams[:] = streams
            self._repeated(
                make_begin_kernel(begin),
                self.task.constants,
                self.state,
                self._np_random,
                self._new_user_streams,
            )

    def _current_kernels(self) -> Any:
        """Return the kernels of the current task. They are created at the first call after a change
        of the users, because creating them takes a while.
        """
        if self._kernels is None:
            self._kernels = self.task.kernels
        return self._kernels

    def _play(self, step: Callable[..., Callable[..., Any]], shown: Any) -> Any:
        """Simulate a session on each stream, and return the result of the step's kernel.

        Args:
            step: the function that builds the step's kernel from the kernels of the task.
            shown: the record that contains the lists to show, and into which the kernel writes the
                sessions.

        Raises:
            SessionError: the users' click model raised an error.
        """
        kernel = step(*self._current_kernels())
        try:
            return self._repeated(kernel, self.task.constants, self.state, self._np_random, shown)
        except KernelError:
            raise
        except Exception as error:
            n_streams = len(self._all_streams)
            stream_text = f", on one of {n_streams} streams" if hasattr(self, "num_envs") else ""
            users = f"a {type(self.task.model).__name__}{stream_text}"
            raise SessionError(
                f"{name_of(self)}, step {self.steps + 1}: {cause(error)}, in {users}"
            ) from error

    def _count(self, steps: int, sessions: int) -> None:
        """Increase the numbers of steps and sessions. If the users change after these steps, draw
        the first session of the new users.

        Args:
            steps: the number of new steps of every stream, none of them after the next change.
            sessions: the number of new sessions on all streams together.
        """
        self.steps += steps
        self.n_simulated += sessions
        if self.steps == self.next_change:
            self._select_task()
            self._begin(self._all_streams)

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes for a copy, without the kernels, because kernels cannot be sent to
        another process.
        """
        return {**vars(self), "_kernels": None}

    def __repr__(self) -> str:
        return as_call(
            self,
            num_envs=getattr(self, "num_envs", None),
            id=self.spec.id if self.spec else None,
            users=self.model.kind,
            instance=self.instance,
            n_items=self.model.n_items,
            n_positions=self.model.n_positions,
            reward=self.reward,
        )
