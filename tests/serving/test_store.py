"""The store: what it survives, who may write to it, and what is said where it cannot be written."""

import ast
import inspect
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import store_damage
from service_kills import change, faults, kill, states_that_differ, stop_and_copy
from workers import at_once

import clickgym
from clickgym import Ranker
from clickgym.agents import Agent
from clickgym.command_line import main
from clickgym.offline import read_log
from clickgym.offline.stores import VERSION, check_wal
from clickgym.serving.served import ReplayError

on_both = pytest.mark.usefixtures("both")
posix = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")
ABC = ["a", "b", "c"]


def made(store, **settings):
    return Ranker(store=store, n_positions=2, **settings)


def python(code, *arguments):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100)


# ----------------------------------------------------------------------------------------------------- what it survives


@posix
def test_a_killed_process_loses_nothing_that_it_acknowledged(tmp_path):
    store, said = tmp_path / "s.db", []
    for seed, seconds in ((0, 0.05), (1, 0.3)):
        said += kill(store, seed, seconds)
    assert {kind for kind, *_ in said} == {"R", "c", "C", "X"}
    assert faults(store, said) == []
    change(store, "DELETE FROM clicks WHERE late")  # the check sees what is missing
    assert any("is lost" in fault for fault in faults(store, said))
    change(store, "DELETE FROM clicks")
    with pytest.raises(ReplayError, match="showed another list"):
        faults(store, said)


@posix
@pytest.mark.slow
def test_power_that_is_lost_takes_nothing_from_a_store_that_waits_for_the_disk(tmp_path):
    for seed in range(3):
        store, copy = tmp_path / f"s{seed}.db", tmp_path / f"copy{seed}.db"
        said = stop_and_copy(store, copy, seed, 0.5)
        assert sum(kind != "c" for kind, *_ in said) > 10
        assert faults(copy, said) == []


def test_durable_says_whether_calls_wait_for_the_disk(tmp_path):
    for durable, synchronous in (("kill", 1), ("power", 2)):
        with made(tmp_path / durable, durable=durable) as ranker:
            assert ranker._journal.connection.execute("PRAGMA synchronous").fetchone() == (synchronous,)
            assert ranker._journal.connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


FULL = """
import resource, sys
from clickgym import Ranker
ranker = Ranker(store=sys.argv[1], n_positions=2, seed=0)
shown = ranker.rank("q", ["a", "b", "c"])
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
clicks, errors = [], []
while len(errors) < 5:
    try:
        shown = ranker.rank("q")
        ranker.click(shown.id, position=1)
        clicks.append(shown.id)
    except OSError as error:
        errors.append(str(error))
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
n = ranker._journal.connection.execute("SELECT count(*) FROM clicks").fetchone()[0]
print(*sorted(set(errors)), sep="\\n")
print(len(clicks), n, all(not ranker.click(each, position=1) for each in clicks), ranker.click(clicks[-1], position=2))
"""


@posix
def test_a_full_disk_is_said_in_a_line_and_loses_nothing(tmp_path):
    process = python(FULL, tmp_path / "s.db")
    message, last = process.stdout.splitlines()
    assert message.startswith(f"{tmp_path / 's.db'} cannot be written: ")
    assert message.endswith("the disk may be full, or a limit of the system reached; nothing of this call was stored")
    n_clicks, n_stored, known, goes_on = last.split()
    assert int(n_clicks) > 5
    assert (n_clicks, known, goes_on) == (n_stored, "True", "True")
    assert process.stderr == ""


