"""`clickgym.Ranker`: what a user of it may do, in what order he likes, and what becomes of it."""

import functools
import random
import re
from dataclasses import replace

import numpy as np
import pytest
from service_kills import play, state_of, states_that_differ

import clickgym
from clickgym import Ranker
from clickgym.agents import CONTEXTUAL_AGENTS, Agent, CascadeTS, CompiledAgent
from clickgym.offline import ClickLog
from clickgym.offline.decision.decide import FALLBACK

on_both = pytest.mark.usefixtures("both")
ABC = ["a", "b", "c"]


class Counting(Agent):
    """An agent in plain Python: items by clicks, and what it was told."""

    learns_from = "any list"

    def __init__(self, n_items, n_positions, *, seed=None):
        self.clicks, self.n_positions, self.rng = np.zeros(n_items), n_positions, np.random.default_rng(seed)
        self.calls = []

    def rank(self, observation, candidates=None):
        return np.lexsort((self.rng.random(len(self.clicks)), -self.clicks, ~candidates))[: self.n_positions]

    def update(self, observation, ranking, clicks, reward, *, display=None, void=None):
        self.calls.append((ranking.tolist(), clicks.tolist(), reward, display, None if void is None else void.tolist()))
        self.clicks[ranking[clicks > 0]] += 1

    def replace(self, item):
        self.clicks[item] = 0


class OnlyItsOwn(Counting):
    learns_from = "its displays"


class Stubborn(Counting):
    def rank(self, observation, candidates=None):
        return np.arange(self.n_positions)


class Broken(Counting):
    def rank(self, observation, candidates=None):
        if len(self.calls) > 1:
            raise RuntimeError("no more")
        return super().rank(observation, candidates)


def made(agent="CascadeTS", n_positions=2, **settings):
    return Ranker(agent, **{"n_positions": n_positions, "seed": 0, **settings})


def agent_of(ranker, query):
    return ranker._agents.of_query(query)


def rows(ranker, statement):
    return ranker._journal.connection.execute(statement).fetchall()


# ------------------------------------------------------------------------------------------------- rank, click and close


def test_the_default_agent_is_that_of_decide():
    assert type(agent_of_new(Ranker(n_positions=2))).__name__ == FALLBACK


def agent_of_new(ranker):
    ranker.rank("q", ABC)
    return agent_of(ranker, "q").agent


@on_both
def test_clicks_come_late_twice_and_out_of_order():
    ranker = made()
    first, second = ranker.rank("q", ABC), ranker.rank("q")
    assert ranker.click(second.id, second.items[1])
    assert ranker.click(first.id, first.items[0])
    assert not ranker.click(first.id, first.items[0])
    assert ranker.click(first.id, position=2)
    assert not ranker.click(first.id, first.items[1])
    assert ranker.close(first.id)
    assert ranker.close(second.id, seen=2)
    assert not ranker.close(second.id, seen=1)
    assert agent_of(ranker, "q").agent.state.clicks.sum() == 3
    assert ranker.log().clicks.tolist() == [[1, 1], [0, 1]]


@on_both
def test_an_agent_learns_what_was_seen():
    ranker = made(n_positions=3)
    shown = ranker.rank("q", ["a", "b", "c", "d"])
    ranker.close(shown.id, seen=2)
    served = agent_of(ranker, "q")
    assert served.agent.state.examined.sum() == 2
    assert ranker.log().items.tolist()[0][2] == -1
    ranker.close(ranker.rank("q").id, seen=0)
    assert served.agent.state.examined.sum() == 2
    assert len(ranker.log()) == 1


