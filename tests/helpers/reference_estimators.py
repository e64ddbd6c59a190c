"""Reference estimators of click models by brute force, which enumerate every sequence of a user's
coin flips.

A *story* tells a session as flips of named coins, such as ``("α", k)`` for the attraction of the
item at position k. Expectation maximisation counts, over all sequences that end in the observed
clicks, how often each coin was flipped and how often the coin came up true. This module shares no
code with clickgym.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, TypeAlias

from clickgym.logs import ClickLog

Coin: TypeAlias = tuple[Any, ...]
Flip: TypeAlias = Callable[[Coin], bool]
Flips: TypeAlias = tuple[tuple[Coin, bool], ...]

# ------------------------------------------------------------------------------------------------
# -------------- stories


def _position_based(flip: Flip, K: int) -> list[int]:
    # Flip both coins, regardless of each other's result.
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
        attracts = flip(("α", k))  # even at positions that nobody looks at
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
"""The stories of the click models that EM estimates, or in which no coin is hidden. The other
models are special cases: for example, a CM is a DCM in which users leave after a click.
"""

LAW_OF = {"CM": "DCM"}


@cache
def _sequences(name: str, K: int) -> dict[tuple[int, ...], list[Flips]]:
    """Return, for each click vector, the sequences of flips that produce this click vector."""
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
    """Brute-force estimate of a click model: the probability of each coin, which is 0.5 for a coin
    that was never flipped.

    Args:
        name: the name of the click model.
        iterations: the number of EM steps; all probabilities start at 0.5.
    """

    def __init__(self, name: str, iterations: int = 1) -> None:
        self.name, self.iterations = name, iterations
        self.story = LAW_OF.get(name, name)
        self.coins: dict[Coin, float] = {}

    def _coin(self, coin: Coin, query: str, items: Sequence[str]) -> Coin:
        """Return the parameter that a story's coin belongs to: that of a query and item, or that of
        a position.
        """
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
        """Count the coin flips of the cascade model in closed form: the items down to the first
        click were examined.
        """
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
        """Return the probability of a sequence of flips."""
        product = 1.0
        for coin, up in flips:
            p = self.p(self._coin(coin, query, items))
            product *= p if up else 1.0 - p
        return product

    def law(self, query: str, items: Sequence[str]) -> dict[tuple[int, ...], float]:
        """Return the probability of each click vector."""
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
    """Return the query, the items and the clicks of each session, with labels in place of numbers,
    down to the end of the session's list.
    """
    told = []
    for session, n in enumerate(log.lengths.tolist()):
        items = tuple(log.item_labels[item] for item in log.items[session, :n])
        query = log.query_labels[log.queries[session]]
        told.append((query, items, tuple(log.clicks[session, :n].tolist())))
    return told


# ------------------------------------------------------------------------------------------------
# -- what other sessions say


def reached(on: float, again: float, attraction: Sequence[float]) -> tuple[float, list[float]]:
    """Return the probability of no click on the given items, and the probability that each item was
    examined if there was no click. The user goes on to the first item with probability ``on``, and
    from a skipped item to the next one with probability ``again``.
    """
    ends, here = [1 - on], on
    for i, α in enumerate(attraction):
        here *= 1 - α
        ends.append(here * (1 - again if i < len(attraction) - 1 else 1))
        here *= again
    return sum(ends), [sum(ends[i + 1 :]) / sum(ends) for i in range(len(attraction))]


def last_click(clicks: Sequence[int]) -> int:
    """Return the position of the last click, or -1 if there is no click."""
    return max((k for k, click in enumerate(clicks) if click), default=-1)


def without(mean: float, successes: float, failures: float, least: float) -> float:
    """Return a mean after removing the given failures from its counts; at least ``least`` failures
    remain.
    """
    return successes / (successes + max(successes * (1 - mean) / mean - failures, least))


class LeaveOut:
    """One EM step without a prior, starting from clickgym's estimates. For items below the last
    click of a session, it uses what the other sessions tell about these items.

    Attributes:
        α: the resulting attraction of each pair of query and item.
        shared: the other resulting parameters, in a mapping from the estimator's attributes. For a
            DCM, the termination at the last position is left out; pairs that were never shown are
            left out of satisfaction.
    """

    def __init__(self, name: str, fitted: Any, log: ClickLog) -> None:
        self.name, self.pairs = name, fitted.pairs_
        self.before = dict(zip(self.pairs, fitted.attraction_.tolist(), strict=False))
        self.prior = fitted.prior_
        self.sessions = [
            ([(query, item) for item in items], clicks) for query, items, clicks in _told(log)
        ]
        self.clicked: dict[Any, float] = defaultdict(float)
        self.followed: dict[Any, float] = defaultdict(float)  # clicks with items below
        for pairs, clicks in self.sessions:
            for k, pair in enumerate(pairs):
                self.clicked[pair] += clicks[k]
                self.followed[self._group(pair, k)] += clicks[k] and k < len(pairs) - 1
        self.successes: dict[Any, float] = defaultdict(float, self.clicked)
        self.trials: dict[Any, float] = defaultdict(float)
        self.shared = (self._chain if name == "CCM" else self._scan)(fitted)
        a, b = self.prior
        self.α = [(a + self.successes[x]) / (a + b + self.trials[x]) for x in self.pairs]

    def _group(self, pair: Any, k: int) -> Any:
        return k if self.name == "DCM" else pair

    def _others(self, on: float, again: float, pairs: Sequence[Any], sure: Any) -> list[float]:
        """Return the attraction of the pairs below the last click, estimated from the other
        sessions.
        """
        _, seen = reached(on, again, [self.before[x] for x in pairs])
        a, b = self.prior
        return [
            without(self.before[x], a + sure(x), r, b) for x, r in zip(pairs, seen, strict=True)
        ]

    def _scan(self, fitted: Any) -> dict[str, list[float]]:
        if self.name == "DCM":
            s, g, mean = dict(enumerate(fitted.termination_.tolist())), 1.0, 0.5
        else:
            s = dict(zip(self.pairs, fitted.satisfaction_.tolist(), strict=False))
            g, n = fitted.perseverance_, self.followed
            mean = (1 + sum((2 + n[x]) * s[x] for x in s)) / (2 + sum(n.values()) + 2 * len(s))
        prior = (2 * mean, 2 - 2 * mean)
        left: dict[Any, float] = defaultdict(float)
        could_go_on = went_on = 0.0
        for pairs, clicks in self.sessions:
            last = last_click(clicks)
            sure = max(last, 0)
            for pair in pairs[: sure + 1]:
                self.trials[pair] += 1
            could_go_on, went_on = could_go_on + sure, went_on + sure
            below, group = pairs[sure + 1 :], self._group(pairs[sure], sure)
            if not below:
                continue
            p = s[group] if last >= 0 else 0.0
            others = self._others((1 - p) * g, g, below, self.clicked.__getitem__)
            if self.name == "DBN" and last >= 0:
                none, _ = reached((1 - p) * g, g, [self.before[x] for x in below])
                n, gone = 2 + self.followed[group], p / none
                stays = max(n * (1 - p) - (1 - gone), prior[1])
                leaves = max(n * p - gone, prior[0])
                p = leaves / (leaves + stays)
            none, seen = reached((1 - p) * g, g, others)
            left[group] += (last >= 0) * p / none
            for before, pair, now in zip([1 - p / none, *seen], below, seen, strict=False):
                self.trials[pair] += now
                could_go_on, went_on = could_go_on + before, went_on + now
        groups = [*range(len(s) - 1)] if self.name == "DCM" else self.pairs
        leaving = [(prior[0] + left[x]) / (sum(prior) + self.followed[x]) for x in groups]
        if self.name == "DCM":
            return {"termination_": leaving}
        return {"satisfaction_": leaving, "perseverance_": [(1 + went_on) / (2 + could_go_on)]}

    def _chain(self, fitted: Any) -> dict[str, list[float]]:
        names = "continue_after_skip_", "continue_after_click_", "continue_after_relevant_"
        τ1, τ2, τ3 = (getattr(fitted, name) for name in names)
        could, went = [0.0] * 3, [0.0] * 3

        def sure(pair: Any) -> float:
            return self.clicked[pair] + self.followed[pair] * self.before[pair]

        for pair, n in self.followed.items():  # the second coin of each click
            self.trials[pair] += n
        for pairs, clicks in self.sessions:
            last = last_click(clicks)
            place = max(last, 0)
            for k, pair in enumerate(pairs[: place + 1]):
                self.trials[pair] += 1
                if k == place:
                    break
                m = self.before[pair]
                relevant = clicks[k] * m * τ3 / ((1 - m) * τ2 + m * τ3)
                self.successes[pair] += relevant
                for i, n in enumerate((1 - clicks[k], clicks[k] - relevant, relevant)):
                    could[i], went[i] = could[i] + n, went[i] + n
            below, m = pairs[place + 1 :], self.before[pairs[place]]
            if not below:
                continue
            on = τ1 if last < 0 else (1 - m) * τ2 + m * τ3
            none, seen = reached(on, τ1, self._others(on, τ1, below, sure))
            if last < 0:
                could[0], went[0] = could[0] + 1, went[0] + seen[0]
            else:
                went_on = seen[0] / on
                relevant = m * (1 - τ3) / none + m * τ3 * went_on
                self.successes[pairs[place]] += relevant
                could[1], could[2] = could[1] + 1 - relevant, could[2] + relevant
                went[1], went[2] = went[1] + (1 - m) * τ2 * went_on, went[2] + m * τ3 * went_on
            for now, further in pairwise(seen):
                could[0], went[0] = could[0] + now, went[0] + further
            for pair, now in zip(below, seen, strict=True):
                self.trials[pair] += now
        return {
            name: [(1 + passed) / (2 + n)]
            for name, passed, n in zip(names, went, could, strict=True)
        }
