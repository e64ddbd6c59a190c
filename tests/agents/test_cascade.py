"""The cascade agents: what counts as examined, candidates, late clicks and replaced items."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference_agents import MODELS, CascadeReference

from clickgym.agents import CascadeKLUCB, CascadeTS, CascadeUCB1

by_index = pytest.mark.parametrize("agent_class", [CascadeUCB1, CascadeKLUCB])


class Checked(CascadeReference):
    """With the indices compared, too."""

    def allows(self, ranking, drawn=None, features=None):
        return super().allows(ranking) and np.allclose(drawn.indices, self.indices(), rtol=1e-9)


@by_index
def test_candidates_are_ranked_and_clicks_come_late(agent_class):
    """t counts displays, not clicks: 40 lists are shown before the first of them is answered, in another order."""
    agent, rng = agent_class(5, 3, seed=2), np.random.default_rng(5)
    reference = Checked(5, 3, "UCB1" if agent_class is CascadeUCB1 else "KL", "last_click")
    for _ in range(3):
        waiting = {}
        for _ in range(40):
            available = rng.permutation(5) < 4
            ranking = agent.rank(candidates=available).tolist()
            index = [value if can else -math.inf for value, can in zip(reference.indices(), available, strict=True)]
            np.testing.assert_allclose([index[item] for item in ranking], sorted(index, reverse=True)[:3], rtol=1e-9)
            waiting[agent.display] = ranking
            reference.t = agent.display + 1
        for display in rng.permutation(list(waiting)).tolist():
            clicks = MODELS["PBM"].sample(np.array(waiting[display]), rng)
            agent.update(None, waiting[display], clicks, display=display)
            reference.learn(waiting[display], clicks.tolist())
            reference.t = agent.display + 1
    assert reference.agrees(agent.state)


@pytest.mark.parametrize("agent_class", [CascadeUCB1, CascadeTS])
@pytest.mark.parametrize(
    ("feedback", "clicks", "void", "examined", "counted"),
    [
        ("last_click", [0, 1, 0, 1, 0], [], [1, 1, 1, 1, 0], [0, 1, 0, 1, 0]),
        ("first_click", [0, 1, 0, 1, 0], [], [1, 1, 0, 0, 0], [0, 1, 0, 0, 0]),
        ("last_click", [0, 0, 0, 0, 0], [], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]),
        ("last_click", [0, 0, 0, -1, -1], [], [1, 1, 1, 0, 0], [0, 0, 0, 0, 0]),
        ("last_click", [1, 0, 1, 0, 0], [0, 2], [0, 1, 0, 0, 0], [0, 0, 0, 0, 0]),
        ("first_click", [0, 0, 1, 0, 0], [2], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]),
    ],
)
def test_what_counts_as_examined(agent_class, feedback, clicks, void, examined, counted):
    agent = agent_class(6, 5, feedback=feedback, seed=0)
    ranking = agent.rank()
    agent.update(None, ranking, clicks, void=np.isin(np.arange(5), void))
    assert agent.state.examined[ranking].tolist() == examined
    assert agent.state.clicks[ranking].tolist() == counted


@by_index
def test_lists_of_others_raise_the_clock_and_a_replaced_item_is_as_new(agent_class):
    agent, new = (agent_class(5, 3, seed=8) for _ in range(2))
    new = new.state._asdict()
    for _ in range(20):
        agent.update(None, [0, 1, 2], [0, 1, 1])
    assert agent.state.t[0] == agent.display == 20
    agent.replace(1)
    for field in {"clicks", "examined", "mean", "width", "peak"} & new.keys():
        assert getattr(agent.state, field)[1] == new[field][1], field
    assert 1 in agent.rank(), "the new item comes first"
