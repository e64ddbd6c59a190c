"""Generic reinforcement learning: the adapter for stable-baselines3, and PPO measured like any
agent.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import pytest
from engines import run_reporting
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import TimeLimit
from registries import LEARNERS

import clickgym
from clickgym.agents import PPO, Random
from clickgym.envs import (
    CascadeModel,
    ClickEnv,
    ClickVectorEnv,
    FeatureWeightsAction,
    PiecewiseStationaryModel,
    PositionBasedModel,
    RecordVectorRegret,
)

pytest.importorskip("stable_baselines3")

import stable_baselines3 as sb3
import torch
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecNormalize

from clickgym.agents import PlackettLuceActorCritic, vec_env

SMALL = PositionBasedModel([0.6, 0.5, 0.3, 0.1], [1.0, 0.7, 0.4])
QUICK: dict[str, Any] = {"n_envs": 8, "n_steps": 8, "batch_size": 32, "n_epochs": 2}


def streams(n_envs: int = 4, **arguments: Any) -> RecordVectorRegret:
    return RecordVectorRegret(
        ClickVectorEnv(SMALL, n_envs, autoreset_mode=AutoresetMode.SAME_STEP, **arguments)
    )


# ----------------------------------------------------------------------- the adapter to the library


def test_adapter_steps_like_the_vector_environment() -> None:
    envs, adapter = streams(), vec_env(streams())
    adapter.seed(5)
    observations, _ = envs.reset(seed=5)
    assert np.array_equal(adapter.reset(), observations)
    envs.action_space.seed(0)
    for _ in range(20):
        lists = envs.action_space.sample()
        observations, rewards, _, _, infos = envs.step(lists)
        got = adapter.step(lists)
        assert np.array_equal(got[0], observations)
        assert np.array_equal(got[1], rewards)
        assert got[1].dtype == np.float32
        assert not got[2].any()
        assert got[3] == [{"regret": lost} for lost in infos["regret"]]  # no stream ended
    adapter.close()


def test_adapter_final_observation() -> None:
    envs, adapter = streams(max_episode_steps=3), vec_env(streams(max_episode_steps=3))
    adapter.seed(1)
    adapter.reset()
    envs.reset(seed=1)
    lists = np.tile([2, 0, 1], (4, 1))
    for step in range(1, 10):
        raw, (observations, _, dones, infos) = envs.step(lists), adapter.step(lists)
        assert dones.tolist() == [step % 3 == 0] * 4
        if step % 3 == 0:
            assert not observations.any()
            for b, info in enumerate(infos):
                assert np.array_equal(info["terminal_observation"], raw[4]["final_obs"][b])
                assert info["TimeLimit.truncated"] is True
                assert info["regret"] == raw[4]["final_info"]["regret"][b]
                assert info["episode"]["l"] == 3


def test_adapter_of_gymnasiums_vectors() -> None:
    mode = {"autoreset_mode": "SameStep"}
    adapter = vec_env(gym.make_vec("CartPole-v1", 3, vectorization_mode="sync", vector_kwargs=mode))
    adapter.seed(0)
    adapter.reset()
    ended = 0
    # always pushed left, the poles fall after about ten steps, each at its own time
    for _ in range(100):
        observations, _, dones, infos = adapter.step(np.zeros(3, np.int64))
        for b, info in enumerate(infos):
            assert ("terminal_observation" in info) == dones[b]
            if dones[b]:
                ended += 1
                assert info["TimeLimit.truncated"] is False
                assert abs(info["terminal_observation"][2]) > 0.2  # the fallen pole
                assert abs(observations[b][2]) < 0.06  # the new one
    assert ended >= 15


def test_adapter_attributes() -> None:
    adapter = vec_env(streams())
    assert adapter.get_attr("num_envs", indices=[0, 2]) == [4, 4]
    assert adapter.get_attr("unwrapped")[0].model is SMALL
    assert adapter.has_attr("meter")
    assert not adapter.has_attr("nonsense")
    assert not adapter.has_attr("action_masks")
    assert len(adapter.env_method("reset", seed=3, indices=0)) == 1
    assert adapter.env_is_wrapped(Monitor) == [True] * 4
    assert adapter.env_is_wrapped(gym.Wrapper, indices=[1]) == [False]


def test_actions_that_are_no_lists() -> None:
    """Streams show the lists that the wrapper of one environment makes of them."""
    order = np.random.default_rng(0).permutation(20)
    plain = gym.make_vec("ContextualPBMRank-v0", num_envs=3, autoreset_mode="SameStep")
    observations, _ = plain.reset(seed=0)
    rng = np.random.default_rng(1)
    scores = vec_env("ContextualPBMRank-v0", 3, seed=0, actions="scores", items=order)
    weights = vec_env("ContextualPBMRank-v0", 3, seed=0, actions="weights")
    items = vec_env("ContextualPBMRank-v0", 3, seed=0, actions="items", items=order)
    every = [scores.reset(), weights.reset(), items.reset()]
    for _ in range(5):
        values = rng.normal(size=(3, 20)).astype(np.float32)
        lists = order[np.argsort(-values, axis=1)[:, :5]]
        by_weight = rng.normal(size=(3, 10)).astype(np.float32)
        sums = (observations["features"] * by_weight[:, None]).sum(axis=2)
        chosen = FeatureWeightsAction(gym.make("ContextualPBMRank-v0")).action_space.lists(
            by_weight, observations["features"]
        )
        assert chosen.tolist() == np.argsort(-sums, axis=1, kind="stable")[:, :5].tolist()
        observations, rewards, _, _, _ = plain.step(lists)
        seen, earned, dones, _ = scores.step(values)
        assert np.array_equal(seen["features"], observations["features"])
        assert np.array_equal(earned, rewards)
        assert not dones.any()
        weights.step(by_weight)
        for k in range(5):
            seen, earned, dones, infos = items.step(np.argsort(-values, axis=1)[:, k])
            assert (dones.all(), dones.any()) == (k == 4, k == 4)
        assert np.array_equal(earned, rewards)
        assert not seen["placed"].any()
        last = infos[1]["terminal_observation"]
        assert order[last["placed"].argmax(axis=1)].tolist() == lists[1].tolist()
        assert np.array_equal(last["clicks"], observations["clicks"][1])
        assert infos[1]["episode"]["l"] == 5
    assert every[2]["placed"].shape == (3, 5, 20)
    with pytest.raises(ValueError, match="unknown actions 'lists'"):
        vec_env("PBMRank-v0", 3, actions="lists")


def test_adapter_refuses_what_it_cannot_serve() -> None:
    with pytest.raises(ValueError, match='autoreset_mode="SameStep"'):
        vec_env(ClickVectorEnv(SMALL, 2))
    with pytest.raises(TypeError):
        vec_env(ClickEnv(SMALL))


def test_policy_for_lists_learns_on_native_streams() -> None:
    """In one line, and its training stands beside other agents."""
    envs = vec_env("PBMRank-v0", 8, seed=3, max_episode_steps=10)
    natives = gym.make_vec("PBMRank-v0", num_envs=8)
    observations, _ = natives.reset(seed=3)
    assert np.array_equal(envs.reset(), observations)
    lists = natives.action_space.sample()
    assert np.array_equal(envs.step(lists)[0], natives.step(lists)[0])
    model = sb3.PPO(
        PlackettLuceActorCritic, envs, n_steps=8, batch_size=32, gamma=0.0, seed=0, device="cpu"
    )
    before = [values.clone() for values in model.policy.parameters()]
    model.learn(128)
    after = list(model.policy.parameters())
    assert any(bool((old != new).any()) for old, new in zip(before, after, strict=True))
    lists, _ = model.predict(envs.reset())
    assert lists in natives.action_space
    assert [episode["l"] for episode in model.ep_info_buffer] == [10] * 8
    assert evaluate_policy(model, vec_env("PBMRank-v0", 2, max_episode_steps=5), 2)[0] > 0
    mine = VecNormalize(envs, norm_obs=False).result("mine")
    assert (mine.agent, mine.seed, mine.steps[-1]) == ("mine", None, 136)
    others = clickgym.run("Random", "PBMRank-v0", 136, seed=0)
    assert mine.steps.tolist() == others.steps.tolist()
    assert len(clickgym.Results([mine, others]).table()) == 2


def test_arguments_of_native_streams() -> None:
    """By a spec as of the command line, or by keywords."""
    instance = "personal:seed=3"
    envs = [
        vec_env(f"ContextualPBMRank-v0:instance={instance}", 2),
        vec_env("ContextualPBMRank-v0", 2, instance=instance),
    ]
    seen = []
    for each in envs:
        each.seed(0)
        seen.append(each.reset()["features"])
        each.step(np.tile(range(5), (2, 1)))
        result = each.result("mine")
        assert (result.env, result.instance) == ("ContextualPBMRank-v0", instance)
    assert np.array_equal(*seen)
    with pytest.raises((TypeError, ValueError), match="env_kwargs"):
        vec_env("ContextualPBMRank-v0", 2, env_kwargs={"instance": instance})
    with pytest.raises(TypeError, match="an id such as"):
        vec_env(gym.make("PBMRank-v0"), 2)  # type: ignore[arg-type]


class Slow(sb3.PPO):
    """With the library's defaults."""


