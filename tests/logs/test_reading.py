"""Tests of click logs as tables and files: what is written is read back, and malformed input is
rejected in one line.
"""

import gzip

import gymnasium as gym
import polars as pl
import pytest

import clickgym
from clickgym.logs import ClickLog, read_log, record, write_tidy

HEAD = "session,query,position,item,clicked\n"
LINES = HEAD + "s1,q,1,b,0\ns1,q,2,a,1\ns2,r,1,007,true\n".replace("true", "1")
ROWS = [("q", ["b", "a"], [0, 1]), ("r", ["007"], [1])]


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


def some_log():
    """A log of three lists, the last of which is shorter."""
    items, clicks = [[0, 1], [2, 0], [1, -1]], [[1, 0], [0, 0], [1, 0]]
    return ClickLog(items, clicks, [0, 1, 0], ("a", "b,c", 'd"e'), ("q", "r"))


# ------------------------------------------------------------------------------------------------
# ------ logs in memory


def test_parts_of_a_log_keep_what_belongs_to_their_sessions():
    assert rows(some_log()[[2, 0]]) == [("q", ["b,c"], [1]), ("q", ["a", "b,c"], [1, 0])]
    assert rows(some_log()[1]) == rows(some_log().of_query("r"))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"items": [[0, 0], [2, 0], [1, 2]]}, r"items\[0\] shows an item twice"),
        ({"items": [[0, 1], [-1, 0], [1, 2]]}, r"items\[1\] has a gap"),
        ({"items": [[0, 1], [-1, -1], [1, 2]]}, r"items\[1\] has a gap"),
        ({"clicks": [[0, 0], [0, 0], [0, 1]]}, r"items\[2\] has a click below the end"),
    ],
)
def test_wrong_arrays_are_refused(fields, message):
    log = some_log()
    arrays = {name: getattr(log, name) for name in ("items", "clicks", "queries")}
    with pytest.raises(ValueError, match=message):
        ClickLog(**{**arrays, **fields}, item_labels=log.item_labels, query_labels=log.query_labels)


# ------------------------------------------------------------------------------------------------
# ------------ recording


@pytest.mark.uncompiled
def test_recording_is_what_the_runner_plays():
    env = gym.make("DCMRank-v0")
    log = record(clickgym.make_agent("TopRank", env, horizon=300, seed=3), env, 300, seed=4)
    result = clickgym.run(
        clickgym.make_agent("TopRank", env, horizon=300, seed=3), env, 300, seed=4
    )
    assert log.clicks.sum() == result.clicks[-1]
    assert log.query_labels == ("yandex-9982",)


@pytest.mark.uncompiled
def test_the_command_writes_the_sessions_of_each_instance(tmp_path, printed):
    words = ["record", "PBMRank-v0", "-i", "yandex-9", "yandex-990", "--agent", "Random"]
    words += ["--sessions", "50"]
    for name, seed in (("a.csv", "2"), ("a.csv", "3"), ("b.parquet", "3"), ("c.csv", "4")):
        said = printed([*words, "--seed", seed, "--out", str(tmp_path / name)])
        assert f"{name}: 100 sessions, " in said
        assert ("older file was replaced" in said) == (name == "a.csv" and seed == "3")
    log, same, other = (read_log(tmp_path / name) for name in ("a.csv", "b.parquet", "c.csv"))
    env = gym.make("PBMRank-v0", instance="yandex-990")
    second = record(clickgym.make_agent("Random", env, seed=4), env, 50, seed=4)
    assert rows(log) == rows(same) != rows(other)
    assert rows(log)[50:] == rows(second)
    assert log.query_labels == ("yandex-9", "yandex-990")


# ------------------------------------------------------------------------------------------------
# ------------ tables


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_what_is_written_is_read_back(tmp_path, ending):
    log = some_log()
    write_tidy(log, tmp_path / f"log.{ending}")
    is_parquet = (tmp_path / f"log.{ending}").read_bytes().startswith(b"PAR1")
    assert is_parquet == (ending == "parquet")
    again = read_log(tmp_path / f"log.{ending}")
    assert rows(again) == rows(log)
    with pytest.raises(ValueError, match=r"expected a file name that ends with \.csv or \.parquet"):
        write_tidy(log, tmp_path / "log.json")


