"""Users who come back, and experiments: errors by user, arms by date, and how often both err.

The users of `returning` have tastes of their own, and some of them come back often.
"""

from collections import Counter
from dataclasses import replace
from math import sqrt

import next_steps
import numpy as np
import pytest

from clickgym_logs import ClickLog, decide, decide_all, write_decisions, write_tidy
from clickgym_logs.reasons import Doubt, Reason

LISTS = np.array([[0, 1, 2], [1, 0, 2]])
DAY = 86_400


def returning(n, n_users, rng, gain=0.0, days=60, by_user=True):
    """The log of an experiment with two lists, drawn by user or by session, at exact times."""
    activity = rng.lognormal(0, 1.2, n_users)
    users = rng.choice(n_users, n, p=activity / activity.sum())
    arms = (rng.random(n_users) < 0.5)[users] if by_user else rng.random(n) < 0.5
    tastes = rng.normal(0, 1, n_users)[users]
    rates = 1 / (1 + np.exp(1.5 - tastes))[:, None] * [1, 0.6, 0.4] + gain * arms[:, None]
    clicks = rng.random((n, 3)) < rates.clip(0, 1)
    times = 1.7e9 + np.sort(rng.uniform(0, days * DAY, n))
    return log_of(LISTS[arms.astype(int)], clicks, times, users=users, arms=arms.astype(int))


def log_of(items, clicks, times, **columns):
    n = len(items)
    labels = {"arm_labels": ("A", "B")} if "arms" in columns else {}
    queries = columns.pop("queries", np.zeros(n, int))
    names = ("shoes", "hats")[: int(queries.max()) + 1]
    return ClickLog(items, clicks, queries, tuple("abc"), names, times=times, **columns, **labels)


def lists_only(log):
    return replace(log, arms=None, arm_labels=())


def by_date(log, rng):
    """The log with dates, in which rows of a date are sorted by arm."""
    dates = np.floor(log.times / DAY) * DAY
    return replace(log, times=dates)[np.lexsort((rng.random(len(log)), log.arms, dates))]


def test_sessions_of_one_user_count_as_their_number_of_users():
    """Each session four times, by one user: nothing more is known than of one of them."""
    rng = np.random.default_rng(0)
    log = returning(3000, 10**6, rng)
    copies = log[np.repeat(np.arange(3000), 4)]
    copies = replace(copies, times=1.7e9 + rng.uniform(0, 60 * DAY, 12_000))
    today = tuple("abc"[item] for item in LISTS[0])  # of two lists that are as frequent
    for kind, production in ((lambda log: log, "A"), (lists_only, today)):
        (single,) = decide(kind(log), production=production).measured
        (often,) = decide(kind(copies), production=production).measured
        assert often.difference == pytest.approx(single.difference, abs=0.3 * single.standard_error)
        assert often.standard_error == pytest.approx(single.standard_error, rel=0.05)
    (blind,) = decide(replace(copies, users=None)).measured
    assert blind.standard_error == pytest.approx(single.standard_error / 2, rel=0.05)


@pytest.mark.parametrize("kind", [lambda log: log, lists_only], ids=["arms", "lists"])
def test_users_who_come_once_change_nothing(kind):
    log = kind(returning(4000, 10**7, np.random.default_rng(1), gain=0.02))
    log = replace(log, users=np.arange(4000))
    known, unknown = decide(log), decide(replace(log, users=None))
    assert (known.knows_users, unknown.knows_users) == (True, False)
    assert len(unknown.cautions) == len(known.cautions) + 1
    (one,), (other,) = known.measured, unknown.measured
    assert one.difference == other.difference
    assert one.standard_error == pytest.approx(other.standard_error, rel=0.01)
    assert one.p_value == pytest.approx(other.p_value, rel=0.2)


def test_error_by_user_by_hand():
    """One block, as all have one time; user 0 has three of the eight sessions of arm A."""
    arms = np.repeat([0, 1], [8, 7])
    users = np.r_[0, 0, 0, 1, 2, 3, 4, 5, 6, 6, 7, 8, 9, 10, 11]
    clicks = np.array([1, 1, 0, 0, 1, 0, 0, 1, 1, 1, 0, 1, 0, 1, 1])
    times = 100
    clicks = clicks[:, None] * [1, 0, 0]
    log = log_of(LISTS[arms], clicks, np.zeros(15), users=users, arms=arms)
    clicks = clicks[:, 0]
    many = log[np.tile(np.arange(15), times)]
    many = replace(many, users=many.users + 12 * np.repeat(np.arange(times), 15))
    squares = 0.0
    for arm in (0, 1):
        x, n = clicks[arms == arm], (arms == arm).sum() * times
        for user in np.unique(users[arms == arm]):
            own = x[users[arms == arm] == user]
            squares += times * ((own - x.mean()).sum() / n * n / (n - len(own))) ** 2
        squares += 1 / n**2  # a click more or less
    decided = decide(many)
    (entry,) = decided.measured
    assert entry.difference == pytest.approx(5 / 7 - 4 / 8)
    assert entry.standard_error == pytest.approx(sqrt(squares))
    assert (decided.days, decided.next_step) == (None, "show B")
    assert decided.verdict == "better"


