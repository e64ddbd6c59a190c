"""Logged lists compared with the production list: least squares with a fixed effect of each block
of time, and standard errors clustered by block where blocks differ by more than chance.

Nothing is assumed about users here: a list is judged by the sessions that showed it. Two things
must not count as its gain:

- *Time.* Users click more in one week than in another, and lists change, too. So a list is compared
  with the production list within blocks of time only, twenty of equal numbers of sessions.
- *Length.* A list of K items is shown in short where a session has fewer results: its first ones.
  So lists are compared among sessions of one length, and only where these show a difference.

A block in which the lists take turns, such as one by day and one by night, compares hours and not
lists. Its sessions of the list come in few runs without the production list between them: in a
random order of n(Q) and n(P) sessions, n(Q) (n(P) + 1) / (n(Q) + n(P)) runs are expected.

In each stratum b (block and length) that shows both lists in five sessions, and the list in more
than a third of the expected runs, d(b) is the difference of mean rewards, and
v(b) = (s²(Q) + 1/n(Q))/n(Q) + (s²(P) + 1/n(P))/n(P) its variance. The gain is
Δ = Σ w(b) d(b) / Σ w(b) with w(b) = n(Q) n(P) / (n(Q) + n(P)), which is the coefficient of the list
in a regression of rewards on the list and on indicators of the strata. Its standard error is
√(Σ w(b)² v(b)) / Σ w(b).

A change that lasts for a while, such as a visit of bots, can fall into one list's sessions even
within a block, and within a block clicks and lists may both follow the hours of the day. So the
p-value is the largest one within these and finer blocks, down to ten sessions each, and a gain
must hold in more ways, the first three at `STEADY`:

- without any four neighbouring blocks;
- in most blocks (sign test), where their gains differ by more than chance (Cochran's test). There
  the standard error is also multiplied by the root of Cochran's ratio, as clustering by block would
  do, so that sessions that were logged several times do not make it too small;
- in the sessions that show whole lists, where shorter ones also compare them;
- lately: in the last four, in the last five, and so on, of the blocks that compare the lists, at
  `LATELY`, for a gain that has gone is still there on average. It is a veto and no proof, as few
  blocks often do not show a gain that is there;
- today: the last block shows the list, and not in less than a tenth of the sessions that its share
  of the log makes expect. A list that was withdrawn may still be shown now and then by a cache.

Where fewer than four blocks compare two lists, the log cannot tell. Nor can a log without times,
with fewer than four different ones, or with dates, weeks or other times that many sessions share
and that hide the hours: the order of its sessions may be any.

*Users.* Where the log knows users, the sessions of one user are not independent. Then the deviation
of each session from the mean of its list and stratum, times its weight in Δ, is summed by user and
block. The variance of Δ, or of a part of the blocks, is the sum of the squares of these over users.
A user who has n of the N sessions of a list in a stratum pulls its mean, so that the sum is
multiplied by N/(N - n), as by a jackknife. Few users with many sessions make the error itself
uncertain: p-values are those of Student's t with 3 (Σψ²)²/Σψ⁴ degrees of freedom, where ψ are the
sums by user (Satterthwaite, by their fourth moments). A stratum needs five users of each list.

*Arms.* The arms of an experiment were drawn at random. They are compared as lists are, also within
blocks, for the share of an arm may have changed from one block to another. If it changed, each
session or each user must have been drawn anew: users who keep the arm of their first visit are
other users in each arm. No block is refused, and no time is divided, so that dates are as good as
seconds, except for the date on which the share changed. Two of the further ways are asked: whether
the arm is shown today, and whether its gain has fallen. It has if the last four blocks, or the last
five, and so on to three quarters, show less of a gain than the blocks before, at `FALLEN`. A test
that has to show its gain in the last blocks alone, at `LATELY`, would miss a third of the gains
that it is planned for.

Source: Bell, McCaffrey, *Bias reduction in standard errors for linear regression with multi-stage
    samples*, Survey Methodology 2002 (the jackknife, and degrees of freedom).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import bdtrc, chdtrc, stdtr, stdtrit

from .lists import Floats, QueryLists, Ranking
from .log import BLOCKS
from .reasons import Doubt, Reason

LEAST_SESSIONS = 100
"""Sessions of a list that is compared."""
LEAST_IN_STRATUM = 5
"""Sessions of each of two lists with which a stratum compares them."""
LEAST_BLOCKS = 4
"""Blocks that have to compare two lists."""
LEAST_SHARE = 0.5
"""Share of a list's sessions in these blocks that finer ones have to show beside production."""
TURNS = 1 / 3
"""Share of the runs expected in a random order, below which two lists took turns."""
LEFT_OUT = 4
"""Neighbouring blocks that a gain must be able to do without."""
FINER = 4
"""Parts of a block, of such a part, and so on, down to `LEAST_IN_BLOCK` sessions."""
LEAST_IN_BLOCK = 10
"""Sessions of a finer block: few, as the hours of a day in a small log have no more."""
STEADY = 0.05
"""The largest p-value in each of the three further ways."""
LATELY = 0.25
"""The largest p-value of the last blocks: they are few, so that no more can be asked of a gain."""
FALLEN = 0.01
"""The largest p-value with which the gain of an arm has fallen."""
UNEVEN = 0.01
"""The p-value of Cochran's test below which blocks differ by more than chance."""
WIDEST = 0.025
"""Simultaneous intervals err with this probability on each side, or less."""
LEAST_P = 0.001
"""Smaller p-values are printed as smaller than it."""
POWER = 0.8
"""The probability with which a gain of the size that is called detectable is proved."""
WITHOUT_NEIGHBOURS = np.array(
    [
        [not first <= block < first + LEFT_OUT for block in range(BLOCKS)]
        for first in range(BLOCKS - LEFT_OUT + 1)
    ]
)
"""The blocks that remain, for each choice of the neighbours that are left out."""
PASSED = 0.94
"""The probability of a significant gain over all blocks at which the gain also holds in the further
ways with the probability `POWER`. It was found in 40,000 simulations of twenty equal blocks.
"""


