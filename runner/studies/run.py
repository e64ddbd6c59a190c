"""Run studies at a scale, judge the papers' statements, and write figure, table and findings."""

from __future__ import annotations

import json
import math
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import joblib
import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

from ...envs import list_instances, load_instance
from ...envs.checks import check_seed, unknown
from ...envs.files import make_folder, write_whole
from ...envs.instances import DEFAULT_INSTANCE
from ..formats import clock, markdown_table, markdown_text, one_line
from ..make import make_agent, make_env, parse_spec
from ..run import run
from ..sweep import Callback, sweep
from . import STUDIES
from .study import Curves, Evidence, Finding, PaperTable, Part, Statement

if TYPE_CHECKING:
    import polars

__all__ = ["Plan", "conclude", "judge", "plan", "project", "run_study", "with_facts", "words"]

Findings = list[tuple[Statement, Finding]]

LEAST_QUERIES = 4


@dataclass(frozen=True)
class Plan:
    """What is run of one part: its queries, instances, horizon and runs at the scale asked for."""

    part: Part
    queries: tuple[str, ...]
    horizon: int
    runs: int

    def instances(self, out: Path) -> list[str]:
        """The instances of the sweep; files, where it needs some, are written beside its folder."""
        if self.part.files is None:
            return self.names
        return self.part.files(self.names, out / f"{self.part.name}-instances")

    @property
    def names(self) -> list[str]:
        """The instances, before any file is made from them."""
        return list(self.queries) if self.part.instances is None else self.part.instances(self.queries)

    @property
    def checkpoints(self) -> NDArray[np.int64]:
        """Equal windows, the last hundredth, some earlier steps, and the 100th, which papers count to."""
        windows = np.linspace(0, self.horizon, self.part.windows + 1)[1:]
        steps = np.concatenate([windows, [0.99 * self.horizon], np.geomspace(1, self.horizon, 40), [100]])
        return np.unique(np.clip(steps.round(), 1, self.horizon).astype(np.int64))


def plan(names: Sequence[str], scale: float, queries: Sequence[str] | None = None) -> list[Plan]:
    """What studies need, a part that several share once.

    Horizons are multiplied by the scale, numbers of queries and of runs by its fourth root: a hundredth of the horizon takes
    about a third of both. No fewer than four queries and four runs are taken, unless the study has
    less in full, and nothing is reduced below what the part needs.

    Args:
        names: of `STUDIES`.
        scale: in ``(0, 1]``.
        queries: names or files of instances; None takes the shipped real queries.

    Raises:
        ValueError: on an unknown study, a bad scale, or an instance that does not serve an environment.

    Example:
        >>> [(part.horizon, part.runs, len(part.queries)) for part in plan(["bubble-fig1"], 0.01)]
        [(50000, 4, 16)]
    """
    if not isinstance(scale, (int, float)) or not 0 < scale <= 1:
        raise ValueError(f"scale is {scale!r}; expected a number in (0, 1]")
    if not names:
        raise ValueError("no study was named")
    for name in names:
        if name not in STUDIES:
            raise ValueError(unknown("study", name, STUDIES))
    if queries is None:
        shipped = [name for name in list_instances() if name.startswith("yandex-") and name != "yandex-like"]
        queries = sorted(shipped, key=lambda name: name != DEFAULT_INSTANCE)  # it comes first
    plans = []
    for part in {part.name: part for name in names for part in STUDIES[name].parts}.values():
        wanted = _reduced(part.queries, scale, LEAST_QUERIES)
        horizon = max(round(part.horizon * scale), part.least_horizon)
        plans.append(Plan(part, tuple(queries[:wanted]), horizon, _reduced(part.runs, scale, part.least_runs)))
        for query in plans[-1].queries:
            load_instance(query)
        for name in plans[-1].names:
            for env in part.envs:
                make_env(env, name)
    return plans


def _reduced(count: int, scale: float, least: int) -> int:
    return min(count, max(least, math.ceil(count * scale**0.25)))


