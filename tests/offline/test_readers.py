"""Click logs as tables and files: what is written is read back, what is malformed is named or counted, and mutated files."""

import csv
import gzip
import io
import itertools
import math
import re

import gymnasium as gym
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import clickgym
from clickgym.offline import (
    ClickLog,
    ItemPositionLog,
    Judgements,
    read_letor,
    read_open_bandit,
    read_ratings,
    read_tidy,
    read_yandex_personalized,
    read_yandex_relevance,
    write_tidy,
)
from clickgym.offline.record import record


def rows(log):
    """A log as ``(query, items, clicks)`` of each session, by labels."""
    return [
        (log.query_labels[query], [log.item_labels[item] for item in items[:length]], clicks[:length].tolist())
        for query, items, clicks, length in zip(log.queries, log.items, log.clicks, log.lengths.tolist(), strict=True)
    ]


def some_log(**fields):
    items, clicks = [[0, 1], [2, 0], [1, 2]], [[1, 0], [0, 0], [1, 1]]
    return ClickLog(items, clicks, [0, 1, 0], ("a", "b,c", 'd"e'), ("q", "r"), **fields)


PROPENSITIES = {"propensities": [[0.1, 0.2], [1.0, 1 / 3], [1e-9, 0.5]], "list_propensities": [0.01, 1.0, 1 / 7]}

# ------------------------------------------------------------------------------------------------------ logs in memory


def test_propensities_follow_the_sessions():
    log = some_log(**PROPENSITIES, off_list_clicks=3, skipped={"reason": 2})
    part = log[[2, 0]]
    np.testing.assert_array_equal(part.propensities, [[1e-9, 0.5], [0.1, 0.2]])
    np.testing.assert_array_equal(part.list_propensities, [1 / 7, 0.01])
    assert (part.off_list_clicks, part.skipped) == (0, {})
    assert some_log()[1:].propensities is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"propensities": [[0.1, 0.2]]}, r"propensities has shape \(1, 2\); expected \(3, 2\)"),
        (
            {"propensities": [[0.1, 0.2], [0.0, 1.0], [1, 1]]},
            r"propensities\[1, 0\] is 0.0; expected a probability in \(0, 1\]",
        ),
        ({"propensities": [[0.1, 0.2], [1.0, 1.0], [1, 1.5]]}, r"propensities\[2, 1\] is 1.5"),
        ({"list_propensities": [1.0, 0.5]}, r"list_propensities has shape"),
        ({"list_propensities": [1.0, 0.5, math.nan]}, r"list_propensities\[2\] is nan"),
    ],
)
def test_bad_propensities_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        some_log(**fields)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (([[0]], [0], [0], [1.0]), "items has shape"),
        (([0, 1], [0], [0, 0], [1.0, 1.0]), r"positions has shape \(1,\); expected \(2,\)"),
        (([0, -1], [0, 0], [0, 0], [1.0, 1.0]), r"items\[1\] is -1; expected an integer from 0"),
        (([0, 1], [0, 0], [0, 2], [1.0, 1.0]), r"clicks\[1\] is 2; expected an integer from 0 to 1"),
        (([0, 1], [0, 0], [0, 1], [1.0, 0.0]), r"propensities\[1\] is 0.0"),
    ],
)
def test_a_log_of_single_items_is_checked(arrays, message):
    with pytest.raises(ValueError, match=message):
        ItemPositionLog(*arrays)


def test_the_frame_is_tidy():
    frame = some_log(**PROPENSITIES).to_frame()
    assert frame.columns == ["session", "query", "position", "item", "clicked", "propensity", "list_propensity"]
    assert frame.row(3) == (1, "r", 2, "a", 0, 1 / 3, 1.0)
    assert some_log().to_frame().width == 5


# ------------------------------------------------------------------------------------------------------------ recording


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


def test_recording_is_what_the_runner_plays_and_learners_have_no_propensities():
    env = gym.make("DCMRank-v0")
    log = record(clickgym.make_agent("TopRank", env, horizon=300, seed=3), env, 300, seed=4)
    result = clickgym.run(clickgym.make_agent("TopRank", env, horizon=300, seed=3), env, 300, seed=4)
    assert log.clicks.sum() == result.clicks[-1]
    assert log.propensities is None
    assert log.list_propensities is None
    assert log.query_labels == ("yandex-9982",)


def test_wrappers_of_observations_change_nothing_in_what_is_recorded():
    plain = gym.make("PBMRank-v0")
    wrapped = clickgym.envs.HistoryObservation(gym.make("PBMRank-v0"))
    logs = [record(clickgym.make_agent("Random", env, seed=0), env, 50, seed=1) for env in (plain, wrapped)]
    assert logs[0].clicks.any()
    np.testing.assert_array_equal(logs[0].items, logs[1].items)
    np.testing.assert_array_equal(logs[0].clicks, logs[1].clicks)


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

    with pytest.raises(clickgym.AgentError, match="Twice, session 1"):
        record(Twice(), env, 1)


# ---------------------------------------------------------------------------------------------------------------- tidy


