"""Study of clicks that arrive in batches, late or not at all: which agents lose by it, and which order results."""

from __future__ import annotations

import numpy as np

from .axes import BARS, RANDOM, in_envs, lines, table_of
from .plots import Figure, finish, grid
from .study import CM, PBM, Curves, Evidence, Finding, PaperTable, estimate

EVERY, MANY = "late-clicks", "late-clicks-models"
"""All agents on the shipped queries; some agents in two click models on all queries."""
BATCHES = {1: "", 10: ":arrival=batch:10", 100: ":arrival=batch:100", 1000: ":arrival=batch:1000", 5000: ":arrival=batch:5000"}
ARRIVALS = {
    "at once": "", "1,000\nlate": ":arrival=delay:1000", "1,000 late\non average": ":arrival=delay:geometric:1000",
    "half\nlost": ":arrival=immediate:lost=0.5", "both": ":arrival=delay:geometric:1000:lost=0.5",
}  # fmt: skip
ENVS = tuple(f"{CM}{argument}" for argument in dict.fromkeys([*BATCHES.values(), *ARRIVALS.values()]))
DRAWN = (
    "Fixed", "BubbleRank", "CascadeTS", "CascadeKLUCB", "PBMHB", "GRAB", "TopRank", "UniRank", "MergeRank", "BatchRank",
    "RankedExp3",
)  # fmt: skip


def order(curves: Curves, env: str, base: str, low: float, high: float) -> Finding:
    """Whether the agents stand in the same order in two environments: Kendall's tau of their regrets on each query."""
    from scipy.stats import kendalltau  # slow to load

    ends = [np.array([curves.ends(each, agent).mean(axis=1) for agent in curves.agents]) for each in (env, base)]
    taus = estimate([kendalltau(*columns).statistic for columns in zip(*(each.T for each in ends), strict=True)])
    return Finding(f"τ = {taus} over {len(curves.instances)} queries", taus.within(low, high))


def regret(evidence: Evidence) -> PaperTable:
    """Regret of all agents however the clicks arrive."""
    curves = evidence[EVERY]
    batches = {f"batches of {size:,}": f"{CM}{argument}" for size, argument in BATCHES.items() if argument}
    others = {name: f"{CM}{argument}" for name, argument in ARRIVALS.items() if argument}
    title = f"Regret in the CM, mean over {len(curves.instances)} queries, {curves.horizon:,} sessions"
    return table_of(curves, *in_envs({"at once": CM} | batches | others, curves.agents), title)


def draw(evidence: Evidence) -> Figure:
    """Regret by batch size and by delay; and in two click models on all queries."""
    figure, panels = grid(2, 2, labels=2 * [f"regret, % of {RANDOM}"])
    curves = evidence[EVERY]
    lines(panels[0], curves, *in_envs({f"{size:,}": f"{CM}{argument}" for size, argument in BATCHES.items()}, DRAWN), CM)
    panels[0].set(title="CM, shipped queries", xlabel="sessions in a batch")
    lines(panels[1], curves, *in_envs({name: f"{CM}{argument}" for name, argument in ARRIVALS.items()}, DRAWN), CM)
    panels[1].set(title="CM, shipped queries", xlabel="clicks arrive")
    curves = evidence[MANY]
    agents = [agent for agent in DRAWN if agent in curves.agents]
    for axes, env in zip(panels[2:], (CM, PBM), strict=True):
        lines(axes, curves, *in_envs({"1": env, "5,000": f"{env}{BATCHES[5000]}"}, agents), env)
        axes.set(title=f"{env.partition('Rank')[0]}, all queries", xlabel="sessions in a batch")
    return finish(figure, panels[:1], evidence, "Regret by when clicks arrive", BARS)