def project(plans: Sequence[Plan], out: Path, sessions: int = 20_000) -> float:
    """The processor time of a plan, from short runs of every pair on the first instance.

    Args:
        plans: of `plan`.
        out: the folder of the results, for instances that are files.
        sessions: of each run, no more than its horizon.

    Returns:
        Seconds on one processor, without compilation.
    """
    seconds = 0.0
    for each in plans:
        instances, played = each.instances(out), min(sessions, each.horizon)
        for env_spec in each.part.envs:
            env = make_env(env_spec, instances[0])
            for agent_spec in each.part.agents:
                name, hyperparameters = parse_spec(agent_spec)
                agent = make_agent(name, env, horizon=each.horizon, seed=0, **hyperparameters)
                result = run(agent, env, played, seed=0, checkpoints=[played], metrics=each.part.metrics)
                seconds += result.seconds / played * each.horizon * each.runs * len(instances)
    return seconds


def run_study(
    names: Sequence[str],
    scale: float,
    out: str | os.PathLike[str],
    console: Console,
    *,
    queries: Sequence[str] | None = None,
    seed: int = 0,
    n_jobs: int = -1,
    callback: Callback | None = None,
) -> dict[str, Findings]:
    """Run studies, and write for each its figure (PNG, SVG) and its findings and table (Markdown, JSON).

    Every part is a sweep in a folder of its own, which goes on where it was when called again with the same arguments.

    Args:
        names, scale, queries: as in `plan`.
        out: the folder of the results; made if need be.
        console: where the plan and the findings are printed.
        seed, n_jobs: as in `sweep`.
        callback: is told of the progress.

    Returns:
        The statements of each study with what was found.

    Raises:
        ValueError, TypeError: on bad arguments, before any session is played.
    """
    check_seed(seed)
    plans = plan(names, scale, queries)
    out = Path(out)
    make_folder(out)
    for each in plans:
        console.print(words(each), highlight=False, soft_wrap=True)
    seconds = project(plans, out)
    workers = joblib.effective_n_jobs(n_jobs)
    console.print(
        f"projected: {clock(seconds / workers)} with {workers} workers, without compilation", highlight=False, soft_wrap=True
    )
    evidence: dict[str, Curves] = {}
    for each in plans:
        instances = each.instances(out)
        table = sweep(
            each.part.envs,
            each.part.agents,
            each.horizon,
            each.runs,
            seed=seed,
            out=out / each.part.name,
            instances=instances,
            n_jobs=n_jobs,
            checkpoints=each.checkpoints,
            metrics=each.part.metrics,
            callback=callback,
        )
        evidence[each.part.name] = Curves(with_facts(table, each.part, instances), each.part.horizon, instances)
    found = {}
    for name in names:
        own = {part.name: evidence[part.name] for part in STUDIES[name].parts}
        parts = [each for each in plans if each.part.name in own]
        found[name], numbers = conclude(name, parts, own, _command(name, scale, queries, seed), out)
        if numbers is not None:
            console.print(_as_printed(*numbers))
        console.print(_table(name, found[name]))
    files = ", ".join(f"{name}.{kind}" for name in names for kind in ("png", "svg", "md", "json"))
    console.print(f"Results in {out}: {files}", highlight=False, soft_wrap=True)
    return found


def with_facts(table: polars.DataFrame, part: Part, instances: Sequence[str]) -> polars.DataFrame:
    """The table of a part with a column for each of its facts."""
    import polars

    if not part.facts:
        return table
    rows = [
        {"env": env, "instance": load_instance(source).name, **{name: fact(env, source) for name, fact in part.facts.items()}}
        for env in part.envs
        for source in instances
    ]
    return table.join(polars.DataFrame(rows), on=["env", "instance"], how="left", maintain_order="left")


def judge(name: str, evidence: Evidence) -> Findings:
    """What the measured tables say of each statement of a study.

    Args:
        name: of `STUDIES`.
        evidence: the curves of each of its parts.
    """
    return [(statement, statement.find(evidence)) for statement in STUDIES[name].statements]