@pytest.mark.parametrize("fields", [{}, PROPENSITIES], ids=["without", "with propensities"])
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_what_is_written_is_read_back(tmp_path, ending, fields):
    log = some_log(**fields)
    write_tidy(log, tmp_path / f"log.{ending}")
    again = read_tidy(tmp_path / f"log.{ending}")
    assert rows(again) == rows(log)
    assert [file.name for file in tmp_path.iterdir()] == [f"log.{ending}"]
    for name in ("propensities", "list_propensities"):
        np.testing.assert_array_equal(getattr(again, name), getattr(log, name))


LABELS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), min_size=1)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@settings(max_examples=40)
@given(labels=st.lists(LABELS, min_size=3, max_size=3, unique=True), query=LABELS)
def test_any_label_is_read_back(tmp_path_factory, ending, labels, query):
    path = tmp_path_factory.getbasetemp() / f"labels.{ending}"
    log = ClickLog([[0, 1], [2, 0]], [[1, 0], [0, 1]], [0, 0], tuple(labels), (query,))
    write_tidy(log, path)
    assert rows(read_tidy(path)) == rows(log)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "log.csv"
    write_tidy(some_log(), path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"does not fit into a line of log\.csv; write \.parquet"):
        write_tidy(ClickLog([[0]], [[0]], [0], ("a\nb",), ("q",)), path)
    with pytest.raises(ValueError, match="a label is empty"):
        write_tidy(ClickLog([[0]], [[0]], [0], ("",), ("q",)), path)
    with pytest.raises(ValueError, match=r"must end with .csv, .csv.gz or .parquet"):
        write_tidy(some_log(), tmp_path / "log.txt")
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["log.csv"]


def test_parquet_with_other_types_and_damaged(tmp_path):
    path = tmp_path / "log.parquet"
    frame = some_log().to_frame().with_columns(pl.col("clicked").cast(pl.Boolean), pl.col("item").cast(pl.Categorical))
    frame.write_parquet(path)
    assert rows(read_tidy(path)) == rows(some_log())
    frame.with_columns(item=pl.when(pl.col("session") == 2).then(None).otherwise(pl.col("item"))).write_parquet(path)
    with pytest.raises(ValueError, match=r"log\.parquet, row 5: the column 'item' is empty"):
        read_tidy(path)
    assert read_tidy(path, bad_rows="skip:100%").skipped == {"a missing value": 2}
    path.write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(ValueError, match="not a Parquet table"):
        read_tidy(path)


TIDY = """\
session,query,position,item,clicked,propensity
0,q,2,b,1,0.25
0,q,1,a,0,0.5
1,r,1,b,0,0.5
1,r,2,"c,d",1,0.125
2,q,1,a,0,1
2,q,2,c,0,1e-3
"""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("3,q,1,a,0", "line 8: 5 fields; expected 6"),
        ('3,q,1,"a,0,1', "line 8: not CSV in UTF-8"),
        ("3,q,1,a,0,0", r"line 8: propensity is '0'; expected a probability in \(0, 1\]"),
        ("3,q,1,a,0,1_0", "line 8: propensity is '1_0'"),
        ("3,q,1,a,yes,1", "line 8: clicked is 'yes'; expected 0 or 1"),
        ("3,q,01x,a,0,1", "line 8: position is '01x'; expected a whole number from 1"),
        ("3,q,1,,0,1", "line 8: the column 'item' is empty"),
        ("3,q,1,a,0,1\n3,q,3,b,0,1", "near line 9: session 3 does not have each position from 1 to 3 exactly once"),
        ("3,q,1,a,0,1\n3,q,1,b,0,1", "near line 9: session 3 has the position 1 twice; duplicates 'first' keeps the first"),
        ("3,q,0,a,0,1\n3,q,1,b,0,1", r"line 8: position is '0'; expected a whole number from 1, as in the first session"),
        ("3,q,1,a,0,1\n3,q,2,a,0,1", "near line 9: session 3 shows an item twice"),
        ("3,q,1,a,0,1\n3,r,2,b,0,1", "near line 9: session 3 has two queries"),
    ],
)
def test_strict_tidy_names_the_line_and_counting_leaves_the_session_out(log_file, line, message):
    path = log_file("log.csv", TIDY + line + "\n4,q,1,a,1,1\n4,q,2,b,0,1\n")
    with pytest.raises(ValueError, match=message):
        read_tidy(path)
    log = read_tidy(path, bad_rows="skip:100%")
    assert len(log) == 4
    assert rows(log)[3] == ("q", ["a", "b"], [1, 0])
    assert sum(log.skipped.values()) == line.count("\n") + 1


def test_a_first_session_that_lost_a_line_does_not_say_how_many_positions_there_are(log_file):
    path = log_file("log.csv", TIDY.replace("0,q,2,b,1,", "0,q,2,b,7,"))
    log = read_tidy(path, bad_rows="skip:100%")
    assert log.n_positions == 2
    assert len(log) == 2
    assert log.skipped == {"clicked is not 0 or 1": 1, "an incomplete session": 1}


def test_two_list_propensities_in_a_session(log_file):
    path = log_file("log.csv", "session,query,position,item,clicked,list_propensity\n0,q,1,a,0,0.5\n0,q,2,b,0,0.25\n")
    with pytest.raises(ValueError, match="session 0 has two list propensities"):
        read_tidy(path)


# ------------------------------------------------------------------------------------------------------------- Yandex

