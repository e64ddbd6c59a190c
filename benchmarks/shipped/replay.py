"""Play one run of each agent over the first tenth of each shipped result again, and compare it with
the digits that ship.

python benchmarks/shipped/replay.py [NAME ...] [--since REF] [--folder DIR] [--tasks N] [--seed N]
                                    [--record]

Of a study the first tenth of the sessions is played in all instances, for its curves are means over
them, with the full horizon as what agents are told. Queries that do not ship are looked for under
the names that the command of the result has, in ``--folder``; results whose queries are not there
are named and left out. ``scorecard-CascadeTS`` are the results of an agent on the scorecard, of
which the first runs of a few tasks are played, drawn by ``--seed``. ``--since main`` are the
results that a pull request brings. The module of an agent of others is looked for in ``--folder``.

Networks differ from one build of torch to another. An agent with one plays in the first sweep of a
study in which it takes part, and in one task of the scorecard; what it reaches must be what shipped
runs make likely (at 99.9 %). So do all agents in results of versions before 6.0, whose sweeps had
other seeds; ``--record`` leaves such results out.
"""

from __future__ import annotations

import argparse
import contextlib
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import polars
from polars import col
from scipy.special import stdtrit
from scipy.stats import ttest_1samp

from clickgym.core.files import write_whole
from clickgym.runner.make import agent_maker
from clickgym_lab.bench.board import DATA, NETWORKS, line_file
from clickgym_lab.bench.play import ANCHOR_SEED, play
from clickgym_lab.bench.tasks import all_tasks
from clickgym_lab.results import read_results, replayed
from clickgym_lab.studies import find_study
from clickgym_lab.studies.study import KEYS, Setting, Sweep, compact, label_of, with_facts
from clickgym_lab.studies.study import play as play_run

RESULTS = Path(__file__).resolve().parents[2] / "lab" / "results"
SCORECARD = "scorecard-"
"""Before the names of agents, whose results these are."""
UNLIKELY = 1e-3


