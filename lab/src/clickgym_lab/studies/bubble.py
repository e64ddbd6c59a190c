"""Li et al. 2019, BubbleRank: figures 1, 2 and 4, regret, safety violations and NDCG of re-ranking
a production list, and figure 3, regret against wrong pairs in the initial list.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from clickgym.envs import Instance, load_instance
from clickgym.runner import wrong_pairs

from .claims import (
    LEARNS_RULE,
    LINEAR_RULE,
    SLACK,
    Claim,
    Curves,
    Estimate,
    Finding,
    Results,
    Values,
    all_of,
    certain,
    estimate,
    less_regret,
    linear,
    several,
    short,
    sublinear,
    versus,
)
from .plots import BLACK, BLUE, GREEN, ORANGE, PURPLE, YELLOW, Figure, band, bands, finish, grid
from .study import Study, Sweep, main

# Abandonment clicks in the DCM, as the paper has it.
ENVS = (
    "CMRank-v0:n_positions=10,cutoff=5",
    "DCMRank-v0:n_positions=10,cutoff=5,reward=satisfaction",
    "PBMRank-v0:n_positions=10,cutoff=5",
)
CM, DCM, PBM = ENVS
LAST, FIRST = "CascadeKLUCB", "CascadeKLUCB:feedback=first_click"
READINGS = {LAST: "last_click", FIRST: "first_click"}
AGENTS = ("BubbleRank", LAST, FIRST, "BatchRank", "TopRank", "Fixed")
NOTE = (
    "The reward of the DCM is the satisfied user (abandonment click), as in the paper. Where its "
    "termination probabilities do not decrease, the optimum is not the list sorted by attraction, "
    "which all of these agents learn: regret then stays linear. "
    "`clickgym_lab.assumptions.check_assumptions` names the assumption of the paper that fails."
)


SWEEPS = [
    Sweep(
        "bubble",
        ENVS,
        AGENTS,
        horizon=5_000_000,
        runs=10,
        queries=100,
        metrics=["violations", "ndcg"],
        windows=100,
    )
]
"""The runs of figures 1, 2 and 4."""


def by_model(find: Callable[[str], Finding], envs: Sequence[str] = ENVS) -> Finding:
    """A finding in each click model, all of which must hold."""
    return several({short(env): find(env) for env in envs})


def _draw_curves(results: Results, column: str, agents: Sequence[str], title: str) -> Figure:
    """A cumulative column in each click model."""
    curves = results["bubble"]
    figure, panels = grid(3, labels=[f"cumulative {column}"])
    for axes, env in zip(panels, ENVS, strict=True):
        bands(axes, curves, env, agents, column, first=curves.horizon / 5000)
        axes.set(xscale="log", yscale="log", title=short(env), xlabel="session")
        axes.set_ylim(bottom=max(axes.get_ylim()[0], 0.1))
    return finish(figure, panels, results, title)


# --------------------------------------------------------------------------------- figure 1: regret


def claims_fig1(results: Results) -> Iterator[Claim]:
    """What the paper says of its figure 1."""
    curves = results["bubble"]

    def less(better: Sequence[str], worse: Sequence[str], step: int = 0) -> Finding:
        names = list(better if len(better) > 1 else worse)
        triples = [(env, a, b) for env in ENVS for a in better for b in worse]
        findings = [less_regret(curves, env, a, b, step) for env, a, b in triples]
        labels = [f"{short(env)}, {name}" for env in ENVS for name in names]
        return several(dict(zip(labels, findings, strict=True)))

    yield Claim(
        "The regret of the production list (Baseline) grows linearly",
        "its regret per session, which is constant, is above 0 on average",
        by_model(partial(not_optimal, curves)),
    )
    yield Claim(
        "CascadeKL-UCB (last_click) learns in the CM and DCM",
        LEARNS_RULE,
        by_model(partial(sublinear, curves, agent=LAST), [CM, DCM]),
        late=True,
    )
    yield Claim(
        "CascadeKL-UCB (first_click) learns in the DCM",
        LEARNS_RULE,
        by_model(partial(sublinear, curves, agent=FIRST), [DCM]),
        late=True,
    )
    for agent, reading in READINGS.items():
        finding = by_model(partial(linear, curves, agent=agent), [PBM])
        text = f"CascadeKL-UCB ({reading}) has linear regret in the PBM"
        yield Claim(text, LINEAR_RULE, finding, late=True)
    for agent in ("BubbleRank", "BatchRank", "TopRank"):
        finding = by_model(partial(sublinear, curves, agent=agent))
        text = f"{agent} learns in all three click models"
        yield Claim(text, LEARNS_RULE, finding, late=True)
    rivals = ["BatchRank", "TopRank"]
    yield Claim(
        "BubbleRank has less regret than BatchRank and TopRank in earlier steps (the first 100)",
        "less cumulative regret by then, in each click model",
        less(["BubbleRank"], rivals, 100),
    )
    yield Claim(
        "BubbleRank has less regret than BatchRank and TopRank in earlier steps (a hundredth of "
        "the horizon)",
        "less cumulative regret by then, in each click model",
        less(["BubbleRank"], rivals, round(0.01 * curves.horizon)),
    )
    yield Claim(
        "BubbleRank has more regret than BatchRank and TopRank at the end",
        "more cumulative regret at the horizon, in each click model",
        less(rivals, ["BubbleRank"]),
        late=True,
    )


def not_optimal(curves: Curves, env: str) -> Finding:
    """Whether the production list has regret."""
    rate = estimate(curves.rate(curves.units(env, "Fixed"), 0.0, 1.0))
    return rate.within(SLACK, math.inf, " per session")


def draw_fig1(results: Results) -> Figure:
    """Cumulative regret in each click model."""
    return _draw_curves(results, "regret", AGENTS, "Regret of the first five positions")


# ----------------------------------------------------------------------------- figure 2: violations

VIOLATIONS = {
    LAST: (24.12, 23.33, 23.63),
    "BatchRank": (83.01, 71.89, 59.63),
    "TopRank": (83.56, 71.47, 57.00),
}
"""In the first 100 sessions in the CM, the DCM and the PBM, in the paper."""
PUBLISHED = {
    agent: " / ".join(f"{count:g}" for count in counts) for agent, counts in VIOLATIONS.items()
}


def claims_fig2(results: Results) -> Iterator[Claim]:
    """What the paper says of its figure 2."""
    curves = results["bubble"]
    yield Claim(
        "BubbleRank never violates its safety constraint",
        "no violation in any run",
        safe(curves),
        paper="0",
    )
    for agent, reading in READINGS.items():
        yield Claim(
            f"CascadeKL-UCB ({reading}) shows unsafe lists in more than 20 of the first 100 "
            "sessions",
            "above 20 in each click model",
            by_model(partial(unsafe, curves, agent=agent)),
            PUBLISHED[LAST],
        )
    for agent in ("BatchRank", "TopRank"):
        yield Claim(
            f"{agent} violates it more often than CascadeKL-UCB in the first 100 sessions",
            "more violations, in each click model",
            by_model(partial(less_safe, curves, agent=agent)),
            f"{PUBLISHED[agent]} against {PUBLISHED[LAST]}",
        )
    yield Claim(
        "TopRank is close to BatchRank in the first 100 sessions",
        "within 10 violations, in each click model",
        by_model(partial(alike, curves)),
        f"{PUBLISHED['TopRank']} against {PUBLISHED['BatchRank']}",
    )
    for agent, reading in READINGS.items():
        yield Claim(
            f"The violations of CascadeKL-UCB ({reading}) grow linearly in the PBM",
            "violations per session in the last fifth is above 0.8 of that in the second fifth",
            by_model(partial(linear, curves, agent=agent, column="violations"), [PBM]),
            late=True,
        )
    for agent, published in PUBLISHED.items():
        yield Claim(
            f"Violations of {agent} in the first 100 sessions, in figures",
            "within a quarter of the paper's in each click model (other queries, so no more can be "
            "asked)",
            by_model(partial(as_many, curves, agent=agent)),
            published,
        )


def first_100(curves: Curves, env: str, agent: str) -> Values:
    """``(runs,)`` violations in the first hundred sessions."""
    return curves.at(curves.units(env, agent, "violations"), 100)


def unsafe(curves: Curves, env: str, agent: str) -> Finding:
    """Whether there are more than twenty violations."""
    return estimate(first_100(curves, env, agent)).above(20.0)


def safe(curves: Curves) -> Finding:
    """Whether BubbleRank has no violation in any run."""
    counts = np.array([curves.ends(env, "BubbleRank", "violations") for env in ENVS])
    violated = int((counts > 0).sum())
    words = f"{violated} of {counts.size} runs of {curves.horizon:,} sessions"
    return certain(words, not violated)


def less_safe(curves: Curves, env: str, agent: str) -> Finding:
    """Whether there are more violations than CascadeKL-UCB's."""
    return versus(first_100(curves, env, LAST), first_100(curves, env, agent))


