"""The environment of simulated users, with many streams of sessions at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, iterate
from numpy.typing import ArrayLike, NDArray

from ..core.checks import as_array, as_integers, check_choice, check_count
from .any_env import clicks_of
from .base_env import BaseClickEnv
from .instances.instance import AnyInstance
from .resolve_model import resolve_model
from .session import Batch, batch_step, nothing_shown
from .spaces import RankedList, without_repeats
from .user_model import UserModel

Infos = dict[str, Any]
Masks = NDArray[np.bool_]
ALL = slice(None)


class ClickVectorEnv(BaseClickEnv, VectorEnv[Any, NDArray[np.int64], Any]):
    """Vector environment: ``num_envs`` independent streams of sessions, stepped together in
    compiled code.

    Each stream has the same probabilities as a `ClickEnv` with the same time limit, but not the
    same random numbers: for the same seed, the ``"sync"`` mode of ``gym.make_vec``, which steps
    environments one by one, gives other streams. As in `ClickEnv`, an episode continues its stream
    unless `reset` gets a seed. All streams are truncated together, except with stateful users: the
    episode of each user ends separately.

    Args:
        model, reward, cutoff, instance, form, n_positions, reference, **parameters: as in
            `ClickEnv`.
        render_mode: None; to render, use ``gym.make_vec(..., vectorization_mode="sync")``, which
            steps environments one by one.
        num_envs: B, the number of streams.
        max_episode_steps: the number of sessions after which an episode is truncated; None or -1
            for never.
        autoreset_mode: how an episode that ended is reset: ``AutoresetMode.NEXT_STEP`` (the next
            ``step`` ignores the actions of these streams, and resets them) or
            ``AutoresetMode.SAME_STEP`` (the same ``step`` returns the first observation of the new
            episode, and the last one as ``final_obs``).

    Raises:
        ValueError, TypeError: as in `ClickEnv`; ``num_envs`` or ``max_episode_steps`` is not a
            positive integer.

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
    """With NEXT_STEP: whether the next step resets all streams."""

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
            raise ValueError(f"render_mode is {render_mode!r}; expected None, or {sync}")
        if max_episode_steps == -1:  # Gymnasium's word for no limit
            max_episode_steps = None
        if max_episode_steps is not None:
            check_count("max_episode_steps", max_episode_steps)
        self.max_episode_steps = max_episode_steps
        self.num_envs = check_count("num_envs", num_envs)
        mode = getattr(autoreset_mode, "value", autoreset_mode)
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
        self._batch: Batch = nothing_shown(self.model, num_envs)
        self._reset_steps()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, Infos]:
        """Start an episode on all streams. With a seed, or at the first reset, start new streams.

        Args:
            seed: one integer that seeds all streams; None continues the current streams.
            options: None or empty; an environment has none.

        Returns:
            The observations: ``(B, K)`` zeros, or a dict with ``clicks`` and ``features`` ``(B, L,
            d)`` or ``state`` ``(B,)``. And infos with ``optimal_ranking`` ``(B, K)`` and
            ``optimal_reward`` ``(B,)``; if candidates change also with ``next_user`` ``(B,)``
            and ``next_candidates`` ``(B, L)``, as in `ClickEnv.step`.

        Raises:
            ValueError: options such as a ``reset_mask``; all streams start together.
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
            actions: ``(B, K)`` integers, K item ids in each row, as in `ClickEnv.step`; with
                ``NEXT_STEP`` the rows of streams that ended with the last step are ignored.

        Returns:
            Observations (clicks ``(B, K)``, or a dict), rewards, terminations and truncations
            ``(B,)``, and infos with the lists shown, ``ranking`` ``(B, K)``, and with the arrays
            ``expected_reward``, ``regret`` and ``optimal_reward`` ``(B,)`` (with masks, as in
            Gymnasium's vector environments). If candidates change also ``next_user`` ``(B,)`` and
            ``next_candidates`` ``(B, L)``, as in `ClickEnv.step`. A stream that is only reset
            (``NEXT_STEP``) shows no list: the mask ``_ranking`` is False there, or the infos have
            no ``ranking``. With ``SAME_STEP`` the last list of an episode is in ``final_info``.

        Raises:
            ValueError, TypeError: a bad list; the message names the stream, the position and the
                fault.
            SessionError: as in `ClickEnv.step`.
            gymnasium.error.ResetNeeded: before the first `reset`.
        """
        if not self._is_open:
            raise gym.error.ResetNeeded("call reset() before the first step()")
        if self._all_ended:  # NEXT_STEP: this call is the reset
            observations, infos = self.reset()
            no_stream = ~self._all_streams
            return observations, np.zeros(self.num_envs), no_stream, no_stream.copy(), infos
        restarting = None  # the streams on which this call starts an episode, if any
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
        """Return the actions as a new array of lists, whose items are not checked yet. Rows that
        are ignored become 0; if all rows are ignored, the actions are not read.
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
        """Simulate a session of every stream, and draw the next one; a stream whose user has left
        gets a new user instead.

        Args:
            rankings: ``(B, K)`` lists; those of streams whose users have left are ignored.

        Returns:
            The clicks, the rewards, and the infos.
        """
        batch = self._batch
        batch.rankings[:] = rankings
        sessions = self.num_envs - int(np.count_nonzero(batch.begins))  # not of users who have left
        if not self._play(batch_step, batch):  # nothing was drawn
            return self._simulate(self._shown_for(rankings))
        self._count(1, sessions)
        infos = {  # what the caller gets is new at every step
            "ranking": rankings,
            "expected_reward": batch.expectation.copy(),
            "regret": batch.optimum - batch.expectation,
            "optimal_reward": batch.optimum.copy(),
        }
        return batch.clicks.copy(), batch.realised.copy(), infos

    def _shown_for(self, rankings: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the lists that are shown if some of the given lists are bad; lists of streams
        whose users have left are ignored.

        Raises:
            ValueError: an item is out of range; the message names its stream and position.
        """
        active = ~self._batch.begins
        as_integers("actions", rankings, self._shape, 0, self._lists.n_items)
        rankings[active] = without_repeats(rankings[active], self._lists.n_items)
        return rankings

    def _ends(self, restarting: Masks | None) -> tuple[Masks, Masks, bool]:
        """Count a session of every stream; return ``(B,)`` terminations, ``(B,)`` truncations, and
        whether any episode has ended.
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
        begins |= truncated  # draw a new user, as for one who has left
        self._episode_steps[begins] = 0
        return terminated, truncated, bool(begins.any())

    def _start_next(
        self, ended: Masks, observations: Any, clicks: NDArray[np.int8], infos: Infos
    ) -> tuple[Any, Infos]:
        """With ``SAME_STEP``: start the next episodes; return their first observations, and infos
        with the last observations.
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
        """Return the infos of a reset of some streams."""
        best, optimum = self.task.best(self.state), self.state.optimum.copy()
        infos = {"optimal_ranking": best, "optimal_reward": optimum}
        return _add_masks(streams, infos | self.task.info(self.state, ALL))

    def _reset_steps(self) -> None:
        """Count the sessions of the episodes from 0."""
        self._batch.begins.fill(False)
        self._episode_steps = np.zeros(self.num_envs, np.int64) if self.model.may_leave else 0
        self._all_ended = False


