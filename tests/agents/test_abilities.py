"""What each agent can do with clicks as they come: the table of docs/agents.md, a test for each cell."""

from __future__ import annotations

import inspect
from types import SimpleNamespace

import numpy as np
import pytest
from reference_agents import plain

from clickgym.agents import AGENTS, ANY_LIST, CONTEXTUAL_AGENTS, ITS_DISPLAYS, LAST_DISPLAY, STATE_AGENTS, CompiledAgent
from clickgym.runner.describe import abilities, needs, stands

L, K = 6, 3
OWN = {"horizon": 1000, "n_features": 2, "n_states": 2}
TOLD = {"examination": [1.0, 0.7, 0.4], "ranking": [0, 1, 2]}
BROWSING = [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.4, 0.5, 0.7]]

ANY, ITS, LAST = ANY_LIST, ITS_DISPLAYS, LAST_DISPLAY
# As the specification says: learns from, candidates, replace.
TABLE = {
    "Fixed": (ANY, False, True), "Random": (ANY, True, True), "Oracle": (ANY, False, False), "EpsilonGreedy": (ANY, True, True),
    "CascadeUCB1": (ANY, True, True), "CascadeKLUCB": (ANY, True, True), "CascadeTS": (ANY, True, True),
    "DCMKLUCB": (ANY, True, True), "CascadeDUCB": (ANY, True, True),
    "CascadeSWUCB": (ANY, True, True),
    "GLRCascadeKLUCB": (ANY, True, True), "RankedExp3": (ITS, False, True),
    "RankedKLUCB": (ITS, True, True), "BatchRank": (ITS, False, True),
    "TopRank": (ITS, True, True), "UniRank": (ITS, True, True),
    "BubbleRank": (ITS, False, True),
    "GRAB": (ANY, False, True), "PBMUCB": (ANY, True, True), "PBMTS": (ANY, True, True),
    "BCMPTS": (ANY, True, True), "PBMPIE": (ANY, False, True), "PBMHB": (ANY, True, True),
    "MixTS": (ANY, True, True),
    **dict.fromkeys(CONTEXTUAL_AGENTS, (ANY, False, False)),
    "PDGD": (ITS, False, False),
    "CascadeVI": (LAST, False, False),
}  # fmt: skip
# Of an agent that needs it, which arguments have no default, and what it refuses to do without.
NEEDED = {
    "nothing": (set(), None), "a list": ({"ranking"}, None), "examination": ({"examination"}, None),
    "features": ({"n_features"}, "features"), "features and examination": ({"n_features", "examination"}, "features"),
    "judged documents": ({"n_features"}, "features"), "state": ({"n_states"}, "state"),
}  # fmt: skip
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
    assert {name: (agent.learns_from, *list(abilities(agent).values())[1:]) for name, agent in EVERY.items()} == TABLE


@by_name
def test_an_agent_cannot_be_without_what_it_needs(name):
    required, seen = NEEDED[needs(EVERY[name])]
    of_users = {"ranking", "examination", "n_features", "n_states"}
    arguments = arguments_of(name)
    optional = {key for key, parameter in inspect.signature(EVERY[name]).parameters.items() if parameter.default is None}
    for key in (of_users - optional) & arguments.keys():
        rest = {other: value for other, value in arguments.items() if other != key}
        assert key in required
        with pytest.raises(TypeError, match=f"missing 1 required keyword-only argument: '{key}'"):
            EVERY[name](L, K, seed=0, **rest)
    assert required <= arguments.keys()
    if seen is not None:
        with pytest.raises(ValueError, match=f"{name} needs an observation with '{seen}'"):
            made(name).rank({"clicks": [0] * K})
    assert (needs(EVERY[name]) == "judged documents") == (name == "PDGD")


@pytest.mark.parametrize("name", [name for name, agent in EVERY.items() if "late clicks" in stands(agent)])
def test_who_stands_late_clicks_learns_from_each(name):
    agent, seen = made(name), observed()
    lists = [agent.rank(seen) for _ in range(60)]
    before = [np.copy(array) for array in agent.state if isinstance(array, np.ndarray)]
    for display, shown in enumerate(lists[:8], start=1):
        agent.update(seen, shown, [0, 1, 0], display=display)
    after = [array for array in agent.state if isinstance(array, np.ndarray)]
    assert any(one.shape != other.shape or (one != other).any() for one, other in zip(before, after, strict=True))


def test_what_an_agent_stands_is_said_in_known_words():
    for agent in EVERY.values():
        assert agent.stands.keys() <= {"change", "bots", "late clicks"}
        if agent.learns_from == LAST_DISPLAY:
            assert "late clicks" not in stands(agent)


@by_name
def test_clicks_come_late_or_are_refused(name):
    agent = made(name)
    seen = [observed(number) for number in (0, 1)]
    first = agent.rank(seen[0])
    agent.rank(seen[1])
    late = agent.learns_from != LAST_DISPLAY
    assert agent.is_open(1) == late
    if not late:
        with pytest.raises(ValueError, match=r"display 1 is not open"):
            agent.update(seen[0], first, [0, 1, 0], display=1)
        return
    before = plain(agent.state)
    with pytest.raises(ValueError, match="display 1 had the list"):
        agent.update(seen[0], first[::-1], [0, 1, 0], display=1)
    for clicks in ([0, -1, 1], [0, 2, 0], [0, 1], [0, 0.5, 0]):
        with pytest.raises(ValueError, match=r"clicks are .*; expected 0 or 1 for each of the 3 positions, or -1"):
            agent.update(seen[0], first, clicks, display=1)
    assert plain(agent.state) == before
    agent.update(seen[0], first, [0, 1, -1], display=1, void=np.array([True, False, False]))
    with pytest.raises(ValueError, match=r"display 1 is not open: its clicks came already, or it was given up"):
        agent.update(seen[0], first, [0, 1, 0], display=1)
    with pytest.raises(ValueError, match=r"display 9 was never made \(the last one is 2\)"):
        agent.update(seen[0], first, [0, 1, 0], display=9)
    assert agent.n_open == 1


