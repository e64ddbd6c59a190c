"""Ranking policies as probability distributions over lists, for off-policy evaluation.

How many results there are is given to a policy, as the query is: a policy is a law over lists
*given* a length (`of_length`). It shows its lists of this length; where it has none, the first
items of its longer ones.
"""

from __future__ import annotations

import csv
import itertools
import math
from abc import ABC, abstractmethod
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.checks import as_call, check_count, check_kind, check_positions, integers, numbers
from ...envs import CLICK_MODELS, load_instance
from ..distinct import sorted_distinct
from ..log import ClickLog, item_numbers

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MAX_LISTS = 200_000
"""The most lists that `Policy.support` enumerates."""
MOST_NAMES = 10
"""Queries that a message names."""


class Policy(ABC):
    """Base class of ranking policies: probability distributions over ranked lists of K out of L
    candidates.

    Attributes:
        items: ``(L,)`` the ids of the candidates, increasing: the items that the policy ever shows.
        n_positions: K, the length of a list.
    """

    items: Integers
    n_positions: int

    def __repr__(self) -> str:
        return as_call(self, n_items=len(self.items), n_positions=self.n_positions)

    @abstractmethod
    def prefix_probabilities(self, lists: NDArray[np.integer]) -> Floats:
        """The probability that the policy's list begins as given.

        Args:
            lists: ``(N, K)`` item ids.

        Returns:
            ``(N, K)``: column k for the first ``k + 1`` positions, so that the last column is that
            of the whole list. Where a list has ended (-1), it may be anything.
        """

    @abstractmethod
    def support(self) -> tuple[Integers, Floats]:
        """Every list of positive probability, ``(M, K)``, -1 below the end of a list, and the
        probabilities, ``(M,)``.

        Raises:
            ValueError: if there are more than `MAX_LISTS`.
        """

    def of_length(self, length: int) -> Policy:
        """The policy for sessions that show so many items; it is the policy itself unless its lists
        differ in length.
        """
        return self

    @cached_property
    def item_positions(self) -> Floats:
        """``(L, K)`` probabilities that each candidate stands at each position, among the lists
        that have the position.
        """
        lists, probabilities = self.support()
        result = np.zeros((len(self.items), self.n_positions))
        rows, positions = np.nonzero(lists >= 0)
        weights = given_length(lists, probabilities)[rows, positions]
        np.add.at(result, (np.searchsorted(self.items, lists[rows, positions]), positions), weights)
        return result

    def item_position_probabilities(
        self, items: NDArray[np.integer], positions: NDArray[np.integer]
    ) -> Floats:
        """The probability that each item stands at the position beside it (counted from 0); the
        arrays broadcast.
        """
        index = np.searchsorted(self.items, items).clip(max=len(self.items) - 1)
        return np.where(self.items[index] == items, self.item_positions[index, positions], 0.0)


def given_length(lists: Integers, probabilities: Floats) -> Floats:
    """The probabilities of lists at each position, among those that have it: ``(M, K)``, 0 below
    the end of a list.
    """
    filled = lists >= 0
    shown: Floats = np.where(filled, probabilities[:, None], 0.0)
    if filled.all():
        return shown
    return shown / np.maximum(shown.sum(axis=0), np.finfo(np.float64).tiny)


class ListPolicy(Policy):
    """A policy that draws one of a few lists.

    Args:
        lists: ``(M, K)`` item ids, distinct within each list; below the end of a list -1.
        probabilities: ``(M,)`` non-negative, with sum 1.

    Raises:
        ValueError: naming what was expected.

    Example:
        >>> ListPolicy([[3, 7], [7, 3]], [0.9, 0.1]).item_positions
        array([[0.9, 0.1],
               [0.1, 0.9]])
    """

    def __init__(self, lists: ArrayLike, probabilities: ArrayLike) -> None:
        self._lists = integers("lists", lists, (None, None), -1)
        ended = self._lists < 0
        if ended[:, 0].any() or (ended[:, :-1] & ~ended[:, 1:]).any():
            raise ValueError(
                "lists has -1 at the first position, or above an item; expected it below the end "
                "of a list"
            )
        ascending = np.sort(self._lists)
        if ((np.diff(ascending) == 0) & (ascending[:, 1:] >= 0)).any():
            raise ValueError("a list of the policy shows an item twice")
        shares = numbers("probabilities", probabilities, (len(self._lists),))
        if not (shares >= 0).all() or not abs(shares.sum() - 1.0) <= 1e-6:
            raise ValueError(
                f"probabilities must be non-negative with sum 1; the sum is {shares.sum():.8g}, "
                f"the least {shares.min():.8g}"
            )
        self._lists, self._probabilities = self._lists[shares > 0], shares[shares > 0]
        self.items = np.unique(self._lists[self._lists >= 0])
        self.n_positions = self._lists.shape[1]

    def prefix_probabilities(self, lists: NDArray[np.integer]) -> Floats:
        return sums_by_beginning(self._lists, given_length(self._lists, self._probabilities), lists)

    def support(self) -> tuple[Integers, Floats]:
        return self._lists, self._probabilities

    def of_length(self, length: int) -> Policy:
        lengths = (self._lists >= 0).sum(axis=1)
        if (lengths == self.n_positions).all():
            return self
        rows = lengths == length if (lengths == length).any() else lengths > length
        if not rows.any():
            raise ValueError(
                f"the policy shows no list of {length} items; its longest has {lengths.max()}"
            )
        return ListPolicy(
            self._lists[rows], self._probabilities[rows] / self._probabilities[rows].sum()
        )


