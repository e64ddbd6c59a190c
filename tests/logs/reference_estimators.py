"""The estimators once more, by brute force: every sequence of a user's coins is enumerated.

A *story* tells a session as flips of named coins, ``("α", k)`` for the attraction of the item at
position k and so on; expectation maximisation counts, over all sequences that end in the clicks,
how often each coin was flipped and came up true. Nothing is shared with the package.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

from clickgym.logs import ClickLog

Coin: TypeAlias = tuple[Any, ...]
Flip: TypeAlias = Callable[[Coin], bool]
Flips: TypeAlias = tuple[tuple[Coin, bool], ...]

# ------------------------------------------------------------------------------------------------
# -------------- stories


def _position_based(flip: Flip, K: int) -> list[int]:
    # Both coins are flipped, whatever the other says.
    return [int(sum([flip(("α", k)), flip(("γ", k))]) == 2) for k in range(K)]


def _user_browsing(flip: Flip, K: int) -> list[int]:
    clicks: list[int] = []
    for k in range(K):
        last = max((j + 1 for j in range(k) if clicks[j]), default=0)
        clicks.append(int(sum([flip(("α", k)), flip(("γ", k, last))]) == 2))
    return clicks


def _dependent_click(flip: Flip, K: int) -> list[int]:
    clicks, looking = [0] * K, True
    for k in range(K):
        attracts = flip(("α", k))  # also where nobody looks
        if looking and attracts:
            clicks[k] = 1
            looking = not flip(("v", k))
    return clicks


def _dynamic_bayesian(flip: Flip, K: int) -> list[int]:
    clicks, looking = [0] * K, True
    for k in range(K):
        attracts = flip(("α", k))
        if looking and attracts:
            clicks[k] = 1
            looking = not flip(("s", k))
        if looking and k < K - 1:
            looking = flip(("g",))
    return clicks


def _click_chain(flip: Flip, K: int) -> list[int]:
    clicks = [0] * K
    for k in range(K):
        clicks[k] = int(flip(("α", k)))
        if k == K - 1:
            break
        after = ("τ", 0) if not clicks[k] else ("τ", 2) if flip(("α", k)) else ("τ", 1)
        if not flip(after):
            break
    return clicks


STORIES = {
    "PBM": _position_based,
    "UBM": _user_browsing,
    "DCM": _dependent_click,
    "DBN": _dynamic_bayesian,
    "CCM": _click_chain,
}
"""Of the models that EM estimates, or that hide no coin. The others follow from those: a CM is a
DCM whose users leave.
"""

LAW_OF = {"CM": "DCM"}


@cache
def _sequences(name: str, K: int) -> dict[tuple[int, ...], list[Flips]]:
    """For each click vector the sequences of flips that end in it."""
    found: dict[tuple[int, ...], list[Flips]] = defaultdict(list)
    scripts: list[list[bool]] = [[]]
    while scripts:
        script, flips = scripts.pop(), []

        def flip(coin: Coin, script: list[bool] = script, flips: list[Any] = flips) -> bool:
            flips.append((coin, script[len(flips)] if len(flips) < len(script) else True))
            return flips[-1][1]

        clicks = STORIES[name](flip, K)
        found[tuple(clicks)].append(tuple(flips))
        scripts += [[*(up for _, up in flips[:n]), False] for n in range(len(script), len(flips))]
    return dict(found)


# ------------------------------------------------------------------------------------------------
# ----------- estimation


class BruteForce:
    """An estimate of a click model: the probability of each coin, 0.5 for one that was never
    flipped.

    Args:
        name: of the model.
        iterations: its steps, from 0.5 everywhere.
    """

    def __init__(self, name: str, iterations: int = 1) -> None:
        self.name, self.iterations = name, iterations
        self.story = LAW_OF.get(name, name)
        self.coins: dict[Coin, float] = {}

    def _coin(self, coin: Coin, query: str, items: Sequence[str]) -> Coin:
        """A story's coin as that of a query and item, or of a position."""
        if coin[0] in ("α", "s"):
            return (coin[0], query, items[coin[1]])
        return coin

    def p(self, coin: Coin) -> float:
        if self.name == "CM" and coin[0] == "v":
            return 1.0
        return self.coins.get(coin, 0.5)

    def fit(self, log: ClickLog) -> BruteForce:
        self.sessions = _told(log)
        if self.name in STORIES:
            for _ in range(self.iterations):
                self._step()
        else:
            self._count()
        return self

    def _step(self) -> None:
        successes: dict[Coin, float] = defaultdict(float)
        trials: dict[Coin, float] = defaultdict(float)
        for query, items, clicks in self.sessions:
            weighed = [
                (self._weight(flips, query, items), flips)
                for flips in _sequences(self.story, len(items))[clicks]
            ]
            total = math.fsum(weight for weight, _ in weighed)
            for weight, flips in weighed:
                for coin, up in flips:
                    named = self._coin(coin, query, items)
                    trials[named] += weight / total
                    successes[named] += up * weight / total
        self.coins = {coin: (1 + successes[coin]) / (2 + trials[coin]) for coin in trials}

    def _count(self) -> None:
        """The cascade model in closed form: what stands down to the first click was examined."""
        successes: dict[Coin, float] = defaultdict(float)
        trials: dict[Coin, float] = defaultdict(float)
        for query, items, clicks in self.sessions:
            end = clicks.index(1) if 1 in clicks else len(items) - 1
            for k in range(end + 1):
                attraction = self._coin(("α", k), query, items)
                trials[attraction] += 1
                successes[attraction] += clicks[k]
        self.coins = {coin: (1 + successes[coin]) / (2 + trials[coin]) for coin in trials}

    def _weight(self, flips: Flips, query: str, items: Sequence[str]) -> float:
        """The probability of a sequence."""
        product = 1.0
        for coin, up in flips:
            p = self.p(self._coin(coin, query, items))
            product *= p if up else 1.0 - p
        return product

    def law(self, query: str, items: Sequence[str]) -> dict[tuple[int, ...], float]:
        """The probability of each click vector."""
        found = _sequences(self.story, len(items))
        return {
            clicks: math.fsum(self._weight(flips, query, items) for flips in all_)
            for clicks, all_ in found.items()
        }

    def log_likelihood(self, log: ClickLog) -> list[float]:
        laws = ((self.law(query, items), clicks) for query, items, clicks in _told(log))
        return [
            math.log(law[clicks]) if law.get(clicks, 0.0) > 0 else -math.inf for law, clicks in laws
        ]

    def perplexity_by_rank(self, log: ClickLog) -> list[float]:
        logs: list[list[float]] = [[] for _ in range(log.n_positions)]
        for query, items, clicks in _told(log):
            law = self.law(query, items)
            for k, click in enumerate(clicks):
                p = math.fsum(p for vector, p in law.items() if vector[k] == click)
                logs[k].append(math.log(p))
        return [math.exp(-math.fsum(values) / len(values)) for values in logs]


def _told(log: ClickLog) -> list[tuple[str, tuple[str, ...], tuple[int, ...]]]:
    """Query, items and clicks of each session, by their labels, down to the end of its list."""
    told = []
    for session, n in enumerate(log.lengths.tolist()):
        items = tuple(log.item_labels[item] for item in log.items[session, :n])
        query = log.query_labels[log.queries[session]]
        told.append((query, items, tuple(log.clicks[session, :n].tolist())))
    return told
