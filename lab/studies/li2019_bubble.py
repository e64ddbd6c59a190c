"""Li et al. 2019, BubbleRank: figures 1 to 4."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.files import make_folder
from ...core.statistics import t_quantile
from ...envs import load_instance
from ...runner.metrics import wrong_pairs
from .plots import BLACK, BLUE, GREEN, ORANGE, PURPLE, YELLOW, band, finish, grid
from .study import (
    FIRST,
    LAST,
    LEARNS_RULE,
    LINEAR_RULE,
    PBM,
    READINGS,
    SLACK,
    Curves,
    Estimate,
    Evidence,
    Finding,
    Part,
    Statement,
    Study,
    Values,
    Verdict,
    estimate,
    every,
    in_all,
    less,
    linear,
    saved,
    several,
    short,
    sublinear,
    total,
    versus,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["STUDIES"]

TOP5 = "n_positions=10,cutoff=5"
BUBBLE = tuple(f"{name}Rank-v0:{TOP5}" for name in ("CM", "DCM", "PBM"))
# Abandonment clicks, as the paper has it.
BUBBLE = (BUBBLE[0], f"{BUBBLE[1]},reward=satisfaction", BUBBLE[2])
BUBBLE_CM, BUBBLE_DCM, BUBBLE_PBM = BUBBLE
BUBBLE_AGENTS = ("BubbleRank", LAST, FIRST, "BatchRank", "TopRank", "Fixed")
VIOLATIONS = {  # in the first 100 sessions, in the CM, DCM and PBM, in the paper
    LAST: (24.12, 23.33, 23.63),
    "BatchRank": (83.01, 71.89, 59.63),
    "TopRank": (83.56, 71.47, 57.00),
}
BUBBLE_PART = Part("bubble", BUBBLE, BUBBLE_AGENTS, 5 * 10**6, 10, 100, metrics=("violations", "ndcg"))
BUBBLE_NOTE = (
    "The reward of the DCM is the satisfied user (abandonment click), as in the paper. Where its termination probabilities do "
    "not decrease, the optimum is not the list sorted by attraction, which all of these agents learn: regret then stays linear."
)


def _at_step(step: int | None, better: Sequence[str], worse: Sequence[str], evidence: Evidence) -> Finding:
    """Whether some agents have less regret than others in every click model; None is a hundredth of the horizon."""
    curves = evidence["bubble"]
    fraction = 0.01 if step is None else step / curves.horizon
    findings = {}
    for env in BUBBLE:
        for low in better:
            for high in worse:
                name = f"{short(env)}, {low if len(better) > 1 else high}"
                findings[name] = less(curves, env, low, high, total(curves, fraction))
    return several(findings)


def _not_optimal(evidence: Evidence) -> Finding:
    findings = {}
    for env in BUBBLE:
        rate = estimate(evidence["bubble"].rate(evidence["bubble"].units(env, "Fixed"), 0.0, 1.0))
        findings[short(env)] = Finding(f"{rate} per session", rate.above(SLACK))
    return several(findings)


def _bubble_fig1() -> Study:
    learners = ("BubbleRank", "BatchRank", "TopRank")
    statements = [
        Statement(
            "The regret of the production list (Baseline) grows linearly",
            "its regret per session, which is constant, is above 0 on average",
            _not_optimal,
        ),
        Statement(
            "CascadeKL-UCB (last_click) learns in the CM and DCM",
            LEARNS_RULE,
            partial(in_all, sublinear, "bubble", BUBBLE[:2], (LAST,)),
            late=True,
        ),
        Statement(
            "CascadeKL-UCB (first_click) learns in the DCM",
            LEARNS_RULE,
            partial(in_all, sublinear, "bubble", (BUBBLE_DCM,), (FIRST,)),
            late=True,
        ),
        *(
            Statement(
                f"CascadeKL-UCB ({reading}) has linear regret in the PBM",
                LINEAR_RULE,
                partial(in_all, linear, "bubble", (BUBBLE_PBM,), (agent,)),
                late=True,
            )
            for agent, reading in READINGS.items()
        ),
        *(
            Statement(
                f"{agent} learns in all three click models",
                LEARNS_RULE,
                partial(in_all, sublinear, "bubble", BUBBLE, (agent,)),
                late=True,
            )
            for agent in learners
        ),
        *(
            Statement(
                f"BubbleRank has less regret than BatchRank and TopRank in earlier steps ({when})",
                "less cumulative regret by then, in each click model",
                partial(_at_step, step, ["BubbleRank"], learners[1:]),
            )
            for when, step in (("the first 100", 100), ("a hundredth of the horizon", None))
        ),
        Statement(
            "BubbleRank has more regret than BatchRank and TopRank at the end",
            "more cumulative regret at the horizon, in each click model",
            lambda evidence: _at_step(evidence["bubble"].horizon, learners[1:], ["BubbleRank"], evidence),
            late=True,
        ),
    ]
    return Study(
        "Regret of re-ranking a production list", "Li et al. 2019 (BubbleRank), figure 1", (BUBBLE_PART,), tuple(statements),
        BUBBLE_NOTE, _draw_fig1,
    )  # fmt: skip


def _published(agent: str) -> str:
    """Violations in the first 100 sessions in the CM, DCM and PBM, in the paper."""
    return " / ".join(f"{count:g}" for count in VIOLATIONS[agent])


def _first_100(curves: Curves, env: str, agent: str) -> Values:
    return curves.at(curves.units(env, agent, "violations"), 100)


def _as_many(agent: str, evidence: Evidence) -> Finding:
    findings = {}
    for env, published in zip(BUBBLE, VIOLATIONS[agent.partition(":")[0]], strict=True):
        ours = estimate(_first_100(evidence["bubble"], env, agent))
        findings[short(env)] = Finding(f"{ours} (paper {published:g})", ours.within(0.75 * published, 1.25 * published))
    return several(findings)


def _unsafe(agent: str, evidence: Evidence) -> Finding:
    findings = {}
    for env in BUBBLE:
        ours = estimate(_first_100(evidence["bubble"], env, agent))
        findings[short(env)] = Finding(str(ours), ours.above(20.0))
    return several(findings)


def _less_safe(agent: str, evidence: Evidence) -> Finding:
    curves = evidence["bubble"]
    findings = {}
    for env in BUBBLE:
        findings[short(env)] = versus(_first_100(curves, env, LAST), _first_100(curves, env, agent))
    return several(findings)


def _alike(evidence: Evidence) -> Finding:
    curves = evidence["bubble"]
    findings = {}
    for env in BUBBLE:
        gap = estimate(_first_100(curves, env, "TopRank") - _first_100(curves, env, "BatchRank"))
        findings[short(env)] = Finding(str(gap), gap.within(-10.0, 10.0))
    return several(findings)


def _safe(evidence: Evidence) -> Finding:
    curves = evidence["bubble"]
    counts = [curves.ends(env, "BubbleRank", "violations") for env in BUBBLE]
    violated = sum(int((count > 0).sum()) for count in counts)
    n_runs = sum(count.size for count in counts)
    return Finding(f"{violated} of {n_runs} runs of {curves.horizon:,} sessions", "no" if violated else "yes")


def _bubble_fig2() -> Study:
    statements = [
        Statement("BubbleRank never violates its safety constraint", "no violation in any run", _safe, paper="0"),
        *(
            Statement(
                f"CascadeKL-UCB ({reading}) shows unsafe lists in more than 20 of the first 100 sessions",
                "above 20 in each click model",
                partial(_unsafe, agent),
                paper=_published(LAST),
            )
            for agent, reading in READINGS.items()
        ),
        *(
            Statement(
                f"{agent} violates it more often than CascadeKL-UCB in the first 100 sessions",
                "more violations, in each click model",
                partial(_less_safe, agent),
                paper=f"{_published(agent)} against {_published(LAST)}",
            )
            for agent in ("BatchRank", "TopRank")
        ),
        Statement(
            "TopRank is close to BatchRank in the first 100 sessions",
            "within 10 violations, in each click model",
            _alike,
            paper=f"{_published('TopRank')} against {_published('BatchRank')}",
        ),
        *(
            Statement(
                f"The violations of CascadeKL-UCB ({reading}) grow linearly in the PBM",
                LINEAR_RULE.replace("regret", "violations"),
                partial(in_all, partial(linear, column="violations"), "bubble", (BUBBLE_PBM,), (agent,)),
                late=True,
            )
            for agent, reading in READINGS.items()
        ),
        *(
            Statement(
                f"Violations of {agent} in the first 100 sessions, in figures",
                "within a quarter of the paper's in each click model (other queries, so no more can be asked)",
                partial(_as_many, agent),
                paper=_published(agent),
            )
            for agent in VIOLATIONS
        ),
    ]
    return Study(
        "Violations of the safety constraint", "Li et al. 2019 (BubbleRank), figure 2", (BUBBLE_PART,), tuple(statements),
        "The same runs as bubble-fig1. " + BUBBLE_NOTE, _draw_fig2, columns=("violations",),
    )  # fmt: skip


N_LISTS = 10


def random_lists(queries: Sequence[str], folder: Path) -> list[str]:
    """Instance files that differ from the queries in their production list: ten random ones each, the same every time.

    Args:
        queries: names or files of instances.
        folder: where the files go; made if need be.

    Returns:
        The files.
    """
    make_folder(folder)
    files = []
    for query in queries:
        instance = load_instance(query)
        rng = np.random.default_rng(list(instance.name.encode()))
        for number in range(N_LISTS):
            name = f"{instance.name}-list{number}"
            files.append(saved(replace(instance, name=name, initial_ranking=rng.permutation(instance.n_items)), folder))
    return files


WRONG_PAIRS = "wrong_pairs"


def wrong_in_list(env: Any) -> float:
    """The number of wrongly ordered pairs |V_0| of the production list."""
    return float(wrong_pairs(env.unwrapped.model.attraction, env.unwrapped.initial_ranking))


def regression(curves: Curves, env: str) -> tuple[Values, Values, Estimate, Values]:
    """Regret at the end on |V_0|, both less the mean of their query.

    Returns:
        ``|V_0|`` and regret of each list, the slope, and the shares of the variance within queries that a line and a
        parabola explain.
    """
    wrong = curves.ends(env, "BubbleRank", WRONG_PAIRS)[:, 0]
    regret = curves.ends(env, "BubbleRank").mean(axis=1)
    query = np.array([name.rpartition("-list")[0] for name in curves.instances])

    def within(values: Values) -> Values:
        return values - np.array([values[query == name].mean() for name in query])

    x, y = within(wrong), within(regret)
    slope = float(x @ y / (x @ x))
    free = len(y) - len(set(query)) - 1
    residual = y - slope * x
    half = t_quantile(free) * math.sqrt(residual @ residual / free / (x @ x))
    design = np.stack([x, within(wrong**2)], axis=1)
    bent = y - design @ np.linalg.lstsq(design, y)[0]
    return wrong, regret, Estimate(slope, half), 1 - np.array([residual @ residual, bent @ bent]) / (y @ y)


def _linear_in_pairs(evidence: Evidence) -> Finding:
    findings = {}
    for env in BUBBLE:
        _, _, slope, (line, parabola) = regression(evidence["bubble-fig3-pairs"], env)
        straight: Verdict = "yes" if parabola - line < 0.05 else "no"
        findings[short(env)] = Finding(
            f"{slope} per pair, R² {line:.2f}, with a square {parabola:.2f}", every([slope.above(0.0), straight])
        )
    return several(findings)


CHI_MIN = tuple(f"li2019-chi-min:i={i}" for i in range(1, 6))


def _doubles(per_loss: bool, evidence: Evidence) -> Finding:
    """Whether each ratio of neighbouring i is about 2: of the regret, or of the sessions it is worth at the initial loss."""
    curves = evidence["bubble-fig3-chi"]
    regret = [curves.units(PBM, "BubbleRank", instance=name)[:, -1] for name in CHI_MIN]
    scaled = [estimate(values / (0.9 - 0.5**i if per_loss else 1.0)) for i, values in enumerate(regret, start=1)]
    findings = {}
    for i, (low, high) in enumerate(pairwise(scaled), start=1):
        ratio = high.mean / low.mean
        result = Estimate(ratio, ratio * math.hypot(high.half / high.mean, low.half / low.mean))
        findings[f"i = {i} to {i + 1}"] = Finding(str(result), result.within(1.6, 2.4))
    return several(findings)


def _bubble_fig3() -> Study:
    return Study(
        "Regret of BubbleRank against wrong pairs in the initial list, and against examination of the last position",
        "Li et al. 2019 (BubbleRank), figure 3",
        (
            Part("bubble-fig3-pairs", BUBBLE, ("BubbleRank",), 5 * 10**6, 1, 100, files=random_lists,
                 facts={WRONG_PAIRS: wrong_in_list}),
            # Learning the last pair takes 10^5 sessions at i = 5, whatever the scale.
            Part("bubble-fig3-chi", ("PBMRank-v0",), ("BubbleRank",), 10**6, 10, 1,
                 lambda queries: list(CHI_MIN), least_horizon=10**6, least_runs=10, each=True),
        ),
        (
            Statement(
                "The regret is linear in |V_0| in the CM, DCM and PBM",
                "regressed within queries, the slope is above 0 and a square explains less than a further 0.05 of the variance",
                _linear_in_pairs,
                late=True,
            ),
            Statement(
                "The regret doubles when i grows by one (examination 0.5^i of the last position)",
                "each ratio is between 1.6 and 2.4",
                partial(_doubles, False),
                paper="doubles",
            ),
            Statement(
                "So does the time to learn: the regret over the loss per session at the start, which grows with i itself",
                "each ratio of regret / (0.9 - 0.5^i) is between 1.6 and 2.4",
                partial(_doubles, True),
            ),
        ),
        "Ten random initial lists for each query, one run each; the second experiment is never scaled. There the loss per "
        "session at the start is 0.4 (0.9 - 0.5^i): with a time to learn that doubles the regret grows 3.25, 2.38, 2.16 and "
        "2.08 times. "
        + BUBBLE_NOTE,
        _draw_fig3,
    )  # fmt: skip


def _ndcg(curves: Curves, env: str, agent: str, start: float, stop: float) -> Values:
    return curves.rate(curves.units(env, agent, "ndcg"), start / curves.horizon, stop / curves.horizon)


def _perfect(agent: str, evidence: Evidence) -> Finding:
    curves = evidence["bubble"]
    findings = {}
    for env in BUBBLE:
        value = estimate(_ndcg(curves, env, agent, 0.99 * curves.horizon, curves.horizon))
        findings[short(env)] = Finding(str(value), value.above(0.99))
    return several(findings)


def _ndcg_gap(agent: str, other: str, end: bool, low: float, high: float, evidence: Evidence) -> Finding:
    """Whether the difference in NDCG of two agents, in the first hundred sessions or at the end, is between two bounds."""
    curves = evidence["bubble"]
    start, stop = (0.99 * curves.horizon, float(curves.horizon)) if end else (0.0, 100.0)
    findings = {}
    for env in BUBBLE:
        gap = estimate(_ndcg(curves, env, agent, start, stop) - _ndcg(curves, env, other, start, stop))
        findings[short(env)] = Finding(str(gap), gap.within(low, high))
    return several(findings)


def _never_worse(evidence: Evidence) -> Finding:
    curves = evidence["bubble"]
    findings = {}
    for env in BUBBLE:
        ours, theirs = (curves.units(env, agent, "ndcg") for agent in ("BubbleRank", "Fixed"))
        gaps = curves.window_rates(ours) - curves.window_rates(theirs)
        worst = estimate(gaps[:, gaps.mean(axis=0).argmin()])
        findings[short(env)] = Finding(f"{worst} at worst", worst.above(-0.05))
    return several(findings)


def _bubble_fig4() -> Study:
    others = ("BatchRank", "TopRank")
    statements = [
        *(
            Statement(
                f"The NDCG@5 of {agent} approaches 1",
                "above 0.99 at the end, in each click model",
                partial(_perfect, agent),
                late=True,
                paper="approaches 1",
            )
            for agent in ("BubbleRank", *others)
        ),
        *(
            Statement(
                f"BubbleRank and {agent} are similar at the end",
                "within 0.02, in each click model",
                partial(_ndcg_gap, agent, "BubbleRank", True, -0.02, 0.02),
                late=True,
            )
            for agent in others
        ),
        Statement(
            "BubbleRank starts near the production list",
            "within 0.05 in the first 100 sessions, in each click model",
            partial(_ndcg_gap, "BubbleRank", "Fixed", False, -0.05, 0.05),
        ),
        *(
            Statement(
                f"{agent} starts far below",
                "more than 0.05 below the production list in the first 100 sessions, in each click model",
                partial(_ndcg_gap, agent, "Fixed", False, -1.0, -0.05),
            )
            for agent in others
        ),
        Statement(
            "BubbleRank is never much worse than the production list",
            "no more than 0.05 below it in any hundredth of the horizon, in each click model",
            _never_worse,
        ),
    ]
    return Study(
        "NDCG@5 of re-ranking a production list", "Li et al. 2019 (BubbleRank), figure 4", (BUBBLE_PART,), tuple(statements),
        "The same runs as bubble-fig1. " + BUBBLE_NOTE, _draw_fig4, columns=("ndcg",),
    )  # fmt: skip


def _draw_fig1(evidence: Evidence) -> Figure:
    return _bubble(evidence, "regret", BUBBLE_AGENTS, "cumulative regret", "Regret of the first five positions")


def _draw_fig2(evidence: Evidence) -> Figure:
    agents = [agent for agent in BUBBLE_AGENTS if agent not in ("BubbleRank", "Fixed")]  # these never violate it
    return _bubble(evidence, "violations", agents, "cumulative violations", "Violations of the safety constraint")


def _bubble(evidence: Evidence, column: str, agents: Sequence[str], label: str, title: str) -> Figure:
    curves = evidence["bubble"]
    figure, panels = grid(3)
    for axes, env in zip(panels, BUBBLE, strict=True):
        late = curves.steps * 5000 >= curves.horizon
        for agent in agents:
            band(axes, curves.steps[late], curves.units(env, agent, column)[:, late], agent)
        axes.set(xscale="log", yscale="log", title=short(env), xlabel="session")
        axes.set_ylim(bottom=max(axes.get_ylim()[0], 0.1))
    panels[0].set_ylabel(label)
    return finish(figure, panels, evidence, title)


def _draw_fig3(evidence: Evidence) -> Figure:
    curves = evidence["bubble-fig3-pairs"]
    figure, panels = grid(4)
    for axes, env in zip(panels, BUBBLE, strict=False):
        wrong, regret, slope, _ = regression(curves, env)
        axes.plot(wrong, regret, ".", color=PURPLE, markersize=4, alpha=0.6)
        ends = np.array([wrong.min(), wrong.max()])
        axes.plot(ends, regret.mean() + slope.mean * (ends - wrong.mean()), color=BLACK, linewidth=1.2)
        axes.set(title=short(env), xlabel="wrong pairs in the initial list, |V_0|")
    panels[0].set_ylabel(f"regret after {curves.horizon:,} sessions")
    curves = evidence["bubble-fig3-chi"]
    shades = (PURPLE, ORANGE, GREEN, YELLOW, BLUE)
    for instance, colour in zip(CHI_MIN, shades, strict=True):
        values = curves.units(PBM, "BubbleRank", instance=instance)
        band(panels[3], curves.steps, values, instance.rpartition(":")[2], (colour, "-"))
    panels[3].set(title="PBM, examination 0.5^i at the end", xlabel="session", ylabel="regret")
    panels[3].ticklabel_format(axis="x", style="sci", scilimits=(0, 0), useMathText=True)
    return finish(figure, panels[3:], evidence, "Regret of BubbleRank")


def _draw_fig4(evidence: Evidence) -> Figure:
    curves = evidence["bubble"]
    figure, panels = grid(3)
    for axes, env in zip(panels, BUBBLE, strict=True):
        places = np.unique(np.searchsorted(curves.steps, np.geomspace(100, curves.horizon, 25).round()))
        for agent in ("BubbleRank", "BatchRank", "TopRank", "Fixed"):
            ends = curves.units(env, agent, "ndcg")[:, places]
            rates = np.diff(ends, prepend=0.0) / np.diff(curves.steps[places], prepend=0)
            band(axes, curves.steps[places], rates, agent)
        axes.set(xscale="log", title=short(env), xlabel="session", ylim=(0.5, 1.01))
    panels[0].set_ylabel("NDCG@5 per session")
    return finish(figure, panels, evidence, "NDCG@5")


STUDIES: dict[str, Study] = {
    "bubble-fig1": _bubble_fig1(),
    "bubble-fig2": _bubble_fig2(),
    "bubble-fig3": _bubble_fig3(),
    "bubble-fig4": _bubble_fig4(),
}
