"""Weights of logged clicks by a click model: expected examinations of an item under the target over
those in the log.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clickgym.core.checks import LARGEST
from clickgym.core.kernels import entry
from clickgym.envs import ClickModel, UserBrowsingModel

from .distinct import sorted_distinct
from .estimation.estimator import MODEL_ESTIMATORS, ConvergenceWarning, Estimator
from .log import ClickLog
from .policies import Integers, Policy, check_query, given_length
from .weights import INFINITE, Contributions, Floats, Sessions, check_items

MODEL_BASED = {name.lower(): estimator for name, estimator in MODEL_ESTIMATORS.items()}
"""The click-model estimators of a policy's value, and what fits the click model of each."""


class ModelWeights:
    """The weights ``X_Φ(a) / X_π(a)`` of a click model.

    Every logged click tells of an item's attraction; the cutoff only enters X_Φ.

    Args:
        log, estimator, model: as in `contributions`.
        counted: whether X_π is that of the log's own lists; then the UBM is that of He et al. 2020.
    """

    def __init__(
        self,
        log: ClickLog,
        estimator: str,
        model: ClickModel | Estimator | None,
        counted: bool,
    ) -> None:
        self.kind = MODEL_BASED[estimator].model_class
        if not isinstance(model, (self.kind, Estimator, type(None))):
            raise ValueError(
                f"model is a {type(model).__name__}; the estimator {estimator!r} takes a "
                f"{self.kind.__name__}"
            )
        self.source = _fitted(estimator, log) if model is None else model
        self.estimator, self.counted = estimator, counted

    def __call__(self, sessions: Sessions) -> Contributions:
        assert sessions.logging is not None
        check_items(sessions, sessions.logging)
        lists, clicks = sessions.lists, sessions.log.clicks[sessions.rows]
        # the model's items are numbered in this order
        items = np.union1d(sessions.logging.items, lists[lists >= 0])
        users = self._users(sessions, items)
        index, reached = places(items, lists), (lists >= 0).mean(axis=0)
        if self.counted and isinstance(users, UserBrowsingModel):
            examined = users.examination[
                np.arange(sessions.log.n_positions), _last_click_above(clicks)
            ] * (lists >= 0)
            weighed = _sums(index, examined, len(items))
            clicked = _sums(index, clicks, len(items))
            attraction = np.divide(
                clicked, weighed, out=np.zeros(len(items)), where=weighed > 0
            ).clip(max=1.0)
            users, logged = UserBrowsingModel(attraction, users.examination), weighed / len(lists)
        else:
            examined = _examinations(users, index)
            logged = _examinations_of_items(users, sessions.logging, items, reached)
        target = _examinations_of_items(users, sessions.target, items, reached, sessions.cutoff)
        infinite = np.flatnonzero(target > LARGEST * logged)
        if len(infinite):
            what = (
                INFINITE
                if logged[infinite[0]] <= 0
                else f"a weight above {LARGEST:g}, so rarely it is examined in the log"
            )
            raise ValueError(f"{sessions.name(items[infinite[0]])}: {what}")
        weights = np.divide(target, logged, out=np.zeros(len(items)), where=logged > 0)[index]
        weighted = (weights * examined).sum(axis=1, keepdims=True)
        return Contributions(
            (weights * clicks).sum(axis=1, keepdims=True),
            weighted / (target.sum() or 1.0),
            float(weights[examined > 0].max(initial=0.0)),
        )

    def _users(self, sessions: Sessions, items: Integers) -> ClickModel:
        """The click model of the query."""
        users = users_of(self.source, sessions, items)
        if not isinstance(users, self.kind):
            raise ValueError(
                f"model is fitted as a {type(users).__name__}; the estimator {self.estimator!r} "
                f"takes a {self.kind.__name__}"
            )
        check_positions(users, sessions.log)
        return users


def _fitted(estimator: str, log: ClickLog) -> Estimator:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return MODEL_BASED[estimator]().fit(log)