@pytest.mark.parametrize(
    "content",
    [
        LINES,
        LINES.replace(",", "\t"),
        LINES.replace(",", ";").replace("\n", "\r\n"),
        gzip.compress(LINES.encode()),
        # rows in any order, positions from 0, clicks as true and false
        HEAD + "s1,q,1,a,true\ns2,r,0,007,true\ns1,q,0,b,false\n",
        LINES + "\r\n\n",
        # as R's write.table writes it
        LINES.replace("s1", '"s1"').replace("q,", '"q",').replace(",", "\t"),
    ],
    ids=["commas", "tabs", "semicolons", "gzip", "any order", "empty lines at the end", "quoted"],
)
def test_tables_as_text(log_file, content):
    assert rows(read_log(log_file("log.txt", content))) == ROWS


def test_a_frame_with_other_names_and_types():
    columns = {"id": [7, 7, 8], "rank": [1.0, 2, 1], "doc": [3, 4, 4], "clicked": [1.0, 0, 1]}
    columns["query"] = [5, 5, 5]
    names = {"session": "id", "position": "rank", "item": "doc"}
    log = read_log(pl.DataFrame(columns), columns=names)
    assert rows(log) == [("5", ["3", "4"], [1, 0]), ("5", ["4"], [1])]
    columns["doc"] = [3.0, None, 4.0]
    with pytest.raises(ValueError, match="row 2 has None in the column doc; expected a label"):
        read_log(pl.DataFrame(columns), columns=names)


WHOLE = pl.DataFrame(
    {"session": [7, 7], "query": [5, 5], "position": [1, 2], "item": [20, -3], "clicked": [0, 1]}
)
OTHERS = {
    "float": lambda label: label.cast(pl.Float64),
    "text": lambda label: label.cast(pl.Float64).cast(pl.String),
    "spaces": lambda label: pl.format(" {} ", label),
    "category": lambda label: label.cast(pl.String).cast(pl.Categorical),
    "one text of two": lambda label: (
        pl.when(pl.col("position") == 1)
        .then(label.cast(pl.String))
        .otherwise(label.cast(pl.Float64).cast(pl.String))
    ),
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_label_is_the_same_in_every_type_and_file(tmp_path, other):
    """Integers, whole floats and text are the same labels, in Parquet and in CSV."""
    labels = {name: OTHERS[other](pl.col(name)) for name in ("session", "query", "item")}
    WHOLE.with_columns(session=8).write_parquet(tmp_path / "a.parquet")
    WHOLE.with_columns(**labels).write_parquet(tmp_path / "b.parquet")
    WHOLE.with_columns(session=9).with_columns(**labels).write_csv(tmp_path / "c.csv")
    log = read_log(f"{tmp_path}/*")
    assert rows(log) == [("5", ["20", "-3"], [0, 1])] * 3


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        ([20.0, 0.5], ("20", "0.5")),
        ([2.0**53, 7.0], ("9007199254740992", "7")),
        ([2.0**53 + 2, 7.0], "row 1 has 9007199254740994.0 .* a label; floats of this size are"),
        (["7", "9.123456789012346e+18"], r"row 2 has '9.12345.*e\+18' .* a label; floats of this"),
        (pl.Series([7, 2e7], dtype=pl.Float32), "row 2 has 20000000.0 .* a label; floats of this"),
        ([20.0, float("nan")], "row 2 has nan in the column item; expected a label$"),
    ],
)
def test_floats_that_were_rounded_are_no_labels(labels, found):
    log = WHOLE.with_columns(item=pl.Series(labels))
    if isinstance(found, tuple):
        assert read_log(log).item_labels == found
        return
    with pytest.raises(ValueError, match=found):
        read_log(log)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "session,place,doc,clicked\n1,1,a,0\n",
            "no column position or item; its columns are 'ses.*=NAME,item=NAME, with query=NAME",
        ),
        (
            HEAD + "1,q,1,a,0\n1,q,2,b,maybe\n",
            "line 3 has 'maybe' in the column clicked; expected 0 or 1",
        ),
        (HEAD + "1,q,first,a,0\n", "line 2 has 'first' in the column position; expected a number"),
        (
            HEAD + "1,q,1,a,0\n1,q,1,b,1\n",
            "log.csv: session '1' has position 1 twice, with different items",
        ),
        (HEAD + "1,q,1,a,0\n1,q,3,b,1\n", "session '1' lacks position 2: .* are 1, 3;"),
        (HEAD + "1,q,1,a,0\n1,q,1,a,1\n", "position 1 twice, with the same item, once clicked and"),
        (HEAD + "1,q,1,a,1\n" * 2, "position 1 twice, in the same row, which was delivered twice"),
        (HEAD + "1,q,0,a,1\n2,q,1,a,1\n3,q,1,a,1\n", "'1' begins at position 0, but other sess"),
        (
            HEAD + "1,q,0,a,1\n2,q,1,a,1\n",
            "'2' begins at position 1, but other sessions begin at 0",
        ),
        (HEAD + '1,q,1,"",0\n', "line 2 has '' in the column item; expected a label$"),
        (HEAD + "1,q,1,a,0\n1,q,2,a,1\n", "session '1' shows an item twice"),
        (HEAD + "1,q,1,a,1\n1,q,3,b,1\n", "lacks position 2.*: all rows are clicks; add a row for"),
        (HEAD + ",q,1,a,0\n", "line 2 has None in the column session; expected a label"),
        (HEAD.encode("utf-16"), r"log.csv cannot be read \(the file is neither text in UTF-8 nor"),
        # shifted fields that are not read
        (HEAD.strip() + ",time\ns1,q,1,b,0,7,8\n", r"log.csv .* \(line 2 has 7 fields for 6 col"),
    ],
)
def test_what_is_wrong_with_a_table_is_said_in_a_line(log_file, text, message):
    with pytest.raises(ValueError, match=message) as error:
        read_log(log_file("log.csv", text))
    assert "\n" not in str(error.value)
    assert "log.csv" in str(error.value)


