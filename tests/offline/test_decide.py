"""From a log to a decision: what is recommended, when nothing is, and the page that says so."""

import contextlib
import io
import json
import re
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

import clickgym
from clickgym.command_line import main
from clickgym.envs import PositionBasedModel
from clickgym.envs.instances import load_instance
from clickgym.offline import ClickLog, FixedPolicy, evaluate, hold_out, write_tidy
from clickgym.offline.decision.decide import _try_estimators, decide
from clickgym.offline.decision.evidence import (
    Ground,
    Judged,
)
from clickgym.offline.decision.page import to_dict, to_html
from clickgym.offline.decision.records import Check, Trial, believed_of
from clickgym.offline.decision.words import advice, objections

QUICK = {"agents": ["TopRank"], "horizon": 2000, "runs": 1}
USERS = PositionBasedModel([0.1, 0.3, 0.45, 0.6], [0.9, 0.6, 0.3])


def log_of(lists, n, seed=0, users=USERS, labels=("a", "b", "c", "d"), query="shoes"):
    """``n`` sessions of users who are shown lists at random; the first is shown as often as all others together."""
    rng = np.random.default_rng(seed)
    weights = np.r_[len(lists) - 1 or 1, np.ones(len(lists) - 1)]
    items = np.array(lists)[rng.choice(len(lists), n, p=weights / weights.sum())]
    clicks = np.array([users.sample(ranking, rng) for ranking in items])
    return ClickLog(items, clicks, np.zeros(n), labels, (query,))


ALL = [[0, 1, 2], [3, 2, 1], [0, 2, 3], [1, 3, 0], [2, 0, 1], [3, 0, 2], [2, 3, 0], [1, 2, 3], [3, 1, 0]]


@pytest.fixture(scope="module")
def log():
    return log_of(ALL, 6000)


@pytest.fixture(scope="module")
def decision(log):
    return decide(log, truth=USERS, **QUICK)


def test_a_list_that_the_log_knows_to_be_better_is_recommended(decision, log):
    assert decision.verdict == "better"
    assert decision.headline == "Show the proposed list"
    assert decision.recommended == decision.proposal.labels == ("d", "c", "b")
    assert decision.production.labels == ("a", "b", "c")
    assert (decision.n_sessions, decision.n_of_query, decision.n_queries) == (6000, 6000, 1)
    for name in decision.believed:
        gain = decision.proposal.estimates[name]
        assert abs(gain.difference - (decision.proposal.truth - decision.production.truth)) < 4 * gain.standard_error
        assert gain.difference_interval[0] > 0
    assert {"pbm", "dr"} <= set(decision.believed)
    assert next(iter(decision.regret)) == "TopRank"


def test_estimates_are_of_the_held_out_sessions_and_differences_to_production(decision, log):
    _, test = hold_out(log, 0.3, 0)
    assert decision.n_held_out == len(test)
    assert decision.logged == pytest.approx(test.clicks.sum() / len(test))
    wanted = evaluate(test, FixedPolicy([3, 2, 1]), "pbm", against=FixedPolicy([0, 1, 2]))
    assert decision.proposal.estimates["pbm"] == wanted
    assert decision.production.estimates["pbm"].difference == pytest.approx(
        decision.production.estimates["pbm"].value - decision.logged
    )


def test_logged_lists_are_estimated_from_the_sessions_that_showed_another(log):
    trial = _try_estimators(log, "clicks", None)
    earned = trial.earned
    assert len(earned) == len(trial.noise) == len(ALL)
    (pbm,) = [check for check in trial.checks if check.estimator == "pbm"]
    own = (log.items == [0, 1, 2]).all(axis=1)
    assert earned[0] == pytest.approx(log.clicks[own].sum() / own.sum())
    assert pbm.estimated[0] == pytest.approx(evaluate(log[~own], FixedPolicy([0, 1, 2]), "pbm", bootstrap=1).value)
    assert pbm.error == pytest.approx(np.abs(np.array(pbm.estimated) - earned).mean())
    assert pbm.error < 0.1


def test_a_log_of_one_list_recommends_nothing():
    """Click models would gladly say what another order earns; nothing in the log tells."""
    found = decide(log_of([[0, 1, 2]], 2000, labels=("a", "b", "c")), **QUICK)
    assert set(found.proposal.estimates) >= {"pbm", "ubm"}
    assert {"ips", "cascade", "item-position", "dr"} <= set(found.proposal.refused) or found.verdict == "not better"
    assert (found.verdict, found.recommended, found.headline) == ("unknown", None, "Nothing can be recommended")
    assert any("cannot estimate the list of TopRank" in sentence for sentence in found.summary)
    assert any("are not trusted" in sentence for sentence in found.summary)
    assert "The log never shows this whole list" in found.against["Overlap"]
    assert found.against["Overlap"].endswith("all estimates of it assume a click model.")


