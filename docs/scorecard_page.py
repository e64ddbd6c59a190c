"""The tables of the pages on the scorecard that the command does not print."""

from __future__ import annotations

from collections.abc import Sequence

from clickgym.agents import AGENTS
from clickgym.bench.board import OURS, Line, published, scored_tasks
from clickgym.bench.tasks import ABILITIES, Task


def recommended() -> list[list[str]]:
    """The best published agents in each ability, with their defaults: of those that require
    nothing, and of those that require more, if one of them is better.
    """
    rows = [["ability", "agent", "score", "worst run", "if you know more", "score"]]
    agents = [line for line in published() if line.agent in AGENTS and line.agent not in OURS]
    unaided = [line for line in agents if line.requires in ("", "features")]
    for ability in ABILITIES:
        tasks = scored_tasks(ability=ability)
        best, of_all = _best(unaided, tasks), _best(agents, tasks)
        rows.append([ability, *best, *(["", ""] if of_all == best else of_all[:2])])
    return rows


def _best(lines: Sequence[Line], tasks: Sequence[Task]) -> list[str]:
    """The best agent over some tasks, its score and that of its worst runs."""
    summaries = {line.agent: line.summary(tasks, intervals=False) for line in lines}
    able = {agent: summary for agent, summary in summaries.items() if summary is not None}
    agent = max(able, key=lambda name: able[name].value)
    return [agent, f"{able[agent].value:.2f}", f"{able[agent].worst_run:.2f}"]
