"""Check of the assumptions under which BatchRank, TopRank and BubbleRank are guaranteed to learn a
click model.

Where one fails, a regret that stays linear is no bug: the agent learns something else than the best
list.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clickgym.core.kernels import entry
from clickgym.envs import ClickModel

MAX_LISTS = 50_000
"""The most lists, ``L! / (L - K)!``, that `check_assumptions` enumerates; 10 items on 5 positions
are 30,240.
"""
TOLERANCE = 1e-12
"""Probabilities that differ by no more count as equal: far above the rounding of their products,
far below any effect.
"""


@dataclass(frozen=True)
class Finding:
    """The result of the check of one assumption.

    Attributes:
        name: source and number, as ``"Li 2019a A4"``.
        statement: what it says, in short; positions k < l count from 1, R* is a list sorted by
            attraction.
        holds: whether no list contradicts it by more than `TOLERANCE`.
        counterexample: where it is contradicted most: lists of item ids, positions counted from 1,
            and both numbers; empty if it holds.
    """

    name: str
    statement: str
    holds: bool
    counterexample: str = ""


def check_assumptions(
    model: ClickModel, reward: str = "clicks", cutoff: int | None = None
) -> list[Finding]:
    """Check Zoghi et al.'s Assumptions 3-6 and Li et al.'s A1-A5 for a click model, by trying all
    its lists.

    ``χ(R, k)`` is the probability that position k of list R is examined. All but A1 are about ``χ``
    alone:

    ====  ====  =============================================================================
    Zoghi Li    statement
    ====  ====  =============================================================================
    --    A1    the list sorted by attraction, R*, has the highest expected reward
    3     --    the same items above position k and the same item at it: the same examination
    --    A2    the same items above position k: the same ``χ(·, k)``
    4     A3    ``χ(R, k) ≥ χ(R, l)`` for k < l
    5     A4    if R' exchanges the items at k < l in R and that at k is not the more
                attractive in R, then ``χ(R, l) ≥ χ(R', l)``
    6     A5    ``χ(R, k) ≥ χ(R*, k)``: no list is examined less than the sorted one
    ====  ====  =============================================================================

    Decisions:
        1. ⚠ Everything is tested on exact probabilities. Zoghi's Assumption 3 speaks of
           realisations, of one user who would examine position k of both lists or of neither; but a
           click model says nothing of one user before two lists. So the test is the part of it that
           a click model has: equal ``χ``, which it implies. In a CM, a PBM, a DCM of equal
           termination and a DBN realisations agree too, if attraction, termination and satisfaction
           are drawn once for each item and everything else once for each position. In other models
           that pass, the test does not prove that they do. The papers state all other assumptions
           for probabilities.
        2. ⚠ A1 depends on the reward kind and the cutoff, the others on neither. The papers' reward
           is the number of clicks.
        3. ⚠ Li's A4 is printed with "if and only if". The converse fails in every PBM of distinct
           attractions, where an exchange leaves ``χ`` as it is, and the proofs use only the
           implication, which is tested (Zoghi's Assumption 5).
        4. Where attractions tie, R* may be any of the sorted lists, and A1, A5 and Assumption 6
           must hold for each.

    Args:
        model: a stationary click model of at most `MAX_LISTS` lists.
        reward, cutoff: as in `ClickModel.expected_reward`; what A1 is about.

    Returns:
        Zoghi's Assumptions 3-6, then Li's A1-A5.

    Raises:
        ValueError: on users that change, have a memory or several laws, or choose among other
            candidates in every session; on too many lists; on a bad reward or cutoff.

    Source: Zoghi, Tunys, Ghavamzadeh, Kveton, Szepesvári, Wen, *Online learning to rank in
    stochastic click models*, ICML 2017, section 3.4; Li, Kveton, Lattimore, Markov, de Rijke,
    Szepesvári, Zoghi, *BubbleRank: safe online learning to re-rank via implicit click feedback*,
    UAI 2019, section 4.1.

    Example:
        >>> from clickgym.envs import DependentClickModel
        >>> users = DependentClickModel([0.5, 0.4, 0.3], termination=[0.9, 0.1, 0.5])
        >>> findings = check_assumptions(users)
        >>> [finding.name for finding in findings if not finding.holds]
        ['Zoghi 2017 Assumption 3', 'Li 2019a A1', 'Li 2019a A2']
        >>> findings[5].counterexample
        'χ([0, 2, 1], 3) = 0.5335 but χ([2, 0, 1], 3) = 0.6935'
    """
    if not hasattr(model, "marginals_kernel"):
        raise ValueError(
            f"got {model}; expected a click model of its own: of users that do not change, read by "
            "one law, and choose among items that stay"
        )
    code, cutoff = model.check_reward(reward, cutoff)
    n_lists = math.perm(model.n_items, model.n_positions)
    if n_lists > MAX_LISTS:
        raise ValueError(
            f"{model} has {n_lists:.3g} lists, more than the {MAX_LISTS} that are tried; take "
            "fewer items or positions (model.with_positions)"
        )
    lists = _Lists(model)
    exchange = "exchanging k and l where α(R(k)) ≤ α(R(l)): χ(R, l) ≥ χ(R', l)"
    decreasing = "χ(R, k) ≥ χ(R, l)", _worst(lists.decreasing())
    scaling = exchange, _worst(lists.scaling())
    least = "χ(R, k) ≥ χ(R*, k)", _worst(lists.least_examined())
    same_item = "same items above k, same item at k: same examination of k"
    best = f"r(R*) ≥ r(R) for the reward {reward!r} of the first {cutoff} positions"
    rewards = lists.rewards(code, cutoff)
    return [
        _finding("Zoghi 2017 Assumption 3", same_item, _worst(lists.order(own_item=True))),
        _finding("Zoghi 2017 Assumption 4", *decreasing),
        _finding("Zoghi 2017 Assumption 5", *scaling),
        _finding("Zoghi 2017 Assumption 6", *least),
        _finding("Li 2019a A1", best, _worst(lists.sorted_is_best(rewards))),
        _finding("Li 2019a A2", "same items above k: same χ(·, k)", _worst(lists.order(False))),
        _finding("Li 2019a A3", *decreasing),
        _finding("Li 2019a A4", *scaling),
        _finding("Li 2019a A5", *least),
    ]


Comparison = tuple[float, str]
"""By how much an assumption is contradicted somewhere (not at all unless it is positive), and the
two numbers in words.
"""


def _worst(comparisons: Iterator[Comparison]) -> Comparison:
    return max(comparisons, default=(0.0, ""))


def _finding(name: str, statement: str, worst: Comparison) -> Finding:
    excess, words = worst
    return (
        Finding(name, statement, True)
        if excess <= TOLERANCE
        else Finding(name, statement, False, words)
    )


class _Lists:
    """All lists of a model in lexicographic order, their examination probabilities, and the
    comparisons between them.
    """

    def __init__(self, model: ClickModel) -> None:
        self.model, self.n_items = model, model.n_items
        # (N, K)
        self.lists = np.array(list(itertools.permutations(range(model.n_items), model.n_positions)))
        self.scratch = np.empty(model.n_positions + 1)
        self.chi, clicks = np.empty((2, *self.lists.shape))  # (N, K)
        # The kernels themselves: these lists need no check, which would take most of the time.
        for ranking, chi, chances in zip(self.lists, self.chi, clicks, strict=True):
            entry(model.marginals_kernel)(model.parameters, ranking, chi, chances, self.scratch)
        self.alpha = model.attraction[self.lists]  # (N, K)
        self.pairs = list(itertools.combinations(range(model.n_positions), 2))
        ideal = np.sort(model.attraction)[::-1][: model.n_positions]
        self.sorted_rows = np.flatnonzero((self.alpha == ideal).all(axis=1))

    def rewards(self, code: int, cutoff: int) -> NDArray[np.float64]:
        """The expected reward of each list."""
        model = self.model
        return np.array(
            [
                entry(model.expected_kernel)(model.parameters, each, code, cutoff, self.scratch)
                for each in self.lists
            ]
        )

    def decreasing(self) -> Iterator[Comparison]:
        for k, below in self.pairs:
            excess = self.chi[:, below] - self.chi[:, k]
            row = int(excess.argmax())
            yield float(excess[row]), f"{self._chi(row, k)} but {self._chi(row, below)}"

    def scaling(self) -> Iterator[Comparison]:
        codes = self._codes(self.lists)
        for k, below in self.pairs:
            exchanged = self.lists.copy()
            exchanged[:, [k, below]] = self.lists[:, [below, k]]
            partner = np.searchsorted(codes, self._codes(exchanged))
            excess = np.where(
                self.alpha[:, k] <= self.alpha[:, below],
                self.chi[partner, below] - self.chi[:, below],
                -1.0,
            )
            row = int(excess.argmax())
            numbers = f"{self._chi(row, below)} but {self._chi(int(partner[row]), below)}"
            yield float(excess[row]), f"{numbers}, exchanging positions {k + 1} and {below + 1}"

    def order(self, own_item: bool) -> Iterator[Comparison]:
        for k in range(self.lists.shape[1]):
            group = self._codes(np.sort(self.lists[:, :k], axis=1))
            if own_item:
                group = group * self.n_items + self.lists[:, k]
            by_group = np.lexsort((self.chi[:, k], group))
            first = np.flatnonzero(np.diff(group[by_group], prepend=-1))
            low, high = by_group[first], by_group[np.append(first[1:], len(group)) - 1]
            excess = self.chi[high, k] - self.chi[low, k]
            worst = int(excess.argmax())
            yield (
                float(excess[worst]),
                f"{self._chi(int(low[worst]), k)} but {self._chi(int(high[worst]), k)}",
            )

    def least_examined(self) -> Iterator[Comparison]:
        for k in range(self.lists.shape[1]):
            row = int(self.chi[:, k].argmin())
            star = int(self.sorted_rows[self.chi[self.sorted_rows, k].argmax()])
            yield (
                float(self.chi[star, k] - self.chi[row, k]),
                f"{self._chi(row, k)} but R* has {self._chi(star, k)}",
            )

    def sorted_is_best(self, rewards: NDArray[np.float64]) -> Iterator[Comparison]:
        row = int(rewards.argmax())
        star = int(self.sorted_rows[rewards[self.sorted_rows].argmin()])
        better, ideal = (f"r({self.lists[i].tolist()}) = {rewards[i]:.6g}" for i in (row, star))
        yield float(rewards[row] - rewards[star]), f"{better} but R* has {ideal}"

    def _codes(self, lists: NDArray[np.int64]) -> NDArray[np.int64]:
        """Each row as one number, in base L, that increases with their order; small, as there are
        at most `MAX_LISTS` lists.
        """
        return lists @ self.n_items ** np.arange(lists.shape[1])[::-1]

    def _chi(self, row: int, k: int) -> str:
        return f"χ({self.lists[row].tolist()}, {k + 1}) = {self.chi[row, k]:.6g}"
