"""What a click model that is fitted to a log knows of a policy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..estimation.browsing import PBMEstimator
from ..estimation.em import quietly_fitted
from ..estimation.estimator import Estimator
from ..estimation.information import MOST_GUESSED, Information, Uncertainty
from ..log import ClickLog
from .model_weights import clicks_of
from .policies import Policy, check_query

PLAIN = ("pbm", "ubm")
"""Click models in which positions may be examined by any law."""
MOST_ASSUMED = 3
"""If a PBM has more than this times the standard deviation, the rest is assumed."""


class Knowledge(NamedTuple):
    """What a click model that was fitted to the log knows of a policy.

    Attributes:
        uncertainty: of the value; None if no model was fitted.
        assumed, guessed, excluded: as in `Evaluation`.
    """

    uncertainty: Uncertainty | None
    assumed: bool
    guessed: str
    excluded: int


NO_FIT = Knowledge(None, assumed=False, guessed="", excluded=0)


def knowledge_of_fit(
    log: ClickLog,
    target: Policy,
    estimator: str,
    fitted: Estimator,
    cutoff: int | None,
    click: float,
) -> Knowledge:
    """What a fitted click model knows of a policy, which is refused if the log does not tell its
    value.

    Args:
        log, target, estimator, cutoff: as in `contributions`.
        fitted: the model.
        click: how much a click could change the value.
    """
    uncertainty = _uncertainty(log, target, fitted, cutoff)
    (parameter,) = uncertainty.least_identified
    if uncertainty.is_unidentified(click)[0]:
        raise ValueError(
            f"this log does not tell what {estimator} needs for this policy, most of all "
            f"{parameter}: with other values users would have clicked the same; show 5 % of the "
            "sessions in random order"
        )
    assumed = False
    if estimator not in PLAIN:
        plain = _uncertainty(log, target, quietly_fitted(PBMEstimator, log), cutoff)
        more = plain.deviation > MOST_ASSUMED * uncertainty.deviation
        assumed = bool((plain.is_unidentified(click) | more)[0])
    guessed = parameter if uncertainty.is_unidentified(click, MOST_GUESSED)[0] else ""
    excluded = int(np.isneginf(fitted.log_likelihood(log)).sum())
    return Knowledge(uncertainty, assumed, guessed, excluded)


def _uncertainty(
    log: ClickLog, target: Policy, model: Estimator, cutoff: int | None
) -> Uncertainty:
    """How well the log tells the value of a policy by a click model that was fitted to it."""
    return Information(model, log).uncertainty(check_query(log), clicks_of(log, target, cutoff))
