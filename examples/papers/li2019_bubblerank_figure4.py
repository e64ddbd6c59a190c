"""NDCG@5 of agents that re-rank a production list.

Li et al. 2019 (BubbleRank), figure 4.

The paper draws 100 frequent queries from the Yandex log. We have 60 published queries, with 5
million sessions and ten runs as in the paper; the runs are the same as in figure 1. Gains are the
attractions of the fitted models, as in the paper, because there are no judgments. Like the paper,
we leave out CascadeKL-UCB. BatchRank runs as printed, with one line corrected (see figure 1). The
first sessions come from separate, shorter runs; in these, too, we tell the agents that the horizon
is 5 million.
"""

from __future__ import annotations

import sys

import figures
import li2019_bubblerank_figure1
import numpy as np
import study
from li2019_bubblerank_figure1 import ENVS, in_each
from study import END, Finding, Statement, all_of, estimate, less

RESULTS = "li2019_bubblerank_figure1"
play = li2019_bubblerank_figure1.play
"""The runs are those of figure 1, and so is the file that ships."""


def statements(results):
    whole, start = results["whole"], results["start"]

    def gap(env, agent, other="Fixed", curves=start, span=(0.0, 0.01)):
        """Return one agent's NDCG minus another's, by default in the first 100 sessions."""
        ours, theirs = (curves.rate(env, name, *span, "ndcg") for name in (agent, other))
        return estimate(ours - theirs)

    def alike(agent: str) -> Finding:
        return in_each(lambda env: gap(env, agent, "BubbleRank", whole, END).within(-0.02, 0.02))

    def never_worse(env: str) -> Finding:
        """Test whether BubbleRank is never far below the production list."""
        spans = {
            "first 100": (start, (0.0, 0.01)),
            "to 1,000": (start, (0.01, 0.1)),
            "to 10,000": (start, (0.1, 1.0)),
            "end": (whole, END),
        }
        return all_of(
            {
                words: gap(env, "BubbleRank", "Fixed", *span).within(low=-0.05)
                for words, span in spans.items()
            }
        )

    others = ("BatchRank", "TopRank")
    return [
        Statement(
            "In Figure 4, we observe that Baseline has good NDCG@5 scores in all click models. Yet "
            "there is still room for improvement.",
            "appendix B",
            "In each click model BubbleRank's NDCG@5 at the end is above that of the production "
            "list.",
            in_each(
                lambda env: less(
                    *(whole.rate(env, agent, *END, "ndcg") for agent in ("Fixed", "BubbleRank"))
                )
            ),
        ),
        Statement(
            "BubbleRank, BatchRank, and TopRank have similar NDCG@5 scores after 5 million steps.",
            "appendix B",
            "In each click model the scores of BatchRank and TopRank in the last hundredth of the "
            "sessions are within 0.02 (ours) of BubbleRank's.",
            all_of({name: alike(name) for name in others}).only_supports(),
        ),
        Statement(
            "But BubbleRank starts with NDCG@5 close to that of Baseline",
            "appendix B",
            "In each click model it is within 0.05 in the first 100 sessions (both ours).",
            in_each(lambda env: gap(env, "BubbleRank").within(-0.05, 0.05)),
        ),
        Statement(
            "while BatchRank and TopRank start with lists with very low NDCG@5.",
            "appendix B",
            "In each click model both are more than 0.05 below the production list in the first "
            "100 sessions (both ours).",
            all_of(
                {
                    name: in_each(lambda env, name=name: gap(env, name).within(high=-0.05))
                    for name in others
                }
            ).only_supports(),
        ),
        Statement(
            "we observe that BubbleRank converges to the optimal list in hindsight, since its "
            "NDCG@5 approaches 1.",
            "appendix B",
            "In each click model it is above 0.99 (ours) in the last hundredth of the sessions.",
            in_each(
                lambda env: estimate(whole.rate(env, "BubbleRank", *END, "ndcg")).within(low=0.99)
            ),
        ),
        Statement(
            "we observe that BubbleRank is safe, since its NDCG@5 is never much worse than that of "
            "Baseline.",
            "appendix B",
            "In each click model it is at most 0.05 (ours) below the production list. We look at "
            "the first 100 sessions, then up to 1,000, up to 10,000, and the last hundredth.",
            in_each(never_worse),
        ),
    ]


def seen(results):
    """Say at which NDCG the agents end."""
    for agent in ("BatchRank", "TopRank"):
        ends = [
            f"{estimate(results['whole'].rate(env, agent, *END, 'ndcg'))} ({model})"
            for model, env in ENVS.items()
        ]
        yield f"{agent}'s NDCG@5 in the last hundredth is {', '.join(ends)}."


def draw(results):
    """Draw NDCG per session in each click model."""
    curves = results["whole"]
    figure, panels = figures.grid(3, label="NDCG@5 per session")
    agents = ("BubbleRank", "BatchRank", "TopRank", "Fixed")
    for axes, (model, env) in zip(panels, ENVS.items(), strict=True):
        figures.rates(axes, curves, env, agents, np.geomspace(100, curves.horizon, 25), "ndcg")
        axes.set(xscale="log", title=model, xlabel="session", ylim=(0.5, 1.01))
    return figures.finish(figure, "NDCG@5")


if __name__ == "__main__":
    study.main(sys.modules[__name__])
