"""Studies: what is swept, at which scale, and what is written about it."""

from __future__ import annotations

import math
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import numpy as np
import polars
from numpy.typing import NDArray
from polars import col

import clickgym
from clickgym.core.files import make_folder
from clickgym.envs import DEFAULT_INSTANCE, Instance, list_instances, load_instance
from clickgym.runner import Trial, make_env, provenance

from ..results import read_results, replayed, write_results
from .evidence import Curves, Evidence, Judged, Statement, judge

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST_QUERIES, LEAST_RUNS, LEAST_HORIZON = 4, 4, 10_000
"""A scale reduces no study below these."""
ENDS = (0.2, 0.4, 0.8, 0.99, 1.0)
"""The fractions of the horizon at which the values of each instance are kept."""
KEYS = ("env", "instance", "agent", "run", "step")

Table = tuple[str, Sequence[Sequence[str]]]
"""A title, and rows of which the first is the header."""


@dataclass(frozen=True)
class Study:
    """An experiment of a paper, or of ours.

    Attributes:
        name: by which the command line knows it.
        title: what it shows, in a line.
        paper: where it is from.
        notes: where it differs from the paper.
        play: sweeps what is measured.
        statements: what the paper says about it, with what was measured.
        plot: the figure.
        table: the paper's table, where it has one.
        columns: of which curves are kept.
    """

    name: str
    title: str
    paper: str
    notes: str
    play: Callable[[Sweeps], object]
    statements: Callable[[Evidence], Iterable[Statement]]
    plot: Callable[[Evidence], Figure]
    table: Callable[[Evidence], Table] | None = None
    columns: tuple[str, ...] = ("regret",)


