"""The vector environment `ClickVectorEnv`, in which each step shows one list on each of many
streams of sessions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, iterate
from numpy.typing import ArrayLike, NDArray

from ..core.checks import as_array, as_integers, check_choice, check_count
from .base_env import BaseClickEnv
from .instances.instance import AnyInstance
from .resolve_model import resolve_model
from .simulation.session import Batch, empty_buffers, make_batch_step_kernel
from .simulation.user_model import UserModel
from .spaces import RankedList, without_repeats

Infos = dict[str, Any]
Masks = NDArray[np.bool_]
ALL = slice(None)


class ClickVectorEnv(BaseClickEnv, VectorEnv[Any, NDArray[np.int64], Any]):
    """Vector environment of ``num_envs`` independent streams of sessions, which compiled code steps
    together.

    Each stream has the same probabilities as a `ClickEnv` with the same time limit, but not the
    same random numbers: with the same seed, the ``"sync"`` mode of ``gym.make_vec``, which steps
    environments one by one, draws different sessions. A new episode continues its stream unless
    `reset` gets a seed, as in `ClickEnv`. All streams are truncated together, except if
    users have a memory; their episodes end separately.

    Args:
        model, reward, cutoff, instance, form, n_positions, reference, **parameters: see `ClickEnv`.
        render_mode: None; to render, use ``gym.make_vec(..., vectorization_mode="sync")``, which
            steps environments one by one.
        num_envs: B, the number of streams; by default 1.
        max_episode_steps: the number of sessions after which an episode is truncated; by default,
            or if -1, episodes are not truncated.
        autoreset_mode: what happens after an episode has ended. With ``AutoresetMode.NEXT_STEP``,
            the default, the next ``step`` resets the stream and ignores its action. With
            ``AutoresetMode.SAME_STEP``, the same ``step`` returns the first observation of the new
            episode, and the last observation of the old episode as ``final_obs``.

    Raises:
        ValueError, TypeError: an argument is invalid (see `ClickEnv`), or ``num_envs`` or
            ``max_episode_steps`` is not a positive integer.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> envs = gym.make_vec("PBMRank-v0", num_envs=4)
        >>> clicks, infos = envs.reset(seed=0)
        >>> lists = envs.action_space.sample()
        >>> clicks, rewards, terminations, truncations, infos = envs.step(lists)
        >>> clicks.shape, infos["regret"].shape
        ((4, 5), (4,))
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.NEXT_STEP}

    single_action_space: RankedList
    action_space: RankedList
    _all_ended: bool
    """Whether the next step resets all streams; used only with the autoreset mode NEXT_STEP."""

    def __init__(
        self,
        model: UserModel | str,
        num_envs: int = 1,
        reward: str | None = None,
        cutoff: int | None = None,
        *,
        instance: AnyInstance | None = None,
        form: str = "",
        n_positions: int | None = None,
        reference: ArrayLike | None = None,
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        **parameters: Any,
    ) -> None:
        if render_mode is not None:
            sync = "vectorization_mode='sync'"
            raise ValueError(
                f"render_mode is {render_mode!r}; expected None; to render, pass {sync}"
            )
        if max_episode_steps == -1:  # Gymnasium's value for no limit
            max_episode_steps = None
        if max_episode_steps is not None:
            check_count("max_episode_steps", max_episode_steps)
        self.max_episode_steps = max_episode_steps
        self.num_envs = check_count("num_envs", num_envs)
        mode = getattr(autoreset_mode, "value", autoreset_mode)
        if mode == "Disabled":
            raise ValueError(
                "autoreset_mode is 'Disabled', which only SyncVectorEnv and AsyncVectorEnv of "
                "Gymnasium have; expected 'NextStep' or 'SameStep'"
            )
        mode = check_choice("autoreset_mode", mode, ("NextStep", "SameStep"))
        self.autoreset_mode = AutoresetMode(mode)
        self.metadata = {**type(self).metadata, "autoreset_mode": self.autoreset_mode}
        resolved = resolve_model(model, form, instance, n_positions, **parameters)
        space = self._set_up(resolved, num_envs, reward, cutoff, reference)
        self.single_observation_space = space
        self.observation_space = batch_space(space, num_envs)
        self.single_action_space = self._lists
        sizes = self._lists.n_items, self._lists.n_positions
        self.action_space = RankedList(*sizes, n_lists=num_envs)
        self._shape = (num_envs, self._lists.n_positions)
        self._batch: Batch = empty_buffers(self.model, num_envs)
        self._reset_steps()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, Infos]:
        """Start an episode on all streams. If a seed is given, or at the first reset, also start
        new streams of sessions.

        Args:
            seed: one integer that seeds all streams; None continues the current streams.
            options: None or empty, because the environment has no options.

        Returns:
            The observations, which are ``(B, K)`` zeros, or a dict with ``clicks`` and ``features``
            ``(B, L, d)`` or ``state`` ``(B,)``; and infos with ``optimal_ranking`` ``(B, K)`` and
            ``optimal_reward`` ``(B,)``. If candidates change, the infos also contain ``next_user``
            ``(B,)`` and ``next_candidates`` ``(B, L)`` (see `ClickEnv.step`).

        Raises:
            ValueError: ``options`` is not empty; a ``reset_mask`` is not supported, because all
                streams restart together.
        """
        self._restart(seed, options)
        self._reset_steps()
        clicks = np.zeros(self._shape, np.int8)
        return self.task.observe(self.state, ALL, clicks), self._reset_infos(self._all_streams)

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[Any, NDArray[np.float64], Masks, Masks, Infos]:
        """Show one list on each stream.

        Args:
            actions: ``(B, K)`` item ids, one list in each row (see `ClickEnv.step`); with
                ``NEXT_STEP``, the rows of streams whose episode ended in the last step are ignored.

        Returns:
            Observations (clicks ``(B, K)``, or a dict), rewards ``(B,)``, terminations ``(B,)``,
            truncations ``(B,)``, and infos. The infos contain the lists shown, ``ranking``
            ``(B, K)``, and the arrays ``expected_reward``, ``regret`` and ``optimal_reward``
            ``(B,)``, each with a mask, as in Gymnasium's vector environments. If candidates change,
            the infos also contain ``next_user`` ``(B,)`` and ``next_candidates`` ``(B, L)`` (see
            `ClickEnv.step`). A stream that is only reset (``NEXT_STEP``) shows no list: its entry
            in the mask ``_ranking`` is False, or the infos contain no ``ranking`` at all. With
            ``SAME_STEP``, the last list of an episode is in ``final_info``.

        Raises:
            ValueError, TypeError: a list is invalid; the message says what was expected.
            SessionError: the click model raised an error (see `ClickEnv.step`).
            gymnasium.error.ResetNeeded: `reset` has not been called yet.
        """
        if not self._is_open:
            raise gym.error.ResetNeeded("call reset() before the first step()")
        if self._all_ended:  # NEXT_STEP: this call only resets the streams
            observations, infos = self.reset()
            no_stream = ~self._all_streams
            return observations, np.zeros(self.num_envs), no_stream, no_stream.copy(), infos
        restarting = None  # a mask of the streams on which this call starts an episode, if any
        if self.model.may_leave and self._batch.begins.any():
            restarting = self._batch.begins.copy()
        clicks, rewards, infos = self._simulate(self._lists_of(actions, restarting))
        active = self._all_streams if restarting is None else ~restarting
        infos = _add_masks(active, infos | self.task.info(self.state, ALL))
        if restarting is not None:
            infos = _merge_infos(infos, self._reset_infos(restarting))
        observations = self.task.observe(self.state, ALL, clicks)
        terminated, truncated, is_any_over = self._ends(restarting)
        if is_any_over and self.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP:
            ended = terminated | truncated
            observations, infos = self._start_next(ended, observations, clicks, infos)
        else:
            self._all_ended = is_any_over and not self.model.may_leave
        return observations, rewards, terminated, truncated, infos

    def _lists_of(self, actions: Any, inactive: Masks | None) -> NDArray[np.int64]:
        """Return the actions as a new int64 array of lists, after checking the shape and the dtype
        but not the items. The rows of ``inactive`` streams become 0; if all streams are inactive,
        the actions are not read.
        """
        if inactive is not None and inactive.all():
            return np.zeros(self._shape, np.int64)
        rankings = as_array("actions", actions)
        if rankings.shape != self._shape:
            raise ValueError(
                f"actions have shape {rankings.shape}; expected (num_envs, n_positions) = "
                f"{self._shape}"
            )
        if rankings.dtype.kind not in "iu":
            raise TypeError(f"actions have dtype {rankings.dtype}; expected integer item ids")
        rankings = rankings.astype(np.int64, "C")
        if inactive is not None:
            rankings[inactive] = 0
        return rankings

    def _simulate(
        self, rankings: NDArray[np.int64]
    ) -> tuple[NDArray[np.int8], NDArray[np.float64], Infos]:
        """Simulate a session on every stream, and draw the next session; a stream whose user has
        left gets a new user instead.

        Args:
            rankings: ``(B, K)`` lists; the lists of streams whose users have left are ignored.

        Returns:
            The clicks ``(B, K)``, the rewards ``(B,)``, and the infos.

        Raises:
            ValueError: an item is out of range; the message names its stream and position.
        """
        batch = self._batch
        batch.rankings[:] = rankings
        sessions = self.num_envs - int(np.count_nonzero(batch.begins))  # others only get a new user
        is_valid = self._play(make_batch_step_kernel, batch)
        if not is_valid:  # the kernel has drawn nothing; lists of new users are ignored
            as_integers("actions", rankings, self._shape, 0, self._lists.n_items)
            active = ~batch.begins
            rankings[active] = without_repeats(rankings[active], self._lists.n_items)
            return self._simulate(rankings)
        self._count(1, sessions)
        infos = {  # new arrays at every step, because the caller may keep them
            "ranking": rankings,
            "expected_reward": batch.expectation.copy(),
            "regret": batch.optimum - batch.expectation,  # `State` lists the other such places
            "optimal_reward": batch.optimum.copy(),
        }
        return batch.clicks.copy(), batch.realised.copy(), infos

    def _ends(self, restarting: Masks | None) -> tuple[Masks, Masks, bool]:
        """Count a session of every stream that showed a list; return the terminations ``(B,)``, the
        truncations ``(B,)``, and whether any episode has ended.
        """
        all_streams = self._all_streams
        if not self.model.may_leave:
            self._episode_steps += 1
            is_over = self._episode_steps == self.max_episode_steps
            return ~all_streams, all_streams.copy() if is_over else ~all_streams, is_over
        begins = self._batch.begins
        terminated = begins.copy()
        self._episode_steps += all_streams if restarting is None else ~restarting
        truncated = self._episode_steps == self.max_episode_steps
        begins |= truncated  # replace the user, as if the user had left
        self._episode_steps[begins] = 0
        return terminated, truncated, bool(begins.any())

    def _start_next(
        self, ended: Masks, observations: Any, clicks: NDArray[np.int8], infos: Infos
    ) -> tuple[Any, Infos]:
        """Start new episodes on the streams whose episode ``ended``, for ``SAME_STEP``. Return the
        first observations of the new episodes, and infos with the last observations of the old
        episodes.
        """
        final_obs = np.full(self.num_envs, None, object)
        for b, last in enumerate(iterate(self.observation_space, observations)):
            if ended[b]:
                final_obs[b] = last
        final_info = infos | _restrict_masks(infos, ended)
        finals = _add_masks(ended, {"final_obs": final_obs, "final_info": final_info})
        if not self.model.may_leave:
            observations, firsts = self.reset()
            return observations, finals | firsts
        self._begin(ended)
        self._batch.begins[ended] = False
        clicks = clicks.copy()
        clicks[ended] = 0
        others = infos | _restrict_masks(infos, ~ended)
        observations = self.task.observe(self.state, ALL, clicks)
        return observations, finals | _merge_infos(others, self._reset_infos(ended))

    def _reset_infos(self, streams: Masks) -> Infos:
        """Return the infos of a reset of the streams selected by the mask ``streams``, ``(B,)``."""
        best, optimum = self.task.best(self.state), self.state.optimum.copy()
        infos = {"optimal_ranking": best, "optimal_reward": optimum}
        return _add_masks(streams, infos | self.task.info(self.state, ALL))

    def _reset_steps(self) -> None:
        """Set the number of sessions in the current episodes to 0."""
        self._batch.begins.fill(False)
        self._episode_steps = np.zeros(self.num_envs, np.int64) if self.model.may_leave else 0
        self._all_ended = False


def _add_masks(streams: Masks, infos: Infos) -> Infos:
    """Return infos with a mask for each entry, as Gymnasium's vector environments do. The masks are
    True on the given streams.
    """
    mask = streams.copy()
    return infos | {f"_{name}": mask for name in infos}


def _restrict_masks(infos: Mapping[str, Any], streams: Masks) -> Infos:
    """Return only the masks of infos, set to False except on the given streams."""
    return {name: mask & streams for name, mask in infos.items() if name.startswith("_")}


def _merge_infos(infos: Mapping[str, Any], others: Mapping[str, Any]) -> Infos:
    """Return the infos of two disjoint sets of streams, merged."""
    merged = {**infos, **others}
    for name in infos.keys() & others.keys():
        first, second = infos[name], others[name]
        if name.startswith("_"):
            merged[name] = first | second
        else:
            merged[name] = np.where(others[f"_{name}"], second, first)
    return merged
