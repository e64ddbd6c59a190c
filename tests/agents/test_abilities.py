"""From which lists each agent learns, and what it needs."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from reference_agents import plain

from clickgym.agents import AGENTS, CONTEXTUAL_AGENTS, STATE_AGENTS, CompiledAgent
from clickgym.runner.catalogue import needs
from clickgym.runner.make import learns

L, K = 6, 3
OWN = {"horizon": 1000, "n_features": 2, "n_states": 2}
TOLD = {"examination": [1.0, 0.7, 0.4], "ranking": [0, 1, 2]}
BROWSING = [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.4, 0.5, 0.7]]

LAST_LIST = {
    "RankedExp3",
    "RankedKLUCB",
    "BatchRank",
    "TopRank",
    "UniRank",
    "BubbleRank",
    "PDGD",
    "CascadeVI",
}
"""The agents that learn only from the list before the clicks."""
# Of an agent that needs it, which arguments have no default, and what it refuses to do without.
NEEDED = {
    "nothing": (set(), None),
    "a list": ({"ranking"}, None),
    "examination": ({"examination"}, None),
    "features": ({"n_features"}, "features"),
    "features and examination": ({"n_features", "examination"}, "features"),
    "state": ({"n_states"}, "state"),
}
EVERY: dict[str, type[CompiledAgent]] = {**AGENTS, **CONTEXTUAL_AGENTS, **STATE_AGENTS}
by_name = pytest.mark.parametrize("name", EVERY)


def arguments_of(name):
    parameters = inspect.signature(EVERY[name]).parameters
    arguments = {key: value for key, value in (OWN | TOLD).items() if key in parameters}
    if name == "UBMLinUCB":
        arguments["examination"] = BROWSING
    if name == "CascadeVI":
        arguments |= {"mean_sessions": 5.0, "click_rewards": [[1.0] * L] * 2}
    return arguments


def made(name, seed=0, **given):
    return EVERY[name](L, K, seed=seed, **arguments_of(name) | given)


def observed(seed=0):
    """What is seen in a session."""
    return {"features": np.random.default_rng(seed).random((L, 2)), "state": 0}


def test_the_table_is_that_of_the_specification():
    assert {name for name, agent in EVERY.items() if not agent.learns_from_any_list} == LAST_LIST


@by_name
def test_an_agent_cannot_be_without_what_it_needs(name):
    required, seen = NEEDED[needs(EVERY[name])]
    of_users = {"ranking", "examination", "n_features", "n_states"}
    arguments = arguments_of(name)
    optional = {
        key
        for key, parameter in inspect.signature(EVERY[name]).parameters.items()
        if parameter.default is None
    }
    for key in (of_users - optional) & arguments.keys():
        rest = {other: value for other, value in arguments.items() if other != key}
        assert key in required
        with pytest.raises(TypeError, match=f"missing 1 required keyword-only argument: '{key}'"):
            EVERY[name](L, K, seed=0, **rest)
    assert required <= arguments.keys()
    if seen is not None:
        with pytest.raises(ValueError, match=f"{name} needs an observation with '{seen}'"):
            made(name).rank({"clicks": [0] * K})


@by_name
def test_impossible_clicks_and_lists_teach_nothing(name):
    agent, seen = made(name), observed()
    ranking = agent.rank(seen)
    before = plain(agent.state)
    cut_off = ", or -1" if agent.learns_from_any_list else ""
    for clicks in ([0, -1, 1], [0, 2, 0], [0, 1], [0, 0.5, 0]):
        with pytest.raises(
            ValueError, match=f"clicks are .*; expected 0 or 1 for each of the 3 positions{cut_off}"
        ):
            agent.update(seen, ranking, clicks)
    with pytest.raises(
        ValueError, match="again" if agent.learns_from_any_list else "update got the list"
    ):
        agent.update(seen, [0, 1, 1], [0, 1, 0])
    assert plain(agent.state) == before
    agent.update(seen, ranking, [0, 1, 0])


@pytest.mark.parametrize("name", AGENTS | CONTEXTUAL_AGENTS)
def test_a_loaded_agent_takes_the_clicks_on_the_last_list_and_goes_on(name, tmp_path):
    agent, rng = made(name), np.random.default_rng(0)
    for number in range(300):
        agent.update(observed(number), agent.rank(observed(number)), rng.integers(0, 2, K))
    seen = observed(300)
    ranking = agent.rank(seen)
    agent.save(tmp_path / "agent.npz")
    agents = agent, type(agent).load(tmp_path / "agent.npz")
    for _ in range(20):
        clicks = rng.integers(0, 2, K)
        for each in agents:
            each.update(seen, ranking, clicks)
        ranking, other = (each.rank(seen) for each in agents)
        assert ranking.tolist() == other.tolist()
    assert plain(agent.state) == plain(agents[1].state)


@by_name
def test_lists_of_others(name):
    """They are learned, also cut off, and leave the last list waiting; or refused."""
    agent, seen = made(name), observed()
    ranking = agent.rank(seen)
    before = plain(agent.state)
    other = [3, 1, 5] if ranking[0] != 3 else [1, 3, 5]
    if agent.learns_from_any_list:
        agent.update(seen, other, [1, 0, -1])
        assert (plain(agent.state) != before) == learns(type(agent))
        agent.update(seen, ranking, [0, 1, 0])
    else:
        with pytest.raises(ValueError, match="update got the list"):
            agent.update(seen, other, [0, 1, 0])
        assert plain(agent.state) == before
