"""Curves, intervals, verdicts and pages, shared by the scripts in this folder.

A script repeats one experiment of a paper, and defines these functions:

    play(options)        play the sweeps (`played`); return the rows of each to keep (`compact`)
    draw(results)        return the figure
    numbers(results)     optional: return the numbers that the paper prints (`Number`)
    statements(results)  optional: return sentences from the paper, and our tests (`Statement`)
    table(results)       optional: return a title and rows, with the header as the first row
    seen(results)        optional: yield sentences about other things that we saw

``results`` maps the name of each part to its `Curves`. The docstring of a script consists of a
title, the paper, and one or more paragraphs on how the script differs from the paper.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import polars
from polars import col

import clickgym
from clickgym.bench.result_files import read_results, write_results
from clickgym.core.statistics import CONFIDENCE, holm, p_value, t_quantile
from clickgym.core.text import markdown_table, markdown_text
from clickgym.envs import DEFAULT_INSTANCE, list_instances
from clickgym.runner.make import make_env
from clickgym.runner.sweep.seeds import run_seed

END = (0.99, 1.0)
"""The last hundredth of the horizon."""
LINEAR = 0.8
"""Regret counts as linear if its rate per session at the end is above this multiple of its mean
rate. For regret that grows as √n, the multiple is 0.5; for regret that grows as log n, it is 1 /
log n.
"""
SLACK = 1e-9
"""Regret below this value is rounding error."""
LEVEL = 1 - CONFIDENCE
PLACE = "examples/papers"

# ------------------------------------------------------------------------------------------ running


def shipped_queries() -> list[str]:
    """Return the names of the shipped real queries, beginning with the default instance."""
    names = [name for name in list_instances() if name.startswith("yandex-9")]
    return sorted(names, key=lambda name: name != DEFAULT_INSTANCE)


def checkpoints(horizon: int, windows: int = 20) -> np.ndarray:
    """Return the sessions at which to save totals: the ends of equal windows, some early sessions,
    and the ends of the spans that are tested.
    """
    equal = np.linspace(0, horizon, windows + 1)[1:]
    early = np.geomspace(1, horizon, 20)
    steps = np.concatenate([equal, early, [100, 0.01 * horizon, 0.99 * horizon]])
    return np.unique(np.clip(steps.round(), 1, horizon).astype(np.int64))


def played(
    options: Any,
    part: str,
    envs: Sequence[str],
    agents: Any,
    horizon: int,
    runs: int,
    instances: Sequence[Any],
    windows: int = 20,
    metrics: Sequence[str] = (),
) -> polars.DataFrame:
    """Play a part as a sweep in its own folder, and return the table; ``--runs`` sets the runs."""
    results = clickgym.sweep(
        envs,
        agents,
        horizon,
        options.runs or runs,
        instances=instances,
        metrics=metrics,
        checkpoints=checkpoints(horizon, windows),
        out=options.out / part,
    )
    return results.frame


def with_fact(
    table: polars.DataFrame,
    name: str,
    fact: Callable[[Any], float],
    envs: Iterable[str],
    instances: Iterable[Any],
) -> polars.DataFrame:
    """Return the table with one more column, which contains a function of each environment."""
    made: list[Any] = [(env, make_env(env, instance)) for env in envs for instance in instances]
    rows = [{"env": env, "instance": it.unwrapped.instance, name: fact(it)} for env, it in made]
    return table.join(polars.DataFrame(rows), on=["env", "instance"], how="left")


def first_sessions(
    envs: Sequence[str],
    agents: Sequence[str],
    horizon: int,
    told: int,
    runs: int,
    instances: Sequence[str],
    metrics: Sequence[str] = (),
) -> polars.DataFrame:
    """Play the first sessions of longer runs, and tell the agents the horizon of the longer runs.

    `clickgym.sweep` cannot do this, because it tells agents the horizon that it plays itself. The
    seeds are the same as in a sweep. The runs follow one another in one process.
    """
    frames = []
    for name, instance, agent, run in product(envs, instances, agents, range(runs)):
        env: Any = make_env(name, instance)
        labels = {"env": name, "instance": env.unwrapped.instance, "agent": agent, "run": run}
        seed = run_seed(0, labels["instance"], run)
        player = clickgym.make_agent(agent, env, horizon=told, seed=seed)
        steps = checkpoints(horizon)
        result = clickgym.run(player, env, horizon, seed=seed, checkpoints=steps, metrics=metrics)
        columns = [polars.lit(value).alias(column) for column, value in labels.items()]
        frames.append(result.to_frame().with_columns(columns))
    return polars.concat(frames).with_columns(col("run").cast(polars.Int64))


def compact(
    table: polars.DataFrame, ends: Sequence[float] = END, columns: Sequence[str] = ("regret",)
) -> polars.DataFrame:
    """Return only the rows that the figures and tests need.

    Rows without an instance contain the mean over all instances, for each run. Rows with an
    instance contain this instance's values at some fractions of the horizon (``ends``), or at all
    steps if ``ends`` is empty.
    """
    keys = ["env", "instance", "agent", "run", "step"]
    steps = table["step"].unique().sort().to_numpy()
    means = table.group_by("env", "agent", "run", "step", maintain_order=True).agg(
        col(*columns).mean()
    )
    if ends:
        kept = steps[np.searchsorted(steps, [round(end * steps[-1]) for end in ends])]
        table = table.filter(col("step").is_in(kept))
    both = polars.concat([means, table.select(*keys, *columns)], how="diagonal_relaxed")
    return both.select(*keys, col(*columns).cast(polars.Float32))


class Curves:
    """The cumulative values from one part of the results, as arrays.

    Attributes:
        steps: the checkpoints; the last checkpoint is the horizon.
        instances, agents: the names of the instances and agents, in the order of the table.
    """

    def __init__(self, table: polars.DataFrame) -> None:
        self.steps = table["step"].unique().sort().to_numpy()
        self.horizon, self.n_runs = int(self.steps[-1]), table["run"].n_unique()
        self.instances = table["instance"].drop_nulls().unique(maintain_order=True).to_list()
        self.agents = table["agent"].unique(maintain_order=True).to_list()
        in_order = col("instance").cast(polars.Enum(self.instances))
        rows = table.sort(in_order, "run")
        self._pairs = rows.partition_by("env", "agent", as_dict=True)

    def by_instance(
        self, env: str, agent: str, column: str = "regret", end: float = 1.0
    ) -> np.ndarray:
        """Return the values at a fraction (``end``) of the horizon, ``(instances, runs)``."""
        if end == 0:
            return np.zeros((len(self.instances), self.n_runs))
        step = int(self.steps[np.searchsorted(self.steps, round(end * self.horizon))])
        rows = self._pairs[env, agent].filter(col("instance").is_not_null(), step=step)
        return rows[column].to_numpy().astype(float).reshape(len(self.instances), -1)

    def values(self, env: str, agent: str, column: str = "regret", end: float = 1.0) -> np.ndarray:
        """Return each instance's mean over its runs; for a single instance, each run's value."""
        values = self.by_instance(env, agent, column, end)
        return values.mean(axis=1) if len(values) > 1 else values[0]

    def rate(
        self, env: str, agent: str, start: float, end: float, column: str = "regret"
    ) -> np.ndarray:
        """Return the increase of `values` per session between two fractions of the horizon."""
        length = round(end * self.horizon) - round(start * self.horizon)
        first, last = (self.values(env, agent, column, at) for at in (start, end))
        return (last - first) / length

    def by_run(
        self, env: str, agent: str, column: str = "regret", instance: str | None = None
    ) -> np.ndarray:
        """Return whole curves, ``(runs, steps)``, for one instance or averaged over all."""
        of = col("instance").is_null() if instance is None else col("instance") == instance
        rows = self._pairs[env, agent].filter(of)
        values = rows.sort("run", "step")[column].to_numpy().astype(float)
        return values.reshape(-1, len(self.steps))


# ---------------------------------------------------------------------------------------- intervals


class Estimate(NamedTuple):
    """A mean with its standard error and the degrees of freedom for Student's t distribution."""

    mean: float
    error: float
    freedom: int

    @property
    def half(self) -> float:
        """The half-width of the 95 % confidence interval."""
        return t_quantile(self.freedom) * self.error if math.isfinite(self.error) else math.inf

    def __str__(self) -> str:
        """Format both numbers as text. The mean has at least the last digit of the half-width,
        because 0.99977 ± 0.00023 must not become 1 ± 0.00023.
        """
        if self.half == math.inf:
            return f"{number(self.mean)} ± ?"
        digits = 3
        if self.half and 0 < abs(self.mean) < 1000:
            orders = [math.floor(math.log10(abs(each))) for each in (self.mean, self.half)]
            digits = max(digits, 2 + orders[0] - orders[1])
        return f"{number(self.mean, digits)} ± {number(self.half, 2)}"

    def within(self, low: float = -math.inf, high: float = math.inf, words: str = "") -> Finding:
        """Test whether the mean lies between two bounds. ``words`` precede the estimate in the
        result.
        """
        gaps = self.mean - low, high - self.mean
        measured = f"{words}, a gap of {self}" if words else str(self)
        return Finding(
            measured,
            max(self._level(gap > 0, gap) for gap in gaps),
            min(self._level(gap <= 0, gap) for gap in gaps),
        )

    def _level(self, holds: bool, gap: float) -> float:
        if not holds or not math.isfinite(self.error):
            return 1.0
        return p_value(gap, self.error, self.freedom)


