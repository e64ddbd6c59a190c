"""FrozenPolicy: an agent that ranks by a trained policy and does not learn."""

from __future__ import annotations

import inspect
import random
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, ClassVar, get_args

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete
from numpy.typing import ArrayLike, NDArray

from ...core.checks import (
    as_call,
    check_choice,
    check_count,
    check_flag,
    check_horizon,
    check_positions,
    generator,
    short,
)
from ...envs.spaces import RankedList, check_items, without_repeats
from ...envs.wrappers.actions import lists_of_scores, order_of_items, scores_space
from ...envs.wrappers.episode_counts import Counts
from ...envs.wrappers.feature_weights import lists_of_weights
from ...envs.wrappers.item_by_item import Draft, flat_draft
from ..agent import Agent, EnvTraits, Seed
from .learner import Actions


class FrozenPolicy(Agent):
    """An agent that ranks by a trained policy and does not learn: a model of stable-baselines3 or
    sb3-contrib, or any function.

    The policy gets the observation of the environment. A policy that chooses items one by one is
    called K times for each list. It gets the observation of `ItemByItem`, or one array if its
    observation space is an array, as under ``FlattenObservation`` or of the learners of this
    package. If candidates change from
    session to session, a policy whose observation space is an array gets the concatenated features
    of the candidates, or all that is observed if it was trained under ``FlattenObservation``. The
    state of a recurrent policy is kept from session to session, or from item to item if an episode
    was one list. A policy that was trained under `EpisodeCounts` gets what the agent has counted
    since the episode began, in an environment without this wrapper.

    Observations are normalised by the ``VecNormalize`` of the model's environment, with the
    statistics that it has. ⚠ A model that was loaded alone does not say that it was trained behind
    one: load it with its environment, ``PPO.load(file, env=VecNormalize.load(statistics, envs))``.
    Other wrappers that change observations, such as ``FrameStackObservation``, belong around the
    environment in which the agent ranks.

    ⚠ The method ``load`` of stable-baselines3 unpickles: load no file that you do not trust.

    Args:
        n_items, n_positions: L and K; None takes them from the action space of a model whose
            actions are lists, or from its environment.
        model: an object with a method ``predict``, or a function; it is called with the
            observation, and with those of ``state``, ``episode_start``, ``deterministic`` and (item
            by item) ``action_masks`` that it accepts. It returns the action; if it accepts
            ``state``, a tuple of the action and the next state.
        actions: the kind of its actions, by the wrapper of its training: ``"rankings"`` (none:
            actions are lists), ``"scores"`` (`ScoresAction`), ``"items"`` (`ItemByItem`), or
            ``"weights"`` (`FeatureWeightsAction`). None takes it from the action space of the
            model; actions of a function without one are lists.
        items: ``(L,)`` the argument ``items`` of the wrapper; None takes that of the environment of
            the model. ⚠ A model that was loaded alone has none, and None is ``0..L-1``. Weights
            number no items.
        horizon: T, the sessions of an episode, for a policy that observes the ``counts`` of
            `EpisodeCounts` in an environment without this wrapper; `clickgym.make_agent` fills it
            in. None: episodes have no fixed length.
        deterministic: whether to take the most probable action; False draws an action.
        seed: of the random numbers of a trained model. Drawn actions repeat with it, and also
            the order of equal scores in `PlackettLuceActorCritic`. Libraries draw from the
            global generators of the process, which go on afterwards as if nothing was drawn.

    Raises:
        TypeError: ``model`` has no method ``predict`` and is not a function.
        ValueError: a bad argument; the action space of the model does not fit ``actions``; in
            ``rank``, the observation has other shapes than in training.

    Warns:
        UserWarning: the model was trained behind a wrapper of actions other than those of clickgym.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> agent = FrozenPolicy(10, 5, model=lambda observation: [9, 0, 1, 2, 3])
        >>> agent.rank([0, 0, 0, 0, 0])
        array([9, 0, 1, 2, 3])
        >>> result = clickgym.run(agent, gym.make("PBMRank-v0"), 100, seed=0)
        >>> result.agent, result.engine
        ('FrozenPolicy', 'frozen policy')
    """

    engine: ClassVar[str] = "frozen policy"
    """What `clickgym.Result.engine` says, so that tables name what did not learn in their runs."""

    def __init__(
        self,
        n_items: int | None = None,
        n_positions: int | None = None,
        *,
        model: Any,
        actions: Actions | None = None,
        items: ArrayLike | None = None,
        horizon: int | None = None,
        deterministic: bool = True,
        seed: Seed = None,
    ) -> None:
        self.model = model
        self.deterministic = check_flag("deterministic", deterministic)
        self._predict = getattr(model, "predict", model)
        if isinstance(model, type) or not callable(self._predict):
            raise TypeError(
                f"model is {short(model)}; expected a trained model with a method predict, "
                "or a function"
            )
        if n_items is None or n_positions is None:
            n_items, n_positions = _sizes_of(model)
        self.n_items = check_count("n_items", n_items)
        self.n_positions = check_positions(n_positions, self.n_items)
        self._takes = _taken_by(self._predict)
        self._normaliser = getattr(model, "get_vec_normalize_env", lambda: None)()
        self._space = getattr(model, "observation_space", None)  # None: any observation
        self._is_flat = self._space is not None and not isinstance(self._space, Dict)
        self.actions = check_choice("actions", actions or self._kind(), get_args(Actions))
        self._reads_counts = isinstance(self._space, Dict) and "counts" in self._space.spaces
        n_sessions = None if horizon is None else check_horizon(horizon)
        self._counts = Counts(1, self.n_items, self.n_positions, n_sessions)
        self._lists = RankedList(self.n_items, self.n_positions)
        if items is None:
            items = self._order_of_training()
        self._items = order_of_items(items, self.n_items)
        self._check_actions()
        self._warn_of_wrappers()
        self._rng = generator(seed)
        self._generators: Any = None  # states of those of the process, once the model has drawn
        self._state: Any = None  # of a recurrent policy
        self._is_first = True  # session of an episode

    def __repr__(self) -> str:
        model = getattr(self.model, "__name__", type(self.model).__name__)
        return as_call(
            self,
            n_items=self.n_items,
            n_positions=self.n_positions,
            model=model,
            actions=self.actions,
        )

    def engine_in(self, env: EnvTraits, wanted: str) -> str:
        super().engine_in(env, wanted)
        return self.engine

    def _kind(self) -> str:
        """Return the kind of actions of the model's action space."""
        space, seen = getattr(self.model, "action_space", None), self._space
        if not isinstance(space, Box):
            return "items" if isinstance(space, Discrete) else "rankings"
        rows = self.n_items, space.shape[0]
        if isinstance(seen, Dict):
            shows_rows = "features" in seen.spaces and seen["features"].shape == rows
        else:  # the features of all items, alone or behind the clicks
            size = rows[0] * rows[1]
            shows_rows = seen is not None and seen.shape in ((size,), (size + self.n_positions,))
        return "weights" if shows_rows else "scores"

    def _order_of_training(self) -> Any:
        """Return the ``items`` of the wrapper around the environment of the model, if it is known.

        Raises:
            ValueError: it was known, but ``VecNormalize`` lost its streams on the way here.
        """
        was_sent = self._normaliser is not None and self._normaliser.venv is None
        if was_sent and self.actions in ("scores", "items"):
            raise ValueError(
                "VecNormalize does not send the streams of a model to processes, so the order of "
                "its items is unknown: give FrozenPolicy the items of the training"
            )
        return _attribute_of_env(self.model, "items")

    def _warn_of_wrappers(self) -> None:
        """Warn of a wrapper of actions around the environment of the model, other than ours."""
        env = None
        with suppress(Exception):  # no environment, or one in another process
            env = self.model.get_env().envs[0]
        while isinstance(env, gym.Wrapper):
            is_ours = type(env).__module__.startswith("clickgym")
            if isinstance(env, gym.ActionWrapper) and not is_ours:
                warnings.warn(
                    f"the model was trained behind {type(env).__name__}, which FrozenPolicy leaves "
                    "out: it takes the actions as they are; pass a function that applies it",
                    stacklevel=3,
                )
            env = env.env

    def _check_actions(self) -> None:
        """Check that the action space of the model is that of its kind of actions."""
        if self.actions == "weights" or not hasattr(self.model, "action_space"):
            return
        spaces = {"rankings": self._lists, "items": Discrete(self.n_items)}
        expected = spaces.get(self.actions, scores_space(self.n_items))
        if self.model.action_space != expected:
            raise ValueError(
                f"the actions of the model are {self.model.action_space}; "
                f"actions={self.actions!r} for lists of {self.n_positions} out of {self.n_items} "
                f"items are {expected} (actions: {', '.join(get_args(Actions))})"
            )

    def rank(self, observation: Any) -> NDArray[np.int64]:
        if self._reads_counts and not isinstance(observation, Mapping):
            observation = {"clicks": observation, "counts": self._counts.observed()[0]}
        observed = self._observed(observation)
        with self._own_generators():
            if self.actions == "items":
                return self._item_by_item(observed)
            self._check_shapes(observed)
            action = self._act(observed, self._is_first)
        self._is_first = False
        if self.actions == "weights":
            features = self._features(observation, np.size(action))
            return lists_of_weights(action, features, self.n_positions)
        if self.actions == "scores":
            return lists_of_scores(action, self._items, self.n_positions)
        items = check_items(action, self.n_items, self.n_positions)
        return self._items[without_repeats(items, self.n_items)]

    def update(
        self, observation: Any, ranking: NDArray[np.int64], clicks: NDArray[np.int8], reward: float
    ) -> None:
        """Count the session; the policy is frozen."""
        if self._reads_counts:
            self._counts.add(np.asarray(ranking)[None], np.asarray(clicks)[None])

    def leave(self) -> None:
        self._counts.start()
        self._state, self._is_first = None, True

    def _observed(self, observation: Any) -> Any:
        """Return the part of an observation that the model observed in training: of one array the
        features, or clicks and features as ``FlattenObservation`` orders them.
        """
        if self._space is None or not isinstance(observation, Mapping):
            return observation
        if not self._is_flat:
            names = self._space.spaces
            return {name: observation[name] for name in names if name in observation}
        if "features" not in observation:
            return observation
        features = np.ravel(observation["features"])
        flat = np.concatenate([observation.get("clicks", ()), features])
        return flat if flat.shape == self._space.shape else features.astype(np.float32)

    def _check_shapes(self, observation: Any) -> None:
        if self._space is not None and _shapes(observation) != _shapes_of(self._space):
            raise ValueError(
                f"the model was trained on observations {self._space}, but got "
                f"{_shapes(observation)}: wrap the environment as in training"
            )

    @contextmanager
    def _own_generators(self) -> Iterator[None]:
        """Context in which a trained model draws from generators of its own, and not from those
        with which a training goes on.
        """
        if not hasattr(self.model, "set_random_seed"):
            yield
            return
        from stable_baselines3.common.utils import set_random_seed

        of_process = _generators()
        try:
            if self._generators is None:  # the method of the model would seed its envs, too
                set_random_seed(int(self._rng.integers(2**31)))
            else:
                _restore(self._generators)
            yield
        finally:
            self._generators = _generators()
            _restore(of_process)

    def _act(self, observation: Any, is_first: bool, mask: Any = None) -> Any:
        """Return the action of the model.

        Args:
            observation: as in training.
            is_first: whether an episode begins.
            mask: item by item, ``(L,)`` the items that are left.
        """
        if self._normaliser is not None:
            observation = self._normaliser.normalize_obs(observation)
        arguments = {
            "state": self._state,
            "episode_start": np.array([is_first]),
            "deterministic": self.deterministic,
            "action_masks": mask,
        }
        answer = self._predict(observation, **{name: arguments[name] for name in self._takes})
        if "state" in self._takes and isinstance(answer, tuple):
            answer, self._state = answer
        return answer

    def _item_by_item(self, observation: Any) -> NDArray[np.int64]:
        draft, last = Draft(self._lists, self._items), observation
        if not isinstance(observation, Mapping):
            last = {"observation": np.asarray(observation)}
        while not draft.complete:
            placed = draft.placed.copy()
            observed: Any = {**last, "placed": placed}
            if self._is_flat:
                numbers = [np.ravel(observed[name]) for name in sorted(observed)]
                observed = np.concatenate(numbers, dtype=np.float32)  # as FlattenObservation
                if observed.shape != _shapes_of(self._space):  # as the learners of this package
                    observed = flat_draft(placed, np.ravel(last["observation"]))
            draft.place(np.asarray(self._act(observed, draft.position == 0, draft.left)))
        return draft.rankings

    def _features(self, observation: Any, n_features: int) -> NDArray[np.float64]:
        """Return the ``(L, d)`` features of an observation; those of one array are its last
        numbers.
        """
        if isinstance(observation, Mapping):
            return np.asarray(observation["features"], np.float64)
        last = np.ravel(observation)[-self.n_items * n_features :]
        return last.reshape(self.n_items, n_features).astype(np.float64)


