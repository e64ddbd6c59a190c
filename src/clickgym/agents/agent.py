"""Base classes of agents: `Agent`, from which you derive your own agent, and `BaseAgent`, which
defines what the runner can ask any agent before a run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..core.messages import as_call
from ..envs.env_properties import EnvTraits

Seed = int | np.random.SeedSequence | None


class UnsuitedError(ValueError):
    """Error raised if an agent cannot play an environment, for example because the agent requires
    knowledge about users that the environment does not provide.

    Args:
        name: the agent's name or label.
        reason: the rest of the error message, after the agent's name, such as ``"cannot ..."``.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name, self.reason = name, reason

    def __str__(self) -> str:
        return f"{self.name} {self.reason}"

    @classmethod
    def of_all(cls, errors: Mapping[str, UnsuitedError]) -> UnsuitedError:
        """Combine the errors of several agents, given in a mapping from their labels, into one
        error. The message lists agents with the same reason together.
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


class BaseAgent:
    """Base class of `Agent`, which ranks session by session, and of `Learner`, which steps parallel
    streams. The attributes and the method `engine_in` tell the runner, before the first session,
    what an agent requires and which engine can run the agent.
    """

    observes: ClassVar[tuple[str, ...]] = ()
    """The keys of an observation that the agent reads in addition to the clicks: ``"features"`` for
    the features of candidates, ``"state"`` for the state of a user with memory.
    """

    requires: ClassVar[Mapping[str, str]] = {}
    """The constructor arguments that the paper assumes to be known, each with the name of the value
    that `clickgym.make_agent` takes from the environment if you leave the argument out:
    ``"examination"`` (the probability that each position is examined), ``"browsing"`` (this
    probability for each position and each position of the last click), ``"termination_order"`` (the
    positions, sorted by decreasing probability that a click there ends the session),
    ``"initial_ranking"`` (the production list), ``"optimal_ranking"`` (the best list), and, for
    users with memory, ``"mean_sessions"`` and ``"click_rewards"``.
    """

    click_models: ClassVar[str] = "any"
    """The users for which the algorithm was designed, as tables print them, such as ``"CM, PBM and
    similar models"`` or ``"users with memory"``.
    """
    made_for_models: ClassVar[tuple[str, ...]] = ()
    """The short names of the click models in this text, such as ``("CM", "PBM")``. The agent's
    figure shows the first. Empty if the text names no click model.
    """

    theory_argument: ClassVar[str] = ""
    """The constructor argument whose default, None, is the radius of the paper's theory. A note
    below the table names the agents that use this default, because they explore much more than
    agents whose radius was chosen in experiments.
    """

    default_advice: ClassVar[str] = ""
    """A sentence on better settings, for an agent whose defaults come from the paper but often lose
    far more clicks. A note below the table prints it if the agent plays with all its defaults.
    """

    packages: ClassVar[tuple[str, ...]] = ()
    """The packages, in addition to numpy and numba, whose versions affect the agent's results."""
    bibtex_keys: ClassVar[Sequence[str]] = ()
    """The keys of the agent's papers in ``references.bib``, which ``clickgym report --bib`` cites.
    """

    has_played: bool = False
    """Whether the agent has already learned, in `clickgym.run` or, for clickgym's own agents, in
    your own loop. Another run continues from what the agent has learned, and its label says so.
    """

    filled_in: Mapping[str, Any] = {}
    """The constructor arguments that `clickgym.make_agent` filled in, with their values."""

    def engine_in(self, env: EnvTraits, engine: str) -> str:
        """Return the name of the engine that runs the agent in an environment, as in
        `clickgym.Result.engine`.

        Args:
            env: the traits of the environment.
            engine: the requested engine: ``"auto"``, ``"compiled"`` or ``"python"``.

        Raises:
            UnsuitedError: no engine can run the agent in this environment.
            ValueError: the requested engine cannot run the agent in this environment.
        """
        raise NotImplementedError


