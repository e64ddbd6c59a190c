"""A ranker from a click log: what the estimates are worth, what the gradient is, what the file holds, what is refused."""

from __future__ import annotations

import itertools
import re
import sys
import warnings
import zipfile

import gymnasium as gym
import numpy as np
import pytest

import clickgym
from clickgym.envs import PositionBasedModel
from clickgym.offline import (
    ClickLog,
    FitWarning,
    FixedPolicy,
    LearnedRanker,
    ListPolicy,
    MixturePolicy,
    PlackettLucePolicy,
    UniformPolicy,
    evaluate,
    learn,
    write_tidy,
)
from clickgym.offline.commands.learn import DIFFERENCE, read_features
from clickgym.offline.learning.exposure import evidence, exposures, sessions_of
from clickgym.offline.learning.objective import Scorer, click_gradient, scores_of, softmax_gradient, to_go_gradient
from clickgym.offline.policies import placement

ATTRACTION, EXAMINATION = np.array([0.7, 0.5, 0.3, 0.2]), np.array([1.0, 0.5])
AGAINST = ListPolicy([[3, 2], [2, 0], [1, 3], [3, 1]], [0.4, 0.3, 0.2, 0.1])
"""A policy that shows the best item last, and not often."""
LABELS = ("a", "b", "c", "d")
NONE = np.zeros(0, np.int64)


def whole_log(policy, attraction=ATTRACTION, examination=EXAMINATION, unit=4000):
    """The log in which each list and each click vector comes exactly as often as expected: 4,000 is a common denominator."""
    items, clicks = [], []
    for ranking, share in zip(*policy.support(), strict=True):
        for pattern in itertools.product((0, 1), repeat=len(ranking)):
            rates = attraction[ranking] * examination
            times = unit * share * np.prod(np.where(pattern, rates, 1 - rates))
            assert abs(times - round(times)) < 1e-6
            items += [ranking] * round(times)
            clicks += [pattern] * round(times)
    order = np.random.default_rng(0).permutation(len(items))
    return ClickLog(np.array(items)[order], np.array(clicks)[order], [0] * len(items), LABELS, ("q",))


def told(log, logging, examination=EXAMINATION, further=NONE):
    """What all sessions of a log tell."""
    sessions = sessions_of(log, further)
    exposed = exposures(log, sessions, logging, examination, None, 0)
    return sessions, evidence(sessions, exposed, examination, np.ones(len(log), bool))


def random_log(sessions=3000, env="PBMRank-v0", seed=0, **arguments):
    made = gym.make(env, **arguments)
    return clickgym.record(clickgym.make_agent("Random", made, seed=seed), made, sessions, seed=seed), made


# ------------------------------------------------------------------------------------------------------------- estimates


def test_ips_has_the_mean_attraction_and_clicks_per_display_have_another():
    """Exactly, in the log of all lists and click vectors. N without the sessions that do not show an item gives the latter."""
    log = whole_log(AGAINST)
    of = told(log, AGAINST)[1]
    np.testing.assert_allclose(of.values(), ATTRACTION)
    displays = np.bincount(log.items.ravel())
    assert of.n.tolist() == [4000] * 4 > displays.tolist()
    np.testing.assert_allclose(of.clicks / displays, [0.35, 0.5 * (0.2 + 0.05) / 0.3, 0.3 * (0.3 + 0.2) / 0.7, 0.2 * 0.6 / 0.7])
    assert np.argsort(-of.clicks)[-1] == 0  # by clicks the best item is the worst


def test_doubly_robust_estimates_have_the_mean_attraction_for_any_prediction():
    of = told(whole_log(AGAINST), AGAINST)[1]
    for predicted in (np.zeros(4), np.full(4, 0.9), np.array([0.1, 0.9, 0.3, 0.0])):
        np.testing.assert_allclose(of.values(predicted), ATTRACTION)
    # Its variance is less where the prediction is right: what is added is 0 in the mean.
    assert not np.allclose(of.values(np.full(4, 0.9), clip=0.5), ATTRACTION)


