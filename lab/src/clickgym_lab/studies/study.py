"""Studies: what is swept, at which scale, and what is written about it."""

from __future__ import annotations

import math
import os
import re
import shlex
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import cleandoc
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import numpy as np
import polars
from numpy.typing import ArrayLike, NDArray
from polars import col

import clickgym
from clickgym.core.files import make_folder
from clickgym.envs import DEFAULT_INSTANCE, Instance, list_instances, load_instance
from clickgym.runner.config import Trial, provenance, run_seed
from clickgym.runner.make import make_env

from ..results import read_results, write_results
from .claims import Curves, Judged, Number, Results, Statement, judge

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST_QUERIES, LEAST_RUNS, LEAST_HORIZON = 4, 4, 10_000
"""A scale reduces no study below these."""
ENDS = (0.2, 0.4, 0.8, 0.99, 1.0)
"""The fractions of the horizon at which the values of each instance are kept."""
LAST_ENDS = ENDS[-2:]
"""Those of studies that have no statement about the growth of regret."""
KEYS = ("env", "instance", "agent", "run", "step")

Table = tuple[str, Sequence[Sequence[str]]]
"""A title, and rows of which the first is the header."""
Names = Sequence[str]
Instances = Sequence[str | Instance]


@dataclass(frozen=True)
class Sweep:
    """Every agent in every environment, as data: what runs, what a replay runs, and what is kept.

    Attributes:
        name: of its part of the results; studies that sweep the same share its folder.
        envs, metrics: as in `clickgym.sweep`.
        agents: as in `clickgym.sweep`, or a function of the names of the queries.
        horizon, runs: of the paper.
        instances: as in `clickgym.sweep`, or a function of the names of the queries.
        queries: how many, if instances or agents are functions; fewer at a smaller scale.
        windows: equal windows whose ends are checkpoints.
        ends: fractions of the horizon at which the values of each instance are kept.
        whole: keep whole curves of each instance.
        facts: functions of an environment, whose values become columns.
        scaled: whether a scale reduces horizon and runs.
        least_horizon, least_runs: below them the experiment shows nothing.
        told: the horizon that agents are told, if they play only its beginning. Such a sweep is
            played one run after another.
        measure: a function of the names of the queries, which returns what a trained agent is
            worth after its last session, or None: the column ``trained``. Such a sweep is played
            one run after another, too.
    """

    name: str
    envs: Sequence[str]
    agents: Names | Callable[[Names], Names]
    horizon: int
    runs: int
    instances: Instances | Callable[[Names], Iterable[str | Instance]] = list
    queries: int = 0
    metrics: Sequence[str] = ()
    windows: int = 20
    ends: Sequence[float] = ENDS
    whole: bool = False
    facts: Mapping[str, Callable[[Any], float]] = field(default_factory=dict)
    scaled: bool = True
    least_horizon: int = LEAST_HORIZON
    least_runs: int = LEAST_RUNS
    told: int = 0
    measure: Callable[[Names], Callable[[Any], float | None]] | None = None


@dataclass(frozen=True, eq=False)
class Study:
    """An experiment of a paper, or of ours, as its file has it.

    Attributes:
        name: of the file, with hyphens.
        title: what it shows, in a line: the first paragraph of the docstring.
        paper: where it is from: the second.
        notes: what differs here, or what it is: the rest.
        sweeps: what is run, ``SWEEPS``.
        draw: the figure.
        numbers: that the paper prints, ``NUMBERS``.
        statements: sentences of the paper, ``STATEMENTS``.
        table: numbers of ours: a title, and rows of which the first is the header.
        seen: sentences of ours about what was measured, which nobody judges.
        columns: of which curves are kept, ``COLUMNS``.
        typed: what the command line takes: the name, or the file of a study of one's own.
    """

    name: str
    title: str
    paper: str
    notes: str
    sweeps: Sequence[Sweep]
    draw: Callable[[Results], Figure]
    numbers: Sequence[Number]
    statements: Sequence[Statement]
    table: Callable[[Results], Table] | None
    seen: Callable[[Results], Iterable[str]] | None
    columns: Sequence[str]
    typed: str

    @property
    def is_ours(self) -> bool:
        """Whether it repeats no paper."""
        return self.paper.startswith(("Ours", "Users of"))


@contextmanager
def naming_its_line(file: str) -> Iterator[None]:
    """Errors of a study of one's own name its file and line."""
    try:
        yield
    except SyntaxError as error:
        raise ValueError(f"{error.filename}, line {error.lineno}: {error.msg}") from None
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == file]
        if not lines:  # the file cannot be read, or it is a study of the package
            raise
        kind = type(error).__name__
        raise ValueError(f"{file}, line {lines[-1]}: {kind}: {error}") from error


