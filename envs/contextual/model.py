"""Click models whose users meet other candidates in every session: with attraction linear in features, or from labels.

Letters beside those of the package: d features, M users, N items of the pool from which L candidates are drawn.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..cascade import CascadeModel
from ..checks import check_finite, probabilities
from ..click_model import ClickModel
from ..dependent_click import DependentClickModel
from ..position_based import PositionBasedModel
from ..user_browsing import UserBrowsingModel

__all__ = ["BASES", "ContextualModel", "LabelledModel", "LinearModel"]

BASES: dict[str, type[ClickModel]] = {
    "UBM": UserBrowsingModel,
    "PBM": PositionBasedModel,
    "CM": CascadeModel,
    "DCM": DependentClickModel,
}
"""The click models whose best list depends on nothing of the items but their attraction."""

ROUNDING = 1e-9  # by how much sums may miss a bound


class Pool(NamedTuple):
    """What the candidates of a session are drawn from: all items for every user, or those that a user's entries name."""

    users: NDArray[np.float64]  # (M, d_u)
    items: NDArray[np.float64]  # (N, d_v)
    user_attraction: NDArray[np.float64]  # (M,) the users' part of the attraction
    item_attraction: NDArray[np.float64]  # (N,) the items' part
    starts: NDArray[np.int64]  # (M + 1,) where the entries of each user begin and end
    entries: NDArray[np.int64]  # (E,) the item of each entry; none: every user may meet every item
    entry_attraction: NDArray[np.float64]  # (E,) the attraction of each entry


