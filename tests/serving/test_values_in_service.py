"""`Ranker` with ``item_values=``: who ranks by value, what is compared, restarts, logs, and bad input."""

from __future__ import annotations

import numpy as np
import pytest
from service_kills import states_that_differ
from test_interleaved import ABC, Backwards, serve
from test_store import Mine
from workers import at_once, gaps

from clickgym import Ranker, decide
from clickgym.agents import CascadeKLUCB, CascadeTS, CascadeUCB1
from clickgym.offline import ClickLog, read_log
from clickgym.serving.confidence import PairedDifference

on_both = pytest.mark.usefixtures("both")
VALUES = {"a": 0.5, "b": 1.0, "c": 4.0, "d": 8.0, "e": 3.0, "f": 0.0}


def made(agent="CascadeTS", **settings):
    return Ranker(agent, **{"n_positions": 2, "seed": 0, "item_values": VALUES, **settings})


@pytest.mark.parametrize(
    "agent", ["CascadeTS", "CascadeUCB1", "CascadeKLUCB", "PBMTS:examination=[1,0.5]", "PBMUCB:examination=[1,0.5]"]
)
def test_an_agent_by_value_learns_to_show_what_earns_most(agent):
    """a and b are clicked more often, c and d are worth more: .9 · .5 and .8 · 1 against .5 · 4 and .4 · 8; fixed seeds."""
    ranker, rng = made(agent), np.random.default_rng(1)
    chances = dict(zip(ABC, (0.9, 0.8, 0.5, 0.4), strict=True))
    serve(ranker, 400, lambda items: [item for item in items if rng.random() < chances[item]])
    assert sorted(ranker.best("q")) == ["c", "d"]
    assert set(ranker.rank("q").items) <= set(ABC)


@on_both
def test_a_new_item_takes_its_value_to_its_slot():
    ranker = made(capacity=4)
    ranker.rank("q", ABC)
    ranker.rank("q", ["a", "b", "e", "f"])
    served = ranker._agents.of_query("q")
    there = [ranker._items.ids[item] for item in served.items]
    assert sorted(there) == ["a", "b", "e", "f"]
    assert served.agent.state.item_values.tolist() == [VALUES[item] for item in there]
    for _ in range(50):  # an item that earns nothing is never better than one that may
        assert "f" not in ranker.rank("q").items


@on_both
def test_an_agent_by_features_sees_the_values_of_its_candidates():
    ranker, rng = made("LinearTS"), np.random.default_rng(2)
    chances = dict(zip(ABC, (0.9, 0.8, 0.5, 0.4), strict=True))
    for _ in range(300):
        candidates = rng.permutation(ABC).tolist()
        shown = ranker.rank("q", candidates, features=[[float(item == other) for other in ABC] for item in candidates])
        for item in shown.items:
            if rng.random() < chances[item]:
                ranker.click(shown.id, item)
        ranker.close(shown.id)
    assert ranker.best("q", features=np.eye(4), candidates=ABC) == ["d", "c"]
    with pytest.raises(ValueError, match="candidates holds 'x', of which item_values has no value"):
        ranker.best("q", features=np.eye(4), candidates=[*ABC[:3], "x"])


@pytest.mark.parametrize("agent", ["CascadeTS", "LinearTS", Mine])
def test_after_a_restart_all_is_as_before(tmp_path, agent):
    """With items that lose their slots, and a price list that knows fewer and more items than the store."""
    store, rng = tmp_path / "s.db", np.random.default_rng(0)

    more = {"features": np.eye(4)} if agent == "LinearTS" else {}
    settings = {"capacity": 4, "production": lambda query, candidates: candidates, "production_share": 0.3}
    with made(agent, store=store, **settings) as ranker:
        for _ in range(60):
            shown = ranker.rank("q", sorted(rng.choice(list(VALUES), 4, replace=False).tolist()), **more)
            ranker.click(shown.id, position=1 + int(rng.integers(2)))
            ranker.close(shown.id)
        assert states_that_differ(ranker) == []
        report, log = str(ranker.report()), ranker.log()
    assert "value an impression" in report
    with made(agent, store=store, item_values={"a": 0.5, "new": 7.0}, **settings) as ranker:
        shown = ranker.rank("q", ["new", *ABC[:3]], **more)
        assert states_that_differ(ranker) == []
        ranker.close(shown.id)
    shown = np.array(log.item_labels)[log.items]
    assert {(item, value) for item, value in zip(shown.flat, log.values.flat, strict=True)} <= set(VALUES.items())
    assert (read_log(store).values[:60] == log.values).all()


