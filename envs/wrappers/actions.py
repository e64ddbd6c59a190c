"""Wrappers with which a policy of continuous actions chooses ranked lists: SAC, TD3, DDPG.

Number j of an action represents the item ``items[j]``. Draw this order at random if ids carry
information, for example if an instance is stored in order of attraction.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import VectorActionWrapper, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from ...core.checks import A_VECTOR_ENV, AN_ENV, check_kind, numbers
from ..spaces import RankedList, named_ranking


def recorded(values: ArrayLike | None) -> list[Any] | None:
    """Return an argument in a form for the spec of a wrapped environment: specs are compared, and
    written as JSON.
    """
    return None if values is None else np.asarray(values).tolist()


def ranked_lists(space: gym.Space, noun: str) -> RankedList:
    """Return a space of lists; the TypeError names the actions that would represent them."""
    if not isinstance(space, RankedList):
        raise TypeError(f"{noun} represent ranked lists; the action space is {space}")
    return space


def order_of_items(items: ArrayLike | None, n_items: int) -> NDArray[np.int64]:
    """Return the order in which action numbers represent items: ``(L,)`` all items, or None for
    ``0..L-1``; the ValueError says what is no permutation.
    """
    if items is None:
        return np.arange(n_items)
    return named_ranking("items", items, n_items, n_items).copy()


def scores_space(n_items: int) -> Box:
    """Return the space of the scores of L items."""
    return Box(-1.0, 1.0, (n_items,), np.float32)


def lists_of_scores(
    scores: Any, items: NDArray[np.int64], n_positions: int, streams: tuple[int, ...] = ()
) -> NDArray[np.int64]:
    """Return the ``(*streams, K)`` lists that scores ``(*streams, L)`` represent.

    Args:
        scores: finite numbers.
        items: ``(L,)`` the item of each score.
        n_positions: K.
        streams: ``()``, or ``(B,)`` for a vector environment.

    Raises:
        ValueError: another shape, or the first bad score.
    """
    values = numbers("scores", scores, (*streams, len(items)))
    return items[np.argsort(-values, axis=-1, kind="stable")[..., :n_positions]]


class ScoresAction(gym.ActionWrapper, RecordConstructorArgs):
    """Actions are scores of the items: the list shows the K items with the largest scores, the
    largest first.

    Use it for a policy with continuous actions (SAC, TD3, DDPG). If scores are uniform, every list
    is equally likely. Many different scores give the same list, and the reward is a step function
    of the scores.

    Only the order of the scores counts, so scores beyond -1 and 1 are valid, too. Exact ties are
    common if a policy clips its actions (several scores are 1). Then the item that comes first in
    ``items`` wins.

    Args:
        env: an environment whose action space is a `RankedList`.
        items: ``(L,)`` all items: score j belongs to ``items[j]``; None is ``0..L-1``. Draw the
            order at random if item ids carry information, because ties favour the items that come
            first.

    Raises:
        TypeError: the action space is not a `RankedList`.
        ValueError: ``items`` is not a permutation; in ``step``, a wrong shape or a score that is
            not finite.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> from clickgym.envs import ScoresAction
        >>> users = {"attraction": [0.5, 0.4, 0.3, 0.2], "examination": [1.0, 0.5]}
        >>> env = ScoresAction(gym.make("PBMRank-v0", **users))
        >>> env.action_space
        Box(-1.0, 1.0, (4,), float32)
        >>> env.action([-0.3, 0.9, 0.1, 0.2])
        array([1, 3])
    """

    def __init__(self, env: gym.Env, items: ArrayLike | None = None) -> None:
        check_kind("env", env, gym.Env, AN_ENV)
        self._lists = ranked_lists(env.action_space, "Scores")
        self.items = order_of_items(items, self._lists.n_items)
        RecordConstructorArgs.__init__(self, items=recorded(items))
        gym.ActionWrapper.__init__(self, env)
        self.action_space = scores_space(self._lists.n_items)

    def action(self, action: ArrayLike) -> NDArray[np.int64]:
        """Return the ``(K,)`` list that an action represents."""
        return lists_of_scores(action, self.items, self._lists.n_positions)


class ScoresVectorAction(VectorActionWrapper):
    """`ScoresAction` for a vector environment.

    Args:
        env: a vector environment whose single action space is a `RankedList`.
        items: ``(L,)`` as in `ScoresAction`, the same for all streams.

    Raises:
        TypeError, ValueError: as `ScoresAction`.
    """

    def __init__(self, env: VectorEnv, items: ArrayLike | None = None) -> None:
        check_kind("env", env, VectorEnv, A_VECTOR_ENV)
        super().__init__(env)
        self.autoreset_mode = env.metadata.get("autoreset_mode")
        self._lists = ranked_lists(env.single_action_space, "Scores")
        self.items = order_of_items(items, self._lists.n_items)
        self.single_action_space = scores_space(self._lists.n_items)
        self.action_space = batch_space(self.single_action_space, env.num_envs)

    def actions(self, actions: ArrayLike) -> NDArray[np.int64]:
        """Return the ``(B, K)`` lists that the actions of B streams represent."""
        return lists_of_scores(actions, self.items, self._lists.n_positions, (self.num_envs,))
