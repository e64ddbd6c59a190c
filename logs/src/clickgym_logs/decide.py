"""From a click log to the list to show for a query.

What was *measured* decides: a logged list is better if it earned significantly more than today's
production list in the same blocks of time (see `within_blocks`). Where none is, the most promising
one is named, with the length of the A/B test that proves its expected gain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Literal

import numpy as np

from clickgym.core.checks import check_between, check_kind, check_labels

from .distinct import grouped
from .lists import QueryLists, Ranking
from .log import REWARDS, ClickLog, frequent_queries
from .names import csv_line
from .priorities import MOST_PERIODS, expected_gains, sessions_of_test, shrunken
from .reasons import Reason
from .within_blocks import LEAST_SESSIONS, POWER, Measured, measure, p_value_in_words, signed

LEVEL = 0.005
"""The highest probability that a list is called better and is not."""
NO_GAIN = 1e-9
"""Gains below it are none."""
MANY_REPEATED = 0.05
"""The share of sessions that repeat others above which the reader is told."""

Verdict = Literal["better", "no list is proved better", "cannot tell"]


@dataclass(frozen=True)
class Decision:
    """What a log says of the lists of a query.

    Attributes:
        query: its label.
        n_sessions: of the query; those that the log has several times count once.
        n_repeated: those that were left out, as they repeat others (`ClickLog.repeated`).
        n_lists: distinct lists.
        reward, cutoff: what a session earns.
        level: the largest p-value with which a list counts as better.
        declared: whether the log has the probabilities with which items or lists were drawn.
        times_are_coarse: whether most sessions share their time with more than ten others.
        production: labels of today's production list.
        n_production: sessions that showed exactly this list.
        since: from when on no list was shown more often; None if never.
        measured: the other lists beside it, those proved better first.
        variance: of what a session earned.
        by_block: of the production list and up to three measured lists, what a session earned in
            each of 20 blocks of time; NaN where fewer than five sessions show the list.
        to_test: the measured list that an A/B test should compare with the production list; None
            where one is proved better, and where none promises a gain that a test of at most ten
            times the log's length would prove.
        gain: what testing ``to_test`` is expected to earn per session; shrunk over all measured
            lists, so that the best of many promises no more than it holds.
        test_sessions: of the A/B test of ``to_test``, both lists together; None without a test.
    """

    query: str
    n_sessions: int
    n_repeated: int
    n_lists: int
    reward: str
    cutoff: int | None
    level: float
    declared: bool
    times_are_coarse: bool
    production: tuple[str, ...]
    n_production: int
    since: str | None
    measured: tuple[Measured, ...]
    variance: float
    by_block: tuple[tuple[float, ...], ...]
    to_test: Measured | None = None
    gain: float = 0.0
    test_sessions: int | None = None

    @property
    def best(self) -> Measured | None:
        """The list that is proved better."""
        return next((entry for entry in self.measured if entry.is_better(self.level)), None)

    @property
    def compared(self) -> tuple[Measured, ...]:
        """The lists that the log compares with the production list."""
        return tuple(entry for entry in self.measured if not entry.reason)

    @property
    def verdict(self) -> Verdict:
        """Whether a list is proved better, or none is, or the log compares none."""
        if not self.compared:
            return "cannot tell"
        return "no list is proved better" if self.best is None else "better"

    @property
    def reason(self) -> Reason | None:
        """Why the log cannot tell; None where it can."""
        if self.compared:
            return None
        return self.measured[0].reason if self.measured else Reason.TOO_FEW

    @property
    def recommended(self) -> tuple[str, ...] | None:
        """Labels of the list to show; None where the log cannot tell."""
        if self.verdict == "cannot tell":
            return None
        return (self.production if self.best is None else self.best.labels)[: self.cutoff]

    @property
    def periods(self) -> float:
        """The length of the test in times as long as the log; infinite without a test."""
        return math.inf if self.test_sessions is None else self.test_sessions / self.n_sessions

    @property
    def detectable(self) -> float:
        """The smallest gain that this log would have proved with a probability of 80 %; infinite
        where there is none.
        """
        return min((entry.detectable for entry in self.compared), default=math.inf)

    @property
    def sentence(self) -> str:
        """The verdict in a sentence."""
        unit = REWARDS[self.reward]
        production = "the production list"
        if self.since is not None:
            production += f" (in production since {self.since})"
        if self.best is not None:
            percent = 100 * self.best.difference / self.best.base if self.best.base else math.inf
            return (
                f"Show {csv_line(self.best.labels[: self.cutoff])}: it earned "
                f"{self.best.difference:+.4f} {unit} ({percent:+.1f} %) beside "
                f"{production} at the same times ({signed(self.best.interval)}, "
                f"p {p_value_in_words(self.best.p_value)})."
            )
        if self.compared:
            shown, first = f"No list is proved better than {production}", self.measured[0]
            if withheld := first.withheld_in_words(self.level):
                return (
                    f"{shown}: the first list of the table earned {first.difference:+.4f} {unit} "
                    f"beside it, but {withheld}."
                )
            if math.isinf(self.detectable):
                return f"{shown}; no gain of any size could have been proved with this log."
            return (
                f"{shown}; a gain of {self.detectable:.4f} {unit} would have been proved with a "
                f"probability of {POWER:.0%}."
            )
        assert self.reason is not None
        why = self.reason.sentence.format(production=production)
        return f"This log cannot tell whether a list is better: {why}."

    @property
    def cautions(self) -> tuple[str, ...]:
        """What the reader has to know beside the verdict, a sentence each."""
        sentences = []
        if repeated := repetitions(self.n_repeated, self.n_sessions):
            sentences.append(repeated)
        if self.times_are_coarse and self.compared:
            sentences.append(
                "Most sessions share their time with more than ten others. What changes within one "
                "time, such as the minutes of an hour, stays hidden if rows are not in order: "
                "export times to the second."
            )
        too_rare = self.reason == Reason.TOO_FEW and self.n_lists > max(
            1, self.n_sessions / LEAST_SESSIONS
        )
        if self.declared or too_rare:
            logging = "" if self.declared else " --logging empirical"
            sentences.append(
                "If lists were drawn at random, compare them by item and position: clickgym "
                "evaluate LOG --query QUERY --policy fixed:ITEM,... --estimator item-position"
                f"{logging}; and settle it by an A/B test."
            )
        best = self.best
        if best is not None and abs(best.pooled - best.difference) > 2 * best.standard_error:
            sentences.append(
                f"Rates changed while the lists changed: with time ignored the difference would be "
                f"{best.pooled:+.4f}."
            )
        sentences.append(
            "A click log cannot rule out that a list was shown to other users than the production "
            "list, or to bots, or during a campaign."
        )
        return tuple(sentences)


def repetitions(n_repeated: int, n_sessions: int) -> str:
    """How many sessions were left out as repetitions, in words; empty for a few."""
    every = n_repeated + n_sessions
    if n_repeated <= MANY_REPEATED * every:
        return ""
    return (
        f"{n_repeated:,} of {every:,} sessions are repetitions and count once: same time, query, "
        "list and clicks as another, far more often than users are alike by chance."
    )


def decide(
    log: ClickLog,
    query: str | None = None,
    *,
    production: Sequence[str] | None = None,
    reward: str = "clicks",
    cutoff: int | None = None,
    level: float = LEVEL,
) -> Decision:
    """Decide from a click log which list to show for a query.

    Args:
        log: sessions of any queries. A session that it has several times counts once
            (`ClickLog.repeated`).
        query: the label of the query; None takes the most frequent one.
        production: labels of the production list; None takes the most frequent list of the last
            block of time or of the last 200 sessions, whichever is longer.
        reward, cutoff: what a session earns, ``"clicks"`` or ``"any_click"``, perhaps of its first
            positions only.
        level: the highest probability that a list is called better and is not; below 0.5. An A/B
            test is as long as one at this level has to be.

    Raises:
        ValueError: on wrong input, and on a query or a list that the log has not.

    Example:
        >>> import gymnasium as gym, clickgym, clickgym_logs
        >>> env = gym.make("PBMRank-v0", attraction=[0.1, 0.3, 0.6], examination=[0.9, 0.5])
        >>> agent = clickgym.make_agent("Random", env, seed=0)
        >>> log = clickgym_logs.record(agent, env, 3000, seed=0)
        >>> decision = decide(log, production=["0", "1"])
        >>> decision.verdict, decision.recommended
        ('better', ('2', '1'))
    """
    _check(log, reward, cutoff, level)
    query = frequent_queries(log)[0] if query is None else query
    shown = QueryLists(log.of_query(query), query, reward, cutoff)
    labels = None if production is None else check_labels("production", production)
    today = shown.in_production() if labels is None else shown.ranking(labels)
    (decision,) = _with_tests([_measured(shown, today, level)], level)
    return decision


def _check(log: ClickLog, reward: str, cutoff: int | None, level: float) -> None:
    check_kind("log", log, ClickLog, "a ClickLog")
    log[:0].earned(reward, cutoff)  # names a wrong one
    check_between("level", level, 0, 0.5)
    if not len(log):
        raise ValueError("the log has no sessions")


def _measured(shown: QueryLists, today: Ranking, level: float) -> Decision:
    """What was measured of a query's lists, without a list to test."""
    since = shown.in_production_since(today)
    measured = measure(shown, today, level)
    log = shown.log
    return Decision(
        query=shown.query,
        n_sessions=len(shown),
        n_repeated=shown.n_repeated,
        n_lists=len(shown.lists),
        reward=shown.reward,
        cutoff=shown.cutoff,
        level=level,
        declared=log.propensities is not None or log.list_propensities is not None,
        times_are_coarse=shown.times_are_coarse,
        production=shown.labels(today),
        n_production=len(shown.sessions_of(today)),
        since=None if since is None or log.times is None else shown.moment(since),
        measured=measured,
        variance=float(shown.earned.var()),
        by_block=tuple(
            shown.by_block(ranking)
            for ranking in (today, *(shown.ranking(entry.labels) for entry in measured[:3]))
        ),
    )


