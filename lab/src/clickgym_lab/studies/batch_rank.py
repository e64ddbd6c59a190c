"""What the two studies of Zoghi et al. 2017 share: agents, threshold, regret per session."""

from __future__ import annotations

from .claims import Curves
from .plots import BOUND, Axes, band

CM = "CMRank-v0"
PBM = "PBMRank-v0"
LAST = "CascadeKLUCB"
FIRST = "CascadeKLUCB:feedback=first_click"
AGENTS = (LAST, FIRST, "BatchRank", "RankedExp3")
CONVERGED = 1e-3
"""Their size of the regret per session of a suboptimal run."""


def per_session(axes: Axes, curves: Curves, env: str) -> None:
    """A panel of regret per session in each of a hundred windows."""
    ends = curves.windows
    for agent in AGENTS:
        band(axes, curves.steps[ends], curves.window_rates(curves.by_run(env, agent)), agent)
    axes.axhline(CONVERGED, label="suboptimal, by the paper", **BOUND)
    axes.set_yscale("symlog", linthresh=1e-4)  # a run that shows the best list has no regret
    axes.set(xlabel="session", ylim=(0, 2), xlim=(0, curves.horizon))
    axes.ticklabel_format(axis="x", style="sci", scilimits=(0, 0), useMathText=True)