def test_quotation_marks_of_csv_and_within_a_line_are_read(log_file):
    items = ['7" x 9"', "a,b", 'say "so"']
    text = HEAD + 's,q,1,7" x 9",0\ns,q,2,"a,b",0\ns,q,3,"say ""so""",1\n'
    assert rows(read_log(log_file("log.csv", text))) == [("q", items, [0, 0, 1])]


@pytest.mark.parametrize("separator", [",", "\t", ";", "|"])
@pytest.mark.parametrize(
    ("first", "second"), [('"Heroes', '24"'), ('12" vinyl', '7" vinyl'), ('"Heroes', "b")]
)
@pytest.mark.parametrize("column", ["item", "title"])
def test_a_quotation_of_several_lines_is_refused(log_file, separator, first, second, column):
    """Such a quotation would swallow sessions. The error occurs even if the quotation is in a
    column that is not read.
    """
    table = pl.DataFrame({"session": range(99), "query": "q", "position": 1, "clicked": 0})
    table = table.with_columns(item=pl.lit("a"), title=pl.lit("t"))
    table[40, column], table[60, column] = first, second
    text = table.write_csv(separator=separator, quote_style="never")
    with pytest.raises(ValueError, match=r"log.txt cannot .*line 42 has a quotation mark"):
        read_log(log_file("log.txt", text))


def test_one_damaged_session_in_a_thousand_is_left_out_and_said(log_file):
    lists = [(f"{n},q,1,a,0\n", f"{n},q,2,b,1\n") for n in range(2000)]
    lists[7] = (lists[7][1], lists[7][1].replace("b", "a"))
    lists[1999] = ("1999,q,0,a,0\n", lists[1999][1])  # the others are counted from 1
    lists[0] = ("0,q,1,a,0\n", "0,q,2,b,0\n")
    text = HEAD + "".join(map("".join, lists))
    with pytest.warns(UserWarning, match=r"left out 2 of 2,000 .*'7' has position 2 twice"):
        log = read_log(log_file("log.csv", text))
    assert rows(log)[1:] == [("q", ["a", "b"], [0, 1])] * 1997
    text = text.replace("\n13,q,2", "\n13,q,3")
    with pytest.raises(ValueError, match=r"3 of 2,000 sessions are damaged"):
        read_log(log_file("log.csv", text))


def test_pages_of_a_session_in_two_files_are_one_list(tmp_path):
    (tmp_path / "1.csv").write_text(HEAD + "s,q,1,a,1\ns,q,2,b,0\n")
    (tmp_path / "2.csv").write_text(HEAD + "s,q,3,c,0\ns,q,4,d,1\n")
    for files in (tmp_path / "*.csv", [tmp_path / "2.csv", tmp_path / "1.csv"]):
        assert rows(read_log(files)) == [("q", ["a", "b", "c", "d"], [1, 0, 0, 1])]
    (tmp_path / "2.csv").write_text(HEAD + "s,q,1,c,0\n")
    with pytest.raises(ValueError, match="session 's' has position 1 twice, with different"):
        read_log(tmp_path / "*.csv")


