"""Click logs as tables and files: what is written is read back, and what is malformed is refused in
one line.
"""

import gzip
import json
import math
from decimal import Decimal

import gymnasium as gym
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import clickgym
from clickgym.core.files import parquet
from clickgym.envs import LehmerAction
from clickgym_logs import (
    ClickLog,
    contextual_instance,
    read_log,
    read_ratings,
    write_tidy,
)
from clickgym_logs.names import csv_fields, csv_line
from clickgym_logs.record import record


def rows(log):
    """A log as ``(query, items, clicks)`` of each session, by labels."""
    return [
        (
            log.query_labels[query],
            [log.item_labels[item] for item in items[:length]],
            clicks[:length].tolist(),
        )
        for query, items, clicks, length in zip(
            log.queries, log.items, log.clicks, log.lengths.tolist(), strict=True
        )
    ]


def some_log(**fields):
    items, clicks = [[0, 1], [2, 0], [1, 2]], [[1, 0], [0, 0], [1, 1]]
    return ClickLog(items, clicks, [0, 1, 0], ("a", "b,c", 'd"e'), ("q", "r"), **fields)


PROPENSITIES = {
    "propensities": [[0.1, 0.2], [1.0, 1 / 3], [1e-9, 0.5]],
    "list_propensities": [0.01, 1.0, 1 / 7],
}

# ------------------------------------------------------------------------------------------------
# ------ logs in memory


def test_propensities_follow_the_sessions():
    log = some_log(**PROPENSITIES)
    part = log[[2, 0]]
    np.testing.assert_array_equal(part.propensities, [[1e-9, 0.5], [0.1, 0.2]])
    np.testing.assert_array_equal(part.list_propensities, [1 / 7, 0.01])
    assert some_log()[1:].propensities is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"propensities": [[0.1, 0.2]]}, r"propensities has shape \(1, 2\); expected \(3, 2\)"),
        (
            {"propensities": [[0.1, 0.2], [0.0, 1.0], [1, 1]]},
            r"propensities\[1, 0\] is 0.0; expected a probability in \(0, 1\]",
        ),
        ({"list_propensities": [1.0, 0.5]}, r"list_propensities has shape"),
        ({"list_propensities": [1.0, 0.5, math.nan]}, r"list_propensities\[2\] is nan"),
    ],
)
def test_bad_propensities_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        some_log(**fields)


def test_the_frame_is_tidy():
    frame = some_log(**PROPENSITIES).to_frame()
    assert frame.columns[:5] == ["session", "query", "position", "item", "clicked"]
    assert frame.columns[5:] == ["propensity", "list_propensity"]
    assert frame.row(3) == (1, "r", 2, "a", 0, 1 / 3, 1.0)
    assert some_log().to_frame().width == 5


# ------------------------------------------------------------------------------------------------
# ------------ recording


def test_a_recorded_random_agent_has_the_propensities_it_shows():
    env = gym.make("PBMRank-v0", attraction=[0.9, 0.5, 0.3, 0.1], examination=[1.0, 0.5])
    log = record(clickgym.make_agent("Random", env, seed=1), env, 2400, seed=2)
    assert np.all(log.propensities == 1 / 4)
    assert np.all(log.list_propensities == 1 / 12)
    lists, counts = np.unique(log.items, axis=0, return_counts=True)
    assert len(lists) == 12
    assert np.abs(counts - 200).max() < 5.5 * math.sqrt(200 * 11 / 12)
    shown_first = log.items[:, 0] == 0
    assert abs(log.clicks[shown_first, 0].mean() - 0.9) < 5.5 * math.sqrt(0.09 / shown_first.sum())


@pytest.mark.uncompiled
def test_recording_is_what_the_runner_plays():
    env = gym.make("DCMRank-v0")
    log = record(clickgym.make_agent("TopRank", env, horizon=300, seed=3), env, 300, seed=4)
    result = clickgym.run(
        clickgym.make_agent("TopRank", env, horizon=300, seed=3), env, 300, seed=4
    )
    assert log.clicks.sum() == result.clicks[-1]
    assert log.propensities is None
    assert log.list_propensities is None
    assert log.query_labels == ("yandex-9982",)


