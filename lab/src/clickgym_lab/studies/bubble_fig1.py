"""Regret of re-ranking a production list.

Li et al. 2019 (BubbleRank), figure 1.

The paper draws 100 frequent queries of the Yandex log. We have 60 published queries and 16 shipped
ones. The published ones have 5 million sessions and ten runs, as in the paper. The shipped ones
have 1.5 million sessions. The paper's production list is the most frequent list of a query. For a
published query we have one logged page, and take its list.

The reward in the DCM is the abandonment click, as in the paper. The paper prints the examination as
a product of (1 - v(i)) α, which is a misprint. Ours is the model of Guo et al. 2009. The paper
calls the list sorted by attraction optimal. In the DCM it is not always the best list. So we test
whether an agent learns by its regret against the sorted list, R*.

The paper does not say what CascadeKL-UCB learns from several clicks. We test it in both readings.

BatchRank runs as Zoghi et al. print it, with one mended line. The line matters here, because there
are as many items as positions: the printed line 16 would then never start a second stage. The code
that its authors published has other constants. The paper does not say which version it ran.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .claims import (
    END,
    LINEAR,
    SLACK,
    Finding,
    Results,
    Statement,
    Values,
    estimate,
    in_readings,
    less,
    linear,
    several,
    short,
)
from .plots import Figure
from .re_ranking import (
    AGENTS,
    CM,
    DCM,
    PBM,
    RE_RANKING,
    START,
    draw_curves,
    in_each,
    start,
)

SWEEPS = [RE_RANKING, START]
"""`RE_RANKING`: BubbleRank, CascadeKL-UCB in both readings of several clicks, BatchRank, TopRank
and the production list (Fixed) in the CM, the DCM and the PBM, ten positions of which five count; 5
million sessions, ten runs, up to 100 queries (16 ship). `START`: the first 10,000 sessions.
"""
LEARNS = (
    f"Regret per session against R* in the last hundredth of the sessions is below {LINEAR} times "
    "(ours) that of all sessions. We test this in the {}."
)


def against_sorted(results: Results, env: str, agent: str, first: float, last: float) -> Values:
    """``(queries,)`` regret per session against the list sorted by attraction."""
    curves = results[RE_RANKING.name]
    gap = curves.by_instance(env, agent, "sorted_gap")[:, 0]
    return curves.rate(env, agent, first, last) - gap


def learns(results: Results, env: str, agent: str) -> Finding:
    """Whether regret per session against R* falls: the gap is that to `LINEAR` times the mean."""
    late, mean = (against_sorted(results, env, agent, *span) for span in (END, (0.0, 1.0)))
    words = f"{estimate(late)} per session in the end, {estimate(mean)} in the mean"
    return estimate(late - LINEAR * mean).below(SLACK, words)


def not_optimal(results: Results, env: str) -> Finding:
    """Whether the production list has regret."""
    return estimate(results[RE_RANKING.name].rate(env, "Fixed", 0.0, 1.0)).above(SLACK)


def more(results: Results, env: str, worse: str, better: str) -> Finding:
    """Whether one agent has more regret at the end than another."""
    curves = results[RE_RANKING.name]
    return less(curves.values(env, better), curves.values(env, worse))


def slowest(results: Results) -> Finding:
    """Whether BubbleRank has more regret at the end than all others that learn."""
    others = {
        agent: in_each(lambda env, agent=agent: more(results, env, "BubbleRank", agent))  # type: ignore[misc]
        for agent in ("BatchRank", "TopRank")
    }
    cascade = in_readings(
        lambda agent: in_each(lambda env: more(results, env, "BubbleRank", agent), (CM, DCM))
    )
    return several({"CascadeKL-UCB": cascade, **others})


def earlier(results: Results, env: str) -> Finding:
    """Whether BubbleRank has less regret in the first 100 sessions than both others."""
    ours = start(results, env, "BubbleRank", "regret")
    rivals = [start(results, env, agent, "regret") for agent in ("BatchRank", "TopRank")]
    return less(ours, np.minimum(*rivals))


STATEMENTS = [
    Statement(
        "We observe that the regret of Baseline grows linearly with time n, which means that it is "
        "not optimal on average.",
        "section 5.2",
        "The production list has regret in each click model. Its regret per session is constant.",
        lambda results: in_each(lambda env: not_optimal(results, env)),
    ),
    Statement(
        "CascadeKL-UCB learns R* quickly in both the CM and DCM",
        "section 5.2",
        LEARNS.format("CM and the DCM"),
        lambda results: in_readings(
            lambda agent: in_each(lambda env: learns(results, env, agent), (CM, DCM))
        ),
        late=True,
    ),
    Statement(
        "but has linear regret in the PBM.",
        "section 5.2",
        f"CascadeKL-UCB in the PBM: regret per session in the last hundredth of the sessions is "
        f"above {LINEAR} times (ours) that of all sessions.",
        lambda results: in_readings(lambda agent: linear(results[RE_RANKING.name], PBM, agent)),
        late=True,
    ),
    *(
        Statement(
            "BubbleRank, BatchRank, and TopRank can learn in all three click models.",
            "section 5.2",
            f"{agent}. " + LEARNS.format("CM, the DCM and the PBM"),
            lambda results, agent=agent: in_each(  # type: ignore[misc]
                lambda env: learns(results, env, agent)
            ),
            late=True,
            is_other_version=agent == "BatchRank",
        )
        for agent in ("BubbleRank", "BatchRank", "TopRank")
    ),
    *(
        Statement(
            "Compared to BatchRank and TopRank, BubbleRank has a higher regret in 5 million steps.",
            "section 5.2",
            f"BubbleRank has more regret at the end than {agent}, in each click model.",
            lambda results, agent=agent: in_each(  # type: ignore[misc]
                lambda env: more(results, env, "BubbleRank", agent)
            ),
            late=True,
            is_other_version=agent == "BatchRank",
        )
        for agent in ("BatchRank", "TopRank")
    ),
    Statement(
        "However, in earlier steps, BubbleRank has a lower regret than BatchRank and TopRank",
        "section 5.2",
        "BubbleRank has less regret in the first 100 sessions (ours) than the better of the two. "
        "We take the better one of each query, and test each click model.",
        lambda results: in_each(lambda env: earlier(results, env)),
        is_other_version=True,
    ),
    Statement(
        "In the previous experiment, we show that BubbleRank does not learn as fast as "
        "CascadeKL-UCB, BatchRank, and TopRank because it operates under the additional safety "
        "constraint",
        "section 5.3",
        "BubbleRank has more regret at the end than CascadeKL-UCB in the CM and the DCM. It has "
        "more than BatchRank and TopRank in each click model.",
        slowest,
        late=True,
        is_other_version=True,
    ),
]


def seen(results: Results) -> Iterator[str]:
    """When the others overtake BubbleRank."""
    curves = results[RE_RANKING.name]
    for env in (CM, DCM, PBM):
        ours = curves.by_run(env, "BubbleRank").mean(axis=0)
        for agent in ("BatchRank", "TopRank"):
            behind = curves.by_run(env, agent).mean(axis=0) >= ours
            place = len(behind) - int(np.argmax(behind[::-1])) if behind.any() else 0
            has = (
                f"has less mean regret than BubbleRank from session {curves.steps[place]:,} on"
                if place < len(behind)
                else "never has less mean regret than BubbleRank for good"
            )
            end = curves.by_run(env, agent)[:, -1].mean()
            yield (
                f"{short(env)}: {agent} {has}. It ends with {end:,.0f}, and BubbleRank with "
                f"{ours[-1]:,.0f}."
            )


def draw(results: Results) -> Figure:
    """Cumulative regret in each click model."""
    return draw_curves(results, "regret", AGENTS, "Regret of the first five positions")
