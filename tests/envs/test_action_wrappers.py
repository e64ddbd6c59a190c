"""Wrappers that let policies for plain action spaces choose lists: every action a distinct list,
every list reached.
"""

from __future__ import annotations

import itertools
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit
from hypothesis import given
from hypothesis import strategies as st

from clickgym.envs import (
    ClickEnv,
    ClickVectorEnv,
    ItemByItem,
    ItemByItemVector,
    PositionBasedModel,
    ScoresAction,
    ScoresVectorAction,
    check_ranking,
)

pytestmark = pytest.mark.uncompiled


def model(n_items, n_positions):
    return PositionBasedModel(np.linspace(0.9, 0.1, n_items), np.linspace(1.0, 0.5, n_positions))


def scalar(n_items=4, n_positions=3, **arguments):
    return ClickEnv(model(n_items, n_positions), **arguments)


def vector(n_envs=3, n_items=4, n_positions=3, autoreset_mode=AutoresetMode.SAME_STEP, **arguments):
    return ClickVectorEnv(
        model(n_items, n_positions), n_envs, autoreset_mode=autoreset_mode, **arguments
    )


def lists(n_items, n_positions):
    return list(itertools.permutations(range(n_items), n_positions))


# an action is a list
# --------------------------------------------------------------------------------------------------


def action_of(ranking):
    """Scores of four items for a list in order."""
    return [-ranking.index(item) if item in ranking else -99 for item in range(4)]


@given(data=st.data())
def test_every_action_is_a_list_of_distinct_items(data):
    n_items = data.draw(st.integers(1, 30))
    n_positions = data.draw(st.integers(1, n_items))
    order = data.draw(st.permutations(range(n_items)))
    env = ScoresAction(scalar(n_items, n_positions, reference=range(n_positions)), order)
    env.action_space.seed(data.draw(st.integers(0, 1000)))
    ranking = env.action(env.action_space.sample())
    assert check_ranking(ranking, n_items, n_positions) is ranking


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0, -9.0, 2.0]), min_size=6, max_size=6))
def test_scores_sort_items_and_ties_fall_in_the_order_of_items(scores):
    order = [3, 5, 0, 1, 4, 2]
    ranking = ScoresAction(scalar(6, 4), order).action(scores)
    by_definition = sorted(range(6), key=lambda j: (-scores[j], j))
    assert ranking.tolist() == [order[j] for j in by_definition[:4]]


# spaces, steps and construction
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("items", [None, [2, 0, 3, 1]])
def test_vector_wrapper_equals_scalar_wrappers(items):
    one = [ScoresAction(scalar(), items) for _ in range(3)]
    many = ScoresVectorAction(vector(), items)
    many.action_space.seed(0)
    for _ in range(20):
        actions = many.action_space.sample()
        rankings = many.actions(actions)
        assert rankings.tolist() == [
            env.action(action).tolist() for env, action in zip(one, actions, strict=True)
        ]


def test_a_step_shows_the_list():
    env, many = ScoresAction(scalar()), ScoresVectorAction(vector())
    best = env.reset(seed=0)[1]["optimal_ranking"].tolist()
    good, bad = action_of(best), action_of(best[::-1])
    assert env.step(good)[-1]["regret"] == 0
    assert env.step(bad)[-1]["regret"] > 0
    many.reset(seed=0)
    regret = many.step([good, bad, good])[-1]["regret"]
    assert (regret > 0).tolist() == [False, True, False]


@pytest.mark.parametrize("wrapper", [ScoresAction, ItemByItem])
def test_the_checkers_pass(wrapper):
    env = wrapper(scalar())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # it is, and shall be checked so
        warnings.filterwarnings("ignore", ".*is different from the unwrapped version")
        check_env(env, skip_render_check=True)
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    checker.check_env(env)


@pytest.mark.parametrize("wrapper", [ScoresAction, ItemByItem])
def test_the_spec_makes_the_wrapped_environment_again(wrapper):
    order = np.random.default_rng(0).permutation(10)
    env = wrapper(gym.make("PBMRank-v0", n_positions=3), items=order)
    again = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert isinstance(again, wrapper)
    assert again.action_space == env.action_space
    assert again.spec.additional_wrappers == env.spec.additional_wrappers
    env.action_space.seed(0)
    action = env.action_space.sample()
    for twin in (env, again):
        twin.reset(seed=0)
    first, second = env.step(action), again.step(action)
    assert str(first) == str(second)


# refusals
# --------------------------------------------------------------------------------------------------


def test_bad_scores():
    """The fault is named, in a vector environment with its stream."""
    env, envs = ScoresAction(scalar()), ScoresVectorAction(vector())
    env.reset(seed=0)
    bad, good = [0.1, 0.2, np.nan, 0.3], action_of([0, 1, 2])
    with pytest.raises(ValueError, match=r"scores\[2\] is nan; expected a finite number"):
        env.step(bad)
    with pytest.raises(ValueError, match=r"scores\[1, 2\] is nan; expected a finite number"):
        envs.actions(np.array([good, bad, good]))


