"""Tests of generic reinforcement learning: the adapter for stable-baselines3, its wrappers and
algorithms, the regret in its log, and PPO measured like any agent.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import TimeLimit

import clickgym
from clickgym.agents import PPO
from clickgym.envs import (
    CascadeModel,
    ClickEnv,
    ClickVectorEnv,
    ItemByItem,
    PiecewiseStationaryModel,
    PositionBasedModel,
)
from tests.helpers.registries import LEARNERS

pytest.importorskip("sb3_contrib")

import stable_baselines3 as sb3
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    VecMonitor,
    VecNormalize,
    is_vecenv_wrapped,
)

from clickgym.agents import PlackettLuceActorCritic, RegretCallback, vec_env

MODEL = PositionBasedModel([0.6, 0.5, 0.3, 0.1], [1.0, 0.7, 0.4])
QUICK: dict[str, Any] = {"n_envs": 8, "n_steps": 8, "batch_size": 32, "n_epochs": 2}


def streams(n_envs: int = 4, **arguments: Any) -> clickgym.RecordVectorRegret:
    return clickgym.RecordVectorRegret(
        ClickVectorEnv(MODEL, n_envs, autoreset_mode=AutoresetMode.SAME_STEP, **arguments)
    )


# ----------------------------------------------------------------------- the adapter to the library


@pytest.mark.parametrize("minus", [False, True])
def test_adapter_steps_like_the_vector_environment(minus: bool) -> None:
    """This includes the steps at which episodes end. A reward may be minus the regret."""
    envs = streams(max_episode_steps=3)
    adapter = vec_env(streams(max_episode_steps=3), minus_regret=minus)
    adapter.seed(1)
    assert np.array_equal(adapter.reset(), envs.reset(seed=1)[0])
    lists = np.tile([2, 0, 1], (4, 1))
    for step in range(1, 10):
        raw, (observations, rewards, dones, infos) = envs.step(lists), adapter.step(lists)
        assert np.array_equal(observations, raw[0])
        assert np.allclose(rewards, [-info["regret"] for info in infos] if minus else raw[1])
        assert dones.tolist() == [step % 3 == 0] * 4
        for b, info in enumerate(infos):
            assert info["regret"] == (raw[4]["final_info"] if dones[b] else raw[4])["regret"][b]
            if dones[b]:
                assert np.array_equal(info["terminal_observation"], raw[4]["final_obs"][b])
                assert info["TimeLimit.truncated"] is True
                assert info["episode"]["l"] == 3
    assert adapter.get_attr("num_envs", indices=[0, 2]) == [4, 4]
    assert [adapter.has_attr(name) for name in ("meter", "action_masks")] == [True, False]
    assert adapter.meter.reward.tolist() == envs.meter.reward.tolist()
    assert is_vecenv_wrapped(adapter, VecMonitor)


@pytest.mark.parametrize("env_id", ["PBMRank-v0", "ContextualPBMRank-v0"])
def test_actions_that_are_no_lists(env_id: str) -> None:
    """Actions that are not lists become the same lists in parallel streams as in the wrapper of a
    single environment.
    """
    plain = gym.make_vec(env_id, num_envs=3, autoreset_mode="SameStep")
    seen, _ = plain.reset(seed=0)
    rng, has_features = np.random.default_rng(1), env_id.startswith("Contextual")
    scores, items = (vec_env(env_id, 3, seed=0, actions=kind) for kind in ("scores", "items"))
    for envs in (scores, items):
        envs.reset()
    for _ in range(5):
        values = rng.normal(size=(3, *scores.action_space.shape)).astype(np.float32)
        sums = (seen["features"] * values[:, None]).sum(axis=2) if has_features else values
        lists = np.argsort(-sums, axis=1, kind="stable")[:, :5]
        seen, rewards, _, _, _ = plain.step(lists)
        observed, earned, _, _ = scores.step(values)
        np.testing.assert_equal(observed, seen)
        assert np.array_equal(earned, rewards)
        for k in range(5):
            observed, earned, dones, infos = items.step(lists[:, k])
            assert (dones.all(), dones.any()) == (k == 4, k == 4)
        assert np.array_equal(earned, rewards)
        episodes = [(info["episode"]["r"], info["episode"]["l"]) for info in infos]
        assert episodes == [(reward, 5) for reward in rewards]
        assert not observed["placed"].any()
        last = infos[1]["terminal_observation"]
        assert last["placed"].argmax(axis=1).tolist() == lists[1].tolist()
    items.step(np.zeros(3, np.int64))
    assert not items.reset()["placed"].any()


def test_policy_for_lists_learns_on_native_streams() -> None:
    """A training takes one line, and its result is one run."""
    envs = vec_env("PBMRank-v0", 8, seed=0, max_episode_steps=10)
    settings = {"n_steps": 8, "batch_size": 32, "gamma": 0.0, "seed": 0, "device": "cpu"}
    model = sb3.PPO(PlackettLuceActorCritic, envs, **settings).learn(128)
    assert [episode["l"] for episode in model.ep_info_buffer] == [10] * 8
    mine = VecNormalize(envs, norm_obs=False).result("mine")
    assert (mine.agent, mine.seed, mine.steps[-1]) == ("mine", 0, 128)


def test_the_seed_of_a_model_replaces_another_seed() -> None:
    """Otherwise, three trainings with different seeds of vec_env could be the same training."""
    envs, settings = vec_env("PBMRank-v0", 8, seed=3), {**QUICK, "device": "cpu"}
    del settings["n_envs"]
    model = sb3.PPO(PlackettLuceActorCritic, envs, **settings, seed=0)
    with pytest.warns(match=r"seed 0 replaces the seed 3 .* call envs.seed\(3\)") as found:
        model.learn(64)
    assert found[0].filename == __file__
    with warnings.catch_warnings(action="error"):
        for seeds in ((2, 2), (None, 2), (2, None), (2, 0)):
            vectors = vec_env("PBMRank-v0", 8, seed=seeds[0])
            model = sb3.PPO(PlackettLuceActorCritic, vectors, **settings, seed=seeds[1])
            if seeds == (2, 0):
                vectors.seed(2)
            model.learn(64)
            assert vectors.result("mine").seed == 2


# -------------------------------------------------------------------------- the regret in its log


def logged(algorithm, policy, envs, folder):
    """Return the regret in the log lines of a training."""
    settings = {"n_steps": 10, "batch_size": 20, "n_epochs": 1, "seed": 0, "device": "cpu"}
    model = algorithm(policy, envs, **settings)
    model.set_logger(configure(str(folder), ["json"]))
    model.learn(120, RegretCallback(), log_interval=1)
    model.logger.close()
    lines = map(json.loads, (folder / "progress.json").read_text().splitlines())
    return [line["rollout/regret"] for line in lines if "rollout/regret" in line]


def test_callback_warns_of_a_first_update_after_the_end():
    """With eight streams and n_steps=16, PPO first learns after 128 sessions."""
    model = sb3.PPO(PlackettLuceActorCritic, vec_env("PBMRank-v0", 8), n_steps=16, gamma=0.0)
    with pytest.warns(UserWarning, match=r"after n_steps \* n_envs = 128 steps") as found:
        model.learn(100, RegretCallback())
    assert found[0].filename == __file__
    with warnings.catch_warnings(action="error"):
        model.learn(128, RegretCallback(), reset_num_timesteps=False)


@pytest.mark.parametrize(
    ("env", "actions", "is_warned"),
    [
        ("PBMRank-v0", "rankings", True),
        ("PBMRank-v0", "items", False),  # an episode is a list
        ("CascadeMDPRank-v0", "rankings", False),
    ],
)
def test_callback_warns_of_a_discount_where_no_list_changes_later_sessions(env, actions, is_warned):
    envs, settings = vec_env(env, 8, actions=actions), {"n_steps": 2, "batch_size": 16}
    model = sb3.PPO(
        "MultiInputPolicy" if actions == "items" else PlackettLuceActorCritic, envs, **settings
    )
    with warnings.catch_warnings(record=True) as found:
        model.learn(16, RegretCallback())
    assert any("gamma is 0.99" in str(each.message) for each in found) == is_warned


def test_callback_warns_of_no_discount_where_users_have_a_memory():
    envs = vec_env("CascadeMDPRank-v0", 8)
    model = sb3.PPO(PlackettLuceActorCritic, envs, n_steps=2, batch_size=16, gamma=0.0)
    with pytest.warns(UserWarning, match=r"pass their discount, gamma=0\.9667, to the model"):
        model.learn(16, RegretCallback())


@pytest.mark.parametrize("limit", [1, 3, None])
def test_logged_regret_of_streams_counts_each_session_once(limit, tmp_path):
    """This includes the sessions that end an episode, whose infos are stored elsewhere."""
    envs = clickgym.RecordVectorRegret(
        gym.make_vec("PBMRank-v0", 4, autoreset_mode="SameStep", max_episode_steps=limit)
    )
    regret = logged(sb3.PPO, PlackettLuceActorCritic, vec_env(envs), tmp_path)
    assert (len(regret), envs.meter.step) == (3, 120)
    assert np.mean(regret) == pytest.approx(envs.meter.regret[-1] / 120)
    assert np.std(regret) > 0


def test_logged_regret_item_by_item(tmp_path):
    """Only steps that complete a list log a regret."""
    made = [clickgym.RecordRegret(gym.make("PBMRank-v0")) for _ in range(4)]
    envs = DummyVecEnv([lambda env=env: ItemByItem(env) for env in made])
    regret = logged(MaskablePPO, "MultiInputPolicy", envs, tmp_path)
    assert sum(env.meter.step for env in made) == 120 / 5
    assert np.mean(regret) == pytest.approx(sum(env.meter.regret[-1] for env in made) / (120 / 5))


# ---------------------------------------------------------------------------------------------- PPO


@pytest.mark.parametrize(
    ("agent", "first"),
    [(sb3.SAC, "100 "), (PPO(10, 5, n_steps=1), None), (PPO(10, 5, n_envs=10, n_steps=10), "100 ")],
)
def test_a_learner_that_never_updates_says_so(agent: Any, first: str | None) -> None:
    with warnings.catch_warnings(record=True, action="always") as caught:
        clickgym.run(agent, "PBMRank-v0", 100, seed=0)
    told = [str(it.message) for it in caught if "learns nothing in 100 sessions" in str(it.message)]
    assert len(told) == (first is not None)
    assert all(f"comes after {first}" in text for text in told)


def test_a_run_says_that_it_writes_no_log() -> None:
    with pytest.warns(UserWarning, match="PPO ignores tensorboard_log, because"):
        clickgym.run("PPO:tensorboard_log=log,verbose=0", "PBMRank-v0", 300, seed=0)


def test_ppo_learns_and_continues() -> None:
    """One of three items is always clicked, the other two never.

    Rule: over the last 1000 of 6000 sessions, the regret is below a tenth of the regret of random
    lists, which lose 2/3 of a click per session.
    """
    env = ClickEnv(PositionBasedModel([0.0, 0.0, 1.0], [1.0]))
    agent, threads = PPO(3, 1, seed=0), torch.get_num_threads()
    result = clickgym.run(agent, env, 6000, seed=0, checkpoints=[5000])
    assert (result.regret[-1] - result.regret[-2]) / 1000 < 0.1 * 2 / 3
    assert (result.engine, result.agent) == ("stable-baselines3", "PPO")
    assert clickgym.run(agent, env, 500, seed=1).regret[-1] < 0.1 * 500
    assert torch.get_num_threads() == threads


@pytest.mark.uncompiled
def test_reward_and_cutoff_reach_the_streams() -> None:
    """Regret is against the reference list, which earns less than the best list at this cutoff.
    Without one, it is against the list that is best for the users of the session.
    """
    users, later = (
        CascadeModel(clicks, n_positions=2) for clicks in ([1, 0.5, 0.5], [0.5, 0.5, 1])
    )
    changing = PiecewiseStationaryModel([users, later], starts=[0, 200])
    for model, list_, n_envs, lost in (
        (users, [1, 0], 8, {-0.5, 0}),
        (changing, None, 1, {0.5, 0}),
    ):
        env = ClickEnv(model, reward="any_click", cutoff=1, reference=list_)
        agent = PPO(3, 2, **{**QUICK, "n_envs": n_envs, "batch_size": 8}, seed=0)
        result = clickgym.run(agent, env, 400, seed=0, checkpoints=range(1, 401))
        assert set(np.diff(result.regret).round(12)) == lost


def test_pairs_that_cannot_run_are_refused() -> None:
    changing = PiecewiseStationaryModel([MODEL, MODEL], starts=[0, 100])
    ppo, run = PPO(4, 3, **QUICK, seed=0), clickgym.run
    for message, call in (
        ("engine='python' cannot run PPO", lambda: run(ppo, ClickEnv(MODEL), 9, engine="python")),
        ("would bypass TimeLimit", lambda: run(ppo, TimeLimit(ClickEnv(MODEL), 5), 9)),
        ("change at fixed steps", lambda: run(ppo, ClickEnv(changing), 9)),
        ("vec_env steps parallel streams, each", lambda: vec_env("NonStationaryPBMRank-v0", 2)),
        ("needs the number of streams", lambda: vec_env("PBMRank-v0")),
        ("ent_coef is 'auto'", lambda: PPO(4, 3, ent_coef="auto")),
        ("'num_envs'; did you mean 'n_envs'", lambda: vec_env("PBMRank-v0", num_envs=8)),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            call()


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra ``rl``, the error names the package to install."""
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    for name, learner in LEARNERS.items():
        with pytest.raises(ImportError, match=rf'{name} .* pip install "clickgym\[rl\]"'):
            learner(10, 5)
