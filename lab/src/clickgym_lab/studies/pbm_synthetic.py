"""Lagrée et al. 2016: regret beside the lower bound, on the paper's synthetic users."""

from __future__ import annotations

from collections.abc import Iterator

from clickgym.envs import DEFAULT_INSTANCE

from .claims import LINEAR_RULE, Claim, Results, less_regret, linear, several
from .pbm_bound import ABOVE, BIASED, NEAR, PBM, bound_sweep, draw, near_bound
from .study import Study, main

SMALL, REALISTIC = "pbm-small", "pbm-realistic"
SWEEPS = [
    bound_sweep(SMALL, runs=100, instances=["lagree2016-small"]),
    bound_sweep(REALISTIC, runs=100, queries=1),
]


def claims(results: Results) -> Iterator[Claim]:
    """What the paper says of its synthetic experiments."""
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


STUDY = Study(
    "pbm-synthetic",
    "Regret beside the lower bound of the position-based model",
    "Lagrée et al. 2016, section 5",
    f"Horizon and runs are our choice. The realistic instance is {DEFAULT_INSTANCE}, or the first "
    "of --instances.",
    SWEEPS,
    claims,
    draw,
)

if __name__ == "__main__":
    main(STUDY)
