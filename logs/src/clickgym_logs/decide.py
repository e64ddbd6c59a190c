"""From a click log to the list to show for a query.

What was *measured* decides: a logged list is better if it earned significantly more than today's
production list in the same blocks of time (see `measured`). A click model only *proposes* a list,
with the length of the A/B test that would settle it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Literal

import numpy as np

from clickgym.core.checks import (
    check_between,
    check_choice,
    check_kind,
    check_labels,
    check_seed,
)

from .distinct import grouped
from .estimation.estimator import MODEL_ESTIMATORS, ConvergenceWarning
from .evaluation import check_cutoff
from .fitting import fit_models
from .lists import QueryLists, Ranking
from .log import BLOCKS, ClickLog
from .measured import LEAST_SESSIONS, PASSED, POWER, Measured, Reason, measure
from .names import csv_line

LEVEL = 0.005
"""The highest probability that a list is called better and is not."""
HELD_OUT = 0.3
"""The share of sessions that choose the click model which proposes a list."""
MOST_SESSIONS = 100_000
"""The last sessions of a query, to which click models are fitted for a proposal."""
LEAST_IN_TEST = 20
"""Sessions of each list in a block of time of an A/B test: fewer blocks would compare them."""
LEAST_ITEMS = 10
"""Items among which a click model proposes a list, at least: those that were shown most."""
UNITS = {"clicks": "clicks per session", "any_click": "sessions with a click"}
REASONS: dict[Reason, str] = {
    "no time": "it has no time, and a list that was shown when users click more would look better. "
    "Export it with its times; where sessions are numbered in order, --columns time=session does",
    "too few sessions": f"no other list than {{}} was shown in {LEAST_SESSIONS} sessions",
    "never shown together": "no other list was shown side by side with {}, only at other times or "
    "in turns",
    "the lists changed with time": "too few sessions show another list side by side with {}",
}

Verdict = Literal["better", "no list is proved better", "cannot tell"]


@dataclass(frozen=True)
class Proposal:
    """The list that a click model expects most of: to be tested, without any promise.

    Attributes:
        model: its short name, that of the model that predicts held-out sessions best.
        labels: of the list's items, from the top.
        gain: what the model expects of it beyond the production list, per session.
        sessions: of the A/B test, both halves together, that proves such a gain with a probability
            of 80 %.
    """

    model: str
    labels: tuple[str, ...]
    gain: float
    sessions: int


@dataclass(frozen=True)
class Decision:
    """What a log says of the lists of a query.

    Attributes:
        query: its label.
        n_sessions: of the query; those that the log has several times count once.
        n_lists: distinct lists.
        reward, cutoff: what a session earns.
        level: the largest p-value with which a list counts as better.
        declared: whether the log has the probabilities with which items or lists were drawn.
        production: labels of today's production list.
        n_production: sessions that showed exactly this list.
        since: from when on no list was shown more often; None if never.
        measured: the other lists beside it, those proved better first.
        proposal: of a click model; None where it expects most of the production list.
        by_block: of the production list and up to three measured lists, what a session earned in
            each of 20 blocks of time; NaN where fewer than five sessions show the list.
    """

    query: str
    n_sessions: int
    n_lists: int
    reward: str
    cutoff: int | None
    level: float
    declared: bool
    production: tuple[str, ...]
    n_production: int
    since: str | None
    measured: tuple[Measured, ...]
    proposal: Proposal | None
    by_block: tuple[tuple[float, ...], ...]

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
    def reason(self) -> Reason:
        """Why the log cannot tell; empty where it can."""
        if self.compared:
            return ""
        reasons = {entry.reason for entry in self.measured}
        if len(reasons) > 1:
            return "the lists changed with time"
        return reasons.pop() if reasons else "too few sessions"

    @property
    def recommended(self) -> tuple[str, ...] | None:
        """Labels of the list to show; None where the log cannot tell."""
        if self.verdict == "cannot tell":
            return None
        return (self.production if self.best is None else self.best.labels)[: self.cutoff]

    @property
    def detectable(self) -> float:
        """The smallest gain that this log would have proved with a probability of 80 %; infinite
        where there is none.
        """
        return min((entry.detectable for entry in self.compared), default=math.inf)

    @property
    def sentence(self) -> str:
        """The verdict in a sentence."""
        unit = UNITS[self.reward]
        production = "the production list"
        if self.since is not None:
            production += f" (in production since {self.since})"
        if self.best is not None:
            low, high = self.best.interval
            percent = 100 * self.best.difference / self.best.base if self.best.base else math.inf
            return (
                f"Show {csv_line(self.best.labels[: self.cutoff])}: it earned "
                f"{self.best.difference:+.4f} {unit} ({percent:+.1f} %) beside "
                f"{production} at the same times ({low:+.4f} to {high:+.4f}, "
                f"p = {self.best.p_value:.2g})."
            )
        if self.compared:
            shown, first = f"No list is proved better than {production}", self.measured[0]
            if withheld := first.withheld(self.level):
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
        why = REASONS[self.reason].format(production)
        return f"This log cannot tell whether a list is better: {why}."

    @property
    def cautions(self) -> tuple[str, ...]:
        """What the reader has to know beside the verdict, a sentence each."""
        sentences = []
        too_rare = self.reason == "too few sessions" and self.n_lists > max(
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
            "No log of clicks tells a better list from one that was shown to other users than the "
            "production list, or on which bots or a campaign stay."
        )
        return tuple(sentences)


def decide(
    log: ClickLog,
    query: str | None = None,
    *,
    production: Sequence[str] | None = None,
    reward: str = "clicks",
    cutoff: int | None = None,
    level: float = LEVEL,
    seed: int = 0,
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
        level: the highest probability that a list is called better and is not; below 0.5.
        seed: of the sessions that are held out to choose a click model.

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
    check_seed(seed)
    if query is None:
        query = log.query_labels[int(np.bincount(log.queries).argmax())]
    shown = QueryLists(log.of_query(query), query, reward, cutoff)
    labels = None if production is None else check_labels("production", production)
    today = shown.in_production() if labels is None else shown.ranking(labels)
    decision = _measured_decision(shown, query, today, reward, cutoff, level)
    return replace(decision, proposal=_proposal(shown, query, today, reward, cutoff, level, seed))


def _check(log: ClickLog, reward: str, cutoff: int | None, level: float) -> None:
    check_kind("log", log, ClickLog, "a ClickLog")
    check_choice("reward", reward, UNITS)
    check_cutoff(cutoff, log)
    check_between("level", level, 0, 0.5)
    if not len(log):
        raise ValueError("the log has no sessions")


def _measured_decision(
    shown: QueryLists, query: str, today: Ranking, reward: str, cutoff: int | None, level: float
) -> Decision:
    """What was measured of a query's lists, without a proposal."""
    since = shown.in_production_since(today)
    measured = measure(shown, today, level)
    log = shown.log
    return Decision(
        query=query,
        n_sessions=len(shown),
        n_lists=len(shown.lists),
        reward=reward,
        cutoff=cutoff,
        level=level,
        declared=log.propensities is not None or log.list_propensities is not None,
        production=shown.labels(today),
        n_production=len(shown.sessions_of(today)),
        since=None if since is None or log.times is None else shown.moment(since),
        measured=measured,
        proposal=None,
        by_block=tuple(
            shown.by_block(ranking)
            for ranking in (today, *(shown.ranking(entry.labels) for entry in measured[:3]))
        ),
    )


