"""Verdicts on policies: which estimators may speak in a log, and what those of different assumptions agree on.

An estimator is right where its assumption about users holds, and a log can tell where it does not. So the assumptions are
tested on the log first, each at the level `FITS` (see `goodness_of_fit`):

- *click models* are fitted to 70 % of the sessions and tested on the others (`check_fit`), and fitted to all sessions and
  tested once more (`check_above`). Those that fit predict what the lists of a policy earn; `REFITS` refits to resampled
  sessions give the standard error, which so counts that the parameters are estimated;
- *item-position* needs that the click rate of an item at a position does not depend on what stands above it (`check_above`);
- *cascade* is not tested, because users of every click model here read from the top. It judges as many positions of the
  policy's lists, from the top, as `LEAST_SESSIONS` effective sessions show. Where that is the whole list, `ips`, which assumes
  nothing, can judge it, too.

There is a verdict where a click model that fits and an estimator that assumes less (item-position or cascade) agree: no two
intervals lie on different sides of 0, and on the positions that cascade judges every model predicts its clicks within their
error. The verdict's interval holds those of all of them. A firm interval of `ips` is enough alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr, stdtrit

from .distinct import distinct
from .estimation.estimator import ConvergenceWarning, Estimator
from .estimation.settings import CONVERGED
from .evaluation import LEAST_SESSIONS, Evaluation, Policies, contributions, evaluate, policy_of
from .fitting import hold_out
from .goodness_of_fit import FITS, check_above, check_fit
from .log import ClickLog
from .model_weights import MODEL_BASED
from .policies import empirical_policies, sessions_by_query

USERS = ("cm", "dcm", "sdbn", "pbm", "ubm", "dbn", "ccm")
"""The click models that are tried."""
HELD_OUT = 0.3
REFITS = 20
LEAST_POSITIONS = 2
"""Of fewer positions `cascade` tells nothing about what stands above an item."""

UNDECIDED: Literal["not significantly different"] = "not significantly different"
Word = Literal["better", "worse", "not significantly different", "no verdict"]
WORDS: dict[int, Word] = {1: "better", -1: "worse", 0: UNDECIDED}
"""By `_sign` of a difference."""
Interval = tuple[float, float]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Verdict:
    """Whether a policy earns more than the logged one.

    Attributes:
        word: ``"better"``, ``"worse"``, ``"not significantly different"`` or ``"no verdict"``.
        estimators: what it rests on; empty without a verdict.
        interval: of the difference to the logged policy: it holds those of all estimators on which the verdict rests. None
            without a verdict.
        reason: what the estimators say and assume, or why there is no verdict; a sentence.
    """

    word: Word
    estimators: tuple[str, ...]
    interval: tuple[float, float] | None
    reason: str

    def __str__(self) -> str:
        if self.interval is None:
            return f"{self.word}: {self.reason}"
        low, high = self.interval
        word = f"{self.word} {'from' if self.word == UNDECIDED else 'than'} the logged policy"
        return f"{word} ({low:+.4g} to {high:+.4g}): {self.reason}"


class Beginning(NamedTuple):
    """What `cascade` tells of the beginnings of a policy's lists, counted in the log.

    Attributes:
        positions: how many from the top.
        sessions: the effective number of sessions that show them.
        value, error: the clicks there, and the standard error.
    """

    positions: int
    sessions: float
    value: float
    error: float

    def __str__(self) -> str:
        where = "first position" if self.positions == 1 else f"first {self.positions} positions"
        return f"the {where} of its lists ({self.sessions:,.0f} sessions)"


class Judge:
    """The estimators of clicks whose assumptions hold in a log, and their verdicts on policies.

    Args:
        log: the sessions.
        targets: the policies, by their specs.
        logging: the policy that made the log; None: what it recorded, or how often it showed what.
        cutoff, bootstrap, level, seed: as for `evaluate`.
    """

    def __init__(self, log: ClickLog, targets: Mapping[str, Policies], logging: Policies | None, **settings: Any) -> None:
        self.log, self.targets, self.logging, self.settings = log, targets, logging, settings
        self.cutoff = settings["cutoff"] or log.n_positions
        self.t = float(stdtrit(REFITS - 1, (1 + settings["level"]) / 2))
        self._refused: dict[str, dict[str, str]] = {}

    @cached_property
    def fitting(self) -> dict[str, Estimator]:
        """The click models that fit, fitted to all sessions."""
        fitting: dict[str, Estimator] = {}
        if len(self.log) * HELD_OUT < LEAST_SESSIONS:
            return fitting
        train, test = hold_out(self.log, HELD_OUT, self.settings["seed"])
        for name in USERS:
            part = CONVERGED.fit(MODEL_BASED[name], train)
            if check_fit(name, part, test, len(train))[0].fits:
                whole = CONVERGED.fit(MODEL_BASED[name], self.log, start=part)
                if not check_above(self.log, whole.click_probabilities(self.log)) < FITS:
                    fitting[name] = whole
        return fitting

    @cached_property
    def item_position(self) -> float:
        """The probability by chance of clicks that depend so much on what stands above them; NaN if the log cannot tell."""
        return check_above(self.log)

    @cached_property
    def _lists(self) -> dict[str, tuple[ClickLog, Floats]]:
        """Of each policy of which a click model can tell its lists, as sessions, and how often it shows each."""
        lists = {}
        for spec, target in self.targets.items():
            try:
                lists[spec] = _shown(self.log, target)
            except ValueError as error:
                self._refused[spec] = dict.fromkeys(self.fitting, str(error))
        return lists

    def _predicted(self, estimator: Estimator, spec: str, positions: int) -> float:
        lists, shares = self._lists[spec]
        return float(shares @ estimator.click_probabilities(lists)[:, :positions].sum(axis=1))

    @cached_property
    def _by_models(self) -> dict[str, dict[str, Evaluation]]:
        """What the click models predict of each policy; refits tell how sure they are."""
        results: dict[str, dict[str, Evaluation]] = {spec: {} for spec in self._lists}

        def earned(estimator: Estimator, log: ClickLog) -> list[list[float]]:
            logged = float(log.clicks[:, : self.cutoff].sum() / len(log))
            return [[value := self._predicted(estimator, spec, self.cutoff), logged, value - logged] for spec in results]

        for name, fitted in self.fitting.items() if results else ():
            draws = CONVERGED.refits(fitted, self.log, REFITS, self.settings["seed"])
            errors = np.std([earned(estimator, part) for part, estimator in draws], axis=0, ddof=1)
            errors = np.hypot(errors, self.cutoff / len(self.log))  # the priors count as one session at each position
            for spec, values, spread in zip(results, earned(fitted, self.log), errors.tolist(), strict=True):
                ends = [(value - self.t * error, value + self.t * error) for value, error in zip(values, spread, strict=True)]
                better = float(stdtr(REFITS - 1, values[2] / spread[2]))
                results[spec][name] = Evaluation(
                    name, values[0], spread[0], ends[0], values[0], ends[0], values[1], ends[1], values[2], ends[2], better,
                    len(self.log), np.nan, np.nan, (np.nan, np.nan), np.nan,
                )  # fmt: skip
        return results

    def _beginning(self, spec: str) -> Beginning | None:
        """As many positions from the top as the log shows often enough."""
        first, index, counts = distinct(np.column_stack([self.log.queries, self.log.items]))
        logging = empirical_policies(self.log)
        for positions in range(self.cutoff, 0, -1):
            try:
                weights = contributions(self.log[first], self.targets[spec], "cascade", logging=logging, cutoff=positions)[1]
            except ValueError:  # the log never shows such a beginning
                continue
            sessions = float(((counts @ weights) ** 2 / np.maximum(counts @ weights**2, 1e-300)).min())
            if sessions >= LEAST_SESSIONS:
                values = (weights[index] * self.log.clicks[:, :positions]).sum(axis=1)
                return Beginning(positions, sessions, values.mean(), values.std() / np.sqrt(len(values)))
        return None

    def judge(self, spec: str) -> tuple[tuple[Evaluation, ...], dict[str, str], Verdict]:
        """The estimates of a policy, why others are refused, and the verdict."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            models = self._by_models.get(spec, {})
        beginning = self._beginning(spec)
        results: dict[str, Evaluation] = {}
        refused = self._refused.get(spec, {})
        for name in ("ips", "item-position") if beginning and beginning.positions == self.cutoff else ("item-position",):
            try:
                results[name] = self._evaluated(spec, name)
            except ValueError as error:
                refused[name] = str(error) if self.fitting else f"no click model fits the log, and {name} is refused: {error}"
        sure = {name: result for name, result in results.items() if not result.cautions}
        if not self.item_position >= FITS:
            sure.pop("item-position", None)
        return (*results.values(), *models.values()), refused, self._verdict(spec, sure, models, beginning)

    def _evaluated(self, spec: str, name: str) -> Evaluation:
        """An estimate by probabilities of the logged policy; those that the log did not record are counted."""
        recorded = self.log.propensities if name == "item-position" else self.log.list_propensities
        logging = empirical_policies(self.log) if self.logging is None and recorded is None else self.logging
        return evaluate(self.log, self.targets[spec], name, logging=logging, **self.settings)

    @property
    def _refuted(self) -> str:
        p = self.item_position
        if not p < FITS:
            return ""
        size = f"= {p:.1g}" if p > 1e-9 else "< 1e-9"
        return f"; item-position does not hold here: clicks depend on what stands above them (p {size})"

    def _verdict(
        self, spec: str, sure: dict[str, Evaluation], models: dict[str, Evaluation], beginning: Beginning | None
    ) -> Verdict:
        ends = {name: result.difference_interval for name, result in (sure | models).items() if result.difference_interval}
        signs = {name: _sign(interval) for name, interval in ends.items()}
        contradictory = {-1, 1} <= set(signs.values())
        alone = ends.pop("ips", None)
        # A firm interval decides if no other contradicts it; one that is not, if the others contradict each other.
        if alone and (not models or contradictory != bool(signs["ips"])):
            return Verdict(_word(alone), ("ips",), alone, "ips assumes nothing about users, and enough sessions show the lists")
        if contradictory:
            each = "; ".join(f"{name} {low:+.4g} to {high:+.4g}" for name, (low, high) in ends.items())
            return _none(f"the estimators contradict each other: {each}")
        if not models:
            return _none(f"no click model that tells of this policy fits the log{self._refuted}")
        return self._of_models(spec, ends, [*models], beginning)

    def _of_models(self, spec: str, ends: dict[str, Interval], models: Sequence[str], beginning: Beginning | None) -> Verdict:
        """The verdict of click models, if an estimator that assumes less confirms it."""
        names = [*ends]
        less: list[str] = []
        if len(ends) > len(models):
            less.append("item-position, whose assumption the log does not refute")
        if beginning:
            for name in models:
                predicted = self._predicted(self.fitting[name], spec, beginning.positions)
                if abs(predicted - beginning.value) > -ndtri(FITS / 2) * beginning.error:
                    return _none(
                        f"the estimators contradict each other: {name} expects {predicted:.4g} clicks, and the log has "
                        f"{beginning.value:.4g} ± {beginning.error:.2g} on {beginning}"
                    )
            if beginning.positions >= min(LEAST_POSITIONS, self.cutoff):
                names.append("cascade")
                less.append(f"cascade on {beginning}")
        fit = f"{and_(models)}, which {'fits' if len(models) == 1 else 'fit'} the log"
        if not less:
            return _none(f"no estimator that assumes less can confirm {fit}{self._refuted}")
        interval = _hull(ends.values())
        return Verdict(_word(interval), tuple(names), interval, f"{fit}, and {and_(less)} agree{self._refuted}")


