"""The study of wrong logs: what is wrong in them, how much, and what its rules make of it."""

import json

import numpy as np
import polars
import pytest

from clickgym.agents import CascadeTS, PBMLinUCB
from clickgym.runner.make import make_agent, make_env
from clickgym_lab.studies import wrong_priors as study
from clickgym_lab.studies.study import CM, PBM, Curves


@pytest.fixture(scope="module")
def users():
    return make_env(PBM).unwrapped.model


def log_of(users, *arguments):
    return study.log_of_users(json.dumps(users.to_dict()), *arguments)


def test_flips_change_the_given_share_of_all_clicks(users):
    """Also of missing clicks; 50,000 coins: a false alarm is 5 standard errors away, once in 10⁶."""
    right, flipped = (log_of(users, 10_000, "flipped", share) for share in (0.0, 0.3))
    np.testing.assert_array_equal(right.rankings, flipped.rankings)
    for value in (0, 1):
        there = right.clicks == value
        assert (flipped.clicks != right.clicks)[there].mean() == pytest.approx(0.3, abs=5 * (0.21 / there.sum()) ** 0.5)


@pytest.mark.parametrize(("wrong", "differing"), [("others", 7), ("earlier", 3)])
def test_strangers_differ_in_the_attraction_of_items_alone(users, wrong, differing):
    other = study.strangers(users, wrong, np.random.default_rng(0))
    changed = other.attraction != users.attraction
    assert differing <= changed.sum() <= (3 if wrong == "earlier" else 10)
    np.testing.assert_array_equal(other.parameters.examination, users.parameters.examination)
    if wrong == "others":
        np.testing.assert_array_equal(np.sort(other.attraction), np.sort(users.attraction))
    else:
        assert (other.attraction[changed] == 0.9).all()
        assert not np.isin(np.flatnonzero(changed), np.argsort(-users.attraction)[:5]).any()


def test_a_share_of_the_sessions_is_of_others_whole_sessions(users):
    right, all_wrong, half = (log_of(users, 4000, "others", share) for share in (0.0, 1.0, 0.5))
    own = (half.rankings == right.rankings).all(axis=1) & (half.clicks == right.clicks).all(axis=1)
    foreign = (half.rankings == all_wrong.rankings).all(axis=1) & (half.clicks == all_wrong.clicks).all(axis=1)
    assert (own | foreign).all()
    assert foreign.mean() == pytest.approx(0.5, abs=0.04)


def test_a_log_of_a_world_holds_the_features_of_what_was_shown():
    log, model = study.log_of_world(0, 300), make_env(study.WORLD, study.world(0)).unwrapped.model
    assert log.context.shape == (300, 5, model.n_features)
    known = {tuple(np.round(item, 9)) for item in model.items}
    place = slice(model.n_features - len(model.interactions) - model.items.shape[1], model.n_features - len(model.interactions))
    assert all(tuple(np.round(row[place], 9)) in known for row in log.context.reshape(-1, model.n_features))
    mixed = study.log_of_worlds(0, 300, "others", 0.5)
    foreign = (mixed.context != log.context).any(axis=(1, 2))
    assert 0.35 < foreign.mean() < 0.65


def test_agents_learn_the_log_and_are_else_as_without_it(users):
    env = make_env(PBM)
    agent, beside = make_agent(study.misled("CascadeTS", "flipped", 0.3, 1000), env, seed=3), CascadeTS(10, 5, seed=3)
    beside.learn(log_of(users, 1000, "flipped", 0.3))
    assert [agent.rank().tolist() for _ in range(5)] == [beside.rank().tolist() for _ in range(5)]
    world = make_env(study.WORLD, study.world(1))
    agent = make_agent(study.misled("PBMLinUCB", "others", 1.0, 200, 1), world, seed=0)
    beside = make_agent("PBMLinUCB", world, seed=0)
    beside.learn(study.log_of_world(101, 200))
    assert isinstance(agent, PBMLinUCB)
    np.testing.assert_array_equal(agent.state.theta, beside.state.theta)


def test_the_rules_are_multiples_of_regret_without_a_log():
    rates = {"CascadeTS": 1.0, study.misled("CascadeTS", "flipped", 0.3): 0.5, study.misled("CascadeTS", "flipped", 0.5): 3.0}
    rows = [
        (CM, query, agent, 0, step, rate * step * (1 + place / 100))
        for agent, rate in rates.items()
        for place, query in enumerate("abc")
        for step in (990, 1000)
    ]
    curves = Curves(polars.DataFrame(rows, ["env", "instance", "agent", "run", "step", "regret"], orient="row"))
    evidence = {study.PART: curves}
    assert study.multiple(evidence, CM, "CascadeTS", "flipped", 0.3, -np.inf, 1).verdict == "yes"
    assert study.multiple(evidence, CM, "CascadeTS", "flipped", 0.5, -np.inf, 1).verdict == "no"
    assert study.multiple(evidence, CM, "CascadeTS", "flipped", 0.5, 1, np.inf) == ("3 ± 0 times over 3 queries", "yes", None)


def test_agents_by_features_learn_the_wrong_log_of_their_world():
    world = make_env(study.WORLD, study.world(21))
    agent = make_agent(study.misled("PairRank:loss=sum,growth=0.01", "others", 1.0, 200, 21), world, seed=0)
    beside = make_agent("PairRank:loss=sum,growth=0.01", world, seed=0)
    assert agent.hyperparameters == beside.hyperparameters
    beside.learn(study.log_of_world(21 + study.ELSEWHERE, 200))
    features = world.reset(seed=0)[0]["features"]
    np.testing.assert_array_equal(agent.best(features), beside.best(features))
    assert agent.state.n_learned[0] == 200


def test_multiples_in_worlds_are_means_over_the_worlds():
    evidence = {}
    for number in study.NUMBERS:
        rates = {"LinearTS": number, study.misled("LinearTS", "others", 0.5, study.SHORT, number): 2 * number}
        rows = [(study.WORLD, "one", agent, 0, 1000, float(rate)) for agent, rate in rates.items()]
        frame = polars.DataFrame(rows, ["env", "instance", "agent", "run", "step", "regret"], orient="row")
        evidence[f"wrong-priors-features-{number}"] = Curves(frame)
    found = study.multiple_in_worlds(evidence, "LinearTS", "others", 0.5, 1.5, np.inf)
    assert found == ("2 ± 0 times over 5 worlds", "yes", None)
