"""Tests of click models against the stories in `click_stories`: their exact laws, sampling, optima
and validation errors.
"""

from __future__ import annotations

import copy
import itertools
import json
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from clickgym import envs
from clickgym.envs.simulation.task import REWARDS, ClickConstants, make_click_session_kernel
from tests.helpers.click_stories import (
    TOLD,
    assert_sampled_from,
    exact_law,
    make_model,
    marginal,
    realised_reward,
)

pytestmark = pytest.mark.uncompiled

EXACT = {"rtol": 0, "atol": 1e-12}
by_model = pytest.mark.parametrize(
    "model_class", TOLD, ids=lambda model_class: model_class.__name__
)
by_size = pytest.mark.parametrize("size", [(1, 1), (4, 4), (5, 3)])

# Few distinct values, so that ties, zeros and ones are common, and any others.
probability = st.sampled_from([0.0, 0.25, 0.5, 1.0]) | st.floats(0.0, 1.0)


@st.composite
def models(draw, model_class, most_positions=3):
    n_items = draw(st.integers(1, 5))
    n_positions = draw(st.integers(1, min(n_items, most_positions)))
    return make_model(
        model_class,
        n_items,
        n_positions,
        lambda shape: draw(arrays(float, shape, elements=probability, fill=st.nothing())),
    )


def rankings(model):
    return st.permutations(range(model.n_items)).map(lambda items: items[: model.n_positions])


def random_model(model_class, n_items, n_positions, seed):
    rng = np.random.default_rng(seed)
    return make_model(model_class, n_items, n_positions, lambda shape: rng.uniform(0.1, 0.9, shape))


def questions(model):
    """Every reward kind of a model with every cutoff."""
    return itertools.product(model.rewards, range(1, model.n_positions + 1))


# laws --------------------------------------------------------------


@by_model
@given(data=st.data())
@settings(max_examples=30)
def test_marginals_and_expected_rewards(model_class, data):
    model = data.draw(models(model_class, most_positions=4))
    ranking = data.draw(rankings(model))
    law = exact_law(model, ranking)
    np.testing.assert_allclose(sum(law.values()), 1, **EXACT)
    clicks = sum(p * np.array(clicks) for (clicks, _, _), p in law.items())
    examination = sum(p * np.array(examined) for (_, examined, _), p in law.items())
    np.testing.assert_allclose(model.click_probabilities(ranking), clicks, **EXACT)
    np.testing.assert_allclose(model.examination_probabilities(ranking), examination, **EXACT)
    for reward, cutoff in questions(model):
        value = sum(
            p * realised_reward(reward, cutoff, clicks, left)
            for (clicks, _, left), p in law.items()
        )
        np.testing.assert_allclose(model.expected_reward(ranking, reward, cutoff), value, **EXACT)
    for reward in model.rewards:
        assert model.expected_reward(ranking, reward) == model.expected_reward(
            ranking, reward, model.n_positions
        )


@by_model
def test_joint_law_of_sessions(model_class):
    model = random_model(model_class, 4, 3, 0)
    ranking = np.array([2, 0, 3])
    clicks, examined, samples = [0] * 3, [0] * 3, []  # Python runs faster on lists
    for uniforms in np.random.default_rng(0).random((30_000, model.n_uniforms)).tolist():
        left = model.sample_kernel(model.parameters, ranking, uniforms, clicks, examined)
        samples.append((tuple(clicks), tuple(examined), left))
    assert_sampled_from(exact_law(model, ranking), samples)


@by_model
def test_what_a_session_pays(model_class):
    """The reward follows from the clicks, and from the position at which the user left satisfied,
    if it is above the cutoff.
    """
    model, rng = random_model(model_class, 4, 3, 0), np.random.default_rng(0)
    session = make_click_session_kernel(model.sample_kernel, model.expected_kernel)
    clicks, examined = np.empty((2, 3), np.int8)
    for reward, cutoff in questions(model):
        users = ClickConstants(model.parameters, REWARDS.index(reward), cutoff, np.empty(4))
        for uniforms in rng.random((200, model.n_uniforms)):
            paid, expected, left = session(
                users, None, 0, np.array([2, 0, 3]), uniforms, clicks, examined
            )
            assert paid == realised_reward(reward, cutoff, clicks.tolist(), left)
            assert expected == model.expected_reward([2, 0, 3], reward, cutoff)


@by_model
@pytest.mark.parametrize("seed", range(5))
def test_possible_sessions(model_class, seed):
    """Every session is one that the law allows, even for uniform numbers at the ends of their
    range.
    """
    rng = np.random.default_rng(seed)
    model = make_model(model_class, 3, 3, lambda shape: rng.choice([0.0, 0.25, 0.5, 1.0], shape))
    ranking = rng.permutation(3)
    law = exact_law(model, ranking)
    clicks, examined = np.empty((2, model.n_positions), np.int8)
    for uniforms in itertools.product((0.0, 0.5, 1.0 - 2.0**-53), repeat=model.n_uniforms):
        left = model.sample_kernel(model.parameters, ranking, np.array(uniforms), clicks, examined)
        assert (tuple(clicks.tolist()), tuple(examined.tolist()), left) in law


