"""Regret per session and its distribution, many queries.

Zoghi et al. 2017, figures 1 and 2.

A co-author fitted the 60 published queries from the same log. They are probably those of the paper,
which is not proven. The shipped queries are others. Five of ten positions, ten million sessions and
ten runs are the paper's. It does not say what CascadeKL-UCB learns from several clicks. We test it
in both readings.

BatchRank runs as printed, with one mended line: a batch with as many items as positions goes on to
its next stage. Its stages take 16 · 4^l · log T displays, so its curve depends much on the
constants. The code that its authors published has others.

Values of single queries near two million sessions come from runs of their own. On the published
queries these are fewer than ten.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .batch_rank import AGENTS, CM, CONVERGED, FIRST, LAST, PBM, per_session
from .claims import (
    END,
    LINEAR,
    Curves,
    Finding,
    Number,
    Results,
    Statement,
    Values,
    above_share,
    all_of,
    any_of,
    estimate,
    in_readings,
    less,
    several,
    short,
)
from .plots import BOUND, Figure, finish, grid, style_of
from .study import Sweep

MANY, EARLY, EARLY_CM = "zoghi-fig2", "zoghi-fig2-2m", "zoghi-fig2-2m-cm"
ENDS = (0.18, 0.19, 0.2, 0.29, 0.3, 0.4, 0.8, 0.99, 1.0)
AT_2M = (0.95, 1.0)
"""The 100,000 sessions before the two millionth, as fractions of two million."""
SWEEPS = [
    Sweep(
        MANY,
        [CM, PBM],
        AGENTS,
        horizon=10_000_000,
        runs=10,
        queries=60,
        windows=100,
        ends=ENDS,
        least_horizon=100_000,
    ),
    *(
        Sweep(
            name,
            [env],
            agents,
            horizon=2_000_000,
            runs=10,
            queries=60,
            ends=AT_2M,
            told=10_000_000,
        )
        for name, env, agents in (
            (EARLY, PBM, [LAST, FIRST, "BatchRank"]),
            (EARLY_CM, CM, ["BatchRank"]),
        )
    ),
]
"""The CM and the PBM on up to 60 queries (16 ship), at least 100,000 sessions; then the first two
million sessions. `AGENTS` are CascadeKL-UCB in both readings of several clicks, BatchRank and
RankedExp3.
"""


def end(results: Results, env: str, agent: str) -> Values:
    """``(queries,)`` regret per session in the last hundredth of the sessions."""
    return results[MANY].rate(env, agent, *END)


def runs_at_end(curves: Curves, env: str, agent: str) -> Values:
    """``(queries, runs)`` regret per session in the last hundredth of the sessions."""
    first, last = (curves.by_instance(env, agent, fraction=fraction) for fraction in END)
    return (last - first) / (curves.horizon - round(END[0] * curves.horizon))


def share(results: Results, agent: str) -> Values:
    """``(queries,)`` the share of the runs that end with at least the threshold in the PBM."""
    return (runs_at_end(results[MANY], PBM, agent) >= CONVERGED).mean(axis=1)


def early_on(results: Results) -> Finding:
    """Whether BatchRank is below the threshold early on more than half of the queries of the CM."""
    early = results[EARLY_CM].rate(CM, "BatchRank", *AT_2M)
    return above_share(early < CONVERGED, 0.5)


def close_to_the_end(results: Results) -> Finding:
    """Whether there is a query of the CM on which BatchRank is above the threshold after eight
    million sessions, and below it in the end.
    """
    curves = results[MANY]
    before, after, last = (
        curves.by_instance(CM, "BatchRank", fraction=fraction) for fraction in (0.8, *END)
    )
    late = (after - before) / (round(END[0] * curves.horizon) - round(0.8 * curves.horizon))
    ends = (last - after) / (curves.horizon - round(END[0] * curves.horizon))
    found = [
        all_of("", [estimate(one).above(CONVERGED), estimate(other).below(CONVERGED)])
        for one, other in zip(late, ends, strict=True)
    ]
    count = sum(one.verdict == "reproduced" for one in found)
    return any_of(f"{count} of {len(found)} queries, each by itself at 5 %", found)


def better_than_stuck(results: Results, agent: str) -> Finding:
    """Whether there is a run of CascadeKL-UCB whose regret at the end is above the mean of
    RankedExp3's runs on the same query.
    """
    curves = results[MANY]
    rivals = [estimate(runs) for runs in runs_at_end(curves, PBM, "RankedExp3")]
    runs = runs_at_end(curves, PBM, agent)
    found = [
        rival.below(float(run))
        for rival, of_query in zip(rivals, runs, strict=True)
        for run in of_query
    ]
    count = sum(one.verdict == "reproduced" for one in found)
    return any_of(f"{count} of {runs.size} runs, each by itself at 5 %", found)


def beats_exp3(results: Results, env: str) -> Finding:
    """Whether BatchRank has less regret per session at the end than RankedExp3."""
    ours, theirs = (end(results, env, agent) for agent in ("BatchRank", "RankedExp3"))
    found = less(ours, theirs)
    words = f"{found.measured}, less on {(ours < theirs).sum()} of {len(ours)} queries"
    return found._replace(measured=words)


def at_two_million(results: Results, agent: str) -> Finding:
    """Whether BatchRank has less regret per session before the two millionth session."""
    ours, theirs = (results[EARLY].rate(PBM, one, *AT_2M) for one in ("BatchRank", agent))
    return less(ours, theirs)


def flattens(results: Results, agent: str) -> Finding:
    """Whether regret per session keeps its size from two million sessions to the end: the gap is
    that to `LINEAR` times the early one.
    """
    early, late = results[EARLY].rate(PBM, agent, *AT_2M), end(results, PBM, agent)
    words = f"{estimate(late)}, {late.mean() / early.mean():.2f} times that at two million"
    return estimate(late - LINEAR * early).above(0.0, words)


def one_sixth(results: Results, agent: str) -> Finding:
    """Whether a sixth of the runs end suboptimal, within half to twice the share."""
    found = estimate(share(results, agent))
    words = f"{100 * found.mean:.1f} ± {100 * found.half:.1f} %"
    return found.within(1 / 12, 1 / 3)._replace(measured=words)


NUMBERS = [
    Number(
        f"PBM: runs of CascadeKL-UCB ({words}) with regret of at least 10⁻³ at the end, %",
        16.7,
        lambda results, agent=agent: 100 * share(results, agent),  # type: ignore[misc]
    )
    for words, agent in (("last_click", LAST), ("first_click", FIRST))
]
STATEMENTS = [
    Statement(
        "In the CM, CascadeKL-UCB performs very well on most queries.",
        "section 6, figure 1",
        "On more than half of the queries its regret per session at the end is below "
        f"{CONVERGED:g}. The paper calls a run above this suboptimal.",
        lambda results: in_readings(
            lambda agent: above_share(end(results, CM, agent) < CONVERGED, 0.5)
        ),
        late=True,
    ),
    Statement(
        "BatchRank often learns the optimal solution quickly (Figure 1a),",
        "section 6, figure 1",
        "We read “often” as more than half of the queries of the CM, and “quickly” as two million "
        "sessions. Regret per session in the 100,000 sessions before is below 0.001.",
        early_on,
        is_other_version=True,
    ),
    Statement(
        "but sometimes this requires close to T=10M steps (Figure 1b).",
        "section 6, figure 1",
        "There is a query of the CM on which its regret per session is below 0.001 in the last "
        "hundredth of the sessions. From eight million sessions (ours) to there it is above.",
        close_to_the_end,
    ),
    Statement(
        "In the PBM, CascadeKL-UCB may converge to a suboptimal solution. Then its expected "
        "per-step regret remains constant and even RankedExp3 can learn a better solution over "
        "time (Figure 1c).",
        "section 6, figure 1",
        "There is a run of CascadeKL-UCB that ends with more regret per session than RankedExp3's "
        "mean on the same query. We correct for the number of runs.",
        lambda results: in_readings(lambda agent: better_than_stuck(results, agent)),
    ),
    Statement(
        "We also observe that BatchRank outperforms RankedExp3 in all experiments.",
        "section 6, figure 1",
        "BatchRank has less regret per session at the end in the CM and in the PBM, in the mean "
        "over the queries. We also count the queries.",
        lambda results: several({short(env): beats_exp3(results, env) for env in (CM, PBM)}),
        late=True,
        is_other_version=True,
    ),
    Statement(
        "In the CM, CascadeKL-UCB outperforms BatchRank",
        "section 6, figure 2",
        "CascadeKL-UCB has less regret per session at the end in the CM.",
        lambda results: in_readings(
            lambda agent: less(end(results, CM, agent), end(results, CM, "BatchRank"))
        ),
        is_other_version=True,
    ),
    Statement(
        "in the PBM, BatchRank outperforms CascadeKL-UCB at T=2M steps.",
        "section 6, figure 2",
        "BatchRank has less regret per session in the PBM, in the 100,000 sessions before the two "
        "millionth.",
        lambda results: in_readings(lambda agent: at_two_million(results, agent)),
        is_other_version=True,
    ),
    Statement(
        "The regret of CascadeKL-UCB in the PBM flattens and is bounded away from zero.",
        "section 6, figure 2",
        f"Its regret per session in the last 100,000 sessions is above {LINEAR} times (ours) that "
        "in the 100,000 sessions before the two millionth.",
        lambda results: in_readings(lambda agent: flattens(results, agent)),
        late=True,
    ),
    Statement(
        "They show that CascadeKL-UCB converges to suboptimal solutions, whose regret is at least "
        "10⁻³, in one sixth of its runs.",
        "section 6, figure 2",
        "The share of such runs in the PBM is between half of a sixth and twice a sixth. The "
        "bounds are ours.",
        lambda results: in_readings(lambda agent: one_sixth(results, agent)),
        late=True,
    ),
    Statement(
        "The performance of BatchRank is more robust and we do not observe many runs whose regret "
        "is of that magnitude.",
        "section 6, figure 2",
        "In the PBM fewer of its runs than of CascadeKL-UCB's end with a regret of at least 0.001.",
        lambda results: in_readings(
            lambda agent: less(share(results, "BatchRank"), share(results, agent))
        ),
        late=True,
        is_other_version=True,
    ),
]


def seen(results: Results) -> Iterator[str]:
    """BatchRank and RankedExp3 against both readings of CascadeKL-UCB."""
    for agent in (LAST, FIRST):
        gap = less(end(results, PBM, "BatchRank"), end(results, PBM, agent))
        yield f"BatchRank against {agent} at the end of the PBM: {gap.measured}."
    for agent in (LAST, FIRST):
        better = end(results, PBM, "RankedExp3") < end(results, PBM, agent)
        yield (
            f"RankedExp3's mean at the end of the PBM is below that of {agent} on {better.sum()} "
            f"of {len(better)} queries."
        )


def draw(results: Results) -> Figure:
    """Regret per session, and its distribution at the end, in both click models."""
    curves = results[MANY]
    figure, panels = grid(2, 2, labels=["regret per session", "share of the runs"])
    least = 1e-6  # and everything below
    edges = np.geomspace(least, 1, 25)
    for curve, distribution, env in zip(panels[:2], panels[2:], (CM, PBM), strict=True):
        per_session(curve, curves, env)
        curve.set_title(short(env), fontsize=10)
        for agent in AGENTS:
            ends = np.maximum(runs_at_end(curves, env, agent).ravel(), least)
            counts, _ = np.histogram(ends, edges)
            style = style_of(agent, distribution)
            distribution.stairs(counts / len(ends), edges, linewidth=1.5, **style)
        distribution.axvline(CONVERGED, **BOUND)
        distribution.set(xscale="log", xlabel="regret per session at the end", xlim=(least, 1))
    panels[1].axvline(2e6, label="where the paper has them cross", color="0.5", linewidth=1)
    return finish(figure, panels[:2], results, "Regret per session")
