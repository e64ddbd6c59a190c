"""Bad rows of logs are refused, or left out with their sessions and counted; repeated sessions are recognised."""

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from clickgym.command_line import main
from clickgym.offline import (
    ClickLog,
    fit_models,
    names,
    read_log,
    read_open_bandit,
    read_sessions,
    read_tidy,
    read_yandex_personalized,
    read_yandex_relevance,
    write_tidy,
)

HEAD = ["session", "query", "position", "item", "clicked", "time"]
KINDS = {
    "no session": "a missing value",
    "no item": "a missing value",
    "no time": "a missing value",
    "bad position": "position is not a whole number from 1",
    "bad click": "clicked is not 0 or 1",
    "bad time": "time cannot be read",
    "missing cell": "wrong number of fields",
    "position twice": "a position twice in a session",
    "item twice": "an item twice in a session",
    "gap": "an incomplete session",
    "two queries": "two queries in a session",
    "two times": "two times in a session",
}


def text_of(rows):
    return "\n".join(",".join(row) for row in [HEAD, *rows])


def table_of(rng, n_sessions, equal):
    """Fields by session: a query, four items (or two to four) and a time each."""
    lengths = np.full(n_sessions, 4) if equal else rng.integers(2, 5, n_sessions)
    return [
        [[f"s{i}", f"q{i % 3}", str(k + 1), item, str(rng.integers(2)), str(1000 + i)] for k, item in enumerate(items[:length])]
        for i, length in enumerate(lengths.tolist())
        for items in [rng.permutation(list("abcdef")).tolist()]
    ]


def plant(rng, rows, kind):
    """Spoil a session; returns how many of its rows are there still."""
    at = int(rng.integers(len(rows)))
    if kind in ("no session", "no item", "no time"):
        rows[at][HEAD.index(kind.split()[1])] = ""
    elif kind in ("bad position", "bad click", "bad time"):
        column = {"bad position": "position", "bad click": "clicked", "bad time": "time"}[kind]
        rows[at][HEAD.index(column)] = str(rng.choice({"position": ["x", "-1", "1.5", ""], "clicked": ["2", "", "yes"]}.get(
            column, ["soon", "2026-01-01", "inf"])))  # fmt: skip
    elif kind == "missing cell":
        rows[at].pop()
    elif kind == "position twice":
        rows.insert(at, [*rows[at]])
    elif kind == "item twice":
        rows[at][3] = rows[at - 1][3]
    elif kind == "gap":
        del rows[int(rng.integers(len(rows) - 1))]
    else:
        column = HEAD.index("query" if kind == "two queries" else "time")
        rows[at][column] += "0"


@pytest.mark.parametrize("equal", [True, False], ids=["equal", "unequal"])
@pytest.mark.parametrize("seed", range(6))
def test_exactly_the_sessions_with_bad_rows_are_left_out_and_counted(log_file, seed, equal):
    rng = np.random.default_rng(seed)
    sessions = table_of(rng, 600, equal)
    spoilt = {int(i): str(rng.choice([*KINDS])) for i in rng.choice(600, 30, replace=False)}
    for i, kind in spoilt.items():
        plant(rng, sessions[i], kind)
    path = log_file("log.csv", text_of(row for rows in sessions for row in rows))
    with pytest.raises(ValueError, match=r"log\.csv, (near )?line \d+: "):
        read_log(path)
    log = read_log(path, bad_rows="skip:5%")
    good = [i for i in range(600) if i not in spoilt]
    assert log.times.tolist() == [1000 + i for i in good]
    assert [[log.item_labels[item] for item in row if item >= 0] for row in log.items] == [
        [r[3] for r in sessions[i]] for i in good
    ]
    assert "left out 30 of 600 sessions (5.00%), for bad lines" in log.notes
    assert sum(log.skipped.values()) == sum(len(sessions[i]) for i in spoilt)
    # The reasons, and where each is met first: of a fault of rows the row, of one of a session its last row at most.
    starts = np.cumsum([2] + [len(rows) for rows in sessions])
    for reason in {KINDS[kind] for kind in spoilt.values()} - {"an incomplete session"}:
        note = next(note for note in log.notes if f": {reason} (first: line " in note)
        first = int(re.search(r"first: line ([\d,]+)", note)[1].replace(",", ""))
        begin = min(i for i, kind in spoilt.items() if KINDS[kind] == reason)
        assert starts[begin] <= first < starts[begin + 1], note
        assert f"left out {log.skipped[reason]} line" in note
    with pytest.raises(
        ValueError, match=r"30 of 600 sessions \(5\.00%\) have bad lines, more than the 1% that bad_rows 'skip' allows: \d"
    ):
        read_log(path, bad_rows="skip")


