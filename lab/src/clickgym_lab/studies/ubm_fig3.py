"""Where users click last.

He et al. 2020, figure 3.

The paper counts clicks of visitors of Taobao who clicked at least once, in lists of 12. Its log is
not published. It calls an item below the last click pseudo-exposed, because the user may not have
seen it.

Here the shares are exact for the user browsing model of each query of web search, with its
production list of 10. Nothing is sampled. Web search is another kind of page, on which more people
click last at the top. So we do not test the paper's counts. They stand beside ours.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .claims import Curves, Number, Results, Statement, Values, estimate
from .contextual_ctr import OURS
from .plots import Figure, finish, grid, style_of
from .study import Sweep

FIG3 = "ubm-fig3"
PAGE = 10
LAST_CLICKS = f"UBMRank-v0:n_positions={PAGE}"
PUBLISHED_LAST = {1: 0.166, 2: 0.116}
"""The share of users who click last at a position, of those who click, in the paper."""


def last_click(position: int, env: Any) -> float:
    """The exact share of users who click last at a position of the production list, of those who
    click.
    """
    model, ranking = env.unwrapped.model, env.unwrapped.initial_ranking
    # Of users whose last click so far was at a position; 0: no click yet.
    shares = np.zeros(model.n_positions + 1)
    shares[0] = 1.0
    for k, attraction in enumerate(model.attraction[ranking[: model.n_positions]]):
        clicks = shares[: k + 1] * model.examination[k, : k + 1] * attraction
        shares[: k + 1] -= clicks
        shares[k + 1] = clicks.sum()
    return float(shares[position] / (1 - shares[0]))


LAST = {f"last_{position}": partial(last_click, position) for position in range(1, PAGE + 1)}
SWEEPS = [Sweep(FIG3, [LAST_CLICKS], ["Fixed"], 10_000, 4, queries=16, windows=1, facts=LAST)]
"""The production list of each query; the shares are exact, and nothing is sampled."""


def last_shares(curves: Curves) -> Values:
    """``(queries, positions)`` the shares of last clicks."""
    return np.array([curves.by_instance(LAST_CLICKS, "Fixed", name)[:, 0] for name in LAST]).T


def below(curves: Curves) -> Values:
    """``(queries,)`` the share of the items that are below the last click."""
    return last_shares(curves) @ (1 - np.arange(1, PAGE + 1) / PAGE)


NUMBERS = [
    *(
        Number(
            f"Of those who click, last click at position {position}, %",
            100 * share,
            lambda results, place=position - 1: (  # type: ignore[misc]
                100 * last_shares(results[FIG3])[:, place]
            ),
            is_comparable=False,
        )
        for position, share in PUBLISHED_LAST.items()
    ),
    Number(
        "Items below the last click, %",
        54.0,
        lambda results: 100 * below(results[FIG3]),
        is_comparable=False,
    ),
]
OTHER_PAGE = "It is a count in the log of a shop, which is not published. The number stands above."
STATEMENTS = [
    Statement(quote, "section 6.4, figure 3", OTHER_PAGE)
    for quote in (
        "for the records whose last click's position is 1, which accounts for 16.6% of the data.",
        "about 54% of rewards are affected by the pseudo-exposure issue.",
        "Only 6.2% of the last items are clicked by users in our data.",
    )
]


def draw(results: Results) -> Figure:
    """The share of each position, the paper's where its text has it."""
    figure, [axes] = grid(1)
    positions = np.arange(1, PAGE + 1)
    shares = [estimate(column) for column in last_shares(results[FIG3]).T]
    means, halves = [share.mean for share in shares], [share.half for share in shares]
    color = style_of(OURS, axes)["color"]
    axes.bar(positions, means, yerr=halves, color=color, label="web search")
    places, shares_of_paper = list(PUBLISHED_LAST), list(PUBLISHED_LAST.values())
    axes.plot(places, shares_of_paper, "o", color="black", markersize=4, label="He et al., shop")
    axes.set(xlabel="position of the last click", xticks=positions)
    axes.set_ylabel("share of those who click")
    intervals = "lines: 95 % intervals over the queries"
    return finish(figure, [axes], results, "Where users click last", intervals)
