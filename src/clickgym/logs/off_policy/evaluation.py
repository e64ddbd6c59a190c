"""Off-policy evaluation: estimate the reward of a ranking policy from a log of one query that
another policy made.

The value of a policy is its expected reward per list, by default the number of clicks. Every
estimator here weighs the logged clicks,

    V = mean over sessions of Σ_k weight(n, k) c(n, k),

and they differ in what the weight compares between the target policy Φ and the logging policy π,
hence in what they assume about users, and in variance:

| estimator | weight of a click on the item a_k at position k | unbiased if |
|---|---|---|
| `ips` | Φ(list) / π(list) | always |
| `cascade` | Φ(first k items) / π(first k items) | nothing below influences a click |
| `item-position` | Φ(a_k at k) / π(a_k at k) | a click depends on the item and its position: PBM |
| `pbm`, `cm`, `dcm`, … | examinations of a_k per list under Φ / π | that click model |

*Click-model estimators.* In each of these models a click is an examination times an attraction
α(a), whatever the list. So the value is ``Σ_a α(a) X_Φ(a)`` with X(a) the expected number of
examinations of item a per list, and clicks weighed by ``X_Φ(a) / X_π(a)`` estimate it. For the PBM
``X_Φ(a) = Σ_k χ_k Φ(a at k)``; for the UBM ``X_Φ(a) = Σ_{k,k'} γ_{k,k'} Φ(a, k, k')``, which makes
this the inner product ``<W, Φ(a,·,·)>`` of He et al. 2020, equation 10.

1. Equation 10 sums k' from 0 to k; the last click above position k is at most at k - 1, as the
   paper's own W says.
2. Φ(a, k, k') and π(a, k, k') depend on the users' clicks, so outside the PBM a policy alone does
   not determine X. With a ``logging`` policy, which `contributions` takes, both are computed from
   the click model (unbiased if its parameters are right). Without one, as in `evaluate`, X_π is
   that of the log's own lists.
3. `ubm` without a ``logging`` policy is the paper's procedure (its equation 11 and what follows):
   π(a, k, k') is counted in the log, the attraction of an item is its clicks over the sum of its
   examination weights, and Φ(a, k, k') follows from these attractions. The paper draws the clicks
   under Φ one position after the other; here their expectation is taken, which has the same mean
   and no noise. An estimated attraction above 1 counts as 1 in Φ(a, k, k'); the paper cuts its
   product with the weight off at 1. Of a fitted model only products of attraction and examination
   are known: the largest examination counts as 1, so that few attractions are above 1.

*Other rewards.* With a ``cutoff`` m only the first m positions count. ``any_click`` is 1 for a list
with a click; `ips` and `cascade` count the first click alone (for the others it is not a sum over
clicks).

*Lists of unequal length.* How many results there are belongs to the session: a policy is a law over
lists given a length, and the propensities of a list, a prefix or an item-position are those among
the sessions of its length. Nothing below the end is examined: a whole list, or a prefix, is as long
as the session's, an item-position below has the weight 1, and X counts the positions by the share
of the sessions that have them.

*Infinite weights*, and those above 1e100, are refused: a list (prefix, item at a position, examined
item) that the target shows and the logging policy never does, or with unknown probability; and a
log in which no session has a positive weight.
Recorded propensities tell only of what was logged: a ``mean_weight`` far below 1 shows that
something was not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtrc, ndtr

from ...core.checks import (
    check_choice,
    check_kind,
    check_number,
    short,
)
from ...envs import ClickModel
from ..distinct import distinct, grouped, sorted_distinct
from ..estimation.estimator import Estimator
from ..estimation.information import MOST_GUESSED, Information, Told
from ..log import ClickLog
from .intervals import (
    LEAST_CLICKS,
    Interval,
    Users,
    by_user,
    deviations,
    effective_number,
    interval_of_clicks,
    interval_of_difference,
)
from .model_weights import MODEL_BASED, clicks_of, fitted_model, model_weights
from .policies import Integers, Policy, check_query, empirical_policy
from .weights import WEIGHTS, Contributions, Floats, Sessions

ESTIMATORS = (*WEIGHTS, *MODEL_BASED)
"""The names of the estimators."""

CAN_ESTIMATE = {"clicks": ESTIMATORS, "any_click": ("ips", "cascade")}
"""The estimators of each reward."""

LEAST_SESSIONS = 100
"""An effective sample size below it is worth a caution: the interval of so few is itself
uncertain.
"""
FOLLOWS, BLOCKS = 0.001, 20
"""The p-value below which lists changed with time, and the number of blocks of time."""
PLAIN = ("pbm", "ubm")
"""Click models in which positions may be examined by any law."""
MOST_ASSUMED = 3
"""If a PBM has more than this times the standard deviation, the rest is assumed."""
MOST_OFF, MOST_ERRORS = 0.001, 4
"""A mean weight that is farther than this from 1, and farther than so many of its standard errors,
is worth a caution.
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


