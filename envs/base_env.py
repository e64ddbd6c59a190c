"""Base of `ClickEnv` and `ClickVectorEnv`: users, and the streams of their sessions."""

from __future__ import annotations

import bisect
import sys
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.checks import as_call, check_seed
from ..core.errors import SessionError, cause
from ..core.kernels import KernelError, Repeated
from .resolve_model import ResolvedModel, digest
from .session import begin_streams
from .spaces import RankedList
from .task import draw_nothing


def name_of(env: Any) -> str:
    """Return the name of an environment in messages and results: its id, or its class."""
    return env.spec.id if env.spec else type(env.unwrapped).__name__


class BaseClickEnv:
    """The part that `ClickEnv` and `ClickVectorEnv` share: users, and B streams of their sessions,
    each with the same number of steps.

    A step is a session. With ``NEXT_STEP``, the step after the end of a stream's episode draws
    another user instead.

    Attributes:
        model, instance: the users, and the name of their instance.
        initial_ranking: ``(L,)`` all items in the order of the production list; None if the
            instance has none.
        feature_scale: what the features of the instance's file were divided by.
        reward, cutoff, reference: as in `ClickEnv`; ``cutoff`` None counts all positions.
        task: the law of the users in the current step (see `Task`); users who change have a task
            for each epoch.
        state: the state of the next session on each stream, as the task declares it. A seed or a
            change of the users makes a new state.
        steps: the number of steps of each stream since the seed.
        n_simulated: the number of sessions simulated on all streams since the environment was made;
            a seed does not reset this number.
        next_change: the step at which the users change.
    """

    spec: Any
    np_random: Any
    _np_random: Any
    _np_random_seed: Any
    task: Any
    state: Any
    _is_open: bool = False
    """Whether a list can be shown: from `reset` until a stateful user leaves."""
    _kernels: Any = None
    """The kernels of the current task. None after a change of the users, and in copies, because
    kernels cannot be sent to another process.
    """

    def _set_up(
        self,
        resolved: ResolvedModel,
        n_streams: int,
        reward: str | None,
        cutoff: int | None,
        reference: ArrayLike | None,
    ) -> gym.Space[Any]:
        """Make the streams of sessions; return the observation space of one stream."""
        self.model, self.instance, self.initial_ranking, self.feature_scale = resolved
        self.reward = self.model.default_reward if reward is None else reward
        self.cutoff, self.reference = cutoff, reference
        self._tasks = self.model.tasks(self.reward, cutoff, reference)
        self._changes = [*self.model.starts[1:], sys.maxsize]
        self._all_streams = np.ones(n_streams, np.bool_)
        self._new_user_streams = np.ones(n_streams, np.bool_)
        self._repeated = Repeated()
        self._lists = RankedList(self.model.n_items, self.model.n_positions)
        self.task, self.steps, self._has_begun = None, 0, False
        self.n_simulated = 0
        self._select_task()
        return self.task.observation_space

    @property
    def mark(self) -> str:
        """Six letters and digits that identify the users and their reward."""
        reference = None if self.reference is None else np.asarray(self.reference).tolist()
        return digest([self.model.to_dict(), self.reward, self.cutoff, reference])

    def _select_task(self) -> None:
        """Select the task of the present step, in its first state."""
        epoch = bisect.bisect_right(self._changes, self.steps)
        if self.task is not self._tasks[epoch]:
            self.task, self._kernels = self._tasks[epoch], None
        self.next_change = self._changes[epoch]
        self.state = self.task.first_state(len(self._all_streams))

    def _restart(self, seed: int | None, options: Mapping[str, Any] | None) -> None:
        """Start an episode. With a seed, or at the first reset, also start new streams of
        sessions.
        """
        if options:
            raise ValueError(
                f"reset got options: {', '.join(map(str, options))}; leave options out, "
                "because the seed alone determines an episode, and all streams restart "
                "together"
            )
        if seed is None:
            _ = self.np_random  # Gymnasium makes one at the first access; step reads it directly
        else:
            # Agents often seed their generator with the same small integer as the environment.
            # Clicks must not depend on the random numbers that chose the list. Therefore the
            # environment uses a child of its seed.
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
        """Draw the first session of a new user on some streams, ``(B,)``."""
        begin = self._current_kernels().begin
        if begin is not draw_nothing:
            self._new_user_streams[:] = streams
            self._repeated(
                begin_streams(begin),
                self.task.constants,
                self.state,
                self._np_random,
                self._new_user_streams,
            )

    def _current_kernels(self) -> Any:
        """Return the kernels of the current task, and make them if necessary, which takes a
        while.
        """
        if self._kernels is None:
            self._kernels = self.task.kernels
        return self._kernels

    def _play(self, step: Callable[..., Callable[..., Any]], shown: Any) -> Any:
        """Play a session on each stream; return what the kernel returns.

        Args:
            step: the function that makes the kernel of a step.
            shown: contains the lists, and receives the sessions.

        Raises:
            SessionError: the model of the users raised an error.
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
        """Count steps of every stream, and the sessions of all streams in these steps. The steps
        end at or before a change of the users. If they end at a change, draw the first session of
        the new users.
        """
        self.steps += steps
        self.n_simulated += sessions
        if self.steps == self.next_change:
            self._select_task()
            self._begin(self._all_streams)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a copy, without the kernels, which cannot be sent to another
        process.
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
