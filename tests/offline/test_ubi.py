"""Logs of User Behavior Insights: what becomes a session, every kind of dirt, and the way back."""

import gzip
import json

import gymnasium as gym
import polars as pl
import pytest

import clickgym
from clickgym.command_line import main
from clickgym.offline import ClickLog, read_log, read_ubi, ubi, write_ubi

T = "2026-01-01T00:00:{:02d}Z"


def query(query_id, hits, text="shoes", at=0, **more):
    return {"query_id": query_id, "user_query": text, "query_response_hit_ids": hits, "timestamp": T.format(at)} | more


def event(action, query_id, item, ordinal=None, at=9, **more):
    attributes = {"object": {"object_id": item, "object_id_field": "sku"}}
    attributes |= {} if ordinal is None else {"position": {"ordinal": ordinal}}
    return {"action_name": action, "query_id": query_id, "timestamp": T.format(at), "event_attributes": attributes} | more


def lines(records):
    return "".join(json.dumps(record) + "\n" for record in records)


def read(folder, queries, events, **options):
    (folder / "q.ndjson").write_text(lines(queries))
    (folder / "e.ndjson").write_text(lines(events))
    return read_ubi(folder / "q.ndjson", folder / "e.ndjson", **options)


def rows(log):
    return log.to_frame().select("query", "item", "clicked").rows()


CLEAN = (
    [query("1", ["a", "b", "c"])],
    [event("impression", "1", "a", 1), event("impression", "1", "b", 2), event("click", "1", "b", 2)],
)
SHOWN = [("shoes", "a", 0), ("shoes", "b", 1)]


def test_the_list_reaches_down_to_the_lowest_hit_with_an_impression(tmp_path):
    log = read(tmp_path, *CLEAN)
    assert rows(log) == SHOWN
    assert (log.skipped, log.notes) == ({}, ())
    assert log.times.tolist() == [1767225600.0]


