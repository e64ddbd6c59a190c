"""Wrappers with which a policy chooses ranked lists by weights of the features of candidates."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from ...core.checks import A_VECTOR_ENV, AN_ENV, check_kind, numbers, short
from ...core.sums import weighted_sums
from ..base_env import name_of
from .actions import ranked_lists


def lists_of_weights(
    weights: Any, features: NDArray[np.float64], n_positions: int
) -> NDArray[np.int64]:
    """Return the ``(..., K)`` lists that weights ``(..., d)`` choose among candidates with features
    ``(..., L, d)``.

    Raises:
        ValueError: another shape, or the first weight that is not finite.
    """
    values = numbers("weights", weights, (*features.shape[:-2], features.shape[-1]))
    sums = weighted_sums(features, values[..., None, :])
    return np.argsort(-sums, axis=-1, kind="stable")[..., :n_positions]


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
        gymnasium.error.ResetNeeded: before the first ``reset``.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> from clickgym.envs import FeatureWeightsAction
        >>> env = FeatureWeightsAction(gym.make("ContextualPBMRank-v0"))
        >>> env.action_space
        Box(-1.0, 1.0, (10,), float32)
        >>> observation, _ = env.reset(seed=0)
        >>> by_second = np.argsort(-observation["features"][:, 1], kind="stable")
        >>> env.action(np.eye(10)[1]).tolist() == by_second[:5].tolist()
        True
    """

    def __init__(self, env: gym.Env) -> None:
        check_kind("env", env, gym.Env, AN_ENV)
        lists: Any = env.action_space
        space = _weights_space(self, env, lists, env.observation_space)
        RecordConstructorArgs.__init__(self)
        gym.ActionWrapper.__init__(self, env)
        self.action_space, self._n_positions = space, lists.n_positions
        self._features: NDArray[np.float64] | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._features = _copied(observation)
        return observation, info

    def step(self, action: ArrayLike) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, *outcome = self.env.step(self.action(action))
        self._features = _copied(observation)
        return observation, *outcome

    def action(self, action: ArrayLike) -> NDArray[np.int64]:
        """Return the ``(K,)`` list that ``(d,)`` weights choose among the present candidates."""
        return lists_of_weights(action, _known(self._features), self._n_positions)


class FeatureWeightsVectorAction(VectorWrapper):
    """`FeatureWeightsAction` for a vector environment.

    Each stream has the features of its own candidates. They are those of the observation that was
    returned last, also after an autoreset.

    Args:
        env: a vector environment whose single action space is a `RankedList`, and whose single
            observation is a `Dict` with ``features`` ``(L, d)``.

    Raises:
        TypeError, ValueError, gymnasium.error.ResetNeeded: as `FeatureWeightsAction`.
    """

    def __init__(self, env: VectorEnv) -> None:
        check_kind("env", env, VectorEnv, A_VECTOR_ENV)
        super().__init__(env)
        lists: Any = env.single_action_space
        self.single_action_space = _weights_space(self, env, lists, env.single_observation_space)
        self.action_space = batch_space(self.single_action_space, env.num_envs)
        self._n_positions = lists.n_positions
        self._features: NDArray[np.float64] | None = None

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        observations, infos = self.env.reset(seed=seed, options=options)
        self._features = _copied(observations)
        return observations, infos

    def step(self, actions: ArrayLike) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        observations, *outcome = self.env.step(self.actions(actions))
        self._features = _copied(observations)
        return observations, *outcome

    def actions(self, actions: ArrayLike) -> NDArray[np.int64]:
        """Return the ``(B, K)`` lists that the ``(B, d)`` weights of B streams choose."""
        return lists_of_weights(actions, _known(self._features), self._n_positions)


def _weights_space(wrapper: Any, env: Any, lists: gym.Space, observed: gym.Space) -> Box:
    """Return the space of weights; an error names an environment that shows no features."""
    lists = ranked_lists(lists, "Weights")
    features: Any = observed.spaces.get("features") if isinstance(observed, Dict) else None
    shape: tuple[int, ...] = () if features is None else features.shape
    if len(shape) != 2 or shape[0] != lists.n_items:
        raise ValueError(
            f"{name_of(env)} shows {short(observed)}; {type(wrapper).__name__} needs features of "
            f"{lists.n_items} candidates: those of a Contextual id, inside of wrappers that change "
            "what is observed"
        )
    return Box(-1.0, 1.0, (shape[1],), np.float32)


def _copied(observation: Any) -> NDArray[np.float64]:
    """Return the features of an observation; the caller may change those that it gets."""
    return np.array(observation["features"], np.float64)


def _known(features: NDArray[np.float64] | None) -> NDArray[np.float64]:
    if features is None:
        raise gym.error.ResetNeeded("call reset() before the first step()")
    return features