def users_of(source: ClickModel | Estimator, sessions: Sessions, items: Integers) -> ClickModel:
    """The click model of a query in which item i is ``items[i]``."""
    if isinstance(source, Estimator):
        labels = [sessions.log.item_labels[item] for item in items.tolist()]
        try:
            return source.click_model(check_query(sessions.log), labels)
        except KeyError as error:
            raise ValueError(
                f"the click model was not fitted to the query and item {error}"
            ) from None
    if items[-1] >= source.n_items:
        raise ValueError(
            f"the click model has {source.n_items} items; log or policy show item {items[-1]} "
            "(counted from 0)"
        )
    return source.with_items(
        **{name: getattr(source.parameters, name)[items] for name in source.item_parameters()}
    )


def check_positions(users: ClickModel, log: ClickLog) -> None:
    """Refuse a click model of other positions than the log's."""
    if users.n_positions != log.n_positions:
        raise ValueError(
            f"the click model has {users.n_positions} positions; the log has {log.n_positions}"
        )


def places(items: Integers, lists: NDArray[np.integer]) -> Integers:
    """The places of lists' items among ``items``; -1 below the end of a list."""
    return np.where(lists >= 0, np.searchsorted(items, lists), -1)


def filled_lists(lists: Integers, n_items: int) -> tuple[Integers, Integers]:
    """The distinct lists, filled with other items below their ends, which changes nothing above;
    and which is each row's.
    """
    distinct, index, _ = sorted_distinct(lists)
    for row in np.flatnonzero((distinct < 0).any(axis=1)):
        ended = distinct[row] < 0
        others = np.setdiff1d(np.arange(n_items), distinct[row])
        if len(others) < ended.sum():
            raise ValueError(
                f"a click model of {n_items} items has no lists of {len(ended)} positions"
            )
        distinct[row, ended] = others[: ended.sum()]
    return distinct, index


def _examinations(users: ClickModel, lists: Integers) -> Floats:
    """``(N, K)`` probabilities that each position of each list is examined; 0 below its end."""
    distinct, index = filled_lists(lists, users.n_items)
    examined, (clicked, scratch) = np.empty(distinct.shape), np.empty((2, distinct.shape[1] + 1))
    # The kernel itself, for these lists need no check: it takes most of the time of
    # `examination_probabilities`.
    for ranking, row in zip(distinct, examined, strict=True):
        entry(users.marginals_kernel)(users.parameters, ranking, row, clicked[:-1], scratch)
    return examined[index] * (lists >= 0)


def _examinations_of_items(
    users: ClickModel,
    policy: Policy,
    items: Integers,
    reached: Floats,
    cutoff: int | None = None,
) -> Floats:
    """X: the expected number of examinations of each item per list under a policy,
    ``(len(items),)``.

    Each position counts by the share ``reached`` of the lists that have it; those below the cutoff
    do not count.
    """
    weights = users.position_weights()
    if weights is not None:  # only here is it enough to know how often an item is at each position
        result = np.zeros(len(items))
        result[np.searchsorted(items, policy.items)] = (
            policy.item_positions[:, :cutoff] @ (weights * reached)[:cutoff]
        )
        return result
    lists, probabilities = policy.support()
    index = places(items, lists)
    examined = given_length(lists, probabilities) * _examinations(users, index) * reached
    return _sums(index[:, :cutoff], examined[:, :cutoff], len(items))


def _sums(index: Integers, weights: NDArray[Any], size: int) -> Floats:
    """The sum of the weights that fall on each index; on -1 fall none."""
    return np.bincount(index.ravel() + 1, weights.ravel(), size + 1)[1:].astype(
        np.float64, copy=False
    )


def _last_click_above(clicks: NDArray[np.int8]) -> Integers:
    """The position, from 1, of the last click above each position; 0 where there is none."""
    clicked = np.where(clicks == 1, np.arange(1, clicks.shape[1] + 1), 0)
    return np.pad(np.maximum.accumulate(clicked, axis=1)[:, :-1], ((0, 0), (1, 0)))