def test_recording_through_wrappers():
    plain = gym.make("PBMRank-v0")
    wrapped = gym.wrappers.DtypeObservation(gym.make("PBMRank-v0"), np.float64)
    scaled = gym.wrappers.NormalizeObservation(gym.make("PBMRank-v0"))
    logs = [
        record(clickgym.make_agent("Random", env, seed=0), env, 50, seed=1)
        for env in (plain, wrapped, scaled)
    ]
    assert logs[0].clicks.any()
    for log in logs[1:]:
        np.testing.assert_array_equal(logs[0].items, log.items)
        np.testing.assert_array_equal(logs[0].clicks, log.clicks)
    codes = LehmerAction(gym.make("PBMRank-v0"))
    with pytest.raises(ValueError, match="pass the environment without LehmerAction"):
        record(clickgym.make_agent("Random", plain), codes, 5)


def test_recording_refuses_what_it_cannot_record():
    env = gym.make("PBMRank-v0")
    with pytest.raises(ValueError, match="sessions is 0"):
        record(clickgym.make_agent("Random", env), env, 0)
    with pytest.raises(ValueError, match="expected an environment of clickgym"):
        record(clickgym.make_agent("Random", env), gym.make("CartPole-v1"), 1)

    class Twice(clickgym.agents.Agent):
        def rank(self, observation):
            return np.zeros(5, np.int64)

        def update(self, observation, ranking, clicks, reward):
            pass

    with pytest.raises(clickgym.AgentError, match="Twice, step 1"):
        record(Twice(), env, 1)


@pytest.mark.uncompiled
def test_a_recorded_contextual_run_says_what_was_shown():
    env = gym.make(
        "ContextualPBMRank-v0",
        instance="linear:n_items=6,n_positions=3,n_features=5,n_pool=9,n_users=4,seed=1",
    )
    log = record(clickgym.make_agent("Random", env, seed=0), env, 50, seed=0)
    model = env.unwrapped.model
    assert (len(log.item_labels), len(log.query_labels)) == (9, 4)
    for session in range(50):
        for k in range(3):
            expected = [*model.users[log.queries[session]], *model.items[log.items[session, k]]]
            np.testing.assert_array_equal(log.context[session, k], expected)
    assert log.propensities[0, 0] == 1 / 6
    assert log.list_propensities[0] == 1 / 120
    result = clickgym.run(
        clickgym.make_agent("Random", env, seed=0), env, 50, seed=0, engine="python"
    )
    assert log.clicks.sum() == result.clicks[-1]


# ------------------------------------------------------------------------------------------------
# ---------------- tables


FACTS = PROPENSITIES | {"context": np.arange(12).reshape(3, 2, 2) / 7}


@pytest.mark.parametrize(
    "fields",
    [{}, FACTS | {"times": [3, 1, 2**60 + 1]}, {"times": [1e-300, 1.7672616e9 + 1e-6, -2.5]}],
    ids=["without", "with facts", "times"],
)
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_what_is_written_is_read_back(tmp_path, ending, fields):
    """To the digit, and integers stay integers."""
    log = some_log(**fields)
    write_tidy(log, tmp_path / f"log.{ending}")
    assert [file.name for file in tmp_path.iterdir()] == [f"log.{ending}"]
    for again in (read_log(tmp_path / f"log.{ending}"), read_log(log.to_frame())):
        assert rows(again) == rows(log)
        for name in ("propensities", "list_propensities", "times", "context"):
            np.testing.assert_array_equal(getattr(again, name), getattr(log, name))
        assert getattr(again.times, "dtype", None) == getattr(log.times, "dtype", None)