@on_both
def test_a_click_after_the_end_is_stored_as_late_and_not_learned():
    ranker = made(n_positions=3)
    shown = ranker.rank("q", ABC)
    ranker.close(shown.id, seen=1)
    assert ranker.click(shown.id, shown.items[2])
    assert agent_of(ranker, "q").agent.state.clicks.sum() == 0
    log, report = ranker.log(), ranker.report()
    assert log.clicks.tolist() == [[0, 0, 1]]  # who clicked on it has seen it
    assert (report.clicks, report.late, report.late_share) == (1, 1, 1.0)
    assert [(row.agent_seen, row.agent_clicks) for row in report.positions] == [(1, 0), (1, 0), (1, 1)]


@on_both
def test_impressions_that_nobody_closes_are_closed_after_a_while(clock):
    ranker = made(clock=clock, patience=60)
    first = ranker.rank("q", ABC)
    clock.now += 59
    second = ranker.rank("q")
    assert ranker.report().open == 2
    clock.now += 1
    ranker.click(second.id, position=1)
    assert ranker.report().open == 1
    assert not ranker.close(first.id)
    assert agent_of(ranker, "q").agent.state.examined.sum() == 2
    clock.now += 60
    assert ranker.update() == 1
    assert ranker.report().open == 0


@on_both
def test_one_call_closes_few_impressions_of_others(clock):
    ranker = made(clock=clock, patience=60)
    for _ in range(10):
        ranker.rank("q", ABC)
    clock.now += 100
    ranker.rank("q")
    assert ranker.report().open == 7
    ranker.rank("q")
    ranker.rank("q")
    assert ranker.report().open == 3


@on_both
def test_agents_learn_after_some_impressions_or_seconds(clock):
    ranker = made(clock=clock, update_every=3, update_seconds=10)
    examined = lambda: int(agent_of(ranker, "q").agent.state.examined.sum())  # noqa: E731
    for wanted in (0, 0, 6):
        ranker.close(ranker.rank("q", ABC).id)
        assert examined() == wanted
    ranker.close(ranker.rank("q").id)
    clock.now += 9
    ranker.rank("q")
    assert examined() == 6
    clock.now += 1
    ranker.rank("q")
    assert examined() == 8
    ranker.close(ranker.rank("q").id)
    assert (ranker.update(), ranker.update(), examined()) == (1, 0, 10)


def test_a_clock_that_goes_back_loses_nothing(clock, warnings_of_service):
    ranker = made(clock=clock, patience=60)
    first = ranker.rank("q", ABC)
    clock.now -= 3600
    second = ranker.rank("q")
    assert "the clock went back by 3600 s" in warnings_of_service[0]
    assert not ranker.close(first.id)  # it seems to have been open for an hour
    assert ranker.click(first.id, position=1)
    assert ranker.close(second.id)
    assert rows(ranker, "SELECT count(*) FROM impressions WHERE number < 3") == [(2,)]
    assert len(ranker.log()) == 2


# --------------------------------------------------------------------------------------------------------- ids, candidates


@on_both
def test_ids_are_the_users_own():
    ranker = made(n_positions=3)
    query, items = "red 👠 \x00'\"; --", ["ä", "a\u0308", 7, "7", "\u202e\n"]
    shown = [ranker.rank(query, items) for _ in range(30)]
    assert set().union(*(impression.items for impression in shown)) == set(items)
    for impression in shown:
        ranker.close(impression.id)
    log = ranker.log()
    assert set(log.item_labels) == {"ä", "a\u0308", "7 (integer)", "7", "\u202e\n"}
    assert log.query_labels == (query,)
    ranker.rank(7, np.arange(5))
    ranker.rank("7", np.array(["x", "y", "z"]))
    assert ranker.report().queries == 3


@on_both
def test_ids_of_impressions_cannot_be_guessed_and_stand_in_a_page():
    ranker, other = made(), made(seed=1)
    ids = [ranker.rank("q", ABC).id for _ in range(50)]
    assert len(set(ids)) == 50
    assert all(re.fullmatch(r"[\w-]{16}", each, re.ASCII) for each in ids)
    other.rank("q", ABC)
    with pytest.raises(ValueError, match="there is no impression"):
        other.click(ids[0], position=1)


