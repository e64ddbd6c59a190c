"""Regret where the users change twice, beside the lower bound.

Li and de Rijke 2019, theorem 3.

The paper states the theorem and plays no such users. Ours are those of the theorem: three of six
items attract with 0.5 and three with 0.2. They change places after n/3 and 2n/3 of n sessions. The
theorem is about n → ∞, and our longest run has three million sessions.

The theorem is stated for any learning algorithm. Its proof quotes a theorem about the changes that
are worst for the algorithm at hand (Garivier and Moulines 2011, theorem 3). Our users are fixed and
change twice. An agent that finds the changes pays a delay at each of them. Afterwards it loses
O(log n), because users do not change in between. So it can stay below the printed bound for such
users. GLR-CascadeKL-UCB, which detects changes, is not in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from clickgym.agents.kernels import kl

from .changing_users import ADAPTIVE, CM
from .claims import Curves, Results, Statement, Values, estimate, number
from .plots import BOUND, Figure, bands, finish, grid, points
from .study import Sweep, Table

BOUNDED = (*ADAPTIVE, "GLRCascadeKLUCB", "RankedExp3", "CascadeKLUCB")


def bound_per_root(env: Any) -> float:
    """The factor of the square root of n in the lower bound of theorem 3.

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
SWEEPS = [
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
"""The users of the theorem, who change twice; never scaled. `ADAPTIVE` are CascadeDUCB and
CascadeSWUCB.
"""


def lower_bound(curves: Curves) -> Values:
    """``(steps,)`` the lower bound."""
    return curves.by_instance(CM, ADAPTIVE[0], "lower_bound")[0, 0] * np.sqrt(curves.steps)


def times_bound(results: Results, n: int, agent: str) -> Values:
    """``(runs,)`` regret at the end as a multiple of the lower bound."""
    curves = results[PARTS[n]]
    return curves.values(CM, agent) / lower_bound(curves)[-1]


STATEMENTS = [
    Statement(
        "The n-step regret of any learning algorithm interacting with cascading non-stationary "
        "bandit B_L is lower bounded as follows: lim inf_{n→∞} R(n) ≥ L Δ (1-p)^{K-1} "
        "√(2n / (3 D_KL(p-Δ‖p)))",
        "theorem 3, section 4.2",
        "It is a limit for n → ∞, which no finite n decides. The table shows the ratios.",
    ),
    Statement(
        "Specifically, the upper bound of CascadeDUCB matches the lower bound up to ln n. The "
        "upper bound of CascadeSWUCB matches the lower bound up to √(ln n)",
        "section 4.3",
        "It is an order of two upper bounds, which no simulation decides. The table shows the "
        "ratios.",
    ),
]


def table(results: Results) -> Table:
    """Regret as a multiple of the bound, as n grows."""
    rows = [["agent", *(f"n = {n:,}" for n in PARTS)]]
    for agent in BOUNDED:
        rows.append([agent, *(str(estimate(times_bound(results, n, agent))) for n in PARTS)])
    rows.append(["ln n", *(number(np.log(n)) for n in PARTS)])
    rows.append(["√(ln n)", *(number(np.log(n) ** 0.5) for n in PARTS)])
    return "Regret as a multiple of the lower bound", rows


def seen(results: Results) -> Iterator[str]:
    """Where an agent is below the bound."""
    for agent in BOUNDED:
        ratios = [estimate(times_bound(results, n, agent)) for n in PARTS]
        if ratios[-1].mean + ratios[-1].half < 1:
            words = ", ".join(map(str, ratios))
            at = ", ".join(f"{n:,}" for n in PARTS)
            yield f"{agent} has {words} times the bound at n = {at}."


def draw(results: Results) -> Figure:
    """Regret and the bound, with the middle epoch shaded; and their ratio as n grows."""
    curves = results[PARTS[300_000]]
    figure, [axes, growth] = grid(2, width=4.0, labels=["cumulative regret"])
    bands(axes, curves, CM, BOUNDED)
    axes.plot(curves.steps, lower_bound(curves), label="lower bound (Theorem 3)", **BOUND)
    axes.axvspan(curves.horizon / 3, 2 * curves.horizon / 3, color="0.93", zorder=0)
    axes.set(xlabel="session (grey: the other items attract more)", yscale="log", ylim=(1, None))
    axes.ticklabel_format(axis="x", style="sci", scilimits=(0, 0), useMathText=True)
    for agent in BOUNDED:
        points(growth, list(PARTS), [times_bound(results, n, agent) for n in PARTS], agent)
    growth.axhline(1.0, **BOUND)
    growth.set(xscale="log", yscale="log", xlabel="n", ylabel="regret / lower bound")
    title = "Regret where the users change twice, beside the lower bound"
    return finish(figure, [axes], results, title)
