"""`Agent`, the interface of agents, and `BaseAgent`, which tells the runner what it must know about
agents of any kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.checks import as_call

Seed = int | np.random.SeedSequence | None


class UnsuitedError(ValueError):
    """An agent cannot play an environment, for example because it needs knowledge that this
    environment does not have.

    Args:
        name: the agent.
        reason: the rest of the sentence that begins with the name, such as "cannot ...".
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name, self.reason = name, reason

    def __str__(self) -> str:
        return f"{self.name} {self.reason}"

    @classmethod
    def of_all(cls, errors: Mapping[str, UnsuitedError]) -> UnsuitedError:
        """Combine the errors of several agents, given by label, into one error. Agents with the
        same reason are named together.
        """
        names: dict[str, list[str]] = {}
        for label, error in errors.items():
            names.setdefault(error.reason, []).append(label)
        sentences = []
        for reason, labels in names.items():
            each = "each " if len(labels) > 1 and not reason.startswith("cannot") else ""
            sentences.append((", ".join(labels), each + reason))
        (name, reason), *others = sentences
        return cls(name, "; ".join([reason, *map(" ".join, others)]))


class EnvTraits(NamedTuple):
    """The traits of an environment that decide which engine can run agents in it."""

    name: str
    """The class of the outermost wrapper, apart from those that every id has, or of the environment
    itself.
    """
    layer: str
    """The class of the outermost wrapper that counts, or of the environment itself."""
    obstacle: str
    """Why only the environment's own ``step`` can run its sessions; empty if compiled code can,
    too.
    """
    changing_users: str
    """The class of the users, if they change at given steps; otherwise empty."""
    observation_keys: tuple[str, ...]
    """The keys of its observations, if these are dicts, and of `Task.fields`."""
    sizes: Mapping[str, int]
    """The environment's ``n_items``, ``n_positions``, ``n_features`` and ``n_states``; 0 where it
    has none.
    """
    n_queries: int = 1
    """The number of queries, of which an episode plays one."""
    observation_space: Any = None
    """The space of its observations."""


class BaseAgent:
    """Base class of all agents: `Agent`, which ranks session by session, and `Learner`, which steps
    parallel streams. Both tell the runner what it must know before the first session.
    """

    observes: ClassVar[tuple[str, ...]] = ()
    """The keys of an observation that the agent reads besides the clicks: ``"features"`` of
    candidates, the ``"state"`` of a stateful user.
    """

    requires: ClassVar[Mapping[str, str]] = {}
    """Arguments of the constructor that the paper assumes known, each with the source from which
    `clickgym.make_agent` fills it in unless it is passed: ``"examination"`` (the probability that
    each position is examined), ``"browsing"`` (the same by position and last click),
    ``"termination_order"`` (positions by the probability that a click there ends the session, the
    largest first), ``"initial_ranking"``, ``"optimal_ranking"``, ``"mean_sessions"`` and
    ``"click_rewards"`` (of stateful users).
    """

    packages: ClassVar[tuple[str, ...]] = ()
    """The packages, besides numpy and numba, whose versions determine the agent's numbers."""
    bibtex_keys: ClassVar[Sequence[str]] = ()
    """The keys of the agent's papers in ``references.bib``, for ``clickgym report --bib``."""

    has_played: bool = False
    """Whether the agent has already learned: in `clickgym.run`, or, for agents of this package, in
    your own loop. A further run continues from this state, under another name.
    """

    filled_in: Mapping[str, Any] = {}
    """The arguments of the constructor that `clickgym.make_agent` filled in."""

    def engine_in(self, env: EnvTraits, engine: str) -> str:
        """The engine that runs the agent in an environment, as `clickgym.Result.engine` names it.

        Args:
            env: the environment.
            engine: ``"auto"``, ``"compiled"`` or ``"python"``.

        Raises:
            UnsuitedError: no engine can run the agent in this environment.
            ValueError: the requested engine cannot run the agent in this environment.
        """
        raise NotImplementedError


class Agent(BaseAgent, ABC):
    """Base class of agents, which rank K of L items in every session and learn from the clicks.

    Write a constructor ``(n_items, n_positions, *, ..., seed=None)`` and the methods `rank` and
    `update`, in plain Python. The class then works in `clickgym.run`, in `clickgym.sweep` and as
    ``clickgym run --agents module:Class``. An agent sees only the arguments of these methods, never
    the click model, the best list or ``info``.

    If users come back for several sessions and then leave for good, an agent that remembers its
    users must also define the method `leave`.

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

    def engine_in(self, env: EnvTraits, engine: str) -> str:
        if engine == "compiled":
            reason = f"{type(self).__name__} is a plain Python agent, without compiled kernels"
            raise ValueError(
                f"engine='compiled' cannot run {type(self).__name__} in {env.name}: {reason}; "
                "leave engine out"
            )
        return "python"

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
        self, observation: Any, ranking: NDArray[np.int64], clicks: NDArray[np.int64], reward: float
    ) -> None:
        """Learn from a session.

        Args:
            observation: the observation that was passed to `rank`.
            ranking: ``(K,)`` the list that was shown, as returned by `rank`.
            clicks: ``(K,)`` 0 or 1 for each position. The runner passes an int64 array.
            reward: the realised reward.
        """

    def leave(self) -> None:
        """Forget the user, who has left for good; the next session is the first session of another
        user.

        The runner calls this method after `update` if ``env.step`` returned ``terminated`` or
        ``truncated``, and once before the first session. The next observation does not result from
        the last list, so do not bootstrap from the next observation.
        """

    def __repr__(self) -> str:
        sizes = {name: getattr(self, name, None) for name in ("n_items", "n_positions")}
        return as_call(self, **sizes)