@dataclass(frozen=True)
class Measured:
    """A logged list beside the production list.

    Attributes:
        labels: of its items, from the top.
        sessions: that showed it.
        earned: what a session that showed it earned, whenever that was.
        last_shown: when the last of them was; empty for a log without times.
        blocks: of the 20, those that compare it with the production list.
        reason: why the log cannot compare them; then the rest is NaN. None where it can.
        base: what the production list earned per session, in these blocks.
        difference: how much more this list earned there.
        standard_error: of the difference.
        expected: the difference and its standard error where they tell what to expect. Else those
            of the finest blocks, where these show significantly less or alone do not prove it; or
            of the last blocks, where the gain of an arm has fallen.
        interval: of the difference; the intervals of all lists of the query hold at once.
        p_value: of no gain, the largest within blocks and finer blocks, times the number of lists
            compared; at most 1.
        detectable: the smallest gain that would have been proved with a probability of 80 %.
        variance: of what a session would earn in an A/B test by user: as the standard error has it,
            or that of all sessions of the query, if that is larger. It is larger where users got
            another list in each session, or where many sessions are too short for a difference.
        doubts: the p-value, which is not multiplied, in each of the further ways of the module's
            docstring: above `STEADY` the doubt stands. It is NaN where the way was not tested, and
            1 or 0 where another bound decides whether the doubt stands.
        share: of the query's sessions those that are long enough to show a difference; the others
            gain nothing. All numbers above are of sessions that do. 1 for an arm.
        arm: which arm of an experiment this is; then the labels are those of its latest frequent
            list. Empty without an experiment.
    """

    labels: tuple[str, ...]
    sessions: int
    earned: float
    last_shown: str
    blocks: int
    reason: Reason | None
    base: float = math.nan
    difference: float = math.nan
    standard_error: float = math.nan
    expected: tuple[float, float] = (math.nan, math.nan)
    interval: tuple[float, float] = (math.nan, math.nan)
    p_value: float = math.nan
    detectable: float = math.nan
    variance: float = math.nan
    doubts: dict[Doubt, float] = field(default_factory=dict)
    share: float = 1.0
    arm: str = ""

    def is_better(self, level: float) -> bool:
        """Whether the list is proved better than the production list."""
        return self.p_value <= level and not self._doubted

    def was_better(self, level: float) -> bool:
        """Whether the list was better in the time that it was shown, and is hardly shown any more;
        such a time may be one stretch.
        """
        doubted = {*self._doubted} - {Doubt.ONE_STRETCH}
        return self.p_value <= level and doubted == {Doubt.ENDED}

    @property
    def _doubted(self) -> list[Doubt]:
        return [doubt for doubt, p_value in self.doubts.items() if p_value > STEADY]

    def withheld(self, level: float) -> Doubt | None:
        """Why a list that seems to be better is not called so; None for others."""
        if self.was_better(level) or (not self.p_value <= level and not self.interval[0] > 0):
            return None
        return next(iter(self._doubted), None)

    def withheld_in_words(self, level: float) -> str:
        """The same with the date of the last session, if this is the reason; empty for others."""
        doubt = self.withheld(level)
        return f"{doubt}, last {self.last_shown}" if doubt == Doubt.ENDED else doubt or ""


