"""Click models with new candidates in every session, whose attraction is linear in features.

Letters as in `clickgym.envs.contextual.model`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...core.checks import numbers, probabilities
from ...core.sums import weighted_sums
from ..click_model import ClickModel
from .catalogue import ROUNDING, Catalogue
from .model import ContextualModel, base_of


class LinearModel(ContextualModel):
    r"""A `ContextualModel` in which attraction is a linear function of the features.

    Click law:
        In session t candidate j has the features x = [U(i_t), V(j)] and the attraction

        $$α_t(j) = {θ^*}^\top x_{t,j}$$

        Users then examine and click as users of the base model with these attractions.

    Args:
        base: the click model of the users, or its ``to_dict()``.
        theta: ``(d,)`` θ*, the users' part first.
        items: ``(N, d_v)`` V, the features of the items. A float32 array stays one, and is not
            copied if it is read-only: large sets need little memory.
        users: ``(M, d_u)`` U, the features of the users; None: users have no features.
        candidates: for each user the numbers of its possible candidates, distinct, at least L;
            None: all N items.
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
        base = base_of(base)
        catalogue = Catalogue(base.n_items, items, users, candidates)
        self.others = {
            name: probabilities(name, others[name], (len(catalogue.items),))
            for name in self.other_parameters(base, others)
        }
        self.theta = numbers("theta", theta, (None,))
        if len(self.theta) != catalogue.n_features:
            expected = f"expected {catalogue.n_features}, one for each feature of users and items"
            raise ValueError(f"theta has {len(self.theta)} entries; {expected}")
        n_user_features = catalogue.users.shape[1]
        by_user = weighted_sums(catalogue.users, self.theta[:n_user_features])
        by_item = weighted_sums(catalogue.items, self.theta[n_user_features:])
        if candidates is None:  # two vectors instead of M × N sums, which are made when drawn
            least, most = by_user.min() + by_item.min(), by_user.max() + by_item.max()
            attraction, user_attraction = by_item, by_user
        else:
            sums = np.repeat(by_user, catalogue.sizes) + by_item[catalogue.entries]
            least, most = sums.min(), sums.max()
            attraction, user_attraction = sums.clip(0.0, 1.0), None
        if least < -ROUNDING or most > 1 + ROUNDING:
            ends = f"from {least:g} to {most:g}"
            raise ValueError(f"attractions theta @ x range {ends}; expected probabilities")
        values = [attraction, *(row[catalogue.entries] for row in self.others.values())]
        super().__init__(base, catalogue, values, user_attraction=user_attraction)

    def at(self, features: ArrayLike, **others: ArrayLike) -> ClickModel:
        """Return the click model of a session whose candidates have these ``(L, d)`` features and
        ``(L,)`` other item parameters.
        """
        rows = numbers("features", features, (self.n_items, self.n_features))
        return self._with_items(
            [
                weighted_sums(rows, self.theta),
                *(others[name] for name in self.other_parameters(self.base, others)),
            ]
        )

    def _arguments(self) -> dict[str, Any]:
        return super()._arguments() | {"theta": self.theta} | self.others
