"""When the clicks of a session arrive: at once, or late; and the sessions that wait for theirs."""

from __future__ import annotations

import copy
import re
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple
from zlib import crc32

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from ...agents import Agent, CompiledAgent
from ...core.checks import short
from ...core.faults import SessionError
from ...core.kernels import kernel
from ...envs.any_env import clicks_of
from ...envs.click_env import name_of

LONGEST = 20
"""Means after which the clicks of a geometric delay arrive at the latest: e⁻²⁰ of the mass lies
beyond.
"""


class AtOnce:
    """Clicks arrive at the end of their session: what both loops ask of a delay.

    Attributes:
        slots: how many sessions can wait at the same time, the present one included.
    """

    slots = 0

    def around(self, agent: Agent, n_positions: int) -> Agent:
        """The agent as the Python loop sees it."""
        return agent

    def learning(self, agent: CompiledAgent, observed: tuple[NDArray[Any], ...]) -> Any:
        """The kernel that the compiled loop calls after each session; ``observed`` is what the
        agent observes besides clicks.
        """
        return learn_at_once(agent.update_kernel)

    def chunk(self, first: int, n_sessions: int) -> Waiting | None:
        """The arguments of that kernel for ``n_sessions`` from ``first`` on; called in order."""
        return None

    def check_end(self, env: gym.Env, step: int, has_left: bool) -> None:
        """Refuse an episode that ends while clicks wait.

        Raises:
            SessionError: a user has left.
        """


