"""UBM-TS, slowly and in plain Python, from its specification; its random numbers are those of an agent of the same seed.

`UBMTSReference` is played beside an agent by `follow_late` of `late_displays`. It makes each list by itself, and the agent must
show the same one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .late_displays import Clicks
from .reference import Reference

GOLDEN = (math.sqrt(5) - 1) / 2
QUANTILES = [sign * size for sign in (-1, 1) for size in (1.645, 1.036, 0.674, 0.385, 0.126)]
CERTAINTY = 2.5
"""In spreads: by how much the angles of two items differ that are certainly in order."""
ROUNDING = 1e-9
"""Of expected clicks, which are the same for many lists where all is examined."""
PULL = 2.0
"""How many clicks, and how many expected ones, the examination of a position is taken to have had before the first session."""


class Continuation:
    """Of the clicks below those on an item.

    Args:
        n_positions: of a list.
    """

    def __init__(self, n_positions: int) -> None:
        # By the position, from 0, and that of the click on the item, from 1.
        self.clicks = [[0.0] * n_positions for _ in range(n_positions)]
        self.displays = [[0.0] * n_positions for _ in range(n_positions)]  # each counts by the attraction of what was shown
        self.rate = 1.0  # that is believed until the next estimate


class Item:
    """What is known of an item."""

    def __init__(self, n_positions: int) -> None:
        self.continuation = Continuation(n_positions)
        self.clicks = [[0.0] * n_positions for _ in range(n_positions)]
        self.displays = [[0.0] * n_positions for _ in range(n_positions)]
        self.total = self.exposure = 0.0
        self.recent_total = self.recent_exposure = 0.0
        self.evidence, self.began, self.seen = 1.0, 0.0, 0.0
        self.renew()

    def renew(self) -> None:
        self.posterior = posterior(self.total, self.exposure)
        self.recent = posterior(self.recent_total, self.recent_exposure)

    def close(self, began: float) -> None:
        """A new window begins."""
        self.recent_total = self.recent_exposure = 0.0
        self.evidence, self.began = 1.0, began


def posterior(total: float, exposure: float) -> tuple[float, float]:
    """Centre and spread of an item's angle, after so many clicks in so many examined displays."""
    n = max(total, exposure) + 1.5
    return math.asin(math.sqrt((total + 0.75) / n)), 1 / (2 * math.sqrt(n))


def cut_angle(angle: float) -> float:
    return min(max(angle, 0.0), math.pi / 2)


