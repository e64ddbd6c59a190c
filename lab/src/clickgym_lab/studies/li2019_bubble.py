"""Li et al. 2019, BubbleRank: figures 1 to 4."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from clickgym.envs import Instance, load_instance
from clickgym.runner import wrong_pairs

from .plots import BLACK, BLUE, GREEN, ORANGE, PURPLE, YELLOW, Figure, band, bands, finish, grid
from .study import (
    FIRST,
    LAST,
    PBM,
    SLACK,
    Curves,
    Estimate,
    Evidence,
    Finding,
    Values,
    estimate,
    every,
    half_of_slope,
    less_regret,
    several,
    short,
    versus,
)

TOP5 = "n_positions=10,cutoff=5"
# Abandonment clicks, as the paper has it.
BUBBLE = (f"CMRank-v0:{TOP5}", f"DCMRank-v0:{TOP5},reward=satisfaction", f"PBMRank-v0:{TOP5}")
BUBBLE_CM, BUBBLE_DCM, BUBBLE_PBM = BUBBLE
BUBBLE_AGENTS = ("BubbleRank", LAST, FIRST, "BatchRank", "TopRank", "Fixed")
VIOLATIONS = {  # in the first 100 sessions, in the CM, DCM and PBM, in the paper
    LAST: (24.12, 23.33, 23.63),
    "BatchRank": (83.01, 71.89, 59.63),
    "TopRank": (83.56, 71.47, 57.00),
}
PUBLISHED = {
    agent: " / ".join(f"{count:g}" for count in counts) for agent, counts in VIOLATIONS.items()
}


# ----------------------------------------------------------------------------------------------------------------- regret


def less_by_step(curves: Curves, env: str, better: str, worse: str, step: int) -> Finding:
    """Whether one agent has less regret than another after some sessions."""
    return less_regret(curves, env, better, worse, step / curves.horizon)


def not_optimal(curves: Curves, env: str) -> Finding:
    """Whether the production list has regret."""
    return estimate(curves.rate(curves.units(env, "Fixed"), 0.0, 1.0)).finding(
        " per session", SLACK
    )


# ------------------------------------------------------------------------------------------------------------- violations


def first_100(curves: Curves, env: str, agent: str) -> Values:
    """``(runs,)`` violations in the first hundred sessions."""
    return curves.at(curves.units(env, agent, "violations"), 100)


def as_many(curves: Curves, env: str, agent: str) -> Finding:
    """Whether there are about as many as in the paper."""
    published = VIOLATIONS[agent][BUBBLE.index(env)]
    ours = estimate(first_100(curves, env, agent))
    return ours.finding(f" (paper {published:g})", 0.75 * published, 1.25 * published)


def unsafe(curves: Curves, env: str, agent: str) -> Finding:
    """Whether there are more than twenty."""
    return estimate(first_100(curves, env, agent)).finding(low=20.0)


def less_safe(curves: Curves, env: str, agent: str) -> Finding:
    """Whether there are more than CascadeKL-UCB's."""
    return versus(first_100(curves, env, LAST), first_100(curves, env, agent))


def alike(curves: Curves, env: str) -> Finding:
    """Whether TopRank and BatchRank are close."""
    ours, theirs = (first_100(curves, env, agent) for agent in ("TopRank", "BatchRank"))
    return estimate(ours - theirs).finding(low=-10.0, high=10.0)


def safe(curves: Curves) -> Finding:
    """Whether BubbleRank has no violation in any run."""
    counts = [curves.ends(env, "BubbleRank", "violations") for env in BUBBLE]
    violated = sum(int((count > 0).sum()) for count in counts)
    n_runs = sum(count.size for count in counts)
    return Finding(
        f"{violated} of {n_runs} runs of {curves.horizon:,} sessions", "no" if violated else "yes"
    )


# ---------------------------------------------------------------------------------------------------------- initial lists


N_LISTS = 10


def random_lists(queries: Sequence[str]) -> Iterator[Instance]:
    """Instances that differ from the queries in their production list: ten random ones each, the
    same every time.

    Args:
        queries: names or files of instances.
    """
    for query in queries:
        instance = load_instance(query)
        rng = np.random.default_rng(list(instance.name.encode()))
        for number in range(N_LISTS):
            name = f"{instance.name}-list{number}"
            yield replace(instance, name=name, initial_ranking=rng.permutation(instance.n_items))


WRONG_PAIRS = "wrong_pairs"


def wrong_in_list(env: Any) -> float:
    """The number of wrongly ordered pairs |V_0| of the production list."""
    return float(wrong_pairs(env.unwrapped.model.attraction, env.unwrapped.initial_ranking))


def regression(curves: Curves, env: str) -> tuple[Values, Values, Estimate, Values]:
    """Regret at the end on |V_0|, both less the mean of their query.

    Returns:
        ``|V_0|`` and regret of each list, the slope, and the shares of the variance within queries
        that a line and a parabola explain.
    """
    wrong = curves.ends(env, "BubbleRank", WRONG_PAIRS)[:, 0]
    regret = curves.ends(env, "BubbleRank").mean(axis=1)
    query = np.array([name.rpartition("-list")[0] for name in curves.instances])

    def within(values: Values) -> Values:
        return values - np.array([values[query == name].mean() for name in query])

    x, y = within(wrong), within(regret)
    slope = float(x @ y / (x @ x))
    free = len(y) - len(set(query)) - 1
    residual = y - slope * x
    half = half_of_slope(math.sqrt(residual @ residual / free / (x @ x)), free)
    design = np.stack([x, within(wrong**2)], axis=1)
    bent = y - design @ np.linalg.lstsq(design, y)[0]
    return (
        wrong,
        regret,
        Estimate(slope, half),
        1 - np.array([residual @ residual, bent @ bent]) / (y @ y),
    )


