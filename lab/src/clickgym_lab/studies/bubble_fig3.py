"""Regret of BubbleRank against wrong pairs in the initial list, and against examination of the last
position.

Li et al. 2019 (BubbleRank), figure 3.

Ten random initial lists for each query, one run each; the second experiment is never scaled. There
the loss per session at the start is 0.4 (0.9 - 0.5^i): with a time to learn that doubles the regret
grows 3.25, 2.38, 2.16 and 2.08 times, so that at i = 1 only one of the last two statements can
hold. The bounds are ours. The reward of the DCM is the satisfied user (abandonment click), as in
the paper. Where its termination probabilities do not decrease, the optimum is not the list sorted
by attraction, which all of these agents learn: regret then stays linear.
`clickgym_lab.assumptions.check_assumptions` names the assumption of the paper that fails.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from clickgym.envs import Instance, load_instance
from clickgym.runner.play.metrics import wrong_pairs

from .claims import (
    Claim,
    Curves,
    Estimate,
    Finding,
    Results,
    Values,
    all_of,
    certain,
    estimate,
    several,
    short,
)
from .plots import BLACK, BLUE, GREEN, ORANGE, PURPLE, YELLOW, Figure, band, finish, grid
from .re_ranking import ENVS
from .study import Sweep

PAIRS = "bubble-fig3-pairs"
CHI = "bubble-fig3-chi"
N_LISTS = 10
CHI_MIN = tuple(f"li2019-chi-min:i={i}" for i in range(1, 6))


def random_lists(queries: Sequence[str]) -> Iterator[Instance]:
    """Instances that differ from the queries in their production list: ten random lists of each
    query, the same every time.
    """
    for query in queries:
        instance = load_instance(query)
        rng = np.random.default_rng(list(instance.name.encode()))
        for number in range(N_LISTS):
            name = f"{instance.name}-list{number}"
            yield replace(instance, name=name, initial_ranking=rng.permutation(instance.n_items))


def wrong_in_list(env: Any) -> float:
    """The number of wrongly ordered pairs |V_0| of the production list."""
    return float(wrong_pairs(env.unwrapped.model.attraction, env.unwrapped.initial_ranking))


SWEEPS = [
    Sweep(
        PAIRS,
        ENVS,
        ["BubbleRank"],
        horizon=5_000_000,
        runs=1,
        instances=random_lists,
        queries=100,
        facts={"wrong_pairs": wrong_in_list},
    ),
    Sweep(
        CHI,
        ["PBMRank-v0"],
        ["BubbleRank"],
        horizon=1_000_000,
        runs=10,
        instances=CHI_MIN,
        whole=True,
        scaled=False,
    ),
]
"""Ten random initial lists of each query; then users whose last position is examined with 0.5^i.
Learning the last pair takes 10⁵ sessions at i = 5, whatever the scale.
"""


def claims(results: Results) -> Iterator[Claim]:
    """What the paper says of its figure 3.

    A test asks whether the mean of independent values lies between two bounds: yes if its 95 %
    interval (Student's t) lies between them, no if it lies outside, else it cannot tell; all
    statements are judged together by Holm's procedure. `several` asks that all tests hold; one that
    surely does not contradicts the statement.

    The slope is tested with the residuals of the lists, as many degrees of freedom as lists less
    queries less one; that a parabola fits hardly better is no test of chance (`certain`). The
    ratios of the second experiment are over the runs. A run shorter than the paper's cannot
    contradict a statement marked `late`.
    """
    yield Claim(
        "The regret is linear in |V_0| in the CM, DCM and PBM",
        "in a regression within queries, the slope is above 0 and a quadratic term explains less "
        "than 0.05 more of the variance",
        several({short(env): linear_in_pairs(results[PAIRS], env) for env in ENVS}),
        late=True,
    )
    yield Claim(
        "The regret doubles when i grows by one (examination 0.5^i of the last position)",
        "each ratio is between 1.6 and 2.4",
        doubles(results[CHI], per_loss=False),
        paper="doubles",
    )
    yield Claim(
        "The time to learn doubles as well: regret divided by the loss per session at the start, "
        "which itself grows with i",
        "each ratio of regret / (0.9 - 0.5^i) is between 1.6 and 2.4",
        doubles(results[CHI], per_loss=True),
    )


def regression(curves: Curves, env: str) -> tuple[Values, Values, Estimate, Values]:
    """Regret at the end on |V_0|, both less the mean of their query.

    Returns:
        |V_0| and regret of each list, the slope, and the shares of the variance within queries
        that a line and a parabola explain.
    """
    wrong = curves.by_instance(env, "BubbleRank", "wrong_pairs")[:, 0]
    regret = curves.by_instance(env, "BubbleRank").mean(axis=1)
    query = np.array([name.rpartition("-list")[0] for name in curves.instances])

    def within(values: Values) -> Values:
        return values - np.array([values[query == name].mean() for name in query])

    x, y = within(wrong), within(regret)
    slope = float(x @ y / (x @ x))
    freedom = len(y) - len(set(query)) - 1
    residual = y - slope * x
    error = math.sqrt(residual @ residual / freedom / (x @ x))
    design = np.stack([x, within(wrong**2)], axis=1)
    bent = y - design @ np.linalg.lstsq(design, y)[0]
    explained = 1 - np.array([residual @ residual, bent @ bent]) / (y @ y)
    return wrong, regret, Estimate(slope, error, freedom), explained


def linear_in_pairs(curves: Curves, env: str) -> Finding:
    """Whether regret grows with the wrong pairs, and a parabola fits hardly better than a line."""
    _, _, slope, (line, parabola) = regression(curves, env)
    words = f"{slope} per pair, R² {line:.2f}, with a square {parabola:.2f}"
    return all_of(words, [slope.above(0.0), certain("", parabola - line < 0.05)])


def doubles(curves: Curves, per_loss: bool) -> Finding:
    """Whether each ratio of neighbouring i is about 2: of the regret, or of the sessions that it
    is worth at the loss at the start.
    """
    losses = [0.9 - 0.5**i if per_loss else 1.0 for i in range(1, 6)]
    regrets = [curves.by_run("PBMRank-v0", "BubbleRank", instance=name)[:, -1] for name in CHI_MIN]
    scaled = [estimate(regret / loss) for regret, loss in zip(regrets, losses, strict=True)]
    findings = {}
    for i, (low, high) in enumerate(pairwise(scaled), start=1):
        ratio = high.mean / low.mean
        error = ratio * math.hypot(high.error / high.mean, low.error / low.mean)
        findings[f"i = {i} to {i + 1}"] = Estimate(ratio, error, low.freedom).within(1.6, 2.4)
    return several(findings)


def draw(results: Results) -> Figure:
    """Regret against wrong pairs, and with each examination of the last position."""
    curves = results[PAIRS]
    figure, panels = grid(2, 2, labels=[f"regret after {curves.horizon:,} sessions"])
    for axes, env in zip(panels, ENVS, strict=False):
        wrong, regret, slope, _ = regression(curves, env)
        axes.plot(wrong, regret, ".", color=PURPLE, markersize=4, alpha=0.6)
        ends = np.array([wrong.min(), wrong.max()])
        line = regret.mean() + slope.mean * (ends - wrong.mean())
        axes.plot(ends, line, color=BLACK, linewidth=1.2)
        axes.set(title=short(env), xlabel="wrong pairs in the initial list, |V_0|")
    curves = results[CHI]
    for instance, color in zip(CHI_MIN, (PURPLE, ORANGE, GREEN, YELLOW, BLUE), strict=True):
        values = curves.by_run("PBMRank-v0", "BubbleRank", instance=instance)
        style = {"color": color, "linestyle": "-"}
        band(panels[3], curves.steps, values, instance.rpartition(":")[2], style)
    panels[3].set(title="PBM, examination 0.5^i at the end", xlabel="session", ylabel="regret")
    panels[3].ticklabel_format(axis="x", style="sci", scilimits=(0, 0), useMathText=True)
    return finish(figure, panels[3:], results, "Regret of BubbleRank")
