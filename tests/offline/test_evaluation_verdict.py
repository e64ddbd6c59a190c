"""Verdicts of `compare` and the command: only what estimators of different assumptions agree on, after tests of these."""

import itertools
import re
from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from clickgym.envs import DependentClickModel, DynamicBayesianModel, PositionBasedModel, UserBrowsingModel
from clickgym.offline import ClickLog, FixedPolicy, ItemPositionLog, PBMEstimator, UniformPolicy, compare, evaluate, write_tidy
from clickgym.offline.estimation.settings import CONVERGED
from clickgym.offline.goodness_of_fit import check_above

LETTERS = "abcdefghij"
DCM = DependentClickModel([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2], [0.8, 0.6, 0.5, 0.4, 0.3])
PBM = PositionBasedModel([0.8, 0.6, 0.5, 0.3, 0.2, 0.1], [0.9, 0.6, 0.4])


def random_log(model, n=50_000, seed=0, **more):
    """Sessions of some users with lists drawn uniformly, and the propensities."""
    rng = np.random.default_rng(seed)
    items = rng.permuted(np.tile(np.arange(model.n_items), (n, 1)), axis=1)[:, : model.n_positions]
    clicks = np.array([model.sample(ranking, rng) for ranking in items])
    more.setdefault("propensities", np.full(items.shape, 1 / model.n_items))
    return ClickLog(items, clicks, np.zeros(n), tuple(LETTERS[: model.n_items]), ("q",), **more)


def fixed(ranking):
    return "fixed:" + ",".join(LETTERS[item] for item in ranking)


def gain(model, ranking):
    """The exact gain of a list over random lists."""
    lists = itertools.permutations(range(model.n_items), model.n_positions)
    return model.expected_reward(ranking) - np.mean([model.expected_reward(each) for each in lists])


# ------------------------------------------------------------------------------------------------ users of click models


def test_the_command_says_better_where_item_position_alone_says_worse(tmp_path, printed):
    """Users of a DCM and the best of all 6,720 lists: item-position, whose assumption fails, has it worse than random lists."""
    log, best = random_log(DCM), fixed(DCM.optimal_ranking())
    write_tidy(log, tmp_path / "log.parquet")
    out = printed(["evaluate", str(tmp_path / "log.parquet"), "--policy", best])
    low, high = re.search(rf"{best}: better than the logged policy \(\+(\S+) to \+(\S+)\): dcm, which", out).groups()
    assert float(low) < gain(DCM, DCM.optimal_ranking()) < float(high)
    assert "item-position does not hold here: clicks depend on what stands above them (p < 1e-9)" in out
    alone = evaluate(log, FixedPolicy(DCM.optimal_ranking()), "item-position").difference_interval
    assert alone[1] < 0
    page = Path(__file__).resolve().parents[2].joinpath("docs", "off_policy.md").read_text(encoding="utf-8")
    quoted = ("{:.3f} to {:.3f}; the truth is +{:.3f}".format(*alone, gain(DCM, DCM.optimal_ranking()))).replace("-", "−")
    assert quoted in page
    assert next(line for line in out.splitlines() if "better than" in line) in page
    out = printed(["evaluate", str(tmp_path / "log.parquet"), "--policy", best, "--estimator", "item-position"])
    assert "what item-position assumes about users is not tested; without --estimator it is" in out
    contradiction = compare(log, best, ["item-position", "dcm"]).verdicts[best]
    assert contradiction.word == "no verdict"
    assert contradiction.reason == "the estimators contradict each other: better by 1 of 2, worse by 1"


@pytest.mark.parametrize(
    "users",
    [
        UserBrowsingModel(
            [0.9, 0.8, 0.7, 0.5, 0.4, 0.3],
            [[0.9, 0, 0, 0], [0.4, 0.95, 0, 0], [0.3, 0.6, 0.9, 0], [0.2, 0.5, 0.7, 0.9]],
        ),
        gym.make("CMRank-v0").unwrapped.model.with_items(attraction=[0.3, 0.25, 0.2, 0.15, 0.1, 0.05]),
    ],
    ids=["UBM", "CM"],
)
def test_the_interval_holds_the_truth_where_that_of_item_position_does_not(users):
    log, best = random_log(users, 20_000), users.optimal_ranking()
    truth = gain(users, best)
    verdict = compare(log, fixed(best)).verdicts[fixed(best)]
    assert verdict.word == "better"
    assert verdict.interval[0] < truth < verdict.interval[1]
    assert "item-position" not in verdict.estimators
    alone = evaluate(log, FixedPolicy(best), "item-position").difference_interval
    assert not alone[0] < truth < alone[1]


