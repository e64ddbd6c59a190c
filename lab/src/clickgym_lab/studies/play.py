"""Run studies at a scale, or read what was run, judge the papers' statements, and write curves,
figure, table and findings.
"""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import joblib
import polars
from matplotlib.figure import Figure
from rich.console import Console
from rich.text import Text

from clickgym import Results, make_agent, run, sweep
from clickgym.core.checks import check_seed, unknown
from clickgym.core.files import make_folder, write_whole
from clickgym.core.formats import clock
from clickgym.core.terminal import Column, print_table, say
from clickgym.envs import DEFAULT_INSTANCE, list_instances, load_instance
from clickgym.runner import Callback, by_label, make_env, place_of
from clickgym.runner.reports import save_figure

from ..shipped import Shipped, compact, portable, read_shipped, write_shipped
from .page import figure_name, page, study_html
from .registry import STUDIES
from .rehearsal import rehearse
from .setting import Findings, Plan, Setting, by_setting
from .study import Part

LEAST_QUERIES = 4


def plan(names: Sequence[str], scale: float, queries: Sequence[str] | None = None) -> list[Plan]:
    """What studies need, a part that several share once.

    Horizons are multiplied by the scale, numbers of queries and of runs by its fourth root: a
    hundredth of the horizon takes about a third of both. No fewer than four queries and four runs
    are taken, unless the study has less in full, and nothing is reduced below what the part needs.

    Args:
        names: of `STUDIES`.
        scale: in ``(0, 1]``.
        queries: names or files of instances; None takes the shipped real queries.

    Raises:
        ValueError: on an unknown study, a bad scale, or an instance that does not serve an
            environment.

    Example:
        >>> [(part.horizon, part.runs, len(part.queries)) for part in plan(["bubble-fig1"], 0.01)]
        [(50000, 4, 16)]
    """
    if not isinstance(scale, (int, float)) or not 0 < scale <= 1:
        raise ValueError(f"scale is {scale!r}; expected a number in (0, 1]")
    if not names:
        raise ValueError("expected the name of at least one study")
    _check_names(names)
    queries = _shipped_queries() if queries is None else queries
    plans = []
    for part in {part.name: part for name in names for part in STUDIES[name].parts}.values():
        count = _reduced(part.queries, scale, LEAST_QUERIES)
        horizon = max(round(part.horizon * scale), part.least_horizon)
        plans.append(
            Plan(part, tuple(queries[:count]), horizon, _reduced(part.runs, scale, part.least_runs))
        )
        _check_instances(plans[-1])
    return plans


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        if name not in STUDIES:
            raise ValueError(unknown("study", name, STUDIES))


def _shipped_queries() -> list[str]:
    """The shipped real queries, the default instance first."""
    names = [
        name for name in list_instances() if name.startswith("yandex-") and name != "yandex-like"
    ]
    return sorted(names, key=lambda name: name != DEFAULT_INSTANCE)


def _check_instances(planned: Plan) -> None:
    """Load all queries, and make all environments once."""
    for query in planned.queries:
        load_instance(query)
    for name, env in product(planned.names, planned.part.envs):
        make_env(env, name)


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
        instances, length = each.instances(out), min(sessions, each.horizon)
        for env_spec in each.part.envs:
            env = make_env(env_spec, instances[0])
            for player in by_label("agent", each.part.agents).values():
                agent = make_agent(player, env, horizon=each.horizon, seed=0)
                result = run(
                    agent, env, length, seed=0, checkpoints=[length], metrics=each.part.metrics
                )
                seconds += result.seconds / length * each.horizon * each.runs * len(instances)
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
    pdf: bool = False,
) -> dict[str, Findings]:
    """Run studies, and write for each its curves (Parquet), figure (PNG, SVG), findings and table
    (HTML, Markdown, JSON).

    Every part is a sweep in a folder of its own, which goes on where it was when called again with
    the same arguments.

    Args:
        names, scale, queries: as in `plan`.
        out: the folder of the results; made if need be.
        console: where the plan and the findings are printed.
        seed, n_jobs: as in `sweep`.
        callback: is told of the progress.
        pdf: write figures as PDF, too.

    Returns:
        The statements of each study with what was found.

    Raises:
        ValueError, TypeError: on bad arguments, or a study that cannot be judged or drawn, before
            any session is played.
    """
    check_seed(seed)
    plans = plan(names, scale, queries)
    for name in names:
        _rehearse(name, plans)
    out = Path(out)
    make_folder(out)
    for each in plans:
        say(console, f"{each.part.name}: {each.words}")
        if round(each.part.horizon * scale) < each.horizon:
            say(
                console,
                f"{each.part.name}: raised to {each.horizon:,} sessions, below which it shows nothing",
            )
    seconds = project(plans, out)
    workers = joblib.effective_n_jobs(n_jobs)
    say(
        console,
        f"projected: {clock(seconds / workers)} with {workers} workers, without compilation",
    )
    setting, measured = _setting(queries), {}
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
        ).frame
        places = {name: portable(name) for name in table["instance"].unique()}
        table = _with_facts(each.part, table, instances).with_columns(
            polars.col("instance").replace(places)
        )
        measured[each.part.name] = table, _made(each, out / each.part.name, instances)
    findings_of: dict[str, Findings] = {}
    for name in names:
        command, results = _command(name, scale, queries, seed), []
        for part in STUDIES[name].parts:
            table, origin = measured[part.name]
            curves = compact(
                table,
                STUDIES[name].columns,
                list(part.facts),
                each=part.each,
                fractions=part.fractions,
            )
            results.append(Shipped(setting, part.name, curves, {"command": command, **origin}))
        findings_of[name] = conclude(name, results, out, console, pdf=pdf)
    return findings_of


