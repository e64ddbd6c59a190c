"""Li and de Rijke 2019, cascading bandits where users change: figure 1."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from .plots import band, finish, grid
from .study import (
    LAST,
    LEARNS_RULE,
    LINEAR_RULE,
    Evidence,
    Finding,
    Part,
    Statement,
    Study,
    estimate,
    every,
    in_all,
    less,
    linear,
    several,
    sublinear,
    total,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["STUDIES"]

CHANGING = "NonStationaryCMRank-v0"
ADAPTIVE, STUBBORN = ("CascadeDUCB", "CascadeSWUCB"), ("RankedExp3", LAST, "BatchRank")


def _switching(queries: Sequence[str]) -> list[str]:
    return [f"li2019-switching:query={query},seed={seed}" for seed, query in enumerate(queries)]


def _converges_again(agent: str, evidence: Evidence) -> Finding:
    curves = evidence["nonstat-fig1"]
    values = curves.units(CHANGING, agent)
    # Over the nine epochs after a change, the first and the last fifth of each.
    first = np.mean([curves.rate(values, e / 10, e / 10 + 0.02) for e in range(1, 10)], axis=0)
    last = np.mean([curves.rate(values, e / 10 + 0.08, e / 10 + 0.1) for e in range(1, 10)], axis=0)
    return Finding(f"{estimate(first)} per session, then {estimate(last)}", estimate(last - 0.5 * first).below(0.0))


def _four_times(evidence: Evidence) -> Finding:
    curves = evidence["nonstat-fig1"]
    values = curves.units(CHANGING, LAST)
    first, later = (curves.rate(values, start, start + 0.1) * curves.horizon / 10 for start in (0.0, 0.8))
    ratio = later.mean() / first.mean()
    verdict = every([estimate(later - 2 * first).above(0.0), estimate(later - 8 * first).below(0.0)])
    return Finding(f"{estimate(first)}, then {estimate(later)}: {ratio:.1f} times", verdict)


def _nonstat_fig1() -> Study:
    part = Part(
        "nonstat-fig1", (CHANGING,), (*ADAPTIVE, *STUBBORN), 10**5, 10, 100, _switching, least_horizon=10**5, least_runs=10
    )  # fmt: skip

    def lower(better: str, worse: Sequence[str], evidence: Evidence) -> Finding:
        curves = evidence[part.name]
        return several({name: less(curves, CHANGING, better, name, total(curves)) for name in worse})

    statements = [
        *(
            Statement(
                f"{agent} detects the changes and converges again",
                "regret per session in the last fifth of the epochs after a change is below half of that in their first fifth",
                partial(_converges_again, agent),
            )
            for agent in ADAPTIVE
        ),
        *(
            Statement(
                f"The regret of {agent} is sublinear within the run",
                LEARNS_RULE,
                partial(in_all, sublinear, part.name, (CHANGING,), (agent,)),
            )
            for agent in ADAPTIVE
        ),
        *(
            Statement(
                f"The regret of {agent} is linear", LINEAR_RULE, partial(in_all, linear, part.name, (CHANGING,), (agent,))
            )
            for agent in STUBBORN
        ),
        *(
            Statement(
                f"{agent} has less regret than RankedExp3, CascadeKL-UCB and BatchRank",
                "less cumulative regret at the end than each",
                partial(lower, agent, STUBBORN),
            )
            for agent in ADAPTIVE
        ),
        Statement(
            "CascadeSWUCB is slightly better than CascadeDUCB",
            "less cumulative regret at the end",
            partial(lower, "CascadeSWUCB", ADAPTIVE[:1]),
        ),
        Statement(
            "CascadeKL-UCB has about four times as much regret in [80k, 90k) as in [0, 10k), with the same users",
            "between two and eight times",
            _four_times,
            paper="111.5, then 447.8",
        ),
    ]
    return Study(
        "Regret where the users change every 10,000 sessions",
        "Li and de Rijke 2019, figure 1",
        (part,),
        tuple(statements),
        "The horizon is never scaled: the changes are at fixed sessions. Changes come at a constant rate, so any agent has "
        "regret that grows linearly from one pair of epochs to the next, however well it adapts; the theorems' sublinear "
        "growth is about a fixed number of changes.",
        _draw_fig1,
    )


def _draw_fig1(evidence: Evidence) -> Figure:
    curves = evidence["nonstat-fig1"]
    figure, panels = grid(1)
    for agent in (*ADAPTIVE, *STUBBORN):
        band(panels[0], curves.steps, curves.units(CHANGING, agent), agent)
    for start in range(10_000, curves.horizon, 20_000):
        panels[0].axvspan(start, start + 10_000, color="0.93", zorder=0)
    panels[0].set(
        xlabel="session (grey: three other items attract with 0.9)", ylabel="cumulative regret", xlim=(0, curves.horizon)
    )
    return finish(figure, panels, evidence, "Regret where the users change")


STUDIES: dict[str, Study] = {
    "nonstat-fig1": _nonstat_fig1(),
}
