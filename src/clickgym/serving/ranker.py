"""`Ranker`: one agent per query that ranks for real users and learns from their clicks, with a durable store."""

from __future__ import annotations

import logging
import math
import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from os import PathLike
from typing import Any, NamedTuple, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from ..agents.agent import checked_features
from ..core.checks import (
    as_call,
    check_at_least,
    check_between,
    check_callable,
    check_choice,
    check_count,
    check_kind,
    check_path,
    check_within,
    short,
)
from ..core.files import FileError
from ..offline.decision.decide import FALLBACK
from ..offline.distinct import grouped
from ..offline.interleaving import Interleaving, Probabilistic, TeamDraft, check_ranking, completed
from ..offline.learning.ranker import LearnedRanker
from ..offline.log import ClickLog
from ..offline.postgres import is_address
from ..offline.stores import BEFORE, LOGGED, log_of
from ..runner.labels import AgentLike
from .ids import COLUMN, Id, check_id, check_ids, impression_id, impression_number, lot
from .items import Items, checked_values
from .journal import Journal, Shown
from .memory import Agents, event_of
from .metrics import Metrics
from .postgres import PostgresJournal
from .report import Report, report_of
from .retention import Pruned, moment_of, prune
from .served import AGENT, BY_GUARD, BY_LOT, INTERLEAVED, NEW_STORE, PRODUCTION, Event, Recipe, ReplayError, Served, Worths
from .sqlite import SqliteJournal
from .store import DURABLE

Production = Callable[[Id, Sequence[Id]], Sequence[Id] | None] | Mapping[Id, Sequence[Id]] | str | PathLike[str]
"""The lists of production: a function of the query and its candidates, or a list for each query; None: there is none. Or a
`LearnedRanker`, or its file."""

INTERLEAVINGS: dict[str, Callable[[], Interleaving]] = {"team_draft": TeamDraft, "probabilistic": Probabilistic}
CHOSEN = {AGENT: "agent", BY_LOT: "agent", INTERLEAVED: "interleaved"}
"""Who chose a list, in words; else production."""
AT_ONCE = 4
"""Impressions whose time is over and that one call closes, so that no user waits for those of others."""

ATTEMPTS = 8
"""How often a call is computed anew because other processes were faster."""

CURES = {"agent": "move the store to that agent, by clickgym move OLD NEW --agent AGENT"}
"""By setting, what helps where a store was made with another value; else `NEW_STORE`."""
BY_OTHERS = " is served by another process while it learns from a log"

T = TypeVar("T")

logger = logging.getLogger("clickgym.serving")


class Impression(NamedTuple):
    """A list that `Ranker.rank` chose for one user.

    Attributes:
        id: pass it to `Ranker.click` and `Ranker.close`. It has sixteen letters, digits, ``-`` and ``_``, and cannot be
            guessed.
        items: your own ids of the items, the top of the list first.
        source: who chose the list: ``"agent"``, ``"production"``, or both: ``"interleaved"``.
    """

    id: str
    items: list[Id]
    source: str


