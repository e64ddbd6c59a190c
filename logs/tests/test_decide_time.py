"""Lists measured within blocks of time: against sums written out by hand, and on logs whose lists
change with time.

The logs are given by blocks: in each of twenty blocks so many sessions show production, so many
another list, and so many of these have a click; the rest of the block shows a list that nobody
clicks.
"""

from dataclasses import replace
from math import comb, sqrt
from statistics import NormalDist

import numpy as np
import pytest

from clickgym_logs import ClickLog, decide
from clickgym_logs.log import time_blocks
from clickgym_logs.measured import DistinctLists, measure

PRODUCTION, OTHER, REST = [0, 1, 2], [3, 1, 0], [2, 4, 3]
LABELS = tuple("abcde")
LEVEL = 0.005


def log_of_blocks(blocks):
    """The log of ``(production, clicks, other, clicks)`` for each of twenty blocks, all of one
    size.
    """
    size = max(block[0] + block[2] for block in blocks)
    items, clicks = [], []
    for production, their_clicks, other, our_clicks in blocks:
        rest = size - production - other
        items += [PRODUCTION] * production + [OTHER] * other + [REST] * rest
        ones = (
            [1] * their_clicks
            + [0] * (production - their_clicks)
            + [1] * our_clicks
            + [0] * (other - our_clicks)
            + [0] * rest
        )
        clicks += [[one, 0, 0] for one in ones]
    return ClickLog(items, clicks, np.zeros(len(items)), LABELS, ("shoes",))


def measured(log, level=LEVEL):
    """OTHER by `measure`: what was measured, or why nothing was; without the list of the rest."""
    shown = DistinctLists(log, "clicks", None)
    gains, refused = measure(shown, np.array(PRODUCTION), level)
    (found,) = [each for each in (*gains, *refused) if each.labels == ("d", "b", "a")]
    return found, len(gains)


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
                means = [np.mean(each) for each in (ours, theirs)]
                variance = sum(
                    (np.var(each) + 1 / len(each)) / len(each) for each in (ours, theirs)
                )
                strata.append(
                    (
                        block,
                        len(ours) * len(theirs) / (len(ours) + len(theirs)),
                        means[0] - means[1],
                        variance,
                    )
                )

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


