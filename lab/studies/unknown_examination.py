"""Study of agents that must estimate the examination probabilities, beside those that are given them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from .plots import DOTTED, LOOKS, band, finish, grid, look_of
from .study import (
    CM,
    LAST,
    LEARNS_RULE,
    LINEAR_RULE,
    PBM,
    Evidence,
    Finding,
    PaperTable,
    Part,
    Statement,
    Study,
    estimate,
    in_all,
    less,
    linear,
    several,
    short,
    sublinear,
    total,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["STUDIES"]

GENERIC = ("TopRank", "BatchRank", "MergeRank")
UNTOLD = ("UniRank", "GRAB", "SGRAB", "PBMHB", LAST, *GENERIC)
TOLD = ("PBMUCB", "PBMTS", "PBMPIE")
IN_CM, IN_PBM = "unknown-examination-cm", "unknown-examination-pbm"
MODELS = {IN_CM: CM, IN_PBM: PBM}


def _less(better: str, worse: Sequence[str], parts: Sequence[str], evidence: Evidence) -> Finding:
    """Less regret at the end than each of the others."""
    findings = {}
    for part in parts:
        curves, env = evidence[part], MODELS[part]
        for other in worse:
            findings[f"{short(env)} {other}"] = less(curves, env, better, other, total(curves))
    return several(findings) if len(findings) > 1 else next(iter(findings.values()))


def _times(agent: str, other: str, low: float, high: float, evidence: Evidence) -> Finding:
    """Regret at the end in the PBM as a multiple of another agent's."""
    curves = evidence[IN_PBM]
    ends = [curves.units(PBM, name)[:, -1] for name in (agent, other)]
    ratio = estimate(ends[0] / ends[1])
    return Finding(f"{ratio} times", ratio.within(low, high))


def _sublinear(agent: str, parts: Sequence[str], evidence: Evidence) -> Finding:
    findings = {short(MODELS[part]): sublinear(evidence[part], MODELS[part], agent) for part in parts}
    return several(findings) if len(findings) > 1 else next(iter(findings.values()))


def _regret(evidence: Evidence) -> PaperTable:
    """Regret at the end, the least in the PBM first."""
    curves = evidence[IN_PBM]
    names = sorted((*TOLD, *UNTOLD), key=lambda name: curves.units(PBM, name)[:, -1].mean())
    rows = [["agent", "is told the examination", "PBM", "CM"]]
    for name in names:
        ends = [evidence[part].units(MODELS[part], name)[:, -1] for part in (IN_PBM, IN_CM) if part == IN_PBM or name in UNTOLD]
        rows.append([name, "yes" if name in TOLD else "no", *map(str, map(estimate, ends)), *([""] if len(ends) < 2 else [])])
    return "Regret at the end, mean over queries with the 95 % interval over runs", rows