def test_where_its_assumption_holds_item_position_confirms_the_click_models():
    worst = fixed([5, 4, 3])
    compared = compare(random_log(PBM, 10_000), worst)
    verdict = compared.verdicts[worst]
    assert verdict.word == "worse"
    assert {"pbm", "item-position", "cascade"} <= set(verdict.estimators)
    assert verdict.interval[0] < gain(PBM, [5, 4, 3]) < verdict.interval[1]
    for result in compared.evaluations:  # all intervals are in that of the verdict
        assert verdict.interval[0] <= result.difference_interval[0] <= result.difference_interval[1] <= verdict.interval[1]


# ------------------------------------------------------------------------------------------------------- no verdict


def odd_log(lists, n=30_000, seed=0):
    """Users whom no click model describes: they click an item if the one above has a number below its own by one."""
    rng = np.random.default_rng(seed)
    items = np.array(lists)[rng.integers(len(lists), size=n)]
    likes = np.where(np.diff(items, axis=1, prepend=-9) == 1, 0.7, 0.2)
    return ClickLog(items, rng.random(items.shape) < likes, np.zeros(n), tuple(LETTERS[:6]), ("q",))


def test_there_is_no_verdict_where_no_click_model_fits():
    lists = list(itertools.permutations(range(6), 4))
    verdict = compare(odd_log(lists), "fixed:a,b,c,d").verdicts["fixed:a,b,c,d"]
    assert (verdict.word, verdict.estimators, verdict.interval) == ("no verdict", (), None)
    assert verdict.reason.startswith("no click model that tells of this policy fits the log; item-position does not hold here")


def test_where_nothing_can_be_estimated_the_error_says_why():
    """No click model fits, and no session shows f at the first position."""
    lists = [each for each in itertools.permutations(range(6), 4) if each[0] != 5]
    with pytest.raises(
        ValueError, match=r"^no click model fits the log, and item-position is refused: item 'f' at position 1: "
    ):
        compare(odd_log(lists), "fixed:f,b,c,d")


def test_a_list_that_was_shown_often_needs_no_click_model():
    lists = [[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2], [5, 1, 0, 4], [2, 4, 0, 1]]
    for spec, word in (("fixed:a,b,c,d", "better"), ("fixed:d,c,b,a", "worse")):
        verdict = compare(odd_log(lists), spec).verdicts[spec]
        assert (verdict.word, verdict.estimators) == (word, ("ips",))
    same = odd_log(lists[1:2] * 2)
    assert compare(same, "fixed:d,c,b,a").verdicts["fixed:d,c,b,a"].word == "not significantly different"


def test_there_is_no_verdict_of_click_models_alone():
    """In a log of one list and its neighbours nothing that assumes less tells of lists that begin otherwise. The second begins
    with d, as some do, but none with d and e: of one position `cascade` tells too little."""
    lists = [[0, 1, 2], [1, 0, 2], [0, 2, 1], [3, 1, 2], [0, 3, 2], [0, 1, 3], [0, 1, 4], [4, 1, 0]]
    rng = np.random.default_rng(0)
    items = np.array(lists)[rng.integers(len(lists), size=20_000)]
    clicks = rng.random(items.shape) < PBM.attraction[items] * PBM.examination
    log = ClickLog(items, clicks, np.zeros(len(items)), tuple(LETTERS[:5]), ("q",))
    for verdict in compare(log, ["fixed:c,d,e", "fixed:d,e,c"]).verdicts.values():
        assert verdict.word == "no verdict"
        assert re.fullmatch(r"no estimator that assumes less can confirm (\w+(, | and )?)+, which fit the log", verdict.reason)


def test_a_short_log_and_one_of_single_items_give_no_verdict():
    short = random_log(PBM, 300)
    assert (
        compare(short, "fixed:a,b,c").verdicts["fixed:a,b,c"].reason == "no click model that tells of this policy fits the log"
    )
    single = ItemPositionLog([0, 1] * 500, [0] * 1000, [1, 0] * 500, [0.5] * 1000)
    verdict = compare(single, "fixed:0").verdicts["fixed:0"]
    assert str(verdict) == "no verdict: a log of single items cannot tell whether clicks depend on what stands above them"
    assert compare(single, "fixed:0", ["item-position"]).verdicts["fixed:0"].word == "better"


def test_without_names_of_estimators_the_reward_is_clicks():
    with pytest.raises(ValueError, match="estimators are not given, which tells only of clicks; expected some that tell 'any_"):
        compare(random_log(PBM, 300), "fixed:a,b,c", reward="any_click")


# --------------------------------------------------------------------------------------------------------- the parts


