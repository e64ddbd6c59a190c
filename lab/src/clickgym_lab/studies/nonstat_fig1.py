"""Regret where the users change every 10,000 sessions.

Li and de Rijke 2019, figure 1.

The paper draws 100 frequent queries of the Yandex log. We have 60 published and 16 shipped ones.
Other people fitted their models, so levels of regret differ. In every second epoch of 10,000
sessions three items outside of the top three attract with 0.9, as in the paper. A seed of each
query draws these three at random. K = 3 of 10 items, 100,000 sessions, ten runs, ε, γ and τ are the
paper's. CascadeSWUCB counts examinations for both its mean and its width. The printed lines 19 to
24 mix displays and examinations.

If users change at a constant rate, the regret of every algorithm grows linearly. So we test the
sentences about linear and sub-linear regret as the theorems have it, with ten epochs whose length
grows with n. These tests have three runs. We tell each agent n, so that γ and τ follow it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .changing_users import (
    ADAPTIVE,
    CM,
    FALLS,
    GROWS,
    HORIZONS,
    LENGTH,
    falls,
    growing,
    per_session,
    stays,
    switching,
)
from .claims import (
    Finding,
    Number,
    Results,
    Statement,
    Values,
    estimate,
    less,
    ratio,
    several,
)
from .plots import BLACK, Figure, bands, finish, grid, points
from .study import Sweep

FIG1, GROWING = "nonstat-fig1", "nonstat-growing"
STUBBORN = ("RankedExp3", "CascadeKLUCB", "BatchRank")
LATE_EPOCHS = (0.6, 0.7, 0.8, 0.9)
"""Where the last four epochs start."""
ENDS = (0.1, 0.2, 0.4, *(start + part for start in LATE_EPOCHS for part in (0.0, 0.02, 0.08)), 1.0)
SWEEPS = [
    Sweep(
        FIG1,
        [CM],
        (*ADAPTIVE, *STUBBORN),
        horizon=100_000,
        runs=10,
        instances=switching,
        queries=100,
        windows=50,
        ends=ENDS,
        scaled=False,
    ),
    *growing(GROWING, (*ADAPTIVE, *STUBBORN)),
]
"""CascadeDUCB and CascadeSWUCB, which are `ADAPTIVE`, and three agents that are not, in the cascade
model whose users change (`CM`), on up to 100 queries (16 ship). `switching` makes of each the
instance li2019-switching: in every second epoch three other items attract with 0.9.
"""


def epoch(results: Results, agent: str, start: float) -> Values:
    """``(queries,)`` regret in the epoch that starts at a fraction of the sessions."""
    return results[FIG1].rate(CM, agent, start, start + 0.1) * LENGTH


def converges_again(results: Results, agent: str) -> Finding:
    """Whether regret per session falls within the last four epochs, each after a change."""
    curves = results[FIG1]
    first, last = (
        np.mean([curves.rate(CM, agent, s + a, s + b) for s in LATE_EPOCHS], axis=0)
        for a, b in ((0.0, 0.02), (0.08, 0.1))
    )
    words = f"{estimate(first)} per session, then {estimate(last)}"
    return estimate(first - last).above(0.0, words)


def less_regret(results: Results, better: str, worse: str) -> Finding:
    """Whether one agent has less regret at the end than another."""
    curves = results[FIG1]
    return less(curves.values(CM, better), curves.values(CM, worse))


PRINTED = {0.0: (111.50, 1.12), 0.8: (447.82, 137.16)}
"""Regret of CascadeKL-UCB in the epoch that starts there, with the paper's ±."""
NUMBERS = [
    Number(
        f"Regret of CascadeKL-UCB {words}",
        PRINTED[start][0],
        lambda results, start=start: epoch(results, "CascadeKLUCB", start),  # type: ignore[misc]
        PRINTED[start][1],
    )
    for words, start in (
        ("in the first 10,000 sessions", 0.0),
        ("between 80,000 and 90,000, with the same users", 0.8),
    )
]
STATEMENTS = [
    *(
        Statement(
            "All baselines have linear regret in time step.",
            "section 5",
            f"{agent}. " + GROWS,
            lambda results, agent=agent: stays(results, GROWING, agent),  # type: ignore[misc]
        )
        for agent in STUBBORN
    ),
    Statement(
        "Non-stationarity makes the baselines perform even worse during epochs where the "
        "attraction probability are set as the default. E.g., CascadeKL-UCB has 111.50 ± 1.12 "
        "regret in the first 10k steps but has 447.82 ± 137.16 regret between step 80k and 90k.",
        "section 5",
        "We test the example. CascadeKL-UCB has more regret between 80,000 and 90,000 sessions "
        "than in the first 10,000.",
        lambda results: less(
            epoch(results, "CascadeKLUCB", 0.0), epoch(results, "CascadeKLUCB", 0.8)
        ),
    ),
    *(
        Statement(
            "Because of the use of a discounting factor and/or a sliding window, CascadeDUCB and "
            "CascadeSWUCB can detect breakpoints and show convergence.",
            "section 5",
            f"We look at the last four epochs. {agent} has less regret per session in the last "
            "fifth of an epoch than in its first fifth.",
            lambda results, agent=agent: converges_again(results, agent),  # type: ignore[misc]
        )
        for agent in ADAPTIVE
    ),
    Statement(
        "CascadeSWUCB outperforms CascadeDUCB with a small gap",
        "section 5",
        "CascadeSWUCB has less regret at the end. “Small” has no number, so we print the gap.",
        lambda results: less_regret(results, "CascadeSWUCB", "CascadeDUCB"),
    ),
    *(
        Statement(
            "We choose them as baselines to show the superiority of our algorithms in a "
            "non-stationary environment.",
            "section 5",
            f"{agent} has less regret at the end than RankedExp3, CascadeKL-UCB and BatchRank.",
            lambda results, agent=agent: several(  # type: ignore[misc]
                {worse: less_regret(results, agent, worse) for worse in STUBBORN}
            ),
        )
        for agent in ADAPTIVE
    ),
    *(
        Statement(
            "Our theoretical have shown that they have sub-linear regret. These theoretical "
            "findings have been confirmed by our experiments on the Yandex click dataset.",
            "section 7",
            f"{agent}. " + FALLS,
            lambda results, agent=agent: falls(results, GROWING, agent),  # type: ignore[misc]
        )
        for agent in ADAPTIVE
    ),
]


