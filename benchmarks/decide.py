"""Whether what `decide` recommends is better in truth: simulated logs of one query, whose users are known.

A log is drawn by its seed. Its *kind* says what happens while it is recorded: nothing (one kind for each of eight kinds of
users), or one of ten stories in which lists, rates or sessions change with time; three more kinds show what remains wrong and
are counted apart. `PARAMETERS` has the ranges from which the rest is drawn.

- *Worse in truth* is a recommended list that gets fewer clicks than the list in production from the real users (bots are none),
  averaged over the time that the log covers, in sessions of all its lengths or in those that show whole lists. *Worse at the
  end* says the same of the last tenth of that time.
- A *chance* is a list better by 5 % in truth that was shown in at least 200 sessions, in at least 4 of 20 blocks of time
  together with the list in production; or a best list that is better by 5 %, for users whom a fitted model describes and who do
  not change. It is *found* if a list is recommended that is better.

    python benchmarks/decide.py --logs 390 --seed 1 --parameters development --out results.jsonl --processes 1

One line of JSON per log; logs that the file has are not decided again, so that a run can be stopped and resumed. With
``--counts`` examination and continuation come from the counts of `OTHERS` other queries, as `decide --counts` takes them: of
the same users, to whom other items are shown; write another file.
"""

from __future__ import annotations

import itertools
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import typer
from exam import Laws, examined, interval_text, users
from numpy.typing import NDArray
from scipy import special

import clickgym
from clickgym import envs
from clickgym.core.formats import markdown_table
from clickgym.core.kernels import specialise
from clickgym.offline import ClickLog, Counts, count_log, write_tidy
from clickgym.offline.decision.decide import AGENTS
from clickgym.offline.decision.evidence import LEVEL, Inquiry, larger_step, settle
from clickgym.offline.decision.models import Models
from clickgym.offline.decision.settings import Settings
from clickgym.offline.distinct import distinct

SETS = ("development", "report", "report-2", "report-3")
# fmt: off
PARAMETERS: dict[str, tuple[Any, ...]] = {
    # A pair is a range, a list has the choices; by set, in the order of `SETS`.
    "positions": ((3, 6), (2, 7), (2, 8), (3, 8)),
    "more items than positions": ((2, 6), (2, 8), (2, 5), (1, 7)),
    "attraction": (  # of a beta distribution
        [(1, 2), (1, 5), (2, 2)], [(1, 2), (1, 5), (2, 4), (1, 25), (2, 60)],
        [(1, 3), (2, 6), (1, 10), (1, 30), (3, 60), (3, 3)], [(1, 4), (3, 9), (1, 15), (2, 50), (2, 3)],
    ),
    "lowest examination": ((0.15, 0.5), (0.05, 0.7), (0.1, 0.8), (0.05, 0.6)),
    "size of the neighbours' effect": ((0.1, 0.6), (0.2, 0.9), (0.15, 0.8), (0.1, 1.0)),
    "other lists": ((2, 14), (1, 20), (2, 25), (1, 18)),  # drawn at random, and as many variants of production
    "shown as often as production": ((0.3, 2.0), (0.1, 3.0), (0.2, 4.0), (0.15, 2.5)),  # all others together
    "share of a swap": ((0.2, 0.6), (0.05, 0.8), (0.1, 0.7), (0.05, 0.9)),
    "steepness": ((0.4, 1.2), (0.2, 1.8), (0.3, 2.2), (0.25, 2.0)),  # of Plackett-Luce
    "sessions, log10": ((3.48, 5.48), (3.48, 5.7), (3.48, 5.7), (3.48, 5.7)),
    "several lengths": (1 / 3, 0.45, 0.4, 0.5),  # a share of the logs, as the next
    "shuffled file": (0.15, 0.15, 0.15, 0.15),  # with times
    "tick": ([1, 1000], [1, 1000, 60_000], [1, 100, 10_000], [1, 10, 1000]),  # of the clock, in ms
    "days": ([1, 7, 28], [1, 3, 14, 90], [2, 10, 30, 60], [1, 5, 20, 120]),
    "segments": ([97], [211], [307], [257]),  # in which nothing changes
    "drift": (
        ["line", "step", "wave", "walk"], ["ramp", "hump", "saw", "decay", "step", "walk"],
        ["ramp", "wave", "saw", "decay", "hump", "line"], ["ramp", "wave", "step", "decay", "hump", "walk"],
    ),
    "size of the drift": ((0.2, 1.0), (0.1, 1.6), (0.2, 1.4), (0.1, 1.5)),  # in logits, from the mean
    "each item's own drift": ((0.0, 0.15), (0.0, 0.25), (0.0, 0.2), (0.0, 0.25)),
    "begin": ((0.3, 0.9), (0.1, 0.96), (0.2, 0.93), (0.15, 0.95)),  # of lists that begin late; mirrored: end early
    "late share": ((0.3, 1.0), (0.0, 1.0), (0.1, 0.9), (0.0, 1.0)),  # of the lists
    "replaced": (0.4, 0.5, 0.35, 0.45),  # production ends where others begin, in a share of the logs
    "overlap": ((0.0, 0.1), (0.0, 0.25), (0.0, 0.4), (0.0, 0.3)),
    "season": (["wave"], *[["wave", "day and night", "day and week"]] * 3),
    "season cycles": ((1, 14), (2, 31), (3, 35), (1, 33)),
    "size of the season": ((0.2, 0.8), (0.1, 1.2), (0.15, 1.0), (0.1, 1.1)),
    "shares follow": ((0.3, 1.5), (0.2, 2.5), (0.3, 2.0), (0.2, 2.2)),
    "re-ranked every": ((1, 10), (1, 30), (2, 40), (1, 35)),  # segments
    "memory of clicks": ((0.3, 1.0), (0.0, 1.0), (0.2, 0.9), (0.0, 1.0)),
    "bots, share of the log": ((0.01, 1 / 6), (0.003, 1 / 6), (0.005, 1 / 6), (0.004, 1 / 6)),
    "bots, share of the sessions": ((0.1, 1.0), (0.05, 1.0), (0.1, 1.0), (0.05, 1.0)),
    "bots click": ([0.0, 0.5, 1.0, 1.0], [0.0, 0.1, 0.3, 0.7, 1.0], [0.0, 0.2, 0.5, 0.9, 1.0], [0.0, 0.15, 0.4, 0.8, 1.0]),
    "bots on production": (0.2, 0.35, 0.3, 0.4),
    "visits": ((2, 4), (2, 6), (2, 5), (2, 6)),
    "long campaign": ((0.2, 0.5), (0.2, 0.6), (0.25, 0.5), (0.2, 0.6)),
    "repeated, share": ((0.05, 0.5), (0.02, 0.8), (0.03, 0.7), (0.02, 0.75)),
    "repeated, times": ((2, 6), (2, 12), (2, 9), (2, 10)),
    "populations, swing": ((0.2, 0.45), (0.05, 0.5), (0.1, 0.5), (0.05, 0.45)),
}
# fmt: on

