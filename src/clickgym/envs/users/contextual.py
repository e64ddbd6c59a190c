"""The class `ContextualModel` of users who see new candidates in every session.

Additional letters: d features, M users, and N items in the pool from which L candidates are drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.checks import as_integers, as_numbers, probabilities
from ...core.sums import weighted_sums
from ..click_models.click_model import ClickModel, click_model_of
from ..simulation.user_model import UserModel
from .contextual_features import largest_norm, squared_norms
from .contextual_kernels import CandidateTask, Pool

ROUNDING = 1e-9
"""The tolerance for norms and attractions that may exceed their bounds by rounding errors."""


class ContextualModel(UserModel):
    """Users who follow a click model, and see new candidates with features in every session.

    The user of each session is one of M users, drawn with equal probabilities. The L candidates for
    user i are drawn at random from the items listed for this user, such as the documents of a query
    or the films that a person rated. Candidate j has the features ``x = [U(i), V(j)]``. Users
    examine positions in the same way as users of the base model.

    Click law:
        In session t, candidate j has the features x = [U(i_t), V(j)] and the attraction α(i_t, j).
        With ``theta``, the attraction is

        ::

            α_t(j) = θᵀ x_{t,j}

        With these attractions, users examine and click like users of the base model.

    Args:
        base: the click model of the users, or its ``to_dict()``. The values of its item parameters
            do not matter, only their number L, because they are replaced in every session.
        items: ``(N, d_v)`` V, the features of the items. A float32 array stays float32, and is not
            copied if it is read-only, so large data sets need little memory.
        attraction: for each user, the attraction probabilities of the user's candidates.
        users: ``(M, d_u)`` U, the features of the users; by default, users have no features.
        candidates: for each user, the numbers of the possible candidates, distinct and at least L;
            by default, all N items.
        theta: ``(d,)`` θ*, with the entries for user features first; pass ``theta`` instead of
            ``attraction``.
        interactions: ``(Q, 2)`` pairs (a, b) of indices into ``[U(i), V(j)]``. Their products are
            additional features: agents see ``x = [U(i), V(j), z]``, where ``z_q = x_a x_b / x_0``
            for the q-th pair. The first feature x_0 must be the same positive number for all
            candidates. Interactions do not change attractions or clicks. They are computed in every
            session.
        gain: ``(N,)`` the gain of each item in the metric ``ndcg@k``, at least 0, such as
            ``2^grade - 1``; by default, the item's attraction. The gain has no influence on clicks
            and regret.
        held_out: for each held-out query, the numbers of its items. The metric ``held_out_ndcg@k``
            ranks these items by their features, and requires ``gain``.
        **others: ``(N,)`` the other item parameters of the base model, such as the satisfaction in
            a dynamic Bayesian network model.

    Attributes:
        mean: the click model of a session in which all candidates equal the mean candidate. For the
            click model of a particular session, call `at`.

    Raises:
        ValueError: an argument is invalid, the features of a candidate have a norm ``‖x‖₂ > 1``, or
            an attraction is not in [0, 1]; the message names the parameter and what was expected.

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

        # Check the users, the items, and the candidates of each user.
        self.items = _features(items)
        self.users = None if users is None else as_numbers("users", users, (None, None))
        self._names_all = candidates is None
        self.candidates = self._candidates_of_users(candidates)
        n_users, n_items = len(self.candidates), len(self.items)

        # Lay out the entries of the pool. Users without individual candidates and attractions share
        # one entry for each item, which saves an entry for each pair of user and item.
        shares_entries = candidates is None and attraction is None
        lists = self.candidates[:1] if shares_entries else self.candidates
        sizes = np.array([len(row) for row in lists])
        starts = np.cumsum(sizes) - sizes
        entries = np.concatenate(lists)

        # Check the features and their products.
        user_features = np.zeros((n_users, 0)) if self.users is None else self.users
        width = user_features.shape[1] + self.items.shape[1]
        pairs = np.zeros((0, 2), np.int64) if interactions is None else interactions
        self.interactions = as_integers(
            "interactions", pairs, (None, 2), 0, width, allow_empty=True
        ).copy()
        self._check_norms(user_features, entries, starts)

        # Compute the attractions and the other item parameters of the entries.
        self.theta = None if theta is None else as_numbers("theta", theta, (width,))
        if self.theta is not None and attraction is None:
            user_attraction, entry_attraction = _linear_attraction(
                self.theta, user_features, self.items, entries, starts
            )
        elif self.theta is None and attraction is not None:
            user_attraction = np.zeros(n_users)
            entry_attraction = _given_attraction(attraction, sizes)
        else:
            raise ValueError("expected exactly one of the arguments attraction and theta")
        self.others = {
            name: probabilities(name, others[name], (n_items,))
            for name in self.base.item_parameters()[1:]
        }
        other_values = [row[entries] for row in self.others.values()]

        # Check the arguments for metrics.
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
        """Check that the base model has an attraction, and that ``others`` contains exactly the
        base model's other item parameters.
        """
        names = self.base.item_parameters()
        if "attraction" not in names or {*names[1:]} != others.keys():
            missing = ", ".join(names[1:]) or "none"
            raise ValueError(
                f"a {self.base.kind} has the item parameters {', '.join(names)}; expected a "
                f"base model with attraction, and the additional arguments {missing}; got "
                f"{', '.join(others) or 'none'}"
            )

    def _check_held_out(self, held_out: Sequence[ArrayLike]) -> list[NDArray[np.int64]]:
        """Return the items of each held-out query, after checking them."""
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
        """Return the candidates of each user, after checking them; by default, all items."""
        n_users = None if self.users is None else len(self.users)
        if candidates is None:
            all_items = np.arange(len(self.items))
            self._check_candidates("items", all_items)
            return [all_items] * (n_users or 1)
        if n_users is not None and len(candidates) != n_users:
            raise ValueError(
                f"candidates has {len(candidates)} entries; expected {n_users}, one for each user"
            )
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
        """Check that the features of each user's candidates have a norm of at most 1, and that
        interactions can be divided by the first feature.
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
            shares_entries: whether all users share the same entries of the pool.
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
        """Return a deep copy that shares read-only float32 features with the original, because
        Gymnasium copies the arguments of an environment several times.
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
        """L, the number of candidates in a session."""
        return self.base.n_items

    @property
    def n_features(self) -> int:
        """d, the number of features that agents see for a candidate, including products."""
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
        """The attraction probabilities of each user's possible candidates."""
        return [self._attraction_of(user) for user in range(len(self.candidates))]

    def _attraction_of(self, user: int) -> NDArray[np.float64]:
        pool = self.pool
        first, last = pool.starts[user], pool.starts[user] + pool.sizes[user]
        return (pool.user_attraction[user] + pool.values[0, first:last]).clip(0.0, 1.0)

    def at(self, user: int, items: ArrayLike) -> ClickModel:
        """Return the click model of a particular session.

        Args:
            user: the number of the user.
            items: ``(L,)`` the item numbers of the session's candidates, all of them possible
                candidates of this user.

        Raises:
            ValueError: an item is not a possible candidate of this user.
        """
        row, items = self.candidates[user].tolist(), np.asarray(items)
        unknown = items[~np.isin(items, row)]
        if unknown.size:
            raise ValueError(
                f"item {unknown[0]} is not among the possible candidates of user {user}"
            )
        columns = [row.index(item) for item in items.tolist()]
        others = [values[items] for values in self.others.values()]
        return self._with_items([self._attraction_of(user)[columns], *others])

    def tasks(
        self, reward: str, cutoff: int | None, reference: ArrayLike | None
    ) -> list[CandidateTask]:
        """Return the only task, in a list (see `UserModel.tasks`). The task draws new candidates
        for every session.
        """
        if reference is not None:
            raise ValueError(
                "reference is a list, but candidates change in every session; leave reference out"
            )
        return [CandidateTask(self.base, self.pool, reward, cutoff, self.gain)]

    def knowledge(self, source: str, production: NDArray[np.int64] | None = None) -> Any:
        if source == "browsing":
            return self.mean.browsing_weights()
        if source != "examination":
            return None
        weights = self.base.position_weights()
        if weights is None:  # if they depend on the list, assume equal candidates
            weights = self.mean.examination_probabilities(range(self.base.n_positions))
        return weights

    def _arguments(self) -> dict[str, Any]:
        """Return the constructor's arguments except ``base`` and arguments that are None."""
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
        """Return the base model with new values of its item parameters, given in the order of
        `ClickModel.item_parameters`.
        """
        return self.base.with_items(**dict(zip(self.base.item_parameters(), values, strict=True)))


def _features(items: ArrayLike) -> NDArray[Any]:
    """Return a copy of the item features as floats; a read-only float32 array is not copied."""
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
    """Return the two parts of the attraction ``θᵀ x``: the share of each user's features, ``(M,)``,
    and the share of the item features in each entry of the pool, ``(E,)``.

    Raises:
        ValueError: the sum of a user's share and an entry's share is not a probability.
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
    """Check the attractions of each user's candidates, and return them as one array with an element
    for each entry of the pool.
    """
    if len(attraction) != len(sizes):
        raise ValueError(
            f"attraction has {len(attraction)} entries; expected {len(sizes)}, one for each user"
        )
    return np.concatenate(
        [
            probabilities(f"attraction[{user}]", row, (int(sizes[user]),))
            for user, row in enumerate(attraction)
        ]
    )
