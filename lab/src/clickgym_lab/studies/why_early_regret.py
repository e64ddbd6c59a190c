"""Study of until when, against whom and on which queries BubbleRank has the lowest regret (Li et al. 2019, figure 1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .li2019_bubble import BUBBLE, BUBBLE_CM, WRONG_PAIRS, wrong_in_list
from .plots import LOOKS, Figure, band, finish, grid
from .study import LAST, SLACK, Curves, Evidence, Finding, Values, estimate, every, short
from .why_violations import TOP_RANK, lists_with

__all__ = ["crossing", "lists_with", "wrong_in_list"]

BUBBLE_RANK = "BubbleRank:delta=1.6e-27"
"""As in the paper, whose horizon is 5·10⁶: its δ is T^-4."""
RIVALS = (TOP_RANK, "BatchRank", LAST)
OWN = "why-early-own"
LEVELS = (4, 10, 16)
"""Wrong pairs of the production lists that are made; each has the part ``why-early-LEVEL``."""
LATE = 50_000
"""A hundredth of the paper's horizon."""


def crossing(ours: Values, theirs: Values, steps: NDArray[np.int64]) -> Values:
    """``(runs,)`` the logarithm to base 10 of the last step at which ours is not above theirs; of the horizon at most."""
    ahead = ours <= theirs + SLACK
    last = ahead.shape[1] - 1 - ahead[:, ::-1].argmax(axis=1)
    return np.log10(np.where(ahead.any(axis=1), steps[last], 1.0))


def log_crossing(curves: Curves, env: str, rival: str) -> Values:
    """``(runs,)`` where BubbleRank crosses a rival."""
    return crossing(curves.units(env, BUBBLE_RANK), curves.units(env, rival), curves.steps)


def on_list(evidence: Evidence, level: int) -> Values:
    """Where BubbleRank on lists with a given number of wrong pairs crosses TopRank, in the CM."""
    curves, own = evidence[f"why-early-{level}"], evidence[OWN]
    return crossing(curves.units(BUBBLE_CM, BUBBLE_RANK), own.units(BUBBLE_CM, TOP_RANK), curves.steps)


def later(evidence: Evidence, good: int, bad: int) -> Values:
    """``(runs,)`` how much later it does on good lists than on bad ones."""
    return on_list(evidence, good) - on_list(evidence, bad)


def log_ratio(curves: Curves, env: str) -> Values:
    """``(instances, runs)`` the logarithm of BubbleRank's regret over TopRank's at the last step."""
    ours, theirs = (np.maximum(curves.ends(env, agent), SLACK) for agent in (BUBBLE_RANK, TOP_RANK))
    return np.log10(ours / theirs)


def queries_ahead(curves: Curves, env: str) -> Values:
    """``(runs,)`` on how many queries BubbleRank's is the lower."""
    return (log_ratio(curves, env) <= 0).sum(axis=0).astype(float)


def by_pairs(curves: Curves, env: str) -> Values:
    """``(runs,)`` rank correlation over queries of |V_0| and BubbleRank's disadvantage."""
    wrong = curves.ends(env, BUBBLE_RANK, WRONG_PAIRS)[:, 0]
    ranks = [np.argsort(np.argsort(values, kind="stable")) for values in (wrong, *log_ratio(curves, env).T)]
    return np.array([np.corrcoef(ranks[0], each)[0, 1] for each in ranks[1:]])


def ratio(evidence: Evidence, level: int) -> Values:
    """``(runs,)`` BubbleRank's regret over TopRank's at a hundredth of the paper's horizon, on lists that were made."""
    curves, own = evidence[f"why-early-{level}"], evidence[OWN]
    step = min(LATE, curves.horizon)
    ours = curves.at(curves.units(BUBBLE_CM, BUBBLE_RANK), step)
    return ours / own.at(own.units(BUBBLE_CM, TOP_RANK), step)


def nothing_left(curves: Curves, env: str) -> Finding:
    """Whether BubbleRank has less regret than TopRank and BatchRank at a hundredth of the paper's horizon."""
    step = min(LATE, curves.horizon)
    ours = curves.at(curves.units(env, BUBBLE_RANK), step)
    ratios = {agent: estimate(ours / curves.at(curves.units(env, agent), step)) for agent in RIVALS[:2]}
    text = ", ".join(f"{ratio} times {agent.partition(':')[0]}'s" for agent, ratio in ratios.items())
    return Finding(text, every([ratio.below(1.0) for ratio in ratios.values()]))


def draw(evidence: Evidence) -> Figure:
    """Regret in each click model, and in the CM on lists that were made."""
    figure, panels = grid(2, 2)
    curves = evidence[OWN]
    late = curves.steps >= 10
    for axes, env in zip(panels, BUBBLE, strict=False):
        for agent in (BUBBLE_RANK, *RIVALS):
            band(axes, curves.steps[late], curves.units(env, agent)[:, late], agent.partition(":")[0], LOOKS[agent])
    band(panels[3], curves.steps[late], curves.units(BUBBLE_CM, TOP_RANK)[:, late], "TopRank", LOOKS[TOP_RANK])
    for level in LEVELS:
        one = evidence[f"why-early-{level}"]
        values = one.units(BUBBLE_CM, BUBBLE_RANK)[:, late]
        band(panels[3], one.steps[late], values, "BubbleRank", LOOKS[BUBBLE_RANK])
        end = (float(one.steps[-1]), float(values[:, -1].mean()))
        panels[3].annotate(f"{level}", end, (3, 0), va="center", textcoords="offset points", fontsize=8)
    for axes, title in zip(panels, [*map(short, BUBBLE), "CM, lists of 4, 10 and 16 wrong pairs"], strict=True):
        axes.set(xscale="log", yscale="log", xlabel="session", ylabel="cumulative regret")
        axes.set_title(title, fontsize=10)
        axes.axvline(LATE, color="black", linewidth=0.8, linestyle=":")
    return finish(figure, panels[:1], evidence, f"Regret of the first five positions, early (dotted: session {LATE:,})")
