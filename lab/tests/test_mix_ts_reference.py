"""MixTS is its reference in plain Python: the same list and the same state in each session,
whatever happens to the clicks.
"""

from __future__ import annotations

import edge_cases
import numpy as np
import pytest
from mix_ts_in_python import reference_of
from reference_agents import MODELS, follow
from slow import slow

import clickgym
from clickgym.agents import Agent
from clickgym.envs import (
    ClickEnv,
    DependentClickModel,
    DynamicBayesianModel,
    PositionBasedModel,
    TrustBiasModel,
)
from clickgym_lab.mix_ts import MixTS

FEW_STAY = DependentClickModel([0.9, 0.8, 0.7, 0.05, 0.6], [0.99, 0.0, 0.0])
"""Users of whom a click ends most sessions."""
SLOW_KINDS = [kind for kind in MODELS if kind not in ("CM", "UBM")]


def made(model, **arguments):
    agent = MixTS(model.n_items, model.n_positions, seed=3, **arguments)
    return agent, reference_of(agent)


def follows(model, sessions, **arguments):
    agent, right = made(model, **arguments)
    follow(agent, right, model, sessions)
    assert right.best() == agent.best().tolist()
    assert right.rng.bit_generator.state == agent.rng.bit_generator.state
    return right


# -------------------------------------------------------------------------------- they are the same


@pytest.mark.parametrize("detect", [True, False])
@pytest.mark.parametrize("kind", ["CM", "UBM", *slow(*SLOW_KINDS)])
def test_plays_as_its_reference(kind, detect):
    follows(MODELS[kind], 200, detect=detect)


@pytest.mark.parametrize("kind", ["CM", "UBM", *slow(*SLOW_KINDS)])
def test_plays_as_its_reference_with_a_guard(kind):
    """Production's list is the worst one, and then the best one."""
    best = MODELS[kind].optimal_ranking()
    for initial, tolerance in ((best[::-1], 0.2), (best, 0.5)):
        follows(MODELS[kind], 100, initial=initial, safe=True, tolerance=tolerance)


@pytest.mark.parametrize("kind", ["DBN", *slow("PBM", "UBM", "TPBM")])
def test_one_position(kind):
    follows(MODELS[kind].with_positions(1), 60)


@pytest.mark.parametrize(
    ("model", "sessions"),
    [
        (FEW_STAY, 300),  # items enter the list from below
        (MODELS["CM"], 800),  # so long that shown items are exchanged at random
        (
            TrustBiasModel([0.2, 0.7, 0.1, 0.5, 0.3], [1.0, 0.6, 0.3]),
            100,
        ),  # clicks that do not come from attraction
        (MODELS["DBN"], 100),  # the list is ordered by what goes on below a click
        (MODELS["DCM"], 100),
    ],
)
def test_plays_as_its_reference_where_an_error_would_show(model, sessions):
    """Each of six errors planted in the reference once was noticed in one of these runs."""
    follows(model, sessions)


def test_changes_are_noticed_alike():
    before = PositionBasedModel([0.05, 0.95, 0.1, 0.6, 0.3], [1.0, 0.6, 0.3])
    after = PositionBasedModel([0.95, 0.05, 0.9, 0.4, 0.7], [1.0, 0.6, 0.3])
    agent, right = made(before)
    follow(agent, right, lambda session: after if session >= 600 else before, 900)
    assert right.n_changes > 0


def test_more_items_than_are_followed():
    """Item 300 takes the source of item 0, which takes it back."""
    rng = np.random.default_rng(0)
    agent, right = made(DynamicBayesianModel(rng.random(302), rng.random(302), 0.9, n_positions=3))
    owners = []
    for row in ([300, 5, 301], [301, 4, 300], [0, 300, 1], [0, 4, 7], [7, 0, 300]):
        agent.update(None, row, [1, 1, 0])
        right.learn_from_another(row, [1, 1, 0])
        assert right.differences(agent.state) == {}
        owners.append(right.owner[0])
    assert owners == [300, 300, 300, 300, 0]
    assert right.allows(agent.rank(None).tolist())


class Followed(Agent):
    """An agent that is compared with its reference in each session of a run in Python."""

    def __init__(self, agent, reference):
        self.agent, self.reference = agent, reference

    def rank(self, observation):
        ranking = self.agent.rank(observation)
        assert self.reference.allows(ranking.tolist())
        return ranking

    def update(self, observation, ranking, clicks, reward):
        self.agent.update(observation, ranking, clicks, reward)
        self.reference.learn(ranking.tolist(), clicks.tolist())
        assert self.reference.agrees(self.agent.state)


@pytest.mark.parametrize("kind", ["CM", *slow("PBM", "DBN", "TPBM")])
def test_both_engines_play_as_the_reference(kind):
    agent, right = made(MODELS[kind])
    clickgym.run(Followed(agent, right), ClickEnv(MODELS[kind]), 100, seed=1, engine="python")
    compiled, _ = made(MODELS[kind])
    clickgym.run(compiled, ClickEnv(MODELS[kind]), 100, seed=1, engine="compiled")
    assert right.t == 100
    assert right.differences(compiled.state) == {}
    assert right.rng.bit_generator.state == compiled.rng.bit_generator.state


# ------------------------------------------------------------------------------------- at the edges


@pytest.fixture
def faults(monkeypatch):
    """What is at fault in cases that `edge_cases` draws, as for the agents of the library."""
    monkeypatch.setitem(edge_cases.EVERY_AGENT, "MixTS", MixTS)
    monkeypatch.setattr(edge_cases, "reference_of", reference_of)

    def found(seeds, compiled=True, **more):
        cases = [edge_cases.draw("MixTS", seed, **more) for seed in seeds]
        return [
            f"{case}: {fault}"
            for case in cases
            if (fault := edge_cases.play(case, compiled=compiled))
        ]

    return found


def test_runs_at_the_edges_follow_the_reference(faults):
    assert faults(range(8), most_sessions=25, compiled=False) == []


def test_engines_agree_at_the_edges(faults):
    assert faults(range(100, 108), kinds=("PBM",), most_sessions=25) == []


@pytest.mark.slow
def test_many_runs_at_the_edges(faults):
    assert faults(range(1000, 1300)) == []
