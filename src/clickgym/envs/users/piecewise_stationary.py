"""The class `PiecewiseStationaryModel` of users who change: a click model for each epoch."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.checks import as_integers, check_count
from ..click_models.click_model import ClickModel, CompositeModel, click_models_of
from ..simulation.task import REWARDS, ClickTask


class PiecewiseStationaryModel(CompositeModel):
    """Sequence of click models: users whose behaviour changes abruptly at given steps.

    A step is the number of a session. `at` returns the click model at a step. Regret is measured
    against the best list of the current epoch (dynamic regret).

    Click law:
        Sessions t are counted from 0. In session t, users follow the click model of epoch e(t), the
        last epoch that has started:

        ::

            P_t(c | R) = P_{e(t)}(c | R)

        Regret compares a list with the best list of epoch e(t):

        ::

            regret_t = max over R' of r_{e(t)}(R') - r_{e(t)}(R_t)

    Args:
        models: the click model of each epoch, or its ``to_dict()``; all click models have the same
            numbers of items and positions.
        starts: the first step of each epoch, counted from 0, in increasing order; the first entry
            is 0.

    Attributes:
        epochs: the click models.
        starts: the first step of each epoch.

    Raises:
        ValueError: an argument is invalid; the message names the entry and what was expected.

    Source:
        Li, de Rijke, *Cascading non-stationary bandits: online learning to rank in the
            non-stationary cascade model*, IJCAI 2019, section 3.1.

    Example:
        >>> from clickgym.envs import CascadeModel
        >>> before, after = CascadeModel([0.5, 0.1], 1), CascadeModel([0.5, 0.9], 1)
        >>> model = PiecewiseStationaryModel([before, after], starts=[0, 100])
        >>> model.at(99).optimal_ranking(), model.at(100).optimal_ranking()
        (array([0]), array([1]))
    """

    title = "with parameters that change abruptly at given steps"
    bibtex_keys = ["cascadingnonstationary"]
    default_instance = "li2019-switching"
    max_episode_steps = 100_000
    iid_sessions = True

    def __init__(self, models: Sequence[ClickModel | Mapping[str, Any]], starts: ArrayLike) -> None:
        self.models = self.epochs = click_models_of(models, 1)
        steps = as_integers("starts", starts, (len(self.epochs),), allow_floats=True)
        if steps[0] != 0 or np.any(steps[1:] <= steps[:-1]):
            expected = "expected increasing steps, the first of them 0"
            raise ValueError(f"starts is {steps.tolist()}; {expected}")
        self.starts = steps.tolist()
        self.rewards = tuple(
            kind for kind in REWARDS if all(kind in model.rewards for model in self.epochs)
        )
        self.n_positions = self.epochs[0].n_positions

    @property
    def kind(self) -> str:
        kinds = dict.fromkeys(model.kind for model in self.epochs)
        return f"{self.name()} of {' and '.join(kinds)}"

    def at(self, step: int) -> ClickModel:
        """Return the click model that users follow at a step, counted from 0."""
        check_count("step", step, 0)
        return self.epochs[bisect.bisect_right(self.starts, step) - 1]

    def tasks(
        self, reward: str, cutoff: int | None, reference: ArrayLike | None
    ) -> list[ClickTask]:
        """Return one task for each epoch (see `UserModel.tasks`)."""
        return [task for model in self.epochs for task in model.tasks(reward, cutoff, reference)]

    def knowledge(self, source: str, production: NDArray[np.int64] | None = None) -> Any:
        """Return what an agent may know about the users of the first epoch (see
        `UserModel.knowledge`).
        """
        return self.epochs[0].knowledge(source, production)

    def to_dict(self) -> dict[str, Any]:
        models = [model.to_dict() for model in self.epochs]
        return {"model": self.name(), "models": models, "starts": list(self.starts)}

    def _with_models(self, models: list[ClickModel]) -> Self:
        return type(self)(models, self.starts)
