"""The evidence of a log about the lists of a query, and the verdict that follows; no agent plays here.

A list may be better for one of two reasons (grounds):

- **measured**: the list was logged in at least 100 sessions and earned significantly more than the list in production in the
  same blocks of time (see `lists`), after a correction for the number of lists. This assumes nothing about users.
- **models**: every click model that fits the held-out clicks, at all times, predicts a significant gain after a correction by
  the model's errors on logged lists (see `correction`). If no model fits, this ground does not exist. A list that the log
  cannot compare, because the lists changed with time, is never proposed.

Both are always looked for, and judged at the same level by one function, `settle`. A measured list comes first.

| verdict | ground | advice |
|---|---|---|
| ``better`` | measured | the list |
| ``likely better`` | models | the list, as an experiment |
| ``not proven`` | none at this level, but a 95 % interval of a gain without 0 | the list in production, and an experiment |
| ``not better`` | none, although lists or models could be compared | the list in production |
| ``unknown`` | none, because nothing could be compared | nothing |
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...envs.click_model import MAX_SEARCH
from ..distinct import distinct
from ..estimation.estimator import Estimator
from ..evaluation import LEAST_SESSIONS
from ..goodness_of_fit import Fit, Group, check_fit
from ..log import BLOCKS, ClickLog, time_blocks
from .correction import Corrected, Correction, Gains
from .lists import LEAST_BLOCKS, LEAST_IN_STRATUM, STEADY, DistinctLists, Lists, Measured, Refused, measure, production_list
from .models import MOST_SESSIONS, Models, SplitSessions
from .settings import LEVEL, Settings

POWER = 0.8
"""The probability with which an experiment of the advised length proves a gain as large as the estimated one."""
MOST_STEPS = 12

Verdict = Literal["better", "likely better", "not proven", "not better", "unknown"]


@dataclass(frozen=True)
class Score:
    """How well a click model predicts the held-out sessions of the query.

    Attributes:
        model: its name, with ``by query`` where its examination belongs to the query.
        log_likelihood: per session.
        perplexity_by_rank: of the clicks at each position; 1 is perfect.
    """

    model: str
    log_likelihood: float
    perplexity_by_rank: tuple[float, ...]


@dataclass(frozen=True)
class Judged:
    """The prediction of a well-fitting click model for a list that was rarely shown.

    Attributes:
        model: its name.
        predicted: the gain over the production list by the model alone.
        difference: the gain, corrected by the model's errors in the log where they lower it.
        standard_error: of that.
        typical_error: the typical error of the model for a list.
        p_value: of there being no gain.
    """

    model: str
    predicted: float
    difference: float
    standard_error: float
    typical_error: float
    p_value: float


@dataclass(frozen=True)
class Ground:
    """A list that may be better than the list in production, and what speaks for it.

    Attributes:
        name: ``"measured"`` or ``"models"``.
        labels: of its items, from the top.
        difference, standard_error: the gain per session; of the models that of the most doubtful.
        base: what the list in production earns.
        p_value: of there being no gain; of a measured list times the number of lists that stood to choose.
        doubt: of a measured list the p-value that shows whether a few stretches of time carry the gain, see `Measured`; else 0.
    """

    name: Literal["measured", "models"]
    labels: tuple[str, ...]
    difference: float
    standard_error: float
    base: float
    p_value: float
    doubt: float = 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Of the gain, with probability 95 %, as if no other list had stood to choose."""
        half = NormalDist().inv_cdf(0.975) * self.standard_error
        return self.difference - half, self.difference + half

    def holds(self, level: float) -> bool:
        """Whether the gain is proven at a level."""
        return self.p_value <= level and self.doubt <= STEADY


