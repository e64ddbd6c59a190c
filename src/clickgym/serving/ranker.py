"""`Ranker`: one agent per query that ranks for real users and learns from their clicks, with a durable store."""

from __future__ import annotations

import logging
import math
import secrets
import sqlite3
import time
from array import array
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from os import PathLike
from typing import Any, NamedTuple, Self

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
from ..offline.decision.decide import FALLBACK
from ..offline.distinct import grouped
from ..offline.interleaving import Interleaving, Probabilistic, TeamDraft, check_ranking, completed
from ..offline.learning.ranker import LearnedRanker
from ..offline.log import ClickLog
from ..offline.stores import (
    LOGGED,
    log_of,
    open_store,
    reading,
    row_of,
    rows_of,
    settings_of,
    sum_of,
    sum_of_impression,
    worths_of,
)
from ..runner.labels import AgentLike
from .ids import COLUMN, Id, check_id, check_ids, impression_id, impression_number, lot
from .memory import Agents, clicks_in_time, event_of
from .report import Report, report_of
from .served import AGENT, BY_GUARD, BY_LOT, INTERLEAVED, PRODUCTION, Event, Recipe, ReplayError, Served
from .store import DURABLE, Store, insert, scalar

Production = Callable[[Id, Sequence[Id]], Sequence[Id] | None] | Mapping[Id, Sequence[Id]] | str | PathLike[str]
"""The lists of production: a function of the query and its candidates, or a list for each query; None: there is none. Or a
`LearnedRanker`, or its file."""