def test_blocks_are_twenty_equal_parts_in_the_order_of_time():
    log = ClickLog([[0]] * 50, [[0]] * 50, [0] * 50, ("a",), ("q",))
    assert time_blocks(log).tolist() == [20 * session // 50 for session in range(50)]
    backwards = replace(log, times=np.arange(50)[::-1].copy())
    assert time_blocks(backwards).tolist() == [20 * session // 50 for session in range(50)][::-1]
    assert time_blocks(replace(log, times=np.zeros(50))).tolist() == time_blocks(log).tolist()


def test_the_gain_its_error_and_both_p_values():
    """Two kinds of blocks: 10 sessions of the list beside 30 in production, and 40 beside 20."""
    log = log_of_blocks([(30, 6, 10, 3), (20, 4, 40, 12)] * 10)
    found, n_lists = measured(log)
    weights = 300 / 40, 800 / 60
    errors = [
        (rate * (1 - rate) + 1 / n) / n + (0.16 + 1 / m) / m
        for rate, n, m in ((0.3, 10, 30), (0.3, 40, 20))
    ]
    error = sqrt(10 * (weights[0] ** 2 * errors[0] + weights[1] ** 2 * errors[1])) / (
        10 * sum(weights)
    )
    assert found.difference == pytest.approx(0.1)
    assert found.standard_error == pytest.approx(error)
    assert error == pytest.approx(0.034)
    assert n_lists == 2
    assert found.p_value == pytest.approx(2 * NormalDist().cdf(-0.1 / error))
    z = NormalDist().inv_cdf(1 - LEVEL / 2)
    assert found.interval == pytest.approx((0.1 - z * error, 0.1 + z * error))
    assert (found.difference, found.standard_error, found.worst_p_value) == pytest.approx(
        (*by_hand(log)[:2], by_hand(log)[3])
    )
    assert found.base == pytest.approx(0.2)
    assert (found.blocks, found.sessions, found.share, found.value) == (
        20,
        500,
        1.0,
        pytest.approx(0.3),
    )


def test_weights_are_those_of_the_surer_blocks():
    """Equally many blocks say +.25 and -.1; the mean of all blocks is .075, and weights n(Q) + n(P)
    would say .19375.
    """
    log = log_of_blocks([(120, 30, 120, 60), (100, 30, 10, 2)] * 10)
    found, _ = measured(log)
    assert found.difference == pytest.approx((60 * 0.25 - 1000 / 110 * 0.1) / (60 + 1000 / 110))
    assert found.difference == pytest.approx(0.204, abs=5e-4)


def test_a_list_shown_when_users_click_more_is_not_better():
    """Simpson's paradox: worse by .05 in each block, but shown in the second half, when everybody
    clicks more.
    """
    log = log_of_blocks([(80, 16, 20, 3)] * 10 + [(20, 12, 80, 44)] * 10)
    found, _ = measured(log)
    assert found.pooled == pytest.approx(0.47 - 0.28)
    assert found.difference == pytest.approx(-0.05)
    assert found.p_value == 1.0
    assert abs(found.pooled - found.difference) > 2 * found.standard_error


def log_of_nights(share_by_night):
    """40 days of 600 sessions, by night with more clicks and more of the list that is worse at all
    hours.
    """
    rng = np.random.default_rng(0)
    night = np.arange(24_000) % 600 >= 300
    other = rng.random(24_000) < np.where(night, share_by_night, 0.1)
    lists = np.where(other[:, None], OTHER, PRODUCTION)
    rates = np.where(night, 0.7, 0.1) - 0.02 * other
    clicks = np.stack([rng.random(24_000) < rates, *np.zeros((2, 24_000), bool)], axis=1)
    return ClickLog(lists, clicks, np.zeros(24_000), LABELS, ("q",))


def test_a_gain_that_only_the_hours_of_the_day_bring_is_not_better():
    """A block of two days mixes the hours. Finer blocks do not, and show that nothing is gained."""
    log = log_of_nights(0.9)
    found, _ = measured(log)
    assert found.difference > 6 * found.standard_error
    assert found.doubt < 0.05
    assert found.p_value == found.finer_p_value > 0.05


def test_a_gain_that_fails_within_finer_blocks_is_not_proved():
    assert decide(log_of_nights(0.8)).verdict == "none proved better"


def test_a_visit_of_bots_carries_no_verdict():
    """In one block, or in three neighbouring ones, bots click on one list; elsewhere both lists are
    alike.
    """
    for visited in ([7], [7, 8, 9]):
        log = log_of_blocks(
            [(40, 8, 100, 100) if block in visited else (120, 24, 20, 4) for block in range(20)]
        )
        found, _ = measured(log)
        assert found.p_value < LEVEL
        assert found.worst_p_value == pytest.approx(0.5)
        assert found.doubt > 0.05


def test_a_true_gain_survives_without_any_fifth_of_the_log():
    log = log_of_blocks([(40, 8, 10, 4)] * 20)
    found, _ = measured(log)
    error = sqrt((0.24 + 0.1) / 10 + (0.16 + 0.025) / 40)
    assert found.p_value == pytest.approx(NormalDist().cdf(-0.2 / (error / sqrt(20))))
    assert found.worst_p_value == pytest.approx(NormalDist().cdf(-0.2 / (error / sqrt(16))))
    assert (found.sign_p_value, found.doubt) == (0.0, found.worst_p_value)


def test_visits_of_bots_at_several_times_carry_no_verdict():
    """Seven blocks in four places say +.8, thirteen -.05: the gain is there without any four
    neighbours, but in few blocks.
    """
    visited = [1, 6, 7, 12, 13, 17, 18]
    log = log_of_blocks(
        [(40, 8, 40, 40) if block in visited else (40, 8, 20, 3) for block in range(20)]
    )
    found, _ = measured(log)
    assert found.p_value < LEVEL
    assert found.worst_p_value < 0.05
    assert found.sign_p_value == pytest.approx(sum(comb(20, k) for k in range(7, 21)) / 2**20)
    assert found.doubt == found.sign_p_value > 0.9
    few = [
        (40, 8, 40, 40)
        if block in (1, 7, 13)
        else (40, 8, 20, 3)
        if block == 17
        else (80, 16, 0, 0)
        for block in range(20)
    ]
    assert measured(log_of_blocks(few))[0].sign_p_value == pytest.approx(5 / 16)


def test_a_gain_that_differs_with_time_but_is_there_in_most_blocks_counts():
    log = log_of_blocks([(40, 8, 40, 10 if block % 4 else 38) for block in range(20)])
    found, _ = measured(log)
    assert found.sign_p_value == pytest.approx(2**-20)
    assert found.doubt < 0.05 < found.difference


def test_blocks_left_out_are_neighbours_in_time():
    """The list was shown in every fourth block: four neighbouring blocks hold one of the five, and
    not four of them.
    """
    log = log_of_blocks(
        [(40, 8, 40, 16) if block % 4 == 0 else (80, 16, 0, 0) for block in range(20)]
    )
    found, _ = measured(log)
    error = sqrt((0.24 + 1 / 40) / 40 + (0.16 + 1 / 40) / 40)
    assert found.blocks == 5
    assert found.worst_p_value == pytest.approx(NormalDist().cdf(-0.2 / (error / sqrt(4))))


REFUSED = {
    "never together": ([(80, 16, 0, 0), (0, 0, 80, 40)] * 10, 0, 0.0),
    "began late": (
        [(80, 16, 0, 0)] * 14 + [(40, 8, 40, 20)] * 3 + [(0, 0, 80, 40)] * 3,
        3,
        120 / 360,
    ),
    "three blocks with both": ([(80, 16, 0, 0)] * 17 + [(40, 8, 40, 20)] * 3, 3, 1.0),
    "mostly alone": (
        [(76, 16, 4, 0)] * 6 + [(60, 8, 20, 10)] * 4 + [(0, 0, 80, 40)] * 10,
        4,
        80 / 904,
    ),
    "four of it in a block": ([(76, 16, 4, 1)] * 16 + [(50, 10, 30, 10)] * 4, 4, 120 / 184),
}


@pytest.mark.parametrize(("blocks", "together", "share"), REFUSED.values(), ids=REFUSED)
def test_a_list_that_replaced_another_is_not_compared(blocks, together, share):
    """Fewer than four blocks show both lists in five sessions each, or they hold less than half of
    the list's sessions.
    """
    found, _ = measured(log_of_blocks(blocks))
    assert found.blocks == together
    if together >= 4 and share >= 0.5:
        assert found.worst_p_value == 1.0  # nothing is left without the four blocks
    else:
        assert (found.sessions, found.share) == (
            sum(block[2] for block in blocks),
            pytest.approx(share),
        )
        assert not hasattr(found, "p_value")


def test_lists_refused_are_not_counted_among_those_compared():
    plain = log_of_blocks([(40, 8, 10, 4)] * 20)
    log = ClickLog(  # with 150 sessions of a third list at the end
        np.vstack([plain.items, np.tile([4, 1, 2], (150, 1))]),
        np.vstack([plain.clicks, np.zeros((150, 3))]),
        np.zeros(1150),
        LABELS,
        ("shoes",),
    )
    shown = DistinctLists(log, "clicks", None)
    gains, refused = measure(shown, np.array(PRODUCTION), LEVEL)
    assert [each.labels for each in refused] == [("e", "b", "c")]
    (gain,) = gains
    assert gain.labels == tuple(LABELS[item] for item in OTHER)
    assert gain.p_value == pytest.approx(NormalDist().cdf(-gain.difference / gain.standard_error))


def test_several_lengths_are_strata():
    """Short sessions show the first two items; the sums are those of single sessions, by block and
    length.
    """
    rng = np.random.default_rng(3)
    n = 6000
    lists = np.array([PRODUCTION, OTHER, REST])[rng.choice(3, n, p=[0.5, 0.3, 0.2])]
    lists[:, 2] = np.where(rng.random(n) < 0.4, -1, lists[:, 2])
    rates = np.where((lists[:, :1] == 3), 0.35, 0.2) + 0.3 * np.arange(n)[:, None] / n
    clicks = (rng.random(lists.shape) < rates) * (lists >= 0)
    log = ClickLog(lists, clicks, np.zeros(n), LABELS, ("shoes",), times=rng.permutation(n))
    found, _ = measured(log)
    wanted = by_hand(log, (2, 3))
    assert (found.difference, found.standard_error, found.worst_p_value) == pytest.approx(
        (wanted[0], wanted[1], wanted[3])
    )
    assert found.share == 1.0
    counts, means = np.zeros((2, 2)), np.zeros((2, 2))
    for row, length in enumerate((2, 3)):
        for column, wanted in enumerate((OTHER, PRODUCTION)):
            here = ((lists >= 0).sum(axis=1) == length) & (
                lists[:, :length] == wanted[:length]
            ).all(axis=1)
            counts[row, column], means[row, column] = here.sum(), clicks[here].sum() / here.sum()
    weights = counts.prod(axis=1) / counts.sum(axis=1)
    assert found.pooled == pytest.approx(weights @ (means[:, 0] - means[:, 1]) / weights.sum())


def test_a_list_that_is_compared_in_short_alone_is_refused():
    """Whole lists were never shown together: what the list earns where its end is shown too, nobody
    knows.
    """
    whole = log_of_blocks([(80, 16, 0, 0)] * 10 + [(0, 0, 10, 5)] * 10)
    short = log_of_blocks([(40, 8, 30, 10)] * 20)
    items = np.vstack([np.where(np.arange(3) == 2, -1, short.items), whole.items])
    order = np.argsort(
        np.r_[np.arange(len(short)) / len(short), np.arange(len(whole)) / len(whole)], kind="stable"
    )
    log = ClickLog(
        items[order],
        np.vstack([short.clicks, whole.clicks])[order],
        np.zeros(len(items)),
        LABELS,
        ("shoes",),
    )
    found, _ = measured(log)
    assert (found.sessions, found.blocks) == (100, 20)
    assert not hasattr(found, "p_value")


def test_a_session_earns_its_clicks_or_one_for_any():
    log = ClickLog([[0, 1, 2]] * 3, [[1, 0, 1], [0, 0, 0], [0, 0, 1]], [0] * 3, LABELS, ("shoes",))
    assert DistinctLists(log, "clicks", None).earned.tolist() == [2.0, 0.0, 1.0]
    assert DistinctLists(log, "any_click", None).earned.tolist() == [1.0, 0.0, 1.0]
    assert DistinctLists(log, "any_click", 2).earned.tolist() == [1.0, 0.0, 0.0]


def test_lengths_at_which_both_lists_are_one_tell_of_no_gain():
    """Half of the sessions show only the first item, which is the same: the gain of the others
    counts by half.
    """
    log = log_of_blocks([(40, 8, 10, 4)] * 20)
    items = np.where(
        log.items == 3,
        0,
        np.where(log.items == 0, np.where(log.items[:, :1] == 3, 3, 0), log.items),
    )
    short = np.tile([0, -1, -1], (1000, 1))
    order = np.argsort(np.r_[np.arange(1000), np.arange(1000)], kind="stable")
    both = ClickLog(
        np.vstack([items, short])[order],
        np.vstack([log.clicks, np.tile([[0, 0, 0], [1, 0, 0]], (500, 1))])[order],
        np.zeros(2000),
        LABELS,
        ("shoes",),
    )
    shown = DistinctLists(both, "clicks", None)
    ((found,), _) = measure(shown, np.array(PRODUCTION), LEVEL)
    whole = both[(both.items >= 0).all(axis=1)]
    ((alone,), _) = measure(DistinctLists(whole, "clicks", None), np.array(PRODUCTION), LEVEL)
    assert alone.difference == pytest.approx(0.2)
    assert found.difference == pytest.approx(0.1)
    assert found.p_value == pytest.approx(alone.p_value)
    assert found.base == pytest.approx(0.5 * alone.base + 0.5 * 0.5)
    assert found.pooled == pytest.approx(0.1)


def test_a_shuffled_log_gives_the_pooled_verdict_up_to_noise():
    """No blocks are left in it, so that Simpson's paradox returns; with times it does not."""
    log = log_of_blocks([(80, 16, 20, 3)] * 10 + [(20, 12, 80, 44)] * 10)
    order = np.random.default_rng(0).permutation(len(log))
    found, _ = measured(log[order])
    assert found.difference == pytest.approx(found.pooled, abs=found.standard_error)
    assert found.p_value < LEVEL
    timed = replace(log, times=np.arange(len(log)))[order]
    assert measured(timed)[0].difference == pytest.approx(-0.05)


def some_log():
    rng = np.random.default_rng(5)
    lists = np.array([PRODUCTION, OTHER, REST])[rng.choice(3, 3000, p=[0.5, 0.3, 0.2])]
    return ClickLog(
        lists,
        rng.random(lists.shape) < 0.3,
        np.zeros(3000),
        LABELS,
        ("shoes",),
        times=np.arange(3000),
    )


def test_with_times_the_order_of_the_file_does_not_count():
    log = some_log()
    decided = [decide(each) for each in (log, log[np.random.default_rng(0).permutation(3000)])]
    assert decided[0] == decided[1]
    assert decided[0].timed


def test_a_session_that_the_log_has_several_times_counts_once():
    log = some_log()
    twice = log[np.sort(np.r_[np.arange(3000), np.random.default_rng(0).integers(0, 3000, 2000)])]
    assert decide(twice) == decide(log)
    assert decide(replace(twice, times=None)).n_sessions == 5000


def test_a_list_without_clicks_is_not_certain():
    """The variance of a stratum has 1/n more, so that a few sessions without clicks prove
    nothing.
    """
    log = log_of_blocks([(10, 0, 5, 0)] * 20)
    found, _ = measured(log)
    assert found.standard_error == pytest.approx(sqrt((1 / 25 + 1 / 100) / 20))


def test_at_any_level_the_intervals_err_in_one_of_forty_at_most():
    log = log_of_blocks([(40, 8, 10, 4)] * 20)
    found, _ = measured(log, 0.4)
    z = NormalDist().inv_cdf(0.975)
    assert found.interval[0] == pytest.approx(found.difference - z * found.standard_error)
