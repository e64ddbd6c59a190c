"""What ordinary logs look like: the same content gives the same log, and what the page of formats shows is read."""

import gzip
import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slow import slow

from clickgym.command_line import main
from clickgym.envs.instances import load_instance
from clickgym.offline import (
    ClickLog,
    fit_models,
    names,
    read_log,
    read_open_bandit,
    read_tidy,
    rows,
    tidy,
    write_tidy,
)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "logs.md"
FIELDS = ("items", "clicks", "queries", "propensities", "list_propensities", "context", "times")


def log_of(n_sessions=200, seed=0, **more):
    rng = np.random.default_rng(seed)
    items = rng.permuted(np.tile(np.arange(6), (n_sessions, 1)), axis=1)[:, :4]
    clicks = rng.random(items.shape) < np.array([0.7, 0.5, 0.4, 0.3, 0.2, 0.1])[items] * [0.9, 0.7, 0.5, 0.3]
    return ClickLog(items, clicks, np.zeros(n_sessions, int), tuple("abcdef"), ("all",), **more)


def same(one, other):
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert (one.item_labels, one.query_labels) == (other.item_labels, other.query_labels)


def lines(frame, mark=","):
    return frame.write_csv(separator=mark)


def json_lines(frame):
    return frame.with_columns(pl.col("clicked").cast(bool)).write_ndjson()


SORTED = "the rows of a session are not consecutive: they are sorted by session and position"
WORDS = "clicked: true and false are taken for 1 and 0"
VARIANTS = {
    "plain": (lines, []),
    "positions from 0": (
        lambda frame: lines(frame.with_columns(pl.col("position") - 1)), ["positions are taken to be counted from 0"]
    ),
    "true and false": (lambda frame: lines(frame.with_columns(pl.col("clicked").cast(bool))), [WORDS]),
    "tabs": (lambda frame: lines(frame, "\t"), ["the columns are taken to be separated by tabs"]),
    "semicolons": (lambda frame: lines(frame, ";"), ["the columns are taken to be separated by semicolons"]),
    "JSON lines": (json_lines, ["the log is taken for JSON lines", WORDS]),
    "shuffled rows": (lambda frame: lines(frame.sample(fraction=1.0, shuffle=True, seed=1)), [SORTED]),
    "no query": (
        lambda frame: lines(frame.drop("query")),
        ["there is no column 'query': all sessions are taken to be of one query, 'all'"],
    ),
    "quoted": (lambda frame: frame.write_csv(quote_style="always"), []),
    "True and FALSE, CRLF": (lambda frame: lines(frame).replace(",1\n", ",True\r\n").replace(",0\n", ",FALSE\r\n"), [WORDS]),
}  # fmt: skip
"""What makes the content from a frame, and what is guessed of it."""


@pytest.fixture
def plain(log_file):
    return read_log(log_file("plain.csv", lines(log_of().to_frame())))


@pytest.mark.parametrize(("make", "notes"), VARIANTS.values(), ids=VARIANTS)
def test_the_same_content_gives_the_same_log_and_what_was_guessed_is_said(log_file, make, notes, plain):
    path = log_file("log", make(log_of().to_frame()))
    log = read_log(path)
    same(log, plain)
    assert list(log.notes) == notes
    assert log[[0]].notes == ()
    same(read_log(log_file("log.gz", gzip.compress(path.read_bytes()))), plain)


def test_the_command_fits_every_variant_alike_and_prints_what_it_guessed(tmp_path, log_file, capsys):
    fitted, out = set(), tmp_path / "out.json"
    for make, notes in VARIANTS.values():
        assert main(["fit", str(log_file("log.txt", make(log_of().to_frame()))), "--model", "PBM", "--out", str(out)]) == 0
        printed, progress = capsys.readouterr()
        assert all(note in progress for note in notes)
        model = load_instance(out).model("PBM")
        fitted.add(str((model.attraction.tolist(), model.examination.tolist(), printed.splitlines()[2])))
    assert len(fitted) == 1


def test_the_command_fits_lists_of_unequal_length(tmp_path, capsys):
    """Half of the lists end after the second position: what is known of the others stays."""
    frame = log_of().to_frame().filter((pl.col("session") % 2 == 0) | (pl.col("position") <= 2))
    (tmp_path / "log.csv").write_text(lines(frame))
    assert main(["fit", str(tmp_path / "log.csv"), "--model", "PBM", "UBM", "DBN", "--out", str(tmp_path / "out.json")]) == 0
    assert "nan" not in capsys.readouterr()[0]
    log = read_log(tmp_path / "log.csv")
    assert log.lengths.tolist() == [4, 2] * 100
    assert load_instance(tmp_path / "out.json").n_positions == 4


