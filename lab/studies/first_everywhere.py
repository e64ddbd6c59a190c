"""Study of UBM-TS, which needs no knowledge of its users, beside the best published agents in six click models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .plots import band, finish, grid
from .reader import read_studies
from .study import Evidence, Finding, PaperTable, Study, estimate, less_regret, linear, short, sublinear

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["STUDIES"]

MODELS = ("CMRank-v0", "PBMRank-v0", "DCMRank-v0", "UBMRank-v0", "DBNRank-v0", "CCMRank-v0")
OWN = "UBMTS"
UNINFORMED = ("PBMHB", "CascadeTS", "GRAB", "GLRCascadeKLUCB", "BubbleRank")
INFORMED = "BCMPTS"
"""It is given the examination probabilities."""
AGENTS = (OWN, *UNINFORMED, INFORMED)
PART = "first-everywhere"


def less(evidence: Evidence, env: str, better: str, worse: str) -> Finding:
    """Whether one agent has less regret at the end than another."""
    return less_regret(evidence[PART], env, better, worse)


def learns(evidence: Evidence, env: str) -> Finding:
    """Whether the regret of UBM-TS per session falls."""
    return sublinear(evidence[PART], env, OWN)


def stays_linear(evidence: Evidence, env: str) -> Finding:
    """Whether the regret of UBM-TS per session stays what it was."""
    return linear(evidence[PART], env, OWN)


def table(evidence: Evidence) -> PaperTable:
    """Regret at the end, by click model."""
    rows = [["agent", *map(short, MODELS)]]
    rows += [[agent, *(str(estimate(evidence[PART].end_units(env, agent))) for env in MODELS)] for agent in AGENTS]
    return "Regret at the end, mean over queries with its 95 % interval", rows


def draw(evidence: Evidence) -> Figure:
    """Regret in six click models."""
    figure, panels = grid(3, 2)
    curves = evidence[PART]
    late = curves.steps >= 100
    for axes, env in zip(panels, MODELS, strict=True):
        for agent in AGENTS:
            band(axes, curves.steps[late], curves.units(env, agent)[:, late], agent)
        axes.set(xscale="log", yscale="log", title=short(env), xlabel="session")
    for axes in panels[::3]:
        axes.set_ylabel("regret")
    return finish(figure, panels[:1], evidence, "An agent without knowledge beside others, in six click models")


STUDIES: dict[str, Study] = read_studies(__file__, globals())
