"""Flip single bits in what the library writes and reads back, and see what reading says.

Each flip must be refused by one line that names the file, or do no harm: the values that are read
are equal. Files that people write and edit (JSON) may hold other values after a flip.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

import clickgym
from clickgym.envs import load_instance


class Kind(NamedTuple):
    """Files of one kind, and what reading them gives, as values that can be compared.

    Attributes:
        files: of which one is damaged at a time.
        read: what the package makes of a file.
    """

    files: tuple[Path, ...]
    read: Callable[[Path], Any]


def kinds(folder: Path) -> dict[str, Kind]:
    """Write one of everything into a folder."""
    out = folder / "sweep"
    _sweep(out)
    clickgym.make_agent("TopRank", gym.make("PBMRank-v0"), horizon=500).save(folder / "agent.npz")
    load_instance("yandex-9982").save(folder / "instance.json")
    load_instance("linear:n_pool=9,n_items=6,n_features=3").save(folder / "features.json")
    runs = tuple(sorted((out / "runs").glob("*.npy")))
    records = tuple((out / "runs").glob("*.json"))
    return {
        "run, sweep over it": Kind(runs, lambda _: _sweep(out)),
        "record, sweep over it": Kind(records, lambda _: _sweep(out)),
        "saved agent": Kind((folder / "agent.npz",), _agent),
        "instance (.json)": Kind((folder / "instance.json",), _instance),
        "features (.json)": Kind((folder / "features.json",), _instance),
    }


def _sweep(out: Path) -> Any:
    arguments = {"checkpoints": [10, 100, 300], "seed": 5, "n_jobs": 1}
    environments, agents = ["PBMRank-v0", "CMRank-v0"], ["TopRank", "Random"]
    table = clickgym.sweep(environments, agents, 300, 3, out=out, **arguments).frame
    return table.rows(), dict(table.schema)


def _agent(path: Path) -> bytes:
    clickgym.agents.TopRank.load(path).save(copy := io.BytesIO())
    return copy.getvalue()


def _instance(path: Path) -> str:
    copy = path.with_suffix(".copy")
    load_instance(path).save(copy)
    return copy.read_text()


def flip(kind: Kind, whole: Any, rng: np.random.Generator) -> tuple[str, str]:
    """Damage a file, read it, and put it back.

    Args:
        kind: of the file.
        whole: what reading gives without damage.
        rng: chooses file and bit.

    Returns:
        ``"refused"``, ``"equal"``, ``"other values"`` or ``"broken"``; and where, with what was
        said.
    """
    path = kind.files[rng.integers(len(kind.files))]
    content = path.read_bytes()
    bit = int(rng.integers(8 * len(content)))
    damaged = bytearray(content)
    damaged[bit // 8] ^= 1 << bit % 8
    path.write_bytes(damaged)
    where = f"{path.name}, byte {bit // 8}, bit {bit % 8}"
    try:
        # in words: unlike numbers that are none, words are equal to themselves
        is_equal = repr(kind.read(path)) == repr(whole)
    except BaseException as error:
        is_line = isinstance(error, ValueError) and "\n" not in str(error)
        is_refused = is_line and path.name in str(error)
        return "refused" if is_refused else "broken", f"{where}: {error!r}"
    finally:
        path.write_bytes(content)
    return "equal" if is_equal else "other values", where


def flipped(kind: Kind, number: int, seed: int) -> Iterator[tuple[str, str]]:
    """What becomes of many flips, one after the other."""
    whole, rng = kind.read(kind.files[0]), np.random.default_rng(seed)
    for _ in range(number):
        yield flip(kind, whole, rng)
