"""`Results`: the measurements of runs, and the table, figure and files made from them."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars
from polars import col

from ..core.checks import (
    as_list,
    check_choice,
    check_kind,
    check_labels,
    check_path,
    is_sequence,
)
from ..core.files import make_folder, parquet_bytes, write_whole
from ..core.text import counted
from ..measure.metrics import less_is_better
from ..measure.result import HOW_PLAYED, RUN_COLUMNS, Result
from .combine import check_runs, check_same_sweep, concatenate, names_in_single_runs
from .reports.summaries import (
    RUN,
    final_table,
    metrics_of,
    share_no_instance,
    split_instances,
)
from .results_folder import (
    CONFIG,
    FIGURES,
    ROWS,
    SUMMARY,
    Config,
    LabelColumn,
    read_folder,
    rows_of_sweep,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


LINES = 30
"""The largest number of lines that ``print(results)`` shows."""


class Results:
    """The results of runs, as rows, as a table and as a figure. ``print(results)`` shows the table.

    `sweep` returns a `Results` object. You can also load `Results` from a folder, or combine the
    results of several sweeps and single runs.

    Args:
        source: the results to load or to combine: a folder that `sweep` or ``clickgym run`` wrote,
            finished or not, or that `write` wrote; an object that `clickgym.run`,
            `RecordRegret.result` or `sweep` returned; or a list of such folders and objects. A run
            that is in two folders counts once. Runs from `clickgym.run` and `sweep` are paired if
            they have the same seed.

    Attributes:
        rows: a Polars frame with one row for each run and checkpoint. The first columns describe
            the run: env, instance, query (if there are several queries), agent, sweep_seed, run,
            seed (the users' seed; pass it to `clickgym.run` to repeat the run), last_seed (the seed
            of the last stream of a vector environment of Gymnasium), trained (the number
            of sessions from which the agent had learned before the run), unrecorded (the number of
            sessions that were played but not recorded), reseeded (how often a seed was used
            again) and users_per_stream (the expected number of users with memory on each of several
            parallel streams). Values that do not apply to a run are null. The next columns are
            step, regret, reward, clicks, additional metrics, engine and seconds (the run's wall
            time).
        configs: the `Config` of each sweep; single runs have none.

    Raises:
        TypeError: ``source``, or an entry of the list, is none of these.
        ValueError: a folder has no results; two sweeps have different checkpoints or package
            versions, or use the same label for different things, such as your class before
            and after an edit; or single runs have different numbers of sessions, different rewards,
            streams with the same users, or the same name for two agents.

    Warns:
        UserWarning: a folder in the list has no finished run yet.

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
        source: str
        | os.PathLike[str]
        | Result
        | Results
        | Sequence[Result | Results | str | os.PathLike[str]],
    ) -> None:
        parts: Any = source if is_sequence(source) else [source]
        self.rows: polars.DataFrame
        self.configs: list[Config]
        if len(parts) == 1 and not isinstance(parts[0], Result):
            results = _results_of(parts[0])
            self.rows, self.configs = results.rows, results.configs
        else:
            self.rows, self.configs = _join(parts)
        if self.rows.is_empty():
            raise ValueError(
                f"no run is finished yet in {', '.join(map(str, parts))}; to continue, run the "
                "same clickgym run or sweep again"
            )

    @classmethod
    def of_rows(cls, rows: polars.DataFrame, configs: Sequence[Config] = ()) -> Results:
        """Create `Results` from rows without checking that the rows fit into one table.

        This is for rows that come from one sweep or folder, or from other results.

        Args:
            rows: at least one row, with the columns of the attribute `rows`.
            configs: the configurations of the sweeps that the rows come from; by default, none.
        """
        results = cls.__new__(cls)
        results.rows, results.configs = rows, list(configs)
        return results

    @property
    def frame(self) -> polars.DataFrame:
        """The `rows` without the columns engine and seconds, which vary when a run is repeated.

        On all x86-64 processors that we tried, a repeated run has exactly the same clicks and
        rewards, and its regret agrees to twelve digits.
        """
        return self.rows.drop(HOW_PLAYED)

    @property
    def horizon(self) -> int:
        """T, the number of sessions in each run."""
        return int(self.rows["step"].to_numpy().max())

    def names(self, column: str) -> list[str]:
        """Return the names of the environments, instances or agents, in the order of the rows.

        Args:
            column: the column that contains the names: ``"env"``, ``"instance"`` or ``"agent"``.
        """
        return self.rows[column].unique(maintain_order=True).to_list()

    def spec(self, column: LabelColumn, label: str) -> str:
        """Return the spec that a label stands for, or the label itself if its spec is unknown."""
        fingerprints = [config.fingerprints_of(column) for config in self.configs]
        return next((known[label].spec for known in fingerprints if label in known), None) or label

    def less_is_better(self, measure: str) -> bool:
        """Return whether a good agent has little of a measure, as of regret."""
        return less_is_better(measure) or any(
            measure in config.less_is_better for config in self.configs
        )

    @property
    def n_missing(self) -> int:
        """The number of unfinished runs in the sweeps that these results come from."""
        return sum(self.missing_runs.values())

    @property
    def missing_runs(self) -> dict[str, int]:
        """The number of unfinished runs of each agent that has any, by the agent's label."""
        keys = {(*key, config.seed) for config in self.configs for key in config.run_keys()}
        last = self.rows.filter(col("step") == self.horizon, col("sweep_seed").is_not_null())
        finished = last.select("env", "instance", "agent", "run", "sweep_seed").rows()
        return dict(Counter(agent for _, _, agent, *_ in keys - {*finished}))

    def select(
        self,
        agents: Iterable[str] | None = None,
        environments: Iterable[str] | None = None,
        instances: Iterable[str] | None = None,
    ) -> Results:
        """Return the results of selected agents, environments and instances, in the order of your
        selection.

        Args:
            agents: the labels of the agents to keep; by default, all agents.
            environments: the labels of the environments to keep; by default, all environments.
            instances: the labels of the instances to keep; by default, all instances.

        Raises:
            ValueError: an agent, environment or instance is unknown, or none of the selected agents
                was run in any of the selected environments with any of the selected instances.
        """
        rows, configs = self.rows, self.configs
        selections: dict[LabelColumn, tuple[str, Iterable[str] | None]] = {
            "agent": ("agent", agents),
            "env": ("environment", environments),
            "instance": ("instance", instances),
        }
        for column, (noun, labels) in selections.items():
            if labels is not None:
                names = self.names(column)
                labels = as_list(f"{noun}s", labels, "a list of labels")
                chosen_labels = list(
                    dict.fromkeys(check_choice(noun, name, names) for name in labels)
                )
                order = col(column).cast(polars.Enum(chosen_labels))
                rows = rows.filter(col(column).is_in(chosen_labels)).sort(
                    order, maintain_order=True
                )
                configs = [config.select(column, chosen_labels) for config in configs]
        if rows.is_empty():
            raise ValueError(
                "the selected agents have no runs in the selected environments and instances; "
                "select more of them"
            )
        return Results.of_rows(rows, configs)

    def table(
        self,
        reference: str | None = None,
        *,
        by_instance: bool = False,
        measure: str = "regret",
    ) -> polars.DataFrame:
        """Return the final results of every agent, starting with the lowest regret, or with the
        best value of another ``measure``.

        One observation is called a *unit*. If an environment has several instances, each instance
        is a unit. Otherwise, if each run plays one of several queries, each query is a unit. In all
        other cases, each run is a unit. The runs of a unit are averaged first. Means are then taken
        over the units, and their 95 % intervals (Student's t) cover other units of the same kind.
        A mean over instances of different families, such as ``clickbait`` and ``journey``, has no
        interval and no p-value, because it does not stand for one kind of users; `select` one
        family.

        Args:
            reference: the agent with which the other agents are compared; by default, the first
                agent that had the same users as others, or the first agent if none had: if units
                are runs, not `PPO`, and never an agent that played in your own loop.
            by_instance: whether each instance of an environment has its own rows, with a column
                ``instance``; by default, a row shows the average over all instances that the agent
                played, so compare only agents that played the same instances.
            measure: what the table compares: ``"regret"``, ``"reward"`` or the name of an
                additional metric, such as ``"ndcg"``. The order of the rows and the columns
                ``median``, ``worst``, ``difference`` and ``p`` are about this measure, per session
                unless it is regret. Less regret is better, and less of a metric with
                ``less_is_better=True``, such as violations; of any other measure, more is better.

        Returns:
            A row for each agent in each environment, with these columns:

            - ``regret``, and ``regret_ci95``, the half-width of its 95 % interval (null for a
              single unit);
            - ``regret_ci95_runs`` (``ndcg_ci95_runs`` for the measure ndcg), if units are
              instances: the half-width of an interval that covers only these instances. The
              interval is computed over the runs, each averaged over the instances; it is null for
              a single run, or if an instance lacks some runs;
            - ``median`` and ``worst``: the median and the largest regret among all runs;
            - ``difference``: the agent's regret minus that of the ``reference``, averaged over the
              units that both agents have, and
              ``difference_ci95``, the half-width of its interval. Runs with the same seed are the
              same unit. The difference is null if one of the two agents played in your own loop, or
              if units are runs and one of the two agents had its own users, as `PPO` does;
            - ``p``: the p-value of the paired t test, adjusted by Holm's procedure for the number
              of agents in the environment (null for two units or fewer, or if all differences
              are 0);
            - ``reward`` and each additional metric, per session, with their intervals;
            - ``runs``, the number of runs (of the instance with the fewest runs, if there are
              several), ``units``, the number of units, and ``over``, the kind of unit:
              ``"instances"``, ``"families"`` (instances of different families), ``"queries"`` or
              ``"runs"``;
            - ``ns_per_session``, the median wall time over the runs, and ``engine``.

            If the regret of any agent in an environment is unknown, ``regret`` is null for all
            agents in this environment. These agents are then ranked by reward, and their
            differences are differences in total reward.

        Raises:
            ValueError: ``reference`` is not an agent in these results, or ``measure`` was not
                measured.
        """
        if reference is not None:
            check_choice("reference", reference, self.names("agent"))
        check_choice("measure", measure, ["regret", "reward", *metrics_of(self.rows)])
        if not by_instance:
            return final_table(self.rows, reference, measure, self.less_is_better(measure))
        rows = self.rows.with_columns(environment="env")
        names = split_instances(rows).select("env", "environment", "instance").unique()
        split = split_instances(self.rows)
        table = final_table(split, reference, measure, self.less_is_better(measure))
        table = table.join(names, on="env", how="left", maintain_order="left")
        columns = table.drop("env", "environment", "instance").columns
        return table.select(col("environment").alias("env"), "instance", *columns)

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        log: bool = True,
        by_instance: bool = False,
        reference: str | None = None,
        emphasis: str | None = None,
        names: Mapping[str, str] | None = None,
        width: float | None = None,
        measures: Sequence[str] | None = None,
    ) -> Figure:
        """Draw the cumulative regret with its 95 % band, in one panel for each environment.

        Each additional metric has its own row of panels, which show the metric's mean per session
        within windows of the run. Dashed vertical lines mark the sessions at which the users of a
        sweep change. A panel that is the mean over instances has such lines only if the users of
        all these instances change at the same sessions; otherwise, its title says so.

        Args:
            path: the file in which the figure is saved; by default, the figure is not saved. The
                suffix determines the format: ``.pdf`` (with fonts that a paper can embed),
                ``.svg``, ``.png``, or another format supported by matplotlib.
            log: whether both axes of the regret panels are logarithmic, from a thousandth of the
                horizon on; True by default. With a ``reference``, both axes are always linear, as
                are those of reward, which panels show where regret is unknown.
            by_instance: whether each instance of an environment has its own panel; by default, one
                panel shows the average over all instances, unless two agents have no instance in
                common.
            reference: the agent with which the other agents are compared. With a reference, the
                figure shows each agent's difference from the reference in the same runs, and leaves
                out agents that have no difference in the `table`, which its title names. By
                default, there is none.
            emphasis: the agent whose line is thick; the thin lines of the other agents are drawn
                over this line. By default, all lines are thin.
            names: a mapping from the names of agents, environments, instances and metrics to the
                names that the figure shows. Names that do not occur in the figure are ignored.
            width: the width of the figure in inches, such as 3.3 for a column of a paper. If you
                pass a width, the text has a size of eight points, and the figure has no title. By
                default, the figure is sized for a screen, and its title says what is averaged.
            measures: the measures to show, each in its own row of panels: ``"regret"`` and names of
                metrics; by default, regret and all metrics.

        Returns:
            A matplotlib figure, which you can change and save. Notebooks display the figure,
            although it is not registered with pyplot.

        Raises:
            ValueError: matplotlib cannot write files with this suffix; an agent or a measure is
                unknown; no other agent had the same users as the ``reference``; or the runs of an
                agent in an environment have different checkpoints.
        """
        from .reports.figures import PlotOptions, figure_bytes, regret_figure  # load slowly

        for argument, agent in (("reference", reference), ("emphasis", emphasis)):
            if agent is not None:
                check_choice(argument, agent, self.names("agent"))
        log = log and reference is None
        measure_names = check_labels("measures", measures or ["regret", *metrics_of(self.rows)])
        for measure in measure_names:
            check_choice("measure", measure, ["regret", *metrics_of(self.rows)])
        options = PlotOptions(
            log=log,
            by_instance=by_instance or share_no_instance(self.rows),
            reference=reference,
            emphasis=emphasis,
            names=dict(names or {}),
            width=width,
            measures=measure_names,
            cells=[cell for config in self.configs for cell in config.cells],
            shares={name for config in self.configs for name in config.shares},
            descriptions=dict(
                pair for config in self.configs for pair in config.descriptions.items()
            ),
        )
        figure = regret_figure(self.rows, options)
        if path is not None:
            file = check_path("path", path)
            write_whole(file, figure_bytes(figure, file.suffix[1:].lower()))
        return figure

    def to_latex(
        self,
        reference: str | None = None,
        *,
        names: Mapping[str, str] | None = None,
        caption: str | None = None,
        label: str | None = None,
        measure: str = "regret",
        columns: Sequence[str] | None = None,
    ) -> str:
        """Return the `table` as LaTeX code that requires the package booktabs.

        The caption says what the intervals cover, which test the p-values come from, which agents
        learned from rewards only, which had their own users, what the agents were told in addition
        to clicks, which agents explore as much as their theory prescribes, and what agents had
        learned before these runs.

        Args:
            reference: the agent with which the other agents are compared; by default, the same
                agent as in `table`.
            names: a mapping from the names of agents, environments, instances and metrics to the
                names that the table shows, as in `plot`.
            caption: the caption, as LaTeX code, in place of the one described above.
            label: the label of the table; by default, ``"tab:regret"``, or ``tab:`` and another
                ``measure``.
            measure: what the table compares, as in `table`.
            columns: the headings of the columns to show, such as ``["regret", "p"]``; the caption
                then explains only these. By default, all columns are shown, except for the time.

        Raises:
            ValueError: two agents, environments or instances would have the same name; a column is
                unknown; or, as in `table`, ``reference`` or ``measure`` is unknown.
        """
        from .reports.table import to_latex

        return to_latex(self, reference, names, caption, label, measure, columns)

    def report(
        self,
        out: str | os.PathLike[str] | None = None,
        reference: str | None = None,
        *,
        by_instance: bool = False,
        measure: str = "regret",
    ) -> None:
        """Print the `table` and, if you pass a folder, write the table, the figure and the rows.

        Args:
            out: the folder for the files, created if missing; by default, no files are written.
            reference: the agent with which the other agents are compared; by default, the same
                agent as in `table`.
            by_instance: whether the printed table has its own rows for each instance, as in
                `table`. The files do not depend on this argument.
            measure: what the printed table compares, as in `table`. The files do not depend
                on it.
        """
        from .console import output_console
        from .reports.table import print_results

        folder = None if out is None else check_path("out", out)
        print_results(output_console(), self, reference, by_instance=by_instance, measure=measure)
        if folder is not None:
            self.write(folder, reference)

    def write(self, out: str | os.PathLike[str], reference: str | None = None) -> list[str]:
        """Write the `table`, the figure and the rows to files, and return the files' names.

        `Results` loads the rows from the folder, so you can keep the training in your own loop:
        ``Results(result).write("results/mine")``.

        Args:
            out: the folder for the files, created if missing. Do not use the folder of a sweep,
                which keeps only the runs of this sweep.
            reference: the agent with which the other agents are compared; by default, the same
                agent as in `table`.
        """
        folder = check_path("out", out)
        make_folder(folder)
        files: dict[str, str | bytes] = {**self._figure_files()}
        files[SUMMARY] = self.table(reference).write_csv()
        files[ROWS] = parquet_bytes(self.rows)
        # The rows come last, because equal rows tell `are_in` that all files are complete.
        for name, content in files.items():
            write_whole(folder / name, content)
        return [*files]

    def _figure_files(self) -> dict[str, bytes]:
        """Draw the figure, and return the content of each of its files, by the file's name."""
        from .reports.figures import figure_bytes  # matplotlib is slow to load

        figure = self.plot()
        return {name: figure_bytes(figure, name.rpartition(".")[2]) for name in FIGURES}

    def are_in(self, folder: Path) -> bool:
        """Return whether a folder already contains the files that `write` would write."""
        if not all((folder / name).exists() for name in (*FIGURES, SUMMARY, ROWS)):
            return False
        if (folder / SUMMARY).read_bytes() != self.table().write_csv().encode():
            return False
        return (folder / ROWS).read_bytes() == parquet_bytes(self.rows)

    def __repr__(self) -> str:
        counts = {
            "agent": self.rows["agent"].n_unique(),
            "environment": self.rows["env"].n_unique(),
            "instance": self.rows["instance"].n_unique(),
            "run": self.rows.select("sweep_seed", "run").n_unique(),
        }
        texts = [counted(count, noun) for noun, count in counts.items()]
        return f"<Results: {', '.join(texts)}, {self.horizon:,} sessions>"

    def __str__(self) -> str:
        """Return the first lines that `report` prints."""
        from .console import text_console
        from .reports.table import print_results

        console = text_console()
        with console.capture() as printed:
            print_results(console, self)
        lines = [line.rstrip() for line in printed.get().strip().splitlines()]
        n_hidden = len(lines) - LINES
        return "\n".join(
            lines[:LINES] + [f"… {n_hidden} more lines: report() prints them all"] * (n_hidden > 0)
        )


