"""Clicks that earn item values: the exact optimum, rewards and regret; the rules that are not right; what is refused."""

from __future__ import annotations

import itertools
import pickle
import re

import gymnasium as gym
import numpy as np
import pytest
from click_stories import make_model

import clickgym
from clickgym.envs import (
    CLICK_MODELS,
    CascadeMDP,
    CascadeModel,
    ClickEnv,
    ClickModel,
    ContextualClickEnv,
    DependentClickModel,
    LabelledModel,
    LinearModel,
    PiecewiseStationaryModel,
    PositionBasedModel,
    TrustBiasModel,
    UserBrowsingModel,
)
from clickgym.envs.click_model import MAX_SEARCH

EXTREMES = 0.0, 0.3, 1.0


def equal_termination(rng, n_items, n_positions):
    """A DCM of one termination probability, but for the last position's, which is immaterial."""
    termination = np.full(n_positions, rng.random())
    termination[-1] = rng.random()
    return DependentClickModel(rng.random(n_items), termination)


def random_model(name, rng, n_items=5, n_positions=3):
    if name == "DCM, equal":
        return equal_termination(rng, n_items, n_positions)
    return make_model(CLICK_MODELS[name], n_items, n_positions, lambda shape: rng.choice([*EXTREMES, *rng.random(7)], shape))


def random_values(rng, n_items=5):
    values = np.where(rng.random(n_items) < 0.2, 0.0, rng.integers(1, 9, n_items) * rng.random())
    return values if values.any() else np.ones(n_items) * 2


def worth(model, values, ranking, cutoff):
    """The definition: each click earns the value of its item, down to the cutoff."""
    return float(model.click_probabilities(ranking)[:cutoff] @ values[list(ranking)][:cutoff])


def most(model, values, cutoff):
    lists = itertools.permutations(range(model.n_items), cutoff)
    rest = range(model.n_items)
    whole = [(*head, *[i for i in rest if i not in head][: model.n_positions - cutoff]) for head in lists]
    return max(worth(model, values, ranking, cutoff) for ranking in whole)


MODELS = ["CM", "PBM", "DCM", "DCM, equal", "UBM", "DBN", "CCM", "TPBM"]


@pytest.mark.parametrize("name", MODELS)
def test_the_best_list_by_value_is_that_of_enumeration(name):
    rng = np.random.default_rng(51)
    for number in range(500):
        model, values = random_model(name, rng), random_values(rng)
        cutoff = None if number % 2 else int(rng.integers(1, 4))
        valued = model.with_item_values(values)
        best = valued.optimal_ranking(cutoff=cutoff)
        assert sorted(set(best.tolist())) == sorted(best.tolist())
        expected = valued.expected_reward(best, cutoff=cutoff)
        assert expected == pytest.approx(worth(model, values, best, cutoff or 3), rel=0, abs=1e-12)
        assert expected == pytest.approx(most(model, values, cutoff or 3), rel=0, abs=1e-12)


def best_rule(model, values, rule, cutoff=3):
    """The list of a plausible rule."""
    α = model.attraction
    if rule == "by value times attraction":
        return np.argsort(-α * values, kind="stable")[:3]
    if rule == "most valuable attraction, by value":
        chosen = np.argsort(-α * values, kind="stable")[:cutoff]
        head = chosen[np.argsort(-values[chosen], kind="stable")]
    elif rule == "matched to the weights of no click":
        weights = model.examination[:cutoff, 0]
        head = np.empty(cutoff, np.int64)
        head[np.argsort(-weights, kind="stable")] = np.argsort(-α * values, kind="stable")[:cutoff]
    else:
        assert rule == "by value, as if all terminations were the mean"
        same = DependentClickModel(α, np.full(3, model.termination[: max(cutoff - 1, 1)].mean()))
        return same.with_item_values(values).optimal_ranking(cutoff=cutoff)
    return np.concatenate([head, [i for i in range(len(α)) if i not in head]])[:3]


