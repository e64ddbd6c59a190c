"""`CompiledAgent`, the base class of agents that consist of two kernels and a named tuple of
arrays; `ContextualAgent`, with features; and `StateAgent`, with the state of a user.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.checks import (
    as_array,
    as_call,
    as_numbers,
    check_count,
    check_positions,
    generator,
    short_repr,
)
from ..core.kernels import Repeated, static_kernels
from ..core.state import check_dtypes, first_arrays
from ..core.sums import weighted_sums
from .agent import Agent, EnvTraits, Seed
from .saving import load_agent, save_agent

LARGEST_FEATURE = 1e6
"""The largest value of a feature. Norms should be at most 1: if values are very large, their sums
of squares lose small values to rounding.
"""


class CompiledAgent(Agent):
    """Base class of agents that consist of two compiled kernels, such as the published algorithms.

    A subclass sets

    - ``rank_kernel(state, rng, ranking)``, which writes the list into ``ranking``;
    - ``update_kernel(state, ranking, clicks)``, which learns from the clicks;
    - ``state_type``, the named tuple of the state. Its fields declare their initial values (see
      `clickgym.core.state`); a field without a declaration starts with the hyper-parameter of the
      same name, or with the value that `first_values` returns for it;
    - a constructor ``(n_items, n_positions, *, ..., seed=None)``, which checks the hyper-parameters
      and passes them by name to ``super().__init__(n_items, n_positions, seed, ...)``.

    The compiled loop of the runner calls the same kernels, so both engines give the same lists bit
    for bit. Compiled kernels do not notice an index out of range: use `check_agent`, or set
    ``NUMBA_BOUNDSCHECK=1`` in the environment.

    Attributes:
        state: the named tuple of arrays, which change in place, and constants.
        rng: the agent's own generator.
        hyperparameters: the hyper-parameters by name.
        ranking: ``(K,)`` the list that `rank` returned last; after `update`, its first entry is -1.
    """

    paper: ClassVar[str]
    """A short reference to the paper of the algorithm."""
    click_models: ClassVar[str] = "any"
    """The click models for which the algorithm was made."""

    state_type: ClassVar[Any]
    rank_kernel: ClassVar[Callable[..., None]]
    update_kernel: ClassVar[Callable[..., None]]

    kernels_suffice: ClassVar[bool] = True
    """Whether the kernels do everything that the agent does. If a class overrides `rank`, `update`
    or `leave`, or overrides `observed_arrays` without its own ``observes``, its agents run in
    Python, unless the class also sets ``kernels_suffice = True``.
    """

    growing: ClassVar[frozenset[str]] = frozenset()
    """Names of the state arrays that grow: `make_room` replaces them by longer ones."""
    session: ClassVar[tuple[str, ...]] = ("ranking",)
    """Names of the arrays of the current session, which are saved together with the state's
    arrays.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        static_kernels(cls, ("rank_kernel", "update_kernel"))
        attributes = vars(cls)
        parent = next(base for base in cls.__mro__[1:] if issubclass(base, CompiledAgent))
        methods = ["rank", "update", "leave"]
        if "observes" not in attributes:
            methods.append("observed_arrays")
        if any(getattr(cls, method) is not getattr(parent, method) for method in methods):
            cls.kernels_suffice = attributes.get("kernels_suffice", False)

    def __init__(
        self, n_items: int, n_positions: int, seed: Seed = None, **hyperparameters: Any
    ) -> None:
        self.n_items = check_count("n_items", n_items)
        self.n_positions = check_positions(n_positions, self.n_items)
        self.hyperparameters = hyperparameters
        self.rng = generator(seed)
        self.state = self._first_state()
        self.ranking = np.full(self.n_positions, -1, np.int64)
        self._clicks = np.zeros(self.n_positions, np.int8)
        self._repeated = Repeated()

    # ------------------------------------------------------ methods that a subclass may override

    def sizes(self) -> dict[str, int]:
        """Return the sizes by the letters in the shapes of the state."""
        return {"L": self.n_items, "K": self.n_positions}

    def first_values(self) -> dict[str, Any]:
        """Return the initial values of fields that are not hyper-parameters and do not declare an
        initial value.
        """
        return {}

    def _first_state(self) -> Any:
        values = first_arrays(self.state_type, self.sizes()) | self.first_values()
        for name in self.state_type._fields:
            if name not in values and name in self.hyperparameters:
                value = self.hyperparameters[name]
                values[name] = value.copy() if isinstance(value, np.ndarray) else value
        state = self.state_type(**values)
        check_dtypes(state)
        return state

    def make_room(self, n_sessions: int) -> None:
        """Enlarge the growing arrays before the next sessions, because kernels allocate no memory.

        Args:
            n_sessions: the largest number of sessions before the next call.
        """

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the state by field."""
        fields = self.state._asdict()
        return {name: value for name, value in fields.items() if isinstance(value, np.ndarray)}

    # -------------------------------------------------------------------- what the runner must know

    def engine_in(self, env: EnvTraits, engine: str) -> str:
        obstacle = env.obstacle
        if not self.kernels_suffice:
            obstacle = f"{type(self).__name__} overrides a method in Python"
        if engine == "compiled" and obstacle:
            raise ValueError(
                f"engine='compiled' cannot run {type(self).__name__} in {env.name}: {obstacle}; "
                "leave engine out"
            )
        return "python" if engine == "python" or obstacle else "compiled"

    # --------------------------------------------------------------------------------- the sessions

    def observed_arrays(self, observation: Any) -> tuple[NDArray[Any], ...]:
        """Check the observation and return the arrays of it that the kernels read."""
        return ()

    def rank(self, observation: Any = None) -> NDArray[np.int64]:
        """Choose the list to show, as `Agent.rank`.

        Args:
            observation: the last observation of the environment; only agents that require features
                or a state read it.

        Returns:
            ``(K,)`` distinct item ids, the top of the list first.

        Raises:
            ValueError: the observation lacks the features or the state that the agent requires.
        """
        observed = self.observed_arrays(observation)
        self.make_room(1)
        self._repeated(self.rank_kernel, self.state, self.rng, self.ranking, *observed)
        return self.ranking.copy()

    def update(
        self, observation: Any, ranking: ArrayLike, clicks: ArrayLike, reward: float = 0.0
    ) -> None:
        """Learn from the clicks on a list.

        Args:
            observation: the observation that was passed to `rank` for this list.
            ranking: ``(K,)`` the list that was shown, which is the last list from `rank`.
            clicks: ``(K,)`` 0 or 1 for each position.
            reward: unused.

        Raises:
            ValueError: bad clicks, or a list other than the last one. The agent then learns
                nothing.
        """
        self._clicks[:] = check_clicks(clicks, self.n_positions)
        observed = self.observed_arrays(observation)
        has_list = self.ranking[0] >= 0
        if not (has_list and _are_equal(ranking, self.ranking)):
            no_list = "no list is waiting for clicks; call rank before each update"
            expected = (
                f"the last call of rank returned {short_repr(self.ranking)}"
                if has_list
                else no_list
            )
            raise ValueError(f"update got the list {short_repr(ranking)}, but {expected}")
        self._repeated(self.update_kernel, self.state, self.ranking, self._clicks, *observed)
        self.ranking[0], self.has_played = -1, True

    def best(self) -> NDArray[np.int64]:
        """Return the list that the agent would show without exploration, by its current estimates.
        Calling this method does not change the agent.

        Returns:
            ``(K,)`` distinct item ids, the top of the list first. Items with equal estimates are in
            the order of their ids; the estimate of an item that was never observed is 0.

        Raises:
            ValueError: the agent has no such list.

        Example:
            >>> from clickgym.agents import EpsilonGreedy
            >>> agent = EpsilonGreedy(3, 2, seed=0)
            >>> ranking = agent.rank(None)
            >>> agent.update(None, ranking, [0, 1])
            >>> bool(agent.best()[0] == ranking[1])
            True
        """
        raise ValueError(f"{type(self).__name__} has no best list: its class defines none")

    def _best_by(
        self, estimates: NDArray[np.float64], positions: Any = slice(None)
    ) -> NDArray[np.int64]:
        """Return the list of the K largest estimates, the k-th largest at the k-th of
        ``positions``.
        """
        ranking = np.empty(self.n_positions, np.int64)
        ranking[positions] = np.argsort(-estimates, kind="stable")[: self.n_positions]
        return ranking

    # --------------------------------------------------------------------------- saving and loading

    def save(self, path: str | Path | BinaryIO) -> None:
        """Write the agent to an ``.npz`` file of arrays and JSON, atomically, at any time of a run.

        Args:
            path: the file; or a binary file that is open for writing, such as ``io.BytesIO()``.

        Raises:
            TypeError: ``path`` is neither.
            OSError: the file cannot be written.
        """
        save_agent(self, path)

    @classmethod
    def load(cls, path: str | Path | BinaryIO) -> Self:
        """Load an agent of this class from a file that `save` wrote. The agent continues exactly
        where it was saved.

        Args:
            path: the file; or a binary file that is open for reading, such as
                ``io.BytesIO(content)``.

        Returns:
            The agent.

        Raises:
            ValueError: the file is not a saved agent, is of another version, or holds an agent of
                another class.
        """
        return load_agent(cls, path)

    def __repr__(self) -> str:
        sizes = {"n_items": self.n_items, "n_positions": self.n_positions}
        return as_call(self, **sizes, **self.hyperparameters)


class ContextualAgent(CompiledAgent):
    """Base class of compiled agents that rank candidates by features, which change in every
    session.

    The kernels are ``rank_kernel(state, rng, ranking, features)`` and ``update_kernel(state,
    ranking, clicks, features)``; ``features`` is the ``(L, d)`` array of the session's candidates;
    row i is item i of this session. An observation is a mapping with ``"features"``.
    """

    observes = ("features",)

    weights: ClassVar[str] = "theta"
    """Name of the state array with the weights of the features."""

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        n_features: int,
        seed: Seed = None,
        **hyperparameters: Any,
    ) -> None:
        self.n_features = check_count("n_features", n_features)
        super().__init__(n_items, n_positions, seed, n_features=self.n_features, **hyperparameters)
        self._features = np.zeros((n_items, n_features))

    def sizes(self) -> dict[str, int]:
        return super().sizes() | {"d": self.n_features}

    def observed_arrays(self, observation: Any) -> tuple[NDArray[Any], ...]:
        features = observed_value(self, observation, "features")
        shape = (self.n_items, self.n_features)
        is_usual = type(features) is np.ndarray and features.dtype == np.float64
        is_usual = is_usual and features.shape == shape
        if not (is_usual and (np.abs(features) <= LARGEST_FEATURE).all()):
            features = check_features(features, shape)
        self._features[:] = features
        return (self._features,)

    def best(self, features: ArrayLike) -> NDArray[np.int64]:  # type: ignore[override]
        """Return the order of candidates by the current estimates, without exploration. Calling
        this method does not change the agent.

        Args:
            features: ``(n, d)`` the features of any number of candidates.

        Returns:
            ``(n,)`` row numbers, the largest score first; rows with equal scores in their order.
        """
        rows = check_features(features, (None, self.n_features))
        return np.argsort(-weighted_sums(rows, getattr(self.state, self.weights)), kind="stable")


class StateAgent(CompiledAgent):
    """Base class of compiled agents that observe the state of stateful users.

    The kernels are ``rank_kernel(state, rng, ranking, user)`` and ``update_kernel(state, ranking,
    clicks, user)``; ``user`` is a ``(3,)`` int64 array: the user's state; 1 in the first session of
    a user, otherwise 0; and the number of sessions left if it is fixed, otherwise -1. An
    observation is a mapping with ``"state"``.
    """

    observes = ("state",)
    session = ("ranking", "user")
    kernels_suffice = True  # the methods below keep ``user``, which the compiled loop reads itself

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        n_states: int,
        seed: Seed = None,
        **hyperparameters: Any,
    ) -> None:
        self.n_states = check_count("n_states", n_states)
        self.user = np.array([0, 1, -1])
        super().__init__(n_items, n_positions, seed, n_states=self.n_states, **hyperparameters)

    def sizes(self) -> dict[str, int]:
        return super().sizes() | {"S": self.n_states}

    def observed_arrays(self, observation: Any) -> tuple[NDArray[Any], ...]:
        state = observed_value(self, observation, "state")
        self.user[0] = check_count("state", state, 0, self.n_states - 1)
        self.user[2] = observation.get("sessions_left", -1)
        return (self.user,)

    def update(self, *arguments: Any, **keywords: Any) -> None:
        """As `CompiledAgent.update`."""
        super().update(*arguments, **keywords)
        self.user[1] = 0

    def leave(self) -> None:
        self.user[1] = 1

    def best(self) -> NDArray[np.int64]:
        raise ValueError(
            f"{type(self).__name__} has no single best list: the best list depends on the "
            "user's state"
        )


def rates(clicks: NDArray[Any], sessions: NDArray[Any]) -> NDArray[np.float64]:
    """Return the clicks per session, or 0 before the first session."""
    return np.divide(clicks, sessions, out=np.zeros(sessions.shape), where=sessions > 0)


def observed_value(agent: Agent, observation: Any, key: str) -> Any:
    """Return the entry of an observation that an agent requires."""
    if not isinstance(observation, Mapping) or key not in observation:
        name = type(agent).__name__
        raise ValueError(
            f"{name} requires an observation with {key!r}, got {short_repr(observation)}; "
            "pass the observation that reset or step of the environment returned"
        )
    return observation[key]


def check_features(features: Any, shape: tuple[int | None, int | None]) -> NDArray[np.float64]:
    """Return features as an array of the given shape, whose numbers are finite and small enough to
    be squared.
    """
    expected = f"a finite number from {-LARGEST_FEATURE:g} to {LARGEST_FEATURE:g}"
    return as_numbers(
        "features", features, shape, -LARGEST_FEATURE, LARGEST_FEATURE, expected=expected
    )


def check_clicks(clicks: ArrayLike, n_positions: int) -> NDArray[np.int8]:
    """Return clicks of 0 and 1 as an array."""
    array = clicks if type(clicks) is np.ndarray else as_array("clicks", clicks)
    is_row = array.shape == (n_positions,) and array.dtype.kind in "biuf"
    if is_row and set(array.tolist()) <= {0, 1}:
        return array.astype(np.int8)
    raise ValueError(
        f"clicks are {short_repr(clicks)}; expected 0 or 1 for each of the {n_positions} positions"
    )


def _are_equal(ranking: ArrayLike, other: NDArray[np.int64]) -> bool:
    if type(ranking) is np.ndarray:
        return ranking.tolist() == other.tolist()  # faster for few elements
    return np.array_equal(ranking, other)