RELEVANCE = (
    "0\t0\tQ\t7\t1\t11\t12\t13\n0\t5\tC\t13\n0\t6\tC\t99\n1\t0\tQ\t7\t2\t12\t11\t13\n1\t9\tQ\t8\t2\t12\t11\t14\n1\t12\tC\t13\n"
)
PERSONALIZED = (
    "0\tM\t3\t77\n0\t0\tQ\t0\t5\t40,41\t11,1\t12,1\t13,2\n0\t3\tC\t0\t12\n0\t9\tQ\t1\t6\t42\t12,1\t11,1\t14,3\n"
    "0\t10\tC\t1\t11\n0\t11\tC\t0\t13\n0\t12\tC\t1\t99\n1\tM\t4\t78\n1\t0\tQ\t0\t5\t40,41\t13,2\t12,1\t11,1\n"
    "1\t20\tT\t1\t6\t42\t12,1\t11,1\t14,3\n"
)


def test_personalized_reader_gives_clicks_to_their_pages(log_file):
    path = log_file("log.gz", gzip.compress(PERSONALIZED.encode()))
    log = read_yandex_personalized(path)
    assert rows(log) == [
        ("5", ["11", "12", "13"], [0, 1, 1]),
        ("6", ["12", "11", "14"], [0, 1, 0]),
        ("5", ["13", "12", "11"], [0, 0, 0]),
    ]
    assert log.off_list_clicks == 1
    assert log.skipped == {"a test query, its clicks withheld": 1}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("2\t1\tX\t0\t5", "line 11: expected 'session, M, ...' or"),
        ("", "line 11: expected 'session, M, ...' or"),
        ("2\t0\tQ\t0\t5\t40\t11,1\t12,1\t13,1", "line 11: session 2 does not begin with a line M"),
        ("1\tM\t4\t78", "line 11: session 1 begins twice"),
        ("1\tM\t4", "line 11: a line M has 4 fields, got 3"),
        ("1\t30\tC\t0", "line 11: a line C has 5 fields, got 4"),
        ("1\t30\tQ\t2\t5\t40", "line 11: a line Q has 7 fields or more, got 6"),
        ("1\t30\tC\t1\t12", "line 11: a click before page 1 of session 1"),
        ("1\t30\tQ\t0\t5\t40\t11,1\t12,1\t13,1", "line 11: page 0 stands twice in session 1"),
        ("1\t30\tQ\t2\t5\t40\t11\t12,1\t13,1", "line 11: expected a URL, a comma and its domain, got '11'"),
        ("1\t30\tQ\t2\t5\t40\t11,1\t12,1\t13,x", "line 11: expected a number, got 'x'"),
        ("1\t30\tQ\t2\t5\t40\t11,1\t12,1", "line 11: a query with 2 URLs; expected 3, as before"),
        ("1\t30\tQ\t2\t5\t40\t11,1\t12,1\t11,1", "line 11: a list contains a URL twice"),
    ],
)
def test_personalized_reader_names_the_line_and_counting_leaves_the_session_out(log_file, line, message):
    path = log_file("log.tsv", PERSONALIZED + line + "\n3\tM\t5\t77\n3\t0\tQ\t0\t9\t1\t1,1\t2,2\t3,3\n3\t1\tC\t0\t3\n")
    with pytest.raises(ValueError, match=message):
        read_yandex_personalized(path)
    log = read_yandex_personalized(path, bad_rows="skip:100%")
    assert [row[0] for row in rows(log)] == ["5", "6", "9"]
    assert sum(log.skipped.values()) == 1 + 1 + 2  # the test query, the bad line, and two more lines of session 1


def test_relevance_reader_in_counting_mode_leaves_out_whole_sessions(log_file):
    path = log_file("log.tsv", RELEVANCE + "1\t13\tC\t12\tx\n1\t14\tC\t12\n2\t0\tQ\t7\t1\t11\t12\t13\n2\t1\tC\t12\n")
    log = read_yandex_relevance(path, bad_rows="skip:100%")
    assert rows(log) == [("7-1", ["11", "12", "13"], [0, 0, 1]), ("7-1", ["11", "12", "13"], [0, 1, 0])]
    assert log.skipped == {"wrong number of fields": 1, "in a session with a malformed line": 4}
    assert log.off_list_clicks == 1


@pytest.mark.parametrize("reader", [read_yandex_relevance, read_tidy, read_open_bandit])
def test_a_damaged_gzip_file_is_named(log_file, reader):
    path = log_file("log.gz", gzip.compress(RELEVANCE.encode() * 1000)[:-40])
    with pytest.raises(ValueError, match=r"log\.gz"):
        reader(path, bad_rows="skip:100%")


def test_files_without_a_session(log_file):
    path = log_file("empty", "")
    for reader in (read_yandex_relevance, read_yandex_personalized):
        with pytest.raises(ValueError, match="no query in the file"):
            reader(path)
    path.write_text(TIDY.splitlines()[0])
    with pytest.raises(ValueError, match="no session in the file"):
        read_tidy(path)


# -------------------------------------------------------------------------------------------------------- Open Bandit

BANDIT = """\
,timestamp,item_id,position,click,propensity_score,user_feature_0
0,2019-11-24 00:00:34+00:00,14,3,0,0.0125,81ce
1,2019-11-24 00:00:35+00:00,2,1,1,0.25,03a5
"""


