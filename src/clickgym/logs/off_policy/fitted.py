"""What a click model that is fitted to a log knows of a policy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..estimation.browsing import PBMEstimator
from ..estimation.em import quietly_fitted
from ..estimation.estimator import Estimator
from ..estimation.information import MOST_GUESSED, Information, Told
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
        told: what the log tells of the value; None if no model was fitted.
        assumed, guessed, excluded: as in `Evaluation`.
    """

    told: Told | None
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
        plain = _told(log, target, quietly_fitted(PBMEstimator, log), cutoff)
        more = plain.deviation > MOST_ASSUMED * told.deviation
        assumed = bool((plain.is_open(click) | more)[0])
    guessed = unknown if told.is_open(click, MOST_GUESSED)[0] else ""
    return Knowledge(told, assumed, guessed, int(np.isneginf(fitted.log_likelihood(log)).sum()))


def _told(log: ClickLog, target: Policy, model: Estimator, cutoff: int | None) -> Told:
    """What the log tells of a policy's value by a click model that was fitted to it."""
    return Information(model, log).of(check_query(log), clicks_of(log, target, cutoff))
