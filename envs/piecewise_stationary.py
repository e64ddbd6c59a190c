"""Users who change: a click model per epoch, and the non-stationary environments."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .cascade import CascadeModel
from .click_model import REWARDS, ClickModel
from .dependent_click import DependentClickModel
from .dynamic_bayesian import DynamicBayesianModel
from .position_based import PositionBasedModel
from .rank_env import RankEnv, RankVectorEnv
from .user_browsing import UserBrowsingModel

__all__ = ["NON_STATIONARY", "PiecewiseStationaryModel"]


class PiecewiseStationaryModel(ClickModel):
    """Click models that follow one another: users who change abruptly at given steps.

    The methods of a click model take the step at which they are asked; regret is against the optimum of that step's epoch
    (dynamic regret).

    Args:
        models: the click model of each epoch, or its ``to_dict()``; all over the same numbers of items and positions.
        starts: the first step of each epoch, counted from 0: increasing, the first of them 0.

    Raises:
        ValueError: naming the entry and what was expected.

    Source: Li and de Rijke 2019, section 3.1.

    Example:
        >>> from clickgym.envs import CascadeModel
        >>> model = PiecewiseStationaryModel([CascadeModel([0.5, 0.1], 1), CascadeModel([0.5, 0.9], 1)], starts=[0, 100])
        >>> model.optimal_ranking(step=99), model.optimal_ranking(step=100)
        (array([0]), array([1]))
    """

    def __init__(self, models: Sequence[ClickModel | Mapping[str, Any]], starts: ArrayLike) -> None:
        self._epochs = [model if isinstance(model, ClickModel) else ClickModel.from_dict(model) for model in models]
        if not self._epochs:
            raise ValueError("models is empty; expected at least one click model")
        steps = np.asarray(starts)
        if steps.shape != (len(self._epochs),) or steps.dtype.kind not in "iu":
            raise ValueError(f"starts is {starts!r}; expected one integer for each of the {len(self._epochs)} models")
        if steps[0] != 0 or np.any(steps[1:] <= steps[:-1]):
            raise ValueError(f"starts is {steps.tolist()}; expected increasing steps, the first of them 0")
        first = self._epochs[0]
        for number, model in enumerate(self._epochs):
            if isinstance(model, PiecewiseStationaryModel):
                raise ValueError(f"models[{number}] is itself piecewise-stationary; expected a stationary model")
            if (model.n_items, model.n_positions) != (first.n_items, first.n_positions):
                raise ValueError(f"models[{number}] is {model}; expected n_items and n_positions of models[0], {first}")
        self._starts = [int(step) for step in steps]
        self.rewards = tuple(kind for kind in REWARDS if all(kind in model.rewards for model in self._epochs))
        self.parameters = first.parameters
        self.n_positions = first.n_positions

    @property
    def epochs(self) -> Sequence[ClickModel]:
        return self._epochs

    @property
    def starts(self) -> Sequence[int]:
        return self._starts

    @property
    def kind(self) -> str:
        return "PiecewiseStationaryModel of " + " and ".join(dict.fromkeys(model.kind for model in self._epochs))

    def at(self, step: int) -> ClickModel:
        """The click model in force at a step, counted from 0."""
        if step < 0:
            raise ValueError(f"step is {step}; expected an integer from 0")
        return self._epochs[bisect.bisect_right(self._starts, step) - 1]

    def sample(self, ranking: ArrayLike, rng: np.random.Generator, step: int = 0) -> NDArray[np.int8]:
        """As `ClickModel.sample`, at a step."""
        return self.at(step).sample(ranking, rng)

    def click_probabilities(self, ranking: ArrayLike, step: int = 0) -> NDArray[np.float64]:
        """As `ClickModel.click_probabilities`, at a step."""
        return self.at(step).click_probabilities(ranking)

    def examination_probabilities(self, ranking: ArrayLike, step: int = 0) -> NDArray[np.float64]:
        """As `ClickModel.examination_probabilities`, at a step."""
        return self.at(step).examination_probabilities(ranking)

    def expected_reward(self, ranking: ArrayLike, reward: str = "clicks", cutoff: int | None = None, step: int = 0) -> float:
        """As `ClickModel.expected_reward`, at a step."""
        return self.at(step).expected_reward(ranking, reward, cutoff)

    def optimal_ranking(self, reward: str = "clicks", cutoff: int | None = None, step: int = 0) -> NDArray[np.int64]:
        """As `ClickModel.optimal_ranking`, at a step."""
        return self.at(step).optimal_ranking(reward, cutoff)

    def to_dict(self) -> dict[str, Any]:
        return {
            "model": "PiecewiseStationaryModel",
            "models": [model.to_dict() for model in self._epochs],
            "starts": list(self._starts),
        }

    def with_positions(self, n_positions: int) -> PiecewiseStationaryModel:
        return PiecewiseStationaryModel([model.with_positions(n_positions) for model in self._epochs], self._starts)


_PAGE = """
    ## Description

    Rank search results for users of the **{name}** with parameters that change abruptly, at given steps. Every step is one
    session with a new user; the stream of sessions never ends by itself. Regret is dynamic: against the best list for the users
    of that step. `reset` starts the clock, and with it the changes, anew.

    {{interface}} Nothing else tells that the users have changed.

    ## Arguments

    ```python
    >>> import gymnasium as gym, clickgym
    >>> env = gym.make("{id}", instance="abrupt:n_items=4,n_positions=2,n_epochs=2,length=1")
    >>> observation, info = env.reset(seed=0)
    >>> before = info["optimal_reward"]
    >>> observation, reward, terminated, truncated, info = env.step([0, 1])
    >>> observation, reward, terminated, truncated, info = env.step([0, 1])
    >>> info["optimal_reward"] != before
    True

    ```

    | Parameter | Type | Default | Description |
    |---|---|---|---|
    | `models` | sequence of click models or of their `to_dict()` | of the instance | the {model} of each epoch |
    | `starts` | ints | of the instance | the first step of each epoch, counted from 0 |
    {{arguments}}

    ## Vectorized environment

    {{vectorized}}

    ## References

    - C. Li, M. de Rijke. *Cascading non-stationary bandits: online learning to rank in the non-stationary cascade model.* IJCAI
      2019.
    - The model itself: see `{stationary}`.

    ## Version History

    - v0: initial version.
    """


def _non_stationary(prefix: str, name: str, model: type[ClickModel]) -> tuple[type[RankEnv], type[RankVectorEnv]]:
    """The scalar and the vector environment of users of one click model who change."""
    page = _PAGE.format(id=f"NonStationary{prefix}Rank-v0", name=name, model=model.__name__, stationary=f"{prefix}Rank-v0")
    shared = {"model_class": PiecewiseStationaryModel, "kind": f"PiecewiseStationaryModel of {model.__name__}"}
    shared["__module__"] = __name__
    scalar = f"NonStationary{prefix}RankEnv"
    vector = f"NonStationary{prefix}RankVectorEnv"
    return (
        type(scalar, (RankEnv,), {**shared, "__doc__": page}),
        type(vector, (RankVectorEnv,), {**shared, "__doc__": f"Many independent streams of `{scalar}`, stepped together."}),
    )


NON_STATIONARY: dict[str, tuple[type[RankEnv], type[RankVectorEnv]]] = {
    f"NonStationary{prefix}Rank-v0": _non_stationary(prefix, name, model)
    for prefix, name, model in (
        ("CM", "cascade model", CascadeModel),
        ("PBM", "position-based model", PositionBasedModel),
        ("DCM", "dependent click model", DependentClickModel),
        ("UBM", "user browsing model", UserBrowsingModel),
        ("DBN", "dynamic Bayesian network model", DynamicBayesianModel),
    )
}
"""The non-stationary ids, each with its scalar and its vector environment."""

globals().update({env.__name__: env for pair in NON_STATIONARY.values() for env in pair})  # entry points name them here
