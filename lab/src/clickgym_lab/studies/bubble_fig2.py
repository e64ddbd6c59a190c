"""Violations of the safety constraint.

Li et al. 2019 (BubbleRank), figure 2.

Other queries and other production lists: the number of violations depends above all on how many
pairs of the production list are wrong, which the paper does not print. We have 60 published queries
and 16 shipped ones; the production list of a published query is one logged page, and the paper's is
the most frequent one. The paper does not say what CascadeKL-UCB learns from several clicks: the
tests take the first click (first_click), as in bubble-fig1. The first 100 sessions are those of
agents that are told 5 million, as in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .claims import (
    END,
    LINEAR_RULE,
    Finding,
    Number,
    Results,
    Statement,
    certain,
    estimate,
    less,
    linear,
    ratio,
    short,
)
from .plots import Figure, style_of
from .re_ranking import ENVS, FIRST, LAST, PBM, RE_RANKING, START, draw_curves, in_each, start

SWEEPS = [RE_RANKING, START]
"""`RE_RANKING`: BubbleRank, CascadeKL-UCB in both readings of several clicks, BatchRank, TopRank
and the production list in the CM, the DCM and the PBM, ten positions of which five count; 5 million
sessions, ten runs, up to 100 queries (16 ship). `START`: the first 10,000 sessions.
"""
COLUMNS = ("violations",)
PRINTED = {
    LAST: ((24.12, 0.76), (23.33, 0.90), (23.63, 0.96)),
    FIRST: ((24.12, 0.76), (23.33, 0.90), (23.63, 0.96)),
    "BatchRank": ((83.01, 0.56), (71.89, 0.92), (59.63, 0.98)),
    "TopRank": ((83.56, 0.70), (71.47, 1.07), (57.00, 1.24)),
}
"""Violations in the first 100 sessions in the CM, the DCM and the PBM, with the paper's ±."""
NAMES = {LAST: "CascadeKL-UCB, last_click", FIRST: "CascadeKL-UCB, first_click"}
NUMBERS = [
    Number(
        f"{NAMES.get(agent, agent)}, {short(env)}: violations in the first 100 sessions",
        count,
        lambda results, env=env, agent=agent: start(  # type: ignore[misc]
            results, env, agent, "violations"
        ),
        error,
    )
    for agent, counts in PRINTED.items()
    for env, (count, error) in zip(ENVS, counts, strict=True)
]


def safe(results: Results) -> Finding:
    """Whether BubbleRank has no violation in any run."""
    curves = results[RE_RANKING.name]
    counts = np.array([curves.by_instance(env, "BubbleRank", "violations") for env in ENVS])
    violated = int((counts > 0).sum())
    return certain(
        f"{violated} of {counts.size:,} runs of {curves.horizon:,} sessions", not violated
    )


def alike(results: Results, env: str) -> Finding:
    """Whether TopRank and BatchRank are close."""
    ours, theirs = (start(results, env, agent, "violations") for agent in ("TopRank", "BatchRank"))
    return estimate(ours - theirs).within(-10.0, 10.0)


STATEMENTS = [
    Statement(
        "BubbleRank never violates the constraint in our experiments.",
        "section 5.3",
        "No violation in any run. (Counted; Lemma 2 allows a few.)",
        safe,
    ),
    Statement(
        "CascadeKL-UCB may show unsafe results, which are significantly worse than the initial "
        "base list R_0, and may hurt user experience, more than 20% of search sessions in the "
        "first 100 steps.",
        "section 5.3",
        "More than 20 violations in the first 100 sessions, in each click model.",
        lambda results: in_each(
            lambda env: estimate(start(results, env, FIRST, "violations")).above(20.0)
        ),
    ),
    Statement(
        "Even worse, the violations of CascadeKL-UCB grow linearly with time in the PBM.",
        "section 5.3",
        f"In the PBM: {LINEAR_RULE.replace('regret', 'violations')} (0.8 is ours).",
        lambda results: linear(results[RE_RANKING.name], PBM, FIRST, "violations"),
        late=True,
    ),
    *(
        Statement(
            "The safety issues of BatchRank, and TopRank are more severe than that of "
            "CascadeKL-UCB.",
            "section 5.3",
            f"{agent} has more violations in the first 100 sessions than CascadeKL-UCB, in each "
            "click model.",
            lambda results, agent=agent: in_each(  # type: ignore[misc]
                lambda env: less(
                    start(results, env, FIRST, "violations"),
                    start(results, env, agent, "violations"),
                )
            ),
        )
        for agent in ("BatchRank", "TopRank")
    ),
    Statement(
        "Note that the performance of TopRank is close to that of BatchRank in the first 100 steps "
        "since they both require the ranked lists to be randomly shuffled during the initial "
        "stages.",
        "section 5.3",
        "Their violations in the first 100 sessions differ by less than 10 (ours), in each click "
        "model.",
        lambda results: in_each(lambda env: alike(results, env)),
    ),
]


def seen(results: Results) -> Iterator[str]:
    """Violations beside those of lists in random order."""
    for agent in ("BatchRank", "TopRank"):
        shares = []
        for env in ENVS:
            ours, random = (start(results, env, name, "violations") for name in (agent, "Random"))
            shares.append(f"{ratio(ours, random)} ({short(env)})")
        yield (
            f"In the first 100 sessions {agent} shows {', '.join(shares)} times as many unsafe "
            "lists as random order."
        )
    yield "So their numbers depend on the production lists, and hardly on the agents."
    curves = results[RE_RANKING.name]
    for agent in (LAST, FIRST):
        late = curves.rate(PBM, agent, *END, "violations")
        yield (
            f"PBM, {NAMES[agent]}: violations in the last hundredth of the sessions on "
            f"{(late > 0).sum()} of {len(late)} queries. A single query whose final list is unsafe "
            "would make the mean grow linearly."
        )


def draw(results: Results) -> Figure:
    """Cumulative violations of the agents that have some, with the paper's numbers."""
    agents = [LAST, FIRST, "BatchRank", "TopRank"]
    figure = draw_curves(results, "violations", agents, "Violations of the safety constraint")
    for axes, place in zip(figure.axes, range(len(ENVS)), strict=True):
        for shift, agent in zip((0.85, 1.0, 1.2), agents[1:], strict=True):  # beside each other
            color = style_of(agent, axes)["color"]
            axes.plot(100 * shift, PRINTED[agent][place][0], "*", color=color, markersize=10)
        axes.set_ylim(bottom=8)
    figure.axes[0].annotate("★ the paper, after 100", (0.03, 0.92), xycoords="axes fraction")
    return figure
