"""Regret beside the lower bound of the position-based model, real queries.

Lagrée et al. 2016, section 4 and theorem 6.

We had the paper's text up to theorem 11, but not its experiments. No simulation decides its
theorems. So this page tests nothing.

We may not ship the paper's advertisements (KDD Cup 2012). Our queries of the KDD Cup are models of
a public collection, fitted to eight of its queries. They have 5 to 11 items, K = 3, and attractions
from 0.004 to 0.15. The others are the first eight shipped queries of web search. Agents that
require the examination know that of the model that plays. PBM-UCB has ε = 0, and the theorem has ε
> 0. Horizon and runs are our choice.
"""

from __future__ import annotations

from .claims import Statement
from .pbm_bound import bound_sweep, bound_table, draw_beside_bound

QUERIES = "pbm-queries"
SWEEPS = [bound_sweep(QUERIES, runs=8, queries=8)]
"""`bound_sweep`: all `AGENTS` of `pbm_bound` (PBM-PIE, PBM-TS, BC-MPTS, PBM-UCB, Ranked KL-UCB,
CascadeUCB1 in both readings of several clicks) in the PBM, a million sessions.
"""
STATEMENTS = [
    Statement(
        "Following the ideas of [7], it is possible to obtain a logarithmic regret upper bound for "
        "this algorithm.",
        "section 4, of PBM-UCB",
        "It is a theorem about an order of growth, which no simulation decides. The figure shows "
        "regret.",
    ),
    Statement(
        "For the PBM, the following lower bound holds for any uniformly efficient algorithm",
        "theorem 6",
        "It is a limit for T → ∞. Regret below it after a million sessions contradicts nothing. "
        "The table has the ratios.",
    ),
    Statement(
        "computationally efficient algorithms that display good empirical and theoretical "
        "performance",
        "abstract",
        "“Good” has no number, and the section on experiments was not at hand.",
    ),
]
table, draw = bound_table, draw_beside_bound