def test_open_bandit_reader(log_file):
    path = log_file("log.csv", BANDIT)
    log = read_open_bandit(path)
    assert (log.items.tolist(), log.positions.tolist(), log.clicks.tolist()) == ([14, 2], [2, 0], [0, 1])
    assert log.propensities.tolist() == [0.0125, 0.25]
    path.write_text(BANDIT + "2,t,3,0,0,0.5,x\n3,t,3,1,0,0.5\n4,t,3,1,0,0.5,x\n")
    with pytest.raises(ValueError, match=r"line 4: position is '0'; expected a whole number from 1"):
        read_open_bandit(path)
    log = read_open_bandit(path, bad_rows="skip:100%")
    assert len(log) == 3
    assert sum(log.skipped.values()) == 2


# ---------------------------------------------------------------------------------------------------------------- fuzz


def number(text):
    if not re.fullmatch("[0-9]+", text):
        raise ValueError(text)
    return text


def lines_of(content):
    lines = content.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line[:-1] if line.endswith("\r") else line for line in lines]


def slow_relevance(content):
    """Written from the format's description alone, a session at a time; latin-1 keeps every byte."""
    pages, session = [], None
    for line in lines_of(content.decode("latin-1")):
        this, time, kind, *rest = line.split("\t")
        number(this), number(time), [number(field) for field in rest]
        if this != session:
            session, own = this, []
        if kind == "Q":
            query, region, *urls = rest
            assert urls
            assert len(set(urls)) == len(urls)
            assert not pages or len(urls) == len(pages[0][1])
            own.append((f"{query}-{region}", urls, [0] * len(urls)))
            pages.append(own[-1])
        else:
            (url,) = rest
            assert kind == "C"
            assert own
            holders = [page for page in own if url in page[1]]
            if holders:
                holders[-1][2][holders[-1][1].index(url)] = 1
    assert pages
    return pages


def slow_personalized(content):
    pages, session = [], None
    for line in lines_of(content.decode("latin-1")):
        fields = line.split("\t")
        if fields[1] == "M":
            this, _, day, user = fields
            number(this), number(day), number(user)
            assert this != session
            session, own = this, {}
            continue
        this, time, kind, page, *rest = fields
        number(this), number(time), number(page)
        assert this == session
        if kind == "C":
            (url,) = rest
            query, urls, clicks = own[page]
            if number(url) in urls:
                clicks[urls.index(url)] = 1
            continue
        query, terms, *pairs = rest
        [number(term) for term in (query, *terms.split(","))]
        urls = [url for url, domain in (pair.split(",") for pair in pairs) if number(url) and number(domain)]
        assert urls
        if kind == "T":
            continue
        assert kind == "Q"
        assert page not in own
        assert len(set(urls)) == len(urls)
        assert not pages or len(urls) == len(pages[0][1])
        own[page] = (query, urls, [0] * len(urls))
        pages.append(own[page])
    assert pages
    return pages


def slow_table(content):
    lines = lines_of(content.decode("utf-8-sig"))
    assert not any("\r" in line for line in lines)
    table = [next(csv.reader(io.StringIO(line), strict=True)) if line else [""] for line in lines]
    header, *body = table
    assert len(set(header)) == len(header)
    assert all(len(row) == len(header) for row in body)
    return header, [dict(zip(header, row, strict=True)) for row in body]


def slow_tidy(content):
    header, body = slow_table(content)
    assert all(header.count(name) == 1 for name in ("session", "position", "item", "clicked"))
    assert header.count("query") <= 1
    body = [{"query": "all", **row} for row in body]
    names = [row["session"] for row in body]
    runs = [name for at, name in enumerate(names) if at == 0 or names[at - 1] != name]
    if len(set(runs)) < len(runs):
        numeric = all(re.fullmatch("0|[1-9][0-9]{0,17}", name) for name in names)
        body.sort(key=lambda row: int(row["session"]) if numeric else row["session"].encode())
    sessions = []
    for row in body:
        if not sessions or sessions[-1][0]["session"] != row["session"]:
            sessions.append([])
        sessions[-1].append(row)
    pages = []
    for session in sessions:
        session.sort(key=lambda row: int(number(row["position"])))
        base = min(1, int(sessions[0][0]["position"]))
        assert all(len(row["position"]) < 10 for row in session)
        assert [int(row["position"]) for row in session] == list(range(base, base + len(session)))
        assert all(row["clicked"] in ("0", "1") and row["item"] and row["query"] and row["session"] for row in session)
        assert len({row["query"] for row in session}) == 1
        items = [row["item"] for row in session]
        assert len(set(items)) == len(items)
        if "propensity" in header:
            assert all(re.fullmatch("[0-9.eE+-]+", row["propensity"]) and 0 < float(row["propensity"]) <= 1 for row in session)
        if "list_propensity" in header:
            assert len({float(row["list_propensity"]) for row in session}) == 1
        shown_with = [float(row["propensity"]) for row in session] if "propensity" in header else None
        names = [name for name in header if re.fullmatch("feature_[1-9][0-9]*", name)]
        assert sorted(names) == sorted(f"feature_{j + 1}" for j in range(len(names)))
        names.sort(key=lambda name: int(name[8:]))
        assert all(re.fullmatch("-?[0-9.][0-9.eE+-]*", row[name]) for name in names for row in session)
        features = [[float(row[name]) for name in names] for row in session]
        assert np.isfinite(features).all()
        pages.append(
            (session[0]["query"], items, [int(row["clicked"]) for row in session], shown_with, features if names else None)
        )
    assert pages
    return pages


