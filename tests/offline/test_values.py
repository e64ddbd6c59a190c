"""Clicks that are worth money: a log with values, its estimates, and the decision by them."""

from dataclasses import replace

import gymnasium as gym
import numpy as np
import polars as pl
import pytest

import clickgym
from clickgym.envs import PositionBasedModel
from clickgym.offline import ClickLog, FixedPolicy, contributions, empirical_policies, evaluate, read_log, read_tidy, write_tidy
from clickgym.offline.comparison import compare
from clickgym.offline.decision.all_queries import decide_all
from clickgym.offline.decision.decide import decide
from clickgym.offline.decision.evidence import experiment
from clickgym.offline.decision.lists import DistinctLists, measure, production_list
from clickgym.offline.decision.page import to_dict, to_html
from clickgym.offline.evaluation import ESTIMATORS
from clickgym.offline.model_weights import MODEL_BASED

USERS = PositionBasedModel([0.1, 0.3, 0.45, 0.6], [0.9, 0.6, 0.3])
PRICES = np.array([2.0, 6.0, 0.0, 1.0])
LISTS = [[0, 1, 2], [3, 2, 1], [1, 3, 0], [1, 0, 2], [2, 0, 1], [3, 0, 2], [2, 3, 0]]
QUICK = {"agents": ["CascadeTS"], "horizon": 1000, "runs": 1}


def log_of(lists, n, seed, users=USERS, prices=PRICES):
    """``n`` sessions of users who are shown lists at random; the first as often as all others together."""
    rng = np.random.default_rng(seed)
    weights = np.r_[len(lists) - 1, np.ones(len(lists) - 1)]
    items = np.array(lists)[rng.choice(len(lists), n, p=weights / weights.sum())]
    clicks = np.array([users.sample(ranking, rng) for ranking in items])
    values = None if prices is None else prices[items]
    return ClickLog(items, clicks, np.zeros(n), ("a", "b", "c", "d"), ("shoes",), values=values)


@pytest.fixture(scope="module")
def log():
    return log_of(LISTS, 6000, 0)


@pytest.fixture(scope="module")
def decision(log):
    return decide(log, truth=USERS, **QUICK)


# ------------------------------------------------------------------------------------------------------------------- logs

BAD = {
    "two values of an item": ([[1, 2], [2, 3]], "values has 1 and 3 for the item 'a' of the query 'q'; expected one value"),
    "a negative one": ([[1, 2], [2, -1]], "a finite number from 0"),
    "none at all": ([[1, 2], [2, np.nan]], "a finite number from 0"),
    "an infinite one": ([[1, 2], [2, np.inf]], "a finite number from 0"),
    "of other positions": ([[1], [2]], "values"),
}


@pytest.mark.parametrize(("values", "message"), BAD.values(), ids=BAD)
def test_bad_values_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        ClickLog([[0, 1], [1, 0]], [[1, 0], [0, 0]], [0, 0], ("a", "b"), ("q",), values=values)


def test_an_item_may_have_another_value_in_another_query_and_any_below_the_end_of_a_list():
    log = ClickLog([[0, 1], [0, -1]], [[1, 0], [0, 0]], [0, 1], ("a", "b"), ("q", "r"), values=[[1, 2], [5, 7]])
    assert log.values_of("q").tolist() == [1, 2]
    assert log.values_of("r")[0] == 5
    assert np.isnan(log.values_of("r")[1])
    assert log[[1]].values.tolist() == [[5, 7]]


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_column_of_values_is_read_if_it_is_named(log, tmp_path, ending):
    path = tmp_path / f"log{ending}"
    write_tidy(log, path)
    assert read_tidy(path).values is None
    read = read_tidy(path, columns={"value": "value"})
    assert (np.array(read.item_labels)[read.items] == np.array(log.item_labels)[log.items]).all()
    assert (read.values == log.values).all()


