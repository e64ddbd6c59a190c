"""Tests of generic reinforcement learning in environments of other packages: learners by name, and
stable-baselines3 on their parallel streams.
"""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from gymnasium.wrappers import RecordEpisodeStatistics

import clickgym
from clickgym.envs import SessionError
from tests.helpers.news import News

pytest.importorskip("stable_baselines3")

import stable_baselines3 as sb3
import torch

from clickgym.agents import FrozenPolicy, PlackettLuceActorCritic, vec_env

pytestmark = pytest.mark.uncompiled

FEW: dict[str, Any] = {"n_steps": 8, "batch_size": 64, "gamma": 0.0, "seed": 0, "device": "cpu"}


@pytest.mark.parametrize("name", ["PPO", "DQN:learning_starts=50", "SAC:learning_starts=50"])
def test_learners_by_name(name: str) -> None:
    """They play on copies of the environment, and the same seed brings the same run."""
    env = "FrontPage-v0:observes_hour=true"
    first, same, other = (
        clickgym.run(name, env, 150, seed=seed, metrics=["any_click"]) for seed in (0, 0, 1)
    )
    assert first.regret.tolist() == same.regret.tolist() != other.regret.tolist()
    assert 0 < first.metrics["any_click"][-1] <= first.clicks[-1]
    assert (first.env, first.steps[-1], first.engine) == (env, 150, "stable-baselines3")


def test_a_learner_learns() -> None:
    """Rule: PPO loses less in its last 2000 of 8000 sessions than half of what random lists lose,
    which is 0.45 clicks per session.
    """
    result = clickgym.run("PPO", "FrontPage-v0", 8000, seed=0, checkpoints=[6000])
    assert result.regret[-1] - result.regret[-2] < 0.45 / 2 * 2000


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


class Heads(torch.nn.Module):
    """An actor with a head for each position, and a critic, as in CleanRL."""

    def __init__(self, envs: Any) -> None:
        super().__init__()
        n_inputs, self.sizes = envs.single_observation_space.shape[0], envs.single_action_space.nvec
        self.actor = torch.nn.Linear(n_inputs, int(self.sizes.sum()))
        self.critic = torch.nn.Linear(n_inputs, 1)
        torch.nn.init.orthogonal_(self.actor.weight, 0.01)

    def forward(self, seen: Any, action: Any = None) -> tuple[Any, Any, Any]:
        logits = self.actor(seen).split(self.sizes.tolist(), dim=1)
        heads = [torch.distributions.Categorical(logits=logit) for logit in logits]
        if action is None:
            action = torch.stack([head.sample() for head in heads], dim=1)
        log_prob = sum(head.log_prob(action[:, k]) for k, head in enumerate(heads))
        return action, log_prob, self.critic(seen).flatten()


def test_ppo_of_cleanrl() -> None:
    """PPO as CleanRL publishes it: thunks in a SyncVectorEnv, each with RecordEpisodeStatistics, in
    Gymnasium's default autoreset mode. `RecordVectorRegret` is the only line that differs. Rule:
    the last quarter of the run loses less than 70 % of the first.
    """

    def make_env() -> gym.Env:
        return RecordEpisodeStatistics(gym.make("FrontPage-v0"))

    n_envs, n_steps, lengths = 16, 16, 0
    torch.manual_seed(1)
    envs = clickgym.RecordVectorRegret(SyncVectorEnv([make_env for _ in range(n_envs)]))
    agent = Heads(envs)
    optimizer = torch.optim.Adam(agent.parameters(), lr=0.02, eps=1e-5)
    seen = torch.Tensor(envs.reset(seed=1)[0])
    for _ in range(30):
        rows: list[Any] = []
        for _ in range(n_steps):
            with torch.no_grad():
                action, log_prob, value = agent(seen)
            after, reward, _, _, infos = envs.step(action.numpy())
            rows.append((seen, action, log_prob, value, torch.tensor(reward)))
            seen = torch.Tensor(after)
            if "episode" in infos:
                lengths += int(infos["episode"]["l"][infos["_episode"]].sum())
        states, actions, old, values, rewards = map(torch.stack, zip(*rows, strict=True))
        gains = rewards - values  # sessions are independent, so the discount is 0
        data = [part.flatten(0, 1) for part in (states, actions, old, gains, rewards)]
        for _ in range(4):
            for batch in torch.randperm(n_envs * n_steps).chunk(4):
                x, action, old, gain, target = (part[batch] for part in data)
                _, log_prob, value = agent(x, action)
                gain = (gain - gain.mean()) / (gain.std() + 1e-8)
                ratio = (log_prob - old).exp()
                policy_loss = -torch.min(gain * ratio, gain * ratio.clamp(0.8, 1.2)).mean()
                loss = policy_loss + 0.5 * (value - target.float()).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    n = envs.meter.step
    assert 0 <= n - lengths <= 4 * n_envs  # only the last episodes have not ended
    assert n < 30 * n_envs * n_steps  # some steps only reset a stream
    lost = np.diff(envs.meter.regret[[0, n // 4, 3 * n // 4, n - 1]])
    assert lost[2] < 0.7 * lost[0]


def test_the_way_out_of_a_refusal() -> None:
    """An environment without an id cannot be copied; its class can."""
    with pytest.raises(ValueError, match=r"would bypass News; register .* or train a model with"):
        clickgym.run("PPO", env := News(), 100)
    with pytest.raises(ValueError, match="the same environment for several streams"):
        vec_env(lambda: env, 2)
    with pytest.raises(ValueError, match="info has no regret"):
        sb3.PPO(PlackettLuceActorCritic, vec_env(News, 4, tells="", minus_regret=True)).learn(9)
    envs = vec_env(News, 16, seed=0)
    model = sb3.PPO(PlackettLuceActorCritic, envs, **FEW).learn(256)
    assert envs.meter.step == envs.result("mine").steps[-1] == 256
    assert clickgym.run(FrozenPolicy(model=model), env, 20, seed=1).steps[-1] == 20
    env.action_space = gym.spaces.MultiDiscrete([5, 4, 3])
    with pytest.raises(ValueError, match=r"is MultiDiscrete\(\[5 4 3\]\); expected ranked lists"):
        vec_env(lambda: env, 1)


@pytest.mark.parametrize("actions", ["rankings", "scores", "items"])
def test_vec_env_by_id(actions: str) -> None:
    """Each session is recorded once, although the streams' episodes end at different steps."""
    envs = vec_env("tests.helpers.news:FrontPage-v0:tells=regret", 3, seed=1, actions=actions)
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
