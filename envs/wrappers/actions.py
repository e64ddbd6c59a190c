"""Wrappers with which a policy of continuous actions chooses ranked lists: SAC, TD3, DDPG.

Number j of an action represents the item ``items[j]``. Draw this order at random if ids carry
information, for example if an instance is stored in order of attraction.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import VectorActionWrapper, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from ...core.checks import A_VECTOR_ENV, AN_ENV, check_kind
from ..codecs import ScoresCodec


def recorded(values: ArrayLike | None) -> list[Any] | None:
    """Return an argument in a form for the spec of a wrapped environment: specs are compared, and
    written as JSON.
    """
    return None if values is None else np.asarray(values).tolist()


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
            nan.

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
        self._codec = ScoresCodec(env.action_space, items)
        RecordConstructorArgs.__init__(self, items=recorded(items))
        gym.ActionWrapper.__init__(self, env)
        self.action_space = self._codec.space

    def action(self, action: ArrayLike) -> NDArray[np.int64]:
        """Return the ``(K,)`` list that an action represents."""
        return self._codec.decode(action)


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
        self._codec = ScoresCodec(env.single_action_space, items, (env.num_envs,))
        self.single_action_space = self._codec.space
        self.action_space = batch_space(self._codec.space, env.num_envs)

    def actions(self, actions: ArrayLike) -> NDArray[np.int64]:
        """Return the ``(B, K)`` lists that the actions of B streams represent."""
        return self._codec.decode(actions)
