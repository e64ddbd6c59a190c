"""Regret beside the lower bound of the position-based model.

Lagrée et al. 2016, section 5.

Horizon and runs are our choice. The realistic instance is yandex-9982, or the first of --instances.
"""

from __future__ import annotations

from collections.abc import Iterator

from .claims import LINEAR_RULE, Claim, Results, less_regret, linear, several
from .pbm_bound import ABOVE, BIASED, NEAR, PBM, bound_sweep, draw_beside_bound, near_bound

SMALL, REALISTIC = "pbm-small", "pbm-realistic"
SWEEPS = [
    bound_sweep(SMALL, runs=100, instances=["lagree2016-small"]),
    bound_sweep(REALISTIC, runs=100, queries=1),
]
"""`bound_sweep`: all `AGENTS` of `pbm_bound` (PBM-PIE, PBM-TS, BC-MPTS, PBM-UCB, Ranked KL-UCB,
CascadeUCB1 in both readings of several clicks) in the PBM, a million sessions.
"""


def claims(results: Results) -> Iterator[Claim]:
    """What the paper says of its synthetic experiments.

    A test asks whether the mean of independent values lies between two bounds: yes if its 95 %
    interval (Student's t) lies between them, no if it lies outside, else it cannot tell; all
    statements are judged together by Holm's procedure. `several` asks that all tests hold; one that
    surely does not contradicts the statement.

    All intervals are over the runs. `near_bound` asks whether regret at the end is between half and
    twice the bound, `less_regret` whether the gap between two agents' regret at the end is above 0;
    `linear` asks whether the rate of regret in the last fifth of the sessions less 0.8 times that
    in the second fifth is above 0. A run shorter than the paper's cannot contradict a statement
    marked `late`.
    """
    for agent in NEAR:
        yield Claim(
            f"{agent} is near the lower bound (small)",
            "its regret at the end is between half and twice the bound, which holds to first order "
            "in log n",
            near_bound(results[SMALL], agent),
        )
    for worse, words in ABOVE.items():
        pairs = [(part, better) for part in results for better in NEAR]
        yield Claim(
            words,
            "more regret at the end, on both",
            several({f"{p} {a}": less_regret(results[p], PBM, a, worse) for p, a in pairs}),
        )
    for agent, reading in BIASED.items():
        yield Claim(
            f"CascadeUCB1 ({reading}) is biased",
            f"{LINEAR_RULE}, on both",
            several({part: linear(curves, PBM, agent) for part, curves in results.items()}),
            late=True,
        )


draw = draw_beside_bound
