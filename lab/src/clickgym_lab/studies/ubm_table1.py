"""CTR of contextual agents against the length of the list, recommendation.

He et al. 2020, table 1 and figure 4.

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
lists shown, not a share of sessions with one: optimum - regret / T. The 12 candidates and 10
features are the paper's. Horizon and runs are our choice: the paper's figure 4 shows convergence
within 70,000 sessions. Its users' examination is between 0.17 and 0.55; that of the shipped
queries, between 0.08 and 0.87, depends more on the position.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from .claims import Claim, Curves, Finding, Results, Values, all_of, estimate, percent, several
from .contextual_ctr import (
    AGENTS,
    BASELINE,
    BEST,
    CONTEXT_FREE,
    CTR_SET,
    CTR_SUM,
    KINDS,
    LEADS,
    LONG,
    OURS,
    SHORT,
    THEOREM,
    WITH_MODEL,
    ahead,
    both_studies,
    ctr,
    ctr_table,
    lift,
    sweep,
    ubm,
)
from .plots import Figure, band, finish, grid
from .study import Table

LIFT = {CTR_SUM: 0.202, CTR_SET: 0.256}
"""Of UBM-LinUCB over C2UCB with K = 6, in the paper."""
TABLE1 = "ubm-table1"
COLUMNS = ("regret", "clicks", "reward")
SWEEPS = [sweep(TABLE1, 100_000, 2, n_items=12, n_features=10)]
"""All agents in the UBM with K = 3, 4, 5 and 6, on the first three instances: C2UCB, PBM-, CM-,
DCM- and UBM-LinUCB with each α, and PBM-UCB. The paper's 12 candidates and 10 features; 100,000
sessions, ten runs.
"""


def claims(results: Results) -> Iterator[Claim]:
    """What the paper says of its table 1, with the α of the theorem and with the best α.

    A test asks whether the mean of independent values lies between two bounds: yes if its 95 %
    interval (Student's t) lies between them, no if it lies outside, else it cannot tell; all
    statements are judged together by Holm's procedure. `several` asks that all tests hold; one that
    surely does not contradicts the statement.

    All intervals are over the runs, each averaged over the instances; those with the best α are
    over the half that did not choose it. `both_studies` yields three statements: UBM-LinUCB is
    highest at every K, its lead over C2UCB is larger with K = 6 than with K = 3, and C2UCB is
    behind all LinUCB with K = 6. `ahead` asks whether each difference of two CTRs is above 0. A run
    shorter than the paper's cannot contradict a statement marked `late`.
    """
    curves = results[TABLE1]
    for reading in (THEOREM, BEST):
        yield from both_studies(curves, reading, LEADS)
        yield Claim(
            f"With K = 6 CM-LinUCB is worse than DCM-LinUCB and UBM-LinUCB ({reading})",
            "lower CTR_sum and CTR_set than both",
            ahead(curves, [LONG], reading, ["DCMLinUCB", OURS], ["CMLinUCB"]),
            late=True,
        )
        yield Claim(
            "With K = 6 UBM-LinUCB is 20.2 % (CTR_sum) and 25.6 % (CTR_set) above C2UCB "
            f"({reading})",
            "between half and twice as much (the users differ, so that closer agreement cannot be "
            "expected)",
            several({kind: as_much(curves, reading, kind) for kind in KINDS}),
            paper="+20.2 % / +25.6 %",
            late=True,
        )
        yield Claim(
            f"PBM-UCB, which knows no features, performs worse than the others ({reading})",
            "lower CTR_sum and CTR_set than each other agent, with K = 3 and with K = 6",
            ahead(curves, [SHORT, LONG], reading, [BASELINE, *WITH_MODEL], [CONTEXT_FREE]),
            paper="K = 3: -7.9 / -5.7 %, K = 6: -2.1 / -2.1 %, from C2UCB",
            late=True,
        )
        yield Claim(
            f"PBM-UCB converges more slowly than the others ({reading})",
            "its CTR_sum of the first fifth of the sessions is a smaller share of that of the last "
            "fifth than for each other agent, with K = 3 and with K = 6",
            several({f"K = {k}": slower(curves, k, reading) for k in (SHORT, LONG)}),
            paper="relatively slow",
            late=True,
        )


def slower(curves: Curves, k: int, reading: str) -> Finding:
    """Whether PBM-UCB has a smaller share of its last CTR at first than each other agent."""
    shares = {agent: first_share(curves, k, agent, reading) for agent in AGENTS}
    ours = shares.pop(CONTEXT_FREE)
    slowest = min(shares, key=lambda agent: shares[agent].mean())
    words = f"{CONTEXT_FREE} {ours.mean():.3f}, {slowest} {shares[slowest].mean():.3f}"
    return all_of(words, [estimate(ours - share).below(0.0) for share in shares.values()])


def first_share(curves: Curves, k: int, agent: str, reading: str) -> Values:
    """``(runs,)`` the CTR_sum of the first fifth of the sessions as a share of that of the last."""
    clicks = ctr(curves, ubm(k), agent, reading, CTR_SUM) * curves.steps
    first, late = np.searchsorted(curves.steps, [0.2 * curves.horizon, 0.8 * curves.horizon])
    return clicks[:, first] / (clicks[:, -1] - clicks[:, late])


def as_much(curves: Curves, reading: str, kind: str) -> Finding:
    """Whether UBM-LinUCB's lead with long lists is about that of the paper."""
    gain = estimate(lift(curves, LONG, OURS, reading, kind))
    return gain.within(LIFT[kind] / 2, LIFT[kind] * 2, words=percent(gain))


PRINTED = {
    CTR_SUM: """\
C2UCB     0.592 0%     0.643 0%     0.747 0%     0.812 0%
PBM-UCB   0.545 -7.9%  0.655 +1.8%  0.744 -0.4%  0.795 -2.1%
CMLinUCB  0.578 -2.3%  0.674 +4.8%  0.771 +3.2%  0.839 +3.3%
DCMLinUCB 0.613 +3.5%  0.704 +9.5%  0.820 +9.7%  0.915 +12.7%
UBMLinUCB 0.660 +11.4% 0.781 +21.4% 0.869 +16.3% 0.976 +20.2%""",
    CTR_SET: """\
C2UCB     0.420 0%     0.440 0%     0.510 0%     0.534 0%
PBM-UCB   0.396 -5.7%  0.453 +2.9%  0.519 +1.7%  0.522 -2.1%
CMLinUCB  0.398 -5.2%  0.464 +5.4%  0.548 +7.4%  0.539 +9.3%
DCMLinUCB 0.408 -2.8%  0.474 +7.7%  0.570 +11.7% 0.614 +14.9%
UBMLinUCB 0.480 +14.2% 0.538 +22.2% 0.604 +18.4% 0.671 +25.6%""",
}
"""The paper's table: the CTR for each K with its lift over C2UCB (it cuts lifts off)."""


def table(results: Results) -> Table:
    """Ours, and below it the paper's."""
    title, rows = ctr_table(results[TABLE1])
    paper = []
    for kind, lines in PRINTED.items():
        for line in lines.splitlines():
            agent, *words = line.split()
            cells = [" ".join(pair) for pair in zip(words[::2], words[1::2], strict=True)]
            paper.append([kind, agent, "He et al.", *cells])
    return title, [*rows, *paper]


def draw(results: Results) -> Figure:
    """CTR so far with short and with long lists, the paper's figure 4."""
    curves = results[TABLE1]
    figure, panels = grid(2, 4)
    late = curves.steps * 50 >= curves.horizon
    cases = product((THEOREM, BEST), (SHORT, LONG), KINDS)
    for axes, (reading, k, kind) in zip(panels, cases, strict=True):
        for agent in AGENTS:
            values = ctr(curves, ubm(k), agent, reading, kind)[:, late]
            band(axes, curves.steps[late], values, agent)
        axes.set(title=f"K = {k} {kind}, {reading}", xlabel="session")
        axes.ticklabel_format(axis="x", style="sci", scilimits=(0, 0), useMathText=True)
    return finish(figure, panels, results, "CTR of all sessions so far")