@on_both
def test_candidates_differ_and_a_new_item_takes_the_place_of_the_one_absent_longest():
    ranker = made()
    for candidates in (["a", "b", "c"], ["a", "b", "d"], ["a", "e", "f"]):  # six slots
        shown = ranker.rank("q", candidates)
        assert set(shown.items) <= set(candidates)
    agent = agent_of(ranker, "q")
    before = agent.items.index(ranker._items.numbers["c"])
    shown = ranker.rank("q", ["a", "g", "f"])
    assert agent.items.index(ranker._items.numbers["g"]) == before
    assert ranker.report().replaced == 1
    ranker.rank("q", ["c", "b", "h"])  # d was there in the second call only, then e in the third
    assert {ranker._items.ids[item] for item in agent.items} == {"a", "b", "c", "f", "g", "h"}
    assert ranker.report().replaced == 3


def test_candidates_have_a_limit_and_are_distinct():
    ranker = made(most_candidates=40_000)
    for many in (range(40_001), list(range(10**6)), iter(range(10**9))):
        with pytest.raises(ValueError, match="candidates has more than most_candidates = 40,000 items"):
            ranker.rank("q", many)
    with pytest.raises(ValueError, match="candidates has more than most_candidates = 10,000 items"):
        made().rank("q", range(10_001))
    with pytest.raises(ValueError, match="candidates holds 7 twice"):
        ranker.rank("q", [*range(40_000 - 1), 7])


@on_both
def test_a_late_click_on_an_item_that_was_replaced_is_not_the_new_ones():
    ranker = made(capacity=2)
    old = ranker.rank("q", ["a", "b"])
    ranker.rank("q", ["c", "d"])
    ranker.click(old.id, position=1)
    ranker.click(old.id, position=2)
    ranker.close(old.id)
    state = agent_of(ranker, "q").agent.state
    assert (state.clicks.sum(), state.examined.sum()) == (0, 0)
    assert ranker.log().clicks.sum() == 2


@on_both
def test_replaced_items_of_a_production_list_end_what_is_learned_of_it():
    ranker = made(capacity=3, production={"q": ["a", "b"]}, production_share=0.999)
    old = ranker.rank("q", ["a", "b", "c"])
    assert old == (old.id, ["a", "b"], "production")
    ranker._production = None
    ranker.rank("q", ["a", "c", "d"])  # takes the slot of b
    ranker.click(old.id, "b")
    ranker.close(old.id)
    state = agent_of(ranker, "q").agent.state
    assert (state.examined.sum(), state.clicks.sum()) == (1, 0)


# ----------------------------------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize("agent", ["CascadeTS", "PBMHB", "TopRank:horizon=1e4", Counting])
def test_agents_that_are_not_in_memory_are_the_same_as_those_that_are(agent, tmp_path):
    few = made(agent, memory=2, production=lambda query, items: items, production_share=0.2, store=tmp_path / "few.db")
    many = made(agent, production=lambda query, items: items, production_share=0.2)
    few._secret = many._secret  # the lot
    for ranker in (few, many):
        play(ranker, 400, queries=6)
    assert len(few._agents._agents) == 2
    for query in (f"q{i}" for i in range(6)):
        assert state_of(agent_of(few, query)) == state_of(agent_of(many, query))
    assert states_that_differ(few) == states_that_differ(many) == []


@on_both
def test_a_snapshot_is_where_a_replay_begins(tmp_path, monkeypatch):
    with made(store=tmp_path / "s.db") as ranker:
        play(ranker, 300, queries=2)
        assert ranker.snapshot() == 2
        assert ranker.snapshot() == 0
        states = [state_of(agent_of(ranker, query)) for query in ("q0", "q1")]
    again = made(store=tmp_path / "s.db")
    monkeypatch.setattr(type(again._agents), "_show_again", None)  # there is nothing to replay
    assert [state_of(agent_of(again, query)) for query in ("q0", "q1")] == states