@pytest.mark.usefixtures("undrawn")
def test_a_small_log_recommends_nothing():
    found = decide(log_of(ALL, 200), **QUICK)
    assert (found.verdict, found.recommended) == ("unknown", None)
    assert any("at least 100 are needed" in sentence for sentence in found.summary)
    assert "Only 60 sessions of the query were held out" in found.against["A short log"]
    tiny = decide(log_of(ALL, 60), **QUICK)
    assert all(not fit.patterns for fit in tiny.evidence.fits)
    assert ">not tested</td>" in to_html(tiny)


def test_what_is_best_already_is_kept():
    found = decide(log_of([[3, 2, 1], *[ranking for ranking in ALL if ranking != [3, 2, 1]]], 4000), **QUICK)
    assert found.verdict == "not better"
    assert found.recommended == found.production.labels == ("d", "c", "b")
    assert found.headline == "Keep the list in production"
    assert found.proposal.labels == found.production.labels
    assert any(sentence.endswith("learned the list in production.") for sentence in found.summary)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(("reward", "cutoff"), [("any_click", 2), ("satisfaction", None)])
def test_other_rewards_and_fewer_positions(log, reward, cutoff):
    found = decide(log, reward=reward, cutoff=cutoff, **QUICK)
    assert len(found.proposal.labels) == (cutoff or 3)
    if reward == "satisfaction":  # of which no log tells, so that nobody is to be believed
        assert (found.verdict, found.logged, found.checks) == ("unknown", None, ())
        assert [score.model for score in found.scores if score.model not in ("DCM", "SDBN", "DBN")] == []
    else:
        assert found.verdict in ("better", "likely better")
        assert found.recommended[0] == "d"
    assert found.headline in to_html(found)


def test_the_seed_decides(log):
    first, again, other = (decide(log[:1200], seed=seed, **QUICK) for seed in (1, 1, 2))
    assert len(first.believed) > 1
    assert json.dumps(to_dict(first)) == json.dumps(to_dict(again)) != json.dumps(to_dict(other))


# -------------------------------------------------------------------------------------------------------------- verdict


def tried(**errors):
    return [Check(name, (1.0,) * 3, error, 0.9, 3) for name, error in errors.items()]


BELIEVED = {
    "who is far off is not believed": ({"pbm": 0.05, "dbn": 0.08}, {"pbm", "dr"}),
    "who was not tried is not believed, but dr, which assumes nothing": ({"ubm": 0.05}, {"ubm", "dr"}),
    "untried, no click model is": ({}, {"ips", "cascade", "item-position", "dr", "cascade-dr", "item-position-dr"}),
}


@pytest.mark.parametrize(("errors", "believed"), BELIEVED.values(), ids=BELIEVED)
def test_believed_are_estimators_that_came_near(decision, errors, believed):
    assert set(believed_of(decision.proposal, tried(**errors))) == believed


def test_few_sessions_are_not_believed(decision):
    few = replace(decision.proposal.estimates["pbm"], effective_sample_size=99.0)
    assert believed_of(replace(decision.proposal, estimates={"pbm": few}), tried(pbm=0.01)) == ()


def test_every_verdict_has_its_words(decision):
    logged = Ground("measured", ("d", "c", "b"), 0.1, 0.03, 1.0, 1e-6)
    modelled = Ground("models", ("d", "b", "c"), 0.2, 0.03, 1.0, 1e-6)
    verdicts = set()
    for grounds in (
        [logged, modelled],
        [modelled],
        [replace(logged, p_value=0.01)],
        [replace(modelled, standard_error=1.0, p_value=0.4)],
        [],
    ):
        judged = (Judged("PBM", 0.2, 0.2, 0.03, 0.01, 1e-6),)
        evidence = replace(decision.evidence, grounds=tuple(grounds), judged=judged, enough=bool(grounds))
        found = replace(decision, evidence=evidence, trial=Trial(checks=tuple(tried(pbm=9.0))))
        verdicts.add(found.verdict)
        headline, summary = advice(found)
        assert headline
        assert all(sentence.endswith(".") for sentence in summary)
    assert verdicts == {"better", "likely better", "not proven", "not better", "unknown"}