USERS = ("CM", "PBM", "UBM", "DBN", "CCM", "trust bias", "neighbours", "two kinds")
DESCRIBED = ("CM", "PBM", "UBM", "DBN", "CCM")
"""Users that one of the fitted models describes."""
STORIES = (
    "production learns", "begins late", "ends early", "bots on one list", "bots on several lists", "season", "drift",
    "repeated sessions", "changing populations", "changing lengths",
)  # fmt: skip
APART = ("shuffled, no times", "bots come again", "long campaign")
"""What no rule on clicks can see: not counted with the others."""
KINDS = (*USERS, *STORIES)
BANDS = ((0, 50_000), (50_000, 100_000), (100_000, 10**9))
LAWS = Laws(0.7, (0.1, 0.9), (0.05, 0.8), (0.6, 0.98), ([0.6, 0.3, 0.1], [0.98, 0.95, 0.8]))
LOGGING = ("few lists", "swaps", "Plackett-Luce", "part at random", "at random")
ROUNDING = 1e-9
OTHERS, OF_OTHERS = 20, 3000
"""With counts, how many other queries there are, and how many sessions each of them has."""
BLOCKS, TOGETHER, SHOWN, WORTH = 20, 4, 200, 0.05
"""What makes a chance: blocks of time, in how many of them both lists were shown, sessions, and the gain."""

Floats = NDArray[np.float64]
Lists = NDArray[np.int64]


class Ranges:
    """The ranges of a set, and draws from them."""

    def __init__(self, parameters: str, rng: np.random.Generator) -> None:
        self.column, self.rng = SETS.index(parameters), rng

    def draw(self, name: str) -> Any:
        """A number of the range, or one of the choices."""
        value = PARAMETERS[name][self.column]
        if isinstance(value, list):
            return value[self.rng.integers(len(value))]
        return int(self.rng.integers(value[0], value[1] + 1)) if isinstance(value[0], int) else self.rng.uniform(*value)

    def happens(self, name: str) -> bool:
        """Whether something with this probability happens."""
        return bool(self.rng.random() < PARAMETERS[name][self.column])


# ---------------------------------------------------------------------------------------------------------------- users


def _draw(parameters, lists, uniforms, clicks, examined):  # type: ignore[no-untyped-def]
    for session in range(len(lists)):
        sample(parameters, lists[session], uniforms[session], clicks[session], examined[session])  # noqa: F821  (left open)


