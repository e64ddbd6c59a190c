"""A wrapper that adds the last list to the observation."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Dict, MultiBinary
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import ArrayLike

from ...core.checks import AN_ENV, check_kind
from ..base_env import name_of
from .actions import ranked_lists


class ListAwareObservation(gym.Wrapper, RecordConstructorArgs):
    """Wrapper that adds the last list to the observation, so that it says which items got the
    clicks.

    The clicks alone tell positions, but no items: a policy with a memory, such as a recurrent one
    or one behind ``FrameStackObservation``, can learn nothing about its user from them. Put
    wrappers of actions and stacks of frames outside of this one.

    Args:
        env: an environment whose action space is a `RankedList`, and whose items are the same in
            every session.

    Observation:
        A `Dict`: the clicks as ``clicks`` (if the observation of ``env`` is a `Dict`, its own
        keys), and ``ranking`` ``MultiBinary([K, L])``, 1 where a position of the last list showed
        an item; zeros after `reset`.

    Raises:
        TypeError: the action space is not a `RankedList`.
        ValueError: features are observed, so that an item id means another item in each session.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> from gymnasium.wrappers import FrameStackObservation
        >>> from clickgym.envs import ListAwareObservation
        >>> env = FrameStackObservation(ListAwareObservation(gym.make("PBMRank-v0")), 4)
        >>> observation, info = env.reset(seed=0)
        >>> observation, reward, terminated, truncated, info = env.step([3, 1, 4, 0, 5])
        >>> observation["ranking"].shape, observation["ranking"][-1].argmax(axis=1)
        ((4, 5, 10), array([3, 1, 4, 0, 5]))
    """

    def __init__(self, env: gym.Env) -> None:
        check_kind("env", env, gym.Env, AN_ENV)
        lists = ranked_lists(env.action_space, "Observations of ListAwareObservation")
        observed = env.observation_space
        if isinstance(observed, Dict) and "features" in observed.spaces:
            raise ValueError(
                f"{name_of(env)} has other items in every session, so that the ids of the last "
                "list mean nothing; ListAwareObservation is for items that stay"
            )
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self._rows_of_items = np.eye(lists.n_items, dtype=np.int8)
        self._shape = lists.n_positions, lists.n_items
        self.observation_space = Dict(_joined(observed, MultiBinary(self._shape)))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        return _joined(observation, np.zeros(self._shape, np.int8)), info

    def step(self, action: ArrayLike) -> tuple[dict[str, Any], Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        shown = self._rows_of_items[np.asarray(info.get("ranking", action))]
        return _joined(observation, shown), reward, terminated, truncated, info


def _joined(observation: Any, ranking: Any) -> dict[str, Any]:
    """Return an observation, or its space, with a list beside it."""
    is_dict = isinstance(observation, dict | Dict)
    return {**(observation if is_dict else {"clicks": observation}), "ranking": ranking}
