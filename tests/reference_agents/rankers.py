"""Learned rankers on judged documents: PairRank, DBGD and MGD, COLTR.

What an agent has drawn is read from its state: the pairs of a session, the directions, which ranker owns a click.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import expit, logsumexp

from .reference import CLOSE, Reference

TIE = 1e-10  # values this close are equal


class _Ranker(Reference):
    """Base: weights, and the features of the display in hand."""

    remembered: tuple[str, ...] = ()
    """The attributes that a display leaves for its clicks."""

    def __init__(self, n_items: int, n_positions: int, n_features: int) -> None:
        super().__init__(n_items, n_positions)
        self.weights = np.zeros(n_features)
        self.features = np.zeros((n_items, n_features))
        self.session: tuple[list[int], list[int]] = ([], [])

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        self.features = np.array(features, np.float64)
        return super().allows(ranking)

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        """What was drawn is known by `agrees` only."""
        self.session = (list(ranking), list(clicks))
        super().learn(ranking, clicks)

    def remember(self) -> list[Any]:
        return [getattr(self, name) for name in self.remembered]

    def recall(self, memory: list[Any]) -> None:
        for name, value in zip(self.remembered, memory, strict=True):
            setattr(self, name, value)

    def take_over(self, state: Any, most: float) -> bool:
        """Whether the weights agree, after a step of at most so much; they are taken over, so that rounding does not add up."""
        slack = CLOSE * max(most, float(np.abs(self.weights).max()))
        agreed = bool(np.allclose(state.weights, self.weights, rtol=0, atol=slack))
        if agreed:
            self.weights = np.array(state.weights)
        return agreed


# ------------------------------------------------------------------------------------------------------------- PairRank


class PairRankReference(_Ranker):
    """PairRank: Jia et al. 2021 (WWW)."""

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        n_features: int,
        alpha: float = 0.1,
        l2: float = 0.1,
        loss: str = "mean",
        disjoint: bool = True,
        inside: str = "random",
        one_below: bool = False,
        growth: float = 0.0,
    ) -> None:
        super().__init__(n_items, n_positions, n_features)
        self.alpha, self.l2, self.loss, self.disjoint, self.inside, self.growth = alpha, l2, loss, disjoint, inside, growth
        self.one_below = one_below
        self.pairs: list[np.ndarray] = []
        self.n_fitted = 0

    # ---------------------------------------------------------------------------------------------------------- lists

    def gram(self) -> np.ndarray:
        return sum((np.outer(delta, delta) for delta in self.pairs), self.l2 * np.eye(len(self.weights)))

    def bounds(self) -> np.ndarray:
        """``(L, L)`` the lower confidence bounds that one candidate is better than another."""
        delta = self.features[:, None] - self.features
        squared = np.einsum("ijd,ijd->ij", delta, np.moveaxis(np.linalg.solve(self.gram(), np.moveaxis(delta, -1, 1)), 1, -1))
        return expit(delta @ self.weights) - self.alpha * np.sqrt(np.maximum(squared, 0.0))

    def certain(self) -> set[tuple[int, int]]:
        pairs = {(i, j) for i, j in np.argwhere(self.bounds() >= 0.5 + TIE).tolist() if i != j}
        while further := {(i, k) for i, j in pairs for jj, k in pairs if j == jj} - pairs:
            pairs |= further
        return pairs

    def blocks(self, certain: set[tuple[int, int]]) -> list[set[int]]:
        """From the top; an error if their order is not one."""
        blocks: list[set[int]] = []
        for item in range(self.n_items):
            near = [b for b in blocks if any(((item, o) in certain) == ((o, item) in certain) for o in b)]
            blocks = [b for b in blocks if b not in near] + [set().union({item}, *near)]
        for one, other in combinations(blocks, 2):
            assert len({(i, j) in certain for i in one for j in other}) == 1
        return sorted(blocks, key=lambda b: sum((other, min(b)) in certain for other in range(self.n_items) if other not in b))

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        if not super().allows(ranking, drawn, features):
            return False
        certain, rest = self.certain(), set(range(self.n_items))
        try:
            blocks = self.blocks(certain)
        except AssertionError:
            return False
        number = {item: n for n, block in enumerate(blocks) for item in block}
        if drawn is not None and [number[item] for item in range(self.n_items)] != drawn.blocks.tolist():
            return False
        for item in ranking:
            if number[item] != min(number[other] for other in rest):
                return False
            if self.inside == "certain" and any((other, item) in certain for other in rest):
                return False
            rest.remove(item)
        return True

    # ------------------------------------------------------------------------------------------------------- learning

    def candidates(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """The features of the clicked candidates, and of those to which they are preferred."""
        ranking, clicks = self.session
        if not any(clicks):
            return [], []
        last = max(k for k, click in enumerate(clicks) if click)
        considered = range(len(clicks))[: last + 2] if self.one_below else range(last + 1)
        return tuple([self.features[ranking[k]] for k in considered if clicks[k] == wanted] for wanted in (1, 0))

    def are_pairs(self, deltas: Sequence[np.ndarray], clicked: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> bool:
        """Whether differences are those of distinct candidates, one to one."""
        if not len(deltas):
            return True
        for a, x in enumerate(clicked):
            for b, y in enumerate(others):
                if (x - y).tolist() == deltas[0].tolist():
                    rest = [*clicked[:a], *clicked[a + 1 :]], [*others[:b], *others[b + 1 :]]
                    if self.are_pairs(deltas[1:], *rest):
                        return True
        return False

    def gradient(self, weights: np.ndarray) -> tuple[float, float]:
        """Norm of the gradient of the loss, and what it may be by rounding."""
        deltas = np.array(self.pairs)
        scale = 1 / len(deltas) if self.loss == "mean" else 1.0
        ridge = self.l2 * (2 if self.loss == "mean" else 1)
        slope = -scale * deltas.T @ expit(-deltas @ weights) + ridge * weights
        size = scale * np.abs(deltas).sum() + ridge * np.abs(weights).sum()
        return float(np.linalg.norm(slope)), 1e-8 + 1e-12 * float(size)

    def agrees(self, state: Any) -> bool:
        n, clicked, others = int(state.n_pairs[0]), *self.candidates()
        new = [np.array(delta) for delta in state.pairs[len(self.pairs) : n]]
        if self.disjoint:
            good = len(new) == min(len(clicked), len(others)) and self.are_pairs(new, clicked, others)
        else:
            good = sorted(delta.tolist() for delta in new) == sorted((x - y).tolist() for x in clicked for y in others)
        self.session = ([], [])
        self.pairs += new
        gram, factor = self.gram(), np.triu(state.factor)
        good &= bool(np.allclose(factor.T @ factor, gram, rtol=CLOSE, atol=CLOSE * np.abs(gram).max()))
        if new and len(self.pairs) >= (1 + self.growth) * self.n_fitted:
            self.n_fitted = len(self.pairs)
            norm, most = self.gradient(state.weights)
            good &= norm <= most
            self.weights = np.array(state.weights)
        return good and state.weights.tolist() == self.weights.tolist()


# --------------------------------------------------------------------------------------------------------- DBGD and MGD


class DuelingReference(_Ranker):
    """DBGD and MGD: Yue and Joachims 2009 (ICML), Schuth et al. 2016 (WSDM)."""

    remembered = ("features", "directions", "credit")

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        n_features: int,
        learning_rate: float = 0.01,
        decay: float = 1.0,
        unit: float = 1.0,
        leaving: str = "team",
        tau: float = 3.0,
        n_candidates: int | None = None,
    ) -> None:
        super().__init__(n_items, n_positions, n_features)
        self.rate, self.decay, self.unit, self.leaving, self.tau = learning_rate, decay, unit, leaving, tau
        self.directions = np.zeros((0, n_features))
        self.credit = np.zeros((n_positions, 0))

    def scores(self) -> np.ndarray:
        """``(n + 1, L)``"""
        return np.array([self.weights, *(self.weights + self.unit * u for u in self.directions)]) @ self.features.T

    def drafted(self, ranking: Sequence[int], lists: Sequence[Sequence[int]], owners: Sequence[int]) -> bool:
        """Whether a list is one of team draft, with these owners; -1 of common positions."""
        common = 0
        while common < self.n_positions and len({rank[common] for rank in lists}) == 1:
            common += 1
        good = list(owners[:common]) == [-1] * common and list(ranking[:common]) == list(lists[0][:common])
        for k in range(common, self.n_positions):
            round_begins = k - (k - common) % len(lists)
            best = next(item for item in lists[owners[k]] if item not in ranking[:k])
            good &= owners[k] >= 0 and owners[k] not in owners[round_begins:k] and ranking[k] == best
        return good

    def shares(self, ranking: Sequence[int], lists: Sequence[Sequence[int]]) -> np.ndarray:
        """``(K, n + 1)`` whose a click on each position is, by probabilistic multileaving."""
        credit = np.zeros((self.n_positions, len(lists)))
        for k, item in enumerate(ranking):
            for r, order in enumerate(lists):
                mass = {other: (place + 1.0) ** -self.tau for place, other in enumerate(order)}
                credit[k, r] = mass[item] / sum(mass[other] for other in order if other not in ranking[:k])
        return credit / credit.sum(axis=1, keepdims=True)

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        good = super().allows(ranking, drawn, features)
        self.directions, self.credit = np.array(drawn.directions), np.array(drawn.credit)
        good &= bool(np.allclose(np.linalg.norm(self.directions, axis=1), 1.0))
        lists, scores = drawn.lists.tolist(), self.scores()
        slack = TIE + 1e-12 * (np.abs(self.features).max() * (np.abs(self.weights).sum() + self.unit * len(self.weights)))
        for order, score in zip(lists, scores, strict=True):
            best = np.sort(score)[::-1][: len(order)]
            good &= len(set(order)) == len(order) and bool((np.abs(score[order] - best) <= slack).all())
        if self.leaving == "team":
            owners = [int(row.argmax()) if row.any() else -1 for row in self.credit]
            return good and set(self.credit.flat) <= {0.0, 1.0} and self.drafted(ranking, lists, owners)
        return good and bool(np.allclose(self.credit, self.shares(ranking, lists), rtol=1e-9, atol=1e-300))

    def advantage(self, clicks: Sequence[int], r: int) -> float:
        """How much likelier ranker r has more of the clicks than ranker 0, than fewer; by polynomials."""
        law = np.ones(1)
        for k, click in enumerate(clicks):
            if click:
                up, down = self.credit[k, r], self.credit[k, 0]
                law = np.convolve(law, [down, 1 - up - down, up])
        middle = len(law) // 2
        return float(law[middle + 1 :].sum() - law[:middle].sum())

    def agrees(self, state: Any) -> bool:
        clicks, most = self.session[1], 0.0
        self.session = ([], [])
        best = [u for r, u in enumerate(self.directions, start=1) if any(clicks) and self.advantage(clicks, r) > 1e-12]
        if best:
            self.weights = self.weights + self.rate * self.unit * np.mean(best, axis=0)
            most = self.rate * self.unit
            self.rate *= self.decay
        return math.isclose(state.rate[0], self.rate, rel_tol=CLOSE) and self.take_over(state, most)


# --------------------------------------------------------------------------------------------------------------- COLTR


class COLTRReference(_Ranker):
    """COLTR: Zhuang and Zuccon 2020 (ECIR)."""

    remembered = ("features", "law")

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        n_features: int,
        learning_rate: float = 0.05,
        unit: float = 1.0,
        n_candidates: int = 50,
        variance_weight: float = 1.0,
    ) -> None:
        super().__init__(n_items, n_positions, n_features)
        self.rate, self.unit, self.n_candidates, self.variance_weight = learning_rate, unit, n_candidates, variance_weight
        self.law = self.weights  # by which the display was drawn

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        self.law = self.weights
        return super().allows(ranking, drawn, features)

    def log_chances(self, weights: np.ndarray, ranking: Sequence[int]) -> np.ndarray:
        """``(K,)`` of each shown candidate among those not above it."""
        score, hidden = self.features @ weights, [item for item in range(self.n_items) if item not in ranking]
        return np.array([score[item] - logsumexp(score[[*ranking[k:], *hidden]]) for k, item in enumerate(ranking)])

    def judged(self, weights: np.ndarray, risk: np.ndarray, ranking: Sequence[int]) -> float:
        log_ratio = self.log_chances(weights, ranking) - self.log_chances(self.law, ranking)
        ratio = np.exp(log_ratio - log_ratio.max())
        mean = (ratio * risk).sum() / ratio.sum()
        deviation = math.sqrt((ratio**2 * (risk - mean) ** 2).sum() / ratio.sum() ** 2 / len(risk))
        return float(mean + self.variance_weight * deviation)

    def agrees(self, state: Any) -> bool:
        ranking, clicks = self.session
        self.session = ([], [])
        last = max((k for k, click in enumerate(clicks) if click), default=-1)
        risk = np.array([1.0 if not click and k < last else 0.0 for k, click in enumerate(clicks)])
        if last < 0 or not risk.any():
            return self.take_over(state, 0.0)
        directions = np.array(state.directions)
        good = directions.shape[0] == self.n_candidates and bool(np.allclose(np.linalg.norm(directions, axis=1), 1.0))
        standard = self.judged(self.weights, risk, ranking)
        ahead = np.array([standard - self.judged(self.weights + self.unit * u, risk, ranking) for u in directions])
        # What rounding decides is left to the agent.
        reach = np.abs(self.features).max() * (np.abs(self.weights).sum() + np.abs(self.law).sum() + self.unit)
        improves = np.where(np.abs(ahead - TIE) <= 1e-14 * len(self.weights) * reach, state.improves, ahead > TIE)
        if improves.any():
            self.weights = self.weights + self.rate * self.unit * directions[improves].mean(axis=0)
        return good and self.take_over(state, self.rate * self.unit)
