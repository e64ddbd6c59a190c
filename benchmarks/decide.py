"""Whether what `decide` recommends is better in truth: simulated logs of one query, whose users are known.

A log is drawn by its seed: users of eight kinds, 5 to 10 items, lists of 3 to 6 positions (in a third of the logs of several
lengths), 10³ to 10⁶ sessions, a list in production that is best, nearly best or poor, and one of four ways in which the lists
vary. Counted are the logs on which a list was recommended, those of them on which it is worse in truth than the list in
production, and, of the logs of 10⁵ sessions or more with at least 5 % to gain and users that a fitted model describes, the
share on which a list was recommended.

    python benchmarks/decide.py --logs 300 --seed 1 --out results.jsonl [--processes 1] [--verdicts-only]

One line of JSON per log; logs that the file has are not decided again, so that a run can be stopped and resumed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clickgym.core.kernels import specialise
from clickgym.envs import (
    CascadeModel,
    ClickChainModel,
    ClickModel,
    DynamicBayesianModel,
    PositionBasedModel,
    TrustBiasModel,
    UserBrowsingModel,
)
from clickgym.offline import ClickLog

USERS = ("CM", "PBM", "UBM", "DBN", "CCM", "trust bias", "neighbours", "two kinds")
DESCRIBED = ("CM", "PBM", "UBM", "DBN", "CCM")
"""Users that one of the fitted models describes."""
PRODUCTION = ("best", "nearly best", "poor")
LOGGING = ("few lists", "swaps", "Plackett-Luce", "uniform")

sample: Callable[..., Any]  # left open in the template below


def _draw(parameters, lists, uniforms, clicks, examined):  # type: ignore[no-untyped-def]
    for session in range(len(lists)):
        sample(parameters, lists[session], uniforms[session], clicks[session], examined[session])


class Neighbours:
    """Users of a PBM whose clicks also depend on the items above and below: α(i) is multiplied for each pair of neighbours.

    Args:
        attraction, examination: as of the PBM.
        above, below: ``(L, L)`` factors of an item by its neighbour.
    """

    def __init__(self, attraction: Any, examination: Any, above: Any, below: Any) -> None:
        self.attraction, self.examination, self.above, self.below = attraction, examination, above, below
        self.n_positions = len(examination)

    def rates(self, lists: NDArray[np.int64]) -> NDArray[np.float64]:
        """``(N, K)`` probabilities of clicks, also of lists that end above K (-1)."""
        effect = self.attraction[lists]
        effect[:, 1:] *= np.where(lists[:, 1:] >= 0, self.above[lists[:, 1:], lists[:, :-1]], 1.0)
        effect[:, :-1] *= np.where(lists[:, 1:] >= 0, self.below[lists[:, :-1], lists[:, 1:]], 1.0)
        return np.where(lists >= 0, np.minimum(effect, 0.98) * self.examination[: lists.shape[1]], 0.0)

    def clicks(self, lists: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int8]:
        """``(N, K)`` clicks."""
        return (rng.random(lists.shape) < self.rates(lists)).astype(np.int8)

    def value(self, ranking: Sequence[int]) -> float:
        """Expected clicks."""
        return float(self.rates(np.array([ranking])).sum())


class Modelled:
    """Users of a click model.

    Args:
        model: over L items and K positions.
    """

    def __init__(self, model: ClickModel) -> None:
        self.model, self.n_positions = model, model.n_positions

    def clicks(self, lists: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int8]:
        """``(N, K)`` clicks; what stands below the end of a list does not change those above."""
        clicks, examined = np.zeros((2, *lists.shape), np.int8)
        specialise(_draw, sample=self.model.sample_kernel)(
            self.model.parameters, np.maximum(lists, 0), rng.random(lists.shape), clicks, examined
        )
        return clicks * (lists >= 0)

    def value(self, ranking: Sequence[int]) -> float:
        """Expected clicks."""
        items = [*ranking, *(item for item in range(self.model.n_items) if item not in ranking)]
        return self.model.expected_reward(items[: self.n_positions], "clicks", len(ranking))


class TwoKinds:
    """Users of two kinds, who want different items.

    Args:
        kinds: the users of each kind.
        share: of the first.
    """

    def __init__(self, kinds: Sequence[Modelled], share: float) -> None:
        self.kinds, self.share, self.n_positions = kinds, share, kinds[0].n_positions

    def clicks(self, lists: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int8]:
        """``(N, K)`` clicks."""
        first, second = (kind.clicks(lists, rng) for kind in self.kinds)
        return np.where(rng.random((len(lists), 1)) < self.share, first, second)

    def value(self, ranking: Sequence[int]) -> float:
        """Expected clicks."""
        first, second = (kind.value(ranking) for kind in self.kinds)
        return self.share * first + (1 - self.share) * second


def _model(kind: str, n_items: int, n_positions: int, rng: np.random.Generator) -> ClickModel:
    attraction = rng.beta(*[(1, 2), (1, 5), (2, 2)][rng.integers(3)], n_items).clip(0.01, 0.95)
    examination = np.sort(rng.uniform(0.15, 1.0, n_positions))[::-1]
    if kind == "CM":
        return CascadeModel(attraction, n_positions)
    if kind == "PBM":
        return PositionBasedModel(attraction, examination)
    if kind == "trust bias":
        return TrustBiasModel(attraction, examination)
    if kind == "UBM":
        rows = np.zeros((n_positions, n_positions))
        for k, last in itertools.product(range(n_positions), range(n_positions)):
            if last <= k:  # as far below the last click as a position is below the top
                rows[k, last] = examination[k - last] * (rng.uniform(0.7, 1.0) if last else 1.0)
        return UserBrowsingModel(attraction, rows)
    if kind == "DBN":
        return DynamicBayesianModel(
            attraction, rng.uniform(0.05, 0.8, n_items), rng.uniform(0.6, 0.98), n_positions=n_positions
        )
    return ClickChainModel(attraction, *rng.uniform([0.6, 0.3, 0.1], [0.98, 0.95, 0.8]), n_positions)


def _users(kind: str, n_items: int, n_positions: int, rng: np.random.Generator) -> Any:
    if kind == "neighbours":
        pbm = _model("PBM", n_items, n_positions, rng)
        if rng.random() < 0.5:  # any pair
            size = rng.uniform(0.1, 0.6)
            above, below = np.exp(size * rng.standard_normal((2, n_items, n_items)))
        else:  # an item shines beside a worse one
            contrast = np.log(pbm.attraction[:, None] / pbm.attraction)
            above, below = (np.exp(size * contrast.clip(-2, 2)) for size in rng.uniform(-0.4, 0.4, 2))
        return Neighbours(pbm.attraction, pbm.examination, above, below)
    if kind == "two kinds":
        kinds = [Modelled(_model(str(rng.choice(DESCRIBED)), n_items, n_positions, rng)) for _ in range(2)]
        return TwoKinds(kinds, rng.uniform(0.3, 0.7))
    return Modelled(_model(kind, n_items, n_positions, rng))


@dataclass(frozen=True)
class Simulated:
    """A log and its truth.

    Attributes:
        settings: how it was drawn.
        log: the sessions.
        value: of a list of item labels, the expected clicks of the sessions of the log's lengths, and of a full list alone.
        best: the value of the best list.
    """

    settings: dict[str, Any]
    log: ClickLog
    value: Callable[[Sequence[str]], tuple[float, float]]
    best: float


def simulate(seed: int) -> Simulated:
    """The log of a seed."""
    rng = np.random.default_rng([27, seed])
    kind, production, logging = (str(rng.choice(names)) for names in (USERS, PRODUCTION, LOGGING))
    n_items = int(rng.integers(5, 12))
    n_positions = int(rng.integers(3, min(n_items, 6) + 1))
    n_sessions = round(10 ** rng.uniform(*[(3, 5), (5, 6)][int(rng.random() < 0.6)]))  # most logs have 10⁵ or more
    several = bool(rng.random() < 1 / 3)
    users = _users(kind, n_items, n_positions, rng)
    lengths = np.unique(rng.integers(2, n_positions + 1, 2)) if several else np.array([n_positions])
    lengths = np.union1d(lengths, [n_positions])
    shares = rng.dirichlet(2 * np.ones(len(lengths)))
    values: dict[tuple[int, ...], tuple[float, float]] = {}

    def value(ranking: tuple[int, ...]) -> tuple[float, float]:
        if ranking not in values:
            by_length = [users.value(ranking[:length]) for length in lengths]
            values[ranking] = (float(shares @ by_length), by_length[-1])
        return values[ranking]

    best, base = _production(production, n_items, n_positions, value, rng)
    lists = _lists(logging, base, n_sessions, rng)[:, :n_positions]
    if several:
        lists = np.where(np.arange(n_positions) < rng.choice(lengths, (n_sessions, 1), p=shares), lists, -1)
    # An item has no place in its label.
    names = tuple(f"doc{number}" for number in rng.permutation(n_items))
    log = ClickLog(lists, users.clicks(lists, rng), np.zeros(n_sessions), names, ("query",))
    settings = {
        "seed": seed, "users": kind, "production": production, "logging": logging, "items": n_items, "positions": n_positions,
        "sessions": n_sessions, "lengths": lengths.tolist(),
    }  # fmt: skip
    item = {name: number for number, name in enumerate(names)}
    return Simulated(settings, log, lambda labels: value(tuple(item[label] for label in labels)), best)


def _production(kind: str, n_items: int, n_positions: int, value: Any, rng: np.random.Generator) -> tuple[float, list[int]]:
    """The value of the best list, by a search that swaps items until no swap gains, from several lists; and that in production:
    the best, one of 90 to 99 % of its value, or one drawn at random of less."""

    def climb(ranking: list[int]) -> list[int]:
        while True:
            better = max(_swapped(ranking, n_positions), key=lambda other: value(tuple(other[:n_positions]))[0])
            if value(tuple(better[:n_positions]))[0] <= value(tuple(ranking[:n_positions]))[0] + 1e-12:
                return ranking
            ranking = better

    tops = [climb(rng.permutation(n_items).tolist()) for _ in range(4)]
    best = max(tops, key=lambda ranking: value(tuple(ranking[:n_positions]))[0])
    top = value(tuple(best[:n_positions]))[0]
    if kind == "best":
        return top, best
    low, high = {"nearly best": (0.9, 0.99), "poor": (0.0, 0.9)}[kind]
    for _ in range(500):
        ranking = rng.permutation(n_items).tolist()
        if kind == "nearly best":
            ranking = list(best)
            for _ in range(rng.integers(1, 4)):
                i, j = rng.integers(0, [n_positions, n_items])
                ranking[i], ranking[j] = ranking[j], ranking[i]
        if low * top <= value(tuple(ranking[:n_positions]))[0] <= high * top:
            return top, ranking
    return top, ranking


def _swapped(ranking: list[int], n_positions: int) -> list[list[int]]:
    lists = []
    for i, j in itertools.combinations(range(len(ranking)), 2):
        if i < n_positions:
            other = list(ranking)
            other[i], other[j] = other[j], other[i]
            lists.append(other)
    return lists


def _lists(kind: str, base: list[int], n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """``(n, L)`` the orders of all items whose first ones are shown."""
    n_items = len(base)
    if kind == "few lists":  # production, and variants of it and lists drawn at random, some often and some seldom
        others = [rng.permutation(n_items).tolist() for _ in range(rng.integers(2, 15))]
        variants = _swapped(base, n_items)
        others += [variants[i] for i in rng.integers(0, len(variants), rng.integers(2, 15))]
        shares = np.r_[1.0, rng.dirichlet(np.ones(len(others))) * rng.uniform(0.3, 2)]
        return np.array([base, *others])[rng.choice(len(shares), n, p=shares / shares.sum())]
    if kind == "swaps":  # production, in which up to two pairs of items change places
        lists, rows = np.tile(base, (n, 1)), np.arange(n)
        for share in rng.uniform(0.2, 0.6, 2):
            i, j = rng.integers(0, n_items, (2, n))
            i = np.where(rng.random(n) < share, i, j)
            lists[rows, i], lists[rows, j] = lists[rows, j].copy(), lists[rows, i].copy()
        return lists
    if kind == "Plackett-Luce":
        scores = -rng.uniform(0.4, 1.2) * np.arange(n_items)
        return np.array(base)[np.argsort(-(scores + rng.gumbel(size=(n, n_items))), axis=1)]
    lists = rng.permuted(
        np.tile(base, (n, 1)), axis=1
    )  # part of the sessions show a list drawn at random, the others production
    return np.where(rng.random((n, 1)) < rng.uniform(0.1, 0.8), base, lists)
