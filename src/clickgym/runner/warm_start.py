"""Warm start: the sessions of a click log from which agents learn before their first session.

The log is any object with `NEEDED`, such as a ``ClickLog`` of clickgym-logs; nothing else is known
of it here. Its sessions of the environment's query, in their order, become lists of the
environment's items; a list is cut to the environment's positions. Lists that are shorter, or that
show an item at these positions which the environment does not have, are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from ..agents.agent import BaseAgent, UnsuitedError
from ..core.checks import short
from ..envs import Users
from ..envs.any_env import sizes_of, users_of
from ..envs.click_env import name_of

NEEDED = ("of_query", "items", "clicks", "order", "item_labels")
"""Of ``of_query(query)``, the log of a query's sessions: ``items (N, K)``, indices into
``item_labels``, -1 below the end of a list; ``clicks (N, K)``; ``order (N,)``, the sessions in the
order of time.
"""
RECENT, BLOCKS = 200, 20
"""The production list is the most frequent one of the last 200 sessions, or of the last twentieth
if that is longer.
"""
SAMPLE, PARTS = 10_000, 4
"""Sessions whose clicks are compared with the users of the environment, spread evenly, and in how
many parts of equal size, one after the other.
"""
SIGMAS, DIFFERENT = 4.0, 0.06
"""The clicks on an item are others if they differ by so many standard errors, and by this share of
all expected clicks.
"""

SUITED = "PBMTS, BCMPTS, PBMHB, CascadeTS and others can"


class TypedLog(NamedTuple):
    """A log that a command has read, and the words of its options."""

    log: Any
    words: list[str]


@dataclass(frozen=True, eq=False)
class Past:
    """What agents learn from a log before their first session.

    Attributes:
        query: of the environment.
        rankings, clicks: ``(n, K)`` int64 and int8, the lists and clicks in the order of time.
        n_sessions: of the query, those that are left out included.
        production: ``(K,)`` the most frequent list of the latest sessions.
        caution: why the log may mislead in this environment; empty if nothing speaks for it.
    """

    query: str
    rankings: NDArray[np.int64]
    clicks: NDArray[np.int8]
    n_sessions: int
    production: NDArray[np.int64]
    caution: str = ""

    def __len__(self) -> int:
        return len(self.rankings)

    @cached_property
    def identity(self) -> str:
        """A hash of the lists and clicks."""
        return sha256(self.rankings.tobytes() + self.clicks.tobytes()).hexdigest()[:32]

    @property
    def empty(self) -> Past:
        """The same without sessions: to see whether agents can start."""
        return replace(self, rankings=self.rankings[:0], clicks=self.clicks[:0])

    @property
    def facts(self) -> dict[str, str | int]:
        """As a configuration holds it."""
        counts = {"sessions": len(self), "of": self.n_sessions}
        return {"identity": self.identity, "query": self.query, **counts, "caution": self.caution}


def past_sessions(log: Any, env: gym.Env) -> Past:
    """The sessions of a log from which agents learn before they rank in an environment.

    Args:
        log: an object with `NEEDED`.
        env: the environment, whose query and items have the labels of the log.

    Raises:
        TypeError: it is no such log.
        UnsuitedError: what a log shows is not enough for these users.
        ValueError: the log has no such sessions.
    """
    users, core = users_of(env), env.unwrapped
    if users is not None and (why := _why_no_log(users)):
        raise UnsuitedError(name_of(env), f"cannot start agents from a log: {why}")
    n_items, n_positions, *_ = sizes_of(env)
    query = getattr(core, "query", "custom")
    labels = getattr(core, "item_labels", tuple(map(str, range(n_items))))
    past = sessions_of(log, query, labels, n_positions)
    caution = "" if users is None else _other_users(users, past, labels)
    return replace(past, caution=caution)


def sessions_of(log: Any, query: str, labels: Sequence[str], n_positions: int) -> Past:
    """The sessions of a query in a log, as lists of items.

    Args:
        log: an object with `NEEDED`.
        query: its label.
        labels: of the items; item 0 is the first of them.
        n_positions: K, to which lists are cut.

    Raises:
        TypeError, ValueError: as `past_sessions`.
    """
    log = log.log if isinstance(log, TypedLog) else log
    missing = [name for name in NEEDED if not hasattr(log, name)]
    if missing:
        raise TypeError(f"start is {short(log)}; expected a click log, which has {missing[0]}")
    try:
        part = log.of_query(query)
    except ValueError as error:
        has = getattr(log, "query_labels", ())
        names = ", ".join(map(str, has[:3])) + (f" and {len(has) - 3:,} more" * (len(has) > 3))
        what = f"the log has {names}" if names else str(error)
        raise ValueError(f"{what}; the instance is {query}") from None
    number = {label: item for item, label in enumerate(labels)}
    items = np.array([*(number.get(label, -1) for label in part.item_labels), -1])
    order, shown, clicks = (np.asarray(it) for it in (part.order, part.items, part.clicks))
    if not (shown.ndim == 2 and clicks.shape == shown.shape and order.shape == shown.shape[:1]):
        shapes = f"items {shown.shape}, clicks {clicks.shape} and order {order.shape}"
        raise TypeError(f"the log has {shapes} of {query!r}; expected (N, K), (N, K) and (N,)")
    rankings = items.take(shown.take(order, axis=0)[:, :n_positions])
    known = (rankings >= 0).all(axis=1)
    if shown.shape[1] < n_positions or not known.any():
        raise ValueError(
            f"none of {len(order):,} sessions of {query!r} in the log has {n_positions} of the "
            f"instance's {len(labels)} items: take an instance with more of the log's items, or "
            "fewer positions (n_positions=)"
        )
    rankings, clicks = rankings[known], clicks.take(order[known], axis=0)[:, :n_positions]
    if not np.isin(clicks, (0, 1)).all():
        raise ValueError(f"clicks of {query!r} in the log are not all 0 or 1")
    latest = rankings[-max(RECENT, len(rankings) // BLOCKS) :]
    lists, counts = np.unique(latest, axis=0, return_counts=True)
    clicks = np.ascontiguousarray(clicks, np.int8)
    return Past(query, rankings, clicks, len(order), lists[counts.argmax()])


def _why_no_log(users: Users) -> str:
    if "features" in users.observes:
        return "the log has no features of all candidates"
    return "" if users.are_alike and len(users.starts) == 1 else "users change"


def start_agent(agent: BaseAgent, past: Past, env: gym.Env) -> None:
    """Let an agent learn from past sessions.

    Raises:
        UnsuitedError: it cannot.
    """
    if why := agent.why_not_from_log():
        reason = f"cannot learn from a log, {why}; {SUITED}"
        raise UnsuitedError(type(agent).__name__, reason)
    if getattr(agent, "learns_from_any_list", False):
        core: Any = env.unwrapped
        counted = past.clicks[:, : getattr(core, "cutoff", None)].sum(axis=1)
        is_any = getattr(core, "reward", "clicks") == "any_click"
        rewards = (np.minimum(counted, 1) if is_any else counted).astype(np.float64)
        agent.learn_sessions(past.rankings, past.clicks, rewards)  # type: ignore[attr-defined]


def _other_users(users: Users, past: Past, labels: Sequence[str]) -> str:
    """A caution, if the clicks of a part of the log are not those of the users; else empty.

    An item appears at most once in a list, so the variance of its clicks is known exactly.
    """
    rows = np.unique(np.linspace(0, len(past) - 1, SAMPLE).astype(np.int64))
    rankings, clicks = past.rankings[rows], past.clicks[rows]
    lists, index = np.unique(rankings, axis=0, return_inverse=True)
    if users.click_probabilities(lists[0]) is None:
        return ""
    expected = np.array([users.click_probabilities(ranking) for ranking in lists])[index.ravel()]
    parts = PARTS * np.arange(len(rows)) // len(rows)
    cells = (parts[:, None] * len(labels) + rankings).ravel()

    def by_part(values: NDArray[Any]) -> NDArray[Any]:
        """The sums of values by part and item."""
        sums = np.bincount(cells, values.ravel(), PARTS * len(labels))
        return sums.reshape(PARTS, len(labels))

    displays, seen, mean = by_part(np.ones(cells.shape)), by_part(clicks), by_part(expected)
    difference = np.abs(seen - mean)
    noise = np.sqrt(by_part(expected * (1 - expected)))
    beyond = np.where(difference > SIGMAS * noise, difference, 0.0)
    shares = beyond.sum(axis=1) / np.maximum(mean.sum(axis=1), 1e-9)
    others = np.flatnonzero(shares > DIFFERENT)
    if not len(others):
        return ""
    part = others[shares[others].argmax()]
    item = beyond[part].argmax()
    there, here = (values[part, item] / displays[part, item] for values in (seen, mean))
    where = ", ".join(str(other + 1) for other in others)
    return (
        f"Caution: in the log, users clicked otherwise than these users of {past.query}, most in "
        f"part {part + 1} of {PARTS} in time ({labels[item]}: {there:.2f} clicks per display "
        f"there, {here:.2f} here; others in part {where}). Agents that learn from it may be misled."
    )
