"""`ScoresAction`, with which a policy of continuous actions chooses a list, and action spaces for
policies that cannot output lists.

These action spaces turn their actions into lists, for one stream or for many. stable-baselines3
saves the action space with a model, so a trained policy knows which lists its actions mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import ArrayLike, NDArray

from ...core.checks import AN_ENV, as_numbers, check_kind, short_repr
from ...core.sums import weighted_sums
from ..spaces import RankedList, without_repeats


class ListActionSpace:
    """Base class of the action spaces.

    Args:
        lists: the action space of the environment.
        items: ``(L,)`` all items, in the order of the numbers that actions use; None is
            ``0..L-1``. Learners number the items in a random order.
    """

    def _describe(self, lists: gym.Space, items: NDArray[np.int64] | None) -> None:
        if not isinstance(lists, RankedList):
            raise TypeError(f"expected ranked lists as actions; the action space is {lists}")
        self.n_items, self.n_positions = lists.n_items, lists.n_positions
        self.items = np.arange(self.n_items) if items is None else items

    def lists(self, actions: Any, observations: Any = None) -> NDArray[np.int64]:
        """Return the lists ``(..., K)`` of actions, of one stream or of many.

        Args:
            actions: samples of this space.
            observations: those of the environment, before the lists are shown; only weights of
                features need them.
        """
        raise NotImplementedError


class NumberedLists(ListActionSpace, RankedList):
    """The action is a list of numbers; a repeated item is shown once."""

    def __init__(self, lists: Any, observed: gym.Space, items: Any = None) -> None:
        self._describe(lists, items)
        RankedList.__init__(self, self.n_items, self.n_positions)

    def lists(self, actions: Any, observations: Any = None) -> NDArray[np.int64]:
        return self.items[without_repeats(actions, self.n_items)]


class Scores(ListActionSpace, Box):
    """The action has a score for each item: the list shows the K items with the largest scores.
    Where candidates have features, the action has a weight for each feature instead, and the score
    of a candidate is the weighted sum of its features.

    Args:
        lists, items: as for `ListActionSpace`; candidates with features are not numbered anew.
        observed: the observation space of the environment, with ``features`` ``(L, d)`` or without.
    """

    def __init__(self, lists: Any, observed: gym.Space, items: Any = None) -> None:
        features: Any = observed.spaces.get("features") if isinstance(observed, Dict) else None
        self.of_features = features is not None
        self._describe(lists, None if self.of_features else items)
        size = features.shape[1] if self.of_features else self.n_items
        Box.__init__(self, -1.0, 1.0, (size,), np.float32)

    def lists(self, actions: Any, observations: Any = None) -> NDArray[np.int64]:
        """Return the lists ``(..., K)`` of actions ``(..., L)`` or ``(..., d)``, as
        `ListActionSpace.lists` does; a ValueError names a bad number.
        """
        if not self.of_features:
            scores = as_numbers("scores", actions, (*np.shape(actions)[:-1], self.n_items))
        elif isinstance(observations, Mapping) and "features" in observations:
            rows = np.asarray(observations["features"], np.float64)
            weights = as_numbers("weights", actions, (*rows.shape[:-2], rows.shape[-1]))
            scores = weighted_sums(rows, weights[..., None, :])
        else:
            raise ValueError(
                "actions are feature weights, so the observation must have 'features'; got "
                f"{short_repr(observations)}"
            )
        return self.items[np.argsort(-scores, axis=-1, kind="stable")[..., : self.n_positions]]


class ScoresAction(gym.ActionWrapper, RecordConstructorArgs):
    """Actions are scores of the items: the list shows the K items with the largest scores, the
    largest first. Where candidates have features, actions are weights of the features instead.

    Use this wrapper for a policy with continuous actions (SAC, TD3, DDPG). If scores are uniform,
    every list is equally likely. Many different scores give the same list, and the reward is a step
    function of the scores. Only the order of the scores counts, so numbers beyond -1 and 1 are
    valid, too. Among items with equal scores, the item with the lower number comes first; ties are
    common if a policy clips its actions.

    In a contextual environment, each row holds another candidate in every session, so scores of
    rows cannot be learned. Actions are therefore feature weights, and the score of a candidate is
    the weighted sum of its features in the last observation, in double precision. A positive
    multiple of the weights chooses the same list. The entropy of the weights therefore differs from
    the entropy of the lists, which misleads the automatic ``ent_coef`` of SAC: use a fixed value,
    such as 0.01.

    Args:
        env: an environment whose action space is a `RankedList`. Wrappers that flatten or normalise
            the observation belong outside of this one.

    Raises:
        TypeError: the action space is not a `RankedList`.
        ValueError: in ``step``, a wrong shape or a number that is not finite.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> from clickgym.envs import ScoresAction
        >>> users = {"attraction": [0.5, 0.4, 0.3, 0.2], "examination": [1.0, 0.5]}
        >>> env = ScoresAction(gym.make("PBMRank-v0", **users))
        >>> env.action_space.shape
        (4,)
        >>> env.action([-0.3, 0.9, 0.1, 0.2])
        array([1, 3])
        >>> ScoresAction(gym.make("ContextualPBMRank-v0")).action_space.shape
        (10,)
    """

    def __init__(self, env: gym.Env) -> None:
        check_kind("env", env, gym.Env, AN_ENV)
        RecordConstructorArgs.__init__(self)
        gym.ActionWrapper.__init__(self, env)
        self._space = Scores(env.action_space, env.observation_space)
        self.action_space = self._space
        self._observation: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        self._observation, info = self.env.reset(seed=seed, options=options)
        return self._observation, info

    def step(self, action: ArrayLike) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self._observation, *outcome = self.env.step(self.action(action))
        return self._observation, *outcome

    def action(self, action: ArrayLike) -> NDArray[np.int64]:
        """Return the ``(K,)`` list that an action represents."""
        if self._space.of_features and self._observation is None:
            raise gym.error.ResetNeeded("call reset() before the first step()")
        return self._space.lists(action, self._observation)
