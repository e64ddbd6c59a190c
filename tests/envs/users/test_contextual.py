"""Tests of contextual models and environments: laws of candidates and clicks, the optimum of every
session, both engines, conventions.
"""

from __future__ import annotations

import itertools
from contextlib import nullcontext

import gymnasium as gym
import numpy as np
import pytest

import clickgym
from clickgym import envs
from clickgym.core.kernels import uncompiled
from tests.helpers import compiled_pairs
from tests.helpers.click_stories import assert_sampled_from, realised_reward
from tests.helpers.engines import assert_engines_agree
from tests.helpers.registries import CONTEXTUAL_AGENTS, default_ids

pytestmark = pytest.mark.uncompiled

L, K = 5, 3
THETA = [0.3, -0.2, 0.9, 0.1]
USERS = [[0.2, 0.1], [0.4, 0.0]]
ITEMS = [[0.6, 0.2], [0.5, 0.1], [0.3, 0.6], [0.1, 0.1], [0.0, 0.7], [0.8, -0.1], [0.2, 0.3]]
BROWSING = [[0.9, 0, 0], [0.3, 0.95, 0], [0.5, 0.2, 0.8]]
BASES = {
    "UBM": envs.UserBrowsingModel(np.zeros(L), BROWSING),
    "PBM": envs.PositionBasedModel(np.zeros(L), [0.5, 0.9, 0.3]),
    "CM": envs.CascadeModel(np.zeros(L), K),
    "DCM": envs.DependentClickModel(np.zeros(L), [0.9, 0.2, 0.6]),
}
MODELS = {
    name: envs.ContextualModel(base, ITEMS, None, USERS, theta=THETA)
    for name, base in BASES.items()
}
ATTRACTION = [[0.9, 0.1, 0.4, 0.6, 0.2], [0.3, 0.8, 0.0, 1.0, 0.5, 0.7]]
CANDIDATES = [[6, 0, 2, 3, 5], [1, 0, 3, 4, 2, 6]]
LABELLED = {
    name: envs.ContextualModel(base, ITEMS, ATTRACTION, USERS, CANDIDATES)
    for name, base in BASES.items()
}


def session_of(model, now):
    """The click model of the current session."""
    return model.at(int(now.user[0]), now.items[0])


def optimum(model, reward, cutoff):
    """The largest expected reward, found by trying every list."""
    lists = itertools.permutations(range(model.n_items), model.n_positions)
    return max(model.expected_reward(np.array(ranking), reward, cutoff) for ranking in lists)


# ---------------------------------------------------------------------------------------- the model


def test_description_of_products():
    instance = envs.load_instance("personal:features=outer,popularity=0.2,n_pool=25,n_users=3")
    for model in instance.models.values():
        again = envs.ClickModel.from_dict(model.to_dict())
        assert again == model
        assert again.n_features == again.with_positions(2).n_features == model.n_features


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("models", [MODELS, LABELLED], ids=["linear", "labels"])
def test_description(name, models):
    model = models[name]
    assert envs.ClickModel.from_dict(model.to_dict()) == model
    assert model.kind == f"ContextualModel of {name}"
    shorter = model.with_positions(2)
    assert (shorter.n_positions, shorter.n_items, shorter.n_features) == (2, L, 4)
    assert shorter.base == BASES[name].with_positions(2)


def test_attractions():
    """The attractions of a session and on average are θᵀx of the user and the items, or the labels
    given for each user and item.
    """
    linear, labelled, items = MODELS["UBM"], LABELLED["UBM"], [0, 6, 2, 3, 5]
    features = np.array([[*USERS[1], *ITEMS[j]] for j in items])
    session = linear.at(1, items)
    assert session.with_items(attraction=np.zeros(L)) == BASES["UBM"]
    np.testing.assert_allclose(session.attraction, features @ THETA)
    mean = np.mean([THETA @ np.array([*user, *item]) for user in USERS for item in ITEMS])
    np.testing.assert_allclose(linear.mean.attraction, np.full(L, mean))
    assert labelled.at(1, [2, 0, 6, 4, 1]).attraction.tolist() == [0.5, 0.8, 0.7, 1.0, 0.3]
    assert labelled.at(0, [2, 0, 6, 3, 5]).attraction.tolist() == [0.4, 0.1, 0.9, 0.6, 0.2]
    # users are equally likely, not candidates
    np.testing.assert_allclose(labelled.mean.attraction, np.full(L, (0.44 + 0.55) / 2))
    with pytest.raises(ValueError, match="item 1 is not among the possible candidates of user"):
        labelled.at(0, [0, 1, 2, 3, 4])


