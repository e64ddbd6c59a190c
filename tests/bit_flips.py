"""Flip single bits in everything that the packages write and read back, and see what reading says.

Each flip must be refused by one line that names the file, or do no harm: the values that are read
are equal. Files without a
checksum may hold other values after a flip: those that people write and edit (JSON of instances,
    CSV).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import clickgym
from clickgym.core.files import write_whole
from clickgym.envs import Instance, load_instance
from clickgym_logs import contextual_instance, read_log, read_ratings, record, write_tidy

ENVS, AGENTS = ["PBMRank-v0", "CMRank-v0"], ["TopRank", "Random"]


@dataclass(frozen=True)
class Kind:
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
    trained = clickgym.make_agent("TopRank", gym.make("PBMRank-v0"), horizon=500, seed=0)
    clickgym.run(trained, gym.make("PBMRank-v0"), 500, seed=0)
    trained.save(folder / "agent.npz")
    load_instance("yandex-9982").save(folder / "instance.json")
    env = gym.make(
        "ContextualUBMRank-v0", instance="linear:n_items=4,n_positions=3,n_features=3,seed=1"
    )
    log = record(clickgym.make_agent("Random", env, seed=0), env, 100, seed=0)
    for ending in ("parquet", "csv", "csv.gz"):
        write_tidy(log, folder / f"log.{ending}")
    ratings = [
        f"{user},{item},{(user * item) % 5 + 1}" for user in range(1, 20) for item in range(1, 15)
    ]
    write_whole(folder / "ratings.csv", "\n".join(["userId,movieId,rating", *ratings, ""]))
    contextual_instance(read_ratings(folder / "ratings.csv"), dimension=2, n_positions=3).save(
        folder / "features.json"
    )

    runs = tuple(sorted((out / "runs").rglob("*.parquet")))
    config = (out / "config.json",)
    return {
        "run, sweep over it": Kind(runs, lambda _: _sweep(out)),
        "run, report of it": Kind(runs, lambda _: _results(out)),
        "config.json, report": Kind(config, lambda _: _results(out)),
        "config.json, sweep over it": Kind(config, lambda _: _sweep(out)),
        "saved agent": Kind((folder / "agent.npz",), _agent),
        "log (.parquet)": Kind((folder / "log.parquet",), _log),
        "log (.csv.gz)": Kind((folder / "log.csv.gz",), _log),
        "log (.csv)": Kind((folder / "log.csv",), _log),
        "instance (.json)": Kind((folder / "instance.json",), _instance),
        "features (.json)": Kind((folder / "features.json",), _instance),
        "ratings (.csv)": Kind((folder / "ratings.csv",), _ratings),
    }


def _sweep(out: Path) -> Any:
    table = clickgym.sweep(
        ENVS, AGENTS, 300, 3, out=out, checkpoints=[10, 100, 300], seed=5, n_jobs=1
    ).frame
    return table.rows(), dict(table.schema)


def _results(out: Path) -> Any:
    results = clickgym.Results(out)
    frame = results.rows
    return frame.rows(), dict(frame.schema), results.config


def _agent(path: Path) -> Any:
    agent = clickgym.agents.TopRank.load(path)
    arrays = {name: np.asarray(value).tolist() for name, value in agent.state._asdict().items()}
    return (
        arrays,
        agent.hyperparameters,
        agent.rng.bit_generator.state,
        agent.ranking.tolist(),
        agent.n_items,
        agent.n_positions,
    )


def _log(path: Path) -> Any:
    log = read_log(path)
    return log.to_frame().rows()


def _instance(path: Path) -> Any:
    instance: Instance = load_instance(path)
    listed = None if instance.initial_ranking is None else instance.initial_ranking.tolist()
    models = {kind: model.to_dict() for kind, model in instance.models.items()}
    return (
        instance.name,
        instance.description,
        instance.origin,
        instance.n_positions,
        listed,
        dict(instance.estimation),
        models,
    )


def _ratings(path: Path) -> Any:
    read = read_ratings(path)
    return (
        read.users.tolist(),
        read.items.tolist(),
        read.stars.tolist(),
        read.user_labels,
        read.item_labels,
    )


# ----------------------------------------------------------------------------------------- flipping


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
        result = "equal" if _same(kind.read(path), whole) else "other values"
        return result, where
    except BaseException as error:
        said = str(error)
        told = isinstance(error, ValueError) and "\n" not in said and path.name in said
        return "refused" if told else "broken", f"{where}: {error!r}"
    finally:
        path.write_bytes(content)


def _same(one: Any, other: Any) -> bool:
    # of which, unlike of values, those that are not a number are equal
    return repr(one) == repr(other)


def flipped(kind: Kind, number: int, seed: int) -> Iterator[tuple[str, str]]:
    """What becomes of many flips, one after the other."""
    whole, rng = kind.read(kind.files[0]), np.random.default_rng(seed)
    for _ in range(number):
        yield flip(kind, whole, rng)
