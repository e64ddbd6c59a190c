"""Tests of ``clickgym fit``, which turns a log into an instance file in one command."""

import json
import re
import shlex

import numpy as np
import polars as pl
import pytest
from scipy import stats

import clickgym
from clickgym.envs import PositionBasedModel, load_instance
from clickgym.logs import ClickLog, PBMEstimator, check_models, fit_models, read_log, write_tidy
from clickgym.logs.fitting import position_groups
from clickgym.runner.fingerprint import fingerprint_of

ATTRACTION, EXAMINATION = [0.7, 0.5, 0.4, 0.3, 0.2, 0.1], [0.9, 0.7, 0.5, 0.3]


@pytest.fixture(scope="module")
def log_file(tmp_path_factory):
    """A log of two queries, simulated from the same position-based model; one query has twice the
    sessions of the other.
    """
    path = tmp_path_factory.mktemp("log") / "log.csv"
    rng = np.random.default_rng(1)
    items = rng.permuted(np.tile(np.arange(6), (9000, 1)), axis=1)[:, :4]
    clicks = rng.random(items.shape) < np.array(ATTRACTION)[items] * EXAMINATION
    write_tidy(
        ClickLog(items, clicks, np.arange(9000) % 3 // 2, tuple("abcdef"), ("often", "some/times")),
        path,
    )
    return path


@pytest.mark.usefixtures("undrawn")
def test_a_fitted_instance_is_the_truth_and_can_be_run(log_file, tmp_path, printed):
    out = tmp_path / "the query.json"
    words = ["--model", "PBM", "UBM", "CM", "-m", "DCM", "--out", str(out)]
    said = printed(["fit", str(log_file), *words])
    assert "7,200 sessions" in said
    assert "1,800 held-out" in said
    assert re.search("^CM +closed form +-inf +inf ", said, re.MULTILINE)
    instance = load_instance(out)
    assert (instance.name, instance.n_items, instance.n_positions) == ("often", 6, 4)
    assert instance.estimation["items"] == list("abcdef")
    assert instance.estimation["sessions"] == 6000
    assert instance.estimation["sessions_of_all_queries"] == 9000
    truth, ranking = PositionBasedModel(ATTRACTION, EXAMINATION), [3, 0, 5, 1]
    found = instance.model("PBM").click_probabilities(ranking)
    np.testing.assert_allclose(found, truth.click_probabilities(ranking), atol=0.06)
    assert instance.models["DCM"].termination[-1] == instance.models["DCM"].termination[-2]
    assert instance.description == "query often, 6000 sessions, 6 items (PBM, UBM, CM, DCM)"
    assert instance.origin == "estimated by clickgym from the click log log.csv"
    [command] = re.findall("\nclickgym (run PBMRank-v0 .*) --horizon 1e5 --out results/users", said)
    assert printed(shlex.split(f"{command} --horizon 100 --runs 1 --out {tmp_path / 'run'}"))


@pytest.mark.parametrize(("n_items", "kept"), [(None, "abcd"), (3, "abc"), (5, "abcde")])
def test_items_in_one_of_a_hundred_sessions_are_kept(n_items, kept):
    """Leaving out rare items does not change the estimates for the items that are kept, because
    clicks on rare items still count as their own.
    """
    rng = np.random.default_rng(0)
    lists = rng.permuted(np.tile([0, 1, 2], (4000, 1)), axis=1)
    lists[:400:10, 2], lists[400:800:11, 0] = 3, 4  # item 3 in 1 % of the sessions, item 4 in fewer
    clicks = rng.random(lists.shape) < np.array([0.3, 0.2, 0.4, 0.5, 0.9])[lists]
    log = ClickLog(lists, clicks, np.zeros(4000), tuple("abcde"), ("q",))
    fitted = fit_models(log, ["PBM"], n_items=n_items, test_share=0)
    assert fitted.instances["q"].labels == tuple(kept)
    whole = PBMEstimator().fit(log).click_model("q", list("abcde"))
    attraction = fitted.instances["q"].model("PBM").attraction
    np.testing.assert_array_equal(attraction, whole.attraction[: len(kept)])


def test_the_sessions_of_a_query_decide_what_it_shows_often():
    """One item occurs in a tenth of the sessions of its own query, but in only one of two hundred
    of all sessions.
    """
    items = [[0, 1]] * 1000 + [[2, 3]] * 45 + [[2, 4]] * 5
    log = ClickLog(items, np.zeros((1050, 2)), [0] * 1000 + [1] * 50, tuple("abcde"), ("p", "q"))
    assert fit_models(log, ["CM"], ["q"], test_share=0).instances["q"].labels == ("c", "d", "e")


def test_production_list_is_the_most_frequent_one():
    """The production list is neither the first nor the rarest list. Items that are missing in it
    follow, the most often displayed first, because a list may be short.
    """
    items = [[3, 0, 1]] + [[2, 1, -1]] * 3 + [[0, 4, 2]] * 2
    log = ClickLog(items, np.zeros((6, 3)), [0] * 6, tuple("abcde"), ("q",))
    instance = fit_models(log, ["CM"], n_items=5, test_share=0).instances["q"]
    labels = [instance.labels[item] for item in instance.initial_ranking]
    assert labels == ["c", "b", "a", "e", "d"]
    with pytest.warns(UserWarning, match="'q': 2 lists were shown most often, in 2 of 4 sessions"):
        instance = fit_models(log[2:], ["CM"], n_items=5, test_share=0).instances["q"]
    assert [instance.labels[item] for item in instance.initial_ranking[:3]] == ["a", "e", "c"]
    items = [[0, 1]] * 3 + [[2, 3]] * 2 + [[3, 2]] * 2  # each item of the list is shown less often
    log = ClickLog(items, np.zeros((7, 2)), [0] * 7, tuple("abcd"), ("q",))
    with pytest.warns(UserWarning, match="the instance lacks 1 item of today's list"):
        fit_models(log, ["CM"], n_items=3, test_share=0)


def test_the_order_of_sessions_and_labels_does_not_matter():
    """The same sessions in another order, with other numbers for the items and queries."""
    rng = np.random.default_rng(2)
    lists = rng.permuted(np.tile(np.arange(4), (600, 1)), axis=1)[:, :3]
    clicks, queries = rng.random(lists.shape) < 0.3, np.arange(600) % 2
    log = ClickLog(lists, clicks, queries, tuple("cabd"), ("q", "p"))
    order = rng.permutation(600)
    numbers = np.array([2, 0, 1, 3])  # c, a, b and d in the other log
    items = numbers[lists[order]]
    labels = tuple("abcd-"), ("p", "q", "")  # two do not occur
    other = ClickLog(items, clicks[order], 1 - queries[order], *labels)
    first, second = (fit_models(part, ["DBN", "PBM"], ["p", "q"]) for part in (log, other))
    assert first.scores().equals(second.scores())
    assert first.test.to_frame().equals(second.test.to_frame())
    for query, instance in first.instances.items():
        assert instance.to_dict() == second.instances[query].to_dict()
    assert first.test.item_labels == log.item_labels  # numbers mean what they mean in the log
    with_seed = fit_models(log, ["DBN"], seed=1)
    assert not with_seed.test.to_frame().equals(first.test.to_frame())


def test_the_scores_say_what_the_held_out_sessions_decide():
    """In sessions of a position-based model, the UBM is as good, and the DBN is not. The CM
    excludes several clicks.
    """
    rng = np.random.default_rng(1)
    items = rng.permuted(np.tile(np.arange(6), (12_000, 1)), axis=1)[:, :4]
    clicks = rng.random(items.shape) < np.array(ATTRACTION)[items] * EXAMINATION
    log = ClickLog(items, clicks, np.zeros(12_000), tuple("abcdef"), ("q",))
    fitted = fit_models(log, ["CM", "DBN", "UBM", "PBM"])
    scores = {name: numbers for name, *numbers in fitted.scores().rows()}
    assert [*scores][2:] == ["DBN", "CM"]
    assert {*fitted.candidates()} == {"UBM", "PBM"}
    assert scores["CM"] == [-np.inf, np.inf, 0]
    best, other = (fitted.scored[name].log_likelihood(fitted.test) for name in [*scores][:3:2])
    assert scores["DBN"][1] == pytest.approx((best - other).mean())
    assert scores["DBN"][2] == pytest.approx(1.961 * stats.sem(best - other), rel=1e-3)
    alone = fit_models(log, ["DBN", "CM"])
    assert alone.candidates() == ["DBN"]
    with pytest.raises(ValueError, match="no sessions are held out"):
        fit_models(log[:100], ["CM"], test_share=0).scores()


def test_the_command_is_undecided_if_the_sessions_are(log_file, tmp_path, printed):
    words = ["--model", "PBM", "UBM", "DCM", "--seed", "3", "--out", str(tmp_path / "q.json")]
    said = " ".join(printed(["fit", str(log_file), *words]).split())
    first, second = re.match(r"Undecided between (\w+) and (\w+): ", said).groups()
    assert {first, second} == {"PBM", "UBM"}
    assert f"clickgym run {first}Rank-v0" in said
    assert re.search(rf"{second} +\d+ +-\S+ 0.0\d+ ± 0.0\d+ ", said)


def test_users_say_where_they_come_from(log_file, tmp_path, printed):
    """The notes on files do not make other users."""
    frame = read_log(log_file).to_frame().rename({"item": "doc_id"})
    last = pl.col("session") >= 5000
    frame.filter(last).write_csv(tmp_path / "a.csv")
    frame.filter(~last).write_parquet(tmp_path / "b.parquet")
    words = ["--model", "PBM", "CM", "--columns", "item=doc_id", "--seed", "1"]
    one, two = tmp_path / "one" / "q.json", tmp_path / "two" / "q.json"
    printed(["fit", str(log_file), *words[:3], *words[-2:], "--out", str(one)])
    printed(["fit", str(tmp_path / "?.[cp]*"), *words, "--out", str(two)])
    notes = load_instance(two).estimation
    numbers = {"sessions": 6000, "sessions_of_all_queries": 9000, "held_out_sessions": 1800}
    assert {**notes, **numbers, "seed": 1, "clickgym": clickgym.__version__} == notes
    assert (notes["files"], notes["columns"]["item"]) == (["a.csv", "b.parquet"], "doc_id")
    assert notes["log_likelihood"].keys() == {"PBM", "CM"}
    assert notes["log_likelihood"]["CM"] is None
    shown = printed(["show", str(two)])
    for words in ("from the click log a.csv and 1 more", "item doc_id", "seed: 1", "CM -inf"):
        assert words in shown
    for users in (load_instance, str):  # with a label, and without
        first, second = [fingerprint_of(users(path), users(path)) for path in (one, two)]
        assert first.difference(second) is None
    changed = json.loads(two.read_text(encoding="utf-8"))
    changed["models"][0]["attraction"][0] /= 2
    two.write_text(json.dumps(changed), encoding="utf-8")
    assert all(users.difference(fingerprint_of(str(two), str(two))) for users in (first, second))
    frame_notes = fit_models(read_log(frame, columns={"item": "doc_id"}), ["CM"], test_share=0)
    assert "files" not in frame_notes.instances["often"].estimation


@pytest.mark.parametrize("share", [0.01, 0.99])
def test_a_session_is_held_out_and_one_learned_from_at_least(share):
    log = ClickLog([[0, 1]] * 2, [[1, 0], [0, 0]], [0, 0], ("a", "b"), ("q",))
    fitted = fit_models(log, ["CM"], test_share=share)
    assert (len(fitted.train), len(fitted.test)) == (1, 1)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--model PBM TPBM", "no estimator fits the click model 'TPBM'; did you mean 'PBM'?"),
        ("--model PBM --items 3", "n_items is 3, but the log has 4 positions"),
        ("--model PBM --query never", "the log has no query 'never'; its most frequent queries "),
    ],
)
def test_wrong_input_is_one_line_and_writes_nothing(log_file, tmp_path, refused, words, message):
    said = refused(["fit", str(log_file), *words.split(), "--out", str(tmp_path / "x.json")])
    assert message in said.splitlines()[-1]
    assert [*tmp_path.iterdir()] == []


