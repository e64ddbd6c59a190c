"""What a verdict rests on: lists judged by their own sessions, models that fit, and what corrects them."""

from dataclasses import replace

import numpy as np
import pytest

from clickgym.envs import DynamicBayesianModel, PositionBasedModel
from clickgym.offline import ClickLog, FixedPolicy, PBMEstimator, contributions, empirical_policies, evaluate
from clickgym.offline.decision.correction import Corrected, Correction
from clickgym.offline.decision.decide import AGENTS, _try_estimators, decide
from clickgym.offline.decision.evidence import LEVEL, Inquiry, settle
from clickgym.offline.decision.lists import DistinctLists, measure, production_list
from clickgym.offline.decision.models import Models
from clickgym.offline.decision.settings import Settings
from clickgym.offline.distinct import distinct, sorted_distinct
from clickgym.offline.goodness_of_fit import check_fit

USERS = PositionBasedModel([0.1, 0.3, 0.45, 0.6, 0.2], [0.9, 0.6, 0.3])
LABELS = tuple("abcde")

SETTINGS = Settings.check(AGENTS, 1, 1, 0, "clicks", None)


def clicks_of(lists, rng, users=USERS, shine=None):
    """Clicks; ``shine[a, b]`` multiplies the click rate of an item by the item above it."""
    rates = users.attraction[lists] * users.examination[: lists.shape[1]]
    if shine is not None:
        rates[:, 1:] *= shine[lists[:, 1:], lists[:, :-1]]
    return (rng.random(lists.shape) < rates) * (lists >= 0)


def log_of(lists, rng, **users):
    lists = np.asarray(lists)
    return ClickLog(lists, clicks_of(lists, rng, **users), np.zeros(len(lists)), LABELS, ("shoes",))


def random_lists(n, rng, base=(0, 1, 2), share=0.3):
    lists = rng.permuted(np.tile(np.arange(5), (n, 1)), axis=1)[:, :3]
    return np.where(rng.random((n, 1)) < share, base, lists)


def evidence_of(log):
    models = Models(log, "clicks", 0)
    return Inquiry(models, models.sessions("shoes"), SETTINGS).evidence


# --------------------------------------------------------------------------------------------------------- logged lists


def test_distinct_rows_are_those_of_numpy():
    rows = np.random.default_rng(0).integers(-1, 4, (500, 3))
    first, index, counts = distinct(rows)
    np.testing.assert_array_equal(rows[first][index], rows)
    assert len(first) == len(np.unique(rows, axis=0))
    assert counts.tolist() == np.bincount(index).tolist()
    wanted = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    for one, other in zip(sorted_distinct(rows), wanted, strict=True):
        np.testing.assert_array_equal(one, other)


SEVERAL = np.random.default_rng(12).permutation(
    np.repeat([[0, 1, 2], [3, 1, 0], [0, 1, -1], [3, 1, -1]], [800, 600, 480, 360], axis=0)
)


def test_lists_of_several_lengths_are_measured_each_by_its_own_sessions():
    log = log_of(SEVERAL, np.random.default_rng(1))
    shown = DistinctLists(log, "clicks", None)
    production = production_list(shown)
    assert production.tolist() == [0, 1, 2]
    ((gain,), _) = measure(shown, production, 0.05)
    earned = log.clicks.sum(axis=1)
    means = [earned[(log.items == row).all(axis=1)].mean() for row in ([3, 1, 0], [0, 1, 2], [3, 1, -1], [0, 1, -1])]
    weights = 600 * 800 / 1400, 360 * 480 / 840
    pooled = (weights[0] * (means[0] - means[1]) + weights[1] * (means[2] - means[3])) / sum(weights)
    assert gain.pooled == pytest.approx(pooled)
    assert gain.difference == pytest.approx(pooled, abs=gain.standard_error / 2)
    assert (gain.sessions, gain.share, gain.labels) == (600, 1.0, ("d", "b", "a"))


