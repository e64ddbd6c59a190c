"""Study of UBM-TS, which needs no knowledge of its users, beside the best published agents in six click models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .plots import band, finish, grid
from .reader import read_studies
from .study import Evidence, PaperTable, Study, estimate, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["STUDIES"]

DBN = "DBNRank-v0"
MODELS = ("CMRank-v0", "PBMRank-v0", "DCMRank-v0", "UBMRank-v0", DBN, "CCMRank-v0")
OWN, RIVAL = "UBMTS", "GRAB"
UNINFORMED = ("PBMHB", "CascadeTS", "GRAB", "GLRCascadeKLUCB", "BubbleRank")
INFORMED = "BCMPTS"
"""It is given the examination probabilities."""
AGENTS = (OWN, *UNINFORMED, INFORMED)
PART, LONG = "first-everywhere", "first-everywhere-long"


def table(evidence: Evidence) -> PaperTable:
    """Regret at the end, by click model, and that of the long runs."""
    short_runs, long_runs = evidence[PART], evidence[LONG]
    later = f"{short(DBN)}, {long_runs.horizon:,} sessions, {len(long_runs.instances)} queries"
    rows = [["agent", *map(short, MODELS), later]]
    for agent in AGENTS:
        ends = [str(estimate(short_runs.end_units(env, agent))) for env in MODELS]
        rows.append([agent, *ends, str(estimate(long_runs.end_units(DBN, agent))) if agent in long_runs.agents else ""])
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