def test_python_fits_as_the_command_does(log_file, tmp_path, printed):
    queries = ["often", "some/times"]
    words = ["fit", str(log_file), "--model", "PBM", "DCM", "--query", *queries]
    best, command, *_ = printed([*words, "--out", str(tmp_path / "queries")]).splitlines()
    assert best.startswith("PBM predicts the held-out sessions best.")
    typed = shlex.split(command)
    first = typed.index("--instances") + 1
    assert [load_instance(file).name for file in typed[first : first + 2]] == queries
    origin = "estimated by clickgym from the click log log.csv"
    fitted = fit_models(read_log(log_file), ["PBM", "DCM"], queries, origin=origin)
    again = PBMEstimator().fit(fitted.train)
    assert fitted.scored["PBM"].score(fitted.test) == again.score(fitted.test)
    of_all = PBMEstimator().fit(read_log(log_file)).click_model("often", list("abcdef"))
    assert fitted.instances["often"].model("PBM").attraction == pytest.approx(of_all.attraction)
    for query, name in (("often", "often.json"), ("some/times", "some%2Ftimes.json")):
        fitted.instances[query].save(tmp_path / "again.json")
        assert (tmp_path / "again.json").read_bytes() == (tmp_path / "queries" / name).read_bytes()


@pytest.mark.uncompiled
@pytest.mark.usefixtures("undrawn")
def test_the_command_counts_no_more_positions_than_can_be_searched(tmp_path, printed, monkeypatch):
    """The largest query decides: with 6 items it has 30 lists of two. The other query has 24 lists
    of four.
    """
    for module in ("envs.click_models.click_model", "logs.commands.fit"):
        monkeypatch.setattr(f"clickgym.{module}.MAX_SEARCH", 100)
    rng = np.random.default_rng(0)
    items = [rng.permutation(6 if n % 2 else 4)[:4] for n in range(400)]
    clicks = rng.random((400, 4)) < 0.3
    log = ClickLog(items, clicks, np.arange(400) % 2, tuple("abcdef"), ("few", "many"))
    write_tidy(log, tmp_path / "log.csv")
    words = ["--model", "UBM", "--query", "few", "many", "--out", str(tmp_path / "users")]
    _, command, *_ = printed(["fit", str(tmp_path / "log.csv"), *words]).splitlines()
    assert command.startswith("clickgym run UBMRank-v0:cutoff=2 ")
    typed = command.partition(" --horizon")[0].removeprefix("clickgym ")
    assert printed(shlex.split(f"{typed} --horizon 10 --runs 1 --out {tmp_path / 'run'}"))