def slow_bandit(content):
    header, body = slow_table(content)
    assert body
    assert all(header.count(name) == 1 for name in ("item_id", "position", "click", "propensity_score"))
    result = []
    for row in body:
        item, position = number(row["item_id"]), number(row["position"])
        assert len(item) < 10 > len(position)
        assert int(position) > 0
        assert row["click"] in ("0", "1")
        assert re.fullmatch("[0-9.eE+-]+", row["propensity_score"])
        assert 0 < float(row["propensity_score"]) <= 1
        result.append((int(item), int(position) - 1, int(row["click"]), float(row["propensity_score"])))
    return result


def tidy_rows(log):
    propensities = [None] * len(log) if log.propensities is None else cut(log.propensities, log.lengths)
    return [(*row, shown_with) for row, shown_with in zip(rows(log), propensities, strict=True)]


def cut(values, lengths):
    return [row[:length].tolist() for row, length in zip(values, lengths.tolist(), strict=True)]


def bandit_rows(log):
    return list(zip(log.items.tolist(), log.positions.tolist(), log.clicks.tolist(), log.propensities.tolist(), strict=True))


def slow_ratings(content):
    header, body = slow_table(content)
    assert body
    assert all(header.count(name) == 1 for name in ("userId", "movieId", "rating"))
    result = {}
    for row in body:
        assert row["userId"]
        assert row["movieId"]
        assert re.fullmatch("[0-9.][0-9.eE+-]*", row["rating"])
        assert math.isfinite(float(row["rating"]))
        assert (row["userId"], row["movieId"]) not in result
        result[row["userId"], row["movieId"]] = float(row["rating"])
    return result


def slow_document(line):
    """The query, the label and the features of a line."""
    line = line.partition("#")[0]
    assert not line.startswith((" ", "\t"))
    label, *fields = [field for field in re.split("[ \t]+", line) if field]
    label = re.sub("[.]0*$", "", label)
    assert len(number(label)) < 10
    query = None
    if fields and fields[0].startswith("qid:"):
        query = number(fields.pop(0)[4:])
    features, before = {}, 0
    for field in fields:
        name, value = field.split(":")
        assert before < int(number(name))
        assert len(name) < 10
        assert re.fullmatch("[0-9.eE+-]+", value)
        assert math.isfinite(float(value))
        features[int(name)] = float(value)
        before = int(name)
    return query, int(label), features


def filled_lines_of(content):
    lines = lines_of(content.removeprefix(b"\xef\xbb\xbf").decode("latin-1"))
    return [line for line in lines if line.strip(" \t") and line.strip(" \t")[0] != "#"]


def slow_letor(content):
    documents = [slow_document(line) for line in filled_lines_of(content)]
    queries = [query for query, _, _ in documents]
    assert None not in queries
    assert len([query for query, _ in itertools.groupby(queries)]) == len(set(queries))
    assert any(features for _, _, features in documents)
    return documents


def slow_sizes(content):
    """The sizes of the queries of a file with five documents, without qid."""
    sizes = [int(number(line.strip(" \t"))) for line in filled_lines_of(content)]
    assert sum(sizes) == 5
    assert min(sizes) > 0
    assert all(len(line.strip(" \t")) < 10 for line in filled_lines_of(content))
    return sizes


def judged(judgements):
    return {
        (judgements.user_labels[user], judgements.item_labels[item]): label
        for user, item, label in zip(judgements.users, judgements.items, judgements.labels.tolist(), strict=True)
    }


def documents_of(judgements):
    """Entries that are 0 are kept: they were written."""
    x = judgements.features
    rows = [dict(zip((x[[i]].indices + 1).tolist(), x[[i]].data.tolist(), strict=True)) for i in range(x.shape[0])]
    names = [judgements.user_labels[user] for user in judgements.users]
    return list(zip(names, map(int, judgements.labels), rows, strict=True))


def context_rows(log):
    contexts = [None] * len(log) if log.context is None else cut(log.context, log.lengths)
    return [(*row, features) for row, features in zip(tidy_rows(log), contexts, strict=True)]


CONTEXT = """\
session,query,position,item,clicked,feature_1,feature_2
0,q,1,a,0,0.5,-1
0,q,2,b,1,1e-3,2.
1,q,2,a,0,.5,0
1,q,1,b,1,1,-2e1
"""

