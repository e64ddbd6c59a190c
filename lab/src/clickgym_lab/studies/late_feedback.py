"""Regret when clicks arrive in batches, or late.

ours.

Version 3.0 wrote these statements before a run in which the environments delayed the clicks. Here
the runner delays them (`delay=`), and the run is new. Only agents that learn from any list can
play. Clicks that have not arrived when a run ends never do. Fixed is the production list. All
intervals are over queries.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

from .claims import Claim, Finding, Results, Values, estimate, less_regret, ratio, short, times
from .plots import Figure, finish, grid, points
from .study import LAST_ENDS, Sweep, Table

CM, PBM = "CMRank-v0", "PBMRank-v0"
LEARNING = ("CascadeKLUCB", "CascadeTS", "CascadeUCB1", "EpsilonGreedy", "GRAB", "PBMHB", "PBMTS")
AGENTS = (*LEARNING, "Fixed", "Random")
AT_ONCE = "at once"
DELAYS = {
    AT_ONCE: None,
    "batches of 100": "batch:100",
    "batches of 5,000": "batch:5000",
    "1,000 sessions late": "fixed:1000",
    "late by 1,000 in the mean": "geometric:1000",
}
SMALL, LARGE, ALWAYS, MEAN = list(DELAYS)[1:]


def _part(words: str) -> str:
    return f"late-feedback-{(DELAYS[words] or 'none').replace(':', '-')}"


SWEEPS = [
    Sweep(
        _part(words),
        [CM, PBM],
        AGENTS,
        horizon=40_000,
        runs=4,
        queries=16,
        ends=LAST_ENDS,
        delay=delay,
        scaled=False,
    )
    for words, delay in DELAYS.items()
]
"""The horizon is not scaled: the last batches of 5,000 would be lost."""


def claims(results: Results) -> Iterator[Claim]:
    """Statements of ours.

    A test asks whether the mean of independent values lies between two bounds: yes if its 95 %
    interval (Student's t) lies between them, no if it lies outside, else it cannot tell; all
    statements are judged together by Holm's procedure. `several` asks that all tests hold; one that
    surely does not contradicts the statement.

    `added` and `times` ask whether regret at the end, as a multiple of that with another delay or
    of another agent, lies between two bounds; the interval is of the ratio of two means over the
    queries. `less_regret` asks whether the gap between two agents' regret at the end is above 0.
    """
    rule = "its regret at the end is {} {} times that with clicks at once, in the CM"
    for agent, high in (("CascadeKLUCB", 1.25), ("CascadeTS", 1.5), ("PBMHB", 1.5)):
        yield Claim(
            f"Batches of 100 sessions add little to the regret of {agent}",
            rule.format("at most", high),
            added(results, agent, SMALL, AT_ONCE, 0.0, high),
        )
    for agent, low in (("CascadeTS", 5.0), ("PBMHB", 3.0), ("CascadeKLUCB", 3.0)):
        yield Claim(
            f"Batches of 5,000 sessions add much to the regret of {agent}",
            rule.format("more than", low),
            added(results, agent, LARGE, AT_ONCE, low, math.inf),
        )
    large = results[_part(LARGE)]
    yield Claim(
        "In batches of 5,000 the production list itself has less regret than CascadeTS in the CM",
        "less regret at the end",
        less_regret(large, CM, "Fixed", "CascadeTS"),
    )
    yield Claim(
        "In batches of 5,000 Thompson sampling (CascadeTS) no longer has clearly less regret than "
        "optimism (CascadeKL-UCB) in the CM",
        "CascadeTS has 0.8 to 1.1 times its regret at the end",
        times(large, CM, "CascadeTS", "CascadeKLUCB", 0.8, 1.1),
    )
    for agent in ("CascadeKLUCB", "CascadeTS"):
        yield Claim(
            f"For {agent} only the mean of the delay matters, not its distribution: 1,000 sessions "
            "always, or 1,000 in the mean",
            "regret at the end with the fixed delay is 0.75 to 1.33 times that with the geometric "
            "delay, in the CM",
            added(results, agent, ALWAYS, MEAN, 0.75, 1.33),
        )


def regret(results: Results, env: str, agent: str, words: str) -> Values:
    """``(queries,)`` regret at the end."""
    return results[_part(words)].at_end(env, agent)


def added(results: Results, agent: str, words: str, base: str, low: float, high: float) -> Finding:
    """Whether regret in the CM, as a multiple of that with another delay, is between two bounds."""
    multiple = ratio(*(regret(results, CM, agent, name) for name in (words, base)))
    return multiple.within(low, high, f" times {results[_part(words)].over}")


def table(results: Results) -> Table:
    """Regret at the end."""
    rows = [["model", "agent", *DELAYS]]
    for env, agent in product((CM, PBM), AGENTS):
        cells = [str(estimate(regret(results, env, agent, words))) for words in DELAYS]
        rows.append([short(env), agent, *cells])
    return "Regret at the end, mean over queries with its 95 % interval", rows


def draw(results: Results) -> Figure:
    """Regret at the end with each delay."""
    figure, panels = grid(2, labels=["regret at the end"])
    places = range(len(DELAYS))
    for axes, env in zip(panels, (CM, PBM), strict=True):
        for agent in AGENTS:
            points(axes, places, [regret(results, env, agent, words) for words in DELAYS], agent)
        axes.set(yscale="log", title=short(env))
        axes.set_xticks(list(places), list(DELAYS), rotation=25, ha="right", fontsize=8)
    intervals = "lines: 95 % intervals over the queries"
    return finish(figure, panels[:1], results, "Clicks that arrive late", intervals)
