"""The result page as text and as a picture."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from clickgym.envs.rendering import ResultPage, to_ansi, to_rgb


def make_page(n_positions=3, **changes):
    """A session at ``n_positions`` positions: the first two examined, the second clicked."""
    values = {
        "title": "PBMRank-v0",
        "n_items": n_positions + 5,
        "n_positions": n_positions,
        "step": 1234,
        "regret": 5.678,
        "reward": 1.0,
        "ranking": tuple(range(n_positions))[::-1],
        "examined": tuple(int(k < 2) for k in range(n_positions)),
        "clicks": tuple(int(k == 1) for k in range(n_positions)),
    }
    return ResultPage(**(values | changes))


def test_the_best_list_stands_below():
    page = make_page(best=(4, 0, 2))
    assert to_ansi(page).splitlines()[-1] == "best list: 4, 0, 2"
    changed = np.flatnonzero((to_rgb(page) != to_rgb(make_page())).any(axis=(1, 2)))
    assert changed.size
    assert changed.min() >= 80 + 3 * 48


@pytest.mark.parametrize("n_positions", [1, 5, 21])
def test_all_pictures_of_an_environment_have_one_size(n_positions):
    pages = [
        ResultPage(title="PBMRank-v0", n_items=100, n_positions=n_positions),
        make_page(n_positions),
        make_page(
            n_positions,
            title="A title that goes on and on " * 9,
            step=10**15,
            regret=1e15,
            satisfied=False,
        ),
    ]
    pictures = [to_rgb(page) for page in pages]
    assert len({picture.shape for picture in pictures}) == 1
    for picture in pictures:
        height, width, channels = picture.shape
        assert (width, channels) == (480, 3)
        assert height % 16 == 0
        assert picture.dtype == np.uint8
        assert picture.flags.writeable
    assert len({picture.tobytes() for picture in pictures}) == len(pictures)


@pytest.mark.parametrize(
    ("name", "has_one"),
    [("PBMRank-v0", True), ("NonStationaryPBMRank-v0", True), ("ContextualPBMRank-v0", False)],
)
def test_the_page_of_an_environment_has_its_best_list(name, has_one):
    """Not where the candidates of the next session are others."""
    env = gym.make(name, render_mode="ansi")
    _, info = env.reset(seed=0)
    env.step(info["optimal_ranking"])
    line = f"best list: {', '.join(map(str, info['optimal_ranking']))}"
    assert (env.render().splitlines()[-1] == line) is has_one
