"""What the studies of Li and de Rijke 2019 share, cascading bandits where users change."""

from __future__ import annotations

from collections.abc import Sequence

CM = "NonStationaryCMRank-v0"
ADAPTIVE = ("CascadeDUCB", "CascadeSWUCB")


LENGTH = 10_000
"""Sessions of an epoch in the paper."""


def switching(queries: Sequence[str], length: int = LENGTH) -> list[str]:
    """The paper's changes of each query, every so many sessions."""
    other = "" if length == LENGTH else f"length={length},"
    return [
        f"li2019-switching:query={query},{other}seed={seed}" for seed, query in enumerate(queries)
    ]
