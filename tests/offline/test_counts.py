"""Counts of clicks: equal to those of the log in memory, whatever the files, and enough for the models that take them."""

import re
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import polars as pl
import pytest

from clickgym.envs import UserBrowsingModel
from clickgym.offline import ClickLog, Counts, count_log, names, read_counts, read_log, tally, write_tidy
from clickgym.offline.estimation.estimator import MODEL_ESTIMATORS
from clickgym.offline.estimation.settings import FitSettings
from clickgym.offline.tally import is_held_out, statement

ALL = ("CM", "DCM", "SDBN", "PBM", "UBM", "RCM", "RCTR", "DCTR")


def drawn(n=400, n_positions=4, seed=0, n_queries=5, n_items=7):
    """Sessions of several queries, with lists of several lengths and several clicks."""
    rng = np.random.default_rng(seed)
    queries = rng.integers(0, n_queries, n).astype(np.int32)
    items = (rng.random((n, n_items)).argsort(axis=1)[:, :n_positions] + 3 * queries[:, None]).astype(np.int32)
    lengths = rng.integers(1, n_positions + 1, n)
    lengths[0] = n_positions
    shown = np.arange(n_positions) < lengths[:, None]
    clicks = (rng.random(items.shape) < 0.2 + 0.05 * (items % 7)) & shown
    labels = tuple(f"item {item}" for item in range(3 * n_queries + n_items)), tuple("qéabc"[:n_queries])
    return ClickLog(np.where(shown, items, -1), clicks, queries, *labels)


def tables(log, folder, n_files=1, ending=".csv"):
    """Files of whole sessions."""
    frame = log.to_frame()
    for number, part in enumerate(np.array_split(np.arange(len(log)), n_files)):
        rows = frame.filter(pl.col("session").is_in(part.tolist()))
        file = folder / f"part-{number}{ending}"
        rows.write_parquet(file) if ending == ".parquet" else rows.write_csv(file)
    return sorted(folder.glob(f"part-*{ending}"))


def counted_by_hand(log, limit=None):
    """Cells and their four counts, session by session."""
    cells = Counter()
    for session, (items, clicks, query) in enumerate(zip(log.items, log.clicks, log.queries, strict=True)):
        last, final = 0, max(np.flatnonzero(clicks), default=-1)
        for k in range((items >= 0).sum()):
            fold = () if limit is None else (int(is_held_out(str(session), limit)),)
            cell = (log.query_labels[query], log.item_labels[items[k]], k + 1, last, *fold)
            examined = final < 0 or k <= final
            for name, n in zip(("displays", "clicks", "examined", "last"), (1, clicks[k], examined, k == final), strict=True):
                cells[cell, name] += int(n)
            last = k + 1 if clicks[k] else last
    keys = sorted({cell for cell, _ in cells}, key=lambda cell: (cell[0].encode(), cell[1].encode(), *cell[2:]))
    return [(*cell, *(cells[cell, name] for name in ("displays", "clicks", "examined", "last"))) for cell in keys]


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_the_counts_are_those_of_the_log(tmp_path, ending):
    log = drawn()
    write_tidy(log, tmp_path / f"log{ending}")
    assert count_log(tmp_path / f"log{ending}", ["all"]).to_frame().rows() == counted_by_hand(log)


def test_counts_in_many_lots_and_parts_are_the_same(tmp_path, monkeypatch):
    log = drawn()
    whole = tables(log, tmp_path)
    expected = count_log(whole, ["all"]).to_frame()
    for module, name, value in ((tally, "LOT", 50), (names, "SPILL", 16)):
        monkeypatch.setattr(module, name, value)
    shuffled = pl.read_csv(whole[0]).sample(fraction=1.0, shuffle=True, seed=1)
    shuffled.write_csv(tmp_path / "shuffled.csv")
    assert count_log(whole, ["all"]).to_frame().equals(expected)
    assert count_log(tmp_path / "shuffled.csv", ["all"]).to_frame().equals(expected)


def test_the_file_is_the_same_for_any_files_in_any_order(tmp_path):
    log = drawn()
    written = []
    for n_files in (1, 8):
        (folder := tmp_path / str(n_files)).mkdir()
        files = tables(log, folder, n_files)
        for order in (files, files[::-1], folder, str(folder / "part-*.csv")):
            count_log(order, ["all"], hold_out=0.3).write(tmp_path / "counts.parquet")
            written.append((tmp_path / "counts.parquet").read_bytes())
    assert len(set(written)) == 1