LABELS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@settings(max_examples=40)
@given(labels=st.lists(LABELS, min_size=3, max_size=3, unique=True), query=LABELS)
def test_any_label_is_read_back(tmp_path_factory, ending, labels, query):
    path = tmp_path_factory.getbasetemp() / f"labels.{ending}"
    log = ClickLog([[0, 1], [2, 0]], [[1, 0], [0, 1]], [0, 0], tuple(labels), (query,))
    write_tidy(log, path)
    assert rows(read_log(path)) == rows(log)


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"expected a file that ends with .csv, .csv.gz or"):
        write_tidy(some_log(), tmp_path / "log.txt")


SESSIONS = "session,query,position,item,clicked\n5,q,1,a,1\n5,q,2,b,0\n3,r,1,b,0\n"
READ = [("q", ["a", "b"], [1, 0]), ("r", ["b"], [0])]


TEXTS = {
    "commas": SESSIONS,
    "tabs": SESSIONS.replace(",", "\t"),
    "semicolons": SESSIONS.replace(",", ";"),
    "carriage returns": SESSIONS.replace("\n", "\r\n"),
    "words": SESSIONS.replace("q,1,a,1", "q,1,a,true").replace("q,2,b,0", "q,2,b,False"),
    "from 0": SESSIONS.replace(",1,", ",0,").replace(",2,", ",1,"),
    "positions in disorder": SESSIONS.replace("q,1,a,1\n5,q,2,b,0", "q,2,b,0\n5,q,1,a,1"),
    "JSON lines": pl.read_csv(SESSIONS.encode()).write_ndjson(),
}


@pytest.mark.parametrize("content", TEXTS.values(), ids=TEXTS)
def test_tables_as_text(log_file, content):
    assert rows(read_log(log_file("log.csv", content))) == READ
    assert rows(read_log(log_file("log.gz", gzip.compress(content.encode())))) == READ


def test_a_frame_with_other_names_and_types():
    frame = (
        pl.read_csv(SESSIONS.encode())
        .rename({"item": "doc"})
        .with_columns(pl.col("clicked").cast(pl.Boolean))
    )
    assert rows(read_log(frame, columns={"item": "doc"})) == READ
    assert read_log(frame.drop("query"), columns={"item": "doc"}).query_labels == ("all",)
    categories = frame.with_columns(
        pl.col("doc").cast(pl.Categorical), pl.col("query").cast(pl.Categorical)
    )
    assert rows(read_log(categories, columns={"item": "doc"})) == READ


def test_sessions_whose_rows_are_apart_are_sorted_by_their_names():
    frame = pl.DataFrame(
        {
            "session": [10, 9, 10, 9],
            "position": [1, 1, 2, 2],
            "item": list("abcd"),
            "clicked": [1, 0, 0, 0],
        }
    )
    assert [items for _, items, _ in rows(read_log(frame))] == [["b", "d"], ["a", "c"]]
    named = frame.with_columns(pl.concat_str(pl.lit("s"), "session").alias("session"))
    assert [items for _, items, _ in rows(read_log(named))] == [["a", "c"], ["b", "d"]]


