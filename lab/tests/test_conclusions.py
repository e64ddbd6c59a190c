"""What the boards say: places, what is recommended, what tuning spoils, and counts of tasks."""

import re
from pathlib import Path

import numpy as np
import pytest
from polars import col

from clickgym.core.statistics import worst_tenth
from clickgym.offline.decision.decide import AGENTS, FALLBACK, RECOMMENDED
from clickgym_lab.bench.conclusions import (
    RECOMMENDING,
    conclusions,
    recommended,
    tuned_lines,
    unsafe,
    worst,
)
from clickgym_lab.bench.leaderboard import _has_played, is_learner, is_tuned, leaderboard
from clickgym_lab.bench.protocol import CURRENT
from clickgym_lab.bench.reference import Line, lines, reference
from clickgym_lab.bench.score import _weights_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("board", CURRENT.boards[:2], ids=lambda board: board.name)
def test_places_are_intervals_that_hold_the_place_by_score(board):
    places = leaderboard(CURRENT, board)
    scores = [place.standing.overall.value for place in places]
    assert scores == sorted(scores, reverse=True)
    assert places[0].number == 1
    assert all(1 <= place.number <= place.last <= len(places) for place in places)
    assert sum(place.number <= i <= place.last for i, place in enumerate(places, 1)) >= 0.9 * len(places)


@pytest.mark.parametrize("board", CURRENT.boards, ids=lambda board: board.name)
def test_recommended_is_the_best_bad_run_of_those_that_are_not_told_apart_from_the_first(board):
    places = leaderboard(CURRENT, board)
    able = [place for place in places if is_learner(place) and not is_tuned(place) and place.standing.bad is not None]
    near = [place for place in able if place is able[0] or place.agent in able[0].tied]
    [own] = [place for place in places if place.recommended]
    assert own.standing.bad.value == max(place.standing.bad.value for place in near)
    assert own in near


def test_the_bad_run_is_the_mean_of_the_worst_of_five_runs_of_each_task():
    board = CURRENT.boards[0]
    place = next(place for place in leaderboard(CURRENT, board) if place.agent == "CascadeTS")
    rows = reference(CURRENT).filter(col("ability").is_in(board.abilities), agent="CascadeTS")
    worst_runs = rows.filter(col("run") < 5).group_by("ability", "task").agg(col("score").min())
    means = worst_runs.group_by("ability").agg(col("score").mean())["score"]  # it plays all tasks
    assert place.standing.bad.value == pytest.approx(means.mean())
    assert place.standing.bad.low < place.standing.bad.value < place.standing.bad.high


def test_a_line_stands_on_a_board_when_it_has_played_what_it_can():
    features = CURRENT.boards[2]
    shown = {place.agent: place for place in leaderboard(CURRENT, features)}
    assert "NeuralGreedy" in lines()
    assert "NeuralGreedy" not in shown  # it has not played contextual
    assert "RecurRank" in shown  # which cannot play personal
    assert shown["A2C:actions=rankings"].standing.n_tasks == len(CURRENT.tasks_of(features))
    assert shown["A2C:actions=rankings"].standing.bad is None
    assert not any(lines()[place.agent].learns for place in leaderboard(CURRENT, CURRENT.boards[0]))
    due, by_rankings = CURRENT.tasks_of(features), Line("PPO:actions=rankings", "PPO:actions=rankings", {})
    assert _has_played(by_rankings, due, [task.name for task in due])
    assert not _has_played(by_rankings, due, [task.name for task in due[1:]])
    assert _has_played(lines()["RecurRank"], due, [task.name for task in due if task.ability == "contextual"])


def test_a_first_look_tells_no_intervals_places_or_bad_runs():
    for place in leaderboard(CURRENT, CURRENT.boards[0], quick=True):
        assert (place.number, place.tied, place.recommended, place.standing.bad) == (0, (), False, None)
        assert "to" not in str(place.standing.overall)


