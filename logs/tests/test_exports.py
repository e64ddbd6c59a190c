"""The programs of docs/from_your_export.md, on small exports with the faults of real ones."""

import json
import re
from pathlib import Path

import polars as pl
import pytest

from clickgym_logs import read_log

PAGE = (Path(__file__).parents[2] / "docs" / "from_your_export.md").read_text(encoding="utf-8")
PROGRAMS = dict(re.findall(r"```python\n# (\w+)\.py\n(.*?)```", PAGE, flags=re.DOTALL))


@pytest.fixture
def sessions(tmp_path, program):
    """Runs a program of the page beside its files; returns what `read_log` reads of its log."""

    def run(name, **files):
        for file, content in files.items():
            (tmp_path / file.replace("__", ".")).write_text(content, encoding="utf-8")
        (tmp_path / f"{name}.py").write_text(PROGRAMS[name], encoding="utf-8")
        program(tmp_path / f"{name}.py", folder=tmp_path)
        log = read_log(tmp_path / "log.parquet")
        rows = zip(log.queries, log.items, log.clicks, log.times, log.lengths, strict=True)
        return [
            (
                log.query_labels[query],
                [log.item_labels[item] for item in items[:n]],
                clicks[:n].tolist(),
                time,
            )
            for query, items, clicks, time, n in rows
        ]

    return run


def lines(rows):
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def test_every_program_is_tested():
    assert sorted(PROGRAMS) == ["ga4", "pages", "ubi", "visitors"]
    assert PAGE.count("```python") == len(PROGRAMS)


def ubi_query(name, words, hits, client="USER-1", **attributes):
    return {
        "query_id": name,
        "client_id": client,
        "user_query": words,
        "timestamp": "2026-01-01T00:00:10.500Z",
        "query_attributes": attributes,
        "query_response_hit_ids": hits,
    }


def ubi_event(action, query, item):
    place = {"object": {"object_id": item}, "position": {"ordinal": 1}}
    return {"action_name": action, "query_id": query, "event_attributes": place}


def test_ubi(sessions):
    """Lists are as sent, with items that nobody saw; duplicates, bots and empty lists are gone."""
    query, event = ubi_query, ubi_event
    queries = [
        query("q1", "Red Shoes ", list("abc")),
        query("q1", "Red Shoes ", list("abc")),
        query("q2", "red shoes", list("cab")),
        query("q3", "red shoes", [f"i{k}" for k in range(12)]),
        query("q4", "red shoes", list("abc"), client="BOT-3"),
        query("q5", "no hit", []),
    ]
    events = [
        event("impression", "q1", "a"),
        event("click", "q1", "b"),
        event("click", "q1", "b"),
        event("add_to_cart", "q1", "c"),
        event("click", "q2", "b"),
        event("click", "q3", "i11"),
        event("click", "q9", "a"),
    ]
    found = sessions("ubi", ubi_queries__ndjson=lines(queries), ubi_events__ndjson=lines(events))
    assert found == [
        ("red shoes", ["a", "b", "c"], [0, 1, 0], 1767225610.5),
        ("red shoes", ["c", "a", "b"], [0, 0, 1], 1767225610.5),
        ("red shoes", [f"i{k}" for k in range(10)], [0] * 10, 1767225610.5),
    ]


def test_ubi_of_an_index(sessions, tmp_path):
    """As elasticdump writes it: the second page and a list without a user are gone, a sorted list
    is another query, and arms are kept.
    """
    queries = [
        ubi_query("q1", "shoes", list("abc"), arm="A"),
        ubi_query("q2", "shoes", list("def"), **{"from": 10}),
        ubi_query("q3", "shoes", list("cba"), sort="price", arm="B"),
        ubi_query("q4", "shoes", list("abc"), client=None),
    ]
    dumped = [{"_index": "ubi_queries", "_id": "x", "_source": query} for query in queries]
    events = [ubi_event("click", "q2", "d"), ubi_event("click", "q3", "a")]
    found = sessions("ubi", ubi_queries__ndjson=lines(dumped), ubi_events__ndjson=lines(events))
    assert [session[:3] for session in found] == [
        ("shoes", list("abc"), [0, 0, 0]),
        ("shoes sort=price", list("cba"), [0, 0, 1]),
    ]
    assert read_log(tmp_path / "log.parquet").arm_labels == ("A", "B")


def test_exports_without_clicks(sessions):
    """They are refused, and the names of what is there are printed."""
    queries, events = [ubi_query("q1", "shoes", list("abc"))], [ubi_event("item_click", "q1", "a")]
    with pytest.raises(SystemExit, match="item_click"):
        sessions("ubi", ubi_queries__ndjson=lines(queries), ubi_events__ndjson=lines(events))
    events = [ga4_event("view_item_list", "u1", 5, [*enumerate("abcdefgh", 1)])]
    with pytest.raises(SystemExit, match="view_item_list"):
        sessions("ga4", ga4_events__ndjson=lines(events))


