"""What the pages have in common: how their templates are read, and the filters that these use."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import jinja2

from .formats import duration, regret_text

__all__ = ["templates"]


def templates(*folders: Path) -> jinja2.Environment:
    """The templates of this folder and of others: what is put into them is text, whatever characters a user's names have."""
    pages = jinja2.Environment(
        loader=jinja2.FileSystemLoader([*folders, Path(__file__).parent]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters |= {"duration": duration, "parts": partial(re.split, "(?<=[:=,])"), "regret": regret_text}
    return pages