def decide_all(
    log: ClickLog, *, reward: str = "clicks", cutoff: int | None = None, level: float = LEVEL
) -> list[Decision]:
    """Decide all queries of a log, the most frequent first, without proposals.

    The level is corrected for the number of queries by the procedure of Benjamini and Hochberg: of
    the lists that are called better, at most a share ``level`` is expected to be no better.

    Args:
        log: the sessions.
        reward, cutoff: as for `decide`.
        level: see above.
    """
    _check(log, reward, cutoff, level)
    decisions = []
    for number, sessions in zip(*grouped(log.queries), strict=True):
        query = log.query_labels[number]
        shown = QueryLists(log[sessions], query, reward, cutoff)
        today = shown.in_production()
        decisions.append(_measured_decision(shown, query, today, reward, cutoff, level))
    decisions.sort(key=lambda decision: -decision.n_sessions)
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
    corrected = float(allowed[passed[-1] if len(passed) else 0])
    return [replace(decision, level=corrected) for decision in decisions]


def experiment(gain: float, variance: float, level: float) -> int:
    """The sessions of an A/B test, both halves together, that proves a gain at a level with
    probability `POWER`; at least `LEAST_IN_TEST` of each list in each block of time.

    Example:
        >>> experiment(0.1, 0.8, 0.005)
        5460
    """
    z = NormalDist().inv_cdf(1 - level) + NormalDist().inv_cdf(PASSED)
    return 2 * max(BLOCKS * LEAST_IN_TEST, math.ceil(2 * variance * (z / gain) ** 2))


def _proposal(
    shown: QueryLists,
    query: str,
    production: Ranking,
    reward: str,
    cutoff: int | None,
    level: float,
    seed: int,
) -> Proposal | None:
    """What the click model proposes that predicts held-out sessions of the query best."""
    log = shown.log[shown.sessions[-MOST_SESSIONS:]]
    n_items = len(np.setdiff1d(log.items, -1))
    if len(log) < LEAST_SESSIONS or n_items < log.n_positions:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        most = max(LEAST_ITEMS, log.n_positions)
        fitted = fit_models(log, ["all"], [query], n_items=most, test_share=HELD_OUT, seed=seed)
    scores = {name: estimator.score(fitted.test) for name, estimator in fitted.scored.items()}
    name = max(scores, key=scores.__getitem__)
    instance = fitted.instances[query]
    users = instance.model(MODEL_ESTIMATORS[name].model_class.short)
    items = instance.estimation["items"]
    labels = shown.labels(production)
    if len(production) < log.n_positions or not set(labels) <= set(items):
        return None
    best = users.optimal_ranking(reward, cutoff)
    today = np.array([items.index(label) for label in labels])
    expected = [users.expected_reward(ranking, reward, cutoff) for ranking in (best, today)]
    gain = expected[0] - expected[1]
    if gain <= 0:
        return None
    return Proposal(
        name,
        tuple(items[item] for item in best[:cutoff]),
        gain,
        experiment(gain, float(shown.earned.var()), level),
    )
