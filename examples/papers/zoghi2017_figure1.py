"""Regret per session on three problems.

Zoghi et al. 2017, figure 1.

The paper does not name its three problems, so we chose three queries. What the paper says about
this figure concerns all of its queries ("The plots are chosen to represent general trends in this
experiment."). So the page `zoghi2017_figure2` tests these sentences over all queries, and this page
tests no sentence.

The lists of five of ten items, the ten million sessions and the ten runs are the same as in the
paper. The paper does not say what CascadeKL-UCB learns from a session with several clicks. So we
run two readings of the algorithm: one learns from the last click (the default), the other from the
first click (`feedback=first_click`). BatchRank runs as printed, with one line corrected, so that a
batch with as many items as positions can go on to its next stage.
"""

from __future__ import annotations

import sys

import figures
import numpy as np
import study
from study import END, estimate

CM, PBM = "CMRank-v0", "PBMRank-v0"
AGENTS = ["CascadeKLUCB", "CascadeKLUCB:feedback=first_click", "BatchRank", "RankedExp3"]
CONVERGED = 1e-3
"""The regret per session from which the paper calls a run suboptimal."""
PANELS = {"a": (CM, "yandex-9982"), "b": (CM, "yandex-9866"), "c": (PBM, "yandex-98721")}
"""The panels of figure 1, with the queries that we chose."""


def play(options):
    """Play each agent on each of the three problems."""
    parts, horizon = {}, options.horizon or 10_000_000
    for panel, (env, query) in PANELS.items():
        table = study.played(options, panel, [env], AGENTS, horizon, 10, [query], 100)
        parts[panel] = study.compact(table)
    return parts


def table(results):
    rows = [["agent", *(f"{panel}: {env}, {query}" for panel, (env, query) in PANELS.items())]]
    for agent in AGENTS:
        ends = [results[panel].rate(env, agent, *END) for panel, (env, _) in PANELS.items()]
        rows.append([agent, *(str(estimate(values)) for values in ends)])
    return "Regret per session in the last hundredth of the sessions", rows


def seen(results):
    """Report when BatchRank converges."""
    for panel, (env, _) in PANELS.items():
        curves = results[panel]
        ends = np.searchsorted(curves.steps, np.linspace(0, curves.horizon, 101)[1:].round())
        regret = np.diff(curves.by_run(env, "BatchRank").mean(axis=0)[ends], prepend=0.0)
        above = np.flatnonzero(regret / np.diff(curves.steps[ends], prepend=0) > CONVERGED)
        last = int(curves.steps[ends[above[-1]]]) if len(above) else 0
        words = f"Panel {panel}: the mean regret per session of BatchRank"
        if last == curves.horizon:
            yield f"{words} is still above {CONVERGED:g} at the end."
        else:
            yield f"{words} is below {CONVERGED:g} from session {last:,} to the end."


def draw(results):
    """Draw regret per session in three panels."""
    figure, panels = figures.grid(3, label="regret per session")
    for axes, (panel, (env, query)) in zip(panels, PANELS.items(), strict=True):
        curves = results[panel]
        figures.rates(axes, curves, env, AGENTS, np.linspace(0, curves.horizon, 101)[1:])
        axes.axhline(CONVERGED, label="suboptimal, by the paper", **figures.BOUND)
        axes.set_yscale("symlog", linthresh=1e-4)  # a run that shows the best list has no regret
        axes.set(xlabel="session", ylim=(0, 2), xlim=(0, curves.horizon))
        axes.set_title(f"({panel}) {env}, {query}", fontsize=8)
    return figures.finish(figure, "Regret per session")


if __name__ == "__main__":
    study.main(sys.modules[__name__])
