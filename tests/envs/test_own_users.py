"""A kind of users from outside the package: users who get bored work everywhere without any change
to the package.

The user clicks each item with its attraction times the user's interest, which the agent observes. A
session without a click halves the interest, and a click restores it. A bored user leaves with
probability 1/2.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, MultiBinary

import clickgym
from clickgym.agents import CompiledAgent
from clickgym.core.kernels import uncompiled
from clickgym.core.state import Floats, Ints
from clickgym.envs import ClickEnv, Kernels, Task, UserModel, kernel
from tests.helpers.engines import assert_engines_agree

pytestmark = pytest.mark.uncompiled

ATTRACTION = [0.9, 0.2, 0.5, 0.4]


class Record(NamedTuple):
    attraction: Floats  # (L,)
    top: float  # the sum of the K largest


class Interest(NamedTuple):
    optimum: Annotated[Floats, "B"]
    interest: Annotated[Floats, "B 1"]
    clicks: Annotated[Ints, "B"]  # in the last session


@kernel
def session(constants, state, b, ranking, uniforms, clicks, examined):
    interest, state.clicks[b], expected = state.interest[b, 0], 0, 0.0
    for k in range(len(ranking)):
        chance = constants.attraction[ranking[k]] * interest
        expected += chance
        clicks[k], examined[k] = uniforms[k] < chance, 1
        state.clicks[b] += clicks[k]
    return float(state.clicks[b]), expected, -1


@kernel
def follow(constants, state, b, interest):
    state.interest[b, 0] = interest
    state.optimum[b] = constants.top * interest


@kernel
def begin(constants, state, b, rng):
    follow(constants, state, b, 1.0)


@kernel
def advance(constants, state, b, rng):
    has_left = state.interest[b, 0] < 0.3 and rng.random() < 0.5
    follow(constants, state, b, 1.0 if state.clicks[b] > 0 else state.interest[b, 0] / 2)
    return has_left


class BoredTask(Task):
    kernels, state_type = Kernels(session, begin, advance), Interest

    def __init__(self, model):
        self.model, self.order = model, np.argsort(-model.attraction)[: model.n_positions]
        self.constants = Record(model.attraction, float(model.attraction[self.order].sum()))
        self.observation_space = Dict(
            clicks=MultiBinary(model.n_positions), interest=Box(0.0, 1.0, (1,), np.float64)
        )

    def best(self, state):
        return np.tile(self.order, (len(state.optimum), 1))

    def observe(self, state, b, clicks):
        return {"clicks": clicks, "interest": state.interest[b].copy()}


class BoredUsers(UserModel):
    may_leave = True

    def __init__(self, attraction, n_positions):
        self.attraction, self.n_positions = np.array(attraction, float), n_positions

    @property
    def n_items(self):
        return len(self.attraction)

    def to_dict(self):
        values = {"attraction": self.attraction.tolist(), "n_positions": self.n_positions}
        return {"model": f"{__name__}:{type(self).__name__}", **values}

    def with_positions(self, n_positions):
        return BoredUsers(self.attraction, n_positions)

    def tasks(self, reward, cutoff, reference):
        return [BoredTask(self)]

    def knowledge(self, source, production=None):
        return np.ones(self.n_positions) if source == "examination" else None


class Careful(NamedTuple):
    sessions: Annotated[Ints, "1"]


@kernel
def rank(state, rng, ranking, interest):
    first = 0 if interest[0] < 0.6 else int(rng.random() * 3)
    for k in range(len(ranking)):
        ranking[k] = (first + k) % 4


@kernel
def update(state, ranking, clicks, interest):
    state.sessions[0] += 1


class CarefulAgent(CompiledAgent):
    """A compiled agent that reads the interest, and shows bored users the best item."""

    observes, state_type, rank_kernel, update_kernel = ("interest",), Careful, rank, update

    def observed_arrays(self, observation):
        return (np.array(observation["interest"]),)


def users():
    return BoredUsers(ATTRACTION, 2)


def test_sessions_by_the_definition():
    """Interest, regret and clicks follow the definition, and users leave."""
    env = ClickEnv(users())
    observation, info = env.reset(seed=0)
    assert observation["interest"] == 1.0
    assert info["optimal_ranking"].tolist() == [0, 2]
    assert info["optimal_reward"] == pytest.approx(1.4)
    interest, clicked, left = 1.0, 0, 0
    for t in range(300):
        ranking = [t % 4, (t + 2) % 4]
        worth = interest * sum(ATTRACTION[item] for item in ranking)
        observation, reward, has_left, _, info = env.step(ranking)
        assert info["regret"] == pytest.approx(1.4 * interest - worth)
        assert observation["clicks"].sum() == reward
        if has_left:
            assert interest < 0.3
            observation, _ = env.reset()
            interest, left = 1.0, left + 1
        else:
            interest = 1.0 if reward else interest / 2
        assert observation["interest"] == interest
        clicked += reward
    assert left > 3
    assert 100 < clicked < 420


@pytest.mark.compiled
def test_both_engines():
    make_agent, make_env = lambda: CarefulAgent(4, 2, seed=1), lambda: ClickEnv(users())
    assert_engines_agree(make_agent, make_env, 300, uncompiled)


def test_an_id_of_such_users():
    """The id makes single and vector environments, and tells agents the knowledge that their papers
    assume.
    """
    given = {"attraction": ATTRACTION, "n_positions": 2}
    clickgym.register_click_model("BoredRank-v0", BoredUsers)
    env, envs = gym.make("BoredRank-v0", **given), gym.make_vec("BoredRank-v0", 3, **given)
    assert env.unwrapped.model == users()
    _, infos = envs.reset(seed=0)
    assert infos["optimal_ranking"].tolist() == [[0, 2]] * 3
    regret = envs.step(np.array([[0, 2], [2, 3], [1, 3]]))[4]["regret"]
    assert regret.tolist() == pytest.approx([0.0, 0.5, 0.8])
    assert clickgym.make_agent("PBMUCB", env).filled_in["examination"].tolist() == [1, 1]
    with pytest.raises(ValueError, match=r"Oracle requires .*BoredRank-v0 does not have"):
        clickgym.run("Oracle", env, 10)
