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
    Autoreset,
    ClipReward,
    DtypeObservation,
    FlattenObservation,
    FrameStackObservation,
    NormalizeObservation,
    NormalizeReward,
    RenderCollection,
    RescaleAction,
    TimeAwareObservation,
    TimeLimit,
    TransformAction,
    TransformObservation,
    TransformReward,
    vector,
)
from slow import slow

import clickgym
from clickgym.envs import (
    ENVIRONMENTS,
    EnumeratedAction,
    ItemByItem,
    LehmerAction,
    RecordVectorRegret,
    ScoresAction,
    ScoresVectorAction,
)

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "wrappers.md").read_text(encoding="utf-8")
CODE = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)

by_id = pytest.mark.parametrize("env_id", [*ENVIRONMENTS, *clickgym.envs.CONTEXTUAL])
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


# Gymnasium's wrappers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "env_id", [key for key, env in clickgym.envs.CONTEXTUAL.items() if env.default_instance]
)
def test_a_contextual_observation_flattens(env_id):
    env, plain = FlattenObservation(gym.make(env_id)), gym.make(env_id)
    n_items, n_features = plain.observation_space["features"].shape
    assert env.observation_space.shape == (plain.action_space.n_positions + n_items * n_features,)
    flat, whole = env.reset(seed=0)[0], plain.reset(seed=0)[0]
    for _ in range(10):
        assert flat.tolist() == [*whole["clicks"].tolist(), *whole["features"].ravel().tolist()]
        action = np.arange(plain.action_space.n_positions)
        flat, whole = env.step(action)[0], plain.step(action)[0]
    envs, streams = vector.FlattenObservation(gym.make_vec(env_id, 3)), gym.make_vec(env_id, 3)
    flat, whole = envs.reset(seed=0)[0], streams.reset(seed=0)[0]
    assert flat.tolist() == np.hstack([whole["clicks"], whole["features"].reshape(3, -1)]).tolist()


def test_rewards_are_transformed_and_regret_is_not():
    plain = rewards_of(gym.make("PBMRank-v0"), 50)
    assert max(plain) > 1
    recorded = clickgym.RecordRegret(gym.make("PBMRank-v0"))
    assert rewards_of(TransformReward(recorded, lambda reward: 3 * reward - 1), 50) == [
        3 * reward - 1 for reward in plain
    ]
    assert recorded.meter.totals[1] == sum(plain)
    assert rewards_of(ClipReward(gym.make("PBMRank-v0"), max_reward=1), 50) == [
        min(reward, 1) for reward in plain
    ]
    assert np.ptp(rewards_of(NormalizeReward(gym.make("PBMRank-v0")), 50)) > 0
    assert rewards_of(TimeLimit(gym.make("PBMRank-v0"), 7), 50) == plain, (
        "the stream goes on after a reset without a seed"
    )


@by_mode
def test_rewards_of_streams_are_transformed(mode):
    envs = vector.TransformReward(
        gym.make_vec("PBMRank-v0", 4, autoreset_mode=mode), lambda rewards: 2 * rewards
    )
    plain = gym.make_vec("PBMRank-v0", 4, autoreset_mode=mode)
    for each in (envs, plain):
        each.reset(seed=0)
        each.action_space.seed(0)
    for _ in range(20):
        twice, once = (each.step(each.action_space.sample())[1] for each in (envs, plain))
        assert twice.tolist() == (2 * once).tolist()


def test_a_time_limit_truncates():
    again = Autoreset(TimeLimit(gym.make("CMRank-v0"), 3))
    again.reset(seed=0)
    endings = [again.step([0, 1, 2, 3, 4])[3] for _ in range(9)]
    assert endings == [False, False, True, False] * 2 + [False]


@pytest.mark.parametrize("n_envs", [None, 50])
def test_observations_are_normalised(n_envs):
    """By the mean and the variance of all clicks so far, up to the small prior weight of
    Gymnasium's estimates.
    """
    make = gym.make if n_envs is None else gym.make_vec
    arguments = {} if n_envs is None else {"num_envs": n_envs}
    wrapper = NormalizeObservation if n_envs is None else vector.NormalizeObservation
    env, plain = wrapper(make("PBMRank-v0", **arguments)), make("PBMRank-v0", **arguments)
    for each in (env, plain):
        each.action_space.seed(0)
    normalised, seen = env.reset(seed=0)[0], [plain.reset(seed=0)[0]]
    for _ in range(100):
        normalised = env.step(env.action_space.sample())[0]
        seen.append(plain.step(plain.action_space.sample())[0])
    clicks = np.reshape(seen, (-1, 5))
    np.testing.assert_allclose(
        normalised, (seen[-1] - clicks.mean(axis=0)) / clicks.std(axis=0), atol=0.01
    )


