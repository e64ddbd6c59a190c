"""What the studies of Li and de Rijke 2019 share, cascading bandits where users change."""

from __future__ import annotations

from collections.abc import Sequence

CM = "NonStationaryCMRank-v0"
ADAPTIVE = ("CascadeDUCB", "CascadeSWUCB")


def switching(queries: Sequence[str]) -> list[str]:
    """The paper's changes of each query."""
    return [f"li2019-switching:query={query},seed={seed}" for seed, query in enumerate(queries)]