def test_counts_add_up(tmp_path):
    log = drawn()
    counts = count_log(tables(log, tmp_path), ["all"], hold_out=0.25)
    assert counts.n_sessions == len(log)
    assert counts.by_position(counts.displays).tolist() == (log.items >= 0).sum(axis=0).tolist()
    assert counts.by_position(counts.clicks).tolist() == log.clicks.sum(axis=0).tolist()
    assert counts.last_clicks.sum() == log.clicks.any(axis=1).sum()
    for k in range(1, log.n_positions):  # who clicked at k has it as the last click at k + 1, if the list goes on
        after = counts.displays[(counts.position == k + 1) & (counts.last_click == k)].sum()
        assert after == (log.clicks[:, k - 1] & (log.items[:, k] >= 0)).sum()
    parts = [counts.part(counts.fold == fold) for fold in (0, 1)]
    assert sum(part.n_sessions for part in parts) == len(log)
    assert 0.1 < parts[1].n_sessions / len(log) < 0.4


@pytest.mark.parametrize(("settings", "most"), [(FitSettings(50, None), 1e-12), (FitSettings(300, 1e-7), 1e-10)])
@pytest.mark.parametrize("model", ALL)
def test_parameters_from_counts_are_those_from_the_log(tmp_path, model, settings, most):
    """Only the order of sums differs; extrapolated steps make more of their rounding than plain ones."""
    log = drawn(2000)
    counts = count_log(tables(log, tmp_path), [model])
    kind = MODEL_ESTIMATORS[model]
    from_log = kind().fit(log) if model == "DCM" else settings.fit(kind, log)
    from_counts = settings.fit(kind, counts)
    for query in log.query_labels:
        items = [item for of, item in from_log.pairs_ if of == query]
        one, other = (each.click_model(query, items).parameters for each in (from_log, from_counts))
        for name in one._fields:
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=0, atol=most)


@pytest.mark.parametrize("model", ["PBM", "UBM", "CM", "RCM", "RCTR", "DCTR"])
def test_the_held_out_fold_is_scored_as_its_sessions_are(tmp_path, model):
    log = drawn(800)
    if model == "CM":  # which excludes sessions with several clicks
        log = log[log.clicks.sum(axis=1) < 2]
    counts = count_log(tables(log, tmp_path), ["all"], hold_out=0.3)
    held_out = np.array([is_held_out(str(session), tally.hold_out_limit(0.3)) for session in range(len(log))])
    estimator = FitSettings(50, None).fit(MODEL_ESTIMATORS[model], counts.part(counts.fold == 0))
    score, perplexity = estimator.score_counts(counts.part(counts.fold == 1))
    assert score == pytest.approx(estimator.score(log[held_out]), abs=1e-12)
    np.testing.assert_allclose(perplexity, estimator.conditional_perplexity_by_rank(log[held_out]), atol=1e-12)


def test_models_that_need_whole_sessions_have_no_score(tmp_path):
    counts = count_log(tables(drawn(), tmp_path), ["SDBN", "DCM"])
    assert [FitSettings(9, None).fit(MODEL_ESTIMATORS[name], counts).score_counts(counts) for name in ("SDBN", "DCM")] == [
        None
    ] * 2


@pytest.mark.parametrize("model", ["DBN", "CCM"])
def test_models_that_counts_do_not_tell_are_refused(tmp_path, model):
    files = tables(drawn(), tmp_path)
    with pytest.raises(ValueError, match=f"{model} cannot be fitted to counts: whether a user looked below the last click"):
        count_log(files, ["PBM", model])
    with pytest.raises(ValueError, match=f"{model} cannot be fitted to counts"):
        MODEL_ESTIMATORS[model]().fit_counts(count_log(files, ["all"]))
    with pytest.raises(ValueError, match="no column 'last_click', which UBM needs"):
        MODEL_ESTIMATORS["UBM"]().fit_counts(count_log(files, ["PBM"]))
    with pytest.raises(ValueError, match="exact EM cannot be fitted to counts"):
        MODEL_ESTIMATORS["DCM"]("em").fit_counts(count_log(files, ["DCM"]))


