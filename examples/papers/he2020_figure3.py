"""Where users click last.

He et al. 2020, figure 3.

The paper counts the clicks of Taobao visitors who clicked at least once, in lists of 12 items. Its
log is not published. The paper calls an item below the last click pseudo-exposed, because the user
may not have seen it.

Here we compute exactly, without sampling, which share of the users click last at each position,
from the user browsing model of each web search query, with its production list of 10 items. Web
search is a different kind of page, and more of its users click last at the top. So we show the
paper's counts beside our shares, but do not test them.
"""

from __future__ import annotations

import sys

import figures
import numpy as np
import polars
import study
from study import Number, Statement, estimate

from clickgym.runner.make import make_env

PAGE = 10
ENV = f"UBMRank-v0:n_positions={PAGE}"
PRINTED = {1: 0.166, 2: 0.116}
"""The share of users who click last at a position, of those who click, in the paper."""


def last_clicks(env):
    """Return ``(K,)`` exact shares: how many of the users who click at all click last at each
    position of the production list.
    """
    model, ranking = env.unwrapped.model, env.unwrapped.initial_ranking
    # Of users whose last click so far was at a position; 0: no click yet.
    shares = np.zeros(model.n_positions + 1)
    shares[0] = 1.0
    for k, attraction in enumerate(model.attraction[ranking[: model.n_positions]]):
        clicks = shares[: k + 1] * model.examination[k, : k + 1] * attraction
        shares[: k + 1] -= clicks
        shares[k + 1] = clicks.sum()
    return shares[1:] / (1 - shares[0])


def play(options):
    """Compute the exact shares of each query; no session is played."""
    rows = []
    for query in options.queries[:16]:
        env = make_env(ENV, query)
        shares = {f"last_{k}": share for k, share in enumerate(last_clicks(env), 1)}
        rows.append({"env": ENV, "instance": env.unwrapped.instance, "agent": "Fixed", **shares})
    table = polars.DataFrame(rows).with_columns(run=polars.lit(0), step=polars.lit(1))
    return {"last clicks": study.compact(table, (1.0,), [f"last_{k}" for k in range(1, PAGE + 1)])}


def last_shares(results):
    """Return the shares of last clicks, ``(queries, positions)``."""
    curves = results["last clicks"]
    names = [f"last_{k}" for k in range(1, PAGE + 1)]
    return np.array([curves.by_instance(ENV, "Fixed", name)[:, 0] for name in names]).T


def numbers(results):
    shares = last_shares(results)
    below = shares @ (1 - np.arange(1, PAGE + 1) / PAGE)
    words = "Of those who click, last click at position {}, %"
    return [
        *(
            Number(words.format(k), 100 * share, 100 * shares[:, k - 1], is_comparable=False)
            for k, share in PRINTED.items()
        ),
        Number("Items below the last click, %", 54.0, 100 * below, is_comparable=False),
    ]


def statements(results):
    reason = "It is a count in the log of a shop, which is not published. The number stands above."
    return [
        Statement(quote, "section 6.4, figure 3", reason)
        for quote in (
            "for the records whose last click's position is 1, which accounts for 16.6% of the "
            "data.",
            "about 54% of rewards are affected by the pseudo-exposure issue.",
            "Only 6.2% of the last items are clicked by users in our data.",
        )
    ]


def draw(results):
    """Draw the share of each position, and the paper's share where its text gives one."""
    figure, [axes] = figures.grid(1, label="share of those who click")
    shares = [estimate(column) for column in last_shares(results).T]
    means, halves = [one.mean for one in shares], [one.half for one in shares]
    axes.bar(range(1, PAGE + 1), means, yerr=halves, label="web search")
    axes.plot(list(PRINTED), list(PRINTED.values()), "ko", markersize=4, label="He et al., shop")
    axes.set(xlabel="position of the last click", xticks=range(1, PAGE + 1))
    return figures.finish(figure, "Where users click last")


if __name__ == "__main__":
    study.main(sys.modules[__name__])