def test_files_of_a_folder_and_of_a_glob_are_one_table(tmp_path):
    for name, part in (
        ("b.csv", "7,q,1,c,0\n"),
        ("a.csv", "5,q,1,a,1\n5,q,2,b,0\n"),
        ("_c.csv", "8,q,1,x,0\n"),
    ):
        (tmp_path / name).write_text("session,query,position,item,clicked\n" + part)
    wanted = [("q", ["a", "b"], [1, 0]), ("q", ["c"], [0])]
    for source in (tmp_path, tmp_path / "[ab].csv", [tmp_path / "a.csv", tmp_path / "b.csv"]):
        assert rows(read_log(source)) == wanted
    for source in (tmp_path / "*.parquet", [tmp_path / "a.csv", tmp_path / "*.parquet"]):
        with pytest.raises(ValueError, match=r"\*\.parquet: there is no file of this pattern"):
            read_log(source)
    with pytest.raises(FileNotFoundError, match=r"^\S*d\.csv: there is no such file; expected CSV"):
        read_log([tmp_path / "a.csv", tmp_path / "d.csv"])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("8,q,1,a", r"log\.csv, line 5 has no value in the column 'clicked'"),
        ("8,q,1,,0", "line 5 has no value in the column 'item'"),
        ("8,q,1,a,yes", "line 5: clicked is 'yes'; expected 0 or 1"),
        ("\n8,q,1,a,2", "line 6: clicked is '2'; expected 0 or 1"),
        ('8,q,1,"a\nb",0\n9,q,x,a,0', "line 7: position is 'x'; expected a whole number from 0"),
        (
            "8,q,1,a,0\n8,q,3,b,0",
            r"log\.csv, line 6: the session '8' has the position 3, but not 2; 1 of 3 sessions are",
        ),
        ("8,q,1,a,0\n8,q,2,b,0\n8,q,1,c,0", "line 7: the session '8' has the position 1 twice"),
        ("8,q,2,a,0", "line 5: the session '8' has the position 2, but not 1"),
        ("8,q,1,a,0\n8,r,2,b,0", "line 6: the session '8' has two values of query"),
        ("8,q,1,a,0\n8,q,3,b,0\n8,q,2,a,0", "line 7: the session '8' shows the item 'a' twice"),
        ("8,q,1,a,0,9", r"log\.csv cannot be read \(line 5 has 6 values; the first line has 5\)"),
        ('8,q,1,"a,0', "a quote is not closed, or not doubled"),
    ],
)
def test_what_is_wrong_with_a_table_is_said_in_a_line(log_file, line, message):
    with pytest.raises(ValueError, match=message) as error:
        read_log(log_file("log.csv", SESSIONS + line + "\n"))
    assert "\n" not in str(error.value)