BAD = {
    "a word for a click": ("7,q,2,b,maybe", {}),
    "a session in two places": ("6,q,1,a,0", {}),
    "an item twice": ("7,q,2,a,0", {}),
    "a gap": ("7,q,3,b,0", {}),
    "two queries": ("7,r,2,b,0", {}),
    "no item": ("7,q,2,,0", {}),
    "too many fields": ("7,q,2,b,0,1", {}),
    "a position twice": ("7,q,1,b,0", {}),
    "more than a share": ("7,q,2,b,maybe", {"bad_rows": "skip:5%"}),
}


@pytest.mark.parametrize("name", BAD)
def test_what_a_reader_refuses_is_not_counted(tmp_path, name):
    row, how = BAD[name]
    rows = ["6,q,1,a,0", "6,q,2,b,1", "7,q,1,a,0", row, "8,q,1,a,1"]
    (tmp_path / "log.csv").write_text("\n".join(["session,query,position,item,clicked", *rows, ""]))
    told = []
    for read in (read_log, lambda path, **how: count_log(path, ["all"], **how)):
        with pytest.raises(ValueError, match=r"log\.csv") as error:
            read(tmp_path / "log.csv", **how)
        told.append(str(error.value))
    assert told[0] == told[1]


def test_left_out_rows_are_left_out_of_counts(tmp_path):
    rows = [
        f"{session},q,{k},{'ab'[k - 1]},{'x' if session == 7 and k == 2 else k % 2}" for session in range(50) for k in (1, 2)
    ]
    (tmp_path / "log.csv").write_text("\n".join(["session,query,position,item,clicked", *rows, rows[-1], ""]))
    how = {"bad_rows": "skip:5%", "duplicates": "first"}
    log, told = read_log(tmp_path / "log.csv", **how), []
    counts = count_log(tmp_path / "log.csv", ["PBM"], on_step=told.append, **how)
    assert counts.to_frame().rows() == [("q", "a", 1, 49, 49), ("q", "b", 2, 49, 0)]
    assert set(log.notes) <= set(told)


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl"])
@pytest.mark.parametrize("hold_out", [0.0, 0.2])
def test_the_printed_statement_gives_the_same_table(tmp_path, ending, hold_out):
    duckdb = pytest.importorskip("duckdb")
    log = drawn()
    if ending == ".jsonl":
        log.to_frame().write_ndjson(tmp_path / "part-0.jsonl")
        files = [tmp_path / "part-0.jsonl"]
    else:
        files = tables(log, tmp_path, 3, ending)
    duckdb.connect().execute(statement(files, ["all"], str(tmp_path / "by sql's.parquet"), hold_out=hold_out))
    by_sql = read_counts(tmp_path / "by sql's.parquet")
    assert by_sql.to_frame().equals(count_log(files, ["all"], hold_out=hold_out).to_frame())
    assert pl.read_parquet(tmp_path / "by sql's.parquet").equals(by_sql.to_frame())  # sorted, with the same types


