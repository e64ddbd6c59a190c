"""Tests of the initial states of agents."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
import pytest

from clickgym.agents import CompiledAgent
from clickgym.core.state import Floats, Ints

pytestmark = pytest.mark.uncompiled


@pytest.mark.parametrize(
    ("field", "values"),
    [
        (Floats, {"prior": np.zeros(3, np.int64)}),
        (Floats, {"prior": np.zeros(3, np.float32)}),
        (Annotated[Ints, "L", 0.5], {}),
    ],
)
def test_first_values_have_the_type_of_their_field(field, values):
    class Other(CompiledAgent):
        paper, state_type = "an example", NamedTuple("State", [("prior", field)])

        def first_values(self):
            return values

    with pytest.raises(ValueError, match=r" prior .* its field declares (float64|integers)"):
        Other(3, 2)
