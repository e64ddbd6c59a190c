"""The folder of a submission: which files and names it may have, and what its results say."""

from __future__ import annotations

import json
import os
import re
import stat
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import polars
from polars import col
from polars.exceptions import PolarsError

from clickgym import Results
from clickgym.core.checks import check_path
from clickgym.core.files import read_json
from clickgym.runner import PUBLISHED

from .card import CONFIG, PLAYS, config_now
from .play import COLUMNS, blocks, read_block
from .protocol import CURRENT, Protocol
from .reference import machine

RESULTS = "results"
"""The folder of a submission that ``clickgym bench`` wrote."""
TABLE = "results.parquet"
"""The table in the folder of a sweep."""
COMPUTES = ("numpy", "numba", "torch", "stable-baselines3", "sb3-contrib")
"""The packages on whose versions, with that of this one, the last digit may hang."""
MOST_FILES, MOST_BYTES, MOST_CHARACTERS = 20_000, 200 << 20, 200
"""Of a submission; and of each text that its results say of themselves."""
ALIKE = str.maketrans("01i35", "olles")
"""Characters that look like others."""
KEYS = ["task", "run", "step"]
ENDS: dict[str, Any] = {"task": str, "ability": str, "run": int, "horizon": int, "step": int, "loss": float}
"""The columns of the losses at the ends of the runs."""


class Submission(NamedTuple):
    """The results that a folder contains.

    Attributes:
        agent: what it calls the agent.
        quick: whether it is of the tasks of ``--quick`` alone.
        table: one row for each task, run and checkpoint, with ``ability``, ``horizon``, ``step`` and ``loss``.
        protocol: the version.
        made: the machines and the versions of packages that had a part in it, as pairs.
    """

    agent: str
    quick: bool
    table: polars.DataFrame
    protocol: Protocol
    made: tuple[tuple[str, str], ...]

    def to_json(self) -> str:
        """All but the protocol, with the losses at the ends of the runs."""
        ends = self.table.filter(col("step") == col("horizon")).select("task", "run", "loss").rows()
        return json.dumps({"agent": self.agent, "quick": self.quick, "made": self.made, "ends": ends})

    @classmethod
    def from_json(cls, content: Any, protocol: Protocol) -> Submission:
        """The submission that `to_json` wrote, in a process that is not trusted.

        Raises:
            ValueError: it is another kind of content.
        """
        try:
            ends = [(protocol.by_name[name], int(run), float(loss)) for name, run, loss in content["ends"]]
            rows = [(task.name, task.ability, run, task.horizon, task.horizon, loss) for task, run, loss in ends]
            table = polars.DataFrame(rows, ENDS, orient="row")
            made = tuple((str(name), str(then)) for name, then in content["made"])
            return cls(str(content["agent"]), bool(content["quick"]), table, protocol, made)
        except (KeyError, OverflowError, PolarsError, TypeError, ValueError):
            raise ValueError("its process returned no results") from None


# ------------------------------------------------------------------------------------------------ before anything is executed


