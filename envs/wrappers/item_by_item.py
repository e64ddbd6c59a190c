"""Wrappers with which a policy chooses a ranked list item by item, in K steps of `Discrete(L)`:
DQN, and with masks MaskablePPO.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Dict, Discrete, MultiBinary
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space, iterate
from numpy.typing import ArrayLike, NDArray

from ...core.checks import A_VECTOR_ENV, AN_ENV, check_kind, integers
from ..any_env import users_of
from .actions import order_of_items, ranked_lists, recorded


class Draft:
    """Unfinished lists, one for each stream, all of the same length.

    Args:
        lists: the space of lists.
        items: as in `order_of_items`.
        streams: ``()``, or ``(B,)`` for a vector environment.

    Attributes:
        placed: ``(*streams, K, L)`` int8, 1 if a position holds the item of a number.
        position: the next position.
    """

    def __init__(
        self, lists: gym.Space, items: ArrayLike | None, streams: tuple[int, ...] = ()
    ) -> None:
        lists = ranked_lists(lists, "Items chosen one by one")
        self.n_items, self.n_positions, self.streams = lists.n_items, lists.n_positions, streams
        self.items = order_of_items(items, self.n_items)
        self.clear()

    def clear(self) -> None:
        """Start new lists."""
        self.placed = np.zeros((*self.streams, self.n_positions, self.n_items), np.int8)
        self.position = 0

    def place(self, choices: Any) -> None:
        """Put the items of the chosen numbers, of shape ``streams``, at the next position; a number
        that is already on the list stands for the next one that is not.
        """
        numbers = integers("choice", choices, self.streams, 0, self.n_items)
        following = (numbers[..., None] + np.arange(self.n_items)) % self.n_items
        first = np.take_along_axis(self.left, following, axis=-1).argmax(axis=-1, keepdims=True)
        chosen = np.take_along_axis(following, first, axis=-1)
        np.put_along_axis(self.placed[..., self.position, :], chosen, 1, axis=-1)
        self.position += 1

    @property
    def complete(self) -> bool:
        """Whether all positions are filled."""
        return self.position == self.n_positions

    @property
    def left(self) -> NDArray[np.bool_]:
        """``(*streams, L)`` booleans: the numbers that are not yet placed."""
        return np.logical_not(self.placed.any(axis=-2))

    @property
    def rankings(self) -> NDArray[np.int64]:
        """Return the complete lists, ``(*streams, K)``."""
        return self.items[self.placed.argmax(axis=-1)]


def flat_draft(placed: NDArray[np.int8], last: NDArray[Any]) -> NDArray[np.float32]:
    """Return unfinished lists, ``placed`` of a `Draft`, and the last observations as arrays: the
    items on the list, the next position, and the last observation.
    """
    return np.concatenate(
        [placed.any(axis=-2), placed.any(axis=-1), last], axis=-1, dtype=np.float32
    )


def _with_draft(space: gym.Space, draft: Draft) -> Dict:
    placed = MultiBinary([draft.n_positions, draft.n_items])
    return Dict({**_as_dict(space, space), "placed": placed})


def _as_dict(space: gym.Space, value: Any) -> dict[str, Any]:
    """Return a space, or an observation of it, as a dict; one of a `Dict` keeps its keys."""
    return dict(value.items()) if isinstance(space, Dict) else {"observation": value}


def _seen(space: gym.Space, observation: Any, placed: NDArray[np.int8]) -> dict[str, Any]:
    """Return what a policy sees, in new arrays: an observation of a space, and what is placed."""
    return deepcopy({**_as_dict(space, observation), "placed": placed})


def _users_may_leave(env: gym.Env | VectorEnv) -> bool:
    """Whether an episode is a user's stay, so that a single list cannot be one."""
    users = users_of(env)
    return users is not None and users.may_leave


