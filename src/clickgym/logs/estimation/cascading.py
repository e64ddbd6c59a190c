"""Estimators of models whose users read from the top: the cascade model (CM), the dependent click
model (DCM) and the dynamic Bayesian network model (DBN).

All three models are special cases of one model. The user examines position 1, and clicks an
examined item if the item attracts. After a click, the user leaves satisfied with a probability that
is 1 in the CM, depends on the position in the DCM, and depends on the item in the DBN. A user who
has not left satisfied goes on to the next position with probability g, which is 1 except in the
DBN. Therefore, all positions down to the last click were certainly examined, and only the positions
below the last click are uncertain.
"""

from __future__ import annotations

import numpy as np

from ...core.kernels import entry, kernel
from ...core.state import Floats
from ...envs import CascadeModel, ClickModel, DependentClickModel, DynamicBayesianModel
from .counting import count_constants, count_where, last_clicks, list_length, merge_tails
from .em import EMEstimator, OtherEvidence, mean_without
from .estimator import Clicks, Estimator, Indices, fill_by
from .priors import UNIFORM, Prior, fit_prior, log_prior, smooth


def clicks_given_above(
    pairs: Indices,
    clicks: Clicks,
    attraction: Floats,
    after_click: Floats,
    is_by_pair: bool,
    after_skip: float,
) -> Floats:
    """Return the probability of a click at each position given the clicks above, ``(N, K)``.

    Args:
        pairs, clicks: ``(N, K)`` pairs and clicks of the sessions.
        attraction: the attraction of each pair.
        after_click: the probability that a user goes on after a click, for each pair or for each
            position.
        is_by_pair: whether ``after_click`` has a value for each pair; if not, it has one for each
            position.
        after_skip: the probability that a user goes on after examining an item without a click.
    """
    parameters = attraction, after_click, is_by_pair, after_skip
    return fill_by(cascading_conditional, pairs.shape, pairs, clicks, parameters)


@entry
def cascading_conditional(pairs, clicks, parameters, result):
    """Write to ``result`` the probability of a click at each position, given the clicks above."""
    α, after_click, is_by_pair, after_skip = parameters
    for session in range(len(pairs)):
        looking = 1.0  # probability that position k is examined, given the clicks above
        for k in range(pairs.shape[1]):
            pair = pairs[session, k]
            click = looking * α[pair]
            result[session, k] = click
            if clicks[session, k]:
                looking = after_click[pair if is_by_pair else k]
            elif click < 1.0:  # condition on no click at position k
                looking = after_skip * (looking - click) / (1.0 - click)
            else:  # a skip was impossible, so no user can be here
                looking = 0.0


class ScanningEstimator(EMEstimator):
    """Base class of the estimators of the DBN and the DCM, which run exact EM."""

    def _estimate(self, pairs: Indices, clicks: Clicks, is_by_pair: bool) -> list[Floats]:
        """Return the estimated attractions, the probabilities of leaving after a click and, for the
        DBN, the perseverance as a ``(1,)`` array.

        Args:
            pairs, clicks: ``(N, K)`` pairs and clicks of the sessions.
            is_by_pair: whether the probability of leaving after a click belongs to the pair (DBN,
                which also has a perseverance) or to the position (DCM).
        """
        leaves_out = self.prior is None
        last = last_clicks(clicks)
        n_went_on = int(np.maximum(last, 0).sum())  # certainly examined, below the first position
        counts = count_constants(pairs, clicks, last, len(self._codes) + 1, is_by_pair)
        displays, clicked, trials = counts.displays, counts.clicked, counts.group_clicks
        if leaves_out:  # the log does not show who leaves after a click at the end of a list
            trials = trials - counts.at_end
        tails = merge_tails(pairs, last)
        attracted, satisfied = np.empty(len(displays)), np.empty(len(trials))
        sums, work = np.empty(3), np.empty((2, pairs.shape[1] + 1))
        examined = displays

        def step(
            parameters: list[Floats], priors: list[Prior], next_parameters: list[Floats]
        ) -> float:
            nonlocal examined
            α, s, *free = parameters
            g = float(free[0][0]) if free else 1.0
            prior, leaving_prior, *_ = [*priors, UNIFORM]
            attracted[:], satisfied[:] = 0.0, 0.0
            others = OtherEvidence(leaves_out, prior[0] + clicked, prior[1])
            leaving = sum(leaving_prior) + trials, leaving_prior
            expected = attracted, satisfied, sums, work
            scanning_step(tails, (α, s, is_by_pair, g), others, leaving, expected)
            if leaves_out:  # count only examined items, which makes EM faster
                examined = displays - attracted / α
                next_parameters[0][:] = smooth(clicked, examined, prior)
            else:  # Count every item on a list, even if it is unknown whether the item attracts.
                next_parameters[0][:] = smooth(clicked + attracted, displays, prior)
            next_parameters[1][:] = smooth(satisfied, trials, leaving_prior)
            likelihood, could_go_on, went_on = map(float, sums)
            if free:
                next_parameters[2][:] = smooth(n_went_on + went_on, n_went_on + could_go_on)
            likelihood += float(clicked @ np.log(α) + counts.skipped @ np.log1p(-α))
            likelihood += float(counts.not_last @ np.log1p(-s) + n_went_on * np.log(g))
            log_priors = map(log_prior, parameters, (prior, leaving_prior, UNIFORM))
            return likelihood + sum(log_priors)

        def refit(priors: list[Prior]) -> list[Prior]:
            fitted = fit_prior(clicked[:-1], (examined - clicked)[:-1], priors[0])
            # The log never shows satisfaction, so only the mean of its prior is fitted.
            mean = float(smooth(satisfied.sum(), trials.sum()))
            return [fitted, (2.0 * mean, 2.0 * (1.0 - mean))][: len(priors)]

        n_pair_parameters, n_shared = (2, 1) if is_by_pair else (1, pairs.shape[1])
        return self._run_em(step, n_pair_parameters, n_shared, len(pairs), refit)


