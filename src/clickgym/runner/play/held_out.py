"""Held-out queries: how well an agent ranks documents that it has never shown."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...agents.agent import UnsuitedError
from ...core.checks import as_array, short
from ...core.sums import weighted_sums
from ...envs.any_env import users_of

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