def _study() -> Study:
    def part(name: str, agents: Sequence[str]) -> Part:
        return Part(name, (MODELS[name],), tuple(agents), 10**6, 6, 60, least_horizon=20_000, windows=20)

    smaller = "less regret at the end"
    statements = (
        Statement(
            "UniRank has less regret than the other generic algorithms, TopRank, BatchRank and MergeRank, in both click models",
            f"{smaller} than each, in both",
            partial(_less, "UniRank", GENERIC, (IN_CM, IN_PBM)),
            paper="UniRank: better than other generic algorithms",
        ),
        *(
            Statement(
                f"The regret of UniRank is logarithmic: sublinear in the {short(MODELS[name])}",
                LEARNS_RULE,
                partial(_sublinear, "UniRank", (name,)),
                late=True,
                paper="UniRank: O(L/Δ log T)",
            )
            for name in (IN_PBM, IN_CM)
        ),
        Statement(
            "The regret of GRAB is logarithmic in the PBM: sublinear",
            LEARNS_RULE,
            partial(_sublinear, "GRAB", (IN_PBM,)),
            late=True,
            paper="GRAB: logarithmic",
        ),
        Statement(
            "GRAB's smaller neighbourhood pays: less regret than S-GRAB in the PBM",
            smaller,
            partial(_less, "GRAB", ("SGRAB",), (IN_PBM,)),
            paper="GRAB: L - 1 neighbours in place of K(2L - K - 1)/2",
        ),
        Statement(
            "GRAB is on par with the best algorithm that must find out the examination, PB-MHB",
            "its regret at the end is less than twice PB-MHB's",
            partial(_times, "GRAB", "PBMHB", 0.0, 2.0),
            paper="GRAB: on par with the best known algorithms",
        ),
        Statement(
            "GRAB has less regret than TopRank in the PBM, which it is made for",
            smaller,
            partial(_less, "GRAB", ("TopRank",), (IN_PBM,)),
            late=True,
        ),
        Statement(
            "PB-MHB recommends better than all others that are not told the examination in the PBM",
            f"{smaller} than each",
            partial(_less, "PBMHB", [name for name in UNTOLD if name != "PBMHB"], (IN_PBM,)),
            paper="PB-MHB: better than the state of the art",
        ),
        *(
            Statement(
                f"PB-MHB, with less information, recommends better than {name}, which is told the examination",
                smaller,
                partial(_less, "PBMHB", (name,), (IN_PBM,)),
                paper="PB-MHB: better with less prior information",
            )
            for name in TOLD
        ),
        Statement(
            "To be told is worth at most a factor of two, where both sample from a posterior: PB-MHB beside PBM-TS (ours)",
            "PB-MHB's regret at the end is 1 to 2 times PBM-TS'",
            partial(_times, "PBMHB", "PBMTS", 1.0, 2.0),
        ),
        Statement(
            "Optimism that is told is worth less than a posterior that is not: PB-MHB has less regret than PBM-UCB (ours)",
            "PBM-UCB's regret at the end is more than twice PB-MHB's",
            partial(_times, "PBMUCB", "PBMHB", 2.0, float("inf")),
        ),
        Statement(
            "In the CM the agent made for it, CascadeKL-UCB, has less regret than UniRank (ours)",
            smaller,
            partial(_less, LAST, ("UniRank",), (IN_CM,)),
        ),
        Statement(
            "In the PBM CascadeKL-UCB, which takes users for those of the CM, does not learn (ours)",
            LINEAR_RULE,
            partial(in_all, linear, IN_PBM, (PBM,), (LAST,)),
            late=True,
        ),
        *(
            Statement(
                f"{name}, made for the PBM, learns in the CM as well (ours)",
                LEARNS_RULE,
                partial(_sublinear, name, (IN_CM,)),
                late=True,
            )
            for name in ("GRAB", "PBMHB")
        ),
    )
    return Study(
        "Regret of those who are told the examination, and of those who are not",
        "Gauthier et al. 2021 and 2022: GRAB, PB-MHB, UniRank",
        (part(IN_CM, UNTOLD), part(IN_PBM, (*UNTOLD, *TOLD))),
        statements,
        "Statements are of the papers' abstracts and theorems, those marked (ours) were predicted before the run. No agent "
        "knows the horizon that can do without; the click models are fitted to other queries than the papers'. PBM-UCB, PBM-TS "
        "and PBM-PIE are told the examination of each position.",
        _draw,
        _regret,
    )  # fmt: skip


def _draw(evidence: Evidence) -> Figure:
    figure, panels = grid(2)
    for axes, (name, agents) in zip(panels, {IN_PBM: (*UNTOLD, *TOLD), IN_CM: UNTOLD}.items(), strict=True):
        curves, env = evidence[name], MODELS[name]
        late = curves.steps >= 100
        for agent in agents:
            look = (LOOKS[agent][0], DOTTED) if agent in TOLD else look_of(agent, axes)
            band(axes, curves.steps[late], curves.units(env, agent)[:, late], agent, look)
        axes.set(xscale="log", yscale="log", title=short(env), xlabel="session")
    panels[0].set_ylabel("cumulative regret")
    return finish(figure, panels[:1], evidence, "What it is worth to be told the examination (dotted: told)")


STUDIES: dict[str, Study] = {"unknown-examination": _study()}
