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

import numpy as np
from numpy.typing import NDArray

from ...core.kernels import entry
from ...envs import CascadeModel, ClickModel, DependentClickModel, DynamicBayesianModel
from .counting import (
    count_certain,
    counted,
    cut,
    in_parallel,
    last_clicks,
    list_length,
    merge_tails,
)
from .estimator import (
    UNIFORM,
    Clicks,
    EMEstimator,
    Estimator,
    Floats,
    Indices,
    Prior,
    filled,
    fitted_prior,
    log_prior,
    smoothed,
    without,
)

SESSIONS = 2**13  # of a block, the piece of work of one thread
CascadingLaw = tuple[Floats, Floats, bool, float]
"""Attraction; the probability that a user goes on below a click, of each pair or at each position;
whether it is that of pairs; and the probability of going on below a skip.
"""


class CascadingEstimator(Estimator):
    """The laws of the clicks of users who read from the top."""

    @abstractmethod
    def _law(self) -> CascadingLaw:
        """What the users do, as fitted."""

    def _merged_tails(
        self, pairs: Indices, last: Indices
    ) -> tuple[Indices, Indices, Indices, NDArray[np.int64]]:
        """What `merge_tails` makes of the sessions, sorted by query, and blocks of what it leaves:
        the first session of each, and the number of sessions.

        A block holds all sessions of its queries, so no other adds to the sums of their pairs.
        """
        pairs, last, weights = merge_tails(pairs, last)
        queries = self._codes[pairs[:, 0]] // len(self._labels.item_labels)
        first = np.concatenate([[0], np.flatnonzero(np.diff(queries)) + 1, [len(queries)]])
        return pairs, last, weights, first[cut(first, SESSIONS)]

    def _conditional(self, pairs: Indices, clicks: Clicks) -> Floats:
        return filled(cascading_conditional, pairs.shape, pairs, clicks, *self._law())


@entry
def cascading_conditional(pairs, clicks, α, after_click, of_pairs, after_skip, result):
    """The probability of a click at each position given the clicks above it; users go on below a
    click with the probability of the pair (``of_pairs``) or of the position, and below an examined
    item without a click with ``after_skip``.
    """
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
        pairs, last, weights, first = self._merged_tails(pairs, last)
        n_blocks = len(first) - 1
        attracted, successes = np.empty((2, len(displays)))
        satisfied = np.empty((1 if leaving_of_pairs else n_blocks, len(passed)))
        work, sums = np.empty((n_blocks, 2, n_positions + 1)), np.empty((n_blocks, 3))

        def step(now: list[Floats], then: list[Floats]) -> float:
            α, s, *free = now
            g = float(free[0][0]) if free else 1.0
            prior, *of_leaving = self._priors
            successes[:] = prior[0] + clicked
            leaving_prior = of_leaving[0] if of_leaving else UNIFORM
            trials = sum(leaving_prior) + asked

            def expect(block: int) -> None:
                part = first[block], first[block + 1]
                of_block = work[block], attracted, satisfied, sums[block]
                others = self._leaves_out, (successes, prior, trials, leaving_prior)
                law = leaving_of_pairs, (α, s, g)
                scanning_step(block, part, (pairs, last, weights), *law, *others, *of_block)

            attracted[:], satisfied[:] = 0.0, 0.0
            in_parallel(expect, n_blocks)
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
def scanning_step(
    block,
    part,
    sessions,
    leaving_of_pairs,
    law,
    leaves_out,
    others,
    work,
    attracted,
    satisfied,
    sums,
):
    """The expectations of one EM step over some sessions.

    Args:
        block, part: which sessions; the row of ``satisfied`` is ``block``, or 0 where it goes by
            pair.
        sessions: pairs, last clicks, and how many sessions each of them stands for.
        law: attraction, the probabilities of leaving, and of going on.
        leaves_out: whether a session is explained by what the others say, ``others``: successes of
            each pair and trials of each group, each with those of the prior.
        work: ``(2, K + 1)`` working memory.
        attracted: of the items not examined, how many attract is added for each pair.
        satisfied: last clicks after which the user left are added for each group.
        sums: set to the log-likelihood of what follows the last clicks, and to the users below the
            part surely examined who could go on, and those who did.
    """
    row = 0 if leaving_of_pairs else block
    likelihood = going = went = 0.0
    tail, skip = work
    (pairs, last, weights), (α, s, g) = sessions, law
    successes, prior, trials, leaving_prior = others
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
            group = pairs[session, certain] if leaving_of_pairs else certain
            leaving = s[group]
        end = leaving + (1.0 - leaving) * tail[certain + 1]
        if leaves_out:
            left = leaving / end
            reached = 1.0 - left
            for k in range(certain + 1, n_positions):
                reached *= g * skip[k] * tail[k + 1] / tail[k]
                pair = pairs[session, k]
                skip[k] = 1.0 - without(reached, α[pair], successes[pair], prior[1])
            if leaving_of_pairs and last[session] >= 0:
                stayed = max(trials[group] * (1.0 - leaving) - (1.0 - left), leaving_prior[1])
                gone = max(trials[group] * leaving - left, leaving_prior[0])
                leaving = gone / (gone + stayed)
            for k in range(n_positions - 1, certain, -1):
                tail[k] = 1.0 - g + g * skip[k] * tail[k + 1]
            end = leaving + (1.0 - leaving) * tail[certain + 1]
        likelihood += weight * np.log(end)
        if last[session] >= 0 and not (leaves_out and certain == n_positions - 1):
            satisfied[row, group] += weight * (leaving / end)
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
        return self.attraction_, np.zeros(self.n_positions_), False, 1.0

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
        return self.attraction_, 1.0 - self.termination_, False, 1.0

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
        return self.attraction_, g * (1.0 - self.satisfaction_), True, g

    def _click_model(self, pairs: Indices) -> ClickModel:
        return DynamicBayesianModel(
            self.attraction_[pairs],
            self.satisfaction_[pairs],
            self.perseverance_,
            n_positions=self.n_positions_,
        )
