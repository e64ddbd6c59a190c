"""What the environment of one session at a time and that of many at once share: users, tasks, axes and random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import flatdim
from numpy.typing import ArrayLike, NDArray

from ..core.checks import as_call
from ..core.files import check_memory
from ..core.kernels import KernelError, SessionError, cause
from .axes import Axes, AxesArguments, attractions_of
from .present import PresentBatch
from .problem import Problem
from .rendering import ResultPage
from .schedule import DealtBatch
from .task import AnyTask, Batch, Sessions


def name_of(env: Any) -> str:
    """What messages and results call an environment: its id, or its class."""
    return env.spec.id if env.spec else type(env.unwrapped).__name__


class Streams:
    """The sessions of B streams: the part that `ClickEnv`, where B = 1, and `ClickVectorEnv` have in common."""

    np_random: Any
    _np_random: np.random.Generator | None
    spec: Any
    axes: Axes | None
    """What `arrival`, `bots`, `churn` and `available` ask for; None where all are at their defaults."""
    task: Any
    """What is asked of the next list, an `AnyTask`; where several instances are dealt to the streams, of that on the first."""

    def _set_up(
        self,
        problems: Sequence[Problem],
        n_streams: int,
        reward: str | None,
        cutoff: int | None,
        reference: ArrayLike | None,
        arguments: AxesArguments,
        item_values: ArrayLike | None,
    ) -> gym.Space[Any]:
        """Build the courses; returns the space of what is observed on a stream."""
        self._n_streams = n_streams
        problems = [problem._replace(model=problem.model.with_item_values(item_values)) for problem in problems]
        self.models, self.instances, _, laws = zip(*problems, strict=True)
        self.model, self.instance, self.initial_ranking, _ = problems[0]
        self.reward = self.model.default_reward if reward is None else reward
        self.reference = reference
        axes = Axes(arguments, self.model, laws, reference, n_streams)
        self.axes = None if axes.are_default else axes
        self.axes_arguments = arguments.beside_defaults()
        self._courses = [users.course(self.reward, cutoff, axes.reference_of_course()) for users in self.models]
        space = self._courses[0].observation_space
        for number, course in enumerate(self._courses):
            if course.observation_space != space:
                raise ValueError(
                    f"the instances of one vector environment must be observed alike, but number {number} shows "
                    f"{course.observation_space}, and the first {space}"
                )
        # Spaces and arrays: three numbers of 8 bytes for each that is observed.
        check_memory(f"{n_streams:,} streams", 24 * n_streams * (flatdim(space) + self.model.n_positions))
        self._uniforms = np.empty((n_streams, self.model.n_positions))
        self._examined = np.zeros((n_streams, self.model.n_positions), np.int8)
        self._satisfied = np.full(n_streams, -1)
        self._masks = None if axes.available is None else axes.mask
        self._begun = False
        return axes.observation_space(space)

    def _forget(self) -> None:
        """Begin anew; nothing is drawn."""
        self._steps, self._displays = 0, np.zeros(self._n_streams, np.int64)
        self._enter()
        self._regret, self._rewards = np.zeros(self._n_streams), np.zeros(self._n_streams)
        self._rankings: NDArray[np.int64] | None = None
        self._clicks = np.zeros(self._examined.shape, np.int8)
        self._examined[:], self._satisfied[:] = 0, -1
        self._notes: Sequence[str] = []

    def _enter(self) -> None:
        """Take up the tasks of the present step."""
        tasks, ends = zip(*(course.at(self._steps) for course in self._courses), strict=True)
        self._next_change = min(ends)
        size = self._n_streams
        if self.axes is not None and self.axes.changes_items:
            before = self._batch if self._steps > 0 and isinstance(self._batch, PresentBatch) else None
            tasks = tuple(self.axes.present(task, number) for number, task in enumerate(tasks))
            self._batch: Batch = PresentBatch(tasks, size, before)
            self.axes.find(self._batch, np.ones(size, np.bool_))
        else:
            self._batch = tasks[0].batch(size) if len(tasks) == 1 else DealtBatch(tasks, size)
        self._tasks: Sequence[AnyTask] = tasks
        self.task = tasks[0]

    def _restart(self, seed: int | None) -> None:
        """Begin an episode: with a seed, and the first time, of new streams."""
        if seed is not None:
            # Agents and users often seed their own generator with the same small integer as the environment. Clicks must not
            # be functions of the very numbers that chose the list, so the environment's stream is a child of its seed.
            self._np_random = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(0xC11C,))))
        if self._begun and seed is None:
            self._batch.begin_episode(self.np_random)
            return
        self._begun = True
        self._forget()
        self._batch.draw(self.np_random)
        if self.axes is not None:
            self.axes.begin(self.np_random, attractions_of(self._tasks, self._n_streams))
            self.axes.find(self._batch, np.ones(self._n_streams, np.bool_))

    def _play(
        self, rankings: NDArray[np.int64], idle: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.int8], NDArray[np.float64], dict[str, NDArray[Any]]]:
        """Play a session of each stream, and draw what the next ones bring.

        Args:
            rankings: ``(B, K)`` checked lists.
            idle: ``(B,)`` the streams whose users have left, so that nobody is shown a list; None: none of them.

        Returns:
            The clicks that are reported, the rewards, and what infos tell.
        """
        size = self._n_streams
        uniforms = self.np_random.random(out=self._uniforms)
        clicks, realised, expectation = np.empty(rankings.shape, np.int8), np.empty(size), np.empty(size)
        sessions = Sessions(rankings, uniforms, clicks, self._examined, realised, expectation, self._satisfied)
        try:
            self._batch.play(sessions)
            optimum = self._batch.optimal_reward.copy()
            self._batch.draw(self.np_random)
        except KernelError:
            raise
        except Exception as error:
            raise SessionError(f"{name_of(self)}, step {self._steps + 1}: {cause(error)}, in {self._culprit()}") from error
        axes, reported, rewards = self.axes, clicks, realised
        beside: dict[str, NDArray[Any]] = {}
        if axes is not None:
            self._displays += 1 if idle is None else ~idle
            reported, rewards, beside = axes.settle(self.task, self._displays, sessions, optimum)
            changed = axes.change_items(self._displays, self._batch)
        regret = optimum - expectation
        if idle is not None:
            for nothing in (reported, rewards, regret, expectation):
                nothing[idle] = 0
        entered = self._count(1, regret)
        if axes is not None and not entered:
            axes.find(self._batch, changed)
        return reported, rewards, {"expected_reward": expectation, "regret": regret, "optimal_reward": optimum, **beside}

    def _culprit(self) -> str:
        """Whose code failed if a session fails."""
        return f"a {type(self.task.model).__name__}"

    def _count(self, steps: int, regret: NDArray[np.float64] | float) -> bool:
        """Count ``steps`` sessions of each stream, which must not pass over a change; whether the tasks change after them."""
        self._steps += steps
        self._regret += regret
        changes = self._steps == self._next_change
        if changes:
            self._enter()
        return changes

    def _observe(self, clicks: NDArray[np.int8], first: bool = False) -> Any:
        """What is observed on all streams with these clicks, or as an episode begins."""
        observations = self._batch.observe(clicks)
        return observations if self.axes is None else self.axes.observe(observations, self._displays, first)

    def _page(self, stream: int, title: str, satisfied: bool | None = None, notes: Sequence[str] = ()) -> ResultPage:
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
            notes=notes,
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
            "item_values": None if self.model.item_values is None else self.model.item_values.tolist(),
            **self.axes_arguments,
        }

    def __repr__(self) -> str:
        return as_call(self, **self._facts())
