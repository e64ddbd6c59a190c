"""Doubly robust estimators: a click model predicts what lists earn, and weights correct what it predicts of logged sessions."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..envs import ClickModel, PositionBasedModel
from .estimation.estimator import MODEL_ESTIMATORS, Estimator
from .estimation.settings import QUICK
from .log import ClickLog
from .model_weights import check_positions, filled_lists, places, users_of
from .policies import Integers, ListPolicy, Policy, sums_by_beginning
from .weights import WEIGHTS, Contributions, Floats, QuerySessions

DOUBLY_ROBUST = {"dr": "UBM", "cascade-dr": "UBM", "item-position-dr": "PBM"}
"""The doubly robust estimators, and the click model that each fits where none is given."""


class Items(NamedTuple):
    """The items that a click model numbers, and what a click on each is worth."""

    ids: Integers
    values: Floats


class DoublyRobust:
    """The contributions of the estimator without a click model, with that of its predictions taken out.

    Args:
        log, estimator, model, reward: as in `contributions`.
    """

    def __init__(self, log: ClickLog, estimator: str, model: ClickModel | Estimator | None, reward: str) -> None:
        if not isinstance(model, (ClickModel, Estimator, type(None))):
            raise ValueError(f"model is a {type(model).__name__}; the estimator {estimator!r} takes a click model")
        self.log, self.estimator, self.model, self.reward = log, estimator, model, reward
        self.weigh = WEIGHTS["ips" if estimator == "dr" else estimator.removesuffix("-dr")]
        self.predict = PREDICTIONS[estimator]

    @cached_property
    def sources(self) -> list[tuple[NDArray[np.bool_], ClickModel | Estimator]]:
        """Masks of sessions, and what predicts them: the model, or for each half what was fitted to the other one."""
        if self.model is not None:
            return [(np.ones(len(self.log), np.bool_), self.model)]
        kind = MODEL_ESTIMATORS[DOUBLY_ROBUST[self.estimator]]
        return [(half, QUICK.fit(kind, self.log[~half])) for half in halves(len(self.log))]

    def __call__(self, sessions: QuerySessions) -> Contributions:
        values, weights = self.weigh(sessions)  # what the weights refuse is refused before a model is fitted
        target, lists = sessions.target, sessions.lists
        sources = self.sources
        if isinstance(target, ListPolicy) and (target.support()[0] < 0).any():
            raise ValueError(f"the policy's own lists are of unequal length, which {self.estimator!r} does not support")
        lengths = (lists >= 0).sum(axis=1)
        items = np.union1d(target.items, lists[lists >= 0])  # the model's items are numbered in this order
        priced = Items(items, sessions.values_of(items))
        above = _above(weights) if self.estimator == "cascade-dr" else np.ones((len(lists), 1))
        direct, beyond = np.zeros(above.shape), values.copy()
        for mask, source in sources:
            users = users_of(source, sessions, items, unseen=True)
            check_positions(users, sessions.log)
            for length in np.unique(lengths):
                rows = np.flatnonzero(mask[sessions.rows] & (lengths == length))
                cutoff = min(int(length), sessions.cutoff)
                of_rows = weights[rows, :cutoff]
                expected, predicted = self.predict(users, priced, lists[rows], target, self.reward, cutoff, of_rows)
                direct[rows, : expected.shape[1]] = expected
                beyond[rows, :cutoff] -= of_rows * predicted
        return np.hstack([direct, beyond]), np.hstack([above, weights])


def halves(n: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which of n sessions are predicted from which others: by chance, but always the same."""
    if n < 2:
        raise ValueError("a log of one session has no other half to predict it from; give the click model (model)")
    first = np.random.default_rng(0).permutation(n) % 2 == 0
    return first, ~first


def direct_columns(estimator: str, columns: int) -> int:
    """How many of the columns of contributions are the direct method."""
    return {"dr": 1, "cascade-dr": columns // 2, "item-position-dr": 1}.get(estimator, 0)


# Each takes the click model, its items, some lists, the target, reward and cutoff, and the weights of these lists; and returns
# what the direct method adds, as `contributions`, and the predictions to be subtracted.


def _predict_lists(
    users: ClickModel, items: Items, lists: NDArray[np.integer], target: Policy, reward: str, cutoff: int, weights: Floats
) -> tuple[Floats, Floats]:
    possible, probabilities = target.support()
    value = probabilities @ _earnings(users, items, possible, reward, cutoff).sum(axis=1)
    return np.full((len(lists), 1), value), _earnings(users, items, lists, reward, cutoff).sum(axis=1, keepdims=True)


def _predict_beginnings(
    users: ClickModel, items: Items, lists: NDArray[np.integer], target: Policy, reward: str, cutoff: int, weights: Floats
) -> tuple[Floats, Floats]:
    possible, probabilities = target.support()
    earnings = probabilities[:, None] * _earnings(users, items, possible, reward, cutoff)
    remaining = earnings[:, ::-1].cumsum(axis=1)[:, ::-1]  # from each position on
    prefixes = target.prefix_probabilities(lists)[:, :cutoff]
    continued = sums_by_beginning(possible[:, :cutoff], remaining, lists[:, :cutoff])
    following = sums_by_beginning(possible[:, : cutoff - 1], remaining[:, 1:], lists[:, : cutoff - 1])

    def conditional(sums: Floats, beginning: Floats) -> Floats:  # where the target never begins so, the weight is 0
        return np.divide(sums, beginning, out=np.zeros(sums.shape), where=beginning > 0)

    expected = np.hstack([np.full((len(lists), 1), remaining[:, 0].sum()), conditional(following, prefixes[:, :-1])])
    return _above(weights) * expected, conditional(continued, prefixes)


def _predict_item_positions(
    users: ClickModel, items: Items, lists: NDArray[np.integer], target: Policy, reward: str, cutoff: int, weights: Floats
) -> tuple[Floats, Floats]:
    if not isinstance(users, PositionBasedModel):
        raise ValueError(f"model is a {type(users).__name__}; the estimator 'item-position-dr' takes a PositionBasedModel")
    predicted = np.outer(users.attraction * items.values, users.examination[:cutoff])
    value = (target.item_positions[:, :cutoff] * predicted[np.searchsorted(items.ids, target.items)]).sum()
    return np.full((len(lists), 1), value), predicted[np.searchsorted(items.ids, lists[:, :cutoff]), np.arange(cutoff)]


PREDICTIONS = {"dr": _predict_lists, "cascade-dr": _predict_beginnings, "item-position-dr": _predict_item_positions}


def _above(weights: Floats) -> Floats:
    """The weight of what stands above each position."""
    return np.hstack([np.ones((len(weights), 1)), weights[:, :-1]])


def _earnings(users: ClickModel, items: Items, lists: NDArray[np.integer], reward: str, cutoff: int) -> Floats:
    """``(N, cutoff)`` what a click model expects each position of each list to earn; no list ends above the cutoff."""
    distinct, index = filled_lists(places(items.ids, lists), len(items.ids))
    if reward == "clicks":
        return np.array([(users.click_probabilities(ranking) * items.values[ranking])[:cutoff] for ranking in distinct])[index]
    earned = [[users.expected_reward(ranking, reward, k + 1) for k in range(cutoff)] for ranking in distinct]
    return np.diff(earned, axis=1, prepend=0.0)[index]
