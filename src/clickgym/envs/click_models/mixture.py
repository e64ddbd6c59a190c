"""The mixture of click models: its parameters, its kernels, and the class `MixtureModel`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.checks import as_numbers
from ...core.kernels import kernel
from ..simulation.task import CLICKS, REWARDS
from .click_model import ClickModel, CompositeModel, click_models_of, ranks_of
from .position_based import PositionBasedModel


class Parameters(NamedTuple):
    weights: NDArray[np.float64]  # w, (M,)
    thresholds: NDArray[np.float64]  # (M,) cumulative weights, which choose the kind of a user
    models: tuple[Any, ...]  # the parameters of each kind's click model


@cache
def make_sample_kernel(
    samples: tuple[Callable[..., int], ...], kind: int = 0
) -> Callable[..., int]:
    """Return the kernel that draws the kind of a user, among the kinds from ``kind`` on, and
    simulates the session with the kernel in ``samples`` for this kind.
    """
    sample_kind = samples[kind]

    @kernel
    def sample_last(parameters, ranking, uniforms, clicks, examined):
        return sample_kind(parameters.models[kind], ranking, uniforms[1:], clicks, examined)

    if kind == len(samples) - 1:
        return sample_last
    sample_others = make_sample_kernel(samples, kind + 1)

    @kernel
    def sample(parameters, ranking, uniforms, clicks, examined):
        if uniforms[0] < parameters.thresholds[kind]:
            return sample_last(parameters, ranking, uniforms, clicks, examined)
        return sample_others(parameters, ranking, uniforms, clicks, examined)

    return sample


@cache
def make_expected_kernel(
    expected: tuple[Callable[..., float], ...], kind: int = 0
) -> Callable[..., float]:
    """Return the kernel that computes ``Σ w_m E_m`` over the kinds m from ``kind`` on, where the
    kernel ``expected[m]`` computes the expected reward ``E_m``.
    """
    expected_kind = expected[kind]

    @kernel
    def weighted(parameters, ranking, reward, cutoff, scratch):
        value = expected_kind(parameters.models[kind], ranking, reward, cutoff, scratch)
        return parameters.weights[kind] * value

    if kind == len(expected) - 1:
        return weighted
    others = make_expected_kernel(expected, kind + 1)

    @kernel
    def total(parameters, ranking, reward, cutoff, scratch):
        value = weighted(parameters, ranking, reward, cutoff, scratch)
        return value + others(parameters, ranking, reward, cutoff, scratch)

    return total


class MixtureModel(CompositeModel, ClickModel):
    """Mixture of click models: each user belongs to one of several hidden kinds.

    In every session, the new user belongs to kind m with probability w_m, and clicks according to
    the click model of kind m. The kinds may differ in their tastes, which are the attractions of
    the items, or in their click laws, such as a position-based and a cascade model. The clicks of
    one session are dependent, even if each kind clicks independently at each position, because a
    click is evidence of the user's kind.

    ⚠ A session uses one more uniform random number than the click models of the kinds: the first
    number chooses the kind.

    ⚠ Sorting items by the mean attraction Σ w_m α_m gives the best list only if the reward is the
    number of clicks and all kinds are position-based models with the same examination. For
    ``any_click``, the sorted list can be wrong: with χ = (1, 1), attractions (.9, .9, 0) and (0, 0,
    .8) and equal weights, the sorted list earns .495, and the best list .85. In all other cases, a
    search finds the best list.

    Click law:
        ::

            P(c | R) = Σ_m w_m P_m(c | R)

    User:
        start → user of kind m: w_m
        user of kind m → a session of click model m: 1

    Args:
        models: the click model of each kind, or its ``to_dict()``; at least two click models, all
            with the same numbers of items and positions.
        weights: ``(M,)`` the probabilities w_m of the kinds, positive and with the sum 1.

    Raises:
        ValueError: an argument is invalid; the message names the entry and what was expected.

    Source:
        McLachlan, Peel, *Finite mixture models*, Wiley 2000, with click models as components.

    Example:
        >>> from clickgym.envs import CascadeModel
        >>> tastes = [CascadeModel([0.8, 0.1, 0.1], 1), CascadeModel([0.1, 0.1, 0.6], 1)]
        >>> model = MixtureModel(tastes, weights=[0.3, 0.7])
        >>> model.optimal_ranking(), round(model.expected_reward([2]), 12)
        (array([2]), 0.45)
    """

    title = "mixture of click models"
    behaviour = "each user belongs to one of several hidden kinds"
    paper = "McLachlan and Peel 2000"
    bibtex_keys = ["mixtures"]
    default_instance = "two-kinds"
    shapes: ClassVar = {}

    def __init__(
        self, models: Sequence[ClickModel | Mapping[str, Any]], weights: ArrayLike
    ) -> None:
        self.models = click_models_of(models, 2)
        shares = as_numbers("weights", weights, (len(self.models),))
        if shares.min() <= 0 or abs(shares.sum() - 1) > 1e-9:
            raise ValueError(
                f"weights is {shares.tolist()}; expected positive numbers that add up to 1"
            )
        thresholds = shares.cumsum()
        for array in (shares, thresholds):
            array.setflags(write=False)
        parameters = tuple(model.parameters for model in self.models)
        self.parameters = Parameters(shares, thresholds, parameters)
        self.n_positions = self.models[0].n_positions
        self.rewards = tuple(
            reward for reward in REWARDS if all(reward in model.rewards for model in self.models)
        )

    @property
    def n_uniforms(self) -> int:
        return 1 + super().n_uniforms

    @property
    def attraction(self) -> NDArray[np.float64]:
        """``(L,)`` mean attraction probability of each item over all users."""
        return self._mean([model.attraction for model in self.models])

    @property
    def sample_kernel(self) -> Callable[..., int]:  # type: ignore[override]
        return make_sample_kernel(tuple(model.sample_kernel for model in self.models))

    @property
    def expected_kernel(self) -> Callable[..., float]:  # type: ignore[override]
        return make_expected_kernel(tuple(model.expected_kernel for model in self.models))

    def position_weights(self) -> NDArray[np.float64] | None:
        """Return the examination probabilities by position, ``(K,)``, if they are the same for all
        kinds; otherwise return None.
        """
        return _shared([model.position_weights() for model in self.models])

    def browsing_weights(self) -> NDArray[np.float64] | None:
        """Return the examination probabilities by position and last click, ``(K, K)``, if they are
        the same for all kinds; otherwise return None.
        """
        return _shared([model.browsing_weights() for model in self.models])

    def to_dict(self) -> dict[str, Any]:
        models, weights = [model.to_dict() for model in self.models], self.parameters.weights
        return {"model": self.name(), "models": models, "weights": weights.tolist()}

    def _with_models(self, models: list[ClickModel]) -> Self:
        return type(self)(models, self.parameters.weights)

    def best_ranks(self, reward: int, cutoff: int) -> NDArray[np.int64] | None:
        examination = self.position_weights()
        same_law = all(type(model) is PositionBasedModel for model in self.models)
        if reward != CLICKS or not same_law or examination is None:
            return None
        # The reward is Σ_k χ_k Σ_m w_m α_m(d_k), so only the items' mean attractions matter.
        return ranks_of(examination[:cutoff])

    def _merits(self) -> NDArray[np.float64]:
        return self._mean([model._merits() for model in self.models])

    def _click_bounds(self) -> NDArray[np.float64]:
        return self._mean([model._click_bounds() for model in self.models])

    def _marginals(self, ranking: ArrayLike) -> NDArray[np.float64]:
        return self._mean([model._marginals(ranking) for model in self.models])

    def _mean(self, values: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return the mean of the kinds' values, weighted by the kinds' probabilities."""
        pairs = zip(self.parameters.weights, values, strict=True)
        return np.sum([weight * value for weight, value in pairs], axis=0)


def _shared(values: Sequence[NDArray[np.float64] | None]) -> NDArray[np.float64] | None:
    """Return the array that is the same for all kinds; None if the kinds' arrays differ."""
    first, *others = values
    if first is None or any(value is None or (value != first).any() for value in others):
        return None
    return first
