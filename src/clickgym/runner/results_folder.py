"""Results folders: ``config.json`` describes a sweep, and ``runs`` contains its finished runs.

Each process appends its finished runs to its own file, one line of JSON for each run. A line that
was cut short, because the disk was full or the process ended, does not count as a finished run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import polars

from ..core.compiling import numba
from ..core.files import (
    FORMAT,
    append_lines,
    check_format,
    make_folder,
    one_line_errors,
    read_json,
    write_whole,
)
from ..core.messages import short_repr
from ..measure.result import Result, rows_of_runs
from .fingerprint import Fingerprint

LabelColumn = Literal["env", "instance", "agent"]
LABEL_COLUMNS: tuple[LabelColumn, ...] = ("env", "instance", "agent")
RESULTS_VERSION = 1
"""The number of clickgym's results: raise it when the numbers of any run change. Two sweeps can be
shown in one table only if this number is the same. clickgym 9.0, which did not save it, has 1.
"""
CONFIG, RUNS = "config.json", "runs"
"""The names of the configuration file and of the folder with the runs."""
RunKey = tuple[str, str, str, int]
"""The key of a run: the labels of its environment, instance and agent, and its number."""
FinishedRuns = dict[RunKey, Result]
"""Finished runs by key. Their results name environment, instance and agent by their labels."""
FIGURES, SUMMARY, ROWS = ("regret.png", "regret.svg"), "summary.csv", "results.parquet"
"""The names of the files in a report."""


class Cell(NamedTuple):
    """All runs of one agent in one environment with one instance.

    Attributes:
        env, instance, agent: the labels of the environment, the instance and the agent.
        runs: the number of runs.
        changes: the sessions, counted from 0, at which the users change.
    """

    env: str
    instance: str
    agent: str
    runs: int
    changes: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Config:
    """The configuration of a sweep: what the sweep plays and measures.

    Attributes:
        versions: the versions of clickgym and of other packages on which results depend, keyed by
            name.
        horizon: T, the number of sessions in each run.
        checkpoints: the numbers of sessions after which totals are recorded.
        metrics: the names of the additional metrics, with their labels.
        results: `RESULTS_VERSION` of the clickgym version that played the runs.
        own_metrics: the users' own code behind metrics such as ``"my_module:my_metric"``, keyed by
            name.
        shares: the columns of the metrics whose mean per session is between 0 and 1, which a figure
            must know without importing the users' own code.
        less_is_better: the columns of the metrics of which less is better.
        descriptions: the descriptions of the users' own metrics, keyed by column.
        seed: the seed of the sweep.
        envs, instances, agents: what each label stands for, keyed by label.
        cells: the combinations of environment, instance and agent, in the order of the table.
    """

    versions: dict[str, str]
    horizon: int
    checkpoints: list[int]
    metrics: list[str]
    seed: int
    envs: dict[str, Fingerprint]
    instances: dict[str, Fingerprint]
    agents: dict[str, Fingerprint]
    cells: list[Cell]
    own_metrics: dict[str, Fingerprint] = field(default_factory=dict)  # clickgym 9.0 had none
    shares: list[str] = field(default_factory=list)
    less_is_better: list[str] = field(default_factory=list)
    descriptions: dict[str, str] = field(default_factory=dict)
    results: int = RESULTS_VERSION

    @classmethod
    def from_json(cls, source: object, content: Mapping[str, Any]) -> Self:
        """Create a configuration from the JSON object in the text of `to_json`.

        Args:
            source: the folder or file that contains the object, for messages.
            content: the JSON object.

        Raises:
            ValueError: another version of clickgym wrote the object in a different format, or the
                object is incomplete.
        """
        check_format(source, content.get("format"))
        try:
            since_9_0 = {"results": 1, "own_metrics": {}, "descriptions": {}}
            since_9_0 |= {"shares": [], "less_is_better": []}
            content = {**since_9_0, **content}
            values = {field.name: content[field.name] for field in fields(cls)}
            for name in ("envs", "instances", "agents", "own_metrics"):
                fingerprints = values[name].items()
                values[name] = {
                    label: Fingerprint(**fingerprint) for label, fingerprint in fingerprints
                }
            values["cells"] = [
                Cell(env, instance, agent, runs, tuple(changes))
                for env, instance, agent, runs, changes in values["cells"]
            ]
            return cls(**values)
        except (TypeError, AttributeError, KeyError, ValueError) as error:
            raise ValueError(f"{source} has no valid sweep configuration ({error})") from None

    def to_json(self) -> str:
        """Return the configuration as JSON text, with the number of its format."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n"

    def fingerprints_of(self, column: LabelColumn) -> dict[str, Fingerprint]:
        """Return the fingerprints of the environments, instances or agents, keyed by label."""
        fingerprints: dict[str, Fingerprint] = getattr(self, f"{column}s")
        return fingerprints

    def fingerprints(self) -> dict[str, Fingerprint]:
        """Return the fingerprints of labels and own metrics, by text such as ``"agent mine"``."""
        of_columns = [(column, self.fingerprints_of(column)) for column in LABEL_COLUMNS]
        return {
            f"{column} {label}": fingerprint
            for column, fingerprints in [*of_columns, ("metric", self.own_metrics)]
            for label, fingerprint in fingerprints.items()
        }

    def difference(self, other: Config) -> str | None:
        """Return why two sweeps cannot be shown in one table, or None if nothing prevents it."""
        first, second = vars(self) | self.versions, vars(other) | other.versions
        if self.results != other.results:
            return f"clickgym {first['clickgym']} gives other results than {second['clickgym']}"
        packages = sorted((self.versions.keys() & other.versions.keys()) - {"clickgym"})
        for name in ("horizon", "checkpoints", *packages):
            if first[name] != second[name]:
                return f"{name} is {short_repr(first[name])}, not {short_repr(second[name])}"
        fingerprints = other.fingerprints()
        for name, fingerprint in self.fingerprints().items():
            if name in fingerprints and (reason := fingerprint.difference(fingerprints[name])):
                cure = "needs another label (LABEL=... before it)"
                fault = "is not the same" if name.startswith("metric ") else cure
                return f"{name} {fault}, because {reason}"
        return None

    def run_keys(self) -> Iterator[RunKey]:
        """Yield the keys of all runs in the sweep, finished or not, in the order of the table."""
        for cell in self.cells:
            for run in range(cell.runs):
                yield cell.env, cell.instance, cell.agent, run

    def select(self, column: LabelColumn, labels: Iterable[str]) -> Self:
        """Return a copy of the configuration with only some labels of a column."""
        fingerprints = self.fingerprints_of(column)
        subset = {label: fingerprints[label] for label in labels if label in fingerprints}
        cells = [cell for cell in self.cells if getattr(cell, column) in subset]
        return replace(self, **{f"{column}s": subset}, cells=cells)  # type: ignore[arg-type]

    def renamed(self, names: Mapping[str, str]) -> Self:
        """Return a copy of the configuration with other labels."""

        def new(label: str) -> str:
            return names.get(label, label)

        envs, instances, agents = (
            {new(label): fingerprint for label, fingerprint in fingerprints.items()}
            for fingerprints in (self.envs, self.instances, self.agents)
        )
        cells = [
            cell._replace(env=new(cell.env), instance=new(cell.instance), agent=new(cell.agent))
            for cell in self.cells
        ]
        return replace(self, envs=envs, instances=instances, agents=agents, cells=cells)

    def merge(self, other: Config) -> Self:
        """Return a copy of the configuration, extended by the agents, environments, instances and
        runs of another sweep.
        """
        envs, instances = self.envs | other.envs, self.instances | other.instances
        agents = self.agents | other.agents
        cells = {cell[:3]: cell for cell in self.cells}
        for cell in other.cells:
            same = cells.get(cell[:3], cell)
            cells[cell[:3]] = cell._replace(runs=max(same.runs, cell.runs))
        grid = product(envs, instances, agents)
        return replace(
            self,
            versions=self.versions | other.versions,
            shares=other.shares,
            less_is_better=other.less_is_better,
            descriptions=other.descriptions,
            envs=envs,
            instances=instances,
            agents=agents,
            cells=[cells[labels] for labels in grid if labels in cells],
        )