def alike(curves: Curves, env: str) -> Finding:
    """Whether TopRank and BatchRank are close."""
    ours, theirs = (first_100(curves, env, agent) for agent in ("TopRank", "BatchRank"))
    return estimate(ours - theirs).within(-10.0, 10.0)


def as_many(curves: Curves, env: str, agent: str) -> Finding:
    """Whether there are about as many violations as in the paper."""
    published = VIOLATIONS[agent][ENVS.index(env)]
    ours = estimate(first_100(curves, env, agent))
    return ours.within(0.75 * published, 1.25 * published, f" (paper {published:g})")


def draw_fig2(results: Results) -> Figure:
    """Cumulative violations of the agents that have some."""
    agents = [LAST, FIRST, "BatchRank", "TopRank"]
    return _draw_curves(results, "violations", agents, "Violations of the safety constraint")


# -------------------------------------------------------------------------- figure 3: initial lists

PAIRS, CHI = "bubble-fig3-pairs", "bubble-fig3-chi"
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


SWEEPS_FIG3 = [
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
        least_horizon=1_000_000,
        least_runs=10,
    ),
]
"""Ten random initial lists of each query; then users whose last position is examined with 0.5^i.
Learning the last pair takes 10⁵ sessions at i = 5, whatever the scale.
"""


