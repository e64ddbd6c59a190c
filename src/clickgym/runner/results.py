"""The folder of a sweep and the `Results` in it: a configuration, one file for each finished run,
and tables.

``config.json`` is one dict. It grows when a further sweep adds agents, environments, instances or
runs. Which runs are finished is known from their files alone, so that an interrupted sweep can be
resumed, in parts or as a whole, and reported before it is complete.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shlex
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import numpy as np
import polars
from polars import col

from ..core.checks import check_choice, check_flag, check_kind, check_path, short
from ..core.files import (
    FORMAT,
    check_format,
    check_seal,
    is_draft,
    make_folder,
    read_json,
    reading,
    remove_drafts,
    sealed,
    write_whole,
)
from .labels import typed
from .summaries import MEASURED, TIMED, final_table, pairwise, with_ties

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CONFIG, TABLE, RUNS = "config.json", "results.parquet", "runs"
SHARED = ("clickgym", "horizon", "seed", "checkpoints", "engine", "metrics", "delay")
"""What all sweeps of a folder have in common."""
LISTED = ("envs", "instances", "agents")
LONGEST_NAME = 200
"""Characters of a file's name, of the 255 bytes that file systems allow."""

Config = dict[str, Any]


class Trial(NamedTuple):
    """One run of one agent in one environment; its seeds and the name of its file derive from its
    names.
    """

    env: str
    instance: str
    agent: str
    run: int

    @property
    def file(self) -> Path:
        """The path of its file in the folder of runs."""
        env, instance, agent = map(file_name, self[:3])
        return Path(env, instance, f"{agent}-{self.run}.parquet")

    def seeds(self, seed: int) -> tuple[int, int]:
        """The seeds of environment and agent; they depend only on ``seed`` and the names of this
        trial.
        """
        digest = hashlib.sha256("\n".join(map(str, self)).encode()).digest()
        key = np.frombuffer(digest, np.uint32).tolist()
        env, agent = np.random.SeedSequence(seed, spawn_key=tuple(key)).generate_state(2, np.uint64)
        return int(env), int(agent)


def file_name(label: str) -> str:
    """A label as the name of a file: percent-encoded outside ``[A-Za-z0-9._-]``, and a name too
    long for a file system cut, with a hash at its end.

    Example:
        >>> file_name("my_module:MyAgent:alpha=0.1"), file_name("..")
        ('my_module%3AMyAgent%3Aalpha%3D0.1', '%2E.')
    """
    name = re.sub(r"^\.", "%2E", quote(label, safe="").replace("~", "%7E"))
    if len(name) > LONGEST_NAME:
        name = f"{name[: LONGEST_NAME - 17]}-{hashlib.sha256(label.encode()).hexdigest()[:16]}"
    return name


# ------------------------------------------------------------------------------- the configuration


def read_config(folder: Path) -> Config:
    """The configuration of a results folder.

    Raises:
        ValueError: there is none, it cannot be read, or it is of another version's format.
    """
    file = folder / CONFIG
    try:
        config = read_json(file)
    except FileNotFoundError:
        raise ValueError(f"{folder} is not a results folder: it has no {CONFIG}") from None
    except ValueError as error:
        raise ValueError(f"{error}; restore it from a backup") from None
    if "format" in config:
        check_format(file, config["format"])
    names = [name for key in LISTED for name in config.get(key) or [None]]
    labels = config.get("labels")
    if (
        not all(isinstance(name, str) for name in names)
        or not isinstance(labels, dict)
        or not all(isinstance(labels.get(kind), dict) for kind in ("envs", "agents"))
        or not config.keys() >= {*SHARED, "sources", "files", "versions", "runs"}
    ):
        raise ValueError(f"{file} is not the configuration of a sweep")
    return config


