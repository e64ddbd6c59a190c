"""Click models with new candidates in every session, whose attraction is a label of user and item.

Letters as in `clickgym.envs.contextual.model`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.checks import check_count, integers, numbers, probabilities
from ..click_model import ClickModel
from .catalogue import ROUNDING, Catalogue
from .interactions import largest_norm
from .model import NO_PAIRS, ContextualModel, base_of


class LabelledModel(ContextualModel):
    """A `ContextualModel` with an attraction for each user and candidate, for example from
    relevance labels; it need not be linear.

    Args:
        base, items, users, candidates: as in `LinearModel`; ``candidates`` is required.
        attraction: for each user the attraction probabilities of its candidates.
        interactions: ``(Q, 2)`` pairs (a, b) of indices into ``[U(i), V(j)]``, whose products are
            additional features: agents see ``x = [U(i), V(j), z]``, where ``z_q = x_a x_b / x_0``
            for the q-th pair. The first feature x_0 must be a positive constant c, so that x is c
            times ``[1, u, v, u_a v_b, ...]``. Clicks and attractions do not change. Products are
            computed in every session.
        gain: ``(N,)`` the gain of each item in the metric ``ndcg@k``, from 0, such as ``2^grade -
            1``; None: its attraction. Neither clicks nor regret depend on it.
        held_out: for each held-out query the numbers of its items, which are candidates of no user.
            The metric ``held_out_ndcg@k`` ranks them by their features. It needs ``gain``, and
            neither ``users`` nor ``interactions``. None: no such queries.
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
    held_out: list[NDArray[np.int64]] | None = None

    def __init__(
        self,
        base: ClickModel | Mapping[str, Any],
        candidates: Sequence[ArrayLike],
        attraction: Sequence[ArrayLike],
        items: ArrayLike,
        users: ArrayLike | None = None,
        interactions: ArrayLike | None = None,
        gain: ArrayLike | None = None,
        held_out: Sequence[ArrayLike] | None = None,
        **others: Sequence[ArrayLike],
    ) -> None:
        base = base_of(base)
        catalogue = Catalogue(base.n_items, items, users, candidates)
        self.other_parameters(base, others)
        self.labels = {
            name: _checked_labels(name, labels, catalogue.sizes.tolist())
            for name, labels in {"attraction": attraction, **others}.items()
        }
        pairs = _checked_pairs(interactions, catalogue)
        if gain is not None:
            gain = numbers("gain", gain, (len(catalogue.items),), 0.0, expected="a number from 0")
        if held_out is not None:
            if gain is None or users is not None or len(pairs):
                raise ValueError("held_out needs a gain, and neither users nor interactions")
            self.held_out = _checked_queries(held_out, gain)
        values = [np.concatenate(self.labels[name]) for name in base.item_parameters()]
        super().__init__(base, catalogue, values, interactions=pairs, gain=gain)

    @property
    def attractions(self) -> list[NDArray[np.float64]]:
        """The attraction probabilities of each user's candidates."""
        return self.labels["attraction"]

    def at(self, user: int, items: ArrayLike) -> ClickModel:
        """Return the click model of a session of a user with L of its candidates, by their item
        numbers.
        """
        user = check_count("user", user, 0, len(self.candidates) - 1)
        candidates = integers("items", items, (self.n_items,), 0, len(self.items))
        if not np.isin(candidates, self.candidates[user]).all():
            raise ValueError(f"items are {items!r}; expected {self.n_items} of candidates[{user}]")
        order = np.argsort(self.candidates[user])
        places = order[np.searchsorted(self.candidates[user][order], candidates)]
        return self._with_items(
            [self.labels[name][user][places] for name in self.base.item_parameters()]
        )

    def _arguments(self) -> dict[str, Any]:
        optional = {"gain": self.gain, "held_out": self.held_out}
        given = {name: value for name, value in optional.items() if value is not None}
        pairs = self.interactions if len(self.interactions) else None
        return super()._arguments() | self.labels | given | {"interactions": pairs}


def _checked_labels(
    name: str, labels: Sequence[ArrayLike], sizes: Sequence[int]
) -> list[NDArray[np.float64]]:
    """Return the labels of each user's candidates, of which ``sizes`` are the numbers."""
    if len(labels) != len(sizes):
        expected = f"expected {len(sizes)}, as in candidates"
        raise ValueError(f"{name} has {len(labels)} entries; {expected}")
    rows = enumerate(zip(labels, sizes, strict=True))
    return [probabilities(f"{name}[{user}]", row, (size,)) for user, (row, size) in rows]


def _checked_queries(
    queries: Sequence[ArrayLike], gain: NDArray[np.float64]
) -> list[NDArray[np.int64]]:
    """Return the item numbers of held-out queries, one of which has an item of some gain."""
    checked = [
        integers(f"held_out[{query}]", items, (None,), 0, len(gain)).copy()
        for query, items in enumerate(queries)
    ]
    if not any(gain[items].any() for items in checked):
        raise ValueError("no query of held_out has an item with a gain above 0")
    return checked


def _checked_pairs(interactions: ArrayLike | None, catalogue: Catalogue) -> NDArray[np.int64]:
    """Return the pairs of features whose products are additional features."""
    if interactions is None or not len(np.atleast_1d(interactions)):
        return NO_PAIRS
    users, items = catalogue.users, catalogue.items
    pairs = integers("interactions", interactions, (None, 2), 0, catalogue.n_features).copy()
    first = (users if users.shape[1] else items)[:, 0]
    if first[0] <= 0 or np.ptp(first) > 0:
        ends = f"from {first.min():g} to {first.max():g}"
        expected = "interactions require the same positive number for all"
        raise ValueError(f"the first feature ranges {ends}; {expected}")
    norm = largest_norm(users, items, pairs, catalogue.candidates)
    if norm > 1 + ROUNDING:
        of = "the features of some user and item, products included,"
        raise ValueError(f"{of} have the norm {norm:g}; expected at most 1")
    return pairs