class Neighbours:
    """Users of a PBM whose clicks also depend on the items above and below: α(i) is multiplied for each pair of neighbours.

    Args:
        attraction, examination: as of the PBM.
        above, below: ``(L, L)`` factors of an item by its neighbour.
    """

    def __init__(self, attraction: Any, examination: Any, above: Any, below: Any) -> None:
        self.attraction, self.examination, self.above, self.below = attraction, examination, above, below

    def rates(self, lists: Lists) -> Floats:
        """``(N, K)`` probabilities of clicks, also of lists that end above K (-1)."""
        effect = self.attraction[lists]
        effect[:, 1:] *= np.where(lists[:, 1:] >= 0, self.above[lists[:, 1:], lists[:, :-1]], 1.0)
        effect[:, :-1] *= np.where(lists[:, 1:] >= 0, self.below[lists[:, :-1], lists[:, 1:]], 1.0)
        return np.where(lists >= 0, np.minimum(effect, 0.98) * self.examination[: lists.shape[1]], 0.0)

    def clicks(self, lists: Lists, rng: np.random.Generator) -> NDArray[np.int8]:
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

    def __init__(self, model: envs.ClickModel) -> None:
        self.model = model

    def clicks(self, lists: Lists, rng: np.random.Generator) -> NDArray[np.int8]:
        """``(N, K)`` clicks; what stands below the end of a list does not change those above."""
        clicks, examined = np.zeros((2, *lists.shape), np.int8)
        specialise(_draw, sample=self.model.sample_kernel)(
            self.model.parameters, np.maximum(lists, 0), rng.random(lists.shape), clicks, examined
        )
        return clicks * (lists >= 0)

    def value(self, ranking: Sequence[int]) -> float:
        """Expected clicks."""
        items = [*ranking, *(item for item in range(self.model.n_items) if item not in ranking)]
        return self.model.expected_reward(items[: self.model.n_positions], "clicks", len(ranking))


class TwoKinds:
    """Users of two kinds, who want different items.

    Args:
        kinds: the users of each kind.
        share: of the first.
    """

    def __init__(self, kinds: Sequence[Any], share: float) -> None:
        self.kinds, self.share = kinds, share

    def clicks(self, lists: Lists, rng: np.random.Generator) -> NDArray[np.int8]:
        """``(N, K)`` clicks."""
        first, second = (kind.clicks(lists, rng) for kind in self.kinds)
        return np.where(rng.random((len(lists), 1)) < self.share, first, second)

    def value(self, ranking: Sequence[int]) -> float:
        """Expected clicks."""
        first, second = (kind.value(ranking) for kind in self.kinds)
        return self.share * first + (1 - self.share) * second


def _model(kind: str, n_items: int, n_positions: int, ranges: Ranges) -> Callable[[Any], envs.ClickModel]:
    """A click model, by what is added to the logits of its attractions."""
    rng = ranges.rng
    a, b = ranges.draw("attraction")
    base = special.logit(rng.beta(a, b, n_items).clip(0.003, 0.95))
    examination = np.sort(rng.uniform(ranges.draw("lowest examination"), 1.0, n_positions))[::-1]
    model = users("TPBM" if kind == "trust bias" else kind, special.expit(base), examination, rng, LAWS)
    return lambda shift: model.with_items(attraction=special.expit(base + shift))


def _users(kind: str, n_items: int, n_positions: int, ranges: Ranges) -> Callable[[Any, float], Any]:
    """The users at a time: by what is added to the logits of attraction, and to the share of the first of two kinds."""
    rng = ranges.rng
    if kind == "neighbours":
        pbm = _model("PBM", n_items, n_positions, ranges)
        attraction, examination = (getattr(pbm(0.0), name) for name in ("attraction", "examination"))
        if rng.random() < 0.5:  # any pair
            size = ranges.draw("size of the neighbours' effect")
            above, below = np.exp(size * rng.standard_normal((2, n_items, n_items)))
        else:  # an item shines beside a worse one
            contrast = np.log(attraction[:, None] / attraction)
            above, below = (np.exp(size * contrast.clip(-2, 2)) for size in rng.uniform(-0.4, 0.4, 2))
        return lambda shift, more: Neighbours(pbm(shift).attraction, examination, above, below)
    if kind == "two kinds":
        models = [_model(str(rng.choice(DESCRIBED)), n_items, n_positions, ranges) for _ in range(2)]
        share = rng.uniform(0.3, 0.7)
        return lambda shift, more: TwoKinds([Modelled(model(shift)) for model in models], float(np.clip(share + more, 0, 1)))
    model = _model(kind, n_items, n_positions, ranges)
    return lambda shift, more: Modelled(model(shift))