def versions(packages: Iterable[str] = ()) -> dict[str, str]:
    """Return the versions of clickgym, numpy, numba and other packages on which results depend."""
    result = {name: version(name) for name in ("clickgym", "numpy", *packages)}
    return result | {"numba": numba.__version__ if numba else "not installed"}


# --------------------------------------------------------------------------------------- one folder


def open_folder(
    folder: Path, config: Config, out: object, *, overwrite: bool = False
) -> tuple[Config, FinishedRuns]:
    """Create a results folder, or open an existing folder to add runs to its sweep.

    What the folder's configuration says about a label without a finished run is replaced.

    Args:
        folder: the folder, created if missing.
        config: the configuration of the sweep.
        out: the folder's name in messages.
        overwrite: whether the runs and the report that are already in the folder are deleted.

    Returns:
        The configuration of all runs in the folder, including those to be added, and the finished
        runs.

    Raises:
        ValueError: the folder contains runs of another sweep, or is not a results folder.
    """
    make_folder(folder)
    file = folder / CONFIG
    text = file.read_text(encoding="utf-8") if file.exists() else None
    # Other programs also write files named config.json. Ours is empty if the disk was full.
    is_ours = text is not None and (not text or '"clickgym"' in text)
    if not is_ours and any(folder.glob("[!.]*")):
        raise ValueError(
            f"{out} is not empty and is not a results folder; choose another folder (--out)"
        )
    if overwrite:
        reports = [folder / name for name in (*FIGURES, SUMMARY, ROWS)]
        for old in [file, *(folder / RUNS).glob("*.jsonl"), *reports]:
            old.unlink(missing_ok=True)
    runs = FinishedRuns()
    try:
        with open(file, "x", encoding="utf-8") as new:  # only one of several commands succeeds
            new.write(config.to_json())
    except FileExistsError:
        saved = Config.from_json(out, read_json(file))
        runs = read_runs(folder, saved)
        played = saved
        for number, column in enumerate(LABEL_COLUMNS):
            played = played.select(column, {str(key[number]) for key in runs})
        fault = played.difference(config)
        for name in ("metrics", "seed"):  # these may differ in results that are joined
            old, new = getattr(saved, name), getattr(config, name)
            fault = fault if old == new else f"{name} is {old}, not {new}"
        if fault is not None:
            cure = "choose another folder (--out), or delete its runs and start again (--overwrite)"
            raise ValueError(f"{out} holds another sweep: {fault}; {cure}") from None
        config = (saved if runs else played).merge(config)
        if config != saved:
            write_whole(file, config.to_json())
    (folder / RUNS).mkdir(exist_ok=True)
    return config, runs


