"""Lagrée et al. 2016, the position-based model: regret beside the lower bound, on the paper's
synthetic users and on real queries.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from clickgym.agents.kernels import kl
from clickgym.envs import DEFAULT_INSTANCE

from .claims import (
    LINEAR_RULE,
    Claim,
    Curves,
    Finding,
    Results,
    Values,
    estimate,
    less_regret,
    linear,
    several,
)
from .plots import BOUND, Figure, bands, finish, grid
from .study import Study, Sweep, main

PBM = "PBMRank-v0"
NEAR = ("PBMPIE", "PBMTS")
BIASED = {"CascadeUCB1": "last_click", "CascadeUCB1:feedback=first_click": "first_click"}
AGENTS = (*NEAR, "BCMPTS", "PBMUCB", "RankedKLUCB", *BIASED)
ABOVE = {
    "PBMUCB": "PBM-UCB is above PBM-PIE and PBM-TS",
    "RankedKLUCB": "Ranked KL-UCB, which is not told the examination, is above both",
}
SMALL, REALISTIC, QUERIES = "pbm-small", "pbm-realistic", "pbm-queries"


def bound_per_log(env: Any) -> float:
    """What log n is multiplied by in the asymptotic lower bound of Lagrée et al., Theorem 6.

    ``Σ_{k>K} min_l Δ_{k,l} / KL(χ_l α_k, χ_l α_K)``, where ``Δ_{k,l}`` is the regret of the list
    ``(1, …, l-1, k, l, …, K-1)`` and l runs over the K positions: the least regret of any uniformly
    efficient agent that knows χ. The paper takes α and χ to decrease strictly; both are sorted
    here.

    Args:
        env: of a position-based model with χ > 0 and α_K > α_{K+1}.

    Example:
        >>> import gymnasium as gym
        >>> env = gym.make("PBMRank-v0", attraction=[0.5, 0.25], examination=[0.8])
        >>> round(float(bound_per_log(env) * np.log(1000)), 3)
        15.096
    """
    model = env.unwrapped.model
    n_positions, attraction = model.n_positions, np.sort(model.attraction)[::-1]
    examination, best = np.sort(model.examination)[::-1], attraction[: model.n_positions]
    coefficient = 0.0
    for worse in attraction[n_positions:]:
        ratios = []
        for place, seen in enumerate(examination):
            explored = np.insert(best[:-1], place, worse)
            regret = float(examination @ (best - explored))
            ratios.append(regret / kl(seen * worse, seen * best[-1]))
        coefficient += min(ratios)
    return coefficient


def lower_bound(curves: Curves) -> Values:
    """``(steps,)`` the lower bound, in the mean over the instances."""
    return curves.ends(PBM, AGENTS[0], "lower_bound")[:, 0].mean() * np.log(curves.steps)


def near_bound(curves: Curves, agent: str) -> Finding:
    """Whether regret at the end is about the bound."""
    multiple = estimate(curves.units(PBM, agent)[:, -1] / lower_bound(curves)[-1])
    return multiple.within(0.5, 2.0, " times the bound")


def _sweep(name: str, **kept: Any) -> Sweep:
    """Horizon and runs are our choice; the paper does not name them."""
    return Sweep(name, [PBM], AGENTS, 1_000_000, facts={"lower_bound": bound_per_log}, **kept)


# ---------------------------------------------------------------------------------- synthetic users


SWEEPS_SYNTHETIC = [
    _sweep(SMALL, runs=100, instances=["lagree2016-small"]),
    _sweep(REALISTIC, runs=100, queries=1),
]


def claims_synthetic(results: Results) -> Iterator[Claim]:
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


# ------------------------------------------------------------------------------------- real queries


SWEEPS_QUERIES = [_sweep(QUERIES, runs=8, queries=8)]


def claims_queries(results: Results) -> Iterator[Claim]:
    """Statements of ours, predicted from those about the paper's synthetic users."""
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


def draw(results: Results) -> Figure:
    """Regret and the bound, a panel for each sweep; an agent that does not learn leaves it."""
    figure, panels = grid(len(results), labels=["cumulative regret"])
    for axes, curves in zip(panels, results.values(), strict=True):
        bands(axes, curves, PBM, AGENTS, first=10)
        late, bound = curves.steps >= 10, lower_bound(curves)
        axes.plot(curves.steps[late], bound[late], label="lower bound (Theorem 6)", **BOUND)
        n = len(curves.instances)
        title = curves.instances[0] if n == 1 else f"mean over {n} queries"
        axes.set(xscale="log", title=title, xlabel="session")
        ends = [curves.units(PBM, agent)[:, -1].mean() for agent in AGENTS[:4]]
        axes.set_ylim(0, 1.6 * max(*ends, bound[-1]))
    return finish(figure, panels, results, "Regret beside the lower bound")


SYNTHETIC = Study(
    "pbm-synthetic",
    "Regret beside the lower bound of the position-based model",
    "Lagrée et al. 2016, section 5",
    f"Horizon and runs are our choice. The realistic instance is {DEFAULT_INSTANCE}, or the first "
    "of --instances.",
    SWEEPS_SYNTHETIC,
    claims_synthetic,
    draw,
)
REAL = Study(
    "pbm-queries",
    "Regret beside the lower bound of the position-based model, real queries",
    "Lagrée et al. 2016, section 5, search advertising",
    "The paper's real data are advertisements of the KDD Cup 2012, which cannot be shipped; "
    "`examples/convert_queries.py` reads a copy of models fitted to eight of its queries (L from "
    "5 to 11, K = 3, attractions from 0.004 to 0.15). Without --instances the first eight "
    "shipped queries of web search are played. All statements are ours, predicted before the run "
    "from those about the paper's synthetic users. Horizon and runs are our choice.",
    SWEEPS_QUERIES,
    claims_queries,
    draw,
)

if __name__ == "__main__":
    main(SYNTHETIC, REAL)
