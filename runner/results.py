"""The folder of a sweep's results: configuration, a file for each finished run, and the tables of a finished sweep."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars

from ..envs.files import write_whole

__all__ = ["Trial", "make_folder", "open_folder", "read_finished", "read_results", "write_tables", "write_trial"]

CONFIG, TABLE, TIMINGS, TRIALS = "config.json", "results.parquet", "timings.parquet", "cells"
COLUMNS = ("env", "instance", "agent", "run", "step", "regret", "reward", "clicks")
TIMED = ("env", "instance", "agent", "run", "engine", "seconds", "training_sessions", "training_seconds")


class Trial(NamedTuple):
    """One run of one pair; its names are what its seeds and its file derive from."""

    env: str
    instance: str
    agent: str
    run: int

    @property
    def file(self) -> str:
        """Its name in the folder."""
        return self._digest().hexdigest()[:20] + ".parquet"

    def seeds(self, seed: int) -> tuple[int, int]:
        """Seeds of the environment and of the agent: children of ``seed`` by name, so that no other trial matters."""
        key = np.frombuffer(self._digest().digest(), np.uint32)
        env, agent = np.random.SeedSequence(seed, spawn_key=tuple(key.tolist())).generate_state(2, np.uint64)
        return int(env), int(agent)

    def _digest(self) -> Any:
        return hashlib.sha256("\n".join(map(str, self)).encode())


def make_folder(out: Path) -> None:
    """Make the folder of results, if need be."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ValueError(f"{out} is a file, or below one; the results need a folder") from None


def open_folder(out: Path, config: dict[str, Any]) -> None:
    """Make the folder and write the configuration, or check that the folder holds the same.

    Raises:
        ValueError: the folder holds something else, or results of another configuration.
    """
    make_folder(out)
    if any(out.iterdir()):
        before = _read_config(out)
        changed = [key for key in config if before.get(key) != config[key]]
        if changed:
            what = "; ".join(f"{key}: {_short(before.get(key))} there, {_short(config[key])} now" for key in changed)
            raise ValueError(f"{out} holds results of another configuration ({what}); choose another folder")
    else:
        write_whole(out / CONFIG, lambda path: path.write_text(json.dumps(config, indent=1) + "\n"))
    (out / TRIALS).mkdir(exist_ok=True)


def write_trial(out: Path, trial: Trial, frame: polars.DataFrame) -> None:
    """Write the table of a finished trial."""
    write_whole(out / TRIALS / trial.file, frame.write_parquet)


def read_finished(out: Path, trials: Iterable[Trial]) -> dict[Trial, polars.DataFrame]:
    """The tables of those trials that are finished.

    Raises:
        ValueError: a file is damaged.
    """
    return {trial: _read_trial(out, trial) for trial in trials if (out / TRIALS / trial.file).exists()}


def _read_trial(out: Path, trial: Trial) -> polars.DataFrame:
    path = out / TRIALS / trial.file
    try:
        frame = _read(path)
        if frame.select(Trial._fields).row(0) != tuple(trial):
            raise ValueError("it belongs to another run")
        return frame
    except (OSError, ValueError, polars.exceptions.PolarsError) as error:
        raise ValueError(f"{path} is damaged ({error}); delete it to have {trial} computed again") from None


def write_tables(out: Path, trials: Iterable[Trial], metrics: Iterable[str]) -> polars.DataFrame:
    """Put the tables of all trials together, and write them and their times.

    Args:
        out: the folder, where every trial is finished.
        trials: in the order of the table.
        metrics: the further columns of the table.

    Returns:
        The table.
    """
    frames = [_read_trial(out, trial) for trial in trials]
    table = polars.concat([frame.select(*COLUMNS, *metrics) for frame in frames])
    timings = polars.concat([frame.select(TIMED).head(1) for frame in frames])
    write_whole(out / TIMINGS, timings.write_parquet)
    write_whole(out / TABLE, table.write_parquet)
    return table


def read_results(folder: str | os.PathLike[str]) -> tuple[polars.DataFrame, polars.DataFrame, dict[str, Any]]:
    """The table, the timings and the configuration of a finished sweep.

    Args:
        folder: what `sweep` was given as ``out``.

    Raises:
        ValueError: the folder is not one of finished results.
    """
    folder = Path(folder)
    config = _read_config(folder)
    if not (folder / TABLE).exists():
        raise ValueError(f"{folder} holds an unfinished sweep; run it again with the same arguments to finish it")
    try:
        return _read(folder / TABLE), _read(folder / TIMINGS), config
    except (OSError, polars.exceptions.PolarsError) as error:
        raise ValueError(f"{folder} holds a damaged table: {error}") from None


def _read_config(folder: Path) -> dict[str, Any]:
    try:
        config = json.loads((folder / CONFIG).read_text())
    except FileNotFoundError:
        raise ValueError(f"{folder} is not a results folder: it has no {CONFIG}") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"{folder / CONFIG} cannot be read: {error}") from None
    if not isinstance(config, dict) or "clickgym" not in config:
        raise ValueError(f"{folder / CONFIG} is not the configuration of a sweep")
    return config


def _read(path: Path) -> polars.DataFrame:
    return polars.read_parquet(path, glob=False)  # a folder's name may have brackets


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