# -------------------------------------------------------------------------------- laws of a session


@pytest.mark.parametrize(
    "model",
    [
        LABELLED["PBM"],
        envs.ContextualModel(BASES["PBM"], ITEMS, None, USERS, CANDIDATES, theta=THETA),
    ],
    ids=["labels", "linear"],
)
def test_law_of_named_candidates(model):
    """Each user has half of the sessions, with L of the user's candidates in random order, their
    features and attractions.

    The test of the law of (user, first candidate) has a false-alarm rate of 1e-6.
    """
    env = envs.ClickEnv(model)
    env.reset(seed=5)
    drawn = []
    for _ in range(2000):
        now = env.state
        user, items = int(now.user[0]), now.items[0].tolist()
        assert set(items) <= set(CANDIDATES[user])
        assert len(set(items)) == L
        assert now.features[0].tolist() == [[*USERS[user], *ITEMS[item]] for item in items]
        if len(drawn) < 200:  # in these sessions, all users and items occur
            np.testing.assert_allclose(now.values[0, 0], session_of(model, now).attraction)
        drawn.append((user, items[0]))
        env.step([0, 1, 2])
    law = {
        (user, item): 0.5 / len(items) for user, items in enumerate(CANDIDATES) for item in items
    }
    assert_sampled_from(law, drawn)


def test_law_of_candidates():
    """Each user with each ordered pair of candidates is equally likely, and so is each candidate
    after a session with a click.
    """
    base = envs.PositionBasedModel([0.0, 0.0], [0.9, 0.5])
    model = envs.ContextualModel(base, ITEMS[:4], None, USERS, theta=THETA)
    env = envs.ClickEnv(model)
    observation, _ = env.reset(seed=0)
    rows = {tuple(item): j for j, item in enumerate(ITEMS[:4])}
    drawn = []
    for _ in range(6000):
        features = observation["features"]
        assert np.all(features[0, :2] == features[1, :2])
        items = tuple(rows[tuple(row)] for row in features[:, 2:].tolist())
        drawn.append((int(features[0, 0] == USERS[1][0]), *items, int(observation["clicks"][0])))
        observation, *_ = env.step([0, 1])
    pairs = [(i, j) for i in range(4) for j in range(4) if i != j]
    assert_sampled_from(
        {(u, i, j): 1 / 24 for u in (0, 1) for i, j in pairs}, [entry[:3] for entry in drawn]
    )
    later, clicked = [entry[1] for entry in drawn], np.array([entry[3] for entry in drawn])
    clicked_later = [item for item, click in zip(later, clicked, strict=True) if click]
    # the next candidates do not depend on the clicks
    assert_sampled_from(dict.fromkeys(range(4), 1 / 4), clicked_later)


OTHERS = [0.1, 0.9, 0.4, 0.6, 0.2, 0.7, 0.3]
DBN = envs.DynamicBayesianModel(np.zeros(L), np.zeros(L), 0.8, n_positions=K)
OF_SATISFACTION = (
    envs.ContextualModel(DBN, ITEMS, ATTRACTION, USERS, CANDIDATES, satisfaction=OTHERS),
    envs.ContextualModel(DBN, ITEMS, None, USERS, theta=THETA, satisfaction=OTHERS),
)
ALL_MODELS = (*MODELS.values(), *LABELLED.values(), *OF_SATISFACTION)


