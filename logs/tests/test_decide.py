"""From a log to a decision: the production list, the three verdicts, the proposal, the page."""

import html
import json
import math
import shlex
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from clickgym import Results
from clickgym.command_line import main
from clickgym.envs import PositionBasedModel
from clickgym_logs import ClickLog, decide, decide_all, write_decisions, write_tidy
from clickgym_logs.decision_table import (
    notes_of_queries,
    rows_of_lists,
    rows_of_queries,
    summary,
)
from clickgym_logs.priorities import shrunken
from clickgym_logs.proposals import experiment
from clickgym_logs.reasons import Reason

USERS = PositionBasedModel([0.1, 0.3, 0.45, 0.6], [0.9, 0.6, 0.3])


def one_query(items, clicks):
    """A log of one query, its sessions in the order of time."""
    n = len(items)
    return ClickLog(items, clicks, np.zeros(n), tuple("abcd"), ("shoes",), times=np.arange(n))


def log_of(lists, n, seed=0, users=USERS):
    """``n`` sessions of users who are shown lists at random; the first is shown as often as all
    others together.
    """
    rng = np.random.default_rng(seed)
    weights = np.r_[len(lists) - 1 or 1, np.ones(len(lists) - 1)]
    items = np.array(lists)[rng.choice(len(lists), n, p=weights / weights.sum())]
    return one_query(items, [users.sample(ranking, rng) for ranking in items])


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
    items, clicks = [], []
    for number, (first, second) in enumerate(parts):
        rng = np.random.default_rng(number)
        items += [*np.where(rng.random(n)[:, None] < 0.9, first, second)]
        clicks += [USERS.sample(ranking, rng) for ranking in items[-n:]]
    return one_query(items, clicks)


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


def test_production_list_is_that_of_the_last_twentieth():
    """Of the last 400 sessions of 8,000 most show another list than those before."""
    late = np.arange(8000) >= 7600
    items = np.where((late & (np.arange(8000) % 5 < 3))[:, None], B, A)
    (decided,) = decide_all(one_query(items, np.zeros(items.shape)))
    assert decided.production == ("b", "a", "c")


def test_rewards_by_block_of_five_sessions_or_more():
    """Of the production list in twenty blocks of thirty sessions."""
    shown = np.array([5, 4, 0] + [20] * 17)
    is_production = (np.arange(30) < shown[:, None]).ravel()
    items = np.where(is_production[:, None], A, C)
    (decided,) = decide_all(one_query(items, items == 0))
    assert decided.production == ("a", "b", "c")
    np.testing.assert_array_equal(decided.by_block[0], [1.0, np.nan, np.nan] + [1.0] * 17)


def test_list_that_is_no_longer_shown():
    """It earned more, but is no recommendation: the table says when it was last shown."""
    decided = decide(epochs((B, C), (B, C), (B, A)))
    assert decided.measured[0].labels == ("d", "c", "b")
    assert (decided.verdict, decided.recommended) == ("no list is proved better", tuple("bac"))
    assert "but it is hardly shown any more, last time 39" in decided.sentence
    assert "d, c, b" not in decided.sentence
    cell = rows_of_lists(decided)[1].cells[1]
    assert cell.startswith("not proved better: it is hardly shown any more, last")


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


def test_proposal(decision, log):
    """The click model's best list, with the A/B test that would settle it: half of n sessions show
    each list, so that the standard error of the difference is 2 sqrt(variance / n); the gain passes
    at the level with a probability of 0.94.
    """
    proposal = decision.proposal
    assert proposal.model in ("PBM", "UBM")
    assert proposal.labels == ("d", "c", "b")
    truth = USERS.expected_reward([3, 2, 1]) - USERS.expected_reward([0, 1, 2])
    assert proposal.gain == pytest.approx(truth, abs=0.1)
    z = NormalDist().inv_cdf(1 - 0.005) + NormalDist().inv_cdf(0.94)
    n = (2 * z / proposal.gain) ** 2 * log.clicks.sum(axis=1).var()
    assert proposal.sessions == pytest.approx(max(n, 2 * 20 * 20), abs=2)
    assert decide(log_of(ALL, 60)).proposal is None


def test_reward_and_cutoff(log):
    """Where the third position is examined most, the best list of two puts its best item second."""
    decided = decide(log, reward="any_click", cutoff=2)
    assert decided.verdict == "better"
    assert decided.recommended == decided.best.labels[:2]
    other = log_of(ALL, 3000, users=PositionBasedModel(USERS.attraction, [0.3, 0.6, 0.9]))
    assert decide(other, cutoff=2, production=list("abc")).proposal.labels == ("c", "d")


def queries(*logs, labels):
    """The log of several queries."""
    parts = {name: [getattr(log, name) for log in logs] for name in ("items", "clicks", "times")}
    stacked = {name: np.concatenate(arrays) for name, arrays in parts.items()}
    numbers = np.repeat(np.arange(len(logs)), [len(log) for log in logs])
    return replace(logs[0], queries=numbers, query_labels=labels, **stacked)


def test_level_of_several_queries(log):
    """That of Benjamini and Hochberg: of the last query that passes in the order of p-values."""
    for other, verdict, level in (
        (log_of([C, *ALL[2:]], 3000, seed=1), "no list is proved better", 0.005 / 2),
        (log_of(ALL, 4000, seed=1), "better", 0.005),
    ):
        first, second = decide_all(queries(log, other, labels=("shoes", "hats")))
        assert (first.query, second.query) == ("shoes", "hats")
        assert (first.verdict, second.verdict) == ("better", verdict)
        assert first.level == second.level == level