@dataclass(frozen=True)
class Evidence:
    """The evidence of the log about the lists of a query.

    Attributes:
        production: labels of the production list.
        grounds: the lists that may be better: of the measured ones those that no other surpasses in certainty and gain, then
            the one that the models propose.
        variance: of what a session of the query earned.
        scores: of the click models, best first.
        fits: their tests of fit, in the same order.
        groups: held-out displays beside the predictions of the best model, with the names of their patterns.
        measured: the logged lists that can be compared with that in production.
        refused: the logged lists that cannot, because lists changed with time.
        judged: what the models that fit say of the list that they propose.
        enough: whether there is anything to judge a list by.
        timed: whether the log has times; else the order of the file is taken for that of time.
        n_items: of the instance.
        level: at which the grounds are judged.
    """

    production: tuple[str, ...]
    grounds: tuple[Ground, ...]
    variance: float
    scores: tuple[Score, ...]
    fits: tuple[Fit, ...]
    groups: tuple[tuple[str, Group], ...]
    measured: tuple[Measured, ...]
    refused: tuple[Refused, ...]
    judged: tuple[Judged, ...]
    enough: bool
    timed: bool
    n_items: int
    level: float

    @property
    def proposal(self) -> tuple[str, ...] | None:
        """Labels of the list that the verdict is about; None where none stands out."""
        ground = settle(self.grounds, self.enough, self.level)[1]
        return None if ground is None else ground.labels

    @property
    def ground(self) -> str | None:
        """The reason for the proposal: ``"measured"`` or ``"models"``; None without a proposal."""
        ground = settle(self.grounds, self.enough, self.level)[1]
        return None if ground is None else ground.name

    @property
    def fitting(self) -> list[str]:
        """The models that passed the test of fit."""
        return [fit.model for fit in self.fits if fit.fits]


def settle(grounds: Sequence[Ground], enough: bool, level: float) -> tuple[Verdict, Ground | None]:
    """The verdict at a level, and the list that it is about.

    Args:
        grounds, enough: of the evidence.
        level: the probability with which each of the two grounds may be wrong; for many queries the corrected one.

    Returns:
        The verdict; the list to show, or to test, or, where nothing is proven, the most promising one, if there is one.

    Example:
        >>> ground = Ground("measured", ("b", "a"), 0.2, 0.05, 1.0, 0.0003, 0.001)
        >>> [settle([ground], True, level)[0] for level in (0.005, 0.0001)]
        ['better', 'not proven']
    """
    words: dict[str, Verdict] = {"measured": "better", "models": "likely better"}
    for ground in grounds:
        if ground.holds(level):
            return words[ground.name], ground
    promising = [ground for ground in grounds if ground.interval[0] > 0]
    if promising:
        return "not proven", min(promising, key=lambda ground: ground.p_value)
    by_models = next((ground for ground in grounds if ground.name == "models"), None)
    return "not better" if enough else "unknown", by_models


def larger_step(grounds: Sequence[Ground], ground: Ground | None, level: float) -> Ground | None:
    """The list of the models beside a measured one that is better: if its gain is proven and larger, it is worth an experiment.

    Args:
        grounds: of the evidence.
        ground: the one of the verdict.
        level: that of the verdict.
    """
    if ground is None or ground.name == "models" or not ground.holds(level):
        return None
    larger = (each for each in grounds if each.name == "models" and each.difference > ground.difference and each.holds(level))
    return next((each for each in larger if each.labels != ground.labels), None)


def experiment(gain: float, variance: float, level: float) -> int:
    """The sessions of an experiment (A/B test) that proves a gain at a level with probability `POWER`, both halves together;
    each half has as many as a measured list, at least.

    Example:
        >>> experiment(0.1, 0.8, 0.005)
        3738
    """
    z = NormalDist().inv_cdf(1 - level) + NormalDist().inv_cdf(POWER)
    return 2 * max(LEAST_SESSIONS, math.ceil(2 * variance * (z / gain) ** 2))


