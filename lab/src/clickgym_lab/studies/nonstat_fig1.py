"""Regret where the users change every 10,000 sessions.

Li and de Rijke 2019, figure 1.

The horizon is never scaled: the changes are at fixed sessions. Changes come at a constant rate, so
any agent has regret that grows linearly from one pair of epochs to the next, however well it
adapts; the theorems' sublinear growth is about a fixed number of changes. Agents have their
defaults. The paper has 100 queries. It gives a number only for the last statement: the bounds of
all others, and between two and eight for its four times, are ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from .changing_users import ADAPTIVE, CM, switching
from .claims import (
    LEARNS_RULE,
    LINEAR_RULE,
    Claim,
    Curves,
    Finding,
    Results,
    all_of,
    estimate,
    less_regret,
    linear,
    several,
    sublinear,
)
from .plots import Figure, bands, finish, grid
from .study import Sweep

STUBBORN = ("RankedExp3", "CascadeKLUCB", "BatchRank")
LATE_EPOCHS = (0.6, 0.7, 0.8, 0.9)
"""Where the last four epochs start."""
ENDS = (0.1, 0.2, 0.4, *(start + part for start in LATE_EPOCHS for part in (0.0, 0.02, 0.08)), 1.0)
SWEEPS = [
    Sweep(
        "nonstat-fig1",
        [CM],
        (*ADAPTIVE, *STUBBORN),
        horizon=100_000,
        runs=10,
        instances=switching,
        queries=100,
        windows=50,
        ends=ENDS,
        scaled=False,
    )
]
GROWING = [
    Sweep(
        f"nonstat-growing-{n}",
        [CM],
        (*ADAPTIVE, *STUBBORN),
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
"""The same changes, ten epochs, in a longer and longer run: each epoch has n / 10 sessions."""
"""CascadeDUCB and CascadeSWUCB, which are `ADAPTIVE`, and three agents that are not, in the cascade
model whose users change (`CM`), on up to 100 queries (16 ship; fewer at a smaller scale).
`switching` makes of each the instance li2019-switching: in every second epoch of 10,000 sessions
three other items attract with 0.9. Horizon and runs are never scaled: users change at fixed
sessions.
"""


def claims(results: Results) -> Iterator[Claim]:
    """What the paper says of its figure 1.

    A test asks whether the mean of independent values lies between two bounds: yes if its 95 %
    interval (Student's t) lies between them, no if it lies outside, else it cannot tell; all
    statements are judged together by Holm's procedure. `several` asks that all tests hold; one that
    surely does not contradicts the statement.

    `linear` (and `sublinear`) asks whether the rate of regret in the last fifth of the sessions
    less 0.8 times that in the second fifth is above (below) 0, over the queries where their values
    are kept, else over the runs: the finding says which. `less_regret` asks whether the gap between
    two agents' regret at the end is above 0, over the queries, each averaged over its runs. The two
    tests of this file are over the runs, each averaged over the queries.
    """
    curves = results["nonstat-fig1"]
    for agent in ADAPTIVE:
        yield Claim(
            f"{agent} detects the changes and converges again",
            "regret per session in the last fifth of the epochs after a change is below half of "
            "that in their first fifth",
            converges_again(curves, agent),
        )
    for agent in ADAPTIVE:
        finding = several({"CM": sublinear(curves, CM, agent)})
        yield Claim(f"The regret of {agent} is sublinear within the run", LEARNS_RULE, finding)
    for agent in STUBBORN:
        finding = several({"CM": linear(curves, CM, agent)})
        yield Claim(f"The regret of {agent} is linear", LINEAR_RULE, finding)
    for agent in ADAPTIVE:
        yield Claim(
            f"{agent} has less regret than RankedExp3, CascadeKL-UCB and BatchRank",
            "less cumulative regret at the end than each",
            several({worse: less_regret(curves, CM, agent, worse) for worse in STUBBORN}),
        )
    yield Claim(
        "CascadeSWUCB is slightly better than CascadeDUCB",
        "less cumulative regret at the end",
        several({"CascadeDUCB": less_regret(curves, CM, "CascadeSWUCB", "CascadeDUCB")}),
    )
    yield Claim(
        "CascadeKL-UCB has about four times as much regret in [80k, 90k) as in [0, 10k), with the "
        "same users",
        "between two and eight times",
        four_times(curves),
        paper="111.5, then 447.8",
    )


def converges_again(curves: Curves, agent: str) -> Finding:
    """Whether regret per session in the last fifth of an epoch less half of that in its first fifth
    is below 0, both in the mean over the nine epochs after a change.
    """
    values = curves.by_run(CM, agent)
    starts = [epoch / 10 for epoch in range(1, 10)]
    first = np.mean([curves.rate(values, start, start + 0.02) for start in starts], axis=0)
    last = np.mean([curves.rate(values, start + 0.08, start + 0.1) for start in starts], axis=0)
    words = f"{estimate(first)} per session, then {estimate(last)}"
    return estimate(last - 0.5 * first).below(0.0, words)


def four_times(curves: Curves) -> Finding:
    """Whether CascadeKL-UCB's regret in the ninth epoch less twice that in the first is above 0,
    and less eight times that below 0.
    """
    values = curves.by_run(CM, "CascadeKLUCB")
    first, later = (
        curves.rate(values, start, start + 0.1) * curves.horizon / 10 for start in (0.0, 0.8)
    )
    ratio = later.mean() / first.mean()
    words = f"{estimate(first)}, then {estimate(later)}: {ratio:.1f} times"
    bounds = [estimate(later - 2 * first).above(0.0), estimate(later - 8 * first).below(0.0)]
    return all_of(words, bounds)


def draw(results: Results) -> Figure:
    """Regret of all agents, with the epochs shaded."""
    curves = results["nonstat-fig1"]
    figure, [axes] = grid(1, labels=["cumulative regret"])
    bands(axes, curves, CM, (*ADAPTIVE, *STUBBORN))
    for start in range(10_000, curves.horizon, 20_000):
        axes.axvspan(start, start + 10_000, color="0.93", zorder=0)
    label = "session (grey: three other items attract with 0.9)"
    axes.set(xlabel=label, xlim=(0, curves.horizon))
    return finish(figure, [axes], results, "Regret where the users change")
