"""Generic reinforcement learning where clicks come late, from bots, or on items that come and go."""

import gymnasium as gym
import numpy as np
import pytest
from slow import slow

import clickgym
from clickgym.agents import LEARNERS
from clickgym.envs import ClickEnv, PositionBasedModel
from clickgym.envs.wrappers.regret import Meter
from clickgym.runner.labels import UnsuitedError
from clickgym.runner.metrics import Metrics

pytest.importorskip("stable_baselines3")
SMALL = PositionBasedModel([0.6, 0.5, 0.3, 0.1], [1.0, 0.7])
ALL = {"arrival": "delay:geometric:3:lost=0.1", "bots": "farm:share=0.2", "churn": 0.05}


def quick(name, **arguments):
    settings = LEARNERS[name].settings
    small = {"n_envs": 8, "learning_starts": 16, "batch_size": 8, "n_steps": 4}
    return LEARNERS[name](4, 2, **{key: value for key, value in small.items() if key in settings} | arguments)


@pytest.mark.parametrize("name", ["A2C", *slow(*(name for name in LEARNERS if name != "A2C"))])
@pytest.mark.parametrize("axes", [ALL, *slow({"arrival": "batch:100"}, {"bots": "random:first=50"}, {"churn": 0.1})])
def test_a_learner_plays_every_axis_up_to_the_horizon(name, axes):
    if name == "RecurrentPPO":  # refused where clicks come late
        axes = {key: value for key, value in axes.items() if key != "arrival"}

    def measured(seed):
        return clickgym.run(quick(name, seed=seed), ClickEnv(SMALL, **axes), 303, seed=1, checkpoints=[1, 100, 303])

    result = measured(0)
    assert result.steps.tolist() == [1, 100, 303]
    assert result.engine == "stable-baselines3"
    assert 0 < result.regret[-1] < 303
    assert 0 < result.reward[-1] == result.clicks[-1]
    assert measured(0).regret.tolist() == result.regret.tolist() != measured(2).regret.tolist()


@pytest.mark.parametrize("axes", [{"available": 3}, *slow(ALL | {"available": 2})])
@pytest.mark.parametrize(
    ("name", "actions"), [("MaskablePPO", "items"), ("DQN", "items"), ("SAC", "scores"), *slow(("RecurrentPPO", "scores"))]
)
def test_lists_are_made_of_what_is_available(name, actions, axes):
    """Any other list would be refused by the environment."""
    result = clickgym.run(quick(name, actions=actions, seed=0), ClickEnv(SMALL, **axes), 101, seed=0)
    assert result.steps[-1] == 101
    assert result.regret[-1] > 0


def streams(n, horizon, metrics=(), **axes):
    from clickgym.runner.learners.in_turn import InTurn

    env = ClickEnv(SMALL, **axes)
    env.reset(seed=5)
    measured = Metrics(metrics)
    return InTurn(env, n, Meter(range(1, horizon + 1), len(metrics)), measured)


@pytest.mark.parametrize("axes", [ALL, ALL | {"arrival": "batch:7"}])
def test_users_and_regret_are_those_of_the_environment_however_many_lists_are_chosen_at_once(axes):
    lists = np.array([np.random.default_rng(t).permutation(4)[:2] for t in range(48)])
    env, expected = ClickEnv(SMALL, **axes), np.zeros((48, 3))
    env.reset(seed=5)
    rewards = np.zeros(48)
    for t, ranking in enumerate(lists):
        _, rewards[t], _, _, info = env.step(ranking)
        clicks = info["true_clicks"].sum() * (not info["bot"])
        expected[t] = info["regret"], info["realised_reward"], clicks
    assert (expected[:, 2] == 0).sum() > 5
    assert (rewards != expected[:, 1]).any()
    for n in (1, 6, 16):
        envs = streams(n, 48, ["any_click"], **axes)
        envs.reset()
        got = [envs.step(lists[t : t + n])[1] for t in range(0, 48, n)]
        assert np.concatenate(got).tolist() == rewards.tolist()
        meter = envs.meter
        np.testing.assert_array_equal(np.stack([meter.regret, meter.reward, meter.clicks], 1), np.cumsum(expected, axis=0))
        assert meter.metrics[-1, 0] == (expected[:, 2] > 0).sum()


