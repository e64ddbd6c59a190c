"""Metrics besides regret, reward and clicks: sums over sessions.

A metric is one kernel, ``value(context, ranking, clicks, expectation) -> float``, summed over the
sessions, and one function that builds its context, a named tuple of arrays, from the environment
whenever the users change. To add one, write the two and enter them in `METRICS`; both engines, the
table and the command line then know it. A metric that is not asked for is not compiled in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_choice, check_labels
from ..core.kernels import entry, kernel
from ..core.sums import weighted_sums
from ..envs import ClickEnv, ClickVectorEnv
from ..envs.any_env import users_of
from ..envs.meter import N_TOTALS, Meter

Env = ClickEnv | ClickVectorEnv


class Metric(NamedTuple):
    """A metric.

    Attributes:
        description: one line, for the command line.
        kernel: what is summed over the sessions; None for a metric that follows from the regret.
        context: builds the kernel's context; None if it needs none. A metric with a context is
            refused where candidates or states change from session to session.
        kind: ``"sum"``, a running sum over the sessions, of which tables show the mean of a
            session (so a ratio of two sums is none); or ``"window"``, the mean since the checkpoint
            before.
    """

    description: str
    kernel: Callable[..., float] | None
    context: Callable[[Env], Any] | None = None
    kind: Literal["sum", "window"] = "sum"


# ---------------------------------------------------------------------------------------- any_click


@kernel
def any_click(context, ranking, clicks, expectation):  # type: ignore[no-untyped-def]
    for k in range(len(clicks)):
        if clicks[k]:
            return 1.0
    return 0.0


# --------------------------------------------------------------------------------------------- NDCG


class GainContext(NamedTuple):
    gain: NDArray[np.float64]  # (L,) attraction
    discount: NDArray[np.float64]  # (m,) 1 / log2(k + 1) over the ideal Σ gain / log2(k + 1)


@kernel
def ndcg(context, ranking, clicks, expectation):  # type: ignore[no-untyped-def]
    total = 0.0
    for k in range(len(context.discount)):
        total += context.gain[ranking[k]] * context.discount[k]
    return total


def gain_context(env: Env) -> GainContext:
    """The gains and discounts of NDCG."""
    gain = env.task.model.attraction
    discount = 1.0 / np.log2(np.arange(2, min(5, env.model.n_positions) + 2))
    ideal = float(weighted_sums(np.sort(gain)[::-1][: len(discount)], discount))
    return GainContext(gain, discount / ideal if ideal > 0 else np.zeros(len(discount)))


# --------------------------------------------------------------------------------------- violations


class SafetyContext(NamedTuple):
    attraction: NDArray[np.float64]  # (L,)
    allowed: float  # |V_0| + K/2


@kernel
def wrong_pairs(attraction, ranking):  # type: ignore[no-untyped-def]
    """How many pairs of shown items have the strictly more attractive one lower."""
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
    "window_regret": Metric(
        "regret per session since the checkpoint before (Zoghi et al. 2017 draw it over windows of "
        "100,000 sessions)",
        None,
        kind="window",
    ),
}
"""The metrics by name."""


def is_sum(name: str) -> bool:
    """Whether a column of results is a running sum over the sessions."""
    return name not in METRICS or METRICS[name].kind == "sum"


# -------------------------------------------------------------------------------- several, compiled


@cache
def chain(
    value: Callable[..., float], column: int, rest: Callable[..., None]
) -> Callable[..., None]:
    """The kernel that adds a metric to its column of the totals, and then those of ``rest``."""

    @kernel
    def measure(contexts, ranking, clicks, expectation, totals):  # type: ignore[no-untyped-def]
        totals[column] += value(contexts[0], ranking, clicks, expectation)
        rest(contexts[1:], ranking, clicks, expectation, totals)

    return measure


@kernel
def nothing(contexts, ranking, clicks, expectation, totals):  # type: ignore[no-untyped-def]
    pass


class Metrics:
    """The chosen metrics as one kernel, ``kernel(contexts, ranking, clicks, expectation, totals)``.

    Args:
        names: of `METRICS`.

    Attributes:
        names: all of them, the columns of the table.
        summed: those that the kernel sums, in the totals after regret, reward and clicks.

    Raises:
        ValueError: on an unknown name, or one named twice.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names = check_labels("metrics", names)
        for name in self.names:
            check_choice("metric", name, METRICS)
        self.summed = tuple(name for name in self.names if METRICS[name].kernel)
        self.kernel = nothing
        for column, name in reversed(list(enumerate(self.summed, N_TOTALS))):
            self.kernel = chain(METRICS[name].kernel, column, self.kernel)
        self.measure = entry(self.kernel)

    def columns(self, meter: Meter) -> dict[str, NDArray[np.float64]]:
        """The values at the checkpoints, by name."""
        columns = dict(zip(self.summed, meter.metrics.T, strict=True))
        for name in self.names:
            if METRICS[name].kind == "window":
                windows = np.diff(meter.steps, prepend=0)
                columns[name] = np.diff(meter.regret, prepend=0.0) / windows
        return {name: columns[name] for name in self.names}

    def contexts(self, env: Any) -> tuple[Any, ...]:
        """The data about the environment's present task that the kernels need.

        Raises:
            ValueError: the environment lacks what a metric needs.
        """
        contexts = []
        for name in self.summed:
            builder = METRICS[name].context
            contexts.append(None if builder is None else builder(_with_users(env, name)))
        return tuple(contexts)


def _with_users(env: Any, metric: str) -> Any:
    """An environment whose users a metric can know; they must be the same in every session."""
    users = users_of(env)
    if users is None:
        raise ValueError(f"the metric {metric!r} needs the click model; {env} is no ClickEnv")
    if not users.are_alike:
        raise ValueError(
            f"the metric {metric!r} needs the same items and users in every session; "
            f"{env} has others"
        )
    return env
