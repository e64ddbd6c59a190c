"""Li and de Rijke 2019, cascading bandits where users change: figures 1 and 2, and the lower bound
of theorem 3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from clickgym.agents.kernels import kl

from .plots import Figure, band, bands, finish, grid
from .study import LAST, LINEAR, Curves, Evidence, Finding, Values, estimate, every, number

CHANGING = "NonStationaryCMRank-v0"
ADAPTIVE, STUBBORN = ("CascadeDUCB", "CascadeSWUCB"), ("RankedExp3", LAST, "BatchRank")
SINGLE = (*ADAPTIVE, "RankedExp3", LAST, "BubbleRank")
BOUNDED = (*ADAPTIVE, "GLRCascadeKLUCB", "RankedExp3", LAST)
LOGARITHMIC = {"CascadeDUCB": math.log, "CascadeSWUCB": lambda n: math.sqrt(math.log(n))}
"""The factors by which the upper bounds of the paper are above its lower bound."""
LOWER_BOUND = "lower_bound"


def switching(queries: Sequence[str], changes: str = "") -> list[str]:
    """The paper's changes of each query, or others."""
    return [
        f"li2019-switching:query={query},{changes}seed={seed}" for seed, query in enumerate(queries)
    ]


def converges_again(curves: Curves, agent: str) -> Finding:
    """Whether regret per session falls to a half within the epochs."""
    values = curves.units(CHANGING, agent)
    # Over the nine epochs after a change, the first and the last fifth of each.
    first = np.mean([curves.rate(values, e / 10, e / 10 + 0.02) for e in range(1, 10)], axis=0)
    last = np.mean([curves.rate(values, e / 10 + 0.08, e / 10 + 0.1) for e in range(1, 10)], axis=0)
    return Finding(
        f"{estimate(first)} per session, then {estimate(last)}",
        estimate(last - 0.5 * first).below(0.0),
    )


def four_times(curves: Curves) -> Finding:
    """Whether CascadeKL-UCB has several times as much regret after eight changes."""
    values = curves.units(CHANGING, LAST)
    first, later = (
        curves.rate(values, start, start + 0.1) * curves.horizon / 10 for start in (0.0, 0.8)
    )
    ratio = later.mean() / first.mean()
    verdict = every(
        [estimate(later - 2 * first).above(0.0), estimate(later - 8 * first).below(0.0)]
    )
    return Finding(f"{estimate(first)}, then {estimate(later)}: {ratio:.1f} times", verdict)


def draw(evidence: Evidence) -> Figure:
    """Regret of all agents, with the epochs shaded."""
    curves = evidence["nonstat-fig1"]
    figure, panels = grid(1)
    bands(panels[0], curves, CHANGING, (*ADAPTIVE, *STUBBORN))
    for start in range(10_000, curves.horizon, 20_000):
        panels[0].axvspan(start, start + 10_000, color="0.93", zorder=0)
    panels[0].set(
        xlabel="session (grey: three other items attract with 0.9)",
        ylabel="cumulative regret",
        xlim=(0, curves.horizon),
    )
    return finish(figure, panels, evidence, "Regret where the users change")


# ------------------------------------------------------------------------------------------------------ single queries


def _on_each(values: Sequence[Values], words: str) -> Finding:
    """Whether the ``(runs,)`` values are surely below 0 on every query."""
    verdicts = [estimate(each).below(0.0) for each in values]
    counts = f"{verdicts.count('no')} not, {verdicts.count('cannot tell')} cannot tell"
    return Finding(
        f"{words} on {verdicts.count('yes')} of {len(verdicts)} queries ({counts})", every(verdicts)
    )


def single_rate(curves: Curves, agent: str, sublinear: bool) -> Finding:
    """Whether regret is sublinear on every query, or linear on every one."""
    excess = []
    for query in curves.instances:
        values = curves.units(CHANGING, agent, instance=query)
        gap = curves.rate(values, 0.8, 1.0) - LINEAR * curves.rate(values, 0.2, 0.4)
        excess.append(gap if sublinear else -gap)
    return _on_each(excess, "sublinear" if sublinear else "linear")


