"""From a log to a decision: what is recommended, when nothing is, what a click model proposes, and
the page that says so.
"""

import json
from dataclasses import replace

import numpy as np
import pytest

from clickgym.envs import PositionBasedModel
from clickgym_logs import ClickLog, decide, decide_all, write_decisions, write_tidy
from clickgym_logs.decide import experiment

USERS = PositionBasedModel([0.1, 0.3, 0.45, 0.6], [0.9, 0.6, 0.3])


def log_of(lists, n, seed=0, labels=("a", "b", "c", "d"), query="shoes"):
    """``n`` sessions of users who are shown lists at random; the first is shown as often as all
    others together.
    """
    rng = np.random.default_rng(seed)
    weights = np.r_[len(lists) - 1 or 1, np.ones(len(lists) - 1)]
    items = np.array(lists)[rng.choice(len(lists), n, p=weights / weights.sum())]
    clicks = np.array([USERS.sample(ranking, rng) for ranking in items])
    return ClickLog(items, clicks, np.zeros(n), labels, (query,))


ALL = [
    [0, 1, 2],
    [3, 2, 1],
    [0, 2, 3],
    [1, 3, 0],
    [2, 0, 1],
    [3, 0, 2],
    [2, 3, 0],
    [1, 2, 3],
    [3, 1, 0],
]


@pytest.fixture(scope="module")
def log():
    return log_of(ALL, 6000)


@pytest.fixture(scope="module")
def decision(log):
    return decide(log)


def test_a_list_that_the_log_knows_to_be_better_is_recommended(decision):
    assert decision.verdict == "better"
    assert decision.recommended == ("d", "c", "b")
    assert decision.production == ("a", "b", "c")
    truth = USERS.expected_reward([3, 2, 1]) - USERS.expected_reward([0, 1, 2])
    low, high = decision.best.interval
    assert low < truth < high
    assert decision.sentence.startswith("Show d, c, b: it earned +")


def test_the_click_model_proposes_its_best_list_with_the_test_that_would_settle_it(decision):
    proposal = decision.proposal
    assert proposal.model in ("PBM", "UBM")
    assert proposal.labels == ("d", "c", "b")
    truth = USERS.expected_reward([3, 2, 1]) - USERS.expected_reward([0, 1, 2])
    assert proposal.gain == pytest.approx(truth, abs=0.1)
    assert proposal.sessions == experiment(
        proposal.gain, log_of(ALL, 6000).clicks.sum(axis=1).var(), 0.005
    )


def test_a_log_of_one_list_cannot_tell():
    decided = decide(log_of([[0, 1, 2]], 1000))
    assert (decided.verdict, decided.recommended) == ("cannot tell", None)
    assert decided.sentence.startswith("The log cannot tell")
    assert np.isnan(decided.detectable)


def test_what_is_best_already_is_kept():
    decided = decide(log_of([[3, 2, 1], *ALL[2:]], 6000))
    assert (decided.verdict, decided.recommended) == ("none proved better", ("d", "c", "b"))
    assert (
        f"a gain of {decided.detectable:.4f} clicks per session would have been seen"
        in decided.sentence
    )
    assert 0 < decided.detectable < 1


def test_another_reward_and_fewer_positions(log):
    decided = decide(log, reward="any_click", cutoff=2)
    assert decided.verdict == "better"
    assert decided.recommended == decided.best.labels[:2]
    shown = (log.items == [3, 2, 1]).all(axis=1)
    (gain,) = [each for each in decided.measured if each.labels == ("d", "c", "b")]
    assert gain.value == pytest.approx(log.clicks[shown, :2].any(axis=1).mean())


def test_of_several_queries_the_level_is_that_of_benjamini_and_hochberg(log):
    better, kept = log, log_of([[3, 2, 1], *ALL[2:]], 3000, seed=1)
    both = ClickLog(
        np.vstack([better.items, kept.items]),
        np.vstack([better.clicks, kept.clicks]),
        np.repeat([0, 1], [6000, 3000]),
        log.item_labels,
        ("shoes", "hats"),
    )
    first, second = decide_all(both)
    assert (first.query, second.query) == ("shoes", "hats")
    assert (first.verdict, second.verdict) == ("better", "none proved better")
    assert first.level == second.level == 0.005 / 2
    assert replace(first, level=0.005) == decide(both, "shoes")
    assert [each.query for each in decide_all(both, 1)] == ["shoes"]


def test_the_page_has_a_sentence_and_a_table_and_no_markup_of_labels(log, tmp_path):
    odd = replace(log, item_labels=("a", "<b>", "c", "d"))
    page, data = write_decisions([decide(odd)], tmp_path / "out")
    text = page.read_text()
    assert "Show d, c, &lt;b&gt;" in text
    assert "<td>d, c, &lt;b&gt;</td>" in text
    assert "an A/B test of" in text
    (facts,) = json.loads(data.read_text())
    assert facts["recommended"] == ["d", "c", "<b>"]
    assert facts["verdict"] == "better"


def test_the_command(log, tmp_path, printed, refused):
    write_tidy(log, tmp_path / "log.csv")
    out = printed(["decide", str(tmp_path / "log.csv"), "--out", str(tmp_path / "out")])
    assert "Show d, c, b: it earned +" in out
    assert "Production: a, b, c" in out
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == [
        "decisions.html",
        "decisions.json",
    ]
    assert "better" in printed(
        ["decide", str(tmp_path / "log.csv"), "--top", "5", "--out", str(tmp_path / "out")]
    )
    for words, message in (
        (["--query", "shoe"], "did you mean 'shoes'"),
        (["--cutoff", "4"], "cutoff is 4, but the log has 3 positions"),
        (["--level", "0.5"], "level is 0.5"),
        (["--reward", "click"], "did you mean 'clicks'"),
        (["--query", "shoes", "--top", "2"], "--query shoes cannot be given with --top"),
        (["--seed", "-1"], "seed is -1"),
    ):
        assert message in refused(
            ["decide", str(tmp_path / "log.csv"), *words, "--out", str(tmp_path / "none")]
        )
    assert not (tmp_path / "none").exists()


def test_a_small_log_proposes_nothing():
    assert decide(log_of(ALL, 60)).proposal is None


@pytest.mark.slow
def test_the_real_sample(yandex):
    decided = decide(yandex[0])
    assert decided.verdict in ("better", "none proved better", "cannot tell")
    assert len(decided.production) == 10
