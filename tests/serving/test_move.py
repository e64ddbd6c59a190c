"""``clickgym move``: what goes along from store to store, what the agents are then, kills, and bad input."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from contextlib import suppress
from zlib import crc32

import numpy as np
import pytest
from postgres_server import PASSWORD
from service_kills import change, play, states_that_differ
from test_store import Mine, of_version_2_0
from workers import gaps

from clickgym import Ranker
from clickgym.command_line import main
from clickgym.offline import read_log
from clickgym.offline.postgres import is_address
from clickgym.offline.stores import sum_of
from clickgym.serving.moving import move
from clickgym.serving.postgres import PostgresJournal
from clickgym.serving.sqlite import SqliteJournal

BASE = {
    "n_positions": 2,
    "production": lambda query, items: items,
    "production_share": 0.3,
    "by": "team_draft",
    "interleaved_share": 0.3,
    "capacity": 7,
}
SETTINGS = BASE | {"item_values": {item: 1.0 + item for item in range(9)}, "update_every": 3}
FEATURES = np.random.default_rng(1).random((6, 3))


def made(store, agent="CascadeTS", **settings):
    return Ranker(agent, **{**SETTINGS, "seed": 0, "store": store, **settings})


def told(ranker):
    """What must be the same in the old and in the new store."""
    report = ranker.report().to_dict()
    return {name: value for name, value in report.items() if name != "time"}, sessions(ranker.log())


def sessions(log):
    """In PostgreSQL their order is that of their times, in a file that in which they were shown."""
    labels, queries = np.array([*log.item_labels, ""])[log.items], np.array(log.query_labels)[log.queries]
    columns = [log.times, queries, labels, log.clicks, *([] if log.values is None else [log.values])]
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def learned(ranker, query="q0"):
    """The state of an agent's own, without ticks."""
    served = ranker._agents.of_query(query) if not ranker._recipe.sees_features else ranker._agents.get(0)
    return [{name: np.asarray(value).tolist() for name, value in vars(served.agent.state).items()} if hasattr(
        served.agent.state, "__dict__") else [np.asarray(value).tolist() for value in served.agent.state],
        [ranker._items.ids.get(item) for item in served.items], len(served.open), served.guarded]  # fmt: skip


@pytest.fixture(params=["to PostgreSQL", "back", "in SQLite", "in PostgreSQL"])
def places(request, tmp_path, server):
    """An old store and the place of a new one."""
    n = request.node.name
    file, schema = tmp_path / "old.db", f"move_{crc32(n.encode())}"
    addresses = [server.address(schema=f"{schema}_{i}") for i in range(2)]
    return {
        "to PostgreSQL": (file, addresses[0]), "back": (addresses[0], file), "in SQLite": (file, tmp_path / "new.db"),
        "in PostgreSQL": (addresses[0], addresses[1]),
    }[request.param]  # fmt: skip


@pytest.mark.parametrize("snapshot", [False, True])
def test_all_goes_along_and_agents_are_what_their_replay_makes_of_them(places, snapshot):
    """With open impressions, closed ones that are not learned, late clicks, items that lost their slots."""
    old, new = places
    with made(old) as ranker:
        shown = play(ranker, 80)
        if snapshot:
            ranker.snapshot()
            shown = play(ranker, 5, 1, shown)
        before, states = told(ranker), [learned(ranker, f"q{i}") for i in range(3)]
        if not snapshot and not ranker._journal.shared:  # leave without writing states
            ranker._agents.save_all = lambda *_: 0
    moved = move(old, new)
    assert (moved.impressions, moved.queries, moved.agent) == (len(shown), 3, "CascadeTS")
    with made(new) as ranker:
        assert told(ranker) == before
        assert [learned(ranker, f"q{i}") for i in range(3)] == states
        assert states_that_differ(ranker) == []
        for impression in shown:  # ids stay: of open, closed and learned impressions
            row = ranker._impression(impression.id)
            assert [ranker._items.ids[item] for item in row.items] == impression.items
        shown = play(ranker, 40, 2, shown)
        ranker.update()
        assert states_that_differ(ranker) == []
        assert not ranker._journal.shared or gaps(ranker) == []
        assert len(ranker.log()) > len(before[1])
    with made(old) as ranker:
        assert told(ranker) == before


def test_an_agent_of_all_queries_goes_along(places):
    old, new = places
    with made(old, "LinearTS") as ranker:
        shown = play(ranker, 40, features=FEATURES)
        before, state = told(ranker), learned(ranker)
    move(old, new)
    with made(new, "LinearTS") as ranker:
        assert (told(ranker), learned(ranker)) == (before, state)
        play(ranker, 20, 1, shown, features=FEATURES)
        assert states_that_differ(ranker) == []


def test_there_and_back_is_the_store_that_it_was(tmp_path, address):
    """What was shown meanwhile has an id there, too; the next lists are those that the first store would show."""
    files = [tmp_path / f"{i}.db" for i in range(3)]
    with made(files[0]) as ranker:
        shown = play(ranker, 40)
    move(files[0], address)
    with made(address) as ranker:
        shown = play(ranker, 20, 1, shown)
        before = told(ranker)
    move(address, files[1])
    with made(files[1]) as ranker:
        shown = play(ranker, 20, 2, shown)
        assert states_that_differ(ranker) == []
    move(files[1], files[2])
    with made(files[2]) as ranker:
        for impression in shown:
            row = ranker._impression(impression.id)
            assert [ranker._items.ids[item] for item in row.items] == impression.items
        assert ranker.report().impressions == 80 > before[0]["impressions"]
        assert states_that_differ(ranker) == []