def test_the_list_in_production_is_the_one_that_most_sessions_begin():
    """The whole list [3, 1, 0] was shown more often than [0, 1, 2], but not if its beginnings are counted."""
    lists = np.repeat([[0, 1, 2], [3, 1, 0], [0, 1, -1]], [100, 150, 120], axis=0)
    assert production_list(DistinctLists(log_of(lists, np.random.default_rng(0)), "clicks", None)).tolist() == [0, 1, 2]


def test_a_list_that_gains_in_short_only_is_not_better():
    rng = np.random.default_rng(2)
    log = log_of(SEVERAL, rng)
    whole = (log.items >= 0).all(axis=1)
    clicks = np.where(whole[:, None], 0, (log.items == 3) | (rng.random(log.items.shape) < 0.01)) * (log.items >= 0)
    shown = DistinctLists(replace(log, clicks=clicks), "clicks", None)
    ((gain,), _) = measure(shown, production_list(shown), 0.05)
    assert gain.interval[0] > 0
    assert gain.p_value == 1.0
    hardly = clicks.copy()  # of whole lists every tenth has a click, and of those in production every eleventh
    for first, every in ((3, 10), (0, 11)):
        hardly[np.flatnonzero(whole & (log.items[:, 0] == first))[::every], 0] = 1
    shown = DistinctLists(replace(log, clicks=hardly), "clicks", None)
    ((gain,), _) = measure(shown, production_list(shown), 0.05)
    assert gain.interval[0] > 0
    assert gain.p_value == 1.0


def test_estimators_are_tried_on_the_lists_of_every_length():
    """Ten lists were shown in short more often than any whole one: they used to crowd all others out."""
    rng = np.random.default_rng(3)
    short = [[a, b, -1] for a in range(5) for b in range(5) if a != b][:10]
    whole = [[0, 1, 2], [3, 1, 0], [2, 3, 4], [4, 0, 1]]
    log = log_of(rng.permutation(np.repeat(short + whole, [300] * 10 + [200] * 4, axis=0)), rng)
    trial = _try_estimators(log, "clicks", None)
    assert len(trial.earned) == 10
    (pbm,) = [check for check in trial.checks if check.estimator == "pbm"]
    assert np.isfinite(pbm.estimated).all()
    assert pbm.error < 0.1
    result = evidence_of(log)
    assert result.production in {tuple(LABELS[item] for item in ranking) for ranking in whole}
    assert len(result.measured) == 3


# -------------------------------------------------------------------------------------------------- propensities by length


def test_propensities_are_those_of_a_length():
    """Short sessions were shown another list than long ones: pooled, the list in production had too small a weight."""
    rng = np.random.default_rng(4)
    lists = np.repeat([[0, 1, 2], [3, 2, 1], [0, 1, -1], [3, 2, -1]], [4000, 1000, 500, 4500], axis=0)
    log = log_of(lists, rng)
    logging = empirical_policies(log)
    target = FixedPolicy([0, 1, 2])
    value = 0.5 * USERS.expected_reward([0, 1, 2]) + 0.5 * USERS.expected_reward([0, 1, 2], cutoff=2)
    for estimator in ("ips", "cascade", "item-position"):
        result = evaluate(log, target, estimator, logging=logging, bootstrap=10)
        assert result.mean_weight == pytest.approx(1.0)
        assert abs(result.value - value) < 4 * result.standard_error
    _, weights = contributions(log, target, "ips", logging=logging)
    assert np.unique(weights.round(6)).tolist() == [0.0, 1.25, 10.0]


