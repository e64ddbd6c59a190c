"""Saved agents: whole files or none, and refusals of one line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from reference_agents import MODELS, as_plain, make

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
    assert as_plain(type(agent).load(tmp_path / "agent.npz").state) == as_plain(agent.state)


def saved(folder: Path, name: str = "TopRank") -> Path:
    path = folder / "agent.npz"
    make(name, PBM).save(path)
    return path


def test_damaged_files(tmp_path):
    path = saved(tmp_path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(
        ValueError, match=rf"^{re.escape(str(path))} is not a saved agent, or damaged "
    ):
        TopRank.load(path)


def test_a_file_that_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        TopRank.load(tmp_path / "nowhere.npz")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"ranking": [4, 7, 0]}, "is not a saved agent, or damaged"), ({"format": None}, "format")],
)
def test_files_that_were_changed(tmp_path, changed, message):
    """To a list that cannot be shown, and to one without a format."""
    agent, path = make("TopRank", PBM), tmp_path / "agent.npz"
    agent.rank(None)
    agent.save(path)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    if "ranking" in changed:
        arrays["ranking"] = np.array(changed["ranking"])
    else:
        described = json.loads(str(arrays["description"])) | changed
        arrays["description"] = np.array(json.dumps(described))
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=message):
        TopRank.load(path)


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
    with pytest.raises(ValueError, match=r"damaged \(Object arrays cannot be loaded"):
        TopRank.load(path)
    assert not witness.exists()
