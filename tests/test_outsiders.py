"""What others wrote works here unchanged: Gymnasium's wrappers and vector environments, and the
code of docs/wrappers.md.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import (
    ClipReward,
    DtypeObservation,
    FlattenObservation,
    FrameStackObservation,
    NormalizeReward,
    RescaleAction,
    TimeAwareObservation,
    TimeLimit,
    TransformAction,
    TransformObservation,
    TransformReward,
    vector,
)
from registries import default_ids
from slow import slow

import clickgym
from clickgym.envs import ItemByItem, ScoresAction, ScoresVectorAction

pytestmark = pytest.mark.uncompiled

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "wrappers.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", PAGE, flags=re.DOTALL)
NEEDS = {"stable_baselines3": "stable_baselines3", "sb3_contrib": "sb3_contrib"}
NEEDS |= {"RecordVideo": "moviepy"}
"""What programs of the page import, and the package that they need."""

by_mode = pytest.mark.parametrize("mode", ["SameStep", "NextStep"])


def rewards_of(env, n_sessions=20, seed=0):
    """What a stream pays, with resets where it ends."""
    env.reset(seed=seed)
    env.action_space.seed(seed)
    rewards = []
    for _ in range(n_sessions):
        _, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        rewards.append(float(reward))
        if terminated or truncated:
            env.reset()
    return rewards


# ------------------------------------------------------------ Gymnasium's wrappers


@pytest.mark.parametrize("env_id", default_ids("Contextual"))
def test_flattened_observations(env_id):
    plain, streams = gym.make(env_id), gym.make_vec(env_id, 3)
    env, envs = FlattenObservation(gym.make(env_id)), vector.FlattenObservation(streams)
    n_positions = plain.action_space.n_positions
    flat, whole = env.reset(seed=0)[0], plain.reset(seed=0)[0]
    assert env.observation_space.shape == (n_positions + whole["features"].size,)
    for _ in range(10):
        assert flat.tolist() == [*whole["clicks"].tolist(), *whole["features"].ravel().tolist()]
        flat, whole = env.step(np.arange(n_positions))[0], plain.step(np.arange(n_positions))[0]
    flat, whole = envs.reset(seed=0)[0], gym.make_vec(env_id, 3).reset(seed=0)[0]
    assert flat.tolist() == np.hstack([whole["clicks"], whole["features"].reshape(3, -1)]).tolist()


def test_transformed_rewards():
    """Regret is that of the untransformed rewards; a stream goes on after a reset without a
    seed.
    """
    plain = rewards_of(gym.make("PBMRank-v0"), 50)
    recorded = clickgym.RecordRegret(gym.make("PBMRank-v0"))
    tripled = rewards_of(TransformReward(recorded, lambda reward: 3 * reward - 1), 50)
    assert tripled == [3 * reward - 1 for reward in plain]
    assert recorded.meter.totals[1] == sum(plain)
    clipped = rewards_of(ClipReward(gym.make("PBMRank-v0"), max_reward=1), 50)
    assert clipped == [min(reward, 1) for reward in plain] != plain
    assert np.ptp(rewards_of(NormalizeReward(gym.make("PBMRank-v0")), 50)) > 0
    assert rewards_of(TimeLimit(gym.make("PBMRank-v0"), 7), 50) == plain


WRAPPED = {
    "time": lambda env: TimeAwareObservation(TimeLimit(env, 9)),
    "frames": lambda env: FrameStackObservation(env, 3),
    "dtype": lambda env: DtypeObservation(env, np.float32),
    "observation": lambda env: TransformObservation(env, lambda x: 1 - x, env.observation_space),
    "action": lambda env: TransformAction(env, lambda ranking: ranking[::-1], env.action_space),
    "scores": lambda env: RescaleAction(ScoresAction(env), np.float32(0), np.float32(1)),
    "items": lambda env: FrameStackObservation(FlattenObservation(ItemByItem(env)), 4),
}


@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)
def test_composed_wrappers(wrap):
    """The checker of Gymnasium resets, steps, and compares with what the spaces say."""
    env = wrap(gym.make("PBMRank-v0"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # but that it is wrapped, which is what is checked
        warnings.filterwarnings("ignore", ".*is different from the unwrapped version")
        check_env(env, skip_render_check=True)
    observation, _ = env.reset(seed=0)
    assert observation in env.observation_space
    observation, *_ = env.step(env.action_space.sample())
    assert observation in env.observation_space


def test_rescaled_scores():
    zero, one = np.float32(0), np.float32(1)
    plain = gym.make("PBMRank-v0")
    rescaled = RescaleAction(ScoresAction(gym.make("PBMRank-v0")), zero, one)
    envs = ScoresVectorAction(gym.make_vec("PBMRank-v0", 3))
    envs = vector.RescaleAction(envs, zero, one)
    for env in (plain, rescaled, envs):
        env.reset(seed=0)
    scores = np.linspace(1, 0, 10, dtype=np.float32)
    for _ in range(20):
        info = plain.step([0, 1, 2, 3, 4])[-1]
        np.testing.assert_equal(rescaled.step(scores)[-1], info)
    rewards = envs.step(np.tile(scores, (3, 1)))[-1]["expected_reward"]
    assert rewards.tolist() == [info["expected_reward"]] * 3


# ------------------------------------------------------------ Gymnasium's vector environments


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_vector_environments_of_gymnasium(kind):
    envs = gym.make_vec("PBMRank-v0", num_envs=3, vectorization_mode=kind, wrappers=[ScoresAction])
    try:
        envs.reset(seed=0)
        envs.action_space.seed(0)
        one = ScoresAction(gym.make("PBMRank-v0"))
        one.reset(seed=1)  # the seed of the second stream
        for _ in range(10):
            actions = envs.action_space.sample()
            observations, rewards, *_, infos = envs.step(actions)
            expected, reward, *_, info = one.step(actions[1])
            assert rewards[1] == reward
            assert infos["regret"][1] == info["regret"]
            assert observations[1].tolist() == expected.tolist()
    finally:
        envs.close()


@by_mode
def test_infos_as_a_list_of_streams(mode):
    envs = vector.DictInfoToList(
        gym.make_vec("PBMRank-v0", 3, autoreset_mode=mode, max_episode_steps=2)
    )
    plain = gym.make_vec("PBMRank-v0", 3, autoreset_mode=mode, max_episode_steps=2)
    envs.reset(seed=0)
    plain.reset(seed=0)
    lists = np.tile(np.arange(5), (3, 1))
    listed, infos = envs.step(lists)[-1], plain.step(lists)[-1]
    assert [info["regret"] for info in listed] == infos["regret"].tolist()


# ------------------------------------------------------------ algorithms of others


def program(code, shown):
    """The parameters of a program of the page: slow if it needs more than the package."""
    return slow((code, shown))[0] if any(word in code for word in NEEDS) else (code, shown)


@pytest.mark.parametrize(("code", "shown"), [program(*pair) for pair in PROGRAMS])
def test_programs_of_the_page(code, shown, tmp_path, monkeypatch, capsys):
    """They run, and print what stands below them."""
    monkeypatch.chdir(tmp_path)
    for word, package in NEEDS.items():
        if word in code:
            pytest.importorskip(package, reason=f"needs pip install {package}")
    exec(code, {})
    assert not shown or capsys.readouterr().out == shown
