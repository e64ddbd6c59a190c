"""Weights of logged sessions by lists, prefixes and item-positions, for off-policy evaluation;
infinite ones are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..log import ClickLog
from .policies import Integers, Policy, UniformPolicy

Floats: TypeAlias = NDArray[np.float64]

INFINITE = "the target policy shows it, the logging policy never, which makes its weight infinite"


class Sessions(NamedTuple):
    """Sessions of a log of one query, and the policies.

    Attributes:
        log: the log.
        rows: ``(n,)`` the sessions, as rows of the log.
        target: the policy to evaluate.
        logging: the policy that made the log; None where the propensities that the log recorded
            count.
        earned: ``(n, cutoff)`` what each logged click counts.
    """

    log: ClickLog
    rows: Integers
    target: Policy
    logging: Policy | None
    earned: NDArray[Any]

    @property
    def lists(self) -> NDArray[np.int32]:
        """The logged lists, ``(n, K)``."""
        return self.log.items[self.rows]

    @property
    def cutoff(self) -> int:
        """How many positions count."""
        return self.earned.shape[1]

    def name(self, item: int) -> str:
        """An item for messages."""
        return f"item {self.log.item_labels[item]!r}"


class Contributions(NamedTuple):
    """What each session contributes to an estimate.

    Attributes:
        values: ``(N, G)``; the estimate is the mean over sessions of their sum.
        weights: ``(N, G)``, with expectation 1.
        largest: the largest weight that a click in these sessions could have had.
    """

    values: Floats
    weights: Floats
    largest: float


Weigh: TypeAlias = Callable[[Sessions], Contributions]


def _list_weights(sessions: Sessions) -> Contributions:
    lists = sessions.lists
    if sessions.logging is None:
        recorded = _recorded("list_propensities", sessions.log.list_propensities)[sessions.rows]
    else:
        _check_lists(sessions, sessions.logging, _longest(lists))
        recorded = _prefix_probabilities(sessions.logging, lists)[:, -1]
    weights = ratio(
        _prefix_probabilities(sessions.target, lists)[:, -1:], recorded[:, None], sessions.rows
    )
    return _weighted(sessions.earned.sum(axis=1, keepdims=True), weights)


def _prefix_weights(sessions: Sessions) -> Contributions:
    if sessions.logging is None:
        raise ValueError(
            "the estimator 'cascade' needs the probability of each list's beginnings; give the "
            "logging policy"
        )
    lists, cutoff = sessions.lists, sessions.cutoff
    _check_lists(sessions, sessions.logging, min(cutoff, _longest(lists)))
    target, logging = (
        _prefix_probabilities(policy, lists)[:, :cutoff]
        for policy in (sessions.target, sessions.logging)
    )
    weights = ratio(target, logging, sessions.rows)
    return _weighted(sessions.earned, weights)


def _item_position_weights(sessions: Sessions) -> Contributions:
    positions = np.arange(sessions.cutoff)
    lists = sessions.lists[:, positions]
    if sessions.logging is None:
        recorded = _recorded("propensities", sessions.log.propensities)[sessions.rows][:, positions]
    else:
        check_item_positions(
            sessions.target, sessions.logging, positions[: _longest(lists)], sessions.name
        )
        recorded = np.where(
            lists < 0, 1.0, sessions.logging.item_position_probabilities(lists, positions)
        )
    target = np.where(lists < 0, 1.0, sessions.target.item_position_probabilities(lists, positions))
    weights = ratio(target, recorded, sessions.rows)
    return _weighted(sessions.earned, weights)


def _weighted(earned: NDArray[Any], weights: Floats) -> Contributions:
    return Contributions(weights * earned, weights, float(weights.max()))


WEIGHTS: dict[str, Weigh] = {
    "ips": _list_weights,
    "cascade": _prefix_weights,
    "item-position": _item_position_weights,
}
"""The estimators that need no click model. Each returns the rows of `contributions` for
sessions of one length.
"""


def _longest(lists: NDArray[np.integer]) -> int:
    """The length of the longest list."""
    return int((lists >= 0).any(axis=0).sum())


def _prefix_probabilities(policy: Policy, lists: NDArray[np.int32]) -> Floats:
    """The probability that the policy's list begins so, below the end of a list that of the
    whole.
    """
    last = (lists >= 0).sum(axis=1) - 1
    return np.take_along_axis(
        policy.prefix_probabilities(lists),
        np.minimum(np.arange(lists.shape[1]), last[:, None]),
        axis=1,
    )


def _recorded(name: str, propensities: Floats | None) -> Floats:
    if propensities is None:
        raise ValueError(
            f"the log has no {name}; give the policy that made it (logging), or use a click-model "
            "estimator"
        )
    return propensities


def ratio(target: Floats, logging: Floats, sessions: Integers) -> Floats:
    """``target / logging``, 0 where the target never shows what was logged."""
    infinite = np.argwhere((target > 0) & (logging <= 0))
    if len(infinite):
        row, column = infinite[0].tolist()
        position = f", position {column + 1}" if target.shape[1] > 1 else ""
        raise ValueError(
            f"session {sessions[row]} (counted from 0){position}: the logging policy shows what "
            f"was logged with probability 0, the target policy with {target[row, column]:.3g}, "
            "which makes its weight infinite"
        )
    return np.divide(target, logging, out=np.zeros(target.shape), where=target > 0)


def check_item_positions(
    target: Policy, logging: Policy, positions: Integers, name: Callable[[int], str]
) -> None:
    """Refuse a target that puts items where the logging policy never does: no log would show what
    they earn there.
    """
    logged = logging.item_position_probabilities(target.items[:, None], positions)
    infinite = np.argwhere((target.item_positions[:, positions] > 0) & (logged <= 0))
    if len(infinite):
        row, k = infinite[0].tolist()
        raise ValueError(f"{name(target.items[row])} at position {k + 1}: {INFINITE}")


def check_items(sessions: Sessions, logging: Policy) -> None:
    """Refuse a target that shows items which the logging policy never does."""
    missing = np.setdiff1d(sessions.target.items, logging.items)
    if len(missing):
        raise ValueError(f"{sessions.name(missing[0])}: {INFINITE}")


def _check_lists(sessions: Sessions, logging: Policy, cutoff: int) -> None:
    """Refuse a target that shows lists which the logging policy never does: no log would show what
    they earn.

    Of the lists only the first ``cutoff`` positions matter.
    """
    if isinstance(logging, UniformPolicy):
        return check_items(sessions, logging)  # for it shows every list of its items
    lists, _ = sessions.target.support()
    infinite = np.flatnonzero(logging.prefix_probabilities(lists)[:, cutoff - 1] <= 0)
    if len(infinite):
        labels = [sessions.log.item_labels[item] for item in lists[infinite[0], :cutoff].tolist()]
        length = _longest(sessions.lists)
        where = f" in sessions of {length} items" if length < sessions.log.n_positions else ""
        raise ValueError(f"list {', '.join(labels)}{where}: {INFINITE}")
