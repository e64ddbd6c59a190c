"""The position-based model and its environments."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .checks import check_positions, probabilities
from .click_model import CLICKS, ClickModel, match
from .kernels import kernel
from .rank_env import RankEnv, RankVectorEnv

__all__ = ["PBMRankEnv", "PBMRankVectorEnv", "PositionBasedModel"]


class Parameters(NamedTuple):
    attraction: NDArray[np.float64]  # α, (L,)
    examination: NDArray[np.float64]  # χ, (K,)


@kernel
def sample(parameters, ranking, uniforms, clicks, examined):  # type: ignore[no-untyped-def]
    for k in range(len(ranking)):
        # Examined with χ_k, and clicked with α of what was examined, independently of the other positions.
        examined[k] = uniforms[k] < parameters.examination[k]
        clicks[k] = uniforms[k] < parameters.examination[k] * parameters.attraction[ranking[k]]
    return -1


@kernel
def marginals(parameters, ranking, examination, clicks, scratch):  # type: ignore[no-untyped-def]
    for k in range(len(ranking)):
        examination[k] = parameters.examination[k]
        clicks[k] = parameters.examination[k] * parameters.attraction[ranking[k]]


@kernel
def expected(parameters, ranking, reward, cutoff, scratch):  # type: ignore[no-untyped-def]
    n_clicks, no_click = 0.0, 1.0
    for k in range(cutoff):
        click = parameters.examination[k] * parameters.attraction[ranking[k]]
        n_clicks += click
        no_click *= 1.0 - click
    return n_clicks if reward == CLICKS else 1.0 - no_click


class PositionBasedModel(ClickModel):
    """Position-based model (PBM): position k is examined with probability χ_k, whatever the list and the other clicks.

    Args:
        attraction: ``(L,)`` probabilities α(i) that an examined item is clicked.
        examination: ``(K,)`` probabilities χ_k that a position is examined; they need not decrease.

    Raises:
        ValueError: naming the parameter, the entry and what was expected.

    Source: Richardson et al. 2007; Zoghi et al. 2017, section 2.1; Lagrée et al. 2016, section 2 (κ for χ, θ for α).

    Example:
        >>> model = PositionBasedModel(attraction=[0.5, 0.2, 0.1], examination=[1.0, 0.5])
        >>> model.expected_reward([0, 1])
        0.6
        >>> model.optimal_ranking()
        array([0, 1])
    """

    rewards = ("clicks", "any_click")
    sample_kernel = sample
    marginals_kernel = marginals
    expected_kernel = expected

    def __init__(self, attraction: ArrayLike, examination: ArrayLike) -> None:
        self.parameters = Parameters(
            probabilities("attraction", attraction, (None,)), probabilities("examination", examination, (None,))
        )
        self.n_positions = check_positions(len(self.examination), self.n_items)

    @property
    def examination(self) -> NDArray[np.float64]:
        """Examination probability of each position, ``(K,)``."""
        return self.parameters.examination

    def _optimal(self, reward: int, cutoff: int) -> NDArray[np.int64]:
        # Σ χα by the rearrangement inequality; Σ -log(1 - χα) too, for its mixed derivative is positive.
        return match(self.attraction, self.examination[:cutoff])

    def to_dict(self) -> dict[str, Any]:
        return {
            "model": "PositionBasedModel",
            "attraction": self.attraction.tolist(),
            "examination": self.examination.tolist(),
        }

    def with_positions(self, n_positions: int) -> PositionBasedModel:
        n_positions = check_positions(n_positions, self.n_items, self.n_positions)
        return PositionBasedModel(self.attraction, self.examination[:n_positions])


class PBMRankEnv(RankEnv):
    """
    ## Description

    Rank search results for users of the **position-based model** (PBM): a user examines position k with probability χ_k,
    independently of everything else, and clicks an examined item i with probability α(i). Every step is one session with a
    new user; the stream of sessions never ends by itself.

    {interface}

    ## Arguments

    ```python
    >>> import gymnasium as gym, clickgym
    >>> env = gym.make("PBMRank-v0", attraction=[0.6, 0.4, 0.2, 0.1], examination=[1.0, 0.5])
    >>> observation, info = env.reset(seed=0)
    >>> info["optimal_ranking"]
    array([0, 1])
    >>> observation, reward, terminated, truncated, info = env.step([1, 0])
    >>> round(info["expected_reward"], 12), round(info["regret"], 12)
    (0.7, 0.1)

    ```

    | Parameter | Type | Default | Description |
    |---|---|---|---|
    | `attraction` | `(L,)` floats in [0, 1] | of the instance | probability α(i) that an examined item is clicked |
    | `examination` | `(K,)` floats in [0, 1] | of the instance | probability χ_k that a position is examined |
    {arguments}

    ## Vectorized environment

    {vectorized}

    ## References

    - M. Richardson, E. Dominowska, R. Ragno. *Predicting clicks: estimating the click-through rate for new ads.* WWW 2007.
    - P. Lagrée, C. Vernade, O. Cappé. *Multiple-play bandits in the position-based model.* NIPS 2016.

    ## Version History

    - v0: initial version.
    """

    model_class = PositionBasedModel
    kind = "PositionBasedModel"


class PBMRankVectorEnv(RankVectorEnv):
    """Many independent streams of `PBMRankEnv`, stepped together in compiled code."""

    model_class = PositionBasedModel
    kind = "PositionBasedModel"
