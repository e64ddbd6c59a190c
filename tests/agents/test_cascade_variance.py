"""CascadeUCB-V: its index by hand, and where it pays."""

from __future__ import annotations

import math

import pytest
from reference_agents import each_model, follow, reference_of

import clickgym
from clickgym.agents import CascadeUCB1, CascadeUCBV
from clickgym.envs import CascadeModel

pytestmark = pytest.mark.uncompiled


@each_model
@pytest.mark.parametrize("feedback", ["last_click", "first_click"])
def test_five_items_on_three_positions(feedback, model):
    agent = CascadeUCBV(5, 3, variance=2.0, bias=0.1, feedback=feedback, seed=1)
    follow(agent, reference_of(agent), model, 800)


def test_index():
    """Of an item with a click in two examinations, one without a click, and one not examined. It is
    not cut at 1.
    """
    agent = CascadeUCBV(3, 2, seed=0)
    agent.update(None, [1, 0], [0, 1])
    agent.update(None, [1, 0], [0, 0])
    assert agent.rank().tolist() == [2, 0]
    level = math.log(3) / 2
    expected = [0.5 + math.sqrt(4 * 0.25 * level) + 6 * level, 6 * level, math.inf]
    assert agent.state.indices.tolist() == pytest.approx(expected)
    assert agent.state.indices[1] > 1


@pytest.mark.parametrize("name", ["variance", "bias"])
@pytest.mark.parametrize("value", [-1, math.nan, math.inf])
def test_wrong_weights(name, value):
    with pytest.raises(ValueError, match=rf"{name} is {value}; expected a finite number >= 0"):
        CascadeUCBV(5, 3, **{name: value})


@pytest.mark.slow
@pytest.mark.compiled
def test_it_pays_where_clicks_are_rare():
    """Less regret than CascadeUCB1 there, as the paper says; more where clicks are frequent."""
    lost = {}
    for top, others in ((0.05, 0.02), (0.5, 0.2)):
        model = CascadeModel([top] * 3 + [others] * 7, 3)
        for agent in (CascadeUCB1, CascadeUCBV):
            runs = [clickgym.run(agent, model, 10_000, seed=seed).regret[-1] for seed in range(3)]
            lost[top, agent] = max(runs), min(runs)
    assert lost[0.05, CascadeUCBV][0] < 0.9 * lost[0.05, CascadeUCB1][1]
    assert lost[0.5, CascadeUCB1][0] < 0.9 * lost[0.5, CascadeUCBV][1]
