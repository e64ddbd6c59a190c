"""Result pages of one session, as text and as a picture: the list, the examined positions and the
clicks.

On a page positions count from 1, as on a search result page; item ids count from 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # Pillow is imported for the first picture: most runs draw none
    from PIL.ImageDraw import ImageDraw

RENDER_MODES = ("ansi", "rgb_array")
"""The values of ``render_mode`` with which environments are rendered, by `to_ansi` or `to_rgb`."""

# Sizes in pixels of the finished picture.
WIDTH, HEADER, CARD, FOOTER = 480, 80, 48, 32
MARGIN = 16

# Colour-blind readers can distinguish blue and orange; the text has the same information.
PAPER, INK, FAINT = "#f5f6f8", "#1f2733", "#6b7685"
PLAIN, EXAMINED, CLICKED = ("#ffffff", "#dde1e7"), ("#fff8e6", "#e8a317"), ("#e6f0fd", "#2468c8")
"""The background and the frame of a position that was not examined, examined, and clicked."""


@dataclass(frozen=True, kw_only=True)
class ResultPage:
    """The content of a rendered page: the last session, and the totals so far.

    Args:
        title: the heading, for example the id of the environment.
        n_items: L.
        n_positions: K.
        step: sessions so far.
        regret: expected regret of all sessions so far.
        reward: the reward of this session.
        ranking: (K,) the items shown; None before the first session (the arguments below are then
            ignored).
        clicks: (K,) 1 at the clicked positions, otherwise 0.
        examined: (K,) 1 at the examined positions, otherwise 0.
        satisfied: whether the user left satisfied; None if the click model defines no satisfaction.
        best: (K,) the list without regret; None where the next session may have another one.

    Example:
        >>> page = ResultPage(
        ...     title="PBMRank-v0", n_items=4, n_positions=2, step=1, regret=0.25, reward=1.0,
        ...     ranking=(3, 0), clicks=(0, 1), examined=(1, 1), best=(0, 2))
        >>> print(to_ansi(page))
        PBMRank-v0 | session 1 | clicks 1 | reward 1 | regret 0.25
           1. item 3     examined
           2. item 0     examined, clicked
        best list: 0, 2
    """

    title: str
    n_items: int
    n_positions: int
    step: int = 0
    regret: float = 0.0
    reward: float = 0.0
    ranking: Sequence[int] | None = None
    clicks: Sequence[int] = ()
    examined: Sequence[int] = ()
    satisfied: bool | None = None
    best: Sequence[int] | None = None


def to_ansi(page: ResultPage) -> str:
    """Return the page as plain text, one line per position, without colour codes."""
    lines = [" | ".join([page.title, *_summary(page)])]
    for k, item in enumerate(page.ranking or ()):
        lines.append(f"{k + 1:4d}. item {item:<5d} {_marks(page, k)}".rstrip())
    return "\n".join([*lines, *_best(page)])


def to_rgb(page: ResultPage) -> NDArray[np.uint8]:
    """Return the page as a picture, one card per position.

    The size depends on K only, so the frames of an episode form a video; both sides are multiples
    of 16, as video codecs require.

    Returns:
        (height, 480, 3) uint8.
    """
    from PIL import Image, ImageDraw

    height = HEADER + page.n_positions * CARD + FOOTER
    # Pillow draws shapes with hard edges: draw at twice the size, then average 2 x 2 pixels.
    picture = Image.new("RGB", (2 * WIDTH, 2 * height), PAPER)
    pen = ImageDraw.Draw(picture)
    _write(pen, MARGIN, 28, page.title, 20, INK)
    _write(pen, MARGIN, 56, "   ".join(_summary(page)), 14, FAINT)
    for k in range(page.n_positions):
        _draw_card(pen, page, k)
    for line in _best(page):
        _write(pen, MARGIN, height - FOOTER / 2, line, 14, FAINT)
    return np.array(picture.reduce(2))


def _summary(page: ResultPage) -> list[str]:
    if page.ranking is None:
        return ["no session yet", f"{page.n_items} items for {page.n_positions} positions"]
    parts = [
        f"session {page.step:,}",
        f"clicks {sum(page.clicks)}",
        f"reward {page.reward:g}",
        f"regret {page.regret:z,.2f}",
    ]
    if page.satisfied is not None:
        parts.append("user satisfied" if page.satisfied else "user not satisfied")
    return parts


def _best(page: ResultPage) -> list[str]:
    return [] if page.best is None else [f"best list: {', '.join(map(str, page.best))}"]


def _marks(page: ResultPage, k: int) -> str:
    """Return what happened at a position, in words."""
    marks = {"examined": page.examined[k], "clicked": page.clicks[k]}
    return ", ".join(mark for mark, is_set in marks.items() if is_set)


def _draw_card(pen: ImageDraw, page: ResultPage, k: int) -> None:
    marks = "" if page.ranking is None else _marks(page, k)
    fill, line = CLICKED if "clicked" in marks else EXAMINED if marks else PLAIN
    top = HEADER + k * CARD
    box = (2 * MARGIN, 2 * top + 6, 2 * (WIDTH - MARGIN), 2 * (top + CARD) - 6)
    pen.rounded_rectangle(box, radius=12, fill=fill, outline=line, width=2)
    middle = top + CARD / 2
    _write(pen, 32, middle, str(k + 1), 14, FAINT)
    if page.ranking is not None:
        _write(pen, 80, middle, f"item {page.ranking[k]}", 15, INK if marks else FAINT)
        _write(pen, 240, middle, marks, 14, line)


def _write(pen: ImageDraw, x: float, y: float, text: str, size: int, colour: str) -> None:
    """Write a text, truncated with dots if it would reach the margin."""
    from PIL import ImageFont

    font, room = ImageFont.load_default(2 * size), 2 * (WIDTH - MARGIN - x)
    shown = text
    while font.getlength(shown) > room:
        text = text[:-1]
        shown = text.rstrip() + "..."
    pen.text((2 * x, 2 * y), shown, colour, font, anchor="lm")
