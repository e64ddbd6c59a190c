"""Can a log be simulated? Lists are left out, and their clicks predicted."""

import re
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from clickgym.logs import ClickLog, check_models, write_tidy

LISTS = np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0], [0, 2, 1]])


def log_of(rates, n=500, n_queries=8, seed=0):
    """Four lists of three items for each query; ``rates(attraction, list)`` are the click rates by
    position.
    """
    rng = np.random.default_rng(seed)
    items, clicks = [], []
    for query in range(n_queries):
        attraction = rng.uniform(0.1, 0.9, 3)
        for ranking in LISTS:
            items.append(np.tile(3 * query + ranking, (n, 1)))
            clicks.append(rng.random((n, 3)) < rates(rng, attraction, ranking))
    queries = np.repeat(np.arange(n_queries), len(LISTS) * n)
    labels = (
        tuple(map(str, range(3 * n_queries))),
        tuple(f"query {query}" for query in range(n_queries)),
    )
    return ClickLog(np.concatenate(items), np.concatenate(clicks), queries, *labels)


def of_the_pbm(rng, attraction, ranking):
    return attraction[ranking] * [0.9, 0.6, 0.4]


def of_nobody(rng, attraction, ranking):
    """Each list has click rates of its own."""
    return rng.uniform(0.1, 0.6, 3)


def of_positions(rng, attraction, ranking):
    return np.array([0.5, 0.3, 0.2])


def test_users_of_a_click_model_are_predicted_up_to_the_noise():
    checked = check_models(log_of(of_the_pbm), ["PBM", "CM"])
    pbm, cm = checked.table.iter_rows(named=True)
    assert checked.verdict == "can"
    assert (checked.n_queries, checked.n_lists) == (8, 32)
    assert pbm["low"] > 0.9
    assert pbm["noise"] == pytest.approx(np.sqrt(0.2 * 0.8 / 500), rel=0.2)
    assert pbm["error"] < 1.6 * pbm["noise"]  # what 1,500 other sessions leave unknown adds to it
    assert cm["high"] < pbm["low"]


def test_two_lists_a_query_tell_attraction_from_examination():
    """While one query leaves out a list, the others show their items at several positions."""
    log = log_of(of_the_pbm, n_queries=20)
    is_kept = np.isin(np.arange(len(log)) // 500 % len(LISTS), [0, 2])
    table = check_models(log[is_kept], ["PBM"]).table
    assert table["low"][0] > 0.9


def test_users_whose_clicks_depend_on_the_whole_list_are_not():
    checked = check_models(log_of(of_nobody), ["PBM", "UBM"])
    assert checked.verdict == "cannot"
    assert (checked.table["high"] < 0.5).all()


def test_log_that_cannot_tell():
    assert check_models(log_of(of_positions), ["PBM"]).verdict == "unknown"
    assert check_models(log_of(of_the_pbm, n_queries=4), ["PBM"]).verdict == "unknown"


def test_the_most_frequent_lists_are_left_out():
    """Five of a query at most, each shown in 100 sessions or more: not the twelve shown rarely."""
    orders = np.array(list(permutations(range(4), 3)))[:18]
    counts = np.array([99] * 12 + [100, 110, 120, 130, 140, 150])
    items = np.repeat(orders, counts, axis=0)
    clicks = np.random.default_rng(0).random(items.shape) < 0.3
    log = ClickLog(items, clicks, np.zeros(len(items)), tuple("abcd"), ("q",))
    assert check_models(log, ["CM"]).n_lists == 5
    assert check_models(log[: counts[:14].sum()], ["CM"]).n_lists == 2


def test_a_log_with_one_list_per_query_is_refused():
    log = ClickLog([[0, 1]] * 200, [[1, 0]] * 200, [0] * 200, ("a", "b"), ("q",))
    with pytest.raises(
        ValueError, match="no query has two lists, one of them in 100 sessions or more"
    ):
        check_models(log)
    two = ClickLog([[0, 1]] * 200 + [[2, 3]] * 20, [[1, 0]] * 220, [0] * 220, tuple("abcd"), ("q",))
    with pytest.raises(
        ValueError, match="no item of a list that can be left out is in other lists"
    ):
        check_models(two, ["PBM"])


def test_the_command_prints_a_table_and_the_sentence(tmp_path, printed):
    command = ["check-models", str(tmp_path / "log.csv")]
    log = log_of(of_the_pbm, n=100)
    write_tidy(log, tmp_path / "log.csv")
    shown = printed(command)
    assert re.search(r"^PBM  +0\.\d{4}  ", shown, re.MULTILINE)
    assert check_models(log).sentence in " ".join(shown.split())
    write_tidy(log_of(of_the_pbm, n=100, n_queries=4), tmp_path / "log.csv")
    assert "nan" not in printed(command)


def test_lists_that_the_log_does_not_tell_are_said():
    """Items that change places only within the halves of a list."""
    exchanges = np.array([[0, 1, 2, 3], [1, 0, 2, 3], [0, 1, 3, 2], [1, 0, 3, 2]])
    rng, n = np.random.default_rng(0), 8 * 4 * 500
    queries = np.repeat(np.arange(8), 4 * 500)
    items = np.resize(exchanges, (n, 4)) + 4 * queries[:, None]
    clicks = rng.random((n, 4)) < rng.uniform(0.1, 0.9, 32)[items] * [0.9, 0.7, 0.5, 0.3]
    labels = tuple(map(str, range(32))), tuple("abcdefgh")
    limit = "In 8 of 8 queries the log does not tell PBM of all lists"
    told = check_models(ClickLog(items, clicks, queries, *labels), ["PBM"]).sentence
    assert told.startswith("Simulations of this log can be trusted to order only lists like those")
    assert limit in told
    mixed = rng.permuted(items, axis=1)
    assert limit not in check_models(ClickLog(mixed, clicks, queries, *labels), ["PBM"]).sentence


def test_noise_is_by_user():
    """The same sessions again, by the same users, make no click rate surer."""
    rng = np.random.default_rng(6)
    items = np.array([[0, 1], [1, 0]])[rng.integers(2, size=1500)]
    clicks = rng.random((1500, 2)) < 0.3
    log = ClickLog(items, clicks, np.zeros(1500), ("a", "b"), ("q",), users=np.arange(1500))
    copies = log[np.repeat(np.arange(1500), 4)]
    single, often, blind = (
        check_models(part, ["CM"]).table["noise"][0]
        for part in (log, copies, replace(copies, users=None))
    )
    assert often == pytest.approx(single, rel=0.03)
    assert blind == pytest.approx(single / 2, rel=0.03)
