"""From a log to a decision: the production list, the three verdicts, the proposal, the page."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from clickgym.envs import PositionBasedModel
from clickgym_logs import ClickLog, decide, decide_all, write_decisions, write_tidy
from clickgym_logs.decision_table import rows_of_lists
from clickgym_logs.proposals import experiment

USERS = PositionBasedModel([0.1, 0.3, 0.45, 0.6], [0.9, 0.6, 0.3])


def log_of(lists, n, seed=0, labels=("a", "b", "c", "d"), query="shoes"):
    """``n`` sessions of users who are shown lists at random; the first is shown as often as all
    others together.
    """
    rng = np.random.default_rng(seed)
    weights = np.r_[len(lists) - 1 or 1, np.ones(len(lists) - 1)]
    items = np.array(lists)[rng.choice(len(lists), n, p=weights / weights.sum())]
    clicks = np.array([USERS.sample(ranking, rng) for ranking in items])
    return ClickLog(items, clicks, np.zeros(n), labels, (query,), times=np.arange(n))


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


def epochs(*parts, n=2000):
    """A log of parts one after the other: in each two lists, the first in nine of ten sessions."""
    logs = []
    for number, (first, second) in enumerate(parts):
        rng = np.random.default_rng(number)
        items = np.where(rng.random(n)[:, None] < 0.9, first, second)
        clicks = np.array([USERS.sample(ranking, rng) for ranking in items])
        logs.append((items, clicks))
    items, clicks = (np.vstack(arrays) for arrays in zip(*logs, strict=True))
    times = np.arange(len(items))
    return ClickLog(items, clicks, np.zeros(len(items)), tuple("abcd"), ("shoes",), times=times)


A, B, C = [0, 1, 2], [1, 0, 2], [3, 2, 1]


def test_better_list(decision):
    assert decision.verdict == "better"
    assert decision.recommended == ("d", "c", "b")
    assert decision.production == ("a", "b", "c")
    assert decision.since is None
    truth = USERS.expected_reward([3, 2, 1]) - USERS.expected_reward([0, 1, 2])
    low, high = decision.best.interval
    assert low < truth < high
    assert decision.sentence.startswith("Show d, c, b: it earned +")


def test_no_list_is_proved_better():
    decided = decide(log_of([C, *ALL[2:]], 6000))
    assert decided.verdict == "no list is proved better"
    assert decided.recommended == ("d", "c", "b")
    assert f"a gain of {decided.detectable:.4f} clicks" in decided.sentence
    assert 0 < decided.detectable < 1


def test_production_is_todays_list():
    """⚠ Not the most frequent list of the whole log, and the sentence says since when."""
    log = epochs((A, C), (A, C), (B, C))
    decided = decide(log)
    assert decided.production == ("b", "a", "c")
    assert (decided.verdict, decided.recommended) == ("better", ("d", "c", "b"))
    assert "in production since time 3900" in decided.sentence
    dated = replace(log, times=1.7e9 + 60 * np.arange(6000))
    assert "since 2023-11-17 15:13" in decide(dated).sentence
    assert decide(log, production=["a", "b", "c"]).production == ("a", "b", "c")


def test_production_of_a_short_log_is_that_of_200_sessions():
    log = epochs((A, C), (B, C), n=190)
    assert decide(log).production == ("b", "a", "c")
    assert decide(epochs((A, C), (B, C), n=95)).production in (("a", "b", "c"), ("b", "a", "c"))


def test_list_that_is_no_longer_shown():
    """It earned more, but is no recommendation: the table says when it was last shown."""
    decided = decide(epochs((B, C), (B, C), (B, A)))
    assert decided.measured[0].labels == ("d", "c", "b")
    assert (decided.verdict, decided.recommended) == ("no list is proved better", tuple("bac"))
    assert "but it was last shown time 39" in decided.sentence
    assert "d, c, b" not in decided.sentence
    assert rows_of_lists(decided)[1].cells[1].startswith("not proved better: it was last")


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (log_of([A], 1000), "too few sessions"),
        (epochs((A, A), (B, B)), "not shown side by side"),
        (epochs(*[(A, A)] * 9, (C, A), n=300), "not shown side by side"),
    ],
    ids=["few", "never", "changed"],
)
def test_log_that_cannot_tell(log, reason):
    decided = decide(log)
    assert (decided.verdict, decided.recommended) == ("cannot tell", None)
    assert decided.reason == reason
    assert decided.sentence.startswith("This log cannot tell whether a list is better")
    assert math.isinf(decided.detectable)


def test_randomised_log_names_what_to_run():
    rng = np.random.default_rng(0)
    items = rng.permuted(np.tile(np.arange(8), (3000, 1)), axis=1)[:, :4]
    log = ClickLog(items, rng.random(items.shape) < 0.2, np.zeros(3000), tuple("abcdefgh"), ("q",))
    declared = replace(log_of(ALL, 2000), list_propensities=np.full(2000, 1 / 24))
    assert decide(log).reason == "too few sessions"
    assert decide(declared).compared
    for randomised in (log, declared):
        assert "--estimator item-position" in " ".join(decide(randomised).cautions)
    for other in (log_of(ALL, 2000), log[:1]):
        assert "--estimator item-position" not in " ".join(decide(other).cautions)


def test_proposal(decision):
    """The click model's best list, with the A/B test that would settle it."""
    proposal = decision.proposal
    assert proposal.model in ("PBM", "UBM")
    assert proposal.labels == ("d", "c", "b")
    truth = USERS.expected_reward([3, 2, 1]) - USERS.expected_reward([0, 1, 2])
    assert proposal.gain == pytest.approx(truth, abs=0.1)
    variance = log_of(ALL, 6000).clicks.sum(axis=1).var()
    assert proposal.sessions == experiment(proposal.gain, variance, 0.005)
    assert decide(log_of(ALL, 60)).proposal is None


