"""Lagrée et al. 2016, the position-based model: experiments beside the lower bound."""

from __future__ import annotations

from typing import Any

import numpy as np

from clickgym.agents.kernels import kl

from .plots import Figure, bands, finish, grid
from .study import PBM, Curves, Evidence, Finding, Values, estimate

LAGREE_AGENTS = (
    "PBMPIE",
    "PBMTS",
    "BCMPTS",
    "PBMUCB",
    "RankedKLUCB",
    "CascadeUCB1",
    "CascadeUCB1:feedback=first_click",
)
LAGREE = ("pbm-small", "pbm-realistic")
QUERIES = "pbm-queries"
LOWER_BOUND = "lower_bound"


def bound_per_log(env: Any) -> float:
    """What the asymptotic lower bound of Lagrée et al., Theorem 6, is multiplied by log n from.

    ``Σ_{k>K} min_l Δ_{k,l} / KL(χ_l α_k, χ_l α_K)``, where ``Δ_{k,l}`` is the regret of the list
    ``(1, …, l-1, k, l, …, K-1)`` and l runs over the K positions: the least regret of any uniformly
    efficient agent that knows χ. The paper takes α and χ to decrease strictly; both are sorted
    here.

    Args:
        env: of a position-based model with χ > 0 and α_K > α_{K+1}.

    Example:
        >>> import gymnasium as gym
        >>> round(bound_per_log(gym.make("PBMRank-v0", attraction=[0.5, 0.25], examination=[0.8])) * np.log(1000), 3)
        np.float64(15.096)
    """
    model = env.unwrapped.model
    n_positions, attraction = model.n_positions, np.sort(model.attraction)[::-1]
    examination, last = np.sort(model.examination)[::-1], attraction[model.n_positions - 1]
    coefficient = 0.0
    for worse in attraction[n_positions:]:
        ratios = []
        for place in range(n_positions):
            explored = np.insert(attraction[: n_positions - 1], place, worse)
            regret = float(examination @ (attraction[:n_positions] - explored))
            ratios.append(regret / kl(examination[place] * worse, examination[place] * last))
        coefficient += min(ratios)
    return coefficient


def lower_bound(curves: Curves) -> Values:
    """``(steps,)`` the lower bound, in the mean over the instances."""
    return curves.ends(PBM, LAGREE_AGENTS[0], LOWER_BOUND)[:, 0].mean() * np.log(curves.steps)


def near_bound(curves: Curves, agent: str) -> Finding:
    """Whether regret at the end is about the bound."""
    return estimate(curves.units(PBM, agent)[:, -1] / lower_bound(curves)[-1]).finding(
        " times the bound", 0.5, 2.0
    )


def draw(evidence: Evidence) -> Figure:
    """Regret and the bound, a panel for each part."""
    figure, panels = grid(len(evidence), labels=["cumulative regret"])
    for axes, curves in zip(panels, evidence.values(), strict=True):
        late = curves.steps >= 10
        bands(axes, curves, PBM, LAGREE_AGENTS, late)
        bound = lower_bound(curves)
        axes.plot(
            curves.steps[late],
            bound[late],
            color="black",
            linewidth=1.2,
            linestyle=":",
            label="lower bound (Theorem 6)",
        )
        title = (
            curves.instances[0]
            if len(curves.instances) == 1
            else f"mean over {len(curves.instances)} queries"
        )
        axes.set(xscale="log", title=title, xlabel="session")
        ends = [
            estimate(curves.units(PBM, agent)[:, -1]).mean
            for agent in ("PBMUCB", "BCMPTS", "PBMPIE", "PBMTS")
        ]
        axes.set_ylim(
            0, 1.6 * max(*ends, bound[-1])
        )  # an agent that does not learn leaves the panel
    return finish(figure, panels, evidence, "Regret beside the lower bound")
