"""Warm start: the sessions of a click log from which agents learn before their first session.

The log is any object with `NEEDED`, such as a ``ClickLog`` of clickgym-logs; nothing else is known
of it here. Its sessions of the environment's query, in their order, become lists of the
environment's items; a list is cut to the environment's positions. Lists that are shorter are left
out. A list that shows an item at these positions which the environment does not have gets a gap
there. Agents with ``learns_around_gaps`` learn from its other positions, and no click moves; others
skip it.

Items that the log hardly shows: an agent whose prior of an attraction is uniform takes them for far
more attractive than most items are, and shows them for whole batches. But a log over-represents
good items. So agents with the argument ``prior_skips`` start as if each item had been shown a least
number of times, enough for `EXPECTED` clicks at the log's click rate. The displays that the log
lacks count as skips.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from inspect import signature
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from ..agents.agent import BaseAgent, UnsuitedError
from ..agents.kernels import CLICKED_GAP, GAP
from ..core.checks import short
from ..envs import ClickEnv, Users
from ..envs.any_env import sizes_of, users_of
from ..envs.click_env import name_of

NEEDED = ("of_query", "items", "clicks", "order", "item_labels")
"""Of ``of_query(query)``, the log of a query's sessions: ``items (N, K)``, indices into
``item_labels``, -1 below the end of a list; ``clicks (N, K)``; ``order (N,)``, the sessions in the
order of time. The ``times (N,)`` of a log, if it has any, tell how many sessions a day has.
"""
DAY, EARLIEST, LATEST = 86_400, 1e8, 1e10
"""Seconds; times are seconds since 1970, or thousandths or millionths, if the last of them is from
1973 to 2286.
"""
RECENT, BLOCKS = 200, 20
"""The production list is the most frequent one of the last 200 sessions, or of the last twentieth
if that is longer; of two that are as frequent, the one that was shown last.
"""
SAMPLE, PARTS = 10_000, 4
"""Sessions whose clicks are compared with the users of the environment, spread evenly, and in how
many parts of equal size, one after the other.
"""
SIGMAS, DIFFERENT = 4.0, 0.06
"""The clicks on an item are others if they differ by so many standard errors, and by this share of
all expected clicks.
"""

EXPECTED = 5
"""Clicks that an item gets at the click rate of the log in as many displays as each item has
beforehand. The draw of an item that was only skipped is above that rate with probability exp(-5).
"""


@dataclass(frozen=True, eq=False)
class LoggedSessions:
    """The sessions of a log from which agents learn before their first one.

    Attributes:
        query: of the environment.
        rankings, clicks: ``(n, K)`` int64 and int8, the whole lists and their clicks in the order
            of time.
        with_gaps: the same of lists with gaps, whose clicks are `GAP` or `CLICKED_GAP` there.
        n_sessions: of the query, those that are left out included.
        per_day: sessions of the query a day; 0 if the log does not tell.
        n_items: L.
        production: ``(K,)`` the most frequent list of the latest sessions.
        share: of these, those that show it.
        least: displays that an item has at least, by prior skips.
    """

    query: str
    rankings: NDArray[np.int64]
    clicks: NDArray[np.int8]
    with_gaps: tuple[NDArray[np.int64], NDArray[np.int8]]
    n_items: int
    n_sessions: int
    per_day: float
    production: NDArray[np.int64]
    share: float
    least: int

    def __len__(self) -> int:
        return len(self.rankings)

    @cached_property
    def identity(self) -> str:
        """A hash of the lists and clicks."""
        arrays = self.rankings, self.clicks, *self.with_gaps
        return sha256(b"".join(it.tobytes() for it in arrays)).hexdigest()[:32]

    @property
    def empty(self) -> LoggedSessions:
        """The same without sessions: to see whether agents can start."""
        rankings, clicks = self.rankings[:0], self.clicks[:0]
        return replace(self, rankings=rankings, clicks=clicks, with_gaps=(rankings, clicks))

    @property
    def facts(self) -> dict[str, str | int | float]:
        """As a configuration holds it."""
        counts = {"sessions": len(self), "of": self.n_sessions, "gaps": len(self.with_gaps[0])}
        rare = int((self.displays(None) < self.least).sum())
        counts |= {"items": self.n_items, "rare": rare, "least": self.least}
        words = {"identity": self.identity, "query": self.query}
        return {**words, **counts, "share": self.share}

    def parts(self, maker: Any) -> list[tuple[NDArray[np.int64], NDArray[np.int8]]]:
        """The lists and clicks from which agents learn: whole lists, then those with gaps.

        Args:
            maker: what makes the agents, or one of them.
        """
        whole, kind = (self.rankings, self.clicks), getattr(maker, "func", maker)
        return [whole, self.with_gaps] if getattr(kind, "learns_around_gaps", False) else [whole]

    def displays(self, maker: Any) -> NDArray[np.int64]:
        """``(L,)`` how often the lists of `parts` show each item."""
        shown = [rankings[clicks >= 0] for rankings, clicks in self.parts(maker)]
        return np.bincount(np.concatenate(shown), minlength=self.n_items)

    def prior(self, maker: Callable[..., Any]) -> dict[str, NDArray[np.int64]]:
        """The argument ``prior_skips`` for what makes an agent, if it takes one and has none, and
        some item is hardly shown.
        """
        skips = np.maximum(self.least - self.displays(maker), 0)
        is_due = skips.any() and has_prior(maker)
        return {"prior_skips": skips} if is_due else {}


class Start:
    """A log from which agents learn before session 1. Its sessions are selected once for each
    query, items and K; another process gets these, and not the log.

    Args:
        log: an object with `NEEDED`.
        words: the options of a command that read it.
    """

    def __init__(self, log: Any, words: Sequence[str] = ("--start", "LOG")) -> None:
        self.log, self.words = log, list(words)
        self._selected: dict[tuple[Any, ...], LoggedSessions] = {}

    @classmethod
    def of(cls, log: Any) -> Start:
        """A log as a `Start`, which stays as it is."""
        return log if isinstance(log, cls) else cls(log)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "log": None}

    @property
    def empty(self) -> Start:
        """The same without sessions: to see whether agents can start."""
        start = Start(None, self.words)
        start._selected = {key: sessions.empty for key, sessions in self._selected.items()}
        return start

    def sessions(self, env: gym.Env) -> LoggedSessions:
        """The sessions from which agents learn before they rank in an environment, whose query and
        items have the labels of the log.

        Raises:
            TypeError: it is no such log.
            UnsuitedError: what a log shows is not enough for these users.
            ValueError: the log has no such sessions.
        """
        core = env.unwrapped
        _check_users(env)
        n_items, n_positions, *_ = sizes_of(env)
        query = getattr(core, "query", "custom")
        labels = getattr(core, "item_labels", tuple(map(str, range(n_items))))
        key = query, labels, n_positions
        if key not in self._selected:
            self._selected[key] = sessions_of(self.log, *key)
        return self._selected[key]

    def facts(self, env: gym.Env) -> dict[str, str | int | float]:
        """The facts of the sessions for an environment: with a caution if the log may mislead
        there, empty if nothing speaks for it; and where the reward is clicks with sessions
        ``per_day``, the expected ``clicks`` of today's list in a session, the regret of ``today``'s
        list, the ``variance`` of clicks, and the ``cutoff``.
        """
        sessions, users, core = self.sessions(env), users_of(env), env.unwrapped
        labels = getattr(core, "item_labels", ())
        facts = {**sessions.facts, "caution": ""}
        if users is not None:
            facts["caution"] = _other_users(users, sessions, labels)
        chances = None if users is None else users.click_probabilities(sessions.production)
        if chances is not None and isinstance(core, ClickEnv) and core.reward == "clicks":
            expected = float(chances[: core.cutoff].sum())
            facts |= {
                "per_day": sessions.per_day,
                "clicks": expected,
                "today": core.task.optimal_reward - expected,
                "variance": float(_rewards(sessions.clicks, core).var()),
                "cutoff": core.cutoff or 0,
            }
        return facts


def sessions_of(log: Any, query: str, labels: Sequence[str], n_positions: int) -> LoggedSessions:
    """The sessions of a query in a log, as lists of items.

    Args:
        log: an object with `NEEDED`.
        query: its label.
        labels: of the items; item 0 is the first of them.
        n_positions: K, to which lists are cut.

    Raises:
        TypeError, ValueError: as `Start.sessions`.
    """
    missing = [name for name in NEEDED if not hasattr(log, name)]
    if missing:
        raise TypeError(f"start is {short(log)}; expected a click log, which has {missing[0]}")
    try:
        part = log.of_query(query)
    except ValueError as error:
        has = getattr(log, "query_labels", ())
        names = ", ".join(map(repr, has[:3])) + (f" and {len(has) - 3:,} more" * (len(has) > 3))
        words = "the log's only query is" if len(has) == 1 else "the log has the queries"
        what = f"{words} {names}" if names else str(error)
        raise ValueError(f"{what}; the instance's query is {query!r}") from None
    number = {label: item for item, label in enumerate(labels)}
    items = np.array([*(number.get(label, -1) for label in part.item_labels), -1])
    order, shown, clicks = (np.asarray(it) for it in (part.order, part.items, part.clicks))
    if not (shown.ndim == 2 and clicks.shape == shown.shape and order.shape == shown.shape[:1]):
        shapes = f"items {shown.shape}, clicks {clicks.shape} and order {order.shape}"
        raise TypeError(f"the log has {shapes} of {query!r}; expected (N, K), (N, K) and (N,)")
    shown = shown.take(order, axis=0)[:, :n_positions]
    rankings = items.take(shown)
    known = (rankings >= 0).all(axis=1)
    if shown.shape[1] < n_positions or not known.any():
        raise _no_list(shown, rankings, n_positions, part, query)
    clicks = clicks.take(order, axis=0)[:, :n_positions]
    if not np.isin(clicks, (0, 1)).all():
        raise ValueError(f"clicks of {query!r} in the log are not all 0 or 1")
    clicks = np.ascontiguousarray(clicks, np.int8)
    is_gap = rankings < 0
    has_gap = (shown >= 0).all(axis=1) & is_gap.any(axis=1) & ~is_gap.all(axis=1)
    around = np.where(is_gap, np.where(clicks, CLICKED_GAP, GAP), clicks).astype(np.int8)
    with_gaps = rankings[has_gap].clip(0), around[has_gap]
    rankings, clicks = rankings[known], clicks[known]
    latest = rankings[-max(RECENT, len(rankings) // BLOCKS) :]
    lists, ago, counts = np.unique(latest[::-1], axis=0, return_index=True, return_counts=True)
    production = np.lexsort((-ago, counts))[-1]
    least = math.ceil(EXPECTED * (clicks.size + 2) / (np.count_nonzero(clicks) + 1))
    return LoggedSessions(
        *(query, rankings, clicks, with_gaps, len(labels), len(order)),
        *(len(order) / _days(getattr(log, "times", None)), lists[production]),
        *(float(counts[production] / counts.sum()), least),
    )


def _days(times: Any) -> float:
    """The days of a log, at least one; infinitely many if its times are not known to be seconds."""
    if times is not None and len(times):
        for unit in (1, 1e3, 1e6):
            seconds = np.asarray(times, np.float64) / unit
            if EARLIEST < seconds.max() < LATEST:
                are_dates = not (seconds % DAY).any()  # then the last day counts, too
                return max(float(np.ptp(seconds)) / DAY + are_dates, 1.0)
    return math.inf


def _no_list(
    shown: NDArray[Any], rankings: NDArray[np.int64], n_positions: int, part: Any, query: str
) -> ValueError:
    """The error of a log of which no list can be learned, given its items and those of the
    environment.
    """
    lengths = (shown >= 0).sum(axis=1)
    longest = int(lengths.max(initial=0))
    if longest < n_positions:
        return ValueError(
            f"in the log, lists of {query!r} have at most {longest} items, and the environment has "
            f"{n_positions} positions: take fewer (n_positions=), or another log"
        )
    is_other = (rankings < 0) & (lengths == longest)[:, None]
    other = part.item_labels[shown[is_other][0]]
    return ValueError(
        f"in the log, each list of {query!r} with {n_positions} items shows one that the instance "
        f"does not have, such as {other!r}: take an instance with more of the log's items"
    )


def _check_users(env: gym.Env) -> None:
    """Refuse users of whom a log shows too little."""
    users, reason = users_of(env), ""
    if users is not None and "features" in users.observes:
        reason = "the log has no features of all candidates"
    elif users is not None and not (users.are_alike and len(users.starts) == 1):
        reason = "users change"
    if reason:
        raise UnsuitedError(name_of(env), f"cannot start agents from a log: {reason}")


def learn_from_log(agent: BaseAgent, sessions: LoggedSessions, env: gym.Env) -> None:
    """Let an agent learn from the sessions of a log, before it plays in an environment.

    Raises:
        UnsuitedError: it cannot.
    """
    agent.check_log()
    if getattr(agent, "learns_from_any_list", False):
        core: Any = env.unwrapped
        for rankings, clicks in sessions.parts(agent):
            agent.learn_sessions(rankings, clicks, _rewards(clicks, core))  # type: ignore[attr-defined]
        if len(sessions):
            agent.start_after_log()  # type: ignore[attr-defined]


def _rewards(clicks: NDArray[np.int8], env: Any) -> NDArray[np.float64]:
    """The rewards of logged clicks as an environment gives them, clicks or whether there is one."""
    counted = clicks[:, : getattr(env, "cutoff", None)].clip(0).sum(axis=1).astype(np.float64)
    is_any = getattr(env, "reward", "clicks") == "any_click"
    return np.minimum(counted, 1) if is_any else counted


def has_prior(maker: Callable[..., Any]) -> bool:
    """Whether what makes agents takes ``prior_skips``, and has not got them."""
    argument = signature(maker).parameters.get("prior_skips")
    return argument is not None and argument.default is None


def learns_from_log(kind: Any) -> bool:
    """Whether agents of a class learn from the sessions of a log; None is an unknown class."""
    return kind is None or (
        getattr(kind, "learns_from_any_list", False) and not getattr(kind, "learns_nothing", False)
    )


def cautions(facts: Collection[Mapping[str, Any]], kinds: Mapping[str, Any]) -> Iterator[str]:
    """Yield warnings that a log may mislead agents.

    Args:
        facts: those of `Start.facts`; empty without a log, which misleads nobody.
        kinds: the classes of the agents by label; None if unknown.
    """
    if not facts or not any(map(learns_from_log, kinds.values())):
        return
    yield from dict.fromkeys(str(of_env["caution"]) for of_env in facts if of_env["caution"])
    learning = {label: kind for label, kind in kinds.items() if kind and learns_from_log(kind)}
    bold = [label for label, kind in learning.items() if kind.uses_bounds]
    if bold:
        s, they = ("", "they") if len(bold) > 1 else ("s", "it")
        late = f"With late clicks {they} show{s} them for a whole batch."
        yield f"Caution: {', '.join(bold)} explore{s} items that the log hardly shows. {late}"
    others = [
        label for label, kind in learning.items() if label not in bold and not has_prior(kind)
    ]
    if others and (rare := rare_items(facts)):
        has = "have" if len(others) > 1 else "has"
        yield (
            f"Caution: {rare}, and {', '.join(others)} {has} no prior_skips, which keep such items "
            "from the top."
        )


def rare_items(facts: Collection[Mapping[str, Any]]) -> str:
    """The number of items that the log hardly shows, in words; empty if there are none."""
    rare = [of_env for of_env in facts if of_env.get("rare")]
    if not rare:
        return ""
    most = max(rare, key=lambda of_env: of_env["rare"] / of_env["items"])
    items = f"{most['rare']} of {most['items']} items of {most['query']}"
    others = f" (and items of {len(rare) - 1} more instances)" if len(rare) > 1 else ""
    return f"the log shows {items} fewer than {most['least']:,} times{others}"


def _other_users(users: Users, sessions: LoggedSessions, labels: Sequence[str]) -> str:
    """A caution, if the clicks of a part of the log are not those of the users; else empty.

    An item appears at most once in a list, so the variance of its clicks is known exactly.
    """
    rows = np.unique(np.linspace(0, len(sessions) - 1, SAMPLE).astype(np.int64))
    rankings, clicks = sessions.rankings[rows], sessions.clicks[rows]
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
        f"Caution: in the log, users clicked otherwise than these users of {sessions.query}, most "
        f"in part {part + 1} of {PARTS} in time ({labels[item]}: {there:.2f} clicks per display "
        f"there, {here:.2f} here; others in part {where}). Agents that learn from it may be misled."
    )
