"""The interface of agents, and the base of those whose inner part is compiled."""

from __future__ import annotations

import importlib
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.checks import (
    as_array,
    as_call,
    check_count,
    check_flag,
    check_path,
    check_positions,
    check_within,
    generator,
    numbers,
)
from ..core.files import parse_json, read_arrays, write_whole
from ..core.kernels import specialise, static_kernels
from ..core.trust import UntrustedError
from ..envs.spaces import check_ranking
from .search_space import SearchSpace

__all__ = ["Agent", "CompiledAgent", "ContextualAgent", "StateAgent"]

Seed = int | np.random.SeedSequence | None

LARGEST_FEATURE = 1e6
"""Features are meant to have norms of at most 1; far beyond, the sums of their squares lose what small ones told."""

# Left open in the template below; `specialise` binds it to an agent's kernel.
rank: Callable[..., None]


def _rank(state, rng, ranking):  # type: ignore[no-untyped-def]
    rank(state, rng, ranking)


def _rank_features(state, rng, features, ranking):  # type: ignore[no-untyped-def]
    rank(state, rng, features, ranking)


class Agent(ABC):
    """Ranks K of L items, session after session, and learns from the clicks.

    Subclass it in plain Python, with these two methods and a constructor ``(n_items, n_positions, *, ..., seed=None)``, and
    the agent works everywhere: `clickgym.run`, `clickgym.sweep`, and ``clickgym run --agents module:Class``. An agent sees
    what it is given here and nothing else: never the click model, the optimum, or ``info``.

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

    search_space: ClassVar[SearchSpace] = {}
    """What `clickgym.tune` may search: a `Range` or the values of each hyper-parameter; empty where there is nothing to tune.
    It contains the default; a default of None, which follows from the horizon, is tried beside it."""

    @abstractmethod
    def rank(self, observation: Any) -> NDArray[np.int64]:
        """Choose the list to show.

        Args:
            observation: what the environment last returned.

        Returns:
            ``(K,)`` distinct item ids, the top of the list first.
        """

    @abstractmethod
    def update(self, observation: Any, ranking: NDArray[np.int64], clicks: NDArray[np.int8], reward: float) -> None:
        """Learn from a session.

        Args:
            observation: what `rank` saw.
            ranking: ``(K,)`` the list that was shown, as `rank` returned it.
            clicks: ``(K,)`` 0 or 1 for each position.
            reward: the realised reward.
        """

    def leave(self) -> None:  # noqa: B027 (whoever need not know has nothing to write)
        """The user has left for good (the environment was ``terminated``): the next session is another user's first."""

    def __repr__(self) -> str:
        return as_call(self, **{name: getattr(self, name) for name in ("n_items", "n_positions") if hasattr(self, name)})