# ---------------------------------------------------------------------------------------------------------- objections


def test_a_change_over_time_is_told(decision, log):
    assert "Changes over time" not in decision.against
    better = log_of(ALL, 6000, seed=1, users=PositionBasedModel([0.4, 0.6, 0.8, 0.9], [0.9, 0.6, 0.3]))
    items, clicks = (np.vstack([getattr(part, name) for part in (log, better)]) for name in ("items", "clicks"))
    both = ClickLog(items, clicks, np.zeros(12_000), log.item_labels, ("shoes",))
    told = objections(decision, both)["Changes over time"]
    assert re.search(r"the clicks per session went from 0\.\d+ to 1\.\d+, by more than 3 standard errors", told)


def test_another_share_of_the_most_frequent_list_is_told(decision, log):
    """Of three lists one is as rare throughout, and all earn the same."""
    lists = np.array(ALL[:3])[np.r_[np.repeat([0, 1, 2], [600, 300, 100]), np.repeat([0, 1, 2], [400, 500, 100])]]
    changed = ClickLog(lists, np.tile([[1, 0, 0], [0, 0, 0]], (1000, 1)), np.zeros(2000), log.item_labels, ("shoes",))
    told = objections(decision, changed)["Changes over time"]
    assert told.startswith(
        "From the first half of the log to the second the share of the most frequent list went from 60.0% to 40.0%,"
    )


def test_one_query_of_several_is_told(log):
    log, other = log[:1200], log_of(ALL, 100, seed=2, query="hats")
    both = ClickLog(
        np.vstack([log.items, other.items]), np.vstack([log.clicks, other.clicks]), np.r_[np.zeros(1200), np.ones(100)],
        log.item_labels, ("shoes", "hats"),
    )  # fmt: skip
    found = decide(both, **QUICK)
    assert (found.query, found.n_of_query, found.n_queries) == ("shoes", 1200, 2)
    assert "only about query shoes, 92.3% of the log's sessions" in found.against["One query"]


def test_recorded_propensities_are_used(log):
    known = ClickLog(
        log.items, log.clicks, log.queries, log.item_labels, log.query_labels,
        list_propensities=np.where((log.items == [0, 1, 2]).all(axis=1), 0.5, 0.0625),
    )  # fmt: skip
    found = decide(known, **QUICK)
    assert "How lists were chosen" not in found.against
    _, test = hold_out(known, 0.3, 0)
    assert found.proposal.estimates["ips"].value == evaluate(test, FixedPolicy([3, 2, 1]), "ips").value


# ----------------------------------------------------------------------------------------------------- command and page


@pytest.fixture(scope="module")
def file(log, tmp_path_factory):
    file = tmp_path_factory.mktemp("logged") / "log.csv"
    write_tidy(log, file)
    return file


@pytest.fixture(scope="module")
def written(file, only_pdf_here):
    """The folder that the command wrote, and what it printed; the page has its pictures."""
    out, printed = file.parent / "written", io.StringIO()
    words = ["--agents", "TopRank", "EpsilonGreedy:epsilon=0.2", "--horizon", "2e3", "--runs", "1", "--out", str(out)]
    with contextlib.redirect_stdout(printed):
        assert main(["decide", str(file), "--query", "shoes", "--pdf", *words]) == 0
    return out, printed.getvalue()


def test_the_command_writes_a_page_and_what_it_rests_on(written):
    out, printed = written
    assert "Show the proposed list (query shoes)" in printed
    assert "List: d, c, b" in printed
    assert "The log does not record the probability with which" in printed
    for name in ("decision.html", "decision.png", "decision.svg", "decision.json", "instance.json", "agents/results.parquet"):
        assert (out / name).exists()
    assert b"/Type3" not in (out / "decision.pdf").read_bytes()
    assert load_instance(out / "instance.json").estimation["items"] == ["a", "b", "c", "d"]
    found = json.loads((out / "decision.json").read_text(encoding="utf-8"))
    assert found["recommended"] == ["d", "c", "b"]
    agents = "EpsilonGreedy:epsilon=0.2 TopRank"
    assert found["command"] == f"clickgym decide log.csv --query shoes --agents {agents} --horizon 2000 --runs 1 --out DIR"
    page = (out / "decision.html").read_text(encoding="utf-8")
    assert "<h1>Show the proposed list</h1>" in page
    assert not re.search(r"(src|href)=\"(?!data:)", page)
    assert "<script" not in page
    assert page.count("<img") == 12  # six panels, for light and dark
    for name in found["candidates"][1]["estimates"]:
        assert f">{name}</th>" in page


