"""Lagrée et al. 2016, the position-based model: experiments beside the lower bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...envs.instances import DEFAULT_INSTANCE
from ...runner.theory.bounds import pbm_lower
from .plots import band, finish, grid
from .study import (
    LINEAR_RULE,
    PBM,
    READINGS,
    Curves,
    Evidence,
    Finding,
    Part,
    Statement,
    Study,
    Values,
    estimate,
    less,
    linear,
    several,
    total,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["STUDIES"]

LAGREE_AGENTS = (
    "PBMPIE", "PBMTS", "BCMPTS", "PBMUCB", "RankedKLUCB", "CascadeUCB1", "CascadeUCB1:feedback=first_click",
)  # fmt: skip
LAGREE = ("pbm-small", "pbm-realistic")


LOWER_BOUND = "lower_bound"


def bound_per_log(env: Any) -> float:
    """What the asymptotic lower bound of Lagrée et al., Theorem 6, is multiplied by log n from."""
    return float(pbm_lower(env, math.e))


def lower_bound(curves: Curves) -> Values:
    """``(steps,)`` the lower bound on the only instance."""
    return curves.ends(PBM, LAGREE_AGENTS[0], LOWER_BOUND)[0, 0] * np.log(curves.steps)


def _near_bound(agent: str, evidence: Evidence) -> Finding:
    curves = evidence["pbm-small"]
    ratio = estimate(curves.units(PBM, agent)[:, -1] / lower_bound(curves)[-1])
    return Finding(f"{ratio} times the bound", ratio.within(0.5, 2.0))


def _ahead(better: Sequence[str], worse: str, evidence: Evidence) -> Finding:
    return several(
        {
            f"{part} {agent}": less(evidence[part], PBM, agent, worse, total(evidence[part]))
            for part in LAGREE
            for agent in better
        }
    )


def _biased(agent: str, evidence: Evidence) -> Finding:
    return several({part: linear(evidence[part], PBM, agent) for part in LAGREE})


def _pbm_synthetic() -> Study:
    statements = [
        *(
            Statement(
                f"{agent} is near the lower bound (small)",
                "its regret at the end is between half and twice the bound, which holds to first order in log n",
                partial(_near_bound, agent),
            )
            for agent in ("PBMPIE", "PBMTS")
        ),
        Statement(
            "PBM-UCB is above PBM-PIE and PBM-TS",
            "more regret at the end, on both",
            partial(_ahead, ("PBMPIE", "PBMTS"), "PBMUCB"),
        ),
        Statement(
            "Ranked KL-UCB, which is not told the examination, is above both",
            "more regret at the end, on both",
            partial(_ahead, ("PBMPIE", "PBMTS"), "RankedKLUCB"),
        ),
        *(
            Statement(
                f"CascadeUCB1 ({reading}) is biased", LINEAR_RULE + ", on both", partial(_biased, agent), late=True
            )
            for agent, reading in zip(LAGREE_AGENTS[-2:], READINGS.values(), strict=True)
        ),
    ]  # fmt: skip
    settings: Any = {"windows": 20, "facts": {LOWER_BOUND: bound_per_log}}
    return Study(
        "Regret beside the lower bound of the position-based model",
        "Lagrée et al. 2016, section 5",
        (
            Part("pbm-small", (PBM,), LAGREE_AGENTS, 10**6, 100, 1, lambda queries: ["lagree2016-small"], **settings),
            Part("pbm-realistic", (PBM,), LAGREE_AGENTS, 10**6, 100, 1, **settings),
        ),
        tuple(statements),
        f"Horizon and runs are our choice. The realistic instance is {DEFAULT_INSTANCE}, or the first of --instances.",
        _draw,
    )


def _draw(evidence: Evidence) -> Figure:
    figure, panels = grid(2)
    for axes, part in zip(panels, LAGREE, strict=True):
        curves = evidence[part]
        late = curves.steps >= 10
        for agent in LAGREE_AGENTS:
            band(axes, curves.steps[late], curves.units(PBM, agent)[:, late], agent)
        bound = lower_bound(curves)
        axes.plot(curves.steps[late], bound[late], color="black", linewidth=1.2, linestyle=":", label="lower bound (Theorem 6)")
        axes.set(xscale="log", title=curves.instances[0], xlabel="session")
        ends = [estimate(curves.units(PBM, agent)[:, -1]).mean for agent in ("PBMUCB", "BCMPTS", "PBMPIE", "PBMTS")]
        axes.set_ylim(0, 1.6 * max(*ends, bound[-1]))  # an agent that does not learn leaves the panel
    panels[0].set_ylabel("cumulative regret")
    return finish(figure, panels, evidence, "Regret beside the lower bound")


STUDIES: dict[str, Study] = {
    "pbm-synthetic": _pbm_synthetic(),
}
