"""Decisions for the queries of a log: one table, a page for each, verdicts that hold against their number."""

import json
import re
import signal
from dataclasses import asdict

import joblib
import numpy as np
import polars
import pytest
from slow import slow

import clickgym
from clickgym.command_line import main
from clickgym.core.formats import to_csv
from clickgym.envs import PositionBasedModel
from clickgym.offline import ClickLog, write_tidy
from clickgym.offline.decision.all_queries import PAGES, _of, _p_value, _Work, threshold
from clickgym.offline.decision.evidence import Ground, experiment
from clickgym.offline.decision.page import write_decision
from clickgym.offline.decision.settings import Settings

pytestmark = pytest.mark.usefixtures("undrawn_here")  # the pictures of a page are those of `test_decide.py`

QUICK = {"agents": ["TopRank"], "horizon": 500, "runs": 1, "n_jobs": 1}
EXAMINATION = [0.9, 0.6, 0.3]
SIZES = {"shoes": 6000, "hats": 3000, "=bags": 900, "gloves": 2}


def log_of_queries():
    """Queries whose list in production is poor, best and poor; and one that hardly anybody asks."""
    rng = np.random.default_rng(0)
    items, clicks = [], []
    for place, (query, size) in enumerate(SIZES.items()):
        users = PositionBasedModel([0.1, 0.3, 0.45, 0.6], EXAMINATION)
        best = [3, 2, 1] if query == "hats" else [0, 1, 2]
        lists = rng.permuted(np.tile(np.arange(4), (size, 1)), axis=1)[:, :3]
        lists = np.where(rng.random((size, 1)) < 0.5, best, lists)
        clicks.append(rng.random(lists.shape) < users.attraction[lists] * users.examination)
        items.append(lists + 4 * place)
    labels = [f"{query} {letter}" for query in SIZES for letter in "abcd"]
    order = rng.permutation(sum(SIZES.values()))
    queries = np.repeat(np.arange(len(SIZES)), [*SIZES.values()])
    return ClickLog(np.vstack(items)[order], np.vstack(clicks)[order], queries[order], tuple(labels), tuple(SIZES))


@pytest.fixture(scope="module")
def log():
    return log_of_queries()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("decisions")


@pytest.fixture(scope="module")
def decisions(undrawn_here, log, folder):
    return clickgym.decide_all(log, folder, **QUICK)


def test_every_query_is_decided(decisions, folder):
    assert [(each.query, each.sessions) for each in decisions.queries] == [*SIZES.items()]
    verdicts = {each.query: each.verdict for each in decisions.queries}
    assert verdicts == {"shoes": "better", "hats": "not better", "=bags": verdicts["=bags"], "gloves": "refused"}
    shoes, hats, _, gloves = decisions.queries
    assert shoes.recommended[0] == "shoes d"
    assert shoes.interval[0] < shoes.difference < shoes.interval[1]
    assert shoes.p_value <= decisions.threshold <= decisions.level
    assert hats.recommended == ()
    assert "the query 'gloves' has 2 sessions, of which none was" in gloves.cautions[0]
    assert (folder / shoes.page).is_file()
    assert gloves.page == ""


def test_the_page_of_a_query_is_the_one_that_decide_writes(decisions, log, folder, tmp_path):
    alone = clickgym.decide(log, "hats", agents=["TopRank"], horizon=500, runs=1)
    write_decision(alone, tmp_path)
    ours, theirs = (json.loads((place / "decision.json").read_text(encoding="utf-8")) for place in (
        (folder / decisions.queries[1].page).parent, tmp_path,
    ))  # fmt: skip
    correction = {"level", "n_decided", "summary", "command"}
    assert {key for key in theirs if ours[key] != theirs[key]} <= correction
    assert (ours["n_decided"], theirs["n_decided"]) == (4, 1)
    assert ours["level"] <= theirs["level"]


