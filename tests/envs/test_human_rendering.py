"""`render_mode="human"`: sessions shown as they are played; and videos."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
import rich.console
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import RecordVideo

import clickgym
from clickgym.envs import ClickEnv, PositionBasedModel
from clickgym.envs.rendering import ResultPage, show

PAGE = ResultPage(title="here", n_items=3, n_positions=2)


@pytest.fixture
def pauses(monkeypatch):
    """The pauses that were made, without their time."""
    made = []
    monkeypatch.setattr("time.sleep", made.append)
    return made


def console(monkeypatch, **what):
    real = rich.console.Console
    monkeypatch.setattr(
        rich.console,
        "Console",
        lambda: real(legacy_windows=False, _environ={"TERM": "xterm"}, **what),
    )


@pytest.mark.parametrize("env_id", ["PBMRank-v0", "ContextualCMRank-v0", "NonStationaryDCMRank-v0"])
def test_every_session_is_printed_where_there_is_no_terminal(env_id, capsys, pauses):
    env = gym.make(env_id, render_mode="human")
    env.reset(seed=0)
    for _ in range(2):
        env.step(env.action_space.sample())
    assert env.render() is None
    heads = [line for line in capsys.readouterr().out.splitlines() if env_id in line]
    assert [head.split(" | ")[1] for head in heads] == ["session 1", "session 2", "session 2"]
    assert pauses == []


def test_a_terminal_is_redrawn_and_has_time_to_be_read(monkeypatch, capsys, pauses):
    console(monkeypatch, force_terminal=True)
    show(PAGE, 0.25)
    out = capsys.readouterr().out
    assert out.startswith("\x1b[2J\x1b[H")
    assert out.endswith("here | no session yet | 3 items for 2 positions\n")
    assert pauses == [0.25]


def test_a_notebook_shows_the_picture_in_place_of_the_last(monkeypatch, pauses):
    done = []
    fake = SimpleNamespace(
        clear_output=lambda wait: done.append(wait), display=lambda shown: done.append(shown.size)
    )
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(display=fake))
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    console(monkeypatch, force_jupyter=True)
    show(PAGE, 0.25)
    assert done == [True, (480, 224)]
    assert pauses == [0.25]


def test_the_frame_rate_is_that_of_the_metadata(monkeypatch, capsys, pauses):
    console(monkeypatch, force_terminal=True)
    env = ClickEnv(PositionBasedModel([0.5, 0.4], [1.0]), render_mode="human")
    env.reset(seed=0)
    assert pauses == []
    env.step([0])
    assert pauses == [1 / env.metadata["render_fps"]]


def test_the_checker_of_gymnasium_is_content(capsys):
    assert "human" in ClickEnv.metadata["render_modes"]
    check_env(gym.make("PBMRank-v0", render_mode="human").unwrapped)
    assert "| session 1 |" in capsys.readouterr().out
    check_env(gym.make("PBMRank-v0").unwrapped)
    assert capsys.readouterr().out == ""  # it renders in each mode, and never steps


def test_a_run_shows_its_sessions_and_has_the_same_numbers(capsys):
    shown = clickgym.run("TopRank", gym.make("PBMRank-v0", render_mode="human"), 20, seed=0)
    assert capsys.readouterr().out.count("| session ") == 20
    assert shown.engine == "python"
    assert np.array_equal(shown.regret, clickgym.run("TopRank", "PBMRank-v0", 20, seed=0).regret)


def test_streams_are_not_shown():
    with pytest.raises(
        ValueError, match=r"unknown render_mode 'human' \(there is: ansi, rgb_array\)"
    ):
        gym.make_vec("PBMRank-v0", num_envs=2, render_mode="human")


@pytest.mark.skipif(find_spec("moviepy") is None, reason="needs pip install moviepy")
def test_a_video_has_a_frame_for_each_session(tmp_path):
    import imageio.v3

    env = RecordVideo(
        gym.make("PBMRank-v0", render_mode="rgb_array", max_episode_steps=6),
        str(tmp_path),
        disable_logger=True,
    )
    env.reset(seed=0)
    for _ in range(6):
        env.step(env.action_space.sample())
    env.close()
    (video,) = tmp_path.glob("*.mp4")
    assert imageio.v3.imread(video).shape == (7, 368, 480, 3)
