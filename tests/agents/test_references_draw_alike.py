"""Tests of the distribution of every agent's lists: the lists that the agent draws in one state,
against those that its reference draws as the docstring describes.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from tests.helpers.registries import CLICK_AGENTS, CONTEXTUAL_AGENTS, NETWORK_AGENTS
from tests.reference_agents.models import MODELS, make
from tests.reference_agents.registry import reference_of

pytestmark = pytest.mark.uncompiled

SESSIONS = {"UniRank": 16, "GRAB": 12, "RankedKLUCB": 47, "BatchRank": 61}
"""Numbers of sessions that an agent learns from before its lists are drawn: enough for ties,
replacements or fillers to occur. Other agents learn from 60.
"""
DRAWS = {"NeuralGreedy": 500, "GRAB": 1500, "RankedKLUCB": 2500, "PBMTS": 3000}
"""Numbers of lists drawn from slow agents. Other agents draw 5,000."""
EXPECTED = {"MixTS": 10_000, "DBGD": 10_000}
"""Numbers of lists drawn from slow references. Other references draw 20,000."""
FALSE_ALARM = 1e-4
USERS = MODELS["PBM"]
ARGUMENTS: dict[str, dict[str, Any]] = {
    "EpsilonGreedy": {"epsilon": 0.5},
    "PBMHB": {"c": 2.0, "fix_first": False},
    "NeuralGreedy": {"decay": 100, "net_arch": [8]},
    "DBGD": {"gamma": 0.5},
    "PDGD": {"learning_rate": 30.0},
    "LinearTS": {"alpha": 0.2},
}
"""Arguments of agents whose defaults would leave little to chance or never use one part of the law,
and of LinearTS, whose references elsewhere take the agent's own draws.
"""


def p_value(lists: Any, others: Any) -> float:
    """Return the p-value of a chi-square test that both samples come from one law. Lists that are
    rare in both samples share one cell.
    """
    counts = [Counter(map(tuple, np.asarray(each).tolist())) for each in (lists, others)]
    table = np.array([[count[key] for count in counts] for key in counts[0] | counts[1]])
    is_rare = table.sum(axis=1) < 100
    table = np.vstack([table[~is_rare], table[is_rare].sum(axis=0)])
    table = table[table.any(axis=1)]
    assert len(table) > 1, "always the same list, so no fault would be noticed"
    return float(chi2_contingency(table).pvalue)


@pytest.mark.parametrize("name", [*CLICK_AGENTS, *CONTEXTUAL_AGENTS, *NETWORK_AGENTS])
def test_law(name):
    """Null: agent and reference draw from one law. An agent whose only random choice is the order
    of ties shows a single list here, and its reference needs no law.
    """
    if name in NETWORK_AGENTS:
        pytest.importorskip("torch")
    agent = make(name, USERS, seed=1, **ARGUMENTS.get(name, {}))
    reference, rng = reference_of(agent), np.random.default_rng(2)
    for _ in range(SESSIONS.get(name, 60)):
        features = rng.random((5, 2)) - 0.3
        ranking = agent.rank({"features": features})
        assert reference.allows(ranking.tolist(), getattr(agent, "state", None), features)
        clicks = USERS.sample(ranking, rng)
        agent.update({"features": features}, ranking, clicks, float(clicks.sum()))
        reference.learn(ranking.tolist(), clicks.tolist())

    try:
        expected = reference.lists(rng, EXPECTED.get(name, 20_000), agent, features)
    except NotImplementedError:
        expected = None
    arrays = [(array, array.copy()) for array in getattr(agent, "arrays", {}).values()]
    lists = []
    for _ in range(300 if expected is None else DRAWS.get(name, 5000)):
        lists.append(agent.rank({"features": features}))
        for array, before in arrays:  # all lists are drawn in the same state
            array[...] = before
    if expected is None:
        assert len(set(map(tuple, np.array(lists).tolist()))) == 1, (
            f"{name} draws its lists, and {type(reference).__name__} does not say from which law: "
            "write its method `lists` (see Reference in tests/reference_agents/reference.py), or, "
            "if only ties are random, add sessions to SESSIONS until no tie is left"
        )
    else:
        assert p_value(lists, expected) > FALSE_ALARM
