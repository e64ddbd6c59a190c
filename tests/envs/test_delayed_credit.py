"""Transitions of lists whose clicks have arrived."""

import gymnasium as gym
import numpy as np
import pytest

from clickgym.envs import ClickEnv, DelayedCredit, LehmerAction, PositionBasedModel

N = 10
SURE = PositionBasedModel([1.0] * N + [0.0] * N, [1.0] * N)
"""The first ten items are always clicked, the others never: the reward of a list is how many of the first it shows."""


def list_of(reward):
    return np.concatenate([np.arange(reward), N + np.arange(N - reward)])


def play(env, rewards, seed=0):
    """What was observed before each list, and the rewards and infos of the steps."""
    observation, _ = env.reset(seed=seed)
    seen, paid, infos = [], [], []
    for reward in rewards:
        seen.append(observation)
        observation, of_step, _, _, info = env.step(list_of(reward))
        paid.append(of_step)
        infos.append(info)
    return seen, paid, infos


def late(arrival, **arguments):
    return DelayedCredit(ClickEnv(SURE, arrival=arrival, **arguments))


def same(one, other):
    if not isinstance(one, dict):
        return np.array_equal(one, other)
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize(
    ("arrival", "expected", "paid"),
    [
        ("batch:3", [[], [], [1, 2, 3], [], [], [4, 5, 6], [], [], [7, 8, 9], []], [0, 0, 6, 0, 0, 15, 0, 0, 24, 0]),
        ("delay:2", [[], [], [1], [2], [3], [4], [5], [6], [7], [8]], [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]),
        ("immediate", [[s] for s in range(1, 11)], list(range(1, 11))),
    ],
)
def test_a_list_comes_with_its_own_observation_and_reward_when_its_clicks_do(arrival, expected, paid):
    """List s earns s. Paid to the list of the step, the rewards of batch:3 would be 0 0 6 0 0 15. An incomplete batch, here
    the tenth list, never comes."""
    seen, of_steps, infos = play(late(arrival), range(1, N + 1))
    assert of_steps == paid
    assert [[transition.display for transition in info["transitions"]] for info in infos] == expected
    for observation, ranking, reward, display in (transition for info in infos for transition in info["transitions"]):
        assert reward == display
        assert ranking.tolist() == list_of(display).tolist()
        assert same(observation, seen[display - 1])


def test_observations_rewards_and_infos_stay_as_they_are():
    for arrival in ("immediate", "delay:geometric:3:lost=0.2"):
        env = ClickEnv(SURE, arrival=arrival, available=14, churn=0.1)
        with_it, without = DelayedCredit(ClickEnv(SURE, arrival=arrival, available=14, churn=0.1)), env
        observations = [each.reset(seed=3)[0] for each in (with_it, without)]
        for _ in range(60):
            assert same(*observations)
            ranking = np.flatnonzero(observations[0]["available"])[:N]
            (one, reward, *_, info), (other, expected, *_, facts) = with_it.step(ranking), without.step(ranking)
            assert reward == expected
            transitions = info.pop("transitions")
            assert same(info, facts)
            if arrival == "immediate":
                assert [transition.reward for transition in transitions] == [reward]
            observations = [one, other]


def test_lost_lists_never_come_and_others_once_in_the_order_of_arrival():
    env = late("delay:geometric:5:lost=0.3")
    rewards = np.random.default_rng(0).integers(0, N, 400)
    _, paid, infos = play(env, rewards)
    arrived = [[transition.display for transition in info["transitions"]] for info in infos]
    assert all(displays == sorted(displays) for displays in arrived)
    displays = [display for at_once in arrived for display in at_once]
    assert len(set(displays)) == len(displays) < 320
    assert displays != sorted(displays)
    for of_step, info in zip(paid, infos, strict=True):
        assert of_step == sum(transition.reward for transition in info["transitions"])
        assert all(transition.reward == rewards[transition.display - 1] for transition in info["transitions"])


def test_the_oldest_display_is_given_up_beyond_what_the_environment_keeps():
    env = late("delay:geometric:1000:max_open=20")
    _, _, infos = play(env, [5] * 200)
    arrived = sum(len(info["transitions"]) for info in infos)
    assert env.dropped == env.unwrapped.axes.arrival_state.dropped[0] == 200 - 20 - arrived > 100


def test_observations_that_wait_share_the_rows_in_which_nothing_arrived():
    """A batch of 10,000 would otherwise keep 10,000 times 10,000 rows."""
    _, _, infos = play(late("batch:8"), [1] * 16)
    first, *others = [transition.observation["rankings"] for transition in infos[-1]["transitions"]]
    assert (first >= 0).all()
    assert len({id(rankings) for rankings in others}) == 1


def test_an_episode_that_goes_on_keeps_what_is_open_and_a_seed_drops_it():
    env = late("delay:2")
    play(env, [1, 2])
    env.reset()
    assert [t.display for t in env.step(list_of(3))[-1]["transitions"]] == [1]
    env.reset(seed=0)
    assert [len(env.step(list_of(3))[-1]["transitions"]) for _ in range(3)] == [0, 0, 1]


def test_only_ranked_lists_of_this_package_get_credit():
    with pytest.raises(TypeError, match=r"DelayedCredit needs .* whose actions are ranked lists; got .*LehmerAction"):
        DelayedCredit(LehmerAction(gym.make("PBMRank-v0")))
    with pytest.raises(TypeError, match="DelayedCredit needs an environment of clickgym"):
        DelayedCredit(gym.make("CartPole-v1"))
    with pytest.raises(TypeError, match=r"Lehmer codes stand for ranked lists, but .*which is for loops of your own"):
        LehmerAction(late("batch:3"))


def test_its_action_space_draws_what_the_environment_takes():
    env = late("batch:3", available=12)
    env.action_space.seed(0)
    observation, _ = env.reset(seed=0)
    for _ in range(20):
        ranking = env.action_space.sample()
        assert ranking in env.action_space
        assert observation["available"][ranking].all()
        observation, *_ = env.step(ranking)
    assert [0] * N not in env.action_space
