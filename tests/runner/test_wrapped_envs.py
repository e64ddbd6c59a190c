"""Tests of wrapped environments: wrappers of observations and rewards are allowed, and the list
that an agent chooses is the list that is shown.
"""

from __future__ import annotations

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import wrappers

import clickgym
import clickgym.logs
from clickgym.envs import ItemByItem, ScoresAction, SessionError

BEST = [0, 1]
USERS = {"attraction": [0.7, 0.6, 0.2, 0.1], "examination": [1.0, 0.5]}


def users(**arguments):
    return gym.make("PBMRank-v0", **USERS, **arguments)


def best():
    return clickgym.agents.Fixed(4, 2, ranking=BEST)


class Reversed(gym.ActionWrapper):
    def action(self, action):
        return action[::-1]


@pytest.mark.parametrize("wrapper", [ScoresAction, ItemByItem])
def test_wrappers_with_other_actions_are_refused(wrapper, tmp_path):
    """The error comes before the first session, in one line that says what is expected."""

    def make():
        return wrapper(users())

    for call in (
        lambda: clickgym.run("Random", make, 100, engine="python"),
        lambda: clickgym.make_agent("TopRank", make(), horizon=100),
        lambda: clickgym.sweep({"mine": make}, ["Random"], 100, 2, out=tmp_path / "out"),
    ):
        with pytest.raises(ValueError, match=r"^the action space of .*; expected ranked lists: .*"):
            call()
    assert not (tmp_path / "out").exists()


def test_a_wrapper_that_shows_another_list_is_noticed():
    env = wrappers.TransformReward(clickgym.RecordRegret(Reversed(users())), float)
    with pytest.raises(
        SessionError, match=r"step 1: a wrapper showed \[1, 0\], but the agent chose"
    ):
        clickgym.run(best(), env, 100, seed=0)


OBSERVATIONS = {
    "flattened": wrappers.FlattenObservation,
    "normalised": wrappers.NormalizeObservation,
    "rewards": lambda env: wrappers.TransformReward(env, lambda reward: 3.0 * reward),
    "measured": clickgym.RecordRegret,
}


@pytest.mark.parametrize("name", OBSERVATIONS)
def test_wrappers_of_observations_and_rewards(name):
    """If a wrapper hides the clicks, agents get the users' own clicks, so the results equal those
    without the wrapper.
    """
    plain = clickgym.run("TopRank", users(), 200, seed=1, engine="python")
    env = OBSERVATIONS[name](users())
    result = clickgym.run("TopRank", env, 200, seed=1, metrics=["any_click"])
    assert result.engine == "python"
    if name == "rewards":  # the regret is not that of this reward
        assert np.isnan(result.regret[-1])
    else:
        np.testing.assert_array_equal(result.regret, plain.regret)
    np.testing.assert_array_equal(result.clicks, plain.clicks)
    np.testing.assert_array_equal(result.reward, plain.reward * (3 if name == "rewards" else 1))
    recorded = clickgym.RecordRegret(OBSERVATIONS[name](users()))
    recorded.reset(seed=4)
    recorded.step([0, 1])
    assert recorded.meter.clicks == recorded.unwrapped.last_session()[1].sum()


class Priced(gym.Wrapper):
    """A wrapper in which clicks on items with odd ids count twice."""

    def __init__(self, env, tells=False):
        super().__init__(env)
        self.tells = tells

    def step(self, ranking):
        clicks, reward, terminated, truncated, info = self.env.step(ranking)
        extra = clicks @ (np.asarray(ranking) % 2)
        if self.tells:
            info |= {"regret": 2.0}
        return clicks, reward + extra, terminated, truncated, info


