"""The cascade agents: what counts as examined, and what is known at the start."""

from __future__ import annotations

import pytest

from clickgym.agents import DCMKLUCB, CascadeKLUCB, CascadeTS, CascadeUCB1

pytestmark = pytest.mark.uncompiled


@pytest.mark.parametrize("agent_class", [CascadeUCB1, CascadeTS])
@pytest.mark.parametrize(
    ("feedback", "clicks", "examined", "counted"),
    [
        ("last_click", [0, 1, 0, 1, 0], [1, 1, 1, 1, 0], [0, 1, 0, 1, 0]),
        ("first_click", [0, 1, 0, 1, 0], [1, 1, 0, 0, 0], [0, 1, 0, 0, 0]),
        ("last_click", [0, 0, 0, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]),
    ],
)
def test_what_counts_as_examined(agent_class, feedback, clicks, examined, counted):
    agent = agent_class(6, 5, feedback=feedback, seed=0)
    ranking = agent.rank()
    agent.update(None, ranking, clicks)
    assert agent.state.examined[ranking].tolist() == examined
    assert agent.state.clicks[ranking].tolist() == counted


@pytest.mark.parametrize("agent_class", [CascadeUCB1, CascadeKLUCB, DCMKLUCB])
def test_no_item_is_observed_before_the_first_list(agent_class):
    """The papers observe each item once at the start. An item observed without a click would then
    rank below those that are always clicked; here each item is shown before any comes again.
    """
    agent, shown = agent_class(6, 2, seed=0), []
    assert agent.state.examined.tolist() == 6 * [0]
    for _ in range(3):
        ranking = agent.rank()
        agent.update(None, ranking, [1, 1])
        shown += ranking.tolist()
    assert sorted(shown) == list(range(6))