@pytest.mark.parametrize(
    "wrap",
    [
        lambda env: TimeAwareObservation(TimeLimit(env, 9)),
        lambda env: FrameStackObservation(env, 3),
        lambda env: DtypeObservation(env, np.float32),
        lambda env: TransformObservation(env, lambda clicks: 1 - clicks, env.observation_space),
        lambda env: TransformAction(env, lambda ranking: ranking[::-1], env.action_space),
        lambda env: DtypeObservation(LehmerAction(env), np.float32),
        lambda env: RescaleAction(ScoresAction(env), np.float32(0), np.float32(1)),
        lambda env: FrameStackObservation(FlattenObservation(ItemByItem(env)), 4),
    ],
    ids=lambda wrap: re.sub(r"\W+", " ", str(wrap.__code__.co_names)),
)
def test_wrappers_compose(wrap):
    """The checker of Gymnasium resets, steps, and compares with what the spaces say."""
    env = wrap(gym.make("PBMRank-v0"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings(
            "ignore", ".*is different from the unwrapped version"
        )  # it is, and shall be checked so
        check_env(env, skip_render_check=True)
    observation, _ = env.reset(seed=0)
    assert observation in env.observation_space
    observation, *_ = env.step(env.action_space.sample())
    assert observation in env.observation_space


def test_scores_may_be_rescaled():
    rescaled, plain = (
        RescaleAction(ScoresAction(gym.make("PBMRank-v0")), np.float32(0), np.float32(1)),
        gym.make("PBMRank-v0"),
    )
    rescaled.reset(seed=0)
    plain.reset(seed=0)
    scores = np.linspace(1, 0, 10, dtype=np.float32)
    for _ in range(20):
        assert rescaled.step(scores)[-1] == plain.step([0, 1, 2, 3, 4])[-1]
    envs = vector.RescaleAction(
        ScoresVectorAction(gym.make_vec("PBMRank-v0", 3)), np.float32(0), np.float32(1)
    )
    envs.reset(seed=0)
    regret = (
        gym.make("PBMRank-v0").unwrapped.task.optimal_reward
        - envs.step(np.tile(scores, (3, 1)))[-1]["expected_reward"]
    )
    assert len(set(regret.tolist())) == 1


def test_frames_are_collected():
    env = RenderCollection(gym.make("PBMRank-v0", render_mode="rgb_array"))
    env.reset(seed=0)
    for _ in range(3):
        env.step([0, 1, 2, 3, 4])
    assert len(env.render()) == 4


# Gymnasium's vector environments -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_gymnasium_vectorises_wrapped_environments(kind):
    envs = gym.make_vec(
        "PBMRank-v0", num_envs=3, vectorization_mode=kind, wrappers=[EnumeratedAction]
    )
    try:
        envs.reset(seed=0)
        envs.action_space.seed(0)
        one = EnumeratedAction(gym.make("PBMRank-v0"))
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


def test_gymnasiums_observation_wrappers_of_streams_want_next_step():
    """As the page says; ours take both."""
    with pytest.raises(ValueError, match="Expected autoreset_mode to be NEXT_STEP or DISABLED"):
        vector.FlattenObservation(gym.make_vec("PBMRank-v0", 3, autoreset_mode="SameStep"))


# other people's algorithms; that they learn is tested by tests/lab/test_examples.py -------------------------------------------


@pytest.mark.parametrize("block", [1, 2, 3, *slow(0, *range(4, len(CODE)))])
def test_the_code_of_the_page_runs(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = CODE[block].replace("20_000, 5_000", "512, 256").replace("range(5)", "range(1)")
    if "stable_baselines3" in code or "sb3_contrib" in code:
        pytest.importorskip("sb3_contrib")
    if "RecordVideo" in code:
        pytest.importorskip("moviepy", reason="needs pip install moviepy")
    exec(code, {})


def test_the_page_names_every_wrapper():
    names = [
        name
        for name in clickgym.envs.__all__
        if name.startswith(("Lehmer", "Scores", "Enumerated", "ItemBy"))
    ]
    assert len(names) == 8
    for name in [*names, RecordVectorRegret.__name__]:
        assert f"`{name}" in PAGE, name
