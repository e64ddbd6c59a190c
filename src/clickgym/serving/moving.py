"""Move a store to another place, or to another agent."""

from __future__ import annotations

import os
import shutil
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_path
from ..core.files import draft_of, make_folder, remove_drafts
from ..offline.postgres import Address, is_address, viewing, without_password
from ..offline.stores import BEFORE, LOGGED, STORE, at_one_moment, open_store, reading
from . import postgres, sqlite
from .journal import Contents, Journal, Shown
from .memory import Agents
from .served import NEW_STORE, Recipe, Worths, renumbered, ticks_of
from .store import unserved


class Moved(NamedTuple):
    """What was moved.

    Attributes:
        store: the new one, without a password.
        agent: its agent.
        impressions, open: how many there are, and how many of them wait for clicks.
        queries, clicks: how many there are.
    """

    store: str
    agent: str
    impressions: int
    open: int
    queries: int
    clicks: int


def move(old: str | PathLike[str], new: str | PathLike[str], agent: Any = None) -> Moved:
    """Copy a store to a new one, from SQLite to PostgreSQL or back, or to another agent. The old one stays as it is.

    Items, queries, impressions with their ids, clicks, settings and the experiment go along. The new store is written whole, or
    not at all.

    Args:
        old: the store, a file or an address; no process may serve from it.
        new: a store that is not there yet, or holds nothing.
        agent: another agent, as for `Ranker`: it learns from all impressions, and its guard begins anew. None: the agents of
            the old store go along; their states are those that follow from the impressions.

    Returns:
        What was moved.

    Raises:
        ValueError: there is no store, a process serves from it, or the new one holds something; the agent cannot serve, or not
            learn from these impressions.
        FileError: one of them cannot be read or written.
    """
    with ExitStack() as stack:
        contents, name, recipe = stack.enter_context(_opened(old)), without_password(old), None
        if not contents.settings:
            raise ValueError(f"{name} holds no store of a clickgym.Ranker")
        if agent is not None:
            recipe = _recipe(agent, contents, name)
            contents = _from_before(contents, recipe.label)
        journal = stack.enter_context(_made(new))
        if contents.shared != journal.shared:
            contents = _with_ticks(contents, journal.shared)
        with journal.call(), journal.together():
            if journal.settings():
                raise ValueError(f"{journal.name} holds a store already; expected an empty place")
            journal.fill(contents)
            if recipe is not None:
                agents = Agents(journal, recipe, int(contents.settings["seed"]), 1)
                for query in contents.queries:
                    if query.capacity is not None and (served := agents.get(query.number)) is not None:
                        agents.write_state(served)
        with journal.view() as view:
            (seen,), (clicks, *_) = view.impressions("seen"), view.clicks()
        n_queries = sum(query.id is not None for query in contents.queries)
        return Moved(
            without_password(new), contents.settings["agent"], len(seen), int((seen < 0).sum()), n_queries, len(clicks)
        )


@contextmanager
def _opened(store: str | PathLike[str]) -> Iterator[Contents]:
    """What a store holds at one moment; nothing is written to it."""
    if is_address(store):
        with viewing(Address(store)) as view:
            yield postgres.contents_of(view, Address(store))
        return
    path = check_path("old", store)
    with unserved(path), reading(path), closing(open_store(path)) as connection, at_one_moment(connection):
        contents = sqlite.contents_of(connection)
        names = ("rows", "clicks", "snapshots", "beginnings")
        reads: dict[str, Any] = {name: _named(path, getattr(contents, name)) for name in names}
        yield contents._replace(**reads)


def _named(path: Path, read: Callable[[], Iterable[Any]]) -> Callable[[], Iterator[Any]]:
    """What reads a store; faults are told as those of this store, not of the one that is written."""

    def reads() -> Iterator[Any]:
        with reading(path):
            yield from read()

    return reads


@contextmanager
def _made(store: str | PathLike[str]) -> Iterator[Journal]:
    """A new journal; a file gets its name at the end."""
    if is_address(store):
        journal: Journal = postgres.PostgresJournal(str(store), "power")
        try:
            yield journal
        finally:
            journal.shut_down()
        return
    path = check_path("new", store)
    if path.exists() and (path.is_dir() or path.stat().st_size):
        raise ValueError(f"{path} is there already; expected a new file")
    remove_drafts(path.parent)
    folder = draft_of(path)
    make_folder(folder)
    try:
        file = folder / path.name
        journal = sqlite.SqliteJournal(file, "power", lambda: None)
        try:
            yield journal
        finally:
            journal.shut_down()
        os.replace(file, path)
    finally:
        shutil.rmtree(folder)