class UBMTSReference(Reference):
    """Thompson sampling in the user browsing model.

    Args:
        n_items, n_positions, initial, safe, sharpness, learn_examination, learn_continuation, arrange, detect: of the agent.
        seed: of the agent; or rng, a copy of its generator.
    """

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        initial: Sequence[int] | None = None,
        safe: bool = False,
        sharpness: float = 2.0,
        learn_examination: bool = True,
        learn_continuation: bool = True,
        arrange: bool = True,
        detect: bool = True,
        *,
        seed: int = 0,
        rng: np.random.Generator | None = None,
    ) -> None:
        super().__init__(n_items, n_positions)
        self.production = list(initial)[:n_positions] if safe and initial is not None else None
        self.width = 1 / math.sqrt(sharpness)
        self.learns_examination, self.learns_continuation = learn_examination, learn_continuation
        self.arranges, self.detects = arrange and self.production is None, detect
        self.rng = rng or np.random.default_rng(seed)
        self.items = [Item(n_positions) for _ in range(n_items)]
        # By the position, from 0, and that of the last click above, from 1; 0: there was none.
        self.examination = [[1.0] * (k + 1) for k in range(n_positions)]
        self.differs = False
        self.positions = list(range(n_positions))
        self.t, self.due = 0, 20
        self.expected, self.n_changes, self.last_change = 0.0, 0, -1.0
        self.n_alarms = self.n_exchanges = self.n_newcomers = self.n_differing = 0

    # ------------------------------------------------------------------------------------------------------------- ranking

    def show(self, ranking: list[int], state: Any, available: set[int]) -> Any:
        """Whether the agent's list is that of the reference; nothing else is remembered of a display."""
        return True if self.rank(available) == ranking else None

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        return self.rank(set(self.available)) == list(ranking)

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        self.arrive(True, Clicks(list(ranking), list(clicks), [False] * len(clicks)))

    def rank(self, available: set[int]) -> list[int]:
        self.browse()
        self.count_display()
        self.n_differing += self.differs
        draws = self.draws()
        best = sorted(available, key=lambda item: -draws[item])
        if self.production is not None:
            return self.guarded(draws, best)
        if self.arranges and self.differs:
            return self.arranged(draws, best)
        ranking = [-1] * self.n_positions
        for position, item in zip(self.positions, best, strict=False):
            ranking[position] = item
        return ranking

    def count_display(self) -> None:
        self.t += 1
        self.expected += self.rate()

    def rate(self) -> float:
        """Changes expected in a display."""
        return (0.003 + self.n_changes) / max(self.t, 1)

    def draws(self) -> list[float]:
        u, draws = self.rng.random(), []
        for item in self.items:
            z = self.width * self.rng.standard_normal()
            centre, spread = item.posterior
            if self.detects:
                absent = self.expected - item.seen
                odds = absent + (self.expected - item.began) * item.evidence
                u += GOLDEN
                u -= u >= 1
                if u * (1 + odds) < absent:
                    centre, spread = posterior(0, 0)
                elif u * (1 + odds) < odds:
                    centre, spread = item.recent
            draws.append(centre + spread * z)
        return draws

    # --------------------------------------------------------------------------------------------------------- examination

    def browse(self) -> None:
        """Gibbs steps, continuation and another arrangement, where they are due."""
        t = self.t + 1
        if t < self.due:
            return
        steps = min(1 + math.floor(math.log(t / max(self.due, 1)) / 0.005), 30)
        for _ in range(steps if self.learns_examination else 0):
            self.gibbs_step()
        self.estimate_continuation()
        if self.arranges and t > 1:
            self.arrange()
        self.due = t + 1 + math.floor(0.005 * t)

    def gibbs_step(self) -> None:
        K, items = self.n_positions, [item for item in self.items if item.exposure > 0]
        clicked = [[0.0] * K for _ in range(K)]
        expected = [[0.0] * K for _ in range(K)]
        for item in items:
            centre, spread = item.posterior
            z = self.width * self.rng.standard_normal()
            attraction = math.sin(cut_angle(centre + spread * z)) ** 2
            for k in range(K):
                for j in range(k + 1):
                    clicked[k][j] += item.clicks[k][j]
                    expected[k][j] += attraction * item.displays[k][j]

        above = 1.0
        num = den = PULL
        for k in range(K):
            above = self.examination[k][0] = (clicked[k][0] + PULL * above) / (expected[k][0] + PULL)
            for j in range(1, k + 1):
                num += clicked[k][j]
                den += expected[k][j] * above
        for k in range(K):
            for j in range(1, k + 1):
                clicks = clicked[k][j] + PULL * num / den * self.examination[k][0]
                self.examination[k][j] = clicks / (expected[k][j] + PULL)

        largest = max(map(max, self.examination))
        for k in range(K):
            for j in range(k + 1):
                self.examination[k][j] /= largest
        for item in items:
            exposure = 0.0
            for k in range(K):
                for j in range(k + 1):
                    exposure += self.examination[k][j] * item.displays[k][j]
            item.recent_exposure *= exposure / item.exposure
            item.exposure = exposure
            item.renew()

    def estimate_continuation(self) -> None:
        """Whether it differs by item more than by chance, and that of each."""
        if not self.learns_continuation:
            return
        every = [item.continuation for item in self.items]
        rates = self.rates_below(every)
        clicks = [sum(map(sum, each.clicks)) for each in every]
        expected = [sum(rate * each.displays[k][j] for (k, j), rate in rates.items()) for each in every]
        frequent = [i for i, x in enumerate(expected) if x >= 5]
        excess = sum((clicks[i] - expected[i]) ** 2 / expected[i] - 1 for i in frequent)
        self.differs = excess > 4 * math.sqrt(2 * len(frequent))
        pull = sum(expected[i] for i in frequent) / excess if self.differs else 0.0
        for i, each in enumerate(every):
            each.rate = (clicks[i] + pull) / (expected[i] + pull) if self.differs else 1.0

    def rates_below(self, every: list[Continuation]) -> dict[tuple[int, int], float]:
        """Clicks in a display below a click, of all items, by the position and that of the click, from 1."""
        rates = {}
        for k in range(self.n_positions):
            for j in range(1, k + 1):
                displays = sum(each.displays[k][j] for each in every)
                rates[k, j] = sum(each.clicks[k][j] for each in every) / displays if displays > 0 else 0.0
        return rates

    # --------------------------------------------------------------------------------------------------------- arrangement

    def arrange(self) -> None:
        """Where the best item stands, and the next one."""
        K = self.n_positions
        centres = [item.posterior[0] for item in self.items]
        best = sorted(range(self.n_items), key=lambda item: -centres[item])[:K]
        row = self.improved(best, dict(enumerate(centres)), is_sure=True)
        self.n_exchanges += row != best
        self.positions = [row.index(item) for item in best]

    def arranged(self, draws: list[float], best: list[int]) -> list[int]:
        """The list of these draws, the items that can be shown being in their order."""
        return self.improved(best[: 2 * self.n_positions], dict(enumerate(draws)), is_sure=False)

    def improved(self, items: list[int], angles: dict[int, float], is_sure: bool) -> list[int]:
        """The list of the first items, after exchanges with one another and with those that follow.

        Args:
            items: at least as many as there are positions.
            angles: of attraction, of all of them.
            is_sure: whether an exchange must gain more than chance, and the one is made that gains most, not each that gains.
        """
        K, items = self.n_positions, list(items)
        sines = {item: math.sin(cut_angle(angles[item])) for item in items}
        attraction = {item: sine * sine for item, sine in sines.items()}
        clicks = self.clicks_of(items[:K], attraction)
        least = 2 * math.sqrt(clicks / self.t) if is_sure else ROUNDING
        for _ in range(2 * K):
            gain, better, has_gained = least, items, False
            for x in range(K):
                for y in range(x + 1, len(items)):
                    others = list(items)
                    others[x], others[y] = others[y], others[x]
                    more = self.clicks_of(others[:K], attraction) - clicks
                    if not is_sure and more > least:
                        items, clicks, has_gained = others, clicks + more, True
                    elif is_sure and more > gain:
                        gain, better, has_gained = more, others, True
            if not has_gained:
                break
            if is_sure:
                items, clicks = better, clicks + gain
        return items[:K]

    def clicks_of(self, ranking: list[int], attraction: dict[int, float]) -> float:
        """The expected number of clicks, by the law of the last click above."""
        rates = [1.0] + [self.items[item].continuation.rate for item in ranking]
        chances, total = [1.0], 0.0
        for k, item in enumerate(ranking):
            clicked = 0.0
            for j in range(k + 1):
                lost = chances[j] * attraction[item] * min(self.examination[k][j] * rates[j], 1.0)
                chances[j] -= lost
                clicked += lost
            chances.append(clicked)
            total += clicked
        return total

    # ------------------------------------------------------------------------------------------------------------ learning

    def arrive(self, memory: Any, arrived: Clicks) -> None:
        """The clicks on a display, or (without a memory) on somebody else's list, which counts as a display."""
        if memory is None:
            self.count_display()
        j = 0
        for k, (number, click, void) in enumerate(zip(arrived.ranking, arrived.clicks, arrived.void, strict=True)):
            if click >= 0 and not void:
                item, rate = self.items[number], 1.0
                if j and self.learns_continuation:
                    continuation = self.items[arrived.ranking[j - 1]].continuation
                    rate = continuation.rate
                    if self.t < self.due:  # else the examination that counts is too old, as in a log
                        continuation.clicks[k][j] += click
                        continuation.displays[k][j] += (0.75 + item.total) / (1.5 + max(item.total, item.exposure))
                self.observe(item, k, j, click, rate)
            if click == 1:
                j = k + 1

    def observe(self, item: Item, k: int, j: int, click: int, rate: float) -> None:
        """A click or miss on the item, where the continuation of what was clicked above has this rate."""
        gamma = min(self.examination[k][j] * rate, 1.0)
        if self.detects:
            if item.evidence < 1 and self.expected - item.seen > self.rate() * (1 + item.recent_exposure):
                item.close(item.seen)
            item.seen = self.expected
            p = (1 + item.total) / (2 + max(item.total, item.exposure))
            q = (1 + item.recent_total) / (2 + max(item.recent_total, item.recent_exposure))
            item.evidence *= q / p if click else (1 - gamma * q) / (1 - gamma * p)
            item.recent_total += click
            item.recent_exposure += gamma
        item.clicks[k][j] += click
        item.displays[k][j] += rate
        item.total += click
        item.exposure += gamma
        if self.detects:
            if item.evidence < 0.05 or item.recent_exposure > (0.5 + 1e-9) * item.exposure:
                item.close(self.expected)
            elif (self.expected - item.began) * item.evidence > 1000:
                self.forget(item)
                item.close(self.expected)
        item.renew()

    def forget(self, item: Item) -> None:
        """An alarm: the item has changed when its window began."""
        self.n_alarms += 1
        of_clicks = item.recent_total / item.total if item.total else 0.0
        of_displays = item.recent_exposure / item.exposure
        item.clicks = [[of_clicks * x for x in row] for row in item.clicks]
        item.displays = [[of_displays * x for x in row] for row in item.displays]
        item.total, item.exposure = item.recent_total, item.recent_exposure
        if item.began > self.last_change:
            self.n_changes += 1
            self.last_change = self.expected
            for other in self.items:
                other.began -= 1
                other.seen -= 1
        item.seen = self.expected
        item.continuation = Continuation(self.n_positions)

    def replace(self, number: int) -> None:
        item = self.items[number] = Item(self.n_positions)
        item.seen = item.began = self.expected

    # --------------------------------------------------------------------------------------------------------------- guard

    def guarded(self, draws: list[float], best: list[int]) -> list[int]:
        """The list of production, in the order of the draws and with other items as far as that is safe.

        Args:
            draws: of all items.
            best: what can be shown, the largest draw first.
        """
        K, production = self.n_positions, self.production or []
        row = [item for item in production if item in best][:K]
        row += [item for item in best if item not in row][: K - len(row)]
        costs = 0
        for start in range(1, K):
            k = start
            while k > 0 and draws[row[k - 1]] < draws[row[k]]:
                cost = self.cost(row[k], row[k - 1])
                if 2 * (costs + cost) > K:
                    break
                costs += cost
                row[k - 1], row[k] = row[k], row[k - 1]
                k -= 1
        for _ in range(K):
            outside = [item for item in best if item not in row]
            leaving = min(reversed(range(K)), key=lambda k: draws[row[k]])
            if not outside or draws[outside[0]] <= draws[row[leaving]]:
                break
            others = row[:leaving] + row[leaving + 1 :]
            place = sum(draws[item] > draws[outside[0]] for item in others)
            lists = [others[:k] + outside[:1] + others[k:] for k in (place, K // 2)]
            accepted = [ranking for ranking in lists if 2 * self.wrong(ranking) <= K]
            if not accepted:
                break
            row = accepted[0]
            self.n_newcomers += 1
        return row

    def is_better(self, x: int, y: int) -> bool:
        """Whether the first item is certainly better."""
        (centre_x, spread_x), (centre_y, spread_y) = self.items[x].posterior, self.items[y].posterior
        return centre_x - centre_y > CERTAINTY * (spread_x + spread_y)

    def cost(self, x: int, y: int) -> int:
        """Of a pair with x above y that production has the other way round."""
        if not self.is_better(x, y):
            return 1
        return -1

    def wrong(self, ranking: list[int]) -> int:
        """How many pairs more than in production may be in the wrong order."""
        production, total = self.production or [], 0
        for k, item in enumerate(ranking):
            above, below = ranking[:k], ranking[k + 1 :]
            if item in production:
                before = production[: production.index(item)]
                total += sum(self.cost(item, other) for other in below if other in before)
            else:
                centre, spread = self.items[item].posterior
                angles = [cut_angle(centre + quantile * spread) for quantile in QUANTILES]
                total += max(self.misplaced(angle, above, below) for angle in angles)
        return total

    def misplaced(self, angle: float, above: list[int], below: list[int]) -> int:
        """How many items are not certainly in order with an item of this angle."""

        def bound(item: int, sign: int) -> float:
            centre, spread = self.items[item].posterior
            return centre + sign * CERTAINTY * spread

        return sum(angle > bound(item, -1) for item in above) + sum(angle < bound(item, 1) for item in below)

    # -------------------------------------------------------------------------------------------------------------- state

    def holds(self) -> dict[str, Any]:
        names = ["clicks", "displays", "total", "exposure"]
        if self.detects:
            names += ["recent_total", "recent_exposure", "evidence", "began", "seen"]
        changes = [self.expected, self.n_changes, self.last_change]
        return {name: [getattr(item, name) for item in self.items] for name in names} | {
            "changes": changes,
            "clicks_below": [item.continuation.clicks for item in self.items],
            "displays_below": [item.continuation.displays for item in self.items],
            "continuation": [item.continuation.rate for item in self.items],
            "positions": self.positions,
        }
