"""Click models whose users meet other candidates in every session, with attraction linear in the candidates' features.

Letters beside those of the package: d features, M users, N items of the pool from which L candidates are drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .cascade import CascadeModel
from .click_model import ClickModel
from .dependent_click import DependentClickModel
from .position_based import PositionBasedModel
from .user_browsing import UserBrowsingModel

__all__ = ["BASES", "LinearModel"]

BASES: dict[str, type[ClickModel]] = {
    "UBM": UserBrowsingModel,
    "PBM": PositionBasedModel,
    "CM": CascadeModel,
    "DCM": DependentClickModel,
}
"""The click models whose best list depends on nothing of the items but their attraction."""

ROUNDING = 1e-9  # by how much sums may miss a bound


class Pool(NamedTuple):
    users: NDArray[np.float64]  # (M, d_u)
    items: NDArray[np.float64]  # (N, d_v)
    user_attraction: NDArray[np.float64]  # (M,) the users' part of θ*ᵀx
    item_attraction: NDArray[np.float64]  # (N,) the items' part


class LinearModel(ClickModel):
    """A click model whose users meet other candidates in every session, with attraction linear in their features.

    In each session a user i, one of M, meets L of the N items, all choices equally likely. Candidate j has the features
    ``x = [U(i), V(j)]`` and the attraction ``γ = θ*ᵀx``; examination is that of the base model.

    The methods of a click model take the features of one session's candidates; without them they answer for candidates that all
    have the mean attraction.

    Args:
        base: the click model of the users, or its ``to_dict()``; its attractions are replaced in every session, and only
            their number L matters.
        theta: ``(d,)`` θ*.
        items: ``(N, d_v)`` V, the features of the items, N ≥ L.
        users: ``(M, d_u)`` U, the features of the users, ``d_u + d_v = d``; None: users have none.

    Raises:
        ValueError: naming the parameter and what was expected; ``‖x‖₂ ≤ 1`` and ``θ*ᵀx ∈ [0, 1]`` must hold for all users and
        items.

    Source: He et al. 2020, sections 3 and 6.3.

    Example:
        >>> from clickgym.envs import PositionBasedModel
        >>> model = LinearModel(PositionBasedModel([0, 0], [1.0, 0.5]), theta=[0.9, 0.1], items=[[1, 0], [0, 1], [0.5, 0.5]])
        >>> model.at([[0, 1], [1, 0]]).optimal_ranking()
        array([1, 0])
    """

    def __init__(
        self,
        base: ClickModel | Mapping[str, Any],
        theta: ArrayLike,
        items: ArrayLike,
        users: ArrayLike | None = None,
    ) -> None:
        self.base = base if isinstance(base, ClickModel) else ClickModel.from_dict(base)
        if type(self.base) not in BASES.values():
            names = ", ".join(model.__name__ for model in BASES.values())
            raise ValueError(f"base is a {self.base.kind}; expected one of {names}")
        self.theta = _finite("theta", theta, 1)
        self.items = _finite("items", items, 2)
        self.users = None if users is None else _finite("users", users, 2)
        n_user_features = 0 if self.users is None else self.users.shape[1]
        if self.n_features != n_user_features + self.items.shape[1]:
            raise ValueError(
                f"theta has {self.n_features} entries; expected one for each of the {n_user_features} features of users and "
                f"the {self.items.shape[1]} of items"
            )
        if len(self.items) < self.base.n_items:
            raise ValueError(f"items has {len(self.items)} rows; expected at least n_items = {self.base.n_items}")
        users_part = np.zeros((1, 0)) if self.users is None else self.users
        self.pool = Pool(
            users_part, self.items, users_part @ self.theta[:n_user_features], self.items @ self.theta[n_user_features:]
        )
        norm = np.sqrt((users_part**2).sum(axis=1).max() + (self.items**2).sum(axis=1).max())
        if norm > 1 + ROUNDING:
            raise ValueError(f"the features of some user and item have the norm {norm:g}; expected at most 1")
        least, most = (float(end(self.pool.user_attraction) + end(self.pool.item_attraction)) for end in (np.min, np.max))
        if least < -ROUNDING or most > 1 + ROUNDING:
            raise ValueError(f"attractions theta @ x range from {least:g} to {most:g}; expected probabilities in [0, 1]")
        mean = float(self.pool.user_attraction.mean() + self.pool.item_attraction.mean())
        self._mean = self._with_attraction(np.full(self.base.n_items, mean))
        self.parameters = self._mean.parameters
        self.n_positions = self.base.n_positions
        self.rewards = self.base.rewards

    @property
    def n_features(self) -> int:
        """d, the number of features of a candidate."""
        return len(self.theta)

    @property
    def kind(self) -> str:
        return f"LinearModel of {self.base.kind}"

    def at(self, features: ArrayLike | None) -> ClickModel:
        """The click model of a session with the given ``(L, d)`` features; None: all candidates have the mean attraction."""
        if features is None:
            return self._mean
        given = _finite("features", features, 2)
        if given.shape != (self.n_items, self.n_features):
            raise ValueError(f"features has shape {given.shape}; expected {(self.n_items, self.n_features)}")
        return self._with_attraction(given @ self.theta)

    def sample(self, ranking: ArrayLike, rng: np.random.Generator, features: ArrayLike | None = None) -> NDArray[np.int8]:
        """As `ClickModel.sample`, for a session's candidates."""
        return self.at(features).sample(ranking, rng)

    def click_probabilities(self, ranking: ArrayLike, features: ArrayLike | None = None) -> NDArray[np.float64]:
        """As `ClickModel.click_probabilities`, for a session's candidates."""
        return self.at(features).click_probabilities(ranking)

    def examination_probabilities(self, ranking: ArrayLike, features: ArrayLike | None = None) -> NDArray[np.float64]:
        """As `ClickModel.examination_probabilities`, for a session's candidates."""
        return self.at(features).examination_probabilities(ranking)

    def expected_reward(
        self, ranking: ArrayLike, reward: str = "clicks", cutoff: int | None = None, features: ArrayLike | None = None
    ) -> float:
        """As `ClickModel.expected_reward`, for a session's candidates."""
        return self.at(features).expected_reward(ranking, reward, cutoff)

    def optimal_ranking(
        self, reward: str = "clicks", cutoff: int | None = None, features: ArrayLike | None = None
    ) -> NDArray[np.int64]:
        """As `ClickModel.optimal_ranking`, for a session's candidates."""
        return self.at(features).optimal_ranking(reward, cutoff)

    def to_dict(self) -> dict[str, Any]:
        return {
            "model": "LinearModel",
            "base": self.base.to_dict(),
            "theta": self.theta.tolist(),
            "items": self.items.tolist(),
            "users": None if self.users is None else self.users.tolist(),
        }

    def with_positions(self, n_positions: int) -> LinearModel:
        return LinearModel(self.base.with_positions(n_positions), self.theta, self.items, self.users)

    def _with_attraction(self, attraction: NDArray[np.float64]) -> ClickModel:
        return ClickModel.from_dict(self.base.to_dict() | {"attraction": np.clip(attraction, 0.0, 1.0).tolist()})


def _finite(name: str, values: ArrayLike, ndim: int) -> NDArray[np.float64]:
    array = np.array(values, np.float64, order="C")
    if array.ndim != ndim or 0 in array.shape:
        raise ValueError(f"{name} has shape {array.shape}; expected {ndim} dimension{'s' * (ndim > 1)}, none of them empty")
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        raise ValueError(f"{name}{bad[0].tolist()} is {array[tuple(bad[0])]}; expected a finite number")
    return array
