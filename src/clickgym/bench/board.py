"""The board of the scorecard: two tables that compare the agents whose results clickgym ships."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import polars

from ..runner.make.agents import AgentLike, observed_sizes, requirements, resolve_agent
from .result_files import read_results, write_results
from .score import Anchor, Scores, Summary, is_scored, scores_of, summarize
from .tasks import ABILITIES, ScoredTask, all_tasks

DATA = Path(__file__).parent / "data"
"""The folder that contains a results file for each agent, and ``anchors.parquet``, which is
computed from the runs in ``tools/data/anchor_runs``.
"""
OURS = ("MixTS",)
"""The names of clickgym's own agents. These agents are neither anchors nor recommended, so the
score 1 always belongs to an agent that others have published.
"""
HEADER = ("agent", "requires", "score", "95 % interval", "worst run", "µs per session")
BEST_AND_WORST = ("best at", "worst at")
"""The last two columns of a board that covers several abilities."""


class BoardLine(NamedTuple):
    """The results of one agent on the board.

    Attributes:
        agent: the agent's name.
        requires: what the agent must know in addition to clicks, in words.
        scores: the scores of the agent's runs, keyed by task name.
        seconds_per_session: the average time per session on the agent's `timed_tasks`.
    """

    agent: str
    requires: str
    scores: Scores
    seconds_per_session: float

    def summary(self, tasks: Sequence[ScoredTask]) -> Summary | None:
        """Return the agent's score over the given tasks, without its interval, or None if the agent
        played fewer than half of these tasks.
        """
        played = [task for task in tasks if task.name in self.scores]
        if 2 * len(played) < len(tasks) or not played:
            return None
        return summarize(self.scores, tasks, intervals=False)

    def abilities(self, tasks: Sequence[ScoredTask]) -> dict[str, Summary]:
        """Return the agent's score for each ability. Abilities in which the agent played fewer than
        half of the tasks are left out.
        """
        summaries = {}
        for ability in ABILITIES:
            of_ability = [task for task in tasks if task.ability == ability]
            summary = self.summary(of_ability)
            if summary is not None:
                summaries[ability] = summary
        return summaries

    @property
    def time_text(self) -> str:
        """The average time per session in microseconds, as text; a dash if it was not measured."""
        micros = 1e6 * self.seconds_per_session
        if math.isnan(micros):
            return "–"
        return f"{micros:.2g}" if micros < 10 else f"{micros:,.0f}"

    def board_row(self, tasks: Sequence[ScoredTask]) -> list[str]:
        """Return the agent's row on a board that covers the given tasks. The agent must have played
        at least half of these tasks.
        """
        summary = summarize(self.scores, tasks)
        texts = [
            f"{summary.value:z.2f}",
            summary.interval_text,
            f"{summary.worst_run:z.2f}",
            self.time_text,
        ]
        if len({task.ability for task in tasks}) > 1:
            summaries = self.abilities(tasks)
            abilities = sorted(summaries, key=lambda name: summaries[name].value)
            texts += [abilities[-1], abilities[0]]
        return [self.agent, self.requires, *texts]


def requirements_text(agent: AgentLike) -> str:
    """Return, in words, what an agent must know in addition to clicks."""
    maker, _ = resolve_agent(agent)
    observed = [size.removeprefix("n_") for size in observed_sizes(maker)]
    names = [name.replace("_", " ") for name in (*requirements(maker), *observed)]
    return ", ".join("production list" if name == "initial" else name for name in names)


@cache
def anchors() -> dict[str, Anchor]:
    """Return the anchors of all tasks, keyed by task name."""
    table, _ = read_results(DATA / "anchors.parquet")
    columns = table.select("task", "random", "best", "agent")
    return {task: Anchor(*values) for task, *values in columns.iter_rows()}


def scored_tasks(features: bool | None = None, ability: str | None = None) -> list[ScoredTask]:
    """Return the tasks whose anchors differ enough to compare agents.

    Args:
        features: True to return only tasks with features, False to return only tasks without
            features; by default, all tasks are returned.
        ability: the ability to which the tasks must belong; by default, any ability.
    """
    return [
        task
        for task in all_tasks()
        if features in (None, task.has_features)
        and ability in (None, task.ability)
        and is_scored(anchors().get(task.name), task)
    ]


def line_of(agent: str, requires: str, table: polars.DataFrame) -> BoardLine:
    """Return the board's line for an agent, computed from the table that `play_tasks` returned."""
    horizons = {task.name: task.horizon for task in timed_tasks(table)}
    timed = table.filter(polars.col("task").is_in(list(horizons)))
    mean: Any = (timed["seconds"] / timed["task"].replace_strict(horizons)).mean()
    return BoardLine(agent, requires, scores_of(table, anchors(), all_tasks()), mean)


def timed_tasks(table: polars.DataFrame) -> list[ScoredTask]:
    """Return the tasks on which an agent is timed: of the tasks in the agent's table, those that
    belong to the same ability as the first.
    """
    names = set(table["task"])
    tasks = [task for task in all_tasks() if task.name in names]
    return [task for task in tasks if task.ability == tasks[0].ability]


@cache
def published_lines() -> list[BoardLine]:
    """Return the lines of all agents whose results ship with clickgym."""
    files = [path for path in sorted(DATA.glob("*.parquet")) if path.stem != "anchors"]
    tables = [read_results(path) for path in files]
    return [
        line_of(provenance["agent"], provenance["requires"], table) for table, provenance in tables
    ]


def board(
    lines: Sequence[BoardLine], features: bool = False, ability: str | None = None
) -> list[list[str]]:
    """Return a table of the board: the header, and then the agents, best first. Agents that played
    fewer than half of the table's tasks are left out.

    Args:
        lines: the results of the agents.
        features: True for the table of tasks with features, False for the table of tasks without
            features.
        ability: the only ability that the table covers; by default, all abilities.
    """
    tasks = scored_tasks(features, ability)
    summaries = [(line, line.summary(tasks)) for line in lines]
    ranked = [(summary.value, line) for line, summary in summaries if summary is not None]
    rows = [line.board_row(tasks) for _, line in sorted(ranked, key=lambda pair: -pair[0])]
    has_several = len({task.ability for task in tasks}) > 1
    return [[*HEADER, *(BEST_AND_WORST if has_several else ())], *rows]


def line_file(folder: Path, agent: str) -> Path:
    """Return the path of an agent's results file in a folder."""
    return folder / f"{quote(agent, safe='')}.parquet"


def save_line(
    folder: Path, agent: str, requires: str, table: polars.DataFrame, provenance: dict[str, Any]
) -> Path:
    """Write an agent's results to a file that can be added to the board, and return the path of the
    file.
    """
    path = line_file(folder, agent)
    write_results(path, table, {"agent": agent, "requires": requires, **provenance})
    return path
