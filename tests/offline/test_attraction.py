"""Attractions of all items with their intervals, beside clicks over expected clicks."""

import numpy as np
import polars as pl
import pytest

from clickgym.offline import ClickLog, fit_models, write_tidy

CASCADE = np.array([0.6, 0.45, 0.3, 0.2, 0.1])
EXAMINATION = np.array([0.8, 0.5, 0.3])


def table(log, models=("CM",), coec="sum", **options):
    return fit_models(log, list(models), n_items=50, test_share=0, coec=coec, **options).attractions


def swapped():
    """Two items in both orders, 100 sessions each: 115 clicks at position 1, 57 at position 2, of all 95 on a."""
    clicks = np.zeros((200, 2), int)
    clicks[:75, 0], clicks[:37, 1], clicks[100:140, 0], clicks[100:120, 1] = 1, 1, 1, 1
    return ClickLog([[0, 1]] * 100 + [[1, 0]] * 100, clicks, [0] * 200, ("a", "b"), ("q",))


@pytest.mark.parametrize(("coec", "expected"), [("sum", 190 / 172), ("opensearch", 95 / 115)])
def test_expected_clicks_are_summed_over_the_positions_or_all_taken_to_be_at_the_highest(coec, expected):
    row = table(swapped(), coec=coec).row(by_predicate=pl.col("item") == "a", named=True)
    assert row["coec"] == pytest.approx(expected)
    assert round(expected, 3) == {"sum": 1.105, "opensearch": 0.826}[coec]
    assert (row["sessions"], row["clicks"], row["model"]) == (200, 95, "CM")


def test_the_plugin_gives_0_to_what_was_never_above_the_last_position():
    log = ClickLog([[0, 1]] * 40, [[1, 0], [0, 1]] * 20, [0] * 40, ("a", "b"), ("q",))
    assert table(log, coec="opensearch")["coec"].to_list() == [1, 0]
    assert table(log)["coec"].to_list() == [1, 1]


def test_without_clicks_at_its_positions_an_item_has_no_coec():
    log = ClickLog([[0, 1]] * 40, [[1, 0]] * 40, [0] * 40, ("a", "b"), ("q",))
    assert table(log)["coec"].to_list() == [1, None]


def test_fewer_than_30_sessions_give_no_attraction():
    log = ClickLog([[0, 1]] * 29 + [[2, 1]] * 30, [[1, 0]] * 59, [0] * 59, ("a", "b", "c"), ("q",))
    rows = table(log, bootstrap=2).select("item", "sessions", "attraction", "low", "high").rows()
    assert rows[0] == ("a", 29, None, None, None)
    assert all(None not in row for row in rows[1:])


def test_a_query_with_fewer_items_than_positions_has_attractions_too():
    lists, clicks = [[0, 1], [1, 0]] * 20 + [[2, -1]] * 40, [[1, 0], [0, 1]] * 20 + [[1, 0]] * 40
    rows = table(ClickLog(lists, clicks, [0] * 40 + [1] * 40, ("a", "b", "c"), ("p", "q")), ("PBM",))
    assert rows.select("query", "item", "sessions", "clicks").row(2) == ("q", "c", 40, 40)
    assert 0.9 < rows["attraction"][2] < 1


def simulated(rng, model, n=1500):
    items = rng.permuted(np.tile(np.arange(5), (n, 1)), axis=1)[:, :3]
    attracted = rng.random(items.shape) < CASCADE[items]
    if model == "CM":
        clicks = attracted & (attracted.cumsum(axis=1) == 1)
    else:
        clicks = attracted & (rng.random(items.shape) < EXAMINATION)
    return ClickLog(items, clicks, np.zeros(n, int), tuple("abcde"), ("q",))


