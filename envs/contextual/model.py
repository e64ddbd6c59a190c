"""The base of click models with new candidates in every session.

Further letters: d features, M users, N items in the pool from which L candidates are drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..click_model import ClickModel, click_model_of
from ..users import Users
from .catalogue import Catalogue
from .task import CandidateTask, Pool

NO_PAIRS: NDArray[np.int64] = np.zeros((0, 2), np.int64)


class ContextualModel(Users, abstract=True):
    """Base class of models with new candidates in every session.

    Each session has one of M users, all with the same probability. L candidates of user i are drawn
    at random from all N items, or from those listed for this user, such as the documents of a query
    or the films that a person rated. Candidate j has the features ``x = [U(i), V(j)]``. Users
    examine positions as in the base model.

    Attributes:
        base: the click model of the users; only the number L of its items matters, because item
            parameters are replaced in every session.
        items, users, candidates: the features V and U, and the candidates of each user, as in
            `LinearModel`.
        interactions, gain: as in `LabelledModel`.
        pool: what sessions are drawn from.
        mean: the click model of a session in which all candidates equal the mean candidate. `at`
            returns that of any session.

    Args:
        base: the click model of the users, as `base_of` returns it.
        catalogue: users, items and candidates.
        values: for each item parameter of the base model, attraction first, ``(E,)`` the values of
            the entries of the catalogue.
        user_attraction: ``(M,)`` what is added to the attraction of all entries of a user; None: 0.
        interactions: ``(Q, 2)`` pairs of features.
        gain: ``(N,)``, or None.
    """

    def __init__(
        self,
        base: ClickModel,
        catalogue: Catalogue,
        values: Sequence[NDArray[np.float64]],
        *,
        user_attraction: NDArray[np.float64] | None = None,
        interactions: NDArray[np.int64] = NO_PAIRS,
        gain: NDArray[np.float64] | None = None,
    ) -> None:
        self.base, self.n_positions, self.rewards = base, base.n_positions, base.rewards
        self.items, self.candidates = catalogue.items, catalogue.candidates
        self.users = catalogue.users if catalogue.users.shape[1] else None
        self.interactions, self.gain = interactions, gain
        if user_attraction is None:
            user_attraction = np.zeros(len(catalogue.users))
        self.pool = Pool(
            users=catalogue.users,
            items=catalogue.items,
            starts=catalogue.starts,
            sizes=catalogue.sizes,
            entries=catalogue.entries,
            user_attraction=np.ascontiguousarray(user_attraction),  # or kernels compile once more
            values=np.array(values),
            pairs=interactions,
        )
        attraction, *others = map(catalogue.mean, self.pool.values)
        means = [user_attraction.mean() + attraction, *others]
        self.mean = self._with_items([np.full(self.n_items, mean) for mean in means])

    def __deepcopy__(self, memo: dict[int, Any]) -> ContextualModel:
        """Return a copy that shares features in float32, which are read-only: Gymnasium copies the
        arguments of an environment several times.
        """
        if not self.items.flags.writeable:
            memo[id(self.items)] = self.items
        memo[id(self)] = copied = object.__new__(type(self))
        vars(copied).update(deepcopy(vars(self), memo))
        return copied

    @property
    def n_uniforms(self) -> int:
        return self.base.n_uniforms

    @property
    def n_items(self) -> int:
        """L, the number of candidates of a session."""
        return self.base.n_items

    @property
    def n_features(self) -> int:
        """d, the number of features of a candidate."""
        pool = self.pool
        return pool.users.shape[1] + pool.items.shape[1] + len(pool.pairs)

    @property
    def kind(self) -> str:
        return f"{self.name()} of {self.base.kind}"

    @property
    def default_reward(self) -> str:  # type: ignore[override]
        return self.base.contextual_reward

    def tasks(
        self, reward: str, cutoff: int | None, reference: ArrayLike | None
    ) -> list[CandidateTask]:
        """As `Users.tasks`: a single task, which draws candidates for every session."""
        if reference is not None:
            raise ValueError(
                "reference is a list; expected None, because candidates change in every session"
            )
        return [CandidateTask(self.base, self.pool, self.kind, reward, cutoff, self.gain)]

    @classmethod
    def other_parameters(cls, base: ClickModel, values: Mapping[str, Any]) -> list[str]:
        """Return the names of all item parameters of a base model but attraction.

        Args:
            base: the base model.
            values: the values that were passed for them, by name.

        Raises:
            TypeError: a value for none of them.
            ValueError: one has no value.
        """
        names = base.item_parameters()[1:]
        for name in values:
            if name not in names:
                raise TypeError(f"{name} is not a parameter of a {cls.name()} of {base.kind}")
        for name in names:
            if name not in values:
                raise ValueError(f"{name} is missing: a {base.kind} has one for each item")
        return names

    def knowledge(self, source: str, production: NDArray[np.int64] | None = None) -> Any:
        """As `Users.knowledge`."""
        if source == "browsing":
            return self.mean.browsing_weights()
        if source != "examination":
            return None
        weights = self.base.position_weights()
        if weights is None:  # where candidates matter, those that are all alike
            weights = self.mean.examination_probabilities(range(self.base.n_positions))
        return weights

    def _arguments(self) -> dict[str, Any]:
        """Return the arguments of the constructor beside the base model."""
        return {"items": self.items, "users": self.users, "candidates": self.candidates}

    def to_dict(self) -> dict[str, Any]:
        arguments = {name: _plain(value) for name, value in self._arguments().items()}
        return {"model": self.name(), "base": self.base.to_dict(), **arguments}

    def with_positions(self, n_positions: int) -> Any:
        return type(self)(base=self.base.with_positions(n_positions), **self._arguments())

    def _with_items(self, values: Sequence[ArrayLike]) -> ClickModel:
        """Return the base model with the given item parameters, attraction first."""
        clipped = [np.clip(entries, 0.0, 1.0) for entries in values]
        return self.base.with_items(**dict(zip(self.base.item_parameters(), clipped, strict=True)))


def base_of(base: ClickModel | Mapping[str, Any]) -> ClickModel:
    """Return the base model of a contextual model, which has items with an attraction.

    Args:
        base: a click model, or its ``to_dict()``.
    """
    model = click_model_of("base", base)
    if "attraction" not in model.shapes:
        raise ValueError(f"base is a {model.kind}; expected items with an attraction")
    return model


def _plain(value: Any) -> Any:
    """Return an array, or a sequence of arrays, as lists; None as it is."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value and [row.tolist() for row in value]