class ContextualModel(ClickModel):
    """Base of the click models whose users meet other candidates in every session.

    In each session a user i, one of M and all equally likely, meets L items, drawn at random from the candidates of that user:
    all N items, or those named for it, as the documents of a query or the films that a person rated. Candidate j has the
    features ``x = [U(i), V(j)]``; examination is that of the base model.

    The methods of a click model answer for candidates that all have the mean attraction; `at` gives the model of one session.

    Args:
        base: the click model of the users, or its ``to_dict()``; its attractions are replaced in every session, and only
            their number L matters.
        items: ``(N, d_v)`` V, the features of the items.
        users: ``(M, d_u)`` U, the features of the users; None: users have none.
        candidates: for each user the numbers of the items that it may meet, distinct, at least L; None: all N items.

    Raises:
        ValueError: naming the parameter and what was expected; ``‖x‖₂ ≤ 1`` must hold for all candidates.
    """

    pool: Pool
    _mean: ClickModel

    def __init__(
        self,
        base: ClickModel | Mapping[str, Any],
        items: ArrayLike,
        users: ArrayLike | None,
        candidates: Sequence[ArrayLike] | None,
    ) -> None:
        self.base = base if isinstance(base, ClickModel) else ClickModel.from_dict(base)
        if type(self.base) not in BASES.values():
            names = ", ".join(model.__name__ for model in BASES.values())
            raise ValueError(f"base is a {self.base.kind}; expected one of {names}")
        self.items = _finite("items", items, 2)
        self.users = None if users is None else _finite("users", users, 2)
        self.candidates: list[NDArray[np.int64]] | None = None
        self.n_positions = self.base.n_positions
        self.rewards = self.base.rewards
        squares = (self.items**2).sum(axis=1)
        if candidates is None:
            if len(self.items) < self.base.n_items:
                raise ValueError(f"items has {len(self.items)} rows; expected at least n_items = {self.base.n_items}")
            norm = (self._users_part**2).sum(axis=1).max() + squares.max()
        else:
            self.candidates = self._checked_candidates(candidates)
            norm = max(
                (features**2).sum() + squares[numbers].max()
                for features, numbers in zip(self._users_part, self.candidates, strict=True)
            )
        if norm > (1 + ROUNDING) ** 2:
            raise ValueError(f"the features of some user and item have the norm {norm**0.5:g}; expected at most 1")

    @property
    def _users_part(self) -> NDArray[np.float64]:
        """``(M, d_u)``, d_u = 0 where users have no features."""
        if self.users is not None:
            return self.users
        return np.zeros((1 if self.candidates is None else len(self.candidates), 0))

    def _checked_candidates(self, candidates: Sequence[ArrayLike]) -> list[NDArray[np.int64]]:
        if not len(candidates) or (self.users is not None and len(self.users) != len(candidates)):
            wanted = "one or more" if self.users is None else f"{len(self.users)}, one for each row of users"
            raise ValueError(f"candidates has {len(candidates)} entries; expected {wanted}")
        checked = [_numbers(user, given, len(self.items)) for user, given in enumerate(candidates)]
        fewest = min(range(len(checked)), key=lambda user: len(checked[user]))
        if len(checked[fewest]) < self.base.n_items:
            has = f"candidates[{fewest}] has {len(checked[fewest])} items"
            raise ValueError(f"{has}; expected at least n_items = {self.base.n_items}")
        return checked

    @property
    def n_features(self) -> int:
        """d, the number of features of a candidate."""
        return self.items.shape[1] + (0 if self.users is None else self.users.shape[1])

    @property
    def kind(self) -> str:
        return f"{type(self).__name__} of {self.base.kind}"

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """As `ClickModel.to_dict`; its keys are the constructor's arguments."""

    @abstractmethod
    def with_positions(self, n_positions: int) -> ContextualModel:
        """As `ClickModel.with_positions`."""

    def sample(self, ranking: ArrayLike, rng: np.random.Generator) -> NDArray[np.int8]:
        return self._mean.sample(ranking, rng)

    def click_probabilities(self, ranking: ArrayLike) -> NDArray[np.float64]:
        return self._mean.click_probabilities(ranking)

    def examination_probabilities(self, ranking: ArrayLike) -> NDArray[np.float64]:
        return self._mean.examination_probabilities(ranking)

    def expected_reward(self, ranking: ArrayLike, reward: str = "clicks", cutoff: int | None = None) -> float:
        return self._mean.expected_reward(ranking, reward, cutoff)

    def optimal_ranking(self, reward: str = "clicks", cutoff: int | None = None) -> NDArray[np.int64]:
        return self._mean.optimal_ranking(reward, cutoff)

    def _describe(self) -> dict[str, Any]:
        """The part of `to_dict` that the models share."""
        return {
            "model": type(self).__name__,
            "base": self.base.to_dict(),
            "items": self.items.tolist(),
            "users": None if self.users is None else self.users.tolist(),
            "candidates": None if self.candidates is None else [numbers.tolist() for numbers in self.candidates],
        }

    def _set_pool(
        self,
        user_attraction: NDArray[np.float64],
        item_attraction: NDArray[np.float64],
        entry_attraction: NDArray[np.float64],
    ) -> None:
        """Keep the attractions; the mean session is one of the mean user."""
        candidates = self.candidates or []
        sizes = np.array([len(numbers) for numbers in candidates], np.int64)
        self.pool = Pool(
            self._users_part,
            self.items,
            user_attraction,
            item_attraction,
            starts=np.concatenate([[0], np.cumsum(sizes)]),
            entries=np.concatenate([np.zeros(0, np.int64), *candidates]),
            entry_attraction=entry_attraction,
        )
        mean = user_attraction.mean() + item_attraction.mean()
        if candidates:
            mean = (np.add.reduceat(entry_attraction, self.pool.starts[:-1]) / sizes).mean()
        self._mean = self._with_attraction(np.full(self.base.n_items, mean))
        self.parameters = self._mean.parameters

    def _with_attraction(self, attraction: NDArray[np.float64]) -> ClickModel:
        return ClickModel.from_dict(self.base.to_dict() | {"attraction": np.clip(attraction, 0.0, 1.0).tolist()})


