"""From a log to a decision: the production list, the three verdicts, the A/B test, the page."""

import json
import math
import re
from dataclasses import replace
from datetime import UTC, datetime
from statistics import NormalDist

import numpy as np
import pytest

from clickgym.envs import PositionBasedModel
from clickgym_logs import ClickLog, decide, decide_all, write_decisions, write_tidy
from clickgym_logs.decision_table import view_of_queries
from clickgym_logs.priorities import sessions_of_test, shrunken
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
RARE = [A] * 5 + [B]


def test_better_list(decision):
    assert decision.verdict == "better"
    assert decision.recommended == ("d", "c", "b")
    assert decision.production == ("a", "b", "c")
    assert decision.first_shown is None
    assert 0.4 < decision.share_today < 0.6
    truth = USERS.expected_reward([3, 2, 1]) - USERS.expected_reward([0, 1, 2])
    low, high = decision.best.interval
    assert low < truth < high
    assert "Show d, c, b" in decision.sentence
    assert f"{decision.best.difference:+.4f} clicks" in decision.sentence
    assert decision.best.p_value < 1e-9
    assert "p < 0.001" in decision.sentence
    assert (decision.to_test, decision.test_sessions) == (None, None)
    assert (decision.next_step, decision.gain_a_day) == ("show B", None)


def test_no_list_is_proved_better():
    decided = decide(log_of([C, *ALL[2:]], 6000))
    assert decided.verdict == "no list is proved better"
    assert decided.recommended == ("d", "c", "b")
    assert f"{decided.detectable:.4f} clicks" in decided.sentence
    assert 0 < decided.detectable < 1


def test_production_is_todays_list():
    """⚠ Not the most frequent list of the whole log, and the sentence says when it came."""
    log = epochs((A, C), (A, C), (B, C))
    decided = decide(log)
    assert decided.production == ("b", "a", "c")
    assert (decided.verdict, decided.recommended) == ("better", ("d", "c", "b"))
    came = np.flatnonzero((log.items == B).all(axis=1))[0]
    assert came >= 4000
    assert f"first shown time {came}" in decided.sentence
    dated = replace(log, times=1.7e9 + 60 * np.arange(6000))
    date = datetime.fromtimestamp(dated.times[came], UTC)
    assert f"first shown {date:%Y-%m-%d %H:%M}" in decide(dated).sentence
    assert decide(log, production=["a", "b", "c"]).production == ("a", "b", "c")


def test_three_replicas(tmp_path):
    """Each has a third of the latest sessions, and of those after the index was built anew; the
    date is that of the first session with the list, not one between blocks.
    """
    early, late = ALL[3:6], ALL[:3]
    items = [*np.resize(early, (1110, 3)), *np.resize(late, (890, 3))]
    log = replace(one_query(items, np.zeros((2000, 3))), times=1.7e9 + 600 * np.arange(2000))
    decided = decide(log)
    came = log.items.tolist().index([log.item_labels.index(it) for it in decided.production])
    date = datetime.fromtimestamp(log.times[came], UTC)
    assert decided.first_shown == f"{date:%Y-%m-%d %H:%M}"
    assert decided.n_production == (log.items == log.items[came]).all(axis=1).sum()
    assert decided.share_today == pytest.approx(1 / 3, abs=0.005)
    assert "only 34%" in write_decisions([decided], tmp_path)[0].read_text()
    assert "shoes 34%" in write_decisions([decided, decided], tmp_path)[0].read_text()


def test_lists_of_other_times_are_told_beside_each_other(tmp_path):
    """What each earned whenever it was shown, although the log compares nothing."""
    log = epochs((C, C), (A, A))
    decided = decide(log)
    (other,) = decided.measured
    for entry, shown in ((decided, A), (other, C)):
        mean = log.clicks[(log.items == shown).all(axis=1)].sum(axis=1).mean()
        assert entry.earned == pytest.approx(mean)
        assert f"{mean:.4f}" in write_decisions([decided], tmp_path)[0].read_text()
    assert math.isnan(other.difference)


def test_production_of_a_short_log_is_that_of_200_sessions():
    log = epochs((A, C), (B, C), n=190)
    assert decide(log).production == ("b", "a", "c")
    assert decide(epochs((A, C), (B, C), n=95)).production in (("a", "b", "c"), ("b", "a", "c"))


