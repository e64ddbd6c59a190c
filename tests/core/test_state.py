"""Tests of the initial states of agents."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from clickgym.agents import CompiledAgent
from clickgym.core.state import Floats

pytestmark = pytest.mark.uncompiled


class State(NamedTuple):
    prior: Floats


@pytest.mark.parametrize("prior", [np.zeros(3, np.int64), np.zeros(3, np.float32)])
def test_first_values_have_the_type_of_their_field(prior):
    class Other(CompiledAgent):
        paper, state_type = "an example", State

        def first_values(self):
            return {"prior": prior}

    with pytest.raises(ValueError, match=r"array prior .* but its field declares float64"):
        Other(3, 2)
