"""Metrics in addition to regret, reward and clicks; most of them are sums over sessions.

A metric consists of a kernel and a function. The kernel, ``value(context, ranking, clicks,
expectation) -> float``, computes the metric's value for one session; these values are summed over
the sessions. The function builds the kernel's context, a named tuple of arrays, from the
environment whenever the users change. To add a metric to clickgym, write its kernel and its
function, and add them to `METRICS`. Users name their own metric as ``module:name``. Both engines,
the table and the command line then support the metric. Only the requested metrics are compiled.
Metrics of held-out queries are not sums: the agent ranks these queries at each checkpoint.
"""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.checks import as_array
from ..core.kernels import kernel
from ..core.messages import short_repr, suggestions, value_error
from ..core.state import Floats
from ..core.sums import weighted_sums
from ..core.user_modules import import_user_object
from ..envs import ClickEnv, ClickVectorEnv
from ..envs.base_env import name_of
from ..envs.env_properties import user_model_of

Env = ClickEnv | ClickVectorEnv

KERNEL_ARGUMENTS = ("context", "ranking", "clicks", "expectation")
"""What a metric's kernel gets for each session."""


class Metric(NamedTuple):
    """The definition of an additional metric.

    Attributes:
        description: a line about the metric, which ``clickgym list`` prints.
        kernel: the function that computes the metric's value for one session. The values are summed
            over the sessions, so a ratio of two sums cannot be a metric. None if the agent ranks
            held-out queries at each checkpoint instead.
        context: the function that builds the kernel's context from an environment and the number of
            a stream; None if the kernel needs no context.
        k: the number of positions that count in the list for a held-out query.
        is_share: whether the mean per session is always between 0 and 1, so that bands in figures
            are cut off at 0 and 1.
        less_is_better: whether a table about this metric begins with the lowest mean.

    Example:
        >>> import clickgym
        >>> from clickgym.runner import METRICS
        >>> def top_click(context, ranking, clicks, expectation):
        ...     return float(clicks[0])
        >>> METRICS["top_click"] = Metric("clicks on the first position", top_click, is_share=True)
        >>> result = clickgym.run("Random", "PBMRank-v0", 100, seed=0, metrics=["top_click"])
        >>> bool(0 < result.metrics["top_click"][-1] <= result.clicks[-1])
        True
        >>> del METRICS["top_click"]
    """

    description: str
    kernel: Callable[..., float] | None
    context: Callable[..., Any] | None = None
    k: int = 0
    is_share: bool = False
    less_is_better: bool = False


def _varying_error(name: str, env: Env) -> ValueError:
    """Return the error to raise if items or users change, but a metric requires fixed ones."""
    needs = "requires the same items and users in every session"
    return ValueError(f"the metric {name!r} {needs}, but {name_of(env)} changes them; leave it out")


# ---------------------------------------------------------------------------------------- any_click


@kernel
def any_click(context, ranking, clicks, expectation):  # type: ignore[no-untyped-def]
    for k in range(len(clicks)):
        if clicks[k]:
            return 1.0
    return 0.0


# ------------------------------------------------------------------------------------------ ndcg@k


class GainContext(NamedTuple):
    gain: NDArray[np.float64]  # (L,) attractions; (N,) gains of all items if candidates change
    discount: NDArray[np.float64]  # (m,) 1 / log2(k + 1); divided by the ideal if items are fixed
    items: NDArray[np.int64]  # (L,) the candidates' indices in gain; (0,) if items are fixed
    largest: NDArray[np.float64]  # (m,) working memory

    def before_step(self) -> GainContext:
        """Return the context of the next session, in a form that does not change when the
        environment overwrites its state.
        """
        if not len(self.items):
            return self
        return self._replace(gain=self.gain[self.items], items=np.arange(len(self.items)))


@kernel
def ideal_gain(context):  # type: ignore[no-untyped-def]
    """Return the discounted gain of the ideal list, which sorts candidates by decreasing gain."""
    largest, size = context.largest, len(context.largest)
    largest[:] = 0.0
    for a in range(len(context.items)):
        gain, j = context.gain[context.items[a]], size
        while j > 0 and largest[j - 1] < gain:
            j -= 1
            if j + 1 < size:
                largest[j + 1] = largest[j]
        if j < size:
            largest[j] = gain
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


def _attraction_of(env: Env, metric: str) -> NDArray[np.float64]:
    """Return the items' attraction probabilities, ``(L,)``; if the model has none, raise a
    ValueError that names the metric.
    """
    attraction: NDArray[np.float64] | None = getattr(env.task.model, "attraction", None)
    if attraction is None:
        raise ValueError(
            f"the metric {metric!r} requires attraction, which {env.task.model} does not have"
        )
    return attraction


