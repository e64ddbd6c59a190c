"""Constructors of agents: signatures that say what an agent takes, checks, and copies."""

import copy
import inspect
import re

import cloudpickle
import numpy as np
import pytest
from edge_cases import EVERY_AGENT

from clickgym.agents import (
    C2UCB,
    PBMUCB,
    BatchRank,
    CascadeKLUCB,
    CascadeTS,
    CascadeUCB1,
    ContextualAgent,
    Range,
    UBMLinUCB,
)
from clickgym.core.checks import check_at_least, check_flag


@pytest.mark.parametrize("name", EVERY_AGENT)
def test_signatures(name):
    """Sizes, then hyper-parameters by keyword, then the seed; nothing is hidden in ``**keywords``,
    and what may be searched or is required is an argument.
    """
    agent = EVERY_AGENT[name]
    parameters = inspect.signature(agent).parameters
    kinds = [parameter.kind for parameter in parameters.values()]
    assert list(parameters)[:2] == ["n_items", "n_positions"]
    assert list(parameters)[-1] == "seed"
    assert set(kinds[2:]) == {inspect.Parameter.KEYWORD_ONLY}
    assert {*agent.search_space, *agent.requires} <= set(parameters)


@pytest.mark.parametrize(
    ("agent", "arguments", "hyperparameters", "message"),
    [
        (CascadeTS, (5, 3), {"x": 1}, "got an unexpected keyword argument 'x'"),
        (C2UCB, (5, 3), {"n_features": 2, "x": 1}, "got an unexpected keyword argument 'x'"),
        (BatchRank, (5, 3), {}, "missing 1 required keyword-only argument: 'horizon'"),
        (CascadeUCB1, (5, 3, 0), {}, "takes 3 positional arguments but 4 were given"),
        (CascadeUCB1, (5,), {}, "missing 1 required positional argument: 'n_positions'"),
    ],
)
def test_unexpected_and_missing_arguments(agent, arguments, hyperparameters, message):
    """Python's own words refuse them, with the name of the class."""
    with pytest.raises(TypeError, match=f"^{re.escape(f'{agent.__name__}.__init__() {message}')}$"):
        agent(*arguments, **hyperparameters)


class Optimistic(CascadeKLUCB):
    def __init__(self, n_items, n_positions, *, hope=2.0, seed=None):
        super().__init__(n_items, n_positions, c=hope / 2, seed=seed)


class Wide(ContextualAgent):
    state_type = UBMLinUCB.state_type

    def __init__(self, n_items, n_positions, *, n_features, wide=False, seed=None):
        super().__init__(n_items, n_positions, n_features, seed, wide=check_flag("wide", wide))

    def _first_state(self):
        return self.sizes()


def test_own_constructors():
    assert Optimistic(5, 3, hope=4).hyperparameters["c"] == 2.0
    assert "c" not in inspect.signature(Optimistic).parameters
    agent = Wide(5, 3, n_features=np.int64(4), wide=True)
    assert agent.hyperparameters == {"n_features": 4, "wide": True}
    assert agent.state == {"L": 5, "K": 3, "d": 4}
    with pytest.raises(ValueError, match="n_features is 0; expected a positive integer"):
        Wide(5, 3, n_features=0)


def test_a_warning_names_the_line_that_made_the_agent():
    with pytest.warns(UserWarning, match="likelier to be examined") as warned:
        UBMLinUCB(5, 3, n_features=2, examination=[[0.5, 0, 0], [0.9, 0.5, 0], [0.5, 0.5, 0.5]])
    assert warned[0].filename == __file__


def test_copies_of_agents_of_local_classes():
    class Local(PBMUCB):
        """Of no module, so that its class is copied, too."""

        search_space = {"scale": Range(0.5, 2.0)}

        def __init__(self, n_items, n_positions, *, examination, scale=1.0, seed=None):
            super().__init__(n_items, n_positions, examination=examination, seed=seed)
            self.hyperparameters["scale"] = check_at_least("scale", scale, 0)

    agent = Local(5, 2, examination=[1.0, 0.5], scale=2, seed=0)
    for other in (copy.deepcopy(agent), cloudpickle.loads(cloudpickle.dumps(agent))):
        assert repr(other) == repr(agent)
        assert other.rank().tolist() == copy.deepcopy(agent).rank().tolist()
    local = cloudpickle.loads(cloudpickle.dumps(Local))
    assert inspect.signature(local) == inspect.signature(Local)
    assert local.search_space == Local.search_space
    assert local(5, 2, examination=[1.0, 0.5], scale=2, seed=0).hyperparameters["scale"] == 2.0