def ga4_event(name, user, second, tiles, visit=7, page="https://shop.example/cat"):
    return {
        "event_name": name,
        "user_pseudo_id": user,
        "event_timestamp": str(1_767_225_600_000_000 + second * 1_000_000),
        "event_params": [
            {"key": "page_location", "value": {"int_value": None, "string_value": page}},
            {"key": "ga_session_id", "value": {"int_value": visit, "string_value": None}},
        ],
        "items": [
            {"item_id": item, "item_list_id": "cat", "item_list_index": str(place)}
            for place, item in tiles
        ],
    }


def test_ga4(sessions):
    """Tiles come in several events; sessions that did not see the first screen are left out."""
    event, page = ga4_event, "https://shop.example/cat?size=4&"
    tiles = [*enumerate("abcdefghij", 1)]
    rows = [
        event("view_item_list", "u1", 5, tiles[:4]),
        event("view_item_list", "u1", 9, tiles[4:10]),
        event("view_item_list", "u1", 9, tiles[4:10]),  # delivered twice
        event("select_item", "u1", 11, tiles[2:3]),
        event("select_item", "u1", 12, tiles[9:10]),  # below the first screen
        event("view_item_list", "u2", 20, tiles[:6]),  # left before
        event("view_item_list", "u3", 30, tiles[:8]),
        event("view_item_list", "u3", 40, [(1, "z"), *tiles[1:8]]),  # another list in the visit
        event("view_item_list", "u4", 50, tiles[:8]),
        event("view_item_list", "u4", 60, tiles[:8], visit=8),
        event("view_item_list", "u4", 65, [(1, "z"), *tiles[1:8]], visit=8, page=f"{page}page=2"),
        event("view_item_list", "u4", 70, tiles[7::-1], visit=8, page=f"{page}sort=price"),
        event("select_item", "u4", 71, tiles[:1], visit=8, page=f"{page}sort=price"),
        event("view_item_list", None, 80, tiles[:8]),
    ]
    found = sessions("ga4", ga4_events__ndjson=lines(rows))
    start = 1_767_225_600
    assert found == [
        ("cat", list("abcdefgh"), [0, 0, 1, 0, 0, 0, 0, 0], start + 5),
        ("cat", list("abcdefgh"), [0] * 8, start + 50),
        ("cat", list("abcdefgh"), [0] * 8, start + 60),
        ("cat&sort=price", list("abcdefgh"), [1] + [0] * 7, start + 70),
    ]


def test_csv_with_pages(sessions):
    """Page 2, bots, duplicates and an hour that never was are gone; times are UTC."""
    head = "id;search_id;page;rank;query;sku;clicked;ts_local;tz;visitor;ua"
    searches = [
        ("s1", 1, "2026-03-29 01:59:00;Europe/Berlin", "Firefox", [1, 0] + [0] * 8),
        ("s1", 2, "2026-03-29 01:59:00;Europe/Berlin", "Firefox", [1] * 10),
        ("s2", 1, "2026-03-29 02:30:00;Europe/Berlin", "Firefox", [0] * 10),
        ("s3", 1, "2026-03-29 03:00:00;Europe/Berlin", "Googlebot/2.1", [0] * 10),
        ("s4", 1, "2026-03-29 03:00:00;Europe/Berlin", "Firefox", [1] * 10),
        ("s5", 1, "2026-03-28 20:59:30;America/New_York", "Firefox", [0] * 9 + [1]),
    ]
    rows = [
        f"{name}{page}{k};{name};{page};{k + 10 * page - 10};shoes;i{k};{click};{where};v;{ua}"
        for name, page, where, ua, clicks in searches
        for k, click in enumerate(clicks, 1)
    ]
    text = "\n".join([head, *rows, rows[3], rows[40]])
    items, utc = [f"i{k}" for k in range(1, 11)], 1_774_745_940  # 2026-03-29 00:59
    assert sessions("pages", impressions__csv=text) == [
        ("shoes", items, [1] + [0] * 9, utc),
        ("shoes", items, [0] * 9 + [1], utc + 30),
    ]


def test_visitors_with_very_many_sessions(sessions, tmp_path):
    """Of two visitors one has more sessions than a person has."""
    rows = [(f"s{k}", "v1" if k < 1001 else "v2", k) for k in range(2001)]
    columns = {"session": [row[0] for row in rows], "user": [row[1] for row in rows]}
    columns |= {"time": [1_767_225_600 + row[2] for row in rows]}
    more = {"query": "q", "position": 1, "item": "a", "clicked": 0}
    log = pl.DataFrame(columns).with_columns(**{name: pl.lit(it) for name, it in more.items()})
    log.write_parquet(tmp_path / "log.parquet")
    assert [time for *_, time in sessions("visitors")] == columns["time"][1001:]


def test_the_csv_of_the_page_is_read(sessions):
    (text,) = re.findall(r"```csv\n(id;.*?)```", PAGE, flags=re.DOTALL)
    assert sessions("pages", impressions__csv=text)[0][1:3] == (["SKU-7", "SKU-3"], [0, 1])
