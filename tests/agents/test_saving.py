"""Saved agents: whole files or none, and refusals of one line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from reference_agents import MODELS, make, plain

from clickgym.agents import (
    PBMUCB,
    EpsilonGreedy,
    Fixed,
    TopRank,
)

PBM = MODELS["PBM"]


@pytest.mark.parametrize(
    "agent",
    [
        Fixed(4, 2, ranking=np.array([1, 2], np.int32)),
        EpsilonGreedy(4, 2, epsilon=np.float32(0.5)),
        PBMUCB(4, 2, examination=np.array([1, 0.5], np.float32), epsilon=np.float32(0.5)),
    ],
    ids=lambda agent: repr(agent)[:40],
)
def test_numpy_arguments(agent, tmp_path):
    agent.save(tmp_path / "agent.npz")
    assert plain(type(agent).load(tmp_path / "agent.npz").state) == plain(agent.state)


def saved(folder: Path, name: str = "TopRank") -> Path:
    path = folder / "agent.npz"
    make(name, PBM).save(path)
    return path


def rewritten(path: Path, **changes: object) -> None:
    """Change entries of a saved file; None drops one, and a dict is merged into the description."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    for name, value in changes.items():
        if value is None:
            del arrays[name]
        elif isinstance(value, dict):
            arrays[name] = np.array(json.dumps(json.loads(str(arrays[name])) | value))
        else:
            arrays[name] = np.asarray(value)
    np.savez(path, **arrays)


SPOILERS = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-200]),
    "state of another size": lambda path: rewritten(path, state_wins=np.ones((4, 4), np.int64)),
    "bad arguments": lambda path: rewritten(
        path, description={"hyperparameters": {"colour": "red"}}
    ),
}


@pytest.mark.parametrize("spoil", SPOILERS.values(), ids=SPOILERS)
def test_spoiled_files(spoil, tmp_path):
    path = saved(tmp_path)
    spoil(path)
    with pytest.raises(
        ValueError, match=rf"^{re.escape(str(path))} is not a saved agent, or damaged "
    ) as caught:
        TopRank.load(path)
    assert "pickle" not in str(caught.value)  # no advice to run what is in the file


class Evil:
    """Unpickling it leaves a file behind."""

    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self):
        return Path.touch, (self.witness,)


def test_nothing_is_unpickled(tmp_path):
    path, witness = saved(tmp_path), tmp_path / "witness"
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    np.savez(path, **(arrays | {"state_wins": np.array([Evil(witness)], dtype=object)}))
    with pytest.raises(ValueError, match=r"damaged \(it holds something else than arrays"):
        TopRank.load(path)
    assert not witness.exists()
