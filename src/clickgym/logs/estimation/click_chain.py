"""The estimator of the click chain model (CCM).

After a click on item i, the user goes on with probability ``(1 - α(i)) τ2 + α(i) τ3``. This is
equivalent to flipping a second coin: the clicked item is relevant with probability α(i),
independently of the click, and the user goes on with probability τ3 if the item is relevant, and τ2
if not. Everything that the log hides is then the outcome of a coin with probability α, τ1, τ2 or
τ3. An EM step therefore has a closed form, in which both the click and the second coin count as
trials of α.
"""

from __future__ import annotations

import numpy as np

from ...core.kernels import entry, kernel
from ...core.state import Floats
from ...envs import ClickChainModel, ClickModel
from .cascading import clicks_given_above
from .counting import count_constants, last_clicks, list_length, merge_tails
from .em import EMEstimator, OtherEvidence, mean_without
from .estimator import Clicks, Indices
from .priors import Prior, fit_prior, log_prior, smooth


class CCMEstimator(EMEstimator):
    """Estimator of the click chain model, by exact EM.

    A log distinguishes τ2 from τ3 only if items differ in attraction, and therefore in the share of
    users who go on after a click. If all attractions are equal, the log determines only ``(1 - α)
    τ2 + α τ3``. If no item has an attraction near 1, τ3 is uncertain; if every item has a high
    attraction, τ2 is uncertain. The prior keeps uncertain estimates inside (0, 1).

    Args:
        iterations, tol, prior: the settings of EM and the prior; see `EMEstimator`.

    Attributes:
        attraction_: ``(P + 1,)`` attraction of each (query, item) pair; see `Estimator`.
        continue_after_skip_: probability τ1 that the user goes on after an item that was not
            clicked.
        continue_after_click_: probability τ2 that the user goes on after a click on an item that is
            not relevant.
        continue_after_relevant_: probability τ3 that the user goes on after a click on a relevant
            item.
        n_iter_, log_posterior_, converged_: a record of the EM steps; see `EMEstimator`.

    Source: the model of Guo, Liu, Kannan, Minka, Taylor, Wang, Faloutsos, *Click chain model in web
    search*, WWW 2009, with α(i) a parameter as in Chuklin, Markov, de Rijke, *Click models for web
    search*, Morgan & Claypool 2015.

    Example:
        >>> from clickgym.logs import ClickLog
        >>> log = ClickLog([[0, 1]] * 3, [[1, 0], [0, 1], [1, 1]], [0] * 3, ("a", "b"), ("q",))
        >>> 0 < CCMEstimator().fit(log).continue_after_relevant_ < 1
        True
    """

    model_class = ClickChainModel
    continue_after_skip_: float
    continue_after_click_: float
    continue_after_relevant_: float

    def fit_pairs(self, pairs: Indices, clicks: Clicks) -> None:
        leaves_out = self.prior is None
        last, n_pairs = last_clicks(clicks), len(self._codes) + 1
        counts = count_constants(pairs, clicks, last, n_pairs, is_by_pair=True)
        clicked, skipped, not_last = counts.clicked, counts.skipped, counts.not_last
        # number of positions without a click above a session's last click
        passed_skips = np.maximum(last, 0).sum() - not_last.sum()
        # The log does not show whether a click at the end of a list was relevant.
        coins = counts.group_clicks - counts.at_end
        tails = merge_tails(pairs, last)
        examined, relevant = np.empty(n_pairs), np.empty(n_pairs)
        sums, work = np.empty(7), np.empty((2, pairs.shape[1]))

        def step(
            parameters: list[Floats], priors: list[Prior], next_parameters: list[Floats]
        ) -> float:
            (α, τ), (prior,) = parameters, priors
            examined[:], relevant[:] = 0.0, 0.0
            # the successes include the expected number of relevant clicks
            others = OtherEvidence(leaves_out, prior[0] + clicked + coins * α, prior[1])
            chain_step(tails, (α, τ), others, (examined, relevant, sums, work))
            likelihood, users = sums[0], sums[1:]
            after_click = (1.0 - α) * τ[1] + α * τ[2]
            passed_relevant = not_last * α * τ[2] / after_click

            # The trials of attraction are clicks, skips, and the second coin of each click.
            successes = clicked + relevant + passed_relevant
            next_parameters[0][:] = smooth(successes, clicked + skipped + examined + coins, prior)

            # The trials of τ1, τ2 and τ3 are the users who could go on.
            continued = [passed_skips, (not_last - passed_relevant).sum(), passed_relevant.sum()]
            next_parameters[1][:] = smooth(continued + users[3:], continued + users[:3])
            likelihood += clicked @ np.log(α) + skipped @ np.log1p(-α)
            likelihood += not_last @ np.log(after_click) + passed_skips * np.log(τ[0])
            return float(likelihood) + log_prior(α, prior) + log_prior(τ)

        def refit(priors: list[Prior]) -> list[Prior]:
            return [fit_prior(clicked[:-1], (skipped + examined)[:-1], *priors)]

        self.attraction_, τ = self._run_em(step, 1, 3, len(pairs), refit)
        self.continue_after_skip_, self.continue_after_click_, self.continue_after_relevant_ = (
            τ.tolist()
        )

    def conditional_probabilities(self, pairs: Indices, clicks: Clicks) -> Floats:
        α, after_click = self.attraction_, self.continue_after_click_
        below_click = (1.0 - α) * after_click + α * self.continue_after_relevant_
        return clicks_given_above(pairs, clicks, α, below_click, True, self.continue_after_skip_)

    def model_of_pairs(self, pairs: Indices) -> ClickModel:
        return ClickChainModel(
            self.attraction_[pairs],
            self.continue_after_skip_,
            self.continue_after_click_,
            self.continue_after_relevant_,
            self.n_positions_,
        )


