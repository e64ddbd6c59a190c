"""Agents made of classes that are no subclass of ours: of stable-baselines3 and with its interface,
or with a training loop of their own.
"""

from __future__ import annotations

import inspect
import warnings
from functools import cache
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete

from ..agent import BaseAgent, Seed
from .learner import Actions, Learner, OwnLoop


@cache
def adopt(algorithm: type) -> type[BaseAgent]:
    """Return an agent class for a class that trains in a loop of its own.

    A class whose ``learn`` takes ``envs``, ``sessions``, ``on_step`` and ``discount`` becomes an
    `OwnLoop`.

    A class with the interface of stable-baselines3, whose constructor takes ``policy`` and ``env``
    and whose ``learn`` takes ``total_timesteps`` and ``callback``, becomes a `Learner`. Its
    hyper-parameters are the arguments of the algorithm's constructor, with their defaults, and
    ``n_envs``. Only the discount is that of the named learners, and the device is the processor.
    Actions are of the first kind whose space the class accepts: codes, then scores, then items. A
    class that can mask actions, or that learns from whole episodes (ARS), chooses items.

    Raises:
        ValueError: it is none of both.

    Example:
        >>> import stable_baselines3
        >>> adopt(stable_baselines3.SAC)(10, 5, learning_rate=1e-3).actions
        'scores'
    """
    made_of, learned_by = _arguments(algorithm), _arguments(getattr(algorithm, "learn", None))
    members: dict[str, Any] = {"__module__": algorithm.__module__, "adopted": algorithm}
    if learned_by >= {"envs", "sessions", "on_step", "discount"}:
        members |= {"__doc__": algorithm.__doc__, "engine": _library_of(algorithm)}
        return type(algorithm.__name__, (algorithm, OwnLoop), members)
    if made_of >= {"policy", "env"} and learned_by >= {"total_timesteps", "callback"}:
        about = f"`{algorithm.__module__}.{algorithm.__name__}` on the stream of sessions."
        members |= {"__doc__": about, "engine": _library_of(algorithm)}
        return type(algorithm.__name__, (_Adopted,), members)
    raise ValueError(
        f"{algorithm.__module__}:{algorithm.__qualname__} is not a subclass of "
        "clickgym.agents.Agent, and has neither learn(envs, sessions, on_step, discount) nor the "
        "interface of stable-baselines3, (policy, env, ...) and learn(total_timesteps, callback)"
    )


def _arguments(function: Any) -> set[str]:
    """Return the names of the arguments of a class or a function; none if it has no signature."""
    try:
        return set(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return set()


def _library_of(algorithm: type) -> str:
    """Return the library whose loop a class has: stable-baselines3, or its own module's."""
    modules = [base.__module__.partition(".")[0] for base in algorithm.__mro__]
    return Learner.engine if "stable_baselines3" in modules else modules[0]


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
