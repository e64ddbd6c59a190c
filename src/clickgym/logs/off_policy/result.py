"""An off-policy estimate, its diagnostics, and the reasons to distrust it."""

from __future__ import annotations

from dataclasses import dataclass

from .intervals import LEAST_CLICKS, Interval
from .weights import WEIGHTS

LEAST_SESSIONS = 100
"""An effective sample size below it is worth a caution: the interval of so few is itself
uncertain.
"""


@dataclass(frozen=True)
class Evaluation:
    """An off-policy estimate.

    Attributes:
        estimator: its name.
        value: the estimated expected reward per session.
        standard_error: of ``value``, from the variance between sessions, or between users where the
            log knows them; where the click model is fitted to the log, that of its parameters if it
            is larger; NaN for a single session or user, which has none.
        interval: confidence interval of ``value``; NaN for a single session or user.
        on_policy: the logged reward per session, which is the value of the logging policy.
        on_policy_interval: confidence interval of ``on_policy``.
        difference: ``value`` minus ``on_policy``; None by an estimator without a click model where
            the lists changed with time, for it would be one of times.
        difference_interval: its confidence interval, or None. Both sides of the difference come
            from the same sessions, so that what they share cancels.
        effective_clicks: ``(Σx)²/Σx²`` of what sessions contribute, or users where the log knows
            them, how many weighted clicks of equal size would vary as much. Below 10 the difference
            tells neither better nor worse.
        n_sessions: N.
        effective_sample_size: ``(Σw)²/Σw²``, how many sessions of equal weight would vary as much
            (at the worst position, where weights are normalised by position).
        mean_weight: 1 in expectation (at the position where it is farthest from 1); below 1, the
            log shows too rarely what the target policy would show.
        weights_off: whether the mean weight, at a position or over all of them, is farther from 1
            than a thousandth and four standard errors, so that probabilities of the logging policy
            are wrong.
        lists_changed: whether the lists changed with time, as those of a learning agent do.
        assumed: whether the click model tells the value mostly by what it assumes of how users
            read: a PBM, in which positions may be examined by any law, does not tell it, or has
            more than three times the standard deviation.
        guessed: a parameter of the click model that the log tells nothing of, and that matters a
            little, so that the interval is wider; else empty.
        excluded: the sessions whose clicks the fitted click model says to be impossible, as two
            clicks are in a cascade model.
        most: the most that a session can earn.
    """

    estimator: str
    value: float
    standard_error: float
    interval: Interval
    on_policy: float
    on_policy_interval: Interval
    difference: float | None
    difference_interval: Interval | None
    n_sessions: int
    effective_clicks: float
    effective_sample_size: float
    mean_weight: float
    weights_off: bool
    lists_changed: bool
    assumed: bool
    guessed: str
    excluded: int
    most: int

    @property
    def cautions(self) -> tuple[str, ...]:
        """Reasons to distrust the estimate, one sentence each.

        There is one if the estimate is more than a session can earn; if the lists changed with
        time; if the click model excludes sessions of the log, tells the value mostly by its
        assumptions, or a little of it is guessed; if the mean weight is off; if the effective
        sample size is below 100 sessions; and if fewer than 10 effective clicks tell of the policy.
        """
        sentences = []
        if self.value > self.most:
            why = "the log is too short for this policy"
            if self.weights_off and self.mean_weight > 1.0:
                why = "perhaps the probability of a list is recorded as that of an item"
            sentences.append(
                f"{self.value:.4g} by {self.estimator} is impossible, for a list earns at most "
                f"{self.most}: {why}."
            )
        if self.lists_changed:
            sentences.append(
                f"the lists of this log changed with time: {', '.join(WEIGHTS)} cannot tell lists "
                "from times, and compare nothing. Click models assume that users do not change, "
                "and are biased if they do, or if a learning agent chose the lists."
            )
        if self.excluded:
            sentences.append(
                f"{self.excluded:,} of {self.n_sessions:,} sessions are impossible by "
                f"{self.estimator}, most likely for their number of clicks: these users click by "
                "another model."
            )
        if self.assumed:
            sentences.append(
                f"{self.estimator} tells this policy mostly by what it assumes of how users read: "
                "a PBM, which assumes less of it, is much less sure. If they read otherwise, the "
                "estimate is wrong."
            )
        if self.guessed:
            sentences.append(
                f"the log tells nothing of {self.guessed}. The interval of {self.estimator} allows "
                "for it to be six times as large or as small."
            )
        if self.weights_off:
            rarer = "rarer" if self.mean_weight < 1.0 else "more frequent"
            sentences.append(
                f"the mean weight of {self.estimator} is {self.mean_weight:.3f}, where right "
                "probabilities of all lists give 1: in this log, what the policy would show is "
                f"{rarer} than the probabilities say. Take --logging empirical if you doubt them, "
                "or if several policies took turns."
            )
        if self.effective_sample_size < LEAST_SESSIONS:
            sentences.append(
                f"the effective size of {self.estimator} is {self.effective_sample_size:.0f}, "
                f"below {LEAST_SESSIONS}: the intervals of so few sessions are rough."
            )
        if self.effective_clicks < LEAST_CLICKS:
            sentences.append(
                f"{self.effective_clicks:.0f} effective clicks tell of this policy by "
                f"{self.estimator}, below {LEAST_CLICKS}: too few to call it better or worse."
            )
        return tuple(sentences)
