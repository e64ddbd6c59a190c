"""Tests of a session's page, as text and as a picture."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest


@pytest.mark.parametrize(
    ("name", "has_best"),
    [("PBMRank-v0", True), ("NonStationaryPBMRank-v0", True), ("ContextualPBMRank-v0", False)],
)
def test_a_page_shows_the_last_session(name, has_best):
    env = gym.make(name, render_mode="ansi")
    _, info = env.reset(seed=0)
    assert "session 0" in env.render()
    observation, *_ = env.step(info["optimal_ranking"])
    clicks = observation["clicks"] if isinstance(observation, dict) else observation
    heading, *lines = env.render().splitlines()
    assert heading.startswith(f"{name} | ")
    assert ["clicked" in line for line in lines[: len(clicks)]] == clicks.astype(bool).tolist()
    assert [int(line.split()[2]) for line in lines[: len(clicks)]] == [*info["optimal_ranking"]]
    assert lines[-1].startswith("best list: ") is has_best


def test_pictures_have_one_size():
    env = gym.make("PBMRank-v0", render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    env.step([2, 4, 7, 8, 9])
    picture = env.render()
    assert first.shape == picture.shape
    assert picture.shape[0] % 16 == picture.shape[1] % 16 == 0
    assert picture.dtype == np.uint8
    assert (first != picture).any()
