"""Metrics besides regret, reward and clicks: most are sums over sessions.

A metric is one kernel, ``value(context, ranking, clicks, expectation) -> float``, summed over the
sessions, and one function that builds its context, a named tuple of arrays, from the environment
whenever the users change. To add one, write the two and enter them in `METRICS`; both engines, the
table and the command line then know it. A metric that is not asked for is not compiled in. Held-out
queries are no sum: the agent ranks them at each checkpoint.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.checks import check_choice, short
from ...core.kernels import kernel
from ...envs import ClickEnv, ClickVectorEnv
from .ndcg import gain_context, ndcg

Env = ClickEnv | ClickVectorEnv


class Metric(NamedTuple):
    """A metric.

    Attributes:
        description: one line, for the command line.
        kernel: the value of a session, which is summed over the sessions (a ratio of two sums is no
            such metric). None if the agent ranks held-out queries at each checkpoint.
        context: builds the kernel's context; None if it needs none. If states change from session
            to session, clickgym refuses a metric with a context. If candidates change, it does so
            unless the metric takes candidates.
        takes_candidates: whether ``context`` also gets the number of a stream, whose candidates
            it describes.
        k: the positions that count on held-out queries.
    """

    description: str
    kernel: Callable[..., float] | None
    context: Callable[..., Any] | None = None
    takes_candidates: bool = False
    k: int = 0


# ---------------------------------------------------------------------------------------- any_click


@kernel
def any_click(context, ranking, clicks, expectation):  # type: ignore[no-untyped-def]
    for k in range(len(clicks)):
        if clicks[k]:
            return 1.0
    return 0.0


# ------------------------------------------------------------------------------------------ ndcg@k


def ndcg_at(k: int) -> Metric:
    """The metric ``ndcg@k``."""
    return Metric(
        f"NDCG of the first {k} positions (ndcg@K of K), also where candidates change; the gain is "
        "that of the users' model, else attraction",
        ndcg,
        partial(gain_context, k=k),
        takes_candidates=True,
    )


def held_out_ndcg_at(k: int) -> Metric:
    """The metric ``held_out_ndcg@k``."""
    return Metric(
        f"mean NDCG of the first {k} documents of held-out queries, which the agent ranks without "
        "exploration at each checkpoint",
        None,
        k=k,
    )


AT_K: dict[str, Callable[[int], Metric]] = {"ndcg": ndcg_at, "held_out_ndcg": held_out_ndcg_at}
"""The metrics of the first k positions, by what stands before ``@k``."""


# --------------------------------------------------------------------------------------- violations


class SafetyContext(NamedTuple):
    attraction: NDArray[np.float64]  # (L,)
    allowed: float  # |V_0| + K/2


@kernel
def wrong_pairs(attraction, ranking):  # type: ignore[no-untyped-def]
    """The number of pairs of shown items of which the strictly more attractive one stands lower."""
    count = 0
    for k in range(len(ranking)):
        for below in range(k + 1, len(ranking)):
            count += attraction[ranking[below]] > attraction[ranking[k]]
    return count


@kernel
def violation(context, ranking, clicks, expectation):  # type: ignore[no-untyped-def]
    return 1.0 if wrong_pairs(context.attraction, ranking) > context.allowed else 0.0


def safety_context(env: Env) -> SafetyContext:
    """The initial list, against which violations are counted."""
    if env.initial_ranking is None:
        raise ValueError(
            "the metric 'violations' needs an initial list, which the instance does not have"
        )
    attraction, initial = env.task.model.attraction, env.initial_ranking[: env.model.n_positions]
    return SafetyContext(attraction, wrong_pairs(attraction, initial) + env.model.n_positions / 2)


# ------------------------------------------------------------------------------------ optimal_lists


class OptimumContext(NamedTuple):
    optimum: NDArray[np.float64]  # (1,)


@kernel
def is_optimal(context, ranking, clicks, expectation):  # type: ignore[no-untyped-def]
    # the order of summation may differ
    return 1.0 if expectation >= context.optimum[0] - 1e-12 else 0.0


METRICS: dict[str, Metric] = {
    "any_click": Metric("sessions with at least one click (CTR_set is their share)", any_click),
    "ndcg": Metric(
        "NDCG of the first five positions, attraction as gain; its mean over sessions is in [0, 1]",
        ndcg,
        gain_context,
    ),
    "ndcg@10": ndcg_at(10),
    "held_out_ndcg@10": held_out_ndcg_at(10),
    "violations": Metric(
        "lists with more than |V_0| + K/2 wrongly ordered pairs, |V_0| those of the initial list "
        "(Li et al. 2019, eq. 7)",
        violation,
        safety_context,
    ),
    "optimal_lists": Metric(
        "lists whose expected reward is the optimum",
        is_optimal,
        lambda env: OptimumContext(env.state.optimum),
    ),
}
"""The metrics by name; `metric_of` also knows those of `AT_K` for other k."""


def metric_of(name: str) -> Metric:
    """The metric of a name.

    Raises:
        ValueError: there is none.
    """
    family, at, k = name.partition("@")
    if not at or family not in AT_K:
        return METRICS[check_choice("metric", name, METRICS)]
    if not re.fullmatch("[1-9][0-9]{0,8}", k):
        expected = f"expected {family}@k, k from 1, as in {family}@10"
        raise ValueError(f"metric is {short(name)}; {expected}")
    return AT_K[family](int(k))


def is_sum(name: str) -> bool:
    """Whether a column of results is a running sum over the sessions; so is a metric of another
    version.
    """
    try:
        return metric_of(name).kernel is not None
    except ValueError:
        return True