def number(value: float, digits: int = 3) -> str:
    """Format a number with three significant digits, or with all digits of its integer part if
    these are more.
    """
    return f"{value:.{digits}g}" if abs(value) < 10**digits else f"{value:,.0f}"


def estimate(values: Any) -> Estimate:
    """Estimate the mean of independent values; a single value has an infinite standard error."""
    array = np.asarray(values, float)
    n = len(array)
    error = float(array.std(ddof=1)) / math.sqrt(n) if n > 1 else math.inf
    return Estimate(float(array.mean()), error, n - 1)


def ratio(above: np.ndarray, below: np.ndarray) -> Estimate:
    """Estimate the ratio of two means over the same units. The interval comes from a linear
    approximation of the ratio.
    """
    share = float(above.mean() / below.mean())
    return estimate((above - share * below) / below.mean())._replace(mean=share)


# ----------------------------------------------------------------------------------------- findings


class Finding(NamedTuple):
    """A description of what was measured, and two p-values: one for the claim that a statement
    holds, and one for the claim that the statement does not hold.
    """

    measured: str
    supports: float
    contradicts: float

    @property
    def verdict(self) -> str:
        """The verdict that this finding alone would give."""
        if self.contradicts <= LEVEL:
            return "not reproduced on these queries"
        return "reproduced" if self.supports <= LEVEL else "undecided"

    def only_supports(self) -> Finding:
        """Return the finding for a statement that our runs cannot contradict, because the paper may
        have used another version of the algorithm.
        """
        return self._replace(contradicts=1.0)