class FixedPolicy(ListPolicy):
    """A policy that always shows one list.

    Args:
        ranking: ``(K,)`` distinct item ids; an attribute of the policy, too.
        origin: where the list comes from; an attribute, too.

    Raises:
        ValueError: naming what was expected.

    Example:
        >>> FixedPolicy([2, 0]).prefix_probabilities(np.array([[2, 0], [2, 1]]))
        array([[1., 1.],
               [1., 0.]])
    """

    def __init__(self, ranking: ArrayLike, origin: str = "") -> None:
        self.origin = origin
        self.ranking = integers("ranking", ranking, (None,))
        super().__init__(self.ranking[None], [1.0])


class UniformPolicy(Policy):
    """A policy that shows every list of distinct items with the same probability.

    Args:
        items: the number L of items ``0..L-1``, or their ids.
        n_positions: K.

    Raises:
        ValueError: naming what was expected.

    Example:
        >>> UniformPolicy(4, n_positions=2).prefix_probabilities(np.array([[0, 3]])).round(4)
        array([[0.25  , 0.0833]])
    """

    def __init__(self, items: int | ArrayLike, n_positions: int) -> None:
        number = isinstance(items, int | float | np.number)
        ids = (
            np.arange(check_count("items", items)) if number else integers("items", items, (None,))
        )
        self.items = np.unique(ids)
        if len(self.items) < len(ids):
            raise ValueError(f"items must be {len(ids)} distinct ids")
        self.n_positions = check_positions(n_positions, len(ids))

    def prefix_probabilities(self, lists: NDArray[np.integer]) -> Floats:
        remaining = len(self.items) - np.arange(lists.shape[1])
        of_any = np.divide.accumulate(np.append(1.0, remaining))[1:]
        candidates = np.isin(lists, self.items).cumprod(axis=1)
        return candidates * of_any

    def support(self) -> tuple[Integers, Floats]:
        n_lists = math.perm(len(self.items), self.n_positions)
        if n_lists > MAX_LISTS:
            raise ValueError(
                f"this estimator needs every list the policy may show, and {n_lists:.3g} lists of "
                f"{self.n_positions} out of {len(self.items)} items are more than the limit of "
                f"{MAX_LISTS}"
            )
        lists = np.array(list(itertools.permutations(self.items.tolist(), self.n_positions)))
        return lists, np.full(n_lists, self.prefix_probabilities(lists[:1])[0, -1])

    @cached_property
    def item_positions(self) -> Floats:
        """``(L, K)`` probabilities that each candidate stands at each position: all ``1/L``."""
        return np.full((len(self.items), self.n_positions), 1.0 / len(self.items))


def empirical_policy(log: ClickLog) -> ListPolicy:
    """The logging policy as estimated from frequencies: it draws the list of one of the sessions.

    Args:
        log: sessions of a single query.

    Raises:
        ValueError: on a log of several queries, or without sessions.

    Example:
        >>> lists = [[0, 1], [1, 0], [0, 1], [0, 1]]
        >>> log = ClickLog(lists, np.zeros((4, 2)), [0] * 4, ("a", "b"), ("q",))
        >>> empirical_policy(log).item_positions[0]
        array([0.75, 0.25])
    """
    check_query(log)
    lists, _, counts = sorted_distinct(log.items)
    return ListPolicy(lists, counts / len(log))