def _generators() -> tuple[Any, ...]:
    """Return the states of the generators of the process that models draw from."""
    import torch

    of_torch = torch.get_rng_state(), torch.cuda.get_rng_state_all()
    return random.getstate(), np.random.get_state(), *of_torch  # noqa: NPY002 (libraries draw there)


def _restore(states: tuple[Any, ...]) -> None:
    """Set the generators of the process to the states that `_generators` returned."""
    import torch

    of_python, of_numpy, of_torch, of_cuda = states
    random.setstate(of_python)
    np.random.set_state(of_numpy)  # noqa: NPY002
    torch.set_rng_state(of_torch)
    torch.cuda.set_rng_state_all(of_cuda)


def _attribute_of_env(model: Any, name: str) -> Any:
    """Return what the first environment of a model calls by a name; None if it is unknown."""
    with suppress(Exception):  # no environment, one without the attribute, closed processes
        return model.get_env().get_attr(name, 0)[0]
    return None


def _sizes_of(model: Any) -> tuple[int, int]:
    """Return L and K, from the action space of a model or from its environment."""
    space = getattr(model, "action_space", None)
    if isinstance(space, MultiDiscrete) and space.nvec.ndim == 1:
        return int(space.nvec[0]), len(space.nvec)
    with suppress(AttributeError):  # no environment, or one without users
        users = _attribute_of_env(model, "unwrapped").model
        return users.n_items, users.n_positions
    known = "a function" if space is None else f"a model with the actions {space}"
    raise TypeError(
        f"the sizes of lists are not known from {known}: give n_items and n_positions, as in "
        "FrozenPolicy(10, 5, model=...)"
    )


def _shapes(observation: Any) -> Any:
    if isinstance(observation, Mapping):
        return {name: np.shape(value) for name, value in observation.items()}
    return np.shape(observation)


def _shapes_of(space: Any) -> Any:
    if isinstance(space, Dict):
        return {name: part.shape for name, part in space.items()}
    return space.shape


def _taken_by(predict: Callable[..., Any]) -> set[str]:
    """Return the names of the arguments, other than the observation, that a function accepts."""
    parameters = inspect.signature(predict).parameters
    takes_any = any(it.kind is it.VAR_KEYWORD for it in parameters.values())
    always = {"state", "episode_start", "deterministic"} if takes_any else set()
    return always | ({"state", "episode_start", "deterministic", "action_masks"} & {*parameters})