def replay_sweep(
    sweep: Sweep,
    rows: polars.DataFrame,
    setting: Setting,
    columns: Sequence[str],
    compared: Sequence[str] = (),
    has_other_seeds: bool = False,
) -> list[str]:
    """What differs in a replay of the first run of each pair over the first tenth.

    Args:
        sweep: what was run.
        rows: what ships of it, from whose last step the horizon is known.
        setting: with the seed, and the names of the queries.
        columns: of which curves ship.
        compared: networks that have played in another sweep, and do not play again.
        has_other_seeds: of a version before 6.0: all agents are compared with shipped runs.
    """
    horizon = int(rows["step"].max())  # type: ignore[arg-type]
    steps = rows["step"].unique().sort()
    tenth = steps.filter(steps <= horizon // 10).to_list()
    instances, agents = setting.taken(sweep)
    specs, facts = {label_of(spec): spec for spec in agents}, list(sweep.facts)
    told = sweep.told or horizon

    def again(label: str, at: list[int]) -> polars.DataFrame:
        pairs = product(sweep.envs, instances)
        frames = [
            play_run(sweep, env, instance, specs[label], 0, setting.seed, told, at)[0]
            for env, instance in pairs
        ]
        table = with_facts(polars.concat(frames), sweep.envs, instances, sweep.facts)
        return compact(table, columns, facts, ends=(), whole=True)

    played = [label for label in specs if label in set(rows["agent"])]
    networks = [label for label in played if is_network(label)]
    lines, bandits = [], [label for label in played if label not in networks]
    if has_other_seeds:
        networks, bandits = played, []
    if bandits:
        shipped = rows.filter(~col("agent").is_in(networks), run=0)
        found = polars.concat([again(label, tenth) for label in bandits])
        drawn = found.select(*KEYS, *(name for name in columns if name in found.columns))
        lines += differences(shipped.filter(col("step").is_in(tenth)), drawn)
        if facts:
            of = ["env", "instance"]
            known = found.drop_nulls("instance").group_by(of).agg(col(*facts).first())
            kept = shipped.drop_nulls("instance").select(*KEYS, *facts)
            lines += differences(kept, kept.drop(*facts).join(known, on=of, how="left"))
    for label in [label for label in networks if label not in compared]:
        kept = rows.filter(col("instance").is_not_null(), agent=label)
        step = int(kept.filter(col("step") >= tenth[-1])["step"].min())  # type: ignore[arg-type]
        lines += unlike(kept.filter(step=step), again(label, [step]))
    return [f"{sweep.name}: {line}" for line in lines]


def differences(figures: polars.DataFrame, again: polars.DataFrame) -> list[str]:
    """Where a replay differs from what ships: for each pair the first step.

    Args:
        figures: what ships; rows without an instance are means over the instances.
        again: of the replay, compact.
    """
    columns = [name for name in figures.columns if name in again.columns and name not in KEYS]
    beside = figures.join(again, on=KEYS, how="left", nulls_equal=True, suffix=" again")
    equal = [col(name).is_null() | col(name).eq_missing(col(f"{name} again")) for name in columns]
    pairs = beside.filter(~polars.all_horizontal(equal)).group_by("env", "agent")
    first = pairs.agg(col("step").min()).sort("env", "agent")
    return [f"{agent} in {env} from session {step:,} on" for env, agent, step in first.iter_rows()]


def unlike(shipped: polars.DataFrame, again: polars.DataFrame) -> list[str]:
    """Where the regret of an agent differs from what ships, by a t test over the instances, or by
    the runs of a single one. A difference that the runs of the instances explain is none: in so
    many tests, a few instances have nearly equal ones by chance.

    Args:
        shipped: of each instance and run at a step.
        again: of a run of each instance at this step.
    """
    pair = ["env", "agent", "instance"]
    spread = (col("regret").var() * (1 + 1 / polars.len())).alias("spread")
    means = shipped.group_by(pair).agg(col("regret").mean(), spread)
    both = means.join(again.drop_nulls("instance"), on=pair, suffix=" again").sort(pair)
    lines = []
    for (env, agent), rows in both.group_by("env", "agent", maintain_order=True):
        gaps = (rows["regret again"] - rows["regret"]).to_numpy().astype(float)
        if len(gaps) == 1:
            runs = shipped.filter(env=env, agent=agent)["regret"].to_numpy().astype(float)
            differs = unlikely(np.log1p(runs), np.log1p(rows["regret again"][0]))  # it is skewed
        else:
            n_free = shipped.filter(env=env, agent=agent).height - len(gaps)
            error = np.sqrt(rows["spread"].sum()) / len(gaps)  # 0 with one run of each
            by_runs = abs(gaps.mean()) > stdtrit(n_free, 1 - UNLIKELY / 2) * error or n_free == 0
            differs = by_runs and ttest_1samp(gaps, 0.0).pvalue < UNLIKELY
        if differs:
            lines.append(f"{agent} in {env}: regret {gaps.mean():+,.0f} in {len(gaps)} instances")
    return lines


def replay_study(path: Path) -> list[str]:
    """What differs in a replay of a study.

    Args:
        path: of the file.

    Raises:
        FileNotFoundError: queries that do not ship are not in the working folder.
    """
    study = find_study(path.stem.partition(".")[0])
    table, made = read_results(path)
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float)
    parser.add_argument("--instances", nargs="+")
    options, _ = parser.parse_known_args(shlex.split(made["command"]))
    absent = [name for name in options.instances or [] if is_absent(name)]
    if absent:
        raise FileNotFoundError(f"needs {absent[0]} (--folder)")
    different, compared = [], []
    for sweep in study.sweeps:
        part, rows = made["parts"][sweep.name], table.filter(part=sweep.name)
        setting = Setting(path.parent, options.scale, seed=part["seed"], names=options.instances)
        has_others = has_other_seeds(part)
        different += replay_sweep(sweep, rows, setting, study.columns, compared, has_others)
        compared += [label for label in rows["agent"].unique() if is_network(label)]
    return different


def is_network(label: str) -> bool:
    """Whether an agent has a network."""
    return label.partition(":")[0] in NETWORKS


def has_other_seeds(part: Mapping[str, Any]) -> bool:
    """Whether a version before 6.0 made a part of a result."""
    return int(part["clickgym"].partition(".")[0]) < 6


def is_older(name: str) -> bool:
    """Whether a result is only compared with shipped runs, not digit by digit."""
    if name.startswith(SCORECARD):
        return False
    _, made = read_results(RESULTS / f"{name}.parquet")
    return any(map(has_other_seeds, made["parts"].values()))


def is_absent(name: str) -> bool:
    """Whether a query is a file that is not there."""
    return Path(name).suffix in (".json", ".txt", ".gz") and not Path(name).exists()


