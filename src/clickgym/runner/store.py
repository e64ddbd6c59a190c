"""Finished runs in a results folder: a file for each sweep, in lines of JSON.

The first line says what the sweep is of, and each further line is a finished run, with a key that
hashes all that it depends on. Lines are only added. So several commands may fill one folder, and
folders may be merged by copying their files. A line that was cut short, by a full disk or the end
of the process, is no finished run.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple

import numpy as np
import polars

from ..core.checks import short
from ..core.files import append, make_folder
from ..envs.result import Result, rows_of_runs
from .config import SETTING, Config, begun, check_cells, run_seed, shown_of

RUNS = "runs"
"""The folder of the files within a results folder."""


class FinishedRun(NamedTuple):
    """The measurements of a finished run.

    Attributes:
        engine, seconds, trained: as in `Result`.
        measured: little-endian float64, a row of checkpoints for each measure.
    """

    engine: str
    seconds: float
    trained: int | None
    measured: bytes

    @classmethod
    def of(cls, result: Result) -> FinishedRun:
        """The measurements of a result."""
        columns = [result.regret, result.reward, result.clicks, *result.metrics.values()]
        measured = np.array(columns, "<f8").tobytes()
        return cls(result.engine, float(result.seconds), result.trained, measured)


class Journal:
    """The file of a sweep, to which its runs are added when they are finished.

    Args:
        folder: the results folder, created if missing.
        config: what the sweep is of.
    """

    def __init__(self, folder: Path, config: Config) -> None:
        make_folder(folder / RUNS)
        now = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
        self.path = folder / RUNS / f"{now}-{token_hex(4)}.jsonl"
        append(self.path, json.dumps(config.to_json()) + "\n")

    def add(self, finished: Mapping[str, FinishedRun]) -> None:
        """Keep finished runs, by their keys.

        Raises:
            OSError: nothing can be written.
        """
        lines = [
            json.dumps([key, *run[:3], b64encode(run.measured).decode()])
            for key, run in finished.items()
        ]
        append(self.path, "".join(f"{line}\n" for line in lines))


def read(folder: Path) -> tuple[dict[str, Config], dict[str, FinishedRun]]:
    """What the sweeps into a folder were of, by the names of their files, and all finished runs by
    their keys.

    Raises:
        ValueError: it holds results of another version.
    """
    configs, finished = {}, {}
    for file in sorted((folder / RUNS).glob("[!.]*.jsonl")):
        first, *others = file.read_bytes().splitlines() or [b""]
        try:
            header = json.loads(first)
        except ValueError:  # it was cut short
            continue
        configs[file.name] = Config.from_json(folder, header)
        for line in others:
            try:
                key, engine, seconds, trained, measured = json.loads(line)
                content = b64decode(measured, validate=True)
                finished[key] = FinishedRun(engine, seconds, trained, content)
            except (ValueError, TypeError):  # likewise
                continue
    return configs, finished


def read_folders(folders: Sequence[Path]) -> tuple[polars.DataFrame, Config, list[str]]:
    """The rows of the finished runs that the table of some folders shows, what it is of, and a line
    for each kind of runs that it does not show.

    Raises:
        ValueError: a folder is not one of results, two instances are the same users, a label stands
            for something else in another folder, or no run is finished.
    """
    by_folder: dict[Path, dict[str, Config]] = {}
    finished: dict[str, FinishedRun] = {}
    for folder in folders:
        by_folder[folder], its_runs = read(folder)
        if not by_folder[folder]:
            is_there = "is not a results folder: it has no runs of this version of clickgym"
            raise ValueError(f"{folder} {is_there if folder.exists() else 'does not exist'}")
        finished |= its_runs
    named = {name: config for configs in by_folder.values() for name, config in configs.items()}
    with_runs = begun([named[name] for name in sorted(named)], finished)
    if not with_runs:
        raise ValueError(f"{', '.join(map(str, folders))} holds no finished run yet")
    setting = with_runs[-1].setting
    tables: list[Config] = []  # of each folder alone, the newest at the end
    for its_own in sorted(by_folder.values(), key=max):
        same = begun((one for one in its_own.values() if one.setting == setting), finished)
        tables += [shown_of(same)] if same else []
    check_cells([cell for table in tables for cell in table.cells])
    shown = shown_of(tables)
    return frame_of(finished, shown), shown, _hidden(by_folder, finished, shown)


def _hidden(
    by_folder: Mapping[Path, Mapping[str, Config]],
    finished: Mapping[str, FinishedRun],
    shown: Config,
) -> list[str]:
    """A line for each folder and reason for which finished runs are not shown."""
    not_shown = finished.keys() - {key for *_, key in shown.trials()}
    keys = dict[tuple[Path, str], set[str]]()
    for folder, configs in by_folder.items():
        for config in configs.values():
            others = [name for name in SETTING if getattr(config, name) != getattr(shown, name)]
            reason = "one of their labels has another meaning now"
            if others:
                reason = f"they have another {others[0]} ({short(getattr(config, others[0]))})"
            runs = keys.setdefault((folder, reason), set())
            runs.update(key for *_, key in config.trials() if key in not_shown)
    return [
        f"{len(runs)} runs in {folder} are not shown, because {reason}"
        for (folder, reason), runs in keys.items()
        if runs
    ]


def frame_of(finished: Mapping[str, FinishedRun], config: Config) -> polars.DataFrame:
    """The rows of the finished runs of a sweep, in the order of its table, as `Results.rows` has
    them; what is unknown is null.

    Args:
        finished: runs by their keys, also of other sweeps.
        config: of the sweep.
    """
    about, measured = [], []
    for cell, run, key in config.trials():
        if key in finished:
            seed = run_seed(cell.seed, cell.instance, run, cell.n_queries)
            query = run % cell.n_queries if cell.n_queries > 1 else None
            engine, seconds, trained, content = finished[key]
            names = cell.env, cell.instance, query, cell.agent
            about.append((*names, cell.seed, run, seed, trained, 0, engine, seconds))
            measured.append(content)
    columns = np.frombuffer(b"".join(measured), "<f8")
    shape = len(about), 3 + len(config.metrics), len(config.checkpoints)
    columns = columns.reshape(shape).swapaxes(0, 1)
    return rows_of_runs(about, np.array(config.checkpoints), columns, config.metrics)