# ------------------------------------------------------------------------------------------------
# ---------- what a log tells


EXCHANGES = [[0, 1, 2, 3], [1, 0, 2, 3], [0, 1, 3, 2], [1, 0, 3, 2]]
SWAPS = [[0, 1, 2, 3], [1, 0, 2, 3], [0, 2, 1, 3], [0, 1, 3, 2], [0, 1, 2, 4]]


def shown(lists, n=2000, seed=0):
    """Return a log in which the given lists are shown in turn."""
    rng, items = np.random.default_rng(seed), np.resize(lists, (n, 4))
    clicks = rng.random(items.shape) < np.array(ATTRACTION)[items] * EXAMINATION
    return ClickLog(items, clicks, np.zeros(n), tuple("abcdef"), ("q",))


@pytest.mark.parametrize(
    ("lists", "groups"),
    [
        ([[0, 1, 2, 3]], [[1], [2], [3], [4]]),
        (EXCHANGES, [[1, 2], [3, 4]]),
        (SWAPS, [[1, 2, 3, 4]]),
        ([[4, 5, 0, 1], [0, 1, 4, 5]], [[1, 3], [2, 4]]),
    ],
)
def test_positions_are_compared_by_items_that_were_clicked_at_both(lists, groups):
    assert position_groups(shown(lists)) == groups


