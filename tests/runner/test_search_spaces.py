"""What may be searched of each agent, and what is written in braces: grids and ranges."""

import inspect
import math

import gymnasium as gym
import numpy as np
import pytest
from registries import CLICK_AGENTS, CONTEXTUAL_AGENTS, STATE_AGENTS

from clickgym.agents import Range
from clickgym.agents.linear import confidence
from clickgym.runner.make import make_agent

SEARCHED = {
    name: agent
    for name, agent in {**CLICK_AGENTS, **CONTEXTUAL_AGENTS, **STATE_AGENTS}.items()
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
    """The constructor knows its names and takes its bounds."""
    parameters, env = inspect.signature(SEARCHED[name]).parameters, env_of(name)
    for horizon in (10_000, 1_000_000):
        agent = make_agent(name, env, horizon=horizon, seed=0)
        for key, searched in SEARCHED[name].search_space.items():
            default = parameters[key].default
            if default is None and (isinstance(searched, Range) or None not in searched):
                default = meant(agent, key, horizon)
            assert default in searched, (key, default)
            ends = [searched.low, searched.high] if isinstance(searched, Range) else searched
            for value in ends:
                make_agent(name, env, horizon=horizon, seed=0, **{key: value})
