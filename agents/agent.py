"""`Agent`, the interface of all agents, and `CompiledAgent`, the base class of agents that consist
of compiled kernels.
"""

from __future__ import annotations

import io
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, InitVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Self, cast, dataclass_transform

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.checks import (
    as_call,
    check_count,
    check_flag,
    check_path,
    check_positions,
    check_within,
    generator,
    numbers,
)
from ..core.files import FORMAT, check_format, parse_json, read_arrays, reading, write_whole
from ..core.kernels import entry, static_kernels
from ..core.state import Declared, declared, first_arrays
from ..envs.spaces import check_ranking
from .clicks import checked_clicks, sessions_of_log
from .hyperparameters import (
    Hyperparameter,
    constructor,
    count,
    hyperparameter,
    replaced_by,
    take_declarations,
)
from .search_space import SearchSpace

Seed = int | np.random.SeedSequence | None


LARGEST_FEATURE = 1e6
"""The largest value of a feature. Norms should be at most 1; with very large values, sums of
squares lose the small ones.
"""


class Agent(ABC):
    """Ranks K of L items, session after session, and learns from the clicks.

    Subclass it in plain Python, with these two methods and a constructor ``(n_items, n_positions,
    *, ..., seed=None)``, and the agent works everywhere: `clickgym.run`, `clickgym.sweep`, and
    ``clickgym run --agents module:Class``. An agent sees only the arguments of these methods: never
    the click model, the optimum, or ``info``.

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
    """Whether `update` takes any list, also one of another agent or of a log; if False, only the
    list that `rank` has just returned.
    """

    search_space: ClassVar[SearchSpace] = {}
    """What `clickgym.tune` may search: a `Range` or the values of each hyper-parameter; empty if
    there is nothing to tune. It contains the default; if the default is None and follows from the
    horizon, the search also tries None.
    """

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
            observation: the observation that `rank` got.
            ranking: ``(K,)`` the list that was shown, as `rank` returned it.
            clicks: ``(K,)`` 0 or 1 for each position.
            reward: the realised reward.
        """

    def leave(self) -> None:  # noqa: B027 (whoever need not know has nothing to write)
        """Note that the user has left for good (``terminated``): the next session is the first one
        of another user.
        """

    def __repr__(self) -> str:
        return as_call(
            self,
            **{
                name: getattr(self, name)
                for name in ("n_items", "n_positions")
                if hasattr(self, name)
            },
        )


@dataclass_transform(kw_only_default=True, field_specifiers=(hyperparameter,))
class _Declaring(Agent):
    """Lets type checkers know the constructors that are made of declarations; it does nothing
    else.
    """

    state: Any  # a named tuple of its own class

    if TYPE_CHECKING:

        def __init_subclass__(cls, *, kw_only: bool = True) -> None: ...


if TYPE_CHECKING:

    class _Sized(_Declaring, kw_only=False):
        """What all constructors take."""

        n_items: int
        n_positions: int
        _: KW_ONLY
        seed: InitVar[Seed] = None

else:
    _Sized = _Declaring