def test_reward_and_cutoff(log):
    decided = decide(log, reward="any_click", cutoff=2)
    assert decided.verdict == "better"
    assert decided.recommended == decided.best.labels[:2]


def test_level_of_several_queries(log):
    """That of Benjamini and Hochberg."""
    kept = log_of([C, *ALL[2:]], 3000, seed=1)
    both = ClickLog(
        np.vstack([log.items, kept.items]),
        np.vstack([log.clicks, kept.clicks]),
        np.repeat([0, 1], [6000, 3000]),
        log.item_labels,
        ("shoes", "hats"),
        times=np.r_[log.times, kept.times],
    )
    first, second = decide_all(both)
    assert (first.query, second.query) == ("shoes", "hats")
    assert (first.verdict, second.verdict) == ("better", "no list is proved better")
    assert first.level == second.level == 0.005 / 2


def test_page(log, tmp_path):
    """A sentence, a table and a picture; labels are neither markup nor broken."""
    odd = replace(log, item_labels=("a", "<b> c", "c", "d"))
    page, data = write_decisions([decide(odd)], tmp_path / "out")
    text = page.read_text()
    assert 'Show d, c, <span class="label">&lt;b&gt; c:</span>' in text
    assert "<svg" in text
    assert "<b> c" not in text
    (facts,) = json.loads(data.read_text())
    assert facts["recommended"] == ["d", "c", "<b> c"]
    assert facts["verdict"] == "better"


def test_command(log, tmp_path, printed, refused):
    write_tidy(log, tmp_path / "log.csv")
    command = ["decide", str(tmp_path / "log.csv"), "--out", str(tmp_path / "out")]
    shown = printed(command)
    assert "Show d, c, b: it earned +" in shown
    assert "2 more lists are in decisions.json" in shown
    n_production = (log.items == [0, 1, 2]).all(axis=1).sum()
    assert f"{n_production:,}  in production " in shown
    files = {file.name for file in (tmp_path / "out").iterdir()}
    assert files == {"decisions.html", "decisions.json"}
    assert "better" in printed([*command, "--all"])
    assert "it has no time" in printed([*command, "--columns", "time="])
    assert "Show d, c, b: it earned +" in printed([*command, "--columns", "time=session"])
    for words, message in (
        (["--query", "shoe"], "did you mean 'shoes'"),
        (["--cutoff", "4"], "cutoff is 4, but the log has 3 positions"),
        (["--level", "0.5"], "level is 0.5"),
        (["--production", "a,b,x"], "unknown item 'x'"),
        (["--production", "b,a,d"], "never shows the production list b, a, d"),
        (["--query", "shoes", "--all"], "--all decides every query"),
    ):
        assert message in refused([*command[:2], *words, "--out", str(tmp_path / "none")])
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
def test_real_sample(yandex):
    decided = decide(yandex[0])
    assert decided.verdict in ("better", "no list is proved better", "cannot tell")
    assert len(decided.production) == 10
