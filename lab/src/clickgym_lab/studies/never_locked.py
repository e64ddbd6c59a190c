"""Our study of MixTS, which weighs several click models: in which of seven does it stay on wrong
lists?
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product

import numpy as np

from .evidence import (
    LEARNS_RULE,
    Estimate,
    Evidence,
    Finding,
    Statement,
    Values,
    estimate,
    number,
    several,
    short,
    sublinear,
)
from .plots import Figure, regret_figure
from .study import Study, Sweeps, Table, main, shipped_queries

MODELS = tuple(f"{model}Rank-v0" for model in ("CM", "PBM", "DCM", "UBM", "DBN", "CCM", "TPBM"))
SIX, TRUST = MODELS[:-1], MODELS[-1:]
OWN, RIVAL, SLOWEST = "MixTS", "GRAB", "PBMHB"
AGENTS = (f"{OWN}=clickgym_lab.mix_ts:MixTS", RIVAL, "CascadeTS")
FIRST, SIXTY, SLOW = "never-locked", "never-locked-sixty", "never-locked-slow"
PARTS = (FIRST, SIXTY)
N_FIRST = 16
"""The queries that ship are a part of their own."""
LATE = 0.002
"""A run is late if it loses more clicks per session than that in its last fifth."""
ENDS = (0.1, 0.2, 0.4, 0.8, 0.99, 1.0)


def play(sweeps: Sweeps) -> None:
    """The first 16 queries with all agents, 60 further ones with fewer, and the slowest agent."""
    names = sweeps.names or shipped_queries()
    first = sweeps.queries(N_FIRST)
    further = list(names[N_FIRST:]) or first

    def sweep(name: str, agents: Sequence[str], runs: int, queries: list[str]) -> None:
        sweeps.sweep(
            name,
            MODELS,
            agents,
            horizon=1_000_000,
            runs=runs,
            instances=queries,
            ends=ENDS,
            least_horizon=20_000,
            least_runs=1,
        )

    sweep(FIRST, (*AGENTS, "BCMPTS"), 2, first)
    sweep(SIXTY, AGENTS, 1, further)
    sweep(SLOW, [SLOWEST], 1, first)


def statements(evidence: Evidence) -> Iterator[Statement]:
    """Statements of ours; all were written before any of these runs, those that name a number are
    targets that were set beforehand.
    """
    targets = {"DBN": (0.2, "a fifth"), "CCM": (0.6, "six tenths"), "DCM": (0.1, "a tenth")}
    for model, (most, words) in targets.items():
        env = f"{model}Rank-v0"
        yield Statement(
            f"In the {model} MixTS loses at most {words} of what GRAB loses, on the 16 queries "
            "(target)",
            f"at most {most} times the regret at the end",
            share(evidence, [FIRST], env, RIVAL, most),
            late=True,
        )
        finding = share(evidence, [SIXTY], env, RIVAL, most)
        text = f"In the {model} it does so on the 60 queries, too (ours)"
        yield Statement(text, "the same", finding, late=True)
    yield Statement(
        "Outside trust bias at most 2 % of the runs of MixTS are late (target)",
        "the share of late runs in six click models, of all queries, is below 0.02",
        rarely_late(evidence, SIX, 0.02),
        late=True,
    )
    yield Statement(
        "With trust bias at most a third as many runs of MixTS are late as of GRAB (target)",
        "the share of late runs, of all queries, is below a third of that of GRAB",
        rarely_late(evidence, TRUST, 0.3333, than=RIVAL),
        late=True,
    )
    for fraction, tail in product((0.1, 1.0), (False, True)):
        which = "regret in the worst tenth of the runs" if tail else "mean regret"
        yield Statement(
            f"In the CM MixTS loses hardly more than CascadeTS, which knows that model: {which} "
            f"after {round(fraction * 1_000_000):,} sessions (target)",
            "at most 1.2 times, of all queries",
            share(evidence, PARTS, "CMRank-v0", "CascadeTS", 1.2, tail, fraction),
        )
    yield Statement(
        "In each click model MixTS learns: its regret is sublinear (ours)",
        f"{LEARNS_RULE}, in each, on the 16 queries",
        several({short(env): sublinear(evidence[FIRST], env, OWN) for env in MODELS}),
        late=True,
    )
    yield Statement(
        "In each click model MixTS loses less than GRAB in the worst tenth of the runs (ours)",
        "less regret at the end, in each, of all queries",
        several({short(env): share(evidence, PARTS, env, RIVAL, 1.0, True) for env in MODELS}),
        late=True,
    )
    envs = ("PBMRank-v0", "UBMRank-v0")
    yield Statement(
        "In the PBM and the UBM MixTS loses at most half as much again as BCMP-TS, which is given "
        "the examination probabilities (ours)",
        "at most 1.5 times the regret at the end, in each, on the 16 queries",
        several({short(env): share(evidence, [FIRST], env, "BCMPTS", 1.5) for env in envs}),
        late=True,
    )


def regret(
    evidence: Evidence, parts: Sequence[str], env: str, agent: str, fraction: float = 1.0
) -> list[Values]:
    """The regret of the runs of each query."""
    return [runs for part in parts for runs in evidence[part].ends(env, agent, fraction=fraction)]


def late(evidence: Evidence, parts: Sequence[str], envs: Sequence[str], agent: str) -> list[Values]:
    """Which runs of each query are late, 0 or 1."""
    rows: list[Values] = []
    for part in parts:
        curves = evidence[part]
        lost = [curves.ends(env, agent) - curves.ends(env, agent, fraction=0.8) for env in envs]
        rows += list((np.hstack(lost) > LATE * 0.2 * curves.horizon).astype(float))
    return rows


def mean(runs: Sequence[Values]) -> float:
    """The mean over the queries, each averaged over its runs."""
    return float(np.mean([values.mean() for values in runs]))


def tenth(runs: Sequence[Values]) -> float:
    """The mean of the tenth of all runs that lose most, rounded up to whole runs."""
    losses = np.concatenate(runs, axis=None)
    return -float(np.sort(-losses)[: math.ceil(losses.size / 10)].mean())


def ratio_of(
    figure: Callable[[Sequence[Values]], float], own: Sequence[Values], other: Sequence[Values]
) -> Estimate:
    """A figure of one agent as a multiple of another's, with the interval of the jackknife over the
    queries.
    """
    if not figure(other):
        return Estimate(np.nan, np.inf, 0)
    n, ratio = len(own), figure(own) / figure(other)
    without = [
        figure([*own[:i], *own[i + 1 :]]) / max(figure([*other[:i], *other[i + 1 :]]), 1e-12)
        for i in range(n)
    ]
    return estimate(n * ratio - (n - 1) * np.array(without))._replace(mean=ratio)


def share(
    evidence: Evidence,
    parts: Sequence[str],
    env: str,
    other: str,
    most: float,
    tail: bool = False,
    fraction: float = 1.0,
) -> Finding:
    """Whether the mean regret of MixTS, or with ``tail`` that of its worst tenth, is below a share
    of another agent's.
    """
    own, rival = (regret(evidence, parts, env, agent, fraction) for agent in (OWN, other))
    means = f"{number(mean(own))} against {number(mean(rival))}"
    tenths = f"{number(tenth(own))} against {number(tenth(rival))}"
    ratio, where = ratio_of(tenth if tail else mean, own, rival), " in the worst tenth" * tail
    words = f"{means}, in the worst tenth {tenths}; {ratio} times{where} over {len(own)} queries"
    return ratio.below(most)._replace(measured=words)


def rarely_late(evidence: Evidence, envs: Sequence[str], most: float, than: str = "") -> Finding:
    """Whether a share of the runs of MixTS is late that is below a number, or below so many times
    that of another agent.
    """
    own, rival = (late(evidence, PARTS, envs, agent) for agent in (OWN, than or RIVAL))
    counts = " against ".join(
        f"{sum(map(np.sum, runs)):.0f} of {sum(map(len, runs))}" for runs in (own, rival)
    )
    measured = ratio_of(mean, own, rival) if than else estimate([runs.mean() for runs in own])
    words = f"{measured} times" if than else f"a share of {measured}"
    text = f"{counts} runs of {than or RIVAL}, {words} over {len(own)} queries"
    return measured.below(most)._replace(measured=text)


def table(evidence: Evidence) -> Table:
    """Regret on the way and at the end, each with its worst tenth, and the runs that are late."""
    steps = [f"{fraction * evidence[FIRST].horizon:,.0f}" for fraction in (0.1, 1.0)]
    heads = [head for step in steps for head in (f"after {step}", "worst tenth")]
    columns = product(("16 queries", "60 queries"), (*heads, "late"))
    rows = [["model", "agent", *(f"{head}, {where}" for where, head in columns)]]
    for env, agent in product(MODELS, (OWN, RIVAL, "CascadeTS", "BCMPTS", SLOWEST)):
        parts = (SLOW if agent == SLOWEST else FIRST, SIXTY)
        cells = [cell for part in parts for cell in _cells(evidence, part, env, agent)]
        rows.append([short(env), agent, *cells])
    title = "Regret, mean over queries with its 95 % interval, in the worst tenth of the runs"
    return f"{title}, and the share of late runs", rows


def _cells(evidence: Evidence, part: str, env: str, agent: str) -> list[str]:
    if agent not in evidence[part].agents:
        return [""] * 5
    cells = []
    for fraction in (0.1, 1.0):
        runs = regret(evidence, [part], env, agent, fraction)
        cells += [str(estimate([values.mean() for values in runs])), number(tenth(runs))]
    return [*cells, f"{100 * mean(late(evidence, [part], [env], agent)):.3g} %"]


def plot(evidence: Evidence) -> Figure:
    """Regret in seven click models on the first queries, and in the DBN on the others."""
    cases = [(short(env), FIRST, env) for env in MODELS]
    cases.append(("DBN, 60 queries", SIXTY, "DBNRank-v0"))
    return regret_figure(evidence, cases, 4, "MixTS beside others, in seven click models")


STUDY = Study(
    FIRST,
    "An agent that weighs several click models: does it stay on wrong lists?",
    "Our own study of MixTS",
    "These runs are of the MixTS of version 3.0, whose hypotheses and evidence were others; its "
    "exam has those of version 4.0. MixTS is told nothing about its users; nor are GRAB, PB-MHB "
    "and CascadeTS. BCMP-TS is given "
    "the examination probabilities of the PBM, and in the other models what the package derives "
    "for them. The first part has the 16 queries that ship, the second 60 that do not. Trust "
    "bias is that of the scorecard: the items and the examination of a query's PBM, with the "
    f"standard trust of the package. A run is late if it loses more than {LATE} clicks per "
    "session in the last fifth of its sessions. MixTS was developed on random instances, and its "
    "constants were frozen before it played any of these queries. All statements were written "
    "before that; where they name a number it is a target that was set beforehand. This is the "
    "first run, and it is the one that counts. To save time, which was decided before, there are "
    "two runs on the first 16 queries and one on the 60; BCMP-TS plays the first 16 only, and "
    "PB-MHB, which takes four times as long as the others, one run there.",
    play,
    statements,
    plot,
    table,
)

if __name__ == "__main__":
    main(STUDY)