def test_the_command_takes_other_names_and_repeated_rows(tmp_path, log_file, capsys, refused):
    frame = log_of().to_frame().rename({"item": "doc_id", "clicked": "is_click"}).drop("query")
    path = log_file("log.csv", lines(pl.concat([frame, frame[:8]])))
    words = ["fit", str(path), "--model", "PBM", "--out", str(tmp_path / "out.json")]
    names = ["--columns", "item=doc_id,clicked=is_click"]
    assert main([*words, *names, "--duplicates", "first"]) == 0
    assert "left out 8 lines: a repeated row" in capsys.readouterr().err
    for wrong, message in {
        (): "no column 'item'; the file has session, position, doc_id, is_click",
        ("--columns", "item=doc,clicked=is_click"): "no column 'doc' (for item); the file has session, position, doc_id",
        ("--columns", "itm=doc_id"): "unknown column 'itm'",
        ("--columns", "doc_id"): "expected NAME=COLUMN",
        tuple(names): "session 0 has the position 1 twice; duplicates 'first' keeps the first of repeated rows",
        (*names, "--duplicates", "last"): "unknown way with duplicates 'last'",
        (*names, "--duplicates", "first", "--max-memory", "1kB"): "more than max_memory = 1.0 kB",
        (*names, "--max-memory", "much"): "max_memory is 'much'; expected a size such as 500MB or 4GB",
    }.items():  # fmt: skip
        said = refused([*words, *wrong])
        assert message in " ".join(said.split()), (wrong, said)


# --------------------------------------------------------------------------------------------------------------- data frames


def test_frames_of_polars():
    log = log_of(propensities=np.full((200, 4), 1 / 6), list_propensities=np.full(200, 1 / 360))
    frame = log.to_frame()
    again = ClickLog.from_frame(frame)
    same(ClickLog.from_frame(frame.lazy()), again)
    same(ClickLog.from_frame(frame.with_columns(pl.col("clicked").cast(bool))), again)
    renamed = frame.rename({"item": "doc"})
    same(ClickLog.from_frame(renamed, columns={"item": "doc"}), again)
    same(
        ClickLog.from_frame(pl.concat([frame, frame[:3]]), duplicates="first"),
        ClickLog.from_frame(frame.sort("session", "position")),
    )
    with pytest.raises(ValueError, match=r"^the frame: no column 'item'; the file has session, query, position, doc"):
        ClickLog.from_frame(renamed)
    with pytest.raises(ValueError, match=r"^the frame, row 5: the column 'item' is empty$"):
        ClickLog.from_frame(frame.with_columns(item=pl.when(pl.int_range(pl.len()) == 4).then(None).otherwise("item")))
    with pytest.raises(TypeError, match="frame is a list; expected a data frame of pandas or Polars"):
        ClickLog.from_frame([1])


def test_frames_of_pandas():
    pandas = pytest.importorskip("pandas")
    frame = log_of().to_frame()
    given = pandas.DataFrame(frame.to_dict(as_series=False))
    same(ClickLog.from_frame(given), ClickLog.from_frame(frame))
    same(ClickLog.from_frame(given.astype({"clicked": bool})), ClickLog.from_frame(frame))
    given.loc[4, "item"] = None
    with pytest.raises(ValueError, match="row 5: the column 'item' is empty"):
        ClickLog.from_frame(given)


# ------------------------------------------------------------------------------------------------------------ rows in any order


@pytest.mark.parametrize("ending", [*slow("csv"), "parquet"])
def test_rows_in_any_order_and_in_parts(tmp_path, monkeypatch, set_blocks, ending):
    rng = np.random.default_rng(0)
    known = {"propensities": rng.random((300, 4)), "list_propensities": rng.random(300), "context": rng.random((300, 4, 2))}
    log = log_of(300, **known)
    frame = log.to_frame().with_columns(query=pl.lit("q") + (pl.col("session") % 7).cast(pl.String))
    frame = frame.filter((pl.col("session") % 3 > 0) | (pl.col("position") < 3))
    expected = ClickLog.from_frame(frame)
    monkeypatch.setattr(names, "SPILL", 400)
    set_blocks(5000, 5000)
    monkeypatch.setattr(tidy, "ROWS", 300)
    monkeypatch.setattr(rows, "ROWS", 300)
    path = tmp_path / f"log.{ending}"
    for order in (
        frame.sample(fraction=1.0, shuffle=True, seed=3),
        frame.sort("position", descending=True),
        frame.sort("position"),
    ):
        order.write_csv(path) if ending == "csv" else order.write_parquet(path)
        log = read_log(path)
        same(log, expected)
        assert log.notes == (SORTED,)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_blocks_change_nothing(tmp_path, set_blocks):
    path = tmp_path / "log.csv"
    write_tidy(log_of(60), path)
    expected = read_log(path)
    for size in (30, 100, 1000):
        set_blocks(size, size)
        same(read_log(path), expected)


