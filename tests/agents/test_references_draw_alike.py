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
from tests.reference_agents.registry import reference_of, tried_options

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
    "PBMHB": {"c": 2.0, "fix_first": False},
    "NeuralGreedy": {"decay": 25},
}
"""Arguments of agents whose defaults hardly learn, or draw at random, in so few sessions."""


def p_value(lists: Any, others: Any) -> float:
    """Return the p-value of a chi-square test that both samples come from one law, or 1 if they
    show one and the same list. Lists that are rare in both samples share one cell.
    """
    counts = [Counter(map(tuple, np.asarray(each).tolist())) for each in (lists, others)]
    table = np.array([[count[key] for count in counts] for key in counts[0] | counts[1]])
    is_rare = table.sum(axis=1) < 100
    table = np.vstack([table[~is_rare], table[is_rare].sum(axis=0)])
    table = table[table.any(axis=1)]
    return float(chi2_contingency(table).pvalue)


@pytest.mark.parametrize("name", [*CLICK_AGENTS, *CONTEXTUAL_AGENTS, *NETWORK_AGENTS])
def test_law(name):
    """Null: agent and reference draw from one law, with the defaults, and with each value of an
    option that tests try, after few sessions, because clicks soon outweigh a prior. An agent whose
    only random choice is the order of ties shows a single list here, and its reference needs no
    law.
    """
    if name in NETWORK_AGENTS:
        pytest.importorskip("torch")
    n_sessions = SESSIONS.get(name, 60)
    n, n_expected = DRAWS.get(name, 5000), EXPECTED.get(name, 20_000)
    lists, expected = draw(name, n_sessions, n, n_expected)
    n_lists = len(set(map(tuple, lists)))
    if expected is None:
        assert n_lists == 1, (
            f"{name} draws its lists, and its reference does not say from which law: write its "
            "method `lists` (see Reference in tests/reference_agents/reference.py), or, if only "
            "ties are random, add sessions to SESSIONS until no tie is left"
        )
        return
    assert n_lists > 1, (
        f"{name} always shows the same list, so no fault would be noticed: in this file, give it "
        "fewer sessions in SESSIONS, or other arguments in ARGUMENTS"
    )
    assert p_value(lists, expected) > FALSE_ALARM, f"{name} does not draw like its reference"
    for key, value in tried_options(name):
        if value is None:  # tests/agents/test_references_in_edge_cases.py fails
            continue
        drawn = draw(name, min(n_sessions, 20), n // 4, n_expected // 4, **{key: value})
        assert p_value(*drawn) > FALSE_ALARM, (
            f"{name} with {key}={value} does not draw like its reference"
        )


def draw(
    name: str, n_sessions: int, n: int, n_expected: int, **arguments: Any
) -> tuple[list[Any], Any]:
    """Return n lists of an agent and more of its reference, drawn after some sessions; the lists of
    the reference are None if it has no law.
    """
    agent = make(name, USERS, seed=1, **ARGUMENTS.get(name, {}) | arguments)
    reference, rng = reference_of(agent), np.random.default_rng(2)
    for _ in range(n_sessions):
        features = rng.random((5, 2)) - 0.3
        ranking = agent.rank({"features": features})
        assert reference.allows(ranking.tolist(), getattr(agent, "state", None), features)
        clicks = USERS.sample(ranking, rng)
        agent.update({"features": features}, ranking, clicks, float(clicks.sum()))
        reference.learn(ranking.tolist(), clicks.tolist())

    try:
        expected = reference.lists(rng, n_expected, agent, features)
    except NotImplementedError:
        expected, n = None, 300
    arrays = [(array, array.copy()) for array in getattr(agent, "arrays", {}).values()]
    lists = []
    for _ in range(n):
        lists.append(agent.rank({"features": features}).tolist())
        for array, before in arrays:  # all lists are drawn in the same state
            array[...] = before
    return lists, expected
