"""The learners: each of those known by name, classes of one's own, and what a run costs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from engines import run_reporting
from registries import LEARNERS
from slow import slow

import clickgym
from clickgym.agents import Learner
from clickgym.core.specs import parse_spec
from clickgym.envs import ClickEnv, ClickVectorEnv, PositionBasedModel
from clickgym.runner.names import spec_of

pytest.importorskip("stable_baselines3")
SMALL = PositionBasedModel([0.6, 0.5, 0.3, 0.1], [1.0, 0.7, 0.4])

by_name = pytest.mark.parametrize("name", LEARNERS)


def quick(name: str, **arguments: Any) -> Learner:
    """With fewer streams, and learning from the start."""
    defaults = LEARNERS[name].defaults
    small = {"n_envs": 8, "learning_starts": 16, "batch_size": 8, "n_steps": 4, "n_epochs": 2}
    chosen = {key: value for key, value in small.items() if key in defaults}
    return LEARNERS[name](4, 3, **chosen | arguments)


# ------------------------------------------------------------------------------------- each of them


@by_name
def test_same_seed_same_regret(name: str) -> None:
    def measured(agent_seed: Any, env_seed: int) -> tuple[list[float], list[float]]:
        np.random.random(3)  # noqa: NPY002  (the library draws from the global generator)
        result = clickgym.run(quick(name, seed=agent_seed), ClickEnv(SMALL), 72, seed=env_seed)
        return result.regret.tolist(), result.reward.tolist()

    first = measured(1, 2)
    assert measured(1, 2) == measured(np.random.SeedSequence(1), 2) == first
    assert measured(2, 2) != first
    assert measured(1, 3) != first


@by_name
def test_exactly_the_horizon_is_counted(name: str) -> None:
    reported: list[int] = []
    result = run_reporting(
        quick(name, seed=0),
        ClickEnv(SMALL),
        101,
        seed=0,
        checkpoints=[1, 64, 65],
        on_chunk=reported.append,
    )
    assert result.steps.tolist() == [1, 64, 65, 101]
    assert reported == [8] * 12 + [5]
    assert result.reward[-1] == result.clicks[-1]
    assert (np.diff(result.regret) >= 0).all()


@pytest.mark.parametrize(
    ("n_items", "n_positions", "horizon"),
    [(4, 3, 65), (7, 7, 1), (8, 7, 129), (2, 2, 130), (3, 1, 5)],
)
@pytest.mark.parametrize("name", ["DQN", "sb3_contrib:MaskablePPO", "stable_baselines3:DQN"])
def test_horizon_in_mid_list(name: str, n_items: int, n_positions: int, horizon: int) -> None:
    """The library plays a rollout of so many choices at a time, whatever K is."""
    env = ClickEnv(
        PositionBasedModel(np.linspace(0.9, 0.1, n_items), np.linspace(1, 0.5, n_positions))
    )
    reported: list[int] = []
    agent = clickgym.make_agent(name, env, seed=0)
    result = run_reporting(
        agent, env, horizon, seed=0, checkpoints=range(1, horizon + 1), on_chunk=reported.append
    )
    assert result.steps.tolist() == list(range(1, horizon + 1))
    assert sum(reported) == horizon


def test_further_arguments_of_the_library_reach_it() -> None:
    agent = quick("PPO", vf_coef=0.25, seed=0)
    clickgym.run(agent, ClickEnv(SMALL), 32, seed=0)
    assert agent.model.vf_coef == 0.25
    assert agent.model.gamma == 0.0
    agent = quick("SAC", seed=0)
    clickgym.run(agent, ClickEnv(SMALL), 32, seed=0)
    assert agent.model.replay_buffer.n_envs == 8


def test_masks_of_each_stream_reach_the_library() -> None:
    from clickgym.agents.rl.vec_env import StableBaselinesVecEnv

    streams = ClickVectorEnv(SMALL, 2, autoreset_mode="SameStep")
    envs = StableBaselinesVecEnv(streams, "items", is_flat=True)
    envs.reset()
    envs.step(np.array([1, 3]))
    assert envs.has_attr("action_masks")
    assert [mask.tolist() for mask in envs.env_method("action_masks")] == [
        [True, False, True, True],
        [True, True, True, False],
    ]
    assert envs.env_method("action_masks", indices=[1])[0].tolist() == [True, True, True, False]
    # forbidden: the next that is left is taken
    observations, rewards, dones, _ = envs.step(np.array([1, 3]))
    assert observations[:, :4].tolist() == [[0, 1, 1, 0], [1, 0, 0, 1]]
    assert observations[:, 4:7].tolist() == [[1, 1, 0]] * 2
    assert not rewards.any()
    assert not dones.any()
    observations, _, dones, infos = envs.step(np.array([0, 1]))
    assert dones.all()
    assert not observations[:, :7].any()  # of the next list
    assert infos[0]["terminal_observation"][:7].tolist() == [1, 1, 1, 0, 1, 1, 1]
    assert infos[1]["TimeLimit.truncated"] is False
    assert infos[1]["regret"] == pytest.approx(
        SMALL.expected_reward([0, 1, 2]) - SMALL.expected_reward([3, 0, 1])
    )


# ---------------------------------------------------------------------------------------- in sweeps


# two workers load torch for 10 s
@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_sweep_repeats_a_run(n_jobs: int) -> None:
    agents = ["A2C:n_envs=8", "DQN:n_envs=8,learning_starts=16", "Random"]
    first = clickgym.sweep(["PBMRank-v0"], agents, 60, 2, n_jobs=1).frame
    again = clickgym.sweep(["PBMRank-v0"], agents[::-1], 60, 2, n_jobs=n_jobs).frame
    by = ["agent", "run", "step"]
    assert first.sort(by).equals(again.sort(by))


def test_a_learner_is_not_compared_run_by_run() -> None:
    """Its streams have users of their own: over runs it has no difference, and is no reference;
    over instances it has one.
    """
    agents = ["Random", "A2C:n_envs=8", "TopRank"]
    results = clickgym.sweep(["PBMRank-v0"], agents, 60, 3, n_jobs=1)
    table = {row["agent"]: row for row in results.table().iter_rows(named=True)}
    assert table["A2C:n_envs=8"]["difference"] is table["A2C:n_envs=8"]["p"] is None
    assert table["TopRank"]["difference"] is not None
    assert results.table("A2C:n_envs=8")["difference"].null_count() == 3
    assert "over the same runs" in results.to_latex()
    assert "over the same runs" not in results.to_latex("A2C:n_envs=8")
    lines = results.plot(reference="Random").axes[0].get_lines()
    assert "A2C:n_envs=8" not in {line.get_label() for line in lines}
    with pytest.raises(ValueError, match="no other agent met the users of A2C:n_envs=8"):
        results.plot(reference="A2C:n_envs=8")
    queries = ["yandex-9982", "yandex-like"]
    both = clickgym.sweep(["PBMRank-v0"], agents, 60, 1, instances=queries, n_jobs=1)
    assert both.table("A2C:n_envs=8")["difference"].null_count() == 1


# ----------------------------------------------------------------------------- classes of one's own


@pytest.mark.parametrize(
    ("spec", "actions"),
    [
        ("stable_baselines3:PPO:n_steps=8,batch_size=64,n_epochs=2", "rankings"),
        ("stable_baselines3:DQN:learning_starts=16", "items"),
        ("sb3_contrib:MaskablePPO:n_steps=10,batch_size=64,n_epochs=2", "items"),
        ("sb3_contrib:RecurrentPPO:n_steps=8,batch_size=64,n_epochs=2", "rankings"),
        ("stable_baselines3:TD3:learning_starts=16", "scores"),
        ("sb3_contrib:ARS", "items"),
        *slow(
            ("sb3_contrib:TRPO:n_steps=8,batch_size=64", "rankings"),
            ("sb3_contrib:TQC:learning_starts=16,n_envs=4", "scores"),
            ("sb3_contrib:QRDQN:learning_starts=16", "items"),
            ("sbx:PPO:n_steps=8,batch_size=64", "rankings"),
            ("sbx:DQN:learning_starts=16", "items"),
            ("sbx:SAC:learning_starts=16,n_envs=4", "scores"),
        ),
    ],
)
def test_classes_of_the_libraries_run_as_they_are(spec: str, actions: str) -> None:
    name, arguments = parse_spec(spec)
    library = pytest.importorskip(name.partition(":")[0])
    assert spec_of(getattr(library, name.partition(":")[2])) == name
    env = gym.make("PBMRank-v0")
    agent = clickgym.make_agent(name, env, seed=0, **arguments)
    assert agent.actions == actions
    result = clickgym.run(agent, env, 80, seed=0)
    assert result.agent == spec.split(":")[1]
    if name != "sb3_contrib:ARS":  # which has no discount
        assert agent.model.gamma == (1.0 if actions == "items" else 0.0)
    again = clickgym.make_agent(name, env, seed=0, **arguments)
    assert clickgym.run(again, env, 80, seed=0).regret.tolist() == result.regret.tolist()


@pytest.mark.parametrize("name", ["stable_baselines3:PPO", "stable_baselines3:A2C"])
@pytest.mark.parametrize("env_id", ["PBMRank-v0", "ContextualPBMRank-v0"])
def test_ppo_and_a2c_of_the_library_draw_whole_lists(name: str, env_id: str) -> None:
    """By the policy of the named learners, which reads the features of each item; another policy
    may be named.
    """
    from clickgym.agents import PlackettLuceActorCritic

    env = gym.make(env_id)
    agent = clickgym.make_agent(name, env, seed=0, n_envs=4, n_steps=4)
    clickgym.run(agent, env, 16, seed=0)
    assert isinstance(agent.model.policy, PlackettLuceActorCritic)
    assert agent.model.policy.sees_features == (env_id == "ContextualPBMRank-v0")
    agent = clickgym.make_agent(name, env, seed=0, n_envs=4, n_steps=4, policy="MlpPolicy")
    clickgym.run(agent, env, 16, seed=0)
    assert not isinstance(agent.model.policy, PlackettLuceActorCritic)
    items = agent.model.action_space.items.tolist()  # in an order of its own
    assert sorted(items) == list(range(env.action_space.n_items)) != items


OWN = """
from stable_baselines3 import PPO