@pytest.mark.parametrize("name", AGENTS | CONTEXTUAL_AGENTS)
def test_a_loaded_agent_takes_the_clicks_of_displays_made_before_and_goes_on(name, tmp_path):
    agent, rng, waiting = made(name), np.random.default_rng(0), {}
    for number in range(300):
        seen = observed(number)
        ranking = agent.rank(seen)
        if rng.random() < 0.3 and number > 250:
            waiting[agent.display] = seen, ranking
        else:
            agent.update(seen, ranking, rng.integers(0, 2, K))
    agent.save(tmp_path / "agent.npz")
    agents = agent, type(agent).load(tmp_path / "agent.npz")
    for display, (seen, ranking) in reversed(waiting.items()):
        clicks = rng.integers(0, 2, K)
        for each in agents:
            each.update(seen, ranking, clicks, display=display)
    for _ in range(20):
        lists, clicks = [each.rank(seen).tolist() for each in agents], rng.integers(0, 2, K)
        assert lists[0] == lists[1]
        for each in agents:
            each.update(seen, lists[0], clicks)
    assert plain(agent.state) == plain(agents[1].state)


@by_name
def test_lists_of_others_and_logs_are_learned_or_refused(name):
    agent, twin, seen = made(name), made(name), observed()
    lists, clicks = np.array([[3, 1, 5], [0, 2, 4], [5, 0, 1]]), np.array([[0, 1, 0], [1, 0, -1], [0, 0, 0]])
    log = SimpleNamespace(rankings=lists, clicks=clicks, context=np.stack([seen["features"][shown] for shown in lists]))
    if not abilities(type(agent))["log"]:
        with pytest.raises(ValueError, match=f"{name} cannot learn from a log: it learns from"):
            agent.learn(log)
        with pytest.raises(ValueError, match="update got the list"):
            agent.update(seen, lists[0], clicks[0])
        return
    agent.learn(log)
    for shown, clicked in zip(lists, clicks, strict=True):
        twin.update(seen, shown, clicked)
    assert agent.display == twin.display == 3
    for one, other in zip(agent.state, twin.state, strict=True):
        np.testing.assert_array_equal(one, other)
    bad = SimpleNamespace(rankings=[[0, 1, 1]], clicks=[[0, 0, 0]], context=np.zeros((1, K, 2)))
    with pytest.raises(ValueError, match="session 0 of the log shows an item twice"):
        agent.learn(bad)


@by_name
def test_candidates_are_chosen_among_or_refused(name):
    agent, seen = made(name), observed()
    mask = np.isin(np.arange(L), [0, 2, 3, 5])
    if not abilities(type(agent))["candidates"]:
        with pytest.raises(ValueError, match=f"{name} cannot choose from a subset of the items"):
            agent.rank(seen, candidates=mask)
        return
    rng = np.random.default_rng(0)
    for _ in range(30):
        ranking = agent.rank(seen, candidates=mask)
        assert set(ranking) <= {0, 2, 3, 5}
        assert len(set(ranking)) == K
        agent.update(seen, ranking, rng.integers(0, 2, K))
        agent.update(seen, (ranking := agent.rank(seen)), rng.integers(0, 2, K))
    with pytest.raises(ValueError, match="candidates has 2 items; expected at least the 3 of a list"):
        agent.rank(seen, candidates=np.arange(L) < 2)
    with pytest.raises(ValueError, match=r"candidates is .*; expected 6 booleans"):
        agent.rank(seen, candidates=[0, 1, 2])


@by_name
def test_a_replaced_item_is_forgotten_or_that_is_refused(name):
    agent, seen = made(name), observed()
    if not abilities(type(agent))["replace"]:
        with pytest.raises(ValueError, match=f"{name} cannot replace an item"):
            agent.replace(2)
        return
    rng, open_displays = np.random.default_rng(0), {}
    for _ in range(40):
        ranking = agent.rank(seen)
        open_displays[agent.display] = ranking
    agent.replace(2)
    for display, ranking in open_displays.items():  # clicks on item 2 are of the one that is gone
        agent.update(seen, ranking, (ranking == 2).astype(int) | rng.integers(0, 2, K), display=display)
    for row in ("clicks", "examined", "displays", "observed", "shown"):
        counts = getattr(agent.state, row, None)
        if isinstance(counts, np.ndarray) and counts.dtype == np.int64 and len(counts) == L:
            np.testing.assert_array_equal(counts[2], 0)
    with pytest.raises(ValueError, match="item is 6; expected"):
        agent.replace(L)


def test_the_oldest_display_is_given_up_and_counted():
    agent = made("CascadeUCB1")
    agent.max_open = 3
    lists = [agent.rank() for _ in range(6)]
    assert (agent.n_open, agent.dropped) == (4, 2)  # the last one is not set aside yet
    with pytest.raises(ValueError, match="display 2 is not open"):
        agent.update(None, lists[1], [0, 0, 0], display=2)
    agent.update(None, lists[2], [0, 0, 1], display=3)