class CompiledAgent(Agent):
    """An agent whose inner part is two kernels over a named tuple of arrays; the base of the published algorithms.

    A subclass sets ``rank_kernel(state, rng, ranking)``, which writes the list, and ``update_kernel(state, ranking, clicks)``,
    and builds its first state in `_initial_state` from ``self.n_items``, ``self.n_positions`` and ``self.hyperparameters``.
    The runner's compiled loop calls the same kernels as `rank` and `update`, so both give the same lists bit for bit.

    Attributes:
        state: the named tuple; arrays that change in place, and constants.
        rng: the agent's own generator.
        hyperparameters: what the constructor was given, by name.
    """

    paper: ClassVar[str]
    """Where the algorithm is from."""
    click_models: ClassVar[str] = "any"
    """The click models it is made for."""
    told: ClassVar[Mapping[str, str]] = {}
    """Hyper-parameters that the paper assumes known, each with what ``make_agent`` fills in from the environment:
    ``"initial_ranking"``, ``"optimal_ranking"`` or ``"examination"``."""

    renewed: ClassVar[frozenset[str]] = frozenset()
    """State arrays that files of version 0.1 lack, or that must not be taken from them: they stay as in a new agent."""

    growing: ClassVar[frozenset[str]] = frozenset()
    """State arrays that `make_room` replaces by longer ones."""

    flags: ClassVar[tuple[str, ...]] = ()
    """Attributes beside the state that are saved, each True or False; one that a file lacks stays as in a new agent."""

    state: Any  # a named tuple of its own class
    rank_kernel: ClassVar[Callable[..., None]]
    update_kernel: ClassVar[Callable[..., None]]

    _classes: ClassVar[dict[tuple[str, str], type[CompiledAgent]]] = {}  # by module and name

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        CompiledAgent._classes[cls.__module__, cls.__qualname__] = cls
        static_kernels(cls, ("rank_kernel", "update_kernel"))

    def __init__(self, n_items: int, n_positions: int, seed: Seed, **hyperparameters: Any) -> None:
        self.n_items = check_count("n_items", n_items)
        self.n_positions = check_positions(n_positions, self.n_items)
        self.hyperparameters = hyperparameters
        self.rng = generator(seed)
        self.state = self._initial_state()
        # The list that waits for its clicks; -1 in front where none does.
        self.ranking = np.full(self.n_positions, -1, np.int64)

    @abstractmethod
    def _initial_state(self) -> NamedTuple:
        """The state before the first session."""

    def best(self) -> NDArray[np.int64]:
        """The list that it would show if it stopped exploring, by what it has learned so far; the agent stays as it is.

        Returns:
            ``(K,)`` distinct item ids, the top of the list first. Items of equal estimates stand in the order of their ids;
            the estimate of an item that was never observed is 0.

        Raises:
            ValueError: it has no such list.

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
        """The items of the K largest estimates, the largest on the position that the agent prefers."""
        order = np.argsort(-estimates, kind="stable")[: self.n_positions]
        ranking = np.empty(self.n_positions, np.int64)
        ranking[getattr(self.state, "positions", np.arange(self.n_positions))] = order
        return ranking

    def make_room(self, n_sessions: int) -> None:
        """Called before sessions are played, for states that grow; kernels themselves allocate nothing.

        Args:
            n_sessions: how many will be played at most before it is called again.
        """

    def rank(self, observation: Any = None) -> NDArray[np.int64]:
        self.make_room(1)
        specialise(_rank, rank=self.rank_kernel, counted=True)(self.state, self.rng, self.ranking)
        return self.ranking.copy()

    def update(self, observation: Any, ranking: ArrayLike, clicks: ArrayLike, reward: float = 0.0) -> None:
        """As `Agent.update`; refuses a list other than the one that `rank` returned last, a second time that list too, and what
        cannot be its clicks."""
        self.update_kernel(self.state, self.ranking, self._checked_clicks(ranking, clicks))
        self.ranking[0] = -1

    def _checked_clicks(self, ranking: ArrayLike, clicks: ArrayLike) -> NDArray[np.int8]:
        if self.ranking[0] < 0:
            raise ValueError(f"update got the list {ranking!r}, but none waits for clicks: call rank before each update")
        if type(ranking) is np.ndarray:
            same = ranking.tolist() == self.ranking.tolist()  # faster for so few elements
        else:
            same = np.array_equal(ranking, self.ranking)
        if not same:
            raise ValueError(f"update got the list {ranking!r}, but rank returned {self.ranking!r}")
        indicators = clicks if type(clicks) is np.ndarray else as_array("clicks", clicks)
        if indicators.shape != (self.n_positions,) or not set(indicators.tolist()) <= {0, 1}:
            raise ValueError(f"clicks are {clicks!r}; expected 0 or 1 for each of the {self.n_positions} positions")
        return indicators.astype(np.int8)

    def __repr__(self) -> str:
        return as_call(self, n_items=self.n_items, n_positions=self.n_positions, **self.hyperparameters)

    # ------------------------------------------------------------------------------------------------ saving and loading

    def save(self, path: str | Path) -> None:
        """Write the agent, in mid-run or not, to an ``.npz`` file of arrays and JSON, whole or not at all.

        Args:
            path: where.
        """
        description = {
            "module": type(self).__module__,
            "agent": type(self).__qualname__,
            "n_items": self.n_items,
            "n_positions": self.n_positions,
            "hyperparameters": {
                name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in self.hyperparameters.items()
            },
            "generator": self.rng.bit_generator.state,
            **{name: getattr(self, name) for name in self.flags},
        }
        arrays = {f"state_{name}": value for name, value in self._arrays().items()}

        file = io.BytesIO()
        np.savez(file, description=np.array(json.dumps(description)), ranking=self.ranking, **arrays)
        write_whole(Path(path), file.getvalue())

    def _arrays(self) -> dict[str, Any]:
        """The arrays of the state, by name."""
        return {name: value for name, value in self.state._asdict().items() if _is_array(value)}

    def _restore(self, arrays: Mapping[str, NDArray[Any]], renewed: frozenset[str] = frozenset()) -> None:
        """Take over arrays as `_arrays` gives them; those that are renewed stay as they are."""
        for name, value in self._arrays().items():
            if name not in renewed:
                saved = arrays[name]
                if name in self.growing:
                    value = np.empty((len(saved), *value.shape[1:]), value.dtype)
                    self.state = self.state._replace(**{name: value})
                if (saved.shape, saved.dtype) != (value.shape, value.dtype):
                    raise ValueError(f"{name} is {saved.dtype}{saved.shape}; expected {value.dtype}{value.shape}")
                value[...] = saved

    @classmethod
    def load(cls, path: str | Path, *, trust: bool = False) -> Self:
        """Read an agent that `save` wrote; it goes on exactly where it was.

        Args:
            path: the file.
            trust: whether the file may name a class of any module, which is imported if it is not yet. Without, it holds an
                agent of this package, or of the class (or a subclass) of your own on which ``load`` is called.

        Returns:
            The agent; called on a subclass, it must be one of that class.

        Raises:
            ValueError: the file is not a saved agent, or one of another class, or of a class that is not to be found or that
                the call does not name.
        """
        check_flag("trust", trust)
        path = check_path("path", path)
        try:
            arrays = read_arrays(path)
            description = parse_json(str(arrays["description"]))
            agent_class = _saved_class(description.get("module"), description["agent"], cls, trust)
            agent = agent_class(description["n_items"], description["n_positions"], seed=0, **description["hyperparameters"])
            agent.rng.bit_generator.state = description["generator"]
            agent.ranking[:] = arrays["ranking"]
            if agent.ranking[0] >= 0:  # else none waits for clicks
                check_ranking(agent.ranking, agent.n_items, agent.n_positions)
            for name in agent.flags:
                setattr(agent, name, check_flag(name, description.get(name, getattr(agent, name))))
            renewed = agent.renewed if "module" not in description else frozenset()  # which version 0.1 did not write
            agent._restore({name.removeprefix("state_"): value for name, value in arrays.items()}, renewed)
        except FileNotFoundError:
            raise
        except UntrustedError as error:
            raise UntrustedError(f"{path} {error}") from None
        except ImportError as error:
            raise ValueError(f"{path} holds an agent of a class that cannot be found: {error}") from None
        except Exception as error:
            raise ValueError(f"{path} is not a saved agent, or damaged: {error!r}; take a copy of it") from None
        if not isinstance(agent, cls):
            raise ValueError(f"{path} holds a {type(agent).__name__}, not a {cls.__name__}")
        return agent


class ContextualAgent(CompiledAgent):
    """A `CompiledAgent` that ranks candidates by their features, which are others in every session.

    Its kernels are ``rank_kernel(state, rng, features, ranking)`` and ``update_kernel(state, features, ranking, clicks)``;
    ``features`` is the ``(L, d)`` array of the session's candidates, row i that of item i of this session. An observation is a
    mapping with ``"features"``.
    """

    def __init__(self, n_items: int, n_positions: int, n_features: int, seed: Seed, **hyperparameters: Any) -> None:
        super().__init__(n_items, n_positions, seed, n_features=check_count("n_features", n_features), **hyperparameters)

    @property
    def n_features(self) -> int:
        """d, the number of features of a candidate."""
        return self.hyperparameters["n_features"]

    weights: ClassVar[str] = "theta"
    """The state array that scores features."""

    def best(self, features: ArrayLike) -> NDArray[np.int64]:  # type: ignore[override]  # there are no items of its own
        """The order of candidates by what was learned so far, without exploration; the agent stays as it is.

        Args:
            features: ``(n, d)`` of any number of candidates.

        Returns:
            ``(n,)`` their rows, the largest score first; equal ones in their order.
        """
        given = _features(features, (None, self.n_features))
        return np.argsort(-(given @ getattr(self.state, self.weights)), kind="stable")

    def rank(self, observation: Any = None) -> NDArray[np.int64]:
        """As `Agent.rank`; refuses an observation without ``(L, d)`` finite features."""
        features = self._checked_features(observation)
        specialise(_rank_features, rank=self.rank_kernel, counted=True)(self.state, self.rng, features, self.ranking)
        return self.ranking.copy()

    def update(self, observation: Any, ranking: ArrayLike, clicks: ArrayLike, reward: float = 0.0) -> None:
        """As `CompiledAgent.update`; ``observation`` is what `rank` saw."""
        indicators = self._checked_clicks(ranking, clicks)
        self.update_kernel(self.state, self._checked_features(observation), self.ranking, indicators)
        self.ranking[0] = -1

    def _checked_features(self, observation: Any) -> NDArray[np.float64]:
        if not isinstance(observation, Mapping) or "features" not in observation:
            raise ValueError(f"{type(self).__name__} needs an observation with 'features', got {observation!r}")
        given, shape = observation["features"], (self.n_items, self.n_features)
        if type(given) is np.ndarray and given.dtype.kind in "iuf" and given.shape == shape:
            features = np.array(given, np.float64, order="C")
            if (np.abs(features) <= LARGEST_FEATURE).all():
                return features
        return _features(given, shape)


class StateAgent(CompiledAgent):
    """A `CompiledAgent` that sees the state of users with a memory.

    Its kernels are ``rank_kernel(state, rng, user, ranking)`` and ``update_kernel(state, user, ranking, clicks)``; ``user`` is
    a ``(3,)`` int64 array: the user's state, 1 in the first session of a user and else 0, and the sessions left where their
    number is fixed, else -1. An observation is a mapping with ``"state"``.
    """

    flags = ("_is_first",)

    def __init__(self, n_items: int, n_positions: int, n_states: int, seed: Seed, **hyperparameters: Any) -> None:
        self._is_first = True
        super().__init__(n_items, n_positions, seed, n_states=check_count("n_states", n_states), **hyperparameters)

    @property
    def n_states(self) -> int:
        """S, the number of states."""
        return self.hyperparameters["n_states"]

    def leave(self) -> None:
        self._is_first = True

    def best(self) -> NDArray[np.int64]:
        raise ValueError(f"{type(self).__name__} has no best list: it has one for each state of the user")

    def rank(self, observation: Any = None) -> NDArray[np.int64]:
        """As `Agent.rank`; refuses an observation without a state in ``0..S-1``."""
        self.make_room(1)
        user = self._checked_user(observation)
        specialise(_rank_features, rank=self.rank_kernel, counted=True)(self.state, self.rng, user, self.ranking)
        return self.ranking.copy()

    def update(self, observation: Any, ranking: ArrayLike, clicks: ArrayLike, reward: float = 0.0) -> None:
        """As `CompiledAgent.update`; ``observation`` is what `rank` saw."""
        indicators = self._checked_clicks(ranking, clicks)
        self.update_kernel(self.state, self._checked_user(observation), self.ranking, indicators)
        self.ranking[0] = -1
        self._is_first = False

    def _checked_user(self, observation: Any) -> NDArray[np.int64]:
        if not isinstance(observation, Mapping) or "state" not in observation:
            raise ValueError(f"{type(self).__name__} needs an observation with 'state', got {observation!r}")
        state = check_within("state", observation["state"], 0, self.n_states - 1, "n_states - 1 = ")
        return np.array([state, self._is_first, observation.get("sessions_left", -1)], np.int64)


def rates(clicks: NDArray[Any], sessions: NDArray[Any]) -> NDArray[np.float64]:
    """Clicks per session, 0 where there was none."""
    return np.divide(clicks, sessions, out=np.zeros(sessions.shape), where=sessions > 0)


def _features(given: Any, shape: tuple[int | None, int]) -> NDArray[np.float64]:
    expected = f"a finite number from {-LARGEST_FEATURE:g} to {LARGEST_FEATURE:g}"
    return numbers("features", given, shape, -LARGEST_FEATURE, LARGEST_FEATURE, expected=expected)


def _saved_class(module: str | None, name: str, caller: type[CompiledAgent], trust: bool) -> type[CompiledAgent]:
    """The class that a file names.

    Args:
        module, name: as the file has them.
        caller: on which `load` was called: one from outside the package is named so, with its subclasses.
        trust: whether the file may name any other.
    """
    classes = CompiledAgent._classes
    module, name = _where(module, name)
    if _is_published(module):
        return classes[module, name]
    named = not _is_published(caller.__module__) and issubclass(classes.get((module, name), object), caller)
    if not trust and not named:
        raise UntrustedError(
            f"holds an agent of the class {name} of the module {module}, which the call does not name: call {name}.load, or "
            "trust the file with trust=True"
        )
    if (module, name) not in classes:
        try:
            importlib.import_module(module)
        except Exception as error:
            raise ImportError(f"{name} of the module {module}, which cannot be imported: {error}") from None
    if (module, name) not in classes:
        raise ImportError(f"{name} of the module {module}, which has no such agent")
    return classes[module, name]


def _where(module: str | None, name: str) -> tuple[str, str]:
    """Module and name of a class: of the package's own, which come first, the name says enough; version 0.1 wrote no more."""
    if module is not None and not _is_published(module):
        return module, name
    known = {known.__name__: known for known in reversed(CompiledAgent._classes.values())}[name]
    return known.__module__, known.__qualname__


def _is_published(module: str) -> bool:
    return module.startswith(f"{__package__}.")


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)