def read_folder(folder: Path) -> tuple[Config, FinishedRuns]:
    """Return the configuration and the finished runs of a results folder.

    Raises:
        ValueError: the folder is not a results folder, or was written in the format of another
            version of clickgym.
    """
    try:
        config = Config.from_json(folder, read_json(folder / CONFIG))
    except (FileNotFoundError, NotADirectoryError):
        fault = "is not a results folder: it has no config.json"
        raise ValueError(f"{folder} {fault if folder.exists() else 'does not exist'}") from None
    return config, read_runs(folder, config)


def read_runs(folder: Path, config: Config) -> FinishedRuns:
    """Return the finished runs in a results folder.

    Raises:
        ValueError: a file contains a run that this version of clickgym cannot read.
    """
    runs, steps = FinishedRuns(), np.array(config.checkpoints)
    cure = "delete this file, and run the same command again to play its runs"
    for file in sorted((folder / RUNS).glob("[!.]*.jsonl")):
        for line in file.read_bytes().splitlines():
            try:
                number, run = json.loads(line)
            except ValueError:  # the line was cut short, so its run is played again
                continue
            with one_line_errors(file, "has runs that this version cannot read", cure):
                run |= {name: np.array(run[name]) for name in ("regret", "reward", "clicks")}
                metrics = {name: np.array(values) for name, values in run["metrics"].items()}
                result = Result(**run | {"steps": steps, "metrics": metrics})
                runs[result.env, result.instance, result.agent, number] = result
    return runs


def add_runs(file: Path, runs: FinishedRuns) -> None:
    """Append finished runs to a file in a results folder. Each line contains the number of a run
    and its `Result`.

    Raises:
        OSError: the file cannot be written.
    """
    for (*_, number), run in runs.items():
        content = vars(run) | {"steps": None}  # the steps are in the configuration
        line = json.dumps([number, content], default=lambda array: array.tolist())
        append_lines(file, f"{line}\n")


def rows_of_sweep(runs: FinishedRuns, config: Config) -> polars.DataFrame:
    """Return the finished runs of a sweep as rows for `Results`, in the order of the sweep's table.
    The frame is empty if no run is finished.
    """
    finished = [(config.seed, key[-1], runs[key]) for key in config.run_keys() if key in runs]
    return rows_of_runs(finished) if finished else polars.DataFrame()
