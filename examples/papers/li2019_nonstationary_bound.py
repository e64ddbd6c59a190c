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

import sys

import figures
import numpy as np
import study
from study import Statement, estimate, number

import clickgym
from clickgym.agents.kernels import kl

CM = "NonStationaryCMRank-v0"
AGENTS = ["CascadeDUCB", "CascadeSWUCB", "GLRCascadeKLUCB", "RankedExp3", "CascadeKLUCB"]
HORIZONS = (30_000, 300_000, 3_000_000)
"""n: users change after a third of n sessions, and once more after two thirds."""


def bound_per_root(env) -> float:
    """The factor of the square root of n in the lower bound of theorem 3.

    ``L (p - q) (1 - p)^{K-1} √(2 / (3 KL(q, p)))`` for L = 2K items, of which K attract with p and
    the others with q, and that change places twice.

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


def play(options):
    """The users of the theorem, with each n. The longest of a first look has the sessions that are
    asked for.
    """
    parts, longest = {}, options.horizon or HORIZONS[-1]
    for n in (max(3, n * longest // HORIZONS[-1]) for n in HORIZONS):
        users = ["li2019-two-changes" + (f":length={n // 3}" if n != 300_000 else "")]
        results = clickgym.sweep(
            [CM],
            AGENTS,
            n,
            options.runs or 20,
            instances=users,
            checkpoints=study.checkpoints(n),
            out=options.out / f"n {n}",
        )
        table = study.with_fact(results.frame, "lower_bound", bound_per_root, [CM], users)
        parts[f"n {n}"] = study.compact(table, (1.0,), ["regret", "lower_bound"])
    return parts


def lengths(results):
    """Each n."""
    return [curves.horizon for curves in results.values()]


def lower_bound(curves):
    """``(steps,)`` the lower bound."""
    return curves.by_instance(CM, AGENTS[0], "lower_bound")[0, 0] * np.sqrt(curves.steps)


def times_bound(results, agent):
    """For each n ``(runs,)`` regret at the end as a multiple of the lower bound."""
    return [curves.values(CM, agent) / lower_bound(curves)[-1] for curves in results.values()]


def statements(results):
    return [
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


def table(results):
    """Regret as a multiple of the bound, as n grows."""
    ns = lengths(results)
    rows = [["agent", *(f"n = {n:,}" for n in ns)]]
    for agent in AGENTS:
        rows.append([agent, *(str(estimate(values)) for values in times_bound(results, agent))])
    rows.append(["ln n", *(number(np.log(n)) for n in ns)])
    rows.append(["√(ln n)", *(number(np.log(n) ** 0.5) for n in ns)])
    return "Regret as a multiple of the lower bound", rows


def seen(results):
    """Where an agent is below the bound."""
    for agent in AGENTS:
        ratios = [estimate(values) for values in times_bound(results, agent)]
        if ratios[-1].mean + ratios[-1].half < 1:
            at = ", ".join(f"{n:,}" for n in lengths(results))
            yield f"{agent} has {', '.join(map(str, ratios))} times the bound at n = {at}."


def draw(results):
    """Regret and the bound, with the middle epoch shaded; and their ratio as n grows."""
    _, curves, _ = results.values()
    figure, [axes, growth] = figures.grid(2, label="cumulative regret", width=4.0)
    for agent in AGENTS:
        figures.band(axes, curves.steps, curves.by_run(CM, agent), agent)
        figures.points(growth, lengths(results), times_bound(results, agent), agent)
    axes.plot(curves.steps, lower_bound(curves), label="lower bound (Theorem 3)", **figures.BOUND)
    axes.axvspan(curves.horizon / 3, 2 * curves.horizon / 3, color="0.93", zorder=0)
    axes.set(xlabel="session (grey: others attract)", yscale="log", ylim=(1, None))
    growth.axhline(1.0, **figures.BOUND)
    growth.set(xscale="log", yscale="log", xlabel="n", ylabel="regret / lower bound")
    return figures.finish(figure, "Regret where the users change twice, beside the lower bound")


if __name__ == "__main__":
    study.main(sys.modules[__name__])
