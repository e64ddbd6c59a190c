"""Priors of probabilities, given or fitted to a log.

The estimate of a probability is ``(a + successes)/(a + b + trials)``, its mean under the prior
Beta(a, b). What all pairs share has a = b = 1. What belongs to a pair of query and item has the
prior of the log: pairs are many, and of most a log shows little, so a wrong prior would move what
they share. A pair that the log never showed has the mean of the prior.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import betaln, expit, logit, psi

from .counting import Floats

Prior = tuple[float, float]

UNIFORM: Prior = (1.0, 1.0)


def smooth(successes: Any, trials: Any, prior: Prior = UNIFORM) -> Floats:
    """The mean of each probability under its prior."""
    return (prior[0] + successes) / (sum(prior) + trials)


def log_prior(values: Floats, prior: Prior = UNIFORM) -> float:
    """The logarithm of the prior that EM climbs, Beta(a + 1, b + 1) with its mode where `smooth`
    is, up to a constant.
    """
    if prior == UNIFORM:
        return float(np.log(values * (1.0 - values)).sum())
    return float((prior[0] * np.log(values) + prior[1] * np.log1p(-values)).sum())


def fit_prior(successes: Floats, failures: Floats, start: Prior = UNIFORM) -> Prior:
    """The Beta prior of many probabilities that makes their counts most likely (beta-binomial law).

    Its mean m and ``r = 1 / (a + b + 1)`` have a law themselves, ``m (1 - m) r (1 - r)²``, so that
    few counts leave it near Beta(1, 1). The search begins at ``start``.
    """

    def beta(mean: float, spread: float) -> tuple[float, float]:
        size = (1.0 - spread) / spread
        return mean * size, (1.0 - mean) * size

    def depth(place: Floats) -> tuple[float, Floats]:
        mean, spread = expit(place)
        a, b = beta(mean, spread)
        law = mean * (1.0 - mean) * spread * (1.0 - spread) ** 2
        gain = betaln(a + successes, b + failures) - betaln(a, b)
        both = psi(a + b + successes + failures) - psi(a + b)
        by_a = (psi(a + successes) - psi(a) - both).sum()
        by_b = (psi(b + failures) - psi(b) - both).sum()
        slope = [
            (by_a - by_b) * (a + b) * mean * (1.0 - mean) + 1.0 - 2.0 * mean,
            -(by_a * a + by_b * b) + 1.0 - 3.0 * spread,
        ]
        n = len(successes) + 1
        return -float(gain.sum() + np.log(law)) / n, -np.array(slope) / n

    a, b = start
    place = logit([a / (a + b), 1.0 / (a + b + 1.0)])
    a, b = beta(*expit(minimize(depth, place, jac=True, options={"gtol": 1e-6}).x))
    return float(a), float(b)