def test_sorted_rows_are_checked_as_those_that_stand_together(log_file):
    head, rows = "session,position,item,clicked", ["0,1,a,0", "1,1,b,1", "0,2,b,1", "1,2,a,0", "10,1,c,0", "9,1,a,1"]
    path = log_file("log.csv", "\n".join([head, *rows]))
    log = read_tidy(path)
    assert [[log.item_labels[item] for item in row if item >= 0] for row in log.items] == [["a", "b"], ["b", "a"], ["a"], ["c"]]
    for bad, message in {
        "1,4,c,0": "near line 8: session 1 does not have each position from 1 to 4 exactly once",
        "1,2,c,0": "near line 8: session 1 has the position 2 twice",
        "1,3,b,0": "near line 8: session 1 shows an item twice",
        "1,3,c,7": "line 8: clicked is '7'; expected 0 or 1",
        "1,3,c": "line 8: 3 fields; expected 4, as in the header",
    }.items():
        path.write_text("\n".join([head, *rows, bad]))
        with pytest.raises(ValueError, match=message):
            read_tidy(path)
        log = read_tidy(path, bad_rows="skip:100%")
        # A line that cannot be taken apart may have been of the session above it, whose list is shorter than others.
        assert log.lengths.tolist() == ([2, 1] if bad == "1,3,c" else [2, 1, 1])
        assert sum(log.skipped.values()) == (4 if bad == "1,3,c" else 3)


def test_a_broken_row_takes_its_session_with_it(tmp_path):
    """Else a list that lost its end would pass for a short one."""
    path = tmp_path / "log.csv"
    rows = ["0,1,a,0", "0,2,b,1", "1,1,b,1", "1,2", "2,1,a,0", "", "3,1,a,1", "3,2,b,2", "4,1,b,1"]
    path.write_text("\n".join(["session,position,item,clicked", *rows]))
    log = read_tidy(path, bad_rows="skip:100%")
    # Of the empty line nobody knows whether it was of session 2 or 3.
    assert log.lengths.tolist() == [2, 1]
    assert log.skipped == {"wrong number of fields": 2, "clicked is not 0 or 1": 1, "an incomplete session": 3}


def test_an_absent_name_of_a_first_column_and_a_feature_too_many(log_file):
    path = log_file("log.csv", "session,position,item,clicked,feature_2\n0,1,a,0,1.5\n")
    with pytest.raises(ValueError, match="no column 'feature_1'; the file has session"):
        read_tidy(path)
    path.write_text("session,position,item,item,clicked\n0,1,a,a,0\n")
    with pytest.raises(ValueError, match="two columns 'item'"):
        read_tidy(path)
    path.write_text(
        '{"session": 0, "position": 1, "item": "a", "clicked": 0}\n{"session": 1, "position": 1, "item": "a"\n[1]\n'
    )
    with pytest.raises(ValueError, match=r"line 2: not JSON"):
        read_tidy(path)
    assert read_tidy(path, bad_rows="skip:100%").skipped["not a JSON object"] == 1