def certain(measured: str, holds: bool) -> Finding:
    """Return a finding in which chance plays no part."""
    return Finding(measured, float(not holds), float(holds))


def less(low: np.ndarray, high: np.ndarray) -> Finding:
    """Test whether one agent's values are below another's, by the differences within units."""
    words = f"{number(low.mean())} against {number(high.mean())}"
    return estimate(high - low).within(low=0.0, words=words)


def all_of(findings: Mapping[Any, Finding], words: str | None = None) -> Finding:
    """Combine findings for the claim that all of them hold. One contradicted finding, corrected for
    the number of findings, contradicts the claim.
    """
    listed = "; ".join(f"{name}: {finding.measured}" for name, finding in findings.items())
    contradicts = min(1.0, len(findings) * min(one.contradicts for one in findings.values()))
    supports = max(one.supports for one in findings.values())
    return Finding(listed if words is None else words, supports, contradicts)


def any_of(findings: Sequence[Finding], words: str) -> Finding:
    """Combine findings for the claim that at least one of them holds, corrected for the number of
    findings. Nothing contradicts this claim, because what our runs do not show may happen in
    others.
    """
    return Finding(words, min(1.0, len(findings) * min(one.supports for one in findings)), 1.0)


def in_readings(test: Callable[[str], Finding], agent: str = "CascadeKLUCB") -> Finding:
    """Test a statement with both readings of sessions with several clicks, because the papers do
    not say which reading they use.

    The statement holds if it holds in both readings, and is contradicted if both readings
    contradict it.
    """
    found = {"last_click": test(agent), "first_click": test(f"{agent}:feedback=first_click")}
    words = [f"{name} (alone {one.verdict}): {one.measured}" for name, one in found.items()]
    both = list(found.values())
    supports, contradicts = (max(one[place] for one in both) for place in (1, 2))
    return Finding("; ".join(words), supports, contradicts)