def test_an_item_that_is_never_shown_is_not_judged_and_never_worth_0():
    log = whole_log(FixedPolicy([1, 2]))
    _, of = told(log, FixedPolicy([1, 2]), further=np.arange(4))
    assert of.judged.tolist() == [False, True, True, False]
    assert np.isnan(of.values(np.full(4, 0.3))[[0, 3]]).all()
    ranker = learn(log, "ips", logging=FixedPolicy([1, 2]), examination=EXAMINATION)
    assert ranker.facts["not_judged"] == 2
    assert ranker.facts["not_judged_first"] == ["a (query q)", "d (query q)"]


def test_sessions_count_where_the_item_was_a_candidate():
    """Item b is a candidate of every second session, and shown in each of these: its value is its click rate there."""
    candidates = [[0, 1], [0, 2]] * 100
    items = [[1, 0], [0, 2]] * 100
    clicks = [[1, 0], [0, 0]] * 50 + [[0, 1], [0, 0]] * 50
    log = ClickLog(items, clicks, [0] * 200, LABELS, ("q",), candidates=candidates)
    _, of = told(log, lambda query, labels, x: FixedPolicy([1, 0] if "b" in labels else [0, 1]), np.array([1.0, 1.0]))
    assert of.n.tolist() == [200, 100, 100]
    np.testing.assert_allclose(of.exposure, 1.0)
    np.testing.assert_allclose(of.values(), [0.25, 0.5, 0.0])  # with N = 200 it were 0.25, not 0.5


def test_exposure_is_the_mean_over_the_sessions_with_the_candidate():
    log = ClickLog(
        [[0], [1], [0], [2]], [[1], [0], [0], [1]], [0] * 4, LABELS, ("q",), candidates=[[0, 1], [0, 1], [0, 2], [1, 2]]
    )
    sessions, of = told(log, "uniform", np.array([0.8]))
    assert len(sessions.cases) == 3
    np.testing.assert_allclose(of.exposure, 0.4)
    with pytest.raises(ValueError, match=r"items\[0\] shows 'd', which is none of candidates\[0\]"):
        sessions_of(ClickLog([[3]], [[1]], [0], LABELS, ("q",), candidates=[[0, 1]]), NONE)


def test_propensities_of_random_lists_are_those_of_all_items():
    log, _ = random_log(50)
    of = told(log, None, np.array([1.0, 0.5, 0.4, 0.3, 0.2]), further=np.arange(10))[1]
    np.testing.assert_allclose(of.exposure, 0.24)


def test_propensities_of_a_policy_give_its_placements():
    log = whole_log(AGAINST)
    shown = AGAINST.item_position_probabilities(log.items, np.arange(2))
    with_them = ClickLog(log.items, log.clicks, log.queries, LABELS, ("q",), propensities=shown)
    np.testing.assert_allclose(told(with_them, None)[1].exposure, told(log, AGAINST)[1].exposure)


def test_a_log_of_one_list_with_propensities_of_1_is_no_log_of_random_lists():
    log = ClickLog([[1, 0]] * 4, [[1, 0]] * 4, [0] * 4, LABELS, ("q",), propensities=[[1.0, 1.0]] * 4)
    assert told(log, None, further=np.arange(4))[1].exposure.tolist() == [0.5, 1.0, 0.0, 0.0]


def test_positions_below_the_end_of_a_list_are_examined_by_nobody():
    log = ClickLog([[0, 1], [1, -1]], [[0, 1], [1, 0]], [0, 0], LABELS, ("q",))
    np.testing.assert_allclose(told(log, "uniform")[1].exposure, (1.0 + 0.5 * 0.5) / 2)


def test_placements_of_a_plackett_luce_policy_are_exact_for_8_items_and_drawn_for_more():
    """Null: the drawn placements have the exact mean; 100,000 draws, 27 cells, 5 standard errors: false alarm below 2e-5."""
    scores = np.array([1.0, 0.5, 0.0, -0.5, 2.0])
    few = PlackettLucePolicy(scores, 3)
    assert (placement(few, np.arange(5)) == few.item_positions).all()
    many = PlackettLucePolicy(np.append(scores, [0.1, 0.2, 0.3, 0.4]), 3)
    exact, drawn = many.item_positions, placement(many, np.arange(9))
    assert not (exact == drawn).all()
    assert (np.abs(drawn - exact) < 5 * np.sqrt(exact * (1 - exact) / 100_000)).all()


