"""A log of several files: read as one, refused where a session is in two."""

import numpy as np
import polars as pl
import pytest
from test_counts import tables
from test_log_formats import same

from clickgym.offline import ClickLog, fit_models, names, read_log, read_sessions, write_tidy
from clickgym.offline.tally import count_log


def logged(n=60, seed=0):
    rng = np.random.default_rng(seed)
    items = rng.random((n, 6)).argsort(axis=1)[:, :3].astype(np.int32)
    items[::4, 2] = -1
    clicks = (rng.random(items.shape) < 0.4) & (items >= 0)
    propensities = np.where(items >= 0, rng.uniform(0.1, 1, items.shape), 1.0)
    return ClickLog(
        items, clicks, rng.integers(0, 2, n).astype(np.int32), tuple("abcdef"), ("q", "r"), times=np.arange(n),
        propensities=propensities, list_propensities=rng.uniform(0.1, 1, n),
    )  # fmt: skip


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_several_files_are_one_log(tmp_path, ending):
    log = logged()
    write_tidy(log, tmp_path / f"whole{ending}")
    (folder := tmp_path / "parts").mkdir()
    files = tables(log, folder, 3, ending)
    (folder / "_SUCCESS").write_text("")
    whole = read_log(tmp_path / f"whole{ending}")
    for given in (files, folder, str(folder / "*"), folder / f"part-[0-9]{ending}"):
        same(read_log(given), whole)
    same(read_sessions(files, query="q"), read_sessions(tmp_path / f"whole{ending}", query="q"))
    fitted = fit_models(files, ["PBM"], ["q"], n_items=6)
    assert fitted.instances["q"].origin.endswith(f"part-0{ending} and 2 more")


def test_lists_of_another_length_get_room(tmp_path):
    log = logged()
    write_tidy(log[log.lengths == 2], tmp_path / "a.csv")
    write_tidy(log[log.lengths == 3], tmp_path / "b.csv")
    both = read_log([tmp_path / "a.csv", tmp_path / "b.csv"], sessions_per_file=True)
    assert both.n_positions == 3
    assert both.lengths.tolist() == sorted(log.lengths.tolist())


@pytest.mark.parametrize("spill", [4_000_000, 8])
@pytest.mark.parametrize("read", [read_log, lambda files, **how: count_log(files, ["PBM"], **how)])
def test_a_session_in_two_files_is_refused(tmp_path, monkeypatch, spill, read):
    monkeypatch.setattr(names, "SPILL", spill)
    log = logged()
    files = tables(log, tmp_path, 3)
    pl.concat([pl.read_csv(files[2]), log.to_frame().filter(session=5)], how="vertical_relaxed").write_csv(files[2])
    with pytest.raises(ValueError, match=r"the session '5' is in .*0\.csv and in .*2\.csv; .*--sessions-per-file"):
        read(files)
    read(files, sessions_per_file=True)


def test_files_of_several_formats_are_refused(tmp_path):
    log = logged()
    write_tidy(log, tmp_path / "a.csv")
    write_tidy(log, tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"a\.csv is read as tidy, and .*b\.parquet as tidy in Parquet; expected files of one"):
        read_log(tmp_path)
    (tmp_path / "b.parquet").unlink()
    (tmp_path / "b.tsv").write_text("1\t0\tQ\t5\t0\t11\t12\n")
    with pytest.raises(ValueError, match=r"a\.csv is read as tidy, and .*b\.tsv as yandex-relevance"):
        read_log(tmp_path)
    (tmp_path / "a.csv").rename(tmp_path / "a.tsv")
    (tmp_path / "a.tsv").write_text("2\t0\tQ\t5\t0\t11\t12\n")
    with pytest.raises(ValueError, match="sessions are not compared between files"):
        read_log(tmp_path)
    assert len(read_log(tmp_path, sessions_per_file=True)) == 2


def test_files_that_say_different_things_are_refused(tmp_path):
    frame = logged().to_frame()
    frame.filter(pl.col("session") < 30).write_csv(tmp_path / "a.csv")
    rest = frame.filter(pl.col("session") >= 30)
    for other, message in (
        (rest.drop("time"), "a.csv has the columns session, query, "),
        (rest.with_columns(pl.col("position") - 1), "a.csv has positions from 1, and .*b.csv has not"),
        (rest.with_columns(time=pl.lit("2026-01-01")), "a.csv has numbers as times, and .*b.csv has not"),
    ):
        other.write_csv(tmp_path / "b.csv")
        with pytest.raises(ValueError, match=message):
            read_log([tmp_path / "a.csv", tmp_path / "b.csv"])


def test_what_is_no_file_is_refused(tmp_path):
    for given, message in (
        (tmp_path, "is a folder without a file"),
        (str(tmp_path / "*.csv"), "no file is called as"),
        ([], "log is empty"),
        (["a.csv", "a.csv"], "a.csv is given twice"),
    ):
        with pytest.raises(ValueError, match=message):
            read_log(given)


def test_one_query_is_read_alone(tmp_path):
    log = logged()
    files = tables(log, tmp_path, 2)
    pl.concat(
        [pl.read_csv(files[1]), log.to_frame().filter(session=0).with_columns(session=99, query=pl.lit("s"))],
        how="vertical_relaxed",
    ).write_csv(files[1])
    alone, all_of_it = read_log(files, query="q"), read_sessions(files, query="q")
    assert alone.clicks.tolist() == all_of_it.clicks.tolist()
    assert alone.query_labels == ("q",)
    assert len(read_log(files, query="s")) == 1  # one file has none of it
    with pytest.raises(ValueError, match="no session of the query 'none'"):
        read_log(files, query="none")
