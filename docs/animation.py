"""The animation in the README: a list, an eye that moves down, a click, and falling regret.

It runs CascadeTS in ``CMRank-v0`` and shows some of the sessions: ``python docs/animation.py``.
"""

from pathlib import Path

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import PillowWriter
from matplotlib.path import Path as Outline

import clickgym
from clickgym.runner.reports.figures import line_styles

SHOWN = (1, 2, 5, 20, 100, 1_000, 3_000)  # sessions, counted from 1
SEED = 10
LOOK = line_styles(["CascadeTS"])["CascadeTS"]
ORANGE, READ, UNREAD = "#ff7f0e", "#c8c8c8", "#ececec"
CIRCLE = Outline.unit_circle()
EYE = Outline(CIRCLE.vertices * [1.0, 0.6], CIRCLE.codes)


def play(n_sessions):
    """Return the lists, the clicks and the regret of all sessions."""
    env = gym.make("CMRank-v0")
    agent = clickgym.make_agent("CascadeTS", env, seed=SEED)
    observation, _ = env.reset(seed=SEED)
    sessions = []
    for _ in range(n_sessions):
        ranking = agent.rank(observation)
        clicks, reward, _, _, info = env.step(ranking)
        agent.update(observation, ranking, clicks, reward)
        observation = clicks
        sessions.append((ranking, clicks, info["regret"]))
    return env.unwrapped.model.attraction, sessions


def draw(axes, attraction, sessions, session, position):
    """Draw one frame: the eye is at `position` of the list of `session`."""
    ranking, clicks, _ = sessions[session - 1]
    page, curve = axes
    for axis in axes:
        axis.clear()
    page.set(xlim=(0, 1), ylim=(len(ranking) - 0.4, -0.6), xticks=[], yticks=[])
    page.set_title(f"Session {session:,}", loc="left")
    for k, item in enumerate(ranking):
        clicked = clicks[k] and k == position
        colour = ORANGE if clicked else READ if k <= position else UNREAD
        page.barh(k, 0.88, height=0.72, color=colour, left=0.12)
        page.text(0.16, k, f"document {item}", va="center")
        note = "click" if clicked else f"attraction {attraction[item]:.2f}"
        page.text(0.97, k, note, va="center", ha="right")
    page.scatter(0.055, position, s=500, marker=EYE, facecolor="white", edgecolor="black")
    page.scatter(0.055, position, s=90, color="black")

    # All sessions in grey from the first frame on, which stands alone where nothing moves.
    steps = np.arange(1, len(sessions) + 1)
    means = np.cumsum([regret for _, _, regret in sessions]) / steps
    curve.plot(steps, means, color=READ)
    curve.plot(steps[:session], means[:session], **LOOK)
    curve.plot(session, means[session - 1], "o", color=LOOK["color"], clip_on=False)
    curve.set(xscale="log", xlim=(0.9, SHOWN[-1] * 1.2), ylim=(0, 0.6))
    curve.set_title("Regret: clicks lost per session, so far", loc="left")
    curve.set_xlabel("sessions")
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    page.spines[["left", "bottom"]].set_visible(False)


def main():
    """Write ``docs/animation.gif``."""
    attraction, sessions = play(SHOWN[-1])
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    writer = PillowWriter(fps=4)
    with writer.saving(figure, str(Path(__file__).with_name("animation.gif")), dpi=80):
        for session in SHOWN:
            ranking, clicks, _ = sessions[session - 1]
            last = int(clicks.argmax()) if clicks.any() else len(ranking) - 1
            for position in [*range(last + 1), last, last]:
                draw(axes, attraction, sessions, session, position)
                writer.grab_frame()


if __name__ == "__main__":
    main()