def test_clicks_that_depend_on_nothing_above_pass_the_test_of_item_position():
    """Null: users of a PBM; 100 logs of 2,000 sessions. At the level 0.1 more than 20 false alarms have a chance of 0.1 %."""
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(100):
        items = rng.permuted(np.tile(np.arange(6), (2000, 1)), axis=1)[:, :3]
        clicks = rng.random(items.shape) < PBM.attraction[items] * PBM.examination
        alarms += check_above(ClickLog(items, clicks, np.zeros(2000), tuple(LETTERS[:6]), ("q",))) < 0.1
    assert alarms <= 20


def test_positions_with_hardly_any_clicks_raise_no_alarm():
    """Null: users of a DBN of whom few go on; 10 logs of 20,000 sessions. Two false alarms at the level 0.01: chance 0.4 %.
    A covariance that is counted in the clicks of the last positions, which are a handful, is far too small."""
    users = DynamicBayesianModel([0.9, 0.7, 0.5, 0.4, 0.3, 0.2], [0.5] * 6, 0.03, n_positions=5)
    alarms = 0
    for seed in range(10):
        log = random_log(users, 20_000, seed)
        first, index = np.unique(log.items, axis=0, return_inverse=True)
        predicted = np.array([users.click_probabilities(ranking) for ranking in first])[index.ravel()]
        alarms += check_above(log, predicted) < 0.01
    assert alarms < 2


def test_where_lists_never_change_nothing_tests_item_position():
    one = ClickLog([[0, 1]] * 400, [[1, 0], [0, 1]] * 200, [0] * 400, ("a", "b"), ("q",))
    assert np.isnan(check_above(one))
    assert "item-position" not in compare(one, "fixed:a,b").verdicts["fixed:a,b"].estimators


def test_refits_vary_as_estimates_of_fresh_logs():
    """Standard deviations over 60 logs and over 60 refits to one: each is within 20 % (two standard errors) of the truth."""
    target = FixedPolicy([0, 1, 2])
    lists = ClickLog([[0, 1, 2]], [[0, 0, 0]], [0], tuple(LETTERS[:6]), ("q",))
    logs = [random_log(PBM, 1000, seed) for seed in range(60)]
    fresh = np.std([CONVERGED.fit(PBMEstimator, log).click_probabilities(lists).sum() for log in logs], ddof=1)
    fitted = CONVERGED.fit(PBMEstimator, logs[0])
    drawn = [each.click_probabilities(lists).sum() for _, each in CONVERGED.refits(fitted, logs[0], 60, 0)]
    assert np.std(drawn, ddof=1) == pytest.approx(fresh, rel=0.4)
    again = [each.click_probabilities(lists).sum() for _, each in CONVERGED.refits(fitted, logs[0], 3, 0)]
    assert again == drawn[:3]
    assert target.ranking.tolist() == lists.items[0].tolist()


def test_a_click_model_predicts_for_queries_and_lengths_of_the_log():
    """Two queries with lists of two lengths: what is predicted is the mean over the sessions."""
    rng = np.random.default_rng(0)
    items = rng.permuted(np.tile(np.arange(6), (8000, 1)), axis=1)[:, :3]
    clicks = rng.random(items.shape) < PBM.attraction[items] * PBM.examination
    ended = np.arange(8000) % 4 == 0
    items[ended, 2], clicks[ended, 2] = -1, False
    log = ClickLog(items, clicks, np.arange(8000) % 2, tuple(LETTERS[:6]), ("p", "q"))
    results = {result.estimator: result for result in compare(log, "uniform").evaluations}
    fitted = CONVERGED.fit(PBMEstimator, log)
    expected = fitted.click_probabilities(log).sum(axis=1).mean()
    assert results["pbm"].value == pytest.approx(expected, abs=0.01)
    assert results["pbm"].difference == pytest.approx(results["pbm"].value - clicks.sum() / 8000)
    cut = {result.estimator: result for result in compare(log, "uniform", cutoff=1).evaluations}
    assert cut["pbm"].value == pytest.approx(clicks[:, 0].mean(), abs=0.01)
    assert np.isnan(cut["pbm"].effective_sample_size)
    assert UniformPolicy(6, 3).n_positions == log.n_positions


def test_a_list_of_another_length_is_refused_where_no_estimator_is_named():
    with pytest.raises(ValueError, match="the target policy fills 2 positions; the log has 3"):
        compare(random_log(PBM, 3000), ["fixed:a,b"])


def test_an_item_that_the_log_never_shows_is_refused():
    log = random_log(PBM, 3000)
    missing = log[(log.items != 5).all(axis=1)]
    compared = compare(replace(missing, propensities=None), ["fixed:a,b,f", "fixed:a,b,c"])
    assert compared.refused["fixed:a,b,f", "pbm"] == "the log never shows the item 'f' for the query 'q'"
    assert compared.verdicts["fixed:a,b,f"].word == "no verdict"
    assert compared.verdicts["fixed:a,b,c"].word == "better"