@pytest.mark.parametrize(
    ("model", "reward", "cutoff"),
    [
        (model, reward, cutoff)
        for model in ALL_MODELS
        for reward in model.rewards
        for cutoff in (None, 2)
    ],
)
def test_regret_against_enumeration(model, reward, cutoff):
    env = envs.ClickEnv(model, reward, cutoff)
    env.reset(seed=2)
    rng = np.random.default_rng(0)
    for _ in range(25):
        session, ranking = session_of(model, env.state), rng.permutation(L)[:K]
        best, worth = env.task.best(env.state)[0], env.state.optimum[0]
        assert sorted(set(best.tolist())) == sorted(best.tolist())
        assert worth == pytest.approx(optimum(session, reward, cutoff), abs=1e-12)
        assert session.expected_reward(best, reward, cutoff) == pytest.approx(worth, abs=1e-12)
        observation, paid, *_, info = env.step(ranking)
        assert info["optimal_reward"] == worth
        assert info["expected_reward"] == pytest.approx(
            session.expected_reward(ranking, reward, cutoff), abs=1e-12
        )
        assert info["regret"] == worth - info["expected_reward"]
        if reward != "satisfaction":
            assert paid == realised_reward(reward, cutoff or K, observation["clicks"].tolist(), -1)


def test_users_whose_items_change_have_no_best_list():
    with pytest.raises(ValueError, match="the items of these users change in every session"):
        envs.ClickEnv(MODELS["PBM"]).task.model.optimal_ranking()


# ------------------------------------------------------------------------------------------ running


COMPILED = sorted({*CONTEXTUAL_AGENTS} - {"CMLinUCB", "DCMLinUCB"})
"""The agents that are compiled here. Those that differ from C2UCB only in the clicks that they read
are compiled in slow tests.
"""


@pytest.mark.compiled
@compiled_pairs.by_id(COMPILED, default_ids("Contextual"))
def test_engines_agree(env_id, name):
    told = {"examination": np.tril(np.full((5, 5), 0.5))} if name == "UBMLinUCB" else {}
    assert_engines_agree(
        lambda: clickgym.make_agent(name, gym.make(env_id), horizon=1000, seed=5, **told),
        lambda: gym.make(env_id, n_positions=5),
        horizon=200,  # the inverse matrices are computed again after 100 and 200 sessions
        stepping=uncompiled if "UBM" in env_id else nullcontext,
    )


def test_what_papers_assume_known():
    known = {
        ("UBMLinUCB", "UBM"): np.tril(BROWSING),
        ("UBMLinUCB", "PBM"): [[0.5, 0, 0], [0.9, 0.9, 0], [0.3, 0.3, 0.3]],
        ("UBMLinUCB", "CM"): [[1, 0, 0], [1, 0, 0], [1, 0, 0]],
        ("PBMLinUCB", "PBM"): [0.5, 0.9, 0.3],
        ("PBMLinUCB", "DCM"): MODELS["DCM"].mean.examination_probabilities([0, 1, 2]),
    }
    for (name, base), examination in known.items():
        with (
            pytest.warns(UserWarning, match="rises from 0.[53] at position [12] to ")
            if base == "PBM" or (name, base) == ("UBMLinUCB", "UBM")
            else nullcontext()
        ):
            agent = clickgym.make_agent(name, envs.ClickEnv(MODELS[base]), seed=0)
        np.testing.assert_allclose(agent.hyperparameters["examination"], examination)
        assert set(agent.filled_in) == {"n_items", "n_positions", "n_features", "examination"}
    with pytest.raises(ValueError, match="UBMLinUCB requires examination"):
        clickgym.make_agent("UBMLinUCB", envs.ClickEnv(MODELS["DCM"]))
    with pytest.raises(ValueError, match="Oracle requires ranking"):
        clickgym.make_agent("Oracle", envs.ClickEnv(MODELS["DCM"]))


@pytest.mark.compiled
def test_a_long_search_in_each_session_is_named(monkeypatch):
    monkeypatch.setattr(envs.PositionBasedModel, "best_ranks", lambda *arguments: None)
    with pytest.warns(UserWarning, match="searches 1,860,480 lists for the best one"):
        clickgym.run("Random", "ContextualPBMRank-v0", 2, seed=0)