@settings(max_examples=50)
@given(st.data())
def test_every_row_is_read_or_counted(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    field = st.sampled_from(["0", "1", "2", "3", "a", "b", "", '"c,d"', '"', "true", "-1", "é", "\r", "x;y"])
    rows = data.draw(st.lists(st.lists(field, min_size=3, max_size=5).map(",".join), max_size=8))
    good = ["7,1,a,1", "7,2,b,0", "8,1,b,0"]
    path.write_text("\n".join(["session,position,item,clicked", *good, *rows]), newline="")
    try:
        log = read_tidy(path)
    except ValueError:
        log = read_tidy(path, bad_rows="skip:100%")
        assert log.skipped
    assert int(log.lengths.sum()) + sum(log.skipped.values()) == len(good) + len(rows)


# ----------------------------------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize("alike", [False, True])
def test_a_parquet_file_of_long_texts_is_refused_by_its_rows_and_their_texts(tmp_path, alike):
    """Also where a dictionary of one text stands for all of them."""
    path = tmp_path / "log.parquet"
    rows = 2000
    frame = pl.DataFrame({"session": range(rows), "position": [1] * rows, "clicked": [0] * rows,
                          "item": [f"{row * (not alike)}" + "a" * 5000 for row in range(rows)]})  # fmt: skip
    frame.write_parquet(path)
    assert path.stat().st_size < 200_000
    with pytest.raises(ValueError, match=r"the texts of the rows 1 to 2,000 take 10\.\d MB of memory"):
        read_tidy(path, max_memory="5MB")
    with pytest.raises(ValueError, match=r"log\.parquet: its 2,000 rows take 10\.0 kB of memory"):
        read_tidy(path, max_memory="9kB")
    assert len(read_tidy(path, max_memory="40MB")) == rows


OTHER_TYPES = [[[1]], [{"a": 1}], [[b"x"]], pl.Series([[1, 2]], dtype=pl.Array(pl.Int64, 2)), [b"\xff\xfe"]]


@pytest.mark.parametrize("values", OTHER_TYPES, ids=str)
def test_a_column_of_another_type_is_refused_in_one_line(values, tmp_path):
    path = tmp_path / "log.parquet"
    pl.DataFrame({"session": ["a"], "position": [1], "item": values, "clicked": [1]}).write_parquet(path)
    with pytest.raises(
        ValueError, match=r"log.parquet: (the column 'item' holds|a column holds no texts or numbers)"
    ) as caught:
        read_log(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_the_region_is_part_of_the_query_and_a_split_is_chosen(ending, tmp_path):
    """Blocks that are parsed as a whole, and rows that are parsed one by one, which JSON lines are."""
    frame = pl.DataFrame(
        {
            "session": ["a", "b", "c"], "query": ["q", "q", "q"], "region": ["1", "2", "1"], "position": [1, 1, 1],
            "split": ["train", "train", "test"], "item": ["x", "x", "y"], "clicked": [1, 0, 1],
        }
    )  # fmt: skip
    path = tmp_path / f"log.{ending}"
    {"csv": frame.write_csv, "jsonl": frame.write_ndjson, "parquet": frame.write_parquet}[ending](path)
    whole, train, test = read_tidy(path), read_tidy(path, split="train"), read_tidy(path, split="test")
    assert [sorted(log.query_labels) for log in (whole, train, test)] == [["q-1", "q-2"], ["q-1", "q-2"], ["q-1"]]
    assert [(len(log), int(log.clicks.sum())) for log in (whole, train, test)] == [(3, 2), (2, 1), (1, 1)]


def test_lists_of_which_one_is_long_are_refused_before_they_are_padded(tmp_path):
    path = tmp_path / "log.csv"
    rows = [f"0,{k},i{k},0" for k in range(1, 2001)] + [f"{session},1,a,1" for session in range(1, 2000)]
    path.write_text("\n".join(["session,position,item,clicked", *rows]))
    assert read_tidy(path, max_memory="30MB").n_positions == 2000
    with pytest.raises(ValueError, match=r"2,000 sessions of up to 2,000 positions take 20\.\d MB"):
        read_tidy(path, max_memory="5MB")


# ---------------------------------------------------------------------------------------------------------- the page of formats

BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
UBI = [text for language, text in BLOCKS if language == "ndjson"]
BLOCKS = [(language, text) for language, text in BLOCKS if language not in ("sh", "ndjson")]  # commands, UBI


def test_every_example_of_the_page_is_read(tmp_path, log_file):
    assert len(BLOCKS) == 11
    logs = []
    for index, (_, text) in enumerate(BLOCKS):
        path = log_file(f"{index}.txt", text)
        assert len(text.splitlines()) in (4, 5)
        if "propensity_score" in text:
            assert len(read_open_bandit(path)) == 4
        else:
            columns = {"session": "sid", "position": "rank", "item": "doc_id", "clicked": "is_click"} if "sid" in text else None
            logs.append(read_log(path, columns=columns, duplicates="first" if index == 6 else "refuse"))
    for name, text in zip(("queries", "events"), UBI, strict=True):
        (tmp_path / "ubi").mkdir(exist_ok=True)
        (tmp_path / "ubi" / f"ubi_{name}.ndjson").write_text(text)
    for log in (*logs[:5], read_log(tmp_path / "ubi")):
        assert log.items.tolist() == [[0, 1], [1, 0]]
        assert log.clicks.tolist() == [[1, 0], [0, 1]]
        assert log.item_labels == ("a", "b")
    assert [log.query_labels for log in logs[:5]] == [("shoes",)] * 4 + [("all",)]
    assert logs[5].items.tolist() == [[0, 1, 2], [1, -1, -1]]
    assert logs[6].clicks.tolist() == [[1, 0], [1, 0]]
    assert (logs[7].times - logs[7].times[0]).tolist() == [0, 90]
    assert [log.times is None or log.times.tolist() for log in logs[8:]] == [True, [3, 3]]
    assert [len(log) for log in logs[7:]] == [2, 2, 2]
    assert json.loads(BLOCKS[2][1].splitlines()[0])["item"] == "a"
    assert fit_models(logs[5], ["PBM"], n_items=3, test_share=0).instances["shoes"].n_positions == 3
