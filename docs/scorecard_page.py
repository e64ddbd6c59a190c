"""The tables of the pages on the scorecard that the command does not print."""

from __future__ import annotations

from collections.abc import Sequence

import polars

from clickgym.agents import AGENTS, CompiledAgent, Learner
from clickgym.bench import unseen
from clickgym.bench.board import DATA, OURS, Line, anchors, line_file, published, scored_tasks
from clickgym.bench.results import read_results
from clickgym.bench.score import summarize
from clickgym.bench.tasks import ABILITIES, Task, all_tasks

LEARNERS = [name for name, agent in AGENTS.items() if issubclass(agent, Learner)]
NETWORKS = [name for name, agent in AGENTS.items() if not issubclass(agent, CompiledAgent)]


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


def learners() -> list[list[str]]:
    """The scores of learners in the tasks that all of them play."""
    lines = [line for line in published() if line.agent in LEARNERS]
    rows = [["task", *(line.agent for line in lines)]]
    for task in all_tasks():
        if all(task.name in line.scores for line in lines):
            scores = [summarize(line.scores, [task], intervals=False) for line in lines]
            rows.append([task.name, *(f"{score.value:z.2f}" for score in scores)])
    return rows


def unscored() -> list[list[str]]:
    """The tasks with features that are not scored: regret as a share of that of random lists, of
    the best anchor and of networks that are no learners.
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


def losses() -> list[list[str]]:
    """The mean clicks lost in an episode of unseen queries, in the order of the board."""
    tables = unseen.shipped()
    header, *rows = unseen.board(tables)
    found = [header]
    for name, *_ in rows:
        means = dict(tables[name].group_by("cell").agg(polars.col("regret").mean()).iter_rows())
        cells = [means.get(title) for title in header[1:]]
        found.append([name, *("–" if mean is None else f"{mean:.1f}" for mean in cells)])
    return found
