"""The interface of learners: algorithms that run their own training loop, such as those of stable-baselines3."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from .search_space import SearchSpace

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecEnv

Actions = Literal["rankings", "codes", "scores", "items", "lists"]
"""How the actions of a policy name a list.

| actions | one of them is | its space | wrapper | who takes them |
|---|---|---|---|---|
| `rankings` | the list itself | `RankedList` | none | PPO, A2C (`PlackettLuceActorCritic`; masks) |
| `codes` | K numbers, each counts the items left | `MultiDiscrete` | `LehmerVectorAction` | PPO, A2C, RecurrentPPO |
| `scores` | L numbers that sort the items | `Box` | `ScoresVectorAction` | SAC, TD3; PPO, A2C, RecurrentPPO |
| `items` | one item; a list takes K steps | `Discrete` | `ItemByItemVector` | MaskablePPO (masks); DQN, PPO, A2C |
| `lists` | the number of a list among all | `Discrete` | `EnumeratedVectorAction` | DQN |
"""


class Training(NamedTuple):
    """The training of a learner before it is measured: the instances, and the numbers of sessions."""

    family: str
    """The family of instances, by its name in `load_instance`."""
    sessions: int
    """The number of sessions over all streams."""
    episode: int
    """The number of sessions on one instance before the next."""


class Learner(ABC):
    """Base class of algorithms with their own training loop over parallel streams of sessions; `clickgym.run` runs them too.

    An `Agent` is asked for one list at a time, but a learner is given the environment. It observes the same as an agent:
    observations and rewards.

    Attributes:
        n_items, n_positions: L and K.
        n_envs: the number of parallel streams.
        items: ``(L,)`` a random order of the items, in which its actions number them. The ids of items therefore contain no
            information, even if an instance is stored in order of attraction. Rankings hold the ids themselves (``0..L-1``):
            that policy treats all ids alike, because the initial weights of its outputs are exchangeable.
        actions: how its policy names a list.
        training: None, or its training on other instances, with histories as observations; it is then measured with frozen
            weights.
        model: the trained object of the library; None before training.
        discount: None if sessions are independent; otherwise the probability that a session is followed by another of the same
            user, set by the code that runs the learner.
    """

    engine: ClassVar[str]
    """The library whose training loop it uses."""
    search_space: ClassVar[SearchSpace] = {}
    """The search space of `clickgym.tune`, as of `clickgym.agents.Agent`."""

    n_items: int
    n_positions: int
    n_envs: int
    items: np.ndarray
    actions: Actions
    training: Training | None = None
    discount: float | None = None
    model: Any = None
    rng: np.random.Generator

    @property
    def choices(self) -> int:
        """How many steps choose a list."""
        return self.n_positions if self.actions == "items" else 1

    @abstractmethod
    def learn(self, envs: VecEnv, sessions: int, on_step: Callable[[], bool]) -> None:
        """Learn from sessions, and continue from what was learned before.

        Args:
            envs: ``n_envs`` streams that take the learner's actions; their attribute ``meter`` measures regret.
            sessions: the number of sessions over all streams together.
            on_step: the function to call after each step of the streams; learning ends when it returns False.
        """

    @abstractmethod
    def act(self, observations: Any) -> np.ndarray:
        """Return the actions of the frozen policy, one for each stream's observation."""
