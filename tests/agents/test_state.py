"""Tests of initial states: what the fields declare, and what agents add."""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np
import pytest

from clickgym.agents import CompiledAgent
from clickgym.core.state import Flags, Floats, Ints

pytestmark = pytest.mark.uncompiled


class State(NamedTuple):
    clicks: Annotated[Ints, "L K"]
    changes: Annotated[Floats, "3", (0.0, math.inf, -1.0)]
    rows: Annotated[Ints, "K L", range]
    seen: Annotated[Flags, "2C+1", True]
    prior: Floats
    scale: float


class Declaring(CompiledAgent):
    paper, state_type = "an example", State

    def __init__(self, n_items, n_positions, *, scale=0.5, seed=None):
        super().__init__(n_items, n_positions, seed, scale=scale)

    def sizes(self):
        return super().sizes() | {"C": 2}

    def first_values(self):
        return {"prior": np.full(self.n_items, 0.25)}


def test_the_notation():
    expected = (np.zeros((3, 2), np.int64), np.array([0.0, np.inf, -1.0]))
    expected += (np.tile(np.arange(3), (2, 1)), np.ones(5, np.bool_), np.full(3, 0.25), 0.5)
    for value, wanted in zip(Declaring(3, 2).state, expected, strict=True):
        np.testing.assert_array_equal(value, wanted, strict=isinstance(wanted, np.ndarray))


@pytest.mark.parametrize("prior", [np.zeros(3, np.int64), np.zeros(3, np.float32)])
def test_first_values_have_the_type_of_their_field(prior):
    class Other(Declaring):
        def first_values(self):
            return {"prior": prior}

    with pytest.raises(ValueError, match=r"array prior .* but its field declares float64"):
        Other(3, 2)
