"""Wrappers that add the last list to the observation."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Dict, MultiBinary
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from ...core.checks import A_VECTOR_ENV, AN_ENV, check_kind
from ..any_env import lists_shown
from ..base_env import name_of
from ..codecs import ranked_lists


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
        self._eye = _rows_of_items(self, env, env.action_space, env.observation_space)
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self._nothing = np.zeros((env.action_space.n_positions, len(self._eye)), np.int8)  # type: ignore[attr-defined]
        self.observation_space = _with_list(env.observation_space, self._nothing)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        return _joined(observation, self._nothing.copy()), info

    def step(self, action: ArrayLike) -> tuple[dict[str, Any], Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        shown = _joined(observation, self._eye[np.asarray(info.get("ranking", action))])
        return shown, reward, terminated, truncated, info


class ListAwareVectorObservation(VectorWrapper):
    """`ListAwareObservation` for a vector environment, in both autoreset modes.

    Args:
        env: a vector environment whose single action space is a `RankedList`.

    Raises:
        TypeError, ValueError: as `ListAwareObservation`.
    """

    def __init__(self, env: VectorEnv) -> None:
        check_kind("env", env, VectorEnv, A_VECTOR_ENV)
        super().__init__(env)
        lists, observed = env.single_action_space, env.single_observation_space
        self.autoreset_mode = env.metadata.get("autoreset_mode")
        self._eye = _rows_of_items(self, env, lists, observed)
        nothing = np.zeros((lists.n_positions, len(self._eye)), np.int8)  # type: ignore[attr-defined]
        self.single_observation_space = _with_list(observed, nothing)
        self.observation_space = batch_space(self.single_observation_space, env.num_envs)
        self._ended = np.zeros(env.num_envs, np.bool_)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        observations, infos = self.env.reset(seed=seed, options=options)
        self._ended[:] = False
        space: Any = self.observation_space
        return _joined(observations, np.zeros(space["ranking"].shape, np.int8)), infos

    def step(self, actions: ArrayLike) -> tuple[dict[str, Any], Any, Any, Any, dict[str, Any]]:
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        lists, over = self._eye[lists_shown(infos, actions)], terminations | truncations
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            for b in np.flatnonzero(over):
                infos["final_obs"][b] = _joined(infos["final_obs"][b], lists[b].copy())
            lists[over] = 0
        else:  # this step reset the streams that ended with the last one
            lists[self._ended] = 0
            self._ended = over
        return _joined(observations, lists), rewards, terminations, truncations, infos


def _rows_of_items(
    wrapper: Any, env: Any, lists: gym.Space, observed: gym.Space
) -> NDArray[np.int8]:
    """Return ``(L, L)`` a row for each item."""
    name = type(wrapper).__name__
    lists = ranked_lists(lists, f"Observations of {name}")
    if isinstance(observed, Dict) and "features" in observed.spaces:
        raise ValueError(
            f"{name_of(env)} has other items in every session, so that the ids of the last list "
            f"mean nothing; {name} is for items that stay"
        )
    return np.eye(lists.n_items, dtype=np.int8)


def _with_list(observed: gym.Space, nothing: NDArray[np.int8]) -> Dict:
    return Dict(_joined(observed, MultiBinary(nothing.shape)))


def _joined(observation: Any, ranking: Any) -> dict[str, Any]:
    """Return an observation, or its space, with a list beside it."""
    is_dict = isinstance(observation, dict | Dict)
    return {**(observation if is_dict else {"clicks": observation}), "ranking": ranking}