@pytest.mark.parametrize(("first", "last"), [(A, B), (B, A), (A, C), (C, A)])
def test_of_two_lists_as_frequent_the_last_shown_is_todays(first, last):
    log = one_query(np.resize([first, last], (600, 3)), np.zeros((600, 3)))
    expected = tuple(log.item_labels[item] for item in last)
    assert decide(log).production == expected


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
    """It was better, and what it earns today is not measured: it is tested again."""
    decided = decide(epochs((B, C), (B, C), (B, A)))
    first = decided.measured[0]
    assert first.labels == ("d", "c", "b")
    assert decided.verdict == "was better when it was last shown"
    assert decided.recommended == tuple("bac")
    assert (first.is_better(decided.level), first.was_better(decided.level)) == (False, True)
    assert decided.to_test == first
    assert decided.next_step == f"test B again for {decided.test_sessions:,} sessions"
    assert first.last_shown.startswith("time 39")
    assert f"{first.difference:+.4f} clicks" in decided.sentence
    assert first.last_shown in decided.sentence


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (log_of([A], 1000), "too few sessions"),
        (log_of(ALL, 300), "too few sessions"),
        (epochs((A, A), (B, B)), "not shown side by side"),
        (epochs(*[(A, A)] * 9, (C, A), n=300), "not shown side by side"),
    ],
    ids=["few", "none", "never", "changed"],
)
def test_log_that_cannot_tell(log, reason):
    decided = decide(log)
    assert (decided.verdict, decided.recommended) == ("cannot tell", None)
    assert decided.reason == reason
    assert math.isinf(decided.detectable)
    assert (decided.to_test, decided.next_step) == (None, "nothing to test")


def test_randomised_log_names_what_to_run():
    rng = np.random.default_rng(0)
    items = rng.permuted(np.tile(np.arange(8), (3000, 1)), axis=1)[:, :4]
    log = ClickLog(items, rng.random(items.shape) < 0.2, np.zeros(3000), tuple("abcdefgh"), ("q",))
    declared = replace(log_of(ALL, 2000), list_propensities=np.full(2000, 1 / 24))
    assert decide(log).reason == "too few sessions"
    assert decide(declared).compared
    for randomised in (log, declared):
        assert "--estimator item-position" in " ".join(decide(randomised).cautions)
    # Where lists follow time, the difference of such an estimate is withheld.
    by_first_item = np.argsort(log.items[:, 0], kind="stable")
    for other in (log_of(ALL, 2000), log[:1], log[by_first_item]):
        assert "--estimator item-position" not in " ".join(decide(other).cautions)


def test_length_of_an_ab_test():
    """Half of its n sessions show each list, so that the standard error of the difference is
    2 sqrt(variance / n). The gain passes at the level 0.025 with a probability of 0.8, or in a test
    as long as the log with at least a half.
    """
    z = NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(0.8)
    log = log_of(RARE, 3000)
    decided = decide(log)
    assert decided.verdict == "no list is proved better"
    variance, shown = decided.to_test.variance, decided.to_test.sessions
    weight = shown * decided.n_production / (shown + decided.n_production)
    assert variance == pytest.approx(decided.to_test.standard_error**2 * weight, rel=0.05)
    assert decided.test_sessions == pytest.approx((2 * z / decided.gain) ** 2 * variance, abs=2)
    assert decided.power == pytest.approx(0.8, abs=1e-3)
    assert decided.next_step == f"test B for {decided.test_sessions:,} sessions"
    assert decide_all(log) == [decided]
    limit = decide(log_of(RARE, 2000))
    assert limit.test_sessions == 2000
    ratio = limit.gain / (2 * math.sqrt(limit.to_test.variance / 2000))
    assert limit.power == pytest.approx(NormalDist().cdf(ratio - NormalDist().inv_cdf(0.975)))
    assert 0.5 <= limit.power < 0.8


def test_days():
    """The same sessions within ten days."""
    dated = replace(log_of(RARE, 3000), times=1.7e9 + np.linspace(0, 10 * 86_400, 3000))
    decided = decide(dated)
    assert (decided.days, decided.sessions_a_day) == (10, 300)
    assert decided.test_days == math.ceil(decided.test_sessions / 300)
    assert decided.next_step == f"test B for {decided.test_days} days"
    assert decided.gain_a_day == pytest.approx(300 * decided.gain)


@pytest.mark.parametrize(
    ("other", "seed", "step"), [([0, 3, 2], 3, "show"), ([0, 2, 1], 35, "test")]
)
def test_sessions_that_are_too_short_to_show_a_difference(other, seed, step):
    """Another session follows each one, and shows the first item only: it gains nothing, so that a
    test of all sessions has half the gain to prove.
    """
    log = log_of([A] * 5 + [other], 3000, seed=seed)
    log = replace(log, times=1.7e9 + np.linspace(0, 10 * 86_400, 3000))
    twice = log[np.repeat(np.arange(3000), 2)]
    is_short = np.arange(6000) % 2 == 1
    cut = is_short[:, None] & (np.arange(3) > 0)
    times = twice.times + is_short
    items, clicks = np.where(cut, -1, twice.items), np.where(cut, 0, twice.clicks)
    both, alone = decide(replace(twice, items=items, clicks=clicks, times=times)), decide(log)
    assert both.next_step.startswith(step)
    assert (both.chosen.share, alone.chosen.share) == (0.5, 1)
    assert both.chosen.difference == pytest.approx(alone.chosen.difference)
    assert both.sessions_a_day == pytest.approx(2 * alone.sessions_a_day, rel=1e-3)
    assert both.gain_a_day == pytest.approx(alone.gain_a_day, rel=1e-3)
    if step == "test":
        error = math.sqrt(4 * both.chosen.variance / both.test_sessions)
        power = NormalDist().cdf(alone.gain / 2 / error - NormalDist().inv_cdf(0.975))
        assert both.power == pytest.approx(power, abs=1e-3)


