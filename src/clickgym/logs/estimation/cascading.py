"""Estimators of models whose users read from the top: cascade, dependent click, and dynamic
Bayesian network model.

All are special cases of one model. The user examines position 1, and clicks an examined item if it
attracts. After a click the user leaves satisfied with a certain probability: 1 in the cascade
model, that of the position in the DCM, that of the item in the DBN. A user who has not left
satisfied goes on to the next position with probability g, which is 1 except in the DBN. So all
positions down to the last click were examined for certain. Only the positions below it are
uncertain.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np

from ...core.kernels import entry, kernel
from ...envs import CascadeModel, ClickModel, DependentClickModel, DynamicBayesianModel
from .counting import (
    count_certain,
    counted,
    last_clicks,
    list_length,
    merge_tails,
)
from .em import EMEstimator, Others, without
from .estimator import Clicks, Estimator, Floats, Indices, filled
from .priors import UNIFORM, Prior, fitted_prior, log_prior, smoothed


class CascadingLaw(NamedTuple):
    """How users read from the top.

    Attributes:
        attraction: of each pair.
        after_click: the probability that a user goes on below a click, of each pair or at each
            position.
        of_pairs: whether it is that of pairs.
        after_skip: the probability of going on below an examined item without a click.
    """

    attraction: Floats
    after_click: Floats
    of_pairs: bool
    after_skip: float


class ScanningLaw(NamedTuple):
    """How users leave and go on, at a step of exact EM.

    Attributes:
        attraction: of each pair.
        leaving: the probability that a user leaves satisfied after a click, of each group, which is
            a pair (DBN) or a position (DCM).
        of_pairs: whether a group is a pair.
        perseverance: the probability that a user who has not left goes on.
    """

    attraction: Floats
    leaving: Floats
    of_pairs: bool
    perseverance: float


class Leaving(NamedTuple):
    """The clicks after which users may have left.

    Attributes:
        trials: of each group, with those of the prior.
        prior: of the probability of leaving.
    """

    trials: Floats
    prior: Prior


class Expected(NamedTuple):
    """What a step of exact EM expects.

    Attributes:
        attracted: of the items not examined, how many attract is added for each pair.
        satisfied: last clicks after which the user left are added for each group.
        sums: set to the log-likelihood of what follows the last clicks, and to the users below the
            part surely examined who could go on, and those who did.
        work: ``(2, K + 1)`` working memory.
    """

    attracted: Floats
    satisfied: Floats
    sums: Floats
    work: Floats


class CascadingEstimator(Estimator):
    """The laws of the clicks of users who read from the top."""

    @abstractmethod
    def _law(self) -> CascadingLaw:
        """What the users do, as fitted."""

    def _conditional(self, pairs: Indices, clicks: Clicks) -> Floats:
        return filled(cascading_conditional, pairs.shape, pairs, clicks, self._law())


@entry
def cascading_conditional(pairs, clicks, law, result):
    """The probability of a click at each position given the clicks above it."""
    α, after_click, of_pairs, after_skip = law
    for session in range(len(pairs)):
        looking = 1.0  # examination of position k given the clicks above it
        for k in range(pairs.shape[1]):
            pair = pairs[session, k]
            click = looking * α[pair]
            result[session, k] = click
            if clicks[session, k]:
                looking = after_click[pair if of_pairs else k]
            elif click < 1.0:  # of those who have not clicked, the share that did examine
                looking = after_skip * (looking - click) / (1.0 - click)
            else:  # nobody is left where a skip was impossible
                looking = 0.0


class ScanningStep:
    """The EM step of a `ScanningEstimator`, a `Step`, with what all steps share: the counts of
    what was surely examined, and working memory.

    Args:
        estimator: has the priors, and gets the counts that fit them.
        pairs, clicks: ``(N, K)``; the memory of ``pairs`` is used for other things.
    """

    def __init__(self, estimator: ScanningEstimator, pairs: Indices, clicks: Clicks) -> None:
        self.estimator, of_pairs = estimator, estimator._leaving_of_pairs
        last = last_clicks(clicks)
        self.counts = count_certain(pairs, clicks, last, len(estimator._codes) + 1, of_pairs)
        self.trials = self.counts.group_clicks
        if estimator._leaves_out:  # nothing tells who leaves after a click at the end of a list
            self.trials = self.trials - self.counts.at_end
        # positions below the first that were surely examined
        self.n_went_on = int(np.maximum(last, 0).sum())
        self.tails = merge_tails(pairs, last)
        self.expected = Expected(
            np.empty(len(self.counts.displays)),
            np.empty(len(self.trials)),
            np.empty(3),
            np.empty((2, pairs.shape[1] + 1)),
        )

    def __call__(self, parameters: list[Floats], following: list[Floats]) -> float:
        α, s, *free = parameters
        g = float(free[0][0]) if free else 1.0
        prior, *of_leaving = self.estimator._priors
        leaving_prior = of_leaving[0] if of_leaving else UNIFORM
        self._expect(ScanningLaw(α, s, self.estimator._leaving_of_pairs, g), prior, leaving_prior)
        self._maximise(α, prior, leaving_prior, following)
        log_priors = map(log_prior, parameters, (prior, leaving_prior, *(UNIFORM for _ in free)))
        return self._log_likelihood(α, s, g) + sum(log_priors)

    def _expect(self, law: ScanningLaw, prior: Prior, leaving_prior: Prior) -> None:
        """Compute the expectations."""
        others = Others(self.estimator._leaves_out, prior[0] + self.counts.clicked, prior[1])
        leaving = Leaving(sum(leaving_prior) + self.trials, leaving_prior)
        self.expected.attracted[:], self.expected.satisfied[:] = 0.0, 0.0
        scanning_step(self.tails, law, others, leaving, self.expected)

    def _maximise(
        self, α: Floats, prior: Prior, leaving_prior: Prior, following: list[Floats]
    ) -> None:
        """Set the parameters that follow from the expectations under the attraction α."""
        displays, clicked = self.counts.displays, self.counts.clicked
        attracted, left, *_ = self.expected
        if self.estimator._leaves_out:  # what was not examined does not count: EM is faster
            examined = displays - attracted / α
            following[0][:] = smoothed(clicked, examined, prior)
            self.estimator._counts = clicked[:-1], (examined - clicked)[:-1]
            self.estimator._satisfied = float(smoothed(left.sum(), self.trials.sum()))
        else:  # Every item shown attracts or not; of one not examined the log says nothing.
            following[0][:] = smoothed(clicked + attracted, displays, prior)
        following[1][:] = smoothed(left, self.trials, leaving_prior)
        if self.estimator._leaving_of_pairs:
            _, could_go_on, went_on = self.expected.sums
            following[2][:] = smoothed(self.n_went_on + went_on, self.n_went_on + could_go_on)

    def _log_likelihood(self, α: Floats, s: Floats, g: float) -> float:
        """The log-likelihood of the parameters from which the step goes."""
        likelihood = self.expected.sums[0] + (
            self.counts.clicked @ np.log(α)
            + self.counts.skipped @ np.log1p(-α)
            + self.counts.not_last @ np.log1p(-s)
            + self.n_went_on * np.log(g)
        )
        return float(likelihood)


class ScanningEstimator(CascadingEstimator, EMEstimator):
    """Exact EM of the DBN and the DCM."""

    _leaving_of_pairs: ClassVar[bool]
    """Whether the probability of leaving after a click belongs to the pair (DBN), with a
    perseverance beside it, or to the position (DCM).
    """
    _counts: tuple[Floats, Floats]
    """Expected successes and failures of the attraction of each pair."""
    _satisfied: float
    """The mean probability of leaving."""

    def _em(self, pairs: Indices, clicks: Clicks) -> list[Floats]:
        """Estimate the attraction, the probabilities of leaving and, for a DBN, the perseverance,
        ``(1,)``; the memory of ``pairs`` is used for other things.
        """
        n_sessions, n_positions = pairs.shape
        of_pairs, n_shared = (2, 1) if self._leaving_of_pairs else (1, n_positions)
        step = ScanningStep(self, pairs, clicks)
        return self._climb(step, of_pairs, n_shared, n_sessions)

    def _fitted_priors(self) -> list[Prior]:
        # Satisfaction is never seen, so only the mean of its prior is fitted.
        of_leaving = 2.0 * self._satisfied, 2.0 * (1.0 - self._satisfied)
        return [fitted_prior(*self._counts, self._priors[0]), of_leaving][: len(self._priors)]


@entry
def scanning_step(tails, law, others, leaving, expected):
    """The expectations of one EM step.

    Args:
        tails: `Tails`.
        law: `ScanningLaw`.
        others, leaving: what other sessions say of attraction (`Others`), and of `Leaving`.
        expected: `Expected`, which is written.
    """
    likelihood = could_go_on = went_on = 0.0
    pairs, last, weights = tails
    α, s, of_pairs, g = law
    attracted, satisfied, sums, work = expected
    tail, skip = work
    for session in range(len(pairs)):
        n_positions = list_length(pairs[session])
        certain = max(last[session], 0)
        weight = float(weights[session])

        # The probabilities of a skip, and of leaving after the last click.
        for k in range(certain + 1, n_positions):
            skip[k] = 1.0 - α[pairs[session, k]]
        p, group = 0.0, 0
        if last[session] >= 0:
            group = pairs[session, certain] if of_pairs else certain
            p = s[group]
        no_clicks_below(tail, skip, certain, n_positions, g)
        end = p + (1.0 - p) * tail[certain + 1]

        # The same as the other sessions say.
        if others.explain:
            left = p / end
            reached = 1.0 - left
            for k in range(certain + 1, n_positions):
                reached *= g * skip[k] * tail[k + 1] / tail[k]
                pair = pairs[session, k]
                skip[k] = 1.0 - without(reached, α[pair], others.successes[pair], others.failures)
            if of_pairs and last[session] >= 0:
                trials, (least_gone, least_stayed) = leaving.trials[group], leaving.prior
                stayed = max(trials * (1.0 - p) - (1.0 - left), least_stayed)
                gone = max(trials * p - left, least_gone)
                p = gone / (gone + stayed)
            no_clicks_below(tail, skip, certain, n_positions, g)
            end = p + (1.0 - p) * tail[certain + 1]

        # The expectations: who left after the last click, and how far the others went.
        likelihood += weight * np.log(end)
        if last[session] >= 0 and not (others.explain and certain == n_positions - 1):
            satisfied[group] += weight * (p / end)
        reached = 1.0 - p / end  # that the user was at position k and had not left satisfied
        for k in range(certain + 1, n_positions):
            pair = pairs[session, k]
            could_go_on += weight * reached
            reached *= g * skip[k] * tail[k + 1] / tail[k]
            went_on += weight * reached
            attracted[pair] += weight * (1.0 - reached) * α[pair]
    sums[0], sums[1], sums[2] = likelihood, could_go_on, went_on


@kernel
def no_clicks_below(tail, skip, certain, n_positions, g):
    """Set ``tail[k]`` to the probability of no click at k and below, given that the user has not
    left satisfied above k.
    """
    tail[n_positions] = 1.0
    for k in range(n_positions - 1, certain, -1):
        tail[k] = 1.0 - g + g * skip[k] * tail[k + 1]


class CMEstimator(CascadingEstimator):
    """Estimator of the cascade model, in closed form: it uses the positions down to the first
    click, which were examined.

    The model excludes sessions with several clicks: their log-likelihood is minus infinity.

    Args:
        prior: see `Estimator`.

    Attributes:
        attraction_: ``(P + 1,)``, see `Estimator`.

    Source: Craswell, Zoeter, Taylor, Ramsey, *An experimental comparison of click position-bias
        models*, WSDM 2008.

    Example:
        >>> from clickgym.logs import ClickLog
        >>> log = ClickLog([[0, 1]] * 3, [[1, 0], [0, 1], [1, 1]], [0] * 3, ("a", "b"), ("q",))
        >>> CMEstimator(prior=(1, 1)).fit(log).attraction_.round(3)
        array([0.6  , 0.667, 0.5  ])
    """

    model_class = CascadeModel

    def _fit(self, pairs: Indices, clicks: Clicks) -> None:
        n_positions, size = pairs.shape[1], len(self._codes) + 1
        first = np.where(clicks.any(axis=1), clicks.argmax(axis=1), n_positions)[:, None]
        positions = np.arange(n_positions)
        examined = counted(pairs, (pairs >= 0) & (positions <= first), size)
        clicked = counted(pairs, positions == first, size)
        self.prior_ = self.prior or fitted_prior(clicked[:-1], (examined - clicked)[:-1])
        self.attraction_ = smoothed(clicked, examined, self.prior_)

    def _law(self) -> CascadingLaw:
        return CascadingLaw(self.attraction_, np.zeros(self.n_positions_), False, 1.0)

    def _click_model(self, pairs: Indices) -> ClickModel:
        return CascadeModel(self.attraction_[pairs], self.n_positions_)


class DCMEstimator(ScanningEstimator):
    """Estimator of the dependent click model, by exact EM.

    The paper takes the last click of a session for its end. This is biased, because a user may go
    on and click nothing more, so here the users who do count, too.

    Args:
        iterations, tol, prior: see `EMEstimator`.

    Attributes:
        attraction_: ``(P + 1,)``, see `Estimator`.
        termination_: ``(K,)`` probability of leaving satisfied after a click at each position. No
            log tells it for the last position, so the last entry repeats the one above.
        n_iter_, log_posterior_, converged_: the course of EM, see `EMEstimator`.

    Source: the model of Guo, Liu, Wang, *Efficient multiple-click models in web search*, WSDM 2009.

    Example:
        Users who leave with probability 0.3 after a click:

        >>> from clickgym.logs import ClickLog
        >>> users = DependentClickModel([0.4, 0.3, 0.25, 0.2, 0.15, 0.1], [0.3] * 4)
        >>> rng = np.random.default_rng(0)
        >>> lists = rng.permuted(np.tile(np.arange(6), (10_000, 1)), axis=1)[:, :4]
        >>> clicks = [users.sample(ranking, rng) for ranking in lists]
        >>> log = ClickLog(lists, clicks, np.zeros(len(lists)), tuple("abcdef"), ("query",))
        >>> DCMEstimator().fit(log).termination_.round(1)
        array([0.3, 0.3, 0.3, 0.3])
    """

    model_class = DependentClickModel
    _leaving_of_pairs = False

    def _fit(self, pairs: Indices, clicks: Clicks) -> None:
        self.attraction_, leaving = self._em(pairs, clicks)
        self.termination_ = np.append(leaving[:-1], leaving[-2:][0])

    def _law(self) -> CascadingLaw:
        return CascadingLaw(self.attraction_, 1.0 - self.termination_, False, 1.0)

    def _click_model(self, pairs: Indices) -> ClickModel:
        return DependentClickModel(self.attraction_[pairs], self.termination_)


class DBNEstimator(ScanningEstimator):
    """Estimator of the dynamic Bayesian network model, by exact EM.

    Args:
        iterations, tol, prior: see `EMEstimator`.

    Attributes:
        attraction_, satisfaction_: ``(P + 1,)``, see `Estimator`.
        perseverance_: probability g that an unsatisfied user goes on.
        n_iter_, log_posterior_, converged_: the course of EM, see `EMEstimator`.

    Source: Chapelle, Zhang, *A dynamic Bayesian network click model for web search ranking*, WWW
        2009, appendix.

    Example:
        >>> from clickgym.logs import ClickLog
        >>> log = ClickLog([[0, 1]] * 3, [[1, 0], [0, 1], [1, 1]], [0] * 3, ("a", "b"), ("q",))
        >>> 0 < DBNEstimator().fit(log).perseverance_ < 1
        True
    """

    model_class = DynamicBayesianModel
    satisfaction_: Floats
    perseverance_: float
    _leaving_of_pairs = True

    def _fit(self, pairs: Indices, clicks: Clicks) -> None:
        self.attraction_, self.satisfaction_, g = self._em(pairs, clicks)
        self.perseverance_ = float(g[0])

    def _law(self) -> CascadingLaw:
        g = self.perseverance_
        return CascadingLaw(self.attraction_, g * (1.0 - self.satisfaction_), True, g)

    def _click_model(self, pairs: Indices) -> ClickModel:
        return DynamicBayesianModel(
            self.attraction_[pairs],
            self.satisfaction_[pairs],
            self.perseverance_,
            n_positions=self.n_positions_,
        )