def replay_agent(path: Path, n_tasks: int = 3, seed: int = 0, n_jobs: int = 1) -> list[str]:
    """What differs in a replay of a sample of an agent's tasks of the scorecard, and of the runs
    that make their anchors.

    Raises:
        FileNotFoundError: the module of the agent is not in the working folder.
    """
    agent = unquote(path.stem)
    try:
        agent_maker(agent)
    except ValueError as error:
        raise FileNotFoundError(f"{error} (--folder)") from error
    rng = np.random.default_rng([seed, *agent.encode()])
    table, _ = read_results(path)
    tasks = [task for task in all_tasks() if task.name in set(table["task"])]
    n_drawn = 1 if is_network(agent) else min(n_tasks, len(tasks))
    places = rng.choice(len(tasks), n_drawn, replace=False)
    drawn, lines = [tasks[place] for place in sorted(places)], []
    anchors = line_file(path.parent / "anchor_runs", agent)
    for file, run_seed in ((path, 0), (anchors, ANCHOR_SEED)):
        if not file.exists():
            continue
        shipped, _ = read_results(file)
        with tempfile.TemporaryDirectory() as out:
            again = play(agent, drawn, 1, Path(out), seed=run_seed, n_jobs=n_jobs)
        for task, loss in again.select("task", "loss").iter_rows():
            losses = shipped.filter(task=task).sort("run")["loss"].to_numpy().astype(float)
            if unlikely(losses, loss) if is_network(agent) else losses[0] != loss:
                lines.append(f"{task} ({file.parent.name}): {losses[0]:g} then {loss:g}")
    return lines


def unlikely(losses: np.ndarray, loss: float) -> bool:
    """Whether a loss lies outside of the prediction interval from the losses of other runs."""
    n = len(losses)
    half = stdtrit(n - 1, 1 - UNLIKELY / 2) * losses.std(ddof=1) * np.sqrt(1 + 1 / n)
    return bool(abs(loss - losses.mean()) > half)


def replay(name: str, n_tasks: int = 3, seed: int = 0) -> list[str]:
    """What differs in a replay of a shipped result.

    Args:
        name: of the file, without its suffix; after ``scorecard-`` of an agent.
        n_tasks, seed: of the sample of tasks.

    Raises:
        ValueError: there is no such result.
        FileNotFoundError: its queries or its module are not there.
    """
    is_agent = name.startswith(SCORECARD)
    folder = DATA if is_agent else RESULTS
    path = folder / f"{name.removeprefix(SCORECARD)}.parquet"
    if not path.exists():
        raise ValueError(f"{name} is no shipped result")
    return replay_agent(path, n_tasks, seed) if is_agent else replay_study(path)


def shipped_names() -> list[str]:
    """All results."""
    agents = [path.stem for path in sorted(DATA.glob("*.parquet")) if path.stem != "anchors"]
    studies = [path.stem for path in sorted(RESULTS.glob("*.parquet"))]
    return studies + [f"{SCORECARD}{agent}" for agent in agents]


def names_of(paths: Sequence[str]) -> list[str]:
    """The results among the paths of files."""
    found = [Path(path) for path in paths if path.endswith(".parquet")]
    names = {f"{SCORECARD * (path.parent.name == DATA.name)}{path.stem}" for path in found}
    return [name for name in shipped_names() if name in names]


def changed_since(ref: str) -> list[str]:
    """The paths of files that differ from a commit or a branch, and still exist."""
    command = ["git", "-C", str(RESULTS), "diff", "--name-only", "--diff-filter=d", ref]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns 1 if anything differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("names", nargs="*", help="studies, or scorecard-AGENT; default: all")
    parser.add_argument("--since", metavar="REF", help="results that differ from it, instead")
    parser.add_argument("--folder", type=Path, default=Path(), help="of queries that do not ship")
    parser.add_argument("--tasks", type=int, default=3, help="of each agent on the scorecard")
    parser.add_argument("--seed", type=int, default=0, help="of the sample of tasks")
    parser.add_argument(
        "--record", action="store_true", help="note in replayed.txt what this version replayed"
    )
    options = parser.parse_args(arguments)
    names = options.names or shipped_names()
    if options.since:
        names = names_of(changed_since(options.since))
    wrong, equal = 0, []
    with contextlib.chdir(options.folder):
        for name in names:
            start = time.perf_counter()
            try:
                different = replay(name, options.tasks, options.seed)
                alike = "likely" if is_older(name) else "equal"
                words = "; ".join(different) or alike
                wrong += len(different)
                equal += [name] * (words == "equal" and not name.startswith(SCORECARD))
            except FileNotFoundError as error:
                words = f"not played, {error}"
            print(f"{name} ({time.perf_counter() - start:.0f} s): {words}", flush=True)
    if options.record:
        versions = replayed(RESULTS) | dict.fromkeys(equal, version("clickgym"))
        lines = [f"{name} {versions[name]}\n" for name in sorted(versions)]
        write_whole(RESULTS / "replayed.txt", "".join(lines))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