DIRT = {
    "sessions left out: empty hit ids": ([query("2", [])], [event("impression", "2", "a", 1)]),
    "sessions left out: neither hits nor impressions from the top": ([query("2", None)], [event("impression", "2", "b", 2)]),
    "sessions left out: an item twice": ([query("2", ["a", "b", "a"])], []),
    "sessions left out: two items with one ordinal": (
        [query("2", None)],
        [event("impression", "2", "a", 1), event("impression", "2", "b", 1)],
    ),
    "sessions left out: several records of one query_id with different lists or texts": (
        [query("2", ["a"]), query("2", ["c"])],
        [],
    ),
    "sessions left out: a query without query_id": ([query(None, ["a"])], []),
    "identical records of one query, read once": ([query("1", ["a", "b", "c"], at=3)], []),
    "clicks dropped: without query_id": ([], [event("click", None, "a")]),
    "clicks dropped: without object": ([], [event("click", "1", None)]),
    "clicks dropped: of an unknown query_id": ([], [event("click", "7", "a")]),
    "clicks dropped: on an object that is not in the list": ([], [event("click", "1", "c")]),
    "impressions dropped: of an unknown query_id": ([], [event("impression", "7", "a")]),
    "clicks repeated, counted once": ([], [event("CLICK", "1", "b", 2)]),
    "ordinals that disagree with the list, ignored": ([], [event("impression", "1", "a", 2)]),
    "clicks before their query, kept": ([query("1", ["a", "b", "c"], at=5)], None),
    "times missing or malformed, kept in the order of the file": ([], [event("click", "1", "b") | {"timestamp": "soon"}]),
    "events ignored: 'view'": ([], [event("view", "1", "a")]),
    "impressions without ordinal, in sessions without hits": (
        [query("2", None)],
        [event("impression", "2", "a", 1), event("impression", "2", "b")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("reason", DIRT)
def test_each_kind_of_dirt_is_counted_and_leaves_the_rest_as_it_is(tmp_path, reason):
    queries, events = DIRT[reason]
    if events is None:  # of the session itself
        log = read(tmp_path, queries, [*CLEAN[1][:2], event("click", "1", "b", 2, at=1)])
    else:
        log = read(tmp_path, CLEAN[0] + queries, CLEAN[1] + events)
    assert log.skipped[reason] == 1
    assert f"{reason}: 1" in log.notes
    assert rows(log)[:2] == SHOWN


def test_no_click_is_before_a_query_of_unknown_time(tmp_path):
    log = read(tmp_path, [CLEAN[0][0] | {"timestamp": "soon"}], CLEAN[1])
    assert list(log.skipped) == ["times missing or malformed, kept in the order of the file"]


def test_a_click_of_a_session_that_is_left_out_is_dropped_and_counted(tmp_path):
    log = read(tmp_path, [*CLEAN[0], query("2", [])], [*CLEAN[1], event("click", "2", "a")])
    assert log.skipped["clicks dropped: of a session that is left out"] == 1
    assert log.notes[0].startswith("warning: 50.0% of the clicks belong to no list")


@pytest.mark.parametrize(("n_good", "warns"), [(19, False), (18, True)])
def test_more_than_one_click_in_twenty_dropped_is_a_warning_in_the_first_line_or_an_error(tmp_path, n_good, warns):
    queries = [query(str(n), ["a"]) for n in range(n_good)]
    events = [event("click", str(n), "a") for n in range(n_good)] + [event("click", "0", "z")]
    log = read(tmp_path, queries, events)
    assert log.notes[0].startswith("warning: ") == warns
    assert log.off_list_clicks == 1
    if warns:
        with pytest.raises(
            ValueError, match=r"5.3% of the clicks belong to no list of the log, more than 5%; .*not in the list: 1"
        ):
            read(tmp_path, queries, events, strict=True)


def test_without_impressions_all_hits_count_as_displayed_down_to_the_limit(tmp_path):
    queries, events = [query("1", ["a", "b", "c"])], [event("click", "1", "c")]
    log = read(tmp_path, queries, events)
    assert rows(log) == [("shoes", "a", 0), ("shoes", "b", 0), ("shoes", "c", 1)]
    assert log.skipped == {"sessions without impressions, all hits assumed to be displayed": 1}
    assert read(tmp_path, queries, [*events, event("click", "1", "a")], n_positions=2).items.tolist() == [[0, 1]]


@pytest.mark.parametrize(("ordinals", "first", "items"), [((1, 2, 4), None, "ab"), ((0, 1, 3), None, "ab"), ((1, 2, 3), 0, "")])
def test_without_hits_impressions_are_the_list_down_to_the_first_gap(tmp_path, ordinals, first, items):
    shown = [event("impression", "1", item, ordinal) for item, ordinal in zip("abc", ordinals, strict=True)]
    queries = [query("1", None), query("2", ["a"])]
    log = read(tmp_path, queries, [*reversed(shown), event("click", "1", "b"), event("click", "2", "a")], first_ordinal=first)
    assert "".join(item for _, item, _ in rows(log)[:-1]) == items


def test_a_click_belongs_to_the_item_it_names_never_to_an_ordinal(tmp_path):
    log = read(tmp_path, [query("1", ["7", "8"])], [event("click", "1", 8, 1)])
    assert rows(log) == [("shoes", "7", 0), ("shoes", "8", 1)]


def test_another_action_can_be_the_click(tmp_path):
    queries, events = CLEAN[0], [*CLEAN[1], event("Purchase", "1", "a")]
    log = read(tmp_path, queries, events, click_action="purchase")
    assert rows(log) == [("shoes", "a", 1), ("shoes", "b", 0)]
    assert log.skipped == {"events ignored: 'click'": 1}


def test_texts_of_queries_stay_or_become_lower_case_and_may_be_absent(tmp_path):
    queries = [query("1", ["a"], "Shoes"), query("2", ["a"], None)]
    events = [event("click", "1", "a")]
    assert read(tmp_path, queries, events).query_labels == ("Shoes", "")
    assert read(tmp_path, queries, events, normalize="lower").query_labels == ("shoes", "")


def test_a_session_without_a_time_has_that_of_the_one_above(tmp_path):
    queries = [
        query("1", ["a"], timestamp=None),
        query("2", ["a"], at=5),
        query("3", ["a"], timestamp="x"),
        query("4", ["a"], at=1),
    ]
    assert (read(tmp_path, queries, [event("click", "1", "a")]).times - 1767225600).tolist() == [5, 5, 5, 1]


# ----------------------------------------------------------------------------------------------------------------- files


def bulk(kind, records):
    return lines(line for record in records for line in ({"index": {"_index": f"ubi_{kind}", "_id": "x"}}, record))


def test_lines_arrays_bulk_files_and_gzip_are_the_same_log(tmp_path):
    queries, events = CLEAN
    expected = rows(read(tmp_path, queries, events))
    (tmp_path / "q.json").write_text(json.dumps(queries, indent=2))
    (tmp_path / "e.json").write_text(json.dumps(events))
    with gzip.open(tmp_path / "both.ndjson.gz", "wt") as file:
        file.write(bulk("queries", queries) + bulk("events", events))
    assert rows(read_ubi(tmp_path / "q.json", tmp_path / "e.json")) == expected
    assert rows(read_log(tmp_path / "both.ndjson.gz")) == expected
    assert rows(read_log(f"{tmp_path / 'q.json'}+{tmp_path / 'e.ndjson'}")) == expected
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "my_queries.json").write_text(json.dumps(queries))
    (folder / "my_events.ndjson").write_text("﻿" + lines(events))
    assert rows(read_log(folder)) == expected


def test_the_generator_of_opensearch_counts_ranks_from_0_and_writes_no_hits(tmp_path):
    queries = [{"query_id": "1", "user_query": "shoes", "query_attributes": {}, "client_id": "me", "timestamp": T.format(0)}]
    done = ("impression", "a", 0), ("impression", "b", 1), ("click", "b", 1)
    events = [event(action, "1", item) | {"message": None, "message_type": None} for action, item, _ in done]
    for one, (_, _, rank) in zip(events, done, strict=True):
        one["event_attributes"]["rank"] = rank
    (tmp_path / "both.ndjson").write_text(bulk("queries", queries) + bulk("events", events))
    assert rows(read_log(tmp_path / "both.ndjson")) == SHOWN
    time = "2024-06-01T00:00:00.000Z"
    (tmp_path / "ubi_queries.csv").write_text(f"application,query_id,client_id,user_query,timestamp\nx,1,me,shoes,{time}\n")
    header = "object_id,rank,object_id_field,application,action_name,query_id,session_id,client_id,timestamp\n"
    shown = "".join(f"{item},{rank},product_id,x,{action},1,s,me,{time}\n" for action, item, rank in done)
    (tmp_path / "ubi_events.csv").write_text(header + shown)
    assert rows(read_ubi(tmp_path / "ubi_queries.csv", tmp_path / "ubi_events.csv")) == [("shoes", "a", 0), ("shoes", "b", 1)]


WEIRD = ['a"b', "a\\b", "a\nb", "é☃", 'x"}, "position": {"ordinal": 5', "{[", ""]


def test_what_a_text_holds_changes_nothing(tmp_path):
    """Polars writes nested values as texts without escaping them, which the reader must not trust."""
    for folder, ascii_only in ((tmp_path / "a", True), (tmp_path / "b", False)):
        folder.mkdir()
        for name, records in (("queries", [query("1", WEIRD)]), ("events", [event("click", "1", item) for item in WEIRD[::2]])):
            text = "".join(json.dumps(record, ensure_ascii=ascii_only) + "\n" for record in records)
            (folder / f"{name}.ndjson").write_text(text, encoding="utf-8")
        assert rows(read_log(folder)) == [("shoes", item, int(k % 2 == 0)) for k, item in enumerate(WEIRD)]


BAD = {
    "not json": ("{'query_id'", "line 2: not JSON in UTF-8"),
    "no object": ("[1]", "line 2: not a JSON object"),
    "deep": ('{"query_id": "1", "x": ' + "[" * 33 + "]" * 33 + "}", "line 2: nested deeper than 32"),
    "very deep": ('{"x": ' + "[" * 100_000 + "]" * 100_000 + "}", "line 2: nested deeper than 32"),
    "half a surrogate": ('{"query_id": "\\ud800", "x": NaN}', "line 2: not JSON in UTF-8"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_record_is_named_by_its_line_or_left_out_and_no_message_has_a_client(tmp_path, name):
    line, message = BAD[name]
    queries, events = tmp_path / "q.ndjson", tmp_path / "e.ndjson"
    text = lines([query(str(n), ["a"], client_id="secret") for n in range(50)])
    queries.write_text(text.replace("\n", f"\n{line}\n", 1))
    events.write_text(lines([event("click", "1", "a", client_id="secret")]))
    with pytest.raises(ValueError, match=message) as error:
        read_ubi(queries, events)
    assert "secret" not in str(error.value)
    assert len(read_ubi(queries, events, bad_rows="skip:5%")) == 50


def test_other_wrong_input_is_one_line(tmp_path, monkeypatch):
    read(tmp_path, *CLEAN)
    q, e = tmp_path / "q.ndjson", tmp_path / "e.ndjson"
    for options, message in (
        ({"click_action": "impression"}, "click_action is 'impression'"),
        ({"click_action": 3}, "click_action is 3"),
        ({"first_ordinal": 2}, "first_ordinal is 2"),
        ({"n_positions": 0}, "n_positions is 0"),
        ({"normalize": "upper"}, "normalize 'upper'"),
        ({"strict": 1}, "strict is 1"),
        ({"max_memory": 8}, "max_memory"),
        ({"bad_rows": "x"}, "bad_rows is 'x'"),
        ({"click_action": "purchase"}, "events ignored: 'click': 1"),
    ):
        if "purchase" in options.values():
            assert read_ubi(q, e, **options).notes == (message,)
            continue
        with pytest.raises((ValueError, TypeError), match=message):
            read_ubi(q, e, **options)
    with pytest.raises(ValueError, match=r"expected its folder, or 'queries\.ndjson"):
        read_log(q)
    with pytest.raises(ValueError, match="in a folder one file has 'queries' in its name and one 'events'"):
        read_log(tmp_path)
    with pytest.raises(ValueError, match="1 queries and 0 such events"):
        read(tmp_path, CLEAN[0], [event("view", "1", "a")])
    with pytest.raises(ValueError, match="no session is left; sessions left out: empty hit ids: 1"):
        read(tmp_path, [query("1", [])], CLEAN[1])
    for text, message in (
        ('[{"query_id": "1"', "record 1: not JSON, cut off"),
        ("[3]", "record 1: not a JSON object"),
        ("a,b\n1,2\n", "no column 'query_id'"),
    ):
        q.write_text(text)
        with pytest.raises(ValueError, match=message):
            read_ubi(q, e)
    monkeypatch.setattr(ubi, "LONGEST", 100)
    monkeypatch.setattr(ubi, "PIECE", 50)
    q.write_text(json.dumps([query("1", ["a"] * 100)]))
    with pytest.raises(ValueError, match="record 1: not JSON, cut off, longer than"):
        read_ubi(q, e)
    write_ubi(ClickLog([[0]], [[0]], [0], ("a",), ("q",), times=[1.5]), tmp_path / "new")
    with pytest.raises(ValueError, match="no seconds since 1970"):
        write_ubi(ClickLog([[0]], [[0]], [0], ("a",), ("q",), times=[-1]), tmp_path / "new")


def test_entries_of_an_array_may_lie_across_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(ubi, "PIECE", 7)
    (tmp_path / "q.json").write_text(json.dumps([query(str(n), ["a", "b"]) for n in range(20)], indent=1))
    (tmp_path / "e.json").write_text(json.dumps([event("click", str(n), "b") for n in range(20)]))
    assert read_ubi(tmp_path / "q.json", tmp_path / "e.json").clicks.tolist() == [[0, 1]] * 20


# -------------------------------------------------------------------------------------------------------------- and back


@pytest.mark.parametrize(("env", "agent"), [("PBMRank-v0", "TopRank"), ("DCMRank-v0", "Random")])
def test_what_the_command_records_is_read_back_to_the_bit(tmp_path, env, agent, capsys):
    args = ["record", env, "--agent", agent, "--sessions", "300", "--seed", "4", "--out"]
    assert main([*args, str(tmp_path / "log"), "--format", "ubi"]) == 0
    assert main([*args, str(tmp_path / "log.csv")]) == 0
    assert "300 sessions" in capsys.readouterr().out
    world = gym.make(env)
    log = clickgym.record(clickgym.make_agent(agent, world, horizon=300, seed=4), world, 300, seed=4)
    expected = log.to_frame().select("session", "query", "position", "item", "clicked")
    for path in ("log", "log.csv"):
        back = read_log(tmp_path / path)
        assert back.to_frame().select(expected.columns).equals(expected)
        assert back.notes == ()


def test_lists_of_unequal_length_and_times_come_back(tmp_path):
    log = ClickLog([[1, 0], [0, -1]], [[1, 1], [0, 0]], [1, 0], ("a", "b"), ("", "q"), times=[7.25, 7e8])
    write_ubi(log, tmp_path)
    back = read_log(tmp_path)
    assert back.to_frame().equals(log.to_frame())
    events = pl.read_ndjson(tmp_path / "ubi_events.ndjson")
    assert events["action_name"].to_list() == ["impression"] * 2 + ["click"] * 2 + ["impression"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--out", "log.txt"], "expected a file that ends with .csv"),
        (["--out", "no/log.csv"], "in a folder that exists"),
        (["--out", "log.csv", "--format", "ubi"], "expected a folder, for the two files of UBI"),
        (["--out", "log.csv", "--format", "x"], "log format 'x'"),
        (["--out", "log.csv", "--agent", "Nobody"], "Nobody"),
        (["--out", "log.csv", "--agent", "PPO"], "expected an agent"),
        (["--out", "log.csv", "--sessions", "0"], "0"),
    ],
)
def test_record_says_in_one_line_what_is_wrong(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    assert main(["record", "PBMRank-v0", "--agent", "Random", "--sessions", "10", *words]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_query_that_comes_among_events_which_are_read_as_they_come_is_refused(tmp_path):
    """Queries that a bulk request names from its first line on are found in either file."""
    record, click = (
        '{"query_id": "1", "user_query": "q", "query_response_hit_ids": ["a"]}\n',
        '{"query_id": "1", "action_name": "click"}\n',
    )
    (tmp_path / "q.ndjson").write_text(record)
    (tmp_path / "e.ndjson").write_text(click + '{"index": {"_index": "ubi_queries"}}\n' + record)
    assert len(read_ubi(tmp_path / "q.ndjson", tmp_path / "e.ndjson")) == 1  # within the first block
    (tmp_path / "e.ndjson").write_text(click * 60_000 + '{"index": {"_index": "ubi_queries"}}\n' + record)
    with pytest.raises(ValueError, match=r"e\.ndjson: a query is among the events of another file; expected one file of both"):
        read_ubi(tmp_path / "q.ndjson", tmp_path / "e.ndjson")
