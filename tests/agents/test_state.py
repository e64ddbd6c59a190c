"""First states: what fields declare, and what agents add."""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np
import pytest

from clickgym.agents import CompiledAgent
from clickgym.core.state import Flags, Floats, Ints
from clickgym.envs import kernel

pytestmark = pytest.mark.uncompiled


class State(NamedTuple):
    clicks: Annotated[Ints, "L K"]
    mean: Annotated[Floats, "L", math.inf]
    changes: Annotated[Floats, "3", (0.0, 0.5, -1.0)]
    rows: Annotated[Ints, "K L", range]
    chance: Annotated[Floats, "2K+1"]
    seen: Annotated[Flags, "L+1", True]
    slots: Annotated[np.ndarray[tuple[int, ...], np.dtype[np.int32]], "2C", -1]
    prior: Floats
    given: Floats
    scale: float


@kernel
def rank(state, rng, ranking):
    for k in range(len(ranking)):
        ranking[k] = k


@kernel
def update(state, ranking, clicks):
    state.clicks[ranking[0], 0] += clicks[0]


class Declaring(CompiledAgent):
    paper = "an example"
    state_type = State
    rank_kernel, update_kernel = rank, update

    def __init__(self, n_items, n_positions, *, scale=1.0, seed=None):
        super().__init__(n_items, n_positions, seed, scale=scale, given=np.ones(2), other=5)

    def sizes(self):
        return super().sizes() | {"C": 2}

    def first_values(self):
        return {"prior": np.full(self.n_items, 0.25)}


def test_the_notation():
    agent = Declaring(3, 2, scale=0.5, seed=0)
    expected = {
        "clicks": np.zeros((3, 2), np.int64),
        "mean": np.full(3, np.inf),
        "changes": np.array([0.0, 0.5, -1.0]),
        "rows": np.tile(np.arange(3), (2, 1)),
        "chance": np.zeros(5),
        "seen": np.ones(4, np.bool_),
        "slots": np.full(4, -1, np.int32),
        "prior": np.full(3, 0.25),
        "given": np.ones(2),
        "scale": 0.5,
    }
    assert agent.state._fields == tuple(expected)
    for name, value in expected.items():
        np.testing.assert_array_equal(
            getattr(agent.state, name), value, strict=isinstance(value, np.ndarray)
        )
    assert not np.shares_memory(agent.state.given, agent.hyperparameters["given"])
    agent.rank()
    agent.update(None, [0, 1], [1, 0])
    assert agent.state.clicks[0, 0] == 1


def test_an_array_of_another_dtype_than_its_field_says_is_refused():
    class OfIntegers(Declaring):
        def first_values(self):
            return {"prior": np.full(self.n_items, 2)}

    with pytest.raises(
        ValueError, match="prior of State has the dtype int64; its field says float64"
    ):
        OfIntegers(3, 2)


class Joined(NamedTuple):
    clicks: Annotated[Ints, "LK"]


class Unknown(NamedTuple):
    clicks: Annotated[Ints, "L M"]


@pytest.mark.parametrize("state", [Joined, Unknown])
def test_what_is_no_shape_is_refused_with_the_notation(state):
    agent = type("Bad", (Declaring,), {"state_type": state})
    with pytest.raises(ValueError, match=r"letters L, K, C, and a space between two .*'L K'"):
        agent(3, 2)
