"""The state of MixTS: counts, parameters of the hypotheses, evidence, windows of recent clicks."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from clickgym.core.state import Floats, Ints

PBM, UBM, DBN, DCM, TABLE = range(5)
HYPOTHESES = ("PBM", "UBM", "DBN", "DCM", "table")
RESERVE = 4
"""The DBN makes its list of so many times K items."""
WEIGHT = 2.0
"""The weight of the prior of an examination or continuation probability, in expected clicks."""


class State(NamedTuple):
    """Shapes have L items, K positions, 5 hypotheses, and X sources.

    A *source* is what was clicked last above a position. In the DBN it is nothing (0) or the item i
    (1 + i); in the DCM nothing (L + 1) or the position k (L + 2 + k).
    """

    # Counts of an item, by its position k and the position j of the last click above (from 1; 0:
    # none).
    clicks: Annotated[Floats, "L K K"]
    displays: Annotated[Floats, "L K K"]
    total: Annotated[Floats, "L"]  # S, clicks on the item
    exposure: Annotated[Floats, "5 L"]  # E, the sum of its examination probabilities
    # PBM and UBM
    examination: Annotated[Floats, "2 K K", 1.0]  # γ_kj
    information: Annotated[Floats, "2 K", WEIGHT]  # expected clicks that tell of a row of γ
    # DBN and DCM
    below: Annotated[Floats, "X L"]  # F, displays below a source, each counted by b / c
    slope: Annotated[Floats, "X L"]  # ∂F / ∂log g
    clicks_below: Annotated[Floats, "X"]
    click_slope: Annotated[Floats, "2 L"]  # the sum of ∂log b / ∂log g at clicks on the item
    continuation: Annotated[Floats, "X", 1.0]  # c; of nothing 1 forever
    go_on: Annotated[Floats, "2", 0.95]  # g
    # Table: its law, clicks u + v α at a position, and the Cholesky factor of the errors of u and v
    law: Annotated[Floats, "K 5", (0.0, 1.0, 0.0, 0.0, 0.0)]
    by_trust: Annotated[Floats, "L"]  # the sum of u, at the last fit
    by_attraction: Annotated[Floats, "L"]  # the sum of v
    # Evidence: of all clicks of a session (0), and of each position by itself (1).
    evidence: Annotated[Floats, "2 5"]
    likelihood: Annotated[Floats, "2 5", 1.0]  # of the sessions since the last fit
    share: Annotated[Floats, "5", 0.2]
    leader: Annotated[Ints, "1"]  # the hypothesis with the largest share
    t: Annotated[Ints, "2"]  # sessions; those at the next fit
    # Windows of recent clicks. Times are counted in expected changes.
    recent_clicks: Annotated[Floats, "L"]
    recent_exposure: Annotated[Floats, "L"]  # under the leader
    odds: Annotated[Floats, "L", 1.0]  # of a change when the window began to none
    began: Annotated[Floats, "L"]
    seen: Annotated[Floats, "L"]  # the time of the last display
    changes: Annotated[Floats, "3", (0.0, 0.0, -1.0)]  # now; changes seen; time of the last one
    # Working memory.
    examined: Annotated[Floats, "5 K"]  # b of the shown items
    attraction: Annotated[Floats, "5 K"]  # their estimates
    draws: Annotated[Floats, "L"]
    order: Annotated[Ints, "L", range]
    row: Annotated[Ints, "2K"]  # a list, and items that may enter it
    drawn_law: Annotated[Floats, "2 K"]
    gamma: Annotated[Floats, "K K"]
    rates: Annotated[Floats, "L K"]
    last: Annotated[Floats, "K+1"]
    scanned: Annotated[Floats, "3 C"]
    by_ratio: Annotated[Ints, "C"]
    values: Annotated[Floats, "C+1 K+1"]
    detect: bool
