"""A trained policy of another library: what it observes, and how it is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict
from numpy.typing import NDArray

from ...core.checks import generator, short
from ..agent import Seed


class TrainedPolicy:
    """A model of stable-baselines3 or sb3-contrib, or a function, that is called as in training.

    Args:
        model: an object with a method ``predict``, or a function, as in `FrozenPolicy`.
        deterministic: whether to take the most probable action.
        seed: of the generators from which a model of stable-baselines3 draws actions and ties.

    Attributes:
        has_acted: whether it was called before.
        is_flat: whether it observes one array.
        reads_counts: whether it observes the counts of an episode.
        state: of a recurrent policy, after its last call.

    Raises:
        TypeError: ``model`` has no method ``predict`` and is not a function.
        ValueError: a wrapper of the model's environment changes observations in a way that is not
            known.
    """

    def __init__(self, model: Any, deterministic: bool, seed: Seed) -> None:
        predict = getattr(model, "predict", model)
        if isinstance(model, type) or not callable(predict):
            raise TypeError(
                f"model is {short(model)}; expected a trained model with a method predict, "
                "or a function"
            )
        self._model, self._predict, self._deterministic = model, predict, deterministic
        self._takes = _taken_by(predict)
        self._space = getattr(model, "observation_space", None)  # None: any observation
        self._normalisers, self._raw_space = _normalisation(model, self._space)
        self.is_flat = self._space is not None and not isinstance(self._space, Dict)
        self.reads_counts = isinstance(self._space, Dict) and "counts" in self._space.spaces
        self._rng, self.has_acted = generator(seed), False
        self.state: Any = None

    def observed(self, observation: Any) -> Any:
        """Return the part of an observation that the model observed in training."""
        if self._space is None or not isinstance(observation, Mapping):
            return observation
        if "features" not in observation:
            return observation
        if self.is_flat:
            return self._flattened(observation)
        return {name: observation[name] for name in self._space.spaces if name in observation}

    def _flattened(self, observation: Mapping[str, Any]) -> NDArray[Any]:
        """Return features, or if the model observed them, too, clicks and features as one array."""
        features = np.asarray(observation["features"], np.float32).ravel()
        clicks, space = observation.get("clicks", ()), self._raw_space
        n = len(clicks)
        has_clicks = space.shape == (n + features.size,) and not (
            space.low[:n].any() or (space.high[:n] != 1).any()
        )
        if has_clicks:
            return np.concatenate([clicks, np.ravel(observation["features"])]).astype(space.dtype)
        return features

    def act(self, observation: Any, is_first: bool, mask: NDArray[np.bool_] | None = None) -> Any:
        """Return the action of the model.

        Args:
            observation: the `observed` part; of a policy that chooses item by item with the items
                placed so far.
            is_first: whether an episode begins.
            mask: item by item, ``(L,)`` the items that are left.

        Raises:
            ValueError: it does not fit the observation space of the model.
        """
        if self._space is not None:
            self._check(observation, is_whole=mask is None)
        if not self.has_acted:
            self.has_acted = True
            if hasattr(self._model, "set_random_seed"):  # which seeds its environment, too
                from stable_baselines3.common.utils import set_random_seed

                set_random_seed(int(self._rng.integers(2**31)))
        for normaliser in self._normalisers:
            observation = normaliser.normalize_obs(observation)
        arguments = {
            "state": self.state,
            "episode_start": np.array([is_first]),
            "deterministic": self._deterministic,
        }
        if mask is not None:
            arguments["action_masks"] = mask
        answer = self._predict(
            observation, **{name: arguments[name] for name in self._takes & arguments.keys()}
        )
        if "state" in self._takes and isinstance(answer, tuple):
            answer, self.state = answer
        return answer

    def _check(self, observation: Any, is_whole: bool) -> None:
        """Refuse an observation of other shapes; before the first action also one of other values,
        or integers where a wrapper of the training made other numbers of them.
        """
        space: Any = self._space
        found = ""
        if not _same_shapes(observation, space):
            is_mapping = isinstance(observation, Mapping)
            shape = f"an array of shape {np.shape(observation)}"
            found = f"{list(observation)}" if is_mapping else shape
        elif not self.has_acted:
            # the last observation is a part of what a policy of items observes as one array
            if is_whole and _are_integers_for_floats(observation, self._raw_space):
                space, found = self._raw_space, "integers"
            elif not self._normalisers and not space.contains(observation):
                found = f"{short(observation)}"
        if found:
            raise ValueError(
                f"the model was trained on observations {space}, but got {found}: wrap the "
                "environment as in training"
            )


def _are_integers_for_floats(observation: Any, space: Any) -> bool:
    """Whether an observation has integers where a space has floats."""
    pairs = [(space, observation)]
    if isinstance(space, Dict) and isinstance(observation, Mapping):
        pairs = [(part, observation[name]) for name, part in space.items() if name in observation]
    return any(
        isinstance(part, Box) and part.dtype.kind == "f" and np.asarray(value).dtype.kind in "biu"
        for part, value in pairs
    )


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
