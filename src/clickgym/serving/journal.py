"""What a `Ranker` keeps, wherever it is kept: the protocol of journals, and an impression as they hold it.

Each agent has a logical clock, its *tick*: showing a list is an event of it, and so is learning from one. A journal stores each
event with its tick. Where several processes write, a journal refuses an event of an agent whose tick has moved on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..offline.stores import View
from .ids import Id

if TYPE_CHECKING:
    from .served import Served


def check_process(process: int) -> None:
    """Refuse a journal that was shut down, and one that was copied by a fork.

    Args:
        process: in which it was made; negative after the end.
    """
    if process < 0:
        raise ValueError("the Ranker was shut down")
    if process != os.getpid():
        raise ValueError(f"the process {os.getpid()} was forked from the one that serves; make the Ranker after the fork")


class Shown(NamedTuple):
    """An impression in a journal.

    Attributes:
        number: what its id says.
        agent: the number of its agent: that of its query, or 0 where one agent ranks all queries.
        tick: of the agent, when the list was shown.
        query: the number of its query.
        shown: microseconds since 1970.
        source, share: who chose the list, and with which probability production would have.
        items: ``(K,)`` numbers of items, -1 below the end of the list.
        candidates: which slots could be shown, a bit for each; with features the numbers of the items as int32.
        features: ``(L, d)`` float64; None where the agent sees none.
        note: of an interleaved list, the probability that a position is the agent's.
        placed: slots and the items that took them with this impression.
        closed: microseconds since 1970; None while it is open.
        seen: how many positions were seen; None while it is open.
        clicks: the positions that were clicked before it was closed.
        learned: the tick at which the agent learned from it; None before.
        ended: the tick at which it was closed, where closing is an event of its own.
    """

    number: int
    agent: int
    tick: int
    query: int
    shown: int
    source: int
    share: float | None
    items: list[int]
    candidates: bytes | None
    features: bytes | None
    note: bytes | None = None
    placed: Sequence[tuple[int, int]] = ()
    closed: int | None = None
    seen: int | None = None
    clicks: Sequence[int] = ()
    learned: int | None = None
    ended: int | None = None

    def closing(self, now: int, seen: int) -> Shown:
        """The impression as it is when it is closed."""
        return Shown(*self[:12], now, seen, *self[14:])  # `_replace` takes thrice the time


class Item(NamedTuple):
    """An item in a journal.

    Attributes:
        number: by which impressions name it.
        id: the user's own.
        value: what a click on it earns; None where items have no values.
    """

    number: int
    id: Id
    value: float | None = None


class Stored(NamedTuple):
    """An agent as a journal holds it, to begin a replay with.

    Attributes:
        query: the user's own id; None for the agent of all queries.
        capacity, n_features: its sizes.
        snapshot: the tick, the version and the state of its last snapshot; None without one.
        beginning: the same where impressions have left: with it all that is known of the agent begins. None: none have.
    """

    query: Id | None
    capacity: int
    n_features: int | None
    snapshot: tuple[int, int, bytes] | None
    beginning: tuple[int, int, bytes] | None = None

    def starts(self) -> Sequence[tuple[int, int, bytes] | None]:
        """The states with which a replay may begin, the latest first; None: with the first event."""
        is_later = self.snapshot is not None and (self.beginning is None or self.snapshot[0] > self.beginning[0])
        return (self.snapshot, self.beginning) if is_later else (self.beginning,)


class History(NamedTuple):
    """What happened to an agent after a tick.

    Attributes:
        rows: the impressions that were shown or learned since, in the order in which they were shown.
        tick: of the last event.
        version: what the journal wants to see again with the next event.
        guarded: whether the guard gave the query back to production.
    """

    rows: Iterable[Shown]
    tick: int
    version: int
    guarded: bool


class Query(NamedTuple):
    """A query in a journal, with its agent.

    Attributes:
        number: 0 for the agent of all queries.
        id, capacity, n_features: as in `Stored`.
        guarded: the tick at which the guard gave it back to production; None if it did not.
        tick, version: of the last event, where each agent has ticks of its own.
    """

    number: int
    id: Id | None
    capacity: int | None
    n_features: int | None
    guarded: int | None
    tick: int = 0
    version: int = 0


class Contents(NamedTuple):
    """All that a journal holds, to be moved to another.

    Attributes:
        shared: as of `Journal`: whether each agent has ticks of its own.
        settings: what the store was made with.
        items, queries: all of them.
        rows: returns the impressions, each with the number that its id says. Of one that is closed and not learned, ``ended``
            is a tick behind those of all events where closing is none.
        clicks: returns of each the number of its impression, its position, its time, and whether it came late.
        snapshots: by agent its tick, version and state.
        beginnings: the same of those some of whose impressions have left.
        totals: by query, as texts, what is kept of these; empty if none have left.
    """

    shared: bool
    settings: dict[str, Any]
    items: Sequence[Item]
    queries: Sequence[Query]
    rows: Callable[[], Iterable[Shown]]
    clicks: Callable[[], Iterable[tuple[int, int, int, int]]]
    snapshots: Callable[[], Iterable[tuple[int, int, int, bytes]]]
    beginnings: Callable[[], Iterable[tuple[int, int, int, bytes]]]
    totals: Mapping[int, Any]


class Journal(Protocol):
    """Where a `Ranker` keeps its impressions, clicks and snapshots.

    Attributes:
        shared: whether other processes may write, too.
        step: about so many impressions leave in one transaction.
    """

    shared: bool
    step: int

    @property
    def name(self) -> Any:
        """For messages; None in memory."""

    @property
    def touched(self) -> bool:
        """Whether the current call of this thread has changed something."""

    def call(self) -> AbstractContextManager[None]:
        """Context of one call of a user: what it writes is durable when the context ends."""

    def together(self) -> AbstractContextManager[None]:
        """Context inside `call`: all that is written is stored, or nothing."""

    def touch(self) -> None:
        """Begin to write: from here on the call changes memory or the store."""

    def check_usable(self) -> None:
        """Refuse a journal that was shut down, and one that was copied by a fork."""

    def shut_down(self) -> None:
        """Release what is held."""

    def view(self) -> AbstractContextManager[View]:
        """What the journal holds at one moment."""

    def check_writable(self) -> None:
        """Read and write something that changes nothing."""

    def n_open(self) -> int:
        """How many impressions are open."""

    # ----------------------------------------------------------------------------------------------------- retention

    def leaving(self, before: int) -> AbstractContextManager[View]:
        """Context inside `call`, in which all is written or nothing: a view of impressions that may leave.

        They are those before the first that was not shown before a moment, or that is not learned; about `step` of them.

        Args:
            before: microseconds since 1970.
        """

    def agents_of(self, view: View) -> list[int]:
        """The agents of the impressions of `leaving` that do not begin behind these yet."""

    def forget(self, view: View, beginnings: Iterable[tuple[int, int, int, bytes]], totals: Iterable[tuple[int, str]]) -> None:
        """Let the impressions of `leaving` leave, with their clicks.

        Args:
            view: of them.
            beginnings: the tick, version and state of each of their agents.
            totals: by query, of all that have left, instead of earlier ones.
        """

    # -------------------------------------------------------------------------------------------------------- names

    def settings(self) -> dict[str, Any]:
        """What the store was made with; empty where it is being made."""

    def add_settings(self, values: dict[str, Any]) -> dict[str, Any]:
        """Add those settings that are not there; returns all."""

    def is_new(self) -> bool:
        """Whether nothing was ever shown."""

    def fill(self, contents: Contents) -> None:
        """Take over what another journal holds; this one is empty."""

    def items(self) -> Iterable[Item]:
        """All items."""

    def find_items(self, ids: Sequence[Id]) -> Iterable[Item]:
        """Those of some items that other processes have added."""

    def add_items(self, ids: Sequence[Id], values: Sequence[float | None]) -> Iterable[Item]:
        """Add items that are not there.

        Args:
            ids: the users' own.
            values: what a click on each earns.

        Returns:
            The items as they are stored: another process may have added one with another value.
        """

    def items_of(self, numbers: Sequence[int]) -> Iterable[Item]:
        """Items that other processes have added, by their numbers."""

    def query(self, query: Id) -> int | None:
        """The number of a query; None if it is new."""

    def add_query(self, query: Id | None, capacity: int | None, n_features: int | None) -> int | None:
        """The number of a new query, 0 for the agent of all queries; None if another process has just added it."""

    # ------------------------------------------------------------------------------------------------------- agents

    def stored(self, agent: int) -> Stored | None:
        """An agent; None if it is new."""

    def history(self, agent: int, since: int, version: int, opened: Sequence[int]) -> History | None:
        """What happened to an agent after a tick.

        Args:
            agent: its number.
            since, version: of the last event that it has met.
            opened: the ticks of earlier impressions that were open then.

        Returns:
            None if what it has met is not what the journal holds.
        """

    def add_snapshot(self, agent: int, tick: int, version: int, state: bytes) -> None:
        """Write the state of an agent, instead of an older one."""

    # ------------------------------------------------------------------------------------------------------- events

    def next_tick(self, served: Served) -> int:
        """The tick of an agent's next event."""

    def key(self, agent: int, tick: int) -> tuple[int, ...]:
        """What lots about an event depend on."""

    def show(self, row: Shown, served: Served) -> int | None:
        """Store an impression; returns its number, or None if another process was there before."""

    def close(self, row: Shown, served: Served | None) -> Shown | None:
        """Store that an impression is closed.

        Args:
            row: the impression as it is then.
            served: its agent, if it is in memory.

        Returns:
            The impression as it is stored; None if another process has closed it.
        """

    def learn(self, row: Shown, tick: int, note: bytes | None, served: Served, guarded: bool) -> bool:
        """Store that an agent has learned from an impression, which is closed by this at the latest.

        Args:
            row: the impression, with what is known of its end.
            tick: of the agent now.
            note: a new one of an interleaved list; None: that of before stays.
            served: its agent.
            guarded: whether the guard stops the agent now.

        Returns:
            False if another process was there before.
        """

    def impression(self, number: int) -> Shown | None:
        """An impression by its number, with the clicks that have come before it was closed."""

    def click(self, number: int, position: int | None, item: int | None, now: int) -> int | None:
        """Store a click by its position or item.

        Returns:
            0 if it was there, 1 if it is new, 2 if it is new and late; None if the impression does not show the item, or there
            is none.
        """

    def overdue(self, now: int, patience: float, at_once: bool = False) -> Shown | None:
        """An open impression whose time is over; one at a time.

        Args:
            now: microseconds since 1970.
            patience: seconds.
            at_once: whether to look for one though somebody has just looked.
        """

    def waiting(self) -> list[Shown]:
        """The closed impressions that are not learned, in the order in which they were closed."""
