"""What may be searched of each agent, and what is written in braces: grids and ranges."""

import math
import subprocess

import gymnasium as gym
import numpy as np
import pytest

import clickgym
from clickgym.agents import AGENTS, CONTEXTUAL_AGENTS, STATE_AGENTS, Agent, CascadeKLUCB, Range
from clickgym.agents.linear import confidence
from clickgym.runner.labels import by_label, expand, parse_search, parse_spec
from clickgym.runner.make import make_agent, player_of

SEARCHED = {name: agent for name, agent in {**AGENTS, **CONTEXTUAL_AGENTS, **STATE_AGENTS}.items() if agent.search_space}

# What a default of None stands for, as docstrings have it; of an agent with a horizon T, in an environment with L = 10.
FROM_THE_HORIZON = {
    "alpha": lambda agent, T: getattr(confidence, "py_func", confidence)(agent.state._replace(t=np.array([T])), 5),
    "delta": lambda agent, T: T**-4.0 if type(agent).__name__ == "BubbleRank" else 1 / T,
    "exploration": lambda agent, T: math.sqrt(10 * math.log(T) / T),
}


def meant(agent, key, T):
    """What a default of None stands for; the state has it under the same name, or the table above says it."""
    return FROM_THE_HORIZON[key](agent, T) if key in FROM_THE_HORIZON else np.ravel(getattr(agent.state, key))[0].item()


def env_of(name):
    if name in CONTEXTUAL_AGENTS:
        return gym.make("ContextualUBMRank-v0", instance="linear:n_pool=20,n_users=1")
    return gym.make("CascadeMDPRank-v0" if name in STATE_AGENTS else "PBMRank-v0")


@pytest.mark.parametrize("name", SEARCHED)
def test_a_range_contains_the_default(name):
    """That the constructor takes its bounds, and knows its names, `check_agent` sees, by which all agents are checked."""
    values, env = player_of(SEARCHED[name]).defaults, env_of(name)
    for horizon in (10_000, 1_000_000):
        agent = make_agent(name, env, horizon=horizon, seed=0)
        for key, searched in SEARCHED[name].search_space.items():
            default = values[key]
            if default is None and (isinstance(searched, Range) or None not in searched):
                default = meant(agent, key, horizon)
            assert default in searched, (key, default)


def test_a_class_of_a_library_says_what_may_be_searched_of_it():
    stable_baselines3 = pytest.importorskip("stable_baselines3")
    player = player_of("stable_baselines3:DDPG")
    assert player.maker.adopted is stable_baselines3.DDPG
    assert all(player.defaults[key] in values for key, values in player.search_space.items() if key != "n_envs")


class Mine(Agent):
    search_space = {"alpha": Range(0.1, 10.0, log=True), "start": ["empty", "full"]}  # noqa: RUF012 (as users write it)

    def __init__(self, n_items, n_positions, *, alpha=1.0, start="empty", seed=None):
        if not 0 < alpha <= 20:
            raise ValueError(f"alpha is {alpha}; expected a number in (0, 20]")
        self.rng, self.n_items, self.n_positions = np.random.default_rng(seed), n_items, n_positions

    def rank(self, observation):
        return self.rng.permutation(self.n_items)[: self.n_positions]

    def update(self, observation, ranking, clicks, reward):
        pass


def test_the_search_space_of_an_own_agent_is_checked():
    clickgym.check_agent(Mine)

    class Narrow(Mine):
        search_space = {"alpha": Range(2.0, 10.0)}  # noqa: RUF012

    class Wide(Mine):
        search_space = {"alpha": Range(0.0, 10.0)}  # noqa: RUF012

    class Misspelt(Mine):
        search_space = {"alpa": Range(0.1, 10.0)}  # noqa: RUF012

    class Bare(Mine):
        search_space = {"alpha": 3.0}  # noqa: RUF012

    for agent, fault in (
        (Narrow, r"- search space: the default alpha = 1.0 is not in Range\(2.0, 10.0\)$"),
        (Wide, r"- search space: Wide cannot be searched with alpha = 0.0: alpha is 0.0; expected"),
        (
            Misspelt,
            r"- search space: Misspelt cannot be searched with alpa = 0.1: .*unknown hyper-parameter 'alpa'; did",
        ),
        (Bare, r"- search space: the search space of Bare has 3.0 for alpha; expected a Range, or a list of values$"),
    ):
        with pytest.raises(AssertionError, match=fault):
            clickgym.check_agent(agent)


def test_show_names_what_may_be_searched(printed):
    shown = " ".join(printed(["show", "CascadeKLUCB"]).split())
    assert "search space feedback={first_click,last_click}, c={0.0..6.0}" in shown
    assert parse_search("CascadeKLUCB:feedback={first_click,last_click},c={0.0..6.0}")[2]["c"] == CascadeKLUCB.search_space["c"]


# ----------------------------------------------------------------------------------------------------------------- braces


