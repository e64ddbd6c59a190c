"""`Ranker` with ``by=``: lists made of the agent's and its rival's, credit by display, the test at any time, and the stores."""

from __future__ import annotations

import math

import numpy as np
import pytest
from service_kills import change, state_of
from test_store import Mine

from clickgym import Ranker
from clickgym.offline import read_log
from clickgym.offline.interleaving import TeamDraft

on_both = pytest.mark.usefixtures("both")
ABC = ["a", "b", "c", "d"]
BACKWARDS = {"q": ABC[::-1]}


class Backwards(Mine):
    def rank(self, observation, candidates=None):
        return np.flatnonzero(candidates)[::-1][: self.n_positions]


def made(agent=Mine, **settings):
    settings = {"n_positions": 2, "seed": 0, "by": "team_draft", "interleaved_share": 1.0, **settings}
    return Ranker(agent, **settings)


def notes_of(ranker):
    """The notes by impression."""
    with ranker._journal.view() as view:
        return {number: note.tolist() for number, note in sorted(view.notes().items())}


def serve(ranker, n, clicked, query="q", candidates=ABC):
    """Show n lists; a function of the items says which are clicked."""
    for _ in range(n):
        shown = ranker.rank(query, candidates)
        for item in clicked(shown.items):
            ranker.click(shown.id, item)
        ranker.close(shown.id)


@pytest.mark.parametrize("rival", [{"production": BACKWARDS}, {"challenger": Backwards}], ids=["production", "challenger"])
def test_lists_have_the_law_of_team_draft_and_the_note_is_stored_with_the_impression(rival):
    """Null: each of the lists with its teams has the enumerated probability; 400 impressions, 5 standard errors."""
    ranker, counts = made(**rival), {}
    for _ in range(400):
        shown = ranker.rank("q", ABC)
        assert shown.source == "interleaved"
        key = tuple(ABC.index(item) for item in shown.items), tuple(list(notes_of(ranker).values())[-1])
        counts[key] = counts.get(key, 0) + 1
    items, notes, probabilities = TeamDraft().law([0, 1, 3, 2], [3, 2, 0, 1], 2)
    law = {(tuple(i.tolist()), tuple(n.tolist())): p for i, n, p in zip(items, notes, probabilities, strict=True)}
    assert set(counts) == set(law)
    assert all(abs(counts[key] / 400 - p) <= 5 * math.sqrt(p * (1 - p) / 400) for key, p in law.items())


@on_both
def test_late_clicks_credit_their_own_display():
    """Every user clicks what the agent brought, an hour late and in the reverse order: the agent wins each impression."""
    ranker = made(production=BACKWARDS)
    shown = [ranker.rank("q", ABC) for _ in range(30)]
    for each in shown:
        ranker.close(each.id)
    for each in reversed(shown):
        ranker.click(each.id, "a")
    credit = ranker.report().credit
    assert (credit.n, credit.wins, credit.losses, credit.mean) == (30, 30, 0, 1.0)
    assert credit.p_value < 1e-6
    assert credit.low == -math.inf  # nothing is said of the mean before 100 impressions


@on_both
def test_impressions_behind_one_that_is_open_wait():
    ranker = made(production=BACKWARDS)
    serve(ranker, 5, lambda items: ["a"])
    waiting = ranker.rank("q", ABC)
    serve(ranker, 5, lambda items: ["a"])
    assert ranker.report().credit.n == 5
    ranker.close(waiting.id)
    assert ranker.report().credit.n == 11


@on_both
def test_an_item_that_was_replaced_credits_nobody():
    ranker = made(production=lambda query, candidates: candidates[::-1], capacity=4)
    shown = ranker.rank("q", ABC)
    (note,) = notes_of(ranker).values()
    assert set(note) == {0.0, 1.0}
    ranker.rank("q", ["x", "y", "z", shown.items[0]])  # the item on the second position loses its slot
    ranker.click(shown.id, position=2)
    ranker.close(shown.id)
    assert [math.isnan(value) for value in next(iter(notes_of(ranker).values()))] == [False, True]


