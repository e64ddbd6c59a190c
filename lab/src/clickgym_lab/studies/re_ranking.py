"""What the studies of Li et al. 2019 (BubbleRank) share: re-ranking a production list of ten."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .claims import Finding, Results, Values, several, short
from .plots import Figure, bands, finish, grid
from .study import LAST_ENDS, Sweep

# Abandonment clicks in the DCM, as the paper has it.
ENVS = (
    "CMRank-v0:n_positions=10,cutoff=5",
    "DCMRank-v0:n_positions=10,cutoff=5,reward=satisfaction",
    "PBMRank-v0:n_positions=10,cutoff=5",
)
CM, DCM, PBM = ENVS
LAST = "CascadeKLUCB"
FIRST = "CascadeKLUCB:feedback=first_click"
AGENTS = ("BubbleRank", LAST, FIRST, "BatchRank", "TopRank", "Fixed")


def sorted_gap(env: Any) -> float:
    """The loss per session of the list sorted by attraction, the R* of the paper, against the best
    list. It is 0 but in the DCM, where its termination probabilities do not decrease.
    """
    users = env.unwrapped
    order = np.argsort(-users.model.attraction, kind="stable")[: users.model.n_positions]
    reward = users.model.expected_reward(order, users.reward, users.cutoff)
    best = users.model.optimal_ranking(users.reward, users.cutoff)
    return float(users.model.expected_reward(best, users.reward, users.cutoff) - reward)


RE_RANKING = Sweep(
    "bubble",
    ENVS,
    AGENTS,
    horizon=5_000_000,
    runs=10,
    queries=100,
    metrics=["violations", "ndcg"],
    windows=100,
    ends=LAST_ENDS,
    facts={"sorted_gap": sorted_gap},
)
"""The runs of figures 1, 2 and 4."""
START = Sweep(
    "bubble-start",
    ENVS,
    (*AGENTS, "Random"),
    horizon=10_000,
    runs=10,
    queries=100,
    metrics=["violations", "ndcg"],
    ends=(0.01, 0.1, 1.0),
    scaled=False,
    told=RE_RANKING.horizon,
)
"""Their first 10,000 sessions, and lists in random order: the values of each query at 100, 1,000
and 10,000 sessions.
"""
FIRST_100 = 0.01
"""Of the sessions of `START`."""


def start(results: Results, env: str, agent: str, column: str) -> Values:
    """``(queries,)`` a cumulative column after the first 100 sessions."""
    return results[START.name].values(env, agent, column, FIRST_100)


def in_each(test: Callable[[str], Finding], envs: Sequence[str] = ENVS) -> Finding:
    """Whether a test holds in each click model."""
    return several({short(env): test(env) for env in envs})


def draw_curves(results: Results, column: str, agents: Sequence[str], title: str) -> Figure:
    """A cumulative column in each click model, from 100 sessions on."""
    curves = results[RE_RANKING.name]
    figure, panels = grid(3, labels=[f"cumulative {column}"])
    for axes, env in zip(panels, ENVS, strict=True):
        bands(axes, curves, env, agents, column, first=100)
        axes.set(xscale="log", yscale="log", title=short(env), xlabel="session")
        axes.set_ylim(bottom=max(axes.get_ylim()[0], 0.1))
    return finish(figure, panels, results, title)
