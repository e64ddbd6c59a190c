"""Test parameters that run in `make test-slow`, in addition to those that represent them in `make
test`.
"""

from __future__ import annotations

from typing import Any

import pytest


def slow(*values: Any) -> list[Any]:
    """Return each argument as a slow set of parameters; a tuple is one set of several
    parameters.
    """
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.slow)
        for value in values
    ]