def _recipe(agent: Any, contents: Contents, old: str) -> Recipe:
    """Of an agent that can learn from the impressions of a store."""
    if contents.totals:
        raise ValueError(
            f"{old} was pruned, and another agent would have to learn from impressions that have left; {NEW_STORE}"
        )
    worths = {item.number: item.value for item in contents.items if item.value is not None}
    recipe = Recipe(agent, contents.settings["n_positions"], 0.95, valued="item_values" in contents.settings)
    if recipe.worths is not None:
        recipe.worths = Worths(worths.__getitem__)
    by_features = any(query.number == 0 for query in contents.queries)
    if contents.queries and recipe.sees_features != by_features:
        this, that = ("ranks by features", "does not") if recipe.sees_features else ("does not rank by features", "does")
        raise ValueError(f"{recipe.name} {this}, and the agent of {old} {that}")
    if not recipe.learns_from_any:
        raise ValueError(f"{recipe.name} learns from its displays only, and those of {old} are not its own")
    return recipe


def _from_before(contents: Contents, label: str) -> Contents:
    """For another agent, to which all lists are foreign."""

    def rows() -> Iterable[Shown]:
        return (row if row.source == LOGGED else row._replace(source=row.source | BEFORE) for row in contents.rows())

    return contents._replace(
        settings=contents.settings | {"agent": label},
        queries=[query._replace(guarded=None) for query in contents.queries],
        rows=rows,
        snapshots=lambda: (),
    )


def _events(contents: Contents, shared: bool) -> tuple[NDArray[np.int64], int]:
    """``(3, n)`` agent, tick and time of each event, in the order of agents and ticks; the largest number of an impression."""
    events, largest = array("q"), contents.totals.get(STORE, {}).get("number", 0)
    for agent, tick, _, state in contents.beginnings():  # ticks of events that have left stay in their order
        for each in {tick, *ticks_of(state)}:
            events.extend((agent, each, 0))
    for row in contents.rows():
        events.extend((row.agent, row.tick, row.shown))
        largest = max(largest, row.number)
        for end in {row.learned, row.ended if shared else row.learned}:
            if end is not None:
                events.extend((row.agent, end, row.closed or 0))
    columns = np.frombuffer(events, np.int64).reshape(-1, 3)
    columns = columns[np.lexsort((-columns[:, 2], columns[:, 1], columns[:, 0]))]
    is_new = (np.diff(columns[:, :2], axis=0, prepend=-1) != 0).any(axis=1)  # some of those that have left are there, too
    return columns[is_new].T.copy(), largest


def _with_ticks(contents: Contents, shared: bool) -> Contents:
    """With ticks as the other kind of journal has them: of each agent from 1 without a gap, or of all together.

    Where one tick is for all, it is the number of an impression, too: all are larger than those of the ids so far.
    """
    (of_agents, ticks, time), largest = _events(contents, shared)
    agents, begins, counts = np.unique(of_agents, return_index=True, return_counts=True)
    spans = {each: (begin, begin + n) for each, begin, n in zip(agents.tolist(), begins.tolist(), counts.tolist(), strict=True)}
    new = np.arange(len(ticks)) - np.repeat(begins, counts) + 1
    if not shared:
        moments = [np.maximum.accumulate(time[begin:end]) for begin, end in spans.values()]  # clocks of several machines differ
        new[np.lexsort((ticks, of_agents, np.concatenate(moments or [time])))] = largest + 1 + np.arange(len(ticks))
    total = np.zeros(len(time) + 1, np.uint64)
    total[1:] = np.cumsum(time.view(np.uint64))

    def last(agent: int, tick: int) -> int:
        """The last event of an agent until a tick, -1 before the first."""
        begin, end = spans.get(agent, (0, 0))
        place = begin + int(np.searchsorted(ticks[begin:end], tick, "right")) - 1
        return place if place >= begin else -1

    def at(agent: int, tick: int | None) -> Any:
        return tick if tick is None or (place := last(agent, tick)) < 0 else int(new[place])

    def version(agent: int, place: int) -> int:
        return (int(total[place + 1]) - int(total[spans[agent][0]])) & postgres.MASK

    def rows() -> Iterator[Shown]:
        for row in contents.rows():
            tick, learned, ended = (at(row.agent, each) for each in (row.tick, row.learned, row.ended))
            yield row._replace(tick=tick, learned=learned, ended=ended)

    def snapshots(read: Callable[[], Iterable[Any]]) -> Iterator[tuple[int, int, int, bytes]]:
        for agent, tick, _, state in read():
            place, content = last(agent, tick), renumbered(state, partial(at, agent))
            if content is not None and place >= 0:
                yield agent, int(new[place]), version(agent, place), content

    queries = []
    for query in contents.queries:
        end = spans.get(query.number, (0, 0))[1]
        now, moved = (int(new[end - 1]), version(query.number, end - 1)) if end else (0, 0)
        queries.append(query._replace(guarded=at(query.number, query.guarded), tick=now, version=moved))
    states: dict[str, Any] = {name: partial(snapshots, getattr(contents, name)) for name in ("snapshots", "beginnings")}
    return contents._replace(shared=shared, queries=queries, rows=rows, **states)
