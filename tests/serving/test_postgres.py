"""A store in PostgreSQL: several processes on one store, lost connections, invariants, and what is said of errors."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from postgres_server import PASSWORD, serving
from service_kills import play, state_of, states_that_differ
from workers import at_once, faults, gaps, torment

from clickgym import Ranker
from clickgym.agents import AGENTS, CONTEXTUAL_AGENTS
from clickgym.command_line import main
from clickgym.offline import ClickLog, read_log
from clickgym.offline.several import log_name
from clickgym.serving.memory import Agents
from clickgym.serving.postgres import OVERDUE, PostgresJournal
from clickgym.serving.served import refusal

ABC = ["a", "b", "c"]


def made(store, agent="CascadeTS", **settings):
    return Ranker(agent, **{"n_positions": 2, "seed": 0, "store": store, **settings})


MIXED = {"production": lambda query, items: items, "production_share": 0.3, "by": "team_draft", "interleaved_share": 0.3}


# ---------------------------------------------------------------------------------------------------------- invariants


@pytest.mark.parametrize("settings", [{}, {"update_every": 3, **MIXED}, {"challenger": "PBMHB", **MIXED}])
def test_events_of_two_workers_have_ticks_without_a_gap_and_agents_follow_from_them(address, settings):
    workers = [made(address, **settings), made(address, **settings)]
    play(workers, 120)
    for worker in workers:
        worker.snapshot()
        assert gaps(worker) == []
        assert states_that_differ(worker) == []
    assert len(workers[0].log()) == len(workers[1].log()) == len(read_log(address))
    assert workers[0].report().clicks == workers[1].report().clicks


def test_workers_share_the_agent_of_all_queries(address):
    workers = [made(address, "LinearTS"), made(address, "LinearTS")]
    play(workers, 60, features=np.random.default_rng(0).random((6, 3)))
    assert [gaps(workers[0]), states_that_differ(workers[0]), states_that_differ(workers[1])] == [[], [], []]
    assert workers[0].report().queries == 3


def test_a_write_carries_the_tick_it_was_computed_from(address, monkeypatch):
    """A worker that does not know of the last event writes nothing, and computes anew from what is stored."""
    one, other = made(address), made(address)
    refused, move = [], PostgresJournal._move

    def watched(journal, statement, values, served, before, after, change):
        rows = move(journal, statement, values, served, before, after, change)
        refused.append(not rows)
        return rows

    monkeypatch.setattr(PostgresJournal, "_move", watched)
    one.rank("q", ABC)
    other.rank("q", ABC)
    shown = one.rank("q", ABC)
    assert refused == [False, False, True, False]
    assert other.click(shown.id, shown.items[0])
    assert other.close(shown.id)
    assert not one.close(shown.id)
    assert states_that_differ(one) == states_that_differ(other) == []


def test_what_another_history_has_made_is_not_taken_for_ones_own(address):
    """A server that crashed may have lost events, and others may have come since, with the same ticks."""
    one, other = made(address), made(address)
    for _ in range(3):
        one.rank("q", ABC)
    one._journal._run("DELETE FROM impressions WHERE tick > 1")
    one._journal._run("UPDATE queries SET tick = 1, version = (SELECT sum(shown) FROM impressions)")
    for _ in range(2):
        other.rank("q", ABC)
    assert one._agents.in_memory(1).tick == 3
    one.close(one.rank("q").id)
    assert gaps(one) == []
    assert states_that_differ(one) == []


def test_after_an_error_nothing_of_the_agent_stays_in_memory(address, monkeypatch):
    ranker, twin = made(address), made(None)
    for each in (ranker, twin):
        each.rank("q", ABC)
    for broken in ("show", "learn"):
        with monkeypatch.context() as patch:
            patch.setattr(PostgresJournal, broken, lambda *arguments: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                ranker.close(ranker.rank("q", ABC).id)
        assert not ranker._agents._agents
    twin.rank("q", ABC)  # was shown, but not closed
    assert ranker.rank("q").items == twin.rank("q").items
    assert gaps(ranker) == []


def test_too_many_other_workers_are_an_error_that_names_the_query(address, monkeypatch):
    ranker = made(address)
    ranker.rank("red shoes", ABC)
    monkeypatch.setattr(PostgresJournal, "show", lambda *arguments: None)
    with pytest.raises(OSError, match="other processes were faster with the query 'red shoes' in 8 attempts; call again later"):
        ranker.rank("red shoes")


def test_a_snapshot_replaces_only_an_older_one(address):
    ranker = made(address)
    play([ranker], 10, queries=1)
    ranker.snapshot()
    tick, version, state = ranker._journal.stored(1).snapshot
    ranker._journal.add_snapshot(1, tick - 1, 0, b"older")
    ranker._journal.add_snapshot(1, tick, 0, b"as old")
    assert ranker._journal.stored(1).snapshot == (tick, version, state)


def test_lots_depend_on_the_secret_the_query_and_the_tick_alone(server):
    """One worker, or each call to another of two: the same draws."""
    drawn = []
    for schema, n in (("lots_1", 1), ("lots_2", 2)):
        workers = [made(server.address(schema=schema), **MIXED) for _ in range(n)]
        for worker in workers:
            worker._secret = b"0" * 16
        drawn.append([workers[i % n].rank("q", ABC).source for i in range(40)])
    assert drawn[0] == drawn[1]
    assert set(drawn[0]) == {"agent", "production", "interleaved"}


SERVABLE = [name for name, agent in AGENTS.items() if not refusal(agent, False)]
NEEDS = {"TopRank": "horizon=1e5", "PBMUCB": "examination=[1,0.5]", "PBMTS": "examination=[1,0.5]"}


@pytest.mark.parametrize(
    "names",
    [
        ["CascadeTS", "PBMHB", "TopRank", "LinearTS"],
        pytest.param([*SERVABLE, *CONTEXTUAL_AGENTS], marks=pytest.mark.slow),
    ],
    ids=["some", "all"],
)
def test_without_lots_the_lists_are_those_of_sqlite(server, names):
    """For the same seed and calls of one worker, for every agent that can serve."""
    compared = 0
    for name in names:
        try:
            agent = f"{name}:{NEEDS[name]}" if name in NEEDS else name
            settings = {"agent": agent, "update_every": 1 + compared % 2, "memory": 1}
            rankers = [made(None, **settings), made(server.address(schema=f"same_{len(names)}_{name.lower()}"), **settings)]
        except (ValueError, TypeError, ImportError):  # needs more than a service knows
            continue
        more = {"features": np.random.default_rng(1).random((6, 3))} if rankers[0]._recipe.sees_features else {}
        lists = [[shown.items for shown in play([ranker], 25, queries=2, **more)] for ranker in rankers]
        assert lists[0] == lists[1], name
        compared += 1
    assert compared > len(names) // 2


def test_any_worker_closes_what_nobody_closes_and_looks_at_most_once_a_second(address, monkeypatch):
    now = [1.7e9]
    workers = [made(address, patience=60, clock=lambda: now[0]) for _ in range(2)]
    shown = [workers[0].rank("q", ABC) for _ in range(6)]
    looked, run = [], PostgresJournal._run

    def watched(journal, statement, values=()):
        if statement == OVERDUE:
            looked.append(now[0])
        return run(journal, statement, values)

    monkeypatch.setattr(PostgresJournal, "_run", watched)
    now[0] += 100
    for worker in workers * 3:
        worker.click(shown[-1].id, position=1)
    assert len(looked) == 1
    assert workers[1].report().open == 0
    assert gaps(workers[0]) == []


# ------------------------------------------------------------------------------------------------------- lost connections


@pytest.mark.parametrize("answered", [False, True], ids=["before it is done", "after it is done"])
def test_connections_that_are_cut_at_any_statement_lose_nothing(address, monkeypatch, answered):
    ranker = made(address)
    psycopg, send, left = ranker._journal._psycopg, ranker._journal._send, [0]

    def cut(own, *arguments):
        left[0] -= 1
        if left[0]:
            return send(own, *arguments)
        if answered:
            send(own, *arguments)
        own.connection.close()
        raise psycopg.OperationalError("the connection was cut")

    monkeypatch.setattr(ranker._journal, "_send", cut)
    for statement in range(1, 40):
        left[0], done = statement, []
        while len(done) < 4:  # rank, click, click again, close; a call that fails is repeated
            try:
                if not done:
                    done.append(ranker.rank(f"q{statement % 3}", [*ABC, f"item {statement}"]))
                elif len(done) == 1:
                    assert ranker.click(done[0].id, done[0].items[0])
                    done.append(True)
                elif len(done) == 2:
                    assert not ranker.click(done[0].id, done[0].items[0])
                    done.append(True)
                else:
                    assert ranker.close(done[0].id)
                    done.append(True)
            except OSError:
                assert len(done) == 0  # new items wait for the disk, in a transaction
        if left[0] > 0:
            break
    assert statement > 4
    left[0] = 0
    assert ranker.report().open == ranker.report().impressions - statement
    assert [gaps(ranker), states_that_differ(ranker)] == [[], []]


def test_threads_have_connections_of_their_own(address):
    ranker = made(address)

    def serve(name):
        for i in range(8):
            shown = ranker.rank(f"{name}-{i % 2}" if i % 3 else "all", ABC)
            assert ranker.click(shown.id, shown.items[0])
            assert not ranker.click(shown.id, shown.items[0])
            assert ranker.close(shown.id)

    at_once(serve, range(6))
    assert (ranker.report().impressions, ranker.report().open) == (48, 0)
    assert [gaps(ranker), states_that_differ(ranker)] == [[], []]
    n = ranker._journal._run("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'clickgym'")
    ranker.shut_down()
    assert n[0][0] < 60
    with pytest.raises(ValueError, match="the Ranker was shut down"):
        ranker.rank("all")


def test_killed_workers_and_a_killed_server_lose_nothing_that_was_acknowledged():
    """Short: `benchmarks/reliability/workers.py` goes on for minutes."""
    with serving() as server:
        said, ended = torment(server, server.address(), 2.4, workers=2, kill_every=0.8, crashes=1)
        assert ended == 0
        assert {kind for kind, *_ in said} == {"R", "c", "C", "X"}
        assert faults(server.address(), said) == []
        with Ranker(store=server.address(), n_positions=3) as ranker:
            assert gaps(ranker) == []


# --------------------------------------------------------------------------------------------------------------- logs


def test_readers_take_the_address_and_say_no_password(address, tmp_path, capsys):
    ranker = made(address)
    play([ranker], 60)
    log, read = ranker.log(), read_log(address)
    assert log.items.tolist() == read.items.tolist()
    assert log.clicks.tolist() == read.clicks.tolist()
    assert (np.diff(log.times) >= 0).all()
    assert main(["fit", address, "--model", "PBM", "--out", str(tmp_path / "i.json"), "--json"]) == 0
    output = "".join(capsys.readouterr()) + (tmp_path / "i.json").read_text()
    assert PASSWORD not in output
    assert "postgresql://judge@127.0.0.1" in output
    assert PASSWORD not in repr(ranker) + str(ranker.report()) + log_name(address)
    with pytest.raises(ValueError, match="columns and duplicates are only for tidy tables; postgresql://judge@127"):
        read_log(address, columns={"item": "doc"})
    with pytest.raises(ValueError, match="is read as tidy; expected the format store, or auto"):
        read_log(address, "tidy")


@pytest.mark.slow
def test_decisions_say_no_password(address, tmp_path, capsys):
    play([made(address)], 60)
    assert (
        main(["decide", address, "--query", "q0", "--agents", "CascadeTS", "--horizon", "1000", "--out", str(tmp_path / "d")])
        == 0
    )
    pages = "".join(file.read_text(errors="replace") for file in (tmp_path / "d").rglob("*.*"))
    assert PASSWORD not in pages + "".join(capsys.readouterr())


def test_a_log_goes_into_a_new_store_as_a_whole(address, monkeypatch):
    log = ClickLog([[0, 1], [1, 2]] * 50, [[0, 1], [1, 0]] * 50, [0, 1] * 50, ("a", "b", "c"), ("p", "q"))
    with monkeypatch.context() as patch:
        learned, write = [], Agents.write_state
        patch.setattr(
            Agents, "write_state", lambda *arguments: learned.append(1) or (write(*arguments) if len(learned) < 2 else 1 / 0)
        )
        with pytest.raises(ZeroDivisionError):
            Ranker.from_log(log, store=address, seed=0)
    with monkeypatch.context() as patch:
        send, left = PostgresJournal._send, [90]

        def cut(journal, own, *arguments):
            left[0] -= 1
            if not left[0]:
                own.connection.close()
            return send(journal, own, *arguments)

        patch.setattr(PostgresJournal, "_send", cut)
        with pytest.raises(OSError, match="cannot be reached"):
            Ranker.from_log(log, store=address, seed=0)
    ranker, file = Ranker.from_log(log, store=address, seed=0), Ranker.from_log(log, seed=0)
    assert (ranker.report().learned_from_log, ranker.report().impressions) == (100, 0)
    assert gaps(ranker) == []
    for query in "pq":
        assert ranker.best(query) == file.best(query)
        assert state_of(ranker._agents.of_query(query))[0] == state_of(file._agents.of_query(query))[0]
    with pytest.raises(ValueError, match="holds impressions already; a log goes into a new store"):
        Ranker.from_log(log, store=address)


def test_schemas_are_stores_of_their_own(server):
    one, other = (made(server.address(schema=f"own_{name}")) for name in "ab")
    one.rank("q", ABC)
    assert (one.report().impressions, other.report().impressions) == (1, 0)
    with pytest.raises(ValueError, match="there is no impression"):
        other.click(one.rank("q").id, position=1)


# -------------------------------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize(("durable", "synchronous"), [(None, "on"), ("power", "on"), ("kill", "off")])
def test_durable_says_whether_a_commit_waits_for_the_disk(address, durable, synchronous):
    assert made(address, durable=durable)._journal._run("SHOW synchronous_commit") == [(synchronous,)]


def test_workers_that_start_at_once_agree(address):
    rankers = at_once(lambda _: made(address, seed=None), range(4))
    assert len({(ranker.seed, ranker._secret) for ranker in rankers}) == 1


BAD = [
    ("?schema=Mine;", "schema is 'Mine;'; expected a name of small letters, digits and _"),
    ("?nope=3", "the address of the store cannot be read; expected postgresql://user@host:port/database"),
]


@pytest.mark.parametrize(("query", "message"), BAD)
def test_bad_addresses_are_refused_in_a_line(server, query, message):
    for call in (made, read_log):
        with pytest.raises(ValueError, match=message) as error:
            call(server.address(schema="") + query)
        assert PASSWORD not in str(error.value)


def test_what_is_said_of_errors(server, address, monkeypatch, capsys):
    wrong = address.replace(PASSWORD, "another-secret")
    nowhere = address.replace(str(server.port), "1")
    nothing = server.address("nothing_there")
    for store, words in (
        (wrong, "password authentication failed"),
        (nowhere, "cannot be reached"),
        (nothing, "does not exist"),
    ):
        for call in (made, read_log):
            with pytest.raises(OSError, match=words) as error:
                call(store)
            assert "\n" not in str(error.value)
            assert PASSWORD not in str(error.value)
            assert "another-secret" not in str(error.value)
    assert main(["fit", wrong, "--model", "PBM", "--out", "i.json"]) == 2
    assert "another-secret" not in "".join(capsys.readouterr())
    with pytest.raises(ValueError, match=r"holds no store of a clickgym\.Ranker"):
        read_log(address)
    ranker = made(address)
    with pytest.raises(ValueError, match="holds no closed impression yet"):
        read_log(address)
    ranker._journal._run("UPDATE settings SET value = '7' WHERE name = 'version'")
    for call in (made, read_log):
        with pytest.raises(ValueError, match="has version 7 of the store's tables; this clickgym reads versions 1 to 2"):
            call(address)
    server.run("CREATE SCHEMA taken; CREATE TABLE taken.mine (a integer)")
    with pytest.raises(ValueError, match=r"the schema taken holds tables, but no store of a clickgym\.Ranker"):
        made(server.address(schema="taken"))
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for call in (made, read_log):
        with pytest.raises(ImportError, match=r"a store in PostgreSQL needs psycopg: pip install 'clickgym\[postgres\]'"):
            call(address)


def test_a_store_in_postgresql_is_a_log_by_itself(address, tmp_path):
    with pytest.raises(ValueError, match="is given with other logs; expected a store in PostgreSQL by itself") as error:
        read_log([address, tmp_path / "log.csv"])
    assert PASSWORD not in str(error.value)
    with pytest.raises(ValueError, match="is read as tidy; expected the format store, or auto"):
        read_log([address], "tidy")
    assert log_name([address]) == log_name(Path(address)) == address.replace(f":{PASSWORD}", "")


def test_the_password_may_come_from_the_environment(server, address, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    bare = address.replace(f":{PASSWORD}", "")
    assert made(bare).rank("q", ABC).items
    assert json.dumps(repr(made(bare))) == json.dumps(repr(made(address)))