RATINGS = "userId,movieId,rating,timestamp\n1,31,2.5,1260759144\n1,1029,3,1260759179\n7,31,.5,851868750\n"
LETOR = "2 qid:10 1:0.5 3:-1e-1 # doc = a\n0 qid:10 2:1\n1 qid:8 1:3. 2:0 4:+.5\n"
REMARKS = "# written by\n\n2.0 qid:10 1:0.5 # doc = a\n \t\n0. qid:10 2:1\n\t# and\n1 qid:8 1:3.\n\n"
STRICT_FORMATS = {
    "ratings": (lambda path: read_ratings(path), slow_ratings, judged, RATINGS),
    "documents": (lambda path: read_letor(path), slow_letor, documents_of, LETOR),
    "documents and remarks": (lambda path: read_letor(path), slow_letor, documents_of, REMARKS),
    "sizes": (
        lambda path: read_letor(path.with_name("documents"), path),
        slow_sizes,
        lambda judgements: np.unique(judgements.users, return_counts=True)[1].tolist(),
        "2\n1\n2\n",
    ),
}

FORMATS = {
    "relevance": (read_yandex_relevance, slow_relevance, rows, RELEVANCE),
    "personalized": (read_yandex_personalized, slow_personalized, rows, PERSONALIZED),
    "tidy": (read_tidy, slow_tidy, context_rows, TIDY),
    "open bandit": (read_open_bandit, slow_bandit, bandit_rows, BANDIT),
    "tidy with context": (read_tidy, slow_tidy, context_rows, CONTEXT),
}


def mutated(content, rng):
    """The bytes with one to four random changes: a byte replaced, put in or taken out, a piece doubled, or the end cut off."""
    data = bytearray(content)
    for _ in range(rng.integers(1, 5)):
        at, kind = int(rng.integers(len(data) + 1)), rng.integers(10)
        byte = int(
            rng.choice(np.frombuffer(b'0123456789\t\n\r,.-"QCTMe \x00\xff', np.uint8)) if kind < 6 else rng.integers(256)
        )
        if kind in (0, 1, 2, 6):
            data[at : at + 1] = bytes([byte])
        elif kind in (3, 4, 7):
            data[at:at] = bytes([byte])
        elif kind == 8:
            end = at + int(rng.integers(1, 40))
            data[at:at] = data[at:end]
        elif kind == 9 and rng.random() < 0.3:
            del data[at:]
        else:
            del data[at : at + 1]
    return bytes(data)


def read_mutated(path, text, n_inputs, reader, slow, content_of, refusals):
    """Read mutated files by both readers, which must agree, or refuse them with the line; yields what the slow one read."""
    rng = np.random.default_rng(n_inputs)
    accepted = 0
    for _ in range(n_inputs):
        content = mutated(text.encode(), rng)
        path.write_bytes(content)
        try:
            expected = slow(content)
        except Exception:
            expected = None
        try:
            read = reader(path)
        except ValueError as error:
            refusal = str(error)
            assert expected is None, (content, refusal)
            assert re.search(refusals, refusal), refusal
        else:
            assert content_of(read) == expected, content
            accepted += 1
        yield expected
    assert 0.02 * n_inputs < accepted < 0.98 * n_inputs


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("n_inputs", [100, pytest.param(26_000, marks=pytest.mark.slow)])
def test_mutated_files_are_read_rightly_or_refused_with_the_line(tmp_path, name, n_inputs):
    reader, slow, content_of, text = FORMATS[name]
    path = tmp_path / "log.csv"
    refusals = r"line \d|no column|two columns|no query in the file|no session in|no row in"
    for expected in read_mutated(path, text, n_inputs, reader, slow, content_of, refusals):
        try:
            counted = reader(path, bad_rows="skip:100%")
        except ValueError:
            assert expected is None
        else:
            assert expected is None or content_of(counted) == expected


@pytest.mark.parametrize("name", STRICT_FORMATS)
@pytest.mark.parametrize("n_inputs", [200, pytest.param(26_000, marks=pytest.mark.slow)])
def test_mutated_judgements_are_read_rightly_or_refused_with_the_line(tmp_path, name, n_inputs):
    reader, slow, content_of, text = STRICT_FORMATS[name]
    (tmp_path / "documents").write_text("1 1:1\n" * 5)
    refusals = r"line \d|no column|two columns|no row in|no document|does not name its queries|the sizes add up"
    for _ in read_mutated(tmp_path / "log.csv", text, n_inputs, reader, slow, content_of, refusals):
        pass


# ------------------------------------------------------------------------------------------------- ratings and documents


