"""Test parameters that run only in `make test-slow`; `make test` runs a few representatives."""

from __future__ import annotations

from typing import Any

import pytest


def slow(*values: Any) -> list[Any]:
    """Return each argument as a parameter set that is marked as slow. A tuple is one set of several
    parameters.
    """
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.slow)
        for value in values
    ]