def gain_context(env: Env, b: int = 0, k: int = 5) -> GainContext:
    """Return the context of the kernel `ndcg` for the first k positions."""
    discount = 1.0 / np.log2(np.arange(2, min(k, env.model.n_positions) + 2))
    largest = np.zeros(len(discount))
    if not env.model.iid_sessions:
        gains = env.task.gains(env.state, b)
        if gains is None:
            raise _varying_error(f"ndcg@{k}", env)
        return GainContext(gains[0], discount, gains[1], largest)
    gain = _attraction_of(env, f"ndcg@{k}")
    ideal = float(weighted_sums(np.sort(gain)[::-1][: len(discount)], discount))
    relative = discount / ideal if ideal > 0 else np.zeros(len(discount))
    return GainContext(gain, relative, np.zeros(0, np.int64), largest)


def ndcg_at(k: int) -> Metric:
    """Return the metric ``ndcg@k``, the NDCG of the first k positions."""
    return Metric(
        f"NDCG of the first {k} positions, or of the whole list if it is shorter; ndcg@K uses the "
        "first K positions. An item's gain is its gain in the users' model, or its attraction if "
        "the model has no gains",
        ndcg,
        partial(gain_context, k=k),
        is_share=True,
    )


def held_out_ndcg_at(k: int) -> Metric:
    """Return the metric ``held_out_ndcg@k``, the mean NDCG of held-out queries."""
    return Metric(
        f"mean NDCG of the first {k} documents of held-out queries, which the agent ranks without "
        "exploration at each checkpoint",
        None,
        k=k,
        is_share=True,
    )


AT_K: dict[str, Callable[[int], Metric]] = {"ndcg": ndcg_at, "held_out_ndcg": held_out_ndcg_at}
"""Functions that create metrics of the first k positions, by the metric's name before ``@k``."""


# --------------------------------------------------------------------------------------- violations


class SafetyContext(NamedTuple):
    attraction: NDArray[np.float64]  # (L,)
    allowed: float  # |V_0| + K/2


@kernel
def wrong_pairs(attraction, ranking):  # type: ignore[no-untyped-def]
    """Count the pairs of shown items in which the strictly more attractive item is below the other
    item.
    """
    count = 0
    for k in range(len(ranking)):
        for below in range(k + 1, len(ranking)):
            count += attraction[ranking[below]] > attraction[ranking[k]]
    return count


@kernel
def violation(context, ranking, clicks, expectation):  # type: ignore[no-untyped-def]
    return 1.0 if wrong_pairs(context.attraction, ranking) > context.allowed else 0.0


def safety_context(env: Env, b: int = 0) -> SafetyContext:
    """Return the context of the kernel `violation`, with the allowed number of wrong pairs."""
    if not env.model.iid_sessions:
        raise _varying_error("violations", env)
    if env.initial_ranking is None:
        raise ValueError(
            "the metric 'violations' requires a production list; use an instance with an "
            "initial_ranking"
        )
    attraction = _attraction_of(env, "violations")
    initial = env.initial_ranking[: env.model.n_positions]
    return SafetyContext(attraction, wrong_pairs(attraction, initial) + env.model.n_positions / 2)


METRICS: dict[str, Metric] = {
    "any_click": Metric(
        "sessions with at least one click (as a share: CTR_set)", any_click, is_share=True
    ),
    "ndcg": ndcg_at(5),
    "ndcg@10": ndcg_at(10),
    "held_out_ndcg@10": held_out_ndcg_at(10),
    "violations": Metric(
        "lists with over K/2 more wrongly ordered pairs of shown items than the production list "
        "(Li et al. 2019, eq. 7)",
        violation,
        safety_context,
        is_share=True,
        less_is_better=True,
    ),
}
"""The metrics by name. `metric_of` also accepts names with another number, such as ndcg@3, and
names of users' own metrics, such as ``my_module:my_metric``.
"""


def metric_of(name: str) -> Metric:
    """Return the metric with a given name. For ``module:name``, import the module.

    Raises:
        ValueError, ImportError: there is no metric with this name.
    """
    if is_own_metric(name):
        return _own_metric(name)
    family, at, k = name.partition("@")
    if not at or family not in AT_K:
        if name not in METRICS:
            raise ValueError(
                f"unknown metric {name!r}{suggestions(name, METRICS)}; name your own metric as "
                "module:name"
            )
        return METRICS[name]
    if not re.fullmatch("[1-9][0-9]{0,8}", k):
        expected = f"expected {family}@k with an integer k of at least 1, as in {family}@10"
        raise ValueError(f"metric is {short_repr(name)}; {expected}")
    return AT_K[family](int(k))


