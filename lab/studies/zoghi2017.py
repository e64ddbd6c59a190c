"""Zoghi et al. 2017, BatchRank: figures 1 and 2."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from .plots import band, finish, grid, look_of
from .study import (
    CM,
    CONVERGED,
    FIRST,
    LAST,
    LINEAR,
    LINEAR_RULE,
    PBM,
    READINGS,
    SLACK,
    Curves,
    Evidence,
    Finding,
    PaperTable,
    Part,
    Statement,
    Study,
    Values,
    Verdict,
    estimate,
    every,
    final,
    in_all,
    less,
    linear,
    several,
    short,
    versus,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["STUDIES"]

BATCHRANKS = {"BatchRank": "as printed", "MergeRank": "as released"}
"""The paper's algorithm, as Algorithms 1-4 have it and as the authors' code does, which the figures were made with."""
ZOGHI_AGENTS = (LAST, FIRST, *BATCHRANKS, "RankedExp3")
ZOGHI_NOTE = (
    "BatchRank's stages take 16 · 4^l · log T sessions each, so that close items are still unsorted at a tenth of the paper's "
    "horizon. It runs as printed and as the authors released it (MergeRank), CascadeKL-UCB in both readings of several clicks."
)
REFERENCE = {
    LAST: ("7.1e-4", "", "6.6e-4", "10 of 60", ""),
    "BatchRank": ("2.3e-3", "", "3.5e-4 to 3.6e-4", "5 of 60", "4 to 6 million"),
    "MergeRank": ("8.2e-4 to 9.8e-4", "4.3e-4 to 4.7e-4", "1.8e-4 to 2.2e-4", "1 to 3 of 60", "2 to 3 million"),
}
"""What an implementation that shares no code with this one measured: K = 5, 10⁷ sessions, one run each, three of MergeRank."""
PANELS = {"a": (CM, "yandex-9982"), "b": (CM, "yandex-9866"), "c": (PBM, "yandex-98721")}
"""The panels of Zoghi et al.'s figure 1, with queries of ours that show what theirs show."""


def _panel(evidence: Evidence, panel: str, agent: str) -> tuple[Curves, Values]:
    """The runs of an agent in a panel of figure 1."""
    curves = evidence[f"zoghi-fig1-{panel}"]
    return curves, curves.units(PANELS[panel][0], agent)


def _converged(panels: str, agent: str, evidence: Evidence) -> Finding:
    findings = {}
    for panel in panels:
        curves, values = _panel(evidence, panel, agent)
        result = estimate(final(curves)(values))
        findings[panel] = Finding(str(result), result.below(CONVERGED))
    return several(findings)


def _time_to_converge(agent: str, evidence: Evidence) -> Finding:
    def step(panel: str) -> float:
        curves, values = _panel(evidence, panel, agent)
        # The end of the last window that was above, in the mean over the runs.
        windows = np.flatnonzero(curves.window_rates(values).mean(axis=0) > CONVERGED)
        return float(curves.steps[curves.windows[windows[-1]]]) if len(windows) else 0.0

    horizon = evidence["zoghi-fig1-a"].horizon
    first, second = step("a"), step("b")
    words = [f"by session {s:,.0f}" if s < horizon else "not by the end" for s in (first, second)]
    verdict: Verdict = "cannot tell" if first == second == horizon else "yes" if first < second else "no"
    return Finding(f"a: {words[0]}; b: {words[1]}", verdict)


def _stuck(agent: str, evidence: Evidence) -> Finding:
    curves, values = _panel(evidence, "c", agent)
    late = curves.rate(values, 0.8, 1.0)
    early = curves.rate(values, 0.2, 0.4)
    verdict = every([estimate(late).above(CONVERGED), estimate(late - LINEAR * early).above(SLACK)])
    return Finding(f"{estimate(late)} per session, {late.mean() / max(early.mean(), SLACK):.2f} of before", verdict)


def _overtakes(better: str, worse: str, panels: str, evidence: Evidence) -> Finding:
    findings = {}
    for panel in panels:
        curves = evidence[f"zoghi-fig1-{panel}"]
        findings[panel] = less(curves, PANELS[panel][0], better, worse, final(curves))
    return several(findings)


