"""The lower bound of Lagrée et al. 2016 on regret in the position-based model, and what the two
studies of the paper share: agents, sweeps, table, figure.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clickgym.agents.kernels import kl

from .claims import Curves, Results, Values, estimate, number
from .plots import BOUND, Figure, bands, finish, grid
from .study import LAST_ENDS, Sweep, Table

PBM = "PBMRank-v0"
NEAR = ("PBMPIE", "PBMTS")
BIASED = {"CascadeUCB1": "last_click", "CascadeUCB1:feedback=first_click": "first_click"}
AGENTS = (*NEAR, "BCMPTS", "PBMUCB", "RankedKLUCB", *BIASED)


def bound_per_log(env: Any) -> float:
    """The factor of log n in the asymptotic lower bound of Lagrée et al., Theorem 6.

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
    return curves.by_instance(PBM, AGENTS[0], "lower_bound")[:, 0].mean() * np.log(curves.steps)


def bound_table(results: Results) -> Table:
    """Regret at the end, and as a multiple of the bound."""
    rows = [["part", "agent", "regret at the end", "times the bound"]]
    for part, curves in results.items():
        for agent in AGENTS:
            values = curves.values(PBM, agent)
            times = estimate(curves.by_run(PBM, agent)[:, -1]).mean / lower_bound(curves)[-1]
            rows.append([part, agent, str(estimate(values)), number(times)])
    return "Regret after a million sessions, and its mean as a multiple of the lower bound", rows


def bound_sweep(name: str, **kept: Any) -> Sweep:
    """Horizon and runs are our choice; the paper does not name them."""
    facts = {"lower_bound": bound_per_log}
    return Sweep(name, [PBM], AGENTS, 1_000_000, facts=facts, ends=LAST_ENDS, **kept)


def draw_beside_bound(results: Results) -> Figure:
    """Regret and the bound, a panel for each sweep; an agent that does not learn leaves it."""
    figure, panels = grid(len(results), labels=["cumulative regret"])
    for axes, curves in zip(panels, results.values(), strict=True):
        bands(axes, curves, PBM, AGENTS, first=10)
        late, bound = curves.steps >= 10, lower_bound(curves)
        axes.plot(curves.steps[late], bound[late], label="lower bound (Theorem 6)", **BOUND)
        n = len(curves.instances)
        title = curves.instances[0] if n == 1 else f"mean over {n} queries"
        axes.set(xscale="log", title=title, xlabel="session")
        ends = [curves.by_run(PBM, agent)[:, -1].mean() for agent in AGENTS[:4]]
        axes.set_ylim(0, 1.6 * max(*ends, bound[-1]))
    return finish(figure, panels, results, "Regret beside the lower bound")