def extended(where: str, old: Config, new: Config) -> Config:
    """The configuration of a folder to which a further sweep is added.

    Args:
        where: whose configuration ``old`` is, for messages.
        old: that of the folder.
        new: that of the sweep.

    Raises:
        ValueError: the version, horizon, seed, checkpoints, engine, metrics or delay differ, or a
            label stands for something else, or the source file of an own class has changed.

    Warns:
        UserWarning: the versions of other packages, the commit or the processor differ.
    """
    pairs = {key: (old[key], new[key]) for key in SHARED}
    for kind in ("envs", "agents"):
        for label in set(old[kind]) & set(new[kind]):
            specs = (config["labels"][kind].get(label, label) for config in (old, new))
            pairs[label] = tuple(specs)
    for label in old["sources"].keys() & new["sources"].keys():
        pairs[f"source of {label}"] = old["sources"][label], new["sources"][label]
    if changed := _differences(pairs):
        raise ValueError(
            f"{where} holds results of another configuration ({changed}); choose another folder "
            "(--out)"
        )
    made = [{"commit": config.get("commit"), **config["versions"]} for config in (old, new)]
    common = made[0].keys() & made[1].keys()
    if changed := _differences({key: (made[0][key], made[1][key]) for key in sorted(common)}):
        warnings.warn(f"{where} was begun with other versions ({changed})", stacklevel=4)
    union = {key: list(dict.fromkeys([*old[key], *new[key]])) for key in LISTED}
    labels = {kind: old["labels"][kind] | new["labels"][kind] for kind in ("envs", "agents")}
    merged = {key: old[key] | new[key] for key in ("sources", "files")}
    versions = new["versions"] | old["versions"]
    runs = max(old["runs"], new["runs"])
    return {**old, **union, **merged, "labels": labels, "versions": versions, "runs": runs}


def _differences(pairs: Mapping[str, tuple[Any, Any]]) -> str:
    texts = []
    for key, values in pairs.items():
        if values[0] != values[1]:
            there, now = (text[:57] + "..." * (len(text) > 57) for text in map(json.dumps, values))
            texts.append(f"{key}: {there} there, {now} now")
    return "; ".join(texts)


def command_of(config: Config) -> str:
    """The command line that plays all that is in a configuration.

    What has no name outside of a Python program stands under its label.
    """
    envs, agents = (
        [typed(label, config["labels"][kind].get(label, label)) for label in config[kind]]
        for kind in ("envs", "agents")
    )
    instances = [config["files"][name] for name in config["instances"] if name in config["files"]]
    options = {
        "--agents": agents,
        "--instance": instances,
        "--horizon": [str(config["horizon"])],
        "--runs": [str(config["runs"])],
        "--seed": [str(config["seed"])],
        "--metrics": config["metrics"],
        "--delay": [config["delay"]] if config["delay"] else [],
        "--engine": [config["engine"]] if config["engine"] != "auto" else [],
    }
    words = [word for option, values in options.items() if values for word in (option, *values)]
    return shlex.join(["clickgym", "run", *envs, *words])


# ------------------------------------------------------------------------------------- the folder


def open_folder(out: Path, config: Config) -> Config:
    """Make the results folder, or open one to which results of a further sweep may be added.

    Args:
        out: the folder.
        config: the configuration of the sweep; that of the folder is extended by it.

    Returns:
        The configuration of the folder.

    Raises:
        ValueError: the folder holds something else, or results that contradict.
    """
    make_folder(out)
    for folder in (out, *(path for path in (out / RUNS).rglob("*") if path.is_dir())):
        remove_drafts(folder)
    old = None
    if not all(is_draft(path) or path.name == RUNS for path in out.iterdir()):
        old = read_config(out)
        config = extended(str(out), old, config)
        if not (out / RUNS).exists() and (out / TABLE).exists():  # it was passed on without them
            frames = read_results(out)[0].partition_by(Trial._fields, as_dict=True)
            for names, frame in frames.items():
                write_run(out, Trial(*names), frame)
    config = {"format": FORMAT, **config, "command": command_of(config)}
    if config != old:
        write_whole(out / CONFIG, json.dumps(config, indent=1) + "\n")
    return config


def write_run(out: Path, trial: Trial, frame: polars.DataFrame) -> None:
    """Write the table of a finished run, with a checksum, whole or not at all."""
    path = out / RUNS / trial.file
    make_folder(path.parent)
    write_whole(path, sealed(frame))


def read_run(path: Path, config: Config, trial: Trial | None = None) -> polars.DataFrame:
    """The table of a finished run.

    Args:
        path: its file.
        config: of the folder.
        trial: which run it must be; None takes the one that it says.

    Raises:
        ValueError: the file is damaged, or belongs to another run or sweep.
    """
    with reading(path, "is damaged", "delete it to have this run computed again"):
        frame = _read_table(path)
        if trial is not None and frame.select(Trial._fields).row(0) != trial:
            raise ValueError("it belongs to another run")
        if frame["step"].to_list() != config["checkpoints"]:
            raise ValueError(f"its steps are not the checkpoints of {CONFIG}")
        return frame.select(*MEASURED, *config["metrics"], *TIMED)


