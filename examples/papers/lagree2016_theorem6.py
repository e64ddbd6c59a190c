"""Regret compared with the lower bound of the position-based model.

Lagrée et al. 2016, section 4 and theorem 6.

We had the paper's text up to theorem 11, but not its experiments, and no simulation can decide its
theorems. So this page compares regret with the bound, and tests no statement.

The users are the instance lagree2016-small, one web search query with many runs, and the first
eight shipped queries. We may not ship the paper's advertisements (KDD Cup 2012). Agents that
require the examination are told the true one. PBM-UCB has ε = 0, where the theorem has ε > 0. The
horizon and the number of runs are our choice.
"""

from __future__ import annotations

import sys

import figures
import numpy as np
import study
from study import Statement, estimate, number

from clickgym.agents.shared_kernels import kl

PBM = "PBMRank-v0"
CASCADE = ["CascadeUCB1", "CascadeUCB1:feedback=first_click"]
AGENTS = ["PBMPIE", "PBMTS", "BCMPTS", "PBMUCB", "RankedKLUCB", *CASCADE]


def bound_per_log(env) -> float:
    """The factor of log n in the asymptotic lower bound of Lagrée et al., Theorem 6.

    ``Σ_{k>K} min_l Δ_{k,l} / KL(χ_l α_k, χ_l α_K)``, where ``Δ_{k,l}`` is the regret of the list
    ``(1, …, l-1, k, l, …, K-1)`` and l runs over the K positions: the least regret of any uniformly
    efficient agent that knows χ. The paper takes α and χ to decrease strictly; both are sorted
    here, and χ > 0 and α_K > α_{K+1}.

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


def play(options):
    """A hundred runs on each of two instances, and eight on each of eight queries."""
    return {
        "small": beside_bound(options, "small", ["lagree2016-small"], 100),
        "realistic": beside_bound(options, "realistic", options.queries[:1], 100),
        "queries": beside_bound(options, "queries", options.queries[:8], 8),
    }


def beside_bound(options, part, instances, runs):
    """Regret, and the factor of the bound of each instance."""
    horizon = options.horizon or 1_000_000
    table = study.played(options, part, [PBM], AGENTS, horizon, runs, instances)
    table = study.with_fact(table, "lower_bound", bound_per_log, [PBM], instances)
    return study.compact(table, columns=["regret", "lower_bound"])


def lower_bound(curves):
    """``(steps,)`` the lower bound, in the mean over the instances."""
    return curves.by_instance(PBM, AGENTS[0], "lower_bound")[:, 0].mean() * np.log(curves.steps)


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


def table(results):
    """Regret at the end, and as a multiple of the bound."""
    horizon = max(curves.horizon for curves in results.values())
    rows = [["part", "agent", "regret at the end", "times the bound"]]
    for part, curves in results.items():
        for agent in AGENTS:
            regret = estimate(curves.values(PBM, agent))
            mean = estimate(curves.by_run(PBM, agent)[:, -1]).mean
            rows.append([part, agent, str(regret), number(mean / lower_bound(curves)[-1])])
    title = f"Regret after {horizon:,} sessions, and its mean as a multiple of the lower bound"
    return title, rows


def draw(results):
    """Regret and the bound, a panel for each part; an agent that does not learn leaves it."""
    figure, panels = figures.grid(len(results), label="cumulative regret")
    for axes, curves in zip(panels, results.values(), strict=True):
        late, bound = curves.steps >= 10, lower_bound(curves)
        for agent in AGENTS:
            figures.band(axes, curves.steps[late], curves.by_run(PBM, agent)[:, late], agent)
        axes.plot(curves.steps[late], bound[late], label="lower bound (Theorem 6)", **figures.BOUND)
        n = len(curves.instances)
        title = curves.instances[0] if n == 1 else f"mean over {n} queries"
        axes.set(xscale="log", title=title, xlabel="session")
        ends = [curves.by_run(PBM, agent)[:, -1].mean() for agent in AGENTS[:4]]
        axes.set_ylim(0, 1.6 * max(*ends, bound[-1]))
    return figures.finish(figure, "Regret beside the lower bound")


if __name__ == "__main__":
    study.main(sys.modules[__name__])
