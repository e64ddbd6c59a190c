"""The lists of a query in the log, their rewards, and the differences between them.

Nothing is assumed of users here: a list is judged by the sessions that showed it. Two things must
    not count as its gain:

- *Time.* Users click more in one week than in another, and lists change, too. So a list is compared
  with the production list within blocks of time only, twenty of equal numbers of sessions.
- *Length.* A list of K items is shown in short where a session has fewer results: its first ones.
  So lists are compared among sessions of one length. Where both begin with the same items, the gain
  is 0.

In each stratum (block and length) that shows both lists often enough, b, with n(Q) and n(P)
sessions of the list and of the production list, d(b) is the difference of mean rewards, and v(b)
its variance. The gain is Δ = Σ w(b) d(b) / Σ w(b) with the weights w(b) = n(Q) n(P) / (n(Q) +
n(P)), its standard error √(Σ w(b)² v(b)) / Σ w(b).

A change that lasts for a while, such as a visit of bots, can fall into one list's sessions even
within a block. So a gain has to be there, too, if any four neighbouring blocks are left out. And
where the gains of the blocks differ by more than chance (Cochran's test), most blocks must have one
(sign test), as some visits at different times could not bring about. Where both clicks and lists
follow the hours of the day, a block mixes hours: so the gain has to be there within finer blocks,
too, down to some fifty sessions each. Where lists hardly ever were shown in the same block, the log
cannot compare them: such a list is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, chdtrc, ndtr

from .distinct import distinct
from .evaluation import LEAST_SESSIONS, earnings
from .log import BLOCKS, ClickLog, time_blocks

FINER = 4
"""Each time so many finer blocks: 80, 320, ..."""
LEAST_IN_BLOCK = 50
"""Sessions of a finer block."""
LEAST_IN_STRATUM = 5
"""Sessions of each of two lists with which a stratum compares them."""
LEAST_BLOCKS = 4
"""Blocks that have to compare two lists."""
LEAST_SHARE = 0.5
"""Share of a list's sessions that these blocks have to hold."""
LEFT_OUT = 4
"""Neighbouring blocks that a gain must be able to do without."""
STEADY = 0.05
"""The largest p-value of a gain without them; that of the sign test of blocks that differ; and that
of whole lists alone.
"""
UNEVEN = 0.001
"""The p-value of Cochran's test below which blocks differ by more than chance."""
WIDEST = 0.025
"""Simultaneous intervals err with this probability on each side, or less."""

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Lists = NDArray[np.int32]


def of_query(
    log: ClickLog, query: str, sessions: NDArray[np.integer], items: NDArray[np.integer]
) -> ClickLog:
    """The sessions of one query as a log of their own, with only the labels of this query.

    Args:
        log: sessions of all queries.
        query: its label.
        sessions: rows of the log.
        items: those of the query, increasing.
    """
    part = log[sessions]
    numbers = np.where(part.items < 0, -1, np.searchsorted(items, part.items))
    labels, queries = (
        tuple(log.item_labels[item] for item in items.tolist()),
        np.zeros(len(part), np.int32),
    )
    return replace(
        part,
        items=numbers,
        queries=queries,
        item_labels=labels,
        query_labels=(query,),
        context=None,
    )