@pytest.mark.parametrize("tells", [False, True])
def test_regret_of_another_reward(tells):
    """The regret is unknown unless the wrapper reports it; agents are then ordered by reward."""
    recorded = clickgym.RecordRegret(Priced(users(), tells))
    with warnings.catch_warnings(record=True, action="always") as caught:
        result = clickgym.run("TopRank", recorded, 200, seed=1, checkpoints=[1, 100])
    told = [it for it in caught if "is unknown (nan)" in str(it.message)]
    assert len(told) == (0 if tells else 2)  # one of the record, one of the run
    assert result.regret[-1] == pytest.approx(400.0 if tells else np.nan, nan_ok=True)
    np.testing.assert_array_equal(result.regret, recorded.meter.regret[[0, 99, 199]])
    assert result.reward[-1] > result.clicks[-1]


class OnlyLast(gym.ObservationWrapper):
    """A wrapper that hides all clicks except the last."""

    def observation(self, clicks):
        return clicks * (np.cumsum(clicks[::-1])[::-1] == 1)


class Learner(clickgym.agents.Fixed):
    """An agent that stores the clicks it is shown."""

    def update(self, observation, ranking, clicks, reward):
        self.shown = [*getattr(self, "shown", []), clicks.tolist()]


def test_a_wrapper_that_changes_clicks():
    """Agents, logs and metrics all use the clicks that the wrapper shows. Regret depends only on
    the lists.
    """
    agents = [Learner(4, 2, ranking=BEST) for _ in range(2)]
    plain, changed = (
        clickgym.run(agent, layers, 200, seed=1, engine="python", metrics=["any_click"])
        for agent, layers in zip(agents, (users(), OnlyLast(users())), strict=True)
    )
    true, shown = (np.array(agent.shown) for agent in agents)
    assert not np.array_equal(shown, true)
    np.testing.assert_array_equal(shown, true * np.column_stack([1 - true[:, 1], [1] * 200]))
    np.testing.assert_array_equal(changed.regret, plain.regret)
    assert changed.clicks[-1] == shown.sum() != plain.clicks[-1]
    assert changed.metrics["any_click"][-1] == shown.any(axis=1).sum()
    recorded = clickgym.RecordRegret(OnlyLast(users()))
    clickgym.run(best(), recorded, 200, seed=1)
    assert recorded.meter.clicks[-1] == shown.sum()
    log = clickgym.logs.record(agents[0], OnlyLast(users()), 200, seed=1)
    np.testing.assert_array_equal(log.clicks, shown)


def test_a_wrapper_that_delays_clicks_is_refused():
    """The error comes before the first session, whatever is around the wrapper."""

    def late():
        return clickgym.RecordRegret(wrappers.DelayObservation(users(), 1))

    for call in (
        lambda: clickgym.run(best(), late(), 100, seed=0),
        lambda: clickgym.sweep({"mine": late}, ["Random"], 100, 2),
        lambda: clickgym.logs.record(best(), late(), 100, seed=0),
    ):
        with pytest.raises(ValueError, match="has the wrapper DelayObservation, which"):
            call()


class FourTimes(gym.Wrapper):
    """A wrapper that shows each list four times and returns the last session."""

    def step(self, action):
        for _ in range(3):
            self.env.step(action)
        return self.env.step(action)


class OwnSeed(gym.Wrapper):
    """A wrapper that resets the users with its own seed."""

    def reset(self, *, seed=None, options=None):
        return self.env.reset(seed=7)


def test_sessions_that_a_wrapper_plays_besides_are_counted():
    """The additional sessions of each run are counted separately."""
    four = FourTimes(gym.make("PBMRank-v0"))
    for result in [clickgym.run("Random", four, 100, seed=0) for _ in range(2)]:
        assert (result.unrecorded, result.env, result.seed) == (300, "PBMRank-v0", 0)


def test_a_wrapper_that_keeps_the_seed_for_itself_is_refused():
    """The runs of such a sweep would all meet the same users, but count as different runs."""
    mine = {"mine": lambda: OwnSeed(gym.make("PBMRank-v0"))}
    with pytest.raises(SessionError, match=r"^PBMRank-v0 did not receive the run's seed, \d+"):
        clickgym.sweep(mine, ["Random"], 100, 2, n_jobs=1)
