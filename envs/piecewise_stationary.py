"""Users who change: a click model per epoch."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.checks import check_count, integers
from .click_model import ClickModel, click_models_of
from .users import REWARDS


class PiecewiseStationaryModel(ClickModel):
    r"""Click models that follow one another: the users change abruptly at given steps.

    Each method of a click model has a further argument here: the step, which is the number of the
    session. Regret is measured against the best list of the epoch of that step (dynamic regret).

    Click law:
        Sessions t are counted from 0. In session t the users are those of epoch e(t), the last
        epoch that has started:

        $$P_t(c \mid R) = P_{e(t)}(c \mid R)$$

        Regret compares a list with the best list of that epoch:

        $$\text{regret}_t = \max_{R'} r_{e(t)}(R') - r_{e(t)}(R_t)$$

    Args:
        models: the click model of each epoch, or its ``to_dict()``, all over the same numbers of
            items and positions.
        starts: the first step of each epoch, counted from 0: increasing, the first of them 0.

    Raises:
        ValueError: naming the entry and what was expected.

    Source:
        Li, de Rijke, *Cascading non-stationary bandits: online learning to rank in the
            non-stationary cascade model*, IJCAI 2019, section 3.1.

    Example:
        >>> from clickgym.envs import CascadeModel
        >>> before, after = CascadeModel([0.5, 0.1], 1), CascadeModel([0.5, 0.9], 1)
        >>> model = PiecewiseStationaryModel([before, after], starts=[0, 100])
        >>> model.optimal_ranking(step=99), model.optimal_ranking(step=100)
        (array([0]), array([1]))
    """

    shapes: ClassVar = {}

    def __init__(self, models: Sequence[ClickModel | Mapping[str, Any]], starts: ArrayLike) -> None:
        self._epochs = click_models_of(models, 1)
        steps = integers("starts", starts, (len(self._epochs),))
        if steps[0] != 0 or np.any(steps[1:] <= steps[:-1]):
            expected = "expected increasing steps, the first of them 0"
            raise ValueError(f"starts is {steps.tolist()}; {expected}")
        self._starts = [int(step) for step in steps]
        self.rewards = tuple(
            kind for kind in REWARDS if all(kind in model.rewards for model in self._epochs)
        )
        self.parameters = self._epochs[0].parameters
        self.n_positions = self._epochs[0].n_positions

    @property
    def n_items(self) -> int:
        return self._epochs[0].n_items

    @property
    def attraction(self) -> NDArray[np.float64]:
        """Attraction probability of each item in the first epoch, ``(L,)``."""
        return self._epochs[0].attraction

    @property
    def epochs(self) -> Sequence[ClickModel]:
        return self._epochs

    @property
    def starts(self) -> Sequence[int]:
        return self._starts

    @property
    def kind(self) -> str:
        kinds = dict.fromkeys(model.kind for model in self._epochs)
        return f"{self.name()} of {' and '.join(kinds)}"

    def at(self, step: int) -> ClickModel:
        """The click model in force at a step, counted from 0."""
        check_count("step", step, 0)
        return self._epochs[bisect.bisect_right(self._starts, step) - 1]

    def sample(
        self, ranking: ArrayLike, rng: np.random.Generator, step: int = 0
    ) -> NDArray[np.int8]:
        """As `ClickModel.sample`, at a step."""
        return self.at(step).sample(ranking, rng)

    def click_probabilities(self, ranking: ArrayLike, step: int = 0) -> NDArray[np.float64]:
        """As `ClickModel.click_probabilities`, at a step."""
        return self.at(step).click_probabilities(ranking)

    def examination_probabilities(self, ranking: ArrayLike, step: int = 0) -> NDArray[np.float64]:
        """As `ClickModel.examination_probabilities`, at a step."""
        return self.at(step).examination_probabilities(ranking)

    def expected_reward(
        self, ranking: ArrayLike, reward: str = "clicks", cutoff: int | None = None, step: int = 0
    ) -> float:
        """As `ClickModel.expected_reward`, at a step."""
        return self.at(step).expected_reward(ranking, reward, cutoff)

    def optimal_ranking(
        self, reward: str = "clicks", cutoff: int | None = None, step: int = 0
    ) -> NDArray[np.int64]:
        """As `ClickModel.optimal_ranking`, at a step."""
        return self.at(step).optimal_ranking(reward, cutoff)

    def to_dict(self) -> dict[str, Any]:
        models = [model.to_dict() for model in self._epochs]
        return {"model": self.name(), "models": models, "starts": list(self._starts)}

    def relabelled(self, order: NDArray[np.int64]) -> Self:
        return type(self)([model.relabelled(order) for model in self._epochs], self._starts)

    def with_positions(self, n_positions: int) -> Self:
        models = [model.with_positions(n_positions) for model in self._epochs]
        return type(self)(models, self._starts)