def test_a_mean_weight_beyond_its_interval_is_worth_a_caution():
    log = log_of(np.tile([[0, 1, 2], [3, 2, 1]], (5000, 1)), np.random.default_rng(5))
    wrong = replace(log, list_propensities=np.full(len(log), 0.53))
    result = evaluate(wrong, FixedPolicy([0, 1, 2]), "ips", bootstrap=10)
    assert result.mean_weight == pytest.approx(0.5 / 0.53)
    assert result.mean_weight_interval[1] < 1
    (caution,) = result.cautions
    assert "the mean weight of ips is 0.943, where 1 is expected (interval 0.925 to 0.962)" in caution
    right = replace(log, list_propensities=np.full(len(log), 0.5))
    assert evaluate(right, FixedPolicy([0, 1, 2]), "ips", bootstrap=10).cautions == ()


# ------------------------------------------------------------------------------------------------------------ test of fit

SHINE = np.exp(0.5 * np.random.default_rng(6).standard_normal((5, 5)))


@pytest.fixture(scope="module")
def plain():
    return log_of(random_lists(20_000, np.random.default_rng(7)), np.random.default_rng(8))


@pytest.fixture(scope="module")
def neighbours():
    return log_of(random_lists(20_000, np.random.default_rng(7)), np.random.default_rng(8), shine=SHINE)


def test_a_model_fits_its_own_users_and_no_others(plain):
    fit, groups = check_fit("PBM", PBMEstimator().fit(plain[:14_000]), plain[14_000:], 14_000)
    assert fit.fits
    assert len(fit.patterns) == 5
    assert sum(abs(group.deviation) > 3 for _, group in groups) <= 1
    users = DynamicBayesianModel([0.2, 0.5, 0.7, 0.9, 0.4], [0.8] * 5, 0.8, n_positions=3)
    rng = np.random.default_rng(9)
    clicks = np.array([users.sample(ranking, rng) for ranking in plain.items])
    other = replace(plain, clicks=clicks)
    assert not check_fit("PBM", PBMEstimator().fit(other[:14_000]), other[14_000:], 14_000)[0].fits


def test_the_level_of_the_test_of_fit_holds():
    """Of 60 logs of a PBM hardly one is refused at 1 in 100."""
    refused = 0
    for seed in range(60):
        rng = np.random.default_rng(100 + seed)
        log = log_of(random_lists(3000, rng), rng)
        refused += not check_fit("PBM", PBMEstimator().fit(log[:2100]), log[2100:], 2100)[0].fits
    assert refused <= 3


def test_users_who_look_at_neighbours_fit_no_model(neighbours):
    evidence = evidence_of(neighbours)
    assert evidence.fitting == []
    assert {pattern.name for pattern in evidence.fits[0].patterns} == {
        "item at position", "item below item", "item above item", "block of time", "item in a fifth of the time"
    }  # fmt: skip
    worst = min(evidence.fits[0].patterns, key=lambda pattern: pattern.p_value).worst
    assert abs(worst.deviation) > 5


def test_where_no_model_fits_only_measured_lists_are_recommended(neighbours):
    evidence = evidence_of(neighbours)
    assert evidence.judged == ()
    assert {ground.name for ground in evidence.grounds} <= {"measured"}
    assert {ground.labels for ground in evidence.grounds} <= {gain.labels for gain in evidence.measured}


def test_too_few_displays_are_no_proof_of_fit():
    rng = np.random.default_rng(10)
    log = log_of(random_lists(100, rng), rng)
    fit, groups = check_fit("PBM", PBMEstimator().fit(log), log[:40], 100)
    assert (fit.patterns, groups, fit.fits) == ((), (), False)


# -------------------------------------------------------------------------------------------------------------- correction


def corrected(log):
    shown = DistinctLists(log, "clicks", None)
    parts = np.arange(len(shown.lists)) % 5
    correction = Correction(shown, np.array([0, 1, 2]), range(5))
    fits = [PBMEstimator().fit(log[parts[shown.index] != part]) for part in range(5)]
    return Corrected(correction, PBMEstimator().fit(log), fits, parts)