def conclude(
    name: str, plans: Sequence[Plan], evidence: Evidence, command: str, out: Path
) -> tuple[Findings, PaperTable | None]:
    """Judge a study by what was measured, and write its figure, its findings and its table.

    Args:
        name: of `STUDIES`.
        plans: of its parts.
        evidence: the curves of each of its parts.
        command: what made them, for whoever reads figure and findings.
        out: the folder of the results.

    Returns:
        The statements with what was found, and the paper's table where it has one.
    """
    from ..reports.figures import save_figure  # matplotlib is slow to load, and bad input should be named before

    study, found = STUDIES[name], judge(name, evidence)
    figure = study.figure(evidence)
    # A curve without the version and the command that made it cannot be checked.
    figure.supxlabel(_shortened(command), fontsize=6, color="0.4", x=0.01, ha="left")
    save_figure(figure, out / name)
    numbers = None if study.table is None else study.table(evidence)
    _write(name, plans, command, found, numbers, out)
    return found, numbers


# -------------------------------------------------------------------------------------------------------------- in words


def words(planned: Plan) -> str:
    """What is run, in one line."""
    part = planned.part
    queries = f"{len(planned.queries)} of {part.queries} queries, " if part.queries > 1 else ""
    return (
        f"{part.name}: {', '.join(part.envs)}; {', '.join(part.agents)}; {queries}"
        f"{planned.runs} of {part.runs} runs, {planned.horizon:,} of {part.horizon:,} sessions"
    )


def _table(name: str, found: Findings) -> Table:
    study = STUDIES[name]
    table = Table(title=f"{name}: {study.title} ({study.paper})", box=box.SIMPLE_HEAD, title_style="bold")
    for column in ("statement", "measured", "supported"):
        table.add_column(column)
    for statement, finding in found:
        table.add_row(statement.text, finding.measured.replace("; ", "\n"), finding.verdict)
    return table


def _as_printed(title: str, rows: Sequence[Sequence[str]]) -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD, title_style="bold")
    for column in rows[0]:
        table.add_column(column)
    for row in rows[1:]:
        table.add_row(*row)
    return table


def _in_markdown(rows: Sequence[Sequence[str]]) -> list[str]:
    return markdown_table([list(map(markdown_text, row)) for row in rows])


def _command(name: str, scale: float, queries: Sequence[str] | None, seed: int) -> str:
    words = ["clickgym", "study", name, *(["--instances", *queries] if queries else [])]
    return f"clickgym {version('clickgym')}: {shlex.join([*words, '--scale', f'{scale:g}', '--seed', str(seed)])}"


def _shortened(command: str) -> str:
    return command if len(command) <= 150 else f"{command[:150]}..."


def _write(name: str, plans: Sequence[Plan], command: str, found: Findings, numbers: PaperTable | None, out: Path) -> None:
    study = STUDIES[name]
    rows = [(s.text, s.rule, finding.measured, finding.verdict) for s, finding in found]
    lines = _in_markdown([("statement", "supported if", "measured", "supported"), *rows])
    if numbers is not None:
        lines += ["", f"{numbers[0]}:", "", *_in_markdown(numbers[1])]
    setting = [f"- {words(each)}" for each in plans]
    head = [f"# {name}: {study.title}", "", f"{study.paper}. {study.notes}"]
    text = [*head, "", *setting, "", f"    {one_line(command)}", "", *lines, ""]
    write_whole(out / f"{name}.md", "\n".join(text))
    content = {
        "study": name,
        "command": command,
        "parts": [
            {"name": each.part.name, "queries": each.queries, "horizon": each.horizon, "runs": each.runs} for each in plans
        ],
        "statements": [dict(zip(("statement", "rule", "measured", "supported"), row, strict=True)) for row in rows],
        **({} if numbers is None else {"table": [list(row) for row in numbers[1]]}),
    }
    text_json = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    write_whole(out / f"{name}.json", text_json)
