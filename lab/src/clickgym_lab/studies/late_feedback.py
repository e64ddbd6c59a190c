"""Regret when clicks arrive in batches, or late.

Ours.

Clicks reach the agent in batches, or some sessions after the users made them (`delay=`). Only
agents that learn from any list can play. Clicks that have not arrived when a run ends are lost.
Fixed is the production list.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from .claims import Results, Values, estimate, ratio, short
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
LARGE = "batches of 5,000"
SHOWN = ("CascadeKLUCB", "CascadeTS", "PBMHB")


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


def regret(results: Results, env: str, agent: str, words: str) -> Values:
    """``(queries,)`` regret at the end."""
    return results[_part(words)].values(env, agent)


def added(results: Results, agent: str, words: str) -> str:
    """Regret in the CM as a multiple of that with clicks at once."""
    return f"{ratio(*(regret(results, CM, agent, name) for name in (words, AT_ONCE)))}"


def seen(results: Results) -> Iterator[str]:
    """What delays cost."""
    for words in DELAYS:
        if words != AT_ONCE:
            costs = (f"{added(results, agent, words)} ({agent})" for agent in SHOWN)
            yield f"CM, {words}: regret is {', '.join(costs)} times that with clicks at once."
    large = [regret(results, CM, agent, LARGE) for agent in ("CascadeTS", "CascadeKLUCB")]
    yield f"In batches of 5,000 CascadeTS has {ratio(*large)} times the regret of CascadeKLUCB."
    fixed = regret(results, CM, "Fixed", LARGE)
    yield (
        f"In batches of 5,000 the production list has {ratio(fixed, large[0])} times the regret of "
        "CascadeTS."
    )


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
