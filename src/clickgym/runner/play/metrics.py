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
from ...core.sums import weighted_sums
from ...envs import ClickEnv, ClickVectorEnv

Env = ClickEnv | ClickVectorEnv


class Metric(NamedTuple):
    """A metric.

    Attributes:
        description: one line, for the command line.
        kernel: the value of a session, which is summed over the sessions (a ratio of two sums is no
            such metric). None if the agent ranks held-out queries at each checkpoint.
        context: builds the kernel's context from an environment and the number of a stream; None
            if it needs none.
        k: the positions that count on held-out queries.
    """

    description: str
    kernel: Callable[..., float] | None
    context: Callable[..., Any] | None = None
    k: int = 0


def _of_others(name: str, env: Env) -> ValueError:
    """The refusal of users with other items or states in every session."""
    needs = "needs the same items and users in every session"
    return ValueError(f"the metric {name!r} {needs}; {env} has others")


# ---------------------------------------------------------------------------------------- any_click


@kernel
def any_click(context, ranking, clicks, expectation):  # type: ignore[no-untyped-def]
    for k in range(len(clicks)):
        if clicks[k]:
            return 1.0
    return 0.0


# ------------------------------------------------------------------------------------------ ndcg@k


class GainContext(NamedTuple):
    gain: NDArray[np.float64]  # (L,) attraction; with candidates (N,) the gain of each item
    discount: NDArray[np.float64]  # (m,) 1 / log2(k + 1); of items that stay over the ideal
    items: NDArray[np.int64]  # (L,) the index of each candidate's gain; (0,): items stay
    largest: NDArray[np.float64]  # (m,) working memory

    def before_step(self) -> GainContext:
        """The context of the coming session, which stays when the state is overwritten."""
        if not len(self.items):
            return self
        return self._replace(gain=self.gain[self.items], items=np.arange(len(self.items)))


@kernel
def ideal_gain(context):  # type: ignore[no-untyped-def]
    """The discounted gain of the candidates with the largest gains, in falling order."""
    largest, size = context.largest, len(context.largest)
    largest[:] = 0.0
    for a in range(len(context.items)):
        gain, place = context.gain[context.items[a]], size
        while place > 0 and largest[place - 1] < gain:
            place -= 1
            if place + 1 < size:
                largest[place + 1] = largest[place]
        if place < size:
            largest[place] = gain
    total = 0.0
    for k in range(size):
        total += largest[k] * context.discount[k]
    return total


@kernel
def ndcg(context, ranking, clicks, expectation):  # type: ignore[no-untyped-def]
    total = 0.0
    if len(context.items) == 0:
        for k in range(len(context.discount)):
            total += context.gain[ranking[k]] * context.discount[k]
        return total
    for k in range(len(context.discount)):
        total += context.gain[context.items[ranking[k]]] * context.discount[k]
    ideal = ideal_gain(context)
    return total / ideal if ideal > 0.0 else 0.0


def gain_context(env: Env, b: int = 0, k: int = 5) -> GainContext:
    """The gains and discounts of NDCG of the first k positions."""
    discount = 1.0 / np.log2(np.arange(2, min(k, env.model.n_positions) + 2))
    largest = np.zeros(len(discount))
    if not env.model.are_alike:
        gains = env.task.gains(env.state, b)
        if gains is None:
            raise _of_others(f"ndcg@{k}", env)
        return GainContext(gains[0], discount, gains[1], largest)
    if "attraction" not in env.task.model.shapes:
        raise ValueError(f"ndcg ranks by attraction, which {env.task.model} does not have")
    gain = env.task.model.attraction
    ideal = float(weighted_sums(np.sort(gain)[::-1][: len(discount)], discount))
    relative = discount / ideal if ideal > 0 else np.zeros(len(discount))
    return GainContext(gain, relative, np.zeros(0, np.int64), largest)


def ndcg_at(k: int) -> Metric:
    """The metric ``ndcg@k``."""
    return Metric(
        f"NDCG of the first {k} positions (ndcg@K of K), also where candidates change; the gain is "
        "that of the users' model, else attraction",
        ndcg,
        partial(gain_context, k=k),
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


def safety_context(env: Env, b: int = 0) -> SafetyContext:
    """The initial list, against which violations are counted."""
    if not env.model.are_alike:
        raise _of_others("violations", env)
    if env.initial_ranking is None:
        raise ValueError(
            "the metric 'violations' needs an initial list, which the instance does not have"
        )
    attraction, initial = env.task.model.attraction, env.initial_ranking[: env.model.n_positions]
    return SafetyContext(attraction, wrong_pairs(attraction, initial) + env.model.n_positions / 2)


METRICS: dict[str, Metric] = {
    "any_click": Metric("sessions with at least one click (CTR_set is their share)", any_click),
    "ndcg": ndcg_at(5),
    "ndcg@10": ndcg_at(10),
    "held_out_ndcg@10": held_out_ndcg_at(10),
    "violations": Metric(
        "lists with more than |V_0| + K/2 wrongly ordered pairs, |V_0| those of the initial list "
        "(Li et al. 2019, eq. 7)",
        violation,
        safety_context,
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
