"""What a decision is made of: its settings, the log and the query, what agents learned, lists, and tested estimators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter

import numpy as np
import polars

from ...envs.instances import Instance
from ..evaluation import LEAST_SESSIONS, Evaluation
from ..model_weights import MODEL_BASED
from .evidence import Evidence, Ground, Verdict, larger_step, settle
from .settings import Settings

UNITS = {
    "clicks": "clicks per session", "any_click": "sessions with a click", "satisfaction": "satisfied users per session",
    "values": "value per session",
}  # fmt: skip
NEAR = 1.5
"""An estimator is trusted if its mean error is at most so many times the smallest."""


@dataclass(frozen=True)
class Subject:
    """What a decision is about: a query of a log.

    Attributes:
        log: the name of the log's file, or a description of the log.
        query: the label of the query.
        n_sessions, n_queries: of the log.
        n_of_query, n_held_out: sessions of the query, and those of them that were held out.
        valued: whether the log says what clicks are worth, which is then the reward.
        counts: the file of counts whose other queries told position parameters; "" without.
    """

    log: str
    query: str
    n_sessions: int
    n_queries: int
    n_of_query: int
    n_held_out: int
    valued: bool = False
    counts: str = ""

    @property
    def n_resamples(self) -> int:
        """Of the held-out sessions, for the intervals of what lists earn; of so many sessions as need counts, fewer will do."""
        return 200 if self.counts else 1000


@dataclass(frozen=True)
class Play:
    """How agents fare with the simulated users.

    Attributes:
        instance: the users, as a ranking problem: those of the click model that predicts best.
        regret: of each agent at the end, mean over runs, least first.
        curves: columns ``agent``, ``step``, ``regret``, mean over runs.
    """

    instance: Instance
    regret: dict[str, float]
    curves: polars.DataFrame


@dataclass(frozen=True)
class Candidate:
    """A list, and estimates of its reward per session.

    Attributes:
        name: what it is.
        labels: of its items, from the top, as far as positions count.
        predicted: by the users of the simulation.
        truth: by the users of a simulated log; None for a real one.
        estimates: from the held-out sessions, by estimator; differences are to the list in production.
        refused: by estimator, why there is no estimate.
    """

    name: str
    labels: tuple[str, ...]
    predicted: float
    truth: float | None
    estimates: dict[str, Evaluation]
    refused: dict[str, str]


@dataclass(frozen=True)
class Check:
    """The test of an estimator on logged lists, whose rewards are known.

    Attributes:
        estimator: its name.
        estimated: of each list of `Decision.earned`, from the sessions that showed another one; NaN where it is refused.
        error: the mean distance to what the lists earned.
        correlation: with what they earned; NaN for fewer than three lists.
        n_lists: how many could be estimated.
    """

    estimator: str
    estimated: tuple[float, ...]
    error: float
    correlation: float
    n_lists: int


@dataclass(frozen=True)
class Trial:
    """The test of the estimators on logged lists.

    Attributes:
        earned: the mean rewards of these lists.
        noise: the standard errors of these means.
        checks: one for each estimator; empty if too few lists were logged often.
    """

    earned: tuple[float, ...] = ()
    noise: tuple[float, ...] = ()
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True)
class Decision:
    """The list to show for a query, and everything on which this decision rests.

    Attributes:
        settings: those of `decide`; here also ``reward``, ``cutoff``, ``horizon``, ``runs`` and ``seed``.
        subject: the log and the query; here also ``log``, ``query``, ``n_sessions``, ``n_queries``, ``n_of_query`` and
            ``n_held_out``.
        evidence: the evidence for the verdict; here also its ``level`` and ``scores``.
        n_decided: the number of queries for which ``level`` was corrected; 1 without correction.
        play: the simulated users and the agents; here also ``instance``, ``regret`` and ``curves``.
        candidates: the production list, the proposed list, and others for comparison: the list of the best agent, the best list
            under the model, and the best logged list under the model, if they are different.
        logged: the mean reward of the held-out sessions of the query; None for satisfaction.
        trial: the test of the estimators; here also ``earned``, ``noise`` and ``checks``.
        headline, summary, against: the decision in words, its reasons, and the objections.
    """

    settings: Settings
    subject: Subject
    evidence: Evidence
    n_decided: int
    play: Play
    candidates: tuple[Candidate, ...]
    logged: float | None
    trial: Trial
    headline: str = ""
    summary: tuple[str, ...] = ()
    against: dict[str, str] = field(default_factory=dict)

    reward = property(attrgetter("settings.reward"))
    cutoff = property(attrgetter("settings.cutoff"))
    horizon = property(attrgetter("settings.horizon"))
    runs = property(attrgetter("settings.runs"))
    seed = property(attrgetter("settings.seed"))
    log = property(attrgetter("subject.log"))
    query = property(attrgetter("subject.query"))
    n_sessions = property(attrgetter("subject.n_sessions"))
    n_queries = property(attrgetter("subject.n_queries"))
    n_of_query = property(attrgetter("subject.n_of_query"))
    n_held_out = property(attrgetter("subject.n_held_out"))
    level = property(attrgetter("evidence.level"))
    scores = property(attrgetter("evidence.scores"))
    instance = property(attrgetter("play.instance"))
    regret = property(attrgetter("play.regret"))
    curves = property(attrgetter("play.curves"))
    earned = property(attrgetter("trial.earned"))
    noise = property(attrgetter("trial.noise"))
    checks = property(attrgetter("trial.checks"))

    @property
    def unit(self) -> str:
        """In which rewards and gains are counted."""
        return UNITS["values" if self.subject.valued else self.reward]

    @property
    def production(self) -> Candidate:
        """The production list: the list that the log shows most, without items that the instance does not have."""
        return self.candidates[0]

    @property
    def proposal(self) -> Candidate:
        """The list of `ground`; if there is none, the list of the agent with the lowest regret."""
        return self.candidates[1]

    @property
    def verdict(self) -> Verdict:
        """See `evidence`."""
        return settle(self.evidence.grounds, self.evidence.enough, self.level)[0]

    @property
    def ground(self) -> Ground | None:
        """What the verdict is about: the proposal's gain, if the log tells of one."""
        return settle(self.evidence.grounds, self.evidence.enough, self.level)[1]

    @property
    def larger(self) -> Ground | None:
        """Beside a measured list that is better: the list for which models predict more. It is worth an experiment."""
        return larger_step(self.evidence.grounds, self.ground, self.level)

    @property
    def recommended(self) -> tuple[str, ...] | None:
        """Labels of the list to show; None if no list can be recommended."""
        if self.verdict == "unknown":
            return None
        keeps = self.verdict in ("not better", "not proven")
        return self.evidence.production[: self.settings.cutoff] if keeps else self.proposal.labels

    @property
    def winner(self) -> str:
        """The agent with the lowest regret."""
        return next(agent for agent in self.play.regret if agent != "Fixed" or len(self.play.regret) == 1)

    @property
    def believed(self) -> tuple[str, ...]:
        """The estimators that can judge the proposed list and whose test errors were small."""
        return believed_of(self.proposal, self.trial.checks)

    @property
    def gains(self) -> dict[str, Evaluation]:
        """The estimates of the proposal by the estimators that passed their test."""
        return {name: self.proposal.estimates[name] for name in self.believed}


def believed_of(proposal: Candidate, checks: Sequence[Check]) -> tuple[str, ...]:
    """Of the estimators that can judge the proposal those that came near to what logged lists earned, and `dr`, which assumes
    nothing of users. Where none could be tried, a click model is not believed: its parameters need not be told by the log."""
    able = [name for name, estimate in proposal.estimates.items() if estimate.effective_sample_size >= LEAST_SESSIONS]
    if not checks:
        return tuple(name for name in able if name not in MODEL_BASED)
    errors = {check.estimator: check.error for check in checks}
    least = min(map(errors.__getitem__, errors.keys() & able), default=0.0)
    return tuple(name for name in able if name == "dr" or errors.get(name, np.inf) <= NEAR * least)
