"""MixTS plays the lists of its reference in plain Python, and has its state after each session."""

from __future__ import annotations

import edge_cases
import numpy as np
import pytest
from mix_ts_in_python import MixTSReference
from reference_agents import MODELS, follow
from slow import slow

from clickgym.envs import DynamicBayesianModel, MixtureModel, PositionBasedModel
from clickgym_lab.mix_ts import MixTS


def follows(model, sessions, after=None, at=0, likelihood=1.0, **arguments):
    """Users change after `at` sessions, if there is another model; `likelihood` is that before."""
    agent = MixTS(model.n_items, model.n_positions, seed=3, **arguments)
    reference = MixTSReference(agent)
    agent.state.likelihood[:] = reference.likelihood[:] = likelihood
    follow(agent, reference, lambda session: after if after and session >= at else model, sessions)
    assert reference.best() == agent.best().tolist()
    assert reference.rng.bit_generator.state == agent.rng.bit_generator.state
    return reference


@pytest.mark.parametrize("kind", MODELS)
def test_click_models(kind):
    follows(MODELS[kind], 200)


@pytest.mark.parametrize(
    ("n_items", "n_positions", "sessions"),
    [(1, 1, 300), (7, 1, 300), (4, 4, 300), (12, 5, 300), (25, 10, 100), *slow((25, 10, 300))],
)
def test_sizes_and_mixtures(n_items, n_positions, sessions):
    """Users of two kinds."""
    rng = np.random.default_rng(n_items)
    examination = np.linspace(1, 0.3, n_positions)
    kinds = [
        PositionBasedModel(rng.random(n_items), examination),
        DynamicBayesianModel(*rng.random((2, n_items)), 0.9, n_positions=n_positions),
    ]
    follows(MixtureModel(kinds, [0.6, 0.4]), sessions)


def test_users_who_change():
    before = PositionBasedModel([0.05, 0.95, 0.1, 0.6, 0.3], [1.0, 0.6, 0.3])
    after = PositionBasedModel([0.95, 0.05, 0.9, 0.4, 0.7], [1.0, 0.6, 0.3])
    assert follows(before, 500, after, 300).n_changes > 0
    assert follows(before, 350, after, 300, detect=False).n_changes == 0


def test_small_likelihoods():
    """They become evidence before they are 0."""
    before, after = (PositionBasedModel(np.full(12, a), np.ones(12)) for a in (1 - 1e-6, 1e-6))
    follows(before, 106, after, 100, likelihood=1e-322)


def test_edge_cases(monkeypatch):
    """Probabilities of 0 and 1, cut sessions and changes; in both engines with users of the PBM.
    With seed 2 no click is above another position, so that PBM and UBM are equal, but for the last
    bit.
    """
    monkeypatch.setitem(edge_cases.EVERY_AGENT, "MixTS", MixTS)
    monkeypatch.setattr(edge_cases, "reference_of", MixTSReference)
    for seed in range(3, 7):
        assert edge_cases.play(edge_cases.draw("MixTS", seed), compiled=False) == ""
        assert edge_cases.play(edge_cases.draw("MixTS", seed, ["PBM"])) == ""
