"""Impressions that leave a store: what stays of them, kills, other workers, damage, moves; in a file and in PostgreSQL."""

from __future__ import annotations

import os
import random
import signal
import threading
from contextlib import suppress
from datetime import UTC, datetime

import numpy as np
import pytest
from service_kills import change, state_of
from service_kills import play as users_play
from test_move import BASE, FEATURES, places  # noqa: F401  (places is a fixture)
from test_store import Mine

from clickgym import Ranker
from clickgym.agents import CascadeTS
from clickgym.offline import read_log
from clickgym.serving.memory import Agents
from clickgym.serving.moving import move
from clickgym.serving.postgres import PostgresJournal
from clickgym.serving.served import ReplayError, Served

SETTINGS = BASE | {"patience": 50}


@pytest.fixture(params=["file", "postgres"])
def store(request, tmp_path):
    return str(tmp_path / "s.db") if request.param == "file" else request.getfixturevalue("address")


def made(store, clock, agent="CascadeTS", **settings):
    return Ranker(agent, **{**SETTINGS, "seed": 0, "store": store, "clock": clock, **settings})


def play(ranker, clock, sessions, seed=0, **features):
    """A session each second."""
    return users_play(ranker, sessions, seed, each=clock.tick, **features)


GOES = {"time", "compared", "changed", "pruned", "pruned_until"}
"""What the report cannot tell of impressions that have left, or says of them."""


def told(ranker):
    """The figures of the report, one after the other; sums are rounded in another order."""
    return flat({name: value for name, value in ranker.report().to_dict().items() if name not in GOES})


def flat(value, name=""):
    if isinstance(value, dict | list | tuple):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        return {key: each for part, inner in pairs for key, each in flat(inner, f"{name}/{part}").items()}
    return {name: float(f"{value:.10g}") if isinstance(value, float) else value}


def states(ranker):
    """Of all agents, as a worker computes them that has none in memory."""
    fresh = Agents(ranker._journal, ranker._recipe, ranker.seed, 10)
    with ranker._journal.view() as view:
        numbers = [0] if ranker._recipe.sees_features else sorted(view.ids("queries"))
    with ranker._journal.call():
        return [state_of(fresh.get(number)) for number in numbers]


@pytest.mark.parametrize("settings", [{}, {"by": "probabilistic", "item_values": {i: 1.0 + i for i in range(9)}},
                                      {"challenger": "PBMHB", "update_every": 3}])  # fmt: skip
def test_the_report_and_the_agents_stay_as_they_are(store, clock, settings):
    """Twice pruned, in steps, with late clicks, items that lost their slots, and open impressions."""
    with made(store, clock, **settings) as ranker:
        shown = play(ranker, clock, 150)
        ranker.update()
        before, then, log, old = told(ranker), states(ranker), ranker.log(), ranker.report().impressions
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(ranker._journal), "step", 20)
            first = ranker.prune(1.7e9 + 60)
        second = ranker.prune(datetime.fromtimestamp(1.7e9 + 80, UTC))
        assert (first.impressions, second.impressions, first.kept, second.until) == (59, 20, 0, 1.7e9 + 79)
        assert told(ranker) == before
        assert states(ranker) == then
        report, left = ranker.report(), ranker.log()
        assert (report.impressions, report.pruned, report.pruned_until) == (old, 79, "2023-11-14 22:14:39")
        assert "79 of them have left the store, shown until 2023-11-14 22:14:39 UTC" in str(report)
        assert left.times.tolist() == [each for each in log.times.tolist() if each > second.until]
        assert left.notes == ("whole after 2023-11-14 22:14:39 UTC; impressions that were shown until then were pruned",)
        assert read_log(store).notes == left.notes
        with pytest.raises(ValueError, match="there is no impression"):
            ranker.click(shown[0].id, position=1)
        play(ranker, clock, 30, 1)
        ranker.update()
        before, then = told(ranker), states(ranker)
    with made(store, clock, **settings) as ranker:
        assert (told(ranker), states(ranker)) == (before, then)
        assert ranker.prune(1.7e9 + 80).impressions == 0


def test_one_agent_of_all_queries(store, clock):
    with made(store, clock, "LinearTS") as ranker:
        play(ranker, clock, 60, features=FEATURES)
        clock.now += 60
        ranker.update()
        before, then = told(ranker), states(ranker)
        assert ranker.prune(1.7e9 + 40).impressions == 39
        assert (told(ranker), states(ranker)) == (before, then)


