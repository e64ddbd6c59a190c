"""`clickgym count`, and what takes counts: `clickgym fit` and `clickgym decide`."""

import json

import numpy as np
import polars as pl
import pytest

from clickgym.command_line import main
from clickgym.envs.instances import load_instance
from clickgym.offline import ClickLog, DCMEstimator, count_log, read_counts, read_log, write_tidy
from clickgym.offline.decision.decide import decide
from clickgym.offline.estimation.shared import leaving, shared_parameters


def simulated(n_queries=12, n=400, seed=0, n_positions=3, n_items=6):
    """Users of a DCM who leave with .7, .4 and .4, and random lists."""
    rng = np.random.default_rng(seed)
    queries = np.repeat(np.arange(n_queries), n).astype(np.int32)
    lists = rng.random((len(queries), n_items)).argsort(axis=1)[:, :n_positions] + n_items * queries[:, None]
    attraction = rng.beta(2, 4, n_items * n_queries)
    clicks, there = np.zeros(lists.shape, bool), np.ones(len(lists), bool)
    for k, leaves in enumerate((0.7, 0.4, 0.4)):
        clicks[:, k] = there & (rng.random(len(lists)) < attraction[lists[:, k]])
        there &= ~(clicks[:, k] & (rng.random(len(lists)) < leaves))
    labels = tuple(f"item {item}" for item in range(len(attraction))), tuple(f"query {query}" for query in range(n_queries))
    return ClickLog(lists, clicks, queries, *labels, times=np.arange(len(lists)))


@pytest.fixture
def log(tmp_path):
    write_tidy(simulated(), tmp_path / "log.csv")
    return tmp_path / "log.csv"


def test_count_and_fit(log, tmp_path, capsys):
    counts, out, table = (str(tmp_path / name) for name in ("counts.parquet", "query.json", "table.csv"))
    assert not main(["count", str(log), "--model", "all", "--hold-out", "0.2", "--out", counts])
    assert "4,800 sessions of 12 queries" in capsys.readouterr().out
    how = ["--model", "UBM", "PBM", "SDBN", "--queries", "query 3", "--out", out]
    assert not main(["fit", counts, *how, "--attractions", table, "--json"])
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert told["train_sessions"] + told["test_sessions"] == 4800
    assert [row["log_likelihood"] is None for row in told["models"]] == [False, False, True]
    assert "low and high are empty" in printed.err
    instance = load_instance(tmp_path / "query.json")
    assert instance.estimation["sessions"] == 400
    attractions = pl.read_csv(table)
    assert attractions["low"].null_count() == attractions["high"].null_count() == attractions.height == 3 * 72
    assert not main(["fit", str(log), *how, "--test-share", "0"])
    by_log = load_instance(tmp_path / "query.json")
    assert by_log.estimation["items"] == instance.estimation["items"]
    for name in ("UBM", "PBM", "DBN"):
        np.testing.assert_allclose(by_log.model(name).attraction, instance.model(name).attraction, atol=1e-9)