@pytest.mark.parametrize(
    ("wrapper", "message"),
    [
        (ScoresAction, "Scores represent ranked lists; the action space is Discrete"),
        (ItemByItem, "Items chosen one by one represent ranked lists"),
    ],
)
def test_wrappers_want_ranked_lists_and_an_order_of_all_items(wrapper, message):
    with pytest.raises(TypeError, match=message):
        wrapper(gym.make("CartPole-v1"))
    for items in ([0, 0, 1, 2], [[0, 1, 2, 3]]):
        with pytest.raises(ValueError, match=r"^items: .*(shows item 0 again|shape)"):
            wrapper(scalar(), items)


# item by item
# --------------------------------------------------------------------------------------------------


def play_list(env, choices):
    steps = [env.step(choice) for choice in choices]
    assert [step[1] for step in steps[:-1]] == [0.0] * (len(choices) - 1)
    assert [step[2] for step in steps] == [False] * (len(choices) - 1) + [True]
    assert all(step[4] == {} for step in steps[:-1])
    return steps[-1]


@pytest.mark.parametrize("order", [None, [2, 0, 3, 1]])
def test_item_by_item_plays_the_sessions_of_the_environment(order):
    env, plain = ItemByItem(scalar(), order), scalar()
    env.reset(seed=7)
    plain.reset(seed=7)
    for choices in lists(4, 3):
        observation, reward, _, truncated, info = play_list(env, choices)
        ranking = choices if order is None else [order[j] for j in choices]
        clicks, paid, _, _, expected = plain.step(ranking)
        assert observation["observation"].tolist() == clicks.tolist()
        assert observation["placed"].tolist() == np.eye(4)[list(choices)].tolist()
        assert (reward, truncated) == (paid, False)
        np.testing.assert_equal(info, expected)
        observation, info = env.reset()  # the stream goes on
        assert observation["observation"].tolist() == clicks.tolist()
        assert not observation["placed"].any()
        assert info == {}


def test_masks_leave_the_items_that_are_not_yet_placed():
    env = ItemByItem(scalar())
    env.reset(seed=0)
    for choices in lists(4, 3):
        for k, choice in enumerate(choices):
            assert np.flatnonzero(~env.action_masks()).tolist() == sorted(choices[:k])
            env.step(choice)
        env.reset()


def test_a_choice_that_is_on_the_list_stands_for_the_next_one_that_is_not():
    """In the order of the choices, from the last to the first, and on each stream by itself."""
    env = ItemByItem(scalar(), [2, 0, 3, 1])
    env.reset(seed=0)
    for choice in (3, 3):
        env.step(choice)
    observation, *_, info = env.step(0)
    assert observation["placed"].argmax(axis=1).tolist() == [3, 0, 1]
    assert info["ranking"].tolist() == [1, 2, 0]
    envs = ItemByItemVector(vector())
    envs.reset(seed=0)
    for choices in ([0, 1, 3], [0, 2, 3], [0, 1, 3]):
        *_, infos = envs.step(choices)
    assert infos["final_info"]["ranking"].tolist() == [[0, 1, 2], [1, 2, 3], [3, 0, 1]]


def test_a_number_that_is_no_choice_is_named():
    env, envs = ItemByItem(scalar()), ItemByItemVector(vector())
    env.reset(seed=0)
    envs.reset(seed=0)
    for action in (4, -1):
        with pytest.raises(
            ValueError, match=f"^choice is {action}; expected an integer from 0 to 3"
        ):
            env.step(action)
        with pytest.raises(ValueError, match=rf"^choice\[2\] is {action}; expected"):
            envs.step([0, 1, action])
    play_list(env, [0, 1, 2])  # the refused choices left no trace


def test_a_list_begins_with_reset():
    env = ItemByItem(scalar())
    with pytest.raises(gym.error.ResetNeeded, match="call reset"):
        env.step(0)
    env.reset(seed=0)
    play_list(env, [0, 1, 2])
    with pytest.raises(gym.error.ResetNeeded, match="call reset"):
        env.step(3)
    with pytest.raises(gym.error.ResetNeeded, match="call reset"):
        ItemByItemVector(vector()).step([0, 0, 0])


def test_inner_time_limit():
    """It ends the stream, and the next reset is one of the environment."""
    env = ItemByItem(TimeLimit(scalar(), 2))
    assert env.reset(seed=0)[1]
    for truncated in (False, True, False, True):
        assert play_list(env, [0, 1, 2])[3] == truncated
        assert bool(env.reset()[1]) == truncated


def test_observations_are_the_callers_own():
    env = ItemByItem(scalar())
    first, _ = env.reset(seed=0)
    first["placed"][:] = 1
    first["observation"][:] = 1
    second = env.step(0)[0]
    assert second["placed"].sum() == 1
    assert not second["observation"].any()
    env.action_masks()[:] = False
    assert env.action_masks().sum() == 3