@posix
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root mounts file systems")
@pytest.mark.slow
def test_a_full_file_system_loses_nothing(tmp_path):
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", tmp_path], check=False).returncode:
        pytest.skip("no right to mount")
    try:
        ranker, clicks = made(tmp_path / "s.db", seed=0), []

        def serve():
            while True:
                shown = ranker.rank("q", ABC)
                ranker.click(shown.id, position=1)
                clicks.append(shown.id)

        with pytest.raises(OSError, match="the disk is full"):
            serve()
        with pytest.raises(OSError, match="the disk is full"):
            ranker.rank("q")
        subprocess.run(["mount", "-o", "remount,size=4m", tmp_path], check=True)
        assert not any(ranker.click(each, position=1) for each in clicks)
        ranker.shut_down()
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_what_could_not_be_written_is_not_remembered(tmp_path, monkeypatch):
    """An error in mid-call: agents, items and queries are those of the store."""
    ranker = made(tmp_path / "s.db", seed=0)
    ranker.rank("q", ABC)
    before = [*ranker._journal.connection.iterdump()]
    with monkeypatch.context() as patch:
        patch.setattr(ranker._journal, "show", lambda *arguments: 1 / 0)
        for query, items in (("q", ABC), ("new", ["x", "y"]), ("q", ["z", "a"])):
            with pytest.raises(ZeroDivisionError):
                ranker.rank(query, items)
    assert [*ranker._journal.connection.iterdump()] == before
    twin = made(tmp_path / "t.db", seed=0)
    twin.rank("q", ABC)
    for query, items in (("q", ABC), ("new", ["x", "y"]), ("q", ["z", "a"])):
        assert ranker.rank(query, items).items == twin.rank(query, items).items


# ------------------------------------------------------------------------------------------------------- who may write


def test_a_store_has_one_writer(tmp_path):
    store = tmp_path / "s.db"
    ranker = made(store)
    message = f"{store} is served by another process or Ranker; a store has one writer"
    with pytest.raises(ValueError, match="is served by another process or Ranker"):
        made(store)
    code = f"from clickgym import Ranker; Ranker(store={str(store)!r}, n_positions=2)"
    assert python(code).stderr.splitlines()[-1] == f"ValueError: {message}"
    shown = ranker.rank("q", ABC)
    ranker.close(shown.id)
    assert len(read_log(store)) == 1  # others may read
    ranker.shut_down()
    made(store).shut_down()
    for call in (lambda: ranker.rank("q"), ranker.report, ranker.log, ranker.shut_down):
        with pytest.raises(ValueError, match="the Ranker was shut down"):
            call()


@posix
def test_who_reads_a_store_leaves_the_locks_of_the_server_alone(tmp_path):
    """Else another program that closes the file would take it for its own, and tidy up the log of SQLite that is in use."""
    store = tmp_path / "s.db"
    ranker = made(store, seed=0)
    for _ in range(5):
        ranker.close(ranker.rank("q", ABC).id)
    ranker.report()
    assert len(read_log(store)) == len(ranker.log()) == 5
    code = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); print(*c.execute('SELECT count(*) FROM clicks')); c.close()"
    assert python(code, store).stdout == "(0,)\n"
    assert Path(f"{store}-wal").exists()
    ranker.close(ranker.rank("q").id)
    assert len(read_log(store)) == 6