def test_ids_may_restart_in_each_file(tmp_path, printed, refused):
    """Without the option, the message names the cause and the option."""
    for name, lists in (("1.csv", ("ab", "ba")), ("2.csv", ("ba", "ab"))):
        lines = (f"{n},q,1,{a},1\n{n},q,2,{b},0\n" for n in range(240) for a, b in [lists[n % 2]])
        (tmp_path / name).write_text(HEAD + "".join(lines))
    cause = "240 session ids occur in more than one file; .* pass ids_per_file=True, or --ids-per-f"
    with pytest.raises(ValueError, match=f"1.csv and 1 more: session '0' has .*: {cause}"):
        read_log(tmp_path / "*.csv")
    log = read_log(tmp_path / "*.csv", ids_per_file=True)
    assert rows(log)[::240] == [("q", ["a", "b"], [1, 0]), ("q", ["b", "a"], [1, 0])]
    assert log.source["ids_per_file"]
    (tmp_path / "3.csv").write_text((tmp_path / "1.csv").read_text())
    copies = [tmp_path / "1.csv", tmp_path / "3.csv"]
    with pytest.raises(ValueError, match=r"3.csv has the same rows as .*1.csv; if it is a copy,"):
        read_log(copies)
    with pytest.warns(match="has the same rows as"):
        assert len(read_log(copies, ids_per_file=True)) == 480
    for name in ("3.csv", "4.csv"):  # without rows
        (tmp_path / name).write_text(HEAD)
    assert len(read_log(tmp_path / "[134].csv")) == 240
    for name in ("3.csv", "4.csv"):
        (tmp_path / name).unlink()
    files = [str(tmp_path / "1.csv"), str(tmp_path / "2.csv")]
    fit = ["fit", *files, "--model", "CM", "--out", str(tmp_path / "q.json")]
    for command in (fit, ["check-models", *files]):
        assert "--ids-per-file" in refused(command)
        assert printed([*command, "--ids-per-file"])
    (tmp_path / "2.csv").unlink()
    assert len(read_log(tmp_path / "*.csv", ids_per_file=True)) == 240
    doubled = pl.concat([pl.read_csv(tmp_path / "1.csv")] * 2)
    with pytest.raises(ValueError, match="repair the log"):
        read_log(doubled)
    doubled.write_csv(tmp_path / "1.csv")
    with pytest.raises(ValueError, match="repair the log"):
        read_log(tmp_path / "1.csv", ids_per_file=True)


def test_a_log_without_queries_is_one_query_and_a_line_says_so(log_file):
    path = log_file("log.csv", LINES.replace("query", "term"))
    for source, name in ((path, "log.csv"), (pl.read_csv(path), "the frame")):
        with pytest.warns(UserWarning, match=f"{name}: no column query, so all sessions"):
            assert read_log(source).query_labels == ("all",)
    assert read_log(path, columns={"query": "term"}).query_labels == ("q", "r")
    with pytest.raises(ValueError, match=r"log.csv has no column query; leave query=query out"):
        read_log(path, columns={"query": "query"})
    other = log_file("other.csv", LINES)
    with pytest.raises(ValueError, match=r"/log.csv has no column query, but other files do"):
        read_log([other, path])


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_queries_in_the_names_of_folders(tmp_path, ending):
    """Spark, pandas and DuckDB write partitioned tables in this way. Labels remain text."""
    for session, (query, item) in enumerate([("7", "a"), ("007", "b"), ("red%20shoes", "a")]):
        folder = tmp_path / "day=1" / f"query={query}"
        folder.mkdir(parents=True)
        part = pl.DataFrame(
            {"session": [session], "position": [1], "item": [item], "clicked": [1], "day": [2]}
        )
        getattr(part, f"write_{ending}")(folder / f"part-0.{ending}")
    with pytest.warns(UserWarning, match="column query has '007' and '7', which count as diff"):
        read = rows(read_log(tmp_path / "**" / f"*.{ending}"))
    assert sorted(read) == [("007", ["b"], [1]), ("7", ["a"], [1]), ("red shoes", ["a"], [1])]
    # a column of the file takes precedence over a folder
    log = read_log(tmp_path / "day=1" / "query=7" / f"*.{ending}", columns={"query": "day"})
    assert log.query_labels == ("2",)
    # rows in this folder have no query
    (tmp_path / "day=1" / "query=7").rename(tmp_path / "query=__HIVE_DEFAULT_PARTITION__")
    with pytest.raises(ValueError, match="has None in the column query; expected a label"):
        read_log(tmp_path / "*" / f"*.{ending}")


def test_named_levels_of_a_pandas_index_are_columns():
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    table = pandas.DataFrame(
        {"session": [1, 2], "position": [1, 1], "item": ["a", "b"], "clicked": [1, 0]}
    )
    both = pandas.concat({"q": table[:1], "r": table[1:]}, names=["query"])
    assert read_log(both).query_labels == ("q", "r")
    assert len(read_log(both.reset_index("query").set_index(["session", "position"]))) == 2
    with pytest.raises(ValueError, match=r"the frame cannot be read .*one type in each column"):
        read_log(table.assign(query=[5, "5"]))
