"""Tests of users with memory: the exact optimum against brute force, and the environment against
the model.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from clickgym import make_agent
from clickgym.envs import CascadeMDP, ClickEnv, ClickVectorEnv, load_instance

pytestmark = pytest.mark.uncompiled


def some_users(seed, n_states=2, n_items=3, n_positions=2, **arguments):
    rng = np.random.default_rng(seed)
    given = {"mean_sessions": rng.uniform(1, 12), "first": rng.dirichlet(np.ones(n_states))}
    if rng.random() < 0.5:
        given["click_rewards"] = rng.random((n_states, n_items)) * 2
    attraction = rng.random((n_states, n_items)) * rng.random()
    transition = rng.dirichlet(np.full(n_states, 0.4), (n_states, n_items + 1))
    return CascadeMDP(attraction, transition, n_positions=n_positions, **(given | arguments))


def worth_of(constants, state, ranking, later):
    """The value of a list, computed by following the scan click by click."""
    value, reached = 0.0, 1.0
    for item in ranking:
        q, after = constants.attraction[state, item], constants.transition[state, item] @ later
        value += reached * q * (constants.click_rewards[state, item] + constants.discount * after)
        reached *= 1 - q
    return value + reached * constants.discount * constants.transition[state, -1] @ later


def all_lists(constants):
    return list(itertools.permutations(range(constants.n_items), constants.n_positions))


@pytest.mark.parametrize("seed", range(0, 200, 20))
def test_optimum_is_that_of_enumeration(seed):
    """The optimum is compared in two hundred random models of three sizes."""
    for i in range(20):
        size = [(2, 3, 2), (3, 4, 2), (1, 4, 3)][i % 3]
        users = some_users(seed + i, *size)
        lists = all_lists(users)
        for s in range(users.n_states):  # the fixed point of Bellman's equation is unique
            values = [worth_of(users, s, ranking, users.value) for ranking in lists]
            assert max(values) == pytest.approx(users.value[s], rel=1e-9, abs=1e-12)
            assert worth_of(users, s, users.best[s], users.value) == pytest.approx(
                max(values), rel=1e-9, abs=1e-12
            )


@pytest.mark.parametrize("seed", range(6))
def test_optimum_over_a_fixed_number_of_sessions(seed):
    users = some_users(seed, 3, 4, 2, n_sessions=5)
    later = np.zeros(3)
    for left in range(5):
        values = [[worth_of(users, s, each, later) for each in all_lists(users)] for s in range(3)]
        later = np.max(values, axis=1)
        np.testing.assert_allclose(users.value[left], later, rtol=1e-9)


def test_policy_value_over_a_fixed_number_of_sessions():
    users, lists = some_users(0, 3, 4, 2, n_sessions=5), [[0, 1], [2, 3], [1, 2]]
    later = np.zeros(3)
    for _ in range(5):
        later = np.array([worth_of(users, s, lists[s], later) for s in range(3)])
    np.testing.assert_allclose(users.policy_value(lists), later)


def test_other_names_of_items_change_no_value():
    users, order = some_users(0, 2, 4, click_rewards=np.arange(8).reshape(2, 4)), [2, 0, 3, 1]
    renamed = users.relabelled(order)
    np.testing.assert_allclose(renamed.value, users.value, rtol=1e-12)
    np.testing.assert_array_equal(np.take(order, renamed.best), users.best)


@pytest.mark.parametrize("seed", [0, 1])
def test_policy_value_is_the_mean_reward(seed):
    """Null: the mean total reward of 4,000 users is the policy's value. One z-test for each seed,
    with a false-alarm rate of 1e-4.
    """
    users = some_users(seed, 3, 4, 2, mean_sessions=5.0)
    rng = np.random.default_rng(seed)
    lists = np.array([rng.permutation(4)[:2] for _ in range(3)])
    env, earned = ClickEnv(users), []
    observation, _ = env.reset(seed=seed)
    while len(earned) < 4000:
        total, over = 0.0, False
        while not over:
            state = observation["state"]
            observation, reward, over, _, info = env.step(lists[state])
            if len(earned) < 100:  # the value of a list includes the best continuation
                worth = worth_of(users, state, lists[state], users.value)
                assert info["expected_reward"] == pytest.approx(worth, rel=1e-9)
            total += reward
        earned.append(total)
        observation, _ = env.reset()
    expected = users.first @ users.policy_value(lists)
    z = (np.mean(earned) - expected) / (np.std(earned) / np.sqrt(len(earned)))
    assert 2 * stats.norm.sf(abs(z)) > 1e-4


def test_tastes_and_moves_of_families():
    """With three states, attractions and transitions after a click on each item, and after no
    click, follow the definition.
    """
    bait, habit, independent = (
        load_instance(f"{name}:n_states=3,seed=1").model("CascadeMDP")
        for name in ("clickbait", "habit", "independent")
    )
    stays, down, up = np.eye(3), np.eye(3)[[1, 2, 2]], np.eye(3)[[0, 0, 1]]
    decay = np.array([[1.0], [0.625], [0.25]])
    first = bait.attraction[0]
    assert ((first >= 0.05) & (first <= 0.5)).all()
    np.testing.assert_allclose(bait.attraction, decay * first)
    for item, is_bait in enumerate(first > np.median(first)):
        moves = 0.8 * down + 0.2 * stays if is_bait else 0.5 * up + 0.5 * stays
        np.testing.assert_allclose(bait.transition[:, item], moves)
    np.testing.assert_allclose(bait.transition[:, -1], stays)
    np.testing.assert_allclose(habit.attraction, decay[::-1] * habit.attraction[-1])
    satisfies = habit.transition[0, :-1, 1]
    assert {*satisfies.round(9)} == {0.05, 0.6}
    for item, share in enumerate(satisfies):
        moves = share * down + (1 - share) * (0.3 * up + 0.7 * stays)
        np.testing.assert_allclose(habit.transition[:, item], moves)
    np.testing.assert_allclose(habit.transition[:, -1], 0.1 * up + 0.9 * stays)
    tastes = np.sort(independent.attraction / decay, axis=1)
    np.testing.assert_allclose(tastes, tastes[[0, 0, 0]])
    assert len({tuple(row.argsort()) for row in independent.attraction}) == 3
    assert (independent.transition == independent.transition[:, :1]).all()


def test_tastes_and_moves_of_a_journey():
    """With three states and six items, two items lead on in each state, two tempt and lead back,
    and a click on the other two changes nothing.
    """
    users = load_instance("journey:n_states=3,n_items=6,n_positions=2,seed=1").model("CascadeMDP")
    base = np.random.default_rng(1).uniform(0.05, 0.5, 6)
    best_first = np.argsort(-base)
    for state, richness in enumerate([0.25, 0.625, 1.0]):
        on, back = np.eye(3)[min(state + 1, 2)], np.eye(3)[max(state - 1, 0)]
        kinds = {state: (0.7, on), (state - 1) % 3: (1.0, back)}
        for place, item in enumerate(best_first):
            appeal, moves = kinds.get(place % 3, (0.7, np.eye(3)[state]))
            assert users.attraction[state, item] == pytest.approx(richness * appeal * base[item])
            np.testing.assert_array_equal(users.transition[state, item], moves)
        np.testing.assert_array_equal(users.transition[state, -1], np.eye(3)[state])
    np.testing.assert_array_equal(users.first, [1, 0, 0])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sizes", ["n_items=12", "n_items=16", "n_states=6"])
def test_a_journey_needs_the_state_and_planning(sizes, seed):
    """The best single list for all states loses at least 30 % of the clicks that the best lists
    get, and the myopic lists lose at least 25 %.
    """
    users = load_instance(f"journey:{sizes},n_positions=2,seed={seed}").model("CascadeMDP")
    optimum, myopic = users.first @ users.value, np.argsort(-users.attraction, axis=1)[:, :2]
    single = [users.policy_value([ranking] * users.n_states) for ranking in all_lists(users)]
    assert max(users.first @ value for value in single) <= 0.7 * optimum
    assert users.first @ users.policy_value(myopic) <= 0.75 * optimum


@pytest.mark.parametrize("given", [{"n_sessions": 3}, {"mean_sessions": 7.0}])
def test_agents_are_told_how_long_a_user_stays(given):
    agent = make_agent("CascadeVI", ClickEnv(some_users(0, **given)), seed=0)
    assert [agent.hyperparameters["mean_sessions"]] == [*given.values()]


def test_the_best_lists_of_each_session_lose_nothing():
    users = some_users(0, 2, 4, 2, n_sessions=3)
    env = ClickEnv(users)
    for seed in range(20):
        observation, _ = env.reset(seed=seed)
        over = False
        while not over:
            ranking = users.best[observation["sessions_left"] - 1, observation["state"]]
            observation, _, over, _, info = env.step(ranking)
            assert info["regret"] == pytest.approx(0, abs=1e-9)


def test_actions_after_a_user_has_left():
    """In the step that brings the next user, the lists of streams whose users left are ignored,
    even if they are bad and even on all streams.
    """
    users, good = some_users(1, 3, 4, 2, mean_sessions=2.0), np.tile([0, 1], (3, 1))
    envs, twins = (ClickVectorEnv(users, 3) for _ in range(2))
    envs.reset(seed=0)
    twins.reset(seed=0)
    ended, some, everybody = np.zeros(3, bool), 0, 0
    for _ in range(300):
        actions = good.copy()
        actions[ended] = [[7, 7]]
        some, everybody = some + (0 < ended.sum() < 3), everybody + ended.all()
        results = [envs.step(actions), twins.step(good)]
        np.testing.assert_equal(*results)
        infos = results[0][4]
        assert not infos["regret"][ended].any()  # no session was played there
        assert not infos["expected_reward"][ended].any()
        ended = results[0][2]
    assert some > 100
    assert everybody > 0