def test_clicks_over_expected_clicks_are_those_of_the_log(log, tmp_path, capsys):
    main(["count", str(log), "--model", "PBM", "--out", str(tmp_path / "counts.parquet")])
    for source, name in ((log, "log"), (tmp_path / "counts.parquet", "counts")):
        table = ["--attractions", str(tmp_path / f"{name}.csv"), "--bootstrap", "0"]
        assert not main(["fit", str(source), "--model", "PBM", "--out", str(tmp_path / "query.json"), *table])
    one, other = (pl.read_csv(tmp_path / f"{name}.csv").sort("query", "item") for name in ("log", "counts"))
    for name in ("query", "item", "sessions", "clicks", "coec"):
        assert one[name].to_list() == other[name].to_list()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["count", "{log}", "--model", "DBN", "--out", "c.parquet"], "DBN cannot be fitted to counts"),
        (["count", "{log}", "--model", "PBM", "--out", "c.csv"], "expected a file whose name ends with .parquet"),
        (["count", "{log}", "--model", "XYZ", "--out", "c.parquet"], "XYZ"),
        (["count", "{log}", "--model", "PBM", "--hold-out", "2", "--out", "c.parquet"], "hold_out is 2"),
        (["fit", "{counts}", "--model", "CCM", "--out", "q.json"], "CCM cannot be fitted to counts"),
        (["fit", "{counts}", "--model", "UBM", "--out", "q.json"], "no column 'last_click', which UBM needs"),
        (["fit", "{counts}", "--model", "PBM", "--queries", "x", "--out", "q.json"], "the counts have no query 'x'"),
        (["fit", "{counts}", "--model", "PBM", "--items", "2", "--out", "q.json"], "the counts have 3 positions"),
        (["decide", "{log}", "--counts", "{counts}", "--out", "d"], "expected the query to decide"),
        (["decide", "{log}", "--counts", "{counts}", "--all", "--out", "d"], "--counts cannot be given with --all"),
        (["decide", "{log}", "--counts", "{counts}", "--query", "query 1", "--out", "d"], "no column 'last_click'"),
        (["decide", "{log}", "--counts", "{log}", "--query", "query 1", "--out", "d"], "is not a Parquet table"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(log, tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    count_log(log, ["PBM"]).write("counts.parquet")
    assert main([word.format(log=log, counts="counts.parquet") for word in words]) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert message in " ".join(error.split())


def test_the_statement_is_printed(log, tmp_path, capsys):
    duckdb = pytest.importorskip("duckdb")
    out = tmp_path / "counts.parquet"
    assert not main(["count", str(log), "--model", "all", "--hold-out", "0.2", "--out", str(out), "--sql"])
    assert not out.exists()
    duckdb.connect().execute(capsys.readouterr().out)
    by_sql = read_counts(out).to_frame()
    main(["count", str(log), "--model", "all", "--hold-out", "0.2", "--out", str(out)])
    assert read_counts(out).to_frame().equals(by_sql)


def test_continuation_of_the_dcm_is_not_biased_by_counts(log):
    """Of 4,800 sessions within .06 of the truth, four standard errors; the seed is fixed. The last clicks miss by .2."""
    counts = count_log(log, ["UBM", "DCM"])
    np.testing.assert_allclose(leaving(counts)[:2], [0.7, 0.4], atol=0.06)
    assert abs(DCMEstimator().fit_counts(counts).termination_[1] - 0.4) > 0.2


def test_the_query_itself_tells_nothing_of_positions(log):
    counts = count_log(log, ["UBM"])
    others = counts.part(~counts.of_query("query 5"))
    whole, without = (shared_parameters(each, "query 5", 3) for each in (counts, _with_query(others, counts)))
    for name in ("PBM", "UBM", "DCM"):
        assert np.array_equal(whole[name], without[name], equal_nan=True)
    assert [len(values) for values in shared_parameters(counts, "query 5", 2).values()] == [2, 4, 2]
    with pytest.raises(ValueError, match="the counts have 3 positions, and the log 4"):
        shared_parameters(counts, "query 5", 4)
    with pytest.raises(ValueError, match="no other query"):
        shared_parameters(counts.part(counts.of_query("query 5")), "query 5", 3)


def _with_query(others, counts):
    """Counts of other queries, and another display of the query."""
    frame = others.to_frame()
    one = frame[:1].with_columns(query=pl.lit("query 5"), position=pl.lit(1, pl.Int32), last_click=pl.lit(0, pl.Int32))
    return type(counts).from_frame(pl.concat([frame, one]))


SMALL = {"horizon": 500, "runs": 1, "agents": ["TopRank"], "seed": 3}


def test_a_decision_by_counts_reads_one_query_and_says_so(log, tmp_path):
    counts = count_log(log, ["UBM"])
    counts.write(tmp_path / "counts.parquet")
    decision = decide(log, "query 3", counts=tmp_path / "counts.parquet", **SMALL)
    assert (decision.n_sessions, decision.n_queries, decision.n_of_query) == (4800, 12, 400)
    assert decision.subject.counts == str(tmp_path / "counts.parquet")
    in_memory = decide(read_log(log), "query 3", counts=counts, **SMALL)
    assert in_memory.evidence.scores == decision.evidence.scores
    usual = decide(log, "query 3", **SMALL)
    assert usual.subject.counts == ""
    assert {score.model for score in usual.evidence.scores} == {score.model for score in decision.evidence.scores}
    likelihoods = [{score.model: score.log_likelihood for score in each.evidence.scores} for each in (usual, decision)]
    best = [max(values, key=values.get) for values in likelihoods]
    assert "CM" not in best


def test_the_page_says_where_examination_comes_from(log, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    count_log(log, ["UBM"]).write("counts.parquet")
    how = ["--query", "query 3", "--counts", "counts.parquet", "--horizon", "500", "--runs", "1", "--agents", "TopRank"]
    assert not main(["decide", str(log), *how, "--out", "page"])
    page = (tmp_path / "page" / "decision.html").read_text()
    assert "comes from the counts counts.parquet of the most frequent other queries" in page
    assert "--counts counts.parquet" in page
