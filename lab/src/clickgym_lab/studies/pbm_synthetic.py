"""Regret beside the lower bound of the position-based model, two kinds of users.

Lagrée et al. 2016, theorem 6.

We had the paper's text up to theorem 11, but not its experiments. So this page tests nothing (see
pbm-queries). The users are the instance lagree2016-small, and one query of web search. Agents that
require the examination know it. Horizon and runs are our choice. The lower bound is a limit for T →
∞. Regret below it after a million sessions contradicts nothing.
"""

from __future__ import annotations

from .pbm_bound import bound_sweep, bound_table, draw_beside_bound

SMALL, REALISTIC = "pbm-small", "pbm-realistic"
SWEEPS = [
    bound_sweep(SMALL, runs=100, instances=["lagree2016-small"]),
    bound_sweep(REALISTIC, runs=100, queries=1),
]
"""`bound_sweep`: all `AGENTS` of `pbm_bound` (PBM-PIE, PBM-TS, BC-MPTS, PBM-UCB, Ranked KL-UCB,
CascadeUCB1 in both readings of several clicks) in the PBM, a million sessions.
"""
table, draw = bound_table, draw_beside_bound