@entry
def scanning_step(tails, parameters, others, leaving, expected):
    """Compute the expectations of one EM step of the DBN or the DCM.

    Args:
        tails: the merged sessions that `merge_tails` returned.
        parameters: a tuple of the attraction of each pair; the probability, for each group, that a
            user leaves satisfied after a click; whether a group is a pair (DBN) rather than a
            position (DCM); and the probability g that a user who has not left goes on.
        others: the evidence from other sessions about attraction.
        leaving: a tuple of the number of clicks in each group after which users may have left,
            including the trials of the prior; and this prior.
        expected: the arrays to which the step writes. The first gets, for each pair, the expected
            number of unexamined displays that attract; the second, for each group, the expected
            number of last clicks after which the user left. The third gets the log-likelihood of
            what follows the last clicks, the number of users below the certainly examined positions
            who could go on, and the number of users who did. The fourth is ``(2, K + 1)`` working
            memory.
    """
    likelihood = could_go_on = went_on = 0.0
    pairs, last, weights = tails
    α, s, is_by_pair, g = parameters
    attracted, satisfied, sums, work = expected
    tail, skip = work
    for session in range(len(pairs)):
        n_positions = list_length(pairs[session])
        last_certain = max(last[session], 0)
        weight = float(weights[session])

        # Compute the probabilities of a skip, and of leaving after the last click.
        for k in range(last_certain + 1, n_positions):
            skip[k] = 1.0 - α[pairs[session, k]]
        p, group = 0.0, 0
        if last[session] >= 0:
            group = pairs[session, last_certain] if is_by_pair else last_certain
            p = s[group]
        no_clicks_below(tail, skip, last_certain, n_positions, g)
        end = p + (1.0 - p) * tail[last_certain + 1]

        # Estimate the same probabilities again, without this session's own evidence.
        if others.is_used:
            left = p / end
            reached = 1.0 - left
            for k in range(last_certain + 1, n_positions):
                reached *= g * skip[k] * tail[k + 1] / tail[k]
                pair = pairs[session, k]
                skip[k] = 1.0 - mean_without(
                    reached, α[pair], others.successes[pair], others.failures
                )
            if is_by_pair and last[session] >= 0:
                trials, (least_gone, least_stayed) = leaving[0][group], leaving[1]
                stayed = max(trials * (1.0 - p) - (1.0 - left), least_stayed)
                gone = max(trials * p - left, least_gone)
                p = gone / (gone + stayed)
            no_clicks_below(tail, skip, last_certain, n_positions, g)
            end = p + (1.0 - p) * tail[last_certain + 1]

        # Infer who left after the last click, and how far the other users went.
        likelihood += weight * np.log(end)
        if last[session] >= 0 and not (others.is_used and last_certain == n_positions - 1):
            satisfied[group] += weight * (p / end)
        reached = 1.0 - p / end  # the probability that the user has not left before position k
        for k in range(last_certain + 1, n_positions):
            pair = pairs[session, k]
            could_go_on += weight * reached
            reached *= g * skip[k] * tail[k + 1] / tail[k]
            went_on += weight * reached
            attracted[pair] += weight * (1.0 - reached) * α[pair]
    sums[0], sums[1], sums[2] = likelihood, could_go_on, went_on


@kernel
def no_clicks_below(tail, skip, last_certain, n_positions, g):
    """Set ``tail[k]`` to the probability that positions k and below get no click, given that the
    user has not left satisfied above k.
    """
    tail[n_positions] = 1.0
    for k in range(n_positions - 1, last_certain, -1):
        tail[k] = 1.0 - g + g * skip[k] * tail[k + 1]


