"""The agents of a store: a limited number in memory; the others are restored from the store when they are needed."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from ..core.checks import short
from ..offline.stores import as_items
from .ids import Id, seed_of
from .journal import Journal, Shown
from .metrics import Metrics
from .served import AGENT, BY_LOT, INTERLEAVED, NO_CURE, Event, Recipe, ReplayError, Served

SNAPSHOT = 200
"""Events of an agent after which its state is written, so that loading it replays no more."""
WARY = 16
"""Calls for which an agent looks for what other processes did before it ranks or learns, after one of them was faster."""


def event_of(row: Shown, worths: Mapping[int, float] | None) -> Event:
    """What an agent learns from a closed impression; ``worths`` as in `Recipe`."""
    clicks = [int(place in row.clicks) for place in range(1, max(row.seen or 0, *row.clicks, 0) + 1)]
    matrix = None if row.features is None else _matrix(row.features, len(as_items(row.candidates or b"")))
    worth = None if worths is None else [worths[item] for item in row.items]
    return Event(row.tick, row.source, matrix, clicks, row.share, worth)


def _called(served: Served) -> str:
    return "the agent" if served.id is None else f"the agent of {short(served.id)}"


def _matrix(blob: bytes, n_rows: int) -> NDArray[np.float64]:
    return np.frombuffer(blob, np.float64).reshape(n_rows, -1)


class Agents:
    """The agents of a journal, by the numbers of their queries. Several threads may use it.

    Args:
        journal: where they are.
        recipe: how they are made.
        seed: of all of them.
        most: how many are in memory at once.
        metrics: counts what happens; None: nobody looks.
    """

    def __init__(self, journal: Journal, recipe: Recipe, seed: int, most: int, metrics: Metrics | None = None) -> None:
        self._metrics = metrics or Metrics()
        self._journal, self._recipe, self._seed, self._most = journal, recipe, seed, most
        self._agents: OrderedDict[int, Served] = OrderedDict()  # the least recently used first
        self._numbers: dict[Id, int] = {}  # of their queries; where one agent ranks all, of those met last
        self._wary: dict[int, int] = {}  # for how many calls more
        self._mutex = threading.Lock()  # of these
        self._locks: WeakValueDictionary[int | None, Any] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._agents)

    def lock(self, number: int | None) -> AbstractContextManager[Any]:
        """The lock of an agent; while it is held, no other thread of this process changes the agent."""
        with self._mutex:
            lock = self._locks.get(number)
            if lock is None:
                lock = self._locks[number] = threading.Lock()
            return lock

    def drop(self, number: int | None) -> None:
        """Forget what is in memory of an agent."""
        with self._mutex:
            served = self._agents.pop(-1 if number is None else number, None)
            if served is not None and served.id is not None:
                self._numbers.pop(served.id, None)

    def be_wary(self, number: int | None) -> None:
        """Forget an agent because another process was faster, and look for events of others in the next calls."""
        self.drop(number)
        self._metrics.count("refused_events")
        if number is not None:
            self._wary[number] = WARY

    def of_query(self, query: Id) -> Served | None:
        """The agent of a query; None if the query is new."""
        return self.get(self.find(query))

    def find(self, query: Id) -> int | None:
        """The number of a query; None if the query is new."""
        number = self._numbers.get(query)
        return self._journal.query(query) if number is None else number

    def get(self, number: int | None) -> Served | None:
        """The agent of a query by number, from memory or the journal; None if the query is new."""
        if number is None:
            return None
        with self._mutex:
            served = self._agents.get(number)
            if served is not None:
                self._agents.move_to_end(number)
        if served is not None and number in self._wary and not self._is_current(served):
            self.drop(number)
            served = None
        if served is None:
            served = self.load(number)
            if served is not None:
                self._keep(served)
        return served

    def _is_current(self, served: Served) -> bool:
        """Meet the events of other processes; returns whether that was possible."""
        tick = served.tick
        if not self._catch_up(served):
            return False
        left = WARY if served.tick > tick else self._wary[served.number] - 1
        if left:
            self._wary[served.number] = left
        else:
            del self._wary[served.number]
        return True

    def _keep(self, served: Served) -> None:
        """Keep an agent in memory, and let go of the one that was used longest ago: the journal has it."""
        with self._mutex:
            self._agents[served.number] = served
            if served.id is not None:
                self._numbers[served.id] = served.number
            if len(self._agents) > self._most:
                _, old = self._agents.popitem(last=False)
                if old.id is not None:
                    self._numbers.pop(old.id, None)

    def _make(self, number: int, query: Id | None, capacity: int, n_features: int | None) -> Served:
        seed, challenger = seed_of(self._seed, query), self._recipe.challenger
        served = Served(number, query, self._recipe.make(capacity, n_features, seed), capacity, self._recipe)
        if challenger is not None:
            served.challenger = challenger.make(capacity, n_features, seed.spawn(1)[0])
        return served

    def in_memory(self, number: int) -> Served | None:
        """The agent of a query if it is in memory."""
        return self._agents.get(number)

    def new(self, query: Id | None, capacity: int, n_features: int | None = None) -> Served | None:
        """Make the agent of a new query, or of all queries if it is None; None if another process has just made it."""
        number = self._journal.add_query(query, capacity, n_features)
        if number is None:
            return None
        served = self._make(number, query, capacity, n_features)
        self._keep(served)
        return served

    def save_all(self, seconds: float = math.inf) -> int:
        """Write the states of the agents in memory that have changed, first of those whose replay takes longest.

        Args:
            seconds: after which no other is begun.

        Returns:
            How many were written.
        """
        until, n = time.monotonic() + seconds, 0
        with self._mutex:
            agents = sorted(self._agents.values(), key=lambda served: -served.events)
        for served in agents:
            if not served.events or time.monotonic() >= until:
                break
            with self.lock(served.number):
                n += self.write_state(served)
        return n

    def save_if_due(self, served: Served) -> None:
        """Write the state of an agent if it has changed by many events since the last snapshot."""
        if served.events >= SNAPSHOT + len(served.open):
            self.write_state(served)

    def number_of(self, query: Id) -> int:
        """The number of a query that shares its agent with all others."""
        number = self.find(query)
        if number is None:
            number = self._journal.add_query(query, None, None)
        if number is None:  # another process has just met it
            return self.number_of(query)
        if len(self._numbers) < self._most:
            self._numbers[query] = number
        return number

    def write_state(self, served: Served) -> bool:
        """Write a snapshot, if the agent can be saved."""
        content = served.to_bytes()
        if content is None:
            return False
        self._journal.add_snapshot(served.number, served.tick, served.version, content)
        self._metrics.count("snapshots")
        served.events = 0
        return True

    def load(self, number: int) -> Served | None:
        """An agent as the events of the journal make it, from its last snapshot on; None if the query is new.

        A snapshot that does not fit is left out, but not that with which all begins because impressions have left.

        Raises:
            ReplayError: the events do not make the agent, or it cannot begin.
        """
        stored, before = self._journal.stored(number), None
        self._metrics.count("loads")
        while stored is not None and stored != before:
            first, before = stored.beginning, stored
            for snapshot in stored.starts():
                served = self._make(number, stored.query, stored.capacity, stored.n_features)
                served.is_pruned = first is not None
                reason = "" if snapshot is None else served.restore(*snapshot)
                if reason and snapshot is first:
                    raise ReplayError(
                        f"{_called(served)} cannot begin, for its first impressions have left the store, and {reason}",
                        stored.query,
                    )
                if not reason and self._catch_up(served):
                    return served
            stored = self._journal.stored(number)  # while this loaded, impressions may have left
        if stored is None:
            return None
        raise ReplayError(f"events of {_called(served)} are missing in the store; restore a copy of it", stored.query)

    def _catch_up(self, served: Served) -> bool:
        """Let an agent meet the events that it has not seen, in their order.

        Returns:
            False if the agent does not follow from the journal: what it had met is not there any more.
        """
        since = served.tick
        history = self._journal.history(served.number, since, served.version, [*served.open])
        if history is None:
            return False
        rows = list(history.rows)
        events = sorted(
            [(row.tick, True, row) for row in rows if row.tick > since]
            + [(row.learned, False, row) for row in rows if row.learned is not None],
            key=lambda each: each[:2],
        )
        for tick, is_shown, row in events:
            if is_shown:
                self._show_again(served, row)
            else:
                served.learn(event_of(row, self._recipe.worths), tick)
        served.tick, served.version, served.guarded = max(served.tick, history.tick), history.version, history.guarded
        if events or not served.present[0]:
            served.recall_present()
        return True

    def _show_again(self, served: Served, row: Shown) -> None:
        """Show a list as it was shown, after the items that took their slots with it."""
        for slot, item in row.placed:
            served.place(slot, item, row.tick)
        candidates, mask, features, place_of = row.candidates or b"", None, None, served.slot_of
        if row.features is None:
            mask = np.unpackbits(np.frombuffer(candidates, np.uint8), count=len(served.items)).astype(np.bool_)
        else:
            place_of = {item: place for place, item in enumerate(as_items(candidates).tolist())}
            features = _matrix(row.features, len(place_of))
        if row.source == INTERLEAVED:
            served.propose(mask, features)
        ranking = [place_of.get(item, -1) for item in row.items]
        given = None if row.source in (AGENT, BY_LOT) else ranking
        if served.show(row.tick, row.source, row.share, mask=mask, features=features, ranking=given) != ranking:
            cure = "; move the store to another agent, or anew to this one, by clickgym move OLD NEW --agent AGENT"
            cure = NO_CURE if served.is_pruned else cure
            raise ReplayError(
                f"{_called(served)} showed another list in impression {row.tick} than in its replay: the code of "
                f"{served.recipe.name} has changed, or it does not draw from its seed alone{cure}",
                served.id,
            )