class CompiledAgent(_Sized):
    """An agent that consists of two compiled kernels and a named tuple of arrays; the base class of
    the published algorithms.

    A subclass sets ``rank_kernel(state, rng, ranking)``, which writes the list, and
    ``update_kernel(state, ranking, clicks)``, and ``state_type``, the class of its named tuple,
    whose fields declare their first values (see `clickgym.core.state`); or it builds the first
    state in `_initial_state` from ``self.n_items``, ``self.n_positions`` and
    ``self.hyperparameters``. It declares its hyper-parameters in its body (see
    `clickgym.agents.hyperparameters`) and gets a constructor ``(n_items, n_positions, *, ...,
    seed=None)``, which takes these and those of its bases; or it writes its own, which checks them
    and calls ``super().__init__(n_items, n_positions, seed, **hyperparameters)``. The runner's
    compiled loop calls the same kernels as `rank` and `update`, so both give the same lists bit for
    bit.

    Attributes:
        state: the named tuple; arrays that change in place, and constants.
        rng: the agent's own generator.
        hyperparameters: what the constructor was given, by name.
    """

    paper: ClassVar[str]
    """The paper of the algorithm, in short."""
    click_models: ClassVar[str] = "any"
    """The click models for which the algorithm was made."""
    told: ClassVar[Mapping[str, str]] = {}
    """Hyper-parameters that the paper assumes known, each with the source from which ``make_agent``
    fills it in: ``"initial_ranking"``, ``"optimal_ranking"``, ``"examination"``, or ``"users"``.
    The last one is the click model itself, for agents of experiments that draw their start from it.
    """

    growing: ClassVar[frozenset[str]] = frozenset()
    """State arrays that grow: `make_room` replaces them by longer ones."""

    flags: ClassVar[tuple[str, ...]] = ()
    """Names of true-or-false attributes that are saved with the state; one that a file lacks stays
    as in a new agent.
    """

    state_type: ClassVar[Any]
    """The named tuple, if its fields declare the first state."""
    declared: ClassVar[tuple[Declared, ...]]
    """The arrays that they declare."""
    undeclared: ClassVar[tuple[str, ...]]
    """The other fields."""

    rank_kernel: ClassVar[Callable[..., None]]
    update_kernel: ClassVar[Callable[..., None]]

    declarations: ClassVar[tuple[tuple[str, Hyperparameter], ...]] = ()
    """The hyper-parameters that the class itself declares."""
    _declared: ClassVar[dict[str, Hyperparameter]] = {}  # those of its bases, too

    _published: ClassVar[dict[str, type[CompiledAgent]]] = {}  # the classes of the package, by name

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__.startswith(f"{__package__}."):
            CompiledAgent._published.setdefault(cls.__name__, cls)
        if "state_type" in vars(cls):
            cls.declared = declared(cls.state_type)
            names = [array.name for array in cls.declared]
            cls.undeclared = tuple(field for field in cls.state_type._fields if field not in names)
        cls._collect_hyperparameters(take_declarations(cls))
        static_kernels(cls, ("rank_kernel", "update_kernel"))

    @classmethod
    def _collect_hyperparameters(cls, own: dict[str, Hyperparameter]) -> None:
        """Make the constructor, `search_space` and `told` from the declarations, where the class
        does not define them.
        """
        cls.declarations = tuple(own.items())
        cls._declared = {
            name: each
            for base in cls.__mro__[::-1]
            for name, each in vars(base).get("declarations", ())
        }
        if own and "search_space" not in vars(cls):
            cls.search_space = replaced_by(own, cls.search_space, "search")
        if own and "told" not in vars(cls):
            cls.told = replaced_by(own, cls.told, "told")
        if "__init__" not in vars(cls) and (own or hasattr(cls.__init__, "is_declared")):
            cls.__init__ = constructor(cls, cls._declared, CompiledAgent.__init__)  # type: ignore[method-assign]

    def __init__(
        self, n_items: int, n_positions: int, seed: Seed = None, **hyperparameters: Any
    ) -> None:
        self.n_items = check_count("n_items", n_items)
        self.n_positions = check_positions(n_positions, self.n_items)
        self.hyperparameters = hyperparameters
        for name, each in self._declared.items():
            if name in hyperparameters:
                hyperparameters[name] = each.checked(name, hyperparameters[name], self)
        self.rng = generator(seed)
        self.state = self._initial_state()
        # The last list, as long as it waits for its clicks; -1 in front where it does not.
        self.ranking = np.full(self.n_positions, -1, np.int64)

    def _initial_state(self) -> Any:
        """Return the state before the first session: as its fields declare it, with
        `_first_values`.
        """
        if not hasattr(self, "state_type"):
            raise TypeError(f"{type(self).__name__} has neither a state_type nor an _initial_state")
        values = first_arrays(self.state_type, self._state_sizes())
        for name in self.undeclared:
            if name in self.hyperparameters:
                values[name] = _own(self.hyperparameters[name])
        values.update(self._first_values())
        return self.state_type(**values)

    def _state_sizes(self) -> dict[str, int]:
        """Return the sizes by the letters that shapes of the state name."""
        return {"L": self.n_items, "K": self.n_positions}

    def _first_values(self) -> dict[str, Any]:
        """Return the first values of fields that declare none, unless they are hyper-parameters of
        the same name.
        """
        return {}

    def best(self) -> NDArray[np.int64]:
        """Return the list that the agent would show without exploration, by its present estimates;
        the agent does not change.

        Returns:
            ``(K,)`` distinct item ids, the top of the list first. Items of equal estimates are in
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

    def _best_by(self, estimates: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the list of the K largest estimates, the largest one at the position that the
        agent prefers.
        """
        order = np.argsort(-estimates, kind="stable")[: self.n_positions]
        ranking = np.empty(self.n_positions, np.int64)
        ranking[getattr(self.state, "positions", np.arange(self.n_positions))] = order
        return ranking

    def make_room(self, n_sessions: int) -> None:
        """Enlarge the state, if it grows, before sessions are played or a log is learned; kernels
        allocate no memory.

        Args:
            n_sessions: the largest number of sessions before the next call.
        """

    def rank(self, observation: Any = None) -> NDArray[np.int64]:
        """Choose the list to show, as `Agent.rank`.

        Args:
            observation: the last observation of the environment; only agents that need features or
                a state read it.

        Raises:
            ValueError: the observation lacks the features or the state that the agent needs.
        """
        arguments = self._seen(observation)
        self.make_room(1)
        entry(self.rank_kernel)(self.state, self.rng, self.ranking, *arguments)
        return self.ranking.copy()

    def _seen(self, observation: Any) -> tuple[NDArray[Any], ...]:
        """Return what the kernels need from an observation, checked."""
        return ()

    def update(
        self, observation: Any, ranking: ArrayLike, clicks: ArrayLike, reward: float = 0.0
    ) -> None:
        """Learn from the clicks on a list.

        Args:
            observation: the observation that `rank` got for this list.
            ranking: ``(K,)`` the list that was shown: the last one of `rank`; for an agent that
                learns from any list any other, too.
            clicks: ``(K,)`` 0 or 1 for each position; for an agent that learns from any list also
                -1, from a position on that was not shown.
            reward: unused.

        Raises:
            ValueError: an agent that does not learn from any list got a list that is not its last
                one; or impossible clicks. Then nothing is learned.
        """
        checked = checked_clicks(clicks, self.n_positions, cut_off=self.learns_from_any_list)
        arguments, is_last = (
            self._seen(observation),
            self.ranking[0] >= 0 and _are_equal(ranking, self.ranking),
        )
        if is_last:
            items = self.ranking
        elif self.learns_from_any_list:
            items = check_ranking(ranking, self.n_items, self.n_positions)
            self.make_room(1)
        elif self.ranking[0] < 0:
            raise ValueError(
                f"update got the list {ranking!r}, but no list waits for clicks; call rank before each update"
            )
        else:
            raise ValueError(f"update got the list {ranking!r}, but rank returned {self.ranking!r}")
        entry(self.update_kernel)(self.state, items, checked, *arguments)
        if is_last:
            self.ranking[0] = -1

    def learn(self, log: Any) -> None:
        """Learn from a log, sessions in which something else chose the lists.

        Args:
            log: any object with ``rankings (n, K)`` and ``clicks (n, K)``, such as a click log in
                memory; they may have fewer columns. Items or clicks are -1 from the position where
                a list ends or was not seen any further. Agents that rank by features also need
                ``context (n, K, d)``, the features of the item at each position.

        Raises:
            TypeError: what is given has no rankings and clicks.
            ValueError: the agent learns only from its own lists, or lists or clicks are impossible.
                Then nothing is learned.

        Example:
            >>> from types import SimpleNamespace
            >>> from clickgym.agents import CascadeTS
            >>> agent = CascadeTS(3, 2, seed=0)
            >>> agent.learn(SimpleNamespace(rankings=[[0, 1], [2, -1]], clicks=[[0, 1], [1, -1]]))
            >>> agent.state.examined.tolist()
            [1, 1, 1]
        """
        if not self.learns_from_any_list:
            raise ValueError(
                f"{type(self).__name__} cannot learn from a log: it learns only from its own last list"
            )
        update, sessions = entry(self.update_kernel), list(self._sessions_of(log))
        self.make_room(len(sessions))
        for session in sessions:
            update(self.state, *session)

    def _sessions_of(self, log: Any) -> Iterable[tuple[NDArray[Any], ...]]:
        """Return the arguments of the update kernel, after the state, for each session of a log."""
        return zip(*sessions_of_log(log, self.n_items, self.n_positions), strict=True)

    def __repr__(self) -> str:
        return as_call(
            self, n_items=self.n_items, n_positions=self.n_positions, **self.hyperparameters
        )

    # ------------------------------------------------------------------------------------------------ saving and loading

    def save(self, path: str | Path | BinaryIO) -> None:
        """Write the agent to an ``.npz`` file of arrays and JSON, atomically; this works also in
        the middle of a run.

        Args:
            path: the file; or a binary file that is open for writing, such as ``io.BytesIO()``.

        Raises:
            TypeError: it is neither.
            OSError: the file cannot be written.
        """
        to = None if hasattr(path, "write") else check_path("path", path)
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
            **{name: getattr(self, name) for name in self.flags},
        }
        arrays = {f"state_{name}": value for name, value in self._arrays().items()}

        file = io.BytesIO()
        np.savez(
            file, description=np.array(json.dumps(description)), ranking=self.ranking, **arrays
        )
        if to is None:
            cast(BinaryIO, path).write(file.getvalue())
        else:
            write_whole(to, file.getvalue())

    def _arrays(self) -> dict[str, Any]:
        """The arrays of the state, by name."""
        return {name: value for name, value in self.state._asdict().items() if _is_array(value)}

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Copy saved arrays into the state."""
        for name, value in self._arrays().items():
            saved = arrays[name]
            if name in self.growing:
                value = np.empty((len(saved), *value.shape[1:]), value.dtype)
                self.state = self.state._replace(**{name: value})
            if (saved.shape, saved.dtype) != (value.shape, value.dtype):
                raise ValueError(
                    f"{name} is {saved.dtype}{saved.shape}; expected {value.dtype}{value.shape}"
                )
            value[...] = saved

    @classmethod
    def load(cls, path: str | Path | BinaryIO) -> Self:
        """Read an agent that `save` wrote; it continues exactly where it was.

        ``CompiledAgent.load`` reads any published agent. An agent of your own is read by its class,
        ``MyAgent.load``.

        Args:
            path: the file; or a binary file that is open for reading, such as
                ``io.BytesIO(content)``.

        Returns:
            The agent; called on a subclass, it must be one of that class.

        Raises:
            ValueError: the file is not a saved agent, or of another version; or its agent has
                another class.
        """
        if not isinstance(path, io.IOBase):
            path = check_path("path", path)
        cure = "restore it from a backup"
        with reading(path, "is not a saved agent, or damaged", cure):
            arrays = read_arrays(path)
            description = parse_json(str(arrays["description"]))
            name = str(description["agent"])
        check_format(path, description.get("format"))
        agent_class = cls if name == cls.__qualname__ else cls._published.get(name)
        if agent_class is None:
            raise ValueError(
                f"{path} holds an agent {name}, which is not a published one; call {name}.load"
            )
        if not issubclass(agent_class, cls):
            raise ValueError(f"{path} holds a {name}, not a {cls.__name__}")
        with reading(path, "is not a saved agent, or damaged", cure):
            return cast(Self, agent_class._restored(description, arrays))

    @classmethod
    def _restored(
        cls, description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> CompiledAgent:
        """The agent that a file describes."""
        agent = cls(
            description["n_items"],
            description["n_positions"],
            seed=0,
            **description["hyperparameters"],
        )
        agent.rng.bit_generator.state = description["generator"]
        agent.ranking[:] = arrays["ranking"]
        if agent.ranking[0] >= 0:  # else none waits for clicks
            check_ranking(agent.ranking, agent.n_items, agent.n_positions)
        for name in agent.flags:
            setattr(agent, name, check_flag(name, description[name]))
        agent._restore(
            {
                name.removeprefix("state_"): value
                for name, value in arrays.items()
                if name.startswith("state_")
            }
        )
        return agent


class ContextualAgent(CompiledAgent):
    """A `CompiledAgent` that ranks candidates by their features, which change in every session.

    Its kernels are ``rank_kernel(state, rng, ranking, features)`` and ``update_kernel(state,
    ranking, clicks, features)``; ``features`` is the ``(L, d)`` array of the session's candidates;
    row i is item i of this session. An observation is a mapping with ``"features"``.
    """

    n_features: int = hyperparameter(check=count(), doc="d, the number of features of a candidate.")

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        n_features: int,
        seed: Seed = None,
        **hyperparameters: Any,
    ) -> None:
        super().__init__(n_items, n_positions, seed, n_features=n_features, **hyperparameters)

    def _state_sizes(self) -> dict[str, int]:
        return {"L": self.n_items, "K": self.n_positions, "d": self.hyperparameters["n_features"]}

    def _sessions_of(self, log: Any) -> Iterable[tuple[NDArray[Any], ...]]:
        context = getattr(log, "context", None)
        if context is None:
            raise ValueError(
                f"{type(self).__name__} learns from features, and the log has no context"
            )
        features = checked_features(
            np.reshape(context, (-1, np.shape(context)[-1])), (None, self.n_features)
        )
        lists, clicks = sessions_of_log(log, None, self.n_positions)
        ranking = np.arange(self.n_positions)
        return (
            (ranking, *session)
            for session in zip(
                clicks, features.reshape(len(lists), -1, self.n_features), strict=True
            )
        )

    weights: ClassVar[str] = "theta"
    """Name of the state array with the weights of the features."""

    def best(self, features: ArrayLike) -> NDArray[np.int64]:  # type: ignore[override]  # there are no items of its own
        """Return the order of candidates by the present estimates, without exploration; the agent
        does not change.

        Args:
            features: ``(n, d)`` the features of any number of candidates.

        Returns:
            ``(n,)`` row numbers, the largest score first; rows of equal scores in their order.
        """
        rows = checked_features(features, (None, self.n_features))
        return np.argsort(-(rows @ getattr(self.state, self.weights)), kind="stable")

    def _seen(self, observation: Any) -> tuple[NDArray[Any], ...]:
        if not isinstance(observation, Mapping) or "features" not in observation:
            raise ValueError(
                f"{type(self).__name__} needs an observation with 'features', got {observation!r}"
            )
        value, shape = observation["features"], (self.n_items, self.n_features)
        if type(value) is np.ndarray and value.dtype.kind in "iuf" and value.shape == shape:
            features = np.array(value, np.float64, order="C")
            if (np.abs(features) <= LARGEST_FEATURE).all():
                return (features,)
        return (checked_features(value, shape),)


class StateAgent(CompiledAgent):
    """A `CompiledAgent` that observes the state of users with a memory.

    Its kernels are ``rank_kernel(state, rng, ranking, user)`` and ``update_kernel(state, ranking,
    clicks, user)``; ``user`` is a ``(3,)`` int64 array: the user's state; 1 in the first session of
    a user, else 0; and the number of sessions left if it is fixed, else -1. An observation is a
    mapping with ``"state"``.
    """

    flags = ("_is_first",)
    n_states: int = hyperparameter(check=count(), doc="S, the number of states.")
    _is_first = True

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        n_states: int,
        seed: Seed = None,
        **hyperparameters: Any,
    ) -> None:
        super().__init__(n_items, n_positions, seed, n_states=n_states, **hyperparameters)

    def _state_sizes(self) -> dict[str, int]:
        return super()._state_sizes() | {"S": self.n_states}

    def leave(self) -> None:
        self._is_first = True

    def best(self) -> NDArray[np.int64]:
        raise ValueError(
            f"{type(self).__name__} has no best list: it has one for each state of the user"
        )

    def update(self, *arguments: Any, **keywords: Any) -> None:
        """As `CompiledAgent.update`."""
        super().update(*arguments, **keywords)
        self._is_first = False

    def _seen(self, observation: Any) -> tuple[NDArray[Any], ...]:
        if not isinstance(observation, Mapping) or "state" not in observation:
            raise ValueError(
                f"{type(self).__name__} needs an observation with 'state', got {observation!r}"
            )
        state = check_within("state", observation["state"], 0, self.n_states - 1, "n_states - 1 = ")
        return (np.array([state, self._is_first, observation.get("sessions_left", -1)], np.int64),)


def _are_equal(ranking: ArrayLike, other: NDArray[np.int64]) -> bool:
    if type(ranking) is np.ndarray:
        return ranking.tolist() == other.tolist()  # faster for so few elements
    return np.array_equal(ranking, other)


def doubled(room: int, needed: int) -> int:
    """Return the new length of an array that grows: doubled until it is at least ``needed``."""
    while room < needed:
        room *= 2
    return room


def rates(clicks: NDArray[Any], sessions: NDArray[Any]) -> NDArray[np.float64]:
    """Return the clicks per session, 0 where there was no session."""
    return np.divide(clicks, sessions, out=np.zeros(sessions.shape), where=sessions > 0)


def checked_features(features: Any, shape: tuple[int | None, int | None]) -> NDArray[np.float64]:
    """Features as an array of a shape, whose numbers are finite and not too large to be squared."""
    expected = f"a finite number from {-LARGEST_FEATURE:g} to {LARGEST_FEATURE:g}"
    return numbers(
        "features", features, shape, -LARGEST_FEATURE, LARGEST_FEATURE, expected=expected
    )


def _own(value: Any) -> Any:
    """Return a copy of an array, and anything else as it is."""
    return value.copy() if _is_array(value) else value


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)