def test_a_new_query_counts_its_own_days():
    """Of 60 days it is asked in the last 15, a hundred times a day."""
    old = replace(log_of(ALL, 6000), times=1.7e9 + 86_400 * np.linspace(0, 60, 6000))
    new = replace(log_of(ALL, 1500), times=1.7e9 + 86_400 * np.linspace(45, 60, 1500))
    for decision in decide_all(queries(old, new, labels=("old", "new"))):
        assert decision.sessions_a_day == pytest.approx(100)


def test_gains_a_day_decide_the_order():
    """The new query has fewer sessions in all, and more a day."""
    old = replace(log_of([A, C], 3000, seed=1), times=1.7e9 + 86_400 * np.linspace(0, 60, 3000))
    new = replace(log_of([A, C], 1500, seed=11), times=1.7e9 + 86_400 * np.linspace(45, 60, 1500))
    decisions = decide_all(queries(old, new, labels=("old", "new")))
    assert [decision.query for decision in decisions] == ["new", "old"]
    assert [decision.next_step for decision in decisions] == ["show B", "show B"]


def test_shortest_test_leaves_each_arm_enough_sessions():
    """However large the gain: an arm with fewer than 100 sessions is not compared."""
    sessions = sessions_of_test(10.0, 0.1, most=10_000)
    arms = np.random.default_rng(0).binomial(sessions, 0.5, 1000)
    assert np.mean((arms >= 100) & (sessions - arms >= 100)) > 0.99
    assert sessions_of_test(10.0, 0.1, most=sessions - 1) is None


def test_variance_of_a_test_by_user():
    """Sessions draw their lists, so that keen users do not make the gain uncertain. In a test each
    user keeps a list, and they do: it is simulated by drawing users.
    """
    log = log_of(RARE, 6000)
    users = np.arange(6000) % 500
    keen = np.random.default_rng(1).random(500) < 0.5
    log = replace(log, clicks=log.clicks * keen[users][:, None], users=users)
    earned = log.clicks.sum(axis=1)
    rng, differences = np.random.default_rng(2), []
    for _ in range(1000):
        has_b = (rng.random(500) < 0.5)[users]
        differences.append(earned[has_b].mean() - earned[~has_b].mean())
    measured = decide(log).measured[0]
    assert measured.variance == pytest.approx(np.var(differences) * 6000 / 4, rel=0.1)
    assert measured.variance > 2 * earned.var()


def test_reward_and_cutoff(log):
    decided = decide(log, reward="any_click", cutoff=2)
    assert decided.verdict == "better"
    assert decided.recommended == decided.best.labels[:2]


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


def test_repeated_sessions_are_named(log, tmp_path):
    copies = log[np.r_[np.arange(6000), np.arange(2000)]]
    decided = decide(copies)
    assert (decided.n_sessions, decided.n_repeated) == (6000, 2000)
    few = decide(log[np.r_[np.arange(6000), np.arange(200)]])
    assert few.n_repeated == 200
    assert len(few.cautions) == len(decided.cautions) - 1
    several = queries(copies, copies, labels=("shoes", "hats"))
    assert view_of_queries(decide_all(several)).notes[-1] == decided.cautions[-1]
    for name, decisions, said in (
        ("one", [decided], "2,000 of 8,000 sessions"),
        ("two", decide_all(several), "4,000 of 16,000 sessions"),
    ):
        assert said in write_decisions(decisions, tmp_path / name)[0].read_text()


@pytest.fixture(scope="module")
def decisions():
    """A better list; two queries with a gain that is not proved; one list alone; a loss."""
    logs = [
        log_of([A, A, C], 3000),
        log_of(RARE, 3000),
        log_of([A, A, B], 700, seed=2),
        log_of([A], 2000),
        log_of([C, C, [3, 2, 0]], 4000, seed=2),
    ]
    log = queries(*logs, labels=("hats", "boots", "skis", "bags", ""))
    return decide_all(replace(log, times=1.7e9 + 1200 * log.times))