def linear_in_pairs(curves: Curves, env: str) -> Finding:
    """Whether regret grows with the wrong pairs, and a parabola fits hardly better than a line."""
    _, _, slope, (line, parabola) = regression(curves, env)
    verdict = every([slope.above(0.0), "yes" if parabola - line < 0.05 else "no"])
    return Finding(f"{slope} per pair, R² {line:.2f}, with a square {parabola:.2f}", verdict)


CHI_MIN = tuple(f"li2019-chi-min:i={i}" for i in range(1, 6))


def doubles(curves: Curves, per_loss: bool) -> Finding:
    """Whether each ratio of neighbouring i is about 2: of the regret, or of the sessions it is
    worth at the initial loss.
    """
    regret = [curves.units(PBM, "BubbleRank", instance=name)[:, -1] for name in CHI_MIN]
    scaled = [
        estimate(values / (0.9 - 0.5**i if per_loss else 1.0))
        for i, values in enumerate(regret, start=1)
    ]
    findings = {}
    for i, (low, high) in enumerate(pairwise(scaled), start=1):
        ratio = high.mean / low.mean
        result = Estimate(ratio, ratio * math.hypot(high.half / high.mean, low.half / low.mean))
        findings[f"i = {i} to {i + 1}"] = result.finding(low=1.6, high=2.4)
    return several(findings)


# ------------------------------------------------------------------------------------------------------------------- NDCG


def ndcg(curves: Curves, env: str, agent: str, end: bool) -> Values:
    """``(runs,)`` the mean in the last hundredth of the horizon, or in the first hundred
    sessions.
    """
    start, stop = (0.99, 1.0) if end else (0.0, 100 / curves.horizon)
    return curves.rate(curves.units(env, agent, "ndcg"), start, stop)


def perfect(curves: Curves, env: str, agent: str) -> Finding:
    """Whether the NDCG is about 1 at the end."""
    return estimate(ndcg(curves, env, agent, end=True)).finding(low=0.99)


def ndcg_gap(
    curves: Curves, env: str, agent: str, other: str, end: bool, low: float, high: float
) -> Finding:
    """Whether the difference in NDCG of two agents is between two bounds."""
    return estimate(ndcg(curves, env, agent, end) - ndcg(curves, env, other, end)).finding(
        "", low, high
    )


def never_worse(curves: Curves, env: str) -> Finding:
    """Whether BubbleRank is nowhere far below the production list."""
    ours, theirs = (curves.units(env, agent, "ndcg") for agent in ("BubbleRank", "Fixed"))
    gaps = curves.window_rates(ours) - curves.window_rates(theirs)
    return estimate(gaps[:, gaps.mean(axis=0).argmin()]).finding(" at worst", -0.05)


# ---------------------------------------------------------------------------------------------------------------- figures


def draw_curves(
    evidence: Evidence, column: str, agents: Sequence[str], label: str, title: str
) -> Figure:
    """A cumulative column in each click model."""
    curves = evidence["bubble"]
    figure, panels = grid(3, labels=[label])
    for axes, env in zip(panels, BUBBLE, strict=True):
        bands(axes, curves, env, agents, curves.steps * 5000 >= curves.horizon, column)
        axes.set(xscale="log", yscale="log", title=short(env), xlabel="session")
        axes.set_ylim(bottom=max(axes.get_ylim()[0], 0.1))
    return finish(figure, panels, evidence, title)


def draw_fig3(evidence: Evidence) -> Figure:
    """Regret against wrong pairs in each click model, and with each examination of the last
    position.
    """
    curves = evidence["bubble-fig3-pairs"]
    figure, panels = grid(4, labels=[f"regret after {curves.horizon:,} sessions"])
    for axes, env in zip(panels, BUBBLE, strict=False):
        wrong, regret, slope, _ = regression(curves, env)
        axes.plot(wrong, regret, ".", color=PURPLE, markersize=4, alpha=0.6)
        ends = np.array([wrong.min(), wrong.max()])
        axes.plot(
            ends, regret.mean() + slope.mean * (ends - wrong.mean()), color=BLACK, linewidth=1.2
        )
        axes.set(title=short(env), xlabel="wrong pairs in the initial list, |V_0|")
    curves = evidence["bubble-fig3-chi"]
    shades = (PURPLE, ORANGE, GREEN, YELLOW, BLUE)
    for instance, colour in zip(CHI_MIN, shades, strict=True):
        values = curves.units(PBM, "BubbleRank", instance=instance)
        band(panels[3], curves.steps, values, instance.rpartition(":")[2], (colour, "-"))
    panels[3].set(title="PBM, examination 0.5^i at the end", xlabel="session", ylabel="regret")
    panels[3].ticklabel_format(axis="x", style="sci", scilimits=(0, 0), useMathText=True)
    return finish(figure, panels[3:], evidence, "Regret of BubbleRank")


def draw_fig4(evidence: Evidence) -> Figure:
    """NDCG per session in each click model."""
    curves = evidence["bubble"]
    figure, panels = grid(3, labels=["NDCG@5 per session"])
    for axes, env in zip(panels, BUBBLE, strict=True):
        places = np.unique(
            np.searchsorted(curves.steps, np.geomspace(100, curves.horizon, 25).round())
        )
        for agent in ("BubbleRank", "BatchRank", "TopRank", "Fixed"):
            band(
                axes,
                curves.steps[places],
                curves.window_rates(curves.units(env, agent, "ndcg"), places),
                agent,
            )
        axes.set(xscale="log", title=short(env), xlabel="session", ylim=(0.5, 1.01))
    return finish(figure, panels, evidence, "NDCG@5")
