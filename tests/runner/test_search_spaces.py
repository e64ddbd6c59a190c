"""What may be searched of each agent, and what is written in braces: grids and ranges."""

import math

import gymnasium as gym
import numpy as np
import pytest

import clickgym
from clickgym.agents import AGENTS, CONTEXTUAL_AGENTS, STATE_AGENTS, Agent, Range
from clickgym.agents.linear import confidence
from clickgym.runner.make import make_agent, player_of

SEARCHED = {
    name: agent
    for name, agent in {**AGENTS, **CONTEXTUAL_AGENTS, **STATE_AGENTS}.items()
    if agent.search_space
}

# What a default of None stands for; of an agent with a horizon T, where L = 10.
FROM_THE_HORIZON = {
    "alpha": lambda agent, T: confidence(agent.state._replace(t=np.array([T])), 5),
    "delta": lambda agent, T: T**-4.0 if type(agent).__name__ == "BubbleRank" else 1 / T,
    "exploration": lambda agent, T: math.sqrt(10 * math.log(T) / T),
}


def meant(agent, key, T):
    """What a default of None stands for; the state has it under the same name, or the table above
    says it.
    """
    return (
        FROM_THE_HORIZON[key](agent, T)
        if key in FROM_THE_HORIZON
        else np.ravel(getattr(agent.state, key))[0].item()
    )


def env_of(name):
    if name in CONTEXTUAL_AGENTS:
        return gym.make("ContextualUBMRank-v0", instance="linear:n_pool=20,n_users=1")
    return gym.make("CascadeMDPRank-v0" if name in STATE_AGENTS else "PBMRank-v0")


@pytest.mark.parametrize("name", SEARCHED)
def test_a_range_contains_the_default(name):
    """That the constructor takes its bounds, and knows its names, `check_agent` sees, by which all
    agents are checked.
    """
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
    assert all(
        player.defaults[key] in values
        for key, values in player.search_space.items()
        if key != "n_envs"
    )


class Mine(Agent):
    search_space = {"alpha": Range(0.1, 10.0, log=True), "start": ["empty", "full"]}

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
        search_space = {"alpha": Range(2.0, 10.0)}

    class Wide(Mine):
        search_space = {"alpha": Range(0.0, 10.0)}

    class Misspelt(Mine):
        search_space = {"alpa": Range(0.1, 10.0)}

    class Bare(Mine):
        search_space = {"alpha": 3.0}

    for agent, fault in (
        (Narrow, r"- search space: the default alpha = 1.0 is not in Range\(2.0, 10.0\)$"),
        (Wide, r"- search space: Wide cannot be searched with alpha = 0.0: alpha is 0.0; expected"),
        (
            Misspelt,
            r"- search space: Misspelt cannot be searched with alpa = 0.1: .*unknown hyper-parameter 'alpa'",
        ),
        (
            Bare,
            r"- search space: the search space of Bare has 3.0 for alpha; expected a Range",
        ),
    ):
        with pytest.raises(AssertionError, match=fault):
            clickgym.check_agent(agent)