def above_share(happens: Any, bound: float) -> Finding:
    """Test whether something happens on more than a given fraction of the queries, with the exact
    binomial test, which is also valid for rare events.
    """
    from scipy.stats import binomtest  # slow to load

    n, count = np.size(happens), int(np.sum(happens))
    levels = [2 * binomtest(count, n, bound, side).pvalue for side in ("greater", "less")]
    low, high = (100 * end for end in binomtest(count, n).proportion_ci(CONFIDENCE))
    words = f"{count} of {n} queries ({low:.1f} to {high:.1f} %)"
    return Finding(words, *(min(1.0, float(level)) for level in levels))


class Number(NamedTuple):
    """A number that a paper prints, with its standard error, and our values. ``is_comparable`` says
    whether our users could be the paper's users; if not, the difference gets no interval.
    """

    what: str
    paper: float
    values: np.ndarray
    error: float = 0.0
    is_comparable: bool = True

    def cells(self) -> list[str]:
        """Return the row of the page's table for this number."""
        ours, gap = estimate(self.values), float(np.mean(self.values)) - self.paper
        half = math.hypot(ours.half, t_quantile(10**6) * self.error)
        difference = f"{'-' if gap < 0 else '+'}{number(abs(gap))}"
        difference += f" ± {number(half, 2)}" if self.is_comparable else ""
        printed = f"{self.paper:,g}" + (f" ± {self.error:g}" if self.error else "")
        return [self.what, printed, str(ours), difference]


class Statement(NamedTuple):
    """A sentence from a paper: its words, its place in the paper, our test, and our finding. The
    test says what we measure, and when the sentence counts as reproduced. If we do not test the
    sentence, ``rule`` gives the reason.
    """

    quote: str
    place: str
    rule: str
    finding: Finding | str = ""


def verdicts(statements: Sequence[Statement]) -> list[tuple[str, str]]:
    """Return the measurement and the verdict for each statement, corrected for multiple testing.

    Args:
        statements: all statements of an experiment. Because of Holm's procedure, the probability
            is at most 5 % that any verdict other than "undecided" is wrong.
    """
    found = [one.finding for one in statements if isinstance(one.finding, Finding)]
    levels = iter(holm([min(one.supports, one.contradicts) for one in found]))
    tested, judged = iter(found), []
    for statement in statements:
        if isinstance(statement.finding, str):
            judged.append((statement.finding, "not tested"))
            continue
        finding, level = next(tested), next(levels)
        measured, verdict = finding.measured, finding.verdict
        if level > LEVEL and verdict != "undecided":
            measured += f"; {verdict} before the correction for the number of statements"
            verdict = "undecided"
        judged.append((measured, verdict))
    return judged


# ------------------------------------------------------------------------------- results and pages


def save(path: Path, parts: Mapping[str, polars.DataFrame], made: Mapping[str, Any]) -> None:
    """Write the compact tables of all parts to a file, with their command and versions."""
    tables = [table.with_columns(part=polars.lit(part)) for part, table in parts.items()]
    write_results(path, polars.concat(tables, how="diagonal"), made)


