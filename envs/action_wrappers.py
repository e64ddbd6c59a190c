"""Wrappers that let a policy which chooses numbers independently of one another choose ranked lists."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import MultiDiscrete
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import VectorActionWrapper, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from .spaces import RankedList, check_ranking, decode_lehmer

__all__ = ["LehmerAction", "LehmerVectorAction"]


class _Code:
    """The Lehmer code of the lists of one `RankedList` space, counting the items in a given order."""

    def __init__(self, lists: gym.Space, items: ArrayLike | None) -> None:
        if not isinstance(lists, RankedList):
            raise TypeError(f"Lehmer codes stand for ranked lists, but the action space is {lists}")
        n_items = lists.n_items
        self.items = check_ranking(np.arange(n_items) if items is None else items, n_items, n_items)
        self.sizes = n_items - np.arange(lists.n_positions)
        self.space = MultiDiscrete(self.sizes)

    def decode(self, codes: Any, shape: tuple[int, ...]) -> NDArray[np.int64]:
        codes = np.asarray(codes)
        if codes.shape != shape or codes.dtype.kind not in "iu":
            raise ValueError(f"a code is an integer array of shape {shape}; got {codes.dtype} of shape {codes.shape}")
        bad = np.argwhere((codes < 0) | (codes >= self.sizes))
        if len(bad):
            k = bad[0][-1]
            raise ValueError(f"code {codes[tuple(bad[0])]} at position {k} is not in 0 to {self.sizes[k] - 1}")
        return self.items[decode_lehmer(codes)]


class LehmerAction(gym.ActionWrapper, RecordConstructorArgs):
    """Actions are Lehmer codes: number k picks one of the L - k items that are not yet on the list.

    Use it for a policy that takes a plain `MultiDiscrete` and draws its numbers independently (PPO and A2C of
    stable-baselines3). On `RankedList` itself such a policy proposes duplicates (45 % of uniform draws at L = 6, K = 3), and no
    mask per position forbids them. Codes are one-to-one with lists, so that every list can be learned, none is favoured, and
    the probability of a code is the probability of its list.

    Args:
        env: an environment whose action space is a `RankedList`.
        items: ``(L,)`` all items, in the order in which codes count them; None is ``0..L-1``. What number k picks depends on
            those before it and on this order: draw it at random where ids may tell something, as where an
            instance is stored in order of attraction.

    Raises:
        TypeError: the action space is not a `RankedList`.
        ValueError: ``items`` is not a permutation; in ``step``, a code that stands for no list.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> from clickgym.envs import LehmerAction
        >>> env = LehmerAction(gym.make("PBMRank-v0", attraction=[0.5, 0.4, 0.3, 0.2], examination=[1.0, 0.5]))
        >>> env.action_space
        MultiDiscrete([4 3])
        >>> env.action([1, 1])
        array([1, 2])
    """

    def __init__(self, env: gym.Env, items: ArrayLike | None = None) -> None:
        RecordConstructorArgs.__init__(self, items=items)
        gym.ActionWrapper.__init__(self, env)
        self._code = _Code(env.action_space, items)
        self.action_space = self._code.space

    def action(self, action: ArrayLike) -> NDArray[np.int64]:
        """The ``(K,)`` list for which the ``(K,)`` code stands."""
        return self._code.decode(action, self._code.sizes.shape)


class LehmerVectorAction(VectorActionWrapper):
    """`LehmerAction` for a vector environment.

    Args:
        env: a vector environment whose single action space is a `RankedList`.
        items: as in `LehmerAction`, the same for all streams.

    Raises:
        TypeError, ValueError: as `LehmerAction`.
    """

    def __init__(self, env: VectorEnv, items: ArrayLike | None = None) -> None:
        super().__init__(env)
        self._code = _Code(env.single_action_space, items)
        self.single_action_space = self._code.space
        self.action_space = batch_space(self._code.space, env.num_envs)

    def actions(self, actions: ArrayLike) -> NDArray[np.int64]:
        """The ``(B, K)`` lists for which the ``(B, K)`` codes stand."""
        return self._code.decode(actions, (self.num_envs, *self._code.sizes.shape))
