"""From a click log to the list to show for a query.

What was *measured* decides: a logged list is better if it earned significantly more than today's
production list in the same blocks of time, or an arm of an experiment more than the arm in
production (see `within_blocks`). Where none is, the most promising one is named, if an A/B test
that takes no longer than the log would probably prove its expected gain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Literal

import numpy as np

from clickgym.core.checks import check_between, check_choice, check_kind, check_labels

from .distinct import grouped
from .evaluation import lists_follow_time
from .lists import DAY, QueryLists, Ranking, length_in_days
from .log import REWARDS, ClickLog, frequent_queries
from .names import csv_line
from .priorities import expected_gains, power_of_test, sessions_of_test, shrunken
from .reasons import Reason
from .within_blocks import LEAST_SESSIONS, POWER, Measured, measure, p_value_in_words, signed

LEVEL = 0.005
"""The highest probability that a list is called better and is not."""
NO_GAIN = 1e-9
"""Gains below it are none."""
MOSTLY = 0.5
"""The share of the latest sessions below which the reader is told that others show other lists."""
MANY_REPEATED = 0.05
"""The share of sessions that repeat others above which the reader is told."""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
NEVER_RULED_OUT = (
    "A click log cannot rule out that a list was shown to other users than the production list, or "
    "to bots, or during a campaign."
)
WITHOUT_USERS = (
    "The log has no column user, so its sessions count as independent. The level does not hold "
    "where users have more than about ten sessions of one query each."
)

Verdict = Literal[
    "better", "was better when it was last shown", "no list is proved better", "cannot tell"
]


@dataclass(frozen=True)
class Decision:
    """The decision between the lists of a query, or between the arms of an experiment.

    Attributes:
        query: its label; None for all queries of an experiment together.
        n_sessions: of the query; those that the log has several times count once. Of an experiment,
            its own.
        n_repeated: sessions that were left out because they repeat others (`ClickLog.repeated`).
        n_lists: distinct lists, or arms.
        days: the length of the log; None if times are no seconds since 1970.
        sessions_a_day: of the query, or of the experiment while it lasted, since the first one;
            None without dates.
        reward, cutoff: what a session earns.
        level: the largest p-value with which a list counts as better.
        declared: whether the log has the probabilities with which items or lists were drawn.
        by_item: whether lists can be compared by item and position. Then lists do not follow time,
            and may have been drawn at random, because the log says so or because each list is rare.
        knows_users: whether standard errors are clustered by user.
        control: the arm in production; None without an experiment.
        production: labels of today's production list; of an experiment, the latest frequent list of
            the arm in production.
        n_production: sessions that showed exactly this list, or of this arm.
        earned: the mean reward of a session that showed it, at any time.
        share_today: the share of the latest sessions that show it, the last twentieth or 200.
        first_shown: when it was first shown; None if in the first block of time, or without times.
        measured: the other lists or arms beside it, those proved better first.
        by_block: of the production list and up to three measured lists, what a session earned in
            each of 20 blocks of time; NaN where fewer than five sessions show the list.
        moments: when each of these blocks begins; empty without times.
        to_test: the measured list that an A/B test should compare with the production list: the one
            that was better when it was last shown, else the most promising one. None where one is
            proved better, or where a test as long as the log would rather miss the expected gain.
        gain: what the list to show or to test is expected to earn per session of the query beside
            the production list; from `Measured.expected`, shrunk over all measured lists, so that
            the best of many promises no more than it holds, times `Measured.share`.
        test_sessions: of the A/B test of ``to_test``, both lists together; None without a test.
        power: the probability that this test proves the expected gain.
    """

    query: str | None
    n_sessions: int
    n_repeated: int
    n_lists: int
    days: float | None
    sessions_a_day: float | None
    reward: str
    cutoff: int | None
    level: float
    declared: bool
    by_item: bool
    knows_users: bool
    control: str | None
    production: tuple[str, ...]
    n_production: int
    earned: float
    share_today: float
    first_shown: str | None
    measured: tuple[Measured, ...]
    by_block: tuple[tuple[float, ...], ...]
    moments: tuple[str, ...]
    to_test: Measured | None = None
    gain: float = 0.0
    test_sessions: int | None = None
    power: float = 0.0

    @property
    def best(self) -> Measured | None:
        """The list that is proved better."""
        return next((entry for entry in self.measured if entry.is_better(self.level)), None)

    @property
    def was_best(self) -> Measured | None:
        """The list that was proved better, and is hardly shown any more."""
        return next((entry for entry in self.measured if entry.was_better(self.level)), None)

    @property
    def chosen(self) -> Measured | None:
        """The list to show or to test."""
        return self.best or self.to_test

    @property
    def compared(self) -> tuple[Measured, ...]:
        """The lists that the log compares with the production list."""
        return tuple(entry for entry in self.measured if not entry.reason)

    @property
    def verdict(self) -> Verdict:
        """Whether a list is proved better, or none is, or the log compares none."""
        if not self.compared:
            return "cannot tell"
        if self.best is not None:
            return "better"
        if self.was_best is not None:
            return "was better when it was last shown"
        return "no list is proved better"

    @property
    def reason(self) -> Reason | None:
        """The reason why the log cannot tell; None if it can."""
        if self.compared:
            return None
        return self.measured[0].reason if self.measured else Reason.TOO_FEW

    @property
    def recommended(self) -> tuple[str, ...] | None:
        """Labels of the list to show; None where the log cannot tell."""
        if self.verdict == "cannot tell":
            return None
        return (self.production if self.best is None else self.best.labels)[: self.cutoff]

    def name(self, entry: Measured | None) -> str:
        """The name of a list. An arm has its own; lists have letters in the order of `measured`.
        None stands for the production list, A.
        """
        if self.control is not None:
            return self.control if entry is None else entry.arm
        number = 0 if entry is None else 1 + self.measured.index(entry)
        return LETTERS[number] if number < len(LETTERS) else f"list {number + 1}"

    @property
    def next_step(self) -> str:
        """The next step, in a few words."""
        if self.best is not None:
            return f"show {self.name(self.best)}"
        if self.to_test is None:
            return "nothing to test"
        step = f"test {self.name(self.to_test)}" + " again" * (self.was_best is not None)
        if self.test_days is None:
            return f"{step} for {self.test_sessions:,} sessions"
        return f"{step} for {self.test_days:,} days" if self.test_days > 1 else f"{step} for a day"

    @property
    def gain_a_day(self) -> float | None:
        """The expected gain a day of the list to show or to test over the production list; None
        without dates.
        """
        return None if self.sessions_a_day is None else self.gain * self.sessions_a_day

    @property
    def test_days(self) -> int | None:
        """The length of the test in whole days; None without a test or without dates."""
        if self.test_sessions is None or self.sessions_a_day is None:
            return None
        return math.ceil(self.test_sessions / self.sessions_a_day - 1e-9)

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
        production = f"arm {self.control}"
        if self.control is None:
            production = "the production list"
            if self.first_shown is not None:
                production += f" (first shown {self.first_shown})"
        if self.reason is not None:
            other = "list of its length" if self.control is None else "arm"
            why = self.reason.sentence.format(production=production, other=other)
            return f"This log cannot tell whether a list is better: {why}."
        entry = self.chosen or self.compared[0]
        percent = f" ({100 * entry.difference / entry.base:+.1f} %)" if entry.base else ""
        earned = f"earned {entry.difference:+.4f} {unit}{percent} beside {production}"
        interval = signed(entry.interval)
        if self.control is not None and self.sessions_a_day is not None:
            low, high = (self.sessions_a_day * end for end in entry.interval)
            interval += f"; a day {low:+,.0f} to {high:+,.0f}"
        proof = f"({interval}, p {p_value_in_words(entry.p_value)})"
        labels = csv_line(entry.labels[: self.cutoff])
        shown = f"arm {entry.arm}" if self.control is not None else labels
        if self.best is not None:
            return f"Show {shown}: it {earned} at the same times {proof}."
        if self.was_best is not None:
            return (
                f"Better when it was last shown, {entry.last_shown}: {shown} {earned} at the same "
                f"times {proof}."
            )
        if self.control is not None:
            withheld = entry.withheld_in_words(self.level)
            return (
                f"No arm is proved better than {production}. Arm {entry.arm} earned "
                f"{entry.difference:+.4f} {unit}{percent} beside it ({interval})"
                f"{f', but {withheld}' if withheld else ''}."
            )
        found = f"No list is proved better than {production}"
        first = self.measured[0]
        if withheld := first.withheld_in_words(self.level):
            return (
                f"{found}: the first list of the table earned {first.difference:+.4f} {unit} "
                f"beside it, but {withheld}."
            )
        if math.isinf(self.detectable):
            return f"{found}; no gain of any size could have been proved with this log."
        return (
            f"{found}; a gain of {self.detectable:.4f} {unit} would have been proved with a "
            f"probability of {POWER:.0%}."
        )

    @property
    def cautions(self) -> tuple[str, ...]:
        """Return cautions about the verdict, one sentence each."""
        sentences = []
        if repeated := repetitions(self.n_repeated, self.n_sessions):
            sentences.append(repeated)
        if self.compared and not self.knows_users:
            sentences.append(WITHOUT_USERS)
        if self.was_best is not None:
            sentences.append(
                f"What {self.name(self.was_best)} earns today is not measured. Before you test it "
                "again, find out why it went, and whether its items are still there."
            )
        if self.control is not None:
            sentences.append(
                "Arms are compared as if they had been drawn at random. Check that each has the "
                "share of the sessions that you set. If a share has changed, leave out the date on "
                "which it did, and users who keep an arm that they got before."
            )
            return tuple(sentences)
        if self.share_today < MOSTLY:
            sentences.append(
                f"The production list has only {self.share_today:.0%} of the latest sessions. Find "
                "out what the others get, such as lists of other replicas, and name the list that "
                "you want to compare with: --production ITEM,..."
            )
        if self.by_item:
            logging = "" if self.declared else " --logging empirical"
            sentences.append(
                "If lists were drawn at random, you can also compare them by item and position: "
                "clickgym evaluate LOG --query QUERY --policy fixed:ITEM,... --estimator "
                f"item-position{logging}{'' if self.best else '; and settle it by an A/B test'}."
            )
        sentences.append(NEVER_RULED_OUT)
        return tuple(sentences)


def repetitions(n_repeated: int, n_sessions: int) -> str:
    """A sentence about sessions that were left out as repetitions; empty for a few."""
    every = n_repeated + n_sessions
    if n_repeated <= MANY_REPEATED * every:
        return ""
    return (
        f"{n_repeated:,} of {every:,} sessions are repetitions and count once. They have the time, "
        "query, list and clicks of another session, far more often than users are alike by chance."
    )


def decide(
    log: ClickLog,
    query: str | None = None,
    *,
    production: str | Sequence[str] | None = None,
    reward: str = "clicks",
    cutoff: int | None = None,
    level: float = LEVEL,
) -> Decision:
    """Decide from a click log which list to show for a query, or which arm of an experiment.

    Args:
        log: sessions of any queries. A session that the log has several times counts once
            (`ClickLog.repeated`). If the log has users, errors are clustered by user. If it has
            arms, these are compared, and sessions outside the experiment are left out.
        query: the label of the query; None takes the most frequent one, or all queries of an
            experiment together.
        production: labels of the production list; None takes the most frequent list of the last
            block of time or of the last 200 sessions, whichever is longer. Of an experiment, the
            arm in production; None takes the first in the order of names, such as A or control.
        reward, cutoff: what a session earns, ``"clicks"`` or ``"any_click"``, perhaps of its first
            positions only.
        level: the highest probability of calling a list better that is not; below 0.5.

    Raises:
        ValueError: on wrong input, and on a query, a list or an arm that the log does not have.

    Example:
        >>> import gymnasium as gym, clickgym, clickgym_logs
        >>> env = gym.make("PBMRank-v0", attraction=[0.1, 0.3, 0.6], examination=[0.9, 0.5])
        >>> agent = clickgym.make_agent("Random", env, seed=0)
        >>> log = clickgym_logs.record(agent, env, 3000, seed=0)
        >>> decision = decide(log, production=["0", "1"])
        >>> decision.verdict, decision.recommended
        ('better', ('2', '1'))
    """
    check_kind("log", log, ClickLog, "a ClickLog")
    days = length_in_days(log)
    log = _checked(log, reward, cutoff, level)
    control = _control(log, production)
    if control is not None:
        part = log if query is None else log.of_query(query)
        shown = QueryLists(part, query, reward, cutoff, by_arm=True)
        today: Ranking = (control,)
    else:
        query = frequent_queries(log)[0] if query is None else query
        shown = QueryLists(log.of_query(query), query, reward, cutoff)
        labels = None if production is None else check_labels("production", production)
        today = shown.in_production() if labels is None else shown.ranking(labels)
    (decision,) = _with_tests([_measured(shown, today, level, days, _end(log))])
    return decision


def _end(log: ClickLog) -> float | None:
    """When the log ends, with its last day if its times are dates; None if they are no seconds."""
    days = length_in_days(log)
    return None if days is None or log.times is None else float(log.times.min()) + DAY * days


def _checked(log: ClickLog, reward: str, cutoff: int | None, level: float) -> ClickLog:
    """The log, or its experiment if it has one."""
    log[:0].earned(reward, cutoff)  # names a wrong one
    check_between("level", level, 0, 0.5)
    if not len(log):
        raise ValueError("the log has no sessions")
    if log.arms is None:
        return log
    if len(np.unique(log.arms[log.arms >= 0])) < 2:
        raise ValueError(
            f"the log has the arms {csv_line(log.arm_labels) or 'none'}; expected two or more to "
            "compare; columns={'arm': ''} or --columns arm= compares lists instead"
        )
    return log[log.arms >= 0]


def _control(log: ClickLog, production: str | Sequence[str] | None) -> int | None:
    """The arm in production; None without an experiment."""
    if log.arms is None:
        return None
    arms = {log.arm_labels[arm]: arm for arm in np.unique(log.arms).tolist()}
    if production is None:
        return arms[min(arms)]
    names = [production] if isinstance(production, str) else check_labels("production", production)
    label = ", ".join(names)
    return arms[check_choice("arm in production", label, [*arms])]


def _measured(
    shown: QueryLists,
    today: Ranking,
    level: float,
    days: float | None,
    end: float | None,
) -> Decision:
    """What was measured of a query's lists, without a list to test; the days of the whole log, and
    the end of what is compared, which may be an experiment.
    """
    measured = measure(shown, today, level)
    log = shown.log
    rate = None
    if end is not None and log.times is not None:
        rate = len(shown) / max(1.0, (end - float(log.times.min())) / DAY)
    first_shown = None if shown.by_arm else shown.first_shown(today)
    first: list[Ranking] = [
        (log.arm_labels.index(entry.arm),) if shown.by_arm else shown.ranking(entry.labels)
        for entry in measured[:3]
    ]
    timed = log.times is not None
    declared = log.propensities is not None or log.list_propensities is not None
    too_rare = not measured and len(shown.lists) > max(1, len(shown) / LEAST_SESSIONS)
    return Decision(
        query=shown.query,
        n_sessions=len(shown),
        n_repeated=shown.n_repeated,
        n_lists=len(shown.lists),
        days=days,
        sessions_a_day=rate,
        reward=shown.reward,
        cutoff=shown.cutoff,
        level=level,
        declared=declared,
        by_item=(declared or too_rare) and not lists_follow_time(log),
        knows_users=log.users is not None,
        control=shown.arm(today) if shown.by_arm else None,
        production=shown.labels(today),
        n_production=len(shown.sessions_of(today)),
        earned=shown.mean(today),
        share_today=shown.share_today(today),
        first_shown=None if first_shown is None or not timed else shown.moment(first_shown),
        measured=measured,
        by_block=tuple(shown.by_block(ranking) for ranking in (today, *first)),
        moments=shown.moments() if timed else (),
    )


def decide_all(
    log: ClickLog,
    *,
    production: str | Sequence[str] | None = None,
    reward: str = "clicks",
    cutoff: int | None = None,
    level: float = LEVEL,
) -> list[Decision]:
    """Decide all queries of a log, in the order of what to do next.

    First come the queries that have a better list, the largest gain a day first. Then come those
    with a list to test, the one first that is expected to gain most a day for each day of its test.

    The level is corrected for the number of queries by the procedure of Benjamini and Hochberg: of
    the lists that are called better, at most a share ``level`` is expected to be no better.

    Args:
        log: the sessions, as for `decide`.
        production: of an experiment, the arm in production, as for `decide`.
        reward, cutoff: as for `decide`.
        level: see above.

    Returns:
        A decision for each query that has sessions. Of an experiment the first one is that of all
        queries together, at the uncorrected level.
    """
    check_kind("log", log, ClickLog, "a ClickLog")
    days = length_in_days(log)
    log = _checked(log, reward, cutoff, level)
    control, end = _control(log, production), _end(log)
    if control is None and production is not None:
        raise ValueError(
            "the queries of a log have different production lists; expected none to be named, "
            "unless the log has a column arm"
        )
    whole = []
    if control is not None:
        shown = QueryLists(log, None, reward, cutoff, by_arm=True)
        whole = _with_tests([_measured(shown, (control,), level, days, end)])
    decisions = []
    for number, sessions in zip(*grouped(log.queries), strict=True):
        label = log.query_labels[number]
        shown = QueryLists(log[sessions], label, reward, cutoff, by_arm=control is not None)
        today = shown.in_production() if control is None else (control,)
        decisions.append(_measured(shown, today, level, days, end))
    decisions.sort(key=lambda decision: -decision.n_sessions)
    corrected = _corrected_level(decisions, level)
    decisions = _with_tests([replace(entry, level=corrected) for entry in decisions])
    return whole + sorted(decisions, key=_order)


def _order(decision: Decision) -> tuple[int, float]:
    """What to do first: show a list; test one that gains much for each session of its test."""
    rate = decision.sessions_a_day or decision.n_sessions
    gain = decision.gain * rate
    if decision.best is not None:
        return 0, -gain
    if decision.test_sessions is not None:
        return 1, -gain * rate / decision.test_sessions
    return 2, 0


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


def _with_tests(decisions: Sequence[Decision]) -> list[Decision]:
    """The decisions, with the expected gain of the list to show, or with the most promising list
    where none is proved better.
    """
    entries = [entry for decision in decisions for entry in decision.compared]
    shrunk = shrunken(
        np.array([entry.expected[0] for entry in entries]),
        np.array([entry.expected[1] for entry in entries]),
    )
    expected = iter(expected_gains(*shrunk).tolist())
    result = []
    for decision in decisions:
        gains = [(next(expected) * entry.share, entry) for entry in decision.compared]
        proved = decision.best or decision.was_best
        gain, entry = max(
            (pair for pair in gains if proved in (None, pair[1])),
            key=itemgetter(0),
            default=(0.0, None),
        )
        if entry is not None and entry is decision.best:
            decision = replace(decision, gain=gain)
        elif entry is not None and gain > NO_GAIN:
            most = (decision.days or 0) * (decision.sessions_a_day or 0) or decision.n_sessions
            sessions = sessions_of_test(gain, entry.variance, most)
            if sessions is not None:
                decision = replace(
                    decision,
                    to_test=entry,
                    gain=gain,
                    test_sessions=sessions,
                    power=power_of_test(gain, entry.variance, sessions),
                )
        result.append(decision)
    return result
