"""The evidence of a log about the lists of a query, and the verdict that follows; no agent plays here.

A list is recommended for one of two reasons (grounds):

- **measured**: the list was logged in at least 100 sessions and earned significantly more than the list in production, after
  a correction for the number of lists. This assumes nothing about users. Such a list has priority.
- **models**: the list was rarely shown, but every click model that fits the held-out clicks predicts a significant gain after
  a correction by the model's errors on logged lists (see `correction`). If no model fits, this ground does not exist.

| verdict | ground | advice |
|---|---|---|
| ``better`` | measured | the list |
| ``likely better`` | models | the list, as an experiment |
| ``not better`` | none, although lists or models could be compared | the list in production |
| ``unknown`` | none, because nothing could be compared | nothing |
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...envs.click_model import MAX_SEARCH
from ..distinct import distinct
from ..estimation.estimator import Estimator
from ..evaluation import LEAST_SESSIONS
from ..goodness_of_fit import Fit, Group, check_fit
from .correction import Corrected, Correction, Gains
from .lists import DistinctLists, Lists, Measured, measure, production_list
from .models import MOST_SESSIONS, Models, QuerySessions

__all__ = ["LEVEL", "Evidence", "Judged", "Score", "Verdict", "judge", "verdict", "verdict_on"]

LEVEL = 0.005
"""The most probable that a list may be no better than that in production and yet be recommended, by its ground."""
MOST_STEPS = 12

Verdict = Literal["better", "likely better", "not better", "unknown"]


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
        difference: the gain, corrected by the model's errors in the log.
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
class Evidence:
    """The evidence of the log about the lists of a query.

    Attributes:
        production: labels of the production list.
        proposal: labels of the list that may be better; None where none stands out.
        ground: the reason for the proposal: ``"measured"`` or ``"models"``; None without a proposal.
        p_value: of there being no gain, on this ground; 1 without one.
        difference, interval: the gain and its 95 % interval, of the models that of the most doubtful; None without a proposal.
        scores: of the click models, best first.
        fits: their tests of fit, in the same order.
        groups: held-out displays beside the predictions of the best model, with the names of their patterns.
        measured: the logged lists that can be compared with that in production.
        judged: what the models that fit say of the proposal.
        enough: whether there is anything to judge a list by.
        n_items: of the instance.
    """

    production: tuple[str, ...]
    proposal: tuple[str, ...] | None
    ground: Literal["measured", "models"] | None
    p_value: float
    difference: float | None
    interval: tuple[float, float] | None
    scores: tuple[Score, ...]
    fits: tuple[Fit, ...]
    groups: tuple[tuple[str, Group], ...]
    measured: tuple[Measured, ...]
    judged: tuple[Judged, ...]
    enough: bool
    n_items: int

    @property
    def fitting(self) -> list[str]:
        """The models that passed the test of fit."""
        return [fit.model for fit in self.fits if fit.fits]


def verdict(evidence: Evidence, level: float) -> Verdict:
    """The verdict, if each ground may be wrong with probability ``level``."""
    return verdict_on(evidence.ground, evidence.p_value, evidence.enough, level)


def verdict_on(ground: Literal["measured", "models"] | None, p_value: float, enough: bool, level: float) -> Verdict:
    """As `verdict`, from the three fields of the evidence that it needs."""
    if ground is not None and p_value <= level:
        return "better" if ground == "measured" else "likely better"
    return "not better" if enough else "unknown"


def judge(
    sessions: QuerySessions, models: Models, estimators: dict[str, Estimator], reward: str, cutoff: int | None
) -> Evidence:
    """Collect the evidence of a log about the lists of a query.

    Args:
        sessions: of the query.
        models: of the log.
        estimators: those of the query, by name, as `Models.of` returns them.
        reward, cutoff: what a list earns.
    """
    return _Judge(sessions, models, estimators, reward, cutoff).evidence()


class _Ground(NamedTuple):
    """What speaks for a list; the fields as of `Evidence`, and the standard error of the difference."""

    proposal: tuple[str, ...] | None = None
    name: Literal["measured", "models"] | None = None
    p_value: float = 1.0
    difference: float | None = None
    error: float = 0.0
    judged: tuple[Judged, ...] = ()


class _Judge:
    """The arguments of `judge`, and what follows from them."""

    def __init__(
        self, sessions: QuerySessions, models: Models, estimators: dict[str, Estimator], reward: str, cutoff: int | None
    ) -> None:
        self.sessions, self.models, self.estimators, self.reward, self.cutoff = sessions, models, estimators, reward, cutoff
        self.log = sessions.own
        self._corrections: dict[str, Corrected] = {}
        self.shown = DistinctLists(self.log, reward, cutoff)
        self.production = production_list(self.shown)
        scores = [
            Score(name, estimator.score(sessions.test), tuple(estimator.perplexity_by_rank(sessions.test).tolist()))
            for name, estimator in estimators.items()
        ]
        self.scores = sorted(scores, key=lambda score: -score.log_likelihood)

    def evidence(self) -> Evidence:
        n_train, n_test = len(self.sessions.train), len(self.sessions.test)
        held_out = self.sessions.test[:: -(-n_test // MOST_SESSIONS)]
        lists = distinct(held_out.items)[:2]
        tests = {
            score.model: check_fit(score.model, self.estimators[score.model], held_out, n_train, lists) for score in self.scores
        }
        measured = self._measured()
        fitting = [name for name, (fit, _) in tests.items() if fit.fits] if self._models_may_speak else []
        ground = self._ground(measured, fitting)
        half = NormalDist().inv_cdf(0.975) * ground.error
        return Evidence(
            self._labels(self.production), ground.proposal, ground.name, ground.p_value, ground.difference,
            None if ground.difference is None else (ground.difference - half, ground.difference + half),
            tuple(self.scores), tuple(fit for fit, _ in tests.values()), tests[self.scores[0].model][1], measured,
            ground.judged, bool(measured or fitting), self.n_items,
        )  # fmt: skip

    def _ground(self, measured: Sequence[Measured], fitting: Sequence[str]) -> _Ground:
        """What speaks for a list: a measured one comes first."""
        if measured and measured[0].p_value <= LEVEL:
            best = measured[0]
            return _Ground(best.labels, "measured", best.p_value, best.difference, best.standard_error)
        ranking = self._proposed(fitting) if fitting else None
        if ranking is None:
            return _Ground()
        judged = self._judged(fitting, ranking)
        doubtful = max(judged, key=lambda each: each.p_value)
        return _Ground(self._labels(ranking), "models", doubtful.p_value, doubtful.difference, doubtful.standard_error, judged)

    def _labels(self, ranking: Lists) -> tuple[str, ...]:
        return tuple(self.log.item_labels[item] for item in ranking.tolist())

    @property
    def _models_may_speak(self) -> bool:
        """Whether there are lists to try them on, and sessions enough; of satisfaction no log tells."""
        return self.reward != "satisfaction" and len(self.sessions.test) >= LEAST_SESSIONS and self.sessions.parts.max() > 0

    @cached_property
    def _by_displays(self) -> list[int]:
        """The items, most displayed first."""
        displays = np.bincount(self.sessions.train.items[self.sessions.train.items >= 0])
        labels = self.log.item_labels
        return sorted(np.flatnonzero(displays).tolist(), key=lambda item: (-displays[item], labels[item]))

    @cached_property
    def n_items(self) -> int:
        """How many items are ranked: the most displayed, as many as it takes to have those of the list in production, and of a
        list that measured better; but never so many that no best list could be searched for."""
        least = min(self.sessions.least_items, len(self._by_displays))
        return max([least, *(n for ranking in self._wanted if (n := self._reaching(ranking)) <= self._most_items)])

    @cached_property
    def _wanted(self) -> list[Lists]:
        """The list in production, and the one that measured best of all if it did better."""
        measured, lists = self._measured_of_all
        return [
            self.production,
            *(ranking for gain, ranking in zip(measured[:1], lists, strict=False) if gain.p_value <= LEVEL),
        ]

    @cached_property
    def _measured_of_all(self) -> tuple[tuple[Measured, ...], tuple[Lists, ...]]:
        if self.reward == "satisfaction":
            return (), ()
        return measure(self.log, self.shown, self.production, LEVEL)

    def _measured(self) -> tuple[Measured, ...]:
        """The measured lists of ranked items."""
        ranked = set(self._items)
        return tuple(gain for gain, ranking in zip(*self._measured_of_all, strict=True) if ranked.issuperset(ranking.tolist()))

    @property
    def _items(self) -> list[int]:
        """The items that are ranked."""
        return self._by_displays[: self.n_items]

    def _reaching(self, ranking: Lists) -> int:
        """How many of the most displayed items hold a list."""
        return 1 + max(self._by_displays.index(item) if item in self._by_displays else 10**9 for item in ranking.tolist())

    @cached_property
    def _most_items(self) -> int:
        """The most items among whose lists the best can be searched."""
        n = self.sessions.least_items
        while math.perm(n + 1, self.log.n_positions) <= MAX_SEARCH and n < len(self.log.item_labels):
            n += 1
        return n

    # ------------------------------------------------------------------------------------------------ a list of the models

    @cached_property
    def _correction(self) -> Correction:
        return Correction(self.log, self.shown, self.production, self._items, self.reward, self.cutoff)

    def _proposed(self, fitting: Sequence[str]) -> Lists | None:
        """The list whose gain is surest by the model that doubts it most; None where no list gains by any of them."""
        part_of = self.sessions.parts[self.shown.first]
        for name in fitting:
            whole, parts = self.models.complete(name, self.sessions)
            self._corrections[name] = Corrected(self._correction, whole, parts, part_of)
        lists = np.unique([self._climb(self._corrections[name]) for name in fitting], axis=0).astype(np.int32)
        lists = lists[(lists != self.production).any(axis=1) & np.isin(lists, self._items).all(axis=1)]
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
            lists = np.vstack([ranking, *self._exchanges(ranking)])
            best = int(_lower(model, lists, rough=True).argmax())
            if best == 0:
                break
            ranking = lists[best]
        return ranking

    def _exchanges(self, ranking: Lists) -> list[Lists]:
        """All lists with two items exchanged, or one by another."""
        counted = len(ranking) if self.cutoff is None else self.cutoff
        others = [item for item in self._items if item not in ranking]
        lists = []
        for i in range(counted):
            for j in range(i + 1, len(ranking)):
                lists.append(ranking.copy())
                lists[-1][[i, j]] = ranking[[j, i]]
            for item in others:
                lists.append(ranking.copy())
                lists[-1][i] = item
        return lists

    def _judged(self, fitting: Sequence[str], ranking: Lists) -> tuple[Judged, ...]:
        result = []
        for name in fitting:
            model = self._corrections[name]
            gains = max((model.gains(ranking[None], whole=whole) for whole in _ways(model)), key=lambda each: _chance(each))
            predicted, mean, error = (float(values[0]) for values in gains)
            result.append(Judged(name, predicted, mean, error, model.error, _chance(gains)))
        return tuple(result)


def _ways(model: Corrected) -> tuple[bool, ...]:
    """Over which sessions a list has to gain: over those of all lengths, and over those that show whole lists."""
    return (False, True) if len(model.correction.lengths) > 1 else (False,)


def _chance(gains: Gains) -> float:
    """The probability of no gain, of a single list."""
    return NormalDist().cdf(-float(gains.means[0] / gains.errors[0]))


def _lower(model: Corrected, lists: Lists, *, rough: bool = False) -> NDArray[np.float64]:
    """What lists gain at least, at `LEVEL`; 0 for the list in production."""
    z = NormalDist().inv_cdf(1 - LEVEL)
    ways = [model.gains(lists, whole=whole, rough=rough) for whole in _ways(model)]
    lower: NDArray[np.float64] = np.min([gains.means - z * gains.errors for gains in ways], axis=0)
    return np.where((lists == model.correction.production).all(axis=1), 0.0, lower)
