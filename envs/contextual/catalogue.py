"""The users and items of a contextual model, checked: features, and whose candidates are which."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.checks import integers, numbers
from .interactions import squared_norms

ROUNDING = 1e-9
"""Tolerance of sums at a bound."""


class Catalogue:
    """Users, items, and the candidates of each user.

    An *entry* is an item as a candidate of a user: E is the sum of the numbers of candidates. If
    all items are candidates of every user, all users share one entry for each item, E = N.

    Args:
        n_candidates: L, the number of candidates of a session.
        items, users, candidates: as in `LinearModel`.

    Attributes:
        items: ``(N, d_v)`` features; float32 is read-only.
        users: ``(M, d_u)`` features, with d_u = 0 if users have none.
        candidates: for each user the numbers of its candidates; None: all items.
        entries: ``(E,)`` the item of each entry, one user after the other.
        starts, sizes: ``(M,)`` the first entry of each user, and their number.

    Raises:
        ValueError: naming the parameter and what was expected.
    """

    def __init__(
        self,
        n_candidates: int,
        items: ArrayLike,
        users: ArrayLike | None,
        candidates: Sequence[ArrayLike] | None,
    ) -> None:
        singles = items if isinstance(items, np.ndarray) and items.dtype == np.float32 else None
        copies = singles is None or singles.flags.writeable
        self.items = numbers("items", items, (None, None), copy=copies, single=True)
        self.items.flags.writeable = singles is None
        features = None if users is None else numbers("users", users, (None, None))
        self.candidates: list[NDArray[np.int64]] | None = None
        n_users = 1 if features is None else len(features)
        if candidates is None:
            self.entries = np.arange(len(self.items))
            _check_size("items", self.items, "rows", n_candidates)
            self.sizes = np.full(n_users, len(self.items))
            self.starts = np.zeros(n_users, np.int64)
        else:
            if features is None:
                n_users = len(candidates) or 1
            if len(candidates) != n_users:
                raise ValueError(f"candidates has {len(candidates)} entries; expected {n_users}")
            self.candidates = []
            for user, values in enumerate(candidates):
                name = f"candidates[{user}]"
                row = integers(name, values, (None,), 0, len(self.items)).copy()
                if len(np.unique(row)) < len(row):
                    raise ValueError(f"{name} has an item twice")
                _check_size(name, row, "items", n_candidates)
                self.candidates.append(row)
            self.entries = np.concatenate(self.candidates)
            self.sizes = np.array([len(row) for row in self.candidates])
            self.starts = np.cumsum(self.sizes) - self.sizes
        self.users = np.zeros((n_users, 0)) if features is None else features
        longest = [squares.max() for squares in self.split(squared_norms(self.items)[self.entries])]
        norm = ((self.users**2).sum(axis=1) + longest).max()
        if norm > (1 + ROUNDING) ** 2:
            has = f"the features of some user and item have the norm {norm**0.5:g}"
            raise ValueError(f"{has}; expected at most 1")

    @property
    def n_features(self) -> int:
        """The number of features of a user and an item."""
        return self.users.shape[1] + self.items.shape[1]

    def split(self, values: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Return the parts of ``(E,)`` values that belong to each user: a single one if all users
        have the same entries.
        """
        return [values] if self.candidates is None else np.split(values, self.starts[1:])

    def mean(self, values: NDArray[np.float64]) -> float:
        """Return the mean over users of the mean of their ``(E,)`` values."""
        if self.candidates is None:
            return float(values.mean())
        return float((np.add.reduceat(values, self.starts) / self.sizes).mean())


def _check_size(name: str, values: NDArray[np.generic], of: str, least: int) -> None:
    if len(values) < least:
        raise ValueError(f"{name} has {len(values)} {of}; expected at least n_items = {least}")
