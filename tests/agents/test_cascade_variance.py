"""CascadeUCB-V: its reference, and its index by hand."""

from __future__ import annotations

import math

import pytest
from reference_agents import each_model, follow, reference_of

from clickgym.agents import CascadeUCBV

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
    for clicks in ([0, 1], [0, 0]):
        agent.ranking[:] = [1, 0]
        agent.update(None, [1, 0], clicks)
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