class MyPPO(PPO):
    def __init__(self, policy, env, boldness=1.0, **others):
        rate = 1e-3 * boldness
        super().__init__(policy, env, n_steps=8, batch_size=8, learning_rate=rate, **others)

class Deaf(PPO):
    def learn(self, total_timesteps, callback=None, **others):
        return super().learn(100 * total_timesteps, lambda *_: callback(_) or True, **others)
"""


def test_a_class_of_ones_own_in_a_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its progress stands in a file, too."""
    monkeypatch.setattr("clickgym.runner.progress.LINE_EVERY", 0.001)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_ppo.py").write_text(OWN)
    spec = "own_ppo:MyPPO:boldness=2.0,n_envs=4"
    table = clickgym.sweep(["PBMRank-v0"], [spec], 50, 1, n_jobs=1).frame
    assert table["agent"].unique().to_list() == [spec]
    lines = capsys.readouterr().err.splitlines()
    shares = [int(re.findall(r"clickgym: run 1 of 1, (\d+) %", line)[0]) for line in lines]
    assert shares == sorted(shares)
    assert 0 < shares[0] < 100
    agent = clickgym.make_agent("own_ppo:MyPPO", gym.make("PBMRank-v0"), boldness=2.0)
    assert agent.arguments()["boldness"] == 2.0
    deaf = clickgym.make_agent(
        "own_ppo:Deaf", gym.make("PBMRank-v0"), seed=0, n_steps=8, batch_size=8
    )
    assert clickgym.run(deaf, gym.make("PBMRank-v0"), 100, seed=0).steps[-1] == 100
    assert deaf.model.num_timesteps == 13 * 8
