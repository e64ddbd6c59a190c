"""EM: the start, the stopping rule, extrapolated steps, and what other sessions say about
an item.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np

from ...core.checks import check_count, check_number
from ...core.kernels import kernel
from ..log import ClickLog
from .estimator import Estimator, Floats
from .priors import UNIFORM, Prior

Step = Callable[[list[Floats], list[Prior], list[Floats]], float]
"""An EM step. It takes parameters, the priors of the parameters of pairs, and arrays to which it
writes the next parameters. It returns the penalised log-likelihood of the given parameters. Entries
that the step does not write keep their values.
"""
Refit = Callable[[list[Prior]], list[Prior]]
"""A function that takes the priors of the last step and returns those that fit the expectations of
this step.
"""
SAME_PRIOR = 1.01
"""A fitted prior counts as unchanged if a and b change by at most this factor."""


class ConvergenceWarning(UserWarning):
    """EM reached its last step before the gain of a step fell below ``tol``."""


def fit_quietly(kind: type[Estimator], log: ClickLog) -> Estimator:
    """Fit an estimator with default settings to a log, without a warning about convergence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return kind().fit(log)


class EMEstimator(Estimator):
    """Base class of the EM estimators: the start, the stopping rule, extrapolated steps, and the
    record of the steps.

    With a given ``prior``, this is EM as published: it maximises the likelihood times the prior
    over all parameters at once. Pairs with few sessions then bias the estimates of the parameters
    that all pairs share (Neyman, Scott 1948). Without a given prior, the steps avoid or reduce this
    bias. In PBM and UBM, examinations are compared within pairs. In the other models, the prior is
    fitted, and the expectations for a session are computed from what the other sessions say about
    its items.

    Without ``tol``, all steps are plain EM steps. With ``tol``, every second step starts from an
    extrapolation of the last two steps (SQUAREM). If such a step is no better than the plain step
    before it, it is discarded.

    Args:
        iterations: the largest number of EM steps.
        tol: stop once a plain EM step, together with the extrapolation before it, changes the
            penalised log-likelihood per session by less than ``tol``; warn if this never happens.
            With None, all steps are taken, and convergence is not checked.
        prior: as in `Estimator`.

    Attributes:
        n_iter_: the number of EM steps computed, including discarded steps.
        log_posterior_: the penalised log-likelihood reached before each step and after the last
            step; with a given prior, it never falls.
        converged_: whether the last step, which is a plain EM step, met the condition of ``tol``;
            None without ``tol``.

    Source: Varadhan, Roland, *Simple and globally convergent methods for accelerating the
    convergence of any EM algorithm*, Scandinavian Journal of Statistics 2008, scheme S3, with
    parameters kept inside (0, 1), and without steps that lower the objective. A session's own
    evidence is left out as in Opper, Winther, *Gaussian processes for classification: mean-field
    algorithms*, Neural Computation 2000.
    """

    n_iter_: int
    log_posterior_: list[float]
    converged_: bool | None = None

    def __init__(
        self, iterations: int = 1000, tol: float | None = 1e-7, prior: Prior | None = None
    ) -> None:
        super().__init__(prior)
        self.iterations = check_count("iterations", iterations)
        self.tol = None if tol is None else check_number("tol", tol, above=0.0)

    def fit(self, log: ClickLog) -> Self:
        super().fit(log)
        if self.converged_ is False:
            change = self._last_change() / len(log)
            warnings.warn(
                f"{type(self).__name__} has not converged: the last of {self.n_iter_} steps "
                f"changed the log-likelihood per session by {change:.2g}, not by less than "
                f"tol = {self.tol:g}; in Python, pass iterations={10 * self.iterations}, for "
                "example",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _last_change(self) -> float:
        """Return the change of the log-posterior in the last two steps, or in the only step. One
        step alone may be short although the maximum is still far away.
        """
        return float(np.abs(np.diff(self.log_posterior_[-3:])).sum())

    def _climb(
        self, step: Step, of_pairs: int, n_shared: int, n_sessions: int, refit: Refit | None = None
    ) -> list[Floats]:
        """Take the EM steps, and return the final parameters: ``of_pairs`` arrays ``(P + 1,)`` with
        a value for each pair, and one array ``(n_shared,)`` of parameters that all pairs share. The
        parameters of pairs start at the means of their priors, the shared parameters at one half.

        A step also computes the log-posterior of the point from which it starts, so it costs
        nothing more to check whether the previous step was an improvement.

        Args:
            step: the function that computes a step.
            of_pairs, n_shared: the number of parameters of each pair, and of shared parameters.
            n_sessions: N.
            refit: the function that fits the priors, attraction first, if no prior is given. Models
                in which clicks do not determine the scale of attraction have no such function,
                because there the prior sets this scale.
        """
        leaves_out = self.prior is None
        priors = [self.prior or UNIFORM] * of_pairs
        first = [np.full(len(self._codes) + 1, a / (a + b)) for a, b in priors]
        point = np.concatenate([*first, np.full(n_shared, 0.5)])
        ends = np.cumsum([len(values) for values in first])

        def climb(point: Floats) -> tuple[float, Floats]:
            next_point = point.copy()
            height = step(np.split(point, ends), priors, np.split(next_point, ends))
            return height, next_point

        height, next_point = climb(point)
        self.log_posterior_, self.n_iter_, self.converged_ = [height], 0, None
        next_fit = 1
        while not self.converged_ and self.n_iter_ < self.iterations:
            before, point = point, next_point
            height, next_point = climb(point)
            self.log_posterior_.append(height)
            if self.tol is not None:
                self.converged_ = self._last_change() < self.tol * n_sessions
            if leaves_out and refit and (self.converged_ or len(self.log_posterior_) > next_fit):
                next_fit = 2 * len(self.log_posterior_)
                earlier, priors = priors, refit(priors)
                change = np.abs(np.log(np.array(priors) / np.array(earlier))).max()
                self.converged_ = self.converged_ and bool(change <= np.log(SAME_PRIOR))
            # the last step is not extrapolated
            if self.tol is not None and not self.converged_ and self.n_iter_ + 2 < self.iterations:
                extrapolated = extrapolate(before, point, next_point)
                new_height, new_point = climb(extrapolated)
                is_better = new_height >= height
                if leaves_out:  # the likelihood need not grow: nearer to a fixed point is better
                    new_size = np.abs(new_point - extrapolated).max()
                    is_better = new_size <= np.abs(next_point - point).max()
                if is_better:
                    point, height, next_point = extrapolated, new_height, new_point
                self.log_posterior_.append(height)
            self.n_iter_ = len(self.log_posterior_) - 1
        self.prior_ = priors[0]
        return np.split(point, ends)


def extrapolate(first: Floats, second: Floats, third: Floats) -> Floats:
    """Extrapolate three successive points (SQUAREM). The result is at most half-way from the third
    point to 0 or 1.
    """
    step = second - first
    change = third - second - step
    size = float(np.linalg.norm(change))
    if size == 0.0:
        return third
    length = max(float(np.linalg.norm(step)) / size, 1.0)  # with 1 the result is the third point
    return np.clip(
        first + 2.0 * length * step + length**2 * change, third / 2.0, (1.0 + third) / 2.0
    )


class Others(NamedTuple):
    """What other sessions say about the attraction of items. Without a given prior, EM explains
    each session by this evidence.

    Attributes:
        explain: whether sessions are explained by other sessions.
        successes: ``(P + 1,)`` the successes of each pair, including the successes of the prior.
        failures: the failures of the prior.
    """

    explain: bool
    successes: Floats
    failures: float


@kernel
def mean_without(failures, mean, successes, least):
    """The mean of a probability after some of its failures are taken away. At least ``least``
    failures, those of the prior, remain.
    """
    remaining = max(successes * (1.0 - mean) / mean - failures, least)
    return successes / (successes + remaining)
