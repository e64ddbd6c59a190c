"""Beta priors of probabilities, which are given or fitted to a log.

The estimate of a probability is ``(a + successes)/(a + b + trials)``, its posterior mean under the
prior Beta(a, b). Parameters that all (query, item) pairs share have a = b = 1. For the parameters
of a single pair, the prior is fitted to the log: there are many pairs, and the log shows most of
them rarely, so a wrong prior would bias the shared parameters. The estimate for a pair that the log
never showed is the mean of the prior.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import betaln, expit, logit, psi

from ...core.state import Floats

Prior = tuple[float, float]

UNIFORM: Prior = (1.0, 1.0)


def smooth(successes: Any, trials: Any, prior: Prior = UNIFORM) -> Floats:
    """Return the posterior mean of each probability under a Beta prior."""
    return (prior[0] + successes) / (sum(prior) + trials)


def log_prior(values: Floats, prior: Prior = UNIFORM) -> float:
    """Return, up to a constant, the logarithm of the prior in the objective that EM maximises. This
    prior is Beta(a + 1, b + 1), because the mode of its posterior is the estimate of `smooth`.
    """
    if prior == UNIFORM:
        return float(np.log(values * (1.0 - values)).sum())
    return float((prior[0] * np.log(values) + prior[1] * np.log1p(-values)).sum())


def fit_prior(successes: Floats, failures: Floats, start: Prior = UNIFORM) -> Prior:
    """Return the Beta prior of many probabilities under which their counts are most likely
    (beta-binomial distribution).

    The prior's mean m and ``r = 1 / (a + b + 1)`` have the prior density ``m (1 - m) r (1 - r)²``
    themselves, which keeps the result near Beta(1, 1) if there are few counts. The optimisation
    begins at ``start``.
    """

    def beta(mean: float, spread: float) -> tuple[float, float]:
        size = (1.0 - spread) / spread
        return mean * size, (1.0 - mean) * size

    def loss_and_gradient(point: Floats) -> tuple[float, Floats]:
        mean, spread = expit(point)
        a, b = beta(mean, spread)
        density = mean * (1.0 - mean) * spread * (1.0 - spread) ** 2
        gain = betaln(a + successes, b + failures) - betaln(a, b)
        both = psi(a + b + successes + failures) - psi(a + b)
        by_a = (psi(a + successes) - psi(a) - both).sum()
        by_b = (psi(b + failures) - psi(b) - both).sum()
        slope = [
            (by_a - by_b) * (a + b) * mean * (1.0 - mean) + 1.0 - 2.0 * mean,
            -(by_a * a + by_b * b) + 1.0 - 3.0 * spread,
        ]
        n = len(successes) + 1
        return -float(gain.sum() + np.log(density)) / n, -np.array(slope) / n

    a, b = start
    point = logit([a / (a + b), 1.0 / (a + b + 1.0)])
    a, b = beta(*expit(minimize(loss_and_gradient, point, jac=True, options={"gtol": 1e-6}).x))
    return float(a), float(b)
