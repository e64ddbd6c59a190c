"""Zoghi et al. 2017, BatchRank: figures 1 and 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .plots import Axes, Figure, band, finish, grid, style_of
from .study import (
    CM,
    FIRST,
    LAST,
    PBM,
    SLACK,
    Curves,
    Evidence,
    Finding,
    PaperTable,
    Values,
    Verdict,
    estimate,
    every,
    growth,
    less_in_the_end,
    short,
    versus,
)

CONVERGED = 1e-3
"""Their threshold of the regret per session."""
ZOGHI_AGENTS = (LAST, FIRST, "BatchRank", "RankedExp3")
PANELS = {"a": (CM, "yandex-9982"), "b": (CM, "yandex-9866"), "c": (PBM, "yandex-98721")}
"""The panels of Zoghi et al.'s figure 1, with queries of ours that show what theirs show."""


def _panel(evidence: Evidence, panel: str, agent: str) -> tuple[Curves, Values]:
    """The runs of an agent in a panel of figure 1."""
    curves = evidence[f"zoghi-fig1-{panel}"]
    return curves, curves.units(PANELS[panel][0], agent)


def converged(evidence: Evidence, panel: str, agent: str) -> Finding:
    """Whether regret per session at the end is below the threshold."""
    return estimate(evidence[f"zoghi-fig1-{panel}"].final_units(PANELS[panel][0], agent)).finding(
        high=CONVERGED
    )


def time_to_converge(evidence: Evidence, agent: str) -> Finding:
    """Whether an agent converges earlier in panel a than in panel b."""

    def step(panel: str) -> float:
        curves, values = _panel(evidence, panel, agent)
        # The end of the last window that was above, in the mean over the runs.
        windows = np.flatnonzero(curves.window_rates(values).mean(axis=0) > CONVERGED)
        return float(curves.steps[curves.windows[windows[-1]]]) if len(windows) else 0.0

    horizon = evidence["zoghi-fig1-a"].horizon
    first, second = step("a"), step("b")
    words = [f"by session {s:,.0f}" if s < horizon else "not by the end" for s in (first, second)]
    verdict: Verdict = (
        "cannot tell" if first == second == horizon else "yes" if first < second else "no"
    )
    return Finding(f"a: {words[0]}; b: {words[1]}", verdict)


def stuck(evidence: Evidence, agent: str) -> Finding:
    """Whether the regret in panel c stays linear and above the threshold."""
    curves, values = _panel(evidence, "c", agent)
    late = curves.rate(values, 0.8, 1.0)
    words, gap = growth(curves.rate(values, 0.2, 0.4), late)
    return Finding(words, every([estimate(late).above(CONVERGED), gap.above(SLACK)]))


def overtakes(evidence: Evidence, panel: str, better: str, worse: str) -> Finding:
    """Whether one agent ends with less regret per session than another."""
    return less_in_the_end(evidence[f"zoghi-fig1-{panel}"], PANELS[panel][0], better, worse)


def crossing(curves: Curves, agent: str) -> Finding:
    """Whether BatchRank has less regret per session at two million sessions, or at the end of a
    shorter run.
    """
    if curves.horizon < 2_000_000:
        return less_in_the_end(curves, PBM, "BatchRank", agent, f" at {curves.horizon:,}, the end")
    fraction = 2_000_000 / curves.horizon
    (((low,), over), ((high,), _)) = (
        curves.rates(PBM, name, (0.9 * fraction, fraction)) for name in ("BatchRank", agent)
    )
    return versus(low, high, " at 2,000,000", over)


def shares(curves: Curves, agent: str) -> Values:
    """For each query the share of the runs that end above the threshold."""
    return (curves.final(PBM, agent) > CONVERGED).mean(axis=1)


def one_sixth(curves: Curves, agent: str) -> Finding:
    """Whether a sixth of the runs end above the threshold."""
    share = estimate(shares(curves, agent))
    verdict: Verdict = (
        "yes" if share.mean - share.half <= 1 / 6 <= share.mean + share.half else "no"
    )
    if not curves.full:
        verdict = "cannot tell"  # runs that are not done yet count as if they were suboptimal
    return Finding(f"{share} of the runs", verdict)