def check_name(name: str) -> str:
    """The name of a submission, by which its line is called.

    Raises:
        ValueError: it has other characters than ASCII's letters and digits, ``_``, ``-`` and ``.``, or looks like an agent's.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", name):
        raise ValueError(f"a submission is called {name!r}; expected at most 64 of A to Z, a to z, 0 to 9, and _ - . inside")
    for ours in PUBLISHED:
        if _in_short(name) == _in_short(ours):
            raise ValueError(f"{name!r} is, or looks like, the name of an agent of the package, {ours}; choose another")
    return name


def _in_short(name: str) -> str:
    """What names have in common that look alike."""
    return re.sub(r"[_.-]", "", name.lower()).translate(ALIKE)


def check_files(folder: Path) -> None:
    """Refuse a submission with other things than regular files, or with too many or too large ones; nothing is opened.

    Raises:
        ValueError: naming the first.
    """
    count = size = 0
    for where, folders, files in os.walk(folder):
        for name in (*folders, *files):
            status = Path(where, name).lstat()
            if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
                raise ValueError(f"{Path(where, name)} is a link or a device; a submission has only regular files")
            count, size = count + 1, size + status.st_size
            if count > MOST_FILES or size > MOST_BYTES:
                most = f"at most {MOST_FILES:,} files and {MOST_BYTES >> 20} MiB"
                raise ValueError(f"{folder} has more than a submission may have: {most}")


# -------------------------------------------------------------------------------------------------------- what results say


def read_submission(folder: str | os.PathLike[str], protocol: Protocol = CURRENT) -> Submission:
    """Read a folder that `bench` wrote; this executes no code from it.

    Args:
        folder: what `bench` was given as ``out``.
        protocol: the version that is expected.

    Raises:
        ValueError: it is none, is unfinished, is of another version of the protocol, or has rows that no run has.
    """
    folder = check_path("folder", folder)
    config = _config(folder, protocol)
    frames = [polars.DataFrame(schema=dict.fromkeys(COLUMNS, polars.Float64) | {"task": str, "ability": str, "run": int})]
    origins = {("machine", _text(folder / CONFIG, one)) for one in config.get("machines", [])}
    label = _text(folder / CONFIG, config.get("agent"))
    for name, block in blocks(protocol.tasks()).items():
        where = folder / PLAYS / name
        if where.exists():
            _check_size(where / TABLE, sum(protocol.runs * len(protocol.checkpoints(task.horizon)) for task in block))
            frames.append(_checked(where, read_block(where, block, label)))
            sweep = Results(where).config
            for part in sweep.get("parts", [sweep]):
                versions = {"clickgym": part["clickgym"]} | part["versions"]
                known = [package for package in ("clickgym", *COMPUTES) if package in versions]
                origins |= {(package, _text(where, versions[package])) for package in known}
    player = _text(folder / CONFIG, config.get("tuning") or label)
    table = polars.concat(frames, how="diagonal_relaxed")
    return Submission(player, "full" not in config["finished"], table, protocol, tuple(sorted(origins)))


def _text(where: Path, value: object) -> str:
    if not isinstance(value, str) or len(value) > MOST_CHARACTERS or not value.isprintable():
        raise ValueError(f"{where} says something else than a short text of agent, machine or version")
    return value


def _check_size(file: Path, most: int) -> None:
    """Refuse a table with more rows than there can be, before it is read."""
    rows = polars.scan_parquet(file).select(polars.len()).collect().item() if file.exists() else 0
    if rows > most:
        raise ValueError(f"{file} has {rows:,} rows; expected at most {most:,}")


def _checked(where: Path, table: polars.DataFrame) -> polars.DataFrame:
    """The rows of a block of tasks, each of which is there once, with finite numbers."""
    table = table.filter(col("task").is_not_null())
    for name in ("regret", "loss"):
        kind = table.schema[name]
        if not kind.is_numeric():
            raise ValueError(f"the column {name!r} in {where} holds {kind}; expected numbers")
        if not table[name].is_finite().fill_null(False).all():
            raise ValueError(f"the column {name!r} in {where} has values that are no finite numbers")
    if table.select(KEYS).is_duplicated().any():
        raise ValueError(f"{where} has a run twice")
    return table


def _config(folder: Path, protocol: Protocol) -> dict[str, Any]:
    """What a folder says of itself; it must be of this version."""
    try:
        config = config_now(read_json(folder / CONFIG))
    except FileNotFoundError:
        raise ValueError(f"{folder} holds no {CONFIG}; expected a folder that clickgym bench --out wrote") from None
    if not config.get("finished"):
        raise ValueError(f"{folder} is unfinished; the same clickgym bench {config.get('agent')!r} goes on with it")
    number = config.get("protocol", 0)
    if number != protocol.version:
        closed = f"{folder} is of version {number!r} of the scorecard, which is closed"
        raise ValueError(f"{closed}; expected results of version {protocol.version}")
    if config.get("fingerprint") != protocol.fingerprint:
        there, here = config.get("fingerprint"), protocol.fingerprint
        raise ValueError(f"{folder} is of fingerprint {there!r}; this version of clickgym has {here!r}")
    return config


def differences(submission: Submission) -> list[str]:
    """Which machine and which versions of packages are not those that had a part in a folder."""
    return [f"{name} {then}, here {now}" for name, then in submission.made if then != (now := _here(name))]


def _here(name: str) -> str:
    """The machine, or the installed version of a package."""
    try:
        return machine() if name == "machine" else version(name)
    except PackageNotFoundError:
        return "none"
