"""FrozenPolicy: an agent that ranks by a trained policy and does not learn."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from numpy.typing import ArrayLike, NDArray

from ...core.checks import (
    as_call,
    check_count,
    check_flag,
    check_positions,
    generator,
    short,
    unknown,
)
from ...envs.codecs import CODECS, Codec, Draft, flat_draft, next_left, order_of_items
from ...envs.spaces import RankedList, check_ranking
from ..agent import Agent, Seed
from .learner import Actions


class FrozenPolicy(Agent):
    """An agent that ranks by a trained policy and does not learn: a model of stable-baselines3 or
    sb3-contrib, or any function.

    The policy gets the observation of the environment. A policy that chooses items one by one is
    called K times for each list. It gets the observation of `ItemByItem`, or one array if its
    observation space is an array, like the learners of this package. If candidates change from
    session to session, a policy whose observation space is an array gets the concatenated features
    of the candidates, or all that is observed if it was trained under ``FlattenObservation``. The
    state of a recurrent policy is kept from session to session, or from item to item if an episode
    was one list.

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
            (`LehmerAction`), ``"scores"`` (`ScoresAction`), ``"lists"`` (`EnumeratedAction`),
            ``"items"`` (`ItemByItem`), or ``"rankings"`` (no wrapper: actions are lists, as those
            of `PlackettLuceActorCritic`).
        items: ``(L,)`` the argument ``items`` of the wrapper; None is ``0..L-1``. A trained
            `Learner` has it as an attribute.
        deterministic: whether to take the most probable action; False draws an action.
        seed: if actions are drawn, the seed for ``model.set_random_seed`` before the first list.
            The libraries draw from the global generators of the process.

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
        deterministic: bool = True,
        seed: Seed = None,
    ) -> None:
        self.n_items = check_count("n_items", n_items)
        self.n_positions = check_positions(n_positions, self.n_items)
        predict = getattr(model, "predict", model)
        if isinstance(model, type) or not callable(predict):
            raise TypeError(
                f"model is {short(model)}; expected a trained model with a method predict, "
                "or a function"
            )
        if not isinstance(actions, str) or actions not in ("rankings", *CODECS, "items"):
            raise ValueError(unknown("actions", actions, ("rankings", *CODECS, "items")))
        self.model, self.actions = model, actions
        self.deterministic = check_flag("deterministic", deterministic)
        self._predict: Callable[..., Any] = predict
        self._takes = _taken_by(predict)
        lists = RankedList(self.n_items, self.n_positions)
        self._items = order_of_items(items, self.n_items)
        self._codec: Draft | Codec | None = None  # None: actions are lists
        if actions != "rankings":
            self._codec = (
                Draft(lists, items) if actions == "items" else CODECS[actions](lists, items)
            )
        spaces = {"rankings": lists, "items": Discrete(self.n_items)}
        expected = self._codec.space if isinstance(self._codec, Codec) else spaces[actions]
        if getattr(model, "action_space", expected) != expected:
            raise ValueError(
                f"the actions of the model are {model.action_space}; actions={actions!r} for lists "
                f"of {n_positions} out of {n_items} items are {expected}"
            )
        self._space = getattr(model, "observation_space", None)  # None: any observation
        self._normalisers, self._raw_space = _normalisation(model, self._space)
        # whether it observes one array
        self._flat = self._space is not None and not isinstance(self._space, Dict)
        self._rng, self._has_started = generator(seed), False
        self._state: Any = None

    def __repr__(self) -> str:
        model = getattr(self.model, "__name__", type(self.model).__name__)
        return as_call(
            self,
            n_items=self.n_items,
            n_positions=self.n_positions,
            model=model,
            actions=self.actions,
        )

    def why_not_late(self, users: str) -> str:
        return users or "its policy observes the clicks on the last list"

    def rank(self, observation: Any) -> NDArray[np.int64]:
        observation = self._as_in_training(observation)
        if (
            not self._has_started
            and not self.deterministic
            and hasattr(self.model, "set_random_seed")
        ):
            self.model.set_random_seed(int(self._rng.integers(2**31)))
        if isinstance(self._codec, Draft):
            ranking = self._item_by_item(self._codec, observation)
        else:
            action = self._act(observation, not self._has_started)
            if self._codec is None:
                ranking = self._items[check_ranking(action, self.n_items, self.n_positions)]
            else:
                ranking = self._codec.decode(action)
        self._has_started = True
        return ranking

    def _as_in_training(self, observation: Any) -> Any:
        """Return the part of an observation that the model observed in training."""
        if self._space is None:
            return observation
        if isinstance(observation, Mapping) and "features" in observation:
            if not self._flat:
                names = self._space.spaces
                observation = {name: observation[name] for name in names if name in observation}
            else:
                observation = self._flattened(observation)
        # the last observation is a part of what a policy of items observes as one array
        if not self._has_started and not isinstance(self._codec, Draft):
            self._check_kind(observation)
        return observation

    def _flattened(self, observation: Mapping[str, Any]) -> NDArray[Any]:
        """Return features, or if the model observed them, too, clicks and features as one array."""
        features = np.asarray(observation["features"], np.float32).ravel()
        clicks, space = observation.get("clicks", ()), self._raw_space
        K = len(clicks)
        if space.shape == (K + features.size,) and not (
            space.low[:K].any() or (space.high[:K] != 1).any()
        ):
            return np.concatenate([clicks, np.ravel(observation["features"])]).astype(space.dtype)
        return features

    def _check_kind(self, observation: Any) -> None:
        """Refuse integers where a wrapper of the training made other numbers of them."""
        pairs = [(self._raw_space, observation)]
        if isinstance(self._raw_space, Dict) and isinstance(observation, Mapping):
            pairs = [
                (space, observation[name])
                for name, space in self._raw_space.items()
                if name in observation
            ]
        for space, value in pairs:
            if (
                isinstance(space, Box)
                and space.dtype.kind == "f"
                and np.asarray(value).dtype.kind in "biu"
            ):
                raise ValueError(
                    f"the model was trained on observations {self._raw_space}, but got integers: "
                    "wrap the environment as in training"
                )

    def update(
        self, observation: Any, ranking: NDArray[np.int64], clicks: NDArray[np.int8], reward: float
    ) -> None:
        """Do nothing, because the policy is frozen."""

    def _item_by_item(self, draft: Draft, observation: Any) -> NDArray[np.int64]:
        draft.clear()
        last = (
            observation
            if isinstance(observation, Mapping)
            else {"observation": np.asarray(observation)}
        )
        while not draft.complete:
            drafted = {**last, "placed": draft.placed.copy()}
            mask = draft.left
            choice = np.asarray(
                self._act(flat_draft(drafted) if self._flat else drafted, draft.position == 0, mask)
            )
            draft.place(next_left(choice.reshape(1), mask[None])[0] if self._flat else choice)
        return draft.rankings

    def _act(self, observation: Any, is_first: bool, mask: NDArray[np.bool_] | None = None) -> Any:
        fits = self._space is None or _same_shapes(observation, self._space)
        if fits and not self._has_started and self._space is not None and not self._normalisers:
            fits = self._space.contains(observation)
        if not fits:
            names = (
                list(observation)
                if isinstance(observation, Mapping)
                else f"an array of shape {np.shape(observation)}"
            )
            raise ValueError(
                f"the model was trained on observations {self._space}, but got {names}: wrap the "
                "environment as in training"
            )
        for normaliser in self._normalisers:
            observation = normaliser.normalize_obs(observation)
        arguments = {
            "state": self._state,
            "episode_start": np.array([is_first]),
            "deterministic": self.deterministic,
        }
        if mask is not None:
            arguments["action_masks"] = mask
        answer = self._predict(
            observation, **{name: arguments[name] for name in self._takes & arguments.keys()}
        )
        if "state" in self._takes and isinstance(answer, tuple):
            answer, self._state = answer
        return answer