Played = tuple[dict[str, Curves], dict[str, Any]]
"""The curves of each part, and the command and versions that produced them."""


def read(path: Path) -> Played:
    """Read the curves of each part from a file, and the command and versions behind them."""
    table, made = read_results(path)
    return {part: Curves(table.filter(part=part)) for part in made["versions"]}, made


def shipped_file(script: ModuleType, folder: str = "results") -> Path:
    """Return the file with an experiment's shipped results. Some experiments share a file."""
    path = Path(script.__file__ or "")
    return path.parent / folder / f"{getattr(script, 'RESULTS', path.stem)}.parquet"


@cache
def shipped(script: ModuleType) -> tuple[Played, Played | None]:
    """Read the shipped results of an experiment. If we are not allowed to ship the queries behind
    these results, also read the results of the same experiment on the shipped queries.
    """
    repeated = shipped_file(script, "results/shipped_queries")
    return read(shipped_file(script)), read(repeated) if repeated.exists() else None


def page(
    script: ModuleType, played: Played, repeated: Played | None = None, has_picture: bool = True
) -> str:
    """Return the page of an experiment in Markdown. If the number of runs or sessions differs from
    the full experiment, the page is only a first look: it has a figure and a table, but compares
    nothing with the paper.

    Args:
        script: the experiment's module.
        played: the results that decide the verdicts, with the command and versions behind them.
        repeated: the results on the shipped queries, which get an extra column.
        has_picture: whether the figure is in the folder of the page.
    """
    results, made = played
    name, full = Path(script.__file__ or "").stem, made["full"]
    title, paper, *notes = (script.__doc__ or "").strip().split("\n\n")
    lines = [f"# {' '.join(title.split()).removesuffix('.')}", "", paper, ""]
    if not full:
        lines += [
            "This page is a first look: the number of runs or sessions differs from the full "
            "experiment, so the page tests no sentence of the paper.",
            "",
        ]
    said = script.statements(results) if full and hasattr(script, "statements") else []
    judged = list(zip(said, verdicts(said), strict=True))
    if full and hasattr(script, "numbers"):
        printed = script.numbers(results)
        rows = [["number", "the paper", "ours", "difference"]]
        rows += [[markdown_text(cell) for cell in one.cells()] for one in printed]
        if repeated:
            again = script.numbers(repeated[0])
            _add_column(rows, [str(estimate(one.values)) for one in again])
        about = (
            "*Difference* is our number minus the paper's. In our numbers and in the differences, "
            "± gives the half-width of a 95 % confidence interval"
        )
        if any(one.error for one in printed):
            about += "; in the paper's numbers, we take it to give a standard error"
        about += "."
        if not all(one.is_comparable for one in printed):
            about += (
                " Differences without ± have no interval, because our users differ too much from "
                "the paper's users."
            )
        lines += ["## The paper's numbers beside ours", "", about, "", *markdown_table(rows), ""]
    picture = f"![{name}]({name}.png)" if has_picture else f"    python {PLACE}/{name}.py --shipped"
    lines += ["## Figure", "", picture, ""]
    if hasattr(script, "table"):
        heading, cells = script.table(results)
        lines += [f"{heading}:", "", *markdown_table(cells), ""]
    if judged:
        rows = [["the paper's words", "where", "our test", "measured", "verdict"]]
        for one, (measured, verdict) in judged:
            cells = [f"“{one.quote}”", one.place, one.rule, measured]
            rows.append([*map(markdown_text, cells), f"**{verdict}**"])
        if repeated:
            found = [one.finding for one in script.statements(repeated[0])]
            cells = [one.measured if isinstance(one, Finding) else "" for one in found]
            if any(cells):
                _add_column(rows, cells)
        about = (
            "Each row quotes the paper, says when we count the sentence as reproduced (or why we "
            "do not test it), and gives our measurement and the verdict. For the terms in the "
            "table, see [Tests of statements]"
            "(https://github.com/clickgym/clickgym/blob/main/docs/studies.md#tests-of-statements)."
        )
        lines += ["## What the paper says", "", about, "", *markdown_table(rows), ""]
    lines += ["## What differs here", "", "\n\n".join(notes), ""]
    if full and hasattr(script, "seen"):
        lines += ["## What we also saw", "", *(f"- {one}" for one in script.seen(results)), ""]
        if repeated:
            lines += ["On the 16 shipped queries:", ""]
            lines += [*(f"- {one}" for one in script.seen(repeated[0])), ""]
    lines += ["## What was played", ""]
    rows = [["part", "instances", "runs", "sessions", "clickgym"], *_parts(played)]
    if repeated:
        lines += [
            f"`{repeated[1]['command']}` plays the 16 shipped queries, and gives the numbers on "
            "this page that are marked with *shipped queries*. All other numbers, and all "
            "verdicts, are about published queries that we are not allowed to ship. This command "
            "plays the published queries:",
            "",
        ]
        rows += [[f"{part}, shipped queries", *cells] for part, *cells in _parts(repeated)]
    about = (
        "For each part of the experiment, this table gives the number of instances, the runs per "
        "agent and instance, the sessions per run, and the version of clickgym:"
    )
    lines += [f"`{made['command']}`", "", about, "", *markdown_table(rows), ""]
    return "\n".join(lines)


