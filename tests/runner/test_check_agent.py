"""Tests of `clickgym.check_agent`: all agents of the package pass, and for each planted fault the
check names it in one line.
"""

from __future__ import annotations

import re
from typing import Annotated, NamedTuple

import numpy as np
import pytest

import clickgym
from clickgym.agents import Agent, CompiledAgent, LinearTS
from clickgym.core.state import Floats, Ints
from clickgym.envs import kernel
from tests.helpers.registries import CLICK_AGENTS, CONTEXTUAL_AGENTS, STATE_AGENTS
from tests.helpers.slow import slow

pytestmark = pytest.mark.filterwarnings("error")
TYPICAL = "TopRank", "LinearTS"
"""An agent that sees clicks, and one that sees features; `ByState` sees the state of the user."""
OTHERS = sorted({*CLICK_AGENTS, *CONTEXTUAL_AGENTS, *STATE_AGENTS} - {*TYPICAL})
QUICK = [pytest.param(name, marks=pytest.mark.uncompiled) for name in TYPICAL]


@pytest.mark.parametrize("name", [*QUICK, *slow(*OTHERS)])
def test_published_agents_pass(name):
    clickgym.check_agent(name)


# ---------------------------------------------------------------------------------- in plain Python


class Sampling(Agent):
    """Thompson sampling as in docs/own_agent.md; with the sign 1, the worst items come first."""

    def __init__(self, n_items, n_positions, *, prior=1.0, sign=-1, seed=None):
        self.n_items, self.n_positions, self.sign = n_items, n_positions, sign
        self.rng = np.random.default_rng(seed)
        self.clicked, self.skipped = np.full(n_items, prior), np.full(n_items, prior)

    def rank(self, observation):
        drawn = self.sign * self.rng.beta(self.clicked, self.skipped)
        return np.argsort(drawn)[: self.n_positions]

    def update(self, observation, ranking, clicks, reward):
        self.clicked[ranking] += clicks
        self.skipped[ranking] += 1 - clicks


class ByFeatures(Sampling):
    def __init__(self, n_items, n_positions, *, n_features, seed=None):
        super().__init__(n_items, n_positions, seed=seed)
        self.weights = np.zeros(n_features)

    def rank(self, observation):
        noise = self.rng.normal(size=self.n_items)
        return np.argsort(-(observation["features"] @ self.weights + noise))[: self.n_positions]

    def update(self, observation, ranking, clicks, reward):
        self.weights += clicks @ observation["features"][ranking]


class ByState(Sampling):
    def __init__(self, n_items, n_positions, *, n_states, seed=None):
        super().__init__(n_items, n_positions, seed=seed)
        self.seen = np.zeros(n_states)

    def rank(self, observation):
        self.seen[observation["state"]] += 1
        return super().rank(observation)


class FailsWhereUsersLeave(ByState):
    def leave(self):
        raise KeyError("user")


class Unseeded(Sampling):
    def __init__(self, n_items, n_positions, *, seed=None):
        super().__init__(n_items, n_positions)


class GlobalDraws(Sampling):
    def rank(self, observation):
        return np.random.permutation(self.n_items)[: self.n_positions]  # noqa: NPY002 (the fault)


