"""Lists measured within blocks of time: against sums by hand, and on logs whose lists change with
time.

The logs are given by blocks: in each of twenty blocks so many sessions show production, so many
another list, and so many of these have a click; the rest of the block shows a list that nobody
clicks.
"""

from dataclasses import replace
from math import comb, isnan, sqrt
from statistics import NormalDist

import numpy as np
import pytest

from clickgym_logs import ClickLog, decide
from clickgym_logs.lists import QueryLists
from clickgym_logs.reasons import Doubt, Reason
from clickgym_logs.within_blocks import measure

PRODUCTION, OTHER, REST = [0, 1, 2], [3, 1, 0], [2, 4, 3]
LABELS = tuple("abcde")
TOP, NONE = [1, 0, 0], [0, 0, 0]
LEVEL = 0.005
STRETCH, FEW = Doubt.ONE_STRETCH, Doubt.FEW_BLOCKS


def one_query(items, clicks, times=None):
    """A log of one query, its sessions in the order of time where no times are given."""
    n = len(items)
    times = np.arange(n) if times is None else times
    return ClickLog(items, clicks, np.zeros(n), LABELS, ("shoes",), times=times)


def log_of_blocks(blocks):
    """The log of ``(production, clicks, other, clicks)`` for each of twenty blocks, all of one
    size.
    """
    size = max(block[0] + block[2] for block in blocks)
    items, clicks = [], []
    for production, their_clicks, other, our_clicks in blocks:
        rest = size - production - other
        items += [PRODUCTION] * production + [OTHER] * other + [REST] * rest
        skips = production - their_clicks, other - our_clicks + rest
        clicks += [TOP] * their_clicks + [NONE] * skips[0] + [TOP] * our_clicks + [NONE] * skips[1]
    order = np.random.default_rng(0).permuted(np.arange(len(items)).reshape(20, size), axis=1)
    return one_query(np.array(items)[order.ravel()], np.array(clicks)[order.ravel()])


def measured(log, level=LEVEL):
    """OTHER by `measure`, and how many lists the log compares."""
    entries = measure(QueryLists(log, log.query_labels[0], "clicks", None), (0, 1, 2), level)
    (other,) = [entry for entry in entries if entry.labels == ("d", "b", "a")]
    return other, sum(not entry.reason for entry in entries)


def by_hand(log, lengths=(3,)):
    """Δ, its standard error, and the largest p-value without four neighbouring blocks, from single
    sessions.
    """
    rank = {session: place for place, session in enumerate(log.order.tolist())}
    cells = {}
    for session, (ranking, clicks) in enumerate(
        zip(log.items.tolist(), log.clicks.tolist(), strict=True)
    ):
        length = sum(item >= 0 for item in ranking)
        block = 20 * rank[session] // len(log)
        for name, wanted in (("Q", OTHER), ("P", PRODUCTION)):
            if ranking[:length] == wanted[:length]:
                cells.setdefault((block, length, name), []).append(sum(clicks))
    strata = []
    for block in range(20):
        for length in lengths:
            ours, theirs = (cells.get((block, length, name), []) for name in "QP")
            if min(len(ours), len(theirs)) >= 5:
                n, m = len(ours), len(theirs)
                variance = (np.var(ours) + 1 / n) / n + (np.var(theirs) + 1 / m) / m
                gain = np.mean(ours) - np.mean(theirs)
                strata.append((block, n * m / (n + m), gain, variance))

    def summary(strata):
        total = sum(weight for _, weight, _, _ in strata)
        difference = sum(weight * gain for _, weight, gain, _ in strata) / total
        return difference, sqrt(
            sum(weight**2 * variance for _, weight, _, variance in strata)
        ) / total

    def p_value(strata):
        return NormalDist().cdf(-summary(strata)[0] / summary(strata)[1]) if strata else 1.0

    rests = [
        [stratum for stratum in strata if not first <= stratum[0] < first + 4]
        for first in range(17)
    ]
    return *summary(strata), p_value(strata), max(p_value(rest) for rest in rests)


