"""Play one run of each agent over the first tenth of each shipped result again, and compare it with
the digits that ship.

python benchmarks/shipped/replay.py [NAME ...] [--instances FILE ...]

Of a study the first tenth of the sessions is played in all instances, for its curves are means over
them, with the full horizon as what agents are told; ``--instances`` are the queries of results on
queries that do not ship. ``scorecard-CascadeTS`` are the results of an agent on the scorecard, of
which the first run of the first task of each ability is played. Results of generic reinforcement
learning are not played: they differ from one build of torch to another.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import polars
from polars import col

from clickgym import make_agent, run
from clickgym.runner import make_env
from clickgym.runner.results import Trial
from clickgym_lab.bench.board import DATA, LEARNERS
from clickgym_lab.bench.play import play
from clickgym_lab.bench.tasks import all_tasks
from clickgym_lab.results import read_results
from clickgym_lab.studies import STUDIES
from clickgym_lab.studies.study import KEYS, Sweeps, compact, portable

RESULTS = Path(__file__).resolve().parents[2] / "lab" / "results"
SCORECARD = "scorecard-"
"""Before the names of agents, whose results these are."""


class Replay(Sweeps):
    """Plays the first run of each pair over the first tenth, in place of the sweep.

    Attributes:
        shipped: the table of the file.
        origin: what made each of its sweeps.
        different: what differs, in words.
    """

    shipped: polars.DataFrame
    origin: dict[str, dict[str, Any]]
    different: list[str]

    def sweep(  # type: ignore[override]
        self,
        name: str,
        envs: Sequence[str],
        agents: Sequence[str],
        horizon: int,
        runs: int,
        *,
        instances: Sequence[Any],
        metrics: Sequence[str] = (),
        **_: Any,
    ) -> None:
        rows = self.shipped.filter(part=name)
        horizon = int(rows["step"].max())  # type: ignore[arg-type]
        figures = rows.filter(col("run") == 0, col("step") <= horizon // 10)
        figures = figures.filter(~col("agent").is_in(LEARNERS))
        steps = figures["step"].unique().sort().to_list()
        frames = []
        for env_spec in envs:
            for instance in instances:
                env = make_env(env_spec, instance)
                where = env.unwrapped.instance
                for spec in agents:
                    label = spec.partition("=clickgym_lab")[0]
                    if label in LEARNERS:
                        continue
                    trial = Trial(env_spec, where, label, 0)
                    env_seed, agent_seed = trial.seeds(self.origin[name]["seed"])
                    agent = make_agent(
                        spec.removeprefix(f"{label}="), env, horizon=horizon, seed=agent_seed
                    )
                    result = run(
                        agent, env, steps[-1], seed=env_seed, checkpoints=steps, metrics=metrics
                    )
                    place = {"env": env_spec, "instance": portable(where), "agent": label}
                    named = [polars.lit(value).alias(key) for key, value in place.items()]
                    frames.append(result.to_frame().with_columns(named))
        if frames:
            again = compact(polars.concat(frames), self.columns, ends=(), whole=True)
            self.different += [f"{name}: {line}" for line in differences(figures, again)]

    def trained(  # type: ignore[override]
        self, name: str, env: str, agents: Sequence[str], horizon: int, runs: int, **rest: Any
    ) -> None:
        """What trained agents are worth follows from the lists, which are compared."""
        self.sweep(name, [env], agents, horizon, runs, **rest)


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


def replay_study(path: Path, names: Sequence[str] | None = None) -> list[str]:
    """What differs in a replay of a study.

    Args:
        path: of the file.
        names: of its queries, if they do not ship.
    """
    study = STUDIES[path.stem.partition(".")[0]]
    table, made = read_results(path)
    words = made["command"].split()
    scale = float(words[words.index("--scale") + 1])
    replay = Replay(path.parent, study.columns, scale, names=names)
    replay.shipped, replay.origin, replay.different = table, made["parts"], []
    study.play(replay)
    return replay.different


def replay_agent(path: Path, n_jobs: int = 1) -> list[str]:
    """What differs in a replay of an agent's line of the scorecard."""
    table, _ = read_results(path)
    played = {
        task.ability: task for task in reversed(all_tasks()) if task.name in set(table["task"])
    }
    shipped = dict(table.filter(run=0).select("task", "loss").iter_rows())
    with tempfile.TemporaryDirectory() as folder:
        again = play(unquote(path.stem), list(played.values()), 1, Path(folder), n_jobs=n_jobs)
    losses = again.select("task", "loss").iter_rows()
    return [
        f"{task}: {shipped[task]} then {loss}" for task, loss in losses if shipped[task] != loss
    ]


def replay(name: str, names: Sequence[str] | None = None) -> list[str]:
    """What differs in a replay of a shipped result.

    Args:
        name: of the file, without its suffix; after ``scorecard-`` of an agent.
        names: of the queries of a study, if they do not ship.

    Raises:
        ValueError: there is no such result.
    """
    is_agent = name.startswith(SCORECARD)
    folder = DATA if is_agent else RESULTS
    path = folder / f"{name.removeprefix(SCORECARD)}.parquet"
    if not path.exists():
        raise ValueError(f"{name} is no shipped result")
    return replay_agent(path) if is_agent else replay_study(path, names)


def shipped_names() -> list[str]:
    """The results that need nothing but what ships."""
    studies = [path.stem for path in sorted(RESULTS.glob("*.parquet"))]
    lines = sorted(path.stem for path in DATA.glob("*.parquet"))
    agents = [name for name in lines if name != "anchors" and name not in LEARNERS]
    return [name for name in studies if "." not in name] + [f"{SCORECARD}{a}" for a in agents]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns 1 if anything differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("names", nargs="*", help="studies, or scorecard-AGENT; default: all")
    parser.add_argument("--instances", nargs="+", metavar="FILE", help="queries that do not ship")
    options = parser.parse_args(arguments)
    wrong = 0
    for name in options.names or shipped_names():
        different = replay(name, options.instances)
        print(f"{name}: {'; '.join(different) or 'equal'}", flush=True)
        wrong += len(different)
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
