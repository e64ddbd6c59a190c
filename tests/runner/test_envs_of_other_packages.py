"""Tests of environments of other packages that take ranked lists and report clicks: what is
measured in them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars
import pytest
from gymnasium.spaces import Dict, MultiBinary, MultiDiscrete
from gymnasium.wrappers import TimeLimit

import clickgym
from clickgym.envs import SessionError
from tests.helpers.news import K, L, News

pytestmark = pytest.mark.uncompiled


class Shop(News):
    """An environment whose users never stop. It reuses the array of its clicks, and overwrites the
    lists that it gets.
    """

    def __init__(self, tells: str = "", observes_hour: bool = False) -> None:
        super().__init__(tells, observes_hour)
        self.buffer, self.steps, self.resets = np.zeros(K, np.int8), 0, 0

    def _observe(self, clicks: Any) -> Any:
        self.buffer[:] = clicks
        return super()._observe(self.buffer)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.resets += 1
        return super().reset(seed=seed)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        observation, reward, _, cut, info = super().step(action)
        action[:] = -1
        return observation, reward, False, cut, info


class Remembers(clickgym.agents.Agent):
    """An agent that stores the observations before and after its lists."""

    def __init__(self) -> None:
        self.before: list[Any] = []
        self.after: list[Any] = []

    def rank(self, observation: Any) -> Any:
        self.before.append(observation.tolist())
        return [0, 1, 2]

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
        assert len({*map(tuple, mine.before)}) > 2


@pytest.mark.parametrize("tells", ["regret", "expected_reward optimal_reward"])
def test_regret_is_what_info_tells(tells):
    fixed = clickgym.agents.Fixed(L, K, ranking=[0, 1, 2])
    result = clickgym.run(fixed, Shop(tells), 100, seed=0)
    np.testing.assert_allclose(result.regret, 0.9 * result.steps)
    assert result.to_frame()["regret"].null_count() == 0


@pytest.mark.parametrize("tells", ["", "expected_reward"])
def test_unknown_regret(tells):
    with pytest.warns(UserWarning, match="the regret in Shop is unknown") as warned:
        result = clickgym.run("TopRank", Shop(tells), 100, seed=0)
    assert len([it for it in warned if "is unknown" in str(it.message)]) == 1
    assert np.isnan(result.regret).all()
    assert result.reward[-1] > 0
    frame = result.to_frame()
    assert frame["regret"].null_count() == len(frame)
    assert frame.schema["regret"] == polars.Float64
    assert (result.env, result.instance) == ("Shop", "custom")


@pytest.mark.parametrize(
    ("lists", "clicks"),
    [(MultiDiscrete([4, 3]), MultiBinary(K)), (MultiDiscrete([L] * K), Dict(page=MultiBinary(K)))],
)
def test_other_spaces_are_refused(lists, clicks):
    """The error names the action space that is expected."""
    env = Shop()
    env.action_space, env.observation_space = lists, clicks
    with pytest.raises(ValueError, match=r"expected (ranked lists|the clicks)"):
        clickgym.run("Random", env, 10)


EXPECTED = "; expected 3 clicks, each 0 or 1"
FAULTS = {
    "an error": (ValueError("no stock"), r"ValueError: no stock \(.*in step: 'raise wrong'\)"),
    "clicks .5": (([0.5, 0, 0], 1.0, False, False, {}), EXPECTED),
    "reward nan": (([1, 0, 0], np.nan, False, False, {}), "reward is nan; expected a finite"),
    "four values": (([1, 0, 0], 1.0, False, {}), r"the result is .*; expected \(observation, rew"),
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
            clickgym.run("TopRank", env, 100, seed=0)
        assert type(caught.value) is SessionError


# ---------------------------------------------------------------------------------- sweeps, reports


def test_agents_are_not_compared_in_an_environment_that_ignores_seeds(monkeypatch, tmp_path):
    monkeypatch.setattr(News, "reset", lambda self, **_: (np.zeros(K, np.int8), {}))
    with pytest.warns(UserWarning, match="^mine: reset ignores its seed"):
        clickgym.sweep({"mine": News}, ["Random", "TopRank"], 9, 3, n_jobs=1, out=tmp_path)
    assert clickgym.Results(tmp_path).table()["difference", "p"].null_count().row(0) == (2, 2)


def test_reports_of_unknown_regret(tmp_path, printed):
    """Regret is unknown in one of two environments."""
    envs = ["FrontPage-v0:tells=whole", "FrontPage-v0"]
    clickgym.sweep(envs, ["Random", "TopRank"], 100, 3, out=tmp_path, n_jobs=1, engine="python")
    said = printed(["report", str(tmp_path), "--agents", "Random", "TopRank"])  # draws nothing
    assert said.startswith("Regret or total reward after 100 sessions (mean")
    for text in (said, clickgym.Results(tmp_path).to_latex()):
        assert "Regret is unknown in FrontPage-v0:tells=whole" in text
        assert "nan" not in text
        assert "None" not in text
    svg = (tmp_path / "regret.svg").read_text()
    assert "<!-- cumulative reward -->" in svg
    assert "<!-- cumulative regret -->" in svg
