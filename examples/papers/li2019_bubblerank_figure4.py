"""NDCG@5 of agents that re-rank a production list.

Li et al. 2019 (BubbleRank), figure 4.

The paper draws 100 frequent queries from the Yandex log, whereas we have 60 published queries. As
in the paper, each query gets 5 million sessions and ten runs, and figures 1 and 4 share these runs.
There are no relevance judgments, so the gains are the attractions of the fitted models, as in the
paper. Like the paper, we leave out CascadeKL-UCB. BatchRank runs as printed in its paper, with one
line corrected (see the page on figure 1). The first sessions come from separate, shorter runs, in
which we still tell the agents that the horizon is 5 million.
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
"""This experiment has the same runs and the same shipped file as figure 1."""


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
            "In each click model, the NDCG@5 of BubbleRank at the end is higher than the NDCG@5 of "
            "the production list.",
            in_each(
                lambda env: less(
                    *(whole.rate(env, agent, *END, "ndcg") for agent in ("Fixed", "BubbleRank"))
                )
            ),
        ),
        Statement(
            "BubbleRank, BatchRank, and TopRank have similar NDCG@5 scores after 5 million steps.",
            "appendix B",
            "In each click model, the NDCG@5 of BatchRank and of TopRank in the last hundredth of "
            "the sessions differs from that of BubbleRank by at most 0.02 (our choice).",
            all_of({name: alike(name) for name in others}).only_supports(),
        ),
        Statement(
            "But BubbleRank starts with NDCG@5 close to that of Baseline",
            "appendix B",
            "In each click model, the NDCG@5 of BubbleRank in the first 100 sessions differs from "
            "that of the production list by at most 0.05 (both numbers are our choice).",
            in_each(lambda env: gap(env, "BubbleRank").within(-0.05, 0.05)),
        ),
        Statement(
            "while BatchRank and TopRank start with lists with very low NDCG@5.",
            "appendix B",
            "In each click model, the NDCG@5 of both agents in the first 100 sessions is more "
            "than 0.05 below that of the production list (both numbers are our choice).",
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
            "In each click model, the NDCG@5 of BubbleRank in the last hundredth of the sessions "
            "is above 0.99 (our choice).",
            in_each(
                lambda env: estimate(whole.rate(env, "BubbleRank", *END, "ndcg")).within(low=0.99)
            ),
        ),
        Statement(
            "we observe that BubbleRank is safe, since its NDCG@5 is never much worse than that of "
            "Baseline.",
            "appendix B",
            "In each click model, the NDCG@5 of BubbleRank is at most 0.05 (our choice) below "
            "that of the production list: in the first 100 sessions, from there to session 1,000, "
            "from there to session 10,000, and in the last hundredth of the sessions.",
            in_each(never_worse),
        ),
    ]


def seen(results):
    """Report the NDCG of BatchRank and TopRank at the end."""
    for agent in ("BatchRank", "TopRank"):
        ends = [
            f"{estimate(results['whole'].rate(env, agent, *END, 'ndcg'))} ({model})"
            for model, env in ENVS.items()
        ]
        yield f"In the last hundredth of the sessions, {agent}'s NDCG@5 is {', '.join(ends)}."


def draw(results):
    """Draw the NDCG per session in each click model."""
    curves = results["whole"]
    figure, panels = figures.grid(3, label="NDCG@5 per session")
    agents = ("BubbleRank", "BatchRank", "TopRank", "Fixed")
    for axes, (model, env) in zip(panels, ENVS.items(), strict=True):
        figures.rates(axes, curves, env, agents, np.geomspace(100, curves.horizon, 25), "ndcg")
        axes.set(xscale="log", title=model, xlabel="session", ylim=(0.5, 1.01))
    return figures.finish(figure, "NDCG@5")


if __name__ == "__main__":
    study.main(sys.modules[__name__])
