"""Violations of the safety constraint.

Li et al. 2019 (BubbleRank), figure 2.

The same runs as bubble-fig1. The reward of the DCM is the satisfied user (abandonment click), as in
the paper. Where its termination probabilities do not decrease, the optimum is not the list sorted
by attraction, which all of these agents learn: regret then stays linear.
`clickgym_lab.assumptions.check_assumptions` names the assumption of the paper that fails.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .claims import (
    Claim,
    Curves,
    Finding,
    Results,
    Values,
    certain,
    estimate,
    linear,
    several,
    short,
    versus,
)
from .plots import Figure
from .re_ranking import (
    ENVS,
    FIRST,
    LAST,
    PBM,
    RE_RANKING,
    READINGS,
    draw_curves,
)

SWEEPS = [RE_RANKING]
"""`RE_RANKING`: BubbleRank, CascadeKL-UCB in both readings of several clicks, BatchRank, TopRank
and the production list in the CM, the DCM and the PBM, ten positions of which five count; 5 million
sessions, ten runs, up to 100 queries (16 ship).
"""
VIOLATIONS = {
    LAST: (24.12, 23.33, 23.63),
    "BatchRank": (83.01, 71.89, 59.63),
    "TopRank": (83.56, 71.47, 57.00),
}
"""In the first 100 sessions in the CM, the DCM and the PBM, in the paper."""
PUBLISHED = {
    agent: " / ".join(f"{count:g}" for count in counts) for agent, counts in VIOLATIONS.items()
}
COLUMNS = ("violations",)


def claims(results: Results) -> Iterator[Claim]:
    """What the paper says of its figure 2.

    A test asks whether the mean of independent values lies between two bounds: yes if its 95 %
    interval (Student's t) lies between them, no if it lies outside, else it cannot tell; all
    statements are judged together by Holm's procedure. `several` asks that all tests hold; one that
    surely does not contradicts the statement.

    Violations in the first 100 sessions are over the runs, each averaged over the queries. `linear`
    asks whether violations per session in the last fifth of the sessions less 0.8 times those in
    the second fifth are above 0, over the queries where their values are kept, else over the runs:
    the finding says which. `versus` asks whether the gap between two agents is above 0. `safe`
    counts, without an interval. A run shorter than the paper's cannot contradict a statement marked
    `late`.
    """
    curves = results["bubble"]
    yield Claim(
        "BubbleRank never violates its safety constraint",
        "no violation in any run",
        safe(curves),
        paper="0",
    )
    for agent, reading in READINGS.items():
        yield Claim(
            f"CascadeKL-UCB ({reading}) shows unsafe lists in more than 20 of the first 100 "
            "sessions",
            "above 20 in each click model",
            several({short(e): estimate(first_100(curves, e, agent)).above(20.0) for e in ENVS}),
            PUBLISHED[LAST],
        )
    for agent in ("BatchRank", "TopRank"):
        yield Claim(
            f"{agent} violates it more often than CascadeKL-UCB in the first 100 sessions",
            "more violations, in each click model",
            several(
                {
                    short(env): versus(first_100(curves, env, LAST), first_100(curves, env, agent))
                    for env in ENVS
                }
            ),
            f"{PUBLISHED[agent]} against {PUBLISHED[LAST]}",
        )
    yield Claim(
        "TopRank is close to BatchRank in the first 100 sessions",
        "within 10 violations, in each click model",
        several({short(env): alike(curves, env) for env in ENVS}),
        f"{PUBLISHED['TopRank']} against {PUBLISHED['BatchRank']}",
    )
    for agent, reading in READINGS.items():
        yield Claim(
            f"The violations of CascadeKL-UCB ({reading}) grow linearly in the PBM",
            "violations per session in the last fifth is above 0.8 of that in the second fifth",
            several({"PBM": linear(curves, PBM, agent, "violations")}),
            late=True,
        )
    for agent, published in PUBLISHED.items():
        yield Claim(
            f"Violations of {agent} in the first 100 sessions, in figures",
            "within a quarter of the paper's in each click model (other queries, so no more can be "
            "asked)",
            several({short(env): as_many(curves, env, agent) for env in ENVS}),
            published,
        )


def first_100(curves: Curves, env: str, agent: str) -> Values:
    """``(runs,)`` violations in the first hundred sessions."""
    return curves.at(curves.by_run(env, agent, "violations"), 100)


def safe(curves: Curves) -> Finding:
    """Whether BubbleRank has no violation in any run."""
    counts = np.array([curves.by_instance(env, "BubbleRank", "violations") for env in ENVS])
    violated = int((counts > 0).sum())
    words = f"{violated} of {counts.size} runs of {curves.horizon:,} sessions"
    return certain(words, not violated)


def alike(curves: Curves, env: str) -> Finding:
    """Whether TopRank and BatchRank are close."""
    ours, theirs = (first_100(curves, env, agent) for agent in ("TopRank", "BatchRank"))
    return estimate(ours - theirs).within(-10.0, 10.0)


def as_many(curves: Curves, env: str, agent: str) -> Finding:
    """Whether there are about as many violations as in the paper."""
    published = VIOLATIONS[agent][ENVS.index(env)]
    ours = estimate(first_100(curves, env, agent))
    return ours.within(0.75 * published, 1.25 * published, f" (paper {published:g})")


def draw(results: Results) -> Figure:
    """Cumulative violations of the agents that have some."""
    agents = [LAST, FIRST, "BatchRank", "TopRank"]
    return draw_curves(results, "violations", agents, "Violations of the safety constraint")