def test_a_list_has_one_verdict(decisions, log):
    """`decide` at the threshold of all queries says of each query what the table says."""
    for each in decisions.queries[:3]:
        alone = clickgym.decide(log, each.query, agents=["TopRank"], horizon=500, runs=1, level=decisions.threshold)
        assert (alone.verdict, alone.larger) == (each.verdict, each.larger)
        assert each.recommended == (alone.recommended if each.verdict in ("better", "likely better") else ())
        if alone.ground is not None:
            assert (alone.ground.difference, alone.ground.p_value) == (each.difference, each.p_value)


def test_a_measured_list_that_is_not_proven_does_not_silence_the_models():
    """Of eight queries one: proven alone, not at the corrected level; the models' list is."""
    measured = {"name": "measured", "labels": ["d", "b"], "difference": 0.05, "standard_error": 0.018, "base": 1.0}
    models = {"name": "models", "labels": ["d", "c"], "difference": 0.5, "standard_error": 0.05, "base": 1.0}
    row = {"grounds": [measured | {"p_value": 0.003, "doubt": 0.01}, models | {"p_value": 1e-9, "doubt": 0.0}], "enough": True}
    level = threshold([_p_value(row), *[1.0] * 7], 0.005)
    assert _p_value(row) == 1e-9
    assert level == 0.005 / 8
    assert [(_of(row, each)[0], _of(row, each)[1].labels) for each in (0.005, level)] == [
        ("better", ("d", "b")), ("likely better", ("d", "c"))
    ]  # fmt: skip
    assert _p_value(row | {"grounds": [measured | {"p_value": 0.003, "doubt": 0.06}]}) == 1.0
    assert _p_value({"query": "gloves", "refused": "few"}) == 1.0


def test_a_row_of_the_table_says_what_to_test(tmp_path):
    """Beside a measured list the larger step; a list of the models; a list that is not proven."""
    measured, models = (
        Ground("measured", ("d", "b"), 0.05, 0.018, 1.0, 0.003),
        Ground("models", ("d", "c"), 0.5, 0.05, 1.0, 1e-9),
    )
    settings = Settings.check(("TopRank",), 1, 1, 0, "clicks", None)
    work = _Work(tmp_path, "log", settings, {"shoes": 100}, 1, lambda *_: None)

    def row(level, *grounds):
        row = {"grounds": [asdict(ground) for ground in grounds], "enough": True, "variance": 0.5}
        found = work._row("shoes", row, level)
        return found.verdict, found.recommended, found.difference, found.p_value, found.larger, found.test_sessions

    wanted = ("better", ("d", "b"), 0.05, 0.003, models, experiment(0.5, 0.5, 0.005))
    assert row(0.005, measured, models) == wanted
    assert row(0.001, measured, models) == ("likely better", ("d", "c"), 0.5, 1e-9, None, experiment(0.5, 0.5, 0.001))
    assert row(0.001, measured) == ("not proven", (), 0.05, 0.003, None, experiment(0.05, 0.5, 0.001))
    assert row(0.005, measured) == ("better", ("d", "b"), 0.05, 0.003, None, None)
    assert row(0.005) == ("not better", (), None, 1.0, None, None)
    refused = work._row("shoes", {"query": "shoes", "refused": "few"}, 0.005)
    assert (refused.verdict, refused.p_value, refused.cautions) == ("refused", 1.0, ("few",))


def test_the_table_is_sorted_filtered_and_says_how_it_was_corrected(decisions, folder):
    page = (folder / "decisions.html").read_text(encoding="utf-8")
    assert "Benjamini–Hochberg" in page
    assert page.count("<tr") == 1 + len(SIZES)
    assert f'href="{decisions.queries[0].page}"' in page
    assert 'class="filters"' in page
    assert "function sort(header)" in page
    assert not re.search(r"(src|href)=\"https?:", page)


def test_cells_that_a_spreadsheet_would_compute_are_text(decisions, folder):
    table = polars.read_csv(folder / "decisions.csv")
    assert table["query"].to_list() == ["shoes", "hats", "'=bags", "gloves"]
    assert table["sessions"].to_list() == [*SIZES.values()]
    assert to_csv(decisions.to_frame()) == (folder / "decisions.csv").read_text(encoding="utf-8")


