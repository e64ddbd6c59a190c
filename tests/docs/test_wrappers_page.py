"""Tests that code of others works unchanged: Gymnasium's wrappers and vector environments, and the
code of docs/wrappers.md.
"""

from __future__ import annotations

import re
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import wrappers
from gymnasium.utils.env_checker import check_env

from clickgym.envs import ItemByItem, ScoresAction
from tests.helpers.pages import blocks, page
from tests.helpers.slow import slow

pytestmark = pytest.mark.uncompiled

PAGE, REWARD, _ = re.split("## Another reward|## Other libraries", page("docs/wrappers"))
PROGRAMS = re.findall(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", PAGE, flags=re.DOTALL)
NEEDS = {"stable_baselines3": "stable_baselines3", "sb3_contrib": "sb3_contrib"}
NEEDS |= {"RecordVideo": "moviepy", "torch": "torch"}
"""The imports of the page's programs, with the package that each requires."""


# ------------------------------------------------------------ Gymnasium's wrappers


WRAPPED = {
    "time": lambda env: wrappers.TimeAwareObservation(wrappers.TimeLimit(env, 9)),
    "frames": lambda env: wrappers.FrameStackObservation(env, 3),
    "observation": lambda env: wrappers.TransformObservation(
        env, lambda x: 1 - x, env.observation_space
    ),
    "scores": lambda env: wrappers.RescaleAction(ScoresAction(env), np.float32(0), np.float32(1)),
    "items": lambda env: wrappers.FrameStackObservation(
        wrappers.FlattenObservation(ItemByItem(env)), 4
    ),
}


@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)
def test_composed_wrappers(wrap):
    """Gymnasium's checker resets and steps the environment, and compares the results with its
    spaces.
    """
    env = wrap(gym.make("PBMRank-v0"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # but that it is wrapped, which is what is checked
        warnings.filterwarnings("ignore", ".*is different from the unwrapped version")
        check_env(env, skip_render_check=True)
    observation, _ = env.reset(seed=0)
    assert observation in env.observation_space
    observation, *_ = env.step(env.action_space.sample())
    assert observation in env.observation_space


# ------------------------------------------------------------ algorithms of others


def program(code, shown):
    """The test parameters of a program of the page: slow if it needs more than the package
    itself.
    """
    return slow((code, shown))[0] if any(word in code for word in NEEDS) else (code, shown)


@pytest.mark.parametrize(("code", "shown"), [program(*pair) for pair in PROGRAMS])
def test_programs_of_the_page(code, shown, tmp_path, monkeypatch, capsys):
    """The programs run, and print the output shown below them."""
    monkeypatch.chdir(tmp_path)
    for word, package in NEEDS.items():
        if word in code:
            pytest.importorskip(package, reason=f"needs pip install {package}")
    exec(code, {})
    assert not shown or capsys.readouterr().out == shown


def test_another_reward_prints_what_the_page_shows(program, tmp_path):
    """The programs print the tables shown below them. The orders by reward and by regret differ."""
    script = []
    for code in blocks(REWARD, "python"):
        if file := re.match(r"# (\w+\.py)\n", code):
            (tmp_path / file[1]).write_text(code, encoding="utf-8")
        else:
            script.append(code.replace("2_000, 5)", "2_000, 5, n_jobs=1)"))
    (tmp_path / "page.py").write_text("".join(script), encoding="utf-8")
    printed = program(tmp_path / "page.py", folder=tmp_path).splitlines()
    assert printed == "".join(blocks(REWARD, "text")).splitlines()
