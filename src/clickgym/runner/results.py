"""The folder of a sweep and the `Results` in it: a configuration, files of finished runs, and
tables.

``config.json`` is one dict. It grows when a further sweep adds agents, environments, instances or
runs. Which runs are finished is known from their files alone, so that an interrupted sweep can be
resumed, in parts or as a whole, and reported before it is complete. A file holds one or several
runs of an agent in an environment, with the hash of all that they depend on.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import numpy as np
import polars
from polars import col

from ..core.checks import (
    check_at_least,
    check_choice,
    check_flag,
    check_kind,
    check_path,
    entries,
)
from ..core.files import (
    LOCK,
    SEAL,
    check_seal,
    is_draft,
    locked,
    make_folder,
    read_json,
    reading,
    sealed,
    write_whole,
)
from .config import COLUMNS, Config, keys
from .summaries import MEASURED, TIMED, final_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .run import Result

CONFIG, TABLE, RUNS = "config.json", "results.parquet", "runs"
LONGEST_NAME = 200
"""Characters of a file's name, of the 255 bytes that file systems allow."""


class Trial(NamedTuple):
    """One run of one agent in one environment."""

    env: str
    instance: str
    agent: str
    run: int


def run_seed(seed: int, instance: str, run: int) -> int:
    """The seed of a run of a sweep, which its users and its agent get.

    All agents have the same seed, so that they meet the same users. The instance is in the key, so
    that instances are independent; the environment is not.

    Args:
        seed: of the sweep.
        instance: its name in the results.
        run: its number, from 0.

    Returns:
        An integer of 32 bits, with which `clickgym.run` repeats the run.

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
    return int(np.random.SeedSequence(seed, spawn_key=key).generate_state(1)[0])


def file_name(label: str) -> str:
    """A label as the name of a file: percent-encoded outside ``[A-Za-z0-9._-]``, and a name too
    long for a file system cut, with a hash at its end.

    Example:
        >>> file_name("my_module:MyAgent:alpha=0.1"), file_name("..")
        ('my_module%3AMyAgent%3Aalpha%3D0.1', '%2E.')
    """
    name = re.sub(r"^\.", "%2E", quote(label, safe="").replace("~", "%7E"))
    return _with_hash(name, label) if len(name) > LONGEST_NAME else name


class RunFiles:
    """The paths of the files of runs in the folder of runs.

    Where file systems do not tell capitals from small letters (macOS, Windows), two names must not
    differ by these alone: that of the later label gets a hash.

    Args:
        labels: by column of the results those of the environments, the instances and the agents.

    Example:
        >>> files = RunFiles({"env": ["PBMRank-v0"], "instance": ["shop"], "agent": ["Me", "me"]})
        >>> str(files.path(Trial("PBMRank-v0", "shop", "me", 0)))
        'PBMRank-v0/shop/me-2744ccd10c7533bd-0.parquet'
    """

    NAME = re.compile(r"(.+)-(\d+)\.parquet")
    """The name of a file: the agent and the first run in it."""

    def __init__(self, labels: Mapping[str, Iterable[str]]) -> None:
        self._names: dict[str, str] = {}
        for column, of_kind in labels.items():
            taken: set[str] = set()
            for label in of_kind:
                name = file_name(label)
                name = _with_hash(name, label) if name.lower() in taken else name
                self._names[f"{column} {label}"] = name
                taken.add(name.lower())

    def path(self, trial: Trial) -> Path:
        """The path of the file of a run, or of several runs of which it is the first."""
        labels = zip(keys(*trial[:3]), trial[:3], strict=True)
        env, instance, agent = (self._names.get(key) or file_name(label) for key, label in labels)
        return Path(env, instance, f"{agent}-{trial.run}.parquet")

    def found(self, runs: Path) -> dict[Path, Trial]:
        """The files of known labels in the folder of runs, each with the first run in it, as their
        names say it.
        """
        labels = {}
        for key, name in self._names.items():
            column, _, label = key.partition(" ")
            labels[column, name] = label
        found = {}
        for path in sorted(runs.rglob("*.parquet")):
            file, match = path.relative_to(runs), self.NAME.fullmatch(path.name)
            names = zip(COLUMNS, (*file.parts[:-1], match[1] if match else ""), strict=False)
            known = [labels[name] for name in names if name in labels]
            if match and len(known) == len(COLUMNS):
                env, instance, agent = known
                found[file] = Trial(env, instance, agent, int(match[2]))
        return found


def _with_hash(name: str, label: str) -> str:
    return f"{name[: LONGEST_NAME - 17]}-{hashlib.sha256(label.encode()).hexdigest()[:16]}"


# ------------------------------------------------------------------------------------- the folder


def read_config(folder: Path) -> Config:
    """The configuration of a results folder.

    Raises:
        ValueError: there is none, it cannot be read, or it is of another version's format.
    """
    file = folder / CONFIG
    try:
        return Config.from_json(file, read_json(file))
    except FileNotFoundError:
        raise ValueError(f"{folder} is not a results folder: it has no {CONFIG}") from None


def open_folder(out: Path, config: Config, again: Collection[str] = ()) -> Config:
    """Make the results folder, or open one to which results of a further sweep may be added; the
    runs of labels that stand for something else than before are removed.

    Args:
        out: the folder.
        config: the configuration of the sweep; that of the folder is extended by it.
        again: the labels that may stand for something else.

    Returns:
        The configuration of the folder.

    Raises:
        ValueError: the folder holds something else, or results that contradict.
    """
    make_folder(out)
    if not all(is_draft(path) or path.name in (RUNS, LOCK) for path in out.iterdir()):
        read_config(out)  # refuses a folder of something else before anything is written
    with locked(out / CONFIG):
        old = read_config(out) if (out / CONFIG).exists() else None
        if old is not None:
            changed = old.changed(config)
            config = old.extended(out / CONFIG, config, again)
            found = RunFiles(old.labels).found(out / RUNS) if changed else {}
            for file, trial in found.items():
                if set(keys(*trial[:3])).intersection(changed):
                    (out / RUNS / file).unlink()
        if config != old:
            write_whole(out / CONFIG, json.dumps(config.to_json(), indent=1) + "\n")
    return config


IDENTITY, SEED = "clickgym_identity", "clickgym_seed"
"""Metadata of a file of runs: the hash of all that they depend on, and the seed of the sweep."""


class FinishedRuns:
    """The finished runs of a results folder, as far as they are read: their files and their rows.

    Args:
        out: the results folder.
        config: of the folder.

    Attributes:
        out, config: as passed.
        files: the paths of runs.
        paths: those that are read.
    """

    def __init__(self, out: Path, config: Config) -> None:
        self.out, self.config, self.files = out, config, RunFiles(config.labels)
        self.paths: set[Path] = set()
        self._places: dict[Trial, tuple[polars.DataFrame, int]] = {}

    def read(self, paths: Iterable[Path]) -> None:
        """Read files in the folder of runs.

        Raises:
            ValueError: a file is damaged, or holds something else than the configuration says.
        """
        for file in paths:
            path = self.out / RUNS / file
            with reading(path, "is damaged", "delete it to have its runs computed again"):
                trials, frame = _runs_in(path, self.config)
                if self.files.path(trials[0]) != file or any(trial in self for trial in trials):
                    raise ValueError("it belongs to another run")
            self.add(file, trials, frame)

    def add(self, path: Path, trials: Iterable[Trial], frame: polars.DataFrame) -> None:
        """Add the runs of a file, and their rows in the same order."""
        n_steps = len(self.config.checkpoints)
        self._places |= {trial: (frame, n * n_steps) for n, trial in enumerate(trials)}
        self.paths.add(path)

    def __contains__(self, trial: object) -> bool:
        return trial in self._places

    def __iter__(self) -> Iterator[Trial]:
        return iter(self._places)

    def table(self, trials: Iterable[Trial]) -> polars.DataFrame:
        """The rows of some runs, in the order of these."""
        n_steps = len(self.config.checkpoints)
        parts: list[tuple[polars.DataFrame, int, int]] = []
        for trial in trials:
            frame, start = self._places[trial]
            end = start + n_steps
            if parts and parts[-1][0] is frame and parts[-1][2] == start:
                start = parts.pop()[1]  # it follows the last one
            parts.append((frame, start, end))
        return polars.concat([frame[start:end] for frame, start, end in parts], rechunk=True)


def rows_of(runs: Mapping[Trial, Result]) -> polars.DataFrame:
    """The rows of runs of an agent in an environment, in this order, as `Results.rows` has them;
    what is unknown is null.
    """
    results, (first, *_) = list(runs.values()), runs
    counts = [len(result.steps) for result in results]
    measured = {"step": "steps", "regret": "regret", "reward": "reward", "clicks": "clicks"}
    columns = {
        column: np.concatenate([getattr(result, name) for result in results])
        for column, name in measured.items()
    }
    metrics = list(results[0].metrics)
    for name in metrics:
        columns[name] = np.concatenate([result.metrics[name] for result in results])
    columns["run"] = np.repeat([trial.run for trial in runs], counts)
    # null where a seed does not fit, which no sweep has
    seeds = polars.Series([result.seed for result in results], dtype=polars.Int64, strict=False)
    columns["seconds"] = np.repeat([result.seconds for result in results], counts)
    engines = polars.Series([result.engine for result in results])
    return polars.DataFrame(columns).select(
        *(polars.lit(label).alias(column) for column, label in zip(COLUMNS, first, strict=False)),
        "run",
        seeds[np.repeat(np.arange(len(results)), counts)].alias("seed"),
        "step",
        col("regret").fill_nan(None),
        *("reward", "clicks"),
        *(col(name).fill_nan(None) for name in metrics),
        engines[np.repeat(np.arange(len(results)), counts)].alias("engine"),
        "seconds",
    )


def write_runs(path: Path, frame: polars.DataFrame, config: Config) -> None:
    """Write finished runs of an agent in an environment, one or several, with a checksum, whole or
    not at all.

    Args:
        path: that of the first.
        frame: the tables of the runs, by their number.
        config: of the folder.
    """
    make_folder(path.parent)
    identity = config.run_identity(*frame.row(0)[:3])
    write_whole(path, sealed(frame, {IDENTITY: identity, SEED: str(config.seed)}))


def read_sealed(path: Path) -> tuple[polars.DataFrame, dict[str, str]]:
    """A table that `sealed` made, and the metadata of its file.

    Raises:
        Exception: of many classes, on another file or a damaged one; see `reading`.
    """
    if not path.is_file():
        raise ValueError("it is not a regular file")
    content = path.read_bytes()
    check_seal(content)
    metadata = polars.read_parquet_metadata(io.BytesIO(content))
    if SEAL not in metadata:
        raise ValueError("it has no checksum")
    return polars.read_parquet(io.BytesIO(content)), metadata


def _runs_in(path: Path, config: Config) -> tuple[list[Trial], polars.DataFrame]:
    """The runs in a file with their rows, if they are of a configuration."""
    frame, metadata = read_sealed(path)
    columns, n_steps = [*MEASURED, *config.metrics, *TIMED], len(config.checkpoints)
    frame = frame if frame.columns == columns else frame.select(columns)
    labels = frame.row(0)[:3]
    for label, known in zip(labels, config.labels.values(), strict=True):
        if label not in known:
            raise ValueError(f"{label!r} is not named in {CONFIG}")
    runs = frame["run"].to_numpy()[::n_steps]
    if not np.array_equal(frame["step"].to_numpy(), np.tile(config.checkpoints, len(runs))):
        raise ValueError(f"its steps are not the checkpoints of {CONFIG}")
    numbered = np.array_equal(frame["run"].to_numpy(), np.repeat(runs, n_steps))
    are_alike = all(frame[column].n_unique() == 1 for column in COLUMNS)
    if not numbered or not are_alike or (np.diff(runs) <= 0).any():
        raise ValueError("it belongs to another run")
    if metadata.get(SEED) != str(config.seed):
        raise ValueError(f"it is of the seed {metadata.get(SEED)}; expected {config.seed}")
    if metadata.get(IDENTITY) != config.run_identity(*labels):
        raise ValueError(f"it is of other users, another agent or another setting than {CONFIG}")
    first = Trial(*frame.row(0)[:4])
    return [first._replace(run=run) for run in runs.tolist()], frame


def read_results(folder: Path) -> tuple[polars.DataFrame, Config]:
    """The rows of all finished runs of a folder, in the order of its configuration, and this
    configuration.

    Raises:
        ValueError: the folder is not a results folder, no run is finished, or a file is damaged or
            does not fit.
    """
    config, runs = read_config(folder), folder / RUNS
    finished = [file.relative_to(runs) for file in sorted(runs.rglob("*.parquet"))]
    if not finished:
        raise ValueError(f"{folder} holds no finished run yet")
    found = FinishedRuns(folder, config)
    found.read(finished)
    order = [{label: n for n, label in enumerate(labels)} for labels in config.labels.values()]

    def place(trial: Trial) -> tuple[int, ...]:
        return (*(of[label] for of, label in zip(order, trial[:3], strict=True)), trial.run)

    return found.table(sorted(found, key=place)), config


# -------------------------------------------------------------------------------------- in Python


class Results:
    """The results of a sweep: rows, table and figure. `sweep` returns them; they can also be read
    from a folder.

    Args:
        source: the folder of a `sweep` or of ``clickgym run``, finished or not; or `rows` of such
            results.
        config: the configuration of rows, if it is known, as ``config.json`` holds it.

    Attributes:
        rows: a polars frame as in ``results.parquet``: env, instance, agent, run, the seed with
            which `clickgym.run` repeats this run, step, regret, reward, clicks and further metrics;
            engine and seconds (wall time) of the run.
        configuration: of the sweep; None if it is unknown.

    Raises:
        ValueError: the folder is not one of results, or the rows are not those of a sweep.

    Example:
        >>> import clickgym
        >>> results = clickgym.sweep(["PBMRank-v0"], ["Random", "TopRank"], 1000, 3)
        >>> results
        <Results: 2 agents, 1 environment, 1 instance, 3 runs, 1,000 sessions>
        >>> results.table()["agent"].to_list()
        ['TopRank', 'Random']
        >>> figure = results.plot("regret.pdf")  # doctest: +SKIP
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | polars.DataFrame,
        config: Config | Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(config, Mapping):
            config = Config.from_json("config", config) if config else None
        check_kind("config", config, Config | None, "a configuration, as in config.json")
        if not isinstance(source, polars.DataFrame):
            source, config = read_results(check_path("source", source))
        missing = {*MEASURED, *TIMED} - set(source.columns)
        if missing or source.is_empty():
            raise ValueError(f"the table lacks {min(missing, default='rows')!r}, which a sweep has")
        self.rows, self.configuration = source, config

    @property
    def config(self) -> dict[str, Any]:
        """The configuration, as in ``config.json``; empty if it is unknown."""
        return {} if self.configuration is None else self.configuration.to_json()

    @property
    def frame(self) -> polars.DataFrame:
        """The measurements: `rows` without engine and seconds; clicks and rewards are equal on
        every x86-64 processor tried, regret to twelve digits.
        """
        return self.rows.drop(TIMED)

    @property
    def horizon(self) -> int:
        """T, the sessions of a run."""
        return int(self.rows["step"].to_numpy().max())

    def names(self, column: str) -> list[str]:
        """The environments, instances or agents, in the order of the rows.

        Args:
            column: ``"env"``, ``"instance"`` or ``"agent"``.

        Raises:
            ValueError: another column.
        """
        check_choice("column", column, ("env", "instance", "agent"))
        return self.rows[column].unique(maintain_order=True).to_list()

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
        rows = self.rows
        for what, column, labels in (
            ("agent", "agent", agents),
            ("environment", "env", environments),
        ):
            if labels is not None:
                known = self.names(column)
                labels = entries(f"{what}s", labels, "a list of labels")
                chosen = list(dict.fromkeys(check_choice(what, name, known) for name in labels))
                order = col(column).cast(polars.Enum(chosen))
                rows = rows.filter(col(column).is_in(chosen)).sort(order, maintain_order=True)
        if rows.is_empty():
            raise ValueError("there are no results of these agents in these environments")
        return Results(rows, self.configuration)

    def table(self, reference: str | None = None) -> polars.DataFrame:
        """The final results of every agent, lowest regret first: means over instances and runs.

        Intervals are of Student's t. With several instances in an environment they are over the
        instances, each averaged over its runs, and about other instances of the kind; with one they
        are over the runs. ``over`` says which.

        Args:
            reference: the agent with which the others are compared; None takes the first.

        Returns:
            For each environment a row per agent: ``regret``, with ``regret_ci95``, half the width
            of its 95 % interval (null for a single instance or run), and ``regret_ci95_runs``, half
            of that over runs, about these very instances, where there are several of both;
            ``median`` and ``worst`` of all runs; the ``difference`` of regret to the ``reference``
            over the same instances or runs, ``difference_ci95``, and ``p`` of the paired t test,
            adjusted by Holm's procedure for the agents of the environment (null for two instances
            or runs); ``reward`` per session with its interval; the number of ``runs``; each further
            metric, per session, with its interval; the number of ``instances``, ``over``;
            ``ns_per_session``, the median over runs of the wall time, and ``engine``. If the regret
            of an environment is unknown, it is null there, agents are ranked by reward, and
            differences are of the total reward.

        Raises:
            ValueError: there is no such agent.
        """
        if reference is not None:
            check_choice("reference", reference, self.names("agent"))
        return final_table(self.rows, reference)

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str | None = None,
        ax: Axes | None = None,
        log: bool = True,
        by_instance: bool = False,
        reference: str | None = None,
        emphasis: str | None = None,
        names: Mapping[str, str] | None = None,
        width: float | None = None,
        normalise: bool = False,
    ) -> Figure:
        """Draw the cumulative regret with its 95 % band, one panel for each environment, and a row
        of panels for each further metric, per session within windows of the run.

        Args:
            path: a file to write the figure to, in the format of its suffix: ``.pdf`` (with fonts
                that a paper can embed), ``.svg``, ``.png``, or what else matplotlib writes. Version
                and command stand in its metadata.
            title: above the figure; None says what is averaged.
            ax: axes to draw into, with a legend; only for the results of one environment.
            log: both axes of regret are logarithmic, or both linear; with ``reference`` or
                ``normalise`` they are linear.
            by_instance: a panel for each instance of each environment, not their mean.
            reference: draw the differences to this agent in the same runs.
            emphasis: the agent whose line is thick and above the others.
            names: what the figure calls agents, environments, instances and metrics.
            width: of the figure in inches, such as 3.3 for a column of a paper. The legend is below
                the panels, the letters are of eight points, and there is no title by default.
            normalise: draw one minus the regret as a share of that of `Random`, which must be among
                the agents: 0 for random lists, 1 for the optimum.

        Returns:
            A matplotlib figure, to be saved or changed; a notebook shows it. It is none of
            pyplot's.

        Raises:
            ValueError: matplotlib writes no files of this suffix, ``ax`` is to hold several
                panels, there is no such agent, or nothing by which to normalise.
        """
        from .reports.figures import Manner, regret_figure, write_figure  # slow to load

        check_flag("log", log)
        check_flag("by_instance", by_instance)
        if title is not None:
            check_kind("title", title, str, "text")
        for argument, agent in (("reference", reference), ("emphasis", emphasis)):
            if agent is not None:
                check_choice(argument, agent, self.names("agent"))
        if width is not None:
            check_at_least("width", width, 0, strictly=True)
        log = log and reference is None and not check_flag("normalise", normalise)
        manner = Manner(log, reference, emphasis, dict(names or {}), width, normalise)
        figure = regret_figure(
            self.rows, self.configuration, manner, title=title, ax=ax, by_instance=by_instance
        )
        if path is not None:
            config = self.configuration
            write_figure(figure, check_path("path", path), config.origin if config else None)
        return figure

    def __repr__(self) -> str:
        counts = {
            "agent": self.rows["agent"].n_unique(),
            "environment": self.rows["env"].n_unique(),
            "instance": self.rows["instance"].n_unique(),
            "run": self.rows["run"].n_unique(),
        }
        texts = [f"{count} {word}{'s' * (count > 1)}" for word, count in counts.items()]
        return f"<Results: {', '.join(texts)}, {self.horizon:,} sessions>"