@pytest.mark.parametrize(
    ("spec", "agents"),
    [
        ("EpsilonGreedy:epsilon={0.01,0.1}", ["EpsilonGreedy:epsilon=0.01", "EpsilonGreedy:epsilon=0.1"]),
        ("A:b={1,2},c=x,d={y,z}", ["A:b=1,c=x,d=y", "A:b=1,c=x,d=z", "A:b=2,c=x,d=y", "A:b=2,c=x,d=z"]),
        ("A:b={[2,0,1],[0,1,2]}", ["A:b=[2,0,1]", "A:b=[0,1,2]"]),
        ('A:b={{"c":1},{"c":2}}', ['A:b={"c":1}', 'A:b={"c":2}']),
        ('A:b={"c":{"d":1},"e":[2,3]},f=4', ['A:b={"c":{"d":1},"e":[2,3]},f=4']),
        ("A:b={ 1 }", ["A:b=1"]),
        ("A:file=a[1.json,b={1,2}", ["A:file=a[1.json,b=1", "A:file=a[1.json,b=2"]),
    ],
)
def test_a_set_stands_for_an_agent_with_each_value(spec, agents):
    assert expand(spec) == agents


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("A:b={1,}", "b is {1,}; expected values, {1,2}, a range, {0.1..9} or {0.1..9 log}, or a JSON object"),
        ('A:b={"c":1,d:2}', "expected values, {1,2}, a range"),
        ("A:b={3..1}", "b: high is 1; expected a number above low = 3"),
        ("A:b={0..1 log}", "b: low is 0; expected a number above 0, for the range is logarithmic"),
        ("A:b={a..z}", "b: low is 'a'; expected a finite number"),
        ("A:b={0.1..10}", "b has a range, which only tune searches; expected values, as {0.1,0.5}"),
        ("A:b={0.1..10", "a bracket is not closed; put quotes around the whole"),
        ("A:b=[2", "a bracket is not closed; put quotes around the whole"),
    ],
)
def test_bad_braces_are_named(spec, message):
    with pytest.raises(ValueError, match="A:b=") as error:
        expand(spec)
    assert message in str(error.value)


def test_one_agent_takes_no_set():
    with pytest.raises(ValueError, match="epsilon has several values, which lists of agents take; expected one here"):
        clickgym.run("EpsilonGreedy:epsilon={0.1,0.2}", "PBMRank-v0", 10)


def test_one_label_takes_no_set():
    with pytest.raises(ValueError, match="one label cannot stand for 2 of them; leave it out"):
        by_label("agent", ["mine=EpsilonGreedy:epsilon={0.1,0.2}"])


def test_ranges_are_read():
    assert parse_search("A:b={1..9 log},c={0.5..2},d=3") == ("A", {"d": 3}, {"b": Range(1, 9, log=True), "c": Range(0.5, 2.0)})
    assert Range(0, 1.5) == Range(0.0, 1.5)
    assert not Range(0, 1.5).whole


def test_a_grid_has_the_labels_of_its_agents_from_which_their_seeds_derive():
    typed = by_label("agent", ["EpsilonGreedy:epsilon={1e-2,0.1}", "Random"])
    assert list(typed) == ["EpsilonGreedy:epsilon=0.01", "EpsilonGreedy:epsilon=0.1", "Random"]
    assert list(by_label("agent", clickgym.grid("EpsilonGreedy", epsilon=np.array([0.01, 0.1])))) == list(typed)[:2]
    assert list(by_label("agent", clickgym.grid(CascadeKLUCB, c=[0, 3.0]))) == ["CascadeKLUCB:c=0", "CascadeKLUCB:c=3.0"]
    with pytest.raises(ValueError, match=r"'EpsilonGreedy:epsilon=0.1' is named twice"):
        by_label("agent", ["EpsilonGreedy:epsilon={0.1,0.2}", "EpsilonGreedy:epsilon=0.1"])


@pytest.mark.parametrize("values", [0.1, "0.1", {"a": 1}, np.array(0.1), []])
def test_a_grid_wants_lists_of_values(values):
    with pytest.raises(ValueError, match=r"^epsilon is .*; expected a "):
        clickgym.grid("EpsilonGreedy", epsilon=values)


def test_a_grid_without_values_is_refused():
    with pytest.raises(ValueError, match="needs the values of a hyper-parameter"):
        clickgym.grid("EpsilonGreedy")


def test_sets_of_environments():
    assert list(by_label("environment", ["PBMRank-v0:reward={clicks,any_click}"])) == [
        "PBMRank-v0:reward=clicks",
        "PBMRank-v0:reward=any_click",
    ]


def test_a_shell_that_expands_braces_itself_makes_the_same_agents():
    words = subprocess.run(["bash", "-c", "echo A:b={0.1,0.2},c={x,y}"], capture_output=True, text=True, check=True).stdout
    assert words.split() == expand("A:b={0.1,0.2},c={x,y}")


def test_nested_arguments_are_read_whole():
    assert parse_spec('A:b={"c":{"d":1},"e":2},f="x,y]"') == ("A", {"b": {"c": {"d": 1}, "e": 2}, "f": "x,y]"})