class ItemByItem(gym.Wrapper, RecordConstructorArgs):
    """Wrapper in which an episode is one list of K steps: each step chooses the item of the next
    position, from the top down.

    Use it for a policy of discrete actions (DQN). A choice that is already on the list stands for
    the next one, in the order of ``items``, that is not, so each item is shown once; ``placed``
    says what was placed. `action_masks` has the choices that are left, for a policy that supports
    masks (MaskablePPO of sb3-contrib). The policy sees the items above when it chooses the next
    one. A session costs K passes through the network. The reward comes with the last item. Set the
    discount to 1, because a smaller discount would reduce the reward for the items at the top.

    The sessions of ``env`` continue from one list to the next. `reset` starts a new list. It also
    resets ``env`` if it gets a seed or options, or if the episode of ``env`` has ended (for example
    by a time limit).

    Stateful users are the exception, because a list changes how its user clicks later: an episode
    is then an episode of ``env``. The step of the last item also starts the next list, and `reset`
    resets ``env``.

    Args:
        env: an environment whose action space is a `RankedList`.
        items: ``(L,)`` all items: choice j is ``items[j]``; None is ``0..L-1``. Draw the order at
            random if item ids carry information.

    Observation:
        A `Dict`: the last observation of ``env`` as ``observation`` (if that is a `Dict`, its own
        keys), and ``placed`` ``MultiBinary([K, L])``, 1 where a position holds the item of a
        number; the first row of zeros is the position to be filled. On the last step they are the
        clicks and the list that got them.

    Raises:
        TypeError: the action space is not a `RankedList`.
        ValueError: ``items`` is not a permutation; in ``step``, a number that is no choice.
        gymnasium.error.ResetNeeded: in ``step``, before `reset` starts a list.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> from clickgym.envs import ItemByItem
        >>> users = {"attraction": [1.0, 1.0, 0.3, 0.2], "examination": [1.0, 1.0]}
        >>> env = ItemByItem(gym.make("PBMRank-v0", **users))
        >>> observation, info = env.reset(seed=0)
        >>> observation, reward, terminated, truncated, info = env.step(1)
        >>> reward, terminated, env.action_masks()
        (0.0, False, array([ True, False,  True,  True]))
        >>> observation, reward, terminated, truncated, info = env.step(0)
        >>> reward, terminated, observation["observation"], observation["placed"].tolist()
        (2.0, True, array([1, 1], dtype=int8), [[0, 1, 0, 0], [1, 0, 0, 0]])
    """

    def __init__(self, env: gym.Env, items: ArrayLike | None = None) -> None:
        check_kind("env", env, gym.Env, AN_ENV)
        self._may_leave = _users_may_leave(env)
        self._draft = Draft(env.action_space, items)
        self.items = self._draft.items
        RecordConstructorArgs.__init__(self, items=recorded(items))
        gym.Wrapper.__init__(self, env)
        self.action_space = Discrete(self._draft.n_items)
        self.observation_space = _with_draft(env.observation_space, self._draft)
        self._observation: Any = None
        self._under_way = False
        self._ended = True  # the episode of env, not the list

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start a list. With a seed or options, or if the episode of ``env`` has ended, also reset
        ``env``.

        Returns:
            The observation; and the info of the reset of ``env``, or an empty one.
        """
        info: dict[str, Any] = {}
        if self._ended or self._may_leave or seed is not None or options:
            self._observation, info = self.env.reset(seed=seed, options=options)
            self._ended = False
        self._draft.clear()
        self._under_way = True
        return self._observe(), info

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Choose the item of the next position.

        Args:
            action: an integer j, which represents the item ``items[j]``, or the next one that is
                left.

        Returns:
            The observation; the reward, 0 before the last item; whether the list is complete, or a
            stateful user has left; whether the sessions were truncated; the info, empty before the
            last item.
        """
        if not self._under_way:
            raise gym.error.ResetNeeded("call reset() first: it starts a list")
        self._draft.place(action)
        if not self._draft.complete:
            return self._observe(), 0.0, False, False, {}
        self._observation, reward, ended, truncated, info = self.env.step(self._draft.rankings)
        self._ended = ended or truncated
        self._under_way = self._may_leave and not self._ended
        if self._under_way:
            self._draft.clear()
        is_over = ended or not self._may_leave
        return self._observe(), float(reward), is_over, truncated, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Return ``(L,)`` booleans: the choices that are left for the next step."""
        return self._draft.left

    def _observe(self) -> dict[str, Any]:
        return _seen(self.env.observation_space, self._observation, self._draft.placed)


class ItemByItemVector(VectorWrapper):
    """`ItemByItem` for a vector environment: K steps of all streams together, then one session of
    each stream.

    A complete list ends the episode of every stream. The step of the last item returns the first
    observation of the next list. The last observation of the complete list is then in
    ``final_obs``, and the info of the session in ``final_info``. The sessions of the streams
    continue. For stateful users, as in `ItemByItem`, episodes are those of ``env``.

    Args:
        env: a vector environment whose single action space is a `RankedList`, with autoreset mode
            ``SAME_STEP``. All streams must end together, except those of stateful users.
        items: ``(L,)`` as in `ItemByItem`, the same for all streams.

    Raises:
        TypeError, ValueError, gymnasium.error.ResetNeeded: as in `ItemByItem`; ValueError also for
            another autoreset mode, and in ``step`` if only some streams ended.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> from clickgym.envs import ItemByItemVector
        >>> envs = gym.make_vec("PBMRank-v0", num_envs=3, autoreset_mode="SameStep")
        >>> envs = ItemByItemVector(envs)
        >>> observations, infos = envs.reset(seed=0)
        >>> for k in range(5):
        ...     choices = envs.action_masks().argmax(axis=1)
        ...     observations, rewards, terminations, truncations, infos = envs.step(choices)
        >>> terminations.tolist(), infos["final_info"]["regret"].shape
        ([True, True, True], (3,))
        >>> bool(observations["placed"].any())
        False
    """

    def __init__(self, env: VectorEnv, items: ArrayLike | None = None) -> None:
        check_kind("env", env, VectorEnv, A_VECTOR_ENV)
        super().__init__(env)
        self.autoreset_mode = mode = env.metadata.get("autoreset_mode")
        if mode is not AutoresetMode.SAME_STEP:
            raise ValueError(f"autoreset_mode is {getattr(mode, 'name', mode)}; expected SAME_STEP")
        self._may_leave = _users_may_leave(env)
        self._draft = Draft(env.single_action_space, items, (env.num_envs,))
        self.items = self._draft.items
        self.single_action_space = Discrete(self._draft.n_items)
        self.action_space = batch_space(self.single_action_space, env.num_envs)
        self.single_observation_space = _with_draft(env.single_observation_space, self._draft)
        self.observation_space = batch_space(self.single_observation_space, env.num_envs)
        self._observations: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start a list on each stream. The first time, with a seed or options, and for stateful
        users, also reset ``env``.

        Returns:
            The observations; and the infos of the reset of ``env``, or empty infos.
        """
        infos: dict[str, Any] = {}
        if self._observations is None or self._may_leave or seed is not None or options:
            self._observations, infos = self.env.reset(seed=seed, options=options)
        self._draft.clear()
        return self._observe(), infos

    def step(
        self, actions: Any
    ) -> tuple[
        dict[str, Any], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]
    ]:
        """Choose the item of the next position on each stream.

        Args:
            actions: ``(B,)`` integers j, as in `ItemByItem`.

        Returns:
            The observations; the rewards, 0 before the last item; whether the lists are complete;
            whether the sessions were truncated; the infos, empty before the last item.
        """
        if self._observations is None:
            raise gym.error.ResetNeeded("call reset() first: it starts a list on each stream")
        self._draft.place(actions)
        no_stream = np.zeros(self.num_envs, np.bool_)
        if not self._draft.complete:
            return self._observe(), np.zeros(self.num_envs), no_stream, no_stream.copy(), {}
        self._observations, rewards, terminations, truncations, infos = self.env.step(
            self._draft.rankings
        )
        rewards, ended = np.asarray(rewards, np.float64), terminations | truncations
        if self._may_leave:
            self._end(infos, ended)
            return self._observe(), rewards, terminations, truncations, infos
        if ended.any() != ended.all():
            which = np.flatnonzero(ended).tolist()
            raise ValueError(f"the streams must end together; those that ended: {which}")
        infos = self._next_lists(infos, ended.any())
        return self._observe(), rewards, ~no_stream, truncations, infos

    def action_masks(self) -> NDArray[np.bool_]:
        """Return ``(B, L)`` booleans: the choices that are left for the next step of each
        stream.
        """
        return self._draft.left

    def _end(self, infos: dict[str, Any], ended: NDArray[np.bool_]) -> None:
        """Add the complete lists to the last observations of episodes that ended, and start the
        next lists.
        """
        space = self.env.single_observation_space
        for b in np.flatnonzero(ended):
            infos["final_obs"][b] = _seen(space, infos["final_obs"][b], self._draft.placed[b])
        self._draft.clear()

    def _next_lists(self, infos: dict[str, Any], ended: bool) -> dict[str, Any]:
        """Start the next lists in the same step; the infos describe the complete lists."""
        if ended:  # the episodes of env ended, too, and the infos are those of the next ones
            last = infos["final_obs"], infos["final_info"]
            infos = {
                name: value
                for name, value in infos.items()
                if name.removeprefix("_") not in ("final_obs", "final_info")
            }
        else:
            last = iterate(self.env.observation_space, deepcopy(self._observations)), infos
            infos = {}
        final = np.empty(self.num_envs, object)
        final[:] = [
            {**_as_dict(self.env.single_observation_space, observation), "placed": placed}
            for observation, placed in zip(last[0], self._draft.placed, strict=True)
        ]
        self._draft.clear()
        all_streams = np.ones(self.num_envs, np.bool_)
        return {
            **infos,
            "final_obs": final,
            "_final_obs": all_streams,
            "final_info": last[1],
            "_final_info": all_streams.copy(),
        }

    def _observe(self) -> dict[str, Any]:
        return _seen(self.env.single_observation_space, self._observations, self._draft.placed)
