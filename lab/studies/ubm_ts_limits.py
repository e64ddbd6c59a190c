"""Study of users for whom UBM-TS is not made: one position, near-ties, clickbait, examination that is not monotone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.statistics import worst_tenth
from ...envs import Instance, load_instance
from .plots import band, finish, grid
from .reader import read_studies
from .study import Curves, Evidence, Finding, PaperTable, Study, estimate, less_regret, number, saved, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["STUDIES"]

OWN = "UBMTS"
AGENTS, INFORMED = (OWN, "PBMHB", "CascadeTS", "GRAB"), "BCMPTS"
ALL = (*AGENTS, INFORMED)
CASES = {"bandit": "CMRank-v0:n_positions=1", "ties": "CMRank-v0", "clickbait": "DBNRank-v0", "bumpy": "PBMRank-v0"}
"""The environment of each case."""
TIES = 0.1
"""In near-ties the differences of attraction are multiplied by it."""


def part(case: str) -> str:
    """The part that plays a case."""
    return f"limits-{case}"


def changed(queries: Sequence[str], folder: Path, case: str) -> list[str]:
    """Instance files of the queries with the users of a case."""
    files = []
    for query in queries:
        instance = load_instance(query)
        model: Any = instance.model(short(CASES[case]))
        if case == "ties":
            model = model.with_items(attraction=model.attraction.mean() + TIES * (model.attraction - model.attraction.mean()))
        elif case == "clickbait":
            model = model.with_items(satisfaction=1 - model.attraction)
        else:  # the middle of the list is seen first
            order = np.argsort(np.abs(np.arange(instance.n_positions) - instance.n_positions // 2), kind="stable")
            examination = np.sort(model.examination[: instance.n_positions])[::-1][np.argsort(order)]
            model = type(model)(model.attraction, examination)
        users = Instance(f"{instance.name}-{case}", {model.kind: model}, instance.n_positions, origin=instance.origin)
        files.append(saved(users, folder))
    return files


def behind(curves: Curves, case: str) -> Finding:
    """Whether UBM-TS has more regret than the best of the others."""
    best = min(AGENTS[1:], key=lambda agent: curves.end_units(CASES[case], agent).mean())
    finding = less_regret(curves, CASES[case], best, OWN)
    return finding._replace(measured=f"{best} and UBMTS: {finding.measured}")


def ends(evidence: Evidence, case: str) -> tuple[Curves, str]:
    """What was measured in a case, and its environment."""
    return evidence[part(case)], CASES[case]


def table(evidence: Evidence) -> PaperTable:
    """Regret at the end, and in the worst tenth of the runs, by case."""
    rows = [["agent", *(head for case in CASES for head in (case, "worst tenth of the runs"))]]
    for agent in ALL:
        cells = []
        for curves, env in (ends(evidence, case) for case in CASES):
            values = curves.ends(env, agent) if agent in curves.agents else None
            cells += ["", ""] if values is None else [str(estimate(values.mean(axis=1))), number(-worst_tenth(-values))]
        rows.append([agent, *cells])
    return "Regret at the end, mean over queries with its 95 % interval", rows


def draw(evidence: Evidence) -> Figure:
    """Regret in the four cases."""
    figure, panels = grid(2, 2)
    for axes, case in zip(panels, CASES, strict=True):
        curves, env = ends(evidence, case)
        late = curves.steps >= 100
        for agent in curves.agents:
            band(axes, curves.steps[late], curves.units(env, agent)[:, late], agent)
        axes.set(xscale="log", yscale="log", title=case, xlabel="session")
    for axes in panels[::2]:
        axes.set_ylabel("regret")
    return finish(figure, panels[:1], evidence, "UBM-TS before users for whom it is not made")


STUDIES: dict[str, Study] = read_studies(__file__, globals())
