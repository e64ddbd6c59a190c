"""NDCG@5 of re-ranking a production list.

Li et al. 2019 (BubbleRank), figure 4.

The same runs as bubble-fig1. The reward of the DCM is the satisfied user (abandonment click), as in
the paper. Where its termination probabilities do not decrease, the optimum is not the list sorted
by attraction, which all of these agents learn: regret then stays linear.
`clickgym_lab.assumptions.check_assumptions` names the assumption of the paper that fails.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from .claims import END, Claim, Curves, Finding, Results, Values, estimate, several, short
from .plots import Figure, band, finish, grid
from .re_ranking import ENVS, RE_RANKING

SWEEPS = [RE_RANKING]
"""`RE_RANKING`: BubbleRank, CascadeKL-UCB in both readings of several clicks, BatchRank, TopRank
and the production list in the CM, the DCM and the PBM, ten positions of which five count; 5 million
sessions, ten runs, up to 100 queries (16 ship).
"""
COLUMNS = ("ndcg",)


def claims(results: Results) -> Iterator[Claim]:
    """What the paper says of its figure 4.

    A test asks whether the mean of independent values lies between two bounds: yes if its 95 %
    interval (Student's t) lies between them, no if it lies outside, else it cannot tell; all
    statements are judged together by Holm's procedure. `several` asks that all tests hold; one that
    surely does not contradicts the statement.

    All intervals are over the runs, each averaged over the queries. A run shorter than the paper's
    cannot contradict a statement marked `late`.
    """
    curves = results["bubble"]

    def gap(agent: str, other: str, span: tuple[float, float], low: float, high: float) -> Finding:
        findings = {}
        for env in ENVS:
            ours, theirs = (ndcg(curves, env, name, *span) for name in (agent, other))
            findings[short(env)] = estimate(ours - theirs).within(low, high)
        return several(findings)

    start = (0.0, 100 / curves.horizon)
    for agent in ("BubbleRank", "BatchRank", "TopRank"):
        yield Claim(
            f"The NDCG@5 of {agent} approaches 1",
            "above 0.99 at the end, in each click model",
            several({short(e): estimate(ndcg(curves, e, agent, *END)).above(0.99) for e in ENVS}),
            paper="approaches 1",
            late=True,
        )
    for agent in ("BatchRank", "TopRank"):
        yield Claim(
            f"BubbleRank and {agent} are similar at the end",
            "within 0.02, in each click model",
            gap(agent, "BubbleRank", END, -0.02, 0.02),
            late=True,
        )
    yield Claim(
        "BubbleRank starts near the production list",
        "within 0.05 in the first 100 sessions, in each click model",
        gap("BubbleRank", "Fixed", start, -0.05, 0.05),
    )
    for agent in ("BatchRank", "TopRank"):
        yield Claim(
            f"{agent} starts far below",
            "more than 0.05 below the production list in the first 100 sessions, in each click "
            "model",
            gap(agent, "Fixed", start, -1.0, -0.05),
        )
    yield Claim(
        "BubbleRank is never much worse than the production list",
        "no more than 0.05 below it in any hundredth of the horizon, in each click model",
        several({short(env): never_worse(curves, env) for env in ENVS}),
    )


def ndcg(curves: Curves, env: str, agent: str, start: float, stop: float) -> Values:
    """``(runs,)`` the mean between two fractions of the horizon."""
    return curves.rate(curves.by_run(env, agent, "ndcg"), start, stop)


def never_worse(curves: Curves, env: str) -> Finding:
    """Whether BubbleRank is nowhere far below the production list."""
    ours, theirs = (
        curves.window_rates(curves.by_run(env, agent, "ndcg")) for agent in ("BubbleRank", "Fixed")
    )
    gaps = ours - theirs
    worst = estimate(gaps[:, gaps.mean(axis=0).argmin()])
    return worst.within(-0.05, math.inf, " at worst")


def draw(results: Results) -> Figure:
    """NDCG per session in each click model."""
    curves = results["bubble"]
    figure, panels = grid(3, labels=["NDCG@5 per session"])
    ends = np.geomspace(100, curves.horizon, 25).round()
    places = np.unique(np.searchsorted(curves.steps, ends))
    for axes, env in zip(panels, ENVS, strict=True):
        for agent in ("BubbleRank", "BatchRank", "TopRank", "Fixed"):
            rates = curves.window_rates(curves.by_run(env, agent, "ndcg"), places)
            band(axes, curves.steps[places], rates, agent)
        axes.set(xscale="log", title=short(env), xlabel="session", ylim=(0.5, 1.01))
    return finish(figure, panels, results, "NDCG@5")
