"""Learners made of any class with the interface of stable-baselines3."""

from __future__ import annotations

import inspect
import warnings
from functools import cache
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete

from ..agent import Seed
from .learner import Actions, Learner


@cache
def adopt(algorithm: type) -> type[Learner]:
    """Return a learner class for an algorithm class with the interface of stable-baselines3.

    Its hyper-parameters are the arguments of the algorithm's constructor, with their defaults, and
    ``n_envs``. Only the discount is that of the named learners, and the device is the processor.
    Actions are of the first kind whose space the class accepts: codes, then scores, then items. A
    class that can mask actions, or that learns from whole episodes (ARS), chooses items.

    Args:
        algorithm: a subclass of ``stable_baselines3.common.base_class.BaseAlgorithm``.

    Returns:
        A subclass of `Learner` of the same name.

    Example:
        >>> import stable_baselines3
        >>> adopt(stable_baselines3.SAC)(10, 5, learning_rate=1e-3).actions
        'scores'
    """
    about = f"`{algorithm.__module__}.{algorithm.__name__}` on the stream of sessions."
    members = {
        "__doc__": about,
        "__module__": algorithm.__module__,
        "adopted": algorithm,
    }
    return type(algorithm.__name__, (_Adopted,), members)


class _Adopted(Learner):
    """A user's class with the interface of stable-baselines3 and its own defaults."""

    paper = "your own"
    actions: Actions = "codes"  # until the action space is known
    defaults: ClassVar = {"n_envs": 8}
    adopted: ClassVar[Any]

    def __init__(
        self, n_items: int, n_positions: int, *, seed: Seed = None, **hyperparameters: Any
    ) -> None:
        super().__init__(n_items, n_positions, seed=seed, **hyperparameters)
        self.actions = self._accepted()

    def algorithm(self) -> Any:
        return self.adopted

    def _accepted(self) -> Actions:
        """Return the first kind of actions whose space the class accepts, by trial."""
        # Masks are of items; and a class that learns from whole episodes, such as ARS, would wait
        # forever for the end of a stream.
        if {"use_masking", "async_eval"} & set(inspect.signature(self.adopted.learn).parameters):
            return "items"
        spaces: dict[Actions, gym.Space] = {
            "codes": MultiDiscrete(self.n_items - np.arange(self.n_positions)),
            "scores": Box(-1, 1, (self.n_items,)),
            "items": Discrete(self.n_items),
        }
        for actions, space in spaces.items():
            arguments = self.arguments(discount=1.0 if actions == "items" else 0.0)
            try:
                with warnings.catch_warnings():
                    # a batch may be too large for the single stream of this trial
                    warnings.simplefilter("ignore")
                    self.adopted(env=_Untried(self.n_positions, space), **arguments)
            except AssertionError as error:
                if "only supports" not in str(error):
                    raise
            else:
                return actions
        raise ValueError(
            f"{type(self).__name__} accepts no action space for ranked lists; "
            "expected MultiDiscrete (codes), Box (scores) or Discrete (items)"
        )


class _Untried(gym.Env):
    """An environment of spaces alone."""

    def __init__(self, n_positions: int, action_space: gym.Space) -> None:
        self.observation_space, self.action_space = MultiBinary(n_positions), action_space