def test_what_a_stream_sees_is_what_had_arrived_when_its_session_ended():
    """Two sessions arrive after every second; how often an item was shown and clicked at each position."""
    envs = streams(3, 10, arrival="batch:2")
    first, _ = envs.reset()
    assert first.shape == (3, 17)
    assert not first.any()
    assert first in envs.observation_space
    seen, rewards, *_ = envs.step(np.array([[0, 1], [0, 2], [3, 1]]))
    assert seen in envs.observation_space
    assert not seen[[0, 2]].any()
    assert rewards[[0, 2]].tolist() == [0, 0]
    shown, clicked, share = seen[1, :8].reshape(2, 4), seen[1, 8:16].reshape(2, 4), seen[1, 16]
    assert shown.tolist() == [[1, 0, 0, 0], [0, 0.5, 0.5, 0]]
    assert share == 1
    assert 2 * clicked.sum() == rewards[1]
    assert (clicked <= shown).all()


def test_what_was_replaced_and_what_is_available_are_seen():
    envs = streams(4, 100, churn=0.5, available=3, arrival="delay:1")
    seen, _ = envs.reset()
    replaced, env, n_void = 0, envs._env, 0
    for _ in range(25):
        masks = envs.action_space.available.copy()
        assert (seen[:, -4:] == masks).all()
        assert (masks.sum(axis=1) == 3).all()
        seen = envs.step(np.argsort(~masks, axis=1, kind="stable")[:, :2])[0]  # refused if the masks were others
        assert (seen.sum(axis=1) <= 2 * 2 + 1 + 1 + 3).all()
        replaced += seen[:, -8:-4].sum()
        n_void += (seen[:, :8].sum(axis=1) < 2).sum()
        assert seen[-1, -8:-4].any() == (env.axes.churn_state.replaced[0] >= 0)
    assert 30 < replaced < 70
    assert n_void > 10
    assert (envs.action_space.available[0] == env.axes.mask[0]).all()


@pytest.mark.parametrize(
    ("learner", "env", "message"),
    [
        (("PPO", {"actions": "codes"}), {"available": 3}, r"PPO with actions='codes' cannot .*\(available=3\), because its"),
        (("RecurrentPPO", {}), {"available": 3}, r"mean other items in every session; with actions='scores' they do not$"),
        (("DQN", {"actions": "lists"}), {"available": 3}, r"with actions='items' they do not$"),
        (("PPO", {"protocol": "meta"}), {"churn": 0.1}, r"protocol='meta' reads clicks .* cannot be run with churn=0.1$"),
    ],
)
def test_a_learner_that_cannot_is_refused_before_any_work(learner, env, message):
    name, arguments = learner
    with pytest.raises(UnsuitedError, match=message):
        clickgym.run(LEARNERS[name](4, 2, **arguments), ClickEnv(SMALL, **env), 50, seed=0)


@pytest.mark.parametrize(("share", "is_heard"), [(0.999999999, False), (0.5, True)])
def test_before_users_with_a_memory_the_learner_gets_the_reports_of_bots_and_regret_is_that_of_the_users(share, is_heard):
    """A corrupted session reports nothing but the target's click, and the target is never shown."""
    from clickgym.runner.learners.play import _recorded

    env = gym.make("CascadeMDPRank-v0", bots=f"quit:share={share}:target=11").unwrapped
    env.reset(seed=0)
    meter = Meter(range(1, 401), 1)
    envs = _recorded(LEARNERS["A2C"](12, 4, seed=0), env, 8, meter, Metrics(["any_click"]))
    envs.reset(seed=0)
    rewards = [envs.step(np.tile([3, 1, 0, 2], (8, 1)))[1].sum() for _ in range(50)]
    assert (sum(rewards) > 0) == is_heard
    assert sum(rewards) < meter.reward[-1] == meter.clicks[-1] == meter.metrics[-1, 0]
    assert (np.diff(meter.regret) > 0).any()


def test_before_users_with_a_memory_no_sessions_are_the_first():
    message = r"of which no sessions are the first \(bots='quit:first=5'\); bots of a share= can"
    with pytest.raises(UnsuitedError, match=message):
        clickgym.run("A2C", "CascadeMDPRank-v0:bots=quit:first=5", 50, seed=0)


def test_axes_at_their_defaults_change_nothing():
    results = [clickgym.run(quick("A2C", seed=0), ClickEnv(SMALL, **axes), 64, seed=0) for axes in ({}, {"available": 4})]
    assert results[0].regret.tolist() == results[1].regret.tolist()
