"""Agents that take item values into their order, where a click on item i earns w(i) instead of 1.

Values are known: an agent is given them (``item_values=``), and learns attraction as without. Where clicks stop users (the
cascade model) the best list for given attractions follows from a scan: items by decreasing value, chosen by dynamic
programming. Elsewhere items are ranked by value times index. Each agent is a subclass with another `rank_kernel`, made by the
constructor of the agent without values; so the kernels of agents without values do not know of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.checks import check_at_least, check_flag, check_item_values, check_within, numbers
from ..core.kernels import inner, kernel, specialise
from ..core.state import Floats, joined
from . import cascade, kl_ucb, position_based, position_based_ts
from .agent import CompiledAgent, checked_features
from .cascade import bound_means as bound_ucb1
from .cascade import draw_means
from .kernels import count_session, exploration, kl_upper, rank_available, rank_by_draw, rank_by_index, sort_stably
from .linear import LinearTS, PBMLinUCB, rank_by_posterior, rank_optimistic, show_largest, update_ridge
from .position_based import bound_means as bound_pbm_ucb
from .position_based_ts import draw_posterior
from .templates import largest, put_by_position

# Left open in the templates below; `specialise` binds them to an agent's kernels.
rank: Callable[..., None]
score: Callable[..., Any]
update: Callable[..., None]


class Values(NamedTuple):
    item_values: Floats  # (L,) w


class Plan(NamedTuple):
    item_values: Floats  # (L,) w
    plan: Annotated[Floats, "L+1 K+1"]  # what the best list of m of the items order[i:] is worth


UCB1Plan = joined("UCB1Plan", cascade.Bounds, Plan)
KLUCBPlan = joined("KLUCBPlan", kl_ucb.LadderedState, Plan)
TSPlan = joined("TSPlan", cascade.TSState, Plan)
PBMUCBValues = joined("PBMUCBValues", position_based.PBMUCBState, Values)
PBMTSValues = joined("PBMTSValues", position_based_ts.PBMTSState, Values)


class ByValue(CompiledAgent):
    """Base class of the agents by value; a subclass names the agent without values after it."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if len(cls.__bases__) > 1:
            cls.__bases__[1].by_value = cls  # type: ignore[attr-defined]

    def __init__(self, n_items: int, n_positions: int, *, item_values: ArrayLike, **others: Any) -> None:
        self._item_values = self._checked_values(item_values)
        super().__init__(n_items, n_positions, **others)
        self.hyperparameters["item_values"] = self._item_values

    def _checked_values(self, item_values: Any) -> Any:
        return check_item_values(item_values)

    def _first_values(self) -> dict[str, Any]:
        check_item_values(self._item_values, self.n_items)
        return super()._first_values() | {"item_values": self._item_values.copy()}

    def set_item_value(self, item: int, value: float) -> None:
        """What a click on an item earns from now on, as when its id belongs to another item (`replace`).

        Args:
            item: the id.
            value: at least 0.
        """
        item = check_within("item", item, 0, self.n_items - 1, "n_items - 1 = ")
        self.state.item_values[item] = check_at_least("value", value, 0)

    def _best_by(self, estimates: NDArray[np.float64]) -> NDArray[np.int64]:
        return super()._best_by(estimates * self.state.item_values)


# ------------------------------------------------------------------------------------------------------- users who scan


@kernel
def plan_list(values, index, order, plan, ranking):  # type: ignore[no-untyped-def]
    """Choose from items in decreasing order of value the list of most expected value, for attractions min(index, 1)."""
    n_items, n_chosen = len(order), len(ranking)
    plan[n_items, 0] = 0.0
    for i in range(n_items - 1, -1, -1):
        attraction = min(index[order[i]], 1.0)
        plan[i, 0] = 0.0
        for m in range(1, min(n_chosen, n_items - i) + 1):
            plan[i, m] = attraction * values[order[i]] + (1.0 - attraction) * plan[i + 1, m - 1]
            if m < n_items - i:  # else all that are left are needed
                plan[i, m] = max(plan[i, m], plan[i + 1, m])
    i = 0
    for k in range(n_chosen):
        m = n_chosen - k
        while m < n_items - i:
            attraction = min(index[order[i]], 1.0)
            if plan[i, m] <= attraction * values[order[i]] + (1.0 - attraction) * plan[i + 1, m - 1]:
                break
            i += 1
        ranking[k] = order[i]
        i += 1


def _rank_plan(state, rng, ranking):  # type: ignore[no-untyped-def]
    index, order = score(state, rng)
    rank_by_index(index, order, rng, len(order))  # items of equal values by index, ties of both in random order
    sort_stably(state.item_values, order)
    plan_list(state.item_values, index, order, state.plan, ranking)


def _rank_plan_available(state, rng, available, ranking):  # type: ignore[no-untyped-def]
    index, order = score(state, rng)
    present = order[: available.sum()]
    rank_available(index, order, rng, available, len(present))
    sort_stably(state.item_values, present)
    plan_list(state.item_values, index, present, state.plan, ranking)


def planned(score: Callable[..., Any]) -> tuple[Callable[..., None], Callable[..., None]]:
    """As `largest`, but of the list of most expected value."""
    return specialise(_rank_plan, score=score), specialise(_rank_plan_available, score=score)


@inner
def bound_klucb(state, rng):  # type: ignore[no-untyped-def]
    count_session(state)
    bound = exploration(state.t[0], state.c)
    for item in range(len(state.indices)):
        n = state.examined[item]
        state.indices[item] = kl_upper(state.clicks[item] / n, bound / n) if n > 0 else np.inf
    return state.indices, state.order


