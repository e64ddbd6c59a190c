"""Regret per session on three problems.

Zoghi et al. 2017, figure 1.

The three queries are ours, chosen to show what the paper's show. BatchRank's stages take 16 · 4^l ·
log T sessions each, so that close items are still unsorted at a tenth of the paper's horizon. It
runs as printed, CascadeKL-UCB in both readings of several clicks.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .batch_rank import AGENTS, CM, CONVERGED, LAST, PBM, READINGS, per_session
from .claims import (
    END,
    LINEAR_RULE,
    SLACK,
    Claim,
    Finding,
    Results,
    all_of,
    certain,
    estimate,
    growth,
    less_in_the_end,
    several,
    short,
)
from .plots import Figure, finish, grid
from .study import Sweep

PANELS = {"a": (CM, "yandex-9982"), "b": (CM, "yandex-9866"), "c": (PBM, "yandex-98721")}
"""The panels of figure 1, with queries of ours that show what theirs show."""
SWEEPS = [
    Sweep(
        f"zoghi-fig1-{panel}",
        [env],
        AGENTS,
        horizon=10_000_000,
        runs=10,
        instances=[query],
        windows=100,
        least_horizon=100_000,
        least_runs=10,
    )
    for panel, (env, query) in PANELS.items()
]
"""Three problems, each the same at every scale but for its horizon, at least 100,000 sessions.
`AGENTS` are CascadeKL-UCB in both readings of several clicks, BatchRank and RankedExp3.
"""


def claims(results: Results) -> Iterator[Claim]:
    """What the paper says of its figure 1.

    A test asks whether the mean of independent values lies between two bounds: yes if its 95 %
    interval (Student's t) lies between them, no if it lies outside, else it cannot tell; all
    statements are judged together by Holm's procedure. `several` asks that all tests hold; one that
    surely does not contradicts the statement.

    All intervals are over the ten runs of a panel's query. The end is the last hundredth of the
    horizon; `CONVERGED` is the paper's threshold, 0.001. Every statement is about the end of the
    paper's horizon: a shorter run cannot contradict it.
    """

    def final(agent: str, panels: str) -> Finding:
        return several({panel: converged(results, panel, agent) for panel in panels})

    yield Claim(
        "CascadeKL-UCB performs very well in the CM (a, b)",
        f"regret per session at the end below {CONVERGED:g} in both",
        final(LAST, "ab"),
        late=True,
    )
    yield Claim(
        "BatchRank learns the optimum in all three",
        f"regret per session at the end below {CONVERGED:g} in a, b and c",
        final("BatchRank", "abc"),
        late=True,
    )
    yield Claim(
        "BatchRank often learns quickly (a), sometimes close to the end (b)",
        f"its mean regret per session falls below {CONVERGED:g} for good earlier in a than in b",
        earlier(results, "BatchRank"),
        late=True,
    )
    yield Claim(
        "BatchRank outperforms RankedExp3 in all",
        "regret per session at the end is lower in a, b and c",
        several({p: overtakes(results, p, "BatchRank", "RankedExp3") for p in PANELS}),
        late=True,
    )
    for agent, reading in READINGS.items():
        yield Claim(
            f"CascadeKL-UCB ({reading}) may converge to a suboptimal list in the PBM (c): its "
            "regret remains constant",
            f"{LINEAR_RULE}, and above {CONVERGED:g}",
            stuck(results, agent),
            late=True,
        )
        yield Claim(
            f"Even RankedExp3 can learn a better list than CascadeKL-UCB ({reading}) over time (c)",
            "regret per session at the end is lower",
            several({"c": overtakes(results, "c", "RankedExp3", agent)}),
            late=True,
        )


def converged(results: Results, panel: str, agent: str) -> Finding:
    """Whether regret per session at the end is below the threshold."""
    (rate,), _ = results[_part(panel)].rates(PANELS[panel][0], agent, END)
    return estimate(rate).below(CONVERGED)


def earlier(results: Results, agent: str) -> Finding:
    """Whether an agent converges earlier in panel a than in panel b, by the mean over the runs and
    without an interval; undecided if it converges in neither.
    """

    def step(panel: str) -> float:
        # The end of the last window that was above, in the mean over the runs.
        curves = results[_part(panel)]
        rates = curves.window_rates(curves.by_run(PANELS[panel][0], agent)).mean(axis=0)
        above = np.flatnonzero(rates > CONVERGED)
        return float(curves.steps[curves.windows[above[-1]]]) if len(above) else 0.0

    horizon, first, second = results[_part("a")].horizon, step("a"), step("b")
    words = [f"by session {s:,.0f}" if s < horizon else "not by the end" for s in (first, second)]
    holds = None if first == second == horizon else first < second
    return certain(f"a: {words[0]}; b: {words[1]}", holds)


def stuck(results: Results, agent: str) -> Finding:
    """Whether in panel c regret per session in the last fifth is above the threshold, and that less
    0.8 times the rate of the second fifth above 0.
    """
    curves = results[_part("c")]
    values = curves.by_run(PBM, agent)
    late = curves.rate(values, 0.8, 1.0)
    words, gap = growth(curves.rate(values, 0.2, 0.4), late)
    return all_of(words, [estimate(late).above(CONVERGED), gap.above(SLACK)])


def overtakes(results: Results, panel: str, better: str, worse: str) -> Finding:
    """Whether the gap between two agents' regret per session at the end is above 0."""
    return less_in_the_end(results[_part(panel)], PANELS[panel][0], better, worse)


def draw(results: Results) -> Figure:
    """Regret per session in the three panels."""
    figure, panels = grid(3, labels=["regret per session"])
    for axes, (panel, (env, query)) in zip(panels, PANELS.items(), strict=True):
        per_session(axes, results[_part(panel)], env)
        axes.set_title(f"({panel}) {short(env)}, {query}", fontsize=10)
    return finish(figure, panels, results, "Regret per session")


def _part(panel: str) -> str:
    return f"zoghi-fig1-{panel}"
