"""Regret per session on three problems.

Zoghi et al. 2017, figure 1.

The paper does not name its three problems. We chose three queries. Its sentences about the figure
speak of all its queries ("The plots are chosen to represent general trends in this experiment.").
So zoghi-fig2 tests them over all queries, and this page tests nothing.

Five of ten positions, ten million sessions and ten runs are the paper's. It does not say what
CascadeKL-UCB learns from several clicks. We play both readings. BatchRank runs as printed, with one
mended line: a batch with as many items as positions goes on to its next stage.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .batch_rank import AGENTS, CM, CONVERGED, PBM, per_session
from .claims import Results, estimate, short
from .plots import Figure, finish, grid
from .study import Sweep, Table

PANELS = {"a": (CM, "yandex-9982"), "b": (CM, "yandex-9866"), "c": (PBM, "yandex-98721")}
"""The panels of figure 1, with queries of ours."""
SWEEPS = [
    Sweep(
        f"zoghi-fig1-{panel}",
        [env],
        AGENTS,
        horizon=10_000_000,
        runs=10,
        instances=[query],
        windows=100,
        least_horizon=100_000,
        least_runs=10,
    )
    for panel, (env, query) in PANELS.items()
]
"""Three problems, each the same at every scale but for its horizon, at least 100,000 sessions.
`AGENTS` are CascadeKL-UCB in both readings of several clicks, BatchRank and RankedExp3.
"""


def table(results: Results) -> Table:
    """Regret per session at the end."""
    rows = [["agent", *(f"{p}: {short(env)}, {query}" for p, (env, query) in PANELS.items())]]
    for agent in AGENTS:
        ends = [
            results[_part(panel)].rate(env, agent, 0.99, 1.0) for panel, (env, _) in PANELS.items()
        ]
        rows.append([agent, *(str(estimate(values)) for values in ends)])
    return "Regret per session in the last hundredth of the sessions", rows


def seen(results: Results) -> Iterator[str]:
    """When BatchRank converges."""
    for panel, (env, _) in PANELS.items():
        curves = results[_part(panel)]
        rates = curves.window_rates(curves.by_run(env, "BatchRank")).mean(axis=0)
        above = np.flatnonzero(rates > CONVERGED)
        last = int(curves.steps[curves.windows[above[-1]]]) if len(above) else 0
        regret = f"Panel {panel}: the mean regret per session of BatchRank"
        if last == curves.horizon:
            yield f"{regret} is still above {CONVERGED:g} at the end."
        else:
            yield f"{regret} is below {CONVERGED:g} from session {last:,} on."


def draw(results: Results) -> Figure:
    """Regret per session in the three panels."""
    figure, panels = grid(3, labels=["regret per session"])
    for axes, (panel, (env, query)) in zip(panels, PANELS.items(), strict=True):
        per_session(axes, results[_part(panel)], env)
        axes.set_title(f"({panel}) {short(env)}, {query}", fontsize=10)
    return finish(figure, panels, results, "Regret per session")


def _part(panel: str) -> str:
    return f"zoghi-fig1-{panel}"