class DistinctLists:
    """The distinct lists of some sessions, and their rewards.

    Args:
        log: the sessions, of one query.
        reward, cutoff: what a list earns.

    Attributes:
        lists: ``(M, K)``, -1 below the end.
        first: ``(M,)`` the first session of each.
        index: ``(N,)`` the list of each session.
        counts: ``(M,)`` sessions.
        means, variances: ``(M,)`` of what a session earned.
        lengths: ``(M,)`` items.
        earned: ``(N,)`` by each session.
    """

    def __init__(self, log: ClickLog, reward: str, cutoff: int | None) -> None:
        self.log = log
        self.first, self.index, self.counts = distinct(log.items)
        self.lists = log.items[self.first]
        self.earned = earned = earnings(log, reward, cutoff).sum(axis=1).astype(np.float64)
        self.means = np.bincount(self.index, earned) / self.counts
        self.variances = np.maximum(
            np.bincount(self.index, earned**2) / self.counts - self.means**2, 0.0
        )
        self.lengths = (self.lists >= 0).sum(axis=1)

    @cached_property
    def _rows(self) -> dict[tuple[int, ...], int]:
        return {
            tuple(ranking[:length]): row
            for row, (ranking, length) in enumerate(
                zip(self.lists.tolist(), self.lengths.tolist(), strict=True)
            )
        }

    def row(self, ranking: Sequence[int] | Lists, length: int) -> int:
        """The row of a list of so many items that begins as ``ranking``; -1 if it was not shown."""
        return self._rows.get(tuple(np.asarray(ranking)[:length].tolist()), -1)

    def labels(self, ranking: Lists) -> tuple[str, ...]:
        """The labels of a list's items."""
        return tuple(self.log.item_labels[item] for item in ranking.tolist())


def production_list(tally: DistinctLists) -> Lists:
    """The production list: of the longest lists, the one that most sessions show. A shorter list
    counts if it has the same first items.
    """
    longest = tally.lists[tally.lengths == tally.lengths.max()]
    sessions = np.zeros(len(longest))
    for length in np.unique(tally.lengths).tolist():
        rows = tally.lengths == length
        kinds, index = np.unique(
            np.vstack([longest[:, :length], tally.lists[rows, :length]]),
            axis=0,
            return_inverse=True,
        )
        index = index.ravel()
        sessions += np.bincount(index[len(longest) :], tally.counts[rows], len(kinds))[
            index[: len(longest)]
        ]
    best: Lists = longest[int(sessions.argmax())]
    return best


@dataclass(frozen=True)
class Measured:
    """A logged list compared with the production list, by the sessions that showed them in the same
    block of time.

    Attributes:
        labels: of its items, from the top.
        sessions: that showed it.
        share: of the query's sessions, those of lengths that tell of both lists.
        value: what it earned per session.
        difference: how much more than the list in production, in the blocks that showed both.
        standard_error: of the difference.
        interval: of the difference; all lists' intervals hold at once.
        p_value: of there being no gain, the larger one of that of the blocks and `finer_p_value`,
            times the number of lists that stood to choose; at most 1.
        finer_p_value: the largest p-value within finer blocks, not multiplied; 0 where there are
        none that tell.
        worst_p_value: the largest p-value, not multiplied, if any `LEFT_OUT` neighbouring blocks
        are left out.
        sign_p_value: where blocks differ by more than chance, the p-value of as many of them with a
        gain; else 0.
        base: what the production list earned in the same blocks.
        pooled: the difference if time is ignored.
        blocks: how many showed both.
    """

    labels: tuple[str, ...]
    sessions: int
    share: float
    value: float
    difference: float
    standard_error: float
    interval: tuple[float, float]
    p_value: float
    finer_p_value: float
    worst_p_value: float
    sign_p_value: float
    base: float
    pooled: float
    blocks: int

    @property
    def doubt(self) -> float:
        """The larger one of the two p-values that show whether a few stretches of time carry the
        gain alone.
        """
        return max(self.worst_p_value, self.sign_p_value)


@dataclass(frozen=True)
class Refused:
    """A logged list that the log cannot compare with the production list, because the lists changed
    with time.

    Attributes:
        labels: of its items, from the top.
        sessions: that showed it.
        blocks: how many showed both lists.
        share: of its sessions, those in these blocks.
    """

    labels: tuple[str, ...]
    sessions: int
    blocks: int
    share: float


