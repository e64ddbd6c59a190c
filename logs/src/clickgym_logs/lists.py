"""The lists that the sessions of a query showed, what they earned, and which one is in production
today.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .distinct import distinct, grouped
from .log import BLOCKS, ClickLog, item_numbers
from .names import csv_line

RECENT = 200
"""Sessions that tell today's production list, at least."""

SAME_TIME = 10
"""Sessions of one time, above which changes within it are hidden, as their order is not known."""
FIRST_SECOND, LAST_SECOND, DAY = 1e9, 1e10, 86_400
"""Times in this range are seconds since 1970."""
LEAST_TIMES_OF_DAY = 4
"""Of fewer, times are dates (midnight, in two zones or so)."""
HARDLY = 0.1
"""Part of a list's share of the sessions below which it is hardly shown today."""

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Ranking = tuple[int, ...]


class QueryLists:
    """The distinct lists of a query, with its sessions in the order of time.

    A session that shows fewer items than others shows the beginning of a longer list.

    Args:
        log: sessions of any queries; a session that it has several times counts once. A time that
            more than a twentieth of the sessions share is one block of time, as their order is not
            known.
        query: the label; None takes the sessions of all queries.
        reward, cutoff: what a session earns, as in `decide`.
        by_arm: whether the arms of an experiment stand for lists, each as a list of one number.
            Then sessions outside the experiment are left out.

    Raises:
        ValueError: the log has no session of the query, or none in the experiment.

    Attributes:
        query, reward, cutoff, by_arm: the arguments.
        sessions: ``(N,)`` the rows of the log, in the order of time.
        lists: the distinct lists, as tuples of item numbers.
        index: ``(N,)`` the list of each session.
        counts: ``(M,)`` the sessions of each list.
        earned: ``(N,)`` what each session earned.
        n_repeated: sessions of the query that were left out, as they repeat others.
    """

    def __init__(
        self,
        log: ClickLog,
        query: str | None,
        reward: str,
        cutoff: int | None,
        by_arm: bool = False,
    ) -> None:
        rows = log.order
        if query is not None:
            rows = rows[log.queries[rows] == log.query_labels.index(query)]
        if by_arm and log.arms is not None:
            rows = rows[log.arms[rows] >= 0]
        self.sessions = rows[~log.repeated[rows]]
        self.n_repeated = len(rows) - len(self.sessions)
        if not len(self.sessions):
            what = "session in an experiment" if by_arm else f"session of the query {query!r}"
            raise ValueError(f"the log has no {what}")
        self.log, self.query, self.item_labels = log, query, log.item_labels
        self.reward, self.cutoff, self.by_arm = reward, cutoff, by_arm
        items = log.items[self.sessions]
        if by_arm and log.arms is not None:
            items = log.arms[self.sessions, None]
        first, self.index, self.counts = distinct(items)
        self.lists: list[Ranking] = [
            tuple(item for item in ranking if item >= 0) for ranking in items[first].tolist()
        ]
        self._by_user: dict[Ranking, tuple[sparse.csr_array, Indices]] = {}
        earned = log.earned(reward, cutoff)[self.sessions]
        self.earned: Floats = earned.sum(axis=1).astype(np.float64)

    def __len__(self) -> int:
        return len(self.sessions)

    @property
    def today(self) -> int:
        """The first session of today: of the last block of time, or of the last `RECENT` sessions,
        whichever are more; of several with one coarse time the first.
        """
        first = max(0, len(self) - max(len(self) // BLOCKS, RECENT))
        return next((start for start, stop in self._coarse if start <= first < stop), first)

    @cached_property
    def _coarse(self) -> list[tuple[int, int]]:
        """The sessions of each time, as a range, that has more than a block of them."""
        starts, counts = self._by_time
        coarse = counts * BLOCKS > len(self)
        return [*zip(starts[coarse].tolist(), (starts + counts)[coarse].tolist(), strict=True)]

    @cached_property
    def _by_time(self) -> tuple[Indices, Indices]:
        """The first session of each time, and how many sessions it has; nothing without times."""
        if self.log.times is None:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        times = self.log.times[self.sessions]
        starts = np.flatnonzero(np.append(True, times[1:] != times[:-1]))
        return starts, np.diff(starts, append=len(self))

    def blocks_of(self, sessions: Indices, n_blocks: int) -> Indices:
        """The block of time of each of some sessions, which are in the order of time.

        Args:
            sessions: increasing numbers of sessions.
            n_blocks: `BLOCKS` times the number of parts of a block.
        """
        blocks: Indices = n_blocks * sessions // len(self)
        if self.by_arm:  # the order within a time may be that of the arms
            starts, counts = self._by_time
            middles = np.repeat(starts + counts // 2, counts)
            return n_blocks * middles[sessions] // len(self) if len(starts) else 0 * blocks
        for start, stop in self._coarse:
            rows = slice(*np.searchsorted(sessions, (start, stop)))
            block, parts = BLOCKS * ((start + stop) // 2) // len(self), n_blocks // BLOCKS
            blocks[rows] = block * parts + parts * (sessions[rows] - start) // (stop - start)
        return blocks

    @property
    def times_hide_hours(self) -> bool:
        """Whether most sessions share their time with more than `SAME_TIME` others, and times are
        no hours of the day, such as dates or numbers of weeks. Rows of one date may be in any
        order, so that lists that follow the hours cannot be told.
        """
        counts = self._by_time[1]
        is_coarse = 2 * counts[counts > SAME_TIME].sum() > len(self)
        if not is_coarse or self.log.times is None:
            return False
        times = self.log.times[self.sessions]
        are_seconds = ((times >= FIRST_SECOND) & (times <= LAST_SECOND)).all()
        return not are_seconds or len(np.unique(times % DAY)) < LEAST_TIMES_OF_DAY

    @cached_property
    def n_blocks(self) -> int:
        """The blocks of time that have sessions."""
        return int(np.count_nonzero(np.bincount(self.blocks_of(np.arange(len(self)), BLOCKS))))

    @cached_property
    def rows(self) -> dict[Ranking, int]:
        """The row of each list."""
        return {ranking: row for row, ranking in enumerate(self.lists)}

    @cached_property
    def _sessions_of(self) -> list[Indices]:
        return grouped(self.index)[1]

    def sessions_of(self, ranking: Ranking) -> Indices:
        """The sessions that showed exactly this list, in the order of time."""
        row = self.rows.get(ranking)
        return np.empty(0, np.int64) if row is None else self._sessions_of[row]

    def sums(self, ranking: Ranking, n_blocks: int) -> Floats:
        """``(3, n_blocks)`` of the sessions that showed a list, by blocks of time: how many there
        are, the sum of their rewards and that of the squares.
        """
        sessions = self.sessions_of(ranking)
        blocks = self.blocks_of(sessions, n_blocks)
        rewards = self.earned[sessions]
        weights = np.ones(len(sessions)), rewards, rewards**2
        return np.stack([np.bincount(blocks, values, n_blocks) for values in weights])

    @cached_property
    def users(self) -> Indices | None:
        """``(N,)`` the users, numbered from 0; None where the log does not know them."""
        if self.log.users is None:
            return None
        return np.unique(self.log.users[self.sessions], return_inverse=True)[1]

    @cached_property
    def variance(self) -> float:
        """Of what a session of the query earns. Where users are known it is that between users, as
        in a test in which all sessions of a user show the same list.
        """
        deviations = self.earned - self.earned.mean()
        if self.users is not None:
            deviations = np.bincount(self.users, deviations)
        return float((deviations**2).sum() / len(self))

    def by_user(self, ranking: Ranking) -> tuple[sparse.csr_array, Indices]:
        """What users add to the errors of a list's mean rewards, by blocks of time.

        Returns:
            ``(users, BLOCKS)`` for each user the sum of the deviations from the mean of the block,
            times N/(N - n) for n of the N sessions of the block; and the users of each block.
        """
        assert self.users is not None
        if ranking not in self._by_user:
            sessions = self.sessions_of(ranking)
            blocks = self.blocks_of(sessions, BLOCKS)
            counts, sums, _ = self.sums(ranking, BLOCKS)
            means = sums / np.maximum(counts, 1)
            cells, inverse, own = np.unique(
                self.users[sessions] * BLOCKS + blocks, return_inverse=True, return_counts=True
            )
            user, block = np.divmod(cells, BLOCKS)
            deviations = np.bincount(inverse, self.earned[sessions] - means[blocks], len(cells))
            deviations = deviations * counts[block] / np.maximum(counts[block] - own, 1)
            shape = int(self.users.max()) + 1, BLOCKS
            table = sparse.csr_array((deviations, (user, block)), shape)
            self._by_user[ranking] = table, np.bincount(block, minlength=BLOCKS)
        return self._by_user[ranking]

    def arm(self, ranking: Ranking) -> str:
        """The name of an arm."""
        return self.log.arm_labels[ranking[0]]

    def labels(self, ranking: Ranking) -> tuple[str, ...]:
        """The labels of a list's items; of an arm those of the list that it showed most often of
        late, if the sessions are of one query and any shows the arm.
        """
        if self.by_arm:
            if self.query is None:
                return ()
            lists = self.log.items[self.sessions[self.sessions_of(ranking)[-RECENT:]]]
            if not len(lists):
                return ()
            first, _, counts = distinct(lists)
            ranking = tuple(item for item in lists[first[counts.argmax()]].tolist() if item >= 0)
        return tuple(self.item_labels[item] for item in ranking)

    def ranking(self, labels: Sequence[str]) -> Ranking:
        """The list with these labels, which the query must have shown."""
        ranking = tuple(item_numbers(self.log, labels))
        if ranking not in self.rows:
            raise ValueError(f"the log never shows the production list {csv_line(labels)}")
        return ranking

    def is_hardly_shown(self, ranking: Ranking) -> bool:
        """Whether today shows a list in fewer than a tenth of the sessions that its share of all
        sessions makes expect: it was withdrawn, and a cache may still show it now and then.
        """
        sessions = self.sessions_of(ranking)
        lately = np.count_nonzero(sessions >= self.today) / (len(self) - self.today)
        return bool(lately < HARDLY * len(sessions) / len(self))

    def in_production(self) -> Ranking:
        """Today's production list: the most frequent one of today; of two that are as frequent,
        the one that was shown last.

        ⚠ Not the most frequent one of the whole log: that may be a list of the past. Among lists of
        several lengths it is one of the longest; a shorter list counts for those it begins.
        """
        rows, ago, counts = np.unique(
            self.index[self.today :][::-1], return_index=True, return_counts=True
        )
        lists = [self.lists[row] for row in rows]
        shown = Counter(dict(zip(lists, counts.tolist(), strict=True)))
        lengths = {len(ranking) for ranking in lists}

        def frequency(place: int) -> tuple[int, int]:
            return sum(shown[lists[place][:size]] for size in lengths), -int(ago[place])

        longest = [place for place, each in enumerate(lists) if len(each) == max(lengths)]
        return lists[max(longest, key=frequency)]

    def mean(self, ranking: Ranking) -> float:
        """What a session that showed a list earned, whenever that was; NaN if none did."""
        earned = self.earned[self.sessions_of(ranking)]
        return float(earned.mean()) if len(earned) else math.nan

    def first_shown(self, production: Ranking) -> int | None:
        """The first session that showed the production list, if it is none of the first block of
        time: else the list may be older than the log.
        """
        sessions = self.sessions_of(production)
        return None if sessions[0] * BLOCKS < len(self) else int(sessions[0])

    def share_today(self, production: Ranking) -> float:
        """Which share of the sessions of today shows the production list or its beginning."""
        begins = [production[:size] for size in range(1, len(production) + 1)]
        rows = [self.rows[start] for start in begins if start in self.rows]
        return float(np.isin(self.index[self.today :], rows).mean())

    def by_block(self, ranking: Ranking, least: int = 5) -> tuple[float, ...]:
        """What a session with this list earned in each of `BLOCKS` blocks of time; NaN where fewer
        than ``least`` sessions show it.
        """
        counts, sums, _ = self.sums(ranking, BLOCKS)
        means = np.where(counts >= least, sums / np.maximum(counts, 1), np.nan)
        return tuple(means.tolist())

    def moments(self) -> tuple[str, ...]:
        """When each of `BLOCKS` blocks of time begins."""
        blocks = self.blocks_of(np.arange(len(self)), BLOCKS)
        starts = np.searchsorted(blocks, np.arange(BLOCKS))
        return tuple(self.moment(min(start, len(self) - 1)) for start in starts.tolist())

    def moment(self, session: int) -> str:
        """When a session of a log with times was: the date where these are seconds since 1970.

        Example:
            >>> log = ClickLog([[0]], [[1]], [0], ("a",), ("q",), times=[20_485 * 86_400])
            >>> QueryLists(log, "q", "clicks", None).moment(0)
            '2026-02-01'
        """
        assert self.log.times is not None
        time = float(self.log.times[self.sessions[session]])
        if FIRST_SECOND <= time <= LAST_SECOND:
            text = datetime.fromtimestamp(time, UTC).isoformat(" ", "minutes")
            return text.removesuffix("+00:00").removesuffix(" 00:00")
        return f"time {time:.10g}"


def length_in_days(log: ClickLog) -> float | None:
    """The length of a log in days, at least one; None if its times are no seconds since 1970.

    Example:
        >>> dates = [20_485 * 86_400, 20_486 * 86_400]
        >>> length_in_days(ClickLog([[0]] * 2, [[1]] * 2, [0] * 2, ("a",), ("q",), times=dates))
        2.0
    """
    times = log.times
    if (
        times is None
        or not len(times)
        or not FIRST_SECOND <= times.min() <= times.max() <= LAST_SECOND
    ):
        return None
    days = (times.max() - times.min()) / DAY
    if len(np.unique(times % DAY)) < LEAST_TIMES_OF_DAY:
        days += 1  # dates
    return float(max(days, 1))