@on_both
def test_agents_of_a_store_depend_on_its_seed_and_their_query_alone():
    one, other = made(), made()
    other.rank("z", ABC)
    assert [one.rank("q", ABC).items for _ in range(20)] == [other.rank("q", ABC).items for _ in range(20)]
    assert [made(seed=1).rank("q", ABC).items for _ in range(20)] != [made(seed=2).rank("q", ABC).items for _ in range(20)]


def test_what_shut_down_did_not_write_in_time_is_replayed(tmp_path, monkeypatch):
    settings = {"store": tmp_path / "s.db"}
    ranker = made(**settings)
    play(ranker, 200, queries=6)
    states = {query: state_of(agent_of(ranker, query)) for query in (f"q{i}" for i in range(6))}
    events = {served.number: served.events for served in ranker._agents._agents.values()}
    times = iter(range(100))
    monkeypatch.setattr("clickgym.serving.memory.time.monotonic", lambda: next(times))  # a second for each state
    for wrong in (-1, float("nan"), "1"):
        with pytest.raises((ValueError, TypeError), match="timeout is"):
            ranker.shut_down(wrong)
    ranker.shut_down(timeout=3)
    again = made(**settings)
    written = [number for (number,) in rows(again, "SELECT query FROM snapshots")]
    assert sorted(written) == sorted(sorted(events, key=events.get)[-2:])  # those with the longest replay
    assert {query: state_of(agent_of(again, query)) for query in states} == states


def test_a_store_that_cannot_be_written_is_shut_down_all_the_same(tmp_path, monkeypatch):
    ranker = made(store=tmp_path / "s.db")
    ranker.rank("q", ABC)
    monkeypatch.setattr(type(ranker._agents), "save_all", lambda *arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        ranker.shut_down()
    assert made(store=tmp_path / "s.db").rank("q").items


# ------------------------------------------------------------------------------------------------------------------- best


@on_both
def test_best_is_the_list_without_exploration_of_those_present():
    ranker = made()
    for _ in range(300):
        shown = ranker.rank("q", ["a", "b", "c", "d"])
        for item, rate in (("c", 0.9), ("a", 0.4)):
            if item in shown.items and random.Random(shown.id).random() < rate:
                ranker.click(shown.id, item)
        ranker.close(shown.id)
    before = state_of(agent_of(ranker, "q"))
    assert ranker.best("q") == ["c", "a"]
    ranker_without = ranker.rank("q", ["a", "b", "d"])
    assert ranker.best("q")[0] == "a"
    assert len(ranker.best("q")) == 2
    assert state_of(agent_of(ranker, "q"))[0]["clicks"] == before[0]["clicks"]
    assert ranker_without.source == "agent"
    with pytest.raises(ValueError, match="'nope' was never ranked"):
        ranker.best("nope")
    for wrong in ({"candidates": ["x", "y"]}, {"features": [[1.0]]}):  # it would answer with others
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} was given, and CascadeTS does not rank by features"):
            ranker.best("q", **wrong)


# ------------------------------------------------------------------------------------------------------------- own agents


@on_both
def test_an_agent_of_ones_own_is_told_what_the_interface_says():
    ranker = made(Counting, capacity=3)
    first, second = ranker.rank("q", ABC), ranker.rank("q")
    ranker.click(first.id, position=2)
    ranker.close(second.id, seen=1)
    agent = agent_of(ranker, "q").agent
    slots = {identity: slot for slot, identity in enumerate(ABC)}
    assert agent.calls == [([slots[each] for each in second.items], [0, -1], 0.0, 2, [False, False])]
    ranker.rank("q", ["a", "b", "z"])
    ranker.close(first.id)
    ranking = [slots[each] for each in first.items]
    assert agent.calls[1] == (ranking, [0, 1], 1.0, 1, [slot == 2 for slot in ranking])