@on_both
def test_the_comparison_counts_values_and_their_variance():
    """Clicks say that the agent is better, values that it is worse. The interval is that of the sums of values."""
    ranker, rng = made(Mine, production=lambda query, ids: ids[::-1], production_share=0.5), np.random.default_rng(5)
    chances, expected = dict(zip(ABC, (0.9, 0.8, 0.5, 0.4), strict=True)), PairedDifference(12.0, 0.95)
    while not ranker.report().guarded:
        shown = ranker.rank("q", ABC)
        clicked = [item for item in shown.items if rng.random() < chances[item]]
        for item in clicked:
            ranker.click(shown.id, item)
        ranker.close(shown.id)
        expected.add(sum(VALUES[item] for item in clicked), by_agent=shown.source == "agent", share=0.5)
    report = ranker.report()
    assert report.guarded == ("q",)
    assert report.difference.mean < -1.0
    assert report.difference == pytest.approx(expected.interval())
    assert ranker._agents.of_query("q").trial.interval() == expected.interval()
    assert "value an impression" in next(each for each in report.sentences() if each.startswith("agent against production"))


@on_both
def test_credit_stays_a_preference_of_clicks_and_the_report_says_so():
    ranker = made(by="team_draft", challenger="CascadeUCB1", interleaved_share=1.0)
    serve(ranker, 20, lambda items: items[:1])
    assert any("credit counts clicks, not their values" in each for each in ranker.report().sentences())
    assert {type(each).__name__ for each in (ranker._agents.of_query("q").agent, ranker._agents.of_query("q").challenger)} == {
        "CascadeTSByValue", "CascadeUCB1ByValue"
    }  # fmt: skip


def test_agents_that_cannot_rank_by_value_serve_and_are_warned_of(warnings_of_service):
    made(Backwards)
    made("TopRank:horizon=1000")
    made("CascadeTS")
    assert warnings_of_service == [
        f"{name} maximises clicks, not their item_values; the comparison counts values" for name in ("Backwards", "TopRank")
    ]


def test_decide_reads_the_values_of_a_store(tmp_path):
    rng, store = np.random.default_rng(3), tmp_path / "s.db"
    with made(store=store) as ranker:
        serve(ranker, 300, lambda items: [item for item in items if rng.random() < 0.5])
    assert read_log(store).values.max() == 8.0
    assert decide(store, agents=["CascadeTS"], horizon=500, runs=1).unit == "value per session"


@on_both
def test_a_ranker_learns_from_a_log_by_value():
    log = ClickLog([[0, 1], [1, 0]] * 200, [[1, 1], [1, 1]] * 200, [0] * 400, ("a", "d"), ("q",))
    ranker = Ranker.from_log(log, "PBMTS:examination=[1,1]", seed=0, item_values=VALUES)
    assert ranker.best("q") == ["d", "a"]
    with pytest.raises(ValueError, match="item_labels holds 'd', of which item_values has no value"):
        Ranker.from_log(log, seed=0, item_values={"a": 1.0})


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"a": -1.0}, "item_values['a'] is -1.0; expected a finite number >= 0"),
        ({"a": float("inf")}, "item_values['a'] is inf; expected a finite number >= 0"),
        ({"a": "1"}, "item_values['a'] is '1'; expected a finite number >= 0"),
        ({"a": 0.0, "b": 0}, "item_values are all 0; expected at least one above 0"),
        ({}, "item_values is empty; expected at least one above 0"),
        ({1.5: 1.0}, "an item of item_values is 1.5, which is no id"),
        ([1.0, 2.0], "item_values is [1.0, 2.0]; expected the value of each item, by its id"),
    ],
)  # fmt: skip
def test_bad_values_are_refused_in_one_line(values, text):
    with pytest.raises((ValueError, TypeError)) as caught:
        made(item_values=values)
    assert text.removesuffix(", which is no id") in str(caught.value)
    assert "\n" not in str(caught.value)


@on_both
def test_a_candidate_without_a_value_is_refused_and_nothing_is_stored():
    ranker = made()
    ranker.rank("q", ABC)
    with pytest.raises(ValueError, match="candidates holds 'x', of which item_values has no value"):
        ranker.rank("q", [*ABC, "x"])
    assert (ranker.report().impressions, ranker.report().items) == (1, 4)