@by_model
@by_size
def test_fewer_positions(model_class, size):
    """A model with fewer positions equals the first positions of the longer model."""
    model = random_model(model_class, *size, 0)
    ranking = np.random.default_rng(0).permutation(model.n_items)[: model.n_positions]
    for cutoff in range(1, model.n_positions + 1):
        shorter, head = model.with_positions(cutoff), ranking[:cutoff]
        np.testing.assert_array_equal(
            shorter.click_probabilities(head), model.click_probabilities(ranking)[:cutoff]
        )
        for reward in model.rewards:
            assert shorter.expected_reward(head, reward) == model.expected_reward(
                ranking, reward, cutoff
            )


@by_model
@by_size
def test_description(model_class, size):
    model = random_model(model_class, *size, 0)
    copy = envs.ClickModel.from_dict(json.loads(json.dumps(model.to_dict())))
    assert type(copy) is model_class
    assert copy == model
    np.testing.assert_equal(copy.parameters, model.parameters)


@by_model
def test_parameters_are_copied_and_read_only(model_class):
    """A caller who later changes the arrays changes neither the users nor their copies."""
    given_arrays = []

    def keep(shape):
        given_arrays.append(np.full(shape, 0.5))
        return given_arrays[-1]

    model = make_model(model_class, 3, 2, keep)
    before = model.to_dict()
    for array in given_arrays:
        array[...] = 0.9
    assert model.to_dict() == before
    for users in (model, copy.deepcopy(model)):
        kinds = getattr(users.parameters, "models", [users.parameters])
        for parameter in itertools.chain(*kinds):
            assert np.isscalar(parameter) or not parameter.flags.writeable


# decisions ---------------------------------------------------------


def test_standard_trust():
    standard = envs.TrustBiasModel(np.full(30, 0.5), np.ones(25)).parameters
    np.testing.assert_allclose(
        standard.trust_relevant[[0, 1, 18, 19, 24]], [0.98, 0.97, 0.8, 0.79, 0.79]
    )
    np.testing.assert_allclose(
        standard.trust_irrelevant[[0, 1, 8, 9, 24]], [0.65, 0.325, 0.65 / 9, 0.065, 0.065]
    )


def test_ubm_ignores_whatever_lies_above_the_used_triangle():
    clean = envs.UserBrowsingModel([0.5, 0.4, 0.3], [[1, 0, 0], [0.5, 0.9, 0], [0.2, 0.6, 0.7]])
    other = envs.UserBrowsingModel(
        [0.5, 0.4, 0.3], [[1, np.nan, 7], [0.5, 0.9, -1], [0.2, 0.6, 0.7]]
    )
    assert other == clean
    assert np.diag(clean.parameters.examination).tolist() == [1, 0.9, 0.7]


# optima ------------------------------------------------------------


@by_model
@given(data=st.data())
@settings(max_examples=50)
def test_optimum_is_that_of_enumeration(model_class, data):
    model = data.draw(models(model_class))
    lists = list(itertools.permutations(range(model.n_items), model.n_positions))
    for reward, cutoff in questions(model):
        best = model.optimal_ranking(reward, cutoff)
        assert best.dtype == np.int64
        assert tuple(best.tolist()) in lists
        highest = max(model.expected_reward(ranking, reward, cutoff) for ranking in lists)
        assert model.expected_reward(best, reward, cutoff) == pytest.approx(
            highest, rel=0, abs=1e-12
        )


@pytest.mark.parametrize("model_class", [envs.DependentClickModel, envs.UserBrowsingModel])
def test_search_beyond_the_limit(model_class, monkeypatch):
    """The limit is lowered to a thousand lists, which Python searches fast."""
    monkeypatch.setattr("clickgym.envs.click_models.click_model.MAX_SEARCH", 1000)
    model = random_model(model_class, 30, 10, 0)
    limit = "more than the limit of 1e+03; count fewer"
    with pytest.raises(ValueError, match=re.escape(limit)) as refused:
        model.optimal_ranking()
    counted = int(re.search(r"cutoff=(\d+)", str(refused.value))[1])
    assert math.perm(30, counted) <= 1000 < math.perm(30, counted + 1)
    assert len(model.optimal_ranking(cutoff=counted)) == 10
    others = [name for name in model.rewards if name != "clicks"]
    assert all(len(model.optimal_ranking(reward)) == 10 for reward in others)
    assert len(model.optimal_ranking(cutoff=2)) == 10


@pytest.mark.parametrize("perseverance", [1.0, 0.7])
def test_dbn_of_equal_items_is_a_ubm(perseverance):
    """The laws of the click vectors are equal."""
    dbn = envs.DynamicBayesianModel([0.4] * 4, [0.3] * 4, perseverance, n_positions=4)
    ubm = envs.UserBrowsingModel([0.4] * 4, dbn.browsing_weights())
    of_dbn, of_ubm = (
        marginal(exact_law(model, range(4)), lambda clicks, examined, left: clicks)
        for model in (dbn, ubm)
    )
    assert of_dbn == pytest.approx(of_ubm, rel=1e-12)
    assert (
        envs.DynamicBayesianModel([0.4, 0.5], [0.3, 0.3], n_positions=1).browsing_weights() is None
    )
