"""Tests of environments of other packages that take ranked lists and report clicks: what is
measured in them.
"""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
import polars
import pytest
from gymnasium.spaces import Dict, Discrete, MultiBinary, MultiDiscrete
from gymnasium.wrappers import TimeLimit

import clickgym
from clickgym.envs import SessionError

pytestmark = pytest.mark.uncompiled

ATTRACTION = np.array([0.1, 0.7, 0.5, 0.2])
N_ITEMS, K = 4, 2
CLICKS = {"binary": MultiBinary(K), "mapping": Dict(clicks=MultiBinary(K), hour=Discrete(24))}


class Shop(gym.Env):
    """An environment in which every item shown is clicked with its own probability; its ``info``
    contains what ``tells`` returns.
    """

    def __init__(self, tells: str = "nothing", clicks: str = "binary") -> None:
        self.action_space, self.observation_space = MultiDiscrete([N_ITEMS] * K), CLICKS[clicks]
        self.tells, self.shows = tells, clicks
        self.buffer, self.steps, self.resets = np.zeros(K, np.int8), 0, 0

    def _observe(self) -> Any:
        return {"clicks": self.buffer, "hour": 3} if self.shows == "mapping" else self.buffer

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.resets += 1
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        self.buffer[:] = self.np_random.random(K) < ATTRACTION[action]
        expected, optimum = float(ATTRACTION[action].sum()), 1.2
        action[:] = -1  # what it gets is its own
        info = {
            "nothing": {},
            "rewards": {"expected_reward": expected, "optimal_reward": optimum},
            "regret": {"regret": optimum - expected},
            "half": {"expected_reward": expected},
        }[self.tells]
        return self._observe(), float(self.buffer.sum()), False, False, info


class Shelf(Shop):
    """An environment with its own id in sweeps."""


gym.register("GuestShop-v0", entry_point=Shop)
gym.register("GuestShelf-v0", entry_point=Shelf, kwargs={"tells": "regret"})


def agent(seed: int = 0) -> Any:
    return clickgym.agents.TopRank(N_ITEMS, K, horizon=1000, seed=seed)


class Remembers(clickgym.agents.Agent):
    """An agent that stores the observations before and after its lists."""

    def __init__(self) -> None:
        self.before: list[Any] = []
        self.after: list[Any] = []

    def rank(self, observation: Any) -> Any:
        self.before.append(observation.tolist())
        return [0, 1]

    def update(self, observation: Any, ranking: Any, clicks: Any, reward: float) -> None:
        self.after.append(observation.tolist())


def test_an_update_gets_what_the_list_was_chosen_by():
    """This holds even if an environment reuses the array of its observation, or starts an episode
    with the same array.
    """
    for env in (Shop(), TimeLimit(Shop(), 2)):
        mine = Remembers()
        clickgym.run(mine, env, 50, seed=0)
        assert mine.before == mine.after
        assert [1, 1] in mine.before


@pytest.mark.parametrize("tells", ["regret", "rewards"])
def test_regret_is_what_info_tells(tells):
    result = clickgym.run(
        clickgym.agents.Fixed(N_ITEMS, K, ranking=[0, 1]), Shop(tells), 100, seed=0
    )
    np.testing.assert_allclose(result.regret, 0.4 * result.steps)
    assert result.to_frame()["regret"].null_count() == 0


@pytest.mark.parametrize("tells", ["nothing", "half"])
def test_unknown_regret(tells):
    with pytest.warns(UserWarning, match="the regret in Shop is unknown") as warned:
        result = clickgym.run(agent(), Shop(tells), 100, seed=0)
    assert len([it for it in warned if "is unknown" in str(it.message)]) == 1
    assert np.isnan(result.regret).all()
    assert result.reward[-1] > 0
    frame = result.to_frame()
    assert frame["regret"].null_count() == len(frame)
    assert frame.schema["regret"] == polars.Float64
    assert (result.env, result.instance) == ("Shop", "custom")


@pytest.mark.parametrize(
    ("lists", "clicks"),
    [
        (Discrete(3), CLICKS["binary"]),
        (MultiDiscrete([4, 3]), CLICKS["binary"]),
        (MultiDiscrete([N_ITEMS] * K), Dict(page=MultiBinary(K))),
    ],
)
def test_other_spaces_are_refused(lists, clicks):
    """The error names the action space that is expected."""
    env = Shop()
    env.action_space, env.observation_space = lists, clicks
    with pytest.raises(ValueError, match=r"expected (ranked lists|the clicks)"):
        clickgym.run("Random", env, 10)


def test_record_regret_measures_a_guest():
    for tells, known in (("rewards", True), ("nothing", False)):
        env = clickgym.RecordRegret(Shop(tells, clicks="mapping"))
        env.reset(seed=0)
        for _ in range(10):
            env.step(np.array([0, 1]))
        assert env.meter.step == 10
        assert env.meter.clicks[-1] == env.meter.reward[-1]
        assert env.meter.regret[[4, 9]].tolist() == pytest.approx(
            [2.0, 4.0] if known else [math.nan] * 2, nan_ok=True
        )


EXPECTED = "; expected 2 clicks, each 0 or 1"
FAULTS = {
    "an error": (ValueError("no stock"), r"ValueError: no stock \(.*in step: 'raise wrong'\)"),
    "clicks .5": (([0.5, 0], 1.0, False, False, {}), EXPECTED),
    "reward nan": (([1, 0], np.nan, False, False, {}), "reward is nan; expected a finite number"),
    "four values": (([1, 0], 1.0, False, {}), r"the result is .*; expected \(observation, rew"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_of_an_environment_are_not_those_of_the_agent(name):
    wrong, told = FAULTS[name]

    class Broken(Shop):
        def reset(self, *, seed=None, options=None):
            return super().reset(seed=seed) if not self.resets else 1 / 0

        def step(self, action):
            answer = super().step(action)
            if self.steps < 7:
                return answer
            if isinstance(wrong, BaseException):
                raise wrong
            return wrong

    for env, fault in (
        (Broken(), f"step 7: .*{told}.*"),
        (TimeLimit(Broken(), 3), "reset: ZeroDivisionError: .*"),
    ):
        with pytest.raises(SessionError, match=rf"^Broken, {fault} \(agent: TopRank\)$") as caught:
            clickgym.run(agent(), env, 100, seed=0)
        assert type(caught.value) is SessionError


# ---------------------------------------------------------------------------------- sweeps, reports


def test_reports_of_unknown_regret(tmp_path, printed):
    """Regret is unknown in one of two environments."""
    envs = ["GuestShop-v0", "GuestShelf-v0"]
    clickgym.sweep(envs, ["Random", "TopRank"], 100, 3, out=tmp_path, n_jobs=1, engine="python")
    said = printed(["report", str(tmp_path), "--agents", "Random", "TopRank"])  # draws nothing
    assert said.startswith("Regret or total reward after")
    for text in (said, clickgym.Results(tmp_path).to_latex()):
        assert "Regret is unknown in GuestShop" in text
        assert "nan" not in text
        assert "None" not in text
    svg = (tmp_path / "regret.svg").read_text()
    assert "<!-- cumulative reward -->" in svg
    assert "<!-- cumulative regret -->" in svg
