"""Regret with users who change every 10,000 sessions, on single queries.

Li and de Rijke 2019, figure 2.

The paper picks 20 of its 100 queries and does not name them. We use the first 20 of the 60
published queries. The changes, the constants, the horizon and the number of runs are the same as
for figure 1.

BubbleRank needs a production list, and the paper does not say which list it used. In our runs,
BubbleRank re-ranks all ten items, starting from the query's production list, and users see the
first three. BubbleRank also plays runs with ten epochs whose length grows with the number n of
sessions.

The paper makes the same statements about the other agents for figure 1, and the page on figure 1
tests these statements.
"""

from __future__ import annotations

import math
import sys

import figures
import study
from li2019_nonstationary_figure1 import (
    ADAPTIVE,
    CM,
    SESSIONS,
    growing,
    grown,
    in_words,
    longer,
    switching,
)
from study import Statement

RIVALS = ("RankedExp3", "CascadeKLUCB", "BubbleRank")


def play(options):
    """Play the changes of figure 1 on each of 20 queries, and BubbleRank as n grows."""
    horizon = options.horizon or SESSIONS
    changing = switching(options.queries[:20], horizon // 10)
    agents = [*ADAPTIVE, *RIVALS]
    table = study.played(options, "changes", [CM], agents, horizon, 10, changing)
    return {"changes": study.compact(table, ends=()), **growing(options, ["BubbleRank"])}


def statements(results):
    return [
        Statement(
            "The results exemplify that CascadeDUCB and CascadeSWUCB have sub-linear regret while "
            "other baselines have linear regret.",
            "appendix B",
            "The sentence is about single queries in a run of 100,000 sessions. In such a run, "
            "users change at a constant rate, so the regret of every agent grows linearly in the "
            "long run. For figure 1, we test the same sentence over all queries, with epochs that "
            "grow.",
        )
    ]


def seen(results):
    """Report on how many queries the adaptive agents lead, and how BubbleRank's regret grows."""
    curves = results["changes"]
    for agent in ADAPTIVE:
        ours = curves.values(CM, agent)
        for rival in RIVALS:
            ahead = (ours < curves.values(CM, rival)).sum()
            yield f"{agent} ends with less regret than {rival} on {ahead} of {len(ours)} queries."
    ns = ", ".join(f"{n:,}" for n in longer(results))
    rates = in_words(grown(results, "BubbleRank"))
    yield f"Regret of BubbleRank with ten epochs of n / 10 sessions, for n = {ns}: {rates}."


def draw(results):
    """Draw the regret for each query in its own panel."""
    curves = results["changes"]
    n = len(curves.instances)
    figure, panels = figures.grid(4, math.ceil(n / 4), width=2.0, height=1.7)
    for axes, query in zip(panels, curves.instances, strict=False):
        for agent in (*ADAPTIVE, *RIVALS):
            values = curves.by_run(CM, agent, instance=query)
            figures.band(axes, curves.steps / 1000, values / 1000, agent)
        axes.set_title(
            query.partition("query=")[2].partition(",")[0].removesuffix(".json"), fontsize=8
        )
    for axes in panels[n:]:
        axes.remove()
    return figures.finish(figure, "Cumulative regret over sessions, both in thousands")


if __name__ == "__main__":
    study.main(sys.modules[__name__])
