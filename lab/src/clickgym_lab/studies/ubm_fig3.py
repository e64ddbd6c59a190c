"""Where users click last.

He et al. 2020, figure 3.

The paper counts the last clicks of shop users who clicked, in lists of 12, and calls an item below
the last click pseudo-exposed: it may not have been seen. Here the shares are exact for the user
browsing model of each query, with the production list of 10; nothing is sampled. Web search is
another kind of page, so that half to twice the paper's share is all that the statements ask for.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from .claims import Claim, Curves, Estimate, Finding, Results, Values, estimate, number
from .contextual_ctr import OURS
from .plots import Figure, finish, grid, style_of
from .study import Sweep

FIG3 = "ubm-fig3"
PAGE = 10
LAST_CLICKS = f"UBMRank-v0:n_positions={PAGE}"
PUBLISHED_LAST = {1: 0.166, 2: 0.116}
"""The share of users who click last at a position, of those who click, in the paper."""
PUBLISHED_BELOW = 0.54


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


def claims(results: Results) -> Iterator[Claim]:
    """What the paper says of its figure 3.

    A test asks whether the mean of independent values lies between two bounds: yes if its 95 %
    interval (Student's t) lies between them, no if it lies outside, else it cannot tell; all
    statements are judged together by Holm's procedure.

    All intervals are over the queries.
    """
    shares = last_shares(results[FIG3])
    for place, published in zip(("first", "second"), PUBLISHED_LAST.values(), strict=True):
        share = estimate(shares[:, 0 if place == "first" else 1])
        yield Claim(
            f"Of the users who click, {published:.1%} click last at the {place} position".replace(
                "%", " %"
            ),
            "between half and twice as many",
            as_often(share, published, "of those who click"),
            paper=f"{100 * published:.1f} %",
        )
    below = estimate(shares @ (1 - np.arange(1, PAGE + 1) / PAGE))
    yield Claim(
        "About half of the shown items are below the last click of a user who clicks",
        "between half and twice the paper's share",
        as_often(below, PUBLISHED_BELOW, "of the items"),
        paper="about 54 %",
    )


def last_shares(curves: Curves) -> Values:
    """``(queries, positions)`` the shares of last clicks."""
    return np.array([curves.by_instance(LAST_CLICKS, "Fixed", name)[:, 0] for name in LAST]).T


def as_often(share: Estimate, published: float, words: str) -> Finding:
    """Whether a share is between half and twice that of the paper."""
    measured = f"{100 * share.mean:.1f} ± {number(100 * share.half, 2)} % {words}"
    return share.within(published / 2, published * 2, words=measured)


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
