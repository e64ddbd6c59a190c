"""Li and de Rijke 2019, cascading bandits where users change: figure 1, figure 2 on single queries,
and the lower bound of theorem 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from clickgym.agents.kernels import kl

from .claims import (
    LEARNS_RULE,
    LINEAR,
    LINEAR_RULE,
    Claim,
    Curves,
    Finding,
    Results,
    Values,
    all_of,
    estimate,
    less_regret,
    linear,
    number,
    several,
    sublinear,
)
from .plots import BOUND, Figure, band, bands, finish, grid
from .study import Study, Sweep, main

CM = "NonStationaryCMRank-v0"
ADAPTIVE, STUBBORN = ("CascadeDUCB", "CascadeSWUCB"), ("RankedExp3", "CascadeKLUCB", "BatchRank")
SINGLE = (*ADAPTIVE, "RankedExp3", "CascadeKLUCB", "BubbleRank")
BOUNDED = (*ADAPTIVE, "GLRCascadeKLUCB", "RankedExp3", "CascadeKLUCB")


def switching(queries: Sequence[str]) -> list[str]:
    """The paper's changes of each query."""
    return [f"li2019-switching:query={query},seed={seed}" for seed, query in enumerate(queries)]


# ----------------------------------------------------------------------------------------- figure 1


SWEEPS_FIG1 = [
    Sweep(
        "nonstat-fig1",
        [CM],
        (*ADAPTIVE, *STUBBORN),
        horizon=100_000,
        runs=10,
        instances=switching,
        queries=100,
        windows=50,
        least_horizon=100_000,
        least_runs=10,
    )
]
"""The horizon is never scaled: users change at fixed sessions."""


def claims_fig1(results: Results) -> Iterator[Claim]:
    """What the paper says of its figure 1."""
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
    """Whether regret per session falls to a half within the nine epochs after a change."""
    values = curves.units(CM, agent)
    starts = [epoch / 10 for epoch in range(1, 10)]
    first = np.mean([curves.rate(values, start, start + 0.02) for start in starts], axis=0)
    last = np.mean([curves.rate(values, start + 0.08, start + 0.1) for start in starts], axis=0)
    words = f"{estimate(first)} per session, then {estimate(last)}"
    return estimate(last - 0.5 * first).below(0.0)._replace(measured=words)


def four_times(curves: Curves) -> Finding:
    """Whether CascadeKL-UCB has several times as much regret after eight changes."""
    values = curves.units(CM, "CascadeKLUCB")
    first, later = (
        curves.rate(values, start, start + 0.1) * curves.horizon / 10 for start in (0.0, 0.8)
    )
    ratio = later.mean() / first.mean()
    words = f"{estimate(first)}, then {estimate(later)}: {ratio:.1f} times"
    bounds = [estimate(later - 2 * first).above(0.0), estimate(later - 8 * first).below(0.0)]
    return all_of(words, bounds)


def draw_fig1(results: Results) -> Figure:
    """Regret of all agents, with the epochs shaded."""
    curves = results["nonstat-fig1"]
    figure, [axes] = grid(1, labels=["cumulative regret"])
    bands(axes, curves, CM, (*ADAPTIVE, *STUBBORN))
    for start in range(10_000, curves.horizon, 20_000):
        axes.axvspan(start, start + 10_000, color="0.93", zorder=0)
    label = "session (grey: three other items attract with 0.9)"
    axes.set(xlabel=label, xlim=(0, curves.horizon))
    return finish(figure, [axes], results, "Regret where the users change")


# ------------------------------------------------------------------------- figure 2: single queries


SWEEPS_FIG2 = [
    Sweep(
        "nonstat-fig2",
        [CM],
        SINGLE,
        horizon=100_000,
        runs=10,
        instances=switching,
        queries=20,
        whole=True,
        least_horizon=100_000,
        least_runs=10,
    )
]
"""The same changes on up to 20 queries, each for itself."""


def claims_fig2(results: Results) -> Iterator[Claim]:
    """What the paper says of its figure 2; those marked (ours) were predicted before the run."""
    curves, rivals = results["nonstat-fig2"], ("RankedExp3", "CascadeKLUCB", "BubbleRank")
    for agent in ADAPTIVE:
        yield Claim(
            f"The regret of {agent} is sublinear on single queries",
            f"on every query: {LEARNS_RULE}",
            on_each("sublinear", excess(curves, agent)),
        )
    for agent in rivals:
        yield Claim(
            f"The regret of {agent} is linear on single queries",
            f"on every query: {LINEAR_RULE}",
            on_each("linear", [-values for values in excess(curves, agent)]),
        )
    for agent in ADAPTIVE:
        yield Claim(
            f"{agent} has less regret than RankedExp3, CascadeKL-UCB and BubbleRank on every query "
            "(ours)",
            "less cumulative regret at the end than each, on every query",
            several({worse: less_on_each(curves, agent, worse) for worse in rivals}),
        )


def excess(curves: Curves, agent: str) -> list[Values]:
    """For each query ``(runs,)`` how far the late rate of regret is above that of linear regret."""
    queries = [curves.units(CM, agent, instance=query) for query in curves.instances]
    return [curves.rate(q, 0.8, 1.0) - LINEAR * curves.rate(q, 0.2, 0.4) for q in queries]