@dataclass
class Sweeps:
    """The sweeps of a study at a scale.

    A scale multiplies the horizon, and the numbers of instances and runs by its fourth root: a
    hundredth of the horizon takes about a third of both.

    Attributes:
        out: the folder of the results, with a folder for each sweep; interrupted runs resume.
        columns: as in `Study`.
        scale: in (0, 1].
        runs: of each pair, in place of those of the study.
        seed, n_jobs: as in `clickgym.sweep`.
        names: of the instances that queries are taken from; None takes the shipped queries.
        again: as in `clickgym.sweep`; each sweep takes the labels that it has.
        tables, made: of the sweeps so far, by name.
    """

    out: Path
    columns: Sequence[str]
    scale: float = 0.01
    runs: int | None = None
    seed: int = 0
    n_jobs: int = -1
    names: Sequence[str] | None = None
    again: Sequence[str] = ()
    tables: dict[str, polars.DataFrame] = field(default_factory=dict)
    made: dict[str, dict[str, Any]] = field(default_factory=dict)

    def queries(self, count: int) -> list[str]:
        """The names of so many queries, fewer at a smaller scale."""
        names = shipped_queries() if self.names is None else self.names
        return list(names[: self._reduced(count, LEAST_QUERIES)])

    def sweep(
        self,
        name: str,
        envs: Sequence[str],
        agents: Sequence[str],
        horizon: int,
        runs: int,
        *,
        instances: Sequence[str | Instance],
        metrics: Sequence[str] = (),
        windows: int = 20,
        ends: Sequence[float] = ENDS,
        whole: bool = False,
        facts: Mapping[str, Callable[[Any], float]] | None = None,
        least_horizon: int = LEAST_HORIZON,
        least_runs: int = LEAST_RUNS,
        delay: str | None = None,
    ) -> None:
        """Run every agent in every environment, and keep what the statements need.

        Args:
            name: of the sweep; studies that sweep the same share its folder.
            envs, agents, instances, metrics, delay: as in `clickgym.sweep`.
            horizon, runs: of the paper.
            windows: equal windows whose ends are checkpoints.
            ends: fractions of the horizon at which the values of each instance are kept.
            whole: keep whole curves of each instance.
            facts: functions of an environment, whose values become columns.
            least_horizon, least_runs: below them the experiment shows nothing.
        """
        length = min(horizon, max(round(horizon * self.scale), least_horizon))
        names = [load_instance(instance).name for instance in instances]
        labels = {*envs, *agents, *names}
        table = clickgym.sweep(
            envs,
            agents,
            length,
            self.runs or self._reduced(runs, least_runs),
            seed=self.seed,
            out=self.out / name,
            instances=instances,
            n_jobs=self.n_jobs,
            checkpoints=checkpoints(length, windows),
            metrics=metrics,
            delay=delay,
            again=[label for label in self.again if label in labels],
        )
        config = table.config
        frame = with_facts(table.frame, envs, instances, facts or {})
        self.tables[name] = compact(frame, self.columns, list(facts or {}), ends, whole)
        self.made[name] = {
            "full": length == horizon,
            "instances": [portable(instance) for instance in names],
            **{key: config[key] for key in ("clickgym", "commit", "made", "seed", "runs")},
        }

    def trained(
        self,
        name: str,
        env: str,
        agents: Sequence[str],
        horizon: int,
        runs: int,
        *,
        instances: Sequence[Instance],
        metrics: Sequence[str],
        measure: Callable[[Any], float | None],
    ) -> None:
        """As `sweep`, with what each agent is worth after its last session, in the column
        ``trained``; one run after another, and nothing is reduced by the scale.

        Args:
            name, env, agents, horizon, runs, instances, metrics: as in `sweep`; the label of an
                agent of the lab stands before ``=``.
            measure: of a trained agent; None where it has no value.
        """
        count, folder, steps = self.runs or runs, self.out / name, checkpoints(horizon, 20)
        frames = []
        make_folder(folder)
        for run, instance, spec in product(range(count), instances, agents):
            label = spec.partition("=clickgym_lab")[0]
            made = make_env(env, instance)
            trial = Trial(env, made.unwrapped.instance, label, run)  # type: ignore[attr-defined]
            file = folder / f"{quote(f'{instance.name} {label} {run}', safe='')}.parquet"
            if not file.exists():
                env_seed, agent_seed = trial.seeds(self.seed)
                maker = spec.removeprefix(f"{label}=")
                agent = clickgym.make_agent(maker, made, horizon=horizon, seed=agent_seed)
                result = clickgym.run(
                    agent, made, horizon, seed=env_seed, checkpoints=steps, metrics=metrics
                )
                value = polars.lit(measure(agent), polars.Float64).alias("trained")
                names = [polars.lit(part).alias(key) for key, part in trial._asdict().items()]
                write_results(file, result.to_frame().with_columns(*names, value), {})
            frames.append(read_results(file)[0])
        table = polars.concat(frames)
        self.tables[name] = compact(table, self.columns, ["trained"], whole=True)
        made_with = provenance()
        self.made[name] = {
            "full": True,
            "instances": [instance.name for instance in instances],
            "clickgym": clickgym.__version__,
            **{key: made_with[key] for key in ("commit", "made")},
            "seed": self.seed,
            "runs": count,
        }

    def _reduced(self, count: int, least: int) -> int:
        return min(count, max(least, math.ceil(count * self.scale**0.25)))


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
        label: of the queries.
        evidence: the curves of its sweeps.
        made: what made each of them.
        source: version with commit, and command, as figures have them in their metadata.
        judged: its statements.
        replayed: the version that replayed it, or ``""``.
    """

    study: Study
    label: str
    evidence: Evidence
    made: Mapping[str, Mapping[str, Any]]
    source: Mapping[str, Any]
    judged: list[Judged]
    replayed: str = ""

    @property
    def command(self) -> str:
        """The command with version and commit."""
        return f"clickgym {self.source['clickgym']}: {self.source['command']}"

    def plot(self) -> Figure:
        """Return the figure of the study."""
        return self.study.plot(self.evidence)


def run_study(study: Study, sweeps: Sweeps) -> Measured:
    """Play a study, and write what is kept of its curves to ``NAME.parquet`` in the folder.

    Args:
        study: the study.
        sweeps: at which scale, and where results are written.
    """
    if not 0 < sweeps.scale <= 1:
        raise ValueError(f"scale is {sweeps.scale:g}; expected a number in (0, 1]")
    make_folder(sweeps.out)
    study.play(sweeps)
    parts = [frame.with_columns(part=polars.lit(name)) for name, frame in sweeps.tables.items()]
    options = [] if sweeps.runs is None else ["--runs", str(sweeps.runs)]
    queries = ["--instances", *sweeps.names] if sweeps.names else []
    words = ["clickgym", "study", study.name, *queries, "--scale", f"{sweeps.scale:g}", *options]
    made = {"command": shlex.join([*words, "--seed", str(sweeps.seed)]), "parts": sweeps.made}
    path = sweeps.out / f"{study.name}.parquet"
    write_results(path, polars.concat(parts, how="diagonal"), made)
    return read_study(study, path)


def read_study(study: Study, path: Path) -> Measured:
    """Judge a study by a file that `run_study` wrote.

    Args:
        study: the study.
        path: ``NAME.parquet``, or ``NAME.LABEL.parquet`` on the queries of a label.
    """
    table, made = read_results(path)
    evidence = {}
    for name, part in made["parts"].items():
        rows = table.filter(part=name).drop("part")
        used = [column for column in rows.columns if not rows[column].is_null().all()]
        evidence[name] = Curves(rows.select(used), part["full"])
    full = all(part["full"] for part in made["parts"].values())
    judged = judge(list(study.statements(evidence)), full)
    first = next(iter(made["parts"].values()))
    version = f"{first['clickgym']} ({first['commit']})"
    source = {"clickgym": version, "command": made["command"]}
    label = path.stem.removeprefix(study.name).removeprefix(".")
    version = replayed(path.parent).get(path.stem, "")
    return Measured(study, label, evidence, made["parts"], source, judged, version)


def read_all(study: Study, folder: str | os.PathLike[str]) -> list[Measured]:
    """What a folder holds of a study, on every set of queries.

    Raises:
        ValueError: there is nothing.
    """
    paths = sorted(Path(folder).glob(f"{study.name}.parquet"))
    paths += sorted(Path(folder).glob(f"{study.name}.*.parquet"))
    if not paths:
        raise ValueError(f"{folder} has no {study.name}.parquet")
    return [read_study(study, path) for path in paths]


def main(*studies: Study) -> None:
    """Run a file of studies as a program: ``clickgym study`` with its names and the options."""
    from clickgym.command_line import main as command

    raise SystemExit(command(["study", *(study.name for study in studies), *sys.argv[1:]]))