def _rehearse(name: str, plans: Sequence[Plan]) -> None:
    """Judge and draw a study by invented numbers, with the instances and checkpoints of a plan."""
    by_part = {each.part.name: each for each in plans}
    with tempfile.TemporaryDirectory() as folder:
        parts = []
        for part in STUDIES[name].parts:
            planned = by_part[part.name]
            instances = [
                load_instance(instance).name for instance in planned.instances(Path(folder))
            ]
            parts.append((part, instances, planned.checkpoints.tolist()))
    rehearse(name, STUDIES[name], parts)


def draw_again(
    names: Sequence[str],
    folders: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    console: Console,
    *,
    pdf: bool = False,
) -> dict[str, Findings]:
    """Judge and draw studies from results that `run_study` wrote, on one set of queries or on
    several, without playing.

    Args:
        names: of `STUDIES`.
        folders: with the files ``NAME.parquet``; what they hold of a study is put together.
        out: the folder of what is written.
        console: where the findings are printed.
        pdf: write figures as PDF, too.

    Returns:
        The statements of each study with what was found, on the queries of the first folder.

    Raises:
        ValueError: on an unknown study, a folder without its results, or results that are there
            twice.
    """
    _check_names(names)
    results = {
        name: [each for folder in folders for each in read_study(name, folder)] for name in names
    }
    for name, all_of_it in results.items():
        keys = [(each.setting, each.part) for each in all_of_it]
        if twice := {key for key in keys if keys.count(key) > 1}:
            raise ValueError(
                f"results of {name} on the queries {min(twice)[0]!r} are in two of the folders"
            )
    make_folder(Path(out))
    return {name: conclude(name, results[name], Path(out), console, pdf=pdf) for name in names}


def read_study(name: str, folder: str | os.PathLike[str]) -> list[Shipped]:
    """The results of a study in a folder.

    Args:
        name: of `STUDIES`.
        folder: what `run_study` was given as ``out``, or where its files were copied to.

    Raises:
        ValueError: there are none, or other ones.
    """
    path = Path(folder) / f"{name}.parquet"
    try:
        results = read_shipped(path)
    except FileNotFoundError:
        raise ValueError(f"{folder} has no results of {name}: {path.name} is not there") from None
    parts = [part.name for part in STUDIES[name].parts]
    for setting in dict.fromkeys(each.setting for each in results):
        there = [each.part for each in results if each.setting == setting]
        if there != parts:
            raise ValueError(
                f"{path} holds {', '.join(there)}; expected {', '.join(parts)}, the parts of {name}"
            )
    return results