@on_both
def test_lists_of_production_are_learned_by_agents_that_learn_from_any():
    for agent, n_calls in ((Counting, 1), (OnlyItsOwn, 0)):
        ranker = made(agent, production=lambda query, items: ["c", "a"], production_share=0.999)
        shown = ranker.rank("q", ABC)
        assert shown.items == ["c", "a"]
        ranker.click(shown.id, "a")
        ranker.close(shown.id)
        calls = agent_of(ranker, "q").agent.calls
        assert [call[:4] for call in calls] == [([2, 0], [0, 1], 1.0, None)] * n_calls
        assert states_that_differ(ranker) == []


def test_an_agent_that_fails_costs_nothing_but_its_call():
    ranker = made(Broken)
    for _ in range(2):
        ranker.close(ranker.rank("q", ABC).id)
    before = state_of(agent_of(ranker, "q"))
    with pytest.raises(RuntimeError, match="no more"):
        ranker.rank("q")
    assert state_of(agent_of(ranker, "q"))[1:] == before[1:]
    assert ranker.report().impressions == 2
    ranker.rank("other", ABC)


def test_an_agent_that_shows_no_candidate_is_refused():
    ranker = made(Stubborn, capacity=4)
    ranker.rank("q", ["a", "b", "c", "d"])
    with pytest.raises(ValueError, match=r"Stubborn has shown an item that is no candidate: \[0, 1\]"):
        ranker.rank("q", ["b", "c", "d"])
    assert ranker.report().impressions == 1


@pytest.mark.parametrize(
    "agent", [functools.partial(CascadeTS, feedback="first_click"), CascadeTS, ("CascadeTS", {}), f"{__name__}:Counting"]
)
def test_agents_are_given_as_to_a_sweep(agent):
    assert len(made(agent).rank("q", ABC).items) == 2


@pytest.mark.parametrize("name", sorted(name for name, agent in clickgym.agents.AGENTS.items() if agent.takes_candidates()))
@pytest.mark.slow
def test_every_agent_that_takes_candidates_serves(name, tmp_path):
    told = {"PBMUCB": {"examination": [1.0, 0.5]}, "PBMTS": {"examination": [1.0, 0.5]}, "BCMPTS": {"examination": [1.0, 0.5]}}
    needs = {"horizon": 10**4} if name in ("TopRank", "UniRank", "RankedUCB1", "GLRCascadeUCB", "GLRCascadeKLUCB") else {}
    try:
        ranker = made((name, told.get(name, {})), store=tmp_path / "s.db")
    except ValueError:
        ranker = made((name, {**told.get(name, {}), **needs}), store=tmp_path / "s.db")
    play(ranker, 300, queries=2)
    ranker.snapshot()
    play(ranker, 50, queries=2, seed=1)
    assert states_that_differ(ranker) == []


# ------------------------------------------------------------------------------------------------------------ by features


@pytest.mark.parametrize("name", ["CascadeLinTS", "PDGD", pytest.param("PairRank", marks=pytest.mark.slow)])
def test_one_agent_ranks_all_queries_by_features(name, tmp_path):
    assert name in CONTEXTUAL_AGENTS
    ranker = made(name, store=tmp_path / "s.db", production=lambda query, items: items, production_share=0.3)
    rng = np.random.default_rng(0)
    for i in range(120):
        features = rng.random((4, 3))
        shown = ranker.rank(f"q{i % 7}", [f"{i}-{row}" for row in range(4)], features=features)
        best = f"{i}-{features[:, 0].argmax()}"
        if best in shown.items:
            ranker.click(shown.id, best)
        if i % 5:
            ranker.close(shown.id)
    assert states_that_differ(ranker) == []
    features = np.eye(4, 3)
    assert set(ranker.best("q1", features, ["w", "x", "y", "z"])) <= {"w", "x", "y", "z"}
    report = ranker.report()
    assert (report.queries, report.items, report.impressions) == (7, 480, 120)
    with pytest.raises(ValueError, match=r"candidates has 3 items; expected 4, as in the first call"):
        ranker.rank("q", ABC, features=np.zeros((3, 3)))
    with pytest.raises(ValueError, match=r"features has shape \(4, 2\); expected \(4, 3\)"):
        ranker.rank("q", [*ABC, "d"], features=np.zeros((4, 2)))
    with pytest.raises(ValueError, match="each call needs candidates, and their features"):
        ranker.rank("q", [*ABC, "d"])
    assert replace(ranker.report(), time="") == replace(report, time="")


