"""The `Results` of a sweep: its rows, and the table and the figure that are computed from them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars
from polars import col

from ..core.checks import (
    as_list,
    check_choice,
    check_labels,
    check_path,
    is_sequence,
)
from ..core.files import make_folder, parquet, write_whole
from ..envs.result import HOW_PLAYED, Result
from .store import Config, LabelColumn, read_folder, rows_of_sweep
from .summaries import IS_OWN, RUN, final_table, metrics_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


SUMMARY, FIGURE, ROWS = "summary.csv", "regret", "results.parquet"
"""The files of a report; the figure's name gets a suffix."""
LINES = 30
"""The largest number of a report's lines that `print` shows."""


class Results:
    """The results of runs: rows, a table and a figure. ``print(results)`` shows the table.

    `sweep` returns a `Results` object. You can also load `Results` from a folder, or combine the
    results of single runs.

    Args:
        source: a folder that `sweep` or ``clickgym run`` wrote, finished or not; an object that
            `clickgym.run`, `RecordRegret.result` or `sweep` returned; or a list of folders and such
            objects, to show in one table. A run that is in two folders counts once. Runs of
            `clickgym.run` and `sweep` with the same seed are compared with each other.

    Attributes:
        rows: a polars frame with a row for each run and checkpoint. The first columns describe the
            run: env, instance, query (if there are several), agent, sweep_seed, run, seed (the
            users' seed, with which `clickgym.run` repeats the run), trained (the sessions from
            which the agent had learned before the run), unrecorded (sessions that were played but
            not recorded) and reseeded (how often a seed was used again). They are null where they
            do not apply. Then come step, regret, reward, clicks, further metrics, engine and
            seconds (the run's wall time).
        configs: a `Config` for each sweep; single runs have none.

    Raises:
        ValueError: the folder has no results; the sweeps have different checkpoints, metrics or
            versions, or use one label for two different things, such as your class before and after
            an edit; or the single runs have different numbers of sessions, different rewards, or
            one name for two agents.

    Warns:
        UserWarning: a folder has no finished run yet.

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
                f"{', '.join(map(str, parts))} holds no finished run yet; run the same command "
                "again to continue"
            )

    @classmethod
    def of_rows(cls, rows: polars.DataFrame, configs: Sequence[Config] = ()) -> Results:
        """Return `Results` with rows that need no check, because they come from one sweep or
        folder, or were selected from other results.

        Args:
            rows: as in the attribute `rows`; at least one row.
            configs: as in the attribute `configs`.
        """
        results = cls.__new__(cls)
        results.rows, results.configs = rows, list(configs)
        return results

    @property
    def frame(self) -> polars.DataFrame:
        """The measurements: `rows` without engine and seconds. On every x86-64 processor tried,
        clicks and rewards are equal, and regret is equal to twelve digits.
        """
        return self.rows.drop(HOW_PLAYED)

    @property
    def horizon(self) -> int:
        """T, the sessions of a run."""
        return int(self.rows["step"].to_numpy().max())

    def names(self, column: str) -> list[str]:
        """The environments, instances or agents, in the order of the rows.

        Args:
            column: ``"env"``, ``"instance"`` or ``"agent"``.
        """
        return self.rows[column].unique(maintain_order=True).to_list()

    def spec(self, column: LabelColumn, label: str) -> str:
        """The spec that a label stands for; the label itself if its spec is unknown."""
        labels = [config.labels(column) for config in self.configs]
        return (
            next((meanings[label].spec for meanings in labels if label in meanings), None) or label
        )

    @property
    def n_missing(self) -> int:
        """The number of the sweeps' runs that are not finished."""
        keys = {(*key, config.seed) for config in self.configs for key in config.run_keys()}
        last = self.rows.filter(col("step") == self.horizon, col("sweep_seed").is_not_null())
        finished = last.select("env", "instance", "agent", "run", "sweep_seed").rows()
        return len(keys - {*finished})

    def select(
        self, agents: Iterable[str] | None = None, environments: Iterable[str] | None = None
    ) -> Results:
        """The results of some agents and environments, in the order in which you name them.

        Args:
            agents, environments: the labels to keep; by default, all labels.

        Raises:
            ValueError: there is no such agent or environment, or none of the agents was run in any
                of the environments.
        """
        rows, configs = self.rows, self.configs
        selections: dict[LabelColumn, tuple[str, Iterable[str] | None]] = {
            "agent": ("agent", agents),
            "env": ("environment", environments),
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
            raise ValueError("no results match: these agents have no runs in these environments")
        return Results.of_rows(rows, configs)

    def table(self, reference: str | None = None) -> polars.DataFrame:
        """The final results of every agent, starting with the lowest regret.

        One observation is called a *unit*. If an environment has several instances, each instance
        is a unit; otherwise, if each run plays one of several queries, each query is a unit;
        otherwise, each run is a unit. Each unit is averaged over its runs. Means are over the
        units, and their intervals (Student's t) cover other units of the same kind.

        Args:
            reference: the agent with which the others are compared; by default, the first agent
                that did not play in your own loop, or the first agent if all did.

        Returns:
            A row for each agent in each environment, with these columns:

            - ``regret``, and ``regret_ci95``, half the width of its 95 % interval (null for a
              single unit);
            - ``regret_ci95_runs``, if units are instances: half the width of an interval that
              covers only these instances. It is computed over the runs, each averaged over the
              instances, and is null for a single run, or if an instance lacks some runs;
            - ``median`` and ``worst``: the median and the largest regret of all runs;
            - ``difference``: the agent's regret minus the regret of the ``reference``, over the
              units that both agents have, and ``difference_ci95``, half the width of its interval.
              Runs with the same seed are the same unit. The difference is null if one of the two
              agents played in your own loop, or if units are runs and one of the two agents met
              its own users, as `PPO` does;
            - ``p``: the p-value of the paired t test, adjusted by Holm's procedure for the number
              of agents in the environment (null for two units or fewer, or if all differences
              are 0);
            - ``reward`` and each further metric, per session, with their intervals;
            - ``runs``, the number of runs (of the instance with the fewest runs, if there are
              several), ``units``, the number of units, and ``over``, the kind of unit:
              ``"instances"``, ``"queries"`` or ``"runs"``;
            - ``ns_per_session``, the median wall time over the runs, and ``engine``.

            If the regret of any agent in an environment is unknown, ``regret`` is null for all
            agents in this environment. These agents are then ranked by reward, and their
            differences are differences in total reward.

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
        log: bool = True,
        by_instance: bool = False,
        reference: str | None = None,
        emphasis: str | None = None,
        names: Mapping[str, str] | None = None,
        width: float | None = None,
        measures: Sequence[str] | None = None,
    ) -> Figure:
        """Draw the cumulative regret with its 95 % band, in one panel for each environment.

        A further row of panels for each further metric shows its mean per session within windows of
        the run. Dashed vertical lines show where the users of a sweep change.

        Args:
            path: the file in which to save the figure. Its suffix determines the format: ``.pdf``
                (with fonts that a paper can embed), ``.svg``, ``.png``, or another format supported
                by matplotlib.
            log: whether both axes of the regret panels are logarithmic instead of linear. With a
                ``reference``, both axes are always linear.
            by_instance: whether to draw a separate panel for each instance of an environment. By
                default, one panel shows the average over all instances.
            reference: the agent to compare with: the figure then shows each agent's difference to
                this agent in the same runs, and leaves out agents that have no difference in the
                `table`.
            emphasis: the agent to draw with a thick line; the thin lines of the other agents are
                drawn over this line.
            names: a mapping from the names of agents, environments, instances and metrics to the
                names to show in the figure. The mapping may contain names that do not occur in this
                figure.
            width: the width of the figure in inches, such as 3.3 for a column of a paper. With a
                width, text has a size of eight points, and there is no title. By default, the
                figure is made for a screen, and its title says what is averaged.
            measures: what the rows of panels show, in this order: ``"regret"`` and names of
                metrics; by default, regret and all metrics.

        Returns:
            A matplotlib figure, which you can change and save. Notebooks display the figure, which
            is not registered with pyplot.

        Raises:
            ValueError: matplotlib cannot write files with this suffix; there is no such agent or
                measure; no other agent met the users of the ``reference``; or the runs of an agent
                in an environment have different checkpoints.
        """
        from .reports.figures import PlotOptions, regret_figure, write_figure  # slow to load

        for argument, agent in (("reference", reference), ("emphasis", emphasis)):
            if agent is not None:
                check_choice(argument, agent, self.names("agent"))
        log = log and reference is None
        measure_names = check_labels("measures", measures or ["regret", *metrics_of(self.rows)])
        for measure in measure_names:
            check_choice("measure", measure, ["regret", *metrics_of(self.rows)])
        options = PlotOptions(
            log=log,
            by_instance=by_instance,
            reference=reference,
            emphasis=emphasis,
            names=dict(names or {}),
            width=width,
            measures=measure_names,
            cells=[cell for config in self.configs for cell in config.cells],
        )
        figure = regret_figure(self.rows, options)
        if path is not None:
            write_figure(figure, check_path("path", path))
        return figure

    def to_latex(self, reference: str | None = None) -> str:
        """The `table` in LaTeX, with the rules of the package booktabs. The caption says what the
        intervals cover, which test p comes from, which agents met their own users, what the agents
        were told besides clicks, and what they had learned before these runs.

        Args:
            reference: as in `table`.
        """
        from .reports.table import to_latex

        return to_latex(self, reference)

    def report(
        self, out: str | os.PathLike[str] | None = None, reference: str | None = None
    ) -> None:
        """Print the `table`, and write the table and the figure, as ``clickgym report`` does.

        Args:
            out: the folder for the files, created if missing; by default, no files are written.
            reference: as in `table`.
        """
        from .console import output_console
        from .reports.table import print_results

        folder = None if out is None else check_path("out", out)
        print_results(output_console(), self, reference)
        if folder is not None:
            self.write(folder, reference)

    def write(self, out: Path, reference: str | None = None) -> list[str]:
        """Write the `table`, the figure and the rows, and return the names of the files.

        Args:
            out: a folder, created if missing.
            reference: as in `table`.
        """
        from .reports.figures import figure_bytes  # matplotlib is slow to load

        make_folder(out)
        figure = self.plot()
        files: dict[str, str | bytes] = {
            f"{FIGURE}.{kind}": figure_bytes(figure, kind) for kind in ("png", "svg")
        }
        files[SUMMARY] = self.table(reference).write_csv()
        files[ROWS] = parquet(self.rows)
        for name, content in files.items():  # the rows last, see `are_in`
            write_whole(out / name, content)
        return [*files]

    def are_in(self, folder: Path) -> bool:
        """Return whether a folder already has the files that `write` would write."""
        files = [folder / name for name in (f"{FIGURE}.png", f"{FIGURE}.svg", SUMMARY, ROWS)]
        if not all(file.exists() for file in files):
            return False
        if (folder / SUMMARY).read_bytes() != self.table().write_csv().encode():
            return False
        return (folder / ROWS).read_bytes() == parquet(self.rows)

    def __repr__(self) -> str:
        counts = {
            "agent": self.rows["agent"].n_unique(),
            "environment": self.rows["env"].n_unique(),
            "instance": self.rows["instance"].n_unique(),
            "run": self.rows.select("sweep_seed", "run").n_unique(),
        }
        texts = [f"{count} {word}{'s' * (count > 1)}" for word, count in counts.items()]
        return f"<Results: {', '.join(texts)}, {self.horizon:,} sessions>"

    def __str__(self) -> str:
        """The first lines of what `report` prints."""
        from .console import text_console
        from .reports.table import print_results

        console = text_console()
        with console.capture() as printed:
            print_results(console, self)
        lines = [line.rstrip() for line in printed.get().strip().splitlines()]
        n_hidden = len(lines) - LINES
        return "\n".join(
            lines[:LINES] + [f"… {n_hidden} more lines: report() prints all"] * (n_hidden > 0)
        )


# ------------------------------------------------------------------- of several folders and runs

ResultsLike = Result | Results | str | os.PathLike[str]
"""What a user passes as results: the result of a run, `Results`, or a results folder."""


def _results_of(part: Results | str | os.PathLike[str]) -> Results:
    """Return the results in a folder; return `Results` unchanged."""
    if isinstance(part, Results):
        return part
    config, runs = read_folder(check_path("source", part))
    return Results.of_rows(rows_of_sweep(runs, config), [config])


def _join(parts: Sequence[ResultsLike]) -> tuple[polars.DataFrame, list[Config]]:
    """Join single runs, other results and folders. Return their rows, as in `Results.rows`, and the
    configurations of their sweeps.

    Raises:
        ValueError: as `Results`.
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
    _check_same_sweep(sources)
    if not parts:
        raise ValueError("expected folders or results; got none")
    if not frames:
        raise ValueError(
            f"{', '.join(map(str, parts))} hold no finished run yet; run the same commands again "
            "to continue"
        )
    rows = _concatenate(frames)
    _check_runs(rows.filter(col("step") == col("step").max().over(RUN)))
    return rows, [config for _, config in sources]


def _check_same_sweep(sources: Sequence[tuple[str, Config]]) -> None:
    """Raise a ValueError if two sweeps, given with the names of their sources, have different
    settings, or a label with two meanings.
    """
    # Of equal sweeps, only one is compared with the others. A sweep that cannot be compared, such
    # as one with a lambda, differs even from itself.
    distinct = {
        number if config.difference(config) else repr(replace(config, seed=0)): (source, config)
        for number, (source, config) in enumerate(sources)
    }
    for (name, config), (other_name, other) in combinations(distinct.values(), 2):
        if fault := config.difference(other):
            raise ValueError(f"{other_name} cannot be shown in one table with {name}: {fault}")


def _concatenate(frames: Sequence[polars.DataFrame]) -> polars.DataFrame:
    """Return the rows of all frames. A run of a sweep that is in several of them counts once, and
    single runs are numbered in their order.
    """
    run_id = polars.struct("env", "instance", "agent", "run")
    frames = [rows.with_columns(begins=run_id.rle_id().diff().fill_null(1) > 0) for rows in frames]
    rows = polars.concat(frames, how="diagonal").select(polars.exclude(HOW_PLAYED), *HOW_PLAYED)
    is_single = col("sweep_seed").is_null()
    measurements = polars.struct(polars.exclude("run", "sweep_seed", "begins", *HOW_PLAYED))
    rows = rows.filter(is_single | measurements.is_first_distinct())
    number = col("begins").cum_sum().over("env", "instance", "agent").cast(polars.Int64) - 1
    return rows.with_columns(run=polars.when(is_single).then(number).otherwise("run")).drop(
        "begins"
    )


def _check_runs(last: polars.DataFrame) -> None:
    """Check that the runs can be combined in one table, by looking only at each run's last row.

    Raises:
        ValueError: for the same reasons as `Results`.
    """
    columns = ["env", "instance", "agent", "seed"]
    seed, unknown = col("seed"), col("regret").is_null()
    repeated = last.filter(seed.is_not_null() & (polars.len().over(columns) > 1))
    for env, _, agent, number in repeated[columns].rows():
        raise ValueError(
            f"{agent} in {env} has two runs with the seed {number}; give each run its own "
            "seed, or, if the runs are from two agents, rename one agent: "
            "dataclasses.replace(result, agent=...)"
        )
    source = polars.struct(IS_OWN, col("sweep_seed").is_null())
    mixed = last.filter(source.n_unique().over("env", "agent") > 1)
    for env, agent in mixed["env", "agent"].rows():
        raise ValueError(
            f"in {env}, {agent} is the name of runs from different sources (a sweep, "
            "clickgym.run or your own loop); rename those of one source: "
            "dataclasses.replace(result, agent=...)"
        )
    if last["step"].n_unique() > 1:
        ends = last.select("agent", "step").unique(maintain_order=True)
        lengths = ", ".join(f"{agent} {step:,}" for agent, step in ends.iter_rows())
        raise ValueError(
            f"runs have different numbers of sessions, so they cannot be compared: {lengths}; "
            "play the same number in each run, or, from your own longer loop, take only the "
            f"first sessions: env.result(name, {min(ends['step'])})"
        )
    incomplete = last.filter(unknown, unknown.n_unique().over("env") > 1)
    for env, agent in incomplete["env", "agent"].rows():
        raise ValueError(
            f"in {env}, regret is unknown for {agent} but known for other agents, so they "
            "earned different rewards; put the wrapper that changes the reward around "
            "RecordRegret, or let that wrapper set info['regret']"
        )