class LinearModel(ContextualModel):
    """A `ContextualModel` with attraction linear in the features: ``γ = θ*ᵀx``.

    Args:
        base, items, users, candidates: as in `ContextualModel`.
        theta: ``(d,)`` θ*, first the users' part.

    Raises:
        ValueError: naming the parameter and what was expected; ``‖x‖₂ ≤ 1`` and ``θ*ᵀx ∈ [0, 1]`` must hold for all candidates.

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
        candidates: Sequence[ArrayLike] | None = None,
    ) -> None:
        super().__init__(base, items, users, candidates)
        self.theta = _finite("theta", theta, 1)
        n_user_features = self._users_part.shape[1]
        if len(self.theta) != self.n_features:
            raise ValueError(
                f"theta has {len(self.theta)} entries; expected one for each of the {n_user_features} features of users and "
                f"the {self.items.shape[1]} of items"
            )
        of_users = self._users_part @ self.theta[:n_user_features]
        of_items = self.items @ self.theta[n_user_features:]
        entries = np.concatenate(
            [np.zeros(0), *(of_users[user] + of_items[numbers] for user, numbers in enumerate(self.candidates or []))]
        )
        ends = (np.min, np.max)
        least, most = (float(end(entries)) if self.candidates else float(end(of_users) + end(of_items)) for end in ends)
        if least < -ROUNDING or most > 1 + ROUNDING:
            raise ValueError(f"attractions theta @ x range from {least:g} to {most:g}; expected probabilities in [0, 1]")
        self._set_pool(of_users, of_items, entries.clip(0.0, 1.0))

    def at(self, features: ArrayLike) -> ClickModel:
        """The click model of a session whose candidates have the given ``(L, d)`` features."""
        given = _finite("features", features, 2)
        if given.shape != (self.n_items, self.n_features):
            raise ValueError(f"features has shape {given.shape}; expected {(self.n_items, self.n_features)}")
        return self._with_attraction(given @ self.theta)

    def to_dict(self) -> dict[str, Any]:
        return self._describe() | {"theta": self.theta.tolist()}

    def with_positions(self, n_positions: int) -> LinearModel:
        return LinearModel(self.base.with_positions(n_positions), self.theta, self.items, self.users, self.candidates)


class LabelledModel(ContextualModel):
    """A `ContextualModel` with the attraction of each candidate given, as from labels of relevance: in no way linear.

    Args:
        base, items, users, candidates: as in `ContextualModel`; the candidates of every user must be named.
        attraction: for each user the attraction probabilities of its candidates.

    Raises:
        ValueError: naming the parameter and what was expected.

    Example:
        >>> from clickgym.envs import PositionBasedModel
        >>> base, items = PositionBasedModel([0, 0], [1.0, 0.5]), [[1, 0], [0, 1], [0.5, 0.5]]
        >>> model = LabelledModel(base, candidates=[[0, 1], [1, 2]], attraction=[[0.9, 0.1], [0.2, 0.3]], items=items)
        >>> model.at(user=1, items=[1, 2]).optimal_ranking()
        array([1, 0])
    """

    candidates: list[NDArray[np.int64]]

    def __init__(
        self,
        base: ClickModel | Mapping[str, Any],
        candidates: Sequence[ArrayLike],
        attraction: Sequence[ArrayLike],
        items: ArrayLike,
        users: ArrayLike | None = None,
    ) -> None:
        super().__init__(base, items, users, candidates)
        if len(attraction) != len(self.candidates):
            raise ValueError(f"attraction has {len(attraction)} entries; expected {len(self.candidates)}, as candidates")
        self.attractions = [
            probabilities(f"attraction[{user}]", given, (len(self.candidates[user]),)) for user, given in enumerate(attraction)
        ]
        nothing = np.zeros(1)
        self._set_pool(nothing, nothing, np.concatenate(self.attractions))

    def at(self, user: int, items: ArrayLike) -> ClickModel:
        """The click model of a session in which a user meets the given L of its candidates, by the numbers of the items."""
        numbers = np.asarray(items)
        if numbers.shape != (self.n_items,) or not np.isin(numbers, self.candidates[user]).all():
            raise ValueError(f"items are {items!r}; expected {self.n_items} of candidates[{user}]")
        order = np.argsort(self.candidates[user])
        return self._with_attraction(self.attractions[user][order[np.searchsorted(self.candidates[user][order], numbers)]])

    def to_dict(self) -> dict[str, Any]:
        return self._describe() | {"attraction": [attractions.tolist() for attractions in self.attractions]}

    def with_positions(self, n_positions: int) -> LabelledModel:
        return LabelledModel(self.base.with_positions(n_positions), self.candidates, self.attractions, self.items, self.users)


def _numbers(user: int, values: ArrayLike, n_items: int) -> NDArray[np.int64]:
    """The candidates of a user: distinct numbers of items."""
    numbers = np.array(values)
    if numbers.ndim != 1 or not numbers.size or not np.issubdtype(numbers.dtype, np.integer):
        raise ValueError(f"candidates[{user}] must be numbers of items, at least one")
    if not 0 <= numbers.min() <= numbers.max() < n_items:
        raise ValueError(f"candidates[{user}] has numbers from {numbers.min()} to {numbers.max()}; expected 0 to {n_items - 1}")
    if len(np.unique(numbers)) < len(numbers):
        raise ValueError(f"candidates[{user}] has an item twice")
    return numbers.astype(np.int64)


def _finite(name: str, values: ArrayLike, ndim: int) -> NDArray[np.float64]:
    array = np.array(values, np.float64, order="C")
    if array.ndim != ndim or 0 in array.shape:
        raise ValueError(f"{name} has shape {array.shape}; expected {ndim} dimension{'s' * (ndim > 1)}, none of them empty")
    check_finite(name, array)
    return array
