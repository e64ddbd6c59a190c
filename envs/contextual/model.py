"""Click models with new candidates in every session: attraction linear in features, or from
labels.

Further letters: d features, M users, N items in the pool from which L candidates are drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.checks import (
    check_within,
    integers,
    is_sequence,
    numbers,
    probabilities,
    short,
)
from ...core.sums import weighted_sums
from ..click_model import ClickModel, click_model_of
from ..order import may_be_equal
from ..users import Users
from .interactions import largest_norm, squared_norms
from .task import CandidateTask, Pool

ROUNDING = 1e-9  # tolerance of sums at a bound


class ContextualModel(Users, abstract=True):
    """Base class of models with new candidates in every session.

    Each session has one of M users, all with the same probability. L candidates of user i are drawn
    at random from all N items, or from those listed for this user, such as the documents of a query
    or the films that a person rated. Candidate j has the features ``x = [U(i), V(j)]``. Users
    examine positions as in the base model.

    Attributes:
        base: the click model of the users; only the number L of its items matters, because item
            parameters are replaced in every session.
        mean: the click model of a session in which all candidates equal the mean candidate. `at`
            returns that of any session.
        interactions: ``(Q, 2)`` the pairs of features whose products are additional features (see
            `LabelledModel`).

    Args:
        base: the click model of the users, or its ``to_dict()``.
        items: ``(N, d_v)`` V, the features of the items. A float32 array stays one, and is not
            copied if it is read-only: large sets need little memory.
        users: ``(M, d_u)`` U, the features of the users; None: users have no features.
        candidates: for each user the numbers of its possible candidates, distinct, at least L;
            None: all N items.

    Raises:
        ValueError: naming the parameter and what was expected; ``‖x‖₂ ≤ 1`` must hold for all
            candidates.
    """

    observes = ("features",)

    pool: Pool
    mean: ClickModel
    interactions: NDArray[np.int64] = np.zeros((0, 2), np.int64)
    gain: NDArray[np.float64] | None = None

    def __init__(
        self,
        base: ClickModel | Mapping[str, Any],
        items: ArrayLike,
        users: ArrayLike | None,
        candidates: Sequence[ArrayLike] | None,
    ) -> None:
        self.base = click_model_of("base", base)
        if "attraction" not in self.base.shapes:
            raise ValueError(f"base is a {self.base.kind}; expected items with an attraction")
        singles = items if isinstance(items, np.ndarray) and items.dtype == np.float32 else None
        copies = singles is None or singles.flags.writeable
        self.items = numbers("items", items, (None, None), copy=copies, single=True)
        self.items.flags.writeable = singles is None
        self.users = None if users is None else numbers("users", users, (None, None))
        self.candidates: list[NDArray[np.int64]] | None = None
        self.n_positions = self.base.n_positions
        self.rewards = self.base.rewards
        squares = squared_norms(self.items)
        if candidates is None:
            if len(self.items) < self.n_items:
                expected = f"expected at least n_items = {self.n_items}"
                raise ValueError(f"items has {len(self.items)} rows; {expected}")
            norm = (self._users_part**2).sum(axis=1).max() + squares.max()
        else:
            self.candidates = self._checked_candidates(candidates)
            pairs = zip(self._users_part, self.candidates, strict=True)
            norm = max((user**2).sum() + squares[entries].max() for user, entries in pairs)
        if norm > (1 + ROUNDING) ** 2:
            has = f"the features of some user and item have the norm {norm**0.5:g}"
            raise ValueError(f"{has}; expected at most 1")

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
    def _users_part(self) -> NDArray[np.float64]:
        """Return ``(M, d_u)``, with d_u = 0 if users have no features."""
        if self.users is not None:
            return self.users
        return np.zeros((1 if self.candidates is None else len(self.candidates), 0))

    def _checked_candidates(self, candidates: Sequence[ArrayLike]) -> list[NDArray[np.int64]]:
        if not is_sequence(candidates):
            expected = "expected the numbers of items for each user"
            raise ValueError(f"candidates is {short(candidates)}; {expected}")
        wanted = len(candidates) or 1 if self.users is None else len(self.users)
        if len(candidates) != wanted:
            raise ValueError(f"candidates has {len(candidates)} entries; expected {wanted}")
        checked = []
        for user, values in enumerate(candidates):
            name = f"candidates[{user}]"
            entries = integers(name, values, (None,), 0, len(self.items)).copy()
            if len(np.unique(entries)) < len(entries):
                raise ValueError(f"{name} has an item twice")
            if len(entries) < self.n_items:
                expected = f"expected at least n_items = {self.n_items}"
                raise ValueError(f"{name} has {len(entries)} items; {expected}")
            checked.append(entries)
        return checked

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
        return self._users_part.shape[1] + self.items.shape[1] + len(self.interactions)

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

    def _check_item_parameters(self, others: Mapping[str, Any]) -> list[str]:
        """Check that all item parameters except attraction are passed; return their names."""
        names = self.base.item_parameters()[1:]
        for name in others.keys() - names:
            raise TypeError(f"{name} is not a parameter of a {self.kind}")
        for name in names:
            if name not in others:
                raise ValueError(f"{name} is missing: a {self.base.kind} has one for each item")
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

    def _describe(self) -> dict[str, Any]:
        """Return the part of `to_dict` that the models share."""
        users, candidates = self.users, self.candidates
        return {
            "model": self.name(),
            "base": self.base.to_dict(),
            "items": self.items.tolist(),
            "users": None if users is None else users.tolist(),
            "candidates": candidates and [entries.tolist() for entries in candidates],
        }

    def _set_pool(
        self,
        user_attraction: NDArray[np.float64],
        item_attraction: NDArray[np.float64],
        item_others: Sequence[NDArray[np.float64]],
        entry_attraction: NDArray[np.float64],
        entry_others: Sequence[NDArray[np.float64]],
    ) -> None:
        """Store the item parameters; the mean session is that of the mean user."""
        candidates = self.candidates or []
        sizes = np.array([len(entries) for entries in candidates], np.int64)
        n_others = len(self.base.item_parameters()) - 1
        starts = np.concatenate([[0], np.cumsum(sizes)])
        # That of a user and an item is a sum, in which the user's part is the same for all items.
        by_user = np.split(entry_attraction, starts[1:-1]) if candidates else [item_attraction]
        self.pool = Pool(
            self._users_part,
            self.items,
            np.ascontiguousarray(user_attraction),  # or kernels compile once more
            np.ascontiguousarray(item_attraction),
            item_others=np.array(item_others, float).reshape(n_others, len(item_attraction)),
            starts=starts,
            entries=np.concatenate([np.zeros(0, np.int64), *candidates]),
            entry_attraction=entry_attraction,
            entry_others=np.array(entry_others, float).reshape(n_others, len(entry_attraction)),
            pairs=self.interactions,
            has_ties=any(map(may_be_equal, by_user)),
        )
        if candidates:
            rows = [entry_attraction, *entry_others]
            means = [(np.add.reduceat(row, starts[:-1]) / sizes).mean() for row in rows]
        else:
            means = [user_attraction.mean() + item_attraction.mean()]
            means += [row.mean() for row in item_others]
        self.mean = self._with_items([np.full(self.n_items, value) for value in means])

    def _with_items(self, values: Sequence[ArrayLike]) -> ClickModel:
        """Return the base model with the given item parameters, attraction first."""
        clipped = [np.clip(entries, 0.0, 1.0) for entries in values]
        return self.base.with_items(**dict(zip(self.base.item_parameters(), clipped, strict=True)))


class LinearModel(ContextualModel):
    r"""A `ContextualModel` in which attraction is a linear function of the features.

    Click law:
        In session t candidate j has the features x = [U(i_t), V(j)] and the attraction

        $$α_t(j) = {θ^*}^\top x_{t,j}$$

        Users then examine and click as users of the base model with these attractions.

    Args:
        base, items, users, candidates: as in `ContextualModel`.
        theta: ``(d,)`` θ*, the users' part first.
        **others: ``(N,)`` the other item parameters of the base model, such as the satisfaction of
            a dynamic Bayesian network model.

    Raises:
        ValueError: naming the parameter and what was expected; ``‖x‖₂ ≤ 1`` and ``θ*ᵀx ∈ [0, 1]``
            must hold for all candidates.

    Source:
        He, An, Li, Chen, Guo, Li, Wang, *Contextual user browsing bandits for large-scale online
            mobile recommendation*, RecSys 2020, sections 3 and 6.3.

    Example:
        >>> from clickgym.envs import PositionBasedModel
        >>> base, items = PositionBasedModel([0, 0], [1.0, 0.5]), [[1, 0], [0, 1], [0.5, 0.5]]
        >>> model = LinearModel(base, theta=[0.9, 0.1], items=items)
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
        **others: ArrayLike,
    ) -> None:
        super().__init__(base, items, users, candidates)
        self.others = {
            name: probabilities(name, others[name], (len(self.items),))
            for name in self._check_item_parameters(others)
        }
        self.theta = numbers("theta", theta, (None,))
        if len(self.theta) != self.n_features:
            expected = f"expected {self.n_features}, one for each feature of users and items"
            raise ValueError(f"theta has {len(self.theta)} entries; {expected}")
        n_user_features = self._users_part.shape[1]
        of_users = weighted_sums(self._users_part, self.theta[:n_user_features])
        of_items = weighted_sums(self.items, self.theta[n_user_features:])
        candidates = self.candidates or []
        items = np.concatenate([np.zeros(0, np.int64), *candidates])
        users = np.repeat(np.arange(len(candidates)), [len(entries) for entries in candidates])
        attraction = of_users[users] + of_items[items]
        if self.candidates:
            least, most = attraction.min(), attraction.max()
        else:
            least, most = of_users.min() + of_items.min(), of_users.max() + of_items.max()
        if least < -ROUNDING or most > 1 + ROUNDING:
            ends = f"from {least:g} to {most:g}"
            raise ValueError(f"attractions theta @ x range {ends}; expected probabilities")
        item_others = list(self.others.values())
        entry_others = [values[items] for values in item_others]
        self._set_pool(of_users, of_items, item_others, attraction.clip(0.0, 1.0), entry_others)

    def at(self, features: ArrayLike, **others: ArrayLike) -> ClickModel:
        """Return the click model of a session whose candidates have these ``(L, d)`` features and
        ``(L,)`` other item parameters.
        """
        rows = numbers("features", features, (self.n_items, self.n_features))
        return self._with_items(
            [
                weighted_sums(rows, self.theta),
                *(others[name] for name in self._check_item_parameters(others)),
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        others = {name: values.tolist() for name, values in self.others.items()}
        return self._describe() | {"theta": self.theta.tolist()} | others

    def with_positions(self, n_positions: int) -> Any:
        base = self.base.with_positions(n_positions)
        return LinearModel(base, self.theta, self.items, self.users, self.candidates, **self.others)


class LabelledModel(ContextualModel):
    """A `ContextualModel` with an attraction for each user and candidate, for example from
    relevance labels; it need not be linear.

    Args:
        base, items, users, candidates: as in `ContextualModel`; ``candidates`` is required.
        attraction: for each user the attraction probabilities of its candidates.
        interactions: ``(Q, 2)`` pairs (a, b) of indices into ``[U(i), V(j)]``, whose products are
            additional features: agents see ``x = [U(i), V(j), z]``, where ``z_q = x_a x_b / x_0``
            for the q-th pair. The first feature x_0 must be a positive constant c, so that x is c
            times ``[1, u, v, u_a v_b, ...]``. Clicks and attractions do not change. Products are
            computed in every session.
        gain: ``(N,)`` the gain of each item in the metric ``ndcg@k``, from 0, such as ``2^grade -
            1``; None: its attraction. Neither clicks nor regret depend on it.
        **others: like ``attraction``, the other item parameters of the base model.

    Raises:
        ValueError: naming the parameter and what was expected.

    Source:
        As for `LinearModel`, with attraction probabilities that need not be linear.

    Example:
        >>> from clickgym.envs import PositionBasedModel
        >>> base, items = PositionBasedModel([0, 0], [1.0, 0.5]), [[1, 0], [0, 1], [0.5, 0.5]]
        >>> attraction = [[0.9, 0.1], [0.2, 0.3]]
        >>> model = LabelledModel(base, [[0, 1], [1, 2]], attraction=attraction, items=items)
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
        interactions: ArrayLike | None = None,
        gain: ArrayLike | None = None,
        **others: Sequence[ArrayLike],
    ) -> None:
        if candidates is None:
            raise ValueError("candidates is None; expected the item numbers of each user")
        super().__init__(base, items, users, candidates)
        self._check_item_parameters(others)
        self.labels = {
            name: self._checked_labels(name, labels)
            for name, labels in {"attraction": attraction, **others}.items()
        }
        self.interactions = self._checked_interactions(interactions)
        if gain is not None:
            self.gain = numbers("gain", gain, (len(self.items),), 0.0, expected="a number from 0")
        nothing = np.zeros(1)
        first, *rest = (np.concatenate(self.labels[name]) for name in self.base.item_parameters())
        self._set_pool(nothing, nothing, [nothing for _ in rest], first, rest)

    @property
    def attractions(self) -> list[NDArray[np.float64]]:
        """The attraction probabilities of each user's candidates."""
        return self.labels["attraction"]

    def _checked_labels(self, name: str, labels: Sequence[ArrayLike]) -> list[NDArray[np.float64]]:
        if not is_sequence(labels):
            expected = "expected probabilities for each entry of candidates"
            raise ValueError(f"{name} is {short(labels)}; {expected}")
        if len(labels) != len(self.candidates):
            expected = f"expected {len(self.candidates)}, as in candidates"
            raise ValueError(f"{name} has {len(labels)} entries; {expected}")
        sizes = [len(entries) for entries in self.candidates]
        return [
            probabilities(f"{name}[{user}]", values, (sizes[user],))
            for user, values in enumerate(labels)
        ]

    def at(self, user: int, items: ArrayLike) -> ClickModel:
        """Return the click model of a session of a user with L of its candidates, by their item
        numbers.
        """
        user = check_within("user", user, 0, len(self.candidates) - 1)
        candidates = integers("items", items, (self.n_items,), 0, len(self.items))
        if not np.isin(candidates, self.candidates[user]).all():
            raise ValueError(f"items are {items!r}; expected {self.n_items} of candidates[{user}]")
        order = np.argsort(self.candidates[user])
        places = order[np.searchsorted(self.candidates[user][order], candidates)]
        return self._with_items(
            [self.labels[name][user][places] for name in self.base.item_parameters()]
        )

    def _checked_interactions(self, interactions: ArrayLike | None) -> NDArray[np.int64]:
        if interactions is None or not len(np.atleast_1d(interactions)):
            return ContextualModel.interactions
        n_features = self.items.shape[1] + self._users_part.shape[1]
        pairs = integers("interactions", interactions, (None, 2), 0, n_features).copy()
        first = (self._users_part if self._users_part.shape[1] else self.items)[:, 0]
        if first[0] <= 0 or np.ptp(first) > 0:
            ends = f"from {first.min():g} to {first.max():g}"
            expected = "interactions require the same positive number for all"
            raise ValueError(f"the first feature ranges {ends}; {expected}")
        norm = largest_norm(self._users_part, self.items, pairs, self.candidates)
        if norm > 1 + ROUNDING:
            of = "the features of some user and item, products included,"
            raise ValueError(f"{of} have the norm {norm:g}; expected at most 1")
        return pairs

    def to_dict(self) -> dict[str, Any]:
        labels = {name: [row.tolist() for row in rows] for name, rows in self.labels.items()}
        gain = {} if self.gain is None else {"gain": self.gain.tolist()}
        pairs = self.interactions.tolist() or None
        return self._describe() | labels | gain | {"interactions": pairs}

    def with_positions(self, n_positions: int) -> Any:
        base = self.base.with_positions(n_positions)
        return LabelledModel(
            base,
            self.candidates,
            items=self.items,
            users=self.users,
            interactions=self.interactions,
            gain=self.gain,
            **self.labels,
        )