def test_labels_are_no_markup(log):
    odd = ClickLog(log.items[:2000], log.clicks[:2000], log.queries[:2000], ("<b>", "$x$", "&", "{{d}}"), ("<i>",))
    page = to_html(decide(odd, **QUICK))
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert "<i>" not in page


def test_an_agent_with_arguments(written):
    assert "epsilon=0.2" in (written[0] / "decision.html").read_text(encoding="utf-8")


WRONG = {
    "no log": (["none.csv"], "none.csv"),
    "query": (["LOG", "--query", "hats"], "the log has no query 'hats'"),
    "agent": (["LOG", "--agents", "TopRang"], "did you mean 'TopRank'"),
    "learner": (
        ["LOG", "--agents", "PPO"],
        "agents has PPO, which has its own loop; expected agents that rank one list at a time",
    ),
    "agent twice": (["LOG", "--agents", "TopRank", "TopRank"], "expected each once"),
    "horizon": (["LOG", "--horizon", "many"], "horizon is 'many'"),
    "runs": (["LOG", "--runs", "0"], "runs is 0"),
    "reward": (["LOG", "--reward", "click"], "did you mean 'clicks'"),
    "cutoff": (["LOG", "--cutoff", "4"], "cutoff is 4, but the log has 3 positions"),
    "format": (["LOG", "--format", "tidi"], "tidy"),
    "seed": (["LOG", "--seed", "-1"], "seed is -1"),
    "level": (["LOG", "--level", "0.5"], "level is 0.5; expected a number in (0, 0.5)"),
    "no level": (["LOG", "--level", "0"], "level is 0.0; expected a number in (0, 0.5)"),
    "level for all": (["LOG", "--all", "--level", "1"], "level is 1.0; expected a number in (0, 0.5)"),
    "single displays": (["LOG", "--format", "obd"], "LOG"),
    "query and all": (
        ["LOG", "--query", "shoes", "--all"],
        "--query shoes cannot be given with --all or --top; expected one of the three",
    ),
    "all and top": (["LOG", "--all", "--top", "3"], "--all cannot be given with --top; expected one of them"),
    "top": (["LOG", "--top", "0"], "top is 0"),
    "jobs": (["LOG", "--all", "--jobs", "0"], "n_jobs is 0"),
    "pdf": (["LOG", "--all", "--pdf"], "--pdf cannot be given with --all or --top: it is for the figure of one query"),
}


@pytest.mark.parametrize(("words", "message"), WRONG.values(), ids=WRONG)
def test_wrong_words_are_refused_in_one_line_before_any_work(file, refused, words, message):
    out = file.parent / "out"
    said = refused(["decide", *(str(file) if word == "LOG" else word for word in words), "--out", str(out)])
    assert said.count("\n") == 1
    assert message.replace("LOG", "log.csv") in said
    assert not out.exists()


def test_a_query_of_a_few_sessions_is_refused():
    with pytest.raises(ValueError, match=r"query 'shoes' has \d items|of which none was held out|cannot be split"):
        decide(log_of(ALL, 1), **QUICK)


@pytest.mark.slow
def test_the_real_sample(data_folder, tmp_path):
    """What the documentation tells: no model fits, and lists changed with time, so that none can be compared."""
    name = data_folder / "yandex_sample" / "yandex_sample_relpred_format.tsv.gz"
    found = decide(name, horizon=2000, runs=1, agents=["Random"])
    assert (found.query, found.n_of_query, found.n_held_out) == ("9982-0", 23_885, 7175)
    assert found.scores[0].model == "UBM by query"
    assert found.evidence.fitting == []
    assert found.evidence.fits[0].patterns[1].worst.name == "46601 below 84493"
    assert (found.evidence.measured, len(found.evidence.refused)) == ((), 24)
    most = max(found.evidence.refused, key=lambda each: each.sessions)
    assert (most.sessions, most.blocks, round(most.share, 2)) == (2068, 3, 0.34)
    assert found.verdict == "unknown"
    assert set(found.believed) == {"pbm", "dbn"}
    assert len(found.earned) == 10
    assert {check.estimator: round(check.error, 3) for check in found.checks}["pbm"] == 0.045
    assert clickgym.__version__ in to_html(found)
    assert gym.make("UBMRank-v0", instance=found.instance).unwrapped.model.n_items == 10