# ---------------------------------------------------------------- combining folders and single runs

ResultsLike = Result | Results | str | os.PathLike[str]
"""Anything that `Results` can load: the result of a run, `Results`, or a results folder."""


def _results_of(part: Results | str | os.PathLike[str]) -> Results:
    """Load the results in a folder; return a `Results` object unchanged."""
    if isinstance(part, Results):
        return part
    check_kind(
        "source",
        part,
        str | os.PathLike,
        "a results folder, or what clickgym.run, sweep or envs.result(name) returned",
    )
    folder = check_path("source", part)
    if (folder / ROWS).is_file() and not (folder / CONFIG).exists():  # written by `Results.write`
        rows = polars.read_parquet(folder / ROWS)
        missing = RUN_COLUMNS.keys() - set(rows.columns)  # if an earlier version wrote the file
        return Results.of_rows(
            rows.with_columns(
                polars.lit(None).cast(RUN_COLUMNS[name]).alias(name) for name in missing
            )
        )
    config, runs = read_folder(folder)
    return Results.of_rows(rows_of_sweep(runs, config), [config])


def _join(parts: Sequence[ResultsLike]) -> tuple[polars.DataFrame, list[Config]]:
    """Combine single runs, other results and folders. Return their rows, with the columns of
    `Results.rows`, and the configurations of their sweeps. The rows are empty if no run is
    finished.

    Raises:
        ValueError: the parts cannot be shown in one table, for one of the reasons listed in
            `Results`.
    """
    singles = [id(part) for part in parts if isinstance(part, Result)]
    if len({*singles}) < len(singles):
        raise ValueError(
            "the same result is in the list twice, and would count as two runs; remove one of them"
        )
    frames: list[polars.DataFrame] = []
    sources: list[tuple[str, Config]] = []
    for place, part in enumerate(parts, 1):
        if isinstance(part, Result):
            frames.append(part.to_frame())
            continue
        results = _results_of(part)
        if results.rows.is_empty():
            warnings.warn(f"{part} has no finished run yet, and is left out", stacklevel=3)
            continue
        source = f"sweep {place} of the list" if isinstance(part, Results) else str(part)
        frames.append(results.rows)
        sources += [(source, config) for config in results.configs]
    check_same_sweep(sources)
    if not parts:
        raise ValueError("source is empty; pass at least one folder or result")
    if not frames:
        return polars.DataFrame(), []
    same = names_in_single_runs(frames)
    rows = concatenate([rows.with_columns(col("env").replace(same)) for rows in frames])
    check_runs(rows.filter(col("step") == col("step").max().over(RUN)))
    return rows, [config.renamed(same) for _, config in sources]
