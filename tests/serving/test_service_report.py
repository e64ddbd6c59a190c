"""What a service says of itself."""

import json
import math
import random

import numpy as np
import pytest
from service_kills import states_that_differ

from clickgym import Ranker
from clickgym.agents import Agent
from clickgym.serving.report import MOST_QUERIES

on_both = pytest.mark.usefixtures("both")


class Fickle(Agent):
    """Shows one item for a time, then another."""

    learns_from = "any list"

    def __init__(self, n_items, n_positions, *, seed=None):
        self.sessions = 0

    def rank(self, observation, candidates=None):
        self.sessions += 1
        return np.array([int(self.sessions > 60)])

    def update(self, observation, ranking, clicks, reward, *, display=None, void=None):
        pass


def users(ranker, sessions, query="q", seed=0, rates=(("good", 0.9), ("fair", 0.5), ("bad", 0.0))):
    rng, rates = random.Random(seed), dict(rates)
    for _ in range(sessions):
        shown = ranker.rank(query, list(rates))
        for item in shown.items:
            if rng.random() < rates[item]:
                ranker.click(shown.id, item)
        ranker.close(shown.id)


def made(production, agent="Random", **settings):
    return Ranker(agent, n_positions=1, seed=0, production=production, **{"production_share": 0.3, **settings})


def seal(ranker):
    """The lot falls as always."""
    ranker._secret = b"0" * 16
    return ranker


def test_the_difference_is_that_of_agent_and_production():
    ranker = seal(made({"q": ["fair"]}, "CascadeTS"))
    users(ranker, 1500)
    report = ranker.report()
    assert report.by_agent + report.by_production == report.impressions == 1500
    assert report.by_production == pytest.approx(450, abs=60)
    n, mean, low, high = report.difference
    assert n == 1500
    assert low > 0
    assert mean == pytest.approx(0.4, abs=0.1)
    assert high > 0.4
    assert "the agent is better" in str(report)
    inside = ranker._agents.of_query("q").trial.interval()
    assert inside == pytest.approx(report.difference)


def test_the_guard_gives_a_query_back_and_says_so(warnings_of_service):
    ranker = seal(made(lambda query, items: ["good"] if query != "free" else None))
    users(ranker, 1500)
    assert "the query 'q': back to production; the agent's lists earn" in warnings_of_service[0]
    assert {ranker.rank("q").source for _ in range(50)} == {"production"}
    assert ranker.rank("free", ["good", "bad"]).source == "agent"
    users(ranker, 10, "fine", rates=(("good", 0.9), ("great", 0.9)))
    report = ranker.report()
    assert report.guarded == ("q",)
    assert report.n_guarded == 1
    assert "back to production, because the agent surely is worse: q" in str(report)
    assert [row.guarded for row in report.traffic] == [True, False, False]
    assert report.difference.n < 1500  # what the guard shows is no experiment
    assert states_that_differ(ranker) == []


def test_an_agent_that_is_no_worse_stays():
    for seed in range(5):
        ranker = made(lambda query, items: ["a"], production_share=0.3)
        users(ranker, 300, seed=seed, rates=(("a", 0.5), ("b", 0.5)))
        assert ranker.report().n_guarded == 0


@on_both
def test_the_guard_holds_after_a_restart(tmp_path):
    settings = {"production": {"q": ["good"]}, "store": tmp_path / "s.db"}
    with seal(made(**settings)) as ranker:
        users(ranker, 1500)
        assert ranker.report().n_guarded == 1
    with made(**settings) as ranker:
        assert {ranker.rank("q").source for _ in range(30)} == {"production"}


@on_both
def test_what_is_open_ends_the_comparison():
    """The order in which impressions are closed depends on what was shown, that in which they are shown does not."""
    ranker = made({"q": ["good"]})
    first = ranker.rank("q", ["good", "bad"])
    users(ranker, 20, rates=(("good", 0.9), ("bad", 0.0)))
    assert ranker.report().difference.n == 0
    assert "nothing to compare yet" in str(ranker.report())
    ranker.close(first.id)
    assert ranker.report().difference.n == 21