# ---------------------------------------------------------------------------------------------------------------- lists


class Logging:
    """How the lists vary: arms, of which each session draws one. The first arm is production.

    Args:
        kind: one of `LOGGING`.
        base: the order of all L items whose first ones are production.
        mixed: whether production has an arm of its own in all kinds, so that its share can change.
        ranges: the arms are drawn from.
    """

    def __init__(self, kind: str, base: list[int], mixed: bool, ranges: Ranges) -> None:
        rng = ranges.rng
        self.kind, self.base, n_items = kind, np.array(base), len(base)
        if kind == "few lists":  # production, and variants of it and lists drawn at random, some often and some seldom
            variants, (many, few) = _swapped(base, n_items), [ranges.draw("other lists") for _ in range(2)]
            others = [rng.permutation(n_items).tolist() for _ in range(many)]
            self.others = np.array(others + [variants[i] for i in rng.integers(0, len(variants), few)])
            often = ranges.draw("shown as often as production")
            self.shares = np.r_[1.0, rng.dirichlet(np.ones(len(self.others))) * often]
        else:
            share = {"part at random": rng.uniform(0.1, 0.8), "at random": 0.02}.get(kind, 0.0)
            share = rng.uniform(0.2, 0.7) if mixed else share
            self.shares = np.array([share, 1 - share])
        self.swapped, self.steepness = [ranges.draw("share of a swap") for _ in range(2)], ranges.draw("steepness")

    def draw(self, n: int, activity: Floats, rng: np.random.Generator) -> tuple[Lists, Lists]:
        """The arms of n sessions, and the orders that they show.

        Args:
            n: the number of sessions.
            activity: factors of the shares of the arms.
            rng: draws them.
        """
        shares = self.shares * activity + [1e-9, *[0.0] * (len(self.shares) - 1)]
        arms = rng.choice(len(shares), n, p=shares / shares.sum())
        if self.kind == "few lists":
            return arms, np.vstack([self.base, self.others])[arms]
        return arms, np.where(arms[:, None] == 0, self.base, self._varied(n, rng))

    def _varied(self, n: int, rng: np.random.Generator) -> Lists:
        n_items, rows = len(self.base), np.arange(n)
        if self.kind == "Plackett-Luce":
            scores = -self.steepness * np.arange(n_items)
            return self.base[np.argsort(-(scores + rng.gumbel(size=(n, n_items))), axis=1)]
        lists = np.tile(self.base, (n, 1))
        if self.kind != "swaps":
            return rng.permuted(lists, axis=1)
        for share in self.swapped:  # up to two pairs of items change places
            i, j = rng.integers(0, n_items, (2, n))
            i = np.where(rng.random(n) < share, i, j)
            lists[rows, i], lists[rows, j] = lists[rows, j].copy(), lists[rows, i].copy()
        return lists


def _swapped(ranking: list[int], n_positions: int) -> list[list[int]]:
    """All orders with two items exchanged, of which one is shown."""
    pairs = [pair for pair in itertools.combinations(range(len(ranking)), 2) if pair[0] < n_positions]
    lists = [list(ranking) for _ in pairs]
    for row, (i, j) in zip(lists, pairs, strict=True):
        row[i], row[j] = row[j], row[i]
    return lists


