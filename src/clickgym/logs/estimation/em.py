"""The EM algorithm of the estimators: start, stopping rule, extrapolated steps, and evidence from
other sessions.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np

from ...core.checks import check_count, check_number
from ...core.kernels import kernel
from ...core.state import Floats
from ..log import ClickLog
from .estimator import Estimator
from .priors import UNIFORM, Prior

Step = Callable[[list[Floats], list[Prior], list[Floats]], float]
"""A function that computes an EM step. Its arguments are the parameters, the priors of the
parameters of pairs, and arrays to which the step writes the next parameters. It returns the
penalised log-likelihood of the given parameters. Entries that the step does not write keep their
values.
"""
Refit = Callable[[list[Prior]], list[Prior]]
"""A function that takes the current priors, and returns priors that fit the expectations of the
latest EM step.
"""
SAME_PRIOR = 1.01
"""The largest factor by which a and b of a fitted prior may change for the prior to count as
unchanged.
"""


class ConvergenceWarning(UserWarning):
    """A warning that EM has not converged: its last step still changed the log-likelihood per
    session by ``tol`` or more.
    """


def fit_quietly(estimator_class: type[Estimator], log: ClickLog) -> Estimator:
    """Fit an estimator with default settings to a log, without a warning about convergence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator_class().fit(log)


class EMEstimator(Estimator):
    """Base class of the estimators that run EM, with the start, the stopping rule, extrapolated
    steps, and a record of the steps.

    If you pass a ``prior``, the algorithm is EM as published: it maximises the likelihood times the
    prior over all parameters at once. Pairs with few sessions then bias the estimates of the
    parameters that all pairs share (Neyman, Scott 1948). If you pass no prior, the steps avoid or
    reduce this bias. In PBM and UBM, examination probabilities are compared within pairs. In the
    other models, the prior is fitted, and the expectations for a session are computed from the
    evidence of the other sessions about its items.

    Without ``tol``, all steps are plain EM steps. With ``tol``, every second step starts from an
    extrapolation of the last two steps (SQUAREM). An extrapolated step that is no better than the
    plain step before is discarded.

    Args:
        iterations: the largest number of EM steps.
        tol: EM stops once a plain EM step, together with the extrapolation before it, changes the
            penalised log-likelihood per session by less than ``tol``; if this never happens, a
            warning is given. With None, EM takes all steps, and convergence is not checked.
        prior: a and b of the Beta prior of a pair's parameters; see `Estimator`.

    Attributes:
        n_iter_: the number of EM steps computed, including discarded steps.
        log_posterior_: the penalised log-likelihood before each step and after the last step. If
            you pass a prior, these values never decrease.
        converged_: whether the last step, which is a plain EM step, satisfied the condition of
            ``tol``; None without ``tol``.

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
        """Return how much the last two steps, or the only step, changed the log-posterior. A single
        step may be short although the maximum is still far away.
        """
        return sum(abs(after - before) for before, after in pairwise(self.log_posterior_[-3:]))

    def _run_em(
        self,
        step: Step,
        n_pair_parameters: int,
        n_shared: int,
        n_sessions: int,
        refit: Refit | None = None,
    ) -> list[Floats]:
        """Run EM, and return the final parameters: ``n_pair_parameters`` arrays ``(P + 1,)`` with
        a value for each pair, and an array ``(n_shared,)`` of parameters that all pairs share.
        Initially, the parameters of pairs are the means of their priors, and the shared parameters
        are one half.

        Each step also computes the log-posterior of its starting point, so checking whether the
        previous step was an improvement costs nothing.

        Args:
            step: the function that computes an EM step.
            n_pair_parameters, n_shared: the number of parameters of each pair, and the number of
                shared parameters.
            n_sessions: N, the number of sessions.
            refit: the function that fits the priors, attraction first, if no prior was given; by
                default, the priors are not fitted, for models in which clicks do not determine the
                scale of attraction and the prior sets this scale.
        """
        leaves_out = self.prior is None
        priors = [self.prior or UNIFORM] * n_pair_parameters
        initial = [np.full(len(self._codes) + 1, a / (a + b)) for a, b in priors]
        point = np.concatenate([*initial, np.full(n_shared, 0.5)])
        ends = np.cumsum([0, *map(len, initial), n_shared]).tolist()
        parts = [slice(*bounds) for bounds in pairwise(ends)]  # np.split is slow

        def take_step(point: Floats) -> tuple[float, Floats]:
            next_point = point.copy()
            parameters = [point[part] for part in parts]
            following = [next_point[part] for part in parts]
            return step(parameters, priors, following), next_point

        log_posterior, next_point = take_step(point)
        self.log_posterior_, self.n_iter_, self.converged_ = [log_posterior], 0, None
        next_fit = 1
        while not self.converged_ and self.n_iter_ < self.iterations:
            before, point = point, next_point
            log_posterior, next_point = take_step(point)
            self.log_posterior_.append(log_posterior)
            if self.tol is not None:
                self.converged_ = self._last_change() < self.tol * n_sessions
            if leaves_out and refit and (self.converged_ or len(self.log_posterior_) > next_fit):
                next_fit = 2 * len(self.log_posterior_)
                earlier, priors = priors, refit(priors)
                change = np.abs(np.log(np.array(priors) / np.array(earlier))).max()
                self.converged_ = self.converged_ and bool(change <= np.log(SAME_PRIOR))
            # the last step is always a plain step
            if self.tol is not None and not self.converged_ and self.n_iter_ + 2 < self.iterations:
                extrapolated = extrapolate(before, point, next_point)
                new_log_posterior, new_point = take_step(extrapolated)
                is_better = new_log_posterior >= log_posterior
                if leaves_out:  # the likelihood may fall, so compare distances to a fixed point
                    new_size = np.abs(new_point - extrapolated).max()
                    is_better = new_size <= np.abs(next_point - point).max()
                if is_better:
                    point, log_posterior, next_point = extrapolated, new_log_posterior, new_point
                self.log_posterior_.append(log_posterior)
            self.n_iter_ = len(self.log_posterior_) - 1
        self.prior_ = priors[0]
        return [point[part] for part in parts]


def extrapolate(first: Floats, second: Floats, third: Floats) -> Floats:
    """Extrapolate from three successive EM points by SQUAREM. The result lies at most half-way from
    the third point to 0 or 1.
    """
    step = second - first
    change = third - second - step
    size = float(np.linalg.norm(change))
    if size == 0.0:
        return third
    length = max(float(np.linalg.norm(step)) / size, 1.0)  # 1 yields the third point
    return np.clip(
        first + 2.0 * length * step + length**2 * change, third / 2.0, (1.0 + third) / 2.0
    )


class OtherEvidence(NamedTuple):
    """The evidence from other sessions about the attraction of items. If no prior was given, EM
    computes a session's expectations from this evidence.

    Attributes:
        is_used: whether EM uses this evidence.
        successes: ``(P + 1,)`` the number of successes of each pair, including the successes of the
            prior.
        failures: the number of failures of the prior.
    """

    is_used: bool
    successes: Floats
    failures: float


@kernel
def mean_without(failures, mean, successes, least):
    """Return the mean of a probability after removing some of its failures. At least ``least``
    failures, which come from the prior, remain.
    """
    remaining = max(successes * (1.0 - mean) / mean - failures, least)
    return successes / (successes + remaining)
