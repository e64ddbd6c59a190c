"""Weights of single displays, each an item at a position, for off-policy evaluation from an `ItemPositionLog`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..envs import ClickModel, PositionBasedModel
from .doubly_robust import halves
from .estimation.estimator import Estimator
from .log import ItemPositionLog
from .policies import Policy
from .weights import Contributions, Floats, check_item_positions, ratio


def display_weights(
    log: ItemPositionLog, target: Any, estimator: str, logging: Any, model: ClickModel | Estimator | None
) -> Contributions:
    """`contributions` of a log of single displays."""
    if not estimator.startswith("item-position"):
        raise ValueError(
            f"the log holds single items, not lists: the estimators 'item-position' and 'item-position-dr' apply, "
            f"not {estimator!r}"
        )
    if isinstance(target, Mapping) or isinstance(logging, Mapping):
        raise ValueError("the log holds no queries: give one policy, not one for each query")
    _check_positions("target", target, log)
    recorded = log.propensities
    if logging is not None:
        _check_positions("logging", logging, log)
        positions = np.arange(min(target.n_positions, logging.n_positions))
        check_item_positions(target, logging, positions, lambda item: f"item {item}")
        recorded = logging.item_position_probabilities(log.items, log.positions)
    probabilities = target.item_position_probabilities(log.items, log.positions)
    weights = ratio(probabilities[:, None], recorded[:, None], np.arange(len(log)))
    if estimator == "item-position":
        return weights * log.clicks[:, None], weights
    direct, predicted = np.empty((2, len(log)))
    for half, rates in _click_rates(log, 1 + max(log.n_items - 1, target.items[-1]), model):
        earned = (target.item_positions[:, : log.n_positions] * rates[target.items]).sum(axis=0)
        direct[half], predicted[half] = earned[log.positions[half]], rates[log.items[half], log.positions[half]]
    values = np.column_stack([direct, weights[:, 0] * (log.clicks - predicted)])
    return values, np.column_stack([np.ones(len(log)), weights])


def _check_positions(name: str, policy: Policy, log: ItemPositionLog) -> None:
    if log.n_positions > policy.n_positions:
        raise ValueError(f"the {name} policy fills {policy.n_positions} positions; the log has {log.n_positions}")


def _click_rates(
    log: ItemPositionLog, n_items: int, model: ClickModel | Estimator | None
) -> list[tuple[NDArray[np.bool_], Floats]]:
    """Some displays of a log, as masks, and the ``(n_items, K)`` predicted click rates for them."""
    if model is not None:
        if not isinstance(model, PositionBasedModel):
            raise ValueError(f"model is a {type(model).__name__}; the estimator 'item-position-dr' takes a PositionBasedModel")
        if model.n_items < n_items or model.n_positions < log.n_positions:
            raise ValueError(
                f"the click model has {model.n_items} items and {model.n_positions} positions; "
                f"log and policy have {n_items} and {log.n_positions}"
            )
        return [(np.ones(len(log), np.bool_), np.outer(model.attraction, model.examination[: log.n_positions]))]
    result = []
    for half in halves(len(log)):
        other = log[~half]
        clicks, displays = (np.bincount(other.positions, each, log.n_positions) for each in (other.clicks, None))
        by_position = np.divide(clicks, displays, out=np.zeros(log.n_positions), where=displays > 0)
        clicked = np.bincount(other.items, other.clicks, n_items)
        expected = np.bincount(other.items, by_position[other.positions], n_items)
        result.append((half, np.outer((1.0 + clicked) / (1.0 + expected), by_position).clip(max=1.0)))
    return result
