"""What a kind of simulated users consists of, and the task of a click model.

A kind of users is a `Task`: constants, a declared state, and three kernels. Environments and the
compiled loop simulate sessions with only these three kernels::

    session(constants, state, b, ranking, uniforms, clicks, examined)
        -> realised, expected, satisfied
    begin(constants, state, b, rng)
    advance(constants, state, b, rng) -> whether the user has left

``constants`` is a record of all that stays the same from session to session, and working memory. A
kernel writes working memory before it reads it, so nothing is carried from one call to the next.

``state`` is all that the next session depends on. Its arrays have one row for each of B streams of
sessions, and a kernel reads and writes row ``b`` alone. `ClickEnv` has one stream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.spaces import MultiBinary
from numpy.typing import NDArray

from ..core.kernels import kernel
from ..core.state import Floats, first_arrays

REWARDS = ("clicks", "any_click", "satisfaction")
CLICKS, ANY_CLICK, SATISFACTION = range(3)
"""Rewards as the kernels get them: the indices in `REWARDS`."""


@kernel
def draw_nothing(constants, state, b, rng):
    """The kernel that serves as both ``begin`` and ``advance`` for users whose sessions are all
    alike.
    """
    return False


class Kernels(NamedTuple):
    """The kernels of a kind of users."""

    session: Callable[..., tuple[float, float, int]]
    """Simulates one session of stream b: writes clicks and examined ``(K,)``; returns the realised
    and the expected reward, and the position at which the user left satisfied, or -1."""
    begin: Callable[..., Any] = draw_nothing
    """Draws the first session of a new user on stream b."""
    advance: Callable[..., bool] = draw_nothing
    """Draws what follows a session on stream b, and returns whether the user has left. If so, only
    ``begin`` continues the stream.
    """


class State(NamedTuple):
    """The state of users whose sessions are all alike. The field ``optimum``, the expected reward
    of the best list of the next session, is required of every state.
    """

    optimum: Annotated[Floats, "B"]


class Task:
    """The law of users who do not change, in one environment. A task is constant: only the state
    changes from session to session, and the state belongs to the environment.

    A subclass sets the attributes, in its class or constructor, and defines `best`.

    Attributes:
        model: the users, whom errors name.
        constants: what the kernels get: a named tuple of arrays, numbers and such tuples.
        kernels: the three kernels.
        state_type: the class of the state: a named tuple whose fields declare their arrays (see
            `clickgym.core.state`), each with the letter B first.
        sizes: the sizes that the other letters in these shapes stand for.
        observation_space: the space of what `observe` returns.
        fields: keys of observations and of ``info``, with the field of the state that has their
            values, where the names differ. Other fields are hidden from agents.
    """

    model: Any
    constants: Any
    kernels: Kernels
    state_type: Any = State
    sizes: Mapping[str, int] = {}
    observation_space: gym.Space[Any]
    fields: Mapping[str, str] = {}

    def first_state(self, n_streams: int) -> Any:
        """Return the state of B new streams, before ``begin``."""
        return self.state_type(**first_arrays(self.state_type, {**self.sizes, "B": n_streams}))

    def start(self, state: Any, seed: int) -> None:
        """Set what the seed of ``reset`` determines on new streams, besides the random draws."""

    def best(self, state: Any) -> NDArray[np.int64]:
        """Return ``(B, K)`` the best list of the next session on each stream, in a new array."""
        raise NotImplementedError

    def observe(self, state: Any, b: int | slice, clicks: NDArray[np.int8]) -> Any:
        """Return the observation after a session, in new arrays.

        Args:
            state: the state of the next sessions.
            b: the number of a stream, or ``slice(None)`` for all of them.
            clicks: ``(K,)`` or ``(B, K)``, those of the last session. They may be returned.
        """
        return clicks

    def info(self, state: Any, b: int | slice) -> dict[str, Any]:
        """Return the entries of ``info`` about the next session, in new arrays: the numbers of its
        user and candidates, if these change.
        """
        return {}

    def gains(self, state: Any, b: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]] | None:
        """Return the gains of all items in the metric ``ndcg@k``, and for each candidate of
        stream b the index of its gain, as views of the state. Return None if items do not change
        from session to session, or have no gains.
        """
        return None

    def observed(self, state: Any, keys: tuple[str, ...]) -> tuple[NDArray[Any], ...]:
        """Return what an agent's kernels get from the first stream for the keys of an observation,
        as views of the state. A field with one value for each stream is an array ``(1,)``.
        """
        rows = [getattr(state, self.fields.get(key, key)) for key in keys]
        return tuple(field[0] if field.ndim > 1 else field[:1] for field in rows)


class ClickConstants(NamedTuple):
    """The users of a click model."""

    parameters: Any  # the parameters of the click model
    reward: int  # CLICKS, ANY_CLICK or SATISFACTION
    cutoff: int
    scratch: NDArray[np.float64]  # (K + 1,) working memory of the click model's kernels


@cache
def click_session(
    sample: Callable[..., int], expected: Callable[..., float]
) -> Callable[..., tuple[float, float, int]]:
    """Return the kernel of a session for a click model with these kernels."""

    @kernel
    def session(constants, state, b, ranking, uniforms, clicks, examined):
        satisfied = sample(constants.parameters, ranking, uniforms, clicks, examined)
        n_clicks = 0
        for k in range(constants.cutoff):
            n_clicks += clicks[k]
        if constants.reward == CLICKS:
            realised = n_clicks
        elif constants.reward == ANY_CLICK:
            realised = min(n_clicks, 1)
        else:  # a user who leaves below the cutoff does not count
            realised = 1 if 0 <= satisfied < constants.cutoff else 0
        expectation = expected(
            constants.parameters, ranking, constants.reward, constants.cutoff, constants.scratch
        )
        return float(realised), expectation, satisfied

    return session


class ClickTask(Task):
    """The task of a click model, whose sessions are all alike.

    Args:
        model: the click model.
        code, cutoff: the kernels' reward and number of counted positions.
        optimal_ranking, optimal_reward: ``(K,)`` the list against which regret is measured, and its
            expected reward.
    """

    def __init__(
        self,
        model: Any,
        code: int,
        cutoff: int,
        optimal_ranking: NDArray[np.int64],
        optimal_reward: float,
    ) -> None:
        self.model = model
        self.constants = ClickConstants(
            model.parameters, code, cutoff, np.empty(model.n_positions + 1)
        )
        self.observation_space = MultiBinary(model.n_positions)
        self.optimal_ranking, self.optimal_reward = np.array(optimal_ranking), optimal_reward

    @property
    def kernels(self) -> Kernels:  # type: ignore[override]
        session = click_session(self.model.sample_kernel, self.model.expected_kernel)
        return Kernels(session)

    def first_state(self, n_streams: int) -> State:
        return State(np.full(n_streams, self.optimal_reward))

    def best(self, state: Any) -> NDArray[np.int64]:
        return np.tile(self.optimal_ranking, (len(state.optimum), 1))