def is_own_metric(name: str) -> bool:
    """Return whether a metric's name is that of a `Metric` in a user's module."""
    return ":" in name and name not in METRICS


def _own_metric(name: str) -> Metric:
    metric = import_user_object("metric", name)
    if not (isinstance(metric, Metric) and inspect.isfunction(metric.kernel)):
        expected = "a clickgym.runner.Metric whose kernel is a function"
        example = 'as in Metric("what it measures", my_kernel)'
        raise value_error(f"metric {name!r}", metric, f"{expected}, {example}")
    try:
        inspect.signature(metric.kernel).bind(*KERNEL_ARGUMENTS)
    except TypeError:
        taken = inspect.signature(metric.kernel)
        raise ValueError(
            f"metric {name!r}: its kernel takes {taken}; expected ({', '.join(KERNEL_ARGUMENTS)})"
        ) from None
    return metric._replace(kernel=kernel(metric.kernel))


def _metric_of_results(name: str) -> Metric | None:
    """Return the metric behind a column of results, or None if the column is not a known metric.

    Regret and reward are not metrics, and a metric is unknown if its module was not imported.
    """
    if is_own_metric(name) and name.partition(":")[0] not in sys.modules:
        return None
    try:
        return metric_of(name)
    except ValueError:
        return None


def is_sum(name: str) -> bool:
    """Return whether a column of results is a running sum over the sessions. Unknown metrics are
    assumed to be sums.
    """
    metric = _metric_of_results(name)
    return metric is None or metric.kernel is not None


def is_share(name: str) -> bool:
    """Return whether a metric's mean per session is known to lie between 0 and 1."""
    metric = _metric_of_results(name)
    return metric is not None and metric.is_share


def less_is_better(name: str) -> bool:
    """Return whether a good agent is known to have little of a column of results. Of any other
    column, it has much.
    """
    metric = _metric_of_results(name)
    return name == "regret" or (metric is not None and metric.less_is_better)


# ------------------------------------------------------------------------------- held-out queries


Query = tuple[str, NDArray[Any], Floats]
"""A query: its name in messages, and its n documents' features ``(n, d)`` and gains ``(n,)``."""


def mean_ndcg(rank: Callable[[Floats], ArrayLike], queries: Iterable[Query], k: int) -> float:
    """Return the nDCG@k of a ranking function, averaged over queries.

    Args:
        rank: a function that takes the features ``(n, d)`` of a query's documents, as float64, and
            returns the n row numbers in order, the best document first.
        queries: the queries to rank. Queries in which no document has a gain are left out.
        k: the number of positions that count.

    Raises:
        ValueError: ``rank`` did not return a permutation of the row numbers, or no query has a
            relevant document.
    """
    values = []
    for name, features, gain in queries:
        if not gain.any():
            continue
        order = as_array(f"the result of rank for {name}", rank(features.astype(np.float64)))
        if order.dtype.kind not in "iu" or not np.array_equal(np.sort(order), range(len(gain))):
            expected = f"expected a permutation of its {len(gain)} row numbers"
            raise ValueError(f"rank returned {short_repr(order)} for {name}; {expected}")
        discount = 1.0 / np.log2(np.arange(2, min(k, len(gain)) + 2))
        dcg, ideal_dcg = (
            float(weighted_sums(row[: len(discount)], discount))
            for row in (gain[order], -np.sort(-gain))
        )
        values.append(dcg / ideal_dcg)
    if not values:
        raise ValueError("no query has a relevant document; add a query with a positive gain")
    return math.fsum(values) / len(values)


def held_out_queries(env: Any, metric: str) -> Iterator[Query]:
    """Return the held-out queries of an environment's users.

    Raises:
        ValueError: there are no held-out queries; the message names ``metric``, the metric that
            requires them.
    """
    model: Any = user_model_of(env)
    if getattr(model, "held_out", None) is None:
        cure = (
            "add test queries with clickgym.logs.judged_instance(train, test=...), or with "
            "clickgym judgments --test"
        )
        raise ValueError(
            f"the metric {metric!r} requires held-out queries, which {name_of(env)} does not have; "
            f"{cure}"
        )
    return (
        (f"held-out query {number}", model.items[items], model.gain[items])
        for number, items in enumerate(model.held_out)
    )