def measure(
    tally: DistinctLists, production: Lists, level: float
) -> tuple[tuple[Measured, ...], tuple[Refused, ...]]:
    """Compare logged lists with the production list; the most certain gain comes first.

    Args:
        tally: the distinct lists of the query.
        production: the list in production.
        level: probability that any of the intervals errs on one side; at most `WIDEST`.

    Returns:
        What was measured, and the lists that the log cannot compare.
    """
    often = (tally.lengths == len(production)) & (tally.counts >= LEAST_SESSIONS)
    rows = np.flatnonzero(often & (tally.lists[:, : len(production)] != production).any(axis=1))
    strata = _Strata(tally, production, rows)
    compared = np.flatnonzero(strata.comparable)
    z = NormalDist().inv_cdf(1 - min(level, WIDEST) / max(len(compared), 1))
    measured = []
    for place in compared.tolist():
        row = rows[place]
        numbers = {name: float(getattr(strata, name)[place]) for name in _Strata.NUMBERS}
        difference, error = numbers["difference"], numbers["standard_error"]
        gain = Measured(
            labels=tally.labels(tally.lists[row]),
            sessions=int(tally.counts[row]),
            value=float(tally.means[row]),
            interval=(difference - z * error, difference + z * error),
            # A list that gains in sessions that show a part of it alone is not better.
            p_value=min(1.0, len(compared) * float(strata.p_values[place]))
            if strata.whole[place]
            else 1.0,
            blocks=int(strata.blocks[place]),
            **numbers,
        )
        measured.append(gain)
    measured.sort(key=lambda gain: (gain.p_value > level or gain.doubt > STEADY, -gain.interval[0]))
    refused = tuple(
        Refused(tally.labels(tally.lists[row]), int(tally.counts[row]), int(blocks), float(share))
        for row, comparable, blocks, share in zip(
            rows, strata.comparable, strata.blocks, strata.kept, strict=True
        )
        if not comparable
    )
    return tuple(measured), refused