def _zoghi_fig1() -> Study:
    def panel(name: str) -> Part:
        env, query = PANELS[name]
        return Part(
            f"zoghi-fig1-{name}",
            (env,),
            ZOGHI_AGENTS,
            10**7,
            10,
            1,
            lambda queries: [query],
            least_horizon=100_000,
            least_runs=10,
        )

    statements = [
        Statement(
            "CascadeKL-UCB performs very well in the CM (a, b)",
            f"regret per session at the end below {CONVERGED:g} in both",
            partial(_converged, "ab", LAST),
            late=True,
        ),
    ]
    for agent, version in BATCHRANKS.items():
        statements += [
            Statement(
                f"BatchRank ({version}) learns the optimum in all three",
                f"regret per session at the end below {CONVERGED:g} in a, b and c",
                partial(_converged, "abc", agent),
                late=True,
            ),
            Statement(
                f"BatchRank ({version}) often learns quickly (a), sometimes close to the end (b)",
                f"its mean regret per session falls below {CONVERGED:g} for good earlier in a than in b",
                partial(_time_to_converge, agent),
                late=True,
            ),
            Statement(
                f"BatchRank ({version}) outperforms RankedExp3 in all",
                "regret per session at the end is lower in a, b and c",
                partial(_overtakes, agent, "RankedExp3", "abc"),
                late=True,
            ),
        ]
    for agent, reading in READINGS.items():
        statements += [
            Statement(
                f"CascadeKL-UCB ({reading}) may converge to a suboptimal list in the PBM (c): its regret remains constant",
                f"{LINEAR_RULE}, and above {CONVERGED:g}",
                partial(_stuck, agent),
                late=True,
            ),
            Statement(
                f"Even RankedExp3 can learn a better list than CascadeKL-UCB ({reading}) over time (c)",
                "regret per session at the end is lower",
                partial(_overtakes, "RankedExp3", agent, "c"),
                late=True,
            ),
        ]
    return Study(
        "Regret per session on three problems",
        "Zoghi et al. 2017, figure 1",
        tuple(panel(name) for name in PANELS),
        tuple(statements),
        "The three queries are ours, chosen to show what the paper's show; --instances changes nothing here. " + ZOGHI_NOTE,
        _draw_fig1,
    )


def _crossing(batch_rank: str, agent: str, evidence: Evidence) -> Finding:
    curves = evidence["zoghi-fig2"]
    if curves.horizon < 2_000_000:
        low, high = (final(curves)(curves.units(PBM, name)) for name in (batch_rank, agent))
        return versus(low, high, f" at {curves.horizon:,}, the end")
    fraction = 2_000_000 / curves.horizon
    low, high = (curves.rate(curves.units(PBM, name), 0.9 * fraction, fraction) for name in (batch_rank, agent))
    return versus(low, high, " at 2,000,000")


def _shares(evidence: Evidence, agent: str) -> Values:
    """For each query the share of the runs that end above the threshold."""
    curves = evidence["zoghi-fig2"]
    return (curves.final(PBM, agent) > CONVERGED).mean(axis=1)


def _one_sixth(agent: str, evidence: Evidence) -> Finding:
    share = estimate(_shares(evidence, agent))
    verdict: Verdict = "yes" if share.mean - share.half <= 1 / 6 <= share.mean + share.half else "no"
    if not evidence["zoghi-fig2"].full:
        verdict = "cannot tell"  # runs that are not done yet count as if they were suboptimal
    return Finding(f"{share} of the runs", verdict)


def _robust(agent: str, evidence: Evidence) -> Finding:
    share = estimate(_shares(evidence, agent))
    return Finding(f"{share} of the runs", share.below(1 / 6))


def _better_in_cm(better: str, worse: str, evidence: Evidence) -> Finding:
    curves = evidence["zoghi-fig2"]
    return less(curves, CM, better, worse, final(curves))


def _worst(evidence: Evidence) -> Finding:
    curves = evidence["zoghi-fig2"]
    return several(
        {
            f"{short(env)} {agent}": less(curves, env, agent, "RankedExp3", final(curves))
            for env in (CM, PBM)
            for agent in ZOGHI_AGENTS[:-1]
        }
    )


def _zoghi_fig2() -> Study:
    part = Part("zoghi-fig2", (CM, PBM), ZOGHI_AGENTS, 10**7, 10, 60, least_horizon=100_000)
    statements = []
    for batch_rank, version in BATCHRANKS.items():
        statements += [
            Statement(
                f"CM: CascadeKL-UCB outperforms BatchRank ({version})",
                "regret per session at the end is lower",
                partial(_better_in_cm, LAST, batch_rank),
            ),
            Statement(
                f"PBM: few runs of BatchRank ({version}) end above {CONVERGED:g} per session",
                "the interval of the share, here over queries, is below 1/6",
                partial(_robust, batch_rank),
                late=True,
                paper="few",
            ),
        ]
    for agent, reading in READINGS.items():
        statements += [
            Statement(
                f"PBM: BatchRank ({version}) outperforms CascadeKL-UCB ({reading}) at two million sessions",
                "regret per session is lower there",
                partial(_crossing, batch_rank, agent),
                late=True,
                paper="from about two million on",
            )
            for batch_rank, version in BATCHRANKS.items()
        ]
        statements += [
            Statement(
                f"PBM: the regret per session of CascadeKL-UCB ({reading}) flattens, bounded away from zero",
                LINEAR_RULE,
                partial(in_all, linear, part.name, (PBM,), (agent,)),
                late=True,
            ),
            Statement(
                f"PBM: one sixth of the runs of CascadeKL-UCB ({reading}) end above {CONVERGED:g} per session",
                "the interval of the share, here over queries, holds 1/6, at the paper's horizon",
                partial(_one_sixth, agent),
                late=True,
                paper="one sixth",
            ),
        ]
    statements.append(
        Statement(
            "RankedExp3 is worst in both click models",
            "its regret per session at the end is above that of each other agent",
            _worst,
            late=True,
            paper="worst",
        )
    )
    return Study(
        "Regret per session and its distribution, many queries",
        "Zoghi et al. 2017, figure 2",
        (part,),
        tuple(statements),
        ZOGHI_NOTE,
        _draw_fig2,
        _beside_reference,
    )