@on_both
def test_late_clicks_do_not_change_what_was_compared():
    ranker = made({"q": ["good"]})
    shown = ranker.rank("q", ["good", "bad"])
    ranker.close(shown.id)
    before = ranker.report()
    ranker.click(shown.id, position=1)
    assert ranker.report().difference == before.difference
    assert ranker.report().late == 1


def test_lists_of_production_are_checked():
    for given, why in (
        (["x"], "the list of production for 'q' has 0 candidates; expected at least 1"),
        (["a", "a"], "the list of production for 'q' holds 'a' twice"),
        ("ab", "the list of production for 'q' is 'ab'; expected a list of ids"),
    ):
        ranker = made(lambda query, items, given=given: given)
        with pytest.raises((ValueError, TypeError), match=why):
            ranker.rank("q", ["a", "b"])
        assert ranker.report().impressions == 0
    assert made({"other": ["a"]}).rank("q", ["a", "b"]).source == "agent"


def test_an_agent_changes_its_mind():
    ranker = Ranker(Fickle, n_positions=1, seed=0)
    for query, sessions in (("q", 100), ("short", 39), ("steady", 50)):
        users(ranker, sessions, query)
    report = ranker.report()
    assert (report.compared, report.changed) == (2, 1)
    assert "of 2 agents with 40 impressions and more 1 changed their mind" in str(report)


def test_text_page_and_json_say_the_same(tmp_path):
    ranker = seal(made({"<b>&\u202e": ["fair"]}, "CascadeTS"))
    users(ranker, 300, "<b>&\u202e")
    report = ranker.report()
    for ending in ("txt", "html", "json"):
        report.save(tmp_path / f"report.{ending}")
    page, text = ((tmp_path / f"report.{ending}").read_text(encoding="utf-8") for ending in ("html", "txt"))
    figures = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert text == f"{report}\n"
    assert "&lt;b&gt;&amp;\\u202e" in page
    assert "<script" not in page
    assert figures["impressions"] == 300
    assert figures["difference"]["mean"] == report.difference.mean
    assert figures["positions"][0]["agent_seen"] + figures["positions"][0]["production_seen"] == 300
    for sentence in report.sentences():
        assert sentence in text
    with pytest.raises(ValueError, match=r"report.pdf must end with .html, .txt or .json"):
        report.save(tmp_path / "report.pdf")
    assert "300 impressions" in report._repr_html_()


def test_an_empty_store_has_a_report():
    report = Ranker(n_positions=2, seed=0, production={}).report()
    assert report.impressions == 0
    assert math.isnan(report.late_share)
    assert json.loads(json.dumps(report.to_dict()))["difference"] == {"n": 0, "mean": None, "low": None, "high": None}
    assert "0 impressions" in report.to_html()


def test_the_queries_with_most_traffic_are_named():
    ranker = Ranker("Random", n_positions=1, seed=0)
    for i in range(MOST_QUERIES + 5):
        for _ in range(i % 3 + 1):
            ranker.rank(i, ["a", "b"])
    report = ranker.report()
    assert report.queries == MOST_QUERIES + 5
    assert len(report.traffic) == MOST_QUERIES
    assert [row.impressions for row in report.traffic][:9] == [3] * 8 + [2]


def test_numbers_stand_to_the_right_and_queries_to_the_left():
    ranker = Ranker(n_positions=2, seed=0)
    for query, n in (("a long query", 1), ("q", 12)):
        for _ in range(n):
            ranker.rank(query, ["a", "b"])
    head, *lines = str(ranker.report()).split("\n\n")[-1].splitlines()
    assert head.startswith("query         impressions  clicks")
    assert [line[:25] for line in lines] == ["q                      12", "a long query            1"]
