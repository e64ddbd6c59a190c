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
"""An EM step. It takes parameters, the priors of the parameters of pairs, and arrays for the next
parameters, in which it writes. It returns the penalised log-likelihood of the given parameters.
Entries that it does not write stay.
"""
Refit = Callable[[list[Prior]], list[Prior]]
"""A function that takes the priors of the last step and returns those that fit the expectations of
this step.
"""
SAME_PRIOR = 1.01
"""A fitted prior counts as unchanged if a and b change by a smaller factor."""


class ConvergenceWarning(UserWarning):
    """EM reached its last step before the gain of a step fell below ``tol``."""


def fit_quietly(kind: type[Estimator], log: ClickLog) -> Estimator:
    """An estimator with its default settings, fitted to a log, without a warning on convergence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return kind().fit(log)


class EMEstimator(Estimator):
    """Base class of the EM estimators: the start, the stopping rule, extrapolated steps, and the
    record of the steps.

    With a given ``prior`` this is EM as published: it climbs the likelihood times the prior of all
    parameters at once. Pairs with few sessions bias what such an estimate says of all (Neyman,
    Scott 1948). Without one, steps are taken that have no such bias, or less: examinations (PBM,
    UBM) are compared within pairs; in the other models the prior is fitted, and the expectations of
    a session are those under what the other sessions say of its items.

    Without ``tol`` all steps are plain EM steps. With ``tol``, every second step starts from an
    extrapolation of the last two steps (SQUAREM). If that is no better than the plain step before,
    it is discarded.

    Args:
        iterations: the most EM steps.
        tol: stop once a plain EM step, with the extrapolation before it, changes the penalised
            log-likelihood by less than this per session, and warn if that never happens; None takes
            all the steps and judges nothing.
        prior: as in `Estimator`.

    Attributes:
        n_iter_: the EM steps computed, also those that counted for nothing.
        log_posterior_: the highest penalised log-likelihood so far, before each step and after the
            last; with a given prior it never falls.
        converged_: whether the last step, a plain one, changed so little; None without ``tol``.

    Source: Varadhan, Roland, *Simple and globally convergent methods for accelerating the
    convergence of any EM algorithm*, Scandinavian Journal of Statistics 2008, scheme S3, kept
    inside (0, 1) and from falling. What a session says itself is left out as in Opper, Winther,
    *Gaussian processes for classification: mean-field algorithms*, Neural Computation 2000.
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
                f"changed the log-likelihood per session by {change:.2g}, not by less than tol = "
                f"{self.tol:g}; in Python, allow more than iterations={self.iterations}",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _last_change(self) -> float:
        """Return the change of the log-posterior in the last two steps, or in the only one. The
        last step alone may be short although the way is long.
        """
        return float(np.abs(np.diff(self.log_posterior_[-3:])).sum())

    def _climb(
        self, step: Step, of_pairs: int, n_shared: int, n_sessions: int, refit: Refit | None = None
    ) -> list[Floats]:
        """Take the steps, and return the parameters where they end: some of each pair, ``(P + 1,)``
        each, and some that all share, ``(n_shared,)``. They start at the means of the priors, and
        at one half.

        Computing a step also tells how high the point is from which it goes, so that the guard
        costs nothing more.

        Args:
            step: what a step computes.
            of_pairs, n_shared: how many parameters there are.
            n_sessions: N.
            refit: fits the priors, attraction first, if none is given. Where clicks do not tell the
                scale of attraction, the prior sets it, and stays.
        """
        leaves_out = self.prior is None
        priors = [self.prior or UNIFORM] * of_pairs
        first = [np.full(len(self._codes) + 1, a / (a + b)) for a, b in priors]
        point = np.concatenate([*first, np.full(n_shared, 0.5)])
        ends = np.cumsum([len(values) for values in first])

        def climb(point: Floats) -> tuple[float, Floats]:
            following = point.copy()
            height = step(np.split(point, ends), priors, np.split(following, ends))
            return height, following

        height, following = climb(point)
        self.log_posterior_, self.n_iter_, self.converged_ = [height], 0, None
        next_fit = 1
        while not self.converged_ and self.n_iter_ < self.iterations:
            before, point = point, following
            height, following = climb(point)
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
                further = extrapolate(before, point, following)
                reached, beyond = climb(further)
                is_better = reached >= height
                if leaves_out:  # the likelihood need not grow: nearer to a fixed point is better
                    is_better = np.abs(beyond - further).max() <= np.abs(following - point).max()
                if is_better:
                    point, height, following = further, reached, beyond
                self.log_posterior_.append(height)
            self.n_iter_ = len(self.log_posterior_) - 1
        self.prior_ = priors[0]
        return np.split(point, ends)


def extrapolate(first: Floats, second: Floats, third: Floats) -> Floats:
    """Return the point to which three successive points lead (SQUAREM), at most half-way from the
    third to 0 or 1.
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
    """What other sessions say about the attraction of items, by which EM without a given prior
    explains a session.

    Attributes:
        explain: whether they do.
        successes: ``(P + 1,)`` of each pair, with those of the prior.
        failures: those of the prior.
    """

    explain: bool
    successes: Floats
    failures: float


@kernel
def mean_without(failures, mean, successes, least):
    """The mean of a probability after some of its failures are taken away; at least ``least`` of
    them, those of the prior, stay.
    """
    rest = max(successes * (1.0 - mean) / mean - failures, least)
    return successes / (successes + rest)
