"""Tests of `RecordVectorRegret` around vector environments other than clickgym's own: every session
of every stream is recorded once, whatever ends the episodes and whoever wrote the environment.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit, TransformObservation
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import clickgym
from clickgym import RecordRegret, RecordVectorRegret
from clickgym.envs import SessionError
from tests.helpers.news import K, L, News

pytestmark = pytest.mark.uncompiled


def play(envs: Any, steps: int = 40, seed: int = 0) -> None:
    """Show random lists, and reset the streams whose episode ended if they do not reset
    themselves.
    """
    rng = np.random.default_rng(seed)
    envs.reset(seed=seed)
    for _ in range(steps):
        *_, ends, cuts, _ = envs.step(rng.integers(L, size=(envs.num_envs, K)))
        if envs.metadata["autoreset_mode"] is AutoresetMode.DISABLED and (ends | cuts).any():
            envs.reset(options={"reset_mask": ends | cuts})


def kept(meter: Any) -> np.ndarray:
    return np.stack([meter.regret, meter.reward, meter.clicks], axis=1)


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("tells", ["regret", "expected_reward optimal_reward", "expected_reward"])
@pytest.mark.parametrize("observes_hour", [False, True])
def test_each_session_of_each_stream_counts_once(
    mode: AutoresetMode, tells: str, observes_hour: bool
) -> None:
    """The sessions are those that a recorder around each stream measures."""
    streams = [RecordRegret(TimeLimit(News(tells, observes_hour), 4)) for _ in range(3)]
    envs = RecordVectorRegret(
        SyncVectorEnv([lambda stream=stream: stream for stream in streams], autoreset_mode=mode)
    )
    play(envs)
    assert envs.meter.step == sum(stream.meter.step for stream in streams)
    assert (envs.meter.step == 120) == (mode is not AutoresetMode.NEXT_STEP)
    totals = sum(kept(stream.meter)[-1] for stream in streams)
    np.testing.assert_allclose(kept(envs.meter)[-1], totals)
    assert math.isnan(envs.meter.regret[-1]) == (tells == "expected_reward")


def test_some_streams_are_reset_before_their_turn() -> None:
    """With NEXT_STEP, the next step still resets the other streams whose episode has ended."""
    streams = [RecordRegret(TimeLimit(News(), 1)) for _ in range(3)]
    envs = RecordVectorRegret(SyncVectorEnv([lambda stream=stream: stream for stream in streams]))
    envs.reset(seed=0)
    for mask in ([True, False, False], [False, True, True]):
        envs.step([[0, 1, 2]] * 3)
        envs.reset(options={"reset_mask": np.array(mask)})
    envs.step([[0, 1, 2]] * 3)
    assert envs.meter.step == sum(stream.meter.step for stream in streams) == 6


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_streams_in_processes(mode: str) -> None:
    """They are recorded like streams in one process, and the run has the environment's id. Nobody
    knows whether sessions came before, and stream 1 has the users of the next seed.
    """
    pages: Any = [lambda: gym.make("FrontPage-v0")] * 2
    made = [vector(pages, autoreset_mode=mode) for vector in (SyncVectorEnv, AsyncVectorEnv)]
    made.append(gym.make_vec("FrontPage-v0", 2, vector_kwargs={"autoreset_mode": mode}))
    results = []
    for streams in made:
        envs = RecordVectorRegret(RecordEpisodeStatistics(streams))
        play(envs, 12)
        results.append(envs.result("mine"))
        envs.close()
    assert len({(result.env, result.instance, result.seed) for result in results}) == 1
    assert results[0].env == "FrontPage-v0"
    assert {(result.unrecorded, result.last_seed) for result in results} == {(None, 1)}
    assert [result.regret.tolist() for result in results[1:]] == [results[0].regret.tolist()] * 2


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("env_id", ["PBMRank-v0", "CascadeMDPRank-v0", "ContextualPBMRank-v0"])
def test_clickgyms_environments_one_by_one(env_id: str, mode: str) -> None:
    """They have the labels of a sweep, and no session is missing."""
    few = {"max_episode_steps": 3} if env_id == "CascadeMDPRank-v0" else {}
    with pytest.warns(match="before users leave") if few else nullcontext():
        envs = RecordVectorRegret(gym.make_vec(env_id, 2, "sync", {"autoreset_mode": mode}, **few))
    envs.reset(seed=[3, 5])
    for _ in range(20):
        envs.step(envs.action_space.sample())
    result = envs.result("mine")
    other = clickgym.run("Random", (env_id, few), 10, seed=0)
    assert (result.env, result.instance) == (other.env, other.instance)
    assert (result.seed, result.last_seed, result.unrecorded) == (3, None, 0)
    assert np.isfinite(result.regret).all()
    assert "unknown" not in str(clickgym.Results([result]))


class Whole(News):
    """An environment with an integer as regret; Gymnasium would cut off the decimals of others."""

    def step(self, action: Any) -> Any:
        return *super().step(action)[:4], {"regret": 1}


def test_what_cannot_be_recorded() -> None:
    def flat() -> gym.Env:
        space = Box(0, 1, (2, K), np.float32)
        return TransformObservation(News(), lambda clicks: np.stack([clicks] * 2), space)

    with pytest.raises(ValueError, match="expected the clicks on the list"):
        RecordVectorRegret(SyncVectorEnv([flat] * 2))
    with pytest.raises(SessionError, match=r"^Whole, session 1, stream 0: .* float\(regret\)"):
        play(RecordVectorRegret(SyncVectorEnv([Whole] * 2)))
    with pytest.raises(TypeError, match="expected a vector environment"):
        RecordVectorRegret(News())  # type: ignore[arg-type]
    streams = SyncVectorEnv([lambda: TimeLimit(News(), 1)], autoreset_mode="Disabled")
    (envs := RecordVectorRegret(streams)).reset()
    envs.step([[0, 1, 2]])
    with pytest.raises(SessionError, match="reset the streams whose episodes are over"):
        envs.step([[0, 1, 2]])
