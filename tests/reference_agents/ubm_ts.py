"""UBM-TS, slowly and in plain Python, from its specification; its random numbers are those of an agent of the same seed.

`UBMTSReference` is played beside an agent by `follow_late` of `late_displays`. It makes each list by itself, and the agent must
show the same one. `READINGS` are the other readings of the specification, each of which leads to other lists.
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

OF_CHANGE = {
    "absence": "the window of an item that was not observed for long is not closed",
    "evidence of a full examination": "a position where no click came counts as if it had been examined for certain",
    "evidence from misses alone": "a click does not change the evidence",
    "alone": "the alarm of one item does not raise the odds that the others have changed",
    "each alarm": "the second alarm of one change raises the odds that the others have changed once more",
    "all is forgotten": "an alarm forgets the item's clicks of the window, too",
    "nothing is forgotten": "an alarm closes the window and keeps the older clicks",
    "a rare change": "the rate of changes does not grow with the changes that were seen",
    "changes are alarms": "each alarm counts as a change of its own",
    "the whole window": "a window is not closed when it holds more than half of the item's exposure",
    "one number for all": "all items of a session share one uniform number, unmoved",
    "a change is recent": "an item that may have changed since it was seen is drawn by its window, not by the prior",
    "a wide prior": "the prior is drawn without the sharpness",
    "window's exposure stays": "a Gibbs step leaves the exposure of the windows",
}
OF_EXAMINATION = {
    "the click of above": "examination depends on whether there was a click above, not on where",
    "attraction by its centre": "the Gibbs step takes the centre of an item's angle, not a draw",
    "old exposure": "a Gibbs step leaves the exposure of the items",
    "gamma unscaled": "examination is not divided by the largest",
    "page order by estimates": "positions are exchanged for any gain",
}
OF_CONTINUATION = {
    "chance differs": "continuation differs by item as soon as its squared errors are larger than their mean",
    "few clicks count": "items of few expected clicks below them, too, tell whether continuation differs",
    "few clicks stay": "the continuation of an item of few expected clicks below it does not differ",
    "all that was clicked": "continuation is the ratio of clicks to expected ones, however few",
    "continuation at once": "continuation is estimated before each session, not from time to time",
    "continuation of the display": "late clicks count by the continuation that was estimated when the list was shown",
    "one rate": "clicks below a click are expected at one rate, wherever both positions are",
    "a rate of each position": "clicks below a click are expected at a rate of the lower position, wherever the click was",
    "rates of examination": "clicks below a click are expected by the examination of the position, not by what other items had",
    "rates with examination": "what is below a click counts by its examination, when it is asked what other items had",
    "more than chance": "continuation is drawn to one by what its squared errors are above those that chance may bring",
    "exposure without continuation": "what is below a click adds to the exposure as if continuation did not differ",
    "a display is a display": "what is below a click adds one display, whatever its continuation",
    "expected with continuation": "expected clicks below a click are those of the continuation",
    "expected by the ratio": "the attraction by which clicks are expected below a click has no prior",
    "expected in hindsight": "the attraction by which clicks are expected below a click knows of the click or miss there",
    "below what counts": "what follows a void click tells nothing of its item",
    "replaced continues": "an item that is replaced keeps its continuation",
    "replaced continues for a while": "an item that is replaced keeps its continuation until the next estimate",
    "order of draws": "the largest draws stand in their order, or on their positions, where continuation differs, too",
    "exchanges inside": "where continuation differs, only the items of the largest draws are exchanged",
    "exchanges with more": "where continuation differs, items of the list are exchanged with those of the 3 K largest draws",
    "exchanges by estimates": "where continuation differs, lists are compared by the centres of attractions, not by draws",
    "sure exchanges": "where continuation differs, items are exchanged for a sure gain only",
    "best exchange": "where continuation differs, the exchange that gains most is made first, not each that gains",
    "one pass": "where continuation differs, each exchange is tried once",
}
OF_CHANGED_CONTINUATION = {
    "changed continues": "an item that has changed keeps its continuation",
    "changed continues for a while": "an item that has changed keeps its continuation until the next estimate",
    "examination above one": "continuation may raise the examination of a position above one",
}
OF_ARRIVALS = {
    "the window stays open": "a window is not closed when its evidence is small",
    "rearranged": "positions are exchanged from the last order on, not from that of the page",
    "page order at once": "positions are exchanged as soon as that gains, not where it gains most",
    "void is no click": "a void click does not count as a click for the positions below",
    "void counts": "a void click or miss counts for the item",
    "replaced stays": "an item that is replaced keeps what is known of it",
    "of arrivals": "t counts the displays whose clicks have come",
    "foreign lists are no displays": "lists of others do not count in t",
    "no changes in foreign lists": "lists of others count in t, but not in the expected number of changes",
    "examination of the display": "late clicks count by the examination that was estimated when the list was shown",
    "seen at the display": "late clicks tell that an item was seen when the list was shown",
    "one step": "one Gibbs step, however many displays there were since the last one",
}
OF_GUARD = {
    "all of the list": "under the guard items of the list of production that stand below its last position are of it, too",
    "every exchange costs": "under the guard an exchange that is certainly right counts as a wrong one",
    "exchanges are free": "under the guard an exchange that is certainly right does not make up for a wrong one",
    "newcomers for certain": "under the guard an item that is new to the list is counted by its centre alone",
    "newcomers by draw": "under the guard an item that is new to the list stands where its draw says, or not at all",
    "newcomers free": "under the guard an item that is new to the list counts nothing",
}
OF_LOGS = {
    "continuation of logs": "lists of others tell of continuation, however old the examination is that counts them",
    "every step": "as many Gibbs steps after a long log as there would have been, not 30 at most",
}
READINGS = OF_CHANGE | OF_EXAMINATION | OF_CONTINUATION | OF_CHANGED_CONTINUATION | OF_ARRIVALS | OF_GUARD | OF_LOGS
"""What the agent does not do, by name; each group is told apart by a test of its own."""


class Continuation:
    """Of the clicks below those on an item.

    Args:
        n_positions: of a list.
        rate: that is believed until the next estimate.
    """

    def __init__(self, n_positions: int, rate: float = 1.0) -> None:
        # By the position, from 0, and that of the click on the item, from 1.
        self.clicks = [[0.0] * n_positions for _ in range(n_positions)]
        self.displays = [[0.0] * n_positions for _ in range(n_positions)]  # each counts by the attraction of what was shown
        self.rate = rate


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
        reading: of `READINGS`, one that it is not.
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
        reading: str = "",
    ) -> None:
        super().__init__(n_items, n_positions)
        if reading and reading not in READINGS:
            raise ValueError(f"reading is {reading!r}; expected one of READINGS")
        length = None if reading == "all of the list" else n_positions
        self.production = list(initial)[:length] if safe and initial is not None else None
        self.width = 1 / math.sqrt(sharpness)
        self.learns_examination, self.learns_continuation = learn_examination, learn_continuation
        self.arranges, self.detects = arrange and self.production is None, detect
        self.reading, self.rng = reading, rng or np.random.default_rng(seed)
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
        """Whether the agent's list is that of the reference, as what is remembered of a display."""
        is_same = self.rank(available) == ranking
        return self.memory() if is_same else None

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        return self.rank(set(self.available)) == list(ranking)

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        self.arrive(self.memory(), Clicks(list(ranking), list(clicks), [False] * len(clicks)))

    def memory(self) -> tuple[float, list[list[float]], list[float]]:
        """What readings remember of a display."""
        return self.expected, [list(row) for row in self.examination], [item.continuation.rate for item in self.items]

    def rank(self, available: set[int]) -> list[int]:
        self.browse()
        if self.reading != "of arrivals":
            self.count_display()
        self.n_differing += self.differs
        draws = self.draws()
        best = sorted(available, key=lambda item: -draws[item])
        if self.production is not None:
            return self.guarded(draws, best)
        if self.arranges and self.differs and self.reading != "order of draws":
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
                if self.reading != "one number for all":
                    u += GOLDEN
                    u -= u >= 1
                if u * (1 + odds) < absent:
                    centre, spread = item.recent if self.reading == "a change is recent" else posterior(0, 0)
                    if self.reading == "a wide prior":
                        z /= self.width
                elif u * (1 + odds) < odds:
                    centre, spread = item.recent
            draws.append(centre + spread * z)
        return draws

    # --------------------------------------------------------------------------------------------------------- examination

    def browse(self) -> None:
        """Gibbs steps, continuation and another arrangement, where they are due."""
        t = self.t + 1
        if self.reading == "continuation at once":
            self.estimate_continuation()
        if t < self.due:
            return
        steps = 1 + math.floor(math.log(t / max(self.due, 1)) / 0.005)
        if self.reading != "every step":
            steps = min(steps, 1 if self.reading == "one step" else 30)
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
            angle = centre if self.reading == "attraction by its centre" else cut_angle(centre + spread * z)
            attraction = math.sin(angle) ** 2
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

        largest = 1.0 if self.reading == "gamma unscaled" else max(map(max, self.examination))
        for k in range(K):
            for j in range(k + 1):
                self.examination[k][j] /= largest
        for item in items:
            exposure = 0.0
            for k in range(K):
                for j in range(k + 1):
                    exposure += self.examination[k][j] * item.displays[k][j]
            if self.reading != "window's exposure stays":
                item.recent_exposure *= exposure / item.exposure
            if self.reading != "old exposure":
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
        least = 1e-9 if self.reading == "few clicks count" else 5
        frequent = [i for i, x in enumerate(expected) if x >= least]
        excess = sum((clicks[i] - expected[i]) ** 2 / expected[i] - 1 for i in frequent)
        chance = 0.0 if self.reading == "chance differs" else 4 * math.sqrt(2 * len(frequent))
        self.differs, pull = excess > chance, 0.0
        if self.reading == "more than chance":
            excess -= chance
        if self.differs:
            pull = 1e-9 if self.reading == "all that was clicked" else sum(expected[i] for i in frequent) / excess
        for i, each in enumerate(every):
            is_other = self.differs and (i in frequent or self.reading != "few clicks stay")
            each.rate = (clicks[i] + pull) / (expected[i] + pull) if is_other else 1.0

    def rates_below(self, every: list[Continuation]) -> dict[tuple[int, int], float]:
        """Clicks in a display below a click, of all items, by the position and that of the click, from 1."""
        cells = [(k, j) for k in range(self.n_positions) for j in range(1, k + 1)]
        if self.reading == "rates of examination":
            return dict.fromkeys(cells, 1.0)
        groups = [[cell] for cell in cells]
        if self.reading == "one rate":
            groups = [cells]
        elif self.reading == "a rate of each position":
            groups = [[cell for cell in cells if cell[0] == k] for k in range(self.n_positions)]
        rates = {}
        for group in groups:
            clicks = sum(each.clicks[k][j] for each in every for k, j in group)
            displays = sum(each.displays[k][j] for each in every for k, j in group)
            rates |= dict.fromkeys(group, clicks / displays if displays > 0 else 0.0)
        return rates

    # --------------------------------------------------------------------------------------------------------- arrangement

    def arrange(self) -> None:
        """Where the best item stands, and the next one."""
        K = self.n_positions
        centres = [item.posterior[0] for item in self.items]
        best = sorted(range(self.n_items), key=lambda item: -centres[item])[:K]
        start = list(best)
        if self.reading == "rearranged":
            for item, position in zip(best, self.positions, strict=True):
                start[position] = item
        is_sure, at_once = self.reading != "page order by estimates", self.reading == "page order at once"
        row = self.improved(start, dict(enumerate(centres)), is_sure, at_once)
        self.n_exchanges += row != start
        self.positions = [row.index(item) for item in best]

    def arranged(self, draws: list[float], best: list[int]) -> list[int]:
        """The list of these draws, the items that can be shown being in their order."""
        n = 2 * self.n_positions
        if self.reading == "exchanges inside":
            n = self.n_positions
        elif self.reading == "exchanges with more":
            n = 3 * self.n_positions
        angles = [item.posterior[0] for item in self.items] if self.reading == "exchanges by estimates" else draws
        is_sure, at_once = self.reading == "sure exchanges", self.reading != "best exchange"
        return self.improved(best[:n], dict(enumerate(angles)), is_sure, at_once)

    def improved(self, items: list[int], angles: dict[int, float], is_sure: bool, at_once: bool) -> list[int]:
        """The list of the first items, after exchanges with one another and with those that follow.

        Args:
            items: at least as many as there are positions.
            angles: of attraction, of all of them.
            is_sure: whether an exchange must gain more than chance.
            at_once: whether each exchange is made that gains, not the one that gains most.
        """
        K, items = self.n_positions, list(items)
        sines = {item: math.sin(cut_angle(angles[item])) for item in items}
        attraction = {item: sine * sine for item, sine in sines.items()}
        clicks = self.clicks_of(items[:K], attraction)
        least = 2 * math.sqrt(clicks / self.t) if is_sure else ROUNDING
        for _ in range(1 if at_once and self.reading == "one pass" else 2 * K):
            gain, better, has_gained = least, items, False
            for x in range(K):
                for y in range(x + 1, len(items)):
                    others = list(items)
                    others[x], others[y] = others[y], others[x]
                    more = self.clicks_of(others[:K], attraction) - clicks
                    if at_once and more > least:
                        items, clicks, has_gained = others, clicks + more, True
                    elif not at_once and more > gain:
                        gain, better, has_gained = more, others, True
            if not has_gained:
                break
            if not at_once:
                items, clicks = better, clicks + gain
        return items[:K]

    def clicks_of(self, ranking: list[int], attraction: dict[int, float]) -> float:
        """The expected number of clicks, by the law of the last click above."""
        rates = [1.0] + [self.items[item].continuation.rate for item in ranking]
        chances, total = [1.0], 0.0
        for k, item in enumerate(ranking):
            clicked = 0.0
            for j in range(k + 1):
                examination = self.examination[k][j] * rates[j]
                if self.reading != "examination above one":
                    examination = min(examination, 1.0)
                lost = chances[j] * attraction[item] * examination
                chances[j] -= lost
                clicked += lost
            chances.append(clicked)
            total += clicked
        return total

    # ------------------------------------------------------------------------------------------------------------ learning

    def arrive(self, memory: Any, arrived: Clicks) -> None:
        """The clicks on a display, or (without a memory) on somebody else's list, which counts as a display."""
        if memory is None and self.reading == "no changes in foreign lists":
            self.t += 1
        elif self.reading == "of arrivals" or (memory is None and self.reading != "foreign lists are no displays"):
            self.count_display()
        now = self.memory()
        shown = memory or now
        seen = shown[0] if self.reading == "seen at the display" else now[0]
        examination = shown[1] if self.reading == "examination of the display" else now[1]
        j = 0
        for k, (item, click, void) in enumerate(zip(arrived.ranking, arrived.clicks, arrived.void, strict=True)):
            if click >= 0 and (not void or self.reading == "void counts"):
                above = min(j, 1) if self.reading == "the click of above" else j
                gamma, rate = examination[k][above], 1.0
                if j and self.learns_continuation:
                    clicked = arrived.ranking[j - 1]
                    continuation = self.items[clicked].continuation
                    rate = shown[2][clicked] if self.reading == "continuation of the display" else continuation.rate
                    known = self.t < self.due or self.reading == "continuation of logs"
                    if known and (self.reading != "below what counts" or not arrived.void[j - 1]):
                        continuation.clicks[k][j] += click
                        continuation.displays[k][j] += self.expected_below(self.items[item], click, gamma, rate)
                self.observe(self.items[item], k, above, click, gamma, rate, seen)
            if click == 1 and not (void and self.reading == "void is no click"):
                j = k + 1

    def expected_below(self, item: Item, click: int, gamma: float, rate: float) -> float:
        """The attraction of an item that is shown below a click, by which its display counts there."""
        clicks, examined = (0.0, 1e-9) if self.reading == "expected by the ratio" else (0.75, 1.5)
        if self.reading == "expected in hindsight":
            clicks, examined = clicks + click, examined + 1
        attraction = (clicks + item.total) / (examined + max(item.total, item.exposure))
        if self.reading == "expected with continuation":
            attraction *= rate
        elif self.reading in ("rates of examination", "rates with examination"):
            attraction *= gamma
        return attraction

    def observe(self, item: Item, k: int, j: int, click: int, gamma: float, rate: float, seen: float) -> None:
        """A click or miss on the item, where the continuation of what was clicked above has this rate."""
        if self.reading != "exposure without continuation":
            gamma *= rate
            if self.reading != "examination above one":
                gamma = min(gamma, 1.0)
        if self.detects:
            is_late = item.evidence < 1 and self.expected - item.seen > self.rate() * (1 + item.recent_exposure)
            if is_late and self.reading != "absence":
                item.close(item.seen)
            item.seen = seen
            p = (1 + item.total) / (2 + max(item.total, item.exposure))
            q = (1 + item.recent_total) / (2 + max(item.recent_total, item.recent_exposure))
            examined = 1.0 if self.reading == "evidence of a full examination" else gamma
            if not click:
                item.evidence *= (1 - examined * q) / (1 - examined * p)
            elif self.reading != "evidence from misses alone":
                item.evidence *= q / p
            item.recent_total += click
            item.recent_exposure += gamma
        item.clicks[k][j] += click
        item.displays[k][j] += 1 if self.reading == "a display is a display" else rate
        item.total += click
        item.exposure += gamma
        if self.detects:
            is_refuted = item.evidence < 0.05 and self.reading != "the window stays open"
            is_whole = item.recent_exposure > (0.5 + 1e-9) * item.exposure and self.reading != "the whole window"
            if is_refuted or is_whole:
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
        total, exposure = item.recent_total, item.recent_exposure
        if self.reading == "all is forgotten":
            of_clicks = of_displays = total = exposure = 0.0
        if self.reading != "nothing is forgotten":
            item.clicks = [[of_clicks * x for x in row] for row in item.clicks]
            item.displays = [[of_displays * x for x in row] for row in item.displays]
            item.total, item.exposure = total, exposure
        is_another = item.began > self.last_change
        if is_another or self.reading == "changes are alarms":
            self.n_changes += self.reading != "a rare change"
            self.last_change = self.expected
        if self.reading != "alone" and (is_another or self.reading == "each alarm"):
            for other in self.items:
                other.began -= 1
                other.seen -= 1
        item.seen = self.expected
        if self.reading != "changed continues":
            is_slow = self.reading == "changed continues for a while"
            item.continuation = Continuation(self.n_positions, item.continuation.rate if is_slow else 1.0)

    def replace(self, number: int) -> None:
        if self.reading != "replaced stays":
            before, item = self.items[number], Item(self.n_positions)
            item.seen = item.began = self.expected
            if self.reading == "replaced continues":
                item.continuation = before.continuation
            elif self.reading == "replaced continues for a while":
                item.continuation.rate = before.continuation.rate
            self.items[number] = item

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
            if self.reading == "newcomers by draw":
                del lists[1]
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
        if self.reading == "every exchange costs" or not self.is_better(x, y):
            return 1
        return 0 if self.reading == "exchanges are free" else -1

    def wrong(self, ranking: list[int]) -> int:
        """How many pairs more than in production may be in the wrong order."""
        production, total = self.production or [], 0
        for k, item in enumerate(ranking):
            above, below = ranking[:k], ranking[k + 1 :]
            if item in production:
                before = production[: production.index(item)]
                total += sum(self.cost(item, other) for other in below if other in before)
            elif self.reading != "newcomers free":
                centre, spread = self.items[item].posterior
                quantiles = [0.0] if self.reading == "newcomers for certain" else QUANTILES
                angles = [cut_angle(centre + quantile * spread) for quantile in quantiles]
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

    def agrees(self, state: Any) -> bool:
        """As of every reference; but readings are told apart by their lists alone."""
        return bool(self.reading) or super().agrees(state)