def test_one_empty_id_does_not_stop_a_log(tmp_path):
    rows = [row for rows in table_of(np.random.default_rng(0), 500, equal=True) for row in rows]
    path = tmp_path / "log.csv"
    for column, at in (*(("session", at) for at in (0, 3, 4 * 250 + 1, 1999)), ("item", 777), ("query", 4)):
        spoilt = [[*row] for row in rows]
        spoilt[at][HEAD.index(column)] = ""
        path.write_text(text_of(spoilt))
        with pytest.raises(ValueError, match=rf"log\.csv, line {at + 2}: the column '{column}' is empty"):
            read_log(path)
        log = read_log(path, bad_rows="skip")
        assert log.times.tolist() == [1000 + i for i in range(500) if i != at // 4]
        assert log.notes[0] == "left out 1 of 500 sessions (0.20%), for bad lines"
        assert f"left out 1 line: a missing value (first: line {at + 2:,})" in log.notes


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_sessions_with_bad_rows_go_where_their_rows_are_spread_and_memory_is_bounded(tmp_path, ending, monkeypatch, set_blocks):
    monkeypatch.setattr(names, "SPILL", 300)
    set_blocks(2000, 500)
    rng = np.random.default_rng(1)
    sessions = table_of(rng, 400, equal=True)
    kinds = [kind for kind in KINDS if kind not in ("no session", *(["missing cell"] if ending == "parquet" else []))]
    spoilt = {int(i): kinds[k % len(kinds)] for k, i in enumerate(rng.choice(400, 20, replace=False))}
    for i, kind in spoilt.items():
        plant(rng, sessions[i], kind)
    nameless = next(i for i in range(400) if i not in spoilt)
    sessions[nameless][1][0] = ""  # its session shows by the gap
    rows = [row for rows in sessions for row in rows]
    rows = [rows[i] for i in rng.permutation(len(rows))]
    path = tmp_path / f"log.{ending}"
    if ending == "csv":
        path.write_text(text_of(rows))
    else:
        pl.DataFrame(rows, schema=HEAD, orient="row").write_parquet(path)
    log = read_log(path, bad_rows="skip:6%")
    assert log.times.tolist() == [
        1000 + i for i in sorted(range(400), key=lambda i: f"s{i}") if i not in spoilt and i != nameless
    ]
    unit = "row" if ending == "parquet" else "line"
    assert f"left out 21 of 400 sessions (5.25%), for bad {unit}s" in log.notes
    with pytest.raises(ValueError, match="of memory, more than max_memory"):
        read_log(path, bad_rows="skip:6%", max_memory=4000)


def test_blocks_may_end_anywhere(log_file, set_blocks):
    """Which sessions go does not depend on where a block of rows ends, also of rows that do not name their session."""
    rng = np.random.default_rng(2)
    sessions = table_of(rng, 60, equal=True)
    for i in range(5, 60, 10):
        sessions[i][int(rng.integers(4))][0] = ""
    path = log_file("log.csv", text_of(row for rows in sessions for row in rows))
    for size in (60, 75, 110, 10**6):
        set_blocks(size, size)
        log = read_log(path, bad_rows="skip:10%")
        assert log.times.tolist() == [1000 + i for i in range(60) if i % 10 != 5], size
        assert log.notes[0] == "left out 6 of 60 sessions (10.00%), for bad lines"


def test_a_row_with_neither_session_nor_position_is_of_nobody(log_file):
    path = log_file(
        "log.csv",
        "session,position,item,clicked\n0,0,a,0\n0,1,b,0\n,x,c,0\n1,0,a,0\n1,1,b,0\n1,2,c,1\n2,0,a,0\n2,1,b,0\n2,2,c,0\n",
    )
    log = read_tidy(path, bad_rows="skip:50%")
    assert log.clicks.tolist() == [[0, 0, 1], [0, 0, 0]]
    assert "left out 1 of 3 sessions (33.33%), for bad lines" in log.notes


def test_rows_of_lists_with_one_item_count_by_themselves(log_file):
    path = log_file(
        "log.csv", "session,position,item,clicked\n" + "".join(f"{i if i % 20 else ''},1,a,0\n" for i in range(100))
    )
    with pytest.raises(
        ValueError, match=r"5 of 100 sessions \(5\.00%\) have bad lines, more than the 4% that bad_rows 'skip:4%'"
    ):
        read_tidy(path, bad_rows="skip:4%")
    assert len(read_tidy(path, bad_rows="skip:5%")) == 95
    path.write_text("session,position,item,clicked\n" + "x\n" * 9)
    with pytest.raises(ValueError, match=r"9 of 9 sessions \(100\.00%\)"):
        read_tidy(path, bad_rows="skip:99%")
    with pytest.raises(ValueError, match="no session in the file"):
        read_tidy(path, bad_rows="skip:100%")


# ------------------------------------------------------------------------------------------------------------ other formats


def test_queries_that_go_with_bad_lines_are_counted_in_yandex_logs(tmp_path):
    path = tmp_path / "log.tsv"
    good = "".join(f"{i}\t0\tQ\t7\t1\t11\t12\n{i}\t5\tC\t12\n{i}\t9\tQ\t8\t1\t11\t13\n" for i in range(100))
    for bad, lost, first in (
        ("100\t0\tQ\t7\t1\t11\t12\n100\t5\tC\tx\n100\t9\tQ\t8\t1\t11\t13\n", 2, 302),
        ("100\t0\tQ\t7\t1\t11\t12\n100\t5\tQ\t7\t1\t11\n", 2, 302),
        ("100\t5\tC\t12\n100\t0\tQ\t7\t1\t11\t12\n", 1, 301),
        ("nothing\n", 3, 301),  # which may have been a query; the session above it goes, too
    ):
        path.write_text(good + bad)
        with pytest.raises(ValueError, match=rf"line {first}: "):
            read_yandex_relevance(path)
        log = read_yandex_relevance(path, bad_rows="skip:2%")
        kept = 198 if bad == "nothing\n" else 200
        assert len(log) == kept
        assert log.notes[0].startswith(f"left out {lost} of {kept + lost} sessions")
        assert any(f"(first: line {first})" in note for note in log.notes)
    path.write_text(good + "x\n" * 3)
    with pytest.raises(ValueError, match=r"5 of 203 sessions \(2\.46%\) have bad lines, more than the 1%"):
        read_yandex_relevance(path, bad_rows="skip")
    path.write_text(
        "".join(f"{i}\tM\t1\t1\n{i}\t0\tQ\t0\t5\t1\t1,1\t2,2\n" for i in range(100))
        + "100\tM\tx\t1\n100\t0\tQ\t0\t5\t1\t1,1\t2,2\n"
    )
    log = read_yandex_personalized(path, bad_rows="skip:2%")
    assert log.notes[0] == "left out 2 of 101 sessions (1.98%), for bad lines"  # the session above a bad line is not sure
    assert len(log.times) == len(log) == 99


def test_bad_rows_of_the_open_bandit_dataset_are_counted(tmp_path):
    path = tmp_path / "log.csv"
    head = "item_id,position,click,propensity_score\n"
    path.write_text(head + "3,1,0,0.5\n" * 98 + "3,1,7,0.5\n" + "3,1,0,0\n")
    log = read_sessions(path, "obd", bad_rows="skip:2%")
    assert len(log) == 98
    assert log.notes == (
        "left out 2 of 100 sessions (2.00%), for bad lines",
        "left out 1 line: click is not 0 or 1 (first: line 100)",
        "left out 1 line: propensity_score is not in (0, 1] (first: line 101)",
    )
    with pytest.raises(ValueError, match="more than the 1% that bad_rows 'skip' allows"):
        read_open_bandit(path, bad_rows="skip")
    with pytest.raises(ValueError, match="columns and repeated cannot be given for the Open Bandit Dataset"):
        read_sessions(path, "obd", columns={"time": "timestamp"}, repeated="once")


# ---------------------------------------------------------------------------------------------------------------- options


@pytest.mark.parametrize(
    "wrong",
    ["", "skip:", "skip:5", "skip:0%", "skip:101%", "skip:-1%", "skip: 5%", "strict:5%", "Skip", "skip\n", 5, None, True],
)
def test_wrong_ways_with_bad_rows_are_refused_before_anything_is_read(tmp_path, wrong):
    for read in (read_log, read_tidy, read_yandex_relevance, read_yandex_personalized, read_open_bandit):
        with pytest.raises(ValueError, match=r"bad_rows is .*; expected 'strict', 'skip', or a share as in 'skip:5%'"):
            read(tmp_path / "absent.csv", bad_rows=wrong)


def test_options_are_checked_also_for_logs_in_memory():
    log = ClickLog([[0, 1], [1, 0]] * 5, [[1, 0], [0, 0]] * 5, [0] * 10, ("a", "b"), ("q",))
    wrong = {"bad_rows": "x", "repeated": "twice", "duplicates": "last", "columns": {"itme": "x"}, "max_memory": 0}
    for name, value in wrong.items():
        with pytest.raises(ValueError, match=r"expected|unknown"):
            read_sessions(log, **{name: value})
        with pytest.raises(ValueError, match=r"expected|unknown"):
            fit_models(log, ["SDBN"], n_items=2, **{name: value})
    with pytest.raises(TypeError, match="duplicate"):
        read_sessions(log, duplicate="first")


def test_strict_of_version_2_is_taken_with_a_warning(log_file):
    path = log_file("log.csv", "session,position,item,clicked\n0,1,a,0\n1,1,b,7\n")
    with pytest.warns(DeprecationWarning, match="strict is deprecated; give bad_rows='skip:100%'") as warned:
        assert len(read_tidy(path, strict=False)) == 1
    assert warned[0].filename == __file__
    for read in (read_log, read_tidy):
        with pytest.warns(DeprecationWarning, match="bad_rows='strict'"), pytest.raises(ValueError, match="line 3: clicked"):
            read(path, strict=True)
    with pytest.raises(ValueError, match="strict is 0; expected True or False"):
        read_log(path, strict=0)


def test_the_commands_skip_bad_rows_and_say_so(tmp_path, capsys, refused):
    path, out = tmp_path / "log.csv", tmp_path / "out"
    rows = [f"{i},{k},{'ab'[(i + k) % 2]},{int(i % 3 == k)}" for i in range(400) for k in (1, 2)]
    rows[10] = rows[10].replace("5,1", ",1", 1)
    path.write_text("\n".join(["session,position,item,clicked", *rows]))
    said = "left out 1 of 400 sessions (0.25%), for bad lines", "left out 1 line: a missing value (first: line 12)"
    commands = {
        "fit": ["--model", "SDBN", "--out", str(tmp_path / "x.json")],
        "evaluate": ["--policy", "fixed:a,b", "--logging", "empirical", "--query", "all", "--bootstrap", "10"],
        "decide": ["--out", str(out), "--agents", "CascadeUCB1", "--horizon", "200", "--runs", "1"],
    }
    for name, words in commands.items():
        assert "line 12: the column 'session' is empty" in refused([name, str(path), *words])
        assert main([name, str(path), *words, "--bad-rows", "skip"]) == 0, capsys.readouterr().err
        progress = " ".join(capsys.readouterr().err.split())
        assert all(words in progress for words in said), progress
        assert "more than the 0.2% that bad_rows 'skip:0.2%' allows" in refused(
            [name, str(path), *words, "--bad-rows", "skip:0.2%"]
        )
        assert "has no times, by which repeated sessions could be recognised" in refused(
            [name, str(path), *words, "--bad-rows", "skip", "--repeated", "once"]
        )
        assert "no column 'when' (for time); the file has session, position" in refused(
            [name, str(path), *words, "--time", "when"]
        )
    assert main(["fit", str(path), *commands["fit"], "--skip-malformed"]) == 0
    assert "--skip-malformed is deprecated; write --bad-rows skip:100%" in capsys.readouterr().err
    assert "--columns names the time, 'a', and --time is 'b'" in refused(
        ["fit", str(path), *commands["fit"], "--columns", "time=a", "--time", "b"]
    )


# ------------------------------------------------------------------------------------------------------ repeated sessions


def traffic(n_sessions, seconds, seed=0, attraction=(0.4, 0.2, 0.1), lists=6):
    """Sessions at random times of so many seconds, whose lists change four times."""
    rng = np.random.default_rng(seed)
    times = np.sort(rng.random(n_sessions) * seconds)
    orders = np.array([rng.permutation(3) for _ in range(lists)])
    block = (times // (seconds / 4)).astype(int)
    items = orders[np.where(rng.random(n_sessions) < 0.7, block % lists, rng.integers(lists, size=n_sessions))]
    clicks = rng.random(items.shape) < np.array(attraction)[items]
    return ClickLog(items, clicks, rng.integers(2, size=n_sessions), tuple("abc"), ("p", "q"), times=times)


def with_copies(log, n_copies, seed=1):
    """Some sessions once or twice more, anywhere below; and which ones these are."""
    rng = np.random.default_rng(seed)
    again = rng.integers(len(log), size=n_copies)
    rows = np.concatenate([np.arange(len(log)), again])
    copies = np.arange(len(rows)) >= len(log)
    order = np.argsort(np.concatenate([np.arange(len(log)), again + rng.integers(1, 500, n_copies)]) + copies * 0.5)
    return log[rows[order]], copies[order]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("unit", [1e-6, 1.0])
def test_copies_are_recognised_where_times_are_fine(unit, seed):
    """20,000 sessions in thirty days, by seconds: about 40 pairs meet in one second, of which few are alike."""
    log, copies = with_copies(traffic(20_000, 30 * 86_400, seed), 400)
    recognised = replace(log, times=np.round(log.times / unit) * unit).repeated
    assert recognised[copies].all()
    assert recognised[~copies].sum() <= (0 if unit < 1 else 40)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("attraction", [(0.4, 0.2, 0.1), (0.02, 0.01, 0.001)])
@pytest.mark.parametrize("unit", [60, 3600, 86_400])
def test_sessions_that_are_alike_at_coarse_times_are_no_copies(unit, seed, attraction):
    """Also where nearly no user clicks, so that most sessions with one list are alike, and in small logs."""
    for n in (300, 20_000):
        log = traffic(n, 30 * 86_400, seed, attraction)
        assert not replace(log, times=log.times // unit).repeated.any()


def test_nothing_is_a_copy_without_times_or_clicks_that_differ():
    assert not replace(traffic(500, 500.0), times=None).repeated.any()
    nobody = np.zeros((50, 1), int)
    assert not ClickLog(nobody, nobody, nobody[:, 0], ("a",), ("q",), times=np.arange(50) // 2).repeated.any()
    assert ClickLog(np.zeros((0, 1)), np.zeros((0, 1)), [], ("a",), ("q",), times=[]).repeated.tolist() == []


@pytest.mark.parametrize("field", ["times", "items", "clicks", "queries"])
def test_copies_have_all_in_common(field):
    log = traffic(3000, 30 * 86_400)
    log = log[np.r_[0:3000, 0:300]]
    assert log.repeated.sum() == 300
    assert not log.repeated[:3000].any()
    values = getattr(log, field).copy()
    values[3000] = values[3000][::-1] if field == "items" else values[3000] + 1 if field == "times" else 1 - values[3000]
    other = replace(log, **{field: values})
    assert np.flatnonzero(log.repeated & ~other.repeated).tolist() == [3000]


def test_a_reader_counts_repeated_sessions_and_leaves_them_out(tmp_path):
    log, copies = with_copies(traffic(3000, 30 * 86_400), 60)
    path = tmp_path / "log.csv"
    write_tidy(log, path)
    keep, once = read_log(path), read_log(path, repeated="once")
    assert len(keep) == 3060
    what = "60 of 3,060 sessions repeat another one (same time, query, list and clicks)"
    assert keep.notes == (f"{what}; repeated 'once' leaves them out",)
    assert once.times.tolist() == log.times[~copies].tolist()
    assert once.notes == (f"{what}; they are left out",)
    assert read_log(path, columns={"time": ""}).notes == ()
    with pytest.raises(ValueError, match=r"log\.csv has no times, by which repeated sessions could be recognised"):
        read_log(path, columns={"time": ""}, repeated="once")
    with pytest.raises(ValueError, match="unknown way with repeated sessions 'twice'"):
        read_log(path, repeated="twice")


def test_the_rule_of_copies_pair_by_pair():
    """Small logs, whose pairs are counted one by one: alike where at least four times as many are as chance would make."""
    rng = np.random.default_rng(0)
    outcomes = []
    for _ in range(150):
        n, rate = int(rng.integers(2, 40)), rng.choice([0.05, 0.5])
        items = np.array([[0, 1], [1, 0]])[(rng.random(n) < 0.2).astype(int)]
        log = ClickLog(
            items, rng.random((n, 2)) < rate, rng.integers(2, size=n), ("a", "b"), ("p", "q"), times=np.arange(n) * 7 % 31
        )
        log = log[np.r_[0:n, 0 : rng.integers(n + 1)]]
        alike = differ = same = pairs = 0
        for one in range(len(log)):
            for two in range(one):
                if log.queries[one] == log.queries[two] and (log.items[one] == log.items[two]).all():
                    equal = bool((log.clicks[one] == log.clicks[two]).all())
                    if log.times[one] == log.times[two]:
                        alike, differ = alike + equal, differ + (not equal)
                    else:
                        same, pairs = same + equal, pairs + 1
        share = same / max(pairs, 1)
        expected = alike > 0 and alike * (1 - share) >= 4 * (differ + 1) * share
        assert log.repeated.any() == expected
        outcomes.append(expected)
    assert 0.2 < np.mean(outcomes) < 0.8


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0\tM\t1\t1\n0\t0\tQ\t0\t5\t1\t1,1\t2,2\n0\t0\tQ\t1\t5\t1\t1,1\t2,2\n", 2 * (10 + 4 + 8) + 3 * 151),
        ("0\t0\tQ\t5\t1\t1\t2\n0\t0\tQ\t5\t1\t1\t2\n", 2 * (10 + 4) + 2 * 151 + 153),
        ("session,position,item,clicked,time\n0,1,a,0,3\n0,2,b,0,3\n1,1,a,0,4\n", 3 * 5 + 2 * (8 + 8) + 2 * 151 + 153),
    ],
    ids=["days", "no times", "table"],
)
def test_the_limit_of_memory_counts_times(log_file, text, size):
    path = log_file("log", text)
    read_log(path, max_memory=size)
    with pytest.raises(ValueError, match=f"take {size} B of memory, more than max_memory = {size - 1} B"):
        read_log(path, max_memory=size - 1)


def test_exactly_four_times_as_many_as_chance_would_make_are_enough():
    """Four pairs of copies, of three times alike and one other: half of the pairs at different times are alike."""
    items, clicks = [[0, 1]] * 8, [[0, 0]] * 6 + [[1, 0]] * 2
    log = ClickLog(items, clicks, [0] * 8, ("a", "b"), ("q",), times=np.arange(8) // 2)
    assert log.repeated.tolist() == [False, True] * 4
