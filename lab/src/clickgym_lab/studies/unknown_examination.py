"""Study of agents that must estimate the examination probabilities, beside those that are given
them.
"""

from __future__ import annotations

from .plots import DOTTED, LOOKS, Figure, band, finish, grid, look_of
from .study import CM, PBM, Evidence, Finding, PaperTable, estimate, less_regret, short

IN_CM, IN_PBM = "unknown-examination-cm", "unknown-examination-pbm"
PARTS = {CM: IN_CM, PBM: IN_PBM}


def less_in(evidence: Evidence, env: str, better: str, worse: str) -> Finding:
    """Whether one agent has less regret at the end than another."""
    return less_regret(evidence[PARTS[env]], env, better, worse)


def regret(evidence: Evidence) -> PaperTable:
    """Regret at the end, the least in the PBM first."""
    in_pbm, untold = evidence[IN_PBM], evidence[IN_CM].agents
    rows = [["agent", "is told the examination", "PBM", "CM"]]
    for name in sorted(in_pbm.agents, key=lambda name: in_pbm.units(PBM, name)[:, -1].mean()):
        envs = (PBM, CM) if name in untold else (PBM,)
        ends = [str(estimate(evidence[PARTS[env]].units(env, name)[:, -1])) for env in envs]
        rows.append([name, "no", *ends] if name in untold else [name, "yes", *ends, ""])
    return "Regret at the end, mean over queries with the 95 % interval over runs", rows


def draw(evidence: Evidence) -> Figure:
    """Regret in both click models."""
    figure, panels = grid(2, labels=["cumulative regret"])
    untold = evidence[IN_CM].agents
    for axes, env in zip(panels, (PBM, CM), strict=True):
        curves = evidence[PARTS[env]]
        late = curves.steps >= 100
        for agent in curves.agents:
            look = look_of(agent, axes) if agent in untold else (LOOKS[agent][0], DOTTED)
            band(axes, curves.steps[late], curves.units(env, agent)[:, late], agent, look)
        axes.set(xscale="log", yscale="log", title=short(env), xlabel="session")
    return finish(
        figure, panels[:1], evidence, "What it is worth to be told the examination (dotted: told)"
    )
