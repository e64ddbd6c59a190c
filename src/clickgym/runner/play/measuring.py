"""The chosen metrics of a run: one kernel that adds them up, and the agent's answers to held-out
queries.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...agents.agent import UnsuitedError
from ...core.checks import as_array, check_labels, short
from ...core.faults import FAILURES
from ...core.kernels import clock, entry, kernel
from ...core.sums import weighted_sums
from ...envs.any_env import users_of
from ...envs.meter import N_TOTALS, Meter
from .faults import session_error
from .metrics import GainContext, metric_of


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
        builders = [(name, self._metrics[name].context) for name in self.summed]
        for name, build in builders:
            if build is not None and users_of(env) is None:
                raise ValueError(f"the metric {name!r} needs the click model; {env} is no ClickEnv")
        return tuple(None if build is None else build(env, b) for _, build in builders)

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


# ------------------------------------------------------------------------------- held-out queries


Floats = NDArray[np.float64]
Query = tuple[str, NDArray[Any], Floats]
"""What messages call a query; the ``(n, d)`` features and the ``(n,)`` gains of its documents."""


def mean_ndcg(rank: Callable[[Floats], ArrayLike], queries: Iterable[Query], k: int) -> float:
    """Return the mean nDCG@k of a ranking function, over all documents of each query.

    Args:
        rank: maps features ``(n, d)`` float64 to the order of the n rows, the best first.
        queries: those without a document of some gain are left out of the mean.
        k: the number of positions that count.

    Raises:
        ValueError: ``rank`` returned no order of the rows; no query has a relevant document.
    """
    values = []
    for name, features, gain in queries:
        if not gain.any():
            continue
        order = as_array(f"the order by rank of {name}", rank(features.astype(np.float64)))
        if order.dtype.kind not in "iu" or not np.array_equal(np.sort(order), range(len(gain))):
            expected = f"expected an order of its {len(gain)} rows"
            raise ValueError(f"rank returned {short(order)} for {name}; {expected}")
        discount = 1.0 / np.log2(np.arange(2, min(k, len(gain)) + 2))
        shown, ideal = (
            float(weighted_sums(row[: len(discount)], discount))
            for row in (gain[order], -np.sort(-gain))
        )
        values.append(shown / ideal)
    if not values:
        raise ValueError("no query has a relevant document")
    return math.fsum(values) / len(values)


def held_out_queries(env: Any, metric: str) -> Iterator[Query]:
    """Return the held-out queries of an environment's users.

    Raises:
        ValueError: they have none; the message names the metric that needs them.
    """
    users: Any = users_of(env)
    if getattr(users, "held_out", None) is None:
        cure = "give test queries: judged_instance(train, test=...), or clickgym judgments --test"
        raise ValueError(
            f"the metric {metric!r} needs held-out queries, which {env} does not have; {cure}"
        )
    return (
        (f"held-out query {number}", users.items[items], users.gain[items])
        for number, items in enumerate(users.held_out)
    )


def check_ranks_features(agent: Any, metric: str) -> None:
    """Check that an agent can rank the documents of held-out queries.

    Raises:
        UnsuitedError: its class has no ``best`` that takes features.
    """
    best = getattr(agent, "best", None)
    try:
        inspect.signature(best).bind(None)  # type: ignore[arg-type]
    except TypeError:
        reason = f"cannot rank held-out queries for {metric}: no best(features) in the class"
        raise UnsuitedError(type(agent).__name__, reason) from None