class Own(PPO):
    """One of the names, with other defaults."""

    defaults: ClassVar = {**PPO.defaults, "n_steps": 50}


@pytest.mark.parametrize(
    ("agent", "first"),
    [(Slow, "16,384"), (Own, "3,200"), (sb3.SAC, "100 "), (Own(10, 5, n_steps=1), None)],
)
def test_a_learner_that_never_updates_says_so(agent: Any, first: str | None) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clickgym.run(agent, "PBMRank-v0", 100, seed=0)
    told = [str(it.message) for it in caught if "learns nothing in 100 sessions" in str(it.message)]
    assert len(told) == (first is not None)
    assert all(f"comes after {first}" in text for text in told)


# ---------------------------------------------------------------------------------------------- PPO


def test_ppo_learns_and_continues() -> None:
    """One item of three is always clicked, the others never. Rule: over the last 1000 of 6000
    sessions the regret is below a tenth of what random lists have, 2/3 a session.
    """
    env = ClickEnv(PositionBasedModel([0.0, 0.0, 1.0], [1.0]))
    agent, threads = PPO(3, 1, seed=0), torch.get_num_threads()
    result = clickgym.run(agent, env, 6000, seed=0, checkpoints=[5000])
    late = (result.regret[-1] - result.regret[-2]) / 1000
    assert late < 0.1 * 2 / 3
    random = clickgym.run(Random(3, 1, seed=0), env, 6000, seed=0)
    assert result.to_frame().schema == random.to_frame().schema
    assert result.engine == "stable-baselines3"
    assert result.agent == "PPO"
    assert clickgym.run(agent, env, 500, seed=1).regret[-1] < 0.1 * 500
    assert torch.get_num_threads() == threads