def test_order_of_queries(decisions):
    """A better list comes first, then the most expected clicks a day for each day of testing."""
    better, first, second, *rest = decisions
    assert [decision.query for decision in decisions] == ["hats", "boots", "skis", "", "bags"]
    assert better.next_step == "show B"
    assert (better.to_test, better.test_days) == (None, None)
    assert better.gain_a_day == pytest.approx(better.gain * better.sessions_a_day)
    assert first.to_test.labels == second.to_test.labels == ("b", "a", "c")
    assert first.gain_a_day / first.test_days > second.gain_a_day / second.test_days
    for decided in (first, second):
        assert decided.test_sessions <= decided.n_sessions
    for decided in rest:
        assert (decided.to_test, decided.next_step) == (None, "nothing to test")
    loss, alone = rest
    assert loss.measured[0].difference < 0
    assert (loss.verdict, alone.verdict) == ("no list is proved better", "cannot tell")
    assert alone.reason == Reason.TOO_FEW


def page_of(decisions, folder):
    """The sentence on top of a page, and the texts in the cells of its table."""
    text = write_decisions(decisions, folder)[0].read_text()
    (sentence,) = re.findall('<p class="verdict">(.*?)</p>', text)
    rows = re.findall("<tr>(<td.*?)</tr>", text, re.DOTALL)
    cells = [re.findall("<td[^>]*>(.*?)</td>", row, re.DOTALL) for row in rows]
    return sentence, [[re.sub("<.*?>", "", cell) for cell in row] for row in cells]


def test_page_of_queries(decisions, tmp_path):
    """The step, the gain and the lists of each query; the first test stands on top."""
    _, first, *_, loss, alone = decisions
    sentence, rows = page_of(decisions, tmp_path / "all")
    assert "1 of 5 queries" in sentence
    assert f"boots, {first.next_step}" in sentence
    assert [row[0] for row in rows] == ["hats", "boots", "skis", "&quot;&quot;", "bags"]
    assert [row[-2:] for row in rows[:2]] == [["a, b, c", "d, c, b"], ["a, b, c", "b, a, c"]]
    low, high = first.to_test.interval
    assert f"{first.to_test.difference:+.3f} ({low:+.3f} to {high:+.3f}, " in rows[1][3]
    assert rows[1][2].startswith(f"{first.gain_a_day:+.1f} (")
    assert rows[1][5:7] == [f"{first.test_days}", f"{first.power:.0%}"]
    assert rows[0][5] == rows[3][5] == rows[4][5] == ""
    assert rows[3][-2:] == ["d, c, b", "d, c, a"]
    sentence, _ = page_of([loss, alone], tmp_path / "none")
    assert "0 of 2 queries" in sentence
    (facts, *_) = json.loads((tmp_path / "all" / "decisions.json").read_text())
    assert (facts["next_step"], facts["query"]) == ("show B", "hats")


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


def test_page_of_a_query(decisions, tmp_path):
    """Lists have names and the marks of their lines; a note names the test, and the axis dates."""
    _, first, *_ = decisions
    _, rows = page_of([first], tmp_path / "boots")
    assert [(row[0], row[-1]) for row in rows] == [("●A", "a, b, c"), ("■B", "b, a, c")]
    assert rows[1][1] == f"{first.measured[0].sessions:,}"
    text = (tmp_path / "boots" / "decisions.html").read_text()
    assert f"{first.test_sessions:,} sessions" in text
    assert "2023-11-" in text


def test_command(log, tmp_path, printed, refused):
    write_tidy(log, tmp_path / "log.csv")
    command = ["decide", str(tmp_path / "log.csv"), "--out", str(tmp_path / "out")]
    shown = printed(command)
    assert decide(log).sentence in " ".join(shown.split())
    assert "2 more lists" in shown
    n_production = (log.items == [0, 1, 2]).all(axis=1).sum()
    assert f"{n_production:,}  in production, {decide(log).share_today:.0%} of the " in shown
    assert {file.name for file in (tmp_path / "out").iterdir()} == {
        "decisions.html",
        "decisions.json",
    }
    assert "1 of 1 queries" in printed([*command, "--all"])
    assert "no time" in printed([*command, "--columns", "time="])
    assert "Show d, c, b" in printed([*command, "--columns", "time=session"])
    for words, message in (
        (["--query", "shoe"], "did you mean 'shoes'"),
        (["--cutoff", "4"], "cutoff is 4, but the log has 3 positions"),
        (["--level", "0.5"], "level is 0.5"),
        (["--production", "a,b,x"], "unknown item 'x'"),
        (["--production", "b,a,d"], "never shows the production list b, a, d"),
        (["--query", "shoes", "--all"], "--all decides every query"),
        (["--production", "a,b,c", "--all"], "unless the log has a column arm"),
    ):
        assert message in refused([*command[:2], *words, "--out", str(tmp_path / "none")])
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
def test_real_sample(yandex):
    decided = decide(yandex[0])
    assert decided.verdict in ("better", "no list is proved better", "cannot tell")
    assert len(decided.production) == 10
