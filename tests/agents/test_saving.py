"""Tests of saved agents: NumPy arguments, and files that cannot be loaded."""

from __future__ import annotations

import re

import numpy as np
import pytest

from clickgym.agents import PBMUCB, EpsilonGreedy, Fixed, TopRank
from tests.reference_agents.following import as_plain
from tests.reference_agents.models import MODELS, make


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("agent_class", "arguments"),
    [
        (Fixed, {"ranking": np.array([1, 2], np.int32)}),
        (EpsilonGreedy, {"epsilon": np.float32(0.5)}),
        (PBMUCB, {"examination": np.array([1, 0.5], np.float32), "epsilon": np.float32(0.5)}),
    ],
)
def test_numpy_arguments(agent_class, arguments, tmp_path):
    agent = agent_class(4, 2, **arguments)
    agent.save(tmp_path / "agent.npz")
    assert as_plain(agent_class.load(tmp_path / "agent.npz").state) == as_plain(agent.state)


def test_files_of_another_class_and_damaged_ones(tmp_path):
    path = tmp_path / "agent.npz"
    make("TopRank", MODELS["PBM"]).save(path)
    with pytest.raises(ValueError, match="holds a saved TopRank, not a Fixed"):
        Fixed.load(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(
        ValueError, match=rf"^{re.escape(str(path))} is not a saved agent, or is damaged "
    ):
        TopRank.load(path)