def test_a_mixture_shows_the_lists_of_its_parts():
    mixture = MixturePolicy([FixedPolicy([2, 0]), UniformPolicy(3, 2)], [0.9, 0.1])
    lists, probabilities = mixture.support()
    assert probabilities.sum() == pytest.approx(1.0)
    assert len(lists) == 6
    np.testing.assert_allclose(ListPolicy(lists, probabilities).item_positions, mixture.item_positions)
    for wrong in ([], 3, [FixedPolicy([0]), FixedPolicy([0, 1])]):
        with pytest.raises(ValueError, match="polic"):
            MixturePolicy(wrong, [0.5, 0.5])


# -------------------------------------------------------------------------------------------------------------- gradient

SCORES, GAINS = np.array([1.0, 0.5, 0.0, -0.5, 2.0]), np.array([0.1, 0.6, 0.9, 0.2, 0.3])
CHI = np.array([1.0, 0.6, 0.3])


def exact_gradient(scores, own_click=False):
    """The gradient of the expected gain, by enumeration of all lists; or what credit of the own click alone gives."""
    gradient = np.zeros(len(scores))
    for ranking in itertools.permutations(range(len(scores)), len(CHI)):
        probability, earned = 1.0, GAINS[list(ranking)] * CHI
        slopes, left = [], np.ones(len(scores), bool)
        for item in ranking:
            law = np.where(left, np.exp(scores), 0.0) / np.exp(scores)[left].sum()
            probability *= law[item]
            slopes.append(np.eye(len(scores))[item] - law)
            left[item] = False
        credit = earned if own_click else earned[::-1].cumsum()[::-1]
        gradient += probability * (credit[:, None] * slopes).sum(axis=0)
    return gradient


def test_the_gradient_to_go_is_that_of_the_expected_gain():
    """Null: the mean over drawn lists is the exact gradient. 40,000 rows of 4 lists; 5 standard errors at 5 entries: 3e-6."""
    exact, step = exact_gradient(SCORES), 1e-5

    def value(scores):
        policy = PlackettLucePolicy(scores, 3)
        return (policy.item_positions * np.outer(GAINS, CHI)).sum()

    slopes = [(value(SCORES + step * row) - value(SCORES - step * row)) / (2 * step) for row in np.eye(5)]
    np.testing.assert_allclose(exact, slopes, atol=1e-8)  # the enumeration is right
    rows = np.tile(SCORES, (40_000, 1))
    drawn = to_go_gradient(rows, np.tile(GAINS, (40_000, 1)), CHI, np.random.default_rng(0))
    error = drawn.std(axis=0) / np.sqrt(len(drawn))
    assert (np.abs(drawn.mean(axis=0) - exact) < 5 * error).all()
    assert (np.abs(drawn.mean(axis=0) - exact_gradient(SCORES, own_click=True)) > 20 * error).any()


def test_what_is_no_candidate_has_no_gradient_and_short_lists_count():
    scores = np.array([[1.0, -np.inf, 0.0, -np.inf, -np.inf]])
    gradient = to_go_gradient(np.tile(scores, (50, 1)), np.tile(GAINS, (50, 1)), CHI, np.random.default_rng(0))
    assert np.isfinite(gradient).all()
    assert (gradient[:, [1, 3, 4]] == 0).all()
    assert gradient[:, 0].any()


def test_a_sure_policy_has_a_finite_gradient():
    gradient = to_go_gradient(np.array([[40.0, 0, -1, -2, -40]]), GAINS[None], CHI, np.random.default_rng(0))
    assert np.isfinite(gradient).all()
    assert abs(gradient.sum()) < 1e-9