class _Strata:
    """Lists compared with the production list, by blocks of time and lengths. Axes: C lists,
    lengths, `BLOCKS` blocks.

    Args:
        tally: the distinct lists of the query.
        production: the list in production.
        rows: ``(C,)`` the rows of the lists, all as long as it.

    Attributes:
        blocks: ``(C,)`` how many compare a list with production.
        kept: ``(C,)`` share of a list's sessions in these blocks.
        comparable: ``(C,)`` whether these are enough.
        p_values: ``(C,)`` of no gain, in these blocks and in finer ones.
        share, difference, standard_error, finer_p_value, worst_p_value, sign_p_value, base, pooled:
        ``(C,)`` see `Measured`.
        whole: ``(C,)`` whether it gains in sessions that show whole lists, too; significantly, if
            others also compare it.
    """

    NUMBERS = (
        "share",
        "difference",
        "standard_error",
        "finer_p_value",
        "worst_p_value",
        "sign_p_value",
        "base",
        "pooled",
    )

    def __init__(self, tally: DistinctLists, production: Lists, rows: Indices) -> None:
        log, lengths = tally.log, np.unique(tally.lengths)
        differs = np.array(
            [(tally.lists[rows, :length] != production[:length]).any(axis=1) for length in lengths]
        ).T
        of_list = np.array(
            [[tally.row(tally.lists[row], length) for length in lengths.tolist()] for row in rows],
            np.int64,
        )
        of_list = of_list.reshape(len(rows), len(lengths))
        of_production = np.array([tally.row(production, length) for length in lengths.tolist()])
        table = _Table(tally, time_blocks(log), np.append(of_list, of_production))
        lists, (counts, means, variances) = table(of_list), table(of_production)
        enough = (np.minimum(lists[0], counts) >= LEAST_IN_STRATUM) & differs[:, :, None]
        weights = np.where(enough, lists[0] * counts / np.maximum(lists[0] + counts, 1), 0.0)
        gains = lists[1] - means
        # A session with a click more or less: no variance is 0 because a few sessions were alike.
        errors = sum(
            (v + 1 / np.maximum(n, 1)) / np.maximum(n, 1)
            for n, _, v in (lists, (counts, means, variances))
        )

        shows_both = enough.any(axis=1)
        self.blocks = shows_both.sum(axis=1)
        sessions = (lists[0] * differs[:, :, None]).sum(axis=1)
        self.kept = (sessions * shows_both).sum(axis=1) / sessions.sum(axis=1)
        at_length = weights.sum(axis=2)
        self.comparable = (
            (self.blocks >= LEAST_BLOCKS) & (self.kept >= LEAST_SHARE) & (at_length[:, -1] > 0)
        )

        # Sessions of lengths at which both lists are one tell of both: that nothing is gained.
        of_length = np.bincount(tally.lengths, tally.counts)[lengths]
        telling, alike = (at_length > 0) @ of_length, ~differs @ of_length
        self.share = (telling + alike) / of_length.sum()
        part = telling / np.maximum(telling + alike, 1)
        with np.errstate(invalid="ignore"):  # of lists that are not comparable
            total = at_length.sum(axis=1)
            self.difference = part * (weights * gains).sum(axis=(1, 2)) / total
            self.standard_error = part * np.sqrt((weights**2 * errors).sum(axis=(1, 2))) / total
            gain, error = (
                (weights * gains)[:, -1].sum(axis=1),
                np.sqrt((weights**2 * errors)[:, -1].sum(axis=1)),
            )
            doubt = ndtr(-gain / error) * self.comparable.sum()
            self.whole = (gain > 0) & (((at_length > 0).sum(axis=1) == 1) | (doubt <= STEADY))
            ours, theirs = table.over_blocks(of_list), table.over_blocks(of_production)
            pooled = np.where(
                at_length > 0, ours[0] * theirs[0] / np.maximum(ours[0] + theirs[0], 1), 0.0
            )
            self.pooled = part * (pooled * (ours[1] - theirs[1])).sum(axis=1) / pooled.sum(axis=1)
            both = ~differs * (of_length * (theirs[0] > 0))
            same = (both @ theirs[1]) / np.maximum(both.sum(axis=1), 1)
            self.base = part * (weights * means).sum(axis=(1, 2)) / total + (1 - part) * same
            self.p_values = ndtr(-self.difference / self.standard_error)
        self.finer_p_value = np.zeros(len(rows))
        n_blocks = BLOCKS * FINER
        while len(log) >= LEAST_IN_BLOCK * n_blocks:
            finer = _Table(
                tally, time_blocks(log, n_blocks), np.append(of_list, of_production), n_blocks
            )
            self.finer_p_value = np.fmax(
                self.finer_p_value, _within(finer, of_list, of_production, differs)
            )
            n_blocks *= FINER
        self.p_values = np.fmax(self.p_values, self.finer_p_value)
        by_block = tuple(
            each.sum(axis=1) for each in (weights, weights * gains, weights**2 * errors)
        )
        self.worst_p_value, self.sign_p_value = _worst(*by_block[1:]), _signs(*by_block)


class _Table:
    """What lists earned in each block of time.

    Args:
        tally: the distinct lists.
        blocks: ``(N,)`` the block of each session.
        rows: of the lists that are looked for, in any order, also several times; -1 is a list that
        was not shown.
        n_blocks: how many there are.
    """

    def __init__(
        self, tally: DistinctLists, blocks: Indices, rows: Indices, n_blocks: int = BLOCKS
    ) -> None:
        wanted = np.setdiff1d(rows, -1)
        self.place = np.full(len(tally.lists) + 1, len(wanted))
        self.place[wanted] = np.arange(len(wanted))
        cells = self.place[tally.index] * n_blocks + blocks
        size = (len(wanted) + 1) * n_blocks
        self.sums = [
            np.bincount(cells, weights, size).reshape(-1, n_blocks)
            for weights in (None, tally.earned, tally.earned**2)
        ]
        for each in self.sums:
            each[-1] = 0  # the sessions of all other lists

    def __call__(self, rows: Indices) -> tuple[Floats, Floats, Floats]:
        """``(..., n_blocks)`` sessions of the lists, their mean rewards and the variances of
        these.
        """
        return _moments(*(each[self.place[rows]] for each in self.sums))

    def over_blocks(self, rows: Indices) -> tuple[Floats, Floats, Floats]:
        """The same, of all blocks together."""
        return _moments(*(each[self.place[rows]].sum(axis=-1) for each in self.sums))