@pytest.mark.parametrize("cutoff", [None, 2])
@pytest.mark.parametrize(
    ("name", "rule", "least"),
    [
        ("CM", "by value times attraction", 30),
        ("CM", "most valuable attraction, by value", 4),
        ("TPBM", "by value times attraction", 30),
        ("UBM", "matched to the weights of no click", 15),
        ("DCM", "by value, as if all terminations were the mean", 1),
    ],
)
def test_no_sorting_rule_takes_the_place_of_the_search(name, rule, least, cutoff):
    """⚠ Of 120 random models so many have a better list than that of the rule.

    In a DCM of which two positions count, only the first termination probability matters: there the scan is right.
    """
    rng, wrong = np.random.default_rng(17), 0
    for _ in range(120):
        model = make_model(CLICK_MODELS[name], 5, 3, rng.random)
        values = rng.random(5) * 5
        valued = model.with_item_values(values)
        best = valued.expected_reward(valued.optimal_ranking(cutoff=cutoff), cutoff=cutoff)
        loss = best - valued.expected_reward(best_rule(model, values, rule, cutoff or 3), cutoff=cutoff)
        assert loss > -1e-12
        wrong += loss > 1e-9
    assert wrong == 0 if (name, cutoff) == ("DCM", 2) else wrong >= least


