"""Tests of generic reinforcement learning in environments of other packages: learners by name, and
stable-baselines3 on their parallel streams.
"""

from __future__ import annotations

import importlib
import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

import clickgym
from clickgym.envs import SessionError
from tests.helpers.news import News

pytest.importorskip("stable_baselines3")

import stable_baselines3 as sb3

from clickgym.agents import FrozenPolicy, PlackettLuceActorCritic, vec_env

pytestmark = pytest.mark.uncompiled

FEW: dict[str, Any] = {"n_steps": 8, "batch_size": 64, "gamma": 0.0, "seed": 0, "device": "cpu"}


@pytest.mark.parametrize("name", ["PPO", "DQN:learning_starts=50", "SAC:learning_starts=50"])
def test_learners_by_name(name: str) -> None:
    """They play on copies of the environment, and the same seed brings the same run."""
    env = "FrontPage-v0:observes_hour=true"
    first, same, other = (clickgym.run(name, env, 150, seed=seed) for seed in (0, 0, 1))
    assert first.regret.tolist() == same.regret.tolist() != other.regret.tolist()
    assert (first.env, first.steps[-1], first.engine) == (env, 150, "stable-baselines3")


def test_a_learner_learns() -> None:
    """Rule: PPO loses less in its last 2000 of 8000 sessions than half of what random lists lose,
    which is 0.45 clicks per session.
    """
    result = clickgym.run("PPO", "FrontPage-v0", 8000, seed=0, checkpoints=[6000])
    assert result.regret[-1] - result.regret[-2] < 0.45 / 2 * 2000


def test_a_sweep_without_regret() -> None:
    sweep = clickgym.sweep(["FrontPage-v0:tells=whole"], ["PPO", "Random"], 100, 2, n_jobs=1)
    assert np.isnan(sweep.rows["regret"].fill_null(math.nan).to_numpy()).all()
    assert "reward" in str(sweep)


class Faulty(News):
    """An environment whose regret is not a number from the third session on."""

    sessions = 0

    def step(self, action: Any) -> Any:
        outcome = super().step(action)[:4]
        self.sessions += 1
        return *outcome, {"regret": 0.0 if self.sessions < 3 else math.nan}


gym.register("FaultyPage-v0", entry_point=Faulty)


def test_faults_are_the_environments() -> None:
    with pytest.raises(SessionError, match=r"^FaultyPage-v0, session 9: regret is .*nan.*PPO"):
        clickgym.run("PPO:n_envs=4", "FaultyPage-v0", 100, seed=0)


def test_the_way_out_of_a_refusal() -> None:
    """An environment without an id cannot be copied; its vector environment can be passed."""
    with pytest.raises(ValueError, match=r"would bypass News; register .* or train a model with"):
        clickgym.run("PPO", News(), 100)
    envs = vec_env(SyncVectorEnv([News] * 8, autoreset_mode="SameStep"), seed=0)
    model = sb3.PPO(PlackettLuceActorCritic, envs, **FEW).learn(128)
    assert envs.meter.step == envs.result("mine").steps[-1] == 128
    assert clickgym.run(FrozenPolicy(model=model), News(), 20, seed=1).steps[-1] == 20


@pytest.mark.parametrize("actions", ["rankings", "scores", "items"])
def test_vec_env_by_id(actions: str) -> None:
    """Each session is recorded once, although the streams' episodes end at different steps."""
    envs = vec_env("FrontPage-v0", 3, seed=1, actions=actions, tells="regret")
    envs.reset()
    regret = 0.0
    for _ in range(24):
        *_, infos = envs.step(np.stack([envs.action_space.sample() for _ in range(3)]))
        regret += sum(info.get("regret", 0) for info in infos)
    assert envs.meter.step == 3 * 24 // (3 if actions == "items" else 1)
    assert envs.meter.regret[-1] == pytest.approx(regret)
    assert envs.result("mine").env == "FrontPage-v0:tells=regret"


def test_vec_env_one_by_one_and_in_processes() -> None:
    """Streams of clickgym's environments can be stepped in other ways, too."""
    for streams in (
        vec_env("PBMRank-v0", 2, seed=0, vectorization_mode="sync"),
        vec_env(AsyncVectorEnv([lambda: gym.make("PBMRank-v0")] * 2, autoreset_mode="SameStep")),
    ):
        sb3.PPO(PlackettLuceActorCritic, streams, **FEW).learn(16)
        result = streams.result("mine")
        assert (result.env, result.seed, result.steps[-1]) == ("PBMRank-v0", 0, 16)
        streams.close()
    with pytest.raises(ValueError, match="SyncVectorEnv"):
        vec_env(SyncVectorEnv([News] * 2))


def test_vec_env_imports_a_module(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import gymnasium\nfrom tests.helpers.news import News\n"
    (tmp_path / "front_pages.py").write_text(text + "gymnasium.register('Fresh-v0', News)\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    assert vec_env("front_pages:Fresh-v0", 2).num_envs == 2
    with pytest.raises(gym.error.Error, match="Nowhere"):
        vec_env("Nowhere-v0", 2)
