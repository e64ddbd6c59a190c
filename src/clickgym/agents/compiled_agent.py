"""Base classes of compiled agents: `CompiledAgent`, for agents that consist of two kernels and a
named tuple of arrays; `ContextualAgent`, for agents that read the features of candidates; and
`StateAgent`, for agents that read the state of a user.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.checks import as_array, as_numbers, check_count, check_path, check_positions, make_rng
from ..core.files import FORMAT, check_format, one_line_errors, write_whole
from ..core.kernels import RepeatedCalls, make_kernels_static
from ..core.messages import as_call, short_repr
from ..core.state import IS_FIRST, SESSIONS_LEFT, STATE, check_dtypes, first_arrays
from ..core.sums import weighted_sums
from ..envs.env_properties import EnvTraits
from .agent import Agent, Seed

MAX_FEATURE = 1e6
"""The largest allowed absolute value of a feature. Scale features so that the norm of each
candidate is at most 1: in sums of squares, rounding errors of very large values would hide small
values.
"""


class CompiledAgent(Agent):
    """Base class of agents that consist of two compiled kernels, such as the published algorithms.

    A subclass defines

    - ``rank_kernel(state, rng, ranking)``, which writes the list into ``ranking``;
    - ``update_kernel(state, ranking, clicks)``, which learns from the clicks;
    - ``state_type``, the named tuple of the state. Its fields declare their initial values (see
      `clickgym.core.state`); a field without a declaration starts with the hyperparameter of the
      same name, or with the value that `first_values` returns for it;
    - a constructor ``(n_items, n_positions, *, ..., seed=None)``, which checks the hyperparameters
      and passes them as keyword arguments to ``super().__init__(n_items, n_positions, seed, ...)``.

    The compiled loop of the runner calls the same kernels, so both engines produce exactly the same
    lists. Compiled kernels do not detect an index out of range. To find such errors, use
    `check_agent`, or set the environment variable ``NUMBA_BOUNDSCHECK=1``.

    Attributes:
        state: the named tuple of the state: arrays, which change in place, and constants.
        rng: the agent's own random generator.
        hyperparameters: the hyperparameters, in a mapping from names to values.
        ranking: ``(K,)`` the list that `rank` returned last. After `update`, the first entry is -1,
            because no list is waiting for clicks.

    Example:
        >>> from clickgym.agents import CascadeTS
        >>> agent = CascadeTS(4, 2, seed=1)
        >>> ranking = agent.rank()
        >>> agent.update(None, ranking, [1, 0])
        >>> agent.hyperparameters["feedback"], int(agent.state.clicks[ranking[0]])
        ('last_click', 1)
    """

    paper: ClassVar[str]
    """A short reference to the paper that describes the algorithm."""

    state_type: ClassVar[Any]
    rank_kernel: ClassVar[Callable[..., None]]
    update_kernel: ClassVar[Callable[..., None]]

    kernels_suffice: ClassVar[bool] = True
    """Whether the kernels alone can run the agent. If a class overrides `rank`, `update` or
    `leave`, or overrides `observed_arrays` without defining ``observes``, its agents run in Python,
    unless the class also sets ``kernels_suffice = True``.
    """

    growing: ClassVar[frozenset[str]] = frozenset()
    """The names of the state arrays that grow during a run. `make_room` replaces them with longer
    arrays.
    """
    session: ClassVar[tuple[str, ...]] = ("ranking",)
    """The names of the attributes that hold arrays of the current session. `save` writes them
    together with the arrays of the state.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        make_kernels_static(cls, ("rank_kernel", "update_kernel"))
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
        self.rng = make_rng(seed)
        self.state = self._first_state()
        self.ranking = np.full(self.n_positions, -1, np.int64)
        self._clicks = np.zeros(self.n_positions, np.int8)
        self._repeated = RepeatedCalls()

    # ------------------------------------------------------ methods that a subclass may override

    def sizes(self) -> dict[str, int]:
        """Return a mapping from the letters in the shapes of the state's fields to sizes."""
        return {"L": self.n_items, "K": self.n_positions}

    def first_values(self) -> dict[str, Any]:
        """Return the initial values of the state's fields that are not hyperparameters and do not
        declare an initial value.
        """
        return {}

    def _first_state(self) -> Any:
        values = first_arrays(self.state_type, self.sizes()) | self.first_values()
        for name in self.state_type._fields:
            if name not in values and name in self.hyperparameters:
                value = self.hyperparameters[name]
                values[name] = value.copy() if isinstance(value, np.ndarray) else value
        missing = set(self.state_type._fields) - {*values, *self.state_type._field_defaults}
        if missing:
            raise TypeError(
                f"the state has no first value for {', '.join(sorted(missing))}: pass a "
                "hyperparameter of this name to super().__init__, return the value from "
                "first_values, or declare it with Annotated"
            )
        state = self.state_type(**values)
        check_dtypes(state)
        return state

    def make_room(self, n_sessions: int) -> None:
        """Enlarge the growing arrays for the next sessions. Kernels cannot do so, because they do
        not allocate memory.

        Args:
            n_sessions: the largest number of sessions before the next call of this method.
        """

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The state's arrays, in a mapping from field names."""
        fields = self.state._asdict()
        return {name: value for name, value in fields.items() if isinstance(value, np.ndarray)}

    # -------------------------------------------------------------------- what the runner must know

    def _obstacle_in(self, env: EnvTraits) -> str:
        if not self.kernels_suffice:
            return f"{type(self).__name__} overrides a method in plain Python"
        return env.obstacle

    # --------------------------------------------------------------------------------- the sessions

    def observed_arrays(self, observation: Any) -> tuple[NDArray[Any], ...]:
        """Check an observation, and return the arrays in it that the kernels read."""
        return ()

    def rank(self, observation: Any = None) -> NDArray[np.int64]:
        """Choose the list to show in the next session.

        Args:
            observation: the last observation of the environment. Only agents that require features
                or a state read this argument.

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
        """Learn from the clicks on the last list.

        Args:
            observation: the observation that was passed to `rank` for this list.
            ranking: ``(K,)`` the list that was shown. It must be the list that `rank` returned
                last.
            clicks: ``(K,)`` 0 or 1 for each position.
            reward: the reward of the session; unused.

        Raises:
            ValueError: a click is neither 0 nor 1, or the list is not the one that `rank` returned
                last. The agent then learns nothing.
        """
        self._clicks[:] = check_clicks(clicks, self.n_positions)
        observed = self.observed_arrays(observation)
        has_list = self.ranking[0] >= 0
        if not (has_list and _are_equal(ranking, self.ranking)):
            expected = "no list is waiting for clicks; call rank before each update"
            if has_list:
                expected = f"the last list from rank is {short_repr(self.ranking)}; pass that list"
            raise ValueError(f"ranking is {short_repr(ranking)}, but {expected}")
        self._repeated(self.update_kernel, self.state, self.ranking, self._clicks, *observed)
        self.ranking[0], self.has_played = -1, True

    def best(self) -> NDArray[np.int64]:
        """Return the list that is best by the agent's current estimates, without exploration.
        Calling this method does not change the agent.

        Returns:
            ``(K,)`` distinct item ids, the top of the list first. Items with equal estimates are
            sorted by id. An item that was never observed has the estimate 0.

        Raises:
            ValueError: the agent does not define a best list.

        Example:
            >>> from clickgym.agents import EpsilonGreedy
            >>> agent = EpsilonGreedy(3, 2, seed=0)
            >>> ranking = agent.rank(None)
            >>> agent.update(None, ranking, [0, 1])
            >>> bool(agent.best()[0] == ranking[1])
            True
        """
        raise ValueError(f"{type(self).__name__} has no best list: its class does not define best")

    def _best_by(
        self, estimates: NDArray[np.float64], positions: Any = slice(None)
    ) -> NDArray[np.int64]:
        """Return the list of the items with the K largest estimates. The item with the k-th largest
        estimate is at position ``positions[k]``, counted from 0; by default, at position k.
        """
        ranking = np.empty(self.n_positions, np.int64)
        ranking[positions] = np.argsort(-estimates, kind="stable")[: self.n_positions]
        return ranking

    # --------------------------------------------------------------------------- saving and loading

    def save(self, path: str | Path | BinaryIO) -> None:
        """Save the agent to an ``.npz`` file of arrays and JSON, at any time in a run. Writing is
        atomic.

        Args:
            path: the path of the file, or a binary file object that is open for writing, such as
                ``io.BytesIO()``.

        Raises:
            TypeError: ``path`` is neither a path nor a binary file object.
            OSError: the file cannot be written.
        """
        description = {
            "format": FORMAT,
            "agent": type(self).__qualname__,
            "n_items": self.n_items,
            "n_positions": self.n_positions,
            "hyperparameters": {
                name: value.tolist() if isinstance(value, np.ndarray) else value
                for name, value in self.hyperparameters.items()
            },
            "generator": self.rng.bit_generator.state,
        }
        arrays: dict[str, Any] = {name: getattr(self, name) for name in self.session}
        arrays |= {f"state_{name}": value for name, value in self.arrays.items()}
        file = io.BytesIO()
        np.savez(file, description=np.array(json.dumps(description)), **arrays)
        if hasattr(path, "write"):
            path.write(file.getvalue())
        else:
            write_whole(check_path("path", path), file.getvalue())

    @classmethod
    def load(cls, path: str | Path | BinaryIO) -> Self:
        """Load an agent of this class from a file that `save` wrote. The agent continues exactly
        from where it was saved.

        Args:
            path: the path of the file, or a binary file object that is open for reading, such as
                ``io.BytesIO(content)``.

        Returns:
            The loaded agent.

        Raises:
            ValueError: the file is not a saved agent, was written by an incompatible version of
                clickgym, or holds an agent of another class.
        """
        if not hasattr(path, "read"):
            path = check_path("path", path)
        cure = "pass a file that save wrote, or restore this file from a backup"
        fault = "is not a saved agent, or is damaged", cure
        with one_line_errors(path, *fault), np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
            description = json.loads(str(arrays["description"]))
            saved_class = str(description["agent"])
        check_format(path, description.get("format"))
        if saved_class != cls.__qualname__:
            raise ValueError(
                f"{path} holds a saved {saved_class}, not a {cls.__qualname__}; load it with "
                f"{saved_class}.load"
            )
        with one_line_errors(path, *fault):
            sizes = description["n_items"], description["n_positions"]
            agent = cls(*sizes, seed=0, **description["hyperparameters"])
            agent.rng.bit_generator.state = description["generator"]
            for name in agent.session:
                getattr(agent, name)[:] = arrays[name]
            state: dict[str, Any] = {}
            for name, value in agent.arrays.items():
                state[name] = array = arrays[f"state_{name}"]
                n_free = 1 if name in agent.growing else 0  # their length may differ
                if (array.dtype, array.shape[n_free:]) != (value.dtype, value.shape[n_free:]):
                    raise ValueError(
                        f"{name} is {array.dtype}{array.shape}; expected {value.dtype}{value.shape}"
                    )
            agent.state = agent.state._replace(**state)
        return agent

    def __repr__(self) -> str:
        sizes = {"n_items": self.n_items, "n_positions": self.n_positions}
        return as_call(self, **sizes, **self.hyperparameters)


class ContextualAgent(CompiledAgent):
    """Base class of compiled agents that rank candidates by their features. The candidates change
    in every session.

    The kernels are ``rank_kernel(state, rng, ranking, features)`` and ``update_kernel(state,
    ranking, clicks, features)``; ``features`` is the ``(L, d)`` array of the session's candidates,
    in which row i describes item i of this session. An observation is a mapping with the key
    ``"features"``.

    Example:
        >>> from clickgym.agents import LinearTS
        >>> agent = LinearTS(3, 2, n_features=2, seed=0)
        >>> observation = {"features": [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]}
        >>> ranking = agent.rank(observation)
        >>> agent.update(observation, ranking, [1, 0])
        >>> agent.best([[0.0, 0.0], [1.0, 1.0]]).shape
        (2,)
    """

    observes = ("features",)

    weights: ClassVar[str] = "theta"
    """The name of the state array that holds the weights of the features."""

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
        if not (is_usual and (np.abs(features) <= MAX_FEATURE).all()):
            features = check_features(features, shape)
        self._features[:] = features
        return (self._features,)

    def best(self, features: ArrayLike) -> NDArray[np.int64]:  # type: ignore[override]
        """Return the order of candidates by the agent's current estimates, without exploration.
        Calling this method does not change the agent.

        Args:
            features: ``(n, d)`` the features of any number of candidates.

        Returns:
            ``(n,)`` the row numbers of the candidates, the largest score first. Candidates with
            equal scores keep their order.
        """
        rows = check_features(features, (None, self.n_features))
        return np.argsort(-weighted_sums(rows, getattr(self.state, self.weights)), kind="stable")


class StateAgent(CompiledAgent):
    """Base class of compiled agents that observe the state of users with memory.

    The kernels are ``rank_kernel(state, rng, ranking, user)`` and ``update_kernel(state, ranking,
    clicks, user)``; ``user`` is a ``(3,)`` int64 array. Its entries are the user's state; 1 in the
    first session of a user, otherwise 0; and the number of sessions that the user has left if that
    number is fixed, otherwise -1. An observation is a mapping with the key ``"state"``.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> env = gym.make("CascadeMDPRank-v0")
        >>> observation, info = env.reset(seed=0)
        >>> agent = clickgym.make_agent("CascadeVI", env, seed=0)
        >>> ranking = agent.rank(observation)
        >>> next_observation, reward, terminated, truncated, info = env.step(ranking)
        >>> agent.update(observation, ranking, next_observation["clicks"], reward)
    """

    click_models = "users with memory"
    observes = ("state",)
    session = ("ranking", "user")
    kernels_suffice = True  # the compiled loop itself tracks ``user``, as the methods below do

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
        self.user[STATE] = check_count("state", state, 0, self.n_states - 1)
        self.user[SESSIONS_LEFT] = observation.get("sessions_left", -1)
        return (self.user,)

    def update(self, *arguments: Any, **keywords: Any) -> None:
        """Learn from the clicks on the last list; the arguments are those of
        `CompiledAgent.update`.
        """
        super().update(*arguments, **keywords)
        self.user[IS_FIRST] = 0

    def leave(self) -> None:
        self.user[IS_FIRST] = 1


def rates(clicks: NDArray[Any], sessions: NDArray[Any]) -> NDArray[np.float64]:
    """Return the number of clicks per session for each item, or 0 for an item without sessions."""
    return np.divide(clicks, sessions, out=np.zeros(sessions.shape), where=sessions > 0)


def observed_value(agent: Agent, observation: Any, key: str) -> Any:
    """Return the entry ``key`` of an observation; a ValueError tells the user to pass an
    observation that has this entry.
    """
    if not isinstance(observation, Mapping) or key not in observation:
        name = type(agent).__name__
        raise ValueError(
            f"observation is {short_repr(observation)}, but {name} requires a dict with {key!r}; "
            "pass the observation that the environment's reset or step returned"
        )
    return observation[key]


def check_features(features: Any, shape: tuple[int | None, int | None]) -> NDArray[np.float64]:
    """Return features as an array of floats, after checking its shape and that every number is
    finite and at most `MAX_FEATURE` in absolute value.
    """
    expected = f"a finite number from {-MAX_FEATURE:g} to {MAX_FEATURE:g}"
    return as_numbers("features", features, shape, -MAX_FEATURE, MAX_FEATURE, expected=expected)


def check_clicks(clicks: ArrayLike, n_positions: int) -> NDArray[np.int8]:
    """Return clicks as an array, after checking that there is a 0 or 1 for each position."""
    array = clicks if type(clicks) is np.ndarray else as_array("clicks", clicks)
    is_row = array.shape == (n_positions,) and array.dtype.kind in "biuf"
    if is_row and set(array.tolist()) <= {0, 1}:
        return array.astype(np.int8)
    raise ValueError(
        f"clicks are {short_repr(clicks)}; expected 0 or 1 for each of the {n_positions} positions"
    )


def _are_equal(ranking: ArrayLike, other: NDArray[np.int64]) -> bool:
    if type(ranking) is np.ndarray:
        return ranking.tolist() == other.tolist()  # faster than NumPy for a few elements
    return np.array_equal(ranking, other)