def test_repeated_sessions_are_named(log):
    copies = log[np.r_[np.arange(6000), np.arange(2000)]]
    decided = decide(copies, proposal=False)
    assert (decided.n_sessions, decided.n_repeated) == (6000, 2000)
    assert decided.cautions[0].startswith("2,000 of 8,000 sessions are repetitions and count once")
    assert "2,000 of 8,000 sessions are" in notes_of_queries(decide_all(copies, proposals=0))[-1]
    few = decide(log[np.r_[np.arange(6000), np.arange(200)]], proposal=False)
    assert (few.n_repeated, len(few.cautions)) == (200, 1)


@pytest.fixture(scope="module")
def decisions():
    """A better list; a large and a small query with a gain; one list alone; hardly any gain."""
    logs = [
        log_of([A, A, C], 3000),
        log_of([A, A, B], 2000, seed=3),
        log_of([A, A, B], 1000, seed=4),
        log_of([A], 2000),
        log_of([C, C, [3, 2, 0]], 4000, seed=2),
    ]
    return decide_all(queries(*logs, labels=("hats", "boots", "skis", "bags", "coats")))


def test_order_of_queries(decisions):
    assert [decision.query for decision in decisions] == ["hats", "boots", "skis", "bags", "coats"]
    better, first, second, alone, last = decisions
    assert better.best.labels == ("d", "c", "b")
    assert (better.to_test, better.test_sessions, better.periods) == (None, None, math.inf)
    assert first.to_test.labels == second.to_test.labels == ("b", "a", "c")
    assert first.worth == first.gain * 2000 > second.worth > 0
    assert first.test_sessions == experiment(first.gain, first.variance, 0.005)
    assert (alone.reason, alone.worth, alone.to_test) == (Reason.TOO_FEW, 0, None)
    assert alone.proposal.model == "PBM"
    assert alone.proposal.labels == ("c", "b", "a")
    assert last.periods > 10


def test_first_sentence(decisions):
    assert summary(decisions) == (
        "1 of 5 queries have a list that is proved better. Test first: boots (about "
        f"+{decisions[1].worth:,.0f} clicks in a time as long as the log; an A/B test of "
        f"{decisions[1].test_sessions:,} sessions)."
    )
    assert "Of the proposals: bags (an A/B" in summary([decisions[3]])
    assert "No list is worth a test of at most 10 times" in summary([decisions[4]])


def test_cells_of_queries(decisions):
    better, first, _, alone, last = rows_of_queries(decisions)
    assert (better.labels, better.cells[1], better.cells[4:]) == (tuple("dcb"), "better", ("", ""))
    low, high = decisions[1].to_test.interval
    proposal = decisions[1].proposal
    assert first.cells[1] == (
        "no list is proved better; to test; PBM proposes c, b, a: "
        f"{proposal.gain:+.4f} expected, a test of {proposal.sessions:,} sessions"
    )
    assert decisions[1].test_sessions > proposal.sessions
    assert f"({low:+.4f} to {high:+.4f}, +" in first.cells[2]
    assert alone.cells[1] == "cannot tell: too few sessions; PBM proposes a list"
    assert last.cells[4:] == ("> 40,000", "> 10")


def test_proposals_are_few_and_none_where_none_is_asked_for(log):
    alone = queries(*[log_of([A], 900 - n, seed=n) for n in range(3)], labels=("x", "y", "z"))
    for proposals in (0, 1, 3):
        decided = decide_all(alone, proposals=proposals)
        proposed = [bool(entry.proposal or entry.no_proposal) for entry in decided]
        assert sum(proposed) == proposals
    assert decide(log, proposal=False).proposal is None
    worth = [
        -math.inf if it.proposal is None else it.proposal.gain * it.n_sessions for it in decided
    ]
    assert worth == sorted(worth, reverse=True)
    assert [it.n_sessions for it in decided] != [900, 899, 898]  # by which they were found


def test_gains_are_shrunk_by_moments():
    """By hand: weights 100, 25; fixed mean .26; Q = 1.8, τ² = .8/40 = .02."""
    means, deviations = shrunken(np.array([0.32, 0.02]), np.array([0.1, 0.2]))
    mean = (0.32 / 0.03 + 0.02 / 0.06) / (1 / 0.03 + 1 / 0.06)
    assert means == pytest.approx([(0.64 + mean) / 3, (0.02 + 2 * mean) / 3])
    assert deviations == pytest.approx([0.1 * math.sqrt(2 / 3), 0.2 * math.sqrt(1 / 3)])
    alike, none = shrunken(np.array([0.1, 0.1]), np.array([0.1, 0.2]))
    assert (alike.tolist(), none.tolist()) == (pytest.approx([0.1, 0.1]), [0, 0])


def test_page(log, tmp_path):
    """A sentence, a table and a picture; labels are neither markup nor broken."""
    odd = replace(log, item_labels=("a", "<b> c", "c", "d"))
    page, data = write_decisions([decide(odd)], tmp_path / "out")
    text = page.read_text()
    assert 'Show d, c, <span class="label">&quot;&lt;b&gt; c&quot;:</span>' in text
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
    assert files == {"decisions.html", "decisions.json", "users.json"}
    (line,) = [line for line in shown.splitlines() if line.startswith("clickgym run ")]
    page = (tmp_path / "out" / "decisions.html").read_text()
    assert f"<pre>{html.escape(line)}</pre>" in page
    words = [*shlex.split(line)[1:], "--runs", "1"]
    words[words.index("--horizon") + 1] = "100"
    assert main(words) == 0
    rows = Results(tmp_path / "out" / "run").table()
    gain = decide(log).proposal.gain  # lost by the production list in each session
    assert rows["regret"].to_list() == pytest.approx([0, 100 * gain], abs=1e-9)
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
