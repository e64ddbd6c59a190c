"""What `instance=` takes besides names: objects, paths and dicts; and lists of them in vector
environments.
"""

import json

import gymnasium as gym
import numpy as np
import pytest

import clickgym
from clickgym.envs import (
    ClickEnv,
    ClickVectorEnv,
    Instance,
    PiecewiseStationaryModel,
    PositionBasedModel,
    load_instance,
)
from clickgym.envs.contextual.model import LinearModel

SMALL = PositionBasedModel([0.6, 0.4, 0.2], [1.0, 0.5])
OTHER = PositionBasedModel([0.1, 0.9, 0.5], [1.0, 0.7])


def instance_of(model, name):
    return Instance(name, {model.kind: model}, model.n_positions)


def forms(tmp_path):
    instance = instance_of(SMALL, "mine")
    path = tmp_path / "mine.json"
    instance.save(path)
    return {
        "object": instance,
        "path": path,
        "name": str(path),
        "saved dict": json.loads(path.read_text()),
        "model dict": SMALL.to_dict(),
    }


@pytest.mark.parametrize("form", ["object", "path", "name", "saved dict", "model dict"])
def test_an_instance_is_taken_in_every_form_and_means_the_same(tmp_path, form):
    given = forms(tmp_path)[form]
    name = "custom" if form == "model dict" else "mine"
    assert load_instance(given).name == name
    for env in (gym.make("PBMRank-v0", instance=given).unwrapped, ClickEnv("PBM", instance=given)):
        assert env.model == SMALL
        assert env.instance == name
    envs = gym.make_vec("PBMRank-v0", num_envs=3, instance=given)
    assert envs.unwrapped.model == SMALL
    gym.make("PBMRank-v0", instance=given).reset(seed=0)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"model": "PBM", "attraction": [0.5]}, "the instance: PBM"),
        ({"name": "x"}, "format is None"),
        (7, "a name, a path, a dict or an Instance, got 7"),
        ([SMALL.to_dict()], "gym.make_vec distributes several"),
    ],
)
def test_what_is_no_instance_is_refused_by_the_scalar_environment(given, words):
    with pytest.raises((ValueError, TypeError), match=words):
        gym.make("PBMRank-v0", instance=given)


def test_instances_are_dealt_to_the_streams_in_turn_each_with_its_optimum():
    envs = gym.make_vec(
        "PBMRank-v0",
        num_envs=5,
        instance=[SMALL.to_dict(), instance_of(OTHER, "other")],
        render_mode="ansi",
    )
    _, infos = envs.reset(seed=0)
    models = [SMALL, OTHER, SMALL, OTHER, SMALL]
    assert infos["optimal_ranking"].tolist() == [
        model.optimal_ranking().tolist() for model in models
    ]
    best = [model.expected_reward(model.optimal_ranking()) for model in models]
    assert infos["optimal_reward"].tolist() == best
    lists = envs.action_space.sample()
    _, _, _, _, infos = envs.step(lists)
    expected = [
        model.expected_reward(ranking) for model, ranking in zip(models, lists, strict=True)
    ]
    np.testing.assert_allclose(infos["expected_reward"], expected)
    np.testing.assert_allclose(infos["regret"], np.array(best) - expected)
    assert infos["optimal_reward"].tolist() == best
    pages = envs.render()
    assert ["custom" in page for page in pages] == [True, False, True, False, True]
    assert ["other" in page for page in pages] == [False, True, False, True, False]
    assert envs.unwrapped.instances == ("custom", "other")
    assert envs.unwrapped.models == (SMALL, OTHER)


def test_each_stream_clicks_as_its_own_users_do():
    envs = ClickVectorEnv("PBM", 4000, instance=[SMALL.to_dict(), OTHER.to_dict()])
    envs.reset(seed=1)
    lists = np.tile([0, 1], (4000, 1))
    clicks = np.mean([envs.step(lists)[0] for _ in range(20)], axis=0)
    for i, model in enumerate((SMALL, OTHER)):
        np.testing.assert_allclose(
            clicks[i::2].mean(axis=0), model.click_probabilities([0, 1]), atol=0.01
        )


