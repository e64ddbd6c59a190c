"""Study of until when, against whom and on which queries BubbleRank has the lowest regret (Li et al. 2019, figure 1)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .li2019_bubble import BUBBLE, BUBBLE_CM, WRONG_PAIRS, wrong_in_list
from .plots import LOOKS, band, finish, grid
from .study import LAST, SLACK, Curves, Evidence, Finding, Part, Statement, Study, Values, estimate, every, several, short
from .why import Range, hypothesis
from .why_violations import TOP_RANK, lists_with

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["STUDIES", "crossing"]

BUBBLE_RANK = "BubbleRank:delta=1.6e-27"
"""As in the paper, whose horizon is 5·10⁶: its δ is T^-4."""
RIVALS = (TOP_RANK, "BatchRank", LAST)
OWN, SHORT = "why-early-own", "why-early-queries"
LEVELS = (4, 10, 16)
GOOD, FAIR, BAD = (f"why-early-{level}" for level in LEVELS)
LATE = 50_000
"""A hundredth of the paper's horizon."""


def crossing(ours: Values, theirs: Values, steps: NDArray[np.int64]) -> Values:
    """``(runs,)`` the logarithm to base 10 of the last step at which ours is not above theirs; of the horizon at most."""
    ahead = ours <= theirs + SLACK
    last = ahead.shape[1] - 1 - ahead[:, ::-1].argmax(axis=1)
    return np.log10(np.where(ahead.any(axis=1), steps[last], 1.0))


def _crossings(rival: str, evidence: Evidence) -> Mapping[str, Values]:
    curves = evidence[OWN]
    return {short(env): crossing(curves.units(env, BUBBLE_RANK), curves.units(env, rival), curves.steps) for env in BUBBLE}


def on_list(evidence: Evidence, part: str) -> Values:
    """Where BubbleRank on lists with given numbers of wrong pairs crosses TopRank, in the CM."""
    curves, own = evidence[part], evidence[OWN]
    return crossing(curves.units(BUBBLE_CM, BUBBLE_RANK), own.units(BUBBLE_CM, TOP_RANK), curves.steps)


def _later(evidence: Evidence) -> Mapping[str, Values]:
    return {"": on_list(evidence, GOOD) - on_list(evidence, BAD)}


def log_ratio(curves: Curves, env: str) -> Values:
    """``(instances, runs)`` the logarithm of BubbleRank's regret over TopRank's at the last step."""
    ours, theirs = (np.maximum(curves.ends(env, agent), SLACK) for agent in (BUBBLE_RANK, TOP_RANK))
    return np.log10(ours / theirs)


def _ahead(evidence: Evidence) -> Mapping[str, Values]:
    return {short(env): (log_ratio(evidence[SHORT], env) <= 0).sum(axis=0).astype(float) for env in BUBBLE}


def _by_pairs(evidence: Evidence) -> Mapping[str, Values]:
    """``(runs,)`` rank correlation over queries of |V_0| and BubbleRank's disadvantage."""
    curves, correlations = evidence[SHORT], {}
    for env in BUBBLE:
        wrong = curves.ends(env, BUBBLE_RANK, WRONG_PAIRS)[:, 0]
        ratios = log_ratio(curves, env)
        ranks = [np.argsort(np.argsort(values, kind="stable")) for values in (wrong, *ratios.T)]
        correlations[short(env)] = np.array([np.corrcoef(ranks[0], each)[0, 1] for each in ranks[1:]])
    return correlations


def _at_a_hundredth(part: str, evidence: Evidence) -> Values:
    curves, own = evidence[part], evidence[OWN]
    step = min(LATE, curves.horizon)
    ours = curves.at(curves.units(BUBBLE_CM, BUBBLE_RANK), step)
    return ours / own.at(own.units(BUBBLE_CM, TOP_RANK), step)


def _ratios(evidence: Evidence) -> Mapping[str, Values]:
    return {f"|V_0| = {level}": _at_a_hundredth(part, evidence) for level, part in zip(LEVELS, (GOOD, FAIR, BAD), strict=True)}


def _left(evidence: Evidence) -> Finding:
    """BubbleRank's regret over TopRank's and BatchRank's at a hundredth of the paper's horizon."""
    curves = evidence[OWN]
    step = min(LATE, curves.horizon)
    findings = {}
    for env in BUBBLE:
        ours = curves.at(curves.units(env, BUBBLE_RANK), step)
        ratios = {agent: estimate(ours / curves.at(curves.units(env, agent), step)) for agent in RIVALS[:2]}
        text = ", ".join(f"{ratio} times {agent.partition(':')[0]}'s" for agent, ratio in ratios.items())
        findings[short(env)] = Finding(text, every([ratio.below(1.0) for ratio in ratios.values()]))
    return several(findings)