def test_equal_lists_are_nobodys():
    ranker = made(production={"q": ABC})
    serve(ranker, 120, lambda items: items[:1])
    credit = ranker.report().credit
    assert (credit.n, credit.wins, credit.losses, credit.mean, credit.p_value, credit.to_go) == (120, 0, 0, 0.0, 1.0, None)
    assert "not decided yet (no end in sight)" in str(credit)


def test_the_report_says_what_is_measured_and_what_is_not():
    ranker = made(production=BACKWARDS)
    assert "nothing interleaved with production is closed yet" in ranker.report().sentences()
    rng = np.random.default_rng(4)
    serve(ranker, 150, lambda items: [item for item in items if rng.random() < (0.8 if item in "ab" else 0.3)])
    report = ranker.report()
    (sentence,) = [each for each in report.sentences() if each.startswith("interleaved with production by team_draft")]
    assert "the agent is preferred. Credit is a preference for items of one list, not clicks" in sentence
    assert report.credit.low > 0
    assert report.credit.to_go == 0
    assert "lists chosen by the agent: 0, by production: 0, interleaved: 150" in report.sentences()
    assert report.to_dict()["credit"]["wins"] == report.credit.wins
    assert "preference for items of one list" in report.to_html()


@on_both
def test_probabilistic_interleaving_stores_probabilities():
    ranker = made(by="probabilistic", challenger=Backwards)
    serve(ranker, 120, lambda items: [item for item in items if item in "ab"])
    values = {value for note in notes_of(ranker).values() for value in note}
    assert any(0.0 < value < 0.5 for value in values)
    credit = ranker.report().credit
    assert 0.0 < credit.low < credit.mean < 1.0
    assert credit.p_value < 0.05


def test_users_without_a_preference_are_seldom_taken_for_some():
    """Null: clicks do not depend on the items; 40 stores of 150 impressions, p ≤ 0.05 in at most 5 % of them by the test; more
    than 6 of 40 would have a probability of 0.3 %."""
    rng, decided = np.random.default_rng(9), 0
    for _ in range(40):
        ranker = made(production=BACKWARDS)
        serve(ranker, 150, lambda items: [item for item in items if rng.random() < 0.4])
        decided += ranker.report().credit.p_value <= 0.05
    assert decided <= 6


def test_the_guard_does_not_use_credit_and_the_share_of_production_stays():
    ranker = made(Backwards, production={"q": ABC}, production_share=0.5)
    serve(ranker, 400, lambda items: [item for item in items if item in "ab"])
    assert ranker.report().credit.p_value < 1e-6
    assert not ranker._agents.of_query("q").guarded
    ranker = made(Backwards, production={"q": ABC}, production_share=0.5, interleaved_share=0.5)
    rng = np.random.default_rng(1)
    serve(ranker, 400, lambda items: [item for item in items if rng.random() < (0.5 if item in "ab" else 0.3)])
    report = ranker.report()
    assert report.interleaved > 150
    assert report.by_agent > 60
    assert report.by_production > 60
    assert report.difference.n == report.by_agent + report.by_production


@on_both
def test_a_challenger_learns_beside_the_agent_and_both_are_restored(tmp_path):
    """After a kill, from a replay of all events and from a snapshot."""
    settings = {"store": tmp_path / "s.db", "challenger": "CascadeTS", "production": BACKWARDS, "interleaved_share": 0.5}
    rng = np.random.default_rng(2)

    def clicked(items):
        return [item for item in items if rng.random() < 0.5]

    ranker = made("CascadeKLUCB", **settings)
    for step in range(3):
        serve(ranker, 60, clicked)
        serve(ranker, 10, clicked, candidates=["a", "b", "x"])  # another item comes
        served = ranker._agents.of_query("q")
        assert served.challenger.state.examined.sum() > 50
        before = state_of(served), [np.array(field) for field in served.challenger.state]
        if step == 1:
            ranker.snapshot()
        ranker._journal.shut_down()
        ranker = made("CascadeKLUCB", **settings)
        served = ranker._agents.of_query("q")
        assert state_of(served) == before[0]
        assert all(np.array_equal(array, other) for array, other in zip(served.challenger.state, before[1], strict=True))
    ranker.shut_down()
    without = made("CascadeKLUCB", store=tmp_path / "s.db", by=None)  # the same store, without a rival
    assert state_of(without._agents.of_query("q")) == before[0]
    assert without.report().credit.n > 50
    without.shut_down()


