"""Regret where the users change every 10,000 sessions, on single queries.

Li and de Rijke 2019, figure 2.

The paper picks 20 queries and does not say which; here they are the first 20, or all where there
are fewer. BubbleRank is the agent of this figure that figure 1 has not; it re-ranks the production
list, and shows the first three items of it. Statements hold on every single query or not at all;
those marked (ours) were predicted before the run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

from .changing_users import ADAPTIVE, CM, switching
from .claims import (
    LEARNS_RULE,
    LINEAR,
    LINEAR_RULE,
    Claim,
    Curves,
    Finding,
    Results,
    Values,
    all_of,
    estimate,
    several,
)
from .plots import Figure, band, finish, grid
from .study import Sweep

SINGLE = (*ADAPTIVE, "RankedExp3", "CascadeKLUCB", "BubbleRank")
GROWING = [
    Sweep(
        f"nonstat-bubble-{n}",
        [CM],
        ["BubbleRank"],
        horizon=n,
        runs=3,
        instances=partial(switching, length=n // 10),
        queries=100,
        windows=10,
        ends=(1.0,),
        scaled=False,
    )
    for n in (20_000, 80_000, 320_000, 1_280_000)
]
"""Ten epochs in a longer and longer run, as in figure 1, for the agent that figure 1 has not."""
SWEEPS = [
    Sweep(
        "nonstat-fig2",
        [CM],
        SINGLE,
        horizon=100_000,
        runs=10,
        instances=switching,
        queries=20,
        whole=True,
        scaled=False,
    )
]
"""The same changes as in nonstat-fig1, every 10,000 sessions, on up to 20 queries, each for itself;
`ADAPTIVE` are CascadeDUCB and CascadeSWUCB. Horizon and runs are never scaled.
"""


def claims(results: Results) -> Iterator[Claim]:
    """What the paper says of its figure 2; those marked (ours) were predicted before the run.

    A test asks whether the mean of independent values lies between two bounds: yes if its 95 %
    interval (Student's t) lies between them, no if it lies outside, else it cannot tell; all
    statements are judged together by Holm's procedure. `several` asks that all tests hold; one that
    surely does not contradicts the statement.

    Every test is of one query, over its ten runs: `on_each` needs it on all queries. Linear is a
    rate of regret in the last fifth of the sessions above `LINEAR`, 0.8, times that in the second
    fifth.
    """
    curves, rivals = results["nonstat-fig2"], ("RankedExp3", "CascadeKLUCB", "BubbleRank")
    for agent in ADAPTIVE:
        yield Claim(
            f"The regret of {agent} is sublinear on single queries",
            f"on every query: {LEARNS_RULE}",
            on_each("sublinear", excess(curves, agent)),
        )
    for agent in rivals:
        yield Claim(
            f"The regret of {agent} is linear on single queries",
            f"on every query: {LINEAR_RULE}",
            on_each("linear", [-values for values in excess(curves, agent)]),
        )
    for agent in ADAPTIVE:
        yield Claim(
            f"{agent} has less regret than RankedExp3, CascadeKL-UCB and BubbleRank on every query "
            "(ours)",
            "less cumulative regret at the end than each, on every query",
            several({worse: less_on_each(curves, agent, worse) for worse in rivals}),
        )


def excess(curves: Curves, agent: str) -> list[Values]:
    """For each query ``(runs,)`` how far the late rate of regret is above that of linear regret."""
    queries = [curves.by_run(CM, agent, instance=query) for query in curves.instances]
    return [curves.rate(q, 0.8, 1.0) - LINEAR * curves.rate(q, 0.2, 0.4) for q in queries]


def less_on_each(curves: Curves, better: str, worse: str) -> Finding:
    """Whether one agent has less regret at the end than another on every query."""
    low, high = (curves.by_instance(CM, agent) for agent in (better, worse))
    return on_each("less regret", list(low - high))


def on_each(words: str, values: Sequence[Values]) -> Finding:
    """Whether the ``(runs,)`` values are surely below 0 on every query."""
    findings = [estimate(runs).below(0.0) for runs in values]
    verdicts = [finding.verdict for finding in findings]
    counts = f"{verdicts.count('no')} not, {verdicts.count('cannot tell')} cannot tell"
    total = f"{words} on {verdicts.count('yes')} of {len(verdicts)} queries ({counts})"
    return all_of(total, findings)


def draw(results: Results) -> Figure:
    """A panel for each query."""
    curves = results["nonstat-fig2"]
    figure, panels = grid(4, math.ceil(len(curves.instances) / 4), 2.0, 1.7)
    for axes, query in zip(panels, curves.instances, strict=False):
        for agent in SINGLE:
            values = curves.by_run(CM, agent, instance=query)
            band(axes, curves.steps / 1000, values / 1000, agent)
        axes.set_title(query.partition("query=")[2].partition(",")[0] or query, fontsize=8)
        axes.tick_params(labelsize=7)
    for axes in panels[len(curves.instances) :]:
        axes.remove()
    title = "Cumulative regret on single queries over sessions, both in thousands"
    return finish(figure, panels, results, title)