@entry
def chain_step(tails, parameters, others, expected):
    """Compute the expectations of one EM step for the last click of each session and for the
    positions below this click.

    Args:
        tails: the merged sessions that `merge_tails` returned.
        parameters: a tuple of the attraction of each pair, and the array τ1, τ2, τ3.
        others: the evidence from other sessions about attraction.
        expected: the arrays to which the step writes. The first gets, for each pair, the expected
            number of examined displays below the positions that were certainly examined; the
            second, for each pair, the expected number of relevant last clicks. The third gets the
            log-likelihood of what follows the last clicks; then, for τ1, τ2 and τ3, the numbers of
            users who could go on; and then the numbers of users who did. The fourth is ``(2, K)``
            working memory.
    """
    α, τ = parameters
    examined, relevant, sums, work = expected
    after_skip, after_click, after_relevant = τ[0], τ[1], τ[2]
    likelihood = skips = irrelevants = relevants = 0.0
    skips_passed = irrelevants_passed = relevants_passed = 0.0
    tail, skip = work
    pairs, last, weights = tails
    for session in range(len(pairs)):
        last_certain = max(last[session], 0)
        weight = float(weights[session])
        end_of_list = list_length(pairs[session]) - 1
        if last_certain == end_of_list:
            continue

        for k in range(last_certain + 1, end_of_list + 1):
            skip[k] = 1.0 - α[pairs[session, k]]
        below = no_clicks_from(tail, skip, last_certain, end_of_list, after_skip)

        # Estimate the same probabilities again, without this session's own evidence.
        if others.is_used:
            continues = after_skip
            if last[session] >= 0:
                mean = α[pairs[session, last_certain]]
                continues = mean * after_relevant + (1.0 - mean) * after_click
            reached = continues * below / (1.0 - continues + continues * below)
            for k in range(last_certain + 1, end_of_list + 1):
                pair = pairs[session, k]
                continuation = (
                    after_skip * skip[k] * tail[k + 1] / tail[k] if k < end_of_list else 0.0
                )
                skip[k] = 1.0 - mean_without(
                    reached, α[pair], others.successes[pair], others.failures
                )
                reached *= continuation
            below = no_clicks_from(tail, skip, last_certain, end_of_list, after_skip)

        # Infer what followed the last click or, without a click, the first position.
        if last[session] >= 0:
            pair = pairs[session, last_certain]
            went_on_relevant = α[pair] * after_relevant * below
            was_relevant = α[pair] * (1.0 - after_relevant) + went_on_relevant
            went_on_irrelevant = (1.0 - α[pair]) * after_click * below
            end = was_relevant + (1.0 - α[pair]) * (1.0 - after_click) + went_on_irrelevant
            relevant[pair] += weight * (was_relevant / end)
            relevants += weight * (was_relevant / end)
            relevants_passed += weight * (went_on_relevant / end)
            irrelevants += weight * (1.0 - was_relevant / end)
            irrelevants_passed += weight * (went_on_irrelevant / end)
            # posterior probability that position k was examined
            reached = (went_on_relevant + went_on_irrelevant) / end
        else:
            end = 1.0 - after_skip + after_skip * below
            reached = after_skip * below / end
            skips += weight
            skips_passed += weight * reached
        likelihood += weight * np.log(end)

        # Add up the examinations of the positions below.
        for k in range(last_certain + 1, end_of_list):
            pair = pairs[session, k]
            examined[pair] += weight * reached
            skips += weight * reached
            reached *= after_skip * skip[k] * tail[k + 1] / tail[k]
            skips_passed += weight * reached
        examined[pairs[session, end_of_list]] += weight * reached
    sums[0] = likelihood
    sums[1], sums[2], sums[3] = skips, irrelevants, relevants
    sums[4], sums[5], sums[6] = skips_passed, irrelevants_passed, relevants_passed


@kernel
def no_clicks_from(tail, skip, last_certain, end_of_list, after_skip):
    """Set ``tail[k]`` to the probability that positions k and below get no click, given that k is
    examined. Return the entry of ``tail`` for the position below ``last_certain``.
    """
    tail[end_of_list] = skip[end_of_list]
    for k in range(end_of_list - 1, last_certain, -1):
        tail[k] = skip[k] * (1.0 - after_skip + after_skip * tail[k + 1])
    return tail[last_certain + 1]