def decide_all(
    log: ClickLog,
    *,
    reward: str = "clicks",
    cutoff: int | None = None,
    level: float = LEVEL,
) -> list[Decision]:
    """Decide all queries of a log, in the order of what to do next.

    First come the queries that have a better list, the most frequent one first. Then come those
    with a list to test, the one with the shortest A/B test (`Decision.periods`) first.

    The level is corrected for the number of queries by the procedure of Benjamini and Hochberg: of
    the lists that are called better, at most a share ``level`` is expected to be no better.

    Args:
        log: the sessions.
        reward, cutoff: as for `decide`.
        level: see above; an A/B test is as long as one at this level has to be.
    """
    _check(log, reward, cutoff, level)
    decisions = []
    for number, sessions in zip(*grouped(log.queries), strict=True):
        shown = QueryLists(log[sessions], log.query_labels[number], reward, cutoff)
        decisions.append(_measured(shown, shown.in_production(), level))
    decisions.sort(key=lambda decision: -decision.n_sessions)
    corrected = _corrected_level(decisions, level)
    decisions = _with_tests([replace(entry, level=corrected) for entry in decisions], level)
    return sorted(decisions, key=lambda decision: (decision.best is None, decision.periods))


def _corrected_level(decisions: Sequence[Decision], level: float) -> float:
    """That of Benjamini and Hochberg for the smallest p-value of each query."""
    p_values = np.array(
        [
            min(
                (entry.p_value for entry in decision.compared if not entry.withheld(level)),
                default=1,
            )
            for decision in decisions
        ]
    )
    allowed = level * np.arange(1, len(p_values) + 1) / len(p_values)
    passed = np.flatnonzero(np.sort(p_values) <= allowed)
    return float(allowed[passed[-1] if len(passed) else 0])


def _with_tests(decisions: Sequence[Decision], level: float) -> list[Decision]:
    """The decisions, with the most promising list of each query where none is proved better."""
    entries = [entry for decision in decisions for entry in decision.compared]
    shrunk = shrunken(
        np.array([entry.difference for entry in entries]),
        np.array([entry.standard_error for entry in entries]),
    )
    expected = iter(expected_gains(*shrunk).tolist())
    result = []
    for decision in decisions:
        gains = [(next(expected), entry) for entry in decision.compared]
        gain, entry = max(gains, key=itemgetter(0), default=(0.0, None))
        if decision.best is None and gain > NO_GAIN:
            sessions = sessions_of_test(gain, decision.variance, level)
            if sessions <= MOST_PERIODS * decision.n_sessions:
                decision = replace(decision, to_test=entry, gain=gain, test_sessions=sessions)
        result.append(decision)
    return result