def test_the_statement_knows_other_names_positions_and_ids_per_file(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    frame = drawn().to_frame().with_columns(pl.col("position") - 1).rename({"item": 'the "doc"', "query": "words"})
    for part in range(2):
        frame.write_csv(tmp_path / f"{part}.csv")
    how = {"columns": {"item": 'the "doc"', "query": "words"}, "sessions_per_file": True}
    files = [tmp_path / "0.csv", tmp_path / "1.csv"]
    duckdb.connect().execute(statement(files, ["all"], str(tmp_path / "sql.parquet"), **how))
    counts = count_log(files, ["all"], **how)
    assert read_counts(tmp_path / "sql.parquet").to_frame().equals(counts.to_frame())
    assert counts.n_sessions == 2 * len(drawn())


def test_counts_are_written_and_read_back(tmp_path):
    counts = count_log(tables(drawn(), tmp_path), ["all"], hold_out=0.2)
    counts.write(tmp_path / "counts.parquet")
    again = read_counts(tmp_path / "counts.parquet")
    assert again.to_frame().equals(counts.to_frame())
    assert repr(again) == repr(counts)
    shuffled = counts.to_frame().sample(fraction=1.0, shuffle=True, seed=2)
    assert Counts.from_frame(shuffled).to_frame().equals(counts.to_frame())
    content = bytearray((tmp_path / "counts.parquet").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "counts.parquet").write_bytes(content)
    with pytest.raises(ValueError, match="damaged"):
        read_counts(tmp_path / "counts.parquet")


CHANGES = {
    "no column 'displays'": lambda frame: frame.drop("displays"),
    "row 1: more clicks than displays": lambda frame: frame.with_columns(clicks=pl.col("displays") + 1),
    "row 1: a position below 1": lambda frame: frame.with_columns(position=pl.col("position") - 1),
    "a last click that is not above": lambda frame: frame.with_columns(last_click=pl.col("position")),
    "more last clicks than clicks": lambda frame: frame.with_columns(last_clicks=pl.col("clicks") + 1),
    "examined not between": lambda frame: frame.with_columns(examined=pl.col("displays") + 1),
    "row 1: a missing value": lambda frame: frame.with_columns(item=pl.lit(None, pl.String)),
    "expected one of each cell": lambda frame: pl.concat([frame, frame]),
    "not every position from 1 to 4": lambda frame: frame.filter(pl.col("position") != 2),
    "more displays than the one above": lambda frame: frame.filter((pl.col("position") != 1) | (pl.col("query") == "a")),
    "have no rows": lambda frame: frame[:0],
    "expected whole numbers": lambda frame: frame.with_columns(pl.col("clicks").cast(pl.Float64)),
}


@pytest.mark.parametrize("message", CHANGES)
def test_counts_that_no_log_has_are_refused(tmp_path, message):
    frame = count_log(tables(drawn(), tmp_path), ["all"]).to_frame()
    with pytest.raises(ValueError, match=re.escape(message)):
        Counts.from_frame(CHANGES[message](frame))


def test_a_kill_leaves_no_half_file(tmp_path):
    """Whenever the process dies, there is no file or the whole one."""
    write_tidy(drawn(20_000), tmp_path / "log.csv")
    words = [sys.executable, "-m", "clickgym", "count", tmp_path / "log.csv", "--model", "UBM", "--out", tmp_path / "c.parquet"]
    start = time.perf_counter()
    subprocess.run(words, check=True, capture_output=True)
    took, whole = time.perf_counter() - start, (tmp_path / "c.parquet").read_bytes()
    for share in (0.8, 0.95):
        (tmp_path / "c.parquet").unlink(missing_ok=True)
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(share * took)
        process.kill()
        process.wait()
        assert not (tmp_path / "c.parquet").exists() or (tmp_path / "c.parquet").read_bytes() == whole


def test_memory_is_that_of_the_cells(tmp_path):
    with pytest.raises(ValueError, match=r"more than max_memory = 5\.0 kB"):
        count_log(tables(drawn(3000), tmp_path), ["all"], max_memory="5kB")


def test_users_are_recovered_from_counts(tmp_path):
    """Examination from 60,000 sessions within .03: five standard errors of the least certain one; the seed is fixed."""
    rng = np.random.default_rng(3)
    attraction, examination = np.array([0.7, 0.5, 0.3, 0.2]), np.array([[0.9, 0, 0], [0.6, 0.8, 0], [0.3, 0.5, 0.7]])
    model = UserBrowsingModel(attraction, examination)
    lists = rng.random((60_000, 4)).argsort(axis=1)[:, :3].astype(np.int32)
    clicks = np.zeros(lists.shape, bool)
    last = np.zeros(len(lists), int)
    for k in range(3):
        clicks[:, k] = rng.random(len(lists)) < attraction[lists[:, k]] * examination[k, last]
        last[clicks[:, k]] = k + 1
    log = ClickLog(lists, clicks, np.zeros(len(lists), np.int32), tuple("abcd"), ("q",))
    fitted = FitSettings(1000, 1e-9).fit(MODEL_ESTIMATORS["UBM"], count_log(tables(log, tmp_path), ["UBM"]))
    ratio = fitted.examination_ / fitted.examination_[0, 0]
    np.testing.assert_allclose(ratio, np.asarray(model.parameters.examination) / 0.9, atol=0.03)