# --------------------------------------------------------------------------------------------------------- log and warmth


def test_from_log_learns_in_the_order_of_time():
    rng = np.random.default_rng(0)
    lists, clicks, queries, times = (
        rng.permuted([[0, 1, 2]] * 40, axis=1),
        np.eye(3)[rng.integers(3, size=40)],
        [0, 1] * 20,
        np.arange(40),
    )
    log = ClickLog(lists, clicks, queries, ("a", "b", "c"), ("p", "q"), times=times)
    stored = []
    for each in (log, log[rng.permutation(40)]):
        ranker = Ranker.from_log(each, "CascadeTS", seed=0)
        served = ranker._journal.connection.execute("SELECT query, items FROM impressions ORDER BY number").fetchall()
        stored.append([(query, ranker._items.ids_of(np.frombuffer(items, np.int32))) for query, items in served])
    assert len(stored[0]) == 40
    assert stored[0] == stored[1]


@on_both
def test_from_log_begins_with_what_others_have_shown(tmp_path):
    lists, clicks = [[0, 1, 2], [1, 2, -1], [2, 0, 1]] * 40, [[0, 1, 0], [1, 0, 0], [0, 0, 1]] * 40
    log = ClickLog(lists, clicks, [0, 0, 1] * 40, ("a", "b", "c"), ("p", "q"))
    ranker = Ranker.from_log(log, n_positions=2, seed=0, store=tmp_path / "s.db")
    twin = CascadeTS(6, 2, seed=0)
    ids = [ranker._items.ids[item] for item in agent_of(ranker, "p").items[:3]]
    part = log[log.queries == 0]
    slots = np.array([ids.index(label) for label in log.item_labels] + [-1])
    twin.learn(type("Log", (), {"rankings": slots[part.items[:, :2]], "clicks": part.clicks[:, :2]}))
    for name in ("clicks", "examined"):
        assert np.array_equal(getattr(twin.state, name), getattr(agent_of(ranker, "p").agent.state, name))
    assert ranker.best("p")[0] == "b"
    report = ranker.report()
    assert (report.impressions, report.learned_from_log, report.clicks) == (0, 120, 0)
    assert "before, agents learned from 120 sessions of a log" in str(report)
    assert len(ranker.log()) == 0
    shown = ranker.rank("p")
    ranker.click(shown.id, position=1)
    ranker.close(shown.id)
    assert len(ranker.log()) == 1
    assert states_that_differ(ranker) == []
    with pytest.raises(ValueError, match="TopRank cannot learn from a log"):
        Ranker.from_log(log, "TopRank:horizon=1e5")
    ranker.shut_down()
    with pytest.raises(ValueError, match="holds impressions already; a log goes into a new store"):
        Ranker.from_log(log, n_positions=2, store=tmp_path / "s.db")


@on_both
def test_the_log_is_what_was_shown_and_clicked():
    ranker, expected = made(n_positions=3), []
    rng = random.Random(1)
    for _ in range(60):
        shown = ranker.rank(f"q{rng.randrange(3)}", rng.sample("abcdef", 4))
        clicks = [int(rng.random() < 0.4) for _ in range(3)]
        for place, click in enumerate(clicks, 1):
            if click:
                ranker.click(shown.id, position=place)
        last = max((place for place, click in enumerate(clicks, 1) if click), default=1)
        seen = rng.randint(last, 3)
        ranker.close(shown.id, seen=seen)
        expected.append([*zip(shown.items[:seen], clicks[:seen], strict=True)])
    log = ranker.log()
    there = [
        [(log.item_labels[item], click) for item, click in zip(items, clicks, strict=True) if item >= 0]
        for items, clicks in zip(log.items.tolist(), log.clicks.tolist(), strict=True)
    ]
    assert there == expected
    assert len(made().log()) == 0