def evaluate(
    log: ClickLog,
    target: Policy,
    estimator: str = "ips",
    *,
    logging: Policy | None = None,
    model: ClickModel | Estimator | None = None,
    reward: str = "clicks",
    cutoff: int | None = None,
    level: float = 0.95,
) -> Evaluation:
    """Estimate the value of a policy from the log of another policy.

    The intervals are in closed form (`intervals.interval_of_clicks`), that of the difference from
    the intervals of its two sides. Where a click model is fitted to the log, the interval is by the
    larger variance: that of sessions with the parameters held fixed, or that of the estimate as a
    function of the parameters, which the information of the log tells (`estimation.information`).

    Args:
        log, target, estimator, model, reward, cutoff: as in `contributions`.
        logging: as there; click-model estimators take the log's own lists instead, because it is
            these lists that users saw.
        level: confidence level of the intervals.

    Returns:
        The estimate with its interval, the difference that the target makes to what was logged, and
        diagnostics.

    Raises:
        ValueError: as `contributions`; on a bad number; if no session has a positive weight; if the
            click model is fitted to the log, and the log does not tell what the estimate needs.

    Source: Li, Abbasi-Yadkori, Kveton, Muthukrishnan, Vinay, Wen, *Offline evaluation of ranking
    policies with click models*, KDD 2018 (lists, item-positions, PBM); McInerney, Brost, Chandar,
    Mehrotra, Carterette, *Counterfactual evaluation of slate recommendations with sequential reward
    interactions*, KDD 2020 (prefixes); He, An, Li, Chen, Guo, Li, Wang, *Contextual user browsing
    bandits for large-scale online mobile recommendation*, RecSys 2020 (UBM).

    Example:
        >>> from clickgym.logs import ClickLog, FixedPolicy, UniformPolicy
        >>> log = ClickLog([[0, 1], [1, 0]], [[1, 0], [0, 0]], [0, 0], ("a", "b"), ("q",))
        >>> logging = UniformPolicy(2, n_positions=2)
        >>> result = evaluate(log, FixedPolicy([0, 1]), "ips", logging=logging)
        >>> result.value, result.on_policy, result.difference
        (1.0, 0.5, 0.5)
    """
    check_number("level", level, above=0, below=1)
    check_query(log)
    check_estimator(estimator, reward)
    fitted = None
    if estimator in MODEL_BASED:
        logging = None  # the lists that users saw count, whoever chose them
        if model is None:
            model = fitted = fitted_model(estimator, log)
    values, weights, largest = contributions(
        log, target, estimator, logging=logging, model=model, reward=reward, cutoff=cutoff
    )
    fit = NOT_FITTED
    if fitted is not None:
        fit = _of_fit(log, target, estimator, fitted, cutoff, largest / len(log))
    users = None if log.users is None else np.unique(log.users, return_inverse=True)[1]
    diagnostics = _diagnostics(weights, users)
    per_session = values.sum(axis=1)
    earned = log.earned(reward, cutoff)
    logged = earned.sum(axis=1).astype(np.float64)
    gains = per_session - logged
    value, gain, on_policy = (float(part.mean()) for part in (per_session, gains, logged))
    errors, variance = _errors((per_session, gains, logged), fit.told, users)
    effective_clicks = effective_number(by_user(per_session, users))
    correlation = _correlation(*errors.tolist()) if effective_clicks >= LEAST_CLICKS else 0.0
    interval = interval_of_clicks(per_session, largest, level, variance, users)
    low, high = interval_of_clicks(logged, 1.0, level, users=users)
    most = 1 if reward == "any_click" else earned.shape[1]
    if fitted is not None and value <= most:
        interval = interval[0], min(interval[1], most)
    difference_interval = interval_of_difference(
        value, interval, on_policy, (low, high), correlation
    )
    lists_changed = lists_follow_time(log)
    compared = not lists_changed or estimator in MODEL_BASED
    return Evaluation(
        estimator=estimator,
        value=value,
        standard_error=float(errors[0]),
        interval=interval,
        on_policy=on_policy,
        on_policy_interval=(low, min(high, most)),
        difference=gain if compared else None,
        difference_interval=difference_interval if compared else None,
        n_sessions=len(log),
        effective_clicks=effective_clicks,
        lists_changed=lists_changed,
        assumed=fit.assumed,
        guessed=fit.guessed,
        excluded=fit.excluded,
        most=most,
        **diagnostics,
    )