@on_both
def test_a_store_is_made_with_values_or_without_and_an_item_keeps_its_value(tmp_path):
    name = r"(s\.db|\?schema=test_\d+)"
    for first, second, word in ((None, VALUES, "without"), (VALUES, None, "with")):
        store = tmp_path / word / "s.db"
        store.parent.mkdir()
        with made(store=store, item_values=first) as ranker:
            ranker.rank("q", ABC)
        with pytest.raises(ValueError, match=rf"{name} was made {word} item_values; for others make a new store"):
            made(store=store, item_values=second)
    with pytest.raises(ValueError, match=rf"item_values has 9 for 'd', of which .*{name} has 8; an item keeps its value"):
        made(store=store, item_values=VALUES | {"d": 9.0})


# ------------------------------------------------------------------------------------------------------- several processes


@pytest.mark.parametrize("agent", ["CascadeTS", "LinearTS"])
def test_workers_learn_the_values_of_items_that_others_have_added(address, agent):
    """Each worker knows the prices of its own items only, and ranks those of the other after it has met them."""
    settings = {"store": address, "capacity": 6, "production": lambda query, ids: ids, "production_share": 0.5}
    first = made(agent, item_values={item: VALUES[item] for item in "abc"}, **settings)
    second = made(agent, item_values={item: VALUES[item] for item in "def"}, **settings)
    rng, features = np.random.default_rng(0), {"features": np.eye(3)} if agent == "LinearTS" else {}
    for _ in range(30):
        for worker, items in ((first, "abc"), (second, "def"), (first, "cde")):
            shown = worker.rank("q", list(items), **features)
            second.click(shown.id, position=1 + int(rng.integers(2)))
            first.close(shown.id)
    for worker in (first, second):
        assert gaps(worker) == []
        assert states_that_differ(worker) == []
        assert worker._item_values.items() <= VALUES.items()
    assert first.report().difference == second.report().difference
    log = read_log(address)
    shown = np.array(log.item_labels)[log.items]
    assert {(item, value) for item, value in zip(shown.flat, log.values.flat, strict=True)} <= set(VALUES.items())
    assert first.report().valued


def test_the_value_of_an_item_stands_in_the_store_once(address):
    """Who gives another one is refused, when it starts and when it meets the item; nothing of its call is stored."""
    first, second = made(store=address), made(store=address, item_values=VALUES | {"d": 9.0})
    first.rank("q", ABC)
    text = r"item_values has 9 for 'd', of which postgresql://judge@127\.0\.0\.1.* has 8; an item keeps its value"
    with pytest.raises(ValueError, match=text):
        second.rank("other", ["d", "e", "f"])
    with pytest.raises(ValueError, match=text):
        made(store=address, item_values=VALUES | {"d": 9.0})
    assert (first.report().queries, first.report().items) == (1, 4)


def test_of_processes_that_add_items_at_the_same_time_one_gives_the_value(address):
    """Each of four workers gives item i the value i or i + 1; whose is stored goes on, the others are refused."""
    workers = [made(store=address, item_values={item: item + 1.0 + place % 2 for item in range(40)}) for place in range(4)]
    answers = [[] for _ in workers]

    def work(place):
        for start in range(0, 40, 2):
            try:
                workers[place].rank(place, [start, start + 1])
                answers[place].append("")
            except ValueError as error:
                answers[place].append(str(error))

    at_once(work, range(4))
    items = [*workers[0]._journal.items()]
    assert sorted(item.id for item in items) == [*range(40)]
    stored = {item.id: item.value - item.id - 1.0 for item in items}
    for place, answered in enumerate(answers):
        assert len(answered) == 20
        own = [all(stored[start + i] == place % 2 for i in (0, 1)) for start in range(0, 40, 2)]
        assert [not error for error in answered] == own
        assert all("an item keeps its value" in error for error in answered if error)


@pytest.mark.parametrize("kind", [CascadeUCB1, CascadeTS, CascadeKLUCB])
def test_all_items_as_candidates_give_the_lists_without_candidates(kind):
    values = [1.0, 3.0, 3.0, 2.0, 5.0]
    plain, masked = (kind(5, 3, item_values=values, seed=4) for _ in range(2))
    rng = np.random.default_rng(0)
    for _ in range(60):
        lists = plain.rank(), masked.rank(None, np.ones(5, bool))
        assert (lists[0] == lists[1]).all()
        clicks = rng.integers(0, 2, 3)
        for agent, ranking in zip((plain, masked), lists, strict=True):
            agent.update(None, ranking, clicks)