def conclude(
    name: str, results: Sequence[Shipped], out: Path, console: Console, *, pdf: bool = False
) -> Findings:
    """Judge a study by what was measured, and write its curves, its findings and its figures.

    Args:
        name: of `STUDIES`.
        results: of its parts, in one setting or in several.
        out: the folder.
        console: where the findings are printed.
        pdf: write its figures as PDF, too.

    Returns:
        The statements with what was found in the first setting.
    """
    write_shipped(out / f"{name}.parquet", results)
    settings = by_setting(name, results)
    figures, pictures = [draw(setting) for setting in settings], []
    for setting, figure in zip(settings, figures, strict=True):
        pictures += save_figure(figure, out / figure_name(setting, settings), pdf=pdf)
    write_whole(out / f"{name}.html", study_html(name, settings, figures))
    write_whole(out / f"{name}.md", page(name, settings))
    write_whole(out / f"{name}.json", findings(name, settings))
    for setting in settings:
        _print(console, setting)
    files = [
        f"{name}.html",
        *(picture.name for picture in pictures),
        f"{name}.md",
        f"{name}.json",
        f"{name}.parquet",
    ]
    say(console, f"Results in {out}: {', '.join(files)}")
    return settings[0].found


def _setting(queries: Sequence[str] | None) -> str:
    """A short name for the queries: what the names of all begin with."""
    if queries is None:
        return "shipped"
    shared = os.path.commonprefix([load_instance(query).name for query in queries])  # noqa: RUF071 (letters are meant)
    return re.sub(r"[-_.:=]\w*$", "", shared) or "own"


def _with_facts(part: Part, table: polars.DataFrame, instances: Sequence[str]) -> polars.DataFrame:
    """The table with the facts of each environment."""
    if not part.facts:
        return table
    rows = []
    for env in part.envs:
        for instance in instances:
            users = make_env(env, instance)
            facts = {fact: find(users) for fact, find in part.facts.items()}
            rows.append({"env": env, "instance": place_of(users).instance} | facts)
    return table.join(
        polars.DataFrame(rows), on=["env", "instance"], how="left", maintain_order="left"
    )


def _made(planned: Plan, folder: Path, instances: Sequence[str]) -> dict[str, Any]:
    """What made the results of a part."""
    config = Results(folder).config
    origin = {
        key: config[key]
        for key in ("clickgym", "commit", "made", "seed", "horizon", "runs", "envs", "agents")
    }
    queries = [load_instance(query).name for query in planned.queries]
    return {
        **origin,
        "queries": queries,
        "instances": [portable(instance) for instance in instances],
    }


def draw(setting: Setting) -> Figure:
    """The figure of a study, with the version and the command that made it, without which nobody
    could check it.
    """
    figure = STUDIES[setting.study].figure(setting.evidence)
    least = {
        f"{each.horizon:,}"
        for each in setting.plans
        if each.horizon == each.part.least_horizon < each.part.horizon
    }
    note = f" (plays the least, {' and '.join(sorted(least))} sessions)" if least else ""
    figure.supxlabel(setting.caption + note, fontsize=6, color="0.4", x=0.01, ha="left")
    return figure


# -------------------------------------------------------------------------------------------------------------- in words


def _print(console: Console, setting: Setting) -> None:
    study = STUDIES[setting.study]
    if setting.table is not None:
        title, (names, *rows) = setting.table
        print_table(
            console,
            [Column(name, right=place > 0) for place, name in enumerate(names)],
            rows,
            title=title,
        )
        console.print()
    columns = [Column("statement", words=True), Column("measured", words=True), Column("supported")]
    findings = [
        (s.text, Text(finding.measured.replace("; ", "\n")), finding.words)
        for s, finding in setting.found
    ]
    title = f"{setting.study}, {setting.name} queries: {study.title} ({study.paper})"
    print_table(console, columns, findings, title=title)
    console.print()


def _command(name: str, scale: float, queries: Sequence[str] | None, seed: int) -> str:
    words = ["clickgym", "study", name, *(["--instances", *queries] if queries else [])]
    return shlex.join([*words, "--scale", f"{scale:g}", "--seed", str(seed)])


def findings(name: str, settings: Sequence[Setting]) -> str:
    """What was found, as JSON."""
    columns = ("statement", "rule", "paper", "measured", "supported", "by itself")

    def described(setting: Setting) -> dict[str, Any]:
        plans = [(each.part.name, each.queries, each.horizon, each.runs) for each in setting.plans]
        found = ((s.text, s.rule, s.paper, *finding) for s, finding in setting.found)
        return {
            "setting": setting.name,
            "command": setting.command,
            "parts": [
                dict(zip(("name", "queries", "horizon", "runs"), each, strict=True))
                for each in plans
            ],
            "statements": [dict(zip(columns, each, strict=True)) for each in found],
            **({} if setting.table is None else {"table": [list(row) for row in setting.table[1]]}),
        }

    content = {"study": name, "settings": [described(setting) for setting in settings]}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