@pytest.mark.parametrize("clicked", [0.0, 1.0])
def test_the_gradient_of_clicks_is_that_of_their_likelihood(clicked):
    def value(score):
        return click_gradient(np.array([score]), np.array([0.6]), np.array([clicked]))[0][0]

    slope = (value(0.3 + 1e-6) - value(0.3 - 1e-6)) / 2e-6
    assert click_gradient(np.array([0.3]), np.array([0.6]), np.array([clicked]))[1][0] == pytest.approx(slope, abs=1e-8)


def test_the_softmax_gradient_cuts_negative_values():
    gains, scores = np.array([[0.5, -0.4, 0.1]]), np.array([[0.2, 0.1, -0.3]])
    law = np.exp(scores) / np.exp(scores).sum()
    np.testing.assert_allclose(softmax_gradient(scores, gains), [[0.5, 0.0, 0.1]] - 0.6 * law)


@pytest.mark.parametrize("sizes", [(3, 1), (3, 4, 5, 1)])
def test_a_scorer_climbs_the_gradient_of_its_scores(sizes):
    """The first step of Adam is the sign of the gradient, which central differences of each parameter give."""
    rng = np.random.default_rng(0)
    scorer, x, gradient = Scorer(sizes, rng), rng.normal(size=(6, 3)), rng.normal(size=6)
    before = [(weights.copy(), biases.copy()) for weights, biases in scorer.layers]
    scorer.forward(x)
    scorer.ascend(gradient)
    for layer, (values, changed) in enumerate(zip(before, scorer.layers, strict=True)):
        for part in (0, 1):
            for place in np.ndindex(values[part].shape):
                ends = []
                for shift in (1e-6, -1e-6):
                    moved = [(weights.copy(), biases.copy()) for weights, biases in before]
                    moved[layer][part][place] += shift
                    ends.append(gradient @ scores_of(moved, x))
                step = changed[part][place] - values[part][place]
                assert step == pytest.approx(
                    scorer.rate * np.sign(ends[0] - ends[1]) * (abs(ends[0] - ends[1]) > 1e-12), abs=1e-6
                )


# --------------------------------------------------------------------------------------------------------------- learning


@pytest.mark.parametrize("method", ["ips", "dr", "softmax"])
def test_only_a_log_against_the_order_tells_estimates_from_clicks(method):
    ranker = learn(whole_log(AGAINST), method, logging=AGAINST, examination=EXAMINATION)
    assert ranker("q", LABELS) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("method", ["ips", "dr", "softmax"])
def test_random_lists_of_a_query_give_nearly_its_best_list(method):
    log, env = random_log(10_000)
    assert learn(log, method).evaluate(env).share > 0.95


@pytest.mark.parametrize("method", ["ips", "dr"])
def test_a_linear_scorer_of_products_learns_what_users_prefer(method):
    log, env = random_log(10_000, "ContextualPBMRank-v0", instance="personal:seed=100,features=outer,n_users=40")
    model = env.unwrapped.model
    assert learn(log, method, features=model, examination=model.base.examination, steps=1500).evaluate(env).share > 0.9


def test_features_of_a_log_are_those_of_what_it_shows():
    log, env = random_log(3000, "ContextualPBMRank-v0", instance="personal:seed=100,features=outer,n_users=5,n_pool=20")
    ranker = learn(log, "ips", examination=env.unwrapped.model.base.examination, steps=300)
    assert ranker.facts["pairs"] == 100
    assert ranker.evaluate(env).share > 0.8
    other = log.context.copy()
    other[7] += 0.1
    changed = ClickLog(
        log.items, log.clicks, log.queries, log.item_labels, log.query_labels, context=other, candidates=log.candidates
    )
    with pytest.raises(ValueError, match="other features of "):
        learn(changed, logging="uniform")


@pytest.mark.parametrize("method", ["ips", "dr", "softmax"])
def test_a_network_learns_from_plain_features_without_torch(method, monkeypatch):
    log, env = random_log(8000, "ContextualPBMRank-v0", instance="personal:seed=100,n_users=40")
    monkeypatch.setitem(sys.modules, "torch", None)
    ranker = learn(log, method, scorer="network", features=env.unwrapped.model, hidden=(32, 32), steps=800)
    assert ranker.evaluate(env).share > 0.6  # a linear scorer of these features: 0.1


