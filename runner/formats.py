"""Numbers in words: regret with its interval, and times."""

from __future__ import annotations

__all__ = ["duration", "regret_text"]


def regret_text(mean: float, half_width: float | None) -> str:
    """A mean and half of its interval, both with the digits that the interval makes worth reading.

    Example:
        >>> regret_text(1234.567, 45.6), regret_text(3.14159, 0.021), regret_text(17.25, None)
        ('1,235 ± 46', '3.142 ± 0.021', '17.2')
        >>> regret_text(24043.4, 0.0), regret_text(0.4, 0.0)
        ('24,043 ± 0', '0.4 ± 0.0')
    """
    if half_width is None:
        return f"{mean:z,.1f}"
    digits = int(half_width == 0 and 0.05 <= mean < 10)
    while half_width and half_width * 10**digits < 10 and digits < 3:
        digits += 1
    return f"{mean:z,.{digits}f} ± {half_width:,.{digits}f}"


def duration(nanoseconds: float) -> str:
    """A time per session.

    Example:
        >>> duration(87.4), duration(71_300)
        ('87 ns', '71.3 µs')
    """
    return f"{nanoseconds:.0f} ns" if nanoseconds < 1000 else f"{nanoseconds / 1000:,.1f} µs"
