"""FrozenPolicy: an agent that ranks by a trained policy and does not learn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import ArrayLike, NDArray

from ...core.checks import (
    as_call,
    check_count,
    check_flag,
    check_horizon,
    check_positions,
    refusal,
    unknown,
)
from ...envs.codecs import CODECS, Draft, WeightsCodec, flat_draft, next_left, order_of_items
from ...envs.spaces import RankedList, check_ranking
from ...envs.wrappers.episode_counts import Counts
from ..agent import Agent, Seed
from .learner import Actions
from .trained_policy import TrainedPolicy


class FrozenPolicy(Agent):
    """An agent that ranks by a trained policy and does not learn: a model of stable-baselines3 or
    sb3-contrib, or any function.

    The policy gets the observation of the environment. A policy that chooses items one by one is
    called K times for each list. It gets the observation of `ItemByItem`, or one array if its
    observation space is an array, like the learners of this package. If candidates change from
    session to session, a policy whose observation space is an array gets the concatenated features
    of the candidates, or all that is observed if it was trained under ``FlattenObservation``. The
    state of a recurrent policy is kept from session to session, or from item to item if an episode
    was one list. A policy that was trained under `EpisodeCounts` gets what the agent has counted
    since the episode began, in an environment without this wrapper.

    Observations are normalised by the ``VecNormalize`` of the model's environment, with the
    statistics that it has. ⚠ A model that was loaded alone does not say that it was trained behind
    one: load it with its environment, ``PPO.load(file, env=VecNormalize.load(statistics, envs))``.
    Other wrappers that change observations, such as ``VecFrameStack``, are refused; wrappers of a
    single environment, such as ``FrameStackObservation``, belong around the environment in which
    the agent ranks.

    ⚠ The method ``load`` of stable-baselines3 unpickles: load no file that you do not trust.

    Args:
        n_items: L.
        n_positions: K.
        model: an object with a method ``predict``, or a function; it is called with the
            observation, and with those of ``state``, ``episode_start``, ``deterministic`` and (item
            by item) ``action_masks`` that it accepts. It returns the action; if it accepts
            ``state``, a tuple of the action and the next state.
        actions: the kind of its actions, by the wrapper of its training: ``"codes"``
            (`LehmerAction`), ``"scores"`` (`ScoresAction`), ``"items"`` (`ItemByItem`),
            ``"weights"`` (`FeatureWeightsAction`), or ``"rankings"`` (no wrapper: actions are
            lists, as those of `PlackettLuceActorCritic`).
        items: ``(L,)`` the argument ``items`` of the wrapper; None is ``0..L-1``. A trained
            `Learner` has it as an attribute. Weights number no items: with them it is None.
        horizon: T, the sessions of an episode, for a policy that observes the ``counts`` of
            `EpisodeCounts` in an environment without this wrapper; `clickgym.make_agent` fills it
            in. None: episodes have no fixed length.
        deterministic: whether to take the most probable action; False draws an action.
        seed: of the random numbers of a trained model. Drawn actions repeat with it, and also
            the order of equal scores in `PlackettLuceActorCritic`. Libraries draw from the
            global generators of the process.

    Raises:
        TypeError: ``model`` has no method ``predict`` and is not a function.
        ValueError: a bad argument; the action space of the model does not fit ``actions``; its
            environment changes observations in a way that is not known; in ``rank``, the
            observation does not fit the observation space of the model.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> agent = FrozenPolicy(10, 5, model=lambda observation: [9, 0, 0, 0, 0], actions="codes")
        >>> agent.rank([0, 0, 0, 0, 0])
        array([9, 0, 1, 2, 3])
        >>> result = clickgym.run(agent, gym.make("PBMRank-v0"), 100, seed=0)
        >>> result.agent, result.engine
        ('FrozenPolicy', 'python')
    """

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        model: Any,
        actions: Actions = "codes",
        items: ArrayLike | None = None,
        horizon: int | None = None,
        deterministic: bool = True,
        seed: Seed = None,
    ) -> None:
        self.n_items = check_count("n_items", n_items)
        self.n_positions = check_positions(n_positions, self.n_items)
        kinds = ("rankings", *CODECS, "weights", "items")
        if not isinstance(actions, str) or actions not in kinds:
            raise ValueError(unknown("actions", actions, kinds))
        self.model, self.actions = model, actions
        self.deterministic = check_flag("deterministic", deterministic)
        self._policy = TrainedPolicy(model, self.deterministic, seed)
        self._lists = lists = RankedList(self.n_items, self.n_positions)
        self._items = order_of_items(items, self.n_items)
        n_sessions = None if horizon is None else check_horizon(horizon)
        self._is_first = True  # session of an episode
        self._counts = Counts(1, self.n_items, self.n_positions, n_sessions)
        self._draft = Draft(lists, items) if actions == "items" else None
        self._codec = CODECS[actions](lists, items) if actions in CODECS else None
        expected: Any = lists if self._codec is None else self._codec.space
        if self._draft is not None:
            expected = Discrete(self.n_items)
        if actions == "weights":
            if items is not None and not np.array_equal(self._items, np.arange(self.n_items)):
                raise refusal("items", items, "None, because weights of features number no items")
            space = getattr(model, "action_space", None)
            d = space.shape[0] if isinstance(space, Box) and len(space.shape) == 1 else 1
            expected = Box(-1.0, 1.0, (d,), np.float32)  # d follows from the model
        if getattr(model, "action_space", expected) != expected:
            raise ValueError(
                f"the actions of the model are {model.action_space}; actions={actions!r} for lists "
                f"of {n_positions} out of {n_items} items are {expected}"
            )

    def __repr__(self) -> str:
        model = getattr(self.model, "__name__", type(self.model).__name__)
        return as_call(
            self,
            n_items=self.n_items,
            n_positions=self.n_positions,
            model=model,
            actions=self.actions,
        )

    def rank(self, observation: Any) -> NDArray[np.int64]:
        if self._policy.reads_counts and not isinstance(observation, Mapping):
            observation = {"clicks": observation, "counts": self._counts.observed()[0]}
        observed = self._policy.observed(observation)
        if self._draft is not None:
            return self._item_by_item(self._draft, observed)
        action = self._policy.act(observed, is_first=self._is_first)
        self._is_first = False
        if self.actions == "weights":
            features = _features(observation, (self.n_items, np.size(action)), self.n_positions)
            return WeightsCodec(self._lists, features.shape[-1]).decode(action, features)
        if self._codec is not None:
            return self._codec.decode(action)
        return self._items[check_ranking(action, self.n_items, self.n_positions)]

    def update(
        self, observation: Any, ranking: NDArray[np.int64], clicks: NDArray[np.int8], reward: float
    ) -> None:
        """Count the session; the policy is frozen."""
        if self._policy.reads_counts:
            self._counts.add(np.asarray(ranking)[None], np.asarray(clicks)[None])

    def leave(self) -> None:
        self._counts.start()
        self._policy.state, self._is_first = None, True

    def _item_by_item(self, draft: Draft, observation: Any) -> NDArray[np.int64]:
        draft.clear()
        last, is_flat = observation, self._policy.is_flat
        if not isinstance(observation, Mapping):
            last = {"observation": np.asarray(observation)}
        while not draft.complete:
            drafted, mask = {**last, "placed": draft.placed.copy()}, draft.left
            observed = flat_draft(drafted) if is_flat else drafted
            choice = np.asarray(self._policy.act(observed, draft.position == 0, mask))
            draft.place(next_left(choice.reshape(1), mask[None])[0] if is_flat else choice)
        return draft.rankings


def _features(observation: Any, shape: tuple[int, int], n_clicks: int) -> NDArray[np.float64]:
    """Return the ``(L, d)`` features of an observation. Those of one array are its last numbers, as
    ``FlattenObservation`` orders clicks and features.

    Raises:
        ValueError: it has none of this shape.
    """
    features: Any = observation
    if isinstance(observation, Mapping):
        features = observation.get("features")
        if np.ndim(features) == 2:  # weights of another number are refused later
            shape = (shape[0], np.shape(features)[1])
    elif np.size(observation) in (np.prod(shape), n_clicks + np.prod(shape)):
        features = np.ravel(observation)[-np.prod(shape) :].reshape(shape)
    if np.shape(features) != shape:
        raise refusal("the observation", observation, f"features of shape {shape} to weigh")
    return np.asarray(features, np.float64)
