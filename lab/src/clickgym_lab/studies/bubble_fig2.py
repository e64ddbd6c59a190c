"""Violations of the safety constraint.

Li et al. 2019 (BubbleRank), figure 2.

The queries and the production lists are not those of the paper. The number of violations depends
above all on how many pairs of the production list are wrong, and the paper does not print this. We
have 60 published queries and 16 shipped ones. The paper's production list is the most frequent list
of a query. That of a published query is one logged page.

The paper does not say what CascadeKL-UCB learns from several clicks. We test it in both readings.
BatchRank runs as printed, with one mended line (see bubble-fig1). In the first 100 sessions we tell
the agents that 5 million will follow, as in the paper.

Violations in the end are rare. A single unsafe final list among a hundred queries would make their
mean grow linearly. So we count queries. If none of 60 has an unsafe final list, up to 6 % of all
queries can still have one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .claims import (
    END,
    LINEAR,
    SLACK,
    Finding,
    Number,
    Results,
    Statement,
    above_share,
    any_of,
    certain,
    estimate,
    in_readings,
    less,
    ratio,
    short,
)
from .plots import Figure, style_of
from .re_ranking import (
    ENVS,
    FIRST,
    FIRST_100,
    LAST,
    PBM,
    RE_RANKING,
    START,
    draw_curves,
    in_each,
    start,
)

SWEEPS = [RE_RANKING, START]
"""`RE_RANKING`: BubbleRank, CascadeKL-UCB in both readings of several clicks, BatchRank, TopRank
and the production list in the CM, the DCM and the PBM, ten positions of which five count; 5 million
sessions, ten runs, up to 100 queries (16 ship). `START`: the first 10,000 sessions.
"""
COLUMNS = ("violations",)
ONE_OF_THE_PAPER = 0.01
"""One of the hundred queries of the paper."""
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


def more_than_20(results: Results, env: str, agent: str) -> Finding:
    """Whether there is a run with more than 20 violations in the first 100 sessions."""
    counts = results[START.name].by_instance(env, agent, "violations", FIRST_100).ravel()
    found = [certain("", bool(count > 20)) for count in counts]
    return any_of(f"{(counts > 20).sum()} of {len(counts)} runs, up to {counts.max():.0f}", found)


def grows_linearly(results: Results, agent: str) -> Finding:
    """Whether there are queries, one in a hundred, of which the violations grow linearly."""
    curves = results[RE_RANKING.name]
    late, mean = (curves.rate(PBM, agent, *span, "violations") for span in (END, (0.0, 1.0)))
    return above_share(late - LINEAR * mean > SLACK, ONE_OF_THE_PAPER)


def more_severe(results: Results, other: str) -> Finding:
    """Whether an agent has more violations in the first 100 sessions than CascadeKL-UCB."""
    return in_readings(
        lambda agent: in_each(
            lambda env: less(*(start(results, env, one, "violations") for one in (agent, other)))
        )
    )


def alike(results: Results, env: str) -> Finding:
    """Whether TopRank and BatchRank are close."""
    ours, theirs = (start(results, env, agent, "violations") for agent in ("TopRank", "BatchRank"))
    return estimate(ours - theirs).within(-10.0, 10.0)


STATEMENTS = [
    Statement(
        "BubbleRank never violates the constraint in our experiments.",
        "section 5.3",
        "There is no violation in any run. We count them, and Lemma 2 allows a few.",
        safe,
    ),
    Statement(
        "CascadeKL-UCB may show unsafe results, which are significantly worse than the initial "
        "base list R_0, and may hurt user experience, more than 20% of search sessions in the "
        "first 100 steps.",
        "section 5.3",
        "In each click model there is a run with more than 20 violations in the first 100 "
        "sessions. We count such runs. The means stand above.",
        lambda results: in_readings(
            lambda agent: in_each(lambda env: more_than_20(results, env, agent))
        ),
    ),
    Statement(
        "Even worse, the violations of CascadeKL-UCB grow linearly with time in the PBM.",
        "section 5.3",
        "More than one query in a hundred, the paper's number, still has violations in the end. We "
        "count queries of the PBM, with the exact binomial interval. A query counts if its "
        f"violations per session in the last hundredth of the sessions are above {LINEAR} times "
        "(ours) those of all sessions.",
        lambda results: in_readings(lambda agent: grows_linearly(results, agent)),
        late=True,
    ),
    *(
        Statement(
            "The safety issues of BatchRank, and TopRank are more severe than that of "
            "CascadeKL-UCB.",
            "section 5.3",
            f"{agent} has more violations in the first 100 sessions than CascadeKL-UCB, in each "
            "click model.",
            lambda results, agent=agent: more_severe(results, agent),  # type: ignore[misc]
            is_other_version=agent == "BatchRank",
        )
        for agent in ("BatchRank", "TopRank")
    ),
    Statement(
        "Note that the performance of TopRank is close to that of BatchRank in the first 100 steps "
        "since they both require the ranked lists to be randomly shuffled during the initial "
        "stages.",
        "section 5.3",
        "In each click model their violations in the first 100 sessions differ by less than 10 "
        "(ours).",
        lambda results: in_each(lambda env: alike(results, env)),
        is_other_version=True,
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
    yield "So these numbers depend on the production lists, and hardly on the agents."


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