def test_arms_need_dates_only():
    """Lists with dates are refused, as rows may be sorted by list within them; arms are drawn."""
    rng = np.random.default_rng(2)
    log = returning(12_000, 10_000, rng, gain=0.03)
    dated = by_date(log, rng)
    assert decide(lists_only(dated)).reason == Reason.NO_TIME
    exact, coarse = (decide(part).measured[0] for part in (log, dated))
    assert coarse.difference == pytest.approx(exact.difference, abs=0.2 * exact.standard_error)
    assert coarse.standard_error == pytest.approx(exact.standard_error, rel=0.03)
    assert decide(dated).verdict == "better"
    untimed = decide(replace(dated, times=None))
    assert (untimed.reason, untimed.next_step) == (Reason.NO_TIME, "nothing to test")


@pytest.mark.parametrize("end", [14, 17, 20])
def test_an_arm_whose_gain_has_fallen(end):
    """It ends after so many of twenty days. Then the last blocks alone tell what to expect."""
    rng = np.random.default_rng(7)
    day, arms = np.arange(20_000) // 1000, np.arange(20_000) % 2
    rates = 0.3 + 0.1 * arms * (day < end)
    clicks = (rng.random(20_000) < rates)[:, None] * [1, 0, 0]
    decided = decide(log_of(LISTS[arms], clicks, 1.7e9 + DAY * day, arms=arms))
    (entry,) = decided.measured
    assert entry.p_value < decided.level
    if end == 20:
        assert (decided.verdict, entry.withheld(decided.level)) == ("better", None)
        assert entry.expected == (entry.difference, entry.standard_error)
        return
    assert decided.verdict == "no list is proved better"
    assert entry.withheld(decided.level) == Doubt.FALLEN
    gains = [
        clicks[(day >= start) & (arms == 1)].mean() - clicks[(day >= start) & (arms == 0)].mean()
        for start in range(10, 17)
    ]
    assert min(abs(3 * np.array(gains) - entry.expected[0])) < 1e-9
    assert entry.expected[0] < 0.6 * entry.difference


def test_an_arm_that_was_withdrawn():
    log = returning(12_000, 10_000, np.random.default_rng(2), gain=0.04)
    log = log[(log.arms == 0) | (np.arange(12_000) < 9000)]
    assert decide(log).verdict == "was better when it was last shown"


def test_an_arm_whose_share_grows():
    """Later, arm B has nine of ten sessions and everybody clicks more: B earns .05 less."""
    rng = np.random.default_rng(3)
    late = np.arange(20_000) >= 10_000
    arms = (rng.random(20_000) < np.where(late, 0.9, 0.1)).astype(int)
    clicks = (rng.random(20_000) < np.where(late, 0.6, 0.2) - 0.05 * arms)[:, None] * [1, 0, 0]
    log = log_of(LISTS[arms], clicks, 1.7e9 + np.floor(np.arange(20_000) / 500) * DAY, arms=arms)
    (entry,) = decide(log).measured
    assert entry.difference == pytest.approx(-0.05, abs=3 * entry.standard_error)
    before = np.where(late, 1, 0)
    with_history = replace(log, arms=before)
    assert decide(with_history).reason == Reason.APART


def two_queries(rng):
    """B gains in shoes and loses in hats, more often; half of the sessions are outside."""
    parts = [returning(n, 10**6, rng, gain) for n, gain in ((4000, 0.06), (8000, -0.06))]
    arrays = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("items", "clicks", "times", "users", "arms")
    }
    log = log_of(**arrays, queries=np.repeat([0, 1], [4000, 8000]))
    outside = replace(log, arms=np.full(len(log), -1), clicks=1 - log.clicks)
    return log_of(
        **{name: np.concatenate([getattr(log, name), getattr(outside, name)]) for name in arrays},
        queries=np.tile(log.queries, 2),
    )


