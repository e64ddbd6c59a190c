"""Estimators of the click-through rate models, which are the baselines of tables of perplexity."""

from __future__ import annotations

import numpy as np

from ...envs import ClickModel, DocumentClickThroughModel, RandomClickModel, RankClickThroughModel
from ..counts import Counts
from .estimator import Clicks, Estimator, Floats, Indices, smoothed


class _ClickThroughEstimator(Estimator):
    """In closed form; no click depends on those above it, so the laws with and without them are one."""

    counted = ()
    rate_: Floats

    def _marginal(self, queries: Indices, pairs: Indices, clicks: Clicks) -> Floats:
        return np.full(pairs.shape, self.rate_)

    def _conditional(self, queries: Indices, pairs: Indices, clicks: Clicks) -> Floats:
        return self._marginal(queries, pairs, clicks)


class RCTREstimator(_ClickThroughEstimator):
    """Estimator of the rank-based click-through rate model, in closed form: clicks divided by sessions, at each position.

    Attributes:
        rate_: ``(K,)`` the probability of a click at each position.

    Source: Chuklin, Markov, de Rijke, *Click models for web search*, Morgan & Claypool 2015, section 3.2.

    Example:
        >>> from clickgym.offline import ClickLog
        >>> log = ClickLog([[0, 1]] * 3, [[1, 0], [0, 1], [1, 1]], [0] * 3, ("a", "b"), ("q",))
        >>> RCTREstimator().fit(log).rate_
        array([0.6, 0.6])
    """

    model_class = RankClickThroughModel

    def _fit(self, pairs: Indices, clicks: Clicks) -> None:
        self.rate_ = smoothed(clicks.sum(axis=0, dtype=np.int64), (pairs >= 0).sum(axis=0))

    def _fit_counts(self, counts: Counts) -> None:
        self.rate_ = smoothed(counts.by_position(counts.clicks), counts.by_position(counts.displays))

    def _given_last(self, counts: Counts, pairs: Indices) -> Floats:
        return self.rate_[counts.position - 1]

    def _click_model(self, query: int, pairs: Indices) -> ClickModel:
        return RankClickThroughModel(self.rate_, len(pairs))


class RCMEstimator(_ClickThroughEstimator):
    """Estimator of the random click model, in closed form: clicks divided by displays, over the whole log.

    Attributes:
        rate_: ``(1,)`` the probability of a click.

    Source: Chuklin, Markov, de Rijke, *Click models for web search*, Morgan & Claypool 2015, section 3.1.

    Example:
        >>> from clickgym.offline import ClickLog
        >>> log = ClickLog([[0, 1]] * 3, [[1, 0], [0, 1], [1, 1]], [0] * 3, ("a", "b"), ("q",))
        >>> RCMEstimator().fit(log).rate_
        array([0.625])
    """

    model_class = RandomClickModel

    def _fit(self, pairs: Indices, clicks: Clicks) -> None:
        self.rate_ = smoothed(np.array([clicks.sum(dtype=np.int64)]), (pairs >= 0).sum())

    def _fit_counts(self, counts: Counts) -> None:
        self.rate_ = smoothed(np.array([counts.clicks.sum()]), counts.displays.sum())

    def _given_last(self, counts: Counts, pairs: Indices) -> Floats:
        return np.full(len(pairs), self.rate_[0])

    def _click_model(self, query: int, pairs: Indices) -> ClickModel:
        return RandomClickModel(float(self.rate_[0]), len(pairs), self.n_positions_)


class DCTREstimator(_ClickThroughEstimator):
    """Estimator of the document-based click-through rate model: clicks divided by displays of each (query, item) pair.

    Attributes:
        rate_: ``(P + 1,)`` the probability of a click on each pair; the last entry, 0.5, stands for all pairs never shown.

    Source: Craswell, Zoeter, Taylor, Ramsey, *An experimental comparison of click position-bias models*, WSDM 2008; Chuklin,
    Markov, de Rijke, *Click models for web search*, Morgan & Claypool 2015, section 3.2.

    Example:
        >>> from clickgym.offline import ClickLog
        >>> log = ClickLog([[0, 1]] * 3, [[1, 0], [0, 1], [1, 1]], [0] * 3, ("a", "b"), ("q",))
        >>> DCTREstimator().fit(log).rate_
        array([0.6, 0.6, 0.5])
    """

    model_class = DocumentClickThroughModel

    def _fit(self, pairs: Indices, clicks: Clicks) -> None:
        displays, clicked = np.zeros((2, len(self._codes) + 1), np.int64)
        for pair, click in zip(pairs.T, clicks.T, strict=True):  # position by position: working memory of one column
            displays += np.bincount(pair[pair >= 0], minlength=len(displays))
            clicked += np.bincount(pair[click > 0], minlength=len(displays))
        self.rate_ = smoothed(clicked, displays)

    def _fit_counts(self, counts: Counts) -> None:
        self.rate_ = smoothed(counts.by_pair(counts.clicks), counts.by_pair(counts.displays))

    def _given_last(self, counts: Counts, pairs: Indices) -> Floats:
        return self.rate_[pairs]

    def _marginal(self, queries: Indices, pairs: Indices, clicks: Clicks) -> Floats:
        return self.rate_[pairs]

    def _click_model(self, query: int, pairs: Indices) -> ClickModel:
        return DocumentClickThroughModel(self.rate_[pairs], self.n_positions_)