def _add_masks(streams: Masks, infos: Infos) -> Infos:
    """Return infos with a mask of the streams that have them, as in Gymnasium's vector
    environments.
    """
    mask = streams.copy()
    return infos | {f"_{name}": mask for name in infos}


def _restrict_masks(infos: Mapping[str, Any], streams: Masks) -> Infos:
    """Return infos with their masks restricted to some streams."""
    return {name: mask & streams for name, mask in infos.items() if name.startswith("_")}


def _merge_infos(infos: Mapping[str, Any], others: Mapping[str, Any]) -> Infos:
    """Return the merged infos of some streams and of others."""
    merged = {**infos, **others}
    for name in infos.keys() & others.keys():
        first, second = infos[name], others[name]
        if name.startswith("_"):
            merged[name] = first | second
        else:
            merged[name] = np.where(others[f"_{name}"], second, first)
    return merged


def read_step(
    observations: Any, infos: dict[str, Any]
) -> tuple[NDArray[np.bool_], NDArray[np.int8], dict[str, Any]]:
    """Return which streams played a session in a step of a `ClickVectorEnv`, ``(B,)``, their clicks
    ``(B, K)``, and the infos with ``ranking``, ``regret`` and ``expected_reward``.
    """
    clicks, final = clicks_of(observations), infos.get("final_info")
    if final is None:  # with NEXT_STEP, some streams may only be reset
        return infos.get("_regret", np.zeros(len(clicks), np.bool_)), clicks, infos
    clicks = clicks.copy()
    for b in np.flatnonzero(infos["_final_obs"]):
        clicks[b] = clicks_of(infos["final_obs"][b])
    return np.ones(len(clicks), np.bool_), clicks, final