def study_of(file: str, names: Mapping[str, Any]) -> Study:
    """The study in a file, by what is defined there.

    Raises:
        ValueError: something is missing.
    """
    words = cleandoc(names["__doc__"] or "").split("\n\n")
    missing = [name for name in ("SWEEPS", "draw") if name not in names]
    if missing or len(words) < 2:
        what = ", ".join(missing) or "docstring of a title, a paper and notes"
        raise ValueError(f"{file} has no {what}; expected a study")
    title, paper, *notes = (" ".join(part.split("\n")) for part in words)
    name = Path(file).stem.replace("_", "-")
    return Study(
        name,
        title.removesuffix("."),
        paper.removesuffix("."),
        "\n\n".join(notes),
        names["SWEEPS"],
        names["draw"],
        names.get("NUMBERS", ()),
        names.get("STATEMENTS", ()),
        names.get("table"),
        names.get("seen"),
        names.get("COLUMNS", ("regret",)),
        Path(file).name if file.endswith(".py") else name,
    )


@dataclass
class Setting:
    """Where and at which scale the sweeps of a study run.

    A scale multiplies the horizon, and the numbers of instances and runs by its fourth root: a
    hundredth of the horizon takes about a third of both.

    Attributes:
        out: the folder of the results, with a folder for each sweep; interrupted runs resume.
        scale: in (0, 1].
        runs: of each pair, in place of those of the study.
        seed, n_jobs: as in `clickgym.sweep`.
        names: of the instances that queries are taken from; None takes the shipped queries.
        again: as in `clickgym.sweep`; each sweep takes the labels that it has.
    """

    out: Path
    scale: float = 0.01
    runs: int | None = None
    seed: int = 0
    n_jobs: int = -1
    names: Names | None = None
    again: Names = ()

    def queries(self, count: int) -> list[str]:
        """The names of so many queries, fewer at a smaller scale."""
        names = shipped_queries() if self.names is None else self.names
        return list(names[: self._reduced(count, LEAST_QUERIES)])

    def taken(self, sweep: Sweep) -> tuple[list[str | Instance], list[str]]:
        """The instances and the agents of a sweep."""
        names, instances, agents = self.queries(sweep.queries), sweep.instances, sweep.agents
        return (
            list(instances(names) if callable(instances) else instances),
            list(agents(names) if callable(agents) else agents),
        )

    def run(self, sweep: Sweep, columns: Sequence[str]) -> tuple[polars.DataFrame, dict[str, Any]]:
        """Run a sweep.

        Args:
            sweep: what is run.
            columns: of which curves are kept.

        Returns:
            What statements, numbers and figures need of its results, and what made them.
        """
        instances, agents = self.taken(sweep)
        names = [load_instance(instance).name for instance in instances]
        length, runs = sweep.horizon, sweep.runs
        if sweep.scaled:
            length = min(length, max(round(length * self.scale), sweep.least_horizon))
            runs = self._reduced(runs, sweep.least_runs)
        runs = self.runs or runs
        steps, facts = checkpoints(length, sweep.windows), list(sweep.facts)
        if sweep.measure is None and not sweep.told:
            labels = {*sweep.envs, *agents, *names}
            results = clickgym.sweep(
                sweep.envs,
                agents,
                length,
                runs,
                seed=self.seed,
                out=self.out / sweep.name,
                instances=instances,
                n_jobs=self.n_jobs,
                checkpoints=steps,
                metrics=sweep.metrics,
                again=[label for label in self.again if label in labels],
            )
            table, made = results.frame, results.config
        else:
            table, made = self._one_by_one(sweep, length, runs, steps), provenance()
            facts += ["trained"] * (sweep.measure is not None)
        table = with_facts(table, sweep.envs, instances, sweep.facts)
        return compact(table, columns, facts, sweep.ends, sweep.whole), {
            "full": length == sweep.horizon,
            "instances": [portable(name) for name in names],
            "clickgym": clickgym.__version__,
            **{key: made[key] for key in ("commit", "made")},
            "seed": self.seed,
            "runs": runs,
        }

    def _one_by_one(
        self, sweep: Sweep, horizon: int, runs: int, steps: NDArray[np.int64]
    ) -> polars.DataFrame:
        """Play the runs one after another, and measure each agent after its last session."""
        measure = sweep.measure(self.queries(sweep.queries)) if sweep.measure else None
        (instances, agents), horizon = self.taken(sweep), sweep.told or horizon
        folder, frames = self.out / sweep.name, []
        make_folder(folder)
        for run, env, instance, spec in product(range(runs), sweep.envs, instances, agents):
            name = f"{env} {load_instance(instance).name} {label_of(spec)} {run}"
            file = folder / f"{quote(name, safe='')}.parquet"
            if not file.exists():
                table, agent = play(sweep, env, instance, spec, run, self.seed, horizon, steps)
                if measure is not None:
                    table = table.with_columns(trained=polars.lit(measure(agent), polars.Float64))
                write_results(file, table, {})
            frames.append(read_results(file)[0])
        return polars.concat(frames).with_columns(col("run").cast(polars.Int64))

    def _reduced(self, count: int, least: int) -> int:
        return min(count, max(least, math.ceil(count * self.scale**0.25)))


