"""Click models with new candidates in every session.

Further letters: d features, M users, N items in the pool from which L candidates are drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.checks import as_integers, as_numbers, probabilities
from ...core.sums import weighted_sums
from ..click_model import ClickModel, click_model_of
from ..user_model import UserModel
from .features import largest_norm, squared_norms
from .task import CandidateTask, Pool

ROUNDING = 1e-9
"""Tolerance for sums that should not exceed a bound."""


class ContextualModel(UserModel):
    """Users who follow a click model and see new candidates with features in every session.

    Each session belongs to one of M users, all with the same probability. The L candidates for user
    i are drawn at random from the items listed for this user, such as the documents of a query or
    the films that a person rated. Candidate j has the features ``x = [U(i), V(j)]``. Users examine
    positions as in the base model.

    Click law:
        In session t candidate j has the features x = [U(i_t), V(j)], and the attraction α(i_t, j),
        or, with ``theta``,

        ::

            α_t(j) = θᵀ x_{t,j}

        Users then examine and click as users of the base model with these attractions.

    Args:
        base: the click model of the users, or its ``to_dict()``. Only its number L of items
            matters, because all its item parameters are replaced in every session.
        items: ``(N, d_v)`` V, the features of the items. A float32 array stays float32, and is not
            copied if it is read-only, so large sets need little memory.
        attraction: for each user, the attraction probabilities of the user's candidates.
        users: ``(M, d_u)`` U, the features of the users; by default, users have no features.
        candidates: for each user, the numbers of the possible candidates: distinct, at least L; by
            default all N items.
        theta: ``(d,)`` θ*, with the entries for user features first; pass ``theta`` instead of
            ``attraction``.
        interactions: ``(Q, 2)`` pairs (a, b) of indices into ``[U(i), V(j)]``, whose products are
            additional features: agents see ``x = [U(i), V(j), z]``, where ``z_q = x_a x_b / x_0``
            for the q-th pair. The first feature x_0 must be the same positive number for all.
            Clicks and attractions do not change. Products are computed in every session.
        gain: ``(N,)`` the gain of each item in the metric ``ndcg@k``, from 0, such as ``2^grade -
            1``; by default its attraction. Neither clicks nor regret depend on it.
        held_out: for each held-out query, the numbers of its items. The metric ``held_out_ndcg@k``
            ranks these items by their features and requires their ``gain``.
        **others: ``(N,)`` the other item parameters of the base model, such as the satisfaction of
            a dynamic Bayesian network model.

    Attributes:
        mean: the click model of a session in which all candidates equal the mean candidate. `at`
            returns the click model of any particular session.

    Raises:
        ValueError: an invalid argument; the message names the parameter and what was expected;
            ``‖x‖₂ ≤ 1`` and attractions in [0, 1] must hold for all candidates.

    Source:
        He, An, Li, Chen, Guo, Li, Wang, *Contextual user browsing bandits for large-scale online
            mobile recommendation*, RecSys 2020, sections 3 and 6.3.

    Example:
        >>> from clickgym.envs import PositionBasedModel
        >>> base, items = PositionBasedModel([0, 0], [1.0, 0.5]), [[1, 0], [0, 1], [0.5, 0.5]]
        >>> model = ContextualModel(base, items, theta=[0.9, 0.1])
        >>> model.at(user=0, items=[1, 0]).optimal_ranking()
        array([1, 0])
    """

    title = "with new candidates in every session"
    bibtex_keys = ["ubmlinucb"]
    default_instance = "linear"

    def __init__(
        self,
        base: ClickModel | Mapping[str, Any],
        items: ArrayLike,
        attraction: Sequence[ArrayLike] | None = None,
        users: ArrayLike | None = None,
        candidates: Sequence[ArrayLike] | None = None,
        *,
        theta: ArrayLike | None = None,
        interactions: ArrayLike | None = None,
        gain: ArrayLike | None = None,
        held_out: Sequence[ArrayLike] | None = None,
        **others: ArrayLike,
    ) -> None:
        self.base = click_model_of("base", base)
        self.n_positions, self.rewards = self.base.n_positions, self.base.rewards
        self._check_item_parameters(others)

        # Users, items, and the candidates of each user.
        self.items = _features(items)
        self.users = None if users is None else as_numbers("users", users, (None, None))
        self._names_all = candidates is None
        self.candidates = self._candidates_of_users(candidates)
        n_users, n_items = len(self.candidates), len(self.items)

        # The entries of the pool. Users with neither candidates nor attractions of their own share
        # them: one for each item, instead of one for each pair.
        shares_entries = candidates is None and attraction is None
        lists = self.candidates[:1] if shares_entries else self.candidates
        sizes = np.array([len(row) for row in lists])
        starts = np.cumsum(sizes) - sizes
        entries = np.concatenate(lists)

        # Features.
        user_features = np.zeros((n_users, 0)) if self.users is None else self.users
        width = user_features.shape[1] + self.items.shape[1]
        pairs = np.zeros((0, 2), np.int64) if interactions is None else interactions
        self.interactions = as_integers(
            "interactions", pairs, (None, 2), 0, width, allow_empty=True
        ).copy()
        self._check_norms(user_features, entries, starts)

        # Attraction and the other item parameters of the entries.
        self.theta = None if theta is None else as_numbers("theta", theta, (width,))
        if self.theta is not None and attraction is None:
            user_attraction, entry_attraction = _linear_attraction(
                self.theta, user_features, self.items, entries, starts
            )
        elif self.theta is None and attraction is not None:
            user_attraction = np.zeros(n_users)
            entry_attraction = _given_attraction(attraction, sizes)
        else:
            raise ValueError("pass either attraction=... or theta=..., and only one of them")
        self.others = {
            name: probabilities(name, others[name], (n_items,))
            for name in self.base.item_parameters()[1:]
        }
        other_values = [row[entries] for row in self.others.values()]

        # Metrics.
        self.gain = None if gain is None else as_numbers("gain", gain, (n_items,), 0.0)
        self.held_out = None if held_out is None else self._check_held_out(held_out)

        self.pool = Pool(
            users=user_features,
            items=self.items,
            starts=np.resize(starts, n_users),
            sizes=np.resize(sizes, n_users),
            entries=entries,
            user_attraction=user_attraction,
            values=np.array([entry_attraction, *other_values]),
            pairs=self.interactions,
        )
        self.mean = self._mean_model(shares_entries)

    def _check_item_parameters(self, others: Mapping[str, ArrayLike]) -> None:
        """Check that the base model has an attraction, and that all its other item parameters are
        given.
        """
        names = self.base.item_parameters()
        if "attraction" not in names or {*names[1:]} != others.keys():
            missing = ", ".join(names[1:]) or "none"
            raise ValueError(
                f"a {self.base.kind} has the item parameters {', '.join(names)}; expected a "
                f"base model with attraction, and as further arguments {missing}; got "
                f"{', '.join(others) or 'none'}"
            )

    def _check_held_out(self, held_out: Sequence[ArrayLike]) -> list[NDArray[np.int64]]:
        """Check and return the items of each held-out query."""
        rows = [
            as_integers(f"held_out[{query}]", row, (None,), 0, len(self.items)).copy()
            for query, row in enumerate(held_out)
        ]
        if rows and (self.gain is None or self.users is not None or len(self.interactions)):
            raise ValueError(
                "held_out requires gain=..., and cannot be combined with users or interactions"
            )
        return rows

    def _candidates_of_users(
        self, candidates: Sequence[ArrayLike] | None
    ) -> list[NDArray[np.int64]]:
        """Check and return the candidates of each user; by default, all items for each user."""
        n_users = None if self.users is None else len(self.users)
        if candidates is None:
            all_items = np.arange(len(self.items))
            self._check_candidates("items", all_items)
            return [all_items] * (n_users or 1)
        if n_users is not None and len(candidates) != n_users:
            raise ValueError(f"candidates has {len(candidates)} entries; expected {n_users}")
        rows = [
            as_integers(f"candidates[{user}]", row, (None,), 0, len(self.items)).copy()
            for user, row in enumerate(candidates)
        ]
        for user, row in enumerate(rows):
            self._check_candidates(f"candidates[{user}]", row)
        return rows

    def _check_candidates(self, name: str, row: NDArray[np.int64]) -> None:
        if not self.n_items <= len(np.unique(row)) == len(row):
            expected = f"expected at least n_items = {self.n_items}, all distinct"
            raise ValueError(f"{name} has {len(row)} items; {expected}")

    def _check_norms(
        self,
        user_features: NDArray[np.float64],
        entries: NDArray[np.int64],
        starts: NDArray[np.int64],
    ) -> None:
        """Check that the features of each user with each candidate have a norm of at most 1, and
        that interactions can be divided by the first feature.
        """
        if len(self.interactions):
            first = (user_features if user_features.shape[1] else self.items)[:, 0]
            if first[0] <= 0 or np.ptp(first) > 0:
                raise ValueError(
                    "interactions require that the first feature is the same positive number for "
                    "all users (or for all items, if users have no features)"
                )
            norm = largest_norm(user_features, self.items, self.interactions, self.candidates)
        else:
            item_norms = np.maximum.reduceat(squared_norms(self.items)[entries], starts)
            norm = float(((user_features**2).sum(axis=1) + item_norms).max() ** 0.5)
        if norm > 1 + ROUNDING:
            raise ValueError(
                f"the features of some user and item together have the norm {norm:g}; "
                "expected at most 1: scale the features down"
            )

    def _mean_model(self, shares_entries: bool) -> ClickModel:
        """Return the click model of a session in which all candidates equal the mean candidate.

        Args:
            shares_entries: whether all users have the same entries of the pool.
        """
        pool = self.pool
        if shares_entries:
            means = [row.mean() for row in pool.values]
            means[0] = (pool.user_attraction.mean() + means[0]).clip(0.0, 1.0)
        else:
            rows = [np.concatenate(self.attraction), *pool.values[1:]]
            means = [(np.add.reduceat(row, pool.starts) / pool.sizes).mean() for row in rows]
        return self._with_items([np.full(self.n_items, mean) for mean in means])

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

    @property
    def attraction(self) -> list[NDArray[np.float64]]:
        """For each user the attraction probabilities of its candidates."""
        return [self._attraction_of(user) for user in range(len(self.candidates))]

    def _attraction_of(self, user: int) -> NDArray[np.float64]:
        pool = self.pool
        first, last = pool.starts[user], pool.starts[user] + pool.sizes[user]
        return (pool.user_attraction[user] + pool.values[0, first:last]).clip(0.0, 1.0)

    def at(self, user: int, items: ArrayLike) -> ClickModel:
        """Return the click model of a session in which a user sees L of the user's candidates,
        given by their item numbers.
        """
        row = self.candidates[user].tolist()
        columns = [row.index(item) for item in np.asarray(items).tolist()]
        others = [values[np.asarray(items)] for values in self.others.values()]
        return self._with_items([self._attraction_of(user)[columns], *others])

    def tasks(
        self, reward: str, cutoff: int | None, reference: ArrayLike | None
    ) -> list[CandidateTask]:
        """As `UserModel.tasks`: a single task, which draws candidates for every session."""
        if reference is not None:
            raise ValueError(
                "reference is a list, but candidates change in every session; leave reference out"
            )
        return [CandidateTask(self.base, self.pool, reward, cutoff, self.gain)]

    def knowledge(self, source: str, production: NDArray[np.int64] | None = None) -> Any:
        """As `UserModel.knowledge`."""
        if source == "browsing":
            return self.mean.browsing_weights()
        if source != "examination":
            return None
        weights = self.base.position_weights()
        if weights is None:  # if they depend on the candidates: those for equal candidates
            weights = self.mean.examination_probabilities(range(self.base.n_positions))
        return weights

    def _arguments(self) -> dict[str, Any]:
        """Return the arguments of the constructor besides the base model."""
        arguments = {
            "items": self.items,
            "users": self.users,
            "candidates": None if self._names_all else self.candidates,
            "theta": self.theta,
            "attraction": self.attraction if self.theta is None else None,
            "interactions": self.interactions if len(self.interactions) else None,
            "gain": self.gain,
            "held_out": self.held_out,
        }
        return {name: value for name, value in arguments.items() if value is not None} | self.others

    def to_dict(self) -> dict[str, Any]:
        arguments = {
            name: value.tolist() if isinstance(value, np.ndarray) else [r.tolist() for r in value]
            for name, value in self._arguments().items()
        }
        return {"model": self.name(), "base": self.base.to_dict(), **arguments}

    def with_positions(self, n_positions: int) -> ContextualModel:
        return ContextualModel(self.base.with_positions(n_positions), **self._arguments())

    def _with_items(self, values: Sequence[NDArray[np.float64]]) -> ClickModel:
        """Return the base model with the given item parameters, attraction first."""
        return self.base.with_items(**dict(zip(self.base.item_parameters(), values, strict=True)))


def _features(items: ArrayLike) -> NDArray[Any]:
    """Return features as floats, in a copy; read-only float32 is returned as it is."""
    is_single = isinstance(items, np.ndarray) and items.dtype == np.float32
    is_shared = is_single and not items.flags.writeable  # type: ignore[union-attr]
    features = as_numbers("items", items, (None, None), copy=not is_shared, allow_float32=True)
    features.flags.writeable = not is_single
    return features


def _linear_attraction(
    theta: NDArray[np.float64],
    user_features: NDArray[np.float64],
    items: NDArray[Any],
    entries: NDArray[np.int64],
    starts: NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the parts of ``θᵀ x`` that come from each user and from each entry of the pool.

    Raises:
        ValueError: the sum of a user's part and an entry's part is not a probability.
    """
    n_user_features = user_features.shape[1]
    user_attraction = weighted_sums(user_features, theta[:n_user_features]).copy()
    entry_attraction = weighted_sums(items, theta[n_user_features:])[entries]
    least = (user_attraction + np.minimum.reduceat(entry_attraction, starts)).min()
    most = (user_attraction + np.maximum.reduceat(entry_attraction, starts)).max()
    if least < -ROUNDING or most > 1 + ROUNDING:
        interval = f"from {least:g} to {most:g}"
        raise ValueError(
            f"attractions theta @ x range {interval}; expected probabilities from 0 to 1: scale "
            "theta or the features"
        )
    return user_attraction, entry_attraction


def _given_attraction(
    attraction: Sequence[ArrayLike], sizes: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the attraction of each entry of the pool, from the attractions of each user's
    candidates.
    """
    if len(attraction) != len(sizes):
        raise ValueError(f"attraction has {len(attraction)} entries; expected {len(sizes)}")
    return np.concatenate(
        [
            probabilities(f"attraction[{user}]", row, (int(sizes[user]),))
            for user, row in enumerate(attraction)
        ]
    )