STRICT_LINES = {
    read_yandex_relevance: (RELEVANCE, [
        ("1\t13\tX\t11", "line 7: expected 'session, time, Q or C"),
        ("nonsense", "line 7: expected 'session, time, Q or C"),
        ("1\t13\tC\t11\t12", "line 7: a click has 4 fields, got 5"),
        ("9\t1\tC\t11", "line 7: a click before the first query of session 9"),
        ("9\t0\tQ\t7\t1\t11\t12", "line 7: a query with 2 URLs; expected 3, as before"),
        ("9\t0\tQ\t7\t1\t11\t12\t11", "line 7: a list contains a URL twice"),
    ]),
    read_ratings: (RATINGS, [
        ("2,31,x", "line 5: 3 fields; expected 4"),
        ("2,31,-1,0", "line 5: rating is '-1'; expected a number from 0"),
        ("2,31,1e999,0", "line 5: rating is '1e999'"),
        ("2,31,,0", "line 5: rating is ''"),
        (",31,1,0", "line 5: the column 'userId' is empty"),
        ("7,31,1,0", "line 5: user 7 rates 31 a second time"),
    ]),
    read_letor: (LETOR, [
        ("1 qid:9 1:0.5 1:0.5", "line 4: feature 1 after feature 1; expected increasing numbers"),
        ("1 qid:9 3:1 2:1", "line 4: feature 2 after feature 3"),
        ("1 qid:9 0:1", "line 4: a feature's number is '0'; expected a whole number from 1"),
        ("1 qid:9 1:1e999", "line 4: feature 1 is 1e999; expected a finite number"),
        ("1 qid:9 1=1", "line 4: expected 'label number:value number:value ...', got '1 qid:9 1=1'"),
        ("-1 qid:9 1:1", "line 4: expected 'label"),
        ("1 1:1", "line 4: no qid, unlike the lines before"),
        ("1 qid:10 1:1", "line 4: the documents of query 10 are not consecutive"),
        ("# doc = d\n\n1 1:1", "line 6: no qid, unlike the lines before"),
        ("1.50 qid:9 1:1", "line 4: label is '1.5'; expected a whole number from 0"),
        ("1e0 qid:9 1:1", "line 4: expected 'label"),
        (
            "1 qid:9 99999999999:1",
            "line 4: a feature's number is '99999999999'; expected a whole number from 1, of at most 9 digits",
        ),
        ("9999999999 qid:9 1:1", "line 4: label is '9999999999'; expected a whole number from 0, of at most 9 digits"),
    ]),
}  # fmt: skip


@pytest.mark.parametrize(
    ("read", "text", "line", "message"),
    [(read, text, *case) for read, (text, cases) in STRICT_LINES.items() for case in cases],
)
def test_a_malformed_line_is_named(log_file, read, text, line, message):
    path = log_file("log.csv" if read is read_ratings else "log.txt", text + line + "\n")
    with pytest.raises(ValueError, match=re.escape(message)):
        read(path)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("named", [True, False])
def test_lines_without_documents_are_passed_over(tmp_path, mark, named):
    """As scikit-learn's ``dump_svmlight_file`` and editors write them; documents are labelled by their lines all the same."""
    text = REMARKS if named else re.sub(" qid:[0-9]+", "", REMARKS)
    (tmp_path / "letor.txt").write_text(mark + text, encoding="utf-8")
    (tmp_path / "letor.txt.query").write_text(f"{mark}2\r\n1\r\n\r\n", encoding="utf-8")
    documents = read_letor(tmp_path / "letor.txt")
    assert documents.labels.tolist() == [2, 0, 1]
    assert documents.users.tolist() == [0, 0, 1]
    assert documents.user_labels == (("10", "8") if named else ("1", "2"))
    assert documents.item_labels == ("3", "5", "7")
    np.testing.assert_array_equal(documents.features.toarray(), [[0.5, 0], [0, 1], [3, 0]])
    for nothing in ("", "# only this\n", "\n\n"):
        (tmp_path / "letor.txt").write_text(mark + nothing, encoding="utf-8")
        with pytest.raises(ValueError, match="no document in the file"):
            read_letor(tmp_path / "letor.txt")


def test_ratings_in_parquet(tmp_path):
    (tmp_path / "ratings.csv").write_text(RATINGS)
    table = pl.read_csv(tmp_path / "ratings.csv")
    table.write_parquet(tmp_path / "ratings.parquet")
    assert judged(read_ratings(tmp_path / "ratings.parquet")) == judged(read_ratings(tmp_path / "ratings.csv"))
    table.with_columns(rating=-pl.col("rating")).write_parquet(tmp_path / "ratings.parquet")
    with pytest.raises(ValueError, match=r"row 1: rating is '-2\.5'; expected a number from 0"):
        read_ratings(tmp_path / "ratings.parquet")


def test_queries_by_size(tmp_path, log_file):
    path = log_file("rank.train.gz", gzip.compress(b"2 1:0.5\n0 2:0.25 # a comment\n1 1:1\n"))
    with pytest.raises(ValueError, match=r"does not name its queries by qid, and there is no file .*rank\.train\.query"):
        read_letor(path)
    (tmp_path / "rank.train.query").write_text("2\n1\n")
    documents = read_letor(path)
    assert documents.users.tolist() == [0, 0, 1]
    assert (documents.user_labels, documents.item_labels) == (("1", "2"), ("1", "2", "3"))
    np.testing.assert_array_equal(documents.features.toarray(), [[0.5, 0], [0, 0.25], [1, 0]])
    for sizes, message in (("2\n2\n", "the sizes add up to 4; expected 3"), ("3\n0\n", "line 2: the size of a query is '0'")):
        (tmp_path / "sizes").write_text(sizes)
        with pytest.raises(ValueError, match=message):
            read_letor(path, tmp_path / "sizes")
    (tmp_path / "named.txt").write_text(LETOR)
    with pytest.raises(ValueError, match="names its queries by qid; there is no need of"):
        read_letor(tmp_path / "named.txt", tmp_path / "sizes")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"users": []}, r"users has shape \(0,\); expected \(judgements,\)"),
        ({"items": [0, 3]}, r"items\[1\] is 3; expected an integer from 0 to 1"),
        ({"labels": [1.0, -1.0]}, r"labels\[1\] is -1.0; expected a finite number from 0"),
        ({"labels": [1.0, np.inf]}, r"labels\[1\] is inf; expected a finite number from 0"),
        ({"labels": [1.0]}, r"labels has shape \(1,\); expected \(2,\)"),
        ({"items": [1, 1]}, "a user judges an item twice"),
        ({"features": sparse.csr_array((3, 1))}, r"features has shape \(3, 1\); expected 2 rows"),
        ({"features": np.eye(2)}, r"features is .*; expected a sparse array \(N, d\) of numbers"),
        ({"features": sparse.coo_array(np.ones(2))}, r"expected a sparse array \(N, d\) of numbers"),
        ({"features": sparse.csr_array([[1j], [0]])}, r"expected a sparse array \(N, d\) of numbers"),
        ({"features": sparse.csr_array([[1.0, 2.0], [0.0, np.nan]])}, r"features\[1, 1\] is nan; expected a finite number"),
        ({"features": sparse.csc_array([[0.0, 2.0], [-np.inf, 0]])}, r"features\[1, 0\] is -inf; expected a finite number"),
    ],
)
def test_wrong_judgements_are_named(changed, message):
    given = {"users": [0, 0], "items": [0, 1], "labels": [1, 2], "user_labels": ("u",), "item_labels": ("a", "b")}
    with pytest.raises(ValueError, match=message):
        Judgements(**(given | changed))