@pytest.mark.parametrize("limit", [None, 2])
@pytest.mark.parametrize("env_id", ["PBMRank-v0", "ContextualPBMRank-v0"])
def test_item_by_item_on_streams(limit, env_id):
    """Beside the plain vector environment, given the lists of the choices, nothing is lost and
    nothing is added.
    """
    items = np.random.default_rng(5).permutation(10 if env_id == "PBMRank-v0" else 20)
    envs = ItemByItemVector(make_streams(env_id, limit), items)
    plain = make_streams(env_id, limit)
    n_positions = envs.unwrapped.model.n_positions
    rng = np.random.default_rng(0)
    observations, infos = envs.reset(seed=3)
    expected, expected_infos = plain.reset(seed=3)
    assert same(inner(observations), expected)
    assert same(infos, expected_infos)
    for session in range(1, 8):
        choices = []
        for k in range(n_positions):
            assert (observations["placed"].sum(axis=(1, 2)) == k).all()
            assert observations in envs.observation_space
            masks = envs.action_masks()
            assert (~masks).sum(axis=1).tolist() == [k] * 4
            choices.append([rng.choice(np.flatnonzero(mask)) for mask in masks])
            observations, rewards, terminations, truncations, infos = envs.step(
                np.array(choices[-1])
            )
            if k < n_positions - 1:
                assert not rewards.any()
                assert not (terminations | truncations).any()
                assert infos == {}
        numbers = np.array(choices).T
        expected, paid, _, limits, expected_infos = plain.step(items[numbers])
        over = limit is not None and session % limit == 0
        assert terminations.all()
        assert truncations.tolist() == limits.tolist() == [over] * 4
        assert rewards.tolist() == paid.tolist()
        assert same(inner(observations), expected)
        placed = np.eye(len(items))[numbers]
        assert not observations["placed"].any()
        assert infos["_final_obs"].all()
        assert infos["_final_info"].all()
        assert (
            np.stack([final["placed"] for final in infos["final_obs"]]).tolist() == placed.tolist()
        )
        rows = expected_infos["final_obs"] if over else rows_of(expected)
        assert all(
            same(inner(final), row) for final, row in zip(infos["final_obs"], rows, strict=True)
        )
        assert same(
            infos["final_info"], expected_infos.pop("final_info") if over else expected_infos
        )
        if over:
            assert same(infos["optimal_ranking"], expected_infos["optimal_ranking"])
        else:
            assert set(infos) == {"final_obs", "_final_obs", "final_info", "_final_info"}


def make_streams(env_id, limit):
    return gym.make_vec(env_id, num_envs=4, autoreset_mode="SameStep", max_episode_steps=limit)


def inner(observation):
    rest = {name: value for name, value in observation.items() if name != "placed"}
    return rest.get("observation", rest)


def rows_of(observations):
    if isinstance(observations, dict):
        return [{name: values[b] for name, values in observations.items()} for b in range(4)]
    return list(observations)


def same(a, b):
    np.testing.assert_equal(a, b)
    return True


def test_streams_that_end_apart_are_refused():
    limits = [2, 3]
    envs = ItemByItemVector(
        SyncVectorEnv(
            [lambda limit=limit: TimeLimit(scalar(), limit) for limit in limits],
            autoreset_mode=AutoresetMode.SAME_STEP,
        )
    )
    envs.reset(seed=0)
    for action in [0, 1, 2, 0, 1]:
        envs.step([action, action])
    with pytest.raises(ValueError, match=r"the streams must end together; those that ended: \[0\]"):
        envs.step([2, 2])


def test_item_by_item_a_life_is_an_episode():
    """The sessions of the environment by lists; a new user comes where one has left, and where
    `reset` is called.
    """
    inner = gym.make("CascadeMDPRank-v0", instance="clickbait:mean_sessions=3")
    env, plain, ends = ItemByItem(inner), gym.make(inner.spec), 0
    observation, _ = env.reset(seed=7)
    plain.reset(seed=7)
    for n in range(60):
        assert not observation["placed"].any()
        for item in (3, 1, 0):
            observation, reward, *over, info = env.step(item)
            assert (reward, over, info) == (0.0, [False, False], {})
        observation, reward, terminated, truncated, info = env.step(2)
        expected, paid, left, _, told = plain.step([3, 1, 0, 2])
        assert (reward, terminated, truncated, observation["state"]) == (
            paid,
            left,
            False,
            expected["state"],
        )
        assert observation["clicks"].tolist() == expected["clicks"].tolist()
        np.testing.assert_equal(info, told)
        assert observation["placed"].argmax(axis=1).tolist() == ([3, 1, 0, 2] if left else [0] * 4)
        if left:
            ends += 1
            with pytest.raises(gym.error.ResetNeeded, match="call reset"):
                env.step(0)
        if left or n % 7 == 0:
            observation, info = env.reset()
            expected, told = plain.reset()
            assert (observation["state"], info["optimal_reward"]) == (
                expected["state"],
                told["optimal_reward"],
            )
    assert ends > 10


def test_item_by_item_wants_an_autoreset_mode_it_can_follow():
    disabled = SyncVectorEnv([scalar] * 2, autoreset_mode=AutoresetMode.DISABLED)
    with pytest.raises(ValueError, match="autoreset_mode is DISABLED; expected SAME_STEP"):
        ItemByItemVector(disabled)
