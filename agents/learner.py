"""The interface of what learns in a loop of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from .search_space import SearchSpace

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecEnv

__all__ = ["Actions", "Learner", "Training"]

Actions = Literal["codes", "scores", "lists", "items"]
"""How a policy names a list: ``codes``, one number for each position, drawn independently (`LehmerVectorAction`); ``scores``,
one real number for each item, which are sorted (`ScoresVectorAction`); ``lists``, the number of a list among all lists
(`EnumeratedVectorAction`); ``items``, one item per step from the top of the list down, in episodes of one list
(`ItemByItemVector`)."""


class Training(NamedTuple):
    """What a learner is trained on before it is measured."""

    family: str
    """Of instances, as `load_instance` names it."""
    sessions: int
    """How many, over all streams."""
    episode: int
    """Sessions on one instance, before the next."""


class Learner(ABC):
    """What ranks and learns in a loop of its own, over many streams of sessions at once; `clickgym.run` runs it too.

    An `Agent` is asked for one list at a time; a learner is given the environment. It sees the same and no more:
    observations and rewards.

    Attributes:
        n_items, n_positions: L and K.
        n_envs: the number of parallel streams.
        items: ``(L,)`` a random order of the items, in which its actions count them: so that ids tell nothing, not even where
            an instance is stored in order of attraction.
        actions: how its policy names a list.
        training: None, or what it is trained on first, observing histories; it is then measured with frozen weights.
        model: what has learned, of the library; None before.
        discount: None where sessions are independent; else, which whoever plays it sets, the probability that a session is
            followed by another of its user.
    """

    engine: ClassVar[str]
    """The library whose loop it is."""
    learns_from: ClassVar[str] = "the rewards that arrive"
    """As of `clickgym.agents.Agent`."""
    search_space: ClassVar[SearchSpace] = {}
    """What `clickgym.tune` may search, as of `clickgym.agents.Agent`."""

    n_items: int
    n_positions: int
    n_envs: int
    items: np.ndarray
    actions: Actions
    training: Training | None = None
    discount: float | None = None
    model: Any = None
    rng: np.random.Generator

    @classmethod
    def takes_candidates(cls) -> bool:
        """Whether it can choose among some of the items: whether it honours masks."""
        return False

    @classmethod
    def can_replace(cls) -> bool:
        """Whether it can play where items are replaced: it observes which."""
        return True

    @abstractmethod
    def learn(self, envs: VecEnv, sessions: int, on_step: Callable[[], bool], log: Path | None = None) -> None:
        """Learn from sessions, going on from what was learned before.

        Args:
            envs: ``n_envs`` streams that take such actions; what measures them is their attribute ``meter``.
            sessions: how many are wanted, over all streams together.
            on_step: to be called after each step of the streams; learning ends when it returns False.
            log: a folder for TensorBoard; None writes nothing.
        """

    @abstractmethod
    def act(self, observations: Any) -> np.ndarray:
        """The actions of the frozen policy on observations of as many streams."""
