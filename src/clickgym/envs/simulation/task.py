"""The class `Task`, which defines how a kind of simulated users is simulated, and the task of a
click model.

A task consists of constants, a declared state, and three kernels. Environments and the compiled
loop simulate sessions with these three kernels alone::

    session(constants, state, b, ranking, uniforms, clicks, examined)
        -> realised, expected, satisfied
    begin(constants, state, b, rng)
    advance(constants, state, b, rng) -> whether the user has left

``constants`` contains everything that stays the same from session to session, and working memory.
Kernels write working memory before they read it, so no value passes from one call to the next.

``state`` contains everything on which the next session depends. Each array of the state has one row
for each of B streams of sessions, and a kernel reads and writes only row ``b``. In a `ClickEnv`,
there is one stream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.spaces import MultiBinary
from numpy.typing import NDArray

from ...core.kernels import kernel
from ...core.state import Floats, first_arrays

REWARDS = ("clicks", "any_click", "satisfaction")
CLICKS, ANY_CLICK, SATISFACTION = range(3)
"""The rewards in kernels: their indices in `REWARDS`."""


@kernel
def draw_nothing(constants, state, b, rng):
    """Draw nothing. This kernel serves as both ``begin`` and ``advance`` for users whose sessions
    are all alike.
    """
    return False


class Kernels(NamedTuple):
    """The three kernels with which a kind of users is simulated.

    Example:
        >>> @kernel
        ... def click_top(constants, state, b, ranking, uniforms, clicks, examined):
        ...     clicks[0] = examined[0] = 1
        ...     return 1.0, 1.0, -1
        >>> kernels = Kernels(click_top)
        >>> kernels.begin is kernels.advance is draw_nothing
        True
    """

    session: Callable[..., tuple[float, float, int]]
    """The kernel that simulates one session on stream b. It writes ``clicks`` and ``examined``,
    ``(K,)``, and returns the realised reward, the expected reward, and the position at which the
    user left satisfied, or -1.
    """
    begin: Callable[..., Any] = draw_nothing
    """The kernel that draws a new user's first session on stream b."""
    advance: Callable[..., bool] = draw_nothing
    """The kernel that draws the next session on stream b, and returns whether the user has left
    instead. A user who has left must be replaced with ``begin``.
    """


class State(NamedTuple):
    """The state of users whose sessions are all alike.

    Every class of states must have the field ``optimum``, the expected reward of the best list in
    the next session. A session's regret is ``optimum`` minus the expected reward of its list. Four
    places subtract them, because each has them in another form: `ClickEnv.step`,
    `ClickVectorEnv.step`, the compiled loop (``make_loop_kernel``), and ``regret_of``, which reads
    the ``info`` of other packages.
    """

    optimum: Annotated[Floats, "B"]