class Shared(Sampling):
    sessions: list[int] = []

    def rank(self, observation):
        self.sessions.append(1)
        return np.roll(super().rank(observation), len(self.sessions) // 40)


class OftenById(Sampling):
    """An agent that shows the items with the largest ids, in decreasing order, in half of the
    sessions.
    """

    def rank(self, observation):
        chosen = super().rank(observation)
        return chosen if self.rng.random() < 0.5 else self.n_items - 1 - np.arange(self.n_positions)


class WritesClicks(Sampling):
    def update(self, observation, ranking, clicks, reward):
        clicks[:] = 1


class ForgetsToLoad(Sampling):
    def save(self, path):
        path.write_bytes(b"")

    @classmethod
    def load(cls, path):
        return cls(5, 3, seed=0)


class DoesNotAskForFeatures(Sampling):
    def rank(self, observation):
        return np.argsort(-observation["features"][:, 0])[: self.n_positions]


PLAIN = {
    DoesNotAskForFeatures: "- rank and update: IndexError.*n_features: add it",
    FailsWhereUsersLeave: "- rank and update: KeyError: 'user'",
    Unseeded: "- seeds: the same seed gives different lists",
    GlobalDraws: "- agents side by side: the agent draws from the global random generator",
    Shared: "- agents side by side: two agents of this class influence each other",
    OftenById: "- item ids: the regret after ",
    WritesClicks: "- rank and update: update changes its argument clicks",
    ForgetsToLoad: "- saving and loading: a saved agent and the loaded one differ in regret",
}


# ----------------------------------------------------------------------------------------- compiled


class State(NamedTuple):
    order: Annotated[Ints, "L", range]
    clicks: Annotated[Floats, "L"]


@kernel
def rank(state, rng, ranking):
    for i in range(len(state.order)):
        j = i + int(rng.random() * (len(state.order) - i))
        state.order[i], state.order[j] = state.order[j], state.order[i]
    for k in range(len(ranking)):
        ranking[k] = state.order[k]


@kernel
def update(state, ranking, clicks):
    for k in range(len(ranking)):
        state.clicks[ranking[k]] += clicks[k]


class Shuffles(CompiledAgent):
    paper = "none"
    state_type, rank_kernel, update_kernel = State, rank, update


@kernel
def write_past_the_end(state, ranking, clicks):
    state.clicks[len(state.clicks)] += 1.0


class WritesPastTheEnd(Shuffles):
    """An agent whose compiled kernel writes to memory outside its arrays, which may end the
    process.
    """

    update_kernel = write_past_the_end


@kernel
def assign_a_field(state, ranking, clicks):
    state.clicks += clicks.sum()


@kernel
def write_a_fraction(state, ranking, clicks):
    state.order[0] += 0.5


class LacksFeatures(LinearTS):
    update_kernel = update


class KeepsIntegers(Shuffles):
    def __init__(self, n_items, n_positions, *, prior=0.5, seed=None):
        super().__init__(n_items, n_positions, seed, prior=prior)


HALF = Annotated[Ints, "L", 0.5]
COMPILED = {
    KeepsIntegers: "- hyperparameters: prior=1 stays an integer",
    WritesPastTheEnd: "- kernels: IndexError: index 5 is out of bounds for axis 0 with size 5 .*",
    LacksFeatures: r"- kernels: update_kernel takes \(.*\); expected \(.*, clicks, features\)",
    type("Assigns", (Shuffles,), {"update_kernel": assign_a_field}): "- kernels: .* one entry",
    type("Halves", (Shuffles,), {"update_kernel": write_a_fraction}): "- kernels: .* as Floats",
    type("Half", (Shuffles,), {"state_type": NamedTuple("S", [("x", HALF)])}): ".*whole numbers",
    type("Lacks", (Shuffles,), {"state_type": NamedTuple("Empty", [("x", int)])}): ".*value for x",
}


OWN = [(Sampling, {"prior": 2.0}), ByFeatures, ByState, Shuffles]


@pytest.mark.uncompiled
@pytest.mark.parametrize("agent", OWN, ids=str)
def test_own_agents_pass(agent):
    clickgym.check_agent(agent)


def test_an_agent_that_shows_the_worst_items_first():
    with pytest.warns(UserWarning, match="198, but 110 with random lists"):
        clickgym.check_agent((Sampling, {"sign": 1}))


@pytest.mark.parametrize("agent", PLAIN | COMPILED, ids=lambda agent: agent.__name__)
def test_faults_are_named(agent):
    with pytest.raises(AssertionError) as caught:
        clickgym.check_agent(agent)
    heading, *faults = str(caught.value).splitlines()
    assert agent.__name__ in heading
    assert any(re.match((PLAIN | COMPILED)[agent], fault) for fault in faults), faults
    if "- kernels: IndexError" in faults[0]:  # nothing was compiled: no crash
        assert len(faults) == 1
