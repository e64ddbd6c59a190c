"""The times of a click log: what they may be, and that they stay with their sessions."""

import numpy as np
import pytest

from clickgym.offline import ClickLog, hold_out
from clickgym.offline.decision.lists import of_query

LABELS = tuple("ab"), ("p", "q")


def make_log(times, n=4, **more):
    return ClickLog([[0, 1], [1, 0]] * (n // 2), [[1, 0], [0, 0]] * (n // 2), [0, 1] * (n // 2), *LABELS, times=times, **more)


@pytest.mark.parametrize(
    ("times", "seconds", "dtype"),
    [
        ([3, 1, 2, 1], [3, 1, 2, 1], np.int64),
        ([3, 1.5, 2, -1], [3, 1.5, 2, -1], np.float64),
        (np.array([2**62 + 1, 2**62, 0, -(2**62)]), [2**62 + 1, 2**62, 0, -(2**62)], np.int64),
        (np.array([3, 1, 2, 1], np.uint8), [3, 1, 2, 1], np.int64),
        (np.array([0.5, 1, 2, 1], np.float32), [0.5, 1, 2, 1], np.float64),
        (
            ["1970-01-02", "1970-01-01T00:00:01Z", "1970-01-01 01:00:00.25+01:00", "19700101T000002"],
            [86400, 1, 0.25, 2],
            np.float64,
        ),
        (("1969-12-31T23:59:59",) * 4, [-1] * 4, np.float64),
        (np.array(["1970-01-01T00:00:01.000002"] * 4), [1.000002] * 4, np.float64),
        (np.array(["1970-01-01T00:00:01.5"] * 4, "datetime64[ns]"), [1.5] * 4, np.float64),
    ],
)
def test_times_are_numbers_or_iso_texts_as_seconds_since_1970(times, seconds, dtype):
    log = make_log(times)
    assert log.times.dtype == dtype
    np.testing.assert_array_equal(log.times, np.array(seconds, dtype))


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([1, 2, 3], r"times has shape \(3,\); expected \(4,\)"),
        ([[1, 2, 3, 4]], r"times has shape"),
        ([1, 2, np.nan, 4], r"times\[2\] is nan; expected a finite number"),
        ([1, np.inf, 2, 4], r"times\[1\] is inf; expected a finite number"),
        ([1, 2, 3, "2026-01-01"], r"times\[0\] is 1; expected a date and time in ISO 8601"),
        (["2026-01-01", 5, "2026-01-01", "2026-01-01"], r"times\[1\] is 5; expected a date and time"),
        (["2026-01-01", "2026-01-01", "2026-13-01", "2026-01-01"], r"times\[2\] is '2026-13-01'; expected a date and time"),
        (["2026-01-01", None, "2026-13-01", "2026-01-01"], r"times\[1\] is None; expected a date and time"),
        (["1", "2", "3", "4"], r"times\[0\] is '1'; expected a date and time"),
        (np.array(["2026-01-01", "NaT", "2026-01-01", "2026-01-01"], "datetime64[s]"), r"times\[1\] is 'NaT'"),
        ([True, False, True, False], "times"),
        ({1, 2, 3, 4}, "times"),
        ("2026", r"times\[0\] is '2'"),
        (np.array([2**63, 1, 2, 3], np.uint64), r"times\[0\] is 9223372036854775808; expected an integer"),
    ],
)
def test_wrong_times_are_named_in_one_line(times, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        make_log(times)
    assert "\n" not in str(error.value)


def test_order_is_stable_and_without_times_that_of_the_log():
    assert make_log([3, 1, 2, 1]).order.tolist() == [1, 3, 2, 0]
    assert make_log(None).order.tolist() == [0, 1, 2, 3]
    many = np.random.default_rng(0).integers(0, 5, 2000)
    log = make_log(many, 2000)
    assert log.order.tolist() == sorted(range(2000), key=lambda session: many[session])


def test_times_stay_with_their_sessions():
    n = 40
    log = make_log(np.arange(n) * 10, n)
    for part, sessions in ((log[[5, 3]], [5, 3]), (log[7:9], [7, 8]), (log[log.queries == 1], range(1, n, 2))):
        assert part.times.tolist() == [10 * session for session in sessions]
    train, test = hold_out(log, 0.25)
    assert sorted([*train.times, *test.times]) == log.times.tolist()
    assert len(test) == 10
    assert (test.times // 10 % 2 == test.queries).all()
    own = of_query(log, "q", np.array([3, 1]), np.array([0, 1]))
    assert own.times.tolist() == [30, 10]
    assert of_query(make_log(None), "q", np.array([1]), np.array([0, 1])).times is None


def test_a_frame_has_a_time_only_where_it_is_known():
    assert make_log(None).to_frame().columns == ["session", "query", "position", "item", "clicked"]
    frame = make_log([3, 1, 2, 1]).to_frame()
    assert frame["time"].to_list() == [3, 3, 1, 1, 2, 2, 1, 1]
