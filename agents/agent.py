"""`Agent`, the interface of all agents."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..core.checks import as_call
from .search_space import SearchSpace

Seed = int | np.random.SeedSequence | None


class Agent(ABC):
    """Base class of agents, which rank K of L items in every session and learn from the clicks.

    A subclass in plain Python has these two methods and a constructor ``(n_items, n_positions, *,
    ..., seed=None)``. It works in `clickgym.run`, `clickgym.sweep`, and ``clickgym run --agents
    module:Class``. An agent gets only the arguments of these methods: never the click model, the
    optimum, or ``info``.

    Example:
        >>> class Rotate(Agent):
        ...     def __init__(self, n_items, n_positions, *, seed=None):
        ...         self.items, self.n_positions = np.arange(n_items), n_positions
        ...
        ...     def rank(self, observation):
        ...         return self.items[: self.n_positions]
        ...
        ...     def update(self, observation, ranking, clicks, reward):
        ...         self.items = np.roll(self.items, 1)
        >>> Rotate(4, 2).rank(None)
        array([0, 1])
    """

    learns_from_any_list: ClassVar[bool] = False
    """Whether `update` accepts any list, such as one of another agent or of a log; if False, only
    the list that `rank` has just returned.
    """

    observes: ClassVar[tuple[str, ...]] = ()
    """The keys of an observation that the agent reads beside the clicks: ``"features"`` of
    candidates, the ``"state"`` of a stateful user.
    """

    requires: ClassVar[Mapping[str, str]] = {}
    """Arguments of the constructor that the paper assumes known, each with the source from which
    `clickgym.make_agent` fills it in unless it is passed: ``"examination"`` (the probability that
    each position is examined), ``"browsing"`` (the same by position and last click),
    ``"initial_ranking"``, ``"optimal_ranking"``, ``"mean_sessions"`` and ``"click_rewards"`` (of
    stateful users), or ``"users"``, the click model itself, for experiments.
    """

    search_space: ClassVar[SearchSpace] = {}
    """The search space of `clickgym.tune`: a `Range` or a list of values for each hyper-parameter;
    empty if there is nothing to tune. It contains the default; if the default is None and follows
    from the horizon, the search also tries None.
    """

    filled_in: Mapping[str, Any] = {}
    """The arguments of the constructor that `clickgym.make_agent` filled in."""

    @property
    def n_bytes(self) -> int:
        """Bytes of the arrays that the agent holds; 0 if that is unknown."""
        return 0

    @abstractmethod
    def rank(self, observation: Any) -> NDArray[np.int64]:
        """Choose the list to show.

        Args:
            observation: the last observation of the environment.

        Returns:
            ``(K,)`` distinct item ids, the top of the list first.
        """

    @abstractmethod
    def update(
        self, observation: Any, ranking: NDArray[np.int64], clicks: NDArray[np.int8], reward: float
    ) -> None:
        """Learn from a session.

        Args:
            observation: the observation that was passed to `rank`.
            ranking: ``(K,)`` the list that was shown, as returned by `rank`.
            clicks: ``(K,)`` 0 or 1 for each position.
            reward: the realised reward.
        """

    def leave(self) -> None:  # noqa: B027 (optional: most agents have nothing to do)
        """Handle the end of an episode of a stateful user (``terminated``): the next session is the
        first one of another user.
        """

    def __repr__(self) -> str:
        sizes = {name: getattr(self, name, None) for name in ("n_items", "n_positions")}
        return as_call(self, **sizes)