class _Scanning(ByValue):
    """Base class of the cascade agents by value: the list of most expected value if each attraction were its index.

    ⚠ An index above 1, also that of an item never examined, counts as 1: no attraction is larger. So such an item is not put
    first; of two it is the one of more value, and an item of value 0 need never be examined.
    """

    def _best_by(self, estimates: NDArray[np.float64]) -> NDArray[np.int64]:
        values = self.state.item_values
        ranking, order = np.empty(self.n_positions, np.int64), np.lexsort((-estimates, -values))
        plan_list(values, estimates, order, np.empty((self.n_items + 1, self.n_positions + 1)), ranking)
        return ranking


class CascadeUCB1ByValue(_Scanning, cascade.CascadeUCB1):
    """`CascadeUCB1` that maximises the values of clicks; made by ``CascadeUCB1(..., item_values=...)``."""

    state_type = UCB1Plan
    rank_kernel, rank_available_kernel = planned(bound_ucb1)


class CascadeKLUCBByValue(_Scanning, kl_ucb.CascadeKLUCB):
    """`CascadeKLUCB` that maximises the values of clicks; made by ``CascadeKLUCB(..., item_values=...)``."""

    state_type = KLUCBPlan
    rank_kernel, rank_available_kernel = planned(bound_klucb)


class CascadeTSByValue(_Scanning, cascade.CascadeTS):
    """`CascadeTS` that maximises the values of clicks; made by ``CascadeTS(..., item_values=...)``."""

    state_type = TSPlan
    rank_kernel, rank_available_kernel = planned(draw_means)


# ------------------------------------------------------------------------------------------------------ known examination


@inner
def bound_values(state, rng):  # type: ignore[no-untyped-def]
    index, order = bound_pbm_ucb(state, rng)
    for item in range(len(index)):
        value = state.item_values[item]
        index[item] = value * index[item] if value > 0.0 else 0.0  # an index may be infinite
    return index, order


@inner
def draw_values(state, rng):  # type: ignore[no-untyped-def]
    for item in range(len(state.draws)):
        state.draws[item] = state.item_values[item] * draw_posterior(state, item, rng)
    return state.draws, state.order


class PBMUCBByValue(ByValue, position_based.PBMUCB):
    """`PBMUCB` by value times index; made by ``PBMUCB(..., item_values=...)``. Items never shown rank first, but those of value
    0, whose index counts as 0."""

    state_type = PBMUCBValues
    rank_kernel, rank_available_kernel = largest(bound_values, put=put_by_position)


class PBMTSByValue(ByValue, position_based_ts.PBMTS):
    """`PBMTS` by value times draw; made by ``PBMTS(..., item_values=...)``."""

    state_type = PBMTSValues
    rank_kernel, rank_available_kernel = largest(draw_values, rank_by_draw, put_by_position)


# ---------------------------------------------------------------------------------------------------------------- features


def _rank_by_value(state, rng, features, ranking):  # type: ignore[no-untyped-def]
    d = len(state.theta)
    rank(state, rng, features[:, :d], ranking)  # which leaves the indices of attraction
    for a in range(len(features)):
        state.indices[a] = max(state.indices[a], 0.0) * features[a, d]
    show_largest(state.indices, state.order, rng, ranking)


def _update_attraction(state, features, ranking, clicks):  # type: ignore[no-untyped-def]
    update(state, features[:, : len(state.theta)], ranking, clicks)


class _ByObservedValue(ByValue):
    """Base class of the agents by features and value, made with ``item_values=True``: the values of the candidates are part of
    the observation, ``"values"``.

    ⚠ An index of attraction below 0 counts as 0. Kernels get ``(L, d + 1)`` features, the last of them the value. Ties are
    broken at random twice, first among equal indices of attraction, of which nothing is shown.
    """

    observes_values = True
    update_kernel = specialise(_update_attraction, update=update_ridge)

    def _checked_values(self, item_values: Any) -> Any:
        if not check_flag("item_values", item_values):
            raise ValueError("item_values is False; expected True, or no item_values")
        return True

    def _first_values(self) -> dict[str, Any]:
        return super(ByValue, self)._first_values()

    def _seen(self, observation: Any) -> tuple[NDArray[Any], ...]:
        (features,) = super()._seen(observation)
        if "values" not in observation:
            raise ValueError(f"{type(self).__name__} needs an observation with 'values'")
        return (np.column_stack([features, numbers("values", observation["values"], (self.n_items,), 0.0)]),)

    def best(self, features: ArrayLike, values: ArrayLike = 1.0) -> NDArray[np.int64]:  # type: ignore[override]
        """As `ContextualAgent.best`, by value times attraction for the ``(n,)`` values of the candidates."""
        attraction = checked_features(features, (None, self.hyperparameters["n_features"])) @ self.state.theta
        worth = np.maximum(attraction, 0.0) * numbers("values", values, (len(attraction),), 0.0)
        return np.argsort(-worth, kind="stable")

    def _sessions_of(self, log: Any) -> tuple[Callable[..., None], tuple[NDArray[Any], ...]]:
        learn, (features, *others) = super()._sessions_of(log)
        return learn, (np.pad(features, ((0, 0), (0, 0), (0, 1))), *others)  # clicks are learned without values


class LinearTSByValue(_ByObservedValue, LinearTS):
    """`LinearTS` by value times draw; made by ``LinearTS(..., item_values=True)``."""

    rank_kernel = specialise(_rank_by_value, rank=rank_by_posterior)


class PBMLinUCBByValue(_ByObservedValue, PBMLinUCB):
    """`PBMLinUCB` by value times index; made by ``PBMLinUCB(..., item_values=True)``."""

    rank_kernel = specialise(_rank_by_value, rank=rank_optimistic)
