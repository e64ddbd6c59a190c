"""Regret of re-ranking a production list.

Li et al. 2019 (BubbleRank), figure 1.

The reward of the DCM is the satisfied user (abandonment click), as in the paper. Where its
termination probabilities do not decrease, the optimum is not the list sorted by attraction, which
all of these agents learn: regret then stays linear. `clickgym_lab.assumptions.check_assumptions`
names the assumption of the paper that fails.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from .claims import (
    LEARNS_RULE,
    LINEAR_RULE,
    SLACK,
    Claim,
    Curves,
    Finding,
    Results,
    estimate,
    less_regret,
    linear,
    several,
    short,
    sublinear,
)
from .plots import Figure
from .re_ranking import (
    AGENTS,
    CM,
    DCM,
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
and the production list (Fixed) in the CM, the DCM and the PBM, ten positions of which five count; 5
million sessions, ten runs, up to 100 queries (16 ship).
"""


def claims(results: Results) -> Iterator[Claim]:
    """What the paper says of its figure 1.

    A test asks whether the mean of independent values lies between two bounds: yes if its 95 %
    interval (Student's t) lies between them, no if it lies outside, else it cannot tell; all
    statements are judged together by Holm's procedure. `several` asks that all tests hold; one that
    surely does not contradicts the statement.

    `linear` (and `sublinear`) asks whether the rate of regret in the last fifth of the sessions
    less 0.8 times that in the second fifth is above (below) 0; `less_regret` whether the gap
    between two agents' regret at the end, or after a step, is above 0. At the end and for growth
    intervals are over the queries where their values are kept, else over the runs: the finding says
    which. A run shorter than the paper's
    cannot contradict a statement marked `late`.
    """
    curves = results["bubble"]

    def less(better: Sequence[str], worse: Sequence[str], step: int = 0) -> Finding:
        names = list(better if len(better) > 1 else worse)
        triples = [(env, a, b) for env in ENVS for a in better for b in worse]
        findings = [less_regret(curves, env, a, b, step) for env, a, b in triples]
        labels = [f"{short(env)}, {name}" for env in ENVS for name in names]
        return several(dict(zip(labels, findings, strict=True)))

    yield Claim(
        "The regret of the production list (Baseline) grows linearly",
        "its regret per session, which is constant, is above 0 on average",
        several({short(env): not_optimal(curves, env) for env in ENVS}),
    )
    yield Claim(
        "CascadeKL-UCB (last_click) learns in the CM and DCM",
        LEARNS_RULE,
        several({short(env): sublinear(curves, env, LAST) for env in (CM, DCM)}),
        late=True,
    )
    yield Claim(
        "CascadeKL-UCB (first_click) learns in the DCM",
        LEARNS_RULE,
        several({"DCM": sublinear(curves, DCM, FIRST)}),
        late=True,
    )
    for agent, reading in READINGS.items():
        finding = several({"PBM": linear(curves, PBM, agent)})
        text = f"CascadeKL-UCB ({reading}) has linear regret in the PBM"
        yield Claim(text, LINEAR_RULE, finding, late=True)
    for agent in ("BubbleRank", "BatchRank", "TopRank"):
        finding = several({short(env): sublinear(curves, env, agent) for env in ENVS})
        text = f"{agent} learns in all three click models"
        yield Claim(text, LEARNS_RULE, finding, late=True)
    rivals = ["BatchRank", "TopRank"]
    yield Claim(
        "BubbleRank has less regret than BatchRank and TopRank in earlier steps (the first 100)",
        "less cumulative regret by then, in each click model",
        less(["BubbleRank"], rivals, 100),
    )
    yield Claim(
        "BubbleRank has less regret than BatchRank and TopRank in earlier steps (a hundredth of "
        "the horizon)",
        "less cumulative regret by then, in each click model",
        less(["BubbleRank"], rivals, round(0.01 * curves.horizon)),
    )
    yield Claim(
        "BubbleRank has more regret than BatchRank and TopRank at the end",
        "more cumulative regret at the horizon, in each click model",
        less(rivals, ["BubbleRank"]),
        late=True,
    )


def not_optimal(curves: Curves, env: str) -> Finding:
    """Whether the production list has regret."""
    rate = estimate(curves.rate(curves.by_run(env, "Fixed"), 0.0, 1.0))
    return rate.within(SLACK, math.inf, " per session")


def draw(results: Results) -> Figure:
    """Cumulative regret in each click model."""
    return draw_curves(results, "regret", AGENTS, "Regret of the first five positions")
