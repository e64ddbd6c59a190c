"""Parameters of a test that `make test-slow` tries, beside those that stand for them in `make
test`.
"""

from __future__ import annotations

from typing import Any

import pytest


def slow(*values: Any) -> list[Any]:
    """Each as a slow set of parameters; a tuple is one of several."""
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.slow)
        for value in values
    ]