def less_on_each(curves: Curves, better: str, worse: str) -> Finding:
    """Whether one agent has less regret at the end than another on every query."""
    low, high = (curves.ends(CM, agent) for agent in (better, worse))
    return on_each("less regret", list(low - high))


def on_each(words: str, values: Sequence[Values]) -> Finding:
    """Whether the ``(runs,)`` values are surely below 0 on every query."""
    findings = [estimate(runs).below(0.0) for runs in values]
    verdicts = [finding.verdict() for finding in findings]
    counts = f"{verdicts.count('no')} not, {verdicts.count('cannot tell')} cannot tell"
    total = f"{words} on {verdicts.count('yes')} of {len(verdicts)} queries ({counts})"
    return all_of(total, findings)


def draw_fig2(results: Results) -> Figure:
    """A panel for each query."""
    curves = results["nonstat-fig2"]
    figure, panels = grid(4, math.ceil(len(curves.instances) / 4), 2.0, 1.7)
    for axes, query in zip(panels, curves.instances, strict=False):
        for agent in SINGLE:
            values = curves.units(CM, agent, instance=query)
            band(axes, curves.steps / 1000, values / 1000, agent)
        axes.set_title(query.partition("query=")[2].partition(",")[0] or query, fontsize=8)
        axes.tick_params(labelsize=7)
    for axes in panels[len(curves.instances) :]:
        axes.remove()
    title = "Cumulative regret on single queries over sessions, both in thousands"
    return finish(figure, panels, results, title)


# ----------------------------------------------------------------------------- theorem 3: the bound


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


SWEEPS_BOUND = [
    Sweep(
        "nonstat-bound",
        [CM],
        BOUNDED,
        horizon=300_000,
        runs=20,
        instances=["li2019-two-changes"],
        facts={"lower_bound": bound_per_root},
        least_horizon=300_000,
        least_runs=20,
    )
]
"""The users of the theorem, who change twice; never scaled."""


def claims_bound(results: Results) -> Iterator[Claim]:
    """What the paper says of its theorem 3; that marked (ours) was predicted before the run."""
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
    return curves.ends(CM, ADAPTIVE[0], "lower_bound")[0, 0] * np.sqrt(curves.steps)


def times_bound(curves: Curves, agent: str, low: float = 0.0, high: float = math.inf) -> Finding:
    """Whether regret at the end, as a multiple of the lower bound, lies between two numbers."""
    multiple = estimate(curves.units(CM, agent)[:, -1] / lower_bound(curves)[-1])
    return multiple.within(low, high, " times the bound")


def draw_bound(results: Results) -> Figure:
    """Regret and the bound, with the middle epoch shaded."""
    curves = results["nonstat-bound"]
    figure, [axes] = grid(1, labels=["cumulative regret"])
    bands(axes, curves, CM, BOUNDED)
    axes.plot(curves.steps, lower_bound(curves), label="lower bound (Theorem 3)", **BOUND)
    axes.axvspan(curves.horizon / 3, 2 * curves.horizon / 3, color="0.93", zorder=0)
    axes.set(xlabel="session (grey: the other items attract more)", yscale="log", ylim=(1, None))
    title = "Regret where the users change twice, beside the lower bound"
    return finish(figure, [axes], results, title)


PAPER = "Li and de Rijke 2019"
FIG1 = Study(
    "nonstat-fig1",
    "Regret where the users change every 10,000 sessions",
    f"{PAPER}, figure 1",
    "The horizon is never scaled: the changes are at fixed sessions. Changes come at a constant "
    "rate, so any agent has regret that grows linearly from one pair of epochs to the next, "
    "however well it adapts; the theorems' sublinear growth is about a fixed number of changes.",
    SWEEPS_FIG1,
    claims_fig1,
    draw_fig1,
)
FIG2 = Study(
    "nonstat-fig2",
    "Regret where the users change every 10,000 sessions, on single queries",
    f"{PAPER}, figure 2",
    "The paper picks 20 queries and does not say which; here they are the first 20, or all where "
    "there are fewer. BubbleRank is the agent of this figure that figure 1 has not; it re-ranks "
    "the production list, and shows the first three items of it. Statements hold on every "
    "single query or not at all; those marked (ours) were predicted before the run.",
    SWEEPS_FIG2,
    claims_fig2,
    draw_fig2,
)
THEOREM3 = Study(
    "nonstat-bound",
    "Regret where the users change twice, beside the lower bound",
    f"{PAPER}, theorem 3",
    "The users are those of the theorem: three of six items attract with 0.5, the others with 0.2, "
    "and they change places after 100,000 and 200,000 of 300,000 sessions. The theorem is stated "
    "for any learning algorithm; its proof rests on a result about the changes that are worst for "
    "the algorithm at hand. Statements marked (ours) were predicted before the run.",
    SWEEPS_BOUND,
    claims_bound,
    draw_bound,
)

if __name__ == "__main__":
    main(FIG1, FIG2, THEOREM3)
