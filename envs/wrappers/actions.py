"""Wrappers with which a policy that cannot output a list chooses one, and their action spaces.

Such an action space makes lists of its own actions, of one stream or of many. stable-baselines3
saves it with a model, so a trained policy knows the lists that its actions mean.

Number j of an action represents the item ``items[j]``. Draw this order at random if ids carry
information, for example if an instance is stored in order of attraction.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import ArrayLike, NDArray

from ...core.checks import AN_ENV, check_kind, numbers, short
from ...core.sums import weighted_sums
from ..spaces import RankedList, named_ranking, without_repeats


def recorded(values: ArrayLike | None) -> list[Any] | None:
    """Return an argument in a form for the spec of a wrapped environment: specs are compared, and
    written as JSON.
    """
    return None if values is None else np.asarray(values).tolist()


class OfLists:
    """What the action spaces have in common.

    Args:
        lists: the action space of the environment.
        items: ``(L,)`` all items, in the order of the numbers; None is ``0..L-1``.
    """

    def _describe(self, lists: gym.Space, items: ArrayLike | None = None) -> None:
        if not isinstance(lists, RankedList):
            raise TypeError(f"expected ranked lists as actions; the action space is {lists}")
        self.n_items, self.n_positions = lists.n_items, lists.n_positions
        order = np.arange(self.n_items) if items is None else items
        self.items = named_ranking("items", order, self.n_items, self.n_items).copy()

    def lists(self, actions: Any, features: Any = None) -> NDArray[np.int64]:
        """Return the lists ``(..., K)`` of actions, of one stream or of many."""
        raise NotImplementedError


class NumberedLists(OfLists, RankedList):
    """The action is a list of numbers."""

    def __init__(self, lists: Any, items: ArrayLike | None = None) -> None:
        self._describe(lists, items)
        RankedList.__init__(self, self.n_items, self.n_positions)

    def lists(self, actions: Any, features: Any = None) -> NDArray[np.int64]:
        """Return the lists ``(..., K)`` of actions ``(..., K)``; a repeated item is shown once."""
        return self.items[without_repeats(actions, self.n_items)]


class Scores(OfLists, Box):
    """The action has a score for each item: the list shows the K items with the largest."""

    def __init__(self, lists: Any, items: ArrayLike | None = None) -> None:
        self._describe(lists, items)
        Box.__init__(self, -1.0, 1.0, (self.n_items,), np.float32)

    def lists(self, actions: Any, features: Any = None) -> NDArray[np.int64]:
        """Return the lists ``(..., K)`` of scores ``(..., L)``; a ValueError names a bad score."""
        scores = numbers("scores", actions, (*np.shape(actions)[:-1], self.n_items))
        return self.items[np.argsort(-scores, axis=-1, kind="stable")[..., : self.n_positions]]


class FeatureWeights(OfLists, Box):
    """The action has a weight for each feature: the list shows the K candidates with the largest
    weighted sums.

    Args:
        lists: the action space of the environment.
        observed: its observation space, with ``features`` ``(L, d)``.
    """

    def __init__(self, lists: Any, observed: gym.Space) -> None:
        self._describe(lists)
        features: Any = observed.spaces.get("features") if isinstance(observed, Dict) else None
        if features is None:
            raise ValueError(
                f"the observation is {short(observed)}; weights need the features of candidates, "
                "those of a Contextual id, inside of wrappers that change what is observed"
            )
        Box.__init__(self, -1.0, 1.0, (features.shape[1],), np.float32)

    def lists(self, actions: Any, features: Any = None) -> NDArray[np.int64]:
        """Return the lists ``(..., K)`` of weights ``(..., d)`` for candidates with features
        ``(..., L, d)``; a ValueError names a bad weight.
        """
        rows = np.asarray(features, np.float64)
        weights = numbers("weights", actions, (*rows.shape[:-2], rows.shape[-1]))
        sums = weighted_sums(rows, weights[..., None, :])
        return np.argsort(-sums, axis=-1, kind="stable")[..., : self.n_positions]


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
        >>> env.action_space.shape
        (4,)
        >>> env.action([-0.3, 0.9, 0.1, 0.2])
        array([1, 3])
    """

    def __init__(self, env: gym.Env, items: ArrayLike | None = None) -> None:
        check_kind("env", env, gym.Env, AN_ENV)
        RecordConstructorArgs.__init__(self, items=recorded(items))
        gym.ActionWrapper.__init__(self, env)
        self._space = Scores(env.action_space, items)
        self.action_space = self._space

    def action(self, action: ArrayLike) -> NDArray[np.int64]:
        """Return the ``(K,)`` list that an action represents."""
        return self._space.lists(action)


class FeatureWeightsAction(gym.ActionWrapper, RecordConstructorArgs):
    """Actions are weights of the features: the list shows the K candidates with the largest
    weighted sums of their features, the largest first.

    Use it for a policy with continuous actions (SAC, TD3, DDPG) where candidates have features.
    With `ScoresAction` such a policy scores places, and each place has another candidate in every
    session. Weights mean the same in every session: how much each feature counts.

    The features are those of the last observation, and sums are in double precision. Of equal
    candidates the one in the lower row comes first. Weights beyond -1 and 1 are valid. Weights and
    any positive multiple of them choose the same list, and the weight of a feature that all
    candidates share, such as one of the user, changes nothing. So the entropy of weights is not the
    entropy of lists, and the automatic ``ent_coef`` of SAC is misled: use a fixed one, such as
    0.01.

    Args:
        env: an environment whose action space is a `RankedList`, and whose observation is a `Dict`
            with the ``features`` ``(L, d)`` of the candidates. Wrappers that flatten or normalise
            the observation belong outside of this one.

    Raises:
        TypeError: the action space is not a `RankedList`.
        ValueError: no features are observed; in ``step``, weights that are not d finite numbers.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> from clickgym.envs import FeatureWeightsAction
        >>> env = FeatureWeightsAction(gym.make("ContextualPBMRank-v0"))
        >>> env.action_space.shape
        (10,)
        >>> observation, _ = env.reset(seed=0)
        >>> by_second = np.argsort(-observation["features"][:, 1], kind="stable")
        >>> env.action(np.eye(10)[1]).tolist() == by_second[:5].tolist()
        True
    """

    def __init__(self, env: gym.Env) -> None:
        check_kind("env", env, gym.Env, AN_ENV)
        RecordConstructorArgs.__init__(self)
        gym.ActionWrapper.__init__(self, env)
        self._space = FeatureWeights(env.action_space, env.observation_space)
        self.action_space = self._space
        self._features: NDArray[np.float64] | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._features = observation["features"].copy()  # the caller may change those that it gets
        return observation, info

    def step(self, action: ArrayLike) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, *outcome = self.env.step(self.action(action))
        self._features = observation["features"].copy()
        return observation, *outcome

    def action(self, action: ArrayLike) -> NDArray[np.int64]:
        """Return the ``(K,)`` list that ``(d,)`` weights choose among the present candidates."""
        if self._features is None:
            raise gym.error.ResetNeeded("call reset() before the first step()")
        return self._space.lists(action, self._features)