def test_what_waits_stays_with_what_was_shown_after_it(store, clock):
    with made(store, clock, by=None, production=None) as ranker:
        shown = []
        for i in range(10):
            clock.now += 1
            shown.append(ranker.rank("q", range(6)))
            if i != 4:
                ranker.close(shown[-1].id)
        pruned = ranker.prune(clock.now)
        assert pruned == (4, 0, 5, 1.7e9 + 4)
        assert ranker.click(shown[4].id, position=1)
        assert ranker.close(shown[4].id)
        clock.now += 1
        assert ranker.prune(clock.now) == (6, 1, 0, 1.7e9 + 10)
        assert ranker.rank("q").items
        assert len(ranker.log()) == 0


def test_bad_input_is_refused(clock):
    ranker = made(None, clock)
    for before, why in (
        (1.8e9, "after now"), (datetime(2020, 1, 1), "without a time zone"), (float("nan"), "before"), (-1, "before"),
        ("yesterday", "before"), (None, "before"),
    ):  # fmt: skip
        with pytest.raises((ValueError, TypeError), match=why):
            ranker.prune(before)
    with pytest.raises(ValueError, match="Mine cannot be saved"):
        Ranker(Mine, n_positions=2, seed=0).prune(0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_kill_in_the_middle_leaves_the_store_whole(store, clock, monkeypatch):
    """Killed when the first agent is written, when all are, and at moments between the steps."""
    with made(store, clock) as ranker:
        play(ranker, clock, 120)
        ranker.update()
        before, then, n = told(ranker), states(ranker), len(ranker.log())
        journal = type(ranker._journal)
    for where in ("agents_of", "forget", None, None, None):
        if (pid := os.fork()) == 0:
            with suppress(BaseException):
                ranker = made(store, clock)
                monkeypatch.setattr(journal, "step", 10)
                if where == "agents_of":
                    monkeypatch.setattr(journal, where, lambda *_: os._exit(9))
                elif where == "forget":
                    monkeypatch.setattr(journal, where, lambda *words, do=journal.forget: (do(*words), os._exit(9)))
                else:
                    signal.signal(signal.SIGALRM, signal.SIG_DFL)
                    signal.setitimer(signal.ITIMER_REAL, random.random() / 20)
                ranker.prune(clock.now - 40)
            os._exit(0)
        os.waitpid(pid, 0)
        with made(store, clock) as ranker:
            assert (told(ranker), states(ranker)) == (before, then)
            assert where is None or len(ranker.log()) == n
            ranker._agents.save_all = lambda *_: 0


def test_workers_go_on_while_one_prunes(address, clock, monkeypatch):
    """One has agents in memory, one has none; one meets events that have left; ticks follow each other."""
    one, other, pruner = (made(address, clock) for _ in range(3))
    play(one, clock, 60)
    one.update()
    play(other, clock, 5, 1)
    clock.now += 60
    one.update()
    warm = dict(other._agents._agents)
    assert pruner.prune(clock.now - 20).impressions == 65
    shown = one.rank("q0"), other.rank("q0"), made(address, clock).rank("q0")
    assert len(shown) == 3
    assert warm
    for worker in (one, other):
        play(worker, clock, 10, 2)
    clock.now += 60
    for worker in (one, other, pruner):
        worker.update()
    for worker in (one, other, pruner):
        worker._agents._wary = dict.fromkeys((1, 2, 3), 9)  # look for events of others, beginning with what is in memory
        assert [state_of(worker._agents.get(number)) for number in (1, 2, 3)] == states(pruner)
    ticks = pruner._journal._run(
        "SELECT agent, array_agg(e.tick ORDER BY e.tick), max(p.tick) FROM (SELECT agent, tick FROM impressions UNION "
        "SELECT agent, unnest(ARRAY[ended, learned]) FROM impressions) e JOIN pruned p ON p.query = agent GROUP BY agent"
    )
    for _, there, begin in ticks:
        assert there == [*range(begin + 1, begin + 1 + len(there))]
    stored = type(pruner._journal).stored  # the snapshot is read before the events leave, these after it

    def late(journal, agent):
        result = stored(journal, agent)
        monkeypatch.undo()
        assert pruner.prune(clock.now).impressions > 0
        return result

    monkeypatch.setattr(type(pruner._journal), "stored", late)
    assert states(one)
    assert not pruner._journal._run("SELECT 1 FROM impressions")


def test_nothing_is_lost_while_one_prunes_and_another_serves(address, clock, monkeypatch):
    monkeypatch.setattr(PostgresJournal, "step", 10)
    clock.now -= 1000  # of what was shown before, nothing is open
    server, pruner = made(address, clock, patience=1), made(address, clock, patience=1)
    play(server, clock, 60)
    clock.now += 1000
    errors, done = [], threading.Event()

    def serve():
        try:
            for i in range(40):
                shown = server.rank(f"q{i % 3}", range(6))
                assert server.click(shown.id, position=1)
                assert server.close(shown.id)
        except BaseException as error:
            errors.append(error)
        done.set()

    thread, left = threading.Thread(target=serve), 0
    thread.start()
    while not done.is_set():
        left += pruner.prune(clock.now).impressions
    thread.join()
    assert (errors, left) == ([], 60)
    report = pruner.report()
    assert (report.impressions, report.open, report.pruned) == (100, 0, 60)
    assert states(server) == [state_of(server._agents.get(number)) for number in (1, 2, 3)]


def test_a_store_gets_its_tables_when_it_needs_them(tmp_path, address, clock):
    """A file those for what has left when something leaves; a database of version 1 when it is opened."""
    store, versions = tmp_path / "s.db", []
    for before in (clock.now - 10, clock.now + 30):
        with made(store, clock) as ranker:
            play(ranker, clock, 20)
            clock.now += 60
            ranker.prune(before)
        versions += change(store, "PRAGMA user_version")
    assert versions == [(3,), (4,)]
    with made(address, clock) as ranker:
        play(ranker, clock, 20)
        clock.now += 60
        ranker.update()
    change(address, "DROP TABLE pruned")
    change(address, "DROP TABLE totals")
    change(address, "UPDATE settings SET value = '1' WHERE name = 'version'")
    assert len(read_log(address)) > 10
    with made(address, clock) as ranker:
        assert ranker.prune(clock.now).impressions == 20


def test_of_two_who_prune_one_is_refused(address, clock):
    one, other = made(address, clock), made(address, clock)
    with one._journal.call(), one._journal.leaving(0), pytest.raises(ValueError, match="is pruned by another process"):
        other.prune(0)


def test_a_beginning_that_fails_is_refused_and_nothing_is_replayed_from_the_start(store, clock, monkeypatch):
    """The format, the code or the challenger has changed; or the state is damaged. What refuses leaves it as it is."""
    with made(store, clock, by=None) as ranker:
        play(ranker, clock, 60)
        clock.now += 60
        ranker.prune(clock.now)
        saved, (_, _, state), query = states(ranker), ranker._journal.stored(1).beginning, ranker._journal.stored(1).query
    change(store, "DELETE FROM snapshots")

    def refused(why, **settings):
        with made(store, clock, **{"by": None, **settings}) as ranker:
            ranker._agents.save_all = lambda *_: 0
            with pytest.raises(ReplayError, match=why) as error:
                ranker.best(ranker._journal.stored(1).query)
            assert "\n" not in str(error.value)
            return str(error.value)

    with monkeypatch.context() as patch:
        patch.setattr("clickgym.serving.served.FORMAT", 2)
        assert "Ranker.from_log" in refused("its first impressions have left the store, and its state has format 1")
    with monkeypatch.context() as patch:
        patch.setattr(CascadeTS, "_restore", lambda *_: 1 / 0)
        assert "return to the code that wrote it" in refused("the code of CascadeTS has changed")
    with made(store, clock, by=None) as ranker:
        assert states(ranker) == saved
        for _ in range(20):
            ranker.close(ranker.rank(query, range(6)).id)
        ranker._agents.save_all = lambda *_: 0
    with monkeypatch.context() as patch:
        restore = Served.restore

        def other(served, *words):
            reason = restore(served, *words)
            served.agent.rng = np.random.default_rng(9)
            return reason

        patch.setattr(Served, "restore", other)
        refused("showed another list .* return to the code")
    refused("its state was written without challenger=: pass the same", by="team_draft", challenger="PBMHB")
    change(store, "UPDATE pruned SET state = ? WHERE query = 1", bytes([*state[:-1], state[-1] ^ 1]))
    with made(store, clock, by=None) as ranker:
        with pytest.raises(
            ValueError, match=r"is damaged .the checksum of a row of pruned does not match.; restore a copy of it"
        ):
            ranker.best(query)
        ranker.report()


def test_a_pruned_store_moves_with_its_totals_but_not_to_another_agent(places, clock):  # noqa: F811
    old, new = places
    with made(old, clock) as ranker:
        play(ranker, clock, 100)
        ranker.update()
        ranker.prune(1.7e9 + 30)
        play(ranker, clock, 10, 1)
        before, report, log, notes = told(ranker), ranker.report().pruned, sorted(ranker.log().times), ranker.log().notes
    with pytest.raises(ValueError, match="was pruned, and another agent would have to learn from impressions that have left"):
        move(old, new, agent="PBMHB")
    move(old, new)
    with made(new, clock) as ranker, made(old, clock) as there:
        assert told(ranker) == before == told(there)
        assert (ranker.report().pruned, sorted(ranker.log().times), ranker.log().notes) == (report, log, notes)
        assert ranker.report().pruned == 29
        shown = play(ranker, clock, 60, 2)
        clock.now += 60
        assert ranker.prune(clock.now).kept == 0
        assert ranker.report().impressions == 170
        assert len({impression.id for impression in shown}) == 60