def _parts(played: Played) -> Iterator[list[str]]:
    """Yield a row for each part: its name, its size, and the version that played it."""
    results, made = played
    for part, curves in results.items():
        counts = [len(curves.instances), curves.n_runs, curves.horizon]
        yield [part, *(f"{count:,}" for count in counts), made["versions"][part]]


def _add_column(rows: list[list[str]], cells: Sequence[str]) -> None:
    """Add a column to a table: what was measured on the shipped queries."""
    for row, cell in zip(rows, ["on the 16 shipped queries", *cells], strict=True):
        row.append(markdown_text(cell))


def main(script: ModuleType) -> None:
    """Run the command of a script: play its experiment, and write the results, page and figure."""
    name = Path(script.__file__ or "").stem
    title, paper, *_ = (script.__doc__ or "").split("\n\n")
    parser = argparse.ArgumentParser(
        description=f"{title} {paper}",
        epilog="With --runs or --horizon, the page is only a first look, without verdicts.",
    )
    parser.add_argument("--runs", type=int, metavar="N", help="runs per agent and query")
    parser.add_argument("--horizon", type=float, metavar="T", help="sessions in the longest run")
    parser.add_argument(
        "--queries",
        nargs="+",
        metavar="NAME",
        help="instances: names, families or JSON files; by default, the 16 shipped queries",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help=f"folder for the results; the same command continues a stopped one; by default, "
        f"results/{name}, or results/shipped with --shipped",
    )
    parser.add_argument(
        "--shipped", action="store_true", help="show our results instead of playing"
    )
    options = parser.parse_args()
    options.horizon = options.horizon and int(options.horizon)
    options.queries = options.queries or shipped_queries()
    options.out = options.out or Path("results") / ("shipped" if options.shipped else name)
    options.out.mkdir(parents=True, exist_ok=True)
    if options.shipped:
        played, repeated = shipped(script)
    else:
        file = options.out / f"{name}.parquet"
        parts = script.play(options)
        versions = dict.fromkeys(parts, clickgym.__version__)
        made = {"command": " ".join([f"python {PLACE}/{name}.py", *sys.argv[1:]])}
        full = options.horizon is None and options.runs is None
        save(file, parts, {**made, "full": full, "versions": versions})
        played, repeated = read(file), None
    text = page(script, played, repeated)
    (options.out / f"{name}.md").write_text(text, encoding="utf-8")
    script.draw(played[0]).savefig(options.out / f"{name}.png", dpi=150)
    print(text)
    print(f"The page and the figure are in {options.out}", file=sys.stderr)
