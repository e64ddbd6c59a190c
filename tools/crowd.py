"""Draw how 40 users of each click model look at the best list and click on it.

Each column is a user and each row is a position: the user clicked blue positions, only looked at
yellow positions, and did not look at grey positions. ``python tools/crowd.py`` writes the picture
of all models in docs/environments.md; each model's page on the website has a picture of its own.
"""

from pathlib import Path

import gymnasium as gym
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from clickgym.core.files import write_whole
from clickgym.runner.reports.figures import NotebookFigure, figure_bytes

DOCS = Path(__file__).resolve().parents[1] / "docs"
USERS = 40
MODELS = {
    "CMRank-v0": "leave after the first click",
    "PBMRank-v0": "each position has its own chance",
    "DBNRank-v0": "leave when satisfied",
    "DCMRank-v0": "may go on after a click",
    "UBMRank-v0": "look where the last click lets them",
    "CCMRank-v0": "may leave after a skip or a click",
    "TPBMRank-v0": "trust the top",
    "MixtureRank-v0": "hidden groups",
    "CascadeMDPRank-v0": "clicks change later clicks",
}
"""The behaviour of the users in each environment, in a few words."""
COLOURS = np.array([[0xE9, 0xEC, 0xEF], [0xF5, 0xC5, 0x42], [0x1F, 0x6F, 0xC5]])
"""The colours of a position that was not looked at, only looked at, or clicked."""


def crowd(name: str) -> NDArray[np.intp]:
    """Return 0 (not looked at), 1 (looked at) or 2 (clicked) for each position and user."""
    env = gym.make(name)
    _, info = env.reset(seed=3)
    columns = []
    for _ in range(USERS):
        observation, _, terminated, truncated, _ = env.step(info["optimal_ranking"])
        clicks = observation["clicks"] if isinstance(observation, dict) else observation
        examined = env.unwrapped.shown.examined
        columns.append(np.asarray(examined, int) + np.asarray(clicks, int))
        if terminated or truncated:  # a user with memory has left
            _, info = env.reset()
    return np.array(columns).T


def draw(axes: Axes, name: str) -> None:
    """Draw the users of an environment, with a row for each position and a column for each user."""
    outcomes = crowd(name)
    n_positions, n_users = outcomes.shape
    axes.imshow(COLOURS[outcomes], aspect="auto", interpolation="nearest")
    axes.set_xticks(np.arange(-0.5, n_users), minor=True)
    axes.set_yticks(np.arange(-0.5, n_positions), minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="both", length=0, labelbottom=False)
    axes.set_yticks(range(n_positions), range(1, n_positions + 1), fontsize=8)
    axes.spines[:].set_visible(False)


def draw_figure(name: str) -> NotebookFigure:
    """Return the picture of one environment, for its page on the website."""
    figure = NotebookFigure(figsize=(5.4, 1.8), layout="constrained")
    draw(figure.subplots(), name)
    return figure


def picture() -> NotebookFigure:
    """Return the picture of all environments."""
    figure = NotebookFigure(figsize=(8.5, 5.7), layout="constrained")
    for axes, name in zip(figure.subplots(3, 3).flat, MODELS, strict=True):
        draw(axes, name)
        axes.set_title(f"{name}\n{MODELS[name]}", fontsize=9.5, loc="left")
    figure.supylabel("position", fontsize=9)
    figure.supxlabel(f"{USERS} users", fontsize=9)
    return figure


if __name__ == "__main__":
    write_whole(DOCS / "crowds.png", figure_bytes(picture(), "png"))