# -------------------------------------------------------------------------------------------------------- context in logs


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_context_is_written_and_read_back(tmp_path, ending):
    rng = np.random.default_rng(0)
    log = some_log(context=rng.standard_normal((3, 2, 11)), **PROPENSITIES)
    write_tidy(log, tmp_path / f"log{ending}")
    again = read_tidy(tmp_path / f"log{ending}")
    np.testing.assert_array_equal(again.context, log.context)
    np.testing.assert_array_equal(again.propensities, log.propensities)
    np.testing.assert_array_equal(log[[2, 0]].context, log.context[[2, 0]])


def test_wrong_context_is_named(log_file):
    with pytest.raises(ValueError, match=r"context has shape \(3, 2\); expected \(3, 2, features\)"):
        some_log(context=np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"context\[1, 0, 2\] is nan; expected a finite number"):
        some_log(context=np.where(np.arange(18).reshape(3, 2, 3) == 8, np.nan, 0.0))
    path = log_file("log.csv", CONTEXT.replace("0.5,-1", "0.5,inf"))
    with pytest.raises(ValueError, match="line 2: feature_2 is 'inf'; expected a finite number"):
        read_tidy(path)
    path.write_text(CONTEXT.replace("feature_1", "feature_3"))
    with pytest.raises(ValueError, match="no column 'feature_1'"):
        read_tidy(path)


def test_a_recorded_contextual_run_says_what_was_shown():
    env = gym.make("ContextualPBMRank-v0", instance="linear:n_items=6,n_positions=3,n_features=5,n_pool=9,n_users=4,seed=1")
    log = record(clickgym.make_agent("Random", env, seed=0), env, 50, seed=0)
    model = env.unwrapped.model
    assert (len(log.item_labels), len(log.query_labels)) == (9, 4)
    for session in range(50):
        for k in range(3):
            expected = [*model.users[log.queries[session]], *model.items[log.items[session, k]]]
            np.testing.assert_array_equal(log.context[session, k], expected)
    assert log.propensities[0, 0] == 1 / 6
    assert log.list_propensities[0] == 1 / 120
    result = clickgym.run(clickgym.make_agent("Random", env, seed=0), env, 50, seed=0, engine="python")
    assert log.clicks.sum() == result.clicks[-1]


def test_open_bandit_features(tmp_path):
    path, items = tmp_path / "log.csv", tmp_path / "items.csv"
    path.write_text(BANDIT.replace("14,3", "1,3"))
    text = "item_id,item_feature_0,item_feature_1\n0,-1,x\n1,1.5,y\n2,4,x\n"
    items.write_text(text)
    log = read_open_bandit(path, items)
    assert log.user_features.tolist() == [[1, 0], [0, 1]]
    z = (np.array([-1, 1.5, 4]) - 1.5) / np.std([-1, 1.5, 4])
    np.testing.assert_allclose(log.item_features, np.column_stack([z, [1, 0, 1], [0, 1, 0]]))
    assert (log.n_items, log.features(1).shape) == (3, (3, 5))
    assert np.linalg.norm(log.features(1), axis=1).max() == pytest.approx(1)
    np.testing.assert_allclose(log[[1]].features(0), log.features(1))
    for wrong, message in (
        (text.replace("1,1.5", "3,1.5"), "line 3: item_id is '3'; expected 1"),
        (text.replace("1.5", "a"), "line 3: item_feature_0 is 'a'; expected a finite number"),
        (text[: text.index("2,4")], "log.csv, line 3: item_id is 2; the item context has 0 to 1"),
    ):
        items.write_text(wrong)
        with pytest.raises(ValueError, match=message):
            read_open_bandit(path, items)


def test_a_carriage_return_within_the_header_is_refused(tmp_path):
    (tmp_path / "log.csv").write_bytes(b"session,q\rery,position,item,clicked\n0,q,1,a,0\n")
    with pytest.raises(ValueError, match=r"log\.csv, line 1: .* carriage return"):
        read_tidy(tmp_path / "log.csv")
