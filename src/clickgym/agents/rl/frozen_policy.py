"""`FrozenPolicy`, an agent that ranks with a trained policy and does not learn."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, flatdim, flatten
from numpy.typing import NDArray

from ...core.checks import check_count, check_flag, check_path, check_positions, make_rng
from ...core.errors import FAILURES
from ...core.messages import as_call, short_repr
from ...core.user_modules import import_user_object
from ...envs.env_properties import EnvTraits
from ...envs.spaces import check_items, list_sizes, without_repeats
from ...envs.wrappers.actions import ListActionSpace
from ...envs.wrappers.item_by_item import Choices, PartialLists, space_of_partial_lists
from ..agent import Agent, Seed


class FrozenPolicy(Agent):
    """An agent that ranks with a trained policy and does not learn.

    The policy is a model from stable-baselines3 or sb3-contrib, or any function that returns lists.
    The model's action space tells the agent how to turn actions into lists; supported are the
    action spaces of `ScoresAction`, `ItemByItem` and `clickgym.agents.vec_env`. A recurrent policy
    keeps its hidden state from session to session.

    Run the agent in an environment without the wrappers ``FlattenObservation`` and ``VecNormalize``
    from training: the agent itself flattens and normalises observations in the same way. Keep any
    other wrapper that changes observations, such as ``FilterObservation``, `EpisodeCounts` or
    ``FrameStackObservation``. If your own wrapper changed the lists during training, pass as
    ``model`` a function that changes the model's lists in the same way. If you call `rank` in your
    own loop and users have states, flatten the observations yourself, unless the model chooses item
    by item: only the runner tells the agent the number of states.

    ⚠ The file of a model does not contain the statistics with which ``VecNormalize`` normalised
    observations, so load them, too: ``PPO.load(file, env=VecNormalize.load(statistics, envs))``.
    Both calls unpickle files, which can run arbitrary code, so load only files that you trust.

    Args:
        n_items, n_positions: the numbers of items and positions, L and K; by default, they are read
            from the model's action space.
        model: a trained model with a method ``predict``, or the file in which a model was saved; or
            a function that takes an observation, as the environment returns it, and returns a list,
            so not a network of torch. If a list repeats an item, the agent shows the item once and
            fills the free position with another item.
        algorithm: if ``model`` is a file, the class of the algorithm that saved it, or its name:
            ``"PPO"`` or another class of stable-baselines3, or ``"sb3_contrib:TRPO"``.
        deterministic: whether the model chooses the most probable action; if False, the model draws
            an action from its policy.
        seed: the seed of the random generator with which the model draws actions and
            `PlackettLuceActorCritic` breaks ties. Torch's global generator does not change.
        trained: the number of sessions from which the policy learned before it was frozen, which
            tables show; by default, they show no number. The clicks lost in these sessions are not
            counted.

    Raises:
        TypeError: ``model`` is neither a model nor a function, or is a file without an
            ``algorithm``, or the numbers of items and positions cannot be read from ``model`` and
            are not given.
        ValueError: ``n_items`` or ``n_positions`` is invalid, or differs from the model's action
            space; or the algorithm cannot load the file; or ``trained`` is negative.
        OSError: the file cannot be read.

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
    """The engine's name in `clickgym.Result.engine`, which marks in tables that the agent did not
    learn.
    """

    def __init__(
        self,
        n_items: int | None = None,
        n_positions: int | None = None,
        *,
        model: Any,
        deterministic: bool = True,
        seed: Seed = None,
        algorithm: Any = None,
        trained: int | None = None,
    ) -> None:
        if isinstance(model, str | os.PathLike):
            model = _load(model, algorithm)
        self.model, self._has_space = model, hasattr(model, "predict")
        if isinstance(model, type) or not (self._has_space or callable(model)):
            raise TypeError(
                f"model is {short_repr(model)}; expected a trained model with a method "
                "predict, the file of one, or a function that returns lists"
            )
        self.deterministic = check_flag("deterministic", deterministic)
        self.trained = None if trained is None else check_count("trained", trained, 0)
        self._actions: Any = getattr(model, "action_space", None)
        self._model_space: Any = getattr(model, "observation_space", None)
        self._env_space: Any = None  # the environment's space, which `engine_in` sets
        actions = self._actions
        self._partial_list_space = (
            space_of_partial_lists(actions) if isinstance(actions, Choices) else None
        )
        sizes = list_sizes(actions) or (n_items, n_positions)
        if isinstance(actions, ListActionSpace):
            sizes = actions.n_items, actions.n_positions
        if None in sizes:
            raise TypeError(
                f"model is {short_repr(model)}, which does not tell its numbers of items and "
                "positions; pass both, as in FrozenPolicy(10, 5, model=...)"
            )
        if (n_items or sizes[0], n_positions or sizes[1]) != sizes:
            raise _sizes_error(sizes, (n_items, n_positions))
        self.n_items = check_count("n_items", sizes[0])
        self.n_positions = check_positions(sizes[1], self.n_items)
        self._takes_masks = (
            "action_masks" in inspect.signature(getattr(model, "predict", model)).parameters
        )
        self._normaliser = getattr(model, "get_vec_normalize_env", lambda: None)()
        self._rng = make_rng(seed)
        self._state: Any = None  # the hidden state of a recurrent policy
        self._is_first = True  # whether the next session is the first of an episode

    def __repr__(self) -> str:
        model = getattr(self.model, "__name__", type(self.model).__name__)
        return as_call(self, n_items=self.n_items, n_positions=self.n_positions, model=model)

    def engine_in(self, env: EnvTraits, engine: str) -> str:
        super().engine_in(env, engine)
        sizes = env.sizes["n_items"], env.sizes["n_positions"]
        if sizes != (self.n_items, self.n_positions):
            raise _sizes_error((self.n_items, self.n_positions), sizes)
        self._env_space, seen = env.observation_space, self._model_space
        is_flattened = isinstance(seen, Box) and isinstance(self._env_space, Dict)
        is_flattened = is_flattened and self._partial_list_space is None
        if is_flattened and seen.shape != (flatdim(self._env_space),):
            raise ValueError(
                f"the model was trained on observations of shape {seen.shape}, but the environment "
                f"has {self._env_space}; put the training's wrappers, except FlattenObservation "
                "and VecNormalize, around the environment"
            )
        return self.engine

    def rank(self, observation: Any) -> NDArray[np.int64]:
        with _seed_torch(self.model, self._rng):
            if isinstance(self._actions, Choices):
                return self._item_by_item(observation)
            action = self._act(observation, self._is_first)
        self._is_first = False
        if isinstance(self._actions, ListActionSpace):
            return self._actions.lists(action, observation)
        items = check_items(action, self.n_items, self.n_positions)
        return without_repeats(items, self.n_items)

    def update(
        self, observation: Any, ranking: NDArray[np.int64], clicks: NDArray[np.int64], reward: float
    ) -> None:
        """Do nothing, because the policy is frozen."""

    def leave(self) -> None:
        self._state, self._is_first = None, True

    def _act(self, observation: Any, is_first: bool, mask: Any = None) -> Any:
        """Return the policy's action for an observation.

        Args:
            observation: the environment's observation; if the model chooses item by item, the
                observation includes the unfinished list.
            is_first: whether the action is the first one of an episode.
            mask: ``(L,)`` True for each item that is not yet in the list; only if the model chooses
                item by item.
        """
        if not self._has_space:
            try:
                return self.model(observation)
            except TypeError as error:
                if not hasattr(self.model, "state_dict"):
                    raise
                raise TypeError(  # a network of torch
                    f"{error}; pass a function that converts the observation to a tensor, and the "
                    "network's scores to a list"
                ) from error
        partial_list_space = self._partial_list_space
        env_space = self._env_space if partial_list_space is None else partial_list_space
        model_observation = _convert(observation, env_space, self._model_space)
        if self._normaliser is not None:
            model_observation = self._normaliser.normalize_obs(model_observation)
        masks = {"action_masks": mask} if self._takes_masks else {}
        action, self._state = self.model.predict(
            model_observation,
            state=self._state,
            episode_start=np.array([is_first]),
            deterministic=self.deterministic,
            **masks,
        )
        return action

    def _item_by_item(self, observation: Any) -> NDArray[np.int64]:
        partial_lists = PartialLists(self._actions)
        observation = _convert(observation, self._env_space, self._actions.observed)
        while not partial_lists.is_complete:
            is_first = partial_lists.position == 0
            mask = partial_lists.available
            choice = self._act(partial_lists.observe(observation), is_first, mask)
            partial_lists.place(np.asarray(choice))
        return partial_lists.rankings


