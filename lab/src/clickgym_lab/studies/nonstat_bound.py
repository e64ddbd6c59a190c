"""Regret where the users change twice, beside the lower bound.

Li and de Rijke 2019, theorem 3.

The users are those of the theorem: three of six items attract with 0.5, the others with 0.2, and
they change places after 100,000 and 200,000 of 300,000 sessions. The theorem is stated for any
learning algorithm; its proof rests on a result about the changes that are worst for the algorithm
at hand. Statements marked (ours) were predicted before the run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from clickgym.agents.kernels import kl

from .changing_users import ADAPTIVE, CM
from .claims import Claim, Curves, Finding, Results, Values, estimate, number, several
from .plots import BOUND, Figure, bands, finish, grid
from .study import Sweep

BOUNDED = (*ADAPTIVE, "GLRCascadeKLUCB", "RankedExp3", "CascadeKLUCB")


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
        >>> users = {"models": [before, after, before], "starts": [0, 100, 200]}
        >>> env = gym.make("NonStationaryCMRank-v0", **users)
        >>> round(float(bound_per_root(env) * np.sqrt(1000)), 2)
        35.29
    """
    model = env.unwrapped.model
    attractions = np.array([epoch.attraction for epoch in model.epochs])
    worse, p = np.unique(attractions)
    seen = (1 - p) ** (model.n_positions - 1)
    return float(attractions.shape[1] * (p - worse) * seen * np.sqrt(2 / (3 * kl(worse, p))))


PARTS = {30_000: "nonstat-bound-30k", 300_000: "nonstat-bound", 3_000_000: "nonstat-bound-3m"}
"""The part of each horizon n: users change at n / 3 and 2 n / 3."""
OF_EACH_HORIZON = [
    Sweep(
        part,
        [CM],
        BOUNDED,
        horizon=n,
        runs=20,
        instances=["li2019-two-changes" + (f":length={n // 3}" if n != 300_000 else "")],
        facts={"lower_bound": bound_per_root},
        scaled=False,
    )
    for n, part in PARTS.items()
]
SWEEPS = OF_EACH_HORIZON[1:2]
"""The users of the theorem, who change twice; never scaled. `ADAPTIVE` are CascadeDUCB and
CascadeSWUCB.
"""


def claims(results: Results) -> Iterator[Claim]:
    """What the paper says of its theorem 3; that marked (ours) was predicted before the run.

    A test asks whether the mean of independent values lies between two bounds: yes if its 95 %
    interval (Student's t) lies between them, no if it lies outside, else it cannot tell; all
    statements are judged together by Holm's procedure. `several` asks that all tests hold; one that
    surely does not contradicts the statement.

    All tests are of regret at the end as a multiple of the bound, over the 20 runs of the one
    instance.
    """
    curves = results["nonstat-bound"]
    yield Claim(
        "No agent has less regret than the lower bound",
        "more cumulative regret at the end than the bound, each agent",
        several({agent: times_bound(curves, agent, low=1.0) for agent in BOUNDED}),
        paper="any learning algorithm",
    )
    log = math.log(curves.horizon)
    for agent, words, factor in zip(
        ADAPTIVE, ("ln n", "√(ln n)"), (log, math.sqrt(log)), strict=True
    ):
        finding = times_bound(curves, agent, high=factor)
        yield Claim(
            f"The regret of {agent} is above the lower bound by at most a factor of the order "
            f"{words}",
            f"at most {words} times the bound at the end",
            finding._replace(measured=f"{finding.measured}, factor {number(factor)}"),
            paper=f"matches the lower bound up to {words}",
        )
    yield Claim(
        "GLR-CascadeKL-UCB, which detects changes, has less regret than the lower bound, because "
        "the bound does not hold for every fixed set of users (ours)",
        "less cumulative regret at the end than the bound",
        times_bound(curves, "GLRCascadeKLUCB", high=1.0),
    )


def lower_bound(curves: Curves) -> Values:
    """``(steps,)`` the lower bound."""
    return curves.by_instance(CM, ADAPTIVE[0], "lower_bound")[0, 0] * np.sqrt(curves.steps)


def times_bound(curves: Curves, agent: str, low: float = 0.0, high: float = math.inf) -> Finding:
    """Whether regret at the end, as a multiple of the lower bound, lies between two numbers."""
    multiple = estimate(curves.by_run(CM, agent)[:, -1] / lower_bound(curves)[-1])
    return multiple.within(low, high, " times the bound")


def draw(results: Results) -> Figure:
    """Regret and the bound, with the middle epoch shaded."""
    curves = results["nonstat-bound"]
    figure, [axes] = grid(1, labels=["cumulative regret"])
    bands(axes, curves, CM, BOUNDED)
    axes.plot(curves.steps, lower_bound(curves), label="lower bound (Theorem 3)", **BOUND)
    axes.axvspan(curves.horizon / 3, 2 * curves.horizon / 3, color="0.93", zorder=0)
    axes.set(xlabel="session (grey: the other items attract more)", yscale="log", ylim=(1, None))
    title = "Regret where the users change twice, beside the lower bound"
    return finish(figure, [axes], results, title)
