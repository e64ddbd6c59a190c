"""Tests of the wrappers that let policies for plain action spaces choose lists: every action gives
a list of distinct items, and every list can be reached.
"""

from __future__ import annotations

import itertools
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, MultiBinary
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import TimeLimit
from hypothesis import given
from hypothesis import strategies as st

from clickgym import envs
from clickgym.envs.wrappers.actions import Scores
from clickgym.envs.wrappers.item_by_item import Choices, PartialLists
from tests.helpers.news import L, News

pytestmark = pytest.mark.uncompiled


def model(n_items, n_positions):
    return envs.PositionBasedModel(
        np.linspace(0.9, 0.1, n_items), np.linspace(1.0, 0.5, n_positions)
    )


def scalar(n_items=4, n_positions=3, **arguments):
    return envs.ClickEnv(model(n_items, n_positions), **arguments)


def lists(n_items, n_positions):
    return list(itertools.permutations(range(n_items), n_positions))


# an action is a list
# --------------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0, -9.0, 2.0]), min_size=6, max_size=6))
def test_scores_sort_items_and_ties_fall_in_the_order_of_items(scores):
    """This also holds for the actions of a learner, which number the items in another order."""
    order, env = np.array([3, 5, 0, 1, 4, 2]), scalar(6, 4)
    by_definition = sorted(range(6), key=lambda j: (-scores[j], j))[:4]
    assert envs.ScoresAction(env).action(scores).tolist() == by_definition
    space = Scores(env.action_space, env.observation_space, order)
    assert space.lists(scores).tolist() == order[by_definition].tolist()


ITEMS = np.random.default_rng(0).uniform(0, 0.5, (9, 3))
USERS = envs.ContextualModel(
    envs.PositionBasedModel([0] * 4, [1.0, 0.5]), ITEMS, theta=[0.9, 0.1, 0.3]
)


def by_hand(weights, features, n_positions=2):
    """Return the rows in order of decreasing sum; among equal sums, the lower row comes first."""
    sums = [sum(float(w) * float(x) for w, x in zip(weights, row, strict=True)) for row in features]
    return sorted(range(len(sums)), key=lambda row: (-sums[row], row))[:n_positions]


def test_lists_chosen_by_weights_of_features():
    """Each list follows from the features that were returned last, also after a reset. Calling
    `action` without a step changes nothing.
    """
    env = envs.ScoresAction(TimeLimit(envs.ClickEnv(USERS), 3))
    assert env.action_space == Box(-1, 1, (3,), np.float32)
    rng, lists = np.random.default_rng(1), set()
    observation, _ = env.reset(seed=5)
    for _ in range(30):
        weights, features = rng.normal(0, 3, 3), observation["features"]
        expected = by_hand(weights, features)
        assert env.action(weights).tolist() == expected
        env.action(-weights)
        assert env.action([0, 0, 0]).tolist() == [0, 1]  # ties are in the order of rows
        observation, _, _, truncated, _ = env.step(weights)
        assert env.unwrapped.last_session()[0].tolist() == expected
        lists.add(tuple(expected))
        if truncated:
            observation, _ = env.reset()
    assert len(lists) > 6


# spaces, steps and construction
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("users", ["PBMRank-v0", "ContextualPBMRank-v0"])
@pytest.mark.parametrize("wrapper", [envs.ScoresAction, envs.ItemByItem])
def test_checkers_and_spec(wrapper, users):
    """The checkers pass, and the spec makes the wrapped environment again."""
    env = wrapper(gym.make(users))
    with warnings.catch_warnings(action="error"):
        # the checker must get the wrapped environment
        warnings.filterwarnings("ignore", ".*is different from the unwrapped version")
        check_env(env, skip_render_check=True)
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    checker.check_env(env)
    again = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert isinstance(again, wrapper)
    action = env.action_space.sample()
    for twin in (env, again):
        twin.reset(seed=0)
    assert str(env.step(action)) == str(again.step(action))


BAD = [
    ("PBMRank-v0", [0.1, np.nan, *[0.2] * 8], r"scores\[1\] is nan; expected a finite number"),
    ("ContextualPBMRank-v0", [0.1, 0.2], r"weights has shape \(2,\); expected \(10,\)"),
    ("ContextualPBMRank-v0", None, "weights is None; expected an array of numbers"),
]