def test_missing_columns_and_wrong_names(log_file, tmp_path):
    path = log_file("log.csv", SESSIONS)
    for columns, message in (
        (
            {"item": "doc", "time": "when"},
            "no column doc, when; the log has session, .* --columns item=item$",
        ),
        ({"itme": "doc"}, "unknown column 'itme'"),
        (["item"], "columns is .*expected names of columns"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            read_log(path, columns=columns)
    shop = log_file("shop.csv", "ts,visit,q,rank,sku,click,results\n1,a,x,1,s,0,5\n1,a,x,2,t,1,5\n")
    named = "session=visit,position=rank,item=sku,clicked=click"
    with pytest.raises(ValueError, match=f"--columns {named},query=q,time=ts$"):
        read_log(shop)
    with pytest.warns(UserWarning, match="of one query; 'q' is read only with --columns query"):
        log = read_log(shop, columns=dict(pair.split("=") for pair in named.split(",")))
    assert log.query_labels == ("all",)
    with pytest.raises(TypeError, match=r"log is of type dict; expected .* pandas"):
        read_log({"session": [1]})
    with pytest.raises(ValueError, match="no row in the log"):
        read_log(log_file("empty.csv", "session,position,item,clicked\n"))
    with pytest.raises(ValueError, match=r"log\.parquet"):
        read_log(log_file("log.parquet", b"PAR1 nothing PAR1"))
    with pytest.raises(FileNotFoundError):
        read_log(tmp_path / "none.csv")


WRITERS = {
    "csv": lambda frame: frame.write_csv().encode(),
    "csv.gz": lambda frame: gzip.compress(frame.write_csv().encode()),
    "jsonl": lambda frame: b"\xef\xbb\xbf\n" + frame.write_ndjson().encode(),
    "json": lambda frame: frame.write_json().encode(),
    "parquet": parquet,
}


@pytest.mark.parametrize("ending", [*WRITERS, "frame"])
@pytest.mark.parametrize(
    ("clicks", "value"),
    [
        (["1.0", "0", "-0.0", "1"], None),
        ([1.0, 0.0, -0.0, 1.0], None),
        ([Decimal("1.0"), Decimal(0), Decimal(0), Decimal(1)], None),
        ([True, False, False, True], None),
        ([1.0, 0.7, 0.0, 1.0], "0.7"),
        ([1, 2**62, 0, 1], str(2**62)),
        (["1", "inf", "0", "1"], "inf"),
    ],
)
def test_whole_numbers_are_read_alike_from_everything(log_file, ending, clicks, value):
    """1.0 is 1, and what is no whole number is refused with its row and value."""
    frame = pl.DataFrame(
        {"session": [1.0, 1.0, 2.0, 2.0], "position": [1.0, 2.0, 1.0, 2.0], "item": [7.0, 8, 8, 7]}
    ).with_columns(clicked=pl.Series(clicks))
    source = frame if ending == "frame" else log_file(f"log.{ending}", WRITERS[ending](frame))
    if value is None:
        assert rows(read_log(source)) == [("all", ["7", "8"], [1, 0]), ("all", ["8", "7"], [0, 1])]
        return
    where = {"csv": "line 3", "csv.gz": "line 3", "jsonl": "line 3"}.get(ending, "row 2")
    with pytest.raises(ValueError, match=f"{where}: clicked is '?{value}'?; expected 0 or 1"):
        read_log(source)


def test_columns_of_json_are_there_where_any_object_has_them(log_file):
    """Columns that are not read are of any kind; 007 is not 7."""
    lines = [
        {"session": "7", "position": 1, "item": "a", "clicked": 0, "meta": {"time": 5}},
        {"session": "007", "position": 1, "item": "b", "clicked": 1, "meta": [None, "query"]},
    ]
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    log = read_log(log_file("log.jsonl", text))
    assert rows(log) == [("all", ["a"], [0]), ("all", ["b"], [1])]
    assert log.times is None
    late = json.dumps({**lines[0], "session": 8, "query": "q"})
    with pytest.raises(ValueError, match="line 1 has no value in the column 'query'"):
        read_log(log_file("log.jsonl", text + late))
    with pytest.raises(ValueError, match="line 3 is not a JSON object"):
        read_log(log_file("log.jsonl", text + late[:-9]))


def test_partitions_and_globs(tmp_path):
    head, days = "session,position,item,clicked\n", ("2026-03-01", "2026-03-02")
    for day, session in zip(days, ("7", "9f3a"), strict=True):
        folder = tmp_path / "logs" / f"day={day}"
        folder.mkdir(parents=True)
        (folder / "part.csv").write_text(f"{head}{session},1,a,1\n")
    (tmp_path / "logs" / "_SUCCESS").touch()
    for pattern in ("logs", "logs/*", "logs/**", "logs/**/*.csv", "logs/day=*/part.csv"):
        log = read_log(tmp_path / pattern, columns={"time": "day"})
        assert log.times.tolist() == [1772323200.0, 1772409600.0]
    (tmp_path / "logs" / f"day={days[1]}" / "part.csv").write_text(f"{head}7,1,b,0\n")
    with pytest.raises(
        ValueError, match=r"01/part.csv, line 2: the session '7', also in .*02/part"
    ):
        read_log(tmp_path / "logs")
    (tmp_path / "logs" / f"day={days[1]}" / "part.csv").unlink()
    (tmp_path / "logs" / f"day={days[0]}" / "part.csv").write_text(
        "session,position,item,clicked,day\n7,1,a,1,5\n"
    )
    # a column of the file counts, not what its folder is called
    assert read_log(tmp_path / "logs", columns={"time": "day"}).times.tolist() == [5]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("log.csv.gz", gzip.compress(SESSIONS.encode(), mtime=0)[:-9], "its gzip data are damaged"),
        ("log.csv.gz", SESSIONS, "it is not gzipped, as its name says"),
        ("log.csv", SESSIONS.encode("utf-16"), "it is text in UTF-16"),
        ("log.csv", SESSIONS.replace("b", "ä").encode("latin-1"), "line 3 is not UTF-8"),
        ("log.zip", b"PK\x03\x04" + bytes(30), "it is a zip archive or a spreadsheet"),
        ("log.csv", bytes(range(256)), "it is not text"),
        ("log.csv", "", "it is empty"),
        ("log.parquet", SESSIONS, "it is not Parquet, as its name says"),
        ("log.parquet", b"PAR1 nothing PAR1", "it is damaged"),
        ("log.json", '[{"session": 1}, ', "it is not an array of JSON objects"),
    ],
)
def test_a_file_that_is_no_log_is_refused_in_a_line(log_file, name, content, message):
    with pytest.raises(ValueError, match=rf"{name} cannot be read \({message}.*\); expected CSV"):
        read_log(log_file(name, content))


