"""Jinja templates of pages and of texts in Markdown: their loader, and the filters that they
share.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import jinja2

from .formats import duration, regret_text, visible


def templates(*folders: Path) -> jinja2.Environment:
    """The templates of this folder and of others; in HTML, values are escaped, whatever characters
    a user's names have.

    Args:
        *folders: searched before this one, which has ``base.html``, the frame of every page.
    """
    pages = jinja2.Environment(
        loader=jinja2.FileSystemLoader([*folders, Path(__file__).parent]),
        autoescape=jinja2.select_autoescape(["html"]),
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: visible(value, keep="\n\t") if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters |= {
        "duration": duration,
        "parts": partial(re.split, "(?<=[:=,])"),
        "regret": regret_text,
    }
    return pages