class Task:
    """Base class of tasks. A task defines how environments simulate users whose behaviour does not
    change over time.

    A task is constant: only the state changes from session to session, and the state belongs to the
    environment. A subclass defines `best`, and sets the attributes in its class or its constructor.

    Attributes:
        model: the users; messages name their class.
        constants: the first argument of the kernels, a named tuple of arrays, numbers and other
            such tuples.
        kernels: the three kernels.
        state_type: the class of the state, a named tuple. Its fields declare the shapes of their
            arrays (see `clickgym.core.state`), with the letter B as first axis.
        sizes: the size for each of the other letters in these shapes.
        observation_space: the space of the observations that `observe` returns.
        fields: a mapping from keys of observations or ``info`` to fields of the state, whose values
            agents may read. A key of an observation may be left out if its field has the same name.
        n_searched: the number of lists among which each session searches the best one; 0 if there
            is no such search, or if bounds shorten it.

    Example:
        >>> from clickgym.envs import PositionBasedModel
        >>> [task] = PositionBasedModel([0.2, 0.8, 0.6], [1.0, 0.5]).tasks("clicks", None, None)
        >>> state = task.first_state(2)
        >>> task.best(state)
        array([[1, 2],
               [1, 2]])
        >>> state.optimum.shape
        (2,)
    """

    model: Any
    constants: Any
    kernels: Kernels
    state_type: Any = State
    sizes: Mapping[str, int] = {}
    observation_space: gym.Space[Any]
    fields: Mapping[str, str] = {}
    n_searched: int = 0

    def first_state(self, n_streams: int) -> Any:
        """Return the state of ``n_streams`` new streams, before the first call of ``begin``."""
        return self.state_type(**first_arrays(self.state_type, {**self.sizes, "B": n_streams}))

    def start(self, state: Any, seed: int) -> None:
        """Write into the state of new streams whatever the seed determines directly, without random
        numbers; by default, nothing.
        """

    def best(self, state: Any) -> NDArray[np.int64]:
        """Return the best list in the next session of each stream, ``(B, K)``, as a new array."""
        raise NotImplementedError

    def observe(self, state: Any, b: int | slice, clicks: NDArray[np.int8]) -> Any:
        """Return the observation after a session. Arrays are new, except ``clicks``.

        Args:
            state: the state of the next sessions.
            b: the number of a stream, or ``slice(None)`` for all streams.
            clicks: ``(K,)`` or ``(B, K)`` the clicks of the last session, which may become part of
                the observation without a copy.
        """
        return clicks

    def info(self, state: Any, b: int | slice) -> dict[str, Any]:
        """Return the entries of ``info`` about the next session, in new arrays, such as the numbers
        of the user and of the candidates; by default, no entries.
        """
        return {}

    def gains(self, state: Any, b: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]] | None:
        """Return the gains of all items in the metric ``ndcg@k``, and the index of each candidate's
        gain on stream b, as views of the state. Return None if items have no gains, or are the same
        in every session.
        """
        return None

    def observed(self, state: Any, keys: tuple[str, ...]) -> tuple[NDArray[Any], ...]:
        """Return the parts of the first stream's state that an agent's kernels may read, as views.

        Args:
            state: the state.
            keys: the keys of the observation that the agent reads.

        Returns:
            One array for each key; a field with one value per stream becomes an array ``(1,)``.
        """
        rows = [getattr(state, self.fields.get(key, key)) for key in keys]
        return tuple(field[0] if field.ndim > 1 else field[:1] for field in rows)


class ClickConstants(NamedTuple):
    """The constants of a `ClickTask`."""

    parameters: Any  # the parameters of the click model
    reward: int  # CLICKS, ANY_CLICK or SATISFACTION
    cutoff: int  # the number of positions that count
    scratch: NDArray[np.float64]  # (K + 1,) working memory of the click model's kernels


@cache
def make_click_session_kernel(
    sample: Callable[..., int], expected: Callable[..., float]
) -> Callable[..., tuple[float, float, int]]:
    """Return the ``session`` kernel for a click model with the kernels ``sample`` and
    ``expected``.
    """

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
        else:  # satisfaction counts only at one of the first cutoff positions
            realised = 1 if 0 <= satisfied < constants.cutoff else 0
        expectation = expected(
            constants.parameters, ranking, constants.reward, constants.cutoff, constants.scratch
        )
        return float(realised), expectation, satisfied

    return session


class ClickTask(Task):
    """Task of a click model, whose sessions are all alike.

    Args:
        model: the click model.
        code: the reward, as an index in `REWARDS`.
        cutoff: the number of positions, from the top, that count.
        optimal_ranking: ``(K,)`` the list against which regret is measured.
        optimal_reward: the expected reward of this list.
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
        session = make_click_session_kernel(self.model.sample_kernel, self.model.expected_kernel)
        return Kernels(session)

    def first_state(self, n_streams: int) -> State:
        return State(np.full(n_streams, self.optimal_reward))

    def best(self, state: Any) -> NDArray[np.int64]:
        return np.tile(self.optimal_ranking, (len(state.optimum), 1))
