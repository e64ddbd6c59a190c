"""The agents that ``clickgym decide`` compares by default are those that the scorecard says."""

from __future__ import annotations

from clickgym.lab.bench.leaderboard import leaderboard
from clickgym.lab.bench.protocol import VERSION_1
from clickgym.offline.decision.decide import AGENTS

SLOWEST = 10
"""A default agent takes at most so many times the time of Random for the tasks that it plays."""


def test_the_default_agents_of_decide_score_highest_of_those_that_need_no_knowledge_and_little_time():
    """The fitted users do not change, so the ability that counts is ``standard``."""
    seconds = {place.agent: place.seconds / place.standing.n_tasks for place in leaderboard(VERSION_1)}
    scores = {
        place.agent: place.standing.abilities["standard"].value
        for place in leaderboard(VERSION_1)
        if not place.told and "standard" in place.standing.abilities and seconds[place.agent] <= SLOWEST * seconds["Random"]
    }
    assert set(AGENTS) == set(sorted(scores, key=scores.__getitem__)[-len(AGENTS) :])