class Agent(BaseAgent, ABC):
    """Base class of agents that rank K of L items in every session and learn from the clicks.

    Write a constructor ``(n_items, n_positions, *, ..., seed=None)`` and the methods `rank` and
    `update`, in plain Python. The class then works in `clickgym.run`, in `clickgym.sweep` and as
    ``clickgym run --agents module:Class``. An agent sees only the arguments of its constructor and
    its methods, never the click model, the best list or ``info``.

    If users come back for several sessions, an agent that remembers something about the current
    user must also define the method `leave`, which is called when the user leaves for good.

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

    def _obstacle_in(self, env: EnvTraits) -> str:
        """Return why the compiled engine cannot run the agent in an environment; an empty text if
        it can.
        """
        return f"{type(self).__name__} is a plain Python agent without compiled kernels"

    def engine_in(self, env: EnvTraits, engine: str) -> str:
        obstacle = self._obstacle_in(env)
        if engine == "compiled" and obstacle:
            raise ValueError(
                f"engine='compiled' cannot run {type(self).__name__} in {env.name}: {obstacle}; "
                "leave engine out"
            )
        return "python" if engine == "python" or obstacle else "compiled"

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
        """Learn from the clicks of a session.

        Args:
            observation: the observation that was passed to `rank`.
            ranking: ``(K,)`` the list that `rank` returned and the user saw.
            clicks: ``(K,)`` 1 for each position that was clicked, otherwise 0. The runner passes an
                int64 array.
            reward: the reward of the session, as returned by ``env.step``.
        """

    def leave(self) -> None:
        """Forget the current user, who has left for good. The next session is another user's first
        session.

        The runner calls this method after `update` if ``env.step`` returned ``terminated`` or
        ``truncated``, and once before the first session. The next observation does not result from
        the last list, so do not use its value as a bootstrap target.
        """

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> tuple[NDArray[np.int64], None]:
        """Choose lists with `rank`, without learning from the clicks on them.

        The signature is that of the models of stable-baselines3, so ``evaluate_policy(agent, env)``
        plays an agent as it stands. The agent explores as in `rank`, so its random generator
        advances, and some agents count their own lists. If the agent is to go on learning as if
        nothing had happened, evaluate ``copy.deepcopy(agent)``.

        Args:
            observation: an observation of the environment, or the observations of n parallel
                environments: arrays with a first axis of length n.
            state: unused, because the agent itself remembers its user.
            episode_start: whether the observation is the first one of an episode; ``(n,)`` for
                parallel environments. The agent then forgets its user, as in `leave`. By default,
                no episode starts.
            deterministic: unused, because exploration is a part of the agent.

        Returns:
            The list ``(K,)``, or the lists ``(n, K)`` for parallel environments; and None, because
            there is no hidden state.

        Raises:
            ValueError: there are several parallel environments, but the agent remembers its user,
                because its class defines `leave`.
        """
        is_mapping = isinstance(observation, Mapping)
        clicks: Any = observation.get("clicks") if is_mapping else observation
        is_vector = np.ndim(clicks) == 2
        if is_vector and len(clicks) > 1 and type(self).leave is not Agent.leave:
            raise ValueError(
                f"{type(self).__name__} remembers its user, so it can play only one environment at "
                f"a time, not {len(clicks)} in parallel"
            )
        if episode_start is not None and np.any(episode_start):
            self.leave()
        if not is_vector:
            return np.asarray(self.rank(observation), np.int64), None
        rows: Any = observation
        if is_mapping:
            rows = [
                {key: values[i] for key, values in observation.items()} for i in range(len(clicks))
            ]
        return np.array([self.rank(row) for row in rows], np.int64), None

    def __repr__(self) -> str:
        sizes = {name: getattr(self, name, None) for name in ("n_items", "n_positions")}
        return as_call(self, **sizes)
