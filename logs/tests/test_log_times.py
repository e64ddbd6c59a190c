"""The times of a click log: what they may be, and that they stay with their sessions."""

import time
from datetime import datetime
from itertools import permutations

import numpy as np
import polars as pl
import pytest

from clickgym_logs import ClickLog, read_log
from clickgym_logs.fitting import train_test_split

LABELS = tuple("ab"), ("p", "q")


def make_log(times, n=4):
    items, clicks, queries = [[0, 1], [1, 0]], [[1, 0], [0, 0]], [0, 1]
    arrays = (part * (n // 2) for part in (items, clicks, queries))
    return ClickLog(*arrays, *LABELS, times=times)


@pytest.mark.parametrize(
    ("times", "seconds", "dtype"),
    [
        ([3, 1, 2, 1], [3, 1, 2, 1], np.int64),
        ([3, 1.5, 2, -1], [3, 1.5, 2, -1], np.float64),
        (np.array([2**62 + 1, 2**62, 0, -(2**62)]), [2**62 + 1, 2**62, 0, -(2**62)], np.int64),
    ],
)
def test_times_are_numbers(times, seconds, dtype):
    log = make_log(times)
    assert log.times.dtype == dtype
    np.testing.assert_array_equal(log.times, np.array(seconds, dtype))


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([1, 2, 3], r"times has shape \(3,\); expected \(4,\)"),
        ([1, 2, np.nan, 4], r"times\[2\] is nan; expected a finite number"),
        ([1, 2, 3, "2026-01-01"], "times is .*; expected an array of numbers"),
        (
            np.array([2**63, 1, 2, 3], np.uint64),
            r"times\[0\] is 9223372036854775808; expected an integer",
        ),
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
    for part, sessions in (
        (log[[5, 3]], [5, 3]),
        (log[7:9], [7, 8]),
        (log[log.queries == 1], range(1, n, 2)),
    ):
        assert part.times.tolist() == [10 * session for session in sessions]
    train, test = train_test_split(log, 0.25)
    assert sorted([*train.times, *test.times]) == log.times.tolist()
    assert len(test) == 10
    assert (test.times // 10 % 2 == test.queries).all()


# ------------------------------------------------------------------------------------------------
# -------------- readers

HEAD = "session,query,position,item,clicked,time\n"


def written(path, times, head=HEAD):
    """Two rows for each session."""
    rows = (
        f"{i},q,{k},{item},{int(k == 1)},{time}"
        for i, time in enumerate(times)
        for k, item in ((1, "a"), (2, "b"))
    )
    path.write_text(head + "\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize(
    ("texts", "times", "dtype"),
    [
        (["30", "-1", "2", "02"], [30, -1, 2, 2], np.int64),
        ([str(2**62 + 1), str(2**62), "0", "1"], [2**62 + 1, 2**62, 0, 1], np.int64),
        (["30", "1e3", "2.5", "-.5"], [30, 1000, 2.5, -0.5], np.float64),
        (
            ["1970-01-02", "1970-01-01T00:00:01Z", "1970-01-01 01:00:00.25+01:00", "19700101"],
            [86400, 1, 0.25, 0],
            np.float64,
        ),
    ],
)
def test_a_table_has_times_in_a_column(tmp_path, texts, times, dtype):
    log = read_log(written(tmp_path / "log.csv", texts))
    assert log.times.dtype == dtype
    np.testing.assert_array_equal(log.times, np.array(times, dtype))
    named = written(tmp_path / "named.csv", texts, HEAD.replace("time", "when"))
    assert read_log(named).times is None
    np.testing.assert_array_equal(read_log(named, columns={"time": "when"}).times, log.times)
    assert read_log(tmp_path / "log.csv", columns={"time": ""}).times is None


def test_chance_is_that_of_sessions_at_different_times():
    """Two users a time meet each of thirty lists, click differently, and are logged ten times each:
    at another time nobody clicks alike, so that it was no chance that those ten did.
    """
    lists = list(permutations(range(5), 3))[:30]
    users = [(0, [0, 0, 0]), (0, [1, 0, 0]), (1, [0, 1, 0]), (1, [0, 0, 1])]
    sessions = [(ranking, *user) for ranking in lists for user in users for _ in range(10)]
    items, times, clicks = zip(*sessions, strict=True)
    log = ClickLog(items, clicks, [0] * 1200, tuple("abcde"), ("q",), times=times)
    np.testing.assert_array_equal(log.repeated, np.arange(1200) % 10 > 0)


@pytest.fixture
def far_east(monkeypatch):
    """The machine's clock is nine hours ahead of UTC."""
    if not hasattr(time, "tzset"):
        pytest.skip("this system sets no time zone of a process")
    monkeypatch.setenv("TZ", "XXX-9")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("far_east")
def test_a_time_without_an_offset_is_utc_wherever_the_machine_is(tmp_path):
    texts = ["1970-01-02", "1970-01-01T09:00:00", "1970-01-01T09:00:00+09:00"]
    log = read_log(written(tmp_path / "log.csv", texts))
    np.testing.assert_array_equal(log.times, [86400, 9 * 3600, 0])


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (
            ["1", "2", "x"],
            r"line 6: the session '2' has the time 'x', which is neither a number, as",
        ),
        (["2026-01-01", "2"], r"the time '2', which is neither"),
        (["2026-01-01", "2026-02-30"], r"the time '2026-02-30', which is neither"),
        (["1", ""], r"line 4 has no value in the column 'time'"),
        (["1", "nan"], r"line 4: the session '1' has the time 'nan', which is neither"),
    ],
)
def test_an_unreadable_time_is_named(tmp_path, texts, message):
    path = written(tmp_path / "log.csv", texts)
    with pytest.raises(ValueError, match=message) as error:
        read_log(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "kind", [pl.Datetime("ms"), pl.Datetime("us", "Europe/Paris"), pl.Datetime("ns"), pl.Date]
)
def test_columns_of_dates_are_seconds_in_utc(tmp_path, kind):
    moments = [datetime(1970, 1, 1, 1, 30, 0, 250_000), datetime(1970, 1, 2), datetime(1970, 1, 2)]
    columns = {"session": [0, 1, 1], "position": [1, 1, 2], "item": ["a", "b", "c"]}
    frame = pl.DataFrame(columns | {"clicked": [0, 1, 0], "time": moments})
    plain = frame.with_columns(
        pl.col("time").cast(kind)
        if not isinstance(kind, pl.Datetime) or not kind.time_zone
        else pl.col("time").dt.replace_time_zone("UTC").dt.convert_time_zone(kind.time_zone)
    )
    assert plain.schema["time"] == kind
    expected = [0.0 if kind == pl.Date else 5400.25, 86400.0]
    assert read_log(plain).times.tolist() == expected
    plain.write_parquet(tmp_path / "log.parquet")
    assert read_log(tmp_path / "log.parquet").times.tolist() == expected
    gap = plain.with_columns(time=pl.when(pl.col("session") == 0).then(pl.col("time")))
    with pytest.raises(ValueError, match="row 2 has no value in the column 'time'"):
        read_log(gap)