class Inquiry:
    """Collects the evidence of a log about the lists of a query.

    Args:
        models: of the log.
        sessions: of the query.
        settings: of them the reward and the cutoff of a list count, and the level, of the intervals of measured lists.
    """

    def __init__(self, models: Models, sessions: SplitSessions, settings: Settings) -> None:
        self.models, self.sessions, self.settings = models, sessions, settings
        self.log, self.cutoff, self.level = sessions.own, settings.cutoff, settings.level
        self.tally = DistinctLists(self.log, settings.reward, self.cutoff)
        self.production = production_list(self.tally)

    @cached_property
    def estimators(self) -> dict[str, Estimator]:
        """The click models of the query by name, fitted without the held-out sessions."""
        return self.models.of(self.sessions)

    def _scores(self, test: ClickLog) -> list[Score]:
        scores = [
            Score(name, estimator.score(test), tuple(estimator.perplexity_by_rank(test).tolist()))
            for name, estimator in self.estimators.items()
        ]
        return sorted(scores, key=lambda score: -score.log_likelihood)

    @cached_property
    def evidence(self) -> Evidence:
        """What the log tells; from it the verdict follows. No agent plays."""
        test, scores = self.sessions.test, self._scores(self.sessions.test)
        held_out, n_train = test[:: -(-len(test) // MOST_SESSIONS)], len(self.sessions.train)
        lists = distinct(held_out.items)[:2]
        tests = {each.model: check_fit(each.model, self.estimators[each.model], held_out, n_train, lists) for each in scores}
        measured = self._measured()
        fitting = [name for name, (fit, _) in tests.items() if fit.fits] if self._models_may_speak else []
        ranking = self._proposed(fitting) if fitting else None
        judged = () if ranking is None else self._judged(fitting, ranking)
        grounds = _measured_grounds(measured, self.level)
        if ranking is not None:
            most, labels = max(judged, key=lambda each: each.p_value), self.tally.labels(ranking)
            grounds.append(Ground("models", labels, most.difference, most.standard_error, self._base, most.p_value))
        return Evidence(
            self.tally.labels(self.production), tuple(grounds), float(self.tally.earned.var()), tuple(scores),
            tuple(fit for fit, _ in tests.values()), tests[scores[0].model][1], measured, self._measured_of_all[1], judged,
            bool(measured or fitting), self.log.times is not None, self.n_items, self.level,
        )  # fmt: skip

    @property
    def _base(self) -> float:
        """What the list in production and its beginnings earned."""
        rows = [row for length in np.unique(self.tally.lengths) if (row := self.tally.row(self.production, length)) >= 0]
        return float(np.average(self.tally.means[rows], weights=self.tally.counts[rows]))

    @property
    def _models_may_speak(self) -> bool:
        """Whether there are lists to try them on, and sessions enough; of satisfaction no log tells."""
        enough = len(self.sessions.test) >= LEAST_SESSIONS and self.sessions.parts.max() > 0
        return bool(enough and self.settings.reward != "satisfaction")

    @cached_property
    def n_items(self) -> int:
        """How many items are ranked: the most displayed, as many as it takes to have those of the list in production, and of a
        list that measured better; but never so many that no best list could be searched for."""
        least = min(self.sessions.least_items, len(self.sessions.by_displays))
        return max([least, *(n for labels in self._wanted if (n := self._reaching(labels)) <= self._most_items)])

    @cached_property
    def _wanted(self) -> list[tuple[str, ...]]:
        """The list in production, and the one that measured best of all if it did better, as labels."""
        better = (gain.labels for gain in self._measured_of_all[0] if gain.p_value <= self.level and gain.doubt <= STEADY)
        return [self.tally.labels(self.production), *itertools.islice(better, 1)]

    @cached_property
    def _measured_of_all(self) -> tuple[tuple[Measured, ...], tuple[Refused, ...]]:
        if self.settings.reward == "satisfaction":
            return (), ()
        return measure(self.tally, self.production, self.level)

    def _measured(self) -> tuple[Measured, ...]:
        """The measured lists of ranked items."""
        ranked = {self.log.item_labels[item] for item in self._items}
        return tuple(gain for gain in self._measured_of_all[0] if ranked.issuperset(gain.labels))

    @property
    def _items(self) -> list[int]:
        """The items that are ranked."""
        return self.sessions.by_displays[: self.n_items]

    def _reaching(self, labels: Sequence[str]) -> int:
        """How many of the most displayed items hold a list."""
        place = {self.log.item_labels[item]: place for place, item in enumerate(self.sessions.by_displays, 1)}
        return max(place.get(label, 10**9) for label in labels)

    @cached_property
    def _most_items(self) -> int:
        """The most items among whose lists the best can be searched."""
        n = self.sessions.least_items
        while math.perm(n + 1, self.log.n_positions) <= MAX_SEARCH and n < len(self.log.item_labels):
            n += 1
        return n

    # ------------------------------------------------------------------------------------------------ a list of the models

    def _proposed(self, fitting: Sequence[str]) -> Lists | None:
        """The list whose gain is surest by the model that doubts it most; None where no list gains by any of them."""
        part_of, correction = self.sessions.parts[self.tally.first], Correction(self.tally, self.production, self._items)
        self._corrections = {
            name: Corrected(correction, *self.models.complete(name, self.sessions), part_of) for name in fitting
        }
        lists = np.unique([self._climb(self._corrections[name]) for name in fitting], axis=0).astype(np.int32)
        lists = lists[(lists != self.production).any(axis=1) & np.isin(lists, self._items).all(axis=1)]
        lists = lists[[self._known(ranking) for ranking in lists]]
        refused = {each.labels[: self.cutoff] for each in self._measured_of_all[1]}
        lists = lists[[self.tally.labels(ranking)[: self.cutoff] not in refused for ranking in lists]]
        if not len(lists):
            return None
        sure = np.min([_lower(self._corrections[name], lists) for name in fitting], axis=0)
        best: Lists = lists[int(sure.argmax())]
        return best

    def _climb(self, model: Corrected) -> Lists:
        """From the list in production, as far as its items are ranked, by the exchanges that make a gain surest."""
        others = iter(item for item in self._items if item not in self.production)
        ranked = set(self._items)
        ranking = np.array([item if item in ranked else next(others) for item in self.production.tolist()], np.int32)
        for _ in range(MOST_STEPS):
            lists = np.vstack([ranking, *filter(self._known, self._exchanges(ranking))])
            best = int(_lower(model, lists, rough=True).argmax())
            if best == 0:
                break
            ranking = lists[best]
        return ranking

    @cached_property
    def _tried(self) -> NDArray[np.bool_]:
        """``(L, K)`` which items the log compares at which positions with those that production has there: in 100 displays
        or more, in blocks of time that show both. No test of fit sees what users do elsewhere."""
        positions = np.arange(self.log.n_positions)
        displays = np.zeros((len(self.log.item_labels) + 1, len(positions), BLOCKS), np.int64)  # the last row is that of -1
        np.add.at(displays, (self.log.items, positions, time_blocks(self.log)[:, None]), 1)
        both = np.minimum(displays, displays[self.production, positions]) >= LEAST_IN_STRATUM
        return (both.sum(axis=2) >= LEAST_BLOCKS) & ((displays * both).sum(axis=2) >= LEAST_SESSIONS)

    def _known(self, ranking: Lists) -> bool:
        """Whether the log tells of each item that is elsewhere than in production."""
        moved = np.flatnonzero((ranking != self.production)[: self.cutoff])
        return bool(self._tried[ranking[moved], moved].all())

    def _exchanges(self, ranking: Lists) -> list[Lists]:
        """All lists with two items exchanged, or one by another."""
        others, lists = [item for item in self._items if item not in ranking], []
        for i in range(len(ranking[: self.cutoff])):
            swaps: list[tuple[Any, Any]] = [([i, j], ranking[[j, i]]) for j in range(i + 1, len(ranking))]
            for places, items in [*swaps, *((i, item) for item in others)]:
                lists.append(ranking.copy())
                lists[-1][places] = items
        return lists

    def _judged(self, fitting: Sequence[str], ranking: Lists) -> tuple[Judged, ...]:
        result = []
        for name in fitting:
            model = self._corrections[name]
            gains = max((model.gains(ranking[None], whole=whole) for whole in _ways(model)), key=_chance)
            predicted, agreed, error = (float(values[0]) for values in (gains.predicted, gains.agreed, gains.errors))
            result.append(Judged(name, predicted, agreed, error, model.error, _chance(gains)))
        return tuple(result)


def _measured_grounds(measured: Sequence[Measured], level: float) -> list[Ground]:
    """Of the lists whose gain is proven at the level those that are surer than all of larger gains, so that the list of the
    largest proven gain comes first at any smaller level, too; of the others the most promising one."""
    grounds = [
        Ground("measured", each.labels, each.difference, each.standard_error, each.base, each.p_value, each.doubt)
        for each in measured
    ]
    result: list[Ground] = []
    for ground in grounds:
        if ground.holds(level) and ground.p_value < min([1.0, *(each.p_value for each in result)]):
            result.append(ground)
    others = [ground for ground in grounds if not ground.holds(level)]
    return result + sorted(others, key=lambda ground: (ground.interval[0] <= 0, ground.p_value))[:1]


def _ways(model: Corrected) -> tuple[bool, ...]:
    """Over which sessions a list has to gain: over those of all lengths, and over those that show whole lists."""
    return (False, True) if len(model.correction.lengths) > 1 else (False,)


def _chance(gains: Gains) -> float:
    """The probability of no gain, of a single list."""
    return NormalDist().cdf(-float(gains.agreed[0] / gains.errors[0]))


def _lower(model: Corrected, lists: Lists, *, rough: bool = False) -> NDArray[np.float64]:
    """What lists gain at least, at `LEVEL`; 0 for the list in production."""
    z = NormalDist().inv_cdf(1 - LEVEL)
    ways = [model.gains(lists, whole=whole, rough=rough) for whole in _ways(model)]
    lower: NDArray[np.float64] = np.min([gains.agreed - z * gains.errors for gains in ways], axis=0)
    return np.where((lists == model.correction.production).all(axis=1), 0.0, lower)