@pytest.mark.parametrize("name", MODELS)
def test_no_list_has_negative_regret(name):
    rng = np.random.default_rng(6)
    model, values = random_model(name, rng, 6, 3), random_values(rng, 6)
    env = ClickEnv(model, item_values=values)
    _, info = env.reset(seed=0)
    for ranking in itertools.permutations(range(6), 3):
        *_, info = env.step(ranking)
        assert info["regret"] >= -1e-12
        assert info["expected_reward"] == pytest.approx(worth(model, values, ranking, 3), rel=0, abs=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_equal_values_scale_the_optimum_of_clicks(name):
    rng = np.random.default_rng(7)
    for _ in range(20):
        model = random_model(name, rng)
        optimum = model.expected_reward(model.optimal_ranking())
        valued = model.with_item_values(np.full(5, 2.5))
        assert valued.expected_reward(valued.optimal_ranking()) == pytest.approx(2.5 * optimum, rel=1e-12, abs=1e-12)


def test_worthless_items_stand_below_all_others():
    model = CascadeModel([0.9, 0.5, 0.4, 0.3], 2).with_item_values([0, 1, 2, 3])
    assert model.optimal_ranking().tolist() == [3, 2]
    model = PositionBasedModel([0.9, 0.5, 0.4], [0.2, 1.0]).with_item_values([0, 0, 7])
    assert model.optimal_ranking()[1] == 2


@pytest.mark.parametrize("env_id", ["CMRank-v0", "UBMRank-v0", "NonStationaryPBMRank-v0", "ContextualPBMRank-v0"])
def test_values_of_one_are_the_environment_without_values(env_id):
    plain = gym.make(env_id, reward="clicks")
    n = len(plain.unwrapped.model.items) if "Contextual" in env_id else plain.unwrapped.model.n_items
    ones = gym.make(env_id, reward="clicks", item_values=np.ones(n))
    assert ones.observation_space == plain.observation_space
    assert ones.unwrapped.model.to_dict() == plain.unwrapped.model.to_dict()
    agent = "PBMLinUCB:alpha=0.1" if "Contextual" in env_id else "CascadeTS"
    results = [clickgym.run(agent, env, 400, seed=3) for env in (plain, ones)]
    assert results[0].agent == results[1].agent
    assert (results[0].regret == results[1].regret).all()
    assert (results[0].reward == results[1].reward).all()


def test_a_session_pays_the_values_of_its_clicks_down_to_the_cutoff():
    values = np.array([3.0, 0.5, 2.0, 7.0])
    env = gym.make("PBMRank-v0", attraction=[0.9] * 4, examination=[1.0, 0.9, 0.9], item_values=values, cutoff=2)
    env.reset(seed=0)
    for ranking in ([0, 1, 2], [3, 2, 1]) * 20:
        clicks, reward, *_ = env.step(ranking)
        assert reward == (clicks * values[ranking])[:2].sum()


def test_streams_pay_the_same_law_and_late_rewards_are_values_as_well():
    values = np.arange(10) + 0.5
    envs = gym.make_vec("DBNRank-v0", num_envs=3, item_values=values)
    envs.reset(seed=0)
    lists = np.tile(np.arange(5), (3, 1))
    clicks, rewards, _, _, infos = envs.step(lists)
    assert (rewards == clicks @ values[:5]).all()
    assert (infos["regret"] >= 0).all()
    env = gym.make("CMRank-v0", item_values=values, arrival="batch:3")
    env.reset(seed=0)
    paid, earned = 0.0, 0.0
    for _ in range(30):
        *_, reward, _, _, info = env.step(range(5))
        paid, earned = paid + reward, earned + (info["true_clicks"] * values[:5]).sum()
    assert paid == earned > 0


def test_models_with_values_are_described_copied_and_relabelled_with_them():
    model = UserBrowsingModel([0.5, 0.4, 0.3], [[1.0, 0.0], [0.5, 0.9]]).with_item_values([1, 2, 3])
    assert ClickModel.from_dict(model.to_dict()) == model != model.base
    assert pickle.loads(pickle.dumps(model)) == model
    assert model.relabelled(np.array([2, 1, 0])).item_values.tolist() == [3, 2, 1]
    assert model.with_positions(1).item_values.tolist() == [1, 2, 3]
    assert model.with_item_values([3, 2, 1]).item_values.tolist() == [3, 2, 1]
    changing = PiecewiseStationaryModel([model.base, model.base], [0, 5]).with_item_values([1, 2, 3])
    assert all(epoch == model for epoch in changing.epochs)
    assert PiecewiseStationaryModel(**{k: v for k, v in changing.to_dict().items() if k != "model"}) == changing


# ------------------------------------------------------------------------------------------------- candidates that change


def contextual(base, rng, named):
    items = rng.random((9, 2)) * 0.7
    if not named:
        return LinearModel(base, theta=[0.6, 0.7], items=items)
    candidates = [rng.permutation(9)[:7], rng.permutation(9)[:8]]
    return LabelledModel(base, candidates, [rng.random(7), rng.random(8)], items)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("name", ["CM", "PBM", "DCM", "DCM, equal", "UBM", "CCM"])
@pytest.mark.parametrize("cutoff", [None, 2])
def test_every_session_has_the_best_list_of_its_candidates_by_value(name, named, cutoff):
    rng = np.random.default_rng(8)
    base, values = random_model(name, rng), rng.random(9) * 4
    model = contextual(base, rng, named)
    env = ContextualClickEnv(model, item_values=values, cutoff=cutoff)
    observation, info = env.reset(seed=0)
    rows = {tuple(row): value for row, value in zip(model.items.tolist(), values, strict=True)}
    for _ in range(15):
        assert env.observation_space.contains(observation)
        assert [rows[tuple(row)] for row in observation["features"].tolist()] == observation["values"].tolist()
        task = env.task
        session = base.with_items(attraction=task.round.attraction)
        assert task.round.optimum[0] == pytest.approx(most(session, observation["values"], cutoff or 3), rel=0, abs=1e-12)
        best = session.with_item_values(observation["values"])
        assert best.expected_reward(task.round.best, cutoff=cutoff) == pytest.approx(task.round.optimum[0], abs=1e-12)
        observation, _, _, _, info = env.step(rng.permutation(5)[:3])
        assert info["regret"] >= -1e-12


def test_streams_of_candidates_observe_their_values():
    model = contextual(CascadeModel(np.zeros(5), 3), np.random.default_rng(1), named=False)
    envs = clickgym.envs.ClickVectorEnv(model, 4, item_values=np.arange(9))
    observations, _ = envs.reset(seed=0)
    rows = {tuple(row): value for value, row in enumerate(model.items.tolist())}
    for _ in range(3):
        shown = [[rows[tuple(row)] for row in stream] for stream in observations["features"].tolist()]
        assert observations["values"].tolist() == shown
        observations, _, _, _, infos = envs.step(np.tile(np.arange(3), (4, 1)))
        assert (infos["regret"] >= -1e-12).all()


def test_the_dependent_click_model_has_its_optimum_in_sessions_of_30_candidates():
    """17 million lists of 5, more than without the bound of this model could be searched."""
    env = gym.make("ContextualDCMRank-v0", instance="linear:n_items=30", reward="clicks")
    env.reset(seed=0)
    assert env.unwrapped.model.n_items == 30
    rng = np.random.default_rng(0)
    for _ in range(5):
        *_, info = env.step(rng.permutation(30)[:5])
        assert info["regret"] > 0
    assert 17_000_000 > MAX_SEARCH < DependentClickModel.max_search


# ------------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1, 2, 3], "item_values has shape (3,); expected (10,)"),
        ([-1.0] + [1.0] * 9, "item_values[0] is -1.0; expected a finite number from 0"),
        ([1.0] * 9 + [np.nan], "item_values[9] is nan; expected a finite number from 0"),
        ([np.inf] * 10, "item_values[0] is inf"),
        ([0.0] * 10, "item_values are all 0; expected at least one above 0"),
        ("prices", "item_values must be an array of numbers, got 'prices'"),
    ],
)
def test_bad_values_are_refused_in_one_line(values, words):
    for make in (gym.make, gym.make_vec):
        with pytest.raises((ValueError, TypeError), match=re.escape(words)) as error:
            make("PBMRank-v0", item_values=values)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("env_id", "arguments", "words"),
    [
        ("PBMRank-v0", {"reward": "any_click"}, "the reward 'any_click' counts no clicks that item_values could weigh"),
        ("DCMRank-v0", {"reward": "satisfaction"}, "the reward 'satisfaction' counts no clicks"),
        ("PBMRank-v0", {"churn": 0.1}, "churn cannot be given with item_values in environments of a PBM"),
        ("PBMRank-v0", {"available": 7}, "available cannot be given with item_values"),
        ("PBMRank-v0", {"bots": "random:share=0.1"}, "bots cannot be given with item_values"),
        ("UBMRank-v0", {"instance": "uniform:n_items=40,n_positions=8"}, "is known only by exact search"),
    ],
)
def test_what_has_no_value_is_refused(env_id, arguments, words):
    n_items = 40 if "instance" in arguments else 10
    with pytest.raises(ValueError, match=re.escape(words)):
        gym.make(env_id, item_values=range(n_items), **arguments)


def test_users_with_a_memory_by_grades_and_an_assignment_in_each_session_have_no_values():
    with pytest.raises(ValueError, match="click_rewards"):
        gym.make("CascadeMDPRank-v0", item_values=[1, 2])
    grades = clickgym.envs.GradedModel("perfect", [[1.0]] * 2, [[0, 1]], [[0, 1]], n_items=2, n_positions=1)
    with pytest.raises(ValueError, match="grades say what its documents are worth"):
        grades.with_item_values([1, 2])
    base = TrustBiasModel([0, 0], [1.0])
    with pytest.raises(ValueError, match="with item_values in a TrustBiasModel is an assignment"):
        ContextualClickEnv(LinearModel(base, [0.9], [[1.0], [0.5]]), item_values=[1, 2])
    with pytest.raises(ValueError, match="arrival cannot be given"):
        ContextualClickEnv(LinearModel(CascadeModel([0, 0], 1), [0.9], [[1.0], [0.5]]), item_values=[1, 2], arrival="delay:3")
    assert CascadeMDP.item_values is None
