"""The `Results` of a sweep: rows of finished runs, from folders or from a frame, tables, figures.

A folder has a record of each sweep into it. What its tables show is what the last record names, and
what older ones of the same setting name beside it, as far as their runs are finished.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars
from polars import col

from ..core.checks import (
    check_at_least,
    check_choice,
    check_flag,
    check_kind,
    check_labels,
    check_path,
    entries,
    is_sequence,
)
from ..core.files import FORMAT, read_json, write_whole
from .config import COLUMNS, Config
from .store import RUNS, Row, Shape, Store
from .summaries import MEASURED, QUERY, TIMED, final_table, metrics_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CONFIG, TABLE = "config.json", "results.parquet"
ALWAYS = ("regret", "reward", "clicks")
"""What every run measures."""


class Trial(NamedTuple):
    """One run of one agent in one environment."""

    env: str
    instance: str
    agent: str
    run: int


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


# ------------------------------------------------------------------------------------- the folder


def open_store(folder: Path) -> Store:
    """The files of runs in a results folder.

    Raises:
        ValueError: the folder holds something else, or results of another version.
    """
    store, config = Store(folder), folder / CONFIG
    if next(store.records(), None) is None:
        if config.is_file() and read_json(config).get("format") != FORMAT:
            raise ValueError(
                f"{folder} is of another version of clickgym: read it with that version, or choose "
                "another folder (--out)"
            )
        # The folder of runs is looked for last: another command may make it meanwhile.
        if any(folder.glob("[!.]*")) and not config.is_file() and not store.folder.is_dir():
            raise ValueError(f"{folder} is not a results folder: it has no {RUNS}")
    return store


def recorded(stores: Iterable[Store]) -> list[Config]:
    """The configurations of all sweeps into some folders, the last one at the end."""
    configs = [Config.from_json(it.folder, content) for it in stores for content in it.records()]
    return sorted(configs, key=lambda config: config.made)


def current(configs: Sequence[Config]) -> Config:
    """The configuration of the tables after some sweeps: that of the last one, with the others of
    the same setting.
    """
    shown, *others = [it for it in configs if it.setting == configs[-1].setting]
    for config in others:
        shown = shown.extended(config)
    return shown


def begin(store: Store, planned: Config) -> tuple[Config | None, Config]:
    """Record a sweep, unless the folder shows all of it already.

    Args:
        store: of the results folder.
        planned: what the sweep is of.

    Returns:
        What the tables of the folder showed before, and what they show now.
    """
    configs = recorded([store])
    before, now = current(configs) if configs else None, current([*configs, planned])
    nothing: dict[str, Any] = {"made": "", "commit": "", "processor": ""}
    if before is not None and replace(before, **nothing) == replace(now, **nothing):
        return before, before
    store.record(planned.to_json())
    return before, now


def write_config(folder: Path, config: Config) -> None:
    """Write what the tables of a folder show, unless it is there."""
    text = json.dumps(config.to_json(), indent=1) + "\n"
    file = folder / CONFIG
    if not file.is_file() or file.read_bytes() != text.encode():
        write_whole(file, text)


def shape_of(config: Config) -> Shape:
    """The shape of the array of each run."""
    return len(ALWAYS) + len(config.metrics), len(config.checkpoints)


def rows_of(
    runs: Sequence[tuple[Trial, int | None, Row]], steps: Sequence[int], metrics: Sequence[str]
) -> polars.DataFrame:
    """The rows of runs, each with its seed, as `Results.rows` has them; what is unknown is null."""
    names = [*ALWAYS, *metrics]
    measured = np.frombuffer(b"".join(row.measured for _, _, row in runs), "<f8")
    columns = measured.reshape(len(runs), len(names), len(steps)).swapaxes(0, 1)
    of_runs: dict[str, Any] = dict.fromkeys(COLUMNS, polars.String)
    of_runs |= {"run": polars.Int64, "seed": polars.Int64}
    of_runs |= {"engine": polars.String, "seconds": polars.Float64}
    facts = [(*trial, seed, row.engine, row.seconds) for trial, seed, row in runs]
    frame = polars.DataFrame(facts, of_runs, orient="row", strict=False)
    return (
        frame[np.repeat(np.arange(len(runs)), len(steps))]
        .with_columns(polars.Series("step", np.tile(steps, len(runs))))
        .with_columns(
            polars.Series(name, column.reshape(-1))
            for name, column in zip(names, columns, strict=True)
        )
        .with_columns(col("regret", *metrics).fill_nan(None), col("clicks").cast(polars.Int64))
        .select(*MEASURED, *metrics, *TIMED)
    )


def table_of(
    rows: Mapping[str, Row], keys: Mapping[Trial, str], config: Config
) -> polars.DataFrame:
    """The rows of a sweep's finished runs, in the order of their keys."""
    counts = config.queries
    runs = [
        (trial, run_seed(config.seed, *trial[1::2], counts.get(trial.instance, 1)), rows[key])
        for trial, key in keys.items()
        if key in rows
    ]
    frame = rows_of(runs, config.checkpoints, config.metrics)
    if not counts:
        return frame
    queries = col("instance").replace_strict(counts, default=None, return_dtype=polars.Int64)
    place = frame.columns.index("seed") + 1
    return frame.insert_column(place, frame.select((col("run") % queries).alias(QUERY))[QUERY])


