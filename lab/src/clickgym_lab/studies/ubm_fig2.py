"""CTR of contextual agents against the length of the list, web search.

He et al. 2020, figure 2.

The paper takes the three most frequent queries of the Yandex Personalized log. Its features come
from a matrix of users and pages, and its rewards are estimates from the log. We have three
instances of the family linear. Each has the examination of a shipped query, and features and
attractions drawn at random. A further set has features of film ratings. We count clicks.

The paper's users hardly ever click twice, and its examination falls from 0.96 to 0.015. Our users
click more often and depend less on the position. So here every CTR grows with K. Rounds, runs and
the number of features are the paper's. Its candidates are the pages that a user was shown. We read
this as ten candidates.

For each agent and K we try five values of α: the theorem's and 0, 0.1, 0.3 and 1. Half of the runs
choose the best one, and the other half measure it. On our three instances the best list has about 1
% more CTR_set than C2UCB. That leaves no room for a lead over C2UCB, so we do not test such leads.
PBM-LinUCB is not in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from .claims import Finding, Results, Statement, all_of, estimate, percent, several
from .contextual_ctr import (
    AGENTS,
    BASELINE,
    BEST,
    KINDS,
    LONG,
    OURS,
    POSITIONS,
    RIVALS,
    SHORT,
    THEOREM,
    ahead,
    ctr,
    ctr_table,
    headroom,
    lead_grows,
    need_room,
    other_alpha,
    sweep,
)
from .plots import Figure, finish, grid, points
from .study import Table

SIMILAR = 0.05
"""CTRs this close to each other, as a share, count as similar."""
FIG2 = "ubm-fig2"
COLUMNS = ("regret", "clicks", "reward")
SWEEPS = [sweep(FIG2, 5_000, n_items=10, n_features=20)]
"""All agents in the UBM with K = 3, 4, 5 and 6, on three instances: C2UCB, PBM-, CM-, DCM- and
UBM-LinUCB with each α, and PBM-UCB. Horizon, runs and features are the paper's; never scaled.
"""


def similar_but_cm(results: Results) -> Finding:
    """Whether with short lists C2UCB, DCM- and UBM-LinUCB are alike, and CM-LinUCB is lower."""
    curves, findings = results[FIG2], {}
    need_room(curves, [SHORT], [BASELINE])
    alike = (BASELINE, "DCMLinUCB", OURS)
    for kind in KINDS:
        ends = {agent: ctr(curves, SHORT, agent, kind) for agent in (*alike, "CMLinUCB")}
        gaps = [
            estimate(ends[a] / ends[b] - 1).within(-SIMILAR, SIMILAR)
            for a, b in ((alike[1], alike[0]), (alike[2], alike[0]), (alike[2], alike[1]))
        ]
        low = estimate(ends["CMLinUCB"] / np.minimum.reduce([ends[a] for a in alike]) - 1)
        means = ", ".join(f"{agent} {values.mean():.3f}" for agent, values in ends.items())
        words = f"{means}; CMLinUCB {percent(low)} against the lowest of the others"
        findings[kind] = all_of(words, [*gaps, low.below(0.0)])
    return several(findings)


def outperforms(results: Results) -> Finding:
    """Whether UBM-LinUCB has the highest CTRs in the mean over the lengths of the list."""
    need_room(results[FIG2], POSITIONS, [BASELINE])
    findings = {}
    for kind, other in product(KINDS, (BASELINE, "CMLinUCB", "DCMLinUCB")):
        ours, theirs = (
            np.mean([ctr(results[FIG2], k, agent, kind) for k in POSITIONS], axis=0)
            for agent in (OURS, other)
        )
        gain = estimate(ours / theirs - 1)
        findings[f"{kind}, {other}"] = gain.above(0.0)._replace(measured=percent(gain))
    return several(findings)


STATEMENTS = [
    Statement(
        "When K=3, contextual bandit algorithms perform similarly except CM-LinUCB.",
        "section 6.3.1",
        "With K = 3 C2UCB, DCM- and UBM-LinUCB are within 5 % (ours) of each other. CM-LinUCB is "
        "below them. Both hold for CTR_sum and for CTR_set.",
        similar_but_cm,
    ),
    Statement(
        "When K becomes larger, the performance of C2UCB declines dramatically and other "
        "contextual bandit algorithms outperform it, since C2UCB does not consider the impact of "
        "positions.",
        "section 6.3.1",
        "With K = 6 CM-, DCM- and UBM-LinUCB have higher CTRs than C2UCB. UBM-LinUCB's lead over "
        "it is larger than with K = 3. We read “declines” as against the others, because here "
        "every CTR grows with K.",
        lambda results: several(
            {
                "with K = 6": ahead(results[FIG2], [LONG], RIVALS, [BASELINE]),
                "lead with K = 3 and 6": lead_grows(results[FIG2]),
            }
        ),
    ),
    Statement(
        "When K is larger than 4, the CTRs change slightly and do not increase anymore, since "
        "91.6% of users click one web and 98.4% of users clicks 2 web pages or less.",
        "section 6.3.1",
        "The paper says that this follows from how rarely users of its log click twice. Ours "
        "click more often.",
    ),
    Statement(
        "Results on two CTR metrics show that our algorithm outperforms the other contextual "
        "bandit algorithms.",
        "abstract",
        "In the mean over K = 3, 4, 5, 6 UBM-LinUCB has higher CTRs than C2UCB, CM- and "
        "DCM-LinUCB.",
        outperforms,
    ),
]


def table(results: Results) -> Table:
    """Every CTR at the end, with its lift over C2UCB."""
    return ctr_table(results[FIG2])


def seen(results: Results) -> Iterator[str]:
    """The best list, and the α of the theorem."""
    yield headroom(results[FIG2])
    yield other_alpha(results[FIG2])


def draw(results: Results) -> Figure:
    """CTR against the length of the list."""
    curves = results[FIG2]
    figure, panels = grid(2, 2)
    for axes, (reading, kind) in zip(panels, product((BEST, THEOREM), KINDS), strict=True):
        for agent in AGENTS:
            ends = [ctr(curves, k, agent, kind, reading) for k in POSITIONS]
            points(axes, POSITIONS, ends, agent)
        axes.set(title=f"{kind}, {reading}", xlabel="K", xticks=POSITIONS, ylabel=kind)
    return finish(figure, panels, results, f"CTR over {curves.horizon:,} sessions")
