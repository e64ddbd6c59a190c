"""Estimators of models in which only positions and clicks decide what is examined: position-based
and user browsing model.

Both say ``P(c(k) = 1 | clicks above) = γ(x) α(i)``, where the context ``x`` is the position (PBM),
or the position together with that of the last click above it (UBM). So a log enters only as the
displays and clicks of each (pair, context) cell, and one EM algorithm serves both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clickgym.core.checks import check_flag
from clickgym.core.kernels import entry
from clickgym.envs import ClickModel, PositionBasedModel, UserBrowsingModel

from ..counting import count_cells, cut, in_parallel
from .estimator import Clicks, EMEstimator, Floats, Indices, Part, filled, log_prior, smoothed

CELLS = 2**16  # of a block, the piece of work of one thread


class _BrowsingEstimator(EMEstimator):
    """EM over the cells of (pair, context)."""

    after_click: bool
    examination_: Floats

    offers_per_query = True

    def __init__(
        self, iterations: int = 50, tol: float | None = None, per_query: bool = False
    ) -> None:
        super().__init__(iterations, tol)
        self.per_query = check_flag("per_query", per_query)

    def _fit(self, pairs: Indices, clicks: Clicks) -> None:
        self._fit_cells(*count_cells(pairs, clicks, len(self._codes), self.after_click), len(pairs))

    def _fit_cells(
        self,
        first_cell: NDArray[np.int64],
        context: Indices,
        clicked: NDArray[Any],
        skipped: NDArray[Any],
        n_sessions: int,
    ) -> None:
        """Estimate from what `count_cells` returns."""
        n_contexts = self.n_positions_ ** (2 if self.after_click else 1)
        # A block is a range of pairs; its examinations are summed by themselves, so the
        # number of threads changes nothing.
        if self.per_query:
            n_queries = len(self._labels.query_labels)
            blocks = np.searchsorted(
                self._codes, np.arange(n_queries + 1) * len(self._labels.item_labels)
            ).astype(np.int64)
            rows, tasks = np.arange(n_queries), cut(first_cell[blocks], CELLS)
        else:
            blocks = cut(first_cell, CELLS)
            rows, tasks = np.zeros(len(blocks) - 1, np.int64), np.arange(len(blocks))
        n_rows = int(rows[-1]) + 1
        cell = np.repeat(rows, np.diff(first_cell[blocks])) * n_contexts + context
        trials = np.bincount(cell, clicked + skipped, n_rows * n_contexts).reshape(
            n_rows, n_contexts
        )
        del cell
        likelihood, examined = np.empty(len(rows)), np.empty((len(rows), n_contexts))

        def step(now: list[Floats], then: list[Floats]) -> float:
            (α, γ), (α_next, γ_next) = now, then

            def expect(task: int) -> None:
                part = tasks[task], tasks[task + 1]
                browsing_step(
                    *part,
                    blocks,
                    rows,
                    first_cell,
                    context,
                    clicked,
                    skipped,
                    α,
                    γ,
                    α_next,
                    examined,
                    likelihood,
                )

            examined[:] = 0.0
            in_parallel(expect, len(tasks) - 1)
            γ_next[:n_rows] = smoothed(examined if self.per_query else examined.sum(axis=0), trials)
            return float(likelihood.sum()) + log_prior(α, γ[:n_rows])

        examination: Part = ("query", (n_contexts,)) if self.per_query else ("log", (1, n_contexts))
        self.attraction_, γ = self._climb(step, [("pair", ()), examination], n_sessions)
        self.examination_ = self._layout(γ if self.per_query else γ[0])

    def _layout(self, γ: Floats) -> Floats:
        """The context probabilities as the click model holds them."""
        return γ

    def _conditional(self, queries: Indices, pairs: Indices, clicks: Clicks) -> Floats:
        law = self.after_click, self.attraction_, self._flat()
        return filled(browsing_conditional, pairs.shape, self._rows(queries), pairs, clicks, *law)

    def _rows(self, queries: Indices) -> Indices:
        """The row of each query among the examination probabilities."""
        return queries if self.per_query else np.zeros_like(queries)

    def _flat(self) -> Floats:
        """The examination probabilities, ``(rows, contexts)``; a single row if all queries share
        them.
        """
        return self.examination_.reshape(-1, self.n_positions_ ** (2 if self.after_click else 1))

    def _click_model(self, query: int, pairs: Indices) -> ClickModel:
        model: Callable[..., ClickModel] = self.model_class
        return model(
            self.attraction_[pairs],
            self.examination_[query] if self.per_query else self.examination_,
        )


@entry
def browsing_step(
    start,
    stop,
    blocks,
    rows,
    first_cell,
    context,
    clicked,
    skipped,
    α,
    γ,
    α_next,
    examined,
    likelihood,
):
    """One EM step for some blocks: their new attractions, expected examinations, and the
    log-likelihood before the step.
    """
    for block in range(start, stop):
        row, value = rows[block], 0.0
        for pair in range(blocks[block], blocks[block + 1]):
            attracted, displays = 0.0, 0
            for cell in range(first_cell[pair], first_cell[pair + 1]):
                x = context[cell]
                click = α[pair] * γ[row, x]
                value += clicked[cell] * np.log(click) + skipped[cell] * np.log1p(-click)
                # A click was examined and attractive; a skip was attractive, or
                # examined, but not both.
                one_of_both = skipped[cell] / (1.0 - click)
                attracted += clicked[cell] + one_of_both * (α[pair] - click)
                examined[block, x] += clicked[cell] + one_of_both * (γ[row, x] - click)
                displays += clicked[cell] + skipped[cell]
            α_next[pair] = (1.0 + attracted) / (2.0 + displays)
        likelihood[block] = value


@entry
def browsing_conditional(rows, pairs, clicks, after_click, α, γ, result):
    """The probability of a click at each position given the clicks above it."""
    n_positions = pairs.shape[1]
    for session in range(len(pairs)):
        last = 0
        for k in range(n_positions):
            context = k * n_positions + last if after_click else k
            result[session, k] = α[pairs[session, k]] * γ[rows[session], context]
            if clicks[session, k]:
                last = k + 1


@entry
def browsing_marginal(rows, pairs, α, γ, last, result):
    """The probability of a click at each position where examination depends on the last click
    above.

    ``last`` is working memory of ``K + 1`` floats: the probability that the last click so far was
    at each position.
    """
    n_positions = pairs.shape[1]
    for session in range(len(pairs)):
        last[0] = 1.0
        for k in range(n_positions):
            total = 0.0
            for j in range(k + 1):
                click = last[j] * γ[rows[session], k * n_positions + j] * α[pairs[session, k]]
                last[j] -= click
                total += click
            last[k + 1] = result[session, k] = total


class PBMEstimator(_BrowsingEstimator):
    """Estimator of the position-based model, by EM.

    Args:
        iterations: the maximal number of EM steps; all parameters start at 0.5.
        tol: stop once a step raises the penalised log-likelihood by less than this per session, and
            warn if that never happens. Extrapolated steps make EM faster (see `EMEstimator`). None
            takes all steps as plain EM steps, without a check of convergence.
        per_query: estimate examination probabilities for each query separately; else all queries
            share them.

    Attributes:
        attraction_: ``(P + 1,)``, see `Estimator`.
        examination_: ``(K,)`` examination probability of each position; per query ``(Q + 1, K)``,
            in the order of the fitted log's labels, the last row, 0.5, for all queries never shown.
        n_iter_, log_posterior_, converged_: the course of EM, see `EMEstimator`.

    Source: Chuklin, Markov, de Rijke, *Click models for web search*, Morgan & Claypool 2015,
        section 4.

    Example:
        >>> from clickgym_logs import ClickLog
        >>> clicks = [[1, 0], [1, 1], [0, 0], [1, 0]]
        >>> log = ClickLog([[0, 1]] * 4, clicks, [0] * 4, ("a", "b"), ("q",))
        >>> model = PBMEstimator().fit(log).click_model("q", ["a", "b"])
        >>> model.n_items, model.n_positions
        (2, 2)
    """

    model_class = PositionBasedModel
    after_click = False

    def _marginal(self, queries: Indices, pairs: Indices, clicks: Clicks) -> Floats:
        return self._conditional(queries, pairs, clicks)


class UBMEstimator(_BrowsingEstimator):
    """Estimator of the user browsing model, by EM.

    Args:
        iterations: the maximal number of EM steps; all parameters start at 0.5.
        tol: stop once a step raises the penalised log-likelihood by less than this per session, and
            warn if that never happens. Extrapolated steps make EM faster (see `EMEstimator`). None
            takes all steps as plain EM steps, without a check of convergence.
        per_query: estimate examination probabilities for each query separately; else all queries
            share them.

    Attributes:
        attraction_: ``(P + 1,)``, see `Estimator`.
        examination_: ``(K, K)`` as in `UserBrowsingModel`: row k is the position, column 0 no click
            yet, column j last click at the j-th position counted from 1; 0 above the diagonal. Per
            query ``(Q + 1, K, K)``, as for the PBM.
        n_iter_, log_posterior_, converged_: the course of EM, see `EMEstimator`.

    Source: Dupret, Piwowarski, *A user browsing model to predict search engine click data from past
    observations*, SIGIR 2008, in the EM form of Chuklin, Markov, de Rijke, *Click models for web
    search*, Morgan & Claypool 2015, section 4.

    Example:
        >>> from clickgym_logs import ClickLog
        >>> clicks = [[1, 0], [1, 1], [0, 0], [1, 0]]
        >>> log = ClickLog([[0, 1]] * 4, clicks, [0] * 4, ("a", "b"), ("q",))
        >>> UBMEstimator(iterations=1).fit(log).examination_.round(3)
        array([[0.722, 0.   ],
               [0.444, 0.533]])
    """

    model_class = UserBrowsingModel
    after_click = True

    def _layout(self, γ: Floats) -> Floats:
        return np.tril(γ.reshape(*γ.shape[:-1], self.n_positions_, self.n_positions_))

    def _marginal(self, queries: Indices, pairs: Indices, clicks: Clicks) -> Floats:
        last = np.empty(self.n_positions_ + 1)
        return filled(
            browsing_marginal,
            pairs.shape,
            self._rows(queries),
            pairs,
            self.attraction_,
            self._flat(),
            last,
        )