class _Fit(NamedTuple):
    """What a click model that was fitted to the log knows of a policy.

    Attributes:
        told: what the log tells of the value; None if no model was fitted.
        assumed, guessed, excluded: as in `Evaluation`.
    """

    told: Told | None
    assumed: bool
    guessed: str
    excluded: int


NOT_FITTED = _Fit(None, assumed=False, guessed="", excluded=0)


def _of_fit(
    log: ClickLog,
    target: Policy,
    estimator: str,
    fitted: Estimator,
    cutoff: int | None,
    click: float,
) -> _Fit:
    """What a fitted click model knows of a policy, which is refused if the log does not tell its
    value.

    Args:
        log, target, estimator, cutoff: as in `contributions`.
        fitted: the model.
        click: how much a click could change the value.
    """
    told = _told(log, target, fitted, cutoff)
    (unknown,) = told.unknown
    if told.is_open(click)[0]:
        raise ValueError(
            f"this log does not tell what {estimator} needs for this policy, most of all "
            f"{unknown}: with other values users would have clicked the same; show 5 % of the "
            "sessions in random order"
        )
    assumed = False
    if estimator not in PLAIN:
        plain = _told(log, target, fitted_model("pbm", log), cutoff)
        more = plain.deviation > MOST_ASSUMED * told.deviation
        assumed = bool((plain.is_open(click) | more)[0])
    guessed = unknown if told.is_open(click, MOST_GUESSED)[0] else ""
    return _Fit(told, assumed, guessed, int(np.isneginf(fitted.log_likelihood(log)).sum()))


def _errors(
    parts: tuple[Floats, Floats, Floats], told: Told | None, users: Users
) -> tuple[Floats, float]:
    """The standard errors of the value, of its difference to what was logged, and of the latter;
    and the variance of the value times N² by the model, 0 without one.

    Of a fitted model both errors are the larger of two: that with the parameters held fixed, and
    that of the estimate as a function of the parameters. With the influence m(n) of session n, what
    it earned r(n), and what the log leaves open, the squares of the latter are

        value:       max(Σ m(n)², variance by the information) + open
        difference:  Σ (m(n) - (r(n) - mean r) / N)² + open

    where m and r are summed by user before they are squared, if users are known.

    Args:
        parts: ``(N,)`` each: what sessions contribute to the value, to the difference, and what
            they earned.
        told: what the log tells of the value by a fitted model.
        users: ``(N,)`` or None.
    """
    errors, variance = np.array([_standard_error(part, users) for part in parts]), 0.0
    logged = parts[-1]
    if told is not None and len(by_user(logged, users)) > 1:
        moves = told.influence[:, 0]
        of_value, of_gain = (
            (by_user(part, users) ** 2).sum()
            for part in (moves, moves - (logged - logged.mean()) / len(logged))
        )
        of_model = np.array([max(of_value, told.variance[0]), of_gain]) + told.open[0]
        errors[:2] = np.maximum(errors[:2], np.sqrt(of_model))
        variance = float(len(logged) ** 2 * of_model[0])
    return errors, variance


