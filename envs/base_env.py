"""Base of `ClickEnv` and `ClickVectorEnv`: users, streams of sessions, generator, checks."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.checks import as_call, check_choice, check_seed
from ..core.faults import Fault, SessionError, cause
from .arguments import Described
from .rendering import RENDER_MODES, ResultPage
from .spaces import RankedList, without_repeats
from .streams import Streams


def name_of(env: Any) -> str:
    """Return the name of an environment in messages and results: its id, or its class."""
    return env.spec.id if env.spec else type(env.unwrapped).__name__


class BaseClickEnv:
    """The part that both environments share: users and their sessions.

    Attributes:
        model, instance: the users, and the name of their instance.
        initial_ranking: ``(L,)`` all items in the order of the production list; None if the
            instance has none.
        feature_scale: what the features of the instance's file were divided by.
        reward, cutoff: as in `ClickEnv`; ``cutoff`` None counts all positions.
        streams: the streams of sessions, with all that they advance.
    """

    spec: Any
    np_random: Any
    _np_random: Any
    _np_random_seed: Any
    _is_open: bool = False
    """Whether a list can be shown: from `reset` until a stateful user leaves."""
    _has_warned = False
    """Whether a warning has said what is shown where a list repeats an item."""

    def _set_up(
        self,
        users: Described,
        n_streams: int,
        reward: str | None,
        cutoff: int | None,
        reference: ArrayLike | None,
        render_mode: str | None,
    ) -> gym.Space[Any]:
        """Make the streams of the users; return the observation space of one."""
        self.render_mode = None
        if render_mode is not None:
            self.render_mode = check_choice("render_mode", render_mode, RENDER_MODES)
        self.model, self.instance, self.initial_ranking, self.feature_scale = users
        self.reward = self.model.default_reward if reward is None else reward
        self.cutoff = cutoff
        self.streams = Streams(self.model, self.reward, cutoff, reference, n_streams)
        self._lists = RankedList(self.model.n_items, self.model.n_positions)
        self._last: Any = None
        return self.streams.task.observation_space

    @property
    def task(self) -> Any:
        """The law of the users in the current step (see `Task`); users who change have a task for
        each epoch.
        """
        return self.streams.task

    @property
    def state(self) -> Any:
        """The state of the next session on each stream, as the task declares it."""
        return self.streams.state

    def _restart(self, seed: int | None) -> None:
        """Start an episode; with a seed, or the first time, also new streams of sessions."""
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
            self.streams.start()
            self.task.start(self.state, seed)
            self._last = None
        self.streams.start_episode(self._np_random)
        self._is_open = True

    def _without_repeats(self, lists: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what is shown for ``(n, K)`` lists of which some repeat items; the first of them
        gets a warning, once in the life of an environment.
        """
        shown = without_repeats(lists, self.model.n_items)
        if not self._has_warned:
            self._has_warned = True
            first = (shown != lists).any(axis=1).argmax()
            gym.logger.warn(
                f"{name_of(self)}: the list {lists[first].tolist()} repeats an item, so "
                f"{shown[first].tolist()} was shown, as info['ranking'] says; the policy "
                "clickgym.agents.PlackettLuceActorCritic draws whole lists"
            )
        return shown

    def _leaving_error(self, fault: Fault, left: int) -> SessionError:
        """Return the error of a user who left after so many sessions, and may not."""
        return SessionError(f"{name_of(self)}, step {self.streams.steps + left}: {fault}")

    def _session_error(self, error: Exception, users: str) -> SessionError:
        step = self.streams.steps + 1
        return SessionError(f"{name_of(self)}, step {step}: {cause(error)}, in {users}")

    def _warn_of_no_mode(self, maker: str) -> None:
        choices = (
            f"{maker}(..., render_mode={RENDER_MODES[-1]!r}) (available: {', '.join(RENDER_MODES)})"
        )
        gym.logger.warn(f"render() requires a render_mode: {choices}")

    def _page(self, title: str, **last: Any) -> ResultPage:
        """Return the data that `render` draws: the last session of a stream, and its totals."""
        has_one_best = self.model.are_alike and not self.model.may_leave
        return ResultPage(
            title=f"{self.spec.id if self.spec else type(self.model).__name__} · {title}",
            n_items=self.model.n_items,
            n_positions=self.model.n_positions,
            step=self.streams.steps,
            best=self.streams.task.optimal_ranking.tolist() if has_one_best else None,
            **last,
        )

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
