"""Functions that render a session as a result page, in text or as a picture: the list, with marks
for the examined and clicked positions.

A page counts positions from 1, like a search result page, and item ids from 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

RENDER_MODES = ("ansi", "rgb_array")
"""The values of ``render_mode``: ``"ansi"`` for a page as text, ``"rgb_array"`` for a picture."""
WIDTH, LINE = 480, 16
"""The width of a picture and half the height of a row, in pixels. Both are multiples of 16, because
video codecs require this.
"""
PAPER, INK, EXAMINED, CLICKED = "#f5f6f8", "#1f2733", "#fff0c2", "#cfe2fb"


def page_of(env: Any) -> list[str]:
    """Return a result page for the last session of a `ClickEnv` as lines of text: a heading, a line
    for each position, and the best list unless it changes from session to session.
    """
    lines = [f"{env.spec.id if env.spec else type(env.model).__name__} | {env.instance}"]
    lines[0] += f" | session {env.steps:,} | regret {env.regret:z,.2f}"
    ranking = [""] * env.model.n_positions
    if env.steps:
        ranking = [f"item {item}" for item in env.last_session()[0]]
    examined, clicked = env.shown.examined, env.shown.clicks
    for k, item in enumerate(ranking):
        marks = ["examined"] * bool(examined[k]) + ["clicked"] * bool(clicked[k])
        lines.append(f"{k + 1:4d}. {item:<10} {', '.join(marks)}".rstrip())
    if env.model.iid_sessions and not env.model.may_leave:
        lines.append(f"best list: {', '.join(map(str, env.task.optimal_ranking))}")
    return lines


def picture_of(lines: Sequence[str]) -> NDArray[np.uint8]:
    """Draw the lines of a page as a picture, ``(height, 480, 3)`` uint8. Positions that were
    clicked are blue, and positions that were only examined are yellow.
    """
    from PIL import Image, ImageDraw  # only here, because most runs draw no picture

    picture = Image.new("RGB", (WIDTH, LINE * 2 * len(lines)), PAPER)
    pen = ImageDraw.Draw(picture)
    for row, line in enumerate(lines):
        top = 2 * LINE * row
        if line.endswith(("examined", "clicked")):
            colour = CLICKED if line.endswith("clicked") else EXAMINED
            pen.rectangle((0, top, WIDTH, top + 2 * LINE - 2), fill=colour)
        pen.text((LINE, top + LINE), line, INK, anchor="lm")
    return np.array(picture)
