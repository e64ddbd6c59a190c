"""The landing page of the website: a ranked list with clicks, three curves, conclusions of the README, how to cite.

Numbers are computed or read when the site is made; the rest is in ``docs/site/index.md``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from polars import col

from clickgym import make_agent, run
from clickgym.core.templates import templates
from clickgym.envs import CONTEXTUAL, ENVIRONMENTS, MEMORY, list_instances
from clickgym.runner import PUBLISHED, make_env
from clickgym_lab.bench.leaderboard import sources_of
from clickgym_lab.bench.protocol import CURRENT
from clickgym_lab.bench.reference import lines
from clickgym_lab.studies import STUDIES

from .agent_pictures import INK, draw_on_page, line_look, mean_regret

FOLDER = Path(__file__).parent
ABILITY = "standard"
"""The ability of the scorecard whose curves are drawn: users whose behaviour does not change, without a production ranking."""
CLASSIC = "BatchRank"
"""The published algorithm that is drawn beside the base of the board and its best line: it eliminates items in batches."""
LEARNER, ENV, SESSIONS = "PBMHB", "PBMRank-v0", (1, 100, 10_000)
"""The agent whose lists are shown, where it plays, and the sessions from which on the next one with a click is shown."""
APART = 1.9
"""The names of two curves stand apart by this factor of regret, so that one is not written over the other."""


def landing(template: Path, findings: str, facts: Mapping[str, Any]) -> str:
    """The landing page in Markdown.

    Args:
        template: its file, with the names of what is made here.
        findings: those of the README, in Markdown.
        facts: the content of ``CITATION.cff``.
    """
    shares = {name: share[-1] for name, (_, share) in curves().items()}
    page = templates(template.parent).get_template(template.name)
    return page.render(
        sessions=sessions_html(),
        shares=shares,
        best=min(shares, key=shares.__getitem__),
        n_sessions=max(steps[-1] for steps, _ in curves().values()),
        n_compared=len(candidates()),
        n_tasks=mean_regret(CURRENT).filter(ability=ABILITY)["task"].n_unique(),
        findings=findings,
        facts=facts,
        n_agents=len(PUBLISHED),
        n_environments=len(ENVIRONMENTS | CONTEXTUAL | MEMORY),
        n_queries=sum(name.startswith("yandex-9") for name in list_instances()),
        n_studies=len(STUDIES),
    )


# -------------------------------------------------------------------------------------------------------------- a list


def sessions_html() -> str:
    """The lists of one run of an agent, in HTML: in the first session with a click from each of some sessions on."""
    env: Any = make_env(ENV).unwrapped
    agent: Any = make_agent(LEARNER, env, seed=0)
    observation, _ = env.reset(seed=0)
    lists, n_played = [], 0
    for session in SESSIONS:
        if session - 1 > n_played:
            run(agent, env, session - 1 - n_played, checkpoints=[])
            observation, _ = env.reset()
            n_played = session - 1
        clicks = np.zeros(0)
        while not clicks.any():
            ranking = agent.rank(observation)
            clicks, reward, *_ = env.step(ranking)
            agent.update(observation, ranking, clicks, reward)
            n_played += 1
        attraction = env.model.attraction[ranking]
        lists.append((n_played, [*zip(ranking.tolist(), attraction.tolist(), clicks.tolist(), strict=True)]))
    return templates(FOLDER).get_template("sessions.html").render(lists=lists, agent=LEARNER, env=ENV)


# -------------------------------------------------------------------------------------------------------- three curves


@cache
def candidates() -> tuple[str, ...]:
    """The lines that are compared: as published, without extra knowledge, and with all tasks of the ability."""
    board, rows = CURRENT.boards[0], mean_regret(CURRENT).filter(ability=ABILITY)
    counts = dict(rows.group_by("agent").agg(col("task").n_unique()).iter_rows())
    return tuple(
        name
        for name, line in lines(CURRENT).items()
        if not line.tuning and line.trust == "ours" and counts.get(name) == rows["task"].n_unique()
        if board.admits(sources_of(line.agent), [ABILITY])
    )


@cache
def curves() -> Mapping[str, tuple[list[int], list[float]]]:
    """The regret of three agents by session, in percent of random lists': the geometric mean over the tasks of an ability.

    They are the base of the first board of the scorecard, `CLASSIC`, and the agent with the least regret at the end. The curves
    of version 2 ship before its anchors: regret needs none.

    Returns:
        Steps and percentages by the name of the agent, in this order.
    """
    rows = mean_regret(CURRENT).filter(ability=ABILITY)
    random = rows.filter(agent="Random").select("task", "step", random="regret")
    shares = (
        rows.filter(col("agent").is_in(candidates()))
        .join(random, on=["task", "step"])
        .group_by("agent", "step")
        .agg(share=100 * (col("regret") / col("random")).log().mean().exp())
        .sort("step")
    )
    ends = shares.filter(col("step") == col("step").max())
    best = str(ends.sort("share")["agent"][0])
    names = dict.fromkeys([CURRENT.boards[0].base, CLASSIC, best])
    own = {name: shares.filter(agent=name) for name in names}
    return {name: (rows["step"].to_list(), rows["share"].to_list()) for name, rows in own.items()}


def curves_figure() -> Figure:
    """The curves of three agents, each with its name and the year of its paper at its end."""
    figure = Figure(figsize=(5.6, 3.4), layout="constrained")
    panel = figure.add_subplot()
    height = np.inf
    ordered = sorted(curves().items(), key=lambda curve: curve[1][1][-1])
    for i, (name, (steps, shares)) in reversed([*enumerate(ordered)]):
        look = line_look(i)
        panel.plot(steps, shares, **look)
        agent: Any = PUBLISHED[name]
        year = re.findall(r"\d{4}", agent.paper)[0]
        text = f"{name}\n({year}): {shares[-1]:.2g} %"
        height = min(shares[-1], height / APART)
        panel.text(1.3 * steps[-1], height, text, color=look["color"], fontsize=10.5, va="center")
    draw_on_page(panel, steps[-1])
    panel.set_ylabel("regret, % of random lists’", color=INK, fontsize=9)
    panel.yaxis.set_major_formatter(PercentFormatter(decimals=0))
    return figure
