"""An animation of one run as one HTML file, with a slider over its moments; it loads no other file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ...core.templates import templates
from ..watch import Frame

WIDTH, HEIGHT = 640, 160
"""Of the curve, in units of its own."""


def film(frames: Sequence[Frame], title: str, seed: int) -> str:
    """The HTML page of an animation.

    Args:
        frames: the moments of a run.
        title: what it is a run of.
        seed: of the run.

    Returns:
        HTML.
    """
    last = frames[-1].page
    sessions = max(math.log(last.step), 1e-9)
    most = max(max(frame.page.regret for frame in frames), 1e-9)
    points = [
        (round(WIDTH * math.log(frame.page.step) / sessions, 1), round(HEIGHT * (1 - max(frame.page.regret, 0.0) / most), 1))
        for frame in frames
    ]
    return (
        templates(Path(__file__).parent)
        .get_template("film.html")
        .render(
            title=title,
            where=last.title,
            seed=seed,
            version=version("clickgym"),
            frames=frames,
            last=last,
            most=most,
            points=points,
            size=(WIDTH, HEIGHT),
            data={"frames": [_moment(frame) for frame in frames], "points": points},
        )
    )


def _moment(frame: Frame) -> dict[str, Any]:
    page = frame.page
    attraction = None if page.attraction is None else [round(value, 3) for value in page.attraction]
    return {
        "step": page.step,
        "ranking": page.ranking,
        "clicks": page.clicks,
        "examined": page.examined,
        "attraction": attraction,
        "total": frame.clicks,
        "regret": round(page.regret, 2),
        "speed": None if frame.speed is None else round(frame.speed),
    }
