"""Tests of classes of items with equal counts: agreement with the references, invariants, saving,
and ties.
"""

from __future__ import annotations

import io
import itertools

import numpy as np
import pytest

from clickgym.agents import DCMKLUCB, CascadeKLUCB, CascadeUCB1
from clickgym.agents.cascade import many_items
from clickgym.agents.common.cascade_agent import CascadeAgent
from tests.helpers.click_stories import assert_uniform
from tests.reference_agents.following import follow
from tests.reference_agents.models import MODELS
from tests.reference_agents.registry import reference_of, tried_options

pytestmark = pytest.mark.uncompiled

KINDS = [CascadeUCB1, CascadeKLUCB, DCMKLUCB]


@pytest.fixture
def classes(monkeypatch):
    """Use classes of equal counts for catalogues of any size."""
    monkeypatch.setattr(many_items, "MANY_ITEMS", 1)


@pytest.mark.parametrize(
    ("kind", "model", "arguments"),
    [
        *((kind, model, {}) for kind in KINDS for model in ("CM", "PBM")),
        *((kind, "PBM", {k: v}) for kind in KINDS for k, v in tried_options(kind.__name__)),
    ],
)
def test_lists_and_counts_of_the_reference(kind, model, arguments, classes):
    """Lists and counts agree with the reference, also after the agent is saved and loaded."""
    agent, file = kind(5, 3, seed=1, **arguments), io.BytesIO()
    assert isinstance(agent.state, many_items.ClassState), (
        f"{agent!r} has no classes for large catalogues: let the kernels of many_items.py read "
        "each of its options, and add the option's name to HYPERPARAMETERS"
    )
    follow(agent, reference_of(agent), MODELS[model], 400)
    agent.save(file)
    file.seek(0)
    again = kind.load(file)
    for _ in range(20):
        assert np.array_equal(agent.rank(), again.rank())


def test_ties_are_uniform_between_classes(classes):
    """Null: items with 1 click in 1 examination and items with 2 in 2 both have the index 1, so the
    12 ordered pairs of four such items are shown equally often in 6,000 sessions.
    """
    agent = CascadeKLUCB(4, 2, seed=5)
    for items in ([0, 1], [0, 1], [2, 3]):
        agent.ranking[:] = items
        agent.update(None, items, [1, 1])
    assert agent.state.n_classes[0] == 2
    shown = [tuple(agent.rank().tolist()) for _ in range(6000)]
    assert_uniform(shown, itertools.permutations(range(4), 2))


def test_an_item_may_be_shown_again_where_all_indices_are_equal():
    """All clicked items have the index 1, including those in classes that are left out at first."""
    agent, shown = CascadeKLUCB(1000, 1, seed=0), []
    for _ in range(1300):
        ranking = agent.rank(None)
        agent.update(None, ranking, [1])
        shown.append(int(ranking[0]))
    assert len({*shown[:1000]}) == 1000
    assert len({*shown[1000:]}) < 300


def test_what_would_be_lost_in_classes_keeps_every_index(classes):
    """A subclass with its own kernel, hyperparameters or initial values keeps an index for every
    item. Any other subclass has classes, as in 9.0, which saved such agents.
    """

    class Own(CascadeUCB1):
        def rank_kernel(state, rng, ranking):
            ranking[:] = state.order[: len(ranking)]

    class Longer(CascadeUCB1):
        def __init__(self, n_items, n_positions, *, prior=0, seed=None):
            CascadeAgent.__init__(
                self, n_items, n_positions, seed, feedback="last_click", prior=prior
            )

    class Informed(CascadeUCB1):
        def first_values(self):
            return super().first_values() | {"examined": np.array([3, 0, 0, 0])}

    class Cautious(CascadeKLUCB):
        def __init__(self, n_items, n_positions, *, seed=None):
            super().__init__(n_items, n_positions, c=5, seed=seed)

    for kind in (Own, Longer, Informed):
        assert not isinstance(kind(4, 2).state, many_items.ClassState)
    assert isinstance(Cautious(4, 2).state, many_items.ClassState)
    assert Informed(4, 2).state.examined[0] == 3
