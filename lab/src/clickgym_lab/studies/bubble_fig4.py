"""NDCG@5 of re-ranking a production list.

Li et al. 2019 (BubbleRank), figure 4.

The paper draws 100 frequent queries of the Yandex log. We have 60 published queries, with 5 million
sessions and ten runs as in the paper. We also have 16 shipped ones, with 1.5 million sessions.
Gains are the attractions of the fitted models, as in the paper, because there are no judgments. The
paper leaves CascadeKL-UCB out, and so do we. BatchRank runs as printed, with one mended line (see
bubble-fig1). In the first sessions we tell the agents that 5 million will follow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from .claims import END, Curves, Finding, Results, Statement, Values, estimate, less, several, short
from .plots import Figure, band, finish, grid
from .re_ranking import ENVS, FIRST_100, RE_RANKING, START, in_each

SWEEPS = [RE_RANKING, START]
"""`RE_RANKING`: BubbleRank, CascadeKL-UCB in both readings of several clicks, BatchRank, TopRank
and the production list in the CM, the DCM and the PBM, ten positions of which five count; 5 million
sessions, ten runs, up to 100 queries (16 ship). `START`: the first 10,000 sessions.
"""
COLUMNS = ("ndcg",)


def ndcg(curves: Curves, env: str, agent: str, first: float, last: float) -> Values:
    """``(queries,)`` the mean between two fractions of the sessions."""
    return curves.rate(env, agent, first, last, "ndcg")


def gap(
    results: Results, part: str, span: tuple[float, float], env: str, agent: str, other: str
) -> Values:
    """``(queries,)`` by how much one agent's mean is above another's."""
    ours, theirs = (ndcg(results[part], env, name, *span) for name in (agent, other))
    return ours - theirs


def alike(results: Results, agent: str) -> Finding:
    """Whether an agent is within 0.02 of BubbleRank at the end."""
    return in_each(
        lambda env: estimate(gap(results, RE_RANKING.name, END, env, agent, "BubbleRank")).within(
            -0.02, 0.02
        )
    )


def start_gap(results: Results, env: str, agent: str) -> Values:
    """``(queries,)`` by how much an agent is above the production list in the first 100."""
    return gap(results, START.name, (0.0, FIRST_100), env, agent, "Fixed")


def far_below(results: Results, agent: str) -> Finding:
    """Whether an agent starts far below the production list."""
    return in_each(lambda env: estimate(start_gap(results, env, agent)).below(-0.05))


def never_worse(results: Results, env: str) -> Finding:
    """Whether BubbleRank is nowhere far below the production list."""
    spans = {
        "first 100": (START.name, (0.0, 0.01)),
        "to 1,000": (START.name, (0.01, 0.1)),
        "to 10,000": (START.name, (0.1, 1.0)),
        "end": (RE_RANKING.name, END),
    }
    gaps = {
        words: estimate(gap(results, part, span, env, "BubbleRank", "Fixed"))
        for words, (part, span) in spans.items()
    }
    return several({words: one.within(-0.05, math.inf) for words, one in gaps.items()})


STATEMENTS = [
    Statement(
        "In Figure 4, we observe that Baseline has good NDCG@5 scores in all click models. Yet "
        "there is still room for improvement.",
        "appendix B",
        "In each click model BubbleRank's NDCG@5 at the end is above that of the production list.",
        lambda results: in_each(
            lambda env: less(
                *(
                    ndcg(results[RE_RANKING.name], env, agent, *END)
                    for agent in ("Fixed", "BubbleRank")
                )
            )
        ),
        late=True,
    ),
    Statement(
        "BubbleRank, BatchRank, and TopRank have similar NDCG@5 scores after 5 million steps.",
        "appendix B",
        "In each click model the scores of BatchRank and TopRank in the last hundredth of the "
        "sessions are within 0.02 (ours) of BubbleRank's.",
        lambda results: several({name: alike(results, name) for name in ("BatchRank", "TopRank")}),
        late=True,
        is_other_version=True,
    ),
    Statement(
        "But BubbleRank starts with NDCG@5 close to that of Baseline",
        "appendix B",
        "In each click model it is within 0.05 in the first 100 sessions (both ours).",
        lambda results: in_each(
            lambda env: estimate(start_gap(results, env, "BubbleRank")).within(-0.05, 0.05)
        ),
    ),
    Statement(
        "while BatchRank and TopRank start with lists with very low NDCG@5.",
        "appendix B",
        "In each click model both are more than 0.05 below the production list in the first 100 "
        "sessions (both ours).",
        lambda results: several(
            {agent: far_below(results, agent) for agent in ("BatchRank", "TopRank")}
        ),
        is_other_version=True,
    ),
    Statement(
        "we observe that BubbleRank converges to the optimal list in hindsight, since its NDCG@5 "
        "approaches 1.",
        "appendix B",
        "In each click model it is above 0.99 (ours) in the last hundredth of the sessions.",
        lambda results: in_each(
            lambda env: estimate(ndcg(results[RE_RANKING.name], env, "BubbleRank", *END)).above(
                0.99
            )
        ),
        late=True,
    ),
    Statement(
        "we observe that BubbleRank is safe, since its NDCG@5 is never much worse than that of "
        "Baseline.",
        "appendix B",
        "In each click model it is at most 0.05 (ours) below the production list. We look at the "
        "first 100 sessions, then up to 1,000, up to 10,000, and the last hundredth.",
        lambda results: in_each(lambda env: never_worse(results, env)),
    ),
]


def seen(results: Results) -> Iterator[str]:
    """Where the others start and end."""
    for agent in ("BatchRank", "TopRank"):
        ends = [
            f"{estimate(ndcg(results[RE_RANKING.name], env, agent, *END))} ({short(env)})"
            for env in ENVS
        ]
        yield f"{agent}'s NDCG@5 in the last hundredth is {', '.join(ends)}."


def draw(results: Results) -> Figure:
    """NDCG per session in each click model."""
    curves = results[RE_RANKING.name]
    figure, panels = grid(3, labels=["NDCG@5 per session"])
    ends = np.geomspace(100, curves.horizon, 25).round()
    places = np.unique(np.searchsorted(curves.steps, ends))
    for axes, env in zip(panels, ENVS, strict=True):
        for agent in ("BubbleRank", "BatchRank", "TopRank", "Fixed"):
            rates = curves.window_rates(curves.by_run(env, agent, "ndcg"), places)
            band(axes, curves.steps[places], rates, agent)
        axes.set(xscale="log", title=short(env), xlabel="session", ylim=(0.5, 1.01))
    return finish(figure, panels, results, "NDCG@5")