INTERLEAVINGS: dict[str, Callable[[], Interleaving]] = {"team_draft": TeamDraft, "probabilistic": Probabilistic}
CHOSEN = {AGENT: "agent", BY_LOT: "agent", INTERLEAVED: "interleaved"}
"""Who chose a list, in words; else production."""
RESERVED = 1000
"""Ticks that are given without writing the last of them."""
AT_ONCE = 4
"""Impressions whose time is over and that one call closes, so that no user waits for those of others."""

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
    """Let an agent choose ranked lists for real users, learn from their clicks, and keep everything in one file.

    There is one agent for each query, or one agent for all queries if it ranks by features. Queries and items have your own
    ids.

    A call that has returned is durable: no click is lost or counted twice. After a restart each agent has exactly the state
    that follows from the stored impressions and clicks.

    Args:
        agent: the learning algorithm, as in `clickgym.sweep`: ``"CascadeTS"``, ``"TopRank:horizon=1e6"``, a class, or a
            `functools.partial`. It must learn from late clicks, choose among given candidates, and forget an item that is
            replaced. Or it ranks by features.
        n_positions: K, the number of items in a list.
        store: the file, created if missing; None keeps everything in memory, and nothing survives the process.
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
            each call then waits for the disk.
        seed: of all agents; None draws one. A store keeps its own.
        clock: a function that returns the seconds since 1970.

    Attributes:
        seed: of all agents.

    Raises:
        ValueError, TypeError: on wrong input, an agent that cannot serve, a store of another version or of other settings, or
            one that another process serves.
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
        durable: str = "kill",
        seed: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.n_positions = check_count("n_positions", n_positions)
        self._capacity = None if capacity is None else check_count("capacity", capacity, self.n_positions)
        self._patience = check_at_least("patience", patience, 0.0, strictly=True)
        self._update_every = check_count("update_every", update_every)
        self._update_seconds = None if update_seconds is None else check_at_least("update_seconds", update_seconds, 0.0)
        self._memory = check_count("memory", memory)
        self._most_candidates = check_count("most_candidates", most_candidates, self.n_positions)
        self._production = _checked_production(production, self.n_positions)
        self._share = check_between("production_share", production_share, 0.0, 1.0)
        confidence = check_between("confidence", confidence, 0.0, 1.0)
        check_choice("durable", durable, DURABLE)
        check_callable("clock", clock)
        wanted = None if seed is None else check_within("seed", seed, 0, COLUMN - 1)
        self._mixed = check_between("interleaved_share", interleaved_share, 0.0, 1.0, closed=True)
        self._interleaving = None if by is None else INTERLEAVINGS[check_choice("by", by, INTERLEAVINGS)]()
        self._by, self._best = by, challenger if hasattr(challenger, "best") and not isinstance(challenger, type) else None
        self._item_values, valued = _checked_values(item_values), item_values is not None
        is_agent = challenger is not None and self._best is None
        recipe = Recipe(challenger, self.n_positions, confidence, valued=valued) if is_agent else None
        self._recipe = Recipe(agent, self.n_positions, confidence, recipe, valued)
        self._check_rivals(challenger)
        for each in filter(None, (self._recipe, recipe) if valued else ()):
            if not each.by_value:
                logger.warning("%s maximises clicks, not their item_values; the comparison counts values", each.name)
        self._clock, self._latest = clock, -1
        self._oldest: tuple[Any, ...] | None = None  # the row of the open impression that was shown first
        self._now()
        self._store = Store(None if store is None else check_path("store", store), durable, self._forget)
        self._connection = self._store.connection
        try:
            with self._store.call():
                self._agree(wanted)
                self._forget()
        except BaseException:
            self._store.shut_down()
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
        settings = settings_of(self._connection)
        wanted = {"agent": self._recipe.label, "n_positions": self.n_positions, "seed": seed}
        later = {}  # settings that a store may get after it was made
        if isinstance(self._production, LearnedRanker):
            later["production"] = f"LearnedRanker {self._production.digest}"
        if self._by is not None:
            against = "production" if self._best is None else type(self._best).__name__
            if self._recipe.challenger is not None:
                against = self._recipe.challenger.label
            later |= {"by": self._by, "against": against}
        if not settings:
            wanted["seed"] = secrets.randbits(62) if seed is None else seed
            settings = {**wanted, "secret": secrets.token_bytes(16), "tick": 0}
            settings |= {"item_values": 1} if self._item_values else {}
            self._store.touch()
            for name, value in settings.items():
                insert(self._connection, "settings", name, value)
        for name, value in later.items():
            if name not in settings:
                self._store.touch()
                insert(self._connection, "settings", name, value)
        for name, value in (wanted | later).items():
            if value is not None and settings.get(name, value) != value:
                raise ValueError(
                    f"{self._store.path} was made with {name} = {settings[name]}, not {value}; for other agents make a new "
                    "store of its log, by Ranker.from_log(clickgym.offline.read_log(store), ...)"
                )
        if (valued := "item_values" in settings) != bool(self._item_values):
            raise ValueError(
                f"{self._store.path} was made {'with' if valued else 'without'} item_values; for others make a new store of "
                "its log, by Ranker.from_log(clickgym.offline.read_log(store), ...)"
            )
        self.seed, self._secret = int(settings["seed"]), bytes(settings["secret"])

    def _forget(self) -> None:
        """Begin with what the store says, and nothing else."""
        settings = settings_of(self._connection)
        self._tick = self._reserved = int(settings.get("tick", 0))
        self._items: dict[Id, int] = {}
        self._item_ids: list[Id] = []
        for number, identity, _ in rows_of(self._connection, "items", "ORDER BY number"):
            self._items[identity] = number
            self._item_ids.append(identity)
        if self._item_values:
            worths = self._recipe.worths = worths_of(settings, len(self._item_ids))
            for identity, worth in zip(self._item_ids, worths, strict=True):
                if self._item_values.setdefault(identity, worth) != worth:
                    raise ValueError(
                        f"item_values has {self._item_values[identity]:g} for {short(identity)}, of which "
                        f"{self._store.path} has {worth:g}; an item keeps its value, or gets another id"
                    )
        self._agents = Agents(self._store, self._recipe, self.seed, self._memory)
        waiting = "WHERE learned IS NULL AND closed IS NOT NULL ORDER BY closed, number"
        self._waiting = deque(rows_of(self._connection, "impressions", waiting))
        self._learn_at = None if self._update_seconds is None else 0
        self._find_oldest()

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
        query = check_id("query", query)
        if candidates is not None and type(candidates) is not tuple:
            candidates = tuple(candidates) if isinstance(candidates, list) else self._checked_candidates(candidates)
        with self._store.call():
            now = self._now()
            if self._recipe.sees_features:
                impression = self._rank_by_features(query, candidates, features, now)
            else:
                if features is not None:
                    raise ValueError(f"{self._recipe.name} does not look at features, and features was given")
                impression = self._rank_by_slots(query, candidates, now)
            self._catch_up(now)
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
        with self._store.call():
            number, items, closed = self._impression(impression, self._shown)
            place = self._position(impression, memoryview(items).cast("i").tolist(), item, position)
            now = self._now()
            self._store.touch()
            late = int(closed is not None)
            new = insert(self._connection, "clicks", number, place, now, late, verb="INSERT OR IGNORE")
            self._catch_up(now)
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
        with self._store.call():
            row = self._impression(impression, self._row)
            if row[8] is not None:
                return False
            lowest = scalar(self._connection, "SELECT max(position) FROM clicks WHERE impression = ?", row[0])
            if seen is not None and lowest is not None and lowest > seen:
                raise ValueError(f"seen is {seen}, but position {lowest} of the impression {impression} was clicked")
            now = self._now()
            self._store.touch()
            self._close(row, self.n_positions if seen is None else seen, now)
            self._catch_up(now)
            return True

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
        with self._store.call():
            if self._recipe.sees_features:
                ids = self._checked_candidates(candidates)
                served = self._agents.get(0)
                if served is None:
                    raise ValueError("no query was ranked yet")
                agent: Any = served.agent
                matrix = checked_features(features, (len(ids), agent.n_features))
                values = [np.array([self._item_values[each] for each in ids])] if self._recipe.by_value else []
                return [ids[row] for row in agent.best(matrix, *values)[: self.n_positions].tolist()]
            served = self._agents.of_query(query)
            if served is None:
                raise ValueError(f"the query {short(query)} was never ranked")
            return [self._item_ids[item] for item in served.best()]

    def update(self) -> int:
        """Close the impressions whose time is over, and let agents learn from all closed impressions.

        A `Ranker` has no thread of its own: without calls nothing is closed or learned. Call this regularly if there are long
        times without users.

        Returns:
            How many impressions were learned.
        """
        with self._store.call():
            now = self._now()
            while self._oldest is not None and self._is_over(now):
                self._close(self._oldest, self.n_positions, now)
            return self._learn()

    def snapshot(self) -> int:
        """Write the states of the agents in memory to the store, to make the next start faster; returns how many were written.

        The state of an agent is also written automatically after every 200 events of this agent.
        """
        with self._store.call():
            return self._agents.save_all()

    def log(self) -> ClickLog:
        """The closed impressions with all clicks, also the late ones. Each list ends at the last position that was seen.

        Sessions that `from_log` learned are not included.

        Returns:
            A log whose labels are your ids; integers are written as text.
        """
        return self._reading(log_of)

    def report(self) -> Report:
        """Counts of impressions and clicks, and the difference between agent and production. You may look at it at any time."""
        confidence = self._recipe.confidence
        now = self._read_clock() / 1e6
        return self._reading(lambda connection: report_of(connection, now, confidence, self._production is not None))

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
            with ranker._store.call():
                if ranker._tick or ranker._items:
                    raise ValueError(f"{ranker._store.path} holds impressions already; a log goes into a new store")
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
        self._store.check_usable()
        try:
            with self._store.call():
                self._agents.save_all(seconds)
        finally:
            self._store.shut_down()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shut_down()

    def __repr__(self) -> str:
        store = None if self._store.path is None else str(self._store.path)
        return as_call(self, agent=self._recipe.label, n_positions=self.n_positions, store=store)

    # ----------------------------------------------------------------------------------------------------------- ranking

    def _rank_by_slots(self, query: Id, candidates: tuple[Id, ...] | None, now: int) -> Impression:
        served = self._agents.of_query(query)
        if served is None and candidates is None:
            raise ValueError(f"the query {short(query)} is new; give its candidates")
        same = served is not None and (candidates is None or candidates == served.candidates)
        if not same:
            assert candidates is not None
            candidates = self._checked_candidates(candidates)
            capacity = self._checked_number(candidates, served)
        elif served is not None:
            candidates = served.candidates or tuple(self._item_ids[item] for item in served.present[0])
        assert candidates is not None
        own_list = self._own_list(query, candidates)
        self._store.touch()
        if served is None:
            served = self._agents.new(query, capacity)
        number = self._next()
        if not same:
            items = [self._item(identity) for identity in candidates]
            self._agents.admit(served, items, candidates, number)
        _, mask, bits = served.present
        own = None if own_list is None else [served.slot_of[self._items[one]] for one in own_list]
        source, share, ranking = self._draw(number, served, own, mask, None)
        numbers = [served.items[slot] for slot in served.show(number, source, share, mask=mask, ranking=ranking)]
        return self._record(served, (number, served.number, now, source, share, _blob(numbers), bits, None), numbers)

    def _rank_by_features(self, query: Id, candidates: Any, features: Any, now: int) -> Impression:
        if candidates is None or features is None:
            raise ValueError(f"{self._recipe.name} ranks by features: each call needs candidates, and their features")
        candidates = self._checked_candidates(candidates)
        served = self._agents.get(0)
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
        self._store.touch()
        if served is None:
            served = self._agents.new(None, len(candidates), matrix.shape[1])
        number = self._next()
        items = [self._item(identity) for identity in candidates]
        if self._item_values:  # agents see them behind the features
            matrix = np.column_stack([matrix, [self._item_values[identity] for identity in candidates]])
        own = None if own_list is None else [candidates.index(one) for one in own_list]
        source, share, ranking = self._draw(number, served, own, None, matrix)
        numbers = [items[row] for row in served.show(number, source, share, features=matrix, ranking=ranking)]
        of_query = self._agents.number_of(query)
        row = (number, of_query, now, source, share, _blob(numbers), _blob(items), matrix.tobytes())
        return self._record(served, row, numbers)

    def _checked_candidates(self, candidates: Any) -> tuple[Id, ...]:
        return self._check_valued("candidates", check_ids("candidates", candidates, self._most_candidates))

    def _check_valued(self, name: str, ids: tuple[Id, ...]) -> tuple[Id, ...]:
        """Refuse items without a value, if items have any."""
        for identity in ids if self._item_values else ():
            if identity not in self._item_values:
                raise ValueError(f"{name} holds {short(identity)}, of which item_values has no value")
        return ids

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

    def _own_list(self, query: Id, candidates: tuple[Id, ...], features: Any = None) -> tuple[Id, ...] | None:
        """The list of production, checked."""
        if self._production is None:
            return None
        if isinstance(self._production, LearnedRanker):
            answer: Any = self._production(query, candidates, None if self._production.table else features)
        else:
            answer = (
                self._production.get(query) if isinstance(self._production, Mapping) else self._production(query, candidates)
            )
        if answer is None:
            return None
        there = set(candidates)
        ids = [each for each in _checked_list(query, answer, self.n_positions) if each in there]
        if len(ids) < self.n_positions:
            raise ValueError(f"{_list_of(query)} has {len(ids)} candidates; expected at least {self.n_positions}")
        return tuple(ids[: self.n_positions])

    def _draw(
        self, number: int, served: Served, own: list[int] | None, mask: Any, features: Any
    ) -> tuple[int, float | None, list[int] | None]:
        """Who chooses a list, with which probability production would, and the list unless the agent chooses it alone.

        Args:
            number: of the impression.
            served: the agent.
            own: the list of production, as the agent's own ids.
            mask, features: what the agent sees.
        """
        if own is not None and served.guarded:
            return BY_GUARD, None, own
        rivals = own is not None or self._recipe.challenger is not None or self._best is not None
        if self._interleaving is not None and rivals and lot(self._secret, number, b"interleaved") < self._mixed:
            first, *others = served.propose(mask, features)
            if self._best is not None:
                plain = features[:, :-1] if self._item_values else features
                others = [check_ranking("challenger.best()", self._best.best(plain), self.n_positions, len(plain))]
            rng = np.random.default_rng([number, int.from_bytes(self._secret)])
            list_, note = self._interleaving.draw(*completed(first, others[0] if others else own or []), self.n_positions, rng)
            insert(self._connection, "interleaved", number, note.tobytes())
            return INTERLEAVED, None, list_.tolist()
        if own is None:
            return AGENT, None, None
        by_production = lot(self._secret, number) < self._share
        return (PRODUCTION, self._share, own) if by_production else (BY_LOT, self._share, None)

    def _record(self, served: Served, columns: tuple[Any, ...], numbers: list[int]) -> Impression:
        """Store the first columns of an open impression; ``numbers`` are those of its items."""
        row = (*columns, None, None, None)
        number, source = row[0], row[3]
        insert(self._connection, "impressions", *row)
        if self._oldest is None:
            self._oldest = row
        self._agents.save_if_due(served)
        items = [self._item_ids[item] for item in numbers]
        return Impression(impression_id(self._secret, number), items, CHOSEN.get(source, "production"))

    # ---------------------------------------------------------------------------------------------------------- learning

    def _close(self, row: tuple[Any, ...], seen: int, now: int) -> None:
        self._store.touch()
        row = (*row[:8], now, seen, None)
        values = (now, seen, sum_of_impression(*row), row[0])
        self._connection.execute("UPDATE impressions SET closed = ?, seen = ?, checksum = ? WHERE number = ?", values)
        if not self._waiting:
            self._learn_at = None if self._update_seconds is None else now + round(self._update_seconds * 1e6)
        self._waiting.append(row)
        if self._oldest is not None and row[0] == self._oldest[0]:
            self._find_oldest()

    def _catch_up(self, now: int) -> None:
        """Close some impressions whose time is over, and let agents learn if it is time to."""
        for _ in range(AT_ONCE):
            if self._oldest is None or not self._is_over(now):
                break
            self._close(self._oldest, self.n_positions, now)
        if len(self._waiting) >= self._update_every or (self._waiting and self._learn_at is not None and now >= self._learn_at):
            self._learn()

    def _is_over(self, now: int) -> bool:
        """Whether the time of the oldest open impression is over; also if the clock went back since by more than that."""
        assert self._oldest is not None
        return abs(now - self._oldest[2]) >= self._patience * 1e6

    def _find_oldest(self) -> None:
        self._oldest = row_of(
            self._connection, "impressions", "WHERE learned IS NULL AND closed IS NULL ORDER BY number LIMIT 1"
        )

    def _learn(self) -> int:
        """Let agents learn from all impressions that are closed."""
        n = len(self._waiting)
        if n:
            self._store.touch()
        while self._waiting:
            row = self._waiting[0]
            try:
                served = self._agents.get(0 if self._recipe.sees_features else row[1])
            except ReplayError as error:  # of one agent; the others learn on, and a later start tries again
                logger.error("%s", error)
            else:
                assert served is not None
                tick, event = self._next(), event_of(row, clicks_in_time(self._connection, row[0]), self._recipe.worths)
                if row[3] == INTERLEAVED and (gone := served.replaced_since(event)):
                    self._take_credit(row[0], gone)
                served.learn(event, tick)
                values = (tick, sum_of_impression(*row[:10], tick), row[0])
                self._connection.execute("UPDATE impressions SET learned = ?, checksum = ? WHERE number = ?", values)
                self._guard(served, tick)
                self._agents.save_if_due(served)
            self._waiting.popleft()
        return n

    def _take_credit(self, number: int, positions: list[int]) -> None:
        """Let positions of an interleaved list be nobody's: their items were replaced since."""
        note = np.frombuffer(row_of(self._connection, "interleaved", "WHERE impression = ?", number)[1]).copy()
        note[positions] = np.nan
        insert(self._connection, "interleaved", number, note.tobytes(), verb="INSERT OR REPLACE")

    def _guard(self, served: Served, tick: int) -> None:
        """Give a query back to production where the agent surely is worse."""
        if served.guarded or not served.trial.n:
            return
        interval = served.trial.interval()
        if interval.high < 0:
            served.guarded = True
            number, query, capacity, n_features, *_ = row_of(self._connection, "queries", "WHERE number = ?", served.number)
            values = (tick, sum_of(number, query, capacity, n_features, tick), number)
            self._connection.execute("UPDATE queries SET guarded = ?, checksum = ? WHERE number = ?", values)
            what = "all queries" if served.id is None else f"the query {short(served.id)}"
            logger.warning(
                "%s: back to production; the agent's lists earn %.3f %s less (%.3f to %.3f) in %s impressions",
                what, -interval.mean, "of value" if self._item_values else "clicks", -interval.high, -interval.low,
                f"{interval.n:,}",
            )  # fmt: skip

    def _learn_log(self, log: ClickLog) -> None:
        """Store the sessions of a log as impressions of others, and learn them."""
        now, queries = self._now(), log.query_labels
        self._store.touch()
        order = log.order
        for of_query in grouped(log.queries[order])[1]:
            part = order[of_query]
            lists, clicks = log.items[part, : self.n_positions], log.clicks[part, : self.n_positions]
            labels, counts = np.unique(lists[lists >= 0], return_counts=True)
            labels_of = (log.item_labels[label] for label in labels[np.argsort(-counts, kind="stable")].tolist())
            ids = self._check_valued("item_labels", check_ids("item_labels", labels_of, self._most_candidates))
            query = check_id("a query of the log", queries[log.queries[part[0]]])
            if len(ids) < self.n_positions:
                raise ValueError(
                    f"the log has {len(ids)} items of the query {short(query)}; expected at least {self.n_positions}"
                )
            served = self._agents.new(query, self._checked_number(ids, None))
            number = self._next()
            items = [self._item(identity) for identity in ids]
            self._agents.admit(served, items, ids, number)
            numbers_of = {label: self._items[log.item_labels[label]] for label in labels.tolist()}
            for row, clicked in zip(lists.tolist(), clicks.tolist(), strict=True):
                numbers = [numbers_of.get(label, -1) for label in row]
                numbers += [-1] * (self.n_positions - len(numbers))
                self._learn_session(served, number, now, numbers, clicked)
                number = self._next()
            self._agents.write_state(served)

    def _learn_session(self, served: Served, number: int, now: int, numbers: list[int], clicked: list[int]) -> None:
        """Store a session that somebody else has shown, and learn it.

        Args:
            served: the agent of its query.
            number: of its impression.
            now: microseconds since 1970.
            numbers: ``(K,)`` of the items, -1 below the end of the list.
            clicked: 0 or 1 for each position.
        """
        _, mask, bits = served.present
        tick, seen = self._next(), sum(item >= 0 for item in numbers)
        row = (number, served.number, now, LOGGED, None, _blob(numbers), bits, None, now, seen, tick)
        insert(self._connection, "impressions", *row)
        for place in (place for place, click in enumerate(clicked, 1) if click):
            insert(self._connection, "clicks", number, place, now, 0)
        served.show(number, LOGGED, mask=mask, ranking=[served.slot_of.get(item, -1) for item in numbers])
        served.learn(Event(number, LOGGED, None, clicked[:seen]), tick)

    # ------------------------------------------------------------------------------------------------------------- other

    def _item(self, identity: Id) -> int:
        """The number of an item, a new one if need be."""
        number = self._items.get(identity)
        if number is None:
            number = self._items[identity] = len(self._item_ids)
            self._item_ids.append(identity)
            insert(self._connection, "items", number, identity)
            if (worths := self._recipe.worths) is not None:
                worths.append(self._item_values[identity])
                insert(self._connection, "settings", f"value of item {number}", repr(worths[-1]))
        return number

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
            logger.warning(
                "the clock went back by %.0f s; times of impressions follow it, their order does not",
                (self._latest - now) / 1e6,
            )
        self._latest = now
        return now

    def _next(self) -> int:
        """The next tick."""
        self._tick += 1
        if self._tick > self._reserved:
            self._reserved += RESERVED
            values = (self._reserved, sum_of("tick", self._reserved))
            self._connection.execute("UPDATE settings SET value = ?, checksum = ? WHERE name = 'tick'", values)
        return self._tick

    def _impression(self, impression: Any, read: Callable[[int], Any]) -> Any:
        """What is read of an impression by its number."""
        number = impression_number(self._secret, impression)
        row = None if number is None else read(number)
        if row is None:
            raise ValueError(f"there is no impression {short(impression)}; expected an id that rank returned, of this store")
        return row

    def _shown(self, number: int) -> Any:
        """What a click needs of an impression; who reads the whole row checks its checksum."""
        row = self._connection.execute("SELECT number, items, closed FROM impressions WHERE number = ?", (number,)).fetchone()
        if row is not None and (type(row[1]) is not bytes or len(row[1]) != 4 * self.n_positions):
            raise sqlite3.DatabaseError(f"impression {number} has no list")
        return row

    def _row(self, number: int) -> Any:
        return row_of(self._connection, "impressions", "WHERE number = ?", number)

    def _position(self, impression: str, items: list[int], item: Any, position: Any) -> int:
        """The position of what was clicked, from 1."""
        if (item is None) == (position is None):
            raise ValueError("click needs the item that was clicked, or its position")
        if item is None:
            return check_within("position", position, 1, self.n_positions, "n_positions = ")
        number = self._items.get(check_id("item", item))
        if number not in items:
            raise ValueError(f"the impression {impression} does not show the item {short(item)}")
        return items.index(number) + 1

    def _reading(self, read: Callable[[Any], Any]) -> Any:
        """Read from the store beside those who write, if it is a file."""
        if self._store.path is None:
            with self._store.call():
                return read(self._connection)
        self._store.check_usable()
        with reading(self._store.path), closing(open_store(self._store.path, check=False)) as connection:
            return read(connection)


def _blob(numbers: list[int]) -> bytes:
    """Numbers of items, as the store holds them."""
    return array("i", numbers).tobytes()


def _list_of(query: Id) -> str:
    return f"the list of production for {short(query)}"


def _checked_list(query: Id, items: Any, n_positions: int) -> tuple[Id, ...]:
    ids = check_ids(_list_of(query), items)
    if len(ids) < n_positions:
        raise ValueError(f"{_list_of(query)} has {len(ids)} items; expected at least {n_positions}")
    return ids


def _checked_values(item_values: Any) -> dict[Id, float]:
    """The values by item; none if none are given."""
    if item_values is None:
        return {}
    if not isinstance(item_values, Mapping):
        raise TypeError(f"item_values is {short(item_values)}; expected the value of each item, by its id")
    values = {
        check_id("an item of item_values", item): check_at_least(f"item_values[{short(item)}]", value, 0.0)
        for item, value in item_values.items()
    }
    if not any(values.values()):
        raise ValueError(f"item_values {'are all 0' if values else 'is empty'}; expected at least one above 0")
    return values


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
