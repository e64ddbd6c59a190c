"""Finished runs in a results folder: a file for each sweep, in lines of JSON.

The first line says what the sweep is of, and each further line is a finished run, with a key that
hashes all that it depends on. Lines are only added. So several commands may fill one folder, and
folders may be merged by copying their files. A line that was cut short, by a full disk or the end
of the process, is no finished run.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import polars

from ..core.compiling import numba
from ..core.files import FORMAT, append, check_format, make_folder
from ..envs.result import Result, rows_of_runs
from .hashes import UNKNOWN

SETTING = ("horizon", "checkpoints", "metrics", "clickgym", "versions")
"""The attributes of `Config` that the runs of one table have in common."""


class Cell(NamedTuple):
    """All runs of an agent in an environment with an instance, of one seed of a sweep.

    Attributes:
        env, instance, agent: labels.
        specs: those of these three; None for an object without one.
        hashes: of what the three stand for.
        runs: how many.
        n_queries: of the instance; a run plays one of them.
        seed: of the sweep.
    """

    env: str
    instance: str
    agent: str
    specs: list[str | None]
    hashes: list[str]
    runs: int
    n_queries: int
    seed: int

    def meanings(self) -> Iterator[tuple[tuple[int, str], str]]:
        """The hash of each of the three labels, which are distinct with the numbers of columns."""
        return zip(enumerate(self[:3]), self.hashes, strict=True)

    @property
    def content(self) -> tuple[int, str, list[str]]:
        """What its runs depend on, beside the setting and their numbers."""
        return self.seed, self.instance, self.hashes


@dataclass(frozen=True, kw_only=True)
class Config:
    """What a sweep, or the table of a folder, is of.

    Attributes:
        clickgym: the version of the package.
        versions: of the packages that it computes with.
        horizon: T, sessions per run.
        checkpoints: the steps at which results are kept.
        metrics: their names.
        cells: of the table, in its order.
    """

    clickgym: str
    versions: dict[str, str]
    horizon: int
    checkpoints: list[int]
    metrics: list[str]
    cells: list[Cell]

    @classmethod
    def from_json(cls, where: object, content: Mapping[str, Any]) -> Self:
        """The configuration in a JSON object, as `to_json` writes it; ``where`` is it from?

        Raises:
            ValueError: it is of another version's format, or something is missing.
        """
        check_format(where, content.get("format"))
        try:
            own = {one.name: content[one.name] for one in fields(cls)}
            return cls(**own | {"cells": [Cell(*cell) for cell in content["cells"]]})
        except (TypeError, KeyError) as error:
            raise ValueError(f"{where} is not the configuration of a sweep ({error})") from None

    def to_json(self) -> dict[str, Any]:
        """This configuration as a JSON object, with the format."""
        return {"format": FORMAT, **asdict(self)}

    @property
    def setting(self) -> dict[str, Any]:
        """What the runs of one table have in common."""
        return {name: getattr(self, name) for name in SETTING}

    def trials(self) -> Iterator[tuple[Cell, int, str]]:
        """All runs in the order of the table: the cell, the number of the run, and the key by which
        a folder knows it, a hash of all that it depends on.
        """
        setting = self.setting
        for cell in self.cells:
            content = json.dumps([setting, *cell.content], sort_keys=True)
            key = sha256(content.encode()).hexdigest()[:32]
            for run in range(cell.runs):
                yield cell, run, f"{key}-{run}"

    def specs(self, column: Literal["env", "instance", "agent"]) -> dict[str, str | None]:
        """The specs of the labels of a column."""
        place = Cell._fields.index(column)
        return {str(cell[place]): cell.specs[place] for cell in self.cells}

    @property
    def seeds(self) -> list[int]:
        """The seeds of its sweeps."""
        return sorted({cell.seed for cell in self.cells})


def check_cells(cells: Collection[Cell]) -> None:
    """Check that no environment has the same users under two names, which would count as two, and
    that no label stands for two things.

    Raises:
        ValueError: one has, or does.
    """
    names, meanings = dict[tuple[str, str], str](), dict[Any, str]()
    for cell in cells:
        for label, meaning in cell.meanings():
            known = meanings.setdefault(label, meaning)
            if known != meaning and not meaning.startswith(UNKNOWN):
                raise ValueError(
                    f"{label[1]} is not the same in two sweeps, and one table cannot show both; "
                    "repeat one of them with another name for it"
                )
        name = names.setdefault((cell.env, cell.hashes[1]), cell.instance)
        if name != cell.instance:
            raise ValueError(
                f"{name} and {cell.instance} are the same users; leave out one of the two, "
                "because a table would count both"
            )


def begun(configs: Mapping[str, Config], finished: Container[str]) -> dict[str, Config]:
    """Those of some sweeps, by the names of their files, that have a finished run."""
    return {
        name: config
        for name, config in configs.items()
        if any(key in finished for *_, key in config.trials())
    }


def shown_of(configs: Sequence[Config]) -> Config:
    """What the table of a folder shows after some sweeps: the last one, and what the others of the
    same setting have beside it, also with other seeds. In a table a label stands for one thing, as
    the last sweep with it says; and of a thing that was renamed the last label counts.

    Args:
        configs: of the sweeps, the last one at the end.

    Raises:
        ValueError: as `check_cells`.
    """
    same = [config for config in configs if config.setting == configs[-1].setting]
    every = [cell for config in same for cell in config.cells]
    meanings = {label: meaning for cell in every for label, meaning in cell.meanings()}
    cells: dict[Any, Cell] = {}
    for config in reversed(same):
        newer = [cell.content for cell in cells.values()]
        for cell in config.cells:
            place = *cell[:3], cell.seed
            is_current = all(meanings[label] == meaning for label, meaning in cell.meanings())
            is_renamed = place not in cells and cell.content in newer
            if is_current and not is_renamed:
                cells[place] = max(cells.get(place, cell), cell, key=lambda one: one.runs)
    check_cells(cells.values())
    order = [
        list(dict.fromkeys(column)) for column in zip(*(cell[:3] for cell in every), strict=True)
    ]
    in_order = sorted(
        cells.values(), key=lambda cell: [*map(list.index, order, cell[:3]), cell.seed]
    )
    return replace(same[-1], cells=in_order)


@lru_cache(maxsize=2**16)
def run_seed(seed: int, instance: str, run: int, n_queries: int = 1) -> int:
    """The seed of a run of a sweep, which its users and its agent get.

    All agents have the same seed, so that they meet the same users. The instance is in the key, so
    that instances are independent; the environment is not. Where a run plays one of several
    queries, run r plays query r modulo their number, because the seed names the query.

    Args:
        seed: of the sweep.
        instance: its name in the results.
        run: its number, from 0.
        n_queries: Q, of the instance.

    Returns:
        An integer, with which `clickgym.run` repeats the run.

    Example:
        >>> import clickgym
        >>> rows = clickgym.sweep(["PBMRank-v0"], ["TopRank"], 100, 2, seed=7).rows
        >>> int(rows["seed"][-1]) == run_seed(7, "yandex-9982", 1)
        True
        >>> alone = clickgym.run("TopRank", "PBMRank-v0", 100, seed=run_seed(7, "yandex-9982", 1))
        >>> bool(rows["regret"][-1] == alone.regret[-1])
        True
    """
    key = (run, *instance.encode())
    drawn = int(np.random.SeedSequence(seed, spawn_key=key).generate_state(1)[0])
    return drawn - drawn % n_queries + run % n_queries


def versions() -> dict[str, str]:
    """The versions of the packages that digits depend on, beside clickgym."""
    return {"numpy": np.__version__, "numba": numba.__version__ if numba else "not installed"}


RUNS = "runs"
"""The folder of the files within a results folder."""


class FinishedRun(NamedTuple):
    """The measurements of a finished run.

    Attributes:
        engine, seconds, trained, unrecorded: as in `Result`.
        measured: little-endian float64, a row of checkpoints for each measure.
    """

    engine: str
    seconds: float
    trained: int | None
    unrecorded: int
    measured: bytes

    @classmethod
    def of(cls, result: Result) -> FinishedRun:
        """The measurements of a result."""
        columns = [result.regret, result.reward, result.clicks, *result.metrics.values()]
        measured = np.array(columns, "<f8").tobytes()
        facts = result.engine, float(result.seconds), result.trained, result.unrecorded
        return cls(*facts, measured)


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
            json.dumps([key, *run[:-1], b64encode(run.measured).decode()])
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
                key, engine, seconds, trained, unrecorded, measured = json.loads(line)
                content = b64decode(measured, validate=True)
                finished[key] = FinishedRun(engine, seconds, trained, unrecorded, content)
            except (ValueError, TypeError):  # likewise
                continue
    return configs, finished


def read_folders(folders: Sequence[Path]) -> tuple[polars.DataFrame, Config, list[str]]:
    """The rows of the finished runs that the table of some folders shows, what it is of, and a line
    for each folder with finished runs that it does not show.

    Raises:
        ValueError: a folder is not one of results, two instances are the same users, a label stands
            for something else in another folder, or no run is finished.
    """
    configs_of_each: list[dict[str, Config]] = []
    by_folder: dict[Path, dict[str, FinishedRun]] = {}
    finished: dict[str, FinishedRun] = {}
    for folder in folders:
        its_configs, by_folder[folder] = read(folder)
        if not its_configs:
            is_there = "is not a results folder: it has no runs of this version of clickgym"
            raise ValueError(f"{folder} {is_there if folder.exists() else 'does not exist'}")
        configs_of_each.append(its_configs)
        finished |= by_folder[folder]
    in_order = sorted(configs_of_each, key=max)  # the newest folder at the end
    with_runs = [begun(configs, finished) for configs in in_order]
    named = {name: config for configs in with_runs for name, config in configs.items()}
    if not named:
        raise ValueError(f"{', '.join(map(str, folders))} holds no finished run yet")
    setting = named[max(named)].setting
    tables: list[Config] = []  # of each folder alone
    for configs in with_runs:
        same = [config for config in configs.values() if config.setting == setting]
        tables += [shown_of(same)] if same else []
    check_cells([cell for table in tables for cell in table.cells])
    shown = shown_of(tables)
    not_shown = finished.keys() - {key for *_, key in shown.trials()}
    hidden = [
        f"{len(others)} runs in {folder} are not shown: they have another horizon, "
        "checkpoints, metrics or versions, or a label that stands for something else now"
        for folder, its_runs in by_folder.items()
        if (others := its_runs.keys() & not_shown)
    ]
    return frame_of(finished, shown), shown, hidden


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
            engine, seconds, *facts, content = finished[key]
            names = cell.env, cell.instance, query, cell.agent
            about.append((*names, cell.seed, run, seed, *facts, engine, seconds))
            measured.append(content)
    columns = np.frombuffer(b"".join(measured), "<f8")
    shape = len(about), 3 + len(config.metrics), len(config.checkpoints)
    columns = columns.reshape(shape).swapaxes(0, 1)
    return rows_of_runs(about, np.array(config.checkpoints), columns, config.metrics)