def test_the_same_seed_gives_the_same_ranker_and_another_another():
    log, _ = random_log(500)
    digests = [learn(log, "ips", seed=seed, steps=200).digest for seed in (0, 0, 1)]
    assert digests[0] == digests[1] != digests[2]


def test_a_table_keyed_by_pairs_gives_a_query_its_own_order():
    lists, clicks = [[0, 1], [1, 0]] * 200, [[1, 0], [0, 1]] * 200
    log = ClickLog(lists * 2, clicks + [[0, 1], [1, 0]] * 200, [0] * 400 + [1] * 400, ("a", "b"), ("p", "q"))
    table = {("p", "a"): [1.0], ("p", "b"): [0.0], ("q", "a"): [0.0], ("q", "b"): [1.0], ("q", "new"): [2.0]}
    ranker = learn(log, "ips", features=table, logging="uniform", examination=[1.0, 0.5], steps=200)
    assert ranker("p", ["b", "a"]) == ["a", "b"]
    assert ranker("q", ["a", "b"]) == ["b", "a"]
    with pytest.raises(ValueError, match="features has no row for 'b', which the log has"):
        learn(log, features={"a": [1.0]}, logging="uniform")


def test_the_clip_bounds_the_weights():
    log = whole_log(AGAINST)
    plain, cut = (learn(log, "ips", logging=AGAINST, examination=EXAMINATION, clip=clip, steps=100) for clip in (None, 0.5))
    assert plain.facts["least_propensity"] == pytest.approx(0.15)
    assert plain.facts["clip"] == 0
    assert cut.facts["clip"] == 0.5
    np.testing.assert_allclose(
        told(log, AGAINST)[1].values(clip=0.5), ATTRACTION * [0.15, 0.25, 0.5, 0.6] / [0.5, 0.5, 0.5, 0.6]
    )


def test_the_held_out_estimate_is_that_of_the_list():
    """The held-out sessions are random, so the interval covers the true value at about 95 %; here 3 of its half widths."""
    log, env = random_log(5000)
    ranker = learn(log, "ips", examination=env.unwrapped.model.examination)
    held, value = ranker.facts["held_out"], ranker.evaluate(env).value
    assert held["sessions"] == 1000
    assert abs(held["value"] - value) < 3 * (held["interval"][1] - held["value"])
    assert held["gain_interval"][0] > 0.2


def test_the_estimate_of_held_out_sessions_counts_candidates_that_only_they_have():
    """Here four of five of them; as above, the interval covers the true value at about 95 %."""
    log, env = random_log(3000, "ContextualPBMRank-v0", instance="personal:seed=100,features=outer")
    ranker = learn(log, features=env.unwrapped.model, steps=1000)
    low, high = ranker.facts["held_out"]["interval"]
    assert low < ranker.evaluate(env).value < high


def test_clicks_that_fit_no_position_based_model_are_told():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learn(random_log(6000)[0], steps=100)
    with pytest.warns(FitWarning, match=r"do not fit a position-based model \(p = .*; clicks against what stands above"):
        learn(random_log(6000, "CMRank-v0")[0], steps=100)


def test_training_tells_how_far_it_is():
    seen = []
    learn(random_log(300)[0], "dr", steps=200, on_progress=lambda *of: seen.append(of))
    assert [of for of in seen if of[1] == of[2]][-1][0] == "lists"
    assert {what for what, *_ in seen} == {"clicks", "lists"}


# ------------------------------------------------------------------------------------------------------------------ value


