"""Sessions that a log has several times, told from users who click alike by chance."""

from dataclasses import replace

import numpy as np
import pytest

from clickgym_logs import ClickLog

N = 6000
TWO, TEN = (
    np.array([range(5), range(4, -1, -1)]),
    np.array([np.roll(range(5), j) for j in range(10)]),
)


def independent(rng, n):
    return rng.random((n, 5)) < 0.3


def mostly_absent(rng, n):
    """Six in ten users look at nothing: clicks depend on each other."""
    return (rng.random((n, 5)) < 0.3) & (rng.random((n, 1)) < 0.4)


def log_of(lists, clicks, times, queries=None):
    queries = np.zeros(len(lists), int) if queries is None else queries
    labels = tuple(f"q{number}" for number in range(queries.max() + 1))
    return ClickLog(lists, clicks, queries, tuple("abcde"), labels, times=times)


COARSE = {
    "one date": lambda rng: (TWO[rng.integers(2, size=N)], np.full(N, 20260301)),
    "two weeks": lambda rng: (TWO[rng.integers(2, size=N)], np.arange(N) // (N // 2)),
    "weeks": lambda rng: (TWO[rng.integers(2, size=N)], np.arange(N) * 52 // N),
    "a list a day": lambda rng: (TEN[np.arange(N) * 10 // N], np.arange(N) * 10 // N),
    "a stray pair": lambda rng: (
        np.r_[TEN[np.arange(N) * 10 // N], TEN[:1]],
        np.r_[np.arange(N) * 10 // N, 99],
    ),
    "queries by day": lambda rng: (
        TWO[rng.integers(2, size=N)],
        np.arange(N) * 10 // N,
        np.arange(N) * 10 // N,
    ),
    "no time": lambda rng: (TWO[rng.integers(2, size=N)], None),
    "seconds": lambda rng: (TWO[rng.integers(2, size=N)], rng.integers(N, size=N)),
}


@pytest.mark.parametrize("users", [independent, mostly_absent])
@pytest.mark.parametrize("kind", COARSE)
def test_different_users_of_coarse_times(kind, users):
    rng = np.random.default_rng(0)
    lists, times, *queries = COARSE[kind](rng)
    assert not log_of(lists, users(rng, len(lists)), times, *queries).repeated.any()


@pytest.mark.parametrize("n_copies", [N, 1200, 210])
def test_copies_of_exact_times(n_copies):
    rng = np.random.default_rng(0)
    log = log_of(TWO[rng.integers(2, size=N)], mostly_absent(rng, N), 2 * np.arange(N))
    copies = rng.choice(N, n_copies, replace=False)
    expected = np.repeat([False, True], [N, n_copies])
    assert (log[np.r_[np.arange(N), copies]].repeated == expected).all()


def test_copies_beside_users_of_one_second():
    """Some users of one second click alike by chance; with the copies they count once."""
    rng = np.random.default_rng(0)
    log = log_of(TEN[rng.integers(10, size=N)], independent(rng, N), rng.integers(N, size=N))
    copies = rng.choice(N, 4000, replace=False)
    assert 4000 <= log[np.r_[np.arange(N), copies]].repeated.sum() < 4100


def test_users_of_a_frequent_list_are_not_judged_by_those_of_rare_ones():
    """In a week of dates, nearly all users of a query click on its first item, and those of 2,000
    rare queries hardly ever alike: these have nearly all lists, but hardly any pairs of one time.
    """
    rng = np.random.default_rng(0)
    rare = np.repeat(np.arange(1, 2001), 8)
    clicks = rng.random((8000 + len(rare), 5)) < 0.4
    clicks[:8000] = (rng.random((8000, 1)) < 0.85) & (np.arange(5) == 0)
    times = np.r_[rng.integers(7, size=8000), np.tile([*range(7), 6], 2000)]
    queries = np.r_[np.zeros(8000, int), rare]
    log = log_of(np.tile(TWO[0], (len(times), 1)), clicks, times, queries)
    assert not log.repeated.any()


def test_copies_of_lists_that_are_shown_once():
    """One of six copies is of a list with one time, which tells nothing; the others tell."""
    rng = np.random.default_rng(0)
    log = log_of(TEN[np.minimum(np.arange(1001), 1)], independent(rng, 1001), np.arange(1001))
    rows = np.r_[np.arange(1001), 0, 7:12]
    assert log[rows].repeated.tolist() == [False] * 1001 + [True] * 6


def test_a_session_of_another_user_is_no_copy():
    rng = np.random.default_rng(0)
    log = log_of(TWO[rng.integers(2, size=N)], mostly_absent(rng, N), 2 * np.arange(N))
    copies = log[np.r_[np.arange(N), np.arange(1200)]]
    users = np.arange(N + 1200) % N
    users[-200:] = N
    with_users = replace(copies, users=users)
    assert with_users.repeated.sum() == 1000
    assert copies.repeated.sum() == 1200
