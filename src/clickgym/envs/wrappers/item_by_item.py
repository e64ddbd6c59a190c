"""The wrapper `ItemByItem`, with which a policy with discrete actions (DQN, MaskablePPO) chooses a
ranked list item by item.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Dict, Discrete, MultiBinary
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from ...core.checks import AN_ENV, as_integers, check_kind
from ..env_properties import stream_of, user_model_of
from .actions import ListActionSpace


class Choices(ListActionSpace, Discrete):
    """Action space in which an action is the number of the item at the next position.

    Args:
        lists, items: see `ListActionSpace`.
        observed: the observation space of the environment.
    """

    def __init__(self, lists: Any, observed: gym.Space, items: Any = None) -> None:
        self._set_sizes(lists, items)
        self.observed = observed
        Discrete.__init__(self, self.n_items)


class PartialLists:
    """Unfinished lists, one for each stream, all of the same length.

    Args:
        space: the action space from which the items are chosen.
        streams: ``(B,)`` for B streams; by default ``()``, for one stream.

    Attributes:
        placed: ``(*streams, K, L)`` int8, 1 where a position contains the item with a number.
        position: the next position to fill, counted from 0.
    """

    def __init__(self, space: Choices, streams: tuple[int, ...] = ()) -> None:
        self.space, self.streams = space, streams
        self.clear()

    def clear(self) -> None:
        """Remove all items, to start new lists."""
        sizes = self.space.n_positions, self.space.n_items
        self.placed, self.position = np.zeros((*self.streams, *sizes), np.int8), 0

    def place(self, choices: Any) -> None:
        """Place the chosen item on each stream's list, at the next position. If the item is already
        on the list, place the next item by number that is not yet on the list.

        Args:
            choices: the numbers of the chosen items, in an array of shape ``streams``.
        """
        n_items = self.space.n_items
        numbers = as_integers("choice", choices, self.streams, 0, n_items)
        candidates = (numbers[..., None] + np.arange(n_items)) % n_items
        is_available = np.take_along_axis(self.available, candidates, axis=-1)
        first = is_available.argmax(axis=-1, keepdims=True)
        chosen = np.take_along_axis(candidates, first, axis=-1)
        np.put_along_axis(self.placed[..., self.position, :], chosen, 1, axis=-1)
        self.position += 1

    @property
    def is_complete(self) -> bool:
        """True if all positions are filled."""
        return self.position == self.space.n_positions

    @property
    def available(self) -> NDArray[np.bool_]:
        """``(*streams, L)`` True for each number whose item is not yet on the list."""
        return np.logical_not(self.placed.any(axis=-2))

    @property
    def rankings(self) -> NDArray[np.int64]:
        """``(*streams, K)`` the item ids of the complete lists."""
        return self.space.items[self.placed.argmax(axis=-1)]

    def observe(self, observation: Any, streams: Any = ...) -> dict[str, Any]:
        """Return the observation of a policy: the environment's observation and a copy of
        ``placed``.

        Args:
            observation: the environment's observation, of one stream or of all streams.
            streams: the index of the stream; by default, all streams.
        """
        last = observation if isinstance(observation, dict) else {"observation": observation}
        return {**last, "placed": self.placed[streams].copy()}


def space_of_partial_lists(choices: Choices) -> Dict:
    """Return the space of the observations that `PartialLists.observe` returns."""
    space = choices.observed
    spaces = space.spaces if isinstance(space, Dict) else {"observation": space}
    return Dict({**spaces, "placed": MultiBinary([choices.n_positions, choices.n_items])})


def lists_are_episodes(env: Any) -> bool:
    """Return whether an episode of item-by-item choices is one list. For users who may leave, an
    episode is an episode of ``env`` instead, because a list may change how its user clicks later.
    ``env`` may be a vector environment.
    """
    model = user_model_of(stream_of(env) if isinstance(env, VectorEnv) else env)
    return model is None or not model.may_leave


class ItemByItem(gym.Wrapper, RecordConstructorArgs):
    """Wrapper in which an episode is one list: each of its K steps chooses the item at the next
    position, from the top down.

    Use this wrapper for a policy with discrete actions (DQN). If the chosen item is already on the
    list, the next item by number that is not yet on the list is placed instead, so each item is
    shown once; ``placed`` in the observation shows the items that were placed. For a policy that
    supports masks (MaskablePPO from sb3-contrib), `action_masks` returns the choices that are left.
    When the policy chooses an item, it sees the items above. A session costs K passes through the
    network. The reward comes with the last item. Set the discount to 1, because a smaller discount
    would reduce the reward for the items at the top.

    The sessions of ``env`` continue from one list to the next. `reset` starts a new list, and
    resets ``env`` only if you pass a seed or options, or if the episode of ``env`` has ended (for
    example by a time limit).

    Users with memory are the exception, because a list changes how its user clicks later. For
    these users, an episode is an episode of ``env``: the step that places the last item of a
    list also starts the next list, and `reset` always resets ``env``.

    Args:
        env: an environment whose action space is a `RankedList`, or ``MultiDiscrete([L] * K)`` in
            an environment of another package.

    Observation:
        A `Dict` with two parts. The first part is the last observation of ``env``, as
        ``observation`` or, if it is a `Dict`, under its own keys. The second part is ``placed``,
        ``MultiBinary([K, L])``, with 1 where a position contains an item; the first row of zeros is
        the next position to fill. After the last step of a list, the observation contains this
        list and the clicks on it.

    Raises:
        TypeError: the actions are not ranked lists.
        ValueError: an action of ``step`` is not an item.
        gymnasium.error.ResetNeeded: ``step`` was called before `reset` started an episode of
            ``env``.

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

    def __init__(self, env: gym.Env) -> None:
        check_kind("env", env, gym.Env, AN_ENV)
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        choices = Choices(env.action_space, env.observation_space)
        self.action_space = choices
        self.observation_space = space_of_partial_lists(choices)
        self._partial_lists, self._is_one_list = PartialLists(choices), lists_are_episodes(env)
        self._observation: Any = None  # the last observation; None if env's episode is over

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start a new list. Also reset ``env`` if a seed or options are given, if the episode of
        ``env`` has ended, or if users have a memory.

        Returns:
            The observation; and the info from the reset of ``env``, or an empty dict if ``env`` was
            not reset.
        """
        info: dict[str, Any] = {}
        if self._observation is None or not self._is_one_list or seed is not None or options:
            self._observation, info = self.env.reset(seed=seed, options=options)
        self._partial_lists.clear()
        return self._observe(), info

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Choose the item at the next position.

        Args:
            action: the number of the item; if this item is already on the list, the next item by
                number that is not yet on the list is placed.

        Returns:
            The observation; the reward, which is 0 before the last item; ``terminated``, True if
            the list is complete (for users with memory, if the user has left); ``truncated``, True
            if ``env`` truncated its episode; and the info, which is empty before the last item.
        """
        if self._observation is None:
            raise gym.error.ResetNeeded("call reset() before step(), to start a list")
        self._partial_lists.place(action)
        if not self._partial_lists.is_complete:
            return self._observe(), 0.0, False, False, {}
        ranking = self._partial_lists.rankings
        self._observation, reward, ended, truncated, info = self.env.step(ranking)
        is_over = ended or self._is_one_list
        if not is_over and not truncated:
            self._partial_lists.clear()  # the next list of the same user
        observation = self._observe()
        self._partial_lists.clear()
        if ended or truncated:
            self._observation = None
        return observation, float(reward), is_over, truncated, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Return a mask of the items that are not yet on the list, ``(L,)`` booleans."""
        return self._partial_lists.available

    def _observe(self) -> dict[str, Any]:
        # Gymnasium expects new arrays at every step.
        return deepcopy(self._partial_lists.observe(self._observation))