def _production(kind: str, n_items: int, n_positions: int, value: Any, rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """The best list, by a search that swaps items until no swap gains, from several lists; and that in production: the best,
    one of 90 to 98 % of its value, or one drawn at random of less."""

    def worth(order: list[int]) -> float:
        return float(value(tuple(order[:n_positions])))

    def climb(ranking: list[int]) -> list[int]:
        while worth(better := max(_swapped(ranking, n_positions), key=worth)) > worth(ranking) + 1e-12:
            ranking = better
        return ranking

    best = max((climb(rng.permutation(n_items).tolist()) for _ in range(4)), key=worth)
    top = worth(best)
    if kind == "best":
        return best, best
    low, high = {"nearly best": (0.9, 0.98), "poor": (0.0, 0.9)}[kind]
    for _ in range(500):
        ranking = rng.permutation(n_items).tolist()
        if kind == "nearly best":
            ranking = list(best)
            for _ in range(rng.integers(1, 4)):
                i, j = rng.integers(0, [n_positions, n_items])
                ranking[i], ranking[j] = ranking[j], ranking[i]
        if low * top <= worth(ranking) <= high * top:
            break
    return best, ranking


# -------------------------------------------------------------------------------------------------------------- stories


def _course(shape: str, t: Floats, rng: np.random.Generator, cycles: int = 1) -> Any:
    """How something changes with time, with the mean 0 and about from -1 to 1."""
    phase, when, width = rng.random(), rng.uniform(0.1, 0.9), rng.uniform(0.02, 0.3)
    wave = np.sin(2 * np.pi * (cycles * t + phase))
    walk = np.cumsum(rng.standard_normal(len(t)))
    course = {
        "line": 2 * t,
        "step": 2.0 * (t > when),
        "wave": wave,
        "walk": 2 * (walk - walk.min()) / (np.ptp(walk) or 1.0),
        "ramp": 2 * np.clip((t - when) / width, 0, 1),
        "hump": 2 * np.exp(-(((t - when) / width) ** 2)),
        "saw": 2 * ((t / (2 * width) + phase) % 1),
        "decay": 2 * np.exp(-t / width),
        "day and night": np.sign(wave),
        "day and week": 0.6 * wave + 0.6 * np.sin(2 * np.pi * (cycles * t / 7 + when)),
    }[shape]
    return (course - course.mean()) * rng.choice([-1, 1])


def _story(kind: str, n_items: int, n_arms: int, shares: Floats, ranges: Ranges) -> tuple[Floats, ...]:
    """The story of a kind of logs; of others nothing changes.

    Returns:
        By segment: ``(S, L)`` what is added to the logits of attraction, ``(S,)`` to the share of the first of two kinds of
        users; ``(S, A)`` factors of the shares of the arms, and ``(S, A, lengths)`` shares of the lengths.
    """
    rng, n = ranges.rng, ranges.draw("segments")
    t = (np.arange(n) + 0.5) / n
    shift, populations, activity = np.zeros((n, n_items)), np.zeros(n), np.ones((n, n_arms))
    lengths = np.broadcast_to(shares, (n, n_arms, len(shares)))
    steady = ("repeated sessions", "changing lengths", "changing populations")
    if kind in STORIES and kind not in steady and not kind.startswith("bots"):
        season = kind == "season"
        course = _course(ranges.draw("season" if season else "drift"), t, rng, ranges.draw("season cycles") if season else 1)
        shift = np.outer(ranges.draw("size of the season" if season else "size of the drift") * course, np.ones(n_items))
        own = ranges.draw("each item's own drift") * (3 if kind in ("drift", "production learns") else 1)
        shift += own * np.transpose([_course(ranges.draw("drift"), t, rng) for _ in range(n_items)])
        if season:
            activity = np.exp(ranges.draw("shares follow") * np.outer(course, _signs(n_arms, rng)))
    if kind in ("begins late", "ends early"):
        late = np.r_[False, rng.random(n_arms - 1) < ranges.draw("late share")]
        late[rng.integers(1, n_arms)] = True
        begin = ranges.draw("begin")
        activity = np.where(late & (t[:, None] < begin), 0.0, activity)
        if ranges.happens("replaced"):
            activity[t > begin + ranges.draw("overlap"), 0] = 0.0
        if kind == "ends early":
            activity = activity[::-1]
    if kind == "changing populations":
        course = _course(ranges.draw("drift"), t, rng)
        populations = ranges.draw("populations, swing") * course
        activity = np.exp(ranges.draw("shares follow") * np.outer(course, _signs(n_arms, rng)))
    if kind == "changing lengths":
        course = _course(ranges.draw("drift"), t, rng)
        odds = np.log(shares) + np.outer(course, rng.standard_normal(len(shares)))[:, None]
        odds = odds + rng.standard_normal((n_arms, len(shares)))
        lengths = np.exp(odds) / np.exp(odds).sum(axis=2, keepdims=True)
    return shift, populations, activity, lengths


def _signs(n_arms: int, rng: np.random.Generator) -> Floats:
    """Which arms are shown more often when the others are shown less often; production stays."""
    return np.r_[0.0, np.ones(n_arms - 1) if rng.random() < 0.5 else rng.choice([-1.0, 1.0], n_arms - 1)]


def _learned(items: Lists, clicks: NDArray[np.int8], memory: Floats) -> Lists:
    """The order of all items by clicks per display; ``memory``, ``(2, L)``, has those of before, and then those of now too."""
    filled = items >= 0
    memory += [np.bincount(items[filled], of, memory.shape[1]) for of in (clicks[filled].astype(float), np.ones(filled.sum()))]
    return np.argsort(-(memory[0] + 0.1) / (memory[1] + 1), kind="stable")


def _visited(kind: str, items: Lists, clicks: NDArray[np.int8], arms: Lists, ranges: Ranges) -> None:
    """Bots take the place of users: each visit shows them one list, in all of its sessions."""
    rng, n = ranges.rng, len(items)
    several, long = kind == "bots on several lists", kind == "long campaign"
    n_visits = 1 if long or kind == "bots on one list" else ranges.draw("visits")
    length = ranges.draw("long campaign" if long else "bots, share of the log") / n_visits
    intensity, rate = ranges.draw("bots, share of the sessions"), ranges.draw("bots click")
    whole = np.flatnonzero(items[:, -1] >= 0)
    production, others = (whole[(arms[whole] == 0) == first] for first in (True, False))
    sources = [production if ranges.happens("bots on production") else others for _ in range(100 if several else 1)]
    lists = [*dict.fromkeys(tuple(items[rng.choice(source)].tolist()) for source in sources)][:n_visits]
    for visit in range(len(lists) if several else n_visits):
        begin = (visit + rng.random() * (1 - length * n_visits)) / n_visits
        rows = np.arange(int(begin * n), int((begin + length) * n))
        rows = rows[rng.random(len(rows)) < intensity]
        items[rows], clicks[rows] = lists[visit % len(lists)], rng.random((len(rows), items.shape[1])) < rate


# ----------------------------------------------------------------------------------------------------------------- logs


@dataclass(frozen=True)
class Simulated:
    """A log and its truth.

    Attributes:
        settings: how it was drawn.
        log: the sessions.
        in_order: the same log with the sessions in the order of time.
        value: of a list of items, ``(2, 2)``: the expected clicks of real users over the time of the log, and over its last
            tenth; of sessions of the log's lengths, and of whole lists.
        best: a list of the highest value if nothing changed.
        users: by what is added to the logits of attraction.
    """

    settings: dict[str, Any]
    log: ClickLog
    in_order: ClickLog
    value: Callable[[tuple[int, ...]], Floats]
    best: tuple[int, ...]
    users: Callable[[Floats], Any]


def simulate(seed: int, parameters: str) -> Simulated:
    """The log of a seed."""
    rng = np.random.default_rng([46, SETS.index(parameters), seed])
    ranges = Ranges(parameters, rng)
    kinds = (*KINDS, *KINDS, *APART)
    kind = kinds[seed % len(kinds)]
    story = kind if kind in STORIES else str(rng.choice(["begins late", "production learns"])) if kind == APART[0] else kind
    users_kind = kind if kind in USERS else "two kinds" if kind == "changing populations" else str(rng.choice(USERS))
    confounded = story not in (*USERS, "drift", "repeated sessions")
    logging_kind = str(rng.choice(LOGGING[: 4 if confounded else 5]))
    if confounded and rng.random() < 0.6:
        logging_kind = "few lists"
    production = str(rng.choice(["best", "nearly best", "poor"]))
    n_positions = ranges.draw("positions")
    n_items = n_positions + ranges.draw("more items than positions")
    n = round(10 ** ranges.draw("sessions, log10"))
    users_at = _users(users_kind, n_items, n_positions, ranges)
    several = ranges.happens("several lengths") or kind == "changing lengths"
    lengths = np.unique(rng.integers(min(2, n_positions - 1), n_positions, 2)) if several else np.array([], int)
    lengths = np.r_[lengths, n_positions]
    shares = rng.dirichlet(2 * np.ones(len(lengths)))

    @cache
    def by_length(users: Any, ranking: tuple[int, ...]) -> Floats:
        return np.array([users.value(ranking[:length]) for length in lengths])

    at = cache(lambda more, *shift: users_at(np.array(shift), more))
    base_users = at(0.0, *[0.0] * n_items)
    mean = lambda ranking: float(shares @ by_length(base_users, ranking))  # noqa: E731
    best, base = _production(production, n_items, n_positions, mean, rng)
    logging = Logging(logging_kind, base, confounded, ranges)
    shift, populations, activity, odds = _story(story, n_items, len(logging.shares), shares, ranges)
    users = [at(more, *shifts) for shifts, more in zip(shift.tolist(), populations.tolist(), strict=True)]
    segments = np.bincount(np.arange(n) * len(users) // n, minlength=len(users))
    pace, kept, memory = ranges.draw("re-ranked every"), ranges.draw("memory of clicks"), np.zeros((2, n_items))
    parts = []
    for s, size in enumerate(segments.tolist()):
        arms, orders = logging.draw(size, activity[s], rng)
        ends = (odds[s].cumsum(axis=1)[arms] < rng.random((size, 1))).sum(axis=1).clip(max=len(lengths) - 1)
        items = np.where(np.arange(n_positions) < lengths[ends][:, None], orders[:, :n_positions], -1)
        clicks = users[s].clicks(items, rng)
        if story == "production learns":
            order = _learned(items, clicks, memory)
            if s % pace == pace - 1:
                logging.base = order
                memory *= kept
        parts.append((items, clicks, arms, np.bincount(ends, minlength=len(lengths)) / max(size, 1)))
    items, clicks, arms = (np.concatenate([part[i] for part in parts]) for i in range(3))
    shown_lengths, weights = np.array([part[3] for part in parts]), segments / n
    if story.startswith("bots") or story == "long campaign":
        _visited(story, items, clicks, arms, ranges)
    tick, days = ranges.draw("tick"), ranges.draw("days")
    times = np.sort(rng.integers(0, days * 86_400_000, n)) // tick * tick
    if story == "repeated sessions":
        again = rng.random(n) < ranges.draw("repeated, share")
        copies = np.repeat(np.arange(n), np.where(again, ranges.draw("repeated, times"), 1))[:n]
        items, clicks, times = items[copies], clicks[copies], times[copies]

    def value(ranking: tuple[int, ...]) -> Floats:
        values = np.array([by_length(each, ranking) for each in users])
        ways = np.transpose([(shown_lengths * values).sum(axis=1), values[:, -1]])
        tenth = np.where(np.arange(len(users)) >= 0.9 * len(users), weights, 0.0)
        return np.array([weights @ ways, tenth @ ways / tenth.sum()])

    names = tuple(f"doc{number}" for number in rng.permutation(n_items))  # an item has no place in its label
    shuffled = kind == APART[0] or ranges.happens("shuffled file")
    in_order = ClickLog(items, clicks, np.zeros(n), names, ("query",), times=None if kind == APART[0] else times)
    log = in_order[rng.permutation(n)] if shuffled else in_order
    settings = {
        "seed": seed, "parameters": parameters, "kind": kind, "users": users_kind, "production": production, "story": story,
        "logging": logging_kind, "items": n_items, "positions": n_positions, "sessions": n, "lengths": lengths.tolist(),
        "shuffled": shuffled,
    }  # fmt: skip
    return Simulated(settings, log, in_order, value, tuple(best[:n_positions]), lambda shift: users_at(shift, 0.0))


def _counts(simulated: Simulated) -> Counts:
    """The counts of the log and of other queries."""
    rng, n_items = np.random.default_rng(simulated.settings["seed"]), simulated.settings["items"]
    log, n_positions = simulated.log, simulated.settings["positions"]
    items, clicks, queries = [log.items], [log.clicks], [np.zeros(len(log), int)]
    for query in range(1, OTHERS + 1):
        lists = rng.random((OF_OTHERS, n_items)).argsort(axis=1)[:, :n_positions]
        clicks.append(simulated.users(rng.standard_normal(n_items)).clicks(lists, rng))
        items.append(lists)
        queries.append(np.full(OF_OTHERS, query))
    labels = ("query", *(f"other {query}" for query in range(1, OTHERS + 1)))
    whole = ClickLog(*map(np.concatenate, (items, clicks, queries)), log.item_labels, labels)
    with tempfile.TemporaryDirectory() as folder:
        write_tidy(whole, f"{folder}/log.parquet")
        return count_log(f"{folder}/log.parquet", ["UBM"])


# ------------------------------------------------------------------------------------------------------------ decisions


def decided(seed: int, parameters: str, counted: bool = False) -> dict[str, Any]:
    """What is decided from the log of a seed, and what that is worth."""
    simulated = simulate(seed, parameters)
    counts = _counts(simulated) if counted else None
    row, start = simulated.settings, time.process_time()
    with warnings.catch_warnings(action="ignore"):
        production, recommended = _verdicts(simulated.log, counts)
        row |= {"version": clickgym.__version__, "seconds": round(time.process_time() - start, 2)}
        if row["shuffled"] and row["kind"] not in APART:
            row["same"] = _verdicts(simulated.in_order, counts) == (production, recommended)
    item = {name: number for number, name in enumerate(simulated.log.item_labels)}
    now, *others = (tuple(item[label] for label in labels) for labels in (production, *(labels for _, labels in recommended)))
    row |= {"value": simulated.value(now)[0].tolist(), "chance": _chance(simulated, now), "recommended": []}
    for (result, _), ranking in zip(recommended, others, strict=True):
        gain, end = simulated.value(ranking) / simulated.value(now) - 1
        row["recommended"].append({"verdict": result, "gain": gain.tolist(), "end": end.tolist()})
    return row


def _verdicts(log: ClickLog, counts: Counts | None) -> tuple[Sequence[str], list[tuple[str, Sequence[str]]]]:
    """The list in production, and the lists that are recommended instead, each with its verdict."""
    models = Models(log, "clicks", seed=0, counts=counts)
    evidence = Inquiry(models, models.sessions("query"), Settings.check(AGENTS, 1, 1, 0, "clicks", None)).evidence
    result, ground = settle(evidence.grounds, evidence.enough, LEVEL)
    if ground is None or result not in ("better", "likely better"):
        return evidence.production, []
    larger = larger_step(evidence.grounds, ground, LEVEL)
    return evidence.production, [(result, ground.labels), *([] if larger is None else [("larger step", larger.labels)])]


def _chance(simulated: Simulated, production: tuple[int, ...]) -> dict[str, float] | None:
    """What there was to find: by lists that were shown how large a gain, and over how many standard errors in the whole log; by
    models how large a gain. None if there is nothing."""
    items, clicks = simulated.in_order.items, simulated.in_order.clicks
    first, index, counts = distinct(items)
    block = np.arange(len(items)) * BLOCKS // len(items)
    now, found = simulated.value(production), dict[str, float]()
    own, reward = (items == production).all(axis=1), clicks.sum(axis=1)
    for row in np.flatnonzero(counts >= SHOWN):
        ranking, here = tuple(items[first[row]].tolist()), index == row
        if min(ranking) >= 0 and len(np.intersect1d(block[here], block[own])) >= TOGETHER:
            gain = float((simulated.value(ranking)[0] / now[0] - 1).min())
            if gain >= max(WORTH, found.get("shown", 0.0)):
                error = (reward[here].var() / counts[row] + reward[own].var() / own.sum()) ** 0.5
                found |= {"shown": gain, "errors": float(gain * now[0, 1] / error) if error else 0.0}
    gain = float(simulated.value(simulated.best)[0, 0] / now[0, 0] - 1)
    steady = simulated.settings["kind"] in (*USERS, "repeated sessions") and simulated.settings["users"] in DESCRIBED
    if gain >= WORTH and steady:
        found["models"] = gain
    return found or None


# -------------------------------------------------------------------------------------------------------------- summary


LOGS = ("log", "logs", "recommended", "of them measured", "worse in truth", "worst", "worse at the end", "chances", "found")
CHANCES: Sequence[str] = ("sessions", "chances", "found", "95 %")


def summary(rows: Sequence[dict[str, Any]]) -> str:
    """The tables, as Markdown: by kind of log, and of all but those apart; and chances by the number of sessions."""
    counted = [row for row in rows if row["kind"] not in APART]
    by_kind = {kind: [row for row in rows if row["kind"] == kind] for kind in (*KINDS, *APART)}
    table, bands = [LOGS, *(_line(kind, by_kind[kind]) for kind in KINDS), _line("all", counted)], [CHANCES]
    table += [_line(f"apart: {kind}", by_kind[kind]) for kind in APART]
    for low, high in BANDS:
        chances = [_found(row) for row in counted if row["chance"] and low <= row["sessions"] < high]
        name = f"{low:,} to {high:,}" if low and high < 10**9 else f"from {low:,}" if low else f"up to {high:,}"
        bands.append((name, str(len(chances)), *_share(sum(chances), len(chances))))
    recommended = [each for row in counted for each in row["recommended"]]
    worse = sum(min(each["gain"]) < -ROUNDING for each in recommended)
    same = [row["same"] for row in counted if "same" in row]
    told = f"Worse in truth: {worse} of {len(recommended)}; {' '.join(_share(worse, len(recommended)))}."
    shuffled = f"Shuffled files decided like those in the order of time: {sum(same)} of {len(same)}."
    return "\n".join([*markdown_table(table), "", *markdown_table(bands), "", told, shuffled])


def _found(row: dict[str, Any]) -> bool:
    return any(min(each["gain"]) > 0 for each in row["recommended"])


def _share(count: int, n: int) -> tuple[str, str]:
    """A share, and its interval after Clopper and Pearson."""
    if not n:
        return "–", "–"
    return f"{count / n:.1%}", interval_text(count, n)


def _line(kind: str, rows: Sequence[dict[str, Any]]) -> Sequence[str]:
    recommended = [each for row in rows for each in row["recommended"]]
    worse = [gain for each in recommended if (gain := min(each["gain"])) < -ROUNDING]
    at_end = sum(min(each["end"]) < -ROUNDING for each in recommended)
    measured = sum(each["verdict"] == "better" for each in recommended)
    chances = [_found(row) for row in rows if row["chance"]]
    counts = (len(rows), len(recommended), measured, len(worse), f"{min(worse):.1%}" if worse else "–", at_end)
    return [*map(str, (kind, *counts, len(chances), sum(chances)))]


def main(
    logs: int = 390, seed: int = 0, parameters: str = SETS[0], counts: bool = False, out: Path = Path("decide.jsonl"),
    processes: int = 1,
) -> None:  # fmt: skip
    """Decide the logs that the file lacks, which have the seeds 1000 * seed, 1000 * seed + 1, ..., and print the tables."""
    wanted = [(1000 * seed + number, parameters) for number in range(logs)]
    print(summary(examined(partial(decided, counted=counts), wanted, ("seed", "parameters"), out, processes)))


if __name__ == "__main__":
    typer.run(main)
