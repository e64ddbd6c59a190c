"""What a log tells of each item: how often its logging policy had it examined, and what its clicks then say of it.

A *pair* is a query (or user) and an item. A *case* is a query with its candidates: sessions of a case differ only by chance.
With N the sessions in which an item d was a candidate, and ``ρ(d)`` the mean over them of ``Σ_k π0(d at k) χ_k``,

    R_IPS(d) = (1/N) Σ_i Σ_k 1{d at k in session i} c_ik / ρ(d),
    R_DR(d) = r(d) + (1/N) Σ_i Σ_k 1{d at k in session i} (c_ik - χ_k r(d)) / ρ(d).

Both have the mean attraction α(d) in a position-based model, R_DR for every prediction r that does not come from these clicks.

1. ⚠ N counts all sessions in which d was a candidate, also those that do not show it. Clicks per display are another quantity.
2. ⚠ Where candidates change from session to session, N and ρ are those of the sessions in which d was a candidate.
3. ⚠ An item with ``ρ = 0`` is not judged: it takes no part, and is never given the value 0.
4. Placements π0 come from the logging policy, or from the log's propensities. Of these only the shown ones are known. If all
   are 1/L, lists were random and every placement is 1/L. Else the placement of a pair at a position is the harmonic mean of
   its propensities there, which is exact where they are the same in all sessions, and 0 at positions where it was never shown.
   So it is for pairs with many sessions; where candidates change, give the policy.
5. Positions below the end of a list are examined by nobody: placements count by the share of the case's sessions that have the
   position.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.checks import numbers, short
from ..distinct import distinct
from ..log import ClickLog
from ..policies import Policy, placement

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Logging = str | Policy | Mapping[str, Policy] | Callable[..., Any] | None
"""Who made a log: None, its propensities tell; ``"uniform"``; a policy; policies by query; or a function of query, item labels
and features that returns a policy of these items, numbered from 0, or ``(L, K)`` placements."""

DRAWS_PER_CASE = 1000
"""Lists that are drawn of a Plackett-Luce policy where every session has candidates of its own."""


class Sessions(NamedTuple):
    """The sessions of a log by pairs and cases.

    Attributes:
        codes: ``(P,)`` the pairs, ``query * len(item_labels) + item``, increasing.
        cases: ``(C, L)`` the pairs of each case, -1 behind the last.
        case: ``(N,)`` of each session.
        shown: ``(N, K)`` pairs, -1 below the end of a list.
        clicks: ``(N, K)``.
    """

    codes: Indices
    cases: Indices
    case: Indices
    shown: Indices
    clicks: NDArray[np.int8]

    def weights(self, part: Any = slice(None)) -> Floats:
        """``(C,)`` how many sessions of a part of the log each case has."""
        return np.bincount(self.case[part], minlength=len(self.cases)).astype(np.float64)


class Evidence(NamedTuple):
    """What sessions tell of each pair, ``(P,)`` each.

    Attributes:
        n: sessions in which it was a candidate.
        exposure: ρ; 0: it is not judged.
        clicks: how many it got.
        examined: Σ χ_k over its displays.
    """

    n: Floats
    exposure: Floats
    clicks: Floats
    examined: Floats

    @property
    def judged(self) -> NDArray[np.bool_]:
        """Which pairs are judged."""
        return self.exposure > 0

    def values(self, predicted: Floats | None = None, clip: float = 0.0) -> Floats:
        """R_IPS, or R_DR with predictions ``(P,)``; NaN for pairs that are not judged; ρ counts as ``clip`` at least."""
        base = np.zeros(len(self.n)) if predicted is None else predicted
        earned = self.clicks - base * self.examined
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.judged, base + earned / (self.n * np.maximum(self.exposure, clip)), np.nan)


def sessions_of(log: ClickLog, further: Indices) -> Sessions:
    """The sessions of a log by pairs and cases.

    Args:
        log: without ``candidates`` those of a query are all items that the log shows for it, and
        further: codes of further pairs that can be candidates.

    Raises:
        ValueError: a session shows an item that is none of its candidates.
    """
    n_items = len(log.item_labels)
    queries = log.queries.astype(np.int64)
    codes_shown = np.where(log.items < 0, -1, queries[:, None] * n_items + log.items)
    if log.candidates is None:
        codes = np.union1d(codes_shown[codes_shown >= 0], further[np.isin(further // n_items, queries)])
        row_of, row = np.unique(codes // n_items, return_inverse=True)
        column = np.arange(len(codes)) - np.searchsorted(row, np.arange(len(row_of)))[row]
        cases = np.full((len(row_of), int(column.max()) + 1), -1)
        cases[row, column] = np.arange(len(codes))
        case = np.searchsorted(row_of, queries)
    else:
        ordered = np.sort(log.candidates, axis=1)[:, ::-1]
        first, case, _ = distinct(np.column_stack([queries, ordered]))
        rows = np.where(ordered[first] < 0, -1, queries[first, None] * n_items + ordered[first])
        codes = np.unique(rows[rows >= 0])
        cases = np.where(rows < 0, -1, np.searchsorted(codes, rows))
        ours = (codes_shown[:, :, None] == rows[case][:, None, :]).any(axis=2) | (log.items < 0)
        if not ours.all():
            session, k = np.argwhere(~ours)[0]
            raise ValueError(
                f"items[{session}] shows {log.item_labels[log.items[session, k]]!r}, which is none of candidates[{session}]"
            )
    shown = np.where(log.items < 0, -1, np.searchsorted(codes, codes_shown))
    return Sessions(codes, cases, case, shown, log.clicks)


def exposures(
    log: ClickLog, sessions: Sessions, logging: Logging, examination: Floats, features: Floats | None, seed: int
) -> Floats:
    """``(C, L)`` the expected examinations ``Σ_k π0(d at k) χ_k`` of each candidate of each case.

    Args:
        log, sessions: the log, by cases.
        logging: who made it.
        examination: ``(K,)`` χ.
        features: ``(P, d)`` for a function that wants them.
        seed: of lists that are drawn.

    Raises:
        ValueError: nothing tells the placements; a policy does not fit; or it never shows what the log shows.
    """
    cases, n_positions = sessions.cases, log.n_positions
    reached = np.zeros((len(cases), n_positions))
    np.add.at(reached, sessions.case, sessions.shown >= 0)
    weights = (reached / np.maximum(sessions.weights(), 1.0)[:, None]) * examination
    size = (cases >= 0).sum(axis=1)
    if logging is None:
        if log.propensities is None:
            raise ValueError(
                "the log has no propensities; expected a column propensity, or the policy that made it (logging), as uniform"
            )
        if np.allclose(np.where(log.items < 0, 1.0, log.propensities * size[sessions.case][:, None]), 1.0):
            logging = "uniform"
    if logging is None:
        cells = (sessions.shown * n_positions + np.arange(n_positions))[sessions.shown >= 0]
        room, inverse = len(sessions.codes) * n_positions, 1.0 / log.propensities[sessions.shown >= 0]  # type: ignore[index]
        placed = np.bincount(cells, minlength=room) / np.maximum(np.bincount(cells, inverse, room), 1e-300)
        result: Floats = np.einsum("clk,ck->cl", placed.reshape(-1, n_positions)[cases], weights)
    elif isinstance(logging, str):
        if logging != "uniform":
            raise ValueError(f"logging is {short(logging)}; expected uniform, a policy, policies by query, or a function")
        result = np.broadcast_to((weights.sum(axis=1) / size)[:, None], cases.shape).copy()
    else:
        result, rng = np.zeros(cases.shape), np.random.default_rng(seed)
        for case, row in enumerate(cases):
            part = row[: size[case]]
            result[case, : size[case]] = _placed(log, sessions.codes[part], logging, features, part, rng) @ weights[case]
    result[cases < 0] = 0.0
    exposed = np.zeros(len(sessions.codes))
    np.add.at(exposed, cases[cases >= 0], result[cases >= 0])
    never = (sessions.shown >= 0) & (exposed[sessions.shown] <= 0) & (examination > 0)
    if never.any():
        session, k = np.argwhere(never)[0]
        raise ValueError(
            f"items[{session}] shows {log.item_labels[log.items[session, k]]!r}, which the logging policy never shows"
        )
    return result


def _placed(
    log: ClickLog, codes: Indices, logging: Any, features: Floats | None, part: Indices, rng: np.random.Generator
) -> Floats:
    """``(n, K)`` the placements of the candidates of a case."""
    (query, *_), items = np.divmod(codes, len(log.item_labels))
    label, draws = log.query_labels[query], DRAWS_PER_CASE
    if isinstance(logging, Policy | Mapping):
        if log.candidates is not None:
            raise ValueError(
                "candidates change from session to session; expected propensities, uniform, or a function of query, items and "
                "features that returns the policy (logging)"
            )
        logging, draws = logging[label] if isinstance(logging, Mapping) and label in logging else logging, 100_000
        if isinstance(logging, Mapping):
            raise ValueError(f"logging has no policy for the query {label!r}")
        given: Any = logging
    else:
        given = logging(label, [log.item_labels[item] for item in items], None if features is None else features[part])
        items = np.arange(len(items))
    if isinstance(given, Policy):
        if given.n_positions != log.n_positions:
            raise ValueError(f"the logging policy fills {given.n_positions} positions; the log has {log.n_positions}")
        return placement(given, items, draws, rng)
    return numbers("placements that logging returned", given, (len(items), log.n_positions), 0.0, 1.0 + 1e-9)


def evidence(sessions: Sessions, exposed: Floats, examination: Floats, part: NDArray[np.bool_]) -> Evidence:
    """What the sessions of a part of the log tell of each pair; arguments as above."""
    n_pairs, weights = len(sessions.codes), sessions.weights(part)[:, None]

    def of_pairs(pairs: Indices, values: Any) -> Floats:
        there = pairs >= 0
        return np.bincount(pairs[there], np.broadcast_to(values, pairs.shape)[there], n_pairs).astype(np.float64)

    n, shown = of_pairs(sessions.cases, weights), sessions.shown[part]
    exposure = of_pairs(sessions.cases, weights * exposed) / np.maximum(n, 1.0)
    return Evidence(n, exposure, of_pairs(shown, sessions.clicks[part]), of_pairs(shown, examination))