class Ranker:
    """Let an agent choose ranked lists for real users, learn from their clicks, and keep everything in a file or a database.

    There is one agent for each query, or one agent for all queries if it ranks by features. Queries and items have your own
    ids.

    A call that has returned is durable: no click is lost or counted twice. After a restart each agent has exactly the state
    that follows from the stored impressions and clicks.

    Args:
        agent: the learning algorithm, as in `clickgym.sweep`: ``"CascadeTS"``, ``"TopRank:horizon=1e6"``, a class, or a
            `functools.partial`. It must learn from late clicks, choose among given candidates, and forget an item that is
            replaced. Or it ranks by features.
        n_positions: K, the number of items in a list.
        store: the file, created if missing, which one process serves; or ``"postgresql://user@host/database?schema=clickgym"``,
            which several processes may share. None keeps everything in memory, and nothing survives the process.
        capacity: the number of items that a query can have at a time; None: twice the number of its first candidates. A further
            item replaces the item that has not been a candidate for the longest time.
        patience: seconds after which an open impression is closed; all of its positions then count as seen.
        update_every: agents learn as soon as so many impressions are closed.
        update_seconds: agents also learn when so many seconds have passed since the first of these impressions was closed;
            None: only ``update_every`` counts.
        memory: how many agents are kept in memory; the others are loaded from the store when they are needed.
        most_candidates: the largest number of candidates that a call may pass: time and memory of an agent grow with it.
        production: the ranking that you show today, to compare with: a function of query and candidates, or lists by query. For
            a query without such a list (None), only the agent ranks. Or a `clickgym.offline.LearnedRanker` or its file: it
            orders candidates by the features of the call, or by those of its table; the store keeps its digest, and refuses
            another one.
        production_share: the probability that an impression shows the list of production.
        by: how lists are interleaved, ``"team_draft"`` or ``"probabilistic"``: a list is made of the agent's and that of
            ``challenger``, or of production, and a click counts for the one that brought the item. This *credit* tells within
            few impressions which of both users prefer; it is a preference, not clicks, and the guard does not use it. The agent
            must learn from any list, for an interleaved list is foreign to both. None: no list is interleaved.
        challenger: another agent, which learns beside the first from the same impressions; or, for an agent that ranks by
            features, an object with ``best(features)``. None: production.
        interleaved_share: the probability that an impression is interleaved. The others are as without ``by``: their
            comparison of agent and production stays as it is.
        item_values: what a click on each item earns, by its id: numbers from 0, not all 0. Agents that can take them into their
            order (`clickgym.agents.by_value`), the comparison of agent and production and the guard then count values and their
            variance instead of clicks. Every candidate needs one. An item keeps that of its first sight, which the store has;
            a store is made with values or without.
        confidence: of the interval of the difference, and of the guard. If the agent is worse than production with this
            confidence, the query gets the lists of production from then on.
        durable: what a call that has returned survives. ``"kill"``: the end of the process. ``"power"``: also a loss of power;
            each call then waits for the disk. None: ``"kill"`` for a file, ``"power"`` for PostgreSQL, whose server may crash.
        seed: of all agents; None draws one. A store keeps its own.
        clock: a function that returns the seconds since 1970.

    Attributes:
        seed: of all agents.

    Raises:
        ValueError, TypeError: on wrong input, an agent that cannot serve, a store of another version or of other settings, or
            one that another process serves.
        ImportError: the store is in PostgreSQL, and psycopg is not installed.
        FileError: the store cannot be written.

    Example:
        >>> ranker = Ranker("CascadeTS", n_positions=2, seed=0)
        >>> shown = ranker.rank("red shoes", candidates=["sku-3", "sku-17", "sku-8"])
        >>> ranker.click(shown.id, shown.items[0]), ranker.click(shown.id, shown.items[0])  # a double click
        (True, False)
        >>> ranker.close(shown.id, seen=2)
        True
        >>> ranker.best("red shoes") == shown.items
        True
    """

    def __init__(
        self,
        agent: AgentLike = FALLBACK,
        *,
        n_positions: int,
        store: str | PathLike[str] | None = None,
        capacity: int | None = None,
        patience: float = 1800.0,
        update_every: int = 1,
        update_seconds: float | None = None,
        memory: int = 10_000,
        most_candidates: int = 10_000,
        production: Production | None = None,
        production_share: float = 0.1,
        by: str | None = None,
        challenger: Any = None,
        interleaved_share: float = 0.5,
        item_values: Mapping[Id, float] | None = None,
        confidence: float = 0.95,
        durable: str | None = None,
        seed: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.n_positions = check_count("n_positions", n_positions)
        self._capacity = None if capacity is None else check_count("capacity", capacity, self.n_positions)
        self._patience = check_at_least("patience", patience, 0.0, strictly=True)
        self._update_every = check_count("update_every", update_every)
        self._at_once = self._update_every == 1
        self._update_seconds = None if update_seconds is None else check_at_least("update_seconds", update_seconds, 0.0)
        self._memory = check_count("memory", memory)
        self._most_candidates = check_count("most_candidates", most_candidates, self.n_positions)
        self._production = _checked_production(production, self.n_positions)
        self._share = check_between("production_share", production_share, 0.0, 1.0)
        confidence = check_between("confidence", confidence, 0.0, 1.0)
        durable = None if durable is None else check_choice("durable", durable, DURABLE)
        check_callable("clock", clock)
        wanted = None if seed is None else check_within("seed", seed, 0, COLUMN - 1)
        self._mixed = check_between("interleaved_share", interleaved_share, 0.0, 1.0, closed=True)
        self._interleaving = None if by is None else INTERLEAVINGS[check_choice("by", by, INTERLEAVINGS)]()
        self._by, self._best = by, challenger if hasattr(challenger, "best") and not isinstance(challenger, type) else None
        self._item_values, valued = checked_values(item_values), item_values is not None
        is_agent = challenger is not None and self._best is None
        recipe = Recipe(challenger, self.n_positions, confidence, valued=valued) if is_agent else None
        self._recipe = Recipe(agent, self.n_positions, confidence, recipe, valued)
        self._check_rivals(challenger)
        for each in filter(None, (self._recipe, recipe) if valued else ()):
            if not each.by_value:
                logger.warning(
                    "%s maximises clicks, not their item_values; the comparison counts values", each.name,
                    extra={"event": "values ignored", "agent": each.name},
                )  # fmt: skip
        self._clock, self._latest, self._metrics = clock, -1, Metrics()
        self._now()
        if isinstance(store, str) and is_address(store):
            self._journal: Journal = PostgresJournal(store, durable or "power")
        else:
            path = None if store is None else check_path("store", store)
            self._journal = SqliteJournal(path, durable or "kill", self._forget)
        try:
            with self._journal.call():
                self._agree(wanted)
                self._forget()
        except BaseException:
            self._journal.shut_down()
            raise

    def _check_rivals(self, challenger: Any) -> None:
        """Refuse what cannot be interleaved."""
        if self._interleaving is None:
            if challenger is not None:
                raise ValueError('challenger is given without by: expected by="team_draft" or by="probabilistic"')
            return
        if challenger is None and self._production is None:
            raise ValueError("by is given, and nothing to interleave with: expected production= or challenger=")
        for recipe in filter(None, (self._recipe, self._recipe.challenger)):
            if not recipe.learns_from_any:
                raise ValueError(
                    f"{recipe.name} learns from its displays only, and an interleaved list is foreign to it; by= needs agents "
                    "that learn from any list"
                )
            if recipe.sees_features != self._recipe.sees_features:
                raise ValueError(f"{self._recipe.name} and {recipe.name}: one ranks by features, the other does not")
        if self._best is not None and not self._recipe.sees_features:
            raise ValueError(
                f"challenger ranks by features, and {self._recipe.name} is given none; pass its lists as production="
            )

    def _agree(self, seed: int | None) -> None:
        """Write the settings of a new store; refuse other ones than those of an old one."""
        wanted: dict[str, Any] = {"agent": self._recipe.label, "n_positions": self.n_positions}
        if seed is not None:
            wanted["seed"] = seed
        later = self._later_settings()
        settings, valued = self._journal.settings(), bool(self._item_values)
        if not settings:
            first = {"seed": secrets.randbits(62), "secret": secrets.token_bytes(16)} | wanted
            if valued or self._journal.shared:
                first["item_values"] = int(valued)
            settings = self._journal.add_settings(first)
        for name, value in (wanted | later).items():
            if settings.get(name, value) != value:
                cure = CURES.get(name, NEW_STORE)
                raise ValueError(f"{self._journal.name} was made with {name} = {settings[name]}, not {value}; {cure}")
        if (was := bool(settings.get("item_values"))) != valued:
            raise ValueError(
                f"{self._journal.name} was made {'with' if was else 'without'} item_values; for others {NEW_STORE}"
            )
        if later.keys() - settings.keys():
            settings = self._journal.add_settings(later)
        self.seed, self._secret = int(settings["seed"]), bytes(settings["secret"])

    def _later_settings(self) -> dict[str, Any]:
        """Settings that a store may get after it was made."""
        later = {}
        if isinstance(self._production, LearnedRanker):
            later["production"] = f"LearnedRanker {self._production.digest}"
        if self._by is not None:
            against = "production" if self._best is None else type(self._best).__name__
            if self._recipe.challenger is not None:
                against = self._recipe.challenger.label
            later |= {"by": self._by, "against": against}
        return later

    def _forget(self) -> None:
        """Begin with what the store says, and nothing else."""
        items = self._items = Items(self._journal, self._item_values)
        if items.values:
            self._recipe.worths = Worths(lambda number: items.values[items.ids_of([number])[0]])
        self._waiting = deque(self._journal.waiting())
        self._learn_at = None if self._update_seconds is None else 0
        self._agents = Agents(self._journal, self._recipe, self.seed, self._memory, self._metrics)

    # ------------------------------------------------------------------------------------------------------------- calls

    def rank(self, query: Id, candidates: Sequence[Id] | None = None, *, features: ArrayLike | None = None) -> Impression:
        """Choose a list for one user, and store it.

        Args:
            query: your own id of the query.
            candidates: your own ids of the items that the list may show: at least K, each once. None: those of the query's last
                call.
            features: ``(L, d)`` of the candidates, for an agent that ranks by features; L and d are those of the first call.

        Returns:
            The impression: its id, and the items to show.

        Raises:
            ValueError, TypeError: on wrong input; nothing is stored then.
            FileError: the store cannot be written.
        """
        query, begin = check_id("query", query), time.perf_counter()
        if candidates is not None and type(candidates) is not tuple:
            is_list = isinstance(candidates, list)
            candidates = tuple(candidates) if is_list else check_ids("candidates", candidates, self._most_candidates)
        with self._journal.call():
            now = self._now()
            show = self._shown_by_features if self._recipe.sees_features else self._shown_by_slots
            impression = self._until_stored(
                lambda: 0 if self._recipe.sees_features else self._agents.find(query),
                lambda served: show(served, query, candidates, features, now),
            )
            self._catch_up(now)
        self._metrics.ranked(impression.source, time.perf_counter() - begin)
        return impression

    def click(self, impression: str, item: Id | None = None, *, position: int | None = None) -> bool:
        """Report a click of a user. Clicks may come late, in any order, and several times.

        Args:
            impression: the id of the impression.
            item: the clicked item; or
            position: the clicked position, from 1.

        Returns:
            True if the click is new; False if a click on this item of this impression was reported before.

        Raises:
            ValueError, TypeError: there is no such impression, or it does not show the item; nothing is stored then.
            FileError: the store cannot be written.
        """
        with self._journal.call():
            number = impression_number(self._secret, impression)
            if number is None:
                raise _no_impression(impression)
            if (item is None) == (position is None):
                raise ValueError("click needs the item that was clicked, or its position")
            if position is not None:
                position = check_within("position", position, 1, self.n_positions, "n_positions = ")
            clicked = None if item is None else self._items.find(check_id("item", item))
            now = self._now()
            new = self._journal.click(number, position, clicked, now) if item is None or clicked is not None else None
            if new is None:
                self._impression(impression)
                raise ValueError(f"the impression {impression} does not show the item {short(item)}")
            self._catch_up(now)
        for name in ("clicks", "late_clicks")[:new]:
            self._metrics.count(name)
        return bool(new)

    def close(self, impression: str, seen: int | None = None) -> bool:
        """Report that the user has left: items that were seen and not clicked by now count as skipped.

        Args:
            impression: the id of the impression.
            seen: how many positions the user has seen, from the top; None: all.

        Returns:
            True if the impression was open; False if it was closed before, by a call or after `patience`. Then nothing changes.

        Raises:
            ValueError: there is no such impression, or a position below was clicked; nothing is stored then.
            FileError: the store cannot be written.
        """
        if seen is not None:
            seen = check_within("seen", seen, 0, self.n_positions, "n_positions = ")
        with self._journal.call():
            row = self._impression(impression)
            if row.closed is not None:
                return False
            if seen is not None and (lowest := max(row.clicks, default=0)) > seen:
                raise ValueError(f"seen is {seen}, but position {lowest} of the impression {impression} was clicked")
            now = self._now()
            is_closed = self._close(row, self.n_positions if seen is None else seen, now)
            self._catch_up(now)
            return is_closed

    def best(self, query: Id, features: ArrayLike | None = None, candidates: Sequence[Id] | None = None) -> list[Id]:
        """The list that the agent would show if it stopped exploring. Nothing is stored, and the agent does not change.

        Args:
            query: your own id.
            features: ``(n, d)`` features of the candidates, only for an agent that ranks by features.
            candidates: your own ids of the candidates, only for such an agent; other agents take the candidates of the query's
                last call, and none may be passed.

        Returns:
            At most K of your own ids, the best first.

        Raises:
            ValueError: the query was never ranked; the agent has no such list; or it does not rank by features, and candidates
                or features were passed.
        """
        query = check_id("query", query)
        if not self._recipe.sees_features and (features is not None or candidates is not None):
            name = "features" if candidates is None else "candidates"
            raise ValueError(
                f"{name} was given, and {self._recipe.name} does not rank by features: it takes those of the last call"
            )
        with self._journal.call():
            if self._recipe.sees_features:
                return self._best_by_features(features, self._checked_candidates(candidates))
            number = self._agents.find(query)
            with self._agents.lock(number):
                served = self._agents.get(number)
                if served is None:
                    raise ValueError(f"the query {short(query)} was never ranked")
                return self._items.ids_of(served.best())

    def _best_by_features(self, features: Any, ids: tuple[Id, ...]) -> list[Id]:
        """`best` of the agent of all queries."""
        with self._agents.lock(0):
            served = self._agents.get(0)
            if served is None:
                raise ValueError("no query was ranked yet")
            agent: Any = served.agent
            matrix = checked_features(features, (len(ids), agent.n_features))
            values = [np.array([self._item_values[each] for each in ids])] if self._recipe.by_value else []
            return [ids[row] for row in agent.best(matrix, *values)[: self.n_positions].tolist()]

    def update(self) -> int:
        """Close the impressions whose time is over, and let agents learn from all closed impressions.

        A `Ranker` has no thread of its own: without calls nothing is closed or learned. Call this regularly if there are long
        times without users.

        Returns:
            How many impressions were learned.
        """
        with self._journal.call():
            now = self._now()
            if self._journal.shared:
                self._waiting = deque(self._journal.waiting())
            n = self._learn()
            while (row := self._journal.overdue(now, self._patience, at_once=True)) is not None:
                n += self._close(row, self.n_positions, now) and self._at_once
            return n + self._learn()

    def snapshot(self) -> int:
        """Write the states of the agents in memory to the store, to make the next start faster; returns how many were written.

        The state of an agent is also written automatically after every 200 events of this agent.
        """
        with self._journal.call():
            return self._agents.save_all()

    def prune(self, before: float | datetime) -> Pruned:
        """Let impressions leave the store that were shown before a date, with their clicks. First this does what `update` does.

        Agents stay as they are: their states are written, and a restart begins with these. The report goes on counting what has
        left. The log begins later. Only what is learned leaves: the first impression that is open stays, and so do those that
        were shown after it. With PostgreSQL other processes may serve meanwhile. A large store is pruned in steps, and a kill
        leaves each step done or not begun.

        Args:
            before: seconds since 1970 by the ranker's clock, or a `datetime` with a time zone; not after now.

        Returns:
            How many impressions have left, and how many from before the date stay.

        Raises:
            ValueError, TypeError: on wrong input; the agent cannot be saved, or one is not what its impressions make of it.
            FileError: the store cannot be written. Steps that were done stay done.

        Example:
            >>> ranker = Ranker(n_positions=1, seed=0, clock=lambda: 1e9)
            >>> ranker.close(ranker.rank("red shoes", ["sku-3", "sku-17"]).id), ranker.rank("blue shoes", ["sku-5"]).source
            (True, 'agent')
            >>> ranker.prune(1e9 - 86_400)
            Pruned(impressions=0, clicks=0, kept=0, until=None)
        """
        moment = moment_of(before, self._read_clock())
        if not self._recipe.can_be_saved:
            raise ValueError(
                f"{self._recipe.name} cannot be saved, and an agent whose impressions have left begins with a saved state"
            )
        self.update()
        return prune(self._journal, self._agents, moment)

    def log(self) -> ClickLog:
        """The closed impressions with all clicks, also the late ones. Each list ends at the last position that was seen.

        Sessions that `from_log` learned are not included.

        Returns:
            A log whose labels are your ids; integers are written as text. Its ``notes`` say from when on it is whole, if the
            store was pruned.
        """
        with self._journal.view() as view:
            return log_of(view)

    def metrics(self) -> str:
        """What this process has done, as text for Prometheus: impressions by who chose them, clicks, seconds of `rank`,
        agents in memory, snapshots, loads, events for which other processes were faster, queries given back to production.

        Counters begin with 0 in each process. The store is asked only for the open impressions, by an index of them; they are
        missing where it does not answer.

        Example:
            >>> print(Ranker(n_positions=2, seed=0).metrics().splitlines()[2])
            clickgym_clicks_total 0
        """
        gauges = {"agents_in_memory": len(self._agents), "waiting_impressions": len(self._waiting)}
        with suppress(OSError), self._journal.call():
            gauges["open_impressions"] = self._journal.n_open()
        return self._metrics.text(gauges)

    def check(self) -> None:
        """Read and write the store, and change nothing, to find out whether it answers.

        Raises:
            FileError: it cannot be read or written.
            ValueError: it is damaged, or was shut down.
        """
        with self._journal.call():
            self._journal.check_writable()

    def report(self) -> Report:
        """Counts of impressions and clicks, and the difference between agent and production. You may look at it at any time."""
        now = self._read_clock() / 1e6
        with self._journal.view() as view:
            return report_of(view, now, self._recipe.confidence, self._production is not None)

    @classmethod
    def from_log(cls, log: ClickLog, agent: AgentLike = FALLBACK, *, n_positions: int | None = None, **settings: Any) -> Self:
        """Make a ranker with a new store whose agents have learned from a click log.

        Args:
            log: the sessions, whoever chose their lists; of longer lists only the first K positions count. Those of a query are
                learned in the order of their times.
            agent: its ``learns_from`` must be any list.
            n_positions: K; None: those of the log.
            **settings: further arguments of `Ranker`; the store must be new.

        Raises:
            ValueError, TypeError: as of `Ranker`; on an agent that learns from its displays only, or by features.

        Example:
            >>> log = ClickLog([[0, 1], [1, 2]] * 50, [[0, 1], [1, 0]] * 50, [0] * 100, ("a", "b", "c"), ("q",))
            >>> Ranker.from_log(log, "CascadeTS", seed=0).best("q")[0]
            'b'
        """
        check_kind("log", log, ClickLog, "a ClickLog")
        n_positions = log.n_positions if n_positions is None else n_positions
        ranker = cls(agent, n_positions=n_positions, **settings)
        try:
            if not ranker._recipe.learns_from_any or ranker._recipe.sees_features:
                raise ValueError(f"{ranker._recipe.name} cannot learn from a log: it learns from its displays, or by features")
            with ranker._journal.call():
                if not ranker._journal.is_new():
                    raise ValueError(f"{ranker._journal.name} holds impressions already; a log goes into a new store")
                with ranker._journal.together():
                    ranker._learn_log(log)
        except BaseException:
            ranker.shut_down()
            raise
        return ranker

    def shut_down(self, timeout: float | None = None) -> None:
        """Write the states of the agents, and close the store. If you do not call this, nothing is lost, but the next start
        takes longer.

        Args:
            timeout: seconds after which no further state is written; first are those of agents with the longest replay. What is
                not written is computed from the impressions when it is needed. None: all states are written.

        Raises:
            ValueError: ``timeout`` is negative; or the store was shut down before.
            FileError: the store cannot be written; it is closed in any case.
        """
        seconds = math.inf if timeout is None else check_at_least("timeout", timeout, 0.0)
        self._journal.check_usable()
        try:
            with self._journal.call():
                self._agents.save_all(seconds)
        finally:
            self._journal.shut_down()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shut_down()

    def __repr__(self) -> str:
        store = None if self._journal.name is None else str(self._journal.name)
        return as_call(self, agent=self._recipe.label, n_positions=self.n_positions, store=store)

    # ----------------------------------------------------------------------------------------------------------- ranking

    def _until_stored(self, find: Callable[[], int | None], work: Callable[[Served | None], T | None]) -> T:
        """Let ``work`` change an agent and store that; once more from what is stored where another process was faster.

        Args:
            find: returns the number of the agent's query, None if it is new.
            work: takes the agent, None if it is new; returns None if another process was faster.
        """
        if not self._journal.shared:
            return cast(T, work(self._agents.get(find())))
        for _ in range(ATTEMPTS):
            number = find()
            with self._agents.lock(number):
                try:
                    result = work(self._agents.get(number))
                except BaseException:
                    if self._journal.touched:
                        self._agents.drop(find() if number is None else number)
                    raise
                if result is not None:
                    return result
                number = find() if number is None else number
                self._agents.be_wary(number)
        raise self._overtaken(number)

    def _overtaken(self, number: int | None) -> FileError:
        """What is said where other processes were faster in all attempts."""
        stored = None if number is None else self._journal.stored(number)
        what = "its agent" if stored is None or stored.query is None else f"the query {short(stored.query)}"
        return FileError(
            f"{self._journal.name}: other processes were faster with {what} in {ATTEMPTS} attempts; call again later"
        )

    def _shown_by_slots(
        self, served: Served | None, query: Id, candidates: tuple[Id, ...] | None, features: Any, now: int
    ) -> Impression | None:
        if features is not None:
            raise ValueError(f"{self._recipe.name} does not look at features, and features was given")
        candidates, capacity = self._candidates_of(served, query, candidates)
        own_list = self._own_list(query, candidates)
        self._journal.touch()
        items = self._items.numbers_of(candidates) if capacity else []
        served = served or self._agents.new(query, capacity)
        if served is None:
            return None
        tick = self._journal.next_tick(served)
        placed = served.admit(items, candidates, tick) if capacity else []
        _, mask, bits = served.present
        own = [served.slot_of[self._items.numbers[one]] for one in own_list]
        return self._show(served, served.number, now, tick, own, served.items, bits, placed, mask, None)

    def _candidates_of(self, served: Served | None, query: Id, given: tuple[Id, ...] | None) -> tuple[tuple[Id, ...], int]:
        """The candidates of a call, checked, and how many slots their query has, or is to have; 0: as in its last call."""
        if served is not None and served.present[0] and given in (None, served.candidates):
            return served.candidates or tuple(self._items.ids_of(served.present[0])), 0
        if given is None:
            what = "is new" if served is None else "has shown nothing yet"
            raise ValueError(f"the query {short(query)} {what}; give its candidates")
        candidates = self._checked_candidates(given)
        return candidates, self._checked_number(candidates, served)

    def _shown_by_features(
        self, served: Served | None, query: Id, candidates: tuple[Id, ...] | None, features: Any, now: int
    ) -> Impression | None:
        if candidates is None or features is None:
            raise ValueError(f"{self._recipe.name} ranks by features: each call needs candidates, and their features")
        candidates = self._checked_candidates(candidates)
        if served is None:
            self._checked_number(candidates, None)
            matrix = checked_features(features, (len(candidates), None))
        else:
            agent: Any = served.agent
            if len(candidates) != len(served.items):
                raise ValueError(
                    f"candidates has {len(candidates)} items; expected {len(served.items)}, as in the first call: "
                    f"{self._recipe.name} ranks as many in every session"
                )
            matrix = checked_features(features, (len(candidates), agent.n_features))
        own_list = self._own_list(query, candidates, matrix)
        self._journal.touch()
        items = self._items.numbers_of(candidates)
        served = served or self._agents.new(None, len(candidates), matrix.shape[1])
        if served is None:
            return None
        tick = self._journal.next_tick(served)
        if self._item_values:  # agents see them behind the features
            matrix = np.column_stack([matrix, [self._item_values[identity] for identity in candidates]])
        own = [candidates.index(one) for one in own_list]
        of_query, there = self._agents.number_of(query), np.array(items, np.int32).tobytes()
        return self._show(served, of_query, now, tick, own, items, there, [], None, matrix)

    def _checked_candidates(self, candidates: Any) -> tuple[Id, ...]:
        return self._items.check("candidates", check_ids("candidates", candidates, self._most_candidates))

    def _checked_number(self, candidates: tuple[Id, ...], served: Served | None) -> int:
        """How many slots a query has, or is to have."""
        if len(candidates) < self.n_positions:
            raise ValueError(f"candidates has {len(candidates)} items; expected at least the {self.n_positions} of a list")
        capacity = len(served.items) if served is not None else self._capacity or 2 * len(candidates)
        if len(candidates) > capacity:
            raise ValueError(
                f"candidates has {len(candidates)} items; the query has room for {capacity}, by capacity= or twice its first "
                "candidates"
            )
        return capacity

    def _own_list(self, query: Id, candidates: tuple[Id, ...], features: Any = None) -> list[Id]:
        """The list of production, checked; empty if there is none."""
        production: Any = self._production
        if production is None:
            return []
        if isinstance(production, LearnedRanker):
            answer: Any = production(query, candidates, None if production.table else features)
        else:
            answer = production.get(query) if isinstance(production, Mapping) else production(query, candidates)
        if answer is None:
            return []
        there = set(candidates)
        ids = [each for each in _checked_list(query, answer, self.n_positions) if each in there]
        if len(ids) < self.n_positions:
            raise ValueError(f"{_list_of(query)} has {len(ids)} candidates; expected at least {self.n_positions}")
        return ids[: self.n_positions]

    def _draw(
        self, served: Served, tick: int, own: list[int], mask: Any, features: Any
    ) -> tuple[int, float | None, list[int] | None, bytes | None]:
        """Who chooses a list, with which probability production would, the list unless the agent chooses it alone, and whose
        the positions of an interleaved one are.

        Args:
            served: the agent.
            tick: of the impression.
            own: the list of production, as the agent's own ids; empty if there is none.
            mask, features: what the agent sees.
        """
        key = self._journal.key(served.number, tick)
        if own and served.guarded:
            return BY_GUARD, None, own, None
        rivals = own or self._recipe.challenger is not None or self._best is not None
        if self._interleaving is not None and rivals and lot(self._secret, key, b"interleaved") < self._mixed:
            first, rival = self._proposals(served, own, mask, features)
            rng = np.random.default_rng([*key, int.from_bytes(self._secret)])
            list_, note = self._interleaving.draw(*completed(first, rival), self.n_positions, rng)
            return INTERLEAVED, None, list_.tolist(), note.tobytes()
        if not own:
            return AGENT, None, None, None
        by_production = lot(self._secret, key) < self._share
        return (PRODUCTION, self._share, own, None) if by_production else (BY_LOT, self._share, None, None)

    def _proposals(self, served: Served, own: list[int], mask: Any, features: Any) -> Sequence[list[int]]:
        """The list of the agent and that of its rival, for one that is interleaved; arguments as of `_draw`."""
        first, *others = served.propose(mask, features)
        if self._best is not None:
            plain = features[:, :-1] if self._item_values else features
            others = [check_ranking("challenger.best()", self._best.best(plain), self.n_positions, len(plain))]
        return first, *(others or [own])

    def _show(
        self, served: Served, query: int, now: int, tick: int, own: list[int], items: Sequence[int], candidates: bytes,
        placed: Sequence[tuple[int, int]], mask: Any, features: Any,
    ) -> Impression | None:  # fmt: skip
        """Have a list chosen, and store it as an open impression; None if another process was faster.

        Args:
            served: the agent.
            query, now, tick, candidates, placed: as of `Shown`.
            own: the list of production, as the agent's own ids; empty if there is none.
            items: the numbers of the items by these ids.
            mask, features: what the agent sees.
        """
        source, share, ranking, note = self._draw(served, tick, own, mask, features)
        chosen = served.show(tick, source, share, mask=mask, features=features, ranking=ranking)
        numbers, content = [items[each] for each in chosen], None if features is None else features.tobytes()
        row = Shown(0, served.number, tick, query, now, source, share, numbers, candidates, content, note, placed)
        number = self._journal.show(row, served)
        if number is None:
            return None
        self._agents.save_if_due(served)
        return Impression(impression_id(self._secret, number), self._items.ids_of(numbers), CHOSEN.get(source, "production"))

    # ---------------------------------------------------------------------------------------------------------- learning

    def _close(self, row: Shown, seen: int, now: int) -> bool:
        """Close an impression, and learn from it if agents learn at once; returns False if another process closed it."""
        self._journal.touch()
        closed = row.closing(now, seen)
        if self._at_once and not self._waiting:
            return self._learn_from(closed, is_closed=False)
        if not self._waiting:
            self._learn_at = None if self._update_seconds is None else now + round(self._update_seconds * 1e6)
        stored = self._only_close(closed)
        if stored is not None:
            self._waiting.append(stored)
        return stored is not None

    def _only_close(self, row: Shown) -> Shown | None:
        """Store that an impression is closed, from which its agent learns later; None if another process closed it."""
        with self._agents.lock(row.agent):
            return self._journal.close(row, self._agents.in_memory(row.agent))

    def _catch_up(self, now: int) -> None:
        """Close some impressions whose time is over, and let agents learn if it is time to."""
        try:
            for _ in range(AT_ONCE):
                row = self._journal.overdue(now, self._patience)
                if row is None:
                    break
                self._close(row, self.n_positions, now)
            is_time = self._waiting and self._learn_at is not None and now >= self._learn_at
            if is_time or len(self._waiting) >= self._update_every:
                self._learn()
        except OSError as error:
            if not self._journal.shared:
                raise
            words = {"event": "postponed", "store": str(self._journal.name)}
            logger.warning("%s", error, extra=words)  # what the user has called for is stored; a later call tries again

    def _learn(self) -> int:
        """Let agents learn from all impressions that are closed."""
        if self._waiting:
            self._journal.touch()
        n = 0
        with suppress(IndexError):  # another thread took the last one
            while True:
                self._learn_from(self._waiting.popleft())
                n += 1
        return n

    def _learn_from(self, row: Shown, is_closed: bool = True) -> bool:
        """Let an agent learn from an impression, which is closed, or becomes so.

        Returns:
            False if another process was faster.
        """

        def learn(served: Served | None) -> bool | None:
            assert served is not None
            if row.tick not in served.open:
                return is_closed or self._is_closed_by_others(row)  # another process has learned it
            tick, event, note = self._journal.next_tick(served), event_of(row, self._recipe.worths), None
            if row.source & ~BEFORE == INTERLEAVED and (gone := served.replaced_since(event)):
                note = _without(row.note, gone)
            served.learn(event, tick)
            guarded = self._is_worse(served)
            if not self._journal.learn(row, tick, note, served, guarded):
                self._agents.be_wary(row.agent)
                return self._is_closed_by_others(row)
            if guarded:
                self._guard(served)
            self._agents.save_if_due(served)
            return True

        try:
            return self._until_stored(lambda: row.agent, learn)
        except ReplayError as error:  # of one agent; the others learn on, and a later start tries again
            logger.error("%s", error, extra={"event": "replay failed", "query": error.query, "impression": row.number})
            return is_closed or self._only_close(row) is not None

    def _is_worse(self, served: Served) -> bool:
        """Whether the agent surely is worse than production."""
        return not served.guarded and served.trial.n > 0 and served.trial.interval().high < 0

    def _guard(self, served: Served) -> None:
        """Give a query back to production."""
        self._metrics.count("guarded_queries")
        served.guarded, interval = True, served.trial.interval()
        what = "all queries" if served.id is None else f"the query {short(served.id)}"
        logger.warning(
            "%s: back to production; the agent's lists earn %.3f %s less (%.3f to %.3f) in %s impressions",
            what, -interval.mean, "of value" if self._item_values else "clicks", -interval.high, -interval.low,
            f"{interval.n:,}", extra={"event": "guarded", "query": served.id, **interval._asdict()},
        )  # fmt: skip

    def _learn_log(self, log: ClickLog) -> None:
        """Store the sessions of a log as impressions of others, and learn them."""
        now, queries = self._now(), log.query_labels
        self._journal.touch()
        order = log.order
        for of_query in grouped(log.queries[order])[1]:
            part = order[of_query]
            lists, clicks = log.items[part, : self.n_positions], log.clicks[part, : self.n_positions]
            labels, counts = np.unique(lists[lists >= 0], return_counts=True)
            labels_of = (log.item_labels[label] for label in labels[np.argsort(-counts, kind="stable")].tolist())
            ids = self._items.check("item_labels", check_ids("item_labels", labels_of, self._most_candidates))
            query = check_id("a query of the log", queries[log.queries[part[0]]])
            if len(ids) < self.n_positions:
                raise ValueError(
                    f"the log has {len(ids)} items of the query {short(query)}; expected at least {self.n_positions}"
                )
            served = self._agents.new(query, self._checked_number(ids, None))
            if served is None:
                raise ValueError(f"{self._journal.name}{BY_OTHERS}")
            tick = self._journal.next_tick(served)
            placed = served.admit(self._items.numbers_of(ids), ids, tick)
            numbers_of = {label: self._items.numbers[log.item_labels[label]] for label in labels.tolist()}
            for row, clicked in zip(lists.tolist(), clicks.tolist(), strict=True):
                numbers = [numbers_of.get(label, -1) for label in row]
                numbers += [-1] * (self.n_positions - len(numbers))
                self._learn_session(served, tick, now, numbers, clicked, placed)
                tick, placed = self._journal.next_tick(served), []
            self._agents.write_state(served)

    def _learn_session(
        self, served: Served, tick: int, now: int, numbers: list[int], clicked: list[int], placed: list[tuple[int, int]]
    ) -> None:
        """Store a session that somebody else has shown, and learn it.

        Args:
            served: the agent of its query.
            tick: of its impression.
            now: microseconds since 1970.
            numbers: ``(K,)`` of the items, -1 below the end of the list.
            clicked: 0 or 1 for each position.
            placed: slots and the items that have taken them.
        """
        _, mask, bits = served.present
        served.show(tick, LOGGED, mask=mask, ranking=[served.slot_of.get(item, -1) for item in numbers])
        learned, seen = self._journal.next_tick(served), sum(item >= 0 for item in numbers)
        served.learn(Event(tick, LOGGED, None, clicked[:seen]), learned)
        places = [place for place, click in enumerate(clicked, 1) if click]
        row = Shown(
            0, served.number, tick, served.number, now, LOGGED, None, numbers, bits, None, None, placed, now, seen, places,
            learned, learned,
        )  # fmt: skip
        if self._journal.show(row, served) is None:
            raise ValueError(f"{self._journal.name}{BY_OTHERS}")

    # ------------------------------------------------------------------------------------------------------------- other

    def _read_clock(self) -> int:
        """Microseconds since 1970."""
        seconds = self._clock()
        try:
            now = round(seconds * 1e6)
        except (TypeError, ValueError, OverflowError):
            now = COLUMN
        if not abs(now) < COLUMN:
            raise ValueError(f"clock returned {short(seconds)}; expected the seconds since 1970")
        return now

    def _now(self) -> int:
        """`_read_clock`, for a call that writes."""
        now = self._read_clock()
        if now < self._latest - 1_000_000:
            text = "the clock went back by %.0f s; times of impressions follow it, their order does not"
            seconds = (self._latest - now) / 1e6
            logger.warning(text, seconds, extra={"event": "clock went back", "seconds": seconds})
        self._latest = now
        return now

    def _impression(self, impression: Any) -> Shown:
        """An impression by its id."""
        number = impression_number(self._secret, impression)
        row = None if number is None else self._journal.impression(number)
        if row is None:
            raise _no_impression(impression)
        return row

    def _is_closed_by_others(self, row: Shown) -> bool | None:
        """After a refused write: False if another process has ended this impression, None if it shall be tried again.

        True if it was this very call, whose answer was lost.
        """
        stored = self._journal.impression(row.number)
        if stored is None or stored.closed is None or (row.ended is not None and stored.learned is None):
            return None
        return (stored.closed, stored.seen) == (row.closed, row.seen)


def _no_impression(impression: Any) -> ValueError:
    return ValueError(f"there is no impression {short(impression)}; expected an id that rank returned, of this store")


def _without(note: bytes | None, positions: list[int]) -> bytes:
    """The note of an interleaved list some of whose positions are nobody's: their items were replaced since."""
    values = np.frombuffer(note or b"").copy()
    values[positions] = np.nan
    return values.tobytes()


def _list_of(query: Id) -> str:
    return f"the list of production for {short(query)}"


def _checked_list(query: Id, items: Any, n_positions: int) -> tuple[Id, ...]:
    ids = check_ids(_list_of(query), items)
    if len(ids) < n_positions:
        raise ValueError(f"{_list_of(query)} has {len(ids)} items; expected at least {n_positions}")
    return ids


def _checked_production(production: Any, n_positions: int) -> Any:
    """A function as it is; lists by query checked; a file of a learned ranker read."""
    if isinstance(production, str | PathLike):
        return LearnedRanker.load(production)
    if isinstance(production, Mapping):
        for query, items in production.items():
            _checked_list(check_id("a query of production", query), items, n_positions)
    elif production is not None and not callable(production):
        raise TypeError(f"production is {short(production)}; expected a function of query and candidates, or lists by query")
    return production
