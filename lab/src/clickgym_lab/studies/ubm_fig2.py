"""CTR of contextual agents against the length of the list, web search.

He et al. 2020, figure 2.

The paper says both that the parameters are the theoretical ones (section 6.2) and that α is optimal
(table 1), so both are run: Theorem 3's α_t, and for each agent and K the best of that and α = 0,
0.1, 0.3, 1, chosen by the regret in the first half of the runs and measured in the second. λ is the
theorem's. PBM-UCB has no α. It knows no features: it estimates an attraction for each of the 1,000
items of the family linear (9,724 films), the same for all users. Its runs were added in version
5.0. PBM-LinUCB is not in the paper. The paper's attractions are estimates from two logs, one of
them not published; ours are linear in features drawn at random (the family linear, a seed for each
instance), with the examination of --instances, or those of a contextual instance given there. The
paper leaves open how features were scaled, although α_t depends on it, and prints of the
examination only the least and the largest. CTR_set is the probability of at least one click of the
lists shown, not a share of sessions with one: optimum - regret / T. Horizon, runs and the 20
features (10 of users, 10 of pages) are the paper's; its candidates are the pages that a user was
shown, which we read as 10, a page of results. Nothing is reduced by the scale.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from .claims import Claim, Curves, Finding, Results, estimate, percent, several
from .contextual_ctr import (
    AGENTS,
    BASELINE,
    BEST,
    KINDS,
    LEADS,
    LONG,
    POSITIONS,
    SHORT,
    THEOREM,
    WITH_MODEL,
    both_studies,
    ctr_at_end,
    ctr_table,
    lift,
    sweep,
)
from .plots import Figure, finish, grid, points
from .study import Table

SIMILAR = 0.05
"""CTRs this close to each other, as a share, count as similar."""
FIG2 = "ubm-fig2"
COLUMNS = ("regret", "clicks", "reward")
SWEEPS = [sweep(FIG2, 5_000, 10, n_items=10, n_features=20)]
"""All agents in the UBM with K = 3, 4, 5 and 6, on the first three instances: C2UCB, PBM-, CM-,
DCM- and UBM-LinUCB with each α, and PBM-UCB. Horizon, runs and features are the paper's; never
scaled.
"""


def claims(results: Results) -> Iterator[Claim]:
    """What the paper says of its figure 2, with the α of the theorem and with the best α.

    A test asks whether the mean of independent values lies between two bounds: yes if its 95 %
    interval (Student's t) lies between them, no if it lies outside, else it cannot tell; all
    statements are judged together by Holm's procedure. `several` asks that all tests hold; one that
    surely does not contradicts the statement.

    All intervals are over the runs, each averaged over the instances: ten, or five with the best α,
    which the other five chose. `both_studies` yields three statements: UBM-LinUCB is highest at
    every K, its lead over C2UCB is larger with K = 6 than with K = 3, and C2UCB is behind all
    LinUCB with K = 6; each test is of a difference of CTRs. A run shorter than the paper's cannot
    contradict a statement marked `late`.
    """
    curves, others = results[FIG2], WITH_MODEL
    for reading in (THEOREM, BEST):
        yield from both_studies(curves, reading, f"in its table 1, for another log: {LEADS}")
        similar = [(agent, kind) for agent in others if agent != "CMLinUCB" for kind in KINDS]
        yield Claim(
            f"With K = 3 all but CM-LinUCB perform similarly ({reading})",
            f"within {SIMILAR:.0%} of C2UCB",
            several({f"{a} K = 3 {c}": near(curves, a, reading, c) for a, c in similar}),
        )
        yield Claim(
            f"CM-LinUCB does not ({reading})",
            f"more than {SIMILAR:.0%} below C2UCB",
            several({f"K = 3 {c}": far_below(curves, "CMLinUCB", reading, c) for c in KINDS}),
        )
        yield Claim(
            f"The CTR of C2UCB declines when K grows ({reading})",
            "lower with K = 6 than with K = 3",
            several({kind: declines(curves, reading, kind) for kind in KINDS}),
        )
        pairs = list(product(others, KINDS))
        yield Claim(
            f"Those of the others change slightly from K = 4 on ({reading})",
            f"with K = 6 within {SIMILAR:.0%} of that with K = 4",
            several({f"{a} {c}": saturates(curves, a, reading, c) for a, c in pairs}),
        )


def near(curves: Curves, agent: str, reading: str, kind: str) -> Finding:
    """Whether an agent's CTR is about that of C2UCB with short lists."""
    gap = estimate(lift(curves, SHORT, agent, reading, kind))
    return gap.within(-SIMILAR, SIMILAR, words=f"{percent(gap)} over C2UCB")


def far_below(curves: Curves, agent: str, reading: str, kind: str) -> Finding:
    """Whether it is clearly below."""
    gap = estimate(lift(curves, SHORT, agent, reading, kind))
    return gap.below(-SIMILAR, f"{percent(gap)} over C2UCB")


def declines(curves: Curves, reading: str, kind: str) -> Finding:
    """Whether C2UCB's CTR is lower with long lists."""
    few, many = (ctr_at_end(curves, k, BASELINE, reading, kind) for k in (SHORT, LONG))
    growth = estimate(many - few)
    words = f"{few.mean():.4f}, then {many.mean():.4f}, by {growth}"
    return growth.below(0.0, words)


def saturates(curves: Curves, agent: str, reading: str, kind: str) -> Finding:
    """Whether an agent's CTR is about the same with long lists as with K = 4."""
    four, six = (ctr_at_end(curves, k, agent, reading, kind) for k in (4, LONG))
    growth = estimate(six / four - 1)
    return growth.within(-SIMILAR, SIMILAR, words=percent(growth))


def table(results: Results) -> Table:
    """Every CTR at the end, with its lift over C2UCB."""
    return ctr_table(results[FIG2])


def draw(results: Results) -> Figure:
    """CTR against the length of the list."""
    curves = results[FIG2]
    figure, panels = grid(2, 2)
    for axes, (reading, kind) in zip(panels, product((THEOREM, BEST), KINDS), strict=True):
        for agent in AGENTS:
            ends = [ctr_at_end(curves, k, agent, reading, kind) for k in POSITIONS]
            points(axes, POSITIONS, ends, agent)
        axes.set(title=f"{kind}, {reading}", xlabel="K", xticks=POSITIONS, ylabel=kind)
    return finish(figure, panels, results, f"CTR over {curves.horizon:,} sessions")