def _read_table(path: Path) -> polars.DataFrame:
    content = path.read_bytes()
    check_seal(content)
    return polars.read_parquet(io.BytesIO(content))


def read_results(folder: Path) -> tuple[polars.DataFrame, Config]:
    """The rows of all finished runs of a folder, in the order of its configuration, and this
    configuration.

    The files of runs are read; where a folder was passed on without them, the table.

    Raises:
        ValueError: the folder is not a results folder, no run is finished, or a file is damaged or
            does not fit.
    """
    config = read_config(folder)
    files = sorted((folder / RUNS).rglob("*.parquet"))
    if not files and not (folder / TABLE).exists():
        raise ValueError(f"{folder} holds no finished run yet")
    if files:
        frame = polars.concat([read_run(file, config) for file in files])
    else:
        with reading(folder / TABLE, "is damaged", "restore it from a backup"):
            frame = _read_table(folder / TABLE)
            frame = frame.select(*MEASURED, *config["metrics"], *TIMED)
    for column, key in zip(Trial._fields, LISTED, strict=False):
        if unknown := set(frame[column]) - set(config[key]):
            raise ValueError(f"{folder} holds results of {min(unknown)!r}, not named in {CONFIG}")
    if frame.select(*Trial._fields, "step").is_duplicated().any():
        raise ValueError(f"two files of {folder} hold the same run")
    order = [
        col(column).cast(polars.Enum(config[key]))
        for column, key in zip(Trial._fields, LISTED, strict=False)
    ]
    return frame.sort(*order, "run", "step"), config


# -------------------------------------------------------------------------------------- in Python