def test_the_value_of_a_list_is_exact_where_the_users_are_known():
    users = PositionBasedModel([0.1, 0.8, 0.4], [1.0, 0.5])
    table = {str(item): [rate] for item, rate in enumerate([0.5, 0.1, 0.9])}
    ranker = LearnedRanker(
        [([[1.0]], [0.0])], mean=[0], scale=[1], n_items=3, n_positions=2, table=table, facts={"clicks_per_session": 0.5}
    )
    value = ranker.evaluate(users)
    assert value.value == pytest.approx(0.4 + 0.05)
    assert value.optimum == pytest.approx(1.0)
    assert value.random == pytest.approx(1.3 / 3 * 1.5, abs=0.01)
    assert value.sessions == 0
    assert value.share < 0
    assert "the log's policy 0.5000" in str(value)


def test_the_value_over_candidates_is_that_of_a_run():
    """Null: the mean clicks of a run have the mean of `evaluate`; 4,000 sessions, 5 standard errors."""
    env = gym.make("ContextualPBMRank-v0", instance="linear:seed=3")
    model = env.unwrapped.model
    ranker = LearnedRanker(
        [(model.theta[:, None], [0.0])], mean=np.zeros(model.n_features), scale=np.ones(model.n_features),
        n_items=model.n_items, n_positions=model.n_positions,
    )  # fmt: skip
    value = ranker.evaluate(env)
    assert value.share == pytest.approx(1.0, abs=1e-9)
    assert value.sessions == 20_000
    run = clickgym.run(ranker, env, 4000, seed=0)
    assert run.regret[-1] == pytest.approx(0.0, abs=1e-6)
    assert run.clicks[-1] / 4000 == pytest.approx(value.value, abs=5 * np.sqrt(model.n_positions) / np.sqrt(4000))
    assert repr(ranker.evaluate(env)) == repr(value)  # the draw is fixed


def test_users_that_change_have_no_value():
    ranker = learn(random_log(300)[0], steps=10)
    with pytest.raises(ValueError, match="expected a click model that does not change"):
        ranker.evaluate("NonStationaryPBMRank-v0")


def test_its_lists_are_policies_for_off_policy_evaluation():
    log, env = random_log(3000)
    ranker = learn(log, steps=500)
    estimate = evaluate(log, ranker.policies(log), "item-position")
    low, high = estimate.interval
    assert low - 0.1 < ranker.evaluate(env).value < high + 0.1
    contextual, _ = random_log(10, "ContextualPBMRank-v0", instance="personal:seed=100,n_users=5,n_pool=20")
    with pytest.raises(ValueError, match="no query has one list"):
        ranker.policies(contextual)


# ------------------------------------------------------------------------------------------------------------------- file


@pytest.fixture
def ranker():
    rng = np.random.default_rng(0)
    layers = [(rng.normal(size=(3, 4)), rng.normal(size=4)), (rng.normal(size=(4, 1)), rng.normal(size=1))]
    table = {("q", "a"): [1.0, 2.0, 3.0], "b": [0.0, 0.0, 1.0]}
    return LearnedRanker(
        layers, mean=[1, 2, 3], scale=[0.5, 1, 2], n_items=4, n_positions=2, table=table, facts={"method": "dr"}
    )


def test_a_file_holds_the_ranker_and_its_scaling(ranker, tmp_path):
    ranker.save(tmp_path / "r.npz")
    loaded = LearnedRanker.load(tmp_path / "r.npz")
    x = np.random.default_rng(1).normal(size=(4, 3))
    assert (loaded.scores(x) == ranker.scores(x)).all()
    assert loaded.digest == ranker.digest
    assert loaded("q", ["a", "b"]) == ranker("q", ["a", "b"])
    assert loaded.facts == {"method": "dr"}
    assert (loaded.mean == [1, 2, 3]).all()
    assert (loaded.n_items, loaded.n_positions) == (4, 2)
    hidden = np.maximum((x - ranker.mean) / ranker.scale @ ranker.layers[0][0] + ranker.layers[0][1], 0)
    np.testing.assert_allclose(ranker.scores(x), (hidden @ ranker.layers[1][0] + ranker.layers[1][1])[:, 0])