@pytest.mark.parametrize("copies", [1, 2, 3])
def test_the_same_instance_several_times_draws_what_one_draws(copies):
    one = gym.make_vec("PBMRank-v0", num_envs=7, instance="yandex-9982")
    several = gym.make_vec("PBMRank-v0", num_envs=7, instance=["yandex-9982"] * copies)
    one.reset(seed=3), several.reset(seed=3)
    one.action_space.seed(0)
    for _ in range(10):
        lists = one.action_space.sample()
        clicks, rewards, *_, infos = one.step(lists)
        clicks_of_several, rewards_of_several, *_, infos_of_several = several.step(lists)
        np.testing.assert_array_equal(clicks, clicks_of_several)
        np.testing.assert_array_equal(rewards, rewards_of_several)
        for name in ("regret", "expected_reward", "optimal_reward"):
            np.testing.assert_array_equal(infos[name], infos_of_several[name])


def test_users_change_each_at_their_own_steps():
    first = PiecewiseStationaryModel([SMALL, OTHER], [0, 2])
    second = PiecewiseStationaryModel([OTHER, SMALL], [0, 3])
    envs = gym.make_vec(
        "NonStationaryPBMRank-v0", num_envs=2, instance=[first.to_dict(), second.to_dict()]
    )
    _, infos = envs.reset(seed=0)
    optima = [infos["optimal_reward"].tolist()]
    for _ in range(5):
        infos = envs.step(np.array([[0, 1], [0, 1]]))[4]
        optima.append(infos["optimal_reward"].tolist())
    a, b = (model.expected_reward(model.optimal_ranking()) for model in (SMALL, OTHER))
    assert optima == [[a, b], [a, b], [a, b], [b, b], [b, a], [b, a]]


def test_contextual_instances_are_dealt_too_and_refused_if_they_show_other_features():
    base = PositionBasedModel([0, 0], [1.0, 0.5])
    one = LinearModel(base, theta=[0.9, 0.1], items=[[1, 0], [0, 1], [0.5, 0.5]])
    two = LinearModel(base, theta=[0.1, 0.2], items=[[1, 0], [0, 1], [0.6, 0.6]])
    wide = LinearModel(base, theta=[0.1, 0.2, 0.1], items=[[1, 0, 0], [0, 1, 0], [0.5, 0.5, 0]])
    envs = gym.make_vec("ContextualPBMRank-v0", num_envs=5, instance=[one.to_dict(), two.to_dict()])
    observations, infos = envs.reset(seed=0)
    assert observations in envs.observation_space
    assert (infos["optimal_reward"][::2] > 0.4).all()
    assert (infos["optimal_reward"][1::2] < 0.4).all()
    observations, *_, infos = envs.step(envs.action_space.sample())
    assert observations in envs.observation_space
    assert infos["regret"].min() >= 0
    with pytest.raises(ValueError, match="observed alike"):
        gym.make_vec("ContextualPBMRank-v0", num_envs=5, instance=[one.to_dict(), wide.to_dict()])


def test_same_step_autoreset_and_seeds_hold_for_several_instances():
    def play():
        envs = gym.make_vec(
            "PBMRank-v0",
            num_envs=4,
            instance=["yandex-9982", "yandex-98435"],
            autoreset_mode="SameStep",
            max_episode_steps=3,
        )
        envs.reset(seed=5)
        envs.action_space.seed(5)
        return [envs.step(envs.action_space.sample()) for _ in range(4)]

    first, second = play(), play()
    for one, two in zip(first, second, strict=True):
        np.testing.assert_array_equal(one[0], two[0])
    assert first[2][3].all()
    assert first[2][4]["final_info"]["regret"].shape == (4,)


@pytest.mark.parametrize(
    ("instances", "words"),
    [
        ([], "empty list"),
        ([SMALL.to_dict()] * 3, "3 instances cannot be distributed over 2 streams"),
        (
            [instance_of(SMALL, "three"), "yandex-9982"],
            "three has 3 items and 2 positions and yandex-9982 has 10 items",
        ),
        (["yandex-9982", "yandex-99999999"], "yandex-99999999"),
    ],
)
def test_lists_that_cannot_be_dealt_are_refused(instances, words):
    with pytest.raises(ValueError, match=words):
        gym.make_vec("PBMRank-v0", num_envs=2, instance=instances)


def test_instances_and_parameters_exclude_each_other():
    with pytest.raises(ValueError, match="not both"):
        gym.make_vec("PBMRank-v0", num_envs=2, instance=["yandex-9982"], attraction=[0.5])


def test_a_model_as_an_object_excludes_instance_and_parameters_and_both_are_named():
    with pytest.raises(
        TypeError,
        match="the model is given, so instance, attraction cannot be; or name the model, as 'PBM'",
    ):
        ClickEnv(SMALL, instance="yandex-9982", attraction=[0.5])


def test_load_instance_returns_an_instance_as_it_is():
    instance = instance_of(SMALL, "mine")
    assert clickgym.envs.load_instance(instance) is instance
