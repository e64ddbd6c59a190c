"""Tests of whether a log can be simulated: lists are left out, and their clicks are predicted."""

import re
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from clickgym.logs import ClickLog, CMEstimator, check_models, read_log, write_tidy

LISTS = np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0], [0, 2, 1]])


def log_of(rates, n=500, n_queries=8, seed=0):
    """Return a log with four lists of three items for each query. ``rates(attraction, list)`` gives
    the click rates by position.
    """
    rng = np.random.default_rng(seed)
    items, clicks = [], []
    for query in range(n_queries):
        attraction = rng.uniform(0.1, 0.9, 3)
        for ranking in LISTS:
            items.append(np.tile(3 * query + ranking, (n, 1)))
            clicks.append(rng.random((n, 3)) < rates(rng, attraction, ranking))
    queries = np.repeat(np.arange(n_queries), len(LISTS) * n)
    labels = tuple(map(str, range(3 * n_queries))), tuple(map(str, range(n_queries)))
    return ClickLog(np.concatenate(items), np.concatenate(clicks), queries, *labels)


def of_the_pbm(rng, attraction, ranking):
    return attraction[ranking] * [0.9, 0.6, 0.4]


def of_nobody(rng, attraction, ranking):
    """Click rates that no model explains, because each list has its own."""
    return rng.uniform(0.1, 0.6, 3)


def of_positions(rng, attraction, ranking):
    return np.array([0.5, 0.3, 0.2])


def of_moods(rng, attraction, ranking):
    """Click rates of the PBM, but each list makes users click more or less often."""
    return attraction[ranking] * [0.6, 0.59, 0.58] * rng.uniform(0.8, 1.2)


def test_users_of_a_click_model_are_predicted_up_to_the_noise():
    log = log_of(of_the_pbm)
    checked = check_models(log, ["PBM", "CM"])
    pbm, cm = checked.table.iter_rows(named=True)
    assert checked.verdict == "can"
    assert "32 lists of 8 queries" in checked.sentence
    assert pbm["low"] > 0.9
    assert pbm["noise"] == pytest.approx(np.sqrt(0.2 * 0.8 / 500), rel=0.2)
    assert pbm["error"] < 1.6 * pbm["noise"]  # plus the noise of 1,500 other sessions
    assert cm["high"] < pbm["low"]
    in_any_order = read_log(log.to_frame().sample(fraction=1, shuffle=True, seed=0))
    assert check_models(in_any_order, ["PBM", "CM"]).table.equals(checked.table)


def test_positions_below_the_end_of_a_list_do_not_count():
    log = log_of(of_the_pbm)
    items, clicks = log.items % 3, log.clicks.copy()  # the same three lists for all queries
    is_short = np.arange(len(log)) // 500 % len(LISTS) > 1
    items[is_short, 2], clicks[is_short, 2] = -1, 0
    cut = replace(log, items=items, clicks=clicks, item_labels=("a", "b", "c"))
    (pbm,) = check_models(cut, ["PBM"]).table.iter_rows(named=True)
    assert pbm["low"] > 0.9
    assert pbm["noise"] == pytest.approx(np.sqrt(0.2 * 0.8 / 500), rel=0.2)


def test_the_share_by_hand():
    """Two lists are each predicted from the other, and the noise of both lists is subtracted."""
    kinds = [[1, 1], [1, 0], [0, 1], [0, 0]] * 2
    clicks = np.repeat(kinds, [20, 60, 30, 90, 10, 50, 40, 100], axis=0)
    log = ClickLog(np.repeat([[0, 1], [1, 0]], 200, axis=0), clicks, [0] * 400, ("a", "b"), ("q",))
    halves, missed, differences = [log[:200], log[200:]], 0.0, 0.0
    for left_out, other in (halves, halves[::-1]):
        (rates, noise), (others, more_noise) = (
            (half.clicks.mean(axis=0), (p := (half.clicks.sum(axis=0) + 0.5) / 201) * (1 - p) / 200)
            for half in (left_out, other)
        )
        predicted = CMEstimator().fit(other).predict_proba(left_out)[0]
        missed += ((predicted - rates) ** 2 - noise).sum()
        differences += ((others - rates) ** 2 - noise - more_noise).sum()
    assert missed > 0
    share = check_models(log, ["CM"]).table["predicted"][0]
    assert share == pytest.approx(1 - missed / differences)


def test_items_that_no_other_list_of_their_query_shows_do_not_count():
    clicks = np.random.default_rng(0).random((800, 2)) < np.repeat([[0.1], [0.5]], 400, axis=0)
    items = np.repeat([[0, 1], [1, 0], [2, 3], [4, 5]], 200, axis=0)
    log = ClickLog(items, clicks, np.repeat([0, 1], 400), tuple("abcdef"), ("q", "r"))
    noise, same = (check_models(it, ["CM"]).table["noise"][0] for it in (log, log[:400]))
    assert noise == same


