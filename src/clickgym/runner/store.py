"""Finished runs in a results folder: a file for each sweep, in lines of JSON.

The first line says what the sweep is of, and each further line is a finished run, with a key that
hashes all that it depends on. Lines are only added. So several commands may fill one folder, and
folders may be merged by copying their files. A line that was cut short, by a full disk or the end
of the process, is no finished run.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.files import append, make_folder, write_whole

if TYPE_CHECKING:
    from ..envs.result import Result

RUNS = "runs"
"""The folder of the files within a results folder."""


class FinishedRun(NamedTuple):
    """The measurements of a finished run.

    Attributes:
        engine: that played it.
        seconds: that it took.
        measured: little-endian float64, a row of checkpoints for each measure.
    """

    engine: str
    seconds: float
    measured: bytes

    @classmethod
    def of(cls, result: Result) -> FinishedRun:
        """The measurements of a result."""
        columns = [result.regret, result.reward, result.clicks, *result.metrics.values()]
        return cls(result.engine, float(result.seconds), np.array(columns, "<f8").tobytes())


class Journal:
    """The file of a sweep, to which its runs are added when they are finished.

    Args:
        folder: the results folder, created if missing.
        header: what the sweep is of.
    """

    def __init__(self, folder: Path, header: dict[str, Any]) -> None:
        make_folder(folder / RUNS)
        now = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
        self.path = folder / RUNS / f"{now}-{token_hex(4)}.jsonl"
        append(self.path, json.dumps(header) + "\n")

    def add(self, finished: Mapping[str, FinishedRun]) -> None:
        """Keep finished runs, by their keys.

        Raises:
            FileError: nothing can be written.
        """
        lines = [
            json.dumps([key, run.engine, run.seconds, b64encode(run.measured).decode()])
            for key, run in finished.items()
        ]
        append(self.path, "".join(f"{line}\n" for line in lines))


def files_of(folders: Iterable[Path]) -> list[Path]:
    """The files of all sweeps into some folders, the last one at the end."""
    files = [file for folder in folders for file in (folder / RUNS).glob("[!.]*.jsonl")]
    return sorted(files, key=lambda file: file.name)


def read(
    folders: Iterable[Path],
) -> tuple[list[tuple[Path, dict[str, Any]]], dict[str, FinishedRun]]:
    """What the sweeps into some folders were of, each with its folder and the last one at the end,
    and all finished runs by their keys.
    """
    headers, finished = [], {}
    for file in files_of(folders):
        first, *others = file.read_bytes().splitlines() or [b""]
        try:
            headers.append((file.parent.parent, json.loads(first)))
        except ValueError:  # it was cut short
            continue
        for line in others:
            try:
                key, engine, seconds, measured = json.loads(line)
                finished[key] = FinishedRun(engine, seconds, b64decode(measured, validate=True))
            except (ValueError, TypeError):  # likewise
                continue
    return headers, finished


def forget(folder: Path, keys: Collection[str]) -> None:
    """Remove all runs of cells with some keys from all files of a folder."""
    for file in files_of([folder]):
        first, *others = file.read_bytes().splitlines(keepends=True) or [b""]
        kept = [line for line in others if line[2:34].decode(errors="replace") not in keys]
        if len(kept) < len(others):
            write_whole(file, first + b"".join(kept))