def test_gain_error_and_p_values():
    """Two kinds of blocks: 10 sessions of the list beside 30 in production, and 40 beside 20."""
    log = log_of_blocks([(30, 6, 10, 3), (20, 4, 40, 12)] * 10)
    other, n_lists = measured(log)
    weights = 300 / 40, 800 / 60
    errors = [
        (rate * (1 - rate) + 1 / n) / n + (0.16 + 1 / m) / m
        for rate, n, m in ((0.3, 10, 30), (0.3, 40, 20))
    ]
    error = sqrt(10 * (weights[0] ** 2 * errors[0] + weights[1] ** 2 * errors[1])) / (
        10 * sum(weights)
    )
    assert n_lists == 2
    assert (other.difference, other.standard_error) == pytest.approx((0.1, error))
    assert other.p_value == pytest.approx(2 * NormalDist().cdf(-0.1 / error))
    z = NormalDist().inv_cdf(1 - LEVEL / 2)
    assert other.interval == pytest.approx((0.1 - z * error, 0.1 + z * error))
    assert (other.difference, other.standard_error) == pytest.approx(by_hand(log)[:2])
    assert other.doubts[STRETCH] == pytest.approx(by_hand(log)[3])
    assert (other.blocks, other.sessions) == (20, 500)
    assert other.base == pytest.approx(0.2)


def test_detectable_gain():
    """The gain that is significant in 94 of 100 logs, and also holds in further ways in 80."""
    log = log_of_blocks([(40, 8, 10, 4)] * 20)
    other, _ = measured(log)
    z = NormalDist().inv_cdf
    assert other.detectable == pytest.approx((z(1 - LEVEL) + z(0.94)) * other.standard_error)


def test_no_gain_is_detectable_in_four_blocks():
    few, _ = measured(log_of_blocks([(40, 8, 40, 16)] * 4 + [(80, 16, 0, 0)] * 16))
    assert np.isinf(few.detectable)


def test_detectable_gain_is_proved_at_80_percent():
    rng = np.random.default_rng(0)
    proved = 0
    other, _ = measured(log_of_blocks([(100, 20, 100, 20)] * 20))
    for _ in range(100):
        clicks = rng.binomial(100, [[0.2], [0.2 + other.detectable]], (2, 20))
        blocks = [(100, theirs, 100, ours) for theirs, ours in clicks.T.tolist()]
        proved += measured(log_of_blocks(blocks))[0].is_better(LEVEL)
    assert 70 <= proved <= 90


def test_weights_are_those_of_the_surer_blocks():
    """Equally many blocks say +.25 and -.1; the mean of all blocks is .075, and weights n(Q) + n(P)
    would say .19375.
    """
    other, _ = measured(log_of_blocks([(120, 30, 120, 60), (100, 30, 10, 2)] * 10))
    assert other.difference == pytest.approx((60 * 0.25 - 1000 / 110 * 0.1) / (60 + 1000 / 110))
    assert other.difference == pytest.approx(0.204, abs=5e-4)


def test_simpsons_paradox():
    """Worse by .05 in each block, but shown in the second half, when everybody clicks more."""
    other, _ = measured(log_of_blocks([(80, 16, 20, 3)] * 10 + [(20, 12, 80, 44)] * 10))
    assert other.difference == pytest.approx(-0.05)
    assert other.p_value > 0.9


def test_log_without_times_compares_nothing():
    """A shuffled one has no blocks, so that Simpson's paradox returns."""
    log = log_of_blocks([(80, 16, 20, 3)] * 10 + [(20, 12, 80, 44)] * 10)
    log = log[np.random.default_rng(0).permutation(len(log))]
    assert measured(log)[0].difference == pytest.approx(-0.05)
    untimed = replace(log, times=None)
    assert [entry.reason for entry in measured(untimed)[:1]] == [Reason.NO_TIME]
    decided = decide(untimed, production=tuple("abc"))
    assert (decided.verdict, decided.recommended) == ("cannot tell", None)