def signed(interval: tuple[float, float]) -> str:
    """An interval of a difference in words."""
    return "{:+.4f} to {:+.4f}".format(*interval)


def p_value_in_words(p_value: float) -> str:
    """What stands behind the letter p.

    Example:
        >>> p_value_in_words(0.0123), p_value_in_words(4e-9)
        ('= 0.012', '< 0.001')
    """
    return f"< {LEAST_P}" if p_value < LEAST_P else f"= {p_value:.2g}"


def measure(shown: QueryLists, production: Ranking, level: float) -> tuple[Measured, ...]:
    """Compare the lists of a query with its production list.

    Args:
        shown: the lists of the query.
        production: the production list.
        level: the probability that any of the intervals errs on one side; at most `WIDEST`.

    Returns:
        The lists as long as the production list with `LEAST_SESSIONS`: those proved better first,
        then by the lower end of their intervals, at last those that the log cannot compare.
    """

    @cache  # the same for all lists
    def of_production(size: int, n_blocks: int) -> Floats:
        return shown.sums(production[:size], n_blocks)

    comparisons = [
        _Comparison(shown, shown.lists[row], production, of_production)
        for row in np.flatnonzero(shown.counts >= LEAST_SESSIONS).tolist()
        if len(shown.lists[row]) == len(production) and shown.lists[row] != production
    ]
    n_compared = sum(not comparison.reason for comparison in comparisons)
    measured = [comparison.measured(level, n_compared) for comparison in comparisons]
    return tuple(
        sorted(
            measured,
            key=lambda entry: (
                entry.reason is not None,
                not entry.is_better(level),
                -entry.sessions if entry.reason else -entry.interval[0],
            ),
        )
    )