def test_few_sessions_with_much_longer_lists_are_left_out():
    """The memory of a crawler's 5,000 positions in each of 2,000 sessions is not taken."""
    sessions = np.append(np.arange(2_000), np.full(5_000, 2_000))
    frame = pl.DataFrame({"session": sessions}).with_columns(
        position=pl.int_range(pl.len()).over("session"),
        item=pl.int_range(pl.len()),
        clicked=pl.lit(0),
    )
    with pytest.warns(UserWarning, match="left out 1 of 2,001 sessions, .* '2000' has 5,000"):
        log = read_log(frame)
    assert (log.items.shape, len(log.item_labels)) == ((2_000, 1), 2_000)
    assert read_log(frame[:-4_500]).items.shape == (2_001, 500)  # which is little memory


DAMAGE = {
    "a row twice": ([1, 2, 2], "abb", "the session '500' has the position 2 twice"),
    "a row is missing": ([1, 3], "ac", "the session '500' has the position 3, but not 2"),
    "page 2 alone": ([3, 4], "cd", "the session '500' has the position 3, but not 1"),
    "an item twice": ([1, 2], "aa", "the session '500' shows the item 'a' twice"),
}


@pytest.mark.parametrize("ending", ["frame", "csv", "parquet"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_one_damaged_session_in_a_thousand_is_left_out(log_file, damage, ending):
    """The warning has the count, the row and the fault; two in a thousand are refused."""
    positions, items, what = DAMAGE[damage]

    def log(n, faulty):
        sessions = [
            {"session": session, "position": k, "item": item, "clicked": 0}
            for session in range(n)
            for k, item in (
                zip(positions, items, strict=True) if session in faulty else ((1, "a"), (2, "b"))
            )
        ]
        frame = pl.DataFrame(sessions)
        return frame if ending == "frame" else log_file(f"log.{ending}", WRITERS[ending](frame))

    with pytest.warns(UserWarning, match=f"left out 1 of 1,000 sessions, .* {what}") as said:
        read = read_log(log(1_000, {500}))
    where = 1_000 + (len(positions) if "twice" in what else positions.index(max(positions)) + 1)
    if what.endswith("but not 1"):
        where = 1_001
    row = f"line {where + 1}" if ending == "csv" else f"row {where}"
    assert row in str(said[0].message)
    assert (len(read), read.lengths.tolist()) == (999, [2] * 999)
    for n in (2, 500):
        with pytest.raises(ValueError, match=f"{n} of 1,000 sessions are damaged, and at most one"):
            read_log(log(1_000, set(range(500, 500 + n))))


@pytest.mark.parametrize(
    "columns",
    [
        ["application", "query_id", "client_id", "user_query", "query_response_hit_ids"],
        ["action_name", "query_id", "client_id", "message_type", "event_attributes"],
        ["event_name", "event_params", "user_pseudo_id", "items"],
    ],
    ids=["UBI queries", "UBI events", "GA4"],
)
def test_no_columns_are_proposed_for_a_table_of_another_kind(columns):
    """No name among them is that of a role."""
    with pytest.raises(ValueError, match=r"needs a row for each session and position$"):
        read_log(pl.DataFrame({name: ["x"] for name in columns}))


def test_lists_are_printed_as_they_can_be_typed():
    labels = ["a", "red shoes", "1,5", '5" pipe', " b", ""]
    assert csv_line(labels) == 'a, "red shoes", "1,5", "5"" pipe", " b", ""'
    assert csv_fields(csv_line(labels)) == labels
    assert csv_fields("a,b , 5 c") == ["a", "b", "5 c"]


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 3),
    st.sampled_from(
        [2**63, -(2**63), 1.0, 0.7, math.nan, math.inf, "1.0", "007", "", "é", '"', ","]
    ),
    st.text(max_size=3),
    st.lists(st.integers(0, 1), max_size=1),
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(data=st.data(), ending=st.sampled_from([*WRITERS, "frame"]))
def test_any_table_is_a_log_or_refused_in_a_line(tmp_path_factory, data, ending):
    """Columns of any values, and files in which bytes were changed."""
    columns = {"session": [1, 1], "position": [1, 2], "item": ["a", "b"], "clicked": [0, 1]}
    for name in data.draw(st.sets(st.sampled_from([*columns, "query", "time", "propensity"]))):
        columns[name] = data.draw(st.lists(VALUES, min_size=2, max_size=2))
    source = frame = pl.DataFrame(columns, strict=False)
    if ending != "frame":
        source = tmp_path_factory.getbasetemp() / f"fuzz.{ending}"
        try:
            content = bytearray(WRITERS[ending](frame))
        except pl.exceptions.PolarsError:  # CSV has no lists
            content = bytearray(b"session,position\n")
        for place in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=3)):
            content[place] = data.draw(st.integers(0, 255))
        source.write_bytes(content)
    said = ""
    try:
        read_log(source)
    except ValueError as error:
        said = str(error)
    assert "\n" not in said