def check_query(log: ClickLog) -> str:
    """The label of the query of a log; one of several queries, or without sessions, is refused."""
    check_kind("log", log, ClickLog, "a ClickLog")
    if not len(log):
        raise ValueError("the log has no sessions")
    labels = [log.query_labels[query] for query in np.unique(log.queries)]
    if len(labels) > 1:
        names = ", ".join(labels[:MOST_NAMES])
        raise ValueError(
            f"the log has {len(labels):,} queries, such as {names}; choose one with --query"
        )
    return labels[0]


def read_policy(
    spec: str, log: ClickLog, reward: str = "clicks", cutoff: int | None = None
) -> Policy:
    """The policy that a command names.

    Args:
        spec: ``uniform`` (every list of the logged items alike), ``empirical`` (as often as
            logged), ``fixed:<item>,<item>,...`` (the items by label, with quotes as in CSV); or
            ``<file>:<model>``, the best list under a click model of a file that ``clickgym fit``
            wrote; the model need not be named where there is but one.
        log: the sessions of a single query, whose items the policy ranks.
        reward, cutoff: for which a list of a click model is best.

    Raises:
        ValueError: nothing is called so, or the file or an item does not fit.
    """
    query = check_query(log)
    if spec == "empirical":
        return empirical_policy(log)
    if spec == "uniform":
        return UniformPolicy(np.setdiff1d(log.items, -1), log.n_positions)
    if spec.startswith("fixed:"):
        (labels,) = csv.reader([spec.removeprefix("fixed:")], skipinitialspace=True)
        return FixedPolicy(_fixed(spec, labels, log))
    is_path = ":" not in spec or Path(spec).exists()
    file, model = (spec, "") if is_path else spec.rsplit(":", 1)
    if not file.endswith(".json"):
        raise ValueError(
            f"unknown policy {spec!r}; expected uniform, empirical, fixed:<item>,... or a file "
            "that clickgym fit wrote"
        )
    instance = load_instance(file)
    if instance.estimation.get("query") != query:
        raise ValueError(f"{file} has no list for the query {query!r} of the log")
    kinds = [kind for kind in instance.models if kind in CLICK_MODELS]
    matches = [kind for kind in kinds if model.upper() in ("", kind)]
    if len(matches) != 1:
        raise ValueError(
            f"{file} has the click models {', '.join(kinds)}; choose one, as in {file}:PBM"
        )
    ranking = instance.model(matches[0], log.n_positions).optimal_ranking(reward, cutoff)
    items = np.array(item_numbers(log, instance.estimation["items"]))
    return FixedPolicy(items[ranking], instance.origin)


def _fixed(spec: str, labels: list[str], log: ClickLog) -> list[int]:
    """The items of a list that a command names, which is as long as the log's longest."""
    n_items, n_positions = len(labels), log.n_positions
    if len(set(labels)) < n_items:
        twice = next(label for label in labels if labels.count(label) > 1)
        raise ValueError(f"the policy {spec} shows the item {twice!r} twice")
    if n_items > n_positions:
        raise ValueError(
            f"the policy {spec} has {n_items} items; the log has {n_positions} positions"
        )
    if n_items < n_positions:
        raise ValueError(
            f"the policy {spec} fills {n_items} of {n_positions} positions; name {n_positions} "
            f"items, and count the first {n_items} only by --cutoff {n_items}"
        )
    return item_numbers(log, labels)


def sums_by_beginning(
    lists: NDArray[np.integer], values: Floats, beginnings: NDArray[np.integer]
) -> Floats:
    """The sum of values over the lists that begin as others do.

    Args:
        lists: ``(M, K)`` item ids.
        values: ``(M, K)`` of each list, a column for each length of a beginning.
        beginnings: ``(N, K)`` item ids.

    Returns:
        ``(N, K)``: column k sums ``values[:, k]`` over the lists whose first ``k + 1`` items are
            those of the given list.
    """
    n_lists = len(lists)
    both = np.concatenate([lists, beginnings])
    beginning = np.zeros(len(both), np.int64)  # lists with the same number have begun alike so far
    result = np.empty(beginnings.shape)
    for k in range(beginnings.shape[1]):
        item = np.unique(both[:, k], return_inverse=True)[1]
        beginning = np.unique(beginning * (item.max() + 1) + item, return_inverse=True)[1]
        result[:, k] = np.bincount(beginning[:n_lists], values[:, k], beginning.max() + 1)[
            beginning[n_lists:]
        ]
    return result