class _Comparison:
    """A list compared with the production list, by lengths and blocks of time."""

    def __init__(
        self,
        shown: QueryLists,
        ranking: Ranking,
        production: Ranking,
        of_production: Callable[[int, int], Floats],
    ) -> None:
        self.shown, self.ranking, self.production = shown, ranking, production
        self.of_production = of_production
        # The lengths of sessions that show a difference, the whole list at last.
        self.lengths = [
            size
            for size in range(1, len(ranking) + 1)
            if ranking[:size] != production[:size] and ranking[:size] in shown.rows
        ]
        self.sums = self._sums(BLOCKS)
        enough = self._numbers().min(axis=0) >= LEAST_IN_STRATUM
        if not shown.by_arm:
            enough &= ~self._takes_turns()
        self.weights, self.gains, variances = _strata(self.sums, enough)
        self.by_user = self._by_user() if shown.users is not None else []
        few = self.weights**2 * (1 / np.maximum(self.sums[:, 0], 1) ** 2).sum(axis=0)
        self.covariance = self._covariance(variances.sum(axis=0), self.by_user, few.sum(axis=0))
        self.of_whole_lists = self._covariance(variances[-1], self.by_user[-1:], few[-1])
        self.design = self.covariance.sum() / max(variances.sum(), 1e-300)
        self.blocks = int((self.weights.sum(axis=0) > 0).sum())
        self.reason: Reason | None = None
        if not self.weights[-1].any() or (self.blocks < LEAST_BLOCKS and not shown.by_arm):
            self.reason = Reason.APART
        if shown.log.times is None or (
            not shown.by_arm and (shown.n_blocks < LEAST_BLOCKS or shown.times_hide_hours)
        ):
            self.reason = Reason.NO_TIME

    def _sums(self, n_blocks: int) -> Floats:
        """``(2, 3, lengths, n_blocks)``: of the list and of the production list, as
        `QueryLists.sums`.
        """
        ours = [self.shown.sums(self.ranking[:size], n_blocks) for size in self.lengths]
        theirs = [self.of_production(size, n_blocks) for size in self.lengths]
        return np.stack([np.stack(ours, axis=1), np.stack(theirs, axis=1)])

    def _numbers(self) -> Floats:
        """``(2, lengths, BLOCKS)`` the users of each stratum, or its sessions without users."""
        if self.shown.users is None:
            return self.sums[:, 0]
        both = self.ranking, self.production
        return np.array(
            [[self.shown.by_user(ranking[:size])[1] for size in self.lengths] for ranking in both]
        )

    def _by_user(self) -> list[sparse.csr_array]:
        """For each length ``(users, BLOCKS)``, what each user adds to the error of the gains."""
        ours, theirs = self.weights / np.maximum(self.sums[:, 0], 1)
        return [
            self.shown.by_user(self.ranking[:size])[0] @ sparse.diags(ours[row])
            - self.shown.by_user(self.production[:size])[0] @ sparse.diags(theirs[row])
            for row, size in enumerate(self.lengths)
        ]

    def _covariance(
        self, variances: Floats, by_user: list[sparse.csr_array], few: Floats
    ) -> Floats:
        """``(BLOCKS, BLOCKS)`` of the gains of blocks, which are independent without users."""
        if not by_user:
            return np.diag(variances)
        total = sum(by_user[1:], start=by_user[0])
        covariance: Floats = (total.T @ total).toarray() + np.diag(few)
        return covariance

    def _freedom(self) -> float:
        """The degrees of freedom of the standard error: of infinitely many sessions, or of some
        users; infinite where these earn all the same.
        """
        if not self.by_user:
            return math.inf
        squares = sum(part.sum(axis=1) for part in self.by_user) ** 2
        fourth = float((squares**2).sum())
        return 3 * float(squares.sum()) ** 2 / fourth if fourth > 0 else math.inf

    def _takes_turns(self) -> NDArray[np.bool_]:
        """``(lengths, BLOCKS)`` whether the list took turns with the production list."""
        runs = np.empty((len(self.lengths), BLOCKS))
        for row, size in enumerate(self.lengths):
            ours = self.shown.sessions_of(self.ranking[:size])
            above = np.searchsorted(self.shown.sessions_of(self.production[:size]), ours)
            block = self.shown.blocks_of(ours, BLOCKS)
            begins = np.diff(above, prepend=-1) + np.diff(block, prepend=-1) > 0
            runs[row] = np.bincount(block[begins], minlength=BLOCKS)
        ours, theirs = self.sums[:, 0]
        took_turns: NDArray[np.bool_] = runs * (ours + theirs) <= TURNS * ours * (theirs + 1)
        return took_turns

    def measured(self, level: float, n_compared: int) -> Measured:
        """The comparison, one of ``n_compared`` of the query."""
        shown = self.shown
        sessions = shown.sessions_of(self.ranking)
        last_shown = "" if shown.log.times is None else shown.moment(int(sessions[-1]))
        arm = shown.arm(self.ranking) if shown.by_arm else ""
        labels, earned = shown.labels(self.ranking), shown.mean(self.ranking)
        facts = labels, len(sessions), earned, last_shown, self.blocks, self.reason
        if self.reason:
            return Measured(*facts, arm=arm)
        total, freedom = self.weights.sum(), self._freedom()
        weights, gains = self.weights.sum(axis=0), self.gains.sum(axis=0)
        uneven, sign_p_value = 1.0, math.nan
        if not shown.by_arm:
            uneven, sign_p_value = _unevenness(weights, gains, np.diag(self.covariance))
        difference = float(gains.sum() / total)
        error = uneven * math.sqrt(self.covariance.sum()) / total
        p_value = n_compared * float(_p_values(difference, error, freedom))
        finer, doubts = math.nan, {}
        z = -float(stdtrit(freedom, min(level, WIDEST) / n_compared))
        passes, power = -float(stdtrit(freedom, level / n_compared)), NormalDist().inv_cdf(POWER)
        detectable = (passes + power) * error
        expected = difference, error
        used = np.flatnonzero(weights)
        if shown.by_arm:
            fallen, of_late = self._fall(used, freedom)
            doubts = {
                Doubt.ENDED: float(shown.is_hardly_shown(self.ranking)),
                Doubt.FALLEN: float(fallen <= FALLEN),
            }
            if fallen <= FALLEN:
                expected = of_late
        else:
            if difference > error:  # else nothing is proved or promised, whatever finer blocks say
                finer, gain, its_error = self._finer(freedom)
                finer *= n_compared
                spread = math.sqrt(max(its_error**2 - error**2, 0.0))
                less = gain < difference - NormalDist().inv_cdf(1 - STEADY) * spread
                if less or p_value <= level < finer:
                    expected = gain, its_error
            rest_errors = uneven * _errors(WITHOUT_NEIGHBOURS, self.covariance)
            rest = _p_values(WITHOUT_NEIGHBOURS @ gains, rest_errors, freedom)
            late = np.arange(BLOCKS) >= used[: len(used) - LEAST_BLOCKS + 1, None]
            late_p_values = _p_values(late @ gains, _errors(late, self.covariance), freedom)
            whole_error = uneven * math.sqrt(self.of_whole_lists.sum())
            doubts = {
                Doubt.ENDED: float(shown.is_hardly_shown(self.ranking)),
                Doubt.FEW_BLOCKS: sign_p_value,
                Doubt.ONE_STRETCH: float(rest.max()),
                Doubt.LATELY: float(late_p_values.max() > LATELY),
                Doubt.SHORT_LISTS: float(_p_values(self.gains[-1].sum(), whole_error, freedom)),
                Doubt.SHORTER_BLOCKS: float(finer > level),
            }
            remains = (WITHOUT_NEIGHBOURS @ weights > 0).all()
            detectable = (passes + NormalDist().inv_cdf(PASSED)) * error if remains else math.inf
        base = (self.weights * _means(self.sums[1])).sum() / total
        return Measured(
            *facts,
            base=float(base),
            difference=difference,
            standard_error=error,
            expected=expected,
            interval=(difference - z * error, difference + z * error),
            p_value=min(1.0, float(np.fmax(p_value, finer))),
            detectable=detectable,
            variance=max(float(error**2 * total), shown.variance),
            doubts=doubts,
            share=1.0 if shown.by_arm else self._share(),
            arm=arm,
        )

    def _share(self) -> float:
        """The share of the query's sessions that reach the first position with another item."""
        pairs = enumerate(zip(self.ranking, self.production, strict=True), 1)
        first = next(position for position, (ours, theirs) in pairs if ours != theirs)
        return float((self.shown.log.lengths[self.shown.sessions] >= first).mean())

    def _fall(self, used: NDArray[np.int64], freedom: float) -> tuple[float, tuple[float, float]]:
        """Whether the gain of the last blocks is below that of the others: the smallest p-value of
        no fall, for the last four to the last three quarters; and their gain with its error.
        """
        starts = used[len(used) // 4 : max(0, len(used) - LEAST_BLOCKS + 1)]
        if not len(starts):
            return 1.0, (math.nan, math.nan)
        weights, gains = self.weights.sum(axis=0), self.gains.sum(axis=0)
        is_late = np.arange(BLOCKS) >= starts[:, None]
        late = is_late / (is_late @ weights)[:, None]
        fall = ~is_late / (~is_late @ weights)[:, None] - late
        p_values = _p_values(fall @ gains, _errors(fall, self.covariance), freedom)
        row = int(p_values.argmin())
        errors = _errors(late, self.covariance)
        return float(p_values[row]), (float(late[row] @ gains), float(errors[row]))

    def _finer(self, freedom: float) -> tuple[float, float, float]:
        """The largest p-value within finer parts of the blocks, and the gain within the finest with
        its error, by the variances over the whole log, which users make larger as in blocks. All
        are NaN where finer parts hold less than half of the list's sessions beside the production
        list.
        """
        overall = self.sums.sum(axis=3)
        counts = np.maximum(overall[:, 0], 1)
        spread = overall[:, 2] / counts - (overall[:, 1] / counts) ** 2 + 1 / counts
        finest = len(self.shown) // (BLOCKS * LEAST_IN_BLOCK)
        powers = (FINER**power for power in range(1, 20))
        largest = finest_gain = finest_error = math.nan
        for parts in (*itertools.takewhile(lambda parts: parts < finest, powers), finest):
            if parts < 2:
                continue
            compared = np.repeat(self.weights > 0, parts, axis=1)
            ours, theirs = sums = self._sums(parts * BLOCKS) * compared
            if ours[0][theirs[0] > 0].sum() >= LEAST_SHARE * ours[0].sum():
                weights = _weights(sums)
                gain = (weights * (_means(ours) - _means(theirs))).sum()
                shares = (weights**2 / np.maximum(sums[:, 0], 1)).sum(axis=2)
                error = math.sqrt(self.design * (spread * shares).sum())
                largest = float(np.fmax(largest, _p_values(gain, error, freedom)))
                total = max(float(weights.sum()), 1e-300)
                finest_gain, finest_error = float(gain) / total, error / total
        return largest, finest_gain, finest_error


def _means(sums: Floats) -> Floats:
    means: Floats = sums[1] / np.maximum(sums[0], 1)
    return means


def _weights(sums: Floats) -> Floats:
    """n(Q) n(P) / (n(Q) + n(P))."""
    ours, theirs = sums[:, 0]
    weights: Floats = ours * theirs / np.maximum(ours + theirs, 1)
    return weights


def _strata(sums: Floats, enough: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
    """Weights, weighted gains and their variances of strata, ``(lengths, BLOCKS)`` each; 0 in
    strata that compare nothing.
    """
    counts = np.maximum(sums[:, 0], 1)
    weights = np.where(enough, _weights(sums), 0.0)
    means = sums[:, 1] / counts
    # 1/n more, as by a session with a click more or less: a few sessions alike are not certain.
    variances = (sums[:, 2] / counts - means**2 + 1 / counts) / counts
    return weights, weights * (means[0] - means[1]), weights**2 * variances.sum(axis=0)


def _p_values(gains: Floats | float, errors: Floats | float, freedom: float) -> Floats:
    """The p-values of no gain; 1 where nothing is compared."""
    errors = np.asarray(errors)
    ratios = -gains / np.where(errors > 0, errors, 1.0)
    p_values: Floats = np.where(errors > 0, stdtr(freedom, ratios), 1.0)
    return p_values


def _errors(blocks: NDArray[np.bool_] | Floats, covariance: Floats) -> Floats:
    """The standard errors of weighted sums over the blocks, such as over a choice of them."""
    errors: Floats = np.sqrt(np.einsum("ij,jk,ik->i", blocks, covariance, blocks))
    return errors


def _unevenness(weights: Floats, gains: Floats, variances: Floats) -> tuple[float, float]:
    """Where the gains of blocks differ by more than chance, the root of Cochran's ratio and the
    p-value of the sign test; else 1 and NaN, because the signs are not tested.
    """
    used = weights > 0
    weights, gains, variances = weights[used], gains[used], variances[used]
    mean = gains.sum() / weights.sum()
    cochran = float(((gains - weights * mean) ** 2 / variances).sum())
    freedom = len(weights) - 1
    if chdtrc(freedom, cochran) >= UNEVEN:
        return 1.0, math.nan
    signs = float(bdtrc((gains > 0).sum() - 1, len(gains), 0.5))
    return math.sqrt(max(cochran / freedom, 1.0)), signs