def test_a_query_that_returns_has_one_weight():
    """The standard error of a mean over abilities is wider than if each drew its queries by itself."""
    names = [task.name for task in CURRENT.tasks() if task.query == "yandex-9"]
    assert len({CURRENT.by_name[name].ability for name in names}) > 4
    weights = _weights_of(names, CURRENT)
    assert (weights == weights[:, :1]).all()


def test_what_is_recommended_is_shown_with_its_bad_runs():
    take, said = recommended(), conclusions("docs")[:RECOMMENDING]
    for what, item in zip(("overall", "change", "safety"), said, strict=True):
        assert f"take `{lines(CURRENT)[take[what]].agent}`" in item
        assert ("bad run" if what == "overall" else "worst tenth") in item
    scores = reference(CURRENT).filter(agent=take["change"], ability="change")["score"].sort()
    assert f"{scores[: len(scores) // 10].mean():.2f}" in said[1]
    assert worst(take["change"], "change") == pytest.approx(scores[: len(scores) // 10].mean())
    lists = reference(CURRENT).filter(agent=take["safety"], ability="safety")["loss"]
    assert f"its {len(lists)} runs" in said[2]
    assert f"{100 * (lists > 0).mean():.0f} % of its runs have some" in said[2]
    assert f"{lists.max():,.0f} at most" in said[2]


def test_the_worst_tenth_is_a_mean_over_the_lowest():
    rng = np.random.default_rng(0)
    values = rng.permutation(100.0 - np.arange(100))
    assert worst_tenth(values) == worst_tenth(values.reshape(4, 25)) == 5.5
    assert np.isnan(worst_tenth([]))


def test_tuning_that_spoils_what_an_agent_is_made_for_is_not_quoted():
    """Planted: were tuned CascadeDUCB as good as before where users change, it would count, and lead by its gain."""
    places = {place.agent: place for place in leaderboard(CURRENT, CURRENT.boards[0])}
    kept, spoilt = tuned_lines(places)
    assert [re.findall(r"`(\w+)`", words)[0] for words in spoilt] == ["CascadeDUCB", "BubbleRank", "CascadeSWUCB"]
    assert {before.agent for before, _ in kept}.isdisjoint(("CascadeDUCB", "BubbleRank", "CascadeSWUCB"))
    standing = places["CascadeDUCB, tuned"].standing
    abilities = {**standing.abilities, "change": places["CascadeDUCB"].standing.abilities["change"]}
    healthy = places["CascadeDUCB, tuned"]._replace(standing=standing._replace(abilities=abilities))
    assert tuned_lines(places | {"CascadeDUCB, tuned": healthy})[0][0][0].agent == "CascadeDUCB"
    assert unsafe()["BubbleRank, tuned"].tenth > unsafe()["BubbleRank"].tenth


def test_the_rules_name_the_tasks_that_are_dropped():
    dropped = {task.name for task in CURRENT.candidates if not CURRENT.anchor(task).kept}
    text = (ROOT / "docs" / "scorecard.md").read_text(encoding="utf-8")
    [table] = re.findall(r"<!-- abilities -->(.*?)<!-- end", text, flags=re.DOTALL)
    assert set(re.findall(r"`(\w+-\d+)`", table)) == dropped


def test_the_first_default_agent_of_decide_is_the_one_that_the_scorecard_recommends():
    assert recommended()["overall"] == RECOMMENDED == AGENTS[0]


def test_the_fallback_is_the_best_published_agent_that_takes_little_time():
    """At most ten times the time of `Random` for its tasks."""
    board = CURRENT.boards[0]
    places = [place for place in leaderboard(CURRENT, board) if not is_tuned(place) and place.agent != RECOMMENDED]
    seconds = dict(reference(CURRENT).group_by("agent").agg(col("seconds").sum()).iter_rows())
    quick = [place.agent for place in places if is_learner(place) and seconds[place.agent] <= 10 * seconds["Random"]]
    assert next(name for name in quick if not name.startswith(RECOMMENDED)) == FALLBACK == AGENTS[1]