def _standard_error(per_session: Floats, users: Users) -> float:
    """Of the mean of what sessions contribute; NaN for a single session or user."""
    if len(by_user(per_session, users)) < 2:
        return np.nan
    return float(np.sqrt((deviations(per_session, users) ** 2).sum()) / len(per_session))


def _correlation(error: float, error_of_gain: float, error_of_logged: float) -> float:
    """The correlation of an estimate and what was logged, at least 0, from their errors and that of
    their difference.
    """
    product = 2 * error * error_of_logged
    shared = error**2 + error_of_logged**2 - error_of_gain**2
    return min(max(shared / product, 0.0), 1.0) if product > 0 else 0.0


def _told(log: ClickLog, target: Policy, model: Estimator, cutoff: int | None) -> Told:
    """What the log tells of a policy's value by a click model that was fitted to it."""
    return Information(model, log).of(check_query(log), clicks_of(log, target, cutoff))


def lists_follow_time(log: ClickLog) -> bool:
    """Whether the lists of a query changed with time, if the sessions stand in its order: slowly,
    by a chi-squared test of lists and twentieths of the log, or quickly, by a runs test. Lists of
    fewer than 100 sessions are taken together by their first items.

    A user counts once for each list and twentieth, and in the runs test with the first session.
    """
    _, index, counts = sorted_distinct(log.items)
    rare = counts[index] < LEAST_SESSIONS
    kinds = np.unique(np.where(rare, -1 - log.items[:, 0], index), return_inverse=True)[1]
    first = np.arange(len(log))
    if log.users is not None:
        first = np.sort(np.unique(log.users, return_index=True)[1])
    level = FOLLOWS / 2
    return _drift_level(kinds, log.users) < level or _runs_level(kinds[first]) < level


def _drift_level(kinds: Integers, users: Users) -> float:
    """The p-value of kinds of lists, ``(n,)`` from 0, and blocks of time, if they do not drift."""
    cells = kinds * BLOCKS + np.arange(len(kinds)) * BLOCKS // len(kinds)
    if users is not None:
        cells = cells[distinct(np.stack([users, cells], axis=1))[0]]
    table = np.bincount(cells, minlength=BLOCKS * (kinds.max() + 1)).reshape(-1, BLOCKS)
    table = table[table.sum(axis=1) >= LEAST_SESSIONS]
    if len(table) < 2:
        return 1.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    expected = np.maximum(expected, np.finfo(float).tiny)
    statistic = float(((table - expected) ** 2 / expected).sum())
    return float(chdtrc((len(table) - 1) * (BLOCKS - 1), statistic))


def _runs_level(kinds: Integers) -> float:
    """The p-value of so few runs of equal kinds, ``(n,)`` in the order of time, if the order is
    random (Mood, *The distribution theory of runs*, 1940; normal approximation).
    """
    n, counts = len(kinds), np.bincount(kinds).astype(float)
    squares, cubes = (counts**2).sum(), (counts**3).sum()
    variance = (squares * (squares + n * (n + 1)) - 2 * n * cubes - n**3) / (n**2 * (n - 1.0))
    if n < LEAST_SESSIONS or variance <= 0:
        return 1.0
    runs, expected = 1 + np.count_nonzero(np.diff(kinds)), (n * (n + 1) - squares) / n
    return float(ndtr((runs - expected) / math.sqrt(variance)))


def _diagnostics(weights: Floats, users: Users) -> dict[str, Any]:
    """The fields of `Evaluation` about weights, of which some must be positive."""
    sums = weights.sum(axis=0)
    if not (sums > 0).all():
        where = f" at position {np.argmin(sums > 0) + 1}" if len(sums) > 1 else ""
        raise ValueError(
            f"no session of the log shows anything that the target policy would show{where}; "
            "there is nothing to estimate from"
        )
    means = sums / len(weights)
    return {
        "effective_sample_size": float((sums**2 / (weights**2).sum(axis=0)).min()),
        "mean_weight": float(means[np.abs(means - 1).argmax()]),
        "weights_off": any(_is_off(part, users) for part in (*weights.T, weights.mean(axis=1))),
    }


