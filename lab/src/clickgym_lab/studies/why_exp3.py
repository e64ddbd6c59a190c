"""Study of why RankedExp3 does not end better than CascadeKL-UCB in panel c of Zoghi et al. 2017, figure 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clickgym.envs import Instance, load_instance

from .plots import Figure, band, colour_of, finish, grid
from .study import LAST, PBM, Curves, Evidence, Finding, Values, estimate
from .zoghi2017 import PANELS

QUERY = PANELS["c"][1]
EXP3 = "RankedExp3"
GAMMAS = (0.003, 0.01, 0.03)
TUNED = tuple(f"{EXP3}:gamma={gamma:g}" for gamma in GAMMAS)
LEVEL = f"{LAST}:c=0"
PANEL, FLAT, QUERIES = "why-exp3-panel", "why-exp3-flat", "why-exp3-queries"


def flattened(_: Sequence[str]) -> list[Instance]:
    """The query of panel c with the square roots of its examination probabilities: users who look further down."""
    model = load_instance(QUERY).model("PBM")
    seen = type(model)(model.attraction, np.sqrt(model.examination))
    return [Instance(f"{QUERY}-flat", {"PBM": seen}, model.n_positions, origin=load_instance(QUERY).origin)]


def late(curves: Curves, agent: str) -> Values:
    """``(runs,)`` regret per session in the last twentieth."""
    return curves.rate(curves.units(PBM, agent), 0.95, 1.0)


def change(curves: Curves) -> Values:
    """``(runs,)`` what the level log t adds to CascadeKL-UCB's."""
    return late(curves, LEVEL) - late(curves, LAST)


def reversed_order(curves: Curves) -> Values:
    """``(runs,)`` RankedExp3's less CascadeKL-UCB's."""
    return late(curves, EXP3) - late(curves, LAST)


def queries_ahead(curves: Curves, agent: str) -> Values:
    """``(runs,)`` on how many queries the agent ends below CascadeKL-UCB."""
    return (curves.final(PBM, agent) < curves.final(PBM, LAST)).sum(axis=0).astype(float)


def nothing_left(curves: Curves) -> Finding:
    """RankedExp3's regret less CascadeKL-UCB's, with the best γ for RankedExp3."""
    best = min((EXP3, *TUNED), key=lambda agent: late(curves, agent).mean())
    gap = estimate(late(curves, best) - late(curves, LAST))
    return gap.finding(f" above it with {best.partition(':')[2] or 'γ for T'}", high=0.0)


def draw(evidence: Evidence) -> Figure:
    """Regret per session in the panel and with its other users, and at the end on many queries."""
    figure, panels = grid(3, labels=["regret per session"])
    titles = {PANEL: f"panel c, {QUERY}", FLAT: "its users look further down"}
    for axes, (part, title) in zip(panels, titles.items(), strict=False):
        curves = evidence[part]
        steps = np.unique(np.searchsorted(curves.steps, np.linspace(0, curves.horizon, 21)[1:].round()))
        for agent in curves.agents:
            band(axes, curves.steps[steps], curves.window_rates(curves.units(PBM, agent), steps), agent)
        axes.set(title=title, xlabel="session", yscale="log", xlim=(0, curves.horizon), ylim=(3e-3, 0.5))
        axes.ticklabel_format(axis="x", style="sci", scilimits=(0, 0), useMathText=True)
    curves = evidence[QUERIES]
    for agent in (EXP3, TUNED[1]):
        pairs = [np.maximum(curves.final(PBM, name).mean(axis=1), 1e-6) for name in (LAST, agent)]
        panels[2].plot(*pairs, "o", color=colour_of(agent, panels[2]), markersize=4, alpha=0.8)
    panels[2].axline((1e-3, 1e-3), (1e-2, 1e-2), color="black", linewidth=0.8, linestyle=":")
    panels[2].set(title=f"{len(curves.instances)} queries, 2·10⁶ sessions", xscale="log", yscale="log",
                  xlabel="CascadeKL-UCB", ylabel="RankedExp3")  # fmt: skip
    return finish(figure, panels[:1], evidence, "Regret per session at the end")
