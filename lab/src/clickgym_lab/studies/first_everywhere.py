"""Studies of UBM-TS, which needs no knowledge of its users: in six click models, and before users for whom it is not made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clickgym.core.statistics import worst_tenth
from clickgym.envs import Instance, load_instance

from .plots import regret_figure
from .reader import read_studies
from .study import Curves, Evidence, Finding, PaperTable, Study, estimate, less_regret, number, saved, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DBN = "DBNRank-v0"
MODELS = ("CMRank-v0", "PBMRank-v0", "DCMRank-v0", "UBMRank-v0", DBN, "CCMRank-v0")
OWN, RIVAL = "UBMTS", "GRAB"
UNINFORMED = ("PBMHB", "CascadeTS", "GRAB", "GLRCascadeKLUCB", "BubbleRank")
INFORMED = "BCMPTS"
"""It is given the examination probabilities."""
AGENTS = (OWN, *UNINFORMED, INFORMED)
PART, LONG = "first-everywhere", "first-everywhere-long"
BESIDE = (OWN, "PBMHB", "CascadeTS", "GRAB")
WITH_INFORMED = (*BESIDE, INFORMED)
CASES = {"bandit": "CMRank-v0:n_positions=1", "ties": "CMRank-v0", "clickbait": "DBNRank-v0", "bumpy": "PBMRank-v0"}
"""The environment of each case of users for whom UBM-TS is not made."""
TIES = 0.1
"""In near-ties the differences of attraction are multiplied by it."""


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
    cases = [(short(env), PART, env) for env in MODELS]
    return regret_figure(evidence, cases, 3, "An agent without knowledge beside others, in six click models")


# ------------------------------------------------------------------------------------------ users for whom it is not made


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
    best = min(BESIDE[1:], key=lambda agent: curves.end_units(CASES[case], agent).mean())
    finding = less_regret(curves, CASES[case], best, OWN)
    return finding._replace(measured=f"{best} and UBMTS: {finding.measured}")


def limits_table(evidence: Evidence) -> PaperTable:
    """Regret at the end, and in the worst tenth of the runs, by case."""
    rows = [["agent", *(head for case in CASES for head in (case, "worst tenth of the runs"))]]
    for agent in WITH_INFORMED:
        cells = []
        for case, env in CASES.items():
            curves = evidence[f"limits-{case}"]
            values = curves.ends(env, agent) if agent in curves.agents else None
            cells += ["", ""] if values is None else [str(estimate(values.mean(axis=1))), number(-worst_tenth(-values))]
        rows.append([agent, *cells])
    return "Regret at the end, mean over queries with its 95 % interval", rows


def draw_limits(evidence: Evidence) -> Figure:
    """Regret in the four cases."""
    cases = [(case, f"limits-{case}", env) for case, env in CASES.items()]
    return regret_figure(evidence, cases, 2, "UBM-TS before users for whom it is not made")


STUDIES: dict[str, Study] = read_studies(__file__, globals())