def robust(curves: Curves, agent: str) -> Finding:
    """Whether less than a sixth do."""
    return estimate(shares(curves, agent)).finding(" of the runs", high=1 / 6)


def _below_from(curves: Curves, agent: str) -> str:
    """From which session on an agent's mean regret per session stays below CascadeKL-UCB's in the
    PBM.
    """
    ours, theirs = (
        curves.window_rates(curves.units(PBM, name)).mean(axis=0) for name in (agent, LAST)
    )
    windows = np.flatnonzero(ours >= theirs)
    last = windows[-1] if len(windows) else -1
    ends = curves.steps[curves.windows]
    return (
        "not by the end"
        if last == len(ends) - 1
        else f"session {ends[last] if len(windows) else 0:,}"
    )


def beside_reference(evidence: Evidence, reference: Mapping[str, Sequence[str]]) -> PaperTable:
    """Regret per session in the hundredth of the horizon before a step, beside that of another
    implementation.
    """
    curves, fractions = evidence["zoghi-fig2"], (0.2, 0.3, 1.0)
    steps = [f"at {fraction * curves.horizon:,.0f}" for fraction in fractions]
    rows = [
        [
            "agent",
            "measured by",
            *steps,
            f"runs that end above {CONVERGED:g}",
            "below CascadeKL-UCB from",
        ]
    ]
    for agent, figures in reference.items():
        rates, over = curves.rates(PBM, agent, *((end - 0.01, end) for end in fractions))
        cells = [*map(estimate, rates), estimate(shares(curves, agent))]
        rows.append(
            [
                agent,
                f"clickgym, {over}",
                *map(str, cells),
                "" if agent == LAST else _below_from(curves, agent),
            ]
        )
        rows.append([agent, "another implementation, 60 published queries", *figures])
    return "PBM: mean regret per session in the hundredth of the horizon before the step", rows


def draw_fig1(evidence: Evidence) -> Figure:
    """Regret per session in the three panels."""
    figure, panels = grid(3, labels=["regret per session"])
    for axes, (name, (env, query)) in zip(panels, PANELS.items(), strict=True):
        _per_session(axes, evidence[f"zoghi-fig1-{name}"], env)
        axes.set_title(f"({name}) {short(env)}, {query}", fontsize=10)
    return finish(figure, panels, evidence, "Regret per session")


def draw_fig2(evidence: Evidence) -> Figure:
    """Regret per session, and its distribution at the end, in both click models."""
    curves = evidence["zoghi-fig2"]
    figure, panels = grid(2, 2, labels=["regret per session", "share of the runs"])
    for axes, env in zip(panels[:2], (CM, PBM), strict=True):
        _per_session(axes, curves, env)
        axes.set_title(short(env), fontsize=10)
    least = 1e-6  # and everything below
    edges = np.geomspace(least, 1, 25)
    for axes, env in zip(panels[2:], (CM, PBM), strict=True):
        for agent in ZOGHI_AGENTS:
            ends = np.maximum(curves.final(env, agent).ravel(), least)
            shares, _ = np.histogram(ends, edges)
            axes.stairs(shares / len(ends), edges, linewidth=1.5, **style_of(agent, axes))
        axes.axvline(CONVERGED, color="black", linewidth=0.8, linestyle=":")
        axes.set(xscale="log", xlabel="regret per session at the end", xlim=(least, 1))
    return finish(figure, panels[:2], evidence, "Regret per session")


def _per_session(axes: Axes, curves: Curves, env: str) -> None:
    for agent in ZOGHI_AGENTS:
        band(
            axes, curves.steps[curves.windows], curves.window_rates(curves.units(env, agent)), agent
        )
    axes.axhline(CONVERGED, color="black", linewidth=0.8, linestyle=":")
    axes.set_yscale(
        "symlog", linthresh=1e-4
    )  # linear below, for a run that shows the best list has no regret
    axes.set(xlabel="session", ylim=(0, 2), xlim=(0, curves.horizon))
    axes.ticklabel_format(axis="x", style="sci", scilimits=(0, 0), useMathText=True)