def _load(file: str | os.PathLike[str], algorithm: Any) -> Any:
    """Load a trained model from a file."""
    if algorithm is None:
        raise TypeError(
            f"model is the file {str(file)!r}; name the algorithm that saved it, as in "
            "FrozenPolicy(model=..., algorithm='PPO') or FrozenPolicy:model=...,algorithm=PPO"
        )
    if isinstance(algorithm, str):
        name = algorithm if ":" in algorithm else f"stable_baselines3:{algorithm}"
        algorithm = import_user_object("algorithm", name)
    path = check_path("model", file)
    if not (path.exists() or path.with_name(f"{path.name}.zip").exists()):
        raise ValueError(f"the model file {path} does not exist")
    try:
        return algorithm.load(path, device="cpu")
    except OSError:
        raise
    except FAILURES as error:
        name = getattr(algorithm, "__name__", algorithm)
        raise ValueError(
            f"{name} cannot load the model {str(file)!r}: another algorithm or torch.save wrote "
            "it, or it is damaged; pass the algorithm that saved it, as in algorithm='PPO' or, in "
            "a command, algorithm=PPO; for a network of your own, pass a function as the model"
        ) from error


def _sizes_error(sizes: Any, others: Any) -> ValueError:
    """Return the error to raise if a model is used with other sizes ``(L, K)`` than its own."""
    return ValueError(
        f"model returns lists of {sizes[1]} out of {sizes[0]} items, but lists of {others[1]} out "
        f"of {others[0]} items are expected here; use a model that was trained with these sizes"
    )


