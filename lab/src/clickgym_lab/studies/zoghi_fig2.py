"""Regret per session and its distribution, many queries.

Zoghi et al. 2017, figure 2.

BatchRank's stages take 16 · 4^l · log T sessions each, so that close items are still unsorted at a
tenth of the paper's horizon. It runs as printed, CascadeKL-UCB in both readings of several clicks.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .batch_rank import AGENTS, CM, CONVERGED, FIRST, LAST, PBM, READINGS, per_session
from .claims import (
    END,
    LINEAR_RULE,
    Claim,
    Curves,
    Finding,
    Results,
    Values,
    certain,
    estimate,
    less_in_the_end,
    linear,
    several,
    short,
    versus,
)
from .plots import BOUND, Figure, finish, grid, style_of
from .study import Sweep, Table

MANY = "zoghi-fig2"
ENDS = (0.18, 0.19, 0.2, 0.29, 0.3, 0.4, 0.8, 0.99, 1.0)
OTHERS = {
    LAST: ["7.1e-4", "", "6.6e-4", "10 of 60", ""],
    "BatchRank": ["2.3e-3", "", "3.5e-4 to 3.6e-4", "5 of 60", "4 to 6 million"],
}
"""What an implementation that shares no code with this one measured: K = 5, 10⁷ sessions."""
SWEEPS = [
    Sweep(
        MANY,
        [CM, PBM],
        AGENTS,
        horizon=10_000_000,
        runs=10,
        queries=60,
        windows=100,
        ends=ENDS,
        least_horizon=100_000,
    )
]
"""The CM and the PBM on up to 60 queries (16 ship), at least 100,000 sessions. `AGENTS` are
CascadeKL-UCB in both readings of several clicks, BatchRank and RankedExp3.
"""
EARLY = [
    Sweep(
        f"zoghi-fig2-2m{suffix}",
        [env],
        agents,
        horizon=2_000_000,
        runs=10,
        queries=60,
        ends=(0.95, 1.0),
        told=10_000_000,
    )
    for suffix, env, agents in (("", PBM, [LAST, FIRST, "BatchRank"]), ("-cm", CM, ["BatchRank"]))
]
"""The first two million sessions: the values of each query at the ends of the last period of
100,000 sessions.
"""


def claims(results: Results) -> Iterator[Claim]:
    """What the paper says of its figure 2.

    A test asks whether the mean of independent values lies between two bounds: yes if its 95 %
    interval (Student's t) lies between them, no if it lies outside, else it cannot tell; all
    statements are judged together by Holm's procedure. `several` asks that all tests hold; one that
    surely does not contradicts the statement.

    The end is the last hundredth of the horizon; `CONVERGED` is the paper's threshold, 0.001.
    `less_in_the_end` asks whether the gap between two agents there is above 0; `linear` (and
    `sublinear`) asks whether the rate of regret in the last fifth of the sessions less 0.8 times
    that in the second fifth is above (below) 0. Intervals are over the queries, each averaged over
    its runs, where the finding does not say otherwise. A run shorter than the paper's cannot
    contradict a statement marked `late`.
    """
    curves = results[MANY]
    yield Claim(
        "CM: CascadeKL-UCB outperforms BatchRank",
        "regret per session at the end is lower",
        less_in_the_end(curves, CM, LAST, "BatchRank"),
    )
    yield Claim(
        f"PBM: few runs of BatchRank end above {CONVERGED:g} per session",
        "the interval of the share, here over queries, is below 1/6",
        estimate(shares(curves, "BatchRank")).within(-np.inf, 1 / 6, " of the runs"),
        paper="few",
        late=True,
    )
    for agent, reading in READINGS.items():
        yield Claim(
            f"PBM: BatchRank outperforms CascadeKL-UCB ({reading}) at two million sessions",
            "regret per session is lower there",
            crossing(curves, agent),
            paper="from about two million on",
            late=True,
        )
        yield Claim(
            f"PBM: the regret per session of CascadeKL-UCB ({reading}) flattens, bounded away "
            "from zero",
            LINEAR_RULE,
            several({"PBM": linear(curves, PBM, agent)}),
            late=True,
        )
        yield Claim(
            f"PBM: one sixth of the runs of CascadeKL-UCB ({reading}) end above {CONVERGED:g} per "
            "session",
            "the interval of the share, here over queries, holds 1/6, at the paper's horizon",
            one_sixth(curves, agent),
            paper="one sixth",
            late=True,
        )
    pairs = [(env, agent) for env in (CM, PBM) for agent in (LAST, FIRST, "BatchRank")]
    worst = {
        f"{short(env)} {agent}": less_in_the_end(curves, env, agent, "RankedExp3")
        for env, agent in pairs
    }
    yield Claim(
        "RankedExp3 is worst in both click models",
        "its regret per session at the end is above that of each other agent",
        several(worst),
        paper="worst",
        late=True,
    )


def crossing(curves: Curves, agent: str) -> Finding:
    """Whether BatchRank has less regret per session at two million sessions, or at the end of a
    shorter run.
    """
    if curves.horizon < 2_000_000:
        return less_in_the_end(curves, PBM, "BatchRank", agent, f" at {curves.horizon:,}, the end")
    fraction = 2_000_000 / curves.horizon
    (low,), over = curves.rates(PBM, "BatchRank", (0.9 * fraction, fraction))
    (high,), _ = curves.rates(PBM, agent, (0.9 * fraction, fraction))
    return versus(low, high, " at 2,000,000", over)


def shares(curves: Curves, agent: str) -> Values:
    """``(queries,)`` the share of the runs that end above the threshold in the PBM."""
    return (at_the_end(curves, PBM, agent) > CONVERGED).mean(axis=1)


def at_the_end(curves: Curves, env: str, agent: str) -> Values:
    """``(queries, runs)`` regret per session in the last hundredth of the horizon."""
    start, end = (curves.by_instance(env, agent, fraction=fraction) for fraction in END)
    return (end - start) / (curves.horizon - round(END[0] * curves.horizon))


def one_sixth(curves: Curves, agent: str) -> Finding:
    """Whether a sixth of the runs end above the threshold: no if the interval lies beside 1/6. One
    that holds it counts as yes, although it shows no more than that 1/6 is possible.
    """
    share = estimate(shares(curves, agent))
    words = f"{share} of the runs"
    if not curves.full:
        return certain(words, None)  # runs that are not done yet would count as suboptimal
    if share.mean - share.half <= 1 / 6 <= share.mean + share.half:
        return certain(words, True)
    return share.within(1 / 6, 1 / 6, " of the runs")


def table(results: Results) -> Table:
    """Regret per session in the hundredth of the horizon before a step, beside what another
    implementation measured.
    """
    curves, fractions = results[MANY], (0.2, 0.3, 1.0)
    steps = [f"at {fraction * curves.horizon:,.0f}" for fraction in fractions]
    last = [f"runs that end above {CONVERGED:g} (over queries)", "below CascadeKL-UCB from"]
    rows = [["agent", "measured by", *steps, *last]]
    for agent, figures in OTHERS.items():
        rates, over = curves.rates(PBM, agent, *((end - 0.01, end) for end in fractions))
        cells = [str(estimate(values)) for values in [*rates, shares(curves, agent)]]
        start = "" if agent == LAST else _below_from(curves, agent)
        rows.append([agent, f"clickgym, {over}", *cells, start])
        if curves.full:
            rows.append([agent, "another implementation, 60 published queries", *figures])
    return "PBM: mean regret per session in the hundredth of the horizon before the step", rows


def _below_from(curves: Curves, agent: str) -> str:
    """From which session on an agent's mean regret per session stays below CascadeKL-UCB's."""
    ours, theirs = (
        curves.window_rates(curves.by_run(PBM, name)).mean(axis=0) for name in (agent, LAST)
    )
    above, ends = np.flatnonzero(ours >= theirs), curves.steps[curves.windows]
    if not len(above):
        return "session 0"
    return "not by the end" if above[-1] == len(ends) - 1 else f"session {ends[above[-1]]:,}"


def draw(results: Results) -> Figure:
    """Regret per session, and its distribution at the end, in both click models."""
    curves = results[MANY]
    figure, panels = grid(2, 2, labels=["regret per session", "share of the runs"])
    least = 1e-6  # and everything below
    edges = np.geomspace(least, 1, 25)
    for curve, distribution, env in zip(panels[:2], panels[2:], (CM, PBM), strict=True):
        per_session(curve, curves, env)
        curve.set_title(short(env), fontsize=10)
        for agent in AGENTS:
            ends = np.maximum(at_the_end(curves, env, agent).ravel(), least)
            counts, _ = np.histogram(ends, edges)
            style = style_of(agent, distribution)
            distribution.stairs(counts / len(ends), edges, linewidth=1.5, **style)
        distribution.axvline(CONVERGED, **BOUND)
        distribution.set(xscale="log", xlabel="regret per session at the end", xlim=(least, 1))
    return finish(figure, panels[:2], results, "Regret per session")