def test_reward_and_cutoff_reach_the_streams() -> None:
    env = ClickEnv(
        CascadeModel([1.0, 0.5, 0.5], n_positions=2), reward="any_click", cutoff=1, reference=[1, 0]
    )
    result = clickgym.run(PPO(3, 2, **QUICK, seed=0), env, 400, seed=0, checkpoints=range(1, 401))
    # against the reference list, below the cutoff's best
    assert set(np.diff(result.regret).round(12)) == {-0.5, 0.0}


def test_pairs_that_cannot_run_are_refused() -> None:
    changing = PiecewiseStationaryModel([SMALL, SMALL], starts=[0, 100])
    refused = {
        "engine='python': ": (ClickEnv(SMALL), "python"),
        "would bypass TimeLimit": (TimeLimit(ClickEnv(SMALL), 5), "auto"),
        "changes at given steps": (ClickEnv(changing), "auto"),
        "but the environment has 10": (gym.make("PBMRank-v0"), "auto"),
    }
    for message, (env, engine) in refused.items():
        with pytest.raises(ValueError, match=message):
            clickgym.run(PPO(4, 3, **QUICK, seed=0), env, 10, engine=engine)


def test_a_callback_can_stop_a_run() -> None:

    def stop(sessions: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_reporting(PPO(4, 3, **QUICK, seed=0), ClickEnv(SMALL), 1000, on_chunk=stop)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    for name, learner in LEARNERS.items():
        with pytest.raises(ImportError, match=rf'{name} .* pip install "clickgym\[rl\]"'):
            learner(10, 5)
