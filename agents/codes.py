"""How kernels read the click of a position: 0 or 1; with `VOID` added where it is no sample; `NOT_SHOWN` alone.

A kernel skips what is greater than 1, and finds whether there was a click by ``code & 1``: a void click still tells how far the
user looked.
"""

from __future__ import annotations

__all__ = ["NOT_SHOWN", "VOID"]

VOID = 2
"""The item was replaced since the list was shown."""
NOT_SHOWN = 4
"""The list was cut off above."""