@pytest.mark.parametrize("n_days", [40, 80])
def test_hours_of_the_day(n_days):
    """By night there are more clicks and more of the list that is worse at all hours: a block of
    several days mixes the hours, finer blocks do not.
    """
    rng = np.random.default_rng(0)
    night = n_days * 2 * np.arange(24_000) // 24_000 % 2 == 1
    other = rng.random(24_000) < np.where(night, 0.8, 0.1)
    lists = np.where(other[:, None], OTHER, PRODUCTION)
    rates = np.where(night, 0.7, 0.1) - 0.02 * other
    clicks = np.stack([rng.random(24_000) < rates, *np.zeros((2, 24_000), bool)], axis=1)
    log = one_query(lists, clicks)
    entry, _ = measured(log)
    assert entry.difference > 6 * entry.standard_error
    assert entry.p_value > 0.05
    assert entry.withheld(LEVEL) == Doubt.SHORTER_BLOCKS
    assert abs(entry.expected[0]) < 0.2 * entry.difference
    assert decide(log, production=tuple("abc")).to_test is None
    assert decide(log, production=tuple("abc")).verdict == "no list is proved better"


@pytest.mark.parametrize("turn", [8, 100, 500])
def test_lists_that_take_turns(turn):
    """By night there is one list and by day the other, and by night there are more clicks; a user's
    two sessions in a row with one list are no turns.
    """
    rng = np.random.default_rng(0)
    for turns in (np.arange(12_000) // turn % 2, np.repeat(rng.integers(0, 2, 6000), 2)):
        lists = np.where(turns[:, None], OTHER, PRODUCTION)
        clicks = np.zeros((12_000, 3), int)
        clicks[:, 0] = rng.random(12_000) < np.where(turns, 0.5, 0.2)
        decided = decide(one_query(lists, clicks), production=tuple("abc"))
        expected = (Reason.APART, False) if turns[1:turn].max() == 0 else (None, True)
        assert (decided.reason, decided.verdict == "better") == expected


@pytest.mark.parametrize("end", [15, 17, 20])
def test_gain_that_has_gone(end):
    """In all blocks but the last five or three there is a gain, and a loss in these."""
    log = log_of_blocks([(100, 20, 100, 40 if block < end else 15) for block in range(20)])
    other, _ = measured(log)
    assert other.p_value < LEVEL
    assert max(other.doubts[STRETCH], other.doubts[FEW]) < 0.05
    assert other.is_better(LEVEL) == (end == 20)
    assert other.withheld(LEVEL) == (None if end == 20 else Doubt.LATELY)


def test_gain_in_the_last_four_blocks_alone():
    """Four losses before them outweigh it: over the last eight blocks the list earned less. At the
    beginning of the log they are no matter.
    """
    gains, losses, last = [(110, 22, 90, 72)] * 12, [(110, 44, 90, 4)] * 4, [(110, 22, 90, 32)] * 4
    assert decide(log_of_blocks(losses + gains + last)).recommended == ("d", "b", "a")
    assert decide(log_of_blocks(gains + losses + last)).recommended == ("a", "b", "c")


@pytest.mark.parametrize("visited", [[7], [7, 8, 9]])
def test_visit_of_bots(visited):
    """In one block, or in three neighbours, bots click on one list; elsewhere lists are alike."""
    blocks = [(40, 8, 100, 100) if block in visited else (120, 24, 20, 4) for block in range(20)]
    other, _ = measured(log_of_blocks(blocks))
    assert other.doubts[STRETCH] >= 0.5


def test_visits_of_bots_at_several_times():
    """Seven blocks in four places say +.8, thirteen -.05: the gain is in too few blocks."""
    visited = [1, 6, 7, 12, 13, 17, 18]
    log = log_of_blocks(
        [(40, 8, 40, 40) if block in visited else (40, 8, 20, 3) for block in range(20)]
    )
    other, _ = measured(log)
    assert other.p_value < LEVEL
    assert other.doubts[FEW] == pytest.approx(sum(comb(20, k) for k in range(7, 21)) / 2**20)


def test_true_gain_survives_without_any_fifth_of_the_log():
    other, _ = measured(log_of_blocks([(40, 8, 10, 4)] * 20))
    error = sqrt((0.24 + 0.1) / 10 + (0.16 + 0.025) / 40)
    assert other.p_value == pytest.approx(NormalDist().cdf(-0.2 / (error / sqrt(20))))
    assert other.doubts[STRETCH] == pytest.approx(NormalDist().cdf(-0.2 / (error / sqrt(16))))


@pytest.mark.parametrize(("seed", "largest"), [(1, 0), (22, 1), (3, 2)])
def test_p_value_is_the_largest_within_finer_blocks(seed, largest):
    """Of 3,000 sessions: within 20 blocks, within fours of their parts, and within parts of ten
    sessions. The variances of the finer ones are those of all sessions of a list.
    """
    rng = np.random.default_rng(seed)
    other = rng.random(3000) < 0.3
    earned = rng.random(3000) < np.where(other, 0.25, 0.2)
    log = one_query(np.where(other[:, None], OTHER, PRODUCTION), earned[:, None] * [1, 0, 0])
    spread = [np.var(earned[shows]) + 1 / shows.sum() for shows in (other, ~other)]

    def p_value(parts):
        block = np.arange(3000) * 20 * parts // 3000
        n, m = (np.bincount(block[shows], minlength=20 * parts) for shows in (other, ~other))
        ours, theirs = (
            np.bincount(block[shows & earned], minlength=20 * parts) for shows in (other, ~other)
        )
        weight = n * m / (n + m)
        gain = (weight * (ours / np.maximum(n, 1) - theirs / np.maximum(m, 1))).sum()
        n, m = ((weight**2 / np.maximum(it, 1)).sum() for it in (n, m))
        return NormalDist().cdf(-gain / sqrt(spread[0] * n + spread[1] * m))

    p_values = [by_hand(log)[2], *map(p_value, (4, 15))]
    assert p_values[largest] == max(p_values)
    assert measured(log)[0].p_value == pytest.approx(max(p_values))


def test_uneven_gain_in_most_blocks_counts():
    """Where blocks differ by more than chance, the error grows by the root of Cochran's ratio."""
    log = log_of_blocks([(40, 8, 40, 10 if block % 4 else 38) for block in range(20)])
    other, _ = measured(log)
    assert other.is_better(LEVEL)
    assert other.standard_error > 2 * by_hand(log)[1]


def test_sessions_logged_three_times_are_not_certain():
    """Blocks then differ by more than chance, and the error grows."""
    log = some_log()
    copies = replace(log[np.repeat(np.arange(3000), 3)], times=np.arange(9000))
    assert measured(copies)[0].standard_error > 1.5 * by_hand(copies)[1]


def test_blocks_left_out_are_neighbours_in_time():
    """Shown in every fourth block: four neighbours hold one of the five, and not four of them."""
    log = log_of_blocks(
        [(40, 8, 40, 16) if block % 4 == 0 else (80, 16, 0, 0) for block in range(20)]
    )
    other, _ = measured(log)
    error = sqrt((0.24 + 1 / 40) / 40 + (0.16 + 1 / 40) / 40)
    assert other.blocks == 5
    assert other.doubts[STRETCH] == pytest.approx(NormalDist().cdf(-0.2 / (error / sqrt(4))))


REFUSED = {
    "never together": ([(80, 16, 0, 0), (0, 0, 80, 40)] * 10, 0, Reason.APART),
    "began late": (
        [(80, 16, 0, 0)] * 14 + [(40, 8, 40, 20)] * 3 + [(0, 0, 80, 40)] * 3,
        3,
        Reason.APART,
    ),
    "three blocks": ([(80, 16, 0, 0)] * 17 + [(40, 8, 40, 20)] * 3, 3, Reason.APART),
    "mostly alone": ([(76, 16, 4, 0)] * 6 + [(60, 8, 20, 10)] * 4 + [(0, 0, 80, 40)] * 10, 4, None),
    "enough": ([(76, 16, 4, 1)] * 16 + [(50, 10, 30, 10)] * 4, 4, None),
}


@pytest.mark.parametrize(("blocks", "together", "reason"), REFUSED.values(), ids=REFUSED)
def test_list_that_replaced_another(blocks, together, reason):
    """Compared only if four blocks show both in five sessions each."""
    other, _ = measured(log_of_blocks(blocks))
    assert (other.blocks, other.reason) == (together, reason)
    assert other.sessions == sum(block[2] for block in blocks)
    assert isnan(other.difference) == (reason is not None)
    assert not other.is_better(0.4)
    if not reason:
        assert other.doubts[STRETCH] == 1.0  # nothing is left without the four blocks


def test_lists_refused_are_not_counted_among_those_compared():
    plain = log_of_blocks([(40, 8, 10, 4)] * 20)
    at_end = [[4, 1, 2]] * 150
    log = one_query([*plain.items, *at_end], [*plain.clicks, *np.zeros((150, 3))])
    other, n_lists = measured(log)
    assert n_lists == 1
    assert other.p_value < 1.01 * NormalDist().cdf(-other.difference / other.standard_error)


def test_lengths_are_strata():
    """Short sessions show the first two items; the sums are those of single sessions."""
    rng = np.random.default_rng(3)
    n = 6000
    lists = np.array([PRODUCTION, OTHER, REST])[rng.choice(3, n, p=[0.5, 0.3, 0.2])]
    lists[:, 2] = np.where(rng.random(n) < 0.4, -1, lists[:, 2])
    rates = np.where((lists[:, :1] == 3), 0.35, 0.2) + 0.3 * np.arange(n)[:, None] / n
    clicks = (rng.random(lists.shape) < rates) * (lists >= 0)
    log = one_query(lists, clicks, rng.permutation(n))
    other, _ = measured(log)
    difference, error, _, without = by_hand(log, (2, 3))
    assert (other.difference, other.standard_error) == pytest.approx((difference, error))
    assert max(other.doubts.values()) >= without


def test_list_that_is_compared_in_short_alone_is_refused():
    """Whole lists were never shown together: what the list earns there, nobody knows."""
    whole = log_of_blocks([(80, 16, 0, 0)] * 10 + [(0, 0, 10, 5)] * 10)
    short = log_of_blocks([(40, 8, 30, 10)] * 20)
    items = np.vstack([np.where(np.arange(3) == 2, -1, short.items), whole.items])
    order = np.argsort(
        np.r_[np.arange(len(short)) / len(short), np.arange(len(whole)) / len(whole)], kind="stable"
    )
    clicks = np.vstack([short.clicks, whole.clicks])
    other, _ = measured(one_query(items[order], clicks[order]))
    assert (other.sessions, other.blocks, other.reason) == (100, 20, Reason.APART)


def some_log():
    rng = np.random.default_rng(5)
    lists = np.array([PRODUCTION, OTHER, REST])[rng.choice(3, 3000, p=[0.5, 0.3, 0.2])]
    clicks = rng.random(lists.shape) < 0.3
    return one_query(lists, clicks)


def test_order_of_the_file_does_not_count_with_times():
    log = some_log()
    shuffled = log[np.random.default_rng(0).permutation(3000)]
    assert measured(log) == measured(shuffled)


def test_session_logged_several_times_counts_once():
    log = some_log()
    twice = log[np.sort(np.r_[np.arange(3000), np.random.default_rng(0).integers(0, 3000, 2000)])]
    assert measured(twice) == measured(log)
    assert len(QueryLists(replace(twice, times=None), "shoes", "clicks", None)) == 5000


def test_list_without_clicks_is_not_certain():
    """The variance of a stratum has 1/n more, so that a few sessions prove nothing."""
    other, _ = measured(log_of_blocks([(10, 0, 5, 0)] * 20))
    assert other.standard_error == pytest.approx(sqrt((1 / 25 + 1 / 100) / 20))


def test_intervals_err_in_one_of_forty_at_most():
    other, _ = measured(log_of_blocks([(40, 8, 10, 4)] * 20), 0.4)
    z = NormalDist().inv_cdf(0.975)
    assert other.interval[0] == pytest.approx(other.difference - z * other.standard_error)


@pytest.mark.parametrize(
    ("reward", "cutoff", "earned"),
    [("clicks", None, [2, 0, 1]), ("any_click", None, [1, 0, 1]), ("any_click", 2, [1, 0, 0])],
)
def test_what_a_session_earns(reward, cutoff, earned):
    log = one_query([[0, 1, 2]] * 3, [[1, 0, 1], NONE, [0, 0, 1]])
    assert QueryLists(log, "shoes", reward, cutoff).earned.tolist() == earned


@pytest.mark.parametrize("n_times", [1, 3, 4, 7, 30])
@pytest.mark.parametrize(("unit", "start"), [(3_600, 1.75e9), (86_400, 1.75e9), (1, 0)])
def test_coarse_times(n_times, unit, start):
    """A time is one block where it has more sessions; fewer than four cannot tell. Within a time,
    rows are in any order: by the file, the list would be better. Dates and numbers of days hide the
    hours, and cannot tell at all.
    """
    hidden = n_times < 4 or unit != 3_600
    rng = np.random.default_rng(0)
    blocks = np.arange(12_000) * n_times // 12_000
    late = rng.random(12_000) < np.where(blocks % 2, 0.8, 0.2)
    lists = np.where(late[:, None], OTHER, PRODUCTION)
    clicks = (rng.random(12_000) < 0.2 + 0.4 * (blocks % 2) - 0.05 * late)[:, None] * [1, 0, 0]
    log = one_query(lists, clicks, start + unit * blocks)[rng.permutation(12_000)]
    shown = QueryLists(log, "shoes", "clicks", None)
    assert shown.n_blocks == min(n_times, 20)
    decided = decide(log, production=tuple("abc"))
    assert decided.verdict == ("cannot tell" if hidden else "no list is proved better")
    assert decided.reason == (Reason.NO_TIME if hidden else None)
    if not hidden and n_times <= 20:
        (other,) = decided.measured
        assert other.blocks == n_times
        assert other.difference == pytest.approx(-0.05, abs=4 * other.standard_error)


@pytest.mark.parametrize("stragglers", [0, 1, 3, 10, 40])
def test_a_withdrawn_list_that_a_cache_still_shows(stragglers):
    """It was better until it was withdrawn at .6 of the log, and is worse now; a block has 2,000
    sessions. In a third of them it would be judged by what it earns.
    """
    rng = np.random.default_rng(stragglers)
    withdrawn = np.arange(40_000) >= 24_000
    shown = rng.random(40_000) < np.where(withdrawn, stragglers / 2_000, 0.3)
    rate = 0.3 + np.where(withdrawn, -0.05, 0.05) * shown
    lists = np.where(shown[:, None], OTHER, PRODUCTION)
    clicks = (rng.random(40_000) < rate)[:, None] * [1, 0, 0]
    decided = decide(one_query(lists, clicks, np.arange(40_000)))
    assert decided.verdict != "better"
    (other,) = decided.measured
    if stragglers <= 10 and other.reason is None:
        assert other.was_better(decided.level) or other.withheld(decided.level) == Doubt.ENDED
