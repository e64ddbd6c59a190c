"""The animation in the README: an eye moves down a list to a click, next to falling regret.

``python tools/animation.py`` runs CascadeTS in ``CMRank-v0``, and draws some sessions of one run
next to the regret of 20 runs.
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
SEED, RUNS = 10, 20
PICTURE = Path(__file__).resolve().parents[1] / "docs" / "animation.gif"
LOOK = line_styles(["CascadeTS"])["CascadeTS"]
ORANGE, READ, UNREAD = "#ff7f0e", "#c8c8c8", "#ececec"
CIRCLE = Outline.unit_circle()
EYE = Outline(CIRCLE.vertices * [1.0, 0.6], CIRCLE.codes)


def play(n_sessions):
    """Play a run, and return the attraction of all items, the best list, and the sessions."""
    env = gym.make("CMRank-v0")
    agent = clickgym.make_agent("CascadeTS", env, seed=SEED)
    observation, start = env.reset(seed=SEED)
    sessions = []
    for _ in range(n_sessions):
        ranking = agent.rank(observation)
        clicks, reward, *_ = env.step(ranking)
        agent.update(observation, ranking, clicks, reward)
        observation = clicks
        sessions.append((ranking, clicks))
    return env.unwrapped.model.attraction, start["optimal_ranking"], sessions


def curves(n_sessions):
    """Return checkpoints on a logarithmic axis, and the regret per session up to each of them: the
    10 %, 50 % and 90 % quantiles over the runs.
    """
    steps = np.unique(np.geomspace(1, n_sessions, 200).astype(int))
    runs = [
        clickgym.run("CascadeTS", "CMRank-v0", n_sessions, seed=seed, checkpoints=steps).regret
        / steps
        for seed in range(RUNS)
    ]
    return steps, np.quantile(runs, [0.1, 0.5, 0.9], axis=0)


def draw(axes, attraction, best, sessions, curve_data, session, position):
    """Draw one frame, in which the eye looks at a position of the session's list."""
    ranking, clicks = sessions[session - 1]
    page, curve = axes
    for axis in axes:
        axis.clear()
    page.set(xlim=(0, 1), ylim=(len(ranking) - 0.4, -0.6), xticks=[], yticks=[])
    page.set_title(f"Session {session:,}", loc="left")
    page.set_xlabel(f"best list: {', '.join(map(str, best))}", loc="left")
    for k, item in enumerate(ranking):
        clicked = clicks[k] and k == position
        colour = ORANGE if clicked else READ if k <= position else UNREAD
        page.barh(k, 0.88, height=0.72, color=colour, left=0.12)
        page.text(0.16, k, f"document {item}", va="center")
        note = "click" if clicked else f"attraction {attraction[item]:.2f}"
        page.text(0.97, k, note, va="center", ha="right")
    page.scatter(0.055, position, s=500, marker=EYE, facecolor="white", edgecolor="black")
    page.scatter(0.055, position, s=90, color="black")

    # Draw the whole curve in grey from the first frame on, for readers who see only this frame.
    steps, (low, middle, high) = curve_data
    so_far = steps <= session
    curve.fill_between(steps, low, high, color=UNREAD, linewidth=0)
    curve.plot(steps, middle, color=READ)
    colour = LOOK["color"]
    curve.fill_between(
        steps[so_far], low[so_far], high[so_far], color=colour, alpha=0.2, linewidth=0
    )
    curve.plot(steps[so_far], middle[so_far], **LOOK)
    curve.plot(steps[so_far][-1], middle[so_far][-1], "o", color=colour, clip_on=False)
    curve.set(xscale="log", xlim=(0.9, SHOWN[-1] * 1.2), ylim=(0, 0.45))
    curve.set_title(f"Clicks lost per session: median of {RUNS} runs", loc="left")
    curve.set_xlabel("sessions")
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    page.spines[["left", "bottom"]].set_visible(False)


def main():
    """Write ``docs/animation.gif``."""
    attraction, best, sessions = play(SHOWN[-1])
    curve_data = curves(SHOWN[-1])
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    writer = PillowWriter(fps=4)
    with writer.saving(figure, str(PICTURE), dpi=80):
        # Begin with the last session: the whole curve, and the list that the agent has learned.
        for session in (SHOWN[-1], *SHOWN):
            ranking, clicks = sessions[session - 1]
            last = int(clicks.argmax()) if clicks.any() else len(ranking) - 1
            for position in [*range(last + 1), last, last]:
                draw(axes, attraction, best, sessions, curve_data, session, position)
                writer.grab_frame()


if __name__ == "__main__":
    main()
