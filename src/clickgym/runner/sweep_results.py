"""Results of a sweep in Python: table, figure and tests, as in the reports of the command line."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars
from polars import col

from ..core.checks import check_choice, check_flag, check_kind, check_path, short
from ..core.files import check_file, reading
from ..core.formats import duration, regret_text
from . import words
from .results import COLUMNS, TIMED, Part, read_results, select_parts
from .summaries import pairwise, ranked, without_regret

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure


class Results:
    """The results of a sweep: table, figure and tests. `sweep` returns them; you can also read them
    from a folder.

    Args:
        source: the folder of a finished `sweep` or ``clickgym run``. Or a polars frame of rows of
            such results, which has no times, versions or command. Or a Parquet file of such rows,
            in which reward and clicks may be unknown. Or a `Results` object.

    Attributes:
        frame: the rows as a polars frame: env, instance, agent, run, step, regret, reward, clicks,
            further metrics.
        timings: one row per run, with engine and seconds, where they are known.
        config: the configuration; of a frame, what it says itself.

    Raises:
        ValueError: the folder is not one of finished results, or the rows are not those of a sweep.
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

    def __init__(self, source: str | os.PathLike[str] | polars.DataFrame | Results) -> None:
        self.frame, self.timings, self.config = _read(source)

    @classmethod
    def _of(
        cls, frame: polars.DataFrame, timings: polars.DataFrame, config: dict[str, Any]
    ) -> Results:
        """The results that `read_results` would return so."""
        results = cls.__new__(cls)
        results.frame, results.timings, results.config = frame, timings, config
        return results

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
        if agents is None and environments is None:
            return self
        agents = _checked("agent", agents, self.config["agents"])
        envs = _checked("environment", environments, self.config["envs"])
        rows = col("agent").is_in(agents), col("env").is_in(envs)
        frame, timings = self.frame.filter(*rows), self.timings.filter(*rows)
        if frame.is_empty():
            raise ValueError(f"there are no results of {', '.join(agents)} in {', '.join(envs)}")
        # Of a table there is nothing to know but what it says.
        config = (
            select_parts(self.config, agents, envs)
            if "clickgym" in self.config
            else _of_frame(frame)[2]
        )
        order = {"agents": (agents, "agent"), "envs": (envs, "env")}
        there = {key: set(frame[column].unique()) for key, (_, column) in order.items()}
        config |= {
            key: [name for name in names if name in there[key]] for key, (names, _) in order.items()
        }
        return Results._of(frame, timings, config)

    def table(self, per_instance: bool = False) -> polars.DataFrame:
        """The final results of every agent, best first.

        Args:
            per_instance: rank agents on each instance, instead of on the means over instances.

        Returns:
            For each environment (and instance) a row per agent: ``place``, from 1; ``regret``, the
            mean over runs, with ``regret_ci95``, half the width of its 95 % interval (null for a
            single run); ``reward``, per session; the names ``tied_with`` it, of agents that
            `pairwise` does not tell apart from it (null for a single run); ``runs``; and, where
            they are known, ``ns_per_session``, the median time, and ``engine``. Where the regret of
            some environment is unknown there are ``total_reward`` and ``total_reward_ci95`` too:
            agents are ranked by it there, and regret is null.
        """
        by = words.columns_of(self._config(per_instance))
        rows, without = ranked(self.frame, self.timings, by), without_regret(self.frame)
        by_place = col("agent").sort_by("place").over(by, mapping_strategy="join")
        ties = by_place.list.gather(col("alike").fill_null([]) - 1)
        rows = rows.with_columns(tied_with=polars.when(col("runs") > 1).then(ties))
        rows = rows.sort(
            *(col(name).cast(polars.Enum(self.config[f"{name}s"])) for name in by), "place"
        )
        hidden = col("env").is_in(without)
        measures = ["regret", "regret_ci95"]
        if without:
            measures += ["total_reward", "total_reward_ci95"]
            rows = rows.with_columns(
                regret=polars.when(~hidden).then("regret"),
                regret_ci95=polars.when(~hidden).then("regret_ci95"),
                total_reward=polars.when(hidden).then(-col("regret")),
                total_reward_ci95=polars.when(hidden).then("regret_ci95"),
            )
        timed = ["ns_per_session", "engine"] if rows["engine"].null_count() < len(rows) else []
        return rows.select(*by, "place", "agent", *measures, "reward", "tied_with", "runs", *timed)

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        per_instance: bool = False,
        log: bool = True,
    ) -> Figure:
        """Draw the cumulative regret with its 95 % band, one panel for each environment, as the
        command line does.

        Args:
            path: a file to write it to, in the format of its suffix: ``.pdf`` (with fonts that a
                paper can embed), ``.svg``, ``.png``, or what else matplotlib writes; None writes
                none.
            per_instance: a panel for each instance, too, in place of means over them.
            log: both axes are logarithmic, or both linear.

        Returns:
            A matplotlib figure, to be saved or changed; a notebook shows it. It is none of
            pyplot's.

        Raises:
            ValueError: matplotlib writes no files of this suffix.
        """
        from .reports.figures import regret_figure, write_figure  # matplotlib is slow to load

        figure = regret_figure(self.frame, self._config(per_instance), log=log)
        if path is not None:
            write_figure(figure, check_path("path", path))
        return figure

    def pairwise(self, per_instance: bool = False) -> polars.DataFrame:
        """Test for each pair of agents whether their final regrets differ: Welch's t-test with
        Holm's correction.

        Args:
            per_instance: test on each instance, with a correction of its own, instead of on the
                means over instances.

        Returns:
            As `clickgym.core.statistics.pairwise`: better, worse, difference, p, differ.
        """
        return pairwise(self.frame, words.columns_of(self._config(per_instance)))

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a pandas frame, made without pyarrow.

        Raises:
            ImportError: pandas is not installed.
        """
        try:
            import pandas  # optional
        except ImportError:
            raise ImportError("pandas is not installed; install it: pip install pandas") from None
        frame = self.frame
        return pandas.DataFrame(
            {
                name: frame[name].to_list()
                if frame[name].dtype == polars.String
                else frame[name].to_numpy()
                for name in frame.columns
            }
        )

    def __repr__(self) -> str:
        config = self.config
        counts = [
            f"{len(config[key])} {word}{'s' * (len(config[key]) > 1)}"
            for key, word in (
                ("agents", "agent"),
                ("envs", "environment"),
                ("instances", "instance"),
            )
        ]
        runs = words.number_of_runs(config)
        return f"<Results: {', '.join(counts)}, {runs} run{'s' * (runs != '1')}, {config['horizon']:,} sessions>"

    @staticmethod
    def _cells(row: dict[str, Any], measure: str) -> list[str]:
        ties = "cannot tell" if row["tied_with"] is None else ", ".join(row["tied_with"]) or "–"
        total = regret_text(row[measure], row[f"{measure}_ci95"])
        reward = "–" if row["reward"] is None else f"{row['reward']:.4f}"
        time = [duration(row["ns_per_session"])] if "engine" in row else []
        return [row["env"], str(row["place"]), row["agent"], total, ties, reward, *time]

    def _config(self, per_instance: bool) -> dict[str, Any]:
        return {**self.config, "per_instance": check_flag("per_instance", per_instance)}


def _checked(what: str, names: Iterable[str] | None, existing: list[str]) -> list[str]:
    if names is None:
        return existing
    check_kind(f"{what}s", names, Iterable, "a name or names")
    names = [names] if isinstance(names, str) else names
    return list(dict.fromkeys(check_choice(what, name, existing) for name in names))


def _read(source: Any) -> tuple[polars.DataFrame, polars.DataFrame, dict[str, Any]]:
    """Frame, timings and configuration of whatever `Results` is made of."""
    if isinstance(source, Results):
        return source.frame, source.timings, source.config
    if isinstance(source, polars.DataFrame):
        return _of_frame(source)
    if not isinstance(source, str | os.PathLike):
        raise TypeError(
            f"results are {short(source)}; expected a results folder, a Parquet file or a polars frame of results"
        )
    return (
        _of_frame(_rows_of(Path(source)))
        if os.fspath(source).endswith(".parquet")
        else read_results(source)
    )


def _rows_of(path: Path) -> polars.DataFrame:
    """The rows of a Parquet file, with reward and clicks, which may be unknown."""
    with reading(path, "holds no results, or is damaged", "restore it from a backup"):
        check_file(path)
        frame = polars.read_parquet(path, memory_map=False)
    unknown_columns = {"reward": polars.Float64, "clicks": polars.Int64}
    lacking = [
        polars.lit(None, kind).alias(name)
        for name, kind in unknown_columns.items()
        if name not in frame.columns
    ]
    return frame.with_columns(*lacking)


def _of_frame(frame: polars.DataFrame) -> tuple[polars.DataFrame, polars.DataFrame, Part]:
    """A table that `sweep` made, its runs, of which nothing more is known, and what it says of its
    configuration.
    """
    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing or frame.is_empty():
        what = f"no column {missing[0]!r}" if missing else "no rows"
        raise ValueError(f"the table of results has {what}; expected the frame of a sweep")
    unique = {
        name: frame[name].unique(maintain_order=True).to_list()
        for name in ("env", "instance", "agent")
    }
    counts = frame.group_by("env", "instance", "agent").agg(col("run").n_unique())
    steps = frame["step"].unique().sort()
    unmeasured = zip(TIMED[4:], (polars.String, polars.Float64), strict=True)
    timings = frame.select(TIMED[:4]).unique(maintain_order=True)
    timings = timings.with_columns(polars.lit(None, kind).alias(name) for name, kind in unmeasured)
    config = {
        "envs": unique["env"],
        "instances": unique["instance"],
        "agents": unique["agent"],
        "horizon": steps[-1],
        "runs": counts["run"].max(),
        "fewest_runs": counts["run"].min(),
        "checkpoints": steps.to_list(),
        "pairs": [
            f"{env} {instance}"
            for env, instance in frame.select("env", "instance").unique().iter_rows()
        ],
    }
    return frame, timings, config