# --------------------------------------------------------------------------------------------------------------- bad input

RANK = [
    ({"query": ""}, "query is an empty text; expected an id of 1 to 1,000 characters"),
    ({"query": "x" * 10_000_000}, "query is a text of 10,000,000 characters; expected an id"),
    ({"query": 1.5}, "query is 1.5; expected an id: a text or an integer"),
    ({"query": True}, "query is True; expected an id"),
    ({"query": 2**63}, "query is 9223372036854775808; expected an integer of 64 bits"),
    ({"query": "\ud800"}, "query is '\\\\ud800', which holds half a character"),
    ({"query": "new", "candidates": None}, "the query 'new' is new; give its candidates"),
    ({"candidates": ["a"]}, "candidates has 1 items; expected at least the 2 of a list"),
    ({"candidates": ["a", "b", "a"]}, "candidates holds 'a' twice; expected each id once"),
    ({"candidates": "abc"}, "candidates is 'abc'; expected a list of ids"),
    ({"candidates": {"a", "b"}}, "candidates is .*; expected a list of ids"),
    ({"candidates": ["a", None]}, r"candidates\[1\] is None; expected an id"),
    ({"candidates": ["a", "x" * 10_000_000]}, r"candidates\[1\] is a text of 10,000,000 characters"),
    ({"candidates": list("abcdefg")}, "candidates has 7 items; the query has room for 6"),
    ({"candidates": ABC, "features": [[1]]}, "CascadeTS does not look at features"),
]
CLICK = [
    (("nope", "a"), "there is no impression 'nope'"),
    ((7, "a"), "there is no impression 7"),
    (("x" * 10_000_000, "a"), "there is no impression 'xxx"),
    (("é" * 16, "a"), "there is no impression 'é"),
    ((None, "z"), "the impression .{16} does not show the item 'z'"),
    ((None, 1.5), "item is 1.5; expected an id"),
    ((None, "x" * 10_000_000), "item is a text of 10,000,000 characters"),
    ((None,), "click needs the item that was clicked, or its position"),
]


@pytest.mark.parametrize(("arguments", "message"), RANK)
def test_bad_calls_of_rank_are_refused_in_a_line(arguments, message):
    ranker = made()
    ranker.rank("q", ABC)
    before = [*ranker._journal.connection.iterdump()]
    with pytest.raises((ValueError, TypeError), match=message) as error:
        ranker.rank(**{"query": "q", "candidates": ABC, **arguments})
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300
    assert [*ranker._journal.connection.iterdump()] == before


@on_both
@pytest.mark.parametrize(("arguments", "message"), CLICK)
def test_bad_clicks_are_refused_in_a_line(arguments, message):
    ranker = made()
    shown = ranker.rank("q", ["a", "b"])
    with pytest.raises((ValueError, TypeError), match=message) as error:
        ranker.click(arguments[0] or shown.id, *arguments[1:])
    assert len(str(error.value)) < 300
    for position in (0, 3, True, "1"):
        with pytest.raises(ValueError, match=r"position is .*; expected an integer from 1 to n_positions = 2"):
            ranker.click(shown.id, position=position)
    assert ranker.report().clicks == 0
    ranker.click(shown.id, position=2)
    for seen, why in ((1, "seen is 1, but position 2 of the impression"), (3, "seen is 3; expected"), (-1, "seen is -1")):
        with pytest.raises(ValueError, match=why):
            ranker.close(shown.id, seen=seen)
    assert ranker.report().open == 1