@pytest.mark.parametrize("model", ["CM", "PBM"])
def test_intervals_contain_the_truth_as_often_as_they_say(model):
    """Null hypothesis: each of the 200 intervals contains the truth with probability 0.95. Independent ones would miss 18 or
    more in 1.2 % of all seeds; those of one log are hardly correlated. The seed is fixed."""
    rng, misses = np.random.default_rng(3), 0
    for seed in range(40):
        fitted = fit_models(simulated(rng, model), [model], n_items=5, test_share=0, coec="sum", bootstrap=10, seed=seed)
        truth = CASCADE
        if model == "PBM":  # the intervals hold for the examination at position 1 as it is in the instance
            truth = CASCADE * EXAMINATION[0] / fitted.instances["q"].model("PBM").parameters.examination[0]
        rows = fitted.attractions.sort("item")
        misses += int(((rows["low"].to_numpy() > truth) | (rows["high"].to_numpy() < truth)).sum())
    assert misses < 18


def test_each_query_and_model_has_its_rows_and_those_of_instances_agree():
    rng = np.random.default_rng(0)
    log = simulated(rng, "PBM")
    log = ClickLog(log.items, log.clicks, np.arange(1500) % 2, log.item_labels, ("p", "q"))
    fitted = fit_models(log, ["PBM", "CM", "RCTR"], ["q"], n_items=5, coec="sum", bootstrap=3)
    assert fitted.attractions.group_by("query", "model").len().sort("query", "model").rows() == [
        (query, model, 5) for query in "pq" for model in ("CM", "PBM")
    ]
    own = fitted.attractions.filter((pl.col("query") == "q") & (pl.col("model") == "PBM")).sort("item")
    assert own["attraction"].to_list() == fitted.instances["q"].model("PBM").attraction.tolist()
    half = np.array(fitted.instances["q"].estimation["standard_errors"]["PBM"]["attraction"])
    np.testing.assert_allclose((own["high"] - own["attraction"]).to_numpy() / 4.302653, half, atol=2e-6)


def test_the_command_writes_a_table_and_refuses_in_one_line(tmp_path, monkeypatch, printed, refused):
    monkeypatch.chdir(tmp_path)
    write_tidy(simulated(np.random.default_rng(0), "CM", 300), "log.csv")
    fit = ["fit", "log.csv", "--out", "q.json", "--bootstrap", "2", "--model"]
    assert "out.csv: 5 rows, 0 of them without attraction" in printed([*fit, "CM", "--attractions", "out.csv"])
    frame = pl.read_csv("out.csv")
    assert frame.columns == ["query", "item", "sessions", "clicks", "model", "attraction", "low", "high", "coec"]
    for words, message in (
        (["CM", "--attractions", "out.txt"], "expected the name of a .csv file"),
        (["RCTR", "--attractions", "out.csv"], "RCTR has no attraction"),
    ):
        told = refused([*fit, *words])
        assert message in told
        assert told.count("\n") == 1


def one_list(n=100, other=False):
    """Queries of one list each; the second of two if wanted."""
    lists = np.array([[0, 1, 2], [2, 1, 0] if other else [0, 1, 2], [3, 4, 5], [3, 4, 5]] * n)
    clicks = np.random.default_rng(0).integers(0, 2, lists.shape)
    return ClickLog(lists, clicks, [0, 0, 1, 1] * n, tuple("abcdef"), ("q", "r"))


@pytest.mark.parametrize("models", [["PBM"], ["UBM"], ["CM", "PBM"], ["PBM", "UBM"]])
def test_a_log_with_one_list_per_query_is_refused_where_examination_is_fitted(models):
    with pytest.raises(ValueError, match=r"each query of the log has one list: no item was at two positions, so (PBM|UBM)"):
        table(one_list(), models)
    assert table(one_list(), ["CM", "DCM", "SDBN"])["attraction"].null_count() == 0
    assert table(one_list(other=True), models)["attraction"].null_count() == 0  # the other query tells of the positions


def test_per_query_a_query_with_one_list_has_no_attraction():
    rows = table(one_list(other=True), ["PBM"], per_query=True)
    assert rows.filter(pl.col("attraction").is_null())["query"].unique().to_list() == ["r"]
    assert rows["coec"].null_count() == 0