def seen(results: Results) -> Iterator[str]:
    """Growth within the run, and the gap of the two."""
    curves = results[FIG1]
    growth = []
    for agent in (*ADAPTIVE, *STUBBORN):
        early, late = (curves.rate(CM, agent, *span) for span in ((0.2, 0.4), (0.8, 1.0)))
        growth.append(f"{ratio(late, early)} ({agent})")
    yield (
        "Users change at a constant rate. So within the run no agent's regret per session falls "
        f"for long. In the last fifth it is {', '.join(growth)} times that in the second fifth."
    )
    share = ratio(*(curves.values(CM, agent) for agent in reversed(ADAPTIVE)))
    yield f"CascadeSWUCB has {share} times the regret of CascadeDUCB at the end."


def draw(results: Results) -> Figure:
    """Regret of all agents, with the epochs shaded; and regret per session as n grows."""
    curves, agents = results[FIG1], (*ADAPTIVE, *STUBBORN)
    figure, [axes, growth] = grid(2, width=4.0, labels=["cumulative regret"])
    bands(axes, curves, CM, agents)
    for start in range(LENGTH, curves.horizon, 2 * LENGTH):
        axes.axvspan(start, start + LENGTH, color="0.93", zorder=0)
    at_80k = curves.at(curves.by_run(CM, "CascadeKLUCB"), 80_000).mean()
    ends = [at_80k, at_80k + PRINTED[0.8][0]]
    label = "CascadeKLUCB in the paper, 80,000 to 90,000"
    axes.plot([80_000, 90_000], ends, marker="*", color=BLACK, linewidth=1, label=label)
    axes.set(xlabel="session (grey: other items attract)", xlim=(0, curves.horizon))
    for agent in agents:
        points(growth, HORIZONS, per_session(results, GROWING, agent), agent)
    growth.set(xscale="log", yscale="log", xlabel="n, ten epochs", ylabel="regret per session")
    return finish(figure, [axes], results, "Regret where the users change")