class Results:
    """The results of a sweep: table, figure and tests. `sweep` returns them; they can also be read
    from a folder.

    Args:
        source: the folder of a `sweep` or of ``clickgym run``, finished or not; or a polars frame
            of rows of such results.
        config: the configuration of a frame, if it is known.

    Attributes:
        frame: the rows, a polars frame: env, instance, agent, run, step, regret, reward, clicks and
            further metrics.
        timings: a row for each run, with engine and seconds (wall time); null if they are unknown.
        config: the configuration, as in ``config.json``; empty if it is unknown.

    Raises:
        ValueError: the folder is not one of results, or the rows are not those of a sweep.
        TypeError: ``source`` is neither.

    Example:
        >>> import clickgym
        >>> results = clickgym.sweep(["PBMRank-v0"], ["Random", "TopRank"], 1000, 3)
        >>> results
        <Results: 2 agents, 1 environment, 1 instance, 3 runs, 1,000 sessions>
        >>> results.table()["agent"].to_list()
        ['TopRank', 'Random']
        >>> results.pairwise()["differ"].to_list()
        [True]
        >>> figure = results.plot("regret.pdf")  # doctest: +SKIP
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | polars.DataFrame,
        config: Config | None = None,
    ) -> None:
        if isinstance(source, polars.DataFrame):
            missing = [name for name in MEASURED if name not in source.columns]
            if missing or source.is_empty():
                what = f"no column {missing[0]!r}" if missing else "no rows"
                raise ValueError(f"the table has {what}; expected the frame of a sweep")
            frame = source
        elif isinstance(source, str | os.PathLike):
            frame, config = read_results(check_path("source", source))
        else:
            raise TypeError(f"expected a results folder or a polars frame; got {short(source)}")
        self.config: Config = config or {}
        self.frame = frame.drop(TIMED, strict=False)
        unknown = {"engine": polars.String, "seconds": polars.Float64}
        lacking = [
            polars.lit(None, kind).alias(name)
            for name, kind in unknown.items()
            if name not in frame.columns
        ]
        timed = frame.with_columns(lacking).select(*Trial._fields, *TIMED)
        self.timings = timed.unique(maintain_order=True)

    def to_frame(self) -> polars.DataFrame:
        """The rows with engine and seconds of their run, as in ``results.parquet``."""
        return self.frame.join(self.timings, on=list(Trial._fields), maintain_order="left")

    @property
    def horizon(self) -> int:
        """T, the sessions of a run."""
        return int(self.frame["step"].to_numpy().max())

    def names(self, column: str) -> list[str]:
        """The environments, instances or agents, in the order of the rows.

        Args:
            column: ``"env"``, ``"instance"`` or ``"agent"``.
        """
        return self.frame[column].unique(maintain_order=True).to_list()

    def select(
        self, agents: Iterable[str] | None = None, environments: Iterable[str] | None = None
    ) -> Results:
        """The results of some agents and environments, in the order of the names.

        Args:
            agents, environments: labels; None takes all.

        Raises:
            ValueError: there is no such agent or environment, or none of the agents was run in any
                of the environments.
        """
        chosen = {
            "env": self._chosen("environment", environments, self.names("env")),
            "agent": self._chosen("agent", agents, self.names("agent")),
        }
        frame = self.to_frame().filter(col(key).is_in(names) for key, names in chosen.items())
        if frame.is_empty():
            names, places = (", ".join(chosen[key]) for key in ("agent", "env"))
            raise ValueError(f"there are no results of {names} in {places}")
        order = [col(key).cast(polars.Enum(names)) for key, names in chosen.items()]
        return Results(frame.sort(*order, maintain_order=True), self.config)

    @staticmethod
    def _chosen(what: str, names: Iterable[str] | None, known: list[str]) -> list[str]:
        if names is None:
            return known
        check_kind(f"{what}s", names, Iterable, "a name or names")
        names = [names] if isinstance(names, str) else names
        return list(dict.fromkeys(check_choice(what, name, known) for name in names))

    def table(self, per_instance: bool = False) -> polars.DataFrame:
        """The final results of every agent, lowest regret first.

        Args:
            per_instance: rank agents on each instance, instead of on the means over instances.

        Returns:
            For each environment (and instance) a row per agent: ``regret``, the mean over runs,
            with ``regret_ci95``, half the width of its 95 % interval (Student's t; null for a
            single run); ``reward`` per session; the number of ``runs``; the names ``tied_with`` it,
            of agents that `pairwise` does not distinguish from it (null for a single run); and each
            further metric, per session, with its interval. If the regret of an environment is
            unknown, it is null there, agents are ranked by reward, and ``reward_ci95`` holds the
            interval of that.
        """
        table = final_table(self.frame, self.timings, self._by(per_instance))
        table = table.drop("instances", "ns_per_session", "engine")
        return with_ties(table, self.pairwise(per_instance))

    def pairwise(self, per_instance: bool = False) -> polars.DataFrame:
        """Test for each pair of agents whether their final regrets differ: Welch's t-test with
        Holm's correction; see `clickgym.runner.summaries.pairwise`.

        Args:
            per_instance: test on each instance, with a correction of its own, instead of on the
                means over instances.

        Returns:
            A row for each pair: ``better``, ``worse``, ``difference``, ``p`` and ``differ``.
        """
        return pairwise(self.frame, self._by(per_instance))

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str | None = None,
        ax: Axes | None = None,
        per_instance: bool = False,
        log: bool = True,
    ) -> Figure:
        """Draw the cumulative regret with its 95 % band, one panel for each environment, and a row
        of panels for each further metric.

        Args:
            path: a file to write the figure to, in the format of its suffix: ``.pdf`` (with fonts
                that a paper can embed), ``.svg``, ``.png``, or what else matplotlib writes. Version
                and command stand in its metadata.
            title: above the figure; None says what is averaged.
            ax: axes to draw into, with a legend; only for the results of one environment.
            per_instance: a panel for each instance, too, in place of means over them.
            log: both axes of regret are logarithmic, or both linear.

        Returns:
            A matplotlib figure, to be saved or changed; a notebook shows it. It is none of
            pyplot's.

        Raises:
            ValueError: matplotlib writes no files of this suffix, or ``ax`` is to hold several
                environments.
        """
        from .reports.figures import regret_figure, write_figure  # matplotlib is slow to load

        self._by(per_instance)
        figure = regret_figure(
            self.frame, self.config, title=title, ax=ax, per_instance=per_instance, log=log
        )
        if path is not None:
            write_figure(figure, check_path("path", path), self.config)
        return figure

    def __repr__(self) -> str:
        counts = {
            "agent": len(self.names("agent")),
            "environment": len(self.names("env")),
            "instance": self.frame["instance"].n_unique(),
            "run": self.frame["run"].n_unique(),
        }
        texts = [f"{count} {word}{'s' * (count > 1)}" for word, count in counts.items()]
        return f"<Results: {', '.join(texts)}, {self.horizon:,} sessions>"

    @staticmethod
    def _by(per_instance: bool) -> tuple[str, ...]:
        return ("env", "instance") if check_flag("per_instance", per_instance) else ("env",)
