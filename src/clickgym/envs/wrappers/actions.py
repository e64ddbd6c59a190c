"""Action spaces for policies that cannot output lists, and the wrapper `ScoresAction` for policies
with continuous actions.

These action spaces translate actions into lists, for one stream or for many streams.
stable-baselines3 saves the action space with a model, so a saved policy's actions can be translated
into the same lists later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import ArrayLike, NDArray

from ...core.checks import AN_ENV, as_numbers, check_kind, check_positions
from ...core.messages import short_repr
from ...core.sums import weighted_sums
from ..spaces import RankedList, list_sizes, without_repeats


class ListActionSpace:
    """Base class of action spaces whose actions represent ranked lists.

    Args:
        lists: the environment's action space, a `RankedList` or ``MultiDiscrete([L] * K)``.
        items: ``(L,)`` the item for each item number in an action; by default, item numbers are
            item ids. Learners (`clickgym.agents.Learner`) number the items in a random order.
    """

    def _set_sizes(self, lists: gym.Space, items: NDArray[np.int64] | None) -> None:
        sizes = list_sizes(lists)
        if sizes is None:
            raise TypeError(
                f"the action space is {lists}; expected a clickgym.envs.RankedList or "
                "MultiDiscrete([n_items] * n_positions)"
            )
        self.n_items, self.n_positions = sizes[0], check_positions(sizes[1], sizes[0])
        self.items = np.arange(self.n_items) if items is None else items

    def lists(self, actions: Any, observations: Any = None) -> NDArray[np.int64]:
        """Return the lists ``(..., K)`` that actions represent, for one stream or for many.

        Args:
            actions: actions from this space.
            observations: the last observations of the environment, which only feature weights
                require; by default None.
        """
        raise NotImplementedError


class NumberedLists(ListActionSpace, RankedList):
    """Action space in which an action is a list of item numbers; repeated items are replaced (see
    `without_repeats`).
    """

    def __init__(self, lists: Any, observed: gym.Space, items: Any = None) -> None:
        self._set_sizes(lists, items)
        RankedList.__init__(self, self.n_items, self.n_positions)

    def lists(self, actions: Any, observations: Any = None) -> NDArray[np.int64]:
        return self.items[without_repeats(actions, self.n_items)]


class Scores(ListActionSpace, Box):
    """Action space in which an action consists of a score for each item, and stands for the list of
    the K items with the largest scores.

    If candidates have features, an action consists of a weight for each feature instead, and the
    score of a candidate is the weighted sum of its features.

    Args:
        lists, items: see `ListActionSpace`; ``items`` is ignored if candidates have features.
        observed: the observation space of the environment, which may contain ``features``
            ``(L, d)``.
    """

    def __init__(self, lists: Any, observed: gym.Space, items: Any = None) -> None:
        features: Any = observed.spaces.get("features") if isinstance(observed, Dict) else None
        self.of_features = features is not None
        self._set_sizes(lists, None if self.of_features else items)
        size = features.shape[1] if self.of_features else self.n_items
        Box.__init__(self, -1.0, 1.0, (size,), np.float32)

    def lists(self, actions: Any, observations: Any = None) -> NDArray[np.int64]:
        """Return the lists ``(..., K)`` that scores ``(..., L)`` or feature weights ``(..., d)``
        represent.

        Raises:
            ValueError: a shape is wrong, a number is not finite, or feature weights come without
                ``features`` in the observation.
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
    """Wrapper in which an action consists of a score for each item: the environment shows the K
    items with the largest scores, the largest first. If candidates have features, an action
    consists of feature weights instead.

    Use this wrapper for a policy with continuous actions (SAC, TD3, DDPG). If scores are uniformly
    random, every list is equally likely. Many different scores give the same list, so the reward is
    a step function of the scores. Only the order of the scores matters, so scores outside [-1, 1]
    are valid, too. Among items with equal scores, the item with the smaller number comes first;
    ties are common if a policy clips its actions.

    In a contextual environment, each row is a different candidate in every session, so a policy
    cannot learn scores for the rows. Therefore, actions are feature weights, and the score of a
    candidate is the weighted sum of its features in the last observation, computed in double
    precision. Multiplying all weights by a positive number does not change the list. The entropy of
    the weights therefore differs from the entropy of the lists, which misleads the automatic
    ``ent_coef`` of SAC: use a fixed value, such as 0.01.

    Args:
        env: an environment whose action space is a `RankedList`, or ``MultiDiscrete([L] * K)`` in
            an environment of another package. Put wrappers that flatten or
            normalise the observation around `ScoresAction`, not inside.

    Raises:
        TypeError: the actions are not ranked lists.
        ValueError: an action of ``step`` has a wrong shape or a number that is not finite.

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
        """Return the list that an action represents, ``(K,)``."""
        if self._space.of_features and self._observation is None:
            raise gym.error.ResetNeeded("call reset() before the first step()")
        return self._space.lists(action, self._observation)