def single_less(curves: Curves, better: str, worse: str) -> Finding:
    """Whether one agent has less regret at the end than another on every query."""
    ends = [
        [curves.units(CHANGING, agent, instance=query)[:, -1] for agent in (better, worse)]
        for query in curves.instances
    ]
    return _on_each([low - high for low, high in ends], "less regret")


def draw_single(evidence: Evidence) -> Figure:
    """A panel for each query."""
    curves = evidence["nonstat-fig2"]
    figure, panels = grid(4, math.ceil(len(curves.instances) / 4), 2.0, 1.7)
    for axes, query in zip(panels, curves.instances, strict=False):
        for agent in SINGLE:
            band(
                axes,
                curves.steps / 1000,
                curves.units(CHANGING, agent, instance=query) / 1000,
                agent,
            )
        axes.set_title(query.partition("query=")[2].partition(",")[0] or query, fontsize=8)
        axes.tick_params(labelsize=7)
    for axes in panels[len(curves.instances) :]:
        axes.remove()
    return finish(
        figure,
        panels,
        evidence,
        "Cumulative regret on single queries over sessions, both in thousands",
    )


# ------------------------------------------------------------------------------------------------------------- theorem 3


def bound_per_root(env: Any) -> float:
    """What the square root of n is multiplied by in the lower bound of theorem 3.

    ``L (p - q) (1 - p)^{K-1} √(2 / (3 KL(q, p)))`` for L = 2K items, of which K attract with p and
    the others with q, and that change places twice.

    Args:
        env: with these users.

    Example:
        >>> import gymnasium as gym
        >>> from clickgym.envs import CascadeModel
        >>> before, after = CascadeModel([0.5, 0.2], 1), CascadeModel([0.2, 0.5], 1)
        >>> env = gym.make("NonStationaryCMRank-v0", models=[before, after, before], starts=[0, 100, 200])
        >>> round(bound_per_root(env) * np.sqrt(1000), 2)
        np.float64(35.29)
    """
    attractions = np.array([epoch.attraction for epoch in env.unwrapped.model.epochs])
    n_positions, n_items = env.unwrapped.model.n_positions, attractions.shape[1]
    worse, p = np.unique(attractions)
    return float(
        n_items * (p - worse) * (1 - p) ** (n_positions - 1) * np.sqrt(2 / (3 * kl(worse, p)))
    )


def lower_bound(curves: Curves) -> Values:
    """``(steps,)`` the lower bound."""
    return curves.ends(CHANGING, ADAPTIVE[0], LOWER_BOUND)[0, 0] * np.sqrt(curves.steps)


def times_bound(curves: Curves, agent: str, low: float = 0.0, high: float = math.inf) -> Finding:
    """Whether regret at the end, as a multiple of the lower bound, is between two numbers."""
    return estimate(curves.units(CHANGING, agent)[:, -1] / lower_bound(curves)[-1]).finding(
        " times the bound", low, high
    )


def within_factor(curves: Curves, agent: str) -> Finding:
    """Whether regret at the end is above the bound by no more than the agent's logarithmic
    factor.
    """
    factor = LOGARITHMIC[agent](curves.horizon)
    finding = times_bound(curves, agent, high=factor)
    return finding._replace(measured=f"{finding.measured}, factor {number(factor)}")


def draw_bound(evidence: Evidence) -> Figure:
    """Regret and the bound, with the epochs shaded."""
    curves = evidence["nonstat-bound"]
    figure, panels = grid(1)
    bands(panels[0], curves, CHANGING, BOUNDED)
    panels[0].plot(
        curves.steps,
        lower_bound(curves),
        color="black",
        linewidth=1.2,
        linestyle=":",
        label="lower bound (Theorem 3)",
    )
    panels[0].axvspan(curves.horizon / 3, 2 * curves.horizon / 3, color="0.93", zorder=0)
    panels[0].set(
        xlabel="session (grey: the other items attract more)",
        ylabel="cumulative regret",
        yscale="log",
        ylim=(1, None),
    )
    return finish(
        figure, panels, evidence, "Regret where the users change twice, beside the lower bound"
    )