def read_results(stores: Sequence[Store]) -> tuple[polars.DataFrame, Config, list[Trial]]:
    """The rows of the finished runs that the tables of some folders show together, what these are
    of, and the runs that are not finished.

    Raises:
        ValueError: no run is finished.
    """
    configs, rows = recorded(stores), dict[str, Row]()
    if configs:
        config = current(configs)
        labels = product(config.envs, config.instances, config.agents)
        keys = {
            Trial(*names, run): f"{key}-{run}"
            for names in labels
            for key in [config.key(*names)]
            for run in range(config.runs)
        }
        for store in stores:
            rows |= store.rows(keys.values(), shape_of(config))
    if not rows:
        where = ", ".join(str(store.folder.parent) for store in stores)
        if not any(store.folder.is_dir() for store in stores):
            raise ValueError(f"{where} is not a results folder: it has no {RUNS}")
        raise ValueError(f"{where} holds no finished run yet")
    asked = {
        Trial(env, *names)
        for it in configs
        if it.setting == config.setting
        for env, instances in it.places.items()
        for names in product(instances, it.agents, range(it.runs))
    }
    left = [trial for trial, key in keys.items() if trial in asked and key not in rows]
    return table_of(rows, keys, config), config, left


# -------------------------------------------------------------------------------------- in Python


class Results:
    """The results of a sweep: rows, table and figure. `sweep` returns them; they can also be read
    from a folder.

    Args:
        source: the folder of a `sweep` or of ``clickgym run``, finished or not; several of them,
            whose results stand in one table; or `rows` of such results.
        config: the configuration of rows, if it is known, as ``config.json`` holds it.
        left: with rows, the runs that are not finished.

    Attributes:
        rows: a polars frame as in ``results.parquet``, with the columns env, instance, agent, run,
            seed, step, regret, reward, clicks, further metrics, engine and seconds (wall time of
            the run). `clickgym.run` with the seed repeats this run. If an environment has several
            queries, the column query has that of each run (null elsewhere).
        configuration: of the sweep; None if it is unknown.
        left: the runs that sweeps into the folders have not finished.

    Raises:
        ValueError: the folder is not one of results, or the rows are not those of a sweep.

    Warns:
        UserWarning: runs of an earlier setting are not shown, or files are damaged.

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
        source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | polars.DataFrame,
        config: Config | Mapping[str, Any] | None = None,
        left: Sequence[Trial] = (),
    ) -> None:
        if isinstance(config, Mapping):
            config = Config.from_json("config", config) if config else None
        check_kind("config", config, Config | None, "a configuration, as in config.json")
        if not isinstance(source, polars.DataFrame):
            folders: Any = source if is_sequence(source) else [source]
            stores = [open_store(check_path("source", folder)) for folder in folders]
            source, config, left = read_results(stores)
            for hidden in recorded(stores):
                if changes := hidden.changes(config):
                    text = f"runs of another setting are not shown ({'; '.join(changes)})"
                    warnings.warn(text, stacklevel=2)
        missing = {*MEASURED, *TIMED} - set(source.columns)
        if missing or source.is_empty():
            raise ValueError(f"the table lacks {min(missing, default='rows')!r}, which a sweep has")
        self.rows, self.configuration, self.left = source, config, left

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
        rows, left = self.rows, self.left
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
                left = [trial for trial in left if getattr(trial, column) in chosen]
        if rows.is_empty():
            raise ValueError("there are no results of these agents in these environments")
        return Results(rows, self.configuration, left)

    def table(self, reference: str | None = None) -> polars.DataFrame:
        """The final results of every agent, lowest regret first: means over instances and runs.

        Intervals are by Student's t. If an environment has several instances, they are over the
        instances, each averaged over its runs, and tell about other instances of the kind. With one
        instance they are over the runs. If a run plays one of several queries, they are over the
        queries, each averaged over its runs. The column ``over`` says which.

        Args:
            reference: the agent with which the others are compared; None takes the first.

        Returns:
            A row for each agent in each environment, with these columns:

            - ``regret``, and ``regret_ci95``, half the width of its 95 % interval (null for a
              single instance or run);
            - ``regret_ci95_runs``, half the width of the interval over the runs, about these very
              instances, if there are several instances and several runs;
            - ``median`` and ``worst`` of all runs;
            - ``difference`` of the regret to that of the ``reference`` over the same instances or
              runs, and ``difference_ci95``;
            - ``p`` of the paired t test, adjusted by Holm's procedure for the agents of the
              environment (null for two instances or runs);
            - ``reward`` and each further metric, per session, with their intervals;
            - ``runs``, ``instances``, and ``over``;
            - ``ns_per_session``, the median over runs of the wall time, and ``engine``.

            If the regret of an environment is unknown, it is null there. Then agents are ranked by
            reward, and differences are of the total reward.

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
        measures: Sequence[str] | None = None,
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
            names: what the figure calls agents, environments, instances and metrics. It may hold
                more than this figure shows, for all figures of a paper.
            width: of the figure in inches, such as 3.3 for a column of a paper. The legend is below
                the panels, the letters are of eight points, and there is no title by default.
            normalise: draw one minus the regret as a share of that of `Random`, which must be among
                the agents: 0 for random lists, 1 for the optimum.
            measures: the rows of panels, in this order: ``"regret"`` and names of metrics. None
                takes all; ``ax`` shows the first.

        Returns:
            A matplotlib figure, which you can change and save. A notebook shows it. It does not
            belong to pyplot.

        Raises:
            ValueError: matplotlib writes no files of this suffix, ``ax`` is to hold several
                panels, there is no such agent or measure, or nothing by which to normalise.
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
        shown = check_labels("measures", measures or ["regret", *metrics_of(self.rows)])
        for measure in shown:
            check_choice("measure", measure, ["regret", *metrics_of(self.rows)])
        manner = Manner(log, reference, emphasis, dict(names or {}), width, normalise, shown)
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
