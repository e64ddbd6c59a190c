"""Regret of agents that know the examination probabilities, and of agents that do not.

Gauthier et al. 2021 and 2022: GRAB, PB-MHB, UniRank.

Statements are of the papers' abstracts and theorems, those marked (ours) were predicted before the
run. No agent knows the horizon that can do without; the click models are fitted to other queries
than the papers'. PBM-UCB, PBM-TS and PBM-PIE are told the examination of each position.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from .claims import (
    LEARNS_RULE,
    LINEAR_RULE,
    Claim,
    Finding,
    Results,
    estimate,
    less_regret,
    linear,
    several,
    short,
    sublinear,
    times,
)
from .plots import Figure, band, finish, grid
from .study import Sweep, Table

CM, PBM = "CMRank-v0", "PBMRank-v0"
PARTS = {CM: "unknown-examination-cm", PBM: "unknown-examination-pbm"}
ESTIMATE = ("UniRank", "GRAB", "PBMHB", "CascadeKLUCB", "TopRank", "BatchRank")
GIVEN = ("PBMUCB", "PBMTS", "PBMPIE")
"""These are given the examination probabilities."""


SWEEPS = [
    Sweep(PARTS[env], [env], agents, 1_000_000, 6, queries=60, least_horizon=20_000)
    for env, agents in ((CM, ESTIMATE), (PBM, (*ESTIMATE, *GIVEN)))
]
"""Agents with and without the examination probabilities in the PBM, those without in the CM."""


def claims(results: Results) -> Iterator[Claim]:
    """Statements of the papers' abstracts and theorems; those marked (ours) were predicted before
    the run.

    A test asks whether the mean of independent values lies between two bounds: yes if its 95 %
    interval (Student's t) lies between them, no if it lies outside, else it cannot tell; all
    statements are judged together by Holm's procedure. `several` asks that all tests hold; one that
    surely does not contradicts the statement.

    `less_regret` asks whether the gap between two agents' regret at the end is above 0, `times`
    whether their ratio lies between two bounds, both over the queries, each averaged over its runs;
    `linear` (and `sublinear`) asks whether the rate of regret in the last fifth of the sessions
    less 0.8 times that in the second fifth is above (below) 0, over the queries where their values
    are kept, else over the runs: the finding says which. A run shorter than the paper's cannot
    contradict a statement marked `late`.
    """

    def less(env: str, better: str, *worse: str) -> dict[str, Finding]:
        return {name: less_regret(results[PARTS[env]], env, better, name) for name in worse}

    def learns(env: str, agent: str) -> Finding:
        return sublinear(results[PARTS[env]], env, agent)

    def multiple(agent: str, other: str, low: float, high: float) -> Finding:
        return times(results[PARTS[PBM]], PBM, agent, other, low, high)

    generic = {
        f"{short(env)} {name}": finding
        for env in (CM, PBM)
        for name, finding in less(env, "UniRank", "TopRank", "BatchRank").items()
    }
    yield Claim(
        "UniRank has less regret than the other generic algorithms, TopRank and BatchRank, in both "
        "click models",
        "less regret at the end than each, in both",
        several(generic),
        paper="UniRank: better than other generic algorithms",
    )
    for env in (PBM, CM):
        yield Claim(
            f"The regret of UniRank is logarithmic: sublinear in the {short(env)}",
            LEARNS_RULE,
            learns(env, "UniRank"),
            paper="UniRank: O(L/Δ log T)",
            late=True,
        )
    yield Claim(
        "The regret of GRAB is logarithmic in the PBM: sublinear",
        LEARNS_RULE,
        learns(PBM, "GRAB"),
        paper="GRAB: logarithmic",
        late=True,
    )
    yield Claim(
        "GRAB is on par with PB-MHB, the best algorithm that must estimate the examination "
        "probabilities",
        "its regret at the end is less than twice PB-MHB's",
        multiple("GRAB", "PBMHB", 0.0, 2.0),
        paper="GRAB: on par with the best known algorithms",
    )
    yield Claim(
        "GRAB, which is made for the PBM, has less regret than TopRank in it",
        "less regret at the end",
        less(PBM, "GRAB", "TopRank")["TopRank"],
        late=True,
    )
    rivals = less(PBM, "PBMHB", *(agent for agent in ESTIMATE if agent != "PBMHB"))
    yield Claim(
        "PB-MHB recommends better than all other agents that are not told the examination in the "
        "PBM",
        "less regret at the end than each",
        several({f"PBM {name}": finding for name, finding in rivals.items()}),
        paper="PB-MHB: better than the state of the art",
    )
    for agent, finding in less(PBM, "PBMHB", *GIVEN).items():
        yield Claim(
            f"PB-MHB, with less information, recommends better than {agent}, which is told the "
            "examination",
            "less regret at the end",
            finding,
            paper="PB-MHB: better with less prior information",
        )
    yield Claim(
        "Of two agents that sample from a posterior, the one without the examination probabilities "
        "(PB-MHB) has at most twice the regret of the one with them (PBM-TS) (ours)",
        "PB-MHB's regret at the end is 1 to 2 times PBM-TS'",
        multiple("PBMHB", "PBMTS", 1.0, 2.0),
    )
    yield Claim(
        "Posterior sampling without the examination probabilities (PB-MHB) has less regret than "
        "optimism with them (PBM-UCB) (ours)",
        "PBM-UCB's regret at the end is more than twice PB-MHB's",
        multiple("PBMUCB", "PBMHB", 2.0, math.inf),
    )
    yield Claim(
        "In the CM the agent made for it, CascadeKL-UCB, has less regret than UniRank (ours)",
        "less regret at the end",
        less(CM, "CascadeKLUCB", "UniRank")["UniRank"],
    )
    yield Claim(
        "In the PBM CascadeKL-UCB, which assumes users of the CM, does not learn (ours)",
        LINEAR_RULE,
        several({"PBM": linear(results[PARTS[PBM]], PBM, "CascadeKLUCB")}),
        late=True,
    )
    for agent in ("GRAB", "PBMHB"):
        text = f"{agent}, made for the PBM, learns in the CM as well (ours)"
        yield Claim(text, LEARNS_RULE, learns(CM, agent), late=True)


def table(results: Results) -> Table:
    """Regret at the end, the least in the PBM first."""

    def cells(agent: str, envs: Sequence[str]) -> list[str]:
        return [str(estimate(results[PARTS[env]].by_run(env, agent)[:, -1])) for env in envs]

    in_pbm = results[PARTS[PBM]]
    rows = [["agent", "is told the examination", "PBM", "CM"]]
    for agent in sorted(in_pbm.agents, key=lambda agent: in_pbm.by_run(PBM, agent)[:, -1].mean()):
        given = agent in GIVEN
        envs = (PBM,) if given else (PBM, CM)
        rows.append([agent, "yes" if given else "no", *cells(agent, envs), *[""] * given])
    return "Regret at the end, mean over queries with the 95 % interval over runs", rows


def draw(results: Results) -> Figure:
    """Regret in both click models."""
    figure, panels = grid(2, labels=["cumulative regret"])
    for axes, env in zip(panels, (PBM, CM), strict=True):
        curves = results[PARTS[env]]
        late = curves.steps >= 100
        for agent in curves.agents:
            band(axes, curves.steps[late], curves.by_run(env, agent)[:, late], agent)
        axes.set(xscale="log", yscale="log", title=short(env), xlabel="session")
    title = "What it is worth to be told the examination (dashed: told)"
    return finish(figure, panels[:1], results, title)
