"""The board of the scorecard: the results that ship, as two tables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import polars

from clickgym.agents import AGENTS, CompiledAgent, Learner
from clickgym.runner.make import agent_maker, observed_sizes
from clickgym.runner.make import requirements as required
from clickgym.runner.names import AgentLike

from ..results import read_results, write_results
from .score import Anchor, Scores, Summary, is_scored, scores_of, summarize
from .tasks import ABILITIES, Task, all_tasks, quick_tasks

DATA = Path(__file__).parent / "data"
"""A file of each agent, and ``anchors.parquet``, from ``anchor_runs``."""
LEARNERS = [name for name, agent in AGENTS.items() if issubclass(agent, Learner)]
NETWORKS = [name for name, agent in AGENTS.items() if not issubclass(agent, CompiledAgent)]
"""Agents of torch, which are slow, and have other digits in other builds of it: no anchors."""
WORDS = {"initial": "production list"}
"""Of arguments whose names do not say what is required."""
HEADER = (
    "agent",
    "requires",
    "score",
    "95 % interval",
    "worst run",
    "µs per session",
    "best at",
    "worst at",
)


class Line(NamedTuple):
    """An agent on the board.

    Attributes:
        agent: its name.
        requires: what it is given beside clicks.
        scores: of its runs.
        seconds_per_session: in the mean over `timed_tasks`.
    """

    agent: str
    requires: str
    scores: Scores
    seconds_per_session: float

    def summary(self, tasks: Sequence[Task], intervals: bool = True) -> Summary | None:
        """Its score over some tasks, if it played at least half of them."""
        played = [task for task in tasks if task.name in self.scores]
        if 2 * len(played) < len(tasks) or not played:
            return None
        return summarize(self.scores, tasks, intervals)

    def cells(self, tasks: Sequence[Task]) -> list[str]:
        """Its row of a table over some tasks, of which it played at least half: a cell for each
        column of `HEADER`; without the last two if the tasks are of one ability.
        """
        summary = summarize(self.scores, tasks)
        micros = 1e6 * self.seconds_per_session
        time = f"{micros:.2g}" if micros < 10 else f"{micros:,.0f}"
        shown = [f"{summary.value:z.2f}", summary.interval, f"{summary.worst_run:z.2f}", time]
        by_ability = abilities(self, tasks)
        ordered = sorted(by_ability, key=lambda name: by_ability[name].value)
        ends = [ordered[-1], ordered[0]] if len({task.ability for task in tasks}) > 1 else []
        return [self.agent, self.requires, *shown, *ends]


def requirements(agent: AgentLike) -> str:
    """What an agent is given beside clicks, in words."""
    maker, _ = agent_maker(agent)
    observed = [size.removeprefix("n_") for size in observed_sizes(maker)]
    names = [*required(maker), *observed]
    return ", ".join(WORDS.get(name, name.replace("_", " ")) for name in names)


@cache
def anchors() -> dict[str, Anchor]:
    """The anchors of each task by its name."""
    table, _ = read_results(DATA / "anchors.parquet")
    columns = table.select("task", "random", "best", "agent")
    return {task: Anchor(*values) for task, *values in columns.iter_rows()}


def scored_tasks(features: bool | None = None, ability: str | None = None) -> list[Task]:
    """The tasks whose anchors differ enough.

    Args:
        features: only tasks with features, or only those without.
        ability: only tasks of this ability.
    """
    return [
        task
        for task in all_tasks()
        if features in (None, task.has_features)
        and ability in (None, task.ability)
        and is_scored(anchors().get(task.name), task)
    ]


def learner_tasks() -> list[Task]:
    """What learners play, which are slow: two tasks of each ability, that of ``--quick`` and the
    last one that is scored, once any is.
    """
    last = {task.ability: task for task in scored_tasks()}
    chosen = {
        task.name for quick in quick_tasks() for task in (quick, last.get(quick.ability, quick))
    }
    return [task for task in all_tasks() if task.name in chosen]


def line_of(agent: str, requires: str, table: polars.DataFrame) -> Line:
    """The line of an agent, from the table of `play`."""
    horizons = {task.name: task.horizon for task in timed_tasks(table)}
    timed = table.filter(polars.col("task").is_in(list(horizons)))
    per_session = timed["seconds"] / timed["task"].replace_strict(horizons)
    scores = scores_of(table, anchors(), all_tasks())
    mean: Any = per_session.mean()
    return Line(agent, requires, scores, mean)


def timed_tasks(table: polars.DataFrame) -> list[Task]:
    """The tasks on which an agent is timed: those of the first ability that it plays."""
    played = set(table["task"])
    tasks = [task for task in all_tasks() if task.name in played]
    return [task for task in tasks if task.ability == tasks[0].ability]


@cache
def published() -> list[Line]:
    """The lines of the agents whose results ship."""
    lines = []
    for path in sorted(DATA.glob("*.parquet")):
        if path.stem != "anchors":
            table, made = read_results(path)
            agent = made["agent"]
            lines.append(line_of(agent, made["requires"], table))
    return lines


def abilities(line: Line, tasks: Sequence[Task]) -> dict[str, Summary]:
    """The scores of an agent in the abilities of which it plays at least half of the tasks."""
    summaries = {}
    for ability in ABILITIES:
        summary = line.summary([task for task in tasks if task.ability == ability], False)
        if summary is not None:
            summaries[ability] = summary
    return summaries


def board(
    lines: Sequence[Line], features: bool = False, ability: str | None = None
) -> list[list[str]]:
    """A table of the board, the best agents first; those without a score are left out.

    Args:
        lines: the agents.
        features: the table of agents that rank by features, or that of all others.
        ability: only tasks of this ability.
    """
    tasks = scored_tasks(features, ability)
    summaries = [(line, line.summary(tasks, intervals=False)) for line in lines]
    scored = [(summary.value, line) for line, summary in summaries if summary is not None]
    rows = [line.cells(tasks) for _, line in sorted(scored, key=lambda pair: -pair[0])]
    n_columns = min((len(row) for row in rows), default=len(HEADER))
    return [list(HEADER[:n_columns]), *rows]


def recommended() -> list[list[str]]:
    """Return a table of the best published agents in each ability, with their defaults: of those
    that require nothing, and of those that require more, if one of them is better.
    """
    rows = [["ability", "agent", "score", "worst run", "if you know more", "score"]]
    agents = [line for line in published() if line.agent in AGENTS]
    unaided = [line for line in agents if line.requires in ("", "features")]
    for ability in ABILITIES:
        tasks = scored_tasks(ability=ability)
        best, of_all = _best(unaided, tasks), _best(agents, tasks)
        rows.append([ability, *best, *(["", ""] if of_all == best else of_all[:2])])
    return rows


def _best(lines: Sequence[Line], tasks: Sequence[Task]) -> list[str]:
    """Return the best agent over some tasks, its score and that of its worst runs."""
    summaries = {line.agent: line.summary(tasks, intervals=False) for line in lines}
    able = {agent: summary for agent, summary in summaries.items() if summary is not None}
    if not able:
        return ["", "", ""]
    agent = max(able, key=lambda name: able[name].value)
    return [agent, f"{able[agent].value:.2f}", f"{able[agent].worst_run:.2f}"]


def learners() -> list[list[str]]:
    """Return a table of the scores of learners in the tasks that they play."""
    lines = [line for line in published() if line.agent in LEARNERS]
    rows = [["task", *(line.agent for line in lines)]]
    for task in learner_tasks():
        if all(task.name in line.scores for line in lines):
            scores = [summarize(line.scores, [task], intervals=False) for line in lines]
            rows.append([task.name, *(f"{score.value:z.2f}" for score in scores)])
    return rows


def unscored() -> list[list[str]]:
    """Return a table of the tasks with features that are not scored: regret as a share of that of
    random lists, of the best anchor and of networks that are no learners.
    """
    networks = sorted(
        line.agent
        for line in published()
        if (name := line.agent.partition(":")[0]) in NETWORKS and name not in LEARNERS
    )
    tables = [read_results(line_file(DATA, agent))[0] for agent in networks]
    rows = [["task", "instance", "click model", "best without a network", *networks]]
    scored = {task.name for task in scored_tasks(features=True)}
    for task in all_tasks():
        if task.has_features and task.name in anchors().keys() - scored:
            anchor = anchors()[task.name]
            losses = [table.filter(task=task.name)["loss"].mean() for table in tables]
            shares = [f"{100 * float(loss) / anchor.random:.0f} %" for loss in losses]  # type: ignore[arg-type]
            best = f"{100 * anchor.best / anchor.random:.0f} % ({anchor.agent})"
            instance = task.instance.partition(",query=")[0]
            model = task.env.removeprefix("Contextual").removesuffix("Rank-v0")
            rows.append([task.name, f"`{instance}`", model, best, *shares])
    return rows


def line_file(folder: Path, agent: str) -> Path:
    """The file of an agent's results in a folder."""
    return folder / f"{quote(agent, safe='')}.parquet"


def save_line(
    folder: Path, agent: str, requires: str, table: polars.DataFrame, made: dict[str, Any]
) -> Path:
    """Write the file of an agent, by which it enters the board."""
    path = line_file(folder, agent)
    write_results(path, table, {"agent": agent, "requires": requires, **made})
    return path
