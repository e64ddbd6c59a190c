"""Estimators of the position-based model and the user browsing model, in which only positions and
clicks decide what is examined.

In both models, ``P(c(k) = 1 | clicks above) = γ(x) α(i)``, where the context ``x`` is the position
(PBM), or the position together with the position of the last click above (UBM). The estimators
therefore need only the displays and clicks of each (pair, context) cell of a log, and one EM
algorithm serves both models.

If no prior is given, contexts are compared within pairs. Because ``E[c] = γ(x) α(i)``, the clicks
of a pair, divided by the sum of γ over the pair's displays, have the mean α(i), whatever α(i) is.
Call this ratio the pair's rate. The estimate of γ(x) is the number of clicks in context x, divided
by the sum of a rate for every display in x: the rate of the displayed pair. Neither a prior nor the
order of the lists biases this estimate, however few sessions a pair has. Clicks do not determine
the common factor of all γ, so EM determines this factor under the prior of attraction.

Source of the pair's rate: Hausman, Hall, Griliches, *Econometric models for count data with an
application to the patents-R&D relationship*, Econometrica 1984 (fixed effects of Poisson counts).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core.kernels import entry
from ...core.state import Floats
from ...envs import ClickModel, PositionBasedModel, UserBrowsingModel
from .counting import count_by_context
from .em import EMEstimator
from .estimator import Clicks, Indices, fill_by
from .priors import Prior, log_prior, smooth

MAX_EXAMINATION = 1.0 - 1e-9  # the largest examination probability, so that every skip is possible


class _BrowsingEstimator(EMEstimator):
    """Base class of the estimators of the PBM and the UBM, which run EM on the displays and clicks
    of each pair in each context.
    """

    after_click: bool
    examination_: Floats

    def fit_pairs(self, pairs: Indices, clicks: Clicks) -> None:
        counts = count_by_context(pairs, clicks, len(self._codes), self.after_click)
        n_contexts = self.n_positions_ ** (2 if self.after_click else 1)
        trials = np.bincount(counts.context, counts.clicked + counts.skipped, n_contexts)
        clicks_of = np.bincount(counts.context, counts.clicked, n_contexts)

        within_pairs = self.prior is None

        def step(
            parameters: list[Floats], priors: list[Prior], next_parameters: list[Floats]
        ) -> float:
            (α, γ), (prior,), (α_next, γ_next) = parameters, priors, next_parameters
            examined, weights = sums = np.zeros((2, n_contexts))
            likelihood = browsing_step(counts, (α, γ), prior, within_pairs, α_next, sums)
            γ_next[:] = smooth(examined, trials)
            if within_pairs:  # clicks determine the ratios between the γ, and EM their scale
                # The prior counts in examinations; an examination is worth ``mean`` clicks.
                mean = smooth(weights.sum(), trials.sum())
                shape = (mean + clicks_of) / (2.0 * mean + weights)
                common = (1.0 + examined.sum()) / (1.0 + shape @ trials)
                γ_next[:] = np.where(trials > 0, np.minimum(shape * common, MAX_EXAMINATION), 0.5)
            return float(likelihood) + log_prior(α, prior) + log_prior(γ)

        self.attraction_, γ = self._run_em(step, 1, n_contexts, len(pairs))
        self.examination_ = self._layout(γ)

    def _layout(self, γ: Floats) -> Floats:
        """Return the examination probabilities in the layout that the click model expects, given
        one probability for each context.
        """
        return γ

    def conditional_probabilities(self, pairs: Indices, clicks: Clicks) -> Floats:
        parameters = self.after_click, self.attraction_, self.examination_.ravel()
        return fill_by(browsing_conditional, pairs.shape, pairs, clicks, *parameters)

    def model_of_pairs(self, pairs: Indices) -> ClickModel:
        model: Callable[..., ClickModel] = self.model_class
        return model(self.attraction_[pairs], self.examination_)


@entry
def browsing_step(counts, parameters, prior, within_pairs, α_next, sums):
    """Compute one EM step, and return the log-likelihood before the step.

    The step writes the new attraction of each pair to ``α_next``, and adds the expected number of
    examinations in each context to ``sums``. If contexts are compared ``within_pairs``, the step
    also adds, for each context, the sum of the rates of all pairs displayed there, once for each
    display.
    """
    first, context, clicked, skipped = counts
    α, γ = parameters
    examined, weights = sums
    likelihood = 0.0
    for pair in range(len(first) - 1):
        attracted, displays = 0.0, 0
        if within_pairs:
            clicks, looks = 0.0, 0.0
            for i in range(first[pair], first[pair + 1]):
                clicks += clicked[i]
                looks += (clicked[i] + skipped[i]) * γ[context[i]]
            for i in range(first[pair], first[pair + 1]):
                weights[context[i]] += (clicked[i] + skipped[i]) * clicks / looks
        for i in range(first[pair], first[pair + 1]):
            x = context[i]
            click = α[pair] * γ[x]
            likelihood += clicked[i] * np.log(click) + skipped[i] * np.log1p(-click)
            # A clicked item was examined and attractive; a skipped item was not both.
            one_of_both = skipped[i] / (1.0 - click)
            attracted += clicked[i] + one_of_both * (α[pair] - click)
            examined[x] += clicked[i] + one_of_both * (γ[x] - click)
            displays += clicked[i] + skipped[i]
        α_next[pair] = (prior[0] + attracted) / (prior[0] + prior[1] + displays)
    return likelihood


@entry
def browsing_conditional(pairs, clicks, uses_last_click, α, γ, result):
    """Write to ``result`` the probability of a click at each position, given the clicks above."""
    n_positions = pairs.shape[1]
    for session in range(len(pairs)):
        last = 0
        for k in range(n_positions):
            context = k * n_positions + last if uses_last_click else k
            result[session, k] = α[pairs[session, k]] * γ[context]
            if clicks[session, k]:
                last = k + 1


class PBMEstimator(_BrowsingEstimator):
    """Estimator of the position-based model, by EM.

    Args:
        iterations, tol, prior: the settings of EM and the prior; see `EMEstimator`.

    Attributes:
        attraction_: ``(P + 1,)`` attraction of each (query, item) pair; see `Estimator`.
        examination_: ``(K,)`` examination probability of each position.
        n_iter_, log_posterior_, converged_: a record of the EM steps; see `EMEstimator`.

    Source: Chuklin, Markov, de Rijke, *Click models for web search*, Morgan & Claypool 2015,
        section 4.

    Example:
        >>> from clickgym.logs import ClickLog
        >>> clicks = [[1, 0], [1, 1], [0, 0], [1, 0]]
        >>> log = ClickLog([[0, 1]] * 4, clicks, [0] * 4, ("a", "b"), ("q",))
        >>> model = PBMEstimator().fit(log).click_model("q", ["a", "b"])
        >>> model.n_items, model.n_positions
        (2, 2)
    """

    model_class = PositionBasedModel
    after_click = False


class UBMEstimator(_BrowsingEstimator):
    """Estimator of the user browsing model, by EM.

    Args:
        iterations, tol, prior: the settings of EM and the prior; see `EMEstimator`.

    Attributes:
        attraction_: ``(P + 1,)`` attraction of each (query, item) pair; see `Estimator`.
        examination_: ``(K, K)`` examination probabilities, in the layout of `UserBrowsingModel`:
            row k is the position; column 0 means that there is no click above, and column j means
            that the last click above is at the j-th position, counted from 1. Entries above the
            diagonal are 0.
        n_iter_, log_posterior_, converged_: a record of the EM steps; see `EMEstimator`.

    Source: Dupret, Piwowarski, *A user browsing model to predict search engine click data from past
    observations*, SIGIR 2008, with EM as in Chuklin, Markov, de Rijke, *Click models for web
    search*, Morgan & Claypool 2015, section 4.

    Example:
        >>> from clickgym.logs import ClickLog
        >>> clicks = [[1, 0], [1, 1], [0, 0], [1, 0]]
        >>> log = ClickLog([[0, 1]] * 4, clicks, [0] * 4, ("a", "b"), ("q",))
        >>> UBMEstimator(iterations=1, tol=None, prior=(1, 1)).fit(log).examination_.round(3)
        array([[0.722, 0.   ],
               [0.444, 0.533]])
    """

    model_class = UserBrowsingModel
    after_click = True

    def _layout(self, γ: Floats) -> Floats:
        return np.tril(γ.reshape(self.n_positions_, self.n_positions_))
