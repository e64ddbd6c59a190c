"""Where users click last.

He et al. 2020, figure 3.

The paper counts the clicks of Taobao visitors who clicked at least once, on lists of 12 items. The
log of these visitors is not published. The paper says that an item below the last click is
pseudo-exposed, because the user may not have seen it.

We instead use web search queries: for each query, we take the user browsing model and a production
list of 10 items, and compute exactly, without sampling, what percentage of the users who click make
their last click at each position. Web search pages differ from shop pages, and more of the users in
web search make their last click near the top. So this page shows the paper's counts next to our
percentages, but does not test the paper's sentences about them.
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
"""The paper's fractions of users whose last click is at a position, among users who click."""


def last_clicks(env):
    """Return the exact distribution over the positions of the production list of the last click,
    for users who click at all, ``(K,)``.
    """
    model, ranking = env.unwrapped.model, env.unwrapped.initial_ranking
    # Fractions of users by the position of their last click so far; entry 0: no click yet.
    shares = np.zeros(model.n_positions + 1)
    shares[0] = 1.0
    for k, attraction in enumerate(model.attraction[ranking[: model.n_positions]]):
        clicks = shares[: k + 1] * model.examination[k, : k + 1] * attraction
        shares[: k + 1] -= clicks
        shares[k + 1] = clicks.sum()
    return shares[1:] / (1 - shares[0])


def play(options):
    """Compute the exact fractions for each query, without playing any session."""
    rows = []
    for query in options.queries[:16]:
        env = make_env(ENV, query)
        shares = {f"last_{k}": share for k, share in enumerate(last_clicks(env), 1)}
        rows.append({"env": ENV, "instance": env.unwrapped.instance, "agent": "Fixed", **shares})
    table = polars.DataFrame(rows).with_columns(run=polars.lit(0), step=polars.lit(1))
    return {"last clicks": study.compact(table, (1.0,), [f"last_{k}" for k in range(1, PAGE + 1)])}


def last_shares(results):
    """Return the fractions of last clicks, ``(queries, positions)``."""
    curves = results["last clicks"]
    names = [f"last_{k}" for k in range(1, PAGE + 1)]
    return np.array([curves.by_instance(ENV, "Fixed", name)[:, 0] for name in names]).T


def numbers(results):
    shares = last_shares(results)
    below = shares @ (1 - np.arange(1, PAGE + 1) / PAGE)
    words = "Users whose last click is at position {}, among those who click, %"
    return [
        *(
            Number(words.format(k), 100 * share, 100 * shares[:, k - 1], is_comparable=False)
            for k, share in PRINTED.items()
        ),
        Number("Items below the last click, %", 54.0, 100 * below, is_comparable=False),
    ]


def statements(results):
    reason = "The sentence reports a count in a log that is not published, so we cannot repeat it."
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
    """Draw the fraction of last clicks at each position, and the paper's where it prints one."""
    figure, [axes] = figures.grid(1, label="share of users who click")
    shares = [estimate(column) for column in last_shares(results).T]
    means, halves = [one.mean for one in shares], [one.half for one in shares]
    axes.bar(range(1, PAGE + 1), means, yerr=halves, label="web search")
    axes.plot(list(PRINTED), list(PRINTED.values()), "ko", markersize=4, label="He et al., shop")
    axes.set(xlabel="position of the last click", xticks=range(1, PAGE + 1))
    return figures.finish(figure, "Where users click last")


if __name__ == "__main__":
    study.main(sys.modules[__name__])