def _normalisation(model: Any, space: Any) -> tuple[list[Any], Any]:
    """Return the ``VecNormalize`` wrappers of a model's environment, the innermost first, and the
    space of observations before them.

    Raises:
        ValueError: another wrapper changes what is observed.
    """
    get_env = getattr(model, "get_env", None)
    layer: Any = get_env() if callable(get_env) else None
    normalisers: list[Any] = []
    while "venv" in getattr(layer, "__dict__", {}):
        inner = layer.venv  # None in a model that was sent to another process
        if hasattr(type(layer), "normalize_obs"):
            normalisers.append(layer)
            space = space if inner is None else inner.observation_space
        elif inner is not None and inner.observation_space != layer.observation_space:
            raise ValueError(
                f"the model was trained behind {type(layer).__name__}, which changes what is "
                "observed; expected a model trained with VecNormalize or without such wrappers"
            )
        layer = inner
    return normalisers[::-1], space


def _same_shapes(observation: Any, space: Any) -> bool:
    """Whether an observation has the entries of a space, each of its shape."""
    if isinstance(space, Dict):
        return isinstance(observation, Mapping) and all(
            name in observation and np.shape(observation[name]) == entry.shape
            for name, entry in space.items()
        )
    return np.shape(observation) == space.shape


def _taken_by(predict: Callable[..., Any]) -> set[str]:
    """Return the names of the arguments, other than the observation, that a function accepts."""
    parameters = inspect.signature(predict).parameters
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    named = ("state", "episode_start", "deterministic", "action_masks")
    return {name for name in named if name in parameters or (takes_any and name != "action_masks")}