def _is_off(weights: Floats, users: Users) -> bool:
    """Whether the mean of weights is farther from 1 than chance explains."""
    # With the mean 1, a weight has the variance Σw²/Σw - 1; a small sample may have less.
    variance = max(float((weights**2).sum() / weights.sum()) - 1, 0.0)
    error = max(_standard_error(weights, users), np.sqrt(variance / len(weights)))
    return bool(abs(weights.mean() - 1) > max(MOST_ERRORS * error, MOST_OFF))


def contributions(
    log: ClickLog,
    target: Policy,
    estimator: str = "ips",
    *,
    logging: Policy | None = None,
    model: ClickModel | Estimator | None = None,
    reward: str = "clicks",
    cutoff: int | None = None,
) -> Contributions:
    """The contribution of each session to an estimate.

    Args:
        log: the logged sessions, of a single query.
        target: the policy to evaluate, over the log's item indices.
        estimator: one of `ESTIMATORS`.
        logging: the policy that made the log. None: `ips` and `item-position` use the propensities
            that the log recorded, the click-model estimators the log's own lists
            (`empirical_policy`), and `cascade` refuses.
        model: the click model of a click-model estimator: a `ClickModel` over the log's item
            indices, a fitted `Estimator`, or None to fit one to this log.
        reward: ``"clicks"`` (their number) or ``"any_click"`` (1 if there is one); see the module's
            docstring for which estimators can tell.
        cutoff: count only the first ``cutoff`` positions, in ``1..K``; None counts all.

    Returns:
        Values, weights and the largest weight; G is 1, or K (the cutoff) where each position has
        its own weight.

    Raises:
        ValueError: on what does not fit together, and where a weight would be infinite, naming the
            session or the item.
    """
    check_query(log)
    check_estimator(estimator, reward)
    if model is not None and estimator in WEIGHTS:
        raise ValueError(f"model is {short(model)}, but {estimator} takes none")
    _check_policy("target", target, log)
    if logging is not None:
        _check_policy("logging", logging, log)
    earned = log.earned(reward, cutoff)
    if estimator in MODEL_BASED:
        made_by = empirical_policy(log) if logging is None else logging
        sessions = Sessions(log, np.arange(len(log)), target, made_by, earned)
        return model_weights(sessions, estimator, model, counted=logging is None)
    parts = []
    for length, rows in zip(*grouped(log.lengths), strict=True):
        laws = target.of_length(length), None if logging is None else logging.of_length(length)
        part = Sessions(log, rows, *laws, earned[rows])
        parts.append((rows, WEIGHTS[estimator](part)))
    values, weights = np.empty((2, len(log), parts[0][1].values.shape[1]))
    for rows, of_rows in parts:
        values[rows], weights[rows], _ = of_rows
    return Contributions(values, weights, max(part.largest for _, part in parts))


def check_estimator(estimator: str, reward: str = "clicks") -> None:
    """Check the names of an estimator and a reward, and that the estimator supports the reward."""
    check_choice("estimator", estimator, ESTIMATORS)
    check_choice("reward", reward, CAN_ESTIMATE)
    if estimator not in CAN_ESTIMATE[reward]:
        raise ValueError(
            f"the estimator {estimator!r} cannot tell {reward!r}; "
            f"{', '.join(CAN_ESTIMATE[reward])} can"
        )


def _check_policy(name: str, policy: Policy, log: ClickLog) -> None:
    check_kind(name, policy, Policy, "a policy")
    if policy.n_positions != log.n_positions:
        raise ValueError(
            f"the {name} policy fills {policy.n_positions} positions; the log has {log.n_positions}"
        )
    if not 0 <= policy.items[0] <= policy.items[-1] < len(log.item_labels):
        raise ValueError(
            f"the {name} policy has items from {policy.items[0]} to {policy.items[-1]}; those of "
            f"the log are numbered 0 to {len(log.item_labels) - 1}"
        )