@on_both
def test_a_ranker_by_features_challenges_an_agent_by_features():
    class Learned:
        def best(self, features):
            return np.argsort(features[:, 0])

    ranker = Ranker("LinearTS", n_positions=2, by="team_draft", challenger=Learned(), interleaved_share=1.0, seed=0)
    features = np.array([[0.9], [0.5], [0.3], [0.1]])
    for _ in range(30):
        shown = ranker.rank("q", ABC, features=features)
        (team,) = [
            note for item, note in zip(shown.items, list(notes_of(ranker).values())[-1], strict=True) if item == "d"
        ] or [None]
        assert team != 1.0 or "a" not in shown.items  # the challenger's best is its own, unless the agent ranks it first, too
        ranker.click(shown.id, "a") if "a" in shown.items else None
        ranker.close(shown.id)
    assert ranker.report().credit.against == "Learned"


# ---------------------------------------------------------------------------------------------------------------- stores


def test_a_store_of_version_2_is_migrated_after_a_copy(tmp_path, warnings_of_service):
    path = tmp_path / "s.db"
    with Ranker("CascadeTS", n_positions=2, store=path, seed=0) as ranker:
        serve(ranker, 20, lambda items: items[:1])
        log = ranker.log()
    for statement in ("DROP TABLE interleaved", "PRAGMA user_version = 2"):  # as the version before had it
        change(path, statement)
    assert read_log(path).clicks.tolist() == log.clicks.tolist()
    with made("CascadeTS", store=path, production=BACKWARDS) as ranker:
        serve(ranker, 5, lambda items: items[:1])
        assert ranker.report().credit.n == 5
    copy = tmp_path / "s.db.v2"
    assert warnings_of_service == [f"{path} was of version 2 and now is of version 3; {copy} is a copy of before"]
    assert read_log(copy).clicks.tolist() == log.clicks.tolist()
    assert len(read_log(path)) == len(log) + 5


@on_both
def test_a_store_keeps_its_method_and_its_rival(tmp_path):
    path = tmp_path / "s.db"
    made("CascadeTS", store=path, production=BACKWARDS).shut_down()
    with pytest.raises(ValueError, match="was made with against = production, not CascadeKLUCB"):
        made("CascadeTS", store=path, challenger="CascadeKLUCB")
    with pytest.raises(ValueError, match="was made with by = team_draft, not probabilistic"):
        made("CascadeTS", store=path, production=BACKWARDS, by="probabilistic")


class Best:
    def best(self, features):
        return [0, 1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"by": "balanced", "production": BACKWARDS}, r"unknown by 'balanced'.* \(there is: team_draft, probabilistic\)"),
        ({"by": "team_draft"}, "by is given, and nothing to interleave with: expected production= or challenger="),
        ({"by": None, "challenger": "CascadeTS"}, "challenger is given without by"),
        (
            {"agent": "TopRank:horizon=1000", "production": BACKWARDS},
            "TopRank learns from its displays only, and an interleaved",
        ),
        ({"challenger": "UniRank"}, "UniRank learns from its displays only, and an interleaved list is foreign to it"),
        ({"challenger": "BatchRank:horizon=1000"}, "BatchRank cannot choose from a subset of the items"),
        ({"challenger": "LinearTS"}, "CascadeTS and LinearTS: one ranks by features, the other does not"),
        ({"challenger": Best()}, "challenger ranks by features, and CascadeTS is given none"),
        ({"challenger": "Nobody"}, "unknown agent 'Nobody'"),
        ({"production": BACKWARDS, "interleaved_share": 1.5}, "interleaved_share is 1.5; expected a number in"),
    ],
)
def test_what_cannot_be_interleaved_is_refused_in_one_line(settings, message):
    with pytest.raises(ValueError, match=message) as error:
        made(**{"agent": "CascadeTS", **settings})
    assert "\n" not in str(error.value)
