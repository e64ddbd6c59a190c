"""Regret where the users change every 10,000 sessions, on single queries.

Li and de Rijke 2019, figure 2.

The paper picks 20 queries of its 100 and does not name them. Here are the first 20 of the 60
published ones, and the 16 shipped ones. Changes, constants, horizon and runs are those of figure 1.

BubbleRank needs a production list, and the paper does not say which list it had. Here it re-ranks
all ten items from the query's production list, and users see the first three. It also runs with ten
epochs whose length grows with n.

What the paper says of the other agents, it says of figure 1, too. The page nonstat-fig1 tests it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from .changing_users import ADAPTIVE, CM, HORIZONS, growing, in_words, per_session, switching
from .claims import Results, Statement
from .plots import Figure, band, finish, grid
from .study import Sweep

FIG2, GROWING = "nonstat-fig2", "nonstat-bubble"
RIVALS = ("RankedExp3", "CascadeKLUCB", "BubbleRank")
SINGLE = (*ADAPTIVE, *RIVALS)
SWEEPS = [
    Sweep(
        FIG2,
        [CM],
        SINGLE,
        horizon=100_000,
        runs=10,
        instances=switching,
        queries=20,
        whole=True,
        scaled=False,
    ),
    *growing(GROWING, ["BubbleRank"]),
]
"""The same changes as in nonstat-fig1, every 10,000 sessions, on up to 20 queries, each for itself;
`ADAPTIVE` are CascadeDUCB and CascadeSWUCB. Horizon and runs are never scaled.
"""
STATEMENTS = [
    Statement(
        "The results exemplify that CascadeDUCB and CascadeSWUCB have sub-linear regret while "
        "other baselines have linear regret.",
        "appendix B",
        "The sentence is about single queries, in one run of 100,000 sessions. Users change at a "
        "constant rate there, so the regret of every agent grows linearly in the long run. At "
        "nonstat-fig1 we test it over all queries, with epochs that grow.",
    )
]


def seen(results: Results) -> Iterator[str]:
    """On how many queries the adaptive agents are ahead, and how BubbleRank's regret grows."""
    curves = results[FIG2]
    for agent in ADAPTIVE:
        ours = curves.values(CM, agent)
        for rival in RIVALS:
            ahead = (ours < curves.values(CM, rival)).sum()
            yield f"{agent} has less regret than {rival} on {ahead} of {len(ours)} queries."
    rates = in_words(per_session(results, GROWING, "BubbleRank"))
    ns = ", ".join(f"{n:,}" for n in HORIZONS)
    yield f"BubbleRank with ten epochs of n / 10 sessions, n = {ns}: {rates}."


def draw(results: Results) -> Figure:
    """A panel for each query."""
    curves = results[FIG2]
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
