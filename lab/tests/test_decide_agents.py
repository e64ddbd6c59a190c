"""The agents that ``clickgym decide`` compares by default are those that the scorecard recommends."""

from clickgym.offline.decision.decide import AGENTS, FALLBACK, RECOMMENDED
from clickgym_lab.bench.conclusions import is_learner, is_tuned, recommended
from clickgym_lab.bench.leaderboard import leaderboard
from clickgym_lab.bench.protocol import CURRENT

SLOWEST = 10
"""The fallback takes at most so many times the time of `Random` for its tasks."""


def test_the_first_default_agent_of_decide_is_the_one_that_the_scorecard_recommends():
    assert recommended()["overall"] == RECOMMENDED == AGENTS[0]


def test_the_fallback_is_the_best_published_agent_that_takes_little_time():
    board = CURRENT.boards[0]
    places = [place for place in leaderboard(CURRENT, board) if not is_tuned(place) and place.agent != RECOMMENDED]
    [random] = [place.seconds for place in leaderboard(CURRENT, board) if place.agent == "Random"]
    quick = [place.agent for place in places if is_learner(place) and place.seconds <= SLOWEST * random]
    assert next(name for name in quick if not name.startswith(RECOMMENDED)) == FALLBACK == AGENTS[1]


def test_the_others_are_compared_with_the_base_of_the_board():
    assert AGENTS[2] == CURRENT.boards[0].base
