"""The documentation pages are those that `make pages` makes from docstrings and shipped results."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_documentation_pages_are_up_to_date():
    script = runpy.run_path(str(ROOT / "docs" / "make_pages.py"))
    pages = script["pages"]()
    docs = ROOT / "docs"
    made = {*(docs / "environments").glob("*.md"), *(docs / "studies").glob("*.md"), *(docs / "results").glob("*.json")}
    assert set(pages) == {
        *made,
        ROOT / "README.md",
        docs / "rl.md",
        docs / "scoreboard.md",
        docs / "contextual.md",
        docs / "agents.md",
        docs / "environments.md",
        docs / "studies.md",
        docs / "when_rl_pays.md",
        docs / "leaderboard.md",
        docs / "tasks.md",
        docs / "leaderboard.html",
    }
    for file, text in pages.items():
        assert file.read_text(encoding="utf-8") == text, "make pages makes it new"