@pytest.mark.parametrize("column", ["time", "list_propensity"])
def test_what_belongs_to_a_session_is_one_value(column):
    columns = {"session": [1, 1], "position": [1, 2], "item": ["a", "b"], "clicked": [0, 0]}
    frame = pl.DataFrame(columns | {column: [0.5, 0.25]})
    with pytest.raises(ValueError, match=f"the session '1' has two values of {column}"):
        read_log(frame)


# ------------------------------------------------------------------------------------------------
# ---------------- Yandex

YANDEX = """\
0\t0\tQ\t7\t1\t11\t12\t13
0\t5\tC\t13
0\t6\tC\t99
0\t7\tQ\t8\t1\t13\t14\t15
0\t9\tC\t13
0\t9\tC\t12
0\t9\tC\t12
1\t0\tQ\t7\t1\t12\t11\t13
0\t0\tQ\t7\t2\t11\t12\t13
"""


@pytest.mark.parametrize(
    "content",
    [YANDEX.encode(), gzip.compress(YANDEX.encode()), YANDEX.replace("\n", "\r\n").encode()],
    ids=["plain", "gzip", "windows"],
)
def test_a_click_belongs_to_the_last_query_that_showed_the_url(log_file, content):
    path = log_file("log.tsv.gz" if content[:2] == b"\x1f\x8b" else "log.tsv", content)
    log = read_log(path)
    assert rows(log) == [
        ("7-1", ["11", "12", "13"], [0, 1, 1]),
        ("8-1", ["13", "14", "15"], [1, 0, 0]),
        ("7-1", ["12", "11", "13"], [0, 0, 0]),
        ("7-2", ["11", "12", "13"], [0, 0, 0]),
    ]
    assert log.times is None


