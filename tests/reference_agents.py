"""The agents once more, slowly and in plain Python from the papers' pseudo-code: what the compiled kernels are tested against.

A reference does not draw. It is told the list that an agent showed, says whether the algorithm allows that list in its
state, and learns from the clicks; so an agent can be followed session by session whatever its random choices.
`KLUCBPlain` is another kind of reference: the plain definition of CascadeKL-UCB as kernels.

Also here: one small click model and one agent of each kind, which the test modules share.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from typing import Any

import numpy as np

from clickgym.agents import AGENTS, CascadeKLUCB, CompiledAgent
from clickgym.agents.kernels import exploration, kl_upper, rank_by_index
from clickgym.envs import (
    CascadeModel,
    ClickChainModel,
    ClickModel,
    DependentClickModel,
    DynamicBayesianModel,
    PositionBasedModel,
    TrustBiasModel,
    UserBrowsingModel,
)
from clickgym.envs.kernels import kernel

# --------------------------------------------------------------------------------------------------- models and agents

MODELS: dict[str, ClickModel] = {
    "CM": CascadeModel([0.2, 0.7, 0.1, 0.5, 0.3], n_positions=3),
    "PBM": PositionBasedModel([0.2, 0.7, 0.1, 0.5, 0.3], [0.9, 0.4, 0.6]),
    "DCM": DependentClickModel([0.2, 0.7, 0.1, 0.5, 0.3], [0.6, 0.3, 0.8]),
    "UBM": UserBrowsingModel([0.2, 0.7, 0.1, 0.5, 0.3], [[0.9, 0.0, 0.0], [0.6, 0.8, 0.0], [0.3, 0.5, 0.7]]),
    "DBN": DynamicBayesianModel([0.2, 0.7, 0.1, 0.5, 0.3], [0.5, 0.3, 0.9, 0.6, 0.2], 0.9, n_positions=3),
    "CCM": ClickChainModel([0.2, 0.7, 0.1, 0.5, 0.3], 0.9, 0.8, 0.3, n_positions=3),
    "TPBM": TrustBiasModel([0.2, 0.7, 0.1, 0.5, 0.3], [0.9, 0.4, 0.6]),
}
"""One small model of every class, none of them with its items in order."""

RANDOMISED = tuple(name for name in AGENTS if name not in ("Fixed", "Oracle"))


def make(name: str, model: ClickModel, *, horizon: int = 100, seed: Any = 0) -> CompiledAgent:
    """An agent of the registry for a model, with what its constructor asks for."""
    accepted = inspect.signature(AGENTS[name]).parameters
    arguments: dict[str, Any] = {}
    if "horizon" in accepted:
        arguments["horizon"] = horizon
    if "ranking" in accepted:
        best = model.optimal_ranking()
        arguments["ranking"] = best if name == "Oracle" else best[::-1]
    if "examination" in accepted:
        known = isinstance(model, PositionBasedModel)
        arguments["examination"] = model.examination if known else np.linspace(1.0, 0.5, model.n_positions)
    return AGENTS[name](model.n_items, model.n_positions, seed=seed, **arguments)


# --------------------------------------------------------------------------------------------------------- divergences


def bernoulli_kl(p: float, q: float) -> float:
    """KL(p, q), infinite where q excludes what p allows."""
    total = 0.0
    for a, b in ((p, q), (1 - p, 1 - q)):
        if a > 0:
            total += a * math.log(a / b) if b > 0 else math.inf
    return total


def bisect(is_low: Callable[[float], bool], low: float, high: float) -> float:
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if is_low(middle) else (low, middle)
    return (low + high) / 2


def upper_bound(p: float, bound: float) -> float:
    """The largest q ≥ p with KL(p, q) ≤ bound, by bisection."""
    return bisect(lambda q: bernoulli_kl(p, q) <= bound, p, 1.0)


def lower_bound(p: float, bound: float) -> float:
    """The smallest q ≤ p with KL(p, q) ≤ bound, by bisection."""
    return bisect(lambda q: bernoulli_kl(p, q) > bound, 0.0, p)


def exact_upper_bound(p: float, bound: float) -> Decimal:
    """`upper_bound` to 40 digits."""
    with localcontext() as context:
        context.prec = 60
        exact_p, one = Decimal(p), Decimal(1)

        def divergence(q: Decimal) -> Decimal:
            total = Decimal(0)
            if exact_p > 0:
                total += exact_p * (exact_p / q).ln()
            if exact_p < 1:
                total += (one - exact_p) * ((one - exact_p) / (one - q)).ln()
            return total

        low, high = exact_p, one
        for _ in range(140):
            middle = (low + high) / 2
            low, high = (middle, high) if middle == 0 or divergence(middle) <= Decimal(bound) else (low, middle)
        return low


# ------------------------------------------------------------------------------------------------------------- indices


class IndexReference:
    """Base of the references that rank by an index per item, in decreasing order; equal indices may come in any order."""

    def __init__(self, n_items: int, n_positions: int) -> None:
        self.n_items, self.n_positions, self.t = n_items, n_positions, 1
        self.clicks, self.seen = [0] * n_items, [0] * n_items

    def index(self, item: int) -> float:
        raise NotImplementedError

    def places(self) -> list[int]:
        """The positions in the order in which the best, second best, ... item is put."""
        return list(range(self.n_positions))

    def allows(self, ranking: Sequence[int]) -> bool:
        index = [math.inf if self.seen[item] == 0 else self.index(item) for item in range(self.n_items)]
        by_merit = [index[ranking[place]] for place in self.places()]
        best = sorted(index, reverse=True)[: self.n_positions]
        return all(have == want or abs(have - want) < 1e-9 for have, want in zip(by_merit, best, strict=True))

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        self.t += 1
        for k in self.examined(clicks):
            self.seen[ranking[k]] += 1
            self.clicks[ranking[k]] += clicks[k]

    def examined(self, clicks: Sequence[int]) -> range:
        return range(self.n_positions)


class CascadeReference(IndexReference):
    """CascadeUCB1 and CascadeKL-UCB: Kveton et al. 2015, Algorithm 1."""

    def __init__(self, n_items: int, n_positions: int, kind: str, feedback: str) -> None:
        super().__init__(n_items, n_positions)
        self.kind, self.feedback = kind, feedback

    def index(self, item: int) -> float:
        n, log_t = self.seen[item], math.log(self.t)
        mean = self.clicks[item] / n
        if self.kind == "UCB1":
            return mean + math.sqrt(1.5 * log_t / n)
        term = 0.0 if self.t == 1 else max(0.0, log_t + 3 * math.log(log_t))
        return upper_bound(mean, term / n) if term > 0 else mean

    def examined(self, clicks: Sequence[int]) -> range:
        clicked = [k for k in range(self.n_positions) if clicks[k]]
        if not clicked:
            return range(self.n_positions)
        return range((clicked[0] if self.feedback == "first_click" else clicked[-1]) + 1)


class PBMUCBReference(IndexReference):
    """PBM-UCB: Lagrée et al. 2016, section 4, from the counts per item and position."""

    def __init__(self, n_items: int, examination: Sequence[float], epsilon: float) -> None:
        super().__init__(n_items, len(examination))
        self.kappa, self.epsilon = list(examination), epsilon
        self.shown = [[0] * len(examination) for _ in range(n_items)]  # N_{i,l}

    def index(self, item: int) -> float:
        n = sum(self.shown[item])
        weighted = sum(kappa * count for kappa, count in zip(self.kappa, self.shown[item], strict=True))
        delta = (1 + self.epsilon) * math.log(self.t)
        return self.clicks[item] / weighted + math.sqrt(n / weighted) * math.sqrt(delta / (2 * weighted))

    def places(self) -> list[int]:
        return sorted(range(self.n_positions), key=lambda position: -self.kappa[position])

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        super().learn(ranking, clicks)
        for position, item in enumerate(ranking):
            self.shown[item][position] += 1


class GreedyReference(IndexReference):
    """The greedy half of EpsilonGreedy: clicks per display."""

    def index(self, item: int) -> float:
        return self.clicks[item] / self.seen[item]


# ----------------------------------------------------------------------------------------------------------- BatchRank


class BatchRankReference:
    """BatchRank: Zoghi et al. 2017, Algorithms 1-4 line by line, with line 16 read as `if s = 0`."""

    def __init__(self, n_items: int, n_positions: int, horizon: int) -> None:
        self.log_horizon = math.log(horizon)
        self.delta = self.log_horizon + 3 * math.log(self.log_horizon)
        self.active = [1]
        self.b_max = 1
        self.positions = {1: (1, n_positions)}  # I_b
        self.stage = {1: 0}
        self.remaining = {(1, 0): set(range(n_items))}  # B_{b,l}
        self.count: dict[tuple[int, int, int], int] = {}  # n_{b,l}(d)
        self.clicked: dict[tuple[int, int, int], int] = {}  # c_{b,l}(d)

    def length(self, stage: int) -> int:
        return math.ceil(16 * (2.0**-stage) ** -2 * self.log_horizon)

    def batches(self) -> list[tuple[int, int, int, frozenset[int]]]:
        """First position (from 0), number of positions, stage and items of the active batches, top to bottom."""
        found = []
        for b in self.active:
            (top, bottom), stage = self.positions[b], self.stage[b]
            found.append((top - 1, bottom - top + 1, stage, frozenset(self.remaining[b, stage])))
        return sorted(found)

    def _items(self, b: int) -> tuple[int, set[int], dict[int, int], int]:
        stage = self.stage[b]
        items = self.remaining[b, stage]
        counts = {d: self.count.get((b, stage, d), 0) for d in items}
        return stage, items, counts, min(counts.values())

    def allows(self, ranking: Sequence[int]) -> bool:
        for b in self.active:
            top, bottom = self.positions[b]
            _, items, counts, _ = self._items(b)
            shown = list(ranking[top - 1 : bottom])
            least = sorted(counts.values())[: len(shown)]
            if not set(shown) <= items or sorted(counts[d] for d in shown) != least:
                return False
        return True

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        for b in self.active:
            top, bottom = self.positions[b]
            stage, _, counts, n_min = self._items(b)
            for k in range(top, bottom + 1):
                d = ranking[k - 1]
                if counts[d] == n_min:
                    self.clicked[b, stage, d] = self.clicked.get((b, stage, d), 0) + clicks[k - 1]
                    self.count[b, stage, d] = counts[d] + 1
        for b in list(self.active):
            self._update_batch(b)

    def _update_batch(self, b: int) -> None:
        stage, items, _, n_min = self._items(b)
        top, bottom = self.positions[b]
        length, n = bottom - top + 1, self.length(stage)
        if n_min != n or len(items) == 1:
            return
        upper, lower = {}, {}
        for d in items:
            estimate = self.clicked.get((b, stage, d), 0) / n
            upper[d], lower[d] = upper_bound(estimate, self.delta / n), lower_bound(estimate, self.delta / n)
        d_ = sorted(items, key=lambda d: -lower[d])
        s = 0
        for k in range(1, length):
            if lower[d_[k - 1]] > max(upper[d] for d in d_[k:]):
                s = k
        if s == 0:
            self.remaining[b, stage + 1] = {d for d in items if upper[d] >= lower[d_[length - 1]]}
            self.stage[b] = stage + 1
        else:
            self.active.remove(b)
            for part, where in ((d_[:s], (top, top + s - 1)), (d_[s:], (top + s, bottom))):
                self.b_max += 1
                self.active.append(self.b_max)
                self.positions[self.b_max], self.stage[self.b_max] = where, 0
                self.remaining[self.b_max, 0] = set(part)


# ------------------------------------------------------------------------------------------------------------- TopRank


class TopRankReference:
    """TopRank: Lattimore et al. 2018, Algorithm 1, with all L² pairs updated and tested in every session."""

    def __init__(self, n_items: int, delta: float) -> None:
        self.items, self.delta = range(n_items), delta
        self.c = 4 * math.sqrt(2 / math.pi) / math.erf(math.sqrt(2))
        self.s = np.zeros((n_items, n_items), int)
        self.n = np.zeros((n_items, n_items), int)
        self.better: set[tuple[int, int]] = set()  # (i, j): i beats j

    def blocks(self) -> list[set[int]]:
        left, found = set(self.items), []
        while left:
            beaten = {j for i, j in self.better if i in left and j in left}
            found.append(left - beaten or set(left))
            left -= found[-1]
        return found

    def allows(self, ranking: Sequence[int]) -> bool:
        start = 0
        for block in self.blocks():
            if not set(ranking[start : start + len(block)]) <= block:
                return False
            start += len(block)
        return True

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        clicked = dict.fromkeys(self.items, 0) | dict(zip(ranking, clicks, strict=True))
        for block in self.blocks():
            for i in block:
                for j in block:
                    self.s[i, j] += clicked[i] - clicked[j]
                    self.n[i, j] += abs(clicked[i] - clicked[j])
        for i in self.items:
            for j in self.items:
                n = self.n[i, j]
                if n > 0 and self.s[i, j] >= math.sqrt(2 * n * math.log(self.c * math.sqrt(n) / self.delta)):
                    self.better.add((i, j))


# ------------------------------------------------------------------------------------ CascadeKL-UCB, plainly but compiled


@kernel
def rank_plainly(state, rng, ranking):  # type: ignore[no-untyped-def]
    bound = exploration(state.t[0])
    for item in range(len(state.indices)):
        n = state.examined[item]
        state.indices[item] = kl_upper(state.clicks[item] / n, bound / n) if n > 0 else np.inf
    rank_by_index(state.indices, state.order, rng, len(ranking))
    for k in range(len(ranking)):
        ranking[k] = state.order[k]


class KLUCBPlain(CascadeKLUCB):
    """CascadeKL-UCB by its definition: all indices solved in every session."""

    rank_kernel = rank_plainly
