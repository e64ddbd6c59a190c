"""A click log in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ClickLog"]


@dataclass(frozen=True, eq=False)
class ClickLog:
    """Sessions of result lists of equal length, and which results were clicked.

    A click vector says *which* positions were clicked: how often, and in which order, is not kept.

    Args:
        items: ``(N, K)`` integers, the list of each session as indices into ``item_labels``.
        clicks: ``(N, K)`` int8, 1 where the position was clicked.
        queries: ``(N,)`` integers, the query of each session as an index into ``query_labels``.
        item_labels, query_labels: what the indices stand for. Logs are matched by these labels, so a model fitted to
            one log can be scored on another.
        off_list_clicks: how many clicks a reader met on items that the session's list does not hold.

    Raises:
        ValueError: naming the array and what was expected.

    Example:
        >>> log = ClickLog([[0, 1], [1, 0]], [[1, 0], [0, 0]], [0, 0], ("a", "b"), ("q",))
        >>> len(log), log.n_positions, log[[0]].clicks.tolist()
        (2, 2, [[1, 0]])
    """

    items: NDArray[np.int32]
    clicks: NDArray[np.int8]
    queries: NDArray[np.int32]
    item_labels: tuple[str, ...]
    query_labels: tuple[str, ...]
    off_list_clicks: int = 0

    def __post_init__(self) -> None:
        for name, dtype in (("items", np.int32), ("clicks", np.int8), ("queries", np.int32)):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype))
        if self.items.ndim != 2 or self.items.shape[1] < 1:
            raise ValueError(f"items has shape {self.items.shape}; expected (sessions, positions)")
        for name, shape in (("clicks", self.items.shape), ("queries", self.items.shape[:1])):
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name} has shape {getattr(self, name).shape}; expected {shape}, as items")
        for name, size in (("items", len(self.item_labels)), ("clicks", 2), ("queries", len(self.query_labels))):
            array = getattr(self, name)
            if array.size and not 0 <= array.min() <= array.max() < size:
                raise ValueError(f"{name} has entries from {array.min()} to {array.max()}; expected 0 to {size - 1}")

    def __len__(self) -> int:
        return len(self.items)

    @property
    def n_positions(self) -> int:
        """K, the length of every list."""
        return self.items.shape[1]

    def __getitem__(self, sessions: Any) -> ClickLog:
        """The log of some sessions: a boolean mask, a slice or a sequence of indices."""
        return replace(
            self,
            items=self.items[sessions],
            clicks=self.clicks[sessions],
            queries=self.queries[sessions],
            off_list_clicks=0,
        )

    def pairs(self) -> tuple[NDArray[np.int64], list[tuple[str, str]]]:
        """The (query, item) pairs of the log.

        Returns:
            ``(N, K)`` indices of the pair at each position, and the labels of the pairs.
        """
        size = len(self.item_labels)
        codes, index = np.unique(self.queries[:, None].astype(np.int64) * size + self.items, return_inverse=True)
        labels = [(self.query_labels[code // size], self.item_labels[code % size]) for code in codes.tolist()]
        return index.reshape(self.items.shape), labels