def test_the_interval_is_that_of_queries_drawn_again():
    """Two of ten queries have a list that no cascade predicts. Among ten queries drawn with
    replacement, five or more are of this kind with probability 0.033, so at the 2.5th percentile
    there are five.
    """
    n, items, clicks = 2500, [], []
    for query in range(10):
        for ranking, rates in (((0, 1), (0.6, 0.08)), ((1, 0), (0.2, 0.48 * (query < 8)))):
            first, second = np.arange(n) < n * rates[0], np.arange(n)[::-1] < n * rates[1]
            items.append(np.tile(ranking, (n, 1)))
            clicks.append(np.stack([first, second], axis=1))
    queries, labels = np.repeat(np.arange(10), 2 * n), (("a", "b"), tuple("0123456789"))
    log = ClickLog(np.concatenate(items), np.concatenate(clicks), queries, *labels)
    found = check_models(log, ["CM"]).table
    # Squared errors of the two queries: 0.6² + 0.48². Squared differences between their lists:
    # 2 (0.4² + 0.08²); between the lists of the other queries: 2 (0.4² + 0.4²).
    for column, hard in (("predicted", 2), ("low", 5), ("high", 0)):
        differences = 0.64 * (10 - hard) + 0.3328 * hard
        assert found[column][0] == pytest.approx(1 - 0.5904 * hard / differences, abs=0.02)


def test_two_lists_a_query_tell_attraction_from_examination():
    """If a query leaves out a list, the other queries still show their items at several
    positions.
    """
    log = log_of(of_the_pbm, n_queries=20)
    is_kept = np.isin(np.arange(len(log)) // 500 % len(LISTS), [0, 2])
    table = check_models(log[is_kept], ["PBM"]).table
    assert table["low"][0] > 0.9


@pytest.mark.parametrize(
    ("rates", "n_queries", "verdict"),
    [(of_nobody, 8, "cannot"), (of_positions, 8, "unknown"), (of_the_pbm, 4, "unknown")],
)
def test_what_is_not_said(rates, n_queries, verdict):
    """The cases are: clicks that depend on the whole list, clicks that depend only on the position,
    and clicks of few queries.
    """
    assert check_models(log_of(rates, n_queries=n_queries), ["PBM", "UBM"]).verdict == verdict


def test_where_a_list_is_clicked_does_not_say_how_often():
    checked = check_models(log_of(of_moods, n=4_000), ["PBM"])
    assert checked.table["low"][0] > 0.5
    assert checked.verdict == "cannot"
    assert -50 < int(re.search(r"only (-?\d+)% ", checked.sentence)[1]) < 50


def test_less_than_half_of_the_differences_in_numbers_of_clicks_is_too_little_to_trust():
    """The interval of the numbers of clicks contains one half."""

    def of_weak_moods(rng, attraction, ranking):
        return attraction[ranking] * [0.7, 0.59, 0.5] * rng.uniform(0.92, 1.08)

    checked = check_models(log_of(of_weak_moods, n=1_000), ["PBM"])
    assert checked.table["low"][0] > 0.9
    words = r"and (-?\d+)% \(-?\d+% to (\d+)%\) of the differences in their numbers of clicks"
    share, most = map(int, re.search(words, checked.sentence).groups())
    assert (share < 50 < most, checked.verdict) == (True, "unknown")


def test_a_log_needs_sessions_with_and_without_a_click():
    log = log_of(of_the_pbm, n=1_000)
    assert check_models(log[log.clicks.any(axis=1)]).verdict == "unknown"
    with pytest.raises(ValueError, match="no session of the log has a click"):
        check_models(log[~log.clicks.any(axis=1)], ["PBM"])


def test_lists_that_differ_from_todays_list_only_by_swaps_are_named():
    log = log_of(of_the_pbm)
    is_today = (log.items % 3 == LISTS[0]).all(axis=1)
    is_shown_less = np.arange(len(log)) % 2 == 0
    by_swaps = check_models(log[is_today | is_shown_less], ["PBM"])
    assert (by_swaps.verdict, "at only two positions" in by_swaps.sentence) == ("can", True)
    is_today = (log.items % 3 == LISTS[3]).all(axis=1)
    by_more = check_models(log[is_today | is_shown_less], ["PBM"])
    assert (by_more.verdict, "at only two positions" in by_more.sentence) == ("can", False)


def test_the_most_frequent_lists_are_left_out():
    """At most five lists of a query are left out, each shown in at least 100 sessions, so the
    twelve rarely shown lists are not.
    """
    orders = np.array(list(permutations(range(4), 3)))[:18]
    counts = np.array([99] * 12 + [100, 110, 120, 130, 140, 150])
    items = np.repeat(orders, counts, axis=0)
    clicks = np.random.default_rng(0).random(items.shape) < 0.3
    log = ClickLog(items, clicks, np.zeros(len(items)), tuple("abcd"), ("q",))
    assert "5 lists" in check_models(log, ["CM"]).sentence
    assert "2 lists" in check_models(log[: counts[:14].sum()], ["CM"]).sentence


def test_a_log_with_one_list_per_query_is_refused():
    log = ClickLog([[0, 1]] * 200, [[1, 0]] * 200, [0] * 200, ("a", "b"), ("q",))
    with pytest.raises(ValueError, match="two different lists, one of them shown in 100 sessions"):
        check_models(log)


def test_the_command_prints_a_table_and_the_sentence(tmp_path, printed):
    command = ["check-models", str(tmp_path / "log.csv")]
    write_tidy(log_of(of_the_pbm, n=100, n_queries=3), tmp_path / "log.csv")
    shown = printed(command)
    assert re.search(r"^PBM  +0\.\d{4}  ", shown, re.MULTILINE)
    assert "12 lists of 3 queries" in " ".join(shown.split())
    write_tidy(log_of(of_the_pbm, n=100, n_queries=2), tmp_path / "log.csv")
    assert "nan" not in printed(command)
