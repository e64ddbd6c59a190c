"""The additional metrics of one run, in a single kernel for both engines."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents.agent import UnsuitedError
from ...core.checks import check_labels, is_sequence
from ...core.compiling import KernelError, numba
from ...core.errors import FAILURES, SessionError, as_in_compiled_code, cause
from ...core.kernels import clock, entry, kernel
from ...core.messages import short_repr, value_error
from ...envs.base_env import name_of
from ...envs.env_properties import user_model_of
from ...envs.spaces import list_sizes
from ...measure.meter import N_TOTALS, CheckpointMeter
from ...measure.metrics import AT_K, METRICS, held_out_queries, is_own_metric, mean_ndcg, metric_of
from ...measure.result import HOW_PLAYED, RUN_COLUMNS, TOTALS
from ..errors import agent_error
from ..make.labels import split_label

RESERVED_NAMES = {
    *(*RUN_COLUMNS, *TOTALS, *HOW_PLAYED),
    *("unit", "over", "units", "runs", "value", "gap", "environment", "ns_per_session"),
    *("median", "worst", "reference", "difference", "p"),
}
"""The columns of results and of summaries. No metric may have the name of one of them."""
FAILED = float(np.finfo(float).min)
"""The total of a metric while its kernel runs, and from then on if the kernel fails. No sum is this
number, but it may be nan or infinite.
"""
WHAT_TO_READ = '"A metric of your own" in docs/runner.md says what a metric can read'
EXPECTATION = 1e-3
"""The expected reward with which kernels are tried: a number that one can divide by, and that is
below the expected reward of the best list.
"""


@cache
def make_metrics_kernel(
    value: Callable[..., float], column: int, measure_rest: Callable[..., None]
) -> Callable[..., None]:
    """Return a kernel that adds a session's value of one metric to the totals, and then calls
    ``measure_rest`` for the remaining metrics.

    Args:
        value: the kernel of the metric.
        column: the index of the metric in the totals.
        measure_rest: the kernel for the remaining metrics.
    """

    @kernel
    def measure(contexts, ranking, clicks, expectation, totals):  # type: ignore[no-untyped-def]
        total = totals[column]
        totals[column] = FAILED
        totals[column] = total + value(contexts[0], ranking, clicks, expectation)
        measure_rest(contexts[1:], ranking, clicks, expectation, totals)

    return measure


@kernel
def measure_nothing(contexts, ranking, clicks, expectation, totals):  # type: ignore[no-untyped-def]
    pass


class AdditionalMetrics:
    """The additional metrics of one run, combined in a single kernel.

    The kernel is called as ``kernel(contexts, ranking, clicks, expectation, totals)``.

    Args:
        metrics: the names of the metrics, which `metric_of` must accept, with ``LABEL=`` before the
            name of a user's own metric if its column is to have another name; or a mapping from
            labels to names. By default, none.

    Attributes:
        specs: the metrics as text, with their labels.
        names: the names of all metrics, or their labels, which become columns of the table.
        summed: the names of the metrics that the kernel sums. In the totals, these metrics follow
            regret, reward and clicks.
        held_out: the metrics for which the agent ranks held-out queries at each checkpoint, with
            their values so far.
        held_out_seconds: the time spent on ranking held-out queries, in seconds.

    Raises:
        ValueError, ImportError: a name is unknown, is given twice, or is the name of a column of
            results; or a label stands before a metric of clickgym, or is the name of one.
    """

    def __init__(self, metrics: Iterable[str] | Mapping[str, str] = ()) -> None:
        names = [*metrics.values()] if isinstance(metrics, Mapping) else metrics
        if is_sequence(names) and not all(isinstance(name, str) for name in names):
            expected = 'names such as "ndcg", and "my_module:my_metric" for your own metric'
            raise value_error("metrics", metrics, expected)
        if isinstance(metrics, Mapping):
            labelled = metrics.items()
            metrics = [name if label == name else f"{label}={name}" for label, name in labelled]
        self.specs = check_labels("metrics", metrics)
        pairs = [split_label(spec) for spec in self.specs]
        self.names = check_labels("metrics", [label or name for label, name in pairs])
        for label, name in pairs:
            if (label or name) in RESERVED_NAMES or re.search("_ci95(_runs)?$", label or name):
                raise ValueError(
                    f"the metric {label or name!r} has the name of a column of the results; give "
                    "it another label"
                )
        self._metrics = {label or name: metric_of(name) for label, name in pairs}
        for label, name in pairs:
            if label is None:
                continue
            if not is_own_metric(name):
                raise ValueError(
                    f"metric {f'{label}={name}'!r} has a label, but only your own metric, "
                    f"module:name, can have one; expected {name}"
                )
            if label in METRICS or label.partition("@")[0] in AT_K or not label.isprintable():
                raise ValueError(
                    f"metric {f'{label}={name}'!r} has the label {label!r}; expected printable "
                    "text other than the name of a metric of clickgym"
                )
        self.summed = tuple(name for name, metric in self._metrics.items() if metric.kernel)
        self.held_out: dict[str, list[float]] = {
            name: [] for name, metric in self._metrics.items() if not metric.kernel
        }
        self.held_out_seconds = 0.0
        self.kernel = measure_nothing
        for column, name in reversed(list(enumerate(self.summed, N_TOTALS))):
            kernel = self._metrics[name].kernel
            assert kernel is not None
            self.kernel = make_metrics_kernel(kernel, column, self.kernel)
        self._measure = entry(self.kernel)
        self._state: Any = None
        self._contexts: list[tuple[Any, ...]] = []

    def measure(
        self,
        contexts: tuple[Any, ...],
        ranking: NDArray[np.int64],
        clicks: NDArray[Any],
        expectation: float,
        totals: NDArray[np.float64],
    ) -> None:
        """Add the values of a session to the totals.

        Raises:
            SessionError: a metric failed.
        """
        try:
            self._measure(contexts, ranking, clicks, expectation, totals)
        except KernelError:
            raise
        except FAILURES as error:
            raise self.metric_error(error, totals) or error from error

    def metric_error(
        self, error: BaseException, totals: NDArray[np.float64]
    ) -> SessionError | None:
        """Return the error to raise if the kernel of a metric failed; it names the metric. Return
        None if all metrics of the session were computed.
        """
        for name, total in zip(self.summed, totals[N_TOTALS:], strict=True):
            spec = self.specs[self.names.index(name)]
            if total == FAILED and is_own_metric(spec):  # no other metric fails
                return SessionError(f"the metric {spec}: {cause(error)}")
        return None

    def columns(self, meter: CheckpointMeter) -> dict[str, NDArray[np.float64]]:
        """Return the values of each metric at the checkpoints, by the metric's name."""
        columns = dict(zip(self.summed, meter.metrics.T, strict=True))
        columns |= {name: np.array(values) for name, values in self.held_out.items()}
        return {name: columns[name] for name in self.names}

    def check_env(self, env: Any) -> None:
        """Check that an environment has everything that the metrics require, and try the kernels.

        Raises:
            ValueError: the environment lacks something that a metric requires, a kernel cannot
                read the context of a user's own metric, or a kernel fails or returns nan.
        """
        for name, context in zip(self.summed, self.contexts(env), strict=True):
            try:
                if numba is not None:
                    numba.typeof(context)
            except ValueError:
                subject = f"the context of the metric {name!r} in {name_of(env)}"
                raise value_error(subject, context, "numbers, arrays or tuples of them") from None
            self._try(name, context, env)
        for name in self.held_out:
            held_out_queries(env, name)

    def _try(self, name: str, context: Any, env: Any) -> None:
        """Call the kernel of a metric in Python, which detects an index out of range, for the first
        and for the last items, without a click and with a click at the last position.
        """
        kernel, sizes = self._metrics[name].kernel, list_sizes(env.action_space)
        assert kernel is not None
        assert sizes is not None
        n_items, n_positions = sizes
        first, last = np.arange(n_positions), np.arange(n_items)[::-1][:n_positions].copy()
        no_click, click = np.zeros(n_positions, np.int8), np.eye(n_positions, dtype=np.int8)[-1]
        values: list[Any] = []
        for ranking, clicks in product((first, last), (no_click, click)):
            shown = f"the list {ranking.tolist()} with the clicks {clicks.tolist()}"
            session = f"in {name_of(env)} for {shown}"
            try:
                with as_in_compiled_code():
                    value: Any = kernel(_copied_context(context), ranking, clicks, EXPECTATION)
            except FAILURES as error:
                raise ValueError(f"the metric {name!r} failed {session}: {cause(error)}") from error
            if not isinstance(value, int | float | np.number | np.bool_):
                returned = f"returned {short_repr(value)} {session}"
                raise ValueError(f"the metric {name!r} {returned}; expected a number")
            values.append(value)
        if np.isnan(values).all():
            fault = f"is nan in {name_of(env)}, with and without a click"
            raise ValueError(f"the metric {name!r} {fault}; {WHAT_TO_READ}")

    def hints(self, env: Any, name: str = "") -> list[str]:
        """Return a warning for each metric whose context contains nan, because a kernel that
        compares with nan returns a number that means nothing.

        Args:
            env: the environment.
            name: the environment's name in messages; by default, its own name.
        """
        return [
            f"the context of the metric {metric!r} in {name or name_of(env)} contains nan, and "
            f"every comparison with nan is false; {WHAT_TO_READ}"
            for metric, context in zip(self.summed, self.contexts(env), strict=True)
            if _has_nan(context)
        ]

    def check_agent(self, agent: Any) -> None:
        """Check that an agent can rank held-out queries, if a metric requires this.

        Raises:
            UnsuitedError: the agent's class has no method ``best(features)``.
        """
        for name in self.held_out:
            try:
                inspect.signature(getattr(agent, "best", None)).bind(None)  # type: ignore[arg-type]
            except TypeError:
                reason = (
                    f"cannot rank held-out queries for {name}: its class has no method "
                    "best(features)"
                )
                raise UnsuitedError(type(agent).__name__, reason) from None

    def measure_held_out(self, agent: Any, env: Any, meter: CheckpointMeter) -> None:
        """If a new checkpoint has been reached, let the agent rank the documents of all held-out
        queries, and store the values of the held-out metrics.

        Raises:
            AgentError: the agent failed, or did not return a permutation of a query's documents.
        """
        for name, values in self.held_out.items():
            n_new = len(meter.steps) - len(values)  # a step of streams may pass several checkpoints
            if n_new:
                start = clock()
                queries = held_out_queries(env, name)
                try:
                    value = mean_ndcg(agent.best, queries, self._metrics[name].k)
                except FAILURES as error:
                    when = f"{name} after step {meter.step}"
                    raise agent_error(agent, env, when, error) from error
                values += [value] * n_new
                self.held_out_seconds += clock() - start

    def contexts(self, env: Any, b: int = 0) -> tuple[Any, ...]:
        """Return the context of each summed metric, for the current users on stream ``b``.

        Raises:
            ValueError: the environment lacks something that a metric requires, or the function of
                a user's own metric failed.
        """
        return tuple(self._context(name, env, b) for name in self.summed)

    def _context(self, name: str, env: Any, b: int) -> Any:
        build = self._metrics[name].context
        if build is None:
            return None
        if user_model_of(env) is None:
            raise ValueError(
                f"the metric {name!r} requires a click model, but {name_of(env)} is not a ClickEnv"
            )
        try:
            return build(env, b)
        except ValueError:
            raise
        except FAILURES as error:
            subject = f"the context of the metric {name!r} in {name_of(env)}"
            cure = f"; {WHAT_TO_READ}" if isinstance(error, AttributeError) else ""
            raise ValueError(f"{subject}: {cause(error)}{cure}") from error

    def before_step(self, env: Any, n_streams: int = 1) -> list[tuple[Any, ...]]:
        """Return the contexts of each stream's next session. The contexts do not change when the
        step draws new candidates.
        """
        state = getattr(env, "state", None)
        if not self._contexts or state is not self._state:  # at the start, and when users change
            self._state = state
            self._contexts = [self.contexts(env, b) for b in range(n_streams)]
        return [tuple(map(_copied_context, contexts)) for contexts in self._contexts]


def _has_nan(context: Any) -> bool:
    if isinstance(context, tuple):
        return any(map(_has_nan, context))
    return isinstance(context, float | np.ndarray) and bool((np.asarray(context) != context).any())


def _copied_context(context: Any) -> Any:
    """Return a context in which arrays are replaced by copies, because the step may overwrite them
    before the metric is computed.
    """
    if hasattr(context, "before_step"):
        return context.before_step()
    if isinstance(context, np.ndarray):
        return context.copy()
    if isinstance(context, tuple):
        values = [_copied_context(value) for value in context]
        return context._make(values) if hasattr(context, "_make") else tuple(values)
    return context
