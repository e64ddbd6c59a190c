"""Regret compared with the lower bound of the position-based model.

Lagrée et al. 2016, section 4 and theorem 6.

This page compares the regret of several agents with the paper's lower bound. It tests no sentence
of the paper: we had the paper's text up to theorem 11, but not its section on experiments, and no
simulation can decide whether a theorem is true.

The users come from the instance `lagree2016-small` (the part *small*), from one web search query
with many runs (*realistic*), and from the first eight shipped queries (*queries*). We are not
allowed to ship the advertisements of the paper (KDD Cup 2012). Agents that require the examination
probabilities are told the true ones. PBM-UCB uses ε = 0, whereas the theorem requires ε > 0. We
chose the horizon and the number of runs.
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
    """Return the factor of log n in the asymptotic lower bound of Lagrée et al., Theorem 6.

    No uniformly efficient agent that knows χ has less regret than this factor times log n. The
    factor is ``Σ_{k>K} min_l Δ_{k,l} / KL(χ_l α_k, χ_l α_K)``, where ``Δ_{k,l}`` is the regret of
    the list ``(1, …, l-1, k, l, …, K-1)``, and l runs over the K positions. The paper assumes that
    α and χ decrease strictly. This function sorts both; it needs χ > 0 and α_K > α_{K+1}.

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
    """Play a hundred runs on each of two instances, and eight runs on each of eight queries."""
    return {
        "small": beside_bound(options, "small", ["lagree2016-small"], 100),
        "realistic": beside_bound(options, "realistic", options.queries[:1], 100),
        "queries": beside_bound(options, "queries", options.queries[:8], 8),
    }


def beside_bound(options, part, instances, runs):
    """Play one part, and return its regret and the factor of the bound for each instance."""
    horizon = options.horizon or 1_000_000
    table = study.played(options, part, [PBM], AGENTS, horizon, runs, instances)
    table = study.with_fact(table, "lower_bound", bound_per_log, [PBM], instances)
    return study.compact(table, columns=["regret", "lower_bound"])


def lower_bound(curves):
    """Return the lower bound at each step, ``(steps,)``, averaged over the instances."""
    return curves.by_instance(PBM, AGENTS[0], "lower_bound")[:, 0].mean() * np.log(curves.steps)


def statements(results):
    return [
        Statement(
            "Following the ideas of [7], it is possible to obtain a logarithmic regret upper bound "
            "for this algorithm.",
            "section 4, on PBM-UCB",
            "The sentence is about an order of growth, and no simulation can decide it. The figure "
            "shows the regret.",
        ),
        Statement(
            "For the PBM, the following lower bound holds for any uniformly efficient algorithm",
            "theorem 6",
            "The bound is a limit for T → ∞, so regret below the bound after a million sessions "
            "does not contradict it. The table above shows regret as a multiple of the bound.",
        ),
        Statement(
            "computationally efficient algorithms that display good empirical and theoretical "
            "performance",
            "abstract",
            "The sentence does not say what “good” means in numbers, and we did not have the "
            "section on experiments.",
        ),
    ]


def table(results):
    """Return the table of regret at the end, also as a multiple of the bound."""
    horizon = max(curves.horizon for curves in results.values())
    rows = [["part", "agent", "regret at the end", "times the bound"]]
    for part, curves in results.items():
        for agent in AGENTS:
            regret = estimate(curves.values(PBM, agent))
            mean = estimate(curves.by_run(PBM, agent)[:, -1]).mean
            rows.append([part, agent, str(regret), number(mean / lower_bound(curves)[-1])])
    title = (
        f"Each agent's regret after {horizon:,} sessions, and its mean regret as a multiple of the "
        "lower bound"
    )
    return title, rows


def draw(results):
    """Draw regret and the bound, with a panel for each part. The curve of an agent that does not
    learn leaves its panel.
    """
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
