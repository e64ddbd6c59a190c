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
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ...core.kernels import entry
from ...envs import CascadeModel, ClickModel, DependentClickModel, DynamicBayesianModel
from .counting import (
    Tails,
    count_certain,
    counted,
    cut,
    in_parallel,
    last_clicks,
    list_length,
    merge_tails,
)
from .em import EMEstimator, Others, without
from .estimator import Clicks, Estimator, Floats, Indices, filled
from .priors import UNIFORM, Prior, fitted_prior, log_prior, smoothed

SESSIONS = 2**13  # of a block, the piece of work of one thread


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


class Asked(NamedTuple):
    """The clicks after which users may have left.

    Attributes:
        trials: of each group, with those of the prior.
        prior: of the probability of leaving.
    """

    trials: Floats
    prior: Prior


class Expected(NamedTuple):
    """What a step of exact EM expects of a block of sessions.

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

    def _merged_tails(self, pairs: Indices, last: Indices) -> tuple[Tails, list[tuple[int, int]]]:
        """What `merge_tails` makes of the sessions, sorted by query, and blocks of it: the first
        kind of session of each, and that of the next.

        A block holds all sessions of its queries, so no other adds to the sums of their pairs.
        """
        tails = merge_tails(pairs, last)
        queries = self._codes[tails.pairs[:, 0]] // len(self._labels.item_labels)
        first = np.concatenate([[0], np.flatnonzero(np.diff(queries)) + 1, [len(queries)]])
        return tails, list(pairwise(first[cut(first, SESSIONS)].tolist()))

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


class _ScanningEstimator(CascadingEstimator, EMEstimator):
    """Exact EM."""

    def _em(self, pairs: Indices, clicks: Clicks, leaving_of_pairs: bool) -> tuple[Floats, float]:
        """Estimate ``attraction_``.

        Args:
            pairs, clicks: ``(N, K)``; the memory of ``pairs`` is used for other things.
            leaving_of_pairs: whether the probability of leaving after a click belongs to the pair
                (DBN), with a perseverance beside it, or to the position (DCM).

        Returns:
            The probabilities of leaving, and the perseverance.
        """
        n_sessions, n_positions = pairs.shape
        last = last_clicks(clicks)
        # positions below the first that were surely examined
        certain = int(np.maximum(last, 0).sum())
        displays, clicked, skipped, passed, asked, at_end = count_certain(
            pairs, clicks, last, len(self._codes) + 1, leaving_of_pairs
        )
        if self._leaves_out:  # nothing tells who leaves after a click at the end of a list
            asked -= at_end
        tails, blocks = self._merged_tails(pairs, last)
        attracted, successes = np.empty((2, len(displays)))
        # Blocks have pairs of their own, and positions in common.
        satisfied = np.empty((1 if leaving_of_pairs else len(blocks), len(passed)))
        sums = np.empty((len(blocks), 3))
        expected = [
            Expected(
                attracted,
                satisfied[0 if leaving_of_pairs else block],
                sums[block],
                np.empty((2, n_positions + 1)),
            )
            for block in range(len(blocks))
        ]

        def step(now: list[Floats], then: list[Floats]) -> float:
            α, s, *free = now
            g = float(free[0][0]) if free else 1.0
            prior, *of_leaving = self._priors
            successes[:] = prior[0] + clicked
            leaving_prior = of_leaving[0] if of_leaving else UNIFORM
            law = ScanningLaw(α, s, leaving_of_pairs, g)
            others = Others(self._leaves_out, successes, prior[1])
            may_have_left = Asked(sum(leaving_prior) + asked, leaving_prior)

            def expect(block: int) -> None:
                scanning_step(blocks[block], tails, law, others, may_have_left, expected[block])

            attracted[:], satisfied[:] = 0.0, 0.0
            in_parallel(expect, len(blocks))
            likelihood, going, went = sums.sum(axis=0)
            likelihood += (
                clicked @ np.log(α)
                + skipped @ np.log1p(-α)
                + passed @ np.log1p(-s)
                + certain * np.log(g)
            )
            # Every item shown attracts or not; of one that was not examined the log says nothing.
            of_group = satisfied.sum(axis=0)
            then[0][:] = smoothed(clicked + attracted, displays, prior)
            then[1][:] = smoothed(of_group, asked, leaving_prior)
            if free:
                then[2][:] = smoothed(certain + went, certain + going)
            if self._leaves_out:  # what was not examined does not count, so that EM is faster
                examined = displays - attracted / α
                then[0][:] = smoothed(clicked, examined, prior)
                self._counts = clicked[:-1], (examined - clicked)[:-1]
                self._satisfied = float(smoothed(of_group.sum(), asked.sum()))
            priors = prior, leaving_prior, *(UNIFORM for _ in free)
            return float(likelihood) + sum(map(log_prior, now, priors))

        of_pairs, n_shared = (2, 1) if leaving_of_pairs else (1, n_positions)
        self.attraction_, s, *free = self._climb(step, of_pairs, n_shared, n_sessions)
        return s, float(free[0][0]) if free else 1.0

    def _fitted_priors(self) -> list[Prior]:
        # Satisfaction is never seen, so only the mean of its prior is fitted.
        of_leaving = 2.0 * self._satisfied, 2.0 * (1.0 - self._satisfied)
        return [fitted_prior(*self._counts, self._priors[0]), of_leaving][: len(self._priors)]


@entry
def scanning_step(part, tails, law, others, asked, expected):
    """The expectations of one EM step over some sessions.

    Args:
        part: which kinds of sessions, the first and the end.
        tails: `Tails`.
        law: `ScanningLaw`.
        others, asked: what `Others` say of attraction, and of leaving (`Asked`).
        expected: `Expected`, which is written.
    """
    likelihood = going = went = 0.0
    pairs, last, weights = tails
    α, s, of_pairs, g = law
    attracted, satisfied, sums, work = expected
    tail, skip = work
    for session in range(part[0], part[1]):
        n_positions = list_length(pairs[session])
        certain = max(last[session], 0)
        weight = float(weights[session])
        tail[n_positions] = 1.0
        # tail[k]: probability of no click at k and below, given that the user has not
        # left satisfied above k.
        for k in range(n_positions - 1, certain, -1):
            skip[k] = 1.0 - α[pairs[session, k]]
            tail[k] = 1.0 - g + g * skip[k] * tail[k + 1]
        leaving, group = 0.0, 0
        if last[session] >= 0:
            group = pairs[session, certain] if of_pairs else certain
            leaving = s[group]
        end = leaving + (1.0 - leaving) * tail[certain + 1]
        if others.explain:
            left = leaving / end
            reached = 1.0 - left
            for k in range(certain + 1, n_positions):
                reached *= g * skip[k] * tail[k + 1] / tail[k]
                pair = pairs[session, k]
                skip[k] = 1.0 - without(reached, α[pair], others.successes[pair], others.failures)
            if of_pairs and last[session] >= 0:
                trials, (least_gone, least_stayed) = asked.trials[group], asked.prior
                stayed = max(trials * (1.0 - leaving) - (1.0 - left), least_stayed)
                gone = max(trials * leaving - left, least_gone)
                leaving = gone / (gone + stayed)
            for k in range(n_positions - 1, certain, -1):
                tail[k] = 1.0 - g + g * skip[k] * tail[k + 1]
            end = leaving + (1.0 - leaving) * tail[certain + 1]
        likelihood += weight * np.log(end)
        if last[session] >= 0 and not (others.explain and certain == n_positions - 1):
            satisfied[group] += weight * (leaving / end)
        # posterior probability that the user was at position k and had not left satisfied
        reached = 1.0 - leaving / end
        for k in range(certain + 1, n_positions):
            pair = pairs[session, k]
            going += weight * reached
            reached *= g * skip[k] * tail[k + 1] / tail[k]
            went += weight * reached
            attracted[pair] += weight * (1.0 - reached) * α[pair]
    sums[0], sums[1], sums[2] = likelihood, going, went


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


class DCMEstimator(_ScanningEstimator):
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

    def _fit(self, pairs: Indices, clicks: Clicks) -> None:
        leaving, _ = self._em(pairs, clicks, leaving_of_pairs=False)
        self.termination_ = np.append(leaving[:-1], leaving[-2:][0])

    def _law(self) -> CascadingLaw:
        return CascadingLaw(self.attraction_, 1.0 - self.termination_, False, 1.0)

    def _click_model(self, pairs: Indices) -> ClickModel:
        return DependentClickModel(self.attraction_[pairs], self.termination_)


class DBNEstimator(_ScanningEstimator):
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

    def _fit(self, pairs: Indices, clicks: Clicks) -> None:
        self.satisfaction_, self.perseverance_ = self._em(pairs, clicks, leaving_of_pairs=True)

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
