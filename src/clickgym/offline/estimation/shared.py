"""Position parameters from the counts of other queries, with which the models of one query need only its own sessions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..counts import Counts, check_columns_counted
from .browsing import PBMEstimator, UBMEstimator
from .settings import CONVERGED

MOST_CELLS = 200_000
"""Of the most frequent other queries: what is shown often tells of examination, what is shown rarely mostly of the prior."""
CERTAIN = 1 - 1e-9
"""The examination of a position below which no other was clicked, where users scan; 1 has no prior."""


def shared_parameters(counts: Counts, query: str, n_positions: int) -> dict[str, NDArray[np.float64]]:
    """Examination of PBM and UBM, and probabilities of leaving of the DCM, from the most frequent queries but one.

    Args:
        counts: of a log, with the last click above.
        query: the one.
        n_positions: K of its lists.

    Returns:
        By short name of the model the parameters as `FitSettings.fit` takes them: ``(K,)``, ``(K * K,)`` and ``(K,)``.

    Raises:
        ValueError: on counts of shorter lists, or of no other query.
    """
    check_columns_counted(counts, "UBM", UBMEstimator.counted)
    if counts.n_positions < n_positions:
        raise ValueError(
            f"the counts have {counts.n_positions} positions, and the log {n_positions}; expected the log's counts"
        )
    others = counts.part(~counts.of_query(query))
    if not len(others.codes):
        raise ValueError(f"the counts have no other query than {query!r}, from which examination could be known")
    others = _most_frequent(others, n_positions)
    pbm, ubm = CONVERGED.fit(PBMEstimator, others), CONVERGED.fit(UBMEstimator, others)
    table = np.full((n_positions, n_positions), np.nan)
    reached = np.tril_indices(n_positions)
    table[reached] = ubm.examination_[reached]  # type: ignore[attr-defined]
    return {"PBM": pbm.examination_[:n_positions], "UBM": table.ravel(), "DCM": leaving(others)[:n_positions]}  # type: ignore[attr-defined]


def _most_frequent(counts: Counts, n_positions: int) -> Counts:
    """The query with most lists of so many positions, and the next ones as long as all have at most `MOST_CELLS` cells."""
    cells = np.bincount(counts.query, np.diff(counts.first_cell), len(counts.query_labels))
    order = np.argsort(-counts.sessions(n_positions), kind="stable")
    wanted = np.zeros(len(order), np.bool_)
    wanted[order[: max(1, int(np.searchsorted(cells[order].cumsum(), MOST_CELLS, side="right")))]] = True
    return counts.part(wanted[counts.query][counts.pair])


def leaving(counts: Counts) -> NDArray[np.float64]:
    """Probabilities of leaving after a click at each position, ``(K,)``, for users of a DCM.

    Without a click above, such users look at every item, so that an item is clicked with probability α; right below a click at
    position k with probability (1 - s_k) α. These cells tell s without bias, unlike the last clicks of sessions. Of the last
    position nothing follows, and the one above is repeated.
    """
    assert counts.last_click is not None
    cells = counts.part((counts.last_click == 0) | (counts.last_click == counts.position - 1))
    assert cells.last_click is not None
    given = np.append(CERTAIN, np.full(counts.n_positions - 1, np.nan))
    # To the PBM, the position of the click above is what a position is.
    users = CONVERGED.fit(PBMEstimator, replace(cells, position=cells.last_click + 1), given=given)
    going: NDArray[np.float64] = users.examination_[1:]  # type: ignore[attr-defined]
    return 1 - np.append(going, going[-1:] if len(going) else 0.5)