def test_what_a_model_gets_wrong_about_neighbours_is_corrected(neighbours):
    """The PBM alone is off by more than the corrected gain, which holds within its standard errors."""
    model = corrected(neighbours)
    lists = np.unique(neighbours.items, axis=0)
    gains = model.gains(lists)
    rates = USERS.attraction[lists] * USERS.examination
    rates[:, 1:] *= SHINE[lists[:, 1:], lists[:, :-1]]
    truth = rates.sum(axis=1) - rates[(lists == [0, 1, 2]).all(axis=1)].sum()
    assert np.abs(gains.means - truth).mean() < 0.5 * np.abs(gains.predicted - truth).mean()
    assert (np.abs(gains.means - truth) > 3 * gains.errors).mean() < 0.03


def test_a_model_that_is_right_is_hardly_corrected(plain, neighbours):
    assert corrected(plain).error < 0.02 < corrected(neighbours).error
    model = corrected(plain)
    gains = model.gains(np.array([[3, 2, 1], [0, 1, 2]]))
    truth = USERS.expected_reward([3, 2, 1]) - USERS.expected_reward([0, 1, 2])
    assert abs(gains.means[0] - truth) < 3 * gains.errors[0]
    assert (gains.predicted[1], gains.means[1]) == (0.0, 0.0)


def test_a_list_unlike_the_logged_ones_is_less_sure():
    rng = np.random.default_rng(11)
    lists = np.array([[0, 1, 2], [1, 0, 2], [0, 2, 1], [3, 1, 2], [0, 4, 2], [0, 1, 3]])[rng.integers(0, 6, 20_000)]
    model = corrected(log_of(lists, rng))
    near, far = model.gains(np.array([[1, 0, 2], [4, 3, 0]])).errors
    assert far > 2 * near


# ----------------------------------------------------------------------------------------------------------------- verdict


def test_click_models_alone_never_say_better(plain):
    """The best list was hardly shown: the models that fit propose it, as an experiment."""
    rare = plain[~(plain.items == [3, 2, 1]).all(axis=1)]
    evidence = evidence_of(ClickLog(rare.items, rare.clicks, rare.queries, LABELS, ("shoes",)))
    result, ground = settle([each for each in evidence.grounds if each.name == "models"], evidence.enough, LEVEL)
    assert (result, ground.name, ground.labels) == ("likely better", "models", ("d", "c", "b"))
    assert {each.model for each in evidence.judged} == set(evidence.fitting)
    doubtful = max(evidence.judged, key=lambda each: each.p_value)
    assert (ground.p_value, ground.difference) == (doubtful.p_value, doubtful.difference)


def test_a_logged_list_that_measured_better_comes_first(plain):
    evidence = evidence_of(plain)
    result, ground = settle(evidence.grounds, evidence.enough, LEVEL)
    assert (result, ground.name) == ("better", "measured")
    best = evidence.measured[0]
    assert ground.labels == best.labels
    assert best.interval[0] > 0
    assert settle(evidence.grounds, evidence.enough, LEVEL)[0] == "better"


@pytest.mark.parametrize("seed", range(6))
def test_the_best_list_is_kept(seed):
    rng = np.random.default_rng(20 + seed)
    evidence = evidence_of(log_of(random_lists(4000, rng, base=(3, 2, 1)), rng))
    assert evidence.production == ("d", "c", "b")
    assert settle(evidence.grounds, evidence.enough, LEVEL)[0] == "not better"


def test_a_list_is_proposed_of_ranked_items_alone(monkeypatch):
    """The list in production has items that are hardly displayed, and no more items than these can be searched through."""
    monkeypatch.setattr("clickgym.offline.decision.models.LEAST_ITEMS", 3)
    monkeypatch.setattr("clickgym.offline.decision.evidence.MAX_SEARCH", 1)
    rng = np.random.default_rng(30)
    rare = np.tile([0, 1, 4], (400, 1))
    often = rng.permuted(np.tile([1, 2, 3], (3000, 1)), axis=1)
    log = log_of(np.vstack([rare, often, np.tile([0, 1, 4], (300, 1))]), rng)
    decision = decide(log, agents=["TopRank"], horizon=500, runs=1)
    assert decision.evidence.production == ("a", "b", "e")
    assert decision.instance.estimation["items"] == ["b", "c", "d"]
    assert set(decision.proposal.labels) == {"b", "c", "d"}
    assert "The list in production also shows a and e" in decision.against["Few candidates"]