@pytest.mark.parametrize(("n", "groups"), [(30, [[1, 2]]), (29, [[1], [2]])])
def test_thirty_clicks_at_each_position_compare_them(n, groups):
    log = ClickLog([[0, 1], [2, 0]] * n, [[1, 1]] * 2 * n, [0] * 2 * n, tuple("abc"), ("q",))
    assert position_groups(log) == groups


def test_clicks_of_one_query_compare_no_positions_of_another():
    """One query always shows the same list and gets clicks. The other exchanges the items and gets
    none.
    """
    clicks = [[1, 1], [0, 0], [0, 0]] * 100
    log = ClickLog([[0, 1], [0, 1], [1, 0]] * 100, clicks, [0, 1, 1] * 100, ("a", "b"), ("p", "q"))
    assert position_groups(log) == [[1], [2]]


def test_cautions_about_a_log(tmp_path, printed):
    """The first log comes from an agent that has found its list and shows a random list in 3 % of
    the sessions, which is enough. In the second log, only neighbouring positions exchange items.
    The third log lacks the sessions without a click.
    """
    rng = np.random.default_rng(0)
    lists = rng.permuted(np.tile(np.arange(6), (20_000, 1)), axis=1)[:, :4]
    lists[rng.random(20_000) > 0.03] = [0, 1, 2, 3]
    for log, is_told in ((shown(lists, 20_000), True), (shown(EXCHANGES), False)):
        write_tidy(log, tmp_path / "log.parquet")
        words = ["fit", str(tmp_path / "log.parquet"), "--model", "PBM"]
        text = " ".join(printed([*words, "--out", str(tmp_path / "q.json")]).split())
        assert ("positions: 1, 2 | 3, 4" in text) != is_told
        assert "every session has a click" not in text
    clicked = log[log.clicks.any(axis=1)]
    assert "every session has a click" in check_models(clicked, ["PBM"]).sentence