def _below_from(curves: Curves, agent: str) -> str:
    """From which session on an agent's mean regret per session stays below CascadeKL-UCB's in the PBM."""
    ours, theirs = (curves.window_rates(curves.units(PBM, name)).mean(axis=0) for name in (agent, LAST))
    windows = np.flatnonzero(ours >= theirs)
    last = windows[-1] if len(windows) else -1
    ends = curves.steps[curves.windows]
    return "not by the end" if last == len(ends) - 1 else f"session {ends[last] if len(windows) else 0:,}"


def _beside_reference(evidence: Evidence) -> PaperTable:
    """Regret per session in the hundredth of the horizon before a step, beside that of `REFERENCE`."""
    curves, fractions = evidence["zoghi-fig2"], (0.2, 0.3, 1.0)
    steps = [f"at {fraction * curves.horizon:,.0f}" for fraction in fractions]
    rows = [["agent", "measured by", *steps, f"runs that end above {CONVERGED:g}", "below CascadeKL-UCB from"]]
    for agent, reference in REFERENCE.items():
        values = curves.units(PBM, agent)
        rates = [estimate(curves.rate(values, fraction - 0.01, fraction)) for fraction in fractions]
        stuck = estimate((curves.final(PBM, agent) > CONVERGED).mean(axis=0))
        rows.append([agent, "clickgym", *map(str, rates), str(stuck), "" if agent == LAST else _below_from(curves, agent)])
        rows.append([agent, "another implementation, 60 published queries", *reference])
    return "PBM: mean regret per session in the hundredth of the horizon before the step", rows


def _draw_fig1(evidence: Evidence) -> Figure:
    figure, panels = grid(3)
    for axes, (name, (env, query)) in zip(panels, PANELS.items(), strict=True):
        _per_session(axes, evidence[f"zoghi-fig1-{name}"], env)
        axes.set_title(f"({name}) {short(env)}, {query}", fontsize=10)
    panels[0].set_ylabel("regret per session")
    return finish(figure, panels, evidence, "Regret per session")


def _draw_fig2(evidence: Evidence) -> Figure:
    curves = evidence["zoghi-fig2"]
    figure, panels = grid(2, 2)
    for axes, env in zip(panels[:2], (CM, PBM), strict=True):
        _per_session(axes, curves, env)
        axes.set_title(short(env), fontsize=10)
    panels[0].set_ylabel("regret per session")
    least = 1e-6  # and everything below
    edges = np.geomspace(least, 1, 25)
    for axes, env in zip(panels[2:], (CM, PBM), strict=True):
        for agent in ZOGHI_AGENTS:
            ends = np.maximum(curves.final(env, agent).ravel(), least)
            shares, _ = np.histogram(ends, edges)
            colour, dashes = look_of(agent, axes)
            axes.stairs(shares / len(ends), edges, color=colour, linestyle=dashes, linewidth=1.5)
        axes.axvline(CONVERGED, color="black", linewidth=0.8, linestyle=":")
        axes.set(xscale="log", xlabel="regret per session at the end", xlim=(least, 1))
    panels[2].set_ylabel("share of the runs")
    return finish(figure, panels[:2], evidence, "Regret per session")


def _per_session(axes: Axes, curves: Curves, env: str) -> None:
    for agent in ZOGHI_AGENTS:
        band(axes, curves.steps[curves.windows], curves.window_rates(curves.units(env, agent)), agent)
    axes.axhline(CONVERGED, color="black", linewidth=0.8, linestyle=":")
    axes.set_yscale("symlog", linthresh=1e-4)  # linear below, for a run that shows the best list has no regret
    axes.set(xlabel="session", ylim=(0, 2), xlim=(0, curves.horizon))
    axes.ticklabel_format(axis="x", style="sci", scilimits=(0, 0), useMathText=True)


STUDIES: dict[str, Study] = {
    "zoghi-fig1": _zoghi_fig1(),
    "zoghi-fig2": _zoghi_fig2(),
}