def _moments(counts: Floats, sums: Floats, squares: Floats) -> tuple[Floats, Floats, Floats]:
    divisors = np.maximum(counts, 1)
    means = sums / divisors
    return counts, means, np.maximum(squares / divisors - means**2, 0.0)


def _within(
    table: _Table, of_list: Indices, of_production: Indices, differs: NDArray[np.bool_]
) -> Floats:
    """``(C,)`` the p-value of no gain within fine blocks, by the variances over all sessions; nan
    where few blocks show both.

    Args:
        table: of the blocks.
        of_list, of_production: ``(C, lengths)`` and ``(lengths,)`` rows of the lists.
        differs: ``(C, lengths)`` whether the lists differ.
    """
    sessions, together, gains, variances = np.zeros((4, len(of_list)))
    for ours, theirs, differ in zip(of_list.T, of_production, differs.T, strict=True):
        (n, means, _), (n_production, base, _) = table(ours), table(theirs)
        n = n * differ[:, None]
        weights = n * n_production / np.maximum(n + n_production, 1)
        for rows, numbers in ((ours, n), (theirs, n_production)):
            count, _, variance = table.over_blocks(rows)
            variances += (variance + 1 / np.maximum(count, 1)) * (
                weights**2 / np.maximum(numbers, 1)
            ).sum(axis=1)
        sessions += n.sum(axis=1)
        together += (n * (n_production > 0)).sum(axis=1)
        gains += (weights * (means - base)).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        p_values: Floats = np.where(
            together >= LEAST_SHARE * sessions, ndtr(-gains / np.sqrt(variances)), np.nan
        )
    return p_values


def _worst(gains: Floats, variances: Floats) -> Floats:
    """``(C,)`` the largest p-value of no gain without any `LEFT_OUT` neighbouring blocks.

    Args:
        gains: ``(C, BLOCKS)`` weighted differences.
        variances: ``(C, BLOCKS)`` of these; 0 in blocks that compare nothing.
    """
    starts = np.arange(BLOCKS - LEFT_OUT + 1)[:, None]
    rest = (np.arange(BLOCKS) < starts) | (np.arange(BLOCKS) >= starts + LEFT_OUT)
    remaining, error = gains @ rest.T, np.sqrt(variances @ rest.T)
    p_values: Floats = np.where(error > 0, ndtr(-remaining / np.where(error > 0, error, 1.0)), 1.0)
    return p_values.max(axis=1)


def _signs(weights: Floats, gains: Floats, variances: Floats) -> Floats:
    """``(C,)`` the p-value of the sign test over blocks, of lists whose blocks differ by more than
    chance; 0 of others.

    Args:
        weights: ``(C, BLOCKS)`` 0 in blocks that compare nothing.
        gains, variances: ``(C, BLOCKS)`` as for `_worst`.
    """
    n_blocks, total = (
        (weights > 0).sum(axis=1),
        np.maximum(weights.sum(axis=1, keepdims=True), 1e-12),
    )
    squares = (gains - weights * gains.sum(axis=1, keepdims=True) / total) ** 2 / np.where(
        weights > 0, variances, 1.0
    )
    differ = chdtrc(np.maximum(n_blocks - 1, 1), squares.sum(axis=1)) < UNEVEN
    p_values: Floats = np.where(differ, bdtrc((gains > 0).sum(axis=1) - 1, n_blocks, 0.5), 0.0)
    return p_values