def agreement(results: Sequence[Evaluation], single: bool) -> Verdict | None:
    """The verdict of estimators whose assumptions nobody has tested; None where there are no differences.

    Args:
        results: of a policy.
        single: whether the log holds single items, and nobody asked for certain estimators.
    """
    ends = [result.difference_interval for result in results if result.difference_interval is not None]
    if not ends:
        return None
    if single:
        return _none("a log of single items cannot tell whether clicks depend on what stands above them")
    signs, n = [_sign(interval) for interval in ends], len(ends)
    if {-1, 1} <= set(signs):
        better, worse = signs.count(1), signs.count(-1)
        return _none(f"the estimators contradict each other: better by {better} of {n}, worse by {worse}")
    sign = max(signs, key=abs)
    count, which = signs.count(sign), ""
    if n > 1:
        which = f"by all {n} estimators; " if count == n else f"by {count} of {n} estimators, undecided by the others; "
    names = tuple(result.estimator for result in results)
    tested = f"what {and_(names)} assume{'s' * (n == 1)} about users is not tested; without --estimator it is"
    return Verdict(WORDS[sign], names, _hull(ends), which + tested)


def _shown(log: ClickLog, target: Policies) -> tuple[ClickLog, Floats]:
    """The lists of a policy as sessions without clicks, each once for each query and length, and the share of each."""
    lists, queries, shares = [], [], []
    for query, rows in sessions_by_query(log):
        policy = policy_of("target", target, query, log)
        missing = np.setdiff1d(policy.items, log.items[rows])
        if len(missing):
            raise ValueError(f"the log never shows the item {log.item_labels[missing[0]]!r} for the query {query!r}")
        for length, count in zip(*np.unique(log.lengths[rows], return_counts=True), strict=True):
            of_length, probabilities = policy.of_length(int(length)).support()
            lists.append(np.where(np.arange(log.n_positions) < length, of_length, -1))
            queries.append(np.full(len(of_length), log.query_labels.index(query)))
            shares.append(probabilities * count / len(log))
    items = np.concatenate(lists)
    labels = log.item_labels, log.query_labels
    return ClickLog(items, np.zeros(items.shape, np.int8), np.concatenate(queries), *labels), np.concatenate(shares)


def and_(words: Iterable[str]) -> str:
    """The words in a row.

    Example:
        >>> and_(["a"]), and_(["a", "b"]), and_(["a", "b", "c"])
        ('a', 'a and b', 'a, b and c')
    """
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def _sign(interval: Interval) -> int:
    return 1 if interval[0] > 0 else -1 if interval[1] < 0 else 0


def _word(interval: Interval) -> Word:
    return WORDS[_sign(interval)]


def _hull(intervals: Iterable[Interval]) -> Interval:
    """The interval that holds all of them."""
    lows, highs = zip(*intervals, strict=True)
    return min(lows), max(highs)


def _none(reason: str) -> Verdict:
    return Verdict("no verdict", (), None, reason)
