"""What the next steps of ``clickgym decide --all`` earn, in simulated shops whose truth is known.

    python docs/next_steps.py    # prints the last table of how_good_is_decide.md

The users are none of the click models of clickgym. They read from the top and lose patience, on
mobile devices sooner. They have tastes, want different items at different hours, and find an item
worse if it stands below a better one. Some users return often. Expected clicks are exact.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from clickgym_logs import ClickLog, decide_all
from clickgym_logs.priorities import TEST_LEVEL, power_of_test
from clickgym_logs.within_blocks import POWER

DAYS, POSITIONS, SHOPS = 60, 10, 50
FIRST_DAY = 1_772_323_200  # 1 March 2026, in seconds since 1970
TEST = (30, 45)  # days of an A/B test
TESTS = 40  # simulated tests of a next step
PROVED = NormalDist().inv_cdf(1 - TEST_LEVEL)


class Shop:
    """The visits of users to a shop, and how they click."""

    def __init__(self, rng: np.random.Generator, n_queries: int, n_visits: int, n_items: int = 30):
        self.rng, self.n_items = rng, n_items
        shape = n_queries, n_items
        self.quality = rng.normal(-2.2, 0.9, shape)
        self.features = rng.normal(0, 1, (*shape, 2))
        self.evening, self.mobile = rng.normal(0, 0.35, (2, *shape))
        self.satisfies = rng.beta(2, 3, shape)
        popularity = np.arange(1, n_queries + 1) ** -0.8
        activity = rng.pareto(1.3, 15_000) + 0.3
        self.query = rng.choice(n_queries, n_visits, p=popularity / popularity.sum())
        self.user = rng.choice(15_000, n_visits, p=activity / activity.sum())
        self.time = np.sort(rng.integers(DAYS, size=n_visits) + rng.beta(4, 2, n_visits))  # in days
        self.day = self.time.astype(int)
        self.taste = rng.normal(0, 0.6, (15_000, 2))
        self.is_mobile = rng.random(15_000) < 0.6

    def guesses(self, *shape: int, error: float) -> np.ndarray:
        """Qualities as a ranker of the shop sees them."""
        return 0.6 * self.quality + self.rng.normal(0, error, (*shape, *self.quality.shape))

    def chances(self, lists: np.ndarray, visits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How probably a visit clicks each item that it looks at, and goes on after a click."""
        cell = self.query[visits, None], lists
        hour = np.cos(2 * np.pi * (self.time[visits] - 0.8))
        appeal = self.quality[cell] + 0.3 * hour[:, None] + self.evening[cell] * hour[:, None]
        appeal += np.einsum("nkd,nd->nk", self.features[cell], self.taste[self.user[visits]]) * 0.7
        appeal += self.mobile[cell] * self.is_mobile[self.user[visits], None]
        appeal[:, 1:] -= 0.3 * (appeal[:, :-1] + 2.2)
        return 1 / (1 + np.exp(-appeal)), 1 - self.satisfies[cell]

    def patience(self, visits: np.ndarray) -> np.ndarray:
        """How probably a visit looks at the next position."""
        return np.where(self.is_mobile[self.user[visits]], 0.84, 0.91)

    def worth(self, query: int, ranking: list[int]) -> float:
        """Expected clicks of a visit to a query, if each of its visits saw this list."""
        visits = np.flatnonzero(self.query == query)
        clicked, stays = self.chances(np.tile(ranking, (len(visits), 1)), visits)
        goes_on = self.patience(visits)[:, None] * (1 - clicked * (1 - stays))
        looks = np.cumprod(goes_on[:, :-1], axis=1)
        return float((clicked[:, 0] + (looks * clicked[:, 1:]).sum(axis=1)).mean())

    def clicks(self, lists: np.ndarray, visits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What visits click in their lists, and how far down each of them looks."""
        clicked, stays = self.chances(lists, visits)
        clicks = self.rng.random(lists.shape) < clicked
        goes_on = self.rng.random(lists.shape) < self.patience(visits)[:, None]
        goes_on &= ~clicks | (self.rng.random(lists.shape) < stays)
        looks = np.logical_and.accumulate(goes_on[:, :-1], axis=1)
        clicks[:, 1:] &= looks
        return clicks, 1 + looks.sum(axis=1)

    def error_of_test(self, query: int, lists: np.ndarray, sessions: int) -> float:
        """The standard error of an A/B test in which each user keeps one of two lists."""
        visits, differences = np.flatnonzero(self.query == query), []
        for _ in range(TESTS):
            first = self.rng.integers(max(1, len(visits) - sessions + 1))
            tested = visits[first : first + sessions]
            arms = self.rng.integers(2, size=15_000)[self.user[tested]]
            earned = self.clicks(lists[arms], tested)[0].sum(axis=1)
            differences.append(earned[arms == 1].mean() - earned[arms == 0].mean())
        return float(np.std(differences, ddof=1))

    def log(self, lists: np.ndarray) -> tuple[ClickLog, np.ndarray]:
        """The log of all visits with their lists, and how far down each of them looked."""
        clicks, looked = self.clicks(lists, np.arange(len(self.query)))
        n_queries = len(self.quality)
        log = ClickLog(
            lists + self.n_items * self.query[:, None],
            clicks,
            self.query,
            tuple(map(str, range(n_queries * self.n_items))),
            tuple(map(str, range(n_queries))),
            times=(FIRST_DAY + 86_400 * self.time).astype(np.int64),
            users=self.user,
        )
        return log, looked


def top(guesses: np.ndarray) -> np.ndarray:
    return np.argsort(-guesses, axis=-1)[..., :POSITIONS]


def search_engine(rng: np.random.Generator, as_seen: bool) -> tuple[Shop, ClickLog]:
    """Three servers break near ties in three ways, and the index changes after 20 and 40 days."""
    shop = Shop(rng, 60, 110_000)
    lists = top(shop.guesses(3, 1, error=0.8) + rng.normal(0, 0.12, (3, 3, *shop.quality.shape)))
    log, looked = shop.log(lists[shop.day // 20, rng.integers(3, size=len(shop.day)), shop.query])
    if as_seen:
        log = replace(log, items=np.where(np.arange(POSITIONS) < looked[:, None], log.items, -1))
    return shop, log


def tested_shop(rng: np.random.Generator, with_arm: bool) -> tuple[Shop, ClickLog]:
    """For 15 of the 60 days, half of the users get the lists of another ranker."""
    shop = Shop(rng, 30, 100_000)
    lists = top(shop.guesses(2, error=0.8))
    is_tested = (shop.day >= TEST[0]) & (shop.day < TEST[1])
    arms = (rng.random(15_000) < 0.5)[shop.user].astype(int)
    log, _ = shop.log(lists[arms * is_tested, shop.query])
    if with_arm:
        log = replace(log, arms=np.where(is_tested, arms, -1), arm_labels=("A", "B"))
    return shop, log


def category_pages(rng: np.random.Generator) -> tuple[Shop, ClickLog]:
    """A quarter of the items of each page is replaced every day."""
    shop = Shop(rng, 24, 40_000)
    is_gone = rng.random((DAYS, *shop.quality.shape)) < 0.25
    lists = top(shop.guesses(error=0.8) - 100 * is_gone)
    return shop, shop.log(lists[shop.day, shop.query])[0]


def figures(shop: Shop, log: ClickLog) -> Counter[str]:
    """What the next steps of a log earn, and what the best of the compared lists would."""
    days = DAYS if log.arms is None else TEST[1] - TEST[0]
    clicks = log.clicks.sum(axis=1)
    total: Counter[str] = Counter(today=clicks.sum() / DAYS)
    for decision in decide_all(log):
        if decision.query is None or not decision.compared:
            continue
        query, rate = int(decision.query), decision.sessions_a_day or 0.0
        labels = decision.production, *(entry.labels for entry in decision.compared)
        lists = np.array(labels, int) % shop.n_items
        today, *others = (shop.worth(query, ranking) for ranking in lists.tolist())
        gains = [other - today for other in others]
        best, variance = max([0.0, *gains]), float(clicks[shop.query == query].var())
        is_large = power_of_test(best, variance, round(rate * days)) >= POWER
        total.update(best=rate * best, large=is_large)
        if (chosen := decision.chosen) is None:
            continue
        row = decision.compared.index(chosen)
        gain, proved, step = gains[row], 1.0, "show"
        if decision.test_sessions is not None:
            error = shop.error_of_test(query, lists[[0, row + 1]], decision.test_sessions)
            chance, step = NormalDist(PROVED * error, error), "test"
            proved = chance.cdf(gain)
            total.update(power=decision.power, proved=proved, hoped=chance.cdf(decision.gain))
        total.update(expected=rate * decision.gain, true=rate * gain, earned=rate * gain * proved)
        total.update({"found": is_large, step: 1, f"{step}, worse": gain <= 0})
    return total


def main() -> None:
    logs = {
        "search engine, three servers with slightly different lists": (search_engine, False),
        "the same, cut to the items that users saw": (search_engine, True),
        "shop, an A/B test for 15 of 60 days": (tested_shop, False),
        "the same with `arm`": (tested_shop, True),
        "category pages whose items change daily": (category_pages,),
    }
    print("| log | today | expected | true | earned | best | found | show B | test B | power |")
    print("|---" * 10 + "|")
    for name, (make, *options) in logs.items():
        total: Counter[str] = Counter()
        for seed in range(SHOPS):
            total.update(figures(*make(np.random.default_rng([2026, seed]), *options)))
        heads = "today", "expected", "true", "earned", "best"
        cells = [f"{total[head] / SHOPS:,.1f}" for head in heads]
        cells.append(f"{total['found']} of {total['large']}")
        cells += [f"{total[step]}, {total[f'{step}, worse']} worse" for step in ("show", "test")]
        if total["test"]:
            power = (total[head] / total["test"] for head in ("power", "hoped", "proved"))
            cells.append(", ".join(f"{share:.0%}" for share in power))
        print("|", " | ".join([name, *cells]), "|", flush=True)


if __name__ == "__main__":
    main()
