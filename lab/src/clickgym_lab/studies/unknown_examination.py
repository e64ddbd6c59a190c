"""Regret of agents that know the examination probabilities, and of agents that do not.

Gauthier et al. 2021 (GRAB; PB-MHB) and 2022 (UniRank), abstracts.

Only the abstracts of GRAB (icml.cc/virtual/2021/spotlight/9638) and UniRank
(proceedings.mlr.press/v162/gauthier22a.html) were at hand, and nothing of PB-MHB. Our users are
fitted to 60 published and 16 shipped queries of web search. The papers have other data, simulated
and real. A million sessions and six runs are our choice. We tell an agent the horizon only if it
cannot do without. PBM-UCB, PBM-TS and PBM-PIE are told the examination of each position.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .claims import (
    Results,
    Statement,
    estimate,
    less,
    ratio,
    several,
    short,
)
from .plots import Figure, band, finish, grid
from .study import LAST_ENDS, Sweep, Table

CM, PBM = "CMRank-v0", "PBMRank-v0"
PARTS = {CM: "unknown-examination-cm", PBM: "unknown-examination-pbm"}
ESTIMATE = ("UniRank", "GRAB", "PBMHB", "CascadeKLUCB", "TopRank", "BatchRank")
GIVEN = ("PBMUCB", "PBMTS", "PBMPIE")
"""These are given the examination probabilities."""
SWEEPS = [
    Sweep(
        PARTS[env],
        [env],
        agents,
        1_000_000,
        6,
        queries=60,
        ends=LAST_ENDS,
        least_horizon=20_000,
    )
    for env, agents in ((CM, ESTIMATE), (PBM, (*ESTIMATE, *GIVEN)))
]
"""Agents with and without the examination probabilities in the PBM, those without in the CM."""
STATEMENTS = [
    Statement(
        "our method has better regret performance than other generic algorithms on real life and "
        "synthetic datasets.",
        "UniRank, abstract",
        "UniRank has less regret at the end than TopRank and BatchRank, in the CM and in the PBM.",
        lambda results: several(
            {
                f"{short(env)} {name}": less(
                    results[PARTS[env]].values(env, "UniRank"),
                    results[PARTS[env]].values(env, name),
                )
                for env in (CM, PBM)
                for name in ("TopRank", "BatchRank")
            }
        ),
        is_other_version=True,
    ),
    Statement(
        "The main contribution of UniRank is its O(L/Δ logT) regret for T consecutive assignments",
        "UniRank, abstract",
        "It is a theorem about an order of growth, which no simulation decides. The figure shows "
        "regret.",
    ),
    Statement(
        "The logarithmic regret bound of this algorithm is a direct consequence of the unimodality "
        "property of the bandit setting with respect to the learned graph.",
        "GRAB, abstract",
        "It is a theorem about an order of growth, which no simulation decides. The figure shows "
        "regret.",
    ),
    Statement(
        "giving regret performance on par with the best known algorithms on simulated and real "
        "life datasets.",
        "GRAB, abstract",
        "“On par” has no number, and the rivals, the data and the horizon were not at hand.",
    ),
]


def table(results: Results) -> Table:
    """Regret at the end, the least in the PBM first."""

    def cells(agent: str, envs: Sequence[str]) -> list[str]:
        return [str(estimate(results[PARTS[env]].values(env, agent))) for env in envs]

    in_pbm = results[PARTS[PBM]]
    rows = [["agent", "is told the examination", "PBM", "CM"]]
    for agent in sorted(in_pbm.agents, key=lambda agent: in_pbm.values(PBM, agent).mean()):
        given = agent in GIVEN
        envs = (PBM,) if given else (PBM, CM)
        rows.append([agent, "yes" if given else "no", *cells(agent, envs), *["–"] * given])
    return "Regret at the end, mean over the queries with its 95 % interval", rows


def seen(results: Results) -> Iterator[str]:
    """What it is worth to be told the examination."""
    in_pbm = results[PARTS[PBM]]
    ours = in_pbm.values(PBM, "PBMHB")
    for agent in GIVEN:
        theirs = in_pbm.values(PBM, agent)
        yield (
            f"PBM: PB-MHB is not told the examination, and {agent} is. PB-MHB has "
            f"{ratio(ours, theirs)} times the regret of {agent}, and more regret on "
            f"{(ours > theirs).sum()} of {len(ours)} queries."
        )
    grab = ratio(in_pbm.values(PBM, "GRAB"), ours)
    yield f"PBM: GRAB has {grab} times the regret of PB-MHB after {in_pbm.horizon:,} sessions."


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