def test_damaged_files_are_refused_in_one_line(ranker, tmp_path):
    content, path = ranker.to_bytes(), tmp_path / "r.npz"
    rng = np.random.default_rng(0)
    damaged = [b"", b"no zip", content[:-40], content[: len(content) // 2]]
    for place in rng.integers(30, len(content) - 30, 40):
        damaged.append(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
    refused = 0
    for each in damaged:
        path.write_bytes(each)
        try:
            words = LearnedRanker.load(path).digest
        except ValueError as error:
            refused, words = refused + 1, str(error)
        # A byte that says nothing, or one line.
        assert words == ranker.digest or re.fullmatch(".* is no saved ranker, or damaged .*; restore it .*", words)
    assert refused > len(damaged) // 2
    np.savez(path, other=np.zeros(3))
    with pytest.raises(ValueError, match="is no saved ranker, or damaged"):
        LearnedRanker.load(path)
    with pytest.raises(FileNotFoundError):
        LearnedRanker.load(tmp_path / "none.npz")


def test_an_array_that_claims_to_be_larger_is_refused_before_memory_is_taken(ranker, tmp_path):
    source, path = tmp_path / "r.npz", tmp_path / "huge.npz"
    ranker.save(source)
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "mean.npy":
                place = content.index(b"(3,)")
                content = content[:place] + b"(9000000000,)" + content[place + 4 :].replace(b"}" + b" " * 9, b"}", 1)
            new.writestr(name, content)
    with pytest.raises(ValueError, match=r"an array claims the shape \(9000000000,\)"):
        LearnedRanker.load(path)


# ---------------------------------------------------------------------------------------------------------------- bad input

LOG = ClickLog([[0, 1], [1, 0]] * 20, [[1, 0], [0, 1]] * 20, [0] * 40, ("a", "b"), ("q",))
CHANGING = ClickLog(
    [[0, 1], [1, 2]] * 20, [[1, 0], [0, 1]] * 20, [0] * 40, ("a", "b", "c"), ("q",), candidates=[[0, 1], [1, 2]] * 20
)


@pytest.mark.parametrize(
    ("log", "arguments", "message"),
    [
        (LOG, {}, "the log has no propensities; expected a column propensity, or the policy that made it"),
        (LOG, {"logging": "empirical"}, "logging is 'empirical'; expected uniform, a policy"),
        (CHANGING, {"logging": lambda *_: [[0, 0], [0, 0]]}, r"items\[0\] shows 'a', which the logging policy never shows"),
        (LOG, {"logging": {"p": UniformPolicy(2, 2)}}, "logging has no policy for the query 'q'"),
        (LOG, {"logging": UniformPolicy(2, 1)}, "the logging policy fills 1 positions; the log has 2"),
        (LOG, {"logging": lambda *_: np.full((2, 2), 1.5)}, r"placements that logging returned\[0, 0\] is 1.5"),
        (CHANGING, {"logging": UniformPolicy(3, 2)}, "candidates change from session to session; expected propensities"),
        (LOG, {"method": "mrr"}, "unknown method 'mrr'"),
        (LOG, {"scorer": "tree"}, "unknown scorer 'tree'"),
        (LOG, {"examination": [1.0]}, "examination has shape"),
        (LOG, {"examination": [0.0, 0.0]}, "examination is 0 at all positions"),
        (LOG, {"clip": 0.0}, "clip is 0.0; expected a number in"),
        (LOG, {"held_out": 1.0}, "held_out is 1.0; expected a number in"),
        (LOG, {"hidden": [0]}, "hidden is 0; expected a positive integer"),
        (LOG, {"hidden": None}, "hidden is None"),
        (LOG, {"steps": 0}, "steps is 0"),
        (LOG, {"seed": -1}, "seed is -1"),
        (LOG, {"logging": 3}, "logging is 3"),
        (LOG, {"on_progress": 3}, "on_progress is 3"),
        (3, {}, "log is 3; expected a ClickLog"),
        (LOG, {"features": 3}, "features is 3"),
        (LOG[[0]], {}, "the log has 1 sessions; expected two or more"),
    ],
)
def test_bad_input_is_refused_in_one_line(log, arguments, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        learn(log, **arguments)
    assert "\n" not in str(error.value)


def test_one_candidate_gives_nothing_to_learn():
    log = ClickLog([[0]] * 10, [[1]] * 10, [0] * 10, ("a",), ("q",))
    with pytest.raises(ValueError, match="no session has two candidates that can be judged"):
        learn(log, logging="uniform")


def test_what_a_ranker_cannot_order_is_refused(ranker):
    for features, message in (
        ([[1.0, 2.0]], r"features has shape \(1, 2\)"),
        (np.zeros((5, 3)), "features has 5 candidates; the ranker learned from sessions of up to 4 only"),
        ([[1.0, 2.0, np.nan]], "features"),
    ):
        with pytest.raises(ValueError, match=message):
            ranker.best(features)
    with pytest.raises(ValueError, match="the ranker has no features of the item 'z'"):
        ranker("q", ["a", "z"])
    bare = LearnedRanker([([[1.0]], [0.0])], mean=[0], scale=[1], n_items=2, n_positions=1)
    with pytest.raises(ValueError, match="the ranker has no table of features"):
        bare("q", ["a"])


def test_candidates_of_equal_score_come_in_random_order():
    flat = LearnedRanker([([[0.0]], [0.0])], mean=[0], scale=[1], n_items=4, n_positions=2, seed=0)
    firsts = {int(flat.rank({"features": np.zeros((4, 1))})[0]) for _ in range(60)}
    assert firsts == {0, 1, 2, 3}


# ---------------------------------------------------------------------------------------------------------------- command


def test_the_command_says_first_how_it_differs_and_writes_the_ranker(tmp_path, printed, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_tidy(random_log(2000)[0], tmp_path / "log.csv")
    out = printed(["learn", "log.csv", "--method", "dr", "--out", "ranker"]).splitlines()
    assert out[0] == DIFFERENCE
    assert "agent.learn(log)" in out[0]
    assert out[-1] == f"ranker.npz: SHA-256 {LearnedRanker.load(tmp_path / 'ranker.npz').digest}"
    assert any(line.startswith("not judged: 0 of 10") for line in out)
    assert any(line.startswith("least exposure") and "sessions that count 1,600" in line for line in out)


def test_the_command_names_what_it_cannot_judge(tmp_path, printed, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_tidy(whole_log(FixedPolicy([1, 2]), unit=1000), tmp_path / "log.csv")
    (tmp_path / "items.csv").write_text("query,item,price\nall,b,1\nall,c,2\nq,b,1\nq,c,2\nq,a,3\n")
    out = printed(["learn", "log.csv", "--logging", "fixed:b,c", "--features", "items.csv", "--out", "r.npz"])
    assert "not judged: 0 of 2" in out  # item a has no row in the log, and no number there
    assert "list for q: b, c" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--out", "r"], "the log has no propensities; expected a column propensity"),
        (["--out", "none/r"], "--out is none/r; expected the name of a .npz file in a folder that exists"),
        (["--out", "r", "--examination", "1,x"], "--examination is '1,x'; expected numbers"),
        (["--out", "r", "--features", "bad.csv"], "bad.csv cannot be read as a table of features (features"),
        (["--out", "r", "--features", "twice.csv"], "'a' is there twice"),
        (["--out", "r", "--features", "log.csv"], "('q', 'a') is there twice"),
    ],
)
def test_the_command_refuses_in_one_line(words, message, tmp_path, refused, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_tidy(LOG, tmp_path / "log.csv")
    (tmp_path / "bad.csv").write_text("item,price\na,1\nb,y\n")
    (tmp_path / "twice.csv").write_text("item,price\na,1\na,2\n")
    error = refused(["learn", "log.csv", *words]).strip()
    assert message in error
    assert "\n" not in error
    assert not (tmp_path / "r.npz").exists()


def test_a_table_of_features_is_keyed_by_item_or_by_query_and_item(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("item,x,y\na,1,2\nb,3,4\n")
    assert read_features(path) == {"a": [1.0, 2.0], "b": [3.0, 4.0]}
    path.write_text("x,item,query\n1,a,q\n2,a,r\n")
    assert read_features(path) == {("q", "a"): [1.0], ("r", "a"): [2.0]}