SETTINGS = [
    ({"agent": "BatchRank:horizon=1e5"}, "BatchRank cannot choose from a subset of the items"),
    ({"agent": "PIE:horizon=1e5"}, "PIE cannot choose from a subset of the items"),
    ({"agent": "TopRank"}, "TopRank needs horizon, which no service knows: agent='TopRank:horizon=...'"),
    ({"agent": "PBMUCB"}, "PBMUCB needs examination, which no service knows"),
    ({"agent": "nope"}, "unknown agent 'nope'"),
    ({"agent": "CascadeTS:n_items=3"}, "n_items is set by the Ranker"),
    ({"agent": "CascadeTS:nope=3"}, "CascadeTS: .*unexpected keyword argument 'nope'"),
    ({"agent": lambda n_items, n_positions, seed: 3}, "makes 3; expected an agent"),
    ({"agent": clickgym.agents.PerState}, "PerState needs n_states"),
    ({"n_positions": 0}, "n_positions is 0"),
    ({"capacity": 1}, "capacity is 1; expected an integer of at least 2"),
    ({"patience": 0}, "patience is 0; expected a finite number > 0"),
    ({"update_every": 0}, "update_every is 0"),
    ({"update_seconds": -1}, "update_seconds is -1"),
    ({"memory": 0}, "memory is 0"),
    ({"most_candidates": 1}, "most_candidates is 1; expected an integer of at least 2"),
    ({"clock": lambda: float("nan")}, "clock returned nan; expected the seconds since 1970"),
    ({"clock": lambda: None}, "clock returned None; expected the seconds since 1970"),
    ({"clock": lambda: 1e300}, "clock returned 1e.300; expected the seconds since 1970"),
    ({"production": 3}, "production is 3; expected a function of query and candidates, or lists by query"),
    ({"production": {"q": ["a"]}}, "the list of production for 'q' has 1 items; expected at least 2"),
    ({"production": {"q": ["a", "b"], "r": ["a", "a"]}}, "the list of production for 'r' holds 'a' twice"),
    ({"production": {"q": ["a", "b"], 1.5: ["a", "b"]}}, "a query of production is 1.5; expected an id"),
    ({"production": {"q": "ab"}}, "the list of production for 'q' is 'ab'; expected a list of ids"),
    ({"production_share": 1.0}, r"production_share is 1.0; expected a number in \(0, 1\)"),
    ({"confidence": 0}, "confidence is 0"),
    ({"durable": "maybe"}, r"unknown durable 'maybe' \(there is: kill, power\)"),
    ({"seed": -1}, "seed is -1"),
    ({"clock": 3}, "clock is 3; expected a function"),
    ({"store": 3}, "store is 3; expected a path"),
]


@pytest.mark.parametrize(("settings", "message"), SETTINGS)
def test_wrong_settings_are_refused_before_any_work(settings, message, tmp_path):
    with pytest.raises((ValueError, TypeError), match=message):
        made(**{"store": tmp_path / "s.db", **settings})
    assert not any(tmp_path.iterdir())


def test_a_learner_of_the_last_display_is_refused():
    class Old(Agent):
        def __init__(self, n_items, n_positions, *, seed=None):
            self.n_positions = n_positions

        def rank(self, observation):
            return np.arange(self.n_positions)

        def update(self, observation, ranking, clicks, reward):
            pass

    with pytest.raises(ValueError, match="Old learns from the last display only, and in a service clicks come late"):
        made(Old)


def test_an_agent_is_saved_to_memory_as_to_a_file(tmp_path):
    agent = agent_of_new(made())
    assert isinstance(agent, CompiledAgent)
    agent.save(tmp_path / "a.npz")
    with (tmp_path / "b.npz").open("wb") as file:
        agent.save(file)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    with (tmp_path / "b.npz").open("rb") as file:
        assert CascadeTS.load(file).rank(None).tolist() == agent.rank(None).tolist()