@posix
def test_a_fork_is_refused(tmp_path):
    ranker = made(tmp_path / "s.db")
    ranker.rank("q", ABC)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            ranker.rank("q")
        except ValueError as error:
            os.write(writer, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert (
        os.read(reader, 1000).decode()
        == f"the process {child} was forked from the one that serves; make the Ranker after the fork"
    )
    assert ranker.rank("q").items


@pytest.mark.parametrize("durable", ["kill", "power"])
def test_threads_may_call_at_once(tmp_path, durable):
    ranker = made(tmp_path / "s.db", durable=durable, seed=0)
    commits, answers = [], []
    ranker._journal.connection.set_trace_callback(lambda text: commits.append(1) if text == "COMMIT" else None)

    def serve(name):
        for i in range(15):
            shown = ranker.rank(f"{name}-{i % 2}", ABC)
            for _ in range(2):
                answers.append(ranker.click(shown.id, shown.items[0]))
            with pytest.raises(ValueError, match="there is no impression"):
                ranker.click("nope", position=1)
            ranker.close(shown.id)

    at_once(serve, range(8))
    assert (answers.count(True), answers.count(False)) == (120, 120)
    assert len(commits) <= 480 if durable == "kill" else len(commits) < 300  # joined
    ranker._journal.connection.set_trace_callback(None)
    assert (ranker.report().impressions, ranker.report().open) == (120, 0)
    assert states_that_differ(ranker) == []


def test_an_error_of_one_thread_is_told_to_those_whose_calls_it_undid(tmp_path, monkeypatch):
    """Calls of several threads wait for one commit; one that fails in between takes the others with it, and they know."""
    ranker = made(tmp_path / "s.db", durable="power", seed=0)
    shown = [ranker.rank("q", ABC) for _ in range(40)]
    told, stored = [], []
    plain = ranker._catch_up

    def sometimes(now):
        if random.random() < 0.2:
            raise OSError("no")
        plain(now)

    monkeypatch.setattr(ranker, "_catch_up", sometimes)

    def click(impressions):
        for each in impressions:
            try:
                ranker.click(each.id, position=1)
                stored.append(each.id)
            except OSError:
                told.append(each.id)

    at_once(click, [shown[i::8] for i in range(8)])
    monkeypatch.setattr(ranker, "_catch_up", plain)
    assert len(told) + len(stored) == 40
    assert told
    assert not any(ranker.click(each, position=1) for each in stored)
    assert all(ranker.click(each, position=1) for each in told)


HELD = """
import sys
from clickgym import Ranker
for path in sys.argv[1:]:
    try:
        Ranker(store=path, n_positions=2)
    except ValueError as error:
        print(error)
"""


def test_the_lock_is_on_the_file_itself_whatever_lies_beside_it(tmp_path):
    store = tmp_path / "s.db"
    ranker = made(store, seed=0)
    ranker.rank("q", ABC)
    assert {path.name for path in tmp_path.iterdir()} == {"s.db", "s.db-wal", "s.db-shm"}
    for ending in ("-wal", "-shm"):
        Path(f"{store}{ending}").unlink()
    names = [store, tmp_path / "link.db", tmp_path / "other name.db"]
    names[1].symlink_to(store)
    os.link(store, names[2])
    refusals = [f"{name} is served by another process or Ranker; a store has one writer" for name in names]
    assert python(HELD, *names).stdout.splitlines() == refusals
    for name, refusal in zip(names, refusals, strict=True):
        with pytest.raises(ValueError, match=re.escape(refusal)):
            made(name)
    assert python(HELD, store).stdout.splitlines() == refusals[:1]
    assert made(tmp_path / "t.db").rank("q", ABC)  # another store


@posix
def test_a_file_that_is_read_and_copied_in_the_same_process_stays_locked(tmp_path):
    store = tmp_path / "s.db"
    ranker = made(store, seed=0)
    ranker.close(ranker.rank("q", ABC).id)
    if sys.platform == "linux":  # elsewhere this releases the locks of SQLite, too
        shutil.copy(store, tmp_path / "copy.db")
    assert len(read_log(store)) == 1
    with sqlite3.connect(store) as source, sqlite3.connect(tmp_path / "backup.db") as backup:
        source.backup(backup)
    source.close()
    backup.close()
    assert "is served by another process" in python(HELD, store).stdout
    with made(tmp_path / "backup.db") as other:  # a copy is another store
        assert other.rank("q").items
    assert ranker.rank("q").items


@posix
def test_the_child_of_a_fork_does_not_keep_the_lock_of_its_parent(tmp_path):
    code = """
import os, sys, time
from clickgym import Ranker
ranker = Ranker(store=sys.argv[1], n_positions=2)
ranker.rank("q", ["a", "b"])
if not os.fork():
    os.close(1), os.close(2)
    time.sleep(60)
print(os.getpid(), flush=True)
os.kill(os.getpid(), 9)
"""
    process = subprocess.Popen([sys.executable, "-c", code, tmp_path / "s.db"], stdout=subprocess.PIPE, start_new_session=True)
    process.wait(100)
    try:
        os.killpg(process.pid, 0)  # the child lives
        made(tmp_path / "s.db").shut_down()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()


@posix
def test_a_store_that_was_moved_while_it_is_served_is_noticed(tmp_path, monkeypatch):
    store = tmp_path / "s.db"
    ranker = made(store)
    ranker.rank("q", ABC)
    monkeypatch.setattr(clickgym.serving.store, "LOOKS", 0.0)
    ranker.rank("q")
    store.rename(tmp_path / "t.db")
    for there in (False, True):
        if there:
            store.touch()
        with pytest.raises(OSError, match=r"s\.db was moved or replaced while it was served; nothing of this call was stored"):
            ranker.rank("q")
    (tmp_path / "t.db").replace(store)
    assert ranker.rank("q").items


# ------------------------------------------------------------------------------------------------------ stores of 2.0


def of_version_2_0(folder):
    """A store that clickgym 2.0 wrote, and how it is opened."""
    zipfile.ZipFile(Path(__file__).parents[1] / "data" / "v2.0" / "stores" / "stores.zip").extractall(folder)
    settings = json.loads((folder / "then.json").read_text())["killed"]["settings"]
    return folder / "killed.sqlite", {"clock": lambda: 1.7e9, **settings}


def test_a_store_of_2_0_is_migrated_after_a_copy(tmp_path, warnings_of_service):
    store, settings = of_version_2_0(tmp_path)
    log = read_log(store)
    with Ranker(store=store, **settings) as ranker:
        assert_same(log, ranker.log())
        shown = ranker.rank("q", ABC)
        assert ranker.click(shown.id, position=1)
    copy = tmp_path / "killed.sqlite.v1"
    assert warnings_of_service == [f"{store} was of clickgym 2.0 and now is of version 3; {copy} is a copy of before"]
    assert_same(log, read_log(copy))
    for file, version in ((copy, 1), (store, 3)):
        assert change(file, "PRAGMA user_version") == [(version,)]
        assert change(file, "PRAGMA integrity_check") == [("ok",)]
    Ranker(store=store, **settings).shut_down()
    assert len(warnings_of_service) == 1


def test_snapshots_of_2_0_are_used(tmp_path, monkeypatch):
    """Else each agent would be replayed from its first impression."""
    store, settings = of_version_2_0(tmp_path)
    restored, plain = [], clickgym.serving.served.Served.restore

    def restore(served, *snapshot):
        restored.append(not plain(served, *snapshot))
        return ""

    monkeypatch.setattr(clickgym.serving.served.Served, "restore", restore)
    with Ranker(store=store, **settings) as ranker:
        for each in ranker.report().traffic:
            ranker.best(each.query)
    assert restored
    assert all(restored)


def assert_same(log, other):
    for name in ("items", "clicks", "queries", "times"):
        assert getattr(log, name).tolist() == getattr(other, name).tolist(), name


def test_a_store_of_2_0_that_is_open_elsewhere_is_not_migrated(tmp_path):
    store, settings = of_version_2_0(tmp_path)
    with sqlite3.connect(store) as other:  # clickgym 2.0 locked another file
        other.execute("SELECT count(*) FROM items").fetchone()
        with pytest.raises(ValueError, match=r"is of clickgym 2\.0, and open elsewhere; close it there"):
            Ranker(store=store, **settings)
    other.close()
    Ranker(store=store, **settings).shut_down()


KILLED = """
import os, sqlite3, sys
from clickgym import Ranker
from clickgym.serving import store
class Connection(sqlite3.Connection):
    def execute(self, statement, *values):
        if statement.startswith(sys.argv[2]):
            os.kill(os.getpid(), 9)
        return super().execute(statement, *values)
    def backup(self, *given):
        if sys.argv[2] == "copy":
            os.kill(os.getpid(), 9)
        return super().backup(*given)
plain = sqlite3.connect
store.sqlite3.connect = lambda *given, **named: plain(*given, factory=Connection, **named)
Ranker(store=sys.argv[1], n_positions=3, agent="UniRank", seed=2)
"""


@posix
@pytest.mark.parametrize("moment", ["copy", "BEGIN EXCLUSIVE", "UPDATE impressions", "COMMIT"])
def test_a_kill_in_the_middle_of_a_migration_leaves_a_store_that_opens(tmp_path, moment):
    store, settings = of_version_2_0(tmp_path)
    log = read_log(store)
    assert python(KILLED, store, moment).returncode == -signal.SIGKILL
    assert_same(log, read_log(store))
    with Ranker(store=store, **settings) as ranker:
        assert_same(log, ranker.log())
    assert_same(log, read_log(tmp_path / "killed.sqlite.v1"))


# -------------------------------------------------------------------------------------------------------------- damage


def test_damaged_stores_are_refused_in_a_line_or_equal(tmp_path):
    """Bits, pages and whole ends of a store and of its write-ahead log; `benchmarks/reliability/damaged_stores.py` has more."""
    outcomes = set()
    for first, (name, store) in enumerate(store_damage.make(tmp_path, 60).items()):
        (tmp_path / name).mkdir()
        for file in [store, *filter(Path.exists, [Path(f"{store}-wal")])]:
            shutil.copy(file, tmp_path / name)
        then = store_damage.facts(tmp_path / name / store.name)
        for seed in range(12 * first, 12 * first + 12):
            outcome, what = store_damage.damaged(store, then, tmp_path, seed)
            assert outcome in ("refused", "equal"), what
            outcomes.add(outcome)
    assert outcomes == {"refused", "equal"}


ROWS = {
    "settings": "UPDATE settings SET value = 'x' WHERE name = 'secret'",
    "items": "UPDATE items SET id = 'x' WHERE number = 0",
    "queries": "UPDATE queries SET guarded = 3",
    "slots": "UPDATE slots SET item = 2 - item",
    "impressions": "UPDATE impressions SET features = 0 WHERE number = 1",
    "clicks": "UPDATE clicks SET late = 1 - late",
    "snapshots": "UPDATE snapshots SET tick = tick - 1",
}


@pytest.mark.parametrize(("table", "statement"), ROWS.items())
def test_every_row_that_is_read_has_a_checksum(tmp_path, table, statement):
    """Also where SQLite sees nothing wrong."""
    store = tmp_path / "s.db"
    with made(store, seed=0) as ranker:
        for _ in range(3):
            shown = ranker.rank("q", ABC)
            ranker.click(shown.id, position=1)
        ranker.close(shown.id)
        if table != "snapshots":
            ranker._agents._agents.clear()  # so that there is no snapshot
    change(store, statement)

    def use():
        with made(store) as ranker:
            ranker.report()
            ranker.rank("q")

    with pytest.raises(ValueError, match=rf"s\.db is damaged \(the checksum of a row of {table} does not match\)"):
        use()
    if table in ("settings", "items", "queries", "impressions", "clicks"):
        with pytest.raises(ValueError, match=rf"a row of {table} does not match"):
            read_log(store)


@posix
def test_a_write_ahead_log_that_lost_its_end_is_refused_unless_the_machine_was_restarted(tmp_path):
    stores = store_damage.make(tmp_path, 60)
    store, wal = stores["killed"], Path(f"{stores['killed']}-wal")
    content = wal.read_bytes()
    for damaged, what in (
        (content[:-1000], "ends in the middle of a frame"),
        (content[: -4120 + 5], "ends in the middle of a frame"),
        (content[:20], "has a damaged head"),
        (bytes(32) + content[32:], "has a damaged head"),
        (content[: 32 + 100], "ends in the middle of a frame"),
        (content[:32] + bytes(4120) + content[32 + 4120 :], "is damaged in frame 1 of"),
        (content[:-1] + bytes([content[-1] ^ 1]), "is damaged in frame"),
    ):
        wal.write_bytes(damaged)
        for call in (read_log, lambda path: Ranker(store=path, **store_damage.SETTINGS)):
            with pytest.raises(ValueError, match=rf"killed\.db is damaged \(killed\.db-wal {what}"):
                call(store)
    wal.write_bytes(content[: -4120 + 24])  # killed between the two writes of the last frame
    read_log(store)
    wal.write_bytes(content[: 32 + 24])  # or of the first one
    check_wal(store)
    wal.write_bytes(content[:-1000])
    os.utime(wal, (1e9, 1e9))  # before the machine started: power was lost
    Ranker(store=store, **store_damage.SETTINGS).shut_down()


def test_an_empty_file_is_a_new_store_unless_a_write_ahead_log_lies_beside_it(tmp_path):
    (tmp_path / "new.db").touch()
    made(tmp_path / "new.db").shut_down()
    store = store_damage.make(tmp_path, 60)["killed"]
    store.write_bytes(b"")
    with pytest.raises(ValueError, match=r"killed\.db-wal belongs to a store that is empty now"):
        made(store)


# ----------------------------------------------------------------------------------------------- what is said of files


def test_a_store_of_another_version_says_so(tmp_path):
    store = tmp_path / "s.db"
    made(store).shut_down()
    change(store, f"PRAGMA user_version = {VERSION + 6}")
    for call in (made, read_log):
        with pytest.raises(ValueError, match="has version 9 of the store's tables; this clickgym reads versions 1 to 4"):
            call(store)


def test_other_files_are_refused_and_stay(tmp_path):
    text, database = tmp_path / "text.db", tmp_path / "other.db"
    text.write_text("session,query\n" * 500)
    change(database, "CREATE TABLE mine (a)")
    before = text.read_bytes(), database.read_bytes()
    with pytest.raises(ValueError, match=r"text\.db is no store of a clickgym\.Ranker, or damaged"):
        made(text)
    for call in (made, read_log):
        with pytest.raises(ValueError, match=r"other\.db is an SQLite file, but no store of a clickgym\.Ranker"):
            call(database)
    assert (text.read_bytes(), database.read_bytes()) == before
    with pytest.raises(OSError, match="cannot be opened"):
        made(tmp_path)
    with pytest.raises(OSError, match="cannot be opened"):
        made(tmp_path / "no" / "s.db")


def test_a_damaged_store_is_named(tmp_path):
    store = tmp_path / "s.db"
    with made(store) as ranker:
        ranker.rank("q", ABC)
    content = bytearray(store.read_bytes())
    content[100:] = random.Random(0).randbytes(len(content) - 100)
    store.write_bytes(content)
    with pytest.raises(ValueError, match=r"s\.db is damaged \(.*\); restore a copy of it"):
        made(store)


@posix
def test_a_store_that_may_only_be_read_is_refused(tmp_path):
    store = tmp_path / "s.db"
    with made(store) as ranker:
        ranker.close(ranker.rank("q", ABC).id)
    store.chmod(0o400)
    if os.access(store, os.W_OK):
        pytest.skip("root may write everywhere")
    with pytest.raises(OSError, match="it may only be read"):
        made(store)


@on_both
def test_other_settings_than_those_of_the_store_are_refused(tmp_path):
    store = tmp_path / "s.db"
    made(store, seed=3).shut_down()
    for settings, why in (
        ({"agent": "PBMHB"}, "was made with agent = CascadeTS, not PBMHB; move the store to that agent, by clickgym move"),
        ({"agent": "CascadeTS:feedback=first_click"}, "not CascadeTS:feedback=first_click; move the store to that agent"),
        ({"seed": 4}, "was made with seed = 3, not 4; make a new store of its log"),
    ):
        with pytest.raises(ValueError, match=why):
            made(store, **settings)
    with pytest.raises(ValueError, match="was made with n_positions = 2, not 3"):
        Ranker(store=store, n_positions=3)
    assert made(store).seed == 3


class Mine(Agent):
    """An agent of one's own."""

    learns_from = "any list"

    def __init__(self, n_items, n_positions, *, seed=None):
        self.n_positions = n_positions

    def rank(self, observation, candidates=None):
        return np.flatnonzero(candidates)[: self.n_positions]

    def update(self, observation, ranking, clicks, reward, *, display=None, void=None):
        pass


@on_both
def test_an_agent_whose_code_has_changed_is_not_replayed_wrongly(tmp_path, monkeypatch, warnings_of_service):
    with made(tmp_path / "s.db", agent=Mine) as ranker:
        assert ranker.rank("q", ABC).items == ["a", "b"]
    with made(tmp_path / "s.db", agent=Mine, update_every=2) as ranker:
        shown = ranker.rank("q", ABC)
        assert shown.items == ["a", "b"]
        ranker.close(shown.id)
    monkeypatch.setattr(Mine, "rank", lambda agent, observation, candidates: np.flatnonzero(candidates)[::-1][:2])
    ranker = made(tmp_path / "s.db", agent=Mine)
    with pytest.raises(
        ValueError, match="the agent of 'q' showed another list in impression 1 than in its replay: the code of"
    ):
        ranker.rank("q")
    new = ranker.rank("new", ABC)  # all others are served
    assert new.items == ["c", "b"]
    assert ranker.click(shown.id, "a")
    assert ranker.close(new.id)
    assert "the agent of 'q' showed another list" in warnings_of_service[0]
    assert len(ranker._journal.waiting()) + ranker.report().open == 2


# ------------------------------------------------------------------------------------------------------------- the log


def test_commands_read_a_store_while_it_is_served(tmp_path, capsys):
    ranker, rng = made(tmp_path / "s.db", seed=0), random.Random(0)
    for _ in range(200):
        shown = ranker.rank(rng.choice("pq"), ABC)
        for item in shown.items:
            if rng.random() < {"a": 0.6, "b": 0.3, "c": 0.1}[item]:
                ranker.click(shown.id, item)
        ranker.close(shown.id)
    assert main(["fit", str(tmp_path / "s.db"), "--model", "PBM", "--out", str(tmp_path / "i.json")]) == 0
    assert "read 200 sessions" in capsys.readouterr().err
    log, read = ranker.log(), read_log(tmp_path / "s.db")
    for name in ("items", "clicks"):
        assert getattr(log, name).tolist() == getattr(read, name).tolist()
    assert log.item_labels == read.item_labels
    with pytest.raises(ValueError, match=r"its impressions take 4\.4 kB of memory, more than max_memory = 1\.0 kB"):
        read_log(tmp_path / "s.db", max_memory=1000)
    assert clickgym.offline.read_log(tmp_path / "s.db", "store").queries.tolist() == log.queries.tolist()


def test_a_store_without_closed_impressions_has_no_log_to_read(tmp_path):
    ranker = made(tmp_path / "s.db")
    ranker.rank("q", ABC)
    with pytest.raises(ValueError, match="holds no closed impression yet"):
        read_log(tmp_path / "s.db")
    assert main(["fit", str(tmp_path / "s.db"), "--model", "PBM", "--out", str(tmp_path / "i.json")]) == 2


DOCS = Path(__file__).resolve().parents[2] / "docs" / "service.md"


def test_the_page_on_services_says_what_is_so(tmp_path, monkeypatch, capsys):
    page = DOCS.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1], {})
    assert "1 impressions of 1 queries, 6 items" in capsys.readouterr().out
    for (table,) in change("ranker.db", "SELECT name FROM sqlite_schema WHERE type = 'table'"):
        row = re.search(rf"^\| `{table}` \|(.*)$", page, re.MULTILINE)
        columns = [row_of[1] for row_of in change("ranker.db", f"PRAGMA table_info({table})")]
        assert [name for name in columns if f"`{name}`" not in row[1]] == [], table
    ((application,),), ((version,),) = (change("ranker.db", f"PRAGMA {name}") for name in ("application_id", "user_version"))
    assert f"`application_id` 0x{application:X}, `user_version` {version}" in page
    defaults = {name: parameter.default for name, parameter in inspect.signature(Ranker).parameters.items()}
    settings = page[page.index("| argument | default |") :].partition("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in row.replace("`", "").strip("|").split("|")] for row in settings]
    names, texts = ([text for row in cells for text in row[column].split(", ")] for column in (0, 1))
    assert names == list(defaults)
    shown = {name: text for name, text in zip(names, texts, strict=True) if name not in ("n_positions", "clock")}
    assert {name: ast.literal_eval(text) for name, text in shown.items()} == {name: defaults[name] for name in shown}