@pytest.mark.parametrize(("users", "action", "message"), BAD)
def test_bad_actions(users, action, message):
    """The error is one line, and no session is played. With many streams, the error names the
    stream.
    """
    env = envs.ScoresAction(gym.make(users))
    env.reset(seed=0)
    with pytest.raises(ValueError, match=f"^{message}$"):
        env.step(action)
    assert env.unwrapped.n_simulated == 0
    if users == "PBMRank-v0":
        with pytest.raises(ValueError, match=r"scores\[1, 1\] is nan"):
            env.action_space.lists(np.array([np.zeros(10), action]))


# errors
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrapper", [envs.ScoresAction, envs.ItemByItem])
def test_wrappers_want_ranked_lists(wrapper):
    with pytest.raises(
        TypeError, match=r"the action space is Discrete.*; expected a clickgym.envs.RankedList"
    ):
        wrapper(gym.make("CartPole-v1"))


def test_lists_of_another_package():
    """Its lists are a plain MultiDiscrete."""
    env = envs.ScoresAction(News())
    assert env.action(np.arange(L)).tolist() == [5, 4, 3]
    env = envs.ItemByItem(News())
    env.reset(seed=0)
    *_, (_, reward, is_complete, _, info) = [env.step(item) for item in (5, 5, 2)]
    assert (is_complete, reward == int(reward)) == (True, True)
    assert info["regret"] == pytest.approx(0.6 + 0.5 + 0.4 - (0.6 + 0.1 + 0.3))


# item by item
# --------------------------------------------------------------------------------------------------


def play_list(env, choices):
    return [env.step(choice) for choice in choices][-1]


@pytest.mark.parametrize("is_life", [False, True])
def test_item_by_item_plays_the_sessions_of_the_environment(is_life):
    """An episode is one list, after which the stream continues. With users who may leave, an
    episode is a user's whole stay, and `reset` brings a new user.
    """
    memory = {"id": "CascadeMDPRank-v0", "instance": "clickbait:mean_sessions=3,n_items=4"}
    make = (lambda: gym.make(**memory, n_positions=3)) if is_life else scalar
    env, plain, ends = envs.ItemByItem(make()), make(), 0
    observation, _ = env.reset(seed=7)
    plain.reset(seed=7)
    for n, choices in enumerate(lists(4, 3) * 3):
        assert not observation["placed"].any()
        for choice in choices[:-1]:
            _, reward, *over, info = env.step(choice)
            assert (reward, over, info) == (0.0, [False, False], {})
        observation, reward, terminated, truncated, info = env.step(choices[-1])
        seen, paid, left, _, told = plain.step(choices)
        assert (reward, truncated) == (paid, False)
        np.testing.assert_equal(info, told)
        for key, value in seen.items() if is_life else [("observation", seen)]:
            np.testing.assert_array_equal(observation[key], value)
        assert terminated == (left or not is_life)
        if terminated:
            assert observation["placed"].tolist() == np.eye(4)[list(choices)].tolist()
            ends += 1
        if left:
            with pytest.raises(gym.error.ResetNeeded, match="call reset"):
                env.step(0)
        if terminated or n % 7 == 0:
            observation, info = env.reset()
            if is_life:
                assert info["optimal_reward"] == plain.reset()[1]["optimal_reward"]
    assert ends > 10


def test_a_choice_that_is_on_the_list_stands_for_the_next_one_that_is_not():
    """The next item is found in the order of the choices, from the last to the first again, and
    separately in each stream.
    """
    env = envs.ItemByItem(scalar())
    env.reset(seed=0)
    for choice in (3, 3):
        env.step(choice)
    observation, *_, info = env.step(0)
    assert observation["placed"].argmax(axis=1).tolist() == info["ranking"].tolist() == [3, 0, 1]
    order = np.array([2, 0, 3, 1])  # as learners use
    for items in (None, order):
        partial_lists = PartialLists(Choices(envs.RankedList(4, 3), MultiBinary(3), items), (3,))
        for choices in ([0, 1, 3], [0, 2, 3], [0, 1, 3]):
            partial_lists.place(choices)
        numbers = np.array([[0, 1, 2], [1, 2, 3], [3, 0, 1]])
        assert (
            partial_lists.rankings.tolist()
            == (numbers if items is None else order[numbers]).tolist()
        )


def test_a_number_that_is_no_choice_is_named():
    env = envs.ItemByItem(scalar())
    env.reset(seed=0)
    for action in (4, -1):
        with pytest.raises(
            ValueError, match=f"^choice is {action}; expected an integer from 0 to 3"
        ):
            env.step(action)
    play_list(env, [0, 1, 2])  # the invalid choices had no effect
