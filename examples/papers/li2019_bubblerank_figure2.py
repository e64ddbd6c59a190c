"""Violations of the safety constraint.

Li et al. 2019 (BubbleRank), figure 2.

Our queries and production lists differ from the paper's. The number of violations depends above all
on how many pairs of items are in the wrong order in the production list, a number that the paper
does not print. We have 60 published queries. The paper's production list is the list that the log
shows most often for the query; ours is the list on one logged result page.

The paper does not say what CascadeKL-UCB learns from a session with several clicks. So we test two
readings of the algorithm: one learns from the last click (`last_click`), the other from the first
click (`first_click`). In the tables, *alone* stands before the verdict on a single reading.
BatchRank runs as printed in its paper, with one line corrected (see the page on figure 1). The runs
are the same as for figure 1, except for the first 100 sessions: these come from separate, shorter
runs, in which we still tell the agents that the horizon is 5 million, as in the paper.

At the end of the runs, violations are rare. A single unsafe final list among a hundred queries
would make the mean number of violations grow linearly, so we count queries instead. Even if none of
our 60 queries has an unsafe final list, up to 6 % of all queries may still have one.
"""

from __future__ import annotations

import sys

import figures
import li2019_bubblerank_figure1
import numpy as np
import study
from li2019_bubblerank_figure1 import ENVS, FIRST, LAST, draw_curves, first_100, in_each
from study import (
    END,
    LINEAR,
    SLACK,
    Finding,
    Number,
    Statement,
    above_share,
    any_of,
    certain,
    estimate,
    in_readings,
    less,
    ratio,
)

RESULTS = "li2019_bubblerank_figure1"
play = li2019_bubblerank_figure1.play
"""This experiment has the same runs and the same shipped file as figure 1."""
OF_CASCADE = ((24.12, 0.76), (23.33, 0.90), (23.63, 0.96))
PRINTED = {
    LAST: OF_CASCADE,
    FIRST: OF_CASCADE,
    "BatchRank": ((83.01, 0.56), (71.89, 0.92), (59.63, 0.98)),
    "TopRank": ((83.56, 0.70), (71.47, 1.07), (57.00, 1.24)),
}
"""The paper's violations in the first 100 sessions in the CM, the DCM and the PBM, with its ±."""
NAMES = {LAST: "CascadeKL-UCB, last_click", FIRST: "CascadeKL-UCB, first_click"}


def numbers(results):
    return [
        Number(
            f"{NAMES.get(agent, agent)}, {model}: violations in the first 100 sessions",
            count,
            first_100(results, ENVS[model], agent, "violations"),
            error,
        )
        for agent, counts in PRINTED.items()
        for model, (count, error) in zip(ENVS, counts, strict=True)
    ]


def statements(results):
    whole, start = results["whole"], results["start"]
    counts = np.array([whole.by_instance(e, "BubbleRank", "violations") for e in ENVS.values()])
    violated = f"{(counts > 0).sum()} of {counts.size:,} runs of {whole.horizon:,} sessions"

    def more_than_20(env: str, agent: str) -> Finding:
        """Test whether some run has more than 20 violations in the first 100 sessions."""
        counts = start.by_instance(env, agent, "violations", 0.01).ravel()
        words = f"{(counts > 20).sum()} of {len(counts)} runs, up to {counts.max():.0f}"
        return any_of([certain("", bool(count > 20)) for count in counts], words)

    def grows_linearly(agent: str) -> Finding:
        """Test whether violations grow linearly on more than one query in a hundred."""
        late, mean = (
            whole.rate(ENVS["PBM"], agent, *span, "violations") for span in (END, (0.0, 1.0))
        )
        return above_share(late - LINEAR * mean > SLACK, 0.01)

    def more_severe(other: str) -> Finding:
        """Test whether an agent has more violations than CascadeKL-UCB in 100 sessions."""
        return in_readings(
            lambda agent: in_each(
                lambda env: less(
                    *(first_100(results, env, one, "violations") for one in (agent, other))
                )
            )
        )

    def alike(env: str) -> Finding:
        """Test whether TopRank and BatchRank have similar numbers of violations."""
        ours, theirs = (
            first_100(results, env, agent, "violations") for agent in ("TopRank", "BatchRank")
        )
        return estimate(ours - theirs).within(-10.0, 10.0)

    severe = {"BatchRank": more_severe("BatchRank").only_supports()}
    severe["TopRank"] = more_severe("TopRank")
    return [
        Statement(
            "BubbleRank never violates the constraint in our experiments.",
            "section 5.3",
            "No run has a violation. We count violations, although the paper's Lemma 2 allows a "
            "few.",
            certain(violated, not counts.any()),
        ),
        Statement(
            "CascadeKL-UCB may show unsafe results, which are significantly worse than the initial "
            "base list R_0, and may hurt user experience, more than 20% of search sessions in the "
            "first 100 steps.",
            "section 5.3",
            "In each click model, there is a run with more than 20 violations in the first 100 "
            "sessions. We count such runs; the table above shows the mean violations.",
            in_readings(lambda agent: in_each(lambda env: more_than_20(env, agent))),
        ),
        Statement(
            "Even worse, the violations of CascadeKL-UCB grow linearly with time in the PBM.",
            "section 5.3",
            "In the PBM, more than one query in a hundred still has violations at the end; the "
            "paper has a hundred queries. We count queries, with the exact binomial interval. A "
            "query counts if its violations per session in the last hundredth of the sessions "
            f"are above {LINEAR} times (our choice) their mean over all sessions.",
            in_readings(grows_linearly),
        ),
        *(
            Statement(
                "The safety issues of BatchRank, and TopRank are more severe than that of "
                "CascadeKL-UCB.",
                "section 5.3",
                f"In each click model, {agent} has more violations than CascadeKL-UCB in the "
                "first 100 sessions.",
                finding,
            )
            for agent, finding in severe.items()
        ),
        Statement(
            "Note that the performance of TopRank is close to that of BatchRank in the first 100 "
            "steps since they both require the ranked lists to be randomly shuffled during the "
            "initial stages.",
            "section 5.3",
            "In each click model their violations in the first 100 sessions differ by less than 10 "
            "(our choice).",
            in_each(alike).only_supports(),
        ),
    ]


def seen(results):
    """Compare the agents' violations with those of lists in random order."""
    for agent in ("BatchRank", "TopRank"):
        shares = []
        for model, env in ENVS.items():
            ours, random = (
                first_100(results, env, name, "violations") for name in (agent, "Random")
            )
            shares.append(f"{ratio(ours, random)} ({model})")
        yield (
            f"In the first 100 sessions {agent} shows {', '.join(shares)} times as many unsafe "
            "lists as random order."
        )
    yield "So these numbers depend on the production lists, and hardly on the agents."


def draw(results):
    """Draw the cumulative violations of all agents that have any, with the paper's numbers as
    stars.
    """
    agents = [LAST, FIRST, "BatchRank", "TopRank"]
    figure = draw_curves(results, "violations", agents)
    for axes, place in zip(figure.axes, range(len(ENVS)), strict=True):
        for shift, agent in zip((0.85, 1.0, 1.2), agents[1:], strict=True):  # beside each other
            color = figures.style_of(axes, agent)["color"]
            axes.plot(100 * shift, PRINTED[agent][place][0], "*", color=color, markersize=10)
        axes.set_ylim(bottom=8)
    figure.axes[0].annotate("★ the paper", (0.45, 0.3), xycoords="axes fraction")
    return figure


if __name__ == "__main__":
    study.main(sys.modules[__name__])