class Delay(AtOnce):
    """When the clicks of a session arrive, in one run.

    At the end of each session, the agent learns from all sessions whose clicks are due then, in
    the order in which they were shown. So the list of session t + 1 knows exactly the clicks that
    have arrived up to the end of session t. Session t, counted from 1, is due at the end of session

    - ``batch:B``: the smallest multiple of B that is at least t;
    - ``fixed:D``: t + D;
    - ``geometric:m``: t + G, with P(G = g) = (1/m) (1 − 1/m)^(g − 1) for g = 1, 2, ….

    Clicks that are not due within the run are lost.

    ⚠ G is drawn by a generator of its own, spawned from the seed of the run: users and agent draw
    the same numbers as without a delay. ⚠ G is at most 20 m, so that a finite queue holds what
    waits.

    Args:
        text: one of the three, with an integer B, D or m in 1..999,999.
        seed: of the run; None draws one.

    Raises:
        ValueError: it is none of them.

    Example:
        >>> Delay("batch:10", seed=0).due(1, 12).tolist()
        [10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 20, 20]
        >>> Delay("fixed:3", seed=0).due(1, 4).tolist()
        [4, 5, 6, 7]
    """

    def __init__(self, text: str, seed: int | None) -> None:
        parts = re.fullmatch(r"(batch|fixed|geometric):([1-9]\d{0,5})", str(text))
        if parts is None:
            raise ValueError(
                f"delay is {short(text)}; expected batch:B, fixed:D or geometric:M, with a number "
                "in 1..999999"
            )
        self.kind, self.sessions = parts[1], (n := int(parts[2]))
        self.slots = {"batch": n, "fixed": n + 1, "geometric": LONGEST * n + 1}[self.kind]
        self._sessions = self._due = np.zeros(0, np.int64)
        self._waiting: tuple[Any, ...] = ()
        self._rng = np.random.default_rng(
            np.random.SeedSequence(seed, spawn_key=(crc32(b"delay"),))
        )

    def due(self, first: int, n_sessions: int) -> NDArray[np.int64]:
        """``(n_sessions,)`` at the end of which session the clicks arrive, of sessions from
        ``first`` on; call it for all sessions in order.
        """
        shown = np.arange(first, first + n_sessions)
        if self.kind == "batch":
            return -(-shown // self.sessions) * self.sessions
        if self.kind == "fixed":
            return shown + self.sessions
        delays = self._rng.geometric(1 / self.sessions, n_sessions)
        return shown + np.minimum(delays, LONGEST * self.sessions)

    def around(self, agent: Agent, n_positions: int) -> Agent:
        return LateAgent(agent, self, n_positions)

    def learning(self, agent: CompiledAgent, observed: tuple[NDArray[Any], ...]) -> Any:
        if not self._waiting:
            n, k = self.slots, agent.n_positions
            rows = tuple(np.empty((n, *part.shape), part.dtype) for part in observed)
            self._waiting = np.empty((n, k), np.int64), np.empty((n, k), np.int8), rows
        return learn_late(agent.update_kernel, len(observed))

    def chunk(self, first: int, n_sessions: int) -> Waiting:
        ends = np.arange(first, first + n_sessions)
        sessions = np.append(self._sessions, ends)
        due = np.append(self._due, self.due(first, n_sessions))
        order = np.argsort(due, kind="stable")
        sessions, due = sessions[order], due[order]
        arrived = np.searchsorted(due, np.append(first - 1, ends), "right")
        self._sessions, self._due = sessions[arrived[-1] :], due[arrived[-1] :]
        return Waiting(first, sessions[: arrived[-1]], arrived, *self._waiting)

    def check_end(self, env: gym.Env, step: int, has_left: bool) -> None:
        if has_left:
            what = "a user left (terminated): clicks of stateful users cannot be late"
            raise SessionError(f"{name_of(env)}, step {step}: {what}")


# ----------------------------------------------------------------------------- in the Python engine


class LateAgent(Agent):
    """An agent whose clicks arrive late; otherwise it is the agent.

    `rank` sees an observation that holds, in place of the last clicks, those that arrived last
    (zeros before any); all else in it is of the present session.
    """

    def __init__(self, agent: Agent, delay: Delay, n_positions: int) -> None:
        self.agent, self.delay = agent, delay
        self._session = 0
        self._waiting: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
        self._arrived = np.zeros(n_positions, np.int8)

    def rank(self, observation: Any) -> NDArray[np.int64]:
        clicks = self._arrived.astype(clicks_of(observation).dtype)
        late = {**observation, "clicks": clicks} if isinstance(observation, dict) else clicks
        self._seen = copy.deepcopy(late)  # an environment may write into its own arrays
        return self.agent.rank(late)

    def update(
        self, observation: Any, ranking: NDArray[np.int64], clicks: NDArray[np.int8], reward: float
    ) -> None:
        self._session += 1
        due = int(self.delay.due(self._session, 1)[0])
        self._waiting[due].append((self._seen, np.array(ranking), np.array(clicks), reward))
        for session in self._waiting.pop(self._session, ()):
            self.agent.update(*session)
            self._arrived = session[2]

    def leave(self) -> None:
        self.agent.leave()


# --------------------------------------------------------------------------- in the compiled engine


class Waiting(NamedTuple):
    """The sessions that wait for their clicks: session n lies in slot n mod C. No two waiting
    sessions have the same slot, because none waits for C sessions.
    """

    first: int  # the number of the first session of this chunk
    arrivals: NDArray[np.int64]  # the sessions whose clicks arrive in this chunk, in order
    ends: NDArray[np.int64]  # (n + 1,) after t of its sessions, so many have arrived
    rankings: NDArray[np.int64]  # (C, K)
    clicks: NDArray[np.int8]  # (C, K)
    observed: tuple[NDArray[Any], ...]  # (C, ...) what the agent observed besides clicks


@cache
def learn_at_once(update: Callable[..., None]) -> Callable[..., None]:
    """The kernel that learns from a session when it ends."""

    @kernel
    def learn(late, played, state, ranking, clicks, *observed):  # type: ignore[no-untyped-def]
        update(state, ranking, clicks, *observed)

    return learn


@kernel
def no_rows(arrays, slot):  # type: ignore[no-untyped-def]
    return ()


@kernel
def copy_nothing(targets, sources):  # type: ignore[no-untyped-def]
    pass


@cache
def rows_at(n: int) -> Callable[..., Any]:
    """The kernel that returns the rows ``slot`` of n arrays."""
    if n == 0:
        return no_rows
    rest = rows_at(n - 1)

    @kernel
    def rows(arrays, slot):  # type: ignore[no-untyped-def]
        return (arrays[0][slot], *rest(arrays[1:], slot))

    return rows


@cache
def copy_of(n: int) -> Callable[..., None]:
    """The kernel that copies n arrays into others."""
    if n == 0:
        return copy_nothing
    rest = copy_of(n - 1)

    @kernel
    def copy(targets, sources):  # type: ignore[no-untyped-def]
        for i in range(sources[0].size):
            targets[0].flat[i] = sources[0].flat[i]
        rest(targets[1:], sources[1:])

    return copy


@cache
def learn_late(update: Callable[..., None], n_observed: int) -> Callable[..., None]:
    """The kernel that keeps a session, and learns from those whose clicks are due."""
    rows, copy = rows_at(n_observed), copy_of(n_observed)

    @kernel
    def learn(late, played, state, ranking, clicks, *observed):  # type: ignore[no-untyped-def]
        slots = len(late.rankings)
        slot = (late.first + played) % slots
        for k in range(len(ranking)):
            late.rankings[slot, k] = ranking[k]
            late.clicks[slot, k] = clicks[k]
        copy(rows(late.observed, slot), observed)
        for i in range(late.ends[played], late.ends[played + 1]):
            slot = late.arrivals[i] % slots
            update(state, late.rankings[slot], late.clicks[slot], *rows(late.observed, slot))

    return learn