def test_another_agent_learns_from_the_log(places):
    """It knows at once which item is clicked; the report counts what was; its guard begins anew."""
    old, new = places
    with made(old, "CascadeUCB1") as ranker:
        rng = random.Random(0)
        shown = [ranker.rank("q", rng.sample(range(3, 9), 6)) for _ in range(200)]
        for impression in shown[:-10]:
            if 8 in impression.items:
                ranker.click(impression.id, 8)
            ranker.close(impression.id)
        ranker.update()
        before = told(ranker)
    move(old, new, "PBMTS:examination=[1,1]")
    with pytest.raises(ValueError, match="was made with agent = "):
        made(new, "CascadeUCB1")
    with made(new, "PBMTS:examination=[1,1]") as ranker:
        assert told(ranker) == before
        ranker.rank("q", [*range(3, 9)])
        assert ranker.best("q")[0] == 8
        assert ranker._agents.of_query("q").trial.n == 0
        for impression in shown[-10:]:
            assert ranker.close(impression.id)
        ranker.update()
        assert states_that_differ(ranker) == []
        assert ranker.report().open == 1


def test_a_store_of_a_retired_agent_and_one_whose_code_has_changed_move_to_another(tmp_path, monkeypatch, warnings_of_service):
    plain = {"by": None, "item_values": None, "capacity": None}
    for name, agent in (("retired", "CascadeTS"), ("changed", Mine)):
        old, new = tmp_path / f"{name}.db", tmp_path / f"{name}-new.db"
        with made(old, agent, **plain) as ranker:
            for _ in range(5):
                ranker.close(ranker.rank("q", ["a", "b", "c"]).id)
        if name == "retired":
            values = "UBMTS", sum_of("agent", "UBMTS")
            change(old, "UPDATE settings SET value = ?, checksum = ? WHERE name = 'agent'", *values)
        else:
            monkeypatch.setattr(Mine, "rank", lambda self, observation=None, candidates=None: np.array([1, 0]))
            with made(old, agent, **plain) as ranker, pytest.raises(ValueError, match="showed another list"):
                ranker.rank("q")
        move(old, new, agent="MixTS")
        with made(new, "MixTS", **plain) as ranker:
            assert ranker.rank("q").items
            assert ranker.report().impressions == 6
            assert states_that_differ(ranker) == []


@pytest.mark.parametrize("name", ["killed", "by_features", "of_a_log", "shop"])
def test_stores_of_2_0_move_and_stay_as_they_are(tmp_path, address, name):
    of_version_2_0(tmp_path)
    old = tmp_path / f"{name}.sqlite"
    content, log = old.read_bytes(), sessions(read_log(old))
    move(old, address)
    assert old.read_bytes() == content
    assert sessions(read_log(address)) == log
    settings = json.loads((tmp_path / "then.json").read_text())[name]["settings"]
    with Ranker(store=address, clock=lambda: 1.7e9, **settings) as ranker:
        assert states_that_differ(ranker) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_kill_in_the_middle_leaves_the_old_store_as_it_was_and_no_half_new_one(places, monkeypatch):
    """Whenever a part of the new store is written, and at moments."""
    old, new = places
    with made(old) as ranker:
        play(ranker, 60)
        before = told(ranker)
    journal, parts = (PostgresJournal, ["_copy"]) if is_address(new) else (SqliteJournal, ["show", "shut_down"])
    for name in ("call", "fill", *parts, None, None, None):
        if (pid := os.fork()) == 0:
            if name is not None:
                monkeypatch.setattr(journal, name, lambda *_: os._exit(9))
            with suppress(BaseException):
                move(old, new)
            os._exit(0)
        if name is None:
            time.sleep(0.02 + random.random() / 10)
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        assert name is None or not os.path.exists(new)
        with made(old) as ranker:
            assert told(ranker) == before
    with suppress(ValueError):  # it may be there, and is whole then
        move(old, new)
    with made(new) as ranker:
        assert told(ranker) == before


def test_what_is_said(tmp_path, address, capsys):
    old = tmp_path / "old.db"
    with made(old) as ranker:
        play(ranker, 10)
        assert main(["move", str(old), str(tmp_path / "new.db")]) == 2
        assert "is served by another process or Ranker" in capsys.readouterr().err
    assert main(["move", str(old), address]) == 0
    said = capsys.readouterr().out
    assert "10 impressions of 3 queries" in " ".join(said.split())
    assert PASSWORD not in said
    other = tmp_path / "other.db"
    for words, error in (
        ([str(tmp_path / "none.db"), str(other)], "none.db"),
        ([str(old), str(old)], "old.db is there already; expected a new file"),
        ([str(old), address], "holds a store already; expected an empty place"),
        ([str(old), str(other), "--agent", "LinearTS"], "LinearTS ranks by features, and the agent of"),
        ([str(old), str(other), "--agent", "TopRank:horizon=1000"], "TopRank learns from its displays only"),
        ([str(old), str(other), "--agent", "Nobody"], "Nobody"),
        ([str(old), str(other), "--agent", "UBMTS"], "UBMTS"),
    ):
        assert main(["move", *words]) == 2
        said = capsys.readouterr().err
        assert error in " ".join(said.split())
        assert PASSWORD not in said
    change(old, "UPDATE impressions SET seen = 99 WHERE number = (SELECT max(number) FROM impressions)")
    assert main(["move", str(old), str(other)]) == 2
    assert "old.db is damaged (the checksum of a row of impressions does not match)" in " ".join(
        capsys.readouterr().err.split()
    )
    assert {path.name for path in tmp_path.iterdir()} <= {"old.db", "old.db-shm", "old.db-wal"}
