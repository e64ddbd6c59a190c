"""The agents of a store: a limited number in memory; the others are restored from the store when they are needed."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.checks import short
from ..offline.stores import as_items, row_of, rows_of
from .ids import Id, seed_of
from .served import AGENT, BY_LOT, INTERLEAVED, Event, Recipe, ReplayError, Served
from .store import Store, insert, scalar

SNAPSHOT = 200
"""Events of an agent after which its state is written, so that loading it replays no more."""


def event_of(row: Sequence[Any], positions: Sequence[int], worths: Sequence[float] | None) -> Event:
    """What an agent learns from an impression.

    Args:
        row: of the table ``impressions``.
        positions: those that were clicked in time, from 1.
        worths: of each item, as in `Recipe`.
    """
    number, _, _, source, share, items, candidates, features, _, seen, *_ = row
    clicks = [int(place in positions) for place in range(1, max(seen, *positions, 0) + 1)]
    matrix = None if features is None else _matrix(features, len(as_items(candidates)))
    worth = None if worths is None else [worths[item] for item in as_items(items).tolist()]
    return Event(number, source, matrix, clicks, share, worth)


def clicks_in_time(connection: Any, impression: int) -> list[int]:
    """The positions of an impression that were clicked before it was closed."""
    return [row[1] for row in rows_of(connection, "clicks", "WHERE impression = ?", impression) if not row[3]]


def _matrix(blob: bytes, n_rows: int) -> NDArray[np.float64]:
    return np.frombuffer(blob, np.float64).reshape(n_rows, -1)


def _mask(bits: bytes, length: int) -> NDArray[np.bool_]:
    return np.unpackbits(np.frombuffer(bits, np.uint8), count=length).astype(np.bool_)


def _last_mask(connection: Any, served: Served) -> NDArray[np.bool_] | None:
    """Which slots could be shown in the last impression of a query."""
    row = row_of(connection, "impressions", "WHERE query = ? ORDER BY number DESC LIMIT 1", served.number)
    return None if row is None else _mask(row[6], len(served.items))


class Agents:
    """The agents of a store, by the numbers of their queries.

    Args:
        store: where they are.
        recipe: how they are made.
        seed: of all of them.
        most: how many are in memory at once.
    """

    def __init__(self, store: Store, recipe: Recipe, seed: int, most: int) -> None:
        self._store, self._connection, self._recipe, self._seed, self._most = store, store.connection, recipe, seed, most
        self._agents: OrderedDict[int, Served] = OrderedDict()  # the least recently used first
        self._numbers: dict[Id, int] = {}  # of their queries; where one agent ranks all, of those met last
        self._n_queries = int(scalar(self._connection, "SELECT coalesce(max(number), 0) FROM queries")) + 1

    def of_query(self, query: Id) -> Served | None:
        """The agent of a query; None if the query is new."""
        number = self._number(query)
        return None if number is None else self.get(number)

    def _number(self, query: Id) -> int | None:
        """The number of a query; None if the query is new."""
        number = self._numbers.get(query)
        return scalar(self._connection, "SELECT number FROM queries WHERE id = ?", query) if number is None else number

    def get(self, number: int) -> Served | None:
        """The agent of a query by number, from memory or the store; None if the query is new."""
        served = self._agents.get(number)
        if served is not None:
            self._agents.move_to_end(number)
            return served
        row = row_of(self._connection, "queries", "WHERE number = ?", number)
        if row is None:
            return None
        served = self._load(*row[:-1])
        self._keep(served)
        return served

    def _keep(self, served: Served) -> None:
        """Keep an agent in memory, and let go of the one that was used longest ago: the store has it."""
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

    def new(self, query: Id | None, capacity: int, n_features: int | None = None) -> Served:
        """Make the agent of a new query; for the query None, the agent of all queries."""
        number = 0 if query is None else self._n_queries
        served = self._make(number, query, capacity, n_features)
        self._insert_query(number, query, capacity, n_features)
        self._keep(served)
        return served

    def admit(self, served: Served, items: list[int], candidates: tuple[Id, ...], number: int) -> None:
        """Set the items that a query can show from an impression on.

        Args:
            served: the agent.
            items, candidates: their numbers and ids.
            number: of the impression.
        """
        for slot, item in served.new_slots(items):
            served.place(slot, item, number)
            insert(self._connection, "slots", served.number, number, slot, item)
        mask = served.mask_of(items)
        served.candidates, served.present = candidates, (items, mask, np.packbits(mask).tobytes())

    def save_all(self, seconds: float = math.inf) -> int:
        """Write the states of the agents in memory that have changed, first of those whose replay takes longest.

        Args:
            seconds: after which no other is begun.

        Returns:
            How many were written.
        """
        until, n = time.monotonic() + seconds, 0
        for served in sorted(self._agents.values(), key=lambda served: -served.events):
            if not served.events or time.monotonic() >= until:
                break
            n += self.write_state(served)
        return n

    def save_if_due(self, served: Served) -> None:
        """Write the state of an agent if it has changed by many events since the last snapshot."""
        if served.events >= SNAPSHOT + len(served.open):
            self.write_state(served)

    def _insert_query(self, number: int, query: Id | None, capacity: int | None, n_features: int | None) -> None:
        insert(self._connection, "queries", number, query, capacity, n_features, None)
        self._n_queries = max(self._n_queries, number + 1)

    def number_of(self, query: Id) -> int:
        """The number of a query that shares its agent with all others."""
        number = self._number(query)
        if number is None:
            number = self._n_queries
            self._insert_query(number, query, None, None)
        if len(self._numbers) < self._most:
            self._numbers[query] = number
        return number

    def write_state(self, served: Served) -> bool:
        """Write a snapshot, if the agent can be saved."""
        content = served.to_bytes()
        if content is None:
            return False
        self._store.touch()
        insert(self._connection, "snapshots", served.number, served.tick, content, verb="INSERT OR REPLACE")
        served.events = 0
        return True

    def _load(self, number: int, query: Id | None, capacity: int, n_features: int | None, guarded: int | None) -> Served:
        """An agent as the events of the store make it, from its last snapshot on."""
        served = self._make(number, query, capacity, n_features)
        served.guarded = guarded is not None
        row = row_of(self._connection, "snapshots", "WHERE query = ?", number)
        if row is not None:
            served.restore(*row[1:3])
        self._replay(served)
        return served

    def _replay(self, served: Served) -> None:
        """Let an agent meet the events that it has not seen, in their order."""
        since = served.tick
        read = partial(rows_of, self._connection)
        where, values = ("", []) if served.number == 0 else ("query = ? AND ", [served.number])
        rows = list(read("impressions", f"WHERE {where}number > ? ORDER BY number", *values, since))
        displays = list(rows)
        for number in [*served.open]:
            rows += [row for row in read("impressions", "WHERE number = ?", number) if (row[10] or 0) > since]
        learned = [row for row in rows if row[10] is not None]
        slots: dict[int, list[tuple[int, int]]] = {}
        for _, tick, slot, item, _ in read("slots", "WHERE query = ? AND since > ? ORDER BY since", served.number, since):
            slots.setdefault(tick, []).append((slot, item))
        clicks = {row[0]: clicks_in_time(self._connection, row[0]) for row in learned}
        events = sorted(
            [(row[0], True, row) for row in displays] + [(row[10], False, row) for row in learned], key=lambda each: each[:2]
        )
        for tick, is_shown, row in events:
            if is_shown:
                for slot, item in slots.pop(tick, ()):
                    served.place(slot, item, tick)
                self._show_again(served, row)
            else:
                served.learn(event_of(row, clicks[row[0]], self._recipe.worths), tick)
        if not served.recipe.sees_features and (mask := _last_mask(self._connection, served)) is not None:
            items = [served.items[slot] for slot in np.flatnonzero(mask).tolist()]
            served.present = (items, mask, np.packbits(mask).tobytes())

    def _show_again(self, served: Served, row: Sequence[Any]) -> None:
        """Show a list as it was shown."""
        number, _, _, source, share, items, candidates, features, *_ = row
        by_agent, numbers = source in (AGENT, BY_LOT), as_items(items).tolist()
        if source == INTERLEAVED and features is not None:
            served.propose(None, _matrix(features, len(as_items(candidates))))
        elif source == INTERLEAVED:
            served.propose(_mask(candidates, len(served.items)), None)
        if features is not None:
            rows = as_items(candidates).tolist()
            ranking = None if by_agent else [rows.index(item) for item in numbers]
            there = served.show(number, source, share, features=_matrix(features, len(rows)), ranking=ranking)
            again = [rows[row] for row in there]
        else:
            ranking = None if by_agent else [served.slot_of.get(item, -1) for item in numbers]
            there = served.show(number, source, share, mask=_mask(candidates, len(served.items)), ranking=ranking)
            again = [served.items[slot] for slot in there]
        if by_agent and again != numbers:
            what = "the agent" if served.id is None else f"the agent of {short(served.id)}"
            raise ReplayError(
                f"{what} showed another list in impression {number} than in its replay: the code of {served.recipe.name} has "
                "changed, or it does not draw from its seed alone; make a new store of the log, by "
                "Ranker.from_log(clickgym.offline.read_log(store), ...)"
            )