def test_an_experiment_as_a_whole_and_by_query(tmp_path, printed, refused):
    log = two_queries(np.random.default_rng(4))
    whole, shoes, hats = decide_all(log)
    assert (whole.query, whole.n_sessions, whole.next_step) == (None, 12_000, "nothing to test")
    assert (shoes.query, shoes.next_step) == ("shoes", "show B")
    assert (hats.query, hats.next_step) == ("hats", "nothing to test")
    assert whole.measured[0].interval[1] < 0
    assert (shoes.production, shoes.best.labels) == (("a", "b", "c"), ("b", "a", "c"))
    assert (shoes.control, shoes.best.arm) == ("A", "B")
    assert shoes.sessions_a_day == pytest.approx(4000 / 60, rel=0.01)
    assert decide(log) == whole
    assert decide(log, "hats").measured[0].difference == hats.measured[0].difference
    turned, hats, shoes = decide_all(log, production="B")
    assert (hats.next_step, shoes.next_step) == ("show A", "nothing to test")
    assert turned.measured[0].difference == pytest.approx(-whole.measured[0].difference)
    assert lists_only(log[log.arms >= 0]).arms is None
    write_tidy(log, tmp_path / "log.parquet")
    command = ["decide", str(tmp_path / "log.parquet")]
    text = printed([*command, "--all", "--out", str(tmp_path / "out")])
    assert "No arm is proved better than arm A. Arm B earned -0." in text
    assert "1 of 2 queries" in text
    assert "show B" in (tmp_path / "out" / "decisions.html").read_text()
    assert "12,000 sessions" in printed(command)
    assert "unknown arm in production 'C'" in refused([*command, "--production", "C"])
    assert "unknown arm in production 'a, b'" in refused([*command, "--production", "a,b"])
    single = replace(log, arms=np.minimum(log.arms, 0))
    write_tidy(single, tmp_path / "one.parquet")
    assert "expected two or more" in refused(["decide", str(tmp_path / "one.parquet")])
    assert write_decisions([whole, shoes], tmp_path / "python")[0].exists()


@pytest.mark.parametrize("users", [True, False])
def test_a_query_that_one_arm_alone_has(users, tmp_path):
    """All sessions of hats are of arm B, as chance has it in rare queries."""
    log = two_queries(np.random.default_rng(5))
    log = log[(log.queries == 0) | (log.arms == 1)]
    log = log if users else replace(log, users=None)
    hats = decide_all(log)[-1]
    assert (hats.query, hats.next_step, hats.reason) == ("hats", "nothing to test", Reason.APART)
    assert (hats.production, hats.n_production, hats.share_today) == ((), 0, 0)
    assert write_decisions([hats], tmp_path)[0].exists()


def test_a_log_without_clicks_has_finite_intervals():
    log = two_queries(np.random.default_rng(6))
    for decision in decide_all(replace(log, clicks=0 * log.clicks)):
        (entry,) = decision.measured
        low, high = entry.interval
        assert (entry.difference, decision.next_step) == (0, "nothing to test")
        assert -0.5 < low < 0 < high < 0.5


@pytest.mark.slow
@pytest.mark.parametrize(("n_users", "by_user"), [(600, True), (200, True), (200, False)])
def test_users_who_come_back_prove_nothing(n_users, by_user):
    """Lists of equal worth, 13 or 40 sessions a user: in 200 logs none is called better more often
    than by the level, of which chance makes up to 4 (p = .003).
    """
    wrong = np.zeros(3, int)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        log = returning(8000, n_users, rng, by_user=by_user)
        parts = lists_only(log), by_date(log, rng), replace(lists_only(log), users=None)
        wrong += [decide(part).verdict == "better" for part in parts]
    assert max(wrong[:2]) <= 4
    if by_user:
        assert wrong[2] > 4  # without the column


@pytest.mark.slow
def test_dates_find_what_exact_times_find():
    """Of 60 experiments with a gain of about 4 %, those that are proved."""
    found = np.zeros(2, int)
    for seed in range(60):
        rng = np.random.default_rng(seed)
        log = returning(12_000, 8000, rng, gain=0.016)
        parts = log, by_date(log, rng)
        found += [decide(part).verdict == "better" for part in parts]
    assert found[0] >= 20
    assert found[1] >= 0.8 * found[0]


@pytest.mark.slow
@pytest.mark.parametrize("with_arm", [False, True])
def test_next_steps_earn_what_they_promise(with_arm):
    """Ten shops of docs/next_steps.py: the promise, the best list of each query (an oracle), and
    the queries where a test as long as the log would find the gain.
    """
    shops = (next_steps.tested_shop(np.random.default_rng(seed), with_arm) for seed in range(10))
    total = sum((next_steps.figures(*shop) for shop in shops), Counter())
    assert total["true"] == pytest.approx(total["expected"], rel=0.2)
    assert total["earned"] > total["best"] / 2
    assert total["found"] >= 0.7 * total["large"] > 10
    assert total["show, worse"] == 0


@pytest.mark.slow
def test_next_steps_promise_little_where_nothing_was_tried():
    """Two search engines of docs/next_steps.py, whose logs have the items that users saw."""
    engines = (next_steps.search_engine(np.random.default_rng(seed), True) for seed in range(2))
    total = sum((next_steps.figures(*engine) for engine in engines), Counter())
    assert total["show, worse"] == 0
    assert total["expected"] < 0.02 * total["today"]