class CMEstimator(Estimator):
    """Estimator of the cascade model, in closed form. The estimator uses only the positions down to
    the first click, which were certainly examined.

    The cascade model excludes sessions with several clicks, so the log-likelihood of such sessions
    is minus infinity.

    Args:
        prior: a and b of the Beta prior of attraction; see `Estimator`.

    Attributes:
        attraction_: ``(P + 1,)`` attraction of each (query, item) pair; see `Estimator`.

    Source: Craswell, Zoeter, Taylor, Ramsey, *An experimental comparison of click position-bias
        models*, WSDM 2008.

    Example:
        >>> from clickgym.logs import ClickLog
        >>> log = ClickLog([[0, 1]] * 3, [[1, 0], [0, 1], [1, 1]], [0] * 3, ("a", "b"), ("q",))
        >>> CMEstimator(prior=(1, 1)).fit(log).attraction_.round(3)
        array([0.6  , 0.667, 0.5  ])
    """

    model_class = CascadeModel

    def fit_pairs(self, pairs: Indices, clicks: Clicks) -> None:
        n_positions, size = pairs.shape[1], len(self._codes) + 1
        first = np.where(clicks.any(axis=1), clicks.argmax(axis=1), n_positions)[:, None]
        positions = np.arange(n_positions)
        examined = count_where(pairs, (pairs >= 0) & (positions <= first), size)
        clicked = count_where(pairs, positions == first, size)
        self.prior_ = self.prior or fit_prior(clicked[:-1], (examined - clicked)[:-1])
        self.attraction_ = smooth(clicked, examined, self.prior_)

    def conditional_probabilities(self, pairs: Indices, clicks: Clicks) -> Floats:
        leaves = np.zeros(self.n_positions_)
        return clicks_given_above(pairs, clicks, self.attraction_, leaves, False, 1.0)

    def model_of_pairs(self, pairs: Indices) -> ClickModel:
        return CascadeModel(self.attraction_[pairs], self.n_positions_)


class DCMEstimator(ScanningEstimator):
    """Estimator of the dependent click model, by exact EM.

    Guo, Liu and Wang assume that the user leaves after the last click of a session. This assumption
    biases the estimates, because a user may go on and click nothing more. This estimator takes such
    users into account.

    Args:
        iterations, tol, prior: the settings of EM and the prior; see `EMEstimator`.

    Attributes:
        attraction_: ``(P + 1,)`` attraction of each (query, item) pair; see `Estimator`.
        termination_: ``(K,)`` probability of leaving satisfied after a click at each position. No
            log determines this probability for the last position, so the last entry repeats the
            entry before.
        n_iter_, log_posterior_, converged_: a record of the EM steps; see `EMEstimator`.

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

    def fit_pairs(self, pairs: Indices, clicks: Clicks) -> None:
        self.attraction_, leaving = self._estimate(pairs, clicks, is_by_pair=False)
        self.termination_ = np.append(leaving[:-1], leaving[-2:][0])

    def conditional_probabilities(self, pairs: Indices, clicks: Clicks) -> Floats:
        after_click = 1.0 - self.termination_
        return clicks_given_above(pairs, clicks, self.attraction_, after_click, False, 1.0)

    def model_of_pairs(self, pairs: Indices) -> ClickModel:
        return DependentClickModel(self.attraction_[pairs], self.termination_)


class DBNEstimator(ScanningEstimator):
    """Estimator of the dynamic Bayesian network model, by exact EM.

    Args:
        iterations, tol, prior: the settings of EM and the prior; see `EMEstimator`.

    Attributes:
        attraction_, satisfaction_: ``(P + 1,)`` attraction and satisfaction of each (query, item)
            pair; see `Estimator`.
        perseverance_: probability g that a user who has not left satisfied goes on.
        n_iter_, log_posterior_, converged_: a record of the EM steps; see `EMEstimator`.

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

    def fit_pairs(self, pairs: Indices, clicks: Clicks) -> None:
        self.attraction_, self.satisfaction_, g = self._estimate(pairs, clicks, is_by_pair=True)
        self.perseverance_ = float(g[0])

    def conditional_probabilities(self, pairs: Indices, clicks: Clicks) -> Floats:
        g = self.perseverance_
        after_click = g * (1.0 - self.satisfaction_)
        return clicks_given_above(pairs, clicks, self.attraction_, after_click, True, g)

    def model_of_pairs(self, pairs: Indices) -> ClickModel:
        return DynamicBayesianModel(
            self.attraction_[pairs],
            self.satisfaction_[pairs],
            self.perseverance_,
            n_positions=self.n_positions_,
        )