def _convert(observation: Any, env_space: gym.Space | None, model_space: Any) -> Any:
    """Return an observation of the environment in the form that the model saw in training. A dict
    is reduced to the entries of ``model_space``, or flattened.
    """
    if model_space is None or not isinstance(observation, Mapping):
        return observation
    if isinstance(model_space, Dict):
        return {name: observation[name] for name in model_space.spaces}
    if hasattr(model_space, "flatten"):  # the space of one of clickgym's learners
        return model_space.flatten(observation)
    if env_space is not None:
        return flatten(env_space, observation)  # as FlattenObservation does
    # In a user's own loop, the space is unknown. The result is the same as that of `flatten`,
    # except for the states of users.
    return np.concatenate([np.ravel(observation[name]) for name in sorted(observation)])


@contextmanager
def _seed_torch(model: Any, rng: np.random.Generator) -> Iterator[None]:
    """Context manager in which a trained model draws random numbers from ``rng``. Torch's global
    generator is restored afterwards, so training in the same process is not affected.
    """
    if not hasattr(model, "set_random_seed"):  # a function, or a model without torch
        yield
        return
    import torch

    with torch.random.fork_rng():
        # torch.manual_seed also prepares the seed of GPUs, which takes longer than a small network.
        on_cpu = torch.device(model.device).type == "cpu"
        seed = torch.default_generator.manual_seed if on_cpu else torch.manual_seed
        seed(int(rng.integers(2**31)))
        yield