def label_of(spec: str) -> str:
    """The label of an agent, which stands before ``=`` for an agent of the lab.

    Example:
        >>> label_of("Mine=clickgym_lab.studies.oltr:Shuffled"), label_of("TopRank:delta=0.1")
        ('Mine', 'TopRank:delta=0.1')
    """
    return spec.partition("=clickgym_lab")[0]


def play(
    sweep: Sweep,
    env_spec: str,
    instance: str | Instance,
    spec: str,
    run: int,
    seed: int,
    horizon: int,
    steps: ArrayLike,
) -> tuple[polars.DataFrame, Any]:
    """One run of a sweep, with the numbers of `clickgym.sweep`.

    Args:
        sweep: with metrics.
        env_spec, instance, spec, run: the environment, the agent and the number of the run.
        seed: of the whole sweep.
        horizon: as agents are told.
        steps: the checkpoints, of which the last ends the run.

    Returns:
        The curves, and the agent after its last session.
    """
    env = make_env(env_spec, instance)
    trial = Trial(env_spec, env.unwrapped.instance, label_of(spec), run)  # type: ignore[attr-defined]
    own_seed = run_seed(seed, trial.instance, run)
    maker = spec.removeprefix(f"{trial.agent}=")
    agent = clickgym.make_agent(maker, env, horizon=horizon, seed=own_seed)
    result = clickgym.run(
        agent,
        env,
        int(np.max(steps)),
        seed=own_seed,
        checkpoints=steps,
        metrics=sweep.metrics,
    )
    labels = {name: polars.lit(part) for name, part in trial._asdict().items()}
    return result.to_frame().with_columns(**labels), agent


def shipped_queries() -> list[str]:
    """The real queries of the package, the default instance first."""
    names = [name for name in list_instances() if name.startswith("yandex-9")]
    return sorted(names, key=lambda name: name != DEFAULT_INSTANCE)


def checkpoints(horizon: int, windows: int) -> NDArray[np.int64]:
    """The ends of equal windows, some earlier steps, the 100th session, to which papers count, and
    0.01 and 0.99 of the horizon.
    """
    equal = np.linspace(0, horizon, windows + 1)[1:]
    early = np.geomspace(1, horizon, 20)
    steps = np.concatenate([equal, early, [100, 0.01 * horizon, 0.99 * horizon]])
    return np.unique(np.clip(steps.round(), 1, horizon).astype(np.int64))


def compact(
    table: polars.DataFrame,
    columns: Sequence[str],
    facts: Sequence[str] = (),
    ends: Sequence[float] = ENDS,
    whole: bool = False,
) -> polars.DataFrame:
    """A table of results without what no statement needs.

    Args:
        table: as `clickgym.sweep` returns it; cumulative values.
        columns: of which curves are kept.
        facts: further columns, constant in each instance.
        ends: fractions of the horizon at which the values of each instance are kept.
        whole: keep whole curves of each instance.

    Returns:
        Rows without an instance, the means over the instances; then rows of each instance, at the
        first steps from these fractions on, or at all steps.
    """
    pairs = ["env", "agent", "run", "step"]
    means = table.group_by(pairs, maintain_order=True).agg(col(*columns).mean())
    steps = table["step"].unique().sort().to_numpy()
    kept = steps[np.searchsorted(steps, [round(fraction * steps[-1]) for fraction in ends])]
    rows = table if whole else table.filter(col("step").is_in(kept))
    names = dict.fromkeys(["regret", *columns, *facts])
    both = polars.concat([means, rows.select(*KEYS, *names)], how="diagonal_relaxed")
    return both.select(*KEYS, col(*names).cast(polars.Float32))