def _study() -> Study:
    own = Part(OWN, BUBBLE, (BUBBLE_RANK, *RIVALS), 10**5, 6, 16, least_horizon=LATE, least_runs=6, windows=20)
    queries = Part(SHORT, BUBBLE, (BUBBLE_RANK, TOP_RANK), 5_000, 6, 16, least_horizon=5_000, least_runs=6, windows=20,
                   facts={WRONG_PAIRS: wrong_in_list})  # fmt: skip
    lists = tuple(
        Part(part, (BUBBLE_CM,), (BUBBLE_RANK,), 10**5, 6, 16, files=partial(lists_with, "CM", (level,)), least_horizon=LATE,
             least_runs=6, windows=20)
        for level, part in zip(LEVELS, (GOOD, FAIR, BAD), strict=True)
    )  # fmt: skip
    what = "the logarithm (base 10) of the session until which BubbleRank's regret is the lower"
    against: dict[str, Range] = dict.fromkeys(map(short, BUBBLE), (2.5, 3.5))
    slow: dict[str, Range] = dict.fromkeys(map(short, BUBBLE), (3.3, 4.5))
    fast: dict[str, Range] = dict.fromkeys(map(short, BUBBLE), (1.5, 3.0))
    statements = (
        hypothesis(
            "Against TopRank early ends between session 300 and 3,000: by then TopRank's blocks are in order",
            what, against, partial(_crossings, TOP_RANK),
        ),
        hypothesis(
            "Against BatchRank it ends between 2,000 and 30,000, after the second stage",
            what, slow, partial(_crossings, "BatchRank"),
        ),
        hypothesis(
            "Against CascadeKL-UCB (last_click), which sorts from the first session, between 30 and 1,000",
            what, fast, partial(_crossings, LAST),
        ),
        hypothesis(
            "Better production lists keep BubbleRank ahead for longer: in the CM 3 to 30 times as long with 4 wrong pairs as "
            "with 16",
            "the difference of the logarithms", (0.5, 1.5), _later,
        ),
        hypothesis(
            "After 5,000 sessions it is ahead of TopRank on a few queries only",
            "their number of 16", {"CM": (1, 6), "DCM": (1, 6), "PBM": (1, 8)}, _ahead,
        ),
        hypothesis(
            "Which ones, |V_0| says",
            "the rank correlation over queries of |V_0| and BubbleRank's regret over TopRank's", (0.4, 0.9), _by_pairs,
        ),
        hypothesis(
            "At a hundredth of the paper's horizon BubbleRank's regret is above TopRank's in the CM even on good lists",
            "the ratio", {"|V_0| = 4": (1.0, 8.0), "|V_0| = 10": (2.0, 16.0), "|V_0| = 16": (4.0, 32.0)}, _ratios,
        ),
        Statement(
            "Nothing is left: at a hundredth of the paper's horizon BubbleRank has less regret than TopRank and BatchRank",
            "both ratios are below 1 in each click model, with the queries' own lists", _left,
            paper="2 to 10 times TopRank's, 0.5 to 3 times BatchRank's",
        ),
    )  # fmt: skip
    return Study(
        "Until when, against whom and on which queries BubbleRank has the lowest regret",
        "on Li et al. 2019 (BubbleRank), figure 1",
        (own, queries, *lists),
        statements,
        "Hypotheses of ours, written before the run. BubbleRank and TopRank have the δ of the paper's horizon; BatchRank's "
        "stages are those of the horizon played, a quarter shorter. The paper does not say which sessions are early.",
        _draw,
    )


def _draw(evidence: Evidence) -> Figure:
    figure, panels = grid(2, 2)
    curves = evidence[OWN]
    late = curves.steps >= 10
    for axes, env in zip(panels, BUBBLE, strict=False):
        for agent in (BUBBLE_RANK, *RIVALS):
            band(axes, curves.steps[late], curves.units(env, agent)[:, late], agent.partition(":")[0], LOOKS[agent])
    band(panels[3], curves.steps[late], curves.units(BUBBLE_CM, TOP_RANK)[:, late], "TopRank", LOOKS[TOP_RANK])
    for level, part in zip(LEVELS, (GOOD, FAIR, BAD), strict=True):
        one = evidence[part]
        values = one.units(BUBBLE_CM, BUBBLE_RANK)[:, late]
        band(panels[3], one.steps[late], values, "BubbleRank", LOOKS[BUBBLE_RANK])
        end = (float(one.steps[-1]), float(values[:, -1].mean()))
        panels[3].annotate(f"{level}", end, (3, 0), va="center", textcoords="offset points", fontsize=8)
    for axes, title in zip(panels, [*map(short, BUBBLE), "CM, lists of 4, 10 and 16 wrong pairs"], strict=True):
        axes.set(xscale="log", yscale="log", xlabel="session", ylabel="cumulative regret")
        axes.set_title(title, fontsize=10)
        axes.axvline(LATE, color="black", linewidth=0.8, linestyle=":")
    return finish(figure, panels[:1], evidence, f"Regret of the first five positions, early (dotted: session {LATE:,})")


STUDIES: dict[str, Study] = {"why-early-regret": _study()}