def test_a_click_on_what_another_session_showed_is_left_out(log_file):
    path = log_file("log.tsv", YANDEX + "3\t0\tQ\t9\t1\t21\t22\t23\n3\t1\tC\t11\n3\t2\tC\t22\n")
    before = read_log(log_file("before.tsv", YANDEX))
    assert rows(read_log(path)) == [*rows(before), ("9-1", ["21", "22", "23"], [0, 1, 0])]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0\t9\tC\t1x", r"log\.tsv, line 10: expected a click"),
        ("0\t9\tQ\t1\t1", "line 10: expected a click"),
        ("0\t9\tT\t1", "line 10: expected a click"),
        ("", "line 10: expected a click"),
        ("5\t9\tC\t11", "line 10: a click before the first query of its session"),
        ("5\t9\tQ\t1\t1\t11\t12", "line 10: .* 3 URLs, as in the first line"),
    ],
)
def test_a_malformed_line_of_yandex_is_named(log_file, line, message):
    with pytest.raises(ValueError, match=message):
        read_log(log_file("log.tsv", YANDEX + line + "\n3\t0\tQ\t7\t1\t11\t12\t13\n"))


# ------------------------------------------------------------------------------------------------
# ---------------- ratings


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_ratings(log_file, ending):
    frame = pl.DataFrame(
        {"userId": [7, 7, 3], "movieId": ["x", "y", "x"], "rating": [4.5, 1, 3], "when": [1, 2, 3]}
    )
    path = log_file(f"ratings.{ending}", WRITERS[ending](frame))
    ratings = read_ratings(path)
    assert ratings.rows() == [("7", "x", 4.5), ("7", "y", 1.0), ("3", "x", 3.0)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("user;movieId\n1;2\n", "no column userId, rating; the table has user, movieId; expected"),
        (
            "userId,movieId,rating\n1,2,x\n",
            r"ratings\.csv, line 2: rating is 'x'; expected a number",
        ),
        ("userId,movieId,rating\n1,,3\n", "line 2 has no value in the column 'movieId'"),
        ("userId,movieId,rating\n1,2,3\n1,2,4\n", "line 3: the user '1' rates the item '2' twice"),
        ("userId,movieId,rating\n1,2,-3\n", "line 2: rating is '-3'; expected a number from 0"),
    ],
)
def test_wrong_ratings_are_refused(log_file, text, message):
    with pytest.raises(ValueError, match=message):
        read_ratings(log_file("ratings.csv", text))


def test_ratings_in_memory_are_checked():
    with pytest.raises(ValueError, match="the ratings have no column 'rating'"):
        contextual_instance(pl.DataFrame({"user": ["a"], "item": ["b"]}))


USERS = """session,position,item,clicked,user,arm
1,1,a,1,7.0,B
1,2,b,0,7.0,B
2,1,a,1,,
3,1,b,0,7.0,A
4,1,b,0,,A
"""


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_users_and_arms(log_file, tmp_path, ending):
    """A session without a user is of another one, and one without an arm is outside the
    experiment.
    """
    log = read_log(log_file("log.csv", USERS))
    for _ in range(2):
        assert log.users[0] == log.users[2]
        assert len(set(log.users.tolist())) == 3
        arms = [log.arm_labels[arm] if arm >= 0 else None for arm in log.arms.tolist()]
        assert arms == ["B", None, "A", "A"]
        assert log[[2, 0]].arms.tolist() == log.arms[[2, 0]].tolist()
        write_tidy(log, tmp_path / f"again.{ending}")
        log = read_log(tmp_path / f"again.{ending}")
    assert read_log(log_file("log.csv", USERS), columns={"user": ""}).users is None
    texts = pl.read_csv(log_file("log.csv", USERS), infer_schema=False)
    empty = texts.with_columns(pl.col("arm").fill_null(""))
    assert read_log(empty).arms.tolist() == log.arms.tolist()
    two = USERS.replace("1,2,b,0,7.0,B", "1,2,b,0,7.0,A")
    with pytest.raises(ValueError, match="the session '1' has two values of arm"):
        read_log(log_file("log.csv", two))
