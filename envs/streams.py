"""What the environment of one session at a time and that of many at once share: users, tasks and
random numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.checks import as_call
from ..core.faults import SessionError, cause
from ..core.kernels import KernelError
from .problem import Problem
from .rendering import ResultPage
from .schedule import DealtBatch
from .task import Batch, Sessions


def name_of(env: Any) -> str:
    """What messages and results call an environment: its id, or its class."""
    return env.spec.id if env.spec else type(env.unwrapped).__name__


class Streams:
    """The sessions of B streams: the part that `ClickEnv`, where B = 1, and `ClickVectorEnv` have
    in common.
    """

    np_random: Any
    _np_random: np.random.Generator | None
    spec: Any
    task: Any
    """What is asked of the next list, an `AnyTask`; where several instances are dealt to the
    streams, of that on the first.
    """

    def _set_up(
        self,
        problems: Sequence[Problem],
        n_streams: int,
        reward: str | None,
        cutoff: int | None,
        reference: ArrayLike | None,
    ) -> gym.Space[Any]:
        """Build the courses; returns the space of what is observed on a stream."""
        self._n_streams = n_streams
        self.models, self.instances, _ = zip(*problems, strict=True)
        self.model, self.instance, self.initial_ranking = problems[0]
        self.reward = self.model.default_reward if reward is None else reward
        self._courses = [users.course(self.reward, cutoff, reference) for users in self.models]
        space = self._courses[0].observation_space
        for number, course in enumerate(self._courses):
            if course.observation_space != space:
                raise ValueError(
                    f"the instances of one vector environment must be observed alike, but number {number} shows "
                    f"{course.observation_space}, and the first {space}"
                )
        self._uniforms = np.empty((n_streams, self.model.n_uniforms))
        self._examined = np.zeros((n_streams, self.model.n_positions), np.int8)
        self._satisfied = np.full(n_streams, -1)
        self._begun = False
        return space

    def _forget(self) -> None:
        """Begin anew; nothing is drawn."""
        self._steps = 0
        self._enter()
        self._regret, self._rewards = np.zeros(self._n_streams), np.zeros(self._n_streams)
        self._rankings: NDArray[np.int64] | None = None
        self._clicks = np.zeros(self._examined.shape, np.int8)
        self._examined[:], self._satisfied[:] = 0, -1

    def _enter(self) -> None:
        """Take up the tasks of the present step."""
        tasks, ends = zip(*(course.at(self._steps) for course in self._courses), strict=True)
        self._next_change = min(ends)
        size = self._n_streams
        self._batch: Batch = tasks[0].batch(size) if len(tasks) == 1 else DealtBatch(tasks, size)
        self.task = tasks[0]

    def _restart(self, seed: int | None) -> None:
        """Begin an episode: with a seed, and the first time, of new streams."""
        if seed is not None:
            # Agents and users often seed their own generator with the same small integer as the environment. Clicks must not
            # be functions of the very numbers that chose the list, so the environment's stream is a child of its seed.
            self._np_random = np.random.Generator(
                np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(0xC11C,)))
            )
        if self._begun and seed is None:
            self._batch.begin_episode(self.np_random)
            return
        self._begun = True
        self._forget()
        self._batch.draw(self.np_random)

    def _play(
        self, rankings: NDArray[np.int64], idle: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.int8], NDArray[np.float64], dict[str, NDArray[Any]]]:
        """Play a session of each stream, and draw what the next ones bring.

        Args:
            rankings: ``(B, K)`` checked lists.
            idle: ``(B,)`` the streams whose users have left, so that nobody is shown a list; None:
                none of them.

        Returns:
            The clicks, the rewards, and what infos tell.
        """
        size = self._n_streams
        uniforms = self.np_random.random(out=self._uniforms)
        clicks, realised, expectation = (
            np.empty(rankings.shape, np.int8),
            np.empty(size),
            np.empty(size),
        )
        sessions = Sessions(
            rankings, uniforms, clicks, self._examined, realised, expectation, self._satisfied
        )
        try:
            self._batch.play(sessions)
            optimum = self._batch.optimal_reward.copy()
            self._batch.draw(self.np_random)
        except KernelError:
            raise
        except Exception as error:
            raise SessionError(
                f"{name_of(self)}, step {self._steps + 1}: {cause(error)}, in {self._culprit()}"
            ) from error
        regret = optimum - expectation
        if idle is not None:
            for nothing in (clicks, realised, regret, expectation):
                nothing[idle] = 0
        self._count(1, regret)
        return (
            clicks,
            realised,
            {"expected_reward": expectation, "regret": regret, "optimal_reward": optimum},
        )

    def _culprit(self) -> str:
        """Whose code failed if a session fails."""
        return f"a {type(self.task.model).__name__}"

    def _count(self, steps: int, regret: NDArray[np.float64] | float) -> None:
        """Count ``steps`` sessions of each stream, which must not pass over a change."""
        self._steps += steps
        self._regret += regret
        if self._steps == self._next_change:
            self._enter()

    def _page(self, stream: int, title: str, satisfied: bool | None = None) -> ResultPage:
        """The data that `render` draws: the last session of a stream, and its totals."""
        return ResultPage(
            title=f"{self.spec.id if self.spec else type(self.model).__name__} · {title}",
            n_items=self.model.n_items,
            n_positions=self.model.n_positions,
            step=self._steps,
            regret=float(self._regret[stream]),
            ranking=None if self._rankings is None else tuple(self._rankings[stream].tolist()),
            clicks=tuple(self._clicks[stream].tolist()),
            examined=tuple(self._examined[stream].tolist()),
            satisfied=satisfied,
            reward=float(self._rewards[stream]),
        )

    def _facts(self) -> dict[str, Any]:
        """What tells one environment from another, for ``repr`` and notebooks."""
        return {
            "id": self.spec.id if self.spec else None,
            "users": self.model.kind,
            "instance": self.instance,
            "n_items": self.model.n_items,
            "n_positions": self.model.n_positions,
            "reward": self.reward,
        }

    def __repr__(self) -> str:
        return as_call(self, **self._facts())