def test_a_bad_value_in_a_table_is_named_by_its_line(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("session,position,item,clicked,price\n1,1,a,1,3\n1,2,b,0,-1\n2,1,a,0,3\n")
    with pytest.raises(ValueError, match="line 3: price is '-1'; expected a finite number from 0"):
        read_tidy(path, columns={"value": "price"})
    read = read_tidy(path, columns={"value": "price"}, bad_rows="skip:50%")
    assert read.values.tolist() == [[3]]
    assert read_tidy(path).values is None


# -------------------------------------------------------------------------------------------------------------- estimates


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_an_estimate_of_values_is_the_sum_over_items_of_value_times_clicks_on_it(estimator):
    """Each estimator is linear in the values, and without them counts 1 for each click."""
    log = log_of(LISTS, 600, 1, prices=None)
    target = FixedPolicy([1, 0, 2])
    logging = None if estimator in MODEL_BASED else empirical_policies(log)

    def estimate(prices):
        valued = log if prices is None else replace(log, values=np.asarray(prices, float)[log.items])
        return contributions(valued, target, estimator, logging=logging, cutoff=2)

    plain, weights = estimate(None)
    ones, same = estimate(np.ones(4))
    assert (ones == plain).all()
    assert (same == weights).all()
    by_item = sum(price * estimate(np.eye(4)[item])[0] for item, price in enumerate(PRICES))
    priced, same = estimate(PRICES)
    assert priced == pytest.approx(by_item)
    assert (same == weights).all()
    assert not np.allclose(priced, plain)


@pytest.mark.parametrize("estimator", ["pbm", "ips", "item-position", "dr", "item-position-dr"])
def test_estimates_come_near_to_the_true_value(log, estimator):
    """Sampling: 6,000 sessions, four standard errors, one fixed seed."""
    logging = None if estimator == "pbm" else empirical_policies(log)
    found = evaluate(log, FixedPolicy([1, 0, 2]), estimator, logging=logging, bootstrap=10)
    truth = USERS.with_item_values(PRICES).expected_reward([1, 0, 2])
    assert abs(found.value - truth) < 4 * found.standard_error
    assert found.on_policy == pytest.approx((log.clicks * PRICES[log.items]).sum() / len(log))


def test_what_values_cannot_weigh_is_refused_in_one_line(log):
    with pytest.raises(ValueError, match="the reward 'any_click' counts no clicks that the values of the log could weigh"):
        evaluate(log, FixedPolicy([1, 0, 2]), "ips", logging=empirical_policies(log), reward="any_click")
    with pytest.raises(ValueError, match="the reward 'any_click' counts no clicks"):
        decide(log, reward="any_click", **QUICK)
    with pytest.raises(ValueError, match="tells only of clicks; expected some that tell what they are worth"):
        compare(log, "uniform")
    with pytest.raises(ValueError, match="the values of the 4 items of the query 'shoes' that are ranked are all 0"):
        decide(replace(log, values=np.zeros(log.items.shape)), **QUICK)


# ---------------------------------------------------------------------------------------------------------------- decisions


def test_the_list_of_most_revenue_is_shown_not_that_of_most_clicks(decision, log):
    """d, c, b has most clicks of the logged lists, but b earns most where it stands first."""
    assert decision.verdict == "better"
    assert decision.recommended[0] == "b"
    clicks = decide(replace(log, values=None), **QUICK)
    assert clicks.recommended[:2] == ("d", "c")
    valued = USERS.with_item_values(PRICES)
    assert decision.proposal.truth == valued.expected_reward([log.item_labels.index(label) for label in decision.recommended])
    (users,) = decision.instance.models.values()
    assert users.item_values.tolist() == PRICES.tolist()
    best = next(each for each in decision.candidates if each.name == "best under the model")
    assert best.labels == ("b", "d", "a")
    for name in decision.believed:
        gain = decision.proposal.estimates[name]
        assert abs(gain.difference - (decision.proposal.truth - decision.production.truth)) < 4 * gain.standard_error


def test_power_and_length_of_an_experiment_follow_from_the_variance_of_revenue(decision, log):
    earned = (log.clicks * PRICES[log.items]).sum(axis=1)
    assert decision.evidence.variance == pytest.approx(earned.var())
    assert earned.var() > 2 * log.clicks.sum(axis=1).var()
    likely = decide(log[:1500], level=1e-6, **QUICK)
    assert likely.verdict == "likely better"
    sessions = experiment(likely.ground.difference, earned[:1500].var(), likely.level)
    assert any(f"{sessions:,} sessions" in sentence for sentence in likely.summary)


def test_words_and_files_say_that_values_count(decision):
    assert decision.unit == "value per session"
    assert any("value per session more than the list in production" in sentence for sentence in decision.summary)
    assert not any("clicks per session" in sentence for sentence in decision.summary)
    assert "Value per session, estimated" in to_html(decision)
    assert to_dict(decision)["unit"] == "value per session"


def test_values_of_1_decide_as_clicks_do(log):
    ones, plain = (to_dict(decide(replace(log, values=values), **QUICK)) for values in (np.ones(log.items.shape), None))
    assert ones.pop("unit") == "value per session"
    assert [name for name in plain if ones[name] != plain[name]] == ["summary"]


def test_another_currency_changes_no_verdict(log):
    """All values times 1000: gains and errors, too; so does what is added to the variance of few sessions."""
    some, other = (replace(log, values=log.values * unit) for unit in (1, 1000))
    (one, _), (two, _) = (
        measure(tally, production_list(tally), 0.005)
        for each in (some, other)
        for tally in [DistinctLists(each, "clicks", None)]
    )
    for name in ("p_value", "worst_p_value", "sign_p_value", "finer_p_value"):
        assert [getattr(each, name) for each in two] == pytest.approx([getattr(each, name) for each in one])
    assert [each.standard_error for each in two] == pytest.approx([1000 * each.standard_error for each in one])


def test_a_measured_gain_is_no_surer_than_its_revenue_allows():
    """Null: the list earns what production does, though its clicks are 1.8 times as many. 300 logs of 2,000 sessions; p <= .05
    in at most 8.6 % of them (.05 and three standard errors); the test on clicks rejects in nearly all."""
    users = PositionBasedModel([0.5, 0.1], [1.0, 0.5])
    gain = users.click_probabilities([0, 1]) - users.click_probabilities([1, 0])[::-1]
    prices = np.array([1.0, -gain[0] / gain[1]])  # what the first item loses the second gains
    alarms = {"values": 0, "clicks": 0}
    for seed in range(300):
        log = log_of([[1, 0], [0, 1]], 2000, seed, users, prices)
        for name, each in (("values", log), ("clicks", replace(log, values=None))):
            tally = DistinctLists(each, "clicks", None)
            ((found,), _) = measure(tally, production_list(tally), 0.005)
            alarms[name] += min(found.p_value, 2 * (1 - found.p_value)) <= 0.05 if name == "clicks" else found.p_value <= 0.05
    assert alarms["values"] <= 0.086 * 300
    assert alarms["clicks"] > 200


def test_many_queries_are_decided_by_value_and_a_folder_keeps_its_values(log, tmp_path):
    found = decide_all(log, tmp_path, pages=False, n_jobs=1)
    assert found.valued
    assert found.queries[0].recommended[0] == "b"
    assert "value per session" in (tmp_path / "decisions.html").read_text()
    with pytest.raises(ValueError, match="holds decisions with digest"):
        decide_all(replace(log, values=2 * log.values), tmp_path, pages=False, n_jobs=1)


def test_lists_of_several_lengths_are_decided_by_value(log):
    cut = np.arange(len(log)) % 4 == 0
    short = replace(log, items=log.items.copy(), clicks=log.clicks.copy())
    short.items[cut, 2:], short.clicks[cut, 2:] = -1, 0
    found = decide(short, **QUICK)
    assert found.recommended[0] == "b"
    assert found.checks


def test_a_command_takes_a_column_of_values(log, tmp_path, printed):
    log.to_frame().rename({"value": "price"}).write_csv(tmp_path / "log.csv")
    command = ["decide", str(tmp_path / "log.csv"), "--columns", "value=price", "--out", str(tmp_path / "out")]
    shown = printed([*command, "--agents", "CascadeTS", "--horizon", "1000", "--runs", "1"])
    assert "value per session more" in " ".join(shown.split())
    assert "List: b" in shown


def test_an_empty_price_is_missing():
    frame = pl.DataFrame({"session": [1, 1], "position": [1, 2], "item": ["a", "b"], "clicked": [1, 0], "price": [2.5, None]})
    with pytest.raises(ValueError, match="row 2: price is ''; expected a finite number from 0"):
        ClickLog.from_frame(frame, columns={"value": "price"})


def test_what_is_recorded_with_values_is_read_back_to_the_bit(tmp_path):
    values = np.random.default_rng(0).random(10) * 7
    for name in ("PBMRank-v0", "ContextualPBMRank-v0"):
        n = len(gym.make(name).unwrapped.model.items) if "Contextual" in name else 10
        env = gym.make(name, item_values=np.resize(values, n))
        log = clickgym.record(clickgym.make_agent("Random", env, seed=0), env, 50, seed=0)
        assert (log.values == np.resize(values, n)[np.array(log.item_labels, int)[log.items]]).all()
        write_tidy(log, tmp_path / "log.csv")
        back = read_log(tmp_path / "log.csv", columns={"value": "value"})
        assert back.values.tobytes() == log.values.tobytes()
        assert (np.array(back.item_labels)[back.items] == np.array(log.item_labels)[log.items]).all()
        assert (back.clicks == log.clicks).all()


@pytest.mark.parametrize("kind", ["PBM", "CM"])
def test_online_comparisons_count_values_exactly(kind):
    """Enumerated against the model's own expectation, and 4 standard errors of a simulation."""
    plain = gym.make(f"{kind}Rank-v0", n_positions=3).unwrapped.model
    users = plain.with_item_values(np.arange(10) + 0.5)
    a, b = [0, 1, 2, 3], [3, 2, 1, 0]
    compared = clickgym.compare_online(a, b, users, by=["ab", "team_draft"], sessions=4000)
    ab, true = compared.tests["ab"], users.expected_reward(a[:3]) - users.expected_reward(b[:3])
    assert compared.valued
    assert compared.clicks[0] - compared.clicks[1] == pytest.approx(true)
    assert (ab.mean, ab.error) == (pytest.approx(true), 0.0)
    assert abs(ab.estimate - true) < 4 * ab.deviation / np.sqrt(4000)
    credit = clickgym.compare_online(a, b, plain, by="team_draft", sessions=100).tests["team_draft"]
    assert compared.tests["team_draft"].mean == credit.mean