def portable(instance: str) -> str:
    """The name of an instance without the folder of its file.

    Example:
        >>> portable("li2019-switching:query=queries/yandex60-401.json,seed=3")
        'li2019-switching:query=yandex60-401.json,seed=3'
    """
    return re.sub(r"[^=,:]*/(?=[^/=,:]*\.json)", "", instance)


def with_facts(
    table: polars.DataFrame,
    envs: Sequence[str],
    instances: Sequence[str | Instance],
    facts: Mapping[str, Callable[[Any], float]],
) -> polars.DataFrame:
    """The table with the facts of each environment, and instances by their portable names."""
    rows = []
    for spec in envs:
        for instance in instances:
            env: Any = make_env(spec, instance)
            values = {name: fact(env) for name, fact in facts.items()}
            rows.append({"env": spec, "instance": env.unwrapped.instance, **values})
    both = table.join(polars.DataFrame(rows), on=["env", "instance"], how="left")
    names = {name: portable(name) for name in both["instance"].unique()}
    return both.with_columns(col("instance").replace(names))


# ------------------------------------------------------------------------------------------ results


class Measured(NamedTuple):
    """A study as it was measured on some queries, and judged.

    Attributes:
        study: the study.
        name: of its file, without its suffix; of its figure.
        label: of the queries.
        results: the curves of its sweeps.
        made: what made each of them.
        command: which made them.
        judged: its statements.
    """

    study: Study
    name: str
    label: str
    results: Results
    made: Mapping[str, Mapping[str, Any]]
    command: str
    judged: list[Judged]

    @property
    def n_queries(self) -> int:
        """The number of queries, or of other instances; lists of the same query count as one."""
        parts = (curves.instances for curves in self.results.values())
        return max(len({name.rpartition("-list")[0] or name for name in part}) for part in parts)

    @property
    def origin(self) -> str:
        """The command with version and commit, as figures have it in their metadata."""
        first = next(iter(self.made.values()))
        return f"clickgym {first['clickgym']} ({first['commit']}): {self.command}"


def run_study(study: Study, setting: Setting) -> Measured:
    """Run a study, and write what is kept of its curves to ``NAME.parquet`` in the folder.

    Args:
        study: the study.
        setting: at which scale, and where results are written.
    """
    if not 0 < setting.scale <= 1:
        raise ValueError(f"scale is {setting.scale:g}; expected a number in (0, 1]")
    for sweep in study.sweeps:
        setting.taken(sweep)  # they may follow from files, which are refused before any work
    make_folder(setting.out)
    tables, parts = [], {}
    for sweep in study.sweeps:
        table, parts[sweep.name] = setting.run(sweep, study.columns)
        tables.append(table.with_columns(part=polars.lit(sweep.name)))
    options = [] if setting.runs is None else ["--runs", str(setting.runs)]
    queries = ["--instances", *setting.names] if setting.names else []
    scale = ["--scale", f"{setting.scale:g}"]
    words = ["clickgym", "study", study.typed, *queries, *scale, *options]
    made = {"command": shlex.join([*words, "--seed", str(setting.seed)]), "parts": parts}
    path = setting.out / f"{study.name}.parquet"
    write_results(path, polars.concat(tables, how="diagonal"), made)
    return read_study(study, path)


def read_study(study: Study, path: Path) -> Measured:
    """Judge a study by a file that `run_study` wrote.

    Args:
        study: the study.
        path: ``NAME.parquet``, or ``NAME.LABEL.parquet`` on the queries of a label.
    """
    table, made = read_results(path)
    parts = made["parts"]
    results = Results(
        {name: Curves(table.filter(part=name), part["full"]) for name, part in parts.items()}
    )
    judged = judge(study.statements, results, all(part["full"] for part in parts.values()))
    label = path.stem.removeprefix(study.name).removeprefix(".")
    return Measured(study, path.stem, label, results, parts, made["command"], judged)


def read_all(study: Study, folder: str | os.PathLike[str]) -> list[Measured]:
    """The results of a study in a folder, on every set of queries. The largest, which decides,
    comes first.

    Raises:
        ValueError: there is nothing.
    """
    paths = sorted(Path(folder).glob(f"{study.name}.parquet"))
    paths += sorted(Path(folder).glob(f"{study.name}.*.parquet"))
    if not paths:
        raise ValueError(f"{folder} has no {study.name}.parquet")
    found = [read_study(study, path) for path in paths]
    return sorted(found, key=lambda one: (one.n_queries, one.label), reverse=True)


def main() -> None:
    """Run a file of a study as a program: ``clickgym study FILE`` with the options."""
    from clickgym.command_line import main as command

    failed = command(["study", *sys.argv])
    if failed:
        raise SystemExit(failed)