def claims_fig3(results: Results) -> Iterator[Claim]:
    """What the paper says of its figure 3."""
    yield Claim(
        "The regret is linear in |V_0| in the CM, DCM and PBM",
        "in a regression within queries, the slope is above 0 and a quadratic term explains less "
        "than 0.05 more of the variance",
        by_model(partial(linear_in_pairs, results[PAIRS])),
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
    wrong = curves.ends(env, "BubbleRank", "wrong_pairs")[:, 0]
    regret = curves.ends(env, "BubbleRank").mean(axis=1)
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
    regrets = [curves.units("PBMRank-v0", "BubbleRank", instance=name)[:, -1] for name in CHI_MIN]
    scaled = [estimate(regret / loss) for regret, loss in zip(regrets, losses, strict=True)]
    findings = {}
    for i, (low, high) in enumerate(pairwise(scaled), start=1):
        ratio = high.mean / low.mean
        error = ratio * math.hypot(high.error / high.mean, low.error / low.mean)
        findings[f"i = {i} to {i + 1}"] = Estimate(ratio, error, low.freedom).within(1.6, 2.4)
    return several(findings)


def draw_fig3(results: Results) -> Figure:
    """Regret against wrong pairs, and with each examination of the last position."""
    curves = results[PAIRS]
    figure, panels = grid(4, labels=[f"regret after {curves.horizon:,} sessions"])
    for axes, env in zip(panels, ENVS, strict=False):
        wrong, regret, slope, _ = regression(curves, env)
        axes.plot(wrong, regret, ".", color=PURPLE, markersize=4, alpha=0.6)
        ends = np.array([wrong.min(), wrong.max()])
        line = regret.mean() + slope.mean * (ends - wrong.mean())
        axes.plot(ends, line, color=BLACK, linewidth=1.2)
        axes.set(title=short(env), xlabel="wrong pairs in the initial list, |V_0|")
    curves = results[CHI]
    for instance, color in zip(CHI_MIN, (PURPLE, ORANGE, GREEN, YELLOW, BLUE), strict=True):
        values = curves.units("PBMRank-v0", "BubbleRank", instance=instance)
        style = {"color": color, "linestyle": "-"}
        band(panels[3], curves.steps, values, instance.rpartition(":")[2], style)
    panels[3].set(title="PBM, examination 0.5^i at the end", xlabel="session", ylabel="regret")
    panels[3].ticklabel_format(axis="x", style="sci", scilimits=(0, 0), useMathText=True)
    return finish(figure, panels[3:], results, "Regret of BubbleRank")


# ----------------------------------------------------------------------------------- figure 4: NDCG


def claims_fig4(results: Results) -> Iterator[Claim]:
    """What the paper says of its figure 4."""
    curves = results["bubble"]

    def gap(agent: str, other: str, span: tuple[float, float], low: float, high: float) -> Finding:
        def find(env: str) -> Finding:
            ours, theirs = (ndcg(curves, env, name, *span) for name in (agent, other))
            return estimate(ours - theirs).within(low, high)

        return by_model(find)

    start, end = (0.0, 100 / curves.horizon), (0.99, 1.0)
    for agent in ("BubbleRank", "BatchRank", "TopRank"):
        yield Claim(
            f"The NDCG@5 of {agent} approaches 1",
            "above 0.99 at the end, in each click model",
            by_model(partial(perfect, curves, agent=agent)),
            paper="approaches 1",
            late=True,
        )
    for agent in ("BatchRank", "TopRank"):
        yield Claim(
            f"BubbleRank and {agent} are similar at the end",
            "within 0.02, in each click model",
            gap(agent, "BubbleRank", end, -0.02, 0.02),
            late=True,
        )
    yield Claim(
        "BubbleRank starts near the production list",
        "within 0.05 in the first 100 sessions, in each click model",
        gap("BubbleRank", "Fixed", start, -0.05, 0.05),
    )
    for agent in ("BatchRank", "TopRank"):
        yield Claim(
            f"{agent} starts far below",
            "more than 0.05 below the production list in the first 100 sessions, in each click "
            "model",
            gap(agent, "Fixed", start, -1.0, -0.05),
        )
    yield Claim(
        "BubbleRank is never much worse than the production list",
        "no more than 0.05 below it in any hundredth of the horizon, in each click model",
        by_model(partial(never_worse, curves)),
    )


def ndcg(curves: Curves, env: str, agent: str, start: float, stop: float) -> Values:
    """``(runs,)`` the mean between two fractions of the horizon."""
    return curves.rate(curves.units(env, agent, "ndcg"), start, stop)


def perfect(curves: Curves, env: str, agent: str) -> Finding:
    """Whether the NDCG is about 1 at the end."""
    return estimate(ndcg(curves, env, agent, 0.99, 1.0)).above(0.99)


def never_worse(curves: Curves, env: str) -> Finding:
    """Whether BubbleRank is nowhere far below the production list."""
    ours, theirs = (
        curves.window_rates(curves.units(env, agent, "ndcg")) for agent in ("BubbleRank", "Fixed")
    )
    gaps = ours - theirs
    worst = estimate(gaps[:, gaps.mean(axis=0).argmin()])
    return worst.within(-0.05, math.inf, " at worst")


def draw_fig4(results: Results) -> Figure:
    """NDCG per session in each click model."""
    curves = results["bubble"]
    figure, panels = grid(3, labels=["NDCG@5 per session"])
    ends = np.geomspace(100, curves.horizon, 25).round()
    places = np.unique(np.searchsorted(curves.steps, ends))
    for axes, env in zip(panels, ENVS, strict=True):
        for agent in ("BubbleRank", "BatchRank", "TopRank", "Fixed"):
            rates = curves.window_rates(curves.units(env, agent, "ndcg"), places)
            band(axes, curves.steps[places], rates, agent)
        axes.set(xscale="log", title=short(env), xlabel="session", ylim=(0.5, 1.01))
    return finish(figure, panels, results, "NDCG@5")


PAPER = "Li et al. 2019 (BubbleRank), figure"
FIG1 = Study(
    "bubble-fig1",
    "Regret of re-ranking a production list",
    f"{PAPER} 1",
    NOTE,
    SWEEPS,
    claims_fig1,
    draw_fig1,
)
FIG2 = Study(
    "bubble-fig2",
    "Violations of the safety constraint",
    f"{PAPER} 2",
    f"The same runs as bubble-fig1. {NOTE}",
    SWEEPS,
    claims_fig2,
    draw_fig2,
    columns=("violations",),
)
FIG3 = Study(
    "bubble-fig3",
    "Regret of BubbleRank against wrong pairs in the initial list, and against examination of the "
    "last position",
    f"{PAPER} 3",
    "Ten random initial lists for each query, one run each; the second experiment is never scaled. "
    "There the loss per session at the start is 0.4 (0.9 - 0.5^i): with a time to learn that "
    f"doubles the regret grows 3.25, 2.38, 2.16 and 2.08 times. {NOTE}",
    SWEEPS_FIG3,
    claims_fig3,
    draw_fig3,
)
FIG4 = Study(
    "bubble-fig4",
    "NDCG@5 of re-ranking a production list",
    f"{PAPER} 4",
    f"The same runs as bubble-fig1. {NOTE}",
    SWEEPS,
    claims_fig4,
    draw_fig4,
    columns=("ndcg",),
)

if __name__ == "__main__":
    main(FIG1, FIG2, FIG3, FIG4)
