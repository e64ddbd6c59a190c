"""Study of MixTS, which weighs several click models: in which of seven does it stay on wrong
lists?
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from clickgym.core.statistics import worst_tenth
from clickgym.runner import by_label

from .plots import Figure, regret_figure
from .study import Estimate, Evidence, Finding, PaperTable, Values, estimate, number, short

SIX = ("CMRank-v0", "PBMRank-v0", "DCMRank-v0", "UBMRank-v0", "DBNRank-v0", "CCMRank-v0")
TRUST = ("TPBMRank-v0",)
MODELS = (*SIX, *TRUST)
OWN, RIVAL = "MixTS", "GRAB"
AGENTS = (f"{OWN}=clickgym_lab.mix_ts:MixTS", RIVAL, "CascadeTS")
WITH_INFORMED = (*AGENTS, "BCMPTS")
SLOWEST = "PBMHB"
FIRST, SIXTY, SLOW = "never-locked", "never-locked-sixty", "never-locked-slow"
PARTS = (FIRST, SIXTY)
N_FIRST = 16
"""The queries that ship are a part of their own."""
LATE = 0.002
"""A run is late if it loses more clicks per session than that in its last fifth."""


def further(queries: Sequence[str]) -> list[str]:
    """The queries behind the first 16; all, where there are no more."""
    return list(queries[N_FIRST:] or queries)


def regret(
    evidence: Evidence, parts: Sequence[str], env: str, agent: str, fraction: float = 1.0
) -> list[Values]:
    """The regret of the runs of each query."""
    return [runs for part in parts for runs in evidence[part].ends(env, agent, fraction=fraction)]


def late(evidence: Evidence, parts: Sequence[str], envs: Sequence[str], agent: str) -> list[Values]:
    """Which runs of each query are late, 0 or 1."""
    found = []
    for curves in map(evidence.__getitem__, parts):
        lost = [curves.ends(env, agent) - curves.ends(env, agent, fraction=0.8) for env in envs]
        found += list((np.hstack(lost) > LATE * 0.2 * curves.horizon).astype(float))
    return found


def mean(runs: Sequence[Values]) -> float:
    """The mean over the queries, each averaged over its runs."""
    return float(np.mean([each.mean() for each in runs]))


def tenth(runs: Sequence[Values]) -> float:
    """The mean of the tenth of all runs that lose most."""
    return -worst_tenth(-np.concatenate(runs))


def ratio_of(
    figure: Callable[[Sequence[Values]], float], own: Sequence[Values], other: Sequence[Values]
) -> Estimate:
    """A figure of one agent as a multiple of another's, with the interval of the jackknife over the
    queries.
    """
    if not figure(other):
        return Estimate(np.nan, np.inf)
    n, ratio = len(own), figure(own) / figure(other)
    without = [
        figure([*own[:i], *own[i + 1 :]]) / max(figure([*other[:i], *other[i + 1 :]]), 1e-12)
        for i in range(n)
    ]
    return Estimate(ratio, estimate(n * ratio - (n - 1) * np.array(without)).half)


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
    means, tenths = (
        " against ".join(number(figure(runs)) for runs in (own, rival)) for figure in (mean, tenth)
    )
    ratio = ratio_of(tenth if tail else mean, own, rival)
    words = f"{means}, in the worst tenth {tenths}; {ratio} times{' in the worst tenth' if tail else ''}"
    return Finding(f"{words} over {len(own)} queries", ratio.below(most))


def rarely_late(
    evidence: Evidence, parts: Sequence[str], envs: Sequence[str], most: float, than: str = ""
) -> Finding:
    """Whether a share of the runs of MixTS is late that is below a number, or below so many times
    that of another agent.
    """
    own, rival = (late(evidence, parts, envs, agent) for agent in (OWN, than or RIVAL))
    counts = " against ".join(
        f"{sum(map(np.sum, runs)):.0f} of {sum(map(len, runs))}" for runs in (own, rival)
    )
    measured = ratio_of(mean, own, rival) if than else estimate([runs.mean() for runs in own])
    words = f"{measured} times" if than else f"a share of {measured}"
    return Finding(
        f"{counts} runs of {than or RIVAL}, {words} over {len(own)} queries", measured.below(most)
    )


def _cells(evidence: Evidence, part: str, env: str, agent: str) -> list[str]:
    if agent not in evidence[part].agents:
        return [""] * 5
    regrets = [regret(evidence, [part], env, agent, fraction) for fraction in (0.1, 1.0)]
    cells = [
        text
        for runs in regrets
        for text in (str(estimate([each.mean() for each in runs])), number(tenth(runs)))
    ]
    return [*cells, f"{100 * mean(late(evidence, [part], [env], agent)):.3g} %"]


def table(evidence: Evidence) -> PaperTable:
    """Regret on the way and at the end, each with its worst tenth, and the runs that are late."""
    steps = [f"{fraction * evidence[FIRST].horizon:,.0f}" for fraction in (0.1, 1.0)]
    heads = [cell for step in steps for cell in (f"after {step}", "worst tenth")]
    rows = [
        [
            "model",
            "agent",
            *(
                f"{head}, {where}"
                for where in ("16 queries", "60 queries")
                for head in (*heads, "late")
            ),
        ]
    ]
    for env, agent in product(MODELS, by_label("agent", (*WITH_INFORMED, SLOWEST))):
        parts = (SLOW if agent == SLOWEST else FIRST, SIXTY)
        rows.append(
            [
                short(env),
                agent,
                *(cell for part in parts for cell in _cells(evidence, part, env, agent)),
            ]
        )
    return (
        "Regret, mean over queries with its 95 % interval, in the worst tenth of the runs, and the share of late runs",
        rows,
    )


def draw(evidence: Evidence) -> Figure:
    """Regret in seven click models on the first queries, and in the DBN on the others."""
    cases = [
        *((short(env), FIRST, env) for env in MODELS),
        ("DBN, 60 queries", SIXTY, "DBNRank-v0"),
    ]
    return regret_figure(evidence, cases, 4, "MixTS beside others, in seven click models")
