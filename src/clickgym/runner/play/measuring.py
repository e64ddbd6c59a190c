"""The chosen metrics of a run: one kernel that adds them up, and the agent's answers to held-out
queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.checks import check_labels
from ...core.faults import FAILURES
from ...core.kernels import clock, entry, kernel
from ...envs.any_env import users_of
from ...envs.meter import N_TOTALS, Meter
from .faults import session_error
from .held_out import check_ranks_features, held_out_queries, mean_ndcg
from .metrics import Metric, metric_of
from .ndcg import GainContext


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
