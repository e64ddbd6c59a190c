"""Pictures of one session: the result page that the simulated user saw, what they looked at and
what they clicked.

Shapes: K positions. On a rendered page positions count from 1, as readers of result pages count;
item numbers are those of the rankings and count from 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # Pillow is imported when the first picture is drawn: most runs never draw one
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

RENDER_MODES = ("ansi", "rgb_array")
"""The values of ``render_mode`` by which something is drawn and returned."""

MOST_CARDS = 20
"""A picture shows at most so many positions; a line below them counts the examined and clicked ones
among the rest.
"""


# Sizes in pixels of the finished picture.
WIDTH, HEADER, CARD, CUT, FOOTER, MARGIN = 480, 80, 48, 32, 48, 16

# Blue and orange differ for colour-blind readers, too; the eye and the check mark say the same.
PAPER, WHITE, INK, FAINT, LINE = "#f5f6f8", "#ffffff", "#1f2733", "#6b7685", "#dde1e7"
LOOKED, LOOKED_LINE = "#fff8e6", "#e8a317"
CLICKED, CLICKED_LINE = "#e6f0fd", "#2468c8"


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
        ranking: (K,) the items shown; None before the first session, and what describes a session
            is then ignored.
        clicks: (K,) 1 where the user clicked, else 0.
        examined: (K,) 1 where the user looked, else 0.
        satisfied: whether the user left satisfied; None if the click model knows no satisfaction.

    Example:
        >>> page = ResultPage(
        ...     title="PBMRank-v0", n_items=4, n_positions=2, step=1, regret=0.25, reward=1.0,
        ...     ranking=(3, 0), clicks=(0, 1), examined=(1, 1))
        >>> print(render(page, "ansi"))
        PBMRank-v0 | session 1 | clicks 1 | reward 1 | regret 0.25
           1. item 3     examined
           2. item 0     examined, clicked
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


def render(page: ResultPage, mode: str) -> str | NDArray[np.uint8]:
    """Draw ``page``.

    Args:
        page: what to draw.
        mode: one of `RENDER_MODES`.

    Returns:
        The text of `to_ansi` or the picture of `to_rgb`.

    Raises:
        ValueError: another mode.
    """
    if mode == "ansi":
        return to_ansi(page)
    if mode == "rgb_array":
        return to_rgb(page)
    raise ValueError(f"unknown render mode {mode!r}: choose one of {', '.join(RENDER_MODES)}")


def to_ansi(page: ResultPage) -> str:
    """The page as plain text, one line per position; no colour codes, so that it reads well in logs
    and diffs.

    Args:
        page: what to draw.

    Returns:
        The text, without a final line break.
    """
    lines = [f"{page.title} | {_summary(page, separator=' | ')}"]
    if page.ranking is not None:
        for position, (item, looked, clicked) in enumerate(_results(page), start=1):
            marks = ", ".join(
                mark for mark, is_set in (("examined", looked), ("clicked", clicked)) if is_set
            )
            lines.append(f"{position:4d}. item {item:<5d} {marks}".rstrip())
    return "\n".join(lines)


def to_rgb(page: ResultPage) -> NDArray[np.uint8]:
    """The page as a picture: one card per position, examined ones with an eye, clicked ones with a
    check mark.

    The size depends on K only, so the frames of an episode make a video; both sides are multiples
    of 16, for codecs.

    Args:
        page: what to draw.

    Returns:
        (height, 480, 3) uint8.
    """
    from PIL import Image, ImageDraw

    n_cards = min(page.n_positions, MOST_CARDS)
    cut = page.n_positions > MOST_CARDS
    height = HEADER + n_cards * CARD + cut * CUT + FOOTER
    # Pillow draws shapes with hard edges: draw at twice the size, then average 2 x 2 pixels.
    picture = Image.new("RGB", (2 * WIDTH, 2 * height), PAPER)
    pen = ImageDraw.Draw(picture)
    _draw_header(pen, page)
    if page.ranking is None:
        for position in range(n_cards):
            _draw_frame(pen, HEADER + position * CARD, position + 1, WHITE, LINE)
    else:
        for position, result in enumerate(_results(page)[:n_cards]):
            _draw_card(pen, HEADER + position * CARD, position + 1, *result)
    if cut:
        _draw_cut(pen, page, HEADER + n_cards * CARD + CUT / 2)
    _draw_legend(pen, height - FOOTER / 2)
    return np.array(picture.reduce(2))


def _results(page: ResultPage) -> list[tuple[int, bool, bool]]:
    """Item, examined and clicked of each position."""
    assert page.ranking is not None
    return [
        (int(item), bool(looked), bool(clicked))
        for item, looked, clicked in zip(page.ranking, page.examined, page.clicks, strict=True)
    ]


def _summary(page: ResultPage, separator: str) -> str:
    if page.ranking is None:
        return f"no session yet{separator}{page.n_items} items for {page.n_positions} positions"
    n_clicks = sum(clicked for _, _, clicked in _results(page))
    parts = [
        f"session {page.step:,}",
        f"clicks {n_clicks}",
        f"reward {page.reward:g}",
        f"regret {page.regret:z,.2f}",
    ]
    if page.satisfied is not None:
        parts.append("user satisfied" if page.satisfied else "user not satisfied")
    return separator.join(parts)


@cache
def _font(size: int) -> FreeTypeFont | ImageFont:
    from PIL import ImageFont

    return ImageFont.load_default(2 * size)


def _text(
    pen: ImageDraw, x: float, y: float, text: str, size: int, colour: str, anchor: str = "lm"
) -> None:
    pen.text((2 * x, 2 * y), text, colour, _font(size), anchor=anchor)


def _fitting(text: str, size: int, width: float) -> str:
    """``text``, cut with dots at the end if it is wider than ``width``."""
    font = _font(size)
    if font.getlength(text) <= 2 * width:
        return text
    while text and font.getlength(text + "...") > 2 * width:
        text = text[:-1]
    return text.rstrip() + "..."


def _draw_header(pen: ImageDraw, page: ResultPage) -> None:
    room = WIDTH - 2 * MARGIN
    _text(pen, MARGIN, 28, _fitting(page.title, 20, room), 20, INK)
    _text(pen, MARGIN, 56, _fitting(_summary(page, separator="   "), 14, room), 14, FAINT)


def _draw_frame(pen: ImageDraw, top: float, position: int, fill: str, line: str) -> None:
    box = (2 * MARGIN, 2 * top + 6, 2 * (WIDTH - MARGIN), 2 * (top + CARD) - 6)
    pen.rounded_rectangle(box, radius=12, fill=fill, outline=line, width=2)
    _text(pen, 38, top + CARD / 2, str(position), 14, FAINT, anchor="mm")


def _draw_card(
    pen: ImageDraw, top: float, position: int, item: int, looked: bool, clicked: bool
) -> None:
    fill, line = (LOOKED, LOOKED_LINE) if looked else (WHITE, LINE)
    if clicked:
        fill, line = CLICKED, CLICKED_LINE
    _draw_frame(pen, top, position, fill, line)
    middle = top + CARD / 2
    if looked:
        _draw_eye(pen, 70, middle, LOOKED_LINE)
    _text(pen, 96, middle - 6, f"item {item}", 15, INK if looked else FAINT)
    # A line of text as on a result page; its length makes an item known when it moves.
    snippet = 2 * (70 + 29 * item % 90)
    pen.rounded_rectangle(
        (192, 2 * middle + 18, 192 + snippet, 2 * middle + 26), radius=4, fill=LINE
    )
    if clicked:
        _draw_check(pen, 440, middle, CLICKED_LINE)


def _draw_eye(pen: ImageDraw, x: float, y: float, colour: str) -> None:
    pen.ellipse((2 * x - 20, 2 * y - 12, 2 * x + 20, 2 * y + 12), outline=colour, width=4)
    pen.ellipse((2 * x - 6, 2 * y - 6, 2 * x + 6, 2 * y + 6), fill=colour)


def _draw_check(pen: ImageDraw, x: float, y: float, colour: str) -> None:
    pen.ellipse((2 * x - 20, 2 * y - 20, 2 * x + 20, 2 * y + 20), fill=colour)
    pen.line(
        (2 * x - 10, 2 * y, 2 * x - 3, 2 * y + 8, 2 * x + 10, 2 * y - 8),
        fill=WHITE,
        width=5,
        joint="curve",
    )


def _draw_cut(pen: ImageDraw, page: ResultPage, y: float) -> None:
    """What happened at the positions that are not drawn."""
    text = f"and {page.n_positions - MOST_CARDS} more positions"
    if page.ranking is not None:
        _, looked, clicked = zip(*_results(page)[MOST_CARDS:], strict=True)
        text += f": {sum(looked)} examined, {sum(clicked)} clicked"
    _text(pen, WIDTH / 2, y, text, 14, FAINT, anchor="mm")


def _draw_legend(pen: ImageDraw, y: float) -> None:
    _draw_eye(pen, 28, y, LOOKED_LINE)
    _text(pen, 44, y, "examined", 12, FAINT)
    _draw_check(pen, 122, y, CLICKED_LINE)
    _text(pen, 138, y, "clicked", 12, FAINT)
