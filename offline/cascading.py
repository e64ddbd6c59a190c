"""Estimators of the models that scan from the top: cascade, dependent click, and dynamic Bayesian.

One story: the user examines position 1; an examined item is clicked if it attracts; after a click the user leaves
satisfied with a probability of its own (in the cascade model 1, in the DCM that of the position, in the DBN that of
the item); whoever has not left satisfied goes on to the next position with probability g (1 but in the DBN). So
everything down to the last click was surely examined, and only what lies below it is uncertain.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from ..envs import CascadeModel, ClickModel, DependentClickModel, DynamicBayesianModel
from .estimation import Estimator, Floats, Indices, log_prior, smoothed, total

__all__ = ["CMEstimator", "DBNEstimator", "DCMEstimator", "SDBNEstimator"]


class _CascadingEstimator(Estimator):
    """The laws of the clicks, and the two ways to estimate: from the certain part alone, and by EM."""

    perseverance_ = 1.0

    @abstractmethod
    def _leaving(self, pairs: Indices) -> Floats:
        """``(N, K)`` probabilities of leaving satisfied after a click."""

    def _conditional(self, pairs: Indices, clicks: NDArray[np.int8]) -> Floats:
        attraction, going_on = self.attraction_[pairs], 1.0 - self._leaving(pairs)
        result = np.empty(attraction.shape)
        looking = np.ones(len(pairs))  # examination of position k given the clicks above it
        for k in range(self.n_positions_):
            result[:, k] = click = looking * attraction[:, k]
            # Of those who have not clicked, the share that did examine. Nobody is left out where a skip was impossible.
            skipped = np.divide(looking - click, 1.0 - click, out=np.zeros(len(pairs)), where=click < 1.0)
            looking = self.perseverance_ * np.where(clicks[:, k] == 1, going_on[:, k], skipped)
        return result

    def _marginal(self, pairs: Indices) -> Floats:
        attraction = self.attraction_[pairs]
        going_on = self.perseverance_ * (1.0 - attraction * self._leaving(pairs))
        looking = np.ones(attraction.shape)
        looking[:, 1:] = np.cumprod(going_on[:, :-1], axis=1)
        return looking * attraction

    def _count(self, pairs: Indices, clicks: NDArray[np.int8], examined: NDArray[np.bool_]) -> None:
        """Estimate attraction from the positions that are taken for examined."""
        size = len(self.pairs_) + 1
        self.attraction_ = smoothed(total(pairs, clicks * examined, size), total(pairs, examined, size))

    def _em(
        self,
        pairs: Indices,
        clicks: NDArray[np.int8],
        groups: Indices,
        n_groups: int,
        iterations: int,
        persevering: bool,
    ) -> Floats:
        """Exact EM; sets ``attraction_``, ``perseverance_``, ``log_posterior_``, and returns the leaving probabilities.

        Args:
            pairs, clicks: ``(N, K)``.
            groups: ``(N, K)`` index of the leaving probability that applies at each position.
            n_groups: how many of them there are.
            iterations: EM steps, from 0.5 everywhere.
            persevering: estimate g; else it is 1.
        """
        size, (n_sessions, n_positions) = len(self.pairs_) + 1, clicks.shape
        last = last_clicked(clicks)
        known = np.maximum(last, 0)  # the last position that was surely examined
        sure = np.arange(n_positions) <= known[:, None]
        final = (clicks == 1) & (np.arange(n_positions) == last[:, None])
        passed = (clicks == 1) & ~final  # clicked, and not the end
        shown_pairs, clicked_pairs = total(pairs, np.ones(clicks.shape), size), total(pairs, clicks, size)
        clicked_groups = total(groups, clicks, n_groups)
        α, s, g = np.full(size, 0.5), np.full(n_groups, 0.5), 0.5 if persevering else 1.0
        self.log_posterior_ = []
        for step in range(iterations + 1):
            attraction, leaving = α[pairs], s[groups]
            # tail[k]: probability of no click at k and below, given that the user has not left satisfied above k.
            tail = np.ones((n_sessions, n_positions + 1))
            for k in range(n_positions - 1, 0, -1):
                tail[:, k] = 1.0 - g + g * (1.0 - attraction[:, k]) * tail[:, k + 1]
            left = (final * leaving).sum(axis=1)
            end = left + (1.0 - left) * np.take_along_axis(tail, known[:, None] + 1, axis=1)[:, 0]
            beginning = np.where(clicks == 1, attraction, 1.0 - attraction) * np.where(passed, 1.0 - leaving, 1.0)
            self.log_posterior_.append(
                float(np.log(beginning[sure]).sum() + known.sum() * np.log(g) + np.log(end).sum())
                + log_prior(α, s, np.array([g] if persevering else []))
            )
            if step == iterations:
                break
            satisfied = final * (left / end)[:, None]
            # Posterior probabilities that a position was examined, and that the user had not left satisfied after it.
            examined, unsatisfied = sure.astype(np.float64), np.where(sure, 1.0 - satisfied, 0.0)
            for k in range(1, n_positions):
                reached = unsatisfied[:, k - 1] * g * (1.0 - attraction[:, k]) * tail[:, k + 1] / tail[:, k]
                examined[:, k] = np.where(sure[:, k], 1.0, reached)
                unsatisfied[:, k] = np.where(sure[:, k], unsatisfied[:, k], reached)
            # Every item shown attracts or not; of one that was not examined the log says nothing.
            attracted = clicked_pairs + total(pairs, (1.0 - examined) * attraction, size)
            α = smoothed(attracted, shown_pairs)
            s = smoothed(total(groups, satisfied, n_groups), clicked_groups)
            if persevering:
                g = float(smoothed(examined[:, 1:].sum(), unsatisfied[:, :-1].sum()))
        self.attraction_, self.perseverance_ = α, g
        return s


class CMEstimator(_CascadingEstimator):
    """Cascade model, in closed form: examined is what stands down to the first click; the rest tells nothing.

    The model excludes sessions with several clicks: their log-likelihood is minus infinity.

    Attributes:
        attraction_: ``(P + 1,)``, see `Estimator`.

    Source: Craswell et al. 2008.

    Example:
        >>> from clickgym.offline import ClickLog
        >>> log = ClickLog([[0, 1]] * 3, [[1, 0], [0, 1], [1, 1]], [0] * 3, ("a", "b"), ("q",))
        >>> CMEstimator().fit(log).attraction_.round(3)
        array([0.6  , 0.667, 0.5  ])
    """

    def _fit(self, pairs: Indices, clicks: NDArray[np.int8]) -> None:
        above = np.cumsum(clicks, axis=1) - clicks
        self._count(pairs, clicks, above == 0)

    def _leaving(self, pairs: Indices) -> Floats:
        return np.ones(pairs.shape)

    def _click_model(self, pairs: Indices) -> ClickModel:
        return CascadeModel(self.attraction_[pairs], self.n_positions_)


class DCMEstimator(_CascadingEstimator):
    """Dependent click model.

    Args:
        method: ``"last_click"``, the standard estimator, takes the last click for the end of the session (it is
            biased: a user may go on and click nothing more); ``"em"`` is exact EM.
        iterations: EM steps, from 0.5 everywhere.

    Attributes:
        attraction_: ``(P + 1,)``, see `Estimator`.
        termination_: ``(K,)`` probability of leaving satisfied after a click at each position.
        log_posterior_: with EM, the penalised log-likelihood before each step and after the last; it never falls.

    Raises:
        ValueError: on another method.

    Source: Guo, Liu and Wang 2009.

    Example:
        >>> from clickgym.offline import ClickLog
        >>> log = ClickLog([[0, 1]] * 3, [[1, 0], [0, 1], [1, 1]], [0] * 3, ("a", "b"), ("q",))
        >>> DCMEstimator().fit(log).termination_
        array([0.5 , 0.75])
    """

    def __init__(self, method: str = "last_click", iterations: int = 50) -> None:
        if method not in ("last_click", "em"):
            raise ValueError(f"method is {method!r}; expected 'last_click' or 'em'")
        self.method, self.iterations = method, iterations

    def _fit(self, pairs: Indices, clicks: NDArray[np.int8]) -> None:
        groups = np.broadcast_to(np.arange(self.n_positions_), clicks.shape)
        if self.method == "em":
            self.termination_ = self._em(pairs, clicks, groups, self.n_positions_, self.iterations, persevering=False)
            return
        examined, final = until_last_click(clicks)
        self._count(pairs, clicks, examined)
        self.termination_ = smoothed(final.sum(axis=0), clicks.sum(axis=0))

    def _leaving(self, pairs: Indices) -> Floats:
        return np.broadcast_to(self.termination_, pairs.shape)

    def _click_model(self, pairs: Indices) -> ClickModel:
        return DependentClickModel(self.attraction_[pairs], self.termination_)


class SDBNEstimator(_CascadingEstimator):
    """Simplified dynamic Bayesian network (perseverance 1), in closed form: the last click is the one that satisfies.

    Attributes:
        attraction_, satisfaction_: ``(P + 1,)``, see `Estimator`.

    Source: Chapelle and Zhang 2009, section 5.

    Example:
        >>> from clickgym.offline import ClickLog
        >>> log = ClickLog([[0, 1]] * 3, [[1, 0], [0, 1], [1, 1]], [0] * 3, ("a", "b"), ("q",))
        >>> SDBNEstimator().fit(log).satisfaction_
        array([0.5 , 0.75, 0.5 ])
    """

    satisfaction_: Floats

    def _fit(self, pairs: Indices, clicks: NDArray[np.int8]) -> None:
        examined, final = until_last_click(clicks)
        self._count(pairs, clicks, examined)
        size = len(self.pairs_) + 1
        self.satisfaction_ = smoothed(total(pairs, final, size), total(pairs, clicks, size))

    def _leaving(self, pairs: Indices) -> Floats:
        return self.satisfaction_[pairs]

    def _click_model(self, pairs: Indices) -> ClickModel:
        return DynamicBayesianModel(
            self.attraction_[pairs], self.satisfaction_[pairs], self.perseverance_, n_positions=self.n_positions_
        )


class DBNEstimator(SDBNEstimator):
    """Dynamic Bayesian network, by exact EM.

    Args:
        iterations: EM steps, from 0.5 everywhere.

    Attributes:
        attraction_, satisfaction_: ``(P + 1,)``, see `Estimator`.
        perseverance_: probability g that an unsatisfied user goes on.
        log_posterior_: the penalised log-likelihood before each step and after the last; it never falls.

    Source: Chapelle and Zhang 2009, appendix.

    Example:
        >>> from clickgym.offline import ClickLog
        >>> log = ClickLog([[0, 1]] * 3, [[1, 0], [0, 1], [1, 1]], [0] * 3, ("a", "b"), ("q",))
        >>> 0 < DBNEstimator().fit(log).perseverance_ < 1
        True
    """

    def __init__(self, iterations: int = 50) -> None:
        self.iterations = iterations

    def _fit(self, pairs: Indices, clicks: NDArray[np.int8]) -> None:
        self.satisfaction_ = self._em(pairs, clicks, pairs, len(self.pairs_) + 1, self.iterations, persevering=True)


def last_clicked(clicks: NDArray[np.int8]) -> Indices:
    """``(N,)`` position of each session's last click, -1 without clicks."""
    return np.max(np.where(clicks == 1, np.arange(clicks.shape[1]), -1), axis=1)


def until_last_click(clicks: NDArray[np.int8]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The positions down to the last click (all without clicks), and the last clicks themselves, ``(N, K)`` each."""
    last, positions = last_clicked(clicks)[:, None], np.arange(clicks.shape[1])
    return (positions <= last) | (last < 0), positions == last
