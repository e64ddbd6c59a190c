"""Metrics besides regret, reward and clicks: most are sums over sessions.

A metric is one kernel, ``value(context, ranking, clicks, expectation) -> float``, summed over the
sessions, and one function that builds its context, a named tuple of arrays, from the environment
whenever the users change. To add one, write the two and enter them in `METRICS`; both engines, the
table and the command line then know it. A metric that is not asked for is not compiled in. Held-out
queries are no sum: the agent ranks them at each checkpoint.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.checks import check_choice, check_labels, short
from ...core.faults import FAILURES
from ...core.kernels import clock, entry, kernel
from ...core.sums import weighted_sums
from ...envs import ClickEnv, ClickVectorEnv
from ...envs.any_env import users_of
from ...envs.meter import N_TOTALS, Meter
from .faults import session_error
from .held_out import check_ranks_features, held_out_queries, mean_ndcg

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


# --------------------------------------------------------------------------------------------- NDCG


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
        gain, items = env.task.gains(env.state, b)
        return GainContext(gain, discount, items, largest)
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
        held_out: those that ask the agent at each checkpoint, with their values so far.
        seconds: how long it took to ask.

    Raises:
        ValueError: on an unknown name, or one named twice.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names = check_labels("metrics", names)
        self._metrics = {name: metric_of(name) for name in self.names}
        self.summed = tuple(name for name, metric in self._metrics.items() if metric.kernel)
        self.held_out: dict[str, list[float]] = {
            name: [] for name, metric in self._metrics.items() if not metric.kernel
        }
        self.seconds = 0.0
        self.kernel = nothing
        for column, name in reversed(list(enumerate(self.summed, N_TOTALS))):
            kernel = self._metrics[name].kernel
            assert kernel is not None
            self.kernel = chain(kernel, column, self.kernel)
        self.measure = entry(self.kernel)
        self._state: Any = None
        self._contexts: list[tuple[Any, ...]] = []

    def columns(self, meter: Meter) -> dict[str, NDArray[np.float64]]:
        """The values at the checkpoints, by name."""
        columns = dict(zip(self.summed, meter.metrics.T, strict=True))
        columns |= {name: np.array(values) for name, values in self.held_out.items()}
        return {name: columns[name] for name in self.names}

    def check_env(self, env: Any) -> None:
        """Check that an environment has what the metrics need.

        Raises:
            ValueError: it lacks something.
        """
        self.contexts(env)
        for name in self.held_out:
            held_out_queries(env, name)

    def check_agent(self, agent: Any) -> None:
        """Check that an agent can do what the metrics ask.

        Raises:
            UnsuitedError: it cannot.
        """
        for name in self.held_out:
            check_ranks_features(agent, name)

    def ask(self, agent: Any, env: Any, meter: Meter) -> None:
        """Let the agent rank the held-out queries, if a checkpoint was reached.

        Raises:
            AgentError: it failed, or returned no order of their documents.
        """
        for name, values in self.held_out.items():
            n_new = len(meter.steps) - len(values)  # parallel streams may pass several at once
            if n_new:
                before = clock()
                queries = held_out_queries(env, name)
                try:
                    value = mean_ndcg(agent.best, queries, self._metrics[name].k)
                except FAILURES as error:
                    when = f"{name} after step {meter.step}"
                    raise session_error(agent, env, when, error) from error
                values += [value] * n_new
                self.seconds += clock() - before

    def contexts(self, env: Any, b: int = 0) -> tuple[Any, ...]:
        """The data about the environment's present task, on stream b, that the kernels need.

        Raises:
            ValueError: the environment lacks what a metric needs.
        """
        contexts: list[Any] = []
        for name in self.summed:
            metric = self._metrics[name]
            if metric.context is None:
                contexts.append(None)
            else:
                _check_users(env, name, metric)
                of_stream = (env, b) if metric.takes_candidates else (env,)
                contexts.append(metric.context(*of_stream))
        return tuple(contexts)

    def before_step(self, env: Any, n_streams: int = 1) -> list[tuple[Any, ...]]:
        """The contexts of the coming session of each stream, where a step also draws the candidates
        after it.
        """
        state = getattr(env, "state", None)
        if not self._contexts or state is not self._state:  # at the start, and where users change
            self._state = state
            self._contexts = [self.contexts(env, b) for b in range(n_streams)]
        return [tuple(map(_of_session, contexts)) for contexts in self._contexts]


def _of_session(context: Any) -> Any:
    return context.before_step() if isinstance(context, GainContext) else context


def _check_users(env: Any, name: str, metric: Metric) -> None:
    """Refuse users whom a metric cannot know, or with other items or states in every session."""
    users = users_of(env)
    if users is None:
        raise ValueError(f"the metric {name!r} needs the click model; {env} is no ClickEnv")
    has_gains = env.task.gains(env.state) is not None
    if not users.are_alike and not (has_gains and metric.takes_candidates):
        cure = "; expected ndcg@10" if has_gains and name == "ndcg" else ""
        raise ValueError(
            f"the metric {name!r} needs the same items and users in every session; "
            f"{env} has others{cure}"
        )
