"""What commands print in terminals of several widths."""

from __future__ import annotations

import re

from rich.cells import cell_len

WIDTHS = (60, 80, 100, 140)


def check(narrow, unlimited, width):
    """Every name and every number of the one is in the other, or in a column that it says it has
    left out.
    """
    assert "…" not in narrow
    # a name is never cut
    assert all(cell_len(line) <= width or len(line.split()) == 1 for line in narrow.splitlines())
    words = narrow.split()
    numbers = {word for word in unlimited.split() if re.search(r"\d|-v0|_", word)}
    missing = numbers - set(words)
    assert bool(missing) <= ("columns also:" in narrow), missing
