"""Regret beside the lower bound of the position-based model, real queries.

Lagrée et al. 2016, section 5, search advertising.

The paper's real data are advertisements of the KDD Cup 2012, which cannot be shipped;
`examples/convert_queries.py` reads a copy of models fitted to eight of its queries (L from 5 to 11,
K = 3, attractions from 0.004 to 0.15). Without --instances the first eight shipped queries of web
search are played. All statements are ours, predicted before the run from those about the paper's
synthetic users. Horizon and runs are our choice.
"""

from __future__ import annotations

from collections.abc import Iterator

from .claims import LINEAR_RULE, Claim, Results, less_regret, linear, several
from .pbm_bound import ABOVE, BIASED, NEAR, PBM, bound_sweep, draw_beside_bound, near_bound

QUERIES = "pbm-queries"
SWEEPS = [bound_sweep(QUERIES, runs=8, queries=8)]
"""`bound_sweep`: all `AGENTS` of `pbm_bound` (PBM-PIE, PBM-TS, BC-MPTS, PBM-UCB, Ranked KL-UCB,
CascadeUCB1 in both readings of several clicks) in the PBM, a million sessions.
"""


def claims(results: Results) -> Iterator[Claim]:
    """Statements of ours, predicted from those about the paper's synthetic users.

    A test asks whether the mean of independent values lies between two bounds: yes if its 95 %
    interval (Student's t) lies between them, no if it lies outside, else it cannot tell; all
    statements are judged together by Holm's procedure. `several` asks that all tests hold; one that
    surely does not contradicts the statement.

    `near_bound` asks whether regret at the end is between half and twice the bound, over the runs,
    each averaged over the queries. `less_regret` asks whether the gap between two agents' regret at
    the end is above 0, over the queries, each averaged over its runs; `linear` asks whether the
    rate of regret in the last fifth of the sessions less 0.8 times that in the second fifth is
    above 0, over the queries where their values are kept, else over the runs: the finding says
    which. A run shorter than the paper's cannot contradict a statement marked `late`.
    """
    curves = results[QUERIES]
    for agent in NEAR:
        yield Claim(
            f"{agent} is near the lower bound (ours)",
            "in the mean over the queries, its regret at the end is between half and twice the "
            "bound",
            near_bound(curves, agent),
        )
    for worse, words in ABOVE.items():
        yield Claim(
            f"{words} (ours)",
            "more regret at the end",
            several({better: less_regret(curves, PBM, better, worse) for better in NEAR}),
        )
    for agent, reading in BIASED.items():
        finding = linear(curves, PBM, agent)
        text = f"CascadeUCB1 ({reading}) is biased (ours)"
        yield Claim(text, LINEAR_RULE, finding, late=True)


draw = draw_beside_bound
