"""Off-policy evaluation: the value of a policy from another policy's log, with intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.checks import check_number
from ...envs import ClickModel
from ..estimation.em import quietly_fitted
from ..estimation.estimator import Estimator
from ..estimation.information import Uncertainty
from ..log import ClickLog
from .contributions import contributions
from .drift import lists_follow_time
from .fitted import NO_FIT, knowledge_of_fit
from .intervals import (
    LEAST_CLICKS,
    Users,
    by_user,
    deviations,
    effective_number,
    interval_of_clicks,
    interval_of_difference,
)
from .model_weights import MODEL_BASED
from .policies import Policy
from .result import Evaluation
from .weights import Floats

MOST_OFF, MOST_ERRORS = 0.001, 4
"""A mean weight that is farther than this from 1, and farther than so many of its standard errors,
is worth a caution.
"""


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
    fitted = None
    if estimator in MODEL_BASED:
        logging = None  # the lists that users saw count, whoever chose them
        if model is None:
            model = fitted = quietly_fitted(MODEL_BASED[estimator], log)
    values, weights, largest = contributions(
        log, target, estimator, logging=logging, model=model, reward=reward, cutoff=cutoff
    )
    fit = NO_FIT
    if fitted is not None:
        fit = knowledge_of_fit(log, target, estimator, fitted, cutoff, largest / len(log))
    users = None if log.users is None else np.unique(log.users, return_inverse=True)[1]
    diagnostics = _diagnostics(weights, users)
    per_session = values.sum(axis=1)
    earned = log.earned(reward, cutoff)
    logged = earned.sum(axis=1).astype(np.float64)
    gains = per_session - logged
    value, gain, on_policy = (float(part.mean()) for part in (per_session, gains, logged))
    errors, variance = _errors((per_session, gains, logged), fit.uncertainty, users)
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


def _errors(
    parts: tuple[Floats, Floats, Floats], uncertainty: Uncertainty | None, users: Users
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
        uncertainty: of the value by a fitted model.
        users: ``(N,)`` or None.
    """
    errors, variance = np.array([_standard_error(part, users) for part in parts]), 0.0
    logged = parts[-1]
    if uncertainty is not None and len(by_user(logged, users)) > 1:
        moves = uncertainty.influence[:, 0]
        of_value, of_gain = (
            (by_user(part, users) ** 2).sum()
            for part in (moves, moves - (logged - logged.mean()) / len(logged))
        )
        of_model = np.array([max(of_value, uncertainty.variance[0]), of_gain])
        of_model += uncertainty.open_variance[0]
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