def test_what_is_done_is_not_done_again(decisions, log, folder):
    page = folder / decisions.queries[0].page
    page.write_text(page.read_text(encoding="utf-8") + "<!-- as it was -->", encoding="utf-8")
    (folder / decisions.queries[1].page).unlink()
    lines = (folder / "verdicts.jsonl").read_text(encoding="utf-8").splitlines()
    cut = [*lines[:2], lines[2][: len(lines[2]) // 2]]  # as when the power failed
    (folder / "verdicts.jsonl").write_text("\n".join(cut), encoding="utf-8")
    assert clickgym.decide_all(log, folder, **QUICK) == decisions
    assert page.read_text(encoding="utf-8").endswith("<!-- as it was -->")
    assert (folder / decisions.queries[1].page).is_file()


@pytest.mark.parametrize("backend", ["threading", *slow("loky")])  # which takes two processes
def test_workers_decide_the_same(decisions, log, tmp_path, backend):
    with joblib.parallel_config(backend=backend):
        found = clickgym.decide_all(log, tmp_path, **QUICK | {"n_jobs": 2, "pages": False})
    assert [each.verdict for each in found.queries] == [each.verdict for each in decisions.queries]
    assert [each.p_value for each in found.queries] == [each.p_value for each in decisions.queries]
    assert not (tmp_path / PAGES).exists()


def test_a_folder_of_other_decisions_is_refused(decisions, log, folder):
    with pytest.raises(ValueError, match=r"holds decisions with horizon = 500, here it is 600; choose another folder"):
        clickgym.decide_all(log, folder, **QUICK | {"horizon": 600})
    with pytest.raises(ValueError, match=r"holds decisions with level = 0.005, here it is 0.01; choose another folder"):
        clickgym.decide_all(log, folder, **QUICK | {"level": 0.01})


def test_a_folder_of_version_2_is_refused(log, tmp_path):
    (tmp_path / "config.json").write_text('{"clickgym": "2.0.0", "log": "a log in memory", "horizon": 500}')
    with pytest.raises(ValueError, match=r"holds decisions of clickgym 2.0.0, which had no level; choose another folder"):
        clickgym.decide_all(log, tmp_path, **QUICK)


@pytest.mark.parametrize(
    ("p_values", "largest"),
    [
        ([0.001, 0.9, 0.008, 0.2], 0.02 * 2 / 4),
        ([0.02, 0.02, 0.02], 0.02),
        ([0.5, 0.9], 0.02 / 2),
        ([0.011, 0.012, 0.0149, 1.0], 0.02 * 3 / 4),
    ],
)
def test_the_procedure_of_benjamini_and_hochberg(p_values, largest):
    assert threshold(p_values, 0.02) == pytest.approx(largest)


# ----------------------------------------------------------------------------------------------------------------- command


@pytest.fixture
def file(log, tmp_path):
    write_tidy(log[:4000], tmp_path / "log.csv")
    return tmp_path / "log.csv"


@pytest.mark.slow
def test_the_command_decides_the_most_frequent_queries(file, printed):
    out = file.parent / "out"
    words = ["--agents", "TopRank", "--horizon", "500", "--runs", "1", "--jobs", "1", "--out", str(out)]
    text = printed(["decide", str(file), "--top", "2", *words])
    assert "1 of 2 queries have a better list" in text
    assert "shoes d, " in text
    assert "Benjamini–Hochberg" in text
    assert (out / "decisions.html").is_file()
    assert len(list(out.glob("queries/*/decision.html"))) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_command_says_how_far_it_is(file, capsys, monkeypatch, number):
    def stopped(*_, on_progress, **__):
        on_progress("judged", 8, 8)
        on_progress("written", 3, 8)
        signal.raise_signal(number)

    monkeypatch.setattr("clickgym.offline.commands.decide.decide_all", stopped)
    assert main(["decide", str(file), "--all", "--out", "out"]) == 130
    told = (
        "clickgym: stopped; 8 of 8 queries are judged and 3 of 8 queries are written in out, and the same command resumes it\n"
    )
    assert capsys.readouterr().err == told