def by_models(log):
    """The list that models propose; None where they propose none."""
    return next((ground.labels for ground in evidence_of(log).grounds if ground.name == "models"), None)


def without(log, rows):
    return ClickLog(log.items[~rows], log.clicks[~rows], log.queries[~rows], LABELS, ("shoes",))


def test_models_do_not_propose_a_list_that_was_refused(plain):
    """The best list was shown in the end alone, so that it is not compared; models would propose it."""
    rare = without(plain, (plain.items == [3, 2, 1]).all(axis=1))
    assert by_models(rare) == ("d", "c", "b")
    rng = np.random.default_rng(13)
    items = np.vstack([rare.items, np.tile([3, 2, 1], (1500, 1))])
    log = ClickLog(items, np.vstack([rare.clicks, clicks_of(items[-1500:], rng)]), np.zeros(len(items)), LABELS, ("shoes",))
    evidence = evidence_of(log)
    assert [each.labels for each in evidence.refused] == [("d", "c", "b")]
    assert evidence.fitting
    assert ("d", "c", "b") not in [ground.labels for ground in evidence.grounds]


def test_models_propose_an_item_only_where_it_was_shown(plain):
    """The item d never had the first position: nobody knows what users do there."""
    hidden = without(plain, plain.items[:, 0] == 3)
    proposed = by_models(hidden)
    assert proposed is not None
    assert proposed[0] != "d"
    few = ClickLog(
        np.vstack([hidden.items, plain.items[plain.items[:, 0] == 3][:99]]),
        np.vstack([hidden.clicks, plain.clicks[plain.items[:, 0] == 3][:99]]), np.zeros(len(hidden) + 99), LABELS, ("shoes",),
    )  # fmt: skip
    assert by_models(few)[0] != "d"


def test_what_the_list_in_production_earned_is_that_of_its_sessions_and_of_its_beginnings():
    log = log_of(SEVERAL, np.random.default_rng(14))
    shows = (log.items[:, :2] == [0, 1]).all(axis=1)
    evidence = evidence_of(log)
    sessions = Models(log, "clicks", 0).sessions("shoes")
    judge = Inquiry(Models(log, "clicks", 0), sessions, SETTINGS)
    assert judge._base == pytest.approx(log.clicks[shows].sum() / shows.sum())
    assert evidence.variance == pytest.approx(log.clicks.sum(axis=1).var())


def test_models_propose_an_item_only_if_it_was_shown_at_the_same_time(plain):
    """The items d and e replaced a and b at one time: what changed with the items, and what with the time? Only c remained."""
    old, new = (plain.items < 3).all(axis=1), (plain.items >= 2).all(axis=1)
    n = min(old.sum(), 4 * new.sum())
    rows = np.r_[np.flatnonzero(old)[:n], np.flatnonzero(new)]
    log = ClickLog(plain.items[rows], plain.clicks[rows], np.zeros(len(rows)), LABELS, ("shoes",))
    evidence = evidence_of(log)
    assert evidence.fitting
    assert not {"d", "e"} & {label for ground in evidence.grounds for label in ground.labels[:2]}


def test_models_speak_where_sessions_are_enough_and_lists_differ(plain):
    """Of 330 sessions 99 are held out, of 334 there are 100."""

    def may_speak(log, reward="clicks"):
        models = Models(log, reward, 0)
        return Inquiry(models, models.sessions("shoes"), replace(SETTINGS, reward=reward))._models_may_speak

    assert [may_speak(plain[:n]) for n in (330, 334)] == [False, True]
    assert not may_speak(plain[:334], "satisfaction")
    assert not may_speak(plain[(plain.items == [0, 1, 2]).all(axis=1)])
