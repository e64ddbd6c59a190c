"""Regret beside the lower bound of the position-based model, real queries.

Lagrée et al. 2016, section 4 and theorem 6.

We had the paper's text up to theorem 11, but not its experiments. No simulation decides its
theorems. So this page tests nothing.

We may not ship the paper's advertisements (KDD Cup 2012). The users are the first eight shipped
queries of web search. Agents that require the examination know that of the model that plays.
PBM-UCB has ε = 0, and the theorem has ε > 0. Horizon and runs are our choice.
"""

from __future__ import annotations

import sys

import lagree2016_synthetic
import study
from study import Statement

draw, table = lagree2016_synthetic.draw, lagree2016_synthetic.table
"""Those of the other page."""


def play(options):
    """Eight runs on each of eight queries."""
    return {"queries": lagree2016_synthetic.beside_bound(options, options.queries[:8], 8)}


def statements(results):
    return [
        Statement(
            "Following the ideas of [7], it is possible to obtain a logarithmic regret upper bound "
            "for this algorithm.",
            "section 4, of PBM-UCB",
            "It is a theorem about an order of growth, which no simulation decides. The figure "
            "shows regret.",
        ),
        Statement(
            "For the PBM, the following lower bound holds for any uniformly efficient algorithm",
            "theorem 6",
            "It is a limit for T → ∞. Regret below it after a million sessions contradicts "
            "nothing. The table has the ratios.",
        ),
        Statement(
            "computationally efficient algorithms that display good empirical and theoretical "
            "performance",
            "abstract",
            "“Good” has no number, and the section on experiments was not at hand.",
        ),
    ]


if __name__ == "__main__":
    study.main(sys.modules[__name__])
