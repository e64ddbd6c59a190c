"""Regret per session, and its distribution over many queries.

Zoghi et al. 2017, figures 1 and 2.

A co-author of the paper fitted click models to the 60 published queries, using the same log as the
paper. The queries are probably the paper's queries, but this is not certain. The 16 shipped queries
are different ones. The lists of five of ten items, the ten million sessions and the ten runs are
the same as in the paper. The paper does not say what CascadeKL-UCB learns from a session with
several clicks. So we test two readings of the algorithm: one learns from the last click
(`last_click`), the other from the first click (`first_click`). In the tables, *alone* stands before
the verdict on a single reading.

BatchRank runs as printed, with one line corrected, so that a batch with as many items as positions
can go on to its next stage. Stage l of BatchRank takes 16 · 4^l · log T displays, so BatchRank's
curve depends strongly on the constants 16 and 4. The code that its authors published has other
constants.

The results for single queries near two million sessions come from separate runs. On the published
queries, there are fewer than ten such runs per query.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import figures
import numpy as np
import study
from study import (
    END,
    LINEAR,
    Curves,
    Finding,
    Number,
    Statement,
    above_share,
    all_of,
    any_of,
    estimate,
    in_readings,
    less,
)

CM, PBM = "CMRank-v0", "PBMRank-v0"
LAST, FIRST = "CascadeKLUCB", "CascadeKLUCB:feedback=first_click"
AGENTS = [LAST, FIRST, "BatchRank", "RankedExp3"]
ENDS = (0.18, 0.19, 0.2, 0.29, 0.3, 0.4, 0.8, *END)
BEFORE_2M = (0.95, 1.0)
"""The last 100,000 of two million sessions, as fractions of two million."""
CONVERGED = 1e-3
"""The regret per session from which the paper calls a run suboptimal."""


def play(options):
    """Play the CM and the PBM, and separate runs of the first two million sessions."""
    horizon, runs, queries = options.horizon or 10_000_000, options.runs or 10, options.queries[:60]
    whole = study.played(options, "whole", [CM, PBM], AGENTS, horizon, runs, queries, 100)
    early = min(horizon, 2_000_000)
    pbm = study.first_sessions([PBM], [LAST, FIRST, "BatchRank"], early, 10_000_000, runs, queries)
    cm = study.first_sessions([CM], ["BatchRank"], early, 10_000_000, runs, queries)
    return {
        "whole": study.compact(whole, ENDS),
        "pbm, 2M": study.compact(pbm, BEFORE_2M),
        "cm, 2M": study.compact(cm, BEFORE_2M),
    }


def at_end(curves: Curves, env: str, agent: str) -> np.ndarray:
    """Return regret per session in the last hundredth of the sessions, ``(queries, runs)``."""
    first, last = (curves.by_instance(env, agent, end=end) for end in END)
    return (last - first) / (curves.horizon - round(END[0] * curves.horizon))


def suboptimal(curves: Curves, agent: str) -> np.ndarray:
    """Return the fraction of suboptimal PBM runs at the end, ``(queries,)``."""
    return (at_end(curves, PBM, agent) >= CONVERGED).mean(axis=1)


def close_to_the_end(curves: Curves) -> Finding | str:
    """Test whether, on some query of the CM, BatchRank's regret per session is above the threshold
    after eight million sessions and below the threshold at the end.
    """
    before, after = (curves.by_instance(CM, "BatchRank", end=end) for end in (0.8, END[0]))
    if not before.size:
        return "the results contain no values for single queries at session 8,000,000"
    late = (after - before) / (round(END[0] * curves.horizon) - round(0.8 * curves.horizon))
    found = [
        all_of({1: estimate(one).within(low=CONVERGED), 2: estimate(other).within(high=CONVERGED)})
        for one, other in zip(late, at_end(curves, CM, "BatchRank"), strict=True)
    ]
    count = sum(one.verdict == "reproduced" for one in found)
    return any_of(found, f"{count} of {len(found)} queries, each by itself at 5 %")


def better_than_stuck(curves: Curves, agent: str) -> Finding:
    """Test whether some run of CascadeKL-UCB ends with more regret than the mean of RankedExp3's
    runs on the same query.
    """
    rivals = [estimate(runs) for runs in at_end(curves, PBM, "RankedExp3")]
    found = [
        rival.within(high=float(run))
        for rival, runs in zip(rivals, at_end(curves, PBM, agent), strict=True)
        for run in runs
    ]
    count = sum(one.verdict == "reproduced" for one in found)
    return any_of(found, f"{count} of {len(found)} runs, each by itself at 5 %")


def beats_exp3(curves: Curves, env: str) -> Finding:
    """Test whether BatchRank has less regret per session than RankedExp3 at the end."""
    ours, theirs = (curves.rate(env, agent, *END) for agent in ("BatchRank", "RankedExp3"))
    found = less(ours, theirs)
    words = f"{found.measured}, less on {(ours < theirs).sum()} of {len(ours)} queries"
    return found._replace(measured=words)


def one_sixth(curves: Curves, agent: str) -> Finding:
    """Test whether the fraction of suboptimal runs is between half of a sixth and twice a sixth."""
    found = estimate(suboptimal(curves, agent))
    words = f"{100 * found.mean:.1f} ± {100 * found.half:.1f} %"
    return found.within(1 / 12, 1 / 3)._replace(measured=words)


def numbers(results):
    return [
        Number(
            f"Runs of CascadeKL-UCB ({words}) in the PBM that end with a regret of at least 10⁻³ "
            "per session, %",
            16.7,
            100 * suboptimal(results["whole"], agent),
        )
        for words, agent in (("last_click", LAST), ("first_click", FIRST))
    ]


def statements(results):
    whole, pbm, cm = results.values()

    def before_2m(agent):
        return pbm.rate(PBM, agent, *BEFORE_2M)

    def flattens(agent):
        """Test whether the regret per session at the end is above `LINEAR` times its value at
        session two million.
        """
        early, late = before_2m(agent), whole.rate(PBM, agent, *END)
        words = f"{estimate(late)}, {late.mean() / early.mean():.2f} times that at two million"
        return estimate(late - LINEAR * early).within(low=0.0, words=words)

    return [
        Statement(
            "In the CM, CascadeKL-UCB performs very well on most queries.",
            "section 6, figure 1",
            "In the CM, CascadeKL-UCB's regret per session at the end is below "
            f"{CONVERGED:g} on more than half of the queries. The paper calls a run with more "
            "regret suboptimal.",
            in_readings(lambda agent: above_share(whole.rate(CM, agent, *END) < CONVERGED, 0.5)),
        ),
        Statement(
            "BatchRank often learns the optimal solution quickly (Figure 1a),",
            "section 6, figure 1",
            "We read “often” as more than half of the queries, and “quickly” as within two "
            "million sessions. In the CM, the regret per session is below 0.001 in the last "
            "100,000 of these two million sessions.",
            above_share(cm.rate(CM, "BatchRank", *BEFORE_2M) < CONVERGED, 0.5).only_supports(),
        ),
        Statement(
            "but sometimes this requires close to T=10M steps (Figure 1b).",
            "section 6, figure 1",
            "In the CM, there is a query on which BatchRank's regret per session is above 0.001 "
            "from session eight million (our choice) on, but below 0.001 in the last hundredth of "
            "the sessions.",
            close_to_the_end(whole),
        ),
        Statement(
            "In the PBM, CascadeKL-UCB may converge to a suboptimal solution. Then its expected "
            "per-step regret remains constant and even RankedExp3 can learn a better solution over "
            "time (Figure 1c).",
            "section 6, figure 1",
            "In the PBM, there is a run of CascadeKL-UCB that ends with more regret per session "
            "than RankedExp3 has on average on the same query. We correct for the number of runs.",
            in_readings(lambda agent: better_than_stuck(whole, agent)),
        ),
        Statement(
            "We also observe that BatchRank outperforms RankedExp3 in all experiments.",
            "section 6, figure 1",
            "In the CM and in the PBM, BatchRank has less regret per session than RankedExp3 at "
            "the end, averaged over the queries. We also count the queries on which it has less.",
            all_of({"CM": beats_exp3(whole, CM), "PBM": beats_exp3(whole, PBM)}).only_supports(),
        ),
        Statement(
            "In the CM, CascadeKL-UCB outperforms BatchRank",
            "section 6, figure 2",
            "In the CM, CascadeKL-UCB has less regret per session than BatchRank at the end.",
            in_readings(
                lambda agent: less(*(whole.rate(CM, one, *END) for one in (agent, "BatchRank")))
            ).only_supports(),
        ),
        Statement(
            "in the PBM, BatchRank outperforms CascadeKL-UCB at T=2M steps.",
            "section 6, figure 2",
            "In the PBM, BatchRank has less regret per session than CascadeKL-UCB in the last "
            "100,000 of two million sessions.",
            in_readings(
                lambda agent: less(before_2m("BatchRank"), before_2m(agent))
            ).only_supports(),
        ),
        Statement(
            "The regret of CascadeKL-UCB in the PBM flattens and is bounded away from zero.",
            "section 6, figure 2",
            "In the PBM, CascadeKL-UCB's regret per session in the last 100,000 sessions is "
            f"above {LINEAR} times (our choice) its regret per session in the 100,000 sessions "
            "before session two million.",
            in_readings(flattens),
        ),
        Statement(
            "They show that CascadeKL-UCB converges to suboptimal solutions, whose regret is at "
            "least 10⁻³, in one sixth of its runs.",
            "section 6, figure 2",
            "In the PBM, the fraction of CascadeKL-UCB's runs that end with at least this regret "
            "per session is between a twelfth and a third (our choice).",
            in_readings(lambda agent: one_sixth(whole, agent)),
        ),
        Statement(
            "The performance of BatchRank is more robust and we do not observe many runs whose "
            "regret is of that magnitude.",
            "section 6, figure 2",
            "In the PBM, a smaller fraction of BatchRank's runs than of CascadeKL-UCB's runs ends "
            "with a regret per session of at least 0.001.",
            in_readings(
                lambda agent: less(suboptimal(whole, "BatchRank"), suboptimal(whole, agent))
            ).only_supports(),
        ),
    ]


def seen(results) -> Iterator[str]:
    curves = results["whole"]
    ours, exp3 = (curves.rate(PBM, agent, *END) for agent in ("BatchRank", "RankedExp3"))
    for agent in (LAST, FIRST):
        theirs = curves.rate(PBM, agent, *END)
        yield (
            "At the end of the runs in the PBM, BatchRank's regret per session compared with "
            f"{agent}'s: {less(ours, theirs).measured}."
        )
        yield (
            "At the end of the runs in the PBM, the mean regret per session of RankedExp3 is "
            f"below that of {agent} on {(exp3 < theirs).sum()} of {len(theirs)} queries."
        )


def draw(results):
    """Draw regret per session and its distribution at the end, in both click models."""
    curves = results["whole"]
    figure, panels = figures.grid(2, 2)
    least = 1e-6  # smaller values are counted as this one
    edges = np.geomspace(least, 1, 25)
    for axes, below, env in zip(panels[:2], panels[2:], (CM, PBM), strict=True):
        figures.rates(axes, curves, env, AGENTS, np.linspace(0, curves.horizon, 101)[1:])
        axes.axhline(CONVERGED, label="suboptimal, by the paper", **figures.BOUND)
        axes.set_yscale("symlog", linthresh=1e-4)  # a run that shows the best list has no regret
        axes.set(title=env, xlabel="session", ylim=(0, 2), xlim=(0, curves.horizon))
        for agent in AGENTS:
            ends = np.maximum(at_end(curves, env, agent).ravel(), least)
            counts, _ = np.histogram(ends, edges)
            look = figures.style_of(axes, agent)
            below.stairs(counts / len(ends), edges, linewidth=1.5, **look)
        below.axvline(CONVERGED, **figures.BOUND)
        below.set(xscale="log", xlabel="regret per session at the end", xlim=(least, 1))
    panels[0].set_ylabel("regret per session")
    panels[2].set_ylabel("share of the runs")
    if curves.horizon > 2e6:
        panels[1].axvline(
            2e6, label="where the curves cross in the paper", color="0.5", linewidth=1
        )
    return figures.finish(figure, "Regret per session")


if __name__ == "__main__":
    study.main(sys.modules[__name__])
